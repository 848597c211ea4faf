//! Reductions over some axes to numbers that are finished on the device: no
//! state comes back.
//!
//! Numbers are made in the order of the walk over the outputs. Where that is
//! not C order, they are put in order in the end.

use super::answer::{Answer, Ask, Payloads, check_alignment};
use super::catalogue::FINISH_THREADS;
use super::kernels::Program;
use super::number::Number;
use super::question::Question;
use super::route::{PayloadPlan, Route, Walk};
use super::scratch::Scratch;
use super::table::Table;
use super::tiles::{LEAST_WORKSPACE, Wanted};
use super::view::DeviceView;
use super::{Engine, lock};
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::DType;
use warpfold_core::op::Numbers;

/// The second of two numbers: one of each output, or the bits of one that is the same for all.
#[derive(Clone, Copy, Debug)]
pub(super) enum Second {
    Of(Address),
    Initial(u64),
}

impl Engine {
    /// The answers of a number over the axes that `reduced` marks, in C order, as
    /// core finishes them under the default rules or without NaNs; waits for them. `None` where no
    /// kernel makes them: pairs of answers, products and logsumexp of integers; of
    /// outputs without elements, and of totals that do not fit their type; of extremes of an output that has
    /// nothing but NaNs, where these are omitted. Then [`states_of_view`](Self::states_of_view) answers.
    ///
    /// # Errors
    /// Views that cannot be; more outputs than memory holds; what the device
    /// says.
    ///
    /// # Safety
    /// As for [`states_of_view`](Self::states_of_view).
    pub unsafe fn numbers_of_view(
        &self,
        number: impl Into<Number>,
        view: &DeviceView,
        reduced: &[bool],
        stream: Stream,
    ) -> Result<Option<Numbers>> {
        // SAFETY: passed on from the caller.
        let all = unsafe { self.numbers_of_all(&[number.into()], view, reduced, stream)? };
        Ok(all.into_iter().next().flatten())
    }

    /// The same for several numbers, with one wait.
    ///
    /// # Errors
    /// Those of [`numbers_of_view`](Self::numbers_of_view).
    ///
    /// # Safety
    /// As for [`states_of_view`](Self::states_of_view).
    pub unsafe fn numbers_of_all(
        &self,
        asked: &[Number],
        view: &DeviceView,
        reduced: &[bool],
        stream: Stream,
    ) -> Result<Vec<Option<Numbers>>> {
        view.check(&**self.device())?;
        let question = |&number: &Number| Question::of(number, view, reduced, self.shape.walk);
        let questions: Vec<_> = asked.iter().map(question).collect::<Result<_>>()?;
        let asked: Vec<&Question> = questions.iter().flatten().collect();
        // SAFETY: passed on from the caller.
        let mut made = unsafe { self.answers_to(&asked, stream)? }.into_iter();
        Ok(questions.iter().map(|q| q.as_ref().and_then(|_| made.next().flatten())).collect())
    }

    /// The answers to questions, where there are any; waits once.
    ///
    /// # Safety
    /// As for [`numbers_of_view`](Self::numbers_of_view), for the elements of the
    /// questions' tables.
    pub(super) unsafe fn answers_to(
        &self,
        questions: &[&Question],
        stream: Stream,
    ) -> Result<Vec<Option<Numbers>>> {
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let device = &**self.device();
        let scratch = self.scratch(stream)?;
        // Held until the numbers are read: another thread's would overwrite
        // them.
        let mut scratch = lock(&scratch);
        let too_many = || warpfold_core::Error::TooManyOutputs { outputs: usize::MAX };
        let room = |q: &&Question| q.bytes().checked_next_multiple_of(8);
        let bytes = questions.iter().try_fold(0u64, |all, q| all.checked_add(room(q)?));
        let bytes = bytes.ok_or_else(too_many)?;
        let (to, _) = scratch.numbers.reserve(device, stream, bytes, bytes)?;
        // SAFETY: passed on from the caller; the room was made here.
        let made = unsafe { self.make_all(questions, to, &mut scratch, stream) };
        let read = made.and_then(|made| {
            let mut next = to;
            let mut all = Vec::with_capacity(questions.len());
            for (question, made) in questions.iter().zip(made) {
                let mut numbers = None;
                if made {
                    let outputs = question.table.outputs.len;
                    let read = numbers.insert(Numbers::zeros(question.answer.out, outputs));
                    // SAFETY: the room has as many bytes, and is held until they are read.
                    unsafe { device.copy_out(stream, next, read.bytes_mut())? };
                }
                next += question.bytes().next_multiple_of(8);
                all.push(numbers);
            }
            // The copies waited already; this says what a kernel did wrong.
            device.wait(stream).map(|()| all)
        });
        scratch.numbers.keep_below(device, stream, self.machine().workspace())?;
        read
    }

