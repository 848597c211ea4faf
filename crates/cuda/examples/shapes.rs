//! Times reductions of any view over any axes in device 0's memory: what
//! `benches/gpu.py --shapes` asks, a line for a case.
//!
//! ```text
//! OP DTYPE SPAN OFFSET SHAPE STRIDES AXES    as in: sum f32 32 0 4,8 8,1 1
//! ```
//!
//! Lengths, strides and offsets are in elements; SPAN is how many elements of
//! the buffer the view reaches over. The answer to each line is a line: the
//! seconds of a call, or why there are none.
//!
//! `--walk views` walks every case as any view is walked, `--walk tables` none that
//! other kernels can serve, and `--walk abreast` has several outputs a thread wherever
//! these have few elements.
//!
//! Calls follow one another without a wait, each on the next part of a buffer of
//! 8 GiB, so that none finds its data in the L2 cache; the clock runs from the
//! first call to the end of the last. A figure is the median of several rounds.

mod common;

use common::Random;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Instant;
use warpfold_core::DType;
use warpfold_core::op::Op;
use warpfold_cuda::engine::{DeviceView, Engine, ForcedWalk, Shape};
use warpfold_cuda::{Buffer, Device, Driver, Stream};

const BUFFER: u64 = 8 << 30;
/// Bytes of the answers of any case that `benches/shapes.py` draws.
const ANSWERS: u64 = 4 << 30;
const PIECE: usize = 64 << 20;
const ROUNDS: usize = 5;
/// Bytes that a round reads, if that takes no more calls than the most.
const ROUND: u64 = 4 << 30;
const MOST_CALLS: u64 = 200;

/// Floats between 0 and 1, integers, truth values.
fn piece(dtype: DType) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    match dtype {
        DType::Bool => (0..PIECE).map(|_| u8::from(random.unit() < 0.5)).collect(),
        // Totals fit their type, as they do not of any 64 bits.
        DType::I64 => (0..PIECE / 8).flat_map(|_| (random.word() >> 32).to_le_bytes()).collect(),
        _ if dtype.is_float() => common::floats(dtype, PIECE, || random.unit()),
        _ => common::elements(dtype, PIECE, &mut random),
    }
}

/// A line, taken apart.
struct Case {
    op: Op,
    dtype: DType,
    span: u64,
    offset: u64,
    shape: Vec<usize>,
    strides: Vec<isize>,
    reduced: Vec<bool>,
}

impl Case {
    fn parse(line: &str) -> Option<Case> {
        fn list<T: std::str::FromStr>(word: &str) -> Option<Vec<T>> {
            word.split(',').map(|item| item.parse().ok()).collect()
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[op, dtype, span, offset, shape, strides, axes] = &words[..] else { return None };
        let shape: Vec<usize> = list(shape)?;
        let axes: Vec<usize> = list(axes)?;
        Some(Case {
            op: Op::from_name(op)?,
            dtype: DType::from_name(dtype)?,
            span: span.parse().ok()?,
            offset: offset.parse().ok()?,
            strides: list(strides)?,
            reduced: (0..shape.len()).map(|axis| axes.contains(&axis)).collect(),
            shape,
        })
    }
}

struct Bench {
    engine: Engine,
    stream: Stream,
    buffer: Buffer<'static>,
    /// Where answers go, large enough for those of any case.
    to: Buffer<'static>,
    /// The type of the data in the buffer.
    filled: Option<DType>,
}

impl Bench {
    fn fill(&mut self, dtype: DType) -> warpfold_cuda::Result<()> {
        if self.filled != Some(dtype) {
            let bytes = piece(dtype);
            for at in (0..BUFFER).step_by(PIECE) {
                self.buffer.copy_in(self.stream, at, &bytes)?;
            }
            self.filled = Some(dtype);
        }
        Ok(())
    }

    /// The seconds of a call; `None` where no kernel makes numbers.
    fn seconds(&mut self, case: &Case) -> warpfold_cuda::Result<Option<f64>> {
        self.fill(case.dtype)?;
        let size = case.dtype.size() as u64;
        let span = (case.span * size).next_multiple_of(256);
        let calls = (ROUND / span).clamp(4, MOST_CALLS);
        let parts = (BUFFER / span).max(1);
        let view = DeviceView {
            address: self.buffer.address(),
            dtype: case.dtype,
            shape: case.shape.clone(),
            strides: case.strides.iter().map(|&s| s * case.dtype.size().cast_signed()).collect(),
        };
        let mut times = Vec::new();
        for _ in 0..=ROUNDS {
            let begin = Instant::now();
            for call in 0..calls {
                let at = self.buffer.address() + call % parts * span + case.offset * size;
                let view = DeviceView { address: at, ..view.clone() };
                let Bench { engine, to, stream, .. } = self;
                // SAFETY: the view's elements lie within a part of the buffer,
                // which is full, and `to` has room for the answers of any case.
                let made = unsafe {
                    engine.numbers_into(case.op, &view, &case.reduced, to.address(), *stream)?
                };
                if !made {
                    return Ok(None);
                }
            }
            self.engine.device().wait(self.stream)?;
            times.push(begin.elapsed().as_secs_f64() / calls as f64);
        }
        // The first round warms up.
        times.remove(0);
        times.sort_by(f64::total_cmp);
        Ok(Some(times[times.len() / 2]))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let walk = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => None,
        ["--walk", "views"] => Some(ForcedWalk::Views),
        ["--walk", "tables"] => Some(ForcedWalk::Tables),
        ["--walk", "abreast"] => Some(ForcedWalk::Abreast),
        _ => return Err("usage: shapes [--walk views|tables|abreast]".into()),
    };
    let device: Arc<dyn Device> = Arc::new(Driver::open(0)?);
    let stream = device.stream()?;
    let (buffer, to) = (Buffer::new(&device, BUFFER)?, Buffer::new(&device, ANSWERS)?);
    let mut bench = Bench {
        engine: Engine::with_shape(device, Shape { walk, ..Shape::default() }),
        stream,
        buffer,
        to,
        filled: None,
    };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let answer = match Case::parse(&line) {
            None => format!("error: not a case: {line}"),
            Some(case) => match bench.seconds(&case) {
                Ok(Some(seconds)) => format!("{seconds:e}"),
                Ok(None) => "not made".into(),
                Err(error) => format!("error: {error}"),
            },
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
