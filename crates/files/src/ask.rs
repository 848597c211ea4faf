//! One question about one column of a file.

use crate::stream::{Inputs, Silent, reduce};
use crate::{ColumnSelector, OpenOptions, Result, open};
use std::ffi::OsStr;
use warpfold::{Answer, DType, Op, Reduction};

/// Reduces one column of a table, a member of an archive, or a field of records. `column` is
/// its name, or its place counted from 1. Rows without a value are left out.
///
/// ```
/// use warpfold::{Op, Reduction};
/// use warpfold_files::reduce_column;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("t.csv");
/// std::fs::write(&path, "fruit,price\napple,0.1\npear,\nplum,0.2\n")?;
/// let prices = reduce_column(&path, "price", &Reduction::new([Op::Count, Op::ArgMax]))?;
/// assert_eq!(prices.to_string(), "count: 2\nargmax: 2");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What else can be said of a file (a type, a delimiter, several columns) says [`open`].
///
/// # Errors
/// A file that cannot be read or is damaged; a column that it does not have, where the message
/// lists those that it has, or that has no numbers; errors of [`Reduction::run`].
pub fn reduce_column(
    input: impl AsRef<OsStr>,
    column: impl Into<ColumnSelector>,
    question: &Reduction,
) -> Result<Answer> {
    let options = OpenOptions { columns: vec![column.into()], ..OpenOptions::default() };
    let inputs = Inputs { items: open(input, &options)?, others: Vec::new() };
    reduce(inputs, question, None, &Silent).map(|outcome| outcome.answer)
}

macro_rules! asked {
    ($($name:ident, $op:ident, $what:literal, $of:literal;)*) => {$(
        #[doc = concat!($what, " of one column, rounded once to an `f64`: as [`reduce_column`] has it.")]
        ///
        /// ```
        /// # let folder = tempfile::tempdir()?;
        /// # let path = folder.path().join("t.csv");
        /// std::fs::write(&path, "fruit,price\napple,0.1\npear,\nplum,0.2\n")?;
        #[doc = concat!("assert_eq!(warpfold_files::", stringify!($name), "(&path, \"price\")?, ", $of, ");")]
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        /// Those of [`reduce_column`].
        pub fn $name(input: impl AsRef<OsStr>, column: impl Into<ColumnSelector>) -> Result<f64> {
            let answer = reduce_column(input, column, &Reduction::of(Op::$op).out(DType::F64))?;
            Ok(answer.value().map_or(f64::NAN, |value| value.first().to_f64()))
        }
    )*};
}
asked! {
    sum, Sum, "The exact sum", "0.30000000000000004";
    mean, Mean, "The exact mean", "0.15000000000000002";
    min, Min, "The smallest number", "0.1";
    max, Max, "The largest number", "0.2";
}
