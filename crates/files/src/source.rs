//! Sources: the common form of all formats.

use crate::chunked::Chunked;
use crate::{Batch, Result, TableColumn, Unit};
use warpfold_core::DType;

/// The order of an array's elements in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last axis varies fastest.
    C,
    /// The first axis varies fastest.
    Fortran,
}

/// How large a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// An array of known shape.
    Array {
        /// Its shape; empty for a scalar.
        shape: Vec<usize>,
        /// The order of its elements.
        order: Order,
    },
    /// One column of a table, or numbers on a stream.
    Column {
        /// The number of rows, where the file says so beforehand.
        rows: Option<u64>,
    },
}

/// How many elements a shape holds; `None` if that cannot be counted.
pub(crate) fn element_count(shape: &[usize]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?))
}

/// One array or column, found but not yet read.
pub struct Source {
    /// The name used in messages and tables: `f.npz:weights`, `t.csv:price`.
    pub name: String,
    /// The element type; of the values handed over, after any decoding. Of a
    /// column whose type only its last cell tells
    /// ([`is_open`](TableColumn::is_open)): what the first cells show.
    pub dtype: DType,
    /// Its shape or length.
    pub extent: Extent,
    /// For progress, where known: the bytes of all elements if access is
    /// random, otherwise what [`Block::bytes`] of all blocks adds up to.
    pub bytes: Option<u64>,
    /// How to read it.
    pub access: Access,
}

impl core::fmt::Debug for Source {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .field("dtype", &self.dtype)
            .field("extent", &self.extent)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// The unit of the numbers, if they have one.
    #[must_use]
    pub fn unit(&self) -> Option<Unit> {
        match &self.access {
            Access::Random(_) => None,
            Access::Column(column) => column.unit.clone(),
            Access::Sequential(blocks) => blocks.unit(),
        }
    }
}

/// The ways to read.
pub enum Access {
    /// Random access, from several threads.
    Random(Box<dyn ReadAt>),
    /// Front to back, once.
    Sequential(Box<dyn Blocks>),
    /// Front to back, with the other columns of its table.
    Column(TableColumn),
}

/// Random access, from several threads at once.
pub trait ReadAt: Send + Sync {
    /// Fills `out`, a whole number of elements, with the elements from
    /// `first` in file order, in native byte order. Reading past the end of
    /// the array is a bug of the caller; a file that has meanwhile become
    /// shorter is an error.
    ///
    /// # Errors
    /// Errors of the file system.
    fn read_at(&self, first: u64, out: &mut [u8]) -> Result<()>;

    /// The chunks that the elements lie in, where they are decoded chunk by chunk.
    fn chunks(&self) -> Option<&Chunked> {
        None
    }
}

/// Reading front to back in blocks that may be decoded out of order.
pub trait Blocks: Send {
    /// Takes the next block from the stream, without decoding it; `None` at the end.
    ///
    /// # Errors
    /// Errors of the file system or of the format.
    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>>;

    /// The unit of the numbers, if they have one.
    fn unit(&self) -> Option<Unit> {
        None
    }
}

/// A block of a sequential source, to be decoded on any thread.
pub trait Block: Send {
    /// How many rows it will cover, if that is known before decoding. A block
    /// that does not know hands over a single batch.
    fn rows(&self) -> Option<u64>;

    /// Bytes of the file this block stands for; for progress.
    fn bytes(&self) -> u64;

    /// Decodes the block into batches of at most about a million bytes (a
    /// block without known rows: one batch), in order, each in `batch`'s
    /// memory, and hands each to `sink`.
    ///
    /// # Errors
    /// Errors of the decoder, and those that `sink` returned.
    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()>;
}
