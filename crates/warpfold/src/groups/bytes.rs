//! The byte form of partials of groups.
//!
//! ```text
//!  WFgroups  version  head                                  groups            CRC-32
//!  u8*8      u32=1..3 question, columns, rows, positions    keys and states   u32, of all before
//! ```
//!
//! Version 2 has units: what the keys of each column count, and the values of each, follows
//! the column's name. Where nothing counts anything the version is 1. Version 3 has decimals
//! beyond 64 bits: keys, of 16 bytes, and values. Behind the states of each column of values of a
//! group a byte says whether the group has such, and the states of these follow.
//!
//! Numbers in the head and in the groups have seven bits a byte, the lowest first. Groups
//! follow in the order of their keys, so that partials of the same rows have the same
//! bytes. Readers trust no length: memory grows with the bytes that are there.

use super::by::Order;
use super::dictionary::Dictionary;
use super::keys::KeyType;
use super::partial::{GroupPartial, Question};
use crate::reduction::Reduction;
use crate::unit::Unit;
use warpfold_core::op::State;
use warpfold_core::op::wide::Wide;
use warpfold_core::{DType, Error, Op, Result};
use warpfold_cpu::groups::words::{self, damaged};
use warpfold_threads::Threads;

const MAGIC: [u8; 8] = *b"WFgroups";
/// The version without units, and the one with them.
const PLAIN: u32 = 1;
const COUNTED: u32 = 2;
/// The one with decimals beyond 64 bits, too.
const WIDE: u32 = 3;
const HEADER: usize = 12;
const TRAILER: usize = 4;

/// The code of texts among those of element types.
const TEXT: u8 = 0;

