//! Columns folded by the fixed tree where they lie, and made numbers in one
//! launch: `kernels/column_tree.cuh`.

use super::Engine;
use super::answer::Answer;
use super::block_workspace;
use super::catalogue::{BATCH, MEETING, SHARE};
use super::column_table::{BLOCKS, ColumnTable, STRIP, THREADS};
use super::kernels::Program;
use super::route::{Launches, Machine};
use super::scratch::Scratch;
use super::table::Table;
use super::tree;
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::op::tree::{BLOCK, LANES};

/// `MEETING_NODES` and `STRIPS` in the kernels.
const MEETING_NODES: usize = 1 << MEETING;
const STRIPS: usize = THREADS / (LANES / SHARE);

/// Rows that a thread walks alone however few columns there are.
const FEW_ROWS: usize = 32;

/// How a table's columns are shared by threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// A thread for each strip.
    Short,
    /// Tiles of so many strips, a power of two: teams of a block take leaves.
    Tall { width: usize },
}

impl Sharing {
    /// For so many strips, of all tables, on a device that runs `resident` blocks
    /// at once.
    fn of(strips: usize, rows: usize, resident: usize) -> Sharing {
        let many = strips >= resident * THREADS;
        if rows <= FEW_ROWS || rows <= BLOCK && many {
            return Sharing::Short;
        }
        Sharing::Tall { width: strips.next_power_of_two().min(STRIPS) }
    }
}

/// The tiles of tall tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiles {
    count: usize,
    /// Leaves of a tile.
    leaves: usize,
    /// Leaves that a block takes at once.
    teams: usize,
    columns: usize,
}

impl Tiles {
    fn of(width: usize, strips: usize, rows: usize, size: usize) -> Tiles {
        Tiles {
            count: strips.div_ceil(width),
            leaves: rows.div_ceil(BLOCK),
            teams: STRIPS / width,
            columns: width * (STRIP / size),
        }
    }

    /// What blocks take at once.
    fn steps(self) -> usize {
        self.leaves.div_ceil(self.teams)
    }

    /// Counters of a tile: one for each node at which blocks meet.
    fn counters(self) -> usize {
        let (mut nodes, mut all) = (self.steps(), 0);
        while nodes > 1 {
            nodes = nodes.div_ceil(MEETING_NODES);
            all += nodes;
        }
        all
    }

    /// Words in which the leaves of a tile meet.
    fn words(self, node: usize) -> usize {
        if self.leaves > 1 { self.leaves.saturating_mul(node * self.columns) } else { 0 }
    }

    /// Tiles of a launch, with so many words to meet in; none if a tile has too
    /// many leaves.
    fn at_once(self, node: usize, room: usize) -> usize {
        let counters = 2 * block_workspace::ZEROS as usize;
        // Kernels count steps of all tiles in 32 bits.
        let most = (1 << 31) / self.steps();
        let most = most.min(counters.checked_div(self.counters()).unwrap_or(most));
        most.min(room.checked_div(self.words(node)).unwrap_or(most))
    }
}

/// What the blocks of launches share: tiles, or as many strips as a block has
/// threads.
#[derive(Clone, Copy, Debug)]
struct Shares {
    /// 0 for short tables.
    width: usize,
    /// Of all launches, and of one.
    count: usize,
    at_once: usize,
    /// What blocks take of each, one by one.
    steps: usize,
    /// Counters of each, and words of all that a launch takes.
    counters: usize,
    words: usize,
}

impl Shares {
    fn of_strips(strips: usize) -> Shares {
        let count = strips.div_ceil(THREADS);
        Shares { width: 0, count, at_once: count, steps: 1, counters: 0, words: 0 }
    }

    /// For nodes of so many words, of which there may be so many at once.
    fn of_tiles(width: usize, tiles: Tiles, node: usize, room: usize) -> Shares {
        let at_once = tiles.at_once(node, room).min(tiles.count);
        let (count, steps, counters) = (tiles.count, tiles.steps(), tiles.counters());
        let words = if at_once == 0 { 0 } else { at_once * tiles.words(node) };
        Shares { width, count, at_once, steps, counters, words }
    }
}

/// Columns that a fixed tree folds, and the launches that make their numbers.
pub(super) struct ColumnTrees<'a> {
    columns: ColumnTable<'a>,
    shares: Shares,
    at_once: u32,
}

