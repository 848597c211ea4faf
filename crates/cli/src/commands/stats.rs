//! `stats`: the usual questions, in one pass.

use crate::args::{Global, StatsArgs};
use crate::progress::Bar;
use crate::report::{Array, OpAnswer, Report};
use crate::{inputs, output};
use anyhow::{Context, Result};
use warpfold::{Error, Op, Partial, Reduction, Rules};
use warpfold_files::stream;

const OPS: [Op; 9] =
    [Op::Count, Op::Sum, Op::Mean, Op::Std, Op::Min, Op::Max, Op::ArgMin, Op::ArgMax, Op::CountNan];

pub(crate) fn run(args: &StatsArgs, global: &Global) -> Result<()> {
    output::check(&args.output)?;
    let reduction =
        args.execution.apply(args.accuracy.apply(args.rules.apply(Reduction::new(OPS))));
    let files = inputs::files(&args.input.files)?;
    let bar = Bar::new(global.quiet);
    let mut arrays = Vec::new();
    for named in inputs::all_arrays(&files, &args.input.options())? {
        let limit = args.execution.memory_limit;
        let partial = stream::partial(named.inputs, &reduction, 0, limit, &bar)?;
        let answers = OPS.into_iter().map(|op| finish(&partial, op, reduction.rules()));
        arrays.push(Array {
            answers: answers.collect::<Result<_>>().with_context(|| named.name.clone())?,
            shape: partial.shape().to_vec(),
            missing: partial.missing(),
            name: named.name,
        });
    }
    drop(bar);
    output::write(&Report { arrays, as_record: true }, &args.output)
}

/// One answer; none where nothing has no smallest element. A type asked for
/// that an operation does not answer in, such as a position in f64, is meant
/// for the others.
fn finish(partial: &Partial, op: Op, rules: &Rules) -> Result<OpAnswer> {
    let answer = partial.finish_op(op, rules).or_else(|error| match error {
        Error::UnsupportedOut { .. } => partial.finish_op(op, &rules.out(None)),
        error => Err(error),
    });
    match answer {
        Ok(column) => Ok(OpAnswer { op, column: Some(column) }),
        Err(Error::Empty { .. }) => Ok(OpAnswer { op, column: None }),
        Err(error) => Err(error.into()),
    }
}
