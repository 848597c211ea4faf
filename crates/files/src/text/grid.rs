//! Where the cells of some columns begin and end, row by row.

/// The cells of the columns that are read, in a text.
#[derive(Default)]
pub(crate) struct Grid {
    /// Row by row, a place for each column that is read.
    cells: Vec<(u32, u32)>,
    /// For each row the line it begins in, counted from that of the text.
    lines: Vec<u32>,
    /// How many columns are read.
    width: usize,
}

impl Grid {
    /// An empty grid of so many columns.
    pub(crate) fn new(width: usize) -> Grid {
        Grid { cells: Vec::new(), lines: Vec::new(), width }
    }

    /// Appends a cell to the row that is being made.
    #[inline]
    pub(crate) fn push(&mut self, start: usize, end: usize) {
        // Chunks are shorter than 4 GiB by far.
        self.cells.push((start as u32, end as u32));
    }

    /// The row that is being made is whole.
    #[inline]
    pub(crate) fn end_row(&mut self, line: u64) {
        self.lines.push(line as u32);
    }

    /// Forgets the row that is being made.
    pub(crate) fn drop_row(&mut self) {
        self.cells.truncate(self.lines.len() * self.width);
    }

    pub(crate) fn rows(&self) -> usize {
        self.lines.len()
    }

    /// The line that a row begins in, counted from that of the text.
    pub(crate) fn line(&self, row: usize) -> u64 {
        self.lines.get(row).copied().unwrap_or(0).into()
    }

    /// The cells of a column, from the top.
    pub(crate) fn column<'a>(
        &'a self,
        column: usize,
        text: &'a [u8],
    ) -> impl Iterator<Item = &'a [u8]> + Clone {
        let places = self.cells.get(column..).unwrap_or_default().iter().step_by(self.width.max(1));
        places.take(self.rows()).map(|&(start, end)| &text[start as usize..end as usize])
    }
}
