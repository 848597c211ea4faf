//! Threads: as many as there is work for, and fewer where the system refuses
//! them.
//!
//! Three ways to share work, for every crate of warpfold:
//!
//! * [`Threads::run`] shares a computation with the threads of one pool,
//! * [`scoped`] shares work that blocks on files with threads of its own,
//! * [`read_ahead`] and [`join`] do one thing beside another.
//!
//! A thread that cannot be started is not an error: its share is done by the
//! threads that there are, if need be by the caller alone. Nothing is started
//! before there is work for it.

#![forbid(unsafe_code)]

mod ahead;
mod count;
mod pieces;
mod pool;
mod room;
mod scoped;

pub use ahead::{Ahead, read_ahead};
pub use count::Threads;
pub use pieces::Pieces;
pub use room::has_room;
pub use scoped::{join, scoped};

/// The Rust of README.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
