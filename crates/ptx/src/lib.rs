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
