//! Lets the driver compile every module of the engine for device 0, in as many
//! processes as there are cores: what it keeps in its cache, no later process
//! waits for.
//!
//! ```text
//! cargo run --release -p warpfold-cuda --example compile
//! ```

use std::process::Command;
use std::time::{Duration, Instant};
use warpfold_cuda::engine::archive;
use warpfold_cuda::{Device, Driver, Result};

/// The modules that take longest, to be named.
const SLOWEST: usize = 5;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [part, parts] = &arguments[..] {
        return Ok(compile(part.parse()?, parts.parse()?)?);
    }
    let begin = Instant::now();
    let parts = std::thread::available_parallelism()?.get();
    let program = std::env::current_exe()?;
    let start =
        |part: usize| Command::new(&program).args([part.to_string(), parts.to_string()]).spawn();
    let children: Vec<_> = (0..parts).map(start).collect::<std::io::Result<_>>()?;
    let mut failed = 0;
    for mut child in children {
        failed += usize::from(!child.wait()?.success());
    }
    if failed > 0 {
        return Err(format!("{failed} of {parts} processes failed").into());
    }
    println!("{} modules in {:.1} s", archive::names().len(), begin.elapsed().as_secs_f64());
    Ok(())
}

/// Loads every `parts`-th module, from number `part` on.
fn compile(part: usize, parts: usize) -> Result<()> {
    let device = Driver::open(0)?;
    let capability = device.limits().capability;
    let mut times: Vec<(Duration, &str)> = Vec::new();
    for name in archive::names().into_iter().skip(part).step_by(parts) {
        let Some(text) = archive::module(name, capability) else { continue };
        let begin = Instant::now();
        device.load(name, &text)?;
        times.push((begin.elapsed(), name));
    }
    times.sort_unstable_by(|a, b| b.cmp(a));
    for (time, name) in times.iter().take(SLOWEST) {
        println!("{:6.0} ms  {name}", time.as_secs_f64() * 1e3);
    }
    Ok(())
}
