//! Columns of tables, all of them reduced in one pass.

use super::failure::Failure;
use super::ledger::Ledger;
use super::numbered::read_numbered;
use super::undecided::{Parts, States, Values, not_whole};
use super::{Progress, advance};
use crate::evidence::Evidence;
use crate::table::{TableBlock, TableBlocks, Typing};
use crate::{Batch, Error, Result};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use warpfold::{DType, Partial, Reduction};
use warpfold_threads::scoped;

/// States that all threads together have: with more columns, fewer threads.
const STATES: usize = 1 << 14;

/// What is made of one column, or of two for `dot`.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// What to call it in an error.
    pub(super) name: String,
    /// The columns by their places among those that are read.
    pub(super) columns: [Option<usize>; 2],
    pub(super) typing: Typing,
}

impl Output {
    fn arrays(&self) -> usize {
        self.columns.iter().flatten().count()
    }
}

/// One pass over tables that are joined.
pub(super) struct Pass<'a> {
    pub(super) outputs: &'a [Output],
    /// How many columns are read.
    pub(super) columns: usize,
    pub(super) reduction: &'a Reduction,
    pub(super) start: u64,
    pub(super) progress: &'a dyn Progress,
}

impl Pass<'_> {
    /// Reduces the tables' columns.
    pub(super) fn run(&self, tables: Vec<Box<dyn TableBlocks>>) -> Result<Vec<Partial>> {
        let ledger = Ledger::new(self.start);
        let threads = self.reduction.thread_count().min(STATES / self.columns.max(1)).max(1);
        let failure = Failure::new();
        let failed = AtomicBool::new(false);
        let name = self.outputs.first().map_or("", |output| &output.name);
        let mut tables = tables.into_iter();
        let mut table = tables.next();
        let next = |number| -> Result<Option<Box<dyn TableBlock>>> {
            while let Some(blocks) = &mut table {
                if let Some(block) = blocks.next_block()? {
                    if let Some(rows) = block.rows() {
                        ledger.record(number, rows);
                    }
                    return Ok(Some(block));
                }
                table = tables.next();
            }
            Ok(None)
        };
        // The text is read on a thread of its own, ahead of the workers.
        let (desks, read) = read_numbered(name, threads + 1, &failed, next, |ahead| {
            let work = || -> Option<Vec<Seat>> {
                let mut desk = match Desk::new(self) {
                    Ok(desk) => desk,
                    Err(error) => {
                        failure.record(0, error);
                        failed.store(true, Ordering::Relaxed);
                        ledger.abort();
                        return None;
                    }
                };
                let mut batch = Batch::new(DType::F64);
                while let Some((number, block)) = ahead.take() {
                    if failure.precedes(number) {
                        continue;
                    }
                    let bytes = block.bytes();
                    let done = desk.block(&mut batch, number, block, &ledger);
                    if let Err(error) = done.and_then(|()| advance(self.progress, bytes)) {
                        failed.store(true, Ordering::Relaxed);
                        failure.record(number, error);
                        // Those who wait for this block's rows must not.
                        ledger.abort();
                        continue;
                    }
                }
                Some(desk.seats)
            };
            scoped(threads, work)
        });
        // What a worker found comes earlier in the file.
        failure.into_result()?;
        read?;
        let mut whole: Option<Vec<Total>> = None;
        for seats in desks {
            // No error was recorded, so only a panic can have lost a part.
            let seats = seats.flatten().ok_or_else(|| Error::format(name, "a thread failed"))?;
            let totals = seats.into_iter().zip(self.outputs);
            let totals = totals.map(|(seat, output)| seat.finish(output, self.reduction));
            match &mut whole {
                None => whole = Some(totals.collect::<Result<_>>()?),
                Some(whole) => {
                    for (mine, total) in whole.iter_mut().zip(totals) {
                        mine.merge(total?)?;
                    }
                }
            }
        }
        let whole = whole.ok_or_else(|| Error::format(name, "no thread ran"))?;
        let decided = whole.into_iter().zip(self.outputs);
        decided.map(|(total, output)| total.decide(output, self.reduction)).collect()
    }
}

/// What one thread has made of each output.
struct Desk<'a> {
    pass: &'a Pass<'a>,
    seats: Vec<Seat>,
    /// For each column the outputs that want it, and as which of their arrays.
    wanted: Vec<Vec<(usize, usize)>>,
}

struct Seat {
    states: States,
    evidence: Evidence,
    missing: u64,
    /// Batches of one column of a pair that wait for those of the other.
    waiting: [VecDeque<Batch>; 2],
}

