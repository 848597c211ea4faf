//! Which number of each output is asked for.

use warpfold_core::DType;
use warpfold_core::op::{Kind, NanPolicy, Op, Rules};

/// An operation as kernels know it: under the default rules, or under those that they are
/// told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The operation.
    pub op: Op,
    /// Whether NaNs are as if they were not there: [`NanPolicy::Omit`].
    pub omits_nan: bool,
    /// What variances and deviations subtract from the number of elements that they divide
    /// by, below 2^24: the delta degrees of freedom.
    pub ddof: u32,
}

/// The most that kernels are told of: three bytes.
const MOST_DDOF: u64 = (1 << 24) - 1;

impl From<Op> for Number {
    fn from(op: Op) -> Number {
        Number { op, omits_nan: false, ddof: 0 }
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
    /// let sample = Number::under(Op::Var, DType::F32, &omit.ddof(1));
    /// assert!(sample.is_some_and(|sample| sample.ddof == 1));
    /// assert_eq!(Number::under(Op::Var, DType::F32, &Rules::new().out(DType::F64)), None);
    /// ```
    #[must_use]
    pub fn under(op: Op, dtype: DType, rules: &Rules) -> Option<Number> {
        let omits_nan = rules.nan == NanPolicy::Omit;
        let told = if omits_nan { rules.nan(NanPolicy::Propagate) } else { *rules };
        let divides = op.kind() == Kind::Moments && rules.ddof_fraction == 0;
        let ddof = if divides && rules.ddof <= MOST_DDOF { rules.ddof } else { 0 };
        let others = if ddof > 0 { told.ddof(0) } else { told };
        let number = Number { op, omits_nan, ddof: u32::try_from(ddof).ok()? };
        (!others.matter_for(op, dtype)).then_some(number)
    }
}
