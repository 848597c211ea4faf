//! A kernel and the functions it calls, in the form that is executed.
//!
//! Every source of an instruction is a *slot* of the warp's register file: immediates, addresses of variables, kernel arguments and the hardware's registers
//! are constants that are written into the first slots when a block begins. Predicates have a file of their own, one bit a lane.

use super::lanes::{Binary, Register, Ternary, Test, Unary};
use super::launch::Shape;
use super::operands::Unset;
use super::undefined::Spread;
use crate::ir::{
    AtomicOp, Axis, BarrierFold, BoolOp, Builtin, CarryOp, FenceOrder, LaunchBounds, Line,
    MatrixType, Order, Outside, ReduxOp, Scope, ShuffleMode, Space, Special, Type, VariableId,
    VoteMode,
};
use std::sync::Arc;

/// A slot of the register file: a constant's number or, with the bit [`REGISTER`], that of a register of the present frame.
pub(crate) type Slot = u32;

/// Marks slots that count from the present frame.
pub(crate) const REGISTER: u32 = 1 << 31;

/// A slot of the predicate file: 0 never holds, 1 always, 2 is whether the launch named a cluster, then come registers of the frame.
pub(crate) type Predicate = u32;

/// Predicates before those of the frame.
pub(crate) const PREDICATE_CONSTANTS: u32 = 3;

/// A predicate as a condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    pub(crate) slot: Predicate,
    pub(crate) negated: bool,
}

/// What fills a constant slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    /// The same bits everywhere.
    Bits(u64),
    /// Bytes of the kernel's arguments, extended to a register of this many bits.
    Argument { offset: u32, bytes: u8, signed: bool, register_bits: u8 },
    /// A register of the hardware.
    Special(Special),
}

/// A kernel ready to run.
pub(crate) struct Program {
    /// The kernel is the first.
    pub(crate) functions: Vec<Code>,
    pub(crate) constants: Vec<Constant>,
    /// Bytes of shared memory before the dynamic part, and the dynamic part's alignment.
    pub(crate) static_shared: u64,
    /// The shared variables of a known size: their first bytes, and those behind their last.
    pub(crate) shared: Vec<(VariableId, u64, u64)>,
    /// Bytes of local memory that a thread may need, for the frames of its functions and with what these allocate.
    pub(crate) frame_bytes: u64,
    pub(crate) local_bytes: u64,
    pub(crate) bounds: LaunchBounds,
    /// What a block may not do beside others of its grid on another thread.
    pub(crate) needs_order: bool,
    /// It stores data by `volatile` accesses, and loads such data, in global memory.
    pub(crate) trusts_volatile: bool,
    /// It allocates from the device's heap, or launches.
    pub(crate) needs_heap: bool,
    /// It takes addresses of parameters of functions.
    pub(crate) takes_param_addresses: bool,
    /// Steps of all functions; [`Code::first`] counts in them.
    pub(crate) steps: u32,
    /// The ir function that [`Program::functions`] come from.
    pub(crate) ids: Vec<u32>,
}

impl Program {
    /// The kernel's name.
    pub(crate) fn name(&self) -> Arc<str> {
        self.functions[0].name.clone()
    }

    /// Bytes of shared memory before the dynamic part.
    pub(crate) fn static_shared(&self) -> u64 {
        self.static_shared
    }

    /// Bytes that a resident block takes, about.
    pub(crate) fn block_bytes(&self, shape: &Shape) -> u64 {
        let slots = self.constants.len() as u64 + u64::from(self.functions[0].registers);
        let registers = slots * size_of::<Register>() as u64 * u64::from(shape.warps());
        let local = self.local_bytes.saturating_mul(shape.threads().into());
        registers.saturating_add(local) + self.static_shared + u64::from(shape.shared)
    }

    /// Where functions allocate local memory, if they do.
    pub(crate) fn stack(&self) -> Option<u64> {
        (self.local_bytes > self.frame_bytes).then_some(self.frame_bytes)
    }

    /// Whether it reads what the driver fills in.
    pub(crate) fn asks_environment(&self) -> bool {
        self.constants.iter().any(|c| matches!(c, Constant::Special(Special::EnvReg(_))))
    }

    /// Whether it allocates from the device's heap, or launches.
    pub(crate) fn needs_heap(&self) -> bool {
        self.needs_heap
    }
}

