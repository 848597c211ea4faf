//! Smallest and largest elements, by their integer keys.
//!
//! Integer comparisons of order-preserving keys are immune to flush-to-zero,
//! put -0 below +0 and show NaNs as keys outside the range of the infinities.
//! Positions take the two zeros for equal.

use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use warpfold_core::element::Key;
use warpfold_core::prefetch;
use warpfold_core::{DType, Element};

/// What a run holds: NaNs are counted and otherwise left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary<K> {
    /// The least key of an element that is not NaN; `GREATEST` if there is none.
    pub(crate) min: K,
    /// The greatest key of an element that is not NaN; `LEAST` if there is none.
    pub(crate) max: K,
    /// How many NaNs there are.
    pub(crate) nans: u64,
    /// Where the first NaN is.
    pub(crate) first_nan: Option<usize>,
}

/// The extremes of all keys, NaNs' included.
struct KeyRange<'a, T> {
    items: &'a [T],
}

impl<T: Element> Kernel for KeyRange<'_, T> {
    type Out = (T::Key, T::Key);

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> (T::Key, T::Key) {
        // Plain loops over a few vectors' worth of lanes: integer minima and
        // maxima are what compilers vectorise best.
        #[inline(always)]
        fn lanes<T: Element, const N: usize>(items: &[T]) -> (T::Key, T::Key) {
            let mut min = [T::Key::GREATEST; N];
            let mut max = [T::Key::LEAST; N];
            let mut rows = items.chunks_exact(N);
            for row in &mut rows {
                prefetch::ahead(row);
                for i in 0..N {
                    let key = row[i].key();
                    min[i] = min[i].min(key);
                    max[i] = max[i].max(key);
                }
            }
            for (i, x) in rows.remainder().iter().enumerate() {
                min[i] = min[i].min(x.key());
                max[i] = max[i].max(x.key());
            }
            let mut n = N;
            while n > 1 {
                n /= 2;
                for i in 0..n {
                    min[i] = min[i].min(min[i + n]);
                    max[i] = max[i].max(max[i + n]);
                }
            }
            (min[0], max[0])
        }
        match size_of::<T>() {
            1 => lanes::<T, 128>(self.items),
            2 => lanes::<T, 64>(self.items),
            4 => lanes::<T, 32>(self.items),
            // SAFETY: the caller has the instructions.
            _ => unsafe { self.long::<S>() },
        }
    }
}

impl<T: Element> KeyRange<'_, T> {
    /// The extremes of keys of 64 bits, which compilers compare one by one where a
    /// minimum takes two instructions.
    #[inline(always)]
    unsafe fn long<S: Simd>(self) -> (T::Key, T::Key) {
        /// Vectors of a row.
        const VECTORS: usize = 4;
        let step = S::LANES;
        let flip = if T::DTYPE == DType::U64 { 1u64 << 63 } else { 0 };
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        let mut rows = self.items.chunks_exact(VECTORS * step);
        // SAFETY: rows are whole vectors; the buffers hold the widest vector.
        unsafe {
            let flips = S::dsplat(flip);
            let ordered = |p: *const T| {
                let x = S::wload(p.cast());
                if T::DTYPE.is_float() { S::dkey(x) } else { S::wxor(x, flips) }
            };
            let (mut min, mut max) =
                ([S::dsplat(i64::MAX as u64); 2], [S::dsplat(i64::MIN as u64); 2]);
            for row in &mut rows {
                prefetch::ahead(row);
                let p = row.as_ptr();
                let [a, b] = [ordered(p), ordered(p.add(step))];
                let [c, d] = [ordered(p.add(2 * step)), ordered(p.add(3 * step))];
                min = [S::dmin(min[0], a), S::dmin(min[1], b)];
                max = [S::dmax(max[0], a), S::dmax(max[1], b)];
                min = [S::dmin(min[0], c), S::dmin(min[1], d)];
                max = [S::dmax(max[0], c), S::dmax(max[1], d)];
            }
            for (min, max) in [(min[0], max[0]), (min[1], max[1])] {
                let mut words = [[0u32; 16]; 2];
                S::wstore(min, words[0].as_mut_ptr());
                S::wstore(max, words[1].as_mut_ptr());
                let [mins, maxs]: [[i64; 8]; 2] = bytemuck::must_cast(words);
                low = mins[..step].iter().fold(low, |low, &key| low.min(key));
                high = maxs[..step].iter().fold(high, |high, &key| high.max(key));
            }
        }
        // Back to the type's own keys: both maps are their own inverses.
        let key = |ordered: i64| {
            let sign = if T::DTYPE.is_float() { ordered >> 63 } else { 0 };
            let bits = ordered.cast_unsigned() ^ (sign.cast_unsigned() >> 1) ^ flip;
            T::from_bits(bits).key()
        };
        let rest = rows.remainder().iter().map(|x| x.key());
        rest.fold((key(low), key(high)), |(low, high), key| (low.min(key), high.max(key)))
    }
}

