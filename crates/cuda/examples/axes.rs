//! How fast the engine reduces over an axis of arrays in device 0's memory: GB/s
//! of input.
//!
//! ```text
//! axes [--json] [--data KIND] [--omit] [DTYPE [OP]]        as in: axes f32 logsumexp
//! ```
//!
//! Without an operation: sums, means and maxima. Elements are from -1 to 1, or of a kind:
//! `nan` and `infinite` have a hundredth of that among them, `binades` reach over 60
//! either way, and all are the same in a `constant`. `--omit` leaves NaNs out.
//!
//! With `--json` every figure is a line for `benches/gpu.py`.
//!
//! Calls follow one another without a wait, each on the next part of a buffer of
//! 8 GiB, so that none finds its data in the L2 cache; the clock runs from the
//! first call to the end of the last. Each figure is the median of several such
//! rounds.

mod common;

use common::Random;
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::Op;
use warpfold_cuda::engine::{DeviceView, Engine, Number};
use warpfold_cuda::{Address, Buffer, Device, Driver, Result, Stream};

/// What inputs rotate over, and what is copied at once to fill it.
const BUFFER: u64 = 8 << 30;
const PIECE: usize = 64 << 20;
const ROUNDS: usize = 7;
const CALLS: usize = 24;
/// Seconds of a round that has enough calls.
const ENOUGH: f64 = 0.05;

const SHAPES: [[usize; 2]; 6] = [
    [1 << 24, 16],
    [1 << 20, 256],
    [1 << 14, 1 << 14],
    [256, 1 << 20],
    [16, 1 << 24],
    // Rows that no vector ends with.
    [1_000_003, 250],
];

struct Bench {
    engine: Engine,
    buffer: Address,
    to: Address,
    stream: Stream,
}

impl Bench {
    /// GB/s; nothing where no kernel answers.
    fn rate(
        &self,
        number: Number,
        dtype: DType,
        shape: [usize; 2],
        axis: usize,
    ) -> Result<Option<f64>> {
        let bytes = (shape[0] * shape[1] * dtype.size()) as u64;
        let stride = bytes.next_multiple_of(256);
        let reduced = [axis == 0, axis == 1];
        let Bench { engine, to, stream, .. } = self;
        let mut at = 0;
        let mut call = || {
            if at + bytes > BUFFER {
                at = 0;
            }
            let view = DeviceView::contiguous(self.buffer + at, dtype, &shape);
            at += stride;
            // SAFETY: the array lies in the buffer, which is full, and there is room for as
            // many answers as there are elements.
            unsafe { engine.numbers_into(number, &view, &reduced, *to, *stream) }
        };
        let device = &**engine.device();
        let Some(one) = common::seconds(device, *stream, 1, 1, &mut call)? else {
            return Ok(None);
        };
        let calls = ((ENOUGH / one) as usize).clamp(1, CALLS);
        let seconds = common::seconds(device, *stream, ROUNDS.min(2 * calls), calls, call)?;
        Ok(seconds.map(|seconds| bytes as f64 / seconds / 1e9))
    }
}

/// Elements of a kind, so many bytes of them.
fn of_kind(kind: &str, dtype: DType, bytes: usize) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let rare = match kind {
        "nan" => f64::NAN,
        "infinite" => f64::INFINITY,
        _ if dtype.is_float() => 0.5,
        _ => return common::elements(dtype, bytes, &mut random),
    };
    common::floats(dtype, bytes, || match kind {
        "constant" => rare,
        "binades" => random.signed() * 2f64.powi((random.word() % 121) as i32 - 60),
        "nan" | "infinite" if random.word().is_multiple_of(100) => rare,
        _ => random.signed(),
    })
}

fn main() -> Result<()> {
    let (mut json, mut omits_nan, mut kind) = (false, false, String::new());
    let mut wanted = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &argument[..] {
            "--json" => json = true,
            "--omit" => omits_nan = true,
            "--data" => kind = arguments.next().unwrap_or_default(),
            _ => wanted.push(argument),
        }
    }
    let device: Arc<dyn Device> = Arc::new(Driver::open(0)?);
    let stream = device.stream()?;
    let elements = Buffer::new(&device, BUFFER)?;
    let numbers = Buffer::new(&device, 8 << 24)?;
    let (buffer, to) = (elements.address(), numbers.address());
    if !json {
        println!("{}, {} multiprocessors", device.limits().name, device.limits().multiprocessors);
    }
    let bench = Bench { engine: Engine::new(device), buffer, to, stream };
    let usual = [Op::Sum, Op::Mean, Op::Max];
    let asked = |op: &Op| wanted.get(1).map_or(usual.contains(op), |name| name == op.name());
    let ops: Vec<Op> = Op::ALL.into_iter().filter(asked).collect();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I8] {
        if wanted.first().is_some_and(|name| name != dtype.name()) {
            continue;
        }
        let bytes = of_kind(&kind, dtype, PIECE);
        for at in (0..BUFFER).step_by(PIECE) {
            elements.copy_in(stream, at, &bytes)?;
        }
        for &op in &ops {
            for shape in SHAPES {
                let mut row = format!("{:24}", format!("{op} {dtype} {} x {}", shape[0], shape[1]));
                for axis in [0, 1] {
                    let rate = bench.rate(Number { omits_nan, ..op.into() }, dtype, shape, axis)?;
                    if let (true, Some(rate)) = (json, rate) {
                        let elements = shape[0] * shape[1];
                        println!(
                            "{{\"peer\": \"warpfold\", \"op\": \"{op}\", \"dtype\": \"{dtype}\", \
                             \"shape\": {shape:?}, \"axis\": {axis}, \"elements\": {elements}, \
                             \"seconds\": {:e}}}",
                            (elements * dtype.size()) as f64 / rate / 1e9
                        );
                    }
                    let rate = rate.map_or("-".into(), |rate| format!("{rate:.0}"));
                    row += &format!("  axis {axis} {rate:>6}");
                }
                if !json {
                    println!("{row}");
                }
            }
        }
    }
    numbers.free()?;
    elements.free()
}
