//! Schedules: which lanes run next.

/// The order in which lanes, warps and blocks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Schedule {
    /// The lanes of a warp run together while they are at the same instruction, and reconverge as soon as they can. Warps and blocks take turns in
    /// the order of their numbers. This is the most regular order, and it hides faults that show in others.
    #[default]
    Lockstep,
    /// A block, a warp and a group of lanes are picked at random, groups are split at random, and each runs for a short time.
    Random {
        /// Runs with equal seeds are equal.
        seed: u64,
    },
    /// Each lane runs alone and as far ahead as it can: until it waits at a barrier or for the other lanes of a mask. Code that relies on lanes in
    /// step fails.
    Adversarial {
        /// 0: lanes, warps and blocks in ascending order; others permute them.
        seed: u64,
    },
}

/// Random numbers: SplitMix64.
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
