//! What is asked about the rows of each group, by one way or another, and left in the device's memory:
//! with an accumulator for each group, `groups.rs`, where these have kernels and there is room for
//! all; else about segments of rows that are put in the order of their keys, `numbering.rs`.

use super::answer::Answer;
use super::groups::{Groups, MOST_ROWS, PART_OF_MEMORY, Question};
use super::number::Number;
use super::numbering::{Joined, Numbering, Order};
use super::scratch::GroupMemory;
use super::segments::{is_widened, known};
use super::{Array, Engine, lock};
use crate::Result;
use crate::device::{Address, Stream};
use core::mem;
use warpfold_core::DType;
use warpfold_core::op::{Kind, Numbers, Op};

/// What the device has made of groups of rows: the answers are in its memory, and go from there
/// where they are wanted.
pub struct Grouped<'e> {
    engine: &'e Engine,
    stream: Stream,
    memory: GroupMemory,
    keys: Option<Joined>,
    /// How many groups there are, and in which order: without places where answers are in it already.
    count: u64,
    order: Order,
    /// Where the answers to each operation are, and their type; none where no kernel makes them
    /// or a total does not fit.
    answers: Vec<Option<(Address, DType)>>,
    present: Address,
}

/// Whether kernels answer about groups as about segments of rows that are in their order. Products
/// of floats depend on where the rows were.
fn has_segments(number: Number, dtype: DType) -> bool {
    let op = number.op;
    let is_product = op.kind() == Kind::Prod && dtype.is_float();
    let tally = Answer::of_parts(number, dtype).and_then(|answer| answer.tally());
    let has_kernel = tally.is_some_and(|tally| tally.segments().is_some());
    !is_product && (has_kernel || is_widened(op, dtype) && dtype != DType::Bool)
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
        let (count, order) = (self.count, self.order);
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

    /// The keys of rows as one column; none where they cannot be.
    ///
    /// # Safety
    /// As for [`Engine::group`].
    unsafe fn joined(&mut self, keys: &[Array], dense: Option<u64>) -> Result<Option<Joined>> {
        match (dense, keys) {
            (Some(count), &[keys]) => {
                // Who gives a number that keys cannot have is told so by the CPU.
                let bits = 8 * keys.dtype.size() as u32 - u32::from(keys.dtype.is_signed_int());
                let fits = 1u64.checked_shl(bits).is_none_or(|most| count <= most);
                Ok(fits.then(|| Joined::dense(keys)))
            }
            (Some(_), _) => Ok(None),
            // SAFETY: passed on from the caller.
            (None, keys) => unsafe { self.numbering().join(keys) },
        }
    }

    /// Groups whose numbers are in the order of their keys, if a table has room for these.
    ///
    /// # Safety
    /// As for [`Engine::group`].
    unsafe fn numbered(&mut self, joined: &Joined) -> Result<Option<Groups>> {
        // SAFETY: passed on from the caller.
        let Some((groups, order)) = (unsafe { self.numbering().number(joined)? }) else {
            return Ok(None);
        };
        self.order = order;
        Ok(Some(groups))
    }

    /// Room for answers, of each operation at an address of its own.
    fn room(&mut self, ops: usize, count: u64) -> Result<Vec<Address>> {
        let bytes = 8 * count * ops as u64;
        let (device, answers) = (&*self.engine.device, &mut self.memory.answers);
        let (first, _) = answers.reserve(device, self.stream, bytes, bytes)?;
        Ok((0..ops as u64).map(|i| first + 8 * count * i).collect())
    }

    /// Answers the operations with an accumulator for each group, without a wait for the last one; not
    /// where a key is no group's.
    ///
    /// # Safety
    /// As for [`Engine::group`], of the groups' keys.
    unsafe fn answer(
        &mut self,
        mut questions: Vec<Option<Question<'_>>>,
        to: &[Address],
        keys: u64,
        is_dense: bool,
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
        if is_dense {
            let stranger = bytemuck::bytes_of_mut(&mut stranger);
            // SAFETY: the kernels have left a word there.
            unsafe { device.copy_out(stream, words[0], stranger)? };
        }
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
        (self.count, self.order) = (sorted.count, sorted.order);
        // SAFETY: passed on from the caller.
        let (array, segments) = unsafe { self.numbering().segments(&sorted, values)? };
        let to = self.room(numbers.len(), sorted.count)?;
        let has_kernel = |number: &Number| has_segments(*number, values.dtype);
        let both = numbers.iter().copied().zip(to.iter().copied());
        let (asked, its): (Vec<Number>, Vec<Address>) =
            both.filter(|(number, _)| has_kernel(number)).unzip();
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
            let answer = Answer::of_parts(number, values.dtype);
            let tally = answer.and_then(|answer| answer.tally());
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
            present: 0,
        };
        // Where some operation needs rows in order, others are as quick with these.
        let has_all = numbers.iter().all(|number| has_slots(number) || !is_sorted(number));
        // SAFETY: passed on from the caller.
        let Some(joined) = (unsafe { all.joined(keys, dense)? }) else { return Ok(None) };
        let groups = match dense {
            Some(count) => Some(Groups { keys: joined.keys, least: 0, count }),
            // SAFETY: as above.
            None if has_all => unsafe { all.numbered(&joined)? },
            None => None,
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
            if !unsafe { all.answer(questions, &to, groups.keys.len, dense.is_some())? } {
                return Ok(None);
            }
            all.count = groups.count;
            if dense.is_none() && groups.keys.address == joined.keys.address {
                let (present, count) = (all.present, groups.count);
                // SAFETY: the kernel has left a mark for each group.
                (all.count, all.order) = unsafe { all.numbering().leave_out(present, count)? };
            } else {
                self.device.wait(stream)?;
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
}
