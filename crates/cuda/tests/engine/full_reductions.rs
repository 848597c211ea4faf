//! Every kernel, on the interpreter with all checks on and on the GPU if there
//! is one, against the element-by-element reference of the same state: equal
//! payloads, byte for byte.

use crate::common::Random;
use crate::common::altered::Altered;
use crate::common::arrays::{Placed, state_of};
use crate::common::data::{PATTERNS, from_f64, make};
use crate::common::machine::device_of_this_machine;
use crate::thorough::{self, up_to};
use std::sync::Arc;
use warpfold_core::element::{Bool8, bf16, f16};
use warpfold_core::op::{AnyState, Kind};
use warpfold_core::{DType, Element, with_element};
use warpfold_cuda::engine::{Array, Engine, Input, Shape};
use warpfold_cuda::{Buffer, Device, Error, Result, Sim, Stream};
use warpfold_ptx::machine::{Checks, Options, Schedule};

fn reduce(engine: &Engine, kind: Kind, input: impl Into<Input>) -> Result<Vec<u8>> {
    // SAFETY: `Placed` holds the arrays' memory, and nobody writes to it.
    unsafe { engine.reduce(kind, input, Stream::DEFAULT) }.map(|state| state.payload())
}

/// Checks one reduction; of a product, with the same array backwards, which lies
/// at another offset in most cases.
fn check<T: Element>(engine: &Engine, kind: Kind, items: &[T], offset: usize, note: &str) {
    if kind == Kind::Dot {
        let backwards: Vec<T> = items.iter().rev().copied().collect();
        let elsewhere = (offset * 5 + items.len() / 3) % (16 / size_of::<T>());
        return check_dot(engine, [items, &backwards], [offset, elsewhere], note);
    }
    let placed = Placed::new(&**engine.device(), items, offset);
    let expected = state_of(kind, T::DTYPE, 0, bytemuck::cast_slice(items), &[]).payload();
    let (n, dtype) = (items.len(), T::DTYPE);
    match reduce(engine, kind, placed.array) {
        Ok(payload) => assert!(payload == expected, "{kind:?} of {n} {dtype} at {offset}, {note}"),
        Err(error) => panic!("{kind:?} of {n} {dtype} at {offset}, {note}: {error}"),
    }
}

/// Checks one dot product.
fn check_dot<T: Element>(engine: &Engine, arrays: [&[T]; 2], offsets: [usize; 2], note: &str) {
    let device = &**engine.device();
    let [x, y] = [0, 1].map(|i| Placed::new(device, arrays[i], offsets[i]));
    let input = Input { others: Some(y.array.address), ..x.array.into() };
    let [items, others] = arrays.map(|items| bytemuck::cast_slice(items));
    let expected = state_of(Kind::Dot, T::DTYPE, 0, items, others).payload();
    let what = format!("dot of {} {} at {offsets:?}, {note}", arrays[0].len(), T::DTYPE);
    match reduce(engine, Kind::Dot, input) {
        Ok(payload) => assert!(payload == expected, "{what}"),
        Err(error) => panic!("{what}: {error}"),
    }
}

fn kinds(dtype: DType) -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(move |&kind| Engine::supports(kind, dtype))
}

/// Sizes around everything that cuts an array: vectors, warps, tiles of blocks of
/// 32 and 64 threads; and primes.
fn sizes(dtype: DType) -> Vec<usize> {
    let vector = 16 / dtype.size();
    let tile = 4 * 32 * vector;
    let around = [vector, 32 * vector, tile, 2 * tile, 5 * tile];
    let mut sizes = vec![0, 1, 2, 3, 31, 32, 33, 127, 1009, 4099];
    sizes.extend(around.into_iter().flat_map(|n| [n - 1, n, n + 1]));
    sizes
}

const SHAPES: [(u32, u32); 5] = [(32, 1), (32, 3), (64, 2), (128, 5), (96, 2)];

/// Engines of every shape.
fn engines(device: &Arc<dyn Device>) -> Vec<Engine> {
    let shapes = SHAPES.map(|(t, b)| Shape { threads: Some(t), blocks: Some(b), walk: None });
    let all = shapes.into_iter().chain([Shape::default()]);
    all.map(|shape| Engine::with_shape(Arc::clone(device), shape)).collect()
}

