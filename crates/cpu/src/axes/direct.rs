//! Products of f32 and f64 for many outputs, by plain multiplications.
//!
//! The answer of a product is defined by rounded logarithms (`core/op/float_prod.rs`), of
//! which the accumulators of [`products`](super::products) take 30 operations an element. Of
//! `n` factors it is within a bound of the true product, and so is what is multiplied here,
//! by one operation an element, or three. Where all numbers as near as both bounds say round
//! to the same one, that is the answer. Otherwise it is left to the logarithms: numbers too
//! near the middle between two. Zeros, infinities and NaNs are flags beside the products, and
//! certain.
//!
//! # The bounds
//!
//! In units of `n u`, relative to the product, with `u` of `2^-54` for f32 and of `2^-70` for
//! f64:
//!
//! | | f32 | f64 |
//! |---|---|---|
//! | rounded logarithms | 0.077 | 0.036 |
//! | moved to the nearest number of few digits | 0.218 | 0.109 |
//! | multiplications here | 2 | 0.009 |
//! | all | 2.3 | 0.154 |
//!
//! f32 are multiplied in f64, and each of `n - 1` products is rounded by `2^-53` of itself.
//! The error of a product of f64 is known exactly by a fused operation (without one by halves,
//! to `2^-77.9`: see [`error`]), and the sum of these errors is kept beside it: `low`, which
//! is at most `n 2^-53` of the product. Each of at most `n` steps rounds it or drops the
//! product of two such sums: by less than `4 n 2^-106`, together `n^2 2^-104`, which is below
//! `0.004 n u` as long as `n` is at most [`MOST_LONG`].

use super::fold::{
    Accumulators, Cells, Fold, Left, RaggedCells, RaggedFold, begin_with, of_one_fold,
};
use super::lengths::Lengths;
use super::short::{self, rows_of};
use crate::isa::Isa;
use crate::ragged::Ragged;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch, dispatch_accumulators};
use crate::table::Table;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ops::Range;
use warpfold_core::op::FloatElement;
use warpfold_core::{fpenv, prefetch};

/// Elements of which a NaN saves more than it costs to multiply the lanes of a row once more.
const GLANCE: usize = 1024;

/// Products side by side.
const LANES: usize = 16;
/// The most factors of f64 that the bound holds for.
const MOST_LONG: f64 = 67_108_864.0;

const SIGN: u64 = 1 << 63;
const FIELD: u64 = 0x7ff << 52;
/// The least normal number, and 1.
const STEP: u64 = 1 << 52;
const ONE: u64 = 1023 << 52;

/// A type whose products are found so.
pub(crate) trait Factor: FloatElement {
    /// Whether products have a second f64.
    const LONG: bool;
    /// Factors that a product in [1, 2) is multiplied by at a time: so many f32 leave it within f64,
    /// and of f64 it is [looked at](is_far) after each.
    const ROOM: usize;
    /// The most factors that are multiplied. Of so many most products that are neither zero nor
    /// infinite are not certain, but there are few of these: the factors would be near 1.
    const MANY: usize;
    /// How far products of so many factors may be off, relative to themselves.
    fn share(n: f64) -> f64;
    /// The product, from a significand in [1, 2) or so and an exponent, and whether it is
    /// certain.
    fn rounded(high: f64, low: f64, exponent: i64, share: f64) -> (Self, bool);
    /// Zero, infinity or NaN, the former two with the sign of `high`.
    fn special(x: f64, high: f64) -> Self;
}

impl Factor for f32 {
    const LONG: bool = false;
    // Six of the least are 2^-894.
    const ROOM: usize = 6;
    const MANY: usize = 1 << 28;

    #[inline(always)]
    fn share(n: f64) -> f64 {
        // Both ends are rounded, too.
        (3.0 * n + 8.0) * (f64::EPSILON / 4.0)
    }

