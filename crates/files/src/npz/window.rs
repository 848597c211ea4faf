//! A buffer that survives a seek within it, and ends after this many bytes.
//!
//! The zip crate seeks before each entry of a directory, and a `BufReader`
//! forgets what it has read when that happens.

use std::io::{self, Read, Seek, SeekFrom};

const LEN: usize = 64 << 10;

pub(super) struct Window<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins, and where the next byte lies.
    start: u64,
    at: u64,
    /// How many bytes may still be read.
    left: u64,
}

impl<R> Window<R> {
    pub(super) fn new(inner: R, most: u64) -> Self {
        Window { inner, buffer: Vec::new(), start: 0, at: 0, left: most }
    }

    fn buffered(&self) -> &[u8] {
        let from = self.at.checked_sub(self.start).and_then(|n| usize::try_from(n).ok());
        from.and_then(|from| self.buffer.get(from..)).unwrap_or_default()
    }
}

impl<R: Read + Seek> Read for Window<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.buffered().is_empty() {
            self.inner.seek(SeekFrom::Start(self.at))?;
            self.buffer.clear();
            self.start = self.at;
            (&mut self.inner).take(LEN as u64).read_to_end(&mut self.buffer)?;
            self.left = self
                .left
                .checked_sub(self.buffer.len() as u64)
                .ok_or(io::ErrorKind::FileTooLarge)?;
        }
        let have = self.buffered();
        let n = have.len().min(out.len());
        out[..n].copy_from_slice(&have[..n]);
        self.at += n as u64;
        Ok(n)
    }
}

impl<R: Seek> Seek for Window<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(_) => self.inner.seek(to)?,
            SeekFrom::Current(n) => self
                .at
                .checked_add_signed(n)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek out of range"))?,
        };
        Ok(self.at)
    }
}
