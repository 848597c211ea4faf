//! Questions that make no sense: errors that say so, never a panic.

use crate::arrays::Random;
use ndarray::ShapeBuilder;
use warpfold::internal::ForReaders;
use warpfold::{DType, Device, Error, NanPolicy, Op, Partial, Reduction, Rules, View};

#[test]
fn of_errors_that_of_the_first_operation_is_told() {
    let (rows, columns) = (40, 700);
    for column in [0, columns - 1] {
        // A column of NaNs, among the elements that are looked at first and among the last.
        let of = |i: usize| if i % columns == column { f32::NAN } else { i as f32 };
        let items: Vec<f32> = (0..rows * columns).map(of).collect();
        let view = || View::of_strided(&items, 0, &[rows, columns], &[columns as isize, 1]);
        for ops in [[Op::Min, Op::Max, Op::Sum], [Op::Sum, Op::Max, Op::Min]] {
            let first = ops.into_iter().find(|&op| op != Op::Sum).unwrap();
            for threads in [1, 3] {
                let asked = Reduction::new(ops).axis(0).nan(NanPolicy::Omit);
                let answer = asked.threads(threads).run(view().unwrap());
                assert_eq!(answer, Err(Error::Empty { op: first }), "{column} {threads}");
            }
        }
    }
}

#[test]
fn threads_that_share_outputs_count_nans_and_leave_them_out() {
    let (rows, columns) = (20_000, 8);
    let of = |i: usize| if i.is_multiple_of(7) { f32::NAN } else { i as f32 };
    let items: Vec<f32> = (0..rows * columns).map(of).collect();
    let view = || View::of_strided(&items, 0, &[rows, columns], &[columns as isize, 1]).unwrap();
    for ops in [[Op::Sum, Op::CountNan], [Op::CountNan, Op::Sum]] {
        let asked = Reduction::new(ops).axis(0).nan(NanPolicy::Omit);
        let one = asked.clone().threads(1).run(view()).unwrap();
        assert_eq!(one, asked.threads(3).run(view()).unwrap());
        let counts = one.slice::<u64>(Op::CountNan).unwrap();
        let in_column =
            |c: usize| (0..rows).filter(|row| (row * columns + c).is_multiple_of(7)).count();
        let want: Vec<u64> = (0..columns).map(|c| in_column(c) as u64).collect();
        assert_eq!(counts, want);
    }
}

#[test]
fn views_outside_their_memory_do_not_come_to_be() {
    let bytes = [0u8; 64];
    let at = |offset: usize, shape: &[usize], strides: &[isize]| {
        View::strided(DType::F64, &bytes, offset, shape, strides).map(|v| v.len())
    };
    assert_eq!(at(0, &[8], &[8]), Ok(8));
    assert_eq!(at(56, &[8], &[-8]), Ok(8));
    assert_eq!(at(56, &[], &[]), Ok(1));
    assert_eq!(at(1, &[7], &[8]), Ok(7));
    // Repeated for free, as often as a count can say.
    assert_eq!(at(0, &[1 << 40], &[0]), Ok(1 << 40));
    let most = isize::MAX as usize;
    assert_eq!(at(0, &[most], &[0]), Ok(most));
    let refused: [(usize, &[usize], &[isize]); 17] = [
        (1, &[8], &[8]),
        (0, &[9], &[8]),
        (0, &[2], &[-8]),
        (48, &[8], &[-8]),
        (57, &[], &[]),
        (64, &[1], &[8]),
        (usize::MAX, &[1], &[8]),
        (usize::MAX, &[2], &[-8]),
        (0, &[2], &[]),
        (0, &[], &[8]),
        (0, &[2], &[isize::MAX]),
        (0, &[2], &[isize::MIN]),
        (0, &[usize::MAX], &[1]),
        (0, &[usize::MAX, usize::MAX], &[0, 0]),
        (0, &[most + 1], &[0]),
        (0, &[usize::MAX, usize::MAX], &[isize::MAX, isize::MAX]),
        // Nothing in it, and yet a shape that no answer could have.
        (0, &[usize::MAX, usize::MAX, 0], &[0, 0, 0]),
    ];
    for (offset, shape, strides) in refused {
        assert!(
            matches!(at(offset, shape, strides), Err(Error::ViewOutOfBounds { .. })),
            "{offset} {shape:?} {strides:?}"
        );
    }
    let items = [0.0f64; 8];
    for (offset, strides) in [(0, [isize::MAX]), (0, [isize::MIN]), (usize::MAX, [1]), (9, [0])] {
        assert!(View::of_strided(&items, offset, &[2], &strides).is_err());
    }
    for shape in [&[7usize][..], &[3, 3], &[usize::MAX, 2], &[0], &[], &[usize::MAX, 0]] {
        assert!(View::from_bytes(DType::F64, &bytes, shape).is_err(), "{shape:?}");
    }
    assert!(View::from_bytes(DType::F64, &bytes, &[2, 1, 4]).is_ok());
}

