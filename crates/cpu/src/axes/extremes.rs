//! Smallest and largest elements of many outputs, and where they are.

use super::lanes::Lanes;
use core::marker::PhantomData;
use warpfold_core::Element;
use warpfold_core::element::Key;

/// Which extreme is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Min,
    Max,
    /// The larger magnitude.
    Magnitude,
}

/// The least and the greatest key, NaNs' included.
#[derive(Clone, Copy)]
pub(super) struct Ends<T> {
    pub(super) asked: Asked,
    pub(super) item: PhantomData<T>,
}

impl<T: Element> Lanes for Ends<T> {
    type Item = T;
    type Out = T;
    type A = T::Key;
    type B = T::Key;
    type C = ();
    const START: (T::Key, T::Key, ()) = (T::Key::GREATEST, T::Key::LEAST, ());

    #[inline(always)]
    fn take(a: &mut T::Key, b: &mut T::Key, (): &mut (), x: T, _: u32) {
        let key = x.key();
        *a = (*a).min(key);
        *b = (*b).max(key);
    }

    #[inline(always)]
    fn merge((a, b, ()): &mut (T::Key, T::Key, ()), others: (T::Key, T::Key, ())) {
        *a = (*a).min(others.0);
        *b = (*b).max(others.1);
    }

    #[inline(always)]
    fn answer(&self, (min, max, ()): (T::Key, T::Key, ())) -> Option<T> {
        let (least, greatest) = T::key_range();
        if min < least || max > greatest {
            return None;
        }
        let (min, max) = (T::from_key(min), T::from_key(max));
        Some(match self.asked {
            Asked::Min => min,
            Asked::Max => max,
            // Without the sign bit, bits of floats are in the order of magnitudes.
            Asked::Magnitude => {
                T::from_bits(min.without_sign().max(max.without_sign()).to_bits64())
            }
        })
    }
}

/// The first position of the smallest element, or of the largest; of the first NaN, if
/// there are some.
#[derive(Clone, Copy)]
pub(super) struct First<T, const LARGEST: bool> {
    pub(super) item: PhantomData<T>,
}

/// A key that is better than all others if the element is a NaN.
#[inline(always)]
fn key_of<T: Element, const LARGEST: bool>(x: T) -> T::Key {
    let key = x.key();
    if !T::DTYPE.is_float() {
        return key;
    }
    let (least, greatest) = T::key_range();
    let worst = if LARGEST { T::Key::GREATEST } else { T::Key::LEAST };
    if key < least || key > greatest { worst } else { key }
}

/// Elements of which the best is sought before its position.
const SEARCHED: usize = 1024;
/// Elements that are compared before it is asked whether one is equal.
const COMPARED: usize = 64;
/// Rows of fewer elements keep positions as they go.
const LONG_ROW: usize = 48;

/// The best key, in `N` lanes.
#[inline(always)]
fn best<T: Element, const LARGEST: bool, const N: usize>(items: &[T]) -> T::Key {
    let worst = if LARGEST { T::Key::LEAST } else { T::Key::GREATEST };
    let better = |a: T::Key, b: T::Key| if LARGEST { a.max(b) } else { a.min(b) };
    let mut lanes = [worst; N];
    let mut vectors = items.chunks_exact(N);
    for items in &mut vectors {
        for i in 0..N {
            lanes[i] = better(lanes[i], key_of::<T, LARGEST>(items[i]));
        }
    }
    for (i, &x) in vectors.remainder().iter().enumerate() {
        lanes[i] = better(lanes[i], key_of::<T, LARGEST>(x));
    }
    let mut n = N;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            lanes[i] = better(lanes[i], lanes[i + n]);
        }
    }
    lanes[0]
}

/// Where the first element with this key is, of elements that have it.
#[inline(always)]
fn place<T: Element, const LARGEST: bool>(items: &[T], key: T::Key) -> usize {
    let mut at = 0;
    for part in items.chunks(COMPARED) {
        let mut hit = false;
        for &x in part {
            hit |= key_of::<T, LARGEST>(x) == key;
        }
        if hit {
            return at + part.iter().position(|&x| key_of::<T, LARGEST>(x) == key).unwrap_or(0);
        }
        at += part.len();
    }
    0
}

#[inline(always)]
fn is_better<K: Ord, const LARGEST: bool>(key: K, than: K) -> bool {
    if LARGEST { key > than } else { key < than }
}

impl<T: Element, const LARGEST: bool> Lanes for First<T, LARGEST> {
    type Item = T;
    type Out = u64;
    type A = T::Key;
    // Of elements none of which is better than the worst key, the first is the answer:
    // a position of 0.
    type B = u32;
    type C = ();
    const START: (T::Key, u32, ()) =
        (if LARGEST { T::Key::LEAST } else { T::Key::GREATEST }, 0, ());

    #[inline(always)]
    fn take(a: &mut T::Key, b: &mut u32, (): &mut (), x: T, at: u32) {
        let key = key_of::<T, LARGEST>(x);
        let better = is_better::<_, LARGEST>(key, *a);
        *a = if better { key } else { *a };
        *b = if better { at } else { *b };
    }

    #[inline(always)]
    fn merge(words: &mut (T::Key, u32, ()), others: (T::Key, u32, ())) {
        let equal = others.0 == words.0 && others.1 < words.1;
        if equal || is_better::<_, LARGEST>(others.0, words.0) {
            *words = others;
        }
    }

    #[inline(always)]
    fn row(items: &[T], at: usize) -> Option<(T::Key, u32, ())> {
        // Keys of 64 bits are compared as quickly in one pass: AVX2 has no minimum of them.
        if items.len() < LONG_ROW || size_of::<T>() == 8 {
            return None;
        }
        let mut found: Option<(T::Key, u32, ())> = None;
        let mut start = at;
        for items in items.chunks(SEARCHED) {
            let key = match const { size_of::<T>() } {
                1 => best::<T, LARGEST, 64>(items),
                2 => best::<T, LARGEST, 32>(items),
                _ => best::<T, LARGEST, 32>(items),
            };
            if found.is_none_or(|(best, ..)| is_better::<_, LARGEST>(key, best)) {
                found = Some((key, (start + place::<T, LARGEST>(items, key)) as u32, ()));
            }
            start += items.len();
        }
        found
    }

    #[inline(always)]
    fn spread(b: u32, lane: usize, lanes: usize, at: usize) -> u32 {
        (at + b as usize * lanes + lane) as u32
    }

    #[inline(always)]
    fn answer(&self, (_, at, ()): (T::Key, u32, ())) -> Option<u64> {
        Some(u64::from(at))
    }
}
