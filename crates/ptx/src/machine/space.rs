//! The windows of the generic address space, and where a module's variables lie in it.

use crate::memory::global;

/// Shared memory as generic addresses.
pub(crate) const SHARED: u64 = 0x6_0000_0000_0000;
/// Shared memory of every block that is the system's, as on devices of compute capability 8.0 and later: a kernel's variables lie behind it, aligned
/// to each other, so that no alignment beyond this one is kept.
pub(crate) const SYSTEM_SHARED: u64 = 1024;
/// Local memory as generic addresses.
pub(crate) const LOCAL: u64 = 0x5_0000_0000_0000;
/// Constant memory as generic addresses.
pub(crate) const CONST: u64 = 0x4_0000_0000_0000;
/// The kernel's parameters as generic addresses.
pub(crate) const PARAM: u64 = 0x3_0000_0000_0000;
/// Where the frames' parameters begin among the addresses of parameters: a kernel's arguments lie before them.
pub(crate) const FRAME_PARAM: u64 = 1 << 24;
/// Handles of functions.
pub(crate) const FUNCTION: u64 = 0x2_0000_0000_0000;

/// Addresses of shared memory carry the rank in the cluster, plus one, above this bit; without a rank they mean the executing block's.
pub(crate) const RANK_SHIFT: u32 = 24;

/// The size of a window.
const WINDOW: u64 = 1 << 32;

/// A memory that an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Global,
    Shared,
    Local,
    Const,
    Param,
    /// None at all.
    Nowhere,
}

/// The window of a generic address, and the address in it.
#[inline]
pub(crate) fn window(address: u64) -> (Window, u64) {
    let within = |base: u64| address.wrapping_sub(base) < WINDOW;
    if address >= global::BASE {
        (Window::Global, address)
    } else if within(SHARED) {
        (Window::Shared, address - SHARED)
    } else if within(LOCAL) {
        (Window::Local, address - LOCAL)
    } else if within(CONST) {
        (Window::Const, address - CONST)
    } else if within(PARAM) {
        (Window::Param, address - PARAM)
    } else {
        (Window::Nowhere, address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_do_not_meet() {
        assert_eq!(window(SHARED + 16), (Window::Shared, 16));
        assert_eq!(window(LOCAL), (Window::Local, 0));
        assert_eq!(window(global::BASE + 5), (Window::Global, global::BASE + 5));
        assert_eq!(window(0).0, Window::Nowhere);
        assert_eq!(window(SHARED - 1).0, Window::Nowhere);
    }
}
