//! Products of floats against big integers, and their independence of order and splits.

use crate::tree_support::*;
use num_bigint::{BigInt, BigUint};
use warpfold_core::element::{DType, Parts, bf16, f16};
use warpfold_core::op::float_prod::BLOCK;
use warpfold_core::op::{FloatElement, FloatProd, Kind, Run, State};
use warpfold_core::{Element, Error, NanPolicy, Op, Rules, Scalar};

fn prod<T: FloatElement>(x: &[T]) -> Scalar {
    let s: FloatProd<T> = scattered(Kind::Prod, x, &[], &mut Rng(x.len() as u64));
    assert_eq!(bytes(&s), bytes(&whole::<FloatProd<T>>(Kind::Prod, x, &[])));
    answer(&s, Op::Prod)
}

/// `magnitude 2^exponent`, negative or not.
struct Exact {
    negative: bool,
    magnitude: BigUint,
    exponent: i64,
}

/// The product of elements that are finite and not zero.
fn exact<T: Element>(x: &[T]) -> Exact {
    if let [x] = x {
        let Parts::Finite { negative, magnitude, exponent } = x.parts() else { panic!("{x:?}") };
        assert!(magnitude > 0);
        return Exact { negative, magnitude: magnitude.into(), exponent: exponent.into() };
    } else if x.is_empty() {
        return Exact { negative: false, magnitude: 1u8.into(), exponent: 0 };
    }
    let (a, b) = x.split_at(x.len() / 2);
    let (a, b) = (exact(a), exact(b));
    Exact {
        negative: a.negative != b.negative,
        magnitude: a.magnitude * b.magnitude,
        exponent: a.exponent + b.exponent,
    }
}

/// Digits, width, and exponents of the least subnormal and beyond the largest number.
fn format(out: DType) -> (u64, u32, i64, i64) {
    match out {
        DType::F16 => (11, 16, -24, 16),
        DType::BF16 => (8, 16, -133, 128),
        DType::F32 => (24, 32, -149, 128),
        _ => (53, 64, -1074, 1024),
    }
}

/// The last place of a number in a float type.
fn place(of: &Exact, out: DType) -> i64 {
    let (digits, _, least, _) = format(out);
    (of.exponent + of.magnitude.bits() as i64 - digits as i64).max(least)
}

/// The bits of the nearest float, ties to even: by the definition.
fn rounded(of: &Exact, out: DType) -> u64 {
    let (digits, width, least, top) = format(out);
    let place = place(of, out);
    let shift = place - of.exponent;
    let magnitude = &of.magnitude;
    let mut kept = if shift <= 0 { magnitude << -shift } else { magnitude >> shift };
    if shift > 0 {
        let rest = magnitude - (&kept << shift);
        let half = BigUint::from(1u8) << (shift - 1);
        if rest > half || rest == half && kept.bit(0) {
            kept += 1u8;
        }
    }
    let sign = u64::from(of.negative) << (width - 1);
    let infinity = ((1u64 << (u64::from(width) - digits)) - 1) << (digits - 1);
    if place + kept.bits() as i64 > top {
        return sign | infinity;
    }
    let kept = kept.to_u64_digits().first().copied().unwrap_or(0);
    sign | (kept + (((place - least) as u64) << (digits - 1)))
}

/// The magnitude of an answer in units of `2^unit`.
fn scaled(scalar: Scalar, unit: i64) -> BigInt {
    let x = Scalar::from_bits(scalar.dtype(), scalar.to_bits());
    let parts = x.to_f64().parts();
    let Parts::Finite { magnitude, exponent, .. } = parts else { panic!("{scalar:?}") };
    let shift = i64::from(exponent) - unit;
    assert!(shift >= 0);
    BigInt::from(magnitude) << shift
}

/// The answer in each of these types must be the exact product, off by `error` of itself and then rounded once.
fn check_in<T: FloatElement>(x: &[T], outs: &[DType]) {
    let (state, of): (FloatProd<T>, _) = (whole(Kind::Prod, x, &[]), exact(x));
    outs.iter().for_each(|&out| check_out(x, &state, &of, out));
}

