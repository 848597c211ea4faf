//! `ptx info`: what a file holds.

use crate::args::{InfoArgs, TableOrJson};
use crate::output::{grid, quoted};
use crate::ptx::file;
use crate::ptx::source::printable;
use crate::sink::Sink;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::ExitCode;
use warpfold_ptx::info::{FunctionInfo, Info, info};
use warpfold_ptx::ir::{LaunchBounds, Parameter, Type, Unsupported};
use warpfold_ptx::name::{demangled, signature};

pub(super) fn run(args: &InfoArgs) -> Result<ExitCode> {
    let (text, name) = file::text(&args.file)?;
    let info = info(&text).with_context(|| name.to_string())?;
    let mut sink = Sink::open(None)?;
    match args.output_format {
        TableOrJson::Table => write_text(name, &info, &mut sink)?,
        TableOrJson::Json => writeln!(sink, "{}", json(name, &info))?,
    }
    sink.commit()?;
    match info.unsupported.len() {
        0 => Ok(ExitCode::SUCCESS),
        1 => bail!("{name}: one instruction is not supported; a kernel that reaches it stops"),
        n => bail!("{name}: {n} instructions are not supported; a kernel that reaches one stops"),
    }
}

fn write_text(name: &str, info: &Info, out: &mut dyn Write) -> std::io::Result<()> {
    let (major, minor) = info.version;
    let target = info.target.join(", ");
    writeln!(out, "{name}: PTX {major}.{minor} for {}", printable(&target))?;
    let files: Vec<_> = info.files.iter().filter(|f| !f.is_empty()).map(|f| printable(f)).collect();
    if !files.is_empty() {
        writeln!(out, "source: {}", files.join(", "))?;
    }
    for (space, count, bytes) in &info.variables {
        let plural = if *count == 1 { "" } else { "s" };
        writeln!(out, "{space} memory: {count} variable{plural}, {bytes} bytes")?;
    }
    for function in &info.functions {
        writeln!(out)?;
        write_function(function, out)?;
    }
    writeln!(out)?;
    let rows = info.opcodes.iter().map(|(name, n)| vec![name.clone(), n.to_string()]);
    writeln!(out, "{}", grid(&["opcode", "count"], rows.collect(), 1))?;
    if !info.unsupported.is_empty() {
        let header = ["not supported", "PTX line", "source line", "why"];
        let rows = info.unsupported.iter().map(|u| {
            let source =
                u.source.map_or_else(|| "-".into(), |(file, line)| named(info, file, line));
            let why = u.what.as_deref().map_or_else(String::new, printable);
            vec![printable(&u.instruction), u.line.to_string(), source, why]
        });
        writeln!(out, "\n{}", grid(&header, rows.collect(), 4))?;
    }
    Ok(())
}

fn named(info: &Info, file: u32, line: u32) -> String {
    match info.files.get(file as usize).filter(|f| !f.is_empty()) {
        Some(file) => format!("{}:{line}", printable(file)),
        None => line.to_string(),
    }
}

fn write_function(f: &FunctionInfo, out: &mut dyn Write) -> std::io::Result<()> {
    let list = |of: &[Parameter]| of.iter().map(parameter).collect::<Vec<_>>().join(", ");
    let kind = if f.kernel { "kernel" } else { "function" };
    write!(out, "{kind} {}({})", printable(&demangled(&f.name)), list(&f.parameters))?;
    match &f.results[..] {
        [] => writeln!(out)?,
        results => writeln!(out, " -> {}", list(results))?,
    }
    let registers: Vec<_> =
        f.registers.iter().map(|(ty, n)| format!("{n} {}", type_name(*ty))).collect();
    let registers = if registers.is_empty() { "none".into() } else { registers.join(", ") };
    writeln!(out, "  instructions  {}", f.instructions)?;
    writeln!(out, "  registers     {registers}")?;
    let dynamic = if f.dynamic_shared { ", and what the launch gives" } else { "" };
    match f.static_shared {
        Some(bytes) => writeln!(out, "  shared        {bytes} bytes{dynamic}")?,
        None => writeln!(out, "  shared        more than there can be")?,
    }
    writeln!(out, "  local         {} bytes a thread", f.local_bytes)?;
    if !f.calls.is_empty() {
        let recursion = if f.recursion { " (recursive)" } else { "" };
        let calls: Vec<_> = f.calls.iter().map(|name| printable(&demangled(name))).collect();
        writeln!(out, "  calls         {}{recursion}", calls.join(", "))?;
    }
    let bounds = bounds(&f.bounds);
    if !bounds.is_empty() {
        let told: Vec<_> = bounds.iter().map(|(name, value)| format!("{name} {value}")).collect();
        writeln!(out, "  demands       {}", told.join(", "))?;
    }
    Ok(())
}

