//! The output of a kernel in the device's memory, and the state that it is.
//!
//! Most leave the payload of the state, as `warpfold-core` reads and writes it;
//! products and sums of exponentials of integers, whose payloads are no whole words
//! or differ in length, leave it padded.

use super::{Input, kernels};
use crate::{Error, Result};
use warpfold_core::op::{AnyState, Kind};

/// The most bytes of a sum of exponentials of integers: the number of counts, the
/// largest element, 128 counts.
const MOST_COUNTED: usize = 1 + 8 + 8 * 128;

/// How many bytes a kernel leaves of this input, if there is one: a multiple of 8.
pub(super) fn len(kind: Kind, input: &Input) -> Option<usize> {
    let dtype = input.array.dtype;
    if !kernels::supports(kind, dtype) {
        return None;
    }
    match kind {
        Kind::LogSumExp if !dtype.is_float() => Some(MOST_COUNTED.next_multiple_of(8)),
        // No elements are at no positions.
        Kind::ArgExtrema if input.array.len == 0 => empty_payload(kind, input),
        _ => kernels::payload_len(kind, dtype).or_else(|| empty_payload(kind, input)),
    }
}

/// The bytes of the payload of no elements, padded to words.
fn empty_payload(kind: Kind, input: &Input) -> Option<usize> {
    let empty = AnyState::identity(kind, input.array.dtype).ok()?;
    Some(empty.payload().len().next_multiple_of(8))
}

/// The state that these bytes are.
pub(super) fn state(kind: Kind, input: &Input, output: &[u8]) -> Result<AnyState> {
    let dtype = input.array.dtype;
    let damaged = |why| Error::State { kind, dtype, why };
    let used = match kind {
        Kind::LogSumExp if !dtype.is_float() => {
            output.first().map_or(0, |&counts| 1 + 8 + 8 * usize::from(counts))
        }
        Kind::Prod if !dtype.is_float() => 1 + 1 + 16 + 8,
        _ => output.len(),
    };
    let payload = output.get(..used).ok_or_else(|| damaged("it ends too early".into()))?;
    AnyState::from_payload(kind, dtype, payload).map_err(|why| damaged(why.to_string()))
}
