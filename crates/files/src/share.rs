//! What one of several readers takes of the same inputs: rows, or blocks.

use crate::chunked::Chunked;
use crate::groups::{Keyed, Question};
use crate::source::Order;
use crate::stream::Inputs;
use crate::table::{ReadTable, Table, TableBlock, TableBlocks, Typing};
use crate::{Access, Block, Blocks, Extent, ReadAt, Result, Source, TableColumn, Unit};
use core::ops::Range;
use std::sync::Arc;
use warpfold::{Axes, Op, Reduction};

/// One of several readers, each of which opens all inputs and reduces its share.
///
/// Arrays with random access are cut into rows, as equal as can be. The blocks of others, such as
/// row groups of Parquet and chunks of text, are dealt out in turn; but the first reader takes
/// all of them where positions matter, as for argmax, and of pairs of arrays or along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of this reader, from 0.
    pub rank: usize,
    /// How many readers there are, at least one.
    pub ranks: usize,
}

impl Share {
    /// The part of `total` rows.
    fn rows(self, total: u64) -> Range<u64> {
        let cut = |rank: usize| (u128::from(total) * rank as u128 / self.ranks as u128) as u64;
        cut(self.rank)..cut(self.rank + 1)
    }

    /// Whose turn it is at each block of the table with this number.
    fn turn(self, dealt: bool, table: usize) -> Turn {
        // Tables of a single block come to all readers, too.
        let (rank, ranks) = if dealt { (self.rank, self.ranks) } else { (0, 1) };
        Turn { next: table % ranks, rank, ranks, none: !dealt && self.rank > 0 }
    }

    /// The share of each of the arrays, and the index of its first element. A share may have no
    /// elements, but has the type and the axes.
    #[must_use]
    pub fn of_arrays(self, arrays: Vec<Inputs>, reduction: &Reduction) -> Vec<(Inputs, u64)> {
        // Columns of one table stay so: they are read in one pass.
        let mut tables = Vec::new();
        let share = |inputs| self.of_array(inputs, reduction, &mut tables);
        arrays.into_iter().map(share).collect()
    }

    fn of_array(
        self,
        inputs: Inputs,
        reduction: &Reduction,
        tables: &mut Vec<[Arc<Table>; 2]>,
    ) -> (Inputs, u64) {
        let Inputs { items, others } = inputs;
        let shape = match items.first().map(|source| &source.extent) {
            Some(Extent::Array { shape, .. }) => shape.clone(),
            _ => vec![0],
        };
        let full = matches!(reduction.named_axes(), Axes::All) || shape.len() == 1;
        let dealt = full && others.is_empty() && !tracks(reduction.ops());
        let in_chunks = dealt && items.iter().any(|source| chunks_of(source).is_some());
        if !in_chunks && items.iter().chain(&others).all(|source| rows_of(source).is_some()) {
            let total = items.iter().filter_map(rows_of).sum();
            let own = self.rows(total);
            // Along some axes elements of each output are counted.
            let reduced = reduction.named_axes().resolve(shape.len()).unwrap_or_default();
            let inner = shape.iter().zip(&reduced).skip(1).filter(|&(_, &reduced)| reduced);
            let inner = inner.fold(1u64, |n, (&d, _)| n.saturating_mul(d as u64));
            let start = own.start.saturating_mul(inner);
            return (Inputs { items: cut(items, &own), others: cut(others, &own) }, start);
        }
        let mut share = |sources: Vec<Source>| {
            let numbered = sources.into_iter().enumerate();
            numbered.map(|(i, source)| self.of_blocks(source, dealt, i, tables)).collect()
        };
        (Inputs { items: share(items), others: share(others) }, 0)
    }

