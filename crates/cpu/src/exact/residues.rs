//! Exact sums of floats whose magnitudes lie close together (RES): four operations for a sum, ten for a product of f64.
//!
//! Every sum starts at an anchor `M = 1.5 * 2^(k + 52)`. Adding a term `x` gives `t = A + x`, of which
//! `q = t - A` is what fitted, a multiple of `2^k`, and `x - q` is its residue, at most `2^(k - 1)`. All residues are
//! added to a second f64. Nothing is looked at in between: that no add rounds follows from
//! the magnitudes of the elements, of which the largest and the smallest are kept.
//!
//! *Exact.* Let all terms be below `2^T` and multiples of `2^u`, let a lane add `2^H` of them, and let
//! `k = T + H - 51`. Then `A` moves by at most `2^(T + H) = 2^(k + 51)`, half a binade, and stays in its
//! own; as `|x| <= |A|`, Fast2Sum says that `q` and `x - q` are exact. The residues add up to a multiple of `2^u`
//! of at most `2^(k - 1 + H)`: with `u = k + H - 54 = T + 2 H - 105` that is `2^53` units, and no add of residues
//! rounds. `H` is 7, so `u = T - 91`. Of products of f64 it is 6, and `u = T - 93`: they take most of a tile, and have the least room.
//!
//! An element that is not 0 and not below `2^e` is a multiple of `2^(e - P)`, where `P` is how many bits its type's
//! fraction has. So [elements](depth) may lie `91 - P` binades below `2^T`. Products of types of up to 32 bits are exact
//! in f64, and multiples of `2^(e + f - 2 P)`: their factors may lie `(91 - 2 P) / 2` binades below their own tops. A product
//! of f64 is `p + d`, where `p` is the rounded product and `d` its error. Of elements not below `2^e` and `2^f` and
//! below `2^X` and `2^Y`, `p` is a multiple of `2^(e + f - 52)` below `2^(X + Y)`, and `d` a multiple of
//! `2^(e + f - 104)` of at most `2^(X + Y - 54)`. Both are sums of this kind, with `T = X + Y` and with `T = X + Y - 53`,
//! if `e + f - 52 >= X + Y - 93` and `e + f - 104 >= X + Y - 53 - 93`: if `e >= X - 20` and `f >= Y - 20`. No element is below
//! its type's least positive number, of which all are multiples. [`Cut::below`] keeps all of this within f64's normal
//! range.
//!
//! *First sums.* Of types of up to 32 bits 32 elements may be added in f64 before, which takes one operation. Any sum of
//! 32 of them is a multiple of `2^(e - P)` below `2^(X + 5)`: it is exact if elements lie at most `48 - P` binades below
//! `2^X`. Then `T = X + 5`.
//!
//! *Tiles.* A lane's `2^H` elements make a tile. A tile whose elements do not lie together is left to others; the sums
//! of the rest go on: what an anchor moved by is an integer, and the sum of residues enters
//! a sum of the same kind, with `T = k + H` and one add for each of up to `2^6` tiles; its residues are again
//! multiples of `2^u` of at most `2^(k + H + 2 * 6 - 52)` in sum, `2^14` units.
//!
//! Source: warpfold's own.

use super::power_of_two as power;
use super::terms::{Terms, Widen};
use crate::simd::{Kernel, Simd};
use crate::slices::Slices;
use core::marker::PhantomData;
use core::ops::Range;
use warpfold_core::Element;
use warpfold_core::element::{Key, bf16, f16};
use warpfold_core::prefetch;

/// `H`, log2 of the elements of a lane in a tile.
const fn log_adds<T: Near>(products: bool) -> i32 {
    if products && T::SPLIT { 6 } else { LOG_ADDS }
}
/// The same of other terms.
const LOG_ADDS: i32 = 7;
/// log2 of the most tiles in a block.
const TILES: i32 = 6;
/// Vectors that are added in one turn of a loop.
const UNROLLED: usize = 4;
/// log2 of the elements of a first sum: one of each row of a tile.
const ROWS_BITS: i32 = LOG_ADDS - 2;
/// Lanes of the widest vector.
const LANES: usize = 8;

/// An integer times a power of two.
pub(crate) type Part = (i128, i32);

/// Elements whose magnitudes are seen.
pub(crate) trait Near: Widen {
    /// Bits of the fraction.
    const FRACTION: i32;
    /// The exponent of the least positive number.
    const LOWEST: i32;
    /// Whether products are rounded in f64, and their errors summed, too.
    const SPLIT: bool = false;
    /// The least and the greatest top that sums of elements, and of their products, have cuts for.
    const TOPS: [[i32; 2]; 2];
    /// `2 * LANES` elements at `p` as two vectors, which are seen.
    ///
    /// # Safety
    /// As for [`Widen::widen`].
    unsafe fn see<S: Simd>(seen: &mut Magnitudes<S>, p: *const Self) -> [S::F; 2];
}

