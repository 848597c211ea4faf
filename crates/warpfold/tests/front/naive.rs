//! Every operation by its definition, over plain lists of numbers.

use crate::oracle::{self, Exact};
use core::cmp::Ordering;
use num_bigint::BigInt;
use warpfold::{DType, Error, NanPolicy, Op, Rules, Scalar, Value, bf16, f16};

/// An element: its type's values are told apart here, not by the library.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Num {
    Int(i128),
    /// A float of any type, in the f64 that holds it exactly.
    Float(f64),
}

impl Num {
    pub(crate) fn of(dtype: DType, bits: u64) -> Num {
        match dtype {
            DType::Bool => Num::Int(i128::from(bits as u8 != 0)),
            DType::I8 => Num::Int(i128::from(bits as i8)),
            DType::I16 => Num::Int(i128::from(bits as i16)),
            DType::I32 => Num::Int(i128::from(bits as i32)),
            DType::I64 => Num::Int(i128::from(bits as i64)),
            DType::U8 => Num::Int(i128::from(bits as u8)),
            DType::U16 => Num::Int(i128::from(bits as u16)),
            DType::U32 => Num::Int(i128::from(bits as u32)),
            DType::U64 => Num::Int(i128::from(bits)),
            DType::F16 => Num::Float(f16::from_bits(bits as u16).to_f64()),
            DType::BF16 => Num::Float(bf16::from_bits(bits as u16).to_f64()),
            DType::F32 => Num::Float(f64::from(f32::from_bits(bits as u32))),
            DType::F64 => Num::Float(f64::from_bits(bits)),
            _ => panic!("{dtype} is not told of here"),
        }
    }

    pub(crate) fn is_nan(self) -> bool {
        matches!(self, Num::Float(x) if x.is_nan())
    }

    fn is_zero(self) -> bool {
        match self {
            Num::Int(i) => i == 0,
            Num::Float(x) => x == 0.0,
        }
    }

    /// The order of `argmin`: numbers by value.
    fn order_by_value(self, other: Num) -> Ordering {
        match (self, other) {
            (Num::Int(a), Num::Int(b)) => a.cmp(&b),
            (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b).unwrap(),
            _ => unreachable!("one type"),
        }
    }

    /// The order of `min`: -0 below +0, too.
    fn order(self, other: Num) -> Ordering {
        let negative = |x: Num| matches!(x, Num::Float(x) if x.is_sign_negative());
        self.order_by_value(other).then_with(|| negative(other).cmp(&negative(self)))
    }

    fn term(self) -> Term {
        match self {
            Num::Int(i) => Term::Finite(Exact::of_int(i)),
            Num::Float(x) if x.is_nan() => Term::Nan,
            Num::Float(x) if x.is_infinite() => Term::Infinite(x < 0.0),
            Num::Float(x) => Term::Finite(Exact::of_f64(x)),
        }
    }

    fn times(self, other: Num) -> Term {
        match (self, other) {
            (Num::Float(a), Num::Float(b)) if !a.is_finite() || !b.is_finite() => {
                // Signs, infinities and NaNs multiply as IEEE 754 says.
                let unit = |x: f64| if x.is_finite() && x != 0.0 { 1f64.copysign(x) } else { x };
                match Num::Float(unit(a) * unit(b)).term() {
                    // No element is NaN.
                    Term::Nan if !a.is_nan() && !b.is_nan() => Term::Invalid,
                    term => term,
                }
            }
            _ => match (self.term(), other.term()) {
                (Term::Finite(a), Term::Finite(b)) => Term::Finite(a.mul(&b)),
                _ => unreachable!("both are finite"),
            },
        }
    }
}

/// What is added up.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    Finite(Exact),
    /// Whether it is negative.
    Infinite(bool),
    /// Zero times infinity.
    Invalid,
    Nan,
}

/// What the definition says: a value, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Value(Value),
    Empty,
    Overflow,
    NanFound,
    UnsupportedOut,
    /// The definition leaves room: see [`Loose`].
    Loose(Loose),
}

