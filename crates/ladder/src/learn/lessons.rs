//! The lessons.

use super::{Exercise, Lesson, Need, Run, What};
use crate::baselines::Counter;
use crate::rung::Blocks;

macro_rules! exercise {
    ($number:literal, $per_thread:literal, $blocks:expr, $needs:expr) => {
        Exercise {
            source: include_str!(concat!("../../learn/", $number, ".cu")),
            per_thread: $per_thread,
            blocks: $blocks,
            alone: false,
            needs: $needs,
        }
    };
}

const ANY: Blocks = Blocks::Any(1);
const POWERS: Blocks = Blocks::PowersOfTwo(32);

const fn run(rung: &'static str, n: u64, block: u32, what: What) -> Run {
    Run { rung, n, block, what }
}

/// The course, in order.
pub static LESSONS: [Lesson; 10] = [
    Lesson {
        number: 1,
        title: "Threads, blocks, grids",
        read: "A kernel is a function that many threads run at once. Threads come in blocks, and blocks in a grid. A thread knows its number in the block, `threadIdx.x`, the number of its block, `blockIdx.x`, and how many threads a block has, `blockDim.x`.\n\nAn array is cut into tiles, one for each block. The host starts as many blocks as there are tiles. The last tile may be ragged: its block has threads without an element, which must not read past the end.",
        question: "1605 elements, an element for each thread, blocks of 64 threads. How many blocks does the host start?",
        run: run("interleaved", 1605, 64, What::Blocks),
        explain: "1605 / 64 is 25.08, and a part of a tile needs a block, too: divisions of sizes are rounded up. The classic listings forget this more than once",
        exercise: exercise!("1", 1, ANY, &[]),
    },
    Lesson {
        number: 2,
        title: "A tree with barriers",
        read: "A block adds its tile as a tree: neighbours first, then sums of neighbours, until one value is left. With 256 elements that are 8 levels instead of 255 additions one after the other.\n\nA level reads what other threads wrote at the level before. `__syncthreads()` is a barrier: no thread passes until all threads of the block have come. A thread that leaves the kernel before a barrier, or skips it in a branch, is a fault.",
        question: "`neighbored` folds 256 elements in one block of 256 threads, in place. Each warp that waits at a barrier counts once. How many waits are there?",
        run: run("neighbored", 256, 256, What::Counter(Counter::Barriers)),
        explain: "log2(256) = 8 levels, each with a barrier, and 8 warps of 32 threads that wait at each",
        exercise: exercise!("2", 1, ANY, &[]),
    },
    Lesson {
        number: 3,
        title: "Warps diverge",
        read: "32 threads with neighbouring numbers are a warp, which issues one instruction for all of them. Where its lanes take different sides of a branch, the warp runs both sides, one after the other: it diverges.\n\nIn `neighbored` every second thread adds at the first level, every fourth at the second: all warps run all levels, for fewer and fewer lanes. If the first threads do the work instead, whole warps have nothing to do, and cost nothing.",
        question: "`shared-strided` folds 256 elements in one block of 256 threads; the first threads do the work. How often does a warp diverge?",
        run: run("shared-strided", 256, 256, What::Counter(Counter::DivergentBranches)),
        explain: "As long as 32 threads or more are active, whole warps are busy or idle. Only 16, 8, 4, 2 and 1 active threads part the first warp, and then thread 0 leaves the sum alone, which is one more branch of its own. `shared-neighbored` diverges in all of its warps",
        exercise: exercise!("3", 1, ANY, &[Need::AtMost(Counter::DivergentBranches, 300)]),
    },
    Lesson {
        number: 4,
        title: "Sectors",
        read: "Memory is moved in sectors of 32 bytes. A warp's load touches some sectors, whatever its lanes need of them. Lanes side by side that read numbers of 4 bytes side by side need 128 bytes, which are 4 sectors, each used whole. Lanes that are 8 numbers apart need 32 sectors, of which an eighth is used.",
        question: "`shared-neighbored` reads 256 numbers of 4 bytes once. How many sectors are loaded?",
        run: run("shared-neighbored", 256, 256, What::Counter(Counter::Sectors)),
        explain: "8 warps with a load of 4 sectors each: 1024 bytes. Everything else happens in shared memory",
        exercise: exercise!("4", 4, POWERS, &[Need::AtMost(Counter::Sectors, 1300)]),
    },
    Lesson {
        number: 5,
        title: "Banks",
        read: "Shared memory has 32 banks, each a word of 4 bytes wide. Word *i* is in bank *i* mod 32. If lanes want different words of the same bank, the load takes several passes: a conflict. A stride of 2 words puts two lanes on each second bank, a stride of 32 all lanes on one.",
        question: "`shared-strided` folds 256 elements in one block: thread t adds slot 2 s t + s to slot 2 s t, for s = 1, 2, 4 and so on. How many passes are lost, of loads and stores together? (A guess is good; the interpreter knows.)",
        run: run("shared-strided", 256, 256, What::Counter(Counter::BankConflicts)),
        explain: "About 70 are those of loads: at distance s two loads of each busy warp share banks 2 s times, until fewer lanes than that are active; the stores repeat it once for each pair. Halves folded onto each other have none",
        exercise: exercise!("5", 1, POWERS, &[Need::AtMost(Counter::BankConflicts, 0)]),
    },
    Lesson {
        number: 6,
        title: "Work for every thread",
        read: "In a tree half of the threads load an element and never add. If each thread loads two elements and adds them on the way, half as many blocks do, and a block's tree is as high as before for twice as many elements. Each of the two elements needs its own test: the second may be past the end where the first is not.",
        question: "1605 elements, two for each thread, blocks of 64 threads. How many blocks does `shared-first-add` start?",
        run: run("shared-first-add", 1605, 64, What::Blocks),
        explain: "1605 / 128 is 12.5, rounded up. The course's host code halves 26 blocks, which comes to the same here; with 25 blocks it would start 12, and lose the last one",
        exercise: exercise!("6", 2, POWERS, &[]),
    },
    Lesson {
        number: 7,
        title: "Loads in flight",
        read: "A load takes hundreds of cycles. Eight loads that do not wait for each other take hardly longer than one. Unrolling gives a thread several loads in flight, and the tree is paid once for eight tiles. Bytes in flight = latency x bandwidth is Little's law: some tens of KiB for each multiprocessor.",
        question: "`unroll8` folds 2048 elements in one block of 256 threads. Each warp that waits at a barrier counts once. How many waits are there? (For eight blocks of `neighbored` it would be eight times 64.)",
        run: run("unroll8", 2048, 256, What::Counter(Counter::Barriers)),
        explain: "One barrier behind the eight loads, and one for each of 8 levels: 9 of 8 warps",
        exercise: exercise!("7", 8, POWERS, &[]),
    },
    Lesson {
        number: 8,
        title: "Shuffles",
        read: "Lanes can read each other's registers. `__shfl_down_sync(mask, x, 16)` gives the value of the lane 16 above; with 8, 4, 2 and 1 behind it lane 0 has the sum of the warp, without memory and without a barrier. The mask names the lanes that take part, and all of them must come. Each warp then leaves one value, and the block needs one barrier.",
        question: "`warp-shuffle` folds 256 elements in one block of 256 threads, and a second launch of one block folds its one partial. How many waits of warps at barriers are there, in both launches?",
        run: run("warp-shuffle", 256, 256, What::Counter(Counter::Barriers)),
        explain: "One barrier a block, at which 8 warps wait, in each of two launches. `neighbored` has 64 in one",
        exercise: exercise!(
            "8",
            1,
            POWERS,
            &[Need::Shuffles, Need::AtMost(Counter::Barriers, 330)]
        ),
    },
    Lesson {
        number: 9,
        title: "One launch",
        read: "Blocks cannot wait for each other in an ordinary launch. So a second launch folds their partials, or the last block does: each block writes its partial, fences it, and draws a ticket with an atomic. The block that draws the last ticket knows that all partials are there. Atomics order themselves; what is around them needs fences or barriers.",
        question: "`last-block` folds 2560 elements in 10 blocks of 256 threads. How many atomics touch global memory?",
        run: run("last-block", 2560, 256, What::Atomics),
        explain: "One ticket for each block; the last block puts the counter back with a plain store",
        exercise: Exercise { alone: true, ..exercise!("9", 1, POWERS, &[]) },
    },
    Lesson {
        number: 10,
        title: "To the engine",
        read: "What is left is bytes in flight. A load of 16 bytes asks for four numbers at once: a warp's load is 512 bytes, 16 sectors. Four of them in flight for each thread reach the rate of memory, and so does the library's engine, whose sum is exact: it adds in integers that cannot round, and rounds once at the end. Ends and alignment need care.",
        question: "`vector-load` reads 100000 numbers of 4 bytes, 16 bytes a load. How many sectors has a load's request, rounded to a whole number?",
        run: run("vector-load", 100_000, 256, What::SectorsPerLoad),
        explain: "32 lanes x 16 bytes are 512 bytes, which are 16 sectors; few requests, at the ragged end and in the second launch, are smaller",
        exercise: exercise!("10", 4, POWERS, &[Need::WideLoads]),
    },
];
