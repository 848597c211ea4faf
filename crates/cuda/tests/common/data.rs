//! Elements that have broken kernels.

use super::Random;
use warpfold_core::element::{bf16, f16};
use warpfold_core::{DType, Element};

pub(crate) const PATTERNS: [&str; 15] = [
    "uniform",
    "signed",
    "random bits",
    "finite bits",
    "wide",
    "sparse",
    "zeros",
    "negative zeros",
    "zeros of both signs",
    "specials",
    "specials and zeros",
    "top of the window",
    "one huge",
    "subnormal",
    "drifting",
];

/// What data may be like, whatever the question: shares of NaNs and infinities, constants,
/// decades.
pub(crate) const DRAWN: [&str; 10] = [
    "one NaN",
    "a hundredth NaN",
    "half NaN",
    "all NaN",
    "a hundredth infinite",
    "constant",
    "forty decades",
    "decades and NaN",
    "subnormal",
    "zeros of both signs",
];

/// The element nearest to a number; of integers, to a hundred of it.
pub(crate) fn from_f64<T: Element>(x: f64) -> T {
    T::from_bits(match T::DTYPE {
        DType::F64 => x.to_bits(),
        DType::F32 => u64::from((x as f32).to_bits()),
        DType::F16 => u64::from(f16::from_f64(x).to_bits()),
        DType::BF16 => u64::from(bf16::from_f64(x).to_bits()),
        _ => (x * 100.0) as i64 as u64,
    })
}

/// `n` elements of a pattern.
pub(crate) fn make<T: Element>(pattern: &str, n: usize, random: &mut Random) -> Vec<T> {
    let infinity: T = from_f64(f64::INFINITY);
    let finite = |x: T| {
        let special = T::DTYPE.is_float() && x.without_sign() >= infinity.without_sign();
        if special { T::from_bits(0) } else { x }
    };
    let decades = |random: &mut Random, most: f64| -> T {
        let e = (random.unit() * 2.0 - 1.0) * most;
        finite(from_f64((random.unit() - 0.5) * 10f64.powf(e)))
    };
    // As far as the type goes.
    let all: f64 = if T::DTYPE == DType::F64 { 300.0 } else { 37.0 };
    let only = random.place(n.max(1));
    (0..n)
        .map(|i| match pattern {
            "one NaN" if i == only => from_f64(f64::NAN),
            "one NaN" => from_f64(random.unit()),
            "a hundredth NaN" if random.place(100) == 0 => from_f64(f64::NAN),
            "a hundredth NaN" => from_f64(random.unit() - 0.25),
            "half NaN" if random.place(2) == 0 => from_f64(f64::NAN),
            "half NaN" => from_f64(random.unit() - 0.5),
            "all NaN" => from_f64(-f64::NAN),
            "a hundredth infinite" if random.place(100) == 0 => {
                from_f64([f64::INFINITY, f64::NEG_INFINITY][random.place(64).min(1)])
            }
            "a hundredth infinite" => from_f64(random.unit()),
            "constant" => from_f64(0.1),
            "forty decades" => decades(random, all.min(20.0)),
            "decades and NaN" if random.place(10) == 0 => from_f64(f64::NAN),
            "decades and NaN" => decades(random, all),
            "uniform" => from_f64(random.unit()),
            "signed" => from_f64(random.unit() * 4.0 - 2.0),
            "random bits" => T::from_bits(random.next()),
            "finite bits" => finite(T::from_bits(random.next())),
            "wide" => {
                let e = (random.next() % 600) as i32 - 300;
                finite(from_f64((random.unit() - 0.5) * 2f64.powi(e)))
            }
            "sparse" if !random.next().is_multiple_of(100) => T::from_bits(0),
            "sparse" => from_f64(random.unit() - 0.5),
            "zeros" => T::from_bits(0),
            "negative zeros" => from_f64(-0.0),
            "zeros of both signs" => from_f64([0.0, -0.0][random.place(2)]),
            // Products of zero and infinity, which make NaNs that are not in the data.
            "specials and zeros" if !random.next().is_multiple_of(20) => from_f64(random.unit()),
            "specials and zeros" => {
                from_f64([0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN][random.place(5)])
            }
            "specials" => match random.next() % 50 {
                0 => from_f64(f64::NAN),
                1 => from_f64(f64::INFINITY),
                2 => from_f64(f64::NEG_INFINITY),
                3 => from_f64(-f64::NAN),
                _ => from_f64(random.unit()),
            },
            // All equal and just below a power of two: as many of them as an
            // anchor takes reach the end of the binade.
            "top of the window" => from_f64(1024.0 - 1024.0 * f64::EPSILON / 2.0),
            "one huge" if i == n / 2 => finite(T::from_bits(infinity.bits().wrapping_sub(1))),
            "one huge" => from_f64(2f64.powi(-1000) * random.unit()),
            "subnormal" => T::from_bits(random.next() & 0x3f),
            // Answers in the middle between two numbers, and variances that cancel.
            "few digits" => from_f64((random.next() % 9) as f64 - 2.0),
            "neighbours" => T::from_bits(from_f64::<T>(1.0).bits() + random.next() % 4),
            // The least integers that no f64 holds.
            "around 2^53" => T::from_bits((1 << 53) + random.next() % 9 - 4),
            "far from zero" => from_f64(20_000.0 + random.unit()),
            // Large ones that often leave nothing but what is far below them.
            "cancelling" => match random.next() % 3 {
                0 => from_f64(1024.0),
                1 => from_f64(-1024.0),
                _ => from_f64(random.unit() * 2f64.powi(-(random.next() as i32 & 63))),
            },
            // Sums of squares in the middle between two f64.
            "squares halfway" => from_f64([134_217_728.0, 1.0, -1.0, 0.0][random.place(4)]),
            // A slow climb: windows that fit at first do not later on.
            _ => finite(from_f64((random.unit() - 0.5) * 2f64.powi((i / 64) as i32 - 20))),
        })
        .collect()
}
