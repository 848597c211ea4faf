//! The byte form of a state.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpfold::internal::{AnyState, Kind};
use warpfold::{DType, Error, NanPolicy, Op, Rules};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(state) = AnyState::from_bytes(bytes) {
        exercise(state);
    }
    // The checksum would stop most of what a fuzzer tries: the payload alone.
    let [kind, dtype, payload @ ..] = bytes else { return };
    let kind = Kind::ALL[usize::from(*kind) % Kind::ALL.len()];
    let dtype = DType::ALL[usize::from(*dtype) % DType::ALL.len()];
    if let Ok(state) = AnyState::from_payload(kind, dtype, payload) {
        exercise(state);
    }
});

/// Whatever was read can be written, merged and finished.
fn exercise(mut state: AnyState) {
    let written = state.to_bytes();
    let again = AnyState::from_bytes(&written).expect("what was written can be read");
    assert_eq!(again.to_bytes(), written, "the byte form is canonical");
    for op in Op::ALL {
        for nan in [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error] {
            for (wrap, out) in [(false, None), (true, None), (false, Some(DType::F16))] {
                let _ = state.finish(op, &Rules::new().nan(nan).wrap(wrap).ddof(1).out(out));
            }
        }
    }
    let empty = AnyState::identity(state.kind(), state.dtype()).expect("the state exists");
    match state.merge(&empty) {
        Ok(()) => assert_eq!(state.to_bytes(), written, "nothing adds nothing"),
        // It has met some position twice already, and says so for ever.
        Err(Error::Overlap { .. }) => {}
        Err(other) => panic!("nothing can be merged with anything: {other}"),
    }
    let _ = state.merge(&again);
    let _ = state.to_bytes();
}
