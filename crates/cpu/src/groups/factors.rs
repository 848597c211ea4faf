//! Products of floats, which the fixed tree rounds by the positions of the elements.
//!
//! The elements of a group lie anywhere, and which of them a leaf of the tree holds is
//! known when all have come. Therefore they are kept with their positions until the
//! answer is asked for: memory grows with the rows, not with the groups. The answer is
//! that of the whole array with all rows of other groups missing.

use super::table::{Rows, Table, items};
use super::words::{self, damaged};
use core::any::Any;
use warpfold_core::op::{FloatElement, FloatProd, Kind, Op, Rules, Run, State, Value};
use warpfold_core::{DType, Result};

/// Positions of a leaf of the tree.
const BLOCK: u64 = warpfold_core::op::tree::BLOCK as u64;

/// The elements of each group, with their positions.
#[derive(Clone)]
pub(super) struct FactorTable<T> {
    groups: Vec<Vec<(u64, T)>>,
    rows: usize,
}

impl<T: FloatElement> FactorTable<T> {
    pub(super) fn new() -> Self {
        FactorTable { groups: Vec::new(), rows: 0 }
    }

    /// A group's elements by position.
    fn sorted(&self, group: u32) -> Vec<(u64, T)> {
        let mut factors = self.groups[group as usize].clone();
        factors.sort_by_key(|&(at, _)| at);
        factors
    }

    fn product(&self, op: Op, rules: &Rules, group: u32, rows: u64) -> Result<Value> {
        let mut tree = FloatProd::<T>::identity(Kind::Prod);
        let mut leaf = vec![T::ONE; BLOCK as usize];
        let factors = self.sorted(group);
        let mut next = 0;
        for factors in factors.chunk_by(|a, b| a.0 / BLOCK == b.0 / BLOCK) {
            let start = factors[0].0 / BLOCK * BLOCK;
            let len = (rows.max(factors[factors.len() - 1].0 + 1) - start).min(BLOCK);
            tree.skip(next, start - next);
            // A missing row is a factor of one.
            for &(at, x) in factors {
                leaf[(at - start) as usize] = x;
            }
            tree.absorb(Run { start, items: &leaf[..len as usize], others: &[] });
            for &(at, _) in factors {
                leaf[(at - start) as usize] = T::ONE;
            }
            next = start + len;
        }
        tree.skip(next, rows.saturating_sub(next));
        tree.finish(op, rules)
    }
}

impl<T: FloatElement> Table for FactorTable<T> {
    fn kind(&self) -> Kind {
        Kind::Prod
    }

    fn dtype(&self) -> DType {
        T::DTYPE
    }

    fn grow(&mut self, groups: usize) {
        if groups > self.groups.len() {
            self.groups.resize(groups, Vec::new());
        }
    }

    fn len(&self) -> usize {
        self.groups.len()
    }

    fn absorb(&mut self, rows: Rows<'_>) {
        let items = items::<T>(rows.items);
        assert_eq!(rows.groups.len(), items.len());
        for (row, (&group, &x)) in rows.groups.iter().zip(items).enumerate() {
            self.groups[group as usize].push((rows.positions.get(row), x));
        }
        self.rows += items.len();
    }

    fn merge(&mut self, other: &dyn Table, groups: &[u32]) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Self>() else { return false };
        for (theirs, &group) in other.groups.iter().zip(groups) {
            self.groups[group as usize].extend_from_slice(theirs);
        }
        self.rows += other.rows;
        true
    }

    fn value(&self, op: Op, rules: &Rules, group: u32, rows: u64) -> Result<Value> {
        self.product(op, rules, group, rows)
    }

    fn write(&self, group: u32, out: &mut Vec<u8>) {
        let factors = self.sorted(group);
        words::write(out, factors.len() as u64);
        let mut next = 0;
        for (at, x) in factors {
            words::write(out, at - next);
            out.extend_from_slice(&x.bits().to_le_bytes()[..size_of::<T>()]);
            next = at + 1;
        }
    }

    fn read(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        let len = words::read(bytes)?;
        let mut next = 0u64;
        for _ in 0..len {
            let gap = words::read(bytes)?;
            let at = next.checked_add(gap).filter(|&at| at < u64::MAX);
            let at = at.ok_or_else(|| damaged("its positions are out of order"))?;
            let mut bits = [0; 8];
            bits[..size_of::<T>()].copy_from_slice(words::take(bytes, size_of::<T>() as u64)?);
            self.groups[group as usize].push((at, T::from_bits(u64::from_le_bytes(bits))));
            self.rows += 1;
            next = at + 1;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Vec<(u64, T)>>() + self.rows * size_of::<(u64, T)>()
    }

    fn duplicate(&self) -> Box<dyn Table> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
