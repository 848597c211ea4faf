//! The CUDA devices of the process: each is opened once.

use super::engines::failure;
use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use warpfold_core::Result;
use warpfold_cuda::{Driver, Engine, Stream};

/// A device, and the engine on it.
#[derive(Clone)]
struct Cuda {
    driver: Arc<Driver>,
    engine: Arc<Engine>,
}

/// The engine of a CUDA device.
///
/// # Errors
/// There is no such device, or it cannot be used.
pub(super) fn engine(ordinal: u32) -> Result<Arc<Engine>> {
    device(ordinal).map(|cuda| cuda.engine)
}

/// A stream of other code.
///
/// # Errors
/// Those of [`engine`]; the device is lost.
///
/// # Safety
/// That of [`Driver::adopt_stream`].
pub(super) unsafe fn adopt(ordinal: u32, stream: *mut c_void) -> Result<Stream> {
    let cuda = device(ordinal)?;
    // SAFETY: passed on from the caller.
    unsafe { cuda.driver.adopt_stream(stream) }.map_err(failure)
}

fn device(ordinal: u32) -> Result<Cuda> {
    // Held while a device is opened, so that each is opened once.
    let mut opened = opened().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cuda) = opened.get(&ordinal) {
        return Ok(cuda.clone());
    }
    let driver = Arc::new(Driver::open(ordinal).map_err(failure)?);
    let engine = Arc::new(Engine::new(Arc::<Driver>::clone(&driver)));
    let cuda = Cuda { driver, engine };
    opened.insert(ordinal, cuda.clone());
    Ok(cuda)
}

/// Whether a CUDA device has been opened.
pub(crate) fn is_open(ordinal: u32) -> bool {
    opened().lock().unwrap_or_else(PoisonError::into_inner).contains_key(&ordinal)
}

fn opened() -> &'static Mutex<HashMap<u32, Cuda>> {
    static OPENED: OnceLock<Mutex<HashMap<u32, Cuda>>> = OnceLock::new();
    OPENED.get_or_init(Mutex::default)
}
