//! What kernels there are, for which types, and for what launches they are compiled; and
//! numbers that they and the host share.
//!
//! `tools/kernels.py` writes this file, of `kernels/catalogue.json`, the headers there and
//! what the compiler printed.

use super::entry::{Elements, Entry};

/// `VECTORS` in `kernels/load.cuh`.
pub(super) const VECTORS: usize = 4;
/// `FACTOR_VECTORS` in `kernels/prod.cuh`.
pub(super) const FACTOR_VECTORS: usize = 2;
/// `FEW_ELEMENTS` in `kernels/few.cuh`.
pub(super) const FEW_ELEMENTS: usize = 16;
/// `SCRATCH_PARTIALS` in `kernels/ticket.cuh`.
pub(super) const SCRATCH_PARTIALS: usize = 256;
/// `SCRATCH_PARTIAL_WORDS` in `kernels/ticket.cuh`.
pub(super) const SCRATCH_PARTIAL_WORDS: usize = 12;
/// `WORKSPACE_ZEROS` in `kernels/ticket.cuh`.
pub(super) const WORKSPACE_ZEROS: usize = 17408;
/// `ROW_THREADS` in `kernels/rows.cuh`.
pub(super) const ROW_THREADS: usize = 256;
/// `COLUMN_THREADS` in `kernels/columns.cuh`.
pub(super) const COLUMN_THREADS: usize = 256;
/// `COLUMN_BLOCKS` in `kernels/columns.cuh`.
pub(super) const COLUMN_BLOCKS: usize = 2;
/// `BATCH` in `kernels/columns.cuh`.
pub(super) const BATCH: usize = 8;
/// `LAYOUT_AXES` in `kernels/layout.cuh`.
pub(super) const LAYOUT_AXES: usize = 6;
/// `WARP_OUTPUT_ENDS` in `kernels/warp_output.cuh`.
pub(super) const WARP_OUTPUT_ENDS: usize = 128;
/// `STRIDED_THREADS` in `kernels/strided.cuh`.
pub(super) const STRIDED_THREADS: usize = 256;
/// `MERGED` in `kernels/strided.cuh`.
pub(super) const STRIDED_MERGED: usize = 32;
/// `SEGMENT_PIECE` in `kernels/segments.cuh`.
pub(super) const SEGMENT_PIECE: usize = 4096;
/// `TILE_THREADS` in `kernels/segment_tiles.cuh`.
pub(super) const TILE_THREADS: usize = 32;
/// `TILE_LOG_GROUPS` in `kernels/segment_tiles.cuh`.
pub(super) const TILE_LOG_GROUPS: usize = 8;
/// `LOG_SOME` in `kernels/segment_tiles.cuh`.
pub(super) const SEGMENT_LOG_SOME: usize = 3;
/// `GROUP_THREADS` in `kernels/row_tiles.cuh`.
pub(super) const GROUP_THREADS: usize = 512;
/// `GROUP_ROWS` in `kernels/row_tiles.cuh`.
pub(super) const GROUP_ROWS: usize = 8;
/// `DIGITS` in `kernels/key_order.cuh`.
pub(super) const ORDER_DIGITS: usize = 256;
/// `EDGES` in `kernels/key_order.cuh`.
pub(super) const ORDER_EDGES: usize = 64;
/// `GROUP_WINDOW` in `kernels/group_sums.cuh`.
pub(super) const GROUP_WINDOW: usize = 4;
/// `FINISH_THREADS` in `kernels/finish.cuh`.
pub(super) const FINISH_THREADS: usize = 128;
/// `FINISH_WORDS` in `kernels/finish.cuh`.
pub(super) const FINISH_WORDS: usize = 3072;
/// `THREADS` in `kernels/gather.cu`.
pub(super) const GATHER_THREADS: usize = 256;
/// `EACH` in `kernels/gather.cu`.
pub(super) const GATHER_EACH: usize = 4;
/// `TILE` in `kernels/gather.cu`.
pub(super) const GATHER_TILE: usize = 32;
/// `AXES` in `kernels/gather.cu`.
pub(super) const GATHER_AXES: usize = 6;
/// `THREADS` in `kernels/choose.cu`.
pub(super) const CHOOSE_THREADS: usize = 256;
/// `EACH` in `kernels/choose.cu`.
pub(super) const CHOOSE_EACH: usize = 8;
/// `VECTORS` in `kernels/choose.cu`.
pub(super) const CHOOSE_VECTORS: usize = 4;
/// `AXES` in `kernels/choose.cu`.
pub(super) const CHOOSE_AXES: usize = 6;

