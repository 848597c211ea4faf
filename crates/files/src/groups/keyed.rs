//! Tables that were opened for their keys and their values.

use super::joined::Kind;
use crate::cast::Cast;
use crate::share::Turn;
use crate::table::{ReadTable, TableBlock, TableBlocks, Typing};
use crate::{Access, Batch, Block, Blocks, Error, Extent, ReadAt, Result, Source};
use core::ops::Range;
use std::sync::Arc;
use warpfold_core::DType;

/// Columns of keys and of values with as many rows, found but not yet read.
pub struct Keyed {
    pub(super) name: String,
    keys: Vec<(String, Kind)>,
    values: Vec<(String, Kind)>,
    /// What becomes of each column, keys first, where tables are joined.
    pub(super) casts: Arc<[Option<Cast>]>,
    reader: Reader,
    /// Which blocks are read.
    turn: Turn,
    /// For progress, where it is known.
    pub(super) bytes: Option<u64>,
}

impl core::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let names = |columns: &[(String, Kind)]| {
            columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        f.debug_struct("Keyed")
            .field("name", &self.name)
            .field("keys", &names(&self.keys))
            .field("values", &names(&self.values))
            .finish_non_exhaustive()
    }
}

/// How the columns are read: keys first.
enum Reader {
    #[cfg_attr(not(feature = "text"), expect(dead_code, reason = "text alone is such a table"))]
    Table(Box<dyn ReadTable>, Vec<(usize, Typing)>),
    /// Blocks of the same rows.
    Blocks(Vec<Box<dyn Blocks>>),
    /// These rows of arrays.
    Random(Arc<Vec<(Box<dyn ReadAt>, DType)>>, Range<u64>),
}

impl Keyed {
    /// Whether the columns are cells of text, whose keys are as they are written.
    pub(super) fn is_of_cells(&self) -> bool {
        matches!(self.reader, Reader::Table(..))
    }

    /// The columns of a table.
    #[cfg(feature = "text")]
    pub(crate) fn of_table(
        name: String,
        keys: Vec<(String, Typing)>,
        values: Vec<(String, Typing)>,
        table: Box<dyn ReadTable>,
        columns: Vec<(usize, Typing)>,
    ) -> Keyed {
        let bytes = table.bytes();
        let plain = |columns: Vec<(String, Typing)>| {
            columns.into_iter().map(|(name, typing)| (name, Kind::plain(typing))).collect()
        };
        let (keys, values) = (plain(keys), plain(values));
        let (casts, reader) = (Arc::default(), Reader::Table(table, columns));
        Keyed { name, keys, values, casts, reader, turn: Turn::ALL, bytes }
    }

    /// Columns whose blocks are of the same rows.
    #[cfg(any(feature = "parquet", feature = "arrow"))]
    pub(crate) fn of_blocks(
        name: String,
        keys: Vec<(String, Kind)>,
        values: Vec<(String, Kind)>,
        blocks: Vec<Box<dyn Blocks>>,
        bytes: Option<u64>,
    ) -> Keyed {
        let (casts, reader) = (Arc::default(), Reader::Blocks(blocks));
        Keyed { name, keys, values, casts, reader, turn: Turn::ALL, bytes }
    }