    #[inline(always)]
    fn rounded(high: f64, _: f64, exponent: i64, share: f64) -> (f32, bool) {
        // Beyond that all is zero or infinite.
        let exponent = exponent.clamp(-1000, 1000);
        let product = high * power(exponent);
        let [one, other] = [product * (1.0 - share), product * (1.0 + share)].map(|x| x as f32);
        (one, one.to_bits() == other.to_bits())
    }

    #[inline(always)]
    fn special(x: f64, high: f64) -> f32 {
        if x.is_nan() { f32::NAN } else { x.copysign(high) as f32 }
    }
}

impl Factor for f64 {
    const LONG: bool = true;
    const ROOM: usize = MOST_ROWS;
    const MANY: usize = 1 << 26;

    #[inline(always)]
    fn share(n: f64) -> f64 {
        // 2^-72.5.
        const UNIT: f64 = f64::EPSILON / 1_482_910.0;
        if n <= MOST_LONG { n * UNIT } else { 1.0 }
    }

    #[inline(always)]
    fn rounded(high: f64, low: f64, exponent: i64, share: f64) -> (f64, bool) {
        let [one, other] = ends(high, low, share);
        // Subnormal products are rounded twice: the ends are taken apart by what the first rounding
        // may be off by. What is just below 1 doubles its exponent's share.
        let apart = if exponent < -1020 { f64::EPSILON } else { 0.0 };
        let (one, other) = (one - one.abs() * apart, other + other.abs() * apart);
        let near = (1023..=1026).contains(&exponent);
        // In two steps: far outside of the range it is zero or infinite.
        let exponent = exponent.clamp(-2000, 2000);
        let half = exponent >> 1;
        let scaled = |x: f64| x * power(half) * power(exponent - half);
        let (one, other) = (scaled(one), scaled(other));
        (one, !near & (one.to_bits() == other.to_bits()))
    }

    #[inline(always)]
    fn special(x: f64, high: f64) -> f64 {
        if x.is_nan() { f64::NAN } else { x.copysign(high) }
    }
}

/// What a product in two f64 rounds to at least and at most.
#[inline(always)]
fn ends(high: f64, low: f64, share: f64) -> [f64; 2] {
    let sum = high + low;
    let (low, off) = (low - (sum - high), sum.abs() * share);
    [sum + (low - off), sum + (low + off)]
}

