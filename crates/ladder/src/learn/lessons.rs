//! The lessons.

use super::drawing::{BANKS, CLIMB_DRAWN, FIRST_ADD, NESTED, OCCUPANCY, SECTORS, TICKET, WIDE};
use super::{Exercise, Lesson, Need, Picture, Run, What};
use crate::baselines::Counter;
use crate::occupancy::Block;
use crate::rung::Blocks;

macro_rules! exercise {
    ($number:literal, $per_thread:literal, $blocks:expr, $needs:expr) => {
        Exercise {
            source: include_str!(concat!("../../learn/open_", $number, ".cu")),
            solution: include_str!(concat!("../../learn/right_", $number, ".cu")),
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
    Run::Rung { rung, n, block, what }
}

/// The course, in order.
pub static LESSONS: [Lesson; 14] = [
    Lesson {
        number: 1,
        title: "Threads, blocks, grids",
        read: "A kernel is a function that many threads run at once. Threads come in blocks, and blocks in a grid. A thread knows its number in the block, `threadIdx.x`, the number of its block, `blockIdx.x`, and how many threads a block has, `blockDim.x`.\n\nAn array is cut into tiles, one for each block. The host starts as many blocks as there are tiles. The last tile may be ragged: its block has threads without an element, which must not read past the end.",
        drawing: Picture::OfLadder("one-element"),
        question: "1605 elements, an element for each thread, blocks of 64 threads. How many blocks does the host start?",
        run: run("interleaved", 1605, 64, What::Blocks),
        explain: "1605 / 64 is 25.08, and a part of a tile needs a block, too: divisions of sizes are rounded up. The classic listings forget this more than once",
        exercise: exercise!("1", 1, ANY, &[]),
        rung: None,
    },
    Lesson {
        number: 2,
        title: "A tree with barriers",
        read: "A block adds its tile as a tree: neighbours first, then sums of neighbours, until one value is left. With 256 elements that are 8 levels instead of 255 additions one after the other.\n\nA level reads what other threads wrote at the level before. `__syncthreads()` is a barrier: no thread passes until all threads of the block have come. A thread that leaves the kernel before a barrier, or skips it in a branch, is a fault.",
        drawing: Picture::OfLadder("neighbored"),
        question: "`neighbored` folds 256 elements in one block of 256 threads, in place. Each warp that waits at a barrier counts once. How many waits are there?",
        run: run("neighbored", 256, 256, What::Counter(Counter::Barriers)),
        explain: "log2(256) = 8 levels, each with a barrier, and 8 warps of 32 threads that wait at each",
        exercise: exercise!("2", 1, ANY, &[]),
        rung: Some("shared-neighbored"),
    },
    Lesson {
        number: 3,
        title: "Warps diverge",
        read: "32 threads with neighbouring numbers are a warp, which issues one instruction for all of them. Where its lanes take different sides of a branch, the warp runs both sides, one after the other: it diverges.\n\nIn `neighbored` every second thread adds at the first level, every fourth at the second: all warps run all levels, for fewer and fewer lanes. If the first threads do the work instead, whole warps have nothing to do, and cost nothing.",
        drawing: Picture::OfLadder("neighbored-compact"),
        question: "`shared-strided` folds 256 elements in one block of 256 threads; the first threads do the work. How often does a warp diverge?",
        run: run("shared-strided", 256, 256, What::Counter(Counter::DivergentBranches)),
        explain: "As long as 32 threads or more are active, whole warps are busy or idle. Only 16, 8, 4, 2 and 1 active threads part the first warp, and then thread 0 leaves the sum alone, which is one more branch of its own. `shared-neighbored` diverges in all of its warps",
        exercise: exercise!("3", 1, ANY, &[Need::AtMost(Counter::DivergentBranches, 300)]),
        rung: Some("shared-strided"),
    },
    Lesson {
        number: 4,
        title: "Sectors",
        read: "Memory is moved in sectors of 32 bytes. A warp's load touches some sectors, whatever its lanes need of them. Lanes side by side that read numbers of 4 bytes side by side need 128 bytes, which are 4 sectors, each used whole. Lanes that are 8 numbers apart need 32 sectors, of which an eighth is used.",
        drawing: Picture::Rows(&SECTORS),
        question: "`shared-neighbored` reads 256 numbers of 4 bytes once. How many sectors are loaded?",
        run: run("shared-neighbored", 256, 256, What::Counter(Counter::Sectors)),
        explain: "8 warps with a load of 4 sectors each: 1024 bytes. Everything else happens in shared memory",
        exercise: exercise!("4", 4, POWERS, &[Need::AtMost(Counter::Sectors, 1300)]),
        rung: Some("unroll4"),
    },
    Lesson {
        number: 5,
        title: "Banks",
        read: "Shared memory has 32 banks, each a word of 4 bytes wide. Word *i* is in bank *i* mod 32. If lanes want different words of the same bank, the load takes several passes: a conflict. A stride of 2 words puts two lanes on each second bank, a stride of 32 all lanes on one.",
        drawing: Picture::Rows(&BANKS),
        question: "`shared-strided` folds 256 elements in one block: thread t adds slot 2 s t + s to slot 2 s t, for s = 1, 2, 4 and so on. How many passes are lost, of loads and stores together? (A guess is good; the interpreter knows.)",
        run: run("shared-strided", 256, 256, What::Counter(Counter::BankConflicts)),
        explain: "About 70 are those of loads: at distance s two loads of each busy warp share banks 2 s times, until fewer lanes than that are active; the stores repeat it once for each pair. Halves folded onto each other have none",
        exercise: exercise!("5", 1, POWERS, &[Need::AtMost(Counter::BankConflicts, 0)]),
        rung: Some("block-sum"),
    },
    Lesson {
        number: 6,
        title: "Work for every thread",
        read: "In a tree half of the threads load an element and never add. If each thread loads two elements and adds them on the way, half as many blocks do, and a block's tree is as high as before for twice as many elements. Each of the two elements needs its own test: the second may be past the end where the first is not.",
        drawing: Picture::OfLadder("first-add"),
        question: "1605 elements, two for each thread, blocks of 64 threads. How many blocks does `shared-first-add` start?",
        run: run("shared-first-add", 1605, 64, What::Blocks),
        explain: "1605 / 128 is 12.5, rounded up. The course's host code halves 26 blocks, which comes to the same here; with 25 blocks it would start 12, and lose the last one",
        exercise: exercise!("6", 2, POWERS, &[]),
        rung: Some("shared-first-add"),
    },
    Lesson {
        number: 7,
        title: "Loads in flight",
        read: "A load takes hundreds of cycles. Eight loads that do not wait for each other take hardly longer than one. Unrolling gives a thread several loads in flight, and the tree is paid once for eight tiles. Bytes in flight = latency x bandwidth is Little's law: some tens of KiB for each multiprocessor.",
        drawing: Picture::OfLadder("columns"),
        question: "`unroll8` folds 2048 elements in one block of 256 threads. Each warp that waits at a barrier counts once. How many waits are there? (For eight blocks of `neighbored` it would be eight times 64.)",
        run: run("unroll8", 2048, 256, What::Counter(Counter::Barriers)),
        explain: "One barrier behind the eight loads, and one for each of 8 levels: 9 of 8 warps",
        exercise: exercise!("7", 8, POWERS, &[]),
        rung: Some("unroll8"),
    },
    Lesson {
        number: 8,
        title: "Shuffles",
        read: "Lanes can read each other's registers. `__shfl_down_sync(mask, x, 16)` gives the value of the lane 16 above; with 8, 4, 2 and 1 behind it lane 0 has the sum of the warp, without memory and without a barrier. The mask names the lanes that take part, and all of them must come. Each warp then leaves one value, and the block needs one barrier.",
        drawing: Picture::OfLadder("shuffle-down"),
        question: "`warp-shuffle` folds 256 elements in one block of 256 threads, and a second launch of one block folds its one partial. How many waits of warps at barriers are there, in both launches?",
        run: run("warp-shuffle", 256, 256, What::Counter(Counter::Barriers)),
        explain: "One barrier a block, at which 8 warps wait, in each of two launches. `neighbored` has 64 in one",
        exercise: exercise!(
            "8",
            1,
            POWERS,
            &[Need::Shuffles, Need::AtMost(Counter::Barriers, 330)]
        ),
        rung: Some("warp-shuffle"),
    },
    Lesson {
        number: 9,
        title: "One launch",
        read: "Blocks cannot wait for each other in an ordinary launch. So a second launch folds their partials, or the last block does: each block writes its partial, fences it, and draws a ticket with an atomic. The block that draws the last ticket knows that all partials are there. Atomics order themselves; what is around them needs fences or barriers.",
        drawing: Picture::Rows(&TICKET),
        question: "`last-block` folds 2560 elements in 10 blocks of 256 threads. How many atomics touch global memory?",
        run: run("last-block", 2560, 256, What::Atomics),
        explain: "One ticket for each block; the last block puts the counter back with a plain store",
        exercise: Exercise { alone: true, ..exercise!("9", 1, POWERS, &[]) },
        rung: Some("last-block"),
    },
    Lesson {
        number: 10,
        title: "To the engine",
        read: "What is left is bytes in flight. A load of 16 bytes asks for four numbers at once: a warp's load is 512 bytes, 16 sectors. Four of them in flight for each thread reach the rate of memory, and so does the library's engine, whose sum is exact: it adds in integers that cannot round, and rounds once at the end. Ends and alignment need care.",
        drawing: Picture::Rows(&WIDE),
        question: "`vector-load` reads 100000 numbers of 4 bytes, 16 bytes a load. How many sectors has a load's request, rounded to a whole number?",
        run: run("vector-load", 100_000, 256, What::SectorsPerLoad),
        explain: "32 lanes x 16 bytes are 512 bytes, which are 16 sectors; few requests, at the ragged end and in the second launch, are smaller",
        exercise: exercise!("10", 4, POWERS, &[Need::WideLoads]),
        rung: Some("vector-load"),
    },
    Lesson {
        number: 11,
        title: "First add during load",
        read: "Harris' step: at the first level of a tree half of the threads of a block add, and the other half has loaded an element and is done. So let each thread load two, and add them in a register on the way: the level is gone, with its barrier and its half of the shared memory, and half as many blocks pay for the tree. The rest of the tree folds halves onto each other: sequential addressing, the first threads side by side, no conflicts.\n\nThe two elements are a block's width apart, so that lanes side by side still ask for neighbours. Two that lie side by side would be added just as well, and each of two loads would move twice the sectors.",
        drawing: Picture::Rows(&FIRST_ADD),
        question: "`sequential-first-add` folds 512 elements in one block of 256 threads. Each warp that waits at a barrier counts once. How many waits are there?",
        run: run("sequential-first-add", 512, 256, What::Counter(Counter::Barriers)),
        explain: "One barrier behind the loads, and one for each of 8 levels: 9 of 8 warps, for 512 elements. `block-sum` has two blocks for as many, and a second launch for their partials: 216 waits",
        exercise: exercise!(
            "11",
            2,
            POWERS,
            &[
                Need::AtMost(Counter::Barriers, 1440),
                Need::AtMost(Counter::Sectors, 1300),
                Need::AtMost(Counter::BankConflicts, 0)
            ]
        ),
        rung: Some("sequential-first-add"),
    },
    Lesson {
        number: 12,
        title: "Nested launches",
        read: "A kernel can launch kernels. One text writes the fold as a recursion: a block adds its upper half to its lower half, launches itself with half as many threads, and waits for its child. No device waits any more: since CUDA 12 a grid never sees what its children write. What remains is the tail launch. It begins when the grid that asked for it has ended, with all of its blocks, and sees all that they wrote: recursion becomes a chain, and the barrier before the launch is not needed for this reason alone.\n\nA launch for each block and each level is too many: only so many may be pending, and each costs microseconds. One grid a level, for all tiles, is as deep and much cheaper.",
        drawing: Picture::Rows(&NESTED),
        question: "A block of 8 threads says hello, and its first thread launches a block of half as many, which does the same, down to one thread. How many threads say hello? (The text's own solution does not halve its blocks.)",
        run: Run::Experiment { id: "nested-hello", row: "halved to the end", column: "threads" },
        explain: "8 + 4 + 2 + 1. In the text 8 threads say hello four times, which are 32: its blocks never shrink",
        exercise: exercise!("12", 1, POWERS, &[Need::Launches(8)]),
        rung: Some("nested-wide"),
    },
    Lesson {
        number: 13,
        title: "Occupancy and latency",
        read: "A warp that waits for memory is no loss while another one has something to do. A multiprocessor holds as many blocks as its warps, its registers and its shared memory have room for, whichever is least: occupancy is the part of its warps that it holds.\n\nHow much is enough? Little's law: what is on its way = latency x throughput. An H200 has <!--h200 cell latency Bytes-in-flight 8/1024 GB/s-->4480<!--/--> GB/s for 132 multiprocessors, and a load takes <!--h200 found latency memory:-->340<!--/--> ns where memory has nothing else to do: <!--h200 found latency GB/s-are-->11<!--/--> KiB on their way for each multiprocessor. Under load a load takes twice as long, and <!--h200 found latency multiprocessor;-measured,-->24<!--/--> KiB reach nine tenths of the rate. It does not matter who carries them: 2048 threads with 12 bytes each, or 512 with 48. A thread has as many loads on its way as it asks for before it needs the first.",
        drawing: Picture::Rows(&OCCUPANCY),
        question: "Blocks of 96 threads, 65 registers a thread, compute capability 9.0: 65536 registers in four parts, given to whole warps in units of 256. How many blocks does a multiprocessor hold?",
        run: Run::Occupancy(Block { threads: 96, registers: 65, shared: 0 }),
        explain: "65 registers of 32 lanes are 2080, rounded up to 2304. Each of the four parts has 16384, which is room for 7 warps; 28 warps are 9 blocks of 3 warps. The popular shortcut, 65536 by the registers of a block, says 10",
        exercise: exercise!("13", 8, POWERS, &[Need::InFlight(24 << 10)]),
        rung: Some("unroll8"),
    },
    Lesson {
        number: 14,
        title: "The whole climb",
        read: "On an H200 the first rung reads <!--h200 gbps neighbored-->375<!--/--> GB/s, and the last one <!--h200 gbps vector-load-->4461<!--/-->. All that lies between is in this course: lanes side by side in memory, no warp that diverges, no conflicts, few barriers, a tree that is paid once for many elements, shuffles, loads of 16 bytes, and several of them on their way. Here is a kernel that does everything wrong but the sum. Make it fast, as you like.\n\nEach right attempt is ranked among your own: by its rate, where there is a GPU, and else by the rung that counts most alike and what that reaches on an H200; what lacks something that the exercise needs comes last. `warpfold learn ranking` shows them again. A rank is not a limit: a kernel that counts like `vector-load` may well be faster.",
        drawing: Picture::Rows(&CLIMB_DRAWN),
        question: "`neighbored` loads 100002 sectors for 100000 numbers of 4 bytes, as each level goes through memory. How many does `vector-load` load, all launches together?",
        run: run("vector-load", 100_000, 256, What::Counter(Counter::Sectors)),
        explain: "400000 bytes are 12500 sectors, each loaded once and used whole; the other 50 are those of the partials, which a second launch adds. What is left is to ask for them early enough",
        exercise: exercise!(
            "14",
            16,
            POWERS,
            &[
                Need::AtMost(Counter::Sectors, 1300),
                Need::AtMost(Counter::BankConflicts, 0),
                Need::AtMost(Counter::Barriers, 60),
                Need::WideLoads,
                Need::Shuffles,
                Need::InFlight(24 << 10)
            ]
        ),
        rung: Some("vector-load"),
    },
];
