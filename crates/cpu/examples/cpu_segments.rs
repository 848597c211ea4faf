//! Times reductions of segments in memory: what `benches/segments.py` asks, a line for a
//! case.
//!
//! ```text
//! OP DTYPE OFFSETS DATA      as in: sum f64 /tmp/offsets.i64 /tmp/data.f64
//! ```
//!
//! The files hold raw numbers in native order, the offsets 64 bits each. The answer to each
//! line is a line: the seconds of a call, or why there are none. The argument is the number
//! of threads; on one thread processor time is told, which other processes do not disturb.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};
use warpfold_core::DType;
use warpfold_core::layout::View;
use warpfold_core::op::{Op, Rules};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Bounds, Indices, SegmentJob, Threads};

/// How long calls are repeated for a figure.
const ROUND: Duration = Duration::from_millis(20);

/// The processor time of this thread; where that cannot be asked, the time that passes.
fn now(begin: Instant, threads: usize) -> Duration {
    #[cfg(target_os = "linux")]
    if threads == 1 {
        #[repr(C)]
        struct Time {
            seconds: i64,
            nanoseconds: i64,
        }
        unsafe extern "C" {
            fn clock_gettime(clock: i32, time: *mut Time) -> i32;
        }
        const THREAD: i32 = 3;
        let mut time = Time { seconds: 0, nanoseconds: 0 };
        // SAFETY: the standard library links the C library, whose function this is; on
        // Linux of 64 bits `timespec` has these two fields.
        if unsafe { clock_gettime(THREAD, &raw mut time) } == 0 {
            return Duration::new(time.seconds.unsigned_abs(), time.nanoseconds as u32);
        }
    }
    let _ = threads;
    begin.elapsed()
}

/// Asks for pages of 2 MiB, as NumPy does for its arrays.
fn ask_for_huge_pages(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        unsafe extern "C" {
            fn madvise(start: *mut u8, bytes: usize, advice: i32) -> i32;
        }
        const HUGE: usize = 2 << 20;
        const ADVICE: i32 = 14;
        let skip = start.align_offset(HUGE);
        if let Some(bytes) = bytes.checked_sub(skip).filter(|&bytes| bytes >= HUGE) {
            // SAFETY: the C library's function; whole pages of an allocation, whose
            // contents the advice leaves alone. It may be refused.
            unsafe { madvise(start.wrapping_add(skip), bytes / HUGE * HUGE, ADVICE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// A file's bytes in whole words, so that elements of every type are aligned.
struct Words {
    path: String,
    words: Vec<u64>,
    bytes: usize,
}

impl Words {
    fn read(&mut self, path: &str) -> Result<&[u8], String> {
        if self.path != path {
            let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
            let words = bytes.len().div_ceil(8);
            self.words = Vec::with_capacity(words);
            ask_for_huge_pages(self.words.as_mut_ptr().cast(), words * 8);
            self.words.resize(words, 0);
            bytemuck::cast_slice_mut(&mut self.words)[..bytes.len()].copy_from_slice(&bytes);
            (self.path, self.bytes) = (path.into(), bytes.len());
        }
        Ok(&bytemuck::cast_slice(&self.words)[..self.bytes])
    }
}

fn seconds(line: &str, files: &mut [Words; 2], threads: usize) -> Result<f64, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[op, dtype, offsets, data] = &words[..] else { return Err(format!("not a case: {line}")) };
    let op = Op::from_name(op).ok_or("no such operation")?;
    let dtype = DType::from_name(dtype).ok_or("no such type")?;
    let [first, second] = files;
    let offsets: &[i64] = bytemuck::cast_slice(first.read(offsets)?);
    let data = second.read(data)?;
    let view = View::from_bytes(dtype, data, &[data.len() / dtype.size()]);
    let view = view.map_err(|error| error.to_string())?;
    let kinds = [op.kind()];
    let job = SegmentJob {
        views: [Some(&view), None],
        bounds: Bounds::Offsets(Indices::I64(offsets)),
        valid: None,
        initial: None,
        kinds: &kinds,
        isa: Isa::active().map_err(|error| error.to_string())?,
        threads: Threads::Exactly(threads),
    };
    let mut best = f64::INFINITY;
    let (begin, mut calls) = (Instant::now(), 0u32);
    let started = now(begin, threads);
    let mut last = started;
    // The best of some calls: others have the other core.
    while calls < 3 || last - started < ROUND {
        let answer = job.answers(&[(op, 0)], &Rules::default());
        std::hint::black_box(answer.map_err(|error| error.to_string())?);
        let this = now(begin, threads);
        best = best.min((this - last).as_secs_f64());
        (last, calls) = (this, calls + 1);
    }
    Ok(best)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = std::env::args().nth(1).map_or(Ok(1), |n| n.parse())?;
    let none = || Words { path: String::new(), words: Vec::new(), bytes: 0 };
    let mut files = [none(), none()];
    for line in std::io::stdin().lock().lines() {
        match seconds(&line?, &mut files, threads) {
            Ok(seconds) => println!("{seconds:e}"),
            Err(error) => println!("error: {error}"),
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}