/// All.
const ALL: Elements =
    ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"];

/// Floats.
const FLOATS: Elements = ["", "", "", "", "", "", "", "", "", "f16", "bf16", "f32", "f64"];

/// Short floats.
const SHORT_FLOATS: Elements = ["", "", "", "", "", "", "", "", "", "f16", "bf16", "f32", ""];

/// Floats of 16 bits.
const FLOATS_OF_16_BITS: Elements = ["", "", "", "", "", "", "", "", "", "f16", "bf16", "", ""];

/// All but f64.
const ALL_BUT_F64: Elements =
    ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", ""];

/// Whole numbers.
const WHOLE_NUMBERS: Elements =
    ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "", "", "", ""];

/// Words.
const WORDS: Elements =
    ["u8", "u8", "u16", "u32", "u64", "u8", "u16", "u32", "u64", "u16", "u16", "u32", "u64"];

/// Words and floats.
const WORDS_AND_FLOATS: Elements =
    ["u8", "u8", "u16", "u32", "u64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"];

/// Numbers but for signs.
const NUMBERS_BUT_FOR_SIGNS: Elements =
    ["", "u8", "u16", "u32", "u64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"];

/// All but for signs.
const ALL_BUT_FOR_SIGNS: Elements =
    ["bool", "u8", "u16", "u32", "u64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"];

/// Places.
const PLACES: Elements = ["", "", "", "", "", "", "", "", "u64", "", "", "", ""];

/// Words and truth.
const WORDS_AND_TRUTH: Elements =
    ["bool", "u8", "u16", "u32", "u64", "u8", "u16", "u32", "u64", "", "", "", ""];

/// the same, of kernels that begin to read before the launch ahead has ended: the exact sum.
pub(super) const SUM: Entry = Entry {
    stem: "sum",
    elements: ALL,
    threads: [512, 512, 512, 512, 512, 512, 512, 512, 512, 384, 384, 384, 384],
    blocks: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1],
};

/// the same, of kernels that begin to read before the launch ahead has ended: the exact sum of absolute values.
pub(super) const ABS_SUM: Entry = Entry {
    stem: "abs_sum",
    elements: ALL,
    threads: [512, 512, 512, 512, 512, 512, 512, 512, 512, 384, 384, 384, 384],
    blocks: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1],
};

/// all elements of an array, or of rows of one block each: the exact sum of squares.
pub(super) const SQUARE_SUM: Entry = Entry {
    stem: "square_sum",
    elements: ALL,
    threads: [512, 512, 512, 512, 512, 512, 512, 512, 512, 384, 384, 384, 384],
    blocks: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
};

/// all elements of an array, or of rows of one block each: the exact sum of products of two arrays.
pub(super) const DOT: Entry = Entry {
    stem: "dot",
    elements: ALL,
    threads: [512, 512, 512, 512, 512, 512, 512, 512, 512, 384, 384, 384, 512],
    blocks: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1],
};

/// all elements of an array, or of rows of one block each: the exact sums of elements and of squares.
pub(super) const MOMENTS: Entry = Entry {
    stem: "moments",
    elements: ALL,
    threads: [512, 512, 512, 512, 512, 512, 512, 512, 512, 384, 384, 384, 512],
    blocks: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1],
};

/// the same, of kernels that begin to read before the launch ahead has ended: the smallest and the largest element that is not NaN, and the number of NaNs.
pub(super) const EXTREMA: Entry = Entry::even("extrema", ALL, 512, 2);

/// the same, of kernels that begin to read before the launch ahead has ended: the same and where they are first, and where the first NaN is.
pub(super) const ARG_EXTREMA: Entry = Entry::even("arg_extrema", ALL, 512, 2);

/// the same, of kernels that begin to read before the launch ahead has ended: how many elements are not zero, and how many are NaN.
pub(super) const COUNTS: Entry = Entry::even("counts", ALL, 512, 2);

/// the same, of kernels that begin to read before the launch ahead has ended: bitwise and, or, exclusive or; of truth values, the logical ones.
pub(super) const BITS: Entry = Entry::even("bits", WHOLE_NUMBERS, 512, 2);

/// all elements of an array, or of rows of one block each: the product.
pub(super) const PROD: Entry = Entry::even("prod", ALL, 512, 2);

