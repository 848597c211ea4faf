//! How many elements the outputs have that are answered.

use crate::ragged::Span;

/// The numbers of elements of outputs: one for all, or of each.
#[derive(Clone, Copy)]
pub(crate) enum Lengths<'a> {
    Same(u64),
    /// From the accumulators' first output on.
    Each(&'a [Span]),
    /// The same, without their elements.
    Counts(&'a [u64]),
}

impl Lengths<'_> {
    /// That of the output at `place`, and 0 beyond the last one: loops that make nothing of it do not
    /// have to look.
    #[inline(always)]
    pub(super) fn at(self, place: usize) -> u64 {
        match self {
            Lengths::Same(len) => len,
            Lengths::Each(spans) => spans.get(place).map_or(0, |span| span.len as u64),
            Lengths::Counts(counts) => counts.get(place).copied().unwrap_or(0),
        }
    }

    /// Those of the outputs from `place` on, as numbers that loops of floats take: exact,
    /// as they are below 2^53.
    #[inline(always)]
    pub(super) fn fill(self, place: usize, to: &mut [f64]) {
        match self {
            Lengths::Same(len) => to.fill(len as f64),
            Lengths::Each(spans) => {
                for (to, span) in to.iter_mut().zip(&spans[place..]) {
                    *to = span.len as f64;
                }
            }
            Lengths::Counts(counts) => {
                for (to, &count) in to.iter_mut().zip(&counts[place..]) {
                    *to = count as f64;
                }
            }
        }
    }
}
