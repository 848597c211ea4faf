//! Rows some of which have no value, cut up at the gaps.

use warpfold_core::op::RawRun;
use warpfold_core::{DType, Result};

/// A part of rows some of which have no value.
pub(crate) enum Piece<'a> {
    /// Rows with values.
    Values(RawRun<'a>),
    /// Rows without: the first, and how many.
    Gap(u64, u64),
}

/// Cuts rows up at their gaps.
///
/// # Errors
/// Those of `sink`.
pub(crate) fn around<'a>(
    run: RawRun<'a>,
    dtype: DType,
    gaps: impl Iterator<Item = (u64, u64)>,
    mut sink: impl FnMut(Piece<'a>) -> Result<()>,
) -> Result<()> {
    let mut values = run.items;
    let mut row = 0;
    for (first, len) in gaps {
        // Gaps from outside may lie anywhere: positions that do not exist are an
        // error of whoever absorbs them.
        let before = usize::try_from(first.saturating_sub(row)).unwrap_or(usize::MAX);
        let before = before.saturating_mul(dtype.size());
        let (items, rest) = values.split_at(before.min(values.len()));
        sink(Piece::Values(RawRun { start: run.start.saturating_add(row), items, others: &[] }))?;
        sink(Piece::Gap(run.start.saturating_add(first), len))?;
        values = rest;
        row = first.saturating_add(len);
    }
    let start = run.start.saturating_add(row);
    sink(Piece::Values(RawRun { start, items: values, others: &[] }))
}
