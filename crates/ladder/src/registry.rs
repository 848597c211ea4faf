//! Every rung, in the order of the ladder.

use crate::rung::{Blocks, Kernel, Plan, Rung, Text};
use warpfold_core::{DType, Op};

/// The types of the rungs that fold elements where they lie.
const WORDS: &[DType] = &[DType::I32, DType::U32, DType::I64, DType::U64, DType::F32, DType::F64];
/// And those that add 16-bit floats as f32.
const ALL_TYPES: &[DType] = &[
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];
const SUM: &[Op] = &[Op::Sum];

/// A kernel over words that is the same in every launch.
const fn kernel(
    file: &'static str,
    name: &'static str,
    shown: &'static [(&'static str, &'static str)],
) -> Kernel {
    Kernel { file, name, again: false, fixed: false, slots: false, shown }
}

const fn tiles(columns: u32) -> Plan {
    Plan::Passes { columns, surplus: 1, global: true }
}

const GUARD: &str = "returns before the barrier when past n, reads past n, and folds its input away, so that a second run differs";
const TAIL: &str = "its guard drops a ragged tail whole";
const VOLATILE: &str = "trusts `volatile` and lanes in step, which is a race since Volta";
const POWER: &str = "only blocks of powers of two";

/// The ladder.
pub static ALL: &[Rung] = &[
    Rung {
        id: "neighbored",
        texts: &[Text::P, Text::F],
        title: "neighbours add up, every second thread, then every fourth",
        teaches: "the tree of a block, and why active threads that are far apart waste warps",
        fault: GUARD,
        change: "the first rung",
        expectation: "a small part of the read rate: every warp runs all levels, for fewer and fewer lanes",
        plan: tiles(1),
        blocks: Blocks::Any(2),
        dtypes: WORDS,
        ops: SUM,
        kernel: kernel("pairing", "neighbored", &[("pairing.cu", "neighbored")]),
    },
    Rung {
        id: "neighbored-compact",
        texts: &[Text::P],
        title: "the same pairs, done by the first threads",
        teaches: "warps that have nothing to do cost nothing; lanes that have nothing to do cost a warp",
        fault: GUARD,
        change: "threads are numbered so that the active ones are side by side",
        expectation: "1.2 to 1.5 times as fast: half of the warps leave after the first level, and there is no remainder",
        plan: tiles(1),
        blocks: Blocks::Any(2),
        dtypes: WORDS,
        ops: SUM,
        kernel: kernel("pairing", "neighbored_compact", &[("pairing.cu", "neighbored_compact")]),
    },
    Rung {
        id: "interleaved",
        texts: &[Text::P],
        title: "partners half a tile apart",
        teaches: "lanes side by side should touch elements side by side",
        fault: "returns before the barrier when past n, reads past n, folds its input away, and needs a block of a power of two without asking",
        change: "the distance halves instead of doubling",
        expectation: "1.1 to 1.4 times as fast: a warp's access is a few sectors at every level",
        plan: tiles(1),
        blocks: Blocks::PowersOfTwo(2),
        dtypes: WORDS,
        ops: SUM,
        kernel: kernel("pairing", "interleaved", &[("pairing.cu", "interleaved")]),
    },
    Rung {
        id: "shared-neighbored",
        texts: &[Text::F],
        title: "neighbours add up in shared memory",
        teaches: "what is used again belongs on the multiprocessor",
        fault: "a second launch of one block takes at most 1024 partials",
        change: "as `neighbored`, but the levels are in shared memory: global memory is read once and not written",
        expectation: "1.3 to 2 times as fast as `neighbored`; lanes still diverge",
        plan: Plan::Passes { columns: 1, surplus: 1, global: false },
        blocks: Blocks::Any(2),
        dtypes: WORDS,
        ops: SUM,
        kernel: Kernel {
            slots: true,
            ..kernel("shared", "shared_neighbored", &[("shared.cu", "shared_neighbored")])
        },
    },
    Rung {
        id: "shared-first-add",
        texts: &[Text::F],
        title: "two elements added while they are loaded",
        teaches: "threads that only load are wasted: give each some work first",
        fault: "the guard reads past n, and a tail beyond the pair is not summed",
        change: "each thread loads two elements; half of the blocks",
        expectation: "1.6 to 1.9 times as fast: the levels cost the same, and there are half as many",
        plan: Plan::Passes { columns: 2, surplus: 1, global: false },
        blocks: Blocks::Any(1),
        dtypes: WORDS,
        ops: SUM,
        kernel: Kernel {
            slots: true,
            ..kernel("shared", "shared_first_add", &[("shared.cu", "shared_first_add")])
        },
    },
    Rung {
        id: "shared-first-add-full-grid",
        texts: &[Text::F],
        title: "the same, and nobody halved the grid",
        teaches: "blocks without elements still fold, and their zeros are folded again",
        fault: "the listing forgets to halve the grid: right, and slower",
        change: "as many blocks as `shared-neighbored` has",
        expectation: "slower than `shared-first-add`: half of the blocks fold zeros",
        plan: Plan::Passes { columns: 2, surplus: 2, global: false },
        blocks: Blocks::Any(2),
        dtypes: WORDS,
        ops: SUM,
        kernel: Kernel {
            slots: true,
            ..kernel("shared", "shared_first_add", &[("shared.cu", "shared_first_add")])
        },
    },
    unrolled(
        "unroll2",
        "unroll2",
        2,
        "two tiles a block",
        "1.5 to 2 times as fast as `interleaved`: half the blocks, barriers and partials, two loads in flight",
    ),
    unrolled(
        "unroll4",
        "unroll4",
        4,
        "four tiles a block",
        "1.3 to 1.8 times as fast as `unroll2`",
    ),
    unrolled(
        "unroll8",
        "unroll8",
        8,
        "eight tiles a block",
        "1.1 to 1.5 times as fast as `unroll4`: near to what memory gives",
    ),
    unrolled(
        "unroll16",
        "unroll16",
        16,
        "sixteen tiles a block",
        "no more than 1.1 times as fast as `unroll8`: registers, not loads, grow",
    ),
    Rung {
        id: "unroll8-loop",
        texts: &[Text::P],
        title: "eight tiles a block, by a loop that steps a pointer",
        teaches: "what counts in unrolling is loads that do not wait for each other",
        fault: TAIL,
        change: "as `unroll8`, but each load is added before the next one leaves",
        expectation: "slower than `unroll8` where few warps run at once, with fewer registers",
        plan: tiles(8),
        blocks: Blocks::PowersOfTwo(1),
        dtypes: WORDS,
        ops: SUM,
        kernel: kernel("unrolling", "unroll8_loop", &[("unrolling.cu", "unroll8_loop")]),
    },
    Rung {
        id: "unroll-warps8",
        texts: &[Text::P],
        title: "the last warp by itself",
        teaches: "a warp waits for its lanes alone, and a block for all of its warps",
        fault: "trusts `volatile` and lanes in step, which is a race since Volta; a block of 32 reads out of range",
        change: "as `unroll8`, but the last five levels wait with `__syncwarp`",
        expectation: "up to 1.1 times as fast: five barriers of the block go",
        plan: tiles(8),
        blocks: Blocks::PowersOfTwo(32),
        dtypes: WORDS,
        ops: SUM,
        kernel: kernel(
            "unrolled_warp",
            "unroll_warps8",
            &[("columns.cuh", "fold_columns"), ("unrolled_warp.cu", "unroll_warps8")],
        ),
    },
    Rung {
        id: "unroll-warps8-barrier",
        texts: &[Text::P],
        title: "the same with barriers of the block",
        teaches: "which part of the gain is the barriers",
        fault: TAIL,
        change: "as `unroll-warps8`, but every level waits for the whole block",
        expectation: "as fast as `unroll8`, a little slower than `unroll-warps8`",
        plan: tiles(8),
        blocks: Blocks::PowersOfTwo(32),
        dtypes: WORDS,
        ops: SUM,
        kernel: kernel(
            "unrolled_warp",
            "unroll_warps8_barrier",
            &[("columns.cuh", "fold_columns"), ("unrolled_warp.cu", "unroll_warps8_barrier")],
        ),
    },
    Rung {
        id: "complete-unroll8",
        texts: &[Text::P],
        title: "every level written out",
        teaches: "what a loop costs: its counter, its comparison, its branch",
        fault: "only blocks of 64 to 1024 threads, and the race of `volatile` in the last warp",
        change: "as `unroll-warps8`, but no loop is left",
        expectation: "up to 1.05 times as fast",
        plan: tiles(8),
        blocks: Blocks::PowersOfTwo(32),
        dtypes: WORDS,
        ops: SUM,
        kernel: kernel(
            "complete_unroll",
            "complete_unroll8",
            &[("columns.cuh", "fold_columns"), ("complete_unroll.cu", "complete_unroll8")],
        ),
    },
    Rung {
        id: "complete-unroll8-static",
        texts: &[Text::P],
        title: "the number of threads a template parameter",
        teaches: "what the compiler knows need not be asked at run time",
        fault: VOLATILE,
        change: "as `complete-unroll8`, but the compiler drops the levels that a block does not have",
        expectation: "no difference that can be seen: the questions were cheap",
        plan: tiles(8),
        blocks: Blocks::PowersOfTwo(1),
        dtypes: WORDS,
        ops: SUM,
        kernel: Kernel {
            fixed: true,
            ..kernel(
                "complete_unroll",
                "complete_unroll8_static",
                &[
                    ("columns.cuh", "fold_columns"),
                    ("complete_unroll.cu", "complete_unroll8_static"),
                ],
            )
        },
    },
    Rung {
        id: "two-pass-shared",
        texts: &[Text::H],
        title: "a register on the way through the array, then shared memory",
        teaches: "the grid fits the device and not the array; the tree is paid once a thread",
        fault: POWER,
        change: "each thread adds in steps of the whole grid; two launches for any n",
        expectation: "1.2 to 2 times as fast as the unrolled rungs for large n: hardly any writes, barriers or partials",
        plan: Plan::TwoLaunches,
        blocks: Blocks::PowersOfTwo(1),
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: two_pass(
            "two_pass_shared",
            false,
            &[("grid_stride.cuh", "add_grid_stride"), ("two_pass.cu", "two_pass_shared_of")],
        ),
    },
    Rung {
        id: "two-pass-warp",
        texts: &[Text::H],
        title: "the same with the last warp by itself",
        teaches: "once trees are rare their barriers do not matter",
        fault: VOLATILE,
        change: "the last five levels wait with `__syncwarp`",
        expectation: "no difference for large n; some percent at small ones",
        plan: Plan::TwoLaunches,
        blocks: Blocks::PowersOfTwo(32),
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: two_pass(
            "two_pass_warp",
            false,
            &[("grid_stride.cuh", "add_grid_stride"), ("two_pass.cu", "two_pass_warp_of")],
        ),
    },
    Rung {
        id: "two-pass-static",
        texts: &[Text::H],
        title: "the same for a number of threads that the compiler knows",
        teaches: "a template for each block size, and how the host picks one",
        fault: VOLATILE,
        change: "eleven instances, for 1 to 1024 threads",
        expectation: "no difference for large n",
        plan: Plan::TwoLaunches,
        blocks: Blocks::PowersOfTwo(1),
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: two_pass(
            "two_pass_static",
            true,
            &[("grid_stride.cuh", "add_grid_stride"), ("two_pass.cu", "two_pass_static")],
        ),
    },
    Rung {
        id: "block-sum",
        texts: &[Text::S],
        title: "one element a thread, of any type, in shared memory",
        teaches: "the textbook form: load, barrier, halve, barrier",
        fault: "two passes, so that at most the square of a block is summed",
        change: "as `shared-neighbored`, but the halves of the block add up, and the pass is repeated until one value is left",
        expectation: "1.5 to 2 times as fast as `shared-neighbored`; well behind the two passes, as each thread has one element",
        plan: Plan::Passes { columns: 1, surplus: 1, global: false },
        blocks: Blocks::PowersOfTwo(2),
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: Kernel {
            slots: true,
            again: true,
            ..kernel("block_sum", "block_sum", &[("block_sum.cu", "block_sum_of")])
        },
    },
    Rung {
        id: "warp-shuffle",
        texts: &[Text::W],
        title: "warps folded through registers",
        teaches: "lanes can read each other's registers: no memory, no barrier inside a warp",
        fault: "the mask must name every lane that takes part, and the second launch takes at most 1024 partials",
        change: "as `two-pass-shared`, but five shuffles fold a warp, and one barrier a block is left",
        expectation: "no difference for large n, where memory decides; up to 1.2 times as fast for small n",
        plan: Plan::TwoLaunches,
        blocks: Blocks::Warps,
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: again(
            "warps",
            "warp_shuffle",
            &[
                ("grid_stride.cuh", "add_grid_stride"),
                ("shuffles.cuh", "add_down"),
                ("shuffles.cuh", "add_block"),
                ("warps.cu", "warp_shuffle_of"),
            ],
        ),
    },
    Rung {
        id: "warp-allreduce",
        texts: &[Text::W],
        title: "every lane gets the sum",
        teaches: "exchanging costs what handing down costs",
        fault: "the mask must name every lane that takes part",
        change: "as `warp-shuffle`, but lanes exchange, so that every thread of the block knows the sum",
        expectation: "as fast as `warp-shuffle`",
        plan: Plan::TwoLaunches,
        blocks: Blocks::Warps,
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: again(
            "warps",
            "warp_allreduce",
            &[
                ("grid_stride.cuh", "add_grid_stride"),
                ("warps.cu", "add_all"),
                ("warps.cu", "warp_allreduce_of"),
            ],
        ),
    },
    Rung {
        id: "any-op",
        texts: &[Text::W],
        title: "any associative operation",
        teaches: "a reduction is an operation and its identity; the kernel is the same",
        fault: "fills up with 0, which is the identity of sums alone",
        change: "as `warp-shuffle`, but the operation is a type",
        expectation: "as fast as `warp-shuffle` for every operation",
        plan: Plan::TwoLaunches,
        blocks: Blocks::Warps,
        dtypes: ALL_TYPES,
        ops: &[Op::Sum, Op::Prod, Op::Min, Op::Max, Op::And, Op::Or, Op::Xor],
        kernel: again(
            "any_op",
            "any_op",
            &[
                ("any_op.cu", "Sum"),
                ("any_op.cu", "Min"),
                ("any_op.cuh", "fold_down"),
                ("any_op.cuh", "any_op"),
            ],
        ),
    },
    Rung {
        id: "vector-load",
        texts: &[Text::Beyond],
        title: "sixteen bytes a load, four loads on their way",
        teaches: "bytes in flight hide the latency of memory; ends and alignment need care once",
        fault: "the usual form takes only aligned arrays of whole vectors",
        change: "as `warp-shuffle`, but with wide loads, several of them before the first is added",
        expectation: "1.05 to 1.3 times as fast for large n, most for 16-bit types: the read rate",
        plan: Plan::TwoLaunches,
        blocks: Blocks::Warps,
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: again(
            "vector_load",
            "vector_load",
            &[
                ("vector_load.cu", "Vector"),
                ("vector_load.cu", "add_vector"),
                ("vector_load.cu", "vector_load_of"),
            ],
        ),
    },
    Rung {
        id: "last-block",
        texts: &[Text::Beyond],
        title: "the last block folds what all have left",
        teaches: "tickets, and the fences around them; one launch instead of two",
        fault: "a listing without fences, or whose tickets are not set back, is right once or by luck",
        change: "as `warp-shuffle`, but nobody launches again",
        expectation: "1.5 to 2 times as fast for small n: a launch less; no difference for large n",
        plan: Plan::LastBlock,
        blocks: Blocks::Warps,
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: kernel(
            "last_block",
            "last_block",
            &[
                ("grid_stride.cuh", "add_grid_stride"),
                ("shuffles.cuh", "add_block"),
                ("last_block.cu", "last_block"),
            ],
        ),
    },
    Rung {
        id: "atomic",
        texts: &[Text::Beyond],
        title: "blocks add to the answer",
        teaches: "one atomic a block is cheap; its order is not fixed, so that float sums may differ from run to run",
        fault: "one atomic a thread, all to one address",
        change: "as `last-block`, but without partials and tickets; the answer must be zero before",
        expectation: "as fast as `last-block`, less the time to set the answer to zero",
        plan: Plan::Atomic,
        blocks: Blocks::Warps,
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: kernel(
            "atomic",
            "atomic",
            &[
                ("grid_stride.cuh", "add_grid_stride"),
                ("shuffles.cuh", "add_block"),
                ("atomic.cu", "atomic"),
            ],
        ),
    },
    Rung {
        id: "redux",
        texts: &[Text::Beyond],
        title: "a warp's fold in one instruction",
        teaches: "integers of 32 bits have hardware for it, from compute capability 8.0 on",
        fault: "none: it is in none of the texts",
        change: "as `warp-shuffle`, but one `redux.sync` instead of five shuffles and adds",
        expectation: "no difference for large n; some percent for small n",
        plan: Plan::TwoLaunches,
        blocks: Blocks::Warps,
        dtypes: &[DType::I32, DType::U32],
        ops: SUM,
        kernel: again(
            "redux",
            "redux",
            &[("grid_stride.cuh", "add_grid_stride"), ("redux.cu", "redux_of")],
        ),
    },
    Rung {
        id: "grid-sync",
        texts: &[Text::Beyond],
        title: "a barrier of the whole grid",
        teaches: "blocks can wait for each other, if all of them are on the device at once",
        fault: "an ordinary launch of more blocks than fit waits for ever",
        change: "as `last-block`, but all blocks wait for all partials",
        expectation: "slower than `last-block` by some microseconds: the wait",
        plan: Plan::GridSync,
        blocks: Blocks::Warps,
        dtypes: ALL_TYPES,
        ops: SUM,
        kernel: kernel(
            "grid_sync",
            "grid_sync",
            &[
                ("grid_stride.cuh", "add_grid_stride"),
                ("shuffles.cuh", "add_block"),
                ("grid_sync.cu", "wait_for_grid"),
                ("grid_sync.cu", "grid_sync"),
            ],
        ),
    },
];

