//! Texts that Parquet keeps in a dictionary, as the codes that the file has for them.
//!
//! The library's reader makes a text of each row. A column of keys has few distinct ones,
//! and what follows wants to know which of them a row has: the code says so, in a quarter
//! of the time. Whatever is not as usual here (a page without codes, levels in an old
//! encoding, damage) is left to the library's reader, errors included.
//!
//! The layout: Parquet format, "Encodings", run length and bit packing hybrid.

use crate::Batch;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use warpfold_core::DType;

/// How the rows of a column chunk are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// How many there are.
    pub(super) rows: u64,
    /// The level of a row that has a value.
    pub(super) full: i16,
}

/// Puts the codes of all rows into a batch, with the texts that they stand for. `None` if
/// the library's reader is to do it.
pub(super) fn read(pages: &mut dyn PageReader, chunk: Chunk, batch: &mut Batch) -> Option<()> {
    batch.reset(DType::U32);
    let mut texts = None;
    let (mut levels, mut codes) = (Vec::new(), Vec::new());
    while batch.rows() < chunk.rows {
        let page = pages.get_next_page().ok()??;
        if let Page::DictionaryPage { buf, num_values, encoding, .. } = &page {
            let plain = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
            let first = texts.is_none() && plain;
            texts = Some(first.then(|| batch.set_dictionary(plain_texts(buf, *num_values)))??);
            continue;
        }
        let count = u64::from(page.num_values());
        if count > chunk.rows - batch.rows() {
            return None;
        }
        let (mut values, present) = read_levels(&page, chunk.full, &mut levels)?;
        let distinct = texts?;
        let width = u32::from(*values.split_off_first()?);
        codes.clear();
        Hybrid { bytes: values, width }.read(present, &mut codes)?;
        if codes.iter().any(|&code| code >= distinct) {
            return None;
        }
        let mut rest = &codes[..];
        for run in levels.chunk_by(|a, b| (*a == chunk.full as u32) == (*b == chunk.full as u32)) {
            if run[0] == chunk.full as u32 {
                let (now, later) = rest.split_at_checked(run.len())?;
                batch.extend(now);
                rest = later;
            } else {
                batch.skip(run.len() as u64);
            }
        }
        if levels.is_empty() {
            batch.extend(rest);
        }
    }
    Some(())
}

/// The texts of a dictionary, each behind its length.
fn plain_texts(mut bytes: &[u8], count: u32) -> impl Iterator<Item = Option<&[u8]>> {
    (0..count).map(move |_| {
        let (len, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        bytes = rest;
        Some(text)
    })
}

/// The levels of a page's rows, none where every row has a value; then the bytes of its
/// values, and how many there are.
fn read_levels<'p>(page: &'p Page, full: i16, levels: &mut Vec<u32>) -> Option<(&'p [u8], usize)> {
    levels.clear();
    let count = page.num_values() as usize;
    let coded =
        |encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
    let (bytes, values) = match page {
        Page::DataPage { buf, encoding, def_level_encoding, .. } if coded(*encoding) => {
            if full == 0 {
                return Some((buf, count));
            }
            let (len, rest) = buf.split_first_chunk()?;
            let fits = *def_level_encoding == Encoding::RLE;
            let len = u32::from_le_bytes(*len) as usize;
            fits.then(|| rest.split_at_checked(len)).flatten()?
        }
        Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. }
            if coded(*encoding) && *rep_levels_byte_len == 0 =>
        {
            let (bytes, values) = buf.split_at_checked(*def_levels_byte_len as usize)?;
            if full == 0 {
                return Some((values, count));
            }
            (bytes, values)
        }
        _ => return None,
    };
    let width = u32::BITS - (full as u32).leading_zeros();
    Hybrid { bytes, width }.read(count, levels)?;
    Some((values, levels.iter().filter(|&&level| level == full as u32).count()))
}

/// Numbers of `width` bits, some of them in runs and some packed, eight at a time.
struct Hybrid<'a> {
    bytes: &'a [u8],
    width: u32,
}

