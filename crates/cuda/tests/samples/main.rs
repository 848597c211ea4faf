//! The sample kernels of warpfold-ptx, on every device: held against records of real ones.

#![cfg(feature = "sim")]

#[path = "../common/mod.rs"]
mod common;

mod clusters;
mod counters;
mod same_bits;
