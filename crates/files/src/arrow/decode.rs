//! From buffers to values with gaps.

use super::dictionary::Dictionary;
use super::plan::{Codec, Span};
use crate::file::{Cursor, PositionalFile};
use crate::fixed::{stream_error, swap_bytes};
use crate::{Batch, Block, Endian, Error, Result, unit};
use std::io::{self, Read};
use std::sync::Arc;
use warpfold_core::DType;

/// Rows decoded at a time: a multiple of 8, and a megabyte of the widest type.
pub(super) const ROWS: u64 = 1 << 17;

/// The bytes of a buffer, wherever they are.
#[derive(Clone)]
pub(super) enum Bytes {
    File(Arc<PositionalFile>, Span),
    Memory(Vec<u8>),
}

impl Bytes {
    /// No bytes.
    pub(super) fn none() -> Bytes {
        Bytes::Memory(Vec::new())
    }

    /// A reader over the unpacked bytes.
    pub(super) fn reader(self, codec: Option<Codec>) -> io::Result<Box<dyn Read + Send>> {
        let (mut raw, len): (Box<dyn Read + Send>, u64) = match self {
            Bytes::File(file, span) => (Box::new(Cursor::part(file, span.at, span.len)), span.len),
            Bytes::Memory(bytes) => {
                let len = bytes.len() as u64;
                (Box::new(io::Cursor::new(bytes)), len)
            }
        };
        let Some(codec) = codec else { return Ok(raw) };
        if len == 0 {
            return Ok(raw);
        }
        // The unpacked length comes first; -1 says that packing did not pay.
        let mut unpacked = [0; 8];
        raw.read_exact(&mut unpacked)?;
        let Ok(unpacked) = u64::try_from(i64::from_le_bytes(unpacked)) else { return Ok(raw) };
        Ok(match codec {
            Codec::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(raw).take(unpacked)),
            Codec::Zstd => Box::new(zstd::stream::read::Decoder::new(raw)?.take(unpacked)),
        })
    }
}

/// Some rows of one column.
pub(super) struct ArrowBlock {
    pub(super) name: Arc<str>,
    /// The type of the elements in the buffer: of the values, or of keys.
    pub(super) stored: DType,
    /// Of decimals the bytes of each; they become elements of the type.
    pub(super) decimal: Option<usize>,
    /// Where the keys find their values.
    pub(super) dictionary: Option<Arc<Dictionary>>,
    pub(super) endian: Endian,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) validity: Option<Bytes>,
    pub(super) data: Bytes,
    pub(super) codec: Option<Codec>,
}

impl Block for ArrowBlock {
    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        self.unpack(batch, &mut |batch| sink(batch))
    }
}

