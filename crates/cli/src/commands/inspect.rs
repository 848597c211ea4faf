//! `inspect`: what files hold.

use crate::args::InspectArgs;
use crate::inputs;
use crate::output::{self, Format, Row, quoted};
use crate::printable::printable;
use crate::sink::{self, Sink};
use anyhow::Result;
use std::io::{IsTerminal, Write};
use warpfold_files::{Description, Extent, Order};

const HEADER: [&str; 7] = ["name", "format", "type", "stored as", "shape", "bytes", "compression"];

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    if let Some(path) = &args.output {
        sink::check(path)?;
    }
    let options = args.input.options();
    let mut all = Vec::new();
    for file in inputs::files(&args.input.files)? {
        all.extend(warpfold_files::inspect(&file, &options)?);
    }
    let mut sink = Sink::open(args.output.as_deref())?;
    match format(args) {
        Format::Json => {
            let objects: Vec<_> = all.iter().map(object).collect();
            writeln!(sink, "[{}]", objects.join(",\n "))?;
        }
        Format::Jsonl => all.iter().try_for_each(|d| writeln!(sink, "{}", object(d)))?,
        Format::Table => {
            writeln!(sink, "{}", output::grid(&HEADER, all.iter().map(row).collect(), 4))?
        }
        Format::Csv => rows(&all, b',', &mut sink)?,
        Format::Tsv => rows(&all, b'\t', &mut sink)?,
        Format::Plain => lines(&all, &mut sink)?,
    }
    sink.commit()
}

fn format(args: &InspectArgs) -> Format {
    let by_itself = if args.output.is_none() && std::io::stdout().is_terminal() {
        Format::Table
    } else {
        Format::Plain
    };
    let promised = args.output.as_deref().and_then(Format::of_name);
    args.output_format.or(promised).unwrap_or(by_itself)
}

/// Rows for other programs.
fn rows(all: &[Description], delimiter: u8, out: &mut dyn Write) -> std::io::Result<()> {
    let mut writer = Row::new(out, delimiter);
    let cells = |writer: &mut Row<'_>, cells: &[&str]| {
        cells.iter().try_for_each(|cell| writer.cell(cell))?;
        writer.end()
    };
    cells(&mut writer, &HEADER)?;
    for description in all {
        let row = row(description);
        cells(&mut writer, &row.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Rows for people and shells: a line each, whatever names hold.
fn lines(all: &[Description], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{}", HEADER.join("\t"))?;
    for description in all {
        let row = row(description);
        let cells: Vec<_> = row.iter().map(|cell| printable(cell)).collect();
        writeln!(out, "{}", cells.join("\t"))?;
    }
    Ok(())
}

/// The cells of a description, as [`HEADER`] names them.
fn row(d: &Description) -> Vec<String> {
    let dash = || "-".to_string();
    let dtype = match (&d.dtype, &d.why_not) {
        (Some(dtype), _) => match &d.unit {
            Some(unit) => format!("{dtype}: {unit}"),
            None => dtype.to_string(),
        },
        (None, Some(why)) => format!("not read: {why}"),
        (None, None) => "not read".into(),
    };
    vec![
        d.name.clone(),
        d.format.to_string(),
        dtype,
        d.stored_as.clone(),
        d.extent.as_ref().map_or_else(dash, shape),
        d.bytes.map_or_else(dash, |n| n.to_string()),
        d.compression.clone().unwrap_or_else(dash),
    ]
}

/// The shape, as people write it.
fn shape(extent: &Extent) -> String {
    match extent {
        Extent::Array { shape, .. } if shape.is_empty() => "scalar".into(),
        Extent::Array { shape, order } => {
            let lengths: Vec<_> = shape.iter().map(usize::to_string).collect();
            let note =
                if *order == Order::Fortran && shape.len() > 1 { " (Fortran order)" } else { "" };
            format!("{}{note}", lengths.join(" x "))
        }
        Extent::Column { rows: Some(rows) } => rows.to_string(),
        Extent::Column { rows: None } => "?".into(),
    }
}

/// A description as a JSON object; members that do not apply are left out.
fn object(d: &Description) -> String {
    let mut members = vec![
        ("name", quoted(&d.name)),
        ("format", quoted(d.format.name())),
        ("stored_as", quoted(&d.stored_as)),
        ("dtype", d.dtype.map_or_else(|| "null".into(), |t| quoted(t.name()))),
    ];
    if let Some(unit) = &d.unit {
        members.push(("unit", quoted(&unit.to_string())));
    }
    if let Some(why) = &d.why_not {
        members.push(("why_not", quoted(why)));
    }
    match &d.extent {
        Some(Extent::Array { shape, order }) => {
            members.push(("shape", format!("{shape:?}")));
            let order = if *order == Order::Fortran { "fortran" } else { "c" };
            members.push(("order", quoted(order)));
        }
        Some(Extent::Column { rows: Some(rows) }) => members.push(("rows", rows.to_string())),
        _ => {}
    }
    if let Some(endian) = d.endian {
        members.push(("endian", quoted(&format!("{endian:?}").to_lowercase())));
    }
    members.extend(d.offset.map(|n| ("offset", n.to_string())));
    members.extend(d.bytes.map(|n| ("bytes", n.to_string())));
    members.extend(d.compression.as_ref().map(|c| ("compression", quoted(c))));
    let members: Vec<_> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}
