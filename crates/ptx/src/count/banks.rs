//! How many passes over the banks of shared memory one warp instruction takes.
//!
//! There are 32 banks of one 4-byte word each; word `w` lies in bank `w % 32`. In one
//! pass (a wavefront) each bank serves one word, to any number of lanes. So a pass count
//! is the largest number of different words in one bank.
//!
//! A pass returns one register for each lane, so elements of 8 bytes are served by half-warps and those of 16 bytes by quarter-warps. Two
//! halves, or the two quarters of a half, go together if lanes pair up: every active lane has the address of
//! the active lane whose number differs in bit 0, or every one that of the lane that differs in bit 1. (So a broadcast of 8 bytes is one pass, of 16 bytes
//! two.) The vendor documents the rule for words only; this is what its engineers say in public of compute capability 7.0
//! and later.
//!
//! *Ideal* are the passes that the different words would need if they were spread evenly
//! over the banks; what is beyond that is bank conflicts.

use crate::place::{LANES, lanes};

/// Banks, each a 4-byte word wide.
pub const BANKS: usize = 32;

/// Words that one instruction wants at most: four from each lane.
const MOST_WORDS: usize = LANES * 4;

/// The passes of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// Those it takes.
    pub taken: u32,
    /// Those it would take without conflicts.
    pub ideal: u32,
}

/// The passes that the active lanes' accesses take, each with `size` bytes (1, 2, 4, 8, 16 or 32) from its address.
#[must_use]
pub fn wavefronts(addresses: &[u64; LANES], active: u32, size: u32) -> Passes {
    let per_lane = size.div_ceil(4);
    // The lanes that may go together: all, or a half-warp for elements of 16 bytes.
    let together = (LANES as u32).min(64 / per_lane.max(1));
    let mut passes = Passes::default();
    for first in (0..LANES as u32).step_by(together as usize) {
        let all = active & group(first, together);
        if per_lane == 1 || pair_up(addresses, all) {
            passes.add(&Words::of(addresses, all, per_lane));
        } else {
            let half = group(first, together / 2);
            passes.add(&Words::of(addresses, all & half, per_lane));
            passes.add(&Words::of(addresses, all & !half, per_lane));
        }
    }
    passes
}

/// The mask of `n` lanes from `first` on.
fn group(first: u32, n: u32) -> u32 {
    (u32::MAX >> (LANES as u32 - n)) << first
}

/// Whether all lanes have the address of their active neighbour in bit 0, or all that of the one in bit 1.
fn pair_up(addresses: &[u64; LANES], active: u32) -> bool {
    [1, 2].into_iter().any(|bit| {
        lanes(active).all(|lane| {
            let other = lane ^ bit;
            active >> other & 1 == 0 || addresses[lane as usize] == addresses[other as usize]
        })
    })
}

impl Passes {
    fn add(&mut self, words: &Words) {
        self.taken += words.depth();
        self.ideal += (words.len as u32).div_ceil(BANKS as u32);
    }
}

/// Different words.
struct Words {
    words: [u64; MOST_WORDS],
    len: usize,
}

impl Words {
    fn of(addresses: &[u64; LANES], active: u32, per_lane: u32) -> Words {
        let mut all = Words { words: [0; MOST_WORDS], len: 0 };
        for lane in lanes(active) {
            for i in 0..u64::from(per_lane) {
                all.words[all.len] = addresses[lane as usize] / 4 + i;
                all.len += 1;
            }
        }
        all.sort_out();
        all
    }

