//! Groups whose keys lie in a device's memory: the answers of their rows' states, for keys of
//! every order and frequency, by few blocks and many.

use crate::common::Random;
use crate::common::arrays::state_of;
use crate::common::machine::device_of_this_machine;
use crate::thorough::up_to;
use std::sync::Arc;
use warpfold_core::op::{Op, Rules};
use warpfold_core::{DType, Scalar, element};
use warpfold_cuda::engine::{Array, Engine, Groups, Shape};
use warpfold_cuda::{Buffer, Device, Error, Sim, Stream};

/// How values are drawn.
#[derive(Clone, Copy, Debug)]
enum Values {
    /// Of a few binades.
    Near,
    /// Of all exponents, and zeros of both signs.
    Far,
    /// The same, and NaNs and infinities.
    Special,
    /// Sums that cancel: the largest numbers, and the smallest beside them.
    Largest,
}

fn value(dtype: DType, values: Values, random: &mut Random) -> u64 {
    let exponents = match dtype {
        DType::F64 => 2040,
        DType::F16 => 30,
        _ => 250,
    };
    let unit = random.unit() - 0.5;
    let far = |random: &mut Random| {
        unit * 2f64.powi(random.place(exponents) as i32 - exponents as i32 / 2)
    };
    let x = match values {
        Values::Near => 2.0 * unit,
        Values::Far => match random.place(9) {
            0 => 0.0,
            1 => -0.0,
            _ => far(random),
        },
        Values::Special => match random.place(40) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            _ => far(random),
        },
        Values::Largest => {
            let most = 2f64.powi(exponents as i32 / 2 + 2);
            [most, -most, most / 3.0, -most / 3.0, 1.0, -2f64.powi(-(exponents as i32) / 2)]
                [random.place(6)]
        }
    };
    match dtype {
        DType::F64 => x.to_bits(),
        DType::F32 => u64::from((x as f32).to_bits()),
        DType::F16 => u64::from(element::f16::from_f64(x).to_bits()),
        DType::BF16 => u64::from(element::bf16::from_f64(x).to_bits()),
        _ => random.next() >> if matches!(values, Values::Near) { 30 } else { 0 },
    }
}

/// How keys are drawn.
#[derive(Clone, Copy, Debug)]
enum Draw {
    Sorted,
    Shuffled,
    /// All in the same group.
    One,
    /// Each by itself.
    Distinct,
    /// Few come often, and most rarely.
    Zipf,
}

fn draw(how: Draw, groups: usize, rows: usize, random: &mut Random) -> Vec<u64> {
    let key = |row: usize, random: &mut Random| match how {
        Draw::Sorted => row * groups / rows.max(1),
        Draw::Shuffled => random.place(groups),
        Draw::One => groups / 2,
        Draw::Distinct => row.wrapping_mul(7919) % groups,
        Draw::Zipf => ((groups as f64).powf(random.unit()) as usize - 1).min(groups - 1),
    };
    (0..rows).map(|row| key(row, random) as u64).collect()
}

/// Words with elements of a size, one behind the other.
fn packed(items: &[u64], size: usize) -> Vec<u64> {
    let mut words = vec![0u64; (items.len() * size).div_ceil(8)];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    for (to, item) in bytes.chunks_exact_mut(size).zip(items) {
        to.copy_from_slice(&item.to_le_bytes()[..size]);
    }
    words
}

struct Case {
    device: Arc<dyn Device>,
    engine: Engine,
    key_type: DType,
    least: u64,
    groups: usize,
    keys: Vec<u64>,
}

/// An array in a device's memory, `before` elements behind its beginning.
fn sent(
    device: &Arc<dyn Device>,
    items: &[u64],
    dtype: DType,
    before: usize,
) -> (Buffer<'static>, Array) {
    let size = dtype.size();
    let moved: Vec<u64> = vec![0; before].into_iter().chain(items.iter().copied()).collect();
    let words = packed(&moved, size);
    let buffer = Buffer::new(device, 8 * words.len().max(1) as u64).unwrap();
    buffer.copy_in(Stream::DEFAULT, 0, bytemuck::cast_slice(&words)).unwrap();
    let address = buffer.address() + (before * size) as u64;
    (buffer, Array { address, len: items.len() as u64, dtype })
}

