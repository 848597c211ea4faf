//! The bytes of one allocation, and which of them have been written.
//!
//! In plain mode several threads run blocks that read and write one global
//! memory. A kernel with a race must not become a race of the interpreter, so
//! the bytes are relaxed atomics: 32-bit words, since nearly every access of a
//! kernel is a whole number of them, and on every CPU in use a relaxed word
//! costs what a plain one does. Stores of one or two bytes replace their part of the
//! word by compare-and-swap, so that neighbouring bytes stored by another
//! thread are never lost. Accesses of 8 bytes are two words: a race may tear
//! them, which PTX allows for weak accesses; strong ones run on one thread.

use super::MemoryError;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// What memory holds before anything is written: NaN as a float, -1 as an
/// integer, so that a sum over it is visibly wrong.
const UNWRITTEN: u32 = 0xffff_ffff;

/// One allocation's bytes.
#[derive(Debug)]
pub struct Bytes {
    words: Box<[AtomicU32]>,
    len: usize,
    written: Option<Bitmap>,
}

impl Bytes {
    /// Unwritten bytes; with `track`, which of them are written is remembered.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Host`] if this machine's memory does not suffice.
    pub fn new(len: usize, track: bool) -> Result<Bytes, MemoryError> {
        let words = zeroes_like(len.div_ceil(4), || AtomicU32::new(UNWRITTEN), len)?;
        let written = if track { Some(Bitmap::new(len)?) } else { None };
        Ok(Bytes { words, len, written })
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads 1, 2, 4 or 8 bytes at a multiple of as many, zero-extended.
    ///
    /// # Panics
    ///
    /// If the bytes lie outside; the callers have checked.
    #[inline]
    #[must_use]
    pub fn load(&self, offset: usize, size: u32) -> u64 {
        let word = u64::from(self.words[offset / 4].load(Relaxed));
        match size {
            4 => word,
            8 => word | u64::from(self.words[offset / 4 + 1].load(Relaxed)) << 32,
            _ => (word >> (offset % 4 * 8)) & ((1 << (size * 8)) - 1),
        }
    }

    /// Writes the low 1, 2, 4 or 8 bytes of `bits` at a multiple of as many.
    ///
    /// # Panics
    ///
    /// If the bytes lie outside; the callers have checked.
    #[inline]
    pub fn store(&self, offset: usize, size: u32, bits: u64) {
        let word = &self.words[offset / 4];
        match size {
            4 => word.store(bits as u32, Relaxed),
            8 => {
                word.store(bits as u32, Relaxed);
                self.words[offset / 4 + 1].store((bits >> 32) as u32, Relaxed);
            }
            _ => replace_part(word, offset % 4, size, bits as u32),
        }
        if let Some(written) = &self.written {
            written.set(offset, size as usize);
        }
    }

    /// The first of up to 32 naturally aligned bytes that were never written.
    #[inline]
    #[must_use]
    pub fn first_unwritten(&self, offset: usize, size: u32) -> Option<usize> {
        self.written.as_ref().and_then(|written| written.first_clear(offset, size as usize))
    }

    /// Whether all of these bytes were written, as far as it is remembered.
    #[inline]
    #[must_use]
    pub fn all_written(&self, offset: usize, len: usize) -> bool {
        self.written.as_ref().is_none_or(|written| written.all_set(offset, len))
    }

    /// Whether it is remembered which bytes are written.
    #[must_use]
    pub fn is_tracked(&self) -> bool {
        self.written.is_some()
    }

    /// Takes up to 32 naturally aligned bytes as never written, those whose bit in `bytes` is set: they hold an undefined value.
    pub fn set_undefined(&self, offset: usize, size: u32, bytes: u32) {
        if let Some(written) = &self.written {
            written.unset(offset, size as usize, bytes);
        }
    }

    /// Copies bytes out, written or not.
    ///
    /// # Panics
    ///
    /// If the range lies outside; the callers have checked.
    pub fn read(&self, offset: usize, out: &mut [u8]) {
        assert!(offset + out.len() <= self.len, "a read of bytes {offset}.. leaves {}", self.len);
        for (i, byte) in out.iter_mut().enumerate() {
            let at = offset + i;
            *byte = self.words[at / 4].load(Relaxed).to_le_bytes()[at % 4];
        }
    }

    /// Copies bytes in; they count as written.
    ///
    /// # Panics
    ///
    /// If the range lies outside; the callers have checked.
    pub fn write(&mut self, offset: usize, from: &[u8]) {
        assert!(offset + from.len() <= self.len, "a write of bytes {offset}.. leaves {}", self.len);
        // The ragged head, whole words, the ragged tail.
        let head = offset.next_multiple_of(4).min(offset + from.len()) - offset;
        self.write_bytes(offset, &from[..head]);
        let (words, tail) = from[head..].as_chunks::<4>();
        let first = (offset + head) / 4;
        if !words.is_empty() {
            for (word, &bytes) in self.words[first..].iter_mut().zip(words) {
                *word.get_mut() = u32::from_le_bytes(bytes);
            }
        }
        self.write_bytes(offset + from.len() - tail.len(), tail);
        self.set_written(offset, from.len());
    }

    fn write_bytes(&mut self, offset: usize, from: &[u8]) {
        for (i, &byte) in from.iter().enumerate() {
            let at = offset + i;
            let word = self.words[at / 4].get_mut();
            let mut bytes = word.to_le_bytes();
            bytes[at % 4] = byte;
            *word = u32::from_le_bytes(bytes);
        }
    }

    /// Fills a range with one byte.
    ///
    /// # Panics
    ///
    /// If the range lies outside; the callers have checked.
    pub fn fill(&mut self, offset: usize, len: usize, byte: u8) {
        let piece = [byte; 4096];
        for at in (0..len).step_by(piece.len()) {
            self.write(offset + at, &piece[..piece.len().min(len - at)]);
        }
    }

    /// Takes a range as written, whatever it holds.
    pub fn set_written(&mut self, offset: usize, len: usize) {
        if let Some(written) = &mut self.written {
            written.set_range(offset, len);
        }
    }

    /// Forgets the contents, as when a new block gets the memory.
    pub fn reset(&mut self) {
        for word in &mut self.words {
            *word.get_mut() = UNWRITTEN;
        }
        if let Some(written) = &mut self.written {
            written.clear();
        }
    }
}

/// Puts the low `size` bytes of `bits` into a word at byte `at`.
fn replace_part(word: &AtomicU32, at: usize, size: u32, bits: u32) {
    let shift = at * 8;
    let mask = ((1_u32 << (size * 8)) - 1) << shift;
    let part = (bits << shift) & mask;
    let mut old = word.load(Relaxed);
    while let Err(now) = word.compare_exchange_weak(old, old & !mask | part, Relaxed, Relaxed) {
        old = now;
    }
}

/// A boxed slice made without aborting when memory runs out.
fn zeroes_like<T>(
    n: usize,
    make: impl FnMut() -> T,
    asked: usize,
) -> Result<Box<[T]>, MemoryError> {
    let mut items = Vec::new();
    items.try_reserve_exact(n).map_err(|_| MemoryError::Host { asked: asked as u64 })?;
    items.resize_with(n, make);
    Ok(items.into_boxed_slice())
}

/// One bit a byte.
#[derive(Debug)]
struct Bitmap {
    words: Box<[AtomicU64]>,
}

impl Bitmap {
    fn new(bits: usize) -> Result<Bitmap, MemoryError> {
        Ok(Bitmap { words: zeroes_like(bits.div_ceil(64), || AtomicU64::new(0), bits)? })
    }

