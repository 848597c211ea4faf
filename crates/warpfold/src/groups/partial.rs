//! Unfinished reductions of groups: states that can be written down, sent and merged.

use super::answer::{GroupColumn, Grouped, KeyValues};
use super::by::Order;
use super::column::Column;
use super::dictionary::Dictionary;
use super::keys::{KeyType, Keys};
use super::numbered::Groups;
use super::shared::SharedGroups;
use crate::answer;
use crate::unit::Unit;
use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use warpfold_core::layout::Input;
use warpfold_core::op::wide::Wide;
use warpfold_core::op::{Kind, Numbers, Op, Rules, Spans, State, Value};
use warpfold_core::{DType, Error, Result, Scalar, fpenv};
use warpfold_cpu::groups::{
    Finished, LEFT_OUT, OutOfMemory, Positions, Rows, Table, check_memory, new_table, words,
};
use warpfold_threads::{Pieces, Threads};

/// The states of all groups over a piece of the rows.
///
/// Merging the partials of any split of the rows, in any order, gives the answers of the
/// single run, bit for bit, and a partial of the same bytes.
///
/// ```
/// use warpfold::{GroupPartial, Op, Reduction, Rules};
///
/// let (keys, values) = ([7, 8, 7, 9], [0.1, 0.2, 0.3, 0.4]);
/// let question = Reduction::new([Op::Sum, Op::ArgMax]);
/// let whole = question.by(&keys).run(&values)?;
///
/// let bytes = question.by(&keys[..1]).partial(&values[..1], 0)?.to_bytes();
/// let mut merged = question.by(&keys[1..]).partial(&values[1..], 1)?;
/// merged.merge(&GroupPartial::from_bytes(&bytes)?)?;
/// assert_eq!(merged.finish(&Rules::default())?, whole);
/// # Ok::<(), warpfold::Error>(())
/// ```
pub struct GroupPartial {
    pub(super) question: Question,
    pub(super) groups: Groups,
    pub(super) values: Vec<Values>,
    /// The rows taken in, if that matters.
    pub(super) spans: Spans,
    /// Of each group the first of its rows, if that matters.
    pub(super) first: Vec<u64>,
    /// Rows without a key that were left out.
    pub(super) omitted: u64,
    /// What the columns of keys are called; empty names for none.
    pub(super) key_names: Vec<String>,
    /// How many rows there were.
    pub(super) rows: u64,
}

/// What is asked of each column of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The operations, and which of the tables answers each.
    pub(super) ops: Vec<(Op, usize)>,
    pub(super) kinds: Vec<Kind>,
    pub(super) order: Order,
    /// Whether rows without a key are left out.
    pub(super) omit: bool,
}

impl Question {
    /// Whether it matters which rows were taken in.
    pub(super) fn tracks(&self) -> bool {
        self.order == Order::FirstOccurrence || self.kinds.iter().any(|kind| kind.is_positional())
    }
}

/// The states of one column of values.
pub(super) struct Values {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// What they count.
    pub(super) unit: Option<Unit>,
    pub(super) tables: Vec<Box<dyn Table>>,
    /// Of groups with decimals beyond 64 bits, the states of these: of each kind one.
    pub(super) wide: BTreeMap<u32, Vec<Wide>>,
    /// Rows without a value.
    pub(super) missing: u64,
}

impl Values {
    pub(super) fn new(name: String, dtype: DType, kinds: &[Kind]) -> Result<Values> {
        let tables = kinds.iter().map(|&kind| new_table(kind, dtype)).collect::<Result<_>>()?;
        Ok(Values { name, dtype, unit: None, tables, wide: BTreeMap::new(), missing: 0 })
    }

    /// Makes these the states of the same values in a unit that has `factor` steps for each.
    fn rescale(&mut self, unit: Option<&Unit>, factor: u64) -> Result<()> {
        if let (Some(unit), Some(own), 2..) = (unit, &self.unit, factor)
            && !self.tables.iter_mut().all(|table| table.scale(factor))
        {
            return Err(unit.too_coarse(own));
        }
        if let (Some(unit), Some(own)) = (unit, &self.unit) {
            for wide in self.wide.values_mut().flatten() {
                *wide = wide.scaled(factor).ok_or_else(|| unit.too_coarse(own))?;
            }
        }
        self.unit = unit.cloned();
        Ok(())
    }

