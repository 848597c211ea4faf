//! `stats`: the usual questions, in one pass.

use super::groups;
use crate::args::StatsArgs;
use crate::progress::Bar;
use crate::ranks::Ranks;
use crate::report::{Array, OpAnswer, Report};
use crate::{inputs, output};
use anyhow::{Context, Result};
use warpfold::{DType, Error, Op, Partial, Reduction, Rules};

const OPS: [Op; 9] =
    [Op::Count, Op::Sum, Op::Mean, Op::Std, Op::Min, Op::Max, Op::ArgMin, Op::ArgMax, Op::CountNan];

pub(crate) fn run(args: &StatsArgs, ranks: &Ranks) -> Result<()> {
    let global = &ranks.global;
    let opened = ranks.on_all((|| {
        output::check(&args.output)?;
        let reduction = ranks.apply(&args.execution, args.rules.apply(Reduction::new(OPS)))?;
        ranks.check(&args.input.files)?;
        if !args.groups.keys().is_empty() {
            return Ok(None);
        }
        let files = inputs::files(&args.input.files)?;
        Ok(Some((reduction, inputs::all_arrays(&files, &args.input.options(), global.quiet)?)))
    })())?;
    let Some((reduction, named)) = opened else { return groups::stats(args, &OPS, ranks) };
    let (names, inputs): (Vec<_>, Vec<_>) = named.into_iter().map(|n| (n.name, n.inputs)).unzip();
    let bar = Bar::new(global.quiet);
    let limit = args.execution.memory_limit;
    args.execution.begin();
    let partials = ranks.partials(inputs, &reduction, 0, limit, &bar)?;
    let Some(partials) = ranks.merged(partials)? else { return Ok(()) };
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
