//! Superaccumulators as vectors that any engine may add.

use crate::oracle::{self, Exact};
use crate::thorough::cases;
use num_bigint::BigInt;
use proptest::prelude::*;
use warpfold_core::exact::format::{
    F16Sum, F32Dot, F32Sum, F64Dot, F64Sum, Format, IntDot, IntSum,
};
use warpfold_core::exact::round::{Truncated, round_fixed, round_quotient, round_sqrt};
use warpfold_core::exact::{Superacc, low_bits, to_big, to_i128, variance};

/// The integer that limbs stand for, canonical or not.
fn value(limbs: &[i64]) -> BigInt {
    limbs.iter().rev().fold(BigInt::ZERO, |v, &l| (v << 32) + l)
}

fn is_canonical(limbs: &[i64]) -> bool {
    limbs[..limbs.len() - 1].iter().all(|l| (0..1 << 32).contains(l))
}

/// Limbs with long runs of zeros and of ones, where borrows and carries run.
fn limbs(len: usize) -> impl Strategy<Value = Vec<i64>> {
    let limb = prop_oneof![
        3 => Just(0i64),
        3 => Just(0xffff_ffff),
        1 => Just(1),
        1 => Just(0x8000_0000),
        2 => 0i64..1 << 32,
    ];
    let top = prop_oneof![
        4 => Just(0i64), 4 => Just(-1), 1 => -5i64..5, 1 => any::<i64>(),
        1 => Just(i64::MIN), 1 => Just(i64::MAX),
    ];
    (proptest::collection::vec(limb, len - 1), top).prop_map(|(mut v, t)| {
        v.push(t);
        v
    })
}

/// The shifts that keep the leading bits of small numbers in an f64's reach.
fn check_rounding(limbs: &[i64], lsb: i32, n: u64) {
    let v = value(limbs);
    let x = Exact { numerator: v.clone(), exponent: i64::from(lsb), ..Exact::zero() };
    assert_eq!(round_fixed::<f64>(limbs, lsb).to_bits(), oracle::round::<f64>(&x));
    assert_eq!(u64::from(round_fixed::<f32>(limbs, lsb).to_bits()), oracle::round::<f32>(&x));
    let mean = x.div(n.into());
    assert_eq!(round_quotient::<f64>(limbs, lsb, n).to_bits(), oracle::round::<f64>(&mean));
    let mean32 = oracle::round::<f32>(&mean);
    assert_eq!(u64::from(round_quotient::<f32>(limbs, lsb, n).to_bits()), mean32);
    let root = round_sqrt::<f64>(limbs, lsb);
    if v < BigInt::ZERO {
        assert_eq!(root, None);
    } else {
        assert_eq!(root.map(f64::to_bits), Some(oracle::round_sqrt::<f64>(&x)));
    }
    let exact = Truncated::of_fixed(limbs, lsb);
    assert_eq!(exact.window == 0, v == BigInt::ZERO);
    assert_eq!(to_big(limbs), v);
    assert_eq!(to_i128(limbs), i128::try_from(&v).ok());
    let low = ((&v % (BigInt::from(1) << 64)) + (BigInt::from(1) << 64)) % (BigInt::from(1) << 64);
    assert_eq!(BigInt::from(low_bits(limbs)), low);
}

fn vector_round_trip<F: Format>(foreign: &[i64]) {
    let mut vector = foreign.to_vec();
    vector.extend([9, 1, 2, 3]);
    let acc = Superacc::<F>::from_vector(&vector).unwrap();
    let back = acc.to_vector();
    assert!(is_canonical(&back[..F::LIMBS]));
    let modulus = BigInt::from(1) << (32 * F::LIMBS + 32);
    let difference = value(&back[..F::LIMBS]) - value(foreign);
    assert_eq!(difference % modulus, BigInt::ZERO);
    assert_eq!(back[F::LIMBS..], [9, 1, 2, 3]);
    assert_eq!(Superacc::<F>::from_vector(&back), Some(acc));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn fixed_point_rounds_like_rationals(
        two in limbs(2), four in limbs(4), ten in limbs(10), many in limbs(67),
        n in prop_oneof![1u64..20, Just(u64::MAX), any::<u64>().prop_map(|n| n.max(1)), 1u64..1 << 33],
    ) {
        check_rounding(&two, -24, n);
        check_rounding(&two, -90, n);
        check_rounding(&four, 0, n);
        check_rounding(&four, -1080, n);
        check_rounding(&ten, -149, n);
        check_rounding(&ten, -301, n);
        check_rounding(&many, -1074, n);
        check_rounding(&many, -2148, n);
    }

    #[test]
    fn foreign_vectors_become_canonical(raw in proptest::collection::vec(any::<i64>(), 133)) {
        vector_round_trip::<F16Sum>(&raw[..2]);
        vector_round_trip::<F32Sum>(&raw[..10]);
        vector_round_trip::<F32Dot>(&raw[..19]);
        vector_round_trip::<F64Sum>(&raw[..67]);
        vector_round_trip::<F64Dot>(&raw);
        vector_round_trip::<IntSum>(&raw[..4]);
        vector_round_trip::<IntDot>(&raw[..6]);
    }

    /// Adding vectors elsewhere is merging.
    #[test]
    fn added_vectors_are_merged_states(raw in proptest::collection::vec(any::<u64>(), 1..30), at in 0usize..30) {
        let items: Vec<f64> = raw.iter().map(|&b| f64::from_bits(b)).collect();
        let (a, b) = items.split_at(at.min(items.len()));
        let acc = |items: &[f64]| {
            let mut acc = Superacc::<F64Sum>::new();
            items.iter().for_each(|&x| acc.absorb(x));
            acc
        };
        let added: Vec<i64> =
            acc(a).to_vector().iter().zip(acc(b).to_vector()).map(|(x, y)| x.wrapping_add(y)).collect();
        let added = Superacc::<F64Sum>::from_vector(&added).unwrap();
        let mut merged = acc(a);
        merged.merge(&acc(b));
        assert_eq!(added.to_vector(), merged.to_vector());
        assert_eq!(acc(&items).to_vector(), merged.to_vector());
    }

    #[test]
    fn wide_deposits(value: i128, down in 0u32..127, exponent in -1074i32..800) {
        let value = value >> down;
        let mut acc = Superacc::<F64Sum>::new();
        acc.deposit_wide(value, exponent);
        acc.deposit_wide(1, exponent);
        let sum: f64 = acc.with_canonical(|l| round_fixed(l, F64Sum::LSB));
        let exact = Exact { numerator: BigInt::from(value) + 1, exponent: exponent.into(), ..Exact::zero() };
        assert_eq!(sum.to_bits(), oracle::round::<f64>(&exact));
    }
}

