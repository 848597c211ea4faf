//! Shorter floats for accumulators of longer ones, which hold them exactly.
//!
//! Loops over elements are compiled for f32 and f64 alone. f16, bf16, and floats whose answers are of a
//! longer type are copied first, a few KiB at a time, so that the copy stays in the first cache.

use super::fold::{Accumulators, Cells, Fold, Left, Part, RaggedCells, RaggedFold, of_one_fold};
use super::lengths::Lengths;
use super::short::leave;
use super::walk::Form;
use crate::exact::Widen;
use crate::isa::Isa;
use crate::pack::room;
use crate::ragged::{Ragged, Span};
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;
use bytemuck::Zeroable;
use core::alloc::Layout;
use warpfold_core::element::{bf16, f16};
use warpfold_core::{DType, Element, with_element};

/// Elements of a copy.
const PART: usize = 4096;
/// The most columns of a copy whose outputs are columns: so many rows share a call.
const COLUMNS: usize = 512;
/// Elements of two of the widest vectors.
const GROUP: usize = 16;

/// From one type to the next longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Widening {
    isa: Isa,
    /// f16, bf16 or f32.
    from: DType,
    /// Whether the answers are of the type of the shorter ones.
    shortens: bool,
}

impl Widening {
    /// The type that elements are brought to: f32, or f64 from f32.
    fn to(self) -> DType {
        if self.from == DType::F32 { DType::F64 } else { DType::F32 }
    }

    /// Copies a table to rows that follow each other.
    ///
    /// # Safety
    /// Every element of the table may be read, and is aligned.
    unsafe fn copy(self, table: Table<'_, ()>, to: &mut [u8]) {
        macro_rules! copy {
            ($t:ty) => {{
                // SAFETY: the caller vouches for the elements.
                let table = unsafe { table.of_elements::<$t>() };
                let to = bytemuck::cast_slice_mut(to);
                dispatch_accumulators(self.isa, Copy { table, to })
            }};
        }
        match self.from {
            DType::F16 => copy!(f16),
            DType::BF16 => copy!(bf16),
            _ => copy!(f32),
        }
    }

    /// Writes longer floats as the shorter ones that they are.
    fn shorten(self, wide: &[u8], to: &mut [u8]) {
        macro_rules! shorten {
            ($t:ty) => {{
                let (wide, to) = (bytemuck::cast_slice(wide), bytemuck::cast_slice_mut(to));
                dispatch_accumulators(self.isa, Shorten::<$t> { wide, to })
            }};
        }
        match self.from {
            DType::F16 => shorten!(f16),
            DType::BF16 => shorten!(bf16),
            _ => shorten!(f32),
        }
    }

    /// A copy of a table.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy).
    unsafe fn table<'a>(self, table: Table<'_, ()>, buffer: &'a mut Vec<u64>) -> Table<'a, ()> {
        let row = table.columns() * self.to().size();
        let to = room(buffer, table.rows() * row);
        // SAFETY: passed on from the caller.
        unsafe { self.copy(table, to) };
        Table::of_any(to.as_ptr().cast(), row.cast_signed(), table.rows(), table.columns())
    }

    /// A copy of rows, which then follow each other.
    ///
    /// # Safety
    /// Every element of the slice that the rows are of may be read, and is aligned.
    unsafe fn rows<'a>(self, rows: Ragged<'_, ()>, copy: &'a mut RowsCopy) -> Ragged<'a, ()> {
        let RowsCopy { words, spans } = copy;
        spans.clear();
        let mut total = 0;
        for row in 0..rows.rows() {
            let len = rows.span(row).len;
            spans.push(Span { start: total, len });
            total += len;
        }
        let (from, size) = (self.from.size(), self.to().size());
        let to = room(words, total * size);
        let mut row = 0;
        while row < rows.rows() {
            let Span { start, mut len } = rows.span(row);
            let at = spans[row].start;
            row += 1;
            // Rows that follow each other are copied together.
            while row < rows.rows() && rows.span(row).start == start + len {
                len += rows.span(row).len;
                row += 1;
            }
            let together = Table::of_any(rows.origin().wrapping_byte_add(start * from), 0, 1, len);
            // SAFETY: elements of the rows.
            unsafe { self.copy(together, &mut to[at * size..(at + len) * size]) };
        }
        Ragged::of_any(to.as_ptr().cast(), total, spans)
    }
}

