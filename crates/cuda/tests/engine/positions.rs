//! Kernels of states with positions, where extremes are, and of products, which have none. Runs
//! begin and end anywhere; each is compared with the element-by-element reference
//! of the same state, payload by payload, byte for byte.

use crate::common::Random;
use crate::common::altered::Altered;
use crate::common::arrays::{Placed, state_of};
use crate::common::data::from_f64;
use crate::common::machine::device_of_this_machine;
use crate::thorough::{self, up_to};
use std::sync::Arc;
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::{AnyState, Extrema, IntProd, Kind, Op, Rules, State, Summary};
use warpfold_core::{DType, Element, with_element};
use warpfold_cuda::engine::{Array, Engine, Input, Shape};
use warpfold_cuda::{Buffer, Device, Error, Result, Sim, Stream};
use warpfold_ptx::machine::{Checks, Options, Schedule};

/// What elements look like.
const PATTERNS: [&str; 11] = [
    "signed",
    "near one",
    "random bits",
    "subnormal",
    "few values",
    "all the same",
    "zeros of both signs",
    "some specials",
    "one special",
    "only NaNs",
    "large",
];

fn make<T: Element>(pattern: &str, n: usize, random: &mut Random) -> Vec<T> {
    let special = |random: &mut Random| {
        from_f64([f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY][random.place(4)])
    };
    let constant = random.next();
    let place = random.place(n.max(1));
    (0..n)
        .map(|i| match pattern {
            "signed" => from_f64(random.unit() * 4.0 - 2.0),
            "near one" => from_f64(0.75 + 0.5 * random.unit()),
            "random bits" => T::from_bits(random.next()),
            "subnormal" => T::from_bits(random.next() & 0x3f | 1),
            "few values" => from_f64(random.place(3) as f64 - 1.0),
            "all the same" => T::from_bits(constant),
            "zeros of both signs" => from_f64(if random.place(2) == 0 { 0.0 } else { -0.0 }),
            "some specials" if random.place(500) == 0 => special(random),
            "one special" if i == place => special(random),
            "only NaNs" => from_f64(if random.place(2) == 0 { f64::NAN } else { -f64::NAN }),
            "large" => from_f64((random.unit() - 0.25) * 2f64.powi(random.place(500) as i32)),
            _ => from_f64(random.unit() * 60.0 - 30.0),
        })
        .collect()
}

fn reduce(engine: &Engine, kind: Kind, input: Input) -> Result<AnyState> {
    // SAFETY: `Placed` holds the arrays' memory, and nobody writes to it.
    unsafe { engine.reduce(kind, input, Stream::DEFAULT) }
}

/// Elements, and how far behind aligned addresses they lie.
struct Data<T> {
    items: Vec<T>,
    offset: usize,
}

impl<T: Element> Data<T> {
    fn of(items: Vec<T>, offset: usize) -> Data<T> {
        Data { items, offset }
    }

    /// Checks the reduction of a run that has these elements.
    fn check(&self, engine: &Engine, kind: Kind, start: u64, note: &str) {
        let placed = Placed::new(&**engine.device(), &self.items, self.offset);
        let bytes = bytemuck::cast_slice(&self.items);
        let expected = state_of(kind, T::DTYPE, start, bytes, &[]).payload();
        let what = || {
            let (n, dtype, offset) = (self.items.len(), T::DTYPE, self.offset);
            format!("{kind:?} of {n} {dtype} at {offset} from {start}, {note}")
        };
        match reduce(engine, kind, Input { start, ..placed.array.into() }) {
            Ok(state) => assert!(state.payload() == expected, "{}", what()),
            Err(error) => panic!("{}: {error}", what()),
        }
    }
}

fn kinds(dtype: DType) -> impl Iterator<Item = Kind> {
    let here = |kind: &Kind| kind.is_positional() || *kind == Kind::Prod;
    Kind::ALL.into_iter().filter(here).filter(move |&kind| Engine::supports(kind, dtype))
}

