//! The engine's kernels.

use crate::archive::Archive;

static KERNELS: Archive = Archive::new(include_bytes!("../../kernels/kernels.archive"));

/// The PTX of a module for a device, if there is such a module and the device
/// is new enough.
pub(super) fn module(name: &str, capability: (u32, u32)) -> Option<String> {
    KERNELS.module(name, capability)
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
        assert!(KERNELS.names().count() > 0);
        for name in KERNELS.names() {
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
