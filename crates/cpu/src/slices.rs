//! The elements of one array, or of two that are equally long.

use warpfold_core::{Error, Result};

/// A run's elements: of one array, or of two pair by pair. The second array is
/// as long as the first, always: kernels read both without asking again.
///
/// One array is its own second: its pairs are squares.
#[derive(Debug)]
pub struct Slices<'a, T> {
    items: &'a [T],
    /// As long.
    others: &'a [T],
}

impl<T> Clone for Slices<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Slices<'_, T> {}

impl<'a, T> Slices<'a, T> {
    /// One array.
    #[must_use]
    #[inline]
    pub fn one(items: &'a [T]) -> Self {
        Slices { items, others: items }
    }

    /// Two arrays.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if they differ in length.
    #[inline]
    pub fn pair(items: &'a [T], others: &'a [T]) -> Result<Self> {
        if items.len() == others.len() {
            Ok(Slices { items, others })
        } else {
            Err(Error::ShapeMismatch { left: vec![items.len()], right: vec![others.len()] })
        }
    }

    /// The first array.
    #[must_use]
    #[inline]
    pub fn items(self) -> &'a [T] {
        self.items
    }

    /// The second array, as long.
    #[must_use]
    #[inline]
    pub fn others(self) -> &'a [T] {
        self.others
    }

    /// How many elements each array has.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.items.is_empty()
    }

    /// Both arrays cut at `at`, or at their end if that comes before.
    #[inline]
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
        let at = at.min(self.len());
        let (items, items_after) = self.items.split_at(at);
        let (others, others_after) = self.others.split_at(at);
        (Slices { items, others }, Slices { items: items_after, others: others_after })
    }

    /// Both arrays in parts of `len`, which is not 0; the last may be shorter.
    #[inline]
    pub(crate) fn chunks(self, len: usize) -> impl Iterator<Item = Self> {
        let pairs = self.items.chunks(len).zip(self.others.chunks(len));
        pairs.map(|(items, others)| Slices { items, others })
    }

    /// A part of both arrays.
    #[inline]
    pub(crate) fn range(self, range: core::ops::Range<usize>) -> Self {
        Slices { items: &self.items[range.clone()], others: &self.others[range] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_arrays_are_equally_long() {
        let error = Slices::pair(&[1.0, 2.0], &[1.0]).unwrap_err();
        assert_eq!(error, Error::ShapeMismatch { left: vec![2], right: vec![1] });
        let pair = Slices::pair(&[1, 2, 3], &[4, 5, 6]).unwrap();
        let (head, tail) = pair.split_at(1);
        assert_eq!((head.items(), head.others()), (&[1][..], &[4][..]));
        assert_eq!((tail.items(), tail.others()), (&[2, 3][..], &[5, 6][..]));
        assert!(pair.split_at(9).1.is_empty());
        let parts: Vec<_> = pair.chunks(2).map(|p| (p.items()[0], p.others()[0])).collect();
        assert_eq!(parts, [(1, 4), (3, 6)]);
    }
}
