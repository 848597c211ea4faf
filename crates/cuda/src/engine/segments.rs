//! Segments of an array: runs of its elements, each of which is an output, in two launches:
//! `kernels/segments.cuh`, or `kernels/segment_tiles.cuh` and then that one.

use super::answer::{Answer, Ask, check_alignment};
use super::catalogue::{
    SEGMENT_LOG_SOME, SEGMENT_PIECE, STRIDED_THREADS, TILE_LOG_GROUPS, TILE_THREADS,
};
use super::kernels::{Program, Tally};
use super::number::Number;
use super::route::{Launches, Machine};
use super::scratch::Scratch;
use super::strided::{MOST_WORDS, wide_words};
use super::{Array, Engine, check, lock};
use crate::device::{Address, Argument, Device, Launch, Stream};
use crate::{Error, Result};
use warpfold_core::op::{AnyState, Kind, Numbers, Op, Rules};
use warpfold_core::{DType, Scalar};

const THREADS: usize = STRIDED_THREADS;
/// The most elements of an array: positions and counts have 32 bits.
const MOST_ELEMENTS: u64 = (1 << 32) - 1;
/// The most elements of an array whose segments may overlap: a block may have all of one,
/// and its superaccumulator counts carries in 32 bits.
const MOST_OVERLAPPING: u64 = 1 << 29;
/// What the list counts: `PIECE_BITS` in the kernels.
const MOST_PIECES: u64 = 1 << 36;
const MOST_LISTED: u64 = 1 << 28;
/// The most segments of a block, 2 to the power of this, and the fewest.
const MOST_GROUPS: u32 = 9;
const FEWEST_GROUPS: u32 = 3;
/// Blocks that each multiprocessor has, if there are segments for them: enough that one with
/// long segments does not keep all others waiting.
const BLOCKS_OF_ONE: u64 = 16;
/// Elements that a warp has of segments in tiles, by their mean, and the fewest segments, 2 to
/// the power of this.
const ELEMENTS_OF_A_WARP: u64 = 8 << 10;
const FEWEST_OF_A_WARP: u32 = 1;
/// Segments in tiles: at least so many, of at most so many elements in the mean.
const FEWEST_IN_TILES: u64 = 64;
const MOST_IN_TILES: u64 = 8 << 10;
/// Words that count, before the tickets: `FIRST_TICKET` in the kernels.
const COUNTERS: u64 = 4;

/// How boundaries lie in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Width {
    /// As `u32`.
    Unsigned32,
    /// As `i32`.
    Signed32,
    /// As `u64` or `i64`: negative ones are beyond all arrays.
    Word64,
}

impl Width {
    /// That of a type of integers, if it has 32 or 64 bits.
    #[must_use]
    pub fn of(dtype: DType) -> Option<Width> {
        Some(match dtype {
            DType::U32 => Width::Unsigned32,
            DType::I32 => Width::Signed32,
            DType::U64 | DType::I64 => Width::Word64,
            _ => return None,
        })
    }

    /// Bytes of a boundary.
    #[must_use]
    pub fn bytes(self) -> u64 {
        if self == Width::Word64 { 8 } else { 4 }
    }
}

/// Where segments are, in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundaries {
    /// All have this length and follow each other.
    Fixed(u64),
    /// Ascending offsets, one more than there are segments.
    Offsets(Address, Width),
    /// Where each begins, and where each ends; they may overlap.
    StartsStops((Address, Width), (Address, Width)),
}

/// Segments of an array in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// How many.
    pub count: u64,
    /// Where they are.
    pub boundaries: Boundaries,
}

impl Segments {
    /// Where boundaries lie: two addresses, and their widths.
    fn places(&self) -> [(Address, Width); 2] {
        match self.boundaries {
            Boundaries::Fixed(_) => [(0, Width::Word64); 2],
            Boundaries::Offsets(at, width) => [(at, width), (at + width.bytes(), width)],
            Boundaries::StartsStops(starts, stops) => [starts, stops],
        }
    }

