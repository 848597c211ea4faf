//! Products of integers against big integers.

use crate::tree_support::*;
use num_bigint::{BigInt, BigUint, Sign};
use warpfold_core::element::{Bool8, DType};
use warpfold_core::op::{IntProd, Kind, State};
use warpfold_core::{Element, Error, Op, Rules, Scalar};

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
    assert_eq!(to(&s, DType::I16, false), one(Scalar::integer(-300, DType::I16).unwrap()));
    assert!(matches!(to(&s, DType::I8, false), Err(Error::Overflow { out: DType::I8, .. })));
    assert_eq!(to(&s, DType::I8, true), one(Scalar::integer(-44, DType::I8).unwrap()));
    assert!(matches!(to(&s, DType::U64, false), Err(Error::Overflow { .. })));
    assert_eq!(to(&s, DType::F32, false), one(Scalar::F32(-300.0)));
    assert!(matches!(to(&s, DType::Bool, false), Err(Error::UnsupportedOut { .. })));
    // 2^62 * 3 + 1 needs more than 64 bits after one more factor; rounded once.
    let big: IntProd<i32> = whole(Kind::Prod, &[i32::MAX; 4], &[]);
    assert_eq!(to(&big, DType::F64, false), one(Scalar::F64((i32::MAX as f64).powi(2).powi(2))));
    let zero: IntProd<i32> = whole(Kind::Prod, &[-5, 0], &[]);
    assert_eq!(to(&zero, DType::F64, false), one(Scalar::F64(0.0)));
    let truth: IntProd<Bool8> = whole(Kind::Prod, &[Bool8(2), Bool8(255)], &[]);
    assert_eq!(answer(&truth, Op::Prod), Scalar::from_bits(DType::U64, 1));
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = Rng(10);
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

/// The bits of the integer in a float type, by the definition of rounding to the
/// nearest: `precision` bits, ties to even, infinity from half a unit above the
/// largest number on.
fn rounded(product: &BigInt, out: DType) -> u64 {
    let (precision, width, top) = match out {
        DType::F16 => (11u64, 16, 16u64),
        DType::BF16 => (8, 16, 128),
        DType::F32 => (24, 32, 128),
        _ => (53, 64, 1024),
    };
    let sign = u64::from(product.sign() == Sign::Minus) << (width - 1);
    let stored = precision - 1;
    let infinity = ((1u64 << (width - 1 - stored)) - 1) << stored;
    let magnitude = product.magnitude();
    if magnitude.bits() == 0 {
        return 0;
    }
    let cut = magnitude.bits().saturating_sub(precision);
    let (mut kept, rest) = (magnitude >> cut, magnitude - ((magnitude >> cut) << cut));
    let half = (BigUint::from(1u8) << cut) >> 1u8;
    if cut > 0 && (rest > half || rest == half && kept.bit(0)) {
        kept += 1u8;
    }
    let value = kept << cut;
    if value.bits() > top {
        return sign | infinity;
    }
    let exponent = value.bits() - 1;
    let fraction = (value << stored) >> exponent;
    let fraction = fraction.to_u64_digits()[0] & ((1 << stored) - 1);
    sign | (exponent + top - 1) << stored | fraction
}

const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

/// Checks float answers, the canonical form and its bytes against big integers.
fn check_rounded<T: Element + Into<i128>>(x: &[T], rng: &mut Rng) {
    let product: BigInt = x.iter().map(|&v| BigInt::from(v.into())).product();
    let one: IntProd<T> = whole(Kind::Prod, x, &[]);
    assert!(!one.lacks_digits());
    for state in
        [scattered(Kind::Prod, x, &[], rng), IntProd::read(Kind::Prod, &bytes(&one)).unwrap()]
    {
        assert_eq!(bytes(&state), bytes(&one), "{x:?}");
        for out in FLOATS {
            let value = state.finish(Op::Prod, &Rules::new().out(out)).unwrap();
            assert_eq!(value.first().to_bits(), rounded(&product, out), "{out} of {x:?}");
        }
    }
}

