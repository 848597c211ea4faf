//! The workspace that the blocks of a launch share, where the scratch
//! memory's partials have too little room.
//!
//! ```text
//! words     0                                        17408
//!           | counters and a ticket: zero between launches | what each leaves for others
//! ```

use super::catalogue::WORKSPACE_ZEROS;
use warpfold_core::DType;
use warpfold_core::op::Kind;

/// Words that are zero between launches.
pub(super) const ZEROS: u64 = WORKSPACE_ZEROS as u64;

/// Words that a block leaves of a sum of exponentials of integers:
/// `COUNTED_WORDS` in `kernels/integer_logsumexp.cuh`.
const COUNTED_WORDS: u64 = 130;

/// Words that a block leaves of one of floats: `WORDS` in
/// `kernels/float_logsumexp.cuh`.
fn exponential_words(dtype: DType) -> u64 {
    if dtype == DType::F64 { 19 } else { 12 }
}

/// The bytes of this memory that a launch of so many blocks needs.
pub(super) fn bytes(kind: Kind, dtype: DType, blocks: u32) -> u64 {
    if kind != Kind::LogSumExp || dtype == DType::Bool || blocks <= 1 {
        return 0;
    }
    let words = if dtype.is_float() { exponential_words(dtype) } else { COUNTED_WORDS };
    8 * (ZEROS + words * u64::from(blocks))
}
