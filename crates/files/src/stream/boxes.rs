//! Reductions over some axes: the array is read in boxes that fit into memory.
//!
//! The outputs are cut into tiles whose states fit into memory, and the
//! elements of a tile into boxes. A thread reads the next box while the last
//! one is reduced. Only the slowest axes are cut, so that boxes are read in
//! long runs, and where nothing needs cutting, the file is read once, front to
//! back.

use super::feed::Feed;
use super::{Piece, Plan, Progress, advance, check_shape, order_of, wants_indices};
use crate::{Access, Error, Extent, Order, ReadAt, Result, Source};
use core::ops::Range;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use warpfold::internal::ForReaders;
use warpfold::{Answer, Column, DType, Device, Numbers, Partial, Reduction, View};
use warpfold_core::layout::output_shape;
use warpfold_threads::read_ahead;

/// Bytes of a box, where memory allows it: large enough to be worth several
/// threads.
const BOX: usize = 16 << 20;

/// Bytes of a box for each thread that are near enough to be in a cache when they
/// are reduced, and still worth waking it. A buffer that is read into a cache
/// saves the way to memory and back.
const NEAR: usize = 1 << 20;

/// Elements of each output that a box has at least for the sake of a cache: the
/// work beside them is for each box and output.
const ENOUGH: usize = 256;

/// Bytes of a run that make reading in runs worth it.
const LONG_RUN: usize = 32 << 10;

/// Bytes of states, by `most_bytes`, that are near enough for boxes to come back
/// to them.
const STATES_NEAR: usize = 16 << 20;

/// Bytes beside a state: the allocator's, and those of the vectors it is in.
const BESIDE_STATE: usize = 48;

/// Bytes of answers that any machine has memory for.
const FEW: usize = 1 << 20;

/// The product of an array's lengths, which do not overflow without the zeros:
/// `check_shape` made sure.
fn product(lengths: impl Iterator<Item = usize> + Clone) -> usize {
    if lengths.clone().any(|n| n == 0) { 0 } else { lengths.product() }
}

/// The answers of a reduction over some axes.
pub(super) fn answer(
    plan: Plan,
    reduction: &Reduction,
    memory: usize,
    progress: &dyn Progress,
) -> Result<Answer> {
    let job = Boxes::new(plan, reduction, 0, memory, progress)?;
    let mut columns: Vec<Column> = Vec::new();
    job.for_each_tile(&mut |outputs, tile, done| {
        let wrong = |source| Error::Reduce { name: job.name.clone(), source };
        let answer = match done {
            Done::Answer(answer) => answer,
            Done::Partial(partial) => partial.finish(reduction.rules()).map_err(wrong)?,
            Done::Absorbed => return Ok(()),
        };
        if columns.is_empty() {
            columns = answer.columns().iter().map(|c| blank(c, outputs)).collect();
        }
        for (to, from) in columns.iter_mut().zip(answer.columns()) {
            place(&mut to.numbers, &from.numbers, tile);
            if let (Some(to), Some(from)) = (&mut to.second, &from.second) {
                place(to, from, tile);
            }
        }
        Ok(())
    })?;
    let wrong = |source| Error::Reduce { name: job.name.clone(), source };
    Answer::from_columns(job.output_shape(), columns).map_err(wrong)
}

/// The states of a reduction over some axes.
pub(super) fn partial(
    plan: Plan,
    reduction: &Reduction,
    start: u64,
    memory: usize,
    progress: &dyn Progress,
) -> Result<Partial> {
    let mut job = Boxes::new(plan, reduction, start, memory, progress)?;
    job.states = true;
    // All states are kept anyway.
    job.states_bytes = usize::MAX;
    let job = job;
    let mut parts: Vec<(usize, Partial)> = Vec::new();
    let mut scattered = false;
    job.for_each_tile(&mut |_, tile, done| {
        let Done::Partial(partial) = done else {
            return Err(Error::format(job.name.clone(), "states were asked for"));
        };
        scattered |= tile.starts.len() > 1;
        parts.push((tile.first, partial));
        Ok(())
    })?;
    if scattered && parts.len() > 1 {
        return Err(Error::format(job.name.clone(), "its states do not fit into memory")
            .with_hint("raise --memory-limit"));
    }
    parts.sort_unstable_by_key(|&(first, _)| first);
    let parts = parts.into_iter().map(|(_, partial)| partial).collect();
    let wrong = |source| Error::Reduce { name: job.name.clone(), source };
    Partial::joined(job.output_shape(), parts).map_err(wrong)
}

