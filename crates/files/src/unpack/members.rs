//! Data that were compressed piece by piece, one after the other: gzip's members, bzip2's
//! streams, lz4's frames.
//!
//! Decoders of a single piece stop at its end. What follows must be another one: the
//! decoders for several take other bytes there for a piece that is damaged.

use std::io::{self, BufRead, BufReader, Read};

/// What unpacks one piece, and leaves the bytes behind it.
pub(super) trait Member: Read + Sized {
    /// What each piece begins with.
    const MAGIC: &[u8];
    /// Whether an end of the bytes within a piece is taken for the end of it.
    const OVERLOOKS_THE_END: bool = false;

    fn begin(bytes: Bytes) -> Self;
    fn bytes(&mut self) -> &mut Bytes;
    fn end(self) -> Bytes;
}

/// All pieces. A new decoder takes over with each: what the old one remembers of its piece
/// may be too small for the next.
pub(super) struct Members<M>(Option<M>);

impl<M: Member> Members<M> {
    pub(super) fn new(bytes: BufReader<Box<dyn Read + Send>>) -> Self {
        Members(Some(M::begin(Bytes { bytes, begun: Vec::new(), taken: 0, ended: false })))
    }
}

impl<M: Member> Read for Members<M> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let n = member.read(out)?;
            if n > 0 || out.is_empty() {
                return Ok(n);
            }
            let bytes = member.bytes();
            if M::OVERLOOKS_THE_END && bytes.ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let more = bytes.begin(M::MAGIC)?;
            let ended = self.0.take().filter(|_| more);
            self.0 = ended.map(|ended| M::begin(ended.end()));
        }
        Ok(0)
    }
}

/// Compressed bytes, from the beginning of a piece on.
pub(super) struct Bytes {
    bytes: BufReader<Box<dyn Read + Send>>,
    /// The first bytes of the piece, where they were looked at, and how many were handed out.
    begun: Vec<u8>,
    taken: usize,
    /// Whether anyone has read beyond the end.
    ended: bool,
}

impl Bytes {
    /// Whether there is another piece.
    ///
    /// # Errors
    /// Other bytes than those that a piece begins with.
    fn begin(&mut self, magic: &[u8]) -> io::Result<bool> {
        (self.begun, self.taken) = (Vec::new(), 0);
        self.bytes.by_ref().take(magic.len() as u64).read_to_end(&mut self.begun)?;
        if self.begun.is_empty() || self.begun == magic {
            return Ok(!self.begun.is_empty());
        }
        if magic.starts_with(&self.begun) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let what = "other bytes follow the end of the data";
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

impl Read for Bytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let have = self.fill_buf()?;
        let n = have.len().min(out.len());
        out[..n].copy_from_slice(&have[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Bytes {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken < self.begun.len() {
            return Ok(&self.begun[self.taken..]);
        }
        let have = self.bytes.fill_buf()?;
        self.ended |= have.is_empty();
        Ok(have)
    }

    fn consume(&mut self, n: usize) {
        if self.taken < self.begun.len() {
            self.taken += n;
        } else {
            self.bytes.consume(n);
        }
    }
}

macro_rules! member {
    ($decoder:ty, $magic:expr, $overlooks:expr) => {
        impl Member for $decoder {
            const MAGIC: &[u8] = $magic;
            const OVERLOOKS_THE_END: bool = $overlooks;

            fn begin(bytes: Bytes) -> Self {
                Self::new(bytes)
            }

            fn bytes(&mut self) -> &mut Bytes {
                self.get_mut()
            }

            fn end(self) -> Bytes {
                self.into_inner()
            }
        }
    };
}
#[cfg(feature = "gzip")]
member!(flate2::bufread::GzDecoder<Bytes>, b"\x1f\x8b", false);
#[cfg(feature = "bzip2")]
member!(bzip2::bufread::BzDecoder<Bytes>, b"BZh", false);
#[cfg(feature = "lz4")]
member!(lz4_flex::frame::FrameDecoder<Bytes>, b"\x04\x22\x4d\x18", true);
