//! The counters of a profiler, for a kernel and for each of its lines.
//!
//! If Nsight Compute has the same counter, the documentation of the field names the metric. Counting is addition: the counters of blocks that ran on
//! several threads, merged, are those of one thread.

pub mod banks;
pub mod sectors;

use crate::place::{LANES, Line};
use std::collections::BTreeMap;

/// Requests of one kind to global memory, and what they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Instructions with at least one active lane: `l1tex__t_requests_pipe_lsu_mem_global_op_*.sum`.
    pub requests: u64,
    /// 32-byte sectors touched, each once a request: `l1tex__t_sectors_pipe_lsu_mem_global_op_*.sum`.
    pub sectors: u64,
    /// 128-byte lines touched, each once a request: the tags that the cache looks up.
    pub lines: u64,
    /// Bytes that lanes asked for.
    pub bytes_asked: u64,
}

impl Traffic {
    /// The bytes moved: 32 for each sector.
    #[must_use]
    pub fn bytes_moved(&self) -> u64 {
        self.sectors * sectors::SECTOR
    }

    /// Bytes asked for over bytes moved; above 1 where lanes share bytes, `None` without requests.
    #[must_use]
    pub fn efficiency(&self) -> Option<f64> {
        (self.sectors != 0).then(|| self.bytes_asked as f64 / self.bytes_moved() as f64)
    }

    /// Sectors a request, `None` without requests.
    #[must_use]
    pub fn sectors_per_request(&self) -> Option<f64> {
        (self.requests != 0).then(|| self.sectors as f64 / self.requests as f64)
    }

    /// Counts one warp instruction.
    pub fn add(&mut self, addresses: &[u64; LANES], active: u32, size: u32) {
        if active != 0 {
            let touched = sectors::touched(addresses, active, size);
            self.requests += 1;
            self.sectors += u64::from(touched.sectors);
            self.lines += u64::from(touched.lines);
            self.bytes_asked += u64::from(active.count_ones()) * u64::from(size);
        }
    }

    fn merge(&mut self, other: &Traffic) {
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.lines += other.lines;
        self.bytes_asked += other.bytes_asked;
    }
}

/// Requests of one kind to shared memory, and how long the banks took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Banked {
    /// Instructions with at least one active lane: `smsp__inst_executed_op_shared_*.sum`.
    pub requests: u64,
    /// Passes over the banks: `l1tex__data_pipe_lsu_wavefronts_mem_shared_op_*.sum`.
    pub wavefronts: u64,
    /// Passes beyond those that the bytes need: `l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_*.sum`.
    pub conflicts: u64,
    /// Bytes that lanes asked for.
    pub bytes_asked: u64,
}

impl Banked {
    /// Counts one warp instruction.
    pub fn add(&mut self, addresses: &[u64; LANES], active: u32, size: u32) {
        if active != 0 {
            let passes = banks::wavefronts(addresses, active, size);
            self.requests += 1;
            self.wavefronts += u64::from(passes.taken);
            self.conflicts += u64::from(passes.taken - passes.ideal);
            self.bytes_asked += u64::from(active.count_ones()) * u64::from(size);
        }
    }

    fn merge(&mut self, other: &Banked) {
        self.requests += other.requests;
        self.wavefronts += other.wavefronts;
        self.conflicts += other.conflicts;
        self.bytes_asked += other.bytes_asked;
    }
}

/// Atomics of one memory, and how many lanes used the same address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contended {
    /// Instructions with at least one active lane.
    pub requests: u64,
    /// Read-modify-writes: one for each active lane.
    pub operations: u64,
    /// Instructions by the most lanes that met at one address: `[0]` one lane, `[1]` two, `[2]` three
    /// or four, `[3]` up to eight, `[4]` up to sixteen, `[5]` up to all.
    pub crowds: [u64; 6],
    /// The most lanes that met at one address in one instruction.
    pub largest_crowd: u32,
}

impl Contended {
    /// Counts one warp instruction.
    pub fn add(&mut self, addresses: &[u64; LANES], active: u32) {
        if active != 0 {
            let crowd = largest_crowd(addresses, active);
            self.requests += 1;
            self.operations += u64::from(active.count_ones());
            self.crowds[crowd.next_power_of_two().ilog2() as usize] += 1;
            self.largest_crowd = self.largest_crowd.max(crowd);
        }
    }

