//! What a kernel leaves in the device's memory, and the state that it is.
//!
//! Most leave the payload of the state, as `warpfold-core` reads and writes it;
//! those of fixed trees what `tree.rs` says.

use super::{Input, kernels, tree};
use crate::{Error, Result};
use warpfold_core::op::{AnyState, Kind};

/// How many bytes a kernel leaves of this input, if there is one.
pub(super) fn len(kind: Kind, input: &Input) -> Option<usize> {
    let dtype = input.array.dtype;
    if tree::is_tree(kind, dtype) {
        return kernels::name(kind, dtype).map(|_| tree::left_len(kind, input));
    }
    let payload = kernels::payload_len(kind, dtype)?;
    // No elements are at no positions.
    Some(if kind == Kind::ArgExtrema && input.array.len == 0 { payload - 16 } else { payload })
}

/// The state that these bytes are.
pub(super) fn state(kind: Kind, input: &Input, left: &[u8]) -> Result<AnyState> {
    let dtype = input.array.dtype;
    let damaged = |why| Error::State { kind, dtype, why };
    if tree::is_tree(kind, dtype) {
        return tree::state(kind, input, left).map_err(|why| damaged(why.into()));
    }
    AnyState::from_payload(kind, dtype, left).map_err(|why| damaged(why.to_string()))
}
