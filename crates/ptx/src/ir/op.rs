//! What instructions do.
//!
//! Conventions of all of them. A destination is called `dst` (a second one, a predicate, `dst_pred`), sources are `a`, `b`, `c` in the
//! order of the text. Immediate sources already have the bits that a register of the instruction's type would have. `_` as a destination
//! is a register without a name, so there is always one to write. Suffixes that change no result (cache hints, eviction policies,
//! `.uni`, prefetches) are dropped, but for [`Op::Hint`], which marks their place.

use super::{FunctionId, Reg, Space, Special, Type, VariableId};
use crate::value::eight::Eight;

/// A predicate register, taken as it is or negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Predicate {
    /// The register.
    pub reg: Reg,
    /// `!p`.
    pub negated: bool,
}

/// A source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A constant, in the bits of the instruction's type, zero-extended.
    Imm(u64),
    /// A register of the hardware.
    Special(Special),
    /// The address of a variable in its own space, plus an offset.
    Variable(VariableId, i64),
    /// The address of a function.
    Function(FunctionId),
}

/// A memory operand: `[base + offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// What the offset is added to.
    pub base: Base,
    /// Bytes.
    pub offset: i64,
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A register; one of 32 bits is zero-extended (shared, local, const and param spaces only).
    Reg(Reg),
    /// A variable. It always lies in the space that the instruction names, or the instruction is generic.
    Variable(VariableId),
    /// None: the offset is the address.
    Absolute,
}

/// How a result is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `.rn`: to nearest, ties to even.
    Nearest,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
    /// `.rz`: towards zero.
    Zero,
    /// `.rm`: towards minus infinity.
    Down,
    /// `.rp`: towards plus infinity.
    Up,
}

/// How strong a memory access is, and what it orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// No order; races with what others do.
    Weak,
    /// `.volatile`: as [`Order::Relaxed`] at [`Scope::Sys`], and never left out.
    Volatile,
    /// Strong, no order.
    Relaxed,
    /// Later accesses stay behind it.
    Acquire,
    /// Earlier accesses stay before it.
    Release,
    /// Both.
    AcqRel,
}

/// Among whom an order holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The block.
    Cta,
    /// The cluster.
    Cluster,
    /// The device.
    Gpu,
    /// Everybody.
    Sys,
}

/// Integer operations with two sources. Pairs (`u16x2`, `s16x2`) have add, min and max.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntBinary {
    /// Sum, wrapping.
    Add,
    /// `add.sat.s32`: sum, clamped.
    AddSat,
    /// Difference, wrapping.
    Sub,
    /// `sub.sat.s32`: difference, clamped.
    SubSat,
    /// Low half of the product.
    MulLo,
    /// High half of the product.
    MulHi,
    /// The whole product, twice as wide as the type.
    MulWide,
    /// Low 32 bits of the 48-bit product of the low 24 bits.
    Mul24Lo,
    /// High 32 bits of the 48-bit product of the low 24 bits.
    Mul24Hi,
    /// Quotient, towards zero.
    Div,
    /// Remainder.
    Rem,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// `min.relu`: the smaller, negative ones become 0.
    MinRelu,
    /// `max.relu`: the larger, negative ones become 0.
    MaxRelu,
    /// Bits of both; also of predicates.
    And,
    /// Bits of either; also of predicates.
    Or,
    /// Bits of one; also of predicates.
    Xor,
    /// Shift left by a 32-bit count, clamped to the width.
    Shl,
    /// Shift right by a 32-bit count, clamped to the width; signed types fill with the sign.
    Shr,
}

/// Integer operations with three sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntTernary {
    /// `a * b + c`, low half.
    MadLo,
    /// High half of `a * b`, plus `c`.
    MadHi,
    /// `mad.hi.sat.s32`: clamped.
    MadHiSat,
    /// `a * b` in twice the width, plus `c`, which has it.
    MadWide,
    /// As [`IntBinary::Mul24Lo`], plus `c`.
    Mad24Lo,
    /// As [`IntBinary::Mul24Hi`], plus `c`.
    Mad24Hi,
    /// `mad24.hi.sat.s32`: clamped.
    Mad24HiSat,
    /// `|a - b| + c`.
    Sad,
}

/// Integer operations with one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntUnary {
    /// Absolute value.
    Abs,
    /// Negation.
    Neg,
    /// Every bit inverted; also of predicates.
    Not,
    /// 1 where the source is 0, else 0.
    CNot,
    /// Bits set; the answer has 32 bits.
    Popc,
    /// Zeros above the highest bit set; the answer has 32 bits.
    Clz,
    /// Bits in reverse.
    Brev,
}

/// What [`Op::Carry`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CarryOp {
    /// `a + b`.
    Add,
    /// `a - b`; the carry is set where nothing was borrowed.
    Sub,
    /// Low half of `a * b`, plus `c`.
    MadLo,
    /// High half of `a * b`, plus `c`.
    MadHi,
}

/// Floating-point operations with two sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatBinary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, rounded as IEEE 754 says.
    Div,
    /// `div.full.f32`: within 2 ulps over the whole range.
    DivFull,
    /// `div.approx.f32`: within 2 ulps where the divisor is of moderate size.
    DivApprox,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// The sign of `a` with the magnitude of `b`.
    CopySign,
}

