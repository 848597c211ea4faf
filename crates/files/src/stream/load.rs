//! Arrays of one axis, read into memory as a whole: what reads elements in another order
//! than the file has, or again, needs them there.

use super::undecided::beyond;
use super::{Progress, disagree, shape_of};
use crate::evidence::Evidence;
use crate::table::Typing;
use crate::{Access, Batch, Error, Result, Source};
use warpfold::{DType, Input, View};

/// Bytes that are read at once.
const AT_ONCE: usize = 4 << 20;

/// An array in memory.
#[derive(Debug)]
pub(super) struct Loaded {
    name: String,
    dtype: DType,
    /// Whole words, so that elements of every type are aligned.
    words: Vec<u64>,
    rows: usize,
    /// A bit for each row, if some have no value.
    valid: Vec<u8>,
    missing: usize,
}

impl Loaded {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    pub(super) fn missing(&self) -> usize {
        self.missing
    }

    /// The elements' bytes; where there is no value, zeros.
    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.rows * self.dtype.size()]
    }

    /// The elements; where there is no value, zeros.
    ///
    /// # Errors
    /// None for an array that was loaded.
    pub(super) fn view(&self) -> Result<View<'_>> {
        let view = View::from_bytes(self.dtype, self.bytes(), &[self.rows]);
        view.map_err(|source| Error::Reduce { name: self.name.clone(), source })
    }

    /// The array, as reductions take it.
    ///
    /// # Errors
    /// None for an array that was loaded.
    pub(super) fn input(&self) -> Result<Input<'_>> {
        let view = self.view()?;
        if self.missing == 0 {
            return Ok(Input::from(view));
        }
        let masked = Input::masked_view(view, &self.valid, 0);
        masked.map_err(|source| Error::Reduce { name: self.name.clone(), source })
    }
}

/// What is read, and how much of it may be.
pub(super) struct Loader<'a> {
    pub(super) memory_limit: Option<usize>,
    pub(super) progress: &'a dyn Progress,
}

impl Loader<'_> {
    /// Reads the pieces of an array one after the other, and of a second one, if there are
    /// any. Columns of text are of the type that all cells of both show.
    ///
    /// # Errors
    /// Those of reading; pieces that are not of one axis, or differ in type; more than
    /// memory holds, or may.
    pub(super) fn load(&self, arrays: Vec<Vec<Source>>) -> Result<Vec<Loaded>> {
        let mut evidence = Evidence::default();
        let mut parts = Vec::new();
        let mut taken = 0;
        for sources in arrays {
            let part = self.part(sources, &mut evidence, taken)?;
            taken += part.words.len() * 8;
            parts.push(part);
        }
        parts.into_iter().map(|part| part.decided(&evidence)).collect()
    }

    fn part(&self, sources: Vec<Source>, evidence: &mut Evidence, taken: usize) -> Result<Part> {
        let is_open = |source: &Source| match &source.access {
            Access::Column(column) => column.is_open(),
            _ => false,
        };
        let Some(first) = sources.first() else { return Err(super::nothing()) };
        let open = sources.iter().all(is_open);
        for other in &sources {
            let shape = shape_of(other);
            if shape.len() != 1 {
                let what = format!("it has {} axes, and segments are cut from one", shape.len());
                return Err(Error::format(&other.name, what)
                    .with_hint("the rows of a matrix are reduced over its last axis: --axis -1"));
            }
            if !open && other.dtype != first.dtype {
                let types = [first.dtype.to_string(), other.dtype.to_string()];
                return Err(disagree([first, other], "type", types));
            }
        }
        let mut part = Part {
            name: first.name.clone(),
            dtype: first.dtype,
            open,
            words: Vec::new(),
            rows: 0,
            valid: Vec::new(),
            missing: 0,
            chunks: Vec::new(),
            negative_zeros: Vec::new(),
            most: self.memory_limit.map(|most| most.saturating_sub(taken)),
        };
        for source in sources {
            self.piece(source, &mut part, evidence)?;
        }
        Ok(part)
    }

    fn piece(&self, source: Source, part: &mut Part, evidence: &mut Evidence) -> Result<()> {
        let size = source.dtype.size();
        let mut blocks = match source.access {
            Access::Random(ref reader) => {
                let len = super::flat::length(&source)?;
                let mut at = 0;
                // All of it at once, or not at all.
                part.reserve(len.saturating_mul(size as u64))?;
                while at < len {
                    let count = (len - at).min((AT_ONCE / size) as u64);
                    let bytes = count as usize * size;
                    reader.read_at(at, part.grow(count as usize)?)?;
                    self.progress.advance(bytes as u64);
                    at += count;
                }
                return Ok(());
            }
            Access::Sequential(blocks) => blocks,
            Access::Column(column) if !part.open => column.blocks(source.dtype)?,
            Access::Column(column) => {
                let mut blocks = column.table.reader.read(&[(column.place, Typing::Open)])?;
                let mut batch = Batch::new(source.dtype);
                let mut number = part.chunks.len() as u64;
                while let Some(block) = blocks.next_block()? {
                    let bytes = block.bytes();
                    block.decode(&mut batch, &mut |_, batch| {
                        evidence.add(&mut batch.evidence, number);
                        part.take(batch)
                    })?;
                    number += 1;
                    self.progress.advance(bytes);
                }
                return Ok(());
            }
        };
        let mut batch = Batch::new(source.dtype);
        while let Some(block) = blocks.next_block()? {
            let bytes = block.bytes();
            block.decode(&mut batch, &mut |batch| part.take(batch))?;
            self.progress.advance(bytes);
        }
        Ok(())
    }
}

