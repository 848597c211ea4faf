//! Experiments on the execution model: each shows one thing that decides how fast a
//! kernel is.
//!
//! An experiment says what is expected before it runs. Its kernels run on the
//! interpreter, which checks and counts, and on a device with a clock, if there is
//! one, over more data. What they compute is compared with what the host computes.

mod bank_conflicts;
mod coalescing;
mod divergence;
mod execution_sweep;
mod latency;
mod matrix_add;
mod nested_hello;
mod occupancy;
mod outcome;
mod place;
mod shuffle_lanes;
mod warp_partition;

pub(crate) use outcome::number;
pub use outcome::{Cell, Outcome, Table};

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::rung::{Rung, Text};

/// An experiment.
#[derive(Debug)]
pub struct Experiment {
    /// Its name: `coalescing`.
    pub id: &'static str,
    /// The texts that have it.
    pub texts: &'static [Text],
    /// What it shows, in a few words.
    pub title: &'static str,
    /// What should come of it: said before it is run.
    pub expectation: &'static str,
    /// What it needs.
    pub needs: Needs,
    run: fn(&Bench<'_>) -> Result<Outcome>,
}

/// What an experiment needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// No device: it is arithmetic.
    Nothing,
    /// A device or the interpreter.
    Kernels,
    /// A device with a clock.
    Clock,
}

impl Needs {
    /// What it says in a list.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Needs::Nothing => "nothing",
            Needs::Kernels => "a GPU, or the interpreter for its counters",
            Needs::Clock => "a GPU, for its clock",
        }
    }
}

/// Every experiment.
pub static EXPERIMENTS: &[Experiment] = &[
    warp_partition::EXPERIMENT,
    divergence::EXPERIMENT,
    matrix_add::EXPERIMENT,
    occupancy::EXPERIMENT,
    latency::EXPERIMENT,
    shuffle_lanes::EXPERIMENT,
    nested_hello::EXPERIMENT,
    coalescing::EXPERIMENT,
    bank_conflicts::EXPERIMENT,
    execution_sweep::EXPERIMENT,
];

/// The experiment of a name.
#[must_use]
pub fn find(id: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.id == id)
}

/// What experiments run with.
pub struct Bench<'a> {
    /// A device with a clock.
    pub lab: Option<&'a Lab>,
    /// The rung whose launches are swept.
    pub rung: &'static Rung,
    /// Is told how many steps of how many are done.
    pub progress: &'a dyn Fn(u64, u64),
}

impl Experiment {
    /// Whether it can run at all.
    ///
    /// # Errors
    /// It needs a clock and there is none.
    pub fn check(&self, has_clock: bool) -> Result<()> {
        match self.needs {
            Needs::Clock if !has_clock => Err(Error::NoClock { id: self.id }),
            _ => Ok(()),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of [`check`](Self::check); a device that fails. Wrong answers are no error
    /// but in the outcome.
    pub fn run(&self, bench: &Bench<'_>) -> Result<Outcome> {
        self.check(bench.lab.is_some())?;
        (self.run)(bench)
    }
}

impl Bench<'_> {
    /// Tells that `done` of `all` steps are done.
    fn tell(&self, done: usize, all: usize) {
        (self.progress)(done as u64, all as u64);
    }

    /// The device with a clock, for an experiment.
    fn place(&self, id: &'static str) -> Option<place::Place<'_>> {
        self.lab.map(|lab| place::Place::new(id, lab.device()))
    }
}

/// The first of several names and numbers that is the largest.
fn largest<T: Clone>(all: impl IntoIterator<Item = (T, f64)>) -> Option<(T, f64)> {
    all.into_iter().fold(None, |best: Option<(T, f64)>, next| match &best {
        Some((_, value)) if *value >= next.1 => best,
        _ => Some(next),
    })
}