/// Summarises a run.
pub(crate) fn summarise<T: Element>(items: &[T], isa: Isa) -> Summary<T::Key> {
    let (min, max) = dispatch(isa, KeyRange { items });
    let (low, high) = T::key_range();
    if items.is_empty() || (min >= low && max <= high) {
        return Summary { min, max, nans: 0, first_nan: None };
    }
    dispatch(isa, WithoutNans { items })
}

/// The summary of a run that holds a NaN.
struct WithoutNans<'a, T> {
    items: &'a [T],
}

impl<T: Element> Kernel for WithoutNans<'_, T> {
    type Out = Summary<T::Key>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Summary<T::Key> {
        // Rows are taken in without a branch; only the first one with a NaN is searched.
        const ROW: usize = 32;
        let (low, high) = T::key_range();
        let (mut min, mut max) = ([T::Key::GREATEST; ROW], [T::Key::LEAST; ROW]);
        let (mut nans, mut first_nan) = (0, None);
        macro_rules! take {
            ($row:expr, $len:expr, $start:expr) => {
                let (row, mut here) = ($row, 0u32);
                for i in 0..$len {
                    let key = row[i].key();
                    let nan = (key < low) | (key > high);
                    here += u32::from(nan);
                    min[i] = min[i].min(if nan { T::Key::GREATEST } else { key });
                    max[i] = max[i].max(if nan { T::Key::LEAST } else { key });
                }
                if here > 0 && first_nan.is_none() {
                    first_nan = row.iter().position(|x| x.is_nan()).map(|i| $start + i);
                }
                nans += u64::from(here);
            };
        }
        let (rows, rest) = self.items.as_chunks::<ROW>();
        for (place, row) in rows.iter().enumerate() {
            take!(row, ROW, place * ROW);
        }
        take!(rest, rest.len(), rows.len() * ROW);
        let min = min.into_iter().fold(T::Key::GREATEST, |a, b| a.min(b));
        let max = max.into_iter().fold(T::Key::LEAST, |a, b| a.max(b));
        Summary { min, max, nans, first_nan }
    }
}

/// Finds the first element that equals a key's, as -0 equals +0.
struct Find<'a, T: Element> {
    items: &'a [T],
    key: T::Key,
}

impl<T: Element> Kernel for Find<'_, T> {
    type Out = Option<usize>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<usize> {
        // A whole row is compared without a branch; only the row with the hit
        // is searched.
        const ROW: usize = 64;
        let key = T::numeric(self.key);
        let mut at = 0;
        for row in self.items.chunks(ROW) {
            let hit = row.iter().fold(false, |hit, x| hit | (T::numeric(x.key()) == key));
            if hit {
                return row.iter().position(|x| T::numeric(x.key()) == key).map(|i| at + i);
            }
            at += row.len();
        }
        None
    }
}

/// The index of the first element that equals the one whose key is `key`.
pub(crate) fn position<T: Element>(items: &[T], key: T::Key, isa: Isa) -> Option<usize> {
    dispatch(isa, Find { items, key })
}
