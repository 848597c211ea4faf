//! How many blocks of how many threads reduce an array.

use super::kernels::Build;
use crate::device::Launch;

/// The most elements of a block: the superaccumulator in shared memory counts
/// its carries in 32 bits.
const BLOCK_ELEMENTS: u64 = 1 << 29;

/// The most blocks: those whose partial states fit the scratch memory.
pub(super) const MOST_BLOCKS: u32 = 4096;

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
        .early()
}

/// The launch that folds a fixed tree in so many tasks of a warp each, and leaves
/// so many words of elements as they are.
pub(super) fn plan_tree(capacity: &Capacity, shape: Shape, tasks: u64, edge_words: u64) -> Launch {
    let resident = u64::from(capacity.resident.max(1));
    let most = capacity.build.threads / 32;
    // A few warps for the ends, and more only where every multiprocessor has a task.
    let wanted = tasks.div_ceil(resident).next_power_of_two().clamp(4, u64::from(most));
    let warps = shape.threads.map_or(wanted as u32, |threads| (threads / 32).clamp(1, most));
    let blocks = shape.blocks.map_or_else(
        || tasks.max(edge_words.div_ceil(512)).clamp(1, resident),
        |b| u64::from(b.clamp(1, MOST_BLOCKS)),
    );
    Launch::linear(u32::try_from(blocks).unwrap_or(MOST_BLOCKS), 32 * warps).early()
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
    fn trees_spread_over_the_device_before_they_fill_it() {
        let build = Build { threads: 512, vectors: 4, shared_per_thread: 0 };
        let capacity = Capacity { build, resident: 132 };
        let shape = |tasks, edges| {
            let launch = plan_tree(&capacity, Shape::default(), tasks, edges);
            (launch.grid[0], launch.block[0])
        };
        assert_eq!(shape(0, 100), (1, 128));
        assert_eq!(shape(0, 8190), (16, 128));
        assert_eq!(shape(128, 0), (128, 128));
        assert_eq!(shape(1 << 10, 0), (132, 256));
        assert_eq!(shape(1 << 17, 8190), (132, 512));
        let forced = Shape { threads: Some(64), blocks: Some(3) };
        assert_eq!(plan_tree(&capacity, forced, 0, 0), Launch::linear(3, 64).early());
    }

    #[test]
    fn small_arrays_get_small_blocks() {
        assert_eq!(shape(0, 4), (1, 128));
        assert_eq!(shape(1, 1), (1, 128));
        assert_eq!(shape(1 << 16, 4), (32, 128));
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
            let shape = Shape { threads: Some(threads), blocks: Some(blocks) };
            let launch = plan(&H200, shape, 1000, 4);
            (launch.grid[0], launch.block[0])
        };
        assert_eq!(forced(64, 3), (3, 64));
        assert_eq!(forced(0, 0), (1, 32));
        assert_eq!(forced(1000, 1 << 20), (MOST_BLOCKS, 512));
    }
}