    /// Leaves the answers to questions at `to`, one behind the other in whole words, and
    /// says which it did. Waits, once, where totals may not fit.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers), for all of them.
    unsafe fn make_all(
        &self,
        questions: &[&Question],
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<Vec<bool>> {
        let (mut next, mut made) = (to, Vec::with_capacity(questions.len()));
        for question in questions {
            // SAFETY: passed on from the caller.
            made.push(unsafe { self.launch_question(question, next, scratch, stream)? });
            next += question.bytes().next_multiple_of(8);
        }
        let watched = |question: &Question, made: bool| made && question.may_overflow();
        let mut both = questions.iter().zip(&made);
        if both.any(|(question, &made)| watched(question, made))
            && scratch.saw_overflow(&*self.device, stream)?
        {
            // Whose total does not fit is not known.
            for (question, made) in questions.iter().zip(&mut made) {
                *made &= !question.may_overflow();
            }
        }
        Ok(made)
    }

    /// Leaves such answers in the device's memory at `to`, and says whether it
    /// did; what is there means nothing otherwise. Waits only where totals may
    /// not fit: those of integers of 64 bits, of squares of 32 bits and more, and
    /// of 2^32 and more shorter ones; and where there may be no number, of extremes
    /// without NaNs.
    ///
    /// # Errors
    /// Those of [`numbers_of_view`](Self::numbers_of_view), and a misaligned
    /// `to`.
    ///
    /// # Safety
    /// As for [`states_of_view`](Self::states_of_view), until the stream was
    /// waited for; and nobody else uses the memory of the answers, one of type
    /// [`Op::answer_type`](warpfold_core::op::Op::answer_type) for each output, until then.
    pub unsafe fn numbers_into(
        &self,
        number: impl Into<Number>,
        view: &DeviceView,
        reduced: &[bool],
        to: Address,
        stream: Stream,
    ) -> Result<bool> {
        view.check(&**self.device())?;
        let scratch = self.scratch(stream)?;
        let mut scratch = lock(&scratch);
        // SAFETY: passed on from the caller.
        unsafe { self.answered(number, view, reduced, to, &mut scratch, stream) }
    }

    /// The same for a view that was checked; `scratch` is the stream's.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into).
    pub(super) unsafe fn answered(
        &self,
        number: impl Into<Number>,
        view: &DeviceView,
        reduced: &[bool],
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let known = scratch.known.take(number.into(), view, reduced, self.shape.walk)?;
        let Some(known) = known else { return Ok(false) };
        // SAFETY: passed on from the caller.
        let made = unsafe { self.make_numbers(Some(&known.question), to, scratch, stream) };
        scratch.known.keep(known);
        made
    }

    /// Leaves the answers to a question, if there is one, at `to`, in C order, and says whether
    /// it did.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into); `scratch` is the stream's.
    pub(super) unsafe fn make_numbers(
        &self,
        question: Option<&Question>,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let Some(question) = question else { return Ok(false) };
        check_alignment(to, question.table.outputs.len, question.answer.out)?;
        // SAFETY: passed on from the caller.
        let made = unsafe { self.make_all(&[question], to, scratch, stream)? };
        Ok(made.contains(&true))
    }

    /// Launches what leaves the answers at `to`, in C order, and says whether there is
    /// such a thing; does not wait. A total that does not fit sets the word for it in the
    /// scratch memory, and is left without its upper bits.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers).
    pub(super) unsafe fn launch_question(
        &self,
        question: &Question,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        if let Some(ends) = &question.ends {
            // SAFETY: passed on from the caller.
            return unsafe { self.launch_range(ends, to, scratch, stream) };
        }
        let Some(route) = question.route(self.machine()) else { return Ok(false) };
        self.remember_route(question, &route)?;
        // SAFETY: passed on from the caller.
        unsafe { self.launch_route(question, &route, to, scratch, stream) }
    }

    /// Launches what leaves the ends of ranges in the workspace and what they are apart at `to`.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers).
    unsafe fn launch_range(
        &self,
        ends: &[Question; 2],
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let Answer { dtype, .. } = ends[0].answer;
        let (count, room) = (ends[0].table.outputs.len, ends[0].bytes().next_multiple_of(16));
        let (at, _) = scratch.ends.reserve(&*self.device, stream, 2 * room, 2 * room)?;
        for (end, to) in ends.iter().zip([at, at + room]) {
            // SAFETY: passed on from the caller; the room was made here.
            if !unsafe { self.launch_question(end, to, scratch, stream)? } {
                return Ok(false);
            }
        }
        let overflow = scratch.overflow();
        let second = Second::Of(at + room);
        // SAFETY: passed on from the caller; the ends were left before on the stream.
        unsafe { self.pair((dtype, Ask::Range), at, second, to, count, overflow, stream) }
    }

    /// Launches what makes one number of two of each output, and says whether there is such a
    /// thing; a total that does not fit sets the word for it.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers), for all addresses; `to` may be the first one's.
    #[expect(clippy::too_many_arguments, reason = "a launch")]
    pub(super) unsafe fn pair(
        &self,
        (dtype, ask): (DType, Ask),
        first: Address,
        second: Second,
        to: Address,
        count: usize,
        overflow: Address,
        stream: Stream,
    ) -> Result<bool> {
        let Some(number) = i32::try_from(count).ok().map(i32::unsigned_abs) else {
            return Ok(false);
        };
        let kernel = self.program(Program::Pair(dtype))?;
        let launch = Launch::linear(number.div_ceil(FINISH_THREADS as u32), FINISH_THREADS as u32);
        let (second, initial) = match second {
            Second::Of(address) => (address, 0),
            Second::Initial(bits) => (0, bits),
        };
        let addresses = [first, second, initial, to].map(Argument::from);
        let others = [number, ask as u32].map(Argument::from);
        let arguments = [&addresses[..], &others, &[Argument::from(overflow)]].concat();
        // SAFETY: the kernel has these parameters; it reads and writes `count` numbers.
        unsafe { self.device.launch(stream, kernel, &launch, &arguments)? };
        Ok(true)
    }

    /// Launches what a route says, and says whether memory was enough for it.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers).
    unsafe fn launch_route(
        &self,
        question: &Question,
        route: &Route<'_>,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        if !route.reorders {
            // SAFETY: passed on from the caller.
            return unsafe { self.launch_walk(question, &route.walk, to, scratch, stream) };
        }
        let Question { answer, table, .. } = question;
        let device = &**self.device();
        let bytes = question.bytes();
        let (walked, _) = scratch.walked.reserve(device, stream, bytes, bytes)?;
        // SAFETY: as above; the room was made here, and the copy goes to all answers and
        // nowhere else.
        let made = unsafe {
            self.launch_walk(question, &route.walk, walked, scratch, stream).and_then(|made| {
                let size = answer.out.size();
                let first = table.first_output() * size;
                let steps = table.steps_to_outputs(size);
                let ordered = || self.gather(size, walked, to + first as u64, steps, stream);
                if made { ordered().map(|()| true) } else { Ok(false) }
            })
        };
        scratch.walked.keep_below(device, stream, self.machine().workspace())?;
        made
    }

