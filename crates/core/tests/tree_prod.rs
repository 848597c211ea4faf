//! Products: the tree's shape, extremes of the exponent, integers.

#[path = "tree_support/naive.rs"]
mod naive;
mod tree_support;

use naive::naive;
use num_bigint::BigInt;
use tree_support::*;
use warpfold_core::element::{Bool8, DType, bf16, f16};
use warpfold_core::op::tree::BLOCK;
use warpfold_core::op::{FloatElement, FloatProd, IntProd, Kind, State};
use warpfold_core::{Element, Error, NanPolicy, Op, Rules, Scalar};

fn prod<T: FloatElement>(x: &[T]) -> Scalar {
    let s: FloatProd<T> = scattered(Kind::Prod, x, &[], &mut Rng(x.len() as u64));
    assert_eq!(bytes(&s), bytes(&whole::<FloatProd<T>>(Kind::Prod, x, &[])));
    answer(&s, Op::Prod)
}

/// A significand in [1, 2) and an exponent, by multiplications only.
fn normalise(mut m: f64, mut e: i64) -> (f64, i64) {
    while m >= 2.0 {
        (m, e) = (m / 2.0, e + 1);
    }
    while m < 1.0 {
        (m, e) = (m * 2.0, e - 1);
    }
    (m, e)
}

