//! Groups of the rows of a column by key, in two launches of one kernel: `kernels/groups.cuh`.

use super::answer::{Answer, Ask, check_alignment};
use super::catalogue::{GROUP_ROWS, GROUP_THREADS, GROUP_WINDOW};
use super::kernels::{Program, Tally};
use super::number::Number;
use super::numbering::{Joined, Numbering, Order};
use super::route::{Launches, Machine};
use super::scratch::GroupMemory;
use super::segments::{is_widened, known, none};
use super::tiles::LEAST_WORKSPACE;
use super::{Array, Engine, lock};
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use core::mem;
use warpfold_core::DType;
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::{Kind, Numbers, Op};

const THREADS: usize = GROUP_THREADS;
/// Rows that a block takes at once.
const TILE: u64 = (GROUP_THREADS * GROUP_ROWS) as u64;
/// The most rows: words of 64 bits have room for as many digits.
const MOST_ROWS: u64 = (1 << 31) - 1;
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
const PART_OF_MEMORY: u64 = 256;
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

/// What the device has made of groups of rows: the answers are in its memory, and go from there
/// where they are wanted.
pub struct Grouped<'e> {
    engine: &'e Engine,
    stream: Stream,
    memory: GroupMemory,
    keys: Option<Joined>,
    /// How many groups there are, in which order.
    count: u64,
    order: Order,
    /// Where the answers to each operation are, and their type; none where no kernel makes them
    /// or a total does not fit.
    answers: Vec<Option<(Address, DType)>>,
    /// Whether they are in the order of the keys already.
    is_sorted: bool,
    present: Address,
}

/// Whether kernels answer about groups as about segments of rows that are in their order. Products
/// of floats depend on where the rows were.
fn has_segments(number: Number, dtype: DType) -> bool {
    let op = number.op;
    let is_product = op.kind() == Kind::Prod && dtype.is_float();
    let tally = plain(number, dtype).and_then(|answer| answer.tally());
    let has_kernel = tally.is_some_and(|tally| tally.segments().is_some());
    !is_product && (has_kernel || is_widened(op, dtype) && dtype != DType::Bool)
}

/// An answer about all elements, NaNs or not.
fn plain(number: Number, dtype: DType) -> Option<Answer> {
    Answer::of(number, dtype).filter(|answer| !answer.omits)
}

/// Which bits of an element make it count, if they are more than a limit: those that are not
/// zero, or are NaNs.
fn counted_bits(ask: Ask, dtype: DType) -> [u64; 2] {
    let infinite = match dtype {
        DType::F64 => f64::INFINITY.to_bits(),
        DType::F32 => u64::from(f32::INFINITY.to_bits()),
        DType::F16 => u64::from(f16::INFINITY.to_bits()),
        DType::BF16 => u64::from(bf16::INFINITY.to_bits()),
        _ => return [if ask == Ask::Nans { 0 } else { u64::MAX }, 0],
    };
    let magnitude = (1 << (8 * dtype.size() - 1)) - 1;
    [magnitude, if ask == Ask::Nans { infinite } else { 0 }]
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
struct Memory {
    notes: Address,
    overflow: Address,
    words: Address,
    rows: Address,
    marks: Address,
    present: Address,
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
struct Question<'a> {
    answer: Answer,
    plan: Plan,
    values: Address,
    groups: &'a Groups,
    /// The answer of no rows, if there is one.
    none: Option<u64>,
    /// Whether it matters which groups have rows.
    counts_rows: bool,
}

impl Question<'_> {
    /// The parameters of the kernel: the words of `Groups` there.
    fn block(&self, to: Address, memory: &Memory, phase: u32) -> Argument {
        let two = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let Question { answer, plan, values, groups, none, counts_rows } = self;
        let Memory { notes, overflow, words, rows, marks, present } = *memory;
        let [mask, limit] = counted_bits(answer.ask, answer.dtype);
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
            limit,
            two(groups.count as u32, Memory::mark_words(groups) as u32),
            two(plan.log_slots, plan.log_copies),
            two(groups.keys.dtype.size() as u32, u32::from(counts_rows)),
            two(answer.asked(), u32::from(answer.kind == Kind::AbsSum)),
            two(phase, u32::from(answer.dtype.is_signed_int())),
        ])
    }
}

