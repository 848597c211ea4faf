//! What a reduction *is*, independent of the machine that runs it.
//!
//! A reduction is a **state** that can absorb a run of elements, merge with
//! another state and finish into a value. This crate holds the four lower
//! floors of warpfold, each using only those above it in this list:
//!
//! 1. [`element`]: the element types, and the formats of their sums and answers,
//! 2. [`exact`]: superaccumulators and final rounding: arithmetic without arrays,
//! 3. [`op`]: the operations: name, identity, state, merge, finish, numeric rules,
//! 4. [`layout`]: shapes, strides and axes.
//!
//! Programs use the `warpfold` crate. Backends build on this one.

pub mod element;
pub mod error;
pub mod exact;
pub mod fpenv;
pub mod item;
pub mod layout;
pub mod op;
pub mod prefetch;
#[cfg(feature = "serde")]
mod serial;

pub use element::{DType, Element};
pub use error::{Error, Result};
pub use item::Item;
pub use op::{NanPolicy, Op, Rules, Scalar, Value};

/// The Rust of README.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
