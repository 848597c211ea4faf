//! The planner: how a question is answered, decided once, by a pure function of the
//! question and of what the device is. Nothing is launched or allocated here.
//!
//! ```text
//! question ──► route ──► launches
//! ```
//!
//! Each walk plans its own launches, in the file with its name; here one of them is
//! chosen.

use super::Shape;
use super::abreast::Abreast;
use super::answer::{Answer, Ask};
use super::column_table::ColumnTable;
use super::columns::Columns;
use super::gathered::GatheredRows;
use super::kernels::{self, Tally};
use super::layout::Layout;
use super::plan::ForcedWalk;
use super::question::Question;
use super::short_rows::{self, MOST_BYTES as MOST_SHORT_ROW, ShortRows};
use super::strided::{BLOCK_ELEMENTS, Strided};
use super::table::{ROW_ALIGNMENT, Table};
use super::tiles::{Wanted, in_place, largest_workspace};
use crate::device::{Launch, Limits};
use warpfold_core::DType;

/// The most answers that are put in order.
const MOST_SCATTERED: usize = 1 << 30;

/// Bytes of a table whose launches cost more than what they do.
const SMALL: usize = 1 << 20;
/// Bytes of a row of squares of integers that keeps a block busy. Measured on an H200 over 270 tables.
const LONG_ROW: usize = 48 << 10;
/// Bytes of a row of shorter floats than f64 that are summed as they are, in tables of 16 to 32 MiB, whose
/// payload is as quick as a view: it takes a second launch. Measured on an H200 over 121 tables: of uniform elements
/// views of tables of up to 32 MiB of f32 and 8 MiB of others take 0.5 to 1.0 of the time, and 0.7 to 1.1 of
/// larger tables whose rows are no longer than `best`; of 40 decades 0.3 to 0.8. Up to 16 MiB, rows of any
/// length take a launch less.
const LONG_SUM: usize = 128 << 10;
/// Bytes of the longest rows of f64 that a view sums by its accumulators of any data. Measured on an
/// H200 over 44 tables: of uniform elements rows of 160 KB take a view as long as payloads, and
/// those of 800 KB 1.15 times as long; of 40 decades 0.5 and 0.8 times.
///
/// The same of squares of bf16 in tables of more than 16 MiB, and of f32 of more than 1 GiB; of f16, of which
/// nothing is far apart, in tables of more than 1 MiB. Those of f64 are a view's as long as blocks leave parts of
/// far elements to the last one. Over 320 tables and 176 of longer rows, longer ones take a view 1.3 to 1.7 times
/// as long (bf16), 1.0 to 1.5 (f32), 1.15 to 2 (f16) and 0.95 to 1.2 times (f64), of 600 decades 0.34 to 0.55.
const LONGEST_ROW: usize = 256 << 10;
const LONGEST_ROW_OF_F16: usize = 3 << 10;
/// Bytes of a table of float rows of more than half of what the lanes of a warp take that keep a
/// view busy: three times as many of rows that are longer than that, which leave payloads
/// elsewhere. Measured on an H200 over 350 tables: of f64 of 1 to 8 KiB views take 0.54 to 0.95 of
/// the time, of squares of shorter floats of 1 to 2 KiB 0.32 to 0.78.
const BUSY: usize = 8 << 20;
/// Bytes of a table whose blocks have little to read.
pub(super) const MODEST: usize = 16 << 20;
/// Bytes of a row of a table that leave most of a block idle, and bytes that do so in a table alone, where
/// what is reduced is no sum of floats.
pub(super) const NARROW: usize = 64;
const NARROWEST: usize = 4;
/// Rows of columns that narrow tables side by side take a view for. Fewer of them are a thread's; more are
/// shared by the threads of a block, which read what lies together.
const ROWS_OF_NARROW: core::ops::Range<usize> = 8..2048;
/// Bytes of a row of a table, and its rows, that keep blocks of columns waiting for each other in tables of
/// up to 16 MiB. This and the three before were chosen for 982 tables drawn at random, all walks of which were
/// timed on an H200 (`benches/routes.py`): what is chosen takes 1.023 times as long as the quickest walk,
/// 2.0 times at worst.
const WIDE: usize = 256;
const TALL: usize = 64;
/// Elements of a table whose rows a view serves better, of any length, and four times as many of long ones.
/// Measured on an H200 over 560 tables, 70 of them beside torch: views of these take as long as rows, mostly the
/// 9 us of a launch, positions of f64 and both ends of f32 0.73 to 0.97 of the time; of 2^22 elements in rows of
/// 20 twice the time.
const SMALL_ROWS: usize = 1 << 20;
const LONG_ENOUGH: usize = 1000;
/// Bytes of a row that is neither short nor long enough for what comes at its ends. Measured on an H200 over
/// 26 tables drawn at random: rows of 132 to 2000 bytes that are aligned in many ways take 1.06 to 1.5 times as
/// long as a view, and those of 88 to 116 bytes 0.35 to 0.95.
const SCATTERED_ROWS: core::ops::RangeInclusive<usize> = 129..=MOST_SHORT_ROW;

