//! The groups: distinct keys of all columns together, with their numbers.

use super::answer::KeyValues;
use super::dictionary::{Dictionary, mismatch};
use super::keys::{KeyType, Keys};
use crate::unit::Unit;
use core::ops::Range;
use warpfold_core::{DType, Error, Result};
use warpfold_cpu::groups::{LEFT_OUT, Numbering, OutOfMemory, check_memory};
use warpfold_threads::Threads;

/// The most groups: their numbers, and one more, fit a `u32`.
const MOST: usize = u32::MAX as usize - (1 << 24);

/// Groups, numbered as they come.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    columns: Vec<Dictionary>,
    /// Of each column but the first, the pairs of what the columns before have come to
    /// and of its code.
    pairs: Vec<Numbering>,
    /// The number of groups, where keys are numbers of groups.
    dense: Option<usize>,
}

impl Groups {
    /// No groups but for dense ones.
    pub(super) fn new(types: &[KeyType], dense: Option<usize>) -> Result<Groups> {
        let mut columns: Vec<Dictionary> = types.iter().map(|&t| Dictionary::new(t)).collect();
        if let Some(groups) = dense {
            let integers = matches!(types, [KeyType::Number(dtype)] if !dtype.is_float());
            if !integers {
                return Err(Error::Groups {
                    what: "dense keys are one column of integers".into(),
                    hint: "without a number of groups, keys are of any types".into(),
                });
            }
            check_count(groups, 0)?;
            let types = types.iter().filter_map(|&t| match t {
                KeyType::Number(dtype) => Some(dtype),
                KeyType::Text => None,
            });
            for dtype in types {
                let bits = match dtype {
                    DType::Bool => 1,
                    dtype => 8 * dtype.size() - usize::from(dtype.is_signed_int()),
                };
                if groups.checked_shr(bits as u32).unwrap_or(0) > 0 && groups > 1 << bits {
                    return Err(Error::Groups {
                        what: format!("{groups} groups have no numbers of type {dtype}"),
                        hint: "give keys of a wider type".into(),
                    });
                }
            }
            for group in 0..groups as u64 {
                columns[0].insert_word(group)?;
            }
        }
        let pairs = (1..types.len()).map(|_| Numbering::new()).collect();
        Ok(Groups { columns, pairs, dense })
    }

    pub(super) fn types(&self) -> Vec<KeyType> {
        self.columns.iter().map(Dictionary::key_type).collect()
    }

    pub(super) fn dense(&self) -> Option<usize> {
        self.dense
    }

