//! The faults of the classic listings, reproduced on the interpreter.

use crate::error::{Error, Result};
use crate::lab::{KERNELS, STREAM};
use crate::rung::Rung;
use crate::source;
use warpfold_cuda::{Address, Argument, Device, Launch, Sim};
use warpfold_ptx::machine::{Options, Schedule};

/// A demonstration of a fault.
#[derive(Clone, Debug)]
pub struct Showing {
    /// The listing, in words of our own.
    pub source: String,
    /// How it was run.
    pub how: String,
    /// The findings of the interpreter.
    pub findings: Vec<String>,
    /// Why it did not finish.
    pub halt: Option<String>,
    /// The answer of each run; empty if the listing did not finish.
    pub got: Vec<String>,
    /// The right answer.
    pub wanted: String,
}

impl Showing {
    /// Whether something is wrong.
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        !self.findings.is_empty()
            || self.halt.is_some()
            || self.got.iter().any(|g| *g != self.wanted)
    }
}

/// What a listing's host code does with the blocks' partials.
#[derive(Clone, Copy)]
enum Then {
    /// Adds them.
    Add,
    /// Takes the least of them.
    Least,
    /// Launches one block over them, of as many threads as there are partials, but
    /// no more than this.
    Again(u32),
    /// Nothing: the kernel writes the answer.
    Nothing,
}

/// A listing, and where its fault shows.
struct Listing {
    rung: &'static str,
    file: &'static str,
    kernel: &'static str,
    /// The sources of the kernel, if it has more than one.
    template: Option<&'static str>,
    n: u32,
    block: u32,
    grid: u32,
    /// Elements between a multiple of 256 bytes and the first element.
    offset: u64,
    /// Bytes of dynamic shared memory of a block, which the kernel does not use.
    shared: u32,
    then: Then,
    runs: usize,
    schedule: Schedule,
}

const fn listing(
    rung: &'static str,
    kernel: &'static str,
    n: u32,
    block: u32,
    grid: u32,
) -> Listing {
    // Lanes as far ahead of each other as they may be: what is only luck ends.
    let schedule = Schedule::Adversarial { seed: 1 };
    let (file, template, offset, shared, then) = ("faulty", None, 0, 0, Then::Add);
    Listing {
        rung,
        file,
        kernel,
        template,
        n,
        block,
        grid,
        offset,
        shared,
        then,
        runs: 1,
        schedule,
    }
}

/// A guard that takes all of a tile or none of it: 3 whole tiles and a ragged one.
const fn dropped(rung: &'static str, kernel: &'static str, columns: u32) -> Listing {
    let n = 3 * 64 * columns + 64 + 5;
    Listing { template: Some("all_or_nothing"), ..listing(rung, kernel, n, 64, 4) }
}

static LISTINGS: &[Listing] = &[
    listing("neighbored", "faulty_neighbored", 100, 64, 2),
    Listing { runs: 2, ..listing("neighbored", "faulty_neighbored", 128, 64, 2) },
    listing("neighbored-compact", "faulty_neighbored_compact", 100, 64, 2),
    listing("interleaved", "faulty_interleaved", 100, 64, 2),
    listing("interleaved", "faulty_interleaved", 192, 96, 2),
    Listing {
        then: Then::Again(1024),
        ..listing("shared-neighbored", "faulty_shared_neighbored", 2200, 2, 1100)
    },
    listing("shared-first-add", "faulty_shared_first_add", 100, 64, 1),
    dropped("unroll2", "faulty_unroll2", 2),
    dropped("unroll4", "faulty_unroll4", 4),
    dropped("unroll8", "faulty_unroll8", 8),
    dropped("unroll16", "faulty_unroll16", 16),
    dropped("unroll8-loop", "faulty_unroll8", 8),
    listing("unroll-warps8", "faulty_unroll_warps8", 128, 64, 2),
    listing("unroll-warps8", "faulty_unroll_warps8", 64, 32, 2),
    dropped("unroll-warps8-barrier", "faulty_unroll8", 8),
    listing("complete-unroll8", "faulty_unroll_warps8", 128, 64, 2),
    listing("complete-unroll8-static", "faulty_unroll_warps8", 128, 64, 2),
    Listing { file: "faulty_nested", ..listing("nested", "faulty_nested", 4200, 2, 2100) },
    listing("nested-nosync", "faulty_nested_nosync", 128, 64, 2),
    listing("nested-wide", "faulty_nested_wide", 256, 64, 4),
    listing("two-pass-shared", "faulty_two_pass_shared", 1000, 96, 2),
    listing("two-pass-warp", "faulty_two_pass_warp", 1000, 64, 2),
    listing("two-pass-static", "faulty_two_pass_warp", 1000, 128, 2),
    Listing {
        then: Then::Again(4),
        ..listing("block-sum", "faulty_shared_neighbored", 100, 4, 25)
    },
    listing("warp-shuffle", "faulty_warp_shuffle", 64, 32, 2),
    listing("warp-allreduce", "faulty_warp_allreduce", 40, 32, 2),
    Listing { then: Then::Least, ..listing("any-op", "faulty_any_op", 40, 32, 2) },
    Listing { offset: 1, ..listing("vector-load", "faulty_vector_load", 256, 32, 2) },
    listing("vector-load", "faulty_vector_load", 255, 32, 2),
    Listing {
        then: Then::Nothing,
        runs: 2,
        ..listing("last-block", "faulty_last_block", 256, 32, 8)
    },
    GRID_SYNC,
];

