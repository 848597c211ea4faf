//! A course in fourteen lessons, from one thread to the engine: read, predict a number, run it on the interpreter, compare, and write a kernel.

mod drawing;
mod figures;
mod flight;
mod lessons;
mod needs;
mod page;

pub use drawing::{OWN, Picture, Rows};
pub use figures::Figures;
pub use lessons::LESSONS;
pub use needs::Need;

use crate::attempt::{Attempt, BLOCKS, Failed, Failure};
use crate::baselines::{COUNTED, Counter};
use crate::error::{Error, Result};
use crate::experiments::{self, Bench, Cell};
use crate::lab::{Lab, Timing};
use crate::occupancy::{Block, multiprocessor};
use crate::question::Question;
use crate::registry::find;
use crate::rung::Blocks;
use warpfold_core::{DType, Op};

/// A lesson.
#[derive(Clone, Copy, Debug)]
pub struct Lesson {
    /// Its number, from 1.
    pub number: u32,
    /// Its name.
    pub title: &'static str,
    /// What is to be read, in paragraphs.
    pub read: &'static str,
    /// What it looks like.
    pub drawing: Picture,
    /// What is to be predicted: a number.
    pub question: &'static str,
    /// What is run to find the number.
    pub run: Run,
    /// Why it is that number.
    pub explain: &'static str,
    /// A kernel with a hole.
    pub exercise: Exercise,
    /// The rung that a solution is; nothing if it is none.
    pub rung: Option<&'static str>,
}

/// What is run, and what is looked at.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// A rung, over so many elements of type i32, in blocks of so many threads.
    Rung {
        /// The rung.
        rung: &'static str,
        /// Elements.
        n: u64,
        /// Threads of a block.
        block: u32,
        /// What is counted.
        what: What,
    },
    /// A column of a row of an experiment's first table.
    Experiment {
        /// The experiment.
        id: &'static str,
        /// The row, by its first cell.
        row: &'static str,
        /// The column.
        column: &'static str,
    },
    /// How many such blocks a multiprocessor of compute capability 9.0 holds.
    Occupancy(Block),
}

/// What a lesson looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Blocks of the first launch.
    Blocks,
    /// Launches.
    Launches,
    /// A counter of all launches.
    Counter(Counter),
    /// Atomics on global memory.
    Atomics,
    /// Sectors of a load's request, rounded.
    SectorsPerLoad,
}

/// A kernel with a hole, and what it must do when the hole is filled.
#[derive(Clone, Copy, Debug)]
pub struct Exercise {
    /// The kernel, with a line that says HOLE.
    pub source: &'static str,
    /// The kernel with its hole filled.
    pub solution: &'static str,
    /// Elements of a tile for each thread.
    pub per_thread: u32,
    /// What its numbers of threads are.
    pub blocks: Blocks,
    /// Whether one launch does everything: the whole sum is in the first partial.
    pub alone: bool,
    /// What the lesson is about, and a right kernel without it is not a solution.
    pub needs: &'static [Need],
}

/// What came of an exercise.
#[derive(Clone, Debug)]
pub struct Checked {
    /// How many cases were run.
    pub cases: usize,
    /// The smallest case that fails.
    pub failure: Option<Failure>,
    /// What a right kernel does that is not what the lesson is about.
    pub missed: Vec<String>,
    /// The kernel, as it was launched.
    pub attempt: Attempt,
}

impl Checked {
    /// Whether the exercise is solved.
    #[must_use]
    pub fn is_solved(&self) -> bool {
        self.failure.is_none() && self.missed.is_empty()
    }
}

/// The lesson with this number.
#[must_use]
pub fn lesson(number: u32) -> Option<&'static Lesson> {
    LESSONS.iter().find(|lesson| lesson.number == number)
}