    /// Arrays of numbers.
    ///
    /// # Errors
    /// Arrays of several axes or of different lengths, or that are read in different
    /// ways.
    pub(crate) fn of_sources(
        name: String,
        keys: Vec<Source>,
        values: Vec<Source>,
    ) -> Result<Keyed> {
        let own = |source: &Source| {
            let own = source.name.strip_prefix(&*name).and_then(|rest| rest.strip_prefix(':'));
            let kind = Kind { typing: Typing::Fixed(source.dtype), unit: source.unit() };
            (own.unwrap_or(&source.name).to_string(), kind)
        };
        let labels = |sources: &[Source]| sources.iter().map(own).collect::<Vec<_>>();
        let (key_columns, value_columns) = (labels(&keys), labels(&values));
        let mut bytes = Some(0u64);
        let (mut rows, mut random, mut blocks) = (None, Vec::new(), Vec::new());
        for source in keys.into_iter().chain(values) {
            let own = match &source.extent {
                Extent::Array { shape, .. } if shape.len() == 1 => Some(shape[0] as u64),
                Extent::Array { shape, .. } => {
                    let what = format!("an array of shape {shape:?} is no column");
                    return Err(Error::format(source.name, what)
                        .with_hint("keys and values are arrays of one axis"));
                }
                Extent::Column { rows } => *rows,
            };
            if let (Some(own), Some(rows)) = (own, rows.or(own))
                && own != rows
            {
                let what = format!("it has {own} rows, but the first column of keys has {rows}");
                return Err(Error::format(source.name, what));
            }
            rows = rows.or(own);
            bytes = bytes.zip(source.bytes).map(|(all, more)| all + more);
            match source.access {
                Access::Random(random_access) => random.push((random_access, source.dtype)),
                Access::Sequential(sequence) => blocks.push(sequence),
                Access::Column(column) => blocks.push(column.blocks(source.dtype)?),
            }
        }
        let reader = match (random.is_empty(), blocks.is_empty(), rows) {
            (false, true, Some(rows)) => Reader::Random(Arc::new(random), 0..rows),
            (true, false, _) => Reader::Blocks(blocks),
            _ => {
                return Err(Error::format(&name, "its columns are stored in different ways")
                    .with_hint("write keys and values with the same compression"));
            }
        };
        let casts = Arc::default();
        let (keys, values, turn) = (key_columns, value_columns, Turn::ALL);
        Ok(Keyed { name, keys, values, casts, reader, turn, bytes })
    }

    /// The number of rows, if they are at hand in any order.
    pub(crate) fn random_rows(&self) -> Option<u64> {
        match &self.reader {
            Reader::Random(_, rows) => Some(rows.end),
            _ => None,
        }
    }

    /// These rows alone, of arrays whose rows are at hand in any order.
    pub(crate) fn of_rows(mut self, own: Range<u64>) -> Keyed {
        if let Reader::Random(_, rows) = &mut self.reader {
            *rows = own;
        }
        self
    }

    /// These blocks alone, of tables that are read front to back.
    pub(crate) fn of_turn(self, turn: Turn) -> Keyed {
        let reader = match self.reader {
            // Its rows are not cut where other tables have blocks.
            Reader::Random(arrays, rows) if turn.is_first() => Reader::Random(arrays, rows),
            Reader::Random(arrays, _) => Reader::Random(arrays, 0..0),
            reader => reader,
        };
        Keyed { reader, turn, ..self }
    }

    /// The columns of keys, or those of values.
    pub(super) fn columns(&self, keys: bool) -> &[(String, Kind)] {
        if keys { &self.keys } else { &self.values }
    }

    /// What the columns of values are called.
    pub fn value_names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| &**name)
    }

    /// What the columns of keys are called.
    pub fn key_names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(name, _)| &**name)
    }

    /// Begins to read.
    pub(super) fn read(self) -> Result<Units> {
        let columns = self.keys.len() + self.values.len();
        let types = self.keys.iter().chain(&self.values).map(|(_, kind)| kind.typing).collect();
        let reading = match self.reader {
            Reader::Table(table, columns) => Reading::Table(table.read(&columns)?),
            Reader::Blocks(blocks) => Reading::Blocks(blocks),
            Reader::Random(arrays, rows) => Reading::Random(arrays, rows),
        };
        let turn = self.turn;
        Ok(Units { name: self.name, columns, types, casts: self.casts, turn, reading })
    }
}

/// A table that is being read, unit by unit.
pub(super) struct Units {
    name: String,
    columns: usize,
    types: Vec<Typing>,
    casts: Arc<[Option<Cast>]>,
    turn: Turn,
    reading: Reading,
}

enum Reading {
    Table(Box<dyn TableBlocks>),
    Blocks(Vec<Box<dyn Blocks>>),
    Random(Arc<Vec<(Box<dyn ReadAt>, DType)>>, Range<u64>),
}

/// Rows of an array that are read at once.
const ROWS: u64 = 1 << 17;