/// Every size, pattern, offset and shape with every kernel: one in so many of the
/// sizes with each pattern, by lot, at an offset and in a shape by lot. Kernels of
/// products, of which there are many and which take long, get a third of that.
fn sweep(engines: &[Engine], dtype: DType, seed: u64, one_in: usize) {
    let seed = thorough::seed(seed);
    let mut random = Random(seed | 1);
    let mut lot = Random(!seed | 1);
    let mut below = |n: usize| (lot.next() >> 32) as usize % n;
    for n in sizes(dtype) {
        for pattern in PATTERNS {
            for kind in kinds(dtype) {
                let products = matches!(kind, Kind::SquareSum | Kind::Dot | Kind::Moments);
                if below(one_in * if products { 3 } else { 1 }) != 0 {
                    continue;
                }
                let engine = &engines[below(engines.len())];
                let offset = below(16 / dtype.size());
                with_element!(dtype, T => {
                    let items: Vec<T> = make(pattern, n, &mut random);
                    check(engine, kind, &items, offset, pattern);
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
fn in_lockstep() {
    for dtype in DType::ALL {
        sweep(&engines(&sim(Schedule::Lockstep)), dtype, 0x9e37_79b9, up_to(3, 24));
    }
}

#[test]
fn on_a_turing_device() {
    let sim = Sim::new(Options { checks: Checks::ALL, ..Options::default() });
    let device: Arc<dyn Device> = Arc::new(Altered::new(sim, |limits| limits.capability = (7, 5)));
    for dtype in DType::ALL {
        sweep(&engines(&device), dtype, 0x75, up_to(4, 64));
    }
    blocks_without_number(&device);
}

#[test]
fn in_random_order() {
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        let seed = i as u64;
        sweep(&engines(&sim(Schedule::Random { seed })), dtype, seed + 1, up_to(8, 128));
    }
}

#[test]
fn with_every_lane_for_itself() {
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        let seed = i as u64;
        let device = sim(Schedule::Adversarial { seed });
        sweep(&engines(&device), dtype, seed + 99, up_to(45, 360));
    }
}

#[test]
fn hazards_on_the_interpreter() {
    hazards(&sim(Schedule::Lockstep));
}

/// A sample, for compute-sanitizer, under which launches take a hundred times as
/// long: `tools/pack.sh` says how.
#[test]
fn sanitized_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    for (threads, blocks) in [(64, 3), (512, 2)] {
        let shape = Shape { threads: Some(threads), blocks: Some(blocks), walk: None };
        let engine = [Engine::with_shape(Arc::clone(&device), shape)];
        for dtype in DType::ALL {
            sweep(&engine, dtype, u64::from(threads), 60);
        }
    }
}

#[test]
fn on_the_device_of_this_machine() {
    let Some(device) = device_of_this_machine() else { return };
    let all = engines(&device);
    for dtype in DType::ALL {
        sweep(&all, dtype, 0x9e37_79b9, 1);
        large(&all[SHAPES.len()], dtype);
    }
    hazards(&device);
    from_many_threads(&device);
    more_than_32_bits_count(&all[SHAPES.len()]);
}

/// Arrays that fill a device.
fn large(engine: &Engine, dtype: DType) {
    let mut random = Random(0xb16);
    for pattern in PATTERNS {
        for (n, offset) in [(1 << 20, 0), ((3 << 20) + 1009, 1)] {
            with_element!(dtype, T => {
                let items: Vec<T> = make(pattern, n, &mut random);
                for kind in kinds(dtype) {
                    check(engine, kind, &items, offset, pattern);
                }
            });
        }
    }
}

/// What each certificate must notice, and what must not overflow.
fn hazards(device: &Arc<dyn Device>) {
    let one_warp = Shape { threads: Some(32), blocks: Some(1), walk: None };
    let engine = Engine::with_shape(Arc::clone(device), one_warp);
    there_and_back(&engine);
    edges_of_the_range_certificate(&engine);
    half_an_ulp_again_and_again(&engine);
    windows_end_with_the_format(&engine);
    totals_are_flushed_before_they_overflow(&engine);
    bins_carry(&engine);
    bins_meet(&engine);
    integers_beyond_64_bits(&engine);
    minima_among_nans(&engine);
    products_that_underflow(&engine);
    products_that_cancel(&engine);
    products_without_a_value(&engine);
    bounds_of_certified_squares(&engine);
    windows_of_products_end_with_the_format(&engine);
    products_fill_the_lower_level(&engine);
    totals_of_products_are_flushed(&engine);
    products_of_extreme_integers(&engine);
    second_arrays_anywhere(&engine);
    blocks_without_number(device);
    drawn_tiles(device);
}

/// Tiles that are no block's share, with the extremes in them: twice, as far apart
/// as in other warps and other tiles, and once more behind them.
fn drawn_tiles(device: &Arc<dyn Device>) {
    for (which, (threads, blocks)) in [(32, 3), (64, 2)].into_iter().enumerate() {
        let shape = Shape { threads: Some(threads), blocks: Some(blocks), walk: None };
        let engine = Engine::with_shape(Arc::clone(device), shape);
        let note = format!("drawn by {blocks} blocks of {threads} threads");
        // Each type by one of them, or by both.
        for dtype in DType::ALL.into_iter().skip(which % up_to(1, 2)).step_by(up_to(1, 2)) {
            with_element!(dtype, T => {
                let tile = 4 * 16 / size_of::<T>() * threads as usize;
                // Nearly the fewest tiles that some are drawn of, an eighth: an odd number.
                let drawn = 4 * blocks as usize + 1;
                let shares = 7 * drawn;
                let mut items = vec![from_f64::<T>(0.5); (shares + drawn) * tile + 77];
                for (x, places) in [(0.0, [3 * tile - 1, 3 * tile + 5]), (1.0, [tile + 9, 7 * tile])] {
                    for at in places {
                        items[shares * tile + at] = from_f64(x);
                    }
                    *items.last_mut().unwrap() = from_f64(x);
                }
                for kind in [Kind::ArgExtrema, Kind::Sum, Kind::Counts, Kind::Bits, Kind::LogSumExp] {
                    // Blocks do not draw exact sums of floats.
                    let draws = kind == Kind::ArgExtrema || size_of::<T>() == 4 && !dtype.is_float();
                    // Often enough that every block would miss its draws if the counter did not come back.
                    let times = if draws && Engine::supports(kind, dtype) { blocks + 2 } else { 0 };
                    for offset in 0..times as usize {
                        check(&engine, kind, &items, offset % 2, &note);
                    }
                }
            });
        }
    }
}

/// As many blocks as carry their number in what they add, more, and many more than
/// have elements; of sums as large as limbs get, of both signs.
fn blocks_without_number(device: &Arc<dyn Device>) {
    let n = 2003;
    for blocks in [33, 1023, 1024] {
        let shape = Shape { threads: Some(32), blocks: Some(blocks), walk: None };
        let engine = Engine::with_shape(Arc::clone(device), shape);
        let note = format!("{blocks} blocks");
        for x in [f32::MAX, -f32::MAX] {
            check(&engine, Kind::Sum, &vec![x; n], 1, &note);
        }
        check(&engine, Kind::Extrema, &vec![-1f32; n], 1, &note);
        check(&engine, Kind::Sum, &vec![f16::from_f64(-65504.0); n], 3, &note);
        for x in [i64::MIN, i64::MAX] {
            check(&engine, Kind::Sum, &vec![x; n], 1, &note);
        }
    }
}

/// A value that takes the sum out of the anchor's binade and one that brings it
/// back, in the same lane of the same tile: only the collected bits show it.
fn there_and_back(engine: &Engine) {
    for huge in [1e30, 2f64.powi(60), 2f64.powi(1023)] {
        let mut items = vec![1.0f64; 256];
        items[3 * 2] = huge;
        items[3 * 2 + 64] = -huge;
        items[200] = 3e-200;
        check(engine, Kind::Sum, &items, 0, "there and back");
    }
}

/// Spreads around the widest certified one, with full significands on both
/// sides, in the same lane.
fn edges_of_the_range_certificate(engine: &Engine) {
    let mut random = Random(0xed9e);
    for spread in 20u32..30 {
        for big in [0x3fff_ffffu32, 0x3fff_fffd, 0x3f80_0001] {
            let (small, big) = (f32::from_bits(0x3fff_ffff - (spread << 23)), f32::from_bits(big));
            let items: Vec<f32> = (0..512)
                .map(|_| if random.next().is_multiple_of(5) { small } else { big })
                .collect();
            check(engine, Kind::Sum, &items, 0, &format!("{spread} binades"));
        }
    }
    for spread in 34u32..46 {
        let (small, big) =
            (bf16::from_bits(0x7fff - 0x4001 - (spread << 7) as u16), bf16::from_bits(0x3fff));
        let items: Vec<bf16> =
            (0..1024).map(|_| if random.next().is_multiple_of(5) { small } else { big }).collect();
        check(engine, Kind::Sum, &items, 0, &format!("bf16, {spread} binades"));
    }
}

/// Every element leaves the same residue for the next level, as large as
/// residues get.
fn half_an_ulp_again_and_again(engine: &Engine) {
    for top in [1.0f64, -1.0] {
        for low in -110..-30 {
            let items = [top + top * 2f64.powi(low.max(-52)), top * 2f64.powi(low)];
            check(engine, Kind::Sum, &items.repeat(300), 0, &format!("2^{low}"));
        }
    }
}

/// Windows whose levels would lie below the format's last bit, or whose anchors
/// would overflow.
fn windows_end_with_the_format(engine: &Engine) {
    for exponent in (-1074..1024).step_by(31).chain([-1074, -1022, 1016, 1017, 1018, 1022, 1023]) {
        let x = if exponent < -1022 {
            f64::from_bits(1 << (exponent + 1074))
        } else {
            f64::from_bits(((exponent + 1023) as u64) << 52 | 0xf_ffff_ffff_ffff)
        };
        check(engine, Kind::Sum, &vec![x; 300], 0, &format!("2^{exponent}"));
        check(engine, Kind::AbsSum, &vec![-x; 300], 1, &format!("2^{exponent}"));
    }
    for bits in [1u32, 0x7f_ffff, 0x80_0000, 0x7f00_0000, 0x7f7f_ffff] {
        let x = f32::from_bits(bits);
        check(engine, Kind::Sum, &vec![x; 600], 0, "f32 at its ends");
        check(engine, Kind::Sum, &vec![-x; 600], 3, "f32 at its ends");
    }
    for bits in [1u16, 0x3ff, 0x400, 0x7bff] {
        check(engine, Kind::Sum, &vec![f16::from_bits(bits); 1200], 0, "f16 at its ends");
        check(engine, Kind::Sum, &vec![f16::from_bits(bits | 0x8000); 1200], 7, "f16 at its ends");
    }
}

/// More tiles of one warp than a lane's totals take at the top of their window.
fn totals_are_flushed_before_they_overflow(engine: &Engine) {
    // Each moves a lane's total by almost 2^50: four flushes, and 2^63 without.
    let tiles = (1 << 13) + 1;
    let items = vec![1024.0 - 1024.0 * f64::EPSILON / 2.0; tiles * 256];
    for sign in [1.0, -1.0] {
        let items: Vec<f64> = items.iter().map(|x| x * sign).collect();
        check(engine, Kind::Sum, &items, 0, "tiles without end");
    }
}

/// More elements of one sign in one bin than it has room for, and others far
/// below them so that no window takes them: the exponents are the highest of bins.
fn bins_carry(engine: &Engine) {
    for exponent in [-880, 944] {
        let high = f64::from_bits(((exponent + 1023) as u64) << 52 | 0xf_ffff_ffff_ffff);
        for sign in [1.0, -1.0] {
            let items: Vec<f64> = (0..90_077)
                .map(|i| if i % 5 == 0 { f64::from_bits(i as u64) } else { sign * high })
                .collect();
            check(engine, Kind::Sum, &items, 1, &format!("bins at 2^{exponent}"));
        }
    }
    let items: Vec<f32> =
        (0..40_000).map(|i| if i % 5 == 0 { f32::from_bits(i) } else { -f32::MAX }).collect();
    check(engine, Kind::Sum, &items, 1, "bins of f32");
}

/// Both ends of every bin, every exponent, full and lone significands.
fn bins_meet(engine: &Engine) {
    let mut random = Random(0xb125);
    let items: Vec<f64> = (0..2047u64)
        .flat_map(|field| {
            let random = random.next();
            [0, 1, 0xf_ffff_ffff_ffff, random >> 12]
                .map(|f| (field ^ random) << 63 | field << 52 | f)
        })
        .map(f64::from_bits)
        .collect();
    check(engine, Kind::Sum, &items, 0, "every exponent");
    check(engine, Kind::AbsSum, &items, 1, "every exponent");
    let items: Vec<f32> = (0..255u32)
        .flat_map(|field| {
            let random = random.next() as u32;
            [0, 1, 0x7f_ffff, random >> 9].map(|f| (field ^ random) << 31 | field << 23 | f)
        })
        .map(f32::from_bits)
        .collect();
    check(engine, Kind::Sum, &items, 0, "every exponent of f32");
    let items: Vec<bf16> = (0..=0xffff).map(bf16::from_bits).filter(|x| x.is_finite()).collect();
    check(engine, Kind::Sum, &items, 0, "every bf16");
    let items: Vec<f16> = (0..=0xffff).map(f16::from_bits).collect();
    check(engine, Kind::Sum, &items, 0, "every f16");
}

/// Carries between the words of a sum, of both signs.
fn integers_beyond_64_bits(engine: &Engine) {
    for n in [2, 3, 511, 4096] {
        for x in [i64::MIN, i64::MAX, -1, 1 << 32, -(1 << 32)] {
            check(engine, Kind::Sum, &vec![x; n], 0, "i64");
            check(engine, Kind::AbsSum, &vec![x; n], 1, "i64");
            check(engine, Kind::Sum, &vec![x.cast_unsigned(); n], 0, "u64");
            check(engine, Kind::Sum, &vec![x as i32; n], 1, "i32");
        }
    }
}

/// One number among NaNs of both signs, wherever it is, and one zero among those of
/// the other sign.
fn minima_among_nans(engine: &Engine) {
    fn all<T: Element>(engine: &Engine) {
        let number = from_f64::<T>;
        for at in [0, 1, 5, 300, 511] {
            for x in [f64::NEG_INFINITY, -0.0, 0.0, 60000.0] {
                for nan in [f64::NAN, -f64::NAN] {
                    let mut items = vec![number(nan); 512];
                    items[at] = number(x);
                    check(engine, Kind::Extrema, &items, 0, "one number");
                    check(engine, Kind::Counts, &items, 1, "one number");
                }
            }
            for zero in [0.0, -0.0] {
                let mut items = vec![number(zero); 512];
                items[at] = number(-zero);
                check(engine, Kind::Extrema, &items, 0, "two zeros");
                check(engine, Kind::ArgExtrema, &items, 1, "two zeros");
            }
        }
    }
    all::<f16>(engine);
    all::<bf16>(engine);
    all::<f32>(engine);
    all::<f64>(engine);
}

/// Products that become zero or subnormal, alone and among others: what rounding
/// lost is below everything that is left.
fn products_that_underflow(engine: &Engine) {
    let mut random = Random(0x0f10);
    for exponent in (-545..-470).chain([-600, -1000]) {
        let tiny = f64::from_bits(((exponent + 1023) as u64) << 52 | random.next() >> 12);
        for others in [0.0, 1.0, tiny] {
            let mut items = vec![others; 300];
            items[2 * 3] = tiny;
            items[299] = -tiny;
            check(engine, Kind::SquareSum, &items, 0, &format!("2^{exponent} and {others}"));
            check(engine, Kind::Moments, &items, 0, &format!("2^{exponent} and {others}"));
        }
    }
    let (tiny, one) = (2f64.powi(-600), 1.0f64);
    let mut x = vec![0.0; 300];
    let mut y = vec![one; 300];
    x[..3].copy_from_slice(&[tiny, f64::from_bits(1), -f64::MIN_POSITIVE]);
    y[..3].copy_from_slice(&[tiny, f64::from_bits(1), 2f64.powi(-53)]);
    for rest in [0.0, 1.0] {
        x[100..].fill(rest);
        check_dot(engine, [&x, &y], [0, 0], "2^-600 * 2^-600");
        check_dot(engine, [&x, &y], [1, 0], "2^-600 * 2^-600");
    }
}

/// Terms that leave the window together and come back, so that only what they
/// covered is left.
fn products_that_cancel(engine: &Engine) {
    for huge in [1e200, 1e100, 2f64.powi(30), 2f64.powi(511)] {
        // The same lane, in both vectors of a tile.
        let (mut x, mut y) = (vec![0.0f64; 128], vec![0.0f64; 128]);
        for (at, pair) in [(6, [huge, huge]), (70, [huge, -huge]), (7, [1.0, 1.0])] {
            (x[at], y[at]) = (pair[0], pair[1]);
        }
        check_dot(engine, [&x, &y], [0, 0], &format!("{huge:e}^2 - {huge:e}^2 + 1"));
    }
    let mut random = Random(0xca9c);
    let x: Vec<f32> =
        (0..512).map(|_| f32::from_bits(0x7f00_0000 | random.next() as u32 >> 9)).collect();
    let y: Vec<f32> = (0..512).map(|i| if i % 256 < 128 { 3e38 } else { -3e38 }).collect();
    check_dot(engine, [&x, &y], [0, 0], "beyond f32");
}

/// Infinities and NaNs, and zero times infinity, which is one.
fn products_without_a_value(engine: &Engine) {
    let values = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN];
    for x in values {
        for y in values {
            let (mut items, mut others) = (vec![0.5; 300], vec![2.0; 300]);
            (items[77], others[77]) = (x, y);
            (items[299], others[299]) = (y, x);
            check_dot(engine, [&items, &others], [0, 0], &format!("{x} * {y}"));
            check(engine, Kind::SquareSum, &items, 0, &format!("{x} and {y}"));
            check(engine, Kind::Moments, &items, 0, &format!("{x} and {y}"));
        }
    }
}

/// Squares as small as their certificate allows and just below, with full
/// significands, beside large ones, of both signs.
fn bounds_of_certified_squares(engine: &Engine) {
    let mut random = Random(0xb0cd);
    let mut mixed = |small: u64, big: u64, sign: u64, n: usize| -> Vec<u64> {
        let mut lot = || random.next() >> 20;
        (0..n)
            .map(|_| {
                let size = if lot().is_multiple_of(5) { small } else { big };
                size | if lot() & 1 == 0 { sign } else { 0 }
            })
            .collect()
    };
    for spread in 12u64..36 {
        for big in [0x40ff_ffff, 0x3fff_ffff, 0x3f80_0001] {
            let small = 0x3fff_ffff - (spread << 23);
            let items: Vec<f32> =
                mixed(small, big, 1 << 31, 600).iter().map(|&b| f32::from_bits(b as u32)).collect();
            for kind in [Kind::SquareSum, Kind::Moments] {
                check(engine, kind, &items, 0, &format!("{spread} binades"));
            }
        }
    }
    for spread in 26u64..50 {
        let small = 0x3fff - (spread << 7);
        let items: Vec<bf16> = mixed(small, 0x3fff, 1 << 15, 1200)
            .iter()
            .map(|&b| bf16::from_bits(b as u16))
            .collect();
        for kind in [Kind::SquareSum, Kind::Moments] {
            check(engine, kind, &items, 0, &format!("bf16, {spread} binades"));
        }
    }
    let items: Vec<f16> =
        mixed(1, 0x7bff, 1 << 15, 1200).iter().map(|&b| f16::from_bits(b as u16)).collect();
    for kind in [Kind::SquareSum, Kind::Moments, Kind::Dot] {
        check(engine, kind, &items, 0, "the ends of f16");
    }
}

/// Windows whose levels would lie where errors of products underflow, below the
/// format's last bit, or whose anchors would overflow.
fn windows_of_products_end_with_the_format(engine: &Engine) {
    for exponent in (-1074..1024).step_by(31).chain([-1022, 484, 485, 511, 512, 1023]) {
        let x = if exponent < -1022 {
            f64::from_bits(1 << (exponent + 1074))
        } else {
            f64::from_bits(((exponent + 1023) as u64) << 52 | 0xf_ffff_ffff_ffff)
        };
        let note = format!("2^{exponent}");
        check(engine, Kind::SquareSum, &vec![x; 300], 0, &note);
        check(engine, Kind::Moments, &vec![-x; 300], 1, &note);
        check_dot(engine, [&vec![x; 200], &vec![1.0 / 3.0; 200]], [0, 0], &note);
    }
    for bits in [1u32, 0x7f_ffff, 0x80_0000, 0x1fff_ffff, 0x5fff_ffff, 0x7f7f_ffff] {
        let items = vec![f32::from_bits(bits); 600];
        for kind in [Kind::SquareSum, Kind::Moments, Kind::Dot] {
            check(engine, kind, &items, 0, &format!("{bits:#x}"));
        }
    }
    for bits in [1u16, 0x7f, 0x80, 0x1fff, 0x5fff, 0x7f7f] {
        let items = vec![bf16::from_bits(bits); 1200];
        for kind in [Kind::SquareSum, Kind::Moments, Kind::Dot] {
            check(engine, kind, &items, 0, &format!("bf16 {bits:#x}"));
        }
    }
}

/// Products just below half a unit of the upper level, wherever that is: all of
/// each goes to the lower one, which has to hold a tile of them.
fn products_fill_the_lower_level(engine: &Engine) {
    fn all<T: Element>(engine: &Engine, root: T, binade: u64, exponents: core::ops::Range<u64>) {
        for down in exponents {
            let items = vec![T::from_bits(root.bits() - down * binade); 1200];
            for kind in [Kind::SquareSum, Kind::Moments, Kind::Dot] {
                check(engine, kind, &items, 0, &format!("2^-{down}"));
            }
        }
    }
    // Square roots of 2, rounded down.
    all(engine, f16::from_bits(0x3da8), 1 << 10, 0..4);
    all(engine, bf16::from_bits(0x3fb5), 1 << 7, 14..24);
    all(engine, f32::from_bits(0x3fb5_04f3), 1 << 23, 14..24);
    all(engine, f64::from_bits(0x3ff6_a09e_667f_3bcc), 1 << 52, 14..24);
}

/// More tiles of one warp than a lane's totals take at the top of their window.
fn totals_of_products_are_flushed(engine: &Engine) {
    // Just below 2^10, 16 or 8 of them a tile, in units of 2^-37.
    let x = f32::from_bits(32f32.to_bits() - 1);
    check(engine, Kind::Moments, &vec![x; 4099 * 512], 0, "tiles without end");
    let n = 8195 * 256;
    check_dot(engine, [&vec![x; n], &vec![-x; n]], [0, 0], "tiles without end");
}

/// The largest products of both signs, and carries between the words of their
/// sums.
fn products_of_extreme_integers(engine: &Engine) {
    fn all<T: Element>(engine: &Engine, values: &[u64]) {
        for &x in values {
            for &y in values {
                let (x, y): (T, T) = (T::from_bits(x), T::from_bits(y));
                for n in [1, 3, 511, 4096] {
                    let mut items = vec![x; n];
                    check_dot(engine, [&items, &vec![y; n]], [0, 0], "the extremes");
                    items[n / 2..].fill(y);
                    check(engine, Kind::SquareSum, &items, 0, "the extremes");
                    check(engine, Kind::Moments, &items, 0, "the extremes");
                }
            }
        }
    }
    let ends = |bits: u32| [u64::MAX, 1 << (bits - 1), (1 << (bits - 1)) - 1, 1];
    all::<i8>(engine, &ends(8));
    all::<u8>(engine, &ends(8));
    all::<i16>(engine, &ends(16));
    all::<u16>(engine, &ends(16));
    all::<i32>(engine, &ends(32));
    all::<u32>(engine, &ends(32));
    all::<i64>(engine, &ends(64));
    all::<u64>(engine, &ends(64));
    all::<Bool8>(engine, &[0, 1, 2, 0x80, 0xff]);
}

/// Both arrays at every offset, alike and not: with fewer elements than are
/// peeled, with one vector and a few, with whole tiles.
fn second_arrays_anywhere(engine: &Engine) {
    let mut random = Random(0x0ff5);
    for dtype in DType::ALL {
        let vector = 16 / dtype.size();
        let sizes = [1, vector, 2 * vector + 1, 3 * vector, 5 * vector - 1, 64 * vector + 7];
        for (i, j) in (0..vector).flat_map(|i| (0..vector).map(move |j| (i, j))) {
            let n = sizes[(i + 3 * j) % sizes.len()];
            with_element!(dtype, T => {
                let [x, y] = [(); 2].map(|()| make::<T>("signed", n, &mut random));
                check_dot(engine, [&x, &y], [i, j], "anywhere");
            });
        }
    }
}

/// What most data are like goes through the first window, and is read once: the
/// superaccumulator gets what is flushed at the end and what is peeled. NaNs and
/// infinities among them are counted beside the window, from a second look at the tiles.
#[test]
fn common_data_stay_in_the_window() {
    let checks = Options { checks: Checks::NONE, counters: true, ..Options::default() };
    let sim = Arc::new(Sim::new(checks));
    let device: Arc<dyn Device> = Arc::<Sim>::clone(&sim);
    let one_warp = Shape { threads: Some(32), blocks: Some(1), walk: None };
    let engine = Engine::with_shape(device, one_warp);
    let mut random = Random(0xfa57);
    let floats = [Kind::Sum, Kind::AbsSum, Kind::SquareSum, Kind::Dot, Kind::Moments];
    let patterns = ["uniform", "signed", "a hundredth NaN", "half NaN", "a hundredth infinite"];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for (kind, pattern) in floats.iter().flat_map(|&k| patterns.map(|p| (k, p))) {
            let n = 16 * 2048 / dtype.size();
            with_element!(dtype, T => {
                let items: Vec<T> = make(pattern, n, &mut random);
                check(&engine, kind, &items, 0, pattern);
            });
            let reports = sim.take_reports();
            let counted = reports[0].outcome.counters.as_ref().unwrap().total();
            let bytes = (n * dtype.size() * if kind == Kind::Dot { 2 } else { 1 }) as u64;
            let what = format!("{kind:?} of {pattern} {dtype}: {counted:?}");
            // Three counters of each sum and tile. Patience grows with the tiles that are
            // refused: fewer and fewer are looked at twice.
            let is_finite = matches!(pattern, "uniform" | "signed");
            let (atomics, times) = if is_finite { (64, 1) } else { (64 + 2 * 3 * 32, 3) };
            assert!(counted.shared_atomics.operations < atomics, "{what}");
            assert!(counted.global_loads.bytes_asked < times * bytes + bytes / 8, "{what}");
        }
    }
}

#[test]
fn from_many_threads_on_the_interpreter() {
    from_many_threads(&sim(Schedule::Lockstep));
}

/// Eight threads on one engine: half of them share a stream, half have their own.
fn from_many_threads(device: &Arc<dyn Device>) {
    let shape = Shape { threads: Some(64), blocks: Some(4), walk: None };
    let engine = Engine::with_shape(Arc::clone(device), shape);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let engine = &engine;
            scope.spawn(move || {
                let stream =
                    if thread < 4 { Stream::DEFAULT } else { engine.device().stream().unwrap() };
                let mut random = Random(thread + 1);
                for round in 0..10usize {
                    let n = 3000 + 7 * round;
                    let items: Vec<f64> = make(PATTERNS[round % PATTERNS.len()], n, &mut random);
                    let bytes = bytemuck::cast_slice(&items);
                    for kind in kinds(DType::F64).filter(|&kind| kind != Kind::Dot) {
                        let got = engine.reduce_host(kind, DType::F64, bytes, stream).unwrap();
                        let expected = state_of(kind, DType::F64, 0, bytes, &[]);
                        assert!(got.payload() == expected.payload(), "{kind:?} in {thread}");
                    }
                }
            });
        }
    });
}

