//! Groups whose keys lie in a device's memory: the answers of their rows' states, for keys of
//! every order and frequency, by few blocks and many.

use crate::common::Random;
use crate::common::arrays::state_of;
use crate::common::machine::device_of_this_machine;
use crate::thorough::{thorough, up_to};
use std::collections::BTreeMap;
use std::sync::Arc;
use warpfold_core::op::{NanPolicy, Op, Rules};
use warpfold_core::{DType, Scalar, element};
use warpfold_cuda::engine::{Array, Engine, Number, Shape};
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
    /// Near numbers and NaNs, as many of these.
    Missing,
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
        Values::Missing if random.place(2) == 0 => [f64::NAN, -f64::NAN][random.place(2)],
        Values::Missing => unit,
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

/// Keys of rows: a column of a type, or several.
struct Case {
    device: Arc<dyn Device>,
    engine: Engine,
    keys: Vec<(DType, Vec<u64>)>,
}

/// Keys of a type: so many from a least one on, each `step` more than the one before.
fn keys_of(dtype: DType, least: u64, step: u64, numbers: &[u64]) -> (DType, Vec<u64>) {
    let mask = u64::MAX >> (64 - 8 * dtype.size());
    let key = |number: &u64| number.wrapping_mul(step).wrapping_add(least) & mask;
    (dtype, numbers.iter().map(key).collect())
}

/// A key by its value.
fn value_of(dtype: DType, bits: u64) -> i128 {
    let unused = 64 - 8 * dtype.size();
    match dtype.is_signed_int() {
        true => i128::from(((bits << unused) as i64) >> unused),
        false => i128::from(bits),
    }
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
    fn check(
        &self,
        dtype: DType,
        values: Values,
        numbers: &[impl Into<Number> + Copy],
        random: &mut Random,
    ) {
        let Case { device, engine, keys } = self;
        let rows = keys[0].1.len();
        let items: Vec<u64> = (0..rows).map(|_| value(dtype, values, random)).collect();
        let (_memory, array) = sent(device, &items, dtype, 1);
        let sent = keys.iter().map(|(dtype, keys)| sent(device, keys, *dtype, 3));
        let (_keys, columns): (Vec<_>, Vec<_>) = sent.unzip();
        // SAFETY: the buffers hold what is said, and nobody writes to them.
        let made = unsafe { engine.group(numbers, array, &columns, None, Stream::DEFAULT) };
        let mut made = made.unwrap().expect("a kernel answers");
        let mut groups = BTreeMap::<Vec<i128>, (Vec<u64>, Vec<u64>)>::new();
        for (row, &item) in items.iter().enumerate() {
            let key = keys.iter().map(|(dtype, keys)| value_of(*dtype, keys[row])).collect();
            let (its, rows) = groups.entry(key).or_default();
            its.push(item);
            rows.push(row as u64);
        }
        assert_eq!(made.count(), groups.len());
        for (column, (dtype, _)) in keys.iter().enumerate() {
            let found = made.keys(column).unwrap();
            assert_eq!((found.dtype(), found.len()), (*dtype, groups.len()));
            for (key, found) in groups.keys().zip(found.iter()) {
                assert_eq!(value_of(*dtype, found.to_bits()), key[column]);
            }
        }
        for (place, &number) in numbers.iter().enumerate() {
            let number @ Number { op, omits_nan, ddof } = number.into();
            let nan = if omits_nan { NanPolicy::Omit } else { NanPolicy::Propagate };
            let rules = Rules::new().nan(nan).ddof(ddof.into());
            let answers = groups.values().map(|(its, _)| {
                let words = packed(its, dtype.size());
                let bytes = &bytemuck::cast_slice::<u64, u8>(&words)[..its.len() * dtype.size()];
                state_of(op.kind(), dtype, 0, bytes, &[]).finish(op, &rules)
            });
            let answers: Vec<_> =
                answers.map(|answer| answer.ok().map(|its| its.first())).collect();
            let numbers = made.numbers(place).unwrap();
            // Nothing is left of a group whose answer needs an element.
            let all = answers.iter().all(Option::is_some);
            assert_eq!(numbers.is_some(), all, "{number:?} of {dtype}, {values:?}");
            let Some(numbers) = numbers else { continue };
            let both = groups.iter().zip(answers.into_iter().flatten());
            for (group, ((key, (its, rows)), expected)) in both.enumerate() {
                let bits = |x: Scalar| (x.dtype(), x.to_bits());
                let note = || format!("{number:?} of {dtype}, {values:?}, {key:?}: {its:x?}");
                let found = numbers.get(group).map(bits);
                let mut expected = bits(expected);
                if matches!(op, Op::ArgMin | Op::ArgMax) {
                    expected.1 = rows[expected.1 as usize];
                }
                assert_eq!(found, Some(expected), "{}", note());
            }
        }
    }
}

