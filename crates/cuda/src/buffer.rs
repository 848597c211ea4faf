//! Owned memory of a device.

use crate::device::{Address, Device, Stream};
use crate::{Error, Result};
use core::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory of a device that is freed when dropped. It knows its bounds, so copies and
/// fills within it are safe.
///
/// The caller of [`Device::launch`] promises what a launch does with the
/// [`address`](Self::address), and that the launch is done before the buffer is
/// dropped.
///
/// ```
/// use warpfold_cuda::{Buffer, Device, Sim, Stream};
///
/// let device = Sim::checking();
/// let buffer = Buffer::new(&device as &dyn Device, 8)?;
/// buffer.fill(Stream::DEFAULT, 0..8, 7)?;
/// buffer.copy_in(Stream::DEFAULT, 2, &[1, 2, 3])?;
/// let mut bytes = [0; 4];
/// buffer.copy_out(Stream::DEFAULT, 1, &mut bytes)?;
/// assert_eq!(bytes, [7, 1, 2, 3]);
/// assert!(buffer.copy_in(Stream::DEFAULT, 6, &[1, 2, 3]).is_err());
/// # Ok::<(), warpfold_cuda::Error>(())
/// ```
pub struct Buffer<'a> {
    device: Owner<'a>,
    address: Address,
    bytes: u64,
    /// The stream of a fill that may not be done yet.
    filling: Mutex<Option<Stream>>,
    /// Whether it must still be freed.
    held: bool,
}

/// The device of a [`Buffer`].
pub enum Owner<'a> {
    /// Borrowed.
    Borrowed(&'a dyn Device),
    /// Shared.
    Shared(Arc<dyn Device>),
}

impl<'a> From<&'a dyn Device> for Owner<'a> {
    fn from(device: &'a dyn Device) -> Owner<'a> {
        Owner::Borrowed(device)
    }
}

impl From<&Arc<dyn Device>> for Owner<'static> {
    fn from(device: &Arc<dyn Device>) -> Owner<'static> {
        Owner::Shared(Arc::clone(device))
    }
}

impl<'a> Deref for Owner<'a> {
    type Target = dyn Device + 'a;

    fn deref(&self) -> &(dyn Device + 'a) {
        match self {
            Owner::Borrowed(device) => *device,
            Owner::Shared(device) => &**device,
        }
    }
}

impl<'a> Buffer<'a> {
    /// `bytes` bytes, uninitialised.
    ///
    /// # Errors
    /// Those of [`Device::allocate`].
    pub fn new(device: impl Into<Owner<'a>>, bytes: u64) -> Result<Buffer<'a>> {
        let device = device.into();
        let address = device.allocate(bytes)?;
        Ok(Buffer { device, address, bytes, filling: Mutex::default(), held: true })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies to the buffer, from byte `at` on.
    ///
    /// # Errors
    /// [`Error::Bounds`]; those of [`Device::copy_in`].
    pub fn copy_in(&self, stream: Stream, at: u64, from: &[u8]) -> Result<()> {
        let to = self.within(at, from.len() as u64)?;
        // SAFETY: the bytes are this value's own.
        unsafe { self.device.copy_in(stream, to, from) }
    }

    /// Copies from the buffer, from byte `at` on.
    ///
    /// # Errors
    /// [`Error::Bounds`]; those of [`Device::copy_out`].
    pub fn copy_out(&self, stream: Stream, at: u64, to: &mut [u8]) -> Result<()> {
        let from = self.within(at, to.len() as u64)?;
        // SAFETY: the bytes are this value's own.
        unsafe { self.device.copy_out(stream, from, to) }
    }

    /// Sets some of its bytes to a value.
    ///
    /// # Errors
    /// [`Error::Bounds`]; those of [`Device::fill`].
    pub fn fill(&self, stream: Stream, range: core::ops::Range<u64>, value: u8) -> Result<()> {
        let bytes = range.end.saturating_sub(range.start);
        let to = self.within(range.start, bytes)?;
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = filling.filter(|&other| other != stream) {
            self.device.wait(other)?;
        }
        *filling = Some(stream);
        // SAFETY: the bytes are this value's own, and it waits for the stream before
        // it gives them back.
        unsafe { self.device.fill(stream, to, value, bytes) }
    }

    /// Frees it, and returns the error that a drop cannot.
    ///
    /// # Errors
    /// Those of [`Device::free`].
    pub fn free(mut self) -> Result<()> {
        self.give_back()
    }

    /// Frees it, if it was not freed before.
    fn give_back(&mut self) -> Result<()> {
        if !core::mem::take(&mut self.held) {
            return Ok(());
        }
        let filling = self.filling.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = filling.take() {
            // Where this fails, the device is lost, and so is its work.
            let _ = self.device.wait(stream);
        }
        // SAFETY: allocated in `new`; copies and fills are done, and its address is not
        // used any more except by launches, whose callers have promised that they are
        // done.
        unsafe { self.device.free(self.address) }
    }

    /// The address of a range of bytes that is within the buffer.
    fn within(&self, at: u64, bytes: u64) -> Result<Address> {
        match at.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.address + at),
            _ => Err(Error::Bounds { at, bytes, len: self.bytes }),
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sim;

    #[test]
    fn nothing_is_done_beyond_its_ends() {
        let device = Sim::checking();
        let owner: &dyn Device = &device;
        let buffer = Buffer::new(owner, 16).unwrap();
        // What a neighbour would be.
        let other = Buffer::new(owner, 4096).unwrap();
        other.fill(Stream::DEFAULT, 0..4096, 9).unwrap();
        buffer.fill(Stream::DEFAULT, 0..16, 1).unwrap();
        let far = other.address().wrapping_sub(buffer.address());
        for at in [1, 15, 16, 17, 4096, far, u64::MAX, u64::MAX - 15] {
            let refused = buffer.copy_in(Stream::DEFAULT, at, &[0; 16]).unwrap_err();
            assert_eq!(refused, Error::Bounds { at, bytes: 16, len: 16 });
            assert!(buffer.copy_out(Stream::DEFAULT, at, &mut [0; 16]).is_err(), "{at}");
            assert!(
                buffer.fill(Stream::DEFAULT, at..at.saturating_add(16), 0).is_err()
                    || at == u64::MAX
            );
        }
        let mut bytes = [0; 16];
        buffer.copy_out(Stream::DEFAULT, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [1; 16]);
        buffer.copy_out(Stream::DEFAULT, 16, &mut []).unwrap();
    }

    #[test]
    fn it_is_given_back_once() {
        let device: Arc<dyn Device> = Arc::new(Sim::checking());
        let buffer = Buffer::new(&device, 64).unwrap();
        let address = buffer.address();
        buffer.free().unwrap();
        assert_eq!(Arc::strong_count(&device), 1);
        assert!(device.why_unreadable(address, 64).is_some());
        drop(Buffer::new(&device, 64).unwrap());
        assert_eq!(Arc::strong_count(&device), 1);
    }
}