/// Between these, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loose(pub(crate) Scalar, pub(crate) Scalar);

impl Expected {
    /// Whether `error` is the failure expected.
    pub(crate) fn is(&self, error: &Error) -> bool {
        matches!(
            (self, error),
            (Expected::Empty, Error::Empty { .. })
                | (Expected::Overflow, Error::Overflow { .. })
                | (Expected::NanFound, Error::NanFound { .. })
                | (Expected::UnsupportedOut, Error::UnsupportedOut { .. })
        )
    }

    pub(crate) fn is_failure(&self) -> bool {
        !matches!(self, Expected::Value(_) | Expected::Loose(_))
    }

    /// Whether `value` is the answer expected.
    pub(crate) fn allows(&self, value: Value) -> bool {
        match *self {
            Expected::Value(expected) => value == expected,
            Expected::Loose(Loose(low, high)) => {
                let got = value.first();
                got.dtype() == low.dtype()
                    && low.to_f64() <= got.to_f64()
                    && got.to_f64() <= high.to_f64()
            }
            _ => false,
        }
    }
}

/// `x` in the float type `out`, rounded once.
pub(crate) fn rounded(x: &Exact, out: DType) -> Scalar {
    Scalar::from_bits(
        out,
        match out {
            DType::F16 => oracle::round::<f16>(x),
            DType::BF16 => oracle::round::<bf16>(x),
            DType::F32 => oracle::round::<f32>(x),
            _ => oracle::round::<f64>(x),
        },
    )
}

fn rounded_root(x: &Exact, out: DType) -> Scalar {
    Scalar::from_bits(
        out,
        match out {
            DType::F16 => oracle::round_sqrt::<f16>(x),
            DType::BF16 => oracle::round_sqrt::<bf16>(x),
            DType::F32 => oracle::round_sqrt::<f32>(x),
            _ => oracle::round_sqrt::<f64>(x),
        },
    )
}

fn nan(out: DType) -> Scalar {
    Scalar::from_bits(
        out,
        match out {
            DType::F16 => 0x7e00,
            DType::BF16 => 0x7fc0,
            DType::F32 => 0x7fc0_0000,
            _ => 0x7ff8_0000_0000_0000,
        },
    )
}

fn infinity(negative: bool, out: DType) -> Scalar {
    let bits = match out {
        DType::F16 => 0x7c00u64,
        DType::BF16 => 0x7f80,
        DType::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    };
    Scalar::from_bits(out, bits | u64::from(negative) << (8 * out.size() - 1))
}

/// An element in another float type, its zero with its sign.
fn float_in(x: f64, out: DType) -> Scalar {
    if x.is_nan() {
        nan(out)
    } else if x.is_infinite() {
        infinity(x < 0.0, out)
    } else if x == 0.0 {
        Scalar::from_bits(out, u64::from(x.is_sign_negative()) << (8 * out.size() - 1))
    } else {
        rounded(&Exact::of_f64(x), out)
    }
}

/// An integer in `out`, or why not.
fn integer_in(value: &BigInt, out: DType, wrap: bool) -> Expected {
    if out.is_float() {
        let x = Exact { numerator: value.clone(), ..Exact::zero() };
        return Expected::Value(Value::One(rounded(&x, out)));
    }
    let bits = 8 * out.size() as u32;
    let one = BigInt::from(1);
    let (low, high) = if out.is_signed_int() {
        (-(&one << (bits - 1)), &one << (bits - 1))
    } else {
        (BigInt::ZERO, &one << if out == DType::Bool { 1 } else { bits })
    };
    if (value < &low || value >= &high) && !wrap {
        return Expected::Overflow;
    }
    let modulus = &one << 64;
    let low_bits: BigInt = ((value % &modulus) + &modulus) % &modulus;
    let mask = u64::MAX >> (64 - bits);
    let low_bits = u64::try_from(low_bits).unwrap() & mask;
    Expected::Value(Value::One(Scalar::from_bits(out, low_bits)))
}