impl Grouped<'_> {
    /// How many groups there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// The type of the answers to the operation at `place`; none where the device has none:
    /// no kernel makes them, or a total does not fit its type.
    #[must_use]
    pub fn answer_type(&self, place: usize) -> Option<DType> {
        self.answers.get(place).copied().flatten().map(|(_, dtype)| dtype)
    }

    fn numbering(&mut self) -> Numbering<'_> {
        Numbering { engine: self.engine, stream: self.stream, memory: &mut self.memory }
    }

    /// Leaves the keys of a column at `to`, in order, without a wait.
    ///
    /// # Errors
    /// What the device says.
    ///
    /// # Safety
    /// The memory is this device's, has room for a key of each group, and is written by nobody
    /// else until the stream was waited for.
    pub unsafe fn keys_into(&mut self, column: usize, to: Address) -> Result<()> {
        let Grouped { engine, stream, memory, .. } = self;
        let numbering = Numbering { engine, stream: *stream, memory };
        let Some(joined) = &self.keys else { return Ok(()) };
        // SAFETY: passed on from the caller.
        unsafe { numbering.keys_into((joined, self.order), column, self.count, to) }
    }

    /// Leaves the answers to the operation at `place` at `to`, in the order of the keys, without
    /// a wait: nothing where the device has none.
    ///
    /// # Errors
    /// What the device says.
    ///
    /// # Safety
    /// As for [`keys_into`](Self::keys_into), of answers.
    pub unsafe fn numbers_into(&mut self, place: usize, to: Address) -> Result<()> {
        let made = self.answers.get(place).copied().flatten();
        let Some((from, dtype)) = made else { return Ok(()) };
        let count = self.count;
        let order = if self.is_sorted { Order::default() } else { self.order };
        // SAFETY: passed on from the caller; there are answers of all groups.
        unsafe { self.numbering().pick_into(order, (from, dtype.size()), count, to) }
    }

    /// The keys of a column, in order.
    ///
    /// # Errors
    /// What the device says.
    pub fn keys(&mut self, column: usize) -> Result<Numbers> {
        let dtype = self.keys.as_ref().and_then(|keys| keys.key_type(column));
        let dtype = dtype.unwrap_or(DType::U64);
        // SAFETY: the memory has room for as many keys.
        self.brought(dtype, |all, to| unsafe { all.keys_into(column, to) })
    }

    /// The answers to the operation at `place`, in the order of the keys.
    ///
    /// # Errors
    /// What the device says.
    pub fn numbers(&mut self, place: usize) -> Result<Option<Numbers>> {
        let Some(dtype) = self.answer_type(place) else { return Ok(None) };
        // SAFETY: the memory has room for as many answers.
        self.brought(dtype, |all, to| unsafe { all.numbers_into(place, to) }).map(Some)
    }

    /// Which of the groups have rows, where others have answers, too.
    ///
    /// # Errors
    /// What the device says.
    pub fn present(&self) -> Result<Vec<u8>> {
        let mut present = vec![0; self.count()];
        // SAFETY: the kernel has left a byte for each group.
        unsafe { self.engine.device.copy_out(self.stream, self.present, &mut present)? };
        Ok(present)
    }

    /// Room for answers, of each operation at an address of its own.
    fn room(&mut self, ops: usize, count: u64) -> Result<Vec<Address>> {
        let bytes = 8 * count * ops as u64;
        let (device, answers) = (&*self.engine.device, &mut self.memory.answers);
        let (first, _) = answers.reserve(device, self.stream, bytes, bytes)?;
        Ok((0..ops as u64).map(|i| first + 8 * count * i).collect())
    }

    /// Answers the operations with an accumulator for each group; not where a key is no group's.
    ///
    /// # Safety
    /// As for [`Engine::group`], of the groups' keys.
    unsafe fn answer(
        &mut self,
        mut questions: Vec<Option<Question<'_>>>,
        to: &[Address],
        keys: u64,
    ) -> Result<bool> {
        let (engine, stream) = (self.engine, self.stream);
        let device = &*engine.device;
        // The last one leaves which groups have rows: others leave other marks in the same place.
        if let Some(last) = questions.iter_mut().rev().flatten().next() {
            last.counts_rows = true;
        }
        let scratch = engine.scratch(stream)?;
        // Held until the words were read: another thread's question would overwrite them.
        let mut scratch = lock(&scratch);
        let words = scratch.words_of_groups(device, stream)?;
        let mut stranger = [u64::MAX];
        for (question, &to) in questions.iter().zip(to) {
            let Some(question) = question else {
                self.answers.push(None);
                continue;
            };
            engine.remember_groups(question)?;
            let memory = &mut self.memory;
            // SAFETY: passed on from the caller, who has made the room.
            let made = unsafe { engine.launch_groups(question, to, words, memory, stream)? };
            self.present = made.present;
            let may_overflow = question.answer.may_overflow(usize::try_from(keys).unwrap_or(0));
            let overflows = may_overflow && scratch.saw_overflow(device, stream)?;
            self.answers.push((!overflows).then_some((to, question.answer.out)));
        }
        // SAFETY: the kernels have left a word there.
        unsafe { device.copy_out(stream, words[0], bytemuck::bytes_of_mut(&mut stranger))? };
        // The copy waited already; this says what a kernel did wrong.
        device.wait(stream)?;
        Ok(stranger == [u64::MAX])
    }

    /// Answers the operations about rows that are put in the order of their keys.
    ///
    /// # Safety
    /// As for [`Engine::group`], of the keys.
    unsafe fn answer_sorted(
        &mut self,
        numbers: &[Number],
        values: Array,
        joined: &Joined,
    ) -> Result<()> {
        let (engine, stream) = (self.engine, self.stream);
        // SAFETY: passed on from the caller.
        let sorted = unsafe { self.numbering().sort_rows(joined)? };
        (self.count, self.order, self.is_sorted) = (sorted.count, sorted.order, true);
        // SAFETY: passed on from the caller.
        let (array, segments) = unsafe { self.numbering().segments(&sorted, values)? };
        let to = self.room(numbers.len(), sorted.count)?;
        let has_kernel = |number: &Number| has_segments(*number, values.dtype);
        let asked: Vec<Number> = numbers.iter().copied().filter(has_kernel).collect();
        let its = numbers.iter().zip(&to).filter(|&(number, _)| has_kernel(number));
        let its: Vec<Address> = its.map(|(_, &to)| to).collect();
        // SAFETY: elements and offsets were left there, and there is room for the answers.
        let made = unsafe {
            engine.numbers_of_segments_into(&asked, array, &segments, None, &its, stream)?
        };
        let mut made = made.into_iter();
        for (number, &to) in numbers.iter().zip(&to) {
            let (op, is_made) = (number.op, has_kernel(number) && made.next() == Some(true));
            if is_made && matches!(op, Op::ArgMin | Op::ArgMax) {
                // SAFETY: positions in groups, which have rows, were left there.
                unsafe { self.numbering().positions(&sorted, to)? };
            }
            self.answers.push(is_made.then(|| (to, op.answer_type(values.dtype))));
        }
        Ok(())
    }

    /// What is left in memory of this question's, in the host's.
    fn brought(
        &mut self,
        dtype: DType,
        leave: impl FnOnce(&mut Self, Address) -> Result<()>,
    ) -> Result<Numbers> {
        let mut numbers = Numbers::zeros(dtype, self.count());
        let bytes = numbers.bytes().len().max(1) as u64;
        // The numbers of rows are of no use any more.
        let (device, stream) = (&*self.engine.device, self.stream);
        let (to, _) = self.memory.rows.reserve(device, stream, bytes, bytes)?;
        leave(self, to)?;
        // SAFETY: as many bytes were left there.
        unsafe { self.engine.device.copy_out(stream, to, numbers.bytes_mut())? };
        Ok(numbers)
    }
}

