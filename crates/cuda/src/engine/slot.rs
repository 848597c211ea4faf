//! What a run needs on its way through a device: memory on both sides, and a
//! stream on which its copies and launches follow one another.
//!
//! Each slot has a stream of its own, so that one slot's copies run while
//! another's kernels do. Slots are kept for the next who needs one: pinned memory
//! is slow to get.

use super::Engine;
use crate::Result;
use crate::buffer::Buffer;
use crate::device::{Address, Device, Stream};
use crate::pinned::Pinned;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The least room of a slot, in bytes. All rooms are such a power of two.
pub(super) const LEAST: usize = 64 << 10;

/// The least room for payloads, and the most of anything.
const LEAST_PAYLOADS: usize = 4 << 10;
const MOST: usize = if usize::BITS > 40 { 1 << 40 } else { 1 << 30 };

/// Memory and a stream.
pub(super) struct Slot {
    pub(super) stream: Stream,
    /// Where the host puts elements that are not in pinned memory.
    pub(super) staging: Pinned,
    /// The device's room for elements, and behind it that for payloads.
    memory: Buffer<'static>,
    /// Where payloads are copied to.
    pub(super) payloads: Pinned,
}

impl Slot {
    /// A slot with room for so many bytes of elements and of payloads.
    fn new(device: &Arc<dyn Device>, stream: Stream, room: usize, payloads: usize) -> Result<Slot> {
        let memory_bytes = (room + payloads) as u64;
        let staging = Pinned::new(device, room)?;
        let payloads = Pinned::new(device, payloads)?;
        let memory = Buffer::new(device, memory_bytes)?;
        Ok(Slot { stream, staging, memory, payloads })
    }

    /// The bytes of elements that it has room for.
    pub(super) fn room(&self) -> usize {
        self.staging.len()
    }

    /// Where the elements lie in the device's memory.
    pub(super) fn memory_at(&self) -> Address {
        self.memory.address()
    }

    /// Where the payloads lie in the device's memory.
    pub(super) fn payloads_at(&self) -> Address {
        self.memory_at() + self.room() as u64
    }
}

/// Slots that nobody uses at present, and the streams of those that are gone:
/// a stream stays for good, as does the scratch memory that launches on it use.
#[derive(Default)]
pub(super) struct Pool(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    slots: Vec<Slot>,
    streams: Vec<Stream>,
}

impl Pool {
    /// A slot for `room` bytes of elements, or for less where memory is short.
    ///
    /// # Errors
    /// No memory even for the smallest; what else the device says.
    pub(super) fn take(&self, engine: &Engine, room: usize, payloads: usize) -> Result<Slot> {
        let room = room.clamp(LEAST, MOST).next_power_of_two();
        let payloads = payloads.clamp(LEAST_PAYLOADS, MOST).next_power_of_two();
        let fits = |s: &Slot| s.room() == room && s.payloads.len() == payloads;
        let stream = {
            let mut idle = self.idle();
            if let Some(place) = idle.slots.iter().position(fits) {
                return Ok(idle.slots.swap_remove(place));
            }
            idle.streams.pop()
        };
        let stream = stream.map_or_else(|| engine.device.stream(), Ok)?;
        self.make(engine, stream, room, payloads).inspect_err(|_| {
            self.idle().streams.push(stream);
        })
    }

    /// Makes a slot, with memory that others leave idle if there is no other.
    fn make(
        &self,
        engine: &Engine,
        stream: Stream,
        mut room: usize,
        payloads: usize,
    ) -> Result<Slot> {
        loop {
            // A slot is of no use without scratch memory for its launches.
            let made = engine
                .scratch(stream)
                .and_then(|_| Slot::new(&engine.device, stream, room, payloads));
            match made {
                Err(error) if error.is_out_of_memory() && self.clear() => {}
                Err(error) if error.is_out_of_memory() && room > LEAST => room /= 2,
                made => return made,
            }
        }
    }

    /// Takes a slot back, of whose work nothing is under way.
    pub(super) fn give(&self, slot: Slot) {
        self.idle().slots.push(slot);
    }

    /// Gives the memory of idle slots back; says whether there were any.
    fn clear(&self) -> bool {
        let mut idle = self.idle();
        let slots = core::mem::take(&mut idle.slots);
        idle.streams.extend(slots.iter().map(|s| s.stream));
        !slots.is_empty()
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
