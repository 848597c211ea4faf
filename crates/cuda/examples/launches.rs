//! Runs the launches whose counters are compared with a profiler's, on the
//! first device: `record_counters.py` runs it under Nsight Compute.
//!
//! With `--list` it names them and needs no device.

#[path = "../tests/common/mod.rs"]
mod common;

use warpfold_cuda::{Driver, Result};

fn main() -> Result<()> {
    let cases = common::profiled::cases();
    if std::env::args().any(|a| a == "--list") {
        for (name, case) in cases {
            println!("{name}\t{}\t{}", case.module, case.kernel);
        }
        return Ok(());
    }
    let device = Driver::open(0)?;
    for (name, case) in cases {
        case.run(&device, "13.0").inspect_err(|_| eprintln!("in {name}"))?;
    }
    Ok(())
}
