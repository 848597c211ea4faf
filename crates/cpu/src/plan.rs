//! From views to traversals: which elements make which answer.

use crate::gather::{Buffers, Source, for_each_column, for_each_run, rows};
use crate::reduce::SMALL;
use core::marker::PhantomData;
use core::ops::Range;
use std::sync::OnceLock;
use warpfold_core::layout::{Axis, PerAxis, Split, Traversal, View};
use warpfold_core::op::RawRun;
use warpfold_core::{DType, Error, Result};

/// Bytes of a row that are copied at once, of outputs that lie side by side.
const BESIDE: usize = 1024;

/// What is reduced, and how the outputs lie. Every element that its walks and
/// kept axes lead to may be read for `'a`: fields are private, so that only
/// this file answers for that.
pub(crate) struct Plan<'a> {
    source: Source,
    /// The walk over the elements of one output, for states that ask for
    /// indices.
    indexed: OnceLock<Box<Traversal>>,
    /// The same for the others: as long runs as there are.
    plain: Traversal,
    /// The kept axes, outermost first.
    kept: PerAxis<Axis>,
    /// The reduced ones.
    reduced: PerAxis<Axis>,
    /// How many outputs there are.
    outputs: usize,
    views: PhantomData<&'a [u8]>,
}

impl<'a> Plan<'a> {
    /// The plan for reducing the axes of `views` (one, or two of the same
    /// shape and type) that `reduced` marks.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`](warpfold_core::Error::ShapeMismatch),
    /// [`Error::DTypeMismatch`](warpfold_core::Error::DTypeMismatch) and
    /// [`Error::TooManyOutputs`](warpfold_core::Error::TooManyOutputs).
    pub(crate) fn new(views: [Option<&View<'a>>; 2], reduced: &[bool]) -> Result<Option<Plan<'a>>> {
        let [Some(first), second] = views else { return Ok(None) };
        if let Some(second) = second {
            first.check_pair(second)?;
        }
        Plan::of(first, second, reduced).map(Some)
    }

    /// The plan for a view, and another one of the same shape, if there is one.
    fn of(first: &View<'a>, second: Option<&View<'a>>, reduced: &[bool]) -> Result<Plan<'a>> {
        let strides = [first.strides(), second.map_or(&[][..], View::strides)];
        let Split { kept, reduced, outputs } = Split::new(first.shape(), strides, reduced)?;
        Ok(Plan {
            source: Source::new(first.dtype(), first.origin(), second.map(View::origin)),
            indexed: OnceLock::new(),
            plain: Traversal::new(&reduced, false),
            outputs,
            kept,
            reduced,
            views: PhantomData,
        })
    }

    /// The plan for some of the elements of a view: `marks` has a truth value for each.
    ///
    /// # Errors
    /// As for [`new`](Self::new); marks that are no truth values.
    pub(crate) fn marked(view: &View<'a>, marks: &View<'a>, reduced: &[bool]) -> Result<Plan<'a>> {
        if marks.dtype() != DType::Bool {
            return Err(Error::DTypeMismatch { left: DType::Bool, right: marks.dtype() });
        }
        if view.shape() != marks.shape() {
            let (left, right) = (view.shape().to_vec(), marks.shape().to_vec());
            return Err(Error::ShapeMismatch { left, right });
        }
        Plan::of(view, Some(marks), reduced)
    }

