//! What each reduction is: its name, its state and its numeric rules.

mod answer;
mod any;
mod bits;
mod counts;
mod double_double;
mod exponential;
mod extrema;
pub mod float;
pub mod logsumexp;
mod magnitude;
mod moments;
mod names;
mod narrow;
mod numbers;
mod ordered;
mod payload;
pub mod prod;
mod rules;
mod show;
mod spans;
mod squares;
mod state;
mod sum;
mod total;
pub mod tree;
mod unsigned;
mod value;

pub use any::{AnyState, RawRun};
pub use bits::Bits;
pub use counts::Counts;
pub use extrema::{Extrema, Summary};
pub use float::FloatElement;
pub use logsumexp::{FloatLogSumExp, IntLogSumExp};
pub use moments::Moments;
pub use numbers::Numbers;
pub use ordered::Ordered;
pub use prod::{FloatProd, IntProd};
pub use rules::{NanPolicy, Rules};
pub use spans::Spans;
pub use squares::Squares;
pub use state::{Kind, Run, State};
pub use sum::Sums;
pub use tree::{FixedTree, TreeOp};
pub use value::{Scalar, Value};

use crate::DType;
use core::fmt;

/// A reduction operation.
///
/// ```
/// use warpfold_core::Op;
///
/// assert_eq!("argmax".parse(), Ok(Op::ArgMax));
/// assert_eq!(format!("{} is {}", Op::Var, Op::Var.about()), "var is the variance, divided by n - ddof");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Op {
    /// The sum of all elements.
    Sum,
    /// The sum divided by the count.
    Mean,
    /// The sum of absolute values.
    Norm1,
    /// The square root of the sum of squares.
    Norm2,
    /// The largest absolute value.
    NormInf,
    /// The sum of squares.
    SumSq,
    /// The sum of products of two arrays.
    Dot,
    /// The mean squared deviation from the mean.
    Var,
    /// The square root of the variance.
    Std,
    /// The smallest element.
    Min,
    /// The largest element.
    Max,
    /// The smallest and the largest element.
    MinMax,
    /// The largest element minus the smallest.
    Range,
    /// The index of the first smallest element.
    ArgMin,
    /// The index of the first largest element.
    ArgMax,
    /// The indices of the first smallest and the first largest element.
    ArgMinMax,
    /// Whether any element is true (not zero; NaN counts as true).
    Any,
    /// Whether all elements are true.
    All,
    /// How many elements there are (under `nan = omit`, how many are not NaN).
    Count,
    /// How many elements are not zero (NaN counts as non-zero).
    CountNonzero,
    /// How many elements are NaN.
    CountNan,
    /// The bitwise and of all elements.
    And,
    /// The bitwise or of all elements.
    Or,
    /// The bitwise exclusive or of all elements.
    Xor,
    /// The product of all elements.
    Prod,
    /// The logarithm of the sum of exponentials.
    LogSumExp,
}

impl Op {
    /// Every operation, in the order of the documentation's tables.
    pub const ALL: [Op; 26] = [
        Op::Sum,
        Op::Mean,
        Op::Norm1,
        Op::Norm2,
        Op::NormInf,
        Op::SumSq,
        Op::Dot,
        Op::Var,
        Op::Std,
        Op::Min,
        Op::Max,
        Op::MinMax,
        Op::Range,
        Op::ArgMin,
        Op::ArgMax,
        Op::ArgMinMax,
        Op::Any,
        Op::All,
        Op::Count,
        Op::CountNonzero,
        Op::CountNan,
        Op::And,
        Op::Or,
        Op::Xor,
        Op::Prod,
        Op::LogSumExp,
    ];

