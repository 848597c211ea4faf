//! The devices of a reduction.

use core::fmt;
use core::str::FromStr;
use warpfold_core::{Error, Result};

/// Bytes that are worth a CPU's turn, a copy to a device, and the interpreter's
/// time. The CPU's stay in its cache.
const CPU_RUN: usize = 512 << 10;
const CUDA_RUN: usize = 4 << 20;
const SIM_RUN: usize = 256 << 10;

/// The number of threads that send data to a CUDA device: enough for the bus.
pub(crate) const MOST_SENDERS: usize = 12;

/// Where a reduction runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Device {
    /// The device that is expected to be fastest.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A CUDA device: the one with this number, or the first. Needs the feature `cuda`.
    Cuda(Option<u32>),
    /// The CUDA kernels, interpreted on the CPU and checked for races and other
    /// faults: slow. Needs the feature `sim`.
    Sim,
}

impl Device {
    /// Bytes of each array that are best absorbed at once.
    pub(crate) fn best_run(self) -> usize {
        match self {
            Device::Auto | Device::Cpu => CPU_RUN,
            Device::Cuda(_) => CUDA_RUN,
            Device::Sim => SIM_RUN,
        }
    }

    /// The most threads that are useful for sending data to the device.
    pub(crate) fn most_senders(self) -> usize {
        match self {
            Device::Cuda(_) => MOST_SENDERS,
            Device::Auto | Device::Cpu | Device::Sim => usize::MAX,
        }
    }
}

/// `auto`, `cpu`, `cuda`, `cuda:1` or `sim`.
///
/// ```
/// use warpfold::Device;
///
/// assert_eq!("cuda:1".parse(), Ok(Device::Cuda(Some(1))));
/// ```
impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "auto" => Device::Auto,
            "cpu" => Device::Cpu,
            "cuda" => Device::Cuda(None),
            "sim" => Device::Sim,
            _ => match text.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(index)) => Device::Cuda(Some(index)),
                _ => {
                    return Err(Error::UnknownName {
                        what: "a device (auto, cpu, cuda, cuda:N or sim)",
                        name: text.into(),
                        known: vec!["auto", "cpu", "cuda", "cuda:N", "sim"],
                    });
                }
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
