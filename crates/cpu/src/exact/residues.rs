//! Sums, and sums of the products, of f64 whose magnitudes lie close together (RES): four operations
//! for a sum, ten for a product.
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
//! rounds.
//!
//! An element that is not 0 and not below `2^e` is a multiple of `2^(e - 52)`. A product `p + d`, where `p` is
//! the rounded product and `d` its error, of elements not below `2^e` and `2^f` and below `2^X` and `2^Y`, has a
//! `p` that is a multiple of `2^(e + f - 52)` below `2^(X + Y)`, and a `d` that is a multiple of
//! `2^(e + f - 104)` of at most `2^(X + Y - 54)`. Both are sums of this kind, with `T = X + Y` and with `T = X + Y - 53`,
//! if `e + f - 52 >= X + Y + 2 H - 105` and `e + f - 104 >= X + Y - 53 + 2 H - 105`:
//! with `H = 7`, if `e >= X - 19` and `f >= Y - 19` ([`DEPTH`]). That is more than what the sum of the elements
//! themselves needs. [`Cut::below`] keeps all of this within f64's normal range.
//!
//! *Tiles.* A lane's `2^H` adds make a tile. A tile whose elements do not lie together is left to others; the sums
//! of the rest go on: what an anchor moved by is an integer, and the sum of residues enters
//! a sum of the same kind, with `T = k + H` and one add for each of up to `2^6` tiles; its residues are again
//! multiples of `2^u` of at most `2^(k + H + 2 * 6 - 52)` in sum, `2^14` units.
//!
//! Source: warpfold's own.

use super::fixed::Part;
use super::power_of_two as power;
use crate::simd::{Kernel, Simd};
use crate::slices::Slices;
use core::ops::Range;
use warpfold_core::prefetch;

/// log2 of the adds of a lane in a tile.
const H: i32 = 7;
/// log2 of the most tiles in a block.
const TILES: i32 = 6;
/// Binades below the top in which elements may lie.
const DEPTH: i32 = 19;
/// Vectors that are added in one turn of a loop.
const UNROLLED: usize = 4;
/// Lanes of the widest vector.
const LANES: usize = 8;

/// The bits of the anchor of a sum whose last bit weighs `2^unit`.
const fn anchor(unit: i32) -> f64 {
    f64::from_bits((((unit + 52 + 1023) as u64) << 52) | (1 << 51))
}

/// Where the elements of one array lie: below `2^top`, and not below `2^(top - DEPTH)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    top: i32,
}

impl Cut {
    /// For elements below `2^top`, if all sums of their products lie within f64's range.
    pub(super) fn below(top: i32) -> Option<Cut> {
        // Anchors of products are below 2^(2 * 500 + 2 H + 3), units of their errors not below
        // 2^(-2 * 440 - 144). Zeros alone have a low top, and lie anywhere.
        (top <= 500).then_some(Cut { top: top.max(-440) })
    }

    /// What the smallest element's bits, less one, are at least.
    fn least(self) -> f64 {
        f64::from_bits(power(self.top - DEPTH).to_bits() - 1)
    }
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
    /// Of terms below `2^top`.
    const fn below(top: i32) -> Units {
        let sum = top + H - 51;
        Units { sum, rests: sum + H + TILES - 51, last: sum + H - 54 }
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
    let mut total = 0;
    for lane in 0..lanes {
        // Below 2^(51 + 6), 2^52 and 2^14 units.
        let moved = |bits: u64, base: u64| i128::from(bits.wrapping_sub(base).cast_signed());
        total += moved(sums[lane], base) << (sum - last);
        total += moved(rests[0][lane].to_bits(), rest_base) << (rest - last);
        // The last unit may be below f64's normal range, its inverse above.
        total += i128::from((rests[1][lane] * power(-last / 2) * power(-last - -last / 2)) as i64);
    }
    total
}

/// What a block came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiled {
    /// The sum of the elements, if that was asked for.
    pub(super) sum: Part,
    /// The sums of the rounded products and of their errors.
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
    /// Where these are in a block of `len` elements.
    pub(super) fn ranges(self, len: usize) -> impl Iterator<Item = Range<usize>> {
        let LeftOut { tile, tiles } = self;
        let left_out = (0..u64::BITS as usize).filter(move |i| tiles >> i & 1 == 1);
        left_out.map(move |i| i * tile..len.min((i + 1) * tile))
    }
}

