//! Columns that lie side by side, reduced where they are: `kernels/columns.cuh`.

use super::Engine;
use super::answer::Answer;
use super::catalogue::{BATCH, WARP_OUTPUT_ENDS};
use super::column_table::{BLOCKS, ColumnTable, STRIP, THREADS};
use super::kernels::{Program, Tally};
use super::route::{Launches, Machine};
use super::scratch::Scratch;
use super::table::Table;
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::DType;
use warpfold_core::op::Kind;

/// The most rows of a thread: more could leave its integers.
const MOST_ROWS: usize = 1 << 15;
/// The most strips side by side in a tile.
const MOST_WIDTH: usize = 32;
/// Rows that a thread should have before a column is shared by more of them.
const FEW_ROWS: usize = 16;
/// Strips side by side that are worth a read by themselves, and the most rows
/// of fewer of them that a thread may walk alone.
const WIDE: usize = 4;
const MOST_KEPT: usize = 128;
/// Rows that a thread walks alone sooner, if nothing costs it but they.
const LIGHT_ROWS: usize = 64;
/// The beginning and the end of a block take as long as so many rows. Measured on an H200.
const ENDS: usize = 32;
/// Shared memory that kernels have besides, at most.
const STATIC: u32 = 1 << 10;
/// The most tiles of a launch, and the most tables.
const MOST_BLOCKS: usize = 65_535;

/// What kernels of one kind and type are like.
#[derive(Clone, Copy, Debug)]
struct Build {
    tally: Tally,
    dtype: DType,
}

impl Build {
    /// Columns of a strip.
    fn columns(self) -> usize {
        STRIP / self.dtype.size()
    }

    /// Words of a tally: `WORDS` in `kernels/tally.cuh`.
    fn words(self) -> usize {
        let two = matches!(self.tally, Tally::Sums | Tally::Positions);
        1 + usize::from(two && self.dtype.size() == 8)
    }

    /// Words in which so many blocks of a column add up: `MET` there, or what each of them
    /// leaves.
    fn met(self, blocks: usize) -> usize {
        match self.tally {
            Tally::Sums => self.words() + 1,
            Tally::Positions if self.dtype.size() == 8 => self.words() * blocks,
            _ => 1,
        }
    }

    /// Whether so many rows have their numbers: those of positions lie beside
    /// ranks, if these are no whole word.
    fn counts(self, rows: usize) -> bool {
        let beside = self.tally == Tally::Positions && self.dtype.size() < 8;
        !beside || rows <= 1 << (64 - 8 * self.dtype.size())
    }

    /// Bytes of dynamic shared memory: what threads leave for each other, or what warps write
    /// their answers from, of `answer` bytes each.
    fn shared(self, width: Option<usize>, answer: usize) -> usize {
        let columns = self.columns();
        match width {
            Some(_) => 8 * THREADS * columns * self.words(),
            None => THREADS / 32 * (32 * columns * answer + WARP_OUTPUT_ENDS),
        }
    }
}

/// How a table's columns are shared by threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// A thread for each strip.
    Short,
    /// Tiles of `width` strips, each with `splits` blocks that share the rows.
    Tall { width: usize, tiles: usize, splits: usize },
}

impl Sharing {
    /// For `tables` tables of so many strips and rows, on a device that runs
    /// `resident` blocks at once.
    fn of(strips: usize, rows: usize, tables: usize, resident: usize) -> Sharing {
        let all = strips.saturating_mul(tables);
        let light = rows <= LIGHT_ROWS;
        if rows <= FEW_ROWS || light && all >= resident * THREADS / 4 {
            return Sharing::Short;
        }
        let tiles = strips.div_ceil(MOST_WIDTH);
        // Whole lines of memory, where a row has several tiles.
        let unit = if tiles > 1 { 8 } else { 1 };
        let width = strips.div_ceil(tiles).next_multiple_of(unit);
        let tiles = strips.div_ceil(width);
        let groups = THREADS / width;
        let least = rows.div_ceil(groups * MOST_ROWS);
        let many = (4 * resident).div_ceil(tiles * tables);
        let most = rows.div_ceil(groups * FEW_ROWS).min(many).max(least);
        // Waves of blocks by what each takes.
        let duration = |blocks: usize, rows: usize| blocks.div_ceil(resident) * rows;
        let of_tall = |splits: usize| {
            duration(tiles * tables * splits, rows.div_ceil(splits * groups) + ENDS)
        };
        let splits = (least..=most).min_by_key(|&splits| of_tall(splits)).unwrap_or(least);
        // Neighbouring threads should read what lies together: rows of their own table, or
        // else tables so small that the cache keeps them.
        let apart = strips < WIDE && rows > MOST_KEPT;
        let of_short = duration(all.div_ceil(THREADS), rows * (1 + usize::from(apart)) + ENDS);
        if rows <= MOST_ROWS && of_short <= of_tall(splits) {
            return Sharing::Short;
        }
        Sharing::Tall { width, tiles, splits }
    }
}