/// Copies elements to where they follow each other.
struct Copy<'a, 'b, T: Shorter> {
    table: Table<'a, T>,
    to: &'b mut [T::Longer],
}

impl<T: Shorter> Kernel for Copy<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Copy { table, to } = self;
        match table.items() {
            // SAFETY: passed on from the caller, here and below.
            Some(items) => unsafe { copy::<S, T>(items, to) },
            None => {
                for (row, to) in to.chunks_exact_mut(table.columns().max(1)).enumerate() {
                    // SAFETY: as above.
                    unsafe { copy::<S, T>(table.row(row), to) };
                }
            }
        }
    }
}

/// Writes longer floats as shorter ones: a plain loop, of which compilers make vectors.
struct Shorten<'a, T: Shorter> {
    wide: &'a [T::Longer],
    to: &'a mut [T],
}

impl<T: Shorter> Kernel for Shorten<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for (to, &x) in self.to.iter_mut().zip(self.wide) {
            *to = T::of(x);
        }
    }
}

/// Copies as many elements.
#[inline(always)]
unsafe fn copy<S: Simd, T: Shorter>(items: &[T], to: &mut [T::Longer]) {
    let to = &mut to[..items.len()];
    let group = 2 * S::LANES;
    let whole = items.len() / group * group;
    // SAFETY: whole groups of both; the rest goes by way of buffers with room for one.
    unsafe {
        for at in (0..whole).step_by(group) {
            T::copy::<S>(items[at..at + group].as_ptr(), to[at..at + group].as_mut_ptr());
        }
        if whole < items.len() {
            let (mut short, mut long) = ([T::zeroed(); GROUP], [T::Longer::zeroed(); GROUP]);
            let rest = items.len() - whole;
            short[..rest].copy_from_slice(&items[whole..]);
            T::copy::<S>(short.as_ptr(), long.as_mut_ptr());
            to[whole..].copy_from_slice(&long[..rest]);
        }
    }
}

/// Floats that are brought to a longer type.
trait Shorter: Element + bytemuck::Pod {
    /// That type.
    type Longer: bytemuck::Pod;
    /// Copies `2 * LANES` elements.
    ///
    /// # Safety
    /// See [`Simd`]; both are valid for so many.
    unsafe fn copy<S: Simd>(from: *const Self, to: *mut Self::Longer);
    /// The way back.
    fn of(x: Self::Longer) -> Self;
}

impl Shorter for f16 {
    type Longer = f32;

    #[inline(always)]
    unsafe fn copy<S: Simd>(from: *const f16, to: *mut f32) {
        // SAFETY: passed on from the caller.
        unsafe { S::wstore(S::load_f16(from.cast()), to.cast()) }
    }

    #[inline(always)]
    fn of(x: f32) -> f16 {
        f16::from_f32(x)
    }
}

impl Shorter for bf16 {
    type Longer = f32;

    #[inline(always)]
    unsafe fn copy<S: Simd>(from: *const bf16, to: *mut f32) {
        // SAFETY: passed on from the caller.
        unsafe { S::wstore(S::load_bf16(from.cast()), to.cast()) }
    }

    #[inline(always)]
    fn of(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}

impl Shorter for f32 {
    type Longer = f64;

    #[inline(always)]
    unsafe fn copy<S: Simd>(from: *const f32, to: *mut f64) {
        // SAFETY: passed on from the caller.
        unsafe {
            let [low, high] = f32::widen::<S>(from);
            S::store(low, to);
            S::store(high, to.add(S::LANES));
        }
    }

    #[inline(always)]
    fn of(x: f64) -> f32 {
        x as f32
    }
}

/// An operation on longer floats, of shorter ones.
struct Widened<F: ?Sized> {
    how: Widening,
    inner: Box<F>,
}

/// An operation on tables of longer floats, of elements that are brought from one type to another.
pub(super) fn of_tables(isa: Isa, types: [DType; 2], fold: Box<dyn Fold>) -> Box<dyn Fold> {
    steps(isa, types).fold(fold, |inner, how| Box::new(Widened { how, inner }))
}

/// The same for segments.
pub(super) fn of_segments(
    isa: Isa,
    types: [DType; 2],
    fold: Box<dyn RaggedFold>,
) -> Box<dyn RaggedFold> {
    steps(isa, types).fold(fold, |inner, how| Box::new(Widened { how, inner }))
}

/// How elements are brought from one type to another, the last step first.
fn steps(isa: Isa, [from, to]: [DType; 2]) -> impl Iterator<Item = Widening> {
    let last = (to == DType::F64).then_some(DType::F32);
    let first = (from.size() < DType::F32.size()).then_some(from);
    last.into_iter().chain(first).map(move |from| Widening { isa, from, shortens: last.is_none() })
}

impl Fold for Widened<dyn Fold> {
    fn item(&self) -> Layout {
        with_element!(self.how.from, T => Layout::new::<T>())
    }

