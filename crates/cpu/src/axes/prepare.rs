//! Elements on their way to accumulators, without some of them.
//!
//! NaNs that do not count are left out, and elements that are not marked. What is left out is
//! replaced in a copy by an element that changes nothing: which one that is the accumulators say.
//! So no loop over elements knows of those that do not count, and those that do are counted beside.
//! A part of a table from which nothing is left out is taken in where it lies.

use super::fold::Cells;
use super::lanes::array;
use super::walk::Form;
use super::words::{Word, with_word};
use crate::isa::Isa;
use crate::pack::room;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;
use warpfold_core::DType;
use warpfold_core::element::Key;

/// Bytes of a part: it stays in the first cache, with its copy.
const PART: usize = 16 << 10;
/// The most bytes of a row of a part whose outputs are columns: so many rows share a call.
const ROW: usize = 1024;
/// So many elements that are left out a byte counts: rows of a part whose outputs are columns, at
/// most.
const COUNTED: usize = 64;

/// What is done to elements before they are taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preparation {
    pub(super) isa: Isa,
    /// The type of the elements.
    pub(super) dtype: DType,
    /// Whether NaNs are left out.
    pub(super) omits: bool,
}

impl Preparation {
    /// Whether there is a NaN in a table.
    ///
    /// # Safety
    /// Every element is aligned, of this type, and valid for reads.
    pub(super) unsafe fn finds_nan(self, table: Table<'_, ()>) -> bool {
        with_word!(self.dtype.size(), W => {
            // SAFETY: the caller vouches for the elements, whose bits are words.
            let table = unsafe { table.of_elements::<W>() };
            let infinity = W::of(super::choice::infinity_bits(self.dtype));
            dispatch_accumulators(self.isa, HasNans { table, infinity })
        })
    }
}

/// Leaves the outputs whose answers are NaN without one: where NaNs are not answers, these may be of
/// elements that are left out. Places without an answer are in order.
pub(crate) fn leave_nans(isa: Isa, dtype: DType, answers: &[u8], missing: &mut Vec<usize>) {
    with_word!(dtype.size(), W => {
        let infinity = W::of(super::choice::infinity_bits(dtype));
        let answers: &[W] = bytemuck::cast_slice(answers);
        let size = size_of_val(answers).cast_signed();
        let table = Table::of_any(answers.as_ptr().cast(), size, 1, answers.len());
        // SAFETY: a row of these answers.
        let table = unsafe { table.of_elements::<W>() };
        if dispatch_accumulators(isa, HasNans { table, infinity }) {
            let is_nan = |&i: &usize| answers[i] & W::GREATEST > infinity;
            missing.extend((0..answers.len()).filter(is_nan));
            missing.sort_unstable();
            missing.dedup();
        }
    });
}

/// Prepares tables.
pub(super) struct Prepare {
    how: Preparation,
    /// The bits of infinity.
    infinity: u64,
    /// Whether something was left out of the last part: so that is looked for while the next one
    /// is copied.
    odd: bool,
    /// Whole words, so that copies are aligned for every type.
    copy: Vec<u64>,
    neutral: Vec<u64>,
    left_out: Vec<u64>,
}

impl Prepare {
    pub(super) fn new(how: Preparation) -> Prepare {
        let infinity = super::choice::infinity_bits(how.dtype);
        let [copy, neutral, left_out] = Default::default();
        Prepare { how, infinity, odd: false, copy, neutral, left_out }
    }

    /// The one that is kept, made if there is none, for elements that are prepared so.
    pub(super) fn again(kept: &mut Option<Prepare>, how: Preparation) -> &mut Prepare {
        let prepare = kept.get_or_insert_with(|| Prepare::new(how));
        // Some may be omitted or not, but all of a run have one type.
        prepare.how = how;
        prepare
    }