/// Columns that lie side by side, and the launches that make their numbers.
pub(super) struct Columns<'a> {
    columns: ColumnTable<'a>,
    build: Build,
    /// Blocks of a table along x and y, and strips of a tile.
    grid: [usize; 2],
    width: Option<usize>,
    /// Bytes of dynamic shared memory, and of the workspace in which blocks add up.
    shared: u32,
    workspace: u64,
    at_once: u32,
}

impl<'a> Columns<'a> {
    /// The launches for a table, if it is one of columns that lie side by side, whose
    /// rows lie along one axis or two.
    pub(super) fn plan(
        answer: Answer,
        table: &'a Table,
        device: Machine<'_>,
    ) -> Option<Columns<'a>> {
        let tally = answer.tally().filter(|tally| tally.has_columns(table.dtype))?;
        let build = Build { tally, dtype: table.dtype };
        let columns = ColumnTable::of(table).filter(|columns| build.counts(columns.rows))?;

        let at_once = device.blocks_at_once(BLOCKS);
        let (strips, tables) = (columns.strips(), columns.tables());
        let sharing = Sharing::of(strips, columns.rows, tables, at_once as usize);
        let (grid, width) = match sharing {
            Sharing::Short => ([(strips * tables).div_ceil(THREADS), 1], None),
            Sharing::Tall { width, tiles, splits } => ([splits, tiles], Some(width)),
        };
        let shared = u32::try_from(build.shared(width, answer.out.size())).ok()?;
        let room = device.limits.shared_per_block.saturating_sub(STATIC);
        if grid[1] > MOST_BLOCKS || i32::try_from(grid[0]).is_err() || shared > room {
            return None;
        }
        let workspace = match sharing {
            Sharing::Tall { width, tiles, splits } if splits > 1 => {
                let words = 1 + width * build.columns() * build.met(splits);
                let all = words.saturating_mul(tiles * tables.min(MOST_BLOCKS));
                8u64.saturating_mul(all as u64)
            }
            _ => 0,
        };
        (workspace <= device.workspace()).then_some(Columns {
            columns,
            build,
            grid,
            width,
            shared,
            workspace,
            at_once,
        })
    }

    /// The most tables of a launch.
    fn most_tables(&self) -> usize {
        if self.width.is_some() { MOST_BLOCKS } else { self.columns.tables() }
    }

    /// The launch for so many tables.
    fn launch(&self, tables: usize) -> Launch {
        let [x, y] = self.grid.map(|n| n as u32);
        let depth = if self.width.is_some() { tables as u32 } else { 1 };
        Launch { grid: [x, y, depth], ..Launch::linear(1, THREADS as u32).shared(self.shared) }
    }

    /// What these launches are like.
    pub(super) fn launches(&self, answer: Answer) -> Launches {
        let mut launches = self.columns.launches(self.most_tables());
        let first = launches.next().map_or(0, |now| now.count);
        Launches {
            kernel: self.program(answer).name(),
            count: 1 + launches.count(),
            launch: self.launch(first),
            blocks_at_once: self.at_once,
            bytes_of_a_thread: STRIP * BATCH,
            workspace: self.workspace,
        }
    }

    fn program(&self, answer: Answer) -> Program {
        Program::Columns(self.build.tally, answer.dtype)
    }
}

