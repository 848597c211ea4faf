//! `ladder report`: a page of what was measured.

use super::measure;
use super::run::{Profiler, open};
use crate::args::{Global, ReportArgs, ReportFormat};
use crate::failure::{self, note};
use crate::sink::{self, Sink};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use warpfold_ladder::report::{DRAWINGS, Foreign, Gathered, MOST_BYTES, html, markdown, refreshed};

pub(super) fn run(args: &ReportArgs, global: &Global) -> Result<ExitCode> {
    for path in args.save.iter().chain(&args.output) {
        sink::check(path)?;
    }
    if let Some(folder) = &args.drawings {
        if !folder.is_dir() {
            bail!("{}: there is no such directory", folder.display());
        }
        for drawing in &DRAWINGS {
            save(&folder.join(format!("{}.svg", drawing.name)), &drawing.svg())?;
        }
    }
    let mut gathered = Gathered::default();
    let mut wrong = false;
    if args.measure {
        let (lab, simulated) = open(args.device)?;
        let document =
            measure::all(&lab, simulated, profiler(args, simulated, global), global.quiet)?;
        let text = document.to_json()? + "\n";
        if let Some(path) = &args.save {
            save(path, &text)?;
        }
        wrong = document.is_wrong();
        gathered.add(&text)?;
    }
    for path in &args.data {
        let text = read(path)?;
        gathered.add(&text).with_context(|| path.display().to_string())?;
    }
    for path in &args.figures {
        let page = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let page = refreshed(&page, &gathered)
            .map_err(anyhow::Error::msg)
            .with_context(|| path.display().to_string())?;
        save(path, &page)?;
    }
    let anything = !gathered.rungs.is_empty() || !gathered.trials.is_empty();
    if anything && (args.output.is_some() || args.save.is_none() && args.figures.is_empty()) {
        write(args, global, &gathered)?;
    }
    Ok(if wrong { ExitCode::from(failure::FOUND) } else { ExitCode::SUCCESS })
}

/// The profiler, if it is asked for and there. Without counters the times are worth
/// having.
fn profiler(args: &ReportArgs, simulated: bool, global: &Global) -> Option<Profiler> {
    if !args.profile || simulated {
        return None;
    }
    let found = Profiler::new(args.device);
    if let (Err(error), false) = (&found, global.quiet) {
        note(&format!("no profile: {}; {}", error.why, error.hint));
    }
    found.ok()
}

/// The text of a file, unless it is longer than any that was measured.
fn read(path: &Path) -> Result<String> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    if file.metadata().with_context(name)?.is_dir() {
        bail!("{}: this is a directory", path.display());
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).with_context(name)?;
    if bytes.len() as u64 > MOST_BYTES {
        let bytes = std::fs::metadata(path).map_or(bytes.len() as u64, |m| m.len());
        return Err(Foreign::Long { bytes, most: MOST_BYTES }).with_context(name);
    }
    let not_text = |error: std::string::FromUtf8Error| Foreign::Json(error.to_string());
    String::from_utf8(bytes).map_err(not_text).with_context(name)
}

fn save(path: &Path, text: &str) -> Result<()> {
    let mut sink = Sink::open(Some(path))?;
    sink.write_all(text.as_bytes())?;
    sink.commit()
}

fn write(args: &ReportArgs, global: &Global, gathered: &Gathered) -> Result<()> {
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let is_md = |path: &Path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("md"));
    let promised = match output {
        Some(path) if is_md(path) => ReportFormat::Md,
        _ => ReportFormat::Html,
    };
    match args.format.unwrap_or(promised) {
        ReportFormat::Html => {
            let mut sink = Sink::open(output)?;
            sink.write_all(html(gathered).as_bytes())?;
            sink.commit()
        }
        ReportFormat::Md => {
            let stem = output.and_then(Path::file_stem).and_then(OsStr::to_str).unwrap_or("ladder");
            let page = markdown(gathered, &format!("{stem}-"));
            if let Some(path) = output.filter(|path| sink::is_file(path)) {
                for (name, picture) in &page.pictures {
                    save(&path.with_file_name(name), picture)?;
                }
            } else if !global.quiet && !page.pictures.is_empty() {
                note("pictures are written only with -o FILE");
            }
            let mut sink = Sink::open(output)?;
            sink.write_all(page.text.as_bytes())?;
            sink.commit()
        }
    }
}
