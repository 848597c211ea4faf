//! What a kernel leaves in the device's memory, and the state that it is.
//!
//! Most leave the payload of the state, as `warpfold-core` reads and writes it.

use super::{Input, kernels};
use crate::{Error, Result};
use warpfold_core::op::{AnyState, Kind};

/// How many bytes a kernel leaves of this input, if there is one.
pub(super) fn len(kind: Kind, input: &Input) -> Option<usize> {
    let payload = kernels::payload_len(kind, input.array.dtype)?;
    // No elements are at no positions.
    Some(if kind == Kind::ArgExtrema && input.array.len == 0 { payload - 16 } else { payload })
}

/// The state that these bytes are.
pub(super) fn state(kind: Kind, input: &Input, left: &[u8]) -> Result<AnyState> {
    let dtype = input.array.dtype;
    AnyState::from_payload(kind, dtype, left).map_err(|why| Error::State {
        kind,
        dtype,
        why: why.to_string(),
    })
}
