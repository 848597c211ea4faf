//! Sums of floats for many outputs: f64 sums that know how far they can be off.
//!
//! A sum is kept in three f64: the rounded sum `s`, the sum `e` of the rounding errors
//! of `s`, which TwoSum gives exactly (Knuth 1969, Ogita, Rump and Oishi 2005), and the
//! sum `a` of their magnitudes. Of `N` terms in `e`, each of at most 53 bits, the sum in
//! any order errs by at most `(N - 1) u (1 + ...)` times the sum of the magnitudes, with
//! `u = 2^-53`. So the exact sum lies within `s + e` plus or minus `N 2^-52 a`, and where
//! `a` is 0 it is `s`. If both ends round to the same number, that is the exact sum
//! rounded once (Ziv 1991); otherwise the general way has to answer. Infinities, NaNs and
//! overflow make `e` NaN, and a NaN end equals nothing.
//!
//! Of short rows of f64 many sums lie exactly in the middle: one in eight of eight numbers
//! between 0 and 1. No interval tells those, unless it has no width. So `e` is added up by
//! TwoSum as well where it is worth it (*fine* measures): `l` is the sum of its rounding
//! errors, `b` that of their magnitudes, and where `b` is 0, which is the rule, `s + e` is
//! the exact sum. Otherwise it is `s + e + l` plus or minus `N 2^-52 b`.
//!
//! Squares of f64 enter as the rounded product and its error, which the fused operation
//! gives exactly unless it underflows; sums of squares that are small enough for that
//! to matter are not answered here.

#![expect(
    clippy::needless_range_loop,
    reason = "several arrays are indexed alike, in loops that compilers unroll"
)]

use super::finish::{Asked, Finish, Intervals, Pair, TOGETHER};
use super::fold::{Accumulators, Cells, Fold, RaggedCells, RaggedFold, of_one_fold};
use super::lengths::Lengths;
use super::round::{Interval, Narrow, two_sum};
use crate::exact::Widen;
use crate::isa::Isa;
use crate::ragged::Ragged;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch};
use crate::table::Table;
use core::alloc::Layout;
use core::marker::PhantomData;
use warpfold_core::{DType, prefetch};

/// Parts of a sum, and of one with the errors of its errors.
const SUM: usize = 3;
const FINE: usize = 4;
/// Lanes of the widest vector.
const MOST_LANES: usize = 8;

/// Elements of rows that are added side by side.
const SHORT: usize = 16;

/// Zeros, ones, zeros: what an element is multiplied by that counts, or not.
static MASK: [f64; 6 * MOST_LANES] = {
    let mut mask = [0.0; 6 * MOST_LANES];
    let mut i = 2 * MOST_LANES;
    while i < 4 * MOST_LANES {
        mask[i] = 1.0;
        i += 1;
    }
    mask
};

/// What is summed: an accumulator of `P` parts takes elements.
pub(super) trait Measure<const P: usize>: Copy + Send + Sync + 'static {
    /// Whether squares are summed.
    const SQUARES: bool;
    /// Takes in a vector of elements.
    ///
    /// # Safety
    /// See [`Simd`], here and below.
    unsafe fn step<S: Simd>(acc: &mut [S::F; P], x: S::F, one: S::F);
    /// Takes in an accumulator of other elements.
    unsafe fn join<S: Simd>(acc: &mut [S::F; P], others: [S::F; P], one: S::F);
    /// The same for one lane.
    fn merged(parts: [f64; P], others: [f64; P]) -> [f64; P];
    /// The sum of `len` elements.
    fn first(parts: [f64; P], len: f64) -> Interval;
    /// That of their magnitudes or of their squares, whichever it is.
    fn second(parts: [f64; P], len: f64) -> Interval;
}

