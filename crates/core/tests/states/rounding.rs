//! Sums, means, norms and variances of floats against exact rationals.

use crate::oracle::{self, Exact, bytes, exact, state};
use crate::thorough::{cases, up_to};
use proptest::prelude::*;
use warpfold_core::element::{bf16, f16};
use warpfold_core::exact::FloatFormat;
use warpfold_core::op::{Kind, Moments, Op, Rules, Run, Squares, State, Sums};
use warpfold_core::{DType, Element, NanPolicy};

fn ask<S: State>(state: &S, op: Op, out: Option<DType>, ddof: u64) -> u64 {
    asked(state, op, &Rules::new().out(out).ddof(ddof))
}

fn asked<S: State>(state: &S, op: Op, rules: &Rules) -> u64 {
    let answer = state.finish(op, rules).unwrap().first();
    assert_eq!(answer.dtype(), rules.out.unwrap_or(S::Item::DTYPE));
    answer.to_bits()
}

/// Finite floats, what they come to, and their states.
struct Known<'a, T: FloatFormat> {
    items: &'a [T],
    total: Exact,
    abs_total: Exact,
    squares: Exact,
    product: Exact,
    deviations: Exact,
    sums: Sums<T>,
    abs: Sums<T>,
    sq: Squares<T>,
    dot: Squares<T>,
    moments: Moments<T>,
}

impl<'a, T: FloatFormat> Known<'a, T> {
    fn new(items: &'a [T]) -> Self {
        let values: Vec<Exact> = items.iter().map(|&x| exact(x)).collect();
        let mut dot = Squares::<T>::identity(Kind::Dot);
        let others: Vec<T> = items.iter().rev().copied().collect();
        dot.absorb(Run { start: 0, items, others: &others });
        Known {
            items,
            total: oracle::sum(values.iter().cloned()),
            abs_total: oracle::sum(values.iter().map(Exact::abs)),
            squares: oracle::sum(values.iter().map(|x| x.mul(x))),
            product: oracle::sum(values.iter().zip(values.iter().rev()).map(|(a, b)| a.mul(b))),
            deviations: oracle::squared_deviations(&values),
            sums: state(Kind::Sum, 0, items),
            abs: state(Kind::AbsSum, 0, items),
            sq: state(Kind::SquareSum, 0, items),
            dot,
            moments: state(Kind::Moments, 0, items),
        }
    }
}

/// Every operation, of one list of finite floats, rounded to `U`.
fn check_to<T: FloatFormat, U: FloatFormat>(known: &Known<'_, T>) {
    let out = Some(U::DTYPE);
    let Known { items, total, squares, deviations, sums, sq, moments, .. } = known;
    let n = items.len();

    assert_eq!(ask(sums, Op::Sum, out, 0), oracle::round::<U>(total), "sum {items:?}");
    let norm1 = ask(&known.abs, Op::Norm1, out, 0);
    assert_eq!(norm1, oracle::round::<U>(&known.abs_total), "norm1 {items:?}");
    assert_eq!(ask(sq, Op::SumSq, out, 0), oracle::round::<U>(squares), "sumsq {items:?}");
    let norm2 = oracle::round_sqrt::<U>(squares);
    assert_eq!(ask(sq, Op::Norm2, out, 0), norm2, "norm2 {items:?}");
    let dot = ask(&known.dot, Op::Dot, out, 0);
    assert_eq!(dot, oracle::round::<U>(&known.product), "dot {items:?}");

    assert_eq!(ask(moments, Op::Sum, out, 0), ask(sums, Op::Sum, out, 0));
    assert_eq!(ask(moments, Op::Norm2, out, 0), norm2);
    if n > 0 {
        let mean = oracle::round::<U>(&total.div(n as u128));
        assert_eq!(ask(sums, Op::Mean, out, 0), mean, "mean {items:?}");
        assert_eq!(ask(moments, Op::Mean, out, 0), mean);
    }
    for ddof in 0..2 {
        let [var, std] = [Op::Var, Op::Std].map(|op| ask(moments, op, out, ddof));
        if n as u64 > ddof {
            let v = oracle::variance(deviations, n, ddof);
            assert_eq!(var, oracle::round::<U>(&v), "var {items:?} ddof {ddof}");
            assert_eq!(std, oracle::round_sqrt::<U>(&v), "std {items:?} ddof {ddof}");
        } else {
            assert_eq!((var, std), (U::NAN_BITS, U::NAN_BITS));
        }
    }
    // 0.1 is the integer over 2^55.
    for (numerator, shift) in [
        (1, 1),
        (11, 2),
        (3_602_879_701_896_397, 55),
        ((1 << 60) - 128, 60),
        (3, 100),
        (-1, 0),
        (-11, 2),
        (-3_602_879_701_896_397, 55),
        (-(1 << 70), 0),
        (-1, 100),
    ] {
        let correction = numerator as f64 / (1u128 << shift) as f64;
        let rules = Rules::new().out(out).correction(correction).unwrap();
        let [var, std] = [Op::Var, Op::Std].map(|op| asked(moments, op, &rules));
        if n > 0 && n as f64 > correction {
            let v = oracle::corrected_variance(deviations, n, numerator, shift);
            assert_eq!(var, oracle::round::<U>(&v), "var {items:?} correction {correction}");
            assert_eq!(std, oracle::round_sqrt::<U>(&v), "std {items:?} correction {correction}");
        } else {
            assert_eq!((var, std), (U::NAN_BITS, U::NAN_BITS));
        }
    }
}

