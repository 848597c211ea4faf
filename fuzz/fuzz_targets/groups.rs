//! The byte form of groups: keys, and a state for each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpfold::{GroupPartial, NanPolicy, Rules, Threads};

fuzz_target!(|bytes: &[u8]| {
    exercise(bytes);
    // The checksum would stop most of what a fuzzer tries.
    let mut repaired = bytes.to_vec();
    if let Some((body, checksum)) = repaired.split_last_chunk_mut::<4>() {
        *checksum = crc32fast::hash(body).to_le_bytes();
        exercise(&repaired);
    }
});

/// Whatever was read can be finished, written and merged.
fn exercise(bytes: &[u8]) {
    let Ok(mut partial) = GroupPartial::from_bytes(bytes) else { return };
    let written = partial.to_bytes();
    let again = GroupPartial::from_bytes(&written).expect("what was written can be read");
    assert_eq!(again.to_bytes(), written, "the byte form is canonical");
    let order = partial.group_order().expect("there is memory");
    assert_eq!(order.len(), partial.len(), "every group has a place");
    let keys = partial.keys_of(&order).expect("there is memory");
    assert!(keys.iter().all(|column| column.len() == order.len()), "every group has a key");
    for nan in [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error] {
        let rules = Rules::new().nan(nan);
        for column in 0..partial.value_columns().count() {
            let _ = partial.finish_column(column, &rules, Threads::Exactly(1));
        }
    }
    let groups = partial.len();
    if partial.merge(&again).is_ok() {
        assert_eq!(partial.len(), groups, "the same keys are the same groups");
    }
    let _ = partial.to_bytes();
}
