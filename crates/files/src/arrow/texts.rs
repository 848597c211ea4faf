//! Columns of texts, which are keys of groups: offsets into bytes, views, and dictionaries of
//! these.
//!
//! A batch is decoded as a whole: views lead anywhere in it.

use super::decode::{ArrowBlock, Bytes};
use super::plan::{Codec, Span, TextPlan};
use super::schema::TextForm;
use crate::fixed::stream_error;
use crate::{Batch, Block, Endian, Error, Result};
use std::io::{self, Read};
use std::sync::Arc;
use warpfold_core::DType;

/// A dictionary is held in memory: no larger one is.
const LARGEST: usize = 256 << 20;

/// The texts of a batch, or those of a dictionary.
pub(super) struct TextBuffers {
    pub(super) name: Arc<str>,
    pub(super) form: TextForm,
    pub(super) endian: Endian,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) validity: Option<Bytes>,
    /// Offsets and bytes; or views, and what they lead to.
    pub(super) buffers: Vec<Bytes>,
    pub(super) codec: Option<Codec>,
}

impl TextBuffers {
    /// Those that a plan finds, which `bytes` reads.
    pub(super) fn new(
        name: &Arc<str>,
        (form, endian): (TextForm, Endian),
        plan: &TextPlan,
        bytes: impl Fn(Span) -> Bytes,
    ) -> TextBuffers {
        TextBuffers {
            name: Arc::clone(name),
            form,
            endian,
            rows: plan.rows,
            bytes: plan.bytes(),
            validity: plan.validity.map(&bytes),
            buffers: plan.buffers.iter().map(|&span| bytes(span)).collect(),
            codec: plan.codec,
        }
    }

    /// Calls `each` with the text of each row.
    ///
    /// # Errors
    /// Those of reading, damaged data, and those of `each`.
    fn for_each(self, mut each: impl FnMut(Option<&[u8]>) -> Result<()>) -> Result<()> {
        let name = Arc::clone(&self.name);
        let damaged = |what: &str| Error::format(&*name, format!("damaged Arrow data: {what}"));
        let read = |bytes: Bytes| -> Result<Vec<u8>> {
            let mut all = Vec::new();
            let done = bytes.reader(self.codec).and_then(|mut from| from.read_to_end(&mut all));
            match done {
                Ok(_) => Ok(all),
                Err(error) if error.kind() == io::ErrorKind::Other => {
                    Err(damaged(&error.to_string()))
                }
                Err(error) => Err(stream_error(&name, error)),
            }
        };
        let rows = usize::try_from(self.rows).map_err(|_| damaged("more rows than memory"))?;
        let validity = self.validity.map(&read).transpose()?;
        if validity.as_ref().is_some_and(|bits| bits.len() < rows.div_ceil(8)) {
            return Err(damaged("a buffer is shorter than its column"));
        }
        let has =
            |row: usize| validity.as_ref().is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 == 1);
        let buffers = self.buffers.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        let Some((places, texts)) = buffers.split_first() else {
            return Err(damaged("a record batch lacks a buffer"));
        };
        let endian = self.endian;
        for row in 0..rows {
            if !has(row) {
                each(None)?;
                continue;
            }
            let text = match self.form {
                TextForm::Offsets(size) => between(places, texts, size, row, endian),
                TextForm::Views => viewed(places, texts, row, endian),
            };
            each(Some(text.ok_or_else(|| damaged("a text lies outside its buffer"))?))?;
        }
        Ok(())
    }
}

/// The text between two offsets of `size` bytes.
fn between<'a>(
    offsets: &[u8],
    texts: &'a [Vec<u8>],
    size: usize,
    row: usize,
    endian: Endian,
) -> Option<&'a [u8]> {
    let at = |row: usize| {
        let bytes = offsets.get(row.checked_mul(size)?..row.checked_add(1)?.checked_mul(size)?)?;
        usize::try_from(integer(bytes, endian)).ok()
    };
    texts.first()?.get(at(row)?..at(row + 1)?)
}

/// The text of a view: a length, and the text itself or where it is.
fn viewed<'a>(
    views: &'a [u8],
    texts: &'a [Vec<u8>],
    row: usize,
    endian: Endian,
) -> Option<&'a [u8]> {
    let view = views.get(row.checked_mul(16)?..row.checked_add(1)?.checked_mul(16)?)?;
    let number = |i: usize| usize::try_from(integer(&view[4 * i..4 * i + 4], endian)).ok();
    let len = number(0)?;
    if len <= 12 {
        return view.get(4..4 + len);
    }
    let start = number(3)?;
    texts.get(number(2)?)?.get(start..start.checked_add(len)?)
}

