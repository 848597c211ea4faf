//! Accumulators of plain words, in loops that compilers turn into vectors.

use super::finish::{Request, Scratch};
use super::fold::{
    Accumulators, Cells, Fold, Left, Part, RaggedCells, RaggedFold, begin_with, of_one_fold,
};
use super::lengths::Lengths;
use super::short::{self, rows_of};
use crate::isa::Isa;
use crate::ragged::Ragged;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;
use core::alloc::Layout;
use warpfold_core::prefetch;

/// An operation that keeps up to three words of each output.
pub(super) trait Lanes: Copy + Send + Sync + 'static {
    /// The elements.
    type Item: bytemuck::Pod;
    /// The words; what is not needed is `()`.
    type A: Copy + Send;
    /// The second word.
    type B: Copy + Send;
    /// The third.
    type C: Copy + Send;
    /// Words that have seen nothing.
    const START: (Self::A, Self::B, Self::C);
    /// The most outputs together that may be [settled](Cells::is_settled).
    const MOST_SETTLED: usize = 0;
    /// Whether [`ShortAsked::Mean`] may be asked for.
    const MEANS: bool = false;

    /// Takes in an element at position `at`, which is beyond those before.
    fn take(self, a: &mut Self::A, b: &mut Self::B, c: &mut Self::C, x: Self::Item, at: u32);
    /// Takes in an element for each of `N` outputs, or for each lane of one.
    #[inline(always)]
    fn take_all<const N: usize>(
        self,
        a: &mut [Self::A; N],
        b: &mut [Self::B; N],
        c: &mut [Self::C; N],
        items: &[Self::Item; N],
        at: u32,
    ) {
        for i in 0..N {
            self.take(&mut a[i], &mut b[i], &mut c[i], items[i], at);
        }
    }
    /// Takes in the words of other elements.
    fn merge(words: &mut (Self::A, Self::B, Self::C), others: (Self::A, Self::B, Self::C));
    /// The second word of lane `lane` of `lanes`, whose positions counted vectors that
    /// begin at element `at`.
    fn spread(b: Self::B, lane: usize, lanes: usize, at: usize) -> Self::B {
        let _ = (lane, lanes, at);
        b
    }
    /// The words of a row whose first element is at position `at`, where there is a
    /// quicker way than element by element.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn row<S: Simd>(
        self,
        items: &[Self::Item],
        at: usize,
    ) -> Option<(Self::A, Self::B, Self::C)> {
        let _ = (items, at);
        None
    }
    /// Whether no element can change the answer.
    fn is_settled(self, a: Self::A) -> bool {
        let _ = a;
        false
    }
    /// See [`Accumulators::ask`].
    fn ask(&mut self, question: Part) -> bool {
        question == Part::Own
    }
    /// An element that changes no answer, if there is one.
    fn neutral(&self) -> Option<Self::Item> {
        None
    }
    /// What the words of a few elements are turned to without a table of them, if they are.
    fn short(&self) -> Option<ShortAsked> {
        None
    }
    /// The answer of all outputs of one element, if it does not depend on that.
    fn of_one(&self) -> Option<Self::Out> {
        None
    }
    /// The answer of an output of `len` elements: the mean or the root, or what the words are; and
    /// whether it is right.
    #[inline(always)]
    fn finish<const MEAN: bool>(
        self,
        words: (Self::A, Self::B, Self::C),
        len: u64,
    ) -> (Self::Out, bool) {
        let _ = (words, len);
        (<Self::Out as bytemuck::Zeroable>::zeroed(), false)
    }
    /// Answers outputs of a few elements, `column` elements from the beginning of each row,
    /// where there is a quicker way than by words; `false` where there is none.
    ///
    /// # Safety
    /// These elements may be read.
    #[inline(always)]
    unsafe fn few_ends<const N: usize>(
        self,
        rows: &[*const Self::Item],
        column: usize,
        to: &mut [Self::Out; N],
    ) -> bool {
        let _ = (rows, column, to);
        false
    }
    /// An answer's word.
    type Out: bytemuck::Pod;
    /// Writes the answers of outputs, as many as `to` has room for; those that are not
    /// there are missing.
    fn answer(&self, words: Words<'_, Self>, to: &mut [Self::Out], request: Request<'_>) {
        self.answer_each(words, to, request);
    }
    /// The same of those that are what the words are.
    fn answer_each(&self, words: Words<'_, Self>, to: &mut [Self::Out], request: Request<'_>) {
        let count = to.len();
        let (a, b, c) = (&words.a[..count], &words.b[..count], &words.c[..count]);
        for (i, to) in to.iter_mut().enumerate() {
            let (answer, right) = self.finish::<false>((a[i], b[i], c[i]), request.lengths.at(i));
            *to = answer;
            if !right {
                request.missing.push(i);
            }
        }
    }
}

