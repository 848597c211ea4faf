//! Launches: their shapes, their limits, and how they can end.

use super::program::Program;
use super::space::SYSTEM_SHARED;
use crate::ir::{Function, Line, Type};
use crate::name::demangled;
use crate::place::{LANES, Place};
use core::fmt;

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks of the grid along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster; `None` for a launch without clusters.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// All blocks are resident at once, or the launch fails.
    pub cooperative: bool,
}

impl Shape {
    /// A grid of `blocks` blocks of `threads` threads.
    #[must_use]
    pub fn linear(blocks: u32, threads: u32) -> Shape {
        Shape {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            cluster: None,
            shared: 0,
            cooperative: false,
        }
    }

    /// The same with dynamic shared memory.
    #[must_use]
    pub fn with_shared(mut self, bytes: u32) -> Shape {
        self.shared = bytes;
        self
    }

    /// Threads of a block. The shape must have been checked.
    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Blocks of the grid. The shape must have been checked.
    pub(crate) fn blocks(&self) -> u32 {
        self.grid.iter().product()
    }

    /// Blocks of a cluster; 1 without clusters.
    pub(crate) fn cluster_blocks(&self) -> u32 {
        self.cluster.map_or(1, |c| c.iter().product())
    }

    /// Warps of a block.
    pub(crate) fn warps(&self) -> u32 {
        self.threads().div_ceil(LANES as u32)
    }
}

/// A kernel's argument.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the types")]
pub enum Arg<'a> {
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    /// An address in device memory.
    Pointer(u64),
    /// The bytes of a struct, or of any parameter.
    Bytes(&'a [u8]),
}

impl Arg<'_> {
    /// The bytes that are passed.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match *self {
            Arg::U8(x) => x.to_le_bytes().into(),
            Arg::U16(x) => x.to_le_bytes().into(),
            Arg::U32(x) => x.to_le_bytes().into(),
            Arg::U64(x) | Arg::Pointer(x) => x.to_le_bytes().into(),
            Arg::I32(x) => x.to_le_bytes().into(),
            Arg::I64(x) => x.to_le_bytes().into(),
            Arg::F32(x) => x.to_le_bytes().into(),
            Arg::F64(x) => x.to_le_bytes().into(),
            Arg::Bytes(bytes) => bytes.into(),
        }
    }

    /// Whether it is a floating-point number or a pointer. The parameter must be the same.
    fn fits(&self, ty: Type) -> bool {
        match self {
            Arg::F32(_) | Arg::F64(_) => ty.is_float() || ty.class() == crate::ir::Class::Bits,
            Arg::Bytes(_) => true,
            _ => !ty.is_float(),
        }
    }
}

/// The type and the value, as the command line has them.
impl fmt::Display for Arg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arg::U8(x) => write!(f, "u8:{x}"),
            Arg::U16(x) => write!(f, "u16:{x}"),
            Arg::U32(x) => write!(f, "u32:{x}"),
            Arg::U64(x) => write!(f, "u64:{x}"),
            Arg::I32(x) => write!(f, "i32:{x}"),
            Arg::I64(x) => write!(f, "i64:{x}"),
            Arg::F32(x) => write!(f, "f32:{x}"),
            Arg::F64(x) => write!(f, "f64:{x}"),
            Arg::Pointer(_) => f.write_str("an address"),
            Arg::Bytes(_) => f.write_str("a struct"),
        }
    }
}

/// The limits of the simulated device: those of compute capability 9.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Threads of a block.
    pub threads: u32,
    /// Threads along each direction of a block.
    pub block: [u32; 3],
    /// Blocks along each direction of a grid.
    pub grid: [u32; 3],
    /// Bytes of shared memory of a block by default.
    pub shared: u32,
    /// Bytes of shared memory of a block whose kernel has opted in to more.
    pub shared_opt_in: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Threads that are resident on a multiprocessor.
    pub resident_threads: u32,
    /// Blocks that are resident on a multiprocessor.
    pub resident_blocks: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub multiprocessor_shared: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            threads: 1024,
            block: [1024, 1024, 64],
            grid: [0x7fff_ffff, 65535, 65535],
            shared: 48 << 10,
            shared_opt_in: 227 << 10,
            cluster: 8,
            multiprocessors: 132,
            resident_threads: 2048,
            resident_blocks: 32,
            multiprocessor_shared: 228 << 10,
        }
    }
}

