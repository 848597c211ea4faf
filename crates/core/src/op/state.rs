//! The central trait: identity, absorb, merge, finish.

use super::{Kind, Op, Rules, Value, payload};
use crate::element::Element;
use crate::error::Result;

/// A run of consecutive elements.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a, T> {
    /// The position of the first element in the whole array.
    pub start: u64,
    /// The elements.
    pub items: &'a [T],
    /// The second array's elements, as many, for `dot`; else empty.
    pub others: &'a [T],
}

/// The state of a reduction over elements of one type.
///
/// `merge` is commutative and associative, and absorbing a run equals merging
/// the states of any split of it: bit for bit, positions included.
///
/// Sealed: backends make these states quicker, they do not add to them.
pub trait State: sealed::Sealed + Clone + Send + Sync + Sized + 'static {
    /// The element type.
    type Item: Element;
    /// Which state this is.
    fn kind(&self) -> Kind;
    /// The state of no elements. `kind` chooses among the kinds that share the
    /// representation.
    ///
    /// # Panics
    /// If `kind` is not one of them.
    fn identity(kind: Kind) -> Self;
    /// Takes in a run of elements, one by one, with integer arithmetic or in
    /// the fixed order: the reference that backends are measured against.
    ///
    /// # Panics
    /// If a state of pairs is given arrays of two lengths.
    fn absorb(&mut self, run: Run<'_, Self::Item>);
    /// Marks `len` positions from `start` as missing (a null in a column).
    /// States that do not depend on positions ignore it.
    fn skip(&mut self, start: u64, len: u64) {
        let _ = (start, len);
    }
    /// The position behind the last one that it holds; 0 if it holds none, or does not
    /// depend on positions.
    fn end(&self) -> u64 {
        0
    }
    /// Whether [`merge`](Self::merge) takes in `other`; nothing is changed.
    ///
    /// A caller that merges many states checks all of them first, so that after an
    /// error none is merged.
    ///
    /// # Errors
    /// Those of [`merge`](Self::merge), which does not fail if this does not.
    fn check_merge(&self, other: &Self) -> Result<()> {
        let (left, right) = (self.kind(), other.kind());
        if left == right { Ok(()) } else { Err(payload::kind_mismatch(left, right)) }
    }
    /// Takes in another state of the same kind. After an error this state is
    /// what it was before.
    ///
    /// # Errors
    /// [`StateMismatch`](crate::Error::StateMismatch) if it is of another kind,
    /// [`Overlap`](crate::Error::Overlap) if a positional state holds an
    /// element that this one holds.
    fn merge(&mut self, other: &Self) -> Result<()>;
    /// The most bytes of memory of a state that has absorbed up to `positions`
    /// positions, in order, from 0 on.
    #[must_use]
    fn most_bytes(positions: u64) -> usize {
        let _ = positions;
        size_of::<Self>()
    }
    /// The value of `op`, which must be one that this kind answers.
    ///
    /// # Errors
    /// [`Empty`](crate::Error::Empty), [`Overflow`](crate::Error::Overflow),
    /// [`NanFound`](crate::Error::NanFound) or
    /// [`UnsupportedOut`](crate::Error::UnsupportedOut);
    /// [`Gap`](crate::Error::Gap) if a positional state lacks a position between
    /// two that it holds.
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value>;
    /// Appends the state's payload, little-endian.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads a payload that [`write`](Self::write) made. `bytes` is the whole
    /// payload.
    ///
    /// # Errors
    /// [`DamagedState`](crate::Error::DamagedState) for anything else.
    fn read(kind: Kind, bytes: &[u8]) -> Result<Self>;
}

pub(super) mod sealed {
    use crate::element::Element;
    use crate::op;

    pub trait Sealed {}

    macro_rules! states {
        ($($state:ident),*) => {
            $(impl<T: Element> Sealed for op::$state<T> {})*
        };
    }
    impl<T: op::FloatElement> Sealed for op::FloatProd<T> {}
    states!(Sums, Squares, Moments, Extrema, Counts, Bits, IntProd, IntLogSumExp);
    impl<T: op::logsumexp::ExpElement> Sealed for op::FloatLogSumExp<T> {}
    impl Sealed for op::wide::Wide {}
}
