//! Reading memory and nothing else: what reductions are measured against.

use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use warpfold_core::prefetch;
use warpfold_threads::{Pieces, Threads};

/// Vectors loaded in a row.
const VECTORS: usize = 8;
/// Words of a piece of work.
const PIECE: usize = 1 << 18;

struct Read<'a> {
    words: &'a [u64],
}

impl Kernel for Read<'_> {
    type Out = u32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> u32 {
        let row = VECTORS * S::LANES;
        let mut sums = [0u32; 16];
        // SAFETY: only whole rows inside the slice are loaded.
        unsafe {
            let mut lanes = [S::wsplat(0); VECTORS];
            for at in (0..self.words.len() / row * row).step_by(row) {
                let p = self.words.as_ptr().add(at);
                prefetch::ahead(&self.words[at..at + row]);
                for (v, lane) in lanes.iter_mut().enumerate() {
                    *lane = S::wadd(*lane, S::wload(p.add(v * S::LANES).cast()));
                }
            }
            for lane in lanes {
                let mut words = [0u32; 16];
                S::wstore(lane, words.as_mut_ptr());
                sums.iter_mut().zip(words).for_each(|(s, w)| *s = s.wrapping_add(w));
            }
        }
        sums.into_iter().fold(0, u32::wrapping_add)
    }
}

/// Reads every word once, with the widest loads and one integer add each, and
/// hands back a checksum so that the reads cannot be left out.
#[must_use]
pub fn read(words: &[u64], isa: Isa, threads: Threads) -> u32 {
    let pieces = Pieces::new(words.len().div_ceil(PIECE));
    let sums = threads.run(words.len().div_ceil(PIECE), || {
        let mut sum = 0u32;
        while let Some(piece) = pieces.take() {
            let words = &words[piece * PIECE..((piece + 1) * PIECE).min(words.len())];
            sum = sum.wrapping_add(dispatch(isa, Read { words }));
        }
        sum
    });
    sums.into_iter().fold(0, u32::wrapping_add)
}