    /// Refuses memory that is no place for boundaries, or that cannot be read.
    fn check(&self, device: &dyn Device) -> Result<()> {
        if matches!(self.boundaries, Boundaries::Fixed(_)) {
            return Ok(());
        }
        for (address, width) in self.places() {
            let dtype = if width.bytes() == 8 { DType::U64 } else { DType::U32 };
            let array = Array { address, len: self.count, dtype };
            check(array)?;
            if let Some(why) = device.why_unreadable(address, self.count * width.bytes()) {
                return Err(Error::Array { address, len: self.count, dtype, why });
            }
        }
        Ok(())
    }
}

/// How the segments of an array are reduced: two launches, of which the second one is for
/// long segments, and for those that the first one has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    tally: Tally,
    /// Whether the first launch is that of segments in tiles.
    tiles: bool,
    /// Segments of a block, or of a warp if they are in tiles: 2 to the power of this.
    log_groups: u32,
    /// The most elements of a segment that is not listed.
    most: u64,
    /// Blocks of the launches; none of the second one if nothing can be left for it.
    blocks: u32,
    long_blocks: u32,
    /// How many segments can be that long.
    listed: u64,
    at_once: u32,
    /// Words of a superaccumulator.
    wide: usize,
}

impl Plan {
    /// The launches, if this walk takes the segments of an array of `len` elements, and
    /// perhaps an initial value.
    fn of(
        answer: Answer,
        len: u64,
        segments: &Segments,
        has_initial: bool,
        device: Machine<'_>,
    ) -> Option<Plan> {
        let tally = answer.tally().filter(|tally| tally.segments().is_some())?;
        let count = segments.count;
        let overlap = matches!(segments.boundaries, Boundaries::StartsStops(..));
        if len > if overlap { MOST_OVERLAPPING } else { MOST_ELEMENTS } {
            return None;
        }
        let usual = len / count.max(1);
        let most: u64 = if usual >= 512 { 16 << 10 } else { 4 << 10 };
        // Tiles of f64 do not count NaNs beside their sums.
        let counts_beside = answer.omits && answer.ask == Ask::Mean && answer.dtype == DType::F64;
        let tiles = tally.segment_tiles(answer.dtype).is_some()
            && !counts_beside
            && !overlap
            && !has_initial
            && count >= FEWEST_IN_TILES
            && usual <= MOST_IN_TILES;
        let enough = BLOCKS_OF_ONE * u64::from(device.limits.multiprocessors);
        let of_a_block = (count / enough.max(1)).max(1).ilog2();
        let (log_groups, groups) = if tiles {
            let warps = TILE_THREADS as u64 / 32;
            let by_mean = (ELEMENTS_OF_A_WARP / usual.max(1)).max(1).ilog2();
            let by_count = of_a_block.saturating_sub(warps.ilog2());
            let log = by_mean.min(by_count).clamp(FEWEST_OF_A_WARP, TILE_LOG_GROUPS as u32);
            (log, warps << log)
        } else {
            let log = of_a_block.clamp(FEWEST_GROUPS, MOST_GROUPS);
            (log, 1 << log)
        };
        let blocks = u32::try_from(count.div_ceil(groups)).ok()?;
        let blocks = i32::try_from(blocks).ok()?.unsigned_abs();
        let listed = match segments.boundaries {
            Boundaries::Fixed(each) if each <= most => 0,
            Boundaries::StartsStops(..) if len > most => count,
            _ => count.min(len / (most + 1)),
        };
        let pieces_of_one = len.div_ceil(SEGMENT_PIECE as u64);
        let pieces = if overlap {
            listed.checked_mul(pieces_of_one)?
        } else {
            len / SEGMENT_PIECE as u64 + listed
        };
        if listed >= MOST_LISTED || pieces >= MOST_PIECES {
            return None;
        }
        let at_once = device.blocks_at_once(Program::Segments(tally, answer.dtype).blocks());
        // As many runs may have to be done once more, each of which takes its time.
        let left = if tiles { pieces.max(count >> SEGMENT_LOG_SOME).max(1) } else { pieces };
        let long_blocks = match listed {
            0 if !tiles => 0,
            _ => u64::from(at_once).min(left) as u32,
        };
        let wide = wide_words(tally, answer.dtype);
        Some(Plan { tally, tiles, log_groups, most, blocks, long_blocks, listed, at_once, wide })
    }