    /// Hands the elements of an output of a [marked](Self::marked) plan to `sink`, in the order of
    /// their indices: copies of some that follow each other, the index of the first, and whether
    /// they count.
    ///
    /// # Errors
    /// Those of `sink`.
    pub(crate) fn for_each_marked(
        &self,
        output: usize,
        mut sink: impl FnMut(u64, bool, &[u8]) -> Result<()>,
    ) -> Result<()> {
        const MOST: usize = 4096;
        assert!(output < self.outputs);
        let (output, size) = (self.output(output), self.dtype().size());
        let types = [self.dtype(), DType::Bool].into_iter();
        // The elements and the marks, each as the only array.
        let mut arrays: Vec<_> = output
            .origins()
            .zip(types)
            .enumerate()
            .map(|(array, (origin, dtype))| {
                let alone = |&(len, strides): &Axis| (len, [strides[array], 0]);
                let axes: PerAxis<Axis> = self.reduced.iter().map(alone).collect();
                let walk = Traversal::in_index_order(&axes);
                (Source::new(dtype, origin, None), walk, Buffers::default(), Vec::new())
            })
            .collect();
        for start in (0..self.len()).step_by(MOST) {
            let some = start..self.len().min(start + MOST);
            for (source, walk, buffers, copy) in &mut arrays {
                copy.clear();
                let sink = |run: RawRun<'_>| {
                    copy.extend_from_slice(run.items);
                    Ok(())
                };
                // SAFETY: elements of the views, which may be read for `'a`: an output's.
                unsafe { for_each_run(source, walk, some.clone(), buffers, sink)? };
            }
            let [(.., items), (.., marks)] = &arrays[..] else { return Ok(()) };
            let mut items = &items[..];
            let mut at = start as u64;
            for same in marks.chunk_by(|&one, &other| (one != 0) == (other != 0)) {
                let (some, rest) = items.split_at(same.len() * size);
                sink(at, same[0] != 0, some)?;
                (at, items) = (at + same.len() as u64, rest);
            }
        }
        Ok(())
    }

    /// The element type.
    pub(crate) fn dtype(&self) -> DType {
        self.source.dtype
    }

    /// How many outputs there are.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// How many elements make an output.
    pub(crate) fn len(&self) -> usize {
        self.plain.len
    }

    /// Whether an output alone has elements for several threads.
    pub(crate) fn is_worth_threads(&self) -> bool {
        self.len().saturating_mul(self.source.dtype.size()) >= SMALL
    }

    /// The kept axes, outermost first.
    pub(crate) fn kept(&self) -> &[Axis] {
        &self.kept
    }

    /// The walk over the elements of one output in as long runs as there are.
    pub(crate) fn plain(&self) -> &Traversal {
        &self.plain
    }

    /// The walk, for states that ask for indices or for others.
    pub(crate) fn walk(&self, indexed: bool) -> &Traversal {
        if !indexed {
            return &self.plain;
        }
        self.indexed.get_or_init(|| Box::new(Traversal::new(&self.reduced, true)))
    }

    /// The addresses of the arrays' elements of index 0.
    pub(crate) fn origins(&self) -> impl Iterator<Item = *const u8> + use<> {
        self.source.origins()
    }

    /// The walk over the elements of one output in the order of their indices.
    pub(crate) fn in_index_order(&self) -> Traversal {
        Traversal::in_index_order(&self.reduced)
    }

    /// Whether the first array's elements whose indices follow each other lie together, in rows
    /// of so many bytes at least.
    pub(crate) fn has_rows_in_index_order(&self, bytes: usize) -> bool {
        let size = self.source.dtype.size();
        let row = self.reduced.iter().rev().find(|&&(len, _)| len != 1);
        row.is_some_and(|&(len, [stride, _])| stride == size.cast_signed() && len * size >= bytes)
    }

    /// Hands the elements of output `index` at `positions` of its walk to
    /// `sink`, in order.
    ///
    /// # Errors
    /// Those of `sink`.
    pub(crate) fn for_each_run(
        &self,
        index: usize,
        indexed: bool,
        positions: Range<usize>,
        buffers: &mut Buffers,
        sink: impl FnMut(RawRun<'_>) -> Result<()>,
    ) -> Result<()> {
        assert!(index < self.outputs && positions.end <= self.plain.len);
        // SAFETY: the output is one of the views', which are borrowed for `'a`
        // and may be read wherever shape and strides lead; the walk is over the
        // reduced axes, and the positions are among its own.
        unsafe { for_each_run(&self.output(index), self.walk(indexed), positions, buffers, sink) }
    }

    /// The length of the innermost kept axis, if the outputs along it lie side
    /// by side in memory and the elements of one output do not.
    fn beside(&self, indexed: bool) -> Option<usize> {
        let size = self.source.dtype.size().cast_signed();
        let arrays = self.source.origins().count();
        let beside = |strides: &[isize; 2]| strides[..arrays].iter().all(|&s| s == size);
        let &(len, strides) = self.kept.iter().rfind(|&&(len, _)| len != 1)?;
        let runs = self.walk(indexed).dims.last().is_some_and(|d| beside(&d.strides));
        (beside(&strides) && !runs).then_some(len)
    }

    /// How many outputs from `index` on, at most `most`, are best copied together: those that lie
    /// side by side.
    pub(crate) fn together(&self, index: usize, indexed: bool, most: usize) -> usize {
        let Some(len) = self.beside(indexed) else { return 1 };
        (BESIDE / self.source.dtype.size()).min(len - index % len).min(most).max(1)
    }

    /// Hands the elements at `positions` of each of some outputs to `sink`, with the output's place
    /// among them: those of one output in order. Of outputs that lie side by side some elements of
    /// all come before the next: their pages are known to the processor and near it.
    ///
    /// # Errors
    /// Those of `sink`.
    pub(crate) fn for_each_output(
        &self,
        outputs: Range<usize>,
        indexed: bool,
        positions: Range<usize>,
        buffers: &mut Buffers,
        mut sink: impl FnMut(usize, RawRun<'_>) -> Result<()>,
    ) -> Result<()> {
        assert!(outputs.end <= self.outputs && positions.end <= self.plain.len);
        let most = self.together(outputs.start, indexed, outputs.len());
        let step = if most == 1 { positions.len() } else { rows(most, self.source.dtype.size()) };
        for start in positions.clone().step_by(step.max(1)) {
            let some = start..(start + step).min(positions.end);
            let mut at = outputs.start;
            while at < outputs.end {
                let columns = self.together(at, indexed, outputs.end - at);
                let (output, walk, place) =
                    (self.output(at), self.walk(indexed), at - outputs.start);
                let mut sink = |column: usize, run: RawRun<'_>| sink(place + column, run);
                // SAFETY: as in `for_each_run`; outputs that are copied together lie side by side
                // along the innermost of the kept axes, none of them beyond its end.
                unsafe {
                    if columns == 1 {
                        for_each_run(&output, walk, some.clone(), buffers, |run| sink(0, run))?;
                    } else {
                        for_each_column(&output, walk, columns, some.clone(), buffers, sink)?;
                    }
                }
                at += columns;
            }
        }
        Ok(())
    }

    /// The source seen from the first element of output `index`.
    fn output(&self, index: usize) -> Source {
        let mut offsets = [0isize; 2];
        let mut rest = index;
        for &(len, strides) in self.kept.iter().rev() {
            let i = (rest % len).cast_signed();
            rest /= len;
            for (offset, stride) in offsets.iter_mut().zip(strides) {
                *offset += i * stride;
            }
        }
        self.source.shifted(offsets)
    }
}