/// What is asked of outputs of a few elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShortAsked {
    Words,
    /// The mean, or the root of what the words are: known to the compiler, for loops of vectors.
    Mean,
}

/// The words of some outputs.
pub(super) struct Words<'a, L: Lanes> {
    pub(super) a: &'a [L::A],
    pub(super) b: &'a [L::B],
    pub(super) c: &'a [L::C],
}

/// A [`Fold`] of lanes.
#[derive(Clone, Copy)]
pub(super) struct Laned<L> {
    pub(super) isa: Isa,
    pub(super) lanes: L,
}

impl<L: Lanes> Fold for Laned<L> {
    fn item(&self) -> Layout {
        Layout::new::<L::Item>()
    }

    fn is_quick(&self, elements: usize) -> bool {
        let one = elements == 1 && self.lanes.of_one().is_some();
        one || elements <= short::MOST && self.lanes.short().is_some()
    }

    fn has_neutral(&self) -> bool {
        self.lanes.neutral().is_some()
    }

    fn cells(&self) -> Box<dyn Cells> {
        Box::new(LanedCells::new(*self))
    }
}

impl<L: Lanes> RaggedFold for Laned<L> {
    fn ragged(&self) -> Box<dyn RaggedCells> {
        Box::new(LanedCells::new(*self))
    }
}

/// The accumulators of an operation, word by word.
pub(super) struct LanedCells<L: Lanes> {
    fold: Laned<L>,
    pub(super) a: Vec<L::A>,
    pub(super) b: Vec<L::B>,
    pub(super) c: Vec<L::C>,
    scratch: Scratch,
}

impl<L: Lanes> LanedCells<L> {
    pub(super) fn new(fold: Laned<L>) -> Self {
        let (a, b, c) = (Vec::new(), Vec::new(), Vec::new());
        LanedCells { fold, a, b, c, scratch: Scratch::default() }
    }

    /// Adds each row to its output, from `place` on.
    pub(super) fn add_rows(&mut self, place: usize, rows: Rows<'_, L::Item>, at: usize) {
        dispatch_accumulators(self.fold.isa, RowByRow { rows, cells: self, place, at });
    }

    /// Adds each column to its output, from `place` on.
    pub(super) fn add_columns(&mut self, place: usize, table: Table<'_, L::Item>, at: usize) {
        dispatch_accumulators(self.fold.isa, Columns { table, cells: self, place, at });
    }
}

impl<L: Lanes> Accumulators for LanedCells<L> {
    fn ask(&mut self, question: Part) -> bool {
        self.fold.lanes.ask(question)
    }

    fn clear(&mut self, count: usize) {
        let (a, b, c) = L::START;
        begin_with(&mut self.a, count, a);
        begin_with(&mut self.b, count, b);
        begin_with(&mut self.c, count, c);
    }

    fn answer(&mut self, lengths: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>) {
        let to: &mut [L::Out] = bytemuck::cast_slice_mut(to);
        let count = to.len();
        let words = Words { a: &self.a[..count], b: &self.b[..count], c: &self.c[..count] };
        let (isa, scratch) = (self.fold.isa, &mut self.scratch);
        self.fold.lanes.answer(words, to, Request { isa, lengths, scratch, missing });
    }
}

