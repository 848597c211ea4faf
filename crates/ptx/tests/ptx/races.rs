//! What races and what does not, hazard by hazard.

use warpfold_ptx::clock::{Engine, Gate, Scope, Strong};
use warpfold_ptx::finding::{Act, Fault, Kind};
use warpfold_ptx::memory::{Races, Request, Target};
use warpfold_ptx::place::{LANES, Line, Place, Warp, lanes};

const ALL: u32 = u32::MAX;
const WHOLE: [u32; 2] = [ALL; 2];
const SHARED: Target = Target::Shared { of: 0 };
/// A word of global memory, and the ticket.
const PARTIAL: u64 = 0x100;
const TICKET: u64 = 0x900;

/// Two warps a block; faults collected.
struct Grid {
    races: Races,
    faults: Vec<Fault>,
    /// The number of the access, which goes for its line.
    step: u32,
}

fn warp(block: u32, warp: u32) -> Warp {
    Warp { block, warp }
}

impl Grid {
    fn new(blocks: u32) -> Grid {
        Grid::of_clusters(blocks, 1)
    }

    fn of_clusters(blocks: u32, cluster: u32) -> Grid {
        let mut races = Races::new(blocks, 64, cluster);
        (0..blocks.min(8)).for_each(|block| races.start_block(block));
        Grid { races, faults: Vec::new(), step: 0 }
    }

    #[expect(clippy::too_many_arguments, reason = "the checker's own, spelt out once")]
    fn step(
        &mut self,
        who: Warp,
        active: u32,
        act: Act,
        target: Target,
        scope: Scope,
        address: impl Fn(u64) -> u64,
        size: u32,
        engine: Option<Engine>,
    ) {
        self.step += 1;
        let addresses: [u64; LANES] = core::array::from_fn(|lane| address(lane as u64));
        let line = Line { ptx: self.step, source: None };
        let request = Request { addresses: &addresses, active, size, act, warp: who, line };
        let faults = &mut self.faults;
        self.races.access(&request, target, scope, engine, &mut |fault| faults.push(fault));
    }

    fn weak(
        &mut self,
        who: Warp,
        active: u32,
        act: Act,
        target: Target,
        address: impl Fn(u64) -> u64,
    ) {
        self.step(who, active, act, target, Scope::System, address, 4, None);
    }

    fn copy(&mut self, who: Warp, active: u32, engine: Engine, address: impl Fn(u64) -> u64) {
        self.step(who, active, Act::AsyncWrite, SHARED, Scope::System, address, 4, Some(engine));
    }

    #[expect(clippy::too_many_arguments, reason = "each test says all that matters to it")]
    fn strong(
        &mut self,
        who: Warp,
        active: u32,
        act: Act,
        target: Target,
        scope: Scope,
        order: (bool, bool),
        address: impl Fn(u64) -> u64,
    ) {
        self.step(who, active, act, target, scope, &address, 4, None);
        let reads = !act.writes() || act == Act::Atomic;
        for lane in lanes(active) {
            let strong =
                Strong { reads, writes: act.writes(), acquires: order.0, releases: order.1, scope };
            self.races.clocks.strong(
                Place::of_lane(who, lane),
                target.key(address(lane.into())),
                strong,
            );
        }
    }

    /// A relaxed strong access to global memory by one lane.
    fn relaxed(&mut self, who: Warp, act: Act, address: u64) {
        self.strong(who, 1, act, Target::Global, Scope::Device, (false, false), |_| address);
    }

    fn fence(&mut self, who: Warp) {
        self.races.clocks.fence(who, 1, Scope::Device);
    }

    fn barrier(&mut self, block: u32) {
        self.races.clocks.sync_block(block, &WHOLE, None);
    }

    fn kinds(&self) -> Vec<Kind> {
        self.faults.iter().map(|f| f.kind).collect()
    }

    #[track_caller]
    fn assert_clean(&self) {
        assert_eq!(self.faults, []);
    }
}

fn own_word(lane: u64) -> u64 {
    lane * 4
}

#[test]
fn a_block_barrier_orders_warps_and_its_absence_is_a_race() {
    for synced in [true, false] {
        let mut grid = Grid::new(1);
        grid.weak(warp(0, 1), ALL, Act::Write, SHARED, |lane| 128 + lane * 4);
        if synced {
            grid.barrier(0);
        }
        grid.weak(warp(0, 0), ALL, Act::Read, SHARED, |lane| 128 + lane * 4);
        assert_eq!(grid.kinds(), if synced { vec![] } else { vec![Kind::Race; 32] });
    }
}

