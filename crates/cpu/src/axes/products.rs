//! Products of floats for many outputs: the fixed tree of each, several side by side.
//!
//! `core/op/prod.rs` defines the product: lane `l` of 64 multiplies elements `l`,
//! `l + 64`, ... in order, significands apart from exponents, and the lanes are folded by
//! halving. Here a lane of neighbouring outputs is a row of numbers, so that a row of a
//! table is multiplied into one. Powers of two do not change how a product rounds as
//! long as nothing leaves the range of f64: exponents are taken out where that would
//! happen, and not otherwise. This serves outputs of one block of the tree.

use super::fold::{Cells, Fold};
use super::lengths::Lengths;
use crate::isa::Isa;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch};
use crate::table::Table;
use core::alloc::Layout;
use core::marker::PhantomData;
use warpfold_core::Element;
use warpfold_core::op::tree::{BLOCK, LANES};

/// The longest products that are answered here.
pub(super) const MOST: usize = BLOCK;
/// Of so many f32 a product cannot leave the range of f64: `6 * 149 < 1022`.
const SAFE: usize = 6;
/// So many significands in `[1, 2)` have a product that f64 holds.
const SAFE_SIGNIFICANDS: usize = 1000;
/// The height of the tree of a block, where no exponents are taken out before the root's.
const NEVER: u32 = LANES.ilog2();
/// Outputs that are answered together.
const TOGETHER: usize = 16;

pub(super) const FRACTION: u64 = (1 << 52) - 1;
pub(super) const SIGN: u64 = 1 << 63;
pub(super) const BIAS: i64 = 1023;
pub(super) const ONE: u64 = 1023 << 52;

/// A type whose products are made here.
pub(super) trait Factor: Element {
    /// Whether [`SAFE`] holds of it.
    const SHORT: bool;
    /// The same number.
    fn wide(self) -> f64;
    /// The nearest number.
    fn rounded(wide: f64) -> Self;
}

impl Factor for f32 {
    const SHORT: bool = true;
    #[inline(always)]
    fn wide(self) -> f64 {
        self.into()
    }
    #[inline(always)]
    fn rounded(wide: f64) -> f32 {
        wide as f32
    }
}

impl Factor for f64 {
    const SHORT: bool = false;
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn rounded(wide: f64) -> f64 {
        wide
    }
}

/// The product of outputs of at most [`MOST`] elements.
pub(super) struct Products<T> {
    pub(super) isa: Isa,
    /// Elements of an output.
    pub(super) len: usize,
    pub(super) item: PhantomData<T>,
}

impl<T: Factor> Products<T> {
    /// Whether elements are multiplied as they are.
    fn whole(&self) -> bool {
        T::SHORT && self.len <= SAFE * LANES
    }

    /// The height in the tree at which exponents are taken out.
    fn height(&self) -> u32 {
        if self.whole() {
            // Elements of a node, those of its lanes.
            (SAFE / self.len.div_ceil(LANES)).ilog2()
        } else if self.len <= SAFE_SIGNIFICANDS {
            NEVER
        } else {
            0
        }
    }
}

impl<T: Factor> Fold for Products<T> {
    fn item(&self) -> Layout {
        Layout::new::<T>()
    }

    fn cells(&self, outputs: usize) -> Box<dyn Cells> {
        let Products { isa, len, item } = *self;
        Box::new(Factors {
            fold: Products { isa, len, item },
            lanes: vec![1.0; outputs * len.min(LANES)],
            exponents: vec![0; outputs],
            odd: vec![0; outputs],
        })
    }

    fn columns_alone(&self) -> Option<usize> {
        Some(size_of::<f64>() * (self.len.min(LANES) + 2))
    }
}

/// The lanes of some outputs.
struct Factors<T> {
    fold: Products<T>,
    /// Lane by lane.
    lanes: Vec<f64>,
    /// The exponents that were taken out, each with its bias.
    exponents: Vec<i64>,
    /// See [`odd`].
    odd: Vec<u64>,
}

impl<T: Factor> Cells for Factors<T> {
    fn clear(&mut self) {
        // The first element of a lane overwrites what was there.
        self.exponents.fill(0);
        self.odd.fill(0);
    }

    unsafe fn rows(&mut self, place: usize, rows: Rows<'_, ()>, at: usize) {
        // SAFETY: the caller vouches for the elements.
        let rows = unsafe { rows.of_elements::<T>() };
        for row in 0..rows.count() {
            let items = rows.row(row);
            let first = items.as_ptr().cast();
            let column = Table::of_any(first, size_of::<T>().cast_signed(), items.len(), 1);
            // SAFETY: the row's elements, one below the other; the caller vouches for them.
            unsafe { self.columns(place + row, column, at) };
        }
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, at: usize) {
        let whole = self.fold.whole();
        // SAFETY: the caller vouches for the elements.
        let table = unsafe { table.of_elements::<T>() };
        let columns = place..place + table.columns();
        dispatch(
            self.fold.isa,
            Multiply {
                table,
                pitch: self.exponents.len(),
                lanes: &mut self.lanes[place..],
                exponents: &mut self.exponents[columns.clone()],
                odd: &mut self.odd[columns],
                at,
                whole,
            },
        );
    }

    /// Products of parts of an output are not made: one thread takes in all of it.
    fn merge(&mut self, _others: &dyn Cells) {
        unreachable!("accumulators that take columns alone are not merged");
    }

