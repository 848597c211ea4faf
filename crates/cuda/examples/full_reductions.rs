//! How fast the engine reduces whole arrays on device 0: a table of GB/s, and of
//! microseconds a call for small arrays.
//!
//! ```text
//! full_reductions [--json [--quick]] [--blocks=N] [--threads=N] [--len=N] [OP [DTYPE]]
//! full_reductions sum f32
//! ```
//!
//! With `--json` every figure is a line for `benches/gpu.py`, which puts those of
//! other libraries beside them; with `--quick` too, only those that a target asks
//! for. `--blocks` and `--threads` take other numbers than the plan's, to see
//! whether those are right, and `--len` one number of elements in place of the
//! table's, for a profiler.
//!
//! Launches follow one another without a wait, each on the next part of a buffer
//! of 8 GiB, so that none finds its data in the L2 cache; the clock runs from the
//! first launch to the end of the last. Each figure is the median of several such
//! rounds.

mod common;

use common::Random;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;
use warpfold_core::DType;
use warpfold_core::op::Kind;
use warpfold_cuda::engine::{Array, Engine, Input, Shape};
use warpfold_cuda::{Buffer, Device, Driver, Result, Stream};

/// What inputs rotate over, and what is copied at once to fill it.
const BUFFER: u64 = 8 << 30;
const PIECE: usize = 64 << 20;
/// Room for what any state leaves: trees leave their edges too.
const LEFT: u64 = 1 << 20;

/// Bytes that a round reads at least, as long as that is not too many launches.
const ROUND: u64 = 8 << 30;
const MOST_LAUNCHES: u64 = 2000;
const ROUNDS: usize = 5;

/// Operations, and the states that answer them.
const OPS: [(&str, Kind); 10] = [
    ("sum", Kind::Sum),
    ("norm1", Kind::AbsSum),
    ("norm2", Kind::SquareSum),
    ("dot", Kind::Dot),
    ("var", Kind::Moments),
    ("min", Kind::Extrema),
    ("argmin", Kind::ArgExtrema),
    ("count", Kind::Counts),
    ("and", Kind::Bits),
    ("logsumexp", Kind::LogSumExp),
];

/// What the elements are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    /// Floats in [0, 1).
    Uniform,
    /// Random bits: floats of every size, infinities and NaN.
    Bits,
    /// Floats of both signs whose exponents spread over 120 binades, or all that
    /// the type has.
    Binades,
}

impl Data {
    const ALL: [Data; 3] = [Data::Uniform, Data::Bits, Data::Binades];

    fn name(self) -> &'static str {
        match self {
            Data::Uniform => "uniform",
            Data::Bits => "bits",
            Data::Binades => "binades",
        }
    }

    /// Whether the benchmark's table has this operation over such elements.
    fn is_compared(self, op: &str, dtype: DType) -> bool {
        match op {
            "norm1" | "count" | "and" => false,
            _ if !dtype.is_float() => true,
            // Other libraries have no exact sums to hold hostile data against.
            "sum" | "norm2" | "dot" | "var" => true,
            "min" => self != Data::Binades,
            _ => self == Data::Uniform,
        }
    }
}

/// Sizes: powers of two, and 4 GiB.
const SMALL: [u32; 3] = [10, 16, 20];
const LARGE: [u32; 3] = [24, 28, 30];
const LARGEST: u64 = 4 << 30;

/// Elements of the type.
fn piece(dtype: DType, data: Data) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    if data == Data::Bits {
        return (0..PIECE / 8).flat_map(|_| random.word().to_le_bytes()).collect();
    }
    let binades = if dtype == DType::F16 { 28 } else { 120 };
    common::floats(dtype, PIECE, || {
        let unit = random.unit();
        if data == Data::Uniform {
            return unit;
        }
        let word = random.word();
        let exponent = (word >> 32) as i32 % binades - binades / 2;
        (1.0 + unit) * 2f64.powi(exponent) * if word.is_multiple_of(2) { 1.0 } else { -1.0 }
    })
}