/// A function ready to run.
pub(crate) struct Code {
    pub(crate) name: Arc<str>,
    pub(crate) steps: Vec<Guarded>,
    pub(crate) lines: Vec<Line>,
    /// Where lanes that a step separates meet again; `u32::MAX` at the function's end.
    pub(crate) joins: Vec<u32>,
    /// The number of its first step among all functions'.
    pub(crate) first: u32,
    /// Registers, and predicates among them.
    pub(crate) registers: u32,
    pub(crate) predicates: u32,
    pub(crate) local_bytes: u64,
    pub(crate) param_bytes: u64,
    pub(crate) parameters: Vec<Passed>,
    pub(crate) results: Vec<Passed>,
    /// What it may read of its registers before it writes them, in a function that is called.
    pub(crate) unset: Unset,
}

/// Where a function keeps what is passed to it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Passed {
    Register(Slot),
    Memory { offset: u64, bytes: u64 },
}

/// A step and its guard.
pub(crate) struct Guarded {
    pub(crate) guard: Option<Condition>,
    pub(crate) step: Step,
    /// It reads or writes a register that an open load gives a value.
    pub(crate) touches_open: bool,
}

/// An address operand: a slot's value, or the frame's memory, plus an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) base: PlaceBase,
    pub(crate) offset: i64,
}

/// The part of a block's shared memory that an access means: the variable that its address is computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) variable: VariableId,
    pub(crate) first: u64,
    pub(crate) end: u64,
}

/// What an offset counts from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PlaceBase {
    Slot(Slot),
    FrameLocal,
    FrameParam,
}

/// What is joined with the answer of a comparison.
pub(crate) type Join = Option<(BoolOp, Condition)>;

/// What a step does.
pub(crate) enum Step {
    Nothing,
    Unary {
        f: Unary,
        dst: Slot,
        a: Slot,
        spread: Spread,
    },
    Binary {
        f: Binary,
        dst: Slot,
        a: Slot,
        b: Slot,
        spread: Spread,
    },
    Ternary {
        f: Ternary,
        dst: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
        spread: Spread,
    },
    Carry {
        op: CarryOp,
        ty: Type,
        dst: Slot,
        sources: [Slot; 3],
        carry_in: bool,
        carry_out: bool,
    },
    /// Compares into predicates.
    Compare {
        f: Test,
        pairs: bool,
        dst: Predicate,
        other: Option<Predicate>,
        a: Slot,
        b: Slot,
        join: Join,
    },
    /// Compares into a register: `yes` where it holds, of pairs in each half.
    CompareInto {
        f: Test,
        pairs: bool,
        yes: u64,
        dst: Slot,
        a: Slot,
        b: Slot,
        join: Join,
    },
    /// Asks something about one value.
    Ask {
        f: Test,
        dst: Predicate,
        a: Slot,
    },
    Select {
        dst: Slot,
        a: Slot,
        b: Slot,
        pred: Predicate,
    },
    MovePredicate {
        dst: Predicate,
        a: Predicate,
        negated: bool,
    },
    JoinPredicates {
        op: BoolOp,
        dst: Predicate,
        a: Predicate,
        b: Predicate,
    },
    /// A predicate picked by another.
    SelectPredicate {
        dst: Predicate,
        a: Predicate,
        b: Predicate,
        pred: Predicate,
    },
    Lop3Test {
        table: u8,
        dst: Slot,
        sources: [Slot; 3],
        op: BoolOp,
        pred: Predicate,
        with: Condition,
    },
    InsertBits {
        ty: Type,
        dst: Slot,
        sources: [Slot; 4],
    },
    Pack {
        bits: u32,
        dst: Slot,
        parts: Box<[Slot]>,
    },
    Unpack {
        bits: u32,
        dsts: Box<[Slot]>,
        a: Slot,
    },
    FrameAddress {
        dst: Slot,
        local: bool,
        offset: u64,
    },
    Clock {
        which: Special,
        dst: Slot,
    },

    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    Fence {
        order: FenceOrder,
        scope: Scope,
    },

    Texture(Box<Texture>),
    SurfaceLoad(Box<SurfaceAccess>),
    SurfaceStore(Box<SurfaceAccess>),
    ImageExtent {
        dst: Slot,
        image: Slot,
        direction: usize,
    },
    Allocate {
        dst: Slot,
        size: Slot,
        align: u64,
    },
    StackSave {
        dst: Slot,
    },
    StackRestore {
        a: Slot,
    },

    Branch {
        target: u32,
    },
    BranchTable {
        index: Slot,
        targets: Box<[u32]>,
    },
    Call(Box<Call>),
    Return,
    Exit,
    Trap,
    Sleep,
    /// What the interpreter does not have.
    Unsupported(Box<str>),

