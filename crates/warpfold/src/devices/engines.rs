//! Devices and their engines.

#[cfg(not(all(feature = "cuda", feature = "sim")))]
use super::compiled_out;
#[cfg(feature = "cuda")]
use super::driver;
use crate::device::Device;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// The engines on the first interpreters, with every check on.
#[cfg(feature = "sim")]
fn sims(count: usize) -> Vec<Arc<Engine>> {
    static ENGINES: Mutex<Vec<Arc<Engine>>> = Mutex::new(Vec::new());
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    while engines.len() < count {
        engines.push(Arc::new(Engine::new(Arc::new(Sim::checking()))));
    }
    engines[..count].to_vec()
}

/// The engines on all devices of the driver.
#[cfg(feature = "cuda")]
fn all() -> Result<Vec<Arc<Engine>>> {
    let count = warpfold_cuda::Driver::probe().map_err(failure)?;
    // Of none the first says so.
    (0..count.max(1)).map(driver::engine).collect()
}

/// An open device, or several.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) device: Device,
    /// The first one's.
    pub(crate) engine: Arc<Engine>,
    /// Those of all.
    engines: Vec<Arc<Engine>>,
}

impl Opened {
    /// Whether there is a kernel that makes such states.
    pub(crate) fn supports(&self, kind: Kind, dtype: DType) -> bool {
        Engine::supports(kind, dtype)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.engines.len()
    }

    /// The engine whose turn it is: those who feed devices are spread over them.
    pub(super) fn next(&self) -> &Arc<Engine> {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        &self.engines[TURN.fetch_add(1, Ordering::Relaxed) % self.engines.len()]
    }
}

/// Opens the device that was named; `None` for the CPU.
///
/// # Errors
/// There is no such device, it cannot be used, or it is not compiled in.
pub(crate) fn of(device: Device) -> Result<Option<Opened>> {
    let engines = match device {
        Device::Auto | Device::Cpu => return Ok(None),
        #[cfg(feature = "cuda")]
        Device::Cuda(ordinal) => vec![driver::engine(ordinal.unwrap_or(0))?],
        #[cfg(feature = "cuda")]
        Device::CudaAll => all()?,
        #[cfg(not(feature = "cuda"))]
        Device::Cuda(_) | Device::CudaAll => return Err(compiled_out(device)),
        #[cfg(feature = "sim")]
        Device::Sim => sims(1),
        #[cfg(feature = "sim")]
        Device::Sims(count) => sims(count.max(1) as usize),
        #[cfg(not(feature = "sim"))]
        Device::Sim | Device::Sims(_) => return Err(compiled_out(device)),
    };
    let opened = Opened { device, engine: Arc::clone(&engines[0]), engines };
    if EXPLAIN.load(Ordering::Relaxed) {
        explaining(&opened);
    }
    Ok(Some(opened))
}

/// Whether engines are asked how they reduce, and those that were opened since.
static EXPLAIN: AtomicBool = AtomicBool::new(false);
static EXPLAINING: Mutex<Vec<(String, Arc<Engine>)>> = Mutex::new(Vec::new());

fn watched() -> MutexGuard<'static, Vec<(String, Arc<Engine>)>> {
    EXPLAINING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks engines to remember how they reduce.
fn explaining(opened: &Opened) {
    let mut all = watched();
    for (i, engine) in opened.engines.iter().enumerate() {
        if !all.iter().any(|(_, known)| Arc::ptr_eq(known, engine)) {
            engine.remember_explanations();
            let name = match opened.device {
                Device::CudaAll => format!("cuda:{i}"),
                Device::Sims(_) => format!("sim {}", i + 1),
                device => device.to_string(),
            };
            all.push((name, Arc::clone(engine)));
        }
    }
}

/// From now on, engines that are opened remember how they reduce.
pub(crate) fn remember_explanations() {
    EXPLAIN.store(true, Ordering::Relaxed);
}

/// How they have reduced since, a line for each walk and kernel.
pub(crate) fn take_explanations() -> Vec<String> {
    let lines = |(name, engine): &(String, Arc<Engine>)| {
        engine.take_explanations().into_iter().map(|e| format!("{name}: {e}")).collect()
    };
    watched().iter().flat_map(|known| -> Vec<String> { lines(known) }).collect()
}
