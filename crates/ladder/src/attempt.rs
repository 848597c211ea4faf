//! A kernel of the user's: compiled, run over the sizes and blocks that break kernels, counted, and placed on the ladder.
//!
//! The kernel has three parameters: the elements, a partial for each block, and the number of elements. The host starts a block for each
//! tile and adds the partials.

mod cases;
pub mod nvrtc;
mod place;

pub use cases::{Case, Failure};
pub(crate) use place::Counts;
pub use place::{COUNTERS, Neighbour, Placed};

use crate::buffers::Buffers;
use crate::error::Error;
use crate::lab::STREAM;
use crate::statistics::median;
use cases::Runs;
use warpfold_core::DType;
use warpfold_cuda::{Argument, Device, Launch};
use warpfold_ptx::info::{FunctionInfo, info};
use warpfold_ptx::machine::{Checks, Options, Schedule};

/// Why a kernel could not be tried.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failed {
    /// No compiler.
    NoCompiler {
        /// What is missing.
        why: String,
    },
    /// The compiler could not be fetched.
    Fetch {
        /// The reason.
        why: String,
    },
    /// The compiler refuses the source.
    Source {
        /// What it says.
        why: String,
    },
    /// The module has no kernel that could be tried.
    Kernel {
        /// What it has.
        why: String,
    },
    /// The interpreter cannot run it.
    Device(warpfold_cuda::Error),
    /// The ladder's own rungs failed.
    Ladder(Error),
}

impl core::fmt::Display for Failed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Failed::NoCompiler { why } => why.fmt(f),
            Failed::Fetch { why } => write!(f, "NVRTC cannot be fetched: {why}"),
            Failed::Source { why } => write!(f, "the compiler refuses it: {why}"),
            Failed::Kernel { why } => why.fmt(f),
            Failed::Device(error) => error.fmt(f),
            Failed::Ladder(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Failed {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Failed::Device(error) => error.source(),
            Failed::Ladder(error) => error.source(),
            _ => None,
        }
    }
}

impl From<warpfold_cuda::Error> for Failed {
    fn from(error: warpfold_cuda::Error) -> Self {
        Failed::Device(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Ladder(error)
    }
}

impl Failed {
    /// What the user can do.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Failed::NoCompiler { .. } => Some(format!(
                "install the CUDA toolkit, or pip install nvidia-cuda-nvrtc-cu12, or set {} to the library; --fetch-nvrtc brings the wheel from the package registry",
                nvrtc::VARIABLE
            )),
            Failed::Fetch { .. } => Some(
                "it needs python3 with pip, and the package registry; XDG_CACHE_HOME names the folder"
                    .into(),
            ),
            Failed::Source { .. } => {
                Some("it must compile by itself: the run-time compiler has no host headers".into())
            }
            Failed::Kernel { .. } => Some(CONTRACT.into()),
            Failed::Device(error) => error.hint().map(Into::into),
            Failed::Ladder(error) => error.hint(),
        }
    }
}

/// What a kernel must look like.
pub const CONTRACT: &str = "extern \"C\" __global__ void sum(const int *in, int *partials, unsigned n): the host starts a block for each tile, and adds the partials";

/// A kernel, and how the host launches it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The PTX.
    pub ptx: String,
    /// The kernel's name.
    pub kernel: String,
    /// The type of the elements and the partials.
    pub dtype: DType,
    /// Elements of a tile for each thread.
    pub per_thread: u32,
    /// Bytes of dynamic shared memory for each thread.
    pub shared_per_thread: u32,
    /// Threads of a block: each of these is tried.
    pub blocks: Vec<u32>,
    /// Whether the kernel leaves the whole sum in its first partial, and the host adds nothing.
    pub alone: bool,
    /// Bytes of the third parameter.
    n_bytes: u32,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// How many cases were run; those up to the failure.
    pub cases: usize,
    /// The smallest case that fails.
    pub failure: Option<Failure>,
    /// Its place on the ladder, if it is right.
    pub placed: Option<Placed>,
}

/// Runs that are timed, and those before them.
const RUNS: usize = 20;
const WARM_UP: usize = 5;

/// Cases that are run after the first one that is right by its answer and faulty.
const MOST_AFTER_A_FAULT: usize = 120;

/// Threads of blocks that are tried if the user names none.
pub const BLOCKS: [u32; 5] = [32, 64, 128, 256, 1024];

impl Attempt {
    /// A kernel of a module: the one of this name, or the only one.
    ///
    /// # Errors
    /// PTX that cannot be read, no such kernel, or one with other parameters.
    pub fn new(ptx: String, kernel: Option<&str>, dtype: DType) -> Result<Attempt, Failed> {
        let refuse = |why: String| Failed::Kernel { why };
        let found = info(&ptx).map_err(|e| refuse(e.to_string()))?;
        let kernels: Vec<&FunctionInfo> = found.functions.iter().filter(|f| f.kernel).collect();
        let names = || kernels.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ");
        let function = match (kernel, &kernels[..]) {
            (_, []) => return Err(refuse("there is no kernel in it".into())),
            (Some(name), all) => {
                all.iter().copied().find(|f| f.name == name).ok_or_else(|| {
                    refuse(format!("there is no kernel {name:?}, only: {}", names()))
                })?
            }
            (None, [one]) => one,
            (None, _) => return Err(refuse(format!("it has several kernels: {}", names()))),
        };
        let sizes: Vec<u64> = function.parameters.iter().map(|p| p.bytes()).collect();
        let n_bytes = match sizes[..] {
            [8, 8, n @ (4 | 8)] => n as u32,
            _ => {
                return Err(refuse(format!(
                    "`{}` has parameters of {sizes:?} bytes, and not two pointers and a number",
                    function.name
                )));
            }
        };
        let kernel = function.name.clone();
        Ok(Attempt {
            ptx,
            kernel,
            dtype,
            per_thread: 1,
            shared_per_thread: 0,
            blocks: BLOCKS.into(),
            alone: false,
            n_bytes,
        })
    }