/// The state of `n` equal elements, or of their products with themselves, by
/// merging states with themselves.
fn repeated<T: Element>(kind: Kind, x: T, n: u64) -> AnyState {
    let (item, pair) = (bytemuck::bytes_of(&x), kind == Kind::Dot);
    let mut power = state_of(kind, T::DTYPE, 0, item, if pair { item } else { &[] });
    let mut state = AnyState::identity(kind, T::DTYPE).unwrap();
    for bit in 0..64 - n.leading_zeros() {
        if n >> bit & 1 == 1 {
            state.merge(&power).unwrap();
        }
        power.merge(&power.clone()).unwrap();
    }
    state
}

/// Indices beyond 32 bits, where memory has room for as many elements.
fn more_than_32_bits_count(engine: &Engine) {
    let n = (1u64 << 32) + 12_345;
    for (dtype, byte) in
        [(DType::I8, 0xff), (DType::Bool, 0x02), (DType::F16, 0x3c), (DType::F32, 0xbf)]
    {
        let bytes = (n + 1) * dtype.size() as u64;
        let buffer = match Buffer::new(engine.device(), bytes) {
            Ok(buffer) => buffer,
            Err(error) if error.is_out_of_memory() => {
                println!("SKIPPED: 2^32 elements of {dtype}: {error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        buffer.fill(Stream::DEFAULT, 0..bytes, byte).unwrap();
        // Behind the first element, so that there is a head.
        let array = Array { address: buffer.address() + dtype.size() as u64, len: n, dtype };
        // Equal elements at other places are no other state only if places do not count.
        for kind in kinds(dtype).filter(|kind| !kind.is_positional()) {
            let expected = with_element!(dtype, T => {
                repeated(kind, <T as Element>::from_bits(u64::from_ne_bytes([byte; 8])), n)
            });
            let others = (kind == Kind::Dot).then_some(array.address);
            let input = Input { others, ..array.into() };
            let payload = reduce(engine, kind, input).unwrap();
            assert!(payload == expected.payload(), "{kind:?} of {n} {dtype}");
        }
        buffer.free().unwrap();
    }
}

#[test]
fn what_cannot_be_reduced_is_an_error_and_the_engine_goes_on() {
    let device = sim(Schedule::Lockstep);
    let engine = Engine::new(Arc::clone(&device));
    let items = [1.0f64, 2.0, 3.0, 4.0];
    let bytes: &[u8] = bytemuck::cast_slice(&items);
    let buffer = Buffer::new(&device, 32).unwrap();
    buffer.copy_in(Stream::DEFAULT, 0, bytes).unwrap();
    let base = buffer.address();
    let array = |address, len, dtype| Array { address, len, dtype };
    let refused = |kind, array| reduce(&engine, kind, array).unwrap_err();

    let misaligned = refused(Kind::Sum, array(base + 4, 3, DType::F64));
    assert!(misaligned.to_string().contains("not aligned"), "{misaligned}");
    let long = refused(Kind::Sum, array(base, 1 << 42, DType::I8));
    assert!(long.to_string().contains("2^41"), "{long}");
    let beyond = refused(Kind::Sum, array(!0xff, 1 << 40, DType::F64));
    assert!(beyond.to_string().contains("address space"), "{beyond}");
    let (kind, dtype) = (Kind::Bits, DType::F64);
    assert_eq!(refused(kind, array(base, 4, dtype)), Error::NoKernel { kind, dtype });
    let (kind, input) = (Kind::Dot, array(base, 4, DType::F64).into());
    assert_eq!(reduce(&engine, kind, input), Err(Error::Arrays { kind, given: 1 }));
    for (kind, others) in [(Kind::Sum, base), (Kind::Dot, base + 4)] {
        let two = reduce(&engine, kind, Input { others: Some(others), ..input }).unwrap_err();
        let why = if kind == Kind::Dot { "not aligned" } else { "needs one array and got 2" };
        assert!(two.to_string().contains(why), "{two}");
    }
    let ragged = engine.reduce_host(Kind::Sum, DType::F64, &bytes[..31], Stream::DEFAULT);
    assert!(ragged.is_err_and(|e| e.to_string().contains("within an element")));
    let outside = refused(Kind::Sum, array(base + 8, 4, DType::F64));
    assert!(matches!(outside, Error::Array { .. }), "{outside}");

    let fresh = Engine::new(Arc::clone(&device));
    let expected = state_of(Kind::Sum, DType::F64, 0, bytes, &[]).payload();
    assert_eq!(reduce(&fresh, Kind::Sum, array(base, 4, DType::F64)), Ok(expected));
}

#[test]
fn the_state_may_stay_on_the_device() {
    let device = sim(Schedule::Lockstep);
    let engine = Engine::new(Arc::clone(&device));
    let items: Vec<f32> = make("signed", 5000, &mut Random(5));
    let placed = Placed::new(&*device, &items, 3);
    let len = Engine::payload_len(Kind::Sum, DType::F32).unwrap();
    let payload = Buffer::new(&device, len as u64).unwrap();
    let to = payload.address();
    let into = |to| {
        // SAFETY: `placed` holds the array, and the payload was allocated.
        unsafe { engine.reduce_into(Kind::Sum, placed.array, to, Stream::DEFAULT) }
    };
    assert!(into(to + 4).is_err());
    into(to).unwrap();
    device.wait(Stream::DEFAULT).unwrap();
    let mut bytes = vec![0; len];
    payload.copy_out(Stream::DEFAULT, 0, &mut bytes).unwrap();
    let state = AnyState::from_payload(Kind::Sum, DType::F32, &bytes).unwrap();
    let expected = state_of(Kind::Sum, DType::F32, 0, bytemuck::cast_slice(&items), &[]);
    assert_eq!(state.payload(), expected.payload());
}