impl Run {
    /// The command that does the same.
    #[must_use]
    pub fn command(&self) -> String {
        match self {
            Run::Rung { rung, n, block, .. } => format!(
                "warpfold ladder run {rung} --device sim --dtype i32 -n {n} --block {block}"
            ),
            Run::Experiment { id, .. } => format!("warpfold ladder experiment {id} --device sim"),
            Run::Occupancy(Block { threads, registers, shared }) => format!(
                "warpfold ladder occupancy --cc 9.0 --block {threads} --regs {registers} --shared {shared}"
            ),
        }
    }

    /// Runs it on the interpreter, or computes it, and looks.
    ///
    /// # Errors
    /// Those of the interpreter.
    pub fn count(&self) -> Result<u64> {
        match *self {
            Run::Rung { rung, n, block, what } => count(rung, n, block, what),
            Run::Experiment { id, row, column } => look(id, row, column),
            Run::Occupancy(block) => {
                let found = multiprocessor((9, 0)).and_then(|m| m.occupancy(block).ok());
                Ok(found.map_or(0, |found| found.blocks.into()))
            }
        }
    }
}

fn count(id: &str, n: u64, block: u32, what: What) -> Result<u64> {
    let rung = find(id).ok_or_else(|| Error::NoRung { id: id.into() })?;
    let question = Question::new(rung, DType::I32, Op::Sum, n, block)?;
    let measured = Lab::simulated().measure(&question, &Timing::default(), 1)?;
    let counters = measured.counters.unwrap_or_default();
    Ok(match what {
        What::Blocks => measured.grid.first().copied().unwrap_or(0).into(),
        What::Launches => measured.grid.len() as u64,
        What::Counter(counter) => counter.of(&counters),
        What::Atomics => counters.global_atomics.operations,
        What::SectorsPerLoad => {
            counters.global_loads.sectors_per_request().unwrap_or(0.0).round() as u64
        }
    })
}

/// A number of an experiment's first table.
fn look(id: &str, row: &str, column: &str) -> Result<u64> {
    let missing = || Error::NoExperiment { id: id.into() };
    let experiment = experiments::find(id).ok_or_else(missing)?;
    let rung = find("vector-load").ok_or_else(missing)?;
    let outcome = experiment.run(&Bench { lab: None, rung, progress: &|_, _| {} })?;
    let table = outcome.tables.first().ok_or_else(missing)?;
    let at = table.columns.iter().position(|name| name == column);
    let cells = table.rows.iter().find(|cells| cells.first() == Some(&Cell::from(row)));
    match at.and_then(|at| cells?.get(at)) {
        Some(Cell::Whole(n)) => Ok(*n),
        _ => Err(missing()),
    }
}

impl Exercise {
    /// Checks a solution: all cases, with every check, and the counter.
    ///
    /// # Errors
    /// PTX that is no such kernel.
    pub fn check(&self, ptx: String) -> Result<Checked, Failed> {
        self.check_kernel(ptx, "sum", &|_| true)
    }

    /// The same of a kernel of this name, in those of the blocks whose numbers of threads are wanted.
    ///
    /// # Errors
    /// PTX that has no such kernel.
    pub fn check_kernel(
        &self,
        ptx: String,
        name: &str,
        wanted: &dyn Fn(u32) -> bool,
    ) -> Result<Checked, Failed> {
        let mut attempt = Attempt::new(ptx, Some(name), DType::I32)?.of_columns(self.per_thread);
        attempt.alone = self.alone;
        let odd: &[u32] = if self.blocks == Blocks::Any(1) { &[33, 96] } else { &[] };
        attempt.blocks = BLOCKS.iter().chain(odd).copied().filter(|&block| wanted(block)).collect();
        let (cases, failure) = attempt.check_all()?;
        let mut missed = Vec::new();
        if failure.is_none() && !self.needs.is_empty() {
            let tile = u64::from(COUNTED.1) * u64::from(self.per_thread);
            let counts = attempt.counts()?;
            let miss = |need: &Need| need.missed(&attempt.ptx, name, tile, &counts);
            missed = self.needs.iter().filter_map(miss).collect();
        }
        Ok(Checked { cases, failure, missed, attempt })
    }
}