    fn merge(&mut self, other: &Contended) {
        self.requests += other.requests;
        self.operations += other.operations;
        for (mine, theirs) in self.crowds.iter_mut().zip(other.crowds) {
            *mine += theirs;
        }
        self.largest_crowd = self.largest_crowd.max(other.largest_crowd);
    }
}

/// The most active lanes that share an address.
#[must_use]
pub fn largest_crowd(addresses: &[u64; LANES], active: u32) -> u32 {
    let mut left = active;
    let mut largest = 0;
    while left != 0 {
        let address = addresses[left.trailing_zeros() as usize];
        let crowd = sectors::mask_where(addresses, left, |a| a == address);
        largest = largest.max(crowd.count_ones());
        left &= !crowd;
    }
    largest
}

/// The counters of one line, or the sums of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Warp instructions: `smsp__inst_executed.sum`, but of PTX, not of machine code.
    pub instructions: u64,
    /// Lanes that executed them: `smsp__thread_inst_executed.sum`, likewise.
    pub lane_instructions: u64,
    /// Branches that warps executed.
    pub branches: u64,
    /// Branches at which the lanes of a warp diverged.
    pub divergent_branches: u64,
    /// Loads from global memory.
    pub global_loads: Traffic,
    /// Stores to global memory.
    pub global_stores: Traffic,
    /// Loads from shared memory.
    pub shared_loads: Banked,
    /// Stores to shared memory.
    pub shared_stores: Banked,
    /// Atomics and reductions in global memory.
    pub global_atomics: Contended,
    /// Atomics and reductions in shared memory.
    pub shared_atomics: Contended,
    /// Barriers that warps reached: of blocks, clusters and arrivals at them.
    pub barriers: u64,
    /// Warp barriers, shuffles, votes and other instructions that converge lanes.
    pub warp_barriers: u64,
}

impl Counters {
    /// Active lanes an instruction, of 32; `None` without instructions.
    #[must_use]
    pub fn active_lanes(&self) -> Option<f64> {
        (self.instructions != 0).then(|| self.lane_instructions as f64 / self.instructions as f64)
    }

    /// Counts an instruction that `active` lanes execute.
    #[inline]
    pub fn execute(&mut self, active: u32) {
        self.instructions += 1;
        self.lane_instructions += u64::from(active.count_ones());
    }

    /// Counts a branch that `taken` of `active` lanes take.
    #[inline]
    pub fn branch(&mut self, active: u32, taken: u32) {
        let taken = taken & active;
        self.branches += 1;
        self.divergent_branches += u64::from(taken != 0 && taken != active);
    }

    /// Adds other counters.
    pub fn merge(&mut self, other: &Counters) {
        self.instructions += other.instructions;
        self.lane_instructions += other.lane_instructions;
        self.branches += other.branches;
        self.divergent_branches += other.divergent_branches;
        self.global_loads.merge(&other.global_loads);
        self.global_stores.merge(&other.global_stores);
        self.shared_loads.merge(&other.shared_loads);
        self.shared_stores.merge(&other.shared_stores);
        self.global_atomics.merge(&other.global_atomics);
        self.shared_atomics.merge(&other.shared_atomics);
        self.barriers += other.barriers;
        self.warp_barriers += other.warp_barriers;
    }
}

/// A kernel's counters by line of its PTX.
///
/// A machine counts by the index of the instruction, without a look-up; the lines are put in at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCounters {
    by_line: BTreeMap<Line, Counters>,
}

impl KernelCounters {
    /// Adds the counters of one instruction.
    pub fn add(&mut self, line: Line, counters: &Counters) {
        self.by_line.entry(line).or_default().merge(counters);
    }

    /// Adds the counters of another part of the same kernel.
    pub fn merge(&mut self, other: &KernelCounters) {
        for (line, counters) in &other.by_line {
            self.add(*line, counters);
        }
    }

    /// The sums over all lines.
    #[must_use]
    pub fn total(&self) -> Counters {
        let mut total = Counters::default();
        self.by_line.values().for_each(|counters| total.merge(counters));
        total
    }

