//! Numbers finished on the device, on the interpreter with all checks on and on
//! the GPU if there is one, against what core makes of the states of the same
//! elements: equal bits.

mod common;

use common::Random;
use common::data::PATTERNS;
use common::views::{Layout, Placed, Sample, reference};
use std::sync::Arc;
use warpfold_core::op::{Accuracy, AnyState, Op, Rules, Value};
use warpfold_core::{DType, Scalar};
use warpfold_cuda::engine::{Engine, Shape};
use warpfold_cuda::{Device, Driver, Sim, Stream};
use warpfold_ptx::machine::{Checks, Options, Schedule};

/// The operations that devices finish.
const OPS: [Op; 10] = [
    Op::Sum,
    Op::Mean,
    Op::Norm1,
    Op::Min,
    Op::Max,
    Op::Count,
    Op::CountNonzero,
    Op::CountNan,
    Op::Any,
    Op::All,
];

fn sim(schedule: Schedule) -> Arc<dyn Device> {
    Arc::new(Sim::new(Options { schedule, checks: Checks::ALL, ..Options::default() }))
}

/// What core answers; `None` if some output has no answer.
fn finished(op: Op, states: &[AnyState]) -> Option<Vec<Scalar>> {
    let finish = |s: &AnyState| s.finish(op, &Rules::default()).ok().map(Value::first);
    states.iter().map(finish).collect()
}

fn check(engine: &Engine, op: Op, sample: &Sample, reduced: &[bool], note: &str) {
    let device = &**engine.device();
    let kind = op.kind(Accuracy::Exact, sample.dtype);
    let states = reference([Some(sample), None], reduced, kind, 0);
    let expected = finished(op, &states);
    let placed = Placed::new(device, sample);
    // SAFETY: the array was placed here, and nobody writes to it.
    let got = unsafe { engine.numbers_of_view(op, &placed.view, reduced, Stream::DEFAULT) };
    let note = || format!("{op} of {} {:?} over {reduced:?}, {note}", sample.dtype, sample.layout);
    let got = match got {
        Ok(got) => got,
        Err(error) => panic!("{error}: {}", note()),
    };
    let Some(expected) = expected.filter(|e| !e.is_empty() && !sample.layout.shape.contains(&0))
    else {
        assert!(got.is_none(), "{}", note());
        return;
    };
    let got = got.unwrap_or_else(|| panic!("no numbers: {}", note()));
    assert_eq!(got.dtype(), op.answer_type(sample.dtype), "{}", note());
    assert_eq!(got.len(), expected.len(), "{}", note());
    for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert!(got == *expected, "output {i}: {got:?}, not {expected:?}, {}", note());
    }
}

const LENS: [usize; 16] = [0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 64, 129, 256, 513];

fn shape(random: &mut Random, most: usize) -> Vec<usize> {
    let ndim = 1 + random.below(4) as usize;
    let mut shape: Vec<usize> = (0..ndim)
        .map(|_| {
            // Zeros are rare: they leave nothing to do.
            let from = u64::from(random.below(12) != 0);
            LENS[(from + random.below(LENS.len() as u64 - from)) as usize]
        })
        .collect();
    while shape.iter().product::<usize>() > most {
        let longest = (0..ndim).max_by_key(|&i| shape[i]).unwrap();
        shape[longest] = shape[longest].div_ceil(2);
    }
    shape
}

/// Random arrays, each over every set of its axes.
fn sweep(engines: &[Engine], seed: u64, rounds: usize) {
    let mut random = Random(seed);
    for round in 0..rounds {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let shape = shape(&mut random, 5000);
        let layout = if random.below(2) == 0 {
            Layout::contiguous(&shape, dtype.size())
        } else {
            Layout::random(&shape, dtype.size(), &mut random)
        };
        let pattern = PATTERNS[random.below(PATTERNS.len() as u64) as usize];
        let sample = Sample::new(dtype, layout, pattern, &mut random);
        for set in 0..1u32 << shape.len() {
            let reduced: Vec<bool> = (0..shape.len()).map(|i| set >> i & 1 == 1).collect();
            let engine = &engines[random.below(engines.len() as u64) as usize];
            let op = OPS[random.below(OPS.len() as u64) as usize];
            check(engine, op, &sample, &reduced, &format!("{pattern}, round {round}"));
        }
    }
}

const SHAPES: [Option<(u32, u32)>; 3] = [None, Some((32, 1)), Some((64, 3))];

/// Engines of several shapes.
fn engines(device: &Arc<dyn Device>) -> Vec<Engine> {
    let shape = |s: Option<(u32, u32)>| Shape { threads: s.map(|s| s.0), blocks: s.map(|s| s.1) };
    SHAPES.map(|s| Engine::with_shape(Arc::clone(device), shape(s))).into_iter().collect()
}

#[test]
fn any_axes_of_any_layout() {
    sweep(&engines(&sim(Schedule::Lockstep)), 5, 78);
}

