//! A block of segments, on one thread.

use super::bounds::Block;
use super::source::{Copies, Segments};
use super::{Column, Walk, in_segment};
use crate::axes::{Lengths, RaggedCells, leave_nans};
use crate::gather::Buffers;
use crate::isa::Isa;
use crate::ragged::Span;
use crate::worker::Worker;
use warpfold_core::op::{Numbers, RawRun, Value};
use warpfold_core::{DType, Error, NanPolicy, Op, Result};
use warpfold_threads::Threads;

/// Segments of one length, at least, that are worth a table.
const ROWS: usize = 4;

/// Whether segments follow each other and are of one length, which is not 0.
fn are_rows(spans: &[Span]) -> bool {
    let Some(&Span { start, len }) = spans.first() else { return false };
    let is_row = |(i, span): (usize, &Span)| *span == Span { start: start + i * len, len };
    len > 0 && spans.iter().enumerate().all(is_row)
}

/// A segment without an answer, and why.
pub(super) struct Failed {
    pub(super) segment: usize,
    /// The operation's place among those asked.
    pub(super) place: usize,
    pub(super) error: Error,
}

impl Failed {
    /// What comes first is told.
    pub(super) fn order(&self) -> (usize, usize) {
        (self.segment, self.place)
    }

    pub(super) fn named(self) -> Error {
        in_segment(self.segment, self.error)
    }
}

/// What a thread keeps from block to block.
pub(super) struct Space<'a> {
    walk: &'a Walk<'a>,
    types: &'a [DType],
    spans: Vec<Span>,
    copies: [Copies; 2],
    /// Of each column the accumulators of its stages, as many as were asked.
    cells: Vec<Vec<Box<dyn RaggedCells>>>,
    /// Of each column the answer for no elements, once it is known.
    empty: Vec<Option<u64>>,
    slow: Slow<'a>,
}

/// The general way: states of each kind.
struct Slow<'a> {
    walk: &'a Walk<'a>,
    workers: Vec<Worker>,
    buffers: Buffers,
}

