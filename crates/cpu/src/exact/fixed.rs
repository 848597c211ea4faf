//! The fixed-point window (FIX): exact sums of elements and of their squares by integer
//! multiply-add, without a square ever being formed in floating point.
//!
//! A window has one limb or two, whose last bits weigh `2^k(0)` and
//! `2^k(1)`, `k(1) = k(0) - 51`. With `M(l) = 1.5 * 2^(k(l) + 52)`, `t = M(0) + x`
//! rounds `x` to a multiple `h = t - M(0)` of `2^k(0)`, and the low 52 bits of
//! `t` are the integer `H = h / 2^k(0) + B`, `B = 2^51`. The residue `x - h` enters the second limb
//! in the same way. Products are taken of these biased, unsigned integers, and
//! the bias is taken out of the sums:
//! `sum((G - B) (H - B)) = sum(G H) - B (sum(G) + sum(H)) + n B^2`.
//!
//! *Exact.* If `t` lies in `M(0)`'s binade, then `|x| <= 2^(k(0) + 51) <= M(0)`,
//! Fast2Sum says that `h` and `x - h` are exact, and `H` is right; `bad` collects
//! every bit in which some `t` differs from `M(0)`, and a sign or exponent bit
//! among them fails the block; NaN, infinities and large elements leave the
//! binade. A residue is at most `2^(k(0) - 1) = 2^(k(1) + 50)`, so that the second
//! limb stays in its binade. What is left after the last limb must be zero:
//! `leftover` collects its bits. The factors are then integers, exactly, and so is
//! all that follows: halves of products below `2^52`, of which a lane adds at
//! most `2^11`, and sums of at most `2^12` lanes' products below `2^104`.
//!
//! Source: warpfold's own; the extraction of limbs is that of Rump, Ogita and
//! Oishi 2008.

use super::terms::Widen;
use crate::simd::madd52::{Kernel52, Madd52};
use warpfold_core::prefetch;

/// Binades from one limb to the next.
const STEP: i32 = 51;
/// What an integer in a limb is more than the number it stands for.
const BIAS: i128 = 1 << 51;
/// The bits of an integer in a limb.
const FRACTION: u64 = (1 << 52) - 1;
const SIGN: u64 = 1 << 63;
/// Vectors of elements that a lane's sums have room for.
const ADDS: usize = 1 << 11;
/// Lanes of the widest vector.
const LANES: usize = 8;

/// The exponents of a window's limbs.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixedWindow {
    first: i32,
}

impl FixedWindow {
    /// The window for elements below `2^top`, if it fits into f64's range.
    pub(super) fn below(top: i32) -> Option<FixedWindow> {
        // It may sit higher than it has to, but not so high that `M(0)`
        // overflows.
        let first = (top - STEP).max(STEP - 1074);
        (first <= 970).then_some(FixedWindow { first })
    }

    /// `k(limb)`.
    #[inline(always)]
    pub(super) fn unit(self, limb: usize) -> i32 {
        self.first - STEP * limb as i32
    }

    /// `M(limb)`.
    #[inline(always)]
    fn anchor(self, limb: usize) -> f64 {
        // 1.5 * 2^exponent by its bits; `below` keeps the exponent normal.
        let exponent = self.unit(limb) + 52;
        f64::from_bits((((exponent + 1023) as u64) << 52) | (1 << 51))
    }
}

/// Takes elements apart into limbs.
struct Splitter<S: Madd52, const L: usize> {
    anchors: [S::F; L],
    bad: S::F,
    leftover: S::F,
}

impl<S: Madd52, const L: usize> Splitter<S, L> {
    /// # Safety
    /// See [`Simd`](crate::simd::Simd), here and below.
    #[inline(always)]
    unsafe fn new(window: FixedWindow) -> Self {
        // SAFETY: passed on from the caller.
        unsafe {
            let mut anchors = [S::splat(window.anchor(0)); L];
            if L == 2 {
                anchors[L - 1] = S::splat(window.anchor(1));
            }
            Splitter { anchors, bad: S::splat(0.0), leftover: S::splat(0.0) }
        }
    }

    /// The limbs of a vector of elements, as the low 52 bits of f64.
    #[inline(always)]
    unsafe fn split(&mut self, x: S::F) -> [S::F; L] {
        // SAFETY: passed on from the caller.
        unsafe {
            let anchor = self.anchors[0];
            let t = S::add(anchor, x);
            self.bad = S::or_xor(self.bad, t, anchor);
            let mut rest = S::sub(x, S::sub(t, anchor));
            let mut limbs = [t; L];
            if L == 2 {
                let anchor = self.anchors[L - 1];
                limbs[L - 1] = S::add(anchor, rest);
                rest = S::sub(rest, S::sub(limbs[L - 1], anchor));
            }
            self.leftover = S::or(self.leftover, rest);
            limbs
        }
    }

