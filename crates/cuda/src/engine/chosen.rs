//! Numbers of some of an array's elements, of these and one more, and in another type. Where some
//! are left out, or another type has to hold them, the elements are copied first, with something
//! that changes nothing in the place of the others. One more comes before or after all others.

use super::answer::{Ask, check_alignment};
use super::catalogue::{CHOOSE_AXES, CHOOSE_EACH, CHOOSE_THREADS, CHOOSE_VECTORS};
use super::gather::{NONE, SHORT, Step, joined};
use super::kernels::Program;
use super::number::Number;
use super::numbers::Second;
use super::plan::ForcedWalk;
use super::question::Question;
use super::route::PayloadPlan;
use super::scratch::Scratch;
use super::view::DeviceView;
use super::{Engine, lock};
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::{Kind, Op};
use warpfold_core::{DType, Element, with_element};

/// Blocks for each multiprocessor: enough to fill it.
const BLOCKS: usize = 32;
/// Elements of a copy, which kernels number in 32 bits.
const MOST: usize = 1 << 31;
/// Bytes whose copy takes longer than three launches. Measured on an H200.
const WORTH_LAUNCHES: usize = 16 << 20;
/// Elements whose marks are brought into their order first, where they lie in another one: bytes that lanes find far from each
/// other take longer than another launch does.
const WORTH_ORDER: usize = 1 << 20;
/// Elements of a run that are copied by vectors, whose numbers have 31 bits also behind its end.
const LONG: core::ops::Range<usize> = 256..MOST - (1 << 16);
/// Memory that is kept for copies: this part of the device's, or a workspace. What is more is allocated for each, which takes 2 ms a GiB.
const KEPT: u64 = 64;
/// Payloads that take no time beside their launches, and bytes of a row that are worth a word of its payload.
const FEW_PAYLOADS: usize = 4096;
const WORTH_PAYLOADS: usize = 32;

// `Choice` in `kernels/choose.cu`.
const WIDENS: u32 = 1;
const NAN_IS_FAR: u32 = 2;
const IS_SEEN: u32 = 4;
const ONLY_NAN: u32 = 8;
const TOGETHER: u32 = 16;
/// In `kernels/integer_squares.cuh`.
const LEFT_OUT: u64 = 0x5b3f_26c5_d17e_80a5;

/// What is reduced beside, or instead of, all elements.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// Truth values in the array's shape, in memory of the same device: elements that are
    /// not marked are left out.
    pub marks: Option<DeviceView>,
    /// The bits of one more element of every output.
    pub initial: Option<u64>,
    /// The type of the answers, if it is not the operation's own.
    pub out: Option<DType>,
}

/// What is asked of a view, and where answers go.
#[derive(Clone, Copy)]
struct Asked<'a> {
    number: Number,
    view: &'a DeviceView,
    chosen: &'a Chosen,
    reduced: &'a [bool],
    to: Address,
    stream: Stream,
}

/// How elements are copied, so that a number of the copy is the one that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    number: Number,
    /// The type of the copy.
    dtype: DType,
    /// Bits of what stands for elements that are left out.
    fill: u64,
    choice: u32,
    /// Whether outputs without elements have no answer.
    needs_some: bool,
}