/// A column of zeros like `column`, for `outputs` outputs.
fn blank(column: &Column, outputs: usize) -> Column {
    let mut blank = column.clone();
    for numbers in core::iter::once(&mut blank.numbers).chain(&mut blank.second) {
        *numbers = Numbers::zeros(numbers.dtype(), outputs);
    }
    blank
}

/// Where a tile's outputs lie among all outputs: in runs of `len`.
struct Tile {
    first: usize,
    len: usize,
    /// The first output of every run.
    starts: Vec<usize>,
}

/// Copies a tile's numbers to their places.
fn place(to: &mut Numbers, from: &Numbers, tile: &Tile) {
    let size = to.dtype().size();
    if from.dtype() != to.dtype() {
        return;
    }
    let to = to.bytes_mut();
    for (&start, run) in tile.starts.iter().zip(from.bytes().chunks(tile.len * size)) {
        if let Some(to) = to.get_mut(start * size..start * size + run.len()) {
            to.copy_from_slice(run);
        }
    }
}

/// What has been made of a tile.
enum Done {
    Answer(Answer),
    Partial(Partial),
    /// The tile's states, which were there, have absorbed a box.
    Absorbed,
}

/// One piece of the array and the shape that it is stored in.
struct Stored {
    names: Vec<String>,
    readers: Vec<Box<dyn ReadAt>>,
    /// The lengths of the axes, slowest first.
    dims: Vec<usize>,
    /// Where the piece begins on axis 0.
    offset: usize,
}

struct Boxes<'a> {
    name: String,
    dtype: DType,
    pieces: Vec<Stored>,
    /// The shape of the whole array.
    shape: Vec<usize>,
    reduced: Vec<bool>,
    order: Order,
    reduction: &'a Reduction,
    start: u64,
    /// Whether every piece can be read at any place.
    seekable: bool,
    /// Whether states are wanted, not answers.
    states: bool,
    box_bytes: usize,
    /// What the states of a tile's outputs may take.
    states_bytes: usize,
    progress: &'a dyn Progress,
}

/// A box: a range of every axis, as the caller names the axes, in one piece.
struct Part {
    piece: usize,
    ranges: Vec<Range<usize>>,
    /// The index of its first element among the reduced ones.
    start: u64,
    /// Whether its elements have other indices than those from there on: they are told by
    /// their places then, and `start` counts those of the boxes before it.
    scattered: bool,
}