    /// The word of up to 32 naturally aligned bits, and their mask: they never straddle two words.
    #[inline]
    fn part(&self, at: usize, n: usize) -> (&AtomicU64, u64) {
        assert!(n <= 32 && at % 64 + n <= 64, "{n} bits at {at}");
        (&self.words[at / 64], ((1 << n) - 1) << (at % 64))
    }

    #[inline]
    fn set(&self, at: usize, n: usize) {
        let (word, mask) = self.part(at, n);
        // Bits are only ever set while a kernel runs, and most stores meet set ones.
        if word.load(Relaxed) & mask != mask {
            word.fetch_or(mask, Relaxed);
        }
    }

    #[cold]
    fn unset(&self, at: usize, n: usize, which: u32) {
        let (word, mask) = self.part(at, n);
        word.fetch_and(!(mask & (u64::from(which) << (at % 64))), Relaxed);
    }

    #[inline]
    fn first_clear(&self, at: usize, n: usize) -> Option<usize> {
        let (word, mask) = self.part(at, n);
        let clear = !word.load(Relaxed) & mask;
        (clear != 0).then(|| at / 64 * 64 + clear.trailing_zeros() as usize)
    }

    #[inline]
    fn all_set(&self, at: usize, n: usize) -> bool {
        let end = at + n;
        let mut words = if n == 0 { 0..0 } else { at / 64..end.div_ceil(64) };
        words.all(|index| {
            let first = at.saturating_sub(index * 64);
            let last = (end - index * 64).min(64);
            let mask = u64::MAX >> (64 - (last - first)) << first;
            self.words[index].load(Relaxed) & mask == mask
        })
    }

