//! Views whose elements kernels cannot find where they lie: misaligned ones, and those
//! of very many axes. Their rows are copied together first.

use super::Engine;
use super::answer::Answer;
use super::layout::Layout;
use super::parts::{Part, parts};
use super::scratch::Scratch;
use super::table::Table;
use super::tiles::{LEAST_WORKSPACE, largest_workspace};
use crate::Result;
use crate::device::{Address, Stream};

impl Engine {
    /// Leaves the answers at `to` in the order of the walk, by the walk over views of
    /// rows in the stream's workspace, and says whether it did: not where a row is
    /// longer than that.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `scratch` is the stream's.
    pub(super) unsafe fn numbers_of_gathered_rows(
        &self,
        answer: Answer,
        table: &Table,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let device = &*self.device;
        let most = largest_workspace(device.limits());
        let all = table.outputs.len.saturating_mul(table.row_bytes()) as u64;
        let (at, bytes) = scratch.workspace.hold(device, stream, all.min(most), LEAST_WORKSPACE)?;
        let outputs = usize::try_from(bytes).unwrap_or(usize::MAX) / table.row_bytes().max(1);
        if outputs == 0 {
            return Ok(false);
        }
        // Vectors reach into what lies between rows: of that nothing comes into an answer,
        // but it is not read before it was written.
        // SAFETY: the memory is the workspace, which nobody else uses.
        unsafe { device.fill(stream, at, 0, bytes.min(all))? };
        let whole = Part::whole(&table.elements);
        for some in parts(&table.outputs.dims, outputs) {
            // SAFETY: the elements are the table's; the workspace has room for so many
            // rows, which nobody else uses.
            let rows = unsafe { self.gather_rows(table, &some, &whole, at, stream)? };
            let kept = [(rows.count, [rows.stride, 0])];
            let size = rows.dtype.size();
            let reduced = [(rows.len, [size.cast_signed(), 0])];
            let Some(layout) = Layout::new(rows.at[0], size, &kept, &reduced, false) else {
                return Ok(false);
            };
            let to = to + (some.first * answer.out.size()) as u64;
            // SAFETY: the rows were gathered before on the stream.
            if !unsafe { self.numbers_of_layout(answer, &layout, to, scratch, stream)? } {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
