//! The superaccumulator: an exact fixed-point sum.

use super::format::Format;
use super::limbs::{SHORT, first_nonzero, last_other};
use crate::element::{Element, Parts};

/// How many deposits may pass before the limbs are normalised. A deposit adds
/// less than 2^32 to a limb and a canonical limb is below 2^32, so a limb
/// stays below 2^62 in magnitude.
const NORMALISE_AFTER: u32 = 1 << 29;

/// An exact sum: `sum(limbs[i] * 2^(LSB + 32 i))` and counters of the special values.
///
/// Two accumulators are merged by adding field by field, so any 64-bit integer sum
/// merges them. The *canonical* form has every limb but the top one in `[0, 2^32)`;
/// equal multisets of terms give equal canonical forms.
#[derive(Clone, Copy, Debug)]
pub struct Superacc<F: Format> {
    limbs: F::Limbs,
    /// Deposits since the limbs were last canonical.
    pending: u32,
    /// Terms absorbed, specials included.
    pub count: i64,
    /// NaNs among them.
    pub nans: i64,
    /// Positive infinities among them.
    pub pos_infs: i64,
    /// Negative infinities among them.
    pub neg_infs: i64,
}

impl<F: Format> Default for Superacc<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Format> PartialEq for Superacc<F> {
    fn eq(&self, other: &Self) -> bool {
        self.vector_iter().eq(other.vector_iter())
    }
}

impl<F: Format> Superacc<F> {
    /// The length of the vector form: the limbs and four counters.
    pub const VECTOR_LEN: usize = F::LIMBS + 4;

    /// The empty sum.
    #[must_use]
    pub const fn new() -> Self {
        Superacc { limbs: F::ZERO, pending: 0, count: 0, nans: 0, pos_infs: 0, neg_infs: 0 }
    }

    /// Adds `(-1)^negative * magnitude * 2^exponent`; counts nothing.
    ///
    /// The term must fit the format: `exponent >= LSB` unless the bits below
    /// are zero, which the callers guarantee by the choice of `F`.
    #[inline]
    pub fn deposit(&mut self, negative: bool, magnitude: u64, exponent: i32) {
        let offset = exponent - F::LSB;
        if offset < 0 {
            assert!(
                (magnitude as u128) & ((1u128 << (-offset).min(127)) - 1) == 0,
                "a term below the format's last bit"
            );
            let shifted = if offset > -64 { magnitude >> -offset } else { 0 };
            return self.deposit_at(negative, u128::from(shifted), 0);
        }
        let offset = offset as usize;
        self.deposit_at(negative, u128::from(magnitude) << (offset % 32), offset / 32);
    }

    /// Adds an integer of up to 127 bits in units of `2^exponent`.
    #[inline]
    pub fn deposit_wide(&mut self, value: i128, exponent: i32) {
        let negative = value < 0;
        let magnitude = value.unsigned_abs();
        // Two halves, so that the shift inside a limb cannot push bits out.
        self.deposit(negative, magnitude as u64, exponent);
        let high = (magnitude >> 64) as u64;
        if high != 0 {
            self.deposit(negative, high, exponent + 64);
        }
    }

    #[inline]
    fn deposit_at(&mut self, negative: bool, value: u128, limb: usize) {
        let limbs = self.limbs.as_mut();
        let mut rest = value;
        let mut i = limb;
        while rest != 0 {
            let digit = (rest as u32) as i64;
            // A set bit beyond the top limb would be a term outside the
            // format; formats are chosen so that it cannot exist, and the top
            // limb alone takes what is left.
            let digit = if i + 1 == F::LIMBS {
                let all = rest as i64;
                rest = 0;
                all
            } else {
                rest >>= 32;
                digit
            };
            let l = &mut limbs[i];
            *l = if negative { l.wrapping_sub(digit) } else { l.wrapping_add(digit) };
            i += 1;
        }
        self.pending += 1;
        if self.pending >= NORMALISE_AFTER {
            self.canonicalise();
        }
    }

