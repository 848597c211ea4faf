//! gzip, zstd, bzip2, xz and lz4 streams, and whatever they hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| warpfold_files::fuzzing::compressed(bytes));
