//! A column in memory of its own, some of whose rows may have no value.

use crate::cast::{bits_of, cast, lost, put, room};
use pyo3::PyResult;
use std::ops::Range;
use warpfold::{DType, Input, Result, View};

/// Elements one after the other, and a bit for each that says whether it counts.
pub(crate) struct Masked {
    dtype: DType,
    /// Whole words, so that elements of every type are aligned.
    words: Vec<u64>,
    bits: Vec<u8>,
    rows: usize,
}

impl Masked {
    pub(crate) fn new(dtype: DType) -> Masked {
        Masked { dtype, words: Vec::new(), bits: Vec::new(), rows: 0 }
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Makes room for more rows, none of which has a value yet, and returns the first.
    pub(crate) fn grow(&mut self, rows: usize) -> usize {
        let first = self.rows;
        self.rows += rows;
        self.words.resize((self.rows * self.dtype.size()).div_ceil(8), 0);
        self.bits.resize(self.rows.div_ceil(8), 0);
        first
    }

    /// Appends the rows of a column of the same type.
    ///
    /// # Errors
    /// An array of something else than numbers.
    pub(crate) fn append(&mut self, input: &Input<'_>) -> Result<()> {
        let view = input.view()?;
        let (rows, size) = (view.len(), self.dtype.size());
        let first = self.grow(rows);
        let to: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        view.read_column(0, &mut to[first * size..(first + rows) * size]);
        (0..rows).filter(|&row| input.is_valid(row)).for_each(|row| self.mark(first + row));
        Ok(())
    }

    /// Writes a row's element.
    pub(crate) fn set(&mut self, row: usize, item: &[u8]) {
        let to: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        to[row * item.len()..(row + 1) * item.len()].copy_from_slice(item);
        self.mark(row);
    }

    fn mark(&mut self, row: usize) {
        self.bits[row / 8] |= 1 << (row % 8);
    }

    /// Says that the rows with a NaN have no value.
    pub(crate) fn leave_out_nans(&mut self) {
        let (dtype, size) = (self.dtype, self.dtype.size());
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        for row in 0..self.rows {
            let mut bits = [0; 8];
            let at = if cfg!(target_endian = "little") { 0 } else { 8 - size };
            bits[at..at + size].copy_from_slice(&bytes[row * size..(row + 1) * size]);
            let scalar = warpfold::Scalar::from_bits(dtype, u64::from_ne_bytes(bits));
            if scalar.to_f64().is_nan() {
                self.bits[row / 8] &= !(1 << (row % 8));
            }
        }
    }

    /// The same numbers as those of another type.
    ///
    /// # Errors
    /// `OverflowError` for a number that the type does not have; `MemoryError`.
    pub(crate) fn cast(self, to: DType) -> PyResult<Masked> {
        if self.dtype == to {
            return Ok(self);
        }
        let (from, bytes) = (self.dtype, bytemuck::cast_slice::<u64, u8>(&self.words));
        let mut words = room(to, self.rows)?;
        let items = bytemuck::cast_slice_mut::<u64, u8>(&mut words).chunks_exact_mut(to.size());
        for (row, (to_item, item)) in items.zip(bytes.chunks_exact(from.size())).enumerate() {
            if row < self.rows && self.has(row) {
                let bits = bits_of(item);
                put(to_item, cast(bits, from, to).ok_or_else(|| lost(bits, from, to))?);
            }
        }
        Ok(Masked { dtype: to, words, bits: self.bits, rows: self.rows })
    }

    fn has(&self, row: usize) -> bool {
        self.bits[row / 8] >> (row % 8) & 1 == 1
    }

    /// Some of the rows.
    ///
    /// # Errors
    /// None for rows that are there.
    pub(crate) fn input(&self, rows: Range<usize>) -> Result<Input<'_>> {
        let size = self.dtype.size();
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        let view = View::from_bytes(
            self.dtype,
            &bytes[rows.start * size..rows.end * size],
            &[rows.len()],
        )?;
        Input::masked_view(view, &self.bits, rows.start)
    }
}

impl Masked {
    /// The elements as an array, if all have a value.
    pub(crate) fn into_dense(self) -> Option<PyResult<crate::dense::Dense>> {
        (0..self.rows)
            .all(|row| self.has(row))
            .then(|| crate::dense::Dense::of_words(self.dtype, self.words, vec![self.rows]))
    }
}
