//! Dense numbers for texts.

use super::memory::{OutOfMemory, make_room, zeros};
use super::numbering::{FAR, KEYS_AHEAD, SLOTS_AHEAD, hash};
use warpfold_core::prefetch;

/// Distinct texts, numbered from 0 on in the order in which they came.
///
/// ```
/// use warpfold_cpu::groups::TextNumbering;
///
/// let mut numbering = TextNumbering::new();
/// let numbers = ["north", "", "north"].map(|text| numbering.number(text.as_bytes()));
/// assert_eq!(numbers, [Ok(0), Ok(1), Ok(0)]);
/// assert_eq!(numbering.text(0), b"north");
/// ```
#[derive(Clone, Debug, Default)]
pub struct TextNumbering {
    /// The lower half of the text's hash, and one more than its number, or 0.
    slots: Vec<(u32, u32)>,
    /// Where each text ends.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    /// The number that stands for no text at all.
    missing: Option<u32>,
}

const LEAST: usize = 64;

impl TextNumbering {
    /// No texts.
    #[must_use]
    pub fn new() -> TextNumbering {
        TextNumbering::default()
    }

    /// How many texts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text of a number that was given out.
    ///
    /// # Panics
    /// For other numbers.
    #[must_use]
    pub fn text(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// The texts of numbers that were given out, one after the other, and where each ends.
    ///
    /// # Panics
    /// For other numbers.
    #[must_use]
    pub fn copied(&self, numbers: impl Iterator<Item = u32>) -> (Vec<u8>, Vec<usize>) {
        let texts: Vec<&[u8]> = numbers.map(|number| self.text(number)).collect();
        let mut all = Vec::with_capacity(texts.iter().map(|text| text.len()).sum());
        let mut ends = Vec::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            if let Some(later) = texts.get(row + KEYS_AHEAD) {
                prefetch::near(later.as_ptr());
            }
            all.extend_from_slice(text);
            ends.push(all.len());
        }
        (all, ends)
    }

    /// The number for rows without a text: the next one, the first time.
    ///
    /// # Errors
    /// No memory.
    pub fn missing(&mut self) -> Result<u32, OutOfMemory> {
        if let Some(number) = self.missing {
            return Ok(number);
        }
        make_room(&mut self.ends, 1)?;
        self.ends.push(self.bytes.len());
        Ok(*self.missing.insert(self.ends.len() as u32 - 1))
    }

    /// Whether the number is that of no text.
    #[must_use]
    pub fn is_missing(&self, number: u32) -> bool {
        self.missing == Some(number)
    }