const OPS: [Op; 8] =
    [Op::Mean, Op::Sum, Op::Norm1, Op::Max, Op::Min, Op::NormInf, Op::CountNan, Op::CountNonzero];
const OF_INTEGERS: [Op; 7] = [Op::Sum, Op::Mean, Op::Norm1, Op::Min, Op::All, Op::ArgMin, Op::Std];
/// Operations about rows in the order of their groups.
const SORTED: [Op; 5] = [Op::Var, Op::ArgMax, Op::Norm2, Op::ArgMin, Op::LogSumExp];

fn sweep(device: &Arc<dyn Device>, blocks: Option<u32>, rows: usize, seed: u64) {
    let mut random = Random(seed);
    let shape = Shape { blocks, ..Shape::default() };
    let apart = 0x0001_2345_6789_abcd;
    let cases = [
        vec![(Draw::Shuffled, 16, DType::U32, 0, 1)],
        vec![(Draw::One, 1, DType::U8, 200, 1)],
        vec![(Draw::Sorted, 700, DType::I16, -300i64 as u64, 1)],
        vec![(Draw::Distinct, rows, DType::U64, 1 << 40, 1)],
        vec![(Draw::Zipf, 5000, DType::I32, -2i64 as u64, 1)],
        vec![(Draw::Shuffled, 2500, DType::I64, i64::MIN as u64, 1)],
        vec![(Draw::One, 4000, DType::U16, 61_000, 1)],
        // Keys that go to a table, of which the last one has a slot of its own.
        vec![(Draw::Shuffled, 300, DType::I64, i64::MIN as u64, apart)],
        vec![(Draw::Distinct, rows, DType::U64, 7, apart)],
        vec![(Draw::Zipf, 3000, DType::I32, 1 << 31, 0x000a_bcde)],
        vec![(Draw::Shuffled, 16, DType::U64, 0, u64::MAX / 15)],
        // Several columns, of a small range together or a large one.
        vec![(Draw::Shuffled, 20, DType::I8, -9i64 as u64, 1), (Draw::Zipf, 30, DType::U32, 5, 1)],
        vec![
            (Draw::Shuffled, 90, DType::I16, -300i64 as u64, 7),
            (Draw::One, 1, DType::U64, u64::MAX, 1),
            (Draw::Sorted, 40, DType::I32, -5i64 as u64, 0x0123_4567),
        ],
        vec![(Draw::One, 1, DType::I8, 1, 1), (Draw::Zipf, 9, DType::I64, 1 << 63, u64::MAX / 8)],
    ];
    for columns in cases {
        let mut drawn = |&(how, groups, dtype, least, step): &(_, _, _, _, _)| {
            keys_of(dtype, least, step, &draw(how, groups, rows, &mut random))
        };
        let keys = columns.iter().map(&mut drawn).collect();
        let engine = Engine::with_shape(Arc::clone(device), shape);
        let case = Case { device: Arc::clone(device), engine, keys };
        let all = [Values::Near, Values::Far, Values::Special, Values::Largest];
        let from = random.place(8);
        for turn in from..from + up_to(8, 1) {
            let float = [DType::F32, DType::F64, DType::F16, DType::BF16][random.place(4)];
            let short = [DType::I32, DType::U8, DType::I16, DType::U32][random.place(4)];
            let long = [DType::I64, DType::U64][random.place(2)];
            let sorted = [OPS[random.place(8)], SORTED[random.place(5)], SORTED[random.place(5)]];
            let (dtype, values, ops) = match turn % 8 {
                turn @ 0..4 => (float, all[turn], &OPS[..]),
                4 => (short, Values::Far, &OF_INTEGERS[..]),
                // Their totals fit 64 bits.
                5 => (long, Values::Near, &[Op::Mean, Op::Sum, Op::Max, Op::Any][..]),
                6 => (long, Values::Near, &[Op::Var][..]),
                _ => (float, all[random.place(4)], &sorted[random.place(2)..]),
            };
            case.check(dtype, values, ops, &mut random);
        }
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
        sweep(&device, blocks, 100_000, 55 + i as u64);
    }
}

