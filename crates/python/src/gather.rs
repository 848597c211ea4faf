//! Reductions of some elements: those that `where` marks, and with them `initial`.
//!
//! The elements of each output are put together in blocks, and absorbed. That costs some
//! nanoseconds an element, and about a microsecond an output.

use crate::answers::append;
use crate::cast::{bits_of, cast, put};
use crate::dense::Dense;
use crate::errors::OrRaise;
use crate::run::output_shape;
use crate::walk::{Axis, Walk};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warpfold::internal::ForReaders;
use warpfold::{Answer, Column, DType, Partial, Reduction, Scalar, View};

/// Elements that are put together at once.
const BLOCK: usize = 1 << 16;

/// Which elements are reduced.
pub(crate) struct Chosen<'a> {
    /// Truth values, broadcast to the array's shape: all of them without.
    pub(crate) mask: Option<&'a Dense>,
    /// An element more for each output: the first for the first output, and from the last on again
    /// from the first. Without any there is none.
    pub(crate) initial: Vec<Scalar>,
    /// The type that elements are put together as: of integers a wider one, where `initial` needs it.
    pub(crate) dtype: DType,
}

/// A mask that cannot be broadcast to the array's shape.
pub(crate) fn misfit(mask: &Dense, shape: &[usize]) -> PyErr {
    PyValueError::new_err(format!(
        "where has shape {:?}, which cannot be broadcast to the array's {shape:?}",
        mask.shape
    ))
}

/// The answers to a question of some elements.
///
/// # Errors
/// A mask of another shape; those of [`Reduction::run`]; `KeyboardInterrupt`.
pub(crate) fn answer(
    py: Python<'_>,
    question: &Reduction,
    array: &Dense,
    some: &Chosen<'_>,
) -> PyResult<Answer> {
    let ndim = array.shape.len();
    let reduced = question.named_axes().resolve(ndim).or_raise(py)?;
    let mask = match some.mask {
        Some(mask) => {
            let strides = mask.broadcast(&array.shape).ok_or_else(|| misfit(mask, &array.shape))?;
            Some((mask.origin(), strides))
        }
        None => None,
    };
    let axes = |wanted: bool| -> Vec<Axis> {
        let axes = (0..ndim).filter(|&i| reduced[i] == wanted);
        axes.map(|i| Axis {
            len: array.shape[i],
            step: array.strides[i],
            other_step: mask.as_ref().map_or(0, |(_, strides)| strides[i]),
        })
        .collect()
    };
    let (kept, inner) = (Walk::new(axes(false)), Walk::new(axes(true)));
    let mask = mask.map(|(origin, _)| origin);
    let walker = Walker { array, mask, dtype: some.dtype };
    let single = question.clone().keepdims(false);
    let single = &single.axes([0]);
    let mut columns: Option<Vec<Column>> = None;
    let mut initial = some.initial.iter().copied().cycle();
    for at in kept {
        let initial = initial.next();
        let made = py.detach(|| walker.output(single, at, inner.clone(), initial));
        py.check_signals()?;
        let made = made.or_raise(py)?.into_columns();
        append(&mut columns, made).or_raise(py)?;
    }
    let shape = output_shape(&array.shape, &reduced, question.keeps_dims());
    match columns {
        Some(columns) => Answer::from_columns(shape, columns).or_raise(py),
        // No outputs: the question of the empty array has the right types.
        None => question.run(array.view()).or_raise(py),
    }
}

struct Walker<'a> {
    array: &'a Dense,
    mask: Option<*const u8>,
    dtype: DType,
}

// SAFETY: the pointer is one to truth values that are borrowed for as long, and only read.
unsafe impl Sync for Walker<'_> {}

impl Walker<'_> {
    /// The answers of one output, whose elements begin at `at`.
    fn output(
        &self,
        question: &Reduction,
        at: (isize, isize),
        inner: Walk,
        initial: Option<Scalar>,
    ) -> warpfold::Result<Answer> {
        let dtype = self.array.dtype;
        let size = dtype.size();
        let wide = self.dtype;
        let mut block = Block::new(wide);
        let mut all: Option<Partial> = None;
        let mut start = 0u64;
        for (step, mask_step) in inner {
            let marked = self.mask.is_none_or(|mask| {
                let byte = mask.wrapping_offset(at.1.wrapping_add(mask_step));
                // SAFETY: the mask was broadcast to the array's shape, whose index this is.
                unsafe { byte.read() != 0 }
            });
            if !marked {
                continue;
            }
            let item = self.array.origin().wrapping_offset(at.0.wrapping_add(step));
            // SAFETY: it is the element of an index within the shape, of `size` bytes.
            let item = unsafe { std::slice::from_raw_parts(item, size) };
            if wide == dtype {
                block.push(item);
            } else if let Some(bits) = cast(bits_of(item), dtype, wide) {
                block.push_bits(bits);
            }
            if block.len == BLOCK {
                block.absorb(question, &mut all, &mut start)?;
            }
        }
        if let Some(initial) = initial {
            block.push_bits(initial.to_bits());
        }
        if let Some(mut all) = all {
            block.absorb_into(question, &mut all, start)?;
            return all.finish(question.rules());
        }
        question.run(block.view()?)
    }
}

/// Elements that were put together.
struct Block {
    dtype: DType,
    /// Whole words, so that elements of every type are aligned.
    words: Vec<u64>,
    len: usize,
}

impl Block {
    fn new(dtype: DType) -> Block {
        Block { dtype, words: Vec::new(), len: 0 }
    }

    fn push(&mut self, item: &[u8]) {
        let at = self.len * item.len();
        if self.words.len() * 8 < at + item.len() {
            self.words.resize((self.words.len() * 2).max(8), 0);
        }
        bytemuck::cast_slice_mut(&mut self.words)[at..at + item.len()].copy_from_slice(item);
        self.len += 1;
    }

    fn push_bits(&mut self, bits: u64) {
        let mut item = [0; 8];
        let size = self.dtype.size();
        put(&mut item[..size], bits);
        self.push(&item[..size]);
    }

    fn view(&self) -> warpfold::Result<View<'_>> {
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        View::from_bytes(self.dtype, &bytes[..self.len * self.dtype.size()], &[self.len])
    }

    fn absorb(
        &mut self,
        question: &Reduction,
        all: &mut Option<Partial>,
        start: &mut u64,
    ) -> warpfold::Result<()> {
        match all {
            Some(all) => self.absorb_into(question, all, *start)?,
            None => *all = Some(question.partial(self.view()?, *start)?),
        }
        *start += self.len as u64;
        self.len = 0;
        Ok(())
    }

    fn absorb_into(
        &self,
        question: &Reduction,
        all: &mut Partial,
        start: u64,
    ) -> warpfold::Result<()> {
        question.absorb(all, self.view()?, start)
    }
}
