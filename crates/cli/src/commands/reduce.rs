//! `reduce`, and with it `sum`, `mean` and their kin.

use super::{groups, partial};
use crate::args::{Global, ReduceArgs, SegmentArgs};
use crate::descriptors;
use crate::failure::{Usage, note};
use crate::progress::Bar;
use crate::ranks::Ranks;
use crate::report::{Array, Report};
use crate::{inputs, output};
use anyhow::Result;
use std::ffi::OsString;
use warpfold::{Op, Partial, Reduction};
use warpfold_files::stream::Cuts;
use warpfold_files::{OpenOptions, Source, stream};

pub(crate) fn run(args: &ReduceArgs, ranks: &Ranks) -> Result<()> {
    let rest = &args.rest;
    let global = &ranks.global;
    let opened = ranks.on_all((|| {
        output::check(&rest.output)?;
        let reduction = rest.rules.apply(Reduction::new(args.ops.iter().copied()));
        let reduction = ranks.apply(&rest.execution, rest.axes.apply(reduction))?;
        ranks.check(&rest.input.files)?;
        if !rest.groups.keys().is_empty() {
            return Ok(None);
        }
        let files = inputs::files(&rest.input.files)?;
        let named = open(&args.ops, &files, &rest.input.options(), global.quiet)?;
        let cuts = cuts(&rest.segments, &files)?;
        if ranks.are_many() {
            if cuts.is_some() {
                return Err(Usage::new("--mpi shares out rows, whatever segments they are of")
                    .hint("leave out --mpi, or give each process segments of its own")
                    .into());
            }
            named.iter().try_for_each(|named| partial::check_merges(named, &reduction))?;
        }
        Ok(Some((reduction, named, cuts)))
    })())?;
    let Some((reduction, named, cuts)) = opened else { return groups::reduce(args, ranks) };
    if args.ops.iter().any(|&op| counts_steps(op)) {
        named.iter().for_each(|named| note_unit(named, global));
    }
    let (names, inputs): (Vec<_>, Vec<_>) = named.into_iter().map(|n| (n.name, n.inputs)).unzip();
    let bar = Bar::new(global.quiet);
    let limit = rest.execution.memory_limit;
    rest.execution.begin();
    let outcomes = match cuts {
        None if ranks.are_many() => {
            let sources = inputs.iter().filter_map(|inputs| inputs.items.first());
            let sources: Vec<String> = sources.map(|source| source.name.clone()).collect();
            let partials = ranks.partials(inputs, &reduction, 0, limit, &bar)?;
            let Some(merged) = ranks.merged(partials)? else { return Ok(()) };
            let finished = |(partial, name): (Partial, String)| {
                let answer = partial.finish(reduction.rules());
                let wrong = |source| warpfold_files::Error::Reduce { name, source };
                let (missing, unit) = (partial.missing(), partial.unit().cloned());
                Ok(stream::Outcome { answer: answer.map_err(wrong)?, missing, unit })
            };
            merged.into_iter().zip(sources).map(finished).collect::<Result<_>>()?
        }
        None => stream::reduce_all(inputs, &reduction, limit, &bar)?,
        Some(cuts) => {
            let reduction = match rest.segments.initial {
                Some(initial) => initial.apply(reduction),
                None => reduction,
            };
            stream::reduce_segments(inputs, cuts, &reduction, limit, &bar)?
        }
    };
    drop(bar);
    rest.execution.explain();
    let named = names.into_iter().zip(outcomes);
    let array = |(name, outcome): (String, stream::Outcome)| {
        Array::new(name, outcome.answer, outcome.missing, outcome.unit.as_ref())
    };
    let arrays: Vec<Array> = named.map(array).collect();
    note_missing(&arrays, global);
    output::write(&Report { arrays, as_record: false }, &rest.output)
}

/// Where segments are, if they are asked for.
fn cuts(args: &SegmentArgs, files: &[OsString]) -> Result<Option<Cuts>> {
    let words = [&args.segments, &args.starts, &args.stops].into_iter().flatten();
    if words.chain(files).filter(|word| inputs::is_stdin(word)).count() > 1 {
        return Err(Usage::new("stdin can be read only once, but is named twice").into());
    }
    Ok(match (&args.segments, &args.starts, &args.stops) {
        (Some(word), ..) => Some(Cuts::Offsets(offsets(word)?)),
        (_, Some(starts), Some(stops)) => {
            Some(Cuts::StartsStops(offsets(starts)?, offsets(stops)?))
        }
        _ => None,
    })
}

/// The offsets of segments: one array, of whatever format.
fn offsets(word: &OsString) -> Result<Source> {
    if inputs::is_stdin(word) {
        descriptors::check_stdin()?;
    }
    let mut sources = warpfold_files::open(word, &OpenOptions::default())?;
    let name = word.display();
    match sources.len() {
        1 => Ok(sources.remove(0)),
        n => Err(Usage::new(format!("{name}: offsets are one array or column, not {n}"))
            .hint("name one, such as offsets.npz:member or table.csv:column")
            .into()),
    }
}

/// The inputs of operations that take as many arrays.
pub(super) fn open(
    ops: &[Op],
    files: &[OsString],
    options: &OpenOptions,
    quiet: bool,
) -> Result<Vec<inputs::Named>> {
    match ops.iter().filter(|op| op.arity() == 2).count() {
        0 => inputs::arrays(files, options, quiet),
        n if n == ops.len() => inputs::pairs(files, options, quiet),
        _ => Err(Usage::new("dot takes two arrays and cannot share a pass with the others").into()),
    }
}

/// Whether the answer is a number that counts what the elements count, and says so nowhere.
fn counts_steps(op: Op) -> bool {
    matches!(op, Op::Range | Op::Mean | Op::Std | Op::Sum | Op::Norm1 | Op::NormInf)
}

/// Prints the units of numbers that have one.
pub(super) fn note_unit(named: &inputs::Named, global: &Global) {
    let unit = named.inputs.items.first().and_then(Source::unit);
    if let Some(unit) = unit.filter(|unit| !global.quiet && !unit.is_number()) {
        note(&format!("{}: integers that count {unit}", named.name));
    }
}

/// Says aloud that there were rows without a value.
fn note_missing(arrays: &[Array], global: &Global) {
    if global.quiet {
        return;
    }
    for array in arrays.iter().filter(|a| a.missing > 0) {
        let (n, name) = (array.missing, &array.name);
        let what = if n == 1 { "row has no value and was" } else { "rows have no value and were" };
        note(&format!("{name}: {n} {what} left out"));
    }
}
