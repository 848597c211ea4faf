//! Walking: blocks of outputs, on all threads.

use super::fold::Fold;
use super::walk::{Form, Segment, Walk};
use crate::isa::Isa;
use crate::pack::Pack;
use crate::simd::{Kernel, Simd, dispatch};
use crate::table::Table;
use core::marker::PhantomData;
use core::ops::Range;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Element, Error, Result};
use warpfold_threads::{Pieces, Threads};

/// Elements of a row that is looked at before it is asked whether more can matter.
const GLANCE: usize = 8192;
/// Of so many outputs, one that has to be looked at again is looked at alone.
const FEW: usize = 16;
/// Bytes of all elements below which one thread works.
const SMALL: usize = 1 << 18;

/// A walk over elements in memory.
pub(super) struct Run<'a, T> {
    walk: Walk,
    /// The first element of the view: every element that the walk leads to from here may
    /// be read for `'a`, and is aligned.
    origin: *const T,
    /// Whether the bytes between these elements may be read, too.
    gaps: bool,
    isa: Isa,
    threads: Threads,
    elements: PhantomData<&'a [T]>,
}

// SAFETY: a run only reads, as a shared slice of its elements does.
unsafe impl<T: Sync> Sync for Run<'_, T> {}

/// Where answers go: the threads write different ones.
struct Answers<'a> {
    bytes: *mut u8,
    len: usize,
    dtype: DType,
    numbers: PhantomData<&'a mut Numbers>,
}

// SAFETY: every output is in one segment of one block, and each block is one thread's.
unsafe impl Sync for Answers<'_> {}

impl<'a> Answers<'a> {
    fn of(numbers: &'a mut Numbers) -> Self {
        let (len, dtype) = (numbers.len(), numbers.dtype());
        Answers { bytes: numbers.bytes_mut().as_mut_ptr(), len, dtype, numbers: PhantomData }
    }

    /// Answers that follow each other.
    ///
    /// # Safety
    /// No other thread touches them meanwhile.
    #[expect(clippy::mut_from_ref, reason = "each answer is one thread's")]
    unsafe fn run<O: bytemuck::Pod>(&self, first: usize, len: usize) -> &mut [O] {
        assert!(size_of::<O>() == self.dtype.size() && first + len <= self.len);
        // SAFETY: within the numbers, whose memory is aligned for every type; the caller
        // vouches for that nobody else is there.
        unsafe { core::slice::from_raw_parts_mut(self.bytes.cast::<O>().add(first), len) }
    }

    /// Writes an answer.
    ///
    /// # Safety
    /// No other thread touches it meanwhile.
    #[inline]
    unsafe fn set<O: bytemuck::Pod>(&self, output: usize, answer: O) {
        // SAFETY: passed on from the caller.
        unsafe { self.run(output, 1).fill(answer) }
    }

    /// Writes an answer by its bits.
    ///
    /// # Safety
    /// As for [`set`](Self::set).
    unsafe fn set_bits(&self, output: usize, bits: u64) {
        let size = self.dtype.size();
        // SAFETY: passed on from the caller.
        let to = unsafe {
            match size {
                1 => bytemuck::cast_slice_mut(self.run::<u8>(output, 1)),
                2 => bytemuck::cast_slice_mut(self.run::<u16>(output, 1)),
                4 => bytemuck::cast_slice_mut(self.run::<u32>(output, 1)),
                _ => bytemuck::cast_slice_mut(self.run::<u64>(output, 1)),
            }
        };
        Numbers::set_bits(to, self.dtype, 0, bits);
    }
}

/// An output that has no answer, and why.
struct Failed {
    output: usize,
    error: Error,
}