impl ArrowBlock {
    /// Decodes the rows in batches of at most about a million bytes.
    pub(super) fn unpack(
        self,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&mut Batch) -> Result<()>,
    ) -> Result<()> {
        let block = self;
        let name = &*block.name;
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::format(name, "damaged Arrow data: a buffer is shorter than its column")
            }
            // What decompressors say about broken data.
            io::ErrorKind::Other => Error::format(name, format!("damaged Arrow data: {e}")),
            _ => stream_error(name, e),
        };
        let mut data = block.data.reader(block.codec).map_err(failed)?;
        let validity = block.validity.map(|v| v.reader(block.codec)).transpose();
        let mut validity = validity.map_err(failed)?;
        let size = block.stored.size();
        let dictionary = block.dictionary.as_deref();
        let put = |run: &[u8], batch: &mut Batch| match dictionary {
            Some(dictionary) => dictionary
                .look_up(block.stored, run, batch)
                .map_err(|what| Error::format(name, format!("damaged Arrow data: {what}"))),
            None => {
                batch.grow(run.len()).copy_from_slice(run);
                Ok(())
            }
        };
        let (mut bits, mut values) = (Vec::new(), Vec::new());
        // Rows with decimals beyond 64 bits, which matter if they have a value.
        let mut beyond: Vec<(usize, i128)> = Vec::new();
        let mut too_large: Vec<usize> = Vec::new();
        let mut left = block.rows;
        while left > 0 {
            let rows = left.min(ROWS) as usize;
            left -= rows as u64;
            batch.reset(dictionary.map_or(block.stored, Dictionary::dtype));
            beyond.clear();
            too_large.clear();
            let mut fill = |out: &mut [u8]| -> io::Result<()> {
                if let Some(bytes) = block.decimal {
                    let mut stored = vec![0; rows * bytes];
                    data.read_exact(&mut stored)?;
                    let each = stored.chunks_exact_mut(bytes).zip(out.chunks_exact_mut(size));
                    for (row, (stored, out)) in each.enumerate() {
                        if block.endian == Endian::Little {
                            stored.reverse();
                        }
                        let value = unit::of_bytes(stored).unwrap_or_else(|| {
                            // It matters if the row has a value, too.
                            too_large.push(row);
                            0
                        });
                        beyond.extend(i64::try_from(value).is_err().then_some((row, value)));
                        out.copy_from_slice(&(value as i64).to_ne_bytes());
                    }
                    return Ok(());
                }
                if block.stored == DType::Bool {
                    let mut packed = vec![0; rows.div_ceil(8)];
                    data.read_exact(&mut packed)?;
                    out.iter_mut().enumerate().for_each(|(i, o)| *o = u8::from(bit(&packed, i)));
                } else {
                    data.read_exact(out)?;
                }
                if block.endian != Endian::NATIVE {
                    swap_bytes(out, size);
                }
                Ok(())
            };
            if validity.is_none() && dictionary.is_none() {
                fill(batch.grow(rows * size)).map_err(failed)?;
                if !too_large.is_empty() {
                    return Err(unit::beyond(name));
                }
                if !beyond.is_empty() {
                    values.clear();
                    values.extend_from_slice(batch.bytes());
                    batch.reset(block.stored);
                    let mut from = 0;
                    for &(row, decimal) in &beyond {
                        put(&values[from * size..row * size], batch)?;
                        batch.push_decimal(decimal);
                        from = row + 1;
                    }
                    put(&values[from * size..], batch)?;
                }
                sink(batch)?;
                continue;
            }
            values.resize(rows * size, 0);
            fill(&mut values).map_err(failed)?;
            let Some(validity) = &mut validity else {
                put(&values, batch)?;
                sink(batch)?;
                continue;
            };
            bits.resize(rows.div_ceil(8), 0);
            validity.read_exact(&mut bits).map_err(failed)?;
            if too_large.iter().any(|&row| bit(&bits, row)) {
                return Err(unit::beyond(name));
            }
            let mut beyond = beyond.iter().filter(|(row, _)| bit(&bits, *row)).peekable();
            let mut row = 0;
            while row < rows {
                if let Some((_, decimal)) = beyond.next_if(|(at, _)| *at == row) {
                    batch.push_decimal(*decimal);
                    row += 1;
                    continue;
                }
                let present = bit(&bits, row);
                let mut end = run_end(&bits, row, rows);
                if let Some((at, _)) = beyond.peek().filter(|_| present) {
                    end = end.min(*at);
                }
                if present {
                    put(&values[row * size..end * size], batch)?;
                } else {
                    batch.skip((end - row) as u64);
                }
                row = end;
            }
            sink(batch)?;
        }
        Ok(())
    }
}

/// Bit `i`, lowest first.
#[inline]
fn bit(bits: &[u8], i: usize) -> bool {
    bits[i / 8] >> (i % 8) & 1 == 1
}

/// The first row after `row` and before `rows` that is unlike it.
fn run_end(bits: &[u8], row: usize, rows: usize) -> usize {
    let present = bit(bits, row);
    let same = if present { 0xff } else { 0 };
    let mut end = row + 1;
    while end < rows {
        if end.is_multiple_of(8) && bits[end / 8] == same {
            end += 8;
        } else if bit(bits, end) == present {
            end += 1;
        } else {
            break;
        }
    }
    end.min(rows)
}
