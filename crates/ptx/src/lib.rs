//! Runs the PTX of CUDA kernels on the CPU, warp by warp.

pub mod flow;
pub mod info;
pub mod ir;
pub mod parse;
