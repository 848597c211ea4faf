//! Sums of f32 for many outputs, of so few elements that f64 often adds them without rounding.
//!
//! Beside each sum stand the least and the largest magnitude of its elements. All elements are
//! multiples of the last place of the least one, and f64 has 29 bits more than f32: where these
//! are enough for the largest one and for how many there are, no partial sum in any order is
//! rounded. That takes half of the instructions that rounding errors do, and unlike a bound of the
//! error it tells sums that lie in the middle between two f32, as every 2^k-th one of 2^k elements
//! does. Outputs whose magnitudes are too far apart are left to others.

use super::finish::{Asked, Intervals, Request, Scratch, TOGETHER, Wanted};
use super::fold::{
    Accumulators, Cells, Fold, Left, RaggedCells, RaggedFold, begin_with, of_one_fold,
};
use super::lengths::Lengths;
use super::round::Interval;
use super::short::{self, Short};
use super::sums::Alone;
use crate::isa::Isa;
use crate::ragged::Ragged;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;
use core::alloc::Layout;
use warpfold_core::{DType, prefetch};

/// Words of the widest vector.
const MOST_WORDS: usize = 16;
/// f64 lanes of it.
const MOST_LANES: usize = MOST_WORDS / 2;
/// Vectors of a row that are added side by side: each sum waits for the one before it.
const BESIDE: usize = 2;

/// No bits, then all: what the words of a last vector are combined with, some of which come for
/// the second time.
static MASK: [u32; 2 * MOST_WORDS] = {
    let mut mask = [0; 2 * MOST_WORDS];
    let mut i = MOST_WORDS;
    while i < 2 * MOST_WORDS {
        mask[i] = u32::MAX;
        i += 1;
    }
    mask
};

/// Sums of f32, or of their magnitudes.
#[derive(Clone, Copy)]
pub(super) struct Ranged<const MAGNITUDES: bool> {
    pub(super) isa: Isa,
    pub(super) asked: Asked,
}

impl<const MAGNITUDES: bool> Fold for Ranged<MAGNITUDES> {
    fn item(&self) -> Layout {
        Layout::new::<f32>()
    }

    fn is_quick(&self, elements: usize) -> bool {
        elements <= short::MOST
    }

    fn has_neutral(&self) -> bool {
        true
    }

    fn cells(&self) -> Box<dyn Cells> {
        Box::new(RangedCells::new(*self))
    }
}

impl<const MAGNITUDES: bool> RaggedFold for Ranged<MAGNITUDES> {
    fn ragged(&self) -> Box<dyn RaggedCells> {
        Box::new(RangedCells::new(*self))
    }
}

/// The accumulators.
struct RangedCells<const MAGNITUDES: bool> {
    fold: Ranged<MAGNITUDES>,
    sums: Vec<f64>,
    /// The bits of the least magnitude that is not 0, less one, and of the largest.
    least: Vec<u32>,
    most: Vec<u32>,
    scratch: Scratch,
}

impl<const MAGNITUDES: bool> RangedCells<MAGNITUDES> {
    fn new(fold: Ranged<MAGNITUDES>) -> Self {
        let (sums, least, most) = (Vec::new(), Vec::new(), Vec::new());
        RangedCells { fold, sums, least, most, scratch: Scratch::default() }
    }

    /// The accumulators of `count` outputs from `place` on.
    fn some(&mut self, place: usize, count: usize) -> Part<'_> {
        let some = place..place + count;
        let (least, most) = (&mut self.least[some.clone()], &mut self.most[some.clone()]);
        Part { sums: &mut self.sums[some], least, most }
    }

    fn add_rows(&mut self, place: usize, rows: Rows<'_, f32>) {
        let isa = self.fold.isa;
        let to = self.some(place, rows.count());
        dispatch_accumulators(isa, RowByRow::<MAGNITUDES> { rows, to });
    }
}

impl<const MAGNITUDES: bool> Accumulators for RangedCells<MAGNITUDES> {
    fn clear(&mut self, count: usize) {
        begin_with(&mut self.sums, count, 0.0);
        begin_with(&mut self.least, count, u32::MAX);
        begin_with(&mut self.most, count, 0);
    }