    /// Absorbs one element by its bits alone. Rounding modes and flush-to-zero have no
    /// effect on this path.
    #[inline]
    pub fn absorb<T: Element>(&mut self, x: T) {
        self.count += 1;
        match x.parts() {
            Parts::Finite { negative, magnitude, exponent } => {
                self.deposit(negative, magnitude, exponent);
            }
            Parts::Infinite { negative: false } => self.pos_infs += 1,
            Parts::Infinite { negative: true } => self.neg_infs += 1,
            Parts::Nan => self.nans += 1,
        }
    }

    /// Absorbs `|x|`.
    #[inline]
    pub fn absorb_abs<T: Element>(&mut self, x: T) {
        self.count += 1;
        match x.parts() {
            Parts::Finite { magnitude, exponent, .. } => self.deposit(false, magnitude, exponent),
            Parts::Infinite { .. } => self.pos_infs += 1,
            Parts::Nan => self.nans += 1,
        }
    }

    /// Absorbs `x * y`; `F` must be the element's `Dot` format. A product that is NaN although
    /// no factor is counts as infinities of both signs: the sum is NaN, and no element is.
    #[inline]
    pub fn absorb_product<T: Element>(&mut self, x: T, y: T) {
        self.count += 1;
        match (x.parts(), y.parts()) {
            (Parts::Nan, _) | (_, Parts::Nan) => self.nans += 1,
            (
                Parts::Finite { negative: n0, magnitude: m0, exponent: e0 },
                Parts::Finite { negative: n1, magnitude: m1, exponent: e1 },
            ) => {
                let product = u128::from(m0) * u128::from(m1);
                self.deposit(n0 != n1, product as u64, e0 + e1);
                let high = (product >> 64) as u64;
                if high != 0 {
                    self.deposit(n0 != n1, high, e0 + e1 + 64);
                }
            }
            // 0 * inf is invalid.
            (Parts::Finite { magnitude: 0, .. }, Parts::Infinite { .. })
            | (Parts::Infinite { .. }, Parts::Finite { magnitude: 0, .. }) => {
                self.pos_infs += 1;
                self.neg_infs += 1;
            }
            (Parts::Infinite { negative: n0 }, Parts::Infinite { negative: n1 })
            | (Parts::Infinite { negative: n0 }, Parts::Finite { negative: n1, .. })
            | (Parts::Finite { negative: n0, .. }, Parts::Infinite { negative: n1 }) => {
                if n0 == n1 {
                    self.pos_infs += 1;
                } else {
                    self.neg_infs += 1;
                }
            }
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        if self.pending + other.pending >= NORMALISE_AFTER {
            self.canonicalise();
        }
        for (a, b) in self.limbs.as_mut().iter_mut().zip(other.limbs.as_ref()) {
            *a = a.wrapping_add(*b);
        }
        // `other` is canonical up to its own deposits, so it adds at most
        // that many carries and one more.
        self.pending += other.pending + 1;
        // Counters that came in as bytes may be anything up to 2^63 - 1.
        self.count = self.count.wrapping_add(other.count);
        self.nans = self.nans.wrapping_add(other.nans);
        self.pos_infs = self.pos_infs.wrapping_add(other.pos_infs);
        self.neg_infs = self.neg_infs.wrapping_add(other.neg_infs);
    }

    /// The sum of the same terms, each times `factor`; `None` if it leaves the format.
    #[must_use]
    pub fn scaled(&self, factor: u64) -> Option<Self> {
        let mut scaled = *self;
        scaled.canonicalise();
        let top = F::LIMBS - 1;
        let mut carry = 0i128;
        for (i, limb) in scaled.limbs.as_mut().iter_mut().enumerate() {
            let v = i128::from(*limb).checked_mul(i128::from(factor))?.checked_add(carry)?;
            if i == top {
                *limb = i64::try_from(v).ok()?;
            } else {
                *limb = (v & 0xffff_ffff) as i64;
                carry = v >> 32;
            }
        }
        Some(scaled)
    }

    /// Moves carries up until every limb but the top one is in `[0, 2^32)`.
    pub fn canonicalise(&mut self) {
        self.pending = 0;
        let limbs = self.limbs.as_mut();
        let top = F::LIMBS - 1;
        let (first, last) = if F::LIMBS <= SHORT {
            (0, top)
        } else {
            match (first_nonzero(limbs), last_other(limbs, 0)) {
                (Some(first), Some(last)) => (first, last),
                _ => return,
            }
        };
        let mut carry = 0i64;
        let mut i = first;
        // Above the last limb that is not 0 only the carry moves on. It ends
        // as 0, which changes nothing, or as -1, which makes every limb all
        // ones and moves on unchanged.
        while i < top && (i <= last || carry != 0 && carry != -1) {
            // An arithmetic shift is a floor division, so that the remainder
            // is never negative.
            let v = limbs[i] + carry;
            carry = v >> 32;
            limbs[i] = v & 0xffff_ffff;
            i += 1;
        }
        if carry == -1 {
            limbs[i..top].fill(0xffff_ffff);
        }
        limbs[top] = limbs[top].wrapping_add(carry);
    }

    /// The canonical limbs, lowest first.
    #[must_use]
    pub fn canonical_limbs(&self) -> F::Limbs {
        let mut c = *self;
        c.canonicalise();
        c.limbs
    }

    /// Calls `f` with the canonical limbs, lowest first; copies them only if
    /// there are carries to move.
    #[inline]
    pub fn with_canonical<R>(&self, f: impl FnOnce(&[i64]) -> R) -> R {
        if self.pending == 0 { f(self.limbs.as_ref()) } else { f(self.canonical_limbs().as_ref()) }
    }

    /// The counters in the order of the vector form:
    /// count, NaNs, positive and negative infinities.
    #[must_use]
    pub fn counters(&self) -> [i64; 4] {
        [self.count, self.nans, self.pos_infs, self.neg_infs]
    }

    fn vector_iter(&self) -> impl Iterator<Item = i64> {
        let limbs = self.canonical_limbs();
        (0..F::LIMBS).map(move |i| limbs.as_ref()[i]).chain(self.counters())
    }

    /// The canonical limbs, then the counters. Sums of such vectors are such vectors.
    ///
    /// The sum of up to 2^31 such vectors, taken elementwise by any engine
    /// with wrapping 64-bit integers, is again a valid argument of
    /// [`from_vector`](Self::from_vector).
    #[must_use]
    pub fn to_vector(&self) -> Vec<i64> {
        self.vector_iter().collect()
    }

    /// The inverse of [`to_vector`](Self::to_vector); `None` unless `vector`
    /// has [`VECTOR_LEN`](Self::VECTOR_LEN) entries and counters that make sense.
    #[must_use]
    pub fn from_vector(vector: &[i64]) -> Option<Self> {
        if vector.len() != Self::VECTOR_LEN {
            return None;
        }
        let (limbs, counters) = vector.split_at(F::LIMBS);
        // A product may count as infinities of both signs.
        let specials = counters[1].checked_add(counters[2].max(counters[3]))?;
        if counters.iter().any(|&c| c < 0) || specials > counters[0] {
            return None;
        }
        // Limbs of foreign vectors may be anything: carries are moved with
        // wide arithmetic before they count as canonical.
        let mut acc = Self::new();
        let mut carry = 0i128;
        let top = F::LIMBS - 1;
        for (to, &from) in acc.limbs.as_mut().iter_mut().zip(limbs).take(top) {
            let v = i128::from(from) + carry;
            carry = v >> 32;
            *to = (v & 0xffff_ffff) as i64;
        }
        acc.limbs.as_mut()[top] = limbs[top].wrapping_add(carry as i64);
        [acc.count, acc.nans, acc.pos_infs, acc.neg_infs] =
            [counters[0], counters[1], counters[2], counters[3]];
        Some(acc)
    }
}
