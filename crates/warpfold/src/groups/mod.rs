//! Reductions by key: an answer for each group of rows.

mod answer;
#[cfg(feature = "arrow")]
mod arrow;
mod by;
mod bytes;
mod column;
mod dictionary;
mod keys;
mod numbered;
pub(crate) mod on_devices;
mod partial;
mod partition;
mod shared;
mod sorting;
mod widened;

pub use answer::{GroupColumn, Grouped, KeyValues};
pub use by::{GroupBy, Order};
pub use keys::{KeyColumn, Keys};
pub use partial::{GroupPartial, GroupValues};
pub use shared::{GroupReader, SharedGroups};
pub use widened::{Counted, Widening};
