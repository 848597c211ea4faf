//! What reduces tables: accumulators of outputs, and how they take elements in.

use crate::table::Table;
use warpfold_core::Element;

/// Accumulators for some outputs of one operation. What they cannot answer is
/// answered in the general way, so that they may be quick rather than complete.
pub(super) trait Fold: Copy + Sync {
    /// The elements.
    type Item: Element;
    /// The accumulators of a block of outputs.
    type Cells: Send;

    /// Accumulators that have seen nothing.
    fn cells(&self, outputs: usize) -> Self::Cells;
    /// Makes them so again.
    fn clear(&self, cells: &mut Self::Cells);
    /// Adds a row of the table to each output from `place` on. The row's first element
    /// is the output's element `at`.
    fn rows(&self, cells: &mut Self::Cells, place: usize, table: Table<'_, Self::Item>, at: usize);
    /// Adds a column of the table to each output from `place` on.
    fn columns(
        &self,
        cells: &mut Self::Cells,
        place: usize,
        table: Table<'_, Self::Item>,
        at: usize,
    );
    /// Adds the accumulators of other elements of the same outputs.
    fn merge(&self, cells: &mut Self::Cells, others: &Self::Cells);
    /// Whether elements can still change an answer; asked after each panel.
    fn is_settled(&self, cells: &Self::Cells) -> bool {
        let _ = cells;
        false
    }
    /// Whether [`is_settled`](Self::is_settled) may become true: rows are then cut.
    const SETTLES: bool = false;
    /// The answers' words, as wide as the numbers of the operation.
    type Out: bytemuck::Pod;
    /// Writes the answers of all outputs from `place` on, without a branch for each.
    /// Returns false if some are not there.
    #[inline(always)]
    fn answer_all(&self, cells: &Self::Cells, place: usize, to: &mut [Self::Out]) -> bool {
        let _ = (cells, place, to);
        false
    }
    /// The answer of one output, if the accumulators have it.
    fn answer(&self, cells: &Self::Cells, place: usize) -> Option<Self::Out>;
}