/// `2^exponent`, a normal number.
#[inline(always)]
fn power(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Rows of factors at a time: the most that any type has [room](Factor::ROOM) for.
const MOST_ROWS: usize = 16;

/// What `product` is off by, the rounded product of two numbers whose exponents are far from
/// both ends; `fused` says whether there is an instruction for that.
#[inline(always)]
fn error(fused: bool, a: f64, b: f64, product: f64) -> f64 {
    if fused {
        return a.mul_add(b, -product);
    }
    // Halves of 26 and of 27 digits. Of numbers in [1, 2) the lower ones are below 2^-25 and
    // multiples of 2^-52. The first difference is a multiple of 2^-52 below 2^-22, and exact.
    // The next sum is below 2^-23.9 and a multiple of 2^-77: it is rounded by 2^-78 at most.
    // The one after it is below 2^-49, and exact; what is left is rounded by 2^-102.
    let half = |x: f64| f64::from_bits(x.to_bits() & !((1 << 27) - 1));
    let (ah, bh) = (half(a), half(b));
    let (al, bl) = (a - ah, b - bh);
    (((ah * bh - product) + ah * bl) + al * bh) + al * bl
}

/// Whether the magnitude of a product is below 2^-900 or above 2^900, in the upper bit. Of others no
/// product underflows, nor does its error, of which the last place is 2^-106 of it.
#[inline(always)]
fn is_far(magnitude: u64) -> u64 {
    const LEAST: u64 = (1023 - 900) << 52;
    const MOST: u64 = (1023 + 900) << 52;
    magnitude.wrapping_sub(LEAST) | MOST.wrapping_sub(magnitude)
}

/// Multiplies by rows of factors; whether a product was [far](is_far).
#[inline(always)]
fn multiplied<S: Simd, const N: usize>(
    [high, low]: &mut [[f64; N]; 2],
    rows: Range<usize>,
    row: impl Fn(usize) -> [f64; N],
) -> bool {
    let mut far = [0; N];
    for i in rows {
        multiply(S::FUSED, high, low, &row(i));
        for (far, x) in far.iter_mut().zip(&*high) {
            *far |= is_far(x.to_bits() & !SIGN);
        }
    }
    far.iter().fold(0, |any, far| any | far) >> 63 == 1
}

/// Products side by side: `(high + low) 2^exponent`.
#[derive(Clone, Copy)]
struct Abreast<const N: usize> {
    high: [f64; N],
    low: [f64; N],
    exponent: [u64; N],
    /// The upper bit says that a factor was zero.
    zero: [u64; N],
    /// That one was infinite or NaN.
    endless: [u64; N],
    /// That one, or a product of some, was NaN.
    nan: [u64; N],
}

impl<const N: usize> Abreast<N> {
    /// Products of nothing.
    const NEW: Self = Abreast {
        high: [1.0; N],
        low: [0.0; N],
        exponent: [0; N],
        zero: [0; N],
        endless: [0; N],
        nan: [0; N],
    };

    /// Multiplies settled lanes by rows of factors, at most [`Factor::ROOM`], and settles them.
    #[inline(always)]
    fn take<T: Factor, S: Simd>(&mut self, rows: usize, row: impl Fn(usize) -> [f64; N]) {
        if const { !T::LONG } {
            let mut high = self.high;
            for i in 0..rows {
                high = times(&high, &row(i));
            }
            self.high = high;
            return self.settle::<T>();
        }
        let mut products = [self.high, self.low];
        if !multiplied::<S, N>(&mut products, 0..rows, &row) {
            [self.high, self.low] = products;
            return self.settle::<T>();
        }
        let mut factors = [[1.0; N]; MOST_ROWS];
        for (i, factors) in factors.iter_mut().enumerate().take(rows) {
            *factors = row(i);
        }
        // A copy, as what a call may change does not stay in registers.
        let mut products = *self;
        let rows = &factors[..rows.min(MOST_ROWS)];
        // SAFETY: passed on from the caller.
        unsafe { S::call(Apart { products: &mut products, rows }) };
        *self = products;
        self.settle::<T>();
    }

    /// Brings the significands back to [1, 2).
    #[inline(always)]
    fn settle<T: Factor>(&mut self) {
        for i in 0..N {
            let bits = self.high[i].to_bits();
            let magnitude = bits & !SIGN;
            if const { T::LONG } {
                self.low[i] *= f64::from_bits(2 * ONE - (magnitude & FIELD));
            } else {
                // Nothing underflows, so that only zeros make one.
                self.zero[i] |= magnitude.wrapping_sub(1);
                self.endless[i] |= magnitude + STEP;
                self.nan[i] |= FIELD.wrapping_sub(magnitude);
            }
            self.exponent[i] = self.exponent[i].wrapping_add(magnitude >> 52).wrapping_sub(1023);
            self.high[i] = f64::from_bits(bits & !FIELD | ONE);
        }
    }

    /// Multiplies the first half of the settled lanes by the other one, until there is one.
    #[inline(always)]
    fn whole<T: Factor, S: Simd>(mut self) -> Abreast<1> {
        let mut half = N / 2;
        while half > 0 {
            for i in 0..half {
                let others = self.lane(half + i);
                let product = self.lane(i).times::<T, S>(others);
                self.put(i, product);
            }
            half /= 2;
        }
        self.lane(0)
    }

    #[inline(always)]
    fn lane(&self, i: usize) -> Abreast<1> {
        Abreast {
            high: [self.high[i]],
            low: [self.low[i]],
            exponent: [self.exponent[i]],
            zero: [self.zero[i]],
            endless: [self.endless[i]],
            nan: [self.nan[i]],
        }
    }

    #[inline(always)]
    fn put(&mut self, i: usize, one: Abreast<1>) {
        self.high[i] = one.high[0];
        self.low[i] = one.low[0];
        self.exponent[i] = one.exponent[0];
        self.zero[i] = one.zero[0];
        self.endless[i] = one.endless[0];
        self.nan[i] = one.nan[0];
    }

    /// What they are rounded to; the second number is not 0 where that is not certain.
    #[inline(always)]
    fn rounded<T: Factor>(&self, shares: &[f64; N], to: &mut [T; N]) -> [u64; N] {
        let mut doubts = [0; N];
        for i in 0..N {
            let is = |flag: u64| flag >> 63 == 1;
            let (zero, endless) = (is(self.zero[i]), is(self.endless[i]));
            let nan = is(self.nan[i]) | (zero & endless);
            let known = zero | endless | nan;
            // Exponents of zeros would make it subnormal, which takes long.
            let exponent = if known { 0 } else { self.exponent[i].cast_signed() };
            let high = self.high[i];
            let (product, sure) = T::rounded(high, self.low[i], exponent, shares[i]);
            let product = if zero { T::special(0.0, high) } else { product };
            let product = if endless { T::special(f64::INFINITY, high) } else { product };
            to[i] = if nan { T::special(f64::NAN, high) } else { product };
            doubts[i] = u64::from(!known & !sure);
        }
        doubts
    }
}

impl Abreast<1> {
    /// The product of two settled ones, settled.
    #[inline(always)]
    fn times<T: Factor, S: Simd>(mut self, others: Abreast<1>) -> Abreast<1> {
        let ([a], [b]) = (self.high, others.high);
        let product = a * b;
        if const { T::LONG } {
            self.low[0] = error(S::FUSED, a, b, product) + (self.low[0] * b + a * others.low[0]);
        }
        self.high[0] = product;
        self.exponent[0] = self.exponent[0].wrapping_add(others.exponent[0]);
        self.zero[0] |= others.zero[0];
        self.endless[0] |= others.endless[0];
        self.nan[0] |= others.nan[0];
        self.settle::<T>();
        self
    }
}

/// Multiplies products by rows of factors of which some are [far](is_far) from 1, by their
/// significands. In a function of its own: this is seldom, and large.
struct Apart<'a, const N: usize> {
    products: &'a mut Abreast<N>,
    rows: &'a [[f64; N]],
}

