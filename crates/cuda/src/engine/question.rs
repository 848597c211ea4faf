//! What is asked of a view: which number of each output.

use super::abreast;
use super::answer::{Answer, Ask};
use super::catalogue::FEW_ELEMENTS;
use super::layout::{Layout, Row};
use super::number::Number;
use super::plan::ForcedWalk;
use super::route::{has_kernels, has_long_rows, is_for_strides, leaves_payloads};
use super::strided::Strided;
use super::table::{Order, Table};
use super::view::DeviceView;
use crate::Result;
use core::cell::OnceCell;
use warpfold_core::layout::Split;
use warpfold_core::op::{Kind, Op};

/// Bytes of an array that two launches take longer for than a view, which both ends share; the
/// same, by the bytes of an element, of outputs of more than few elements side by side, or of runs of
/// so many bytes. Measured on an H200 over 166 tables of 256 KiB to 96 MiB.
const SMALL: usize = 1 << 20;
const LARGER: [usize; 4] = [4 * SMALL, 16 * SMALL, 64 * SMALL, 64 * SMALL];
const RUN: core::ops::RangeInclusive<usize> = 128..=1024;

/// Bytes of an array whose outputs side by side a view takes one by one, by those of an element, and the
/// same of squares. Measured on an H200 over 170 tables, and over 200 of squares.
const PACKS: [usize; 4] = [0, 16 * SMALL, 8 * SMALL, 0];
const PACKS_OF_SQUARES: usize = 32 * SMALL;

/// What is answered with numbers.
pub(super) struct Question {
    pub(super) answer: Answer,
    pub(super) table: Table,
    /// The same as kernels know any view, if that is how it is walked.
    pub(super) layout: Option<Layout>,
    /// The same by several outputs a thread, if outputs have few elements.
    pub(super) abreast: Option<(Layout, Row)>,
    /// Of a range, those of its two ends, which are walked in its place.
    pub(super) ends: Option<Box<[Question; 2]>>,
    /// The launch for the layout, once it was planned.
    pub(super) strided: OnceCell<Option<Strided>>,
}

impl Question {
    /// The question, if it may be one that kernels answer. `forced` says how it
    /// is walked; without it, whatever is faster is done.
    pub(super) fn of(
        number: impl Into<Number>,
        view: &DeviceView,
        reduced: &[bool],
        forced: Option<ForcedWalk>,
    ) -> Result<Option<Question>> {
        let split = Split::new(&view.shape, [&view.strides, &[]], reduced)?;
        let number = number.into();
        let Some(answer) = Answer::of(number, view.dtype) else { return Ok(None) };
        if view.is_empty() {
            return Ok(None);
        }
        let at = [Some(view.address), None];
        let order = Order::of(answer.kind);
        let table = Table::new(view.dtype, at, &split.kept, &split.reduced, order);
        let walk = || forced.or_else(|| Question::walk_of_ends(view, reduced));
        let end = |op: Op| Question::of(Number { op, ..number }, view, reduced, walk());
        let ends = match number.op {
            Op::Range if !leaves_payloads(answer, &table) => {
                // What makes one number of both counts outputs in 32 bits.
                let Ok(_) = i32::try_from(table.outputs.len) else { return Ok(None) };
                end(Op::Min)?.zip(end(Op::Max)?).map(|(min, max)| Box::new([min, max]))
            }
            _ => None,
        };
        let numbered = order == Order::Index;
        // NaNs that are omitted are counted in 32 bits.
        let counts = !answer.omits || u32::try_from(table.elements.len).is_ok();
        let tally = answer.tally().filter(|_| table.is_aligned() && counts);
        let leaves = forced == Some(ForcedWalk::Payloads);
        let is_walked = tally.filter(|_| !leaves).is_some_and(|tally| {
            // Rows and columns have no kernels that omit NaNs, and payloads tell how many
            // there are.
            let lacks_tables = answer.omits && !has_long_rows(&table);
            !has_kernels(tally, &table) && !leaves_payloads(answer, &table)
                || lacks_tables
                || match forced {
                    Some(walk) => walk != ForcedWalk::Tables,
                    None => is_for_strides(answer, &table),
                }
        });
        let (size, [kept, reduced]) = (view.dtype.size(), [&split.kept[..], &split.reduced]);
        let abreast = tally
            .filter(|_| matches!(forced, None | Some(ForcedWalk::Abreast)))
            .and_then(|tally| {
                abreast::outputs_of_a_thread(tally, &table, answer.omits, forced.is_some())
            })
            .and_then(|n| Layout::abreast(view.address, size, kept, reduced, numbered, n));
        // Blocks of few packs have more to do at their ends.
        let bytes = table.outputs.len.saturating_mul(table.elements.len).saturating_mul(size);
        let least = match tally {
            Some(tally) if tally.is_of_squares() => PACKS_OF_SQUARES,
            _ => PACKS[size.ilog2() as usize],
        };
        let large = match forced {
            Some(walk) => walk != ForcedWalk::Elements,
            None => bytes > least,
        };
        let packs = || {
            tally.filter(|_| large)?.packs(view.dtype)?;
            Layout::packs(view.address, size, kept, reduced)
        };
        let each = || Layout::new(view.address, size, kept, reduced, numbered);
        let layout = if is_walked { packs().or_else(each) } else { None };
        Ok(Some(Question { answer, table, layout, abreast, ends, strided: OnceCell::new() }))
    }

