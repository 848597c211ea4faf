//! Memory of a device, found again by its addresses.

use crate::lab::STREAM;
use std::sync::{Mutex, MutexGuard, PoisonError};
use warpfold_cuda::{Address, Buffer, Device, Error, Result};

/// Buffers that are freed together, when the stream is done with them.
pub(crate) struct Buffers<'a> {
    pub(crate) device: &'a dyn Device,
    all: Mutex<Vec<Buffer<'a>>>,
}

impl<'a> Buffers<'a> {
    pub(crate) fn new(device: &'a dyn Device) -> Buffers<'a> {
        Buffers { device, all: Mutex::default() }
    }

    /// Uninitialised memory.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<Address> {
        let buffer = Buffer::new(self.device, bytes)?;
        let address = buffer.address();
        self.all().push(buffer);
        Ok(address)
    }

    /// Copies to memory of these buffers.
    pub(crate) fn copy_in(&self, to: Address, from: &[u8]) -> Result<()> {
        self.at(to, |buffer, at| buffer.copy_in(STREAM, at, from))
    }

    /// Copies from memory of these buffers.
    pub(crate) fn copy_out(&self, from: Address, to: &mut [u8]) -> Result<()> {
        self.at(from, |buffer, at| buffer.copy_out(STREAM, at, to))
    }

    /// Sets memory of these buffers to zero.
    pub(crate) fn clear(&self, to: Address, bytes: u64) -> Result<()> {
        self.at(to, |buffer, at| buffer.fill(STREAM, at..at.saturating_add(bytes), 0))
    }

    /// Calls a function with the buffer that contains an address, and the offset of the
    /// address in it.
    fn at<T>(
        &self,
        address: Address,
        work: impl FnOnce(&Buffer<'a>, u64) -> Result<T>,
    ) -> Result<T> {
        let all = self.all();
        let mut places = all.iter().filter_map(|buffer| {
            let at = address.checked_sub(buffer.address())?;
            (at <= buffer.len()).then_some((buffer, at))
        });
        // An address at a buffer's end is the next one's, if they touch.
        match places.by_ref().min_by_key(|&(_, at)| at) {
            Some((buffer, at)) => work(buffer, at),
            None => Err(Error::ForeignHandle { what: "the address" }),
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Buffer<'a>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Buffers<'_> {
    fn drop(&mut self) {
        // Launches may still use them. Errors cannot be reported here.
        let _ = self.device.wait(STREAM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_cuda::Sim;

    #[test]
    fn only_its_own_memory_is_touched() {
        let sim = Sim::checking();
        let buffers = Buffers::new(&sim);
        let (a, b) = (buffers.allocate(256).unwrap(), buffers.allocate(256).unwrap());
        for (place, byte) in [(a, 1), (b, 2)] {
            buffers.copy_in(place, &[byte; 256]).unwrap();
        }
        let of_others = sim.allocate(256).unwrap();
        for address in [0, of_others, b + 257, u64::MAX] {
            assert!(buffers.copy_in(address, &[9]).is_err(), "{address:#x}");
            assert!(buffers.clear(address, 1).is_err(), "{address:#x}");
        }
        assert!(buffers.copy_in(b + 255, &[9, 9]).is_err());
        assert!(buffers.clear(b + 255, u64::MAX).is_err());
        let mut found = [0; 256];
        for (place, byte) in [(a, 1), (b, 2)] {
            buffers.copy_out(place, &mut found).unwrap();
            assert_eq!(found, [byte; 256]);
        }
        buffers.clear(b + 255, 1).unwrap();
        buffers.copy_out(b, &mut found).unwrap();
        assert_eq!(found[254..], [2, 0]);
    }
}
