//! Groups on devices, on the interpreter with all its checks on and on the GPU if there is
//! one: bit for bit what the CPU answers, of columns in either memory.

use crate::arrays::Random;
use crate::device_arrays::{elements, gpu, interpreter, ways};
use crate::thorough::{thorough, up_to};
use warpfold::internal::engine_of;
use warpfold::{
    DType, Device, DeviceArray, DeviceStream, Error, Grouped, Input, KeyColumn, Keys, NanPolicy,
    Op, Order, Reduction, View,
};
use warpfold_cuda::{Buffer, Stream};

/// A column in both memories.
struct Column {
    dtype: DType,
    words: Vec<u64>,
    len: usize,
    buffer: Buffer<'static>,
}

impl Column {
    fn new(stream: &DeviceStream, dtype: DType, words: Vec<u64>, len: usize) -> Column {
        let engine = engine_of(stream.device()).unwrap();
        let bytes = len * dtype.size();
        let buffer = Buffer::new(engine.device(), bytes.max(1) as u64).unwrap();
        buffer.copy_in(Stream::DEFAULT, 0, &bytemuck::cast_slice(&words)[..bytes]).unwrap();
        Column { dtype, words, len, buffer }
    }

    fn drawn(stream: &DeviceStream, dtype: DType, len: usize, random: &mut Random) -> Column {
        Column::new(stream, dtype, elements(dtype, len * dtype.size(), random), len)
    }

    /// Of integers.
    fn keys(stream: &DeviceStream, dtype: DType, keys: &[i64]) -> Column {
        let size = dtype.size();
        let mut words = vec![0u64; (keys.len() * size).div_ceil(8)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        for (to, key) in bytes.chunks_exact_mut(size).zip(keys) {
            to.copy_from_slice(&key.to_le_bytes()[..size]);
        }
        Column::new(stream, dtype, words, keys.len())
    }

    /// Every `step`-th element, all shifted by `step - 1`.
    fn view(&self, step: usize) -> View<'_> {
        let size = self.dtype.size();
        let bytes = &bytemuck::cast_slice(&self.words)[..self.len * size];
        let (len, first) = (self.len / step, (step - 1) * size);
        View::strided(self.dtype, bytes, first, &[len], &[(step * size) as isize]).unwrap()
    }

    fn array(&self, stream: &DeviceStream, step: usize) -> DeviceArray<'_> {
        let size = self.dtype.size();
        let at = self.buffer.address() + ((step - 1) * size) as u64;
        let (shape, strides) = ([self.len / step], [(step * size) as isize]);
        // SAFETY: the buffer has the elements, and nobody writes to it.
        unsafe { DeviceArray::from_raw_strided(self.dtype, at, &shape, &strides, stream) }.unwrap()
    }
}

/// Asks about columns in both memories, and the CPU.
fn compare(
    stream: &DeviceStream,
    question: &Reduction,
    (keys, values): (&Column, &Column),
    dense: Option<usize>,
    step: usize,
) -> Result<Grouped, Error> {
    fn of<'a>(column: KeyColumn<'a>, dense: Option<usize>) -> Keys<'a> {
        match dense {
            Some(groups) => Keys::dense(column, groups),
            None => column.into(),
        }
    }
    let on = |device| question.clone().device(device);
    let expected = on(Device::Cpu).by(of(keys.view(step).into(), dense)).run(values.view(step));
    let note = || format!("{question:?} of {} by {}, {dense:?}", values.dtype, keys.dtype);
    let [sent, in_place] = ways(stream.device());
    if sent {
        let by = on(stream.device()).by(of(keys.view(step).into(), dense));
        assert_eq!(by.run(values.view(step)), expected, "sent: {}", note());
    }
    if in_place {
        let (column, array) = (keys.array(stream, step), values.array(stream, step));
        let by = on(Device::Auto).by(of((&column).into(), dense));
        assert_eq!(by.run(&array), expected, "in place: {}", note());
    }
    expected
}

fn unary(dtype: DType) -> impl Iterator<Item = Op> {
    Op::ALL.into_iter().filter(move |op| op.supports(dtype) && op.arity() == 1)
}

