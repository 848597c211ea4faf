//! `ptx run` and `ptx test`: from words to a launch, and from what it gave to words.

pub(crate) mod argument;
pub(crate) mod buffers;
mod content;
mod counters;
mod described;
mod elements;
pub(crate) mod file;
pub(crate) mod json;
pub(crate) mod report;
mod scalar;
pub(crate) mod source;
pub(crate) mod suite;
pub(crate) mod symbols;
pub(crate) mod text;