/// Sizes around everything that cuts a run; primes.
const SIZES: [usize; 16] =
    [0, 1, 63, 65, 997, 4095, 4096, 4097, 8191, 8192, 8193, 12289, 16384, 20011, 32768, 37003];

/// Where runs begin: near, and far away.
const STARTS: [u64; 9] =
    [0, 1, 4095, 4096, 4097, 12288 - 100, 61_440, (1 << 32) - 4096, (1 << 60) + 77];

const SHAPES: [(u32, u32); 5] = [(32, 1), (64, 3), (128, 1), (96, 2), (32, 7)];

/// Engines of every shape.
fn engines(device: &Arc<dyn Device>) -> Vec<Engine> {
    let shapes = SHAPES.map(|(t, b)| Shape { threads: Some(t), blocks: Some(b), walk: None });
    let all = shapes.into_iter().chain([Shape::default()]);
    all.map(|shape| Engine::with_shape(Arc::clone(device), shape)).collect()
}

/// Each kind with each size; starts, patterns, offsets and shapes take turns.
fn sweep(engines: &[Engine], dtype: DType, seed: u64, keep: impl Fn(usize) -> bool) {
    let mut random = Random(thorough::seed(seed) | 1);
    let vector = 16 / dtype.size();
    let mut turn = 0;
    for kind in kinds(dtype) {
        for n in SIZES {
            for _ in 0..4 {
                turn += 1;
                if !keep(turn) {
                    continue;
                }
                let engine = &engines[random.place(engines.len())];
                let start = STARTS[random.place(STARTS.len())];
                let pattern = PATTERNS[random.place(PATTERNS.len())];
                // Half of the runs are aligned.
                let skew = if random.place(2) == 0 { 0 } else { random.place(vector) };
                with_element!(dtype, T => {
                    let items: Vec<T> = make(pattern, n, &mut random);
                    let note = format!("{pattern}, turn {turn}");
                    Data::of(items, skew).check(engine, kind, start, &note);
                });
            }
        }
    }
}

fn sim(schedule: Schedule) -> Arc<dyn Device> {
    let sim = Sim::new(Options { schedule, checks: Checks::ALL, ..Options::default() });
    Arc::new(Altered::new(sim, |_| ()))
}

#[test]
fn anywhere() {
    let engines = engines(&sim(Schedule::Lockstep));
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        // Every type has a size of every fifth, another one than its neighbours.
        sweep(&engines, dtype, 0x5eed, |turn| match thorough::thorough() {
            true => turn % 4 != 0,
            false => (turn + i) % 21 == 0,
        });
    }
}

#[test]
fn in_random_order() {
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        let device = sim(Schedule::Random { seed: i as u64 });
        sweep(&engines(&device), dtype, i as u64 + 7, |turn| turn % up_to(11, 99) == i % 11);
    }
}

#[test]
fn with_every_lane_for_itself() {
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        let device = sim(Schedule::Adversarial { seed: i as u64 });
        sweep(&engines(&device), dtype, i as u64 + 99, |turn| turn % up_to(29, 145) == i);
    }
}

