//! The engine's kernels.

use crate::archive::Archive;
use std::sync::Arc;

static KERNELS: Archive = Archive::new(include_bytes!("../../kernels/kernels.archive"));

/// The PTX of a module for a device of this compute capability, major and minor,
/// if there is such a module and the device is new enough.
#[must_use]
pub fn module(name: &str, capability: (u32, u32)) -> Option<Arc<str>> {
    KERNELS.module(name, capability)
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
                let text = module(name, capability).expect("it unpacks");
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