fn check<T: FloatFormat>(items: &[T]) {
    let known = Known::new(items);
    check_to::<T, f16>(&known);
    check_to::<T, bf16>(&known);
    check_to::<T, f32>(&known);
    check_to::<T, f64>(&known);
}

fn finite<T: FloatFormat>(bits: &[u64]) -> Vec<T> {
    let magnitude = |b: u64| b & (T::SIGN_BIT - 1);
    bits.iter().filter(|&&b| magnitude(b) < T::INFINITY_BITS).map(|&b| T::from_bits(b)).collect()
}

/// Bits that stay close in exponent, so that sums cancel and tie: a sign, an
/// exponent near `centre`, and few significand bits.
fn clustered<T: FloatFormat>(centre: u64, raw: &[u64]) -> Vec<T> {
    let top = T::INFINITY_BITS >> (T::PRECISION - 1);
    let bits: Vec<u64> = raw
        .iter()
        .map(|&r| {
            let sign = if r & 1 == 1 { T::SIGN_BIT } else { 0 };
            let field = (centre % top + (r >> 1) % 70).min(top - 1);
            let width = T::PRECISION - 1;
            let fraction = match r >> 8 & 3 {
                0 => 0,
                1 => 1,
                2 => (1 << width) - 1,
                _ => (r >> 10) & ((1 << width) - 1),
            };
            sign | field << width | fraction
        })
        .collect();
    finite(&bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn random_bits(raw in proptest::collection::vec(any::<u64>(), 0..9)) {
        check(&finite::<f16>(&raw));
        check(&finite::<bf16>(&raw));
        check(&finite::<f32>(&raw));
        check(&finite::<f64>(&raw));
    }

    #[test]
    fn close_exponents(centre: u64, raw in proptest::collection::vec(any::<u64>(), 1..9)) {
        check(&clustered::<f16>(centre, &raw));
        check(&clustered::<bf16>(centre, &raw));
        check(&clustered::<f32>(centre, &raw));
        check(&clustered::<f64>(centre, &raw));
    }

    #[test]
    fn subnormals(raw in proptest::collection::vec(any::<u64>(), 1..9)) {
        fn tiny<T: FloatFormat>(raw: &[u64]) -> Vec<T> {
            let keep = T::SIGN_BIT | ((2 << (T::PRECISION - 1)) - 1);
            raw.iter().map(|r| T::from_bits(r & keep)).collect()
        }
        check(&tiny::<f16>(&raw));
        check(&tiny::<bf16>(&raw));
        check(&tiny::<f32>(&raw));
        check(&tiny::<f64>(&raw));
    }

    #[test]
    fn the_smallest_and_the_largest(raw in proptest::collection::vec(0u8..12, 1..12)) {
        fn ends<T: FloatFormat>(raw: &[u8]) -> Vec<T> {
            let half_ulp = T::INFINITY_BITS - (u64::from(T::PRECISION) << (T::PRECISION - 1)) - (1 << (T::PRECISION - 1));
            let magnitudes = [1, 2, T::INFINITY_BITS - 1, half_ulp, half_ulp - (1 << (T::PRECISION - 1)), 0];
            let bits: Vec<u64> = raw.iter().map(|&r| {
                magnitudes[usize::from(r / 2)] | if r % 2 == 1 { T::SIGN_BIT } else { 0 }
            }).collect();
            finite(&bits)
        }
        check(&ends::<f16>(&raw));
        check(&ends::<bf16>(&raw));
        check(&ends::<f32>(&raw));
        check(&ends::<f64>(&raw));
    }

    /// Any split and any order give the same state and the same bytes.
    #[test]
    fn splits_and_orders(
        raw in proptest::collection::vec(any::<u64>(), 0..40),
        pieces in proptest::collection::vec(0usize..40, 0..5),
        turn in 0usize..40,
    ) {
        fn check<S: State>(kind: Kind, items: &[S::Item], cuts: &[usize], turn: usize) {
            let whole = bytes(&state::<S>(kind, 0, items));
            let mut turned = items.to_vec();
            turned.rotate_left(turn.min(items.len()));
            turned.reverse();
            let mut cuts: Vec<usize> = cuts.iter().map(|c| c % (items.len() + 1)).collect();
            cuts.extend([0, items.len()]);
            cuts.sort_unstable();
            let mut merged = S::identity(kind);
            for pair in cuts.windows(2).rev() {
                let part = state::<S>(kind, 0, &turned[pair[0]..pair[1]]);
                let part = S::read(kind, &bytes(&part)).unwrap();
                merged.merge(&part).unwrap();
            }
            assert_eq!(bytes(&merged), whole);
        }
        fn all<T: FloatFormat>(raw: &[u64], cuts: &[usize], turn: usize) {
            // Infinities and NaNs too.
            let items: Vec<T> = raw.iter().map(|&r| {
                let bits = if r % 5 == 0 { T::INFINITY_BITS | r & T::SIGN_BIT } else { r };
                T::from_bits(bits)
            }).collect();
            check::<Sums<T>>(Kind::Sum, &items, cuts, turn);
            check::<Sums<T>>(Kind::AbsSum, &items, cuts, turn);
            check::<Squares<T>>(Kind::SquareSum, &items, cuts, turn);
            check::<Moments<T>>(Kind::Moments, &items, cuts, turn);
        }
        all::<f16>(&raw, &pieces, turn);
        all::<bf16>(&raw, &pieces, turn);
        all::<f32>(&raw, &pieces, turn);
        all::<f64>(&raw, &pieces, turn);
    }
}

fn sum<T: FloatFormat>(items: &[T]) -> T {
    let s = state::<Sums<T>>(Kind::Sum, 0, items);
    T::from_bits(ask(&s, Op::Sum, None, 0))
}

fn pow2(e: i32) -> f64 {
    if e < -1022 {
        f64::from_bits(1 << (e + 1074))
    } else {
        f64::from_bits(((e + 1023) as u64) << 52)
    }
}

#[test]
fn overflow_begins_half_an_ulp_above_the_largest() {
    assert_eq!(sum(&[f64::MAX, pow2(969)]), f64::MAX);
    assert_eq!(sum(&[f64::MAX, pow2(970)]), f64::INFINITY);
    assert_eq!(sum(&[f64::MAX, pow2(970), -pow2(-1074)]), f64::MAX);
    assert_eq!(sum(&[-f64::MAX, -pow2(970)]), f64::NEG_INFINITY);
    assert_eq!(sum(&[-f64::MAX, -pow2(970), pow2(-1074)]), -f64::MAX);
    assert_eq!(sum(&[-f64::MAX, -1.0]), -f64::MAX);
    assert_eq!(sum(&[1e308, 1e308, -1e308]), 1e308);

    let (half, tiny) = (pow2(103) as f32, f32::from_bits(1));
    assert_eq!(sum(&[f32::MAX, half / 2.0]), f32::MAX);
    assert_eq!(sum(&[f32::MAX, half]), f32::INFINITY);
    assert_eq!(sum(&[f32::MAX, half, -tiny]), f32::MAX);
    let (half, tiny) = (f16::from_f32(16.0), f16::from_bits(1));
    assert_eq!(sum(&[f16::MAX, half]), f16::INFINITY);
    assert_eq!(sum(&[f16::MAX, half, -tiny]), f16::MAX);
    let (half, tiny) = (bf16::from_f64(pow2(119)), bf16::from_bits(1));
    assert_eq!(sum(&[bf16::MAX, half]), bf16::INFINITY);
    assert_eq!(sum(&[bf16::MAX, half, -tiny]), bf16::MAX);
}

#[test]
fn ties_are_broken_by_the_smallest_term() {
    let (half, tiny) = (pow2(-53), pow2(-1074));
    assert_eq!(sum(&[1.0, half]), 1.0);
    assert_eq!(sum(&[1.0, half, tiny]), 1.0 + pow2(-52));
    assert_eq!(sum(&[1.0, half, -tiny]), 1.0);
    assert_eq!(sum(&[1.0 + pow2(-52), half]), 1.0 + pow2(-51));
    assert_eq!(sum(&[-1.0, -half, -tiny]), -1.0 - pow2(-52));
    let (half, tiny) = (pow2(-24) as f32, f32::from_bits(1));
    assert_eq!(sum(&[1.0, half]), 1.0);
    assert_eq!(sum(&[1.0, half, tiny]), 1.0 + f32::EPSILON);
    assert_eq!(sum(&[1.0, half, -tiny]), 1.0);
}

#[test]
fn f32_is_not_rounded_through_f64() {
    // 1 + 2^-24 + 2^-60: an f64 drops the last term and leaves a tie.
    let items = [1.0f32, pow2(-24) as f32, pow2(-60) as f32];
    assert_eq!(sum(&items), 1.0 + f32::EPSILON);
}

#[test]
fn exact_zeros_are_positive_and_underflow_keeps_the_sign() {
    for items in [&[][..], &[-0.0], &[-0.0, -0.0], &[1.5, -1.5], &[pow2(-1074), -pow2(-1074)]] {
        assert_eq!(sum::<f64>(items).to_bits(), 0);
    }
    let s = state::<Sums<f64>>(Kind::Sum, 0, &[-pow2(-1074)]);
    assert_eq!(ask(&s, Op::Sum, Some(DType::F32), 0), 0x8000_0000);
}

#[test]
fn carries_ripple_through_all_limbs() {
    // All ones from 2^-1074 to 2^1023, then one more, then back.
    let ones: Vec<f64> = (-1074..1024).map(pow2).collect();
    let mut s = state::<Sums<f64>>(Kind::Sum, 0, &ones);
    assert_eq!(ask(&s, Op::Sum, None, 0), f64::INFINITY.to_bits());
    let mut negative =
        state::<Sums<f64>>(Kind::Sum, 0, &ones.iter().map(|x| -x).collect::<Vec<_>>());
    negative.merge(&state(Kind::Sum, 0, &[pow2(1023), pow2(1023)])).unwrap();
    assert_eq!(ask(&negative, Op::Sum, None, 0), 1);
    s.merge(&state(Kind::Sum, 0, &[pow2(-1074), -pow2(1023), -pow2(1023)])).unwrap();
    assert_eq!(ask(&s, Op::Sum, None, 0), 0);
    check(&ones);
}

#[test]
fn clusters_and_lone_giants() {
    let clusters: Vec<f64> = (0..60)
        .map(|i| if i % 3 == 0 { -1.25 } else { 1.75 } * pow2((137 * i) % 2000 - 1000))
        .collect();
    check(&clusters);
    let mut small = vec![pow2(-1000); 30];
    small[17] = pow2(1023);
    check(&small);
    small[18] = -pow2(1023);
    check(&small);
}

#[test]
fn dots_beyond_the_range_of_products() {
    let dot = |x: &[f64], y: &[f64]| {
        let mut s = Squares::<f64>::identity(Kind::Dot);
        s.absorb(Run { start: 0, items: x, others: y });
        f64::from_bits(ask(&s, Op::Dot, None, 0))
    };
    assert_eq!(dot(&[1e200, 1e200, 1.0], &[1e200, -1e200, 1.0]), 1.0);
    assert_eq!(dot(&[pow2(-600), 1.0], &[pow2(-600), 0.0]), 0.0);
    let (tiny, half) = (pow2(-600), pow2(-53));
    assert_eq!(dot(&[1.0, half, tiny], &[1.0, 1.0, tiny]), 1.0 + pow2(-52));
    assert_eq!(dot(&[pow2(-1074)], &[0.5]), 0.0);
    assert!(dot(&[0.0], &[f64::INFINITY]).is_nan());
    assert_eq!(dot(&[-2.0], &[f64::INFINITY]), f64::NEG_INFINITY);
    assert!(dot(&[f64::INFINITY, 1.0], &[1.0, f64::NEG_INFINITY]).is_nan());
}

/// The nearest f16 to an f64 that it can be reached from by f64's own rounding
/// to an integer number of last places.
fn f16_of(x: f64) -> u16 {
    let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(-14);
    let place = pow2(exponent - 10);
    let rounded = (x / place).round_ties_even() * place;
    let zero_is_positive = if x == 0.0 { 0.0 } else { rounded };
    f16::from_f64(zero_is_positive).to_bits()
}

/// Every f16, or every fifth, with a set of partners, which meet each other too: sums, halves and
/// products of two f16 are exact in f64.
#[test]
fn all_f16_with_chosen_partners() {
    let mut partners: Vec<u16> = vec![0, 1, 2, 3, 0x3ff, 0x400, 0x401, 0x3c00, 0x3c01, 0x7bff];
    partners.extend((0..30).map(|e| e << 10 | 0x155));
    partners.extend(partners.clone().iter().map(|b| b | 0x8000));
    for a in (0..=u16::MAX).step_by(up_to(1, 5)).chain(partners.clone()) {
        let x = f16::from_bits(a);
        if !x.is_finite() {
            continue;
        }
        for &b in &partners {
            let y = f16::from_bits(b);
            let (wide_x, wide_y) = (x.to_f64(), y.to_f64());
            let s = state::<Sums<f16>>(Kind::Sum, 0, &[x, y]);
            assert_eq!(ask(&s, Op::Sum, None, 0) as u16, f16_of(wide_x + wide_y), "{x} + {y}");
            let mean = f16_of((wide_x + wide_y) / 2.0);
            assert_eq!(ask(&s, Op::Mean, None, 0) as u16, mean, "mean of {x} and {y}");
            let mut s = Squares::<f16>::identity(Kind::Dot);
            s.absorb(Run { start: 0, items: &[x], others: &[y] });
            assert_eq!(ask(&s, Op::Dot, None, 0) as u16, f16_of(wide_x * wide_y), "{x} * {y}");
        }
    }
}

#[test]
fn roots_of_single_squares() {
    for x in [0.0, 1.0, 1.5, f64::MAX, pow2(-1074), 3.0 * pow2(-1074), 1e-200] {
        let s = state::<Squares<f64>>(Kind::SquareSum, 0, &[x]);
        assert_eq!(ask(&s, Op::Norm2, None, 0), x.to_bits());
    }
    let s = state::<Squares<f64>>(Kind::SquareSum, 0, &[3e-300, 4e-300]);
    assert_eq!(ask(&s, Op::Norm2, None, 0), 5e-300f64.to_bits());
}

#[test]
fn non_finite_terms() {
    let (inf, nan) = (f64::INFINITY, -f64::NAN);
    let canonical = 0x7ff8_0000_0000_0000u64;
    let cases: [(&[f64], u64, u64); 7] = [
        (&[1.0, inf], inf.to_bits(), inf.to_bits()),
        (&[1.0, -inf], (-inf).to_bits(), inf.to_bits()),
        (&[inf, -inf], canonical, inf.to_bits()),
        (&[nan, 1.0], canonical, canonical),
        (&[nan, inf], canonical, canonical),
        (&[f64::from_bits(0x7ff0_0000_0000_0001)], canonical, canonical),
        (&[inf, inf], inf.to_bits(), inf.to_bits()),
    ];
    for (items, total, norm) in cases {
        let m = state::<Moments<f64>>(Kind::Moments, 0, items);
        for op in [Op::Sum, Op::Mean] {
            assert_eq!(ask(&m, op, None, 0), total, "{op} {items:?}");
            assert_eq!(ask(&state::<Sums<f64>>(Kind::Sum, 0, items), op, None, 0), total);
        }
        for op in [Op::SumSq, Op::Norm2] {
            assert_eq!(ask(&m, op, None, 0), norm, "{op} {items:?}");
            assert_eq!(ask(&state::<Squares<f64>>(Kind::SquareSum, 0, items), op, None, 0), norm);
        }
        assert_eq!(ask(&state::<Sums<f64>>(Kind::AbsSum, 0, items), Op::Norm1, None, 0), norm);
        for op in [Op::Var, Op::Std] {
            assert_eq!(ask(&m, op, None, 0), canonical, "{op} {items:?}");
        }
    }
    let m = state::<Moments<f64>>(Kind::Moments, 0, &[]);
    for op in [Op::Mean, Op::Var, Op::Std] {
        assert_eq!(ask(&m, op, None, 0), canonical);
    }
    for op in [Op::Sum, Op::SumSq, Op::Norm2] {
        assert_eq!(ask(&m, op, None, 0), 0);
    }
}

#[test]
fn nan_policies() {
    let m = state::<Moments<f32>>(Kind::Moments, 0, &[1.0, f32::NAN, 4.0, f32::NAN]);
    let omit = Rules::new().nan(NanPolicy::Omit).ddof(1);
    let value = |op| f32::from_bits(m.finish(op, &omit).unwrap().first().to_bits() as u32);
    assert_eq!(value(Op::Sum), 5.0);
    assert_eq!(value(Op::Mean), 2.5);
    assert_eq!(value(Op::Var), 4.5);
    assert_eq!(value(Op::SumSq), 17.0);
    let strict = Rules::new().nan(NanPolicy::Error);
    for op in [Op::Sum, Op::Mean, Op::Var, Op::Std, Op::SumSq, Op::Norm2] {
        let found = warpfold_core::Error::NanFound { count: 2, first: None };
        assert_eq!(m.finish(op, &strict), Err(found));
    }
    // What zero times infinity makes is not in the data, before and after the way through bytes.
    let mut dot = Squares::<f32>::identity(Kind::Dot);
    let items = [f32::NEG_INFINITY, 2.0, f32::NAN, 0.0];
    dot.absorb(Run { start: 0, items: &items, others: &[0.0, 3.0, 1.0, f32::INFINITY] });
    dot.merge(&Squares::identity(Kind::Dot)).unwrap();
    let dot = Squares::<f32>::read(Kind::Dot, &bytes(&dot)).unwrap();
    assert_eq!(dot.finish(Op::Dot, &omit).unwrap().first().to_bits(), 0x7fc0_0000);
    let found = warpfold_core::Error::NanFound { count: 1, first: None };
    assert_eq!(dot.finish(Op::Dot, &strict), Err(found));
    let none = state::<Moments<f32>>(Kind::Moments, 0, &[f32::NAN]);
    assert_eq!(none.finish(Op::Sum, &omit).unwrap().first().to_bits(), 0);
    assert_eq!(none.finish(Op::Mean, &omit).unwrap().first().to_bits(), 0x7fc0_0000);
}

#[test]
fn variance_does_not_cancel() {
    check(&[1e16, 1e16 + 2.0, 1e16 + 4.0]);
    check(&[0.1f64; 10]);
    let m = state::<Moments<f64>>(Kind::Moments, 0, &[0.1; 10]);
    assert_eq!(ask(&m, Op::Var, None, 0), 0);
    check(&[f64::MAX, -f64::MAX, pow2(-1074)]);
    check(&[f32::MAX, -f32::MAX, f32::from_bits(1)]);
}