fn check_out<T: FloatElement>(x: &[T], state: &FloatProd<T>, of: &Exact, out: DType) {
    let got = state.finish(Op::Prod, &Rules::new().out(out)).unwrap().first();
    if got.to_bits() == rounded(of, out) {
        return;
    }
    // What is left: the exact product is about half-way.
    let n = x.len() as f64;
    let error = if T::DIGITS > 24 {
        n * 2f64.powf(-74.8) + n.min(34.0) * 2f64.powf(-73.2)
    } else {
        n * 2f64.powf(-57.7) + if out == DType::F64 { 0.0 } else { n.min(16.0) * 2f64.powf(-56.2) }
    };
    let unit = of.exponent.min(-1100);
    let want = BigInt::from(of.magnitude.clone()) << (of.exponent - unit);
    let mut off = scaled(got, unit) - &want;
    if off < BigInt::from(0) {
        off = -off;
    }
    let half = BigInt::from(1) << (place(of, out) - 1 - unit);
    let allowed: BigInt = (&want >> 90) * BigInt::from((error * 2f64.powi(90)) as u128);
    assert!(off <= half + allowed, "{} elements such as {:?}", x.len(), &x[..x.len().min(4)]);
    assert_eq!(got.to_f64().is_sign_negative(), of.negative);
}

/// Factors of both signs whose product stays within f64's range.
fn balanced(n: usize, rng: &mut Rng) -> Vec<f64> {
    let mut sum = 0.0f64;
    let mut x: Vec<f64> = (0..n)
        .map(|_| {
            let spread = 2f64.powi(rng.below(900) as i32 - 450) * (1.0 + rng.unit());
            let v = if (sum > 0.0) == (spread > 1.0) { 1.0 / spread } else { spread };
            sum += v.log2();
            if rng.below(2) == 0 { -v } else { v }
        })
        .collect();
    for i in (1..n).rev() {
        x.swap(i, rng.below(i + 1));
    }
    x
}

#[test]
fn products_are_the_exact_ones_rounded_once_but_for_their_bound() {
    let mut rng = Rng(1);
    for n in (1..40).chain(SIZES) {
        for _ in 0..if n < 100 { 40 } else { 1 } {
            let x = balanced(n, &mut rng);
            check_in(&x, &[DType::F64, DType::F32, DType::F16]);
            // Near 1, where products of narrow types stay within their ranges.
            let near = |v: &f64| {
                let m = f64::from_bits(v.to_bits() & !(0x7ff << 52) | 1023 << 52);
                if m.abs() > std::f64::consts::SQRT_2 { m / 2.0 } else { m }
            };
            let y: Vec<f32> = x.iter().map(|v| near(v) as f32).collect();
            check_in(&y, &[DType::F32, DType::F64, DType::BF16]);
            let y: Vec<bf16> = y.iter().map(|&v| bf16::from_f32(v)).collect();
            check_in(&y, &[DType::BF16]);
            let y: Vec<f16> = y.iter().map(|&v| f16::from_f32(v.into())).collect();
            check_in(&y, &[DType::F16, DType::F32]);
        }
    }
}

/// Products of two factors, which have 106 digits or 48: the nearest float.
#[test]
fn products_of_two_are_those_of_ieee_754() {
    let mut rng = Rng(2);
    for _ in 0..100_000 {
        let (a, b) = (rng.next(), rng.next());
        let at = |x: u64, field: u64| f64::from_bits(x & !(0x7ff << 52) | field << 52);
        let (a, b) = (at(a, 700 + (a >> 52 & 0x1ff)), at(b, 700 + (b >> 52 & 0x1ff)));
        assert_eq!(
            answer(&whole::<FloatProd<f64>>(Kind::Prod, &[a, b], &[]), Op::Prod),
            Scalar::F64(a * b)
        );
        // All exponents; and short ones, of which many are half-way.
        let (x, y) = (rng.next() as u32, rng.next() as u32);
        let cut = u32::MAX << rng.below(24);
        for (x, y) in [(x, y), (x & cut, y & !(cut >> 9 << 9)), (x & 0xffff_f000, y & 0xffff_fc00)]
        {
            let (x, y) = (f32::from_bits(x), f32::from_bits(y));
            let want = if (x * y).is_nan() { f32::from_bits(0x7fc0_0000) } else { x * y };
            let got = answer(&whole::<FloatProd<f32>>(Kind::Prod, &[x, y], &[]), Op::Prod);
            assert_eq!(got, Scalar::F32(want), "{x:e} {y:e}");
        }
    }
}