impl<const N: usize> Kernel for Apart<'_, N> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // 2^54, by which subnormals become normal.
        const LARGER: f64 = 18_014_398_509_481_984.0;
        // A copy, as what lies behind a reference does not stay in registers.
        let mut products = *self.products;
        for row in self.rows {
            let mut factors = *row;
            for (i, factor) in factors.iter_mut().enumerate() {
                let is_small = factor.to_bits() & !SIGN < STEP;
                let scaled = if is_small { *factor * LARGER } else { *factor };
                let less = 1023 + if is_small { 54 } else { 0 };
                let bits = scaled.to_bits();
                let magnitude = bits & !SIGN;
                // Only zeros leave their place downwards by one.
                products.zero[i] |= magnitude.wrapping_sub(1);
                products.endless[i] |= magnitude + STEP;
                products.nan[i] |= FIELD.wrapping_sub(magnitude);
                let exponent = (magnitude >> 52).wrapping_sub(less);
                products.exponent[i] = products.exponent[i].wrapping_add(exponent);
                *factor = f64::from_bits(bits & !FIELD | ONE);
            }
            multiply(S::FUSED, &mut products.high, &mut products.low, &factors);
        }
        *self.products = products;
    }
}

/// The products of lanes. New numbers for all of them: those that are written one by one do not stay in
/// registers.
#[inline(always)]
fn times<const N: usize>(one: &[f64; N], other: &[f64; N]) -> [f64; N] {
    let mut found = [1.0; N];
    for i in 0..N {
        found[i] = one[i] * other[i];
    }
    found
}

