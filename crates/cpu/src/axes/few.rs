//! Sums of a few floats for many outputs, without accumulators in memory.
//!
//! Of shorter floats than f64 a few elements, and their products, have a sum that f64 holds
//! nearly always: the rounding errors, which TwoSum gives exactly, are 0 then. Of f64 the
//! sum of the errors is exact nearly always; where the errors of that sum are 0, too, the sum
//! is two f64, which are added with one rounding. What is not so is left to accumulators that
//! can do more.

#![expect(
    clippy::needless_range_loop,
    reason = "several arrays are indexed alike, in loops that compilers unroll"
)]

use super::finish::{Intervals, TOGETHER};
use super::floats::Operands;
use super::measures::two_sums;
use super::round::{Interval, Narrow};
use crate::simd::{Kernel, Simd};
use crate::table::Table;
use warpfold_core::Element;

/// The most elements of an output that has a few.
pub(super) const MOST: usize = 16;

/// Lanes of two of the widest vectors.
const GROUP: usize = 16;

/// What is summed of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    Element,
    Magnitude,
    /// The product of a pair of elements that are shorter than f64.
    Product,
}

/// [`Term`], known to the compiler.
const ELEMENT: u8 = 0;
const MAGNITUDE: u8 = 1;
const PRODUCT: u8 = 2;

/// Rows of elements, each with one of every output.
pub(super) struct Few<O: Operands> {
    /// The first elements of the rows, of both arrays if there are two.
    rows: [[*const O::Item; MOST]; 2],
    len: usize,
    /// Every row has so many elements that may be read: see [`new`](Self::new).
    columns: usize,
}

impl<O: Operands> Few<O> {
    /// The first `columns` columns of tables; `None` of too many rows or none, and where
    /// nothing is certain: of products of f64, and of floats that f64 is rounded to in steps.
    ///
    /// # Safety
    /// All elements of the tables may be read as long as this is used, and are of this type.
    pub(super) unsafe fn new(tables: [&[Table<'_, ()>]; 2], columns: usize) -> Option<Few<O>> {
        let usable = !(O::PAIRED && <O::Item as Element>::DTYPE.size() == 8);
        let mut few = Few { rows: [[core::ptr::null(); MOST]; 2], len: 0, columns };
        for (rows, tables) in few.rows.iter_mut().zip(tables) {
            let mut len = 0;
            for table in tables {
                assert!(table.columns() >= columns);
                // SAFETY: the caller vouches for the elements.
                let table = unsafe { table.of_elements::<O::Item>() };
                for row in 0..table.rows() {
                    *rows.get_mut(len)? = table.at(row, 0);
                    len += 1;
                }
            }
            few.len = few.len.max(len);
            assert!(len == few.len || len == 0 && !O::PAIRED);
        }
        (usable && few.len > 0 && O::Item::AT_ONCE).then_some(few)
    }

    /// Some of the columns.
    pub(super) fn from(&self, first: usize, columns: usize) -> Few<O> {
        assert!(first + columns <= self.columns);
        let rows = self.rows.map(|rows| rows.map(|row| row.wrapping_add(first)));
        Few { rows, len: self.len, columns }
    }

    /// [`each`](Self::each) of these terms.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn of_terms<S: Simd>(&self, term: Term, out: impl Out) -> bool {
        // SAFETY: passed on from the caller.
        unsafe {
            match term {
                _ if O::PAIRED => self.each::<S, PRODUCT>(out),
                Term::Magnitude => self.each::<S, MAGNITUDE>(out),
                _ => self.each::<S, ELEMENT>(out),
            }
        }
    }

    /// Two vectors of terms of a row.
    ///
    /// # Safety
    /// See [`Simd`]; the columns are there, here and below.
    #[inline(always)]
    unsafe fn terms<S: Simd, const TERM: u8>(&self, row: usize, column: usize) -> [S::F; 2] {
        // SAFETY: the caller vouches for the columns; the rows may be read, see `new`.
        unsafe {
            let p = self.rows[0][row].wrapping_add(column);
            let q = self.rows[1][row].wrapping_add(column);
            let [a, b] = O::load::<S>(p, q);
            match TERM {
                ELEMENT => [a[0], b[0]],
                MAGNITUDE => [S::abs(a[0]), S::abs(b[0])],
                _ => [S::mul(a[0], a[1]), S::mul(b[0], b[1])],
            }
        }
    }

    /// Adds to a sum, the sum of its errors, and what is not 0 where there is more.
    #[inline(always)]
    unsafe fn add<S: Simd>([s, e, more]: [S::F; 3], x: S::F, one: S::F) -> [S::F; 3] {
        // SAFETY: passed on from the caller.
        unsafe {
            let [s, error] = two_sums::<S>(s, x, one);
            if !Self::WIDE {
                return [s, e, S::or(more, error)];
            }
            let [e, rest] = two_sums::<S>(e, error, one);
            [s, e, S::or(more, rest)]
        }
    }

    /// Whether sums have errors that f64 do not hold often.
    const WIDE: bool = <O::Item as Element>::DTYPE.size() == 8;

    /// Hands the sums of all columns and of their errors to `out`, group by group, with the
    /// first column of each; some twice. Returns whether that is all of every sum.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn each<S: Simd, const TERM: u8>(&self, mut out: impl Out) -> bool {
        let group = 2 * S::LANES;
        let Some(last) = self.columns.checked_sub(group) else { return false };
        let (mut high, mut low) = ([0.0; GROUP], [0.0; GROUP]);
        // SAFETY: whole groups of columns; the buffers hold two of the widest vectors.
        unsafe {
            let (zero, one) = (S::splat(0.0), S::splat(core::hint::black_box(1.0)));
            let (mut rest, mut sure) = (zero, true);
            let mut column = 0;
            while column < self.columns {
                // The last group has some of the columns before it.
                let at = column.min(last);
                let [a, b] = self.terms::<S, TERM>(0, at);
                let (mut a, mut b) = ([a, zero, zero], [b, zero, zero]);
                for row in 1..self.len {
                    let [x, y] = self.terms::<S, TERM>(row, at);
                    a = Self::add::<S>(a, x, one);
                    b = Self::add::<S>(b, y, one);
                }
                S::store(a[0], high.as_mut_ptr());
                S::store(b[0], high[S::LANES..].as_mut_ptr());
                if Self::WIDE {
                    S::store(a[1], low.as_mut_ptr());
                    S::store(b[1], low[S::LANES..].as_mut_ptr());
                }
                // An infinity less itself is NaN, and so are errors of what is NaN.
                rest = S::or(rest, S::or(S::sub(a[0], a[0]), S::sub(b[0], b[0])));
                rest = S::or(rest, S::or(a[2], b[2]));
                sure &= out.put(at, &high[..group], &low[..group]);
                column += group;
            }
            // Not even the least number: that is 0.
            sure & S::all_below(S::abs(rest), f64::from_bits(1))
        }
    }
}

