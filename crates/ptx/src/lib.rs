//! Runs the PTX of CUDA kernels on the CPU, warp by warp.

pub mod clock;
pub mod finding;
pub mod ir;
pub mod memory;
pub mod place;
pub mod value;
