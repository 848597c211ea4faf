//! Reductions over some axes to numbers that are finished on the device: no
//! state comes back.
//!
//! Numbers are made in the order of the walk over the outputs. Where that is
//! not C order, they are put in order in the end.

use super::answer::{Answer, Payloads, check_alignment};
use super::column_table::ColumnTable;
use super::kernels::Tally;
use super::layout::Layout;
use super::scratch::Scratch;
use super::short_rows::MOST_BYTES as MOST_SHORT_ROW;
use super::table::{Order, Table};
use super::tiles::{LEAST_WORKSPACE, Wanted, largest_workspace};
use super::view::DeviceView;
use super::{Engine, lock};
use crate::Result;
use crate::device::{Address, Stream};
use warpfold_core::layout::Split;
use warpfold_core::op::{Numbers, Op};

/// The most answers that are put in order.
const MOST_SCATTERED: usize = 1 << 30;

/// Bytes of a table whose launches cost more than what they do.
const SMALL: usize = 1 << 20;
/// Bytes of a row of floats whose sum is better shared by more than one block.
const LONG_ROW: usize = 64 << 10;
/// Bytes of a table whose blocks have little to read, and of one that has less.
const MODERATE: usize = 64 << 20;
const MODEST: usize = 16 << 20;
/// Rows of columns of floats that are many for a thread, and for a block of a table.
const MANY_ROWS: core::ops::Range<usize> = 64..1024;
/// Bytes of a row of a table that leave most of a block idle.
const NARROW: usize = 64;
/// Bytes of a row that is neither short nor long enough for what comes at its ends.
const SCATTERED_ROWS: core::ops::Range<usize> = 384..4096;
/// Rows of columns of floats that make a thread's accumulator worth its end.
const FEW_ROWS: usize = 8;

impl Engine {
    /// The answers of `op` over the axes that `reduced` marks, in C order, as
    /// core finishes them under the default rules; waits for them. `None` where no
    /// kernel makes them: pairs of answers, products and logsumexp of integers; of
    /// outputs without elements, of few long rows whose floats a fixed tree folds,
    /// as it does wherever they are to be fast, and of totals that do not fit their
    /// type. Then [`states_of_view`](Self::states_of_view) answers.
    ///
    /// # Errors
    /// Views that cannot be; more outputs than memory holds; what the device
    /// says.
    ///
    /// # Safety
    /// As for [`states_of_view`](Self::states_of_view).
    pub unsafe fn numbers_of_view(
        &self,
        op: Op,
        view: &DeviceView,
        reduced: &[bool],
        stream: Stream,
    ) -> Result<Option<Numbers>> {
        view.check(&**self.device())?;
        match Question::of(op, view, reduced, self.shape.views)? {
            // SAFETY: passed on from the caller.
            Some(question) => unsafe { self.numbers_of(&question, stream) },
            None => Ok(None),
        }
    }

    /// The answers to a question, if there are any.
    ///
    /// # Safety
    /// As for [`numbers_of_view`](Self::numbers_of_view), for the elements of the
    /// question's table.
    pub(super) unsafe fn numbers_of(
        &self,
        question: &Question,
        stream: Stream,
    ) -> Result<Option<Numbers>> {
        let device = &**self.device();
        let scratch = self.scratch(stream)?;
        // Held until the numbers are read: another thread's would overwrite
        // them.
        let mut scratch = lock(&scratch);
        let bytes = question.bytes();
        let (to, _) = scratch.numbers.hold(device, stream, bytes, bytes)?;
        // SAFETY: passed on from the caller; the room was made here.
        let made = unsafe { self.make_numbers(question, to, &mut scratch, stream) };
        let read = made.and_then(|made| {
            if !made {
                return Ok(None);
            }
            let mut numbers = Numbers::zeros(question.answer.out, question.table.outputs.len);
            // SAFETY: the room has as many bytes, and is held until they are read.
            unsafe { device.copy_out(stream, to, numbers.bytes_mut())? };
            // The copy waited already; this says what a kernel did wrong.
            device.wait(stream).map(|()| Some(numbers))
        });
        scratch.numbers.keep_below(device, stream, largest_workspace(device.limits()))?;
        read
    }

