//! Data that no window takes: limbs of each thread, their edges, and what they
//! make of NaNs and infinities; equal payloads, byte for byte, to those of the
//! element-by-element reference.

use crate::common::Random;
use crate::common::altered::Altered;
use crate::common::data::make;
use crate::common::machine::device_of_this_machine;
use crate::common::views::absorbed;
use std::sync::Arc;
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::Kind;
use warpfold_core::{DType, Element, with_element};
use warpfold_cuda::engine::{Array, Engine, Input, Shape};
use warpfold_cuda::{Buffer, Device, Sim, Stream};
use warpfold_ptx::machine::{Checks, Options};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const SUMS: [Kind; 5] = [Kind::Sum, Kind::AbsSum, Kind::SquareSum, Kind::Moments, Kind::Dot];

/// Checks a reduction of an array that begins `offset` elements behind a multiple
/// of 256 bytes; of products, with the same array in another order, elsewhere.
fn check<T: Element>(engine: &Engine, kind: Kind, items: &[T], offset: usize, note: &str) {
    let place = |items: &[T], offset: usize| {
        let bytes: &[u8] = bytemuck::cast_slice(items);
        let before = (offset * size_of::<T>()) as u64;
        let room = before + bytes.len() as u64;
        let buffer = Buffer::new(engine.device(), room).expect("enough memory");
        buffer.copy_in(Stream::DEFAULT, before, bytes).expect("a copy");
        let address = buffer.address() + before;
        (buffer, address)
    };
    let others: Vec<T> = match kind {
        Kind::Dot => {
            items.iter().cycle().skip(items.len() / 3).take(items.len()).copied().collect()
        }
        _ => Vec::new(),
    };
    let (buffer, address) = place(items, offset);
    let second = (kind == Kind::Dot).then(|| place(&others, offset / 2));
    let array = Array { address, len: items.len() as u64, dtype: T::DTYPE };
    let input = Input { others: second.as_ref().map(|&(_, at)| at), ..Input::from(array) };
    // SAFETY: the arrays were allocated and filled, and nobody writes to them.
    let state = unsafe { engine.reduce(kind, input, Stream::DEFAULT) };
    let what = format!("{kind:?} of {} {} at {offset}, {note}", items.len(), T::DTYPE);
    let payload = state.unwrap_or_else(|error| panic!("{what}: {error}")).payload();
    assert!(payload == absorbed(kind, items, &others, 0).payload(), "{what}");
    for buffer in second.map(|(buffer, _)| buffer).into_iter().chain([buffer]) {
        buffer.free().expect("it was allocated");
    }
}

fn sim() -> Arc<dyn Device> {
    Arc::new(Sim::new(Options { checks: Checks::ALL, ..Options::default() }))
}

/// The interpreter, and the GPU if there is one.
fn devices() -> impl Iterator<Item = Arc<dyn Device>> {
    [sim()].into_iter().chain(device_of_this_machine())
}

fn engine(device: &Arc<dyn Device>, threads: u32, blocks: u32) -> Engine {
    let shape = Shape { threads: Some(threads), blocks: Some(blocks), walk: None };
    Engine::with_shape(Arc::clone(device), shape)
}

/// The largest finite element, and infinity.
fn ends<T: Element>() -> (T, T) {
    let infinity = match T::DTYPE {
        DType::F16 => 0x7c00,
        DType::BF16 => 0x7f80,
        DType::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    };
    (T::from_bits(infinity - 1), T::from_bits(infinity))
}

fn negative<T: Element>(x: T) -> T {
    T::from_bits(x.bits() ^ 1 << (8 * size_of::<T>() - 1))
}

/// NaNs and infinities of every kind and number in a tile of hostile elements: one
/// alone, a lane's tile full of one, all lanes full, and mixtures.
#[test]
fn specials_among_hostile_elements() {
    fn all<T: Element>(engine: &Engine, kind: Kind) {
        let mut random = Random(0x5bec);
        let infinity = ends::<T>().1;
        let nan = T::from_bits(infinity.bits() + 1);
        let quiet = T::from_bits(infinity.bits() | (infinity.bits() - 1));
        let specials = [infinity, negative(infinity), nan, negative(nan), quiet, negative(quiet)];
        let vector = 16 / size_of::<T>();
        let n = 3 * 64 * 4 * vector + 3;
        let hostile: Vec<T> = make("finite bits", n, &mut random);
        for (i, &x) in specials.iter().enumerate() {
            // One; the vectors of one lane; all.
            let mut items = hostile.clone();
            items[n / 2] = x;
            check(engine, kind, &items, i % vector, &format!("one {i}"));
            for (at, item) in items.iter_mut().enumerate() {
                if at / vector % 32 == 7 {
                    *item = x;
                }
            }
            check(engine, kind, &items, i % vector, &format!("a lane of {i}"));
            items.fill(x);
            check(engine, kind, &items, i % vector, &format!("nothing but {i}"));
        }
        for one_in in [2, 3, 9, 200] {
            let mut items = hostile.clone();
            for item in &mut items {
                if random.below(one_in) == 0 {
                    *item = specials[random.below(6) as usize];
                }
            }
            check(engine, kind, &items, 1, &format!("one in {one_in}"));
        }
        let infinities: Vec<T> = (0..n).map(|_| specials[random.below(2) as usize]).collect();
        check(engine, kind, &infinities, 0, "infinities");
    }
    for device in devices() {
        let engine = engine(&device, 64, 1);
        for (kind, dtype) in SUMS.iter().flat_map(|&kind| FLOATS.map(|dtype| (kind, dtype))) {
            with_element!(dtype, T => all::<T>(&engine, kind));
        }
    }
}