    /// Leaves the answers at `to` in the order of the walk, and says whether memory was
    /// enough for it.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers).
    unsafe fn launch_walk(
        &self,
        question: &Question,
        walk: &Walk<'_>,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let Question { answer, table, .. } = question;
        let answer = *answer;
        // SAFETY: passed on from the caller; each plan is one for this table.
        unsafe {
            match walk {
                Walk::Abreast(plan) => self.launch_abreast(answer, plan, to, scratch, stream)?,
                Walk::View(layout, plan) => {
                    self.launch_strided(answer, layout, plan, (to, None), scratch, stream)?;
                }
                Walk::ShortRows(plan) => {
                    self.launch_short_rows(answer, plan, to, scratch.overflow(), stream)?;
                }
                Walk::Columns(plan) => self.launch_columns(answer, plan, to, scratch, stream)?,
                Walk::GatheredRows(plan) => {
                    return self.launch_gathered_rows(answer, table, plan, to, scratch, stream);
                }
                Walk::Payloads(plan) => {
                    return self.launch_payloads(answer, table, plan, None, to, scratch, stream);
                }
            }
        }
        Ok(true)
    }

    /// Leaves a payload of each output in the workspace, and makes numbers of them and of an initial
    /// value, if there is one; says whether memory was enough for it.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers).
    #[expect(clippy::too_many_arguments, reason = "a plan, and where it is carried out")]
    pub(super) unsafe fn launch_payloads(
        &self,
        answer: Answer,
        table: &Table,
        plan: &PayloadPlan,
        initial: Option<u64>,
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let (device, overflow) = (&**self.device(), scratch.overflow());
        let wanted = Wanted { table, kinds: &[answer.kind], start: 0 };
        let (at, bytes) =
            scratch.workspace.reserve(device, stream, plan.workspace, LEAST_WORKSPACE)?;
        // No more than planned: what is held depends on what came before.
        let bytes = bytes.min(plan.workspace);
        if !wanted.is_whole_in(bytes)? {
            return Ok(false);
        }
        let (words, size) = (plan.words, answer.out.size());
        let finish = &mut |batch: &super::tiles::Batch| {
            let mut at = batch.at;
            for run in &batch.runs {
                let to = to + (run.first * size) as u64;
                let payloads = Payloads { at, words, count: run.count, to, step: run.step };
                // SAFETY: the payloads were left before on the stream; each
                // output has its place.
                unsafe { self.finish(answer, &payloads, initial, overflow, stream)? };
                at += 8 * (words * run.count) as u64;
            }
            Ok(())
        };
        // SAFETY: passed on from the caller; the workspace is the stream's.
        unsafe { self.reduce_table(wanted, (at, bytes), scratch, stream, finish)? };
        Ok(true)
    }
}