/// An array that is being read.
struct Part {
    name: String,
    dtype: DType,
    /// Whether only its last cell tells its type.
    open: bool,
    words: Vec<u64>,
    rows: usize,
    valid: Vec<u8>,
    missing: usize,
    /// Of text whose type is open, the first rows of batches and their types.
    chunks: Vec<(usize, DType)>,
    /// The rows of integers that were written `-0`.
    negative_zeros: Vec<usize>,
    /// Bytes that it may take.
    most: Option<usize>,
}

impl Part {
    /// Makes room for as many bytes more.
    fn reserve(&mut self, more: u64) -> Result<()> {
        let bytes = ((self.rows * self.dtype.size()) as u64).saturating_add(more);
        if let Some(most) = self.most
            && bytes > most as u64
        {
            let what = format!("it takes more than the {most} bytes of memory that are left to it");
            return Err(Error::format(&self.name, what)
                .with_hint("segments are cut from an array in memory: raise --memory-limit"));
        }
        let words = usize::try_from(bytes.div_ceil(8)).unwrap_or(usize::MAX);
        let more = words.saturating_sub(self.words.len());
        self.words.try_reserve(more).map_err(|_| {
            let what = format!("{bytes} bytes do not fit into memory");
            Error::format(&self.name, what)
                .with_hint("segments are cut from an array in memory: reduce it piece by piece")
        })
    }

    /// Appends rows, to be filled, which are zeros until then.
    fn grow(&mut self, rows: usize) -> Result<&mut [u8]> {
        let size = self.dtype.size();
        let start = self.rows * size;
        self.reserve(rows.saturating_mul(size) as u64)?;
        self.rows += rows;
        self.words.resize((self.rows * size).div_ceil(8), 0);
        Ok(&mut bytemuck::cast_slice_mut(&mut self.words)[start..start + rows * size])
    }

    /// Appends a batch's rows.
    fn take(&mut self, batch: &Batch) -> Result<()> {
        batch.check_narrow(&self.name, None)?;
        let size = self.dtype.size();
        let first = self.rows;
        if self.open && self.chunks.last().is_none_or(|&(_, dtype)| dtype != batch.dtype()) {
            self.chunks.push((first, batch.dtype()));
        }
        let rows = usize::try_from(batch.rows()).unwrap_or(usize::MAX);
        let to = self.grow(rows)?;
        let (mut values, mut row) = (batch.bytes(), 0);
        let mut value = 0;
        let mut zeros = batch.negative_zeros.iter().map(|&zero| zero as usize).peekable();
        let end = [(rows, 0)];
        let gaps = batch.gaps().iter().map(|gap| (gap.row as usize, gap.len as usize)).chain(end);
        let mut negative = Vec::new();
        for (gap, len) in gaps {
            let (these, rest) = values.split_at((gap - row) * size);
            to[row * size..gap * size].copy_from_slice(these);
            while let Some(zero) = zeros.next_if(|&zero| zero < value + gap - row) {
                negative.push(first + row + zero - value);
            }
            values = rest;
            value += gap - row;
            row = gap + len;
        }
        self.negative_zeros.extend(negative);
        self.mark(first, batch);
        Ok(())
    }

    /// Notes which of the rows from `first` on have a value.
    fn mark(&mut self, first: usize, batch: &Batch) {
        if batch.gaps().is_empty() && self.missing == 0 {
            return;
        }
        let known = if self.missing == 0 { 0 } else { first };
        self.valid.resize(self.rows.div_ceil(8), 0);
        let mut set = |row: usize| self.valid[row / 8] |= 1 << (row % 8);
        (known..first).for_each(&mut set);
        let mut row = first;
        for gap in batch.gaps() {
            (row..first + gap.row as usize).for_each(&mut set);
            row = first + (gap.row + gap.len) as usize;
            self.missing += gap.len as usize;
        }
        (row..self.rows).for_each(&mut set);
    }

    /// The array, of the type that all cells have shown.
    fn decided(mut self, evidence: &Evidence) -> Result<Loaded> {
        if self.open {
            self.dtype = if evidence.decimal.is_some() || !evidence.integers {
                DType::F64
            } else if let Some((_, cell)) = &evidence.huge {
                return Err(beyond(cell, "fits neither i64 nor u64"));
            } else if let Some((_, cell)) = &evidence.large {
                if evidence.negative {
                    return Err(beyond(cell, "does not fit i64, and others are negative"));
                }
                // The bits of i64 are those of u64 then.
                DType::U64
            } else {
                DType::I64
            };
            if self.dtype == DType::F64 {
                self.round_to_floats();
            }
        }
        if self.missing > 0 {
            // Rows after the last gap were marked as they came.
            self.valid.resize(self.rows.div_ceil(8), 0);
        }
        let Part { name, dtype, words, rows, valid, missing, .. } = self;
        Ok(Loaded { name, dtype, words, rows, valid, missing })
    }

    /// Rounds integers to floats, each once.
    fn round_to_floats(&mut self) {
        let ends = self.chunks.iter().skip(1).map(|&(first, _)| first).chain([self.rows]);
        for (&(first, dtype), end) in self.chunks.iter().zip(ends) {
            for word in &mut self.words[first..end] {
                match dtype {
                    DType::I64 => *word = (word.cast_signed() as f64).to_bits(),
                    DType::U64 => *word = (*word as f64).to_bits(),
                    _ => {}
                }
            }
        }
        for &row in &self.negative_zeros {
            self.words[row] = (-0.0f64).to_bits();
        }
    }
}