/// The one that comes first in C order: what is reported does not depend on the walk.
fn earlier(a: Option<Failed>, b: Option<Failed>) -> Option<Failed> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.output < a.output { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// What a thread keeps from block to block.
struct Hands<T> {
    segments: Vec<Segment>,
    buffer: Vec<T>,
    /// Outputs without an answer: where they are in the block, and in C order.
    left: Vec<(usize, usize)>,
}

impl<'a, T: Element> Run<'a, T> {
    /// # Safety
    /// See `origin`.
    pub(super) unsafe fn new(
        walk: Walk,
        origin: *const T,
        gaps: bool,
        isa: Isa,
        threads: Threads,
    ) -> Self {
        Run { walk, origin, gaps, isa, threads, elements: PhantomData }
    }

    /// Writes the answers of all outputs. Those that the accumulators cannot give are
    /// asked of `again`, if there is one, and in the end of `otherwise`.
    ///
    /// # Errors
    /// Those of `otherwise`.
    pub(super) fn answers<F: Fold<Item = T>, G: Fold<Item = T>>(
        &self,
        fold: F,
        again: Option<G>,
        numbers: &mut Numbers,
        otherwise: &(dyn Fn(usize) -> Result<u64> + Sync),
    ) -> Result<()> {
        let Walk { block, ref reduced, .. } = self.walk;
        let outputs = self.walk.outputs();
        let blocks = outputs.div_ceil(block);
        let len: usize = reduced.iter().map(|&(len, _)| len).product();
        let bytes = outputs.saturating_mul(len).saturating_mul(size_of::<T>());
        let threads = if bytes < SMALL { 1 } else { self.threads.count() };
        let answers = Answers::of(numbers);
        let block_of = |index: usize| index * block..outputs.min((index + 1) * block);
        if threads > 1 && blocks < 2 * threads {
            // Few outputs: the threads share their elements.
            let mut failed = None;
            let (axis, parts) = self.cut(4 * threads);
            for outputs in (0..blocks).map(block_of) {
                let pieces = Pieces::new(parts.len());
                let mut done = self
                    .threads
                    .run(parts.len(), || {
                        let mut hands = self.hands();
                        let mut cells = fold.cells(block);
                        while let Some(piece) = pieces.take() {
                            let part = (axis, parts[piece].clone());
                            self.take_in(
                                &fold,
                                &mut cells,
                                outputs.clone(),
                                Some(part),
                                &mut hands,
                            );
                        }
                        cells
                    })
                    .into_iter();
                let Some(mut cells) = done.next() else { continue };
                done.for_each(|others| fold.merge(&mut cells, &others));
                let mut hands = self.hands();
                // SAFETY: one thread at a time writes.
                let written = unsafe {
                    self.write((&fold, &cells), again, outputs, &mut hands, &answers, otherwise)
                };
                failed = earlier(failed, written.err());
            }
            return failed.map_or(Ok(()), |failed| Err(failed.error));
        }
        let pieces = Pieces::new(blocks);
        let most = if threads == 1 { 1 } else { blocks };
        let done = self.threads.run(most, || {
            let (mut hands, mut failed) = (self.hands(), None);
            let mut cells = fold.cells(block);
            while let Some(piece) = pieces.take() {
                let outputs = block_of(piece);
                self.take_in(&fold, &mut cells, outputs.clone(), None, &mut hands);
                // SAFETY: each block is taken once.
                let written = unsafe {
                    self.write((&fold, &cells), again, outputs, &mut hands, &answers, otherwise)
                };
                failed = earlier(failed, written.err());
                fold.clear(&mut cells);
            }
            failed
        });
        let failed = done.into_iter().fold(None, earlier);
        failed.map_or(Ok(()), |failed| Err(failed.error))
    }

    fn hands(&self) -> Hands<T> {
        Hands { segments: Vec::new(), buffer: Vec::new(), left: Vec::new() }
    }

    /// The longest of the reduced axes, and ranges of it, at most so many.
    fn cut(&self, most: usize) -> (usize, Vec<Range<usize>>) {
        let axes = self.walk.reduced.iter().enumerate();
        let (axis, &(len, _)) = axes.max_by_key(|(_, axis)| axis.0).unwrap_or((0, &(1, 0)));
        // Whole panels, where the axis has some.
        let step = len.div_ceil(most.max(1)).next_multiple_of(64).min(len).max(1);
        (axis, (0..len).step_by(step).map(|at| at..len.min(at + step)).collect())
    }

    /// Lets accumulators take in the elements of some outputs, or of a part of a
    /// reduced axis.
    fn take_in<F: Fold<Item = T>>(
        &self,
        fold: &F,
        cells: &mut F::Cells,
        outputs: Range<usize>,
        part: Option<(usize, Range<usize>)>,
        hands: &mut Hands<T>,
    ) {
        let walk = &self.walk;
        let Hands { segments, buffer, .. } = hands;
        walk.segments(outputs.start, outputs.end, segments);
        let range = |axis: usize| match &part {
            Some((cut, range)) if *cut == axis => range.clone(),
            _ => 0..walk.reduced[axis].0,
        };
        let inner = walk.reduced.len() - 1;
        let panel = if F::SETTLES { walk.panel.min(GLANCE) } else { walk.panel };
        // The indices of the outer axes, as an odometer.
        let mut index: Vec<usize> = (0..inner).map(|axis| range(axis).start).collect();
        let inner_range = range(inner);
        if inner_range.is_empty() || (0..inner).any(|axis| range(axis).is_empty()) {
            return;
        }
        loop {
            let (mut offset, mut place) = (0isize, 0usize);
            for (&i, &(len, stride)) in index.iter().zip(&walk.reduced) {
                offset += i.cast_signed() * stride;
                place = place * len + i;
            }
            let (len, stride) = walk.reduced[inner];
            let mut at = inner_range.start;
            while at < inner_range.end {
                let count = panel.min(inner_range.end - at);
                for segment in segments.iter() {
                    let offset = segment.offset + offset + at.cast_signed() * stride;
                    let origin = self.origin.wrapping_byte_offset(offset);
                    self.table(fold, cells, segment, origin, count, place * len + at, buffer);
                }
                at += count;
                if F::SETTLES && fold.is_settled(cells) {
                    return;
                }
            }
            // The next index, the innermost of these axes first.
            let mut axis = inner;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                if index[axis] < range(axis).end {
                    break;
                }
                index[axis] = range(axis).start;
            }
        }
    }

    /// Hands a table to the accumulators: `count` elements of each output of a segment.
    #[expect(clippy::too_many_arguments, reason = "the innermost step of one loop")]
    #[inline]
    fn table<F: Fold<Item = T>>(
        &self,
        fold: &F,
        cells: &mut F::Cells,
        segment: &Segment,
        origin: *const T,
        count: usize,
        at: usize,
        buffer: &mut Vec<T>,
    ) {
        let walk = &self.walk;
        let &(_, along) = walk.reduced.last().unwrap_or(&(1, 0));
        let beside = walk.kept.last().map_or(0, |axis| axis.stride);
        let place = segment.place;
        let (rows, columns, row_stride, column_stride) = match walk.form {
            Form::Rows => (segment.len, count, beside, along),
            Form::Columns => (count, segment.len, along, beside),
        };
        let table = if walk.copied {
            let len = rows * columns;
            if buffer.len() < len {
                buffer.resize(len, <T as bytemuck::Zeroable>::zeroed());
            }
            let to = &mut buffer[..len];
            let (from, size, gaps) = (origin.cast(), size_of::<T>(), self.gaps);
            let pack = Pack { from, size, rows, columns, row_stride, column_stride, gaps };
            // SAFETY: the table is among the walk's elements, which may be read, and so may
            // what lies between them if `gaps` says so.
            unsafe { pack.fill(bytemuck::cast_slice_mut(to)) };
            Table::of(&buffer[..len], columns)
        } else {
            // SAFETY: the walk's elements, which are aligned and may be read; those of a
            // row follow each other, as the form is not copied.
            unsafe { Table::new(origin, row_stride, rows, columns) }
        };
        match walk.form {
            Form::Rows => fold.rows(cells, place, table, at),
            Form::Columns => fold.columns(cells, place, table, at),
        }
    }

    /// Writes the answers of a block.
    ///
    /// # Errors
    /// Those of `otherwise`.
    ///
    /// # Safety
    /// No other thread writes answers of this block.
    unsafe fn write<F: Fold<Item = T>, G: Fold<Item = T>>(
        &self,
        (fold, cells): (&F, &F::Cells),
        again: Option<G>,
        outputs: Range<usize>,
        hands: &mut Hands<T>,
        answers: &Answers<'_>,
        otherwise: &(dyn Fn(usize) -> Result<u64> + Sync),
    ) -> core::result::Result<(), Failed> {
        let from = outputs.start;
        let step = self.walk.kept.last().map_or(0, |axis| axis.step);
        let mut left = core::mem::take(&mut hands.left);
        left.clear();
        self.walk.segments(outputs.start, outputs.end, &mut hands.segments);
        let segments = core::mem::take(&mut hands.segments);
        for segment in &segments {
            let known = left.len();
            // SAFETY: outputs of the block, which the caller vouches for.
            unsafe { self.write_segment(fold, cells, segment, step, &mut left, answers) };
            for (place, output) in &mut left[known..] {
                let i = (*place - segment.place).cast_signed();
                *output = (segment.output + i * step).cast_unsigned();
            }
        }
        hands.segments = segments;
        if let Some(again) = again.filter(|_| !left.is_empty()) {
            // All of the block together, unless a few are left.
            let together = left.len() * FEW >= outputs.len();
            let mut cells = again.cells(if together { outputs.len() } else { 1 });
            if together {
                self.take_in(&again, &mut cells, outputs, None, hands);
            }
            left.retain(|&(place, output)| {
                if !together {
                    again.clear(&mut cells);
                    let one = from + place..from + place + 1;
                    self.take_in(&again, &mut cells, one, None, hands);
                }
                let found = again.answer(&cells, if together { place } else { 0 });
                if let Some(found) = found {
                    // SAFETY: as above.
                    unsafe { answers.set(output, found) };
                }
                found.is_none()
            });
        }
        left.sort_unstable_by_key(|&(_, output)| output);
        for &(_, output) in &left {
            let bits = otherwise(output).map_err(|error| Failed { output, error })?;
            // SAFETY: as above.
            unsafe { answers.set_bits(output, bits) };
        }
        hands.left = left;
        Ok(())
    }

    /// Writes the answers of a segment; the places of those that there are not go to
    /// `left`.
    ///
    /// # Safety
    /// No other thread writes these answers.
    unsafe fn write_segment<F: Fold<Item = T>>(
        &self,
        fold: &F,
        cells: &F::Cells,
        segment: &Segment,
        step: isize,
        left: &mut Vec<(usize, usize)>,
        answers: &Answers<'_>,
    ) {
        const MOST: usize = 256;
        let mut scattered = [<F::Out as bytemuck::Zeroable>::zeroed(); MOST];
        for done in (0..segment.len).step_by(MOST) {
            let len = MOST.min(segment.len - done);
            let place = segment.place + done;
            let first = segment.output + done.cast_signed() * step;
            if step == 1 {
                // SAFETY: the caller vouches for it.
                let to = unsafe { answers.run(first.cast_unsigned(), len) };
                dispatch(self.isa, Finish { fold, cells, place, to, left });
                continue;
            }
            let to = &mut scattered[..len];
            dispatch(self.isa, Finish { fold, cells, place, to: &mut *to, left });
            for (i, &found) in to.iter().enumerate() {
                let output = first + i.cast_signed() * step;
                // SAFETY: as above. What is not found yet is overwritten later.
                unsafe { answers.set(output.cast_unsigned(), found) };
            }
        }
    }
}

/// Answers outputs from `place` on.
struct Finish<'a, F: Fold> {
    fold: &'a F,
    cells: &'a F::Cells,
    place: usize,
    to: &'a mut [F::Out],
    left: &'a mut Vec<(usize, usize)>,
}

impl<F: Fold> Kernel for Finish<'_, F> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        const TOGETHER: usize = 32;
        let mut place = self.place;
        for to in self.to.chunks_mut(TOGETHER) {
            if !self.fold.answer_all(self.cells, place, to) {
                for (i, to) in to.iter_mut().enumerate() {
                    match self.fold.answer(self.cells, place + i) {
                        Some(found) => *to = found,
                        None => self.left.push((place + i, 0)),
                    }
                }
            }
            place += to.len();
        }
    }
}
