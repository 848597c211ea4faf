//! Shapes, strides and axes: from a question about an array to a traversal of
//! its memory.
//!
//! A [`View`] is an array in memory. [`Axes`] says which of its axes are
//! reduced, and [`Split`] parts them from those that are kept. [`Traversal`]
//! walks elements in the order of memory, with as few and as long dimensions
//! as the strides allow.

#[cfg(feature = "arrow")]
mod arrow;
mod axes;
mod copy;
mod from;
mod input;
#[cfg(feature = "ndarray")]
mod ndarray;
mod split;
mod traversal;
mod view;

/// One of something for each of an array's axes: without an allocation for as few as most arrays have.
pub type PerAxis<T> = smallvec::SmallVec<[T; 6]>;

pub use axes::{Axes, output_shape};
pub use input::Input;
pub use split::{Axis, Split};
pub use traversal::{Dim, Traversal};
pub use view::View;
