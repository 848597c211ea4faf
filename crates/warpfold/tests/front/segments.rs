//! Segments: what `Reduction::run` says of each segment alone, bit for bit.

use crate::arrays::Random;
use crate::thorough::up_to;
use warpfold::internal::ForReaders;
use warpfold::{
    Answer, Column, DType, Error, Input, NanPolicy, Op, Reduction, Segments, Threads, View,
};

/// Whether each column has the values of the segments alone.
fn same(got: &Answer, alone: &[Answer], note: &str) {
    assert_eq!(got.shape(), [alone.len()], "{note}");
    for (i, one) in alone.iter().enumerate() {
        for (column, one) in got.columns().iter().zip(one.columns()) {
            assert_eq!(column.op, one.op);
            assert_eq!(Column::get(column, i), one.get(0), "{note}: {} of segment {i}", one.op);
        }
    }
}

/// Checks segments of an array, as all forms that can say them.
fn check<T: warpfold::Item>(question: &Reduction, x: &[T], lens: &[usize]) {
    let mut offsets = vec![0usize];
    lens.iter().for_each(|len| offsets.push(offsets[offsets.len() - 1] + len));
    let alone: Result<Vec<Answer>, Error> =
        offsets.windows(2).map(|w| question.run(&x[w[0]..w[1]])).collect();
    let alone = alone.unwrap();
    let i32s: Vec<i32> = offsets.iter().map(|&o| o as i32).collect();
    let lengths: Vec<u64> = lens.iter().map(|&len| len as u64).collect();
    let (starts, stops) = (&offsets[..lens.len()], &offsets[1..]);
    for threads in [1, 3] {
        let question = question.clone().threads(Threads::Exactly(threads));
        for segments in [
            Segments::Offsets(&i32s),
            Segments::Lengths(&lengths),
            Segments::StartsStops(&starts, &stops),
        ] {
            let note = format!("{:?} {segments:.0?}", question.ops());
            same(&question.clone().segments(segments).run(x).unwrap(), &alone, &note);
        }
    }
}

fn noise(n: usize) -> Vec<f64> {
    let mut random = Random::new(0x9e37_79b9);
    (0..n).map(|_| (random.next() >> 11) as f64 * 2f64.powi(-53) - 0.25).collect()
}

#[test]
fn lengths_around_every_boundary_of_the_kernels() {
    let around = |n: usize| [n - 1, n, n + 1];
    let lens: Vec<usize> = [1, 8, 16, 32, 64, 512, 4096].into_iter().flat_map(around).collect();
    let x = noise(lens.iter().sum());
    let plain = [Op::Sum, Op::Mean, Op::Norm2, Op::CountNonzero, Op::Prod];
    check(&Reduction::new(plain), &x, &lens);
    for op in plain {
        check(&Reduction::of(op), &x, &lens);
        let f32s: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        check(&Reduction::of(op), &f32s, &lens);
    }
    let some: Vec<usize> = lens.iter().copied().filter(|&len| len > 0).collect();
    check(&Reduction::new([Op::ArgMinMax, Op::Range, Op::Std, Op::NormInf]), &x, &some);
}

#[test]
fn all_empty_and_empties_at_both_ends() {
    let x = noise(10);
    for lens in [&[0, 0, 0][..], &[0, 0, 10, 0, 0], &[0, 4, 0, 6, 0], &[]] {
        let x = &x[..lens.iter().sum()];
        check(&Reduction::new([Op::Sum, Op::Prod, Op::Count, Op::All, Op::Mean, Op::Var]), x, lens);
        check(&Reduction::of(Op::Sum), x, lens);
        check(&Reduction::of(Op::Mean), x, lens);
    }
    let i8s: Vec<i8> = (0..10).collect();
    check(&Reduction::of(Op::Sum), &i8s, &[0, 3, 0, 7, 0]);
    let bools: Vec<bool> = (0..10).map(|i| i % 3 == 0).collect();
    check(&Reduction::new([Op::Any, Op::All, Op::Sum]), &bools, &[0, 3, 0, 7, 0]);
}

#[test]
fn one_huge_among_many_of_one_at_each_end() {
    let (many, huge) = (up_to(1_000_000, 20_000), 1 << 19);
    let x = noise(many + huge);
    for place in [0, many / 2, many] {
        let mut lens = vec![1usize; many];
        lens.insert(place, huge);
        let question = Reduction::new([Op::Sum, Op::ArgMax]);
        let mut offsets = vec![0u64];
        lens.iter().for_each(|&len| offsets.push(offsets[offsets.len() - 1] + len as u64));
        let one = question.run(&x[place..place + huge]).unwrap();
        for threads in [1, 4] {
            let question = question.clone().threads(Threads::Exactly(threads));
            let answer = question.segments(Segments::Offsets(&offsets)).run(&x).unwrap();
            let sums = answer.slice::<f64>(Op::Sum).unwrap();
            assert_eq!(sums[place], one.number::<f64>(Op::Sum).unwrap());
            let at = answer.slice::<u64>(Op::ArgMax).unwrap();
            assert_eq!(at[place], one.number::<u64>(Op::ArgMax).unwrap());
            for (i, &sum) in sums.iter().enumerate().filter(|&(i, _)| i != place) {
                assert_eq!((sum, at[i]), (x[offsets[i] as usize], 0));
            }
        }
    }
}

