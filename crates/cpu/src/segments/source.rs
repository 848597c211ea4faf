//! The elements of segments: as they lie, or copied to where they follow each other.

use crate::gather::Buffers;
use crate::pack::{Pack, room};
use crate::ragged::{Ragged, Span};
use core::marker::PhantomData;
use warpfold_core::layout::View;
use warpfold_core::op::RawRun;
use warpfold_core::{DType, Error, Result};

/// Elements that are handed over at once where they are copied.
const COPIED: usize = 8192;

/// One array of one axis, or two of one length.
pub(super) struct Source<'a> {
    pub(super) dtype: DType,
    pub(super) len: usize,
    lines: [Option<Line<'a>>; 2],
}

/// The rows of a block.
#[derive(Clone, Copy)]
pub(super) enum Segments<'a> {
    /// Of one array.
    Alone(Ragged<'a, ()>),
    /// Of two, in pairs.
    Pairs([Ragged<'a, ()>; 2]),
}

impl<'a> Segments<'a> {
    /// Some of them.
    pub(super) fn some(self, which: &[usize], spans: &'a mut [Vec<Span>; 2]) -> Segments<'a> {
        let [one, two] = spans;
        let pick = |rows: Ragged<'a, ()>, spans: &'a mut Vec<Span>| {
            spans.clear();
            spans.extend(which.iter().map(|&i| rows.span(i)));
            rows.of_spans(spans)
        };
        match self {
            Segments::Alone(rows) => Segments::Alone(pick(rows, one)),
            Segments::Pairs([first, second]) => {
                Segments::Pairs([pick(first, one), pick(second, two)])
            }
        }
    }
}

/// Copies of elements that do not follow each other, and their places.
#[derive(Default)]
pub(super) struct Copies {
    words: Vec<u64>,
    moved: Vec<Span>,
}

/// An array of one axis.
#[derive(Clone, Copy)]
struct Line<'a> {
    origin: *const u8,
    stride: isize,
    /// The elements, if they follow each other.
    bytes: Option<&'a [u8]>,
    view: PhantomData<&'a [u8]>,
}

// SAFETY: a line only reads, as the view does that it was made of.
unsafe impl Send for Line<'_> {}
// SAFETY: as above.
unsafe impl Sync for Line<'_> {}

impl<'a> Line<'a> {
    fn of(view: &View<'a>) -> Line<'a> {
        let stride = view.strides().first().copied().unwrap_or(0);
        let origin = view.origin();
        Line { origin, stride, bytes: view.contiguous(), view: PhantomData }
    }

    /// Copies elements that the line has.
    fn copy(&self, size: usize, span: Span, to: &mut [u8]) {
        let from = self.origin.wrapping_offset(span.start.cast_signed() * self.stride);
        let (rows, columns, row_stride) = (1, span.len, 0);
        let column_stride = self.stride;
        // SAFETY: elements of the view, which may be read.
        unsafe { Pack { from, size, rows, columns, row_stride, column_stride }.fill(to) };
    }
}

impl<'a> Source<'a> {
    /// # Errors
    /// Views that do not have one axis, or disagree.
    pub(super) fn new(views: [Option<&View<'a>>; 2]) -> Result<Option<Source<'a>>> {
        let [Some(first), second] = views else { return Ok(None) };
        if let Some(second) = second {
            first.check_pair(second)?;
        }
        let &[len] = first.shape() else {
            return Err(Error::BadSegments {
                what: format!("an array of shape {:?} has no segments", first.shape()),
                hint: "segments are cut from arrays of one axis; the rows of a matrix are reduced \
                       over its last axis",
            });
        };
        let lines = views.map(|view| view.map(Line::of));
        Ok(Some(Source { dtype: first.dtype(), len, lines }))
    }

    /// The views whose rows are `count` segments that follow each other, of the length of the first.
    pub(super) fn views(&self, first: Span, count: usize) -> [Option<View<'a>>; 2] {
        self.lines.map(|line| {
            let Line { origin, stride, .. } = line?;
            let origin = origin.wrapping_offset(first.start.cast_signed() * stride);
            let strides = [first.len.cast_signed() * stride, stride];
            // SAFETY: elements of the view that the line is of, which may be read.
            Some(unsafe { View::from_raw(self.dtype, origin, &[count, first.len], &strides) })
        })
    }

    /// Hands over rows of the arrays, none of which are long.
    pub(super) fn rows<'b>(&self, spans: &'b [Span], copies: &'b mut [Copies; 2]) -> Segments<'b>
    where
        'a: 'b,
    {
        let [one, two] = copies;
        let first = self.line_rows(self.lines[0], spans, one);
        match self.lines[1] {
            None => Segments::Alone(first),
            line => Segments::Pairs([first, self.line_rows(line, spans, two)]),
        }
    }

    /// Rows of one array: as they lie, or copied.
    fn line_rows<'b>(
        &self,
        line: Option<Line<'a>>,
        spans: &'b [Span],
        copies: &'b mut Copies,
    ) -> Ragged<'b, ()>
    where
        'a: 'b,
    {
        let (size, Copies { words, moved }) = (self.dtype.size(), copies);
        if let Some(bytes) = line.and_then(|line| line.bytes) {
            // A slice of nothing may begin at any address.
            let none = core::ptr::dangling::<u64>().cast();
            let origin = if bytes.is_empty() { none } else { bytes.as_ptr().cast() };
            return Ragged::of_any(origin, bytes.len() / size, spans);
        }
        moved.clear();
        let mut start = 0;
        for &Span { len, .. } in spans {
            moved.push(Span { start, len });
            start += len;
        }
        let to = room(words, start * size);
        if let Some(line) = line {
            for (span, place) in spans.iter().zip(&*moved) {
                let to = &mut to[place.start * size..][..place.len * size];
                line.copy(size, *span, to);
            }
        }
        Ragged::of_any(to.as_ptr().cast(), start, moved)
    }

    /// Hands the elements of a span to `sink`, in order: runs whose first element has the
    /// position `at`, and those after it the next ones.
    ///
    /// # Errors
    /// Those of `sink`.
    pub(super) fn for_each_run(
        &self,
        span: Span,
        at: u64,
        buffers: &mut Buffers,
        mut sink: impl FnMut(RawRun<'_>) -> Result<()>,
    ) -> Result<()> {
        let size = self.dtype.size();
        let as_they_lie = self.lines.iter().flatten().all(|line| line.bytes.is_some());
        if as_they_lie {
            let [items, others] = self.lines.map(|line| -> &[u8] {
                let bytes = line.and_then(|line| line.bytes).unwrap_or(&[]);
                bytes.get(span.start * size..(span.start + span.len) * size).unwrap_or(&[])
            });
            return if items.is_empty() {
                Ok(())
            } else {
                sink(RawRun { start: at, items, others })
            };
        }
        for done in (0..span.len).step_by(COPIED) {
            let len = COPIED.min(span.len - done);
            let start = span.start + done;
            for (i, line) in self.lines.iter().enumerate() {
                if let Some(line) = line {
                    let to = buffers.block(i, len * size);
                    line.copy(size, Span { start, len }, to);
                }
            }
            let block = |i: usize| -> &[u8] {
                if self.lines[i].is_some() { &buffers.bytes(i)[..len * size] } else { &[] }
            };
            sink(RawRun { start: at + done as u64, items: block(0), others: block(1) })?;
        }
        Ok(())
    }
}