/// Adds `x` to a sum.
#[inline(always)]
unsafe fn add<S: Simd>(s: &mut S::F, e: &mut S::F, a: &mut S::F, x: S::F, one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        let t = S::add_beside(x, *s, one);
        let z = S::sub(t, *s);
        let error = S::add_beside(S::sub(*s, S::sub(t, z)), S::sub(x, z), one);
        *s = t;
        *e = S::add_beside(error, *e, one);
        *a = S::add(*a, S::abs(error));
    }
}

/// The same for one lane.
#[inline(always)]
fn add_one([s, e, a]: [f64; SUM], [x, error, magnitude]: [f64; SUM]) -> [f64; SUM] {
    let t = s + x;
    let z = t - s;
    let rounded = (s - (t - z)) + (x - z);
    [t, e + error + rounded, a + magnitude + rounded.abs()]
}

/// The rounded sum of two numbers, and what it is off by.
#[inline(always)]
unsafe fn two_sums<S: Simd>(a: S::F, b: S::F, one: S::F) -> [S::F; 2] {
    // SAFETY: passed on from the caller.
    unsafe {
        let t = S::add_beside(b, a, one);
        let z = S::sub(t, a);
        [t, S::add_beside(S::sub(a, S::sub(t, z)), S::sub(b, z), one)]
    }
}

/// Adds `x` to a sum, and the error to that of the errors.
#[inline(always)]
unsafe fn add_fine<S: Simd>([s, e, l, b]: [&mut S::F; FINE], x: S::F, one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        let [sum, error] = two_sums::<S>(*s, x, one);
        let [errors, rest] = two_sums::<S>(*e, error, one);
        (*s, *e) = (sum, errors);
        *l = S::add(*l, rest);
        *b = S::add(*b, S::abs(rest));
    }
}

/// Parts that are a sum with the errors of its errors.
#[inline(always)]
unsafe fn join_fine<S: Simd, const P: usize>(acc: &mut [S::F; P], others: [S::F; P], one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        let [mut s, mut e, mut l, mut b] = [acc[0], acc[1], acc[2], acc[3]];
        add_fine::<S>([&mut s, &mut e, &mut l, &mut b], others[0], one);
        let [errors, rest] = two_sums::<S>(e, others[1], one);
        l = S::add(S::add(l, rest), others[2]);
        b = S::add(S::add(b, S::abs(rest)), others[3]);
        (acc[0], acc[1], acc[2], acc[3]) = (s, errors, l, b);
    }
}

/// The same for one lane.
#[inline(always)]
fn merged_fine<const P: usize>(parts: [f64; P], others: [f64; P]) -> [f64; P] {
    let mut merged = parts;
    let [s, error] = two_sum(parts[0], others[0]);
    let [e, rest] = two_sum(parts[1], error);
    let [e, more] = two_sum(e, others[1]);
    merged[0] = s;
    merged[1] = e;
    merged[2] = parts[2] + rest + more + others[2];
    merged[3] = parts[3] + rest.abs() + more.abs() + others[3];
    merged
}

/// The interval of a sum with the errors of its errors, of which there are as many as
/// [`interval`] says of errors.
#[inline(always)]
fn fine([s, e, l, b]: [f64; FINE], len: f64) -> Interval {
    let rest = Interval::of_sum(s, e + l, (len + 8.0) * 32.0, b);
    let off = if b == 0.0 { 0.0 } else { rest.off + (e.abs() + l.abs()) * f64::EPSILON };
    Interval { off, ..rest }
}

/// Parts that are sums with their errors.
#[inline(always)]
unsafe fn join_sums<S: Simd, const P: usize>(acc: &mut [S::F; P], others: [S::F; P], one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        for p in (0..P).step_by(SUM) {
            let [mut s, mut e, mut a] = [acc[p], acc[p + 1], acc[p + 2]];
            add::<S>(&mut s, &mut e, &mut a, others[p], one);
            e = S::add(e, others[p + 1]);
            a = S::add(a, others[p + 2]);
            (acc[p], acc[p + 1], acc[p + 2]) = (s, e, a);
        }
    }
}