impl Near for f64 {
    const FRACTION: i32 = 52;
    const LOWEST: i32 = -1074;
    const SPLIT: bool = true;
    // Anchors of sums are below 2^(1010 + H + 3), units not below 2^(-983 - 91). Anchors of products are below
    // 2^(2 * 500 + H + 3), units of their errors not below 2^(-2 * 440 - 146).
    const TOPS: [[i32; 2]; 2] = [[-983, 1010], [-440, 500]];
    #[inline(always)]
    unsafe fn see<S: Simd>(seen: &mut Magnitudes<S>, p: *const f64) -> [S::F; 2] {
        // SAFETY: passed on from the caller.
        unsafe {
            let [a, b] = f64::widen::<S>(p);
            seen.wide = S::magnitudes_of_two(seen.wide, a, b);
            [a, b]
        }
    }
}

impl Near for f16 {
    const FRACTION: i32 = 10;
    const LOWEST: i32 = -24;
    // All finite ones lie together, whatever their magnitudes. Headroom may be above them.
    const TOPS: [[i32; 2]; 2] = [[16, 17]; 2];
    #[inline(always)]
    unsafe fn see<S: Simd>(_: &mut Magnitudes<S>, p: *const f16) -> [S::F; 2] {
        // SAFETY: passed on from the caller.
        unsafe { f16::widen::<S>(p) }
    }
}

macro_rules! near_in_words {
    ($($t:ty, $fraction:literal, $lowest:literal, $load:ident;)*) => {$(
        impl Near for $t {
            const FRACTION: i32 = $fraction;
            const LOWEST: i32 = $lowest;
            // As far as normal f32 go. Headroom may be above them.
            const TOPS: [[i32; 2]; 2] = [[-126, 129]; 2];
            #[inline(always)]
            unsafe fn see<S: Simd>(seen: &mut Magnitudes<S>, p: *const $t) -> [S::F; 2] {
                // SAFETY: passed on from the caller.
                unsafe {
                    let words = S::$load(p.cast());
                    seen.see_words(words);
                    let (low, high) = S::widen(words);
                    [low, high]
                }
            }
        }
    )*};
}
near_in_words! {
    bf16, 7, -133, load_bf16;
    f32, 23, -149, wload;
}

/// How many binades below their top elements of the terms may lie, which are `first` added in first sums.
const fn depth<T: Near>(products: bool, first: bool) -> i32 {
    let (bits, h) = (T::FRACTION, log_adds::<T>(products));
    let own = if first { 53 - ROWS_BITS - bits } else { 105 - 2 * h - bits };
    // The errors of f64 are sums of their own.
    let factors = (105 - 2 * h - if T::SPLIT { bits } else { 2 * bits }) / 2;
    if products && factors < own { factors } else { own }
}

/// The anchor of a sum whose last bit weighs `2^unit`.
pub(super) const fn anchor(unit: i32) -> f64 {
    f64::from_bits((((unit + 52 + 1023) as u64) << 52) | (1 << 51))
}

/// Where the elements of one array lie: below `2^top`, and not below `2^least`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    top: i32,
    /// `None` if all elements are multiples of what the least one has to be a multiple of.
    least: Option<i32>,
}

impl Cut {
    /// For elements below `2^top`, if all sums lie within f64's range.
    fn below<T: Terms, const FIRST: bool>(top: i32) -> Option<Cut> {
        let [low, high] = T::Item::TOPS[usize::from(T::PRODUCTS)];
        // Zeros alone have a low top, and lie anywhere.
        let top = top.max(low);
        let least = top - const { depth::<T::Item>(T::PRODUCTS, FIRST) };
        let any = least <= T::Item::LOWEST + T::Item::FRACTION;
        (top <= high).then_some(Cut { top, least: (!any).then_some(least) })
    }
}

/// Whether elements lie where residues have room for their terms; `None` if residues have none below such tops.
pub(super) fn lying<T: Terms>(tops: [i32; 2]) -> Option<impl Fn(T::Item, T::Item) -> bool> {
    let range = |top: i32| {
        let Cut { top, least } = Cut::below::<T, false>(top)?;
        // A power of two that is a normal number.
        let power = |exponent: i32| {
            ((exponent - T::Item::LOWEST - T::Item::FRACTION + 1) as u64) << T::Item::FRACTION
        };
        let infinity = T::Item::key_range().1.to_bits64();
        Some((least.map_or(0, |least| power(least) - 1), power(top).min(infinity)))
    };
    let [first, second] = [range(tops[0])?, range(tops[1])?];
    let lies = |x: T::Item, (least, end): (u64, u64)| {
        let magnitude = x.without_sign().to_bits64();
        // Zeros lie everywhere: less one they are the greatest number.
        (magnitude.wrapping_sub(1) >= least) & (magnitude < end)
    };
    Some(move |x, y| lies(x, first) & (!T::PAIRED || lies(y, second)))
}

