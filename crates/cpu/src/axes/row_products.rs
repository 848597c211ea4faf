//! Products of floats for outputs of different lengths: the fixed tree of each, one after
//! the other. See [`products`](super::products) for what the tree is.

use super::fold::{Cells, Fold};
use super::lengths::Lengths;
use super::products::{BIAS, FRACTION, Factor, ONE, SIGN, odd, rounded};
use crate::isa::Isa;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch};
use crate::table::Table;
use core::alloc::Layout;
use core::marker::PhantomData;
use warpfold_core::op::tree::{BLOCK, LANES};

/// The product of outputs of at most a block of the tree each.
pub(super) struct RowProducts<T> {
    pub(super) isa: Isa,
    pub(super) item: PhantomData<T>,
}

impl<T: Factor> Fold for RowProducts<T> {
    fn item(&self) -> Layout {
        Layout::new::<T>()
    }

    fn cells(&self, outputs: usize) -> Box<dyn Cells> {
        let fold = RowProducts { isa: self.isa, item: PhantomData };
        Box::new(Roots::<T> { fold, roots: vec![Root::NONE; outputs] })
    }

    fn columns_alone(&self) -> Option<usize> {
        None
    }
}

/// A product: a significand in `[1, 2)` with its sign, and an exponent.
#[derive(Clone, Copy)]
struct Root {
    significand: f64,
    exponent: i64,
    /// See [`odd`].
    odd: u64,
}

impl Root {
    const NONE: Root = Root { significand: 1.0, exponent: 0, odd: 0 };
    /// A product that is not answered.
    const UNKNOWN: Root = Root { odd: u64::MAX, ..Root::NONE };
}

struct Roots<T> {
    fold: RowProducts<T>,
    roots: Vec<Root>,
}

impl<T: Factor> Cells for Roots<T> {
    fn clear(&mut self) {
        self.roots.fill(Root::NONE);
    }

    unsafe fn rows(&mut self, place: usize, rows: Rows<'_, ()>, _: usize) {
        // SAFETY: the caller vouches for the elements.
        let rows = unsafe { rows.of_elements::<T>() };
        let roots = &mut self.roots[place..place + rows.count()];
        dispatch(self.fold.isa, Multiply { rows, roots });
    }

    unsafe fn columns(&mut self, _: usize, _: Table<'_, ()>, _: usize) {
        unreachable!("rows of different lengths are no columns");
    }

    fn merge(&mut self, _others: &dyn Cells) {
        unreachable!("each output is one thread's");
    }

    fn answer(&mut self, place: usize, _: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>) {
        let to: &mut [T] = bytemuck::cast_slice_mut(to);
        for (i, to) in to.iter_mut().enumerate() {
            let Root { significand, exponent, odd } = self.roots[place + i];
            *to = rounded(significand, exponent, odd);
            if odd > 1 {
                missing.push(place + i);
            }
        }
    }
}

/// Multiplies each row into its root.
struct Multiply<'a, 'b, T> {
    rows: Rows<'a, T>,
    roots: &'b mut [Root],
}

impl<T: Factor> Kernel for Multiply<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for (row, root) in self.roots.iter_mut().enumerate() {
            let items = self.rows.row(row);
            *root = if items.len() <= BLOCK { product(items) } else { Root::UNKNOWN };
        }
    }
}

/// The significand of a number with its sign, and the field of its exponent.
#[inline(always)]
fn taken_apart(wide: f64) -> (f64, i64) {
    let bits = wide.to_bits();
    (f64::from_bits(bits & (SIGN | FRACTION) | ONE), (bits >> 52 & 0x7ff).cast_signed())
}

/// The product of the elements of a block, or of a part of it.
#[inline(always)]
fn product<T: Factor>(items: &[T]) -> Root {
    let (mut exponent, mut odds) = (0, 0);
    // A lane's product is below 2^64, and that of all lanes of few elements as well.
    let mut lanes = [1.0f64; LANES];
    let active = items.len().min(LANES);
    for items in items.chunks(LANES) {
        for (lane, x) in lanes.iter_mut().zip(items) {
            let wide = x.wide();
            let (significand, field) = taken_apart(wide);
            *lane *= significand;
            exponent += field;
            odds |= odd(wide.to_bits());
        }
    }
    exponent -= BIAS * items.len().cast_signed() as i64;
    if items.len() > LANES {
        for lane in &mut lanes {
            let (significand, field) = taken_apart(*lane);
            *lane = significand;
            exponent += field - BIAS;
        }
    }
    // Lanes beyond a short row are ones.
    let (mut half, mut active) = (LANES / 2, active);
    while half > 0 {
        if active > half {
            for l in 0..active - half {
                lanes[l] *= lanes[l + half];
            }
            active = half;
        }
        half /= 2;
    }
    let (significand, field) = taken_apart(lanes[0]);
    Root { significand, exponent: exponent + field - BIAS, odd: odds }
}
