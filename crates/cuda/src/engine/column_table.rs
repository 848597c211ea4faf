//! Columns that lie side by side, as kernels are told of them: `ColumnTable` in
//! `kernels/columns.cuh`.

use super::catalogue::{COLUMN_BLOCKS, COLUMN_THREADS};
use super::parts::parts;
use super::table::{Table, offset, unit};
use crate::device::{Address, Argument};
use warpfold_core::layout::Dim;

pub(super) const THREADS: usize = COLUMN_THREADS;
pub(super) const BLOCKS: u32 = COLUMN_BLOCKS as u32;
/// Bytes of a strip.
pub(super) const STRIP: usize = 16;

/// More launches than this are not worth it...
const MANY_LAUNCHES: usize = 32;
/// ... unless each reads so many bytes.
const WORTH_A_LAUNCH: usize = 1 << 20;

/// Columns side by side whose rows lie along one axis or two, in tables at equal
/// distances, as many of these as there are launches.
pub(super) struct ColumnTable<'a> {
    table: &'a Table,
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Of rows along two axes, how many lie along the inner one; else 0.
    inner: usize,
    stride: isize,
    /// From one step of the outer axis to the next.
    jump: isize,
    tables: Dim,
    launches: &'a [Dim],
}

/// Tables of one launch: the first one's address, how many they are, and the
/// position of the first output.
pub(super) struct Tables {
    pub(super) at: Address,
    pub(super) count: usize,
    pub(super) first: usize,
}

impl<'a> ColumnTable<'a> {
    /// A table's columns, if kernels can walk down them in few launches.
    pub(super) fn of(table: &'a Table) -> Option<ColumnTable<'a>> {
        let size = table.dtype.size();
        let (columns, outer) = table.outputs.dims.split_last()?;
        let (inner, stride, jump) = match table.elements.dims[..] {
            [rows] => (0, rows.strides[0], 0),
            [jumps, rows] => (rows.len, rows.strides[0], jumps.strides[0]),
            _ => return None,
        };
        let none = Dim { len: 1, strides: [0; 2], index_step: 0 };
        let (tables, launches) = match outer.split_last() {
            Some((tables, launches)) => (*tables, launches),
            None => (none, &[][..]),
        };
        let count = columns.len * tables.len;
        let rows = table.elements.len;
        let bytes = rows.saturating_mul(count).saturating_mul(size);
        let many = table.outputs.len / count > MANY_LAUNCHES;
        let side_by_side = columns.strides[0] == size.cast_signed();
        // The kernels count strips and inner rows in 32 bits.
        let few = count < 1 << 31 && inner < 1 << 31;
        let fits = side_by_side && table.is_aligned() && few && (!many || bytes >= WORTH_A_LAUNCH);
        let columns = columns.len;
        fits.then_some(ColumnTable { table, columns, rows, inner, stride, jump, tables, launches })
    }

    /// Whether one launch takes all tables.
    pub(super) fn takes_one_launch(&self) -> bool {
        self.launches.is_empty()
    }

    /// Tables of a launch, if one takes all of them.
    pub(super) fn tables(&self) -> usize {
        self.tables.len
    }

    /// Strips of a table.
    pub(super) fn strips(&self) -> usize {
        self.columns.div_ceil(STRIP / self.table.dtype.size())
    }

    /// All tables, at most so many at once.
    pub(super) fn launches(&self, most: usize) -> impl Iterator<Item = Tables> {
        parts(self.launches, 1).flat_map(move |part| {
            (0..self.tables.len).step_by(most).map(move |first| {
                let before = first.cast_signed() * self.tables.strides[0];
                Tables {
                    at: offset(offset(self.table.at, part.offsets), [before; 2])[0],
                    count: (self.tables.len - first).min(most),
                    first: (part.first * self.tables.len + first) * self.columns,
                }
            })
        })
    }

    /// What kernels are told of these tables: their first eleven arguments.
    pub(super) fn arguments(&self, now: &Tables) -> [Argument; 11] {
        let table_stride = self.tables.strides[0];
        let [first, end] = self.bounds(now);
        [
            Argument::from(now.at),
            Argument::from(self.columns as u32),
            Argument::from(self.rows as u64),
            Argument::from(self.inner as u32),
            Argument::from(self.stride as i64),
            Argument::from(self.jump as i64),
            Argument::from(now.count as u32),
            Argument::from(table_stride as i64),
            Argument::from(first),
            Argument::from(end),
            Argument::from(self.unit(now.at)),
        ]
    }

    /// The bytes in which rows can be read, where the first table of a launch lies at `at`.
    fn unit(&self, at: Address) -> u32 {
        let row = self.columns * self.table.dtype.size();
        let distances = [self.stride, self.jump, self.tables.strides[0], row.cast_signed()];
        let distances = distances.map(|d| d.unsigned_abs() as u64);
        unit(&distances).min(unit(&[at]))
    }

    /// The first byte of a launch's tables, and the one behind their last.
    fn bounds(&self, now: &Tables) -> [Address; 2] {
        let row = self.columns * self.table.dtype.size();
        let (inner, outer) = match self.inner {
            0 => (self.rows, 1),
            inner => (inner, self.rows / inner),
        };
        let axes = [(inner, self.stride), (outer, self.jump), (now.count, self.tables.strides[0])];
        let ends = axes.map(|(len, stride)| (len.max(1) - 1).cast_signed() * stride);
        let least: isize = ends.iter().map(|&end| end.min(0)).sum();
        let most: isize = ends.iter().map(|&end| end.max(0)).sum();
        offset([now.at; 2], [least, most + row.cast_signed()])
    }
}
