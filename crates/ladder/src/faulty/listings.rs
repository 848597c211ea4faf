//! The listings: their kernels, what their host code launches, and data that shows the fault.

use super::printed::{self, Printed};
use super::{Showing, astray, join};
use crate::lab::{KERNELS, STREAM};
use crate::rung::Text;
use crate::source;
use warpfold_cuda::{Address, Argument, Device, Launch, Result, Sim};
use warpfold_ptx::machine::{Checks, Options, Schedule};

/// What a listing's host code does with the blocks' partials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Adds them.
    Add,
    /// Takes the least of them.
    Least,
    /// Launches one block over them.
    Again(Threads),
    /// Launches one block of as many threads as partials, and a kernel that tests against the length of the array.
    AgainByArray,
    /// Nothing: the kernel writes the answer.
    Nothing,
}

/// The threads of the one block of a second launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// As many as there are partials.
    AsPartials,
    /// As many as a block of the first launch has.
    AsBefore,
    /// This many.
    Fixed(u32),
}

/// The dynamic shared memory of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shared {
    /// A slot for each thread.
    Slots,
    /// So many bytes, which the kernel does not use; none as a rule.
    Idle(u32),
}

impl Shared {
    const fn bytes(self, threads: u32) -> u32 {
        match self {
            Shared::Slots => 4 * threads,
            Shared::Idle(bytes) => bytes,
        }
    }
}

/// The elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Items {
    /// 1, 2, 3, ...
    Counting,
    /// The first element of block *b* is *b* + 1, and all others are 0: so are the partials 1, 2, 3, ...
    Partials,
}

/// A listing, and where its fault shows.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) rung: &'static str,
    pub(super) text: Text,
    pub(super) kernel: &'static str,
    /// Its functions, in order.
    shown: &'static [&'static str],
    items: Items,
    n: u32,
    block: u32,
    grid: u32,
    /// Where the number of blocks comes from, if it is not as many as hold all elements.
    grid_by: &'static str,
    /// Elements between a multiple of 256 bytes and the first element.
    offset: u64,
    shared: Shared,
    then: Then,
    runs: usize,
    schedule: Schedule,
}

/// Lanes as far ahead of each other as they may be: what is only luck ends.
const FAR_AHEAD: Schedule = Schedule::Adversarial { seed: 1 };

const fn listing(
    text: Text,
    rung: &'static str,
    shown: &'static [&'static str],
    (n, block, grid): (u32, u32, u32),
) -> Listing {
    Listing {
        rung,
        text,
        kernel: shown[shown.len() - 1],
        shown,
        items: Items::Counting,
        n,
        block,
        grid,
        grid_by: "",
        offset: 0,
        shared: Shared::Idle(0),
        then: Then::Add,
        runs: 1,
        schedule: FAR_AHEAD,
    }
}

