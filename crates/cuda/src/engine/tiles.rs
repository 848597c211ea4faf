//! Bringing a table to rows, and rows to payloads.
//!
//! Where rows lie in memory as such they are reduced in place, else they are
//! copied together in the workspace, as many outputs at a time as it has room
//! for. An output that does not fit comes in pieces, each with a payload.

use super::digits::may_be_lost;
use super::gather::{NONE, Step};
use super::parts::{Part, parts};
use super::rows::Rows;
use super::scratch::Scratch;
use super::table::{ROW_ALIGNMENT, Table, offset};
use super::{Array, Engine, Input, output};
use crate::device::{Address, Limits, Stream};
use crate::{Error, Result};
use warpfold_core::layout::{Dim, PerAxis};
use warpfold_core::op::Kind;

/// Bytes of the workspace of a stream: at most these, and at most this part of
/// the device's memory.
const WORKSPACE: u64 = 256 << 20;
const PART_OF_MEMORY: u64 = 16;

/// A workspace of fewer bytes is no use: too little memory is an error then.
pub(super) const LEAST_WORKSPACE: u64 = 64 << 10;

/// More launches than this for rows in place are not worth saving a copy...
const MANY_LAUNCHES: usize = 32;
/// ... unless each reads so many bytes.
const WORTH_A_LAUNCH: usize = 1 << 20;

/// Bytes of the workspace of a stream.
pub(super) fn largest_workspace(limits: &Limits) -> u64 {
    WORKSPACE.min(limits.memory / PART_OF_MEMORY).max(LEAST_WORKSPACE)
}

/// The states that are wanted of each output of a table.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) table: &'a Table,
    pub(super) kinds: &'a [Kind],
    /// The position of each output's first element.
    pub(super) start: u64,
}

impl Wanted<'_> {
    /// The words that each kind leaves of `len` elements from position `start`
    /// on, one behind the other.
    ///
    /// # Errors
    /// [`Error::NoKernel`].
    pub(super) fn words(&self, len: usize, start: u64) -> Result<Vec<usize>> {
        let dtype = self.table.dtype;
        let array = Array { address: 0, len: len as u64, dtype };
        let input = Input { array, others: (self.table.arrays > 1).then_some(0), start };
        let words = |&kind: &Kind| match output::len(kind, &input) {
            Some(bytes) => Ok(bytes.div_ceil(8)),
            None => Err(Error::NoKernel { kind, dtype }),
        };
        self.kinds.iter().map(words).collect()
    }

    /// The bytes of what is left of an output.
    ///
    /// # Errors
    /// [`Error::NoKernel`].
    fn payload(&self) -> Result<usize> {
        let words = self.words(self.table.elements.len, self.start)?;
        Ok(8 * words.iter().sum::<usize>().max(1))
    }

    /// The bytes of the workspace that serve best.
    ///
    /// # Errors
    /// [`Error::NoKernel`].
    pub(super) fn bytes(&self) -> Result<u64> {
        let table = self.table;
        let payload = self.payload()?;
        let (row, outputs) = match in_place(table) {
            Some(_) => (0, table.outputs.len),
            None => (table.row_bytes(), payloads_of(table)),
        };
        let all =
            table.outputs.len.saturating_mul(row).saturating_add(outputs.saturating_mul(payload));
        Ok((all as u64).saturating_add(LEAST_WORKSPACE))
    }

    /// Rows that are reduced at once in `bytes` bytes of the workspace.
    ///
    /// # Errors
    /// [`Error::NoKernel`].
    pub(super) fn rows_at_once(&self, bytes: u64) -> Result<usize> {
        let payload = self.payload()?;
        if in_place(self.table).is_some() {
            return Ok(usize::try_from(bytes).unwrap_or(usize::MAX) / payload);
        }
        Ok(Tiling::new(self.table, payload, bytes).outputs)
    }

    /// Whether outputs are reduced whole in `bytes` bytes of the workspace.
    ///
    /// # Errors
    /// [`Error::NoKernel`].
    pub(super) fn is_whole_in(&self, bytes: u64) -> Result<bool> {
        let payload = self.payload()?;
        Ok(in_place(self.table).is_some() || {
            let tiling = Tiling::new(self.table, payload, bytes);
            tiling.elements == self.table.elements.len
        })
    }
}

/// Payloads on the device, and whose they are.
pub(super) struct Batch {
    pub(super) at: Address,
    /// How many words they have, and how many there is room for.
    pub(super) used: usize,
    room: usize,
    pub(super) runs: Vec<Run>,
}

/// Outputs whose payloads follow one another: every `step`-th position of the
/// table's outputs from `first` on.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) first: usize,
    pub(super) step: usize,
    pub(super) count: usize,
    /// The rows that were reduced.
    pub(super) rows: Rows,
    /// The words of each kind.
    pub(super) words: Vec<usize>,
}