/// Floating-point operations with one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatUnary {
    /// Absolute value.
    Abs,
    /// Negation.
    Neg,
    /// `1 / a`, rounded as IEEE 754 says.
    Rcp,
    /// `rcp.approx`; for f64 always `.ftz`, from the upper half alone.
    RcpApprox,
    /// Square root, rounded as IEEE 754 says.
    Sqrt,
    /// `sqrt.approx`.
    SqrtApprox,
    /// `rsqrt.approx`; of f64 too.
    RsqrtApprox,
    /// `ex2.approx`: two to the power of `a`.
    Ex2Approx,
    /// `lg2.approx`: logarithm to the base of two.
    Lg2Approx,
    /// `sin.approx`.
    SinApprox,
    /// `cos.approx`.
    CosApprox,
    /// `tanh.approx`.
    TanhApprox,
}

/// The suffixes that change what a floating-point operation gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatMode {
    /// How the result is rounded; to nearest where the text says nothing.
    pub rounding: Rounding,
    /// `.ftz`: subnormal sources and results become zero.
    pub ftz: bool,
    /// `.sat`: the result is clamped to [0, 1], NaN becomes 0.
    pub sat: bool,
    /// `.relu`: negative results become 0.
    pub relu: bool,
    /// `.NaN`: min and max give NaN if a source is NaN.
    pub nan: bool,
    /// `.xorsign.abs`: min and max of magnitudes, with the product's sign.
    pub xorsign_abs: bool,
    /// The text says `.rn`: the operation must not be fused with another.
    pub explicit: bool,
}

impl Default for FloatMode {
    fn default() -> Self {
        FloatMode {
            rounding: Rounding::Nearest,
            ftz: false,
            sat: false,
            relu: false,
            nan: false,
            xorsign_abs: false,
            explicit: false,
        }
    }
}

/// Comparisons of `setp` and `set`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// Equal; false with NaN.
    Eq,
    /// Not equal; false with NaN.
    Ne,
    /// Less; false with NaN.
    Lt,
    /// Less or equal; false with NaN.
    Le,
    /// Greater; false with NaN.
    Gt,
    /// Greater or equal; false with NaN.
    Ge,
    /// Equal, or one is NaN.
    Equ,
    /// Not equal, or one is NaN.
    Neu,
    /// Less, or one is NaN.
    Ltu,
    /// Less or equal, or one is NaN.
    Leu,
    /// Greater, or one is NaN.
    Gtu,
    /// Greater or equal, or one is NaN.
    Geu,
    /// Both are numbers.
    Num,
    /// One is NaN.
    Nan,
}

/// How a comparison's answer is joined with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolOp {
    /// Both.
    And,
    /// Either.
    Or,
    /// One.
    Xor,
}

/// What `testp` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatTest {
    /// Neither infinite nor NaN.
    Finite,
    /// Infinite.
    Infinite,
    /// Not NaN.
    Number,
    /// NaN.
    NotANumber,
    /// A number that is neither subnormal nor infinite; zero is none.
    Normal,
    /// Subnormal; zero is one.
    Subnormal,
}

/// How `prmt` picks bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermuteMode {
    /// Four selectors of four bits.
    Index,
    /// `.f4e`: four bytes onwards.
    Forward4,
    /// `.b4e`: four bytes backwards.
    Backward4,
    /// `.rc8`: one byte, four times.
    Replicate8,
    /// `.ecl`: edge clamped from the left.
    ClampLeft,
    /// `.ecr`: edge clamped from the right.
    ClampRight,
    /// `.rc16`: one half, twice.
    Replicate16,
}

/// What an atomic operation does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// Sum; floating-point types round to nearest. `f32` in global memory flushes subnormals to zero.
    Add,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// One more, or 0 from `a` on.
    Inc,
    /// One less; `a` from 0 or from above `a`.
    Dec,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of one.
    Xor,
    /// `a` goes in.
    Exchange,
    /// `b` goes in where memory holds `a`.
    CompareAndSwap,
}

/// Where `shfl` takes a lane's value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShuffleMode {
    /// A lane so far before.
    Up,
    /// A lane so far behind.
    Down,
    /// The lane whose number differs in these bits.
    Butterfly,
    /// The lane with this number.
    Index,
}

/// What a vote asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteMode {
    /// Whether all hold.
    All,
    /// Whether one holds.
    Any,
    /// Whether all agree.
    Uniform,
    /// Which ones hold, as a mask.
    Ballot,
}

/// What the elements of a factor of `mma` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixType {
    /// Of a type with a name of its own: `.f16`, `.bf16`, `.tf32`, `.f64`, `.s8`, `.u8`.
    Plain(Type),
    /// Of eight bits.
    Eight(Eight),
    /// Integers of four bits: `.s4`, `.u4`.
    Four {
        /// With a sign.
        signed: bool,
    },
    /// Single bits: `.b1`.
    Bit,
}

impl MatrixType {
    /// Bits of an element in its register.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            MatrixType::Plain(ty) => ty.bits(),
            MatrixType::Eight(_) => 8,
            MatrixType::Four { .. } => 4,
            MatrixType::Bit => 1,
        }
    }

    /// Whether elements are integers, whose products are summed as `.s32`.
    #[must_use]
    pub fn is_integer(self) -> bool {
        match self {
            MatrixType::Plain(ty) => matches!(ty, Type::S8 | Type::U8),
            MatrixType::Eight(_) => false,
            MatrixType::Four { .. } | MatrixType::Bit => true,
        }
    }
}

