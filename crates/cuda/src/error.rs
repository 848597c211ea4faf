//! Errors of devices.

use warpfold_core::DType;
use warpfold_core::op::Kind;

/// An error of a device, real or simulated, with what may help.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No device of that kind can be used on this machine.
    Unavailable {
        /// The reason.
        why: String,
        /// What may help.
        hint: String,
    },
    /// A library that a module must be linked with is missing, or does not match the
    /// driver.
    Library {
        /// The reason.
        why: String,
        /// What may help.
        hint: String,
    },
    /// A call of the driver failed.
    Driver {
        /// The step that failed.
        doing: String,
        /// The driver's name of the error: `CUDA_ERROR_OUT_OF_MEMORY`.
        name: String,
        /// The driver's message.
        text: String,
    },
    /// The interpreter refused.
    Simulated {
        /// The step that failed.
        doing: String,
        /// The interpreter's message.
        why: String,
    },
    /// Pinned host memory cannot be allocated.
    HostMemory {
        /// The number of bytes requested.
        bytes: usize,
    },
    /// A handle that this device did not create, or has released.
    ForeignHandle {
        /// The kind of handle.
        what: &'static str,
    },
    /// A copy or a fill beyond the bounds of its memory.
    Bounds {
        /// The first byte, counted from the beginning of the memory.
        at: u64,
        /// The number of bytes.
        bytes: u64,
        /// The size of the memory.
        len: u64,
    },
    /// There is no kernel for the question.
    NoKernel {
        /// The kind of the state.
        kind: Kind,
        /// The type of the elements.
        dtype: DType,
    },
    /// An array that no kernel can read.
    Array {
        /// Where it begins.
        address: u64,
        /// How many elements it has.
        len: u64,
        /// Their type.
        dtype: DType,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An impossible view of a device's memory.
    View {
        /// Where its element of index 0 is.
        address: u64,
        /// Its shape.
        shape: Vec<usize>,
        /// Its strides.
        strides: Vec<isize>,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A question that has no answer on any device.
    Core(warpfold_core::Error),
    /// A second array where a state needs one, or one where it needs two.
    Arrays {
        /// The kind of the state.
        kind: Kind,
        /// How many arrays were given: 1 or 2.
        given: usize,
    },
    /// Runs that are not pieces of one array.
    Runs {
        /// The kind of the state.
        kind: Kind,
        /// The type of the elements.
        dtype: DType,
        /// Why their states do not merge.
        why: String,
    },
    /// A kernel wrote a damaged state: a defect of the kernel or of the device.
    State {
        /// The kind of the state.
        kind: Kind,
        /// The type of the elements.
        dtype: DType,
        /// What is wrong with it.
        why: String,
    },
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::Unavailable { why, .. } => write!(f, "no CUDA device: {why}"),
            Error::Library { why, .. } => why.fmt(f),
            Error::Driver { doing, name, text } => write!(f, "CUDA: {doing}: {name} ({text})"),
            Error::Simulated { doing, why } => write!(f, "simulated device: {doing}: {why}"),
            Error::HostMemory { bytes } => {
                write!(f, "cannot allocate {bytes} bytes of pinned host memory")
            }
            Error::ForeignHandle { what } => write!(f, "{what} does not belong to this device"),
            Error::Bounds { at, bytes, len } => {
                write!(f, "{bytes} bytes from byte {at} on are not within {len} bytes of memory")
            }
            Error::NoKernel { kind, dtype } => write!(f, "no CUDA kernel for {kind:?} of {dtype}"),
            Error::Array { address, len, dtype, why } => {
                write!(f, "{len} elements of {dtype} at {address:#x}: {why}")
            }
            Error::View { address, shape, strides, why } => write!(
                f,
                "a view of shape {shape:?} and byte strides {strides:?} at {address:#x}: {why}"
            ),
            Error::Core(error) => error.fmt(f),
            Error::Arrays { kind, given } => write!(
                f,
                "{kind:?} needs {} and got {given}",
                if *given == 1 { "two arrays" } else { "one array" }
            ),
            Error::Runs { kind, dtype, why } => write!(f, "{kind:?} of {dtype}: {why}"),
            Error::State { kind, dtype, why } => {
                write!(f, "the device left a damaged state of {kind:?} of {dtype}: {why}")
            }
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::Core(error) => error.source(),
            _ => None,
        }
    }
}

impl From<warpfold_core::Error> for Error {
    fn from(error: warpfold_core::Error) -> Self {
        Error::Core(error)
    }
}

impl Error {
    /// What the user can do.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Unavailable { hint, .. } | Error::Library { hint, .. } => Some(hint),
            Error::Driver { name, .. } => hint_for(name),
            Error::NoKernel { .. } => Some("--device cpu has every operation"),
            Error::Arrays { given: 1, .. } => Some("the second array's address is `Input::others`"),
            Error::Arrays { .. } => Some("only dot products have a second array"),
            Error::Runs { .. } => Some("each element is absorbed once, at its own position"),
            Error::State { .. } => Some("please report it, with the device's name and driver"),
            Error::Simulated { .. }
            | Error::ForeignHandle { .. }
            | Error::Bounds { .. }
            | Error::Array { .. }
            | Error::View { .. }
            | Error::Core(_) => None,
            Error::HostMemory { .. } => Some("fewer threads (-j) take less of it"),
        }
    }

    /// Whether there was too little memory: smaller pieces may do.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Error::Driver { name, .. } => name == "CUDA_ERROR_OUT_OF_MEMORY",
            Error::Simulated { why, .. } => why.contains("out of memory"),
            Error::HostMemory { .. } => true,
            _ => false,
        }
    }
}

/// What helps against an error of the driver.
fn hint_for(name: &str) -> Option<&'static str> {
    Some(match name {
        "CUDA_ERROR_OUT_OF_MEMORY" => {
            "other processes may hold the device's memory: see nvidia-smi, or use --device cpu"
        }
        "CUDA_ERROR_NO_DEVICE" => "CUDA_VISIBLE_DEVICES may hide it: see nvidia-smi",
        "CUDA_ERROR_INVALID_DEVICE" => "devices are numbered from 0: see warpfold doctor",
        "CUDA_ERROR_DEVICE_UNAVAILABLE" => "another process has it for itself: see nvidia-smi",
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" | "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" => {
            "the driver is older than the kernels: install version 525 or newer"
        }
        "CUDA_ERROR_NO_BINARY_FOR_GPU" | "CUDA_ERROR_INVALID_PTX" => {
            "the kernels need a device of compute capability 7.5 or newer"
        }
        "CUDA_ERROR_ECC_UNCORRECTABLE"
        | "CUDA_ERROR_ILLEGAL_ADDRESS"
        | "CUDA_ERROR_LAUNCH_FAILED"
        | "CUDA_ERROR_CONTEXT_IS_DESTROYED" => "the device is lost to this process: start it again",
        _ => return None,
    })
}

/// A result with [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_quoted_and_a_hint_added() {
        let error = Error::Driver {
            doing: "allocating 4 bytes".into(),
            name: "CUDA_ERROR_OUT_OF_MEMORY".into(),
            text: "out of memory".into(),
        };
        let text = "CUDA: allocating 4 bytes: CUDA_ERROR_OUT_OF_MEMORY (out of memory)";
        assert_eq!(error.to_string(), text);
        assert!(error.hint().unwrap().contains("nvidia-smi") && error.is_out_of_memory());
    }
}