/// The exponents of a sum's units.
#[derive(Clone, Copy)]
struct Units {
    /// Of the anchor: `k`.
    sum: i32,
    /// Of the anchor of the tiles' residues.
    rests: i32,
    /// Of what is left: `u`.
    last: i32,
}

impl Units {
    /// Of terms below `2^top`, of which a lane adds `2^h` in a tile.
    const fn below(top: i32, h: i32) -> Units {
        let sum = top + h - 51;
        Units { sum, rests: sum + h + TILES - 51, last: sum + h - 54 }
    }
}

/// How a term is added: by which units, where those that multiply and add lie idle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The sum beside.
    Sum,
    /// The residue beside.
    Rest,
    /// Neither.
    Plain,
}

/// A sum of terms in one tile, and what its lanes' tiles have come to.
struct Sums<S: Simd> {
    anchor: S::F,
    sum: S::F,
    rest: S::F,
    units: Units,
    /// The bits of the sums of tiles, added.
    tiles: S::W,
    /// The sum of the tiles' residues.
    rests: [S::F; 2],
}

impl<S: Simd> Sums<S> {
    /// # Safety
    /// See [`Simd`], here and below.
    #[inline(always)]
    unsafe fn new(units: Units) -> Self {
        // SAFETY: passed on from the caller.
        unsafe {
            let [anchor, zero] = [S::splat(anchor(units.sum)), S::splat(0.0)];
            let rests = [S::splat(self::anchor(units.rests)), zero];
            Sums { anchor, sum: anchor, rest: zero, units, tiles: S::wsplat(0), rests }
        }
    }

    /// Adds a vector of terms; `one` is for [`Simd::add_beside`].
    #[inline(always)]
    unsafe fn add(&mut self, x: S::F, one: S::F, way: Way) {
        // SAFETY: passed on from the caller.
        unsafe {
            let t =
                if way == Way::Sum { S::add_beside(x, self.sum, one) } else { S::add(x, self.sum) };
            let q = S::sub(t, self.sum);
            self.sum = t;
            let r = if way == Way::Rest { S::mul_sub(x, one, q) } else { S::sub(x, q) };
            self.rest = S::add(self.rest, r);
        }
    }

    /// Whether nothing was infinite or NaN: residues are NaNs then.
    #[inline(always)]
    unsafe fn is_number(&self) -> bool {
        // SAFETY: passed on from the caller.
        unsafe { S::all_below(self.rest, f64::INFINITY) }
    }

    /// Ends a tile, and forgets it if it was not `certified`.
    #[inline(always)]
    unsafe fn end_tile(&mut self, certified: bool) {
        // SAFETY: passed on from the caller.
        unsafe {
            if certified {
                self.tiles = S::dadd_bits(self.tiles, self.sum);
                let t = S::add(self.rests[0], self.rest);
                let q = S::sub(t, self.rests[0]);
                self.rests = [t, S::add(self.rests[1], S::sub(self.rest, q))];
            }
            self.sum = self.anchor;
            self.rest = S::splat(0.0);
        }
    }

    /// The sum over all lanes and `tiles` certified tiles.
    #[inline(always)]
    unsafe fn finish(self, tiles: u32) -> Part {
        let mut sums = [0u32; 2 * LANES];
        let mut rests = [[0f64; LANES]; 2];
        // SAFETY: passed on from the caller; the buffers hold the widest vector.
        unsafe {
            S::wstore(self.tiles, sums.as_mut_ptr());
            S::store(self.rests[0], rests[0].as_mut_ptr());
            S::store(self.rests[1], rests[1].as_mut_ptr());
        }
        (total(bytemuck::must_cast(sums), rests, S::LANES, self.units, tiles), self.units.last)
    }
}

/// The sum of lanes in units of `2^u`.
#[inline(never)]
fn total(
    sums: [u64; LANES],
    rests: [[f64; LANES]; 2],
    lanes: usize,
    units: Units,
    tiles: u32,
) -> i128 {
    let Units { sum, rests: rest, last } = units;
    let base = anchor(sum).to_bits().wrapping_mul(u64::from(tiles));
    let rest_base = anchor(rest).to_bits();
    // The last unit may be below f64's normal range, its inverse above.
    let scale = [power(-last / 2), power(-last - -last / 2)];
    // Of each lane below 2^(51 + 6), 2^52 and 2^14 units.
    let mut totals = [0i64; 3];
    for lane in 0..lanes {
        totals[0] += sums[lane].wrapping_sub(base).cast_signed();
        totals[1] += rests[0][lane].to_bits().wrapping_sub(rest_base).cast_signed();
        totals[2] += (rests[1][lane] * scale[0] * scale[1]) as i64;
    }
    let [sums, rests, others] = totals.map(i128::from);
    (sums << (sum - last)) + (rests << (rest - last)) + others
}

