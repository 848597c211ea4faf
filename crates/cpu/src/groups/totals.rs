//! Exact sums that are small: a fixed-point integer for each group, which finds its
//! place among the exponents by itself.
//!
//! A *cell* holds `sum * 2^base` and adds an element by shifting its significand to
//! that base. The first element that is not zero puts the base below itself, by half
//! of what the integer has to spare, so that elements that are some ten powers of
//! two larger or smaller find room. One that does not moves the base, where the sum
//! has zeros at one end; else it goes to a superaccumulator that this group alone
//! has from then on. Nothing is ever rounded: the sum of both is the sum.

use super::memory::{OutOfMemory, ask, ask_ahead, extend};
use super::table::LEFT_OUT;
use super::words::{self, damaged};
use warpfold_core::Result;
use warpfold_core::element::Parts;
use warpfold_core::exact::Superacc;
use warpfold_core::exact::format::Format;
use warpfold_core::exact::round::Truncated;

/// An integer of a fixed number of bits.
pub(super) trait Fixed: Copy + Default + Send + Sync + 'static {
    /// Bits without the sign.
    const BITS: u32;
    /// Adds `(-1)^negative * magnitude * 2^shift`, whose bits end below
    /// [`BITS`](Self::BITS), unless the sum would not fit.
    fn add(&mut self, negative: bool, magnitude: u128, shift: u32) -> bool;
    /// The sign, and the magnitude as two words, the lower first.
    fn magnitude(self) -> (bool, [u128; 2]);
    /// Multiplies by `2^by`, or divides for negative ones, if no bit is lost.
    fn shift(&mut self, by: i32) -> bool;
}

impl Fixed for i128 {
    const BITS: u32 = 127;

    #[inline(always)]
    fn add(&mut self, negative: bool, magnitude: u128, shift: u32) -> bool {
        let term = (magnitude << shift) as i128;
        let term = if negative { -term } else { term };
        let (sum, lost) = self.overflowing_add(term);
        if !lost {
            *self = sum;
        }
        !lost
    }

    #[inline(always)]
    fn magnitude(self) -> (bool, [u128; 2]) {
        (self < 0, [self.unsigned_abs(), 0])
    }

    fn shift(&mut self, by: i32) -> bool {
        let magnitude = self.unsigned_abs();
        let room = if by >= 0 {
            // One bit is the sign's.
            magnitude.leading_zeros() as i32 > by
        } else {
            magnitude == 0 || magnitude.trailing_zeros() as i32 >= -by
        };
        if room && by.abs() < 127 {
            *self = if by >= 0 { *self << by } else { *self >> -by };
        }
        room && by.abs() < 127
    }
}

/// An integer of 256 bits: what sums of products have room in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Wide {
    low: u128,
    high: i128,
}

impl Fixed for Wide {
    const BITS: u32 = 255;

    #[inline(always)]
    fn add(&mut self, negative: bool, magnitude: u128, shift: u32) -> bool {
        let (low, high) = match shift {
            0 => (magnitude, 0),
            1..128 => (magnitude << shift, magnitude >> (128 - shift)),
            _ => (0, magnitude << (shift - 128)),
        };
        // The two's complement, if it is negative.
        let (low, high) = match negative {
            true => (low.wrapping_neg(), !high as i128 + i128::from(low == 0)),
            false => (low, high as i128),
        };
        let (sum, carry) = self.low.overflowing_add(low);
        let (top, lost) = self.high.overflowing_add(high);
        let (top, lost_again) = top.overflowing_add(i128::from(carry));
        // Two overflows in opposite directions are none.
        if lost == lost_again {
            (self.low, self.high) = (sum, top);
        }
        lost == lost_again
    }

    #[inline(always)]
    fn magnitude(self) -> (bool, [u128; 2]) {
        if self.high >= 0 {
            return (false, [self.low, self.high as u128]);
        }
        let low = self.low.wrapping_neg();
        (true, [low, (!self.high as u128).wrapping_add(u128::from(self.low == 0))])
    }

