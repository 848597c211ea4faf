//! Kernels, views and pieces against states that absorb one element after the other.

mod absorb;
mod answers;
mod kernels;
mod segments;
mod views;
