//! Walking: blocks of outputs, on all threads.

use super::fold::{Cells, Fold};
use super::lengths::Lengths;
use super::places::{Places, Strip};
use super::strips::Strips;
use super::turned::Turned;
use super::walk::{Form, Segment, Walk};
use super::words::with_word;
use crate::pack::Pack;
use crate::table::Table;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ops::Range;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Error, Result};
use warpfold_threads::{Pieces, Threads};

/// Elements of a row that is looked at before it is asked whether more can matter.
const GLANCE: usize = 8192;
/// Of so many outputs, one that has to be looked at again is looked at alone.
const FEW: usize = 16;
/// The most outputs that a thread takes at a time in strips.
const MANY: usize = 1 << 14;
/// Rows of a single column that are worth a copy.
const LANES: usize = 16;
/// Elements of a table of columns that are worth a call.
const TABLE: usize = 2048;
/// The writing of an answer is a part of the cost of outputs of so few elements.
const CHEAP: usize = 64;
/// Bytes of all elements below which one thread works.
const SMALL: usize = 1 << 18;

/// A walk over elements in memory.
pub(super) struct Run<'a> {
    pub(super) walk: Walk,
    /// The first element of each view: every element that the walk leads to from here may
    /// be read for `'a`, and is aligned. There are one or two.
    pub(super) origins: [Option<*const u8>; 2],
    /// Size and alignment of an element, which any bits make.
    pub(super) item: Layout,
    /// Whether the bytes between these elements may be read, too.
    pub(super) gaps: bool,
    threads: Threads,
    elements: PhantomData<&'a [u8]>,
}

// SAFETY: a run only reads, as a shared slice of its elements does.
unsafe impl Sync for Run<'_> {}

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

    /// The bytes of answers that follow each other; aligned.
    ///
    /// # Safety
    /// No other thread touches them meanwhile.
    #[expect(clippy::mut_from_ref, reason = "each answer is one thread's")]
    unsafe fn run(&self, first: usize, len: usize) -> &mut [u8] {
        assert!(first + len <= self.len);
        let size = self.dtype.size();
        // SAFETY: within the numbers; the caller vouches for that nobody else is there.
        unsafe { core::slice::from_raw_parts_mut(self.bytes.add(first * size), len * size) }
    }

    /// Writes an answer's bytes.
    ///
    /// # Safety
    /// No other thread touches it meanwhile.
    #[inline]
    unsafe fn set(&self, output: usize, answer: &[u8]) {
        // SAFETY: passed on from the caller.
        unsafe { self.run(output, 1).copy_from_slice(answer) }
    }

    /// Writes answers of which each is `step` from the one before.
    ///
    /// # Safety
    /// No other thread touches them meanwhile.
    unsafe fn scatter(&self, first: isize, step: isize, answers: &[u8]) {
        with_word!(self.dtype.size(), W => {
            let answers: &[W] = bytemuck::cast_slice(answers);
            let last = first + (answers.len().cast_signed() - 1) * step;
            let all = 0..self.len.cast_signed();
            assert!(answers.is_empty() || all.contains(&first) && all.contains(&last));
            let mut to = self.bytes.cast::<W>().wrapping_offset(first);
            for &answer in answers {
                // SAFETY: within the numbers, whose memory is aligned for every type; the
                // caller vouches for that nobody else is there.
                unsafe { to.write(answer) };
                to = to.wrapping_offset(step);
            }
        });
    }

    /// Writes an answer by its bits.
    ///
    /// # Safety
    /// As for [`set`](Self::set).
    unsafe fn set_bits(&self, output: usize, bits: u64) {
        // SAFETY: passed on from the caller.
        let to = unsafe { self.run(output, 1) };
        Numbers::set_bits(to, self.dtype, 0, bits);
    }
}

/// Where the answers of a block go.
#[derive(Clone, Copy)]
struct Goal<'a> {
    answers: &'a Answers<'a>,
    places: &'a Places,
    /// The first output, of answers that are in the order of memory and not of `places`.
    start: Option<usize>,
}

impl Goal<'_> {
    /// Where the answer of an output goes.
    fn at(&self, output: usize) -> usize {
        match self.start {
            Some(start) => output - start,
            None => self.places.at(output),
        }
    }
}

/// What is taken of each output at a time: `count` elements along the innermost reduced axis,
/// at each of `rows` indices of the axis outside of it.
#[derive(Clone, Copy)]
struct Part {
    rows: usize,
    count: usize,
}

