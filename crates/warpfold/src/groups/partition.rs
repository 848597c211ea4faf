//! Many groups in memory: rows are parted by the hashes of their keys, so that the
//! groups of a part stay in a cache.
//!
//! Threads share the rows, and write each to its part; then they share the parts. A
//! part's groups are in no other, so that nothing is merged: answers are put in the order
//! of the keys at the end.

use super::answer::{GroupColumn, Grouped, KeyValues};
use super::column::Column;
use super::dictionary::{order, read_words, shown};
use super::partial::Question;
use super::sorting::by_words;
use crate::answer;
use crate::cancel::Until;
use crate::unit::Unit;
use core::ops::Range;
use warpfold_core::op::{Numbers, Rules};
use warpfold_core::{DType, Element, Error, Result, Scalar, with_element};
use warpfold_cpu::groups::{Finished, Numbering, Positions, Rows, hash, new_table};
use warpfold_threads::{Pieces, Threads};

/// Fewer rows are reduced as they are.
const LEAST: usize = 1 << 18;
/// Rows that are looked at, and how many keys among them are many.
const SAMPLE: usize = 1 << 14;
const MANY: usize = SAMPLE / 8 * 7;
/// Rows of a part, about, and the most parts.
const PART: usize = 1 << 14;
const MOST_PARTS: usize = 1 << 10;
/// Rows that a thread takes at once.
const PIECE: usize = 1 << 16;

/// A column of keys and one of values, or two, without gaps.
pub(super) struct Parted<'a> {
    pub(super) keys: Column<'a>,
    /// What they count.
    pub(super) unit: Option<&'a Unit>,
    pub(super) values: &'a [Column<'a>],
    pub(super) question: &'a Question,
    pub(super) rules: &'a Rules,
    pub(super) threads: Threads,
    pub(super) until: &'a Until,
}

/// Some rows, those of each part together.
struct Sorted {
    /// Where each part begins, and where the last ends.
    starts: Vec<u32>,
    words: Vec<u64>,
    /// The bits of the elements of each column.
    items: [Vec<u64>; 2],
    /// The rows' places, if these matter.
    rows: Vec<u64>,
}

/// The answers of a part, in the order of its keys.
struct Answered {
    words: Vec<u64>,
    columns: Vec<Finished>,
}

