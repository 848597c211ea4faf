//! What adds elements of floats, or the products of two arrays, to sums: loops for each type and measure.
//! They know no questions; [`super::floats`] asks these, and knows no measures.

#![expect(
    clippy::needless_range_loop,
    reason = "several arrays are indexed alike, in loops that compilers unroll"
)]

use super::finish::{Intervals, TOGETHER};
use super::measures::{Measure, origin};
use super::round::{Interval, Narrow};
use crate::exact::Widen;
use crate::isa::Isa;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;
use bytemuck::Zeroable;
use core::hint::black_box;
use core::marker::PhantomData;
use core::ops::Range;
use warpfold_core::prefetch;

/// Lanes of the widest vector.
const MOST_LANES: usize = 8;

/// Elements of rows that are added side by side.
const SHORT: usize = 16;

/// The most parts that a measure keeps of an output.
const MOST_PARTS: usize = 8;

/// The parts of outputs, one vector for each; those that a measure does not have are empty.
pub(super) type Parts = [Vec<f64>; MOST_PARTS];

/// What there is to know of a measure on some operands.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    /// How many parts it keeps of an output.
    pub(super) parts: usize,
    /// Whether there is a second array.
    pub(super) paired: bool,
    /// See [`Measure`], here and below.
    pub(super) products: bool,
    pub(super) shifted: bool,
    pub(super) flushes: bool,
    pub(super) scales: bool,
    pub(super) neutral: Option<f64>,
    pub(super) frame: fn(f64, f64) -> [f64; 2],
}

