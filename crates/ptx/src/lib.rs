//! Runs the PTX of CUDA kernels on the CPU, warp by warp: finds data races, missing barriers, wrong masks, uninitialised memory and accesses out
//! of bounds, and counts what a profiler counts. No GPU, driver or toolkit is needed.
//!
//! A [`device::Device`] has memory, loads PTX, and launches kernels; a [`device::Report`] has what was found.
//!
//! ```
//! use warpfold_ptx::device::{Device, Setup};
//! use warpfold_ptx::machine::{Arg, Shape};
//!
//! let text = "
//!     .version 8.0
//!     .target sm_75
//!     .address_size 64
//!     .visible .entry number(.param .u64 out) {
//!         .reg .b32 %r<2>;
//!         .reg .b64 %d<4>;
//!         ld.param.u64 %d1, [out];
//!         mov.u32 %r1, %tid.x;
//!         mul.wide.u32 %d2, %r1, 4;
//!         add.u64 %d3, %d1, %d2;
//!         st.global.u32 [%d3], %r1;
//!         ret;
//!     }";
//! let mut device = Device::new(Setup::default());
//! let module = device.load(text)?;
//! let kernel = device.kernel(module, "number")?;
//! // Room for 31 numbers, and 32 threads.
//! let out = device.allocate(31 * 4)?;
//! let reports = device.run_to_end(kernel, &Shape::linear(1, 32), &[Arg::Pointer(out)])?;
//! let found = reports[0].outcome.findings.all();
//! assert_eq!(found[0].fault.kind.name(), "out-of-bounds");
//! assert_eq!(found[0].fault.place.lane(), 31);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod clock;
pub mod count;
pub mod descriptor;
pub mod device;
pub mod finding;
pub mod flow;
pub mod info;
pub mod ir;
pub mod machine;
pub mod memory;
pub mod name;
pub mod parse;
pub mod place;
pub mod value;

/// The Rust of README.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
