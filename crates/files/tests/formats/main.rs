//! Every format as a user meets it: files in, values or complaints out.

mod binary;
mod common;
mod devices;
#[cfg(target_os = "linux")]
mod positions;
mod seeds;
mod stream;
mod tables;
mod text;