    WarpBarrier {
        mask: Slot,
    },
    Shuffle(Box<Shuffle>),
    Vote {
        mode: VoteMode,
        dst: Slot,
        pred: Predicate,
        a: Condition,
        mask: Option<Slot>,
    },
    Match {
        all: bool,
        dst: Slot,
        pred: Option<Predicate>,
        a: Slot,
        mask: Slot,
    },
    Redux {
        op: ReduxOp,
        signed: bool,
        /// Of floating-point numbers: whether of magnitudes, and whether a NaN wins.
        float: Option<(bool, bool)>,
        dst: Slot,
        a: Slot,
        mask: Slot,
    },
    ActiveMask {
        dst: Slot,
    },
    Matrix(Box<Matrix>),
    Elect {
        dst: Slot,
        pred: Predicate,
        mask: Slot,
    },

    Barrier(Box<Barrier>),
    ClusterArrive,
    ClusterWait,

    CopyAsync(Box<CopyAsync>),
    CopyCommit {
        bulk: bool,
    },
    CopyWait {
        bulk: bool,
        /// Sources have been read; nothing is said of what was written.
        read: bool,
        pending: Option<u32>,
    },
    CopyArrive {
        space: Space,
        address: Place,
        no_increment: bool,
    },
    CopyBulk(Box<CopyBulk>),
    CopyTensor(Box<CopyTensor>),
    StoreAsync(Box<StoreAsync>),
    MbarrierInit {
        space: Space,
        address: Place,
        count: Slot,
    },
    MbarrierInvalidate {
        space: Space,
        address: Place,
    },
    MbarrierArrive(Box<Arrival>),
    MbarrierTransaction {
        space: Space,
        address: Place,
        bytes: Slot,
        complete: bool,
    },
    MbarrierWait(Box<PhaseWait>),
}

/// `ld`.
pub(crate) struct Load {
    pub(crate) bytes: u32,
    pub(crate) signed: bool,
    pub(crate) register_bits: u32,
    pub(crate) space: Space,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
    pub(crate) dsts: Box<[Slot]>,
    pub(crate) address: Place,
    pub(crate) extent: Option<Extent>,
    /// A branch looks at what is loaded.
    pub(crate) flag: bool,
    /// Some way through the kernel does not read the value: see [`super::discarded`].
    pub(crate) open: bool,
}

/// `st`.
pub(crate) struct Store {
    pub(crate) bytes: u32,
    pub(crate) space: Space,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
    pub(crate) values: Box<[Slot]>,
    pub(crate) address: Place,
    pub(crate) extent: Option<Extent>,
}

/// `atom`, `red`.
pub(crate) struct Atomic {
    pub(crate) op: AtomicOp,
    pub(crate) ty: Type,
    pub(crate) space: Space,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
    pub(crate) dst: Option<Slot>,
    pub(crate) address: Place,
    pub(crate) extent: Option<Extent>,
    pub(crate) a: Slot,
    pub(crate) b: Slot,
    /// Of 128 bits, the upper half.
    pub(crate) upper: Option<Upper>,
}

/// The upper half of an atomic of 128 bits.
#[derive(Clone, Copy)]
pub(crate) struct Upper {
    pub(crate) dst: Slot,
    pub(crate) a: Slot,
    pub(crate) b: Slot,
}

/// `tex`.
pub(crate) struct Texture {
    pub(crate) directions: u32,
    pub(crate) layered: bool,
    pub(crate) by_texels: bool,
    pub(crate) ty: Type,
    pub(crate) dsts: Box<[Slot]>,
    pub(crate) image: Slot,
    pub(crate) at: [Slot; 3],
}

/// `suld`, `sust`.
pub(crate) struct SurfaceAccess {
    /// Of an element.
    pub(crate) bytes: u32,
    pub(crate) outside: Outside,
    /// Destinations or values.
    pub(crate) slots: Box<[Slot]>,
    pub(crate) image: Slot,
    pub(crate) at: [Slot; 3],
}

/// Who is called.
pub(crate) enum Callee {
    /// A function of the program.
    Code(u32),
    /// The one whose handle the slot holds.
    Indirect(Slot),
    /// A function of the device's runtime.
    Builtin(Builtin),
}

/// What is handed over or taken back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    Value { slot: Slot },
    Memory { offset: u64, bytes: u64 },
}

/// `call`.
pub(crate) struct Call {
    pub(crate) callee: Callee,
    pub(crate) arguments: Box<[Argument]>,
    pub(crate) results: Box<[Argument]>,
}

/// `shfl`.
pub(crate) struct Shuffle {
    pub(crate) mode: ShuffleMode,
    pub(crate) dst: Slot,
    pub(crate) pred: Option<Predicate>,
    pub(crate) a: Slot,
    pub(crate) b: Slot,
    pub(crate) c: Slot,
    pub(crate) mask: Option<Slot>,
}

/// Tables that all lanes hold together.
pub(crate) struct Matrix {
    pub(crate) what: MatrixStep,
    /// All lanes.
    pub(crate) mask: Slot,
}