    fn shift(&mut self, _by: i32) -> bool {
        // It reaches far enough as it is.
        false
    }
}

/// What an element adds to a sum.
#[derive(Clone, Copy, Debug)]
pub(super) enum Term {
    Finite {
        negative: bool,
        magnitude: u128,
        exponent: i32,
    },
    Infinite {
        negative: bool,
    },
    /// Infinities of both signs, which make a NaN that no element is.
    Either,
    Nan,
}

impl From<Parts> for Term {
    #[inline(always)]
    fn from(parts: Parts) -> Term {
        match parts {
            Parts::Finite { negative, magnitude, exponent } => {
                Term::Finite { negative, magnitude: u128::from(magnitude), exponent }
            }
            Parts::Infinite { negative } => Term::Infinite { negative },
            Parts::Nan => Term::Nan,
        }
    }
}

impl Term {
    /// The magnitude of a term.
    #[inline(always)]
    pub(super) fn abs(self) -> Term {
        match self {
            Term::Finite { magnitude, exponent, .. } => {
                Term::Finite { negative: false, magnitude, exponent }
            }
            Term::Infinite { .. } => Term::Infinite { negative: false },
            Term::Either | Term::Nan => self,
        }
    }

    /// The product of two elements; infinity times zero is an infinity of either sign.
    #[inline(always)]
    pub(super) fn product(left: Parts, right: Parts) -> Term {
        match (left, right) {
            (
                Parts::Finite { negative: n0, magnitude: m0, exponent: e0 },
                Parts::Finite { negative: n1, magnitude: m1, exponent: e1 },
            ) => Term::Finite {
                negative: n0 != n1,
                magnitude: u128::from(m0) * u128::from(m1),
                exponent: e0 + e1,
            },
            (Parts::Nan, _) | (_, Parts::Nan) => Term::Nan,
            (Parts::Finite { magnitude: 0, .. }, _) | (_, Parts::Finite { magnitude: 0, .. }) => {
                Term::Either
            }
            (Parts::Infinite { negative: n0 }, Parts::Infinite { negative: n1 })
            | (Parts::Infinite { negative: n0 }, Parts::Finite { negative: n1, .. })
            | (Parts::Finite { negative: n0, .. }, Parts::Infinite { negative: n1 }) => {
                Term::Infinite { negative: n0 != n1 }
            }
        }
    }
}

/// The base of a cell that has held nothing but zeros.
const NOWHERE: i32 = i32::MIN / 2;

#[derive(Clone, Copy)]
struct Cell<W> {
    sum: W,
    base: i32,
    /// One more than the place of the group's superaccumulator, or 0.
    spill: u32,
    count: u64,
}

/// NaNs, positive and negative infinities.
type Specials = [u64; 3];

/// The sums of all groups.
#[derive(Clone)]
pub(super) struct Totals<F: Format, W> {
    cells: Vec<Cell<W>>,
    spills: Vec<Superacc<F>>,
    /// Of each group; empty while there are none at all.
    specials: Vec<Specials>,
    /// How far above its base a cell takes elements.
    reach: i32,
}

/// Bits that a base is moved further than it must, for elements to come.
const SLACK: i32 = 8;

impl<F: Format, W: Fixed> Totals<F, W> {
    /// No groups; terms of up to `width` bits.
    pub(super) fn new(width: u32) -> Self {
        let reach = W::BITS as i32 - width as i32;
        Totals { cells: Vec::new(), spills: Vec::new(), specials: Vec::new(), reach }
    }

    pub(super) fn grow(&mut self, groups: usize) -> Result<(), OutOfMemory> {
        let none = Cell { sum: W::default(), base: NOWHERE, spill: 0, count: 0 };
        extend(&mut self.cells, groups, none)
    }

