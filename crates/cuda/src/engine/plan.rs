//! How many blocks of how many threads reduce an array, or rows of one.

use super::kernels::Build;
use crate::device::Launch;

/// The most elements of a block: the superaccumulator in shared memory counts
/// its carries in 32 bits.
const BLOCK_ELEMENTS: u64 = 1 << 29;

/// The most blocks: those whose partial states fit the scratch memory.
pub(super) const MOST_BLOCKS: u32 = 4096;

/// The most blocks of a row where several rows have several blocks each: those
/// whose partial states fit its scratch memory.
pub(super) const MOST_ROW_BLOCKS: u32 = 64;

/// The most rows of a launch.
pub(super) const MOST_ROWS: u32 = 65_535;

/// The most rows that have several blocks each: more rows fill a device.
const MOST_WIDE_ROWS: u32 = 1024;

/// Vectors of a row that take longer than a launch for each of a few does, where these have fewer
/// blocks together than fill a device: 64 MiB. Measured on an H200.
const WORTH_A_LAUNCH: u64 = 4 << 20;

/// The most elements of a launch.
pub const MOST_ELEMENTS: u64 = BLOCK_ELEMENTS * MOST_BLOCKS as u64;

/// A kernel on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    /// What it is compiled for.
    pub build: Build,
    /// The most blocks that the device runs at once.
    pub resident: u32,
}

/// The shape of launches, where a caller wants another than the plan's: tests
/// do, so that small arrays meet many blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Threads of a block: a multiple of 32, up to what the kernel takes.
    pub threads: Option<u32>,
    /// Blocks, up to 4096.
    pub blocks: Option<u32>,
    /// The walk, where there are several.
    pub walk: Option<ForcedWalk>,
}

/// A walk that is taken wherever its kernels can, also where another is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForcedWalk {
    /// Rows and columns as such; others as views.
    Tables,
    /// Everything as views.
    Views,
    /// Outputs of few elements abreast; others as views.
    Abreast,
    /// Everything as views whose elements are found one by one.
    Elements,
    /// Everything by a payload for each output.
    Payloads,
}

/// The launch that reduces `len` elements of `size` bytes, those of a second
/// array included.
pub(super) fn plan(capacity: &Capacity, shape: Shape, len: u64, size: usize) -> Launch {
    let vectors = len.saturating_mul(size as u64).div_ceil(16);
    let resident = u64::from(capacity.resident.max(1));
    let build = &capacity.build;
    let threads = shape.threads.map_or_else(
        || threads_for(vectors, build, resident),
        |threads| (threads / 32).clamp(1, build.threads / 32) * 32,
    );
    let tiles = vectors.div_ceil(u64::from(threads * build.vectors));
    let blocks = shape.blocks.map_or(tiles.clamp(1, resident), |b| u64::from(b.max(1)));
    let blocks = blocks.max(len.div_ceil(BLOCK_ELEMENTS)).min(u64::from(MOST_BLOCKS));
    Launch::linear(u32::try_from(blocks).unwrap_or(MOST_BLOCKS), threads)
        .shared(build.shared_per_thread * threads)
        .dependent()
}

/// The launch that reduces `rows` rows of `len` elements of `size` bytes, those
/// of a second array included, at most [`MOST_ROWS`]; `None` where each is to
/// have a launch of its own.
///
/// Of the shapes that a launch can have, this one is done first if a thread's
/// tiles take one unit of time, a block's beginning and end take two, and blocks
/// that do not fill the device run at most twice as fast for it.
pub(super) fn plan_rows(
    capacity: &Capacity,
    shape: Shape,
    rows: u32,
    len: u64,
    size: usize,
) -> Option<Launch> {
    let vectors = len.saturating_mul(size as u64).div_ceil(16);
    let least = len.div_ceil(BLOCK_ELEMENTS).max(1);
    let most = if rows <= MOST_WIDE_ROWS { u64::from(MOST_ROW_BLOCKS) } else { 1 };
    // With more blocks than this, one launch for each row fills the device too.
    let alone = plan(capacity, shape, len, size);
    let fills = rows < 4 && alone.grid[0] > MOST_ROW_BLOCKS && vectors >= WORTH_A_LAUNCH;
    if rows <= 1 || least > most || fills {
        return None;
    }
    let build = &capacity.build;
    let threads = match shape.threads {
        Some(_) => vec![alone.block[0]],
        // No more than a tile has work for.
        None => (0..5)
            .map(|halved| (build.threads >> halved) / 32 * 32)
            .filter(|&t| t == 32 || t > 32 && vectors > u64::from(t / 2 * build.vectors))
            .chain([32])
            .collect(),
    };
    let blocks = match shape.blocks {
        Some(b) => u64::from(b).clamp(least, most)..=u64::from(b).clamp(least, most),
        None => least..=most,
    };
    let best = threads
        .iter()
        .flat_map(|&t| blocks.clone().map(move |b| (t, b)))
        .min_by_key(|&(t, b)| duration(capacity, u64::from(rows) * b, t, vectors.div_ceil(b)))?;
    let (threads, blocks) = best;
    let mut launch = Launch::linear(u32::try_from(blocks).unwrap_or(MOST_ROW_BLOCKS), threads)
        .shared(build.shared_per_thread * threads)
        .dependent();
    launch.grid[1] = rows;
    Some(launch)
}

