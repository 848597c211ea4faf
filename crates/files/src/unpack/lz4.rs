//! lz4 frames one after the other, each to its end.
//!
//! The decoder stops after each frame, and takes an end of the data between
//! two blocks, or within a header, for the end of a frame.

use lz4_flex::frame::FrameDecoder;
use std::io::{self, BufRead, Read};

/// All frames. A new decoder takes over with each: what the old one remembers
/// of its frame can be too small for the next one.
pub(super) struct Frames<R: BufRead>(Option<FrameDecoder<Watched<R>>>);

impl<R: BufRead> Frames<R> {
    pub(super) fn new(bytes: R) -> Self {
        Frames(Some(FrameDecoder::new(Watched { inner: bytes, ended: false })))
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(frame) = &mut self.0 {
            let n = frame.read(out)?;
            if n > 0 || out.is_empty() {
                return Ok(n);
            }
            let bytes = frame.get_mut();
            if bytes.ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let more = !bytes.inner.fill_buf()?.is_empty();
            let ended = self.0.take().filter(|_| more);
            self.0 = ended.map(|ended| FrameDecoder::new(ended.into_inner()));
        }
        Ok(0)
    }
}

/// A reader that knows whether anyone has read beyond its end.
struct Watched<R> {
    inner: R,
    ended: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.ended |= n == 0 && !out.is_empty();
        Ok(n)
    }
}