    /// Whether the payloads of this question tell the answer to another one, too: those of a kind do,
    /// and those of moments begin with those of sums.
    pub(super) fn tells(&self, other: &Question) -> bool {
        let kinds = (self.answer.kind, other.answer.kind);
        let told = kinds.0 == kinds.1 || kinds == (Kind::Moments, Kind::Sum);
        told && self.table == other.table
    }

    /// Whether the other one asks the same view for the other end, or where it is.
    pub(super) fn is_lesser_end_of(&self, other: &Question) -> bool {
        let asks = (self.answer.ask, other.answer.ask);
        matches!(asks, (Ask::Least, Ask::Greatest) | (Ask::ArgMin, Ask::ArgMax))
            && self.answer.flags() == other.answer.flags()
            && self.table == other.table
    }

    /// How both ends of a view are walked, if one launch is all they take.
    pub(super) fn walk_of_ends(view: &DeviceView, reduced: &[bool]) -> Option<ForcedWalk> {
        let size = view.dtype.size();
        let axes = || view.shape.iter().zip(&view.strides).zip(reduced);
        let bytes = view.shape.iter().product::<usize>().saturating_mul(size);
        let len: usize = axes().filter(|(_, is)| **is).map(|((n, _), _)| n).product();
        let nearest =
            axes().filter(|((n, _), _)| **n > 1).min_by_key(|((_, step), _)| step.unsigned_abs());
        let is_quick = match nearest {
            Some(((&run, _), true)) => size > 1 && RUN.contains(&run.saturating_mul(size)),
            _ => true,
        };
        let larger = bytes <= LARGER[size.ilog2() as usize] && len > FEW_ELEMENTS && is_quick;
        (bytes <= SMALL || larger).then_some(ForcedWalk::Views)
    }

    /// The same of an array that lies so many bytes behind, modulo 2^64, and is aligned alike.
    pub(super) fn move_by(&mut self, bytes: u64) {
        self.table.at[0] = self.table.at[0].wrapping_add(bytes);
        let abreast = self.abreast.iter_mut().map(|(layout, _)| layout);
        abreast.chain(&mut self.layout).for_each(|layout| layout.move_by(bytes));
        self.ends.iter_mut().flat_map(|ends| &mut **ends).for_each(|end| end.move_by(bytes));
    }

    /// Whether an answer may not fit its type.
    pub(super) fn may_overflow(&self) -> bool {
        self.answer.may_overflow(self.table.elements.len)
    }

    /// The bytes of all answers.
    pub(super) fn bytes(&self) -> u64 {
        (self.table.outputs.len as u64).saturating_mul(self.answer.out.size() as u64)
    }
}