/// Numbers of few digits, of as many factors as they can have, and half-way cases.
#[test]
fn products_with_few_digits_are_exact() {
    let mut rng = Rng(3);
    let two = |k: i32| 2f64.powi(k);
    for digits in [53u64, 54] {
        for _ in 0..300 {
            let (mut x, mut product) = (Vec::new(), BigUint::from(1u8));
            loop {
                let most = [1, 3, 40][rng.below(3)];
                let odd = 1 + 2 * (1 + rng.below(most)) as u64;
                if (&product * odd).bits() > digits {
                    break;
                }
                product *= odd;
                x.push(odd as f64 * two(rng.below(40) as i32 - 20));
            }
            // Powers of two change nothing but the exponent.
            let powers: Vec<i32> =
                (0..rng.below(3000)).map(|_| rng.below(2000) as i32 - 1000).collect();
            let sum: i32 = powers.iter().sum();
            x.extend(powers.iter().map(|&k| two(k)));
            x.extend((0..sum.abs() / 500).map(|_| two(-500 * sum.signum())));
            x.push(two(-(sum % 500)));
            if rng.below(3) == 0 {
                // Down to where it is subnormal.
                x.extend([two(-1000), two(-(rng.below(70) as i32))]);
            }
            let got = prod(&x);
            assert_eq!(got.to_bits(), rounded(&exact(&x), DType::F64), "{x:?}");
        }
    }
    // 3^33 fits, 3^34 lies half-way; of f32 3^15 fits.
    for n in 30..36 {
        let x = vec![3.0f64; n];
        assert_eq!(prod(&x).to_bits(), rounded(&exact(&x), DType::F64), "3^{n}");
    }
    for n in 12..18 {
        let x = vec![3.0f32; n];
        assert_eq!(prod(&x).to_bits(), rounded(&exact(&x), DType::F32), "3^{n}");
        // Many powers of two beside the last that fits and the first that does not.
        let len = if n == 15 || n == 16 { 400_000 } else { 2_000 };
        let x: Vec<f32> = (0..len).map(|i| if i < n { 3.0 } else { [0.5, 2.0][i % 2] }).collect();
        assert_eq!(prod(&x).to_bits(), rounded(&exact(&x), DType::F32), "3^{n}");
    }
}

#[test]
fn order_and_splits_do_not_show() {
    let mut rng = Rng(4);
    for n in SIZES {
        for _ in 0..3 {
            let mut x = balanced(n, &mut rng);
            if n > 0 && rng.below(3) == 0 {
                for v in [f64::NAN, f64::INFINITY, -0.0, f64::from_bits(5)] {
                    x[rng.below(n)] = v;
                }
            }
            let expected = bytes(&whole::<FloatProd<f64>>(Kind::Prod, &x, &[]));
            for _ in 0..3 {
                let got = scattered::<FloatProd<f64>>(Kind::Prod, &x, &[], &mut rng);
                assert_eq!(bytes(&got), expected);
                for i in (1..n).rev() {
                    x.swap(i, rng.below(i + 1));
                }
            }
            let mut backwards = FloatProd::<f64>::new();
            for i in (0..n.min(3000)).rev() {
                backwards.absorb(run(&x, &[], i, i + 1));
            }
            let forwards: FloatProd<f64> = whole(Kind::Prod, &x[..n.min(3000)], &[]);
            assert!(backwards == forwards);
        }
    }
}