    /// The memory that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.slots.capacity() * 8
            + self.ends.capacity() * size_of::<usize>()
            + self.bytes.capacity()
    }

    /// The number of a text: the next one, if the text is new.
    ///
    /// # Errors
    /// No memory.
    ///
    /// # Panics
    /// At 2^32 - 1 texts, of which callers keep their distance.
    #[inline]
    pub fn number(&mut self, text: &[u8]) -> Result<u32, OutOfMemory> {
        self.number_hashed(text, hash_text(text) as u32)
    }

    /// The numbers of texts, as of [`number`](Self::number) one after the other.
    ///
    /// # Errors
    /// No memory.
    ///
    /// # Panics
    /// As for [`number`](Self::number); if there are not as many numbers as texts.
    pub fn number_all(&mut self, texts: &[&[u8]], numbers: &mut [u32]) -> Result<(), OutOfMemory> {
        assert_eq!(texts.len(), numbers.len());
        let hashes: Vec<u32> = texts.iter().map(|text| hash_text(text) as u32).collect();
        for (row, (&text, number)) in texts.iter().zip(numbers).enumerate() {
            if self.slots.len() >= FAR {
                self.ask_ahead(&hashes[row..]);
            }
            *number = self.number_hashed(text, hashes[row])?;
        }
        Ok(())
    }

    /// Asks for what the next texts need: a slot, where its text is, and the text.
    #[inline(always)]
    fn ask_ahead(&self, hashes: &[u32]) {
        let mask = self.slots.len() - 1;
        let place = |ahead: usize| {
            let (_, next) = self.slots[*hashes.get(ahead)? as usize & mask];
            (next as usize).checked_sub(1)
        };
        if let Some(&later) = hashes.get(SLOTS_AHEAD) {
            prefetch::near(self.slots.as_ptr().wrapping_add(later as usize & mask).cast());
        }
        if let Some(place) = place(KEYS_AHEAD) {
            prefetch::near(self.ends.as_ptr().wrapping_add(place).cast());
        }
        if let Some(place) = place(KEYS_AHEAD / 2) {
            let end = self.ends[place];
            prefetch::near(self.bytes.as_ptr().wrapping_add(end.saturating_sub(1)));
        }
    }

    #[inline(always)]
    fn number_hashed(&mut self, text: &[u8], hash: u32) -> Result<u32, OutOfMemory> {
        if 2 * self.ends.len() >= self.slots.len() {
            self.grow()?;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                (_, 0) => break,
                (other, next) if other == hash && self.text(next - 1) == text => {
                    return Ok(next - 1);
                }
                _ => at = (at + 1) & mask,
            }
        }
        make_room(&mut self.ends, 1)?;
        make_room(&mut self.bytes, text.len())?;
        let number = u32::try_from(self.ends.len()).ok().filter(|&n| n < u32::MAX);
        let number = number.expect("callers stop at fewer groups");
        self.slots[at] = (hash, number + 1);
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        Ok(number)
    }

    /// Adds the texts of another one, none of which is here.
    ///
    /// # Errors
    /// No memory.
    ///
    /// # Panics
    /// If both have a number for no text.
    pub fn append(&mut self, other: &TextNumbering) -> Result<(), OutOfMemory> {
        assert!(self.missing.is_none() || other.missing.is_none());
        make_room(&mut self.ends, other.ends.len())?;
        make_room(&mut self.bytes, other.bytes.len())?;
        let (before, bytes) = (self.ends.len() as u32, self.bytes.len());
        self.missing = self.missing.or(other.missing.map(|number| before + number));
        self.ends.extend(other.ends.iter().map(|end| bytes + end));
        self.bytes.extend_from_slice(&other.bytes);
        // The next text that is looked for puts all into slots.
        self.slots = Vec::new();
        Ok(())
    }

    /// Forgets all numbers from this one on.
    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
        self.missing = self.missing.filter(|&number| (number as usize) < len);
        self.slots.fill((0, 0));
        self.fill();
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Result<(), OutOfMemory> {
        let slots = zeros((4 * self.ends.len()).next_power_of_two().max(LEAST))?;
        let old = core::mem::replace(&mut self.slots, slots);
        match old.is_empty() {
            true => self.fill(),
            false => old.into_iter().filter(|slot| slot.1 != 0).for_each(|slot| self.put(slot)),
        }
        Ok(())
    }

    /// Puts the texts into slots that are empty.
    fn fill(&mut self) {
        for number in 0..self.ends.len() as u32 {
            if !self.is_missing(number) {
                self.put((hash_text(self.text(number)) as u32, number + 1));
            }
        }
    }

    fn put(&mut self, slot: (u32, u32)) {
        let Some(mask) = self.slots.len().checked_sub(1) else { return };
        let mut at = slot.0 as usize & mask;
        while self.slots[at].1 != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

/// Both halves are of all bytes.
#[inline]
#[must_use]
pub fn hash_text(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let last = match text.last_chunk() {
        // Some of these bytes are words' already.
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().rfold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    let mut state = hash(text.len() as u64 ^ last);
    for word in words {
        state = hash(state.rotate_left(23) ^ u64::from_le_bytes(*word));
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn numbers_are_those_of_a_map() {
        let mut numbering = TextNumbering::new();
        let mut map = HashMap::new();
        for i in 0..20_000u32 {
            // Zeros at the end, which padding must not hide.
            let mut text = (i % 5000).to_string().into_bytes();
            text.extend(vec![0; (i % 3) as usize]);
            let next = map.len() as u32;
            assert_eq!(numbering.number(&text), Ok(*map.entry(text).or_insert(next)));
        }
        assert_eq!(numbering.len(), map.len());
        let texts: Vec<&[u8]> = (0..map.len() as u32).rev().map(|n| numbering.text(n)).collect();
        let (mut all, mut numbers) = (TextNumbering::new(), vec![0; 2 * texts.len()]);
        all.number_all(&[&texts[..], &texts[..]].concat(), &mut numbers).unwrap();
        assert!(numbers.iter().enumerate().all(|(i, &n)| i % texts.len() == n as usize));
        assert!(texts.iter().zip(0..).all(|(text, n)| all.text(n) == *text));
        assert!(map.iter().all(|(text, &n)| numbering.text(n) == text));
        let missing = numbering.missing().unwrap();
        numbering.truncate(7);
        assert!(numbering.len() == 7 && !numbering.is_missing(missing));
        for (text, &n) in map.iter().filter(|(_, n)| **n < 7) {
            assert_eq!(numbering.number(text), Ok(n));
        }
        assert_eq!((numbering.number(b"another"), numbering.text(7)), (Ok(7), &b"another"[..]));
        let mut both = TextNumbering::new();
        assert_eq!(both.number(b"first"), Ok(0));
        both.append(&numbering).unwrap();
        let found = ["another", "first", "last"].map(|text| both.number(text.as_bytes()));
        assert_eq!((found, both.text(8)), ([Ok(8), Ok(0), Ok(9)], &b"another"[..]));
    }
}