/// A rung of P that differs from its neighbours in the number of columns.
const fn unrolled(
    id: &'static str,
    name: &'static str,
    columns: u32,
    title: &'static str,
    expectation: &'static str,
) -> Rung {
    Rung {
        id,
        texts: &[Text::P],
        title,
        teaches: "fewer blocks with more to do, and more loads on their way at once",
        fault: TAIL,
        change: "each thread adds its places of several tiles before the block folds one",
        expectation,
        plan: tiles(columns),
        blocks: Blocks::PowersOfTwo(1),
        dtypes: WORDS,
        ops: SUM,
        kernel: kernel(
            "unrolling",
            name,
            &[("columns.cuh", "fold_columns"), ("unrolling.cu", "unroll")],
        ),
    }
}

/// A kernel whose second launch reads what the first has added.
const fn again(
    file: &'static str,
    name: &'static str,
    shown: &'static [(&'static str, &'static str)],
) -> Kernel {
    Kernel { again: true, ..kernel(file, name, shown) }
}

const fn two_pass(
    name: &'static str,
    fixed: bool,
    shown: &'static [(&'static str, &'static str)],
) -> Kernel {
    Kernel { slots: true, fixed, ..again("two_pass", name, shown) }
}

/// The rung with this name.
#[must_use]
pub fn find(id: &str) -> Option<&'static Rung> {
    ALL.iter().find(|rung| rung.id == id)
}