/// An integer with a sign, of 4 or 8 bytes.
fn integer(bytes: &[u8], endian: Endian) -> i64 {
    let mut wide = [0; 8];
    for (i, &byte) in bytes.iter().enumerate() {
        let place = if endian == Endian::Little { i } else { bytes.len() - 1 - i };
        wide[place] = byte;
    }
    let unused = 64 - 8 * bytes.len() as u32;
    i64::from_le_bytes(wide) << unused >> unused
}

/// The texts that keys name.
#[derive(Clone, Debug, Default)]
pub(super) struct TextDictionary {
    bytes: Vec<u8>,
    /// Where each ends; `None` for one that is null.
    ends: Vec<(usize, bool)>,
}

impl TextDictionary {
    /// Appends texts.
    ///
    /// # Errors
    /// Those of reading; more than are held in memory.
    pub(super) fn append(&mut self, texts: TextBuffers) -> Result<()> {
        let name = Arc::clone(&texts.name);
        texts.for_each(|text| {
            self.bytes.extend_from_slice(text.unwrap_or_default());
            self.ends.push((self.bytes.len(), text.is_some()));
            if self.bytes.len() + 16 * self.ends.len() > LARGEST {
                return Err(Error::format(&*name, "the dictionary has more than 256 MiB of texts")
                    .with_hint("write the column without a dictionary"));
            }
            Ok(())
        })
    }

    /// The text of a key: the outer one is missing where the key names nothing.
    fn get(&self, key: usize) -> Option<Option<&[u8]>> {
        let &(end, present) = self.ends.get(key)?;
        let start = key.checked_sub(1).map_or(0, |before| self.ends[before].0);
        Some(present.then(|| &self.bytes[start..end]))
    }
}

/// All rows of a batch of a column of texts.
pub(super) enum TextBlock {
    Plain(TextBuffers),
    /// Keys, which have no dictionary of numbers, and the texts that they name.
    Coded(ArrowBlock, Arc<TextDictionary>),
}

impl Block for TextBlock {
    fn rows(&self) -> Option<u64> {
        Some(match self {
            TextBlock::Plain(texts) => texts.rows,
            TextBlock::Coded(keys, _) => keys.rows,
        })
    }

    fn bytes(&self) -> u64 {
        match self {
            TextBlock::Plain(texts) => texts.bytes,
            TextBlock::Coded(keys, _) => keys.bytes,
        }
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        batch.reset(DType::U32);
        match *self {
            TextBlock::Plain(texts) => {
                let name = Arc::clone(&texts.name);
                texts.for_each(|text| push(batch, text, &name))?;
                sink(batch)
            }
            TextBlock::Coded(keys, texts) => {
                let (name, stored) = (Arc::clone(&keys.name), keys.stored);
                let mut codes = Batch::new(stored);
                keys.unpack(&mut codes, &mut |codes| {
                    batch.reset(DType::U32);
                    let (mut row, mut items) = (0, codes.bytes().chunks_exact(stored.size()));
                    let mut some = |batch: &mut Batch, rows: u64| -> Result<()> {
                        for item in items.by_ref().take(rows as usize) {
                            let key = key(item, stored);
                            let place = usize::try_from(key).ok().and_then(|key| texts.get(key));
                            let text = place.ok_or_else(|| {
                                Error::format(
                                    &*name,
                                    format!("damaged Arrow data: the key {key} names no text"),
                                )
                            })?;
                            push(batch, text, &name)?;
                        }
                        Ok(())
                    };
                    for gap in codes.gaps() {
                        some(batch, gap.row - row)?;
                        batch.skip(gap.len);
                        row = gap.row + gap.len;
                    }
                    some(batch, codes.rows() - row)?;
                    sink(batch)
                })
            }
        }
    }
}

/// A key of a dictionary, in native byte order.
fn key(bytes: &[u8], stored: DType) -> i64 {
    let endian = if cfg!(target_endian = "little") { Endian::Little } else { Endian::Big };
    let wide = integer(bytes, endian);
    match stored {
        DType::U8 => wide & 0xff,
        DType::U16 => wide & 0xffff,
        DType::U32 => wide & 0xffff_ffff,
        // Beyond 2^63 there is no text, as there is none below 0.
        _ => wide,
    }
}

fn push(batch: &mut Batch, text: Option<&[u8]>, name: &str) -> Result<()> {
    match text {
        None => batch.skip(1),
        Some(text) => {
            if !batch.push_text(text) {
                return Err(Error::format(
                    name,
                    "the texts of a block of rows are longer than 4 GiB",
                ));
            }
        }
    }
    Ok(())
}
