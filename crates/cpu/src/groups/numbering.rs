//! Dense numbers for 64-bit words: a hash table of open addressing.

use super::memory::{OutOfMemory, make_room, zeros};
use warpfold_core::prefetch;

/// Distinct words, numbered from 0 on in the order in which they came.
///
/// ```
/// use warpfold_cpu::groups::Numbering;
///
/// let mut numbering = Numbering::new();
/// assert_eq!([7, 3, 7].map(|word| numbering.number(word)), [Ok(0), Ok(1), Ok(0)]);
/// assert_eq!(numbering.words(), [7, 3]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    /// One more than a word's number, or 0. A power of two of them, of which at most
    /// half are taken.
    slots: Vec<u32>,
    words: Vec<u64>,
    /// The number that stands for no word at all.
    missing: Option<u32>,
}

/// Slots of the smallest table.
const LEAST: usize = 64;

/// From so many slots on a table is in no near cache: what a key needs is asked for before its turn
/// comes, its slot so many keys before, and then what the slot leads to.
pub(super) const FAR: usize = 1 << 13;
pub(super) const SLOTS_AHEAD: usize = 32;
pub(super) const KEYS_AHEAD: usize = 16;

impl Numbering {
    /// No words.
    #[must_use]
    pub fn new() -> Numbering {
        Numbering::default()
    }

    /// How many words there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words, by their numbers.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The number for rows without a word: the next one, the first time.
    ///
    /// # Errors
    /// No memory.
    pub fn missing(&mut self) -> Result<u32, OutOfMemory> {
        if let Some(number) = self.missing {
            return Ok(number);
        }
        make_room(&mut self.words, 1)?;
        self.words.push(0);
        Ok(*self.missing.insert(self.words.len() as u32 - 1))
    }

    /// Whether the number is that of no word.
    #[must_use]
    pub fn is_missing(&self, number: u32) -> bool {
        self.missing == Some(number)
    }