/// Multiplies products that have a second part.
#[inline(always)]
fn multiply<const N: usize>(fused: bool, high: &mut [f64; N], low: &mut [f64; N], by: &[f64; N]) {
    for i in 0..N {
        let product = high[i] * by[i];
        let rest = error(fused, high[i], by[i], product);
        low[i] = if fused { low[i].mul_add(by[i], rest) } else { low[i] * by[i] + rest };
        high[i] = product;
    }
}

/// Elements as f64.
#[inline(always)]
fn widened<T: Factor>(items: &[T; LANES]) -> [f64; LANES] {
    items.map(|x| x.widen().into())
}

/// Elements of a row, with ones behind them.
#[inline(always)]
fn padded<T: Factor>(items: &[T]) -> [T; LANES] {
    let mut all = [T::ONE; LANES];
    all[..items.len()].copy_from_slice(items);
    all
}

/// The product of a row.
#[inline(always)]
fn row<T: Factor, S: Simd>(items: &[T]) -> Abreast<1> {
    let mut lanes = Abreast::<LANES>::NEW;
    let (groups, rest) = items.as_chunks::<LANES>();
    for groups in groups.chunks(T::ROOM) {
        lanes.take::<T, S>(groups.len(), |i| {
            prefetch::ahead(&groups[i]);
            widened(&groups[i])
        });
    }
    if !rest.is_empty() {
        let last = widened(&padded(rest));
        lanes.take::<T, S>(1, |_| last);
    }
    lanes.whole::<T, S>()
}

/// The product of some elements, if it is certain.
pub(crate) fn product<T: Factor>(items: &[T], isa: Isa) -> Option<T> {
    if items.is_empty() || !fpenv::is_usual() {
        return None;
    }
    let (mut lanes, mut to) = ([Abreast::NEW], [T::ONE; LANES]);
    let rows = Rows::Table(Table::of(items, items.len()));
    dispatch(isa, RowByRow { rows, lanes: &mut lanes, place: 0 });
    let shares = [T::share(items.len() as f64); LANES];
    let [doubt, ..] = lanes[0].rounded(&shares, &mut to);
    (doubt == 0).then_some(to[0])
}

/// Products of elements of a type.
pub(super) struct Direct<T> {
    pub(super) isa: Isa,
    pub(super) item: PhantomData<T>,
}

impl<T: Factor> Fold for Direct<T> {
    fn item(&self) -> Layout {
        Layout::new::<T>()
    }

    fn has_neutral(&self) -> bool {
        true
    }

    fn is_quick(&self, elements: usize) -> bool {
        // Of f64 one product in 2^18 of one factor is not certain, which are more of more.
        elements <= if T::LONG { short::MOST_F64 } else { short::MOST }
    }

    fn cells(&self) -> Box<dyn Cells> {
        Box::new(Found::<T> { isa: self.isa, lanes: Vec::new(), item: PhantomData })
    }
}

impl<T: Factor> RaggedFold for Direct<T> {
    fn ragged(&self) -> Box<dyn RaggedCells> {
        Box::new(Found::<T> { isa: self.isa, lanes: Vec::new(), item: PhantomData })
    }
}

/// The products of some outputs, settled.
struct Found<T> {
    isa: Isa,
    /// Those of [`LANES`] outputs together.
    lanes: Vec<Abreast<LANES>>,
    item: PhantomData<T>,
}

impl<T: Factor> Accumulators for Found<T> {
    fn clear(&mut self, count: usize) {
        begin_with(&mut self.lanes, count.div_ceil(LANES), Abreast::NEW);
        // Lanes behind the last output wait for nothing.
        if let Some(last) = self.lanes.get_mut(count / LANES) {
            last.nan[count % LANES..].fill(SIGN);
        }
    }

