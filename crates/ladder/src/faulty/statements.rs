//! What the texts get wrong: statements and listings, in words of our own, with what happens when they are run.

use super::Showing;
use crate::error::Result;
use crate::find;
use crate::rung::{Rung, Text};
use core::fmt::Write;

/// Something that a text says or prints and that is not so.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// The text.
    pub text: Text,
    /// Its place in the text.
    pub place: &'static str,
    /// What the text says or prints, in words of our own.
    pub says: &'static str,
    /// The rung whose listing shows it, and which of its demonstrations.
    pub shown: Option<(&'static str, usize)>,
    /// What happens, where no listing shows it.
    pub happens: &'static str,
    /// Why.
    pub why: &'static str,
    /// What to write or to say instead.
    pub repair: &'static str,
}

const fn run(
    (text, place): (Text, &'static str),
    says: &'static str,
    rung: &'static str,
    at: usize,
    why: &'static str,
    repair: &'static str,
) -> Statement {
    Statement { text, place, says, shown: Some((rung, at)), happens: "", why, repair }
}

const fn said(
    (text, place): (Text, &'static str),
    says: &'static str,
    happens: &'static str,
    why: &'static str,
    repair: &'static str,
) -> Statement {
    Statement { text, place, says, shown: None, happens, why, repair }
}

const IN_STEP: &str = "since Volta the lanes of a warp need not be in step: `volatile` makes each of them read and write memory, and says nothing of the order of two lanes";
const IN_STEP_REPAIR: &str =
    "`__syncwarp` between a step's reads and its writes and the next step, or shuffles";

/// The statements, in the order of the texts.
pub static STATEMENTS: &[Statement] = &[
    run(
        (Text::P, "reduceNeighbored"),
        "a thread past the end of the array returns first of all",
        "neighbored",
        0,
        "the others wait at a barrier for threads that have left, which is undefined, and read partners past the end",
        "no thread leaves before the last barrier; a partner is tested before it is read",
    ),
    run(
        (Text::P, "reduceNeighbored"),
        "the levels are written over the input, and each version is run on a fresh copy",
        "neighbored",
        1,
        "a second run sums what the first one has left",
        "the first level is written to other memory",
    ),
    run(
        (Text::P, "reduceInterleaved"),
        "nothing says that a block must be a power of two",
        "interleaved",
        1,
        "96 threads come to 3 values, and the half of 3 is 1: one value is left out",
        "refuse other blocks, or round the half up",
    ),
    run(
        (Text::P, "reduceUnrolling8"),
        "the host starts `grid / 8` blocks",
        "unroll8",
        0,
        "26 / 8 is 3: the last two tiles have no block",
        "round up",
    ),
    run(
        (Text::P, "reduceUnrolling8"),
        "one test guards the eight tiles of a thread",
        "unroll8",
        1,
        "where it fails the block folds the first of its tiles and forgets the other seven",
        "test each element",
    ),
    run(
        (Text::P, "reduceUnrollWarps8"),
        "the last warp needs no barrier, since its memory is `volatile`",
        "unroll-warps8",
        0,
        IN_STEP,
        IN_STEP_REPAIR,
    ),
    run(
        (Text::P, "exercise 4"),
        "the last six steps with a barrier of the block each, all guarded by `tid < 32`",
        "unroll-warps8-barrier",
        0,
        "from the second step on lane t reads what lane t + 16 writes between the same two barriers",
        "guard each step by the threads that have a partner: 32, 16, 8, 4, 2, 1",
    ),
    said(
        (Text::P, "exercise 4"),
        "lanes that go on without barriers find in the L1 cache what their warp has just written: therefore they are faster",
        "the profiler counts the same hit rate for both kernels on an H200, <!--h200 profiled global_hit_rate unroll-warps8 .2-->21.26<!--/--> and <!--h200 profiled global_hit_rate unroll-warps8-barrier .2-->21.26<!--/--> %, and `unroll-warps8` is <!--h200 times unroll-warps8-barrier unroll-warps8 .2-->1.01<!--/--> times as fast",
        "stores go through L1 to L2, and a line that is written stays valid: barriers change nothing",
        "the barriers themselves are the cost",
    ),
    run(
        (Text::P, "reduceCompleteUnrollWarps8"),
        "blocks may have from 32 threads on",
        "complete-unroll8",
        1,
        "in a block of 32 the first step of the last warp adds another tile",
        "ask for 64 threads",
    ),
    run(
        (Text::P, "gpuRecursiveReduce"),
        "thread 0 returns at a leaf",
        "nested",
        0,
        "the other thread of the block waits at the barrier for it",
        "a leaf goes through the same barriers",
    ),
    run(
        (Text::P, "gpuRecursiveReduceNosync"),
        "no barrier is needed: a child sees what its parent thread wrote",
        "nested-nosync",
        0,
        "the child reads what other threads of the parent's block write, and nothing orders these",
        "a barrier, or a launch that begins when the grid has ended",
    ),
    run(
        (Text::P, "gpuRecursiveReduce2"),
        "the first block launches one child for all blocks",
        "nested-wide",
        0,
        "it does not know how far the other blocks are",
        "a tail launch, which begins when all blocks have ended",
    ),
    said(
        (Text::P, "dynamic parallelism"),
        "a child begins only when its parent synchronises",
        "a child may begin as soon as it is launched; it is only sure to have ended where the parent waits",
        "launches are asynchronous, on the device as on the host",
        "say when a child has certainly ended, not when it begins",
    ),
    said(
        (Text::P, "exercise 8"),
        "in the solution each nested grid is to have half as many threads, all of which say hello",
        "blocks keep their number of threads: from one block of 8 threads 32 say hello, where 15 should",
        "the child is launched with the size of the parent's block",
        "halve the threads, as `nested-hello` does",
    ),
    said(
        (Text::P, "warp states"),
        "a stalled warp is ready and not chosen, an eligible one waits",
        "the two names are exchanged",
        "an eligible warp is ready to issue; a stalled one waits for operands, memory or a barrier",
        "as [the machine](machine.md) has it",
    ),
    said(
        (Text::P, "guidelines"),
        "the threads of a block should be an even multiple of the size of a warp",
        "96 threads are 3 warps, and no lane of them idles",
        "a multiple is what counts, not an even one",
        "a multiple of 32",
    ),
    said(
        (Text::P, "the Fermi architecture"),
        "memory is behind six interfaces of 384 bits",
        "there are six of 64 bits, which are 384 together",
        "the width of all was taken for that of each",
        "six partitions of 64 bits",
    ),
    said(
        (Text::P, "reduceNeighbored, mathKernel2"),
        "`idx` is used in the one kernel, and `c` in the other, which has no parameters",
        "neither compiles",
        "the declarations are missing",
        "declare them",
    ),
    run(
        (Text::F, "v0"),
        "no thread asks whether its elements are in the array",
        "neighbored",
        2,
        "the array is not a multiple of the block: the last block reads past it and writes there",
        "test each element",
    ),
    run(
        (Text::F, "v1"),
        "the second launch has one block of as many threads as partials",
        "shared-neighbored",
        0,
        "25 threads are no power of two: some read slots that no thread has written",
        "test the partner, or repeat the pass with whole blocks",
    ),
    run(
        (Text::F, "v2"),
        "half as many blocks, not rounded up",
        "shared-first-add",
        0,
        "half of 3 is 1: the last 32 elements have no block; and the second launch, which tests against the array's length, reads past the one partial",
        "round up, and test against what is read",
    ),
    run(
        (Text::F, "v2 in as many blocks as before"),
        "right, and slower",
        "shared-first-add-full-grid",
        0,
        "the second launch tests against the array's length, so that it adds what is behind the partials; on a device that is often 0, and the sum of ones was verified by luck",
        "pass the number of partials",
    ),
    said(
        (Text::F, "measurements"),
        "v0 takes 0.227s",
        "2^20 floats in <!--said-->227<!--/--> ms would be <!--said-->0.02<!--/--> GB/s",
        "the unit is ms",
        "<!--said-->0.227<!--/--> ms",
    ),
    said(
        (Text::F, "measurements"),
        "shared memory makes v1 <!--said-->20<!--/--> % faster than v0",
        "by the text's own other run, <!--said-->0.969824<!--/--> ms for v0, it is <!--said-->8.6<!--/--> %; on an H200 `shared-neighbored` is <!--h200 times neighbored shared-neighbored .2-->1.08<!--/--> times as fast as `neighbored`, which takes <!--h200 percent neighbored shared-neighbored-->8<!--/--> % longer",
        "one cold launch of each was timed; caches serve what global memory is asked for again",
        "warm up, repeat, and give the median with its spread",
    ),
    said(
        (Text::F, "the test"),
        "an array of ones, compared within 1e-5",
        "a kernel that adds the same element twice and forgets another one passes",
        "all elements are alike",
        "elements that differ, and equality with the exact sum",
    ),
    run(
        (Text::H, "12-1"),
        "the loop's step compares where it should shift",
        "two-pass-shared",
        0,
        "nothing changes from turn to turn; the interpreter stops it",
        "shift",
    ),
    run(
        (Text::H, "12-1"),
        "a block has any number of threads",
        "two-pass-shared",
        1,
        "96 threads come to 3 values, and one of them is left out",
        "powers of two, and say so",
    ),
    run(
        (Text::H, "12-2"),
        "the last warp needs no barrier",
        "two-pass-warp",
        1,
        IN_STEP,
        IN_STEP_REPAIR,
    ),
    run(
        (Text::H, "12-2"),
        "only the first step of the last warp asks how many threads there are",
        "two-pass-warp",
        2,
        "32 lanes read the slot 16 above their own, and a block of 32 has 32 slots",
        "ask at every step, and let those lanes act that have a partner",
    ),
    run(
        (Text::H, "12-3"),
        "the instances for 2 to 32 threads ask for the size of the block and not for the thread",
        "two-pass-static",
        1,
        "as in 12-2: the upper half of the lanes has no partner",
        "ask for the thread, too",
    ),
    said(
        (Text::H, "12-4"),
        "the host picks an instance by a `switch` over eleven sizes",
        "for any other size nothing is launched, and the old content of the output is read as the answer",
        "there is no `default`",
        "an error",
    ),
    said(
        (Text::H, "the description of the tree"),
        "the first half is added onto the second half, and the sum is in the first element",
        "the listing adds the second half onto the first",
        "the sentence has the halves exchanged",
        "the second onto the first",
    ),
    run(
        (Text::S, "block_sum"),
        "the second launch has one block of as many threads as partials",
        "block-sum",
        0,
        "25 come to 12 and one that is left out, 12 to 6 and 3, and 3 to 1 and another one that is left out",
        "repeat the pass with whole blocks until one value is left",
    ),
    said(
        (Text::S, "block_sum"),
        "a template whose shared memory is `extern __shared__ T sdata[]`",
        "a program that uses it for two types does not compile",
        "one name is declared with two types",
        "bytes of one type, seen as T",
    ),
    run(
        (Text::W, "deviceReduceKernel"),
        "the mask of the lanes is `warpSize - 1`",
        "warp-shuffle",
        0,
        "31 names the lanes 0 to 4, and 32 lanes take part",
        "0xffffffff",
    ),
    run(
        (Text::W, "blockReduceSum"),
        "`blockDim.x / warpSize` warps have left a sum",
        "warp-shuffle",
        1,
        "80 threads are two warps and a half, and the sum of the half is not read",
        "round up",
    ),
    run(
        (Text::W, "warpAllReduceSum"),
        "the mask of the exchange is `warpSize - 1`",
        "warp-allreduce",
        0,
        "31 names the lanes 0 to 4, and 32 lanes take part",
        "0xffffffff",
    ),
    said(
        (Text::W, "shuffles"),
        "a lane whose source is out of range gets an undefined value",
        "it gets its own value: the experiment `shuffle-lanes` shows it for every width",
        "what is undefined is the value of a lane that does not take part",
        "say which of the two is meant",
    ),
    said(
        (Text::W, "the broadcast"),
        "`int lane - threadIdx.x`, and the mask 31",
        "the first does not compile, and the second names five lanes",
        "a `-` for an `=`",
        "`=`, and 0xffffffff",
    ),
];

/// The findings of a demonstration that are told; the others are of the same kind as a rule.
const MOST_FINDINGS: usize = 2;

/// What happened in a demonstration, a line each.
fn told(showing: &Showing) -> Vec<String> {
    let mut lines = Vec::new();
    for finding in showing.findings.iter().take(MOST_FINDINGS) {
        // The repair is told below.
        let what = finding.split_once(". hint: ").map_or(finding.as_str(), |(what, _)| what);
        lines.push(format!("found: {what}"));
    }
    match showing.findings.len().saturating_sub(MOST_FINDINGS) {
        0 => {}
        more => lines.push(format!("and {more} more finding{}", if more == 1 { "" } else { "s" })),
    }
    lines.extend(showing.halt.iter().map(|halt| format!("it does not finish: {halt}")));
    for got in &showing.got {
        let verdict = if *got == showing.wanted { ", right by luck" } else { "" };
        lines.push(format!("got {got}, wanted {}{verdict}", showing.wanted));
    }
    lines.extend(showing.astray.iter().cloned());
    lines
}

/// The page *What the texts get wrong*, in Markdown: every statement, with what the interpreter finds where a listing shows it.
///
/// # Errors
/// Errors of the interpreter, other than findings.
pub fn page() -> Result<String> {
    page_of(super::show)
}

/// The page of what `show` shows.
pub(super) fn page_of(show: impl Fn(&Rung) -> Result<Vec<Showing>>) -> Result<String> {
    let mut page = String::from(
        "# What the texts get wrong\n\n\
         The five texts are good teachers, and they are older than the devices of today. This page has what is not so in them: what is said or printed, in our \
         words; what happens when it is run, by the interpreter; why; and what to write instead. `warpfold ladder faults` makes the page anew, and a test \
         compares the two. `warpfold ladder show --faulty ID` shows a listing with its lines.\n",
    );
    for text in Text::ALL.into_iter().filter(|&text| text != Text::Beyond) {
        let _ = write!(page, "\n## {text}: {}\n", text.title());
        for statement in STATEMENTS.iter().filter(|statement| statement.text == text) {
            let Statement { place, says, shown, happens, why, repair, .. } = statement;
            let _ = write!(page, "\n### {place}: {says}\n\n");
            match shown.and_then(|(id, at)| Some((find(id)?, at))) {
                Some((rung, at)) => {
                    if let Some(showing) = show(rung)?.get(at) {
                        let _ = write!(page, "`{}`, {}:\n\n```text\n", rung.id, showing.how);
                        for line in told(showing) {
                            let _ = writeln!(page, "{line}");
                        }
                        page.push_str("```\n\n");
                    }
                }
                None => {
                    let _ = writeln!(page, "- What happens: {happens}.");
                }
            }
            let _ = writeln!(page, "- Why: {why}.\n- Instead: {repair}.");
        }
    }
    Ok(page)
}
