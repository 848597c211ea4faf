//! Counting elements that are not zero, and NaNs; folding bits.

use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use warpfold_core::Element;
use warpfold_core::prefetch;

/// Numbers of elements of two sorts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Elements that are not zero, NaNs included.
    pub(crate) nonzero: u64,
    /// NaNs.
    pub(crate) nans: u64,
}

struct Count<'a, T> {
    items: &'a [T],
}

/// A count of a lane, as wide as the elements: comparisons give masks of that
/// width, which need not be converted.
trait Lane: Copy + Into<u64> {
    const ZERO: Self;
    /// How many elements a lane can count.
    const MOST: usize;
    /// One more if `hit`; at most [`MOST`](Self::MOST) times.
    fn count(&mut self, hit: bool);
}

macro_rules! lane {
    ($($t:ty),*) => {$(
        impl Lane for $t {
            const ZERO: $t = 0;
            const MOST: usize = if size_of::<$t>() < 4 { <$t>::MAX as usize } else { 1 << 30 };
            #[inline(always)]
            fn count(&mut self, hit: bool) {
                *self = self.wrapping_add(<$t>::from(hit));
            }
        }
    )*};
}
lane!(u8, u16, u32, u64);

impl<T: Element> Kernel for Count<'_, T> {
    type Out = Counted;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Counted {
        match size_of::<T>() {
            1 => self.in_lanes::<u8, 128>(),
            2 => self.in_lanes::<u16, 64>(),
            4 => self.in_lanes::<u32, 32>(),
            _ => self.in_lanes::<u64, 16>(),
        }
    }
}

impl<T: Element> Count<'_, T> {
    #[inline(always)]
    fn in_lanes<C: Lane, const ROW: usize>(self) -> Counted {
        let mut counted = Counted::default();
        let zero = T::from_bits(0).without_sign();
        let (_, infinity) = T::key_range();
        for piece in self.items.chunks(C::MOST.saturating_mul(ROW)) {
            let mut lanes = [[C::ZERO; ROW]; 2];
            let mut rows = piece.chunks_exact(ROW);
            let mut add = |i: usize, x: &T| {
                let magnitude = x.without_sign();
                lanes[0][i].count(magnitude != zero);
                if T::DTYPE.is_float() {
                    lanes[1][i].count(magnitude > infinity);
                }
            };
            for row in &mut rows {
                prefetch::ahead(row);
                for (i, x) in row.iter().enumerate() {
                    add(i, x);
                }
            }
            for (i, x) in rows.remainder().iter().enumerate() {
                add(i, x);
            }
            for (&nonzero, &nans) in lanes[0].iter().zip(&lanes[1]) {
                counted.nonzero += Into::<u64>::into(nonzero);
                counted.nans += Into::<u64>::into(nans);
            }
        }
        counted
    }
}

/// Counts a run. Of integers only their size matters.
pub(crate) fn count<T: Element>(items: &[T], isa: Isa) -> Counted {
    match size_of::<T>() {
        _ if const { T::DTYPE.is_float() } => dispatch(isa, Count { items }),
        1 => dispatch(isa, Count::<u8> { items: bytemuck::cast_slice(items) }),
        2 => dispatch(isa, Count::<u16> { items: bytemuck::cast_slice(items) }),
        4 => dispatch(isa, Count::<u32> { items: bytemuck::cast_slice(items) }),
        _ => dispatch(isa, Count::<u64> { items: bytemuck::cast_slice(items) }),
    }
}

/// Integers of so many bytes.
struct FoldBits<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl Kernel for FoldBits<'_> {
    type Out = [u64; 3];

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> [u64; 3] {
        // A row of 64 bytes is eight words whatever the type: bits do not mix.
        const WORDS: usize = 8;
        let FoldBits { bytes, size } = self;
        let mut and = [u64::MAX; WORDS];
        let mut or = [0u64; WORDS];
        let mut xor = [0u64; WORDS];
        let mut rows = bytes.chunks_exact(8 * WORDS);
        for row in &mut rows {
            prefetch::ahead(row);
            for i in 0..WORDS {
                let mut word = [0; 8];
                word.copy_from_slice(&row[8 * i..8 * i + 8]);
                let word = u64::from_le_bytes(word);
                and[i] &= word;
                or[i] |= word;
                xor[i] ^= word;
            }
        }
        // The rest, with bits behind it that change nothing.
        let (rest, mut last) = (rows.remainder(), [[0xffu8; 8 * WORDS], [0; 8 * WORDS]]);
        last.iter_mut().for_each(|row| row[..rest.len()].copy_from_slice(rest));
        let [ones, zeros]: [[u64; WORDS]; 2] = bytemuck::must_cast(last);
        for i in 0..WORDS {
            and[i] &= u64::from_le(ones[i]);
            or[i] |= u64::from_le(zeros[i]);
            xor[i] ^= u64::from_le(zeros[i]);
        }
        let width = 8 * size;
        let mask = u64::MAX >> (64 - width);
        let mut folded = [mask, 0, 0];
        for i in 0..WORDS {
            for shift in (0..64).step_by(width) {
                folded[0] &= and[i] >> shift;
                folded[1] |= (or[i] >> shift) & mask;
                folded[2] ^= (xor[i] >> shift) & mask;
            }
        }
        folded
    }
}

/// The bitwise and, or and exclusive or of a run of integers.
pub(crate) fn fold_bits<T: Element>(items: &[T], isa: Isa) -> [u64; 3] {
    dispatch(isa, FoldBits { bytes: bytemuck::cast_slice(items), size: size_of::<T>() })
}
