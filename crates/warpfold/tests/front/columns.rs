//! Columns with missing values: the answers are those of the values alone, at the
//! positions that they have among all rows, however a column is cut up.

use crate::thorough::cases;
use proptest::prelude::*;
#[cfg(feature = "sim")]
use warpfold::Device;
use warpfold::{Error, Input, NanPolicy, Op, Reduction, Rules, Threads, Value};

/// A validity bitmap that begins at bit `offset`.
fn bits(valid: &[bool], offset: usize) -> Vec<u8> {
    let mut bits = vec![0u8; (offset + valid.len()).div_ceil(8)];
    // What lies before and behind says nothing.
    (0..offset).for_each(|bit| bits[bit / 8] |= 1 << (bit % 8));
    for (row, _) in valid.iter().enumerate().filter(|(_, valid)| **valid) {
        bits[(offset + row) / 8] |= 1 << ((offset + row) % 8);
    }
    bits
}

/// Rows, which of them are valid, and the offset of the bitmap. Bits that are no
/// values are as bad as can be.
fn columns() -> impl Strategy<Value = (Vec<f64>, Vec<bool>, usize)> {
    let runs = prop::collection::vec((1usize..3000, any::<bool>(), any::<u64>()), 0..40);
    (runs, 0usize..20).prop_map(|(runs, offset)| {
        let (mut rows, mut valid) = (Vec::new(), Vec::new());
        for (len, has, seed) in runs {
            for i in 0..len as u64 {
                let x = (seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                rows.push(if has { x as f64 * 0.1 } else { f64::NAN });
                valid.push(has);
            }
        }
        (rows, valid, offset)
    })
}

const PLAIN: [Op; 8] =
    [Op::Sum, Op::Mean, Op::Var, Op::Norm2, Op::Count, Op::CountNan, Op::Any, Op::NormInf];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn values_alone_at_the_positions_of_rows((rows, valid, offset) in columns(), cut: usize) {
        let bits = bits(&valid, offset);
        let column = || Input::masked(&rows, &bits, offset).unwrap();
        let (values, places): (Vec<f64>, Vec<u64>) = (0..rows.len())
            .filter(|&row| valid[row])
            .map(|row| (rows[row], row as u64))
            .unzip();
        prop_assert_eq!(column().missing(), rows.len() - values.len());

        let plain = Reduction::new(PLAIN);
        prop_assert_eq!(plain.run(column()), plain.run(&values));

        let extremes = Reduction::new([Op::ArgMinMax, Op::MinMax]);
        match extremes.run(&values) {
            Ok(alone) => {
                let Some(Value::Pair(low, high)) = alone.column(Op::ArgMinMax).unwrap().get(0) else {
                    panic!("a pair")
                };
                let at = |index: warpfold::Scalar| places[index.to_f64() as usize];
                let found = extremes.run(column()).unwrap();
                prop_assert_eq!(found.number(Op::ArgMinMax), Some(at(low)));
                let second = found.column(Op::ArgMinMax).unwrap().second.clone().unwrap();
                prop_assert_eq!(second.as_slice(), Some(&[at(high)][..]));
                prop_assert_eq!(found.column(Op::MinMax), alone.column(Op::MinMax));
            }
            Err(error) => prop_assert_eq!(extremes.run(column()), Err(error)),
        }

        // A tree folds its identity where there is no value.
        let ones: Vec<f64> =
            rows.iter().zip(&valid).map(|(&x, &has)| if has { x } else { 1.0 }).collect();
        let product = Reduction::of(Op::Prod);
        prop_assert_eq!(product.run(column()), product.run(&ones));

        // Any cut, any number of threads.
        let question = Reduction::new([Op::Sum, Op::ArgMax, Op::LogSumExp, Op::Prod, Op::CountNan]);
        let whole = question.partial(column(), 0).unwrap();
        prop_assert_eq!(whole.missing() as usize, rows.len() - values.len());
        let cut = if rows.is_empty() { 0 } else { cut % rows.len() };
        let (head, tail) = rows.split_at(cut);
        let mut parts =
            question.partial(Input::masked(tail, &bits, offset + cut).unwrap(), cut as u64).unwrap();
        parts.merge(&question.partial(Input::masked(head, &bits, offset).unwrap(), 0).unwrap()).unwrap();
        prop_assert_eq!(&parts, &whole);
        let one = question.clone().threads(Threads::Exactly(1));
        prop_assert_eq!(&one.partial(column(), 0).unwrap(), &whole);
    }
}