impl Limits {
    /// Blocks of a shape that are resident at once on the whole device.
    pub(crate) fn resident(&self, shape: &Shape, static_shared: u64) -> u32 {
        let shared = static_shared + u64::from(shape.shared) + SYSTEM_SHARED;
        let by_shared = u64::from(self.multiprocessor_shared) / shared;
        let by_threads = self.resident_threads / (shape.warps() * LANES as u32).max(1);
        let each = by_threads.min(self.resident_blocks).min(by_shared as u32);
        each.max(1) * self.multiprocessors
    }
}

/// Why a launch is invalid.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LaunchError {
    /// A direction of the grid or the block is 0 or too large.
    Dimensions {
        /// Grid or block.
        what: &'static str,
        /// The value requested.
        value: [u32; 3],
        /// The largest.
        limit: [u32; 3],
    },
    /// More blocks than the interpreter numbers.
    GridSize {
        /// The value requested.
        grid: [u32; 3],
    },
    /// Too many threads.
    Threads {
        /// The value requested.
        asked: u64,
        /// The most.
        limit: u64,
        /// The origin of the limit.
        why: &'static str,
    },
    /// The kernel demands another block.
    RequiredBlock {
        /// The value that it needs.
        required: [u32; 3],
        /// The value requested.
        asked: [u32; 3],
    },
    /// The kernel needs a cluster that the launch does not have, or the cluster is invalid.
    Cluster {
        /// The value requested.
        asked: [u32; 3],
        /// What is wrong with it.
        why: String,
    },
    /// Too much shared memory.
    Shared {
        /// Static and dynamic.
        asked: u64,
        /// Static.
        fixed: u64,
        /// The most.
        limit: u64,
    },
    /// A cooperative grid that does not fit on the device.
    Cooperative {
        /// The value requested.
        asked: u32,
        /// The most.
        limit: u32,
    },
    /// Too few or too many arguments.
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// What it takes.
        expected: usize,
        /// What was given.
        given: usize,
    },
    /// An argument of another size or type.
    ArgumentType {
        /// The kernel.
        kernel: String,
        /// Which one, from 0.
        index: usize,
        /// The parameter's name.
        parameter: String,
        /// Its type, and its size where that differs.
        expected: String,
        /// Those of the argument.
        given: String,
    },
    /// A pointer that is not aligned as the parameter promises.
    ArgumentAlignment {
        /// Which one, from 0.
        index: usize,
        /// The parameter's name.
        parameter: String,
        /// The argument.
        address: u64,
        /// What the parameter promises.
        align: u64,
    },
}

impl core::fmt::Display for LaunchError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            LaunchError::Dimensions { what, value, limit } => {
                write!(f, "{what} of {value:?}: each direction is 1 to {limit:?}")
            }
            LaunchError::GridSize { grid } => {
                write!(f, "a grid of {grid:?} has more than {} blocks", u32::MAX)
            }
            LaunchError::Threads { asked, limit, why } => {
                write!(f, "a block of {asked} threads: at most {limit}{why}")
            }
            LaunchError::RequiredBlock { required, asked } => write!(
                f,
                "the kernel demands blocks of {required:?} threads (.reqntid), not {asked:?}"
            ),
            LaunchError::Cluster { asked, why } => {
                write!(f, "a cluster of {asked:?} blocks: {why}")
            }
            LaunchError::Shared { asked, fixed, limit } => write!(
                f,
                "{asked} bytes of shared memory ({fixed} of them static): at most {limit}"
            ),
            LaunchError::Cooperative { asked, limit } => write!(
                f,
                "a cooperative grid of {asked} blocks: at most {limit} of them are resident at once"
            ),
            LaunchError::ArgumentCount { kernel, expected, given } => {
                write!(f, "{given} arguments: kernel `{}` takes {expected}", demangled(kernel))
            }
            LaunchError::ArgumentType { kernel, index, parameter, expected, given } => write!(
                f,
                "argument {index} is {given}; parameter `{parameter}` of kernel `{}` is {expected}",
                demangled(kernel)
            ),
            LaunchError::ArgumentAlignment { index, parameter, address, align } => write!(
                f,
                "argument {index}, {address:#x}, is not aligned to {align} bytes as parameter `{parameter}` promises"
            ),
        }
    }
}