#[test]
fn billions_of_merges_do_not_overflow_a_limb() {
    // 2^31 canonical states of all ones, added as plain integers.
    let mut acc = Superacc::<F32Sum>::new();
    (0..9).for_each(|i| acc.deposit(false, 0xffff_ffff, -149 + 32 * i));
    let one = acc.to_vector();
    let many: Vec<i64> = one.iter().map(|l| l << 31).collect();
    let sum = Superacc::<F32Sum>::from_vector(&many).unwrap();
    assert_eq!(value(&sum.to_vector()[..10]), value(&one[..10]) << 31);
    // The same by doubling merged states.
    let mut doubled = acc;
    for _ in 0..31 {
        let copy = doubled;
        doubled.merge(&copy);
    }
    assert_eq!(doubled, sum);
    // And 2^31 deposits' worth of pending carries, through merges alone.
    let mut negative = Superacc::<F32Sum>::new();
    negative.deposit(true, 1, -149);
    for _ in 0..40 {
        let copy = negative;
        negative.merge(&copy);
    }
    assert_eq!(value(&negative.to_vector()[..10]), BigInt::from(-1i64 << 40));
}

/// `2^a + 2^b + ...` in limbs.
fn powers(len: usize, exponents: &[usize]) -> Vec<i64> {
    let mut limbs = vec![0; len];
    exponents.iter().for_each(|e| limbs[e / 32] |= 1 << (e % 32));
    limbs
}

/// Each number is a tie but for one bit that only one of the steps cuts off.
#[test]
fn what_each_truncation_cuts_off_breaks_ties() {
    let up = 1.0 + f64::EPSILON;
    // By the division: (3 + 3 * 2^-53 + 2^-125) / 3.
    let mean = |extra: &[usize]| -> f64 {
        let bits = [&[126, 125, 73, 72], extra].concat();
        round_quotient(&powers(6, &bits), -125, 3)
    };
    assert_eq!((mean(&[]), mean(&[0])), (1.0, up));
    // By the halving before a root with an odd exponent: (1 + 2^-53)^2 + 2^-127.
    let root = |extra: &[usize]| -> Option<f64> {
        let bits = [&[127, 75, 21], extra].concat();
        round_sqrt(&powers(6, &bits), -127)
    };
    assert_eq!((root(&[]), root(&[0])), (Some(1.0), Some(up)));
    // By the root itself, and by the window of 128 bits before it.
    let root = |extra: &[usize]| -> Option<f64> {
        let bits = [&[160, 108, 54], extra].concat();
        round_sqrt(&powers(6, &bits), -160)
    };
    assert_eq!((root(&[]), root(&[40]), root(&[0])), (Some(1.0), Some(up), Some(up)));
    // By the window over the variance's numerator, and by its division.
    let var = |n, bits: &[usize]| -> f64 {
        let squares = powers(8, bits);
        variance((&[0], 0), (&squares, -200), n, (0, 0.0)).unwrap().round()
    };
    assert_eq!((var(1, &[200, 147]), var(1, &[200, 147, 0])), (1.0, up));
    let thirds = |extra: &[usize]| var(3, &[&[201, 200, 148, 147], extra].concat());
    assert_eq!((thirds(&[]), thirds(&[73]), thirds(&[0])), (1.0, up, up));
}

#[test]
fn contradicting_counters_are_refused() {
    let with = |counters: [i64; 4]| {
        let mut v = vec![0; 2];
        v.extend(counters);
        Superacc::<F16Sum>::from_vector(&v)
    };
    // Zero times infinity counts as infinities of both signs.
    assert!(with([6, 1, 5, 5]).is_some());
    for counters in
        [[3, 1, 2, 3], [-1, 0, 0, 0], [1, -1, 1, 1], [i64::MAX, i64::MAX, 1, 0], [0, 0, 0, 1]]
    {
        assert_eq!(with(counters), None);
    }
    assert_eq!(Superacc::<F16Sum>::from_vector(&[0; 5]), None);
    assert_eq!(Superacc::<F16Sum>::from_vector(&[0; 7]), None);
    // Two huge counts are accepted, and merging them does not panic.
    let mut huge = with([i64::MAX, i64::MAX, 0, 0]).unwrap();
    huge.merge(&huge.clone());
}
