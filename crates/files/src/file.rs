//! A regular file read by position, from any thread, without a shared cursor.

#[cfg(feature = "remote")]
use crate::remote::Remote;
use crate::{Error, Result};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of known length. Reads name their place, so threads never disturb
/// each other; the file is not mapped, so one that shrinks is an error and
/// not a signal.
pub(crate) struct PositionalFile {
    path: PathBuf,
    backing: Backing,
    len: u64,
}

enum Backing {
    File(File),
    /// Bytes that play a file, for parsers under test.
    Memory(Vec<u8>),
    #[cfg(feature = "remote")]
    Remote(Remote),
}

impl PositionalFile {
    /// Wraps an open regular file; `path` is for messages.
    pub(crate) fn new(path: PathBuf, file: File) -> Result<Self> {
        let len = match file.metadata() {
            Ok(m) => m.len(),
            Err(source) => return Err(Error::Io { path, source }),
        };
        Ok(PositionalFile { path, backing: Backing::File(file), len })
    }

    /// Bytes in memory under the name `name`.
    pub(crate) fn memory(name: &str, bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        PositionalFile { path: name.into(), backing: Backing::Memory(bytes), len }
    }

    /// The file at an address.
    #[cfg(feature = "remote")]
    pub(crate) fn remote(url: &std::ffi::OsStr) -> Result<Self> {
        let (name, remote) = Remote::open(url)?;
        let len = remote.len();
        Ok(PositionalFile { path: name.into(), backing: Backing::Remote(remote), len })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path as messages show it.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Fills `out` from byte `offset` on.
    pub(crate) fn read_exact_at(&self, mut out: &mut [u8], mut offset: u64) -> Result<()> {
        while !out.is_empty() {
            match self.read_some_at(out, offset) {
                Ok(0) => {
                    return Err(Error::format(
                        self.name(),
                        format!(
                            "the file ends at byte {offset}, {} bytes before the end of its data",
                            out.len()
                        ),
                    ));
                }
                Ok(n) => {
                    out = &mut out[n..];
                    offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.io(source)),
            }
        }
        Ok(())
    }

    /// The bytes from `offset` to `offset + len`. Checked against the file's
    /// length first, so a number made up by a damaged header allocates nothing.
    pub(crate) fn read_vec(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.len);
        match usize::try_from(len) {
            Ok(n) if fits => {
                let mut bytes = vec![0; n];
                self.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
            _ => Err(Error::format(
                self.name(),
                format!(
                    "the file promises {len} bytes at byte {offset}, but has only {} bytes",
                    self.len
                ),
            )),
        }
    }

    /// Up to `len` bytes from the front.
    pub(crate) fn head(&self, len: usize) -> Result<Vec<u8>> {
        self.read_vec(0, self.len.min(len as u64))
    }

    /// An I/O error about this file.
    pub(crate) fn io(&self, source: io::Error) -> Error {
        Error::Io { path: self.path.clone(), source }
    }

    fn read_some_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.backing {
            Backing::File(file) => read_at(file, out, offset),
            Backing::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let n = out.len().min(bytes.len() - from);
                out[..n].copy_from_slice(&bytes[from..from + n]);
                Ok(n)
            }
            #[cfg(feature = "remote")]
            Backing::Remote(remote) => remote.read_some_at(out, offset),
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

#[cfg(windows)]
fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, offset)
}

/// A reader over part of a file, with a cursor of its own.
pub(crate) struct Cursor {
    file: Arc<PositionalFile>,
    start: u64,
    at: u64,
    end: u64,
}

impl Cursor {
    /// The whole file.
    pub(crate) fn new(file: Arc<PositionalFile>) -> Self {
        let end = file.len();
        Cursor { file, start: 0, at: 0, end }
    }

    /// The bytes from `start` to `start + len`, or to the end of the file.
    #[cfg(any(feature = "npy", feature = "text", feature = "arrow", feature = "parquet"))]
    pub(crate) fn part(file: Arc<PositionalFile>, start: u64, len: u64) -> Self {
        let end = start.saturating_add(len).min(file.len());
        Cursor { file, start, at: start, end }
    }
}

impl Read for Cursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_sub(self.at);
        let n = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let n = self.file.read_some_at(&mut out[..n], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Cursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(n) => self.start.checked_add(n),
            SeekFrom::End(n) => self.end.checked_add_signed(n),
            SeekFrom::Current(n) => self.at.checked_add_signed(n),
        };
        match at {
            Some(at) if at >= self.start => {
                self.at = at;
                Ok(at - self.start)
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "seek out of range")),
        }
    }
}
