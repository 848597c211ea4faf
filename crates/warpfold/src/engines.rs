//! The open devices of the process: each is opened once.

use crate::device::Device;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use warpfold_core::{Error, Result};
use warpfold_cuda::{Driver, Engine, Sim};

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

/// The engine of a CUDA device.
///
/// # Errors
/// There is no such device, or it cannot be used.
fn cuda(ordinal: u32) -> Result<Arc<Engine>> {
    // Held while a device is opened, so that each is opened once.
    let mut opened = opened().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(engine) = opened.get(&ordinal) {
        return Ok(Arc::clone(engine));
    }
    let driver = Driver::open(ordinal).map_err(failure)?;
    let engine = Arc::new(Engine::new(Arc::new(driver)));
    opened.insert(ordinal, Arc::clone(&engine));
    Ok(engine)
}

/// Whether a CUDA device has been opened.
pub(crate) fn is_open(ordinal: u32) -> bool {
    opened().lock().unwrap_or_else(PoisonError::into_inner).contains_key(&ordinal)
}

/// The engine on the interpreter, with every check on.
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

/// Opens the device that was named; `None` for the CPU.
///
/// # Errors
/// Those of [`cuda`].
pub(crate) fn of(device: Device) -> Result<Option<Opened>> {
    let engine = match device {
        Device::Auto | Device::Cpu => return Ok(None),
        Device::Cuda(ordinal) => cuda(ordinal.unwrap_or(0))?,
        Device::Sim => sim(),
    };
    Ok(Some(Opened { device, engine }))
}

fn opened() -> &'static Mutex<HashMap<u32, Arc<Engine>>> {
    static OPENED: OnceLock<Mutex<HashMap<u32, Arc<Engine>>>> = OnceLock::new();
    OPENED.get_or_init(Mutex::default)
}