/// Strides and offsets of arrays without elements mean nothing.
#[test]
fn empty_views_with_wild_strides_reduce() {
    let most = isize::MAX;
    for strides in [[most, most], [isize::MIN, isize::MIN], [most, isize::MIN], [0, 0]] {
        let view = View::strided(DType::F32, &[], usize::MAX, &[5, 0], &strides).unwrap();
        assert!(view.is_empty() && view.contiguous() == Some(&[]));
        let sums = Reduction::of(Op::Sum).axis(1).run(&view).unwrap();
        assert_eq!(sums.slice::<f32>(Op::Sum), Some(&[0.0f32; 5][..]));
        assert!(Reduction::of(Op::Sum).axis(0).run(&view).unwrap().columns()[0].is_empty());
        let dot = Reduction::of(Op::Dot).axis(1).run_pair(&view, &view).unwrap();
        assert_eq!(dot.slice::<f32>(Op::Dot), Some(&[0.0f32; 5][..]));
    }
    // One element of an axis: its stride means nothing either.
    let x = [1.0f32, 2.0, 3.0];
    let bytes = bytemuck::cast_slice(&x);
    for wild in [most, isize::MIN] {
        let view = View::strided(DType::F32, bytes, 0, &[1, 3, 1], &[wild, 4, wild]).unwrap();
        for axes in [vec![0, 1, 2], vec![1], vec![0], vec![2], vec![]] {
            let answer = Reduction::new([Op::Sum, Op::ArgMax]).axes(axes).run(&view).unwrap();
            let total: f32 = answer.slice::<f32>(Op::Sum).unwrap().iter().sum();
            assert_eq!(total, 6.0);
        }
    }
}

#[test]
fn axes_must_exist_and_be_named_once() {
    let x = [0.0; 6];
    let table = View::of_strided(&x, 0, &[2, 3], &[3, 1]).unwrap();
    let ask = |axes: &[isize]| Reduction::of(Op::Sum).axes(axes.iter().copied()).run(&table);
    for axis in [2, -3, isize::MAX, isize::MIN] {
        assert_eq!(ask(&[0, axis]), Err(Error::AxisOutOfRange { axis, ndim: 2 }));
    }
    assert_eq!(ask(&[1, 1]), Err(Error::AxisRepeated { axis: 1 }));
    assert_eq!(ask(&[1, -1]), Err(Error::AxisRepeated { axis: -1 }));
    let scalar = View::of_strided(&x, 0, &[], &[]).unwrap();
    assert_eq!(
        Reduction::of(Op::Sum).axis(0).run(&scalar),
        Err(Error::AxisOutOfRange { axis: 0, ndim: 0 })
    );
}

