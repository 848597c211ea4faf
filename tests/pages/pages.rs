//! The Rust of README.md and of the guide, compiled and run as doc tests.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
