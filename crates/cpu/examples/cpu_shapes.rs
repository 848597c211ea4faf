//! Times reductions of any view over any axes in memory: what
//! `benches/peers.py --shapes` asks, a line for a case.
//!
//! ```text
//! OP DTYPE SPAN OFFSET SHAPE STRIDES AXES    as in: sum f32 32 0 4,8 8,1 1
//! ```
//!
//! Lengths, strides and offsets are in elements; SPAN is how many elements of
//! the buffer the view reaches over, and a second array follows the first. The
//! answer to each line is a line: the seconds of a call, or why there are none.
//! The argument is the number of threads. On one thread its processor time is
//! told, which other processes do not disturb; on several the time that passes.

mod common;

use common::{ask_for_huge_pages, time_of};
use std::io::{BufRead, Write};
use std::time::Duration;
use warpfold_core::DType;
use warpfold_core::element::f16;
use warpfold_core::layout::View;
use warpfold_core::op::{Op, Rules};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Job, Threads};

/// Bytes that are drawn; the buffer repeats them.
const PIECE: usize = 16 << 20;
/// How long calls are repeated for a figure.
const ROUND: Duration = Duration::from_millis(2);

/// xorshift64*.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Floats between 0 and 1, integers, truth values.
fn piece(dtype: DType) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let count = PIECE / dtype.size();
    let mut next = || random.unit();
    match dtype {
        DType::F64 => (0..count).flat_map(|_| next().to_ne_bytes()).collect(),
        DType::F32 => (0..count).flat_map(|_| (next() as f32).to_ne_bytes()).collect(),
        DType::F16 => {
            (0..count).flat_map(|_| f16::from_f64(next()).to_bits().to_ne_bytes()).collect()
        }
        DType::Bool => (0..count).map(|_| u8::from(next() < 0.5)).collect(),
        // Totals fit their type, as they do not of any 64 bits.
        DType::I64 | DType::U64 => {
            (0..count).flat_map(|_| (random.word() >> 32).to_ne_bytes()).collect()
        }
        _ => (0..PIECE / 8).flat_map(|_| random.word().to_ne_bytes()).collect(),
    }
}

/// A line, taken apart.
struct Case {
    op: Op,
    dtype: DType,
    span: usize,
    offset: usize,
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

/// A buffer that is filled with elements of a type as far as cases need it.
struct Buffer {
    dtype: Option<DType>,
    piece: Vec<u8>,
    /// Whole words, so that elements of every type are aligned.
    words: Vec<u64>,
}

impl Buffer {
    fn fill(&mut self, dtype: DType, bytes: usize) {
        if self.dtype != Some(dtype) {
            (self.dtype, self.piece) = (Some(dtype), piece(dtype));
            self.words.clear();
        }
        let words = bytes.next_multiple_of(PIECE) / 8;
        if self.words.capacity() < words {
            self.words = Vec::with_capacity(words);
            ask_for_huge_pages(self.words.as_mut_ptr().cast(), words * 8);
        }
        while self.words.len() * 8 < bytes {
            let words = self.piece.chunks_exact(8).map(|word| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(word);
                u64::from_ne_bytes(bytes)
            });
            self.words.extend(words);
        }
    }
}

fn seconds(case: &Case, buffer: &mut Buffer, threads: usize) -> Result<f64, String> {
    let size = case.dtype.size();
    let arrays = case.op.arity();
    buffer.fill(case.dtype, arrays * case.span * size);
    let bytes: &[u8] = bytemuck::cast_slice(&buffer.words);
    let strides: Vec<isize> = case.strides.iter().map(|s| s * size.cast_signed()).collect();
    let view = |array: usize| {
        let offset = (array * case.span + case.offset) * size;
        View::strided(case.dtype, bytes, offset, &case.shape, &strides)
            .map_err(|error| error.to_string())
    };
    let (first, second) = (view(0)?, if arrays == 2 { Some(view(1)?) } else { None });
    let kinds = [case.op.kind()];
    let isa = Isa::active().map_err(|error| error.to_string())?;
    let job = Job {
        views: [Some(&first), second.as_ref()],
        reduced: &case.reduced,
        kinds: &kinds,
        start: 0,
        initial: None,
        marks: None,
        isa,
        threads: Threads::Exactly(threads),
    };
    let (mut calls, mut batch) = (0u32, 1);
    let started = time_of(threads);
    loop {
        // Asking for the time costs as much as a short call.
        for _ in 0..batch {
            let answer = job.values(&[(case.op, 0)], &Rules::default());
            std::hint::black_box(answer.map_err(|error| error.to_string())?);
        }
        calls += batch;
        batch = calls;
        let passed = time_of(threads) - started;
        if passed >= ROUND {
            return Ok(passed.as_secs_f64() / f64::from(calls));
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = std::env::args().nth(1).map_or(Ok(1), |n| n.parse())?;
    let mut buffer = Buffer { dtype: None, piece: Vec::new(), words: Vec::new() };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let answer = match Case::parse(&line) {
            None => format!("error: not a case: {line}"),
            Some(case) => match seconds(&case, &mut buffer, threads) {
                Ok(seconds) => format!("{seconds:e}"),
                Err(error) => format!("error: {error}"),
            },
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
