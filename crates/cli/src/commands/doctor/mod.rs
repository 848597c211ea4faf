//! `doctor`: what this machine offers, and what is made of it.

mod devices;

use crate::args::{DoctorArgs, TextOrJson};
use crate::output::quoted;
use crate::sink::Sink;
use anyhow::Result;
use devices::Devices;
use std::io::Write;
use warpfold::Threads;
use warpfold::internal::Isa;
use warpfold_cpu::isa::FORCE;

/// What was found.
struct Findings {
    version: &'static str,
    target: String,
    available: Vec<&'static str>,
    active: Result<Isa, warpfold::Error>,
    forced: Option<String>,
    cores: usize,
    threads: usize,
    memory: Option<u64>,
    devices: Devices,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<()> {
    let findings = examine();
    let mut sink = Sink::open(None)?;
    match args.output_format {
        TextOrJson::Text => write_text(&findings, args.verbose, &mut sink)?,
        TextOrJson::Json => writeln!(sink, "{}", json(&findings))?,
    }
    sink.commit()
}

fn examine() -> Findings {
    Findings {
        version: env!("CARGO_PKG_VERSION"),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        available: Isa::available().map(Isa::name).collect(),
        active: Isa::active(),
        forced: std::env::var_os(FORCE).map(|v| v.to_string_lossy().into_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        threads: Threads::All.count(),
        memory: memory(),
        devices: Devices::find(),
    }
}

/// The machine's memory in bytes, where the system tells.
pub(crate) fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The processor's name, where the system tells.
pub(crate) fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let name = text.lines().find_map(|l| l.strip_prefix("model name"))?;
    Some(name.trim_start_matches([' ', '\t', ':']).trim().to_string())
}

fn write_text(f: &Findings, verbose: bool, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "warpfold      {} for {}", f.version, f.target)?;
    if verbose && let Some(name) = processor() {
        writeln!(out, "processor     {name}")?;
    }
    match &f.active {
        Ok(isa) => {
            writeln!(out, "instructions  {} (of {})", isa.name(), f.available.join(", "))?;
        }
        Err(error) => writeln!(out, "instructions  none: {error}")?,
    }
    match (&f.forced, verbose) {
        (Some(value), _) => writeln!(out, "{FORCE}  {value}")?,
        (None, true) => writeln!(out, "{FORCE}  not set: the best instructions are used")?,
        (None, false) => {}
    }
    writeln!(out, "cores         {}", f.cores)?;
    if verbose || f.threads != f.cores {
        writeln!(out, "threads       {} (change it with -j or RAYON_NUM_THREADS)", f.threads)?;
    }
    if let Some(bytes) = f.memory {
        writeln!(out, "memory        {:.1} GiB", bytes as f64 / (1u64 << 30) as f64)?;
    }
    f.devices.write(verbose, out)?;
    Ok(())
}

fn json(f: &Findings) -> String {
    let list = f.available.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",");
    let active = f.active.as_ref().map_or_else(|_| "null".into(), |isa| quoted(isa.name()));
    let or_null = |text: Option<String>| text.map_or_else(|| "null".into(), |t| quoted(&t));
    format!(
        "{{\"version\":{},\"target\":{},\"processor\":{},\
         \"isa\":{{\"active\":{active},\"available\":[{list}],\"forced\":{}}},\
         \"cores\":{},\"threads\":{},\"memory\":{},\
         \"cuda\":{},\"device\":\"cpu\"}}",
        quoted(f.version),
        quoted(&f.target),
        or_null(processor()),
        or_null(f.forced.clone()),
        f.cores,
        f.threads,
        f.memory.map_or_else(|| "null".into(), |m| m.to_string()),
        f.devices.json(),
    )
}
