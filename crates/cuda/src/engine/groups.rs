//! Groups of the rows of a column by key, in two launches of one kernel: `kernels/groups.cuh`.

use super::answer::{Answer, Ask, check_alignment};
use super::catalogue::{GROUP_ROWS, GROUP_THREADS, GROUP_WINDOW};
use super::kernels::{Program, Tally};
use super::number::Number;
use super::route::{Launches, Machine};
use super::scratch::GroupMemory;
use super::segments::none;
use super::tiles::LEAST_WORKSPACE;
use super::{Array, Engine, lock};
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::DType;
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::Op;

const THREADS: usize = GROUP_THREADS;
/// Rows that a block takes at once.
const TILE: u64 = (GROUP_THREADS * GROUP_ROWS) as u64;
/// The most rows: words of 64 bits have room for as many digits.
pub(super) const MOST_ROWS: u64 = (1 << 31) - 1;
/// The most groups: bits of marks and threads of the second launch are counted in 32 bits.
const MOST_GROUPS: u64 = 1 << 30;
/// Slots of a block and their copies for neighbouring lanes, together.
const PLACES: u32 = 2048;
/// The most copies: one for each lane.
const MOST_COPIES: u32 = 32;
/// Copies of slots that groups share, where each cannot have its own: keys that come often
/// come to several lanes of a warp.
const SHARED_COPIES: u32 = 4;
/// The part of a device's memory that accumulators of groups may take, and that is kept for the
/// next question of what one needs. More groups are answered by rows in their order.
pub(super) const PART_OF_MEMORY: u64 = 256;
/// Words of bits that say something of groups: `Mark` of the kernels.
const MARKS: u64 = 3;

/// The rows' groups, in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// A key for each row: integers.
    pub keys: Array,
    /// The key of group 0, as its type's bits; the next group's is one more.
    pub least: u64,
    /// How many groups there are.
    pub count: u64,
}

impl Groups {
    /// Whether kernels number groups by these keys.
    fn has_kernel(&self) -> bool {
        let Groups { keys, count, .. } = *self;
        // A difference of shorter keys is taken modulo their range.
        let range = 1u64.checked_shl(8 * keys.dtype.size() as u32).unwrap_or(u64::MAX);
        let integers = !keys.dtype.is_float() && keys.dtype != DType::Bool;
        integers && (1..=MOST_GROUPS.min(range)).contains(&count) && keys.len <= MOST_ROWS
    }
}

/// Which bits of an element make it count, if they are one of so many numbers from a least one
/// on: those that are not zero, and no NaNs if these are omitted, or those that are NaNs.
fn counted_bits(Answer { ask, dtype, omits, .. }: Answer) -> [u64; 3] {
    let of_nans = matches!(ask, Ask::Nans | Ask::Numbers);
    let infinite = match dtype {
        DType::F64 => f64::INFINITY.to_bits(),
        DType::F32 => u64::from(f32::INFINITY.to_bits()),
        DType::F16 => u64::from(f16::INFINITY.to_bits()),
        DType::BF16 => u64::from(bf16::INFINITY.to_bits()),
        _ => return [if of_nans { 0 } else { u64::MAX }, 1, u64::MAX],
    };
    let magnitude = (1 << (8 * dtype.size() - 1)) - 1;
    match (of_nans, omits) {
        (true, _) => [magnitude, infinite + 1, magnitude - infinite],
        (_, true) => [magnitude, 1, infinite],
        _ => [magnitude, 1, u64::MAX],
    }
}

/// How groups are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    tally: Tally,
    /// Words of a group's accumulator.
    words: u64,
    log_slots: u32,
    log_copies: u32,
    /// Bytes of dynamic shared memory.
    shared: u32,
    blocks: u32,
    finishing: u32,
    at_once: u32,
}

/// Words of a group's accumulator of sums: `WORDS` in `kernels/group_terms.cuh`.
fn words_of_sums(dtype: DType) -> u64 {
    // Places of the last bit of an element, the lowest of which is 0.
    let places = |exponents: u64, step: u64, span: u64| (exponents - 3) / step + span;
    match dtype {
        DType::F64 => places(1 << 11, 32, 3),
        DType::F32 | DType::BF16 => places(1 << 8, 8, 1),
        DType::F16 => places(1 << 5, 8, 1),
        _ if dtype.size() == 8 => 2,
        _ => 1,
    }
}

