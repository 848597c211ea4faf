//! Devices and their engines.

#[cfg(not(all(feature = "cuda", feature = "sim")))]
use super::compiled_out;
#[cfg(feature = "cuda")]
use super::driver;
use crate::device::Device;
use core::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "sim")]
use std::sync::OnceLock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    let opened = Opened { device, engine };
    if EXPLAIN.load(Ordering::Relaxed) {
        explaining(&opened);
    }
    Ok(Some(opened))
}

/// Whether engines are asked how they reduce, and those that were opened since.
static EXPLAIN: AtomicBool = AtomicBool::new(false);
static EXPLAINING: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

fn watched() -> MutexGuard<'static, Vec<Opened>> {
    EXPLAINING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks an engine to remember how it reduces.
fn explaining(opened: &Opened) {
    let mut all = watched();
    if !all.iter().any(|known| Arc::ptr_eq(&known.engine, &opened.engine)) {
        opened.engine.remember_explanations();
        all.push(opened.clone());
    }
}

/// From now on, engines that are opened remember how they reduce.
pub(crate) fn remember_explanations() {
    EXPLAIN.store(true, Ordering::Relaxed);
}

/// How they have reduced since, a line for each walk and kernel.
pub(crate) fn take_explanations() -> Vec<String> {
    let lines = |opened: &Opened| {
        let Opened { device, engine } = opened;
        engine.take_explanations().into_iter().map(|e| format!("{device}: {e}")).collect()
    };
    watched().iter().flat_map(|opened| -> Vec<String> { lines(opened) }).collect()
}
