//! Rungs.

use core::fmt;
use warpfold_core::{DType, Op};

/// Where a rung comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    /// Professional CUDA C Programming, chapter 3.
    P,
    /// A course's series v0, v1, v2.
    F,
    /// The CUDA Handbook, section 12.2.
    H,
    /// The Stanford CS193g tutorial.
    S,
    /// An article on warp shuffles.
    W,
    /// In none of the texts: later techniques, and what stands between two rungs.
    Beyond,
}

impl Text {
    /// Every text, in the ladder's order.
    pub const ALL: [Text; 6] = [Text::P, Text::F, Text::H, Text::S, Text::W, Text::Beyond];

    /// The name used on the command line: `P`, `beyond`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Text::P => "P",
            Text::F => "F",
            Text::H => "H",
            Text::S => "S",
            Text::W => "W",
            Text::Beyond => "beyond",
        }
    }

    /// The text's title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Text::P => "Professional CUDA C Programming, chapter 3",
            Text::F => "a course's series v0, v1, v2",
            Text::H => "The CUDA Handbook, section 12.2",
            Text::S => "the Stanford CS193g tutorial, block_sum",
            Text::W => "an article on warp shuffles",
            Text::Beyond => "in none of the texts",
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How many threads a block may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Any number from this one to 1024.
    Any(u32),
    /// The powers of two from this one to 1024.
    PowersOfTwo(u32),
    /// Whole warps: the multiples of 32 to 1024.
    Warps,
}

impl Blocks {
    /// Whether a block of `threads` threads is legal.
    #[must_use]
    pub const fn allow(self, threads: u32) -> bool {
        let legal = match self {
            Blocks::Any(least) => threads >= least,
            Blocks::PowersOfTwo(least) => threads >= least && threads.is_power_of_two(),
            Blocks::Warps => threads >= 32 && threads.is_multiple_of(32),
        };
        legal && threads <= 1024
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocks::Any(least) => write!(f, "{least} to 1024"),
            Blocks::PowersOfTwo(least) => write!(f, "powers of two from {least} to 1024"),
            Blocks::Warps => f.write_str("multiples of 32 up to 1024"),
        }
    }
}

/// How a rung is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// A block leaves a partial of its tile; the same again over the partials,
    /// until one value is left.
    Passes {
        /// Elements of a tile for each thread.
        columns: u32,
        /// How many times as many blocks there are as tiles.
        surplus: u32,
        /// Whether a block folds in global memory, as large as its threads.
        global: bool,
    },
    /// As many blocks as the device runs at once, then one over their partials.
    TwoLaunches,
    /// One launch: the last block folds the partials.
    LastBlock,
    /// One launch: blocks add to the answer, which is set to zero before.
    Atomic,
    /// One cooperative launch, whose blocks wait for each other.
    GridSync,
    /// One launch in clusters of this many blocks: the last cluster folds the partials.
    Clusters(u32),
    /// Each level is a grid that the one before has launched; then the same over the
    /// partials.
    TailLaunches {
        /// The most blocks of the first grid.
        most: u32,
    },
    /// The library's engine.
    Library,
    /// NVIDIA's CUB.
    Cub,
    /// No launch: the host does it.
    Host,
}

impl Plan {
    /// Whether the grid is as large as the device runs at once, and could be another.
    #[must_use]
    pub const fn has_free_grid(self) -> bool {
        matches!(
            self,
            Plan::TwoLaunches | Plan::LastBlock | Plan::Atomic | Plan::GridSync | Plan::Clusters(_)
        )
    }

    /// Whether the number of threads of a block matters.
    #[must_use]
    pub const fn has_blocks(self) -> bool {
        !matches!(self, Plan::Library | Plan::Cub | Plan::Host)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::Passes { columns: 1, .. } => f.write_str(
                "a block for each tile of one element a thread, until one value is left",
            ),
            Plan::Passes { columns, surplus, .. } => {
                write!(f, "a block for each tile of {columns} elements a thread")?;
                if *surplus > 1 {
                    write!(f, ", and {surplus} times as many blocks")?;
                }
                f.write_str(", until one value is left")
            }
            Plan::TwoLaunches => {
                f.write_str("two launches: the blocks that run at once, then one block")
            }
            Plan::LastBlock => f.write_str("one launch of the blocks that run at once"),
            Plan::Atomic => f.write_str("one launch, after the answer was set to zero"),
            Plan::GridSync => f.write_str("one cooperative launch of the blocks that run at once"),
            Plan::Clusters(blocks) => {
                write!(f, "one launch in clusters of {blocks}, of the blocks that run at once")
            }
            Plan::TailLaunches { most } => write!(
                f,
                "at most {most} blocks, then a launch for each level, then one block over their partials"
            ),
            Plan::Library => f.write_str("one launch, of a size that the library chooses"),
            Plan::Cub => f.write_str("one or two, as CUB chooses"),
            Plan::Host => f.write_str("none: the host's own thread"),
        }
    }
}

/// A rung of the ladder.
#[derive(Clone, Copy, Debug)]
pub struct Rung {
    /// Its name: `unroll8`.
    pub id: &'static str,
    /// Where it comes from.
    pub texts: &'static [Text],
    /// What it is, in a few words.
    pub title: &'static str,
    /// The lesson.
    pub teaches: &'static str,
    /// What the classic listing gets wrong and this one does not.
    pub fault: &'static str,
    /// The difference to the rung before.
    pub change: &'static str,
    /// The expected effect, written down before it was measured.
    pub expectation: &'static str,
    /// How it is launched.
    pub plan: Plan,
    /// How many threads a block may have.
    pub blocks: Blocks,
    /// The element types.
    pub dtypes: &'static [DType],
    /// The operations.
    pub ops: &'static [Op],
    /// The kernel's file and name, and what else of its sources belongs to it.
    pub(crate) kernel: Kernel,
}

/// What dynamic shared memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// There is none.
    None,
    /// A value for each thread.
    Slots,
    /// This many times sixteen bytes for each thread.
    Stages(u32),
}

/// A rung's kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    /// The file, without `.cu`.
    pub(crate) file: &'static str,
    /// The entry point.
    pub(crate) name: &'static str,
    /// Whether later launches have an entry point of their own: they read what
    /// was added and not elements.
    pub(crate) again: bool,
    /// Whether there is one for each number of threads.
    pub(crate) fixed: bool,
    /// The dynamic shared memory of a block.
    pub(crate) shared: Shared,
    /// The functions to show, in order: file and name.
    pub(crate) shown: &'static [(&'static str, &'static str)],
}

impl Rung {
    /// The name of the module, without the element type.
    pub(crate) fn module(&self, op: Op) -> &'static str {
        match op {
            Op::And | Op::Or | Op::Xor => "any_op_bits",
            _ => self.kernel.file,
        }
    }

    /// The name of the entry point for a launch: the first one, or a later one.
    pub(crate) fn entry(&self, op: Op, block: u32, first: bool) -> String {
        let Kernel { name, again, fixed, .. } = self.kernel;
        let op = if self.ops.len() > 1 { format!("_{op}") } else { String::new() };
        let width = if fixed { format!("_{block}") } else { String::new() };
        let again = if again && !first { "_again" } else { "" };
        format!("{name}{op}{width}{again}")
    }

    /// The kernel's sources that belong to this rung.
    #[must_use]
    pub fn source(&self) -> String {
        match self.plan {
            Plan::Library => "// the library's own: crates/cuda/kernels/README.md\n".into(),
            Plan::Cub => crate::cub::SOURCE.into(),
            _ => crate::source::of(self.kernel.shown),
        }
    }
}
