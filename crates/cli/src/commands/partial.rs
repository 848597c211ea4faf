//! `partial`: a piece of the data, unfinished.

use super::{groups, reduce};
use crate::args::{Global, PartialArgs};
use crate::failure::Usage;
use crate::inputs;
use crate::progress::Bar;
use crate::sink::{self, Sink};
use anyhow::Result;
use std::io::Write;
use warpfold::{Partial, Reduction};
use warpfold_files::{Extent, stream};

pub(crate) fn run(args: &PartialArgs, global: &Global) -> Result<()> {
    sink::check(&args.output)?;
    if let Some(op) = (1..args.ops.len()).find(|&i| args.ops[..i].contains(&args.ops[i])) {
        return Err(Usage::new(format!("{} is named twice", args.ops[op])).into());
    }
    if !args.groups.keys().is_empty() {
        return groups::partial(args, global);
    }
    let reduction = Reduction::new(args.ops.iter().copied());
    let reduction = args.execution.apply(args.axes.apply(reduction));
    let files = inputs::files(&args.input.files)?;
    let mut arrays = reduce::open(&args.ops, &files, &args.input.options(), global.quiet)?;
    let (Some(named), true) = (arrays.pop(), arrays.is_empty()) else {
        return Err(Usage::new("a state holds one array, but several columns are chosen")
            .hint("write a state for each column")
            .into());
    };
    // Merging goes output by output. Pieces along an axis that stays have
    // outputs of their own.
    let ndim = named.inputs.items.first().map_or(0, |source| match &source.extent {
        Extent::Array { shape, .. } => shape.len(),
        Extent::Column { .. } => 1,
    });
    if reduction.named_axes().resolve(ndim).is_ok_and(|reduced| reduced.first() == Some(&false)) {
        return Err(Usage::new(
            "the data is split along axis 0, which is not reduced: there is nothing to merge",
        )
        .hint("reduce each piece and concatenate the answers, or reduce axis 0 too")
        .into());
    }
    let bar = Bar::new(global.quiet);
    let limit = args.execution.memory_limit;
    args.execution.begin();
    let partial = stream::partial(named.inputs, &reduction, args.start, limit, &bar)?;
    drop(bar);
    args.execution.explain();
    write(&partial, &args.output)
}

/// Writes a state.
///
/// # Errors
/// What the system says.
pub(super) fn write(partial: &Partial, path: &std::path::Path) -> Result<()> {
    let mut sink = Sink::open(Some(path))?;
    sink.write_all(&partial.to_bytes())?;
    sink.commit()
}