impl core::error::Error for LaunchError {}

impl LaunchError {
    /// What would help.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            LaunchError::Dimensions { .. } | LaunchError::GridSize { .. } => {
                "use fewer blocks and let each thread take several elements"
            }
            LaunchError::Threads { .. } | LaunchError::RequiredBlock { .. } => {
                "launch with the block that the kernel was compiled for"
            }
            LaunchError::Cluster { .. } => "the grid must be a multiple of the cluster",
            LaunchError::Shared { limit, .. } if *limit > u64::from(Limits::default().shared) => {
                "a block has no more: keep less in shared memory, or use more blocks"
            }
            LaunchError::Shared { .. } => {
                "request less, or opt in to more as cudaFuncSetAttribute does"
            }
            LaunchError::Cooperative { .. } => "use fewer or smaller blocks",
            LaunchError::ArgumentType { .. } => {
                "an argument has the type of its parameter; `warpfold ptx info` lists the parameters"
            }
            LaunchError::ArgumentCount { .. } | LaunchError::ArgumentAlignment { .. } => {
                "compare the arguments with the kernel's parameters"
            }
        }
    }
}

/// Checks a shape against the device and the kernel.
pub(crate) fn check_shape(
    shape: &Shape,
    program: &Program,
    limits: &Limits,
    opted_in: bool,
) -> Result<Shape, LaunchError> {
    let mut shape = *shape;
    let bounds = &program.bounds;
    let within =
        |value: [u32; 3], limit: [u32; 3]| value.iter().zip(limit).all(|(&v, l)| v > 0 && v <= l);
    for (what, value, limit) in
        [("a grid", shape.grid, limits.grid), ("a block", shape.block, limits.block)]
    {
        if !within(value, limit) {
            return Err(LaunchError::Dimensions { what, value, limit });
        }
    }
    let wide = |v: [u32; 3]| v.iter().map(|&x| u128::from(x)).product::<u128>();
    if wide(shape.grid) > u128::from(u32::MAX) {
        return Err(LaunchError::GridSize { grid: shape.grid });
    }
    let threads = wide(shape.block) as u64;
    if threads > u64::from(limits.threads) {
        return Err(LaunchError::Threads { asked: threads, limit: limits.threads.into(), why: "" });
    }
    if let Some(most) = bounds.largest_block.map(|b| wide(b) as u64)
        && threads > most
    {
        let why = ", says the kernel's .maxntid";
        return Err(LaunchError::Threads { asked: threads, limit: most, why });
    }
    if let Some(required) = bounds.required_block
        && required.map(|x| x.max(1)) != shape.block
    {
        return Err(LaunchError::RequiredBlock { required, asked: shape.block });
    }
    check_cluster(&mut shape, program, limits)?;
    let asked = program.static_shared.saturating_add(shape.shared.into());
    let limit = u64::from(if opted_in { limits.shared_opt_in } else { limits.shared });
    if asked > limit {
        return Err(LaunchError::Shared { asked, fixed: program.static_shared, limit });
    }
    let resident = limits.resident(&shape, program.static_shared);
    if shape.cooperative && shape.blocks() > resident {
        return Err(LaunchError::Cooperative { asked: shape.blocks(), limit: resident });
    }
    Ok(shape)
}

