//! The pages of a column chunk, unpacked: of the library only what decodes values is used, since its codecs would bring
//! along those that compress, which here nobody needs.
//!
//! Pages whose decoder would allocate as much as damaged data ask for are errors: dictionaries, and delta-encoded strings (see
//! [`delta`]), which of numbers only f16 can be.
//!
//! The layout: Parquet format, "parquet.thrift" and "Compression".

use super::{Reader, reads};
use crate::delta;
use bytes::Bytes;
use parquet::basic::{CompressionCodec, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use std::io::Read;

pub(super) struct Pages {
    pub(super) reader: Reader,
    /// Where the next page begins, and how many bytes are left from there.
    pub(super) at: u64,
    pub(super) left: u64,
    pub(super) codec: CompressionCodec,
    /// Whether values may be missing, so that pages begin with levels.
    pub(super) optional: bool,
    /// Bytes of a plainly stored value.
    pub(super) size: usize,
    /// What zstd works with, once it has.
    pub(super) zstd: Option<zstd::bulk::Decompressor<'static>>,
}

fn general(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// The encoding of a code.
fn encoding(code: i64) -> Result<Encoding> {
    #[expect(deprecated, reason = "old files have it")]
    let bit_packed = Encoding::BIT_PACKED;
    Ok(match code {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        4 => bit_packed,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        10 => Encoding::ALP,
        _ => return Err(general(format!("Unexpected Encoding {code}"))),
    })
}

/// Bytes that a decoder reads at a time.
const BUFFER: usize = 1 << 16;

impl Pages {
    /// The next page of values, or the dictionary.
    fn next_page(&mut self) -> Result<Option<Page>> {
        while self.left > 0 {
            let header = self.reader.check(self.at)?;
            let invalid = || ParquetError::EOF("Invalid page header".into());
            self.left = self.left.checked_sub(header.len).ok_or_else(invalid)?;
            let place = self.at + header.len;
            // The structures of a header: of values, of a dictionary, and of values in the second form.
            let [top, values, dictionary, second] = [0, 5, 7, 8].map(|outer| header.of(outer));
            let (size, len) = (top(2)?, top(3)?);
            let size = i32::try_from(size).ok().and_then(|size| usize::try_from(size).ok());
            let size = size.ok_or_else(invalid)?;
            let len = u64::try_from(len).map_err(|_| invalid())?;
            self.left = self.left.checked_sub(len).ok_or_else(invalid)?;
            self.at = place + len;
            let kind = top(1)?;
            // An index.
            if kind == 1 {
                continue;
            }
            let packed = reads(&self.reader.file, place, len)?;
            if let Ok(sum) = top(4)
                && crc32fast::hash(&packed) != sum as u32
            {
                return Err(general("Page CRC checksum mismatch"));
            }
            let count = |of: i64| u32::try_from(of).map_err(|e| general(e.to_string()));
            // Levels of the second form are before what is packed.
            let levels = match kind {
                3 => count(second(5)?)?.checked_add(count(second(6)?)?).ok_or_else(invalid)?,
                _ => 0,
            };
            let is_packed = kind != 3 || second(7).unwrap_or(1) != 0;
            let buf = match is_packed {
                true => self.unpack(packed, levels as usize, size)?,
                false => packed.into(),
            };
            return Ok(Some(match kind {
                0 => Page::DataPage {
                    buf,
                    num_values: count(values(1)?)?,
                    encoding: encoding(values(2)?)?,
                    def_level_encoding: encoding(values(3)?)?,
                    rep_level_encoding: encoding(values(4)?)?,
                    statistics: None,
                },
                2 => Page::DictionaryPage {
                    buf,
                    num_values: count(dictionary(1)?)?,
                    encoding: encoding(dictionary(2)?)?,
                    is_sorted: dictionary(3).is_ok_and(|sorted| sorted != 0),
                },
                3 => Page::DataPageV2 {
                    buf,
                    num_values: count(second(1)?)?,
                    encoding: encoding(second(4)?)?,
                    num_nulls: count(second(2)?)?,
                    num_rows: count(second(3)?)?,
                    def_levels_byte_len: count(second(5)?)?,
                    rep_levels_byte_len: count(second(6)?)?,
                    is_compressed: is_packed,
                    statistics: None,
                },
                _ => return Err(general(format!("Unexpected PageType {kind}"))),
            }));
        }
        Ok(None)
    }

    /// What is packed behind the levels, to `size` bytes with these.
    fn unpack(&mut self, packed: Vec<u8>, levels: usize, size: usize) -> Result<Bytes> {
        if self.codec == CompressionCodec::UNCOMPRESSED {
            return Ok(packed.into());
        }
        let (head, packed) = packed.split_at_checked(levels).unzip();
        let (Some(head), Some(packed), Some(len)) = (head, packed, size.checked_sub(levels)) else {
            return Err(general("Invalid page header"));
        };
        let mut out = head.to_vec();
        // Nothing is packed of a page of nulls.
        if len > 0 {
            self.unpack_to(packed, &mut out, size)?;
        }
        match out.len() {
            found if found != size => Err(general(format!(
                "Actual decompressed size doesn't match the expected one ({found} vs {size})"
            ))),
            _ => Ok(out.into()),
        }
    }

    /// Appends until there are `size` bytes, or one more.
    fn unpack_to(&mut self, packed: &[u8], out: &mut Vec<u8>, size: usize) -> Result<()> {
        let wrong = |e: &dyn core::fmt::Display| general(e.to_string());
        let begin = out.len();
        // Of decoders that read, memory grows with what is there.
        let all = |from: &mut dyn Read, out: &mut Vec<u8>| {
            from.take((size - begin) as u64 + 1).read_to_end(out).map_err(|e| wrong(&e))
        };
        let written = match self.codec {
            CompressionCodec::GZIP => {
                all(&mut flate2::read::MultiGzDecoder::new(packed), out)?;
                return Ok(());
            }
            CompressionCodec::BROTLI => {
                all(&mut brotli_decompressor::Decompressor::new(packed, BUFFER), out)?;
                return Ok(());
            }
            codec => {
                if size - begin > most_unpacked(codec, packed.len()) {
                    return Err(general("a page claims more than is packed in it"));
                }
                out.resize(size, 0);
                let to = &mut out[begin..];
                match codec {
                    CompressionCodec::SNAPPY => {
                        let unpacked = snap::raw::Decoder::new().decompress(packed, to);
                        unpacked.map_err(|e| wrong(&e))?
                    }
                    CompressionCodec::ZSTD => {
                        let zstd = match self.zstd.take() {
                            Some(zstd) => zstd,
                            None => zstd::bulk::Decompressor::new().map_err(|e| wrong(&e))?,
                        };
                        let unpacked = self.zstd.insert(zstd).decompress_to_buffer(packed, to);
                        unpacked.map_err(|e| wrong(&e))?
                    }
                    CompressionCodec::LZ4_RAW => lz4(packed, to)?,
                    CompressionCodec::LZ4 => match lz4_of_hadoop(packed, to) {
                        Some(()) => to.len(),
                        // Other libraries wrote frames under this name, or what is raw now.
                        None => {
                            let mut frame = lz4_flex::frame::FrameDecoder::new(packed);
                            match frame.read_exact(to).is_ok() {
                                true => to.len(),
                                false => lz4(packed, to)?,
                            }
                        }
                    },
                    other => {
                        let what = format!("The codec type {other:?} is not supported yet");
                        return Err(ParquetError::NYI(what));
                    }
                }
            }
        };
        out.truncate(begin + written);
        Ok(())
    }
}

/// More bytes than so many packed ones hold, so that memory is made for no other claims: a copy of 64
/// bytes takes Snappy three, a longer match LZ4 one for 255, and a block of 128 KiB zstd four.
fn most_unpacked(codec: CompressionCodec, packed: usize) -> usize {
    packed.saturating_mul(match codec {
        CompressionCodec::SNAPPY => 1 << 5,
        CompressionCodec::ZSTD => 1 << 15,
        _ => 1 << 8,
    })
}

/// Whether a page holds as many values of `size` bytes as it names.
fn is_sound(page: &Page, optional: bool, size: usize) -> bool {
    if let Page::DictionaryPage { buf, num_values, .. } = page {
        // Its decoder makes room for that many values before it looks.
        let values = u64::from(*num_values);
        return values.saturating_mul(size as u64) <= buf.len() as u64;
    }
    let prefixes = match page.encoding() {
        Encoding::DELTA_BYTE_ARRAY => true,
        Encoding::DELTA_LENGTH_BYTE_ARRAY => false,
        _ => return true,
    };
    let levels = match page {
        Page::DataPage { buf, def_level_encoding: Encoding::RLE, .. } if optional => {
            let len = buf.first_chunk().map(|len| u32::from_le_bytes(*len));
            len.and_then(|len| usize::try_from(len).ok()?.checked_add(4))
        }
        Page::DataPage { .. } if optional => None,
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            (*def_levels_byte_len as usize).checked_add(*rep_levels_byte_len as usize)
        }
        _ => Some(0),
    };
    let values = levels.and_then(|n| page.buffer().get(n..));
    values.is_some_and(|v| delta::is_bounded(v, u64::from(page.num_values()), prefixes))
}

fn lz4(packed: &[u8], to: &mut [u8]) -> Result<usize> {
    lz4_flex::block::decompress_into(packed, to).map_err(|e| general(e.to_string()))
}

/// Blocks as Hadoop writes them, each behind its lengths unpacked and packed, that fill `to`.
fn lz4_of_hadoop(mut packed: &[u8], mut to: &mut [u8]) -> Option<()> {
    while !packed.is_empty() {
        let (lengths, rest) = packed.split_first_chunk::<8>()?;
        let [len, packed_len] = [0, 4].map(|i| {
            u32::from_be_bytes([lengths[i], lengths[i + 1], lengths[i + 2], lengths[i + 3]])
        });
        let (block, rest) = rest.split_at_checked(packed_len as usize)?;
        let (now, later) = to.split_at_mut_checked(len as usize)?;
        if lz4(block, now).ok()? != now.len() {
            return None;
        }
        (packed, to) = (rest, later);
    }
    to.is_empty().then_some(())
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        match self.next_page()? {
            Some(page) if !is_sound(&page, self.optional, self.size) => {
                Err(general("a page names more values than it holds"))
            }
            page => Ok(page),
        }
    }

    // Only readers of lists look ahead, and those of rows that are left out.
    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Err(general("pages are read one after the other"))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        Err(general("pages are read one after the other"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_holds_its_values() {
        let dictionary = |num_values| Page::DictionaryPage {
            buf: Bytes::from_static(&[0; 12]),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let is_sound = |values| is_sound(&dictionary(values), false, 4);
        assert!(is_sound(0) && is_sound(3));
        assert!(!is_sound(4) && !is_sound(u32::MAX));
    }

    #[test]
    fn memory_is_made_for_what_can_be_packed() {
        let zeros = [0; 1 << 20];
        let packed = [
            (CompressionCodec::SNAPPY, snap::raw::Encoder::new().compress_vec(&zeros).unwrap()),
            (CompressionCodec::LZ4_RAW, lz4_flex::block::compress(&zeros)),
            (CompressionCodec::ZSTD, zstd::bulk::compress(&zeros, 1).unwrap()),
        ];
        for (codec, packed) in packed {
            let most = most_unpacked(codec, packed.len());
            assert!((zeros.len()..64 * zeros.len()).contains(&most), "{codec:?}: {most}");
        }
        // Other codecs make memory as they go, or none.
        assert_eq!(most_unpacked(CompressionCodec::ZSTD, usize::MAX), usize::MAX);
    }

    #[test]
    fn blocks_of_hadoop_fill_what_they_are_for() {
        let block = |text: &[u8]| {
            let packed = lz4_flex::block::compress(text);
            let lengths = [text.len() as u32, packed.len() as u32].map(u32::to_be_bytes).concat();
            [lengths, packed].concat()
        };
        let packed = [block(b"one, one, one, one"), block(b""), block(b"two")].concat();
        let mut out = [0; 21];
        assert_eq!(lz4_of_hadoop(&packed, &mut out), Some(()));
        assert_eq!(&out, b"one, one, one, onetwo");
        assert_eq!(lz4_of_hadoop(&packed, &mut [0; 20]), None);
        assert_eq!(lz4_of_hadoop(&packed, &mut [0; 22]), None);
        assert_eq!(lz4_of_hadoop(&packed[..packed.len() - 1], &mut out), None);
    }
}
