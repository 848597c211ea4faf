//! Elements on their way to accumulators, without some of them.
//!
//! NaNs that do not count are left out, and elements that are not marked. What is left out is
//! replaced in a copy by an element that changes nothing: which one that is the accumulators say.
//! So no loop over elements knows of those that do not count, and those that do are counted beside.
//! A part of a table from which nothing is left out is taken in where it lies.

use super::fold::Cells;
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
/// The most columns of a part whose outputs are columns: so many rows share a call.
const COLUMNS: usize = 512;
/// So many elements that are left out a word counts, in whole vectors.
const fn most_counted<W>() -> usize {
    if size_of::<W>() == 1 { 64 } else { PART / size_of::<W>() }
}
/// Rows of a part whose outputs are columns, at most.
const COUNTED: usize = most_counted::<u8>();

/// What is done to elements before they are taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preparation {
    pub(super) isa: Isa,
    /// The type of the elements.
    pub(super) dtype: DType,
    /// Whether NaNs are left out.
    pub(super) omits: bool,
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
    counted: Vec<u64>,
    left_out: Vec<u64>,
}

impl Prepare {
    pub(super) fn new(how: Preparation) -> Prepare {
        let infinity = super::choice::infinity_bits(how.dtype);
        let [copy, neutral, counted, left_out] = Default::default();
        Prepare { how, infinity, odd: false, copy, neutral, counted, left_out }
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
            if form == Form::Columns { (COLUMNS, COUNTED) } else { (most, most) };
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
        counts.iter_mut().for_each(|count| *count += each as u64);
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
            let odd = self.odd
                || omits && dispatch_accumulators(isa, HasNans { table, infinity })
                || marks.is_some_and(|marks| (0..marks.rows()).any(|row| marks.row(row).contains(&0)));
            let mut first = true;
            for cells in cells {
                if odd {
                    let neutral = room(&mut self.neutral, outputs * size);
                    cells.neutral(place, neutral);
                    let neutral: &[W] = bytemuck::cast_slice(neutral);
                    let copy: &mut [W] = bytemuck::cast_slice_mut(room(&mut self.copy, elements * size));
                    let counted: &mut [W] =
                        bytemuck::cast_slice_mut(room(&mut self.counted, outputs * size));
                    counted.fill(W::of(0));
                    self.left_out.resize(outputs, 0);
                    let (to, out) = (&mut *copy, &mut self.left_out[..outputs]);
                    let fill = Fill { table, marks, infinity, form, neutral, to, counted, out };
                    dispatch_accumulators(isa, fill);
                    if first {
                        let mut any = 0;
                        for (count, out) in counts.iter_mut().zip(&self.left_out) {
                            any |= out;
                            *count -= out;
                        }
                        (self.odd, first) = (any != 0, false);
                    }
                    let stride = (part.columns() * size).cast_signed();
                    given = Table::of_any(copy.as_ptr().cast(), stride, part.rows(), part.columns());
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

/// All bits where a word is a NaN's, or none.
#[inline(always)]
fn nan<W: Word>(x: W, infinity: W) -> W {
    (x & W::GREATEST).is_above(infinity)
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
    /// Of each output.
    neutral: &'a [W],
    to: &'a mut [W],
    /// Zeros, for outputs that are columns, of at most as many elements as a word counts.
    counted: &'a mut [W],
    /// How many are left out of each output.
    out: &'a mut [u64],
}

impl<W: Word> Kernel for Fill<'_, W> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Fill { table, marks, infinity, form, neutral, to, counted, out } = self;
        for (row, to) in to.chunks_exact_mut(table.columns()).enumerate() {
            let items = &table.row(row)[..to.len()];
            // All bits where an element is left out.
            macro_rules! fill {
                ($gone:expr) => {
                    match form {
                        Form::Rows => {
                            let (with, mut at, mut all) = (neutral[row], 0, 0);
                            while at < items.len() {
                                let end = items.len().min(at + const { most_counted::<W>() });
                                let mut count = W::of(0);
                                for i in at..end {
                                    let gone = $gone(i);
                                    count = count.counted(gone);
                                    to[i] = (items[i] & !gone) | (with & gone);
                                }
                                all += count.wide().cast_unsigned();
                                at = end;
                            }
                            out[row] = all;
                        }
                        Form::Columns => {
                            let (with, counted) =
                                (&neutral[..items.len()], &mut counted[..items.len()]);
                            for i in 0..items.len() {
                                let gone = $gone(i);
                                counted[i] = counted[i].counted(gone);
                                to[i] = (items[i] & !gone) | (with[i] & gone);
                            }
                        }
                    }
                };
            }
            if let Some(marks) = marks {
                let marks = &marks.row(row)[..items.len()];
                let none = |mark: u8| if mark == 0 { W::of(u64::MAX) } else { W::of(0) };
                fill!(|i: usize| nan(items[i], infinity) | none(marks[i]));
            } else {
                fill!(|i: usize| nan(items[i], infinity));
            }
        }
        if form == Form::Columns {
            out.iter_mut().zip(&*counted).for_each(|(out, n)| *out = n.wide().cast_unsigned());
        }
    }
}