#[test]
fn a_race_names_both_parties() {
    let mut grid = Grid::new(1);
    grid.weak(warp(0, 1), 1 << 5, Act::Write, SHARED, |_| 8);
    grid.weak(warp(0, 0), 1 << 3, Act::Read, SHARED, |_| 8);
    let fault = &grid.faults[0];
    let other = fault.other.unwrap();
    assert_eq!((fault.place, fault.line.ptx), (Place { block: 0, thread: 3 }, 2));
    assert_eq!(
        (other.place, other.line.ptx, other.act),
        (Place { block: 0, thread: 37 }, 1, Some(Act::Write))
    );
}

#[test]
fn a_write_races_with_an_earlier_read() {
    let mut grid = Grid::new(1);
    grid.weak(warp(0, 0), 1, Act::Read, SHARED, own_word);
    grid.weak(warp(0, 1), 1, Act::Write, SHARED, own_word);
    assert_eq!(grid.kinds(), [Kind::Race]);
}

#[test]
fn a_barrier_of_some_warps_orders_only_them() {
    let mut grid = Grid::new(1);
    grid.weak(warp(0, 0), 1, Act::Write, SHARED, own_word);
    grid.races.clocks.sync_block(0, &[ALL, 0], None);
    grid.weak(warp(0, 0), 2, Act::Read, SHARED, |_| 0);
    grid.assert_clean();
    grid.weak(warp(0, 1), 1, Act::Read, SHARED, own_word);
    assert_eq!(grid.kinds(), [Kind::Race]);
}

#[test]
fn lanes_of_a_warp_are_threads() {
    for synced in [true, false] {
        let mut grid = Grid::new(1);
        grid.weak(warp(0, 0), ALL, Act::Write, SHARED, own_word);
        if synced {
            grid.races.clocks.sync_warp(warp(0, 0), ALL);
        }
        grid.weak(warp(0, 0), 0xffff, Act::Read, SHARED, |lane| (lane + 16) * 4);
        assert_eq!(grid.faults.is_empty(), synced);
    }
}

#[test]
fn a_warp_barrier_orders_the_lanes_of_its_mask_only() {
    let mut grid = Grid::new(1);
    grid.weak(warp(0, 0), 1, Act::Write, SHARED, own_word);
    grid.races.clocks.sync_warp(warp(0, 0), 0b11);
    grid.weak(warp(0, 0), 0b10, Act::Read, SHARED, |_| 0);
    grid.assert_clean();
    grid.weak(warp(0, 0), 0b100, Act::Read, SHARED, |_| 0);
    assert_eq!(grid.kinds(), [Kind::Race]);
}

#[test]
fn order_is_transitive_through_different_barriers() {
    let mut grid = Grid::new(1);
    grid.weak(warp(0, 0), 1, Act::Write, SHARED, own_word);
    grid.races.clocks.sync_warp(warp(0, 0), 0b11);
    grid.races.clocks.sync_block(0, &[0b10, 0b1], None);
    grid.races.clocks.sync_warp(warp(0, 1), ALL);
    grid.weak(warp(0, 1), 1 << 31, Act::Write, SHARED, |_| 0);
    grid.assert_clean();
}

#[test]
fn neighbouring_bytes_of_a_word_do_not_race() {
    let mut grid = Grid::new(1);
    grid.step(warp(0, 0), ALL, Act::Write, SHARED, Scope::System, |lane| lane, 1, None);
    grid.assert_clean();
    // But a word over them does, and where pages began with words bytes are told apart as well.
    grid.step(warp(0, 1), 1, Act::Write, SHARED, Scope::System, |_| 4, 4, None);
    grid.weak(warp(0, 1), 1, Act::Write, Target::Global, |_| 0);
    grid.step(warp(0, 0), 1, Act::Read, Target::Global, Scope::System, |_| 4, 1, None);
    grid.step(warp(0, 0), 1, Act::Read, Target::Global, Scope::System, |_| 3, 1, None);
    let places: Vec<_> =
        grid.faults.iter().map(|f| (f.line.ptx, f.access.unwrap().address)).collect();
    assert_eq!(places, [(2, 4), (5, 3)]);
}