    fn answer(&mut self, lengths: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>) {
        let to: &mut [T] = bytemuck::cast_slice_mut(to);
        dispatch_accumulators(self.isa, Answer { lanes: &self.lanes, lengths, to, missing });
    }
}

impl<T: Factor> Cells for Found<T> {
    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        // SAFETY: the caller vouches for the elements.
        let rows = Rows::Table(unsafe { table.of_elements() });
        dispatch_accumulators(self.isa, RowByRow::<T> { rows, lanes: &mut self.lanes, place });
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        // SAFETY: the caller vouches for the elements.
        let table = unsafe { table.of_elements::<T>() };
        dispatch_accumulators(self.isa, Columns { table, lanes: &mut self.lanes, place });
    }

    unsafe fn quick(&mut self, tables: [&[Table<'_, ()>]; 2], to: &mut [u8]) -> Option<Left> {
        let to: &mut [T] = bytemuck::cast_slice_mut(to);
        // SAFETY: passed on from the caller.
        let (rows, len) = unsafe { rows_of::<T>(tables[0], to.len()) }?;
        dispatch_accumulators(self.isa, Short { rows: &rows[..len], to })
    }

    fn least_panel(&self) -> usize {
        // Products are written and settled after every panel.
        48
    }

    fn neutral(&self, _: usize, to: &mut [u8]) {
        bytemuck::cast_slice_mut(to).fill(T::ONE);
    }

    fn glance(&self) -> Option<usize> {
        Some(GLANCE)
    }

    fn is_settled(&self) -> bool {
        // NaNs stay.
        self.lanes.iter().all(|lanes| lanes.nan.iter().fold(SIGN, |all, nan| all & nan) != 0)
    }

    fn merge(&mut self, others: &dyn Cells) {
        let others = of_one_fold::<Self>(others);
        for (lanes, others) in self.lanes.iter_mut().zip(&others.lanes) {
            dispatch_accumulators(self.isa, Merge::<T> { lanes, others, item: PhantomData });
        }
    }
}

impl<T: Factor> RaggedCells for Found<T> {
    unsafe fn take(&mut self, rows: Ragged<'_, ()>) {
        // SAFETY: the caller vouches for the elements.
        let rows = Rows::Ragged(unsafe { rows.of_elements() });
        dispatch_accumulators(self.isa, RowByRow::<T> { rows, lanes: &mut self.lanes, place: 0 });
    }
}

/// Multiplies products by those of other elements.
struct Merge<'a, T> {
    lanes: &'a mut Abreast<LANES>,
    others: &'a Abreast<LANES>,
    item: PhantomData<T>,
}

impl<T: Factor> Kernel for Merge<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for i in 0..LANES {
            let product = self.lanes.lane(i).times::<T, S>(self.others.lane(i));
            self.lanes.put(i, product);
        }
    }
}

/// Multiplies each output by a row.
struct RowByRow<'a, 'b, T> {
    rows: Rows<'a, T>,
    lanes: &'b mut [Abreast<LANES>],
    place: usize,
}

impl<T: Factor> Kernel for RowByRow<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for (at, i) in (self.place..).zip(0..self.rows.count()) {
            let (lanes, lane) = (&mut self.lanes[at / LANES], at % LANES);
            let product = row::<T, S>(self.rows.row(i)).times::<T, S>(lanes.lane(lane));
            lanes.put(lane, product);
        }
    }
}

/// Multiplies each output by a column.
struct Columns<'a, 'b, T> {
    table: Table<'a, T>,
    lanes: &'b mut [Abreast<LANES>],
    place: usize,
}

