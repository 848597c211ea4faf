//! Groups that threads share: many of them, in parts by the hashes of their keys.
//!
//! A thread has groups of its own as long as they are few. Where they become many, it hands them
//! over, and from then on its rows go to the parts, each of which is one thread's at a time. No
//! group of a part is in another, so that in the end the parts are put one behind the other, and
//! nothing but what was left to threads is merged.

use super::column::Column;
use super::dictionary::read_words;
use super::keys::{Items, Keys};
use super::partial::{GroupPartial, GroupValues, NumberedRows};
use core::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use warpfold_core::layout::Input;
use warpfold_core::{Error, Result};
use warpfold_cpu::groups::{LEFT_OUT, Positions, Rows, check_memory, hash, hash_text};

/// Parts, as bits of a hash.
const BITS: u32 = 6;
const PARTS: usize = 1 << BITS;
/// A thread with as many groups of its own hands them over.
const MANY: usize = if cfg!(test) { 1 << 7 } else { 1 << 16 };
/// Rows that are taken in at once: few, as the next ones may be for the parts, and then more.
const BLOCK: usize = if cfg!(test) { 1 << 6 } else { 1 << 14 };
const LARGE: usize = BLOCK << 3;

type Parts = Vec<Mutex<GroupPartial>>;

/// What threads share.
#[doc(hidden)]
#[derive(Debug)]
pub struct SharedGroups {
    empty: GroupPartial,
    /// None before groups become many.
    parts: OnceLock<Parts>,
    groups: AtomicUsize,
    memory: AtomicUsize,
}

/// What one thread takes rows in with.
#[doc(hidden)]
#[derive(Debug)]
pub struct GroupReader<'a> {
    shared: &'a SharedGroups,
    own: GroupPartial,
    numbered: NumberedRows,
    /// The parts, once rows go to these.
    parts: Option<&'a Parts>,
    /// The rows that were numbered last, if they were the parts'.
    parted: Option<Parted>,
}

/// Rows by their parts.
#[derive(Debug)]
struct Parted {
    start: u64,
    /// Where each part's rows begin in `rows`, and where the last's end.
    starts: Vec<usize>,
    rows: Vec<u32>,
    /// Of each of these the group in its part.
    groups: Vec<u32>,
}

impl SharedGroups {
    /// No groups; the question is that of `empty`.
    #[must_use]
    pub fn new(empty: GroupPartial) -> SharedGroups {
        let [groups, memory] = [0, 0].map(AtomicUsize::new);
        SharedGroups { empty, parts: OnceLock::new(), groups, memory }
    }

    /// What a thread takes rows in with.
    ///
    /// # Errors
    /// None but those of making partials.
    pub fn reader(&self) -> Result<GroupReader<'_>> {
        let (own, numbered) = (self.empty.empty()?, NumberedRows::default());
        Ok(GroupReader { shared: self, own, numbered, parts: None, parted: None })
    }

    fn parts(&self) -> Result<&Parts> {
        if self.parts.get().is_none() {
            let made = (0..PARTS).map(|_| Ok(Mutex::new(self.empty.empty()?)));
            // Another thread may have made them meanwhile.
            let _ = self.parts.set(made.collect::<Result<_>>()?);
        }
        Ok(self.parts.get_or_init(Vec::new))
    }

    /// The memory that the parts take, as far as it is known.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// Does something to a part that is no other thread's meanwhile.
    fn with<R>(&self, part: &Mutex<GroupPartial>, work: impl FnOnce(&mut GroupPartial) -> R) -> R {
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        let before = (part.len(), part.memory());
        let done = work(&mut part);
        // Neither shrinks.
        self.groups.fetch_add(part.len().saturating_sub(before.0), Ordering::Relaxed);
        self.memory.fetch_add(part.memory().saturating_sub(before.1), Ordering::Relaxed);
        done
    }

    /// Hands the groups of a partial over to the parts.
    fn pour(&self, from: &GroupPartial) -> Result<()> {
        // A part, a place and a number of each.
        check_memory(3 * size_of::<u32>() * from.len())?;
        let of: Vec<u8> = from.groups.columns()[0].hashes().map(part_of).collect();
        let (starts, groups) = by_parts(&of, PARTS);
        let mut places = vec![LEFT_OUT; of.len()];
        for (part, range) in self.parts()?.iter().zip(starts.windows(2)) {
            let groups = &groups[range[0]..range[1]];
            self.with(part, |part| part.take(from, groups, &mut places))?;
            groups.iter().for_each(|&group| places[group as usize] = LEFT_OUT);
        }
        Ok(())
    }

    /// The groups of all rows that readers have taken in, whose own groups are `own`.
    ///
    /// # Errors
    /// Those of [`GroupPartial::merge`].
    pub fn finish(self, own: Vec<GroupPartial>) -> Result<GroupPartial> {
        let mut own = own.into_iter();
        let is_shared = self.parts.get().is_some();
        let first = if is_shared { None } else { own.next() };
        let mut whole = first.map_or_else(|| self.empty.empty(), Ok)?;
        for own in own {
            if is_shared {
                self.pour(&own)?;
                whole.count(&own);
            } else {
                whole.merge(&own)?;
            }
        }
        if is_shared {
            let parts = self.parts.into_inner().into_iter().flatten();
            let parts = parts.map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner));
            whole.append_all(parts.collect())?;
        }
        Ok(whole)
    }
}

