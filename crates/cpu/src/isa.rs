//! The choice of the instruction set, made once.

use core::fmt;
use std::sync::OnceLock;
use warpfold_core::Error;

/// An instruction set that the kernels are compiled for, and that this machine has. A
/// value for any other cannot be made.
///
/// ```
/// use warpfold_cpu::isa::Isa;
///
/// assert_eq!(Isa::available().last(), Some(Isa::best()));
/// assert!(Isa::named("abacus").is_err());
/// ```
///
/// ```compile_fail
/// let isa = warpfold_cpu::isa::Isa::Avx512;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Isa(Set);

/// The instruction sets, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Set {
    /// What every machine of the architecture has: SSE2 on x86-64, NEON on
    /// AArch64.
    Baseline,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// The environment variable that forces an instruction set.
pub const FORCE: &str = "WARPFOLD_CPU";

impl Set {
    const ALL: [Set; 3] = [Set::Baseline, Set::Avx2, Set::Avx512];

    const fn name(self) -> &'static str {
        match self {
            Set::Baseline if cfg!(target_arch = "aarch64") => "neon",
            Set::Baseline if cfg!(target_arch = "x86_64") => "sse2",
            Set::Baseline => "portable",
            Set::Avx2 => "avx2",
            Set::Avx512 => "avx512",
        }
    }

    /// Whether this machine has it, and this build its kernels.
    #[cfg(x86_vectors)]
    fn is_here(self) -> bool {
        match self {
            Set::Baseline => true,
            Set::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            Set::Avx512 => {
                Set::Avx2.is_here()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }

    /// Whether this machine has it. Other machines, Miri and builds without optimisation run the
    /// baseline's bodies.
    #[cfg(not(x86_vectors))]
    fn is_here(self) -> bool {
        self == Set::Baseline
    }
}

impl Isa {
    /// What every machine of the architecture has: SSE2 on x86-64, NEON on
    /// AArch64.
    pub const BASELINE: Isa = Isa(Set::Baseline);

    /// The instruction sets that this machine has, weakest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        Set::ALL.into_iter().filter(|set| set.is_here()).map(Isa)
    }

    /// The best instruction set that this machine has.
    #[must_use]
    pub fn best() -> Isa {
        Isa::available().last().unwrap_or(Isa::BASELINE)
    }

    /// The instruction set with this name.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no such name or if this machine lacks the
    /// instructions.
    pub fn named(name: &str) -> Result<Isa, Error> {
        let names: Vec<_> = Isa::available().map(Isa::name).collect();
        let hint = format!("this machine has {}", names.join(", "));
        match Set::ALL.into_iter().find(|set| set.name() == name) {
            Some(set) if set.is_here() => Ok(Isa(set)),
            Some(_) if cfg!(all(target_arch = "x86_64", not(x86_vectors))) => Err(Error::Device {
                what: format!("a build without optimisation has no kernels for {name}"),
                hint: "compile warpfold-cpu with opt-level = 1 or more".into(),
            }),
            Some(_) => Err(Error::Device { what: format!("this machine has no {name}"), hint }),
            None => Err(Error::Device { what: format!("{name} is not an instruction set"), hint }),
        }
    }

    /// The name that [`named`](Self::named) and `WARPFOLD_CPU` understand.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name()
    }

    /// Which it is: this machine has it.
    #[inline]
    pub(crate) fn set(self) -> Set {
        self.0
    }

    /// Whether accumulators for many outputs are compiled for it. On x86-64 the baseline is that of
    /// machines from before 2013, and of builds without optimisation: they keep states.
    #[inline]
    pub(crate) fn has_accumulators(self) -> bool {
        self.0 > Set::Baseline || cfg!(any(not(target_arch = "x86_64"), miri))
    }

    /// Whether it multiplies and adds with one rounding.
    #[inline]
    pub(crate) fn has_fma(self) -> bool {
        self.0 >= Set::Avx2 || cfg!(neon_vectors)
    }

    /// The instruction set that reductions use: the one `WARPFOLD_CPU` names,
    /// or else the best. Read once in a process.
    ///
    /// # Errors
    /// [`Error::Device`] if the variable names one that does not exist or that
    /// this machine lacks.
    pub fn active() -> Result<Isa, Error> {
        static ACTIVE: OnceLock<Result<Isa, Error>> = OnceLock::new();
        ACTIVE.get_or_init(Isa::from_environment).clone()
    }

    fn from_environment() -> Result<Isa, Error> {
        let Some(forced) = std::env::var_os(FORCE).filter(|v| !v.is_empty()) else {
            return Ok(Isa::best());
        };
        let forced = forced.to_string_lossy();
        Isa::named(&forced).map_err(|error| match error {
            Error::Device { what, hint } => Error::Device {
                what: format!("{FORCE}={forced}: {what}"),
                hint: format!("{hint}; unset {FORCE} for the best"),
            },
            other => other,
        })
    }
}

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
