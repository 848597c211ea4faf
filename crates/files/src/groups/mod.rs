//! Reductions by key: columns of keys beside columns of values, read together.
//!
//! A table is read in units of some rows, each of which any thread decodes: a chunk of
//! CSV, a row group of Parquet, a batch of Arrow, a range of arrays. A thread has the
//! states of the groups that it has met, and in the end those of all threads are merged.
//! Memory holds the groups, and the units at work.

mod joined;
mod keyed;
mod keys;
mod pair;
mod pass;

#[cfg(any(feature = "parquet", feature = "arrow"))]
pub(crate) use joined::Kind;
pub use keyed::Keyed;
pub use pass::{Question, partial, partial_of_some};
