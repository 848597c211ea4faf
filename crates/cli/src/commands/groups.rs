//! `--by`: an answer for each group of rows.

use super::merge::{bytes, pair};
use crate::args::{
    ExecutionArgs, GroupArgs, InputArgs, OutputArgs, PartialArgs, ReduceArgs, StatsArgs,
};
use crate::failure::{Usage, note};
use crate::inputs;
use crate::output::{self, GroupReport, GroupRows};
use crate::progress::Bar;
use crate::ranks::Ranks;
use crate::sink::Sink;
use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use warpfold::{DType, Error, GroupColumn, GroupPartial, Op, Reduction, Rules, Threads};
use warpfold_files::groups::{self, Keyed};
use warpfold_files::{OpenOptions, open_keyed};

/// `reduce --by`.
pub(super) fn reduce(args: &ReduceArgs, ranks: &Ranks) -> Result<()> {
    let rest = &args.rest;
    ranks.on_all(check(&args.ops, rest.axes.is_given()))?;
    let reduction = rest.rules.apply(Reduction::new(args.ops.iter().copied()));
    let reduction = ranks.apply(&rest.execution, reduction)?;
    let rules = *reduction.rules();
    let (input, groups, execution) = (&rest.input, &rest.groups, &rest.execution);
    let asked = Asked { input, groups, execution, ranks };
    let Some(partial) = asked.partial(reduction, 0, false)? else { return Ok(()) };
    let report = report(&partial, |column, op, order| {
        partial.finish_op(column, op, &rules, order, Threads::All)
    })?;
    output::write_groups(&report, &rest.output)
}

/// `stats --by`.
pub(super) fn stats(args: &StatsArgs, ops: &[Op], ranks: &Ranks) -> Result<()> {
    let reduction = args.rules.apply(Reduction::new(ops.iter().copied()));
    let reduction = ranks.apply(&args.execution, reduction)?;
    let rules = *reduction.rules();
    let (input, groups, execution) = (&args.input, &args.groups, &args.execution);
    let asked = Asked { input, groups, execution, ranks };
    let Some(partial) = asked.partial(reduction, 0, true)? else { return Ok(()) };
    let report = report(&partial, |column, op, order| {
        let finish = |rules: &Rules| partial.finish_op(column, op, rules, order, Threads::All);
        // As without groups: other types of answers are meant for other operations, and
        // totals beyond their type are rounded.
        finish(&rules).or_else(|error| match &error {
            Error::InGroup { source, .. } => match **source {
                Error::UnsupportedOut { .. } => finish(&rules.out(None)),
                Error::Overflow { .. } if rules.out.is_none() => {
                    finish(&rules.out(Some(DType::F64)))
                }
                _ => Err(error),
            },
            // Dates have no sum.
            Error::UnsupportedUnit { .. } => Ok(GroupColumn::without_answers(op, order.len())),
            _ => Err(error),
        })
    })?;
    output::write_groups(&report, &args.output)
}

/// `partial --by`.
pub(super) fn partial(args: &PartialArgs, ranks: &Ranks) -> Result<()> {
    ranks.on_all(check(&args.ops, args.axes.is_given()))?;
    let reduction = Reduction::new(args.ops.iter().copied());
    let reduction = ranks.apply(&args.execution, reduction)?;
    let (input, groups, execution) = (&args.input, &args.groups, &args.execution);
    let asked = Asked { input, groups, execution, ranks };
    let Some(partial) = asked.partial(reduction, args.start, false)? else { return Ok(()) };
    write_state(&partial, &args.output)
}

/// `merge` of states of groups.
pub(super) fn merge(
    (first, head): (&OsString, &[u8]),
    others: &[OsString],
    state: Option<&Path>,
    rules: &Rules,
    args: &OutputArgs,
) -> Result<()> {
    let mut merged = read(first, head)?;
    for path in others {
        let other = read(path, &bytes(path)?)?;
        merged.merge(&other).with_context(|| pair(first, path))?;
    }
    if let Some(path) = state {
        return write_state(&merged, path);
    }
    let report = report(&merged, |column, op, order| {
        merged.finish_op(column, op, rules, order, Threads::All)
    })?;
    output::write_groups(&report, args)
}

