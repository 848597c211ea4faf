//! The central trait: identity, absorb, merge, finish.

use super::{Op, Rules, Value, payload};
use crate::element::Element;
use crate::error::Result;

/// The kind of state that an operation needs. Operations of one kind share a pass over
/// the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Exact sum.
    Sum,
    /// Exact sum of absolute values.
    AbsSum,
    /// Exact sum of squares.
    SquareSum,
    /// Exact sum and sum of squares.
    Moments,
    /// Exact sum of products of two arrays.
    Dot,
    /// Smallest and largest value.
    Extrema,
    /// Smallest and largest value with their positions.
    ArgExtrema,
    /// Numbers of elements, of non-zero ones and of NaNs.
    Counts,
    /// Bitwise and, or, exclusive or.
    Bits,
    /// Product.
    Prod,
    /// Logarithm of a sum of exponentials.
    LogSumExp,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 11] = [
        Kind::Sum,
        Kind::AbsSum,
        Kind::SquareSum,
        Kind::Moments,
        Kind::Dot,
        Kind::Extrema,
        Kind::ArgExtrema,
        Kind::Counts,
        Kind::Bits,
        Kind::Prod,
        Kind::LogSumExp,
    ];

    /// The code of the kind in byte forms; never reused.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// Whether states of this kind absorb pairs, of two arrays.
    #[must_use]
    pub const fn takes_pairs(self) -> bool {
        matches!(self, Kind::Dot)
    }

    /// The kind whose [`code`](Self::code) is `code`.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.code() == code)
    }

    /// What a state with this code was, if earlier versions wrote it and this
    /// one has no such kind.
    pub(super) const fn retired(code: u8) -> Option<&'static str> {
        match code {
            12 => Some("a plain sum"),
            13 => Some("a plain sum of absolute values"),
            14 => Some("a plain sum of squares"),
            15 => Some("a plain sum of products"),
            _ => None,
        }
    }

    /// Whether absorbing needs to know where a run begins.
    ///
    /// Exact sums, counts and extrema do not depend on the order of the
    /// elements; positions and fixed trees do.
    #[must_use]
    pub const fn is_positional(self) -> bool {
        matches!(self, Kind::ArgExtrema | Kind::Prod | Kind::LogSumExp)
    }
}

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
    /// two that it holds, and a fixed tree also if it lacks the first ones.
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
    states!(Sums, Squares, Moments, Extrema, Counts, Bits, IntProd, IntLogSumExp);
    impl<P: op::TreeOp> Sealed for op::FixedTree<P> {}
    // What fixed trees fold.
    impl<T: op::FloatElement> Sealed for op::prod::Factors<T> {}
    impl<T: op::logsumexp::ExpElement> Sealed for op::logsumexp::Exponentials<T> {}
}