    fn set_range(&mut self, at: usize, n: usize) {
        let end = at + n;
        for index in at / 64..end.div_ceil(64) {
            let first = at.saturating_sub(index * 64);
            let last = (end - index * 64).min(64);
            if last > first {
                *self.words[index].get_mut() |= (u64::MAX >> (64 - (last - first))) << first;
            }
        }
    }

    fn clear(&mut self) {
        for word in &mut self.words {
            *word.get_mut() = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Store(usize, u32, u64),
        Write(usize, Vec<u8>),
        Fill(usize, usize, u8),
    }

    const LEN: usize = 150;

    fn aligned() -> impl Strategy<Value = (usize, u32)> {
        prop_oneof![Just(1_u32), Just(2), Just(4), Just(8)]
            .prop_flat_map(|size| (0..LEN / size as usize, Just(size)))
            .prop_map(|(i, size)| (i * size as usize, size))
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (aligned(), any::<u64>()).prop_map(|((at, size), bits)| Step::Store(at, size, bits)),
            (0..LEN, prop::collection::vec(any::<u8>(), 0..70)).prop_map(|(at, mut bytes)| {
                bytes.truncate(LEN - at);
                Step::Write(at, bytes)
            }),
            (0..LEN, 0..LEN, any::<u8>()).prop_map(|(at, n, b)| Step::Fill(at, n.min(LEN - at), b)),
        ]
    }

    proptest! {
        #[test]
        fn bytes_are_an_array_of_optional_bytes(steps in prop::collection::vec(step(), 0..40), loads in prop::collection::vec(aligned(), 20)) {
            let mut bytes = Bytes::new(LEN, true).unwrap();
            let mut oracle = [None::<u8>; LEN];
            for step in steps {
                let (at, data) = match step {
                    Step::Store(at, size, bits) => {
                        bytes.store(at, size, bits);
                        (at, bits.to_le_bytes()[..size as usize].to_vec())
                    }
                    Step::Write(at, data) => {
                        bytes.write(at, &data);
                        (at, data)
                    }
                    Step::Fill(at, n, byte) => {
                        bytes.fill(at, n, byte);
                        (at, vec![byte; n])
                    }
                };
                for (slot, byte) in oracle[at..].iter_mut().zip(data) {
                    *slot = Some(byte);
                }
            }
            let mut all = [0; LEN];
            bytes.read(0, &mut all);
            prop_assert_eq!(all, oracle.map(|b| b.unwrap_or(0xff)));
            for (at, size) in loads {
                let mut raw = [0; 8];
                raw[..size as usize].copy_from_slice(&all[at..at + size as usize]);
                prop_assert_eq!(bytes.load(at, size), u64::from_le_bytes(raw));
                let first = (at..at + size as usize).find(|&i| oracle[i].is_none());
                let some = (at * 7 % LEN, LEN - at * 7 % LEN);
                for (at, n) in [(at, size as usize), (some.0, some.1), (some.0, some.1.min(70))] {
                    let all = oracle[at..at + n].iter().all(Option::is_some);
                    prop_assert_eq!(bytes.all_written(at, n), all);
                }
                prop_assert_eq!(bytes.first_unwritten(at, size), first);
            }
        }
    }

    #[test]
    fn neighbouring_bytes_stored_by_two_threads_are_both_kept() {
        let bytes = Bytes::new(4, true).unwrap();
        std::thread::scope(|scope| {
            for at in 0..4 {
                let bytes = &bytes;
                scope.spawn(move || (0..=255).for_each(|b| bytes.store(at, 1, b)));
            }
        });
        assert_eq!((bytes.load(0, 4), bytes.first_unwritten(0, 4)), (0xffff_ffff, None));
    }

    #[test]
    fn what_a_new_block_gets_is_unwritten() {
        let mut bytes = Bytes::new(64, true).unwrap();
        bytes.fill(0, 64, 0);
        bytes.reset();
        assert_eq!((bytes.load(8, 8), bytes.first_unwritten(8, 16)), (u64::MAX, Some(8)));
    }

    #[test]
    fn more_than_the_machine_has_is_an_error() {
        let error = Bytes::new(1 << 60, false).unwrap_err();
        assert_eq!(error, MemoryError::Host { asked: 1 << 60 });
    }
}