/// Whether an element shares its block with odd ones is of no matter.
#[test]
fn odd_elements_do_not_change_how_others_are_taken() {
    let mut rng = Rng(5);
    fn check<T: FloatElement>(x: &[T], odd: T) {
        let mut with: Vec<T> = x.to_vec();
        with.insert(x.len() / 3, odd);
        let with: FloatProd<T> = whole(Kind::Prod, &with, &[]);
        let mut apart: FloatProd<T> = whole(Kind::Prod, x, &[]);
        apart.merge(&whole(Kind::Prod, &[odd], &[])).unwrap();
        assert!(with == apart);
    }
    for n in [1, 15, 16, 17, 100, BLOCK - 1, BLOCK, 2 * BLOCK + 5] {
        let x = balanced(n, &mut rng);
        let tiny = f64::from_bits(rng.next() >> 12);
        for odd in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, tiny, -tiny] {
            check(&x, odd);
        }
        let y: Vec<f32> = x.iter().map(|&v| (v.log2() as f32 + 0.3) * 0.01).collect();
        for odd in [0.0, f32::INFINITY, f32::NAN, f32::from_bits(77), -f32::MIN_POSITIVE] {
            check(&y, odd);
        }
        let y: Vec<f16> = y.iter().map(|&v| f16::from_f32(v)).collect();
        for odd in [f16::from_bits(0), f16::from_bits(3), f16::INFINITY] {
            check(&y, odd);
        }
    }
}

#[test]
fn nothing_overflows_on_the_way() {
    let close = |got: Scalar, want: f64| {
        let got = got.to_f64();
        assert!((got / want - 1.0).abs() < 1e-14, "{got} {want}");
    };
    close(prod(&[1e308, 1e308, 1e308, 1e-308, 1e-308, 1e-308]), 1.0);
    close(prod(&[1e-308, 1e-308, 1e308, 1e308]), 1.0);
    let tiny = f64::from_bits(1);
    assert_eq!(prod(&[tiny, 2f64.powi(1000), 2f64.powi(74)]), Scalar::F64(1.0));
    assert_eq!(prod(&[f32::from_bits(1), 2f32.powi(100), 2f32.powi(49)]), Scalar::F32(1.0));
    assert_eq!(
        prod(&[f16::from_bits(1), f16::from_f32(1024.0)]),
        Scalar::F16(f16::from_bits(0x400))
    );
    assert_eq!(prod(&[bf16::from_bits(1), bf16::from_f32(2.0)]), Scalar::BF16(bf16::from_bits(2)));
    let mut x = vec![1e300; 30000];
    x.extend(vec![1e-300; 30000]);
    let got = prod(&x).to_f64();
    assert_eq!(got.to_bits(), rounded(&exact(&x), DType::F64));
    assert!((got - 1.0).abs() < 30000.0 * 2.3e-16, "{got}");
}

#[test]
fn the_end_rounds_once() {
    // 3/2 of the smallest subnormal is a tie, to even; a bit more is not.
    let tiny = f64::from_bits(1);
    assert_eq!(prod(&[tiny, 1.5]), Scalar::F64(f64::from_bits(2)));
    assert_eq!(prod(&[tiny, 2.5]), Scalar::F64(f64::from_bits(2)));
    assert_eq!(prod(&[tiny, 2.5000000000000004]), Scalar::F64(f64::from_bits(3)));
    assert_eq!(prod(&[tiny, 0.5]), Scalar::F64(0.0));
    assert_eq!(prod(&[tiny, -0.5]), Scalar::F64(-0.0));
    assert_eq!(prod(&[f64::MAX, 1.0 + f64::EPSILON]), Scalar::F64(f64::INFINITY));
    // 1 + 2^-24 + 2^-53: just above f32's tie, which a first rounding to f64
    // would still show but one to f32 and back would not.
    let rules = Rules::new().out(DType::F32);
    let s: FloatProd<f64> = whole(Kind::Prod, &[1.0 + 2f64.powi(-24) + 2f64.powi(-52)], &[]);
    assert_eq!(s.finish(Op::Prod, &rules), one(Scalar::F32(1.0 + f32::EPSILON)));
    assert_eq!(prod(&[300.0f32, 300.0, 1e37]), Scalar::F32(f32::INFINITY));
    let s: FloatProd<f16> = whole(Kind::Prod, &[f16::from_f32(300.0); 2], &[]);
    assert_eq!(answer(&s, Op::Prod), Scalar::F16(f16::INFINITY));
    assert_eq!(s.finish(Op::Prod, &rules), one(Scalar::F32(90000.0)));
}

