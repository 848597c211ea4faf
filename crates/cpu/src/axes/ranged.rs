//! Sums of f32 for many outputs, of so few elements that f64 often adds them without rounding.
//!
//! Beside each sum stand the least and the largest magnitude of its elements. All elements are
//! multiples of the last place of the least one, and f64 has 29 bits more than f32: where these
//! are enough for the largest one and for how many there are, no partial sum in any order is
//! rounded. That takes half of the instructions that rounding errors do, and unlike a bound of the
//! error it tells sums that lie in the middle between two f32, as every 2^k-th one of 2^k elements
//! does. Outputs whose magnitudes are too far apart are left to others.

use super::finish::TOGETHER;
use super::round::Interval;
use super::short::{is_within, room};
use super::sums::{Bounds, Parts, Sums, Traits};
use crate::isa::Isa;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;
use core::ops::Range;
use warpfold_core::prefetch;

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
pub(super) struct Ranged<const MAGNITUDES: bool>;

impl<const MAGNITUDES: bool> Sums<f32> for Ranged<MAGNITUDES> {
    fn traits(&self) -> Traits {
        Traits {
            parts: 2,
            paired: false,
            products: false,
            shifted: false,
            flushes: false,
            scales: false,
            neutral: None,
            frame: |_, _| [0.0, 1.0],
        }
    }

    fn rows(
        &self,
        isa: Isa,
        [rows, _]: [Rows<'_, f32>; 2],
        _: &[f32],
        parts: &mut Parts,
        place: usize,
    ) {
        let to = Part::of(parts, place..place + rows.count());
        dispatch_accumulators(isa, RowByRow::<MAGNITUDES> { rows, to });
    }

    fn columns(&self, isa: Isa, [table, _]: [Table<'_, f32>; 2], parts: &mut Parts, place: usize) {
        let to = Part::of(parts, place..place + table.columns());
        dispatch_accumulators(isa, Columns::<MAGNITUDES> { table, to });
    }

    fn bounds(&self, isa: Isa, parts: &Parts, outputs: Range<usize>, asked: Bounds<'_, '_>) {
        let (least, most) = words_of(&parts[1]);
        let (least, most) = (&least[outputs.clone()], &most[outputs.clone()]);
        let sums = &parts[0][outputs];
        dispatch_accumulators(isa, Certain { sums, least, most, asked });
    }

    fn merge(&self, _: Isa, parts: &mut Parts, others: &Parts) {
        let to = Part::of(parts, 0..others[0].len());
        let (least, most) = words_of(&others[1]);
        for (i, sum) in others[0].iter().enumerate() {
            to.sums[i] += sum;
            to.least[i] = to.least[i].max(least[i]);
            to.most[i] = to.most[i].max(most[i]);
        }
    }
}

/// The accumulators of some outputs, equally many of each.
struct Part<'a> {
    sums: &'a mut [f64],
    /// The bits of the least magnitude that is not 0, subtracted from 0, and of the largest.
    least: &'a mut [u32],
    most: &'a mut [u32],
}

impl Part<'_> {
    /// Those of some of the outputs: the first part of a sum is its own, and the second ones are words.
    fn of(parts: &mut Parts, some: Range<usize>) -> Part<'_> {
        let [sums, words, ..] = parts;
        let words: &mut [u32] = bytemuck::cast_slice_mut(words);
        let (least, most) = words.split_at_mut(words.len() / 2);
        let (least, most) = (&mut least[some.clone()], &mut most[some.clone()]);
        Part { sums: &mut sums[some], least, most }
    }
}

/// The words of all outputs: see [`Part`].
fn words_of(part: &[f64]) -> (&[u32], &[u32]) {
    let words = bytemuck::cast_slice(part);
    words.split_at(words.len() / 2)
}

/// The intervals of the sums of some outputs: nothing is known of those that may be rounded.
struct Certain<'a, 'b> {
    sums: &'a [f64],
    least: &'a [u32],
    most: &'a [u32],
    asked: Bounds<'a, 'b>,
}

impl Kernel for Certain<'_, '_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Certain { sums, least, most, asked: Bounds { lens, first, second, .. } } = self;
        let Some(into) = first.or(second) else { return };
        let count = sums.len().min(TOGETHER);
        let (least, most) = (&least[..count], &most[..count]);
        // Outputs have as many elements each, as a rule.
        let mut rooms = [room(lens[0]); TOGETHER];
        if lens[..count].iter().fold(false, |other, &len| other | (len != lens[0])) {
            for (room, &len) in rooms.iter_mut().zip(lens) {
                *room = self::room(len);
            }
        }
        for i in 0..count {
            let exact = is_within(least[i].wrapping_neg(), most[i], rooms[i]);
            let off = if exact { 0.0 } else { f64::INFINITY };
            let found = Interval { high: sums[i], low: 0.0, off };
            into.set(i, found.or_special(sums[i]));
        }
    }
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
        unsafe { Lanes { sums: [S::splat(0.0); 2], least: S::wsplat(0), most: S::wsplat(0) } }
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
                least: S::wmax(self.least, S::wsub(S::wsplat(0), magnitudes)),
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
                least: S::wmax(self.least, others.least),
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
                    ([0.0; MOST_LANES], [0; MOST_WORDS], [0; MOST_WORDS]);
                S::store(S::sum_each(waiting), sums.as_mut_ptr());
                S::wstore(all.least, least.as_mut_ptr());
                S::wstore(all.most, most.as_mut_ptr());
                let least = least.iter().fold(0, |least, &x| least.max(x));
                let most = most.iter().fold(0, |most, &x| most.max(x));
                for (i, at) in some.enumerate() {
                    to.sums[at] += sums[i];
                    to.least[at] = to.least[at].max(least);
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
