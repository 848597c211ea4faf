//! Operations, types and policies by their names.

use super::{NanPolicy, Op};
use crate::DType;
use crate::error::{Error, Result};
use core::fmt;
use core::str::FromStr;

/// The one of `all` that `is` accepts.
fn find<T: Copy>(
    what: &'static str,
    name: &str,
    all: &[T],
    is: impl Fn(T) -> bool,
    called: impl Fn(T) -> &'static str,
) -> Result<T> {
    all.iter().copied().find(|&one| is(one)).ok_or_else(|| Error::UnknownName {
        what,
        name: name.into(),
        known: all.iter().map(|&one| called(one)).collect(),
    })
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// By [`name`](Op::name); `count_nan` is as good as `count-nan`.
///
/// ```
/// use warpfold_core::Op;
///
/// assert_eq!("sum".parse(), Ok(Op::Sum));
/// assert_eq!("count_nan".parse(), Ok(Op::CountNan));
/// assert!("summ".parse::<Op>().is_err());
/// ```
impl FromStr for Op {
    type Err = Error;

    fn from_str(name: &str) -> Result<Op> {
        let is = |op: Op| op.name() == name || op.name().replace('-', "_") == name;
        find("an operation", name, &Op::ALL, is, Op::name)
    }
}

/// By [`name`](DType::name) or NumPy's: see [`from_name`](DType::from_name).
///
/// ```
/// use warpfold_core::DType;
///
/// assert_eq!("f32".parse(), Ok(DType::F32));
/// assert_eq!("float64".parse(), Ok(DType::F64));
/// ```
impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<DType> {
        let named = DType::from_name(name);
        find("an element type", name, &DType::ALL, |dtype| Some(dtype) == named, DType::name)
    }
}

impl NanPolicy {
    /// Every policy.
    pub const ALL: [NanPolicy; 3] = [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error];

    /// The name used on the command line and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            NanPolicy::Propagate => "propagate",
            NanPolicy::Omit => "omit",
            NanPolicy::Error => "error",
        }
    }
}

/// By [`name`](NanPolicy::name).
///
/// ```
/// assert_eq!("omit".parse(), Ok(warpfold_core::NanPolicy::Omit));
/// ```
impl FromStr for NanPolicy {
    type Err = Error;

    fn from_str(name: &str) -> Result<NanPolicy> {
        let all = &NanPolicy::ALL;
        find("a policy for NaNs", name, all, |policy| policy.name() == name, NanPolicy::name)
    }
}

impl fmt::Display for NanPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        for op in Op::ALL {
            assert_eq!(op.to_string().parse(), Ok(op));
            assert_eq!(op.to_string().replace('-', "_").parse(), Ok(op));
        }
        for dtype in DType::ALL {
            assert_eq!(dtype.to_string().parse(), Ok(dtype));
        }
        for policy in NanPolicy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
    }

    #[test]
    fn what_is_no_name_is_told_the_names() {
        for name in ["", "Sum", " sum", "sum ", "sum\0", "norm", "count nan"] {
            let error = name.parse::<Op>().unwrap_err();
            assert!(error.hint().is_some_and(|hint| hint.contains("logsumexp")), "{error}");
        }
        assert_eq!("f8".parse::<DType>().unwrap_err().to_string(), "\"f8\" is not an element type");
    }
}
