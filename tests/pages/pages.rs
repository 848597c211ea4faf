//! The Rust of README.md and of the guide, compiled and run as doc tests. The pages lie
//! outside of every package, so that no package's own tests can read them.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/rust.md")]
struct Guide;

#[cfg(doctest)]
#[doc = include_str!("../../docs/devices.md")]
struct Devices;

#[cfg(doctest)]
#[doc = include_str!("../../docs/segments.md")]
struct Segments;

#[cfg(doctest)]
#[doc = include_str!("../../docs/rust-files.md")]
struct Files;

#[cfg(doctest)]
#[doc = include_str!("../../docs/groups.md")]
struct Groups;