#[test]
fn skewed_and_alternating_lengths() {
    let mut random = Random::new(7);
    let mut zipf = Vec::new();
    while zipf.iter().sum::<usize>() < up_to(3_000_000, 100_000) {
        let u = (random.next() >> 11) as f64 * 2f64.powi(-53);
        zipf.push((1.0 / (1.0 - u)).min(1e5) as usize);
    }
    let alternating: Vec<usize> = (0..40).map(|i| if i % 2 == 0 { 1 } else { 4096 }).collect();
    for lens in [zipf, alternating] {
        let x = noise(lens.iter().sum());
        check(&Reduction::of(Op::Sum), &x, &lens);
        check(&Reduction::of(Op::ArgMin), &x, &lens);
        check(&Reduction::new([Op::Min, Op::Max]).nan(NanPolicy::Omit), &x, &lens);
        let i32s: Vec<i32> = x.iter().map(|x| (x * 1e9) as i32).collect();
        check(&Reduction::of(Op::Sum), &i32s, &lens);
        check(&Reduction::of(Op::Var).ddof(1), &i32s, &lens);
    }
}

#[test]
fn segments_may_overlap_leave_gaps_and_descend() {
    let x = noise(1000);
    let starts = [900i64, 500, 0, 0, 250, 999, 1000];
    let stops = [1000u32, 700, 1000, 1, 250, 1000, 1000];
    let question = Reduction::new([Op::Sum, Op::Mean, Op::Count]);
    let segments = Segments::StartsStops(&starts, &stops);
    let got = question.clone().segments(segments).run(&x).unwrap();
    let alone: Vec<Answer> = starts
        .iter()
        .zip(&stops)
        .map(|(&start, &stop)| question.run(&x[start as usize..stop as usize]).unwrap())
        .collect();
    same(&got, &alone, "starts and stops");
}

#[test]
fn what_a_sum_passes_on_the_way_does_not_matter() {
    let x = [1e308, 1e308, -1e308, 1.0, f64::NAN, 2.0, f64::INFINITY, 3.0, 4.0, f64::INFINITY];
    let lens = [3, 1, 1, 1, 1, 2, 1];
    check(&Reduction::of(Op::Sum), &x, &lens);
    check(&Reduction::of(Op::Max), &x, &lens);
    check(&Reduction::of(Op::ArgMax), &x, &lens);
    let sums = Reduction::of(Op::Sum).segments(Segments::Lengths(&lens)).run(&x).unwrap();
    let sums = sums.slice::<f64>(Op::Sum).unwrap();
    // A segment is not what lies beside it.
    assert_eq!((sums[0], sums[1], sums[3], sums[5]), (1e308, 1.0, 2.0, 7.0));
    assert!(sums[2].is_nan());
    // Differences of prefix sums would lose these.
    let far = [1e300, 1e-300, 1e-300];
    check(&Reduction::of(Op::Sum), &far, &[1, 2]);
}