#[test]
fn two_lanes_of_one_instruction_race() {
    let mut grid = Grid::new(1);
    grid.weak(warp(0, 0), 0b11, Act::Write, SHARED, |_| 0);
    assert_eq!(grid.kinds(), [Kind::Race]);
    assert!(grid.faults[0].detail.contains("one instruction"));
}

#[test]
fn blocks_that_add_without_atomics_race() {
    let mut grid = Grid::new(2);
    for block in 0..2 {
        grid.weak(warp(block, 0), 1, Act::Read, Target::Global, |_| PARTIAL);
        grid.weak(warp(block, 0), 1, Act::Write, Target::Global, |_| PARTIAL);
    }
    assert_eq!(grid.kinds(), [Kind::Race, Kind::Race]);
}

#[test]
fn atomics_do_not_race_with_each_other_but_with_plain_accesses() {
    let mut grid = Grid::new(2);
    grid.relaxed(warp(0, 0), Act::Atomic, PARTIAL);
    grid.relaxed(warp(1, 0), Act::Atomic, PARTIAL);
    grid.assert_clean();
    grid.weak(warp(0, 1), 1, Act::Read, Target::Global, |_| PARTIAL);
    assert_eq!(grid.kinds(), [Kind::Race]);
}

#[test]
fn a_plain_initial_value_races_with_the_atomics_that_follow_even_if_its_own_lane_goes_first() {
    let mut grid = Grid::new(1);
    grid.weak(warp(0, 0), 1, Act::Write, SHARED, |_| 0);
    grid.strong(warp(0, 0), 0b11, Act::Atomic, SHARED, Scope::Device, (false, false), |_| 0);
    assert_eq!(grid.kinds(), [Kind::Race]);
    assert_eq!(grid.faults[0].place.lane(), 1);
}

#[test]
fn atomics_of_a_blocks_scope_race_between_blocks() {
    let mut grid = Grid::new(2);
    for block in 0..2 {
        grid.strong(
            warp(block, 0),
            0b11,
            Act::Atomic,
            Target::Global,
            Scope::Block,
            (false, false),
            |_| PARTIAL,
        );
    }
    assert_eq!(grid.kinds()[0], Kind::NarrowScope);
    assert_eq!(grid.faults[0].place.block, 1);
}

#[test]
fn a_volatile_warp_tail_without_warp_barriers_is_found() {
    for (target, synced) in
        [(SHARED, true), (SHARED, false), (Target::Global, true), (Target::Global, false)]
    {
        let mut grid = Grid::new(1);
        let tail = |grid: &mut Grid, act, shift: u64| {
            grid.strong(warp(0, 0), ALL, act, target, Scope::System, (false, false), |lane| {
                (lane + shift) * 4
            });
            if synced {
                grid.races.clocks.sync_warp(warp(0, 0), ALL);
            }
        };
        for half in [16, 8, 4, 2, 1] {
            tail(&mut grid, Act::VolatileRead, half);
            tail(&mut grid, Act::VolatileRead, 0);
            tail(&mut grid, Act::VolatileWrite, 0);
        }
        assert_eq!(grid.faults.is_empty(), synced, "{target:?}");
        assert!(grid.faults.iter().all(|f| f.kind == Kind::UnorderedVolatile));
    }
}

/// A volatile access of another warp comes between, in order with the first one, and does not hide it.
#[test]
fn a_volatile_flag_of_another_warp_does_not_stand_for_a_lanes_access() {
    let volatile = |grid: &mut Grid, who, lanes, act| {
        grid.strong(who, lanes, act, Target::Global, Scope::System, (false, false), |_| PARTIAL);
    };
    let mut grid = Grid::new(1);
    volatile(&mut grid, warp(0, 0), 1, Act::VolatileRead);
    // Only lane 0 of the first warp waits for the second one.
    grid.races.clocks.sync_block(0, &[1, ALL], None);
    volatile(&mut grid, warp(0, 1), 1, Act::VolatileWrite);
    assert!(grid.faults.is_empty());
    volatile(&mut grid, warp(0, 0), 2, Act::VolatileWrite);
    assert_eq!(grid.kinds(), [Kind::UnorderedVolatile]);
    assert_eq!(grid.faults[0].place.lane(), 1);
    assert_eq!(grid.faults[0].other.map(|other| other.place.lane()), Some(0));
}

