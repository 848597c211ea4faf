//! The checksum of bytes that are read in pieces: in any order, by several
//! threads, some of them twice.
//!
//! Each piece is hashed where it is read, and the checksums of neighbours are combined,
//! so that nothing is read for the check alone. The thread that reads the last missing
//! byte learns whether the whole is sound.

use crate::file::PositionalFile;
use crate::{Error, Result};
use crc32fast::Hasher;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Separate runs that are kept. Reads that leave more gaps than that have the
/// whole checked at once.
const MOST_RUNS: usize = 4096;

/// Bytes read at a time where something is read for the check alone.
const STEP: u64 = 1 << 18;

/// A part of a file with a CRC-32.
pub(crate) struct Seal {
    file: Arc<PositionalFile>,
    /// What the error is about.
    name: String,
    /// Where in the file the part lies.
    part: Range<u64>,
    crc: u32,
    seen: Mutex<Seen>,
}

/// What has been read so far.
#[derive(Default)]
struct Seen {
    /// The runs by their first byte: no two overlap or touch.
    runs: BTreeMap<u64, Run>,
    /// Whether the whole is sound, once it has been seen.
    sound: Option<bool>,
}

struct Run {
    end: u64,
    hasher: Hasher,
}

impl Seal {
    /// The bytes of `file` that `part` names should have the checksum `crc`.
    #[cfg(feature = "npy")]
    pub(crate) fn new(file: Arc<PositionalFile>, name: &str, part: Range<u64>, crc: u32) -> Self {
        let mut seen = Seen::default();
        if part.is_empty() {
            seen.sound = Some(crc == 0);
        }
        Seal { file, name: name.into(), part, crc, seen: Mutex::new(seen) }
    }

    /// Takes note of `bytes`, which were read at byte `at` of the file.
    ///
    /// # Errors
    /// Once all bytes have been seen: that their checksum is wrong.
    pub(crate) fn note(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let piece = |range: &Range<u64>| {
            let mut hasher = Hasher::new();
            hasher.update(&bytes[(range.start - at) as usize..(range.end - at) as usize]);
            hasher
        };
        let range = at.max(self.part.start)..(at + bytes.len() as u64).min(self.part.end);
        let fresh = {
            let seen = self.lock();
            match seen.sound {
                Some(_) => return self.verdict(&seen),
                None => seen.unseen(range),
            }
        };
        // Hashed without the lock: threads read and hash at the same time.
        let hashed: Vec<_> = fresh.into_iter().map(|range| (piece(&range), range)).collect();
        let mut seen = self.lock();
        for (hasher, range) in hashed {
            let left = seen.unseen(range.clone());
            if left == [range.clone()] {
                seen.add(range, hasher);
            } else {
                // Another thread has read some of it meanwhile.
                left.into_iter().for_each(|range| seen.add(range.clone(), piece(&range)));
            }
        }
        if seen.runs.len() > MOST_RUNS {
            return self.check_whole(&mut seen);
        }
        if let Some(run) = seen.runs.get(&self.part.start)
            && run.end == self.part.end
        {
            seen.sound = Some(run.hasher.clone().finalize() == self.crc);
            seen.runs.clear();
        }
        self.verdict(&seen)
    }

    /// Reads `range`, which no other thread reads.
    ///
    /// # Errors
    /// What the file system says; those of [`Seal::note`].
    #[cfg(feature = "npy")]
    pub(crate) fn read(&self, range: Range<u64>) -> Result<()> {
        let mut buffer = Vec::new();
        let mut at = range.start;
        while at < range.end {
            buffer.resize((range.end - at).min(STEP) as usize, 0);
            self.file.read_exact_at(&mut buffer, at)?;
            self.note(at, &buffer)?;
            at += buffer.len() as u64;
        }
        self.verdict(&self.lock())
    }

    fn check_whole(&self, seen: &mut Seen) -> Result<()> {
        let mut hasher = Hasher::new();
        let mut buffer = Vec::new();
        let mut at = self.part.start;
        while at < self.part.end {
            buffer.resize((self.part.end - at).min(STEP) as usize, 0);
            self.file.read_exact_at(&mut buffer, at)?;
            hasher.update(&buffer);
            at += buffer.len() as u64;
        }
        seen.sound = Some(hasher.finalize() == self.crc);
        seen.runs.clear();
        self.verdict(seen)
    }