impl<T: Factor> Kernel for Columns<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Columns { table, lanes, place } = self;
        let mut column = 0;
        while column < table.columns() {
            // Whole lanes, but for the first ones and the last.
            let lane = (place + column) % LANES;
            let count = (LANES - lane).min(table.columns() - column);
            let lanes = &mut lanes[(place + column) / LANES];
            let mut products = *lanes;
            let bytes = size_of::<T>();
            let (ahead, step) = table.ahead(bytes * column, bytes * LANES);
            for first in (0..table.rows()).step_by(T::ROOM) {
                let rows = T::ROOM.min(table.rows() - first);
                let (mut from, mut stride) = (table.at(first, column), table.stride());
                // Rows of fewer columns are copied, so that all are read alike.
                let mut copy;
                if count < LANES {
                    copy = [[T::ONE; LANES]; MOST_ROWS];
                    for (i, copy) in copy.iter_mut().enumerate().take(rows) {
                        let items = &table.row(first + i)[column..column + count];
                        copy[lane..lane + count].copy_from_slice(items);
                    }
                    (from, stride) = (copy.as_ptr().cast(), (bytes * LANES).cast_signed());
                }
                products.take::<T, S>(rows, |i| {
                    let next = ahead.wrapping_offset((first + i).cast_signed() * step);
                    for line in (0..bytes * LANES).step_by(64) {
                        prefetch::near(next.wrapping_add(line));
                    }
                    let items = from.wrapping_byte_offset(i.cast_signed() * stride);
                    // SAFETY: so many elements of a row of the table, or of its copy.
                    widened(unsafe { &*items.cast::<[T; LANES]>() })
                });
            }
            *lanes = products;
            column += count;
        }
    }
}

/// Answers outputs.
struct Answer<'a, T> {
    lanes: &'a [Abreast<LANES>],
    lengths: Lengths<'a>,
    to: &'a mut [T],
    missing: &'a mut Vec<usize>,
}

impl<T: Factor> Kernel for Answer<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Answer { lanes, lengths, to, missing } = self;
        let mut shares = [1.0; LANES];
        for (group, to) in to.chunks_mut(LANES).enumerate() {
            let first = group * LANES;
            for (i, share) in shares[..to.len()].iter_mut().enumerate() {
                *share = T::share(lengths.at(first + i) as f64);
            }
            let mut products = [T::ONE; LANES];
            let doubts = lanes[group].rounded(&shares, &mut products);
            to.copy_from_slice(&products[..to.len()]);
            missing.extend((0..to.len()).filter(|&i| doubts[i] != 0).map(|i| first + i));
        }
    }
}

/// Answers outputs of a few elements, and returns whether all answers are certain.
struct Short<'a, T> {
    /// Each has an element for each output, which may be read.
    rows: &'a [*const T],
    to: &'a mut [T],
}