/// The same for one lane.
#[inline(always)]
fn merged_sums<const P: usize>(mut parts: [f64; P], others: [f64; P]) -> [f64; P] {
    for p in (0..P).step_by(SUM) {
        let sum = |parts: &[f64; P]| [parts[p], parts[p + 1], parts[p + 2]];
        let [s, e, a] = add_one(sum(&parts), sum(&others));
        (parts[p], parts[p + 1], parts[p + 2]) = (s, e, a);
    }
    parts
}

/// The interval of a sum with its errors. They have at most two terms for an element,
/// and for a run of elements, which has at least one, those of the lanes that are
/// merged.
#[inline(always)]
fn interval([s, e, a]: [f64; SUM], len: f64) -> Interval {
    Interval::of_sum(s, e, (len + 8.0) * 32.0, a)
}

/// The interval of a plain sum of `len` terms, whose magnitudes have this sum.
#[inline(always)]
fn rough(s: f64, magnitudes: f64, len: f64) -> Interval {
    Interval::of_sum(s, 0.0, len + 8.0, magnitudes)
}

macro_rules! measure {
    ($(
        $(#[$doc:meta])*
        $name:ident $(<const $split:ident>)?: $parts:literal, $squares:literal,
        $join:ident, $merged:ident,
        |$S:ident, $acc:pat, $x:ident, $one:ident| $step:expr,
        |$p:ident, $len:ident| $first:expr, $second:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name $(<const $split: bool>)?;

        impl $(<const $split: bool>)? Measure<$parts> for $name $(<$split>)? {
            const SQUARES: bool = $squares;
            #[inline(always)]
            unsafe fn step<$S: Simd>($acc: &mut [$S::F; $parts], $x: $S::F, $one: $S::F) {
                // SAFETY: passed on from the caller.
                unsafe { $step }
            }
            #[inline(always)]
            unsafe fn join<S: Simd>(acc: &mut [S::F; $parts], others: [S::F; $parts], one: S::F) {
                // SAFETY: passed on from the caller.
                unsafe { $join::<S, $parts>(acc, others, one) }
            }
            #[inline(always)]
            fn merged(parts: [f64; $parts], others: [f64; $parts]) -> [f64; $parts] {
                $merged(parts, others)
            }
            #[inline(always)]
            fn first($p: [f64; $parts], $len: f64) -> Interval {
                $first
            }
            #[inline(always)]
            fn second($p: [f64; $parts], $len: f64) -> Interval {
                $second
            }
        }
    )*};
}

#[inline(always)]
unsafe fn join_plain<S: Simd, const P: usize>(acc: &mut [S::F; P], others: [S::F; P], _: S::F) {
    for p in 0..P {
        // SAFETY: passed on from the caller.
        acc[p] = unsafe { S::add(acc[p], others[p]) };
    }
}

#[inline(always)]
fn merged_plain<const P: usize>(mut parts: [f64; P], others: [f64; P]) -> [f64; P] {
    for p in 0..P {
        parts[p] += others[p];
    }
    parts
}

/// Adds a square, with its error if it has one, to a sum.
#[inline(always)]
unsafe fn add_square<S: Simd, const SPLIT: bool>([s, e, a]: [&mut S::F; SUM], x: S::F, one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        let product = S::mul(x, x);
        add::<S>(s, e, a, product, one);
        if SPLIT {
            let rest = S::mul_sub(x, x, product);
            *e = S::add(*e, rest);
            *a = S::add(*a, S::abs(rest));
        }
    }
}

