//! Columns some of whose rows have no value.

use crate::partial::Partial;
use crate::reduction::Reduction;
use crate::workers::Workers;
use warpfold_core::layout::{Input, View};
use warpfold_core::op::{AnyState, RawRun};
use warpfold_core::{DType, Error, Result};
use warpfold_threads::{Pieces, scoped};

/// Rows that are put together at once.
const BLOCK: usize = 1 << 16;

/// A column of one axis whose elements lie one after the other.
struct Column<'a> {
    input: &'a Input<'a>,
    dtype: DType,
    bytes: &'a [u8],
    rows: usize,
}

impl<'a> Column<'a> {
    /// # Errors
    /// An array of something else than numbers.
    fn new(input: &'a Input<'a>, view: &View<'a>) -> Result<Column<'a>> {
        let bytes = view.contiguous().filter(|_| view.shape().len() == 1).ok_or_else(|| {
            // Only slices have masks.
            Error::NotNumbers { found: format!("masked rows of shape {:?}", view.shape()) }
        })?;
        Ok(Column { input, dtype: view.dtype(), bytes, rows: view.len() })
    }

    /// Puts the rows with a value after `from` and before `to` together, and tells
    /// the gaps between them.
    fn gather(&self, from: usize, to: usize, into: &mut Block) {
        let size = self.dtype.size();
        into.gaps.clear();
        into.len = 0;
        let mut row = from;
        while row < to {
            let first = row;
            let valid = self.input.is_valid(row);
            while row < to && self.input.is_valid(row) == valid {
                row += 1;
            }
            if valid {
                into.append(&self.bytes[first * size..row * size]);
            } else {
                into.gaps.push(((first - from) as u64, (row - first) as u64));
            }
        }
    }
}

/// Values that were put together, in memory that suits every type.
#[derive(Default)]
struct Block {
    words: Vec<u64>,
    /// In bytes.
    len: usize,
    gaps: Vec<(u64, u64)>,
}

impl Block {
    fn append(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if self.words.len() * 8 < end {
            self.words.resize(end.div_ceil(8), 0);
        }
        bytemuck::cast_slice_mut(&mut self.words)[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}

impl Reduction {
    /// [`partial`](Self::partial) of a column with gaps.
    ///
    /// # Errors
    /// Those of [`partial`](Self::partial).
    pub(crate) fn partial_of_column(&self, input: &Input<'_>, start: u64) -> Result<Partial> {
        let view = input.view()?;
        let column = Column::new(input, &view)?;
        let (dtype, len) = (column.dtype, column.rows);
        if start.checked_add(len as u64).is_none() {
            return Err(Error::StartTooLarge { start, len });
        }
        self.check(dtype, 1)?;
        let mut partial = if self.named_axes().resolve(1)?[..] == [true] {
            let partial = self.all_rows(&column, start)?;
            if self.keeps_dims() { partial.reshaped(vec![1])? } else { partial }
        } else {
            self.each_row(&view, input, start)?
        };
        partial.add_missing(input.missing() as u64);
        Ok(partial)
    }

    /// The states of all rows of a column.
    fn all_rows(&self, column: &Column<'_>, start: u64) -> Result<Partial> {
        let question = self.of_all().settled(column.dtype, Some(column.bytes.len() as u64));
        let pieces = Pieces::new(column.rows.div_ceil(BLOCK));
        let work = || -> Result<Partial> {
            let mut workers: Workers = question.workers(column.dtype, 1)?;
            let mut block = Block::default();
            while let Some(piece) = question.until.take(&pieces) {
                let from = piece * BLOCK;
                column.gather(from, column.rows.min(from + BLOCK), &mut block);
                let run = RawRun { start: start + from as u64, items: block.bytes(), others: &[] };
                workers.absorb_around(run, block.gaps.iter().copied())?;
            }
            question.gather(column.dtype, workers)
        };
        let threads = question.most_readers().min(pieces.count()).max(1);
        let lost = || Error::Device {
            what: "a thread that reduces a column failed".into(),
            hint: "please report it".into(),
        };
        let mut parts = scoped(threads, work).into_iter();
        let mut part = || parts.next().map(|part| part.unwrap_or_else(|| Err(lost())));
        let mut all = part().unwrap_or_else(|| Err(lost()))?;
        while let Some(other) = part() {
            all.merge(&other?)?;
        }
        question.until.check()?;
        Ok(all)
    }

    /// The states of each row alone: of no element where there is no value.
    fn each_row(&self, view: &View<'_>, input: &Input<'_>, start: u64) -> Result<Partial> {
        let dtype = view.dtype();
        let all = self.partial_views([Some(view), None], start)?;
        let none: Vec<AnyState> = self.identities(dtype)?;
        let states = all.states().iter().enumerate();
        let states = states.map(|(row, states)| if input.is_valid(row) { states } else { &none });
        let (_, ops) = self.kinds();
        Partial::new(dtype, all.shape().to_vec(), ops, states.cloned().collect())
    }
}

/// Hands two arrays over, without the pairs of which one has no value.
///
/// # Errors
/// Arrays of something else than numbers; what `then` says.
pub(crate) fn complete_pairs<R>(
    both: &[Input<'_>; 2],
    then: impl FnOnce(&View<'_>, &View<'_>) -> Result<R>,
) -> Result<R> {
    let [left, right] = both;
    let views = [left.view()?, right.view()?];
    if left.missing() == 0 && right.missing() == 0 {
        return then(&views[0], &views[1]);
    }
    views[0].check_pair(&views[1])?;
    let mut blocks = [Block::default(), Block::default()];
    for ((input, view), block) in both.iter().zip(&views).zip(&mut blocks) {
        let column = Column::new(input, view)?;
        let size = column.dtype.size();
        for (row, item) in column.bytes.chunks_exact(size).enumerate() {
            if left.is_valid(row) && right.is_valid(row) {
                block.append(item);
            }
        }
    }
    let dtype = views[0].dtype();
    let rows = [blocks[0].len / dtype.size()];
    let [left, right] = blocks.each_ref().map(Block::bytes);
    then(&View::from_bytes(dtype, left, &rows)?, &View::from_bytes(dtype, right, &rows)?)
}