/// Blocks with this much shared memory get a multiprocessor each, and there are 132.
/// The order of the lanes is lockstep, so it does not matter.
const GRID_SYNC: Listing = Listing {
    shared: 200 << 10,
    then: Then::Nothing,
    schedule: Schedule::Lockstep,
    ..listing("grid-sync", "faulty_grid_sync", 140, 32, 140)
};

/// Demonstrations of the faults of a rung's listing; empty if there is nothing to show.
///
/// # Errors
/// Errors of the interpreter, other than findings.
pub fn show(rung: &Rung) -> Result<Vec<Showing>> {
    if let Some(showing) = crate::host::faulty(rung.id) {
        return Ok(vec![showing]);
    }
    LISTINGS.iter().filter(|listing| listing.rung == rung.id).map(Listing::run).collect()
}

/// Enough for every listing that finishes.
const MOST_INSTRUCTIONS: u64 = 2_500_000;

impl Listing {
    fn run(&self) -> Result<Showing> {
        let failed = |source| Error::Device { id: self.rung, source };
        self.at_work().map_err(failed)
    }

    fn at_work(&self) -> warpfold_cuda::Result<Showing> {
        let schedule = self.schedule;
        let options = Options { schedule, instructions: MOST_INSTRUCTIONS, ..Options::default() };
        let sim = Sim::new(options);
        let name = format!("{}_u32", self.file);
        let ptx = KERNELS.module(&name, sim.limits().capability).ok_or_else(|| {
            warpfold_cuda::Error::Simulated { doing: "loading".into(), why: format!("no {name}") }
        })?;
        let kernel = sim.kernel(sim.load(&name, &ptx)?, self.kernel)?;
        let items: Vec<u32> = (1..=self.n).collect();
        let bytes: Vec<u8> = items.iter().flat_map(|x| x.to_le_bytes()).collect();
        let before = 4 * self.offset;
        let input = sim.allocate(before + bytes.len() as u64)? + before;
        sim.copy_in(STREAM, input, &bytes)?;
        let fill = |bytes: u64| -> warpfold_cuda::Result<Address> {
            let address = sim.allocate(bytes)?;
            sim.fill(STREAM, address, 0, bytes)?;
            Ok(address)
        };
        let partials = fill(4 * u64::from(self.grid))?;
        let (last, out, counter) = (fill(4)?, fill(4)?, fill(4)?);
        let launch = |from: Address, to: Address, grid, block, n: u32| {
            let arguments =
                [from.into(), to.into(), out.into(), counter.into(), Argument::from(u64::from(n))];
            // SAFETY: the interpreter checks the types and every access.
            unsafe {
                sim.launch(
                    STREAM,
                    kernel,
                    &Launch::linear(grid, block).shared(self.shared),
                    &arguments,
                )
            }
        };
        let words = |from: Address, len: u32| -> warpfold_cuda::Result<Vec<u32>> {
            let mut bytes = vec![0; 4 * len as usize];
            sim.copy_out(STREAM, from, &mut bytes)?;
            let word = |b: &[u8]| b.iter().rev().fold(0, |word, &b| word << 8 | u32::from(b));
            Ok(bytes.chunks_exact(4).map(word).collect())
        };
        let (mut got, mut findings, mut halt) = (Vec::new(), Vec::new(), None);
        for _ in 0..self.runs {
            sim.fill(STREAM, out, 0, 4)?;
            launch(input, partials, self.grid, self.block, self.n)?;
            if let Then::Again(most) = self.then {
                launch(partials, last, 1, self.grid.min(most), self.grid)?;
            }
            // What was found is in the reports.
            let _ = sim.wait(STREAM);
            for report in sim.take_reports() {
                findings.extend(report.outcome.findings.all().iter().map(ToString::to_string));
                halt = halt.or(report.outcome.halt.map(|h| h.to_string()));
            }
            if halt.is_some() {
                break;
            }
            let answer = match self.then {
                Then::Add => {
                    words(partials, self.grid)?.iter().fold(0, |a: u32, b| a.wrapping_add(*b))
                }
                Then::Least => words(partials, self.grid)?.into_iter().min().unwrap_or(0),
                Then::Again(_) => words(last, 1)?[0],
                Then::Nothing => words(out, 1)?[0],
            };
            got.push(answer.to_string());
        }
        let wanted = match self.then {
            Then::Least => 1,
            // What is counted is blocks.
            _ if self.rung == "grid-sync" => self.grid,
            _ => items.iter().sum(),
        };
        let Listing { n, block, grid, offset, shared, runs, .. } = self;
        let mut how = format!("1 to {n} in {grid} blocks of {block} threads");
        if *offset > 0 {
            how += &format!(", {offset} element behind a multiple of 16 bytes");
        }
        if *shared > 0 {
            how += &format!(", each with {} KiB of shared memory", shared >> 10);
        }
        if *runs > 1 {
            how += &format!(", {runs} runs over the same array");
        }
        let file = format!("{}.cu", self.file);
        let source = source::of(&[(&file, self.template.unwrap_or(self.kernel))]);
        Ok(Showing { source, how, findings, halt, got, wanted: wanted.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ALL, find};

    /// Every listing is wrong, and in the way that is said of it.
    #[test]
    fn every_fault_shows() {
        for rung in ALL {
            // Which takes long, and is tested below.
            if rung.id == GRID_SYNC.rung {
                continue;
            }
            let shown = show(rung).unwrap();
            for showing in &shown {
                assert!(showing.is_faulty(), "{}: {showing:?}", rung.id);
                let begins = ["// kernels/faulty", "// src/host.rs"];
                assert!(begins.iter().any(|b| showing.source.starts_with(b)), "{}", rung.id);
            }
            let nothing = rung.fault.starts_with("none") || rung.id == "atomic";
            let slow = rung.id == "shared-first-add-full-grid";
            assert_eq!(shown.is_empty(), nothing || slow, "{}", rung.id);
        }
        assert!(LISTINGS.iter().all(|listing| crate::find(listing.rung).is_some()));
    }

    #[test]
    fn what_is_found_is_what_the_texts_got_wrong() {
        for (id, place, part) in [
            ("neighbored", 0, "barrier"),
            ("neighbored", 0, "out of bounds"),
            ("interleaved", 0, "out of bounds"),
            ("shared-first-add", 0, "out of bounds"),
            ("unroll-warps8", 1, "out of bounds"),
            ("two-pass-warp", 0, "volatile"),
            ("nested-nosync", 0, "race"),
            ("nested-wide", 0, "race"),
            ("warp-shuffle", 0, "mask"),
            ("warp-allreduce", 0, "mask"),
            ("vector-load", 0, "misaligned"),
            ("last-block", 0, "race"),
        ] {
            let shown = show(find(id).unwrap()).unwrap();
            let found = &shown[place].findings;
            assert!(found.iter().any(|f| f.contains(part)), "{id}, {part}: {found:#?}");
            assert!(found.iter().all(|f| f.contains("faulty.cu:")), "{id}: {found:#?}");
        }
        // And where nothing is found, the answer is wrong.
        for (id, place) in [
            ("neighbored", 1),
            ("interleaved", 1),
            ("shared-neighbored", 0),
            ("unroll8", 0),
            ("unroll-warps8", 0),
            ("complete-unroll8-static", 0),
            ("two-pass-shared", 0),
            ("block-sum", 0),
            ("any-op", 0),
            ("nested", 0),
            ("vector-load", 1),
            ("last-block", 0),
        ] {
            let showing = &show(find(id).unwrap()).unwrap()[place];
            assert!(showing.got.iter().any(|g| *g != showing.wanted), "{id}: {showing:?}");
        }
        let showing = &show(find("grid-sync").unwrap()).unwrap()[0];
        assert!(showing.halt.is_some() && showing.got.is_empty(), "{showing:?}");
        // As many as fit come to their end.
        let fit = Listing { n: 132, grid: 132, ..GRID_SYNC }.run().unwrap();
        assert!(!fit.is_faulty(), "{fit:?}");
    }
}