    fn answer(&mut self, lengths: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>) {
        let Ranged { isa, asked } = self.fold;
        let RangedCells { sums, least, most, scratch, .. } = self;
        let wanted = Wanted { asked, dtype: DType::F32, least: None, scales: None };
        let request = Request { isa, lengths, scratch, missing };
        request.finish(wanted, to, &mut |some, _, pair| {
            let into = if asked.first() { &mut pair.first } else { &mut pair.second };
            let mut rooms = [short::room(lengths.at(some.start)); TOGETHER];
            if !matches!(lengths, Lengths::Same(_)) {
                for (room, at) in rooms.iter_mut().zip(some.clone()) {
                    *room = short::room(lengths.at(at));
                }
            }
            let (least, most) = (&least[some.clone()], &most[some.clone()]);
            let (sums, rooms) = (&sums[some], &rooms);
            dispatch_accumulators(isa, Certain { sums, least, most, rooms, into });
        });
    }
}

impl<const MAGNITUDES: bool> Cells for RangedCells<MAGNITUDES> {
    fn neutral(&self, _: usize, to: &mut [u8]) {
        to.fill(0);
    }

    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        // SAFETY: the caller vouches for the elements, here and below.
        self.add_rows(place, Rows::Table(unsafe { table.of_elements() }));
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        // SAFETY: as above.
        let table = unsafe { table.of_elements() };
        let isa = self.fold.isa;
        let to = self.some(place, table.columns());
        dispatch_accumulators(isa, Columns::<MAGNITUDES> { table, to });
    }

    unsafe fn quick(&mut self, tables: [&[Table<'_, ()>]; 2], to: &mut [u8]) -> Option<Left> {
        let Ranged { isa, asked } = self.fold;
        let to: &mut [f32] = bytemuck::cast_slice_mut(to);
        // SAFETY: passed on from the caller.
        let mut rows = unsafe { Short::<Alone<f32>>::new(tables, to.len()) }?;
        let found = rows.sums(isa, asked, &mut *to);
        rows.found(found, to.len())
    }

    fn merge(&mut self, others: &dyn Cells) {
        let others = of_one_fold::<Self>(others);
        for i in 0..self.sums.len() {
            self.sums[i] += others.sums[i];
            self.least[i] = self.least[i].min(others.least[i]);
            self.most[i] = self.most[i].max(others.most[i]);
        }
    }
}

impl<const MAGNITUDES: bool> RaggedCells for RangedCells<MAGNITUDES> {
    unsafe fn take(&mut self, rows: Ragged<'_, ()>) {
        // SAFETY: the caller vouches for the elements.
        self.add_rows(0, Rows::Ragged(unsafe { rows.of_elements() }));
    }
}

/// The intervals of the sums of some outputs, at most [`TOGETHER`]: nothing is known of those that
/// may be rounded.
struct Certain<'a, 'b> {
    sums: &'a [f64],
    least: &'a [u32],
    most: &'a [u32],
    rooms: &'a [i32; TOGETHER],
    into: &'b mut Intervals,
}

impl Kernel for Certain<'_, '_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Certain { sums, least, most, rooms, into } = self;
        let count = sums.len().min(TOGETHER);
        let (least, most) = (&least[..count], &most[..count]);
        for i in 0..count {
            let exact = short::is_within(least[i], most[i], rooms[i]);
            let off = if exact { 0.0 } else { f64::INFINITY };
            let found = Interval { high: sums[i], low: 0.0, off };
            into.set(i, found.or_special(sums[i]));
        }
    }
}

/// The accumulators of some outputs, equally many of each.
struct Part<'a> {
    sums: &'a mut [f64],
    least: &'a mut [u32],
    most: &'a mut [u32],
}

/// The sums of a vector of words, and the least and the largest magnitudes of its lanes.
#[derive(Clone, Copy)]
struct Lanes<S: Simd> {
    sums: [S::F; 2],
    least: S::W,
    most: S::W,
}