/// What of a device decides: its limits, and the shapes that a caller forces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine<'a> {
    pub(super) limits: &'a Limits,
    pub(super) shape: Shape,
}

impl Machine<'_> {
    /// Blocks that run at once, where a multiprocessor has so many.
    pub(super) fn blocks_at_once(self, each: u32) -> u32 {
        self.shape.blocks.unwrap_or(self.limits.multiprocessors * each).max(1)
    }

    /// Bytes of the largest workspace.
    pub(super) fn workspace(self) -> u64 {
        largest_workspace(self.limits)
    }
}

/// The launches of a walk, as a reader wants to know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launches {
    pub(super) kernel: String,
    pub(super) count: usize,
    /// The first one.
    pub(super) launch: Launch,
    /// Blocks that the device runs at once.
    pub(super) blocks_at_once: u32,
    /// Bytes that a thread has under way.
    pub(super) bytes_of_a_thread: usize,
    /// Bytes of the workspace.
    pub(super) workspace: u64,
}

/// How the elements of each output are found and reduced.
pub(super) enum Walk<'a> {
    /// Outputs of one element each, whose place is the first: no element is read.
    Unread,
    /// Outputs of few elements, several of them a thread's.
    Abreast(Abreast<'a>),
    /// Any view, where it lies, in one launch.
    View(&'a Layout, Strided),
    /// Short rows that lie as such.
    ShortRows(ShortRows),
    /// Columns side by side.
    Columns(Columns<'a>),
    /// Copies of rows that kernels cannot find where they lie.
    GatheredRows(GatheredRows),
    /// A payload for each output, of rows or of copies of them, and numbers of these.
    Payloads(PayloadPlan),
}

/// How payloads become numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PayloadPlan {
    /// Words of a payload.
    pub(super) words: usize,
    /// Bytes of the workspace that serve best.
    pub(super) workspace: u64,
    /// Whether rows are copied together first.
    pub(super) gathers: bool,
}

impl PayloadPlan {
    /// If the state has payloads of one length and the workspace holds an output.
    pub(super) fn of(answer: Answer, table: &Table, device: Machine<'_>) -> Option<PayloadPlan> {
        let bytes = kernels::payload_len(answer.kind, answer.dtype)?;
        let wanted = Wanted { table, kinds: &[answer.kind], start: 0 };
        let workspace = wanted.bytes().ok()?.min(device.workspace());
        let whole = wanted.is_whole_in(workspace).ok()?;
        let gathers = in_place(table).is_none();
        whole.then_some(PayloadPlan { words: bytes / 8, workspace, gathers })
    }
}

/// How a question is answered.
pub(super) struct Route<'a> {
    pub(super) walk: Walk<'a>,
    /// Whether answers come in the order of the walk, and are put in C order behind it.
    pub(super) reorders: bool,
}