impl<'a> Desk<'a> {
    fn new(pass: &'a Pass<'a>) -> Result<Desk<'a>> {
        let mut wanted = vec![Vec::new(); pass.columns];
        let mut seats = Vec::with_capacity(pass.outputs.len());
        let mut floats = [None; 2];
        for (i, output) in pass.outputs.iter().enumerate() {
            for (side, column) in output.columns.iter().enumerate() {
                if let Some(column) = column {
                    wanted[*column].push((i, side));
                }
            }
            let arrays = output.arrays();
            let states = match output.typing {
                Typing::Fixed(dtype) => States::fixed(pass.reduction, dtype, arrays)
                    .map_err(|source| Error::Reduce { name: output.name.clone(), source })?,
                Typing::Open | Typing::Text => {
                    let takes = floats[arrays - 1].get_or_insert_with(|| {
                        pass.reduction.check_type(DType::F64, arrays).is_ok()
                    });
                    States::open(arrays, *takes)
                }
            };
            let evidence = Evidence::default();
            seats.push(Seat { states, evidence, missing: 0, waiting: Default::default() });
        }
        Ok(Desk { pass, seats, wanted })
    }

    /// Decodes and absorbs one block.
    fn block(
        &mut self,
        batch: &mut Batch,
        number: u64,
        block: Box<dyn TableBlock>,
        ledger: &Ledger,
    ) -> Result<()> {
        let Desk { pass, seats, wanted } = self;
        let rows = block.rows();
        let mut start = rows.and_then(|_| ledger.start_of(number));
        let mut recorded = rows.is_some();
        // Of each column, the rows of this block that came already.
        let mut done = vec![0; pass.columns];
        block.decode(batch, &mut |column, batch| {
            if !recorded {
                recorded = true;
                ledger.record(number, batch.rows());
                start = ledger.start_of(number);
            }
            // Without a start the ledger was aborted: there is an error
            // already, and what is absorbed does not count.
            let at = start.unwrap_or(0) + done[column];
            done[column] += batch.rows();
            for &(output, side) in &wanted[column] {
                let (seat, output) = (&mut seats[output], &pass.outputs[output]);
                seat.take(pass, output, side, batch, at, number)?;
            }
            Ok(())
        })?;
        if !recorded {
            ledger.record(number, 0);
        }
        Ok(())
    }
}

impl Seat {
    /// Takes a batch of one of the output's arrays, whose first row has index
    /// `at`.
    fn take(
        &mut self,
        pass: &Pass<'_>,
        output: &Output,
        side: usize,
        batch: &mut Batch,
        at: u64,
        number: u64,
    ) -> Result<()> {
        let wrong = |source| Error::Reduce { name: output.name.clone(), source };
        self.see(pass, batch, number)?;
        if output.arrays() == 1 {
            self.missing += batch.missing();
            let done = self.states.absorb(pass.reduction, Values::of(batch), None, at);
            return done.map_err(wrong);
        }
        refuse_gaps(batch, &output.name, at - pass.start)?;
        self.waiting[side].push_back(batch.clone());
        let [left, right] = &mut self.waiting;
        while let (Some(items), Some(others)) = (left.front(), right.front()) {
            // Of one block all columns come in the same pieces, and this is the
            // later column's.
            let (items, others) = (Values::of(items), Values::of(others));
            self.states.absorb(pass.reduction, items, Some(others), at).map_err(wrong)?;
            left.pop_front();
            right.pop_front();
        }
        Ok(())
    }

    /// Looks at what a batch says about the type.
    fn see(&mut self, pass: &Pass<'_>, batch: &Batch, number: u64) -> Result<()> {
        let mut evidence = batch.evidence.clone();
        if let Some((_, cell)) = &evidence.decimal {
            if pass.reduction.check_type(DType::F64, pass.arrays()).is_err() {
                return Err(not_whole(cell, pass.reduction.ops()));
            }
            self.states.decide();
        }
        self.evidence.add(&mut evidence, number);
        Ok(())
    }

    fn finish(self, output: &Output, reduction: &Reduction) -> Result<Total> {
        let wrong = |source| Error::Reduce { name: output.name.clone(), source };
        let parts = self.states.finish(reduction).map_err(wrong)?;
        Ok(Total { parts, evidence: self.evidence, missing: self.missing })
    }
}

impl Pass<'_> {
    fn arrays(&self) -> usize {
        self.outputs.first().map_or(1, Output::arrays)
    }
}

/// Refuses rows without a value where elements are paired.
pub(super) fn refuse_gaps(batch: &Batch, name: &str, first: u64) -> Result<()> {
    match batch.gaps().first() {
        None => Ok(()),
        Some(gap) => Err(Error::format(name, format!("row {} has no value", first + gap.row))
            .with_hint("pairs need a value on both sides: remove the row from both")),
    }
}

/// What all threads have made of an output.
struct Total {
    parts: Parts,
    evidence: Evidence,
    missing: u64,
}

impl Total {
    fn merge(&mut self, other: Total) -> Result<()> {
        let merged = self.parts.merge(other.parts);
        merged.map_err(|source| Error::Reduce { name: String::new(), source })?;
        self.evidence.merge(other.evidence);
        self.missing += other.missing;
        Ok(())
    }

    fn decide(self, output: &Output, reduction: &Reduction) -> Result<Partial> {
        let arrays = output.arrays();
        let mut partial = self.parts.decide(&output.name, reduction, arrays, &self.evidence)?;
        partial.add_missing(self.missing);
        Ok(partial)
    }
}