impl Plan {
    /// The launches, if kernels take this question.
    fn of(answer: Answer, groups: &Groups, device: Machine<'_>) -> Option<Plan> {
        let tally = answer.tally().filter(|tally| tally.groups(answer.dtype).is_some())?;
        if !groups.has_kernel() {
            return None;
        }
        let words = if tally == Tally::Sums { words_of_sums(answer.dtype) } else { 1 };
        let most = (device.limits.memory / PART_OF_MEMORY).max(LEAST_WORKSPACE);
        if 8 * words * groups.count > most {
            return None;
        }
        let count = groups.count as u32;
        let (slots, copies) = match count.next_power_of_two() {
            slots if slots <= PLACES => (slots, (PLACES / slots).min(MOST_COPIES)),
            _ => (PLACES / SHARED_COPIES, SHARED_COPIES),
        };
        let owners = if count <= slots { 0 } else { slots };
        // Words of 32 bits.
        let held = match tally {
            Tally::Sums => slots * copies * (2 * words.min(GROUP_WINDOW as u64) as u32 + 1),
            Tally::Counts => slots * copies * 2,
            _ => slots * 2,
        };
        let at_once = device.blocks_at_once(Program::Groups(tally, answer.dtype).blocks());
        let blocks = |tiles: u64| tiles.clamp(1, u64::from(at_once)) as u32;
        Some(Plan {
            tally,
            words,
            log_slots: slots.ilog2(),
            log_copies: copies.ilog2(),
            shared: 4 * (owners + held),
            blocks: blocks(groups.keys.len.div_ceil(TILE)),
            finishing: blocks(groups.count.div_ceil(THREADS as u64)),
            at_once,
        })
    }

    /// Bytes that are zero between questions.
    fn zeros(&self, groups: &Groups) -> u64 {
        8 * self.words * groups.count
    }

    /// What these launches are like.
    fn launches(&self, answer: Answer, groups: &Groups) -> Launches {
        Launches {
            kernel: Program::Groups(self.tally, answer.dtype).name(),
            count: 2,
            launch: Launch::linear(self.blocks, THREADS as u32).shared(self.shared),
            blocks_at_once: self.at_once,
            bytes_of_a_thread: GROUP_ROWS * (answer.dtype.size() + groups.keys.dtype.size()),
            workspace: self.zeros(groups) + Memory::counted(groups) + groups.count,
        }
    }
}

/// Scratch memory of a question.
#[derive(Clone, Copy, Default)]
pub(super) struct Memory {
    notes: Address,
    overflow: Address,
    words: Address,
    rows: Address,
    marks: Address,
    pub(super) present: Address,
}

impl Memory {
    /// Words of a mark.
    fn mark_words(groups: &Groups) -> u64 {
        groups.count.div_ceil(32)
    }

    /// Bytes of the numbers of rows and of the marks behind them.
    fn counted(groups: &Groups) -> u64 {
        4 * (groups.count + MARKS * Memory::mark_words(groups))
    }
}

/// What is asked of groups.
pub(super) struct Question<'a> {
    pub(super) answer: Answer,
    plan: Plan,
    values: Address,
    groups: &'a Groups,
    /// The answer of no rows, if there is one.
    none: Option<u64>,
    /// Whether it matters which groups have rows.
    pub(super) counts_rows: bool,
}

impl Question<'_> {
    /// The parameters of the kernel: the words of `Groups` there.
    fn block(&self, to: Address, memory: &Memory, phase: u32) -> Argument {
        let two = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let Question { answer, plan, values, groups, none, counts_rows } = self;
        let Memory { notes, overflow, words, rows, marks, present } = *memory;
        let [mask, least, counted] = counted_bits(*answer);
        let counts_rows = *counts_rows || answer.ask == Ask::Mean;
        Argument::block([
            *values,
            groups.keys.address,
            groups.keys.len,
            groups.least,
            words,
            rows,
            marks,
            notes,
            to,
            present,
            overflow,
            none.unwrap_or(0),
            mask,
            least,
            counted,
            two(groups.count as u32, Memory::mark_words(groups) as u32),
            two(plan.log_slots, plan.log_copies),
            two(groups.keys.dtype.size() as u32, u32::from(counts_rows)),
            two(answer.asked(), answer.flags()),
            two(phase, u32::from(answer.dtype.is_signed_int())),
        ])
    }
}