measure! {
    /// The elements.
    Plain: 3, false, join_sums, merged_sums,
        |S, [s, e, a], x, one| add::<S>(s, e, a, x, one),
        |p, len| interval(p, len), interval(p, len);
    /// Their absolute values.
    Absolute: 3, false, join_sums, merged_sums,
        |S, [s, e, a], x, one| add::<S>(s, e, a, S::abs(x), one),
        |p, len| interval(p, len), interval(p, len);
    /// The elements, with the errors of their errors.
    FinePlain: 4, false, join_fine, merged_fine,
        |S, [s, e, l, b], x, one| add_fine::<S>([s, e, l, b], x, one),
        |p, len| fine(p, len), fine(p, len);
    /// Their absolute values likewise.
    FineAbsolute: 4, false, join_fine, merged_fine,
        |S, [s, e, l, b], x, one| add_fine::<S>([s, e, l, b], S::abs(x), one),
        |p, len| fine(p, len), fine(p, len);
    /// Their squares, which have more than 53 bits.
    Square: 3, true, join_sums, merged_sums,
        |S, [s, e, a], x, one| add_square::<S, true>([s, e, a], x, one),
        |p, len| interval(p, len), interval(p, len);
    /// The elements, and their squares; `SPLIT` if these have more than 53 bits.
    Both<const SPLIT>: 6, true, join_sums, merged_sums,
        |S, [s, e, a, t, f, b], x, one| {
            add::<S>(s, e, a, x, one);
            add_square::<S, SPLIT>([t, f, b], x, one);
        },
        |p, len| interval([p[0], p[1], p[2]], len), interval([p[3], p[4], p[5]], len);
    /// The elements in a plain sum, and their magnitudes. Plain sums are for types of at
    /// most 24 bits: they are off by too little to matter for most outputs, and those
    /// that lie too close to the middle between two numbers are summed again.
    RoughPlain: 2, false, join_plain, merged_plain,
        |S, [s, a], x, _one| {
            *s = S::add(*s, x);
            *a = S::add(*a, S::abs(x));
        },
        |p, len| rough(p[0], p[1], len), rough(p[1], p[1], len);
    /// The elements, and their squares, in plain sums. The sum of the magnitudes is at
    /// most the root of `len` times the sum of the squares.
    RoughBoth: 2, true, join_plain, merged_plain,
        |S, [s, t], x, _one| {
            *s = S::add(*s, x);
            *t = S::add(*t, S::mul(x, x));
        },
        |p, len| rough(p[0], (len * p[1]).sqrt() * 1.01, len), rough(p[1], p[1], len);
}

/// An operation on floats, by one measure.
pub(super) struct Floats<T, M, const P: usize> {
    isa: Isa,
    asked: Asked,
    measure: PhantomData<(T, M)>,
}

impl<T, M, const P: usize> Floats<T, M, P> {
    pub(super) fn new(isa: Isa, asked: Asked, _measure: M) -> Self {
        Floats { isa, asked, measure: PhantomData }
    }
}

impl<T: Widen + Narrow, M: Measure<P>, const P: usize> Fold for Floats<T, M, P> {
    fn item(&self) -> Layout {
        Layout::new::<T>()
    }

    fn cells(&self, outputs: usize) -> Box<dyn Cells> {
        Box::new(FloatCells::new(self, outputs))
    }
}

impl<T: Widen + Narrow, M: Measure<P>, const P: usize> RaggedFold for Floats<T, M, P> {
    fn ragged(&self, segments: usize) -> Box<dyn RaggedCells> {
        Box::new(FloatCells::new(self, segments))
    }
}

/// The accumulators: the parts of the sums.
struct FloatCells<T, M, const P: usize> {
    fold: Floats<T, M, P>,
    parts: [Vec<f64>; P],
    pair: Pair,
}

impl<T: Widen, M: Measure<P>, const P: usize> FloatCells<T, M, P> {
    fn new(fold: &Floats<T, M, P>, outputs: usize) -> Self {
        let Floats { isa, asked, measure } = *fold;
        let parts = core::array::from_fn(|_| vec![0.0; outputs]);
        FloatCells { fold: Floats { isa, asked, measure }, parts, pair: Pair::NONE }
    }

