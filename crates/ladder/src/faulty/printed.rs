//! What decides the behaviour of the printed listings, and what ours have in its place.
//!
//! The texts' code is not copied. A kernel in `kernels/texts.cu` has the printed one's guards, loops, order of steps, barriers, masks and
//! memory; what differs on purpose is a repair that stands here.

use crate::rung::Text;

/// A listing of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The text.
    pub text: Text,
    /// Its place in the text: `12-2`, `exercise 4`.
    pub place: &'static str,
    /// The first word of its kernels' names in `kernels/texts.cu`.
    pub kernel: &'static str,
    /// What decides what happens, as printed; ours has the same.
    pub same: &'static [&'static str],
    /// What does not compile or never ends as printed or cannot be run any more, and what ours has in its place.
    pub repairs: &'static [(&'static str, &'static str)],
}

const fn of(
    text: Text,
    place: &'static str,
    kernel: &'static str,
    same: &'static [&'static str],
    repairs: &'static [(&'static str, &'static str)],
) -> Printed {
    Printed { text, place, kernel, same, repairs }
}

const IN_PLACE: &str = "folds in the array itself, in global memory";
const RETURNS: &str = "a thread past the end returns before the barrier";
const ONE_GUARD: &str = "one test guards all tiles of a thread";
const VOLATILE: &str = "the last 32 lanes fold `volatile` memory without barriers, and nothing asks for more than 32 threads";
const TRUNCATES: &str = "the host divides the number of blocks without rounding up";
const AGAIN: &str =
    "the second launch has one block of as many threads as the first one's blocks have";
const DYNAMIC: &str = "dynamic shared memory, a slot for each thread";
const FOREVER: (&str, &str) = (
    "the step of the loop compares, `>=`, and does not shift: it never ends",
    "shifts; `ladder show --faulty` runs both",
);
const LAUNCH: (&str, &str) = (
    "a launch in the middle of the kernel, whose child may begin at once",
    "the thread that would launch does the child's work: a device of today begins a child that reads its parent's writes when the parent's grid has ended",
);

