//! Every format as a user meets it: files in, values or complaints out.

mod binary;
mod common;
mod devices;
mod random_tables;
mod seeds;
mod stream;
mod tables;
mod text;
