//! Shapes, strides and axes: from a question about an array to a traversal of
//! its memory.
//!
//! A [`View`] is an array in memory. [`Axes`] says which of its axes are
//! reduced. [`Traversal`] walks elements in the order of memory, with as few
//! and as long dimensions as the strides allow.

mod axes;
#[cfg(feature = "ndarray")]
mod ndarray;
mod traversal;
mod view;

pub use axes::{Axes, output_shape};
pub use traversal::{Dim, Traversal};
pub use view::View;
