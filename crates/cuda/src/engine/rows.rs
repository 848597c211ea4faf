//! Rows of equal length, each reduced to a state of its own.

use super::plan::{MOST_ROWS, plan_rows};
use super::scratch::Scratch;
use super::table::offset;
use super::{Array, Engine, Input, check, kernels};
use crate::device::{Address, Stream};
use crate::{Error, Result};
use warpfold_core::DType;
use warpfold_core::op::Kind;

/// Rows in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) dtype: DType,
    /// How many arrays.
    pub(super) arrays: usize,
    /// The first element of the first row, in each array.
    pub(super) at: [Address; 2],
    /// The bytes from row to row, the same in both arrays.
    pub(super) stride: isize,
    /// How many rows.
    pub(super) count: usize,
    /// Elements of a row, one after the other.
    pub(super) len: usize,
    /// The position of each row's first element.
    pub(super) start: u64,
}

impl Rows {
    /// Where a row begins, in each array.
    pub(super) fn row(&self, row: usize) -> [Address; 2] {
        offset(self.at, [row.cast_signed() * self.stride; 2])
    }

    /// The second array's part of a row.
    pub(super) fn others(&self, at: [Address; 2]) -> Option<Address> {
        (self.arrays > 1).then_some(at[1])
    }
}

impl Engine {
    /// Leaves the payload of each row at `to`, `out_words` words apart, without
    /// a wait.
    ///
    /// # Safety
    /// As for [`reduce_into`](Self::reduce_into), for every row; `scratch` is
    /// the stream's.
    pub(super) unsafe fn reduce_rows(
        &self,
        kind: Kind,
        rows: &Rows,
        scratch: &mut Scratch,
        to: Address,
        out_words: u64,
        stream: Stream,
    ) -> Result<()> {
        let Rows { dtype, len, start, arrays, .. } = *rows;
        if arrays != 1 + usize::from(kind.takes_pairs()) {
            return Err(Error::Arrays { kind, given: arrays });
        }
        let len = len as u64;
        let most = MOST_ROWS as usize;
        let kernel = self.kernel(kind, dtype)?;
        for first in (0..rows.count).step_by(most) {
            let count = (rows.count - first).min(most);
            let at = rows.row(first);
            let to = to + 8 * out_words * first as u64;
            let rows_now = u32::try_from(count).unwrap_or(MOST_ROWS);
            let size = arrays * dtype.size();
            // What is no payload of one length has more to it than its kernel.
            let planned = || {
                kernels::payload_len(kind, dtype)
                    .and_then(|_| plan_rows(&kernel.capacity, self.shape, rows_now, len, size))
            };
            let like = (kind, dtype, rows_now, len);
            let known = scratch.rows_planned.filter(|&(other, _)| other == like);
            let (_, launch) =
                *scratch.rows_planned.insert(known.unwrap_or_else(|| (like, planned())));
            let Some(launch) = launch else {
                for row in 0..count {
                    let at = rows.row(first + row);
                    let array = Array { address: at[0], len, dtype };
                    let input = Input { array, others: rows.others(at), start };
                    let to = to + 8 * out_words * row as u64;
                    // SAFETY: passed on from the caller.
                    unsafe { self.launch(kind, input, scratch, to, stream)? };
                }
                continue;
            };
            for address in [Some(at[0]), rows.others(at)].into_iter().flatten() {
                check(Array { address, len, dtype })?;
            }
            let array = Array { address: at[0], len, dtype };
            let input = Input { array, others: rows.others(at), start };
            self.remember_states("rows", kind, &input, u64::from(rows_now), (launch, 0))?;
            let wide = launch.grid[0] > 1;
            let memory = if wide { scratch.for_rows(&*self.device, stream, rows_now)? } else { 0 };
            let others = rows.others(at).unwrap_or(0);
            let stride = (rows.stride as i64).cast_unsigned();
            let words = [at[0], others, len, start, stride, memory, to, out_words];
            let arguments = kernels::arguments(words, false);
            // SAFETY: the kernels have these parameters; they read the rows,
            // the caller's promise, and write the scratch memory, which has a
            // part for each row of several blocks, and the payloads.
            unsafe { self.device.launch(stream, kernel.id, &launch, &arguments)? };
        }
        Ok(())
    }
}