    /// Whether every element lay in the window.
    #[inline(always)]
    unsafe fn holds(&self) -> bool {
        // SAFETY: passed on from the caller; the buffers hold the widest
        // vector.
        unsafe {
            let mut lanes = [[0f64; LANES]; 2];
            S::store(self.bad, lanes[0].as_mut_ptr());
            S::store(self.leftover, lanes[1].as_mut_ptr());
            lanes[0].iter().all(|x| x.to_bits() & !FRACTION == 0)
                && lanes[1].iter().all(|x| x.to_bits() & !SIGN == 0)
        }
    }
}

/// Sums of the products of two limbs, in halves of 52 bits.
#[derive(Clone, Copy)]
struct Products<S: Madd52> {
    low: S::I,
    high: S::I,
}

impl<S: Madd52> Products<S> {
    /// # Safety
    /// See [`Simd`](crate::simd::Simd), here and below.
    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: passed on from the caller.
        unsafe { Products { low: S::izero(), high: S::izero() } }
    }

    #[inline(always)]
    unsafe fn add(&mut self, x: S::F, y: S::F) {
        // SAFETY: passed on from the caller.
        unsafe {
            self.low = S::madd_low(self.low, x, y);
            self.high = S::madd_high(self.high, x, y);
        }
    }

    #[inline(always)]
    unsafe fn total(self) -> i128 {
        // SAFETY: passed on from the caller.
        unsafe { total::<S>(self.low) + (total::<S>(self.high) << 52) }
    }
}

/// The sum of the lanes.
///
/// # Safety
/// See [`Simd`](crate::simd::Simd).
#[inline(always)]
unsafe fn total<S: Madd52>(sums: S::I) -> i128 {
    let mut lanes = [0u64; LANES];
    // SAFETY: passed on from the caller; the buffer holds the widest vector.
    unsafe { S::istore(sums, lanes.as_mut_ptr()) };
    lanes.iter().map(|&lane| i128::from(lane)).sum()
}

/// The sum of the integers in limbs, from the sum of the limbs' bits, of which
/// each lane has added `adds`.
///
/// # Safety
/// See [`Simd`](crate::simd::Simd).
#[inline(always)]
unsafe fn total_limbs<S: Madd52>(sums: S::I, anchor: f64, adds: usize) -> i128 {
    let above = (anchor.to_bits() & !FRACTION).wrapping_mul(adds as u64);
    let mut lanes = [0u64; LANES];
    // SAFETY: passed on from the caller; the buffer holds the widest vector.
    unsafe { S::istore(sums, lanes.as_mut_ptr()) };
    lanes[..S::LANES].iter().map(|lane| i128::from(lane.wrapping_sub(above))).sum()
}

/// `sum((G - B) (H - B))` from the sums of `G H`, of `G` and of `H`.
fn unbiased(products: i128, sums: [i128; 2], count: i128) -> i128 {
    products - BIAS * (sums[0] + sums[1]) + count * BIAS * BIAS
}

/// A part of an exact sum: this many units of `2^exponent`.
pub(crate) type Part = (i128, i32);

/// The exact sums of elements and of their squares; of one limb, the parts of
/// the second are zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixedMoments {
    pub(super) sums: [Part; 2],
    pub(super) squares: [Part; 3],
}

/// Sums elements and their squares in a window of `L` limbs, if there are not
/// too many for a lane.
pub(super) struct MomentsKernel<'a, T, const L: usize> {
    pub(super) items: &'a [T],
    pub(super) window: FixedWindow,
}

impl<T: Widen, const L: usize> Kernel52 for MomentsKernel<'_, T, L> {
    /// The sums, if every element lies in the window.
    type Out = Option<FixedMoments>;

    #[inline(always)]
    unsafe fn run<S: Madd52>(self) -> Option<FixedMoments> {
        let row = 2 * S::LANES;
        if self.items.len().div_ceil(row) * 2 > ADDS {
            return None;
        }
        // SAFETY: only whole rows are read from the slice, the last row from a
        // padded copy: zeros, which the bias is taken out of like the rest.
        unsafe {
            let mut sums = MomentsLanes::<S, L>::new(self.window);
            let mut rows = self.items.chunks_exact(row);
            for items in &mut rows {
                prefetch::ahead(items);
                let [a, b] = T::widen::<S>(items.as_ptr());
                sums.add(a);
                sums.add(b);
            }
            let rest = rows.remainder();
            let mut vectors = 2 * (self.items.len() / row);
            if !rest.is_empty() {
                let mut padded = [<T as bytemuck::Zeroable>::zeroed(); 2 * LANES];
                padded[..rest.len()].copy_from_slice(rest);
                let [a, b] = T::widen::<S>(padded.as_ptr());
                sums.add(a);
                sums.add(b);
                vectors += 2;
            }
            sums.splitter.holds().then(|| sums.finish(self.window, vectors))
        }
    }
}