#[test]
fn volatile_flags_in_global_memory_are_strong_accesses() {
    let mut grid = Grid::new(2);
    grid.strong(
        warp(0, 0),
        1,
        Act::VolatileWrite,
        Target::Global,
        Scope::System,
        (false, false),
        |_| PARTIAL,
    );
    grid.strong(
        warp(1, 0),
        1,
        Act::VolatileRead,
        Target::Global,
        Scope::System,
        (false, false),
        |_| PARTIAL,
    );
    grid.assert_clean();
}

/// Which parts of the ticket pattern are there.
#[derive(Clone, Copy)]
struct TicketParts {
    writers_fence: bool,
    readers_fence: bool,
}

/// Blocks write partials, take a ticket, and the last reads them all with a warp that learns of its luck through shared memory.
fn ticket(blocks: u32, parts: TicketParts) -> Grid {
    let mut grid = Grid::new(blocks);
    for block in 0..blocks {
        if block >= 8 {
            grid.races.start_block(block);
        }
        let leader = warp(block, 0);
        let target = Target::Shared { of: block };
        grid.weak(leader, 1, Act::Write, Target::Global, |_| PARTIAL + u64::from(block) * 4);
        if parts.writers_fence {
            grid.fence(leader);
        }
        grid.relaxed(leader, Act::Atomic, TICKET << 20);
        let last = block + 1 == blocks;
        if last && parts.readers_fence {
            grid.fence(leader);
        }
        grid.weak(leader, 1, Act::Write, target, |_| 0);
        grid.barrier(block);
        grid.weak(warp(block, 1), ALL, Act::Read, target, |_| 0);
        if last {
            for first in (0..blocks).step_by(32) {
                let active = ALL >> (32 - (blocks - first).min(32));
                let partial = |lane| PARTIAL + (u64::from(first) + lane) * 4;
                grid.weak(warp(block, 1), active, Act::Read, Target::Global, partial);
            }
            // Resets the counter for the next launch: after all tickets, since it saw them.
            grid.weak(leader, 1, Act::Write, Target::Global, |_| TICKET << 20);
        }
        grid.races.end_block(block, &mut |_| {});
    }
    grid
}

#[test]
fn the_ticket_pattern_passes_for_thousands_of_blocks() {
    let grid = ticket(5000, TicketParts { writers_fence: true, readers_fence: true });
    grid.assert_clean();
    assert_eq!(grid.races.forgotten(), 0);
}

#[test]
fn a_ticket_without_the_writers_fence_races() {
    let grid = ticket(4, TicketParts { writers_fence: false, readers_fence: true });
    assert_eq!(grid.kinds(), [Kind::Race; 3]);
    assert!(grid.faults.iter().all(|f| f.access.unwrap().act == Act::Read));
}

#[test]
fn a_ticket_without_the_readers_fence_races() {
    let grid = ticket(4, TicketParts { writers_fence: true, readers_fence: false });
    assert_eq!(grid.kinds(), [Kind::Race; 3]);
}

/// One block writes, sets a flag; another sees the flag and reads.
fn message(release: (bool, Scope), acquire: (bool, Scope)) -> bool {
    let mut grid = Grid::new(2);
    grid.weak(warp(0, 0), 1, Act::Write, Target::Global, |_| PARTIAL);
    grid.strong(
        warp(0, 0),
        1,
        Act::StrongWrite,
        Target::Global,
        Scope::Device,
        (false, false),
        |_| TICKET,
    );
    grid.strong(
        warp(0, 0),
        1,
        Act::StrongWrite,
        Target::Global,
        release.1,
        (false, release.0),
        |_| TICKET,
    );
    grid.strong(
        warp(1, 0),
        1,
        Act::StrongRead,
        Target::Global,
        acquire.1,
        (acquire.0, false),
        |_| TICKET,
    );
    grid.weak(warp(1, 0), 1, Act::Read, Target::Global, |_| PARTIAL);
    grid.faults.is_empty()
}

#[test]
fn release_and_acquire_order_where_both_are_there_with_wide_enough_scopes() {
    let device = Scope::Device;
    assert!(message((true, device), (true, Scope::System)));
    assert!(!message((false, device), (true, device)));
    assert!(!message((true, device), (false, device)));
    assert!(!message((true, Scope::Block), (true, device)));
    assert!(!message((true, device), (true, Scope::Block)));
}