    /// The name used on the command line and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Op::Sum => "sum",
            Op::Mean => "mean",
            Op::Norm1 => "norm1",
            Op::Norm2 => "norm2",
            Op::NormInf => "norm-inf",
            Op::SumSq => "sumsq",
            Op::Dot => "dot",
            Op::Var => "var",
            Op::Std => "std",
            Op::Min => "min",
            Op::Max => "max",
            Op::MinMax => "minmax",
            Op::Range => "range",
            Op::ArgMin => "argmin",
            Op::ArgMax => "argmax",
            Op::ArgMinMax => "argminmax",
            Op::Any => "any",
            Op::All => "all",
            Op::Count => "count",
            Op::CountNonzero => "count-nonzero",
            Op::CountNan => "count-nan",
            Op::And => "and",
            Op::Or => "or",
            Op::Xor => "xor",
            Op::Prod => "prod",
            Op::LogSumExp => "logsumexp",
        }
    }

    /// One line on what the operation computes.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Op::Sum => "the sum of all elements",
            Op::Mean => "the arithmetic mean",
            Op::Norm1 => "the sum of absolute values",
            Op::Norm2 => "the square root of the sum of squares",
            Op::NormInf => "the largest absolute value",
            Op::SumSq => "the sum of squares",
            Op::Dot => "the sum of products of two arrays",
            Op::Var => "the variance, divided by n - ddof",
            Op::Std => "the standard deviation, divided by n - ddof",
            Op::Min => "the smallest element",
            Op::Max => "the largest element",
            Op::MinMax => "the smallest and the largest element",
            Op::Range => "the largest element minus the smallest",
            Op::ArgMin => "the index of the first smallest element",
            Op::ArgMax => "the index of the first largest element",
            Op::ArgMinMax => "the indices of the first smallest and first largest element",
            Op::Any => "whether any element is not zero",
            Op::All => "whether all elements are not zero",
            Op::Count => "how many elements there are",
            Op::CountNonzero => "how many elements are not zero",
            Op::CountNan => "how many elements are NaN",
            Op::And => "the bitwise and of all integers",
            Op::Or => "the bitwise or of all integers",
            Op::Xor => "the bitwise exclusive or of all integers",
            Op::Prod => "the product of all elements",
            Op::LogSumExp => "the logarithm of the sum of exponentials",
        }
    }

    /// The operation called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// How many arrays it takes: 2 for `dot`, else 1.
    #[must_use]
    pub const fn arity(self) -> usize {
        if matches!(self, Op::Dot) { 2 } else { 1 }
    }

    /// Whether it is defined for elements of type `dtype`.
    #[must_use]
    pub const fn supports(self, dtype: DType) -> bool {
        match self {
            Op::And | Op::Or | Op::Xor => !dtype.is_float(),
            _ => true,
        }
    }

    /// A small number that stands for the operation in byte forms; never
    /// reused.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The operation whose [`code`](Self::code) is `code`.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.code() == code)
    }

    /// The type of the answer over elements of type `dtype`, where the caller
    /// does not ask for one.
    #[must_use]
    pub const fn answer_type(self, dtype: DType) -> DType {
        let float = dtype.is_float();
        match self {
            Op::Any | Op::All => DType::Bool,
            Op::ArgMin | Op::ArgMax | Op::ArgMinMax => DType::U64,
            Op::Count | Op::CountNonzero | Op::CountNan => DType::U64,
            Op::Min | Op::Max | Op::MinMax | Op::And | Op::Or | Op::Xor => dtype,
            _ if float => dtype,
            Op::Mean | Op::Var | Op::Std | Op::Norm2 | Op::LogSumExp => DType::F64,
            Op::Range | Op::NormInf => DType::U64,
            _ if dtype.is_signed_int() => DType::I64,
            _ => DType::U64,
        }
    }

    /// The state that answers it.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Op::Sum | Op::Mean => Kind::Sum,
            Op::Norm1 => Kind::AbsSum,
            Op::Norm2 | Op::SumSq => Kind::SquareSum,
            Op::Dot => Kind::Dot,
            Op::Var | Op::Std => Kind::Moments,
            Op::Min | Op::Max | Op::MinMax | Op::Range | Op::NormInf => Kind::Extrema,
            Op::ArgMin | Op::ArgMax | Op::ArgMinMax => Kind::ArgExtrema,
            Op::Any | Op::All | Op::Count | Op::CountNonzero | Op::CountNan => Kind::Counts,
            Op::And | Op::Or | Op::Xor => Kind::Bits,
            Op::Prod => Kind::Prod,
            Op::LogSumExp => Kind::LogSumExp,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
