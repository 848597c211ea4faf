//! Exact arithmetic: superaccumulators and final rounding.
//!
//! A sum of floating-point numbers is a fixed-point integer in units of the
//! smallest product or subnormal. [`Superacc`] holds that integer exactly;
//! [`round`] turns it, or a quotient or square root of such integers, into the
//! nearest float, once; [`variance`] does so for two of them.
//!
//! Sources: Neal 2015 (small superaccumulators), Collange, Defour, Graillat
//! and Iakymchuk 2015 (ExBLAS), IEEE 754-2019 clauses 9.4 to 9.6.

mod float;
pub mod format;
mod limbs;
mod magnitude;
pub mod round;
mod superacc;
mod variance;

pub use float::FloatFormat;
pub use magnitude::{low_bits, to_big, to_i128};
pub use superacc::Superacc;
pub use variance::{short_variance, variance};
