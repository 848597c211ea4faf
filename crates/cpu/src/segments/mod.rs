//! Answers for the segments of an array of one axis.
//!
//! The segments are cut into blocks of about the same work, which threads take in turn: a
//! block's boundaries and elements stay in a cache, whatever is asked. The accumulators of
//! [`axes`](crate::axes) take a block's segments in as rows of different lengths. What
//! these cannot answer, or not this segment of, is answered by states. Segments of one length
//! that follow each other are the rows of a table, and a long one is such a row, on all threads.

mod block;
mod bounds;
mod source;

pub use bounds::{Bounds, Indices};

use crate::axes::{Choice, Chosen, OfSegments};
use crate::isa::Isa;
use crate::ragged::Span;
use crate::reduce::{Job, Outputs};
use crate::worker::Worker;
use block::{Failed, Space};
use bounds::{Block, Cut};
use core::ops::Range;
use source::Source;
use std::sync::{Mutex, PoisonError};
use warpfold_core::layout::View;
use warpfold_core::op::{Kind, Numbers, RawRun, Rules};
use warpfold_core::{DType, Error, Op, Result, Scalar};
use warpfold_threads::{Pieces, Threads};

/// Elements and boundaries below which one thread works.
const SMALL: usize = 1 << 15;

/// A reduction of segments that the CPU can run.
#[derive(Clone, Copy)]
pub struct SegmentJob<'a> {
    /// The array, and for `dot` the second one.
    pub views: [Option<&'a View<'a>>; 2],
    /// Where the segments begin and end.
    pub bounds: Bounds<'a>,
    /// Which elements have a value, if not all have one.
    pub valid: Option<&'a (dyn Fn(usize) -> bool + Sync)>,
    /// An element that takes part in each segment, behind its own, of their type.
    pub initial: Option<Scalar>,
    /// The states wanted.
    pub kinds: &'a [Kind],
    /// The instruction set.
    pub isa: Isa,
    /// The threads.
    pub threads: Threads,
}

/// The answers to one operation, segment by segment.
#[derive(Clone, Debug)]
pub struct SegmentNumbers {
    /// The numbers.
    pub numbers: Numbers,
    /// The second ones of `minmax` and `argminmax`.
    pub second: Option<Numbers>,
}

/// A number of an operation's answers.
struct Column {
    /// The operation's place among those asked, and its state's.
    place: usize,
    state: usize,
    /// What answers this number alone.
    op: Op,
    /// Whether it is the second of two.
    second: bool,
    /// The accumulators, if there are some.
    chosen: Option<Chosen<OfSegments>>,
}

/// What all threads read.
struct Walk<'a> {
    job: &'a SegmentJob<'a>,
    source: Source<'a>,
    rules: &'a Rules,
    ops: &'a [(Op, usize)],
    columns: Vec<Column>,
    cut: Cut,
    /// Whether nobody waits for the answers any more.
    over: &'a (dyn Fn() -> bool + Sync),
}