fn read(path: &OsStr, bytes: &[u8]) -> Result<GroupPartial> {
    let name = || path.display().to_string();
    if !GroupPartial::is_one(bytes) {
        return Err(Usage::new(format!("{}: this is no state of groups, others are", name()))
            .hint("merge states that partial has made with the same flags")
            .into());
    }
    GroupPartial::from_bytes(bytes).with_context(name)
}

fn write_state(partial: &GroupPartial, path: &Path) -> Result<()> {
    let mut sink = Sink::open(Some(path))?;
    sink.write_all(&partial.try_to_bytes()?)?;
    sink.commit()
}

/// # Errors
/// Flags that groups do not have.
fn check(ops: &[Op], axes: bool) -> Result<()> {
    if axes {
        return Err(Usage::new("--by groups the rows of columns, which have no other axis")
            .hint("leave out --axis and --keepdims")
            .into());
    }
    if ops.iter().any(|op| op.arity() > 1) && ops.iter().any(|op| op.arity() == 1) {
        let what = "dot takes two arrays and cannot share a pass with the others";
        return Err(Usage::new(what).into());
    }
    Ok(())
}

/// What to read, and by which keys.
struct Asked<'a> {
    input: &'a InputArgs,
    groups: &'a GroupArgs,
    execution: &'a ExecutionArgs,
    ranks: &'a Ranks,
}

impl Asked<'_> {
    fn partial(
        &self,
        reduction: Reduction,
        start: u64,
        all_columns: bool,
    ) -> Result<Option<GroupPartial>> {
        let quiet = self.ranks.global.quiet;
        let options = OpenOptions { all_columns, ..self.input.options() };
        let keys = self.groups.keys();
        let tables = self.ranks.on_all((|| {
            let files = inputs::files(&self.input.files)?;
            let open = |file: &OsString| open_keyed(file, &keys, &options);
            Ok(files.iter().map(open).collect::<warpfold_files::Result<Vec<Keyed>>>()?)
        })())?;
        let mut question = self.groups.question(reduction, start, self.execution.memory_limit);
        let tables = self.ranks.tables(tables, &mut question);
        let bar = Bar::new(quiet);
        // `stats` leaves out what a column has no answer to.
        let reduce = if all_columns { groups::partial_of_some } else { groups::partial };
        let partial = reduce(tables, &question, &bar)?;
        drop(bar);
        let merged = self.ranks.merged(vec![partial])?.and_then(|mut merged| merged.pop());
        if let Some(partial) = merged.as_ref().filter(|_| !quiet) {
            note_left_out(partial);
        }
        Ok(merged)
    }
}

/// Says aloud which rows were left out.
fn note_left_out(partial: &GroupPartial) {
    let rows = |n: u64, what: &str| match n {
        1 => format!("1 row has no {what} and was left out"),
        n => format!("{n} rows have no {what} and were left out"),
    };
    if partial.omitted() > 0 {
        note(&rows(partial.omitted(), "key"));
    }
    for (name, _, missing) in partial.value_columns().filter(|column| column.2 > 0) {
        note(&format!("{name}: {}", rows(missing, "value")));
    }
}

/// The answers of all columns of values.
fn report(
    partial: &GroupPartial,
    finish: impl Fn(usize, Op, &[u32]) -> warpfold::Result<GroupColumn>,
) -> Result<GroupReport> {
    let order = partial.group_order(Threads::All)?;
    let ops: Vec<Op> = partial.ops().collect();
    let mut arrays = Vec::new();
    for (column, (name, ..)) in partial.value_columns().enumerate() {
        let columns = ops.iter().map(|&op| finish(column, op, &order));
        let columns = columns.collect::<warpfold::Result<_>>().with_context(|| name.to_string())?;
        let unit = partial.value_unit(column).cloned();
        arrays.push(GroupRows { name: name.into(), unit, columns });
    }
    let keys = partial.keys_of(&order)?;
    let key_names = partial.key_names().to_vec();
    Ok(GroupReport { key_names, keys, groups: order.len(), arrays })
}
