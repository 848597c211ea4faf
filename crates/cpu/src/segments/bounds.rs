//! Where segments begin and end, and whether that can be.

use crate::ragged::Span;
use core::ops::Range;
use warpfold_core::{Error, Result};

/// Integers that say where segments begin or end, or how long they are.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Indices<'a> {
    /// Of 32 bits without a sign.
    U32(&'a [u32]),
    /// Of 64 bits without a sign.
    U64(&'a [u64]),
    /// Of 32 bits.
    I32(&'a [i32]),
    /// Of 64 bits.
    I64(&'a [i64]),
}

/// Calls a generic function with the slice.
macro_rules! with_items {
    ($indices:expr, $items:ident => $body:expr) => {
        match $indices {
            Indices::U32($items) => $body,
            Indices::U64($items) => $body,
            Indices::I32($items) => $body,
            Indices::I64($items) => $body,
        }
    };
}

/// An integer of [`Indices`].
trait Index: Copy {
    /// Its value, beyond all lengths if it is negative: one comparison finds both faults.
    fn word(self) -> u64;
    /// Its value.
    fn wide(self) -> i128;
}

macro_rules! index {
    ($($t:ident, |$x:ident| $word:expr;)*) => {$(
        impl Index for $t {
            #[inline(always)]
            fn word(self) -> u64 {
                let $x = self;
                $word
            }
            fn wide(self) -> i128 {
                i128::from(self)
            }
        }
    )*};
}
index! {
    u32, |x| u64::from(x);
    u64, |x| x;
    i32, |x| i64::from(x).cast_unsigned();
    i64, |x| x.cast_unsigned();
}

impl Indices<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        with_items!(self, items => items.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where segments of an array of one axis begin and end.
#[derive(Clone, Copy, Debug)]
pub enum Bounds<'a> {
    /// Segment `i` begins at number `i`, and ends before number `i + 1`.
    Offsets(Indices<'a>),
    /// The segments follow each other, and have these lengths.
    Lengths(Indices<'a>),
    /// Segment `i` begins at number `i` of the first, and ends before that of the second.
    StartsStops(Indices<'a>, Indices<'a>),
    /// The segments follow each other, and have this length.
    Fixed(usize),
}

/// Segments of so many elements are worked on by all threads, one after the other.
const LONG: usize = 1 << 18;
/// Elements of a block, from which on it ends: two arrays of them stay in a cache.
const ELEMENTS: usize = 1 << 15;
/// Segments of a block: their accumulators stay in a cache.
const SEGMENTS: usize = 2048;
/// What a segment costs beside its elements, in elements.
const BOUNDARY: usize = 8;

/// Neighbouring segments that one thread reduces, or a long one, which all do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) segments: Range<usize>,
    /// Where the first of them begins.
    pub(super) start: usize,
    pub(super) long: bool,
}

/// Segments, cut into blocks of about the same work: elements and boundaries count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) blocks: Vec<Block>,
    /// Segments of the largest block.
    pub(super) widest: usize,
    /// Elements of the longest segment that is in a block with others.
    pub(super) longest: usize,
    /// Segments, and their elements.
    pub(super) segments: usize,
    pub(super) elements: usize,
    /// Of the block that is not done: its first segment and element, and its work.
    first: usize,
    start: usize,
    work: usize,
}

impl Cut {
    /// Takes in the next segment.
    #[inline(always)]
    fn add(&mut self, start: usize, len: usize) {
        let segment = self.segments;
        if len >= LONG {
            self.close();
            let segments = segment..segment + 1;
            self.blocks.push(Block { segments, start, long: true });
            self.first = segment + 1;
        } else {
            if self.first == segment {
                self.start = start;
            }
            self.longest = self.longest.max(len);
            self.work += len + BOUNDARY;
        }
        self.segments += 1;
        self.elements = self.elements.saturating_add(len);
        if self.work >= ELEMENTS || self.segments - self.first == SEGMENTS {
            self.close();
        }
    }

    /// Takes in a block's worth of segments at once, if they make a block: as many as it may
    /// have at most, none of them long.
    #[inline(always)]
    fn add_block(&mut self, count: usize, start: usize, elements: usize, longest: usize) -> bool {
        let work = elements.saturating_add(count * BOUNDARY);
        if self.first != self.segments || longest >= LONG || work > 2 * ELEMENTS {
            return false;
        }
        self.start = start;
        self.longest = self.longest.max(longest);
        self.segments += count;
        self.elements = self.elements.saturating_add(elements);
        self.close();
        true
    }

    /// Ends the block.
    fn close(&mut self) {
        let segments = self.first..self.segments;
        if !segments.is_empty() {
            self.widest = self.widest.max(segments.len());
            self.blocks.push(Block { segments, start: self.start, long: false });
        }
        (self.first, self.work) = (self.segments, 0);
    }
}

const OFFSETS: &str = "n + 1 offsets ascend within the array for n segments; segments in another \
                       order, with gaps or shared elements, are starts and stops";
const LENGTHS: &str = "lengths are not negative and sum to the array's length";
const STARTS: &str = "a segment starts and stops within the array, and not before its start";
const FIXED: &str = "lengths or offsets take segments of different lengths";

/// What is wrong with a segment.
fn fault(segment: usize, [start, stop]: [i128; 2], len: usize, hint: &'static str) -> Error {
    let what = if start < 0 {
        format!("begins at {start}")
    } else if stop < start {
        format!("begins at {start} and ends before that, at {stop}")
    } else {
        format!("ends at {stop}, beyond the array's {len} element{}", plural(len))
    };
    Error::BadSegment { segment, what, hint }
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn refused(what: String, hint: &'static str) -> Error {
    Error::BadSegments { what, hint }
}

/// A number that is at most a length.
#[inline(always)]
fn small(word: u64) -> usize {
    word as usize
}

impl Bounds<'_> {
    /// Cuts the segments of an array of `len` elements into blocks.
    ///
    /// # Errors
    /// [`Error::BadSegment`] names the first segment that cannot be;
    /// [`Error::BadSegments`].
    pub(super) fn cut(&self, len: usize) -> Result<Cut> {
        let mut cut = Cut::default();
        match self {
            Bounds::Offsets(offsets) => {
                with_items!(offsets, items => offsets_in(items, len, &mut cut))
            }
            Bounds::Lengths(lengths) => {
                with_items!(lengths, items => lengths_in(items, len, &mut cut))
            }
            Bounds::StartsStops(starts, stops) => {
                if starts.len() != stops.len() {
                    let what = format!(
                        "{} starts and {} stops make no segments",
                        starts.len(),
                        stops.len()
                    );
                    return Err(refused(what, STARTS));
                }
                starts_stops_in(*starts, *stops, len, &mut cut)
            }
            &Bounds::Fixed(each) => {
                if each == 0 {
                    return Err(refused("segments of length 0 are without number".into(), FIXED));
                }
                if !len.is_multiple_of(each) {
                    let what = format!("{len} element{} are no segments of {each}", plural(len));
                    return Err(refused(what, FIXED));
                }
                (0..len / each).for_each(|i| cut.add(i * each, each));
                Ok(())
            }
        }?;
        cut.close();
        Ok(cut)
    }

    /// The spans of a block's segments.
    pub(super) fn spans(&self, block: &Block, to: &mut Vec<Span>) {
        to.clear();
        let range = block.segments.clone();
        match self {
            Bounds::Offsets(offsets) => with_items!(offsets, items => {
                to.extend(items[range.start..=range.end].windows(2).map(|pair| {
                    let [start, stop] = [pair[0], pair[1]];
                    let start = small(start.word());
                    Span { start, len: small(stop.word()) - start }
                }));
            }),
            Bounds::Lengths(lengths) => with_items!(lengths, items => {
                let mut start = block.start;
                to.extend(items[range].iter().map(|len| {
                    let span = Span { start, len: small(len.word()) };
                    start += span.len;
                    span
                }));
            }),
            Bounds::StartsStops(starts, stops) => {
                with_items!(starts, starts => for start in &starts[range.clone()] {
                    to.push(Span { start: small(start.word()), len: 0 });
                });
                with_items!(stops, stops => for (span, stop) in to.iter_mut().zip(&stops[range]) {
                    span.len = small(stop.word()) - span.start;
                });
            }
            &Bounds::Fixed(len) => to.extend(range.map(|i| Span { start: i * len, len })),
        }
    }
}

fn offsets_in<I: Index>(items: &[I], len: usize, cut: &mut Cut) -> Result<()> {
    let Some((&first, rest)) = items.split_first() else {
        return Err(refused("there are no offsets".into(), OFFSETS));
    };
    if rest.is_empty() && first.word() > len as u64 {
        let what = format!("the offset {} is not within {len} elements", first.wide());
        return Err(refused(what, OFFSETS));
    }
    let mut start = first;
    for chunk in rest.chunks(SEGMENTS) {
        // All of them at once, which is quick where segments are short.
        let (mut last, mut longest, mut fine) = (start.word(), 0, true);
        for stop in chunk {
            fine &= last <= stop.word();
            longest = longest.max(stop.word().wrapping_sub(last));
            last = stop.word();
        }
        // What ascends ends with the greatest.
        if fine && last <= len as u64 {
            let at = small(start.word());
            if cut.add_block(chunk.len(), at, small(last) - at, small(longest)) {
                start = chunk[chunk.len() - 1];
                continue;
            }
        }
        for &stop in chunk {
            if start.word() > stop.word() || stop.word() > len as u64 {
                return Err(fault(cut.segments, [start.wide(), stop.wide()], len, OFFSETS));
            }
            let at = small(start.word());
            cut.add(at, small(stop.word()) - at);
            start = stop;
        }
        cut.close();
    }
    Ok(())
}

fn lengths_in<I: Index>(items: &[I], len: usize, cut: &mut Cut) -> Result<()> {
    let mut start = 0;
    for (segment, &each) in items.iter().enumerate() {
        if each.word() > (len - start) as u64 {
            if each.wide() < 0 {
                let what = format!("has the length {}", each.wide());
                return Err(Error::BadSegment { segment, what, hint: LENGTHS });
            }
            let from = start as i128;
            return Err(fault(segment, [from, from + each.wide()], len, LENGTHS));
        }
        cut.add(start, small(each.word()));
        start += small(each.word());
    }
    if start == len {
        return Ok(());
    }
    let n = items.len();
    let lengths = if n == 1 { "length sums" } else { "lengths sum" };
    let what = format!("{n} {lengths} to {start}, and the array has {len} element{}", plural(len));
    Err(refused(what, LENGTHS))
}

fn starts_stops_in(
    starts: Indices<'_>,
    stops: Indices<'_>,
    len: usize,
    cut: &mut Cut,
) -> Result<()> {
    let count = starts.len();
    let mut words = [Vec::new(), Vec::new()];
    for first in (0..count).step_by(SEGMENTS) {
        let some = first..count.min(first + SEGMENTS);
        for (words, of) in words.iter_mut().zip([starts, stops]) {
            words.clear();
            with_items!(of, items => words.extend(items[some.clone()].iter().map(|i| i.word())));
        }
        for (i, (&start, &stop)) in words[0].iter().zip(&words[1]).enumerate() {
            if start > stop || stop > len as u64 {
                let segment = first + i;
                let [start, stop] =
                    [starts, stops].map(|of| with_items!(of, items => items[segment].wide()));
                return Err(fault(segment, [start, stop], len, STARTS));
            }
            let at = small(start);
            cut.add(at, small(stop) - at);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All spans, by way of the blocks.
    fn spans(bounds: Bounds<'_>, len: usize) -> Result<Vec<(usize, usize)>> {
        let cut = bounds.cut(len)?;
        let (mut all, mut block) = (Vec::new(), Vec::new());
        let mut next = 0;
        for part in &cut.blocks {
            assert_eq!(part.segments.start, next);
            next = part.segments.end;
            bounds.spans(part, &mut block);
            assert_eq!(block.len(), part.segments.len());
            assert_eq!(part.long, block.iter().any(|span| span.len >= LONG));
            let most = if part.long { 1 } else { cut.widest };
            assert!(block.len() <= most.min(SEGMENTS));
            assert!(part.long || block.iter().all(|span| span.len <= cut.longest));
            all.extend(block.iter().map(|span| (span.start, span.len)));
        }
        assert_eq!((next, cut.segments), (all.len(), all.len()));
        assert_eq!(cut.elements, all.iter().map(|&(_, len)| len).sum::<usize>());
        Ok(all)
    }

    fn message(bounds: Bounds<'_>, len: usize) -> String {
        let error = bounds.cut(len).unwrap_err();
        assert!(error.hint().is_some());
        error.to_string()
    }

    #[test]
    fn all_forms_say_the_same() {
        let lens = [0, 3, 0, LONG - 1, 1, LONG, LONG + 5, 0, 2, 70_000, 0];
        let lens: Vec<usize> = lens.into_iter().chain(0..300).chain([0; 5000]).collect();
        let mut at = 0;
        let expected: Vec<(usize, usize)> = lens
            .iter()
            .map(|&len| {
                at += len;
                (at - len, len)
            })
            .collect();
        let i64s = |items: &mut dyn Iterator<Item = usize>| -> Vec<i64> {
            items.map(|n| n as i64).collect()
        };
        let starts = i64s(&mut expected.iter().map(|e| e.0));
        let stops = i64s(&mut expected.iter().map(|e| e.0 + e.1));
        let offsets = i64s(&mut expected.iter().map(|e| e.0).chain([at]));
        let u32s: Vec<u32> = offsets.iter().map(|&x| x as u32).collect();
        let each: Vec<i32> = lens.iter().map(|&len| len as i32).collect();
        for bounds in [
            Bounds::Offsets(Indices::I64(&offsets)),
            Bounds::Offsets(Indices::U32(&u32s)),
            Bounds::Lengths(Indices::I32(&each)),
            Bounds::StartsStops(Indices::I64(&starts), Indices::I64(&stops)),
            Bounds::StartsStops(Indices::U32(&u32s[..lens.len()]), Indices::I64(&stops)),
        ] {
            assert_eq!(spans(bounds, at).unwrap(), expected);
        }
        let fixed: Vec<(usize, usize)> = (0..9000).map(|i| (i * 7, 7)).collect();
        assert_eq!(spans(Bounds::Fixed(7), 63_000).unwrap(), fixed);
    }

    #[test]
    fn no_segments_are_none() {
        for bounds in [
            Bounds::Offsets(Indices::U64(&[0])),
            Bounds::Lengths(Indices::U32(&[])),
            Bounds::StartsStops(Indices::I32(&[]), Indices::U64(&[])),
            Bounds::Fixed(3),
        ] {
            assert_eq!(spans(bounds, 0).unwrap(), []);
        }
        // Within an array, offsets and starts need not say what comes before and after.
        assert_eq!(spans(Bounds::Offsets(Indices::U64(&[2])), 9).unwrap(), []);
        assert_eq!(spans(Bounds::Offsets(Indices::U64(&[2, 4])), 9).unwrap(), [(2, 2)]);
    }

    #[test]
    fn the_first_segment_that_cannot_be_is_named() {
        let offsets = |items: &[i64]| message(Bounds::Offsets(Indices::I64(items)), 10);
        assert_eq!(offsets(&[0, 3, 2, 1]), "segment 1 begins at 3 and ends before that, at 2");
        assert_eq!(offsets(&[0, 3, 11]), "segment 1 ends at 11, beyond the array's 10 elements");
        assert_eq!(offsets(&[-1, 3, 2]), "segment 0 begins at -1");
        assert_eq!(offsets(&[0, 1, -5]), "segment 1 begins at 1 and ends before that, at -5");
        assert_eq!(
            offsets(&[i64::MIN]),
            format!("the offset {} is not within 10 elements", i64::MIN)
        );
        assert_eq!(offsets(&[12, 12]), "segment 0 ends at 12, beyond the array's 10 elements");
        assert_eq!(offsets(&[]), "there are no offsets");
        let big = message(Bounds::Offsets(Indices::U64(&[0, u64::MAX])), 1);
        assert_eq!(big, format!("segment 0 ends at {}, beyond the array's 1 element", u64::MAX));

        let lengths = |items: &[i64]| message(Bounds::Lengths(Indices::I64(items)), 10);
        assert_eq!(lengths(&[3, -2, 9]), "segment 1 has the length -2");
        assert_eq!(lengths(&[3, 8, -1]), "segment 1 ends at 11, beyond the array's 10 elements");
        assert_eq!(lengths(&[3, 3]), "2 lengths sum to 6, and the array has 10 elements");
        assert_eq!(lengths(&[3]), "1 length sums to 3, and the array has 10 elements");
        assert_eq!(lengths(&[]), "0 lengths sum to 0, and the array has 10 elements");
        let wrapped = [5, i64::MAX];
        assert!(lengths(&wrapped).starts_with("segment 1 ends at 9223372036854775812"));

        let both = |a: &[i64], b: &[i64]| {
            message(Bounds::StartsStops(Indices::I64(a), Indices::I64(b)), 10)
        };
        assert_eq!(both(&[0, 4], &[3, 3]), "segment 1 begins at 4 and ends before that, at 3");
        assert_eq!(both(&[0], &[3, 3]), "1 starts and 2 stops make no segments");
        assert_eq!(
            both(&[9, 0], &[10, 11]),
            "segment 1 ends at 11, beyond the array's 10 elements"
        );

        assert_eq!(message(Bounds::Fixed(0), 10), "segments of length 0 are without number");
        assert_eq!(message(Bounds::Fixed(0), 0), "segments of length 0 are without number");
        assert_eq!(message(Bounds::Fixed(3), 10), "10 elements are no segments of 3");
    }
}