fn drawn(groups: i64, least: i64, rows: usize, random: &mut Random) -> Vec<i64> {
    (0..rows).map(|_| least + (random.next() % groups as u64) as i64).collect()
}

/// Every operation of every type, and all in one call; types of keys in turns.
fn every_operation(stream: &DeviceStream, rows: usize) {
    let mut random = Random::new(5);
    let keys = [DType::U32, DType::I8, DType::I64, DType::U16, DType::I32, DType::U64];
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        let key_type = keys[i % keys.len()];
        let least = if key_type.is_signed_int() { -7 } else { 3 };
        let keys = Column::keys(stream, key_type, &drawn(40, least, rows, &mut random));
        let values = Column::drawn(stream, dtype, rows, &mut random);
        let all = Reduction::new(unary(dtype)).wrap(true);
        compare(stream, &all, (&keys, &values), None, 1).unwrap();
        let sample = Reduction::new([Op::Var, Op::Std, Op::Sum]).wrap(true).ddof(1);
        compare(stream, &sample, (&keys, &values), None, 1).unwrap();
        let rules = all.clone().nan(NanPolicy::Omit).ddof(1);
        compare(stream, &rules, (&keys, &values), None, 1).unwrap();
        for op in [Op::Sum, Op::MinMax, Op::Mean] {
            let made = compare(stream, &Reduction::of(op), (&keys, &values), None, 1);
            let overflows = matches!(made, Err(Error::InGroup { .. }));
            assert!(made.is_ok() || overflows, "{op} of {dtype}: {made:?}");
        }
        if thorough() || i % 2 == 0 {
            compare(stream, &all, (&keys, &values), None, 3).unwrap();
        }
    }
}

#[test]
fn every_operation_of_groups() {
    every_operation(&interpreter(), up_to(2000, 250));
}

#[test]
fn every_operation_of_groups_on_a_device() {
    let Some(stream) = gpu() else { return };
    every_operation(&stream, 100_000);
}

/// Dense keys with groups that have no rows; keys far apart; keys of other types.
fn all_keys(stream: &DeviceStream) {
    let mut random = Random::new(6);
    let rows = 3000;
    let values = Column::drawn(stream, DType::F32, rows, &mut random);
    let ops = [Op::Max, Op::Sum, Op::MinMax, Op::Mean, Op::Count, Op::Any, Op::Var];
    let question = Reduction::new(ops);
    let keys = Column::keys(stream, DType::U32, &drawn(3000, 0, rows, &mut random));
    let answer = compare(stream, &question, (&keys, &values), Some(4000), 1).unwrap();
    assert_eq!((answer.len(), answer.columns()[0].is_missing(3500)), (4000, true));
    let sparse: Vec<i64> = (0..rows).map(|i| [-5, 1 << 40, 77][i % 3]).collect();
    let sparse = Column::keys(stream, DType::I64, &sparse);
    compare(stream, &question, (&sparse, &values), None, 1).unwrap();
    let extremes: Vec<i64> = (0..rows).map(|i| [i64::MIN, i64::MAX][i % 2]).collect();
    let extremes = Column::keys(stream, DType::I64, &extremes);
    compare(stream, &question, (&extremes, &values), None, 1).unwrap();
    for dtype in [DType::Bool, DType::F32, DType::F64] {
        let keys = Column::drawn(stream, dtype, rows, &mut random);
        compare(stream, &question, (&keys, &values), None, 1).unwrap();
    }
    let by_first = |device| {
        let by = question.clone().device(device).by(&[3, 1, 3]).order(Order::FirstOccurrence);
        by.run(&[1.0, 2.0, 4.0])
    };
    assert_eq!(by_first(stream.device()), by_first(Device::Cpu));
    let bits = [0b0000_0101];
    let masked = |device| {
        let by = question.clone().device(device).by(&[3, 1, 3]);
        by.run(Input::masked(&[1.0, 2.0, 4.0], &bits, 0).unwrap())
    };
    assert_eq!(masked(stream.device()), masked(Device::Cpu));
    let texts = |device| question.clone().device(device).by(&["a", "b"]).run(&[1.0, 2.0]);
    assert_eq!(texts(stream.device()), texts(Device::Cpu));
    let two = [keys.array(stream, 1).into(), sparse.array(stream, 1).into()];
    let there = question.by(Keys::new(two)).run(values.array(stream, 1));
    let two = [keys.view(1).into(), sparse.view(1).into()];
    assert_eq!(there, question.by(Keys::new(two)).run(values.view(1)));
    let dot = Reduction::of(Op::Dot);
    let there =
        dot.by(keys.array(stream, 1)).run_pair(values.array(stream, 1), values.array(stream, 1));
    assert_eq!(
        there,
        dot.by(KeyColumn::from(keys.view(1))).run_pair(values.view(1), values.view(1))
    );
}

