//! Groups that threads share: many of them, in parts by the hashes of their keys.
//!
//! A thread has groups of its own as long as they are few. Where they become many, it hands them
//! over, and from then on its rows go to the parts, each of which is one thread's at a time. No
//! group of a part is in another, so that in the end the parts are put one behind the other, and
//! nothing but what was left to threads is merged.
//!
//! Rows wait until a part gets many at once: what is kept of its groups comes from memory once for
//! several of them. All that wait are at most two for each group, so that they take less memory
//! than the groups do.

use super::column::Column;
use super::dictionary::read_words;
use super::keys::{Items, Keys};
use super::partial::{GroupPartial, GroupValues, NumberedRows};
use core::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use warpfold_core::layout::Input;
use warpfold_core::{Error, Result, prefetch};
use warpfold_cpu::groups::{LEFT_OUT, Positions, Rows, check_memory, hash, hash_text, pick};

/// Parts, as bits of a hash.
const BITS: u32 = 6;
const PARTS: usize = 1 << BITS;
/// A thread with as many groups of its own hands them over.
const MANY: usize = if cfg!(test) { 1 << 7 } else { 1 << 16 };
/// Rows that are taken in at once: few, as the next ones may be for the parts, and then more.
const BLOCK: usize = if cfg!(test) { 1 << 6 } else { 1 << 14 };
const LARGE: usize = BLOCK << 3;
/// Rows that wait for a part: of all threads as many as it has groups twice over, but of each not fewer
/// and not more.
const FEWEST: usize = if cfg!(test) { 1 << 3 } else { 1 << 11 };
const MOST: usize = if cfg!(test) { 1 << 5 } else { 1 << 16 };

/// Texts that are asked for before their turn comes.
const AHEAD: usize = 8;

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
    readers: AtomicUsize,
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
    /// The rows that came last, if they are the parts'.
    parted: Option<Parted>,
    /// The rows that wait for each part, and behind these those without a key.
    waiting: Vec<Waiting>,
}

/// Rows by their parts.
#[derive(Debug)]
struct Parted {
    start: u64,
    /// Where each part's rows begin in `rows`, and where the last's end.
    starts: Vec<usize>,
    rows: Vec<u32>,
}

/// Rows that wait for a part.
#[derive(Debug, Default)]
struct Waiting {
    count: usize,
    /// Their keys: words, or texts one after the other and where each ends.
    words: Vec<u64>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Where they are, if that matters.
    positions: Vec<u64>,
    columns: Vec<WaitingValues>,
    /// How many groups the part had when rows were taken in last.
    groups: usize,
}

/// The values of rows that wait.
#[derive(Clone, Debug, Default)]
struct WaitingValues {
    /// How many there are, and which of the rows have one: the first ones, if nothing else is said. The rows
    /// of a whole block may have none.
    count: usize,
    which: Option<Vec<u32>>,
    elements: [Vec<u64>; 2],
    /// Decimals beyond 64 bits: which row has it, and the row's position.
    wide: Vec<(u32, i128, u64)>,
}

impl Waiting {
    /// The memory that it takes.
    fn memory(&self) -> usize {
        let wide = self.columns.iter().map(|values| size_of_val(&values.wide[..])).sum::<usize>();
        let elements = self.columns.iter().flat_map(|values| &values.elements);
        let which = self.columns.iter().flat_map(|values| &values.which);
        let words = self.words.capacity() + self.ends.capacity() + self.positions.capacity();
        wide + 8 * (words + elements.map(Vec::capacity).sum::<usize>())
            + 4 * which.map(Vec::capacity).sum::<usize>()
            + self.bytes.capacity()
    }

    /// Leaves no row, and the memory as it is.
    fn clear(&mut self) {
        let Waiting { count, words, bytes, ends, positions, columns, .. } = self;
        *count = 0;
        words.clear();
        bytes.clear();
        ends.clear();
        positions.clear();
        for values in columns {
            (values.which, values.count) = (None, 0);
            values.wide.clear();
        }
    }