impl Way {
    /// `None` where there is none: the host answers.
    fn of(number: Number, dtype: DType, chosen: &Chosen) -> Option<Way> {
        let op = number.op;
        let omits_nan = number.omits_nan && dtype.is_float();
        let own = op.answer_type(dtype);
        let takes_more = matches!(op, Op::Sum | Op::Prod | Op::Min | Op::Max | Op::NormInf);
        let marks = chosen.marks.is_some();
        if chosen.initial.is_some() && (omits_nan || !takes_more) {
            return None;
        }
        let exact = !matches!(op, Op::Prod | Op::LogSumExp);
        let counted = marks && matches!(op, Op::Mean | Op::Var | Op::Std);
        // Every shorter float is one of f64, and every shorter integer one of i64 that is not `LEFT_OUT`.
        let to = match chosen.out.filter(|&out| out != own) {
            None if counted && !dtype.is_float() && dtype != DType::U64 => DType::I64,
            None => dtype,
            Some(DType::F64) if own == dtype && dtype.is_float() && exact => DType::F64,
            Some(_) => return None,
        };
        let way = Way { number, dtype: to, fill: 0, choice: 0, needs_some: false };
        let fill = |x: f64| with_element!(to, T => bits_of::<T>(x));
        let way = if !marks && chosen.initial.is_none() {
            way
        } else if marks && (counted || omits_nan && matches!(op, Op::Min | Op::Max)) {
            let choice = match op {
                // One of 64 bits may be what stands for those that are left out.
                _ if !dtype.is_float() && dtype.size() == 8 => IS_SEEN,
                _ if omits_nan || !dtype.is_float() => 0,
                // A variance is NaN in either case.
                Op::Var | Op::Std => NAN_IS_FAR,
                _ => IS_SEEN,
            };
            let number = Number { omits_nan: true, ..number };
            let fill = if to.is_float() { fill(f64::NAN) } else { LEFT_OUT };
            Way { number, fill, choice, ..way }
        } else {
            let fill = match op {
                Op::Sum | Op::Norm1 | Op::SumSq | Op::Norm2 | Op::NormInf => 0,
                Op::Any | Op::CountNonzero | Op::CountNan => 0,
                Op::Prod | Op::All => fill(1.0),
                Op::Min => fill(f64::INFINITY),
                Op::Max => fill(f64::NEG_INFINITY),
                _ => return None,
            };
            let needs_some = matches!(op, Op::Min | Op::Max) && chosen.initial.is_none();
            Way { fill, needs_some, ..way }
        };
        Some(Way { choice: way.choice | if to == dtype { 0 } else { WIDENS }, ..way })
    }
}

/// The bits of a float that is shorter than f64 as those of an f64.
fn widened(dtype: DType, bits: u64) -> u64 {
    let wide = match dtype {
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        _ => bf16::from_bits(bits as u16).to_f64(),
    };
    wide.to_bits()
}

/// Numbers that only the walk over views makes: those of integers of a copy that are not `LEFT_OUT`, which
/// it knows where it sums squares; and extremes that tell of outputs whose extreme is what stands for
/// elements that are left out.
fn question_of_some(
    number: Number,
    copy: &DeviceView,
    reduced: &[bool],
) -> Result<Option<Question>> {
    let is_mean = number.op == Op::Mean;
    let squares = Number { op: if is_mean { Op::Var } else { number.op }, ..number };
    let views = Some(ForcedWalk::Views);
    let mut question = Question::of(squares, copy, reduced, views)?;
    if let Some(Question { answer, .. }) = &mut question {
        answer.ask = if is_mean { Ask::Mean } else { answer.ask };
        answer.tells = matches!(number.op, Op::Min | Op::Max);
        answer.omits = !answer.tells;
    }
    Ok(question.filter(|question| question.layout.is_some()))
}

/// The bits of the element nearest to a number; of integers, at the end of the type for
/// what lies beyond it.
fn bits_of<T: Element>(x: f64) -> u64 {
    let whole = |least: i128, most: i128| {
        let nearest = if x.is_nan() { 0 } else { (x as i128).clamp(least, most) };
        nearest as u64 & (u64::MAX >> (64 - 8 * T::DTYPE.size()))
    };
    match T::DTYPE {
        DType::F64 => x.to_bits(),
        DType::F32 => u64::from((x as f32).to_bits()),
        DType::F16 => u64::from(f16::from_f64(x).to_bits()),
        DType::BF16 => u64::from(bf16::from_f64(x).to_bits()),
        DType::Bool => u64::from(x > 0.0),
        dtype if dtype.is_signed_int() => {
            whole(-1 << (8 * dtype.size() - 1), (1 << (8 * dtype.size() - 1)) - 1)
        }
        dtype => whole(0, (1 << (8 * dtype.size())) - 1),
    }
}