/// all elements of an array, or of rows of one block each: the sum of exponentials; of floats it needs more registers than two blocks leave a thread.
pub(super) const LOGSUMEXP: Entry = Entry {
    stem: "logsumexp",
    elements: ALL,
    threads: [512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512],
    blocks: [2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1],
};

/// short rows side by side in a warp: sums and means.
pub(super) const ROW_SUMS: Entry = Entry::even("row_sums", ALL_BUT_F64, 256, 3);

/// short rows side by side in a warp: the smallest or the largest element.
pub(super) const ROW_EXTREMES: Entry = Entry::even("row_extremes", ALL_BUT_FOR_SIGNS, 256, 3);

/// short rows side by side in a warp: how many elements are not zero, or NaN.
pub(super) const ROW_COUNTS: Entry = Entry::even("row_counts", WORDS_AND_FLOATS, 256, 3);

/// short rows side by side in a warp: where the smallest or the largest element is first.
pub(super) const ROW_POSITIONS: Entry = Entry::even("row_positions", ALL_BUT_FOR_SIGNS, 256, 3);

/// short rows side by side in a warp: bitwise and, or, exclusive or.
pub(super) const ROW_BITS: Entry = Entry::even("row_bits", WORDS_AND_TRUTH, 256, 3);

/// columns side by side: sums and means.
pub(super) const COLUMN_SUMS: Entry = Entry::even("column_sums", WHOLE_NUMBERS, 256, 2);

/// columns side by side: the smallest or the largest element.
pub(super) const COLUMN_EXTREMES: Entry = Entry::even("column_extremes", ALL_BUT_FOR_SIGNS, 256, 2);

/// columns side by side: how many elements are not zero, or NaN.
pub(super) const COLUMN_COUNTS: Entry = Entry::even("column_counts", WORDS_AND_FLOATS, 256, 2);

/// columns side by side: where the smallest or the largest element is first.
pub(super) const COLUMN_POSITIONS: Entry =
    Entry::even("column_positions", ALL_BUT_FOR_SIGNS, 256, 2);

/// columns side by side: bitwise and, or, exclusive or.
pub(super) const COLUMN_BITS: Entry = Entry::even("column_bits", WORDS_AND_TRUTH, 256, 2);

/// any axes of any view: sums and means.
pub(super) const STRIDED_SUMS: Entry = Entry {
    stem: "strided_sums",
    elements: ALL,
    threads: [256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256],
    blocks: [4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 4],
};

/// any axes of any view: sums and means of outputs side by side.
pub(super) const STRIDED_PACKED_SUMS: Entry = Entry {
    stem: "strided_packed_sums",
    elements: SHORT_FLOATS,
    threads: [0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 128, 256, 0],
    blocks: [0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 2, 0],
};

/// any axes of any view: sums of squares and norms of outputs side by side.
pub(super) const STRIDED_PACKED_SQUARES: Entry =
    Entry::even("strided_packed_squares", FLOATS_OF_16_BITS, 64, 6);

/// any axes of any view: variances and standard deviations of outputs side by side.
pub(super) const STRIDED_PACKED_VARIANCES: Entry =
    Entry::even("strided_packed_variances", FLOATS_OF_16_BITS, 64, 6);

/// any axes of any view: the smallest or the largest element.
pub(super) const STRIDED_EXTREMES: Entry =
    Entry::even("strided_extremes", ALL_BUT_FOR_SIGNS, 256, 4);

/// any axes of any view: how many elements are not zero, or NaN.
pub(super) const STRIDED_COUNTS: Entry = Entry::even("strided_counts", WORDS_AND_FLOATS, 256, 4);

/// any axes of any view: where the smallest or the largest element is first.
pub(super) const STRIDED_POSITIONS: Entry =
    Entry::even("strided_positions", ALL_BUT_FOR_SIGNS, 256, 4);

/// any axes of any view: bitwise and, or, exclusive or.
pub(super) const STRIDED_BITS: Entry = Entry::even("strided_bits", WORDS_AND_TRUTH, 256, 4);

/// any axes of any view: sums of squares and norms.
pub(super) const STRIDED_SQUARES: Entry = Entry::even("strided_squares", FLOATS, 256, 3);

/// any axes of any view: sums of squares, norms, variances and standard deviations of integers.
pub(super) const STRIDED_INTEGER_SQUARES: Entry =
    Entry::even("strided_integer_squares", WHOLE_NUMBERS, 256, 4);

