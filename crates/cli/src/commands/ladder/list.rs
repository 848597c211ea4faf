//! `ladder list`: the rungs.

use crate::args::{ListArgs, TableOrJson};
use crate::output::grid;
use crate::sink::Sink;
use anyhow::Result;
use serde_json::json;
use std::io::Write;
use warpfold_ladder::{ALL, Rung};

pub(super) fn run(args: &ListArgs) -> Result<()> {
    let mut sink = Sink::open(None)?;
    match args.output_format {
        TableOrJson::Table => {
            let rows: Vec<_> =
                ALL.iter().map(|r| vec![r.id.into(), texts(r), r.title.into()]).collect();
            writeln!(sink, "{}", grid(&["rung", "from", "what it does"], rows, 3))?;
        }
        TableOrJson::Json => {
            let objects: Vec<_> = ALL.iter().map(|r| object(r).to_string()).collect();
            writeln!(sink, "[{}]", objects.join(",\n "))?;
        }
    }
    sink.commit()
}

/// The texts that have the rung.
pub(super) fn texts(rung: &Rung) -> String {
    rung.texts.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ")
}

fn object(rung: &Rung) -> serde_json::Value {
    let texts: Vec<_> = rung.texts.iter().map(|t| t.name()).collect();
    let dtypes: Vec<_> = rung.dtypes.iter().map(|d| d.name()).collect();
    let ops: Vec<_> = rung.ops.iter().map(|o| o.name()).collect();
    json!({
        "id": rung.id,
        "texts": texts,
        "title": rung.title,
        "teaches": rung.teaches,
        "fault": rung.fault,
        "change": rung.change,
        "expectation": rung.expectation,
        "plan": rung.plan.to_string(),
        "blocks": rung.blocks.to_string(),
        "dtypes": dtypes,
        "ops": ops,
    })
}