#[test]
fn the_tree_is_the_one_defined() {
    let mut rng = Rng(1);
    for n in SIZES {
        // Exponents that would leave f64's range many times over; in every
        // other array subnormals too, which take the integer path.
        let lowest = if rng.below(2) == 0 { -1060 } else { -1000 };
        let x: Vec<f64> = (0..n)
            .map(|_| {
                let exponent = rng.below(1000) as i32 + if rng.below(2) == 0 { lowest } else { 0 };
                let v = (1.0 + rng.unit())
                    * 2f64.powi(exponent / 2)
                    * 2f64.powi(exponent - exponent / 2);
                if rng.below(2) == 0 { -v } else { v }
            })
            .collect();
        let times = |a: (f64, i64), b: (f64, i64)| normalise(a.0 * b.0, a.1 + b.1);
        let (m, e) = naive(n, (1.0, 0), &|i| normalise(x[i].abs(), 0), &times);
        let negative = x.iter().filter(|v| **v < 0.0).count() % 2 == 1;
        // Two more factors bring the product back to where f64 can show it;
        // those are powers of two, so that they round nothing.
        let state: FloatProd<f64> = whole(Kind::Prod, &x, &[]);
        let payload = bytes(&state);
        let again = FloatProd::<f64>::read(Kind::Prod, &payload).unwrap();
        let Scalar::F64(got) = answer(&again, Op::Prod) else { panic!() };
        if e.abs() < 1000 {
            assert_eq!(got, if negative { -m } else { m } * 2f64.powi(e as i32));
        } else if e > 0 {
            assert_eq!(got.abs(), f64::INFINITY);
        } else {
            assert_eq!(got.abs(), 0.0);
        }
        assert_eq!(got.is_sign_negative(), negative);
        if n == BLOCK {
            // The payload's one node has the very significand and exponent.
            let node = &payload[17 + 8 + 9..];
            assert_eq!(node[1..9], m.to_bits().to_le_bytes());
            assert_eq!(node[9..17], e.to_le_bytes());
        }
        // The same values near 1 show every bit of the significand.
        let near: Vec<f64> = x
            .iter()
            .map(|v| normalise(v.abs(), 0).0 * if v.abs() < 1.0 { 0.5 } else { 1.0 })
            .collect();
        let (m, e) = naive(n, (1.0, 0), &|i| normalise(near[i], 0), &times);
        if e.abs() < 1000 {
            assert_eq!(prod(&near), Scalar::F64(m * 2f64.powi(e as i32)));
        }
        let f: Vec<f32> = near.iter().map(|&v| v as f32).collect();
        let (m, e) = naive(n, (1.0, 0), &|i| normalise(f64::from(f[i]), 0), &times);
        if e.abs() < 1000 {
            assert_eq!(prod(&f), Scalar::F32((m * 2f64.powi(e as i32)) as f32));
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
    // 1e300 * 1e-300 differs from 1 by less than an ulp, 30000 times.
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
    // Far apart, so that no leaf sees both.
    let mut x = vec![1.0; 3 * BLOCK];
    (x[5], x[2 * BLOCK + 1]) = (0.0, -INF);
    assert_eq!(prod(&x), canonical);
    let s: FloatProd<f64> = whole(Kind::Prod, &[2.0, -f64::NAN, 3.0], &[]);
    let by = |nan| s.finish(Op::Prod, &Rules::new().nan(nan));
    assert_eq!(by(NanPolicy::Omit), one(Scalar::F64(6.0)));
    assert_eq!(by(NanPolicy::Error), Err(Error::NanFound { count: 1, first: None }));
    let mut s = FloatProd::<f32>::new();
    s.skip(0, 5000);
    s.absorb(warpfold_core::op::Run { start: 5000, items: &[-7.0], others: &[] });
    assert_eq!(answer(&s, Op::Prod), Scalar::F32(-7.0));
}

/// Checks against big integers.
fn check_int<T: Element + Into<i128>>(x: &[T]) {
    let s: IntProd<T> = scattered(Kind::Prod, x, &[], &mut Rng(7));
    let product: BigInt = x.iter().map(|&v| BigInt::from(v.into())).product();
    let signed = T::DTYPE.is_signed_int();
    let fits =
        if signed { i64::try_from(&product).is_ok() } else { u64::try_from(&product).is_ok() };
    let low = (&product & BigInt::from(u64::MAX)).iter_u64_digits().next().unwrap_or(0);
    let out = if signed { DType::I64 } else { DType::U64 };
    let expected = Scalar::from_bits(out, low);
    let wrap = Rules::new().wrap(true);
    assert_eq!(s.finish(Op::Prod, &wrap), one(expected), "{x:?}");
    match s.finish(Op::Prod, &Rules::default()) {
        Ok(v) => assert!(fits && v.first() == expected, "{x:?}"),
        Err(e) => assert!(!fits && matches!(e, Error::Overflow { .. }), "{x:?} {e}"),
    }
}

#[test]
fn integers_overflow_only_in_total() {
    check_int::<i64>(&[1 << 40, 1 << 40, 0]);
    check_int::<i64>(&[1 << 40, 1 << 40]);
    check_int::<i64>(&[i64::MIN]);
    check_int::<i64>(&[i64::MIN, -1]);
    check_int::<i64>(&[i64::MIN, -1, -1]);
    check_int::<u64>(&[u64::MAX, 1]);
    check_int::<u64>(&[1 << 32, 1 << 32]);
    check_int::<u64>(&[u64::MAX; 5]);
    check_int::<i8>(&[-128; 9]);
    check_int::<i8>(&[-128; 10]);
    check_int::<i32>(&[]);
    let mut rng = Rng(9);
    for _ in 0..3000 {
        let n = rng.below(12);
        check_int::<i8>(&(0..n).map(|_| rng.next() as i8).collect::<Vec<_>>());
        check_int::<u16>(&(0..n).map(|_| (rng.next() >> rng.below(16)) as u16).collect::<Vec<_>>());
        check_int::<i64>(&(0..n).map(|_| rng.next() as i64 >> rng.below(64)).collect::<Vec<_>>());
        check_int::<u64>(&(0..n).map(|_| rng.next() >> rng.below(64)).collect::<Vec<_>>());
    }
}

#[test]
fn integers_answer_in_other_types() {
    let s: IntProd<i32> = whole(Kind::Prod, &[-100, 3], &[]);
    let to = |s: &IntProd<i32>, out, wrap| s.finish(Op::Prod, &Rules::new().out(out).wrap(wrap));
    assert_eq!(to(&s, DType::I16, false), one(Scalar::Int(-300, DType::I16)));
    assert!(matches!(to(&s, DType::I8, false), Err(Error::Overflow { out: DType::I8, .. })));
    assert_eq!(to(&s, DType::I8, true), one(Scalar::Int(-44, DType::I8)));
    assert!(matches!(to(&s, DType::U64, false), Err(Error::Overflow { .. })));
    assert_eq!(to(&s, DType::F32, false), one(Scalar::F32(-300.0)));
    assert!(matches!(to(&s, DType::Bool, false), Err(Error::UnsupportedOut { .. })));
    // 2^62 * 3 + 1 needs more than 64 bits after one more factor; rounded once.
    let big: IntProd<i32> = whole(Kind::Prod, &[i32::MAX; 4], &[]);
    assert_eq!(to(&big, DType::F64, false), one(Scalar::F64((i32::MAX as f64).powi(2).powi(2))));
    let zero: IntProd<i32> = whole(Kind::Prod, &[-5, 0], &[]);
    assert_eq!(to(&zero, DType::F64, false), one(Scalar::F64(0.0)));
    let truth: IntProd<Bool8> = whole(Kind::Prod, &[Bool8(2), Bool8(255)], &[]);
    assert_eq!(answer(&truth, Op::Prod), Scalar::UInt(1, DType::U64));
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = Rng(10);
    let x: Vec<f32> = (0..2 * BLOCK + 50).map(|_| rng.unit() as f32).collect();
    survive_damage(Kind::Prod, Op::Prod, &whole::<FloatProd<f32>>(Kind::Prod, &x, &[]), &mut rng);
    survive_damage(
        Kind::Prod,
        Op::Prod,
        &whole::<IntProd<i16>>(Kind::Prod, &[-3, 700], &[]),
        &mut rng,
    );
    let over: IntProd<u64> = whole(Kind::Prod, &[u64::MAX; 9], &[]);
    // Beyond 2^128, infinity is the exact product rounded to narrower types.
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let rules = Rules::new().out(dtype);
        let bits = over.finish(Op::Prod, &rules).unwrap().first().to_bits();
        let mut negative: IntProd<i64> = whole(Kind::Prod, &[i64::MIN; 3], &[]);
        let below = negative.finish(Op::Prod, &rules).unwrap().first().to_bits();
        negative.absorb(run(&[0], &[], 0, 1));
        let zero = negative.finish(Op::Prod, &rules).unwrap().first().to_bits();
        let (infinity, sign) = match dtype {
            DType::F32 => (u64::from(f32::INFINITY.to_bits()), 1 << 31),
            DType::F16 => (0x7c00, 1 << 15),
            _ => (0x7f80, 1 << 15),
        };
        assert_eq!((bits, below, zero), (infinity, infinity | sign, 0), "{dtype}");
    }
    survive_damage(Kind::Prod, Op::Prod, &over, &mut rng);
}