/// The sums of each lane.
struct MomentsLanes<S: Madd52, const L: usize> {
    splitter: Splitter<S, L>,
    sums: [S::I; L],
    first: Products<S>,
    cross: Products<S>,
    second: Products<S>,
}

impl<S: Madd52, const L: usize> MomentsLanes<S, L> {
    /// # Safety
    /// See [`Simd`](crate::simd::Simd), here and below.
    #[inline(always)]
    unsafe fn new(window: FixedWindow) -> Self {
        // SAFETY: passed on from the caller.
        unsafe {
            MomentsLanes {
                splitter: Splitter::new(window),
                sums: [S::izero(); L],
                first: Products::zero(),
                cross: Products::zero(),
                second: Products::zero(),
            }
        }
    }

    #[inline(always)]
    unsafe fn add(&mut self, x: S::F) {
        // SAFETY: passed on from the caller.
        unsafe {
            let limbs = self.splitter.split(x);
            self.sums[0] = S::add_bits(self.sums[0], limbs[0]);
            self.first.add(limbs[0], limbs[0]);
            if L == 2 {
                self.sums[L - 1] = S::add_bits(self.sums[L - 1], limbs[L - 1]);
                self.cross.add(limbs[0], limbs[L - 1]);
                self.second.add(limbs[L - 1], limbs[L - 1]);
            }
        }
    }

    /// The sums over all lanes, each of which has added `vectors` elements.
    #[inline(always)]
    unsafe fn finish(self, window: FixedWindow, vectors: usize) -> FixedMoments {
        let count = (vectors * S::LANES) as i128;
        let [k, m] = [window.unit(0), window.unit(1)];
        // SAFETY: passed on from the caller.
        unsafe {
            let high = total_limbs::<S>(self.sums[0], window.anchor(0), vectors);
            let first = unbiased(self.first.total(), [high, high], count);
            let mut moments = FixedMoments {
                sums: [(high - count * BIAS, k), (0, k)],
                squares: [(first, 2 * k), (0, k), (0, k)],
            };
            if L == 2 {
                let low = total_limbs::<S>(self.sums[L - 1], window.anchor(1), vectors);
                moments.sums[1] = (low - count * BIAS, m);
                moments.squares[1] = (2 * unbiased(self.cross.total(), [high, low], count), k + m);
                moments.squares[2] = (unbiased(self.second.total(), [low, low], count), 2 * m);
            }
            moments
        }
    }
}

/// What the previous blocks taught about the window: speed only, never the
/// result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedTuner {
    /// Elements of recent blocks, of the first and of the second array, lie
    /// below `2^top`.
    tops: Option<[i32; 2]>,
    /// Blocks until the window is tried again.
    patience: u32,
    /// What `patience` starts from after the next failure.
    backoff: u32,
}

impl FixedTuner {
    pub(super) const NEW: FixedTuner = FixedTuner { tops: None, patience: 0, backoff: 1 };

