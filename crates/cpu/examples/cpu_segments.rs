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

mod common;

use common::{ask_for_huge_pages, time_of};
use std::io::{BufRead, Write};
use std::time::Duration;
use warpfold_core::DType;
use warpfold_core::layout::View;
use warpfold_core::op::{Op, Rules};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Bounds, Indices, SegmentJob, Threads};

/// How long calls are repeated for a figure.
const ROUND: Duration = Duration::from_millis(20);

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
    let mut calls = 0u32;
    let started = time_of(threads);
    let mut last = started;
    // The best of some calls: others have the other core.
    while calls < 3 || last - started < ROUND {
        let answer = job.answers(&[(op, 0)], &Rules::default());
        std::hint::black_box(answer.map_err(|error| error.to_string())?);
        let this = time_of(threads);
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
