//! Floating-point results against an oracle that knows only fractions of big integers.
//!
//! The oracle finds, by bisection over a format's numbers, the two neighbours of the true result and picks one as the rounding mode says.

use core::cmp::Ordering;
use num_bigint::BigInt;
use proptest::prelude::*;
use warpfold_ptx::ir::{FloatBinary, FloatMode, FloatUnary, Rounding, Type};
use warpfold_ptx::value::{convert, float, real::Format};

const MODES: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];
const TYPES: [Type; 4] = [Type::F16, Type::Bf16, Type::F32, Type::F64];

/// A fraction with a positive denominator.
#[derive(Clone, Debug)]
struct Fraction {
    over: BigInt,
    under: BigInt,
}

impl Fraction {
    fn integer(n: i128) -> Fraction {
        Fraction { over: BigInt::from(n), under: BigInt::from(1) }
    }

    fn scaled(n: i128, exponent: i32) -> Fraction {
        let power = BigInt::from(1) << exponent.unsigned_abs();
        let n = BigInt::from(n);
        if exponent >= 0 {
            Fraction { over: n * power, under: BigInt::from(1) }
        } else {
            Fraction { over: n, under: power }
        }
    }

    /// The number that finite bits stand for, by the text of IEEE 754.
    fn of(format: Format, bits: u64) -> Fraction {
        let stored = format.precision - 1;
        let fraction = (bits & ((1 << stored) - 1)) as i128;
        let exponent = ((bits >> stored) & ((1 << (format.bits - 1 - stored)) - 1)) as i32;
        let sign = if (bits >> (format.bits - 1)) & 1 == 1 { -1 } else { 1 };
        let lowest = exponent.max(1) - format.max_exponent - stored as i32;
        let implicit = if exponent == 0 { 0 } else { 1i128 << stored };
        Fraction::scaled(sign * (fraction + implicit), lowest)
    }

    fn add(&self, other: &Fraction) -> Fraction {
        Fraction {
            over: &self.over * &other.under + &other.over * &self.under,
            under: &self.under * &other.under,
        }
    }

    fn mul(&self, other: &Fraction) -> Fraction {
        Fraction { over: &self.over * &other.over, under: &self.under * &other.under }
    }

    fn div(&self, other: &Fraction) -> Fraction {
        let (over, under) = (&self.over * &other.under, &self.under * &other.over);
        if under < BigInt::from(0) {
            Fraction { over: -over, under: -under }
        } else {
            Fraction { over, under }
        }
    }

    fn half(&self) -> Fraction {
        Fraction { over: self.over.clone(), under: &self.under * 2 }
    }

    fn compare(&self, other: &Fraction) -> Ordering {
        (&self.over * &other.under).cmp(&(&other.over * &self.under))
    }

    fn is_zero(&self) -> bool {
        self.over == BigInt::from(0)
    }
}

/// The numbers of a format in order: key 0 is zero, and the key after the largest finite number is the power of two that follows it.
fn by_key(format: Format, key: i64) -> Fraction {
    let magnitude = key.unsigned_abs();
    let value = if magnitude == format.infinity() {
        Fraction::scaled(1, format.max_exponent + 1)
    } else {
        Fraction::of(format, magnitude)
    };
    if key < 0 { Fraction { over: -value.over, under: value.under } } else { value }
}

fn bits_of_key(format: Format, key: i64) -> u64 {
    key.unsigned_abs() | if key < 0 { 1 << (format.bits - 1) } else { 0 }
}

