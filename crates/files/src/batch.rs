//! Decoded elements of a column, and the positions of its missing values.

use crate::evidence::Evidence;
use crate::{Error, Result, Unit};
use warpfold_core::DType;

/// What to do about a decimal that is too large.
pub(crate) const LARGE: &str = "cast the column to fewer digits behind the point, or to double";

/// Rows without a value: nulls, or empty cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first missing row, counted from the batch's first row.
    pub row: u64,
    /// How many rows are missing.
    pub len: u64,
}

/// A piece of a column: the values in native byte order, without the missing ones.
#[derive(Clone, Debug)]
pub struct Batch {
    dtype: DType,
    /// Whole words, so that elements of every type are aligned.
    words: Vec<u64>,
    bytes: usize,
    gaps: Vec<Gap>,
    missing: u64,
    /// Decimals beyond 64 bits, by their rows, which are among the gaps.
    pub(crate) wide: Vec<(u64, i128)>,
    /// Of a column whose type nobody has told: what its cells say about it.
    pub(crate) evidence: Evidence,
    /// The integers that were written `-0`: what a float would keep of them.
    pub(crate) negative_zeros: Vec<u32>,
    /// Of a column of texts, whose elements are of type u32: all texts, each of which
    /// ends where its element says.
    pub(crate) texts: Vec<u8>,
    /// Of a column of texts, whose elements are codes instead: where the text of each
    /// code ends.
    pub(crate) dictionary: Option<Vec<u32>>,
}

impl Batch {
    /// An empty batch of elements of type `dtype`.
    #[must_use]
    pub fn new(dtype: DType) -> Self {
        Batch {
            dtype,
            words: Vec::new(),
            bytes: 0,
            gaps: Vec::new(),
            missing: 0,
            wide: Vec::new(),
            evidence: Evidence::default(),
            negative_zeros: Vec::new(),
            texts: Vec::new(),
            dictionary: None,
        }
    }

