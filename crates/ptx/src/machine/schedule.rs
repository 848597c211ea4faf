//! Who runs next.

/// The order in which lanes, warps and blocks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Schedule {
    /// A warp's lanes run together as long as they are in the same place and meet again as soon as they can; warps and blocks
    /// take turns in the order of their numbers. The most orderly run there can be, which hides what goes wrong in others.
    #[default]
    Lockstep,
    /// A block, a warp and a group of lanes are picked by chance, groups are split by chance, and nobody runs long.
    Random {
        /// Runs with equal seeds are equal.
        seed: u64,
    },
    /// Each lane runs alone and as far ahead as it can: until it waits at a barrier or for the other lanes of a mask. Whatever depends on
    /// lanes going together goes wrong.
    Adversarial {
        /// 0: lanes, warps and blocks in ascending order; others permute them.
        seed: u64,
    },
}

/// Numbers by chance: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}
