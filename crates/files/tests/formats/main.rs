//! Every format as a user meets it: files in, values or complaints out.

mod arrow_dictionaries;
mod arrow_texts;
mod ask;
mod binary;
mod cancelled;
mod common;
mod compressed;
mod devices;
mod file_and_memory;
mod parquet_texts;
mod pieces;
#[cfg(target_os = "linux")]
mod positions;
mod random_tables;
mod seeds;
mod shares;
mod stream;
mod tables;
mod text;
mod texts;
// A link to that of warpfold-ptx, so that the package has it.
mod thorough;