impl Case {
    fn check(&self, dtype: DType, values: Values, ops: &[Op], random: &mut Random) {
        let Case { device, engine, key_type, least, groups, keys } = self;
        let items: Vec<u64> = keys.iter().map(|_| value(dtype, values, random)).collect();
        let (_memory, array) = sent(device, &items, dtype, 1);
        let numbered: Vec<u64> = keys.iter().map(|key| key.wrapping_add(*least)).collect();
        let (_keys, key_array) = sent(device, &numbered, *key_type, 3);
        let asked = Groups { keys: key_array, least: *least, count: *groups as u64 };
        // SAFETY: both buffers hold what is said, and nobody writes to them.
        let made = unsafe { engine.numbers_of_groups(ops, array, &asked, true, Stream::DEFAULT) };
        let made = made.unwrap();
        assert_eq!(made.stranger, None);
        let present = made.present.unwrap();
        let mut rows = vec![Vec::new(); *groups];
        keys.iter().zip(&items).for_each(|(&key, &item)| rows[key as usize].push(item));
        for (&op, numbers) in ops.iter().zip(made.numbers) {
            let numbers = numbers.unwrap();
            for (group, its) in rows.iter().enumerate() {
                assert_eq!(present[group] != 0, !its.is_empty(), "{op}, group {group}");
                let words = packed(its, dtype.size());
                let bytes = &bytemuck::cast_slice::<u64, u8>(&words)[..its.len() * dtype.size()];
                let state = state_of(op.kind(), dtype, 0, bytes, &[]);
                let Ok(expected) = state.finish(op, &Rules::default()) else { continue };
                let bits = |x: Scalar| (x.dtype(), x.to_bits());
                let note = || format!("{op} of {dtype}, {values:?}, group {group}: {its:x?}");
                let found = numbers.get(group).map(bits);
                assert_eq!(found, Some(bits(expected.first())), "{}", note());
            }
        }
    }
}

const OPS: [Op; 8] =
    [Op::Mean, Op::Sum, Op::Norm1, Op::Max, Op::Min, Op::NormInf, Op::CountNan, Op::CountNonzero];

fn sweep(device: &Arc<dyn Device>, blocks: Option<u32>, rows: usize, seed: u64) {
    let mut random = Random(seed);
    let shape = Shape { blocks, ..Shape::default() };
    let cases = [
        (Draw::Shuffled, 16, DType::U32, 0),
        (Draw::One, 1, DType::U8, 200),
        (Draw::Sorted, 700, DType::I16, -300i64 as u64),
        (Draw::Distinct, rows, DType::U64, 1 << 40),
        (Draw::Zipf, 5000, DType::I32, -2i64 as u64),
        (Draw::Shuffled, 2500, DType::I64, i64::MIN as u64),
        (Draw::One, 4000, DType::U16, 61_000),
    ];
    for (how, groups, key_type, least) in cases {
        let keys = draw(how, groups, rows, &mut random);
        let engine = Engine::with_shape(Arc::clone(device), shape);
        let case = Case { device: Arc::clone(device), engine, key_type, least, groups, keys };
        for values in [Values::Near, Values::Far, Values::Special, Values::Largest] {
            let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16][random.place(4)];
            case.check(dtype, values, &OPS, &mut random);
        }
        let short = [DType::I32, DType::U8, DType::I16, DType::U32][random.place(4)];
        case.check(
            short,
            Values::Far,
            &[Op::Sum, Op::Mean, Op::Norm1, Op::Min, Op::All],
            &mut random,
        );
        // Their totals fit 64 bits.
        let long = [DType::I64, DType::U64][random.place(2)];
        case.check(long, Values::Near, &[Op::Mean, Op::Sum, Op::Max, Op::Any], &mut random);
    }
}

#[test]
fn groups_have_the_answers_of_their_rows() {
    // Two tiles, or five.
    for (i, blocks) in [2, 1, 8].into_iter().enumerate().take(up_to(3, 1)) {
        sweep(&(Arc::new(Sim::checking()) as _), Some(blocks), up_to(20_000, 5000), 5 + i as u64);
    }
}

