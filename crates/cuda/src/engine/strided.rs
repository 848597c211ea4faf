//! Any view, reduced where it lies, in one launch: `kernels/strided.cuh`.

use super::Engine;
use super::answer::Answer;
use super::catalogue::STRIDED_MERGED;
use super::kernels::{Program, Tally};
use super::layout::{Layout, Parameters};
use super::route::{Launches, Machine};
use super::scratch::Scratch;
use crate::Result;
use crate::device::{Address, Launch, Stream};
use warpfold_core::DType;
use warpfold_core::layout::Traversal;
use warpfold_core::op::Kind;

/// The most words of an accumulator that blocks leave for each other: `WORDS`
/// there.
pub(super) const MOST_WORDS: usize = 19;
/// Elements for which a thread more is worth its fold, and the same of packs, in chunks.
const FEW: usize = 8;
const FEW_IN_PACKS: usize = 32;
/// Bytes that a thread has under way of a view whose elements lie together, and the
/// elements of another.
const BYTES_AT_ONCE: usize = 64;
const ELEMENTS_AT_ONCE: usize = 16;
/// Packs that a thread has under way.
const PACKS_AT_ONCE: usize = 8;
/// The most elements of a block: the superaccumulator in shared memory counts its
/// carries in 32 bits.
pub(super) const BLOCK_ELEMENTS: usize = 1 << 29;
/// What a thread of a costly accumulator takes at once, as many times as blocks that share an
/// output need to meet, and to leave its answer: 6 us on an H200, where one takes 1 us.
const ALONE: usize = 5;
/// Bytes that neighbouring threads should read together.
const LINE: usize = 128;
/// In `kernels/layout.cuh`.
const BOTH_ENDS: u32 = 16;

/// How outputs and their elements are shared by threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sharing {
    /// Threads of an output in a block, and how many of them are neighbours: powers
    /// of two.
    lanes: usize,
    near: usize,
    /// Blocks side by side, and blocks that share an output.
    blocks: usize,
    splits: usize,
    /// Units of a block.
    share: usize,
}

/// The axis along which the next element is nearest: how far, and how many there
/// are. Axes along which nothing moves do not count.
fn nearest(walk: &Traversal) -> (usize, usize) {
    let steps = walk.dims.iter().map(|d| (d.strides[0].unsigned_abs(), d.len));
    steps.filter(|&(step, _)| step != 0).min().unwrap_or((usize::MAX, 1))
}

/// The power of two that is not above n, of an n from 1 on.
fn power_below(n: usize) -> usize {
    1 << n.max(1).ilog2()
}

impl Sharing {
    /// For elements of `size` bytes, on a device that has so many blocks of so many threads `at_once`.
    /// `costly` says that a thread's first element costs as much as some more; `alone` is
    /// what a block of such takes before others share its output.
    fn of(
        layout: &Layout,
        size: usize,
        costly: bool,
        alone: usize,
        at_once: [usize; 2],
    ) -> Sharing {
        let [resident, threads] = at_once;
        let (outputs, len) = (layout.outputs.len.max(1), layout.units.len.max(1));
        let wanted = resident * threads;
        // Units that neighbours read together at least, if they lie together; those for
        // which a thread more is worth its fold; and those that it has under way.
        let bytes = layout.unit * size;
        let (line, together) = (LINE / bytes, layout.unit > 1);
        let [batch, few] = match layout.pack() {
            _ if together => [BYTES_AT_ONCE.min(8 * bytes) / bytes; 2],
            1 => [ELEMENTS_AT_ONCE, FEW],
            _ => [PACKS_AT_ONCE, FEW_IN_PACKS],
        };
        let ((kept, _), (reduced, run)) = (nearest(&layout.outputs), nearest(&layout.units));
        let near = if kept < reduced || layout.pack() > 1 { 1 } else { power_below(run) };
        let near = if costly { near.min(power_below(len / few)) } else { near };
        // Threads for what lies together: elements of an output, then outputs.
        let least = if near >= line {
            // A warp, or no more than read a line where each of them costs.
            power_below(len / few).clamp(1, if costly { line.clamp(1, 32) } else { 32 })
        } else {
            let abreast = (line / near).min(outputs.next_power_of_two());
            let most = threads / outputs.next_power_of_two().min(threads);
            near.min(power_below(len)).max(most).min(threads / abreast.min(threads))
        };
        let most = if near >= line { threads } else { (threads * near / line).max(least) };
        let mut lanes = least.clamp(1, threads);
        while lanes < most && outputs.saturating_mul(lanes) < wanted && few * lanes <= len {
            lanes *= 2;
        }
        let near = near.min(lanes);
        let blocks = outputs.div_ceil(threads / lanes);
        let least = len.div_ceil(BLOCK_ELEMENTS / layout.unit);
        // No fewer units for a thread than it takes at once.
        let most = (len / (lanes * batch)).max(1);
        // Where blocks that share an output would have to meet for less, they do not.
        let most = if costly && most <= alone { 1 } else { most };
        // What many blocks leave is folded by few threads, one after the other: each
        // costs about half as much as what a thread takes at once.
        let folded = (2 * len / batch).isqrt().max(1);
        let splits = (resident / blocks).clamp(1, most.min(folded)).max(least);
        let share = len.div_ceil(splits);
        // Shares are rounded up: the last of them may be none's.
        Sharing { lanes, near, blocks, splits: len.div_ceil(share), share }
    }
}