/// How long blocks of `vectors` vectors each take, in halves of a tile's time.
fn duration(capacity: &Capacity, blocks: u64, threads: u32, vectors: u64) -> u64 {
    const ENDS: u64 = 2;
    // A multiprocessor has few blocks even if they are small.
    let smaller = u64::from((capacity.build.threads / threads).min(16));
    let slots = u64::from(capacity.resident.max(1)) * smaller;
    let tiles = vectors.div_ceil(u64::from(threads * capacity.build.vectors)).max(1);
    let (waves, rest) = (blocks / slots, blocks % slots);
    let last = if rest == 0 { 0 } else { tiles + tiles * rest / slots + 2 * ENDS };
    waves * 2 * (tiles + ENDS) + last
}

/// Whole blocks where every multiprocessor gets one; smaller ones for less, so
/// that more multiprocessors take part.
fn threads_for(vectors: u64, build: &Build, resident: u64) -> u32 {
    let mut threads = build.threads;
    while threads > 128 && vectors < resident * u64::from(build.vectors * threads) / 2 {
        threads = (threads / 2).next_multiple_of(32);
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Capacity =
        Capacity { build: Build { threads: 512, vectors: 4, shared_per_thread: 0 }, resident: 264 };

    fn shape(len: u64, size: usize) -> (u32, u32) {
        let launch = plan(&H200, Shape::default(), len, size);
        (launch.grid[0], launch.block[0])
    }

    #[test]
    fn large_arrays_fill_the_device_once() {
        assert_eq!(shape(1 << 30, 4), (264, 512));
        assert_eq!(shape(1 << 24, 8), (264, 512));
    }

    #[test]
    fn small_arrays_get_small_blocks() {
        assert_eq!(shape(0, 4), (1, 128));
        assert_eq!(shape(1, 1), (1, 128));
        assert_eq!(shape(1 << 16, 4), (32, 128));
    }

    fn rows(rows: u32, len: u64) -> Option<(u32, u32)> {
        let launch = plan_rows(&H200, Shape::default(), rows, len, 4)?;
        assert_eq!(launch.grid[1], rows);
        Some((launch.grid[0], launch.block[0]))
    }

    #[test]
    fn many_rows_get_a_small_block_each() {
        assert_eq!(rows(65_535, 64), Some((1, 32)));
        assert_eq!(rows(1 << 14, 1 << 14), Some((1, 32)));
        assert_eq!(rows(1 << 10, 1 << 18), Some((1, 128)));
        assert_eq!(rows(256, 1 << 20), Some((1, 512)));
    }

    #[test]
    fn few_rows_get_several_blocks_each() {
        assert_eq!(rows(16, 1 << 24), Some((33, 256)));
        assert_eq!(rows(40, 1 << 16), Some((4, 512)));
    }

    #[test]
    fn rows_that_fill_a_device_have_launches_of_their_own() {
        assert_eq!(rows(1, 100), None);
        assert_eq!(rows(3, 1 << 28), None);
        assert_eq!(rows(3, 1 << 22), Some((64, 512)));
        assert_eq!(rows(2000, 1 << 30), None);
        assert!(rows(3, 1 << 10).is_some());
        assert!(rows(1000, 1 << 30).is_some_and(|(blocks, _)| blocks >= 2));
    }

    #[test]
    fn forced_shapes_hold_for_rows_too() {
        let shape = Shape { threads: Some(64), blocks: Some(3), walk: None };
        let launch = plan_rows(&H200, shape, 7, 1000, 4).unwrap();
        assert_eq!((launch.grid, launch.block), ([3, 7, 1], [64, 1, 1]));
        assert_eq!(plan_rows(&H200, shape, 2000, 1000, 4).unwrap().grid, [1, 2000, 1]);
    }

    #[test]
    fn each_thread_gets_its_shared_memory() {
        let build = Build { threads: 320, vectors: 4, shared_per_thread: 352 };
        let capacity = Capacity { build, resident: 264 };
        for (len, threads) in [(1u64 << 30, 320), (1 << 18, 160), (1, 96)] {
            let launch = plan(&capacity, Shape::default(), len, 8);
            assert_eq!((launch.block[0], launch.shared), (threads, 352 * threads));
        }
    }

    #[test]
    fn no_block_gets_more_than_its_superaccumulator_counts() {
        for len in [1 << 38, (1 << 38) + 1, MOST_ELEMENTS] {
            let (blocks, _) = shape(len, 1);
            assert!(len.div_ceil(u64::from(blocks)) <= BLOCK_ELEMENTS && blocks <= MOST_BLOCKS);
        }
    }

    #[test]
    fn forced_shapes_are_kept_within_bounds() {
        let forced = |threads, blocks| {
            let shape = Shape { threads: Some(threads), blocks: Some(blocks), walk: None };
            let launch = plan(&H200, shape, 1000, 4);
            (launch.grid[0], launch.block[0])
        };
        assert_eq!(forced(64, 3), (3, 64));
        assert_eq!(forced(0, 0), (1, 32));
        assert_eq!(forced(1000, 1 << 20), (MOST_BLOCKS, 512));
    }
}
