//! The CUDA devices of the process: each is opened once.

use super::engines::failure;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use warpfold_core::Result;
use warpfold_cuda::{Driver, Engine};

/// The engine of a CUDA device.
///
/// # Errors
/// There is no such device, or it cannot be used.
pub(super) fn engine(ordinal: u32) -> Result<Arc<Engine>> {
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

fn opened() -> &'static Mutex<HashMap<u32, Arc<Engine>>> {
    static OPENED: OnceLock<Mutex<HashMap<u32, Arc<Engine>>>> = OnceLock::new();
    OPENED.get_or_init(Mutex::default)
}