    fn answer(
        &mut self,
        place: usize,
        _lengths: Lengths<'_>,
        to: &mut [u8],
        missing: &mut Vec<usize>,
    ) {
        let to: &mut [T] = bytemuck::cast_slice_mut(to);
        for (to, place) in to.chunks_mut(TOGETHER).zip((place..).step_by(TOGETHER)) {
            dispatch(self.fold.isa, Root { cells: &*self, place, to, missing });
        }
    }
}

/// Something that is set where a number is not a normal one: 1 for zeros, more for
/// subnormals, infinities and NaNs.
#[inline(always)]
pub(super) fn odd(bits: u64) -> u64 {
    // Fields 0 and 0x7ff become 1 and 0x800.
    let field = bits >> 52 & 0x7ff;
    if (field + 1) & 0x7fe == 0 { bits << 1 | 1 } else { 0 }
}

/// Multiplies each column of a table into its output's lanes.
struct Multiply<'a, T> {
    table: Table<'a, T>,
    /// From the first output's on.
    lanes: &'a mut [f64],
    /// From a lane to the next.
    pitch: usize,
    exponents: &'a mut [i64],
    odd: &'a mut [u64],
    /// The position of the first row.
    at: usize,
    whole: bool,
}

impl<T: Factor> Kernel for Multiply<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Multiply { table, lanes, pitch, exponents, odd: odds, at, whole } = self;
        let columns = table.columns();
        for row in 0..table.rows() {
            let position = at + row;
            let items = &table.row(row)[..columns];
            let lane = &mut lanes[position % LANES * pitch..][..columns];
            let first = position < LANES;
            match (whole, first) {
                (true, true) => {
                    for i in 0..columns {
                        lane[i] = items[i].wide();
                    }
                }
                (true, false) => {
                    for i in 0..columns {
                        lane[i] *= items[i].wide();
                    }
                }
                (false, _) => {
                    let (exponents, odds) = (&mut exponents[..columns], &mut odds[..columns]);
                    for i in 0..columns {
                        let bits = items[i].wide().to_bits();
                        let significand = f64::from_bits(bits & (SIGN | FRACTION) | ONE);
                        let before = if first { 1.0 } else { lane[i] };
                        lane[i] = before * significand;
                        exponents[i] += (bits >> 52 & 0x7ff).cast_signed();
                        odds[i] |= odd(bits);
                    }
                }
            }
        }
    }
}

/// Folds the lanes of some outputs, at most [`TOGETHER`].
struct Root<'a, T> {
    cells: &'a Factors<T>,
    place: usize,
    to: &'a mut [T],
    missing: &'a mut Vec<usize>,
}

/// Numbers of neighbouring outputs.
type Side = [f64; TOGETHER];

/// Leaves the significands of some numbers, with their signs.
#[inline(always)]
fn take_exponents(numbers: &mut Side, exponents: &mut [i64; TOGETHER], odds: &mut [u64; TOGETHER]) {
    for i in 0..TOGETHER {
        let bits = numbers[i].to_bits();
        numbers[i] = f64::from_bits(bits & (SIGN | FRACTION) | ONE);
        exponents[i] += (bits >> 52 & 0x7ff).cast_signed() - BIAS;
        odds[i] |= odd(bits);
    }
}

/// A product of this significand, with its sign, and exponent, or zero if one of the factors
/// was: see [`odd`].
#[inline(always)]
pub(super) fn rounded<T: Factor>(significand: f64, exponent: i64, odd: u64) -> T {
    // Beyond these, halves of it included, is 0 or infinity. The first half is exact, the
    // second rounds once: to a subnormal number, or not at all.
    let exponent = exponent.clamp(-1200, 1200);
    let half = exponent / 2;
    let product = significand * power(half) * power(exponent - half);
    let zero = if odd == 1 { 0.0 } else { 1.0 };
    T::rounded(if zero == 0.0 { significand * zero } else { product })
}

/// `2^exponent`, which is a normal number.
#[inline(always)]
fn power(exponent: i64) -> f64 {
    f64::from_bits(((exponent + BIAS) as u64) << 52)
}

impl<T: Factor> Kernel for Root<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Root { cells, place, to, missing } = self;
        let (len, count, pitch) = (cells.fold.len, to.len(), cells.exponents.len());
        let height = cells.fold.height();
        let mut exponents = [0i64; TOGETHER];
        let mut odds = [0u64; TOGETHER];
        if !cells.fold.whole() {
            for i in 0..count {
                exponents[i] = cells.exponents[place + i] - BIAS * len as i64;
                odds[i] = cells.odd[place + i];
            }
        }
        let mut nodes = [[1.0; TOGETHER]; LANES];
        let mut active = len.min(LANES);
        for (lane, node) in nodes.iter_mut().enumerate().take(active) {
            let from = &cells.lanes[lane * pitch + place..][..count];
            match from.try_into() {
                Ok(from) => *node = from,
                Err(_) => node[..count].copy_from_slice(from),
            }
        }
        let mut half = LANES;
        for level in 0..NEVER {
            if level == height {
                for node in &mut nodes[..active] {
                    take_exponents(node, &mut exponents, &mut odds);
                }
            }
            half /= 2;
            let (left, right) = nodes.split_at_mut(half);
            // Lanes beyond a short output are ones.
            for (left, right) in left.iter_mut().zip(&right[..active.saturating_sub(half)]) {
                for i in 0..TOGETHER {
                    left[i] *= right[i];
                }
            }
            active = active.min(half);
        }
        let [mut root, ..] = nodes;
        take_exponents(&mut root, &mut exponents, &mut odds);
        for i in 0..count {
            to[i] = rounded(root[i], exponents[i], odds[i]);
            if odds[i] > 1 {
                missing.push(place + i);
            }
        }
    }
}