    /// The kernel of the first launch.
    fn first(&self, dtype: DType) -> Program {
        match self.tiles {
            true => Program::SegmentTiles(self.tally, dtype),
            false => Program::Segments(self.tally, dtype),
        }
    }

    /// Threads of a block of the first launch.
    fn threads(&self) -> u32 {
        if self.tiles { TILE_THREADS as u32 } else { THREADS as u32 }
    }

    /// The most words in which the first launch leaves segments to the second one.
    fn again(&self, count: u64) -> u64 {
        let together = self.log_groups.min(SEGMENT_LOG_SOME as u32);
        if self.tiles { count.div_ceil(1 << together) } else { 0 }
    }

    /// Bytes that are zero between launches, and others.
    fn workspace(&self, count: u64) -> [u64; 2] {
        let of_a_block = 2 * (MOST_WORDS + self.wide) as u64;
        let left = 2 * self.listed + of_a_block * u64::from(self.long_blocks) + self.again(count);
        [8 * (COUNTERS + self.listed), 8 * left]
    }

    /// What these launches are like.
    fn launches(&self, answer: Answer, count: u64) -> Launches {
        Launches {
            kernel: self.first(answer.dtype).name(),
            count: 1 + usize::from(self.long_blocks > 0),
            launch: Launch::linear(self.blocks, self.threads()),
            blocks_at_once: self.at_once,
            bytes_of_a_thread: 64,
            workspace: self.workspace(count).iter().sum(),
        }
    }
}

/// Scratch memory of launches: where they tell of segments that have no answer; what is zero
/// between launches, and what is not.
#[derive(Default)]
struct Memory {
    overflow: Address,
    shared: Address,
    left: Address,
}

/// What is asked of segments.
struct Question<'a> {
    answer: Answer,
    plan: Plan,
    array: Array,
    segments: &'a Segments,
    /// The answer of no elements, if there is one.
    none: Option<u64>,
    initial: Option<u64>,
}

impl Question<'_> {
    /// The parameters of the kernel: the words of `Segments` there.
    fn block(&self, to: Address, memory: &Memory, phase: u32) -> Argument {
        let two = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let Question { answer, plan, array, segments, .. } = self;
        let [begins, ends] = segments.places();
        let fixed = match segments.boundaries {
            Boundaries::Fixed(len) => len,
            _ => 0,
        };
        let Memory { overflow, shared, left: list } = *memory;
        let partials = list + 16 * plan.listed;
        let wides = partials + 16 * MOST_WORDS as u64 * u64::from(plan.long_blocks);
        let again = wides + 16 * plan.wide as u64 * u64::from(plan.long_blocks);
        Argument::block([
            array.address,
            array.len,
            begins.0,
            ends.0,
            fixed,
            segments.count,
            to,
            shared,
            list,
            partials,
            wides,
            again,
            overflow,
            self.none.unwrap_or(0),
            self.initial.unwrap_or(0),
            two(u32::from(self.initial.is_some()), begins.1 as u32),
            two(ends.1 as u32, answer.out.size() as u32),
            two(answer.asked(), answer.flags()),
            two(plan.log_groups, plan.most as u32),
            two(phase, u32::from(self.none.is_none())),
        ])
    }

    /// The bytes of all answers, in whole words.
    fn bytes(&self) -> Option<u64> {
        let bytes = self.segments.count.checked_mul(self.answer.out.size() as u64)?;
        bytes.checked_next_multiple_of(8)
    }
}

/// Operations as kernels know them.
pub(super) fn known(numbers: &[impl Into<Number> + Copy]) -> Vec<Number> {
    numbers.iter().map(|&number| number.into()).collect()
}

/// Whether kernels answer about integers as about floats that are as far from each other.
pub(super) fn is_widened(op: Op, dtype: DType) -> bool {
    op.kind() == Kind::Moments && matches!(op, Op::Var | Op::Std) && !dtype.is_float()
}

