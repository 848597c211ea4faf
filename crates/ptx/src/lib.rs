//! Runs the PTX of CUDA kernels on the CPU, warp by warp.

pub mod clock;
pub mod count;
pub mod finding;
pub mod memory;
pub mod place;