/// The name without PTX's dot.
fn type_name(ty: Type) -> String {
    ty.to_string().trim_start_matches('.').into()
}

/// Type and length, and where a pointer points.
fn parameter(p: &Parameter) -> String {
    let mut text = type_name(p.ty);
    if let Some(length) = p.length {
        text += &format!("[{length}]");
    }
    if let Some((space, align)) = p.pointer {
        text += &format!(" to {space} memory, align {align}");
    }
    text
}

/// What the launch must keep to, by PTX's names, as JSON would write it.
fn bounds(b: &LaunchBounds) -> Vec<(&'static str, String)> {
    let dims = |d: [u32; 3]| format!("[{},{},{}]", d[0], d[1], d[2]);
    let mut all = Vec::new();
    all.extend(b.required_block.map(|d| ("reqntid", dims(d))));
    all.extend(b.largest_block.map(|d| ("maxntid", dims(d))));
    all.extend(b.blocks_per_multiprocessor.map(|n| ("minnctapersm", n.to_string())));
    all.extend(b.registers.map(|n| ("maxnreg", n.to_string())));
    all.extend(b.required_cluster.map(|d| ("reqnctapercluster", dims(d))));
    all.extend(b.largest_cluster.map(|n| ("maxclusterrank", n.to_string())));
    all.extend(b.explicit_cluster.then(|| ("explicitcluster", "true".into())));
    all
}

fn json(name: &str, info: &Info) -> String {
    let strings = |all: &[String]| list(all.iter().map(|s| quoted(s)));
    let (major, minor) = info.version;
    let variables = info.variables.iter().map(|(space, count, bytes)| {
        format!("{{\"space\":{},\"count\":{count},\"bytes\":{bytes}}}", quoted(space.name()))
    });
    object(&[
        ("file", quoted(name)),
        ("version", quoted(&format!("{major}.{minor}"))),
        ("target", strings(&info.target)),
        ("sources", strings(&info.files)),
        ("variables", list(variables)),
        ("functions", list(info.functions.iter().map(function))),
        ("opcodes", counts(&info.opcodes)),
        ("unsupported", list(info.unsupported.iter().map(|u| unsupported(info, u)))),
    ])
}

fn function(f: &FunctionInfo) -> String {
    let parameters = |of: &[Parameter]| {
        list(of.iter().map(|p| {
            object(&[
                ("name", quoted(&p.name)),
                ("type", quoted(&type_name(p.ty))),
                ("length", or_null(p.length)),
                ("bytes", p.bytes().to_string()),
                ("align", p.align.to_string()),
                ("pointer_to", p.pointer.map_or_else(null, |(space, _)| quoted(space.name()))),
            ])
        }))
    };
    let registers: Vec<_> = f.registers.iter().map(|(ty, n)| (type_name(*ty), *n)).collect();
    let bounds: Vec<_> = bounds(&f.bounds);
    object(&[
        ("name", quoted(&f.name)),
        ("signature", quoted(&signature(&f.name))),
        ("kind", quoted(if f.kernel { "kernel" } else { "function" })),
        ("parameters", parameters(&f.parameters)),
        ("results", parameters(&f.results)),
        ("instructions", f.instructions.to_string()),
        ("registers", counts(&registers)),
        ("static_shared", or_null(f.static_shared)),
        ("dynamic_shared", f.dynamic_shared.to_string()),
        ("local_bytes", f.local_bytes.to_string()),
        ("calls", list(f.calls.iter().map(|c| quoted(c)))),
        ("recursion", f.recursion.to_string()),
        ("bounds", object(&bounds)),
        ("opcodes", counts(&f.opcodes)),
    ])
}

fn unsupported(info: &Info, u: &Unsupported) -> String {
    let file = u.source.and_then(|(file, _)| info.files.get(file as usize));
    object(&[
        ("instruction", quoted(&u.instruction)),
        ("ptx_line", u.line.to_string()),
        ("file", file.map_or_else(null, |f| quoted(f))),
        ("source_line", or_null(u.source.map(|(_, line)| u64::from(line)))),
        ("why", u.what.as_deref().map_or_else(null, quoted)),
    ])
}

fn object(members: &[(&str, String)]) -> String {
    let members: Vec<_> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn counts(all: &[(String, usize)]) -> String {
    let members: Vec<_> = all.iter().map(|(name, n)| format!("{}:{n}", quoted(name))).collect();
    format!("{{{}}}", members.join(","))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn or_null(number: Option<u64>) -> String {
    number.map_or_else(null, |n| n.to_string())
}

fn null() -> String {
    "null".into()
}