impl Engine {
    /// Leaves the answers of an operation about the rows of each group at `to`, without a
    /// wait, and says whether a kernel makes them. What is left of groups without rows may
    /// mean nothing, and so does everything if a key is no group's or a total does not fit.
    ///
    /// # Errors
    /// Those of [`group`](Self::group), and a misaligned `to`.
    ///
    /// # Safety
    /// As for [`group`](Self::group), until the stream was waited
    /// for; and nobody else uses the memory of the answers, one of type [`Op::answer_type`]
    /// for each group, until then.
    pub unsafe fn groups_into(
        &self,
        op: Op,
        values: Array,
        groups: &Groups,
        to: Address,
        stream: Stream,
    ) -> Result<bool> {
        self.check_groups(values, groups.keys)?;
        let Some(question) = self.question_of_groups(op.into(), values, groups, false) else {
            return Ok(false);
        };
        let outputs = usize::try_from(groups.count).unwrap_or(usize::MAX);
        check_alignment(to, outputs, question.answer.out)?;
        let scratch = self.scratch(stream)?;
        let mut scratch = lock(&scratch);
        self.remember_groups(&question)?;
        let words = scratch.words_of_groups(&*self.device, stream)?;
        // SAFETY: passed on from the caller.
        unsafe { self.launch_groups(&question, to, words, &mut scratch.groups, stream)? };
        Ok(true)
    }

    /// Refuses columns that cannot be read, or are not of one length.
    pub(super) fn check_groups(&self, values: Array, keys: Array) -> Result<()> {
        for array in [values, keys] {
            self.check_readable(&array.into())?;
        }
        if values.len != keys.len {
            let (left, right) = (vec![keys.len as usize], vec![values.len as usize]);
            return Err(warpfold_core::Error::ShapeMismatch { left, right }.into());
        }
        Ok(())
    }

