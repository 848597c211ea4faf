//! Which device reduces.

use core::fmt;
use core::str::FromStr;

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
    /// The CUDA kernels, interpreted on the CPU and checked for races and other
    /// faults: slow.
    Sim,
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
