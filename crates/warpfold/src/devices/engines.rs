//! Devices and their engines.

#[cfg(not(all(feature = "cuda", feature = "sim")))]
use super::compiled_out;
#[cfg(feature = "cuda")]
use super::driver;
use crate::device::Device;
use std::sync::Arc;
#[cfg(feature = "sim")]
use std::sync::OnceLock;
use warpfold_core::op::Kind;
use warpfold_core::{DType, Error, Result};
use warpfold_cuda::Engine;
#[cfg(feature = "sim")]
use warpfold_cuda::Sim;

/// Turns an error of the driver, the interpreter or the engine into one of a reduction.
pub(crate) fn failure(error: warpfold_cuda::Error) -> Error {
    if let warpfold_cuda::Error::Core(error) = error {
        return error;
    }
    let cpu = "--device cpu gives the same answers";
    let hint = match error.hint() {
        Some(hint) if hint.contains("--device cpu") => hint.into(),
        Some(hint) => format!("{hint}; {cpu}"),
        None => cpu.into(),
    };
    Error::Device { what: error.to_string(), hint }
}

/// The engine on the interpreter, with every check on.
#[cfg(feature = "sim")]
fn sim() -> Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    Arc::clone(ENGINE.get_or_init(|| Arc::new(Engine::new(Arc::new(Sim::checking())))))
}

/// An open device.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) device: Device,
    pub(crate) engine: Arc<Engine>,
}

impl Opened {
    /// Whether there is a kernel that makes such states.
    pub(crate) fn supports(&self, kind: Kind, dtype: DType) -> bool {
        Engine::supports(kind, dtype)
    }
}

/// Opens the device that was named; `None` for the CPU.
///
/// # Errors
/// There is no such device, it cannot be used, or it is not compiled in.
pub(crate) fn of(device: Device) -> Result<Option<Opened>> {
    let engine = match device {
        Device::Auto | Device::Cpu => return Ok(None),
        #[cfg(feature = "cuda")]
        Device::Cuda(ordinal) => driver::engine(ordinal.unwrap_or(0))?,
        #[cfg(not(feature = "cuda"))]
        Device::Cuda(_) => return Err(compiled_out(device)),
        #[cfg(feature = "sim")]
        Device::Sim => sim(),
        #[cfg(not(feature = "sim"))]
        Device::Sim => return Err(compiled_out(device)),
    };
    Ok(Some(Opened { device, engine }))
}