const fn p(rung: &'static str, shown: &'static [&'static str], shape: (u32, u32, u32)) -> Listing {
    listing(Text::P, rung, shown, shape)
}

const fn by_host_code(grid_by: &'static str, listing: Listing) -> Listing {
    Listing { grid_by, ..listing }
}

/// A second launch of one block with as many threads as there are partials, which are 1 to 25.
const fn partials(text: Text, rung: &'static str, shown: &'static [&'static str]) -> Listing {
    let then = Then::Again(Threads::AsPartials);
    Listing { items: Items::Partials, then, ..listing(text, rung, shown, (100, 4, 25)) }
}

const fn mistake(
    rung: &'static str,
    shown: &'static [&'static str],
    shape: (u32, u32, u32),
) -> Listing {
    listing(Text::Beyond, rung, shown, shape)
}

const UNROLL2: &[&str] = &["fold_in_place", "p_unroll", "p_unroll2"];
const UNROLL8: &[&str] = &["fold_in_place", "p_unroll", "p_unroll8"];
const UNROLL16: &[&str] = &["fold_in_place", "p_unroll", "p_unroll16"];
const LOOP: &[&str] = &["fold_in_place", "p_unroll8_loop"];
const WARPS: &[&str] = &["fold_eight", "fold_volatile", "p_unroll_warps8"];
const BARRIERS: &[&str] = &["fold_eight", "p_unroll_warps8_barrier"];
const COMPLETE: &[&str] = &["fold_eight", "fold_volatile", "p_complete_unroll8"];
const STATIC: &[&str] =
    &["fold_eight", "fold_volatile", "p_complete_unroll8_static", "p_complete_unroll8_static_128"];
const STEPS: &str = "add_in_steps";
const LAST_WARP: &str = "fold_last_warp";
const NESTED: &[&str] = &["Halving", "p_nested_halving", "p_nested"];

/// A version of F, whose second launch has as many threads as there are partials, and tests against the length of the array.
const fn first_add(rung: &'static str, grid_by: &'static str, shape: (u32, u32, u32)) -> Listing {
    let then = Then::AgainByArray;
    Listing { grid_by, then, ..listing(Text::F, rung, &["f_shared_first_add"], shape) }
}

/// A kernel of H, which is launched again with one block of as many threads.
const fn h(rung: &'static str, shown: &'static [&'static str], shape: (u32, u32, u32)) -> Listing {
    let (then, shared) = (Then::Again(Threads::AsBefore), Shared::Slots);
    Listing { then, shared, ..listing(Text::H, rung, shown, shape) }
}

pub(super) static LISTINGS: &[Listing] = &[
    p("neighbored", &["p_neighbored"], (100, 64, 2)),
    Listing { runs: 2, ..p("neighbored", &["p_neighbored"], (128, 64, 2)) },
    Listing {
        then: Then::Again(Threads::AsPartials),
        ..listing(Text::F, "neighbored", &["f_neighbored"], (100, 64, 2))
    },
    p("neighbored-compact", &["p_neighbored_compact"], (100, 64, 2)),
    p("interleaved", &["p_interleaved"], (100, 64, 2)),
    p("interleaved", &["p_interleaved"], (192, 96, 2)),
    partials(Text::F, "shared-neighbored", &["f_shared_neighbored"]),
    first_add("shared-first-add", "3 / 2", (160, 64, 1)),
    first_add("shared-first-add", "4 / 2", (256, 64, 2)),
    first_add("shared-first-add-full-grid", "", (256, 64, 4)),
    by_host_code("7 / 2", p("unroll2", UNROLL2, (448, 64, 3))),
    p("unroll2", UNROLL2, (389, 64, 4)),
    by_host_code("26 / 8", p("unroll8", UNROLL8, (1605, 64, 3))),
    p("unroll8", UNROLL8, (1605, 64, 4)),
    by_host_code("50 / 16", p("unroll16", UNROLL16, (3141, 64, 3))),
    p("unroll16", UNROLL16, (3141, 64, 4)),
    by_host_code("26 / 8", p("unroll8-loop", LOOP, (1605, 64, 3))),
    p("unroll8-loop", LOOP, (1605, 64, 4)),
    Listing {
        schedule: Schedule::Random { seed: 1 },
        ..by_host_code("16 / 8", p("unroll-warps8", WARPS, (1024, 64, 2)))
    },
    by_host_code("16 / 8", p("unroll-warps8", WARPS, (512, 32, 2))),
    by_host_code("16 / 8", p("unroll-warps8-barrier", BARRIERS, (1024, 64, 2))),
    p("unroll-warps8-barrier", BARRIERS, (1605, 64, 4)),
    by_host_code("16 / 8", p("complete-unroll8", COMPLETE, (2048, 128, 2))),
    by_host_code("16 / 8", p("complete-unroll8", COMPLETE, (512, 32, 2))),
    by_host_code("16 / 8", p("complete-unroll8-static", STATIC, (2048, 128, 2))),
    p("nested", NESTED, (128, 64, 2)),
    p("nested", NESTED, (8400, 4, 2100)),
    p("nested-nosync", &["p_nested_nosync"], (128, 64, 2)),
    p("nested-wide", &["p_nested_wide"], (256, 32, 4)),
    h("two-pass-shared", &[STEPS, "fold_for_ever", "h_two_pass_shared_as_printed"], (1000, 64, 2)),
    h("two-pass-shared", &[STEPS, "fold_shared", "h_two_pass_shared"], (1000, 96, 2)),
    h(
        "two-pass-warp",
        &[STEPS, "fold_for_ever", LAST_WARP, "h_two_pass_warp_as_printed"],
        (1000, 128, 2),
    ),
    h("two-pass-warp", &[STEPS, LAST_WARP, "h_two_pass_warp"], (1000, 64, 2)),
    h("two-pass-warp", &[STEPS, LAST_WARP, "h_two_pass_warp"], (1000, 32, 2)),
    h("two-pass-static", &[STEPS, "h_two_pass_static", "h_two_pass_static_128"], (1000, 128, 2)),
    h("two-pass-static", &[STEPS, "h_two_pass_static", "h_two_pass_static_32"], (1000, 32, 2)),
    partials(Text::S, "block-sum", &["fold_shared", "s_block_sum"]),
    WARP_SHUFFLE,
    PART_OF_A_WARP,
    listing(Text::W, "warp-allreduce", &["w_warp_allreduce"], (40, 32, 2)),
    Listing { then: Then::Least, ..mistake("any-op", &["faulty_any_op"], (40, 32, 2)) },
    Listing { offset: 1, ..mistake("vector-load", &["faulty_vector_load"], (256, 32, 2)) },
    mistake("vector-load", &["faulty_vector_load"], (255, 32, 2)),
    Listing {
        then: Then::Nothing,
        runs: 2,
        ..mistake("last-block", &["faulty_last_block"], (256, 32, 8))
    },
    GRID_SYNC,
];

pub(super) const WARP_SHUFFLE: Listing = Listing {
    then: Then::Again(Threads::Fixed(1024)),
    ..listing(
        Text::W,
        "warp-shuffle",
        &["add_in_steps", "w_fold_warp", "w_fold_grid", "w_warp_shuffle"],
        (256, 64, 2),
    )
};

/// Blocks of two and a half warps, with a mask of all lanes.
const PART_OF_A_WARP: Listing = Listing {
    then: Then::Again(Threads::Fixed(1024)),
    ..listing(
        Text::W,
        "warp-shuffle",
        &[STEPS, "w_fold_warp", "w_fold_grid", "w_warp_shuffle_of_all_lanes"],
        (1000, 80, 13),
    )
};

/// Blocks with this much shared memory get a multiprocessor each, and there are 132.
/// The order of the lanes is lockstep, so it does not matter.
pub(super) const GRID_SYNC: Listing = Listing {
    shared: Shared::Idle(200 << 10),
    then: Then::Nothing,
    schedule: Schedule::Lockstep,
    ..mistake("grid-sync", &["faulty_grid_sync"], (140, 32, 140))
};

/// The most elements of which is told where each of them is: it takes a run for some of them.
const MOST_EXPLAINED: u32 = 4096;

/// Enough for every listing that finishes.
const MOST_INSTRUCTIONS: u64 = 2_500_000;

/// What happened.
struct Ran {
    answers: Vec<u32>,
    findings: Vec<String>,
    halt: Option<String>,
}

impl Listing {
    /// The same, or another kernel of it, over other elements in another grid, lane beside lane.
    #[cfg(test)]
    pub(super) fn of(&self, kernel: &'static str, (n, block, grid): (u32, u32, u32)) -> Listing {
        Listing { kernel, n, block, grid, schedule: Schedule::Lockstep, ..*self }
    }

    /// The file of its kernels, without `.cu`.
    fn file(&self) -> &'static str {
        match (self.text, self.kernel) {
            (Text::Beyond, _) => "faulty",
            (_, "p_nested") => "texts_nested",
            _ => "texts",
        }
    }

    /// What it is made after; nothing for mistakes that are in no text.
    pub(super) fn printed(&self) -> Option<&'static Printed> {
        if self.text == Text::Beyond { None } else { printed::of_kernel(self.kernel) }
    }

    fn items(&self) -> Vec<u32> {
        match self.items {
            Items::Counting => (1..=self.n).collect(),
            Items::Partials => {
                let first =
                    |i: u32| if i.is_multiple_of(self.block) { i / self.block + 1 } else { 0 };
                (0..self.n).map(first).collect()
            }
        }
    }

    /// Runs it, and says what is wrong.
    pub(super) fn show(&self) -> Result<Showing> {
        let items = self.items();
        let Ran { answers, findings, halt } = self.run(&items)?;
        let wanted = match self.then {
            Then::Least => 1,
            // What is counted is blocks.
            _ if self.rung == GRID_SYNC.rung => self.grid,
            _ => items.iter().sum(),
        };
        let is_sum = self.then != Then::Least && self.rung != GRID_SYNC.rung;
        let mut told = Vec::new();
        if is_sum
            && self.n <= MOST_EXPLAINED
            && answers.first().is_some_and(|&answer| answer != wanted)
        {
            let once = |items: &[u32]| -> Result<Option<u32>> {
                Ok(self.run(items)?.answers.first().copied())
            };
            told = astray(self.n, self.block, &once)?;
        }
        let file = format!("{}.cu", self.file());
        let functions: Vec<_> = self.shown.iter().map(|name| (file.as_str(), *name)).collect();
        Ok(Showing {
            text: self.text,
            printed: self.printed(),
            source: source::of(&functions),
            how: self.how(),
            findings,
            halt,
            got: answers.iter().map(u32::to_string).collect(),
            wanted: wanted.to_string(),
            astray: told,
        })
    }

    /// How it is run.
    fn how(&self) -> String {
        let Listing {
            items, n, block, grid, grid_by, offset, shared, then, runs, schedule, ..
        } = self;
        let plural = |n: &u32| if *n == 1 { "" } else { "s" };
        let what = match items {
            Items::Counting => format!("1 to {n}"),
            Items::Partials => format!("{n} elements whose partials are 1 to {grid}"),
        };
        let mut how = format!("{what} in {grid} block{} of {block} threads", plural(grid));
        if !grid_by.is_empty() {
            how += &format!(", which the text's host code takes from {grid_by}");
        }
        match then {
            Then::Again(Threads::AsPartials) => {
                how += &format!(", then one of as many threads as partials, {grid}");
            }
            Then::Again(Threads::AsBefore) => how += ", then one more over their partials",
            Then::Again(Threads::Fixed(threads)) => {
                how += &format!(", then one of {threads} over their partials");
            }
            Then::AgainByArray => {
                how += &format!(
                    ", then one of as many threads as partials, {grid}, which tests against the array's {n} elements"
                );
            }
            Then::Add | Then::Least | Then::Nothing => {}
        }
        if *offset > 0 {
            how += &format!(", {offset} element behind a multiple of 16 bytes");
        }
        if let Shared::Idle(bytes @ 1..) = shared {
            how += &format!(", each with {} KiB of shared memory", bytes >> 10);
        }
        if *runs > 1 {
            how += &format!(", {runs} runs over the same array");
        }
        if let Schedule::Random { seed } = schedule {
            how += &format!(", warps and lanes in a random order with seed {seed}");
        }
        how
    }

    /// Runs it over these elements.
    fn run(&self, items: &[u32]) -> Result<Ran> {
        let schedule = self.schedule;
        // The texts are older than devices on which threads that have ended count at barriers.
        let checks = Checks { strict: true, ..Checks::ALL };
        let sim = Sim::new(Options {
            checks,
            schedule,
            instructions: MOST_INSTRUCTIONS,
            ..Options::default()
        });
        let name = format!("{}_u32", self.file());
        let ptx = KERNELS.module(&name, sim.limits().capability).ok_or_else(|| {
            warpfold_cuda::Error::Simulated { doing: "loading".into(), why: format!("no {name}") }
        })?;
        let kernel = sim.kernel(sim.load(&name, &ptx)?, self.kernel)?;
        let bytes: Vec<u8> = items.iter().flat_map(|x| x.to_le_bytes()).collect();
        let before = 4 * self.offset;
        let input = sim.allocate(before + bytes.len() as u64)? + before;
        sim.copy_in(STREAM, input, &bytes)?;
        let zeros = |bytes: u64| -> Result<Address> {
            let address = sim.allocate(bytes)?;
            sim.fill(STREAM, address, 0, bytes)?;
            Ok(address)
        };
        let partials = zeros(4 * u64::from(self.grid))?;
        let (last, out, counter) = (zeros(4)?, zeros(4)?, zeros(4)?);
        let launch = |from: Address, to: Address, grid, block, n: u32| {
            let n = Argument::from(u64::from(n));
            let arguments = match self.text {
                Text::Beyond => vec![from.into(), to.into(), out.into(), counter.into(), n],
                _ => vec![from.into(), to.into(), n],
            };
            let launch = Launch::linear(grid, block).shared(self.shared.bytes(block));
            // SAFETY: the interpreter checks the types and every access.
            unsafe { sim.launch(STREAM, kernel, &launch, &arguments) }
        };
        let words = |from: Address, len: u32| -> Result<Vec<u32>> {
            let mut bytes = vec![0; 4 * len as usize];
            sim.copy_out(STREAM, from, &mut bytes)?;
            let word = |b: &[u8]| b.iter().rev().fold(0, |word, &b| word << 8 | u32::from(b));
            Ok(bytes.chunks_exact(4).map(word).collect())
        };
        let mut ran = Ran { answers: Vec::new(), findings: Vec::new(), halt: None };
        let mut found = Vec::new();
        for _ in 0..self.runs {
            sim.fill(STREAM, out, 0, 4)?;
            launch(input, partials, self.grid, self.block, self.n)?;
            let again = match self.then {
                Then::Again(Threads::AsPartials) => Some((self.grid, self.grid)),
                Then::Again(Threads::AsBefore) => Some((self.block, self.grid)),
                Then::Again(Threads::Fixed(threads)) => Some((threads, self.grid)),
                Then::AgainByArray => Some((self.grid, self.n)),
                Then::Add | Then::Least | Then::Nothing => None,
            };
            if let Some((threads, n)) = again {
                launch(partials, last, 1, threads, n)?;
            }
            // What was found is in the reports.
            let _ = sim.wait(STREAM);
            for report in sim.take_reports() {
                found.extend_from_slice(report.outcome.findings.all());
                ran.halt = ran.halt.or(report.outcome.halt.map(|h| h.to_string()));
            }
            if ran.halt.is_some() {
                break;
            }
            ran.answers.push(match self.then {
                Then::Add => {
                    words(partials, self.grid)?.iter().fold(0, |a: u32, b| a.wrapping_add(*b))
                }
                Then::Least => words(partials, self.grid)?.into_iter().min().unwrap_or(0),
                Then::Again(_) | Then::AgainByArray => words(last, 1)?[0],
                Then::Nothing => words(out, 1)?[0],
            });
        }
        ran.findings = join(&found).iter().map(ToString::to_string).collect();
        Ok(ran)
    }
}
