//! How fast kernels are interpreted: lane instructions a second of a two-pass sum, plain and with checks.
//!
//! `cargo run --release --example rate [ELEMENTS [HOW]]`. Plain runs use one thread, so that the figure is that of one core.

use std::error::Error;
use std::time::Instant;
use warpfold_ptx::device::{Device, Setup};
use warpfold_ptx::machine::{Arg, Checks, Options, Schedule, Shape};

fn main() -> Result<(), Box<dyn Error>> {
    let elements: u32 = std::env::args().nth(1).map_or(Ok(1 << 20), |n| n.parse())?;
    let only = std::env::args().nth(2);
    let ptx = include_str!("../kernels/ptx/12.0/two_pass.90.ptx");
    let plain = Options { checks: Checks::NONE, parallel: false, ..Options::default() };
    let races = Options { checks: Checks { races: true, ..Checks::NONE }, ..plain };
    let all = Options { checks: Checks::ALL, counters: true, ..plain };
    let adversarial = Options { schedule: Schedule::Adversarial { seed: 0 }, ..all };
    let named = [
        ("plain", plain),
        ("counted", Options { counters: true, ..plain }),
        ("races", races),
        ("everything", all),
        ("everything, adversarial", adversarial),
    ];
    for (name, options) in named {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        for kernel in ["two_pass_f32", "two_pass_i32"] {
            measure(name, kernel, ptx, options, elements)?;
        }
    }
    Ok(())
}

fn measure(
    name: &str,
    kernel: &str,
    ptx: &str,
    options: Options,
    elements: u32,
) -> Result<(), Box<dyn Error>> {
    let mut device = Device::new(Setup { options, ..Setup::default() });
    let module = device.load(ptx)?;
    let function = device.kernel(module, kernel)?;
    let (input, partials) = (device.allocate(u64::from(elements) * 4)?, device.allocate(64 * 4)?);
    device.fill(input, elements as usize * 4, 0)?;
    let n = if kernel.ends_with("f32") { Arg::U64(elements.into()) } else { Arg::U32(elements) };
    let args = [Arg::Pointer(input), Arg::Pointer(partials), n];
    let mut best = f64::INFINITY;
    let mut lanes = 0;
    for _ in 0..3 {
        let start = Instant::now();
        let reports = device.run_to_end(function, &Shape::linear(64, 256), &args)?;
        best = best.min(start.elapsed().as_secs_f64());
        lanes = reports[0].outcome.lane_instructions;
        assert!(reports[0].outcome.is_clean());
    }
    let rate = lanes as f64 / best / 1e6;
    println!(
        "{name:24} {kernel:14} {elements:>9} elements {best:8.4} s {rate:8.1} M lane instructions/s"
    );
    Ok(())
}
