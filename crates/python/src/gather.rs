//! Reductions of some elements: those that `where` marks, and with them `initial`.
//!
//! The elements of each output are put together in blocks, and absorbed. That costs some
//! nanoseconds an element, and about a microsecond an output.

use crate::answers::append;
use crate::dense::Dense;
use crate::errors::OrRaise;
use crate::run::output_shape;
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
    /// An element more for each output.
    pub(crate) initial: Option<Scalar>,
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
            let strides = mask.broadcast(&array.shape).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "where has shape {:?}, which cannot be broadcast to the array's {:?}",
                    mask.shape, array.shape
                ))
            })?;
            Some((mask.origin(), strides))
        }
        None => None,
    };
    let axes = |wanted: bool| -> Vec<Axis> {
        let axes = (0..ndim).filter(|&i| reduced[i] == wanted);
        axes.map(|i| Axis {
            len: array.shape[i],
            step: array.strides[i],
            mask_step: mask.as_ref().map_or(0, |(_, strides)| strides[i]),
        })
        .collect()
    };
    let (kept, inner) = (Walk::new(axes(false)), Walk::new(axes(true)));
    let walker = Walker { array, mask: mask.map(|(origin, _)| origin), initial: some.initial };
    let single = question.clone().keepdims(false);
    let single = &single.axes([0]);
    let mut columns: Option<Vec<Column>> = None;
    let mut outputs = kept.clone();
    while let Some(at) = outputs.next() {
        let made = py.detach(|| walker.output(single, at, inner.clone()));
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

#[derive(Clone)]
struct Axis {
    len: usize,
    step: isize,
    mask_step: isize,
}

/// Goes through all indices of some axes in C order, and says the distance of the element
/// and of its truth value from the first.
#[derive(Clone)]
struct Walk {
    axes: Vec<Axis>,
    index: Vec<usize>,
    at: (isize, isize),
    left: usize,
}

impl Walk {
    fn new(axes: Vec<Axis>) -> Walk {
        let left = axes.iter().map(|axis| axis.len).product();
        Walk { index: vec![0; axes.len()], axes, at: (0, 0), left }
    }

    #[inline]
    fn next(&mut self) -> Option<(isize, isize)> {
        self.left = self.left.checked_sub(1)?;
        let here = self.at;
        for (axis, index) in self.axes.iter().zip(&mut self.index).rev() {
            *index += 1;
            self.at.0 = self.at.0.wrapping_add(axis.step);
            self.at.1 = self.at.1.wrapping_add(axis.mask_step);
            if *index < axis.len {
                break;
            }
            let len = axis.len.cast_signed();
            self.at.0 = self.at.0.wrapping_sub(axis.step.wrapping_mul(len));
            self.at.1 = self.at.1.wrapping_sub(axis.mask_step.wrapping_mul(len));
            *index = 0;
        }
        Some(here)
    }
}

struct Walker<'a> {
    array: &'a Dense,
    mask: Option<*const u8>,
    initial: Option<Scalar>,
}

// SAFETY: the pointer is one to truth values that are borrowed for as long, and only read.
unsafe impl Sync for Walker<'_> {}

impl Walker<'_> {
    /// The answers of one output, whose elements begin at `at`.
    fn output(
        &self,
        question: &Reduction,
        at: (isize, isize),
        mut inner: Walk,
    ) -> warpfold::Result<Answer> {
        let dtype = self.array.dtype;
        let size = dtype.size();
        let mut block = Block::new(dtype);
        let mut all: Option<Partial> = None;
        let mut start = 0u64;
        while let Some((step, mask_step)) = inner.next() {
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
            block.push(unsafe { std::slice::from_raw_parts(item, size) });
            if block.len == BLOCK {
                block.absorb(question, &mut all, &mut start)?;
            }
        }
        if let Some(initial) = self.initial {
            let bits = initial.to_bits().to_le_bytes();
            let mut item = [0; 8];
            item[..size].copy_from_slice(&bits[..size]);
            if cfg!(target_endian = "big") {
                item[..size].reverse();
            }
            block.push(&item[..size]);
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