#[cfg(feature = "sim")]
#[test]
fn on_the_interpreted_device() {
    let rows: Vec<f32> = (0..6000).map(|i| i as f32 * 0.1).collect();
    let valid: Vec<bool> = (0..6000).map(|i| i % 1000 > 3).collect();
    let bits = bits(&valid, 3);
    let column = || Input::masked(&rows, &bits, 3).unwrap();
    let question = Reduction::new([Op::Sum, Op::ArgMin, Op::Count]);
    let there = question.clone().device(Device::Sim).run(column()).unwrap();
    assert_eq!(there, question.run(column()).unwrap());
    assert_eq!(there.number::<u64>(Op::ArgMin), Some(4));
}

#[test]
fn each_row_alone() {
    let rows = [3, 1, 2];
    let column = || Input::masked(&rows, &[0b101], 0).unwrap();
    let each = Reduction::new([Op::Sum, Op::Count]).axes([]);
    let answer = each.run(column()).unwrap();
    assert_eq!(answer.slice::<i64>(Op::Sum), Some(&[3, 0, 2][..]));
    assert_eq!(answer.slice::<u64>(Op::Count), Some(&[1, 0, 1][..]));
    let least = Reduction::of(Op::Min).axes([]).run(column());
    assert_eq!(least, Err(Error::Empty { op: Op::Min }));
}

#[test]
fn shapes_and_refusals() {
    let column = || Input::masked(&[1.0, 2.0], &[0b01], 0).unwrap();
    let kept = Reduction::of(Op::Sum).axis(0).keepdims(true).run(column()).unwrap();
    assert_eq!((kept.shape(), kept.slice::<f64>(Op::Sum)), (&[1][..], Some(&[1.0][..])));
    let sum = Reduction::of(Op::Sum);
    assert!(matches!(sum.clone().axis(1).run(column()), Err(Error::AxisOutOfRange { .. })));
    assert!(matches!(Reduction::of(Op::Xor).run(column()), Err(Error::UnsupportedType { .. })));
    assert!(matches!(Reduction::of(Op::Dot).run(column()), Err(Error::Arity { .. })));
    let late = sum.partial(column(), u64::MAX);
    assert_eq!(late.err(), Some(Error::StartTooLarge { start: u64::MAX, len: 2 }));
    // A missing value is no NaN.
    let rows = [1.0, f64::NAN];
    let strict = sum.nan(NanPolicy::Error).run(Input::masked(&rows, &[0b01], 0).unwrap());
    assert_eq!(strict.unwrap().number(Op::Sum), Some(1.0));
}

#[test]
fn no_value_at_all() {
    let nothing = || Input::masked(&[7u8; 9], &[0, 0], 2).unwrap();
    let answer = Reduction::new([Op::Sum, Op::Count, Op::All]).run(nothing()).unwrap();
    assert_eq!(answer.to_string(), "sum: 0\ncount: 0\nall: true");
    assert_eq!(Reduction::of(Op::Max).run(nothing()), Err(Error::Empty { op: Op::Max }));
}

#[test]
fn pairs_of_which_one_is_missing_are_left_out() {
    let left = Input::masked(&[1.0, 10.0, 100.0], &[0b011], 0).unwrap();
    let right = || Input::masked(&[2.0, 3.0, 4.0], &[0b101], 0).unwrap();
    let dot = Reduction::of(Op::Dot);
    let answer = dot.run_pair(left.clone(), right()).unwrap();
    assert_eq!(answer.number(Op::Dot), Some(2.0));
    let answer = dot.run_pair(&[1.0, 10.0, 100.0], right()).unwrap();
    assert_eq!(answer.number(Op::Dot), Some(402.0));
    let part = dot.partial_pair(left, right(), 0).unwrap();
    assert_eq!(part.finish(&Rules::new()).unwrap().number(Op::Dot), Some(2.0));
    assert!(matches!(dot.run_pair(&[1.0], right()), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(dot.run_pair(&[1u8; 3], right()), Err(Error::DTypeMismatch { .. })));
}