    pub(super) fn len(&self) -> usize {
        match self.pairs.last() {
            Some(pairs) => pairs.len(),
            None => self.columns.first().map_or(0, Dictionary::len),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.columns.iter().map(Dictionary::bytes).sum::<usize>()
            + self.pairs.iter().map(Numbering::bytes).sum::<usize>()
    }

    /// The groups of rows; [`LEFT_OUT`] for those that lack a key, if `omit`. `first` is
    /// the index of the first row, for messages.
    ///
    /// # Errors
    /// Keys of other types or in a device's memory, keys that are not dense, and too many
    /// of them.
    pub(super) fn number(
        &mut self,
        keys: &Keys<'_>,
        rows: Range<usize>,
        omit: bool,
        first: u64,
        groups: &mut Vec<u32>,
    ) -> Result<()> {
        let without = omit.then_some(LEFT_OUT);
        groups.clear();
        // Before anything is numbered: after an error the groups are what they were.
        if keys.on_device().next().is_some() {
            return Err(Error::DeviceMemory {
                what: "unfinished groups are of keys in the host's memory".into(),
                hint: "copy keys and values to the host",
            });
        }
        self.check_keys(keys)?;
        self.columns[0].encode(&keys.columns[0], rows.clone(), without, groups)?;
        if let Some(dense) = self.dense {
            if let Some(row) = groups.iter().position(|&g| g != LEFT_OUT && g as usize >= dense) {
                let key = self.columns[0].show(groups[row]);
                let row = first + row as u64;
                return Err(Error::KeyOutOfRange { row, key, groups: dense });
            }
            return Ok(());
        }
        let mut codes = Vec::new();
        let others = self.columns[1..].iter_mut().zip(&keys.columns[1..]);
        for ((dictionary, column), pairs) in others.zip(&mut self.pairs) {
            codes.clear();
            dictionary.encode(column, rows.clone(), without, &mut codes)?;
            for (group, &code) in groups.iter_mut().zip(&codes) {
                *group = match (*group, code) {
                    (LEFT_OUT, _) | (_, LEFT_OUT) => LEFT_OUT,
                    (before, code) => pairs.number(pair(before, code))?,
                };
            }
        }
        check_count(self.len(), first)
    }

    /// # Errors
    /// Keys of other types than the groups'.
    pub(super) fn check_keys(&self, keys: &Keys<'_>) -> Result<()> {
        for (dictionary, column) in self.columns.iter().zip(&keys.columns) {
            let (left, right) = (dictionary.key_type(), column.key_type()?);
            if left != right {
                return Err(mismatch(left, right));
            }
            if dictionary.unit() != column.unit.as_ref() {
                // Steps of time that go together do so where states are merged.
                Unit::joined(dictionary.unit(), column.unit.as_ref())?;
                let name = |unit: Option<&Unit>| unit.map_or_else(String::new, Unit::to_string);
                let (left, right) = (name(dictionary.unit()), name(column.unit.as_ref()));
                return Err(Error::StateMismatch { what: "unit", left, right });
            }
        }
        if self.columns.len() != keys.columns.len() {
            let (left, right) = (self.columns.len().to_string(), keys.columns.len().to_string());
            return Err(Error::StateMismatch { what: "number of key columns", left, right });
        }
        Ok(())
    }

    /// The groups of keys of one column: of words, or else of texts.
    ///
    /// # Errors
    /// Too many of them, no memory.
    pub(super) fn number_all(
        &mut self,
        words: &[u64],
        texts: &[&[u8]],
        groups: &mut [u32],
        first: u64,
    ) -> Result<()> {
        self.columns[0].number_all(words, texts, groups)?;
        check_count(self.len(), first)
    }

    /// Gives these groups of another one, of one column, the numbers that they have here.
    ///
    /// # Errors
    /// Too many of them, no memory.
    pub(super) fn adopt_some(
        &mut self,
        other: &Groups,
        groups: &[u32],
        map: &mut [u32],
    ) -> Result<()> {
        let codes = self.columns[0].adopt(&other.columns[0], groups.iter().copied())?;
        groups.iter().zip(codes).for_each(|(&group, code)| map[group as usize] = code);
        check_count(self.len(), 0)
    }

    /// Adds the groups of another one, of one column, none of which is here.
    ///
    /// # Errors
    /// Too many of them, no memory.
    pub(super) fn append(&mut self, other: &Groups) -> Result<Vec<u32>> {
        check_count(self.len() + other.len(), 0)?;
        let first = self.len() as u32;
        check_memory(size_of::<u32>() * other.len())?;
        self.columns[0].append(&other.columns[0])?;
        Ok((first..self.len() as u32).collect())
    }

    /// The numbers that another one's groups have here, where they get one.
    ///
    /// # Errors
    /// Keys of other types, and no memory; nothing is changed then.
    pub(super) fn adopt(&mut self, other: &Groups) -> Result<Vec<u32>> {
        self.check(other)?;
        let before = self.lens();
        let groups = self.adopt_all(other);
        if groups.is_err() {
            self.truncate(&before);
        }
        groups
    }

    /// How many keys each column has, and how many pairs there are.
    pub(super) fn lens(&self) -> [Vec<usize>; 2] {
        let columns = self.columns.iter().map(Dictionary::len).collect();
        [columns, self.pairs.iter().map(Numbering::len).collect()]
    }

    /// Forgets what has come since there were so many.
    pub(super) fn truncate(&mut self, [columns, pairs]: &[Vec<usize>; 2]) {
        self.columns.iter_mut().zip(columns).for_each(|(column, &len)| column.truncate(len));
        self.pairs.iter_mut().zip(pairs).for_each(|(pairs, &len)| pairs.truncate(len));
    }

    fn adopt_all(&mut self, other: &Groups) -> Result<Vec<u32>> {
        let codes = self.columns.iter_mut().zip(&other.columns);
        let codes = codes.map(|(ours, theirs)| ours.adopt(theirs, 0..theirs.len() as u32));
        let mut codes = codes.collect::<Result<Vec<Vec<u32>>, OutOfMemory>>()?.into_iter();
        let Some(mut groups) = codes.next() else { return Ok(Vec::new()) };
        for ((codes, ours), theirs) in codes.zip(&mut self.pairs).zip(&other.pairs) {
            let number = |&word: &u64| {
                let (before, code) = halves(word);
                ours.number(pair(groups[before as usize], codes[code as usize]))
            };
            check_memory(size_of_val(theirs.words()))?;
            groups = theirs.words().iter().map(number).collect::<Result<_, OutOfMemory>>()?;
        }
        Ok(groups)
    }

    /// Says what the keys of each column count.
    pub(super) fn set_units(&mut self, units: impl IntoIterator<Item = Option<Unit>>) {
        self.columns.iter_mut().zip(units).for_each(|(column, unit)| column.set_unit(unit));
    }

    /// Brings the keys of both to the same types, where these differ in width or in unit.
    /// Numbers of groups stay what they are.
    ///
    /// # Errors
    /// Types or units that have no values in common, and keys beyond the common type.
    pub(super) fn reconcile(&mut self, other: &mut Groups) -> Result<()> {
        // Dense keys are numbers of groups in the order of their type.
        if self.dense.is_some() || other.dense.is_some() {
            return Ok(());
        }
        for (left, right) in self.columns.iter_mut().zip(&mut other.columns) {
            let (Some(mine), Some(theirs)) = (left.counted(), right.counted()) else { continue };
            if mine != theirs {
                let joined = mine.joined(&theirs)?;
                left.widen(&joined)?;
                right.widen(&joined)?;
            }
        }
        Ok(())
    }

    /// Whether the keys of both have the same types.
    pub(super) fn is_like(&self, other: &Groups) -> bool {
        let pairs = self.columns.iter().zip(&other.columns);
        pairs.into_iter().all(|(left, right)| left.counted() == right.counted())
    }

    /// # Errors
    /// Keys of other types.
    pub(super) fn check(&self, other: &Groups) -> Result<()> {
        if self.columns.len() != other.columns.len() {
            let (left, right) = (self.columns.len().to_string(), other.columns.len().to_string());
            return Err(Error::StateMismatch { what: "number of key columns", left, right });
        }
        let pairs = self.columns.iter().zip(&other.columns);
        for (left, right) in pairs.map(|(l, r)| (l.key_type(), r.key_type())) {
            if left != right {
                return Err(mismatch(left, right));
            }
        }
        if self.dense != other.dense {
            let name = |dense: Option<usize>| dense.map_or("any".into(), |n| n.to_string());
            let (left, right) = (name(self.dense), name(other.dense));
            return Err(Error::StateMismatch { what: "number of dense groups", left, right });
        }
        check_count(self.len().saturating_add(other.len()).min(MOST), 0)
    }

    /// The codes of a group in each column.
    pub(super) fn codes(&self, group: u32) -> Vec<u32> {
        let mut codes = Vec::with_capacity(self.columns.len());
        let mut before = group;
        for pairs in self.pairs.iter().rev() {
            let (rest, code) = halves(pairs.words()[before as usize]);
            codes.push(code);
            before = rest;
        }
        codes.push(before);
        codes.reverse();
        codes
    }

    /// The codes of groups in one column.
    fn column_codes(&self, column: usize, groups: &[u32]) -> Vec<u32> {
        let mut codes = groups.to_vec();
        for (place, pairs) in self.pairs.iter().enumerate().rev() {
            let words = pairs.words();
            if place + 1 == column {
                codes.iter_mut().for_each(|c| *c = halves(words[*c as usize]).1);
                return codes;
            }
            codes.iter_mut().for_each(|c| *c = halves(words[*c as usize]).0);
        }
        codes
    }

    /// All groups, in the order of their keys, column by column; rows without a key come
    /// last.
    pub(super) fn sorted(&self, threads: Threads) -> Vec<u32> {
        if self.pairs.is_empty() {
            return self.columns.first().map_or_else(Vec::new, |column| column.sorted(threads));
        }
        let mut groups: Vec<u32> = (0..self.len() as u32).collect();
        // By the last column first: sorting is stable.
        for (column, dictionary) in self.columns.iter().enumerate().rev() {
            let mut ranks = vec![0u32; dictionary.len()];
            for (rank, code) in (0..).zip(dictionary.sorted(threads)) {
                ranks[code as usize] = rank;
            }
            let codes = self.column_codes(column, &groups);
            let mut ranked: Vec<(u32, u32)> =
                codes.iter().map(|&code| ranks[code as usize]).zip(groups).collect();
            ranked.sort_by_key(|&(rank, _)| rank);
            groups = ranked.into_iter().map(|(_, group)| group).collect();
        }
        groups
    }

    /// The keys of groups, column by column.
    pub(super) fn values(&self, groups: &[u32]) -> Vec<KeyValues> {
        let columns = self.columns.iter().enumerate();
        columns.map(|(i, column)| column.values(self.column_codes(i, groups).into_iter())).collect()
    }

    /// A group's key as people read it.
    pub(super) fn show(&self, group: u32) -> String {
        let codes = self.codes(group);
        let keys = self.columns.iter().zip(codes).map(|(column, code)| column.show(code));
        keys.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn columns(&self) -> &[Dictionary] {
        &self.columns
    }

    /// The group of a key that was read: its codes, each from its column.
    pub(super) fn insert(
        &mut self,
        mut code: impl FnMut(&mut Dictionary) -> Result<u32>,
    ) -> Result<u32> {
        let mut group = code(&mut self.columns[0])?;
        for (column, pairs) in self.columns[1..].iter_mut().zip(&mut self.pairs) {
            group = pairs.number(pair(group, code(column)?))?;
        }
        check_count(self.len(), 0)?;
        Ok(group)
    }
}

fn pair(before: u32, code: u32) -> u64 {
    u64::from(before) << 32 | u64::from(code)
}

fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// # Errors
/// More groups than there are numbers.
fn check_count(groups: usize, rows: u64) -> Result<()> {
    if groups <= MOST {
        return Ok(());
    }
    let bytes = groups.saturating_mul(size_of::<u32>());
    Err(Error::TooManyGroups { groups, rows, bytes, limit: MOST * size_of::<u32>() })
}
