//! Sets of positions, as ranges.

use super::payload::{self, Words};
use crate::error::{Error, Result};

/// A set of positions: sorted, disjoint, non-adjacent, non-empty ranges.
///
/// Runs mostly arrive in order, so that the range that grows is kept apart:
/// extending it takes constant time and a set of one range allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// The ranges `start..end` before the last.
    earlier: Vec<(u64, u64)>,
    /// The last range; empty only if the set is.
    last: (u64, u64),
}

impl Spans {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Spans { earlier: Vec::new(), last: (0, 0) }
    }

    /// Whether no position is held.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.last.0 == self.last.1
    }

    /// The position behind the last one that is held; 0 without any.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.last.1
    }

    /// How many positions are held.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.ranges().fold(0, |n, (start, end)| n + (end - start))
    }

    /// Whether `position` is held.
    #[must_use]
    pub fn contains(&self, position: u64) -> bool {
        let holds = |&(start, end): &(u64, u64)| start <= position && position < end;
        let i = self.earlier.partition_point(|&(_, end)| end <= position);
        holds(&self.last) || self.earlier.get(i).is_some_and(holds)
    }

    /// The first range of positions that is missing between two that are held.
    #[must_use]
    pub fn first_gap(&self) -> Option<(u64, u64)> {
        let mut ranges = self.ranges();
        let (_, end) = ranges.next()?;
        ranges.next().map(|(next, _)| (end, next))
    }

    /// The ranges `(start, end)`, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let last = (!self.is_empty()).then_some(self.last);
        self.earlier.iter().copied().chain(last)
    }

    /// Adds the positions from `start` to `start + len`; those held already
    /// stay held.
    pub fn insert(&mut self, start: u64, len: u64) {
        let end = start.saturating_add(len);
        if start == end {
            return;
        }
        if self.is_empty() {
            self.last = (start, end);
        } else if start == self.last.1 {
            self.last.1 = end;
        } else if start > self.last.1 {
            self.earlier.push(self.last);
            self.last = (start, end);
        } else {
            self.insert_within(start, end);
        }
    }

    /// Inserts a range that begins before the last one ends.
    fn insert_within(&mut self, mut start: u64, mut end: u64) {
        self.earlier.push(self.last);
        let ranges = &mut self.earlier;
        // The ranges that overlap or touch the new one become one with it.
        let from = ranges.partition_point(|&(_, e)| e < start);
        let to = ranges.partition_point(|&(s, _)| s <= end);
        if from < to {
            start = start.min(ranges[from].0);
            end = end.max(ranges[to - 1].1);
        }
        ranges.splice(from..to, [(start, end)]);
        self.last = ranges.pop().unwrap_or_default();
    }

    /// The first position that both sets hold.
    #[must_use]
    pub fn first_common(&self, other: &Self) -> Option<u64> {
        let mut right = other.ranges();
        let mut b = right.next()?;
        // Pieces mostly come one after the other: begin where the other begins.
        let skipped = self.earlier.partition_point(|&(_, end)| end <= b.0);
        let mut left = self.ranges().skip(skipped);
        let mut a = left.next()?;
        loop {
            let from = a.0.max(b.0);
            if from < a.1.min(b.1) {
                return Some(from);
            }
            if a.1 <= b.1 { a = left.next()? } else { b = right.next()? }
        }
    }

    /// Takes in the positions of another set.
    ///
    /// # Errors
    /// [`Error::Overlap`] if both hold a position; nothing is changed then.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if let Some(at) = self.first_common(other) {
            return Err(Error::Overlap { at });
        }
        if other.earlier.is_empty() {
            self.insert(other.last.0, other.last.1 - other.last.0);
            return Ok(());
        }
        let mut all: Vec<_> = self.ranges().chain(other.ranges()).collect();
        all.sort_unstable();
        *self = Spans::new();
        all.into_iter().for_each(|(start, end)| self.insert(start, end - start));
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        payload::write_u64(out, self.ranges().count() as u64);
        for (start, end) in self.ranges() {
            payload::write_u64(out, start);
            payload::write_u64(out, end);
        }
    }

    pub(super) fn read(words: &mut Words<'_>) -> Result<Self> {
        let count = words.next()?;
        if count > words.left() as u64 / 2 {
            return Err(payload::damaged("its payload ends early"));
        }
        let mut spans = Spans::new();
        for _ in 0..count {
            let (start, end) = (words.next()?, words.next()?);
            let apart = spans.is_empty() || start > spans.last.1;
            if !apart || start >= end {
                return Err(payload::damaged("its ranges of positions are out of order"));
            }
            spans.insert(start, end - start);
        }
        Ok(spans)
    }
}