/// any axes of any view: variances and standard deviations.
pub(super) const STRIDED_VARIANCES: Entry = Entry {
    stem: "strided_variances",
    elements: FLOATS,
    threads: [0, 0, 0, 0, 0, 0, 0, 0, 0, 256, 256, 256, 256],
    blocks: [0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 2],
};

/// any axes of any view: logarithms of sums of exponentials.
pub(super) const STRIDED_LOGSUMEXP: Entry = Entry::even("strided_logsumexp", FLOATS, 256, 2);

/// outputs of few elements, several of them a thread's: sums and means.
pub(super) const ABREAST_SUMS: Entry = Entry {
    stem: "abreast_sums",
    elements: ALL,
    threads: [256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256],
    blocks: [4, 4, 4, 4, 4, 4, 4, 4, 4, 2, 2, 3, 4],
};

/// outputs of few elements, several of them a thread's: the smallest or the largest element.
pub(super) const ABREAST_EXTREMES: Entry =
    Entry::even("abreast_extremes", ALL_BUT_FOR_SIGNS, 256, 4);

/// outputs of few elements, several of them a thread's: how many elements are not zero, or NaN.
pub(super) const ABREAST_COUNTS: Entry = Entry::even("abreast_counts", WORDS_AND_FLOATS, 256, 4);

/// outputs of few elements, several of them a thread's: where the smallest or the largest element is first.
pub(super) const ABREAST_POSITIONS: Entry =
    Entry::even("abreast_positions", ALL_BUT_FOR_SIGNS, 256, 4);

/// outputs of few elements, several of them a thread's: sums of squares and norms.
pub(super) const ABREAST_SQUARES: Entry = Entry::even("abreast_squares", FLOATS, 256, 3);

/// outputs of few elements, several of them a thread's: variances and standard deviations.
pub(super) const ABREAST_VARIANCES: Entry = Entry {
    stem: "abreast_variances",
    elements: FLOATS,
    threads: [0, 0, 0, 0, 0, 0, 0, 0, 0, 256, 256, 256, 256],
    blocks: [0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 3, 3],
};

/// outputs of few elements, several of them a thread's: products.
pub(super) const ABREAST_PRODS: Entry = Entry::even("abreast_prods", FLOATS, 256, 3);

/// any axes of any view: products.
pub(super) const STRIDED_PRODS: Entry = Entry::even("strided_prods", FLOATS, 256, 3);

/// segments of an array: sums and means.
pub(super) const SEGMENTS_SUMS: Entry = Entry::even("segments_sums", ALL, 256, 3);

/// segments of an array: the smallest or the largest element.
pub(super) const SEGMENTS_EXTREMES: Entry =
    Entry::even("segments_extremes", ALL_BUT_FOR_SIGNS, 256, 4);

/// segments of an array: how many elements are not zero, or NaN.
pub(super) const SEGMENTS_COUNTS: Entry = Entry::even("segments_counts", WORDS_AND_FLOATS, 256, 4);

/// segments of an array: where the smallest or the largest element is first.
pub(super) const SEGMENTS_POSITIONS: Entry =
    Entry::even("segments_positions", ALL_BUT_FOR_SIGNS, 256, 4);

/// segments of an array: bitwise and, or, exclusive or.
pub(super) const SEGMENTS_BITS: Entry = Entry::even("segments_bits", WORDS_AND_TRUTH, 256, 4);

/// segments of an array: sums of squares and norms.
pub(super) const SEGMENTS_SQUARES: Entry = Entry::even("segments_squares", FLOATS, 256, 2);

/// segments of an array: variances and standard deviations.
pub(super) const SEGMENTS_VARIANCES: Entry = Entry::even("segments_variances", FLOATS, 256, 2);

/// segments of an array: logarithms of sums of exponentials.
pub(super) const SEGMENTS_LOGSUMEXP: Entry = Entry::even("segments_logsumexp", FLOATS, 256, 2);

/// segments of an array: products.
pub(super) const SEGMENTS_PRODS: Entry = Entry::even("segments_prods", FLOATS, 256, 2);

/// segments that follow each other, in tiles: sums and means.
pub(super) const SEGMENT_TILES_SUMS: Entry = Entry::even("segment_tiles_sums", ALL, 32, 32);

/// segments that follow each other, in tiles: the smallest or the largest element.
pub(super) const SEGMENT_TILES_EXTREMES: Entry =
    Entry::even("segment_tiles_extremes", ALL_BUT_FOR_SIGNS, 32, 32);