#[test]
fn a_block_wide_fence_does_not_reach_another_block() {
    for (scope, clean) in [(Scope::Block, false), (Scope::Device, true)] {
        let mut grid = Grid::new(2);
        grid.weak(warp(0, 0), 1, Act::Write, Target::Global, |_| PARTIAL);
        grid.races.clocks.fence(warp(0, 0), 1, scope);
        grid.relaxed(warp(0, 0), Act::StrongWrite, TICKET);
        grid.relaxed(warp(1, 0), Act::StrongRead, TICKET);
        grid.fence(warp(1, 0));
        grid.weak(warp(1, 0), 1, Act::Read, Target::Global, |_| PARTIAL);
        assert_eq!(grid.faults.is_empty(), clean);
    }
}

#[test]
fn a_write_after_the_fence_is_not_released() {
    let mut grid = Grid::new(2);
    grid.fence(warp(0, 0));
    grid.weak(warp(0, 0), 1, Act::Write, Target::Global, |_| PARTIAL);
    grid.relaxed(warp(0, 0), Act::StrongWrite, TICKET);
    grid.relaxed(warp(1, 0), Act::StrongRead, TICKET);
    grid.fence(warp(1, 0));
    grid.weak(warp(1, 0), 1, Act::Read, Target::Global, |_| PARTIAL);
    assert_eq!(grid.kinds(), [Kind::Race]);
}

#[test]
fn atomics_hand_on_what_a_value_carried_and_stores_do_not() {
    for (between, clean) in [(Act::Atomic, true), (Act::StrongWrite, false)] {
        let mut grid = Grid::new(3);
        grid.weak(warp(0, 0), 1, Act::Write, Target::Global, |_| PARTIAL);
        grid.fence(warp(0, 0));
        grid.relaxed(warp(0, 0), Act::StrongWrite, TICKET);
        grid.relaxed(warp(1, 0), between, TICKET);
        grid.relaxed(warp(2, 0), Act::StrongRead, TICKET);
        grid.fence(warp(2, 0));
        grid.weak(warp(2, 0), 1, Act::Read, Target::Global, |_| PARTIAL);
        assert_eq!(grid.faults.is_empty(), clean, "{between}");
    }
}

#[test]
fn a_grid_barrier_made_of_atomics_orders_all_blocks() {
    let blocks = 6;
    let mut grid = Grid::new(blocks);
    for round in 0..3_u32 {
        for block in 0..blocks {
            grid.weak(warp(block, 0), ALL, Act::Write, Target::Global, |lane| {
                u64::from(block + round) % 6 * 128 + lane * 4
            });
        }
        for block in 0..blocks {
            grid.barrier(block);
            grid.fence(warp(block, 0));
            grid.relaxed(warp(block, 0), Act::Atomic, TICKET << 8);
        }
        for block in 0..blocks {
            grid.relaxed(warp(block, 0), Act::StrongRead, TICKET << 8);
            grid.fence(warp(block, 0));
            grid.barrier(block);
        }
    }
    grid.assert_clean();
}

#[test]
fn an_asynchronous_copy_is_seen_after_the_wait_and_by_others_after_a_barrier() {
    let (who, copier) = (warp(0, 0), Engine::Copy);
    let mut grid = Grid::new(1);
    grid.copy(who, 1, copier, own_word);
    grid.races.clocks.commit_copies(who, 1, copier);
    grid.weak(who, 1, Act::Read, SHARED, own_word);
    assert_eq!(grid.kinds(), [Kind::Race]);

    let mut grid = Grid::new(1);
    grid.copy(who, 1, copier, own_word);
    grid.races.clocks.commit_copies(who, 1, copier);
    grid.copy(who, 1, copier, |_| 4);
    grid.races.clocks.commit_copies(who, 1, copier);
    // All but the latest group.
    grid.races.clocks.wait_copies(who, 1, copier, 1);
    grid.weak(who, 1, Act::Read, SHARED, |_| 0);
    grid.assert_clean();
    grid.weak(who, 1, Act::Read, SHARED, |_| 4);
    grid.weak(who, 2, Act::Read, SHARED, |_| 0);
    assert_eq!(grid.kinds(), [Kind::Race, Kind::Race]);

    let mut grid = Grid::new(1);
    grid.copy(who, ALL, copier, own_word);
    grid.races.clocks.wait_all_copies(who, ALL, copier);
    grid.barrier(0);
    grid.weak(warp(0, 1), ALL, Act::Read, SHARED, own_word);
    grid.assert_clean();
}

