//! `ladder occupancy`: what a multiprocessor holds.

use crate::args::{OccupancyArgs, TextOrJson};
use crate::failure::Usage;
use crate::sink::Sink;
use anyhow::Result;
use serde_json::json;
use std::io::Write;
use warpfold_ladder::occupancy::{Block, KNOWN, Occupancy, multiprocessor};

pub(super) fn run(args: &OccupancyArgs) -> Result<()> {
    let known = multiprocessor(args.cc).ok_or_else(|| {
        let (major, minor) = args.cc;
        let all: Vec<_> =
            KNOWN.iter().map(|m| format!("{}.{}", m.capability.0, m.capability.1)).collect();
        Usage::new(format!("the limits of compute capability {major}.{minor} are not known"))
            .hint(format!("known are {}", all.join(", ")))
    })?;
    let block = Block { threads: args.block, registers: args.regs, shared: args.shared };
    let found = known.occupancy(block).map_err(|error| Usage::new(error.to_string()))?;
    let mut sink = Sink::open(None)?;
    match args.output_format {
        TextOrJson::Text => text(&found, &mut sink)?,
        TextOrJson::Json => writeln!(sink, "{}", json(&found))?,
    }
    sink.commit()
}

fn limits(found: &Occupancy) -> Vec<&'static str> {
    found.limited_by().map(|resource| resource.name()).collect()
}

fn text(found: &Occupancy, out: &mut dyn Write) -> std::io::Result<()> {
    let plural = |n: u32| if n == 1 { "" } else { "s" };
    let Block { threads, .. } = found.block;
    let (major, minor) = found.multiprocessor.capability;
    if let Some(why) = found.refusal() {
        writeln!(
            out,
            "a block of {threads} thread{} will not launch on compute capability {major}.{minor}, because {why}",
            plural(threads)
        )?;
        return found.advice().iter().try_for_each(|advice| writeln!(out, "- {advice}"));
    }
    writeln!(
        out,
        "{} block{} of {threads} thread{}: {} of {} warps ({:.0}%), limited by {}",
        found.blocks,
        plural(found.blocks),
        plural(threads),
        found.warps(),
        found.multiprocessor.warps,
        100.0 * found.part(),
        limits(found).join(" and "),
    )?;
    for (resource, room) in found.room {
        let room = if room == u32::MAX { "any number".into() } else { room.to_string() };
        writeln!(out, "  {:14} room for {room}", resource.name())?;
    }
    if let (Some(kib), [_, .., most]) = (found.carve_out(), found.multiprocessor.carve_outs) {
        writeln!(
            out,
            "  carve-out      {kib} of {most} KiB for shared memory; the L1 cache may have the rest"
        )?;
    }
    found.advice().iter().try_for_each(|advice| writeln!(out, "- {advice}"))
}

fn json(found: &Occupancy) -> serde_json::Value {
    let room = found.room.iter().map(|(resource, room)| {
        let room = (*room != u32::MAX).then_some(*room);
        (resource.name().replace(' ', "_"), json!(room))
    });
    let (major, minor) = found.multiprocessor.capability;
    json!({
        "capability": format!("{major}.{minor}"),
        "threads": found.block.threads,
        "registers": found.block.registers,
        "shared": found.block.shared,
        "blocks": found.blocks,
        "warps": found.warps(),
        "most_warps": found.multiprocessor.warps,
        "occupancy": found.part(),
        "limited_by": limits(found),
        "carve_out_kib": found.carve_out(),
        "will_not_launch": found.refusal(),
        "room": room.collect::<serde_json::Map<_, _>>(),
        "advice": found.advice(),
    })
}