    /// Leaves such answers in the device's memory at `to`, and says whether it
    /// did; what is there means nothing otherwise. Waits only where totals may
    /// not fit: those of integers of 64 bits, of squares of 32 bits and more, and
    /// of 2^32 and more shorter ones.
    ///
    /// # Errors
    /// Those of [`numbers_of_view`](Self::numbers_of_view), and a misaligned
    /// `to`.
    ///
    /// # Safety
    /// As for [`states_of_view`](Self::states_of_view), until the stream was
    /// waited for; and nobody else uses the memory of the answers, one of type
    /// [`Op::answer_type`] for each output, until then.
    pub unsafe fn numbers_into(
        &self,
        op: Op,
        view: &DeviceView,
        reduced: &[bool],
        to: Address,
        stream: Stream,
    ) -> Result<bool> {
        view.check(&**self.device())?;
        let question = Question::of(op, view, reduced, self.shape.views)?;
        let Some(question) = question else { return Ok(false) };
        check_alignment(to, question.table.outputs.len, question.answer.out)?;
        let scratch = self.scratch(stream)?;
        let mut scratch = lock(&scratch);
        // SAFETY: passed on from the caller.
        unsafe { self.make_numbers(&question, to, &mut scratch, stream) }
    }

    /// Leaves the answers at `to`, in C order, and says whether it did.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `scratch` is the stream's.
    unsafe fn make_numbers(
        &self,
        question: &Question,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let Question { answer, table, layout } = question;
        let device = &**self.device();
        if let Some(layout) = layout {
            let make = |engine: &Engine, scratch: &mut Scratch| {
                // SAFETY: passed on from the caller.
                unsafe { engine.numbers_of_layout(*answer, layout, to, scratch, stream) }
            };
            // SAFETY: as above.
            return unsafe {
                self.watching_misfits(*answer, table.elements.len, scratch, stream, make)
            };
        }
        if !table.is_in_order() && table.outputs.len > MOST_SCATTERED {
            return Ok(false);
        }
        let make = |engine: &Engine, scratch: &mut Scratch| {
            if table.is_in_order() {
                // SAFETY: passed on from the caller.
                return unsafe { engine.numbers_as_walked(question, to, scratch, stream) };
            }
            let (bytes, most) = (question.bytes(), largest_workspace(device.limits()));
            let (walked, _) = scratch.walked.hold(device, stream, bytes, bytes)?;
            // SAFETY: as above; the room was made here, and the copy goes to
            // all answers and nowhere else.
            let made = unsafe {
                engine.numbers_as_walked(question, walked, scratch, stream).and_then(|made| {
                    let size = answer.out.size();
                    let first = table.first_output() * size;
                    let steps = table.steps_to_outputs(size);
                    let ordered = || engine.gather(size, walked, to + first as u64, steps, stream);
                    if made { ordered().map(|()| true) } else { Ok(false) }
                })
            };
            scratch.walked.keep_below(device, stream, most)?;
            made
        };
        // SAFETY: as above.
        unsafe { self.watching_misfits(*answer, table.elements.len, scratch, stream, make) }
    }

    /// Leaves the answers at `to`, in the order of the walk.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers).
    unsafe fn numbers_as_walked(
        &self,
        question: &Question,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let Question { answer, table, .. } = question;
        let misfits = scratch.misfits();
        if answer.is_of_tree() {
            // SAFETY: passed on from the caller.
            let made =
                unsafe { self.numbers_of_column_trees(*answer, table, to, scratch, stream)? };
            // SAFETY: as above.
            return Ok(
                made || unsafe { self.numbers_of_trees(*answer, table, to, scratch, stream)? }
            );
        }
        // SAFETY: as above.
        if unsafe { self.numbers_of_short_rows(*answer, table, to, misfits, stream)? } {
            return Ok(true);
        }
        // SAFETY: as above.
        if unsafe { self.numbers_of_columns(*answer, table, to, scratch, stream)? } {
            return Ok(true);
        }
        let Some(bytes) = Engine::payload_len(answer.kind, answer.dtype) else {
            return Ok(false);
        };
        let words = bytes / 8;
        let wanted = Wanted { table, kinds: &[answer.kind], start: 0 };
        let device = &**self.device();
        let bytes = wanted.bytes()?.min(largest_workspace(device.limits()));
        let (at, bytes) = scratch.workspace.hold(device, stream, bytes, LEAST_WORKSPACE)?;
        if !wanted.is_whole_in(bytes)? {
            return Ok(false);
        }
        let size = answer.out.size();
        let finish = &mut |batch: &super::tiles::Batch| {
            let mut at = batch.at;
            for run in &batch.runs {
                let to = to + (run.first * size) as u64;
                let payloads = Payloads { at, words, count: run.count, to, step: run.step };
                // SAFETY: the payloads were left before on the stream; each
                // output has its place.
                unsafe { self.finish(*answer, &payloads, misfits, stream)? };
                at += 8 * (words * run.count) as u64;
            }
            Ok(())
        };
        // SAFETY: passed on from the caller; the workspace is the stream's.
        unsafe { self.reduce_table(wanted, (at, bytes), scratch, stream, finish)? };
        Ok(true)
    }
}

