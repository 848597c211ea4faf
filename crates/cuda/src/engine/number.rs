//! Which number of each output is asked for.

use warpfold_core::DType;
use warpfold_core::op::{NanPolicy, Op, Rules};

/// An operation as kernels know it: under the default rules, or with NaNs as if they were
/// not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The operation.
    pub op: Op,
    /// Whether NaNs are as if they were not there: [`NanPolicy::Omit`].
    pub omits_nan: bool,
}

impl From<Op> for Number {
    fn from(op: Op) -> Number {
        Number { op, omits_nan: false }
    }
}

impl Number {
    /// The operation over elements of a type under some rules; `None` where only the host
    /// finishes it under these.
    ///
    /// ```
    /// use warpfold_core::DType;
    /// use warpfold_core::op::{NanPolicy, Op, Rules};
    /// use warpfold_cuda::engine::Number;
    ///
    /// let omit = Rules::new().nan(NanPolicy::Omit);
    /// let mean = Number::under(Op::Mean, DType::F32, &omit);
    /// assert!(mean.is_some_and(|mean| mean.omits_nan));
    /// assert_eq!(Number::under(Op::Var, DType::F32, &omit.ddof(1)), None);
    /// ```
    #[must_use]
    pub fn under(op: Op, dtype: DType, rules: &Rules) -> Option<Number> {
        let omits_nan = rules.nan == NanPolicy::Omit;
        let others = if omits_nan { rules.nan(NanPolicy::Propagate) } else { *rules };
        (!others.matter_for(op, dtype)).then_some(Number { op, omits_nan })
    }
}