impl Parted<'_> {
    /// The answers; `None` if there are not as many groups, or rows, that it is worth it.
    pub(super) fn run(&self) -> Result<Option<Grouped>> {
        let rows = self.keys.rows();
        if rows < LEAST || !self.has_many()? {
            return Ok(None);
        }
        let parts = (rows / PART).next_power_of_two().clamp(64, MOST_PARTS);
        let scattered = self.scatter(rows, parts);
        self.until.check()?;
        let answered = self.answer(&scattered, parts);
        self.until.check()?;
        match answered {
            Ok(answered) => self.gather(answered).map(Some),
            // Of several such groups the first is told, by the way that knows which.
            Err(Error::InGroup { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether rows all over the column have many keys.
    fn has_many(&self) -> Result<bool> {
        let (mut seen, mut words) = (Numbering::new(), Vec::new());
        let step = (self.keys.rows() / SAMPLE).max(1);
        for row in (0..self.keys.rows()).step_by(step) {
            words.clear();
            read_words(&self.keys, row..row + 1, &mut words);
            for &word in &words {
                seen.number(word)?;
            }
        }
        Ok(seen.len() >= MANY)
    }

    /// Sorts rows by their parts, piece by piece: what is written to stays in a cache.
    fn scatter(&self, rows: usize, parts: usize) -> Vec<Sorted> {
        let pieces = Pieces::new(rows.div_ceil(PIECE));
        let sorted = self.threads.run(pieces.count(), || {
            let mut sorted = Vec::new();
            let (mut words, mut places, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
            while let Some(piece) = self.until.take(&pieces) {
                let from = piece * PIECE;
                let rows = from..rows.min(from + PIECE);
                words.clear();
                read_words(&self.keys, rows.clone(), &mut words);
                sorted.push(self.sort(rows, parts, &words, &mut places, &mut buffer));
            }
            sorted
        });
        sorted.into_iter().flatten().collect()
    }

    fn sort(
        &self,
        rows: Range<usize>,
        parts: usize,
        words: &[u64],
        places: &mut Vec<u32>,
        buffer: &mut Vec<u64>,
    ) -> Sorted {
        // The lower bits number the keys within the part.
        let shift = 64 - parts.ilog2();
        let mut starts = vec![0u32; parts + 1];
        places.clear();
        places.extend(words.iter().map(|&word| (hash(word) >> shift) as u32));
        places.iter().for_each(|&part| starts[part as usize + 1] += 1);
        for part in 0..parts {
            starts[part + 1] += starts[part];
        }
        // From parts to places.
        let mut next = starts.clone();
        for place in places.iter_mut() {
            let next = &mut next[*place as usize];
            *place = *next;
            *next += 1;
        }
        let placed = |from: &mut dyn Iterator<Item = u64>| {
            let mut to = vec![0u64; places.len()];
            for (&place, word) in places.iter().zip(from) {
                to[place as usize] = word;
            }
            to
        };
        let mut items = [Vec::new(), Vec::new()];
        for (to, column) in items.iter_mut().zip(self.values) {
            *to = with_element!(column.dtype(), T => {
                let mut to = vec![0u64; places.len()];
                let items = column.typed::<T>(rows.clone(), buffer);
                for (&place, &x) in places.iter().zip(items) {
                    to[place as usize] = Element::bits(x);
                }
                to
            });
        }
        let positions = self.question.kinds.iter().any(|kind| kind.has_positions());
        let rows = if positions { placed(&mut rows.map(|row| row as u64)) } else { Vec::new() };
        Sorted { words: placed(&mut words.iter().copied()), starts, items, rows }
    }

    /// Reduces part after part.
    fn answer(&self, sorted: &[Sorted], parts: usize) -> Result<Vec<Answered>> {
        let pieces = Pieces::new(parts);
        let answered = self.threads.run(parts, || -> Result<Vec<Answered>> {
            let mut answered = Vec::new();
            while let Some(part) = self.until.take(&pieces) {
                answered.push(self.answer_part(sorted, part)?);
            }
            Ok(answered)
        });
        let answered: Result<Vec<Vec<Answered>>> = answered.into_iter().collect();
        Ok(answered?.into_iter().flatten().collect())
    }

    fn answer_part(&self, sorted: &[Sorted], part: usize) -> Result<Answered> {
        let dtype = self.values[0].dtype();
        let mut numbering = Numbering::new();
        let kinds = &self.question.kinds;
        let mut tables =
            kinds.iter().map(|&kind| new_table(kind, dtype)).collect::<Result<Vec<_>>>()?;
        let (mut groups, mut memory) = (Vec::new(), [Vec::new(), Vec::new()]);
        for piece in sorted {
            let rows = piece.starts[part] as usize..piece.starts[part + 1] as usize;
            groups.clear();
            for &word in &piece.words[rows.clone()] {
                groups.push(numbering.number(word)?);
            }
            for table in &mut tables {
                table.grow(numbering.len())?;
            }
            let [left, right] = &mut memory;
            // Of the second column there is nothing where there is none.
            let of = |bits: &[u64]| bits.get(rows.clone()).map_or(0..0, |_| rows.clone());
            let [items, others] = &piece.items;
            let rows = Rows {
                groups: &groups,
                items: narrowed(dtype, &items[of(items)], left),
                others: narrowed(dtype, &others[of(others)], right),
                positions: Positions::At(&piece.rows[of(&piece.rows)]),
            };
            tables.iter_mut().for_each(|table| table.absorb(rows));
        }
        let mut ordered: Vec<(u64, u32)> = with_element!(self.keys.dtype(), T => {
            numbering.words().iter().map(|&word| order::<T>(word)).zip(0..).collect()
        });
        ordered.sort_unstable();
        let groups: Vec<u32> = ordered.iter().map(|&(_, group)| group).collect();
        let words = groups.iter().map(|&group| numbering.words()[group as usize]).collect();
        let finish = |&(op, place): &(warpfold_core::Op, usize)| {
            let finished = tables[place].finish(op, self.rules, &groups, 0);
            finished.map_err(|(at, source)| Error::InGroup {
                group: self.show(numbering.words()[groups[at] as usize]),
                source: Box::new(source),
            })
        };
        let columns = self.question.ops.iter().map(finish).collect::<Result<_>>()?;
        Ok(Answered { words, columns })
    }

    fn show(&self, word: u64) -> String {
        shown(Scalar::from_bits(self.keys.dtype(), word), self.unit)
    }

    /// Puts the answers of all parts in the order of their keys.
    fn gather(&self, parts: Vec<Answered>) -> Result<Grouped> {
        let dtype = self.keys.dtype();
        let count: usize = parts.iter().map(|part| part.words.len()).sum();
        if u32::try_from(count).is_err() {
            let bytes = count.saturating_mul(8);
            let (groups, rows) = (count, self.keys.rows() as u64);
            return Err(Error::TooManyGroups { groups, rows, bytes, limit: u32::MAX as usize });
        }
        // Where the groups come from, counted over all parts, in the order of their keys.
        let words: Vec<u64> = parts.iter().flat_map(|part| part.words.iter().copied()).collect();
        let pairs = with_element!(dtype, T => {
            words.iter().map(|&word| order::<T>(word)).zip(0..).collect()
        });
        let places = by_words(pairs, self.threads);
        let mut keys = Numbers::zeros(dtype, count);
        let bytes = keys.bytes_mut();
        for (to, &from) in places.iter().enumerate() {
            Numbers::set_bits(bytes, dtype, to, words[from as usize]);
        }
        drop(words);
        let (mut offsets, mut offset) = (Vec::new(), 0);
        for part in &parts {
            offsets.push(offset);
            offset += part.words.len();
        }
        let mut columns = Vec::new();
        let mut all: Vec<_> = parts.into_iter().map(|part| part.columns.into_iter()).collect();
        for &(op, _) in &self.question.ops {
            let parts: Vec<Finished> = all.iter_mut().filter_map(Iterator::next).collect();
            let mut missing =
                vec![false; if parts.iter().any(|p| !p.missing.is_empty()) { count } else { 0 }];
            for (part, &offset) in parts.iter().zip(&offsets) {
                part.missing.iter().for_each(|&at| missing[offset + at] = true);
            }
            let gathered = |pick: &dyn Fn(&Finished) -> Option<&Numbers>| -> Result<_> {
                let mut joined: Option<Numbers> = None;
                for numbers in parts.iter().filter_map(pick) {
                    match &mut joined {
                        None => joined = Some(numbers.clone()),
                        Some(joined) => joined.append(numbers)?,
                    }
                }
                Ok(joined.map(|joined| permuted(&joined, &places)))
            };
            let out = self.rules.out.unwrap_or(op.answer_type(self.values[0].dtype()));
            let none = || Numbers::zeros(out, 0);
            let numbers = gathered(&|f| f.first.as_ref())?.unwrap_or_else(none);
            let second = match answer::halves(op).len() {
                1 => None,
                _ => Some(gathered(&|f| f.second.as_ref())?.unwrap_or_else(none)),
            };
            let missing = (0..if missing.is_empty() { 0 } else { count })
                .filter(|&to| missing[places[to] as usize])
                .collect();
            let column = answer::Column { op, numbers, second };
            columns.push(GroupColumn { column, missing });
        }
        let keys = vec![KeyValues::of_numbers(keys, self.unit.cloned(), Vec::new())];
        Ok(Grouped { keys, columns, groups: count })
    }
}

/// The elements of so many bits, one after the other.
fn narrowed<'a>(dtype: DType, bits: &'a [u64], memory: &'a mut Vec<u64>) -> &'a [u8] {
    let size = dtype.size();
    if size == 8 {
        return bytemuck::cast_slice(bits);
    }
    memory.clear();
    memory.resize((bits.len() * size).div_ceil(8), 0);
    let to: &mut [u8] = &mut bytemuck::cast_slice_mut(memory)[..bits.len() * size];
    for (place, &bits) in bits.iter().enumerate() {
        Numbers::set_bits(to, dtype, place, bits);
    }
    to
}

/// The numbers at these places.
fn permuted(numbers: &Numbers, places: &[u32]) -> Numbers {
    let mut out = Numbers::zeros(numbers.dtype(), places.len());
    with_element!(numbers.dtype(), T => {
        let from: &[T] = if places.is_empty() { &[] } else { bytemuck::cast_slice(numbers.bytes()) };
        if let Some(to) = out.as_mut_slice::<T>() {
            for (to, &place) in to.iter_mut().zip(places) {
                *to = from[place as usize];
            }
        }
    });
    out
}