impl Engine {
    /// Leaves the numbers of columns at `to` in the order of the walk.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `scratch` is the stream's.
    pub(super) unsafe fn launch_columns(
        &self,
        answer: Answer,
        plan: &Columns<'_>,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<()> {
        let workspace = match plan.workspace {
            0 => 0,
            bytes => scratch.for_columns(&*self.device, stream, bytes)?,
        };
        let kernel = self.program(plan.program(answer))?;
        for now in plan.columns.launches(plan.most_tables()) {
            let to = to + (now.first * answer.out.size()) as u64;
            let others = [
                Argument::from(plan.width.unwrap_or(0) as u32),
                Argument::from(answer.asked()),
                Argument::from(u32::from(answer.kind == Kind::AbsSum)),
                Argument::from(answer.out.size() as u32),
                Argument::from(workspace),
                Argument::from(to),
                Argument::from(scratch.overflow()),
            ];
            let arguments = [&plan.columns.arguments(&now)[..], &others].concat();
            let launch = plan.launch(now.count);
            // SAFETY: the kernels have these parameters; they read the columns
            // and write the answers and, where blocks share rows, the workspace.
            unsafe { self.device.launch(stream, kernel, &launch, &arguments)? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On an H200, as [`Sharing::Tall`]'s numbers; `None` for a thread for each
    /// strip.
    fn sharing(dtype: DType, columns: usize, rows: usize) -> Option<(usize, usize, usize)> {
        let build = Build { tally: Tally::Extremes, dtype };
        let resident = 132 * BLOCKS as usize;
        match Sharing::of(columns.div_ceil(build.columns()), rows, 1, resident) {
            Sharing::Short => None,
            Sharing::Tall { width, tiles, splits } => Some((width, tiles, splits)),
        }
    }

    #[test]
    fn few_columns_are_shared_by_all_blocks() {
        assert_eq!(sharing(DType::F32, 16, 1 << 24), Some((4, 1, 264)));
        assert_eq!(sharing(DType::F32, 256, 1 << 20), Some((32, 2, 132)));
        assert_eq!(sharing(DType::F64, 256, 1 << 20), Some((32, 4, 66)));
        assert_eq!(sharing(DType::F32, 1 << 14, 1 << 14), Some((32, 128, 2)));
    }

    #[test]
    fn many_columns_get_a_thread_for_each_strip() {
        assert_eq!(sharing(DType::F32, 1 << 20, 256), None);
        assert_eq!(sharing(DType::F32, 1 << 24, 16), None);
        assert_eq!(sharing(DType::F32, 1000, 10), None);
        assert!(sharing(DType::F32, 1000, 100).is_some());
        let many_tables = |rows| Sharing::of(1, rows, 1 << 20, 264);
        assert_eq!(many_tables(100), Sharing::Short);
        assert_eq!(many_tables(1000), Sharing::Short);
        assert_eq!(many_tables(10_000), Sharing::Tall { width: 1, tiles: 1, splits: 1 });
        // Blocks of many small tables would be more than the rows that they share.
        assert_eq!(Sharing::of(1, 18, 30_534, 264), Sharing::Short);
        assert!(matches!(Sharing::of(62, 71, 17, 264), Sharing::Tall { .. }));
    }

    #[test]
    fn tiles_are_whole_lines_of_about_one_width() {
        assert_eq!(sharing(DType::F32, 20, 100), Some((5, 1, 1)));
        assert_eq!(sharing(DType::F32, 132, 100), Some((24, 2, 1)));
        assert_eq!(sharing(DType::F32, 4 * 65, 100), Some((24, 3, 1)));
    }

    #[test]
    fn no_thread_gets_more_rows_than_its_integers_count() {
        for columns in [1, 7, 100, 5000] {
            for rows in [1 << 20, (1 << 33) + 1, 1 << 41] {
                let (width, _, splits) = sharing(DType::I8, columns, rows).unwrap();
                assert!(rows.div_ceil(splits).div_ceil(THREADS / width) <= MOST_ROWS);
            }
        }
    }

    #[test]
    fn positions_have_room_beside_ranks() {
        let counts = |tally, dtype, rows| Build { tally, dtype }.counts(rows);
        assert!(counts(Tally::Positions, DType::F32, 1 << 32));
        assert!(!counts(Tally::Positions, DType::F32, (1 << 32) + 1));
        assert!(counts(Tally::Positions, DType::Bool, (1 << 32) + 1));
        assert!(counts(Tally::Positions, DType::I64, usize::MAX));
        assert!(counts(Tally::Extremes, DType::F32, usize::MAX));
    }
}
