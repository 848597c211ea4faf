//! Outputs of few elements, several of them a thread's: `kernels/abreast.cuh`.

use super::Engine;
use super::answer::Answer;
use super::catalogue::{FEW_ELEMENTS, STRIDED_THREADS};
use super::column_table::ColumnTable;
use super::kernels::{Program, Tally};
use super::layout::{Layout, Parameters, Row};
use super::route::{Launches, Machine, NARROW};
use super::scratch::Scratch;
use super::table::{ROW_ALIGNMENT, Table};
use crate::Result;
use crate::device::{Address, Launch, Stream};
use warpfold_core::DType;

/// Threads of outputs abreast that keep a device busy.
const LEAST_THREADS: usize = 1 << 14;
/// Elements of each output that are under way at once.
const AT_ONCE: usize = 4;

/// The most elements of outputs side by side in memory whose sums have no bound, of floats. Measured on an
/// H200: columns of 18 to 32 take 0.6 to 1.0 of the time of other walks, and those of 64 longer.
const SUMMED_ELEMENTS: usize = 32;
/// Rows of so many bytes and more, in whole vectors, are faster as rows.
const ROWS: usize = 32;
/// The same of rows of two bytes an element, of which sums are not asked.
const SHORT_ROWS: usize = 24;
/// Elements of columns of bytes, and of halves of a word, that are faster as columns where no
/// sum of floats is asked. These and rows of one vector were measured on an H200 over 131 tables
/// drawn at random.
const COLUMNS: [usize; 2] = [5, 8];

/// Outputs that a thread has of a table, if these are many and have few elements (or it is `forced`):
/// `OUTPUTS_ABREAST` in the kernels. `omits` says that NaNs are omitted, which rows and columns do not.
pub(super) fn outputs_of_a_thread(
    tally: Tally,
    table: &Table,
    omits: bool,
    forced: bool,
) -> Option<usize> {
    tally.abreast().filter(|_| !omits || tally.omits_abreast())?;
    let (size, len) = (table.dtype.size(), table.elements.len);
    let outputs = if size == 1 { 8 } else { 16 / size };
    let beside = table.outputs.dims.last().is_some_and(|d| d.strides[0].unsigned_abs() == size);
    let sums = tally == Tally::Sums && table.dtype.is_float();
    let most = if sums && beside { SUMMED_ELEMENTS } else { FEW_ELEMENTS };
    if !(1..=most).contains(&len) {
        return None;
    }
    if forced {
        return Some(outputs);
    }
    // Accumulators of few floats are so much faster than those of any number that places may
    // have fewer outputs than there is room for.
    let last = table.outputs.dims.last()?;
    let full = last.len >= 4 * outputs || last.len.is_multiple_of(outputs);
    let few = has_few_floats(tally, table.dtype);
    let row = len * size;
    // Rows of a vector that follow each other, or of half of one of short elements.
    let vectors = (row == ROW_ALIGNMENT || row == ROW_ALIGNMENT / 2 && size <= 2)
        && last.strides[0] == row.cast_signed();
    let rows = table.has_few_rows()
        && (row >= ROWS && row.is_multiple_of(ROW_ALIGNMENT)
            || row >= SHORT_ROWS && size == 2 && !few
            || vectors && (size <= 2 || !few));
    let tall = size <= 2 && !few && len >= COLUMNS[size - 1];
    let wide = |c: ColumnTable<'_>| {
        c.takes_one_launch() && (c.tables() == 1 || c.columns * size >= NARROW)
    };
    let columns = || tall && ColumnTable::of(table).is_some_and(wide);
    let tables = !omits && tally.has_rows(table.dtype) && (rows || columns());
    let many = table.outputs.len >= LEAST_THREADS * outputs;
    // Their answers cost less than those of other walks whatever elements are like; of elements of two bytes
    // views take 0.55 to 0.9 of the time for variances, and 0.5 to 1.1 of that for products.
    let fewest = few
        && match tally {
            Tally::Products => size > 2,
            Tally::Variances => size > 2 && len <= AT_ONCE,
            _ => len <= AT_ONCE,
        };
    (fewest || many && (full || few) && !tables).then_some(outputs)
}

/// Whether accumulators are those of few floats: `kernels/few.cuh`.
fn has_few_floats(tally: Tally, dtype: DType) -> bool {
    dtype.is_float() && (matches!(tally, Tally::Sums | Tally::Products) || tally.is_of_squares())
}

/// The launch that makes the numbers of a view whose outputs have few elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abreast<'a> {
    layout: &'a Layout,
    row: &'a Row,
    tally: Tally,
    launch: Launch,
    blocks_at_once: u32,
    bytes_of_a_thread: usize,
}

impl<'a> Abreast<'a> {
    /// The launch for outputs of `len` elements, if one takes them.
    pub(super) fn plan(
        answer: Answer,
        (layout, row): &'a (Layout, Row),
        len: usize,
        device: Machine<'_>,
    ) -> Option<Abreast<'a>> {
        let tally = answer.tally()?;
        let threads = STRIDED_THREADS;
        let blocks = u32::try_from(layout.outputs.len.div_ceil(threads)).ok()?;
        let each = Program::Abreast(tally, answer.dtype).blocks();
        Some(Abreast {
            layout,
            row,
            tally,
            launch: Launch::linear(blocks, threads as u32),
            blocks_at_once: device.blocks_at_once(each),
            bytes_of_a_thread: row.outputs * answer.dtype.size() * len.min(AT_ONCE),
        })
    }

    fn program(&self, answer: Answer) -> Program {
        Program::Abreast(self.tally, answer.dtype)
    }

    /// What this launch is like.
    pub(super) fn launches(&self, answer: Answer) -> Launches {
        Launches {
            kernel: self.program(answer).name(),
            count: 1,
            launch: self.launch,
            blocks_at_once: self.blocks_at_once,
            bytes_of_a_thread: self.bytes_of_a_thread,
            workspace: 0,
        }
    }
}

impl Engine {
    /// Leaves the numbers of a view at `to` in C order.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `scratch` is the stream's.
    pub(super) unsafe fn launch_abreast(
        &self,
        answer: Answer,
        plan: &Abreast<'_>,
        to: Address,
        scratch: &Scratch,
        stream: Stream,
    ) -> Result<()> {
        let parameters = Parameters {
            out: to,
            overflow: scratch.overflow(),
            ask: answer.asked(),
            flags: answer.flags(),
            answer: answer.out.size() as u32,
            ..Parameters::default()
        };
        let kernel = self.program(plan.program(answer))?;
        let block = plan.layout.block_abreast(plan.row, &parameters);
        // SAFETY: the kernels take this block; they read the view's elements and write an
        // answer for each output.
        unsafe { self.device.launch(stream, kernel, &plan.launch, &[block]) }
    }
}
