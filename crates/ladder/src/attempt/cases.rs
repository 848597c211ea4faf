//! The sizes, blocks and orders that break kernels, and what a kernel does with them.

use super::{Attempt, schedule_name};
use crate::faulty::{astray, join};
use crate::lab::STREAM;
use core::fmt;
use warpfold_core::{DType, Scalar};
use warpfold_cuda::{Address, Device, KernelId, Launch, Result, Sim};
use warpfold_ptx::count::Counters;
use warpfold_ptx::machine::{Options, Schedule};

/// More than a right kernel takes for the largest case, by far.
pub(super) const MOST_INSTRUCTIONS: u64 = 4_000_000;

/// The most elements that are run with lanes far apart, which takes long.
const MOST_APART: u64 = 4096;

/// A size, a block, an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Elements.
    pub n: u64,
    /// Threads of a block.
    pub block: u32,
    /// Blocks.
    pub grid: u32,
    /// Which lane goes first.
    pub schedule: Schedule,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { n, block, grid, schedule } = self;
        let plural = |n: u64| if n == 1 { "" } else { "s" };
        write!(
            f,
            "{n} element{} in {grid} block{} of {block} threads, {}",
            plural(*n),
            plural((*grid).into()),
            schedule_name(*schedule)
        )
    }
}

/// The smallest case that fails, and how.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case.
    pub case: Case,
    /// The answer, if it came to one, and the right one.
    pub got: Option<String>,
    /// The right answer.
    pub wanted: String,
    /// Whether the first run was right, and a second one over the same array was not.
    pub second_run: bool,
    /// What the interpreter found.
    pub findings: Vec<String>,
    /// Why it did not finish.
    pub halt: Option<String>,
    /// Which elements are left out, or added too often.
    pub astray: Vec<String>,
}

impl Failure {
    /// Whether it comes to an answer, or to none, and not to the right one.
    pub(super) fn is_wrong(&self) -> bool {
        self.got.as_ref() != Some(&self.wanted)
    }
}

/// All cases, the fewest elements first.
pub(super) fn all(attempt: &Attempt) -> Vec<Case> {
    let mut cases = Vec::new();
    for &block in &attempt.blocks {
        let width = u64::from(block);
        let tile = width * u64::from(attempt.per_thread);
        let mut sizes = vec![0, 1, 2, 3, 31, 32, 33, width - 1, width, width + 1];
        sizes.extend([tile - 1, tile, tile + 1, tile + width + 1, 2 * tile, 3 * tile - 1]);
        sizes.extend([3 * tile + width + 5, 25 * width, 10_007]);
        sizes.sort_unstable();
        sizes.dedup();
        for n in sizes {
            let grid = n.div_ceil(tile).max(1) as u32;
            let mut orders = vec![Schedule::Lockstep];
            if n <= MOST_APART {
                orders.extend([Schedule::Adversarial { seed: 1 }, Schedule::Random { seed: 1 }]);
            }
            cases.extend(orders.into_iter().map(|schedule| Case { n, block, grid, schedule }));
        }
    }
    // Stable: of as many elements the smaller block, and lanes in step, come first.
    cases.sort_by_key(|case| (case.n, case.block));
    cases
}

/// Element `i`, small enough for every type to hold all partial sums.
fn element(i: u64) -> u64 {
    i % 251 + 1
}

fn bytes_of(dtype: DType, value: u64) -> Vec<u8> {
    let bits = match dtype {
        DType::F32 => u64::from((value as f32).to_bits()),
        DType::F64 => (value as f64).to_bits(),
        _ => value,
    };
    bits.to_le_bytes()[..dtype.size()].to_vec()
}

/// A kernel that is loaded.
pub(super) struct Runs<'a> {
    attempt: &'a Attempt,
    sim: Sim,
    kernel: KernelId,
}

