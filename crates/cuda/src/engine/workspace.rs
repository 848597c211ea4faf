//! Device memory that is kept and grows.

use crate::device::{Address, Device, Stream};
use crate::{Error, Result};

/// Memory that one stream uses again and again.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    held: Option<(Address, u64)>,
    /// Whether what it grew out of is kept: a graph that was captured goes on using it.
    keeps: bool,
    outgrown: Vec<Address>,
}

impl Workspace {
    /// Memory that is given back in the end alone, however it grows.
    pub(super) fn keeping() -> Workspace {
        Workspace { keeps: true, ..Workspace::default() }
    }

    /// At least `least` bytes, and `wanted` if the device has them; what is
    /// in them, and how many there are.
    ///
    /// # Errors
    /// There are not `least` bytes; what the device says.
    pub(super) fn reserve(
        &mut self,
        device: &dyn Device,
        stream: Stream,
        wanted: u64,
        least: u64,
    ) -> Result<(Address, u64)> {
        if let Some((address, bytes)) = self.held.filter(|&(_, bytes)| bytes >= wanted) {
            return Ok((address, bytes));
        }
        if self.keeps {
            self.outgrown.extend(self.held.take().map(|(address, _)| address));
        } else if self.held.is_some() {
            // What is given back may still be in use.
            device.wait(stream)?;
            self.give_back(device)?;
        }
        let mut bytes = wanted;
        loop {
            match device.allocate(bytes) {
                Ok(address) => {
                    self.held = Some((address, bytes));
                    return Ok((address, bytes));
                }
                Err(error) if !error.is_out_of_memory() || bytes <= least => return Err(error),
                Err(_) => bytes = (bytes / 2).max(least),
            }
        }
    }

    /// The same, but exactly as many, and all zero when they are new.
    ///
    /// # Errors
    /// What the device says.
    pub(super) fn reserve_zeros(
        &mut self,
        device: &dyn Device,
        stream: Stream,
        bytes: u64,
    ) -> Result<Address> {
        let before = self.held;
        let (address, all) = self.reserve(device, stream, bytes, bytes)?;
        if before != self.held {
            // SAFETY: they were just allocated, and nobody else knows them.
            let filled = unsafe { device.fill(stream, address, 0, all) };
            filled.inspect_err(|_: &Error| {
                // The first error says more than one of giving back.
                let _ = self.give_back(device);
            })?;
        }
        Ok(address)
    }

    /// Frees it if it is larger than this, once the stream is done with it.
    ///
    /// # Errors
    /// What the device says.
    pub(super) fn keep_below(
        &mut self,
        device: &dyn Device,
        stream: Stream,
        most: u64,
    ) -> Result<()> {
        if !self.keeps && self.held.is_some_and(|(_, bytes)| bytes > most) {
            device.wait(stream)?;
            self.give_back(device)?;
        }
        Ok(())
    }

    /// Frees it; whoever uses it must have been waited for.
    ///
    /// # Errors
    /// What the device says.
    pub(super) fn give_back(&mut self, device: &dyn Device) -> Result<()> {
        let held = self.held.take().map(|(address, _)| address);
        let mut freed = Ok(());
        for address in self.outgrown.drain(..).chain(held) {
            // SAFETY: `reserve` allocated it and has not given it back; that nobody uses
            // it any more is the caller's affair.
            freed = freed.and(unsafe { device.free(address) });
        }
        freed
    }
}