impl<S: Simd> Lanes<S> {
    /// Those of no elements.
    ///
    /// # Safety
    /// See [`Simd`], here and below.
    #[inline(always)]
    unsafe fn none() -> Self {
        // SAFETY: passed on from the caller, here and below.
        unsafe {
            Lanes { sums: [S::splat(0.0); 2], least: S::wsplat(u32::MAX), most: S::wsplat(0) }
        }
    }

    /// From accumulators, at least as many as a vector has words.
    #[inline(always)]
    unsafe fn load(sums: &[f64], least: &[u32], most: &[u32]) -> Self {
        let group = 2 * S::LANES;
        let (sums, least, most) = (&sums[..group], &least[..group], &most[..group]);
        // SAFETY: as above.
        unsafe {
            Lanes {
                sums: [S::load(sums.as_ptr()), S::load(sums[S::LANES..].as_ptr())],
                least: S::wload(least.as_ptr()),
                most: S::wload(most.as_ptr()),
            }
        }
    }

    /// To accumulators, likewise.
    #[inline(always)]
    unsafe fn store(self, sums: &mut [f64], least: &mut [u32], most: &mut [u32]) {
        let group = 2 * S::LANES;
        let (sums, least, most) = (&mut sums[..group], &mut least[..group], &mut most[..group]);
        // SAFETY: as above.
        unsafe {
            S::store(self.sums[0], sums.as_mut_ptr());
            S::store(self.sums[1], sums[S::LANES..].as_mut_ptr());
            S::wstore(self.least, least.as_mut_ptr());
            S::wstore(self.most, most.as_mut_ptr());
        }
    }

    /// With a vector of elements. Zeros add nothing.
    #[inline(always)]
    unsafe fn with<const MAGNITUDES: bool>(self, bits: S::W) -> Self {
        // SAFETY: as above.
        unsafe {
            let magnitudes = S::wand(bits, S::wsplat(u32::MAX >> 1));
            let [low, high] = self.sums;
            let (a, b) = S::widen(if MAGNITUDES { magnitudes } else { bits });
            Lanes {
                sums: [S::add(low, a), S::add(high, b)],
                // Of zeros less one there is nothing above.
                least: S::wmin(self.least, S::wsub(magnitudes, S::wsplat(1))),
                most: S::wmax(self.most, magnitudes),
            }
        }
    }

    /// With the lanes of other elements.
    #[inline(always)]
    unsafe fn and(self, others: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            let ([a, b], [c, d]) = (self.sums, others.sums);
            Lanes {
                sums: [S::add(a, c), S::add(b, d)],
                least: S::wmin(self.least, others.least),
                most: S::wmax(self.most, others.most),
            }
        }
    }
}

/// A vector of a few elements, with zeros behind them.
#[inline(always)]
unsafe fn padded<S: Simd>(items: &[f32]) -> S::W {
    let mut words = [0f32; MOST_WORDS];
    for (to, &x) in words.iter_mut().zip(items) {
        *to = x;
    }
    // SAFETY: the buffer holds the widest vector; the caller has the instructions.
    unsafe { S::wload(words.as_ptr().cast()) }
}

/// Adds each column of a table to its output.
struct Columns<'a, 'b, const MAGNITUDES: bool> {
    table: Table<'a, f32>,
    to: Part<'b>,
}

impl<const MAGNITUDES: bool> Kernel for Columns<'_, '_, MAGNITUDES> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Columns { table, to } = self;
        let (group, size) = (2 * S::LANES, size_of::<f32>());
        let whole = table.columns() / group * group;
        for column in (0..whole).step_by(group) {
            let some = column..column + group;
            let (mut next, step) = table.ahead(size * column, size * group);
            let (sums, least) = (&mut to.sums[some.clone()], &mut to.least[some.clone()]);
            // SAFETY: a whole group of columns and of their accumulators.
            unsafe {
                let mut lanes = Lanes::<S>::load(sums, least, &to.most[some.clone()]);
                for row in 0..table.rows() {
                    prefetch::near(next);
                    next = next.wrapping_offset(step);
                    lanes = lanes.with::<MAGNITUDES>(S::wload(table.at(row, column).cast()));
                }
                lanes.store(sums, least, &mut to.most[some]);
            }
        }
        let some = whole..table.columns();
        let rest = some.len();
        if rest > 0 {
            let (mut sums, mut least, mut most) =
                ([0.0; MOST_WORDS], [0; MOST_WORDS], [0; MOST_WORDS]);
            sums[..rest].copy_from_slice(&to.sums[some.clone()]);
            least[..rest].copy_from_slice(&to.least[some.clone()]);
            most[..rest].copy_from_slice(&to.most[some.clone()]);
            // SAFETY: copies with zeros behind them, which hold the widest vectors.
            unsafe {
                let mut lanes = Lanes::<S>::load(&sums, &least, &most);
                for row in 0..table.rows() {
                    let bits = padded::<S>(&table.row(row)[some.clone()]);
                    lanes = lanes.with::<MAGNITUDES>(bits);
                }
                lanes.store(&mut sums, &mut least, &mut most);
            }
            to.sums[some.clone()].copy_from_slice(&sums[..rest]);
            to.least[some.clone()].copy_from_slice(&least[..rest]);
            to.most[some].copy_from_slice(&most[..rest]);
        }
    }
}