/// Words of the superaccumulators that blocks share, of an output: `WIDE_WORDS` in
/// the kernels.
pub(super) fn wide_words(tally: Tally, dtype: DType) -> usize {
    let kind = match tally {
        Tally::Sums if dtype.is_float() => Kind::Sum,
        Tally::Squares | Tally::Variances if dtype.is_float() => Kind::Moments,
        _ => return 0,
    };
    Engine::payload_len(kind, dtype).unwrap_or(0) / 8
}

/// The launch that makes the numbers of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strided {
    program: Program,
    sharing: Sharing,
    launch: Launch,
    at_once: u32,
    /// Words that tell which block is the last of those that share outputs.
    tickets: usize,
    /// Bytes of the workspace, if blocks share outputs: those that are zero between
    /// launches, and others.
    workspace: [u64; 2],
    bytes_of_a_thread: usize,
}

impl Strided {
    /// The launch for a view, if one takes it.
    pub(super) fn plan(answer: Answer, layout: &Layout, device: Machine<'_>) -> Option<Strided> {
        let tally = answer.tally()?;
        let program = match layout.pack() {
            1 => Program::Strided(tally, answer.dtype),
            _ => Program::Packs(tally, answer.dtype),
        };
        let at_once = device.blocks_at_once(program.blocks());
        let threads = program.threads();
        let of_sums = answer.is_of_sums() || tally == Tally::LogSumExps;
        let costly = answer.dtype.is_float() && of_sums;
        let size = answer.dtype.size() * layout.pack();
        // Blocks that a caller forces are there.
        let alone = if device.shape.blocks.is_some() { 0 } else { ALONE };
        let resident = [at_once as usize, threads as usize];
        let mut sharing = Sharing::of(layout, size, costly, alone, resident);
        let (outputs, wide) = (layout.outputs.len * layout.pack(), wide_words(tally, answer.dtype));
        let groups = match sharing.splits {
            parts if layout.pack() > 1 && parts > STRIDED_MERGED => parts.div_ceil(STRIDED_MERGED),
            _ => 0,
        };
        let tickets = sharing.blocks.saturating_mul(1 + groups);
        let zeros = tickets.saturating_add(outputs.saturating_mul(wide));
        let partials = outputs.saturating_mul((sharing.splits + groups) * MOST_WORDS);
        let mut workspace = [8 * zeros as u64, 8 * partials as u64];
        if sharing.splits > 1 && workspace[0].saturating_add(workspace[1]) > device.workspace() {
            if layout.len > BLOCK_ELEMENTS {
                return None;
            }
            (sharing.splits, sharing.share) = (1, layout.units.len);
        }
        if sharing.splits == 1 {
            workspace = [0, 0];
        }
        // There may be as many once more, for the other end.
        let blocks = u32::try_from(sharing.blocks).ok().filter(|&n| n < 1 << 30)?;
        let splits = u16::try_from(sharing.splits).ok()?;
        let grid = [blocks, u32::from(splits), 1];
        let launch = Launch { grid, ..Launch::linear(1, threads) };
        let bytes_of_a_thread = match layout.pack() {
            _ if layout.unit > 1 => BYTES_AT_ONCE,
            1 => ELEMENTS_AT_ONCE * size,
            _ => PACKS_AT_ONCE * size,
        };
        Some(Strided { program, sharing, launch, at_once, tickets, workspace, bytes_of_a_thread })
    }

    /// What this launch is like.
    pub(super) fn launches(&self) -> Launches {
        Launches {
            kernel: self.program.name(),
            count: 1,
            launch: self.launch,
            blocks_at_once: self.at_once,
            bytes_of_a_thread: self.bytes_of_a_thread,
            workspace: self.workspace.iter().sum(),
        }
    }

    /// The launch that answers both ends: every second block has the other one.
    pub(super) fn launch_of_ends(&self) -> Launch {
        let [blocks, splits, depth] = self.launch.grid;
        Launch { grid: [2 * blocks, splits, depth], ..self.launch }
    }
}