impl<'a> ColumnTrees<'a> {
    /// The launches for a table, if it is one of columns that lie side by side, whose
    /// rows lie along one axis or two.
    pub(super) fn plan(
        answer: Answer,
        table: &'a Table,
        device: Machine<'_>,
    ) -> Option<ColumnTrees<'a>> {
        let columns = ColumnTable::of(table)?;
        let at_once = device.blocks_at_once(BLOCKS);
        let strips = columns.strips() * columns.tables();
        let shares = match Sharing::of(strips, columns.rows, at_once as usize) {
            Sharing::Short => Shares::of_strips(strips),
            Sharing::Tall { width } => {
                let tiles = Tiles::of(width, strips, columns.rows, answer.dtype.size());
                let node = tree::node_words(answer.kind, answer.dtype) as usize;
                Shares::of_tiles(width, tiles, node, (device.workspace() / 8) as usize)
            }
        };
        (shares.at_once > 0).then_some(ColumnTrees { columns, shares, at_once })
    }

    /// The launch for the tiles that are taken at once.
    fn launch(&self) -> Launch {
        let blocks = (self.shares.at_once * self.shares.steps).min(self.at_once as usize);
        Launch::linear(u32::try_from(blocks).unwrap_or(u32::MAX), THREADS as u32)
    }

    /// Bytes of the workspace in which blocks fold nodes.
    fn workspace(&self) -> u64 {
        match self.shares.words {
            0 => 0,
            words => 8 * (block_workspace::ZEROS + words as u64),
        }
    }

    /// What these launches are like.
    pub(super) fn launches(&self, answer: Answer) -> Launches {
        let each = self.shares.count.div_ceil(self.shares.at_once);
        Launches {
            kernel: Program::ColumnTrees(answer.dtype).name(),
            count: each * self.columns.launches(self.columns.tables()).count(),
            launch: self.launch(),
            blocks_at_once: self.at_once,
            bytes_of_a_thread: STRIP * BATCH,
            workspace: self.workspace(),
        }
    }
}

impl Engine {
    /// Leaves the numbers of columns at `to` in the order of the walk.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `scratch` is the stream's.
    pub(super) unsafe fn launch_column_trees(
        &self,
        answer: Answer,
        plan: &ColumnTrees<'_>,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<()> {
        let device = &*self.device;
        let ColumnTrees { columns, shares, .. } = plan;
        let workspace = match plan.workspace() {
            0 => 0,
            bytes => scratch.for_blocks(device, stream, bytes)?,
        };
        let kernel = self.program(Program::ColumnTrees(answer.dtype))?;
        let launch = plan.launch();
        for now in columns.launches(columns.tables()) {
            let to = to + (now.first * answer.out.size()) as u64;
            for first in (0..shares.count).step_by(shares.at_once) {
                let others = [
                    Argument::from(shares.width as u32),
                    Argument::from(first as u32),
                    Argument::from((shares.count - first).min(shares.at_once) as u32),
                    Argument::from(shares.counters as u32),
                    Argument::from(answer.ask as u32),
                    Argument::from(workspace),
                    Argument::from(to),
                ];
                let arguments = [&columns.arguments(&now)[..], &others].concat();
                // SAFETY: the kernels have these parameters; they read the
                // columns and write the answers and the workspace.
                unsafe { self.device.launch(stream, kernel, &launch, &arguments)? };
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On an H200.
    const RESIDENT: usize = 132 * BLOCKS as usize;

    #[test]
    fn short_tables_of_many_columns_have_a_thread_for_each_strip() {
        let sharing = |columns: usize, rows| Sharing::of(columns.div_ceil(4), rows, RESIDENT);
        assert_eq!(sharing(1 << 24, 16), Sharing::Short);
        assert_eq!(sharing(1 << 20, 256), Sharing::Short);
        assert_eq!(sharing(1 << 20, BLOCK), Sharing::Short);
        assert_eq!(sharing(1 << 20, BLOCK + 1), Sharing::Tall { width: 8 });
        assert_eq!(sharing(1 << 14, 1 << 14), Sharing::Tall { width: 8 });
        assert_eq!(sharing(16, 1 << 24), Sharing::Tall { width: 4 });
        assert_eq!(sharing(17, 1 << 24), Sharing::Tall { width: 8 });
        assert_eq!(sharing(3, 33), Sharing::Tall { width: 1 });
        assert_eq!(sharing(3, 32), Sharing::Short);
    }

    #[test]
    fn tiles_have_a_counter_for_each_node_that_blocks_meet_at() {
        let tiles = |leaves: usize| Tiles::of(8, 64, leaves * BLOCK, 4);
        let counters = |leaves| tiles(leaves).counters();
        assert_eq!([1, 2, 32, 33, 64, 1024, 1025].map(counters), [0, 1, 1, 3, 3, 33, 36]);
        // Leaves of a block's teams meet without one.
        let narrow = |leaves: usize| Tiles::of(1, 1, leaves * BLOCK, 4).counters();
        assert_eq!([1, 8, 9, 256, 257].map(narrow), [0, 0, 1, 1, 3]);
        assert_eq!(tiles(1).words(5), 0);
        assert_eq!(tiles(2).words(5), 2 * 5 * 32);
    }

    #[test]
    fn launches_take_as_many_tiles_as_can_meet() {
        let tiles = Tiles::of(8, 1 << 20, 2 * BLOCK, 4);
        assert_eq!(tiles.count, 1 << 17);
        assert_eq!(tiles.at_once(5, 1 << 25), 2 * block_workspace::ZEROS as usize);
        assert_eq!(tiles.at_once(5, 1000), 3);
        assert_eq!(tiles.at_once(5, 300), 0);
        let flat = Tiles::of(8, 1 << 20, 100, 4);
        assert!(flat.at_once(5, 0) >= flat.count);
    }
}
