//! Ranges of a file that are asked for, on their way, or here and not yet read.
//!
//! Reads that follow each other are a *stream*. Of a stream as much is asked for ahead of its
//! reader as it has read, in ranges of at most [`LONGEST`] and up to [`AHEAD`] bytes, fewer where
//! threads read at many places: little is asked for in vain, and soon many ranges are in flight. A
//! range is dropped when as many bytes of it have been read as it has, or when others need its
//! place.

use super::{Failure, Object, spawn};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The shortest range: less takes a server as long.
const SHORTEST: u64 = 64 << 10;

/// The longest range.
const LONGEST: u64 = 4 << 20;

/// Bytes of a stream that are asked for before they are read.
const AHEAD: u64 = 8 * LONGEST;

/// Bytes of all files that are here or on their way, beyond what readers wait for.
const MOST: u64 = 128 << 20;

/// Streams of a file that are remembered.
const STREAMS: usize = 32;

/// All ranges, of all files, the oldest first.
static KEPT: Mutex<Kept> = Mutex::new(Kept { files: 0, ranges: Vec::new() });

struct Kept {
    /// How many files there have been.
    files: u64,
    ranges: Vec<Part>,
}

/// A range of a file.
struct Part {
    file: u64,
    bytes: Range<u64>,
    /// Bytes of it that were read.
    read: u64,
    arrival: Arc<Arrival>,
}

/// The ranges of one file.
pub(super) struct Ranges {
    file: u64,
    object: Arc<Object>,
    len: u64,
    streams: Mutex<Vec<Stream>>,
}

/// Reads that follow each other.
struct Stream {
    /// Where they began.
    start: u64,
    /// The end of what has been asked for.
    end: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ranges {
    /// Those of a file of `len` bytes, the first of which are here.
    pub(super) fn new(object: Arc<Object>, len: u64, head: Vec<u8>) -> Self {
        let mut kept = lock(&KEPT);
        kept.files += 1;
        let file = kept.files;
        let bytes = 0..head.len() as u64;
        let stream = Stream { start: 0, end: bytes.end };
        let arrival = Arc::new(Arrival::default());
        arrival.set(Ok(head));
        kept.push(Part { file, bytes, read: 0, arrival });
        drop(kept);
        Ranges { file, object, len, streams: Mutex::new(vec![stream]) }
    }

    /// Reads some bytes from `offset` on; none at the end.
    pub(super) fn read_some_at(&self, out: &mut [u8], offset: u64) -> Result<usize, Failure> {
        if offset >= self.len || out.is_empty() {
            return Ok(0);
        }
        let (start, arrival) = self.find(offset, out.len() as u64)?;
        let bytes = arrival.wait()?;
        let from = &bytes[(offset - start) as usize..];
        let n = from.len().min(out.len());
        out[..n].copy_from_slice(&from[..n]);
        lock(&KEPT).note(self.file, start, n as u64);
        Ok(n)
    }

    /// The range that has the byte at `offset`, of which `wanted` are read; those behind it are
    /// asked for where this goes on.
    fn find(&self, offset: u64, wanted: u64) -> Result<(u64, Arc<Arrival>), Failure> {
        let mut streams = lock(&self.streams);
        let mut kept = lock(&KEPT);
        let found = kept.at(self.file, offset);
        let ends = if found.is_some() { offset..=offset + AHEAD } else { offset..=offset };
        let place = streams.iter().rposition(|s| s.start < offset && ends.contains(&s.end));
        let known = place.map(|place| streams.remove(place));
        let (found, stream) = match (found, known) {
            (Some((bytes, arrival)), known) => ((bytes.start, arrival), known),
            (None, known) => {
                let mut stream = known.unwrap_or(Stream { start: offset, end: offset });
                let arrival = self.ask(&mut stream, wanted, &mut kept)?;
                ((offset, arrival), Some(stream))
            }
        };
        let Some(mut stream) = stream else { return Ok(found) };
        let room = MOST / 2 / (streams.len() as u64 + 1);
        let ahead = room.min(AHEAD).min(offset - stream.start);
        while stream.end < (offset + ahead).min(self.len) {
            match kept.at(self.file, stream.end) {
                // Another stream has been here.
                Some((bytes, _)) => stream.end = bytes.end,
                None => drop(self.ask(&mut stream, 0, &mut kept)?),
            }
        }
        // The latest is the last.
        streams.push(stream);
        if streams.len() > STREAMS {
            streams.remove(0);
        }
        Ok(found)
    }

    /// Asks for the range at the end of a stream, of which as many bytes are `wanted` at once.
    fn ask(
        &self,
        stream: &mut Stream,
        wanted: u64,
        kept: &mut Kept,
    ) -> Result<Arc<Arrival>, Failure> {
        let start = stream.end;
        let next = kept.next(self.file, start).unwrap_or(self.len);
        let len = wanted.max(start - stream.start).clamp(SHORTEST, LONGEST);
        let end = (start + len).min(next);
        let arrival = Arc::new(Arrival::default());
        let (object, promise) = (Arc::clone(&self.object), Promise(Arc::clone(&arrival)));
        let asked = spawn(async move { promise.0.set(object.get(start..end).await) });
        asked?;
        kept.push(Part {
            file: self.file,
            bytes: start..end,
            read: 0,
            arrival: Arc::clone(&arrival),
        });
        stream.end = end;
        Ok(arrival)
    }
}

impl Drop for Ranges {
    fn drop(&mut self) {
        lock(&KEPT).ranges.retain(|range| range.file != self.file);
    }
}

impl Kept {
    /// The range of a file that has the byte at `offset`.
    fn at(&self, file: u64, offset: u64) -> Option<(Range<u64>, Arc<Arrival>)> {
        let found = self.ranges.iter().find(|r| r.file == file && r.bytes.contains(&offset))?;
        Some((found.bytes.clone(), Arc::clone(&found.arrival)))
    }