#[test]
fn hazards_on_the_interpreter() {
    hazards(&sim(Schedule::Lockstep));
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn on_the_device_of_this_machine() {
    let Some(device) = device_of_this_machine() else { return };
    let engines = engines(&device);
    for dtype in DType::ALL {
        sweep(&engines, dtype, 0x5eed, |turn| turn % 4 != 0);
        large(&engines, dtype);
    }
    hazards(&device);
    positions_beyond_32_bits(&engines[SHAPES.len()]);
}

fn hazards(device: &Arc<dyn Device>) {
    let engines = engines(device);
    first_of_equals(&engines);
    extremes_at_every_end(&engines);
    nothing_but_nans(&engines[0]);
    products_around_2_to_128(&engines);
    counts_below_a_rising_largest(&engines);
    exponents_from_zero_or_not::<f32>(&engines);
    exponents_from_zero_or_not::<f16>(&engines);
    exponents_from_zero_or_not::<bf16>(&engines);
    exponents_from_zero_or_not::<f64>(&engines);
    odd_factors::<f16>(&engines);
    odd_factors::<bf16>(&engines);
    odd_factors::<f32>(&engines);
    odd_factors::<f64>(&engines);
    significands_of_every_entry(&engines);
}

/// Every shape for a case, or one, by its number.
fn some(engines: &[Engine], number: usize) -> &[Engine] {
    match thorough::thorough() {
        true => engines,
        false => core::slice::from_ref(&engines[number % engines.len()]),
    }
}

/// Arrays that fill a device.
fn large(engines: &[Engine], dtype: DType) {
    let mut random = Random(0xb16);
    let default = &engines[SHAPES.len()];
    for kind in kinds(dtype) {
        for pattern in ["signed", "some specials", "few values"] {
            for (n, start, offset) in [(1 << 20, 0, 0), ((3 << 20) + 1009, 777_777, 1)] {
                with_element!(dtype, T => {
                    let items: Vec<T> = make(pattern, n, &mut random);
                    Data::of(items, offset).check(default, kind, start, pattern);
                });
            }
        }
    }
}

/// Of equal extremes the first counts, whichever thread, warp or block has it.
fn first_of_equals(engines: &[Engine]) {
    let mut random = Random(1);
    for round in 0..up_to(60, 18) {
        let n = 1 + random.place(9000);
        let mut items = vec![3i16; n];
        let mut bytes = vec![0u8; n];
        let mut floats = vec![1.5f64; n];
        for _ in 0..random.place(12) {
            let (low, high) = (random.place(n), random.place(n));
            (items[low], items[high]) = (i16::MIN, i16::MAX);
            (bytes[low], bytes[high]) = (1, 255);
            (floats[low], floats[high]) = (-0.0, f64::INFINITY);
        }
        let engine = &engines[round % engines.len()];
        Data::of(items, round % 8).check(engine, Kind::ArgExtrema, round as u64, "equals");
        Data::of(bytes, round % 16).check(engine, Kind::ArgExtrema, 0, "equals");
        Data::of(floats, round % 2).check(engine, Kind::ArgExtrema, 1 << 40, "equals");
    }
}

/// The extremes of the type among themselves, and one extreme at each end of
/// what a thread has.
fn extremes_at_every_end(engines: &[Engine]) {
    let engine = &engines[0];
    for n in [1, 16, 17, 2048, 2049, 4500] {
        for (x, offset) in [(i32::MIN, 0), (i32::MAX, 0), (i32::MIN, 3), (i32::MAX, 3)] {
            Data::of(vec![x; n], offset).check(engine, Kind::ArgExtrema, 5, "the type's own");
            let bytes = vec![x as u8; n];
            Data::of(bytes, offset).check(engine, Kind::ArgExtrema, 5, "the type's own");
        }
    }
    for at in (0..4500).step_by(up_to(61, 367)).chain([0, 1, 2, 3, 4, 4095, 4096, 4497, 4498, 4499])
    {
        let mut items = vec![0f32; 4500];
        items[at] = if at % 2 == 0 { -1.0 } else { 1.0 };
        let engine = &engines[at % engines.len()];
        Data::of(items, at % 4).check(engine, Kind::ArgExtrema, 9, &format!("at {at}"));
        let mut items = vec![7u16; 4500];
        items[at] = 65_535 * (at % 2) as u16;
        Data::of(items, at % 8).check(engine, Kind::ArgExtrema, 9, &format!("at {at}"));
    }
}

/// NaNs are extremes of no array, wherever the numbers are.
fn nothing_but_nans(engine: &Engine) {
    for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7fff_ffff), f32::from_bits(!0)] {
        for number in [None, Some(0), Some(1), Some(700), Some(1999)] {
            let mut items = vec![nan; 2000];
            if let Some(at) = number {
                items[at] = f32::NEG_INFINITY;
            }
            Data::of(items, 1).check(engine, Kind::ArgExtrema, 3, "NaNs");
        }
        let mut items = vec![1.0f32; 5000];
        (items[4999], items[4100]) = (nan, nan);
        Data::of(items, 2).check(engine, Kind::ArgExtrema, 3, "the first NaN");
    }
}