impl Batch {
    /// Outputs of so many words each that there is still room for.
    fn free(&self, words: &[usize]) -> usize {
        (self.room - self.used) / words.iter().sum::<usize>().max(1)
    }

    /// Hands over what there is.
    fn hand_over(&mut self, take: &mut Take<'_>) -> Result<()> {
        if self.runs.is_empty() {
            return Ok(());
        }
        take(self)?;
        self.used = 0;
        self.runs.clear();
        Ok(())
    }
}

/// Who takes payloads while they are on the device.
pub(super) type Take<'a> = dyn FnMut(&Batch) -> Result<()> + 'a;

/// How a table that is copied together goes through the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiling {
    /// Words of payloads that there is room for.
    room: usize,
    /// Where gathered rows begin, behind the payloads.
    rows: u64,
    /// Outputs that are gathered at once, and elements of each.
    outputs: usize,
    elements: usize,
}

/// The bytes from one gathered row of `len` elements to the next.
fn pitch(len: usize, size: usize) -> usize {
    (len * size).next_multiple_of(ROW_ALIGNMENT)
}

/// Payloads of a table that is copied together: each piece of an output that comes in pieces has one.
fn payloads_of(table: &Table) -> usize {
    table.outputs.len.max(64)
}

impl Tiling {
    /// What to do with `bytes` bytes, at least [`LEAST_WORKSPACE`], if rows are
    /// copied together.
    fn new(table: &Table, payload: usize, bytes: u64) -> Tiling {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let payloads = payloads_of(table).saturating_mul(payload).min(bytes / 2);
        let rows = payloads.next_multiple_of(256);
        let room = bytes.saturating_sub(rows);
        let fit = room / table.row_bytes().max(1);
        if fit > 0 {
            let outputs = fit.min(payloads / payload).max(1);
            let elements = table.elements.len;
            return Tiling { room: payloads / 8, rows: rows as u64, outputs, elements };
        }
        let elements = (room / table.arrays.max(1)) / ROW_ALIGNMENT * ROW_ALIGNMENT;
        let elements = elements / table.dtype.size();
        Tiling { room: payloads / 8, rows: rows as u64, outputs: 1, elements }
    }
}

impl Engine {
    /// Reduces a table that is not empty, and hands the payloads of its outputs,
    /// all kinds of each, to `take` whenever there is no room for more, and in
    /// the end. Does not wait.
    ///
    /// # Safety
    /// The elements of the table are in memory of this device, written by what
    /// comes before on the stream and by nobody until it was waited for; so are
    /// the `bytes` bytes of workspace at `at`, [`LEAST_WORKSPACE`] or more,
    /// which nobody else uses, and the scratch memory is the stream's.
    pub(super) unsafe fn reduce_table(
        &self,
        wanted: Wanted<'_>,
        (at, bytes): (Address, u64),
        scratch: &mut Scratch,
        stream: Stream,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let Wanted { table, start, .. } = wanted;
        let mut batch = Batch { at, used: 0, room: 0, runs: Vec::new() };
        if let Some(rows) = in_place(table) {
            batch.room = usize::try_from(bytes).unwrap_or(usize::MAX) / 8;
            let words = wanted.words(table.elements.len, start)?;
            for (first, at) in rows.launches(table) {
                let mut done = 0;
                while done < rows.count {
                    if batch.free(&words) == 0 {
                        batch.hand_over(take)?;
                    }
                    let count = (rows.count - done).min(batch.free(&words)).max(1);
                    let before = done.cast_signed() * rows.stride;
                    let now = Rows {
                        dtype: table.dtype,
                        arrays: table.arrays,
                        at: offset(at, [before; 2]),
                        stride: rows.stride,
                        count,
                        len: table.elements.len,
                        start,
                    };
                    let first = first + done * rows.step;
                    let words = words.clone();
                    let run = Run { first, step: rows.step, count, rows: now, words };
                    // SAFETY: rows of the table, and the workspace's payloads.
                    unsafe { self.add_rows(wanted, run, &mut batch, scratch, stream)? };
                    done += count;
                }
            }
            return batch.hand_over(take);
        }

        let Tiling { room, rows, outputs, elements } = Tiling::new(table, wanted.payload()?, bytes);
        batch.room = room;
        for some in parts(&table.outputs.dims, outputs) {
            for piece in parts(&table.elements.dims, elements) {
                let start = start + piece.first as u64;
                let words = wanted.words(piece.len, start)?;
                if batch.free(&words) < some.len {
                    batch.hand_over(take)?;
                }
                // SAFETY: the workspace has room for so many rows.
                let gathered =
                    unsafe { self.gather_rows(table, &some, &piece, at + rows, stream)? };
                let rows = Rows { start, ..gathered };
                let run = Run { first: some.first, step: 1, count: some.len, rows, words };
                // SAFETY: the rows lie in the workspace, like the payloads.
                unsafe { self.add_rows(wanted, run, &mut batch, scratch, stream)? };
                // Digits are made of the rows, which the next ones overwrite.
                if wanted.kinds.iter().any(|&kind| may_be_lost(kind, table.dtype)) {
                    batch.hand_over(take)?;
                }
            }
        }
        batch.hand_over(take)
    }