/// What a block came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiled {
    /// The sum of the elements, if that was asked for.
    pub(super) sum: Part,
    /// The sums of the products and of their errors, likewise.
    pub(super) products: [Part; 2],
    /// What is not in the sums.
    pub(super) left_out: LeftOut,
}

/// The tiles of a block that are not in its sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeftOut {
    /// Elements of a tile.
    tile: usize,
    /// The tiles, a bit each.
    tiles: u64,
}

impl LeftOut {
    /// Whether there are none.
    pub(super) fn is_empty(self) -> bool {
        self.tiles == 0
    }

    /// Where these are in a block of `len` elements.
    pub(super) fn ranges(self, len: usize) -> impl Iterator<Item = Range<usize>> {
        let LeftOut { tile, tiles } = self;
        let left_out = (0..u64::BITS as usize).filter(move |i| tiles >> i & 1 == 1);
        left_out.map(move |i| i * tile..len.min((i + 1) * tile))
    }
}

/// The largest and the smallest magnitude of each lane.
pub(crate) struct Magnitudes<S: Simd> {
    /// Of f64, the least one first.
    wide: [S::F; 2],
    /// Twice the bits of others as f32. The least ones are less one: of zeros they are the greatest number.
    words: [S::W; 2],
}

impl<S: Simd> Magnitudes<S> {
    /// None seen.
    ///
    /// # Safety
    /// See [`Simd`], here and below.
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: passed on from the caller.
        unsafe {
            let wide = [S::splat(f64::INFINITY), S::splat(0.0)];
            Magnitudes { wide, words: [S::wsplat(u32::MAX), S::wsplat(0)] }
        }
    }

    #[inline(always)]
    unsafe fn see_words(&mut self, x: S::W) {
        // SAFETY: passed on from the caller.
        unsafe {
            let [least, most] = self.words;
            let doubled = S::wadd(x, x);
            self.words = [S::wmin(least, S::wsub(doubled, S::wsplat(1))), S::wmax(most, doubled)];
        }
    }

    /// Whether all elements that were seen since the last time lie within the cut, NaNs aside.
    #[inline(always)]
    unsafe fn take<T: Near>(&mut self, cut: Cut) -> bool {
        // SAFETY: passed on from the caller; the buffers hold the widest vector.
        unsafe {
            let holds = if size_of::<T>() == 8 {
                let least = cut.least.map_or(0, |least| power(least).to_bits() - 1);
                S::none_below(self.wide[0], f64::from_bits(least))
                    && S::all_below(self.wide[1], power(cut.top))
            } else {
                // Twice the bits of a power of two as f32; elements are below infinity.
                let bits = |exponent: i32| ((exponent + 127) as u32) << 24;
                let least = cut.least.map_or(0, |least| bits(least) - 1);
                let end = if cut.top > 127 { 0xff00_0000 } else { bits(cut.top) };
                let mut words = [[u32::MAX; 2 * LANES], [0; 2 * LANES]];
                S::wstore(self.words[0], words[0].as_mut_ptr());
                S::wstore(self.words[1], words[1].as_mut_ptr());
                words[0].iter().fold(true, |all, &l| all & (l >= least))
                    & words[1].iter().fold(true, |all, &m| all & (m < end))
            };
            *self = Magnitudes::new();
            holds
        }
    }
}

/// Sums terms, with `FIRST` in first sums.
pub(super) struct ResidueSum<'a, T: Terms, const FIRST: bool> {
    /// As many elements as `2^6` tiles have, or fewer.
    slices: Slices<'a, T::Item>,
    /// Where the elements of each array lie; the second is that of one array, too.
    cuts: [Cut; 2],
    terms: PhantomData<T>,
}

impl<'a, T: Terms, const FIRST: bool> ResidueSum<'a, T, FIRST> {
    /// Of elements below `2^top`, of each array.
    pub(super) fn below(slices: Slices<'a, T::Item>, tops: [i32; 2]) -> Option<Self> {
        let [first, second] = tops.map(Cut::below::<T, FIRST>);
        Some(ResidueSum { slices, cuts: [first?, second?], terms: PhantomData })
    }
}

/// The sums of each lane.
struct Lanes<S: Simd, T> {
    /// Of elements, which take turns: the adds of one wait for each other. Beside products it is the first one.
    sums: [Sums<S>; 2],
    products: Sums<S>,
    errors: Sums<S>,
    seen: [Magnitudes<S>; 2],
    one: S::F,
    terms: PhantomData<T>,
}