/// The loops of a measure on elements of type `T`. Tables, rows and pairs of these belong to the outputs
/// from `place` on.
pub(super) trait Sums<T>: Sync {
    fn traits(&self) -> Traits;
    /// Adds each row to its output. The second rows are those of the second array, if there is one;
    /// `firsts` are the elements that are origins, of measures that have some.
    fn rows(&self, isa: Isa, rows: [Rows<'_, T>; 2], firsts: &[T], parts: &mut Parts, place: usize);
    /// Adds each column to its output. The second table is that of the second array, if there is one.
    fn columns(&self, isa: Isa, tables: [Table<'_, T>; 2], parts: &mut Parts, place: usize);
    /// The intervals that the sums of at most [`TOGETHER`] outputs lie in.
    fn bounds(&self, isa: Isa, parts: &Parts, outputs: Range<usize>, asked: Bounds<'_, '_>);
    /// Adds the parts of other elements.
    fn merge(&self, isa: Isa, parts: &mut Parts, others: &Parts);
}

/// A measure of `P` parts on some operands.
pub(super) struct Of<O, M, const P: usize>(PhantomData<(O, M)>);

impl<O, M, const P: usize> Of<O, M, P> {
    pub(super) const NEW: Self = Of(PhantomData);
}

impl<O: Operands, M: Measure<P>, const P: usize> Sums<O::Item> for Of<O, M, P> {
    fn traits(&self) -> Traits {
        Traits {
            parts: P,
            paired: O::PAIRED,
            products: M::PRODUCTS,
            shifted: M::SHIFTED,
            flushes: M::FLUSHES,
            scales: M::SCALES,
            neutral: M::NEUTRAL,
            frame: M::frame,
        }
    }

    fn rows(
        &self,
        isa: Isa,
        rows: [Rows<'_, O::Item>; 2],
        firsts: &[O::Item],
        parts: &mut Parts,
        place: usize,
    ) {
        let count = rows[0].count();
        assert!(rows[1].count() == count);
        let parts = some_of(parts, place..place + count);
        dispatch_accumulators(
            isa,
            RowByRow::<O, M, P> { rows, firsts, parts, measure: PhantomData },
        );
    }

    fn columns(&self, isa: Isa, tables: [Table<'_, O::Item>; 2], parts: &mut Parts, place: usize) {
        let [one, two] = tables;
        assert!(one.columns() == two.columns() && one.rows() == two.rows());
        let parts = some_of(parts, place..place + one.columns());
        dispatch_accumulators(isa, Columns::<O, M, P> { tables, parts, measure: PhantomData });
    }

    fn bounds(&self, isa: Isa, parts: &Parts, outputs: Range<usize>, asked: Bounds<'_, '_>) {
        let parts = all_of(parts).map(|part| &part[outputs.clone()]);
        dispatch_accumulators(isa, Ends { parts, asked, measure: PhantomData::<M> });
    }

    fn merge(&self, isa: Isa, parts: &mut Parts, others: &Parts) {
        let count = parts[0].len();
        let (parts, others) = (some_of(parts, 0..count), all_of(others));
        dispatch_accumulators(isa, Merge { parts, others, measure: PhantomData::<M> });
    }
}

/// The parts that a measure has.
fn all_of<const P: usize>(parts: &Parts) -> [&[f64]; P] {
    core::array::from_fn(|p| &parts[p][..])
}

/// The parts of some outputs.
fn some_of<const P: usize>(parts: &mut [Vec<f64>], some: Range<usize>) -> [&mut [f64]; P] {
    let mut parts = parts.iter_mut();
    core::array::from_fn(|_| match parts.next() {
        Some(part) => &mut part[some.clone()],
        None => &mut [],
    })
}

/// No bits, all bits, none: which elements count.
static MASK: [f64; 6 * MOST_LANES] = {
    let mut mask = [0.0; 6 * MOST_LANES];
    let mut i = 2 * MOST_LANES;
    while i < 4 * MOST_LANES {
        mask[i] = f64::from_bits(u64::MAX);
        i += 1;
    }
    mask
};
/// What sums take in.
pub(super) trait Operands: Copy + Send + Sync + 'static {
    /// The elements.
    type Item: Widen + Narrow;
    /// Whether there is a second array.
    const PAIRED: bool;
    /// Two vectors of pairs: of the elements at `p` with those at `q`, or with themselves if
    /// there is no second array.
    ///
    /// # Safety
    /// As for [`Widen::widen`], for `q` too if there is one.
    unsafe fn load<S: Simd>(p: *const Self::Item, q: *const Self::Item) -> [[S::F; 2]; 2];
}

/// Elements of one array.
#[derive(Clone, Copy)]
pub(super) struct Alone<T>(PhantomData<T>);

impl<T: Widen + Narrow> Operands for Alone<T> {
    type Item = T;
    const PAIRED: bool = false;
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const T, _: *const T) -> [[S::F; 2]; 2] {
        // SAFETY: passed on from the caller.
        let [a, b] = unsafe { T::widen::<S>(p) };
        [[a, a], [b, b]]
    }
}

/// Elements of two arrays.
#[derive(Clone, Copy)]
pub(super) struct Paired<T>(PhantomData<T>);

impl<T: Widen + Narrow> Operands for Paired<T> {
    type Item = T;
    const PAIRED: bool = true;
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const T, q: *const T) -> [[S::F; 2]; 2] {
        // SAFETY: passed on from the caller.
        let ([a, b], [c, d]) = unsafe { (T::widen::<S>(p), T::widen::<S>(q)) };
        [[a, c], [b, d]]
    }
}

/// Pairs with what adds nothing where the lanes of `mask` have no bits: zeros, or the origin.
#[inline(always)]
unsafe fn masked<S: Simd, M: Measure<P>, const P: usize>(
    pair: [S::F; 2],
    mask: *const f64,
    neutral: S::F,
) -> [S::F; 2] {
    // SAFETY: passed on from the caller: a whole vector of the mask.
    unsafe {
        let mask = S::load(mask);
        let [x, y] = pair;
        let kept = [S::and(x, mask), S::and(y, mask)];
        if const { !M::SHIFTED } {
            return kept;
        }
        let beside = S::and(neutral, mask);
        [S::or_xor(kept[0], neutral, beside), S::or_xor(kept[1], neutral, beside)]
    }
}

/// What is asked of the sums of some outputs.
pub(super) struct Bounds<'a, 'b> {
    /// How many elements each output has.
    pub(super) lens: &'a [f64; TOGETHER],
    /// Plain sums of so many elements are exact.
    pub(super) exact: f64,
    /// What may be lost of the first sum for each element, whatever the measure says.
    pub(super) lost: f64,
    /// See [`Floats`](super::floats::Floats).
    pub(super) short: bool,
    /// The sums that are asked for.
    pub(super) first: Option<&'b mut Intervals>,
    pub(super) second: Option<&'b mut Intervals>,
}

/// The intervals that the sums of some outputs lie in: what is asked of them is then the
/// same for all measures.
struct Ends<'a, 'b, M, const P: usize> {
    /// At most [`TOGETHER`] outputs.
    parts: [&'a [f64]; P],
    asked: Bounds<'a, 'b>,
    measure: PhantomData<M>,
}

impl<M: Measure<P>, const P: usize> Kernel for Ends<'_, '_, M, P> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Ends { parts, asked, .. } = self;
        let Bounds { lens, exact, lost, short, first, second } = asked;
        let count = parts[0].len().min(TOGETHER);
        let mut columns = parts;
        for p in 0..P {
            columns[p] = &parts[p][..count];
        }
        macro_rules! bounds {
            ($to:expr, $sum:ident, $lost:expr) => {
                for i in 0..count {
                    let found = M::$sum(output(&columns, i), lens[i]);
                    let found = Interval { off: found.off + lens[i] * $lost, ..found };
                    let sure = (exact > 0.0) & (lens[i] <= exact) & found.high.is_finite();
                    let off = if sure { 0.0 } else { found.off };
                    let own = if short { found.high } else { M::special(output(&columns, i)) };
                    $to.set(i, Interval { off, ..found }.or_special(own));
                }
            };
        }
        if let Some(to) = first {
            bounds!(to, first, lost);
        }
        if let Some(to) = second {
            bounds!(to, second, 0.0);
        }
    }
}

/// Adds the parts of other elements of the same outputs.
struct Merge<'a, M, const P: usize> {
    parts: [&'a mut [f64]; P],
    others: [&'a [f64]; P],
    measure: PhantomData<M>,
}

impl<M: Measure<P>, const P: usize> Kernel for Merge<'_, M, P> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Merge { parts, others, .. } = self;
        let count = others[0].len();
        for first in (0..count).step_by(S::LANES) {
            let some = first..count.min(first + S::LANES);
            let (mut own, mut more) = ([[0.0; MOST_LANES]; P], [[0.0; MOST_LANES]; P]);
            // SAFETY: the buffers hold the widest vector; the caller has the instructions.
            unsafe {
                let (mut acc, mut beside) = ([S::splat(0.0); P], [S::splat(0.0); P]);
                for p in 0..P {
                    own[p][..some.len()].copy_from_slice(&parts[p][some.clone()]);
                    more[p][..some.len()].copy_from_slice(&others[p][some.clone()]);
                    (acc[p], beside[p]) = (S::load(own[p].as_ptr()), S::load(more[p].as_ptr()));
                }
                M::join::<S>(&mut acc, beside, S::splat(1.0));
                for p in 0..P {
                    S::store(acc[p], own[p].as_mut_ptr());
                    parts[p][some.clone()].copy_from_slice(&own[p][..some.len()]);
                }
            }
        }
    }
}

/// The parts of one output.
#[inline(always)]
fn output<const P: usize>(parts: &[&[f64]; P], i: usize) -> [f64; P] {
    let mut one = [0.0; P];
    for p in 0..P {
        one[p] = parts[p][i];
    }
    one
}

/// Adds each column of a table to its output.
struct Columns<'a, O: Operands, M, const P: usize> {
    /// The second is that of the second array, if there is one.
    tables: [Table<'a, O::Item>; 2],
    /// As long as the tables are wide.
    parts: [&'a mut [f64]; P],
    measure: PhantomData<M>,
}

impl<O: Operands, M: Measure<P>, const P: usize> Kernel for Columns<'_, O, M, P> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        let group = 2 * S::LANES;
        let columns = self.tables[0].columns();
        // SAFETY: groups are columns of the table and lie within the parts; narrower
        // tables and their parts are copied to where there is room.
        unsafe {
            let one = S::splat(black_box(1.0));
            if columns < S::LANES {
                return self.narrow::<S, false>(one);
            } else if columns < group {
                return self.narrow::<S, true>(one);
            }
            let mut column = 0;
            while column < columns {
                // Of the last whole group some columns may be done already.
                let from = column.min(columns - group);
                let mut acc = self.parts::<S>(from);
                self.group::<S>(&mut acc, from, one);
                for p in 0..P {
                    if from == column {
                        let to = &mut self.parts[p][column..column + group];
                        S::store(acc[0][p], to.as_mut_ptr());
                        S::store(acc[1][p], to[S::LANES..].as_mut_ptr());
                    } else {
                        let mut lanes = [0.0; 2 * MOST_LANES];
                        S::store(acc[0][p], lanes.as_mut_ptr());
                        S::store(acc[1][p], lanes[S::LANES..].as_mut_ptr());
                        self.parts[p][column..].copy_from_slice(&lanes[column - from..group]);
                    }
                }
                column = from + group;
            }
        }
    }
}

