//! From batches to columns of keys.

use super::joined::Kind;
use crate::Batch;
use crate::table::Typing;
use warpfold::{Input, KeyColumn, View};
use warpfold_core::{DType, Result, with_element};

/// Memory for keys some of which are missing.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    words: Vec<u64>,
    bits: Vec<u8>,
    ends: Vec<u32>,
    gaps: Vec<(u32, u32)>,
}

impl Scratch {
    /// The keys of a batch's rows.
    ///
    /// # Errors
    /// None but for batches that contradict themselves.
    pub(super) fn keys<'a>(&'a mut self, batch: &'a Batch, kind: &Kind) -> Result<KeyColumn<'a>> {
        match kind.typing {
            Typing::Text => Ok(self.texts(batch)),
            _ => Ok(counting(self.numbers(batch)?.beyond(&batch.wide, 0), kind)),
        }
    }

    fn numbers<'a>(&'a mut self, batch: &'a Batch) -> Result<KeyColumn<'a>> {
        let dtype = batch.dtype();
        let rows = batch.rows() as usize;
        if batch.gaps().is_empty() {
            return Ok(View::from_bytes(dtype, batch.bytes(), &[rows])?.into());
        }
        let size = dtype.size();
        self.words.clear();
        self.words.resize((rows * size).div_ceil(8), 0);
        self.bits.clear();
        self.bits.resize(rows.div_ceil(8), 0);
        let to: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut self.words)[..rows * size];
        let bits = &mut self.bits;
        let mut from = batch.bytes();
        for_each_run(batch, |first, len| {
            let (now, later) = from.split_at(len * size);
            from = later;
            to[first * size..(first + len) * size].copy_from_slice(now);
            (first..first + len).for_each(|row| bits[row / 8] |= 1 << (row % 8));
        });
        with_element!(dtype, T => {
            let items: &[T] = bytemuck::cast_slice(&*to);
            Ok(Input::masked(items, &self.bits, 0)?.into())
        })
    }

    fn texts<'a>(&'a mut self, batch: &'a Batch) -> KeyColumn<'a> {
        let ends: &[u32] = if batch.is_empty() { &[] } else { bytemuck::cast_slice(batch.bytes()) };
        // Codes of texts, where the batch has these.
        let column = |ends, gaps| match &batch.dictionary {
            None => KeyColumn::packed(&batch.texts, ends, gaps),
            Some(of_codes) => KeyColumn::coded(&batch.texts, of_codes, ends, gaps),
        };
        if batch.missing() == 0 {
            return column(ends, &[]);
        }
        self.ends.clear();
        self.gaps.clear();
        let (all, gaps) = (&mut self.ends, &mut self.gaps);
        let mut rest = ends;
        for_each_run(batch, |first, len| {
            let last = all.last().copied().unwrap_or(0);
            all.resize(first, last);
            let (now, later) = rest.split_at(len);
            rest = later;
            all.extend_from_slice(now);
        });
        let last = all.last().copied().unwrap_or(0);
        all.resize(batch.rows() as usize, last);
        // A unit has fewer rows than 2^32: their texts have places of 32 bits.
        gaps.extend(batch.gaps().iter().map(|gap| (gap.row as u32, gap.len as u32)));
        column(&self.ends, &self.gaps)
    }
}

/// Calls `run` with the first row and the length of each run of rows that have a value.
fn for_each_run(batch: &Batch, mut run: impl FnMut(usize, usize)) {
    let mut row = 0;
    let ends = batch.gaps().iter().map(|gap| (gap.row as usize, gap.len as usize));
    for (first, len) in ends.chain([(batch.rows() as usize, 0)]) {
        if first > row {
            run(row, first - row);
        }
        row = first + len;
    }
}

/// A column of such keys without rows.
pub(super) fn no_keys(kind: &Kind) -> Result<KeyColumn<'static>> {
    Ok(match kind.typing {
        Typing::Text => KeyColumn::packed(&[], &[], &[]),
        Typing::Fixed(dtype) => counting(View::from_bytes(dtype, &[], &[0])?.into(), kind),
        Typing::Open => View::from_bytes(DType::I64, &[], &[0])?.into(),
    })
}

/// Says what keys that are integers count.
fn counting<'a>(keys: KeyColumn<'a>, kind: &Kind) -> KeyColumn<'a> {
    match &kind.unit {
        Some(unit) => keys.counting(unit.clone()),
        None => keys,
    }
}