/// All operations of floats but for products, which depend on where rows were: those with
/// accumulators, and some of them with others, of rows in the order of their groups.
const OMITTING: [&[Op]; 3] = [
    &[
        Op::Mean,
        Op::Sum,
        Op::Norm1,
        Op::Max,
        Op::NormInf,
        Op::Count,
        Op::CountNonzero,
        Op::CountNan,
        Op::Any,
        Op::All,
    ],
    &[Op::Var, Op::ArgMin, Op::Sum, Op::Mean, Op::Count],
    &[Op::Norm2, Op::LogSumExp, Op::ArgMax, Op::All, Op::Std, Op::SumSq, Op::Min],
];

fn omit(device: &Arc<dyn Device>, rows: usize, seed: u64) {
    let mut random = Random(seed);
    let cases = [
        (Draw::Shuffled, 16),
        // Groups of nothing but NaNs.
        (Draw::Distinct, rows),
        (Draw::Zipf, 5000),
        (Draw::Sorted, 700),
        (Draw::One, 1),
    ];
    for (i, (how, groups)) in cases.into_iter().enumerate() {
        let engine = Engine::new(Arc::clone(device));
        let keys = vec![(DType::U32, draw(how, groups, rows, &mut random))];
        let case = Case { device: Arc::clone(device), engine, keys };
        for (k, dtype) in [DType::F32, DType::F64, DType::F16, DType::BF16].into_iter().enumerate()
        {
            let values = [Values::Missing, Values::Special][(i + k) / 2 % 2];
            if !thorough() && (i + k) % 2 == 1 {
                continue;
            }
            for ops in OMITTING.into_iter().skip(up_to(0, (i + k / 2) % 3)).step_by(up_to(1, 3)) {
                let ddof = |op| u32::from(matches!(op, Op::Var | Op::Std));
                let number = |&op: &Op| Number { op, omits_nan: true, ddof: ddof(op) };
                let numbers: Vec<Number> = ops.iter().map(number).collect();
                case.check(dtype, values, &numbers, &mut random);
            }
        }
    }
}

#[test]
fn nans_are_omitted_of_groups() {
    omit(&(Arc::new(Sim::checking()) as _), up_to(20_000, 1200), 9);
}

#[test]
fn nans_are_omitted_of_groups_on_a_device() {
    let Some(device) = device_of_this_machine() else { return };
    omit(&device, 300_000, 59);
}

/// For `compute-sanitizer`.
#[test]
fn sanitized_groups_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    sweep(&device, None, 20_000, 58);
    omit(&device, 5_000, 60);
}

/// A block has many tiles, and more groups than it has slots.
#[test]
fn more_groups_than_slots_in_many_tiles() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let mut random = Random(8);
    let (rows, groups) = (up_to(60_000, 20_000), 9000);
    for (how, dtype) in [(Draw::Sorted, DType::F32), (Draw::Shuffled, DType::F64)] {
        let shape = Shape { blocks: Some(1), ..Shape::default() };
        let engine = Engine::with_shape(Arc::clone(&device), shape);
        let keys = vec![(DType::U32, draw(how, groups, rows, &mut random))];
        let case = Case { device: Arc::clone(&device), engine, keys };
        case.check(dtype, Values::Far, &[Op::Sum, Op::Min, Op::CountNonzero], &mut random);
    }
}

/// What a question leaves behind would be in the next one's answers.
#[test]
fn accumulators_are_zero_after_a_question() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let mut random = Random(77);
    let keys = vec![(DType::U32, draw(Draw::Shuffled, 3000, 4000, &mut random))];
    let case = Case { device, engine, keys };
    for dtype in [DType::F64, DType::F32, DType::I64, DType::F64, DType::F32] {
        let values = if dtype.is_float() { Values::Special } else { Values::Near };
        case.check(dtype, values, &[Op::Sum, Op::CountNonzero, Op::Max], &mut random);
    }
}