/// What a fragment of `wmma` is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FragmentPart {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// What is added, or the result.
    Sum,
}

impl FragmentPart {
    /// Rows and columns in a product of this shape: rows of `a`, columns of `b`, columns of `a`.
    #[must_use]
    pub fn extent(self, (m, n, k): (u32, u32, u32)) -> (u32, u32) {
        match self {
            FragmentPart::A => (m, k),
            FragmentPart::B => (k, n),
            FragmentPart::Sum => (m, n),
        }
    }
}

/// A product of tables that the lanes of a warp hold together: `d = a * b + c`.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixProduct {
    /// Rows of `a`, columns of `b`, and columns of `a`.
    pub shape: (u32, u32, u32),
    /// What `a` holds.
    pub a_type: MatrixType,
    /// What `b` holds.
    pub b_type: MatrixType,
    /// What `c` holds: `.f16`, `.f32`, `.f64` or `.s32`.
    pub c_type: Type,
    /// What `d` holds.
    pub ty: Type,
    /// `.satfinite`: integers are clamped.
    pub saturate: bool,
    /// `.xor`: single bits count where they differ, instead of where both are set.
    pub differing: bool,
    /// The lane's part of `d`.
    pub dsts: Box<[Reg]>,
    /// The lane's part of `a`.
    pub a: Box<[Operand]>,
    /// The lane's part of `b`.
    pub b: Box<[Operand]>,
    /// The lane's part of `c`.
    pub c: Box<[Operand]>,
}

/// A table in memory that becomes fragments, or that fragments become.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FragmentTable {
    /// Of the product: rows of `a`, columns of `b`, and columns of `a`.
    pub shape: (u32, u32, u32),
    /// What it holds.
    pub ty: MatrixType,
    /// Its columns lie one after the other, instead of its rows.
    pub by_columns: bool,
    /// Where it is.
    pub space: Space,
    /// Where it begins, the same for all lanes.
    pub address: Address,
    /// Elements from row to row, or from column to column; without gaps where none is given.
    pub stride: Option<Operand>,
}

/// What accesses outside of a surface mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outside {
    /// `.trap`: a fault.
    Trap,
    /// `.clamp`: the nearest place inside.
    Clamp,
    /// `.zero`: loads give zeros, stores do nothing.
    Zero,
}

/// A place of a surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfacePlace {
    /// The type of an element.
    pub ty: Type,
    /// What is outside.
    pub outside: Outside,
    /// The handle.
    pub image: Operand,
    /// Bytes along x, the row, and the plane or layer.
    pub at: [Operand; 3],
}

/// What `redux.sync` folds with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ReduxOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// What `bar.red` folds predicates with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierFold {
    /// Whether all hold.
    And,
    /// Whether one holds.
    Or,
    /// How many hold.
    Popc,
}

/// What a thread does at a block barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierOp {
    /// Waits for the others.
    Sync,
    /// Counts as arrived and goes on.
    Arrive,
    /// Waits, and gets what the predicates of all fold to: a predicate, or a count for [`BarrierFold::Popc`].
    Reduce {
        /// How they are folded.
        fold: BarrierFold,
        /// The answer.
        dst: Reg,
        /// This thread's contribution.
        pred: Predicate,
    },
}

/// What a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceOrder {
    /// `fence.sc` and `membar`: all fences like it agree on one order.
    SequentiallyConsistent,
    /// `fence.acq_rel`.
    AcqRel,
    /// `fence.acquire`.
    Acquire,
    /// `fence.release`, also `fence.mbarrier_init`.
    Release,
    /// `fence.proxy`: orders accesses by different ways, nothing between threads.
    Proxy {
        /// Bulk copies may read what was stored in shared memory.
        shared: bool,
        /// Bulk copies may read what was stored in global memory.
        global: bool,
    },
}

/// A called function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// This one.
    Function(FunctionId),
    /// The one whose address the operand holds. Its parameters must agree with the wiring in number and size.
    Indirect(Operand),
}

/// What is handed to, or taken from, a called function in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A value; as a result always a register.
    Value(Operand),
    /// A variable of the caller in [`Space::Param`].
    Memory(VariableId),
}

/// How a copy by `cp.async.bulk` moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkCopy {
    /// From global into the cluster's shared memory; completes on an mbarrier there.
    GlobalToShared {
        /// Counts the bytes that arrived.
        mbarrier: Address,
        /// The blocks of the cluster that get a copy each, bit by rank; `None`: where `dst` points.
        multicast: Option<Operand>,
    },
    /// From the block's shared memory into another's of the cluster; completes on an mbarrier there.
    SharedToCluster {
        /// Counts the bytes that arrived.
        mbarrier: Address,
    },
    /// From shared into global; completes in a group of the thread.
    SharedToGlobal,
}