    pub(super) fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell<W>>()
            + self.spills.capacity() * size_of::<Superacc<F>>()
            + self.specials.capacity() * size_of::<Specials>()
    }

    /// Asks for the sum of a group in memory.
    #[inline(always)]
    pub(super) fn ask(&self, group: u32) {
        ask(&self.cells, group);
    }

    /// Adds a term to the sum of each of these groups.
    #[inline(always)]
    pub(super) fn add_all(&mut self, groups: &[u32], terms: impl Iterator<Item = Term>) {
        for (row, (&group, term)) in groups.iter().zip(terms).enumerate() {
            ask_ahead(&self.cells, groups, row);
            self.add(group, term);
        }
    }

    /// Adds a term to a group's sum.
    #[inline(always)]
    fn add(&mut self, group: u32, term: Term) {
        let cell = &mut self.cells[group as usize];
        // Counts that came in as bytes may be anything.
        cell.count = cell.count.wrapping_add(1);
        match term {
            Term::Finite { negative, magnitude, exponent } => {
                let shift = exponent.wrapping_sub(cell.base);
                // As it is for nearly all: no bit leaves at either end.
                if shift as u32 <= self.reach as u32
                    && cell.sum.add(negative, magnitude, shift as u32)
                {
                    return;
                }
                self.add_elsewhere(group, negative, magnitude, exponent);
            }
            Term::Infinite { negative } => self.special(group, 1 + usize::from(negative), 1),
            Term::Either => (1..3).for_each(|which| self.special(group, which, 1)),
            Term::Nan => self.special(group, 0, 1),
        }
    }

    #[cold]
    #[inline(never)]
    fn special(&mut self, group: u32, which: usize, times: u64) {
        if self.specials.len() <= group as usize {
            self.specials.resize(self.cells.len(), [0; 3]);
        }
        let count = &mut self.specials[group as usize][which];
        *count = count.saturating_add(times);
    }

    /// Adds to a cell whose base does not suit, or that is full.
    #[cold]
    #[inline(never)]
    fn add_elsewhere(&mut self, group: u32, negative: bool, magnitude: u128, exponent: i32) {
        if magnitude == 0 {
            return;
        }
        let width = 128 - magnitude.leading_zeros() as i32;
        let reach = W::BITS as i32 - width;
        let cell = &mut self.cells[group as usize];
        if cell.base == NOWHERE {
            cell.base = (exponent - self.reach.min(reach) / 2).max(F::LSB);
        }
        let shift = exponent - cell.base;
        let by = match shift {
            ..0 => (SLACK - shift).min(cell.base - F::LSB),
            _ if shift > reach => reach - shift - SLACK,
            _ => 0,
        };
        if by != 0 && cell.sum.shift(by) {
            cell.base -= by;
        }
        let shift = exponent - cell.base;
        if (0..=reach).contains(&shift) {
            if cell.sum.add(negative, magnitude, shift as u32) {
                return;
            }
            // Full: what is there moves out.
            let (sum, base) = (core::mem::take(&mut cell.sum), cell.base);
            cell.sum.add(negative, magnitude, shift as u32);
            deposit_fixed(self.spill(group), sum, base);
            return;
        }
        deposit(self.spill(group), negative, magnitude, exponent);
    }

    /// The superaccumulator of a group.
    fn spill(&mut self, group: u32) -> &mut Superacc<F> {
        let cell = &mut self.cells[group as usize];
        if cell.spill == 0 {
            self.spills.push(Superacc::new());
            // There are no more of them than groups.
            cell.spill = self.spills.len() as u32;
        }
        &mut self.spills[cell.spill as usize - 1]
    }

    /// Adds the sums of another table.
    pub(super) fn merge(&mut self, other: &Self, groups: &[u32]) {
        for (row, (theirs, &group)) in other.cells.iter().zip(groups).enumerate() {
            if group == LEFT_OUT {
                continue;
            }
            ask_ahead(&self.cells, groups, row);
            let cell = &mut self.cells[group as usize];
            if cell.base == NOWHERE && cell.spill == 0 {
                // Nothing is here yet: the same is there then.
                let count = cell.count.wrapping_add(theirs.count);
                *cell = Cell { count, spill: 0, ..*theirs };
            } else {
                cell.count = cell.count.wrapping_add(theirs.count);
                let (negative, [low, high]) = theirs.sum.magnitude();
                for (magnitude, exponent) in [(low, theirs.base), (high, theirs.base + 128)] {
                    self.add_elsewhere(group, negative, magnitude, exponent);
                }
            }
            if theirs.spill != 0 {
                self.spill(group).merge(&other.spills[theirs.spill as usize - 1]);
            }
        }
        let kept = |&(_, &group): &(&Specials, &u32)| group != LEFT_OUT;
        for (theirs, &group) in other.specials.iter().zip(groups).filter(kept) {
            for (which, &times) in theirs.iter().enumerate().filter(|(_, times)| **times > 0) {
                self.special(group, which, times);
            }
        }
    }

    /// The sum of a group as a superaccumulator.
    #[inline(never)]
    pub(super) fn sum(&self, group: u32) -> Superacc<F> {
        let cell = &self.cells[group as usize];
        let mut acc = match cell.spill {
            0 => Superacc::new(),
            place => self.spills[place as usize - 1],
        };
        deposit_fixed(&mut acc, cell.sum, cell.base);
        let [nans, pos_infs, neg_infs] = self.specials_of(group);
        acc.count = cell.count.cast_signed();
        acc.nans = nans.cast_signed();
        acc.pos_infs = pos_infs.cast_signed();
        acc.neg_infs = neg_infs.cast_signed();
        acc
    }

    fn specials_of(&self, group: u32) -> Specials {
        self.specials.get(group as usize).copied().unwrap_or_default()
    }

    /// The sum and the number of terms of a group, if all are finite and the cell
    /// alone has them.
    #[inline(never)]
    pub(super) fn simple(&self, group: u32) -> Option<(Truncated, u64)> {
        let cell = &self.cells[group as usize];
        if cell.spill != 0 || self.specials_of(group) != [0; 3] {
            return None;
        }
        let (negative, [low, high]) = cell.sum.magnitude();
        if (low, high) == (0, 0) {
            return Some((Truncated::ZERO, cell.count));
        }
        // Without the zeros at its end where it has more than 128 bits.
        let zeros = if high == 0 { 0 } else { low.trailing_zeros() };
        let window = match zeros {
            0 => low,
            1..128 => low >> zeros | high << (128 - zeros),
            _ => high,
        };
        if high != 0 && high.leading_zeros() + zeros < 128 {
            return None;
        }
        let exponent = cell.base + zeros as i32;
        Some((Truncated { negative, window, exponent, inexact: false }, cell.count))
    }

    /// Appends a group's sum: how many terms, and of which kinds; then the limbs that
    /// are not zero, of the magnitude.
    pub(super) fn write(&self, group: u32, out: &mut Vec<u8>) {
        let acc = self.sum(group);
        acc.counters().iter().for_each(|&n| words::write(out, n.cast_unsigned()));
        acc.with_canonical(|limbs| {
            let negative = limbs[F::LIMBS - 1] < 0;
            // A borrow runs up from the lowest limb that is not zero.
            let mut digits = Vec::with_capacity(F::LIMBS);
            let mut borrow = 0i64;
            for (i, &limb) in limbs.iter().enumerate() {
                let limb = if negative { -limb - borrow } else { limb };
                if i + 1 == F::LIMBS {
                    digits.push(limb.cast_unsigned());
                } else {
                    borrow = i64::from(limb < 0);
                    digits.push((limb & 0xffff_ffff).cast_unsigned());
                }
            }
            let first = digits.iter().position(|&d| d != 0).unwrap_or(0);
            let after = digits.iter().rposition(|&d| d != 0).map_or(0, |last| last + 1);
            words::write(out, (after as u64) << 1 | u64::from(negative));
            if after > 0 {
                words::write(out, first as u64);
                digits[first..after].iter().for_each(|&d| words::write(out, d));
            }
        });
    }

    /// Reads what [`write`](Self::write) wrote.
    pub(super) fn read(&mut self, group: u32, bytes: &mut &[u8]) -> Result<Superacc<F>> {
        let mut vector = vec![0i64; Superacc::<F>::VECTOR_LEN];
        for counter in &mut vector[F::LIMBS..] {
            *counter = words::read(bytes)?.cast_signed();
        }
        let head = words::read(bytes)?;
        let (negative, after) = (head & 1 == 1, head >> 1);
        if after > F::LIMBS as u64 {
            return Err(damaged("a group's sum has too many digits"));
        }
        let first = if after > 0 { words::read(bytes)? } else { 0 };
        for i in first..after {
            let digit = words::read(bytes)?;
            let most = if i + 1 == F::LIMBS as u64 { i64::MAX as u64 } else { 0xffff_ffff };
            if digit > most {
                return Err(damaged("a digit of a group's sum is too large"));
            }
            let digit = digit.cast_signed();
            vector[i as usize] = if negative { -digit } else { digit };
        }
        if first > 0 && first >= after {
            return Err(damaged("a group's sum has no digits"));
        }
        let acc = Superacc::<F>::from_vector(&vector)
            .ok_or_else(|| damaged("its counters contradict each other"))?;
        self.put(group, acc);
        Ok(acc)
    }

    /// The sums of the same terms, each times `factor`, so many times; `None` if one leaves
    /// its format, or there is no memory for them.
    pub(super) fn scaled(&self, factor: u64, times: u32) -> Option<Self> {
        let mut scaled = Totals { reach: self.reach, ..Totals::new(0) };
        scaled.grow(self.cells.len()).ok()?;
        for group in 0..self.cells.len() as u32 {
            let sum = (0..times).try_fold(self.sum(group), |sum, _| sum.scaled(factor))?;
            scaled.put(group, sum);
        }
        Some(scaled)
    }

    /// Makes this the sum of a group that holds no element.
    fn put(&mut self, group: u32, acc: Superacc<F>) {
        let cell = &mut self.cells[group as usize];
        cell.count = acc.count.cast_unsigned();
        let specials = [acc.nans, acc.pos_infs, acc.neg_infs];
        for (which, &times) in specials.iter().enumerate().filter(|(_, times)| **times > 0) {
            self.special(group, which, times.cast_unsigned());
        }
        let sum = acc.with_canonical(|limbs| Truncated::of_fixed(limbs, F::LSB));
        let zeros = if sum.window == 0 { 0 } else { sum.window.trailing_zeros() };
        let (window, exponent) = (sum.window >> zeros, sum.exponent + zeros as i32);
        if sum.inexact {
            // Its counters are the cell's.
            let mut bare = acc;
            (bare.count, bare.nans, bare.pos_infs, bare.neg_infs) = (0, 0, 0, 0);
            *self.spill(group) = bare;
        } else {
            self.add_elsewhere(group, sum.negative, window, exponent);
        }
    }
}

fn deposit<F: Format>(acc: &mut Superacc<F>, negative: bool, magnitude: u128, exponent: i32) {
    for (half, exponent) in
        [(magnitude as u64, exponent), ((magnitude >> 64) as u64, exponent + 64)]
    {
        if half != 0 {
            acc.deposit(negative, half, exponent);
        }
    }
}

fn deposit_fixed<F: Format, W: Fixed>(acc: &mut Superacc<F>, sum: W, base: i32) {
    let (negative, [low, high]) = sum.magnitude();
    deposit(acc, negative, low, base);
    deposit(acc, negative, high, base + 128);
}
