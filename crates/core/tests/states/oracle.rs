//! Slow, independent arithmetic to measure the library against: exact
//! rationals, and rounding by searching the float type for neighbours.

use core::cmp::Ordering;
use num_bigint::{BigInt, BigUint, Sign};
use warpfold_core::exact::FloatFormat;
use warpfold_core::op::{Kind, Run, State};
use warpfold_core::{DType, Element};

/// `numerator * 2^exponent / denominator`.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    pub(crate) numerator: BigInt,
    pub(crate) exponent: i64,
    pub(crate) denominator: BigUint,
}

impl Exact {
    pub(crate) fn zero() -> Exact {
        Exact { numerator: BigInt::ZERO, exponent: 0, denominator: BigUint::from(1u8) }
    }

    /// A finite f64, taken apart here and not by the library.
    pub(crate) fn of_f64(x: f64) -> Exact {
        assert!(x.is_finite());
        let bits = x.to_bits();
        let field = (bits >> 52 & 0x7ff) as i64;
        let fraction = bits & ((1 << 52) - 1);
        let (m, exponent) =
            if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        let sign = if bits >> 63 == 1 { Sign::Minus } else { Sign::Plus };
        let numerator = BigInt::from_biguint(sign, BigUint::from(m));
        Exact { numerator, exponent, denominator: BigUint::from(1u8) }
    }

    pub(crate) fn of_int(value: i128) -> Exact {
        Exact { numerator: value.into(), ..Exact::zero() }
    }

    pub(crate) fn add(&self, other: &Exact) -> Exact {
        let exponent = self.exponent.min(other.exponent);
        let a = (&self.numerator << (self.exponent - exponent))
            * BigInt::from(other.denominator.clone());
        let b = (&other.numerator << (other.exponent - exponent))
            * BigInt::from(self.denominator.clone());
        Exact { numerator: a + b, exponent, denominator: &self.denominator * &other.denominator }
    }

    pub(crate) fn mul(&self, other: &Exact) -> Exact {
        Exact {
            numerator: &self.numerator * &other.numerator,
            exponent: self.exponent + other.exponent,
            denominator: &self.denominator * &other.denominator,
        }
    }

    pub(crate) fn neg(&self) -> Exact {
        Exact { numerator: -&self.numerator, ..self.clone() }
    }

    pub(crate) fn div(&self, n: u128) -> Exact {
        Exact { denominator: &self.denominator * BigUint::from(n), ..self.clone() }
    }

    pub(crate) fn abs(&self) -> Exact {
        Exact { numerator: self.numerator.magnitude().clone().into(), ..self.clone() }
    }

    /// `|self|` against `m * 2^e`.
    fn cmp_magnitude(&self, m: &BigUint, e: i64) -> Ordering {
        let low = self.exponent.min(e);
        let left = self.numerator.magnitude() << (self.exponent - low);
        let right = (m * &self.denominator) << (e - low);
        left.cmp(&right)
    }
}

pub(crate) fn sum(terms: impl IntoIterator<Item = Exact>) -> Exact {
    terms.into_iter().fold(Exact::zero(), |s, x| s.add(&x))
}

/// The value of finite, non-negative bits of `T`; infinity's bits stand for
/// the first value that the format would have if its exponents went on.
fn value_of<T: FloatFormat>(bits: u64) -> (BigUint, i64) {
    if bits == T::INFINITY_BITS {
        let (m, e) = value_of::<T>(bits - 1);
        return (m + 1u8, e);
    }
    let x = match T::DTYPE {
        DType::F16 => half::f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    };
    let x = Exact::of_f64(x);
    // In units of the last place, so that adding 1 is the next float.
    let place = if T::DTYPE == DType::F64 {
        x.exponent
    } else {
        let high = x.numerator.bits() as i64 + x.exponent;
        (high - i64::from(T::PRECISION)).max(i64::from(T::LSB))
    };
    let m = x.numerator.magnitude();
    (if place >= x.exponent { m >> (place - x.exponent) } else { m << (x.exponent - place) }, place)
}