impl<T: Factor> Kernel for Short<'_, T> {
    type Out = Option<Left>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<Left> {
        let Short { rows, to } = self;
        let (outputs, mut left) = (to.len(), Left::new());
        let (last, nan) = (outputs.checked_sub(LANES)?, T::special(f64::NAN, 1.0));
        if let [row] = rows {
            for (i, to) in to.iter_mut().enumerate() {
                // SAFETY: as below.
                let x = unsafe { *row.add(i) };
                let wide: f64 = x.widen().into();
                *to = if wide.is_nan() { nan } else { x };
            }
            return Some(left);
        }
        let share = T::share(rows.len() as f64);
        for column in (0..outputs).step_by(LANES) {
            // The last group has some of the columns before it.
            let column = column.min(last);
            let row = |row: *const T| {
                // SAFETY: every row has an element for each of `to`.
                let items = unsafe { &*row.add(column).cast::<[T; LANES]>() };
                short::ask_ahead(items.as_ptr(), LANES);
                widened(items)
            };
            let to = to[column..].first_chunk_mut()?;
            // Of a few factors f64 have room for the product as it is: that of f32 is zero, infinite or NaN
            // where it has to be.
            let mut plain = [row(rows[0]), [0.0; LANES]];
            let is_plain = rows.len() <= T::ROOM && {
                if const { T::LONG } {
                    !multiplied::<S, LANES>(&mut plain, 1..rows.len(), |i| row(rows[i]))
                } else {
                    for &other in &rows[1..] {
                        plain[0] = times(&plain[0], &row(other));
                    }
                    true
                }
            };
            let doubts = if is_plain {
                let [high, low] = plain;
                let mut doubts = [0; LANES];
                for i in 0..LANES {
                    let (found, sure) = T::rounded(high[i], low[i], 0, share);
                    let is_nan = high[i].is_nan();
                    to[i] = if is_nan { nan } else { found };
                    doubts[i] = u64::from(!sure & !is_nan);
                }
                doubts
            } else {
                let mut products = Abreast::<LANES>::NEW;
                for rows in rows.chunks(T::ROOM) {
                    products.take::<T, S>(rows.len(), |i| row(rows[i]));
                }
                products.rounded(&[share; LANES], to)
            };
            if doubts.iter().fold(0, |all, doubt| all | doubt) != 0 {
                let doubtful = (0..LANES).filter(|&i| doubts[i] != 0).map(|i| column + i);
                short::leave(&mut left, doubtful, outputs)?;
            }
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_cover_what_is_rounded() {
        // The sums of the table above, which the shares are above.
        for n in [1.0, 2.0, 34.0, 1e3, 1e7] {
            assert!(<f64 as Factor>::share(n) > 0.154 * n * 2f64.powi(-70));
            assert!(<f64 as Factor>::share(n) < 0.18 * n * 2f64.powi(-70));
            assert!(<f32 as Factor>::share(n) > 2.3 * n * 2f64.powi(-54));
        }
        // Nothing is known of more.
        assert!(<f64 as Factor>::share(MOST_LONG + 1.0) >= 1.0);
    }

    #[test]
    fn errors_of_products_are_found_without_fused_operations() {
        let mut z = 1u64;
        let mut random = || {
            z = z.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from_bits((z ^ z >> 29) & (STEP - 1) | ONE)
        };
        for _ in 0..10_000 {
            let (a, b) = (random(), -random());
            let product = a * b;
            let exact = a.mul_add(b, -product);
            let off = error(false, a, b, product) - exact;
            assert!(off.abs() <= 2f64.powi(-78) * product.abs(), "{a} {b}");
        }
    }

    #[test]
    fn far_ends_are_zero_or_infinite_and_near_ones_in_doubt() {
        assert_eq!(f64::rounded(1.5, 0.0, 1e6 as i64, 0.0), (f64::INFINITY, true));
        assert_eq!(f64::rounded(-1.5, 0.0, -(1e6 as i64), 0.0), (-0.0, true));
        for exponent in [-1022, -1021, 1023, 1024, 1026] {
            assert!(!f64::rounded(1.5, 0.0, exponent, 0.0).1, "{exponent}");
        }
        // Subnormal products, and one in the middle between two of them.
        assert_eq!(f64::rounded(-1.5, 0.0, -1070, 1e-20), (-24.0 * f64::from_bits(1), true));
        assert_eq!(f64::rounded(1.5, 0.0, -1075, 1e-20), (f64::from_bits(1), true));
        assert_eq!(f64::rounded(1.5, 0.0, -1100, 1e-20), (0.0, true));
        assert!(!f64::rounded(1.5, 0.0, -1074, 1e-20).1);
        assert_eq!(f64::rounded(1.5, 0.0, -1020, 0.0), (1.5 * 2f64.powi(-1020), true));
        assert_eq!(f64::rounded(1.5, 0.0, 1022, 0.0), (1.5 * 2f64.powi(1022), true));
        assert_eq!(f32::rounded(-1.5, 0.0, -5000, 1e-9), (-0.0, true));
        assert_eq!(f32::rounded(1.5, 0.0, 5000, 1e-9), (f32::INFINITY, true));
        assert_eq!(f32::rounded(1.5, 0.0, -145, 1e-9), (f32::from_bits(24), true));
        // In the middle between two subnormals.
        assert!(!f32::rounded(1.5, 0.0, -149, 1e-9).1);
    }
}