    fn sort_out(&mut self) {
        let words = &mut self.words[..self.len];
        // Mostly they come in order.
        if !words.is_sorted() {
            words.sort_unstable();
        }
        let mut kept = 0;
        for i in 0..words.len() {
            if i == 0 || words[i] != words[i - 1] {
                words[kept] = words[i];
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// The most words in one bank.
    fn depth(&self) -> u32 {
        let mut banks = [0; BANKS];
        for word in &self.words[..self.len] {
            banks[(word % BANKS as u64) as usize] += 1;
        }
        banks.into_iter().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn strided(stride: u64) -> [u64; LANES] {
        core::array::from_fn(|lane| lane as u64 * stride)
    }

    fn passes(addresses: &[u64; LANES], active: u32, size: u32) -> (u32, u32) {
        let passes = wavefronts(addresses, active, size);
        (passes.taken, passes.taken - passes.ideal)
    }

    #[test]
    fn a_stride_of_words_conflicts_by_its_power_of_two() {
        for words in 1..=32_u64 {
            let ways = 1 << words.trailing_zeros();
            assert_eq!(passes(&strided(words * 4), u32::MAX, 4), (ways, ways - 1), "{words}");
        }
    }

    #[test]
    fn a_word_read_by_all_is_one_pass() {
        assert_eq!(passes(&[64; LANES], u32::MAX, 4), (1, 0));
    }

    #[test]
    fn bytes_and_halves_of_one_word_do_not_conflict() {
        assert_eq!(passes(&strided(1), u32::MAX, 1), (1, 0));
        assert_eq!(passes(&strided(2), u32::MAX, 2), (1, 0));
    }

    #[test]
    fn wide_elements_in_a_row_take_the_passes_that_their_bytes_need() {
        assert_eq!(passes(&strided(8), u32::MAX, 8), (2, 0));
        assert_eq!(passes(&strided(16), u32::MAX, 16), (4, 0));
    }

    #[test]
    fn wide_elements_conflict_within_their_part_of_the_warp() {
        assert_eq!(passes(&strided(16), u32::MAX, 8), (4, 2));
        assert_eq!(passes(&strided(128), u32::MAX, 16), (32, 28));
    }

    #[test]
    fn parts_whose_lanes_pair_up_go_together() {
        let pairs = |size: u64| core::array::from_fn(|lane| lane as u64 / 2 * size);
        let crossed =
            |size: u64| core::array::from_fn(|lane| (lane as u64 / 4 * 2 + lane as u64 % 2) * size);
        assert_eq!(passes(&[32; LANES], u32::MAX, 8), (1, 0));
        assert_eq!(passes(&[32; LANES], u32::MAX, 16), (2, 0));
        assert_eq!(passes(&pairs(8), u32::MAX, 8), (1, 0));
        assert_eq!(passes(&crossed(8), u32::MAX, 8), (1, 0));
        assert_eq!(passes(&pairs(16), u32::MAX, 16), (2, 0));
        // Halves that read the same without pairing up.
        let halves = core::array::from_fn(|lane| lane as u64 % 16 * 8);
        assert_eq!(passes(&halves, u32::MAX, 8), (2, 0));
    }

    #[test]
    fn lanes_that_sit_out_want_no_bank() {
        assert_eq!(passes(&strided(128), 0b11, 4), (2, 1));
        assert_eq!(passes(&strided(8), 0xffff, 8), (1, 0));
        assert_eq!(passes(&strided(8), 0, 8), (0, 0));
    }

    /// The passes of lanes that go together, from sets.
    fn naive(addresses: &[u64; LANES], these: &[u32], size: u32) -> (u32, u32) {
        let mut banks: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for &lane in these {
            for byte in 0..u64::from(size) {
                let word = (addresses[lane as usize] + byte) / 4;
                banks.entry(word % 32).or_default().insert(word);
            }
        }
        let deepest = banks.values().map(BTreeSet::len).max().unwrap_or(0);
        let words: usize = banks.values().map(BTreeSet::len).sum();
        (deepest as u32, words.div_ceil(32) as u32)
    }

    proptest! {
        #[test]
        fn passes_are_the_deepest_bank_of_each_part(
            raw in prop::array::uniform32(0_u64..2048), active: u32, power in 0_u32..5, alike in 0_usize..4,
        ) {
            let size = 1_u32 << power;
            let aligned = raw.map(|a| a / u64::from(size) * u64::from(size));
            // Lanes that differ in these bits have one address.
            let addresses: [u64; LANES] = core::array::from_fn(|lane| aligned[lane & !alike]);
            let (mut taken, mut ideal) = (0, 0);
            let width = if size <= 4 { 32 } else { 256 / size };
            for first in (0..32).step_by(width as usize) {
                let of = |from: u32, n: u32| -> Vec<u32> { lanes(active).filter(|l| (from..from + n).contains(l)).collect() };
                let all = of(first, width);
                let alike = |bit: u32| {
                    let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b)));
                    pairs.into_iter().all(|(a, b)| a ^ b != bit || addresses[a as usize] == addresses[b as usize])
                };
                let parts = if size <= 4 || alike(1) || alike(2) {
                    vec![all]
                } else {
                    vec![of(first, width / 2), of(first + width / 2, width / 2)]
                };
                for part in parts {
                    let (t, i) = naive(&addresses, &part, size);
                    (taken, ideal) = (taken + t, ideal + i);
                }
            }
            prop_assert_eq!(wavefronts(&addresses, active, size), Passes { taken, ideal });
        }
    }
}
