//! What each reduction is: its name, its state and its numeric rules.

mod answer;
pub mod antilogarithm;
mod any;
mod bits;
mod catalogue;
mod counts;
mod decimal;
mod double_double;
mod exponential;
mod extrema;
pub mod float;
pub mod float_prod;
mod large_pages;
mod limbs;
pub mod logarithm;
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
mod scaled;
mod show;
mod spans;
mod squares;
mod state;
mod sum;
mod terms;
mod total;
mod unsigned;
mod value;
mod vector;
pub mod wide;

/// Some of what there are seldom more than two of, operations of a question for example: two need no
/// allocation.
pub type Several<T> = smallvec::SmallVec<[T; 2]>;

pub use any::{AnyState, RawRun};
pub use bits::Bits;
pub use catalogue::{Kind, Op};
pub use counts::Counts;
pub use decimal::Decimal;
pub use extrema::{Extrema, Summary};
pub use float::FloatElement;
pub use float_prod::FloatProd;
pub use logsumexp::{FloatLogSumExp, IntLogSumExp};
pub use moments::Moments;
pub use numbers::{Numbers, Unwritten};
pub use ordered::Ordered;
pub use prod::IntProd;
pub use rules::{NanPolicy, Rules};
pub use spans::Spans;
pub use squares::Squares;
pub use state::{Run, State};
pub use sum::Sums;
pub use value::{Scalar, Value};
