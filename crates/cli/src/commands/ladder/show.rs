//! `ladder show`: one rung, with its kernel.

use crate::args::ShowArgs;
use crate::sink::Sink;
use anyhow::Result;
use std::io::Write;
use warpfold_ladder::{Error, find};

pub(super) fn run(args: &ShowArgs) -> Result<()> {
    let rung =
        find(&args.id).ok_or_else(|| super::usage(&Error::NoRung { id: args.id.clone() }))?;
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
