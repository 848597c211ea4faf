//! What cells say about the type of their column, where nobody else does.

/// A cell, for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) file: String,
    /// The line it stands in, and the column for messages: `2 (price)`; nothing
    /// in text without columns.
    pub(crate) line: u64,
    pub(crate) column: String,
    /// The cell, quoted.
    pub(crate) text: String,
}

impl Cell {
    /// `line 3, column 2 (price): "1.5"`.
    pub(crate) fn place(&self) -> String {
        let Cell { line, column, text, .. } = self;
        match column.as_str() {
            "" => format!("line {line}: {text}"),
            _ => format!("line {line}, column {column}: {text}"),
        }
    }
}

/// What the cells of a block have shown; of several blocks, in the order of the
/// file, what they have shown together.
///
/// A column is of floats if one cell is no integer, however late it comes. If
/// all are integers, it is of i64, or of u64 if they need that.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Evidence {
    /// Whether there is an integer.
    pub(crate) integers: bool,
    /// Whether one of them is negative.
    pub(crate) negative: bool,
    /// The first cell that is a number but no integer, with the number of its
    /// block.
    pub(crate) decimal: Option<(u64, Box<Cell>)>,
    /// The first integer beyond i64 that u64 holds.
    pub(crate) large: Option<(u64, Box<Cell>)>,
    /// The first integer that neither holds.
    pub(crate) huge: Option<(u64, Box<Cell>)>,
}

impl Evidence {
    /// Adds what another block, the `number`th, has shown.
    pub(crate) fn add(&mut self, other: &mut Evidence, number: u64) {
        self.integers |= other.integers;
        self.negative |= other.negative;
        for (mine, theirs) in [
            (&mut self.decimal, &mut other.decimal),
            (&mut self.large, &mut other.large),
            (&mut self.huge, &mut other.huge),
        ] {
            if let Some((_, cell)) = theirs.take() {
                keep_first(mine, number, cell);
            }
        }
    }

    /// Adds what another thread has seen.
    pub(crate) fn merge(&mut self, other: Evidence) {
        self.integers |= other.integers;
        self.negative |= other.negative;
        for (mine, theirs) in [
            (&mut self.decimal, other.decimal),
            (&mut self.large, other.large),
            (&mut self.huge, other.huge),
        ] {
            if let Some((number, cell)) = theirs {
                keep_first(mine, number, cell);
            }
        }
    }
}

fn keep_first(mine: &mut Option<(u64, Box<Cell>)>, number: u64, cell: Box<Cell>) {
    if mine.as_ref().is_none_or(|(first, _)| number < *first) {
        *mine = Some((number, cell));
    }
}