impl<S: Simd, T: Terms> Lanes<S, T> {
    /// Whether products have errors.
    const ERRORS: bool = T::PRODUCTS && T::Item::SPLIT;

    /// Measured on an AMD EPYC (Zen 4).
    const WAY: Way = match (Self::ERRORS, T::PAIRED, T::SUMS) {
        (true, false, true) => Way::Rest,
        (true, true, _) => Way::Plain,
        _ => Way::Sum,
    };

    /// # Safety
    /// See [`Simd`], here and below.
    #[inline(always)]
    unsafe fn new<const FIRST: bool>(cuts: [Cut; 2]) -> Self {
        let top = cuts[0].top + cuts[usize::from(T::PAIRED)].top;
        let below = |top| Units::below(top, const { log_adds::<T::Item>(T::PRODUCTS) });
        let units = below(cuts[0].top + if FIRST { ROWS_BITS } else { 0 });
        // SAFETY: passed on from the caller.
        unsafe {
            Lanes {
                sums: [Sums::new(units), Sums::new(units)],
                products: Sums::new(below(if T::PRODUCTS { top } else { 0 })),
                errors: Sums::new(below(if T::PRODUCTS { top - 53 } else { 0 })),
                seen: [Magnitudes::new(), Magnitudes::new()],
                one: S::splat(core::hint::black_box(1.0)),
                terms: PhantomData,
            }
        }
    }

    /// Adds two vectors of terms, the elements to `first` if there is one.
    #[inline(always)]
    unsafe fn add_pair(
        &mut self,
        first: Option<&mut [S::F]>,
        p: *const T::Item,
        q: *const T::Item,
    ) {
        // SAFETY: the caller guarantees two vectors at `p`, and at `q` if terms are paired.
        unsafe {
            let xs = T::Item::see::<S>(&mut self.seen[0], p);
            let ys = if T::PAIRED { T::Item::see::<S>(&mut self.seen[1], q) } else { xs };
            if T::SUMS {
                let [a, b] = if T::ABSOLUTE { [S::abs(xs[0]), S::abs(xs[1])] } else { xs };
                if let Some(first) = first {
                    first[0] = S::add(first[0], a);
                    first[1] = S::add(first[1], b);
                } else {
                    self.sums[0].add(a, self.one, Self::WAY);
                    self.sums[usize::from(!T::PRODUCTS)].add(b, self.one, Self::WAY);
                }
            }
            if T::PRODUCTS {
                for (x, y) in xs.into_iter().zip(ys) {
                    let product = S::mul(x, y);
                    self.products.add(product, self.one, Self::WAY);
                    if Self::ERRORS {
                        self.errors.add(S::mul_sub(x, y, product), self.one, Self::WAY);
                    }
                }
            }
        }
    }

    /// Adds a row.
    #[inline(always)]
    unsafe fn add_row<const FIRST: bool>(
        &mut self,
        first: &mut [S::F; UNROLLED],
        p: *const T::Item,
        q: *const T::Item,
    ) {
        // SAFETY: the caller guarantees rows.
        unsafe {
            for v in (0..UNROLLED).step_by(2) {
                let (p, at) = (p.add(v * S::LANES), if T::PAIRED { v * S::LANES } else { 0 });
                self.add_pair(FIRST.then_some(&mut first[v..v + 2]), p, q.add(at));
            }
        }
    }

    /// Ends a tile; says whether it is in the sums.
    #[inline(always)]
    unsafe fn end_tile(&mut self, cuts: [Cut; 2]) -> bool {
        // SAFETY: passed on from the caller.
        unsafe {
            // A NaN has no magnitude, but its residue is one.
            let [one, two] = [&self.sums[0], &self.sums[1]];
            let numbers = self.products.is_number() & one.is_number() & two.is_number();
            let lie = self.seen[0].take::<T::Item>(cuts[0]);
            let certified = numbers & lie & (!T::PAIRED || self.seen[1].take::<T::Item>(cuts[1]));
            if T::SUMS {
                self.sums[0].end_tile(certified);
                self.sums[1].end_tile(certified);
            }
            if T::PRODUCTS {
                self.products.end_tile(certified);
                if Self::ERRORS {
                    self.errors.end_tile(certified);
                }
            }
            certified
        }
    }
}

