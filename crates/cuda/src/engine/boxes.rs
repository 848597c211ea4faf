//! Reductions over some axes of arrays in the host's memory, which are copied
//! to the device in boxes that fit there.
//!
//! A box is packed on its way: gaps are left out, and so are the repetitions of
//! broadcast axes. The order of its axes in memory stays.

use super::Engine;
use super::answer::Answer;
use super::axes::{Group, groups};
use super::collect::Collector;
use super::layout::Layout;
use super::parts::{Part, parts};
use super::question::Question;
use super::route::has_kernels;
use super::table::{Order, Table};
use super::view::check_pair;
use super::workspace::Workspace;
use crate::Result;
use crate::device::{Address, Device, Stream};
use warpfold_core::DType;
use warpfold_core::layout::{Axis, Dim, Split, Traversal, View};
use warpfold_core::op::{AnyState, Kind, Numbers, Op};

/// Bytes of the boxes of one call: at most these, and at most this part of the
/// device's memory.
const BOXES: u64 = 1 << 30;
const PART_OF_MEMORY: u64 = 4;
/// Less is no use: too little memory is an error then.
const LEAST_BOXES: u64 = 64 << 10;
/// Where boxes begin.
const ALIGNMENT: usize = 256;

/// Bytes that are packed before they are copied.
const STAGED: usize = 8 << 20;

/// Device memory of one call.
struct Held<'a> {
    device: &'a dyn Device,
    stream: Stream,
    memory: Workspace,
    /// Where it begins.
    at: Address,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // After an error, launches may still read it. Errors cannot be reported
        // here.
        let _ = self.device.wait(self.stream);
        let _ = self.memory.give_back(self.device);
    }
}

/// One or two arrays in the host's memory, seen from their walks' beginnings.
struct Source<'a> {
    dtype: DType,
    views: [Option<&'a View<'a>>; 2],
    outputs: Traversal,
    /// The same walk in steps that tell the outputs' indices.
    indices: Traversal,
    elements: Traversal,
}

/// How one array of a box lies: where its element of index 0 is behind its
/// first byte, and the strides of its dimensions.
struct Packed {
    origin: usize,
    strides: Vec<isize>,
    bytes: usize,
}

impl Packed {
    /// Packs dimensions of the strides given; the smallest steps stay the
    /// smallest.
    fn new(lens: &[usize], strides: &[isize], size: usize) -> Packed {
        let mut order: Vec<usize> =
            (0..lens.len()).filter(|&i| lens[i] > 1 && strides[i] != 0).collect();
        // The walk goes through equal steps in the order given, outermost first.
        order.reverse();
        order.sort_by_key(|&i| strides[i].unsigned_abs());
        let mut packed = Packed { origin: 0, strides: vec![0; lens.len()], bytes: size };
        for i in order {
            let step = packed.bytes.cast_signed();
            packed.strides[i] = step * strides[i].signum();
            if strides[i] < 0 {
                packed.origin += (lens[i] - 1) * packed.bytes;
            }
            packed.bytes *= lens[i];
        }
        packed
    }
}