#[test]
fn groups_have_the_answers_of_their_rows_on_a_device() {
    let Some(device) = device_of_this_machine() else { return };
    for (i, blocks) in [None, Some(1), Some(7)].into_iter().enumerate() {
        sweep(&device, blocks, 1_000_000, 55 + i as u64);
    }
}

/// A block has many tiles, and more groups than it has slots.
#[test]
fn more_groups_than_slots_in_many_tiles() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let mut random = Random(8);
    let (rows, groups) = (up_to(60_000, 36_000), 9000);
    for (how, dtype) in [(Draw::Sorted, DType::F32), (Draw::Shuffled, DType::F64)] {
        let shape = Shape { blocks: Some(1), ..Shape::default() };
        let engine = Engine::with_shape(Arc::clone(&device), shape);
        let keys = draw(how, groups, rows, &mut random);
        let (device, key_type) = (Arc::clone(&device), DType::U32);
        let case = Case { device, engine, key_type, least: 0, groups, keys };
        case.check(dtype, Values::Far, &[Op::Sum, Op::Min, Op::CountNonzero], &mut random);
    }
}

/// What a question leaves behind would be in the next one's answers.
#[test]
fn accumulators_are_zero_after_a_question() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let mut random = Random(77);
    let keys = draw(Draw::Shuffled, 3000, 4000, &mut random);
    let case = Case { device, engine, key_type: DType::U32, least: 0, groups: 3000, keys };
    for dtype in [DType::F64, DType::F32, DType::I64, DType::F64, DType::F32] {
        let values = if dtype.is_float() { Values::Special } else { Values::Near };
        case.check(dtype, values, &[Op::Sum, Op::CountNonzero, Op::Max], &mut random);
    }
}

#[test]
fn keys_that_are_no_groups_are_told() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let (_values, array) = sent(&device, &[0; 6000], DType::F32, 0);
    let ask = |keys: &[u64], key_type, least, count, ops: &[Op]| {
        let (_keys, keys) = sent(&device, keys, key_type, 0);
        let groups = Groups { keys, least, count };
        // SAFETY: the buffers hold what is said, and nobody else uses them.
        unsafe { engine.numbers_of_groups(ops, array, &groups, false, Stream::DEFAULT) }
    };
    let mut keys = vec![4; 6000];
    (keys[4321], keys[5999]) = (5, 9);
    let made = ask(&keys, DType::U32, 0, 5, &[Op::Sum, Op::Max]).unwrap();
    assert_eq!((made.stranger, made.numbers), (Some(4321), vec![None, None]));
    let made = ask(&keys, DType::I8, 5, 5, &[Op::Count]).unwrap();
    assert_eq!(made.stranger, Some(0), "4 is less than the least");
    keys[17] = 1 << 32;
    let made = ask(&keys, DType::U64, 0, 10, &[Op::Sum]).unwrap();
    assert_eq!(made.stranger, Some(17), "all of a key counts");
    let made = ask(&keys, DType::U32, 0, 10, &[Op::Sum, Op::Var]).unwrap();
    assert_eq!(made.stranger, None);
    assert!(made.numbers[0].is_some() && made.numbers[1].is_none());
    let made = ask(&keys[1..], DType::U32, 0, 10, &[Op::Sum]);
    assert!(matches!(made, Err(Error::Core(_))), "{made:?}");
}

/// A total that does not fit is no answer.
#[test]
fn totals_that_do_not_fit_are_told() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let (_values, array) = sent(&device, &[i64::MAX as u64, 1, 7], DType::I64, 0);
    for (keys, fits) in [([0, 0, 1], false), ([0, 1, 1], true)] {
        let (_keys, keys) = sent(&device, &keys, DType::U32, 0);
        let groups = Groups { keys, least: 0, count: 2 };
        let ops = [Op::Sum, Op::Mean];
        // SAFETY: the buffers hold what is said, and nobody else uses them.
        let made =
            unsafe { engine.numbers_of_groups(&ops, array, &groups, false, Stream::DEFAULT) };
        let made = made.unwrap();
        assert_eq!(made.numbers[0].is_some(), fits);
        assert!(made.numbers[1].is_some(), "a mean always fits");
    }
}