impl<'a> Space<'a> {
    pub(super) fn new(walk: &'a Walk<'a>, types: &'a [DType]) -> Space<'a> {
        let columns = walk.columns.len();
        Space {
            walk,
            types,
            spans: Vec::new(),
            copies: Default::default(),
            cells: (0..columns).map(|_| Vec::new()).collect(),
            empty: vec![None; columns],
            slow: Slow { walk, workers: Vec::new(), buffers: Buffers::default() },
        }
    }

    /// Writes the numbers of a block's segments.
    ///
    /// # Errors
    /// The first segment that has no answer, and the first operation that it has none to.
    pub(super) fn block(
        &mut self,
        block: &Block,
        to: &mut [&mut [u8]],
    ) -> core::result::Result<(), Failed> {
        let Space { walk, types, spans, copies, cells, empty, slow } = self;
        walk.job.bounds.spans(block, spans);
        // Who has no answer is told below.
        let rows = (spans.len() >= ROWS && walk.has_tables() && are_rows(spans))
            .then(|| walk.table(spans[0], spans.len(), Threads::Exactly(1), to));
        if rows.is_some_and(|made| made.is_ok()) {
            return Ok(());
        }
        let first = block.segments.start;
        let mut failed: Option<Failed> = None;
        let mut note = |i: usize, place: usize, error: Error| {
            let new = Failed { segment: first + i, place, error };
            if failed.as_ref().is_none_or(|old| new.order() < old.order()) {
                failed = Some(new);
            }
        };
        let quick = walk.columns.iter().any(|column| column.chosen.is_some());
        let rows = quick.then(|| walk.source.rows(spans, copies));
        let empties = spans.iter().any(|span| span.len == 0);
        for (c, column) in walk.columns.iter().enumerate() {
            let (Some(chosen), Some(rows)) = (&column.chosen, rows) else { continue };
            let dtype = types[c];
            let nans = walk.rules.nan == NanPolicy::Propagate || !dtype.is_float();
            let leaves = (!nans).then_some((walk.job.isa, dtype));
            let cells = &mut cells[c];
            let mut left = Vec::new();
            for (stage, fold) in chosen.stages.iter().enumerate() {
                if cells.len() == stage {
                    cells.push(fold.ragged());
                }
                if stage == 0 {
                    left = taken(&mut *cells[0], rows, spans, leaves, to[c]);
                    // What is said of no elements means nothing.
                    left.retain(|&i| spans[i].len > 0);
                } else if !left.is_empty() {
                    let size = dtype.size();
                    retake(&mut *cells[stage], rows, spans, &mut left, (size, leaves), to[c]);
                }
            }
            for i in left {
                match slow.number(spans[i], column) {
                    Ok(bits) => Numbers::set_bits(to[c], dtype, i, bits),
                    Err(error) => note(i, column.place, error),
                }
            }
            if empties {
                for i in (0..spans.len()).filter(|&i| spans[i].len == 0) {
                    let bits = match empty[c] {
                        Some(bits) => Ok(bits),
                        None => slow.number(spans[i], column),
                    };
                    match bits {
                        Ok(bits) => {
                            empty[c] = Some(bits);
                            Numbers::set_bits(to[c], dtype, i, bits);
                        }
                        Err(error) => {
                            note(i, column.place, error);
                            break;
                        }
                    }
                }
            }
        }
        let others = || walk.columns.iter().enumerate().filter(|(_, c)| c.chosen.is_none());
        if others().next().is_some() {
            let wanted = |state: usize| others().any(|(_, column)| column.state == state);
            for (i, &span) in spans.iter().enumerate() {
                if let Err(error) = slow.absorb(span, wanted) {
                    note(i, 0, error);
                    break;
                }
                let mut last: Option<(usize, Value)> = None;
                for (c, column) in others() {
                    // Both numbers of a pair are finished at once.
                    let value = match last {
                        Some((place, value)) if place == column.place => Ok(value),
                        _ => slow.finish(column.state, walk.ops[column.place].0),
                    };
                    match value {
                        Ok(value) => {
                            last = Some((column.place, value));
                            let (one, two) = (value.first(), value.second());
                            let scalar = if column.second { two.unwrap_or(one) } else { one };
                            Numbers::set_bits(to[c], types[c], i, scalar.to_bits());
                        }
                        Err(error) => note(i, column.place, error),
                    }
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Lets accumulators answer rows, and tells which they could not: those whose answers, of this type, are
/// NaN, too.
fn taken(
    cells: &mut dyn RaggedCells,
    rows: Segments<'_>,
    spans: &[Span],
    leaves: Option<(Isa, DType)>,
    to: &mut [u8],
) -> Vec<usize> {
    let mut missing = Vec::new();
    cells.clear(spans.len());
    // SAFETY: rows of the source's elements, or of copies, which are aligned; the
    // accumulators were chosen for their type.
    unsafe {
        match rows {
            Segments::Alone(rows) => cells.take(rows),
            Segments::Pairs(rows) => cells.take_pairs(rows),
        }
    }
    cells.answer(Lengths::Each(spans), to, &mut missing);
    if let Some((isa, dtype)) = leaves {
        leave_nans(isa, dtype, to, &mut missing);
    }
    missing
}

/// Lets other accumulators answer what is left.
fn retake(
    cells: &mut dyn RaggedCells,
    rows: Segments<'_>,
    spans: &[Span],
    left: &mut Vec<usize>,
    (size, leaves): (usize, Option<(Isa, DType)>),
    to: &mut [u8],
) {
    // They take the same rows again, without those that are answered.
    let some: Vec<Span> = left.iter().map(|&i| spans[i]).collect();
    let mut picked = Default::default();
    let rows = rows.some(left, &mut picked);
    let mut words = vec![0u64; (some.len() * size).div_ceil(8)];
    let found: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..some.len() * size];
    let missing = taken(cells, rows, &some, leaves, found);
    for ((&i, found), place) in left.iter().zip(found.chunks_exact(size)).zip(0..) {
        if missing.binary_search(&place).is_err() {
            to[i * size..][..size].copy_from_slice(found);
        }
    }
    *left = missing.into_iter().map(|place| left[place]).collect();
}

impl Slow<'_> {
    /// The bits of one number of a segment.
    fn number(&mut self, span: Span, column: &Column) -> Result<u64> {
        let &Column { op, state, place, .. } = column;
        self.absorb(span, |place| place == state)?;
        // An error is one of the operation that was asked, and not of a half of it.
        let asked = self.walk.ops[place].0;
        self.finish(state, op)
            .map(|value| value.first().to_bits())
            .map_err(|error| self.finish(state, asked).err().unwrap_or(error))
    }

    fn finish(&self, state: usize, op: Op) -> Result<Value> {
        self.workers[state].finish(op, self.walk.rules)
    }

    /// Lets the states that are `wanted`, by their places, absorb a segment anew.
    fn absorb(&mut self, span: Span, wanted: impl Fn(usize) -> bool) -> Result<()> {
        let Walk { job, source, .. } = self.walk;
        if self.workers.is_empty() {
            let workers = job.kinds.iter().map(|&kind| Worker::new(kind, source.dtype, job.isa));
            self.workers = workers.collect::<Result<_>>()?;
        }
        let Slow { workers, buffers, .. } = self;
        let initial = job.initial.map(|scalar| scalar.to_bits().to_ne_bytes());
        let mut team = Team { workers, wanted: &wanted };
        if !team.reset() {
            return Ok(());
        }
        let end = span.start + span.len;
        let runs = Runs { valid: job.valid, at: span.start, end };
        for (valid, part) in runs {
            let at = (part.start - span.start) as u64;
            if valid {
                let take = |run: RawRun<'_>| team.each(|worker| worker.absorb(run));
                source.for_each_run(part, at, buffers, take)?;
            } else {
                team.each(|worker| {
                    worker.skip(at, part.len as u64);
                    Ok(())
                })?;
            }
        }
        if let Some(bytes) = &initial {
            // Of a number of 64 bits the low ones.
            let size = source.dtype.size();
            let from = if cfg!(target_endian = "little") { 0 } else { 8 - size };
            let items = &bytes[from..][..size];
            let run = RawRun { start: span.len as u64, items, others: &[] };
            team.each(|worker| worker.absorb(run))?;
        }
        Ok(())
    }
}

/// The workers that are wanted.
struct Team<'a> {
    workers: &'a mut [Worker],
    /// By their places.
    wanted: &'a dyn Fn(usize) -> bool,
}

impl Team<'_> {
    fn each(&mut self, mut one: impl FnMut(&mut Worker) -> Result<()>) -> Result<()> {
        for (place, worker) in self.workers.iter_mut().enumerate() {
            if (self.wanted)(place) {
                one(worker)?;
            }
        }
        Ok(())
    }

    /// Goes back to the states of no elements; whether there are any.
    fn reset(&mut self) -> bool {
        let mut any = false;
        let done = self.each(|worker| {
            worker.reset();
            any = true;
            Ok(())
        });
        done.is_ok() && any
    }
}

/// The runs of elements that have a value, and of those that have none.
struct Runs<'a> {
    valid: Option<&'a (dyn Fn(usize) -> bool + Sync)>,
    at: usize,
    end: usize,
}

impl Iterator for Runs<'_> {
    type Item = (bool, Span);

    fn next(&mut self) -> Option<(bool, Span)> {
        let Runs { valid, at: start, end } = *self;
        if start == end {
            return None;
        }
        let has = valid.is_none_or(|valid| valid(start));
        let same = |&row: &usize| valid.is_none_or(|valid| valid(row) == has);
        let len = if valid.is_none() { end - start } else { (start..end).take_while(same).count() };
        self.at += len;
        Some((has, Span { start, len }))
    }
}
