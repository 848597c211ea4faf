//! The values of a dictionary-encoded column, and what its keys mean.

use super::decode::ArrowBlock;
use crate::{Batch, Block, Error, Result};
use warpfold_core::DType;

/// A dictionary is held in memory: no larger one is.
const LARGEST: u64 = 256 << 20;

/// The values that keys name.
#[derive(Clone, Debug)]
pub(super) struct Dictionary {
    dtype: DType,
    /// The values in native byte order, nulls as zeros.
    values: Vec<u8>,
    /// Whether each is a value and no null; empty if all are.
    present: Vec<bool>,
}

impl Dictionary {
    pub(super) fn new(dtype: DType) -> Self {
        Dictionary { dtype, values: Vec::new(), present: Vec::new() }
    }

    /// The type of the values.
    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    fn len(&self) -> usize {
        self.values.len() / self.dtype.size()
    }

    /// Appends the values of a block, which has the type of the dictionary.
    ///
    /// # Errors
    /// What decoding finds; more values than are held in memory.
    pub(super) fn append(&mut self, block: ArrowBlock) -> Result<()> {
        let name = block.name.clone();
        let size = self.dtype.size();
        let total = block.rows.saturating_add(self.len() as u64).saturating_mul(size as u64);
        if total > LARGEST {
            return Err(Error::format(&*name, "the dictionary has more than 256 MiB of values")
                .with_hint("write the column without a dictionary: cast it to its values' type"));
        }
        let mut batch = Batch::new(self.dtype);
        Box::new(block).decode(&mut batch, &mut |batch| {
            let (mut row, mut bytes) = (0, batch.bytes());
            for gap in batch.gaps() {
                let (run, rest) = bytes.split_at((gap.row - row) as usize * size);
                bytes = rest;
                self.extend(run);
                self.present.resize(self.len(), true);
                self.values.resize(self.values.len() + gap.len as usize * size, 0);
                self.present.resize(self.len(), false);
                row = gap.row + gap.len;
            }
            self.extend(bytes);
            Ok(())
        })
    }

    fn extend(&mut self, values: &[u8]) {
        self.values.extend_from_slice(values);
        if !self.present.is_empty() {
            self.present.resize(self.len(), true);
        }
    }

    /// Appends the values of `keys`, elements of type `stored`, to a batch.
    ///
    /// # Errors
    /// A key that names nothing.
    pub(super) fn look_up(
        &self,
        stored: DType,
        keys: &[u8],
        batch: &mut Batch,
    ) -> Result<(), String> {
        if stored.is_float() || stored == DType::Bool {
            return Err("keys that are not integers".into());
        }
        let signed = stored.is_signed_int();
        match stored.size() {
            1 => self.with_keys(keys, signed, batch, |[key]| key.into()),
            2 => self.with_keys(keys, signed, batch, |key| u16::from_ne_bytes(key).into()),
            4 => self.with_keys(keys, signed, batch, |key| u32::from_ne_bytes(key).into()),
            _ => self.with_keys(keys, signed, batch, u64::from_ne_bytes),
        }
    }

    fn with_keys<const K: usize>(
        &self,
        keys: &[u8],
        signed: bool,
        batch: &mut Batch,
        bits: impl Fn([u8; K]) -> u64,
    ) -> Result<(), String> {
        let (keys, _) = keys.as_chunks::<K>();
        match self.dtype.size() {
            1 => self.values_of::<K, 1>(keys, signed, batch, bits),
            2 => self.values_of::<K, 2>(keys, signed, batch, bits),
            4 => self.values_of::<K, 4>(keys, signed, batch, bits),
            _ => self.values_of::<K, 8>(keys, signed, batch, bits),
        }
    }

    fn values_of<const K: usize, const V: usize>(
        &self,
        keys: &[[u8; K]],
        signed: bool,
        batch: &mut Batch,
        bits: impl Fn([u8; K]) -> u64,
    ) -> Result<(), String> {
        let (values, _) = self.values.as_chunks::<V>();
        let unused = if signed { 64 - 8 * K } else { 0 };
        let place = |key: &[u8; K]| {
            // Negative keys are larger than all places.
            let key = ((bits(*key) << unused).cast_signed() >> unused).cast_unsigned();
            let place = usize::try_from(key).ok().filter(|&place| place < values.len());
            place.ok_or_else(|| {
                let key = if signed { i128::from(key.cast_signed()) } else { key.into() };
                format!("the key {key} is not among the {} values", values.len())
            })
        };
        if self.present.is_empty() {
            let (out, _) = batch.grow(keys.len() * V).as_chunks_mut::<V>();
            for (out, key) in out.iter_mut().zip(keys) {
                *out = values[place(key)?];
            }
            return Ok(());
        }
        for key in keys {
            let place = place(key)?;
            if self.present[place] {
                batch.grow(V).copy_from_slice(&values[place]);
            } else {
                batch.skip(1);
            }
        }
        Ok(())
    }
}
