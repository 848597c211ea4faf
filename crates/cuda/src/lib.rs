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
//! Host code that uses [`Device`] runs the same kernels on both. That is how the engine
//! is tested on machines without a GPU. On a machine without a driver the result is an
//! [`Error`] with a hint, never a panic.
//!
//! # Features
//!
//! `sim` (on by default) adds [`Sim`], the PTX interpreter as a device. `cudarc` (off by
//! default) adds `SliceEngine`, which reduces cudarc's slices on its
//! streams. The program chooses the version of CUDA, with one of cudarc's `cuda-*`
//! features. Without this feature nothing here depends on a version.

pub mod archive;
pub mod buffer;
pub mod device;
pub mod device_runtime;
pub mod driver;
pub mod engine;
mod error;
mod pinned;
mod renumber;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "cudarc")]
mod slices;
pub mod toolkit;

pub use archive::Archive;
pub use buffer::Buffer;
pub use device::{
    Address, Argument, Current, Device, Footprint, KernelId, Launch, Limits, ModuleId, Stream,
};
pub use driver::Driver;
pub use engine::Engine;
pub use error::{Error, Result};
#[cfg(feature = "sim")]
pub use sim::Sim;
#[cfg(feature = "cudarc")]
pub use slices::{CudarcSlice, CudarcSliceMut, SliceEngine, ordinal_of};

/// The Rust of README.md, compiled and run.
#[cfg(all(doctest, feature = "sim"))]
#[doc = include_str!("../README.md")]
struct Readme;
