//! Host memory that a device copies from and to by itself.

use crate::Result;
use crate::device::Device;
use core::ptr::NonNull;
use std::sync::Arc;

/// Pinned memory of a device, given back when dropped.
pub(crate) struct Pinned {
    device: Arc<dyn Device>,
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is this value's own, as a `Vec`'s is.
unsafe impl Send for Pinned {}
// SAFETY: shared, it is only read.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// `len` bytes, all zero.
    pub(crate) fn new(device: &Arc<dyn Device>, len: usize) -> Result<Pinned> {
        let at = device.allocate_pinned(len)?;
        Ok(Pinned { device: Arc::clone(device), at, len })
    }

    /// The bytes. No copy to them may be under way.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: allocated in `new` with as many bytes, and initialised.
        unsafe { core::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// The bytes. No copy from or to them may be under way.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` says that nobody else looks.
        unsafe { core::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }

    /// Where they are, for the device.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.at
    }

    /// Where they are, for copies.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`; whoever starts copies waits for them
        // before the memory goes. An error has nobody to go to.
        let _ = unsafe { self.device.free_pinned(self.at, self.len) };
    }
}
