//! Errors of the ladder, other than wrong answers.

use crate::experiments::{Experiment, Needs};
use crate::rung::Rung;
use warpfold_core::{DType, Op};

/// A question that a rung cannot answer, or a device that fails.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// No rung has this name.
    NoRung {
        /// The value requested.
        id: String,
    },
    /// The rung's kernel cannot run in such blocks.
    Block {
        /// The rung.
        rung: &'static Rung,
        /// The value requested.
        block: u32,
    },
    /// The rung has no kernel for these elements.
    DType {
        /// The rung.
        rung: &'static Rung,
        /// The value requested.
        dtype: DType,
    },
    /// The rung does not compute this.
    Op {
        /// The rung.
        rung: &'static Rung,
        /// The value requested.
        op: Op,
        /// The type of the elements.
        dtype: DType,
    },
    /// More elements than fit the rung's blocks, or this machine's memory.
    Elements {
        /// The rung.
        rung: &'static Rung,
        /// The value requested.
        n: u64,
        /// Threads of a block.
        block: u32,
    },
    /// The device is older than the rung's kernel.
    Capability {
        /// The rung.
        rung: &'static Rung,
        /// The capability that it needs, major and minor.
        needs: (u32, u32),
        /// The capability of the device.
        has: (u32, u32),
    },
    /// This machine lacks something that the rung needs besides a device.
    Missing {
        /// The rung.
        rung: &'static Rung,
        /// What is missing.
        why: String,
        /// What may help.
        hint: String,
    },
    /// The archive has no such module: a defect of the ladder.
    NoModule {
        /// The rung.
        rung: &'static Rung,
        /// The type of the elements.
        dtype: DType,
    },
    /// No experiment has this name.
    NoExperiment {
        /// The value requested.
        id: String,
    },
    /// The experiment measures times, and the device has no clock.
    NoClock {
        /// The experiment.
        id: &'static str,
    },
    /// The rung's grid follows from the number of elements.
    FixedGrid {
        /// The rung.
        rung: &'static Rung,
    },
    /// The device is older than the experiment's kernels.
    ExperimentCapability {
        /// The experiment.
        id: &'static str,
        /// The capability that it needs, major and minor.
        needs: (u32, u32),
        /// The capability of the device.
        has: (u32, u32),
    },
    /// The archive has no such module: a defect of the ladder.
    NoExperimentModule {
        /// The experiment.
        id: &'static str,
    },
    /// The device.
    Device {
        /// The rung that ran.
        id: &'static str,
        /// The error of the device.
        source: warpfold_cuda::Error,
    },
    /// There is no exact answer.
    Exact(warpfold_core::Error),
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::NoRung { id } => write!(f, "there is no rung {id:?}"),
            Error::Block { rung, block } => {
                write!(f, "{} cannot run blocks of {block} threads", rung.id)
            }
            Error::DType { rung, dtype } => write!(f, "{} has no kernel for {dtype}", rung.id),
            Error::Op { rung, op, dtype } => {
                write!(f, "{} does not compute {op} of {dtype}", rung.id)
            }
            Error::Elements { rung, n, block } => {
                write!(f, "{}: {n} elements are too many for blocks of {block} threads", rung.id)
            }
            Error::Capability { rung, needs, has } => write!(
                f,
                "{} needs a device of compute capability {}.{}, and this one has {}.{}",
                rung.id, needs.0, needs.1, has.0, has.1
            ),
            Error::Missing { rung, why, .. } => {
                write!(f, "{} needs what this machine does not have: {why}", rung.id)
            }
            Error::NoModule { rung, dtype } => {
                write!(f, "the kernels of {} for {dtype} are not in the archive", rung.id)
            }
            Error::NoExperiment { id } => write!(f, "there is no experiment {id:?}"),
            Error::NoClock { id } => {
                write!(f, "{id} measures times, and the interpreter has no clock")
            }
            Error::FixedGrid { rung } => write!(
                f,
                "the grid of {} follows from the number of elements: there is nothing to sweep",
                rung.id
            ),
            Error::ExperimentCapability { id, needs, has } => write!(
                f,
                "{id} needs a device of compute capability {}.{}, and this one has {}.{}",
                needs.0, needs.1, has.0, has.1
            ),
            Error::NoExperimentModule { id } => {
                write!(f, "the kernels of {id} are not in the archive")
            }
            Error::Device { id, source } => write!(f, "{id}: {source}"),
            Error::Exact(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::Device { source, .. } => Some(source),
            Error::Exact(error) => error.source(),
            _ => None,
        }
    }
}

impl From<warpfold_core::Error> for Error {
    fn from(error: warpfold_core::Error) -> Self {
        Error::Exact(error)
    }
}

impl Error {
    /// Whether the machine is the reason, so that the rung can be skipped.
    #[must_use]
    pub const fn is_skip(&self) -> bool {
        matches!(self, Error::Capability { .. } | Error::Missing { .. })
    }

    /// What the user can do.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::NoRung { .. } => Some("warpfold ladder list names them".into()),
            Error::Block { rung, .. } => Some(format!("it takes {}", rung.blocks)),
            Error::DType { rung, .. } => Some(format!("it takes {}", names(rung.dtypes))),
            Error::Op { rung, dtype, .. } => {
                let ops = rung.ops.iter().filter(|op| op.supports(*dtype));
                let ops: Vec<_> = ops.map(|op| op.name()).collect();
                Some(format!("it computes {}", ops.join(", ")))
            }
            Error::Elements { .. } => Some("larger blocks or fewer elements".into()),
            Error::Capability { .. } => {
                Some("--device sim simulates a device of compute capability 9.0".into())
            }
            Error::NoExperiment { .. } => Some("warpfold ladder experiment names them".into()),
            Error::NoClock { .. } => Some(format!(
                "a CUDA device has one; on the interpreter there are {}",
                names_of(crate::experiments::EXPERIMENTS, |e| e.needs != Needs::Clock)
            )),
            Error::FixedGrid { .. } => Some(format!(
                "these can be swept: {}",
                names_of(crate::ALL, |rung| rung.plan.has_free_grid())
            )),
            Error::ExperimentCapability { .. } => {
                Some("--device sim simulates a device of compute capability 9.0".into())
            }
            Error::Device { source, .. } => source.hint().map(Into::into),
            Error::Exact(error) => error.hint(),
            Error::Missing { hint, .. } => Some(hint.clone()),
            Error::NoModule { .. } | Error::NoExperimentModule { .. } => None,
        }
    }
}

/// The names of the rungs that satisfy a condition.
fn names_of<T: Named>(all: &[T], is: impl Fn(&T) -> bool) -> String {
    all.iter().filter(|x| is(x)).map(Named::name).collect::<Vec<_>>().join(", ")
}

trait Named {
    fn name(&self) -> &'static str;
}

impl Named for Rung {
    fn name(&self) -> &'static str {
        self.id
    }
}

impl Named for Experiment {
    fn name(&self) -> &'static str {
        self.id
    }
}

fn names(dtypes: &[DType]) -> String {
    dtypes.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ")
}

/// A result with [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;