    /// The share of a source by itself.
    fn of_blocks(
        self,
        source: Source,
        dealt: bool,
        number: usize,
        tables: &mut Vec<[Arc<Table>; 2]>,
    ) -> Source {
        let chunks = chunks_of(&source).filter(|_| dealt).map(Chunked::blocks);
        if dealt
            && chunks.is_none()
            && let Some(rows) = rows_of(&source)
        {
            return part_of(source, self.rows(rows));
        }
        let turn = self.turn(dealt, number);
        let Source { name, dtype, mut extent, bytes, access } = source;
        match &mut extent {
            Extent::Array { shape, .. } if turn.none => {
                shape.iter_mut().take(1).for_each(|n| *n = 0)
            }
            Extent::Column { rows } if turn.none => *rows = Some(0),
            Extent::Column { rows } if dealt => *rows = None,
            _ => {}
        }
        let access = match access {
            Access::Random(reader) => match chunks {
                Some(blocks) => Access::Sequential(Box::new(Dealt { blocks, turn })),
                None if turn.is_first() => Access::Random(reader),
                None => Access::Sequential(Box::new(Nothing)),
            },
            Access::Sequential(blocks) => Access::Sequential(Box::new(Dealt { blocks, turn })),
            Access::Column(column) => Access::Column(dealt_column(column, turn, tables)),
        };
        Source { name, dtype, extent, bytes: bytes.map(|n| n / turn.ranks as u64), access }
    }

    /// The share of joined tables, and of the question about it: where it begins.
    #[must_use]
    pub fn of_tables(self, tables: Vec<Keyed>, question: &mut Question) -> Vec<Keyed> {
        let rows: Option<Vec<u64>> = tables.iter().map(Keyed::random_rows).collect();
        if let Some(rows) = rows {
            let own = self.rows(rows.iter().sum());
            question.start += own.start;
            let mut before = 0;
            let places = rows.into_iter().map(|rows| {
                let place = within(&own, before, rows);
                before += rows;
                place
            });
            return tables.into_iter().zip(places).map(|(t, rows)| t.of_rows(rows)).collect();
        }
        let first_rows = question.order == warpfold::Order::FirstOccurrence;
        let dealt = !first_rows && !tracks(question.reduction.ops());
        let numbered = tables.into_iter().enumerate();
        numbered.map(|(i, table)| table.of_turn(self.turn(dealt, i))).collect()
    }
}

/// Whether it matters which elements a state holds.
fn tracks(ops: &[Op]) -> bool {
    ops.iter().any(|op| op.kind().is_positional())
}

/// The chunks that a source lies in, if it lies in some.
fn chunks_of(source: &Source) -> Option<&Chunked> {
    match &source.access {
        Access::Random(reader) => reader.chunks(),
        _ => None,
    }
}

/// The rows of a source whose elements are at hand in any order.
fn rows_of(source: &Source) -> Option<u64> {
    match (&source.access, &source.extent) {
        (Access::Random(_), Extent::Array { shape, .. }) => shape.first().map(|&n| n as u64),
        (Access::Random(_), Extent::Column { rows }) => *rows,
        _ => None,
    }
}

/// The part of `own` that lies in a piece with as many rows behind `before` others.
fn within(own: &Range<u64>, before: u64, rows: u64) -> Range<u64> {
    let place = |row: u64| row.saturating_sub(before).min(rows);
    place(own.start)..place(own.end)
}

/// The rows of joined sources: those without any are left out, but for one.
fn cut(sources: Vec<Source>, own: &Range<u64>) -> Vec<Source> {
    let mut before = 0;
    let pieces = sources.into_iter().map(|source| {
        let rows = rows_of(&source).unwrap_or(0);
        let place = within(own, before, rows);
        before += rows;
        part_of(source, place)
    });
    pieces.collect()
}

/// Some rows of a source whose elements are at hand in any order.
fn part_of(source: Source, rows: Range<u64>) -> Source {
    let Source { name, dtype, extent, bytes, access } = source;
    let len = rows.end - rows.start;
    let (all, extent, order) = match extent {
        Extent::Array { mut shape, order } => {
            let all = shape.first().map_or(0, |&n| n as u64);
            shape.iter_mut().take(1).for_each(|n| *n = len as usize);
            (all, Extent::Array { shape, order }, order)
        }
        Extent::Column { rows } => {
            (rows.unwrap_or(0), Extent::Column { rows: Some(len) }, Order::C)
        }
    };
    let inner = match &extent {
        Extent::Array { shape, .. } => shape.iter().skip(1).map(|&n| n as u64).product(),
        Extent::Column { .. } => 1,
    };
    let access = match access {
        Access::Random(reader) => {
            let size = dtype.size();
            Access::Random(Box::new(Rows { reader, rows, all, inner, order, size }))
        }
        other => other,
    };
    let bytes = bytes.map(|n| (u128::from(n) * u128::from(len) / u128::from(all.max(1))) as u64);
    Source { name, dtype, extent, bytes, access }
}

