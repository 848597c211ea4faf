//! Which kernel does what, and what it leaves in memory.

use super::catalogue::{
    ABREAST_COUNTS, ABREAST_EXTREMES, ABREAST_POSITIONS, ABREAST_PRODS, ABREAST_SQUARES,
    ABREAST_SUMS, ABREAST_VARIANCES, ABS_SUM, ARG_EXTREMA, BITS, CHOOSE, COLUMN_BITS,
    COLUMN_COUNTS, COLUMN_EXTREMES, COLUMN_POSITIONS, COLUMN_SUMS, COUNTS, DOT, EXTREMA,
    FACTOR_VECTORS, FINISH, FINISH_MOMENTS, FINISH_SQUARES, GATHER, GROUPS_COUNTS, GROUPS_EXTREMES,
    GROUPS_SUMS, LOGSUMEXP, MOMENTS, NUMBER, PAIR, PROD, ROW_BITS, ROW_COUNTS, ROW_EXTREMES,
    ROW_POSITIONS, ROW_SUMS, SEGMENT_TILES_COUNTS, SEGMENT_TILES_EXTREMES, SEGMENT_TILES_SUMS,
    SEGMENTS_BITS, SEGMENTS_COUNTS, SEGMENTS_EXTREMES, SEGMENTS_LOGSUMEXP, SEGMENTS_POSITIONS,
    SEGMENTS_PRODS, SEGMENTS_SQUARES, SEGMENTS_SUMS, SEGMENTS_VARIANCES, SQUARE_SUM, STRIDED_BITS,
    STRIDED_COUNTS, STRIDED_EXTREMES, STRIDED_INTEGER_SQUARES, STRIDED_LOGSUMEXP,
    STRIDED_PACKED_SQUARES, STRIDED_PACKED_SUMS, STRIDED_PACKED_VARIANCES, STRIDED_POSITIONS,
    STRIDED_PRODS, STRIDED_SQUARES, STRIDED_SUMS, STRIDED_VARIANCES, SUM, VECTORS,
};
use super::entry::Entry;
use crate::device::Argument;
use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind};

/// A kernel that leaves no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Program {
    /// Copies elements of so many bytes.
    Gather(usize),
    /// Copies elements that are chosen.
    Choose(DType),
    /// Numbers rows by their keys, and puts keys in order.
    Number,
    /// Makes one number of two.
    Pair(DType),
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
    /// The same of outputs side by side.
    Packs(Tally, DType),
    /// Makes numbers of a view whose outputs have few elements.
    Abreast(Tally, DType),
    /// Makes numbers of the segments of an array.
    Segments(Tally, DType),
    /// The same of segments that follow each other, most of which are not long.
    SegmentTiles(Tally, DType),
    /// Makes numbers of groups of rows.
    Groups(Tally, DType),
}

/// What kernels make numbers of without a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Tally {
    /// Totals and means, also of absolute values.
    Sums,
    /// The smallest or the largest element, or the largest absolute value.
    Extremes,
    /// How many elements are not zero, or NaN.
    Counts,
    /// Where the smallest or the largest element is first.
    Positions,
    /// Bitwise folds.
    Bits,
    /// Sums of squares and norms.
    Squares,
    /// Variances and standard deviations.
    Variances,
    /// Both of integers.
    IntegerSquares,
    /// Logarithms of sums of exponentials, of floats.
    LogSumExps,
    /// Products, of floats.
    Products,
}

impl Tally {
    /// The kernels for short rows, columns and views; where rows and columns have none,
    /// that for views.
    fn entries(self) -> (&'static Entry, &'static Entry, &'static Entry) {
        match self {
            Tally::Sums => (&ROW_SUMS, &COLUMN_SUMS, &STRIDED_SUMS),
            Tally::Extremes => (&ROW_EXTREMES, &COLUMN_EXTREMES, &STRIDED_EXTREMES),
            Tally::Counts => (&ROW_COUNTS, &COLUMN_COUNTS, &STRIDED_COUNTS),
            Tally::Positions => (&ROW_POSITIONS, &COLUMN_POSITIONS, &STRIDED_POSITIONS),
            Tally::Bits => (&ROW_BITS, &COLUMN_BITS, &STRIDED_BITS),
            Tally::Squares => (&STRIDED_SQUARES, &STRIDED_SQUARES, &STRIDED_SQUARES),
            Tally::Variances => (&STRIDED_VARIANCES, &STRIDED_VARIANCES, &STRIDED_VARIANCES),
            Tally::IntegerSquares => {
                (&STRIDED_INTEGER_SQUARES, &STRIDED_INTEGER_SQUARES, &STRIDED_INTEGER_SQUARES)
            }
            Tally::LogSumExps => (&STRIDED_LOGSUMEXP, &STRIDED_LOGSUMEXP, &STRIDED_LOGSUMEXP),
            Tally::Products => (&STRIDED_PRODS, &STRIDED_PRODS, &STRIDED_PRODS),
        }
    }

