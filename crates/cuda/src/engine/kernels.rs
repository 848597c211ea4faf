//! Which kernel does what, and what it leaves in memory.

use crate::device::Argument;
use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind};

/// A kernel that leaves no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Program {
    /// Copies elements of so many bytes.
    Gather(usize),
    /// Makes numbers of payloads of sums, extremes, positions, counts and bits.
    Finish(DType),
    /// Makes numbers of payloads of sums of squares.
    FinishSquares(DType),
    /// Makes numbers of payloads of moments.
    FinishMoments(DType),
    /// Makes numbers of short rows.
    ShortRows(Tally, DType),
    /// Makes numbers of columns.
    Columns(Tally, DType),
    /// Makes numbers of any view.
    Strided(Tally, DType),
}

/// What kernels make numbers of without a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Tally {
    /// Totals and means, also of absolute values.
    Sums,
    /// The smallest or the largest element.
    Extremes,
    /// How many elements are not zero, or NaN.
    Counts,
    /// Where the smallest or the largest element is first.
    Positions,
    /// The largest absolute value.
    Magnitudes,
    /// Bitwise folds.
    Bits,
    /// Sums of squares and norms.
    Squares,
    /// Variances and standard deviations.
    Variances,
    /// Logarithms of sums of exponentials, of floats.
    LogSumExps,
    /// Products, of floats.
    Products,
}

impl Tally {
    /// Whether rows and columns have kernels of their own, besides the walk over any
    /// view.
    pub(super) fn has_tables(self) -> bool {
        !matches!(self, Tally::LogSumExps | Tally::Products)
    }

    /// Whether it sums squares.
    pub(super) fn is_of_squares(self) -> bool {
        matches!(self, Tally::Squares | Tally::Variances)
    }

    /// The name of its kernels, which for counts and bits are told by the size
    /// of integers alone, but for truth values' bits.
    fn name(self, dtype: DType) -> String {
        match self {
            Tally::Sums => format!("sums_{dtype}"),
            Tally::Extremes => format!("extremes_{dtype}"),
            Tally::Positions => format!("positions_{dtype}"),
            Tally::Magnitudes => format!("magnitudes_{dtype}"),
            Tally::Squares => format!("squares_{dtype}"),
            Tally::Variances => format!("variances_{dtype}"),
            Tally::LogSumExps => format!("logsumexp_{dtype}"),
            Tally::Products => format!("prods_{dtype}"),
            Tally::Bits if dtype == DType::Bool => format!("bits_{dtype}"),
            Tally::Bits => format!("bits_u{}", 8 * dtype.size()),
            Tally::Counts if dtype.is_float() => format!("counts_{dtype}"),
            Tally::Counts => format!("counts_u{}", 8 * dtype.size()),
        }
    }
}

impl Program {
    /// What makes numbers of payloads of a kind.
    pub(super) fn finish(kind: Kind, dtype: DType) -> Program {
        match kind {
            Kind::SquareSum => Program::FinishSquares(dtype),
            Kind::Moments => Program::FinishMoments(dtype),
            _ => Program::Finish(dtype),
        }
    }

    /// The name of the kernel, and of its module.
    pub(super) fn name(self) -> String {
        match self {
            Program::Gather(size) => format!("gather_u{}", 8 * size),
            Program::Finish(dtype) => format!("finish_{dtype}"),
            Program::FinishSquares(dtype) => format!("finish_squares_{dtype}"),
            Program::FinishMoments(dtype) => format!("finish_moments_{dtype}"),
            // One kernel makes both of rows.
            Program::ShortRows(Tally::Variances, dtype) => format!("row_squares_{dtype}"),
            Program::ShortRows(tally, dtype) => format!("row_{}", tally.name(dtype)),
            Program::Columns(tally, dtype) => format!("column_{}", tally.name(dtype)),
            Program::Strided(tally, dtype) => format!("strided_{}", tally.name(dtype)),
        }
    }
}

/// The name of the kernel that leaves a state.
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
            DType::F32 => Build { threads: 384, shared_per_thread: 8 * 16, ..usual },
            DType::BF16 => Build { threads: 384, shared_per_thread: 4 * 33, ..usual },
            DType::F16 => Build { threads: 384, ..usual },
            _ => usual,
        },
        // `LADDER_THREADS` in `ladder.cuh`, the limbs in `product_bins.cuh` and
        // `narrow_squares.cuh`, and of moments those of the elements before them;
        // four lanes share those of f64.
        Kind::SquareSum | Kind::Dot | Kind::Moments if dtype.is_float() => {
            let elements = kind == Kind::Moments;
            let shared_per_thread = match dtype {
                DType::F64 => 8 * (81 + if elements { 44 } else { 0 }) / 4,
                DType::F32 => 8 * (13 + if elements { 11 } else { 0 }),
                DType::BF16 if kind == Kind::Dot => 8 * 18,
                DType::BF16 => 8 * 17 + if elements { 4 * 17 } else { 0 },
                _ => 0,
            };
            let wide = dtype == DType::F64 && kind != Kind::SquareSum;
            Build { threads: if wide { 512 } else { 384 }, shared_per_thread, ..usual }
        }
        _ => usual,
    }
}

/// The arguments of a kernel that leaves states, as `kernel.cuh` names its
/// parameters: words, and whether the elements are ready.
pub(super) fn arguments(words: [u64; 8], ready: bool) -> [Argument; 9] {
    let ready = Argument::from(u32::from(ready));
    core::array::from_fn(|i| {
        words.get(i).map_or_else(|| ready.clone(), |&word| Argument::from(word))
    })
}

/// The bytes of the payload that a kernel leaves, if it leaves one as it is, of one
/// length for all arrays: of [`Kind::ArgExtrema`], for all but empty ones.
pub(super) fn payload_len(kind: Kind, dtype: DType) -> Option<usize> {
    let padded = kind == Kind::LogSumExp || kind == Kind::Prod && !dtype.is_float();
    name(kind, dtype).filter(|_| !padded)?;
    let empty = AnyState::identity(kind, dtype).ok()?.payload().len();
    // Positions of elements are one range.
    Some(if kind == Kind::ArgExtrema { empty + 16 } else { empty })
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answer;
    use super::super::archive;
    use super::*;
    use std::collections::HashSet;
    use warpfold_core::op::Op;

    #[test]
    fn whatever_has_a_name_is_in_the_archive() {
        let mut names = HashSet::new();
        for kind in Kind::ALL {
            for dtype in DType::ALL {
                if let Some(name) = name(kind, dtype) {
                    assert!(payload_len(kind, dtype).is_none_or(|n| n > 0 && n % 8 == 0));
                    names.insert(name);
                }
            }
        }
        names.extend([1, 2, 4, 8].map(|size| Program::Gather(size).name()));
        for dtype in DType::ALL {
            for kind in [Kind::Sum, Kind::SquareSum, Kind::Moments] {
                names.insert(Program::finish(kind, dtype).name());
            }
            for answer in Op::ALL.into_iter().filter_map(|op| Answer::of(op, dtype)) {
                if let Some(tally) = answer.tally() {
                    names.insert(Program::Strided(tally, dtype).name());
                    if tally.has_tables() {
                        names.insert(Program::ShortRows(tally, dtype).name());
                        names.insert(Program::Columns(tally, dtype).name());
                    }
                }
            }
        }
        for name in &names {
            for capability in [(7, 5), (9, 0)] {
                assert!(archive::module(name, capability).is_some(), "{name}");
            }
        }
        assert_eq!(2 * names.len(), archive::size().0, "modules that nothing names");
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