impl<O: Operands, M: Measure<P>, const P: usize> Columns<'_, O, M, P> {
    /// The parts of a group of columns.
    #[inline(always)]
    unsafe fn parts<S: Simd>(&self, column: usize) -> [[S::F; P]; 2] {
        // SAFETY: a whole group, which the caller vouches for.
        unsafe {
            let mut acc = [[S::splat(0.0); P]; 2];
            for p in 0..P {
                let from = &self.parts[p][column..column + 2 * S::LANES];
                acc[0][p] = S::load(from.as_ptr());
                acc[1][p] = S::load(from[S::LANES..].as_ptr());
            }
            acc
        }
    }

    /// Adds the rows of a group of columns.
    #[inline(always)]
    unsafe fn group<S: Simd>(&self, acc: &mut [[S::F; P]; 2], column: usize, one: S::F) {
        let [table, other] = self.tables;
        let mut now = *acc;
        let size = size_of::<O::Item>();
        let (mut next, step) = table.ahead(size * column, 2 * S::LANES * size);
        let (mut beside, other_step) = other.ahead(size * column, 2 * S::LANES * size);
        for row in 0..table.rows() {
            // Every line of a group.
            for line in (0..2 * S::LANES * size).step_by(64) {
                prefetch::near(next.wrapping_add(line));
            }
            next = next.wrapping_offset(step);
            if O::PAIRED {
                for line in (0..2 * S::LANES * size).step_by(64) {
                    prefetch::near(beside.wrapping_add(line));
                }
                beside = beside.wrapping_offset(other_step);
            }
            // SAFETY: a whole group, which the caller vouches for.
            unsafe {
                let [a, b] = O::load::<S>(table.at(row, column), other.at(row, column));
                M::step::<S>(&mut now[0], a, one);
                M::step::<S>(&mut now[1], b, one);
            }
        }
        *acc = now;
    }

    /// The same for a table that is no group wide: the first columns and the last ones, of which both
    /// vectors have some. `WHOLE` says that they are whole.
    #[inline(always)]
    unsafe fn narrow<S: Simd, const WHOLE: bool>(&mut self, one: S::F) {
        let [table, other] = self.tables;
        let columns = table.columns();
        let some = if WHOLE { S::LANES } else { columns };
        let last = columns - some;
        let ends = |table: Table<'_, O::Item>, row: usize| {
            let mut both = [<O::Item as Zeroable>::zeroed(); 2 * MOST_LANES];
            let row = table.row(row);
            if WHOLE {
                both[..S::LANES].copy_from_slice(&row[..S::LANES]);
                both[S::LANES..2 * S::LANES].copy_from_slice(&row[last..]);
            } else {
                for (to, &x) in both.iter_mut().zip(row) {
                    *to = x;
                }
            }
            both
        };
        let mut lanes = [[[0.0; MOST_LANES]; 2]; P];
        for (lanes, part) in lanes.iter_mut().zip(&self.parts) {
            lanes[0][..some].copy_from_slice(&part[..some]);
            lanes[1][..some].copy_from_slice(&part[last..]);
        }
        // SAFETY: the buffers hold a vector each, and `both` a group.
        unsafe {
            let mut acc = [[S::splat(0.0); P]; 2];
            for p in 0..P {
                acc[0][p] = S::load(lanes[p][0].as_ptr());
                acc[1][p] = S::load(lanes[p][1].as_ptr());
            }
            for row in 0..table.rows() {
                let items = ends(table, row);
                let beside = if O::PAIRED { ends(other, row) } else { items };
                let [a, b] = O::load::<S>(items.as_ptr(), beside.as_ptr());
                M::step::<S>(&mut acc[0], a, one);
                M::step::<S>(&mut acc[1], b, one);
            }
            for p in 0..P {
                S::store(acc[0][p], lanes[p][0].as_mut_ptr());
                S::store(acc[1][p], lanes[p][1].as_mut_ptr());
                // Of fewer columns the first vector has all.
                let which = usize::from(last > 0);
                self.parts[p][last..].copy_from_slice(&lanes[p][which][..some]);
                self.parts[p][..some].copy_from_slice(&lanes[p][0][..some]);
            }
        }
    }
}

