//! A course in ten lessons, from one thread to the engine: read, predict a number, run it on the interpreter, compare, and write a kernel.

mod lessons;

pub use lessons::LESSONS;

use crate::attempt::{Attempt, BLOCKS, Failed, Failure};
use crate::baselines::{COUNTED, Counter};
use crate::error::{Error, Result};
use crate::lab::{Lab, Timing};
use crate::question::Question;
use crate::registry::find;
use crate::rung::Blocks;
use core::fmt::Write;
use warpfold_core::{DType, Op};
use warpfold_ptx::count::{Counters, Traffic};

/// A lesson.
#[derive(Clone, Copy, Debug)]
pub struct Lesson {
    /// Its number, from 1.
    pub number: u32,
    /// Its name.
    pub title: &'static str,
    /// What is to be read, in paragraphs.
    pub read: &'static str,
    /// What is to be predicted: a number.
    pub question: &'static str,
    /// What is run to find the number.
    pub run: Run,
    /// Why it is that number.
    pub explain: &'static str,
    /// A kernel with a hole.
    pub exercise: Exercise,
}

/// A rung's run, and what is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The rung.
    pub rung: &'static str,
    /// Elements, of type i32.
    pub n: u64,
    /// Threads of a block.
    pub block: u32,
    /// What is counted.
    pub what: What,
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
    /// Elements of a tile for each thread.
    pub per_thread: u32,
    /// What its numbers of threads are.
    pub blocks: Blocks,
    /// Whether one launch does everything: the whole sum is in the first partial.
    pub alone: bool,
    /// What the lesson is about, and a right kernel without it is not a solution.
    pub needs: &'static [Need],
}

/// What is counted over 10007 elements in blocks of 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A counter may have this much.
    AtMost(Counter, u64),
    /// Every warp folds its 32 lanes by shuffles, in at least five steps.
    Shuffles,
    /// Loads of 16 bytes a lane.
    WideLoads,
}

impl Need {
    /// What a solution must have, as a sentence goes on behind "it".
    #[must_use]
    pub fn told(self) -> String {
        match self {
            Need::AtMost(counter, most) => format!("may have {most} {} at most", counter.name()),
            Need::Shuffles => "must fold every warp by shuffles".into(),
            Need::WideLoads => "must load 16 bytes a lane".into(),
        }
    }

    /// What a kernel that counts this does instead; nothing if it has what is needed.
    fn missed(self, ptx: &str, counters: &Counters) -> Option<String> {
        let (n, block) = COUNTED;
        let warps = n.div_ceil(u64::from(block)) * u64::from(block / 32);
        match self {
            Need::AtMost(counter, most) => {
                let found = counter.of(counters);
                (found > most)
                    .then(|| format!("it has {found} {}, and {most} are enough", counter.name()))
            }
            Need::Shuffles => {
                let steps = counters.warp_barriers / warps;
                let has = ptx.contains("shfl.sync") && steps >= 5;
                (!has)
                    .then(|| "its warps do not fold by shuffles, which this lesson is about".into())
            }
            Need::WideLoads => {
                let Traffic { bytes_asked, requests, .. } = counters.global_loads;
                let lane = bytes_asked as f64 / (requests.max(1) * 32) as f64;
                // The ragged end has fewer.
                (lane < 12.0)
                    .then(|| format!("its loads ask for {lane:.1} bytes a lane, and not for 16"))
            }
        }
    }
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
        let Run { rung, n, block, .. } = self;
        format!("warpfold ladder run {rung} --device sim --dtype i32 -n {n} --block {block}")
    }

    /// Runs it on the interpreter, and looks.
    ///
    /// # Errors
    /// Those of the interpreter.
    pub fn count(&self) -> Result<u64> {
        let rung = find(self.rung).ok_or_else(|| Error::NoRung { id: self.rung.into() })?;
        let question = Question::new(rung, DType::I32, Op::Sum, self.n, self.block)?;
        let measured = Lab::simulated().measure(&question, &Timing::default(), 1)?;
        let counters = measured.counters.unwrap_or_default();
        Ok(match self.what {
            What::Blocks => measured.grid.first().copied().unwrap_or(0).into(),
            What::Launches => measured.grid.len() as u64,
            What::Counter(counter) => counter.of(&counters),
            What::Atomics => counters.global_atomics.operations,
            What::SectorsPerLoad => {
                counters.global_loads.sectors_per_request().unwrap_or(0.0).round() as u64
            }
        })
    }
}

impl Exercise {
    /// Checks a solution: all cases, with every check, and the counter.
    ///
    /// # Errors
    /// PTX that is no such kernel.
    pub fn check(&self, ptx: String) -> Result<Checked, Failed> {
        self.check_kernel(ptx, "sum")
    }

    /// The same of a kernel of this name.
    ///
    /// # Errors
    /// PTX that has no such kernel.
    pub fn check_kernel(&self, ptx: String, name: &str) -> Result<Checked, Failed> {
        let mut attempt = Attempt::new(ptx, Some(name), DType::I32)?.of_columns(self.per_thread);
        attempt.alone = self.alone;
        if self.blocks == Blocks::Any(1) {
            attempt.blocks = BLOCKS.iter().copied().chain([33, 96]).collect();
        }
        let (cases, failure) = attempt.check_all()?;
        let mut missed = Vec::new();
        if failure.is_none() && !self.needs.is_empty() {
            let counters = attempt.counters()?;
            missed =
                self.needs.iter().filter_map(|need| need.missed(&attempt.ptx, &counters)).collect();
        }
        Ok(Checked { cases, failure, missed })
    }
}

impl Lesson {
    /// The lesson as a page in Markdown; the answer is folded away.
    ///
    /// # Errors
    /// Those of the interpreter, which finds the number.
    pub fn page(&self) -> Result<String> {
        let Lesson { number, title, read, question, run, explain, exercise } = self;
        let found = run.count()?;
        let mut out = format!("# {number}. {title}\n\n{read}\n\n## Predict\n\n{question}\n\n");
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "```sh\nwarpfold learn {number} --predict NUMBER\n```\n\n<details><summary>The number, and why</summary>\n\n{found}. {explain}.\n\n`{}` runs it.\n\n</details>\n\n",
            run.command()
        );
        let _ = write!(
            out,
            "## Write\n\nThe kernel has a hole. `warpfold learn exercise {number} -o my.cu` writes it to a file, and `warpfold learn check {number} my.cu` tries it over every size, with every check on.\n\n```cpp\n{}\n```\n",
            exercise.source.trim_end()
        );
        for need in exercise.needs {
            let _ = write!(out, "\nOver 10007 elements in blocks of 256 it {}.\n", need.told());
        }
        Ok(out)
    }
}