/// Whether a target of `benches/gpu_targets.py` asks for it.
fn is_aimed_at(op: &str, dtype: DType, data: Data) -> bool {
    let plain = data == Data::Uniform || !dtype.is_float();
    match op {
        "sum" => !matches!(dtype, DType::U16 | DType::U32 | DType::U64 | DType::Bool),
        "min" => {
            plain
                && !matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::Bool)
        }
        "argmin" => plain,
        _ => dtype == DType::F32,
    }
}

/// A device with a full buffer.
struct Bench {
    engine: Engine,
    buffer: Buffer<'static>,
    payload: Buffer<'static>,
    stream: Stream,
}

impl Bench {
    fn fill(&self, piece: &[u8]) -> Result<()> {
        let device = self.engine.device();
        let pinned = device.allocate_pinned(PIECE)?;
        // SAFETY: just allocated with as many bytes, which are initialised.
        let staged = unsafe { core::slice::from_raw_parts_mut(pinned.as_ptr(), PIECE) };
        staged.copy_from_slice(piece);
        (0..BUFFER)
            .step_by(PIECE)
            .try_for_each(|at| self.buffer.copy_in(self.stream, at, staged))?;
        device.wait(self.stream)?;
        // SAFETY: all copies were waited for.
        unsafe { device.free_pinned(pinned, PIECE) }
    }

    /// Seconds a call, the median over rounds.
    fn seconds(&self, kind: Kind, dtype: DType, len: u64) -> Result<f64> {
        // A dot product is of the first and the second half of what is read.
        let len = if kind == Kind::Dot { len / 2 } else { len };
        let half = len * dtype.size() as u64;
        let bytes = if kind == Kind::Dot { 2 * half } else { half };
        let launches = (ROUND / bytes).clamp(4, MOST_LAUNCHES);
        // Parts of small arrays lie further apart than the L2 cache's lines.
        let stride = bytes.next_multiple_of(256);
        let mut at = 0;
        let mut round = |launches: u64| -> Result<f64> {
            let begin = Instant::now();
            for _ in 0..launches {
                if at + bytes > BUFFER {
                    at = 0;
                }
                let array = Array { address: self.buffer.address() + at, len, dtype };
                let others = (kind == Kind::Dot).then_some(array.address + half);
                let input = Input { others, ..Input::from(array) };
                assert!(Engine::output_len(kind, input).is_some_and(|left| left as u64 <= LEFT));
                // SAFETY: the arrays lie in the buffer, which is full; the
                // payload has room for any state.
                unsafe {
                    self.engine.reduce_into(kind, input, self.payload.address(), self.stream)?
                };
                at += stride;
            }
            self.engine.device().wait(self.stream)?;
            Ok(begin.elapsed().as_secs_f64() / launches as f64)
        };
        round(launches.min(8))?;
        let mut times = (0..ROUNDS).map(|_| round(launches)).collect::<Result<Vec<f64>>>()?;
        times.sort_by(f64::total_cmp);
        Ok(times[ROUNDS / 2])
    }

