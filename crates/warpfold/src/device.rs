//! Which device reduces.

use core::fmt;
use core::str::FromStr;
use warpfold_core::{Error, Result};

/// Where a reduction runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// Wherever it is done first.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A CUDA device: this one, or the first.
    Cuda(Option<u32>),
    /// The CUDA kernels, interpreted on the CPU.
    Sim,
}

impl Device {
    /// Checks that this build can use the device.
    ///
    /// # Errors
    /// [`Error::Device`] for `cuda` and `sim`: reductions run on neither. An
    /// explicit choice never silently becomes the CPU.
    pub fn check(self) -> Result<()> {
        let what = match self {
            Device::Auto | Device::Cpu => return Ok(()),
            Device::Cuda(_) => "there is no CUDA backend in this build yet",
            Device::Sim => {
                "there is no reduction on the interpreter of CUDA kernels in this build yet"
            }
        };
        Err(Error::Device {
            what: what.into(),
            hint: "use --device cpu, or leave the choice to --device auto".into(),
        })
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "auto" => Device::Auto,
            "cpu" => Device::Cpu,
            "cuda" => Device::Cuda(None),
            "sim" => Device::Sim,
            _ => match text.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(index)) => Device::Cuda(Some(index)),
                _ => return Err("expected auto, cpu, cuda, cuda:N or sim".into()),
            },
        })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(None) => f.write_str("cuda"),
            Device::Cuda(Some(index)) => write!(f, "cuda:{index}"),
            Device::Sim => f.write_str("sim"),
        }
    }
}
