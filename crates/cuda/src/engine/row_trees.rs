//! Rows folded by the fixed tree and made numbers in one launch:
//! `kernels/row_tree.cuh`.

use super::Engine;
use super::answer::Answer;
use super::catalogue::{DEPTH, MOST_LEVELS, TREE_ROW_BLOCKS, TREE_ROW_THREADS};
use super::kernels::Program;
use super::parts::Part;
use super::route::{Launches, Machine};
use super::rows::Rows;
use super::scratch::Scratch;
use super::table::{Table, unit};
use super::tiles::{InPlace, LEAST_WORKSPACE, in_place};
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::op::tree::{BLOCK, LANES};

const THREADS: usize = TREE_ROW_THREADS;
const BLOCKS: u32 = TREE_ROW_BLOCKS as u32;
const WARP: usize = 32;
/// Bytes of a vector.
const VECTOR: usize = 16;
/// Of rows of several leaves there must be one for so many blocks that run at
/// once: else blocks had better share a row.
const BLOCKS_OF_A_ROW: usize = 2;

/// How rows are shared by the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sharing {
    /// Lanes of a row, a power of two.
    lanes: usize,
    /// Elements that the first vector of a row may have before it, at most.
    slack: usize,
    /// Rows of a warp, a power of two.
    tile: usize,
}

impl Sharing {
    /// For `count` rows of `len` elements of `size` bytes that begin at multiples
    /// of `unit` bytes, on a device that runs `warps` warps at once.
    fn of(count: usize, len: usize, size: usize, unit: usize, warps: usize) -> Sharing {
        let each = VECTOR / size;
        let slack = (VECTOR - unit.min(VECTOR)) / size;
        let vectors = len.saturating_add(slack).div_ceil(each).min(LANES / each);
        let lanes = vectors.next_power_of_two();
        // All lanes make numbers, unless warps would lack rows.
        let most = (count / warps.max(1)).max(1);
        let tile = (1 << most.ilog2()).clamp(WARP / lanes, WARP);
        Sharing { lanes, slack, tile }
    }
}

/// Rows that a fixed tree folds, and how they are brought to launches.
pub(super) struct RowTrees {
    /// How they are folded where they lie; else they are copied together, so many
    /// outputs at a time.
    in_place: Option<InPlace>,
    outputs: usize,
    /// Bytes of the workspace for copies.
    workspace: u64,
    first: Fold,
    at_once: u32,
}

/// The launch for some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fold {
    sharing: Sharing,
    launch: Launch,
    /// The most rows of a launch.
    most: usize,
}

impl Fold {
    /// For rows of which a vector begins at multiples of `unit` bytes.
    fn of(answer: Answer, count: usize, len: usize, unit: usize, device: Machine<'_>) -> Fold {
        let warps = device.blocks_at_once(BLOCKS) as usize * THREADS / WARP;
        let sharing = Sharing::of(count, len, answer.dtype.size(), unit, warps);
        // As many as a grid takes.
        let most = (sharing.tile * THREADS / WARP) << 30;
        Fold { sharing, launch: sharing.launch(count.min(most)), most }
    }
}

impl Sharing {
    /// The launch for so many rows.
    fn launch(self, count: usize) -> Launch {
        let blocks = count.div_ceil(self.tile).div_ceil(THREADS / WARP);
        Launch::linear(u32::try_from(blocks).unwrap_or(u32::MAX), THREADS as u32)
    }
}

/// Whether so many rows of `len` elements are folded so: not few rows that are long.
pub(super) fn folds_rows(count: usize, len: usize, device: Machine<'_>) -> bool {
    let few = count < device.blocks_at_once(BLOCKS) as usize / BLOCKS_OF_A_ROW;
    len <= BLOCK << MOST_LEVELS && (len <= BLOCK || !few)
}

impl RowTrees {
    /// The launches for a table, but for one of few rows that are long.
    pub(super) fn plan(answer: Answer, table: &Table, device: Machine<'_>) -> Option<RowTrees> {
        let len = table.elements.len;
        if !folds_rows(table.outputs.len, len, device) {
            return None;
        }
        let at_once = device.blocks_at_once(BLOCKS);
        if let Some(rows) = in_place(table) {
            let at = rows.launches(table).next().map_or(0, |(_, at)| at[0]);
            let unit = unit(&[at, rows.stride.unsigned_abs() as u64]) as usize;
            let first = Fold::of(answer, rows.count, len, unit, device);
            let (in_place, outputs) = (Some(rows), table.outputs.len);
            return Some(RowTrees { in_place, outputs, workspace: 0, first, at_once });
        }
        let workspace = device.workspace().min(table.all_row_bytes());
        let outputs = table.rows_in(workspace);
        let first = Fold::of(answer, table.largest_tile(outputs), len, VECTOR, device);
        let plan = RowTrees { in_place: None, outputs, workspace, first, at_once };
        (outputs > 0).then_some(plan)
    }

    /// Whether rows are copied together first.
    pub(super) fn gathers(&self) -> bool {
        self.in_place.is_none()
    }