impl Part {
    /// Elements of an output.
    fn len(self) -> usize {
        self.rows * self.count
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
#[derive(Default)]
pub(super) struct Hands {
    pub(super) segments: Vec<Segment>,
    /// Copies of elements. Whole words, so that those of every type are aligned.
    pub(super) buffers: [Vec<u64>; 2],
    /// Answers that go to several places.
    answers: Vec<u64>,
    /// Outputs without an answer: their places in the block.
    pub(super) missing: Vec<usize>,
    /// The same, with the outputs in C order.
    left: Vec<(usize, usize)>,
}

/// Those who answer: the accumulators of an operation, if they cannot those of another,
/// and in the end the general way.
#[derive(Clone, Copy)]
pub(super) struct Folds<'a> {
    pub(super) fold: &'a dyn Fold,
    pub(super) again: Option<&'a dyn Fold>,
    pub(super) otherwise: &'a (dyn Fn(usize) -> Result<u64> + Sync),
}

impl Run<'_> {
    /// # Safety
    /// See the fields.
    pub(super) unsafe fn new(
        walk: Walk,
        origins: [Option<*const u8>; 2],
        item: Layout,
        gaps: bool,
        threads: Threads,
    ) -> Self {
        Run { walk, origins, item, gaps, threads, elements: PhantomData }
    }

    /// Writes the answers of all outputs.
    ///
    /// # Errors
    /// Those of [`Folds::otherwise`].
    pub(super) fn answers(&self, folds: Folds<'_>, numbers: &mut Numbers) -> Result<()> {
        let fold = folds.fold;
        assert!(fold.item() == self.item);
        assert!(folds.again.is_none_or(|again| again.item() == self.item));
        let outputs = self.walk.outputs();
        let strips = self.strips_for(fold);
        let strips = strips.as_ref();
        let places = self.walk.places();
        // Strips are handed out several at a time.
        let (block, strip) = match strips {
            None => (self.walk.block, self.walk.block),
            Some(strips) => {
                let share = outputs / (4 * self.threads.count());
                (share.next_multiple_of(strips.len).clamp(strips.len, MANY), strips.len)
            }
        };
        let blocks = outputs.div_ceil(block);
        let len = self.len();
        let bytes = outputs.saturating_mul(len).saturating_mul(self.item.size());
        let threads = if bytes < SMALL { 1 } else { self.threads.count() };
        let answers = Answers::of(numbers);
        let block_of = |index: usize| index * block..outputs.min((index + 1) * block);
        if threads > 1 && blocks < 2 * threads && strips.is_none() {
            // Few outputs: the threads share their elements.
            let mut failed = None;
            let (axis, parts) = self.cut(4 * threads);
            for outputs in (0..blocks).map(block_of) {
                let pieces = Pieces::new(parts.len());
                let mut done = self
                    .threads
                    .run(parts.len(), || {
                        let mut hands = Hands::default();
                        let mut cells = fold.cells(block);
                        while let Some(piece) = pieces.take() {
                            let part = (axis, parts[piece].clone());
                            self.take_in(&mut *cells, outputs.clone(), Some(part), &mut hands);
                        }
                        cells
                    })
                    .into_iter();
                let Some(mut cells) = done.next() else { continue };
                done.for_each(|others| cells.merge(&*others));
                let mut hands = Hands::default();
                let goal = Goal { answers: &answers, places, start: None };
                // SAFETY: one thread at a time writes.
                let written =
                    unsafe { self.write(folds, None, &mut *cells, outputs, &mut hands, goal) };
                failed = earlier(failed, written.err());
            }
            return failed.map_or(Ok(()), |failed| Err(failed.error));
        }
        let turned = self.turned(answers.dtype.size(), threads);
        let block = turned.as_ref().map_or(block, |turned| turned.chunk);
        let blocks = outputs.div_ceil(block);
        let pieces = Pieces::new(blocks);
        let most = if threads == 1 { 1 } else { blocks };
        let done = self.threads.run(most, || {
            let (mut hands, mut failed) = (Hands::default(), None);
            let mut cells = fold.cells(strips.map_or(strip, Strips::cells));
            // Answers in the order of memory.
            let len = if turned.is_some() { block.min(outputs) } else { 0 };
            let mut chunk = Numbers::zeros(answers.dtype, len);
            while let Some(piece) = pieces.take() {
                let piece = piece * block..outputs.min((piece + 1) * block);
                let in_order = Answers::of(&mut chunk);
                let goal = match turned {
                    Some(_) => Goal { answers: &in_order, start: Some(piece.start), places },
                    None => Goal { answers: &answers, start: None, places },
                };
                let mut from = piece.start;
                while from < piece.end {
                    let end = strips.map_or(from + strip, |strips| strips.end(from));
                    let outputs = from..piece.end.min(end);
                    from = outputs.end;
                    if strips.is_none() {
                        self.take_in(&mut *cells, outputs.clone(), None, &mut hands);
                    }
                    // SAFETY: each block is taken once.
                    let written = unsafe {
                        self.write(folds, strips, &mut *cells, outputs, &mut hands, goal)
                    };
                    failed = earlier(failed, written.err());
                    if strips.is_none() {
                        cells.clear(strip);
                    }
                }
                if let Some(turned) = &turned {
                    // SAFETY: each chunk is taken once; there is room for all answers.
                    unsafe { turned.write(piece, chunk.bytes(), answers.bytes, answers.len) };
                }
            }
            failed
        });
        let failed = done.into_iter().fold(None, earlier);
        failed.map_or(Ok(()), |failed| Err(failed.error))
    }

