//! Where a kernel stands on the ladder: the rung that counts most alike.

use super::cases::{Case, Runs};
use super::{Attempt, Failed};
use crate::baselines::{COUNTED, Counter};
use crate::lab::{Lab, Timing};
use crate::question::Question;
use crate::registry::ALL;
use crate::rung::{Plan, Rung};
use warpfold_core::Op;
use warpfold_ptx::count::Counters;
use warpfold_ptx::machine::{Options, Schedule};

/// What is compared.
pub const COUNTERS: [Counter; 5] = [
    Counter::Instructions,
    Counter::Sectors,
    Counter::DivergentBranches,
    Counter::BankConflicts,
    Counter::Barriers,
];

/// A kernel's place.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The case that was counted.
    pub case: Case,
    /// What the kernel counts, as [`COUNTERS`] has it.
    pub counts: [u64; COUNTERS.len()],
    /// The most alike rung, between its neighbours on the ladder.
    pub neighbours: Vec<Neighbour>,
    /// Which of them is the most alike.
    pub nearest: &'static str,
}

/// A rung beside the kernel.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// The rung.
    pub rung: &'static Rung,
    /// What its first launches count, as [`COUNTERS`] has it.
    pub counts: [u64; COUNTERS.len()],
}

fn counts(counters: &Counters) -> [u64; COUNTERS.len()] {
    COUNTERS.map(|counter| counter.of(counters))
}

/// How unlike two kernels are: the ratios of what they count, whichever is larger.
fn distance(a: &[u64], b: &[u64]) -> f64 {
    let one = |(&a, &b): (&u64, &u64)| ((a as f64 + 1.0) / (b as f64 + 1.0)).ln().abs();
    a.iter().zip(b).map(one).sum()
}

/// What a right kernel counts.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) case: Case,
    pub(crate) counters: Counters,
    /// Grids that its grids launch.
    pub(crate) launches: usize,
}

/// Counts a kernel that is right.
pub(super) fn counted(attempt: &Attempt) -> Result<Counts, Failed> {
    let (n, asked) = COUNTED;
    // The block that rungs are counted with, or the one of the user's that is nearest to it.
    let nearest = attempt.blocks.iter().copied().min_by_key(|block| block.abs_diff(asked));
    let block = nearest.unwrap_or(asked);
    let tile = u64::from(block) * u64::from(attempt.per_thread);
    let schedule = Schedule::Lockstep;
    let case = Case { n, block, grid: n.div_ceil(tile) as u32, schedule };
    let options = Options { counters: true, schedule, ..Options::default() };
    let (counters, launches) = Runs::new(attempt, options)?.count(&case)?;
    Ok(Counts { case, counters, launches })
}

/// Counts a kernel that is right, and the rungs that add such elements.
pub(super) fn place(attempt: &Attempt) -> Result<Placed, Failed> {
    let Counts { case, counters, .. } = counted(attempt)?;
    let (n, block, mine) = (case.n, case.block, counts(&counters));
    let lab = Lab::simulated();
    let mut known: Vec<Neighbour> = Vec::new();
    for rung in ALL.iter().filter(|rung| !matches!(rung.plan, Plan::Host | Plan::Cub)) {
        let Ok(question) = Question::new(rung, attempt.dtype, Op::Sum, n, block) else { continue };
        match lab.measure(&question, &Timing::default(), 1) {
            Ok(measured) => known.extend(
                measured.counters.map(|counters| Neighbour { rung, counts: counts(&counters) }),
            ),
            Err(error) if error.is_skip() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let alike = |at: &usize| distance(&mine, &known[*at].counts);
    let nearest = (0..known.len()).min_by(|a, b| alike(a).total_cmp(&alike(b)));
    let at = nearest.ok_or_else(|| Failed::Kernel {
        why: format!("no rung adds {} in blocks of {block}", attempt.dtype),
    })?;
    let id = known[at].rung.id;
    let around = at.saturating_sub(1)..known.len().min(at + 2);
    Ok(Placed { case, counts: mine, neighbours: known[around].to_vec(), nearest: id })
}