#[test]
fn every_operation_and_type_in_one_call_and_alone() {
    let mut random = Random::new(99);
    let words: Vec<u64> = (0..4096).map(|_| random.next()).collect();
    for dtype in DType::ALL {
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let len = 700;
        let view = View::from_bytes(dtype, &bytes[..len * dtype.size()], &[len]).unwrap();
        let offsets = [0u32, 1, 3, 10, 100, 101, 400, 700];
        let all: Vec<Op> =
            Op::ALL.into_iter().filter(|op| op.supports(dtype) && op.arity() == 1).collect();
        for ops in all.iter().map(|&op| vec![op]).chain([all.clone()]) {
            for question in [
                Reduction::new(ops.clone()).wrap(true),
                Reduction::new(ops.clone()).wrap(true).nan(NanPolicy::Omit).ddof(2),
                Reduction::new(ops.clone()).out(DType::F64),
                Reduction::new(ops.clone()).out(DType::F32),
            ] {
                let alone: Result<Vec<Answer>, Error> = offsets
                    .windows(2)
                    .map(|w| {
                        let (start, len) = (w[0] as usize, (w[1] - w[0]) as usize);
                        let size = dtype.size();
                        let bytes = &bytes[start * size..(start + len) * size];
                        question.run(View::from_bytes(dtype, bytes, &[len]).unwrap())
                    })
                    .collect();
                let got = question.clone().segments(Segments::Offsets(&offsets)).run(&view);
                match (got, alone) {
                    (Ok(got), Ok(alone)) => same(&got, &alone, &format!("{ops:?} of {dtype}")),
                    (Err(Error::InSegment { source, .. }), Err(error)) => {
                        assert_eq!(*source, error)
                    }
                    (Err(got), Err(error)) => assert_eq!(got, error),
                    (got, alone) => panic!("{ops:?} of {dtype}: {got:?}, not {alone:?}"),
                }
            }
        }
        let dot = Reduction::of(Op::Dot).wrap(true);
        let got = dot.clone().segments(Segments::Fixed(350)).run_pair(&view, &view).unwrap();
        let half = |i: usize| {
            let size = 350 * dtype.size();
            View::from_bytes(dtype, &bytes[i * size..(i + 1) * size], &[350]).unwrap()
        };
        let alone = [0, 1].map(|i| dot.run_pair(half(i), half(i)).unwrap());
        same(&got, &alone, &format!("dot of {dtype}"));
    }
}

#[test]
fn elements_without_a_value_are_left_out_and_count_as_positions() {
    let x: Vec<f64> = (0..40).map(|i| f64::from((i * 7) % 11)).collect();
    let bits = [0b0110_1111, 0xff, 0x00, 0b1010_1010, 0b0000_1111];
    let offsets = [0i32, 0, 3, 9, 16, 25, 40];
    let input = || Input::masked(&x, &bits, 0).unwrap();
    for ops in [&[Op::Sum, Op::ArgMax, Op::Count, Op::Mean][..], &[Op::Prod], &[Op::ArgMin]] {
        let question = Reduction::new(ops.iter().copied());
        for (from, to) in [(2, 4), (0, 2), (4, 7)] {
            let offsets = &offsets[from..to];
            let got = question.clone().segments(Segments::Offsets(&offsets)).run(input());
            let alone: Result<Vec<Answer>, Error> = offsets
                .windows(2)
                .map(|w| {
                    let (start, stop) = (w[0] as usize, w[1] as usize);
                    question.run(Input::masked(&x[start..stop], &bits, start).unwrap())
                })
                .collect();
            match (got, alone) {
                (Ok(got), Ok(alone)) => same(&got, &alone, &format!("{ops:?}")),
                (got, alone) => assert_eq!(got.is_err(), alone.is_err(), "{ops:?}"),
            }
        }
    }
    let dot = Reduction::of(Op::Dot).segments(Segments::Fixed(8));
    let got = dot.run_pair(input(), &x).unwrap();
    let expected: Vec<f64> = (0..5)
        .map(|s| {
            let valid = |i: usize| bits[i / 8] >> (i % 8) & 1 == 1;
            (s * 8..s * 8 + 8).filter(|&i| valid(i)).map(|i| x[i] * x[i]).sum()
        })
        .collect();
    assert_eq!(got.slice::<f64>(Op::Dot), Some(&expected[..]));
}

