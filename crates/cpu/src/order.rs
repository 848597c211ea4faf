//! Smallest and largest elements, by their integer keys.
//!
//! Integer comparisons of order-preserving keys are immune to flush-to-zero,
//! put -0 below +0 and show NaNs as keys outside the range of the infinities.
//! Positions take the two zeros for equal.

use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use warpfold_core::Element;
use warpfold_core::element::Key;
use warpfold_core::prefetch;

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
        ends::<_, _, true>(self.items, |x: T| x.key())
    }
}

/// The least key, and the greatest if `BOTH` are wanted.
#[inline(always)]
pub(crate) fn ends<T: Copy, K: Key, const BOTH: bool>(items: &[T], key: impl Fn(T) -> K) -> (K, K) {
    // Lanes for four lines of a cache: vectors enough to keep all units busy.
    match size_of::<T>() {
        1 => ends_in_lanes::<T, K, 256, BOTH>(items, key),
        2 => ends_in_lanes::<T, K, 128, BOTH>(items, key),
        4 => ends_in_lanes::<T, K, 64, BOTH>(items, key),
        _ => ends_in_lanes::<T, K, 32, BOTH>(items, key),
    }
}

/// Plain loops: integer minima are what compilers vectorise best. As many elements as there are
/// lanes are asked for ahead together: processors wait if more lines are asked for at once than they
/// have buffers for.
#[inline(always)]
fn ends_in_lanes<T: Copy, K: Key, const N: usize, const BOTH: bool>(
    items: &[T],
    key: impl Fn(T) -> K,
) -> (K, K) {
    let (mut least, mut greatest, mut rest) = (K::GREATEST, K::LEAST, items);
    if let Some(last) = items.len().checked_sub(N) {
        let (mut min, mut max) = ([K::GREATEST; N], [K::LEAST; N]);
        let helps = prefetch::is_wanted();
        rest = &[];
        for first in (0..items.len()).step_by(N) {
            // The last group has some of the elements before it, which change nothing.
            let group = &items[first.min(last)..][..N];
            if helps {
                prefetch::ahead_always(group);
            }
            for i in 0..N {
                let key = key(group[i]);
                min[i] = min[i].min(key);
                if BOTH {
                    max[i] = max[i].max(key);
                }
            }
        }
        let mut half = N / 2;
        while half > 0 {
            for i in 0..half {
                min[i] = min[i].min(min[i + half]);
                max[i] = max[i].max(max[i + half]);
            }
            half /= 2;
        }
        (least, greatest) = (min[0], max[0]);
    }
    for &x in rest {
        let key = key(x);
        least = least.min(key);
        greatest = greatest.max(key);
    }
    (least, greatest)
}

/// Summarises a run.
pub(crate) fn summarise<T: Element>(items: &[T], isa: Isa) -> Summary<T::Key> {
    let (min, max) = dispatch(isa, KeyRange { items });
    let (low, high) = T::key_range();
    let none = items.is_empty() || (min >= low && max <= high);
    // Not compiled for integers.
    if const { T::DTYPE.is_float() } && !none {
        return dispatch(isa, WithoutNans { items });
    }
    Summary { min, max, nans: 0, first_nan: None }
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