/// The part that the key of a hash is in: the lower bits number it there.
fn part_of(hash: u64) -> u8 {
    (hash >> (u64::BITS - BITS)) as u8
}

/// What is of each part together: where the parts begin, and the places of what is theirs.
fn by_parts(parts: &[u8], count: usize) -> (Vec<usize>, Vec<u32>) {
    let mut starts = vec![0; usize::from(u8::MAX) + 2];
    parts.iter().for_each(|&part| starts[usize::from(part) + 1] += 1);
    (0..count).for_each(|part| starts[part + 1] += starts[part]);
    starts.truncate(count + 1);
    let mut next = starts.clone();
    let mut places = vec![0; starts[count]];
    for (&part, place) in parts.iter().zip(0..) {
        if let Some(next) = next[..count].get_mut(usize::from(part)) {
            places[*next] = place;
            *next += 1;
        }
    }
    (starts, places)
}

/// Rows without a key, which are of the first part.
const KEYLESS: u8 = PARTS as u8;
/// Rows that are left out.
const NOWHERE: u8 = u8::MAX;

impl GroupReader<'_> {
    /// The groups that no other thread knows of.
    #[must_use]
    pub fn into_own(self) -> GroupPartial {
        self.own
    }

    /// How many groups there are, of this thread and of the parts.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.own.len() + self.shared.groups.load(Ordering::Relaxed)
    }

    /// The memory that the thread's own states take.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.own.memory()
    }

    /// Gives the groups of rows, the first of which has index `start`, for
    /// [`absorb_values`](Self::absorb_values).
    ///
    /// # Errors
    /// Keys of other types, keys that are not dense, too many groups, no memory for them.
    pub fn number(&mut self, keys: &Keys<'_>, rows: Range<usize>, start: u64) -> Result<()> {
        let one = keys.columns.len() == 1 && self.own.groups.dense().is_none();
        if one && self.parts.is_none() && self.own.len() >= MANY && !self.own.is_wide() {
            self.shared.pour(&self.own).map_err(|error| self.counted(error))?;
            let mut empty = self.shared.empty.empty()?;
            empty.count(&self.own);
            (self.own, self.parts) = (empty, Some(self.shared.parts()?));
        }
        self.parted = None;
        let Some(parts) = self.parts.filter(|_| one && keys.columns[0].wide.0.is_empty()) else {
            return self.own.number(keys, rows, start, &mut self.numbered);
        };
        self.own.groups.check_keys(keys)?;
        let parted = self.parted(parts, keys, rows, start).map_err(|error| self.counted(error))?;
        self.parted = Some(parted);
        Ok(())
    }

    /// The error that there is no memory, with what there was until then.
    fn counted(&self, error: Error) -> Error {
        match error {
            Error::OutOfMemory { .. } => {
                Error::OutOfMemory { groups: self.groups(), rows: self.own.rows() }
            }
            error => error,
        }
    }

    /// Numbers rows, part by part.
    fn parted(
        &mut self,
        parts: &Parts,
        keys: &Keys<'_>,
        rows: Range<usize>,
        start: u64,
    ) -> Result<Parted> {
        let column = &keys.columns[0];
        let keyless = if self.own.omits_missing() { NOWHERE } else { KEYLESS };
        let (mut words, mut texts) = (Vec::new(), Vec::new());
        let of: Vec<u8> = match &column.items {
            Items::Numbers(input) => {
                read_words(&Column::new(input)?, rows.clone(), &mut words);
                let part = |(word, row): (&u64, usize)| match input.is_valid(row) {
                    true => part_of(hash(*word)),
                    false => keyless,
                };
                words.iter().zip(rows.clone()).map(part).collect()
            }
            _ => {
                column.for_each_text(rows.clone(), |text| texts.push(text));
                let part = |text: &[u8]| part_of(hash_text(text));
                texts.iter().map(|text| text.map_or(keyless, part)).collect()
            }
        };
        let (starts, order) = by_parts(&of, PARTS + 1);
        let mut groups = vec![0; order.len()];
        // Threads begin at different parts.
        let first = (hash(start) >> (u64::BITS - BITS)) as usize;
        let (mut some_words, mut some_texts) = (Vec::new(), Vec::new());
        for part in (0..PARTS).map(|part| (first + part) % PARTS) {
            let range = starts[part]..starts[part + 1];
            let rows = order[range.clone()].iter().map(|&row| row as usize);
            some_words.clear();
            some_texts.clear();
            match texts.is_empty() {
                true => some_words.extend(rows.map(|row| words[row])),
                false => some_texts.extend(rows.filter_map(|row| texts[row])),
            }
            let keyless = if part == 0 { starts[PARTS]..order.len() } else { 0..0 };
            self.shared.with(&parts[part], |part| {
                let keys = &mut part.groups;
                keys.number_all(&some_words, &some_texts, &mut groups[range.clone()], start)?;
                if !keyless.is_empty() {
                    let group = keys.insert(|column| Ok(column.missing()?))?;
                    groups[keyless.clone()].fill(group);
                }
                part.grow()?;
                for range in [range, keyless] {
                    let rows = order[range.clone()].iter().map(|&row| start + u64::from(row));
                    part.see_first(&groups[range], rows);
                }
                Ok::<(), Error>(())
            })?;
        }
        self.own.see_rows(of.len(), of.len() - order.len());
        Ok(Parted { start, starts, rows: order, groups })
    }

    /// Takes in the values of rows that were numbered.
    ///
    /// # Panics
    /// If there are not as many values as rows, but for the gaps.
    pub fn absorb_values(&mut self, column: usize, values: GroupValues<'_>) {
        let (Some(parted), Some(parts)) = (&self.parted, self.parts) else {
            return self.own.absorb_values(column, values, &mut self.numbered);
        };
        let Parted { start, starts, rows, groups } = parted;
        let positions = self.own.question.tracks();
        let size = self.own.values[column].dtype.size();
        // The place of each row among the elements, where there are gaps.
        let mut places = Vec::new();
        if !values.gaps.is_empty() {
            let mut next = 0u32;
            for &(first, len) in values.gaps {
                places.extend((places.len() as u64..first).map(|_| {
                    next += 1;
                    next - 1
                }));
                places.resize((first + len) as usize, u32::MAX);
            }
            let all = rows.iter().max().map_or(0, |&last| last as usize + 1);
            let rest = all.saturating_sub(places.len()) as u32;
            places.extend(next..next + rest);
        }
        let place = |row: u32| match places.is_empty() {
            true => Some(row),
            false => Some(places[row as usize]).filter(|&place| place != u32::MAX),
        };
        let mut missing = 0;
        let (mut taken, mut at) = (Vec::new(), Vec::new());
        let mut elements = [Vec::<u64>::new(), Vec::new()];
        let first = (hash(*start) >> (u64::BITS - BITS)) as usize;
        for part in (0..=PARTS).map(|part| (first + part) % (PARTS + 1)) {
            let range = starts[part]..starts[part + 1];
            let (rows, mut groups) = (&rows[range.clone()], &groups[range]);
            if rows.is_empty() {
                continue;
            }
            if !places.is_empty() {
                let there = |&(&row, _): &(&u32, &u32)| place(row).is_some();
                taken.clear();
                taken.extend(rows.iter().zip(groups).filter(there).map(|(_, &group)| group));
                missing += (rows.len() - taken.len()) as u64;
                groups = &taken;
            }
            let there = || rows.iter().filter_map(|&row| place(row).map(|place| (row, place)));
            at.clear();
            if positions {
                at.extend(there().map(|(row, _)| start + u64::from(row)));
            }
            let [items, others] = &mut elements;
            let places = || there().map(|(_, place)| place as usize);
            let items = picked(values.items, size, places(), groups.len(), items);
            let others = picked(values.others, size, places(), groups.len(), others);
            let rows = Rows { groups, items, others, positions: Positions::At(&at) };
            self.shared.with(&parts[part % PARTS], |part| {
                part.values[column].tables.iter_mut().for_each(|table| table.absorb(rows));
            });
        }
        if !values.wide.is_empty() {
            let mut places: Vec<(u32, usize)> = rows.iter().copied().zip(0..).collect();
            places.sort_unstable();
            for &(row, decimal) in values.wide {
                let found = places.binary_search_by_key(&row, |&(row, _)| u64::from(row));
                let Ok(found) = found else { continue };
                let place = places[found].1;
                let part = starts.partition_point(|&start| start <= place) - 1;
                missing -= 1;
                self.shared.with(&parts[part % PARTS], |part| {
                    part.values[column].absorb_wide(groups[place], decimal, start + row);
                });
            }
        }
        let own = &mut self.own.values[column].missing;
        *own = own.saturating_add(missing);
    }

    /// Takes in rows of a column of values, or of two, from `rows.start` on.
    pub(super) fn absorb_rows(
        &mut self,
        keys: &Keys<'_>,
        inputs: &[Input<'_>],
        columns: &[Column<'_>],
        rows: Range<usize>,
        start: u64,
    ) -> Result<()> {
        let (mut buffers, mut gaps) = ([Vec::new(), Vec::new()], Vec::new());
        let mut compact = [Vec::<u64>::new(), Vec::new()];
        let mut from = rows.start;
        while from < rows.end {
            let block = if self.parts.is_some() { LARGE } else { BLOCK };
            let rows = from..rows.end.min(from + block);
            self.number(keys, rows.clone(), start + from as u64)?;
            gaps.clear();
            if inputs.iter().any(|input| input.missing() > 0) {
                let valid = |row: usize| inputs.iter().all(|input| input.is_valid(row));
                let missing = rows.clone().filter(|&row| !valid(row));
                gaps.extend(missing.map(|row| ((row - from) as u64, 1)));
            }
            let mut parts: [&[u8]; 2] = [&[], &[]];
            let sides = columns.iter().zip(&mut buffers).zip(&mut compact).zip(&mut parts);
            for (((column, buffer), compact), part) in sides {
                let size = column.dtype().size();
                *part = column.bytes(rows.clone(), buffer);
                if !gaps.is_empty() {
                    *part = without(part, size, &gaps, compact);
                }
            }
            let values = GroupValues { items: parts[0], others: parts[1], gaps: &gaps, wide: &[] };
            self.absorb_values(0, values);
            from = rows.end;
        }
        Ok(())
    }
}

/// The elements at these places, one after the other.
fn picked<'a>(
    items: &[u8],
    size: usize,
    places: impl Iterator<Item = usize>,
    count: usize,
    memory: &'a mut Vec<u64>,
) -> &'a [u8] {
    if items.is_empty() {
        return &[];
    }
    memory.resize((count * size).div_ceil(8), 0);
    let to: &mut [u8] = &mut bytemuck::cast_slice_mut(memory)[..count * size];
    macro_rules! of {
        ($word:ty) => {{
            let (from, to) = (bytemuck::cast_slice(items), bytemuck::cast_slice_mut(to));
            places.zip(to).for_each(|(place, to): (_, &mut $word)| *to = from[place]);
        }};
    }
    match size {
        1 => of!(u8),
        2 => of!(u16),
        4 => of!(u32),
        _ => of!(u64),
    }
    to
}