/// The listings, in the order of the texts.
pub static PRINTED: &[Printed] = &[
    of(
        Text::P,
        "reduceNeighbored",
        "p_neighbored",
        &[RETURNS, "`tid % (2 * stride) == 0` chooses the threads", IN_PLACE],
        &[("the number `idx` of the thread is used and not declared", "declared")],
    ),
    of(
        Text::P,
        "reduceNeighboredLess",
        "p_neighbored_compact",
        &[RETURNS, "`2 * stride * tid < blockDim.x` chooses the threads", IN_PLACE],
        &[],
    ),
    of(
        Text::P,
        "reduceInterleaved",
        "p_interleaved",
        &[RETURNS, "halves `blockDim.x` until nothing is left", IN_PLACE],
        &[],
    ),
    of(
        Text::P,
        "reduceUnrolling2 and 8, exercise 2",
        "p_unroll",
        &[ONE_GUARD, IN_PLACE, TRUNCATES],
        &[],
    ),
    of(
        Text::P,
        "exercise 3",
        "p_unroll8_loop",
        &[ONE_GUARD, "eight turns of a loop that steps a pointer", IN_PLACE, TRUNCATES],
        &[],
    ),
    of(
        Text::P,
        "reduceUnrollWarps8",
        "p_unroll_warps8",
        &[ONE_GUARD, "barriers while more than 64 values are left", VOLATILE, IN_PLACE],
        &[],
    ),
    of(
        Text::P,
        "exercise 4",
        "p_unroll_warps8_barrier",
        &[
            ONE_GUARD,
            "`tid < 32` guards each of the last six steps, and a barrier of the block ends it",
            "no `volatile`",
            IN_PLACE,
        ],
        &[],
    ),
    of(
        Text::P,
        "reduceCompleteUnrollWarps8",
        "p_complete_unroll8",
        &[
            ONE_GUARD,
            "each level asks for the size of the block and for the thread",
            VOLATILE,
            IN_PLACE,
        ],
        &[],
    ),
    of(
        Text::P,
        "reduceCompleteUnroll",
        "p_complete_unroll8_static",
        &[ONE_GUARD, "the size of the block is a template parameter", VOLATILE, IN_PLACE],
        &[],
    ),
    of(
        Text::P,
        "gpuRecursiveReduce",
        "p_nested",
        &[
            "at a leaf, two values, thread 0 returns before the barrier of the others",
            "a barrier, then thread 0 launches one block of half as many threads",
            "nobody asks whether a launch was accepted",
        ],
        &[(
            "the parent waits for its child by `cudaDeviceSynchronize`",
            "the child begins when its parent has ended: devices of today have no such call",
        )],
    ),
    of(
        Text::P,
        "gpuRecursiveReduceNosync",
        "p_nested_nosync",
        &["no barrier between a thread's own addition and the launch"],
        &[LAUNCH],
    ),
    of(
        Text::P,
        "gpuRecursiveReduce2",
        "p_nested_wide",
        &[
            "no barrier between a thread's own addition and the launch",
            "thread 0 of block 0 launches one child for all blocks",
            "a block has half as many threads as its tile has elements",
        ],
        &[LAUNCH],
    ),
    of(
        Text::F,
        "v0",
        "f_neighbored",
        &[
            "no test of the end of the array and no return",
            "`tid % (2 * stride) == 0` chooses the threads",
            IN_PLACE,
            "the second launch has one block of as many threads as partials",
        ],
        &[],
    ),
    of(
        Text::F,
        "v1",
        "f_shared_neighbored",
        &[
            "a partner is added without a test that the block has it",
            "the second launch has one block of as many threads as partials",
        ],
        &[],
    ),
    of(
        Text::F,
        "v2",
        "f_shared_first_add",
        &[
            "the first of two elements is tested, the second one is not",
            "the test is against the length of the array, in the second launch, too",
            "the second launch has one block of as many threads as partials",
        ],
        &[],
    ),
    of(
        Text::H,
        "12-1",
        "h_two_pass_shared",
        &[DYNAMIC, "halves `blockDim.x` until nothing is left", AGAIN],
        &[FOREVER],
    ),
    of(
        Text::H,
        "12-2",
        "h_two_pass_warp",
        &[
            DYNAMIC,
            "barriers while more than 64 values are left",
            "the first step of the last warp asks for more than 32 threads, the others do not",
            "`volatile`",
            AGAIN,
        ],
        &[FOREVER],
    ),
    of(
        Text::H,
        "12-3, 12-4",
        "h_two_pass_static",
        &[
            DYNAMIC,
            "each step asks whether the block has that many threads, and 32 lanes take it",
            "`volatile`",
            "the host picks one of eleven instances, and launches nothing where none fits",
            AGAIN,
        ],
        &[],
    ),
    of(
        Text::S,
        "block_sum",
        "s_block_sum",
        &[
            "halves `blockDim.x` until nothing is left",
            "the second launch has one block of as many threads as partials",
        ],
        &[],
    ),
    of(
        Text::W,
        "warpReduceSum, blockReduceSum, deviceReduceKernel",
        "w_warp_shuffle",
        &[
            "the mask is `warpSize - 1`",
            "`blockDim.x / warpSize` partials of warps are read",
            "both launches go in steps of their grid",
        ],
        &[],
    ),
    of(
        Text::W,
        "warpAllReduceSum",
        "w_warp_allreduce",
        &["the mask is `warpSize - 1`", "no thread leaves early"],
        &[("a function without a kernel", "a kernel around it, which pads with 0")],
    ),
];

/// The printed listing that a kernel of `kernels/texts.cu` is made after: of those whose name it begins with, the longest.
pub(super) fn of_kernel(name: &str) -> Option<&'static Printed> {
    let begins = |p: &&Printed| name.starts_with(p.kernel);
    PRINTED.iter().filter(begins).max_by_key(|p| p.kernel.len())
}
