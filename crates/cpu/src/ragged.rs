//! Rows of different lengths in one slice: what kernels for segments read.

use core::marker::PhantomData;

/// Consecutive elements of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// The first.
    pub(crate) start: usize,
    /// How many.
    pub(crate) len: usize,
}

/// Rows that are spans of one slice. They may overlap, and leave gaps.
pub(crate) struct Ragged<'a, T> {
    origin: *const T,
    /// Elements of the slice.
    len: usize,
    /// Within the slice: looked at when this is made.
    spans: &'a [Span],
    elements: PhantomData<&'a [T]>,
}

impl<T> Clone for Ragged<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ragged<'_, T> {}

impl<'a> Ragged<'a, ()> {
    /// Rows of elements whose type is not known here, of a slice of `len` elements that
    /// begins at `origin`. Nothing can be read from it.
    ///
    /// # Panics
    /// If a span leaves the slice.
    pub(crate) fn of_any(origin: *const (), len: usize, spans: &'a [Span]) -> Ragged<'a, ()> {
        let within = |span: &Span| span.start <= len && span.len <= len - span.start;
        assert!(spans.iter().fold(true, |all, span| all & within(span)), "a span leaves its slice");
        Ragged { origin, len, spans, elements: PhantomData }
    }

    /// The address of the slice.
    pub(crate) fn origin(&self) -> *const () {
        self.origin
    }

    /// Where a row lies.
    pub(crate) fn span(&self, row: usize) -> Span {
        self.spans[row]
    }

    /// Other rows of the same slice.
    pub(crate) fn of_spans(self, spans: &'a [Span]) -> Ragged<'a, ()> {
        Ragged::of_any(self.origin, self.len, spans)
    }

    /// The same rows with the type of their elements.
    ///
    /// # Safety
    /// The slice is one of elements of this type: aligned, also of no elements, valid for reads for `'a` and
    /// not written meanwhile.
    pub(crate) unsafe fn of_elements<T>(self) -> Ragged<'a, T> {
        let Ragged { origin, len, spans, .. } = self;
        Ragged { origin: origin.cast(), len, spans, elements: PhantomData }
    }
}

impl<'a, T> Ragged<'a, T> {
    /// How many rows there are.
    #[inline(always)]
    pub(crate) fn rows(&self) -> usize {
        self.spans.len()
    }

    /// The address of a row, from which the rest of the slice may be read, too.
    #[inline(always)]
    pub(crate) fn start(&self, row: usize) -> *const T {
        self.origin.wrapping_add(self.spans[row].start)
    }

    /// A row.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &'a [T] {
        // SAFETY: within the slice, as all spans are.
        unsafe { core::slice::from_raw_parts(self.start(row), self.spans[row].len) }
    }

    /// How many elements of the slice come after a row.
    #[inline(always)]
    pub(crate) fn beyond(&self, row: usize) -> usize {
        let span = self.spans[row];
        self.len - span.start - span.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_overlap_leave_gaps_and_end_with_the_slice() {
        let items = [0u16, 1, 2, 3, 4];
        let spans = [(3, 2), (0, 4), (5, 0), (1, 1)].map(|(start, len)| Span { start, len });
        let rows = Ragged::of_any(items.as_ptr().cast(), items.len(), &spans);
        // SAFETY: a slice of this type.
        let rows = unsafe { rows.of_elements::<u16>() };
        let all: Vec<&[u16]> = (0..rows.rows()).map(|row| rows.row(row)).collect();
        assert_eq!(all, [&[3, 4][..], &[0, 1, 2, 3], &[], &[1]]);
        assert_eq!([0, 1, 2, 3].map(|row| rows.beyond(row)), [0, 1, 0, 3]);
    }

    #[test]
    fn spans_that_leave_the_slice_are_refused() {
        for (start, len) in [(0, 6), (5, 1), (6, 0), (usize::MAX, 2), (2, usize::MAX)] {
            let spans = [Span { start, len }];
            let made = std::panic::catch_unwind(|| {
                let _ = Ragged::of_any(core::ptr::null(), 5, &spans);
            });
            assert!(made.is_err(), "{start} {len}");
        }
    }
}
