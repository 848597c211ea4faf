//! Short rows, many of them side by side in a block: `kernels/rows.cuh`.

use super::Engine;
use super::answer::Answer;
use super::catalogue::{ROW_THREADS, VECTORS};
use super::kernels::{Program, Tally};
use super::parts::{Part, parts};
use super::route::{Launches, MODEST, Machine, is_ragged};
use super::table::{Table, offset, unit};
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::DType;
use warpfold_core::layout::Dim;
use warpfold_core::op::Kind;

const THREADS: u32 = ROW_THREADS as u32;
const WARP: usize = 32;

/// Bytes of the longest rows that a warp reads at once.
pub(super) const MOST_BYTES: usize = 16 * VECTORS * WARP;
/// Parts of the longest rows that it reads in several. Measured on an H200: with them, rows of 2 to 6 KiB
/// take 0.4 to 0.9 of the time of a payload for each, and those of 8 KiB as long. But rows of elements of one byte
/// in tables of more than 16 MiB take 1.0 to 1.8 times as long, and so do rows of more than 4 KiB that are aligned
/// in many ways, 1.1 to 1.6 times.
const MOST_PARTS: usize = 4;
const PARTS_OF_RAGGED: usize = 2;

/// More launches than this are not worth it...
const MANY_LAUNCHES: usize = 32;
/// ... unless each has so many rows.
const WORTH_A_LAUNCH: usize = 1 << 14;

/// How rows are shared by the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sharing {
    /// Lanes of a row, a power of two, and vectors that each of them takes at once.
    lanes: usize,
    each: usize,
    /// How often they do.
    parts: usize,
}

impl Sharing {
    /// For rows that touch at most `vectors` vectors; `None` if those are too many for a warp
    /// that takes no row in parts.
    ///
    /// As few lanes idle as can be. Of equally good ways, several vectors to a
    /// lane save shuffles, but neighbouring lanes should read at least the 32
    /// bytes that memory gives at once.
    fn of(vectors: usize, in_parts: bool) -> Option<Sharing> {
        let ways = [4, 2, 1].into_iter().flat_map(|each| {
            let alone = (0..6).map(move |shift| Sharing { lanes: 1 << shift, each, parts: 1 });
            let parts = vectors.div_ceil(WARP * each);
            alone.chain((in_parts && parts > 1).then_some(Sharing { lanes: WARP, each, parts }))
        });
        let fits = |way: &Sharing| way.vectors() >= vectors;
        let together = |way: &Sharing| way.lanes >= 2.min(vectors);
        ways.filter(|way| fits(way) && together(way)).min_by_key(|way| way.vectors())
    }

    /// Vectors of a row, idle ones with them.
    fn vectors(self) -> usize {
        self.lanes * self.each * self.parts
    }

    /// Rows of a warp's tile.
    fn rows(self) -> usize {
        WARP / self.lanes * (VECTORS / self.each)
    }
}

/// Bytes of the longest rows that a warp takes for an answer.
pub(super) fn most_bytes(answer: Answer, table: &Table) -> usize {
    let elements = table.elements.len.saturating_mul(table.outputs.len);
    let parts = match table.dtype.size() {
        _ if table.dtype.is_float() && answer.is_of_sums() => 1,
        1 if elements > MODEST => 1,
        4.. if is_ragged(table) => PARTS_OF_RAGGED,
        _ => MOST_PARTS,
    };
    parts * MOST_BYTES
}

/// The vectors that a row of `bytes` bytes touches at most, if rows begin at
/// `at` and `stride` bytes apart.
fn vectors(at: Address, stride: isize, bytes: usize) -> usize {
    // Every row begins at a multiple of this power of two.
    let unit = unit(&[at, stride.unsigned_abs() as u64]) as usize;
    (bytes + 16 - unit).div_ceil(16)
}

/// The widest range of elements for which their plain sum is exact, as
/// `kernels/row_sum.cuh` counts it; nothing for types that need no such limit.
fn spread(dtype: DType, len: usize) -> u32 {
    let significand = match dtype {
        DType::F32 => 24,
        DType::BF16 => 8,
        _ => return 0,
    };
    let growth = len.next_power_of_two().trailing_zeros();
    53u32.saturating_sub(significand + growth) << 24
}

/// The blocks of a launch.
fn blocks(tiles: usize, at_once: u32) -> u32 {
    let needed = tiles.div_ceil(THREADS as usize / WARP);
    u32::try_from(needed).unwrap_or(u32::MAX).clamp(1, at_once)
}

/// Short rows that lie in memory as such, and the launches that make their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShortRows {
    tally: Tally,
    /// The rows of a launch; their bytes and elements.
    rows: Dim,
    bytes: usize,
    len: usize,
    launches: Vec<Rows>,
    /// Blocks that the device runs at once.
    at_once: u32,
}

/// The rows of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows {
    at: Address,
    /// The position of the first output.
    first: usize,
    sharing: Sharing,
    blocks: u32,
}

