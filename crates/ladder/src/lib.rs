//! The ladder: the reduction kernels of five well-known texts and later kernels, one
//! rung after the other, each checked and measured.
//!
//! ```text
//!   registry   every rung: what it does, teaches, expects
//!   baselines  what each is compared with, and what is expected of that
//!   question   a rung, a type, an operation, a size, a block: what can be asked
//!   lab        has it answered, and compares with the exact answer
//!   runner     who answers: launches of kernels, the library, CUB, the host
//!   statistics, warning   what is said of its times
//!   attempt    a kernel of the user's: checked, counted, placed
//!   faulty     what the texts' listings get wrong, at work
//!   learn      a course: predict, run, compare, write
//!   occupancy  how many blocks a multiprocessor holds
//!   experiments  what decides how fast a kernel is, one thing each
//!   chart      what is drawn of them
//! ```
//!
//! The texts are *P* (Professional CUDA C Programming, chapter 3), *F* (a course's
//! series v0 to v2), *H* (The CUDA Handbook, section 12.2), *S* (the Stanford
//! CS193g tutorial) and *W* (an article on warp shuffles). Their kernels are
//! written afresh in `kernels/`, right for every size and every legal block.

pub mod attempt;
pub mod baselines;
mod buffers;
mod cache;
pub mod chart;
mod cub;
mod data;
mod error;
pub mod experiments;
pub mod faulty;
mod host;
mod lab;
mod launches;
pub mod learn;
mod library;
mod memory;
pub mod occupancy;
mod question;
mod registry;
pub mod report;
mod rung;
mod runner;
mod source;
pub mod statistics;
mod verdict;
mod warning;

pub use data::Data;
pub use error::{Error, Result};
pub use lab::{Ceiling, Lab, Measurement, Step, Timing};
pub use question::Question;
pub use registry::{ALL, find};
pub use rung::{Blocks, Plan, Rung, Text};
pub use verdict::{Mismatch, Verdict};
pub use warning::Warning;

/// The Rust of README.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
