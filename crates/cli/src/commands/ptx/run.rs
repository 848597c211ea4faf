//! `ptx run`: one launch, checked and counted.

use crate::args::{Global, RunArgs, TableOrJson};
use crate::failure::{self, Usage, note};
use crate::progress::Blocks;
use crate::ptx::buffers::Buffers;
use crate::ptx::report::Run;
use crate::ptx::source::Sources;
use crate::ptx::{file, json, symbols, text};
use crate::sink::Sink;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use warpfold_ptx::device::{Device, Kernel, ModuleId, Setup};
use warpfold_ptx::name::{demangled, list};

pub(super) fn run(args: &RunArgs, global: &Global) -> Result<ExitCode> {
    let options = args.options()?;
    Buffers::check(&args.args, &args.show, &args.save)?;
    let (ptx, name) = file::text(&args.file)?;
    let mut device = Device::new(Setup { options, ..Setup::default() });
    device.set_watch(Blocks::watch(global.quiet));
    let module = device.load(&ptx).with_context(|| name.to_string())?;
    let kernel = kernel(&device, module, args, name)?;
    // Who launches from the command line wants the memory that is asked for.
    device.opt_in_to_shared(kernel)?;
    symbols::set(&mut device, module, &args.set)?;
    let buffers = Buffers::place(&mut device, &args.args)?;
    let shape = args.shape();
    let launches = device
        .run_to_end(kernel, &shape, &buffers.arguments())
        .with_context(|| name.to_string())?;
    // What is shown of the launch goes away before its outcome is printed.
    device.set_watch(None);
    if !global.quiet {
        for name in symbols::unset(&device, module, &launches[0].kernel, &args.set)? {
            note(&format!(
                "constant {} is not set, and holds zeros: --set {name}:TYPE:COUNT=CONTENT",
                demangled(&name)
            ));
        }
    }
    let files = device.module(module)?.files.iter().map(|f| Arc::from(f.as_str())).collect();
    let run = Run {
        file: name,
        shape,
        schedule: options.schedule,
        checks: options.checks,
        by_line: args.by_line,
        launches,
        module: device.module(module)?,
        files,
        buffers: &buffers,
        shown: buffers.show(&device, &args.show)?,
    };
    match run.halted() {
        None => buffers.save(&device, &args.save)?,
        Some(_) if !args.save.is_empty() && !global.quiet => {
            note("nothing was saved: the kernel did not finish");
        }
        Some(_) => {}
    }
    write(&run, args)?;
    verdict(run)
}

/// The kernel that is meant.
fn kernel(device: &Device, module: ModuleId, args: &RunArgs, name: &str) -> Result<Kernel> {
    let only = match &args.kernel {
        Some(kernel) => kernel.clone(),
        None => {
            let kernels: Vec<_> =
                device.module(module)?.kernels().map(|k| k.name.clone()).collect();
            match &kernels[..] {
                [only] => only.clone(),
                // The device says that there are none.
                [] => String::new(),
                [_, ..] => {
                    let kernels = list(kernels.iter().map(String::as_str));
                    let what = format!("{name}: which kernel? There are {}", kernels.join(", "));
                    // What a shell would read otherwise stands in quotes.
                    let hint = match &kernels[0] {
                        plain if !plain.contains(['<', '(', ' ']) => plain.clone(),
                        first => format!("'{first}'"),
                    };
                    let hint = format!("choose one: --kernel {hint}");
                    return Err(Usage::new(what).hint(hint).into());
                }
            }
        }
    };
    device.kernel(module, &only).with_context(|| name.to_string())
}

/// Prints the answer. A reader who leaves early changes nothing about it.
fn write(run: &Run<'_>, args: &RunArgs) -> Result<()> {
    let mut sources = Sources::new(Path::new(&args.file), &args.source);
    let mut print = || -> Result<()> {
        let mut sink = Sink::open(None)?;
        match args.output_format {
            TableOrJson::Table => text::write(run, &mut sources, &mut sink)?,
            TableOrJson::Json => json::write(run, &mut sources, &mut sink)?,
        }
        sink.commit()
    };
    print().or_else(|error| if failure::is_closed_pipe(&error) { Ok(()) } else { Err(error) })
}

fn verdict(run: Run<'_>) -> Result<ExitCode> {
    if run.findings() > 0 {
        return Ok(ExitCode::from(failure::FOUND));
    }
    let halted = run.launches.into_iter().find_map(|l| l.outcome.halt.map(|h| (l.kernel, h)));
    match halted {
        Some((kernel, halt)) => {
            Err(halt).with_context(|| format!("kernel `{}`", demangled(&kernel)))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}