    /// Adds each row to its output, from `place` on.
    fn add<'a>(&mut self, place: usize, rows: impl Rows<'a, T>)
    where
        T: 'a,
    {
        let parts = self.parts.each_mut().map(|part| &mut part[place..place + rows.count()]);
        let items = PhantomData::<(T, M)>;
        dispatch(self.fold.isa, RowByRow { rows, parts, items });
    }
}

impl<T: Widen + Narrow, M: Measure<P>, const P: usize> Accumulators for FloatCells<T, M, P> {
    fn clear(&mut self) {
        self.parts.iter_mut().for_each(|part| part.fill(0.0));
    }

    fn answer(
        &mut self,
        place: usize,
        lengths: Lengths<'_>,
        to: &mut [u8],
        missing: &mut Vec<usize>,
    ) {
        let to: &mut [T] = bytemuck::cast_slice_mut(to);
        let Floats { isa, asked, .. } = self.fold;
        // Of two elements there is one error, which is the sum of errors.
        let one_error = if P == SUM && !M::SQUARES { 2.0 } else { 0.0 };
        let short = T::DTYPE == DType::F16 && !M::SQUARES;
        let exact = if short { EXACT_F16 } else { one_error };
        let mut lens = [0.0; TOGETHER];
        // Where a square underflowed its error is lost.
        let least = (M::SQUARES && T::DTYPE.size() == 8).then_some(LEAST_SQUARES);
        for (to, place) in to.chunks_mut(TOGETHER).zip((place..).step_by(TOGETHER)) {
            let parts = self.parts.each_ref().map(|part| &part[place..place + to.len()]);
            let Pair { first, second } = &mut self.pair;
            let first = asked.first().then_some(first);
            let second = asked.second().then_some(second);
            let measure = PhantomData::<M>;
            lengths.fill(place, &mut lens[..to.len()]);
            let lens = &lens;
            dispatch(isa, Bounds { parts, lens, exact, first, second, measure });
            let pair = &self.pair;
            dispatch(isa, Finish { asked, lens, pair, least, place, to, missing });
        }
    }
}

impl<T: Widen + Narrow, M: Measure<P>, const P: usize> Cells for FloatCells<T, M, P> {
    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        // SAFETY: the caller vouches for the elements.
        self.add(place, unsafe { table.of_elements::<T>() });
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        let parts = self.parts.each_mut().map(|part| &mut part[place..place + table.columns()]);
        // SAFETY: the caller vouches for the elements.
        let table = unsafe { table.of_elements() };
        dispatch(self.fold.isa, Columns::<T, M, P> { table, parts, measure: PhantomData });
    }

    fn merge(&mut self, others: &dyn Cells) {
        merge::<M, P>(&mut self.parts, &of_one_fold::<Self>(others).parts);
    }
}

impl<T: Widen + Narrow, M: Measure<P>, const P: usize> RaggedCells for FloatCells<T, M, P> {
    unsafe fn take(&mut self, rows: Ragged<'_, ()>) {
        // SAFETY: the caller vouches for the elements.
        self.add(0, unsafe { rows.of_elements::<T>() });
    }
}

/// Adds the parts of other elements.
fn merge<M: Measure<P>, const P: usize>(to: &mut [Vec<f64>; P], others: &[Vec<f64>; P]) {
    for i in 0..to[0].len() {
        let own: [f64; P] = core::array::from_fn(|p| to[p][i]);
        let merged = M::merged(own, core::array::from_fn(|p| others[p][i]));
        to.iter_mut().zip(merged).for_each(|(part, x)| part[i] = x);
    }
}

