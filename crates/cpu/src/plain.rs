//! Plain sums, which round at every addition, and reading memory: what exact sums are measured against.

use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use core::num::Wrapping;
use core::ops::Add;
use warpfold_core::prefetch;
use warpfold_threads::{Pieces, Threads};

/// Lanes that add side by side.
const LANES: usize = 64;
/// Elements of a piece of work.
const PIECE: usize = 1 << 18;

struct Plain<'a, T> {
    items: &'a [T],
}

impl<T: Copy + Default + Add<Output = T>> Kernel for Plain<'_, T> {
    type Out = T;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> T {
        let mut lanes = [T::default(); LANES];
        let (chunks, rest) = self.items.as_chunks::<LANES>();
        for xs in chunks {
            prefetch::ahead(xs);
            for l in 0..LANES {
                lanes[l] = lanes[l] + xs[l];
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = *lane + x;
        }
        lanes.into_iter().fold(T::default(), Add::add)
    }
}

/// The sum by plain additions. Each of them rounds, and which thread adds what decides
/// the order: the last digits differ from call to call. Reductions never use it.
#[must_use]
pub fn plain_sum<T>(items: &[T], isa: Isa, threads: Threads) -> T
where
    T: Copy + Default + Add<Output = T> + Send + Sync,
{
    let pieces = Pieces::new(items.len().div_ceil(PIECE));
    let sums = threads.run(items.len().div_ceil(PIECE), || {
        let mut sum = T::default();
        while let Some(piece) = pieces.take() {
            let items = &items[piece * PIECE..((piece + 1) * PIECE).min(items.len())];
            sum = sum + dispatch(isa, Plain { items });
        }
        sum
    });
    sums.into_iter().fold(T::default(), Add::add)
}

/// Reads every word once, with the widest loads and one integer add each, and hands back a checksum so
/// that the reads cannot be left out: what reductions are measured against.
#[must_use]
pub fn read(words: &[u64], isa: Isa, threads: Threads) -> u64 {
    let words: &[Wrapping<u64>] = bytemuck::cast_slice(words);
    plain_sum(words, isa, threads).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_added_once() {
        for n in [0, 1, 63, 64, 65, PIECE - 1, PIECE, 3 * PIECE + 77] {
            // Integers of which no partial sum rounds.
            let items: Vec<f64> = (0..n).map(|i| (i % 1021) as f64 - 300.0).collect();
            let sum: f64 = items.iter().sum();
            for isa in Isa::available() {
                assert_eq!(plain_sum(&items, isa, Threads::Exactly(2)), sum, "{n}, {isa:?}");
            }
        }
    }
}
