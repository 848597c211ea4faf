//! Runs the PTX of CUDA kernels on the CPU, warp by warp.