impl SegmentJob<'_> {
    /// How many segments there are, and the answers to `ops`; each comes with its state's
    /// place in `kinds`.
    ///
    /// # Errors
    /// Views that have not one axis or disagree; [`Error::BadSegment`] and
    /// [`Error::BadSegments`]; [`Error::InSegment`] names the first segment that has no
    /// answer.
    pub fn answers(
        &self,
        ops: &[(Op, usize)],
        rules: &Rules,
    ) -> Result<(usize, Vec<SegmentNumbers>)> {
        self.answers_until(ops, rules, &|| false)
    }

    /// The same, unless `over` says that nobody waits for them any more.
    ///
    /// # Errors
    /// Those of [`answers`](Self::answers); [`Error::Cancelled`].
    pub fn answers_until(
        &self,
        ops: &[(Op, usize)],
        rules: &Rules,
        over: &(dyn Fn() -> bool + Sync),
    ) -> Result<(usize, Vec<SegmentNumbers>)> {
        let Some(source) = Source::new(self.views)? else { return Ok((0, Vec::new())) };
        let cut = self.bounds.cut(source.len)?;
        let (dtype, segments) = (source.dtype, cut.segments);
        let mut columns = Vec::new();
        let mut numbers = Vec::new();
        for (place, &(op, state)) in ops.iter().enumerate() {
            // A state of each operation would cost more than few segments do.
            let types = if segments == 0 || !rules.matter_for(op, dtype) && rules.decimals.is_none()
            {
                let own = rules.out.unwrap_or(op.answer_type(dtype));
                [Some(own), op.pair().map(|_| own)]
            } else {
                self.types(op, state, rules, dtype)?
            };
            let halves = op.pair().map_or([Some(op), None], |(a, b)| [Some(a), Some(b)]);
            for (i, (half, answer)) in halves.into_iter().zip(types).enumerate() {
                let (Some(half), Some(answer)) = (half, answer) else { continue };
                // Numbers of words as wide as what the accumulators answer.
                let chosen = self.chosen(half, rules, dtype, &cut);
                let chosen = chosen.filter(|_| half.answer_type(dtype) == answer);
                columns.push(Column { place, state, op: half, second: i == 1, chosen });
                numbers.push(Numbers::zeros(answer, segments));
            }
        }
        let walk = Walk { job: self, source, rules, ops, columns, cut, over };
        walk.run(&mut numbers)?;
        let mut answers: Vec<SegmentNumbers> = Vec::with_capacity(ops.len());
        for (column, numbers) in walk.columns.iter().zip(numbers) {
            match answers.last_mut() {
                Some(last) if column.second => last.second = Some(numbers),
                _ => answers.push(SegmentNumbers { numbers, second: None }),
            }
        }
        Ok((segments, answers))
    }

    /// The types of an operation's numbers: those of the answer for one element.
    fn types(
        &self,
        op: Op,
        state: usize,
        rules: &Rules,
        dtype: DType,
    ) -> Result<[Option<DType>; 2]> {
        let kind = self.kinds[state];
        let mut worker = Worker::new(kind, dtype, self.isa)?;
        let zero = [0u64];
        let items: &[u8] = &bytemuck::cast_slice(&zero)[..dtype.size()];
        let others = if kind.takes_pairs() { items } else { &[] };
        worker.absorb(RawRun { start: 0, items, others })?;
        let value = worker.finish(op, rules)?;
        Ok([Some(value.first().dtype()), value.second().map(Scalar::dtype)])
    }

    /// The accumulators for an operation.
    fn chosen(&self, op: Op, rules: &Rules, dtype: DType, cut: &Cut) -> Option<Chosen<OfSegments>> {
        let arrays = self.views.iter().flatten().count();
        let whole = self.valid.is_none() && self.initial.is_none();
        if !whole || op.arity() != arrays || cut.segments == 0 {
            return None;
        }
        let usual = cut.elements / cut.segments;
        let (isa, most) = (self.isa, cut.longest);
        let (of, widened) = (OfSegments, false);
        Choice { of, dtype, widened, op, rules, isa, most, usual }.chosen()
    }
}

/// The numbers of a block's segments, column by column.
type Part<'a> = Vec<&'a mut [u8]>;

