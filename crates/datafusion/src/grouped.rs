//! An aggregate of groups.

use crate::arrays::{column, elements, mask, states, wrong};
use crate::function::Question;
use core::ops::Range;
use datafusion_common::arrow::array::{Array, ArrayRef, BinaryBuilder, BooleanArray, UInt64Array};
use datafusion_common::arrow::buffer::NullBuffer;
use datafusion_common::arrow::compute::filter;
use datafusion_common::{DataFusionError, Result, exec_err};
use datafusion_expr::{EmitTo, GroupsAccumulator};
use std::sync::Arc;
use warpfold_core::fpenv;
use warpfold_cpu::groups::{OutOfMemory, Positions, Rows, Table, new_table};

/// The states of all groups.
pub(crate) struct Grouped {
    question: Question,
    table: Box<dyn Table>,
    /// How many values each group has, counted no further than an answer needs.
    counts: Vec<u8>,
    /// Whether a group may have fewer. Where one value is enough, groups have it from the row on that
    /// brought them, unless that had none: nothing is counted then.
    short: bool,
    /// The groups of a batch's rows.
    groups: Vec<u32>,
}

fn no_memory(_: OutOfMemory) -> DataFusionError {
    DataFusionError::ResourcesExhausted("no memory for the states of groups".into())
}

impl Grouped {
    pub(crate) fn new(question: Question) -> Result<Grouped> {
        let table = new_table(question.op.kind(), question.dtype).map_err(wrong)?;
        Ok(Grouped { question, table, counts: Vec::new(), short: false, groups: Vec::new() })
    }

    /// Makes room for groups, the new ones of which have `count` values.
    fn grow(&mut self, groups: usize, count: u8) -> Result<()> {
        if u32::try_from(groups).is_err() {
            return exec_err!("{groups} groups in one partition; {} are the most", u32::MAX);
        }
        if groups > self.counts.len() {
            self.table.grow(groups).map_err(no_memory)?;
            self.counts.resize(groups, count);
            self.short |= u64::from(count) < self.question.least;
        }
        Ok(())
    }

    /// Takes in values, whose groups are in `self.groups`.
    fn absorb(&mut self, values: &ArrayRef) -> Result<()> {
        let items = elements(values, self.question.dtype)?;
        let groups = &*self.groups;
        let rows = Rows { groups, items, others: &[], positions: Positions::From(0) };
        fpenv::usual(|| self.table.absorb(rows));
        if self.short {
            let least = self.question.least as u8;
            for &group in groups {
                let count = &mut self.counts[group as usize];
                *count = least.min(*count + 1);
            }
        }
        Ok(())
    }

    /// What is emitted, and the groups of it; the others are the first from now on.
    fn take(&mut self, emit: EmitTo) -> Result<(Grouped, Range<u32>)> {
        let mut rest = Grouped::new(self.question)?;
        let all = self.counts.len();
        let emitted = match emit {
            EmitTo::All => all,
            EmitTo::First(count) => count.min(all),
        };
        rest.grow(all - emitted, 0)?;
        let mut bytes = Vec::new();
        for group in emitted..all {
            bytes.clear();
            self.table.write(group as u32, &mut bytes);
            let (own, count) = ((group - emitted) as u32, self.counts[group]);
            if count > 0 {
                rest.table.read(own, &mut &*bytes).map_err(wrong)?;
                rest.counts[own as usize] = count;
            }
        }
        Ok((core::mem::replace(self, rest), 0..emitted as u32))
    }

    /// The columns of the states of some groups.
    fn columns(&self, groups: Range<u32>) -> Vec<ArrayRef> {
        let counts = &self.counts[groups.start as usize..groups.end as usize];
        let mut states = BinaryBuilder::new();
        let mut bytes = Vec::new();
        for (group, &count) in groups.zip(counts) {
            bytes.clear();
            if count > 0 {
                self.table.write(group, &mut bytes);
            }
            states.append_option(Some(&bytes).filter(|_| count > 0));
        }
        vec![
            Arc::new(states.finish()),
            Arc::new(UInt64Array::from_iter_values(counts.iter().map(|&count| u64::from(count)))),
        ]
    }
}

impl GroupsAccumulator for Grouped {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        indices: &[usize],
        chosen: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        let Some(values) = values.first() else { return exec_err!("no column of values") };
        let mask = mask(values, chosen);
        // Each new group has a row here.
        self.grow(groups, u8::from(mask.is_none() && self.question.least == 1))?;
        self.groups.clear();
        // `grow` has made sure that indices fit.
        match mask {
            None => {
                self.groups.extend(indices.iter().map(|&group| group as u32));
                self.absorb(values)
            }
            Some(mask) => {
                let kept = mask.values().set_indices().map(|row| indices[row] as u32);
                self.groups.extend(kept);
                self.absorb(&filter(values, &mask)?)
            }
        }
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (made, groups) = self.take(emit)?;
        let Question { op, rules, least, .. } = self.question;
        let counts = &made.counts[..groups.len()];
        // What has no answer is not asked: it may have an error.
        let asked: Vec<u32> =
            groups.filter(|&group| u64::from(counts[group as usize]) >= least).collect();
        // Where rows are plays no part.
        let rows = 0;
        let finished = made.table.finish(op, &rules, &asked, rows).map_err(|(_, e)| wrong(e))?;
        let Some(answers) = finished.first else { return exec_err!("{op} has no answers") };
        if asked.len() == counts.len() {
            return column(&answers, None);
        }
        let mut spread = warpfold_core::op::Numbers::zeros(answers.dtype(), counts.len());
        for (&group, answer) in asked.iter().zip(answers.iter()) {
            let (dtype, bits) = (answer.dtype(), answer.to_bits());
            warpfold_core::op::Numbers::set_bits(spread.bytes_mut(), dtype, group as usize, bits);
        }
        let present: Vec<bool> = counts.iter().map(|&count| u64::from(count) >= least).collect();
        column(&spread, Some(NullBuffer::from(present)))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (made, groups) = self.take(emit)?;
        Ok(made.columns(groups))
    }

    fn merge_batch(
        &mut self,
        columns: &[ArrayRef],
        indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.grow(groups, 0)?;
        let (bytes, counts) = states(columns)?;
        let mut others = Grouped::new(self.question)?;
        others.grow(bytes.len(), 0)?;
        self.groups.clear();
        for (i, (bytes, &group)) in bytes.iter().zip(indices).enumerate() {
            self.groups.push(group as u32);
            if let Some(mut bytes) = bytes {
                others.table.read(i as u32, &mut bytes).map_err(wrong)?;
                let sum = u64::from(self.counts[group]).saturating_add(counts[i]);
                self.counts[group] = sum.min(self.question.least) as u8;
            }
        }
        if self.table.merge(&*others.table, &self.groups) {
            return Ok(());
        }
        exec_err!("states of another kind")
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        chosen: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |values| values.len());
        let mut alone = Grouped::new(self.question)?;
        let own: Vec<usize> = (0..rows).collect();
        alone.update_batch(values, &own, chosen, rows)?;
        Ok(alone.columns(0..rows as u32))
    }

    fn size(&self) -> usize {
        let counts = self.counts.capacity();
        self.table.bytes() + counts + self.groups.capacity() * size_of::<u32>()
    }
}