/// What makes answers of those of all elements and an initial value, and its bits as an answer, if
/// it may come after all elements: nothing was rounded before.
fn later(op: Op, dtype: DType, bits: u64) -> Option<(Ask, u64)> {
    let unused = 64 - 8 * dtype.size() as u32;
    // Whatever is not 0 is true.
    let bits = if dtype == DType::Bool { u64::from(bits != 0) } else { bits };
    let signed = bits.cast_signed() << unused >> unused;
    match op {
        Op::Min => Some((Ask::Least, bits)),
        Op::Max => Some((Ask::Greatest, bits)),
        Op::NormInf if dtype.is_float() => Some((Ask::Greatest, bits & u64::MAX >> unused >> 1)),
        Op::NormInf if dtype.is_signed_int() => Some((Ask::Greatest, signed.unsigned_abs())),
        Op::NormInf => Some((Ask::Greatest, bits)),
        Op::Sum if dtype.is_signed_int() => Some((Ask::Total, signed.cast_unsigned())),
        Op::Sum if !dtype.is_float() => Some((Ask::Total, bits)),
        _ => None,
    }
}

/// The number of outputs.
fn outputs_of(view: &DeviceView, reduced: &[bool]) -> usize {
    view.shape.iter().zip(reduced).filter(|(_, is)| !**is).map(|(n, _)| n).product()
}

/// A copy of a view's elements as those of a type: its axes, as they are joined, and a view of memory
/// that has yet to be found. `None` if kernels cannot number its elements or its axes.
fn copy_of(
    from: &DeviceView,
    marks: Option<&DeviceView>,
    dtype: DType,
) -> Option<(Vec<Step>, DeviceView)> {
    let all = from.shape.iter().try_fold(1usize, |all, &n| all.checked_mul(n))?;
    // What lies together stays together.
    let axes = 0..from.shape.len();
    let mut order: Vec<usize> = axes.clone().collect();
    order.sort_by_key(|&axis| (from.strides[axis] == 0, from.strides[axis].unsigned_abs()));
    let (mut next, mut to) = (1, vec![0; from.shape.len()]);
    for axis in order {
        to[axis] = next;
        next *= from.shape[axis].cast_signed();
    }
    let step = |axis: usize| Step {
        len: from.shape[axis],
        from: from.strides[axis],
        marks: marks.map_or(0, |marks| marks.strides[axis]),
        to: to[axis],
    };
    let steps = joined(axes.map(step).collect());
    let strides = to.into_iter().map(|step| step * dtype.size().cast_signed()).collect();
    let view = DeviceView { address: 0, dtype, shape: from.shape.clone(), strides };
    (all < MOST && steps.len() <= CHOOSE_AXES).then_some((steps, view))
}

/// Whether marks lie nearest to each other along another axis than elements and their copies do.
fn has_marks_across(steps: &[Step]) -> bool {
    let near =
        steps.iter().filter(|step| step.marks != 0).min_by_key(|step| step.marks.unsigned_abs());
    near.is_some_and(|near| near.len >= SHORT && near.to != steps[0].to)
}

impl Engine {
    /// Leaves the numbers of chosen elements in the device's memory at `to`, as
    /// [`numbers_into`](Self::numbers_into) does those of all, and says whether it did: `false`
    /// where only the host answers. Waits where outputs may have no answer.
    ///
    /// # Errors
    /// Those of [`numbers_into`](Self::numbers_into); no memory for a copy of the elements.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into), for the marks, too; there is room for
    /// answers of the type that is asked for.
    pub unsafe fn numbers_of_chosen_into(
        &self,
        number: impl Into<Number>,
        view: &DeviceView,
        chosen: &Chosen,
        reduced: &[bool],
        to: Address,
        stream: Stream,
    ) -> Result<bool> {
        view.check(&**self.device())?;
        if let Some(marks) = &chosen.marks {
            marks.check(&**self.device())?;
        }
        let (size, number) = (view.dtype.size(), number.into());
        let same = |marks: &DeviceView| marks.shape == view.shape && marks.dtype == DType::Bool;
        let aligned = view.address.is_multiple_of(size as u64)
            && view.strides.iter().all(|step| step.unsigned_abs().is_multiple_of(size));
        let other = chosen.out.is_some_and(|out| out != number.op.answer_type(view.dtype));
        let is_sum = number.op == Op::Sum && view.dtype.is_float();
        let is_other = other && chosen.initial.is_some() && !is_sum;
        if view.is_empty() || !aligned || is_other || !chosen.marks.as_ref().is_none_or(same) {
            return Ok(false);
        }
        let scratch = self.scratch(stream)?;
        let mut scratch = lock(&scratch);
        let asked = Asked { number, view, chosen, reduced, to, stream };
        // SAFETY: passed on from the caller.
        let made = unsafe {
            match chosen.initial.and_then(|bits| later(number.op, view.dtype, bits)) {
                Some(initial) => self.begun(asked, initial, &mut scratch),
                None if self.finished(asked, &mut scratch)? => Ok(true),
                None => self.copied(asked, &mut scratch),
            }
        };
        let kept = self.machine().workspace().max(self.device.limits().memory / KEPT);
        scratch.chosen.keep_below(&*self.device, stream, kept)?;
        made
    }

