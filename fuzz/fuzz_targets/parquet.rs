//! Parquet footers and pages.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpfold_files::{Format, fuzzing};

fuzz_target!(|bytes: &[u8]| {
    // The parquet crate panics on some damaged data; that is caught.
    warpfold_files::hide_guarded_panics();
    fuzzing::format(bytes, Format::Parquet);
});
