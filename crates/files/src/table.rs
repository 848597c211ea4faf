//! Tables: sources whose columns are read together, in one pass.

use crate::columns::ColumnSelector;
use crate::{Batch, Block, Blocks, Error, Result, Unit};
use std::sync::Arc;
use warpfold_core::DType;

/// How the cells of a column are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typing {
    /// As elements of this type.
    Fixed(DType),
    /// As what they turn out to be. Each batch says its own type: i64 or u64
    /// while all its cells are integers, else f64.
    Open,
    /// As texts: see [`Batch::texts`].
    Text,
}

/// Reading several columns of a table front to back.
pub(crate) trait TableBlocks: Send {
    /// Takes the next block off the stream, undecoded; `None` at the end.
    fn next_block(&mut self) -> Result<Option<Box<dyn TableBlock>>>;
}

/// Some rows of the columns, to be decoded on any thread.
pub(crate) trait TableBlock: Send {
    /// How many rows it will cover, if that is known before decoding. A block
    /// that does not know hands over a single batch for each column.
    fn rows(&self) -> Option<u64>;

    /// Bytes of the file this block stands for; for progress.
    fn bytes(&self) -> u64;

    /// Decodes column after column, in `batch`'s memory, and hands each piece
    /// to `sink` with the place of its column among those that are read. All
    /// columns have as many rows.
    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(usize, &mut Batch) -> Result<()>,
    ) -> Result<()>;
}

/// A table that can be read: a file as often as one likes, a pipe once.
pub(crate) trait ReadTable: Send + Sync {
    /// Begins to read columns, named by their places from 0.
    fn read(&self, columns: &[(usize, Typing)]) -> Result<Box<dyn TableBlocks>>;

    /// What the blocks' bytes add up to, where that is known.
    fn bytes(&self) -> Option<u64>;
}

/// A column that was not taken because it has no numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The column's name, or its number if it has none.
    pub name: String,
    /// What shows it: `text: line 2 holds "apples"`.
    pub why: String,
}

/// A table with what was chosen from it.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) reader: Box<dyn ReadTable>,
    /// The columns that were left out where none was asked for.
    pub(crate) left_out: Vec<LeftOut>,
    /// What to tell about how it was read.
    pub(crate) remark: Option<String>,
}

/// A column of a table. The columns of one table that are reduced together are
/// read in one pass.
pub struct TableColumn {
    pub(crate) table: Arc<Table>,
    /// Its place in the table, from 0.
    pub(crate) place: usize,
    pub(crate) typing: Typing,
    /// Whether a cell that is no integer was seen among the first.
    pub(crate) decimals: bool,
    /// What the numbers stand for, if the table says so.
    pub(crate) unit: Option<Unit>,
    /// How to choose the same column in another table, if nobody asked for it.
    pub(crate) selector: Option<ColumnSelector>,
}

impl TableColumn {
    /// Whether only its last cell tells the column's type: then the source's
    /// type is what the first cells show.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.typing == Typing::Open
    }

    /// The columns of the same table that were left out, where none was asked
    /// for.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.table.left_out
    }

    /// What to tell of the table where it could be read in another way: that its first
    /// row was taken for names though it holds numbers, or the other way round.
    #[must_use]
    pub fn remark(&self) -> Option<&str> {
        self.table.remark.as_deref()
    }

    /// How to choose the column of the same name in another table; `None` if
    /// this one was asked for, or is the only one of its table.
    #[must_use]
    pub fn selector(&self) -> Option<&ColumnSelector> {
        self.selector.as_ref()
    }

    /// The elements of this column alone, as elements of type `dtype`.
    ///
    /// # Errors
    /// A pipe that was read before. The blocks complain about cells that are
    /// not of the type.
    pub fn blocks(&self, dtype: DType) -> Result<Box<dyn Blocks>> {
        let typing = match self.typing {
            Typing::Fixed(fixed) if fixed != dtype => {
                return Err(Error::format(
                    &self.table.name,
                    format!("a column of {fixed} cannot be read as {dtype}"),
                ));
            }
            _ => Typing::Fixed(dtype),
        };
        let blocks = self.table.reader.read(&[(self.place, typing)])?;
        Ok(Box::new(Alone { blocks, unit: self.unit.clone() }))
    }
}

/// One column of a table as a source of its own.
struct Alone {
    blocks: Box<dyn TableBlocks>,
    unit: Option<Unit>,
}

impl Blocks for Alone {
    fn unit(&self) -> Option<Unit> {
        self.unit.clone()
    }

    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        let block = self.blocks.next_block()?;
        Ok(block.map(|block| Box::new(AloneBlock(block)) as Box<dyn Block>))
    }
}

struct AloneBlock(Box<dyn TableBlock>);

impl Block for AloneBlock {
    fn rows(&self) -> Option<u64> {
        self.0.rows()
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        self.0.decode(batch, &mut |_, batch| sink(batch))
    }
}