impl<'a> Boxes<'a> {
    fn new(
        plan: Plan,
        reduction: &'a Reduction,
        start: u64,
        memory: usize,
        progress: &'a dyn Progress,
    ) -> Result<Boxes<'a>> {
        let name = plan.name;
        let dtype = plan.dtype;
        let mut order: Option<Order> = None;
        let mut pieces = Vec::new();
        let mut shape: Vec<usize> = Vec::new();
        let mut offset = 0;
        let mut seekable = true;
        for Piece { items, others } in plan.pieces {
            let dims = match &items.extent {
                Extent::Array { shape, .. } => shape.clone(),
                Extent::Column { .. } => {
                    return Err(Error::format(items.name, "a column has one axis only")
                        .with_hint("leave out --axis"));
                }
            };
            let its_order = order_of(&items);
            if order.is_some() && its_order.is_some() && order != its_order {
                return Err(Error::format(
                    items.name,
                    "it is stored in another order of axes than the inputs before it",
                )
                .with_hint("save all pieces in C order"));
            }
            order = order.or(its_order);
            let length = dims.first().copied().unwrap_or(1);
            if shape.is_empty() {
                shape.clone_from(&dims);
            } else if let Some(n) = shape.first_mut() {
                // A sum that is too large is refused below.
                *n = n.saturating_add(length);
            }
            check_shape(&items.name, &shape, dtype)?;
            let sources: Vec<Source> = std::iter::once(items).chain(others).collect();
            let names = sources.iter().map(|s| s.name.clone()).collect();
            seekable &= sources.iter().all(|s| matches!(s.access, Access::Random(_)));
            let readers = sources.into_iter().map(reader).collect::<Result<Vec<_>>>()?;
            pieces.push(Stored { names, readers, dims, offset });
            offset += length;
        }
        let arrays = pieces.first().map_or(1, |p| p.readers.len());
        // Two boxes of each array are in memory at a time.
        let box_bytes = BOX.min(memory / (8 * arrays)).max(dtype.size());
        let boxes = Boxes {
            name,
            dtype,
            pieces,
            shape,
            reduced: plan.reduced,
            order: order.unwrap_or(Order::C),
            reduction,
            start,
            seekable,
            states: false,
            box_bytes,
            // The states of one more box hold its elements once more, at most.
            states_bytes: memory.saturating_sub(3 * arrays * box_bytes),
            progress,
        };
        let len = boxes.reduced_len();
        if start.checked_add(len).is_none() {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let source = warpfold::Error::StartTooLarge { start, len };
            return Err(Error::Reduce { name: boxes.name, source });
        }
        Ok(boxes)
    }

    /// How many elements make an output.
    fn reduced_len(&self) -> u64 {
        let lengths = self.shape.iter().zip(&self.reduced).filter(|(_, r)| **r).map(|(&n, _)| n);
        product(lengths) as u64
    }

    fn output_shape(&self) -> Vec<usize> {
        output_shape(&self.shape, &self.reduced, self.reduction.keeps_dims())
    }

    /// The axes, slowest in the file first.
    fn storage_axes(&self) -> Vec<usize> {
        let axes = 0..self.shape.len();
        match self.order {
            Order::C => axes.collect(),
            Order::Fortran => axes.rev().collect(),
        }
    }

    /// Halves the ranges of the slowest axes that `may_cut`, until `fits`.
    fn cut(
        &self,
        lengths: &mut [usize],
        may_cut: impl Fn(usize) -> bool,
        fits: impl Fn(&[usize]) -> bool,
    ) {
        while !fits(lengths) {
            let axes = self.storage_axes();
            let Some(axis) = axes.into_iter().find(|&a| may_cut(a) && lengths[a] > 1) else {
                return;
            };
            lengths[axis] = lengths[axis].div_ceil(2);
        }
    }

    /// Reduces tile by tile and hands each to `sink` with the number of all
    /// outputs.
    fn for_each_tile(&self, sink: &mut dyn FnMut(usize, &Tile, Done) -> Result<()>) -> Result<()> {
        let kept = |axis: usize| !self.reduced[axis];
        let outputs_of = |lengths: &[usize]| -> usize {
            product(lengths.iter().enumerate().filter(|&(a, _)| kept(a)).map(|(_, &n)| n))
        };
        let outputs = outputs_of(&self.shape);
        let state_bytes = self.state_bytes()?;
        self.check_outputs(outputs, state_bytes)?;
        if let Some((tile, part)) = self.along_chunks(state_bytes) {
            return self.run(self.parts(&tile, &part), outputs, sink);
        }
        // Tiles: all outputs, if their states fit.
        let mut tile = self.shape.clone();
        if !self.shape.is_empty() && kept(0) {
            // Pieces are joined along axis 0: a tile lies in one of them.
            tile[0] = self.pieces.iter().filter_map(|p| p.dims.first().copied()).max().unwrap_or(0);
        }
        self.cut(&mut tile, kept, |t| {
            outputs_of(t).saturating_mul(state_bytes) <= self.states_bytes
        });
        // Boxes: all of a tile, if it fits.
        let mut part = tile.clone();
        // Best are boxes that hold all elements of their outputs: answers come
        // straight out of them, without states that are merged.
        let mut narrow = tile.clone();
        self.cut(&mut narrow, kept, |b| self.fits(b));
        if self.fits(&narrow) && self.seekable && self.run_bytes(&narrow) >= LONG_RUN {
            self.bring_near(&mut narrow, kept, |_| true);
            let parts = self.parts(&narrow, &narrow);
            return self.run(parts, outputs, sink);
        }
        let fits = |b: &[usize]| self.fits(b);
        // Cutting kept axes gives more tiles, not more merging: where they are
        // the slowest, they go first.
        let slowest = self.storage_axes().into_iter().find(|&a| self.shape[a] > 1);
        if slowest.is_some_and(kept) {
            self.cut(&mut tile, |a| Some(a) == slowest, fits);
            part.clone_from(&tile);
        }
        if slowest.is_some_and(|a| !kept(a)) && self.seekable && !self.states {
            // A box of fewer outputs has more elements of each, and their states
            // stay in the cache from box to box.
            while outputs_of(&tile).saturating_mul(state_bytes) > STATES_NEAR {
                let outputs = outputs_of(&tile);
                let mut smaller = tile.clone();
                self.cut(&mut smaller, kept, |t| outputs_of(t) < outputs);
                let done = outputs_of(&smaller) == outputs;
                if done || self.run_bytes(&smaller) < LONG_RUN {
                    break;
                }
                tile = smaller;
            }
            part.clone_from(&tile);
        }
        self.cut(&mut part, |a| self.reduced[a], fits);
        if !fits(&part) {
            self.cut(&mut tile, kept, |t| {
                let mut b = part.clone();
                t.iter().enumerate().filter(|&(a, _)| kept(a)).for_each(|(a, &n)| b[a] = n);
                fits(&b)
            });
            (0..tile.len()).filter(|&a| kept(a)).for_each(|a| part[a] = tile[a]);
        }
        if part != tile && self.states_are_small()? {
            let each = |b: &[usize]| product((0..b.len()).filter(|&a| !kept(a)).map(|a| b[a]));
            self.bring_near(&mut part, |a| !kept(a), |b| each(b) >= ENOUGH);
        }
        let parts = self.parts(&tile, &part);
        self.run(parts, outputs, sink)
    }

    /// Tiles and boxes made of whole chunks, if the array has some: each is decoded once.
    /// Nothing where the states of the outputs of a chunk do not fit.
    fn along_chunks(&self, state_bytes: usize) -> Option<(Vec<usize>, Vec<usize>)> {
        let lead = self.pieces.first()?.readers.first()?;
        let chunk = lead.chunks().filter(|_| self.seekable)?.chunk();
        let kept = |axis: usize| !self.reduced[axis];
        let states_fit = |b: &[usize]| {
            let outputs = product(b.iter().enumerate().filter(|&(a, _)| kept(a)).map(|(_, &n)| n));
            outputs.saturating_mul(state_bytes) <= self.states_bytes
        };
        let axes = 0..self.shape.len();
        let steps = axes.map(|a| usize::try_from(chunk[a]).unwrap_or(usize::MAX));
        let steps: Vec<usize> =
            steps.zip(&self.shape).map(|(step, &n)| step.min(n).max(1)).collect();
        let mut part = steps.clone();
        if self.states {
            // The states of all outputs are kept.
            (0..part.len()).filter(|&a| kept(a)).for_each(|a| part[a] = self.shape[a]);
            if part != steps && !self.fits(&part) {
                return None;
            }
        }
        if !states_fit(&part) {
            return None;
        }
        // One for each thread, the fastest axes first, and what stays near.
        let threads = self.reduction.thread_count();
        let near = (NEAR * threads).clamp(2 * NEAR, BOX);
        let enough = |b: &[usize]| {
            let chunks = product(b.iter().zip(&steps).map(|(n, step)| n.div_ceil(*step)));
            let bytes = b.iter().fold(self.dtype.size(), |n, &d| n.saturating_mul(d));
            self.reduction.named_device() == Device::Cpu && chunks >= threads && 2 * bytes > near
        };
        for axis in (0..part.len()).rev() {
            while part[axis] < self.shape[axis] && !enough(&part) {
                let mut longer = part.clone();
                longer[axis] = longer[axis].saturating_mul(2).min(self.shape[axis]);
                if !self.fits(&longer) || !states_fit(&longer) {
                    break;
                }
                part = longer;
            }
        }
        let tile = (0..part.len()).map(|a| if kept(a) { part[a] } else { self.shape[a] });
        Some((tile.collect(), part))
    }

    /// Halves a box along the slowest axes that `may_cut` until it is near, as long
    /// as it stays `worth` it. A device has no use for small boxes.
    fn bring_near(
        &self,
        lengths: &mut Vec<usize>,
        may_cut: impl Fn(usize) -> bool,
        worth: impl Fn(&[usize]) -> bool,
    ) {
        let near = (NEAR * self.reduction.thread_count()).clamp(2 * NEAR, BOX);
        let bytes = |b: &[usize]| b.iter().fold(self.dtype.size(), |n, &d| n.saturating_mul(d));
        while self.reduction.named_device() == Device::Cpu && bytes(lengths) > near {
            let axes = self.storage_axes();
            let Some(axis) = axes.into_iter().find(|&a| may_cut(a) && lengths[a] > 1) else {
                return;
            };
            let mut smaller = lengths.clone();
            smaller[axis] = smaller[axis].div_ceil(2);
            if !worth(&smaller) || self.run_bytes(&smaller) < LONG_RUN {
                return;
            }
            *lengths = smaller;
        }
    }

    /// Whether states do not grow with the number of boxes, and
    /// their positions those of the boxes' elements in order.
    fn states_are_small(&self) -> Result<bool> {
        let wrong = |source| Error::Reduce { name: self.name.clone(), source };
        let states = self.reduction.identities(self.dtype).map_err(wrong)?;
        let len = self.reduced_len();
        let scattered = self.order == Order::Fortran
            && wants_indices(self.reduction)
            && self.reduced.iter().filter(|r| **r).count() > 1;
        Ok(!scattered && states.iter().all(|s| s.most_bytes(len) == s.most_bytes(0)))
    }

    /// Whether a box of such lengths fits into the memory for it.
    fn fits(&self, lengths: &[usize]) -> bool {
        lengths.iter().fold(self.dtype.size(), |n, &d| n.saturating_mul(d)) <= self.box_bytes
    }

    /// The bytes that a box of such lengths has in one run in the file.
    fn run_bytes(&self, lengths: &[usize]) -> usize {
        let mut run = self.dtype.size();
        for axis in self.storage_axes().into_iter().rev() {
            run = run.saturating_mul(lengths[axis]);
            if lengths[axis] < self.shape[axis] {
                break;
            }
        }
        run
    }

    /// The memory that the states of one output take, at most: those of all its
    /// elements, and those of a box beside them.
    fn state_bytes(&self) -> Result<usize> {
        let wrong = |source| Error::Reduce { name: self.name.clone(), source };
        let states = self.reduction.identities(self.dtype).map_err(wrong)?;
        let len = self.reduced_len();
        let each = states.iter().map(|s| s.most_bytes(len) + s.most_bytes(0) + 2 * BESIDE_STATE);
        Ok(2 * BESIDE_STATE + each.sum::<usize>())
    }

    /// Refuses more outputs than memory has room for: a header of a few bytes
    /// may ask for any number, and an allocation that fails ends the process.
    fn check_outputs(&self, outputs: usize, state_bytes: usize) -> Result<()> {
        // A pair of numbers is the longest answer.
        let each = if self.states { state_bytes } else { 16 * self.reduction.ops().len() };
        let room = outputs.checked_mul(each);
        if room.is_some_and(|room| room <= FEW || Vec::<u8>::new().try_reserve_exact(room).is_ok())
        {
            return Ok(());
        }
        let source = warpfold::Error::TooManyOutputs { outputs };
        Err(Error::Reduce { name: self.name.clone(), source })
    }

    /// All boxes, tile by tile.
    fn parts(&self, tile: &[usize], part: &[usize]) -> Vec<Vec<Part>> {
        let mut tiles = Vec::new();
        let kept_first = self.reduced.first() == Some(&false);
        // With axis 0 kept each piece has its own tiles; with axis 0 reduced
        // a tile takes boxes from all pieces.
        let groups: Vec<Vec<usize>> = if kept_first {
            (0..self.pieces.len()).map(|p| vec![p]).collect()
        } else {
            vec![(0..self.pieces.len()).collect()]
        };
        for group in groups {
            let Some(&lead) = group.first() else { continue };
            let whole = &self.pieces[lead].dims;
            for tile_ranges in self.ranges(whole, tile, |a| !self.reduced[a]) {
                let mut boxes = Vec::new();
                for &piece in &group {
                    let dims = &self.pieces[piece].dims;
                    for ranges in self.ranges(dims, part, |a| self.reduced[a]) {
                        let ranges: Vec<Range<usize>> = (0..dims.len())
                            .map(|a| {
                                if self.reduced[a] {
                                    ranges[a].clone()
                                } else {
                                    tile_ranges[a].clone()
                                }
                            })
                            .collect();
                        let start = self.start + self.place_of(piece, &ranges);
                        let scattered = self.is_scattered(piece, &ranges);
                        boxes.push(Part { piece, ranges, start, scattered });
                    }
                }
                if boxes.iter().any(|part| part.scattered) {
                    let mut start = self.start;
                    for part in &mut boxes {
                        (part.start, part.scattered) = (start, true);
                        let lengths = part.ranges.iter().zip(&self.reduced);
                        let each = lengths.filter(|(_, reduced)| **reduced).map(|(r, _)| r.len());
                        start += product(each) as u64;
                    }
                }
                tiles.push(boxes);
            }
        }
        tiles
    }

    /// All combinations of ranges of at most `step` elements over the axes that
    /// `cut`, slowest first; the other axes' ranges are whole.
    fn ranges(
        &self,
        dims: &[usize],
        step: &[usize],
        cut: impl Fn(usize) -> bool,
    ) -> Vec<Vec<Range<usize>>> {
        let mut all: Vec<Vec<Range<usize>>> = vec![dims.iter().map(|&n| 0..n).collect()];
        for axis in self.storage_axes().into_iter().filter(|&a| cut(a)) {
            let (n, step) = (dims[axis], step[axis].max(1));
            all = all
                .into_iter()
                .flat_map(|ranges| {
                    // An axis of length 0 still has its one, empty, range.
                    (0..n.div_ceil(step).max(1)).map(move |i| {
                        let mut ranges = ranges.clone();
                        ranges[axis] = i * step..((i + 1) * step).min(n);
                        ranges
                    })
                })
                .collect();
        }
        all
    }

    /// The place of a box's first element among the reduced elements, in the
    /// order of the file: those of a box follow each other.
    fn place_of(&self, piece: usize, ranges: &[Range<usize>]) -> u64 {
        let dims = &self.pieces[piece].dims;
        let mut step = 1u64;
        let mut place = self.pieces_before(piece);
        for axis in self.storage_axes().into_iter().rev().filter(|&a| self.reduced[a]) {
            place += ranges[axis].start as u64 * step;
            step = step.saturating_mul(dims[axis] as u64);
        }
        place
    }

    /// How many of the reduced elements lie in pieces before this one.
    fn pieces_before(&self, piece: usize) -> u64 {
        let Stored { dims, offset, .. } = &self.pieces[piece];
        if self.reduced.first() != Some(&true) {
            return 0;
        }
        let others = product((1..dims.len()).filter(|&a| self.reduced[a]).map(|a| dims[a]));
        *offset as u64 * others as u64
    }

    /// Whether the indices of a box's elements are not those from its place on,
    /// where more than one axis is reduced and the box does not hold all of them: in Fortran
    /// order, and in C order unless it holds all but of the slowest of those that it has
    /// several elements of.
    fn is_scattered(&self, piece: usize, ranges: &[Range<usize>]) -> bool {
        let dims = &self.pieces[piece].dims;
        let reduced = || (0..dims.len()).filter(|&a| self.reduced[a]);
        let cut = |&a: &usize| ranges[a].len() < dims[a];
        let last_cut = match self.order {
            Order::Fortran => reduced().any(|a| cut(&a)),
            Order::C => {
                let several = reduced().find(|&a| ranges[a].len() > 1);
                several.is_some_and(|first| reduced().filter(|&a| a > first).any(|a| cut(&a)))
            }
        };
        wants_indices(self.reduction) && reduced().count() > 1 && last_cut
    }

    /// The index, among the reduced elements in C order, of a box's element
    /// whose index in the box is `at`. It increases with `at`.
    fn index_in(&self, part: &Part, at: u64) -> u64 {
        let dims = &self.pieces[part.piece].dims;
        let (mut rest, mut step) = (at, 1u64);
        let mut index = self.start + self.pieces_before(part.piece);
        for axis in (0..dims.len()).rev().filter(|&a| self.reduced[a]) {
            let range = &part.ranges[axis];
            let len = range.len().max(1) as u64;
            index += (range.start as u64 + rest % len) * step;
            rest /= len;
            step = step.saturating_mul(dims[axis] as u64);
        }
        index
    }

    /// Reads and reduces the boxes of every tile.
    fn run(
        &self,
        tiles: Vec<Vec<Part>>,
        outputs: usize,
        sink: &mut dyn FnMut(usize, &Tile, Done) -> Result<()>,
    ) -> Result<()> {
        let arrays = self.pieces.first().map_or(1, |p| p.readers.len());
        let (give_back, free) = sync_channel::<Vec<Vec<u64>>>(2);
        for _ in 0..2 {
            // The channel has room for both.
            let _ = give_back.send(vec![Vec::new(); arrays]);
        }
        // A thread of its own reads one box ahead, into the other buffers.
        let mut order = tiles.iter().flatten();
        let mut failed = false;
        let fetch = move || -> Option<Result<Vec<Vec<u64>>>> {
            let part = order.next().filter(|_| !failed)?;
            let mut buffers = free.recv().ok()?;
            let read = self.read(part, &mut buffers);
            failed = read.is_err();
            Some(read.map(|()| buffers))
        };
        let (done, _) = read_ahead(1, fetch, |ahead| {
            // Dropping it ends the reader, whatever happens here.
            let give_back = give_back;
            for tile in &tiles {
                let mut merged: Option<Partial> = None;
                for part in tile {
                    let buffers = ahead
                        .take()
                        .unwrap_or_else(|| Err(Error::format(&*self.name, "reading failed")))?;
                    let alone = tile.len() == 1;
                    let done = self.reduce(part, &buffers, alone, merged.as_mut())?;
                    let _ = give_back.send(buffers);
                    match (done, &mut merged) {
                        (Done::Absorbed, _) => {}
                        (Done::Partial(partial), Some(merged)) => {
                            merged.merge(&partial).map_err(|source| Error::Reduce {
                                name: self.pieces[part.piece].names[0].clone(),
                                source,
                            })?;
                        }
                        (Done::Partial(partial), None) => merged = Some(partial),
                        (answer, _) => sink(outputs, &self.tile(part), answer)?,
                    }
                }
                if let (Some(merged), Some(part)) = (merged, tile.first()) {
                    sink(outputs, &self.tile(part), Done::Partial(merged))?;
                }
            }
            Ok(())
        });
        done
    }

    /// Where the outputs of a box lie.
    fn tile(&self, part: &Part) -> Tile {
        let offset = self.pieces[part.piece].offset;
        let kept: Vec<(usize, Range<usize>)> = (0..self.shape.len())
            .filter(|&a| !self.reduced[a])
            .map(|a| {
                let shift = if a == 0 { offset } else { 0 };
                let range = &part.ranges[a];
                (self.shape[a], range.start + shift..range.end + shift)
            })
            .collect();
        // From the last axis on, whole ranges join into one run.
        let mut starts = vec![0usize];
        let mut len = 1;
        let mut stride = 1;
        let mut joined = true;
        for (n, range) in kept.iter().rev() {
            if joined {
                len *= range.len();
                starts.iter_mut().for_each(|s| *s += range.start * stride);
                joined = range.len() == *n;
            } else {
                let inner = starts;
                starts = range
                    .clone()
                    .flat_map(|i| inner.iter().map(move |&s| s + i * stride))
                    .collect();
            }
            stride *= n;
        }
        Tile { first: starts.first().copied().unwrap_or(0), len: len.max(1), starts }
    }

    /// Reads a box of every array, compact and in file order.
    fn read(&self, part: &Part, buffers: &mut [Vec<u64>]) -> Result<()> {
        let size = self.dtype.size();
        let stored = &self.pieces[part.piece];
        let axes = self.storage_axes();
        let count: usize = part.ranges.iter().map(Range::len).product();
        // The innermost axes whose ranges are whole, and the next one, make a
        // run in the file.
        let mut run = 1;
        let mut outer = axes.len();
        let mut whole = true;
        while outer > 0 && whole {
            outer -= 1;
            let axis = axes[outer];
            run *= part.ranges[axis].len();
            whole = part.ranges[axis].len() == stored.dims[axis];
        }
        for (reader, words) in stored.readers.iter().zip(buffers) {
            let bytes = count * size;
            if words.len() * 8 < bytes {
                // Exactly: a vector that doubles would not keep to the limit.
                words.reserve_exact(bytes.div_ceil(8) - words.len());
                words.resize(bytes.div_ceil(8), 0);
            }
            let buffer: &mut [u8] = &mut bytemuck::cast_slice_mut(words)[..bytes];
            if count == 0 {
                continue;
            }
            if let Some(chunks) = reader.chunks() {
                chunks.read_box(&part.ranges, buffer, self.reduction.thread_count())?;
                advance(self.progress, bytes as u64)?;
                continue;
            }
            for (i, to) in buffer.chunks_mut(run * size).enumerate() {
                let mut rest = i;
                let mut first = 0u64;
                let mut stride = 1u64;
                for (place, &axis) in axes.iter().enumerate().rev() {
                    let range = &part.ranges[axis];
                    let mut at = range.start;
                    if place < outer {
                        at += rest % range.len();
                        rest /= range.len();
                    }
                    first += at as u64 * stride;
                    stride = stride.saturating_mul(stored.dims[axis] as u64);
                }
                reader.read_at(first, to)?;
            }
            advance(self.progress, bytes as u64)?;
        }
        Ok(())
    }

    /// Reduces a box: to answers if it is all of its tile, else into the states
    /// of the boxes before it, or to new ones.
    fn reduce(
        &self,
        part: &Part,
        buffers: &[Vec<u64>],
        alone: bool,
        merged: Option<&mut Partial>,
    ) -> Result<Done> {
        let stored = &self.pieces[part.piece];
        let size = self.dtype.size();
        let shape: Vec<usize> = part.ranges.iter().map(Range::len).collect();
        let count: usize = shape.iter().product();
        let mut strides = vec![0isize; shape.len()];
        let mut stride = size.cast_signed();
        for axis in self.storage_axes().into_iter().rev() {
            strides[axis] = stride;
            stride = stride.saturating_mul(shape[axis].cast_signed());
        }
        let wrong = |source| Error::Reduce { name: stored.names[0].clone(), source };
        let views: Vec<View<'_>> = buffers
            .iter()
            .map(|words| {
                let bytes: &[u8] = &bytemuck::cast_slice(words)[..count * size];
                View::strided(self.dtype, bytes, 0, &shape, &strides)
            })
            .collect::<Result<_, _>>()
            .map_err(wrong)?;
        let reduced = (0..shape.len()).filter(|&a| self.reduced[a]).map(usize::cast_signed);
        let question = self.reduction.clone().axes(reduced).keepdims(false);
        let done = if alone && !self.states && self.start == 0 && part.start == 0 {
            match &views[..] {
                [a, b] => question.run_pair(a, b),
                [a] => question.run(a),
                _ => return Err(Error::format(self.name.clone(), "there is nothing to reduce")),
            }
            .map(Done::Answer)
        } else if let Some(merged) = merged.filter(|_| !part.scattered) {
            match &views[..] {
                [a, b] => question.absorb_pair(merged, a, b, part.start),
                [a] => question.absorb(merged, a, part.start),
                _ => return Err(Error::format(self.name.clone(), "there is nothing to reduce")),
            }
            .map(|()| Done::Absorbed)
        } else {
            match &views[..] {
                [a, b] => question.partial_pair(a, b, part.start),
                [a] => question.partial(a, part.start),
                _ => return Err(Error::format(self.name.clone(), "there is nothing to reduce")),
            }
            .map(|mut partial| {
                if part.scattered {
                    partial.relocate(|at| self.index_in(part, at.saturating_sub(part.start)));
                }
                Done::Partial(partial)
            })
        };
        done.map_err(wrong)
    }
}