#[test]
fn groups_by_keys_of_all_kinds() {
    all_keys(&interpreter());
}

#[test]
fn groups_by_keys_of_all_kinds_on_a_device() {
    let Some(stream) = gpu() else { return };
    all_keys(&stream);
}

/// Rows in another order have the same bits.
#[test]
fn orders_of_rows_change_no_bit() {
    let stream = interpreter();
    let mut random = Random::new(9);
    let rows = 4000;
    let keys = drawn(100, -50, rows, &mut random);
    let hostile = |i: usize| [1e308, -1e308, 1.0, 5e-324, -1e-300, 1e16][i % 6];
    let values: Vec<f64> = (0..rows).map(|i| hostile(i * 7 + i / 13)).collect();
    let run = |order: &[usize]| {
        let keys: Vec<i64> = order.iter().map(|&row| keys[row]).collect();
        let values: Vec<f64> = order.iter().map(|&row| values[row]).collect();
        Reduction::of(Op::Sum).device(stream.device()).by(&keys).run(&values).unwrap()
    };
    let mut order: Vec<usize> = (0..rows).collect();
    let expected = run(&order);
    for i in (1..rows).rev() {
        order.swap(i, random.below(i + 1));
    }
    assert_eq!(run(&order), expected);
}

/// What cannot be is refused in the words of the CPU.
#[test]
fn groups_that_cannot_be_are_refused_as_on_the_cpu() {
    let stream = interpreter();
    let keys = Column::keys(&stream, DType::I32, &[0, 1, 5, -1]);
    let values = Column::keys(&stream, DType::I64, &[i64::MAX, 1, 1, 1]);
    let sum = Reduction::of(Op::Sum);
    let refused =
        |keys: &Column, dense| compare(&stream, &sum, (keys, &values), dense, 1).unwrap_err();
    assert!(matches!(refused(&keys, Some(5)), Error::KeyOutOfRange { row: 2, .. }));
    let small = Column::keys(&stream, DType::I8, &[0, 1, 5, -1]);
    assert!(matches!(refused(&small, Some(200)), Error::Groups { .. }));
    assert!(matches!(refused(&small, Some(100)), Error::KeyOutOfRange { row: 3, .. }));
    let one = Column::keys(&stream, DType::U8, &[4; 4]);
    assert!(matches!(refused(&one, None), Error::InGroup { .. }));
    let short = Column::keys(&stream, DType::U8, &[4; 3]);
    assert!(matches!(refused(&short, None), Error::ShapeMismatch { .. }));
    let mixed = sum.by(keys.array(&stream, 1)).run(values.view(1)).unwrap_err();
    assert!(matches!(mixed, Error::DeviceMemory { .. }), "{mixed}");
    let mixed = sum.by(KeyColumn::from(keys.view(1))).run(values.array(&stream, 1)).unwrap_err();
    assert!(matches!(mixed, Error::DeviceMemory { .. }), "{mixed}");
    let elsewhere = sum.clone().device(Device::Cpu).by(keys.array(&stream, 1));
    let elsewhere = elsewhere.run(values.array(&stream, 1)).unwrap_err();
    assert!(matches!(elsewhere, Error::DeviceMemory { .. }), "{elsewhere}");
    let unfinished = sum.by(keys.array(&stream, 1)).partial(values.view(1), 0).unwrap_err();
    assert!(matches!(unfinished, Error::DeviceMemory { .. }), "{unfinished}");
}