    /// Takes in a decimal beyond 64 bits.
    pub(super) fn absorb_wide(&mut self, group: u32, decimal: i128, at: u64) {
        let states = || self.tables.iter().map(|table| Wide::new(table.kind())).collect();
        let states = self.wide.entry(group).or_insert_with(states);
        states.iter_mut().for_each(|state| state.absorb(decimal, at));
    }

    /// The answer of a group of decimals, whatever their size.
    fn value(&self, place: usize, op: Op, rules: &Rules, group: u32, rows: u64) -> Result<Value> {
        let table = &self.tables[place];
        let Some(wide) = self.wide.get(&group) else { return table.value(op, rules, group, rows) };
        // What its decimals of 64 bits come to; the number of these precedes all else.
        let mut bytes = Vec::new();
        table.write(group, &mut bytes);
        let count = match table.kind() {
            Kind::Counts => table.value(Op::Count, &Rules::new(), group, rows)?.first().to_bits(),
            _ => words::read(&mut &bytes[..])?,
        };
        let exact = Rules::new().decimals(rules.decimals.unwrap_or(0));
        let answer = |op| table.value(op, &exact, group, rows);
        let mut all = Wide::of_answers(table.kind(), count, answer)?;
        all.merge(&wide[place])?;
        all.finish(op, rules)
    }

    pub(super) fn grow(&mut self, groups: usize) -> Result<(), OutOfMemory> {
        self.tables.iter_mut().try_for_each(|table| table.grow(groups))
    }
}

impl Clone for Values {
    fn clone(&self) -> Values {
        Values {
            name: self.name.clone(),
            dtype: self.dtype,
            unit: self.unit.clone(),
            tables: self.tables.iter().map(|table| table.duplicate()).collect(),
            wide: self.wide.clone(),
            missing: self.missing,
        }
    }
}

impl Clone for GroupPartial {
    fn clone(&self) -> GroupPartial {
        GroupPartial {
            question: self.question.clone(),
            groups: self.groups.clone(),
            values: self.values.clone(),
            spans: self.spans.clone(),
            first: self.first.clone(),
            omitted: self.omitted,
            key_names: self.key_names.clone(),
            rows: self.rows,
        }
    }
}

impl fmt::Debug for GroupPartial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ops: Vec<&str> = self.ops().map(Op::name).collect();
        write!(f, "GroupPartial({} of {} groups)", ops.join(", "), self.groups.len())
    }
}

/// Partials of the same rows are equal, however they were made.
impl PartialEq for GroupPartial {
    fn eq(&self, other: &GroupPartial) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}
impl Eq for GroupPartial {}

/// A run of values of rows that were numbered.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct GroupValues<'a> {
    /// The elements of the rows that have a value, as aligned bytes.
    pub items: &'a [u8],
    /// The second array's, for `dot`; else empty.
    pub others: &'a [u8],
    /// Runs of rows without a value, `(first row, length)`, ascending.
    pub gaps: &'a [(u64, u64)],
    /// Decimals beyond 64 bits, by their rows, which are among the gaps.
    pub wide: &'a [(u64, i128)],
}

/// What numbering leaves for the columns of values.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberedRows {
    /// The group of each row.
    groups: Vec<u32>,
    /// Whether some are left out.
    gaps: bool,
    start: u64,
    // Of the rows that count: their groups, positions and elements.
    taken: Vec<u32>,
    positions: Vec<u64>,
    elements: [Vec<u64>; 2],
}

/// Rows that are taken in at once.
const BLOCK: usize = 1 << 14;

/// Bytes of a state of decimals beyond 64 bits, about.
const WIDE: usize = 256;

/// Bytes that sorting takes for each group: its key, where that is, and its number.
const SORTING: usize = 56;

impl GroupPartial {
    /// No rows, of columns of values with names and types.
    pub(super) fn new(
        question: Question,
        key_types: &[KeyType],
        dense: Option<usize>,
        values: &[(String, DType)],
    ) -> Result<GroupPartial> {
        let groups = Groups::new(key_types, dense)?;
        let values = values
            .iter()
            .map(|(name, dtype)| Values::new(name.clone(), *dtype, &question.kinds))
            .collect::<Result<_>>()?;
        let mut partial = GroupPartial {
            question,
            groups,
            values,
            spans: Spans::new(),
            first: Vec::new(),
            omitted: 0,
            key_names: vec![String::new(); key_types.len()],
            rows: 0,
        };
        partial.grow()?;
        Ok(partial)
    }