/// The bits of the nearest `T`, ties to even bits, found by bisection over
/// all finite values. `cmp` compares the magnitude with `m * 2^e`.
fn nearest<T: FloatFormat>(negative: bool, cmp: impl Fn(&BigUint, i64) -> Ordering) -> u64 {
    // The largest finite value that is not above the number.
    let (mut low, mut high) = (0, T::INFINITY_BITS);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let (m, e) = value_of::<T>(middle);
        if cmp(&m, e) == Ordering::Less { high = middle } else { low = middle }
    }
    let ((a, ea), (b, eb)) = (value_of::<T>(low), value_of::<T>(low + 1));
    let e = ea.min(eb);
    let twice_midpoint = (a << (ea - e)) + (b << (eb - e));
    let bits = match cmp(&twice_midpoint, e - 1) {
        Ordering::Less => low,
        Ordering::Greater => low + 1,
        Ordering::Equal => low + (low & 1),
    };
    bits | if negative { T::SIGN_BIT } else { 0 }
}

/// The nearest `T` to an exact value.
pub(crate) fn round<T: FloatFormat>(x: &Exact) -> u64 {
    nearest::<T>(x.numerator.sign() == Sign::Minus, |m, e| x.cmp_magnitude(m, e))
}

/// The nearest `T` to the square root of an exact value.
pub(crate) fn round_sqrt<T: FloatFormat>(x: &Exact) -> u64 {
    assert!(x.numerator.sign() != Sign::Minus);
    nearest::<T>(false, |m, e| x.cmp_magnitude(&(m * m), 2 * e))
}

/// A finite element's value.
pub(crate) fn exact<T: Element>(x: T) -> Exact {
    let bits = x.bits();
    match T::DTYPE {
        DType::F16 => Exact::of_f64(half::f16::from_bits(bits as u16).to_f64()),
        DType::BF16 => Exact::of_f64(half::bf16::from_bits(bits as u16).to_f64()),
        DType::F32 => Exact::of_f64(f64::from(f32::from_bits(bits as u32))),
        DType::F64 => Exact::of_f64(f64::from_bits(bits)),
        DType::Bool => Exact::of_int(i128::from(bits != 0)),
        DType::I8 => Exact::of_int(i128::from(bits as i8)),
        DType::I16 => Exact::of_int(i128::from(bits as i16)),
        DType::I32 => Exact::of_int(i128::from(bits as i32)),
        DType::I64 => Exact::of_int(i128::from(bits as i64)),
        _ => Exact::of_int(i128::from(bits)),
    }
}

/// The mean of squared deviations whose sum is given.
pub(crate) fn variance(deviations: &Exact, items: usize, ddof: u64) -> Exact {
    deviations.div(items as u128 - u128::from(ddof))
}

/// The same over the count less `numerator / 2^shift`.
pub(crate) fn corrected_variance(
    deviations: &Exact,
    items: usize,
    numerator: i128,
    shift: u32,
) -> Exact {
    let scaled = deviations.mul(&Exact::of_int(1 << shift));
    scaled.div((((items as i128) << shift) - numerator).unsigned_abs())
}

/// The sum of squared deviations, by its definition: two passes, in rationals, of which all have
/// the denominator that the mean has.
pub(crate) fn squared_deviations(items: &[Exact]) -> Exact {
    let n = items.len() as u128;
    let (count, total) = (Exact::of_int(n as i128), sum(items.iter().cloned()));
    let squares = items.iter().map(|x| {
        let d = x.mul(&count).add(&total.neg());
        d.mul(&d)
    });
    sum(squares).div(n * n)
}

/// The state of `items` from position `start` on.
pub(crate) fn state<S: State>(kind: Kind, start: u64, items: &[S::Item]) -> S {
    let mut state = S::identity(kind);
    state.absorb(Run { start, items, others: &[] });
    state
}

pub(crate) fn bytes<S: State>(state: &S) -> Vec<u8> {
    let mut out = Vec::new();
    state.write(&mut out);
    out
}
