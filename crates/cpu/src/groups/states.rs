//! Groups that have a state each.

use super::memory::{OutOfMemory, extend};
use super::table::{LEFT_OUT, Rows, Table, items};
use super::words;
use core::any::Any;
use warpfold_core::op::{Kind, Op, Rules, Run, State, Value};
use warpfold_core::{DType, Element, Result, fpenv};

/// A state for each group. What it absorbs may come in any order.
#[derive(Clone)]
pub(super) struct StateTable<S> {
    kind: Kind,
    states: Vec<S>,
    /// What the states have beyond their own size, as far as it is known.
    beyond: usize,
}

impl<S: State> StateTable<S> {
    pub(super) fn new(kind: Kind) -> Self {
        StateTable { kind, states: Vec::new(), beyond: 0 }
    }

    /// Whether a run costs less than its elements one by one: states that look
    /// for their place each time, or take elements side by side.
    fn by_runs(&self) -> bool {
        self.kind == Kind::LogSumExp || self.kind == Kind::Prod && S::Item::DTYPE.is_float()
    }

    /// Brings the rows of each group together, and absorbs them as runs.
    fn absorb_runs(&mut self, groups: &[u32], items: &[S::Item]) {
        let mut rows: Vec<(u32, u32)> = groups.iter().copied().zip(0..).collect();
        rows.sort_unstable();
        let mut run = Vec::new();
        for rows in rows.chunk_by(|a, b| a.0 == b.0) {
            run.clear();
            run.extend(rows.iter().map(|&(_, row)| items[row as usize]));
            let state = &mut self.states[rows[0].0 as usize];
            state.absorb(Run { start: 0, items: &run, others: &[] });
        }
    }
}

/// Rows that are sorted at once.
const SORTED: usize = 1 << 16;

impl<S: State> Table for StateTable<S> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn dtype(&self) -> DType {
        S::Item::DTYPE
    }

    fn grow(&mut self, groups: usize) -> Result<(), OutOfMemory> {
        extend(&mut self.states, groups, S::identity(self.kind))
    }

    fn absorb(&mut self, rows: Rows<'_>) {
        let items = items::<S::Item>(rows.items);
        assert_eq!(rows.groups.len(), items.len());
        // Some states round: in the environment that all others have.
        fpenv::usual(|| {
            if self.by_runs() {
                for (groups, items) in rows.groups.chunks(SORTED).zip(items.chunks(SORTED)) {
                    self.absorb_runs(groups, items);
                }
                return;
            }
            for (&group, item) in rows.groups.iter().zip(items) {
                let items = core::slice::from_ref(item);
                self.states[group as usize].absorb(Run { start: 0, items, others: &[] });
            }
        });
    }

    fn merge(&mut self, other: &dyn Table, groups: &[u32]) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Self>() else { return false };
        let pairs = other.states.iter().zip(groups).filter(|(_, group)| **group != LEFT_OUT);
        self.beyond += other.beyond;
        pairs.into_iter().all(|(theirs, &group)| {
            // States without positions of one kind always merge.
            fpenv::usual(|| self.states[group as usize].merge(theirs)).is_ok()
        })
    }

    fn scale(&mut self, _factor: u64) -> bool {
        // What is zero stays so.
        self.kind == Kind::Counts
    }

    fn value(&self, op: Op, rules: &Rules, group: u32, _rows: u64) -> Result<Value> {
        self.states[group as usize].finish(op, rules)
    }

    fn write(&self, group: u32, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        self.states[group as usize].write(&mut payload);
        words::write(out, payload.len() as u64);
        out.extend_from_slice(&payload);
    }

    fn read(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        let len = words::read(bytes)?;
        let payload = words::take(bytes, len)?;
        self.states[group as usize] = fpenv::usual(|| S::read(self.kind, payload))?;
        self.beyond += payload.len();
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<S>() + self.beyond
    }

    fn duplicate(&self) -> Box<dyn Table> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
