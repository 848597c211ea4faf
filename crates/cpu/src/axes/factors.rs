//! Products of integers for many outputs, in 64 bits.
//!
//! A product of integers is exact, whatever the order: where no multiplication of some order
//! has left 64 bits, what the last one gives is the answer. A zero among the factors makes it 0,
//! whatever the others are. Of all other outputs the states tell whether they fit: a product of
//! -2^63 does, of which a part may be 2^63.
//!
//! No instruction set multiplies 64 bits side by side and says what is beyond them, so that
//! loops are compiled once.

use super::fold::{Accumulators, Cells, Fold, RaggedCells, RaggedFold, begin_with, of_one_fold};
use super::lengths::Lengths;
use super::words::Word;
use crate::ragged::Ragged;
use crate::table::Table;
use core::alloc::Layout;
use core::marker::PhantomData;

/// Integers with a sign, whose products have one.
pub(super) const SIGNED: u8 = 0;
/// Integers without one.
pub(super) const UNSIGNED: u8 = 1;
/// Truth values, which are 1 whatever their bits, or 0.
pub(super) const TRUTH: u8 = 2;

/// Factors of a row that are multiplied side by side: none waits for the one before it.
const CHAINS: usize = 4;

/// Products of integers as wide as `W`.
#[derive(Clone, Copy)]
pub(super) struct Factors<W, const OF: u8> {
    /// Whether answers leave out what is beyond 64 bits.
    pub(super) wrap: bool,
    pub(super) item: PhantomData<W>,
}

impl<W: Word, const OF: u8> Fold for Factors<W, OF> {
    fn item(&self) -> Layout {
        Layout::new::<W>()
    }

    fn has_neutral(&self) -> bool {
        true
    }

    fn cells(&self) -> Box<dyn Cells> {
        Box::new(Products { factors: *self, products: Vec::new() })
    }
}

impl<W: Word, const OF: u8> RaggedFold for Factors<W, OF> {
    fn ragged(&self) -> Box<dyn RaggedCells> {
        Box::new(Products { factors: *self, products: Vec::new() })
    }
}

/// The product of some factors.
#[derive(Clone, Copy)]
struct Product {
    /// Modulo 2^64.
    bits: u64,
    /// Whether some multiplication has left 64 bits.
    beyond: bool,
    /// Whether a factor is 0: the product is then 0, and so is every multiplication behind it.
    zero: bool,
}

impl Product {
    const ONE: Product = Product { bits: 1, beyond: false, zero: false };

    #[inline(always)]
    fn merge<const OF: u8>(&mut self, other: Product) {
        let (bits, beyond) = if OF == SIGNED {
            let (bits, beyond) = self.bits.cast_signed().overflowing_mul(other.bits.cast_signed());
            (bits.cast_unsigned(), beyond)
        } else {
            self.bits.overflowing_mul(other.bits)
        };
        self.bits = bits;
        self.beyond |= beyond | other.beyond;
        self.zero |= other.zero;
    }

    /// Multiplies by an element.
    #[inline(always)]
    fn take<W: Word, const OF: u8>(&mut self, x: W) {
        let wide = x.wide().cast_unsigned();
        let bits = match OF {
            SIGNED => wide,
            UNSIGNED => wide & (u64::MAX >> (64 - 8 * size_of::<W>())),
            _ => u64::from(wide != 0),
        };
        self.merge::<OF>(Product { bits, beyond: false, zero: bits == 0 });
    }

    /// That of a row.
    #[inline(always)]
    fn of_row<W: Word, const OF: u8>(items: &[W]) -> Product {
        let mut chains = [Product::ONE; CHAINS];
        let (parts, rest) = items.as_chunks::<CHAINS>();
        for part in parts {
            for (chain, &x) in chains.iter_mut().zip(part) {
                chain.take::<W, OF>(x);
            }
        }
        let [mut whole, others @ ..] = chains;
        rest.iter().for_each(|&x| whole.take::<W, OF>(x));
        others.into_iter().for_each(|other| whole.merge::<OF>(other));
        whole
    }
}

/// The products of some outputs.
struct Products<W, const OF: u8> {
    factors: Factors<W, OF>,
    products: Vec<Product>,
}

impl<W: Word, const OF: u8> Accumulators for Products<W, OF> {
    fn clear(&mut self, count: usize) {
        begin_with(&mut self.products, count, Product::ONE);
    }

    fn answer(&mut self, _: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>) {
        let to: &mut [u64] = bytemuck::cast_slice_mut(to);
        for ((place, to), product) in to.iter_mut().enumerate().zip(&self.products) {
            *to = product.bits;
            if product.beyond && !product.zero && !self.factors.wrap {
                missing.push(place);
            }
        }
    }
}

impl<W: Word, const OF: u8> Cells for Products<W, OF> {
    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        // SAFETY: the caller vouches for the elements.
        let table = unsafe { table.of_elements::<W>() };
        for (row, product) in (0..table.rows()).zip(&mut self.products[place..]) {
            product.merge::<OF>(Product::of_row::<W, OF>(table.row(row)));
        }
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        // SAFETY: the caller vouches for the elements.
        let table = unsafe { table.of_elements::<W>() };
        for row in 0..table.rows() {
            for (product, &x) in self.products[place..].iter_mut().zip(table.row(row)) {
                product.take::<W, OF>(x);
            }
        }
    }

    fn neutral(&self, _: usize, to: &mut [u8]) {
        bytemuck::cast_slice_mut(to).fill(W::of(1));
    }

    fn merge(&mut self, others: &dyn Cells) {
        let others = of_one_fold::<Self>(others);
        for (product, &other) in self.products.iter_mut().zip(&others.products) {
            product.merge::<OF>(other);
        }
    }
}

impl<W: Word, const OF: u8> RaggedCells for Products<W, OF> {
    unsafe fn take(&mut self, rows: Ragged<'_, ()>) {
        // SAFETY: the caller vouches for the elements.
        let rows = unsafe { rows.of_elements::<W>() };
        for (row, product) in (0..rows.rows()).zip(&mut self.products) {
            product.merge::<OF>(Product::of_row::<W, OF>(rows.row(row)));
        }
    }
}