impl ShortRows {
    /// The launches for a table, if it is one of short rows.
    pub(super) fn plan(answer: Answer, table: &Table, device: Machine<'_>) -> Option<ShortRows> {
        let tally = answer.tally().filter(|tally| tally.has_rows(table.dtype))?;
        let len = table.elements.len;
        let bytes = len.saturating_mul(table.dtype.size());
        let most = most_bytes(answer, table);
        if !table.has_rows() || bytes > most {
            return None;
        }
        let none = Dim { len: 1, strides: [0; 2], index_step: 0 };
        let (rows, outer) = match table.outputs.dims.split_last() {
            Some((rows, outer)) => (*rows, outer),
            None => (none, &[][..]),
        };
        let many = table.outputs.len / rows.len > MANY_LAUNCHES;
        if many && rows.len < WORTH_A_LAUNCH {
            return None;
        }
        let at_once = device.blocks_at_once(Program::ShortRows(tally, answer.dtype).blocks());
        let launch = |part: Part| {
            let at = offset(table.at, part.offsets)[0];
            let sharing = Sharing::of(vectors(at, rows.strides[0], bytes), most > MOST_BYTES)?;
            let blocks = blocks(rows.len.div_ceil(sharing.rows()), at_once);
            Some(Rows { at, first: part.first * rows.len, sharing, blocks })
        };
        let launches = parts(outer, 1).map(launch).collect::<Option<_>>()?;
        Some(ShortRows { tally, rows, bytes, len, launches, at_once })
    }

    /// What these launches are like.
    pub(super) fn launches(&self, answer: Answer) -> Launches {
        let blocks = self.launches.first().map_or(0, |rows| rows.blocks);
        Launches {
            kernel: self.program(answer).name(),
            count: self.launches.len(),
            launch: Launch::linear(blocks, THREADS),
            blocks_at_once: self.at_once,
            bytes_of_a_thread: 16 * VECTORS,
            workspace: 0,
        }
    }

    fn program(&self, answer: Answer) -> Program {
        Program::ShortRows(self.tally, answer.dtype)
    }
}

impl Engine {
    /// Leaves the numbers of short rows at `to` in the order of the walk.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `overflow` is the word for totals
    /// that do not fit in the stream's scratch memory.
    pub(super) unsafe fn launch_short_rows(
        &self,
        answer: Answer,
        plan: &ShortRows,
        to: Address,
        overflow: Address,
        stream: Stream,
    ) -> Result<()> {
        let ShortRows { rows, bytes, len, .. } = *plan;
        let kernel = self.program(plan.program(answer))?;
        let stride = rows.strides[0];
        let dense = stride == bytes.cast_signed();
        for &Rows { at, first, sharing, blocks } in &plan.launches {
            let launch = Launch::linear(blocks, THREADS);
            let end = if dense { at + (bytes * rows.len) as u64 } else { 0 };
            let to = to + (first * answer.out.size()) as u64;
            let arguments = [
                Argument::from(at),
                Argument::from(rows.len as u64),
                Argument::from(stride as i64),
                Argument::from(len as u64),
                Argument::from(if dense { at } else { 0 }),
                Argument::from(end),
                Argument::from(sharing.lanes.trailing_zeros()),
                Argument::from(sharing.each as u32),
                Argument::from(sharing.parts as u32),
                Argument::from(answer.asked()),
                Argument::from(u32::from(answer.kind == Kind::AbsSum)),
                Argument::from(spread(answer.dtype, len)),
                Argument::from(to),
                Argument::from(overflow),
            ];
            // SAFETY: the kernels have these parameters; they read the rows, or
            // all of a dense array, and write the answers.
            unsafe { self.device.launch(stream, kernel, &launch, &arguments)? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_by_as_few_lanes_as_read_together() {
        let shared = |vectors| Sharing::of(vectors, false).map(|s| (s.lanes, s.each));
        assert_eq!(shared(1), Some((1, 1)));
        assert_eq!(shared(2), Some((2, 1)));
        assert_eq!(shared(4), Some((2, 2)));
        assert_eq!(shared(5), Some((2, 4)));
        assert_eq!(shared(64), Some((16, 4)));
        assert_eq!(shared(128), Some((32, 4)));
        assert_eq!(shared(129), None);
    }

    #[test]
    fn misaligned_rows_touch_a_vector_more() {
        assert_eq!(vectors(256, 64, 64), 4);
        assert_eq!(vectors(256, 60, 60), 5);
        assert_eq!(vectors(260, 64, 64), 5);
        assert_eq!(vectors(256, 8, 8), 1);
        assert_eq!(vectors(256, 0, 4), 1);
        assert_eq!(vectors(257, 1, 1), 1);
        assert_eq!(vectors(257, 3, 3), 2);
    }

    #[test]
    fn sums_of_rows_fit_53_bits() {
        assert_eq!(spread(DType::F32, 16), 25 << 24);
        assert_eq!(spread(DType::F32, 17), 24 << 24);
        assert_eq!(spread(DType::BF16, 1024), 35 << 24);
    }
}
