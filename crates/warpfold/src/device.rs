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
    /// All CUDA devices of the host: each is sent the next piece of a file or of an array in the
    /// host's memory when it is done with the one before. Questions that are not cut into
    /// pieces, such as those over some axes of an array, go to the first. Needs the feature `cuda`.
    CudaAll,
    /// The CUDA kernels, interpreted on the CPU and checked for races and other
    /// faults: slow. Needs the feature `sim`.
    Sim,
    /// As many interpreters, which share the work as the devices of [`CudaAll`](Self::CudaAll) do.
    Sims(u32),
}

impl Device {
    /// Bytes of each array that are best absorbed at once.
    pub(crate) fn best_run(self) -> usize {
        match self {
            Device::Auto | Device::Cpu => CPU_RUN,
            Device::Cuda(_) | Device::CudaAll => CUDA_RUN,
            Device::Sim | Device::Sims(_) => SIM_RUN,
        }
    }

    /// The most threads that are useful for sending data to the device, or to as many.
    pub(crate) fn most_senders(self, devices: usize) -> usize {
        match self {
            Device::Cuda(_) | Device::CudaAll => MOST_SENDERS * devices,
            Device::Auto | Device::Cpu | Device::Sim | Device::Sims(_) => usize::MAX,
        }
    }
}

/// `auto`, `cpu`, `cuda`, `cuda:1`, `cuda:all`, `sim` or `sim:2`.
///
/// ```
/// use warpfold::Device;
///
/// assert_eq!("cuda:1".parse(), Ok(Device::Cuda(Some(1))));
/// assert_eq!("cuda:all".parse(), Ok(Device::CudaAll));
/// ```
impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "auto" => Device::Auto,
            "cpu" => Device::Cpu,
            "cuda" => Device::Cuda(None),
            "cuda:all" => Device::CudaAll,
            "sim" => Device::Sim,
            _ => {
                let number = |prefix| text.strip_prefix(prefix)?.parse().ok();
                let named = number("cuda:").map(|index| Device::Cuda(Some(index)));
                let sims = number("sim:").filter(|&sims| sims > 0).map(Device::Sims);
                return named.or(sims).ok_or_else(|| Error::UnknownName {
                    what: "a device (auto, cpu, cuda, cuda:N, cuda:all, sim or sim:N)",
                    name: text.into(),
                    known: vec!["auto", "cpu", "cuda", "cuda:N", "cuda:all", "sim", "sim:N"],
                });
            }
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
            Device::CudaAll => f.write_str("cuda:all"),
            Device::Sim => f.write_str("sim"),
            Device::Sims(sims) => write!(f, "sim:{sims}"),
        }
    }
}