/// Products of integers that just fit 64 or 128 bits and that just do not, with
/// their factors anywhere among ones; zeros and signs.
fn products_around_2_to_128(engines: &[Engine]) {
    fn scattered<T: Element>(one: T, factors: &[T], random: &mut Random) -> Vec<T> {
        let mut items = vec![one; 3000 + random.place(3000)];
        for &factor in factors {
            let at = random.place(items.len());
            // Two factors at one place would be one.
            let free = (at..items.len()).chain(0..at).find(|&i| items[i].bits() == one.bits());
            items[free.unwrap()] = factor;
        }
        items
    }
    let mut random = Random(6);
    for (i, count) in [63, 64, 65, 126, 127, 128, 129, 200].into_iter().enumerate() {
        for engine in some(engines, i) {
            for twos in [[2i8, -2], [2, 2]] {
                let factors: Vec<i8> = (0..count).map(|i| twos[i % 2]).collect();
                let items = scattered(1i8, &factors, &mut random);
                Data::of(items, count % 16).check(engine, Kind::Prod, 0, &format!("2^{count}"));
            }
            let factors: Vec<i16> = (0..count / 8).map(|_| -256).collect();
            let items = scattered(-1i16, &factors, &mut random);
            Data::of(items, count % 8).check(engine, Kind::Prod, 0, &format!("2^{count}"));
        }
    }
    // 2^128 - 1 = (2^64 - 1)(2^32 + 1)(2^32 - 1) / (2^32 - 1), and its neighbours.
    let cases: [&[u64]; 8] = [
        &[u64::MAX, 0xffff_ffff, 0x1_0000_0001],
        &[u64::MAX, u64::MAX],
        &[u64::MAX, u64::MAX, 2],
        &[1 << 63, 1 << 63, 2],
        &[1 << 63, 1 << 63, 4],
        &[1 << 63, 1 << 63, 3],
        &[1 << 32; 4],
        &[0, 1 << 63, 1 << 63, 1 << 63],
    ];
    for (i, factors) in cases.into_iter().enumerate() {
        for engine in some(engines, i) {
            let items = scattered(1u64, factors, &mut random);
            Data::of(items, i % 2).check(engine, Kind::Prod, 0, &format!("case {i}"));
            let signed: Vec<i64> = factors.iter().map(|x| x.cast_signed()).collect();
            let items = scattered(-1i64, &signed, &mut random);
            Data::of(items, i % 2).check(engine, Kind::Prod, 0, &format!("case {i}"));
            let halves: Vec<u32> =
                factors.iter().flat_map(|&x| [x as u32, 1 << (x % 32)]).collect();
            let items = scattered(1u32, &halves, &mut random);
            Data::of(items, i % 4).check(engine, Kind::Prod, 0, &format!("case {i}"));
        }
    }
    for lowest in [vec![i8::MIN; 5], vec![i8::MIN; 16], vec![i8::MIN, 0, -1]] {
        let items = scattered(-1i8, &lowest, &mut random);
        Data::of(items, 3).check(&engines[1], Kind::Prod, 0, "the least value");
    }
}

