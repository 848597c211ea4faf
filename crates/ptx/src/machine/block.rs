//! A block: its warps, its memory, and the barriers its threads meet at.

use super::lanes::Register;
use super::launch::Shape;
use super::mbarrier::Mbarrier;
use super::program::{Constant, Program, along};
use super::space::SYSTEM_SHARED;
use super::warp::{Wait, Warp};
use crate::clock::Gate;
use crate::finding::Space;
use crate::ir::{Line, Special};
use crate::memory::{MemoryError, Region};
use crate::place::{LANES, Place};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of local memory that are taken as uninitialised at once.
const LOCAL_PIECE: u32 = 16;

/// Named barriers of a block.
pub(crate) const BARRIERS: usize = 16;

/// A block's shared memory, which the others of its cluster reach, too.
pub(crate) struct Shared {
    pub(crate) block: u32,
    pub(crate) region: Region,
    pub(crate) mbarriers: RefCell<BTreeMap<u64, Mbarrier>>,
}

/// What the blocks of a cluster share.
#[derive(Default)]
pub(crate) struct Cluster {
    /// Arrivals of the present round, and rounds that are complete.
    pub(crate) arrived: u32,
    pub(crate) rounds: u32,
    /// Threads that have not ended.
    pub(crate) live: u32,
    pub(crate) present: Gate,
    pub(crate) complete: Gate,
}

impl Cluster {
    /// Ends the round if everybody who lives has arrived.
    pub(crate) fn settle(&mut self) {
        if self.arrived > 0 && self.arrived >= self.live {
            self.arrived = 0;
            self.rounds += 1;
            self.complete = self.present.clone();
        }
    }
}

/// The memories a block reaches besides the device's.
pub(crate) struct BlockMemory {
    pub(crate) index: u32,
    pub(crate) rank: u32,
    pub(crate) shared: Rc<Shared>,
    /// Of the cluster's blocks, by rank; empty without a cluster.
    pub(crate) peers: Vec<Rc<Shared>>,
    pub(crate) local: Region,
}

impl BlockMemory {
    /// Takes some of a thread's local memory, from a multiple of 16 on, as uninitialised.
    pub(crate) fn forget_local(&self, thread: u32, first: u64, end: u64) {
        let start = self.local.start(thread);
        if self.local.bytes().is_tracked() {
            for at in (first..end).step_by(LOCAL_PIECE as usize) {
                self.local.bytes().set_undefined(start + at as usize, LOCAL_PIECE, u32::MAX);
            }
        }
    }

    /// The shared memory that an address with this rank field means.
    pub(crate) fn shared_of(&self, rank_field: u64) -> Option<&Rc<Shared>> {
        match rank_field {
            0 => Some(&self.shared),
            1 if self.peers.is_empty() => Some(&self.shared),
            rank => self.peers.get(rank as usize - 1),
        }
    }
}

/// The state of a named barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedBarrier {
    /// Lanes of each warp that wait, and that have arrived without waiting.
    pub(crate) waiting: Vec<u32>,
    pub(crate) arrived: Vec<u32>,
    /// Threads that the first one asked for: `Some(None)` for all.
    pub(crate) expected: Option<Option<u32>>,
    /// Who came first, and where.
    pub(crate) first: Option<(Place, Line)>,
    pub(crate) gate: Gate,
}

impl NamedBarrier {
    /// Whether anybody has come.
    pub(crate) fn is_in_use(&self) -> bool {
        self.expected.is_some()
    }

    fn clear(&mut self) {
        self.waiting.fill(0);
        self.arrived.fill(0);
        self.expected = None;
        self.first = None;
    }
}

/// A resident block.
pub(crate) struct Block {
    pub(crate) memory: BlockMemory,
    pub(crate) cluster: Rc<RefCell<Cluster>>,
    pub(crate) warps: Vec<Warp>,
    pub(crate) barriers: Vec<NamedBarrier>,
    position: [u32; 3],
    /// It has begun before: constant slots that are the same for all blocks are filled.
    used: bool,
}