/// Factors whose product has `bits` bits or a few more or less.
fn factors<T: Element>(bits: usize, rng: &mut Rng, of: impl Fn(u64) -> T) -> Vec<T> {
    let width = 8 * size_of::<T>();
    let (mut x, mut left) = (Vec::new(), bits as i64);
    while left > 0 {
        let some = 1 + rng.below(width.min(left as usize));
        // Full of ones, a power of two, or random.
        let factor = match rng.below(3) {
            0 => u64::MAX >> (64 - some),
            1 => 1 << (some - 1),
            _ => rng.next() >> (64 - some) | 1 << (some - 1),
        };
        left -= (some as i64 - 1).max(1);
        x.push(of(factor));
    }
    x.extend((0..rng.below(4)).map(|_| of(1)));
    x
}

#[test]
fn long_products_are_rounded_once() {
    let mut rng = Rng(14);
    for bits in [16, 63, 64, 65, 127, 128, 129, 192, 500, 1000, 1022, 1023, 1024, 1025, 1100, 5000]
    {
        for _ in 0..12 {
            check_rounded::<u64>(&factors(bits, &mut rng, |v| v), &mut rng);
            check_rounded::<i64>(&factors(bits, &mut rng, |v| v as i64), &mut rng);
            check_rounded::<u32>(&factors(bits, &mut rng, |v| v as u32), &mut rng);
            check_rounded::<i32>(&factors(bits, &mut rng, |v| v as i32), &mut rng);
            check_rounded::<u16>(&factors(bits, &mut rng, |v| v as u16), &mut rng);
            check_rounded::<i16>(&factors(bits, &mut rng, |v| v as i16), &mut rng);
            check_rounded::<u8>(&factors(bits, &mut rng, |v| v as u8), &mut rng);
            check_rounded::<i8>(&factors(bits, &mut rng, |v| v as i8), &mut rng);
        }
    }
    let bools: IntProd<Bool8> = whole(Kind::Prod, &[Bool8(1); 3000], &[]);
    assert_eq!(bools.finish(Op::Prod, &Rules::new().out(DType::F64)), one(Scalar::F64(1.0)));
}

/// Halves of units, and one above and below, where each type rounds and where it
/// ends; far bits decide.
#[test]
fn ties_of_long_products_go_to_even() {
    let mut rng = Rng(15);
    for (precision, top) in [(53u32, 1024u32), (24, 128), (11, 16), (8, 128)] {
        for odd in [0, 2] {
            // precision + 1 bits, of which the last is half a unit.
            let tie = (1u64 << precision) | odd | 1;
            for power in [0, 1, 60, 76, 127, top - precision - 1, top - precision] {
                let mut x = vec![tie];
                x.extend((0..power).map(|_| 2));
                check_rounded::<u64>(&x, &mut rng);
                for nudge in [tie - 1, tie + 1] {
                    x[0] = nudge;
                    check_rounded::<u64>(&x, &mut rng);
                }
            }
        }
        // All ones: half a unit above the largest number is infinite, less is not.
        for ones in [precision, precision + 1, 63] {
            let mut x = vec![(1u64 << ones) - 1];
            x.extend((ones..top).map(|_| 2));
            check_rounded::<u64>(&x, &mut rng);
        }
    }
    // A tie but for a bit at the very bottom: (2^k + 1)(2^j + 1) has bits 0, j, k.
    for (k, j) in [(53, 1), (60, 7), (63, 10)] {
        let mut x = vec![(1u64 << k) + 1, (1 << j) + 1];
        for _ in 0..14 {
            check_rounded::<u64>(&x, &mut rng);
            x.push((1 << 60) + 1);
        }
    }
    // Zeros and signs beyond every type.
    for (x, bits) in [(vec![i64::MIN; 17], 0xfff << 52), (vec![i64::MIN; 18], 0x7ff << 52)] {
        let state: IntProd<i64> = whole(Kind::Prod, &x, &[]);
        assert!(state.is_beyond());
        let rules = Rules::new().out(DType::F64);
        assert_eq!(state.finish(Op::Prod, &rules).unwrap().first().to_bits(), bits);
        let mut x = x;
        x.insert(5, 0);
        check_rounded::<i64>(&x, &mut rng);
    }
}

