//! Pinned host memory: a device copies from and to it while the host does other work.

use crate::Result;
use crate::device::Device;
use core::ptr::NonNull;
use std::sync::Arc;

/// Pinned memory of a device, freed when dropped.
pub(crate) struct Pinned {
    device: Arc<dyn Device>,
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is this value's own, as a `Vec`'s is.
unsafe impl Send for Pinned {}
// SAFETY: shared, it gives bytes out to those alone who vouch that nobody writes
// them meanwhile.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// `len` bytes, all zero.
    pub(crate) fn new(device: &Arc<dyn Device>, len: usize) -> Result<Pinned> {
        let at = device.allocate_pinned(len)?;
        Ok(Pinned { device: Arc::clone(device), at, len })
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes.
    ///
    /// # Safety
    /// While they are borrowed the device does not write to them: no copy or launch
    /// that writes to them is running or is started.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: allocated in `new` with as many bytes, and initialised; that they
        // do not change is the caller's promise.
        unsafe { core::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// The bytes.
    ///
    /// # Safety
    /// While they are borrowed the device neither reads nor writes them.
    pub(crate) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` ensures that nothing else on the host reads it.
        unsafe { core::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }

    /// Their address for the device.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.at
    }

    /// Their address for copies.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`; a caller that starts copies waits for them before
        // the memory goes. Errors cannot be reported here.
        let _ = unsafe { self.device.free_pinned(self.at, self.len) };
    }
}
