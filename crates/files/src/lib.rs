//! Where arrays come from: files, members of archives, columns and pipes.
//!
//! [`open`] turns what a user types into [`Source`]s. A source is one array
//! or column; whatever the format, it is read as pieces that never need the
//! whole file in memory: elements at any place where the format allows it
//! ([`ReadAt`]), otherwise blocks that are taken off one after the other and
//! decoded on any thread ([`Blocks`]). [`inspect`] tells what a file holds
//! from its metadata alone.

#![forbid(unsafe_code)]

mod address;
#[cfg(feature = "arrow")]
mod arrow;
mod ask;
mod batch;
mod cast;
mod chunked;
mod columns;
#[cfg(any(feature = "zarr", feature = "hdf5"))]
mod container;
#[cfg(feature = "parquet")]
mod delta;
mod describe;
mod error;
mod evidence;
mod file;
mod fixed;
mod format;
#[doc(hidden)]
pub mod fuzzing;
pub mod groups;
mod guard;
#[cfg(feature = "hdf5")]
mod hdf5;
mod left_out;
mod member;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "npy")]
mod npz;
mod open;
#[cfg(feature = "parquet")]
mod parquet;
mod raw;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "safetensors")]
mod safetensors;
mod seal;
mod share;
mod source;
pub mod stream;
mod table;
#[cfg(feature = "text")]
mod text;
#[cfg(feature = "parquet")]
mod thrift;
#[cfg(any(feature = "arrow", feature = "parquet"))]
mod unit;
mod unpack;
#[cfg(feature = "zarr")]
mod zarr;

pub use address::is_address;
pub use ask::{max, mean, min, reduce_column, sum};
pub use batch::{Batch, Gap};
pub use chunked::Chunked;
pub use columns::ColumnSelector;
pub use describe::Description;
pub use error::{Error, Result};
pub use format::Format;
pub use guard::hide_guarded_panics;
pub use member::{join_member, split_members};
pub use open::{Endian, OpenOptions, inspect, is_zarr, open, open_keyed};
pub use share::Share;
pub use source::{Access, Block, Blocks, Extent, Order, ReadAt, Source};
pub use table::{LeftOut, TableColumn};
#[cfg(feature = "text")]
pub use text::USUAL_MISSING;
pub use warpfold::Unit;

/// The Rust of README.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