    /// Reduces rows to the next payloads.
    ///
    /// # Safety
    /// As for [`reduce_rows`](Self::reduce_rows), for the rows of the run.
    unsafe fn add_rows(
        &self,
        wanted: Wanted<'_>,
        run: Run,
        batch: &mut Batch,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<()> {
        let stride = run.words.iter().sum::<usize>();
        if run.count * stride > batch.room - batch.used {
            // Less than what one output leaves.
            let (address, len) = (batch.at, run.rows.len as u64);
            let why = "its state does not fit the workspace";
            return Err(Error::Array { address, len, dtype: run.rows.dtype, why });
        }
        let mut to = batch.at + 8 * batch.used as u64;
        for (&kind, &words) in wanted.kinds.iter().zip(&run.words) {
            // SAFETY: passed on from the caller; there is room for what is left.
            unsafe { self.reduce_rows(kind, &run.rows, scratch, to, stride as u64, stream)? };
            to += 8 * words as u64;
        }
        batch.used += run.count * stride;
        batch.runs.push(run);
        Ok(())
    }

    /// Copies a piece of some outputs together, row by row; the rows' `start`
    /// is for the caller to say.
    ///
    /// # Safety
    /// The elements of the table may be read, and as many rows of
    /// [`pitch`] bytes written at `to`, an array after the other.
    pub(super) unsafe fn gather_rows(
        &self,
        table: &Table,
        outputs: &Part,
        elements: &Part,
        to: Address,
        stream: Stream,
    ) -> Result<Rows> {
        let dtype = table.dtype;
        let size = dtype.size();
        let stride = pitch(elements.len, size);
        let from = offset(offset(table.at, outputs.offsets), elements.offsets);
        let at = [to, to + (outputs.len * stride) as u64];
        let aligned = table.is_aligned();
        for i in 0..table.arrays {
            let mut steps = Vec::with_capacity(outputs.dims.len() + elements.dims.len() + 1);
            if !aligned {
                steps.push(Step { len: size, from: 1, to: 1, ..NONE });
            }
            let mut packed = |dims: &[Dim], mut to: usize| {
                for dim in dims.iter().rev() {
                    let Dim { len, strides, .. } = *dim;
                    steps.push(Step { len, from: strides[i], to: to.cast_signed(), ..NONE });
                    to *= len;
                }
            };
            packed(&elements.dims, size);
            packed(&outputs.dims, stride);
            let size = if aligned { size } else { 1 };
            // SAFETY: passed on from the caller; the steps go through exactly
            // these elements.
            unsafe { self.gather(size, from[i], at[i], steps, stream)? };
        }
        Ok(Rows {
            dtype,
            arrays: table.arrays,
            at,
            stride: stride.cast_signed(),
            count: outputs.len,
            len: elements.len,
            start: 0,
        })
    }
}

/// How rows are reduced where they lie: launches of `count` rows, one for each
/// step of the other dimensions of the outputs.
pub(super) struct InPlace {
    launches: PerAxis<Dim>,
    pub(super) count: usize,
    pub(super) stride: isize,
    /// From row to row in the outputs' positions.
    pub(super) step: usize,
}

impl InPlace {
    /// The position of each launch's first output, and where its row is.
    pub(super) fn launches(&self, table: &Table) -> impl Iterator<Item = (usize, [Address; 2])> {
        // Launches go through the other dimensions, whose positions are cut in two
        // by that of the rows.
        parts(&self.launches, 1).map(|part| {
            let (outer, inner) = (part.first / self.step, part.first % self.step);
            (outer * self.count * self.step + inner, offset(table.at, part.offsets))
        })
    }
}

/// The rows of a table, if they can be reduced where they lie and few launches
/// go through all of them.
pub(super) fn in_place(table: &Table) -> Option<InPlace> {
    let dims = &table.outputs.dims;
    if !table.has_rows() {
        return None;
    }
    // Both arrays' rows have one stride.
    let even = |d: &Dim| table.arrays == 1 || d.strides[0] == d.strides[1];
    let longest = (0..dims.len()).filter(|&i| even(&dims[i])).max_by_key(|&i| dims[i].len);
    let mut launches = dims.clone();
    let (count, stride, step) = match longest {
        Some(i) => {
            let dim = launches.remove(i);
            (dim.len, dim.strides[0], dims[i + 1..].iter().map(|d| d.len).product())
        }
        None => (1, 0, 1),
    };
    let bytes = table.elements.len.saturating_mul(count).saturating_mul(table.dtype.size());
    let many = table.outputs.len / count > MANY_LAUNCHES;
    (!many || bytes >= WORTH_A_LAUNCH).then_some(InPlace { launches, count, stride, step })
}