fn big(x: &Exact) -> BigInt {
    // Sums of integers: the exponent never moves.
    assert_eq!(x.exponent, 0);
    x.numerator.clone()
}

/// `op` over elements of type `dtype`.
pub(crate) fn answer(op: Op, dtype: DType, x: &[Num], y: &[Num], rules: &Rules) -> Vec<Expected> {
    let mut failures = Vec::new();
    let terms: Vec<Term> = match op {
        Op::Dot => x.iter().zip(y).map(|(a, b)| a.times(*b)).collect(),
        Op::SumSq | Op::Norm2 => x.iter().map(|a| a.times(*a)).collect(),
        Op::Norm1 => x
            .iter()
            .map(|a| match a.term() {
                Term::Finite(e) => Term::Finite(e.abs()),
                Term::Infinite(_) => Term::Infinite(false),
                term => term,
            })
            .collect(),
        _ => x.iter().map(|a| a.term()).collect(),
    };
    let nans = terms.iter().filter(|t| matches!(t, Term::Nan)).count();
    if nans > 0 && rules.nan == NanPolicy::Error && op != Op::CountNan {
        failures.push(Expected::NanFound);
    }
    let out = rules.out;
    let float_out = out.is_none_or(DType::is_float);
    let supported = match op {
        Op::Any | Op::All => out.is_none_or(|o| o == DType::Bool),
        Op::ArgMin | Op::ArgMax | Op::ArgMinMax | Op::Count | Op::CountNonzero | Op::CountNan => {
            out.is_none_or(|o| !o.is_float() && o != DType::Bool)
        }
        Op::Mean | Op::Var | Op::Std | Op::Norm2 | Op::LogSumExp => float_out,
        _ if dtype.is_float() => float_out,
        Op::And | Op::Or | Op::Xor if dtype == DType::Bool => out.is_none_or(|o| o == DType::Bool),
        Op::Min | Op::Max | Op::MinMax | Op::And | Op::Or | Op::Xor => {
            out.is_none_or(|o| o != DType::Bool || dtype == DType::Bool)
        }
        _ => out != Some(DType::Bool),
    };
    if !supported {
        failures.push(Expected::UnsupportedOut);
    }
    let kept: Vec<(usize, Num)> =
        x.iter().copied().enumerate().filter(|(_, v)| !v.is_nan()).collect();
    let extreme = matches!(
        op,
        Op::Min | Op::Max | Op::MinMax | Op::Range | Op::ArgMin | Op::ArgMax | Op::ArgMinMax
    );
    let nan_wins = nans > 0 && rules.nan == NanPolicy::Propagate;
    if extreme && kept.is_empty() && !nan_wins {
        failures.push(Expected::Empty);
    }
    if !failures.is_empty() {
        return failures;
    }
    vec![value(op, dtype, x, &terms, &kept, nan_wins, rules)]
}