    /// Where the first range of a file behind `offset` begins.
    fn next(&self, file: u64, offset: u64) -> Option<u64> {
        let own = self.ranges.iter().filter(|r| r.file == file);
        own.map(|r| r.bytes.start).filter(|&start| start > offset).min()
    }

    fn push(&mut self, range: Part) {
        self.ranges.push(range);
        let len = |r: &Part| r.bytes.end - r.bytes.start;
        let mut sum: u64 = self.ranges.iter().map(len).sum();
        while sum > MOST {
            sum -= len(&self.ranges.remove(0));
        }
    }

    /// Notes that bytes of the range that begins at `start` were read.
    fn note(&mut self, file: u64, start: u64, bytes: u64) {
        let place = self.ranges.iter().position(|r| r.file == file && r.bytes.start == start);
        let Some(place) = place else { return };
        let range = &mut self.ranges[place];
        range.read += bytes;
        if range.read >= range.bytes.end - range.bytes.start {
            self.ranges.remove(place);
        }
    }
}

/// The bytes of a range, when they are here.
#[derive(Default)]
struct Arrival {
    got: Mutex<Option<Got>>,
    here: Condvar,
}

type Got = Result<Arc<Vec<u8>>, Failure>;

impl Arrival {
    fn set(&self, got: Result<Vec<u8>, Failure>) {
        *lock(&self.got) = Some(got.map(Arc::new));
        self.here.notify_all();
    }

    fn wait(&self) -> Got {
        let mut got = lock(&self.got);
        loop {
            match &*got {
                Some(got) => return got.clone(),
                None => got = self.here.wait(got).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// The one who sets it. If nothing was set, those who wait are told.
struct Promise(Arc<Arrival>);

impl Drop for Promise {
    fn drop(&mut self) {
        if lock(&self.0.got).is_none() {
            self.0.set(Err(Failure::of(&"a request was given up")));
        }
    }
}