/// A source as something that can be read at any place; what can only be read
/// front to back is, as long as it is asked in that order.
fn reader(source: Source) -> Result<Box<dyn ReadAt>> {
    let Source { name, dtype, extent, bytes, access } = source;
    let access = match access {
        Access::Random(reader) => return Ok(reader),
        sequential => sequential,
    };
    let source = Source { name, dtype, extent, bytes, access };
    let name = source.name.clone();
    let size = source.dtype.size() as u64;
    let feed = Mutex::new((Feed::new(source)?, 0));
    Ok(Box::new(Forward { name, size, feed }))
}

/// Reading at any place that is the next one.
struct Forward {
    name: String,
    size: u64,
    /// The feed and how many elements it has handed out.
    feed: Mutex<(Feed, u64)>,
}

impl ReadAt for Forward {
    fn read_at(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        let (feed, at) = &mut *feed;
        if *at != first {
            return Err(Error::format(
                self.name.clone(),
                "this reduction needs to read it out of order, which a stream cannot",
            )
            .with_hint("raise --memory-limit, or unpack the array into a .npy file"));
        }
        let filled = feed.fill(out)?;
        *at += filled as u64 / self.size;
        if filled < out.len() {
            return Err(Error::format(self.name.clone(), "it ends too early"));
        }
        Ok(())
    }
}