/// Adds each row to its output.
struct RowByRow<'a, 'b, const MAGNITUDES: bool> {
    rows: Rows<'a, f32>,
    to: Part<'b>,
}

impl<const MAGNITUDES: bool> Kernel for RowByRow<'_, '_, MAGNITUDES> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let RowByRow { rows, to } = self;
        let count = rows.count();
        for first in (0..count).step_by(S::LANES) {
            let some = first..count.min(first + S::LANES);
            // SAFETY: the caller has the instructions; the buffers hold the widest vectors.
            unsafe {
                // The sums of as many rows as a vector has lanes, and what is common to them.
                let mut all = Lanes::<S>::none();
                let mut waiting = [all.sums[0]; MOST_LANES];
                for (i, row) in some.clone().enumerate() {
                    let lanes = Self::row::<S>(rows.row(row));
                    waiting[i] = S::add(lanes.sums[0], lanes.sums[1]);
                    all = Lanes { sums: all.sums, ..all.and(lanes) };
                }
                let (mut sums, mut least, mut most) =
                    ([0.0; MOST_LANES], [u32::MAX; MOST_WORDS], [0; MOST_WORDS]);
                S::store(S::sum_each(waiting), sums.as_mut_ptr());
                S::wstore(all.least, least.as_mut_ptr());
                S::wstore(all.most, most.as_mut_ptr());
                let least = least.iter().fold(u32::MAX, |least, &x| least.min(x));
                let most = most.iter().fold(0, |most, &x| most.max(x));
                for (i, at) in some.enumerate() {
                    to.sums[at] += sums[i];
                    to.least[at] = to.least[at].min(least);
                    to.most[at] = to.most[at].max(most);
                }
            }
        }
    }
}

impl<const MAGNITUDES: bool> RowByRow<'_, '_, MAGNITUDES> {
    /// The lanes of one row.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn row<S: Simd>(row: &[f32]) -> Lanes<S> {
        let group = 2 * S::LANES;
        let words = |at: usize| row.as_ptr().wrapping_add(at).cast::<u32>();
        // SAFETY: vectors of the row, of a copy with zeros behind it, and of the mask.
        unsafe {
            let mut beside = [Lanes::<S>::none(); BESIDE];
            let mut at = 0;
            while at + BESIDE * group <= row.len() {
                prefetch::ahead(&row[at..at + BESIDE * group]);
                for (i, lanes) in beside.iter_mut().enumerate() {
                    *lanes = lanes.with::<MAGNITUDES>(S::wload(words(at + i * group)));
                }
                at += BESIDE * group;
            }
            while at + group <= row.len() {
                beside[0] = beside[0].with::<MAGNITUDES>(S::wload(words(at)));
                at += group;
            }
            let rest = row.len() - at;
            if rest != 0 {
                let bits = if at != 0 {
                    let mask = MASK.as_ptr().add(MOST_WORDS - (group - rest));
                    S::wand(S::wload(words(row.len() - group)), S::wload(mask))
                } else {
                    padded::<S>(row)
                };
                beside[1] = beside[1].with::<MAGNITUDES>(bits);
            }
            beside[0].and(beside[1])
        }
    }
}