impl<L: Lanes> Cells for LanedCells<L> {
    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, at: usize) {
        // SAFETY: the caller vouches for the elements.
        self.add_rows(place, Rows::Table(unsafe { table.of_elements() }), at);
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, at: usize) {
        // SAFETY: the caller vouches for the elements.
        self.add_columns(place, unsafe { table.of_elements() }, at);
    }

    fn neutral(&self, _: usize, to: &mut [u8]) {
        if let Some(neutral) = self.fold.lanes.neutral() {
            bytemuck::cast_slice_mut(to).fill(neutral);
        }
    }

    unsafe fn quick(&mut self, tables: [&[Table<'_, ()>]; 2], to: &mut [u8]) -> Option<Left> {
        let Laned { isa, lanes } = self.fold;
        let to: &mut [L::Out] = bytemuck::cast_slice_mut(to);
        // SAFETY: passed on from the caller.
        let (rows, len) = unsafe { rows_of(tables[0], to.len()) }?;
        if let (1, Some(answer)) = (len, lanes.of_one()) {
            to.fill(answer);
            return Some(Left::new());
        }
        let found = match lanes.short()? {
            ShortAsked::Words => {
                dispatch_accumulators(isa, FewLanes::<L, false> { rows, len, lanes, to })
            }
            ShortAsked::Mean if const { L::MEANS } => {
                dispatch_accumulators(isa, FewLanes::<L, true> { rows, len, lanes, to })
            }
            ShortAsked::Mean => return None,
        };
        found.then(Left::new)
    }

    fn merge(&mut self, others: &dyn Cells) {
        let others = of_one_fold::<Self>(others);
        for i in 0..self.a.len() {
            let mut words = (self.a[i], self.b[i], self.c[i]);
            L::merge(&mut words, (others.a[i], others.b[i], others.c[i]));
            (self.a[i], self.b[i], self.c[i]) = words;
        }
    }

    fn glance(&self) -> Option<usize> {
        (self.a.len() <= L::MOST_SETTLED).then_some(GLANCE)
    }

    fn is_settled(&self) -> bool {
        (const { L::MOST_SETTLED > 0 }) && self.a.iter().all(|&a| self.fold.lanes.is_settled(a))
    }
}

impl<L: Lanes> RaggedCells for LanedCells<L> {
    unsafe fn take(&mut self, rows: Ragged<'_, ()>) {
        // SAFETY: the caller vouches for the elements.
        self.add_rows(0, Rows::Ragged(unsafe { rows.of_elements() }), 0);
    }
}

/// Elements that a row is worth a call for.
const GLANCE: usize = 64;

/// Bytes of the accumulators that a loop keeps in registers.
const REGISTERS: usize = 128;

const fn largest(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// Adds each column of a table to its output.
struct Columns<'a, 'b, L: Lanes> {
    table: Table<'a, L::Item>,
    cells: &'b mut LanedCells<L>,
    place: usize,
    at: usize,
}

impl<L: Lanes> Kernel for Columns<'_, '_, L> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let columns = self.table.columns();
        let mut this = self;
        let done = match const { REGISTERS / largest(size_of::<L::A>(), size_of::<L::Item>()) } {
            16 if columns >= 16 => this.in_groups::<16>(),
            16 if columns >= 4 => this.in_groups::<4>(),
            32 if columns >= 32 => this.in_groups::<32>(),
            64 if columns >= 64 => this.in_groups::<64>(),
            32 | 64 if columns >= 8 => this.in_groups::<8>(),
            128 if columns >= 128 => this.in_groups::<128>(),
            128 if columns >= 16 => this.in_groups::<16>(),
            _ => 0,
        };
        if done < columns {
            this.rest(done);
        }
    }
}

