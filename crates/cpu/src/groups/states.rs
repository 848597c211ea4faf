//! Groups that have a state each, which knows its type by itself.

use super::memory::{LITTLE, OutOfMemory, ask_ahead, check_memory, make_room};
use super::table::{LEFT_OUT, Rows, Table, as_same};
use super::words;
use crate::isa::Isa;
use crate::worker::Absorber;
use warpfold_core::op::{AnyState, Kind, Op, RawRun, Rules, Value};
use warpfold_core::{DType, Result};

/// A state for each group. What it absorbs may come in any order.
#[derive(Clone)]
pub(super) struct StateTable {
    /// That of a group without elements.
    none: AnyState,
    states: Vec<AnyState>,
    /// What the states have beyond their own size, as far as it is known.
    beyond: usize,
}

impl StateTable {
    pub(super) fn new(kind: Kind, dtype: DType) -> Result<Self> {
        Ok(StateTable { none: AnyState::identity(kind, dtype)?, states: Vec::new(), beyond: 0 })
    }

    /// The bytes of a state.
    fn each(&self) -> usize {
        size_of::<AnyState>() + self.none.most_bytes(0)
    }
}

/// Rows that are sorted at once.
const SORTED: usize = 1 << 16;

impl Table for StateTable {
    fn states(&self) -> (Kind, DType) {
        (self.none.kind(), self.none.dtype())
    }

    fn grow(&mut self, groups: usize) -> Result<(), OutOfMemory> {
        let more = groups.saturating_sub(self.states.len());
        make_room(&mut self.states, more)?;
        // A state that finds no memory would end the program.
        if more * self.each() > LITTLE {
            check_memory(more * self.each())?;
        }
        self.states.resize(self.states.len() + more, self.none.clone());
        Ok(())
    }

    fn absorb(&mut self, rows: Rows<'_>) {
        let size = self.none.dtype().size();
        assert_eq!(rows.groups.len() * size, rows.items.len());
        let kernels = Absorber::new(self.none.kind(), self.none.dtype(), Isa::best());
        let mut kernels = kernels.expect("there is a state of this kind and this type");
        let mut absorb = |state: &mut AnyState, items: &[u8]| {
            let run = RawRun { start: 0, items, others: &[] };
            let done = kernels.absorb(state, run, None, 0);
            done.expect("kernels of the kind and the type of all states");
        };
        if self.none.kind() == Kind::Prod && !self.none.dtype().is_float() {
            for (row, (&group, item)) in rows.groups.iter().zip(rows.items.chunks(size)).enumerate()
            {
                ask_ahead(&self.states, rows.groups, row);
                absorb(&mut self.states[group as usize], item);
            }
            return;
        }
        // The rows of each group together cost less: states look for the place of a run once, or
        // take its elements side by side.
        let (mut order, mut run) = (Vec::new(), Vec::new());
        for (groups, items) in rows.groups.chunks(SORTED).zip(rows.items.chunks(SORTED * size)) {
            order.clear();
            order.extend(groups.iter().zip(0..).map(|(&group, row)| u64::from(group) << 32 | row));
            order.sort_unstable();
            for rows in order.chunk_by(|a, b| a >> 32 == b >> 32) {
                run.clear();
                for &row in rows {
                    run.extend_from_slice(&items[row as u32 as usize * size..][..size]);
                }
                absorb(&mut self.states[(rows[0] >> 32) as usize], &run);
            }
        }
    }

    fn merge(&mut self, other: &dyn Table, groups: &[u32]) -> bool {
        let Some(other) = as_same(self, other) else { return false };
        let mut pairs = other.states.iter().zip(groups).filter(|(_, group)| **group != LEFT_OUT);
        self.beyond += other.beyond;
        // States without positions of one kind always merge.
        pairs.all(|(theirs, &group)| self.states[group as usize].merge(theirs).is_ok())
    }

    fn value(&self, op: Op, rules: &Rules, group: u32, _rows: u64) -> Result<Value> {
        self.states[group as usize].finish(op, rules)
    }

    fn write(&self, group: u32, out: &mut Vec<u8>) {
        let payload = self.states[group as usize].payload();
        words::write(out, payload.len() as u64);
        out.extend_from_slice(&payload);
    }

    fn read(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        let len = words::read(bytes)?;
        let payload = words::take(bytes, len)?;
        self.states[group as usize] =
            AnyState::from_payload(self.none.kind(), self.none.dtype(), payload)?;
        self.beyond += payload.len();
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * self.each() + self.beyond
    }
}