    /// Whether there are enough rows for the part, where so many threads have some.
    fn is_full(&self, threads: usize) -> bool {
        self.count >= (2 * self.groups / threads.max(1)).clamp(FEWEST, MOST)
    }

    /// Takes the rows in.
    fn pour(&mut self, into: &mut GroupPartial, keyless: bool) -> Result<()> {
        let Waiting { count, words, bytes, ends, positions, columns, groups: known } = self;
        let mut groups = vec![0; *count];
        if keyless {
            let group = into.groups.insert(|column| Ok(column.missing()?))?;
            groups.fill(group);
        } else {
            let mut from = 0;
            let text = |&end: &usize| &bytes[core::mem::replace(&mut from, end)..end];
            let texts: Vec<&[u8]> = ends.iter().map(text).collect();
            into.groups.number_all(words, &texts, &mut groups, into.rows())?;
        }
        into.grow()?;
        into.see_first(&groups, positions.iter().copied());
        let (mut some, mut at) = (Vec::new(), Vec::new());
        for (values, waiting) in into.values.iter_mut().zip(columns) {
            let first = positions.get(..waiting.count).unwrap_or_default();
            let mut rows = (&groups[..waiting.count], first);
            if let Some(which) = &waiting.which {
                some.clear();
                some.extend(which.iter().map(|&row| groups[row as usize]));
                at.clear();
                if !positions.is_empty() {
                    at.extend(which.iter().map(|&row| positions[row as usize]));
                }
                rows = (&some, &at);
            }
            let bytes = rows.0.len() * values.dtype.size();
            let [items, others] = waiting.elements.each_ref().map(|elements| -> &[u8] {
                bytemuck::cast_slice(elements).get(..bytes).unwrap_or_default()
            });
            let rows = Rows { groups: rows.0, items, others, positions: Positions::At(rows.1) };
            values.tables.iter_mut().for_each(|table| table.absorb(rows));
            for &(row, decimal, position) in &waiting.wide {
                values.absorb_wide(groups[row as usize], decimal, position);
            }
        }
        *known = into.len();
        Ok(())
    }
}

impl SharedGroups {
    /// No groups; the question is that of `empty`.
    #[must_use]
    pub fn new(empty: GroupPartial) -> SharedGroups {
        let [groups, memory, readers] = [0, 0, 0].map(AtomicUsize::new);
        SharedGroups { empty, parts: OnceLock::new(), groups, memory, readers }
    }

    /// What a thread takes rows in with.
    ///
    /// # Errors
    /// None but those of making partials.
    pub fn reader(&self) -> Result<GroupReader<'_>> {
        let (own, numbered) = (self.empty.empty()?, NumberedRows::default());
        let waiting = Vec::new();
        self.readers.fetch_add(1, Ordering::Relaxed);
        Ok(GroupReader { shared: self, own, numbered, parts: None, parted: None, waiting })
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
    ///
    /// # Errors
    /// No memory for the groups of rows that waited.
    pub fn into_own(mut self) -> Result<GroupPartial> {
        self.pour(self.own.rows(), |_| true)?;
        Ok(self.own)
    }

    /// Lets the parts take in the rows that wait for them, where these are enough; threads that have come to
    /// different rows begin at different parts.
    fn pour(&mut self, row: u64, enough: impl Fn(&Waiting) -> bool) -> Result<()> {
        let Some(parts) = self.parts else { return Ok(()) };
        let (first, count) = (usize::from(part_of(hash(row))), self.waiting.len());
        for place in (0..count).map(|place| (first + place) % count) {
            let waiting = &mut self.waiting[place];
            if waiting.count == 0 || !enough(waiting) {
                continue;
            }
            let keyless = place == PARTS;
            let part = &parts[place % PARTS];
            let done = self.shared.with(part, |part| waiting.pour(part, keyless));
            waiting.clear();
            done.map_err(|error| self.counted(error))?;
        }
        Ok(())
    }