impl<L: Lanes> Columns<'_, '_, L> {
    /// Takes in at least `N` columns, and returns how many: all but a few.
    #[inline(always)]
    fn in_groups<const N: usize>(&mut self) -> usize {
        let Columns { table, cells, place, at } = self;
        let lanes = cells.fold.lanes;
        let columns = table.columns();
        let some = *place..*place + columns;
        let (all_a, all_b) = (&mut cells.a[some.clone()], &mut cells.b[some.clone()]);
        let all_c = &mut cells.c[some];
        let mut next = 0;
        while columns - next > N / 4 {
            // The last group has some of the columns before it, which are left as they are.
            let left = next.min(columns - N);
            let (group, old) = (left..left + N, next - left);
            let (mut a, mut b, mut c) = ([L::START.0; N], [L::START.1; N], [L::START.2; N]);
            a.copy_from_slice(&all_a[group.clone()]);
            b.copy_from_slice(&all_b[group.clone()]);
            c.copy_from_slice(&all_c[group.clone()]);
            let size = size_of::<L::Item>();
            let (mut ahead, step) = table.ahead(size * left, size * N);
            for row in 0..table.rows() {
                for line in (0..size * N).step_by(64) {
                    prefetch::near(ahead.wrapping_add(line));
                }
                ahead = ahead.wrapping_offset(step);
                let items = array(&table.row(row)[group.clone()]);
                lanes.take_all(&mut a, &mut b, &mut c, items, (*at + row) as u32);
            }
            put(&a, &mut all_a[group.clone()], old);
            put(&b, &mut all_b[group.clone()], old);
            put(&c, &mut all_c[group], old);
            next = left + N;
        }
        next
    }

    /// Takes in the columns from `first` on.
    #[inline(always)]
    fn rest(self, first: usize) {
        let Columns { table, cells, place, at } = self;
        let lanes = cells.fold.lanes;
        let some = place + first..place + table.columns();
        let (a, b) = (&mut cells.a[some.clone()], &mut cells.b[some.clone()]);
        let c = &mut cells.c[some];
        for row in 0..table.rows() {
            let items = &table.row(row)[first..];
            let at = (at + row) as u32;
            for (((a, b), c), &x) in a.iter_mut().zip(b.iter_mut()).zip(c.iter_mut()).zip(items) {
                lanes.take(a, b, c, x, at);
            }
        }
    }
}

/// A slice of this length.
#[inline(always)]
pub(super) fn array<T, const N: usize>(items: &[T]) -> &[T; N] {
    items.first_chunk().expect("a slice of this length")
}

/// Copies words to a slice of this length, but for the first ones. The words themselves
/// are indexed by nothing that is not known when this is compiled, so that they stay in
/// registers.
#[inline(always)]
fn put<T: Copy, const N: usize>(from: &[T; N], to: &mut [T], old: usize) {
    let mut spare = *from;
    let whole = if old == 0 { to.first_chunk_mut() } else { None };
    *whole.unwrap_or(&mut spare) = *from;
    if old > 0 {
        to[old..].copy_from_slice(&spare[old..]);
    }
}

/// Answers outputs of a few elements from registers, and returns whether all answers are
/// right.
struct FewLanes<'a, L: Lanes, const MEAN: bool> {
    /// The first `len` of them have an element of each output, which may be read.
    rows: [*const L::Item; short::MOST],
    len: usize,
    lanes: L,
    to: &'a mut [L::Out],
}

impl<L: Lanes, const MEAN: bool> Kernel for FewLanes<'_, L, MEAN> {
    type Out = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        let columns = self.to.len();
        let mut this = self;
        match const { REGISTERS / largest(size_of::<L::A>(), size_of::<L::Item>()) } {
            16 if columns >= 16 => this.in_groups::<16>(),
            32 if columns >= 32 => this.in_groups::<32>(),
            64 if columns >= 64 => this.in_groups::<64>(),
            128 if columns >= 128 => this.in_groups::<128>(),
            _ => false,
        }
    }
}

impl<L: Lanes, const MEAN: bool> FewLanes<'_, L, MEAN> {
    /// Answers at least `N` outputs.
    #[inline(always)]
    fn in_groups<const N: usize>(&mut self) -> bool {
        let FewLanes { rows, len, lanes, to } = self;
        let last = to.len() - N;
        let mut sure = true;
        for column in (0..to.len()).step_by(N) {
            // The last group has some of the columns before it.
            let column = column.min(last);
            let Some(to) = to[column..].first_chunk_mut::<N>() else { return false };
            // SAFETY: every row has an element for each of `to`.
            if unsafe { lanes.few_ends(&rows[..*len], column, to) } {
                continue;
            }
            let (mut a, mut b, mut c) = ([L::START.0; N], [L::START.1; N], [L::START.2; N]);
            for (at, row) in rows[..*len].iter().enumerate() {
                // SAFETY: every row has an element for each of `to`.
                let items = unsafe { &*row.add(column).cast::<[L::Item; N]>() };
                short::ask_ahead(items.as_ptr(), N);
                if const { size_of::<L::Item>() >= short::LONG } {
                    // Without it compilers take elements of four rows into one vector: of 4 rows
                    // of i64 a quarter as fast.
                    prefetch::near(items.as_ptr().wrapping_add(2 * N).cast());
                }
                lanes.take_all(&mut a, &mut b, &mut c, items, at as u32);
            }
            // Copies, which are indexed: see `put`.
            let (mut all_a, mut all_b, mut all_c) =
                ([L::START.0; N], [L::START.1; N], [L::START.2; N]);
            all_a.copy_from_slice(&a);
            all_b.copy_from_slice(&b);
            all_c.copy_from_slice(&c);
            for i in 0..N {
                let words = (all_a[i], all_b[i], all_c[i]);
                let (answer, right) = lanes.finish::<MEAN>(words, *len as u64);
                to[i] = answer;
                sure &= right;
            }
        }
        sure
    }
}