    /// The operations that can be finished.
    pub fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        self.question.ops.iter().map(|&(op, _)| op)
    }

    /// The order of the groups in the answer.
    #[must_use]
    pub fn order(&self) -> Order {
        self.question.order
    }

    /// Whether rows without a key are left out.
    #[must_use]
    pub fn omits_missing(&self) -> bool {
        self.question.omit
    }

    /// How many groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there are no groups.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.len() == 0
    }

    /// How many rows were taken in, those that were left out included.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows that were left out since they have no key.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Rows without a value.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.values.iter().map(|values| values.missing).sum()
    }

    /// The memory that the states take, as far as it is known.
    #[must_use]
    pub fn memory(&self) -> usize {
        let tables = self.values.iter().flat_map(|values| &values.tables);
        let wide = self.values.iter().map(|values| values.wide.len() * values.tables.len());
        let wide = WIDE * wide.sum::<usize>();
        wide + self.groups.bytes()
            + 8 * self.first.capacity()
            + tables.map(|t| t.bytes()).sum::<usize>()
    }

    /// Makes room for the groups that there are.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn grow(&mut self) -> Result<(), OutOfMemory> {
        let groups = self.groups.len();
        self.values.iter_mut().try_for_each(|values| values.grow(groups))?;
        if self.question.order == Order::FirstOccurrence && self.first.len() < groups {
            let more = groups - self.first.len();
            self.first.try_reserve(more).map_err(|_| OutOfMemory)?;
            self.first.resize(groups, u64::MAX);
        }
        Ok(())
    }

    /// Whether some keys are decimals beyond 64 bits.
    pub(super) fn is_wide(&self) -> bool {
        self.groups.columns().iter().any(Dictionary::is_wide)
    }

    /// The error that there is no memory, with what there was until then.
    fn counted(&self, error: Error) -> Error {
        match error {
            Error::OutOfMemory { .. } => {
                Error::OutOfMemory { groups: self.groups.len(), rows: self.rows }
            }
            error => error,
        }
    }

    /// Finds out whether there is memory for so many bytes a group, which are asked for one
    /// by one later.
    fn check_memory(&self, bytes: usize) -> Result<()> {
        let all = bytes.saturating_mul(self.groups.len());
        check_memory(all).map_err(|error| self.counted(error.into()))
    }

    /// Gives the groups of rows, the first of which has index `start`, for
    /// [`absorb_values`](Self::absorb_values).
    ///
    /// # Errors
    /// Keys of other types, keys that are not dense, too many groups, no memory for them.
    pub(super) fn number(
        &mut self,
        keys: &Keys<'_>,
        rows: Range<usize>,
        start: u64,
        numbered: &mut NumberedRows,
    ) -> Result<()> {
        let NumberedRows { groups, .. } = numbered;
        let count = rows.len();
        let done = self.groups.number(keys, rows, self.question.omit, start, groups);
        let done = done.and_then(|()| Ok(self.grow()?));
        done.map_err(|error| self.counted(error))?;
        let omitted = match self.question.omit {
            true => groups.iter().filter(|&&group| group == LEFT_OUT).count(),
            false => 0,
        };
        self.see_first(groups, start..);
        (numbered.gaps, numbered.start) = (omitted > 0, start);
        self.see_rows(count, omitted);
        Ok(())
    }

    /// Counts rows, some of which were left out.
    pub(super) fn see_rows(&mut self, rows: usize, omitted: usize) {
        self.omitted = self.omitted.saturating_add(omitted as u64);
        self.rows = self.rows.saturating_add(rows as u64);
    }

    /// Keeps which row of each group is the first, if that matters.
    pub(super) fn see_first(&mut self, groups: &[u32], rows: impl Iterator<Item = u64>) {
        if self.question.order == Order::FirstOccurrence {
            for (&group, row) in groups.iter().zip(rows) {
                if group != LEFT_OUT {
                    let first = &mut self.first[group as usize];
                    *first = row.min(*first);
                }
            }
        }
    }

    /// Takes in the values of rows that were numbered.
    ///
    /// # Panics
    /// If there are not as many values as rows, but for the gaps.
    pub(super) fn absorb_values(
        &mut self,
        column: usize,
        values: GroupValues<'_>,
        numbered: &mut NumberedRows,
    ) {
        let NumberedRows { groups, gaps, start, taken, positions, elements } = numbered;
        let GroupValues { mut items, mut others, gaps: without, wide } = values;
        let here = |&&(row, _): &&(u64, i128)| groups[row as usize] != LEFT_OUT;
        for &(row, decimal) in wide.iter().filter(here) {
            self.values[column].absorb_wide(groups[row as usize], decimal, *start + row);
        }
        let Values { dtype, tables, missing, .. } = &mut self.values[column];
        let among_gaps = wide.iter().filter(here).count() as u64;
        let mut rows = (&groups[..], Positions::From(*start));
        if *gaps || !without.is_empty() {
            let size = dtype.size();
            taken.clear();
            positions.clear();
            elements.iter_mut().for_each(Vec::clear);
            let mut without = without.iter().copied().peekable();
            // Elements of the rows before, and of those that were taken.
            let (mut before, mut kept) = (0, Vec::new());
            for (row, &group) in groups.iter().enumerate() {
                let at = row as u64;
                while without.next_if(|&(first, len)| first + len <= at).is_some() {}
                if without.peek().is_some_and(|&(first, _)| first <= at) {
                    *missing = missing.saturating_add(u64::from(group != LEFT_OUT));
                    continue;
                }
                if group != LEFT_OUT {
                    taken.push(group);
                    positions.push(*start + at);
                    kept.push(before);
                }
                before += 1;
            }
            if kept.len() < before {
                for (from, to) in [&mut items, &mut others].into_iter().zip(elements) {
                    if !from.is_empty() {
                        to.resize((kept.len() * size).div_ceil(8), 0);
                        let to: &mut [u8] = bytemuck::cast_slice_mut(to);
                        for (&place, to) in kept.iter().zip(to.chunks_exact_mut(size)) {
                            to.copy_from_slice(&from[place * size..(place + 1) * size]);
                        }
                        *from = &to[..kept.len() * size];
                    }
                }
            }
            rows = (&taken[..], Positions::At(positions));
            *missing = missing.saturating_sub(among_gaps);
        }
        let rows = Rows { groups: rows.0, items, others, positions: rows.1 };
        tables.iter_mut().for_each(|table| table.absorb(rows));
    }

    /// Says that rows were taken in.
    ///
    /// # Errors
    /// [`Error::Overlap`], if it matters which rows there are.
    #[doc(hidden)]
    pub fn add_span(&mut self, start: u64, rows: u64) -> Result<()> {
        if !self.question.tracks() {
            return Ok(());
        }
        let mut span = Spans::new();
        span.insert(start, rows);
        self.spans.merge(&span)
    }

    /// Takes in the rows that follow those of the partial: keys, and a value for each.
    ///
    /// ```
    /// use warpfold::{Op, Reduction, Rules};
    ///
    /// let question = Reduction::of(Op::Sum);
    /// let mut sums = question.by(&["a", "b"]).partial(&[1.0, 2.0], 0)?;
    /// for (keys, values) in [(["b", "c"], [4.0, 8.0]), (["a", "c"], [16.0, 32.0])] {
    ///     sums.absorb(&keys, &values)?;
    /// }
    /// let answer = sums.finish(&Rules::default())?;
    /// assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[17.0, 6.0, 40.0][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// Keys or values of other types or lengths; keys that are not dense. The partial is
    /// then what it was before.
    pub fn absorb<'a>(
        &mut self,
        keys: impl Into<Keys<'a>>,
        values: impl Into<Input<'a>>,
    ) -> Result<()> {
        let (mut keys, values) = (keys.into(), [values.into()]);
        keys.dense = self.groups.dense();
        let column = Column::new(&values[0])?;
        let rows = keys.rows()?;
        if rows != column.rows() {
            return Err(Error::ShapeMismatch { left: vec![rows], right: vec![column.rows()] });
        }
        let dtype = self.values.first().map_or(column.dtype(), |values| values.dtype);
        if dtype != column.dtype() {
            return Err(Error::DTypeMismatch { left: dtype, right: column.dtype() });
        }
        if let Some(&op) = self.ops().collect::<Vec<_>>().iter().find(|op| op.arity() != 1) {
            return Err(Error::Arity { op, takes: 2, given: 1 });
        }
        let start = match self.question.tracks() {
            true => self.spans.ranges().last().map_or(0, |(_, end)| end),
            false => self.rows,
        };
        if start.checked_add(rows as u64).is_none() {
            return Err(Error::StartTooLarge { start, len: rows });
        }
        // Beside the others, so that after an error nothing was taken in.
        let shared = SharedGroups::new(self.empty()?);
        let mut reader = shared.reader()?;
        reader.absorb_rows(&keys, &values, &[column], 0..rows, start)?;
        let own = reader.into_own()?;
        let mut piece = shared.finish(vec![own])?;
        piece.add_span(start, rows as u64)?;
        self.merge(&piece)
    }

    /// The same question of no rows.
    #[doc(hidden)]
    pub fn empty(&self) -> Result<GroupPartial> {
        let values: Vec<_> = self.values.iter().map(|v| (v.name.clone(), v.dtype)).collect();
        let (types, dense) = (self.groups.types(), self.groups.dense());
        let mut empty = GroupPartial::new(self.question.clone(), &types, dense, &values)?;
        empty.key_names = self.key_names.clone();
        empty.groups.set_units(self.groups.columns().iter().map(|column| column.unit().cloned()));
        for (to, from) in empty.values.iter_mut().zip(&self.values) {
            to.unit.clone_from(&from.unit);
        }
        Ok(empty)
    }

    /// Takes in the partial of other rows, group by group. After an error `self` is what
    /// it was before.
    ///
    /// Keys that are integers of different widths, or count different steps of time, are
    /// compared as what they stand for, and so are values with a unit.
    ///
    /// # Errors
    /// [`Error::UnitMismatch`] if keys or values count what does not go together;
    /// [`Error::StateMismatch`] if operations, types of keys or types of values differ;
    /// [`Error::Overlap`] if both hold a row, where that matters: for positions and
    /// products of floats, and for groups in the order of their first rows;
    /// [`Error::OutOfMemory`].
    pub fn merge(&mut self, other: &GroupPartial) -> Result<()> {
        let differ =
            |what, left: String, right: String| Err(Error::StateMismatch { what, left, right });
        if self.question != other.question {
            let name = |p: &GroupPartial| {
                let names: Vec<&str> = p.ops().map(Op::name).collect();
                let omit = if p.question.omit { " of rows with keys" } else { "" };
                format!("{}{omit} in {} order", names.join(","), p.question.order)
            };
            return differ("operation", name(self), name(other));
        }
        let types = |p: &GroupPartial| {
            let types = p.values.iter().map(|values| values.dtype.to_string());
            types.collect::<Vec<_>>().join(",")
        };
        if types(self) != types(other) {
            return differ("element type", types(self), types(other));
        }
        if self.key_names != other.key_names {
            let (left, right) = (self.key_names.join(","), other.key_names.join(","));
            return differ("names of keys", left, right);
        }
        let names = |p: &GroupPartial| {
            p.values.iter().map(|values| values.name.clone()).collect::<Vec<_>>().join(",")
        };
        if names(self) != names(other) {
            return differ("names of columns", names(self), names(other));
        }
        let same_unit = |(ours, theirs): (&Values, &Values)| ours.unit == theirs.unit;
        let same = self.values.iter().zip(&other.values).all(same_unit);
        if !same || !self.groups.is_like(&other.groups) {
            let (mut ours, mut theirs) = (self.clone(), other.clone());
            ours.groups.reconcile(&mut theirs.groups)?;
            ours.groups.check(&theirs.groups)?;
            for (ours, theirs) in ours.values.iter_mut().zip(&mut theirs.values) {
                let joined = Unit::joined(ours.unit.as_ref(), theirs.unit.as_ref());
                let (unit, [mine, other]) = joined?;
                ours.rescale(unit.as_ref(), mine)?;
                theirs.rescale(unit.as_ref(), other)?;
            }
            ours.merge(&theirs)?;
            *self = ours;
            return Ok(());
        }
        self.groups.check(&other.groups)?;
        let mut spans = self.spans.clone();
        spans.merge(&other.spans)?;
        let before = self.groups.lens();
        let map = self.groups.adopt(&other.groups).map_err(|error| self.counted(error))?;
        if let Err(error) = self.grow() {
            let error = self.counted(error.into());
            self.groups.truncate(&before);
            return Err(error);
        }
        self.spans = spans;
        self.take_states(other, &map);
        self.count(other);
        Ok(())
    }

    /// Adds another's counts of rows.
    pub(super) fn count(&mut self, other: &GroupPartial) {
        for (ours, theirs) in self.values.iter_mut().zip(&other.values) {
            ours.missing = ours.missing.saturating_add(theirs.missing);
        }
        self.omitted = self.omitted.saturating_add(other.omitted);
        self.rows = self.rows.saturating_add(other.rows);
    }

    /// Takes in some groups of another partial, of one column of keys: in `map` they get the
    /// numbers that they have here, and all others are left out.
    pub(super) fn take(
        &mut self,
        other: &GroupPartial,
        groups: &[u32],
        map: &mut [u32],
    ) -> Result<()> {
        self.groups.adopt_some(&other.groups, groups, map)?;
        self.grow()?;
        self.take_states(other, map);
        Ok(())
    }

    /// Takes in the groups of others, which have no group in common.
    pub(super) fn append_all(&mut self, others: Vec<GroupPartial>) -> Result<()> {
        let maps = others.iter().map(|other| self.groups.append(&other.groups));
        let maps = maps.collect::<Result<Vec<_>>>()?;
        self.grow()?;
        for (other, map) in others.into_iter().zip(maps) {
            self.take_states(&other, &map);
            self.count(&other);
        }
        Ok(())
    }

    /// Takes in the states of those groups of another partial that `map` has a number for.
    fn take_states(&mut self, other: &GroupPartial, map: &[u32]) {
        for (ours, theirs) in self.values.iter_mut().zip(&other.values) {
            for (table, other) in ours.tables.iter_mut().zip(&theirs.tables) {
                // The questions are one, and so are the types.
                let merged = table.merge(&**other, map);
                assert!(merged, "tables of one kind and type merge");
            }
            for (&group, states) in &theirs.wide {
                if map[group as usize] == LEFT_OUT {
                    continue;
                }
                match ours.wide.entry(map[group as usize]) {
                    Entry::Vacant(entry) => drop(entry.insert(states.clone())),
                    Entry::Occupied(mut entry) => {
                        let both = entry.get_mut().iter_mut().zip(states);
                        // States of one kind, without positions of their own, merge.
                        both.for_each(|(ours, theirs)| drop(ours.merge(theirs)));
                    }
                }
            }
        }
        self.see_first(map, other.first.iter().copied());
    }

    /// The groups in the order of the answer.
    ///
    /// # Errors
    /// No memory.
    fn ordered(&self, threads: Threads) -> Result<Vec<u32>> {
        self.check_memory(SORTING)?;
        Ok(match self.question.order {
            Order::Key => self.groups.sorted(threads),
            Order::FirstOccurrence => {
                let mut groups: Vec<u32> = (0..self.groups.len() as u32).collect();
                groups.sort_by_key(|&group| self.first[group as usize]);
                groups
            }
        })
    }

    /// The answers. The states stay as they are and can be finished again under other
    /// rules.
    ///
    /// # Errors
    /// Those of finishing a group, as [`Error::InGroup`] with the group's key; of a group
    /// without elements, `min` and its kin are missing instead. [`Error::Gap`] if the
    /// answer depends on positions and a piece in the middle is missing.
    pub fn finish(&self, rules: &Rules) -> Result<Grouped> {
        self.finish_column(0, rules, Threads::Exactly(1))
    }

    /// The answers of one of several columns of values.
    #[doc(hidden)]
    pub fn finish_column(&self, column: usize, rules: &Rules, threads: Threads) -> Result<Grouped> {
        let groups = self.ordered(threads)?;
        let columns = self.question.ops.iter();
        let columns = columns.map(|&(op, _)| self.finish_op(column, op, rules, &groups, threads));
        let columns = columns.collect::<Result<_>>()?;
        Ok(Grouped { keys: self.keys_of(&groups)?, columns, groups: groups.len() })
    }

    /// The groups by their numbers, in the order of the answer.
    ///
    /// # Errors
    /// No memory.
    #[doc(hidden)]
    pub fn group_order(&self, threads: Threads) -> Result<Vec<u32>> {
        self.ordered(threads)
    }

    /// The keys of groups.
    ///
    /// # Errors
    /// No memory.
    #[doc(hidden)]
    pub fn keys_of(&self, groups: &[u32]) -> Result<Vec<KeyValues>> {
        // A number or where a text ends, and codes; no more text than there is.
        self.check_memory(16)?;
        check_memory(self.groups.bytes()).map_err(|error| self.counted(error.into()))?;
        Ok(self.groups.values(groups))
    }

    /// The bytes of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// No memory.
    #[doc(hidden)]
    pub fn try_to_bytes(&self) -> Result<Vec<u8>> {
        // They are no longer than what is in memory, but grow by doubling.
        let bytes = self.memory().saturating_mul(3);
        check_memory(bytes).map_err(|error| self.counted(error.into()))?;
        self.check_memory(SORTING)?;
        Ok(self.to_bytes())
    }

    /// The answers of these groups to one operation alone.
    ///
    /// # Errors
    /// As for [`finish`](Self::finish); an operation that was not asked for.
    #[doc(hidden)]
    pub fn finish_op(
        &self,
        column: usize,
        op: Op,
        rules: &Rules,
        groups: &[u32],
        threads: Threads,
    ) -> Result<GroupColumn> {
        fpenv::usual(|| {
            let values = &self.values[column];
            let place = self.question.ops.iter().find(|(o, _)| *o == op).map(|&(_, place)| place);
            let place = place.ok_or(Error::UnsupportedType { op, dtype: values.dtype })?;
            if let Some(unit) = values.unit.as_ref().filter(|unit| !unit.allows(op)) {
                return Err(Error::UnsupportedUnit { op, unit: unit.to_string() });
            }
            let rules = &Unit::rules_for(values.unit.as_ref(), rules);
            let table = &values.tables[place];
            let rows = self.spans.ranges().last().map_or(0, |(_, end)| end);
            if table.kind().is_positional() {
                self.check_spans()?;
            }
            // In parts, joined in an array that grows by doubling; and places without an answer.
            self.check_memory(4 * 2 * size_of::<u64>())?;
            if rules.decimals.is_some() && rules.out.is_none() || !values.wide.is_empty() {
                return self.finish_decimals(values, (op, place), rules, groups, rows);
            }
            let in_group = |(at, source): (usize, Error)| Error::InGroup {
                group: self.groups.show(groups[at]),
                source: Box::new(source),
            };
            let finish = |groups: &[u32]| finished(&**table, (op, rules, rows), groups, threads);
            // All states are read in the order of memory; which of several errors comes first is told by the
            // order of the answers.
            let all =
                (groups.len() == self.len()).then(|| (0..groups.len() as u32).collect::<Vec<_>>());
            let in_memory = all.and_then(|all| finish(&all).ok());
            let found = match in_memory {
                Some(found) => found.in_order(groups),
                None => finish(groups).map_err(in_group)?,
            };
            let out = rules.out.unwrap_or(op.answer_type(values.dtype));
            let zeros = || Numbers::zeros(out, 0);
            let Finished { first, second, missing } = found;
            let second = match answer::halves(op).len() {
                1 => None,
                _ => Some(second.unwrap_or_else(zeros)),
            };
            let numbers = first.unwrap_or_else(zeros);
            Ok(GroupColumn { column: answer::Column { op, numbers, second }, missing })
        })
    }

    /// The answers to a question about decimals, which may leave 64 bits.
    fn finish_decimals(
        &self,
        values: &Values,
        (op, place): (Op, usize),
        rules: &Rules,
        groups: &[u32],
        rows: u64,
    ) -> Result<GroupColumn> {
        self.check_memory(4 * 2 * size_of::<Value>())?;
        let (mut answers, mut missing) = (Vec::with_capacity(groups.len()), Vec::new());
        for (at, &group) in groups.iter().enumerate() {
            match values.value(place, op, rules, group, rows) {
                Ok(value) => answers.push(Some(value)),
                Err(Error::Empty { .. }) => {
                    missing.push(at);
                    answers.push(None);
                }
                Err(source) => {
                    let (group, source) = (self.groups.show(group), Box::new(source));
                    return Err(Error::InGroup { group, source });
                }
            }
        }
        // A group without an answer has a zero of the others' type.
        let some = answers.iter().flatten().next().map(|value| value.first().dtype());
        let dtype = some.or(rules.out).unwrap_or(op.answer_type(values.dtype));
        let zero = Scalar::from_bits(dtype, 0);
        let none = match answer::halves(op).len() {
            1 => Value::One(zero),
            _ => Value::Pair(zero, zero),
        };
        let answers: Vec<Value> = answers.into_iter().map(|value| value.unwrap_or(none)).collect();
        Ok(GroupColumn { column: answer::Column::pack(op, dtype, rules, &answers), missing })
    }

    /// # Errors
    /// A piece that is missing between others.
    fn check_spans(&self) -> Result<()> {
        match self.spans.first_gap() {
            Some((from, to)) => Err(Error::Gap { from, to }),
            None => Ok(()),
        }
    }

    /// Gives the columns names, for whoever reads the bytes.
    #[doc(hidden)]
    pub fn name_keys(&mut self, names: Vec<String>) {
        if names.len() == self.key_names.len() {
            self.key_names = names;
        }
    }

    /// What the columns of keys are called.
    #[doc(hidden)]
    #[must_use]
    pub fn key_names(&self) -> &[String] {
        &self.key_names
    }

    /// The columns of values: what they are called, of which type, and how many rows
    /// have no value.
    #[doc(hidden)]
    pub fn value_columns(&self) -> impl Iterator<Item = (&str, DType, u64)> + '_ {
        self.values.iter().map(|values| (&*values.name, values.dtype, values.missing))
    }

    /// What the values of a column count.
    #[doc(hidden)]
    #[must_use]
    pub fn value_unit(&self, column: usize) -> Option<&Unit> {
        self.values[column].unit.as_ref()
    }

    /// Says what the values of a column, which are of i64, count.
    #[doc(hidden)]
    pub fn count_values(&mut self, column: usize, unit: Unit) {
        self.values[column].unit = Some(unit);
    }

    /// Leaves only these columns of values, ascending.
    #[doc(hidden)]
    pub fn keep_columns(&mut self, places: &[usize]) {
        let mut place = 0;
        self.values.retain(|_| {
            place += 1;
            places.contains(&(place - 1))
        });
    }
}