    /// Empties the batch and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes = 0;
        self.gaps.clear();
        self.missing = 0;
        self.wide.clear();
        self.evidence = Evidence::default();
        self.negative_zeros.clear();
        self.texts.clear();
        self.dictionary = None;
    }

    /// Empties the batch for elements of type `dtype` and keeps its memory.
    pub fn reset(&mut self, dtype: DType) {
        self.clear();
        self.dtype = dtype;
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The values' bytes, aligned for the element type.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        (self.bytes / self.dtype.size()) as u64
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// How many rows it covers, missing ones included.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.len() + self.missing
    }

    /// How many rows are missing.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing - self.wide.len() as u64
    }

    /// The gaps in the order of the rows; neighbours are joined.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Makes room for `additional` bytes and returns them, to be filled with whole
    /// elements. Their content is unspecified.
    pub fn grow(&mut self, additional: usize) -> &mut [u8] {
        let start = self.bytes;
        self.bytes += additional;
        let words = self.bytes.div_ceil(8);
        if self.words.len() < words {
            self.words.resize(words.max(self.words.len() * 2), 0);
        }
        &mut bytemuck::cast_slice_mut(&mut self.words)[start..self.bytes]
    }

    /// Appends values.
    pub fn extend<T: bytemuck::Pod>(&mut self, values: &[T]) {
        assert_eq!(size_of::<T>(), self.dtype.size());
        self.grow(size_of_val(values)).copy_from_slice(bytemuck::cast_slice(values));
    }

    /// Appends one value.
    #[inline]
    pub fn push<T: bytemuck::Pod>(&mut self, value: T) {
        self.extend(core::slice::from_ref(&value));
    }

    /// Empties the batch and fills it anew with at most `most` elements of a
    /// type as wide as `dtype`.
    #[cfg(feature = "text")]
    pub(crate) fn refill<T: bytemuck::Pod, R>(
        &mut self,
        dtype: DType,
        most: usize,
        fill: impl FnOnce(&mut Filler<'_, T>) -> R,
    ) -> R {
        self.reset(dtype);
        self.grow(most * size_of::<T>());
        let all: &mut [T] = bytemuck::cast_slice_mut(&mut self.words);
        let mut filler =
            Filler { values: &mut all[..most], used: 0, gaps: &mut self.gaps, missing: 0 };
        let result = fill(&mut filler);
        (self.bytes, self.missing) = (filler.used * size_of::<T>(), filler.missing);
        result
    }

    /// The same bits under the name of another type of the same width.
    #[cfg(feature = "text")]
    pub(crate) fn rename(&mut self, dtype: DType) {
        self.dtype = dtype;
    }

    /// Appends a text. `false` if there is no room for its place.
    #[must_use]
    pub(crate) fn push_text(&mut self, text: &[u8]) -> bool {
        self.texts.extend_from_slice(text);
        let end = u32::try_from(self.texts.len());
        end.map(|end| self.push(end)).is_ok()
    }

    /// Makes this a batch of codes, of these texts in their order, and says how many there
    /// are; `None` if one is missing, or there is no room for its place.
    #[cfg(feature = "parquet")]
    pub(crate) fn set_dictionary<'t>(
        &mut self,
        texts: impl Iterator<Item = Option<&'t [u8]>>,
    ) -> Option<u32> {
        self.texts.clear();
        let mut ends = Vec::new();
        for text in texts {
            self.texts.extend_from_slice(text?);
            ends.push(u32::try_from(self.texts.len()).ok()?);
        }
        let count = u32::try_from(ends.len()).ok()?;
        self.dictionary = Some(ends);
        Some(count)
    }

    /// Appends the rows of another batch of the same type. `false` if texts are too
    /// many, or codes of several dictionaries would meet.
    #[must_use]
    pub(crate) fn append(&mut self, other: &Batch) -> bool {
        let rows = self.rows();
        if self.dictionary.is_some() || other.dictionary.is_some() && rows > 0 {
            return false;
        }
        self.dictionary.clone_from(&other.dictionary);
        let before = self.texts.len();
        self.texts.extend_from_slice(&other.texts);
        if u32::try_from(self.texts.len()).is_err() {
            return false;
        }
        let start = self.bytes;
        self.grow(other.bytes).copy_from_slice(other.bytes());
        if before > 0 {
            let ends = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut self.words)[start..self.bytes];
            for end in ends.chunks_exact_mut(4) {
                let old = u32::from_ne_bytes([end[0], end[1], end[2], end[3]]);
                end.copy_from_slice(&(old + before as u32).to_ne_bytes());
            }
        }
        for gap in &other.gaps {
            match self.gaps.last_mut() {
                Some(last) if last.row + last.len == rows + gap.row => last.len += gap.len,
                _ => self.gaps.push(Gap { row: rows + gap.row, len: gap.len }),
            }
        }
        self.missing += other.missing;
        self.wide.extend(other.wide.iter().map(|&(row, decimal)| (rows + row, decimal)));
        true
    }

    /// Appends a decimal, which may be beyond 64 bits.
    pub(crate) fn push_decimal(&mut self, decimal: i128) {
        match i64::try_from(decimal) {
            Ok(narrow) => self.push(narrow),
            Err(_) => {
                self.wide.push((self.rows(), decimal));
                self.skip(1);
            }
        }
    }

    /// # Errors
    /// A decimal beyond 64 bits, for those that take no such.
    pub(crate) fn check_narrow(&self, name: &str, unit: Option<&Unit>) -> Result<()> {
        let Some(&(_, decimal)) = self.wide.first() else { return Ok(()) };
        let shown = |number: i128| unit.map_or(number.to_string(), |unit| unit.show(number));
        let most = shown(i64::MAX.into());
        let what = format!("the decimal {} is beyond {most}, the largest here", shown(decimal));
        Err(Error::format(name, what).with_hint(LARGE))
    }

    /// Appends `len` missing rows.
    pub fn skip(&mut self, len: u64) {
        if len == 0 {
            return;
        }
        let row = self.rows();
        self.missing += len;
        match self.gaps.last_mut() {
            Some(g) if g.row + g.len == row => g.len += len,
            _ => self.gaps.push(Gap { row, len }),
        }
    }
}

/// Room for elements that come one by one, missing ones among them.
#[cfg(feature = "text")]
pub(crate) struct Filler<'a, T> {
    values: &'a mut [T],
    used: usize,
    gaps: &'a mut Vec<Gap>,
    missing: u64,
}

#[cfg(feature = "text")]
impl<T: Copy> Filler<'_, T> {
    /// Appends a value. There must be room: a row for each that was asked for.
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.values[self.used] = value;
        self.used += 1;
    }

    /// Appends a missing row.
    pub(crate) fn skip(&mut self) {
        let row = self.used as u64 + self.missing;
        self.missing += 1;
        match self.gaps.last_mut() {
            Some(g) if g.row + g.len == row => g.len += 1,
            _ => self.gaps.push(Gap { row, len: 1 }),
        }
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.used
    }
}