/// The intervals that the sums of some outputs lie in: what is asked of them is then the
/// same for all measures.
struct Bounds<'a, 'b, M, const P: usize> {
    /// At most [`TOGETHER`] outputs.
    parts: [&'a [f64]; P],
    lens: &'a [f64; TOGETHER],
    /// Plain sums of so many elements are exact.
    exact: f64,
    /// The sums that are asked for.
    first: Option<&'b mut Intervals>,
    second: Option<&'b mut Intervals>,
    measure: PhantomData<M>,
}

impl<M: Measure<P>, const P: usize> Kernel for Bounds<'_, '_, M, P> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Bounds { parts, lens, exact, first, second, .. } = self;
        let count = parts[0].len().min(TOGETHER);
        let mut columns = parts;
        for p in 0..P {
            columns[p] = &parts[p][..count];
        }
        if let Some(to) = first {
            for i in 0..count {
                to.set(i, M::first(output(&columns, i), lens[i]), lens[i] <= exact);
            }
        }
        if let Some(to) = second {
            for i in 0..count {
                to.set(i, M::second(output(&columns, i), lens[i]), lens[i] <= exact);
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

/// f16 are multiples of 2^-24 below 2^16: in f64 sums of so many are exact.
const EXACT_F16: f64 = 8192.0;

/// Sums of squares above this have lost nothing that matters: what underflows is below
/// `2^-1074` a term, and there are fewer than `2^64` terms.
const LEAST_SQUARES: f64 = 1e-200;

/// Adds each column of a table to its output.
struct Columns<'a, T, M, const P: usize> {
    table: Table<'a, T>,
    /// As long as the table is wide.
    parts: [&'a mut [f64]; P],
    measure: PhantomData<M>,
}

impl<T: Widen, M: Measure<P>, const P: usize> Kernel for Columns<'_, T, M, P> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        let group = 2 * S::LANES;
        let columns = self.table.columns();
        // SAFETY: groups are columns of the table and lie within the parts; narrower
        // tables and their parts are copied to where there is room.
        unsafe {
            let one = S::splat(core::hint::black_box(1.0));
            if columns < group {
                return self.narrow::<S>(one);
            }
            let mut column = 0;
            while column + group <= columns {
                let mut acc = self.parts::<S>(column);
                self.group::<S>(&mut acc, column, one);
                for p in 0..P {
                    let to = &mut self.parts[p][column..column + group];
                    S::store(acc[0][p], to.as_mut_ptr());
                    S::store(acc[1][p], to[S::LANES..].as_mut_ptr());
                }
                column += group;
            }
            if column < columns {
                // The last whole group: some of its columns are done already.
                let last = columns - group;
                let mut acc = self.parts::<S>(last);
                self.group::<S>(&mut acc, last, one);
                for p in 0..P {
                    let mut lanes = [0.0; 2 * MOST_LANES];
                    S::store(acc[0][p], lanes.as_mut_ptr());
                    S::store(acc[1][p], lanes[S::LANES..].as_mut_ptr());
                    self.parts[p][column..].copy_from_slice(&lanes[column - last..group]);
                }
            }
        }
    }
}

impl<T: Widen, M: Measure<P>, const P: usize> Columns<'_, T, M, P> {
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
        let table = self.table;
        let mut now = *acc;
        let size = size_of::<T>();
        let (mut next, step) = table.ahead(size * column, 2 * S::LANES * size);
        for row in 0..table.rows() {
            let p = table.at(row, column);
            prefetch::near(next);
            next = next.wrapping_offset(step);
            // SAFETY: a whole group, which the caller vouches for.
            unsafe {
                let [a, b] = T::widen::<S>(p);
                M::step::<S>(&mut now[0], a, one);
                M::step::<S>(&mut now[1], b, one);
            }
        }
        *acc = now;
    }

    /// The same for a table that is no group wide.
    #[inline(always)]
    unsafe fn narrow<S: Simd>(&mut self, one: S::F) {
        let columns = self.table.columns();
        let mut lanes = [[0.0; 2 * MOST_LANES]; P];
        for (lanes, part) in lanes.iter_mut().zip(&self.parts) {
            lanes[..columns].copy_from_slice(part);
        }
        // SAFETY: the buffers hold two vectors.
        unsafe {
            let mut acc = [[S::splat(0.0); P]; 2];
            for p in 0..P {
                acc[0][p] = S::load(lanes[p].as_ptr());
                acc[1][p] = S::load(lanes[p][S::LANES..].as_ptr());
            }
            for row in 0..self.table.rows() {
                let mut padded = [<T as bytemuck::Zeroable>::zeroed(); 2 * MOST_LANES];
                padded[..columns].copy_from_slice(self.table.row(row));
                let [a, b] = T::widen::<S>(padded.as_ptr());
                M::step::<S>(&mut acc[0], a, one);
                M::step::<S>(&mut acc[1], b, one);
            }
            for p in 0..P {
                S::store(acc[0][p], lanes[p].as_mut_ptr());
                S::store(acc[1][p], lanes[p][S::LANES..].as_mut_ptr());
                self.parts[p].copy_from_slice(&lanes[p][..columns]);
            }
        }
    }
}