impl Walk<'_> {
    /// Writes the numbers of all columns.
    ///
    /// # Errors
    /// That of the first segment that has one.
    fn run(&self, numbers: &mut [Numbers]) -> Result<()> {
        let types: Vec<DType> = numbers.iter().map(Numbers::dtype).collect();
        let ranges = self.cut.blocks.iter().map(|block| block.segments.clone());
        let parts: Vec<Mutex<Part<'_>>> =
            parts(numbers, ranges).into_iter().map(Mutex::new).collect();
        // Each is taken by one thread.
        let part = |i: usize| {
            core::mem::take(&mut *parts[i].lock().unwrap_or_else(PoisonError::into_inner))
        };
        let short: Vec<usize> = (0..parts.len()).filter(|&i| !self.cut.blocks[i].long).collect();
        let pieces = Pieces::new(short.len());
        let work = self.cut.elements.saturating_add(self.cut.segments);
        let most = if work < SMALL { 1 } else { short.len().max(1) };
        let done = self.job.threads.run(most, || {
            let mut space = Space::new(self, &types);
            let mut failed: Option<Failed> = None;
            while let Some(piece) = pieces.take() {
                let block = &self.cut.blocks[short[piece]];
                // Blocks come in order: later ones cannot fail earlier.
                if failed.is_some() || (self.over)() {
                    break;
                }
                failed = space.block(block, &mut part(short[piece])).err();
            }
            failed
        });
        let mut failed = done.into_iter().flatten().min_by_key(Failed::order);
        let mut space = None;
        for (i, block) in self.cut.blocks.iter().enumerate().filter(|(_, block)| block.long) {
            let earlier = failed.as_ref().is_some_and(|f| f.segment < block.segments.start);
            if earlier || (self.over)() {
                break;
            }
            let space = space.get_or_insert_with(|| Space::new(self, &types));
            if let Err(error) = self.long(block, &mut part(i), space) {
                failed = Some(error);
                break;
            }
        }
        if (self.over)() {
            return Err(Error::Cancelled);
        }
        failed.map_or(Ok(()), |failed| Err(failed.named()))
    }

    /// Reduces a long segment on all threads.
    fn long(
        &self,
        block: &Block,
        to: &mut Part<'_>,
        space: &mut Space<'_>,
    ) -> core::result::Result<(), Failed> {
        if !self.has_tables() {
            return space.block(block, to);
        }
        let mut spans = Vec::new();
        self.job.bounds.spans(block, &mut spans);
        // Which of several operations fails first is told by asking each.
        self.table(spans[0], 1, self.job.threads, to).map_err(|error| Failed {
            segment: block.segments.start,
            place: 0,
            error,
        })
    }

    /// Whether segments may be rows of tables: what counts in each are its elements, and all of them.
    fn has_tables(&self) -> bool {
        self.job.valid.is_none() && self.job.initial.is_none()
    }

    /// Reduces segments that follow each other, as many as the first one, of its length: the rows of a
    /// table.
    ///
    /// # Errors
    /// Those of the first operation and the first segment that have one.
    fn table(
        &self,
        first: Span,
        count: usize,
        threads: Threads,
        to: &mut [&mut [u8]],
    ) -> Result<()> {
        let job = self.job;
        let views = self.source.views(first, count);
        let rows = Job {
            views: views.each_ref().map(Option::as_ref),
            reduced: &[false, true],
            kinds: job.kinds,
            start: 0,
            initial: None,
            marks: None,
            isa: job.isa,
            threads,
        };
        let outputs = rows.values(self.ops, self.rules)?;
        for (column, to) in self.columns.iter().zip(to) {
            match &outputs[column.place] {
                Outputs::Numbers { numbers, second } => {
                    let numbers = second.as_ref().filter(|_| column.second).unwrap_or(numbers);
                    to.copy_from_slice(numbers.bytes());
                }
                Outputs::Values(values) => {
                    for (i, value) in values.iter().enumerate() {
                        let second = value.second().filter(|_| column.second);
                        let scalar = second.unwrap_or(value.first());
                        Numbers::set_bits(to, scalar.dtype(), i, scalar.to_bits());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Cuts the numbers of all columns at the same segments.
fn parts<'a>(
    numbers: &'a mut [Numbers],
    ranges: impl ExactSizeIterator<Item = Range<usize>> + Clone,
) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> =
        (0..ranges.len()).map(|_| Vec::with_capacity(numbers.len())).collect();
    for column in numbers {
        let size = column.dtype().size();
        let mut rest = column.bytes_mut();
        for (range, part) in ranges.clone().zip(&mut parts) {
            let (these, after) = rest.split_at_mut(range.len() * size);
            part.push(these);
            rest = after;
        }
    }
    parts
}

/// Names the segment that an error is of.
fn in_segment(segment: usize, error: Error) -> Error {
    Error::InSegment { segment, source: Box::new(error) }
}