/// Some rows of an array.
struct Rows {
    reader: Box<dyn ReadAt>,
    rows: Range<u64>,
    /// The rows of the array.
    all: u64,
    /// Elements of a row.
    inner: u64,
    order: Order,
    /// Bytes of an element.
    size: usize,
}

impl ReadAt for Rows {
    fn read_at(&self, first: u64, out: &mut [u8]) -> Result<()> {
        if self.order == Order::C {
            return self.reader.read_at(self.rows.start * self.inner + first, out);
        }
        // The elements of a column lie together.
        let own = self.rows.end - self.rows.start;
        let (mut next, mut rest) = (first, out);
        while !rest.is_empty() {
            let (column, row) = (next / own, next % own);
            let here = (own - row).min((rest.len() / self.size) as u64);
            let (part, behind) = rest.split_at_mut(here as usize * self.size);
            self.reader.read_at(column * self.all + self.rows.start + row, part)?;
            (next, rest) = (next + here, behind);
        }
        Ok(())
    }
}

/// Which blocks of a sequence are this reader's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    next: usize,
    rank: usize,
    ranks: usize,
    /// Whether nothing is.
    none: bool,
}

impl Turn {
    /// All blocks.
    pub(crate) const ALL: Turn = Turn { next: 0, rank: 0, ranks: 1, none: false };

    /// Whether this is the reader of what cannot be dealt out.
    pub(crate) fn is_first(self) -> bool {
        !self.none && self.rank == 0
    }

    /// The next block that is this reader's, of those that `next` takes off.
    pub(crate) fn take<B>(
        &mut self,
        mut next: impl FnMut() -> Result<Option<B>>,
    ) -> Result<Option<B>> {
        if self.none {
            return Ok(None);
        }
        loop {
            let block = next()?;
            let mine = self.next == self.rank;
            self.next = (self.next + 1) % self.ranks;
            if mine || block.is_none() {
                return Ok(block);
            }
        }
    }
}

/// This reader's blocks of a sequence.
struct Dealt<B: ?Sized> {
    blocks: Box<B>,
    turn: Turn,
}

impl Blocks for Dealt<dyn Blocks> {
    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        self.turn.take(|| self.blocks.next_block())
    }

    fn unit(&self) -> Option<Unit> {
        self.blocks.unit()
    }
}

impl TableBlocks for Dealt<dyn TableBlocks> {
    fn next_block(&mut self) -> Result<Option<Box<dyn TableBlock>>> {
        self.turn.take(|| self.blocks.next_block())
    }
}

/// No blocks.
struct Nothing;

impl Blocks for Nothing {
    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        Ok(None)
    }
}

/// A table of which only this reader's blocks are read.
struct DealtTable {
    table: Arc<Table>,
    turn: Turn,
}

impl ReadTable for DealtTable {
    fn read(&self, columns: &[(usize, Typing)]) -> Result<Box<dyn TableBlocks>> {
        let blocks = self.table.reader.read(columns)?;
        Ok(Box::new(Dealt { blocks, turn: self.turn }))
    }

    fn bytes(&self) -> Option<u64> {
        self.table.reader.bytes().map(|bytes| bytes / self.turn.ranks as u64)
    }
}

/// The column in a table of this reader's blocks. `tables` has those that were made.
fn dealt_column(column: TableColumn, turn: Turn, tables: &mut Vec<[Arc<Table>; 2]>) -> TableColumn {
    let made = tables.iter().find(|[whole, _]| Arc::ptr_eq(whole, &column.table));
    let table = match made {
        Some([_, dealt]) => Arc::clone(dealt),
        None => {
            let (name, table) = (column.table.name.clone(), Arc::clone(&column.table));
            let reader = Box::new(DealtTable { table, turn });
            let dealt = Arc::new(Table { name, reader, left_out: Vec::new(), remark: None });
            tables.push([Arc::clone(&column.table), Arc::clone(&dealt)]);
            dealt
        }
    };
    TableColumn { table, ..column }
}
