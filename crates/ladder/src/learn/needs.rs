//! What lessons are about: a right kernel without it is not a solution.

use super::flight::bytes_in_flight;
use crate::attempt::Counts;
use crate::baselines::{COUNTED, Counter};
use crate::occupancy::{Block, multiprocessor};
use warpfold_ptx::count::Traffic;
use warpfold_ptx::info::info;

/// What is counted over 10007 elements in blocks of 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A counter may have this much.
    AtMost(Counter, u64),
    /// Every warp folds its 32 lanes by shuffles, in at least five steps.
    Shuffles,
    /// Loads of 16 bytes a lane.
    WideLoads,
    /// So many grids are launched from the device.
    Launches(usize),
    /// A multiprocessor of compute capability 9.0, full of such blocks, has so many bytes of loads on their way.
    InFlight(u64),
}

/// The multiprocessor whose bytes in flight are computed, and what PTX does not tell of a thread.
const CAPABILITY: (u32, u32) = (9, 0);
const REGISTERS: u32 = 32;

impl Need {
    /// What a solution must have, as a sentence goes on behind "it".
    #[must_use]
    pub fn told(self) -> String {
        match self {
            Need::AtMost(counter, most) => format!("may have {most} {} at most", counter.name()),
            Need::Shuffles => "must fold every warp by shuffles".into(),
            Need::WideLoads => "must load 16 bytes a lane".into(),
            Need::Launches(wanted) => format!("must launch {wanted} grids from the device"),
            Need::InFlight(bytes) => format!(
                "must have {} KiB of loads on their way in a multiprocessor of compute capability 9.0",
                bytes >> 10
            ),
        }
    }

    /// What a kernel that counts this does instead; nothing if it has what is needed.
    pub(super) fn missed(self, ptx: &str, kernel: &str, tile: u64, of: &Counts) -> Option<String> {
        let counters = &of.counters;
        match self {
            Need::AtMost(counter, most) => {
                let found = counter.of(counters);
                (found > most)
                    .then(|| format!("it has {found} {}, and {most} are enough", counter.name()))
            }
            Need::Shuffles => {
                let warps = COUNTED.0.div_ceil(tile) * u64::from(COUNTED.1 / 32);
                let has = ptx.contains("shfl.sync") && counters.warp_barriers / warps >= 5;
                (!has)
                    .then(|| "its warps do not fold by shuffles, which this lesson is about".into())
            }
            Need::WideLoads => {
                let Traffic { bytes_asked, requests, .. } = counters.global_loads;
                let lane = bytes_asked as f64 / (requests.max(1) * 32) as f64;
                // The ragged end has fewer.
                (lane < 12.0)
                    .then(|| format!("its loads ask for {lane:.1} bytes a lane, and not for 16"))
            }
            Need::Launches(wanted) => (of.launches != wanted)
                .then(|| format!("its grids launch {} grids, and not {wanted}", of.launches)),
            Need::InFlight(wanted) => {
                let (a_thread, blocks) = in_flight(ptx, kernel)?;
                let found = u64::from(blocks) * u64::from(COUNTED.1) * a_thread;
                (found < wanted).then(|| {
                    format!(
                        "a multiprocessor holds {blocks} of its blocks of {} threads, each with {a_thread} bytes on their way: {} of {} KiB",
                        COUNTED.1,
                        found >> 10,
                        wanted >> 10
                    )
                })
            }
        }
    }
}

/// Bytes of loads that a thread has on their way at most, and how many such blocks a multiprocessor holds; nothing of PTX that cannot be
/// read.
fn in_flight(ptx: &str, kernel: &str) -> Option<(u64, u32)> {
    let found = info(ptx).ok()?;
    let function = found.functions.iter().find(|function| function.name == kernel)?;
    let shared = u32::try_from(function.static_shared?).ok()?;
    let block = Block { threads: COUNTED.1, registers: REGISTERS, shared };
    let blocks = multiprocessor(CAPABILITY)?.occupancy(block).ok()?.blocks;
    Some((bytes_in_flight(ptx, kernel), blocks))
}