/// The kernel's own cluster counts where the launch names none.
fn check_cluster(shape: &mut Shape, program: &Program, limits: &Limits) -> Result<(), LaunchError> {
    let bounds = &program.bounds;
    let required = bounds.required_cluster.map(|c| c.map(|x| x.max(1)));
    if shape.cluster.is_none() {
        shape.cluster = required;
    }
    let Some(cluster) = shape.cluster else {
        return if bounds.explicit_cluster {
            Err(LaunchError::Cluster {
                asked: [1; 3],
                why: "the kernel must be launched with one (.explicitcluster)".into(),
            })
        } else {
            Ok(())
        };
    };
    let bad = |why: String| Err(LaunchError::Cluster { asked: cluster, why });
    if let Some(required) = required
        && required != cluster
    {
        return bad(format!("the kernel demands {required:?} (.reqnctapercluster)"));
    }
    let blocks: u64 = cluster.iter().map(|&x| u64::from(x)).product();
    let most = bounds.largest_cluster.unwrap_or(limits.cluster).min(16);
    if cluster.iter().any(|&x| x == 0 || x > 16) || blocks > u64::from(most) {
        return bad(format!("1 to {most} blocks"));
    }
    if shape.grid.iter().zip(cluster).any(|(g, c)| g % c != 0) {
        return bad(format!("the grid {:?} is not a multiple of it", shape.grid));
    }
    Ok(())
}

/// Lays the arguments out as the kernel expects them.
pub(crate) fn lay_out(kernel: &Function, args: &[Arg<'_>]) -> Result<Vec<u8>, LaunchError> {
    if args.len() != kernel.parameters.len() {
        return Err(LaunchError::ArgumentCount {
            kernel: kernel.name.clone(),
            expected: kernel.parameters.len(),
            given: args.len(),
        });
    }
    let mut bytes = vec![0; kernel.argument_bytes() as usize];
    // Compilers name parameters by the kernel and a number.
    let named = |parameter: &str| {
        let number = parameter.strip_prefix(kernel.name.as_str());
        number.and_then(|rest| rest.strip_prefix('_')).unwrap_or(parameter).to_owned()
    };
    for (index, (arg, parameter)) in args.iter().zip(&kernel.parameters).enumerate() {
        let given = arg.bytes();
        if given.len() as u64 != parameter.bytes() || !arg.fits(parameter.ty) {
            let mut expected = match parameter.length {
                Some(n) => format!("{n} times {}", parameter.ty.name()),
                None => parameter.ty.name().to_string(),
            };
            let mut is = arg.to_string();
            // Sizes that are the same say nothing.
            if given.len() as u64 != parameter.bytes() {
                expected += &format!(" ({} bytes)", parameter.bytes());
                is += &format!(" ({} bytes)", given.len());
            }
            return Err(LaunchError::ArgumentType {
                kernel: kernel.name.clone(),
                index,
                parameter: named(&parameter.name),
                expected,
                given: is,
            });
        }
        if let (Arg::Pointer(address), Some((_, align))) = (arg, parameter.pointer)
            && align > 1
            && address % align != 0
        {
            return Err(LaunchError::ArgumentAlignment {
                index,
                parameter: named(&parameter.name),
                address: *address,
                align,
            });
        }
        let at = parameter.offset as usize;
        bytes[at..at + given.len()].copy_from_slice(&given);
    }
    Ok(bytes)
}

/// Threads of a warp that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The first of them.
    pub place: Place,
    /// The lanes.
    pub lanes: u32,
    /// The instruction they wait at.
    pub line: Line,
    /// The reason.
    pub what: String,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warp = self.place.warp();
        write!(f, "block {}, warp {}, lanes {:#010x} at ", warp.block, warp.warp, self.lanes)?;
        match self.line.source {
            Some((_, line)) => write!(f, "source line {line} (PTX line {})", self.line.ptx)?,
            None => write!(f, "PTX line {}", self.line.ptx)?,
        }
        write!(f, ": {}", self.what)
    }
}

/// Why a kernel did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Halt {
    /// No thread can continue.
    Deadlock {
        /// The first threads that wait, and where.
        waiting: Vec<Waiting>,
    },
    /// The limit of instructions was reached.
    InstructionLimit {
        /// The limit.
        limit: u64,
        /// Blocks that had ended.
        finished: u64,
        /// Blocks of the grid: with those that had ended they tell how many instructions all would take.
        blocks: u64,
        /// The first threads, and where they were.
        running: Vec<Waiting>,
    },
    /// Who watched stopped it.
    Stopped {
        /// Blocks that had ended.
        finished: u64,
        /// Blocks of the grid.
        blocks: u64,
    },
    /// `trap`.
    Trap {
        /// The instruction.
        line: Line,
        /// The thread.
        place: Place,
    },
    /// `assert` failed.
    Assertion {
        /// The call.
        line: Line,
        /// The thread.
        place: Place,
        /// The message of the kernel.
        message: String,
    },
    /// The kernel reached an instruction that the interpreter does not have.
    Unsupported {
        /// The instruction.
        line: Line,
        /// The thread.
        place: Place,
        /// What it is.
        what: String,
    },
    /// Calls nest too deep, or a call goes nowhere.
    Call {
        /// The call.
        line: Line,
        /// The thread.
        place: Place,
        /// What is wrong.
        what: String,
    },
    /// An invalid launch from the device.
    DeviceLaunch {
        /// What is wrong.
        what: String,
    },
    /// This machine has too little memory.
    Memory(crate::memory::MemoryError),
}

