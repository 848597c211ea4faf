//! What a caller may choose about an answer.

use crate::DType;

/// What a NaN among the elements does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NanPolicy {
    /// The answer is NaN (for `argmin` and `argmax`: the first NaN's index).
    #[default]
    Propagate,
    /// NaNs are skipped, as if they were not there.
    Omit,
    /// The reduction fails.
    Error,
}

/// How floating-point sums are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accuracy {
    /// The true value, rounded once.
    #[default]
    Exact,
    /// Plain adds in a fixed tree: the same bits for any number of threads,
    /// with the usual rounding errors.
    Fast,
}

/// How a state finishes. States do not depend on these: NaNs are counted
/// apart, and a state can be finished several times under different rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// What NaNs do.
    pub nan: NanPolicy,
    /// Subtracted from the count in the divisor of `var` and `std`.
    pub ddof: u64,
    /// The type of the answer; the operation's own if `None`.
    pub out: Option<DType>,
    /// Whether integer totals wrap around instead of failing.
    pub wrap: bool,
}