impl GroupPartial {
    /// Whether bytes begin as those of a partial of groups do.
    #[doc(hidden)]
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// The versioned, checksummed byte form. Partials of the same rows have the same.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let units = self.groups.columns().iter().map(Dictionary::unit);
        let mut units = units.chain(self.values.iter().map(|values| values.unit.as_ref()));
        let is_wide = self.values.iter().any(|values| !values.wide.is_empty()) || self.is_wide();
        let version = match units.any(|unit| unit.is_some()) {
            _ if is_wide => WIDE,
            true => COUNTED,
            false => PLAIN,
        };
        out.extend(version.to_le_bytes());
        self.write_head(version, &mut out);
        self.write_groups(version, &mut out);
        let checksum = crc32fast::hash(&out);
        out.extend(checksum.to_le_bytes());
        out
    }

    fn write_head(&self, version: u32, out: &mut Vec<u8>) {
        let write_unit = |unit: Option<&Unit>, out: &mut Vec<u8>| {
            if version != PLAIN {
                Unit::write(unit, out);
            }
        };
        out.push(match self.question.order {
            Order::Key => 0,
            Order::FirstOccurrence => 1,
        });
        out.push(u8::from(self.question.omit));
        words::write(out, self.groups.dense().map_or(0, |groups| groups as u64 + 1));
        words::write(out, self.question.ops.len() as u64);
        out.extend(self.ops().map(Op::code));
        let columns = self.groups.columns();
        words::write(out, columns.len() as u64);
        for (column, name) in columns.iter().zip(&self.key_names) {
            out.push(match column.key_type() {
                KeyType::Number(dtype) => dtype.code(),
                KeyType::Text => TEXT,
            });
            write_text(out, name.as_bytes());
            write_unit(column.unit(), out);
        }
        words::write(out, self.values.len() as u64);
        for values in &self.values {
            out.push(values.dtype.code());
            write_text(out, values.name.as_bytes());
            write_unit(values.unit.as_ref(), out);
            words::write(out, values.missing);
        }
        words::write(out, self.rows);
        words::write(out, self.omitted);
        words::write(out, self.spans.ranges().count() as u64);
        for (start, end) in self.spans.ranges() {
            words::write(out, start);
            words::write(out, end - start);
        }
    }

    fn write_groups(&self, version: u32, out: &mut Vec<u8>) {
        words::write(out, self.groups.len() as u64);
        for group in self.groups.sorted(Threads::Exactly(1)) {
            for (column, code) in self.groups.columns().iter().zip(self.groups.codes(group)) {
                match (column.word(code), column.text(code)) {
                    _ if column.is_missing(code) => out.push(0),
                    (Some(word), _) => {
                        out.push(1);
                        words::write(out, word);
                    }
                    (_, text) => {
                        out.push(if column.is_wide() { 2 } else { 1 });
                        write_text(out, text.unwrap_or_default());
                    }
                }
            }
            if let Some(&first) = self.first.get(group as usize) {
                words::write(out, first);
            }
            for values in &self.values {
                values.tables.iter().for_each(|table| table.write(group, out));
                if version == WIDE {
                    let wide = values.wide.get(&group);
                    out.push(u8::from(wide.is_some()));
                    for state in wide.into_iter().flatten() {
                        let mut payload = Vec::new();
                        state.write(&mut payload);
                        words::write(out, payload.len() as u64);
                        out.extend(payload);
                    }
                }
            }
        }
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Error::DamagedState`] for anything else, [`Error::StateVersion`] for another
    /// version.
    pub fn from_bytes(bytes: &[u8]) -> Result<GroupPartial> {
        let ends = || damaged("it ends within its header");
        if bytes.get(..8).ok_or_else(ends)? != MAGIC {
            return Err(damaged("bad magic number"));
        }
        let version = bytes[8..].first_chunk().ok_or_else(ends)?;
        let found = u32::from_le_bytes(*version);
        if ![PLAIN, COUNTED, WIDE].contains(&found) {
            return Err(Error::StateVersion { found, reads: WIDE });
        }
        let (body, checksum) = bytes[HEADER..].split_last_chunk::<TRAILER>().ok_or_else(ends)?;
        if u32::from_le_bytes(*checksum) != crc32fast::hash(&bytes[..HEADER + body.len()]) {
            return Err(damaged("its checksum is wrong"));
        }
        let mut rest = body;
        let mut partial = read_head(found, &mut rest)?;
        partial.read_groups(found, &mut rest)?;
        if rest.is_empty() { Ok(partial) } else { Err(damaged("bytes follow its groups")) }
    }

    fn read_groups(&mut self, version: u32, rest: &mut &[u8]) -> Result<()> {
        let count = words::read(rest)?;
        let dense = self.groups.dense();
        if dense.is_some_and(|dense| dense as u64 != count) {
            return Err(damaged("dense groups are missing"));
        }
        for expected in 0..count {
            let group = self.groups.insert(|column| read_key(version, column, rest))?;
            // In the order of their keys dense groups come as they are numbered.
            if u64::from(group) != expected {
                return Err(damaged("a key comes twice"));
            }
            self.grow()?;
            if let Some(first) = self.first.get_mut(group as usize) {
                *first = words::read(rest)?;
                let held = *first == u64::MAX || self.spans.contains(*first);
                if !held {
                    return Err(damaged("a group begins with a row that is not held"));
                }
            }
            for values in &mut self.values {
                for table in &mut values.tables {
                    table.read(group, rest)?;
                }
                if version == WIDE && read_byte(rest)? != 0 {
                    if !values.unit.as_ref().is_some_and(Unit::is_number) {
                        return Err(damaged("decimals among what are none"));
                    }
                    let mut states = Vec::new();
                    for table in &values.tables {
                        let len = words::read(rest)?;
                        states.push(Wide::read(table.kind(), words::take(rest, len)?)?);
                    }
                    values.wide.insert(group, states);
                }
            }
        }
        Ok(())
    }
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    words::write(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn read_text(rest: &mut &[u8]) -> Result<String> {
    let len = words::read(rest)?;
    let text = words::take(rest, len)?;
    String::from_utf8(text.to_vec()).map_err(|_| damaged("a column's name is not UTF-8"))
}

fn read_byte(rest: &mut &[u8]) -> Result<u8> {
    Ok(words::take(rest, 1)?[0])
}

fn read_dtype(code: u8) -> Result<DType> {
    DType::from_code(code).ok_or_else(|| damaged("an element type is unknown"))
}

fn read_key(version: u32, column: &mut Dictionary, rest: &mut &[u8]) -> Result<u32> {
    let code = match (read_byte(rest)?, column.key_type()) {
        (0, _) => Some(column.missing()?),
        (1, KeyType::Number(_)) => column.insert_word(words::read(rest)?)?,
        (1, KeyType::Text) => {
            let len = words::read(rest)?;
            column.insert_text(words::take(rest, len)?)?
        }
        (2, KeyType::Number(_)) if version == WIDE => {
            let len = words::read(rest)?;
            column.insert_wide(words::take(rest, len)?)?
        }
        _ => None,
    };
    code.ok_or_else(|| damaged("a key is none of its type"))
}

/// What the integers of a column of type `dtype` count.
fn read_unit(version: u32, dtype: Option<DType>, rest: &mut &[u8]) -> Result<Option<Unit>> {
    let unit = if version == PLAIN { None } else { Unit::read(rest)? };
    match dtype {
        Some(DType::I32 | DType::I64) => Ok(unit),
        _ if unit.is_none() => Ok(None),
        _ => Err(damaged("a unit of what are no such integers")),
    }
}

/// What precedes the groups, as a partial without any but dense ones.
fn read_head(version: u32, rest: &mut &[u8]) -> Result<GroupPartial> {
    let order = match read_byte(rest)? {
        0 => Order::Key,
        1 => Order::FirstOccurrence,
        _ => return Err(damaged("its order is unknown")),
    };
    let omit = match read_byte(rest)? {
        0 => false,
        1 => true,
        _ => return Err(damaged("what it does with missing keys is unknown")),
    };
    let dense = words::read(rest)?.checked_sub(1);
    let count = words::read(rest)?;
    let codes = words::take(rest, count)?;
    let ops = codes.iter().map(|&code| Op::from_code(code));
    let ops = ops.collect::<Option<Vec<Op>>>().filter(|ops| !ops.is_empty());
    let ops = ops.ok_or_else(|| damaged("an operation is unknown"))?;
    let (mut types, mut key_names, mut key_units) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..words::read(rest)? {
        let dtype = match read_byte(rest)? {
            TEXT => None,
            code => Some(read_dtype(code)?),
        };
        types.push(dtype.map_or(KeyType::Text, KeyType::Number));
        key_names.push(read_text(rest)?);
        key_units.push(read_unit(version, dtype, rest)?);
    }
    if types.is_empty() {
        return Err(damaged("it has no keys"));
    }
    let (mut values, mut missing, mut units) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..words::read(rest)? {
        let dtype = read_dtype(read_byte(rest)?)?;
        values.push((read_text(rest)?, dtype));
        units.push(read_unit(version, Some(dtype), rest)?);
        missing.push(words::read(rest)?);
    }
    let reduction = Reduction::new(ops);
    let arrays = reduction.ops()[0].arity();
    for (_, dtype) in &values {
        reduction
            .check(*dtype, arrays)
            .map_err(|_| damaged("its operations do not fit its types"))?;
    }
    let (kinds, ops) = reduction.kinds();
    // A group takes a byte for its key at least.
    let dense = match dense {
        Some(groups) if groups > rest.len() as u64 => {
            return Err(damaged("dense groups are missing"));
        }
        dense => dense.map(|groups| groups as usize),
    };
    let question = Question { ops, kinds, order, omit };
    let mut partial = GroupPartial::new(question, &types, dense, &values)
        .map_err(|_| damaged("its keys contradict each other"))?;
    partial.key_names = key_names;
    partial.groups.set_units(key_units);
    partial.values.iter_mut().zip(units).for_each(|(values, unit)| values.unit = unit);
    partial.values.iter_mut().zip(missing).for_each(|(values, missing)| values.missing = missing);
    partial.rows = words::read(rest)?;
    partial.omitted = words::read(rest)?;
    let mut next = 0;
    for _ in 0..words::read(rest)? {
        let (start, len) = (words::read(rest)?, words::read(rest)?);
        let end = start.checked_add(len).filter(|_| len > 0 && start >= next);
        next = end.ok_or_else(|| damaged("its ranges of positions are out of order"))?;
        partial.spans.insert(start, len);
    }
    Ok(partial)
}