/// Numbers that groups have been given: those without rows have answers, too.
#[test]
fn groups_of_dense_keys_that_have_no_rows() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let (_values, array) = sent(&device, &[1, 2, 4, 8], DType::I32, 0);
    let (_keys, keys) = sent(&device, &[5, 1, 5, 0], DType::U8, 0);
    let ops = [Op::Sum, Op::Var, Op::Count, Op::Max];
    // SAFETY: the buffers hold what is said, and nobody else uses them.
    let made = unsafe { engine.group(&ops, array, &[keys], Some(7), Stream::DEFAULT) };
    let mut made = made.unwrap().unwrap();
    assert_eq!(made.present().unwrap(), [1, 1, 0, 0, 0, 1, 0]);
    assert_eq!(made.keys(0).unwrap().as_slice::<u8>(), Some(&[0, 1, 2, 3, 4, 5, 6][..]));
    let sums = made.numbers(0).unwrap().unwrap();
    assert_eq!(sums.as_slice::<i64>(), Some(&[8, 2, 0, 0, 0, 5, 0][..]));
    assert_eq!((made.answer_type(1), made.numbers(1).unwrap()), (None, None));
    let counts = made.numbers(2).unwrap().unwrap();
    assert_eq!(counts.as_slice::<u64>(), Some(&[1, 1, 0, 0, 0, 2, 0][..]));
}

/// A group of nothing but NaNs has rows, whose values are as if they were not there.
#[test]
fn dense_groups_without_their_nans() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let items = [1.5, f64::NAN, f64::NAN, -0.5, f64::NAN, 0.0].map(f64::to_bits);
    let (_values, array) = sent(&device, &items, DType::F64, 0);
    let (_keys, keys) = sent(&device, &[3, 3, 1, 3, 1, 4], DType::U8, 0);
    let ask = |op| {
        let number = Number { op, omits_nan: true, ddof: 0 };
        // SAFETY: the buffers hold what is said, and nobody else uses them.
        let made = unsafe { engine.group(&[number], array, &[keys], Some(6), Stream::DEFAULT) };
        let mut made = made.unwrap().unwrap();
        assert_eq!(made.present().unwrap(), [0, 1, 0, 1, 1, 0], "{op}");
        let numbers = made.numbers(0).unwrap();
        numbers.map(|numbers| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
    };
    let floats = |all: [f64; 6]| Some(all.map(f64::to_bits).to_vec());
    assert_eq!(ask(Op::Sum), floats([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]));
    let none = f64::NAN;
    assert_eq!(ask(Op::Mean), floats([none, none, none, 0.5, 0.0, none]));
    assert_eq!(ask(Op::Count), Some(vec![0, 0, 0, 2, 1, 0]));
    assert_eq!(ask(Op::CountNonzero), Some(vec![0, 0, 0, 2, 0, 0]));
    assert_eq!(ask(Op::All), Some(vec![1, 1, 1, 1, 0, 1]));
    assert_eq!(ask(Op::Min), None, "there is none of a group that has rows");
}

/// The delta degrees of freedom, of which kernels are told.
#[test]
fn variances_of_samples() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let (_keys, keys) = sent(&device, &[3, 1, 3, 3], DType::U8, 0);
    let floats = [1.0f32, 8.0, 3.0, 8.0].map(|x| u64::from(x.to_bits()));
    for (dtype, items) in [(DType::F32, floats), (DType::I16, [1, 8, 3, 8])] {
        let (_values, array) = sent(&device, &items, dtype, 0);
        let number = Number { op: Op::Var, omits_nan: false, ddof: 1 };
        // SAFETY: the buffers hold what is said, and nobody else uses them.
        let made = unsafe { engine.group(&[number], array, &[keys], None, Stream::DEFAULT) };
        let found = made.unwrap().unwrap().numbers(0).unwrap().unwrap();
        let expected = match found.dtype() {
            DType::F32 => Scalar::F32(13.0),
            _ => Scalar::F64(13.0),
        };
        assert_eq!(found.get(1), Some(expected), "that of one is none: {found:?}");
    }
}

