//! How many blocks of how many threads reduce an array.

use super::kernels::Bounds;
use crate::device::{Launch, Limits};

/// Vectors of 16 bytes that a thread takes from a tile; `VECTORS` in
/// `kernels/load.cuh`.
const VECTORS: u64 = 4;

/// The most elements of a block: the superaccumulator in shared memory counts
/// its carries in 32 bits.
const BLOCK_ELEMENTS: u64 = 1 << 29;

/// The most blocks: those whose partial states fit the scratch memory.
pub(super) const MOST_BLOCKS: u32 = 4096;

/// The most elements of a launch.
pub const MOST_ELEMENTS: u64 = BLOCK_ELEMENTS * MOST_BLOCKS as u64;

/// The shape of launches, where a caller wants another than the plan's: tests
/// do, so that small arrays meet many blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Threads of a block: a multiple of 32 up to what the kernel is compiled
    /// for, 512 or 256.
    pub threads: Option<u32>,
    /// Blocks, up to 4096.
    pub blocks: Option<u32>,
}

/// The launch that reduces `len` elements of `size` bytes, those of a second
/// array included.
pub(super) fn plan(limits: &Limits, bounds: Bounds, shape: Shape, len: u64, size: usize) -> Launch {
    let vectors = len.saturating_mul(size as u64).div_ceil(16);
    let resident = u64::from(limits.multiprocessors.max(1) * bounds.blocks);
    let threads = shape.threads.map_or_else(
        || threads_for(bounds.threads, vectors, resident),
        |threads| (threads / 32).clamp(1, bounds.threads / 32) * 32,
    );
    let tiles = vectors.div_ceil(u64::from(threads) * VECTORS);
    let blocks = shape.blocks.map_or(tiles.clamp(1, resident), |b| u64::from(b.max(1)));
    let blocks = blocks.max(len.div_ceil(BLOCK_ELEMENTS)).min(u64::from(MOST_BLOCKS));
    Launch::linear(u32::try_from(blocks).unwrap_or(MOST_BLOCKS), threads)
}

/// Whole blocks where every multiprocessor gets one; smaller ones for less, so
/// that more multiprocessors take part.
fn threads_for(most: u32, vectors: u64, resident: u64) -> u32 {
    let mut threads = most;
    while threads > 128 && vectors < resident * VECTORS * u64::from(threads) / 2 {
        threads /= 2;
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            name: String::new(),
            capability: (9, 0),
            multiprocessors: 132,
            threads_per_block: 1024,
            shared_per_block: 227 << 10,
            l2_bytes: 50 << 20,
            memory: 140 << 30,
        }
    }

    const USUAL: Bounds = Bounds { threads: 512, blocks: 2 };

    fn shape(len: u64, size: usize) -> (u32, u32) {
        let launch = plan(&limits(), USUAL, Shape::default(), len, size);
        (launch.grid[0], launch.block[0])
    }

    #[test]
    fn large_arrays_fill_the_device_once() {
        assert_eq!(shape(1 << 30, 4), (264, 512));
        assert_eq!(shape(1 << 24, 8), (264, 512));
    }

    #[test]
    fn kernels_with_smaller_blocks_have_more_of_them() {
        let bounds = Bounds { threads: 256, blocks: 3 };
        let launch = plan(&limits(), bounds, Shape::default(), 1 << 28, 16);
        assert_eq!((launch.grid[0], launch.block[0]), (396, 256));
        let shape = Shape { threads: Some(512), blocks: Some(2) };
        assert_eq!(plan(&limits(), bounds, shape, 1 << 28, 16).block[0], 256);
    }

    #[test]
    fn small_arrays_get_small_blocks() {
        assert_eq!(shape(0, 4), (1, 128));
        assert_eq!(shape(1, 1), (1, 128));
        assert_eq!(shape(1 << 16, 4), (32, 128));
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
            let launch = plan(&limits(), USUAL, shape, 1000, 4);
            (launch.grid[0], launch.block[0])
        };
        assert_eq!(forced(64, 3), (3, 64));
        assert_eq!(forced(0, 0), (1, 32));
        assert_eq!(forced(1000, 1 << 20), (MOST_BLOCKS, 512));
    }
}
