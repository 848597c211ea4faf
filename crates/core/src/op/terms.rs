//! Terms of `logsumexp`: `e^d` as an integer, in words of 51 bits, which f64
//! arithmetic makes and integers add up. Bounds are proven in `logsumexp.rs`.

use super::double_double::Double;
use super::exponential;
use crate::element::{bf16, f16};
use core::fmt::Debug;

/// Bits from one word of a term to the next.
pub(super) const WORD_BITS: u32 = 51;

/// The most words of a term, and the most cells that are kept.
pub(super) const WORDS: usize = 3;
pub(super) const CELLS: usize = 4;

/// An f64 that rounds, where it is added, to multiples of `2^unit`. It is even
/// there, so that what a tie is rounded to depends on nothing else.
const fn rounder(unit: i32) -> f64 {
    f64::from_bits(((1023 + 52 + unit) as u64) << 52 | 1 << 51)
}

/// The units of the words of a term, which is below `2^24`. A word has 51 bits, and
/// a sign where a rest was rounded to it.
pub(super) const UNITS: [i32; WORDS] = [24 - 51, 24 - 2 * 51, 24 - 3 * 51];
const ROUNDERS: [f64; WORDS] = [rounder(UNITS[0]), rounder(UNITS[1]), rounder(UNITS[2])];

/// Elements whose terms are added up before they go to a state.
pub const BLOCK: usize = 4096;

/// The words of terms, added up: of at most [`BLOCK`] elements,
/// so that none overflows, as a word is below `2^50.4`.
pub(super) type Terms = [i64; WORDS];

/// How the terms of a type of elements are made and kept.
pub trait Exponentials {
    /// The limbs of the sums of all cells.
    type Cells: AsRef<[u64]>
        + AsMut<[u64]>
        + Copy
        + Default
        + PartialEq
        + Debug
        + Send
        + Sync
        + 'static;
    /// How many words a term has.
    const WORDS: usize;
    /// How many cells are kept.
    const CELLS: usize;
    /// How many limbs the sum of a cell has.
    const LIMBS: usize;
    /// What the words of every term have too much, modulo 2^64.
    const OFFSETS: [u64; WORDS];
    /// The words of `e^d`, `|d| <= 16`: the bits of floats near a rounder, which count
    /// units.
    fn words(d: f64) -> [u64; WORDS];
}

macro_rules! in_one_f64 {
    ($($t:ty),*) => {$(
        impl Exponentials for $t {
            type Cells = [u64; 9];
            const WORDS: usize = 2;
            const CELLS: usize = 3;
            const LIMBS: usize = 3;
            const OFFSETS: [u64; WORDS] = [ROUNDERS[0].to_bits(), ROUNDERS[1].to_bits(), 0];

            #[inline(always)]
            fn words(d: f64) -> [u64; WORDS] {
                let (power, p) = exponential::parts(d);
                let first = power.mul_add(p, ROUNDERS[0]);
                let rest = power.mul_add(p, -(first - ROUNDERS[0]));
                [first.to_bits(), (rest + ROUNDERS[1]).to_bits(), 0]
            }
        }
    )*};
}
in_one_f64!(f16, bf16, f32);

impl Exponentials for f64 {
    type Cells = [u64; 16];
    const WORDS: usize = 3;
    const CELLS: usize = 4;
    const LIMBS: usize = 4;
    // The second word is a sum of two.
    const OFFSETS: [u64; WORDS] =
        [ROUNDERS[0].to_bits(), ROUNDERS[1].to_bits().wrapping_mul(2), ROUNDERS[2].to_bits()];

    #[inline(always)]
    fn words(d: f64) -> [u64; WORDS] {
        let e = Double::new(d).exp();
        // All differences are exact (Dekker), and so is `high`: the last place of e.hi
        // is at least 2^-76.
        let first = e.hi + ROUNDERS[0];
        let high = (e.hi - (first - ROUNDERS[0])) + ROUNDERS[1];
        let low = e.lo + ROUNDERS[1];
        let third = (e.lo - (low - ROUNDERS[1])) + ROUNDERS[2];
        [first.to_bits(), high.to_bits().wrapping_add(low.to_bits()), third.to_bits()]
    }
}