    /// Hands a table to accumulators, and adds how many elements of each output are left to
    /// `counts`, which are the outputs' from `place` on. `marks` has a byte for each element, which
    /// is 0 where it is left out.
    ///
    /// # Safety
    /// Every element of the tables is aligned, and valid for reads.
    pub(super) unsafe fn take(
        &mut self,
        cells: &mut [&mut dyn Cells],
        (form, place, at): (Form, usize, usize),
        table: Table<'_, ()>,
        marks: Option<Table<'_, ()>>,
        counts: &mut [u64],
    ) {
        let size = self.how.dtype.size();
        let most = PART / size;
        let (widest, longest) =
            if form == Form::Columns { (ROW / size, COUNTED) } else { (most, most) };
        let columns = table.columns().clamp(1, widest);
        let rows = (most / columns).clamp(1, longest);
        for row in (0..table.rows()).step_by(rows) {
            let some_rows = row..table.rows().min(row + rows);
            for column in (0..table.columns()).step_by(columns) {
                let some = column..table.columns().min(column + columns);
                let part = |table: Table<'_, ()>, size: usize| {
                    let origin = table.at(some_rows.start, 0).wrapping_byte_add(some.start * size);
                    Table::of_any(origin, table.stride(), some_rows.len(), some.len())
                };
                let (first, at) = match form {
                    Form::Rows => (some_rows.start, at + some.start),
                    Form::Columns => (some.start, at + some_rows.start),
                };
                let marks = marks.map(|marks| part(marks, 1));
                let (place, counts) = ((form, place + first, at), &mut counts[first..]);
                // SAFETY: parts of the tables.
                unsafe { self.part(cells, place, part(table, size), marks, counts) };
            }
        }
    }

    /// Takes in a part of a table.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    unsafe fn part(
        &mut self,
        cells: &mut [&mut dyn Cells],
        (form, place, at): (Form, usize, usize),
        part: Table<'_, ()>,
        marks: Option<Table<'_, ()>>,
        counts: &mut [u64],
    ) {
        let (outputs, each) = match form {
            Form::Rows => (part.rows(), part.columns()),
            Form::Columns => (part.columns(), part.rows()),
        };
        let counts = &mut counts[..outputs];
        let Preparation { isa, omits, .. } = self.how;
        let (size, elements) = (self.how.dtype.size(), part.rows() * part.columns());
        let mut given = part;
        with_word!(size, W => {
            // SAFETY: the caller vouches for the elements, whose bits are words; here and below.
            let table = unsafe { part.of_elements::<W>() };
            // Nothing is above the greatest.
            let infinity = if omits { W::of(self.infinity) } else { W::GREATEST };
            // SAFETY: as above.
            let marks = marks.map(|marks| unsafe { marks.of_elements::<u8>() });
            // SAFETY: as above.
            let odd = self.odd
                || omits && unsafe { self.how.finds_nan(part) }
                || marks.is_some_and(|marks| (0..marks.rows()).any(|row| marks.row(row).contains(&0)));
            let mut first = true;
            for cells in cells {
                if odd {
                    let neutral = room(&mut self.neutral, outputs * size);
                    cells.neutral(place, neutral);
                    let neutral: &[W] = bytemuck::cast_slice(neutral);
                    let copy: &mut [W] = bytemuck::cast_slice_mut(room(&mut self.copy, elements * size));
                    self.left_out.resize(outputs, 0);
                    let (to, out) = (&mut *copy, &mut self.left_out[..outputs]);
                    dispatch_accumulators(isa, Fill { table, marks, infinity, form, neutral, to, out });
                    if first {
                        let mut any = 0;
                        for (count, out) in counts.iter_mut().zip(&self.left_out) {
                            any |= out;
                            *count += each as u64 - out;
                        }
                        (self.odd, first) = (any != 0, false);
                    }
                    let stride = (part.columns() * size).cast_signed();
                    given = Table::of_any(copy.as_ptr().cast(), stride, part.rows(), part.columns());
                } else if first {
                    counts.iter_mut().for_each(|count| *count += each as u64);
                    first = false;
                }
                // SAFETY: elements of the table, or of a copy, which is aligned.
                unsafe {
                    match form {
                        Form::Rows => cells.rows(place, given, at),
                        Form::Columns => cells.columns(place, given, at),
                    }
                }
            }
        });
    }
}

/// Whether there is a NaN.
struct HasNans<'a, W> {
    table: Table<'a, W>,
    infinity: W,
}

impl<W: Word> Kernel for HasNans<'_, W> {
    type Out = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        let mut any = W::of(0);
        for row in 0..self.table.rows() {
            let mut found = W::of(0);
            for &x in self.table.row(row) {
                found = found.max(x & W::GREATEST);
            }
            any = any.max(found);
        }
        any > self.infinity
    }
}

