//! What reduces tables and segments: accumulators of outputs, and how they take elements in.
//!
//! Walks know neither elements nor accumulators: they are compiled once, and call
//! what is compiled for each operation, type and instruction set. That is linked with what
//! it is called by: a program without segments has no loops over their rows.

use super::lengths::Lengths;
use super::{extremes, finish, widened};
use crate::isa::Isa;
use crate::ragged::Ragged;
use crate::table::Table;
use core::alloc::Layout;
use core::any::Any;
use warpfold_core::DType;

/// The places of outputs that are left to others: in any order, some twice.
pub(super) type Left = Vec<usize>;

/// An operation on elements of one type.
pub(crate) trait Fold: Sync {
    /// Size and alignment of the elements.
    fn item(&self) -> Layout;
    /// Whether accumulators answer outputs of so many elements [quickly](Cells::quick), as a
    /// rule.
    fn is_quick(&self, elements: usize) -> bool {
        let _ = elements;
        false
    }
    /// Whether there are [elements](Cells::neutral) that change no answer.
    fn has_neutral(&self) -> bool {
        false
    }
    /// Whether what is kept for a variance are sums of the elements themselves.
    fn has_sums(&self) -> bool {
        true
    }
    /// Whether outputs of infinities and NaNs are answered, and no others.
    fn is_for_specials(&self) -> bool {
        false
    }
    /// Accumulators, which have memory from when they are [cleared](Accumulators::clear): what is
    /// answered from registers needs none.
    fn cells(&self) -> Box<dyn Cells>;
}

/// The same operation on segments.
pub(crate) trait RaggedFold: Sync {
    /// Accumulators, likewise.
    fn ragged(&self) -> Box<dyn RaggedCells>;
}

/// Makes these `count` times a value: parts of accumulators that have seen nothing.
pub(super) fn begin_with<T: Clone>(parts: &mut Vec<T>, count: usize, value: T) {
    parts.clear();
    parts.resize(count, value);
}

/// Accumulators for some outputs of one operation. What they cannot answer is answered in
/// the general way, so that they may be quick rather than complete.
pub(crate) trait Accumulators {
    /// Makes them `count` that have seen nothing.
    fn clear(&mut self, count: usize);
    /// Writes the answers of outputs: words as wide as the numbers of the operation, as many
    /// as `to` has room for, and aligned. Places without an answer go to `missing`, in order.
    /// Outputs of no elements have answers that mean nothing.
    fn answer(&mut self, lengths: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>);
    /// Says which operation is [answered](Self::answer) from now on, and whether that can be: what
    /// one operation keeps may answer another, whose numbers are as wide.
    fn ask(&mut self, question: Part) -> bool {
        question == Part::Own
    }
}

/// A part of what accumulators know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The answer to their own operation.
    Own,
    /// Of sums of floats.
    Sums(finish::Asked),
    /// Of extremes of floats.
    Ends(extremes::Asked),
}

