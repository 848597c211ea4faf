//! Exact sums of a few thousand elements, straight to the rounded value: no
//! superaccumulator, no allocation.

use super::residues::{Near, Part};
use super::terms::Plain;
use super::{BLOCK, Summable, largest_exponent, power_of_two};
use crate::isa::Isa;
use crate::slices::Slices;
use warpfold_core::fpenv;

/// The exact sum of f64, rounded once, if it can be had quickly.
#[inline]
pub(crate) fn sum_f64(items: &[f64], isa: Isa) -> Option<f64> {
    sum_of(items, isa).map(rounded)
}

/// The exact sum of f32, rounded once, if it can be had quickly.
#[inline]
pub(crate) fn sum_f32(items: &[f32], isa: Isa) -> Option<f32> {
    // An integer of fewer than 24 bits where the sum is subnormal: it is rounded once, too.
    let (value, exponent) = sum_of(items, isa)?;
    Some(scaled(f64::from(value as f32), exponent) as f32)
}

/// The same, rounded to f64.
#[inline]
pub(crate) fn sum_f32_to_f64(items: &[f32], isa: Isa) -> Option<f64> {
    sum_of(items, isa).map(rounded)
}

/// A sum that is below f64's largest number; a subnormal one is a multiple of the least one.
fn rounded((value, exponent): Part) -> f64 {
    scaled(value as f64, exponent)
}

/// `x * 2^exponent`, which f64 holds; the power alone may be subnormal.
fn scaled(x: f64, exponent: i32) -> f64 {
    x * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2)
}

#[inline]
fn sum_of<T: Near>(items: &[T], isa: Isa) -> Option<Part>
where
    Plain<T>: Summable<Item = T>,
{
    if items.len() > BLOCK || !fpenv::is_usual() {
        return None;
    }
    let tops = [largest_exponent(items, isa)?; 2];
    let tiled = Plain::<T>::near(Slices::one(items), tops, isa)?;
    tiled.left_out.is_empty().then_some(tiled.sum)
}