/// Adds each row to its output.
struct RowByRow<'a, 'b, O: Operands, M, const P: usize> {
    /// The second are those of the second array, if there is one.
    rows: [Rows<'a, O::Item>; 2],
    /// The elements that are origins, of measures that have some.
    firsts: &'b [O::Item],
    /// As many as there are rows.
    parts: [&'b mut [f64]; P],
    measure: PhantomData<M>,
}

impl<O: Operands, M: Measure<P>, const P: usize> Kernel for RowByRow<'_, '_, O, M, P> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: whole groups are elements of a row or may be read behind it; the rest is
        // read from a padded copy, and zeros add nothing.
        unsafe {
            let one = S::splat(black_box(1.0));
            let count = self.rows[0].count();
            let mut waiting = [[S::splat(0.0); MOST_LANES]; P];
            // As many rows as a vector has lanes: their sums are lanes of one.
            for first in (0..count).step_by(S::LANES) {
                let some = S::LANES.min(count - first);
                let whole = some == S::LANES;
                let mut acc = self.sums::<S>(first, some);
                match if whole { self.shortness::<S>(first) } else { None } {
                    Some(most) => self.side_by_side::<S>(first, most, &mut acc, one),
                    None => {
                        // How often is not known to the compiler: what adds a row is large.
                        // Lanes that have no row are not looked at.
                        for lane in 0..some {
                            let total = self.row::<S>(first + lane, one);
                            for p in 0..P {
                                waiting[p][lane] = total[p];
                            }
                        }
                        Self::join_lanes::<S>(&mut acc, &waiting, one);
                    }
                }
                for p in 0..P {
                    let to = &mut self.parts[p][first..first + some];
                    if whole {
                        S::store(acc[p], to.as_mut_ptr());
                    } else {
                        let mut lanes = [0.0; MOST_LANES];
                        S::store(acc[p], lanes.as_mut_ptr());
                        to.copy_from_slice(&lanes[..some]);
                    }
                }
            }
        }
    }
}