/// Elements of a row for which lanes do not pay.
const FEW: usize = 12;

/// Adds each row to its output.
struct RowByRow<'a, 'b, L: Lanes> {
    rows: Rows<'a, L::Item>,
    cells: &'b mut LanedCells<L>,
    place: usize,
    at: usize,
}

impl<L: Lanes> Kernel for RowByRow<'_, '_, L> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let RowByRow { rows, cells, place, at } = self;
        let lanes = cells.fold.lanes;
        // Short rows have no use for more lanes than they have elements.
        let most = REGISTERS / largest(size_of::<L::A>(), size_of::<L::Item>());
        for row in 0..rows.count() {
            let items = rows.row(row);
            let short = items.len() < 4 * most;
            let i = place + row;
            let mut words = (cells.a[i], cells.b[i], cells.c[i]);
            if items.len() < FEW {
                for (i, &x) in items.iter().enumerate() {
                    lanes.take(&mut words.0, &mut words.1, &mut words.2, x, (at + i) as u32);
                }
            // SAFETY: passed on from the caller.
            } else if let Some(found) = unsafe { lanes.row::<S>(items, at) } {
                L::merge(&mut words, found);
            } else if short {
                in_lanes::<L, 8>(lanes, &mut words, items, at);
            } else {
                match const { REGISTERS / largest(size_of::<L::A>(), size_of::<L::Item>()) } {
                    16 => in_lanes::<L, 16>(lanes, &mut words, items, at),
                    32 => in_lanes::<L, 32>(lanes, &mut words, items, at),
                    64 => in_lanes::<L, 64>(lanes, &mut words, items, at),
                    _ => in_lanes::<L, 128>(lanes, &mut words, items, at),
                }
            }
            (cells.a[i], cells.b[i], cells.c[i]) = words;
        }
    }
}

/// Adds a row whose first element is at position `at`.
#[inline(always)]
fn in_lanes<L: Lanes, const N: usize>(
    lanes: L,
    words: &mut (L::A, L::B, L::C),
    items: &[L::Item],
    at: usize,
) {
    let (mut a, mut b, mut c) = ([L::START.0; N], [L::START.1; N], [L::START.2; N]);
    let mut vectors = items.chunks_exact(N);
    let mut index = 0u32;
    for items in &mut vectors {
        prefetch::ahead(items);
        lanes.take_all(&mut a, &mut b, &mut c, array(items), index);
        index = index.wrapping_add(1);
    }
    // Copies, which are indexed: see `put`.
    let (mut rest_a, mut rest_b, mut rest_c) = ([L::START.0; N], [L::START.1; N], [L::START.2; N]);
    rest_a.copy_from_slice(&a);
    rest_b.copy_from_slice(&b);
    rest_c.copy_from_slice(&c);
    let (a, b, c) = (&mut rest_a, &mut rest_b, &mut rest_c);
    for (i, &x) in vectors.remainder().iter().enumerate() {
        lanes.take(&mut a[i], &mut b[i], &mut c[i], x, index);
    }
    // Lanes beyond a short row have seen nothing.
    for lane in 0..N.min(items.len()) {
        L::merge(words, (a[lane], L::spread(b[lane], lane, N, at), c[lane]));
    }
}
