//! Which kernel reduces what, and what it leaves in memory.

use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind};

/// The name of the kernel, and of its module.
pub(super) fn name(kind: Kind, dtype: DType) -> Option<String> {
    let stem = match kind {
        Kind::Sum => "sum",
        Kind::AbsSum => "abs_sum",
        Kind::SquareSum => "square_sum",
        Kind::Dot => "dot",
        Kind::Moments => "moments",
        Kind::Extrema => "extrema",
        Kind::Counts => "counts",
        Kind::Bits if !dtype.is_float() => "bits",
        _ => return None,
    };
    Some(format!("{stem}_{dtype}"))
}

/// Threads of a block and blocks of a multiprocessor that a kernel is compiled
/// for: the most registers that its threads have follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) threads: u32,
    pub(super) blocks: u32,
}

/// `THREADS` and `BLOCKS` in `kernels/load.cuh`.
const USUAL: Bounds = Bounds { threads: 512, blocks: 2 };

/// `SMALLER` and `MORE` there, for kernels with more values at once.
const ROOMY: Bounds = Bounds { threads: 256, blocks: 3 };

/// What the kernel is compiled for.
pub(super) fn bounds(kind: Kind, dtype: DType) -> Bounds {
    match (kind, dtype) {
        (Kind::Dot | Kind::Moments, DType::F64) => ROOMY,
        _ => USUAL,
    }
}

/// Whether a kernel takes a second array.
pub(super) fn takes_pairs(kind: Kind) -> bool {
    matches!(kind, Kind::Dot)
}

/// The bytes of the payload that a kernel leaves.
pub(super) fn payload_len(kind: Kind, dtype: DType) -> Option<usize> {
    name(kind, dtype)?;
    AnyState::identity(kind, dtype).ok().map(|state| state.payload().len())
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

    #[test]
    fn kernels_are_compiled_for_the_bounds_that_they_are_launched_with() {
        for kind in Kind::ALL {
            for dtype in DType::ALL {
                let Some(name) = name(kind, dtype) else { continue };
                let Bounds { threads, blocks } = bounds(kind, dtype);
                let ptx = archive::module(&name, (9, 0)).unwrap();
                assert!(ptx.contains(&format!(".maxntid {threads}, 1, 1\n")), "{name}");
                assert!(ptx.contains(&format!(".minnctapersm {blocks}\n")), "{name}");
            }
        }
    }
}
