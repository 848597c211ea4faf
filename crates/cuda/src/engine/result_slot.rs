//! A place in host memory where a kernel leaves a payload, for the host to watch:
//! seen some microseconds earlier than by a copy and a wait.
//!
//! Before a launch the slot is filled with a word that stands for nothing yet.
//! A kernel writes whole words, each once, and the bus delivers words whole: the
//! payload is there when that word is nowhere left. A payload that happens to hold
//! it is found by waiting for the stream.

use crate::Result;
use crate::device::{Address, Device};
use crate::pinned::Pinned;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Stands for a word that was not written: no limb, count or key of ordinary data.
const NOTHING: u64 = 0x8f3a_5c96_e1d2_47b5;

/// How long to watch before waiting: longer than any small reduction takes.
const PATIENCE: Duration = Duration::from_micros(200);

/// Host memory that the device writes to.
pub(super) struct ResultSlot {
    memory: Pinned,
    address: Address,
}

impl ResultSlot {
    /// A slot for so many bytes, a multiple of 8; `None` if the device does not
    /// write to host memory.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(device: &Arc<dyn Device>, bytes: usize) -> Result<Option<ResultSlot>> {
        let memory = Pinned::new(device, bytes)?;
        let address = device.address_of_pinned(memory.start());
        Ok(address.map(|address| ResultSlot { memory, address }))
    }

    /// Whether there is room for so many bytes.
    pub(super) fn holds(&self, bytes: usize) -> bool {
        bytes <= self.memory.len()
    }

    /// Where the device finds it.
    pub(super) fn address(&self) -> Address {
        self.address
    }

    fn words(&self, bytes: usize) -> impl Iterator<Item = &AtomicU64> {
        let start = self.memory.as_ptr().cast::<u64>();
        let count = bytes.min(self.memory.len()) / 8;
        (0..count).map(move |i| {
            // SAFETY: within the memory, which is aligned and lives as long as
            // `self`. Host and device touch it by words alone, the host by atomic
            // accesses: nobody makes a slice of it.
            unsafe { AtomicU64::from_ptr(start.add(i)) }
        })
    }

    /// Makes it ready for a payload of so many bytes.
    pub(super) fn empty(&mut self, bytes: usize) {
        self.words(bytes).for_each(|word| word.store(NOTHING, Ordering::Relaxed));
        fence(Ordering::Release);
    }

    /// Watches until the payload is there; says whether it was seen.
    pub(super) fn watch(&self, bytes: usize) -> bool {
        let mut begin = None;
        for word in self.words(bytes) {
            while word.load(Ordering::Relaxed) == NOTHING {
                core::hint::spin_loop();
                if begin.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                    return false;
                }
            }
        }
        fence(Ordering::Acquire);
        true
    }

    /// Sets the first word, before a launch.
    pub(super) fn set(&mut self, value: u64) {
        self.words(8).for_each(|word| word.store(value, Ordering::Relaxed));
        fence(Ordering::Release);
    }

    /// The first word, once the stream was waited for.
    pub(super) fn get(&self) -> u64 {
        fence(Ordering::Acquire);
        self.words(8).map(|word| word.load(Ordering::Relaxed)).sum()
    }

    /// The payload.
    pub(super) fn payload(&self, bytes: usize) -> Vec<u8> {
        self.words(bytes).flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sim;
    use warpfold_ptx::machine::Options;

    fn slot(words: usize) -> ResultSlot {
        let device: Arc<dyn Device> = Arc::new(Sim::new(Options::default()));
        ResultSlot { memory: Pinned::new(&device, 8 * words).unwrap(), address: 0 }
    }

    #[test]
    fn a_payload_is_seen_when_every_word_is_there() {
        let mut slot = slot(3);
        slot.empty(24);
        assert!(!slot.watch(24));
        for (i, word) in slot.words(24).enumerate() {
            assert!(!slot.watch(24), "{i} of three");
            word.store(i as u64, Ordering::Relaxed);
        }
        assert!(slot.watch(24));
        let expected: Vec<u8> = [0u64, 1, 2].into_iter().flat_map(u64::to_ne_bytes).collect();
        assert_eq!(slot.payload(24), expected);
    }

    #[test]
    fn the_first_word_is_set_and_read_by_itself() {
        let mut slot = slot(2);
        slot.empty(16);
        slot.set(0);
        assert_eq!(slot.get(), 0);
        slot.words(8).for_each(|word| word.store(1, Ordering::Relaxed));
        assert_eq!(slot.get(), 1);
    }

    #[test]
    fn words_behind_the_payload_are_of_no_matter() {
        let mut slot = slot(2);
        slot.empty(16);
        slot.words(8).for_each(|word| word.store(5, Ordering::Relaxed));
        assert!(slot.watch(8) && !slot.watch(16));
    }

    #[test]
    fn it_may_be_written_while_it_is_watched() {
        let mut slot = slot(64);
        slot.empty(512);
        let slot = &slot;
        std::thread::scope(|scope| {
            scope.spawn(|| slot.words(512).for_each(|word| word.store(7, Ordering::Relaxed)));
            while !slot.watch(512) {}
        });
        assert_eq!(slot.payload(512), 7u64.to_ne_bytes().repeat(64));
    }
}