/// Elements around those that are too far below the largest to count, while the
/// largest rises by little, by as much as is told apart, and by more.
fn counts_below_a_rising_largest(engines: &[Engine]) {
    let mut random = Random(7);
    for (i, rise) in [0, 1, 3, 126, 127, 128, 129, 5000].into_iter().enumerate() {
        for (j, engine) in some(engines, i).iter().enumerate() {
            let n = 5000 + random.place(3000);
            let mut near = |i: usize| (i as i64 / 700) * rise + random.place(140) as i64;
            let wide: Vec<i64> = (0..n).map(|i| i64::MIN + near(i)).collect();
            let word: Vec<u32> = (0..n).map(|i| near(i) as u32).collect();
            let short: Vec<i16> = (0..n).map(|i| (near(i) - 20_000) as i16).collect();
            let byte: Vec<i8> = (0..n).map(|i| near(i) as i8).collect();
            let note = format!("rising by {rise}");
            Data::of(wide, j % 2).check(engine, Kind::LogSumExp, 0, &note);
            Data::of(word, (i + j) % 4).check(engine, Kind::LogSumExp, 0, &note);
            Data::of(short, (i + j) % 8).check(engine, Kind::LogSumExp, 0, &note);
            Data::of(byte, (i + j) % 16).check(engine, Kind::LogSumExp, 0, &note);
        }
    }
    for at in [0, 1, 7, 2000, 4099, 4100] {
        for (low, high) in [(i32::MIN, i32::MAX), (i32::MAX - 127, i32::MAX), (-128, 0)] {
            let mut items = vec![low; 4101];
            items[at] = high;
            for (offset, engine) in some(engines, at).iter().enumerate() {
                let offset = (offset + at) % 4;
                Data::of(items.clone(), offset).check(engine, Kind::LogSumExp, 0, "one high");
            }
        }
    }
}

/// Leaves of exponentials that count from 0 and leaves that cannot, behind one
/// another in a warp and side by side in it.
fn exponents_from_zero_or_not<T: Element>(engines: &[Engine]) {
    const LEAF: usize = 4096;
    let mut random = Random(11);
    let rounds = up_to(2 * engines.len(), 3);
    for (round, engine) in engines.iter().cycle().take(rounds).enumerate() {
        let leaves = 9 + random.place(16);
        let mut items: Vec<T> = Vec::new();
        for _ in 0..leaves {
            let (pattern, at) = (random.place(14), random.place(LEAF));
            items.extend((0..LEAF).map(|i| {
                let (unit, here) = (random.unit(), i == at);
                from_f64::<T>(match pattern {
                    0 => 250.0 + 12.0 * unit,
                    1 => -262.0 + 12.0 * unit,
                    2 => f64::NEG_INFINITY,
                    3 => 256.0,
                    4 => -256.0,
                    5 if here => 256.125,
                    6 if here => f64::NAN,
                    7 if here => f64::INFINITY,
                    8 if here => 6e4,
                    8 => -6e4 * unit,
                    9 => -1200.0 * unit,
                    10 => -590.0 - 20.0 * unit,
                    11 => 1000.0 + unit,
                    _ => unit * 8.0 - 4.0,
                })
            }));
        }
        let (start, offset) = (STARTS[random.place(STARTS.len())], random.place(4));
        let n = items.len() - random.place(100);
        items.truncate(n);
        Data::of(items, offset).check(engine, Kind::LogSumExp, start, &format!("round {round}"));
    }
}

/// Zeros, subnormals, infinities and NaNs of either sign, alone and among others, at any
/// place; and numbers beside them, at the ends of the format.
fn odd_factors<T: Element>(engines: &[Engine]) {
    let infinity: T = from_f64(f64::INFINITY);
    let sign = from_f64::<T>(-0.0).bits();
    let least_normal = from_f64::<T>(1.0).bits() & infinity.bits();
    let least_normal = least_normal & least_normal.wrapping_neg();
    let odd = [
        0,
        1,
        3,
        least_normal - 1,
        least_normal,
        least_normal + 1,
        infinity.bits() - 1,
        infinity.bits(),
        infinity.bits() + 1,
    ];
    let mut random = Random(2);
    for (round, &bits) in odd.iter().enumerate() {
        for engine in some(engines, round) {
            let n = 1 + random.place(3000);
            let mut items: Vec<T> = make("near one", n, &mut random);
            for _ in 0..=random.place(3) {
                let negative = if random.place(2) == 0 { sign } else { 0 };
                items[random.place(n)] = T::from_bits(bits | negative);
            }
            Data::of(items, round % 4).check(engine, Kind::Prod, 0, &format!("odd {bits:x}"));
        }
    }
    let all: Vec<T> =
        odd.iter().flat_map(|&bits| [bits, bits | sign]).map(|bits| T::from_bits(bits)).collect();
    Data::of(all, 0).check(&engines[0], Kind::Prod, 0, "all odd ones");
}