/// A few elements, with zeros behind them: two of the widest vectors, and the second array's.
#[inline(always)]
fn pad<O: Operands>(items: [&[O::Item]; 2]) -> [[O::Item; 2 * MOST_LANES]; 2] {
    let mut padded = [[<O::Item as Zeroable>::zeroed(); 2 * MOST_LANES]; 2];
    for (to, items) in padded.iter_mut().zip(items).take(if O::PAIRED { 2 } else { 1 }) {
        for (to, &x) in to.iter_mut().zip(items) {
            *to = x;
        }
    }
    padded
}

impl<'a, O: Operands, M: Measure<P>, const P: usize> RowByRow<'a, '_, O, M, P> {
    /// The parts of some outputs, at most as many as a vector has lanes.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn sums<S: Simd>(&self, first: usize, some: usize) -> [S::F; P] {
        // SAFETY: a whole vector; fewer parts are copied to where there is room.
        unsafe {
            let mut acc = [S::splat(0.0); P];
            for p in 0..P {
                let from = &self.parts[p][first..first + some];
                acc[p] = if some == S::LANES {
                    S::load(from.as_ptr())
                } else {
                    let mut lanes = [0.0; MOST_LANES];
                    lanes[..some].copy_from_slice(from);
                    S::load(lanes.as_ptr())
                };
            }
            acc
        }
    }

    /// The origin of an output, and an element that adds nothing, in all lanes.
    #[inline(always)]
    unsafe fn origin<S: Simd>(&self, output: usize) -> [S::F; 2] {
        let (mut subtracted, mut neutral) = (0.0, 0.0);
        if const { M::SHIFTED } {
            subtracted = self.parts[origin(P)][output];
            neutral = M::NEUTRAL.unwrap_or_else(|| self.firsts[output].wide());
        }
        // SAFETY: passed on from the caller.
        unsafe { [S::splat(subtracted), S::splat(neutral)] }
    }

    /// A row, and the second array's.
    #[inline(always)]
    fn items(&self, row: usize) -> [&'a [O::Item]; 2] {
        let items = self.rows[0].row(row);
        let others = if O::PAIRED { self.rows[1].row(row) } else { items };
        [items, &others[..items.len()]]
    }

    /// Where a row begins, and the second array's: what comes after them may be read from
    /// here.
    #[inline(always)]
    fn starts(&self, row: usize) -> [*const O::Item; 2] {
        let start = self.rows[0].start(row);
        [start, if O::PAIRED { self.rows[1].start(row) } else { start }]
    }

    /// How many elements after a row may be read, too.
    #[inline(always)]
    fn beyond(&self, row: usize) -> usize {
        let beyond = self.rows[0].beyond(row);
        if O::PAIRED { beyond.min(self.rows[1].beyond(row)) } else { beyond }
    }

    /// Adds up the lanes of as many rows as a vector has: each row is a lane of `acc`.
    #[inline(always)]
    unsafe fn join_lanes<S: Simd>(acc: &mut [S::F; P], rows: &[[S::F; MOST_LANES]; P], one: S::F) {
        // SAFETY: the buffers hold the widest vector.
        unsafe {
            if M::BOUNDED {
                for p in 0..P {
                    acc[p] = S::add(acc[p], S::sum_each(rows[p]));
                }
                return;
            }
            // How many there are is hidden from the compiler, here and below: loops that are unrolled
            // are most of the code.
            let mut turned = [[acc[0]; MOST_LANES]; P];
            for (turned, &rows) in turned.iter_mut().zip(black_box(&rows[..])) {
                *turned = S::transpose(rows);
            }
            for lane in 0..black_box(S::LANES).min(MOST_LANES) {
                let mut others = *acc;
                for p in 0..P {
                    others[p] = turned[p][lane];
                }
                M::join::<S>(acc, others, one);
            }
        }
    }

    /// The elements of the longest of as many rows as a vector has lanes, if it is so short
    /// that adding up the lanes of each row would take longer than adding the rows, and if
    /// whole groups may be read where these have ended.
    #[inline(always)]
    fn shortness<S: Simd>(&self, first: usize) -> Option<usize> {
        if !self.rows[0].may_be_short() {
            return None;
        }
        let (mut most, mut room) = (0, usize::MAX);
        for row in first..first + S::LANES {
            let len = self.items(row)[0].len();
            most = most.max(len);
            room = room.min(len + self.beyond(row));
        }
        (most <= SHORT && most.next_multiple_of(2 * S::LANES) <= room).then_some(most)
    }

    /// Adds as many rows as a vector has lanes, each to its lane of `acc`, none of more than
    /// `most` elements. What lies behind a row adds nothing.
    #[inline(always)]
    unsafe fn side_by_side<S: Simd>(
        &self,
        first: usize,
        most: usize,
        acc: &mut [S::F; P],
        one: S::F,
    ) {
        let group = 2 * S::LANES;
        let mut at = 0;
        while at < most {
            // SAFETY: whole groups of all rows may be read, as `shortness` found; the mask has
            // two vectors from each of these places on.
            unsafe {
                // The first factors of two vectors, and the second ones.
                let mut rows = [[[one; MOST_LANES]; 2]; 2];
                for lane in 0..S::LANES {
                    let left = self.items(first + lane)[0].len().saturating_sub(at).min(group);
                    let mask = MASK.as_ptr().add(4 * MOST_LANES - left);
                    let [p, q] = self.starts(first + lane);
                    let [a, b] = O::load::<S>(p.wrapping_add(at), q.wrapping_add(at));
                    let [_, neutral] = self.origin::<S>(first + lane);
                    let a = masked::<S, M, P>(a, mask, neutral);
                    let b = masked::<S, M, P>(b, mask.add(S::LANES), neutral);
                    (rows[0][0][lane], rows[0][1][lane]) = (a[0], a[1]);
                    (rows[1][0][lane], rows[1][1][lane]) = (b[0], b[1]);
                }
                for (half, &[rows, others]) in black_box(&rows[..]).iter().enumerate() {
                    if at + half * S::LANES >= most {
                        break;
                    }
                    let columns = S::transpose(rows);
                    let others = if O::PAIRED { S::transpose(others) } else { columns };
                    for lane in 0..black_box(S::LANES).min(MOST_LANES) {
                        M::step::<S>(acc, [columns[lane], others[lane]], one);
                    }
                }
            }
            at += group;
        }
    }

    /// The lanes of one row.
    #[inline(always)]
    unsafe fn row<S: Simd>(&self, row: usize, one: S::F) -> [S::F; P] {
        let (beyond, [p, q]) = (self.beyond(row), self.starts(row));
        let ([row, other], output) = (self.items(row), row);
        let group = 2 * S::LANES;
        let whole = row.len() / group * group;
        // SAFETY: as in `run`.
        unsafe {
            let [subtracted, neutral] = self.origin::<S>(output);
            let mut acc = [[S::splat(0.0); P]; 2];
            if const { M::SHIFTED } {
                acc[0][origin(P)] = subtracted;
                acc[1][origin(P)] = subtracted;
            }
            for at in (0..whole).step_by(group) {
                prefetch::ahead(&row[at..at + group]);
                if O::PAIRED {
                    prefetch::ahead(&other[at..at + group]);
                }
                let [a, b] = O::load::<S>(p.wrapping_add(at), q.wrapping_add(at));
                M::step::<S>(&mut acc[0], a, one);
                M::step::<S>(&mut acc[1], b, one);
            }
            let rest = row.len() - whole;
            if rest != 0 {
                // A whole group of which some elements count.
                let padded;
                let (p, q, mask) = if whole != 0 {
                    let from = row.len() - group;
                    (p.wrapping_add(from), q.wrapping_add(from), 2 * MOST_LANES - (group - rest))
                } else if rest + beyond >= group {
                    (p, q, 4 * MOST_LANES - rest)
                } else {
                    padded = pad::<O>([row, other]);
                    (padded[0].as_ptr(), padded[1].as_ptr(), 4 * MOST_LANES - rest)
                };
                let mask = MASK.as_ptr().add(mask);
                let [a, b] = O::load::<S>(p, q);
                M::step::<S>(&mut acc[0], masked::<S, M, P>(a, mask, neutral), one);
                let mask = mask.add(S::LANES);
                M::step::<S>(&mut acc[1], masked::<S, M, P>(b, mask, neutral), one);
            }
            let [mut total, others] = acc;
            M::join::<S>(&mut total, others, one);
            total
        }
    }
}