    /// The kernel for outputs of few elements, if there is one.
    pub(super) fn abreast(self) -> Option<&'static Entry> {
        Some(match self {
            Tally::Sums => &ABREAST_SUMS,
            Tally::Extremes => &ABREAST_EXTREMES,
            Tally::Counts => &ABREAST_COUNTS,
            Tally::Positions => &ABREAST_POSITIONS,
            Tally::Squares => &ABREAST_SQUARES,
            Tally::Variances => &ABREAST_VARIANCES,
            Tally::Products => &ABREAST_PRODS,
            Tally::Bits | Tally::LogSumExps | Tally::IntegerSquares => return None,
        })
    }

    /// Whether the kernel for outputs of few elements omits NaNs: not where it takes an element of
    /// each output as the origin of others, or tells where they are.
    pub(super) fn omits_abreast(self) -> bool {
        matches!(self, Tally::Sums | Tally::Extremes | Tally::Squares | Tally::Products)
    }

    /// The kernel for segments, if there is one.
    pub(super) fn segments(self) -> Option<&'static Entry> {
        Some(match self {
            Tally::Sums => &SEGMENTS_SUMS,
            Tally::Extremes => &SEGMENTS_EXTREMES,
            Tally::Counts => &SEGMENTS_COUNTS,
            Tally::Positions => &SEGMENTS_POSITIONS,
            Tally::Bits => &SEGMENTS_BITS,
            Tally::Squares => &SEGMENTS_SQUARES,
            Tally::Variances => &SEGMENTS_VARIANCES,
            Tally::LogSumExps => &SEGMENTS_LOGSUMEXP,
            Tally::Products => &SEGMENTS_PRODS,
            // Of payloads.
            Tally::IntegerSquares => return None,
        })
    }

    /// The kernel for segments that follow each other, if there is one for a type.
    pub(super) fn segment_tiles(self, dtype: DType) -> Option<&'static Entry> {
        let entries = [&SEGMENT_TILES_SUMS, &SEGMENT_TILES_EXTREMES, &SEGMENT_TILES_COUNTS];
        self.among(entries, dtype)
    }

    /// The kernel for groups, if there is one for a type.
    pub(super) fn groups(self, dtype: DType) -> Option<&'static Entry> {
        self.among([&GROUPS_SUMS, &GROUPS_EXTREMES, &GROUPS_COUNTS], dtype)
    }

    /// Of the kernels for sums, extremes and counts, this one's, if there is one for a type.
    fn among(self, entries: [&'static Entry; 3], dtype: DType) -> Option<&'static Entry> {
        let [sums, extremes, counts] = entries;
        let entry = match self {
            Tally::Sums => sums,
            Tally::Extremes => extremes,
            Tally::Counts => counts,
            Tally::Positions
            | Tally::Bits
            | Tally::Squares
            | Tally::Variances
            | Tally::IntegerSquares
            | Tally::LogSumExps
            | Tally::Products => return None,
        };
        entry.module(dtype).map(|_| entry)
    }

    /// Whether rows have kernels of their own, besides the walk over any view: not where that is as
    /// quick, whatever elements are like.
    pub(super) fn has_rows(self, dtype: DType) -> bool {
        match self {
            Tally::Sums => dtype != DType::F64,
            Tally::LogSumExps | Tally::Products | Tally::IntegerSquares => false,
            tally => !tally.is_of_squares(),
        }
    }

    /// The same of columns.
    pub(super) fn has_columns(self, dtype: DType) -> bool {
        self.has_rows(dtype) && self.entries().1.module(dtype).is_some()
    }

    /// Whether it sums squares.
    pub(super) fn is_of_squares(self) -> bool {
        matches!(self, Tally::Squares | Tally::Variances)
    }

    /// The kernel that takes elements of neighbouring outputs of a view together, if there is one for a
    /// type.
    pub(super) fn packs(self, dtype: DType) -> Option<&'static Entry> {
        let entry = match self {
            Tally::Sums => &STRIDED_PACKED_SUMS,
            Tally::Squares => &STRIDED_PACKED_SQUARES,
            Tally::Variances => &STRIDED_PACKED_VARIANCES,
            _ => return None,
        };
        entry.module(dtype).map(|_| entry)
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

    /// Its entry of the catalogue, and the element type.
    fn entry(self) -> (&'static Entry, DType) {
        match self {
            Program::Gather(1) => (&GATHER, DType::U8),
            Program::Gather(2) => (&GATHER, DType::U16),
            Program::Gather(4) => (&GATHER, DType::U32),
            Program::Gather(_) => (&GATHER, DType::U64),
            Program::Choose(dtype) => (&CHOOSE, dtype),
            Program::Number => (&NUMBER, DType::U64),
            Program::Pair(dtype) => (&PAIR, dtype),
            Program::Finish(dtype) => (&FINISH, dtype),
            Program::FinishSquares(dtype) => (&FINISH_SQUARES, dtype),
            Program::FinishMoments(dtype) => (&FINISH_MOMENTS, dtype),
            Program::ShortRows(tally, dtype) => (tally.entries().0, dtype),
            Program::Columns(tally, dtype) => (tally.entries().1, dtype),
            Program::Strided(tally, dtype) => (tally.entries().2, dtype),
            // Where outputs have none side by side, or abreast, they are not planned so.
            Program::Packs(tally, dtype) => {
                (tally.packs(dtype).unwrap_or(tally.entries().2), dtype)
            }
            Program::Abreast(tally, dtype) => (tally.abreast().unwrap_or(tally.entries().2), dtype),
            // The same of segments.
            Program::Segments(tally, dtype) => {
                (tally.segments().unwrap_or(tally.entries().2), dtype)
            }
            Program::SegmentTiles(tally, dtype) => {
                (tally.segment_tiles(dtype).unwrap_or(tally.entries().2), dtype)
            }
            // And of groups.
            Program::Groups(tally, dtype) => {
                (tally.groups(dtype).unwrap_or(tally.entries().2), dtype)
            }
        }
    }

    /// The name of the kernel, and of its module; where there is none, a name that no
    /// archive has.
    pub(super) fn name(self) -> String {
        let (entry, dtype) = self.entry();
        entry.name(dtype).unwrap_or_else(|| format!("{} of {dtype}", entry.stem))
    }

    /// Blocks that fit a multiprocessor, as the kernel is compiled for.
    pub(super) fn blocks(self) -> u32 {
        let (entry, dtype) = self.entry();
        entry.module(dtype).map_or(1, |module| module.blocks)
    }

    /// The most threads of a block.
    pub(super) fn threads(self) -> u32 {
        let (entry, dtype) = self.entry();
        entry.module(dtype).map_or(1, |module| module.threads)
    }
}

/// The kernel that leaves a state of a kind.
fn entry(kind: Kind) -> &'static Entry {
    match kind {
        Kind::Sum => &SUM,
        Kind::AbsSum => &ABS_SUM,
        Kind::SquareSum => &SQUARE_SUM,
        Kind::Dot => &DOT,
        Kind::Moments => &MOMENTS,
        Kind::Extrema => &EXTREMA,
        Kind::ArgExtrema => &ARG_EXTREMA,
        Kind::Counts => &COUNTS,
        Kind::Bits => &BITS,
        Kind::Prod => &PROD,
        Kind::LogSumExp => &LOGSUMEXP,
    }
}