/// Rounds a real number that is known by comparing it: `order(x)` says how the number lies to `x`. It must not be zero.
fn rounded(format: Format, rounding: Rounding, order: impl Fn(&Fraction) -> Ordering) -> u64 {
    let top = format.infinity() as i64;
    let negative = order(&Fraction::integer(0)).is_lt();
    let signed_zero = |bits: u64| {
        if bits & ((1 << (format.bits - 1)) - 1) == 0 && negative {
            1 << (format.bits - 1)
        } else {
            bits
        }
    };
    // The largest key whose number is not above the true one, within the finite numbers.
    let (mut low, mut high) = (-top, top);
    if order(&by_key(format, high)).is_ge() {
        low = high;
    }
    while high > low + 1 {
        let middle = low.midpoint(high);
        if order(&by_key(format, middle)).is_ge() { low = middle } else { high = middle }
    }
    if low == top {
        high = top;
    }
    let exact = order(&by_key(format, low)).is_eq();
    if exact && low.abs() < top {
        return signed_zero(bits_of_key(format, low));
    }
    let up = match rounding {
        Rounding::Down => false,
        Rounding::Up => true,
        Rounding::Zero => negative,
        Rounding::Nearest | Rounding::NearestAway => {
            let middle = by_key(format, low).add(&by_key(format, high)).half();
            match order(&middle) {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal if rounding == Rounding::NearestAway => !negative,
                Ordering::Equal => low % 2 != 0,
            }
        }
    };
    let mut key = if up { high } else { low };
    // Beyond the largest finite number, towards zero and the like stop at it.
    let stops = match rounding {
        Rounding::Zero => true,
        Rounding::Down => key > 0,
        Rounding::Up => key < 0,
        _ => false,
    };
    if stops {
        key = key.clamp(-top + 1, top - 1);
    }
    signed_zero(bits_of_key(format, key))
}

fn expect(format: Format, rounding: Rounding, truth: &Fraction) -> u64 {
    rounded(format, rounding, |x| truth.compare(x))
}

fn mode(rounding: Rounding) -> FloatMode {
    FloatMode { rounding, ..FloatMode::default() }
}

/// Bits of a format: anything, numbers near one another, and the edges.
fn finite(format: Format) -> impl Strategy<Value = u64> {
    let sign = 1u64 << (format.bits - 1);
    let edge = [0, 1, 2, format.min_normal() - 1, format.min_normal(), format.min_normal() + 1];
    let top = [
        format.infinity() - 1,
        format.infinity() - 2,
        format.one(),
        format.one() - 1,
        format.one() + 1,
    ];
    let edges: Vec<u64> = edge.into_iter().chain(top).flat_map(|e| [e, e | sign]).collect();
    let spread = format.min_normal() * 4;
    prop_oneof![
        4 => any::<u64>(),
        3 => (0..spread, any::<bool>()).prop_map(move |(d, s)| {
            (format.one() - spread / 2 + d) | if s { sign } else { 0 }
        }),
        2 => prop::sample::select(edges),
        // Few significant bits: ties.
        2 => any::<u64>().prop_map(move |x| x & !((format.min_normal() - 1) >> 3)),
    ]
    .prop_map(move |bits| bits & (sign | (sign - 1)))
    .prop_filter("finite", move |&bits| bits & (sign - 1) < format.infinity())
}

