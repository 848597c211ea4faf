//! Arrow IPC streams.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpfold_files::{Format, fuzzing};

fuzz_target!(|bytes: &[u8]| fuzzing::format(bytes, Format::ArrowStream));
