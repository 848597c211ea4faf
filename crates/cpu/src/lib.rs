//! The CPU backend: SIMD kernels and threads that turn arrays into states.
//!
//! Data flows from a [`View`](warpfold_core::layout::View) through a plan of contiguous
//! runs to a [`Worker`] on each thread, whose states are merged. Which kernel,
//! instruction set or thread gets an element changes the speed, never the result.

mod absorb;
mod accelerate;
mod axes;
mod count;
mod exact;
mod gather;
pub mod groups;
mod integer;
pub mod isa;
mod order;
mod pack;
mod plain;
mod plan;
mod ragged;
mod reduce;
mod rows;
mod scatter;
mod segments;
mod short_slice;
mod simd;
mod slices;
mod summaries;
mod table;
#[doc(hidden)]
pub mod walks;
mod worker;

pub use accelerate::{Accelerate, Context, CpuElement};
#[doc(hidden)]
pub use axes::position;
pub use plain::{plain_sum, read};
pub use reduce::{Job, Outputs, SMALL, accelerated};
pub use scatter::Scatter;
pub use segments::{Bounds, Indices, SegmentJob, SegmentNumbers};
pub use slices::Slices;
pub use warpfold_threads::Threads;
pub use worker::{Worker, absorb_in_turn, check_run};

/// The Rust of README.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
