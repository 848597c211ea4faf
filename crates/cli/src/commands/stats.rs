//! `stats`: the usual questions, in one pass.

use super::groups;
use crate::args::{Global, StatsArgs};
use crate::progress::Bar;
use crate::report::{Array, OpAnswer, Report};
use crate::{inputs, output};
use anyhow::{Context, Result};
use warpfold::{DType, Error, Op, Partial, Reduction, Rules};
use warpfold_files::stream;

const OPS: [Op; 9] =
    [Op::Count, Op::Sum, Op::Mean, Op::Std, Op::Min, Op::Max, Op::ArgMin, Op::ArgMax, Op::CountNan];

pub(crate) fn run(args: &StatsArgs, global: &Global) -> Result<()> {
    output::check(&args.output)?;
    if !args.groups.keys().is_empty() {
        return groups::stats(args, &OPS, global);
    }
    let reduction = args.execution.apply(args.rules.apply(Reduction::new(OPS)));
    let files = inputs::files(&args.input.files)?;
    let named = inputs::all_arrays(&files, &args.input.options(), global.quiet)?;
    let (names, inputs): (Vec<_>, Vec<_>) = named.into_iter().map(|n| (n.name, n.inputs)).unzip();
    let bar = Bar::new(global.quiet);
    let limit = args.execution.memory_limit;
    args.execution.begin();
    let partials = stream::partials(inputs, &reduction, 0, limit, &bar)?;
    drop(bar);
    args.execution.explain();
    let mut arrays = Vec::with_capacity(partials.len());
    for (name, partial) in names.into_iter().zip(partials) {
        let answers = OPS.into_iter().map(|op| finish(&partial, op, reduction.rules()));
        arrays.push(Array {
            answers: answers.collect::<Result<_>>().with_context(|| name.clone())?,
            shape: partial.shape().to_vec(),
            missing: partial.missing(),
            name,
        });
    }
    output::write(&Report { arrays, as_record: true }, &args.output)
}

/// One answer; none where nothing has no smallest element, and dates no sum. A type asked for
/// that an operation does not answer in, such as a position in f64, is meant
/// for the others. A total of integers beyond their type is no reason to withhold
/// the other answers: it is rounded to a float, and looks like one.
fn finish(partial: &Partial, op: Op, rules: &Rules) -> Result<OpAnswer> {
    let answer = partial.finish_op(op, rules).or_else(|error| match error {
        Error::UnsupportedOut { .. } => partial.finish_op(op, &rules.out(None)),
        Error::Overflow { .. } if rules.out.is_none() => {
            partial.finish_op(op, &rules.out(Some(DType::F64)))
        }
        error => Err(error),
    });
    match answer {
        Ok(column) => Ok(OpAnswer::new(op, Some(column), partial.unit())),
        Err(Error::Empty { .. } | Error::UnsupportedUnit { .. }) => {
            Ok(OpAnswer::new(op, None, partial.unit()))
        }
        Err(error) => Err(error.into()),
    }
}