    /// Tries windows for the tops of recent blocks, then for the tops of
    /// this block, which `look` finds.
    #[inline]
    pub(super) fn attempt<R>(
        &mut self,
        look: impl Fn() -> Option<[i32; 2]>,
        run: impl Fn([i32; 2]) -> Option<R>,
    ) -> Option<R> {
        if self.patience > 0 {
            self.patience -= 1;
            return None;
        }
        let known = self.tops;
        let mut done = known.and_then(&run);
        if done.is_none()
            && let Some(tops) = look().map(|tops| tops.map(|top| top + super::HEADROOM))
            && known != Some(tops)
        {
            self.tops = Some(tops);
            done = run(tops);
        }
        if done.is_some() {
            self.backoff = 1;
        } else {
            self.patience = self.backoff;
            self.backoff = (self.backoff * 2).min(1 << 10);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Simd;
    use crate::simd::portable::Portable;

    /// The portable lanes, so that the arithmetic is tested on any machine;
    /// the tests of all kernels run the real ones.
    fn moments<const L: usize>(items: &[f64], window: FixedWindow) -> Option<FixedMoments> {
        // SAFETY: every machine has these instructions.
        unsafe { MomentsKernel::<f64, L> { items, window }.run::<Portable>() }
    }

    /// A sum of parts in units of `2^unit`.
    fn value(parts: &[Part], unit: i32) -> i128 {
        parts.iter().map(|&(n, exponent)| if n == 0 { 0 } else { n << (exponent - unit) }).sum()
    }

    /// Integers of up to 51 bits above the first limb's last bit and up to 50
    /// below it, and their value in units of the second limb.
    fn cases(window: FixedWindow) -> Vec<(f64, i128)> {
        let unit = 2f64.powi(window.unit(1));
        let edge = 1i128 << 51;
        [0, 1, 2, 3, edge / 2 - 1, edge / 2, edge / 2 + 1, edge - 1, edge, edge + 1, 3 * edge / 2]
            .into_iter()
            .chain([(1 << 53) - 1, ((1 << 53) - 1) << 30, 0x15_5555_5555_5555 << 10])
            .flat_map(|n| [n, -n])
            .map(|n| (n as f64 * unit, n))
            .filter(|&(x, n)| x / unit == n as f64 && (n as f64) as i128 == n)
            .collect()
    }

    #[test]
    fn limbs_hold_every_number_of_the_window() {
        for top in [0, 40, -300] {
            let window = FixedWindow::below(top).unwrap();
            let unit = window.unit(1);
            for (x, n) in cases(window) {
                let found = moments::<2>(&[x], window).unwrap();
                assert_eq!(value(&found.sums, unit), n, "{x:e} below 2^{top}");
                let [a, b, c] = found.squares;
                assert_eq!(value(&[a, b, c], 2 * unit) as u128, n.unsigned_abs().wrapping_pow(2));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let window = FixedWindow::below(0).unwrap();
        let half_a_unit = 2f64.powi(window.unit(1) - 1);
        for x in [2.1, -2.1, 1e300, f64::INFINITY, f64::NAN, -f64::NAN, half_a_unit, -half_a_unit] {
            assert!(moments::<2>(&[0.5, x], window).is_none(), "{x:e}");
        }
        let below_one_limb = 2f64.powi(window.unit(0) - 1);
        assert!(moments::<1>(&[below_one_limb], window).is_none());
        assert!(moments::<2>(&[below_one_limb], window).is_some());
    }

    #[test]
    fn a_full_block_of_the_largest_does_not_overflow() {
        let window = FixedWindow::below(0).unwrap();
        let unit = window.unit(1);
        let n = Portable::LANES * ADDS;
        // Any closer to 1, the first limb would round up out of its binade.
        for x in [1.0 - 2.5 * f64::EPSILON, 2.5 * f64::EPSILON - 1.0] {
            let found = moments::<2>(&vec![x; n], window).unwrap();
            let each = (x * 2f64.powi(-unit)) as i128;
            assert_eq!(value(&found.sums, unit), n as i128 * each);
            // Squares take 204 bits: compare their leading parts by the limbs.
            let [(high, _), (cross, _), (low, _)] = found.squares;
            let (h, l) = ((each + (1 << 50)) >> 51, each - (((each + (1 << 50)) >> 51) << 51));
            assert_eq!([high, cross, low], [h * h, 2 * h * l, l * l].map(|p| p * n as i128));
        }
        assert!(moments::<2>(&vec![0.5; n + 1], window).is_none());
    }

    #[test]
    fn windows_end_where_f64_does() {
        assert!(FixedWindow::below(1024).is_none());
        let lowest = FixedWindow::below(-1074).unwrap();
        assert_eq!(lowest.unit(1), -1074);
        let found = moments::<2>(&[f64::from_bits(1)], lowest).unwrap();
        assert_eq!(value(&found.sums, -1074), 1);
    }

    #[test]
    fn failures_are_repeated_ever_less_often() {
        let mut tuner = FixedTuner::NEW;
        let tries = std::cell::Cell::new(0);
        for _ in 0..10_000 {
            let run = |_| -> Option<()> {
                tries.set(tries.get() + 1);
                None
            };
            assert_eq!(tuner.attempt(|| Some([0, 0]), run), None);
        }
        assert!(tries.get() < 50, "{}", tries.get());
        // And forgotten after a success.
        tuner.patience = 0;
        assert_eq!(tuner.attempt(|| None, |_| Some(())), Some(()));
        assert_eq!(tuner.backoff, 1);
    }
}
