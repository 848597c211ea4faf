//! Kernels, views and pieces against states that absorb one element after the other.

mod absorb;
mod answers;
mod kernels;
mod segments;
// A link to that of warpfold-ptx, so that the package has it.
mod thorough;
mod views;
