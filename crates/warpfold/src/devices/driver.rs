//! The CUDA devices of the process: each is opened once.

use super::engines::failure;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use warpfold_core::{Error, Result};
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

/// The process that asked for a device first; 0 while nobody has.
static OPENER: AtomicU32 = AtomicU32::new(0);

/// Refuses a process that was forked from one that has asked for a device: CUDA does not work
/// there, and whoever waits for a lock that another thread held while the process was forked
/// waits forever.
///
/// # Errors
/// [`Error::Device`].
pub fn check_process() -> Result<()> {
    let ours = process::id();
    match OPENER.compare_exchange(0, ours, Ordering::Relaxed, Ordering::Relaxed) {
        Err(opener) if opener != ours => Err(Error::Device {
            what: "this process was forked from one that used CUDA, which does not work in it"
                .into(),
            hint: "use CUDA in one of the two alone, or start the process anew instead of forking"
                .into(),
        }),
        _ => Ok(()),
    }
}

fn device(ordinal: u32) -> Result<Cuda> {
    check_process()?;
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

/// Whether a CUDA device has been opened, by this process.
pub(crate) fn is_open(ordinal: u32) -> bool {
    if OPENER.load(Ordering::Relaxed) != process::id() {
        return false;
    }
    opened().lock().unwrap_or_else(PoisonError::into_inner).contains_key(&ordinal)
}

fn opened() -> &'static Mutex<HashMap<u32, Cuda>> {
    static OPENED: OnceLock<Mutex<HashMap<u32, Cuda>>> = OnceLock::new();
    OPENED.get_or_init(Mutex::default)
}
