//! Where long arrays of segments are cut, so that Ctrl-C is heard between the spans.

use crate::segments::Form;
use std::ops::Range;
use warpfold::{DType, View};

/// Segments of one span at the most, however short they are.
const MOST_SEGMENTS: usize = 1 << 22;

/// Integers that are read at a time.
const BLOCK: usize = 1024;

/// Segments that follow each other.
pub(crate) struct Span {
    pub(crate) segments: Range<usize>,
    /// The element that the first of them begins at.
    pub(crate) first: i64,
    /// The elements of all of them.
    pub(crate) elements: i64,
}

/// Runs of segments of about `most` elements; `None` where one run has them all, or where the
/// segments cannot be, which is said elsewhere.
pub(crate) fn spans(form: &Form, rows: usize, most: usize) -> Option<Vec<Span>> {
    let most = i64::try_from(most).ok()?;
    let len = i64::try_from(rows).ok()?;
    match form {
        Form::Fixed(length) => {
            if *length == 0 || !rows.is_multiple_of(*length) {
                return None;
            }
            let count = rows / length;
            if len <= most && count <= MOST_SEGMENTS {
                return None;
            }
            let each = i64::try_from(*length).ok()?;
            let step = usize::try_from(most / each).ok()?.clamp(1, MOST_SEGMENTS);
            let spans = (0..count).step_by(step).map(|from| {
                let to = count.min(from + step);
                let (first, elements) = (from as i64 * each, (to - from) as i64 * each);
                Span { segments: from..to, first, elements }
            });
            Some(spans.collect())
        }
        Form::Offsets(offsets) => {
            let offsets = offsets.view();
            let count = offsets.len().checked_sub(1)?;
            if len <= most && count <= MOST_SEGMENTS {
                return None;
            }
            let mut spans = Vec::new();
            let mut from = 0;
            while from < count {
                let first = at(&offsets, from)?;
                // They ascend, or the span that holds the place where they do not is refused.
                let (mut low, mut high) = (from + 1, count.min(from + MOST_SEGMENTS));
                while low < high {
                    let middle = low + (high - low).div_ceil(2);
                    match at(&offsets, middle)?.checked_sub(first)? <= most {
                        true => low = middle,
                        false => high = middle - 1,
                    }
                }
                let elements = at(&offsets, low)?.checked_sub(first)?;
                spans.push(Span { segments: from..low, first, elements });
                from = low;
            }
            Some(spans)
        }
        Form::Lengths(lengths) => {
            let lengths = lengths.view();
            if len <= most && lengths.len() <= MOST_SEGMENTS {
                return None;
            }
            let mut cut = Cut::new(most);
            let mut sum = 0i64;
            each(&lengths, |_, length| {
                cut.add(sum, length)?;
                sum = sum.checked_add(length)?;
                (sum <= len).then_some(())
            })?;
            (sum == len).then(|| cut.end())
        }
        Form::StartsStops(starts, stops) => {
            let (starts, stops) = (starts.view(), stops.view());
            let count = starts.len();
            if stops.len() != count || count.saturating_mul(rows) as u128 <= most as u128 {
                return None;
            }
            let mut cut = Cut::new(most);
            let mut block = Vec::with_capacity(BLOCK);
            each(&starts, |i, start| {
                if i.is_multiple_of(BLOCK) {
                    block.clear();
                    read(&stops, i, BLOCK.min(count - i), &mut block)?;
                }
                cut.add(start, block[i % BLOCK].checked_sub(start)?)
            })?;
            let spans = cut.end();
            (spans.len() > 1).then_some(spans)
        }
    }
}

/// Spans whose segments come one after the other.
struct Cut {
    most: i64,
    spans: Vec<Span>,
}

impl Cut {
    fn new(most: i64) -> Cut {
        Cut { most, spans: Vec::new() }
    }

    /// Adds a segment that begins at element `first`; `None` if its length is negative.
    fn add(&mut self, first: i64, length: i64) -> Option<()> {
        if length < 0 {
            return None;
        }
        if let Some(last) = self.spans.last_mut()
            && last.segments.len() < MOST_SEGMENTS
            && last.elements.checked_add(length)? <= self.most
        {
            last.segments.end += 1;
            last.elements += length;
            return Some(());
        }
        let at = self.spans.last().map_or(0, |last| last.segments.end);
        self.spans.push(Span { segments: at..at + 1, first, elements: length });
        Some(())
    }

    fn end(self) -> Vec<Span> {
        self.spans
    }
}

/// Calls `then` with each integer and its place, until it has enough.
fn each(view: &View<'_>, mut then: impl FnMut(usize, i64) -> Option<()>) -> Option<()> {
    let mut block = Vec::with_capacity(BLOCK);
    for from in (0..view.len()).step_by(BLOCK) {
        block.clear();
        read(view, from, BLOCK.min(view.len() - from), &mut block)?;
        for (i, &integer) in block.iter().enumerate() {
            then(from + i, integer)?;
        }
    }
    Some(())
}

fn at(view: &View<'_>, place: usize) -> Option<i64> {
    let mut one = Vec::with_capacity(1);
    read(view, place, 1, &mut one)?;
    one.pop()
}

/// Appends some integers of an array of one axis; `None` if one is beyond 64 bits with a sign.
pub(crate) fn read(view: &View<'_>, from: usize, count: usize, to: &mut Vec<i64>) -> Option<()> {
    let mut bytes = vec![0; count * view.dtype().size()];
    view.read_column(from, &mut bytes);
    macro_rules! integers {
        ($t:ty) => {{
            let (items, _) = bytes.as_chunks::<{ size_of::<$t>() }>();
            for item in items {
                to.push(i64::try_from(<$t>::from_ne_bytes(*item)).ok()?);
            }
        }};
    }
    match view.dtype() {
        DType::I8 => integers!(i8),
        DType::U8 => integers!(u8),
        DType::I16 => integers!(i16),
        DType::U16 => integers!(u16),
        DType::I32 => integers!(i32),
        DType::U32 => integers!(u32),
        DType::I64 => integers!(i64),
        DType::U64 => integers!(u64),
        _ => return None,
    }
    Some(())
}