impl Drop for Grouped<'_> {
    fn drop(&mut self) {
        let Grouped { engine, stream, memory, .. } = self;
        let device = &*engine.device;
        // Errors cannot be reported here.
        let _ = memory.keep_below(device, *stream, device.limits().memory / PART_OF_MEMORY);
        if let Ok(scratch) = engine.scratch(*stream) {
            // Another thread may have answered a question, too.
            let mut other = mem::replace(&mut lock(&scratch).groups, mem::take(memory));
            let _ = other.keep_below(device, *stream, 0);
        }
    }
}

impl Engine {
    /// The answers of operations about the rows of each group: those with the same key in all
    /// columns, or with a number below `dense`, which groups without rows have answers for, too.
    /// Waits for them, and leaves them in the device's memory. None where the device cannot say
    /// which groups there are, or makes none of the answers.
    ///
    /// # Errors
    /// Arrays that cannot be read, or of another length than the keys; what the device says.
    ///
    /// # Safety
    /// Keys and values are in memory of this device, written by what comes before on the
    /// stream and by nobody until this returns.
    pub unsafe fn group(
        &self,
        numbers: &[impl Into<Number> + Copy],
        values: Array,
        keys: &[Array],
        dense: Option<u64>,
        stream: Stream,
    ) -> Result<Option<Grouped<'_>>> {
        for &keys in keys {
            self.check_groups(values, keys)?;
        }
        let numbers = known(numbers);
        let has_slots = |&number: &Number| {
            let tally = plain(number, values.dtype).and_then(|answer| answer.tally());
            tally.is_some_and(|tally| tally.groups(values.dtype).is_some())
        };
        // Of groups without rows segments have no answers.
        let is_sorted = |&number: &Number| dense.is_none() && has_segments(number, values.dtype);
        let has_kernel = |number: &Number| has_slots(number) || is_sorted(number);
        let rows = 1..=MOST_ROWS;
        if !rows.contains(&values.len) || !numbers.iter().any(has_kernel) {
            return Ok(None);
        }
        let scratch = self.scratch(stream)?;
        let mut all = Grouped {
            engine: self,
            stream,
            memory: mem::take(&mut lock(&scratch).groups),
            keys: None,
            count: 0,
            order: Order::default(),
            answers: Vec::new(),
            is_sorted: false,
            present: 0,
        };
        let (joined, groups) = match (dense, keys) {
            (Some(count), &[keys]) => {
                // Who gives a number that keys cannot have is told so by the CPU.
                let bits = 8 * keys.dtype.size() as u32 - u32::from(keys.dtype.is_signed_int());
                if 1u64.checked_shl(bits).is_some_and(|most| count > most) {
                    return Ok(None);
                }
                (Joined::dense(keys), Some(Groups { keys, least: 0, count }))
            }
            (Some(_), _) => return Ok(None),
            (None, keys) => {
                // SAFETY: passed on from the caller.
                let Some(joined) = (unsafe { all.numbering().join(keys)? }) else {
                    return Ok(None);
                };
                // Where some operation needs rows in order, others are as quick with these.
                let number = numbers.iter().all(|number| has_slots(number) || !is_sorted(number));
                // SAFETY: as above.
                let numbered = number.then(|| unsafe { all.numbering().number(&joined) });
                let groups = numbered.transpose()?.flatten().map(|(groups, order)| {
                    all.order = order;
                    groups
                });
                (joined, groups)
            }
        };
        let questions = |groups| {
            let question =
                |&number: &Number| self.question_of_groups(number, values, groups, false);
            let questions: Vec<Option<Question<'_>>> = numbers.iter().map(question).collect();
            let mut both = numbers.iter().zip(&questions);
            let fits = both.all(|(number, made)| made.is_some() || !is_sorted(number));
            Some(questions).filter(|made| fits && made.iter().any(Option::is_some))
        };
        if let Some((groups, questions)) = groups.as_ref().and_then(|g| Some((g, questions(g)?))) {
            let to = all.room(numbers.len(), groups.count)?;
            // SAFETY: passed on from the caller; the numbers of rows were made here.
            if !unsafe { all.answer(questions, &to, groups.keys.len)? } {
                return Ok(None);
            }
            all.count = groups.count;
            if dense.is_none() && groups.keys.address == joined.keys.address {
                let (present, count) = (all.present, groups.count);
                // SAFETY: the kernel has left a mark for each group.
                (all.count, all.order) = unsafe { all.numbering().leave_out(present, count)? };
            }
        } else if dense.is_none() {
            // SAFETY: passed on from the caller.
            unsafe { all.answer_sorted(&numbers, values, &joined)? };
        } else {
            return Ok(None);
        }
        all.keys = Some(joined);
        Ok(Some(all))
    }

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
    fn check_groups(&self, values: Array, keys: Array) -> Result<()> {
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
    fn question_of_groups<'a>(
        &self,
        number: Number,
        values: Array,
        groups: &'a Groups,
        counts_rows: bool,
    ) -> Option<Question<'a>> {
        let answer = plain(number, values.dtype)?;
        let plan = Plan::of(answer, groups, self.machine())?;
        let none = none(number.op, values.dtype);
        Some(Question { answer, plan, values: values.address, groups, none, counts_rows })
    }

    /// Remembers how a question is answered, if anybody wants to know.
    fn remember_groups(&self, question: &Question<'_>) -> Result<()> {
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
    unsafe fn launch_groups(
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