    /// The memory that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>() + self.words.capacity() * size_of::<u64>()
    }

    /// The number of a word: the next one, if the word is new.
    ///
    /// # Errors
    /// No memory.
    ///
    /// # Panics
    /// At 2^32 - 1 words, of which callers keep their distance.
    #[inline]
    pub fn number(&mut self, word: u64) -> Result<u32, OutOfMemory> {
        if 2 * self.words.len() >= self.slots.len() {
            self.grow()?;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(word) as usize & mask;
        loop {
            match self.slots[at] {
                0 => return self.insert(at, word),
                next if self.words[next as usize - 1] == word => return Ok(next - 1),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// The numbers of words, as of [`number`](Self::number) one after the other.
    ///
    /// # Errors
    /// No memory.
    ///
    /// # Panics
    /// As for [`number`](Self::number); if there are not as many numbers as words.
    pub fn number_all(&mut self, words: &[u64], numbers: &mut [u32]) -> Result<(), OutOfMemory> {
        assert_eq!(words.len(), numbers.len());
        for (row, (&word, number)) in words.iter().zip(numbers).enumerate() {
            if self.slots.len() >= FAR {
                if let Some(&later) = words.get(row + SLOTS_AHEAD) {
                    prefetch::near(self.slots.as_ptr().wrapping_add(self.home(later)).cast());
                }
                if let Some(&later) = words.get(row + KEYS_AHEAD) {
                    let place = self.slots[self.home(later)].wrapping_sub(1) as usize;
                    prefetch::near(self.words.as_ptr().wrapping_add(place).cast());
                }
            }
            *number = self.number(word)?;
        }
        Ok(())
    }

    /// The slot where the search for a word begins; there are some.
    #[inline(always)]
    fn home(&self, word: u64) -> usize {
        hash(word) as usize & (self.slots.len() - 1)
    }

    /// Forgets all numbers from this one on.
    pub fn truncate(&mut self, len: usize) {
        self.words.truncate(len);
        self.missing = self.missing.filter(|&number| (number as usize) < len);
        self.slots.fill(0);
        self.fill();
    }

    /// Adds the words of another one, none of which is here.
    ///
    /// # Errors
    /// No memory.
    ///
    /// # Panics
    /// If both have a number for no word.
    pub fn append(&mut self, other: &Numbering) -> Result<(), OutOfMemory> {
        assert!(self.missing.is_none() || other.missing.is_none());
        make_room(&mut self.words, other.words.len())?;
        let before = self.words.len() as u32;
        self.missing = self.missing.or(other.missing.map(|number| before + number));
        self.words.extend_from_slice(&other.words);
        // The next word that is looked for puts all into slots.
        self.slots = Vec::new();
        Ok(())
    }

    fn insert(&mut self, at: usize, word: u64) -> Result<u32, OutOfMemory> {
        make_room(&mut self.words, 1)?;
        let number = u32::try_from(self.words.len()).ok().filter(|&n| n < u32::MAX);
        let number = number.expect("callers stop at fewer groups");
        self.slots[at] = number + 1;
        self.words.push(word);
        Ok(number)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Result<(), OutOfMemory> {
        self.slots = zeros((4 * self.words.len()).next_power_of_two().max(LEAST))?;
        self.fill();
        Ok(())
    }

    /// Puts the words into slots that are empty.
    fn fill(&mut self) {
        let Some(mask) = self.slots.len().checked_sub(1) else { return };
        let missing = self.missing.map(|number| number + 1);
        for (word, number) in self.words.iter().zip(1..) {
            if missing == Some(number) {
                continue;
            }
            let mut at = hash(*word) as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = number;
        }
    }
}

/// Both halves of a product of 128 bits: each bit of the word moves bits at both ends.
#[inline(always)]
#[must_use]
pub fn hash(word: u64) -> u64 {
    let product = u128::from(word ^ 0x9e37_79b9_7f4a_7c15) * 0xa076_1d64_78bd_642f;
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Words that differ in few bits, low or high, are what hash tables suffer from.
    #[test]
    fn numbers_are_those_of_a_map() {
        let families: [fn(u64) -> u64; 5] =
            [|i| i, |i| i << 40, |i| i << 63 | i, |i| (i as f64).to_bits(), |i| i % 7];
        for family in families {
            let mut numbering = Numbering::new();
            let mut map = HashMap::new();
            for i in 0..20_000 {
                let word = family(i);
                let next = map.len() as u32;
                assert_eq!(numbering.number(word), Ok(*map.entry(word).or_insert(next)));
            }
            let (mut all, mut numbers) = (Numbering::new(), vec![0; 20_000]);
            let words: Vec<u64> = (0..20_000).map(family).collect();
            all.number_all(&words, &mut numbers).unwrap();
            assert_eq!(all.words(), numbering.words());
            assert!(words.iter().zip(numbers).all(|(word, number)| map[word] == number));
            assert_eq!(numbering.len(), map.len());
            // As if the later ones had never come.
            let missing = numbering.missing().unwrap();
            numbering.truncate(5);
            assert!(numbering.len() == 5 && !numbering.is_missing(missing));
            assert!(map.iter().all(|(&word, &n)| n >= 5 || numbering.number(word) == Ok(n)));
            assert_eq!((numbering.number(u64::MAX / 3), numbering.missing()), (Ok(5), Ok(6)));
            let mut both = Numbering::new();
            assert_eq!(both.number(u64::MAX / 5), Ok(0));
            both.append(&numbering).unwrap();
            assert!(both.is_missing(7) && both.missing() == Ok(7));
            let words = numbering.words()[..6].iter().zip(1..);
            assert!(words.into_iter().all(|(&word, n)| both.number(word) == Ok(n)));
            assert_eq!((both.number(u64::MAX / 5), both.number(u64::MAX / 7)), (Ok(0), Ok(8)));
        }
    }
}