/// Sums the products of two arrays, or with `PAIRED` false the squares of one; with `WITH_SUM` also the
/// elements of the first.
pub(super) struct ResidueSum<'a, const PAIRED: bool, const WITH_SUM: bool> {
    /// As many elements as `2^6` tiles have, or fewer.
    pub(super) slices: Slices<'a, f64>,
    /// Where the elements of each array lie; the second is that of one array, too.
    pub(super) cuts: [Cut; 2],
}

/// The largest and the smallest magnitude of each lane.
struct Magnitudes<S: Simd> {
    least: S::F,
    most: S::F,
}

impl<S: Simd> Magnitudes<S> {
    /// None seen.
    ///
    /// # Safety
    /// See [`Simd`], here and below.
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: passed on from the caller.
        unsafe { Magnitudes { least: S::splat(f64::INFINITY), most: S::splat(0.0) } }
    }

    #[inline(always)]
    unsafe fn see(&mut self, x: S::F) {
        // SAFETY: passed on from the caller.
        unsafe { [self.least, self.most] = S::magnitudes([self.least, self.most], x) }
    }

    /// Whether all that was seen since the last time lies within the cut, NaNs aside.
    #[inline(always)]
    unsafe fn take(&mut self, cut: Cut) -> bool {
        // SAFETY: passed on from the caller.
        unsafe {
            let holds =
                S::none_below(self.least, cut.least()) && S::all_below(self.most, power(cut.top));
            *self = Magnitudes::new();
            holds
        }
    }
}

/// The sums of each lane.
struct Lanes<S: Simd, const PAIRED: bool, const WITH_SUM: bool> {
    sum: Sums<S>,
    products: Sums<S>,
    errors: Sums<S>,
    seen: [Magnitudes<S>; 2],
    one: S::F,
}

impl<S: Simd, const PAIRED: bool, const WITH_SUM: bool> Lanes<S, PAIRED, WITH_SUM> {
    /// Measured on an AMD EPYC (Zen 4).
    const WAY: Way = match (PAIRED, WITH_SUM) {
        (true, _) => Way::Plain,
        (false, true) => Way::Rest,
        (false, false) => Way::Sum,
    };

    /// # Safety
    /// See [`Simd`], here and below.
    #[inline(always)]
    unsafe fn new(cuts: [Cut; 2]) -> Self {
        let top = cuts[0].top + cuts[usize::from(PAIRED)].top;
        // SAFETY: passed on from the caller.
        unsafe {
            Lanes {
                sum: Sums::new(Units::below(cuts[0].top)),
                products: Sums::new(Units::below(top)),
                errors: Sums::new(Units::below(top - 53)),
                seen: [Magnitudes::new(), Magnitudes::new()],
                one: S::splat(core::hint::black_box(1.0)),
            }
        }
    }

    /// Adds a row's products.
    #[inline(always)]
    unsafe fn add_row(&mut self, p: *const f64, q: *const f64) {
        // SAFETY: the caller guarantees rows.
        unsafe {
            for v in 0..UNROLLED {
                let x = S::load(p.add(v * S::LANES));
                let y = if PAIRED { S::load(q.add(v * S::LANES)) } else { x };
                if WITH_SUM {
                    self.sum.add(x, self.one, Self::WAY);
                }
                let product = S::mul(x, y);
                self.products.add(product, self.one, Self::WAY);
                self.errors.add(S::mul_sub(x, y, product), self.one, Self::WAY);
                self.seen[0].see(x);
                if PAIRED {
                    self.seen[1].see(y);
                }
            }
        }
    }

    /// Ends a tile; says whether it is in the sums.
    #[inline(always)]
    unsafe fn end_tile(&mut self, cuts: [Cut; 2]) -> bool {
        // SAFETY: passed on from the caller.
        unsafe {
            // A NaN has no magnitude, but its residue is one.
            let numbers = S::all_below(self.products.rest, f64::INFINITY);
            let certified = self.seen[0].take(cuts[0]) & self.seen[1].take(cuts[1]) & numbers;
            if WITH_SUM {
                self.sum.end_tile(certified);
            }
            self.products.end_tile(certified);
            self.errors.end_tile(certified);
            certified
        }
    }
}