fn case() -> impl Strategy<Value = (Type, Rounding, u64, u64, u64)> {
    (prop::sample::select(TYPES.to_vec()), prop::sample::select(MODES.to_vec())).prop_flat_map(
        |(ty, rounding)| {
            let format = Format::of(ty).unwrap();
            (Just(ty), Just(rounding), finite(format), finite(format), finite(format))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn sums_and_differences_are_rounded_once((ty, rounding, a, b, _) in case()) {
        let format = Format::of(ty).unwrap();
        let (x, y) = (Fraction::of(format, a), Fraction::of(format, b));
        let minus_y = Fraction { over: -y.over.clone(), under: y.under.clone() };
        for (op, truth) in [(FloatBinary::Add, x.add(&y)), (FloatBinary::Sub, x.add(&minus_y))] {
            let got = float::binary(op, ty, mode(rounding), a, b);
            if truth.is_zero() {
                prop_assert_eq!(got & ((1 << (format.bits - 1)) - 1), 0);
            } else {
                prop_assert_eq!(got, expect(format, rounding, &truth), "{:?} {:#x} {:#x}", op, a, b);
            }
        }
    }

    #[test]
    fn products_are_rounded_once((ty, rounding, a, b, _) in case()) {
        let format = Format::of(ty).unwrap();
        let truth = Fraction::of(format, a).mul(&Fraction::of(format, b));
        prop_assume!(!truth.is_zero());
        let got = float::binary(FloatBinary::Mul, ty, mode(rounding), a, b);
        prop_assert_eq!(got, expect(format, rounding, &truth));
    }

    #[test]
    fn fused_sums_are_rounded_once((ty, rounding, a, b, c) in case(), cancel in any::<bool>()) {
        let format = Format::of(ty).unwrap();
        // The product's own rounding with the sign turned leaves only its error: the hardest case.
        let c = if cancel {
            float::binary(FloatBinary::Mul, ty, mode(Rounding::Nearest), a, b) ^ format.sign()
        } else {
            c
        };
        prop_assume!(!format.is_infinite(c));
        let product = Fraction::of(format, a).mul(&Fraction::of(format, b));
        let truth = product.add(&Fraction::of(format, c));
        prop_assume!(!truth.is_zero());
        let got = float::fma(ty, mode(rounding), a, b, c);
        prop_assert_eq!(got, expect(format, rounding, &truth));
    }

    #[test]
    fn quotients_are_rounded_once((ty, rounding, a, b, _) in case()) {
        let format = Format::of(ty).unwrap();
        let (x, y) = (Fraction::of(format, a), Fraction::of(format, b));
        prop_assume!(!x.is_zero() && !y.is_zero());
        let got = float::binary(FloatBinary::Div, ty, mode(rounding), a, b);
        prop_assert_eq!(got, expect(format, rounding, &x.div(&y)));
        let reciprocal = float::unary(FloatUnary::Rcp, ty, mode(rounding), b);
        prop_assert_eq!(reciprocal, expect(format, rounding, &Fraction::integer(1).div(&y)));
    }

    #[test]
    fn roots_are_rounded_once((ty, rounding, a, _, _) in case()) {
        let format = Format::of(ty).unwrap();
        let a = a & !format.sign();
        prop_assume!(a != 0);
        let square = Fraction::of(format, a);
        let truth = rounded(format, rounding, |x| {
            if x.over < BigInt::from(0) { Ordering::Greater } else { square.compare(&x.mul(x)) }
        });
        prop_assert_eq!(float::unary(FloatUnary::Sqrt, ty, mode(rounding), a), truth);
    }

    #[test]
    fn conversions_between_formats_are_rounded_once(
        (ty, rounding, a, _, _) in case(),
        to in prop::sample::select(TYPES.to_vec()),
    ) {
        let (from, format) = (Format::of(ty).unwrap(), Format::of(to).unwrap());
        let truth = Fraction::of(from, a);
        prop_assume!(!truth.is_zero());
        let got = convert::convert(to, ty, to.bits(), mode(rounding), false, a);
        prop_assert_eq!(got, expect(format, rounding, &truth));
    }

    #[test]
    fn conversions_from_integers_are_rounded_once(
        value in any::<u64>(), up in 0u32..64,
        from in prop::sample::select(vec![Type::U8, Type::S16, Type::U32, Type::S32, Type::U64, Type::S64]),
        to in prop::sample::select(TYPES.to_vec()),
        rounding in prop::sample::select(MODES.to_vec()),
    ) {
        let value = (value >> up) & from.mask();
        let up = 64 - from.bits();
        let number = if from.is_signed() { i128::from(((value << up) as i64) >> up) } else { i128::from(value) };
        prop_assume!(number != 0);
        let got = convert::convert(to, from, to.bits(), mode(rounding), false, value);
        prop_assert_eq!(got, expect(Format::of(to).unwrap(), rounding, &Fraction::integer(number)));
    }

    #[test]
    fn conversions_to_integers_round_then_clamp(
        (ty, rounding, a, _, _) in case(),
        to in prop::sample::select(vec![Type::U8, Type::S8, Type::U16, Type::S32, Type::U32, Type::U64, Type::S64]),
    ) {
        let truth = Fraction::of(Format::of(ty).unwrap(), a);
        // Floor of the fraction, then the mode's choice between it and its successor.
        let floor = {
            let quotient = &truth.over / &truth.under;
            let above = &quotient * &truth.under > truth.over;
            if above { quotient - 1 } else { quotient }
        };
        let rest = Fraction { over: &truth.over - &floor * &truth.under, under: truth.under.clone() };
        let half = Fraction { over: BigInt::from(1), under: BigInt::from(2) };
        let up = !rest.is_zero() && match rounding {
            Rounding::Up => true,
            Rounding::Zero => truth.over < BigInt::from(0),
            Rounding::Nearest => match rest.compare(&half) {
                Ordering::Greater => true,
                Ordering::Equal => &floor % 2 != BigInt::from(0),
                Ordering::Less => false,
            },
            _ => false,
        };
        let (low, high) = if to.is_signed() {
            (-(1i128 << (to.bits() - 1)), (1i128 << (to.bits() - 1)) - 1)
        } else {
            (0, (1i128 << to.bits()) - 1)
        };
        let whole = (floor + i32::from(up)).clamp(BigInt::from(low), BigInt::from(high));
        let got = convert::convert(to, ty, to.bits(), mode(rounding), true, a);
        prop_assert_eq!(BigInt::from(got), whole & BigInt::from(to.mask()));
    }
}

#[test]
fn every_f16_converts_as_the_half_crate_has_it() {
    for bits in 0..=u16::MAX {
        let wide = half::f16::from_bits(bits).to_f32();
        let got =
            convert::convert(Type::F32, Type::F16, 32, FloatMode::default(), false, bits.into());
        if wide.is_nan() {
            assert_eq!(got, 0x7fff_ffff);
        } else {
            assert_eq!(got, u64::from(wide.to_bits()), "{bits:#x}");
        }
        let back = convert::convert(Type::F16, Type::F32, 16, FloatMode::default(), false, got);
        let expected = if wide.is_nan() { 0x7fff } else { u64::from(bits) };
        assert_eq!(back, expected);
    }
}

#[test]
fn a_detour_over_f64_would_round_f16_sums_twice() {
    // 1 + 2^-11 + 2^-60 lies above the tie that an f64 would make of it.
    let (a, b) = (0x3c01, 0x3c00);
    let c = float::fma(Type::F16, FloatMode::default(), a, b, 0x0001);
    assert_eq!(c, 0x3c01);
    let tiny_product = float::fma(Type::F16, FloatMode::default(), 0x0001, 0x0001, 0x3c01);
    assert_eq!(tiny_product, 0x3c01);
    // 2^-24 * 2^-24 on top of a tie: (1 + 2^-10) * (1 + 2^-10) = 1 + 2^-9 + 2^-20.
    let square = float::fma(Type::F16, FloatMode::default(), 0x3c01, 0x3c01, 0x0000);
    assert_eq!(square, 0x3c02);
}

#[test]
fn an_exact_cancellation_is_positive_but_downwards() {
    for ty in TYPES {
        let format = Format::of(ty).unwrap();
        let (one, minus_one) = (format.one(), format.one() | format.sign());
        for rounding in MODES {
            let zero = if rounding == Rounding::Down { format.sign() } else { 0 };
            assert_eq!(float::binary(FloatBinary::Add, ty, mode(rounding), one, minus_one), zero);
            assert_eq!(float::fma(ty, mode(rounding), one, one, minus_one), zero);
            let negative_zero = format.sign();
            assert_eq!(
                float::binary(FloatBinary::Add, ty, mode(rounding), negative_zero, negative_zero),
                negative_zero
            );
        }
    }
}

#[test]
fn nothing_defined_is_the_canonical_nan() {
    let cases = [
        (Type::F32, 0x7f80_0000, 0x7fff_ffff),
        (Type::F16, 0x7c00, 0x7fff),
        (Type::Bf16, 0x7f80, 0x7fff),
        (Type::F64, 0x7ff0_0000_0000_0000, 0xfff8_0000_0000_0000),
    ];
    for (ty, infinity, nan) in cases {
        for rounding in MODES {
            let m = mode(rounding);
            assert_eq!(float::binary(FloatBinary::Sub, ty, m, infinity, infinity), nan);
            assert_eq!(float::binary(FloatBinary::Mul, ty, m, infinity, 0), nan);
            assert_eq!(float::binary(FloatBinary::Div, ty, m, 0, 0), nan);
            assert_eq!(float::fma(ty, m, infinity, 0, 0), nan, "{ty}");
        }
    }
    let payload = 0x7ff0_0000_0000_1234;
    let sum = float::binary(FloatBinary::Add, Type::F64, FloatMode::default(), 0, payload);
    assert_eq!(sum, 0x7ff8_0000_0000_1234, "f64 keeps the first NaN, made quiet");
}

#[test]
fn flushing_takes_subnormal_sources_and_results() {
    let ftz = FloatMode { ftz: true, ..FloatMode::default() };
    let (small, minus_small) = (0x0040_0000, 0x8040_0000);
    let add = |m, a, b| float::binary(FloatBinary::Add, Type::F32, m, a, b);
    assert_eq!(add(FloatMode::default(), small, small), 0x0080_0000);
    assert_eq!(add(ftz, small, small), 0);
    assert_eq!(add(ftz, minus_small, minus_small), 0x8000_0000);
    // 2^-126 * 0.5 is subnormal only as a result.
    let half = float::binary(FloatBinary::Mul, Type::F32, ftz, 0x8080_0000, 0x3f00_0000);
    assert_eq!(half, 0x8000_0000);
}

#[test]
fn saturation_ends_in_the_unit_interval() {
    let sat = FloatMode { sat: true, ..FloatMode::default() };
    let add = |a: f32, b: f32| {
        let bits = [a, b].map(|x| u64::from(x.to_bits()));
        f32::from_bits(float::binary(FloatBinary::Add, Type::F32, sat, bits[0], bits[1]) as u32)
    };
    assert_eq!(add(0.75, 0.75), 1.0);
    assert_eq!(add(0.25, 0.25), 0.5);
    assert_eq!(add(-2.0, 1.0).to_bits(), 0);
    assert_eq!(add(f32::NAN, 1.0).to_bits(), 0);
}

#[test]
fn extrema_prefer_numbers_and_order_zeros() {
    let f = |op, m, a: f32, b: f32| {
        float::binary(op, Type::F32, m, a.to_bits().into(), b.to_bits().into()) as u32
    };
    let plain = FloatMode::default();
    assert_eq!(f(FloatBinary::Min, plain, 0.0, -0.0), 0x8000_0000);
    assert_eq!(f(FloatBinary::Max, plain, -0.0, 0.0), 0);
    assert_eq!(f(FloatBinary::Min, plain, f32::NAN, 2.0), 2f32.to_bits());
    assert_eq!(f(FloatBinary::Max, plain, f32::NAN, f32::NAN), 0x7fff_ffff);
    let nan = FloatMode { nan: true, ..plain };
    assert_eq!(f(FloatBinary::Min, nan, f32::NAN, 2.0), 0x7fff_ffff);
    let xor = FloatMode { xorsign_abs: true, ..plain };
    assert_eq!(f(FloatBinary::Max, xor, -3.0, 2.0), (-3f32).to_bits());
    assert_eq!(f(FloatBinary::Min, xor, -3.0, -2.0), 2f32.to_bits());
}

#[test]
fn nan_becomes_the_integer_that_ptx_names() {
    let cvt = |to: Type, from: Type, a| {
        convert::convert(to, from, to.bits(), FloatMode::default(), true, a)
    };
    let (nan32, nan64) = (0x7fc0_0000, 0x7ff8_0000_0000_0000);
    assert_eq!(cvt(Type::S32, Type::F32, nan32), 0);
    assert_eq!(cvt(Type::U32, Type::F32, nan32), 0);
    assert_eq!(cvt(Type::S64, Type::F32, nan32), 1 << 63);
    assert_eq!(cvt(Type::S32, Type::F64, nan64), 1 << 31);
    assert_eq!(cvt(Type::U32, Type::F32, 0xff80_0000), 0, "-infinity");
    assert_eq!(cvt(Type::S32, Type::F32, 0x7f80_0000), 0x7fff_ffff, "+infinity");
}

#[test]
fn pairs_are_two_halves() {
    let one_two = 0x4000_3c00;
    let sum = float::binary(FloatBinary::Add, Type::F16x2, FloatMode::default(), one_two, one_two);
    assert_eq!(sum, 0x4400_4000);
    let pair = convert::convert_pair(
        Type::F16x2,
        Type::F32,
        FloatMode::default(),
        2f32.to_bits().into(),
        1f32.to_bits().into(),
    );
    assert_eq!(pair, one_two);
}