/// What is done with tables.
pub(crate) enum MatrixStep {
    Load { space: Space, transposed: bool, dsts: Box<[Slot]>, address: Place },
    Store { space: Space, transposed: bool, values: Box<[Slot]>, address: Place },
    Transpose { dst: Slot, a: Slot },
    Multiply(Product),
    LoadFragment { table: FragmentTable, dsts: Box<[Slot]> },
    StoreFragment { table: FragmentTable, values: Box<[Slot]> },
    MultiplyFragments(Product),
}

/// How a table is spread over the lanes of a warp: see [`super::fragment`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Of an element.
    pub(crate) bits: u32,
}

/// A table in memory that becomes fragments, or that fragments become.
pub(crate) struct FragmentTable {
    pub(crate) fragment: Fragment,
    pub(crate) by_columns: bool,
    pub(crate) space: Space,
    pub(crate) address: Place,
    /// Elements from one row, or column, to the next.
    pub(crate) stride: Option<Slot>,
}

/// `mma`, `wmma.mma`.
pub(crate) struct Product {
    pub(crate) shape: (u32, u32, u32),
    pub(crate) a_type: MatrixType,
    pub(crate) b_type: MatrixType,
    pub(crate) c_type: Type,
    pub(crate) ty: Type,
    pub(crate) saturate: bool,
    pub(crate) differing: bool,
    pub(crate) dsts: Box<[Slot]>,
    pub(crate) a: Box<[Slot]>,
    pub(crate) b: Box<[Slot]>,
    pub(crate) c: Box<[Slot]>,
}

/// What a thread does at a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    /// `dst` is a predicate, or a register for a count.
    Reduce {
        fold: BarrierFold,
        dst: u32,
        pred: Condition,
    },
}

/// `bar`, `barrier`.
pub(crate) struct Barrier {
    pub(crate) kind: BarrierKind,
    pub(crate) id: Slot,
    pub(crate) count: Option<Slot>,
    pub(crate) aligned: bool,
}

/// `cp.async`.
pub(crate) struct CopyAsync {
    pub(crate) dst: Place,
    pub(crate) src: Place,
    pub(crate) size: u32,
    pub(crate) src_size: Option<Slot>,
    pub(crate) ignore: Option<Condition>,
}

/// Which way a bulk copy goes.
pub(crate) enum BulkWay {
    GlobalToShared { mbarrier: Place, multicast: Option<Slot> },
    SharedToCluster { mbarrier: Place },
    SharedToGlobal,
}

/// `cp.async.bulk`.
pub(crate) struct CopyBulk {
    pub(crate) way: BulkWay,
    pub(crate) dst: Place,
    pub(crate) src: Place,
    pub(crate) size: Slot,
    /// Elements are combined with those of the destination.
    pub(crate) reduce: Option<(AtomicOp, Type)>,
}

/// `cp.async.bulk.tensor`.
pub(crate) struct CopyTensor {
    pub(crate) way: BulkWay,
    /// Where the tensor map is.
    pub(crate) map: Place,
    /// The coordinates of the tile's first element.
    pub(crate) at: Box<[Slot]>,
    /// With `im2col`, what is added to the coordinates of pixels.
    pub(crate) offsets: Option<Box<[Slot]>>,
    /// In shared memory.
    pub(crate) tile: Place,
    /// Elements are combined with those of the tensor.
    pub(crate) reduce: Option<AtomicOp>,
}

/// `st.async`, `red.async`.
pub(crate) struct StoreAsync {
    pub(crate) ty: Type,
    pub(crate) dst: Place,
    pub(crate) values: Box<[Slot]>,
    pub(crate) mbarrier: Place,
    pub(crate) reduce: Option<AtomicOp>,
}

/// `mbarrier.arrive`.
pub(crate) struct Arrival {
    pub(crate) space: Space,
    pub(crate) address: Place,
    pub(crate) dst: Option<Slot>,
    pub(crate) count: Option<Slot>,
    pub(crate) expect: Option<Slot>,
    pub(crate) drop: bool,
    pub(crate) release: bool,
}

/// `mbarrier.test_wait`, `mbarrier.try_wait`.
pub(crate) struct PhaseWait {
    pub(crate) space: Space,
    pub(crate) address: Place,
    pub(crate) dst: Predicate,
    pub(crate) phase: Slot,
    pub(crate) parity: bool,
    pub(crate) acquire: bool,
}

/// One of three numbers.
pub(crate) fn along(axis: Axis, of: [u32; 3]) -> u32 {
    match axis {
        Axis::X => of[0],
        Axis::Y => of[1],
        Axis::Z => of[2],
    }
}
