//! Runs the PTX of CUDA kernels on the CPU, warp by warp.

#![forbid(unsafe_code)]

pub mod clock;
pub mod count;
pub mod device;
pub mod finding;
pub mod flow;
pub mod info;
pub mod ir;
pub mod machine;
pub mod memory;
pub mod parse;
pub mod place;
pub mod value;

/// The Rust of README.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
