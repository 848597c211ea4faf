//! Elements of one size at a fixed distance: the data part of npy, raw and
//! safetensors files, and one field of an array of records.

use crate::file::PositionalFile;
use crate::seal::Seal;
use crate::{Batch, Block, Blocks, Endian, Error, ReadAt, Result};
use std::io::{self, Read};
use std::sync::Arc;
use warpfold_core::DType;

/// Bytes of file that one block of a stream stands for.
const BLOCK: usize = 1 << 20;

/// Records longer than this are not read whole to get at one field.
const GATHER: u64 = 4096;

/// Where the elements lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) dtype: DType,
    pub(crate) endian: Endian,
    /// The byte of the file, or of a stream's data, where the first record begins.
    pub(crate) start: u64,
    /// The distance from one record to the next; the element's size if there
    /// is nothing but elements.
    pub(crate) stride: u64,
    /// Where in its record the element lies.
    pub(crate) field: u64,
}

impl Layout {
    /// Elements one after the other.
    pub(crate) fn packed(dtype: DType, endian: Endian, start: u64) -> Self {
        Layout { dtype, endian, start, stride: dtype.size() as u64, field: 0 }
    }

    fn is_packed(&self) -> bool {
        self.stride == self.dtype.size() as u64
    }

    fn swaps(&self) -> bool {
        self.endian != Endian::NATIVE && self.dtype.size() > 1
    }
}

/// The elements of a regular file.
pub(crate) struct FixedFile {
    pub(crate) file: Arc<PositionalFile>,
    pub(crate) layout: Layout,
    /// The checksum of the elements and what lies around them, if there is
    /// one. Of records longer than [`GATHER`] only one field is read, so that
    /// it cannot be checked.
    pub(crate) seal: Option<Seal>,
}

impl FixedFile {
    fn fetch(&self, out: &mut [u8], at: u64) -> Result<()> {
        self.file.read_exact_at(out, at)?;
        self.seal.as_ref().map_or(Ok(()), |seal| seal.note(at, out))
    }
}

impl ReadAt for FixedFile {
    fn read_at(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let l = &self.layout;
        let size = l.dtype.size();
        let at = l.start + first * l.stride;
        if l.is_packed() {
            self.fetch(out, at)?;
        } else if l.stride > GATHER {
            for (i, item) in out.chunks_exact_mut(size).enumerate() {
                self.file.read_exact_at(item, at + i as u64 * l.stride + l.field)?;
            }
        } else {
            let stride = l.stride as usize;
            let per_read = BLOCK / 4 / stride;
            let mut records = vec![0; per_read.min(out.len() / size) * stride];
            let mut from = at;
            for part in out.chunks_mut(per_read * size) {
                let items = part.len() / size;
                let raw = &mut records[..items * stride];
                self.fetch(raw, from)?;
                gather(raw, stride, l.field as usize, part, size);
                from += (items * stride) as u64;
            }
        }
        if l.swaps() {
            swap_bytes(out, size);
        }
        Ok(())
    }
}

/// Copies one field of each record.
fn gather(records: &[u8], stride: usize, field: usize, out: &mut [u8], size: usize) {
    for (record, item) in records.chunks(stride).zip(out.chunks_exact_mut(size)) {
        item.copy_from_slice(&record[field..field + size]);
    }
}

/// Reverses the bytes of each element.
pub(crate) fn swap_bytes(bytes: &mut [u8], size: usize) {
    fn swap<const N: usize>(bytes: &mut [u8]) {
        let (items, _) = bytes.as_chunks_mut::<N>();
        for item in items {
            item.reverse();
        }
    }
    match size {
        2 => swap::<2>(bytes),
        4 => swap::<4>(bytes),
        8 => swap::<8>(bytes),
        _ => {}
    }
}

/// The elements of a stream.
pub(crate) struct FixedStream {
    pub(crate) name: String,
    pub(crate) reader: Box<dyn Read + Send>,
    /// `start` plays no part: the reader stands at the first record.
    pub(crate) layout: Layout,
    /// How many are still to come; `None` for as many as there are.
    pub(crate) left: Option<u64>,
    /// Whether the reader has something to check at its end, so that what
    /// follows the last element is read as well.
    pub(crate) to_end: bool,
}

impl Blocks for FixedStream {
    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        let stride = self.layout.stride;
        let wanted = (BLOCK as u64 / stride).max(1).min(self.left.unwrap_or(u64::MAX));
        if wanted == 0 {
            if self.to_end {
                io::copy(&mut self.reader, &mut io::sink())
                    .map_err(|e| stream_error(&self.name, e))?;
            }
            return Ok(None);
        }
        let want_bytes = wanted.checked_mul(stride).ok_or_else(|| self.ends(0))?;
        let mut bytes = Vec::new();
        if want_bytes <= BLOCK as u64 {
            bytes.reserve_exact(want_bytes as usize);
        }
        let got = read_up_to(&mut *self.reader, want_bytes, &mut bytes, &self.name)? as u64;
        match &mut self.left {
            Some(left) if got < want_bytes => {
                let missing = left.saturating_mul(stride).saturating_sub(got);
                return Err(self.ends(missing));
            }
            Some(left) => *left -= wanted,
            None if !got.is_multiple_of(stride) => {
                return Err(Error::format(
                    &self.name,
                    format!(
                        "the last {} bytes are not a whole {} element of {stride} bytes",
                        got % stride,
                        self.layout.dtype
                    ),
                )
                .with_hint("name the type and the start of the data: --dtype, --offset"));
            }
            None if got == 0 => return Ok(None),
            None => {}
        }
        Ok(Some(Box::new(FixedBlock { bytes, layout: self.layout })))
    }
}

impl FixedStream {
    fn ends(&self, missing: u64) -> Error {
        Error::format(&self.name, format!("the data ends {missing} bytes too early"))
    }
}

/// Appends up to so many bytes of a stream, and says how many there were.
pub(crate) fn read_up_to(
    reader: &mut dyn Read,
    most: u64,
    bytes: &mut Vec<u8>,
    name: &str,
) -> Result<usize> {
    reader.take(most).read_to_end(bytes).map_err(|e| stream_error(name, e))
}

/// An I/O error on a stream. Decoders inside the stream report broken data
/// as `InvalidData`; that is the file's fault and not the system's.
pub(crate) fn stream_error(name: &str, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::format(name, format!("the data is damaged: {source}"))
        }
        _ => Error::Io { path: name.into(), source },
    }
}

struct FixedBlock {
    bytes: Vec<u8>,
    layout: Layout,
}

impl Block for FixedBlock {
    fn rows(&self) -> Option<u64> {
        Some(self.bytes.len() as u64 / self.layout.stride)
    }

    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        let l = &self.layout;
        let size = l.dtype.size();
        let items = self.bytes.len() / l.stride as usize;
        batch.reset(l.dtype);
        let out = batch.grow(items * size);
        if l.is_packed() {
            out.copy_from_slice(&self.bytes);
        } else {
            gather(&self.bytes, l.stride as usize, l.field as usize, out, size);
        }
        if l.swaps() {
            swap_bytes(out, size);
        }
        sink(batch)
    }
}
