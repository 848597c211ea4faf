//! A question about arrays in a device's memory, as a table: a row for each
//! output, a column for each of its elements.

use super::gather::{NONE, Step};
use super::parts::{Part, parts};
use crate::device::Address;
use warpfold_core::DType;
use warpfold_core::layout::{Axis, Dim, Traversal};
use warpfold_core::op::Kind;

/// Rows that are gathered begin at multiples of this: a vector of the kernels.
pub(super) const ROW_ALIGNMENT: usize = 16;

/// Launches for the rows of a table that cost no more than walking any view.
const FEW_LAUNCHES: usize = 4;

/// In which order the elements of an output count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As they lie in memory.
    Memory,
    /// By their indices.
    Index,
}

impl Order {
    /// The order that a state of this kind asks for.
    pub(super) fn of(kind: Kind) -> Order {
        if kind == Kind::ArgExtrema { Order::Index } else { Order::Memory }
    }

    /// The walk over the elements of an output.
    pub(super) fn walk(self, reduced: &[Axis]) -> Traversal {
        // Where both orders are the same, the walk in memory has fewer dimensions.
        if self == Order::Index && !Traversal::new(reduced, true).in_order {
            Traversal::in_index_order(reduced)
        } else {
            Traversal::new(reduced, false)
        }
    }
}

/// Outputs by elements, of one array or two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) dtype: DType,
    /// How many arrays.
    pub(super) arrays: usize,
    /// The first element of the first output, in each array.
    pub(super) at: [Address; 2],
    /// From output to output.
    pub(super) outputs: Traversal,
    /// The same walk in as many steps as it takes to tell their indices in C
    /// order.
    indices: Traversal,
    /// From element to element of an output.
    pub(super) elements: Traversal,
}

impl Table {
    /// The table of arrays whose elements of index 0 are `at`.
    pub(super) fn new(
        dtype: DType,
        at: [Option<Address>; 2],
        kept: &[Axis],
        reduced: &[Axis],
        order: Order,
    ) -> Table {
        let outputs = Traversal::new(kept, false);
        let indices = Traversal::new(kept, true);
        let elements = order.walk(reduced);
        let mut first = at.map(|a| a.unwrap_or(0));
        for walk in [&outputs, &elements] {
            first = offset(first, walk.offsets);
        }
        let arrays = at.iter().flatten().count();
        Table { dtype, arrays, at: first, outputs, indices, elements }
    }

    /// The place in C order of the output at a position of the walk.
    pub(super) fn output(&self, position: usize) -> usize {
        self.indices.index(position as u64) as usize
    }

    /// Whether the outputs are walked in C order.
    pub(super) fn is_in_order(&self) -> bool {
        self.indices.in_order
    }

    /// The place in C order of the first output.
    pub(super) fn first_output(&self) -> usize {
        self.output(0)
    }

    /// The copy that brings numbers of `size` bytes from the order of the walk
    /// to C order, where it begins at the [first](Self::first_output) one's.
    pub(super) fn steps_to_outputs(&self, size: usize) -> Vec<Step> {
        let size = size.cast_signed();
        let mut place = size;
        let step = |dim: &Dim| {
            let from = place;
            place *= dim.len.cast_signed();
            Step { len: dim.len, from, to: dim.index_step as isize * size, ..NONE }
        };
        self.indices.dims.iter().rev().map(step).collect()
    }

    /// The bytes that one output's gathered rows take.
    pub(super) fn row_bytes(&self) -> usize {
        let row = self.elements.len.saturating_mul(self.dtype.size());
        row.checked_next_multiple_of(ROW_ALIGNMENT)
            .map_or(usize::MAX, |n| n.saturating_mul(self.arrays))
    }

    /// The bytes that all outputs' gathered rows take.
    pub(super) fn all_row_bytes(&self) -> u64 {
        self.outputs.len.saturating_mul(self.row_bytes()) as u64
    }

    /// How many gathered rows so many bytes have room for.
    pub(super) fn rows_in(&self, bytes: u64) -> usize {
        usize::try_from(bytes).unwrap_or(usize::MAX) / self.row_bytes().max(1)
    }

    /// Tiles of at most so many outputs, which are copied together.
    pub(super) fn tiles(&self, outputs: usize) -> impl Iterator<Item = Part> + '_ {
        parts(&self.outputs.dims, outputs)
    }

    /// The outputs of the largest such tile, which is the first.
    pub(super) fn largest_tile(&self, outputs: usize) -> usize {
        self.tiles(outputs).next().map_or(0, |tile| tile.len)
    }

    /// Whether every element lies where its type may.
    pub(super) fn is_aligned(&self) -> bool {
        let size = self.dtype.size();
        let dims = self.outputs.dims.iter().chain(&self.elements.dims);
        (0..self.arrays).all(|i| self.at[i].is_multiple_of(size as u64))
            && dims
                .flat_map(|d| &d.strides[..self.arrays])
                .all(|s| s.unsigned_abs().is_multiple_of(size))
    }

    /// Whether the elements of each output lie one after the other, so that
    /// they can be reduced where they are.
    pub(super) fn has_rows(&self) -> bool {
        let size = self.dtype.size().cast_signed();
        let next = |d: &Dim| d.strides[..self.arrays].iter().all(|&s| s == size);
        self.is_aligned() && self.elements.dims.len() <= 1 && self.elements.dims.iter().all(next)
    }
}

impl Table {
    /// Whether rows lie in memory as such, and a few launches take them all.
    pub(super) fn has_few_rows(&self) -> bool {
        self.has_rows() && self.launches_of_rows() <= FEW_LAUNCHES
    }

    /// The launches for rows that lie in memory as such.
    pub(super) fn launches_of_rows(&self) -> usize {
        self.outputs.dims.iter().rev().skip(1).map(|d| d.len).product()
    }
}

/// The bytes, a vector's at most, that all of these are a multiple of: a power of
/// two, in which what lies at such distances can be read at once.
pub(super) fn unit(distances: &[u64]) -> u32 {
    let all = distances.iter().fold(ROW_ALIGNMENT as u64, |all, &d| all | d);
    1 << all.trailing_zeros()
}

/// Addresses so many bytes further on.
pub(super) fn offset(at: [Address; 2], offsets: [isize; 2]) -> [Address; 2] {
    [0, 1].map(|i| at[i].wrapping_add_signed(offsets[i] as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_divide_all_distances() {
        assert_eq!(unit(&[64, 0, 4096]), 16);
        assert_eq!(unit(&[1000]), 8);
        assert_eq!(unit(&[64, 4]), 4);
        assert_eq!(unit(&[256, 3]), 1);
    }
}
