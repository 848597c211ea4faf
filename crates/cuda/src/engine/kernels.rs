//! Which kernel reduces what, and what it leaves in memory.

use super::tree;
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
        Kind::ArgExtrema => "arg_extrema",
        Kind::Counts => "counts",
        Kind::Prod => "prod",
        Kind::LogSumExp => "logsumexp",
        Kind::FastSum if dtype.is_float() => "fast_sum",
        Kind::FastAbsSum if dtype.is_float() => "fast_abs_sum",
        Kind::FastSquareSum if dtype.is_float() => "fast_square_sum",
        Kind::FastDot if dtype.is_float() => "fast_dot",
        Kind::Bits if !dtype.is_float() => "bits",
        _ => return None,
    };
    Some(format!("{stem}_{dtype}"))
}

/// What a kernel is compiled for: `THREADS` and `VECTORS` in `kernels/load.cuh`
/// unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Build {
    /// The most threads of a block.
    pub threads: u32,
    /// Vectors of 16 bytes that a thread takes from a tile, of all arrays.
    pub vectors: u32,
    /// Bytes of dynamic shared memory that it makes use of for each thread.
    pub shared_per_thread: u32,
}

/// How the kernel of a state is built.
pub(super) fn build(kind: Kind, dtype: DType) -> Build {
    let usual = Build { threads: 512, vectors: 4, shared_per_thread: 0 };
    match kind {
        // `SUM_THREADS` in `float_sum.cuh`, `TILE` in `range.cuh`, the limbs in
        // `bins.cuh`.
        Kind::Sum | Kind::AbsSum => match dtype {
            DType::F64 => Build { threads: 384, vectors: 8, shared_per_thread: 8 * 44 },
            DType::F32 | DType::BF16 => Build { threads: 384, shared_per_thread: 8 * 16, ..usual },
            DType::F16 => Build { threads: 384, ..usual },
            _ => usual,
        },
        // `LADDER_THREADS` in `ladder.cuh`.
        Kind::Dot | Kind::Moments if dtype == DType::F64 => usual,
        Kind::SquareSum | Kind::Dot | Kind::Moments if dtype.is_float() => {
            Build { threads: 384, ..usual }
        }
        _ => usual,
    }
}

/// Whether a kernel takes a second array.
pub(super) fn takes_pairs(kind: Kind) -> bool {
    matches!(kind, Kind::Dot | Kind::FastDot)
}

/// The bytes of the payload that a kernel leaves, if it leaves one as it is, of one
/// length for all arrays: of [`Kind::ArgExtrema`], for all but empty ones.
pub(super) fn payload_len(kind: Kind, dtype: DType) -> Option<usize> {
    let padded = matches!(kind, Kind::Prod | Kind::LogSumExp);
    name(kind, dtype).filter(|_| !padded && !tree::is_tree(kind, dtype))?;
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
                    assert!(payload_len(kind, dtype).is_none_or(|n| n > 0 && n % 8 == 0));
                }
            }
        }
        assert_eq!(found, archive::size().0, "modules that nothing names");
    }

    #[test]
    fn kernels_are_compiled_for_as_many_threads_as_they_are_launched_with() {
        for kind in Kind::ALL {
            for dtype in DType::ALL {
                let Some(name) = name(kind, dtype) else { continue };
                let ptx = archive::module(&name, (9, 0)).unwrap();
                let bound = format!(".maxntid {}, 1, 1\n", build(kind, dtype).threads);
                assert!(ptx.contains(&bound), "{name} is not for {bound}");
            }
        }
    }
}