/// Significands at both ends of every entry of the tables, and beside them.
fn significands_of_every_entry(engines: &[Engine]) {
    let mut random = Random(3);
    for (round, engine) in some(engines, 1).iter().enumerate() {
        let places = (0..2048u64).flat_map(|i| {
            let at = i << 41;
            [at.saturating_sub(1), at, at + 1 + (i << 30)]
        });
        let long: Vec<f64> = places
            .map(|fraction| f64::from_bits(fraction | (1 + random.below(2046)) << 52))
            .collect();
        Data::of(long, round % 2).check(engine, Kind::Prod, 0, "entries");
        let places = (0..1024u32).flat_map(|i| {
            let at = i << 13;
            [at.saturating_sub(1), at, at + 1, at + 777]
        });
        let short: Vec<f32> = places
            .map(|fraction| f32::from_bits(fraction | (1 + random.below(254) as u32) << 23))
            .collect();
        Data::of(short, round % 4).check(engine, Kind::Prod, 0, "entries");
        let halves: Vec<f16> = (0..0x7c00).map(f16::from_bits).collect();
        Data::of(halves, round % 8).check(engine, Kind::Prod, 0, "all numbers");
    }
}

/// Parts of an array, reduced one by one with their positions and merged in any
/// order, are the whole.
#[test]
fn parts_merge_to_the_whole() {
    let engines = engines(&sim(Schedule::Lockstep));
    let mut random = Random(4);
    let n = up_to(30_011, 12_011);
    for dtype in DType::ALL {
        for kind in kinds(dtype) {
            with_element!(dtype, T => {
                let items: Vec<T> = make("some specials", n, &mut random);
                let mut cuts: Vec<usize> = (0..6).map(|_| random.place(n)).collect();
                cuts.extend([0, 8192, n]);
                cuts.sort_unstable();
                let mut states: Vec<AnyState> = cuts
                    .windows(2)
                    .map(|cut| {
                        let engine = &engines[random.place(engines.len())];
                        let placed = Placed::new(&**engine.device(), &items[cut[0]..cut[1]], 0);
                        let start = cut[0] as u64;
                        reduce(engine, kind, Input { start, ..placed.array.into() }).unwrap()
                    })
                    .collect();
                let mut merged = AnyState::identity(kind, dtype).unwrap();
                while !states.is_empty() {
                    merged.merge(&states.swap_remove(random.place(states.len()))).unwrap();
                }
                let bytes = bytemuck::cast_slice(&items);
                let expected = state_of(kind, dtype, 0, bytes, &[]);
                assert!(merged.payload() == expected.payload(), "{kind:?} of {dtype}");
            });
        }
    }
}