    /// How many groups there are, of this thread and of the parts.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.own.len() + self.shared.groups.load(Ordering::Relaxed)
    }

    /// The memory that the thread's own states take.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.own.memory() + self.waiting.iter().map(Waiting::memory).sum::<usize>()
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
        let readers = self.shared.readers.load(Ordering::Relaxed);
        self.pour(start, |waiting| waiting.is_full(readers))?;
        if !one || self.parts.is_none() || !keys.columns[0].wide.0.is_empty() {
            return self.own.number(keys, rows, start, &mut self.numbered);
        }
        self.own.groups.check_keys(keys)?;
        self.parted = Some(self.parted(keys, rows, start)?);
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

    /// Lets the keys of rows wait for their parts.
    fn parted(&mut self, keys: &Keys<'_>, rows: Range<usize>, start: u64) -> Result<Parted> {
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
        let tracks = self.own.question.tracks();
        self.waiting.resize_with(PARTS + 1, Waiting::default);
        for (place, waiting) in self.waiting.iter_mut().enumerate() {
            let order = &order[starts[place]..starts[place + 1]];
            let rows = || order.iter().map(|&row| row as usize);
            waiting.count += order.len();
            if tracks {
                waiting.positions.extend(rows().map(|row| start + row as u64));
            }
            if place == PARTS {
                continue;
            }
            if texts.is_empty() {
                waiting.words.extend(rows().map(|row| words[row]));
                continue;
            }
            for (at, text) in rows().filter_map(|row| *texts.get(row)?).enumerate() {
                // The texts of a part are far from each other.
                if let Some(Some(later)) =
                    order.get(at + AHEAD).and_then(|&row| texts.get(row as usize))
                {
                    prefetch::near(later.as_ptr());
                }
                waiting.bytes.extend_from_slice(text);
                waiting.ends.push(waiting.bytes.len());
            }
        }
        self.own.see_rows(of.len(), of.len() - order.len());
        Ok(Parted { start, starts, rows: order })
    }

    /// Takes in the values of rows that were numbered.
    ///
    /// # Panics
    /// If there are not as many values as rows, but for the gaps.
    pub fn absorb_values(&mut self, column: usize, values: GroupValues<'_>) {
        let Some(Parted { start, starts, rows }) = &self.parted else {
            return self.own.absorb_values(column, values, &mut self.numbered);
        };
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
        for (waiting, range) in self.waiting.iter_mut().zip(starts.windows(2)) {
            let rows = &rows[range[0]..range[1]];
            // Those that came before.
            let first = waiting.count - rows.len();
            waiting.columns.resize(self.own.values.len(), WaitingValues::default());
            let WaitingValues { which, count, elements, .. } = &mut waiting.columns[column];
            let taken = rows.iter().filter(|&&row| place(row).is_some()).count();
            if which.is_some() || taken < rows.len() || *count < first {
                let which = which.get_or_insert_with(|| (0..*count as u32).collect());
                let there =
                    rows.iter().zip(first as u32..).filter(|(row, _)| place(**row).is_some());
                which.extend(there.map(|(_, at)| at));
                missing += (rows.len() - taken) as u64;
            }
            for (items, elements) in [values.items, values.others].into_iter().zip(elements) {
                if !items.is_empty() {
                    let places =
                        rows.iter().filter_map(|&row| place(row)).map(|place| place as usize);
                    let end = *count + taken;
                    elements.resize((end * size).div_ceil(8), 0);
                    let to: &mut [u8] = bytemuck::cast_slice_mut(elements);
                    pick(items, size, places, &mut to[*count * size..end * size]);
                }
            }
            *count += taken;
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
                let waiting = &mut self.waiting[part];
                let at = waiting.count - (starts[part + 1] - place);
                waiting.columns[column].wide.push((at as u32, decimal, start + row));
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

    /// Decimals beyond 64 bits come beside the others, in rows that these leave out.
    #[test]
    fn wide_decimals_of_many_groups_are_those_of_few() {
        let keys: Vec<i64> = (0..ROWS as u64).map(|row| (hash(row) % 1500) as i64).collect();
        let question = Reduction::new([Op::Sum, Op::Min, Op::ArgMax]);
        let none = question.by(&keys[..0]).empty(&[(String::new(), warpfold_core::DType::I64)]);
        let mut empty = none.unwrap();
        empty.count_values(0, crate::Unit::Decimal(2));
        let taken = |rows: Range<usize>, block: usize, shared: &SharedGroups| {
            let mut reader = shared.reader().unwrap();
            for from in rows.clone().step_by(block) {
                let rows = from..rows.end.min(from + block);
                let keys = Keys::from(&keys[rows.clone()]);
                reader.number(&keys, 0..rows.len(), from as u64).unwrap();
                let (mut items, mut gaps, mut wide) = (Vec::new(), Vec::new(), Vec::new());
                for (at, row) in rows.enumerate() {
                    match row % 5 {
                        0 => gaps.push((at as u64, 1)),
                        1 => {
                            gaps.push((at as u64, 1));
                            wide.push((at as u64, (row as i128 - 2000) << 70));
                        }
                        _ => items.push(hash(row as u64) as i64 >> 8),
                    }
                }
                let items = bytemuck::cast_slice(&items);
                let values = GroupValues { items, others: &[], gaps: &gaps, wide: &wide };
                reader.absorb_values(0, values);
            }
            reader.into_own().unwrap()
        };
        let shared = SharedGroups::new(empty.clone());
        let own = taken(0..ROWS, BLOCK, &shared);
        let found = shared.finish(vec![own]).unwrap();
        let mut expected = empty.clone();
        for from in (0..ROWS).step_by(MANY / 2) {
            let shared = SharedGroups::new(empty.clone());
            let own = taken(from..ROWS.min(from + MANY / 2), MANY / 2, &shared);
            expected.merge(&shared.finish(vec![own]).unwrap()).unwrap();
        }
        assert!(found == expected && found.len() > 1000);
        assert_eq!(found.missing(), expected.missing());
        assert_eq!(found.missing(), ROWS as u64 / 5);
    }

    /// Of a column that is read as integers and as floats, blocks with a point have no integers.
    #[test]
    fn columns_of_many_groups_may_lack_whole_blocks() {
        let keys: Vec<i64> = (0..ROWS as u64).map(|row| (hash(row) % 1500) as i64).collect();
        let question = Reduction::new([Op::Sum, Op::Max, Op::ArgMin, Op::Count]);
        let types = [warpfold_core::DType::I64, warpfold_core::DType::F64];
        let empty = question.by(&keys[..0]).empty(&types.map(|dtype| (dtype.to_string(), dtype)));
        let empty = empty.unwrap();
        let taken = |rows: Range<usize>, shared: &SharedGroups| {
            let mut reader = shared.reader().unwrap();
            for from in rows.clone().step_by(BLOCK) {
                let rows = from..rows.end.min(from + BLOCK);
                let keys = Keys::from(&keys[rows.clone()]);
                reader.number(&keys, 0..rows.len(), from as u64).unwrap();
                let whole: Vec<i64> =
                    rows.clone().map(|row| hash(row as u64) as i64 >> 8).collect();
                let floats: Vec<f64> = whole.iter().map(|&x| x as f64).collect();
                let values = |items| GroupValues { items, others: &[], gaps: &[], wide: &[] };
                // None at first, then some, and none in the end.
                if [1, 2, 4].contains(&(from / BLOCK % 7)) {
                    reader.absorb_values(0, values(bytemuck::cast_slice(&whole)));
                }
                reader.absorb_values(1, values(bytemuck::cast_slice(&floats)));
            }
            reader.into_own().unwrap()
        };
        let shared = SharedGroups::new(empty.clone());
        let own = taken(0..ROWS, &shared);
        let found = shared.finish(vec![own]).unwrap();
        let mut expected = empty.clone();
        for from in (0..ROWS).step_by(BLOCK) {
            let shared = SharedGroups::new(empty.clone());
            let own = taken(from..ROWS.min(from + BLOCK), &shared);
            expected.merge(&shared.finish(vec![own]).unwrap()).unwrap();
        }
        assert!(found == expected && found.len() > 1000);
    }
}