/// What a run came to.
struct Ran {
    answer: Option<Scalar>,
    findings: Vec<String>,
    halt: Option<String>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(attempt: &'a Attempt, options: Options) -> Result<Runs<'a>> {
        let sim = Sim::new(options);
        let kernel = sim.kernel(sim.load(&attempt.kernel, &attempt.ptx)?, &attempt.kernel)?;
        Ok(Runs { attempt, sim, kernel })
    }

    fn upload(&self, items: impl Iterator<Item = u64>) -> Result<Address> {
        let bytes: Vec<u8> = items.flat_map(|x| bytes_of(self.attempt.dtype, x)).collect();
        let array = self.sim.allocate(bytes.len() as u64)?;
        self.sim.copy_in(STREAM, array, &bytes)?;
        Ok(array)
    }

    /// Starts it over an array on the device, and returns the partials, which nothing has written.
    fn start(&self, case: &Case, array: Address) -> Result<Address> {
        let Attempt { dtype, shared_per_thread, .. } = *self.attempt;
        let partials = self.sim.allocate(dtype.size() as u64 * u64::from(case.grid))?;
        let n = self.attempt.count(case.n);
        let launch = Launch::linear(case.grid, case.block).shared(case.block * shared_per_thread);
        // SAFETY: the interpreter checks the types and every access.
        unsafe {
            self.sim.launch(STREAM, self.kernel, &launch, &[array.into(), partials.into(), n])?;
        }
        Ok(partials)
    }

    /// Runs it once.
    fn once(&self, case: &Case, array: Address) -> Result<Ran> {
        let partials = self.start(case, array)?;
        // What was found is in the reports.
        let _ = self.sim.wait(STREAM);
        let (mut found, mut halt) = (Vec::new(), None);
        for report in self.sim.take_reports() {
            found.extend_from_slice(report.outcome.findings.all());
            halt = halt.or(report.outcome.halt.map(|h| h.to_string()));
        }
        let dtype = self.attempt.dtype;
        let read = if self.attempt.alone { 1 } else { case.grid };
        let mut bytes = vec![0; dtype.size() * read as usize];
        self.sim.copy_out(STREAM, partials, &mut bytes)?;
        self.sim.free(partials)?;
        let findings = join(&found).iter().map(ToString::to_string).collect();
        let answer = halt.is_none().then(|| sum(dtype, &bytes));
        Ok(Ran { answer, findings, halt })
    }

    /// Runs a case twice over the same array.
    pub(super) fn check(&self, case: &Case) -> Result<Option<Failure>> {
        let dtype = self.attempt.dtype;
        let array = self.upload((0..case.n).map(element))?;
        let wanted = sum(dtype, &bytes_of(dtype, (0..case.n).map(element).sum()));
        for second_run in [false, true] {
            let Ran { answer, findings, halt } = self.once(case, array)?;
            if answer == Some(wanted) && findings.is_empty() {
                continue;
            }
            let wrong = answer.is_some() && answer != Some(wanted);
            let mut told = Vec::new();
            if wrong
                && !second_run
                && case.n <= MOST_APART
                && dtype.size() == 4
                && !dtype.is_float()
            {
                let sums = |items: &[u32]| -> Result<Option<u32>> {
                    let array = self.upload(items.iter().map(|&x| u64::from(x)))?;
                    let ran = self.once(case, array)?;
                    self.sim.free(array)?;
                    Ok(ran.answer.map(|answer| answer.to_bits() as u32))
                };
                told = astray(case.n as u32, case.block, &sums)?;
            }
            return Ok(Some(Failure {
                case: *case,
                got: answer.map(shown),
                wanted: shown(wanted),
                second_run,
                findings,
                halt,
                astray: told,
            }));
        }
        Ok(None)
    }

    /// What it counts in one run, and how many grids its grids launch.
    pub(super) fn count(&self, case: &Case) -> Result<(Counters, usize)> {
        let array = self.upload((0..case.n).map(element))?;
        let partials = self.start(case, array)?;
        self.sim.wait(STREAM)?;
        self.sim.free(partials)?;
        let (mut total, mut launches) = (Counters::default(), 0);
        for report in self.sim.take_reports() {
            launches += report.outcome.launches.len();
            if let Some(counters) = report.outcome.counters {
                total.merge(&counters.total());
            }
        }
        Ok((total, launches))
    }
}

/// A number, as messages have it.
fn shown(number: Scalar) -> String {
    match number {
        Scalar::Int(i, _) => i.to_string(),
        Scalar::UInt(u, _) => u.to_string(),
        other => other.to_f64().to_string(),
    }
}

/// The sum of partials, as the host adds them.
fn sum(dtype: DType, bytes: &[u8]) -> Scalar {
    let words = bytes.chunks_exact(dtype.size()).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    match dtype {
        DType::F32 => Scalar::F64(words.map(|w| f64::from(f32::from_bits(w as u32))).sum()),
        DType::F64 => Scalar::F64(words.map(f64::from_bits).sum()),
        _ => {
            let all = words.fold(0, |all: u64, word| all.wrapping_add(word));
            let mask = u64::MAX >> (64 - 8 * dtype.size());
            Scalar::from_bits(dtype, all & mask)
        }
    }
}
