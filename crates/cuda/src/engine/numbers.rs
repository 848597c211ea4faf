//! Reductions over some axes to numbers that are finished on the device: no
//! state comes back.
//!
//! Numbers are made in the order of the walk over the outputs. Where that is
//! not C order, they are put in order in the end.

use super::answer::{Answer, Ask, Payloads, check_alignment};
use super::catalogue::FINISH_THREADS;
use super::kernels::Program;
use super::known::Known;
use super::number::Number;
use super::question::Question;
use super::route::{PayloadPlan, Route, Walk};
use super::scratch::Scratch;
use super::table::Table;
use super::tiles::{LEAST_WORKSPACE, Run, Wanted};
use super::view::DeviceView;
use super::{Engine, lock};
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::DType;
use warpfold_core::op::{Kind, Numbers, Op, Several};

/// The second of two numbers: one of each output, or the bits of one that is the same for all.
#[derive(Clone, Copy, Debug)]
pub(super) enum Second {
    Of(Address),
    Initial(u64),
}

impl Engine {
    /// The answers of numbers over the axes that `reduced` marks, in C order, as core finishes them
    /// under the default rules or without NaNs; waits for them, once. `None` where no
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
        let places: Several<Address> = questions
            .iter()
            .scan(to, |next, question| {
                let at = *next;
                *next += question.bytes().next_multiple_of(8);
                Some(at)
            })
            .collect();
        // SAFETY: passed on from the caller; the room was made here.
        let made = unsafe { self.make_all(questions, &places, &mut scratch, stream) };
        let read = made.and_then(|made| {
            let mut all = Vec::with_capacity(questions.len());
            for ((question, &at), made) in questions.iter().zip(&places).zip(made) {
                let mut numbers = None;
                if made {
                    let outputs = question.table.outputs.len;
                    let read = numbers.insert(Numbers::zeros(question.answer.out, outputs));
                    // SAFETY: the room has as many bytes, and is held until they are read.
                    unsafe { device.copy_out(stream, at, read.bytes_mut())? };
                }
                all.push(numbers);
            }
            // The copies waited already; this says what a kernel did wrong.
            device.wait(stream).map(|()| all)
        });
        scratch.numbers.keep_below(device, stream, self.machine().workspace())?;
        read
    }

    /// Leaves the answers to questions at their addresses, and says which it did. Waits, once,
    /// where totals may not fit.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers), for all of them.
    unsafe fn make_all(
        &self,
        questions: &[&Question],
        to: &[Address],
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<Several<bool>> {
        // SAFETY: passed on from the caller.
        let mut made = unsafe { self.launch_all(questions, to, scratch, stream)? };
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
        // SAFETY: passed on from the caller.
        let made = unsafe { self.each_into(&[number.into()], view, reduced, &[to], stream)? };
        Ok(made.contains(&true))
    }

    /// The same for several numbers, each of which has its address; says which were left there. Those
    /// that one walk tells share it.
    ///
    /// # Errors
    /// Those of [`numbers_into`](Self::numbers_into).
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into), for each.
    pub unsafe fn each_into(
        &self,
        numbers: &[Number],
        view: &DeviceView,
        reduced: &[bool],
        to: &[Address],
        stream: Stream,
    ) -> Result<Several<bool>> {
        view.check(&**self.device())?;
        let scratch = self.scratch(stream)?;
        // SAFETY: passed on from the caller.
        unsafe { self.each_answered(numbers, view, reduced, to, &mut lock(&scratch), stream) }
    }

    /// The same for a view that was checked; `scratch` is the stream's.
    ///
    /// # Safety
    /// As for [`each_into`](Self::each_into).
    unsafe fn each_answered(
        &self,
        numbers: &[Number],
        view: &DeviceView,
        reduced: &[bool],
        to: &[Address],
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<Several<bool>> {
        let mut known: Several<(usize, Address, Box<Known>)> = Several::new();
        for (i, (&number, &at)) in numbers.iter().zip(to).enumerate() {
            let other = |&one: &Number| one != number && one.op.kind() == number.op.kind();
            let ends = matches!(number.op, Op::Min | Op::Max | Op::ArgMin | Op::ArgMax);
            let both = ends && numbers.iter().any(other);
            let walk = if both { Question::walk_of_ends(view, reduced) } else { None };
            let forced = self.shape.walk.or(walk);
            let Some(one) = scratch.known.take(number, view, reduced, forced)? else { continue };
            check_alignment(at, one.question.table.outputs.len, one.question.answer.out)?;
            known.push((i, at, one));
        }
        let questions: Several<&Question> = known.iter().map(|(.., one)| &one.question).collect();
        let places: Several<Address> = known.iter().map(|&(_, at, _)| at).collect();
        // SAFETY: passed on from the caller.
        let left = unsafe { self.make_all(&questions, &places, scratch, stream) };
        drop(questions);
        let mut made: Several<bool> = numbers.iter().map(|_| false).collect();
        for ((i, _, one), left) in known.into_iter().zip(left?) {
            made[i] = left;
            scratch.known.keep(one);
        }
        Ok(made)
    }

    /// One of them.
    ///
    /// # Safety
    /// As for [`each_into`](Self::each_into).
    pub(super) unsafe fn answered(
        &self,
        number: impl Into<Number>,
        view: &DeviceView,
        reduced: &[bool],
        to: Address,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let numbers = [number.into()];
        // SAFETY: passed on from the caller.
        let made = unsafe { self.each_answered(&numbers, view, reduced, &[to], scratch, stream)? };
        Ok(made.contains(&true))
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
        let made = unsafe { self.make_all(&[question], &[to], scratch, stream)? };
        Ok(made.contains(&true))
    }

    /// Launches what leaves the answers to questions at their addresses, in C order, and says for which
    /// there is such a thing; does not wait. A total that does not fit sets the word for it in the
    /// scratch memory, and is left without its upper bits.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers).
    pub(super) unsafe fn launch_all(
        &self,
        questions: &[&Question],
        to: &[Address],
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<Several<bool>> {
        let mut made: Several<Option<bool>> = questions.iter().map(|_| None).collect();
        // Those of moments come first, whose payloads tell sums, and the lesser end before the greater.
        let mut order: Several<usize> = (0..questions.len()).collect();
        order.sort_by_key(|&i| {
            let answer = questions[i].answer;
            (answer.kind != Kind::Moments, answer.ask as u32)
        });
        for &i in &order {
            if made[i].is_some() {
                continue;
            }
            let (question, at) = (questions[i], to[i]);
            if let Some(ends) = &question.ends {
                // SAFETY: passed on from the caller.
                made[i] = Some(unsafe { self.launch_range(ends, at, scratch, stream)? });
                continue;
            }
            let Some(route) = question.route(self.machine()) else {
                made[i] = Some(false);
                continue;
            };
            self.remember_route(question, &route)?;
            let open = |&j: &usize| j != i && made[j].is_none() && questions[j].ends.is_none();
            let mut others = order.iter().copied().filter(open);
            // SAFETY: passed on from the caller; each plan is one for this question's table.
            let (done, with) = unsafe {
                match &route.walk {
                    Walk::View(layout, plan) => {
                        let end = |&j: &usize| question.is_lesser_end_of(questions[j]);
                        let other = others.find(end);
                        let places = (at, other.map(|j| to[j]));
                        let answer = question.answer;
                        self.launch_strided(answer, layout, plan, places, scratch, stream)?;
                        (true, other.into_iter().collect())
                    }
                    Walk::Payloads(plan) if !route.reorders => {
                        let told = |&j: &usize| question.tells(questions[j]);
                        let with: Several<usize> = others.filter(told).collect();
                        let other = |&j: &usize| (questions[j].answer, to[j]);
                        let all: Several<(Answer, Address)> = [(question.answer, at)]
                            .into_iter()
                            .chain(with.iter().map(other))
                            .collect();
                        let table = &question.table;
                        (self.launch_payloads(&all, table, plan, scratch, stream)?, with)
                    }
                    _ => {
                        (self.launch_route(question, &route, at, scratch, stream)?, Several::new())
                    }
                }
            };
            made[i] = Some(done);
            for j in with {
                made[j] = Some(done);
            }
        }
        Ok(made.into_iter().map(|made| made == Some(true)).collect())
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
        let [least, greatest] = ends;
        // SAFETY: passed on from the caller; the room was made here.
        let made =
            unsafe { self.launch_all(&[least, greatest], &[at, at + room], scratch, stream)? };
        if made.contains(&false) {
            return Ok(false);
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
                Walk::Unread => self.device.fill(stream, to, 0, question.bytes())?,
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
                    return self.launch_payloads(&[(answer, to)], table, plan, scratch, stream);
                }
            }
        }
        Ok(true)
    }

    /// Leaves a payload of each output in the workspace, that of the first answer, and makes the
    /// numbers of all answers of it; says whether memory was enough for it.
    ///
    /// # Safety
    /// As for [`make_numbers`](Self::make_numbers).
    pub(super) unsafe fn launch_payloads(
        &self,
        answers: &[(Answer, Address)],
        table: &Table,
        plan: &PayloadPlan,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<bool> {
        let (device, overflow) = (&**self.device(), scratch.overflow());
        let Some(&(Answer { kind, .. }, _)) = answers.first() else { return Ok(false) };
        let wanted = Wanted { table, kinds: &[kind], start: 0 };
        let (at, bytes) =
            scratch.workspace.reserve(device, stream, plan.workspace, LEAST_WORKSPACE)?;
        // No more than planned: what is held depends on what came before.
        let bytes = bytes.min(plan.workspace);
        if !wanted.is_whole_in(bytes)? {
            return Ok(false);
        }
        let (words, is_ahead) = (plan.words, !scratch.is_beside);
        let finish = &mut |batch: &super::tiles::Batch| {
            let mut at = batch.at;
            for run in &batch.runs {
                for &(answer, to) in answers {
                    let to = to + (run.first * answer.out.size()) as u64;
                    let Run { count, step, .. } = *run;
                    let payloads = Payloads { at, words, count, to, step, is_ahead };
                    // SAFETY: the payloads were left before on the stream; each
                    // output has its place.
                    unsafe { self.finish(answer, &payloads, overflow, stream)? };
                }
                at += 8 * (words * run.count) as u64;
            }
            Ok(())
        };
        // SAFETY: passed on from the caller; the workspace is the stream's.
        unsafe { self.reduce_table(wanted, (at, bytes), scratch, stream, finish)? };
        Ok(true)
    }
}