/// What ends a phase wait of `mbarrier.test_wait` and `try_wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The phase of this state, which an arrival gave, is complete.
    State(Operand),
    /// The phase with this parity is complete.
    Parity(Operand),
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    // Moves and conversions.
    /// `mov`: copies a value, or takes an address.
    Mov {
        /// The type.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// The source.
        a: Operand,
    },
    /// `mov.b64 d, {a, b}`: puts parts together, the first one lowest. All have the same width.
    Pack {
        /// The type of the whole.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// The parts.
        parts: Box<[Operand]>,
    },
    /// `mov.b64 {d, e}, a`: takes a value apart, the lowest part first. All have the same width.
    Unpack {
        /// The type of the whole.
        ty: Type,
        /// The parts' destinations.
        dsts: Box<[Reg]>,
        /// The source.
        a: Operand,
    },
    /// `cvt` of one value.
    Cvt {
        /// The result's type; where the register is wider, integers are extended by their sign.
        to: Type,
        /// The source's type: its low bits are taken from a wider register.
        from: Type,
        /// Bits of the destination register.
        register_bits: u32,
        /// The destination.
        dst: Reg,
        /// The source.
        a: Operand,
        /// Rounding and clamping.
        mode: FloatMode,
        /// `.rni` and its kin: a floating-point result is rounded to an integer value. Conversions to integers always are.
        integral: bool,
    },
    /// `cvt.rn.f16x2.f32 d, a, b`: two values into a pair, `a` in the high half.
    CvtPair {
        /// The pair's type.
        to: Type,
        /// The sources' type.
        from: Type,
        /// The destination.
        dst: Reg,
        /// The high half.
        a: Operand,
        /// The low half.
        b: Operand,
        /// Rounding and clamping.
        mode: FloatMode,
    },
    /// `cvt.pack.sat.u8.s32.b32 d, a, b, c`: two integers, clamped, in the low bits of a word, `a` above `b`; the low bits of `c` above them.
    CvtPack {
        /// Bits of each.
        bits: u32,
        /// The results have signs.
        signed: bool,
        /// The destination.
        dst: Reg,
        /// The upper one.
        a: Operand,
        /// The lower one.
        b: Operand,
        /// What lies above them.
        c: Operand,
    },
    /// `cvt.rn.satfinite.e4m3x2.f32 d, a, b`: two values into two bytes, `a` in the high one.
    CvtToEight {
        /// The format of a byte.
        to: Eight,
        /// The sources' type: `.f32`, or `.f16x2` for one source with both values.
        from: Type,
        /// Negative numbers become zero.
        relu: bool,
        /// The destination.
        dst: Reg,
        /// The high byte, or both.
        a: Operand,
        /// The low byte.
        b: Operand,
    },
    /// `cvt.rn.f16x2.e4m3x2 d, a`: two bytes into a pair.
    CvtFromEight {
        /// The format of a byte.
        from: Eight,
        /// Negative numbers become zero.
        relu: bool,
        /// The destination.
        dst: Reg,
        /// The bytes.
        a: Operand,
    },
    /// `cvta`: between generic addresses and those of a space.
    Cvta {
        /// The space.
        space: Space,
        /// From generic to the space; else from the space to generic.
        to_space: bool,
        /// The destination.
        dst: Reg,
        /// The source.
        a: Operand,
    },
    /// `isspacep`: whether a generic address lies in a space.
    IsSpace {
        /// The space.
        space: Space,
        /// The answer.
        dst: Reg,
        /// The address.
        a: Operand,
    },

    // Integers.
    /// Two sources.
    IntBinary {
        /// Which one.
        op: IntBinary,
        /// The sources' type.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// First source.
        a: Operand,
        /// Second source; a shift's count has 32 bits.
        b: Operand,
    },
    /// Three sources.
    IntTernary {
        /// Which one.
        op: IntTernary,
        /// The sources' type.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// First source.
        a: Operand,
        /// Second source.
        b: Operand,
        /// Third source.
        c: Operand,
    },
    /// One source.
    IntUnary {
        /// Which one.
        op: IntUnary,
        /// The source's type.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// The source.
        a: Operand,
    },
    /// `add.cc`, `addc`, `madc` and their kin: with the thread's carry bit.
    Carry {
        /// Which one.
        op: CarryOp,
        /// The type.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// First source.
        a: Operand,
        /// Second source.
        b: Operand,
        /// Third source, of `mad`; else an immediate 0.
        c: Operand,
        /// The carry bit is added (or taken off).
        carry_in: bool,
        /// The carry bit is written.
        carry_out: bool,
    },
    /// `bfe`: takes bits out.
    BitExtract {
        /// The type; signed ones extend by the field's sign.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// The source.
        a: Operand,
        /// The first bit; the low 8 bits count.
        start: Operand,
        /// How many bits; the low 8 bits count.
        length: Operand,
    },
    /// `bfi`: puts bits in.
    BitInsert {
        /// The type.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// The bits to put in.
        a: Operand,
        /// What they are put into.
        b: Operand,
        /// The first bit; the low 8 bits count.
        start: Operand,
        /// How many bits; the low 8 bits count.
        length: Operand,
    },
    /// `bfind`: the highest bit that is not the sign; the answer has 32 bits.
    BitFind {
        /// The source's type.
        ty: Type,
        /// `.shiftamt`: how far to shift left to bring it to the top, instead of where it is.
        shift_amount: bool,
        /// The destination.
        dst: Reg,
        /// The source.
        a: Operand,
    },
    /// `fns`: the n-th bit set, from a base on; all have 32 bits.
    FindNthSet {
        /// The destination.
        dst: Reg,
        /// The mask.
        mask: Operand,
        /// Where to begin.
        base: Operand,
        /// Which one, and with its sign the direction.
        n: Operand,
    },
    /// `bmsk`: a mask of some bits from a position on.
    BitMask {
        /// `.wrap`: position and width count modulo 32; else they are clamped.
        wrap: bool,
        /// The destination.
        dst: Reg,
        /// The position.
        a: Operand,
        /// The width.
        b: Operand,
    },
    /// `szext`: extends the low bits by their sign or by zeros.
    SignExtend {
        /// `.u32` or `.s32`.
        ty: Type,
        /// `.wrap`: the width counts modulo 32; else it is clamped.
        wrap: bool,
        /// The destination.
        dst: Reg,
        /// The source.
        a: Operand,
        /// How many low bits are kept.
        b: Operand,
    },
    /// `shf`: shifts `b:a`, 64 bits.
    FunnelShift {
        /// To the left, giving the upper half; else to the right, giving the lower.
        left: bool,
        /// `.wrap`: the count is taken modulo 32; else clamped to 32.
        wrap: bool,
        /// The destination.
        dst: Reg,
        /// The low half.
        a: Operand,
        /// The high half.
        b: Operand,
        /// The count.
        c: Operand,
    },
    /// `prmt`: picks four bytes of `b:a`.
    Permute {
        /// How.
        mode: PermuteMode,
        /// The destination.
        dst: Reg,
        /// The low half.
        a: Operand,
        /// The high half.
        b: Operand,
        /// The selectors.
        c: Operand,
    },
    /// `lop3`: any function of three bits, bit by bit.
    Lop3 {
        /// Its truth table.
        table: u8,
        /// The destination.
        dst: Reg,
        /// First source.
        a: Operand,
        /// Second source.
        b: Operand,
        /// Third source.
        c: Operand,
        /// `lop3.and.b32 d|p, ..., q`: `p = (d != 0) op q`.
        test: Option<(BoolOp, Reg, Predicate)>,
    },
    /// `dp4a` and `dp2a`: a dot product of bytes, plus `c`.
    DotProduct {
        /// `a` holds signed values: four bytes, or two halves for `dp2a`.
        a_signed: bool,
        /// `b` holds signed bytes.
        b_signed: bool,
        /// For `dp2a`, whether it takes the upper two bytes of `b`; `None` for `dp4a`.
        high: Option<bool>,
        /// The destination.
        dst: Reg,
        /// First source.
        a: Operand,
        /// Second source.
        b: Operand,
        /// Third source.
        c: Operand,
    },

    // Floating point.
    /// Two sources.
    FloatBinary {
        /// Which one.
        op: FloatBinary,
        /// The type.
        ty: Type,
        /// Rounding and clamping.
        mode: FloatMode,
        /// The destination.
        dst: Reg,
        /// First source.
        a: Operand,
        /// Second source.
        b: Operand,
    },
    /// `fma`, and `mad` of floating-point types: `a * b + c`, rounded once.
    Fma {
        /// The type.
        ty: Type,
        /// Rounding and clamping.
        mode: FloatMode,
        /// The destination.
        dst: Reg,
        /// First source.
        a: Operand,
        /// Second source.
        b: Operand,
        /// Third source.
        c: Operand,
    },
    /// One source.
    FloatUnary {
        /// Which one.
        op: FloatUnary,
        /// The type.
        ty: Type,
        /// Rounding and clamping.
        mode: FloatMode,
        /// The destination.
        dst: Reg,
        /// The source.
        a: Operand,
    },
    /// `testp`.
    TestFloat {
        /// What is asked.
        test: FloatTest,
        /// The source's type.
        ty: Type,
        /// The answer.
        dst: Reg,
        /// The source.
        a: Operand,
    },

    // Comparing and choosing.
    /// `setp`: compares into a predicate. Of pairs, the low halves give `dst`, the high ones `dst_pred`.
    SetPredicate {
        /// How.
        compare: Compare,
        /// The sources' type.
        ty: Type,
        /// Subnormals count as zero.
        ftz: bool,
        /// The answer, joined with `join`.
        dst: Reg,
        /// The opposite answer, joined with `join`; of pairs, that of the high halves.
        dst_pred: Option<Reg>,
        /// First source.
        a: Operand,
        /// Second source.
        b: Operand,
        /// What the answer is joined with.
        join: Option<(BoolOp, Predicate)>,
    },
    /// `set`: compares into a number: all ones for integers, 1.0 for floating point, where it holds.
    Set {
        /// How.
        compare: Compare,
        /// The result's type.
        to: Type,
        /// The sources' type.
        ty: Type,
        /// Subnormals count as zero.
        ftz: bool,
        /// The destination.
        dst: Reg,
        /// First source.
        a: Operand,
        /// Second source.
        b: Operand,
        /// What the answer is joined with.
        join: Option<(BoolOp, Predicate)>,
    },
    /// `selp`: `a` where the predicate holds, else `b`.
    Select {
        /// The type.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// Where it holds.
        a: Operand,
        /// Where it does not.
        b: Operand,
        /// The predicate.
        pred: Reg,
    },
    /// `slct`: `a` where `c >= 0`, else `b`; NaN picks `b`.
    SelectBySign {
        /// The values' type.
        ty: Type,
        /// `.s32` or `.f32`: the type of `c`.
        by: Type,
        /// Subnormals count as zero.
        ftz: bool,
        /// The destination.
        dst: Reg,
        /// Where `c >= 0`.
        a: Operand,
        /// Elsewhere.
        b: Operand,
        /// What is asked for its sign.
        c: Operand,
    },

    // Memory.
    /// `ld`: loads one value or a vector of them.
    Load {
        /// The type of an element; it is extended by its sign to the register.
        ty: Type,
        /// The space.
        space: Space,
        /// How strong.
        order: Order,
        /// Among whom.
        scope: Scope,
        /// `.nc`, `ldu`: through the read-only path; the bytes must not change while the kernel runs.
        read_only: bool,
        /// Bits of each destination register.
        register_bits: u32,
        /// The destinations, one for each element.
        dsts: Box<[Reg]>,
        /// From where; aligned to the whole vector.
        address: Address,
    },
    /// `st`: stores one value or a vector of them.
    Store {
        /// The type of an element; the low bits of wider registers are taken.
        ty: Type,
        /// The space.
        space: Space,
        /// How strong.
        order: Order,
        /// Among whom.
        scope: Scope,
        /// To where; aligned to the whole vector.
        address: Address,
        /// The values.
        values: Box<[Operand]>,
    },
    /// `atom` and `red`: changes memory in one step.
    Atomic {
        /// How.
        op: AtomicOp,
        /// The type.
        ty: Type,
        /// The space.
        space: Space,
        /// What it orders: relaxed, acquire, release or both.
        order: Order,
        /// Among whom.
        scope: Scope,
        /// What memory held; `None` for `red`.
        dst: Option<Reg>,
        /// Where.
        address: Address,
        /// The value; for compare-and-swap what is compared.
        a: Operand,
        /// For compare-and-swap what goes in.
        b: Option<Operand>,
    },
    /// `atom.exch.b128`, `atom.cas.b128`: each value is two registers, the lower half first.
    AtomicPair {
        /// The operation.
        op: AtomicOp,
        /// The memory.
        space: Space,
        /// The order.
        order: Order,
        /// The scope.
        scope: Scope,
        /// What memory held.
        dsts: [Reg; 2],
        /// Where.
        address: Address,
        /// The value; for compare-and-swap what is compared.
        a: [Operand; 2],
        /// For compare-and-swap what goes in.
        b: Option<[Operand; 2]>,
    },
    /// `fence`, `membar`.
    Fence {
        /// What is ordered.
        order: FenceOrder,
        /// Among whom.
        scope: Scope,
    },
    /// `ldmatrix`: tables of 8 by 8 elements of 16 bits; each lane gives the address of a row.
    MatrixLoad {
        /// Where they are.
        space: Space,
        /// Columns become rows.
        transposed: bool,
        /// A register for each table.
        dsts: Box<[Reg]>,
        /// The address of the lane's row.
        address: Address,
    },
    /// `stmatrix`.
    MatrixStore {
        /// Where they go.
        space: Space,
        /// Rows become columns.
        transposed: bool,
        /// A register for each table.
        values: Box<[Operand]>,
        /// The address of the lane's row.
        address: Address,
    },
    /// `movmatrix`: transposes a table of 8 by 8 elements of 16 bits.
    MatrixTranspose {
        /// The destination.
        dst: Reg,
        /// The table.
        a: Operand,
    },
    /// `mma.sync`: a product, each lane with its part.
    MatrixMultiply(Box<MatrixProduct>),
    /// `wmma.load`: a table in memory becomes fragments, a part for each lane.
    FragmentLoad {
        /// What it is part of.
        part: FragmentPart,
        /// The table.
        table: FragmentTable,
        /// The lane's part.
        dsts: Box<[Reg]>,
    },
    /// `wmma.store`: fragments become a table in memory.
    FragmentStore {
        /// The table.
        table: FragmentTable,
        /// The lane's part.
        values: Box<[Operand]>,
    },
    /// `wmma.mma`: a product of fragments.
    FragmentMultiply(Box<MatrixProduct>),
    /// `tex`: the texel at some coordinates.
    Texture {
        /// Directions that are sampled: 1 to 3.
        directions: u32,
        /// The third coordinate is a layer.
        layered: bool,
        /// Coordinates are integers that count texels.
        by_texels: bool,
        /// `.u32`, `.s32` or `.f32`.
        ty: Type,
        /// The four parts of a texel.
        dsts: Box<[Reg]>,
        /// The handle.
        image: Operand,
        /// Coordinates along x, along y, and along z or the layer.
        at: [Operand; 3],
    },
    /// `suld.b`: bytes of a surface.
    SurfaceLoad {
        /// Where.
        place: SurfacePlace,
        /// The destinations, one for each element.
        dsts: Box<[Reg]>,
    },
    /// `sust.b`: bytes go to a surface.
    SurfaceStore {
        /// Where.
        place: SurfacePlace,
        /// The values, one for each element.
        values: Box<[Operand]>,
    },
    /// `txq`, `suq`: texels of an image along a direction.
    ImageExtent {
        /// How many.
        dst: Reg,
        /// The handle.
        image: Operand,
        /// 0 to 2.
        direction: usize,
    },
    /// `alloca`: local memory that lasts until the function returns.
    Allocate {
        /// Its address in local memory.
        dst: Reg,
        /// Bytes.
        size: Operand,
        /// What the address is a multiple of.
        align: u64,
    },
    /// `stacksave`: what is allocated now.
    StackSave {
        /// The mark.
        dst: Reg,
    },
    /// `stackrestore`: what was allocated since is gone.
    StackRestore {
        /// The mark of a `stacksave`.
        a: Operand,
    },
    /// A prefetch, eviction hint, `discard` or the like: nothing happens.
    Hint,

    /// An instruction that the interpreter does not have: [`Module::unsupported`](crate::ir::Module::unsupported) tells which.
    Unsupported {
        /// Its place in the list.
        index: u32,
    },

    // Control.
    /// `bra`.
    Branch {
        /// The next instruction where the guard holds.
        target: u32,
        /// `.uni`: the text promises that all lanes agree.
        uniform: bool,
    },
    /// `brx.idx`: branches by a table.
    BranchTable {
        /// Where in the table; behind its end nothing is defined.
        index: Operand,
        /// The instructions.
        targets: Box<[u32]>,
        /// `.uni`: the text promises that all lanes agree.
        uniform: bool,
    },
    /// `call`.
    Call {
        /// Whom.
        callee: Callee,
        /// Where the results go.
        results: Box<[Argument]>,
        /// What is handed over.
        arguments: Box<[Argument]>,
        /// `.uni`: the text promises that all lanes agree.
        uniform: bool,
    },
    /// `ret`: back to the caller; ends the thread in a kernel.
    Return,
    /// `exit`: ends the thread.
    Exit,
    /// `trap`: ends the grid with an error.
    Trap,
    /// `brkpt`: stops for a debugger; nothing happens without one.
    Breakpoint,
    /// `nanosleep`: rests for about this many nanoseconds.
    Sleep {
        /// Nanoseconds.
        a: Operand,
    },
    /// `griddepcontrol.wait` and `griddepcontrol.launch_dependents`.
    GridDependency {
        /// Waits for the launches before; else lets those behind begin.
        wait: bool,
    },

    // Warps.
    /// `bar.warp.sync`.
    WarpBarrier {
        /// The lanes that meet.
        mask: Operand,
    },
    /// `shfl.sync`, and the old `shfl` without a mask.
    Shuffle {
        /// From where.
        mode: ShuffleMode,
        /// What the lane gets.
        dst: Reg,
        /// Whether the source lane was within bounds.
        dst_pred: Option<Reg>,
        /// What the lane gives.
        a: Operand,
        /// The lane or the distance.
        b: Operand,
        /// The clamp and the segment mask.
        c: Operand,
        /// The lanes that meet; `None` without `.sync`.
        mask: Option<Operand>,
    },
    /// `vote.sync`, and the old `vote` without a mask.
    Vote {
        /// What is asked.
        mode: VoteMode,
        /// The answer: a mask for a ballot, else a predicate.
        dst: Reg,
        /// This lane's vote.
        a: Predicate,
        /// The lanes that meet; `None` without `.sync`.
        mask: Option<Operand>,
    },
    /// `match.sync`: which lanes hold the same value.
    Match {
        /// `.all`: the mask if all hold the same, else 0; `.any`: the lanes that hold this lane's.
        all: bool,
        /// `.b32` or `.b64`.
        ty: Type,
        /// The lanes.
        dst: Reg,
        /// For `.all`, whether all hold the same.
        dst_pred: Option<Reg>,
        /// This lane's value.
        a: Operand,
        /// The lanes that meet.
        mask: Operand,
    },
    /// `redux.sync`: folds the lanes' values.
    Redux {
        /// With what.
        op: ReduxOp,
        /// `.u32`, `.s32`, `.b32` or `.f32`.
        ty: Type,
        /// `.abs`: signs are dropped.
        magnitudes: bool,
        /// `.NaN`: the result is NaN if a value is; else numbers win.
        nan: bool,
        /// What every lane gets.
        dst: Reg,
        /// This lane's value.
        a: Operand,
        /// The lanes that meet.
        mask: Operand,
    },
    /// `activemask`: the lanes that execute this together.
    ActiveMask {
        /// The lanes.
        dst: Reg,
    },
    /// `elect.sync`: chooses one lane.
    Elect {
        /// The chosen lane's number.
        dst: Reg,
        /// Whether it is this one.
        dst_pred: Reg,
        /// The lanes that meet.
        mask: Operand,
    },

    // Blocks and clusters.
    /// `bar`, `barrier`: of the block.
    Barrier {
        /// What the thread does.
        op: BarrierOp,
        /// Which barrier, 0 to 15.
        id: Operand,
        /// Threads that take part, a multiple of 32; `None`: all of the block.
        count: Option<Operand>,
        /// All lanes of the warp must execute it together.
        aligned: bool,
    },
    /// `barrier.cluster.arrive`.
    ClusterArrive {
        /// Orders memory, or not (`.relaxed`).
        release: bool,
        /// All lanes of the warp must execute it together.
        aligned: bool,
    },
    /// `barrier.cluster.wait`; always acquires.
    ClusterWait {
        /// All lanes of the warp must execute it together.
        aligned: bool,
    },
    /// `mapa`: where an address of shared memory is in another block of the cluster.
    MapAddress {
        /// [`Space::Generic`], or [`Space::SharedCluster`] where both addresses are of that space.
        space: Space,
        /// `.u32` or `.u64`.
        ty: Type,
        /// The destination.
        dst: Reg,
        /// The address in this block.
        a: Operand,
        /// The other block's rank.
        rank: Operand,
    },
    /// `getctarank`: the block of the cluster to whose shared memory an address belongs.
    BlockRank {
        /// [`Space::Generic`] or [`Space::SharedCluster`].
        space: Space,
        /// The rank.
        dst: Reg,
        /// The address.
        a: Operand,
    },

    // Copies beside the program.
    /// `cp.async`: from global to shared, in the thread's present group.
    CopyAsync {
        /// In shared memory.
        dst: Address,
        /// In global memory.
        src: Address,
        /// Bytes written: 4, 8 or 16.
        size: u32,
        /// Bytes read; the rest becomes zero.
        src_size: Option<Operand>,
        /// Where this holds nothing is read: all becomes zero.
        ignore_src: Option<Predicate>,
    },
    /// `cp.async.commit_group`: closes the present group.
    CopyCommit,
    /// `cp.async.wait_group`, `cp.async.wait_all`.
    CopyWait {
        /// Groups that may stay open, of the youngest; `None`: no copy may, committed or not.
        pending: Option<u32>,
    },
    /// `cp.async.mbarrier.arrive`: arrives once the thread's copies so far are done.
    CopyArrive {
        /// The space of the address.
        space: Space,
        /// The mbarrier.
        address: Address,
        /// `.noinc`: the arrival is one of those that the barrier expects; else it expects one more for it.
        no_increment: bool,
    },
    /// `cp.async.bulk`, `cp.reduce.async.bulk`.
    CopyBulk {
        /// Which way.
        copy: BulkCopy,
        /// To where; aligned to 16 bytes.
        dst: Address,
        /// From where; aligned to 16 bytes.
        src: Address,
        /// Bytes, a multiple of 16.
        size: Operand,
        /// Elements are not copied but combined with those of the destination, each in one step.
        reduce: Option<(AtomicOp, Type)>,
    },
    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`: a tile of a tensor.
    CopyTensor {
        /// Which way.
        copy: BulkCopy,
        /// Where the tensor map is; generic.
        map: Address,
        /// The coordinates of the tile's first element, the innermost first.
        at: Box<[Operand]>,
        /// With `.im2col`, what is added to the coordinates of pixels: nothing, or one number for each direction but the innermost and the
        /// outermost. `None`: the tile is a box.
        offsets: Option<Box<[Operand]>>,
        /// The tile in shared memory; aligned to 128 bytes.
        tile: Address,
        /// Elements are not copied but combined with those of the tensor, each in one step.
        reduce: Option<AtomicOp>,
    },
    /// `st.async`, `red.async`: registers go to the shared memory of a block of the cluster, and an mbarrier there learns of the bytes.
    StoreAsync {
        /// The type of an element.
        ty: Type,
        /// To where.
        dst: Address,
        /// The values.
        values: Box<[Operand]>,
        /// The mbarrier, in the same block's memory.
        mbarrier: Address,
        /// The value is not stored but combined with what memory holds.
        reduce: Option<AtomicOp>,
    },
    /// `cp.async.bulk.commit_group`.
    CopyBulkCommit,
    /// `cp.async.bulk.wait_group`.
    CopyBulkWait {
        /// Groups that may stay open, of the youngest.
        pending: u32,
        /// `.read`: it is enough that sources were read.
        read: bool,
    },

    // Barriers in shared memory.
    /// `mbarrier.init`.
    MbarrierInit {
        /// The space of the address.
        space: Space,
        /// The mbarrier.
        address: Address,
        /// Arrivals that complete a phase.
        count: Operand,
    },
    /// `mbarrier.inval`: the memory may hold other things again.
    MbarrierInvalidate {
        /// The space of the address.
        space: Space,
        /// The mbarrier.
        address: Address,
    },
    /// `mbarrier.arrive`, `mbarrier.arrive_drop`, with `.expect_tx` or not.
    MbarrierArrive {
        /// The space of the address.
        space: Space,
        /// The mbarrier.
        address: Address,
        /// The phase it arrived in; `None` where the text drops it.
        dst: Option<Reg>,
        /// Arrivals; one where nothing is said.
        count: Option<Operand>,
        /// Bytes that the phase expects besides.
        expect: Option<Operand>,
        /// `arrive_drop`: later phases expect this many fewer.
        drop: bool,
        /// `.noComplete`: the arrival must not complete the phase.
        no_complete: bool,
        /// Release unless the text says `.relaxed`.
        order: Order,
        /// Among whom.
        scope: Scope,
    },
    /// `mbarrier.expect_tx` and `mbarrier.complete_tx`.
    MbarrierTransaction {
        /// The space of the address.
        space: Space,
        /// The mbarrier.
        address: Address,
        /// Bytes.
        bytes: Operand,
        /// They have arrived; else they are expected besides.
        complete: bool,
        /// Among whom.
        scope: Scope,
    },
    /// `mbarrier.test_wait` and `mbarrier.try_wait`.
    MbarrierWait {
        /// The space of the address.
        space: Space,
        /// The mbarrier.
        address: Address,
        /// Whether the phase is complete.
        dst: Reg,
        /// Which phase.
        phase: Phase,
        /// `try_wait`: may rest before it answers.
        may_rest: bool,
        /// Acquire unless the text says `.relaxed`.
        order: Order,
        /// Among whom.
        scope: Scope,
    },
    /// `mbarrier.pending_count`: arrivals that a state still expected.
    MbarrierPending {
        /// The count.
        dst: Reg,
        /// The state.
        a: Operand,
    },
}