    /// Where no answer is rounded twice: those of single elements are themselves, magnitudes, zeros.
    fn is_quick(&self, elements: usize) -> bool {
        (elements == 1 || !self.how.shortens) && self.inner.is_quick(elements)
    }

    fn has_neutral(&self) -> bool {
        self.inner.has_neutral()
    }

    fn has_sums(&self) -> bool {
        self.inner.has_sums()
    }

    fn cells(&self) -> Box<dyn Cells> {
        let (how, inner) = (self.how, self.inner.cells());
        Box::new(WidenedCells { how, inner, copies: Default::default() })
    }
}

impl RaggedFold for Widened<dyn RaggedFold> {
    fn ragged(&self) -> Box<dyn RaggedCells> {
        let (how, inner) = (self.how, self.inner.ragged());
        Box::new(WidenedRagged { how, inner, copies: Default::default() })
    }
}

/// Accumulators of longer floats, with room for copies.
struct WidenedAccumulators<A: ?Sized, C> {
    how: Widening,
    inner: Box<A>,
    copies: C,
}

/// The copies are of tables, of those beside them, and of answers.
type WidenedCells = WidenedAccumulators<dyn Cells, [Vec<u64>; 3]>;
/// The copies are of segments, and of those beside them.
type WidenedRagged = WidenedAccumulators<dyn RaggedCells, [RowsCopy; 2]>;

impl WidenedCells {
    /// Hands over copies of a table, or of two, a part at a time.
    ///
    /// # Safety
    /// Every element of the tables may be read, and is aligned.
    unsafe fn take(
        &mut self,
        (form, place, at): (Form, usize, usize),
        table: Table<'_, ()>,
        other: Option<Table<'_, ()>>,
    ) {
        let WidenedCells { how, inner, copies: [one, two, _], .. } = self;
        let widest = if form == Form::Columns { COLUMNS } else { PART };
        let columns = table.columns().clamp(1, widest);
        let rows = (PART / columns).max(1);
        for row in (0..table.rows()).step_by(rows) {
            let rows = rows.min(table.rows() - row);
            for column in (0..table.columns()).step_by(columns) {
                let columns = columns.min(table.columns() - column);
                let part = |table: Table<'_, ()>| {
                    let first =
                        table.at(0, 0).wrapping_byte_offset(row.cast_signed() * table.stride());
                    let first = first.wrapping_byte_add(column * how.from.size());
                    Table::of_any(first, table.stride(), rows, columns)
                };
                // SAFETY: parts of the tables, and copies of them, which are aligned.
                unsafe {
                    let table = how.table(part(table), one);
                    let other = other.map(|other| how.table(part(other), two));
                    match (form, other) {
                        (Form::Rows, None) => inner.rows(place + row, table, at + column),
                        (Form::Columns, None) => inner.columns(place + column, table, at + row),
                        (Form::Rows, Some(other)) => inner.row_pairs(place + row, [table, other]),
                        (Form::Columns, Some(other)) => {
                            inner.column_pairs(place + column, [table, other]);
                        }
                    }
                }
            }
        }
    }
}

impl<A: Accumulators + ?Sized, C> Accumulators for WidenedAccumulators<A, C> {
    fn clear(&mut self, count: usize) {
        self.inner.clear(count);
    }

    fn answer(&mut self, lengths: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>) {
        self.inner.answer(lengths, to, missing);
    }

    fn ask(&mut self, question: Part) -> bool {
        self.inner.ask(question)
    }
}