impl<T: Terms, const FIRST: bool> Kernel for ResidueSum<'_, T, FIRST> {
    /// The sums, unless more than a quarter of the tiles failed.
    type Out = Option<Tiled>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<Tiled> {
        let Self { slices, cuts, .. } = self;
        let row = UNROLLED * S::LANES;
        let tile = S::LANES << const { log_adds::<T::Item>(T::PRODUCTS) };
        let tiles = slices.len().div_ceil(tile);
        if tiles > 1 << TILES {
            return None;
        }
        let mut failed = 0u64;
        // SAFETY: only whole rows are read from the slices, which are equally long, and the
        // last row from padded copies: zeros lie in every cut and add nothing.
        unsafe {
            let mut lanes = Lanes::<S, T>::new::<FIRST>(cuts);
            for (i, part) in slices.chunks(tile).enumerate() {
                let mut first = [S::splat(0.0); UNROLLED];
                let mut rows = part.items().chunks_exact(row);
                let mut other_rows = part.others().chunks_exact(row);
                for (items, others) in (&mut rows).zip(&mut other_rows) {
                    prefetch::ahead(items);
                    if T::PAIRED {
                        prefetch::ahead(others);
                    }
                    lanes.add_row::<FIRST>(&mut first, items.as_ptr(), others.as_ptr());
                }
                let rest = [rows.remainder(), other_rows.remainder()];
                if !rest[0].is_empty() {
                    let zero = <T::Item as bytemuck::Zeroable>::zeroed();
                    let mut padded = [[zero; UNROLLED * LANES]; 2];
                    for (padded, rest) in padded.iter_mut().zip(rest) {
                        padded[..rest.len()].copy_from_slice(rest);
                    }
                    let [items, others] = &padded;
                    lanes.add_row::<FIRST>(&mut first, items.as_ptr(), others.as_ptr());
                }
                if FIRST {
                    for sum in first {
                        lanes.sums[0].add(sum, lanes.one, Lanes::<S, T>::WAY);
                    }
                }
                failed |= u64::from(!lanes.end_tile(cuts)) << i;
            }
            let failures = failed.count_ones();
            if 4 * failures as usize > tiles {
                return None;
            }
            let certified = tiles as u32 - failures;
            let none = (0, 0);
            let [one, two] = lanes.sums;
            Some(Tiled {
                sum: if T::SUMS {
                    let (sum, unit) = one.finish(certified);
                    (sum + two.finish(certified).0, unit)
                } else {
                    none
                },
                products: [
                    if T::PRODUCTS { lanes.products.finish(certified) } else { none },
                    if Lanes::<S, T>::ERRORS { lanes.errors.finish(certified) } else { none },
                ],
                left_out: LeftOut { tile, tiles: failed },
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Summable;
    use super::super::terms::{Elements, Moments, Product};
    use super::*;
    use crate::isa::Isa;
    use crate::simd::dispatch;
    use warpfold_core::exact::Superacc;
    use warpfold_core::exact::format::F64Dot;

    /// A sum that is written down as parts, and one term after the other of what is left out.
    fn check_sum<T: Summable>(
        parts: &[Part],
        left_out: LeftOut,
        slices: Slices<'_, T::Item>,
        note: &str,
    ) {
        let mut found = Superacc::<F64Dot>::new();
        for &(value, exponent) in parts {
            found.deposit_wide(value, exponent);
        }
        let mut expected = Superacc::<F64Dot>::new();
        for (&x, &y) in slices.items().iter().zip(slices.others()) {
            T::absorb_one(&mut expected, x, y);
        }
        found.count = slices.len() as i64;
        for i in left_out.ranges(slices.len()).flatten() {
            T::absorb_one(&mut found, slices.items()[i], slices.others()[i]);
            found.count -= 1;
        }
        found.canonicalise();
        expected.canonicalise();
        assert!(found == expected, "{note}, {}, {}", T::Item::DTYPE, slices.len());
    }

    /// Every kind of sum by tiles on every instruction set, and what they leave out element by element,
    /// against element by element; says how many products were left out.
    fn check<T: Near>(xs: &[T], ys: &[T], tops: [i32; 2], note: &str) -> Vec<Option<usize>>
    where
        Elements<T, false>: Summable<Item = T>,
        Elements<T, true>: Summable<Item = T>,
        Product<T, false>: Summable<Item = T>,
        Product<T, true>: Summable<Item = T>,
    {
        let one = Slices::one(xs);
        let pair = Slices::pair(xs, ys).unwrap();
        let own = [tops[0]; 2];
        let mut left_out = vec![];
        for isa in Isa::available().filter(|isa| isa.has_fma() || !T::SPLIT) {
            let note = format!("{note}, {isa}");
            macro_rules! sum {
                ($terms:ty, $first:literal, $slices:expr, $tops:expr) => {{
                    let sum = ResidueSum::<$terms, $first>::below($slices, $tops);
                    sum.and_then(|sum| dispatch(isa, sum))
                }};
            }
            if let Some(tiled) = sum!(Elements<T, false>, false, one, own) {
                check_sum::<Elements<T, false>>(&[tiled.sum], tiled.left_out, one, &note);
            }
            if let Some(tiled) = sum!(Elements<T, true>, false, one, own) {
                check_sum::<Elements<T, true>>(&[tiled.sum], tiled.left_out, one, &note);
            }
            if let Some(tiled) = sum!(Product<T, false>, false, one, own) {
                check_sum::<Product<T, false>>(&tiled.products, tiled.left_out, one, &note);
            }
            let both = [sum!(Moments<T>, false, one, own)];
            let firsts = if T::SPLIT {
                [None, None]
            } else {
                [sum!(Elements<T, false>, true, one, own), sum!(Moments<T>, true, one, own)]
            };
            for tiled in both.into_iter().chain(firsts).flatten() {
                check_sum::<Elements<T, false>>(&[tiled.sum], tiled.left_out, one, &note);
                if tiled.products != [(0, 0); 2] {
                    check_sum::<Product<T, false>>(&tiled.products, tiled.left_out, one, &note);
                }
            }
            let paired = sum!(Product<T, true>, false, pair, tops);
            if let Some(tiled) = &paired {
                check_sum::<Product<T, true>>(&tiled.products, tiled.left_out, pair, &note);
            }
            left_out.push(paired.map(|t| t.left_out.ranges(xs.len()).map(|r| r.len()).sum()));
        }
        left_out
    }

    /// The number below `2^top` with all bits, the least that lies within the cut of products, and
    /// its neighbour with an odd last bit; of sums, the same.
    fn ends<T: Near>(top: i32, products: bool, first: bool) -> [T; 3] {
        let bits =
            |exponent: i32| ((exponent - T::LOWEST - T::FRACTION + 1).max(0) as u64) << T::FRACTION;
        let least = bits(top - depth::<T>(products, first)).max(1);
        [bits(top) - 1, least, least + 1].map(T::from_bits)
    }

    const LENGTHS: [usize; 9] = [0, 1, 15, 16, 17, 511, 513, 4096, 8192];

    /// Elements at both ends and between them, all of one sign so that sums move as far as they can, and of both.
    fn numbers_at_both_ends<T: Near>(tops: &[[i32; 2]])
    where
        Elements<T, false>: Summable<Item = T>,
        Elements<T, true>: Summable<Item = T>,
        Product<T, false>: Summable<Item = T>,
        Product<T, true>: Summable<Item = T>,
    {
        let sign = 1u64 << (8 * size_of::<T>() - 1);
        let signed =
            |x: T, negative: bool| T::from_bits(x.bits() ^ if negative { sign } else { 0 });
        for &tops in tops {
            for (products, first) in [(true, false), (false, false), (false, true)] {
                if first && T::SPLIT {
                    continue;
                }
                let [xs, ys] = tops.map(|top| ends::<T>(top, products, first));
                for n in LENGTHS {
                    for x in xs {
                        for y in ys {
                            for negative in [false, true] {
                                let ys = vec![signed(y, negative); n];
                                let found = check(&vec![x; n], &ys, tops, "ends");
                                let all = found.iter().all(|&left| left == Some(0));
                                assert!(!products || all, "{x:?} {y:?} {found:?}");
                            }
                        }
                    }
                    // What is odd comes last, to sums that are as large as they may be.
                    let [xs, ys] = [(xs, true), (ys, false)].map(|([most, _, odd], mixed)| {
                        let one = |i| if mixed && i % 256 >= 248 { odd } else { most };
                        (0..n).map(one).collect::<Vec<_>>()
                    });
                    let found = check(&xs, &ys, tops, "odd ones last");
                    assert!(!products || found.iter().all(|&left| left == Some(0)), "{n}");
                    let [xs, ys] = tops.map(|top| ends::<T>(top, products, first));
                    let mut random = fastrand::Rng::with_seed(n as u64);
                    let mut draw = |ends: [T; 3]| -> Vec<T> {
                        let mut number = || match random.u32(..8) {
                            0 => T::from_bits(0),
                            i @ 1..4 => ends[i as usize - 1],
                            _ => T::from_bits(random.u64(ends[1].bits()..=ends[0].bits())),
                        };
                        (0..n).map(|i| signed(number(), i % 3 == 0)).collect()
                    };
                    let [xs, ys] = [draw(xs), draw(ys)];
                    let found = check(&xs, &ys, tops, "between");
                    assert!(!products || found.iter().all(|&left| left == Some(0)), "{n}");
                }
            }
        }
    }

    #[test]
    fn numbers_at_both_ends_of_the_cut_are_exact() {
        numbers_at_both_ends::<f64>(&[[0, 0], [1, 40], [-440, -440], [500, 500], [500, -440]]);
        numbers_at_both_ends::<f32>(&[[0, 0], [1, 40], [-126, -100], [128, 128], [-110, 5]]);
        numbers_at_both_ends::<bf16>(&[[0, 0], [-126, 128]]);
        numbers_at_both_ends::<f16>(&[[16, 16], [-10, 16]]);
    }

    #[test]
    fn sums_of_f64_go_further_than_their_products() {
        for top in [-983, -900, 1000, 1010] {
            for x in ends::<f64>(top, false, false) {
                for n in LENGTHS {
                    let xs = vec![x; n];
                    for isa in Isa::available() {
                        let sum = ResidueSum::<Elements<f64, false>, false>::below;
                        let tiled =
                            dispatch(isa, sum(Slices::one(&xs), [top; 2]).unwrap()).unwrap();
                        assert!(tiled.left_out.is_empty(), "{x:e}");
                        check_sum::<Elements<f64, false>>(
                            &[tiled.sum],
                            tiled.left_out,
                            Slices::one(&xs),
                            "far",
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn errors_of_one_sign_stay_in_their_binade() {
        // Factors whose product is rounded by almost half of its last bit, up or down.
        let mut random = fastrand::Rng::with_seed(5);
        let mut factor = || f64::from_bits(power(2).to_bits() - 1 - random.u64(..1 << 40));
        let pairs: Vec<_> = (0..200).map(|_| [factor(), factor()]).collect();
        let error = |&[x, y]: &[f64; 2]| x.mul_add(y, -(x * y));
        let by_error = |a: &&[f64; 2], b: &&[f64; 2]| error(a).total_cmp(&error(b));
        let [most, least] = [pairs.iter().max_by(by_error), pairs.iter().min_by(by_error)];
        for pair in [most.unwrap(), least.unwrap()] {
            assert!(error(pair).abs() > 0.9 * power(4 - 54), "{pair:?}");
            let [xs, ys] = pair.map(|x| vec![x; 8192]);
            let found = check(&xs, &ys, [2, 2], "errors");
            assert!(found.iter().all(|&left| left == Some(0)));
        }
    }

    /// One element that lies elsewhere, which [`lying`] knows, too.
    fn one_other<T: Near>(others: &[T], of: impl Fn(f64) -> T)
    where
        Elements<T, false>: Summable<Item = T>,
        Elements<T, true>: Summable<Item = T>,
        Product<T, false>: Summable<Item = T>,
        Product<T, true>: Summable<Item = T>,
    {
        let lies = lying::<Product<T, true>>([2, 2]).unwrap();
        assert!(ends::<T>(2, true, false).into_iter().all(|x| lies(x, x)));
        for &x in others {
            for place in [0, 1000, 8191] {
                let mut xs = vec![of(0.75); 8192];
                xs[place] = x;
                let ys = vec![of(1.5); 8192];
                for (xs, ys) in [(&xs, &ys), (&ys, &xs)] {
                    assert!((0..8192).all(|i| lies(xs[i], ys[i]) == (i != place)), "{x:?}");
                    let found = check(xs, ys, [2, 2], "one other");
                    assert!(found.iter().all(|n| n.is_some_and(|n| n > 0)), "{x:?} at {place}");
                }
            }
        }
        // More than a quarter of the tiles.
        let xs: Vec<T> =
            (0..8192).map(|i| if i % 128 == 5 { others[0] } else { of(0.5) }).collect();
        assert!(check(&xs, &xs, [2, 2], "many others").iter().all(Option::is_none));
    }

    #[test]
    fn a_tile_with_anything_else_is_left_out() {
        let [most, least, _] = ends::<f64>(2, true, false);
        let others = [most.next_up(), least.next_down(), 1e300, 5e-324, f64::INFINITY, f64::NAN];
        one_other(&others.map(|x| [x, -x]).concat(), |x| x);
        let [most, least, _] = ends::<f32>(2, true, false);
        let others = [most.next_up(), least.next_down(), 1e30, 1e-45, f32::INFINITY, f32::NAN];
        one_other(&others.map(|x| [x, -x]).concat(), |x| x as f32);
        one_other(&[f64::INFINITY, -f64::NAN].map(f16::from_f64), f16::from_f64);
        one_other(&[-4.0, 1e-30, f64::NAN].map(bf16::from_f64), bf16::from_f64);
    }

    #[test]
    fn tops_out_of_range_have_no_cut() {
        assert!(Cut::below::<Product<f64, true>, false>(501).is_none());
        assert!(Cut::below::<Elements<f64, true>, false>(1011).is_none());
        // Zeros lie in every cut; what the largest element shows may be as low as this.
        let zeros = vec![0.0; 5000];
        let found = check(&zeros, &zeros, [-1074, -1074], "zeros");
        assert!(found.iter().all(|&left| left == Some(0)));
        let tiny = vec![5e-324; 5000];
        assert!(check(&tiny, &tiny, [-1074, -1074], "subnormals").iter().all(Option::is_none));
    }
}