impl Engine {
    /// Leaves the numbers of a view at `to` in C order, and those that the next word of what is asked
    /// says at `second`, if there is such a place.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `scratch` is the stream's.
    pub(super) unsafe fn launch_strided(
        &self,
        answer: Answer,
        layout: &Layout,
        plan: &Strided,
        (to, second): (Address, Option<Address>),
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<()> {
        let device = &*self.device;
        let Strided { sharing, tickets, workspace, .. } = *plan;
        let (launch, ends) = match second {
            Some(_) => (plan.launch_of_ends(), 2),
            None => (plan.launch, 1),
        };
        let [zeros, partials] = workspace.map(|bytes| bytes * ends);
        let mut parameters = Parameters {
            out: to,
            apart: second.map_or(0, |second| second.wrapping_sub(to).cast_signed())
                / answer.out.size() as i64,
            overflow: scratch.overflow(),
            initial: answer.initial,
            ask: answer.asked(),
            flags: answer.flags() | if second.is_some() { BOTH_ENDS } else { 0 },
            log_lanes: sharing.lanes.trailing_zeros(),
            log_near: sharing.near.trailing_zeros(),
            share: sharing.share as u32,
            ..Parameters::default()
        };
        if sharing.splits > 1 {
            let [shared, left] = scratch.for_views(device, stream, zeros, partials)?;
            parameters.tickets = shared;
            parameters.wides = shared + 8 * tickets as u64;
            parameters.partials = left;
        }
        let kernel = self.program(plan.program)?;
        // SAFETY: the kernels take this block; they read the view's elements, write an
        // answer for each output, and use the scratch memory, which has room for all
        // that share an output.
        unsafe { device.launch(stream, kernel, &launch, &[layout.block(&parameters)]) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::STRIDED_THREADS as THREADS;
    use super::*;

    /// On an H200: of an array in C order, some axes of which are reduced.
    fn sharing(size: usize, axes: &[(usize, bool)], costly: bool) -> Option<(Sharing, Layout)> {
        let mut stride = size.cast_signed();
        let (mut kept, mut reduced) = (Vec::new(), Vec::new());
        for &(len, is_reduced) in axes.iter().rev() {
            let side = if is_reduced { &mut reduced } else { &mut kept };
            side.insert(0, (len, [stride, 0]));
            stride *= len.cast_signed();
        }
        let layout = Layout::new(0, size, &kept, &reduced, false)?;
        Some((Sharing::of(&layout, size, costly, ALONE, [132 * 4, THREADS]), layout))
    }

    fn of_sums(size: usize, axes: &[(usize, bool)]) -> Sharing {
        sharing(size, axes, false).unwrap().0
    }

    #[test]
    fn neighbours_take_what_lies_together() {
        // Long rows: a warp or more for each.
        let rows = of_sums(4, &[(100_000, false), (1000, true)]);
        assert_eq!((rows.lanes, rows.near), (32, 32));
        // Columns: a thread for each.
        let columns = of_sums(4, &[(100, true), (1_000_000, false)]);
        assert_eq!((columns.lanes, columns.near), (1, 1));
        // Runs of 8 bytes: two threads for a run, and outputs side by side.
        let runs = of_sums(1, &[(100_000, true), (1000, false), (8, true)]);
        assert_eq!((runs.near, THREADS / runs.lanes * runs.near), (2, LINE / 4));
    }

    #[test]
    fn few_outputs_are_shared_by_blocks() {
        let one = of_sums(4, &[(7, true), (1 << 20, true)]);
        assert_eq!((one.lanes, one.blocks), (256, 1));
        assert!(one.splits > 500, "{one:?}");
        let many = of_sums(4, &[(1 << 20, false), (7, true)]);
        assert_eq!(many.splits, 1);
        // What a block takes in a few turns it has for itself, if its end is what takes long.
        let splits = |len, costly| sharing(4, &[(len, true)], costly).unwrap().0.splits;
        assert_eq!(splits(1 << 14, true), 1);
        assert!(splits(1 << 15, true) > 1 && splits(1 << 14, false) > 1);
    }

    #[test]
    fn every_output_has_a_thread_and_no_block_too_much() {
        let lens = [1, 2, 3, 5, 8, 31, 64, 100, 1000, 70_000, (1 << 31) - 1];
        for size in [1, 2, 4, 8] {
            for outputs in lens {
                for len in lens.into_iter().filter(|len| outputs * len < 1 << 40) {
                    for axes in [[(outputs, false), (len, true)], [(len, true), (outputs, false)]] {
                        for costly in [false, true] {
                            let Some((of, layout)) = sharing(size, &axes, costly) else {
                                continue;
                            };
                            let note = || format!("{of:?} of {axes:?}, {size} bytes");
                            let Sharing { lanes, near, splits, share, .. } = of;
                            let powers = lanes.is_power_of_two() && near.is_power_of_two();
                            assert!(powers && near <= lanes && lanes <= THREADS, "{}", note());
                            assert!(of.blocks * (THREADS / lanes) >= outputs, "{}", note());
                            let units = layout.units.len;
                            assert!(splits * share >= units, "{}", note());
                            assert!((splits - 1) * share < units, "{}", note());
                            assert!(share * layout.unit <= BLOCK_ELEMENTS, "{}", note());
                        }
                    }
                }
            }
        }
    }
}
