//! Integer and truth-value elements: totals, moments, bits and counts.

use crate::oracle::{self, Exact, state};
use crate::thorough::cases;
use proptest::prelude::*;
use warpfold_core::element::Bool8;
use warpfold_core::op::{Bits, Counts, Kind, Moments, Op, Rules, Run, Squares, State, Sums};
use warpfold_core::{DType, Element, Error, NanPolicy, Result, Scalar, Value};

const RULES: Rules = Rules::new();

fn int<T: Element>(x: T) -> i128 {
    i128::try_from(oracle::exact(x).numerator).unwrap()
}

fn expect_total(op: Op, dtype: DType, total: i128) -> Result<Value> {
    let signed = dtype.is_signed_int();
    let out = if signed { DType::I64 } else { DType::U64 };
    let fits = if signed { i64::try_from(total).is_ok() } else { u64::try_from(total).is_ok() };
    if fits {
        Ok(Value::One(Scalar::from_bits(out, total as u64)))
    } else {
        Err(Error::Overflow { op, total: total.to_string(), out })
    }
}

fn check<T: Element>(raw: &[u64]) {
    let items: Vec<T> = raw.iter().map(|&r| T::from_bits(r)).collect();
    let values: Vec<i128> = items.iter().map(|&x| int(x)).collect();
    let exacts: Vec<Exact> = values.iter().map(|&v| Exact::of_int(v)).collect();
    let total: i128 = values.iter().sum();
    let squares = oracle::sum(exacts.iter().map(|x| x.mul(x)));
    let square_total = i128::try_from(squares.numerator.clone());

    let sums = state::<Sums<T>>(Kind::Sum, 0, &items);
    let moments = state::<Moments<T>>(Kind::Moments, 0, &items);
    assert_eq!(sums.finish(Op::Sum, &RULES), expect_total(Op::Sum, T::DTYPE, total));
    assert_eq!(moments.finish(Op::Sum, &RULES), expect_total(Op::Sum, T::DTYPE, total));
    let wrap = RULES.wrap(true);
    assert_eq!(sums.finish(Op::Sum, &wrap).unwrap().first().to_bits(), total as u64);
    let narrow = RULES.wrap(true).out(DType::I16);
    let wrapped = Scalar::integer(i128::from(total as i16), DType::I16).unwrap();
    assert_eq!(sums.finish(Op::Sum, &narrow), Ok(Value::One(wrapped)));
    let out = RULES.out(DType::F32);
    let rounded = oracle::round::<f32>(&Exact::of_int(total));
    assert_eq!(sums.finish(Op::Sum, &out).unwrap().first().to_bits(), rounded);

    let norm1 = values.iter().map(|v| v.abs()).sum();
    let abs = state::<Sums<T>>(Kind::AbsSum, 0, &items);
    assert_eq!(abs.finish(Op::Norm1, &RULES), expect_total(Op::Norm1, T::DTYPE, norm1));
    let sq = state::<Squares<T>>(Kind::SquareSum, 0, &items);
    match square_total {
        Ok(v) => assert_eq!(sq.finish(Op::SumSq, &RULES), expect_total(Op::SumSq, T::DTYPE, v)),
        Err(_) => match sq.finish(Op::SumSq, &RULES) {
            Err(Error::Overflow { total, .. }) => assert_eq!(total, squares.numerator.to_string()),
            other => panic!("{other:?}"),
        },
    }
    let f64_bits = |s: Result<Value>| match s.unwrap() {
        Value::One(Scalar::F64(x)) => x.to_bits(),
        other => panic!("{other:?}"),
    };
    let norm2 = f64_bits(sq.finish(Op::Norm2, &RULES));
    assert_eq!(norm2, oracle::round_sqrt::<f64>(&squares));
    let n = items.len();
    if n > 0 {
        let mean = oracle::round::<f64>(&Exact::of_int(total).div(n as u128));
        assert_eq!(f64_bits(sums.finish(Op::Mean, &RULES)), mean);
        let var = oracle::variance(&oracle::squared_deviations(&exacts), exacts.len(), 0);
        assert_eq!(f64_bits(moments.finish(Op::Var, &RULES)), oracle::round::<f64>(&var));
        assert_eq!(f64_bits(moments.finish(Op::Std, &RULES)), oracle::round_sqrt::<f64>(&var));
    } else {
        assert!(f64::from_bits(f64_bits(sums.finish(Op::Mean, &RULES))).is_nan());
    }
    check_bits(&items, &values);
    check_counts(&items, &values);
}

fn check_bits<T: Element>(items: &[T], values: &[i128]) {
    let bits = state::<Bits<T>>(Kind::Bits, 0, items);
    let answers = [Op::And, Op::Or, Op::Xor].map(|op| bits.finish(op, &RULES).unwrap());
    let folds = [
        values.iter().fold(-1, |a, v| a & v),
        values.iter().fold(0, |a, v| a | v),
        values.iter().fold(0, |a, v| a ^ v),
    ];
    for (answer, fold) in answers.into_iter().zip(folds) {
        // From -1, an unsigned type keeps its own all ones.
        let expected = if T::DTYPE == DType::Bool {
            Scalar::Bool(fold != 0)
        } else {
            Scalar::from_bits(T::DTYPE, fold as u64)
        };
        assert_eq!(answer, Value::One(expected));
    }
}