#[test]
fn a_copy_comes_after_what_its_lane_did_and_not_before_what_it_does_next() {
    let who = warp(0, 0);
    let mut grid = Grid::new(1);
    grid.weak(who, 1, Act::Write, SHARED, own_word);
    grid.copy(who, 1, Engine::Bulk, own_word);
    grid.assert_clean();
    grid.weak(who, 1, Act::Write, SHARED, own_word);
    assert_eq!(grid.kinds(), [Kind::Race]);
}

#[test]
fn who_waits_at_an_mbarrier_sees_the_bulk_copy() {
    let mut grid = Grid::new(1);
    let mut gate = Gate::default();
    grid.copy(warp(0, 0), 1, Engine::Bulk, own_word);
    grid.races.clocks.complete_copies(&mut gate, warp(0, 0), 1, Engine::Bulk);
    grid.races.clocks.depart(&gate, warp(0, 1), 0b10);
    grid.weak(warp(0, 1), 0b10, Act::Read, SHARED, |_| 0);
    grid.assert_clean();
    grid.weak(warp(0, 1), 0b100, Act::Read, SHARED, |_| 0);
    assert_eq!(grid.kinds(), [Kind::Race]);
}

#[test]
fn who_only_arrives_is_seen_but_sees_nothing() {
    let mut grid = Grid::new(1);
    let mut gate = Gate::default();
    grid.weak(warp(0, 0), 1, Act::Write, SHARED, |_| 0);
    grid.weak(warp(0, 1), 1, Act::Write, SHARED, |_| 4);
    grid.races.clocks.arrive(&mut gate, warp(0, 0), ALL);
    grid.weak(warp(0, 0), 1, Act::Write, SHARED, |_| 8);
    grid.races.clocks.sync_block(0, &[0, ALL], Some(&gate));
    grid.weak(warp(0, 1), 1, Act::Read, SHARED, |_| 0);
    grid.assert_clean();
    grid.weak(warp(0, 1), 1, Act::Read, SHARED, |_| 8);
    grid.weak(warp(0, 0), 1, Act::Read, SHARED, |_| 4);
    assert_eq!(grid.kinds(), [Kind::Race, Kind::Race]);
}

#[test]
fn a_cluster_barrier_orders_the_shared_memory_of_its_blocks() {
    for waits in [true, false] {
        let mut grid = Grid::of_clusters(4, 2);
        let mut gate = Gate::default();
        grid.weak(warp(0, 0), ALL, Act::Write, SHARED, own_word);
        for block in 0..2 {
            (0..2).for_each(|w| grid.races.clocks.arrive(&mut gate, warp(block, w), ALL));
        }
        if waits {
            (0..2).for_each(|w| grid.races.clocks.depart(&gate, warp(1, w), ALL));
        }
        grid.weak(warp(1, 1), ALL, Act::Read, SHARED, own_word);
        assert_eq!(grid.faults.is_empty(), waits);
    }
}

#[test]
fn a_block_of_a_cluster_ends_after_what_others_did_in_its_memory() {
    for (arrives, waits) in [(true, true), (true, false), (false, true)] {
        let mut grid = Grid::of_clusters(4, 2);
        let mut gate = Gate::default();
        grid.weak(warp(1, 1), 1, Act::Read, SHARED, |_| 12);
        if arrives {
            grid.races.clocks.arrive(&mut gate, warp(1, 1), ALL);
        }
        if waits {
            grid.races.clocks.depart(&gate, warp(0, 1), ALL);
        }
        let faults = &mut grid.faults;
        grid.races.end_block(0, &mut |fault| faults.push(fault));
        assert_eq!(grid.kinds().is_empty(), arrives && waits);
        // Who comes later finds nothing there.
        grid.faults.clear();
        grid.weak(warp(1, 0), ALL, Act::Write, SHARED, own_word);
        assert_eq!(grid.kinds(), [Kind::Freed]);
    }
}

#[test]
fn a_word_that_everyone_reads_may_be_written_behind_a_barrier() {
    for synced in [true, false] {
        let mut grid = Grid::new(1);
        for w in 0..2 {
            grid.weak(warp(0, w), ALL, Act::Read, SHARED, |_| 0);
        }
        if synced {
            grid.barrier(0);
        }
        grid.weak(warp(0, 0), 1, Act::Write, SHARED, |_| 0);
        assert_eq!(grid.faults.is_empty(), synced);
    }
}