    /// Numbers of the elements, and then of these and the initial value. Waits where totals may not fit.
    ///
    /// # Safety
    /// As for [`numbers_of_chosen_into`](Self::numbers_of_chosen_into).
    unsafe fn begun(
        &self,
        asked: Asked<'_>,
        (ask, initial): (Ask, u64),
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let Asked { number, view, chosen, reduced, to, stream } = asked;
        let dtype = view.dtype;
        let own = number.op.answer_type(dtype);
        let (overflow, outputs) = (scratch.overflow(), outputs_of(view, reduced));
        // SAFETY: passed on from the caller.
        unsafe {
            let made = match chosen.marks {
                Some(_) => self.copied(asked, scratch)?,
                None => self.answered(number, view, reduced, to, scratch, stream)?,
            };
            let second = Second::Initial(initial);
            if !made || !self.pair((own, ask), to, second, to, outputs, overflow, stream)? {
                return Ok(false);
            }
        }
        let elements = view.shape.iter().product::<usize>() / outputs;
        let fits = ask != Ask::Total || dtype.size() < 8 && (elements as u64) < 1 << 31;
        Ok(fits || !scratch.saw_overflow(&*self.device, stream)?)
    }

    /// Numbers of floats that are finished in f64 from payloads of rows in place; says whether they are.
    ///
    /// # Safety
    /// As for [`numbers_of_chosen_into`](Self::numbers_of_chosen_into).
    unsafe fn finished(&self, asked: Asked<'_>, scratch: &mut Scratch) -> Result<bool> {
        let Asked { number, view, chosen, reduced, to, stream } = asked;
        let Chosen { marks: None, initial: None, out: Some(DType::F64) } = *chosen else {
            return Ok(false);
        };
        let ends = matches!(number.op.kind(), Kind::Sum | Kind::AbsSum | Kind::Moments);
        if !ends || !view.dtype.is_float() || self.shape.walk == Some(ForcedWalk::Views) {
            return Ok(false);
        }
        let question = Question::of(number, view, reduced, Some(ForcedWalk::Tables))?;
        let Some(Question { mut answer, table, .. }) = question else { return Ok(false) };
        let plan = PayloadPlan::of(answer, &table, self.machine());
        let row = table.elements.len.saturating_mul(view.dtype.size());
        let serves = |plan: &PayloadPlan| {
            let few = table.outputs.len <= FEW_PAYLOADS && table.launches_of_rows() == 1;
            !plan.gathers && table.is_in_order() && (few || row >= WORTH_PAYLOADS * plan.words)
        };
        let Some(plan) = plan.filter(serves) else { return Ok(false) };
        answer.out = DType::F64;
        check_alignment(to, table.outputs.len, answer.out)?;
        // SAFETY: passed on from the caller.
        unsafe { self.launch_payloads(&[(answer, to)], &table, &plan, scratch, stream) }
    }