    /// Seconds from the call to the value on the host, the median of many.
    fn seconds_to_value(&self, kind: Kind, dtype: DType, len: u64) -> Result<f64> {
        let array = Array { address: self.buffer.address(), len, dtype };
        let others = (kind == Kind::Dot).then_some(self.buffer.address());
        let input = Input { others, ..Input::from(array) };
        let call = || -> Result<f64> {
            let begin = Instant::now();
            // SAFETY: the array lies in the buffer, which is full.
            unsafe { self.engine.reduce(kind, input, self.stream)? };
            Ok(begin.elapsed().as_secs_f64())
        };
        let mut times = (0..200).map(|_| call()).collect::<Result<Vec<f64>>>()?;
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// Seconds a call for every size, and last from call to value.
    fn figures(&self, kind: Kind, dtype: DType) -> Result<(Vec<(u64, f64)>, f64)> {
        let powers = SMALL.into_iter().chain(LARGE).map(|log| 1u64 << log);
        let lengths = powers.chain([LARGEST / dtype.size() as u64]);
        let times = lengths.map(|len| Ok((len, self.seconds(kind, dtype, len)?)));
        Ok((times.collect::<Result<Vec<_>>>()?, self.seconds_to_value(kind, dtype, 1 << 16)?))
    }
}

/// A line of the table.
fn row(figures: &[(u64, f64)], value: f64, dtype: DType) -> String {
    let (small, large) = figures.split_at(SMALL.len());
    let mut row: String = small.iter().map(|(_, time)| format!("{:8.2}", time * 1e6)).collect();
    row += &format!("{:8.2} |", value * 1e6);
    for (len, time) in large {
        row += &format!("{:8.0}", (len * dtype.size() as u64) as f64 / time / 1e9);
    }
    row
}

/// A figure for `benches/gpu.py`.
fn line(op: &str, dtype: DType, data: &str, len: u64, seconds: f64) {
    println!(
        "{{\"peer\": \"warpfold\", \"op\": \"{op}\", \"dtype\": \"{dtype}\", \"data\": \"{data}\", \
         \"elements\": {len}, \"seconds\": {seconds:e}}}"
    );
}

fn main() -> Result<()> {
    let (flags, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let json = flags.iter().any(|flag| flag == "--json");
    let quick = flags.iter().any(|flag| flag == "--quick");
    let wants = |place: usize, name: &str| wanted.get(place).is_none_or(|w| w == name);
    let number = |name: &str| {
        let given = flags.iter().find_map(|flag| flag.strip_prefix(name)?.strip_prefix('='))?;
        Some(given.parse::<NonZeroU32>().unwrap_or_else(|_| {
            eprintln!("error: {name} takes a number from 1 to 2^32 - 1, not {given:?}");
            std::process::exit(2)
        }))
    };
    let [threads, blocks] = ["--threads", "--blocks"].map(|n| number(n).map(NonZeroU32::get));
    let shape = Shape { threads, blocks, walk: None };
    let only = number("--len").map(|len| u64::from(len.get()));
    let device: Arc<dyn Device> = Arc::new(Driver::open(0)?);
    let stream = device.stream()?;
    let buffer = Buffer::new(&device, BUFFER)?;
    let payload = Buffer::new(&device, LEFT)?;
    if !json {
        println!("{}, {} multiprocessors", device.limits().name, device.limits().multiprocessors);
    }
    if !json && only.is_none() {
        println!(
            "{:26}{:>8}{:>8}{:>8}{:>8} |{:>8}{:>8}{:>8}{:>8}",
            "", "2^10 us", "2^16 us", "2^20 us", "value", "2^24", "2^28", "2^30", "4 GiB"
        );
    }
    let bench = Bench { engine: Engine::with_shape(device, shape), buffer, payload, stream };
    for dtype in DType::ALL.into_iter().filter(|d| wants(1, d.name())) {
        for data in Data::ALL {
            if data != Data::Bits && !dtype.is_float() {
                continue;
            }
            bench.fill(&piece(dtype, data))?;
            for (op, kind) in OPS.into_iter().filter(|(op, _)| wants(0, op)) {
                if !Engine::supports(kind, dtype)
                    || json && !data.is_compared(op, dtype)
                    || quick && !is_aimed_at(op, dtype, data)
                {
                    continue;
                }
                if let Some(len) = only {
                    let time = bench.seconds(kind, dtype, len)?;
                    if json {
                        line(op, dtype, data.name(), len, time);
                    } else {
                        let rate = (len * dtype.size() as u64) as f64 / time / 1e9;
                        let name = format!("{op} {dtype} {}", data.name());
                        println!("{name:26}{:10.2} us{rate:8.0} GB/s", time * 1e6);
                    }
                    continue;
                }
                let (figures, value) = bench.figures(kind, dtype)?;
                if json {
                    figures.iter().for_each(|&(len, time)| line(op, dtype, data.name(), len, time));
                    if op == "sum" && data == Data::Uniform {
                        line("call to value", dtype, data.name(), 1 << 16, value);
                    }
                } else {
                    let name = format!("{op} {dtype} {}", data.name());
                    println!("{name:26}{}", row(&figures, value, dtype));
                }
            }
        }
    }
    bench.payload.free()?;
    bench.buffer.free()
}