fn check_counts<T: Element>(items: &[T], values: &[i128]) {
    let counts = state::<Counts<T>>(Kind::Counts, 0, items);
    let nonzero = values.iter().filter(|&&v| v != 0).count() as u64;
    let answer = |op| counts.finish(op, &RULES).unwrap().first();
    assert_eq!(answer(Op::Any), Scalar::Bool(nonzero > 0));
    assert_eq!(answer(Op::All), Scalar::Bool(nonzero == items.len() as u64));
    assert_eq!(answer(Op::Count), Scalar::from_bits(DType::U64, items.len() as u64));
    assert_eq!(answer(Op::CountNonzero), Scalar::from_bits(DType::U64, nonzero));
    assert_eq!(answer(Op::CountNan), Scalar::from_bits(DType::U64, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn every_integer_type(raw in proptest::collection::vec(
        prop_oneof![any::<u64>(), 0u64..3, Just(u64::MAX), Just(1 << 63), Just(i64::MAX as u64)],
        0..12,
    )) {
        check::<i8>(&raw);
        check::<i16>(&raw);
        check::<i32>(&raw);
        check::<i64>(&raw);
        check::<u8>(&raw);
        check::<u16>(&raw);
        check::<u32>(&raw);
        check::<u64>(&raw);
        check::<Bool8>(&raw);
    }
}

#[test]
fn totals_are_judged_at_the_end_only() {
    let s = state::<Sums<i64>>(Kind::Sum, 0, &[i64::MAX, 1, -1]);
    assert_eq!(
        s.finish(Op::Sum, &RULES),
        Ok(Value::One(Scalar::integer(i64::MAX.into(), DType::I64).unwrap()))
    );
    let s = state::<Sums<i64>>(Kind::Sum, 0, &[i64::MIN, -1]);
    let error = s.finish(Op::Sum, &RULES).unwrap_err();
    assert_eq!(error.to_string(), "sum is -9223372036854775809, which does not fit i64");
    let mut dot = Squares::<u64>::identity(Kind::Dot);
    dot.absorb(Run { start: 0, items: &[u64::MAX; 3], others: &[u64::MAX; 3] });
    let error = dot.finish(Op::Dot, &RULES).unwrap_err();
    assert_eq!(
        error,
        Error::Overflow {
            op: Op::Dot,
            total: "1020847100762815390279443357853047324675".into(),
            out: DType::U64,
        }
    );
}

#[test]
fn answers_in_other_types() {
    let s = state::<Sums<u8>>(Kind::Sum, 0, &[200, 100]);
    let to = |out| s.finish(Op::Sum, &RULES.out(out));
    assert_eq!(to(DType::I16), Ok(Value::One(Scalar::integer(300, DType::I16).unwrap())));
    let overflow = Error::Overflow { op: Op::Sum, total: "300".into(), out: DType::I8 };
    assert_eq!(to(DType::I8), Err(overflow));
    let refused = |op, dtype, out| Err(Error::UnsupportedOut { op, dtype, out });
    assert_eq!(to(DType::Bool), refused(Op::Sum, DType::U8, DType::Bool));
    let mean = s.finish(Op::Mean, &RULES.out(DType::I64));
    assert_eq!(mean, refused(Op::Mean, DType::U8, DType::I64));
    let s = state::<Sums<f32>>(Kind::Sum, 0, &[1.0]);
    let sum = s.finish(Op::Sum, &RULES.out(DType::I64));
    assert_eq!(sum, refused(Op::Sum, DType::F32, DType::I64));

    let c = state::<Counts<u8>>(Kind::Counts, 0, &[1; 300]);
    let to = |op, out| c.finish(op, &RULES.out(out));
    assert_eq!(
        to(Op::Count, DType::I32),
        Ok(Value::One(Scalar::integer(300, DType::I32).unwrap()))
    );
    let overflow = Error::Overflow { op: Op::Count, total: "300".into(), out: DType::U8 };
    assert_eq!(to(Op::Count, DType::U8), Err(overflow));
    assert_eq!(to(Op::Count, DType::F64), refused(Op::Count, DType::U8, DType::F64));
    assert_eq!(to(Op::Any, DType::U8), refused(Op::Any, DType::U8, DType::U8));
}

#[test]
fn nans_are_true_and_counted() {
    let c = state::<Counts<f32>>(Kind::Counts, 0, &[0.0, -0.0, f32::NAN, f32::NAN]);
    let ask = |op, nan| c.finish(op, &RULES.nan(nan)).map(|v| v.first().to_bits());
    use NanPolicy::{Error as Fail, Omit, Propagate};
    assert_eq!(ask(Op::Any, Propagate), Ok(1));
    assert_eq!(ask(Op::All, Propagate), Ok(0));
    assert_eq!(ask(Op::Count, Propagate), Ok(4));
    assert_eq!(ask(Op::CountNonzero, Propagate), Ok(2));
    assert_eq!(ask(Op::Any, Omit), Ok(0));
    assert_eq!(ask(Op::Count, Omit), Ok(2));
    assert_eq!(ask(Op::CountNonzero, Omit), Ok(0));
    let one = state::<Counts<f32>>(Kind::Counts, 0, &[1.0, f32::NAN]);
    let all = one.finish(Op::All, &RULES.nan(Omit));
    assert_eq!(all, Ok(Value::One(Scalar::Bool(true))));
    for nan in [Propagate, Omit, Fail] {
        assert_eq!(ask(Op::CountNan, nan), Ok(2));
    }
    assert_eq!(ask(Op::Any, Fail), Err(Error::NanFound { count: 2, first: None }));
}

#[test]
fn bits_of_floats_are_refused() {
    let s = state::<Bits<f32>>(Kind::Bits, 0, &[]);
    let refused = Error::UnsupportedType { op: Op::And, dtype: DType::F32 };
    assert_eq!(s.finish(Op::And, &RULES), Err(refused));
}
