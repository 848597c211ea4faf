//! `partial`: a piece of the data, unfinished.

use super::{groups, reduce};
use crate::args::PartialArgs;
use crate::failure::Usage;
use crate::inputs::{self, Named};
use crate::progress::Bar;
use crate::ranks::Ranks;
use crate::sink::{self, Sink};
use anyhow::Result;
use std::io::Write;
use warpfold::{Partial, Reduction};
use warpfold_files::{Extent, stream};

pub(crate) fn run(args: &PartialArgs, ranks: &Ranks) -> Result<()> {
    let opened = ranks.on_all((|| {
        sink::check(&args.output)?;
        if let Some(op) = (1..args.ops.len()).find(|&i| args.ops[..i].contains(&args.ops[i])) {
            return Err(Usage::new(format!("{} is named twice", args.ops[op])).into());
        }
        let reduction = args.axes.apply(Reduction::new(args.ops.iter().copied()));
        let reduction = ranks.apply(&args.execution, reduction)?;
        ranks.check(&args.input.files)?;
        if !args.groups.keys().is_empty() {
            return Ok(None);
        }
        let files = inputs::files(&args.input.files)?;
        let options = args.input.options();
        let mut arrays = reduce::open(&args.ops, &files, &options, ranks.global.quiet)?;
        let (Some(named), true) = (arrays.pop(), arrays.is_empty()) else {
            return Err(Usage::new("a state holds one array, but several columns are chosen")
                .hint("write a state for each column")
                .into());
        };
        check_merges(&named, &reduction)?;
        Ok(Some((reduction, named)))
    })())?;
    let Some((reduction, named)) = opened else { return groups::partial(args, ranks) };
    let bar = Bar::new(ranks.global.quiet);
    let limit = args.execution.memory_limit;
    args.execution.begin();
    let partial = match ranks.are_many() {
        true => ranks.partials(vec![named.inputs], &reduction, args.start, limit, &bar)?,
        false => vec![stream::partial(named.inputs, &reduction, args.start, limit, &bar)?],
    };
    let merged = ranks.merged(partial)?.and_then(|mut partials| partials.pop());
    let Some(partial) = merged else { return Ok(()) };
    drop(bar);
    args.execution.explain();
    write(&partial, &args.output)
}

/// Whether states of pieces that are cut along the first axis merge: merging goes output by
/// output, and pieces along an axis that stays have outputs of their own.
///
/// # Errors
/// An axis that stays.
pub(super) fn check_merges(named: &Named, reduction: &Reduction) -> Result<()> {
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
    Ok(())
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