impl Block {
    /// Room for a block of a launch.
    pub(crate) fn new(program: &Program, shape: &Shape, track: bool) -> Result<Block, MemoryError> {
        let bytes = program.static_shared as usize + shape.shared as usize;
        let shared = Shared {
            block: 0,
            region: Region::new(Space::Shared, bytes, track)?.from_address(SYSTEM_SHARED),
            mbarriers: RefCell::default(),
        };
        let warps = shape.warps() as usize;
        let barrier = NamedBarrier {
            waiting: vec![0; warps],
            arrived: vec![0; warps],
            ..NamedBarrier::default()
        };
        Ok(Block {
            memory: BlockMemory {
                index: 0,
                rank: 0,
                shared: Rc::new(shared),
                peers: Vec::new(),
                local: Region::local(program.local_bytes as usize, shape.threads(), track)?,
            },
            cluster: Rc::default(),
            warps: (0..warps).map(|_| Warp::new()).collect(),
            barriers: vec![barrier; BARRIERS],
            position: [0; 3],
            used: false,
        })
    }

    /// Begins a block of the grid. Its memory must not be shared with a cluster any more.
    pub(crate) fn begin(
        &mut self,
        index: u32,
        program: &Program,
        shape: &Shape,
        arguments: &[u8],
        workspace: u64,
    ) {
        let [x, y, _] = shape.grid;
        self.position = [index % x, index / x % y, index / x / y];
        self.memory.index = index;
        self.memory.peers.clear();
        if let Some(shared) = Rc::get_mut(&mut self.memory.shared) {
            shared.block = index;
            shared.region.reset();
            shared.mbarriers.get_mut().clear();
        }
        if program.local_bytes > 0 {
            self.memory.local.reset();
        }
        self.barriers.iter_mut().for_each(NamedBarrier::clear);
        let threads = shape.threads();
        let seat = Seat { workspace, ..Seat::new(self.position, shape, index) };
        self.memory.rank = seat.rank;
        self.cluster = Rc::default();
        self.cluster.borrow_mut().live = threads;
        for (w, warp) in self.warps.iter_mut().enumerate() {
            let first = (w * LANES) as u32;
            let exists = u32::MAX >> (LANES as u32).saturating_sub(threads - first).min(31);
            warp.begin(program, exists, shape.cluster.is_some());
            for (slot, constant) in program.constants.iter().enumerate() {
                if self.used && !matches!(constant, Constant::Special(_)) {
                    continue;
                }
                warp.registers[slot] = match *constant {
                    Constant::Bits(bits) => [bits; LANES],
                    Constant::Argument { offset, bytes, signed, register_bits } => {
                        [argument(arguments, offset, bytes, signed, register_bits); LANES]
                    }
                    Constant::Special(special) => seat.special(special, w as u32, program, shape),
                };
            }
        }
        self.used = true;
    }

    /// Whether every thread has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.warps.iter().all(|warp| warp.groups.is_empty())
    }

    /// Whether a thread can run.
    pub(crate) fn has_ready(&self) -> bool {
        self.warps.iter().any(|warp| warp.groups.iter().any(|g| g.wait == Wait::Ready))
    }

    /// Lets those go on who waited for a round of the cluster's barrier that is complete. Whether there were any.
    pub(crate) fn wake_from_cluster(&mut self) -> bool {
        let rounds = self.cluster.borrow().rounds;
        let mut woken = false;
        for warp in &mut self.warps {
            for group in &mut warp.groups {
                let lane = group.mask.trailing_zeros() as usize % LANES;
                if group.wait == Wait::Cluster && warp.cluster_arrivals[lane] <= rounds {
                    // The wait itself runs again and finds its round complete.
                    group.wait = Wait::Ready;
                    woken = true;
                }
            }
        }
        woken
    }

    /// Empties a barrier for its next use.
    pub(crate) fn clear_barrier(&mut self, id: usize) -> NamedBarrier {
        let barrier = &mut self.barriers[id];
        let next = NamedBarrier {
            waiting: vec![0; barrier.waiting.len()],
            arrived: vec![0; barrier.arrived.len()],
            ..NamedBarrier::default()
        };
        core::mem::replace(barrier, next)
    }
}

/// A kernel's argument as a register.
fn argument(arguments: &[u8], offset: u32, bytes: u8, signed: bool, register_bits: u8) -> u64 {
    let at = offset as usize;
    let mut raw = [0; 8];
    raw[..bytes as usize].copy_from_slice(&arguments[at..at + bytes as usize]);
    let value = u64::from_le_bytes(raw);
    extend(value, u32::from(bytes) * 8, signed, register_bits.into())
}