    /// What these launches are like.
    pub(super) fn launches(&self, answer: Answer, table: &Table) -> Launches {
        let count = match &self.in_place {
            Some(rows) => rows.launches(table).count(),
            None => table.tiles(self.outputs).count(),
        };
        Launches {
            kernel: Program::RowTrees(answer.dtype).name(),
            count,
            launch: self.first.launch,
            blocks_at_once: self.at_once,
            bytes_of_a_thread: DEPTH * VECTOR,
            workspace: self.workspace,
        }
    }
}

impl Engine {
    /// Leaves the numbers of rows at `to` in the order of the walk, and says whether it
    /// did: not if memory is too short for a copy of a row.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `scratch` is the stream's.
    pub(super) unsafe fn launch_row_trees(
        &self,
        answer: Answer,
        table: &Table,
        plan: &RowTrees,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let (len, size) = (table.elements.len, answer.out.size());
        if let Some(rows) = &plan.in_place {
            for (first, at) in rows.launches(table) {
                let now = Rows {
                    dtype: table.dtype,
                    arrays: 1,
                    at,
                    stride: rows.stride,
                    count: rows.count,
                    len,
                    start: 0,
                };
                let to = to + (first * size) as u64;
                // SAFETY: passed on from the caller.
                unsafe { self.fold_rows(answer, &now, to, rows.step, stream)? };
            }
            return Ok(true);
        }

        let device = &*self.device;
        let (at, bytes) =
            scratch.workspace.reserve(device, stream, plan.workspace, LEAST_WORKSPACE)?;
        let outputs = table.rows_in(bytes.min(plan.workspace));
        if outputs == 0 {
            return Ok(false);
        }
        let whole = Part::whole(&table.elements);
        for some in table.tiles(outputs) {
            // SAFETY: the elements are the table's; the workspace has room for so
            // many rows, which nobody else uses.
            let rows = unsafe { self.gather_rows(table, &some, &whole, at, stream)? };
            let to = to + (some.first * size) as u64;
            // SAFETY: the rows were gathered before on the stream.
            unsafe { self.fold_rows(answer, &rows, to, 1, stream)? };
        }
        Ok(true)
    }

    /// Leaves the number of each row at `to`, `step` numbers apart.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into), for every row.
    unsafe fn fold_rows(
        &self,
        answer: Answer,
        rows: &Rows,
        to: Address,
        step: usize,
        stream: Stream,
    ) -> Result<()> {
        let kernel = self.program(Program::RowTrees(answer.dtype))?;
        let unit = unit(&[rows.at[0], rows.stride.unsigned_abs() as u64]) as usize;
        let Fold { sharing, most, .. } =
            Fold::of(answer, rows.count, rows.len, unit, self.machine());
        let Sharing { lanes, slack, tile } = sharing;
        for first in (0..rows.count).step_by(most) {
            let count = (rows.count - first).min(most);
            let launch = sharing.launch(count);
            let arguments = [
                Argument::from(rows.row(first)[0]),
                Argument::from(count as u64),
                Argument::from(rows.stride as i64),
                Argument::from(rows.len as u64),
                Argument::from(lanes.trailing_zeros()),
                Argument::from(slack as u32),
                Argument::from(tile as u32),
                Argument::from(to + (first * step * answer.out.size()) as u64),
                Argument::from(step as u64),
                Argument::from(answer.ask as u32),
            ];
            // SAFETY: the kernels have these parameters; they read the rows and
            // write the answers.
            unsafe { self.device.launch(stream, kernel, &launch, &arguments)? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(count: usize, len: usize, size: usize, unit: usize) -> (usize, usize, usize) {
        let Sharing { lanes, slack, tile } = Sharing::of(count, len, size, unit, 1000);
        (lanes, slack, tile)
    }

    #[test]
    fn rows_have_as_many_lanes_as_vectors() {
        let many = 1 << 20;
        assert_eq!(sharing(many, 1, 4, 16), (1, 0, 32));
        assert_eq!(sharing(many, 16, 4, 16), (4, 0, 32));
        assert_eq!(sharing(many, 17, 4, 16), (8, 0, 32));
        assert_eq!(sharing(many, 100_000, 4, 16), (16, 0, 32));
        assert_eq!(sharing(many, 3, 8, 16), (2, 0, 32));
        assert_eq!(sharing(many, 100_000, 8, 16), (32, 0, 32));
        assert_eq!(sharing(many, 100_000, 2, 16), (8, 0, 32));
    }

    #[test]
    fn rows_between_vectors_have_room_for_one_more() {
        assert_eq!(sharing(1 << 20, 16, 4, 4), (8, 3, 32));
        assert_eq!(sharing(1 << 20, 13, 4, 4), (4, 3, 32));
        assert_eq!(sharing(1 << 20, 14, 4, 8), (4, 2, 32));
        assert_eq!(sharing(1 << 20, 1, 2, 2), (1, 7, 32));
    }

    #[test]
    fn few_rows_are_spread_over_all_warps() {
        assert_eq!(sharing(3, 100, 4, 16), (16, 0, 2));
        assert_eq!(sharing(4000, 100, 4, 16), (16, 0, 4));
        assert_eq!(sharing(4000, 16, 4, 16), (4, 0, 8));
        assert_eq!(sharing(0, 100, 8, 16), (32, 0, 1));
    }
}
