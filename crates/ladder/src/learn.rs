//! A course in ten lessons, from one thread to the engine: read, predict a number, run it on the interpreter, compare, and write a kernel.

mod lessons;

pub use lessons::LESSONS;

use crate::attempt::{Attempt, COUNTERS, Failed, Tried};
use crate::baselines::Counter;
use crate::error::{Error, Result};
use crate::lab::{Lab, Timing};
use crate::question::Question;
use crate::registry::find;
use core::fmt::Write;
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
    /// A counter, and how many it may have at most over 10007 elements in blocks of 256.
    pub at_most: Option<(Counter, u64)>,
}

/// What came of an exercise.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What came of the cases.
    pub tried: Tried,
    /// The counter that is over its limit: its value, and the limit.
    pub over: Option<(Counter, u64, u64)>,
}

impl Checked {
    /// Whether the exercise is solved.
    #[must_use]
    pub fn is_solved(&self) -> bool {
        self.tried.failure.is_none() && self.over.is_none()
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
        let attempt = Attempt::new(ptx, Some("sum"), DType::I32)?.of_columns(self.per_thread);
        let tried = attempt.run()?;
        let over = self.at_most.and_then(|(counter, most)| {
            let at = COUNTERS.iter().position(|other| *other == counter)?;
            let found = tried.placed.as_ref()?.counts[at];
            (found > most).then_some((counter, found, most))
        });
        Ok(Checked { tried, over })
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
        if let Some((counter, most)) = exercise.at_most {
            let _ = write!(
                out,
                "\nOver 10007 elements in blocks of 256 it may have {most} {} at most.\n",
                counter.name()
            );
        }
        Ok(out)
    }
}