/// Copies a table, with other elements in place of those that are left out, and counts these.
struct Fill<'a, W> {
    table: Table<'a, W>,
    marks: Option<Table<'a, u8>>,
    infinity: W,
    form: Form,
    /// Of each output. Outputs that are columns have at most as many elements as a word counts.
    neutral: &'a [W],
    to: &'a mut [W],
    /// How many are left out of each output.
    out: &'a mut [u64],
}

impl<W: Word> Kernel for Fill<'_, W> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        match (size_of::<W>(), self.table.columns()) {
            (1, 128..) => self.groups::<128>(),
            (2, 64..) => self.groups::<64>(),
            (4 | 8, 32..) => self.groups::<32>(),
            (1 | 2, 16..) => self.groups::<16>(),
            (_, 8..) => self.groups::<8>(),
            _ => self.groups::<1>(),
        }
    }
}

impl<W: Word> Fill<'_, W> {
    /// Rows of at least `N` elements, so many at a time.
    #[inline(always)]
    fn groups<const N: usize>(&mut self) {
        match self.form {
            Form::Rows => self.rows::<N>(),
            Form::Columns => self.columns::<N>(),
        }
    }

    /// Of outputs that are rows.
    #[inline(always)]
    fn rows<const N: usize>(&mut self) {
        let columns = self.table.columns();
        for row in 0..self.table.rows() {
            let with = [self.neutral[row]; N];
            let (mut all, mut next) = (0, 0);
            while next + N <= columns {
                let mut counted = [W::of(0); N];
                let end = columns.min(next + COUNTED * N);
                while next + N <= end {
                    let gone = self.copy(row, next, &with);
                    for i in 0..N {
                        counted[i] = counted[i].counted(gone[i]);
                    }
                    next += N;
                }
                all += counted.iter().map(|n| n.wide().cast_unsigned()).sum::<u64>();
            }
            if next < columns {
                // With some of those before them, which come out as before and are not counted again.
                let at = columns - N;
                let (gone, old) = (self.copy(row, at, &with), W::of((next - at - 1) as u64));
                let mut counted = [W::of(0); N];
                for i in 0..N {
                    counted[i] = counted[i].counted(gone[i] & W::of(i as u64).is_above(old));
                }
                all += counted.iter().map(|n| n.wide().cast_unsigned()).sum::<u64>();
            }
            self.out[row] = all;
        }
    }

    /// Of outputs that are columns: what is counted stays in registers.
    #[inline(always)]
    fn columns<const N: usize>(&mut self) {
        let (table, mut next) = (self.table, 0);
        while next < table.columns() {
            // The last have some of those before them, which come out as before.
            let at = next.min(table.columns() - N);
            let (mut with, mut counted) = ([W::of(0); N], [W::of(0); N]);
            with.copy_from_slice(&self.neutral[at..at + N]);
            for row in 0..table.rows() {
                let gone = self.copy(row, at, &with);
                for i in 0..N {
                    counted[i] = counted[i].counted(gone[i]);
                }
            }
            let out = &mut self.out[at..at + N];
            for i in 0..N {
                out[i] = counted[i].wide().cast_unsigned();
            }
            next = at + N;
        }
    }

    /// Copies elements of a row, and replaces those that are left out: all bits where one is. What is
    /// read and what is written are arrays of their own, of which compilers make vectors. To ask for
    /// lines ahead takes copies two to four times as long.
    #[inline(always)]
    fn copy<const N: usize>(&mut self, row: usize, at: usize, with: &[W; N]) -> [W; N] {
        let (items, infinity) = (*array::<W, N>(&self.table.row(row)[at..at + N]), self.infinity);
        let (mut gone, mut filled) = ([W::of(0); N], [W::of(0); N]);
        for i in 0..N {
            gone[i] = (items[i] & W::GREATEST).is_above(infinity);
        }
        if let Some(marks) = &self.marks {
            let marks: &[u8; N] = array(&marks.row(row)[at..at + N]);
            for i in 0..N {
                gone[i] = gone[i] | W::of(if marks[i] == 0 { u64::MAX } else { 0 });
            }
        }
        for i in 0..N {
            filled[i] = (items[i] & !gone[i]) | (with[i] & gone[i]);
        }
        let from = row * self.table.columns() + at;
        self.to[from..from + N].copy_from_slice(&filled);
        gone
    }
}