impl Question {
    /// How this device answers it, with numbers; `None` if only states do.
    pub(super) fn route(&self, device: Machine<'_>) -> Option<Route<'_>> {
        let Question { answer, table, layout, abreast, .. } = self;
        let is_place = matches!(answer.ask, Ask::ArgMin | Ask::ArgMax);
        if is_place && table.elements.len == 1 && !answer.omits {
            return Some(Route { walk: Walk::Unread, reorders: false });
        }
        if let Some(abreast) = abreast {
            let walk = Walk::Abreast(Abreast::plan(*answer, abreast, table.elements.len, device)?);
            return Some(Route { walk, reorders: false });
        }
        if let Some(layout) = layout {
            let plan = self.strided.get_or_init(|| Strided::plan(*answer, layout, device));
            let walk = Walk::View(layout, (*plan)?);
            return Some(Route { walk, reorders: false });
        }
        let reorders = !table.is_in_order();
        if reorders && table.outputs.len > MOST_SCATTERED {
            return None;
        }
        Some(Route { walk: walk(*answer, table, device)?, reorders })
    }
}

/// The walk over a table.
fn walk<'a>(answer: Answer, table: &'a Table, device: Machine<'_>) -> Option<Walk<'a>> {
    let payloads = || PayloadPlan::of(answer, table, device).map(Walk::Payloads);
    if device.shape.walk == Some(ForcedWalk::Payloads) {
        return payloads();
    }
    if answer.tally().is_some_and(|tally| !has_kernels(tally, table))
        && !leaves_payloads(answer, table)
    {
        return GatheredRows::plan(answer, table, device).map(Walk::GatheredRows);
    }
    if answer.omits {
        return payloads();
    }
    let rows = ShortRows::plan(answer, table, device).map(Walk::ShortRows);
    let columns = || Columns::plan(answer, table, device).map(Walk::Columns);
    rows.or_else(columns).or_else(payloads)
}

/// Whether rows, or what else a table has, have kernels of their own besides the walk over any view.
pub(super) fn has_kernels(tally: Tally, table: &Table) -> bool {
    if table.has_rows() { tally.has_rows(table.dtype) } else { tally.has_columns(table.dtype) }
}

/// Whether a table has rows that lie as such, which are not short.
pub(super) fn has_long_rows(table: &Table) -> bool {
    let row = table.elements.len.saturating_mul(table.dtype.size());
    table.has_rows() && row > MOST_SHORT_ROW
}

/// Whether numbers that rows and columns have no kernels for are made of payloads: ranges in rows that
/// are not short, squares of integers in rows that keep a block busy, f64 and squares of floats in long ones.
/// Measured on an H200.
pub(super) fn leaves_payloads(answer: Answer, table: &Table) -> bool {
    let row = table.elements.len.saturating_mul(table.dtype.size());
    let bytes = row.saturating_mul(table.outputs.len);
    match answer.tally() {
        None => answer.ask == Ask::Range && has_long_rows(table),
        Some(Tally::IntegerSquares) => table.has_rows() && row >= LONG_ROW,
        Some(Tally::Sums) => {
            let long = row > LONGEST_ROW && bytes > MODEST;
            table.dtype == DType::F64 && table.has_rows() && long
        }
        Some(Tally::Squares | Tally::Variances) => {
            let (most_bytes, most_row) = match table.dtype {
                DType::F16 => (SMALL, LONGEST_ROW_OF_F16),
                DType::BF16 => (MODEST, LONGEST_ROW),
                DType::F32 => (1 << 30, LONGEST_ROW),
                _ => (0, BLOCK_ELEMENTS * table.dtype.size()),
            };
            table.has_rows() && bytes > most_bytes && row >= most_row
        }
        Some(_) => false,
    }
}

/// Whether rows are aligned in many ways: those with something between them, and those of no whole number of
/// vectors.
pub(super) fn is_ragged(table: &Table) -> bool {
    let size = table.dtype.size();
    let row = table.elements.len.saturating_mul(size);
    let apart = table.outputs.dims.last().is_some_and(|d| d.strides[0] != row.cast_signed());
    apart || size >= 4 && !row.is_multiple_of(ROW_ALIGNMENT)
}

/// Whether the walk over any view serves a table best.
///
/// It does where rows and columns would have to be copied together, or would take a
/// launch for each of many. Where they would not, their own kernels are faster for
/// large tables. Of small ones a launch counts, and what its blocks do before they read. Columns of
/// floats whose sums or squares are asked for have none. Measured on an H200 over 800 views drawn at
/// random.
pub(super) fn is_for_strides(answer: Answer, table: &Table) -> bool {
    let (len, size) = (table.elements.len, table.dtype.size());
    let row = len.saturating_mul(size);
    let bytes = row.saturating_mul(table.outputs.len);
    let elements = len.saturating_mul(table.outputs.len);
    let sums = table.dtype.is_float() && answer.is_of_sums();
    if table.has_few_rows() {
        // Bytes of the longest rows that are a view's however many there are.
        let best = match table.dtype {
            DType::F64 => 8 << 10,
            DType::F32 => 12 << 10,
            DType::BF16 => 8 << 10,
            _ => 0,
        };
        let busy = bytes > if row > MOST_SHORT_ROW { 3 * BUSY } else { BUSY };
        let many = sums && busy && row > MOST_SHORT_ROW / 2 && row <= best;
        let most_bytes = match sums {
            true if size == 4 || row <= best => 2 * MODEST,
            true => MODEST / 2,
            false => MODEST,
        };
        let most_row = if sums && bytes > MODEST { LONG_SUM } else { usize::MAX };
        let of_a_warp = row <= short_rows::most_bytes(answer, table);
        let small = elements <= if len >= LONG_ENOUGH { 4 * SMALL_ROWS } else { SMALL_ROWS };
        many || small
            || !of_a_warp && bytes <= most_bytes && row <= most_row
            || !sums && is_ragged(table) && SCATTERED_ROWS.contains(&row)
    } else if let Some(columns) = ColumnTable::of(table).filter(ColumnTable::takes_one_launch) {
        let (tables, width) = (columns.tables(), columns.columns * size);
        let idle = tables > 1 && width < NARROW && ROWS_OF_NARROW.contains(&len);
        let waits = width > WIDE && len >= TALL && bytes <= MODEST;
        sums || bytes <= SMALL || width <= NARROWEST || idle || waits
    } else {
        true
    }
}