    fn verdict(&self, seen: &Seen) -> Result<()> {
        match seen.sound {
            Some(false) => Err(Error::format(
                &self.name,
                "the data is damaged: the checksum of the zip member is wrong",
            )),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// The parts of `range` that belong to no run.
    fn unseen(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut at = range.start;
        if let Some((_, before)) = self.runs.range(..=at).next_back() {
            at = at.max(before.end);
        }
        for (&start, run) in self.runs.range(range.start..) {
            if start >= range.end {
                break;
            }
            if at < start {
                parts.push(at..start);
            }
            at = at.max(run.end);
        }
        if at < range.end {
            parts.push(at..range.end);
        }
        parts
    }

    /// Adds a range of which nothing was seen.
    fn add(&mut self, range: Range<u64>, hasher: Hasher) {
        let mut run = Run { end: range.end, hasher };
        if let Some(after) = self.runs.remove(&range.end) {
            run.hasher.combine(&after.hasher);
            run.end = after.end;
        }
        match self.runs.range_mut(..range.start).next_back() {
            Some((_, before)) if before.end == range.start => {
                before.hasher.combine(&run.hasher);
                before.end = run.end;
            }
            _ => {
                self.runs.insert(range.start, run);
            }
        }
    }
}

#[cfg(all(test, feature = "npy"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sealed(bytes: &[u8], part: Range<u64>) -> Seal {
        let crc = crc32fast::hash(&bytes[part.start as usize..part.end as usize]);
        let file = Arc::new(PositionalFile::memory("t", bytes.to_vec()));
        Seal::new(file, "t:a", part, crc)
    }

    fn bytes(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i * i % 251) as u8).collect()
    }

    proptest! {
        /// Pieces of any place and length, some twice, from beyond both ends.
        #[test]
        fn damage_is_told_when_all_is_seen(
            cuts in prop::collection::vec((0_usize..200, 0_usize..60), 0..40),
            flip in 20_usize..180,
            damaged: bool,
        ) {
            let sound = bytes(200);
            let seal = sealed(&sound, 20..180);
            let mut data = sound;
            if damaged {
                data[flip] ^= 0x10;
            }
            let mut seen = [false; 200];
            for (at, len) in cuts.into_iter().chain([(0, 90), (80, 120)]) {
                let end = (at + len).min(200);
                seen[at..end].fill(true);
                let result = seal.note(at as u64, &data[at..end]);
                let all = seen[20..180].iter().all(|&s| s);
                prop_assert_eq!(result.is_err(), all && damaged);
            }
            // What is wrong stays wrong.
            prop_assert_eq!(seal.note(0, &data[..1]).is_err(), damaged);
        }
    }

    #[test]
    fn too_many_gaps_have_the_whole_checked() {
        let sound = bytes(40_000);
        let odd = (1..40_000).step_by(2);
        let seal = sealed(&sound, 0..40_000);
        for i in odd.clone() {
            seal.note(i as u64, &sound[i..=i]).unwrap();
        }
        assert_eq!(seal.lock().sound, Some(true));
        // The file itself is bad.
        let mut bad = sound.clone();
        bad[0] ^= 1;
        let file = Arc::new(PositionalFile::memory("t", bad));
        let seal = Seal::new(file, "t:a", 0..40_000, crc32fast::hash(&sound));
        assert!(odd.into_iter().any(|i| seal.note(i as u64, &sound[i..=i]).is_err()));
    }

    #[test]
    fn threads_that_read_the_same_bytes_agree() {
        let data = bytes(1 << 20);
        for damaged in [false, true] {
            let seal = sealed(&data, 0..1 << 20);
            let mut data = data.clone();
            data[77_777] ^= u8::from(damaged);
            let failed = std::thread::scope(|scope| {
                let work = |step: usize| {
                    let (seal, data) = (&seal, &data);
                    scope.spawn(move || {
                        let mut at = 0;
                        data.chunks(step)
                            .map(|chunk| {
                                let result = seal.note(at, chunk);
                                at += chunk.len() as u64;
                                result.is_err()
                            })
                            .fold(false, |a, b| a | b)
                    })
                };
                let threads = [1000, 4096, 997, 1 << 19].map(work);
                threads.into_iter().any(|t| t.join().unwrap())
            });
            assert_eq!(failed, damaged);
        }
    }

    #[test]
    fn nothing_has_a_checksum_too() {
        let seal = |crc| {
            Seal::new(Arc::new(PositionalFile::memory("t", vec![])), "t:a", 0..0, crc).read(0..0)
        };
        assert!(seal(0).is_ok());
        assert!(seal(1).is_err());
    }
}