    /// Numbers of a copy of the elements, or of these if none is left out and their type serves.
    ///
    /// # Safety
    /// As for [`numbers_of_chosen_into`](Self::numbers_of_chosen_into).
    unsafe fn copied(&self, asked: Asked<'_>, scratch: &mut Scratch) -> Result<bool> {
        let Asked { number, view, chosen, reduced, to, stream } = asked;
        let Some(way) = Way::of(number, view.dtype, chosen) else { return Ok(false) };
        let more = chosen.initial.filter(|&bits| later(number.op, view.dtype, bits).is_none());
        let widens = way.choice & WIDENS != 0 && view.dtype.is_float();
        let more = more.map(|bits| if widens { widened(view.dtype, bits) } else { bits });
        if chosen.marks.is_none() && way.dtype == view.dtype {
            let question = self.question_of_more(way.number, view, reduced, more)?;
            // SAFETY: passed on from the caller.
            return unsafe { self.make_numbers(question.as_ref(), to, scratch, stream) };
        }
        let copied = copy_of(view, chosen.marks.as_ref(), way.dtype);
        let Some((mut steps, mut copy)) = copied else { return Ok(false) };
        let (item, outputs) = (way.dtype.size(), outputs_of(view, reduced));
        let len = copy.shape.iter().product::<usize>();
        let bytes = (len * item).next_multiple_of(16);
        let all = (bytes + outputs * item + 16).next_multiple_of(16) as u64;
        let orders = (len >= WORTH_ORDER || self.shape.walk.is_some()) && has_marks_across(&steps);
        let wanted = all + if orders { len as u64 } else { 0 };
        let (at, _) = scratch.chosen.reserve(&*self.device, stream, wanted, wanted)?;
        copy.address = at;
        let ends = [at, scratch.overflow()];
        let mut ordered = None;
        if let Some(marks) = chosen.marks.as_ref().filter(|_| orders) {
            let across = steps.iter().map(|step| Step { from: step.marks, marks: 0, ..*step });
            // SAFETY: passed on from the caller for the marks; a byte for each is reserved behind all else.
            unsafe { self.gather(1, marks.address, at + all, across.collect(), stream)? };
            let marks = DeviceView { address: at + all, ..marks.clone() };
            ordered = Some(Chosen { marks: Some(marks), ..*chosen });
            steps = joined(steps.into_iter().map(|step| Step { marks: step.to, ..step }).collect());
        }
        let marked = Asked { chosen: ordered.as_ref().unwrap_or(chosen), ..asked };
        // SAFETY: passed on from the caller; there is room for the copy.
        unsafe { self.choose(marked, ends, (way.fill, way.choice), &steps)? };
        let behind = at + bytes as u64;
        // SAFETY: as above; what is behind the copy has room for an element of each output, and one more.
        unsafe {
            if way.needs_some {
                // Any other extreme is one of a marked element.
                let tells = bytes < WORTH_LAUNCHES && self.shape.walk.is_none();
                let question =
                    if tells { question_of_some(way.number, &copy, reduced)? } else { None };
                if self.make_numbers(question.as_ref(), to, scratch, stream)? {
                    return Ok(true);
                }
                if !self.all_have_some(Asked { to: behind, ..asked }, scratch)? {
                    return Ok(false);
                }
            }
            let question = if way.fill == LEFT_OUT {
                question_of_some(way.number, &copy, reduced)?
            } else {
                self.question_of_more(way.number, &copy, reduced, more)?
            };
            let made = self.make_numbers(question.as_ref(), to, scratch, stream)?;
            let watches = way.choice & IS_SEEN != 0;
            let seen = watches && scratch.saw_overflow(&*self.device, stream)?;
            if !made || !seen || !way.dtype.is_float() {
                return Ok(made && !seen);
            }
            // Marked NaNs were infinite. A copy of nothing else tells their outputs: the greatest of
            // such an output is NaN, that of others is less than any mean.
            let least = with_element!(way.dtype, T => bits_of::<T>(f64::NEG_INFINITY));
            self.choose(marked, [at, 0], (least, way.choice & WIDENS | ONLY_NAN), &steps)?;
            let (ask, second) = ((way.dtype, Ask::Greatest), Second::Of(behind));
            Ok(self.answered(Op::Max, &copy, reduced, behind, scratch, stream)?
                && self.pair(ask, to, second, to, outputs, 0, stream)?)
        }
    }

    /// A question about a view's elements, and if there is one, about one more of every output: only
    /// the walk over views takes such.
    fn question_of_more(
        &self,
        number: Number,
        view: &DeviceView,
        reduced: &[bool],
        more: Option<u64>,
    ) -> Result<Option<Question>> {
        let walk = if more.is_some() { Some(ForcedWalk::Views) } else { self.shape.walk };
        let mut question = Question::of(number, view, reduced, walk)?;
        if let Some(Question { answer, .. }) = &mut question {
            answer.initial = more;
        }
        Ok(question.filter(|question| more.is_none() || question.layout.is_some()))
    }