/// Both ends of every exponent, with full, lone and random significands, alone
/// and times each other.
#[test]
fn every_exponent() {
    fn all<T: Element>(engine: &Engine, fraction: u32) {
        let mut random = Random(0xe4e7);
        let infinity = ends::<T>().1.bits();
        let full = (1u64 << fraction) - 1;
        let items: Vec<T> = (0..infinity >> fraction)
            .flat_map(|field| {
                [0, 1, full, full, random.next() & full].map(|part| {
                    let x = T::from_bits(field << fraction | part);
                    if random.below(2) == 0 { x } else { negative(x) }
                })
            })
            .collect();
        for kind in SUMS {
            check(engine, kind, &items, 1, "every exponent");
        }
        let mut shuffled = items.clone();
        for i in (1..items.len()).rev() {
            shuffled.swap(i, random.below(i as u64 + 1) as usize);
        }
        for kind in SUMS {
            check(engine, kind, &shuffled, 0, "every exponent, shuffled");
        }
        for kind in [Kind::Dot, Kind::SquareSum, Kind::Moments] {
            for down in 0..40 {
                // A few binades at a time: at the ends of some bin, sooner or later.
                let field = ((infinity >> fraction) - 2).saturating_sub(down * 7) | 1;
                let big = T::from_bits(field << fraction | full);
                let small = T::from_bits((field / 3) << fraction | full);
                let items = [big, small, big, T::from_bits(1)].repeat(70);
                check(engine, kind, &items, 0, &format!("field {field}"));
            }
        }
    }
    for device in devices() {
        let engine = engine(&device, 64, 2);
        all::<f16>(&engine, 10);
        all::<bf16>(&engine, 7);
        all::<f32>(&engine, 23);
        all::<f64>(&engine, 52);
    }
}

/// More elements of one sign at the top of a bin than a limb takes, and tiny ones
/// between them, so that no window does.
#[test]
fn limbs_make_room() {
    fn all<T: Element>(engine: &Engine, kind: Kind, top: u64, sign: bool, n: usize) {
        let x = T::from_bits(top);
        let items: Vec<T> = (0..n)
            .map(|i| {
                if i % 64 == 5 {
                    T::from_bits(1 + i as u64 % 2)
                } else if sign {
                    negative(x)
                } else {
                    x
                }
            })
            .collect();
        check(engine, kind, &items, 0, &format!("{top:#x} without end"));
    }
    let checks = Options { checks: Checks::NONE, ..Options::default() };
    let engine = engine(&(Arc::new(Sim::new(checks)) as Arc<dyn Device>), 32, 1);
    // 2^16 elements a lane, and some.
    let n = 33 << 16;
    all::<bf16>(&engine, Kind::Sum, 0x7f7f, true, n);
    // Squares just below 2^225, where bins of products end; elements of f32
    // take more of them.
    let (narrow, wide) = (0x3fb5 + (112 << 7), 0x3fb5_04f3 + (112 << 23));
    all::<bf16>(&engine, Kind::Dot, narrow, true, n);
    all::<bf16>(&engine, Kind::Moments, 0x7f7f, true, n);
    all::<bf16>(&engine, Kind::SquareSum, 0x7f7f, true, 2 * n);
    all::<f32>(&engine, Kind::SquareSum, wide, true, n);
    all::<f32>(&engine, Kind::Moments, wide, true, 3 * n / 2);
    // Squares just below 2^52 units, of which four lanes share a limb.
    let long = (2027 << 52) | 0xf_ffff_ffff_ffff;
    all::<f64>(&engine, Kind::SquareSum, long, true, 32 * 700);
    all::<f64>(&engine, Kind::Moments, long, true, 32 * 700);
}

/// Without shared memory for limbs, everything goes to the superaccumulator.
#[test]
fn without_limbs() {
    let device: Arc<dyn Device> = Arc::new(Altered::new(Sim::new(Options::default()), |limits| {
        limits.shared_per_block = 1024
    }));
    let engine = engine(&device, 64, 2);
    let mut random = Random(0x11b5);
    for (kind, dtype) in SUMS.iter().flat_map(|&kind| FLOATS.map(|dtype| (kind, dtype))) {
        with_element!(dtype, T => {
            for pattern in ["random bits", "finite bits", "specials"] {
                let items: Vec<T> = make(pattern, 3001, &mut random);
                check(&engine, kind, &items, 1, pattern);
            }
        });
    }
}

/// Arrays that fill a device, in its own shape.
#[test]
fn large_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    let engine = Engine::new(device);
    let mut random = Random(0x1a46e);
    for (kind, dtype) in SUMS.iter().flat_map(|&kind| FLOATS.map(|dtype| (kind, dtype))) {
        with_element!(dtype, T => {
            for pattern in ["random bits", "finite bits", "wide", "drifting"] {
                let items: Vec<T> = make(pattern, (1 << 22) + 1009, &mut random);
                check(&engine, kind, &items, 3, pattern);
            }
        });
    }
}