    /// The question, if a kernel answers it.
    pub(super) fn question_of_groups<'a>(
        &self,
        number: Number,
        values: Array,
        groups: &'a Groups,
        counts_rows: bool,
    ) -> Option<Question<'a>> {
        let answer = Answer::of_parts(number, values.dtype)?;
        let plan = Plan::of(answer, groups, self.machine())?;
        let none = none(number.op, values.dtype);
        Some(Question { answer, plan, values: values.address, groups, none, counts_rows })
    }

    /// Remembers how a question is answered, if anybody wants to know.
    pub(super) fn remember_groups(&self, question: &Question<'_>) -> Result<()> {
        let Question { answer, plan, groups, .. } = question;
        self.remember(|| {
            let of = (answer.kind, answer.dtype);
            let row = answer.dtype.size() + groups.keys.dtype.size();
            let bytes = groups.keys.len.saturating_mul(row as u64);
            Ok(self.explained("groups", plan.launches(*answer, groups), of, bytes))
        })
    }

    /// Launches what leaves the answers at `to`.
    ///
    /// # Safety
    /// As for [`group`](Self::group), until the stream was waited
    /// for; `to` has room for the answers.
    pub(super) unsafe fn launch_groups(
        &self,
        question: &Question<'_>,
        to: Address,
        [notes, overflow]: [Address; 2],
        memory: &mut GroupMemory,
        stream: Stream,
    ) -> Result<Memory> {
        let device = &*self.device;
        let Question { plan, groups, .. } = question;
        let kernel = self.program(Program::Groups(plan.tally, question.answer.dtype))?;
        let counted = Memory::counted(groups);
        let room = (counted + groups.count).next_multiple_of(8);
        let words = memory.words.reserve_zeros(device, stream, plan.zeros(groups))?;
        let (rows, _) = memory.counted.reserve(device, stream, room, room)?;
        let marks = rows + 4 * groups.count;
        let memory = Memory { notes, overflow, words, rows, marks, present: rows + counted };
        // SAFETY: the notes are two words, and the counters were made here.
        unsafe {
            device.fill(stream, notes, 0xff, 16)?;
            device.fill(stream, rows, 0, counted)?;
        }
        for (phase, blocks) in [plan.blocks, plan.finishing].into_iter().enumerate() {
            let shared = if phase == 0 { plan.shared } else { 0 };
            let launch = Launch::linear(blocks, THREADS as u32).shared(shared);
            let block = question.block(to, &memory, phase as u32);
            // SAFETY: the kernel takes this block; it reads keys and values of all rows,
            // writes an answer for each group, and uses the scratch memory, which has room
            // for all groups, and the dynamic shared memory that was planned.
            unsafe { device.launch(stream, kernel, &launch, &[block])? };
        }
        Ok(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorder::Recorder;
    use super::super::{Shape, archive};
    use super::*;

    fn plan(op: Op, dtype: DType, rows: u64, count: u64) -> Option<Plan> {
        let limits = Recorder::h200();
        let machine = Machine { limits: &limits, shape: Shape::default() };
        let keys = Array { address: 0, len: rows, dtype: DType::U32 };
        Plan::of(Answer::of(op, dtype)?, &Groups { keys, least: 0, count }, machine)
    }

    #[test]
    fn few_groups_have_slots_of_their_own() {
        let slots = |count: u64| {
            let plan = plan(Op::Sum, DType::F32, 1 << 28, count).unwrap();
            (1 << plan.log_slots, 1 << plan.log_copies)
        };
        assert_eq!(slots(1), (1, 32));
        assert_eq!(slots(16), (16, 32));
        assert_eq!(slots(1000), (1024, 2));
        assert_eq!(slots(2048), (2048, 1));
        assert_eq!(slots(2049), (512, 4));
    }

    #[test]
    fn blocks_fit_a_multiprocessor() {
        let limits = Recorder::h200();
        for dtype in DType::ALL {
            for op in [Op::Sum, Op::Max, Op::Count] {
                for count in [1, 16, 1024, 2048, 1 << 16] {
                    let Some(plan) = plan(op, dtype, 1 << 28, count) else { continue };
                    let blocks = Program::Groups(plan.tally, dtype).blocks();
                    assert!(blocks * (plan.shared + 1024) <= limits.shared_per_block, "{op}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_kernel_has_no_plan() {
        for op in [Op::Var, Op::ArgMin, Op::Prod, Op::LogSumExp] {
            assert_eq!(plan(op, DType::F64, 1 << 20, 10), None, "{op}");
        }
        assert_eq!(plan(Op::Sum, DType::F32, 1 << 31, 10), None);
        assert_eq!(plan(Op::Sum, DType::F32, 1 << 20, 0), None);
        assert_eq!(plan(Op::Sum, DType::F64, 1 << 20, 1 << 25), None, "17 GB of words");
        let keys = |dtype| Array { address: 0, len: 1, dtype };
        let has = |dtype, count| Groups { keys: keys(dtype), least: 0, count }.has_kernel();
        assert!(has(DType::U8, 256) && !has(DType::U8, 257) && !has(DType::F32, 2));
        assert!(has(DType::I64, 1 << 30) && !has(DType::Bool, 2));
    }

    #[test]
    fn kernels_take_blocks_of_this_size() {
        let keys = Array { address: 256, len: 100, dtype: DType::U32 };
        let groups = Groups { keys, least: 0, count: 10 };
        let answer = Answer::of(Op::Sum, DType::F32).unwrap();
        let plan = plan(Op::Sum, DType::F32, 100, 10).unwrap();
        let (values, groups) = (512, &groups);
        let question = Question { answer, plan, values, groups, none: None, counts_rows: false };
        let bytes = question.block(0, &Memory::default(), 0).bytes().len();
        let ptx = archive::module("groups_sums_f32", (9, 0)).unwrap();
        let parameter = format!(".param .align 8 .b8 groups_sums_f32_param_0[{bytes}]");
        assert!(ptx.contains(&parameter), "no {parameter}");
    }

    /// The kernels' accumulators have as many words as memory is made for.
    #[test]
    fn words_are_those_of_the_kernels() {
        assert_eq!(words_of_sums(DType::F16), 4);
        assert_eq!(words_of_sums(DType::BF16), 32);
        assert_eq!(words_of_sums(DType::F32), 32);
        assert_eq!(words_of_sums(DType::F64), 66);
    }
}
