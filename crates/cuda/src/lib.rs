//! CUDA devices behind one trait: real ones through the driver, simulated ones
//! through the PTX interpreter; and the [`Engine`] that reduces arrays on them.
//!
//! ```text
//!              Engine: one launch reduces an array to a state
//!                 |
//!              Device: allocate, copy, load, launch, wait, query
//!             /                                                 \
//!   Driver: libcuda, found at run time            Sim: warpfold-ptx, checks on
//! ```
//!
//! Host code that talks to [`Device`] runs the very same kernels on both, which
//! is how everything above is tested on machines without a GPU. A machine
//! without a driver is an [`Error`] with a hint, never a panic.

pub mod archive;
pub mod device;
pub mod device_runtime;
pub mod driver;
pub mod engine;
mod error;
mod pinned;
pub mod sim;
mod slices;
pub mod toolkit;

pub use archive::Archive;
pub use device::{
    Address, Argument, Device, Footprint, KernelId, Launch, Limits, ModuleId, Stream,
};
pub use driver::Driver;
pub use engine::Engine;
pub use error::{Error, Result};
pub use sim::Sim;
pub use slices::SliceEngine;
