//! Text cut into chunks at places where a record ends.

use crate::fixed::read_up_to;
use crate::{Error, Result};
use std::io::Read;

/// What a chunk holds at least, unless the text ends or somebody says otherwise.
pub(crate) const CHUNK: usize = 1 << 20;

/// The most that anybody should ask for.
pub(crate) const MOST_CHUNK: usize = 16 << 20;

/// A single record longer than this is not data.
const LONGEST_RECORD: usize = super::sniff::LONGEST_ROW;

/// Finds the end of the last whole record of a text that begins with one.
pub(crate) type Cut = Box<dyn Fn(&[u8]) -> Option<usize> + Send>;

/// Whole records, and the number of the line they begin in.
pub(crate) struct Chunk {
    pub(crate) text: Vec<u8>,
    pub(crate) first_line: u64,
}

/// The chunks of a stream of text.
pub(crate) struct Chunks {
    name: String,
    reader: Box<dyn Read + Send>,
    cut: Cut,
    /// The start of a record whose end was not seen yet.
    carry: Vec<u8>,
    line: u64,
    ended: bool,
    /// What a chunk holds at least.
    least: usize,
}

impl Chunks {
    /// The text that `reader` gives, which begins in line `line`.
    pub(crate) fn new(name: &str, reader: Box<dyn Read + Send>, line: u64, cut: Cut) -> Self {
        Chunks {
            name: name.into(),
            reader,
            cut,
            carry: Vec::new(),
            line,
            ended: false,
            least: CHUNK,
        }
    }

    /// The same in chunks of so many bytes at least.
    pub(crate) fn in_bytes(self, least: usize) -> Self {
        Chunks { least: least.max(1), ..self }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Chunk>> {
        let mut text = core::mem::take(&mut self.carry);
        let mut goal = self.least;
        let end = loop {
            if !self.ended && text.len() < goal {
                let missing = goal - text.len();
                text.reserve_exact(missing);
                let got = read_up_to(&mut *self.reader, missing as u64, &mut text, &self.name)?;
                self.ended = got < missing;
            }
            if self.ended {
                break text.len();
            }
            if let Some(end) = (self.cut)(&text) {
                break end;
            }
            if text.len() >= LONGEST_RECORD {
                return Err(Error::format(
                    &self.name,
                    format!(
                        "line {}: the record that begins here does not end within {} MiB",
                        self.line,
                        LONGEST_RECORD >> 20
                    ),
                )
                .with_hint("is a quote never closed, or is this not text?"));
            }
            goal = text.len() * 2;
        };
        if text.is_empty() {
            return Ok(None);
        }
        self.carry = text[end..].to_vec();
        text.truncate(end);
        let first_line = self.line;
        self.line += count_lines(&text);
        Ok(Some(Chunk { text, first_line }))
    }
}

/// How many line ends there are.
pub(crate) fn count_lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