#[test]
fn any_axes_in_random_order() {
    for seed in 0..2 {
        sweep(&engines(&sim(Schedule::Random { seed })), 11 + seed, 13);
    }
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn on_the_device_of_this_machine() {
    let device: Arc<dyn Device> = match Driver::open(0) {
        Ok(device) => Arc::new(device),
        Err(error) if std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() => {
            println!("SKIPPED: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    sweep(&engines(&device), 5, 1300);
    rounding(&device);
}

/// The payload of a sum: limbs, and counters after them.
fn payload(limbs: &[i64], counters: [i64; 4]) -> Vec<u8> {
    limbs.iter().chain(&counters).flat_map(|w| w.to_le_bytes()).collect()
}

/// Limbs that round hard: around every place, halfway and one beside it, of
/// both signs, with carries that are still to move.
fn hard_limbs(count: usize, random: &mut Random) -> Vec<i64> {
    let mut limbs = vec![0i64; count];
    let mut add = |bit: i64, negative: bool| {
        if bit >= 0 {
            // The highest limb has more bits than the others.
            let limb = (bit as usize / 32).min(count - 1);
            let unit = 1i64 << (bit - 32 * limb as i64);
            limbs[limb] += if negative { -unit } else { unit };
        }
    };
    let top = random.below(32 * count as u64 + 29) as i64;
    let negative = random.below(2) == 0;
    add(top, negative);
    match random.below(6) {
        // A tie at some precision, and a bit somewhere below.
        0..=3 => {
            let precision = [8, 11, 24, 53][random.below(4) as usize];
            add(top - precision, negative ^ (random.below(4) == 0));
            if random.below(2) == 0 {
                add(top - precision + 1, negative);
            }
            if random.below(2) == 0 {
                let below = random.below(1 + top as u64) as i64;
                add(top - precision - 1 - below, random.below(2) == 0);
            }
        }
        // All ones, so that rounding carries far.
        4 => (0..top).for_each(|bit| add(bit, negative)),
        _ => (0..top).for_each(|bit| {
            if random.below(2) == 0 {
                add(bit, negative);
            }
        }),
    }
    // The same number with carries that are still to move.
    for i in 1..count {
        let carry = random.below(1 << 20) as i64 - (1 << 19);
        if random.below(3) == 0 {
            limbs[i] -= carry;
            limbs[i - 1] += carry << 32;
        }
    }
    limbs
}

#[test]
fn totals_round_as_core_rounds_them() {
    rounding(&sim(Schedule::Lockstep));
}

fn rounding(device: &Arc<dyn Device>) {
    let engine = Engine::new(Arc::clone(device));
    let mut random = Random(0x40d);
    for dtype in DType::ALL {
        let words = AnyState::identity(Op::Sum.kind(Accuracy::Exact, dtype), dtype).unwrap();
        let count = words.payload().len() / 8 - 4;
        let mut states = Vec::new();
        while states.len() < 3000 {
            let limbs = hard_limbs(count, &mut random);
            // A count that the total could be of, and such that divides badly.
            let n = 1 + (random.next() >> random.below(63)) as i64 / 2;
            let specials = dtype.is_float() && random.below(50) == 0;
            let mut special = || i64::from(specials && random.below(2) == 0);
            let counters = [n + 3, special(), special(), special()];
            let bytes = payload(&limbs, counters);
            let kind = Op::Sum.kind(Accuracy::Exact, dtype);
            if let Ok(state) = AnyState::from_payload(kind, dtype, &bytes) {
                states.push((bytes, state));
            }
        }
        for op in [Op::Sum, Op::Mean] {
            // Totals that do not fit would hide the others.
            let fits =
                |(_, state): &&(Vec<u8>, AnyState)| state.finish(op, &Rules::default()).is_ok();
            let kept: Vec<_> = states.iter().filter(fits).collect();
            let bytes: Vec<u8> = kept.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
            let out = op.answer_type(dtype);
            let from = device.allocate(bytes.len() as u64).unwrap();
            let to = device.allocate((kept.len() * out.size()) as u64).unwrap();
            device.copy_in(Stream::DEFAULT, from, &bytes).unwrap();
            // SAFETY: the payloads are there, and there is room for the numbers.
            let made =
                unsafe { engine.finish_into(op, dtype, from, kept.len(), to, Stream::DEFAULT) };
            assert_eq!(made, Ok(true), "{op} of {dtype}");
            let mut numbers = warpfold_core::op::Numbers::zeros(out, kept.len());
            device.copy_out(Stream::DEFAULT, to, numbers.bytes_mut()).unwrap();
            for (got, (bytes, state)) in numbers.iter().zip(&kept) {
                let expected = state.finish(op, &Rules::default()).unwrap().first();
                assert!(got == expected, "{op} of {dtype}: {got:?}, not {expected:?}: {bytes:?}");
            }
            device.free(from).unwrap();
            device.free(to).unwrap();
        }
    }
}
