//! A column in memory of its own, some of whose rows may have no value.

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
    pub(crate) fn into_dense(self) -> Option<pyo3::PyResult<crate::dense::Dense>> {
        let has = |row: usize| self.bits[row / 8] >> (row % 8) & 1 == 1;
        (0..self.rows)
            .all(has)
            .then(|| crate::dense::Dense::of_words(self.dtype, self.words, vec![self.rows]))
    }
}
