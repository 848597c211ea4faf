//! Which instruction set runs, chosen once.

use std::sync::OnceLock;
use warpfold_core::Error;

/// An instruction set that the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// What every machine of the architecture has: SSE2 on x86-64, NEON on
    /// AArch64.
    Baseline,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// The same with IFMA, integer multiply-add of 52 bits.
    Avx512Ifma,
}

/// The environment variable that forces an instruction set.
pub const FORCE: &str = "WARPFOLD_CPU";

impl Isa {
    /// Every instruction set, weakest first.
    pub const ALL: [Isa; 4] = [Isa::Baseline, Isa::Avx2, Isa::Avx512, Isa::Avx512Ifma];

    /// The name understood by `WARPFOLD_CPU`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Baseline if cfg!(target_arch = "aarch64") => "neon",
            Isa::Baseline if cfg!(target_arch = "x86_64") => "sse2",
            Isa::Baseline => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Avx512Ifma => "avx512ifma",
        }
    }

    /// Whether this machine has it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Isa::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Ifma => Isa::Avx512.is_available() && is_x86_feature_detected!("avx512ifma"),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 | Isa::Avx512Ifma => false,
        }
    }

    /// Whether [`madd52`](crate::simd::madd52) kernels run.
    #[inline]
    pub(crate) fn has_madd52(self) -> bool {
        self == Isa::Avx512Ifma
    }

    /// The best instruction set this machine has.
    #[must_use]
    pub fn best() -> Isa {
        let mut all = Isa::ALL.into_iter().rev();
        all.find(|isa| isa.is_available()).unwrap_or(Isa::Baseline)
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
        let names: Vec<_> =
            Isa::ALL.into_iter().filter(|i| i.is_available()).map(Isa::name).collect();
        let hint = format!("this machine has {}; unset {FORCE} for the best", names.join(", "));
        match Isa::ALL.into_iter().find(|i| i.name() == forced) {
            Some(isa) if isa.is_available() => Ok(isa),
            Some(isa) => Err(Error::Device {
                what: format!("{FORCE}={forced}: this machine has no {}", isa.name()),
                hint,
            }),
            None => Err(Error::Device {
                what: format!("{FORCE}={forced} is not an instruction set"),
                hint,
            }),
        }
    }
}
