//! The engine's kernels.

use crate::archive::Archive;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of texts that are kept unpacked: several devices of a process load the same kernels.
const KEPT: usize = 16 << 20;

static KERNELS: Archive = Archive::new(include_bytes!("../../kernels/kernels.archive"));

/// The PTX of a module for a device of this compute capability, major and minor,
/// if there is such a module and the device is new enough.
#[must_use]
pub fn module(name: &str, capability: (u32, u32)) -> Option<Arc<str>> {
    type Text = ((u32, u32), String, Arc<str>);
    /// Those asked for last, the last one first.
    static LAST: Mutex<VecDeque<Text>> = Mutex::new(VecDeque::new());
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = |of: &Text| of.0 == capability && of.1 == name;
    let unpack = || Some((capability, name.to_owned(), KERNELS.module(name, capability)?.into()));
    let found = {
        let mut last = last();
        last.iter().position(known).and_then(|at| last.remove(at))
    };
    // Without the lock: others unpack meanwhile.
    let text = found.or_else(unpack)?;
    let ptx = text.2.clone();
    let (mut last, mut bytes) = (last(), 0);
    last.push_front(text);
    last.retain(|text| {
        bytes += text.2.len();
        bytes <= KEPT
    });
    Some(ptx)
}

/// The modules' names, in order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = KERNELS.names().collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// How many modules there are, their bytes, and the bytes they are packed to.
#[must_use]
pub fn size() -> (usize, usize, usize) {
    KERNELS.size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_unpacks_and_holds_the_kernel_it_is_named_after() {
        assert!(!names().is_empty());
        for name in names() {
            for capability in [(7, 5), (9, 0)] {
                let text = KERNELS.module(name, capability).expect("it unpacks");
                assert!(text.contains(&format!(".entry {name}(")), "{name}");
            }
        }
    }

    #[test]
    fn devices_get_the_newest_ptx_they_can_run() {
        let target = |capability| {
            let text = module("sum_f32", capability)?;
            Some(if text.contains(".target sm_90") { 90 } else { 75 })
        };
        assert_eq!(target((7, 0)), None);
        assert_eq!(target((7, 5)), Some(75));
        assert_eq!(target((8, 9)), Some(75));
        assert_eq!(target((9, 0)), Some(90));
        assert_eq!(target((12, 0)), Some(90));
        assert_eq!(module("sum_f80", (9, 0)), None);
    }
}
