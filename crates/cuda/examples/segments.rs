//! How fast the engine reduces segments of an array in device 0's memory: GB/s of elements,
//! offsets and answers.
//!
//! ```text
//! segments [--json] [DTYPE [OP [FILE...]]]        as in: segments f32 sum
//! ```
//!
//! A file has offsets, as `u32`; without one, segments of several lengths are drawn, of 2^28
//! elements together. With `--json` every figure is a line for `benches/gpu_segments.py`.
//!
//! Calls follow one another without a wait, on arrays that are larger than caches; the clock
//! runs from the first call to the end of the last. Each figure is the median of several
//! such rounds. Before them, some answers are compared with the states of their segments.

mod common;

use common::Random;
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::{Numbers, Op, Rules};
use warpfold_cuda::engine::{Array, Boundaries, Engine, Segments, Width};
use warpfold_cuda::{Address, Buffer, Device, Driver, Result, Stream};

/// Elements of the segments that are drawn.
const ELEMENTS: usize = 1 << 28;
/// What is copied at once to fill the array.
const PIECE: usize = 64 << 20;
const ROUNDS: usize = 7;
const CALLS: usize = 8;
/// Answers that are looked at.
const LOOKS: usize = 50;

/// Offsets of segments whose lengths `next` says, of all elements together.
fn offsets(mut next: impl FnMut(usize) -> usize) -> Vec<u32> {
    let (mut all, mut at, mut i) = (vec![0], 0, 0);
    while at < ELEMENTS {
        at = ELEMENTS.min(at + next(i));
        all.push(at as u32);
        i += 1;
    }
    all
}

/// Segments that are drawn, by name.
fn drawn() -> Vec<(String, Vec<u32>)> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut all = Vec::new();
    for mean in [16, 256, 4096] {
        let draw = |_| (random.unit() * (2 * mean) as f64) as usize + 1;
        all.push((format!("uniform, mean {mean}"), offsets(draw)));
    }
    let huge = |i| if i < 1 << 20 { 1 } else { ELEMENTS };
    all.push(("2^20 of length 1, and a huge one".into(), offsets(huge)));
    for exponent in [1.0, 1.5, 2.0] {
        // The continuous law, cut off at 2^24.
        let draw = |_: usize| {
            let u = random.unit();
            let x = if exponent == 1.0 {
                f64::from(1 << 24).powf(u)
            } else {
                (1.0 - u).powf(-1.0 / (exponent - 1.0))
            };
            x.min(f64::from(1 << 24)) as usize
        };
        all.push((format!("Zipf, {exponent:.1}"), offsets(draw)));
    }
    let alternating = |i: usize| if i.is_multiple_of(2) { 1 } else { 4096 };
    all.push(("1 and 4096 in turns".into(), offsets(alternating)));
    all.push(("all of 2^24".into(), offsets(|_| 1 << 24)));
    all
}

struct Bench {
    device: Arc<dyn Device>,
    engine: Engine,
    stream: Stream,
    array: Array,
    to: Address,
}

impl Bench {
    /// Seconds of a call; nothing where no kernel answers.
    fn seconds(&self, op: Op, segments: &Segments) -> Result<Option<f64>> {
        let Bench { device, engine, array, to, stream } = self;
        common::seconds(&**device, *stream, ROUNDS, CALLS, || {
            // SAFETY: array, offsets and room for the answers were made by `main`.
            unsafe { engine.segments_into(op, *array, segments, *to, *stream) }
        })
    }

    /// Compares some answers, those of the last call, with their segments' states.
    fn look(&self, op: Op, offsets: &[u32]) -> Result<()> {
        let Bench { device, array, .. } = self;
        let (dtype, count) = (array.dtype, offsets.len() - 1);
        let mut one = Numbers::zeros(op.answer_type(dtype), 1);
        for i in (0..LOOKS.min(count)).map(|i| i * (count - 1) / LOOKS.max(1)) {
            let (start, stop) = (offsets[i] as usize, offsets[i + 1] as usize);
            let at = self.to + one.bytes().len() as u64 * i as u64;
            let address = array.address + (start * dtype.size()) as u64;
            let segment = Array { address, len: (stop - start) as u64, dtype };
            // SAFETY: both lie in memory that `main` has made.
            let state = unsafe {
                device.copy_out(self.stream, at, one.bytes_mut())?;
                self.engine.reduce(op.kind(), segment, self.stream)?
            };
            let expected = state.finish(op, &Rules::default())?.first();
            assert_eq!(one.get(0), Some(expected), "{op} of segment {i}, {start} to {stop}");
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let (flags, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "--json");
    let json = !flags.is_empty();
    let dtype = wanted.first().map_or(DType::F32, |name| name.parse().expect("a type"));
    let op: Op = wanted.get(1).map_or(Op::Sum, |name| name.parse().expect("an operation"));
    let cases: Vec<(String, Vec<u32>)> = match wanted.get(2..) {
        Some(files) if !files.is_empty() => {
            files.iter().map(|file| (file.clone(), common::words(file))).collect()
        }
        _ => drawn(),
    };
    let device: Arc<dyn Device> = Arc::new(Driver::open(0)?);
    let stream = device.stream()?;
    if !json {
        println!("{}, {} multiprocessors", device.limits().name, device.limits().multiprocessors);
    }
    let len = cases.iter().filter_map(|(_, offsets)| offsets.last()).max().copied().unwrap_or(0);
    let bytes = u64::from(len) * dtype.size() as u64;
    let elements = Buffer::new(&device, bytes.next_multiple_of(PIECE as u64))?;
    let some = common::elements(dtype, PIECE, &mut Random(0x0123_4567_89ab_cdef));
    for at in (0..bytes).step_by(PIECE) {
        elements.copy_in(stream, at, &some)?;
    }
    let most = cases.iter().map(|(_, offsets)| offsets.len()).max().unwrap_or(0);
    let answers = Buffer::new(&device, 8 * most as u64)?;
    let array = Array { address: elements.address(), len: len.into(), dtype };
    let engine = Engine::new(Arc::clone(&device));
    let bench = Bench { device: Arc::clone(&device), engine, stream, array, to: answers.address() };
    for (name, offsets) in &cases {
        let memory = Buffer::new(&device, 4 * offsets.len() as u64)?;
        memory.copy_in(stream, 0, bytemuck::cast_slice(offsets))?;
        let boundaries = Boundaries::Offsets(memory.address(), Width::Unsigned32);
        let count = offsets.len() - 1;
        let segments = Segments { count: count as u64, boundaries };
        let Some(seconds) = bench.seconds(op, &segments)? else {
            println!("{op} of {dtype}: no kernel");
            continue;
        };
        bench.look(op, offsets)?;
        let answers = count * op.answer_type(dtype).size();
        let bytes = (len as usize * dtype.size() + 4 * offsets.len() + answers) as f64;
        let rate = bytes / seconds / 1e9;
        if json {
            println!(
                "{{\"peer\": \"warpfold\", \"op\": \"{op}\", \"dtype\": \"{dtype}\", \
                 \"case\": \"{name}\", \"segments\": {count}, \"bytes\": {bytes}, \
                 \"seconds\": {seconds:e}}}"
            );
        } else {
            println!("{op} {dtype} {name:34} {count:>10} segments {rate:6.0} GB/s");
        }
    }
    answers.free()?;
    elements.free()
}