/// Bytes of shadow for each of `len` bytes of a buffer that single lanes access one by one.
fn shadow_of_bytes(len: u64, active: u32) -> usize {
    let mut grid = Grid::new(1);
    let mut most = 0;
    let lanes = u64::from(active.count_ones());
    for first in (0..len).step_by(lanes as usize) {
        let byte = |lane| first + lane % lanes;
        grid.step(warp(0, 0), active, Act::Read, Target::Global, Scope::System, byte, 1, None);
        grid.step(warp(0, 1), 0b11, Act::Read, Target::Global, Scope::System, |_| first, 1, None);
        most = most.max(if first % 4096 == 0 { grid.races.bytes() } else { 0 });
    }
    grid.assert_clean();
    most
}

#[test]
fn shadow_takes_at_most_sixteen_bytes_for_one() {
    let len = 4 << 20;
    let constant = 24 << 20;
    for active in [ALL, 1] {
        let bytes = shadow_of_bytes(len, active) as u64;
        assert!(bytes <= 16 * len + constant, "{bytes} bytes for {len}, mask {active:#x}");
    }
}

#[test]
fn a_long_loop_over_little_memory_takes_little() {
    let mut grid = Grid::new(1);
    for round in 0..400_000_u64 {
        let who = warp(0, (round % 2) as u32);
        grid.weak(who, ALL, Act::Write, SHARED, own_word);
        grid.barrier(0);
    }
    assert!(grid.races.bytes() < 32 << 20, "{}", grid.races.bytes());
    grid.weak(warp(0, 0), 1, Act::Read, SHARED, own_word);
    grid.assert_clean();
    // What was renumbered is still known by its right name.
    grid.races.clocks.sync_warp(warp(0, 0), ALL);
    grid.weak(warp(0, 1), 1, Act::Write, SHARED, own_word);
    assert_eq!(grid.faults[0].other.unwrap().line.ptx, 400_001);
}

#[test]
fn a_crowd_of_readers_is_remembered_up_to_a_bound() {
    let blocks = 4000;
    let mut grid = Grid::new(blocks);
    for block in 0..blocks {
        if block >= 8 {
            grid.races.start_block(block);
        }
        grid.weak(warp(block, 0), ALL, Act::Read, Target::Global, |_| PARTIAL);
        if block + 1 < blocks {
            grid.races.end_block(block, &mut |_| {});
        }
    }
    assert!(grid.races.forgotten() > 0);
    grid.weak(warp(blocks - 1, 1), 1, Act::Write, Target::Global, |_| PARTIAL);
    assert_eq!(grid.kinds(), [Kind::Race]);
}

/// Where memory is short the oldest half goes, not everything.
#[test]
fn the_latest_accesses_are_remembered_longest() {
    let mut grid = Grid::new(1);
    let len = 1 << 20;
    let read = |grid: &mut Grid, who, at| {
        grid.step(who, 1, Act::Read, Target::Global, Scope::System, |_| at, 1, None);
    };
    for at in 0..len {
        read(&mut grid, warp(0, 0), at);
        read(&mut grid, warp(0, 1), at);
    }
    assert!(grid.races.forgotten() > 0);
    let mut races = |first: u64| {
        let before = grid.faults.len();
        for at in first..first + 1000 {
            grid.step(warp(0, 0), 2, Act::Write, Target::Global, Scope::System, |_| at, 1, None);
        }
        grid.faults.len() - before
    };
    let found: Vec<usize> = (0..len / (1 << 16)).map(|at| races(at << 16)).collect();
    assert_eq!((found[0], *found.last().unwrap()), (0, 1000), "{found:?}");
    assert!(found.is_sorted(), "{found:?}");
}

#[test]
fn a_plain_store_beside_a_flag_leaves_the_flags_release_alone() {
    let mut grid = Grid::new(2);
    let beside = TICKET + 4;
    grid.relaxed(warp(0, 0), Act::StrongWrite, beside);
    grid.weak(warp(0, 0), 1, Act::Write, Target::Global, |_| PARTIAL);
    grid.fence(warp(0, 0));
    grid.relaxed(warp(0, 0), Act::StrongWrite, TICKET);
    grid.weak(warp(0, 0), 1, Act::Write, Target::Global, |_| beside);
    grid.relaxed(warp(1, 0), Act::StrongRead, TICKET);
    grid.fence(warp(1, 0));
    grid.weak(warp(1, 0), 1, Act::Read, Target::Global, |_| PARTIAL);
    grid.assert_clean();
}
