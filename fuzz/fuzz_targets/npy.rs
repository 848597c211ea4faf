//! npy headers and the arrays behind them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpfold_files::{Format, fuzzing};

fuzz_target!(|bytes: &[u8]| fuzzing::format(bytes, Format::Npy));