impl Units {
    /// The next rows, undecoded; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Unit>> {
        let held = match &mut self.reading {
            Reading::Table(blocks) => match self.turn.take(|| blocks.next_block())? {
                Some(block) => Held::Table(block),
                None => return Ok(None),
            },
            Reading::Blocks(columns) => {
                let next = || {
                    let next = columns.iter_mut().map(|blocks| blocks.next_block());
                    let blocks: Vec<Option<Box<dyn Block>>> = next.collect::<Result<_>>()?;
                    Ok(Some(blocks).filter(|blocks| blocks.iter().any(Option::is_some)))
                };
                let Some(blocks) = self.turn.take(next)? else { return Ok(None) };
                let blocks = blocks.into_iter().collect::<Option<Vec<_>>>();
                Held::Blocks(blocks.ok_or_else(|| uneven(&self.name))?)
            }
            Reading::Random(arrays, rows) => {
                if rows.is_empty() {
                    return Ok(None);
                }
                let (from, to) = (rows.start, rows.end.min(rows.start + ROWS));
                rows.start = to;
                Held::Rows(Arc::clone(arrays), from, to)
            }
        };
        let (types, casts) = (self.types.clone(), Arc::clone(&self.casts));
        Ok(Some(Unit { name: self.name.clone(), columns: self.columns, types, casts, held }))
    }
}

fn uneven(name: &str) -> Error {
    Error::format(name, "its columns are cut into blocks of different rows")
        .with_hint("write the table again, or as Parquet or CSV")
}

/// Some rows of all columns, to be decoded on any thread.
pub(super) struct Unit {
    pub(super) name: String,
    columns: usize,
    types: Vec<Typing>,
    casts: Arc<[Option<Cast>]>,
    held: Held,
}

enum Held {
    Table(Box<dyn TableBlock>),
    Blocks(Vec<Box<dyn Block>>),
    Rows(Arc<Vec<(Box<dyn ReadAt>, DType)>>, u64, u64),
}

impl Unit {
    /// How many rows there are, if that is known before decoding.
    pub(super) fn rows(&self) -> Option<u64> {
        match &self.held {
            Held::Table(block) => block.rows(),
            Held::Blocks(blocks) => blocks[0].rows(),
            Held::Rows(_, from, to) => Some(to - from),
        }
    }

    /// Bytes of the file that it stands for.
    pub(super) fn bytes(&self) -> u64 {
        match &self.held {
            Held::Table(block) => block.bytes(),
            Held::Blocks(blocks) => blocks.iter().map(|block| block.bytes()).sum(),
            Held::Rows(arrays, from, to) => {
                arrays.iter().map(|(_, dtype)| (to - from) * dtype.size() as u64).sum()
            }
        }
    }

    /// All rows of each column.
    pub(super) fn decode(self, batch: &mut Batch) -> Result<Vec<Batch>> {
        let name = self.name;
        let too_long =
            || Error::format(&name, "the texts of a block of rows are longer than 4 GiB");
        let dtype = |typing: &Typing| match typing {
            Typing::Fixed(dtype) => *dtype,
            Typing::Open => DType::F64,
            Typing::Text => DType::U32,
        };
        let mut all: Vec<Batch> = self.types.iter().map(|t| Batch::new(dtype(t))).collect();
        let put = |all: &mut Batch, batch: &mut Batch| -> Result<()> {
            if all.rows() == 0 {
                // Evidence and negative zeros come along.
                core::mem::swap(all, batch);
            } else if !all.append(batch) {
                return Err(too_long());
            }
            Ok(())
        };
        match self.held {
            Held::Table(block) => {
                block.decode(batch, &mut |column, batch| put(&mut all[column], batch))?;
            }
            Held::Blocks(blocks) => {
                for (all, block) in all.iter_mut().zip(blocks) {
                    block.decode(batch, &mut |batch| match all.append(batch) {
                        true => Ok(()),
                        false => Err(too_long()),
                    })?;
                }
            }
            Held::Rows(arrays, from, to) => {
                for (all, (array, dtype)) in all.iter_mut().zip(arrays.iter()) {
                    let len = (to - from) as usize * dtype.size();
                    array.read_at(from, all.grow(len))?;
                }
            }
        }
        let rows = all.first().map_or(0, Batch::rows);
        if all.len() != self.columns || all.iter().any(|batch| batch.rows() != rows) {
            return Err(uneven(&name));
        }
        for (own, cast) in all.iter_mut().zip(self.casts.iter()) {
            if let Some(cast) = cast {
                let mut joined = Batch::new(own.dtype());
                cast.apply(own, &mut joined)?;
                *own = joined;
            }
        }
        Ok(all)
    }
}