/// The number that an operation has of no elements, if it has one.
pub(super) fn none(op: Op, dtype: DType) -> Option<u64> {
    let state = AnyState::identity(op.kind(), dtype).ok()?;
    let value = state.finish(op, &Rules::default()).ok()?;
    Some(value.first().to_bits())
}

impl Engine {
    /// The answers of operations about each segment of an array, as core finishes them
    /// under the default rules; waits for them, once. `None` where no kernel makes them, and
    /// where a segment has no answer: where it does not lie within the array, where it has
    /// no elements and the operation needs some, and where a total does not fit its type.
    ///
    /// An `initial` element takes part in each segment, behind its own.
    ///
    /// # Errors
    /// Arrays and boundaries that cannot be read; an initial value of another type; what
    /// the device says.
    ///
    /// # Safety
    /// The array and the boundaries are in memory of this device, written by what comes
    /// before on the stream and by nobody until this returns.
    pub unsafe fn numbers_of_segments(
        &self,
        numbers: &[impl Into<Number> + Copy],
        array: Array,
        segments: &Segments,
        initial: Option<Scalar>,
        stream: Stream,
    ) -> Result<Vec<Option<Numbers>>> {
        let answer = |questions: &[Option<Question<'_>>], scratch: &mut Scratch| {
            let one = |question: &Option<Question<'_>>| match question {
                // SAFETY: passed on from the caller.
                Some(question) => unsafe { self.answer_segments(question, scratch, stream) },
                None => Ok(None),
            };
            questions.iter().map(one).collect()
        };
        // SAFETY: passed on from the caller.
        unsafe { self.all_of_segments(&known(numbers), array, segments, initial, stream, answer) }
    }

    /// The same, left in the device's memory, of each operation at an address of its own. Waits
    /// for them, and says which are there: none that has no address.
    ///
    /// # Errors
    /// Those of [`numbers_of_segments`](Self::numbers_of_segments), and a misaligned address.
    ///
    /// # Safety
    /// As for [`numbers_of_segments`](Self::numbers_of_segments); and nobody else uses the
    /// memory of the answers, for each operation one of type [`Op::answer_type`] for each
    /// segment, until this returns.
    pub unsafe fn numbers_of_segments_into(
        &self,
        numbers: &[impl Into<Number> + Copy],
        array: Array,
        segments: &Segments,
        initial: Option<Scalar>,
        to: &[Address],
        stream: Stream,
    ) -> Result<Vec<bool>> {
        let outputs = usize::try_from(segments.count).unwrap_or(usize::MAX);
        let answer = |questions: &[Option<Question<'_>>], scratch: &mut Scratch| {
            let mut made = vec![false; questions.len()];
            let each = || questions.iter().zip(to).enumerate();
            for (i, (question, &to)) in each() {
                let Some(question) = question else { continue };
                check_alignment(to, outputs, question.answer.out)?;
                self.remember_segments(question)?;
                // SAFETY: passed on from the caller.
                unsafe { self.launch_segments(question, to, scratch.overflow(), scratch, stream)? };
                made[i] = true;
            }
            if !scratch.saw_overflow(&*self.device, stream)? {
                return Ok(made);
            }
            // Some segment has no answer to one of them.
            for (i, (question, &to)) in each() {
                if let Some(question) = question {
                    // SAFETY: as above.
                    made[i] = unsafe { self.leave_segments(question, to, scratch, stream)? };
                }
            }
            Ok(made)
        };
        // SAFETY: passed on from the caller.
        unsafe { self.all_of_segments(&known(numbers), array, segments, initial, stream, answer) }
    }

    /// What `answer` makes of the operations, where there are kernels for them.
    ///
    /// # Safety
    /// As for [`numbers_of_segments`](Self::numbers_of_segments), of the array, until the stream was
    /// waited for.
    unsafe fn all_of_segments<R>(
        &self,
        numbers: &[Number],
        array: Array,
        segments: &Segments,
        initial: Option<Scalar>,
        stream: Stream,
        answer: impl FnOnce(&[Option<Question<'_>>], &mut Scratch) -> Result<R>,
    ) -> Result<R> {
        self.check_readable(&array.into())?;
        segments.check(&**self.device())?;
        let fits = initial.is_none_or(|value| value.dtype() == array.dtype);
        let initial = initial.map(Scalar::to_bits);
        let widens = numbers.iter().any(|number| is_widened(number.op, array.dtype));
        // SAFETY: passed on from the caller.
        let least = if widens { unsafe { self.least_of_near(array, stream)? } } else { None };
        let scratch = self.scratch(stream)?;
        // Held until the answers are read: another thread's would overwrite them.
        let mut scratch = lock(&scratch);
        let mut wide = array;
        if let Some(least) = least {
            let bytes = 8 * array.len;
            let (address, _) = scratch.chosen.reserve(&*self.device, stream, bytes, bytes)?;
            wide = Array { address, dtype: DType::F64, ..array };
            // SAFETY: passed on from the caller; the room was made here.
            unsafe { self.widen(array, least, address, stream)? };
        }
        let question = |&number: &Number| {
            let array = if is_widened(number.op, array.dtype) { wide } else { array };
            self.question_of_segments(number, array, segments, initial).filter(|_| fits)
        };
        let questions: Vec<Option<Question<'_>>> = numbers.iter().map(question).collect();
        let all = answer(&questions, &mut scratch);
        if least.is_some() {
            scratch.chosen.keep_below(&*self.device, stream, self.machine().workspace())?;
        }
        all
    }

    /// Leaves the answers of an operation about each segment of an array at `to`, without a
    /// wait, and says whether a kernel makes them. What is left of segments that have no answer
    /// means nothing.
    ///
    /// # Errors
    /// Those of [`numbers_of_segments`](Self::numbers_of_segments), and a misaligned `to`.
    ///
    /// # Safety
    /// As for [`numbers_of_segments`](Self::numbers_of_segments), until the stream was waited
    /// for; and nobody else uses the memory of the answers, one of type [`Op::answer_type`]
    /// for each segment, until then.
    pub unsafe fn segments_into(
        &self,
        number: impl Into<Number>,
        array: Array,
        segments: &Segments,
        to: Address,
        stream: Stream,
    ) -> Result<bool> {
        let outputs = usize::try_from(segments.count).unwrap_or(usize::MAX);
        let launch = |questions: &[Option<Question<'_>>], scratch: &mut Scratch| {
            let [Some(question)] = questions else { return Ok(false) };
            check_alignment(to, outputs, question.answer.out)?;
            self.remember_segments(question)?;
            // Nobody looks whether all segments have an answer.
            let overflow = scratch.for_notes(&*self.device, stream)?;
            // SAFETY: passed on from the caller.
            unsafe { self.launch_segments(question, to, overflow, scratch, stream)? };
            Ok(true)
        };
        let number = [number.into()];
        // SAFETY: passed on from the caller.
        unsafe { self.all_of_segments(&number, array, segments, None, stream, launch) }
    }

    /// The question, if a kernel answers it.
    fn question_of_segments<'a>(
        &self,
        number: Number,
        array: Array,
        segments: &'a Segments,
        initial: Option<u64>,
    ) -> Option<Question<'a>> {
        let answer = Answer::of_parts(number, array.dtype)?;
        let beyond = match segments.boundaries {
            Boundaries::Fixed(len) => {
                len.checked_mul(segments.count).is_none_or(|all| all > array.len)
            }
            _ => false,
        };
        let has_initial = initial.is_some();
        let plan = Plan::of(answer, array.len, segments, has_initial, self.machine());
        let plan = plan.filter(|_| !beyond)?;
        Some(Question {
            answer,
            plan,
            array,
            segments,
            none: none(number.op, array.dtype),
            initial,
        })
    }

    /// Remembers how a question is answered, if anybody wants to know.
    fn remember_segments(&self, question: &Question<'_>) -> Result<()> {
        let Question { answer, plan, array, segments, .. } = question;
        self.remember(|| {
            let of = (answer.kind, answer.dtype);
            let bytes = array.len.saturating_mul(answer.dtype.size() as u64);
            Ok(self.explained("segments", plan.launches(*answer, segments.count), of, bytes))
        })
    }

    /// The answers to a question, if all segments have one.
    ///
    /// # Safety
    /// As for [`numbers_of_segments`](Self::numbers_of_segments); `scratch` is the stream's.
    unsafe fn answer_segments(
        &self,
        question: &Question<'_>,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<Option<Numbers>> {
        let device = &**self.device();
        let Question { answer, segments, .. } = question;
        let outputs = usize::try_from(segments.count);
        let (Some(bytes), Ok(outputs)) = (question.bytes(), outputs) else {
            return Err(warpfold_core::Error::TooManyOutputs { outputs: usize::MAX }.into());
        };
        let mut numbers = Numbers::zeros(answer.out, outputs);
        if outputs == 0 {
            return Ok(Some(numbers));
        }
        let (to, _) = scratch.numbers.reserve(device, stream, bytes, bytes)?;
        // SAFETY: passed on from the caller; the room was made here.
        let made = unsafe { self.leave_segments(question, to, scratch, stream)? };
        // SAFETY: the room has as many bytes as the numbers.
        unsafe { device.copy_out(stream, to, numbers.bytes_mut())? };
        scratch.numbers.keep_below(device, stream, self.machine().workspace())?;
        Ok(made.then_some(numbers))
    }

    /// Leaves the answers to a question at `to`, waits for them, and says whether all segments
    /// have one.
    ///
    /// # Safety
    /// As for [`launch_segments`](Self::launch_segments).
    unsafe fn leave_segments(
        &self,
        question: &Question<'_>,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        self.remember_segments(question)?;
        let overflow = scratch.overflow();
        // SAFETY: passed on from the caller.
        unsafe { self.launch_segments(question, to, overflow, scratch, stream)? };
        Ok(!scratch.saw_overflow(&*self.device, stream)?)
    }

    /// Launches what leaves the answers at `to`, and sets the word at `overflow` where a segment
    /// has none.
    ///
    /// # Safety
    /// As for [`numbers_of_segments`](Self::numbers_of_segments), until the stream was waited
    /// for; `to` has room for the answers.
    unsafe fn launch_segments(
        &self,
        question: &Question<'_>,
        to: Address,
        overflow: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<()> {
        let device = &*self.device;
        let plan = &question.plan;
        let dtype = question.answer.dtype;
        let first = (plan.blocks, plan.threads(), plan.first(dtype));
        let second = (plan.long_blocks, THREADS as u32, Program::Segments(plan.tally, dtype));
        let [zeros, left] = plan.workspace(question.segments.count);
        let [shared, left] = scratch.for_views(device, stream, zeros, left)?;
        let memory = Memory { overflow, shared, left };
        for (phase, (blocks, threads, program)) in [first, second].into_iter().enumerate() {
            if blocks == 0 {
                continue;
            }
            let kernel = self.program(program)?;
            let launch = Launch::linear(blocks, threads);
            let block = question.block(to, &memory, phase as u32);
            // SAFETY: the kernel takes this block; it reads the boundaries, and elements of
            // segments that lie within the array, writes an answer for each segment, and
            // uses the scratch memory, which has room for all that are long.
            unsafe { device.launch(stream, kernel, &launch, &[block])? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorder::Recorder;
    use super::super::{Shape, archive};
    use super::*;

    fn plan(op: Op, dtype: DType, len: u64, segments: &Segments) -> Option<Plan> {
        let limits = Recorder::h200();
        let machine = Machine { limits: &limits, shape: Shape::default() };
        Plan::of(Answer::of(op, dtype)?, len, segments, false, machine)
    }

    fn offsets(count: u64) -> Segments {
        Segments { count, boundaries: Boundaries::Offsets(256, Width::Unsigned32) }
    }

    #[test]
    fn kernels_take_blocks_of_this_size() {
        let segments = offsets(10);
        let answer = Answer::of(Op::Sum, DType::F32).unwrap();
        let plan = plan(Op::Sum, DType::F32, 100, &segments).unwrap();
        let array = Array { address: 256, len: 100, dtype: DType::F32 };
        let question =
            Question { answer, plan, array, segments: &segments, none: None, initial: None };
        let bytes = question.block(0, &Memory::default(), 0).bytes().len();
        for name in ["segments_sums_f32", "segment_tiles_sums_f32"] {
            let ptx = archive::module(name, (9, 0)).unwrap();
            let parameter = format!(".param .align 8 .b8 {name}_param_0[{bytes}]");
            assert!(ptx.contains(&parameter), "no {parameter}");
        }
    }

    #[test]
    fn every_listed_segment_and_every_piece_has_room() {
        for len in [0, 1, 4096, 4097, 16 << 10, (16 << 10) + 1, 1 << 20, 1 << 28, (1 << 32) - 1] {
            for count in [1, 2, 100, 1 << 16, 1 << 24, 1 << 31] {
                let segments = offsets(count);
                let plan = plan(Op::Sum, DType::F32, len, &segments).unwrap();
                // No more segments can be longer than what a warp takes.
                assert!(plan.listed >= count.min(len / (plan.most + 1)), "{plan:?}");
                assert_eq!(plan.long_blocks == 0, plan.listed == 0 && !plan.tiles, "{plan:?}");
                let warps = if plan.tiles { u64::from(plan.threads() / 32) } else { 1 };
                assert!((u64::from(plan.blocks) * warps) << plan.log_groups >= count);
                let [zeros, left] = plan.workspace(count);
                // A hundredth of the array, what blocks have, and what may be left.
                let most = len / 100 + (4 << 20) + 8 * plan.again(count);
                assert!(zeros + left < most, "{plan:?} of {len} in {count}");
            }
        }
        let both = ((256, Width::Word64), (512, Width::Signed32));
        let boundaries = Boundaries::StartsStops(both.0, both.1);
        let many = Segments { count: 1000, boundaries };
        assert_eq!(plan(Op::Sum, DType::F32, 1 << 20, &many).unwrap().listed, 1000);
        assert_eq!(plan(Op::Sum, DType::F32, 1 << 30, &many), None);
        let most = Segments { count: 1 << 28, boundaries };
        assert_eq!(plan(Op::Sum, DType::F32, 1 << 20, &most), None);
    }

    #[test]
    fn few_segments_have_many_blocks() {
        let log_groups =
            |count: u64| plan(Op::ArgMax, DType::F32, 1 << 28, &offsets(count)).unwrap().log_groups;
        assert_eq!(log_groups(1), 3);
        assert_eq!(log_groups(1 << 16), 4);
        assert_eq!(log_groups(1 << 18), 6);
        assert_eq!(log_groups(1 << 20), 8);
        assert_eq!(log_groups(1 << 28), 9);
    }

    #[test]
    fn segments_that_are_not_long_are_in_tiles() {
        let tiles = |op, count, boundaries| {
            let segments = Segments { count, boundaries };
            let plan = plan(op, DType::F32, 1 << 28, &segments).unwrap();
            plan.tiles.then_some(plan.log_groups)
        };
        let offsets = Boundaries::Offsets(256, Width::Unsigned32);
        assert_eq!(tiles(Op::Sum, 1 << 24, offsets), Some(8));
        assert_eq!(tiles(Op::Sum, 1 << 20, offsets), Some(5));
        assert_eq!(tiles(Op::Max, 1 << 16, offsets), Some(1));
        assert_eq!(tiles(Op::Sum, 1 << 14, offsets), None);
        assert_eq!(tiles(Op::Sum, 1 << 20, Boundaries::Fixed(256)), Some(5));
        // Few kinds of states are a word or two.
        assert_eq!(tiles(Op::Var, 1 << 20, offsets), None);
        let both = (256, Width::Word64);
        let segments = Segments { count: 1 << 10, boundaries: Boundaries::StartsStops(both, both) };
        assert!(!plan(Op::Sum, DType::F32, 1 << 20, &segments).unwrap().tiles);
    }

    #[test]
    fn what_has_no_kernel_has_no_plan() {
        for (op, dtype) in [(Op::Var, DType::I32), (Op::Prod, DType::I8), (Op::Range, DType::F32)] {
            assert_eq!(plan(op, dtype, 1 << 20, &offsets(10)), None, "{op} of {dtype}");
        }
        assert_eq!(plan(Op::Sum, DType::F32, 1 << 32, &offsets(10)), None);
    }
}
