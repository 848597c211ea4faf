//! Elements that are left out: NaNs, where they are.
//!
//! A part of a table that has no NaN is taken in where it lies. Of another one a copy is, with an
//! element in place of each NaN that changes nothing: what that is the accumulators say. So no
//! loop over elements knows of NaNs that do not count, and the elements that do are counted beside.

use super::fold::Cells;
use super::walk::Form;
use super::words::{Word, with_word};
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;

/// Elements of a part: it stays in the first cache, with its copy.
const PART: usize = 4096;
/// The most columns of a part whose outputs are columns: so many rows share a call.
const COLUMNS: usize = 512;

/// Leaves NaNs out.
pub(super) struct Omit {
    isa: Isa,
    /// Bytes of an element, and the bits of infinity.
    size: usize,
    infinity: u64,
    /// Whether there were NaNs in the last part: so they are looked for while the next one is copied.
    odd: bool,
    /// Whole words, so that copies are aligned for every type.
    copy: Vec<u64>,
    neutral: Vec<u64>,
    nans: Vec<u64>,
}

impl Omit {
    pub(super) fn new(isa: Isa, size: usize, infinity: u64) -> Omit {
        let [copy, neutral, nans] = Default::default();
        Omit { isa, size, infinity, odd: false, copy, neutral, nans }
    }

    /// Hands a table to accumulators without its NaNs, and adds how many elements of each output
    /// are left to `counts`, which are the outputs' from `place` on.
    ///
    /// # Safety
    /// Every element of the table is aligned, and valid for reads.
    pub(super) unsafe fn take(
        &mut self,
        cells: &mut [&mut dyn Cells],
        form: Form,
        place: usize,
        table: Table<'_, ()>,
        at: usize,
        counts: &mut [u64],
    ) {
        let widest = if form == Form::Columns { COLUMNS } else { PART };
        let columns = table.columns().clamp(1, widest);
        let rows = (PART / columns).max(1);
        for row in (0..table.rows()).step_by(rows) {
            let some_rows = row..table.rows().min(row + rows);
            for column in (0..table.columns()).step_by(columns) {
                let some = column..table.columns().min(column + columns);
                let origin = table.at(some_rows.start, 0).wrapping_byte_add(some.start * self.size);
                let part = Table::of_any(origin, table.stride(), some_rows.len(), some.len());
                let (first, at) = match form {
                    Form::Rows => (some_rows.start, at + some.start),
                    Form::Columns => (some.start, at + some_rows.start),
                };
                // SAFETY: a part of the table.
                unsafe { self.part(cells, form, place + first, part, at, &mut counts[first..]) };
            }
        }
    }

    /// The same for a part of a table.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    unsafe fn part(
        &mut self,
        cells: &mut [&mut dyn Cells],
        form: Form,
        place: usize,
        part: Table<'_, ()>,
        at: usize,
        counts: &mut [u64],
    ) {
        let (outputs, each) = match form {
            Form::Rows => (part.rows(), part.columns()),
            Form::Columns => (part.columns(), part.rows()),
        };
        let counts = &mut counts[..outputs];
        counts.iter_mut().for_each(|count| *count += each as u64);
        let (isa, size, elements) = (self.isa, self.size, part.rows() * part.columns());
        let mut given = part;
        with_word!(size, W => {
            // SAFETY: the caller vouches for the elements, whose bits are words; here and below.
            let table = unsafe { part.of_elements::<W>() };
            let infinity = W::of(self.infinity);
            let odd = self.odd || dispatch_accumulators(isa, HasNans { table, infinity });
            if odd {
                let room = |words: &mut Vec<u64>, count: usize| {
                    words.resize(words.len().max((count * size).div_ceil(8)), 0);
                };
                room(&mut self.copy, elements);
                room(&mut self.neutral, outputs);
                room(&mut self.nans, outputs);
            }
            let mut first = true;
            for cells in cells {
                if odd {
                    let neutral = &mut bytemuck::cast_slice_mut(&mut self.neutral)[..outputs * size];
                    assert!(cells.neutral(place, neutral), "an operation that omits nothing");
                    let neutral: &[W] = bytemuck::cast_slice(neutral);
                    let copy: &mut [W] = &mut bytemuck::cast_slice_mut(&mut self.copy)[..elements];
                    let nans: &mut [W] = &mut bytemuck::cast_slice_mut(&mut self.nans)[..outputs];
                    nans.fill(W::of(0));
                    let fill = Fill { table, infinity, form, neutral, to: &mut *copy, nans: &mut *nans };
                    dispatch_accumulators(isa, fill);
                    if first {
                        let mut any = 0;
                        for (count, nans) in counts.iter_mut().zip(&*nans) {
                            any |= nans.wide();
                            *count -= nans.wide().cast_unsigned();
                        }
                        (self.odd, first) = (any != 0, false);
                    }
                    let stride = (part.columns() * size).cast_signed();
                    let origin = copy.as_ptr().cast();
                    given = Table::of_any(origin, stride, part.rows(), part.columns());
                }
                // SAFETY: elements of the table, or of the copy, which is aligned.
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

/// Copies a table, with other elements in place of NaNs, and counts these.
struct Fill<'a, W> {
    table: Table<'a, W>,
    infinity: W,
    form: Form,
    /// Of each output.
    neutral: &'a [W],
    to: &'a mut [W],
    /// How many NaNs each output has: fewer than the words can say.
    nans: &'a mut [W],
}

impl<W: Word> Kernel for Fill<'_, W> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Fill { table, infinity, form, neutral, to, nans } = self;
        for (row, to) in to.chunks_exact_mut(table.columns()).enumerate() {
            let items = table.row(row);
            match form {
                Form::Rows => {
                    let (with, mut count) = (neutral[row], W::of(0));
                    for (to, &x) in to.iter_mut().zip(items) {
                        let nan = nan(x, infinity);
                        *to = (x & !nan) | (with & nan);
                        count = count.counted(nan);
                    }
                    nans[row] = count;
                }
                Form::Columns => {
                    let (to, with) = (&mut to[..items.len()], &neutral[..items.len()]);
                    let nans = &mut nans[..items.len()];
                    for i in 0..items.len() {
                        let nan = nan(items[i], infinity);
                        to[i] = (items[i] & !nan) | (with[i] & nan);
                        nans[i] = nans[i].counted(nan);
                    }
                }
            }
        }
    }
}
