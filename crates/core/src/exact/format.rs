//! The superaccumulator formats: how many limbs, and what the lowest weighs.

/// A superaccumulator's size.
///
/// Limb `i` weighs `2^(LSB + 32 i)`. The limbs must hold any sum of up to
/// 2^63 terms: `LSB + 32 (LIMBS - 1) + 63` bounds the sum's top bit.
pub trait Format: Copy + Send + Sync + core::fmt::Debug + PartialEq + 'static {
    /// The exponent of the lowest limb's lowest bit.
    const LSB: i32;
    /// The number of limbs.
    const LIMBS: usize;
    /// An array of [`LIMBS`](Self::LIMBS) limbs.
    type Limbs: Copy + Send + Sync + core::fmt::Debug + PartialEq + AsRef<[i64]> + AsMut<[i64]>;
    /// All limbs zero.
    const ZERO: Self::Limbs;
}

macro_rules! format {
    ($(#[$doc:meta])* $name:ident, $lsb:literal, $limbs:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name;
        impl Format for $name {
            const LSB: i32 = $lsb;
            const LIMBS: usize = $limbs;
            type Limbs = [i64; $limbs];
            const ZERO: [i64; $limbs] = [0; $limbs];
        }
    };
}

format!(
    /// Sums of f64: terms are multiples of 2^-1074 below 2^1024.
    F64Sum, -1074, 67
);
format!(
    /// Sums of f32, and of bf16, whose exponents are the same.
    F32Sum, -149, 10
);
format!(
    /// Sums of f16: terms are multiples of 2^-24 below 2^16, so that two limbs
    /// hold 2^55 of them.
    F16Sum, -24, 2
);
format!(
    /// Sums of products of two f64: multiples of 2^-2148 below 2^2048.
    F64Dot, -2148, 133
);
format!(
    /// Sums of products of two f32 or bf16: multiples of 2^-298 below 2^256.
    F32Dot, -298, 19
);
format!(
    /// Sums of products of two f16: multiples of 2^-48 below 2^32.
    F16Dot, -48, 4
);
format!(
    /// Sums of integers of up to 64 bits.
    IntSum, 0, 4
);
format!(
    /// Sums of products of two integers of up to 64 bits.
    IntDot, 0, 6
);