    /// Elements of an output.
    fn len(&self) -> usize {
        self.walk.elements()
    }

    /// How the answers are turned, if they are and it is worth it: of many elements the answer
    /// is the least of the cost.
    fn turned(&self, size: usize, threads: usize) -> Option<Turned<'_>> {
        let outputs = self.walk.outputs();
        let share = if threads == 1 { outputs } else { outputs / (4 * threads) };
        let cheap = self.len() <= CHEAP;
        if cheap { Turned::new(self.walk.places(), outputs, size, share) } else { None }
    }

    /// The longest of the reduced axes, and ranges of it, at most so many.
    fn cut(&self, most: usize) -> (usize, Vec<Range<usize>>) {
        let axes = self.walk.reduced.iter().enumerate();
        let (axis, &(len, _)) = axes.max_by_key(|(_, axis)| axis.0).unwrap_or((0, &(1, [0; 2])));
        // Whole panels, where the axis has some.
        let step = len.div_ceil(most.max(1)).next_multiple_of(64).min(len).max(1);
        (axis, (0..len).step_by(step).map(|at| at..len.min(at + step)).collect())
    }

    /// Lets accumulators take in the elements of some outputs, or of a part of a
    /// reduced axis.
    fn take_in(
        &self,
        cells: &mut dyn Cells,
        outputs: Range<usize>,
        part: Option<(usize, Range<usize>)>,
        hands: &mut Hands,
    ) {
        let walk = &self.walk;
        let Hands { segments, buffers, .. } = hands;
        walk.segments(outputs.start, outputs.end, segments);
        let range = |axis: usize| match &part {
            Some((cut, range)) if *cut == axis => range.clone(),
            _ => 0..walk.reduced[axis].0,
        };
        let inner = walk.reduced.len() - 1;
        let settles = cells.settles();
        let mut panel = if settles { walk.panel.min(GLANCE) } else { walk.panel };
        if walk.form == Form::Columns && walk.copied == [false; 2] && !settles {
            panel = panel.max(TABLE / outputs.len().max(1)).max(cells.least_panel());
        }
        // The indices of the outer axes, as an odometer.
        let mut index: Vec<usize> = (0..inner).map(|axis| range(axis).start).collect();
        let inner_range = range(inner);
        // Whole rows follow each other, also by their positions.
        let joined = if inner_range.len() == walk.reduced[inner].0 { walk.joined } else { 1 };
        if inner_range.is_empty() || (0..inner).any(|axis| range(axis).is_empty()) {
            return;
        }
        loop {
            let (mut offset, mut place) = ([0isize; 2], 0usize);
            for (&i, &(len, strides)) in index.iter().zip(&walk.reduced) {
                move_by(&mut offset, i, strides);
                place = place * len + i;
            }
            let (len, strides) = walk.reduced[inner];
            let rows =
                if joined > 1 { joined.min(range(inner - 1).end - index[inner - 1]) } else { 1 };
            let mut at = inner_range.start;
            while at < inner_range.end {
                let count = panel.min(inner_range.end - at);
                let part = Part { rows, count };
                for segment in segments.iter() {
                    let mut offsets = segment.offsets;
                    move_by(&mut offsets, 1, offset);
                    move_by(&mut offsets, at, strides);
                    self.tables(cells, segment, offsets, part, place * len + at, buffers);
                }
                at += count;
                if settles && cells.is_settled() {
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
                index[axis] += if axis + 1 == inner { joined } else { 1 };
                if index[axis] < range(axis).end {
                    break;
                }
                index[axis] = range(axis).start;
            }
        }
    }

    /// Hands tables to the accumulators: a part of each output of a segment, from the elements
    /// on that lie at these offsets.
    fn tables(
        &self,
        cells: &mut dyn Cells,
        segment: &Segment,
        offsets: [isize; 2],
        part: Part,
        at: usize,
        buffers: &mut [Vec<u64>; 2],
    ) {
        let walk = &self.walk;
        let beside = walk.kept.last().map_or([0; 2], |axis| axis.strides);
        let copied = walk.copied != [false; 2] || part.rows > 1;
        let together = if copied { walk.together(part.len()) } else { segment.len };
        // One column is copied to a row: that has lanes for its elements.
        let alone = segment.len == 1 && !copied && part.count >= LANES;
        let form = if alone { Form::Rows } else { walk.form };
        for first in (0..segment.len).step_by(together) {
            let outputs = together.min(segment.len - first);
            let mut offsets = offsets;
            move_by(&mut offsets, first, beside);
            let [one, two] = buffers;
            let table = self.table(0, offsets[0], form, (outputs, part), one);
            let other =
                self.origins[1].map(|_| self.table(1, offsets[1], form, (outputs, part), two));
            let place = segment.place + first;
            // SAFETY: elements of the walk or copies of them, which are aligned and may be
            // read, and those of a row follow each other; they have the operation's size.
            unsafe {
                match (form, other) {
                    (Form::Rows, None) => cells.rows(place, table, at),
                    (Form::Columns, None) => cells.columns(place, table, at),
                    (Form::Rows, Some(other)) => cells.row_pairs(place, [table, other]),
                    (Form::Columns, Some(other)) => cells.column_pairs(place, [table, other]),
                }
            }
        }
    }

    /// The table of a part of each of some outputs of one array, copied if the walk says so.
    fn table<'b>(
        &'b self,
        array: usize,
        offset: isize,
        form: Form,
        (outputs, part): (usize, Part),
        buffer: &'b mut Vec<u64>,
    ) -> Table<'b, ()> {
        let walk = &self.walk;
        let along = walk.reduced.last().map_or(0, |(_, strides)| strides[array]);
        let beside = walk.kept.last().map_or(0, |axis| axis.strides[array]);
        let (rows, columns, row_stride, column_stride) = match form {
            Form::Rows => (outputs, part.count, beside, along),
            Form::Columns => (part.count, outputs, along, beside),
        };
        let origin = self.origins[array].unwrap_or(core::ptr::null());
        let from = origin.wrapping_byte_offset(offset);
        let size = self.item.size();
        let gaps = self.gaps;
        let to = |buffer: &'b mut Vec<u64>, len: usize| -> &'b mut [u8] {
            if buffer.len() * 8 < len {
                buffer.resize(len.div_ceil(8), 0);
            }
            &mut bytemuck::cast_slice_mut::<u64, u8>(buffer)[..len]
        };
        if part.rows > 1 {
            // A row of each output, made of several.
            let (columns, outside) = (part.len(), walk.reduced[walk.reduced.len() - 2].1[array]);
            let to = to(buffer, outputs * columns * size);
            for (i, to) in to.chunks_exact_mut(columns * size).enumerate() {
                let from = from.wrapping_byte_offset(i.cast_signed() * beside);
                let (rows, columns) = (part.rows, part.count);
                let (row_stride, column_stride) = (outside, along);
                let pack = Pack { from, size, rows, columns, row_stride, column_stride, gaps };
                // SAFETY: as below.
                unsafe { pack.fill(to) };
            }
            let stride = (columns * size).cast_signed();
            return Table::of_any(to.as_ptr().cast(), stride, outputs, columns);
        }
        let lies = !walk.copied[array] && column_stride == size.cast_signed();
        if lies || !walk.copied[array] && form == walk.form {
            return Table::of_any(from.cast(), row_stride, rows, columns);
        }
        let to = to(buffer, rows * columns * size);
        let pack = Pack { from, size, rows, columns, row_stride, column_stride, gaps };
        // SAFETY: the table is among the walk's elements, which may be read, and
        // so may what lies between them if `gaps` says so.
        unsafe { pack.fill(to) };
        Table::of_any(to.as_ptr().cast(), (columns * size).cast_signed(), rows, columns)
    }

    /// Writes the answers of a block.
    ///
    /// # Errors
    /// Those of [`Folds::otherwise`].
    ///
    /// # Safety
    /// No other thread writes answers of this block.
    unsafe fn write(
        &self,
        folds: Folds<'_>,
        strips: Option<&Strips>,
        cells: &mut dyn Cells,
        outputs: Range<usize>,
        hands: &mut Hands,
        goal: Goal<'_>,
    ) -> core::result::Result<(), Failed> {
        let Goal { answers, places, .. } = goal;
        let from = outputs.start;
        let lengths = Lengths::Same(self.len() as u64);
        let mut left = core::mem::take(&mut hands.left);
        left.clear();
        hands.missing.clear();
        // SAFETY: outputs of the block, which the caller vouches for.
        unsafe { self.write_block(strips, cells, outputs.clone(), hands, goal) };
        left.extend(hands.missing.iter().map(|&place| (place, places.at(from + place))));
        if let Some(again) = folds.again.filter(|_| !left.is_empty()) {
            // All of the block together, unless a few are left.
            let together = left.len() * FEW >= outputs.len();
            let (count, size) = (if together { outputs.len() } else { 1 }, answers.dtype.size());
            let mut cells = again.cells(count);
            let mut words = vec![0u64; (count * size).div_ceil(8)];
            let words: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..count * size];
            let mut answer = |outputs: Range<usize>, words: &mut [u8], hands: &mut Hands| {
                cells.clear(count);
                self.take_in(&mut *cells, outputs, None, hands);
                hands.missing.clear();
                cells.answer(0, lengths, words, &mut hands.missing);
            };
            if together {
                answer(outputs, words, hands);
            }
            left.retain(|&(place, _)| {
                if !together {
                    answer(from + place..from + place + 1, words, hands);
                }
                let at = if together { place } else { 0 };
                // In order, as they were asked for.
                let found = hands.missing.binary_search(&at).is_err();
                if found {
                    // SAFETY: as above.
                    unsafe { answers.set(goal.at(from + place), &words[at * size..][..size]) };
                }
                !found
            });
        }
        left.sort_unstable_by_key(|&(_, output)| output);
        for &(place, output) in &left {
            let bits = (folds.otherwise)(output).map_err(|error| Failed { output, error })?;
            // SAFETY: as above.
            unsafe { answers.set_bits(goal.at(from + place), bits) };
        }
        hands.left = left;
        Ok(())
    }

    /// Writes the answers of a block that accumulators have, or of a strip; the places of those
    /// that there are not go to [`Hands::missing`].
    ///
    /// # Safety
    /// No other thread writes these answers.
    unsafe fn write_block(
        &self,
        strips: Option<&Strips>,
        cells: &mut dyn Cells,
        outputs: Range<usize>,
        hands: &mut Hands,
        goal: Goal<'_>,
    ) {
        let Goal { answers, places, start } = goal;
        let from = outputs.start;
        let mut answer = |to: &mut [u8], hands: &mut Hands| match strips {
            Some(strips) => self.strip(strips, cells, outputs.clone(), to, hands),
            None => {
                let lengths = Lengths::Same(self.len() as u64);
                cells.answer(0, lengths, to, &mut hands.missing);
            }
        };
        if start.is_some() || matches!(places.axes[..], [] | [(_, 1)]) {
            // SAFETY: the caller vouches for it, here and below.
            let to = unsafe { answers.run(goal.at(from), outputs.len()) };
            return answer(to, hands);
        }
        let size = answers.dtype.size();
        let bytes = outputs.len() * size;
        let mut words = core::mem::take(&mut hands.answers);
        if words.len() * 8 < bytes {
            words.resize(bytes.div_ceil(8), 0);
        }
        let found: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..bytes];
        answer(found, hands);
        let mut rest = &*found;
        places.strips(from, outputs.end, |Strip { first, step, len }| {
            let (strip, after) = rest.split_at(len * size);
            // SAFETY: as above. What is not found yet is overwritten later.
            unsafe { answers.scatter(first, step, strip) };
            rest = after;
        });
        hands.answers = words;
    }
}

/// Goes `count` steps on, in both arrays.
#[inline(always)]
pub(super) fn move_by(offsets: &mut [isize; 2], count: usize, strides: [isize; 2]) {
    for (offset, stride) in offsets.iter_mut().zip(strides) {
        *offset += count.cast_signed() * stride;
    }
}
