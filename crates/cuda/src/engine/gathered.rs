//! Views whose elements kernels cannot find where they lie: misaligned ones, and those
//! of very many axes. Their rows are copied together first.

use super::Engine;
use super::answer::Answer;
use super::layout::Layout;
use super::parts::Part;
use super::route::{Launches, Machine};
use super::scratch::Scratch;
use super::strided::Strided;
use super::table::Table;
use super::tiles::LEAST_WORKSPACE;
use crate::Result;
use crate::device::{Address, Stream};

/// Rows that are copied together, and the launches that make their numbers.
pub(super) struct GatheredRows {
    /// Rows that are copied at once.
    outputs: usize,
    workspace: u64,
    first: Strided,
}

/// Rows in the workspace, as the walk over views knows them.
fn layout_of(at: Address, count: usize, stride: isize, len: usize, size: usize) -> Option<Layout> {
    let kept = [(count, [stride, 0])];
    let reduced = [(len, [size.cast_signed(), 0])];
    Layout::new(at, size, &kept, &reduced, false)
}

impl GatheredRows {
    /// The launches for a table, but for one of rows that are longer than the workspace.
    pub(super) fn plan(answer: Answer, table: &Table, device: Machine<'_>) -> Option<GatheredRows> {
        let workspace = table.all_row_bytes().min(device.workspace());
        let outputs = table.rows_in(workspace);
        if outputs == 0 {
            return None;
        }
        let count = table.largest_tile(outputs);
        let stride = table.row_bytes().cast_signed();
        // Memory is aligned to vectors.
        let layout = layout_of(0, count, stride, table.elements.len, table.dtype.size());
        let first = Strided::plan(answer, &layout?, device)?;
        Some(GatheredRows { outputs, workspace, first })
    }

    /// What these launches are like.
    pub(super) fn launches(&self, table: &Table) -> Launches {
        let Launches { workspace, .. } = self.first.launches();
        Launches {
            count: table.tiles(self.outputs).count(),
            workspace: workspace + self.workspace,
            ..self.first.launches()
        }
    }
}

impl Engine {
    /// Leaves the numbers of rows at `to` in the order of the walk, by the walk over
    /// views of copies in the stream's workspace, and says whether it did: not if memory
    /// is too short for a copy of a row.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `scratch` is the stream's.
    pub(super) unsafe fn launch_gathered_rows(
        &self,
        answer: Answer,
        table: &Table,
        plan: &GatheredRows,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let device = &*self.device;
        let (at, bytes) =
            scratch.workspace.reserve(device, stream, plan.workspace, LEAST_WORKSPACE)?;
        let outputs = table.rows_in(bytes.min(plan.workspace));
        if outputs == 0 {
            return Ok(false);
        }
        // Vectors reach into what lies between rows: of that nothing comes into an answer,
        // but it is not read before it was written.
        // SAFETY: the memory is the workspace, which nobody else uses.
        unsafe { device.fill(stream, at, 0, bytes.min(table.all_row_bytes()))? };
        let whole = Part::whole(&table.elements);
        for some in table.tiles(outputs) {
            // SAFETY: the elements are the table's; the workspace has room for so many
            // rows, which nobody else uses.
            let rows = unsafe { self.gather_rows(table, &some, &whole, at, stream)? };
            let layout =
                layout_of(rows.at[0], rows.count, rows.stride, rows.len, rows.dtype.size());
            let planned = layout.as_ref().map(|l| Strided::plan(answer, l, self.machine()));
            let (Some(layout), Some(Some(plan))) = (&layout, planned) else { return Ok(false) };
            let to = to + (some.first * answer.out.size()) as u64;
            // SAFETY: the rows were gathered before on the stream.
            unsafe { self.launch_strided(answer, layout, &plan, (to, None), scratch, stream)? };
        }
        Ok(true)
    }
}