/// The name of the kernel that leaves a state.
pub(super) fn name(kind: Kind, dtype: DType) -> Option<String> {
    entry(kind).name(dtype)
}

/// Whether there is one.
pub(super) fn supports(kind: Kind, dtype: DType) -> bool {
    entry(kind).module(dtype).is_some()
}

/// What a kernel is compiled for.
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
    let threads = entry(kind).module(dtype).map_or(32, |module| module.threads);
    let usual = Build { threads, vectors: VECTORS as u32, shared_per_thread: 0 };
    match kind {
        // `TILE` in `range.cuh`, the limbs in `bins.cuh`.
        Kind::Sum | Kind::AbsSum => match dtype {
            DType::F64 => Build { vectors: 8, shared_per_thread: 8 * 44, ..usual },
            DType::F32 => Build { shared_per_thread: 8 * 16, ..usual },
            DType::BF16 => Build { shared_per_thread: 4 * 32, ..usual },
            _ => usual,
        },
        // The limbs in `product_bins.cuh` and `narrow_squares.cuh`, and of moments those
        // of the elements before them; four lanes share those of f64.
        Kind::SquareSum | Kind::Dot | Kind::Moments if dtype.is_float() => {
            let elements = kind == Kind::Moments;
            let shared_per_thread = match dtype {
                DType::F64 => 8 * (81 + if elements { 44 } else { 0 }) / 4,
                DType::F32 => 8 * (13 + if elements { 11 } else { 0 }),
                DType::BF16 if kind == Kind::Dot => 8 * 18,
                DType::BF16 => 8 * 16 + if elements { 4 * 16 } else { 0 },
                _ => 0,
            };
            Build { shared_per_thread, ..usual }
        }
        Kind::Prod if dtype.is_float() => Build { vectors: FACTOR_VECTORS as u32, ..usual },
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
    if !supports(kind, dtype) || padded {
        return None;
    }
    let empty = AnyState::identity(kind, dtype).ok()?.payload().len();
    // Positions of elements are one range.
    Some(if kind == Kind::ArgExtrema { empty + 16 } else { empty })
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answer;
    use super::super::archive;
    use super::super::catalogue::COLUMN_BLOCKS;
    use super::*;
    use std::collections::HashSet;
    use warpfold_core::op::Op;

    #[test]
    fn every_module_is_named() {
        let mut names = HashSet::from([Program::Number.name()]);
        for dtype in DType::ALL {
            for kind in Kind::ALL {
                assert!(payload_len(kind, dtype).is_none_or(|n| n > 0 && n % 8 == 0));
                names.extend(name(kind, dtype));
            }
            names.insert(Program::Gather(dtype.size()).name());
            names.insert(Program::Choose(dtype).name());
            names.insert(Program::Pair(dtype).name());
            for kind in [Kind::Sum, Kind::SquareSum, Kind::Moments] {
                names.insert(Program::finish(kind, dtype).name());
            }
            for answer in Op::ALL.into_iter().filter_map(|op| Answer::of(op, dtype)) {
                if let Some(tally) = answer.tally() {
                    names.insert(Program::Strided(tally, dtype).name());
                    if tally.packs(dtype).is_some() {
                        names.insert(Program::Packs(tally, dtype).name());
                    }
                    if tally.abreast().is_some() {
                        names.insert(Program::Abreast(tally, dtype).name());
                    }
                    if tally.segments().is_some() {
                        names.insert(Program::Segments(tally, dtype).name());
                    }
                    if tally.segment_tiles(dtype).is_some() {
                        names.insert(Program::SegmentTiles(tally, dtype).name());
                    }
                    if tally.groups(dtype).is_some() {
                        names.insert(Program::Groups(tally, dtype).name());
                    }
                    if tally.has_rows(dtype) {
                        names.insert(Program::ShortRows(tally, dtype).name());
                    }
                    if tally.has_columns(dtype) {
                        names.insert(Program::Columns(tally, dtype).name());
                    }
                }
            }
        }
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_unstable();
        assert_eq!(names, archive::names());
    }

    #[test]
    fn kernels_have_all_threads_that_a_launch_may_ask_for() {
        assert_eq!(build(Kind::Sum, DType::F64).threads, 384);
        assert_eq!(build(Kind::Dot, DType::F64).threads, 512);
        assert_eq!(Program::ShortRows(Tally::Sums, DType::F32).blocks(), 3);
        assert_eq!(Program::Columns(Tally::Extremes, DType::F32).blocks(), COLUMN_BLOCKS as u32);
    }
}