/// Those that had 128 bits: what they say of more is little, but true.
#[test]
fn states_without_digits_are_read_and_merged() {
    let old = |flags: u8, wrapped: u64| -> IntProd<i64> {
        let mut payload = vec![0; 26];
        (payload[0], payload[1]) = (flags, 1);
        payload[18..].copy_from_slice(&wrapped.to_le_bytes());
        let state = IntProd::read(Kind::Prod, &payload).unwrap();
        assert_eq!(bytes(&state), payload);
        assert!(state.lacks_digits());
        state
    };
    let as_f64 = |s: &IntProd<i64>| s.finish(Op::Prod, &Rules::new().out(DType::F64));
    let lost = old(0, 81);
    match as_f64(&lost) {
        Err(e @ Error::LostDigits { .. }) => assert!(e.hint().is_some(), "{e}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        lost.finish(Op::Prod, &Rules::new().wrap(true)),
        one(Scalar::integer(81, DType::I64).unwrap())
    );
    assert!(matches!(lost.finish(Op::Prod, &Rules::new()), Err(Error::Overflow { .. })));
    let f32s = |s: &IntProd<i64>| s.finish(Op::Prod, &Rules::new().out(DType::F32));
    assert_eq!(f32s(&old(1, 7)), one(Scalar::F32(f32::NEG_INFINITY)));
    assert_eq!(as_f64(&old(3, 0)), one(Scalar::F64(0.0)));
    // With factors that are known, and others that are not.
    let mut rng = Rng(16);
    let known: Vec<IntProd<i64>> =
        [&[i64::MAX; 4][..], &[-3; 100], &[1 << 40; 4]].map(|x| whole(Kind::Prod, x, &[])).into();
    for count in 0..10 {
        let mut parts = vec![lost.clone(); count];
        parts.extend(known.iter().cloned());
        let mut forms = Vec::new();
        for _ in 0..20 {
            for i in (1..parts.len()).rev() {
                parts.swap(i, rng.below(i + 1));
            }
            let mut all = IntProd::<i64>::identity(Kind::Prod);
            for part in &parts {
                all.merge(part).unwrap();
            }
            forms.push(bytes(&all));
            let again = IntProd::<i64>::read(Kind::Prod, &bytes(&all)).unwrap();
            assert_eq!(again, all);
            // 2^252 2^158 2^160 of the known ones, and 2^128 of each other one.
            match as_f64(&again) {
                Ok(value) if count == 0 => assert!(value.first().to_bits() < 0x7ff << 52),
                Ok(value) => {
                    assert_eq!((value.first().to_bits(), count > 3), (0x7ff << 52, true));
                }
                Err(e) => assert!((1..=3).contains(&count), "{count}: {e}"),
            }
            survive_damage(Kind::Prod, Op::Prod, &all, &mut rng);
        }
        forms.dedup();
        assert_eq!(forms.len(), 1, "{count}");
    }
    // Digits come back from the elements.
    let mut lost = old(1, (1u64 << 63).wrapping_mul(3).wrapping_neg());
    let x = [1 << 62, 1 << 60, -2, 3, 1 << 40];
    let whole: IntProd<i64> = whole(Kind::Prod, &x, &[]);
    lost.take_digits_of(&whole);
    assert_eq!(as_f64(&lost), as_f64(&whole));
}

#[test]
fn products_that_fit_take_no_more_memory_than_they_did() {
    assert_eq!(size_of::<IntProd<u8>>(), 48);
    let most = IntProd::<u8>::most_bytes(1 << 40);
    assert!((48 + 128..48 + 160).contains(&most), "{most}");
    // And no more bytes, those that were written before.
    for (x, len) in
        [(vec![u64::MAX; 2], 26), (vec![u64::MAX; 3], 27 + 24), (vec![u64::MAX; 17], 26)]
    {
        assert_eq!(bytes(&whole::<IntProd<u64>>(Kind::Prod, &x, &[])).len(), len);
    }
}
