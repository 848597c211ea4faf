//! The byte form of a partial result: a header and states.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpfold::{NanPolicy, Partial, Rules};

fuzz_target!(|bytes: &[u8]| {
    exercise(bytes);
    let mut repaired = bytes.to_vec();
    if repair(&mut repaired).is_some() {
        exercise(&repaired);
    }
});

fn exercise(bytes: &[u8]) {
    let Ok(mut partial) = Partial::from_bytes(bytes) else { return };
    let written = partial.to_bytes();
    let again = Partial::from_bytes(&written).expect("what was written can be read");
    assert_eq!(again.to_bytes(), written, "the byte form is canonical");
    for nan in [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error] {
        let rules = Rules::new().nan(nan);
        let _ = partial.finish(&rules);
        for op in again.ops() {
            let _ = partial.finish_op(op, &rules);
        }
    }
    let _ = partial.merge(&again);
    let _ = partial.to_bytes();
}

/// Puts the right checksums behind the header and behind each state, which
/// would stop most of what a fuzzer tries; `None` where the bytes end.
fn repair(bytes: &mut [u8]) -> Option<()> {
    let ops = bytes.get(13..16)?.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
    let ndim_at = 16 + 2 * ops + 8;
    let ndim = usize::from(*bytes.get(ndim_at)?);
    let mut at = ndim_at + 8 + 8 * ndim + 16;
    let checksum = crc32fast::hash(bytes.get(..at)?);
    bytes.get_mut(at..at + 4)?.copy_from_slice(&checksum.to_le_bytes());
    at += 4;
    while at < bytes.len() {
        let len = u64::from_le_bytes(bytes.get(at + 8..at + 16)?.try_into().ok()?);
        let end = at.checked_add(usize::try_from(len).ok()?)?.checked_add(16)?;
        let checksum = u64::from(crc32fast::hash(bytes.get(at..end)?));
        bytes.get_mut(end..end.checked_add(8)?)?.copy_from_slice(&checksum.to_le_bytes());
        at = end + 8;
    }
    Some(())
}