/// segments that follow each other, in tiles: how many elements are not zero, or NaN.
pub(super) const SEGMENT_TILES_COUNTS: Entry =
    Entry::even("segment_tiles_counts", WORDS_AND_FLOATS, 32, 32);

/// groups of rows by key: sums and means.
pub(super) const GROUPS_SUMS: Entry = Entry::even("groups_sums", NUMBERS_BUT_FOR_SIGNS, 512, 2);

/// groups of rows by key: the smallest or the largest element.
pub(super) const GROUPS_EXTREMES: Entry =
    Entry::even("groups_extremes", NUMBERS_BUT_FOR_SIGNS, 512, 2);

/// groups of rows by key: how many elements are not zero, or NaN.
pub(super) const GROUPS_COUNTS: Entry = Entry::even("groups_counts", WORDS, 512, 2);

/// numbers of payloads: of sums, extremes, positions, counts and bits.
pub(super) const FINISH: Entry = Entry::even("finish", ALL, 128, 1);

/// numbers of payloads: of sums of squares: those, or their roots.
pub(super) const FINISH_SQUARES: Entry = Entry::even("finish_squares", ALL, 128, 1);

/// numbers of payloads: of moments: variances, or standard deviations.
pub(super) const FINISH_MOMENTS: Entry = Entry::even("finish_moments", ALL, 128, 1);

/// copies of any axes to rows: of elements of a size.
pub(super) const GATHER: Entry = Entry::even("gather", WORDS, 256, 1);

/// copies of any axes to rows: of elements that marks choose, and to f64.
pub(super) const CHOOSE: Entry = Entry {
    stem: "choose",
    elements: ALL,
    threads: [256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256],
    blocks: [2, 2, 4, 4, 4, 2, 4, 4, 4, 4, 4, 4, 4],
};

/// copies of any axes to rows: of two ends.
pub(super) const PAIR: Entry = Entry::even("pair", ALL, 128, 1);

/// keys of rows: numbers of rows, and their order.
pub(super) const NUMBER: Entry = Entry::even("number", PLACES, 512, 2);

/// All of them.
#[cfg(test)]
pub(super) const ENTRIES: [&Entry; 63] = [
    &SUM,
    &ABS_SUM,
    &SQUARE_SUM,
    &DOT,
    &MOMENTS,
    &EXTREMA,
    &ARG_EXTREMA,
    &COUNTS,
    &BITS,
    &PROD,
    &LOGSUMEXP,
    &ROW_SUMS,
    &ROW_EXTREMES,
    &ROW_COUNTS,
    &ROW_POSITIONS,
    &ROW_BITS,
    &COLUMN_SUMS,
    &COLUMN_EXTREMES,
    &COLUMN_COUNTS,
    &COLUMN_POSITIONS,
    &COLUMN_BITS,
    &STRIDED_SUMS,
    &STRIDED_PACKED_SUMS,
    &STRIDED_PACKED_SQUARES,
    &STRIDED_PACKED_VARIANCES,
    &STRIDED_EXTREMES,
    &STRIDED_COUNTS,
    &STRIDED_POSITIONS,
    &STRIDED_BITS,
    &STRIDED_SQUARES,
    &STRIDED_INTEGER_SQUARES,
    &STRIDED_VARIANCES,
    &STRIDED_LOGSUMEXP,
    &ABREAST_SUMS,
    &ABREAST_EXTREMES,
    &ABREAST_COUNTS,
    &ABREAST_POSITIONS,
    &ABREAST_SQUARES,
    &ABREAST_VARIANCES,
    &ABREAST_PRODS,
    &STRIDED_PRODS,
    &SEGMENTS_SUMS,
    &SEGMENTS_EXTREMES,
    &SEGMENTS_COUNTS,
    &SEGMENTS_POSITIONS,
    &SEGMENTS_BITS,
    &SEGMENTS_SQUARES,
    &SEGMENTS_VARIANCES,
    &SEGMENTS_LOGSUMEXP,
    &SEGMENTS_PRODS,
    &SEGMENT_TILES_SUMS,
    &SEGMENT_TILES_EXTREMES,
    &SEGMENT_TILES_COUNTS,
    &GROUPS_SUMS,
    &GROUPS_EXTREMES,
    &GROUPS_COUNTS,
    &FINISH,
    &FINISH_SQUARES,
    &FINISH_MOMENTS,
    &GATHER,
    &CHOOSE,
    &PAIR,
    &NUMBER,
];
