//! Which kernel reduces what, and what it leaves in memory.

use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind};

/// The name of the kernel, and of its module.
pub(super) fn name(kind: Kind, dtype: DType) -> Option<String> {
    let stem = match kind {
        Kind::Sum => "sum",
        Kind::AbsSum => "abs_sum",
        Kind::Extrema => "extrema",
        Kind::ArgExtrema => "arg_extrema",
        Kind::Counts => "counts",
        Kind::Bits if !dtype.is_float() => "bits",
        _ => return None,
    };
    Some(format!("{stem}_{dtype}"))
}

/// The bytes of the payload that a kernel leaves.
pub(super) fn payload_len(kind: Kind, dtype: DType) -> Option<usize> {
    name(kind, dtype)?;
    let empty = AnyState::identity(kind, dtype).ok()?.payload().len();
    // Positions of elements are one range.
    Some(if kind == Kind::ArgExtrema { empty + 16 } else { empty })
}

#[cfg(test)]
mod tests {
    use super::super::archive;
    use super::*;

    #[test]
    fn whatever_has_a_name_is_in_the_archive() {
        let mut found = 0;
        for kind in Kind::ALL {
            for dtype in DType::ALL {
                if let Some(name) = name(kind, dtype) {
                    for capability in [(7, 5), (9, 0)] {
                        assert!(archive::module(&name, capability).is_some(), "{name}");
                        found += 1;
                    }
                    assert!(payload_len(kind, dtype).is_some_and(|n| n > 0 && n % 8 == 0));
                }
            }
        }
        assert_eq!(found, archive::size().0, "modules that nothing names");
    }
}
