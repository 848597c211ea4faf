//! How many pieces of global memory one warp instruction touches.
//!
//! A load or store instruction is one request, whatever the width of its
//! elements; the cache takes it apart into 128-byte lines (tags) and moves the 32-byte
//! sectors that any active lane touches, each once. Lanes that ask for the same
//! sector share it. With elements of 8 or 16 bytes a full warp asks for 256 or 512 bytes, 8
//! or 16 sectors at least; Nsight Compute still counts one request.

use crate::place::{LANES, lanes};

/// Bytes of a sector.
pub const SECTOR: u64 = 32;
/// Bytes of a cache line.
pub const LINE: u64 = 128;

/// The pieces that one request touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Different 32-byte sectors.
    pub sectors: u32,
    /// Different 128-byte lines.
    pub lines: u32,
}

/// The active lanes whose address has a property.
#[inline]
pub(crate) fn mask_where(addresses: &[u64; LANES], active: u32, is: impl Fn(u64) -> bool) -> u32 {
    let mut mask = 0;
    for (lane, &address) in addresses.iter().enumerate() {
        mask |= u32::from(is(address)) << lane;
    }
    mask & active
}

/// The sectors and lines that the active lanes touch, each with `size` bytes from its address.
#[must_use]
pub fn touched(addresses: &[u64; LANES], active: u32, size: u32) -> Touched {
    let mut all = Touched::default();
    let mut left = active;
    // By lines: the sectors of a line are four bits. An access that is aligned to its size, at most a sector, touches one.
    while left != 0 {
        let line = addresses[left.trailing_zeros() as usize] / LINE;
        let here = mask_where(addresses, left, |a| a / LINE == line);
        let mut touched = 0_u32;
        for lane in lanes(here) {
            touched |= 1 << (addresses[lane as usize] % LINE / SECTOR);
        }
        all.sectors += touched.count_ones();
        all.lines += 1;
        left &= !here;
    }
    assert!(u64::from(size) <= SECTOR, "an access of {size} bytes");
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn strided(stride: u64, offset: u64) -> [u64; LANES] {
        core::array::from_fn(|lane| 0x7000 + offset + lane as u64 * stride)
    }

    fn sectors(addresses: &[u64; LANES], size: u32) -> (u32, u32) {
        let touched = touched(addresses, u32::MAX, size);
        (touched.sectors, touched.lines)
    }

    #[test]
    fn neighbouring_words_are_four_sectors() {
        assert_eq!(sectors(&strided(4, 0), 4), (4, 1));
    }

    #[test]
    fn a_shift_by_a_word_costs_a_sector_and_a_line() {
        assert_eq!(sectors(&strided(4, 4), 4), (5, 2));
    }

    #[test]
    fn strides_cost_sectors_until_each_lane_has_its_own() {
        let counts = [1, 2, 4, 8, 16, 32].map(|words| sectors(&strided(words * 4, 0), 4));
        assert_eq!(counts, [(4, 1), (8, 2), (16, 4), (32, 8), (32, 16), (32, 32)]);
    }

    #[test]
    fn vectors_of_two_and_four_words_are_still_one_request() {
        assert_eq!(sectors(&strided(8, 0), 8), (8, 2));
        assert_eq!(sectors(&strided(16, 0), 16), (16, 4));
    }

    #[test]
    fn a_broadcast_is_one_sector() {
        assert_eq!(sectors(&[0x7004; LANES], 4), (1, 1));
    }

    proptest! {
        #[test]
        fn sectors_and_lines_are_sets_of_addresses(
            raw in prop::array::uniform32(0_u64..4096), active: u32, power in 0_u32..5,
        ) {
            let size = 1 << power;
            let addresses = raw.map(|a| a / u64::from(size) * u64::from(size));
            let pieces = |piece: u64| -> u32 {
                let bytes = lanes(active).flat_map(|l| (0..u64::from(size)).map(move |b| (l, b)));
                let set: BTreeSet<u64> = bytes.map(|(l, b)| (addresses[l as usize] + b) / piece).collect();
                set.len() as u32
            };
            let expected = Touched { sectors: pieces(SECTOR), lines: pieces(LINE) };
            prop_assert_eq!(touched(&addresses, active, size), expected);
        }
    }
}