/// A value from memory as a register of this many bits.
#[inline(always)]
pub(crate) fn extend(value: u64, bits: u32, signed: bool, register_bits: u32) -> u64 {
    if !signed {
        return value;
    }
    crate::value::int::sign_extend(value, bits) as u64
        & (u64::MAX >> (64 - register_bits.clamp(1, 64)))
}

/// A block's place in the grid and in its cluster.
struct Seat {
    block: [u32; 3],
    cluster: [u32; 3],
    within: [u32; 3],
    size: [u32; 3],
    rank: u32,
    index: u32,
    /// Where the barrier of a cooperative grid lies; 0 without one.
    workspace: u64,
}

impl Seat {
    fn new(block: [u32; 3], shape: &Shape, index: u32) -> Seat {
        let size = shape.cluster.unwrap_or([1; 3]);
        let cluster = core::array::from_fn(|i| block[i] / size[i]);
        let within: [u32; 3] = core::array::from_fn(|i| block[i] % size[i]);
        let rank = within[0] + size[0] * (within[1] + size[1] * within[2]);
        Seat { block, cluster, within, size, rank, index, workspace: 0 }
    }

    /// A register of the hardware in each lane of a warp.
    fn special(&self, special: Special, warp: u32, program: &Program, shape: &Shape) -> Register {
        let [bx, by, _] = shape.block;
        let lanes = |f: &dyn Fn(u32) -> u32| core::array::from_fn(|lane| u64::from(f(lane as u32)));
        let all = |value: u32| [u64::from(value); LANES];
        let clusters: [u32; 3] = core::array::from_fn(|i| shape.grid[i] / self.size[i]);
        let first = warp * LANES as u32;
        let shared = program.static_shared as u32 + shape.shared;
        match special {
            Special::Tid(axis) => lanes(&|lane| {
                let t = first + lane;
                along(axis, [t % bx, t / bx % by, t / bx / by])
            }),
            Special::NTid(axis) => all(along(axis, shape.block)),
            Special::CtaId(axis) => all(along(axis, self.block)),
            Special::NCtaId(axis) => all(along(axis, shape.grid)),
            Special::LaneId => lanes(&|lane| lane),
            Special::WarpId => all(warp),
            Special::NWarpId => all(64),
            Special::SmId => all(self.index % 132),
            Special::NSmId => all(132),
            Special::GridId => all(1),
            Special::LaneMaskEq => lanes(&|lane| 1 << lane),
            Special::LaneMaskLe => lanes(&|lane| u32::MAX >> (31 - lane)),
            Special::LaneMaskLt => lanes(&|lane| (1 << lane) - 1),
            Special::LaneMaskGe => lanes(&|lane| u32::MAX << lane),
            Special::LaneMaskGt => lanes(&|lane| (u32::MAX << lane) & !(1 << lane)),
            Special::DynamicSmemSize => all(shape.shared),
            Special::TotalSmemSize => all(shared),
            Special::AggrSmemSize => all(shared + SYSTEM_SHARED as u32),
            Special::IsExplicitCluster => all(shape.cluster.is_some().into()),
            Special::ClusterId(axis) => all(along(axis, self.cluster)),
            Special::NClusterId(axis) => all(along(axis, clusters)),
            Special::ClusterCtaId(axis) => all(along(axis, self.within)),
            Special::ClusterNCtaId(axis) => all(along(axis, self.size)),
            Special::ClusterCtaRank => all(self.rank),
            Special::ClusterNCtaRank => all(self.size.iter().product()),
            Special::EnvReg(1) => all((self.workspace >> 32) as u32),
            Special::EnvReg(2) => all(self.workspace as u32),
            Special::ReservedSharedEnd | Special::ReservedSharedCap => all(SYSTEM_SHARED as u32),
            // Clocks are read by steps of their own; what drivers fill in is empty here.
            Special::Clock
            | Special::ClockHi
            | Special::Clock64
            | Special::GlobalTimer
            | Special::GlobalTimerLo
            | Special::GlobalTimerHi
            | Special::EnvReg(_)
            | Special::ReservedShared
            | Special::CurrentGraphExec => all(0),
        }
    }
}