    /// The counters of each line of PTX, in order.
    pub fn by_ptx_line(&self) -> impl Iterator<Item = (Line, &Counters)> {
        self.by_line.iter().map(|(line, counters)| (*line, counters))
    }

    /// The counters of each source line, by file index and line; instructions without one are left out.
    #[must_use]
    pub fn by_source_line(&self) -> BTreeMap<(u32, u32), Counters> {
        let mut lines: BTreeMap<_, Counters> = BTreeMap::new();
        for (line, counters) in &self.by_line {
            if let Some(source) = line.source {
                lines.entry(source).or_default().merge(counters);
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::lanes;
    use proptest::prelude::*;

    #[test]
    fn a_branch_diverges_where_lanes_part() {
        let mut counters = Counters::default();
        for (active, taken) in [(0xff, 0xff), (0xff, 0), (0xff, 0xf), (0xf, 0xff)] {
            counters.branch(active, taken);
        }
        assert_eq!((counters.branches, counters.divergent_branches), (4, 1));
    }

    #[test]
    fn a_request_without_lanes_is_none() {
        let mut counters = Counters::default();
        counters.global_loads.add(&[0; LANES], 0, 4);
        counters.shared_loads.add(&[0; LANES], 0, 4);
        counters.global_atomics.add(&[0; LANES], 0);
        assert_eq!(counters, Counters::default());
        assert_eq!((counters.active_lanes(), counters.global_loads.efficiency()), (None, None));
    }

    #[test]
    fn efficiency_is_bytes_asked_over_bytes_moved() {
        let mut traffic = Traffic::default();
        traffic.add(&core::array::from_fn(|lane| lane as u64 * 8), u32::MAX, 4);
        assert_eq!((traffic.bytes_moved(), traffic.efficiency()), (256, Some(0.5)));
        assert_eq!(traffic.sectors_per_request(), Some(8.0));
    }

    #[test]
    fn crowds_are_counted_by_powers_of_two() {
        let mut contended = Contended::default();
        for group in [1, 2, 3, 4, 16, 17, 32] {
            contended.add(&core::array::from_fn(|lane| (lane / group) as u64), u32::MAX);
        }
        assert_eq!(contended.crowds, [1, 1, 2, 0, 1, 2]);
        assert_eq!((contended.operations, contended.largest_crowd), (224, 32));
    }

    fn counted(requests: &[(Vec<u64>, u32)]) -> KernelCounters {
        let mut kernel = KernelCounters::default();
        for (i, (addresses, active)) in requests.iter().enumerate() {
            let addresses: [u64; LANES] = core::array::from_fn(|lane| addresses[lane] * 4);
            let mut counters = Counters::default();
            counters.execute(*active);
            counters.branch(*active, addresses[0] as u32);
            counters.global_loads.add(&addresses, *active, 4);
            counters.shared_stores.add(&addresses, *active, 4);
            counters.shared_atomics.add(&addresses, *active);
            kernel.add(Line { ptx: i as u32 % 3, source: Some((0, i as u32 % 2)) }, &counters);
        }
        kernel
    }

    proptest! {
        #[test]
        fn the_largest_crowd_is_that_of_a_map(raw in prop::array::uniform32(0_u64..12), active: u32) {
            let mut crowds = BTreeMap::new();
            lanes(active).for_each(|lane| *crowds.entry(raw[lane as usize]).or_insert(0) += 1);
            prop_assert_eq!(largest_crowd(&raw, active), crowds.into_values().max().unwrap_or(0));
        }

        #[test]
        fn counters_of_parts_merge_to_those_of_the_whole(
            requests in prop::collection::vec((prop::collection::vec(0_u64..99, 32), any::<u32>()), 0..12),
            cut in 0_usize..12,
        ) {
            // Lines go by the index, so both parts keep theirs.
            let cut = cut.min(requests.len()) / 6 * 6;
            let mut merged = counted(&requests[..cut]);
            merged.merge(&counted(&requests[cut..]));
            let whole = counted(&requests);
            prop_assert_eq!(merged.total(), whole.total());
            let by_source = whole.by_source_line();
            let mut summed = Counters::default();
            by_source.values().for_each(|c| summed.merge(c));
            prop_assert_eq!(summed, whole.total());
            prop_assert_eq!(merged, whole);
        }
    }
}