#[test]
fn two_arrays_must_agree() {
    let (x, y, z) = ([1.0; 6], [1.0f32; 6], [1.0; 5]);
    let dot = Reduction::of(Op::Dot);
    assert!(matches!(dot.run_pair(&x, &y), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(dot.run_pair(&x, &z), Err(Error::ShapeMismatch { .. })));
    let table = View::of_strided(&x, 0, &[2, 3], &[3, 1]).unwrap();
    assert!(matches!(dot.run_pair(&x, &table), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(dot.partial_pair(&x, &z, 0), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(warpfold::dot(&x, &z), Err(Error::ShapeMismatch { .. })));
    assert_eq!(dot.run(&x), Err(Error::Arity { op: Op::Dot, takes: 2, given: 1 }));
    assert_eq!(
        Reduction::of(Op::Sum).run_pair(&x, &x),
        Err(Error::Arity { op: Op::Sum, takes: 1, given: 2 })
    );
    assert!(matches!(
        Reduction::new([Op::Dot, Op::Sum]).run_pair(&x, &x),
        Err(Error::Arity { .. })
    ));
}

#[test]
fn types_and_operations_that_are_not_there() {
    let x = [1.0; 4];
    for op in [Op::And, Op::Or, Op::Xor] {
        let refused = Err(Error::UnsupportedType { op, dtype: DType::F64 });
        assert_eq!(Reduction::of(op).run(&x), refused);
        assert!(Reduction::of(op).partial(&x, 0).is_err());
        assert!(Reduction::of(op).workers(DType::F16, 1).is_err());
    }
    assert!(Reduction::of(Op::Sum).device(Device::Cpu).run(&x).is_ok());
    let over = Reduction::of(Op::Sum).out(DType::U8).run(&[200u8, 100]).unwrap_err();
    assert!(matches!(&over, Error::Overflow { total, .. } if total == "300"));
    let below = Reduction::of(Op::Sum).out(DType::U64).run(&[-1i8]).unwrap_err();
    assert!(matches!(below, Error::Overflow { .. }));
    assert!(matches!(Reduction::of(Op::Sum).run(&[i64::MAX, 1]), Err(Error::Overflow { .. })));
}

/// Even where there is no output to be wrong.
#[test]
fn nothing_asked_and_nothing_given() {
    let none: [f64; 0] = [];
    for op in Op::ALL {
        let question = Reduction::of(op);
        let answer = match (op.arity(), op.supports(DType::F64)) {
            (2, _) => question.run_pair(&none, &none),
            (_, true) => question.run(&none),
            _ => continue,
        };
        match op {
            Op::Min
            | Op::Max
            | Op::MinMax
            | Op::Range
            | Op::ArgMin
            | Op::ArgMax
            | Op::ArgMinMax => assert_eq!(answer, Err(Error::Empty { op })),
            _ => assert!(answer.is_ok(), "{op}"),
        }
    }
    let answer = Reduction::new([]).run(&[1.0, 2.0]).unwrap();
    assert!(answer.columns().is_empty() && answer.value().is_none());
    // No outputs: columns of the right type, no error for what is not there.
    let view = View::strided(DType::I16, &[], 0, &[0, 4], &[8, 2]).unwrap();
    for op in Op::ALL.into_iter().filter(|op| op.arity() == 1) {
        let answer = Reduction::of(op).axis(1).run(&view).unwrap();
        let column = &answer.columns()[0];
        assert!(column.is_empty() && column.numbers.dtype() == op.answer_type(DType::I16));
    }
}

#[test]
fn shapes_given_to_answers_are_checked() {
    let wild = vec![usize::MAX, usize::MAX];
    let answer = Reduction::of(Op::Sum).run(&[1.0]).unwrap();
    assert!(answer.clone().reshaped(wild.clone()).is_err());
    assert!(answer.clone().reshaped(vec![1, 1]).is_ok());
    assert!(warpfold::Answer::from_columns(wild.clone(), answer.columns().to_vec()).is_err());
    let partial = Reduction::of(Op::Sum).partial(&[1.0], 0).unwrap();
    assert!(partial.clone().reshaped(wild.clone()).is_err());
    assert!(Partial::joined(wild, vec![partial.clone()]).is_err());
    assert!(Partial::joined(vec![2], Vec::new()).is_err());
    let two = Partial::joined(vec![2], vec![partial.clone(), partial]).unwrap();
    assert_eq!(two.finish(&Rules::default()).unwrap().slice::<f64>(Op::Sum).unwrap(), [1.0; 2]);
}

#[test]
fn positions_end_at_64_bits() {
    for op in Op::ALL.into_iter().filter(|op| op.arity() == 1 && op.supports(DType::F64)) {
        let question = Reduction::of(op);
        let last = u64::MAX - 3;
        let partial = question.partial(&[1.0, 2.0, 3.0], last).unwrap();
        // Only elements from 0 on make a whole; others have gaps at most.
        let _ = partial.finish(&Rules::default());
        assert!(question.partial(&[1.0, 2.0, 3.0], last + 1).is_err(), "{op}");
        assert!(question.partial(&[1.0, 2.0, 3.0], u64::MAX).is_err(), "{op}");
    }
}

/// More answers than memory holds: an error, not an abort.
#[test]
fn too_many_outputs() {
    let x = [1.0f64];
    let view = View::of_strided(&x, 0, &[1 << 60], &[0]).unwrap();
    assert!(Reduction::of(Op::Sum).axes([]).run(&view).is_err());
    assert!(Reduction::of(Op::Sum).axes([]).partial(&view, 0).is_err());
    let empty = View::strided(DType::F64, &[], 0, &[1 << 60, 0], &[0, 8]).unwrap();
    assert!(Reduction::of(Op::Sum).axis(1).run(&empty).is_err());
}

/// Strides that mean nothing, of axes of one element and of arrays of none, may be any numbers.
#[test]
fn strides_that_mean_nothing_change_nothing() {
    const WILD: [isize; 9] = [
        isize::MIN,
        isize::MIN + 1,
        isize::MIN / 8,
        -1,
        0,
        1,
        isize::MAX / 8 + 1,
        (usize::MAX / 4) as isize,
        isize::MAX,
    ];
    // As many as five axes of four have.
    let items: Vec<f64> = (0..1024).map(|i| f64::from(i * 7 % 31) - 9.0).collect();
    let mut random = Random::new(0x5712);
    let ops = [Op::Sum, Op::Var, Op::Max, Op::ArgMin, Op::Prod, Op::Any, Op::LogSumExp];
    for round in 0..400 {
        let shape: Vec<usize> =
            (0..1 + random.below(5)).map(|_| random.pick(&[1, 1, 1, 2, 3, 4, 0])).collect();
        let none = shape.contains(&0);
        let (mut strides, mut wild, mut step) = (Vec::new(), Vec::new(), 1);
        for &n in shape.iter().rev() {
            strides.insert(0, step);
            wild.insert(0, if n == 1 || none { random.pick(&WILD) } else { step });
            step *= n.max(1) as isize;
        }
        let axes: Vec<isize> = (0..shape.len() as isize).filter(|_| random.below(2) == 0).collect();
        let op = random.pick(&ops);
        let question = Reduction::of(op).axes(axes.iter().copied());
        let note = format!("round {round}: {op} of {shape:?} by {wild:?} over {axes:?}");
        let of = |strides: &[isize]| View::of_strided(&items, 0, &shape, strides).unwrap();
        let answer = |view: View<'_>| question.run(view).map(|answer| format!("{answer:?}"));
        let expected = answer(of(&strides));
        assert_eq!(answer(of(&wild)), expected, "{note}");
        let bytes: &[u8] = bytemuck::cast_slice(&items);
        // As they are, in bytes.
        let raw: Vec<isize> = (0..shape.len())
            .map(|i| if shape[i] == 1 || none { wild[i] } else { 8 * wild[i] })
            .collect();
        let view = View::strided(DType::F64, bytes, 0, &shape, &raw).unwrap();
        assert_eq!(answer(view), expected, "{note}");
        if let &[n, m] = &shape[..] {
            let axes = (wild[0].cast_unsigned(), wild[1].cast_unsigned());
            let view = ndarray::ArrayView2::from_shape((n, m).strides(axes), &items);
            if let Ok(view) = view {
                assert_eq!(answer(View::from(view)), expected, "{note}");
            }
        }
    }
    let wild = usize::MAX / 4;
    let row = ndarray::ArrayView2::from_shape((1, 3).strides((wild, 1)), &items).unwrap();
    assert_eq!(Reduction::of(Op::Sum).run(row).unwrap().number(Op::Sum), Some(-9.0 - 2.0 + 5.0));
}

#[test]
#[should_panic(expected = "capacity overflow")]
fn more_numbers_than_there_are_addresses_do_not_come_to_be() {
    let _ = warpfold::Numbers::zeros(DType::F64, usize::MAX / 4);
}

#[test]
fn each_axis_that_is_named_counts() {
    let table = [[1, 2, 3], [4, 5, 6]];
    let sum = |question: Reduction| question.run(&table).unwrap().to_string();
    assert_eq!(sum(Reduction::of(Op::Sum).axis(0).axis(1)), "21");
    assert_eq!(sum(Reduction::of(Op::Sum).axes([0]).axis(-1)), "21");
    // A list is the whole list.
    assert_eq!(sum(Reduction::of(Op::Sum).axis(0).axes([1])), "[6, 15]");
    let twice = Reduction::of(Op::Sum).axis(1).axis(-1).run(&table).unwrap_err();
    assert_eq!(twice, Error::AxisRepeated { axis: -1 });
}