impl<const PAIRED: bool, const WITH_SUM: bool> Kernel for ResidueSum<'_, PAIRED, WITH_SUM> {
    /// The sums, unless more than a quarter of the tiles failed.
    type Out = Option<Tiled>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<Tiled> {
        let Self { slices, cuts } = self;
        let row = UNROLLED * S::LANES;
        let tile = S::LANES << H;
        let tiles = slices.len().div_ceil(tile);
        if tiles > 1 << TILES {
            return None;
        }
        let mut failed = 0u64;
        // SAFETY: only whole rows are read from the slices, which are equally long, and the
        // last row from padded copies: zeros lie in every cut and add nothing.
        unsafe {
            let mut lanes = Lanes::<S, PAIRED, WITH_SUM>::new(cuts);
            for (i, part) in slices.chunks(tile).enumerate() {
                let mut rows = part.items().chunks_exact(row);
                let mut other_rows = part.others().chunks_exact(row);
                for (items, others) in (&mut rows).zip(&mut other_rows) {
                    prefetch::ahead(items);
                    if PAIRED {
                        prefetch::ahead(others);
                    }
                    lanes.add_row(items.as_ptr(), others.as_ptr());
                }
                let rest = [rows.remainder(), other_rows.remainder()];
                if !rest[0].is_empty() {
                    let mut padded = [[0f64; UNROLLED * LANES]; 2];
                    for (padded, rest) in padded.iter_mut().zip(rest) {
                        padded[..rest.len()].copy_from_slice(rest);
                    }
                    lanes.add_row(padded[0].as_ptr(), padded[1].as_ptr());
                }
                failed |= u64::from(!lanes.end_tile(cuts)) << i;
            }
            let failures = failed.count_ones();
            if 4 * failures as usize > tiles {
                return None;
            }
            let certified = tiles as u32 - failures;
            Some(Tiled {
                sum: if WITH_SUM { lanes.sum.finish(certified) } else { (0, 0) },
                products: [lanes.products.finish(certified), lanes.errors.finish(certified)],
                left_out: LeftOut { tile, tiles: failed },
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::simd::dispatch;
    use warpfold_core::exact::Superacc;
    use warpfold_core::exact::format::{F64Dot, F64Sum};

    /// Sums by tiles on every instruction set with the same lanes as the portable one, and
    /// what they leave out element by element, against element by element.
    fn check(xs: &[f64], ys: &[f64], tops: [i32; 2], note: &str) -> Vec<Option<usize>> {
        let cuts = tops.map(|top| Cut::below(top).unwrap());
        let mut expected = Superacc::<F64Dot>::new();
        let mut squares = Superacc::<F64Dot>::new();
        let mut sum = Superacc::<F64Sum>::new();
        for (&x, &y) in xs.iter().zip(ys) {
            expected.absorb_product(x, y);
            squares.absorb_product(x, x);
            sum.absorb(x);
        }
        let one = Slices::one(xs);
        let pair = Slices::pair(xs, ys).unwrap();
        let mut left_out = vec![];
        for isa in Isa::available().filter(|isa| isa.has_fma()) {
            let paired = dispatch(isa, ResidueSum::<true, false> { slices: pair, cuts });
            let alone = dispatch(isa, ResidueSum::<false, false> { slices: one, cuts });
            let moments = dispatch(isa, ResidueSum::<false, true> { slices: one, cuts });
            let elements = |tiled: &Tiled| tiled.left_out.ranges(xs.len()).map(|r| r.len()).sum();
            left_out.push(paired.as_ref().map(elements));
            for (tiled, ys, expected) in
                [(paired, ys, &expected), (alone, xs, &squares), (moments, xs, &squares)]
            {
                let Some(tiled) = tiled else { continue };
                let mut found = Superacc::<F64Dot>::new();
                for (value, exponent) in tiled.products {
                    found.deposit_wide(value, exponent);
                }
                found.count = xs.len() as i64;
                for i in tiled.left_out.ranges(xs.len()).flatten() {
                    found.absorb_product(xs[i], ys[i]);
                    found.count -= 1;
                }
                found.canonicalise();
                let mut expected = *expected;
                expected.canonicalise();
                assert!(found == expected, "{note}, {isa}, {}", xs.len());
            }
            if let Some(tiled) = moments {
                let mut found = Superacc::<F64Sum>::new();
                found.deposit_wide(tiled.sum.0, tiled.sum.1);
                found.count = xs.len() as i64;
                for i in tiled.left_out.ranges(xs.len()).flatten() {
                    found.absorb(xs[i]);
                    found.count -= 1;
                }
                found.canonicalise();
                sum.canonicalise();
                assert!(found == sum, "{note}, {isa}, {}", xs.len());
            }
        }
        left_out
    }

    /// The number below `2^top` with all bits, the least that lies within the cut, and
    /// its neighbour with an odd last bit.
    fn ends(top: i32) -> [f64; 3] {
        let least = power(top - DEPTH);
        [power(top).next_down(), least, least.next_up()]
    }

    const LENGTHS: [usize; 9] = [0, 1, 15, 16, 17, 511, 513, 4096, 8192];

    #[test]
    fn numbers_at_both_ends_of_the_cut_are_exact() {
        for tops in [[0, 0], [1, 40], [-440, -440], [500, 500], [500, -440], [-3, 4]] {
            let [xs, ys] = tops.map(ends);
            for n in LENGTHS {
                for x in xs {
                    for y in ys {
                        for sign in [1.0, -1.0] {
                            // All of one sign: the sums move as far as they can.
                            let found = check(&vec![x; n], &vec![sign * y; n], tops, "ends");
                            assert!(found.iter().all(|&left| left == Some(0)), "{x:e} {y:e}");
                        }
                    }
                }
                let mut random = fastrand::Rng::with_seed(n as u64);
                let mut draw = |ends: [f64; 3]| -> Vec<f64> {
                    let mut number = || match random.u32(..8) {
                        0 => 0.0,
                        i @ 1..4 => ends[i as usize - 1],
                        _ => {
                            let between = ends[1].to_bits()..=ends[0].to_bits();
                            f64::from_bits(random.u64(between))
                        }
                    };
                    (0..n).map(|i| if i % 3 == 0 { -number() } else { number() }).collect()
                };
                let [xs, ys] = [draw(xs), draw(ys)];
                let found = check(&xs, &ys, tops, "between");
                assert!(found.iter().all(|&left| left == Some(0)), "{n}");
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

    #[test]
    fn a_tile_with_anything_else_is_left_out() {
        let [most, least, _] = ends(2);
        let others = [most.next_up(), least.next_down(), 1e300, 5e-324, f64::INFINITY, f64::NAN];
        for x in others.into_iter().flat_map(|x| [x, -x]) {
            for place in [0, 1000, 8191] {
                let mut xs = vec![0.75; 8192];
                xs[place] = x;
                let ys = vec![1.5; 8192];
                for (xs, ys) in [(&xs, &ys), (&ys, &xs)] {
                    let found = check(xs, ys, [2, 2], "one other");
                    assert!(found.iter().all(|n| n.is_some_and(|n| n > 0)), "{x:e} at {place}");
                }
            }
        }
        // More than a quarter of the tiles.
        let xs: Vec<f64> = (0..8192).map(|i| if i % 128 == 5 { 100.0 } else { 0.5 }).collect();
        assert!(check(&xs, &xs, [2, 2], "many others").iter().all(Option::is_none));
    }

    #[test]
    fn tops_out_of_range_have_no_cut() {
        assert!(Cut::below(501).is_none());
        // Zeros lie in every cut; what the largest element shows may be as low as this.
        let zeros = vec![0.0; 5000];
        let found = check(&zeros, &zeros, [-1074, -1074], "zeros");
        assert!(found.iter().all(|&left| left == Some(0)));
        let tiny = vec![5e-324; 5000];
        assert!(check(&tiny, &tiny, [-1074, -1074], "subnormals").iter().all(Option::is_none));
    }
}
