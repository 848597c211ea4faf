//! `ptx run`: from words to a launch, and from what it gave to words.

pub(crate) mod argument;
pub(crate) mod buffers;
mod content;
mod counters;
mod elements;
pub(crate) mod json;
pub(crate) mod report;
mod scalar;
pub(crate) mod source;
pub(crate) mod text;
