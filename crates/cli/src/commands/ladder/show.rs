//! `ladder show`: one rung, with its kernel.

use crate::args::ShowArgs;
use crate::failure::Usage;
use crate::sink::Sink;
use anyhow::Result;
use std::io::Write;
use warpfold_ladder::{Error, Rung, Text, faulty, find};

pub(super) fn run(args: &ShowArgs) -> Result<()> {
    let rung =
        find(&args.id).ok_or_else(|| super::usage(&Error::NoRung { id: args.id.clone() }))?;
    if args.faulty {
        return faulty(rung);
    }
    let texts: Vec<_> = rung.texts.iter().map(|t| format!("{t} ({})", t.title())).collect();
    let dtypes: Vec<_> = rung.dtypes.iter().map(|d| d.name()).collect();
    let ops: Vec<_> = rung.ops.iter().map(|o| o.name()).collect();
    let mut sink = Sink::open(None)?;
    writeln!(sink, "{}: {}", rung.id, rung.title)?;
    for (name, text) in [
        ("from", texts.join("; ").as_str()),
        ("teaches", rung.teaches),
        ("changes", rung.change),
        ("expected", rung.expectation),
        ("the listing", rung.fault),
        ("launches", &rung.plan.to_string()),
        ("blocks", &rung.blocks.to_string()),
        ("types", &dtypes.join(", ")),
        ("operations", &ops.join(", ")),
    ] {
        writeln!(sink, "  {name:11}  {text}")?;
    }
    write!(sink, "\n{}", rung.source())?;
    sink.commit()
}

/// Runs every listing that a fault of the texts is shown by.
pub(super) fn faults() -> Result<()> {
    let mut sink = Sink::open(None)?;
    write!(sink, "{}", faulty::page()?)?;
    sink.commit()
}

/// Runs the classic listing, to show what it gets wrong.
fn faulty(rung: &Rung) -> Result<()> {
    let showings = faulty::show(rung)?;
    if showings.is_empty() {
        return Err(Usage::new(format!(
            "{} has no fault that could be shown: {}",
            rung.id, rung.fault
        ))
        .hint(format!("warpfold ladder show {} shows the rung", rung.id))
        .into());
    }
    let mut sink = Sink::open(None)?;
    writeln!(sink, "{}: {}", rung.id, rung.fault)?;
    let mut shown = "";
    for showing in &showings {
        if showing.source != shown {
            match showing.text {
                Text::Beyond => {
                    writeln!(sink, "\nfrom none of the texts: a mistake that is often made")?
                }
                text => {
                    let place = showing.printed.map_or(String::new(), |p| format!(" {}", p.place));
                    writeln!(sink, "\nafter {text}{place} ({}), in our words", text.title())?;
                }
            }
            if let Some(printed) = showing.printed {
                for same in printed.same {
                    writeln!(sink, "  as printed: {same}")?;
                }
                for (broken, ours) in printed.repairs {
                    writeln!(sink, "  repaired: {broken}; ours: {ours}")?;
                }
            }
            write!(sink, "\n{}", showing.source)?;
            shown = &showing.source;
        }
        writeln!(sink, "\n{}:", showing.how)?;
        for finding in &showing.findings {
            writeln!(sink, "  found: {finding}")?;
        }
        if let Some(halt) = &showing.halt {
            writeln!(sink, "  it does not finish: {halt}")?;
        }
        for got in &showing.got {
            let verdict = if *got == showing.wanted { "right, by luck" } else { "wrong" };
            writeln!(sink, "  got {got}, wanted {}: {verdict}", showing.wanted)?;
        }
        for astray in &showing.astray {
            writeln!(sink, "    {astray}")?;
        }
    }
    sink.commit()
}
