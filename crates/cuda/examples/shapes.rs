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
//! these have few elements. `--walk each` walks a case in every way, once for each: its line has a word for
//! each, `CHOSEN=WALK/KERNEL=SECONDS`, with a dash for spaces.
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
/// Seconds of a round at most, where it is more than a few calls.
const LONGEST: f64 = 4e-3;

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
    /// Bytes of a part of the buffer that has its view.
    fn room(&self) -> u64 {
        (self.span * self.dtype.size() as u64).next_multiple_of(256)
    }

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
    device: Arc<dyn Device>,
    /// Those of each way that is asked for, and what it is called.
    engines: Vec<(&'static str, Engine)>,
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

    /// A case's view of part of the buffer.
    fn view(&self, case: &Case, part: u64) -> DeviceView {
        let size = case.dtype.size() as u64;
        DeviceView {
            address: self.buffer.address() + part * case.room() + case.offset * size,
            dtype: case.dtype,
            shape: case.shape.clone(),
            strides: case.strides.iter().map(|&s| s * case.dtype.size().cast_signed()).collect(),
        }
    }

    /// The seconds of a call; `None` where no kernel makes numbers.
    fn seconds(&self, case: &Case, engine: &Engine) -> warpfold_cuda::Result<Option<f64>> {
        let parts = (BUFFER / case.room()).max(1);
        let round = |calls: u64| -> warpfold_cuda::Result<Option<f64>> {
            let begin = Instant::now();
            for call in 0..calls {
                let (view, to) = (self.view(case, call % parts), self.to.address());
                // SAFETY: the view's elements lie within a part of the buffer,
                // which is full, and `to` has room for the answers of any case.
                let made =
                    unsafe { engine.numbers_into(case.op, &view, &case.reduced, to, self.stream)? };
                if !made {
                    return Ok(None);
                }
            }
            self.device.wait(self.stream)?;
            Ok(Some(begin.elapsed().as_secs_f64() / calls as f64))
        };
        // The first calls load the kernel.
        let Some(_) = round(1)? else { return Ok(None) };
        let Some(one) = round(4)? else { return Ok(None) };
        let calls = (ROUND / case.room()).min(MOST_CALLS).min((LONGEST / one) as u64).max(4);
        let times = (0..ROUNDS).map(|_| round(calls)).collect::<Result<Vec<_>, _>>()?;
        Ok(common::median(times.into_iter().flatten().collect()))
    }

    /// The seconds of a call, in each way that is asked for.
    fn answer(&mut self, case: &Case) -> warpfold_cuda::Result<String> {
        self.fill(case.dtype)?;
        if let [(_, engine)] = &self.engines[..] {
            let seconds = self.seconds(case, engine)?;
            return Ok(seconds.map_or("not made".into(), |seconds| format!("{seconds:e}")));
        }
        let mut words: Vec<String> = Vec::new();
        let mut known = Vec::new();
        for (name, engine) in &self.engines {
            let explained = engine.explain(case.op, &self.view(case, 0), &case.reduced)?;
            let Some(explained) = explained else { continue };
            let same = known.iter().find(|(other, _)| *other == explained);
            let seconds = match same {
                Some(&(_, seconds)) => Some(seconds),
                None => self.seconds(case, engine)?,
            };
            let Some(seconds) = seconds else { continue };
            let walk = explained.walk.replace(' ', "-");
            words.push(format!("{name}={walk}/{}={seconds:e}", explained.kernel));
            known.push((explained, seconds));
        }
        Ok(if words.is_empty() { "not made".into() } else { words.join(" ") })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = [
        ("chosen", None),
        ("tables", Some(ForcedWalk::Tables)),
        ("views", Some(ForcedWalk::Views)),
        ("abreast", Some(ForcedWalk::Abreast)),
        ("elements", Some(ForcedWalk::Elements)),
        ("payloads", Some(ForcedWalk::Payloads)),
    ];
    let asked = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => "chosen",
        ["--walk", walk] if walk == "each" || named.iter().any(|(name, _)| *name == walk) => walk,
        _ => {
            let usage = "usage: shapes [--walk views|tables|abreast|elements|payloads|each]";
            return Err(usage.into());
        }
    };
    let device: Arc<dyn Device> = Arc::new(Driver::open(0)?);
    let stream = device.stream()?;
    let (buffer, to) = (Buffer::new(&device, BUFFER)?, Buffer::new(&device, ANSWERS)?);
    let engines = named
        .into_iter()
        .filter(|(name, _)| asked == "each" || *name == asked)
        .map(|(name, walk)| {
            let shape = Shape { walk, ..Shape::default() };
            (name, Engine::with_shape(Arc::clone(&device), shape))
        })
        .collect();
    let mut bench = Bench { device, engines, stream, buffer, to, filled: None };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let answer = match Case::parse(&line) {
            None => format!("error: not a case: {line}"),
            Some(case) => bench.answer(&case).unwrap_or_else(|error| format!("error: {error}")),
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