impl core::fmt::Display for Halt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Halt::Deadlock { waiting } => write!(f, "deadlock: {}", list(waiting)),
            Halt::InstructionLimit { limit, finished, blocks, running } => write!(
                f,
                "the limit of {limit} warp instructions was reached, with {finished} of {blocks} blocks finished{}; {}",
                estimate(*limit, *finished, *blocks),
                list(running)
            ),
            Halt::Stopped { finished, blocks } => {
                write!(f, "stopped with {finished} of {blocks} blocks finished")
            }
            Halt::Trap { line, place } => write!(f, "trap at PTX line {}, {place}", line.ptx),
            Halt::Assertion { place, message, .. } => {
                write!(f, "{place}: assertion failed: {message}")
            }
            Halt::Unsupported { line, place, what } => {
                write!(f, "PTX line {}, {place}: {what}", line.ptx)
            }
            Halt::Call { line, place, what } => write!(f, "PTX line {}, {place}: {what}", line.ptx),
            Halt::DeviceLaunch { what } => write!(f, "a launch from the device: {what}"),
            Halt::Memory(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Halt {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Halt::Memory(error) => error.source(),
            _ => None,
        }
    }
}

impl From<crate::memory::MemoryError> for Halt {
    fn from(error: crate::memory::MemoryError) -> Self {
        Halt::Memory(error)
    }
}

impl Halt {
    /// A short name, stable, for machine-readable output.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Halt::Deadlock { .. } => "deadlock",
            Halt::InstructionLimit { .. } => "instruction-limit",
            Halt::Stopped { .. } => "stopped",
            Halt::Trap { .. } => "trap",
            Halt::Unsupported { .. } => "unsupported",
            Halt::Assertion { .. } => "assertion",
            Halt::Call { .. } => "call",
            Halt::DeviceLaunch { .. } => "device-launch",
            Halt::Memory(_) => "memory",
        }
    }

    /// Warp instructions that all blocks of the grid would take, as far as those that had ended at the limit tell.
    #[must_use]
    pub fn whole_grid(&self) -> Option<u64> {
        match *self {
            Halt::InstructionLimit { limit, finished, blocks, .. } => {
                whole_grid(limit, finished, blocks)
            }
            _ => None,
        }
    }

    /// What would help.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Halt::Deadlock { .. } => {
                "all threads must reach the same barriers, and a thread must not wait for work that waits for it"
            }
            Halt::InstructionLimit { .. } => {
                "a loop may never end, or the grid needs more: try a smaller one, or raise the limit"
            }
            Halt::Stopped { .. } => "let it run to its end, or launch a smaller grid",
            Halt::Trap { .. } | Halt::Assertion { .. } => "the kernel itself found a fault",
            Halt::Unsupported { .. } => {
                "`warpfold ptx info` lists everything in a file that is not supported"
            }
            Halt::Call { .. } | Halt::DeviceLaunch { .. } => "recursion needs an end",
            Halt::Memory(error) => error.hint(),
        }
    }
}

fn whole_grid(limit: u64, finished: u64, blocks: u64) -> Option<u64> {
    let all = u128::from(limit) * u128::from(blocks);
    all.checked_div(u128::from(finished)).and_then(|n| u64::try_from(n).ok())
}

fn estimate(limit: u64, finished: u64, blocks: u64) -> String {
    match whole_grid(limit, finished, blocks) {
        Some(all) => format!(", so that all would take about {all}"),
        None => String::new(),
    }
}

fn list(waiting: &[Waiting]) -> String {
    waiting.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