impl Cells for WidenedCells {
    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, at: usize) {
        // SAFETY: passed on from the caller, here and below.
        unsafe { self.take((Form::Rows, place, at), table, None) }
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, at: usize) {
        // SAFETY: as above.
        unsafe { self.take((Form::Columns, place, at), table, None) }
    }

    fn begin_survey(&mut self, count: usize) -> bool {
        self.inner.begin_survey(count)
    }

    fn end_survey(&mut self, count: usize) -> bool {
        self.inner.end_survey(count)
    }

    fn wants_origins(&self) -> bool {
        self.inner.wants_origins()
    }

    unsafe fn origins(&mut self, place: usize, table: Table<'_, ()>) {
        // SAFETY: as above.
        unsafe {
            let table = self.how.table(table, &mut self.copies[0]);
            self.inner.origins(place, table);
        }
    }

    /// Neutral elements are zeros, infinities, NaNs or elements that were longer from the beginning: shorter
    /// floats are all of these.
    fn neutral(&self, place: usize, to: &mut [u8]) {
        let how = self.how;
        let mut words = Vec::new();
        let wide = room(&mut words, to.len() / how.from.size() * how.to().size());
        self.inner.neutral(place, wide);
        how.shorten(wide, to);
    }

    unsafe fn quick(&mut self, tables: [&[Table<'_, ()>]; 2], to: &mut [u8]) -> Option<Left> {
        let WidenedCells { how, inner, copies: [one, two, wide] } = self;
        let (size, answer) = (how.to().size(), if how.shortens { how.from } else { DType::F64 });
        let outputs = to.len() / answer.size();
        let rows = |tables: &[Table<'_, ()>]| tables.iter().map(Table::rows).sum::<usize>();
        // What is rounded to the longer type first is rounded twice.
        if how.shortens && rows(tables[0]) != 1 {
            return None;
        }
        let mut left = Left::new();
        let step = (PART / rows(tables[0]).max(1)).max(2 * GROUP).min(outputs);
        for from in (0..outputs).step_by(step.max(1)) {
            // The last columns with some of those before them: groups have to be whole.
            let from = from.min(outputs - step);
            let copy = |tables: &[Table<'_, ()>], buffer| {
                let (row, rows) = (step * size, rows(tables));
                let all = room(buffer, rows * row);
                let mut at = 0;
                for table in tables {
                    let first = table.at(0, 0).wrapping_byte_add(from * how.from.size());
                    let table = Table::of_any(first, table.stride(), table.rows(), step);
                    let end = at + table.rows() * row;
                    // SAFETY: some columns of the table.
                    unsafe { how.copy(table, &mut all[at..end]) };
                    at = end;
                }
                Table::of_any(all.as_ptr().cast(), row.cast_signed(), rows, step)
            };
            let other = (!tables[1].is_empty()).then(|| copy(tables[1], two));
            let tables = [&[copy(tables[0], one)][..], other.as_slice()];
            let to = &mut to[from * answer.size()..(from + step) * answer.size()];
            let some = if how.shortens {
                let wide = room(wide, step * size);
                // SAFETY: copies, which are aligned.
                let some = unsafe { inner.quick(tables, wide) };
                how.shorten(wide, to);
                some
            } else {
                // SAFETY: as above.
                unsafe { inner.quick(tables, to) }
            };
            leave(&mut left, some?.into_iter().map(|i| from + i), outputs)?;
        }
        Some(left)
    }

    unsafe fn row_pairs(&mut self, place: usize, [one, two]: [Table<'_, ()>; 2]) {
        // SAFETY: as above.
        unsafe { self.take((Form::Rows, place, 0), one, Some(two)) }
    }

    unsafe fn column_pairs(&mut self, place: usize, [one, two]: [Table<'_, ()>; 2]) {
        // SAFETY: as above.
        unsafe { self.take((Form::Columns, place, 0), one, Some(two)) }
    }

    fn least_panel(&self) -> usize {
        self.inner.least_panel()
    }

    fn merge(&mut self, others: &dyn Cells) {
        self.inner.merge(&*of_one_fold::<Self>(others).inner);
    }
}

/// Copies of rows, and their places.
#[derive(Default)]
struct RowsCopy {
    words: Vec<u64>,
    spans: Vec<Span>,
}

impl RaggedCells for WidenedRagged {
    unsafe fn take(&mut self, rows: Ragged<'_, ()>) {
        // SAFETY: the caller vouches for the elements; copies are aligned; here and below.
        unsafe { self.inner.take(self.how.rows(rows, &mut self.copies[0])) }
    }

    unsafe fn take_pairs(&mut self, rows: [Ragged<'_, ()>; 2]) {
        let [one, two] = &mut self.copies;
        // SAFETY: as above.
        unsafe {
            let rows = [self.how.rows(rows[0], one), self.how.rows(rows[1], two)];
            self.inner.take_pairs(rows);
        }
    }
}