impl Engine {
    /// The states of every output of a reduction over the axes that `reduced`
    /// marks, output by output in C order, all `kinds` of each, of arrays in
    /// the host's memory. Two views are reduced together, as for a dot
    /// product. The first element of each output has index `start`.
    ///
    /// # Errors
    /// Views that differ in shape or type; [`Error::NoKernel`](crate::Error::NoKernel);
    /// more outputs than memory holds; what the device says.
    pub fn states_of_host_views(
        &self,
        views: [Option<&View<'_>>; 2],
        reduced: &[bool],
        kinds: &[Kind],
        start: u64,
        stream: Stream,
    ) -> Result<Vec<Vec<AnyState>>> {
        let [Some(first), second] = views else { return Ok(Vec::new()) };
        let dtype = first.dtype();
        if let Some(second) = second {
            check_pair((dtype, first.shape()), (second.dtype(), second.shape()))?;
        }
        let strides = [first.strides(), second.map_or(&[][..], View::strides)];
        let split = Split::new(first.shape(), strides, reduced)?;
        let mut collector = Collector::new(dtype, kinds, split.outputs)?;
        if !first.is_empty() {
            for group in groups(kinds, &split.reduced) {
                let outputs = Traversal::new(&split.kept, false);
                let indices = Traversal::new(&split.kept, true);
                let elements = group.order.walk(&split.reduced);
                let source = Source { dtype, views, outputs, indices, elements };
                self.states_of_source(&source, &group, start, stream, &mut collector)?;
            }
        }
        collector.finish()
    }

    /// The answers of operations over the axes that `reduced` marks, of an array
    /// in the host's memory: what [`numbers_of_view`](Self::numbers_of_view) makes
    /// of the same array on the device, for each operation. `None` where one has
    /// none, or where the elements of an output do not fit the device at once.
    ///
    /// # Errors
    /// Those of [`numbers_of_view`](Self::numbers_of_view).
    pub fn numbers_of_host_view(
        &self,
        ops: &[Op],
        view: &View<'_>,
        reduced: &[bool],
        stream: Stream,
    ) -> Result<Option<Vec<Numbers>>> {
        let dtype = view.dtype();
        let answers: Option<Vec<Answer>> = ops.iter().map(|&op| Answer::of(op, dtype)).collect();
        let Some(answers) = answers.filter(|_| !view.is_empty()) else { return Ok(None) };
        let split = Split::new(view.shape(), [view.strides(), &[]], reduced)?;
        let mut all: Vec<Numbers> =
            answers.iter().map(|a| Numbers::zeros(a.out, split.outputs)).collect();
        let kinds: Vec<Kind> = answers.iter().map(|a| a.kind).collect();
        for group in groups(&kinds, &split.reduced) {
            let outputs = Traversal::new(&split.kept, false);
            let indices = Traversal::new(&split.kept, true);
            let elements = group.order.walk(&split.reduced);
            let source = Source { dtype, views: [Some(view), None], outputs, indices, elements };
            if !self.numbers_of_source(&source, &group, &answers, stream, &mut all)? {
                return Ok(None);
            }
        }
        Ok(Some(all))
    }

    /// Leaves a group's answers in their places, and says whether it did.
    fn numbers_of_source(
        &self,
        source: &Source<'_>,
        group: &Group,
        answers: &[Answer],
        stream: Stream,
        all: &mut [Numbers],
    ) -> Result<bool> {
        let (held, room) = self.hold_boxes(source, stream)?;
        let output = source.elements.len.saturating_mul(source.dtype.size());
        if room < output {
            return Ok(false);
        }
        let boxes = || parts(&source.outputs.dims, room / output);
        let whole = Part::whole(&source.elements);
        for outputs in boxes() {
            let (table, view) =
                self.copy_box(source, &outputs, &whole, group.order, held.at, stream)?;
            for &place in &group.places {
                let answer = answers[place];
                // Rows and columns of a box have kernels that are faster, if there are.
                let by_view = answer.tally().is_some_and(|tally| !has_kernels(tally, &table));
                let layout = view.clone().filter(|_| by_view && table.is_aligned());
                let question = Question {
                    answer,
                    table: table.clone(),
                    layout,
                    abreast: None,
                    ends: None,
                    strided: Default::default(),
                };
                // SAFETY: the box was allocated and filled here, and the copies
                // come before on the stream.
                let made = unsafe { self.answers_to(&[&question], stream)? };
                let Some(Some(some)) = made.into_iter().next() else {
                    return Ok(false);
                };
                let (size, some) = (answer.out.size(), some.bytes());
                let all = all[place].bytes_mut();
                if source.indices.in_order {
                    all[outputs.first * size..][..some.len()].copy_from_slice(some);
                    continue;
                }
                for (i, number) in some.chunks_exact(size).enumerate() {
                    let at = source.indices.index((outputs.first + i) as u64) as usize;
                    all[at * size..][..size].copy_from_slice(number);
                }
            }
        }
        Ok(true)
    }

    /// Device memory for boxes of a source, and how many bytes of elements it has
    /// room for.
    fn hold_boxes(&self, source: &Source<'_>, stream: Stream) -> Result<(Held<'_>, usize)> {
        let device = &**self.device();
        let arrays = source.views.iter().flatten().count();
        let output = source.elements.len.saturating_mul(source.dtype.size() * arrays);
        let slack = ALIGNMENT * arrays;
        let all = source.outputs.len.saturating_mul(output).saturating_add(slack);
        let limit = BOXES.min(device.limits().memory / PART_OF_MEMORY).max(LEAST_BOXES);
        let wanted = (all as u64).min(limit);
        let mut held = Held { device, stream, memory: Workspace::default(), at: 0 };
        let (at, bytes) = held.memory.reserve(device, stream, wanted, LEAST_BOXES.min(wanted))?;
        held.at = at;
        let room = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(slack);
        Ok((held, room))
    }

    fn states_of_source(
        &self,
        source: &Source<'_>,
        group: &Group,
        start: u64,
        stream: Stream,
        collector: &mut Collector<'_>,
    ) -> Result<()> {
        let arrays = source.views.iter().flatten().count();
        let size = source.dtype.size() * arrays;
        let output = source.elements.len.saturating_mul(size);
        let (held, room) = self.hold_boxes(source, stream)?;
        for outputs in parts(&source.outputs.dims, room / output) {
            for elements in parts(&source.elements.dims, room / size) {
                let (table, _) =
                    self.copy_box(source, &outputs, &elements, group.order, held.at, stream)?;
                let start = start + elements.first as u64;
                let sink = &mut |output: usize, kind, state| {
                    let position = (outputs.first + output) as u64;
                    collector.put(source.indices.index(position) as usize, kind, state)
                };
                // SAFETY: the box was allocated and filled here, and the copies
                // come before on the stream.
                unsafe { self.states_of_table(&table, group, start, stream, sink)? };
            }
        }
        Ok(())
    }

    /// Copies some elements of some outputs to the device: a table, and the first
    /// array as a view.
    fn copy_box(
        &self,
        source: &Source<'_>,
        outputs: &Part,
        elements: &Part,
        order: Order,
        to: Address,
        stream: Stream,
    ) -> Result<(Table, Option<Layout>)> {
        let size = source.dtype.size();
        let dims: Vec<Dim> = outputs.dims.iter().chain(&elements.dims).copied().collect();
        let lens: Vec<usize> = dims.iter().map(|d| d.len).collect();
        let mut axes: Vec<Axis> = lens.iter().map(|&len| (len, [0; 2])).collect();
        let mut at = [None; 2];
        let mut next = to;
        for (i, view) in source.views.iter().enumerate() {
            let Some(view) = view else { continue };
            let strides: Vec<isize> = dims.iter().map(|d| d.strides[i]).collect();
            let packed = Packed::new(&lens, &strides, size);
            for (axis, &stride) in axes.iter_mut().zip(&packed.strides) {
                axis.1[i] = stride;
            }
            let used: Vec<Axis> = lens
                .iter()
                .zip(&strides)
                .filter(|&(_, &stride)| stride != 0)
                .map(|(&len, &stride)| (len, [stride, 0]))
                .collect();
            let walk = Traversal::new(&used, false);
            let offsets = [&source.outputs.offsets, &source.elements.offsets];
            let offsets = offsets.into_iter().chain([&outputs.offsets, &elements.offsets]);
            let offset = offsets.map(|o| o[i]).sum::<isize>() + walk.offsets[0];
            let first = view.origin().wrapping_offset(offset);
            // SAFETY: the walk is over elements of the view, and the box that it is a
            // part of has room for all of them.
            unsafe { self.copy_walk(&walk, first, size, next, stream)? };
            at[i] = Some(next + packed.origin as u64);
            next += packed.bytes.next_multiple_of(ALIGNMENT) as u64;
        }
        let (kept, reduced) = axes.split_at(outputs.dims.len());
        let numbered = order == Order::Index;
        let view = at[0].and_then(|at| Layout::new(at, size, kept, reduced, numbered));
        Ok((Table::new(source.dtype, at, kept, reduced, order), view))
    }

    /// Copies the elements of a walk to the device, one after the other.
    ///
    /// # Safety
    /// All of them, counted from `first`, are valid for reads, and there is room for
    /// them at `to`.
    unsafe fn copy_walk(
        &self,
        walk: &Traversal,
        first: *const u8,
        size: usize,
        to: Address,
        stream: Stream,
    ) -> Result<()> {
        let device = self.device();
        let lie_together = match walk.dims[..] {
            [] => true,
            [dim] => dim.strides[0] == size.cast_signed(),
            _ => false,
        };
        if lie_together {
            // SAFETY: the elements follow each other, and the caller vouches
            // for them.
            let bytes = unsafe { core::slice::from_raw_parts(first, walk.len * size) };
            // SAFETY: the caller vouches for the room at `to`.
            return unsafe { device.copy_in(stream, to, bytes) };
        }
        let step = STAGED / size;
        let mut staged = vec![0; walk.len.min(step) * size];
        for position in (0..walk.len).step_by(step) {
            let staged = &mut staged[..step.min(walk.len - position) * size];
            // SAFETY: passed on from the caller.
            unsafe { walk.copy(0, first, size, position, staged) };
            // SAFETY: as above.
            unsafe { device.copy_in(stream, to + (position * size) as u64, staged)? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_axes_keep_their_order_and_sign() {
        let packed = Packed::new(&[3, 4, 5], &[4, -1000, 24], 4);
        assert_eq!(packed.strides, [4, -60, 12]);
        assert_eq!((packed.origin, packed.bytes), (180, 240));
    }

    #[test]
    fn broadcast_axes_are_packed_once() {
        let packed = Packed::new(&[1000, 3, 1], &[0, -2, 7], 2);
        assert_eq!(packed.strides, [0, -2, 0]);
        assert_eq!((packed.origin, packed.bytes), (4, 6));
    }

    #[test]
    fn of_equal_steps_the_later_axis_is_the_faster() {
        // Windows of three over five elements.
        let packed = Packed::new(&[3, 3], &[8, 8], 8);
        assert_eq!((packed.strides, packed.bytes), (vec![24, 8], 72));
    }
}