/// Adds each row to its output.
struct RowByRow<'b, T, M, R, const P: usize> {
    rows: R,
    /// As many as there are rows.
    parts: [&'b mut [f64]; P],
    items: PhantomData<(T, M)>,
}

impl<'a, T: Widen + 'a, M: Measure<P>, R: Rows<'a, T>, const P: usize> Kernel
    for RowByRow<'_, T, M, R, P>
{
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: whole groups are elements of a row or may be read behind it; the rest is
        // read from a padded copy, and zeros add nothing.
        unsafe {
            let one = S::splat(core::hint::black_box(1.0));
            let zero = S::splat(0.0);
            let count = self.rows.count();
            let whole = count / S::LANES * S::LANES;
            // As many rows as a vector has lanes: their sums are lanes of one.
            for first in (0..whole).step_by(S::LANES) {
                let mut acc = [zero; P];
                for p in 0..P {
                    acc[p] = S::load(self.parts[p][first..first + S::LANES].as_ptr());
                }
                let short = if R::MAY_BE_SHORT { self.shortness::<S>(first) } else { None };
                if let Some(most) = short {
                    self.side_by_side::<S>(first, most, &mut acc, one);
                } else {
                    let mut waiting = [[zero; MOST_LANES]; P];
                    for lane in 0..S::LANES {
                        let (row, beyond) =
                            (self.rows.row(first + lane), self.rows.beyond(first + lane));
                        let total = Self::row::<S>(row, beyond, one);
                        for p in 0..P {
                            waiting[p][lane] = total[p];
                        }
                    }
                    Self::join_lanes::<S>(&mut acc, &waiting, one);
                }
                for p in 0..P {
                    S::store(acc[p], self.parts[p][first..first + S::LANES].as_mut_ptr());
                }
            }
            for place in whole..count {
                let total = Self::row::<S>(self.rows.row(place), self.rows.beyond(place), one);
                let mut lanes = [[0.0; MOST_LANES]; P];
                let mut sum = [0.0; P];
                for p in 0..P {
                    S::store(total[p], lanes[p].as_mut_ptr());
                    sum[p] = self.parts[p][place];
                }
                for lane in 0..S::LANES {
                    let mut other = [0.0; P];
                    for p in 0..P {
                        other[p] = lanes[p][lane];
                    }
                    sum = M::merged(sum, other);
                }
                for p in 0..P {
                    self.parts[p][place] = sum[p];
                }
            }
        }
    }
}