impl Hybrid<'_> {
    /// Appends `count` numbers. `None` if there are fewer, or wider ones than 32 bits.
    fn read(mut self, count: usize, out: &mut Vec<u32>) -> Option<()> {
        if self.width > u32::BITS {
            return None;
        }
        let end = out.len() + count;
        while out.len() < end {
            let left = end - out.len();
            let header = self.varint()?;
            if header & 1 == 0 {
                let run = usize::try_from(header >> 1).ok()?;
                let size = self.width.div_ceil(8) as usize;
                let (bytes, rest) = self.bytes.split_at_checked(size)?;
                self.bytes = rest;
                let mut word = [0; 4];
                word[..size].copy_from_slice(bytes);
                out.resize(out.len() + run.min(left), u32::from_le_bytes(word));
            } else {
                let packed = usize::try_from(header >> 1).ok()?.checked_mul(8)?;
                let size = (packed / 8).checked_mul(self.width as usize)?;
                let taken = packed.min(left);
                // Some writers leave out the padding of the last group.
                let (bytes, rest) = self.bytes.split_at(size.min(self.bytes.len()));
                self.bytes = rest;
                unpack(bytes, self.width, taken, out)?;
            }
        }
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u32::BITS).step_by(7) {
            let byte = *self.bytes.split_off_first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

/// Appends `count` numbers of `width` bits that lie one behind the other, the low bits first.
fn unpack(bytes: &[u8], width: u32, count: usize, out: &mut Vec<u32>) -> Option<()> {
    let bits = count.checked_mul(width as usize)?;
    if bits.div_ceil(8) > bytes.len() {
        return None;
    }
    let mask = (1u64 << width) - 1;
    let number = |i: usize, word: [u8; 8]| {
        (u64::from_le_bytes(word) >> (i * width as usize % 8) & mask) as u32
    };
    // A number of up to 32 bits that begins in a byte ends in the four after it: eight can
    // be read at once as long as there are so many.
    let whole = match width {
        0 => count,
        _ => (bytes.len().saturating_sub(7) * 8 / width as usize).min(count),
    };
    out.reserve(count);
    out.extend((0..whole).map_while(|i| {
        let at = i * width as usize / 8;
        Some(number(i, *bytes.get(at..)?.first_chunk().unwrap_or(&[0; 8])))
    }));
    out.extend((whole..count).map(|i| {
        let mut word = [0; 8];
        let rest = &bytes[i * width as usize / 8..];
        let len = rest.len().min(8);
        word[..len].copy_from_slice(&rest[..len]);
        number(i, word)
    }));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_varint(mut value: usize, out: &mut Vec<u8>) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    /// The numbers packed, or equal ones in runs, as writers may.
    fn written(numbers: &[u32], width: u32, packed: bool) -> Vec<u8> {
        let mut out = Vec::new();
        if !packed {
            for run in numbers.chunk_by(|a, b| a == b) {
                write_varint(run.len() << 1, &mut out);
                out.extend(&run[0].to_le_bytes()[..width.div_ceil(8) as usize]);
            }
            return out;
        }
        let groups = numbers.len().div_ceil(8);
        write_varint(groups << 1 | 1, &mut out);
        let mut bits = vec![false; groups * 8 * width as usize];
        for (i, &number) in numbers.iter().enumerate() {
            (0..width).for_each(|b| bits[i * width as usize + b as usize] = number >> b & 1 == 1);
        }
        let byte = |bits: &[bool]| {
            bits.iter().enumerate().fold(0, |all, (i, &bit)| all | u8::from(bit) << i)
        };
        out.extend(bits.chunks(8).map(byte));
        out
    }

    #[test]
    fn numbers_of_every_width_are_read_back() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 32) as u32
        };
        for width in 0..=32u32 {
            for count in [0, 1, 7, 8, 9, 60, 1000] {
                let mask = ((1u64 << width) - 1) as u32;
                let numbers: Vec<u32> = (0..count).map(|_| random() & mask).collect();
                for packed in [true, false] {
                    let bytes = written(&numbers, width, packed);
                    let mut out = vec![9];
                    Hybrid { bytes: &bytes, width }.read(count, &mut out).unwrap();
                    assert_eq!(out[1..], numbers, "{width} bits, {count}, {packed}");
                    // Too few bytes are no numbers; padding alone may be left out.
                    let short = &bytes[..bytes.len().saturating_sub(1 + width as usize)];
                    if count > 8 && width > 0 {
                        let read = Hybrid { bytes: short, width }.read(count, &mut out);
                        assert_eq!(read, None, "{width} bits, {count}, {packed}");
                    }
                }
            }
        }
        assert_eq!(Hybrid { bytes: &[2], width: 33 }.read(1, &mut Vec::new()), None);
        assert_eq!(Hybrid { bytes: &[0x80; 9], width: 1 }.read(1, &mut Vec::new()), None);
        // Runs of nothing end with the bytes.
        assert_eq!(Hybrid { bytes: &[0; 9], width: 0 }.read(1, &mut Vec::new()), None);
    }

    #[test]
    fn a_dictionary_that_ends_early_has_no_texts() {
        let texts =
            |bytes: &'static [u8], count| plain_texts(bytes, count).collect::<Option<Vec<_>>>();
        assert_eq!(texts(b"\x01\0\0\0a\0\0\0\0", 2), Some(vec![&b"a"[..], b""]));
        assert_eq!(texts(b"\x01\0\0\0a\0\0\0", 2), None);
        assert_eq!(texts(b"\xff\xff\xff\xffa", 1), None);
        assert_eq!(texts(b"", u32::MAX), None);
    }
}