/// What stays on the device is the state that `state_of_output` makes of it.
#[test]
fn the_state_may_stay_on_the_device() {
    let device = sim(Schedule::Lockstep);
    let engine = Engine::new(Arc::clone(&device));
    let mut random = Random(5);
    let arrays = [(0, 0), (9000, 0), (100, 4000), (8192, 4096), (12_345, 678)];
    for (number, dtype) in DType::ALL.into_iter().enumerate() {
        for kind in kinds(dtype) {
            let step = up_to(1, 2);
            for &(n, start) in arrays.iter().skip(number % step).step_by(step) {
                with_element!(dtype, T => {
                    let items: Vec<T> = make("signed", n, &mut random);
                    let placed = Placed::new(&*device, &items, 1);
                    let input = Input { start, ..placed.array.into() };
                    let len = Engine::output_len(kind, input).unwrap();
                    let room = Buffer::new(&device, len as u64).unwrap();
                    let to = room.address();
                    // SAFETY: `placed` holds the array; the rest was allocated.
                    unsafe { engine.reduce_into(kind, input, to, Stream::DEFAULT).unwrap() };
                    device.wait(Stream::DEFAULT).unwrap();
                    let mut left = vec![0; len];
                    room.copy_out(Stream::DEFAULT, 0, &mut left).unwrap();
                    room.free().unwrap();
                    let state = Engine::state_of_output(kind, input, &left).unwrap();
                    let bytes = bytemuck::cast_slice(&items);
                    let expected = state_of(kind, dtype, start, bytes, &[]);
                    let product = state.downcast_ref::<IntProd<T>>();
                    if product.is_some_and(IntProd::lacks_digits) {
                        // What 128 bits do not hold: integers are answered all the same.
                        for rules in [Rules::new(), Rules::new().wrap(true)] {
                            let expected = expected.finish(Op::Prod, &rules);
                            assert_eq!(state.finish(Op::Prod, &rules), expected, "{n} {dtype}");
                        }
                    } else {
                        assert!(state.payload() == expected.payload(), "{kind:?} of {n} {dtype}");
                    }
                    // Bytes that are none are refused.
                    let short = Engine::state_of_output(kind, input, &left[..len.min(4)]);
                    assert!(len == 0 || short.is_err(), "{kind:?} of {n} {dtype}");
                });
            }
        }
    }
}

#[test]
fn what_has_no_positions_or_no_pair_is_an_error() {
    let device = sim(Schedule::Lockstep);
    let engine = Engine::new(Arc::clone(&device));
    let placed = Placed::new(&*device, &[1.0f64; 10], 0);
    let whole: Input = placed.array.into();
    for kind in kinds(DType::F64).filter(|kind| kind.is_positional()) {
        let last = Input { start: u64::MAX - 10, ..whole };
        assert!(reduce(&engine, kind, last).is_ok(), "{kind:?}");
        let beyond = reduce(&engine, kind, Input { start: u64::MAX - 9, ..last }).unwrap_err();
        assert!(beyond.to_string().contains("beyond 2^64"), "{beyond}");
    }
    let kind = Kind::Dot;
    assert_eq!(reduce(&engine, kind, whole).unwrap_err(), Error::Arrays { kind, given: 1 });
    let kind = Kind::Prod;
    let pair = Input { others: Some(placed.array.address), ..whole };
    assert_eq!(reduce(&engine, kind, pair).unwrap_err(), Error::Arrays { kind, given: 2 });
}

/// Extremes behind the first 2^32 elements, where memory has room for as many.
fn positions_beyond_32_bits(engine: &Engine) {
    let n = (1u64 << 32) + 12_345;
    let buffer = match Buffer::new(engine.device(), n) {
        Ok(buffer) => buffer,
        Err(error) if error.is_out_of_memory() => {
            println!("SKIPPED: 2^32 bytes: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    buffer.fill(Stream::DEFAULT, 0..n, 7).unwrap();
    let (least, greatest) = ((1u64 << 32) + 5, n - 3);
    buffer.copy_in(Stream::DEFAULT, least, &[0x80]).unwrap();
    buffer.copy_in(Stream::DEFAULT, greatest, &[0x7f]).unwrap();
    let mut expected = Extrema::<i8>::identity(Kind::ArgExtrema);
    expected.absorb_summary(Summary {
        start: 3,
        count: n,
        nans: 0,
        first_nan: None,
        min: Some((i8::MIN, 3 + least)),
        max: Some((i8::MAX, 3 + greatest)),
    });
    let array = Array { address: buffer.address(), len: n, dtype: DType::I8 };
    let state = reduce(engine, Kind::ArgExtrema, Input { start: 3, ..array.into() }).unwrap();
    assert_eq!(state.payload(), AnyState::from(expected).payload());
    buffer.free().unwrap();
}