impl<'a, T: Widen + 'a, M: Measure<P>, R: Rows<'a, T>, const P: usize> RowByRow<'_, T, M, R, P> {
    /// Adds up the lanes of as many rows as a vector has: each row is a lane of `acc`.
    #[inline(always)]
    unsafe fn join_lanes<S: Simd>(acc: &mut [S::F; P], rows: &[[S::F; MOST_LANES]; P], one: S::F) {
        // SAFETY: the buffers hold the widest vector.
        unsafe {
            if P < SUM {
                for p in 0..P {
                    acc[p] = S::add(acc[p], S::sum_each(rows[p]));
                }
                return;
            }
            let mut turned = [[acc[0]; MOST_LANES]; P];
            for p in 0..P {
                turned[p] = S::transpose(rows[p]);
            }
            for lane in 0..S::LANES {
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
        let (mut most, mut room) = (0, usize::MAX);
        for row in first..first + S::LANES {
            let len = self.rows.row(row).len();
            most = most.max(len);
            room = room.min(len + self.rows.beyond(row));
        }
        (most <= SHORT && most.next_multiple_of(2 * S::LANES) <= room).then_some(most)
    }

    /// Adds as many rows as a vector has lanes, each to its lane of `acc`, none of more than
    /// `most` elements. What lies behind a row is made zero: where it is infinite or NaN, the
    /// sum is NaN, which is then not answered.
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
                let mut rows = [[one; MOST_LANES]; 2];
                for lane in 0..S::LANES {
                    let row = self.rows.row(first + lane);
                    let left = row.len().saturating_sub(at).min(group);
                    let mask = MASK.as_ptr().add(4 * MOST_LANES - left);
                    let [a, b] = T::widen::<S>(row.as_ptr().wrapping_add(at));
                    rows[0][lane] = S::mul(a, S::load(mask));
                    rows[1][lane] = S::mul(b, S::load(mask.add(S::LANES)));
                }
                for (half, rows) in rows.into_iter().enumerate() {
                    if at + half * S::LANES >= most {
                        break;
                    }
                    let columns = S::transpose(rows);
                    for lane in 0..S::LANES {
                        M::step::<S>(acc, columns[lane], one);
                    }
                }
            }
            at += group;
        }
    }

    /// The lanes of one row. Behind it there are at least `beyond` elements more.
    #[inline(always)]
    unsafe fn row<S: Simd>(row: &[T], beyond: usize, one: S::F) -> [S::F; P] {
        // SAFETY: as in `run`.
        unsafe {
            let mut acc = [[S::splat(0.0); P]; 2];
            let mut groups = row.chunks_exact(2 * S::LANES);
            for items in &mut groups {
                prefetch::ahead(items);
                let [a, b] = T::widen::<S>(items.as_ptr());
                M::step::<S>(&mut acc[0], a, one);
                M::step::<S>(&mut acc[1], b, one);
            }
            let rest = groups.remainder();
            let group = 2 * S::LANES;
            if !rest.is_empty() && (row.len() >= group || rest.len() + beyond >= group) {
                // A whole group of which some elements count: the others are made zeros. If
                // they are infinite or NaN, so is the sum, which is then not answered.
                let (from, mask) = if row.len() >= group {
                    (row.len() - group, 2 * MOST_LANES - (group - rest.len()))
                } else {
                    (0, 4 * MOST_LANES - rest.len())
                };
                let mask = MASK.as_ptr().add(mask);
                let [a, b] = T::widen::<S>(row.as_ptr().add(from));
                M::step::<S>(&mut acc[0], S::mul(a, S::load(mask)), one);
                M::step::<S>(&mut acc[1], S::mul(b, S::load(mask.add(S::LANES))), one);
            } else if !rest.is_empty() {
                let mut padded = [<T as bytemuck::Zeroable>::zeroed(); 2 * MOST_LANES];
                for (to, &x) in padded.iter_mut().zip(rest) {
                    *to = x;
                }
                let [a, b] = T::widen::<S>(padded.as_ptr());
                M::step::<S>(&mut acc[0], a, one);
                M::step::<S>(&mut acc[1], b, one);
            }
            let [mut total, others] = acc;
            M::join::<S>(&mut total, others, one);
            total
        }
    }
}