#[test]
fn segments_without_an_answer_are_named() {
    let sum = |x: &[i64], lens: &[usize]| {
        Reduction::of(Op::Sum).segments(Segments::Lengths(&lens)).run(x).unwrap_err()
    };
    let error = sum(&[1, 2, i64::MAX, 1, i64::MAX, 5], &[2, 0, 2, 2]);
    assert!(error.to_string().starts_with("segment 2: sum is 9223372036854775808"), "{error}");
    assert!(error.hint().unwrap().contains("--wrap"));

    let x = [1.0, f64::NAN, f64::NAN];
    let question = Reduction::new([Op::Sum, Op::Min]).nan(NanPolicy::Error);
    let error = question.segments(Segments::Fixed(1)).run(&x).unwrap_err();
    let source = Box::new(Error::NanFound { count: 1, first: None });
    assert_eq!(error, Error::InSegment { segment: 1, source });

    for op in [Op::Min, Op::Max, Op::MinMax, Op::Range, Op::ArgMin, Op::ArgMinMax] {
        let question = Reduction::of(op).segments(Segments::Offsets(&[0, 1, 1, 3, 3]));
        let error = question.run(&[1u8, 2, 3]).unwrap_err();
        let none: [u8; 0] = [];
        let source = Box::new(Reduction::of(op).run(&none).unwrap_err());
        assert_eq!(error, Error::InSegment { segment: 1, source });
        assert!(error.hint().unwrap().contains("initial"));
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let x = [1.0, 2.0, 3.0];
    let error = |reduction: Reduction| reduction.segments(Segments::Fixed(1)).run(&x).unwrap_err();
    assert!(matches!(error(Reduction::of(Op::Sum).axes([])), Error::BadSegments { .. }));
    assert!(matches!(error(Reduction::of(Op::Sum).axis(1)), Error::AxisOutOfRange { .. }));
    assert!(matches!(error(Reduction::of(Op::Dot)), Error::Arity { .. }));
    assert!(matches!(error(Reduction::of(Op::Xor)), Error::UnsupportedType { .. }));
    #[cfg(not(feature = "sim"))]
    {
        let named = error(Reduction::of(Op::Sum).device(warpfold::Device::Sim));
        assert!(matches!(&named, Error::Device { .. }) && named.hint().is_some(), "{named}");
    }
    let out = error(Reduction::of(Op::Sum).out(DType::I8));
    assert_eq!(out, Reduction::of(Op::Sum).out(DType::I8).run(&x).unwrap_err());

    let matrix = Reduction::of(Op::Sum).segments(Segments::Fixed(1)).run(&[[1, 2], [3, 4]]);
    assert!(matrix.unwrap_err().to_string().contains("[2, 2]"));
    let axis = Reduction::of(Op::Sum).axis(-1).segments(Segments::Fixed(3)).run(&x).unwrap();
    assert_eq!(axis.slice::<f64>(Op::Sum), Some(&[6.0][..]));
    let short = Reduction::of(Op::Dot).segments(Segments::Fixed(1)).run_pair(&x, &x[..2]);
    assert!(matches!(short, Err(Error::ShapeMismatch { .. })));
    assert!(Reduction::new([]).segments(Segments::Fixed(1)).run(&x).unwrap().columns().is_empty());
}

#[test]
fn initial_values_take_part() {
    let none: [i32; 0] = [];
    let of = |op| Reduction::of(op).initial(7);
    assert_eq!(of(Op::Min).run(&none).unwrap().number::<i32>(Op::Min), Some(7));
    assert_eq!(of(Op::Min).run(&[9, 8]).unwrap().number::<i32>(Op::Min), Some(7));
    assert_eq!(of(Op::Max).run(&[9, 8]).unwrap().number::<i32>(Op::Max), Some(9));
    assert_eq!(of(Op::Prod).run(&[9, 8]).unwrap().number::<i64>(Op::Prod), Some(504));
    let rows = of(Op::Sum).axis(1).run(&[[1u8, 2], [3, 4]]).unwrap();
    assert_eq!(rows.slice::<u64>(Op::Sum), Some(&[10, 14][..]));
    // With the elements of each output: the product of all of them.
    let x: Vec<f64> = noise(5000).iter().map(|x| x + 1.0).collect();
    let longer: Vec<f64> = x.iter().copied().chain([1.5]).collect();
    let with = Reduction::of(Op::Prod).initial(1.5).run(&x).unwrap();
    assert_eq!(with, Reduction::of(Op::Prod).run(&longer).unwrap());
    let masked = Input::masked(&x[..8], &[0b1011_0001], 0).unwrap();
    let sum = Reduction::of(Op::Sum).initial(100.0).run(masked).unwrap();
    let expected = warpfold::sum(&[x[0], x[4], x[5], x[7], 100.0]);
    assert_eq!(sum.number::<f64>(Op::Sum), Some(expected));

    let refused = |error: Result<Answer, Error>| {
        let error = error.unwrap_err();
        assert!(matches!(error, Error::BadInitial { .. }) && error.hint().is_some(), "{error}");
    };
    refused(of(Op::Mean).run(&[1, 2]));
    refused(of(Op::ArgMin).run(&[1, 2]));
    refused(of(Op::Dot).run_pair(&[1, 2], &[1, 2]));
    refused(Reduction::of(Op::Sum).initial(0.1).run(&[1, 2]));
    refused(Reduction::of(Op::Sum).initial(-1).run(&[1u8, 2]));
    refused(of(Op::Count).segments(Segments::Fixed(1)).run(&[1, 2]));
    assert!(matches!(of(Op::Sum).partial(&[1, 2], 0), Err(Error::BadInitial { .. })));
    let masked = Input::masked(&[1, 2], &[1], 0).unwrap();
    assert!(matches!(of(Op::Sum).partial(masked, 0), Err(Error::BadInitial { .. })));
    assert!(of(Op::Sum).workers(DType::I32, 1).is_err());

    let question = Reduction::new([Op::Min, Op::Sum]).segments(Segments::Offsets(&[0, 0, 2]));
    let answer = question.initial(5).run(&[4u16, 9]).unwrap();
    assert_eq!(answer.slice::<u16>(Op::Min), Some(&[5, 4][..]));
    assert_eq!(answer.slice::<u64>(Op::Sum), Some(&[5, 18][..]));
}