/// The elements without those of missing rows, put together in `compact`.
fn without<'a>(
    items: &[u8],
    size: usize,
    gaps: &[(u64, u64)],
    compact: &'a mut Vec<u64>,
) -> &'a [u8] {
    let len = items.len() - gaps.len() * size;
    compact.clear();
    compact.resize(len.div_ceil(8), 0);
    let to: &mut [u8] = &mut bytemuck::cast_slice_mut(compact)[..len];
    let mut done = 0;
    let mut from = 0;
    let ends = gaps.iter().map(|&(row, _)| row as usize * size).chain([items.len()]);
    for end in ends {
        to[done..done + (end - from)].copy_from_slice(&items[from..end]);
        done += end - from;
        from = (end + size).min(items.len());
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyColumn, Op, Order, Reduction, Threads};

    const ROWS: usize = 4000;

    /// Partials of so few rows that no thread has many groups, merged.
    fn merged(
        question: &Reduction,
        order: Order,
        omit: bool,
        keys: &[Option<&str>],
    ) -> GroupPartial {
        let (values, bits) = values();
        let mut whole: Option<GroupPartial> = None;
        for from in (0..ROWS).step_by(MANY / 2) {
            let rows = from..ROWS.min(from + MANY / 2);
            let by = question.by(&keys[rows.clone()]).order(order).omit_missing(omit);
            let values = Input::masked(&values[rows.clone()], &bits, rows.start).unwrap();
            let piece = by.partial(values, rows.start as u64).unwrap();
            match &mut whole {
                None => whole = Some(piece),
                Some(whole) => whole.merge(&piece).unwrap(),
            }
        }
        whole.unwrap()
    }

    /// Values of all magnitudes, and a bit for each that is there.
    fn values() -> (Vec<f64>, Vec<u8>) {
        let bits = |row: usize| hash(row as u64 ^ 77);
        let value = |row: usize| match bits(row) % 7 {
            0 => f64::from_bits(bits(row)),
            1 => 1e300,
            2 => -0.0,
            _ => (bits(row) >> 40) as f64 - 1e6,
        };
        let valid = (0..ROWS / 8).map(|byte| !(hash(byte as u64) as u8 & 0x11)).collect();
        ((0..ROWS).map(value).collect(), valid)
    }

    #[test]
    fn many_groups_of_several_threads_are_those_of_merged_pieces() {
        let (values, bits) = values();
        let families: [fn(u64) -> u64; 4] = [
            |row| row,
            |row| hash(row) % 900,
            // Few keys with many rows, and many with few.
            |row| if row % 3 > 0 { row % 5 } else { hash(row) % 2000 },
            |row| row / 7,
        ];
        let question = Reduction::new([Op::Sum, Op::Mean, Op::Std, Op::ArgMax, Op::Min, Op::Count]);
        for (number, family) in families.into_iter().enumerate() {
            for text in ["", "key "] {
                let key =
                    |row: u64| (!row.is_multiple_of(11)).then(|| format!("{text}{}", family(row)));
                let texts: Vec<Option<String>> = (0..ROWS as u64).map(key).collect();
                let keys: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
                for (order, omit) in [(Order::Key, false), (Order::FirstOccurrence, true)] {
                    let expected = merged(&question, order, omit, &keys);
                    for threads in [1, 3] {
                        let question = question.clone().threads(Threads::Exactly(threads));
                        let by = question.by(&keys).order(order).omit_missing(omit);
                        let found = by.partial(Input::masked(&values, &bits, 0).unwrap(), 0);
                        let found = found.unwrap();
                        let what = format!("{number}, {text:?}, {order}, {threads} threads");
                        assert!(found == expected, "{what}");
                        assert_eq!(found.missing(), expected.missing(), "{what}");
                        let rules = crate::Rules::default();
                        assert_eq!(found.finish(&rules), expected.finish(&rules), "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_are_many_keys_too() {
        let question = Reduction::new([Op::Sum, Op::SumSq]).threads(Threads::Exactly(2));
        let keys: Vec<i32> = (0..ROWS as u64).map(|row| hash(row) as i32 % 1500).collect();
        let values: Vec<f32> = (0..ROWS).map(|row| 1.5f32.powi(row as i32 % 200 - 100)).collect();
        let bits: Vec<u8> = (0..ROWS / 8).map(|byte| hash(byte as u64) as u8 | 0x81).collect();
        for missing in [false, true] {
            let column = |rows: Range<usize>| match missing {
                true => {
                    KeyColumn::from(Input::masked(&keys[rows.clone()], &bits, rows.start).unwrap())
                }
                false => KeyColumn::from(&keys[rows]),
            };
            let whole = question.by(column(0..ROWS)).partial(&values, 0).unwrap();
            let mut pieces = question.by(column(0..0)).partial(&values[..0], 0).unwrap();
            for from in (0..ROWS).step_by(MANY / 2) {
                let rows = from..ROWS.min(from + MANY / 2);
                let piece = question.by(column(rows.clone())).partial(&values[rows], from as u64);
                pieces.merge(&piece.unwrap()).unwrap();
            }
            assert!(whole == pieces && whole.len() > 1000);
            // What is merged after the parts were put together is found among them.
            let mut twice = whole.clone();
            twice.merge(&whole).unwrap();
            assert_eq!(twice.len(), whole.len());
        }
    }
}