/// The answers of groups, which threads share in pieces.
///
/// # Errors
/// That of the first group that has one, with its place.
fn finished(
    table: &dyn Table,
    (op, rules, rows): (Op, &Rules, u64),
    groups: &[u32],
    threads: Threads,
) -> Result<Finished, (usize, Error)> {
    let pieces = Pieces::new(groups.len().div_ceil(BLOCK));
    let parts = threads.run(pieces.count(), || {
        let mut parts = Vec::new();
        while let Some(piece) = pieces.take() {
            let from = piece * BLOCK;
            let groups = &groups[from..groups.len().min(from + BLOCK)];
            let part = table.finish(op, rules, groups, rows);
            parts.push((from, part.map_err(|(at, error)| (from + at, error))));
        }
        parts
    });
    let mut parts: Vec<_> = parts.into_iter().flatten().collect();
    parts.sort_unstable_by_key(|&(from, _)| from);
    let mut all: Option<Finished> = None;
    for (from, part) in parts {
        let mut part = part?;
        part.missing.iter_mut().for_each(|place| *place += from);
        match &mut all {
            None => all = Some(part),
            Some(all) => {
                for (all, part) in [(&mut all.first, part.first), (&mut all.second, part.second)] {
                    if let (Some(all), Some(part)) = (all, part) {
                        all.append(&part).map_err(|error| (from, error))?;
                    }
                }
                all.missing.append(&mut part.missing);
            }
        }
    }
    Ok(all.unwrap_or_default())
}