    /// The same with tiles of so many elements for each thread.
    #[must_use]
    pub fn of_columns(self, per_thread: u32) -> Attempt {
        Attempt { per_thread: per_thread.max(1), ..self }
    }

    /// Runs it over all cases. A kernel that is right is counted, and compared with the rungs.
    ///
    /// # Errors
    /// The interpreter cannot load it.
    pub fn run(&self) -> Result<Tried, Failed> {
        let (cases, failure) = self.check_all()?;
        let placed = if failure.is_none() { Some(self.place()?) } else { None };
        Ok(Tried { cases, failure, placed })
    }

    /// Runs it over all cases, the smallest first, and tells how many were run and the smallest failure. A wrong answer says more than a
    /// fault beside a right one, and much more than an array of no elements: it is looked for among the next few cases.
    pub(crate) fn check_all(&self) -> Result<(usize, Option<Failure>), Failed> {
        let all = cases::all(self);
        let mut first: Option<Failure> = None;
        let mut more = MOST_AFTER_A_FAULT;
        for (i, case) in all.iter().enumerate() {
            // One empty array tells enough: what does not end takes long.
            if case.n == 0 && first.is_some() {
                continue;
            }
            let failure = self.check(case)?;
            if failure.as_ref().is_some_and(|failure| failure.is_wrong() && case.n > 0) {
                return Ok((i + 1, failure));
            }
            if first.as_ref().is_none_or(|first| first.case.n == 0) {
                first = failure.or(first);
            }
            more -= usize::from(first.is_some());
            if more == 0 {
                return Ok((i + 1, first));
            }
        }
        Ok((all.len(), first))
    }

    /// What it counts over the elements and the threads that rungs are counted with.
    pub(crate) fn counts(&self) -> Result<Counts, Failed> {
        place::counted(self)
    }

    /// Its place on the ladder, if it is right.
    ///
    /// # Errors
    /// The interpreter cannot load it, or a rung fails.
    pub fn place(&self) -> Result<Placed, Failed> {
        place::place(self)
    }

    /// Seconds of a launch over so many elements, the median of some; nothing on a device without a clock. The elements are zeros.
    ///
    /// # Errors
    /// The device refuses the kernel, or has too little memory.
    pub fn time(&self, device: &dyn Device, n: u64, block: u32) -> Result<Option<f64>, Failed> {
        let size = self.dtype.size() as u64;
        let tile = u64::from(block) * u64::from(self.per_thread);
        let refuse = || Failed::Kernel { why: format!("{n} elements are too many blocks") };
        let grid = u32::try_from(n.div_ceil(tile).max(1)).map_err(|_| refuse())?;
        let kernel = device.kernel(device.load(&self.kernel, &self.ptx)?, &self.kernel)?;
        let buffers = Buffers::new(device);
        let array = buffers.allocate(size * n.max(1))?;
        buffers.clear(array, size * n.max(1))?;
        let partials = buffers.allocate(size * u64::from(grid))?;
        let arguments = [array.into(), partials.into(), self.count(n)];
        let launch = Launch::linear(grid, block).shared(block * self.shared_per_thread);
        let mut times = Vec::new();
        for run in 0..WARM_UP + RUNS {
            let time = device.time(STREAM, &mut || {
                // SAFETY: the kernel has these parameters, and was right over many sizes when the interpreter checked every access.
                unsafe { device.launch(STREAM, kernel, &launch, &arguments) }
            })?;
            let Some(time) = time else { return Ok(None) };
            times.extend((run >= WARM_UP).then_some(time.as_secs_f64()));
        }
        Ok(Some(median(&mut times)))
    }

    /// The third argument.
    fn count(&self, n: u64) -> Argument {
        if self.n_bytes == 4 { Argument::from(n as u32) } else { Argument::from(n) }
    }

    fn check(&self, case: &Case) -> Result<Option<Failure>, Failed> {
        let options = Options {
            // A barrier in a branch, or behind a return, is a fault even where this device forgives it.
            checks: Checks { strict: true, ..Checks::ALL },
            schedule: case.schedule,
            instructions: cases::MOST_INSTRUCTIONS,
            ..Options::default()
        };
        Runs::new(self, options)?.check(case).map_err(Into::into)
    }
}

/// The name of a schedule, as messages have it.
fn schedule_name(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Lockstep => "lanes in step",
        Schedule::Random { .. } => "lanes and warps in a random order",
        Schedule::Adversarial { .. } => "lanes and warps as far ahead of each other as they may be",
    }
}