#[test]
fn specials_follow_ieee() {
    const INF: f64 = f64::INFINITY;
    let canonical = Scalar::F64(f64::from_bits(0x7ff8_0000_0000_0000));
    assert_eq!(prod::<f64>(&[]), Scalar::F64(1.0));
    assert_eq!(prod(&[-0.0, 5.0]), Scalar::F64(-0.0));
    assert_eq!(prod(&[-0.0, -5.0]), Scalar::F64(0.0));
    assert_eq!(prod(&[-INF, -5.0, 1e-300]), Scalar::F64(INF));
    assert_eq!(prod(&[-INF, 5.0]), Scalar::F64(-INF));
    assert_eq!(prod(&[INF, 0.0]), canonical);
    assert_eq!(prod(&[-f64::NAN, 2.0]), canonical);
    // Far apart, so that no block has both.
    let mut x = vec![1.0; 3 * BLOCK];
    (x[5], x[2 * BLOCK + 1]) = (0.0, -INF);
    assert_eq!(prod(&x), canonical);
    let s: FloatProd<f64> = whole(Kind::Prod, &[2.0, -f64::NAN, 3.0], &[]);
    let by = |nan| s.finish(Op::Prod, &Rules::new().nan(nan));
    assert_eq!(by(NanPolicy::Omit), one(Scalar::F64(6.0)));
    assert_eq!(by(NanPolicy::Error), Err(Error::NanFound { count: 1, first: None }));
    let mut s = FloatProd::<f32>::new();
    s.skip(0, 5000);
    s.absorb(Run { start: 5000, items: &[-7.0], others: &[] });
    assert_eq!(answer(&s, Op::Prod), Scalar::F32(-7.0));
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = Rng(10);
    let x: Vec<f32> = (0..2 * BLOCK + 50).map(|_| rng.unit() as f32).collect();
    survive_damage(Kind::Prod, Op::Prod, &whole::<FloatProd<f32>>(Kind::Prod, &x, &[]), &mut rng);
    let y = balanced(700, &mut rng);
    survive_damage(Kind::Prod, Op::Prod, &whole::<FloatProd<f64>>(Kind::Prod, &y, &[]), &mut rng);
    survive_damage(Kind::Prod, Op::Prod, &FloatProd::<bf16>::new(), &mut rng);
}

#[test]
fn impossible_states_are_damage() {
    let state: FloatProd<f32> = whole(Kind::Prod, &[1.3, -2.7, 0.0], &[]);
    let good = bytes(&state);
    let with = |word: usize, value: u64| {
        let mut bad = good.clone();
        bad[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
        FloatProd::<f32>::read(Kind::Prod, &bad)
    };
    assert!(with(0, 1).is_ok() && with(9, 3).is_ok());
    // A sign that is none; fewer factors than the exponent and the logarithm need; either too large.
    for (word, value) in [(0, 2), (1, 0), (2, 1 << 20), (3, 1), (5, 1 << 50), (6, 1), (6, 1 << 63)]
    {
        assert!(matches!(with(word, value), Err(Error::DamagedState { .. })), "{word} {value}");
    }
    // Nothing has no sign.
    let mut empty = bytes(&FloatProd::<f32>::new());
    assert!(FloatProd::<f32>::read(Kind::Prod, &empty).is_ok());
    empty[0] = 1;
    assert!(FloatProd::<f32>::read(Kind::Prod, &empty).is_err());
}

/// Merged with itself again and again: 2^60 times as many factors.
#[test]
fn sums_do_not_wrap_at_any_number_of_elements() {
    let merged = |x: &[f64]| {
        let mut state: FloatProd<f64> = whole(Kind::Prod, x, &[]);
        for _ in 0..60 {
            let copy = state;
            state.merge(&copy).unwrap();
            state = FloatProd::read(Kind::Prod, &bytes(&state)).unwrap();
        }
        answer(&state, Op::Prod)
    };
    assert_eq!(merged(&[1.414, 1.414]), Scalar::F64(f64::INFINITY));
    assert_eq!(merged(&[0.7072]), Scalar::F64(0.0));
    assert_eq!(merged(&[f64::MAX, 3.7]), Scalar::F64(f64::INFINITY));
    assert_eq!(merged(&[f64::MIN_POSITIVE, 0.3]), Scalar::F64(0.0));
    assert_eq!(merged(&[0.5, 2.0, -1.0]), Scalar::F64(1.0));
}
