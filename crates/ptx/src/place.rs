//! Positions of execution: threads, warps and lanes, as findings and counters name
//! them.

pub use crate::ir::Line;
use core::fmt;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// One thread of a grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The block, counted linearly through the grid.
    pub block: u32,
    /// The thread, counted linearly through its block.
    pub thread: u32,
}

impl Place {
    /// The lane `lane` of a warp.
    #[must_use]
    pub fn of_lane(warp: Warp, lane: u32) -> Place {
        Place { block: warp.block, thread: warp.warp * LANES as u32 + lane }
    }

    /// The warp the thread belongs to.
    #[must_use]
    pub fn warp(self) -> Warp {
        Warp { block: self.block, warp: self.thread / LANES as u32 }
    }

    /// The thread's number in its warp.
    #[must_use]
    pub fn lane(self) -> u32 {
        self.thread % LANES as u32
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (warp, lane) = (self.warp().warp, self.lane());
        write!(f, "block {}, thread {} (warp {warp}, lane {lane})", self.block, self.thread)
    }
}

/// One warp of a grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Warp {
    /// The block, counted linearly through the grid.
    pub block: u32,
    /// The warp in its block: the thread's linear number over 32.
    pub warp: u32,
}

/// The lanes named by a mask, lowest first.
pub fn lanes(mut mask: u32) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        (mask != 0).then(|| {
            mask &= mask - 1;
            lane
        })
    })
}