/// Who takes sums.
trait Out {
    /// Takes those of some columns and of their errors; whether they are right.
    fn put(&mut self, column: usize, high: &[f64], low: &[f64]) -> bool;
}

/// Writes sums, each multiplied by `scale`, a power of two, and returns whether they are all
/// right.
pub(super) struct FewSums<'a, O: Operands> {
    pub(super) rows: Few<O>,
    pub(super) term: Term,
    pub(super) scale: f64,
    /// One for each column.
    pub(super) to: &'a mut [O::Item],
}

/// Where sums go, multiplied.
struct Scaled<'a, T> {
    scale: f64,
    to: &'a mut [T],
}

impl<T: Narrow> Out for Scaled<'_, T> {
    #[inline(always)]
    fn put(&mut self, column: usize, high: &[f64], low: &[f64]) -> bool {
        let to = &mut self.to[column..column + high.len()];
        let mut sure = true;
        for i in 0..to.len() {
            let (sum, right) = T::scaled(high[i], low[i], self.scale);
            to[i] = sum;
            sure &= right;
        }
        sure
    }
}

impl<O: Operands> Kernel for FewSums<'_, O> {
    type Out = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        let FewSums { rows, term, scale, to } = self;
        assert!(to.len() == rows.columns);
        let out = Scaled { scale, to };
        // SAFETY: passed on from the caller.
        unsafe { rows.of_terms::<S>(term, out) }
    }
}

/// Writes the first sums of at most [`TOGETHER`] columns, and returns whether that is all of
/// them.
pub(super) struct FewPairs<'a, O: Operands> {
    pub(super) rows: Few<O>,
    pub(super) term: Term,
    pub(super) sums: &'a mut Intervals,
}

impl Out for &mut Intervals {
    #[inline(always)]
    fn put(&mut self, column: usize, high: &[f64], low: &[f64]) -> bool {
        for i in 0..high.len() {
            self.set(column + i, Interval { high: high[i], low: low[i], off: 0.0 }, true);
        }
        true
    }
}

impl<O: Operands> Kernel for FewPairs<'_, O> {
    type Out = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        let FewPairs { rows, term, sums } = self;
        assert!(rows.columns <= TOGETHER);
        // SAFETY: passed on from the caller.
        unsafe { rows.of_terms::<S>(term, sums) }
    }
}