fn value(
    op: Op,
    dtype: DType,
    x: &[Num],
    terms: &[Term],
    kept: &[(usize, Num)],
    nan_wins: bool,
    rules: &Rules,
) -> Expected {
    let one = |s| Expected::Value(Value::One(s));
    let omitted = if rules.nan == NanPolicy::Omit { x.len() - kept.len() } else { 0 };
    let nonzero = x.iter().filter(|v| !v.is_zero()).count() - omitted;
    let count = |n: usize| integer_in(&n.into(), rules.out.unwrap_or(DType::U64), false);
    let truth = |b| one(Scalar::Bool(b));
    let finite: Vec<Exact> = terms
        .iter()
        .filter_map(|t| if let Term::Finite(e) = t { Some(e.clone()) } else { None })
        .collect();
    let (up, down) = terms.iter().fold((false, false), |(u, d), t| match t {
        Term::Infinite(negative) => (u | !negative, d | negative),
        // NaN, as the sum of infinities of both signs is.
        Term::Invalid => (true, true),
        _ => (u, d),
    });
    let signed = dtype.is_signed_int();
    let natural = match op {
        Op::Mean | Op::Var | Op::Std | Op::Norm2 | Op::LogSumExp if !dtype.is_float() => DType::F64,
        Op::Range | Op::NormInf if !dtype.is_float() => DType::U64,
        Op::Min | Op::Max | Op::MinMax | Op::And | Op::Or | Op::Xor => dtype,
        _ if dtype.is_float() => dtype,
        _ if signed => DType::I64,
        _ => DType::U64,
    };
    let out = rules.out.unwrap_or(natural);
    // NaN and infinities decide sums before any arithmetic.
    let special = if nan_wins || up && down {
        Some(nan(out))
    } else if up || down {
        Some(infinity(down, out))
    } else {
        None
    };
    let n = finite.len() as u128;
    let ends = |order: fn(Num, Num) -> Ordering| {
        let min = kept.iter().copied().reduce(|a, b| if order(b.1, a.1).is_lt() { b } else { a });
        let max = kept.iter().copied().reduce(|a, b| if order(b.1, a.1).is_gt() { b } else { a });
        (min.unwrap(), max.unwrap())
    };
    match op {
        Op::Any => truth(nonzero > 0),
        Op::All => truth(nonzero == x.len() - omitted),
        Op::Count => count(x.len() - omitted),
        Op::CountNonzero => count(nonzero),
        Op::CountNan => count(x.len() - kept.len()),
        Op::Sum | Op::Norm1 | Op::SumSq | Op::Dot => {
            let total = oracle::sum(finite);
            if !dtype.is_float() {
                return integer_in(&big(&total), out, rules.wrap);
            }
            one(special.unwrap_or_else(|| rounded(&total, out)))
        }
        Op::Mean => one(special.unwrap_or_else(|| {
            if n == 0 { nan(out) } else { rounded(&oracle::sum(finite).div(n), out) }
        })),
        Op::Norm2 => one(special.unwrap_or_else(|| rounded_root(&oracle::sum(finite), out))),
        Op::Var | Op::Std => {
            if special.is_some() || n <= u128::from(rules.ddof) {
                return one(nan(out));
            }
            let squares = oracle::sum(finite.iter().map(|e| e.mul(e)));
            let total = oracle::sum(finite);
            let variance = squares
                .mul(&Exact::of_int(n as i128))
                .add(&total.mul(&total).neg())
                .div(n * (n - u128::from(rules.ddof)));
            one(if op == Op::Var { rounded(&variance, out) } else { rounded_root(&variance, out) })
        }
        Op::ArgMin | Op::ArgMax | Op::ArgMinMax => {
            let first_nan = x.iter().position(|v| v.is_nan());
            let (low, high) = match first_nan {
                Some(i) if nan_wins => (i, i),
                _ => {
                    let (low, high) = ends(Num::order_by_value);
                    (low.0, high.0)
                }
            };
            match (op, count(low), count(high)) {
                (Op::ArgMin, low, _) => low,
                (Op::ArgMax, _, high) => high,
                (_, Expected::Value(a), Expected::Value(b)) => {
                    Expected::Value(Value::Pair(a.first(), b.first()))
                }
                _ => Expected::Overflow,
            }
        }
        Op::NormInf if kept.is_empty() && !nan_wins => {
            if dtype.is_float() {
                one(float_in(0.0, out))
            } else {
                integer_in(&BigInt::ZERO, out, false)
            }
        }
        Op::Min | Op::Max | Op::MinMax | Op::Range | Op::NormInf if nan_wins => match op {
            Op::MinMax => Expected::Value(Value::Pair(nan(out), nan(out))),
            _ => one(nan(out)),
        },
        Op::Min | Op::Max | Op::MinMax | Op::Range | Op::NormInf => match ends(Num::order) {
            ((_, Num::Float(low)), (_, Num::Float(high))) => match op {
                Op::Min => one(float_in(low, out)),
                Op::Max => one(float_in(high, out)),
                Op::MinMax => Expected::Value(Value::Pair(float_in(low, out), float_in(high, out))),
                Op::NormInf => one(float_in(low.abs().max(high.abs()), out)),
                _ if low.is_infinite() && low == high => one(nan(out)),
                _ if low.is_infinite() || high.is_infinite() => one(infinity(false, out)),
                _ => one(rounded(&Exact::of_f64(high).add(&Exact::of_f64(low).neg()), out)),
            },
            ((_, Num::Int(low)), (_, Num::Int(high))) => {
                let whole = |v: i128| integer_in(&v.into(), out, false);
                match (op, whole(low), whole(high)) {
                    (Op::Min, low, _) => low,
                    (Op::Max, _, high) => high,
                    (Op::MinMax, Expected::Value(a), Expected::Value(b)) => {
                        Expected::Value(Value::Pair(a.first(), b.first()))
                    }
                    (Op::MinMax, ..) => Expected::Overflow,
                    (Op::Range, ..) => whole(high - low),
                    _ => whole(low.abs().max(high.abs())),
                }
            }
            _ => unreachable!("one type"),
        },
        Op::And | Op::Or | Op::Xor => {
            let start = match (op, dtype) {
                (Op::And, DType::Bool) => 1,
                (Op::And, d) if d.is_unsigned_int() => (1i128 << (8 * d.size())) - 1,
                (Op::And, _) => -1,
                _ => 0,
            };
            let folded = x.iter().fold(start, |f, v| match (op, v) {
                (Op::And, Num::Int(i)) => f & i,
                (Op::Or, Num::Int(i)) => f | i,
                (_, Num::Int(i)) => f ^ i,
                _ => unreachable!("integers only"),
            });
            integer_in(&folded.into(), out, false)
        }
        Op::Prod if dtype.is_float() => {
            let zero = finite.iter().any(|e| e.numerator == BigInt::ZERO);
            let any_infinite = up || down;
            let negative = x
                .iter()
                .filter(|v| matches!(v, Num::Float(f) if f.is_sign_negative() && !f.is_nan()));
            let negative = negative.count() % 2 == 1;
            if nan_wins || zero && any_infinite {
                return one(nan(out));
            }
            if any_infinite {
                return one(infinity(negative, out));
            }
            if zero {
                return one(float_in(if negative { -0.0 } else { 0.0 }, out));
            }
            let product = finite.iter().fold(Exact::of_int(1), |p, e| p.mul(e));
            // A relative error for each factor.
            let slack = Exact {
                exponent: product.exponent - if dtype == DType::F64 { 72 } else { 55 },
                numerator: product.numerator.clone() * BigInt::from(finite.len() + 1),
                ..Exact::zero()
            };
            let (a, b) =
                (rounded(&product.add(&slack.neg()), out), rounded(&product.add(&slack), out));
            Expected::Loose(if negative { Loose(b, a) } else { Loose(a, b) })
        }
        Op::Prod => {
            let zero = x.iter().any(|v| v.is_zero());
            let product = finite.iter().map(big).filter(|b| *b != BigInt::ZERO).product::<BigInt>();
            integer_in(&if zero { BigInt::ZERO } else { product }, out, rules.wrap)
        }
        Op::LogSumExp => {
            if nan_wins {
                return one(nan(out));
            }
            let values: Vec<f64> = kept
                .iter()
                .map(|(_, v)| match v {
                    Num::Float(f) => *f,
                    Num::Int(i) => *i as f64,
                })
                .collect();
            let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if max.is_infinite() {
                return one(float_in(max, out));
            }
            let y = max + values.iter().map(|v| (v - max).exp()).sum::<f64>().ln();
            let slack = 1e-12 * (1.0 + y.abs() + values.len() as f64 * 1e-3);
            Expected::Loose(Loose(float_in(y - slack, out), float_in(y + slack, out)))
        }
        _ => panic!("{op} is not told of here"),
    }
}