/// Accumulators for a block of outputs, whose elements are rows or columns of tables.
pub(crate) trait Cells: Accumulators + Any + Send {
    /// Adds a row of the table to each output from `place` on. The row's first element is
    /// the output's element `at`.
    ///
    /// # Safety
    /// Every element of the table is one of the operation's elements: aligned, and valid
    /// for reads.
    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, at: usize);
    /// Adds a column of the table to each output from `place` on.
    ///
    /// # Safety
    /// As for [`rows`](Self::rows).
    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, at: usize);
    /// Begins a survey of the first `count` outputs, if these accumulators have to know all elements
    /// before they add them: what they take in until its [end](Self::end_survey) is only looked at.
    fn begin_survey(&mut self, count: usize) -> bool {
        let _ = count;
        false
    }
    /// Ends a survey: elements are added from now on. False if they need not be.
    fn end_survey(&mut self, count: usize) -> bool {
        let _ = count;
        true
    }
    /// Whether the first elements of outputs have to be told before all others.
    fn wants_origins(&self) -> bool {
        false
    }
    /// Tells the first elements of the outputs from `place` on: a row or a column of them.
    ///
    /// # Safety
    /// As for [`rows`](Self::rows).
    unsafe fn origins(&mut self, place: usize, table: Table<'_, ()>) {
        let _ = (place, table);
    }
    /// Writes elements that change none of the outputs from `place` on, as many as `to` has room
    /// for, if there [are](Fold::has_neutral) such.
    fn neutral(&self, place: usize, to: &mut [u8]) {
        let _ = (place, to);
    }
    /// Adds a row of pairs to each output from `place` on, of an operation on two arrays. Both
    /// tables are equally large.
    ///
    /// # Safety
    /// As for [`rows`](Self::rows), of both.
    unsafe fn row_pairs(&mut self, place: usize, tables: [Table<'_, ()>; 2]) {
        let _ = (place, tables);
        unreachable!("an operation on one array");
    }
    /// Adds a column of pairs to each output from `place` on.
    ///
    /// # Safety
    /// As for [`row_pairs`](Self::row_pairs).
    unsafe fn column_pairs(&mut self, place: usize, tables: [Table<'_, ()>; 2]) {
        let _ = (place, tables);
        unreachable!("an operation on one array");
    }
    /// Writes the answers of outputs all of whose elements are the columns of these tables, as
    /// many as `to` has room for, if most of them are found without accumulators in memory, and
    /// tells which are not. Of two arrays there are equally many tables, and they are equally large;
    /// of one the second has none. What `to` holds where there are none means nothing.
    ///
    /// # Safety
    /// As for [`columns`](Self::columns).
    unsafe fn quick(&mut self, tables: [&[Table<'_, ()>]; 2], to: &mut [u8]) -> Option<Left> {
        let _ = (tables, to);
        None
    }
    /// The fewest rows of columns that are worth to be taken at a time.
    fn least_panel(&self) -> usize {
        1
    }
    /// Adds the accumulators of other elements of the same outputs.
    fn merge(&mut self, others: &dyn Cells);
    /// How many elements of each output are looked at before it is asked whether they are
    /// [settled](Self::is_settled), which is asked more and more seldom then; `None` if they never are.
    fn glance(&self) -> Option<usize> {
        None
    }
    /// Whether no element can change an answer any more; asked after each panel.
    fn is_settled(&self) -> bool {
        false
    }
}

/// Accumulators for segments.
pub(crate) trait RaggedCells: Accumulators {
    /// Adds a row to each segment, from the first on.
    ///
    /// # Safety
    /// Every element of the slice that the rows are of is one of the operation's elements:
    /// aligned, and valid for reads.
    unsafe fn take(&mut self, rows: Ragged<'_, ()>);
    /// Adds a row of pairs to each segment, from the first on, of an operation on two arrays.
    /// Both have equally many rows, and these are equally long.
    ///
    /// # Safety
    /// As for [`take`](Self::take), of both.
    unsafe fn take_pairs(&mut self, rows: [Ragged<'_, ()>; 2]) {
        let _ = rows;
        unreachable!("an operation on one array");
    }
}

/// Accumulators that the same [`Fold`] has made.
pub(super) fn of_one_fold<C: Cells>(others: &dyn Cells) -> &C {
    let others: &dyn Any = others;
    others.downcast_ref().expect("accumulators of one operation are merged")
}

/// What an operation's accumulators are asked for: a table's outputs, or segments.
pub(crate) trait Use: Copy {
    /// Whether rows of a few elements are turned into columns before.
    const TURNED: bool;
    /// The operation, whatever its type.
    type Fold: ?Sized;
    /// A type as such an operation.
    fn fold(self, fold: impl Fold + RaggedFold + 'static) -> Box<Self::Fold>;
    /// The operation on floats that are brought from one type to another before.
    fn widened(self, isa: Isa, types: [DType; 2], fold: Box<Self::Fold>) -> Box<Self::Fold>;
}

/// The outputs of tables.
#[derive(Clone, Copy)]
pub(crate) struct OfTables;

impl Use for OfTables {
    const TURNED: bool = true;
    type Fold = dyn Fold;

    fn fold(self, fold: impl Fold + RaggedFold + 'static) -> Box<dyn Fold> {
        Box::new(fold)
    }

    fn widened(self, isa: Isa, types: [DType; 2], fold: Box<dyn Fold>) -> Box<dyn Fold> {
        widened::of_tables(isa, types, fold)
    }
}

/// Segments.
#[derive(Clone, Copy)]
pub(crate) struct OfSegments;

impl Use for OfSegments {
    const TURNED: bool = false;
    type Fold = dyn RaggedFold;

    fn fold(self, fold: impl Fold + RaggedFold + 'static) -> Box<dyn RaggedFold> {
        Box::new(fold)
    }

    fn widened(self, isa: Isa, types: [DType; 2], fold: Box<Self::Fold>) -> Box<dyn RaggedFold> {
        widened::of_segments(isa, types, fold)
    }
}
