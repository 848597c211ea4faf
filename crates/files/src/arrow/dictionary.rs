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
        match stored {
            DType::I8 => self.with_keys(keys, batch, |[k]| i8::from_ne_bytes([k]).into()),
            DType::U8 => self.with_keys(keys, batch, |[k]| k.into()),
            DType::I16 => self.with_keys(keys, batch, |k| i16::from_ne_bytes(k).into()),
            DType::U16 => self.with_keys(keys, batch, |k| u16::from_ne_bytes(k).into()),
            DType::I32 => self.with_keys(keys, batch, |k| i32::from_ne_bytes(k).into()),
            DType::U32 => self.with_keys(keys, batch, |k| u32::from_ne_bytes(k).into()),
            DType::I64 => self.with_keys(keys, batch, |k| i64::from_ne_bytes(k).into()),
            DType::U64 => self.with_keys(keys, batch, |k| u64::from_ne_bytes(k).into()),
            _ => Err("keys that are not integers".into()),
        }
    }

    fn with_keys<const K: usize>(
        &self,
        keys: &[u8],
        batch: &mut Batch,
        number: impl Fn([u8; K]) -> i128,
    ) -> Result<(), String> {
        let (keys, _) = keys.as_chunks::<K>();
        match self.dtype.size() {
            1 => self.values_of::<K, 1>(keys, batch, number),
            2 => self.values_of::<K, 2>(keys, batch, number),
            4 => self.values_of::<K, 4>(keys, batch, number),
            _ => self.values_of::<K, 8>(keys, batch, number),
        }
    }

    fn values_of<const K: usize, const V: usize>(
        &self,
        keys: &[[u8; K]],
        batch: &mut Batch,
        number: impl Fn([u8; K]) -> i128,
    ) -> Result<(), String> {
        let (values, _) = self.values.as_chunks::<V>();
        let place = |key: &[u8; K]| {
            let key = number(*key);
            let place = usize::try_from(key).ok().filter(|&place| place < values.len());
            place.ok_or_else(|| format!("the key {key} is not among the {} values", values.len()))
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
