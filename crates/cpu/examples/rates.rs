//! How fast each kernel is on one thread, as a share of the rate of reading: by thread time, the
//! least of several rounds, in turn with reading the same bytes.
//!
//! `rates [MIB] [FILTER]...`: cases whose line contains each filter. `WARPFOLD_CPU` forces an
//! instruction set.

mod common;

use bytemuck::Pod;
use common::thread_time;
use fastrand::Rng;
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::{Kind, RawRun};
use warpfold_core::{DType, Element, with_element};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Threads, Worker, read};

/// Rounds of each case.
const ROUNDS: usize = 12;

const TYPES: [DType; 13] = [
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::Bool,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

const INTEGERS: [Kind; 6] =
    [Kind::Sum, Kind::Extrema, Kind::ArgExtrema, Kind::Counts, Kind::SquareSum, Kind::Bits];
const FLOATS: [Kind; 9] = [
    Kind::Sum,
    Kind::Extrema,
    Kind::ArgExtrema,
    Kind::Counts,
    Kind::SquareSum,
    Kind::Moments,
    Kind::LogSumExp,
    Kind::Prod,
    Kind::Dot,
];
const PATTERNS: [&str; 10] = [
    "normal",
    "tens",
    "uniform",
    "constant",
    "zeros",
    "subnormal",
    "finite",
    "wide",
    "sparse",
    "specials",
];

fn timed(run: impl FnOnce()) -> f64 {
    let start = thread_time();
    run();
    (thread_time() - start).as_secs_f64()
}

fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

fn from_f64<T: Element>(x: f64) -> T {
    T::from_bits(match T::DTYPE {
        DType::F64 => x.to_bits(),
        DType::F32 => u64::from((x as f32).to_bits()),
        DType::F16 => u64::from(f16::from_f64(x).to_bits()),
        DType::BF16 => u64::from(bf16::from_f64(x).to_bits()),
        DType::Bool => u64::from(x > 0.0),
        _ => (x * 20.0) as i64 as u64,
    })
}

fn element<T: Element>(pattern: &str, random: &mut Rng) -> T {
    match pattern {
        "normal" => from_f64(normal(random)),
        "tens" => from_f64(20.0 * normal(random)),
        "uniform" => from_f64(random.f64()),
        "constant" => from_f64(1.2345),
        "zeros" => T::from_bits(0),
        "subnormal" => T::from_bits(random.u64(..) & 0x7f),
        "finite" => loop {
            let x = T::from_bits(random.u64(..));
            if x.without_sign() <= T::key_range().1 || !T::DTYPE.is_float() {
                break x;
            }
        },
        "wide" => from_f64(normal(random) * 2f64.powi(random.i32(-300..300))),
        "sparse" if random.u32(..100) > 0 => T::from_bits(0),
        "sparse" => from_f64(normal(random) * 2f64.powi(random.i32(-300..300))),
        "specials" => T::from_bits(random.u64(..)),
        other => panic!("no pattern {other}"),
    }
}

/// Draws a part of the elements and repeats it at odd distances.
fn data<T: Element + Pod>(pattern: &str, n: usize) -> Vec<T> {
    let mut random = Rng::with_seed(7);
    let some: Vec<T> = (0..n.min(1_000_003)).map(|_| element(pattern, &mut random)).collect();
    some.iter().copied().cycle().take(n).collect()
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let mib: usize = match arguments.peek().and_then(|word| word.parse().ok()) {
        Some(mib) => {
            arguments.next();
            mib
        }
        None => 64,
    };
    let filters: Vec<String> = arguments.collect();
    let isa = Isa::active().expect("WARPFOLD_CPU names an instruction set of this machine");
    println!("{isa}, {mib} MiB, one thread, the least of {ROUNDS} rounds");
    for dtype in TYPES {
        let patterns = if dtype.is_float() { &PATTERNS[..] } else { &["normal", "finite"] };
        let kinds = if dtype.is_float() { &FLOATS[..] } else { &INTEGERS[..] };
        for pattern in patterns {
            let label = |kind: &Kind| format!("{dtype} {kind:?} of {pattern}");
            let wanted = |kind: &&Kind| filters.iter().all(|word| label(kind).contains(word));
            let kinds: Vec<&Kind> = kinds.iter().filter(wanted).collect();
            if kinds.is_empty() {
                continue;
            }
            with_element!(dtype, T => {
                let items: Vec<T> = data(pattern, (mib << 20) / size_of::<T>());
                measure(dtype, bytemuck::cast_slice(&items), &kinds, label, isa);
            });
        }
    }
}

fn measure(dtype: DType, bytes: &[u8], kinds: &[&Kind], label: impl Fn(&Kind) -> String, isa: Isa) {
    let words: &[u64] = bytemuck::try_cast_slice(bytes).unwrap_or(&[]);
    for &kind in kinds {
        // A dot product reads two arrays: the halves of this one.
        let half = bytes.len() / 16 * 8;
        let (items, others) = match kind.takes_pairs() {
            true => (&bytes[..half], &bytes[half..2 * half]),
            false => (bytes, &[][..]),
        };
        let (mut reading, mut reducing) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            reading = reading.min(timed(|| {
                std::hint::black_box(read(words, isa, Threads::Exactly(1)));
            }));
            reducing = reducing.min(timed(|| {
                let mut worker = Worker::new(*kind, dtype, isa).expect("a kind and a type");
                worker.absorb(RawRun { start: 0, items, others }).expect("a sound run");
                std::hint::black_box(worker.into_state());
            }));
        }
        let rate = |seconds: f64| bytes.len() as f64 / seconds / 1e9;
        println!(
            "{:32} {:6.2} GB/s, reading {:6.2}: {:.2}",
            label(kind),
            rate(reducing),
            rate(reading),
            reading / reducing
        );
    }
}