/// A key that no group has is the CPU's to tell; so are keys that a device does not number.
#[test]
fn keys_that_are_no_groups_are_not_answered() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let (_values, array) = sent(&device, &[0; 6000], DType::F32, 0);
    let ask = |keys: &[u64], key_type, dense, ops: &[Op]| {
        let (_keys, keys) = sent(&device, keys, key_type, 0);
        // SAFETY: the buffers hold what is said, and nobody else uses them.
        let made = unsafe { engine.group(ops, array, &[keys], dense, Stream::DEFAULT) };
        made.map(|made| made.map(|made| made.count()))
    };
    let mut keys = vec![4; 6000];
    assert_eq!(ask(&keys, DType::U32, Some(5), &[Op::Sum]).unwrap(), Some(5));
    (keys[4321], keys[5999]) = (5, 9);
    assert_eq!(ask(&keys, DType::U32, Some(5), &[Op::Sum, Op::Max]).unwrap(), None);
    assert_eq!(ask(&keys, DType::I8, Some(129), &[Op::Sum]).unwrap(), None, "no I8 is 128");
    assert_eq!(ask(&keys, DType::I8, None, &[Op::Sum]).unwrap(), Some(3));
    keys[17] = 1 << 32;
    assert_eq!(ask(&keys, DType::U64, Some(10), &[Op::Sum]).unwrap(), None, "all of a key counts");
    assert_eq!(ask(&keys, DType::U64, None, &[Op::Sum]).unwrap(), Some(4));
    assert_eq!(ask(&keys, DType::U64, None, &[Op::Var]).unwrap(), Some(4));
    assert_eq!(ask(&keys, DType::U64, Some(1 << 33), &[Op::Var]).unwrap(), None, "not of no rows");
    assert_eq!(ask(&keys, DType::U64, None, &[Op::Prod]).unwrap(), None, "rows have places");
    assert_eq!(ask(&keys, DType::F64, None, &[Op::Sum]).unwrap(), None);
    let short = ask(&keys[1..], DType::U32, None, &[Op::Sum]);
    assert!(matches!(short, Err(Error::Core(_))), "{short:?}");
}

/// The tables of a question are of no use to the next one, nor is what was in them.
#[test]
fn tables_grow_and_shrink_between_questions() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let mut random = Random(15);
    for rows in [up_to(3000, 900), 9, up_to(40_000, 3000), 400] {
        let engine = Engine::new(Arc::clone(&device));
        let numbers = draw(Draw::Distinct, rows, rows, &mut random);
        let keys = vec![keys_of(DType::I64, 3, 0x0123_4567_89ab, &numbers)];
        let case = Case { device: Arc::clone(&device), engine, keys };
        for _ in 0..2 {
            case.check(DType::I32, Values::Near, &[Op::Max, Op::Sum], &mut random);
        }
    }
}

/// A table has no room for all keys.
#[test]
fn more_keys_than_a_table_has_room_for_on_a_device() {
    let Some(device) = device_of_this_machine() else { return };
    let mut random = Random(16);
    let rows = 5_000_000;
    let engine = Engine::new(Arc::clone(&device));
    let numbers = draw(Draw::Distinct, rows, rows, &mut random);
    let keys = vec![keys_of(DType::U64, 3, 0x0001_2345_6789, &numbers)];
    Case { device, engine, keys }.check(DType::U8, Values::Near, &[Op::Sum], &mut random);
}

/// Where keys are looked for first in a table: `KeyTable::home` in `kernels/key_table.cuh`.
fn home(key: u64, log: u32) -> u64 {
    let key = (key ^ key >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - log)
}

/// More keys want the same slot than are looked at one after the other; fewer do.
#[test]
fn keys_that_want_the_same_slot() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let alike: Vec<u64> = (0..).filter(|&key| home(key, 10) == 1020).take(200).collect();
    let mut random = Random(17);
    for most in [100, 200] {
        let engine = Engine::new(Arc::clone(&device));
        // The least one is 0, and the greatest is far.
        let keys: Vec<u64> = [0, 1 << 50].iter().chain(&alike[..most]).copied().collect();
        let case = Case { device: Arc::clone(&device), engine, keys: vec![(DType::U64, keys)] };
        case.check(DType::I32, Values::Near, &[Op::Sum, Op::Max], &mut random);
    }
}

/// A total that does not fit is no answer.
#[test]
fn totals_that_do_not_fit_are_told() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let (_values, array) = sent(&device, &[i64::MAX as u64, 1, 7], DType::I64, 0);
    for (keys, fits) in [([0, 0, 1], false), ([0, 1, 1], true)] {
        let (_keys, keys) = sent(&device, &keys, DType::U32, 0);
        let ops = [Op::Sum, Op::Mean];
        // SAFETY: the buffers hold what is said, and nobody else uses them.
        let made = unsafe { engine.group(&ops, array, &[keys], None, Stream::DEFAULT) };
        let mut made = made.unwrap().unwrap();
        assert_eq!(made.numbers(0).unwrap().is_some(), fits);
        assert!(made.numbers(1).unwrap().is_some(), "a mean always fits");
    }
}