    /// Whether every output has an element that is marked; waits.
    ///
    /// # Safety
    /// As for [`numbers_into`](Self::numbers_into) for the marks; there is room for a byte of
    /// each output, and one more.
    unsafe fn all_have_some(&self, asked: Asked<'_>, scratch: &mut Scratch) -> Result<bool> {
        let Asked { view, chosen, reduced, to: at, stream, .. } = asked;
        let outputs = outputs_of(view, reduced);
        let Some(marks) = &chosen.marks else { return Ok(true) };
        let last = at + outputs as u64;
        let any = DeviceView::contiguous(at, DType::Bool, &[outputs]);
        for (op, view, reduced, to) in
            [(Op::Any, marks, reduced, at), (Op::All, &any, &[true], last)]
        {
            // SAFETY: passed on from the caller.
            if !unsafe { self.answered(op, view, reduced, to, scratch, stream)? } {
                return Ok(false);
            }
        }
        let mut all = [0];
        // SAFETY: the last launch leaves the byte.
        unsafe { self.device.copy_out(stream, last, &mut all)? };
        self.device.wait(stream).map(|()| all != [0])
    }

    /// Launches a copy along some axes to the first address; the second is the word for what is seen.
    ///
    /// # Safety
    /// As for [`numbers_of_chosen_into`](Self::numbers_of_chosen_into); nobody else uses the
    /// memory that is copied to, which has room.
    unsafe fn choose(
        &self,
        Asked { view, chosen, stream, .. }: Asked<'_>,
        [to, seen]: [Address; 2],
        (fill, choice): (u64, u32),
        steps: &[Step],
    ) -> Result<()> {
        let kernel = self.program(Program::Choose(view.dtype))?;
        let size = view.dtype.size().cast_signed();
        let run = steps.first().map_or(1, |step| step.len);
        let rows = steps.iter().skip(1).map(|step| step.len).product::<usize>();
        let near = |step: &Step| step.to == 1 && (chosen.marks.is_none() || step.marks == 1);
        let together = choice & WIDENS == 0
            && LONG.contains(&run)
            && steps.first().is_some_and(|step| step.from == size && near(step));
        // Threads that take a run together: with fewer elements than they could have, where these lie in few sectors.
        let (each, beside) = if together {
            (CHOOSE_VECTORS * 16 / view.dtype.size(), 16 / view.dtype.size())
        } else {
            (CHOOSE_EACH, 0)
        };
        let few = if together { each } else { each / 2 };
        let width = run.div_ceil(few).next_power_of_two().min(CHOOSE_THREADS);
        let parts = rows * (run + beside).div_ceil(each * width);
        let choice = choice | if together { TOGETHER } else { 0 };
        let most = self.device.limits().multiprocessors.max(1) as usize * BLOCKS;
        let blocks = parts.div_ceil(CHOOSE_THREADS / width).clamp(1, most);
        let launch = Launch::linear(blocks as u32, CHOOSE_THREADS as u32);
        let mut arguments = vec![
            Argument::from(view.address),
            Argument::from(to),
            Argument::from(chosen.marks.as_ref().map_or(0, |marks| marks.address)),
            Argument::from(choice),
            Argument::from(fill),
            Argument::from(seen),
            Argument::from(rows as u32),
            Argument::from(width.trailing_zeros()),
            Argument::from(steps.len() as u32),
        ];
        for i in 0..CHOOSE_AXES {
            let Step { len, from, to, marks } = steps.get(i).copied().unwrap_or(NONE);
            arguments.push(Argument::from(len as u32));
            arguments.push(Argument::from((from / size) as i64));
            arguments.push(Argument::from(to as i64));
            arguments.push(Argument::from(marks as i64));
        }
        // SAFETY: the kernel has these parameters; it reads the elements and marks that they
        // describe and writes as many, which the caller vouches for.
        unsafe { self.device.launch(stream, kernel, &launch, &arguments) }
    }
}
