//! Kernels, views and pieces against states that absorb one element after the other.

mod absorb;
mod kernels;
mod views;