/// Whether the walk over any view serves a table best.
///
/// It does where rows and columns would have to be copied together, or would take a
/// launch for each of many. Where they would not, their own kernels are faster for
/// large tables. Of small ones a launch counts, and rows that are not short take two;
/// of columns of floats, what each block has to clear. Measured on an H200 over 800
/// views drawn at random.
fn is_for_strides(answer: Answer, table: &Table) -> bool {
    let (len, size) = (table.elements.len, table.dtype.size());
    let row = len.saturating_mul(size);
    let bytes = row.saturating_mul(table.outputs.len);
    let sums = table.dtype.is_float() && answer.is_of_sums();
    let squares = sums && matches!(answer.tally(), Some(Tally::Squares | Tally::Variances));
    let (long, numbered) = (squares && size == 8, Order::of(answer.kind) == Order::Index);
    if table.has_few_rows() {
        let most_bytes = match sums {
            _ if long => MODERATE,
            true => SMALL,
            false => MODEST,
        };
        let most_row = if long || !sums { MODERATE } else { LONG_ROW };
        // Rows with something between them are aligned in as many ways.
        let apart = table.outputs.dims.last().is_some_and(|d| d.strides[0] != row.cast_signed());
        bytes <= most_bytes && row > MOST_SHORT_ROW && row <= most_row
            || !sums && apart && SCATTERED_ROWS.contains(&row)
    } else if let Some(columns) = ColumnTable::of(table).filter(ColumnTable::takes_one_launch) {
        let scattered = columns.tables() > 1 && columns.columns * size < NARROW;
        let many = len >= MANY_ROWS.end;
        bytes <= SMALL && (!sums || len >= FEW_ROWS)
            || scattered && len >= FEW_ROWS
            || !sums && !numbered && size <= 2 && bytes <= MODERATE && len < MANY_ROWS.start
            || sums && bytes <= MODERATE && MANY_ROWS.contains(&len)
            || sums && bytes <= MODEST && len >= MANY_ROWS.start
            || sums && size == 2 && many && (!squares || bytes <= MODERATE)
            || squares && bytes <= MODERATE && many
            || long && bytes <= MODERATE && len >= FEW_ROWS
    } else {
        true
    }
}

/// What is answered with numbers.
pub(super) struct Question {
    pub(super) answer: Answer,
    pub(super) table: Table,
    /// The same as kernels know any view, if that is how it is walked.
    pub(super) layout: Option<Layout>,
}

impl Question {
    /// The question, if it may be one that kernels answer. `views` says whether it is
    /// walked as any view is; without it, whatever is faster is done.
    fn of(
        op: Op,
        view: &DeviceView,
        reduced: &[bool],
        views: Option<bool>,
    ) -> Result<Option<Question>> {
        let split = Split::new(&view.shape, [&view.strides, &[]], reduced)?;
        let Some(answer) = Answer::of(op, view.dtype) else { return Ok(None) };
        if view.is_empty() {
            return Ok(None);
        }
        let at = [Some(view.address), None];
        let order = Order::of(answer.kind);
        let table = Table::new(view.dtype, at, &split.kept, &split.reduced, order);
        let numbered = order == Order::Index;
        let can_walk = answer.tally().is_some() && table.is_aligned();
        let layout = if can_walk && views.unwrap_or_else(|| is_for_strides(answer, &table)) {
            Layout::new(view.address, view.dtype.size(), &split.kept, &split.reduced, numbered)
        } else {
            None
        };
        Ok(Some(Question { answer, table, layout }))
    }

    /// The bytes of all answers.
    fn bytes(&self) -> u64 {
        (self.table.outputs.len as u64).saturating_mul(self.answer.out.size() as u64)
    }
}
