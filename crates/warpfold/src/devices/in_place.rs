//! Reductions of arrays where they lie in a device's memory.

use super::memory::{DeviceArray, DeviceArrayMut};
use crate::answer::{Answer, Column, halves};
use crate::device::Device;
use crate::partial::Partial;
use crate::reduction::{Asked, Reduction};
use warpfold_core::layout::{PerAxis, output_shape};
use warpfold_core::op::{AnyState, Kind, Numbers, Op, Rules};
use warpfold_core::{DType, Error, Result, fpenv};
use warpfold_cuda::Engine;
use warpfold_cuda::engine::{Array, Input, MOST_ELEMENTS, Number};

/// Bytes of elements that make a byte of states worth its way to the host.
const WORTH_STATES: usize = 4;

/// Turns an error of the device or the engine into one of a reduction.
pub(crate) fn failure(error: warpfold_cuda::Error) -> Error {
    use warpfold_cuda::Error as E;
    match error {
        E::Core(error) => error,
        E::Array { .. } | E::View { .. } | E::ForeignHandle { .. } => Error::DeviceMemory {
            what: error.to_string(),
            hint: "give memory that the device of the stream can read and write",
        },
        error => {
            let hint = error.hint().unwrap_or("copy the array to the host and reduce it there");
            Error::Device { hint: hint.into(), what: error.to_string() }
        }
    }
}

/// Refuses arrays that a reduction cannot take together on one stream.
pub(super) fn check_place(
    question: &Reduction,
    first: &DeviceArray<'_>,
    second: Option<&DeviceArray<'_>>,
) -> Result<()> {
    let (on, named) = (first.stream().device(), question.named_device());
    let fits = match (named, on) {
        (Device::Auto, _) => true,
        (Device::CudaAll, Device::Cuda(_)) | (Device::Sims(_), Device::Sim) => true,
        (Device::Cuda(asked), Device::Cuda(on)) => asked.unwrap_or(0) == on.unwrap_or(0),
        _ => named == on,
    };
    if !fits {
        return Err(Error::DeviceMemory {
            what: format!("the array lies in the memory of {on}, which {named} cannot read"),
            hint: "name no device, or copy the array to the one that is named",
        });
    }
    match second {
        Some(second) if !second.stream().is(first.stream()) => Err(Error::DeviceMemory {
            what: "two arrays are on different streams".into(),
            hint: "name one stream for both, and let it wait for the other",
        }),
        _ => Ok(()),
    }
}

/// The shared part of a question about arrays in a device's memory.
pub(super) struct InPlace<'a> {
    first: &'a DeviceArray<'a>,
    second: Option<&'a DeviceArray<'a>>,
    pub(super) reduced: PerAxis<bool>,
    /// The shape of the answers.
    pub(super) shape: Vec<usize>,
}

impl InPlace<'_> {
    fn engine(&self) -> &Engine {
        &self.first.stream().opened.engine
    }

    pub(super) fn outputs(&self) -> usize {
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// All elements of the arrays, if they make one answer and kernels can walk them from
    /// the first to the last.
    pub(super) fn whole(&self, start: u64) -> Option<Input> {
        let array = |of: &DeviceArray<'_>| {
            let view = of.view();
            let aligned = view.address.is_multiple_of(view.dtype.size() as u64);
            let len = of.len() as u64;
            let fits = aligned && of.is_contiguous() && (1..=MOST_ELEMENTS).contains(&len);
            fits.then_some(Array { address: view.address, len, dtype: view.dtype })
        };
        if self.reduced.contains(&false) {
            return None;
        }
        let others = match self.second {
            Some(second) if second.shape() == self.first.shape() => Some(array(second)?),
            Some(_) => return None,
            None => None,
        };
        let array = array(self.first)?;
        if others.is_some_and(|others| others.dtype != array.dtype) {
            return None;
        }
        Some(Input { array, others: others.map(|others| others.address), start })
    }

    /// The states of every output, output by output; waits for them, once.
    fn states(&self, kinds: &[Kind], start: u64) -> Result<Vec<Vec<AnyState>>> {
        let stream = self.first.stream().stream;
        let (_lent, _lent_too) = (self.first.lend(), self.second.and_then(DeviceArray::lend));
        if let Some(input) = self.whole(start) {
            // SAFETY: who made the arrays has promised that they may be read, and they are
            // until this returns.
            let states = unsafe { self.engine().reduce_all(kinds, input, stream) };
            return states.map(|states| vec![states]).map_err(failure);
        }
        let views = [Some(self.first.view()), self.second.map(DeviceArray::view)];
        // SAFETY: as above.
        let states =
            unsafe { self.engine().states_of_view(views, &self.reduced, kinds, start, stream) };
        states.map_err(failure)
    }

    /// The answers that the device finishes itself, for each number where it does;
    /// waits for them, once.
    fn columns(&self, numbers: &[Number]) -> Result<Vec<Option<Column>>> {
        let asked: Vec<Number> = numbers.iter().flat_map(|&number| parts(number)).collect();
        let (view, stream) = (self.first.view(), self.first.stream().stream);
        let _lent = self.first.lend();
        // SAFETY: as for states.
        let all = unsafe { self.engine().numbers_of_view(&asked, view, &self.reduced, stream) };
        let mut all = all.map_err(failure)?.into_iter();
        let column = |&Number { op, .. }: &Number| {
            let its: Vec<Option<Numbers>> = all.by_ref().take(halves(op).len()).collect();
            let mut its = its.into_iter().collect::<Option<Vec<Numbers>>>()?.into_iter();
            Some(Column { op, numbers: its.next()?, second: its.next() })
        };
        Ok(numbers.iter().map(column).collect())
    }
}

/// The numbers of one or two that an answer has.
fn parts(number: Number) -> impl Iterator<Item = Number> {
    halves(number.op).into_iter().map(move |op| Number { op, ..number })
}

/// Whether kernels may know an operation under these rules.
pub(crate) fn knows(op: Op, dtype: DType, rules: &Rules) -> bool {
    Number::under(op, dtype, rules).is_some()
}

/// The parts of operations as kernels know them; of those that they do not know there are none.
pub(super) fn numbers(
    ops: &[Op],
    rules: &Rules,
    dtype: DType,
    parts: impl Fn(Op) -> Vec<Op>,
) -> Vec<Number> {
    let number = |&op: &Op| Number::under(op, dtype, rules);
    let parts =
        |number: Number| parts(number.op).into_iter().map(move |op| Number { op, ..number });
    ops.iter().filter_map(number).flat_map(parts).collect()
}

impl Reduction {
    /// The types of the answers that go to a device's memory, in their order: one for each
    /// operation, and two for [`Op::MinMax`] and [`Op::ArgMinMax`].
    ///
    /// ```
    /// use warpfold::{DType, Op, Reduction};
    ///
    /// let question = Reduction::new([Op::Mean, Op::MinMax, Op::ArgMax]);
    /// let types = question.answer_types(DType::F32);
    /// assert_eq!(types, [DType::F32, DType::F32, DType::F32, DType::U64]);
    /// ```
    #[must_use]
    pub fn answer_types(&self, dtype: DType) -> Vec<DType> {
        let own = |op: Op| self.rules.out.unwrap_or(op.answer_type(dtype));
        self.ops.iter().flat_map(|&op| halves(op)).map(own).collect()
    }

    pub(super) fn in_place<'a>(
        &self,
        first: &'a DeviceArray<'a>,
        second: Option<&'a DeviceArray<'a>>,
    ) -> Result<InPlace<'a>> {
        self.check(first.dtype(), 1 + usize::from(second.is_some()))?;
        check_place(self, first, second)?;
        let reduced = self.named_axes().resolve(first.shape().len())?;
        let shape = output_shape(first.shape(), &reduced, self.keeps_dims());
        Ok(InPlace { first, second, reduced, shape })
    }

    /// The answers about arrays in a device's memory, brought to the host.
    pub(crate) fn run_in_place(
        &self,
        first: &DeviceArray<'_>,
        second: Option<&DeviceArray<'_>>,
    ) -> Result<Answer> {
        fpenv::usual(|| {
            let place = self.in_place(first, second)?;
            // Numbers are made of one array, and states of what is one run.
            let takes = second.is_none() && place.whole(0).is_none();
            let number = |op: Op| self.number_of(op, &place).filter(|_| takes);
            let numbers: Vec<Number> = self.ops.iter().filter_map(|&op| number(op)).collect();
            let mut made = place.columns(&numbers)?.into_iter();
            let column = |&op: &Op| number(op).and_then(|_| made.next()?);
            let mut columns: Vec<Option<Column>> = self.ops.iter().map(column).collect();
            let lacking = self.ops.iter().zip(&columns).filter(|(_, column)| column.is_none());
            let rest: Vec<Op> = lacking.map(|(&op, _)| op).collect();
            if !rest.is_empty() {
                let question = self.with_ops(rest);
                let partial = question.states_in_place(first, second, 0)?;
                let mut finished = partial.finish(&self.rules)?.into_columns().into_iter();
                for column in columns.iter_mut().filter(|column| column.is_none()) {
                    *column = finished.next();
                }
            }
            let columns = columns.into_iter().flatten().collect();
            Ok(Answer { shape: place.shape, columns })
        })
    }

    /// What the device had better finish of an operation: nothing where several operations
    /// share a state, and states are little beside the elements.
    fn number_of(&self, op: Op, place: &InPlace<'_>) -> Option<Number> {
        let dtype = place.first.dtype();
        let number = Number::under(op, dtype, &self.rules)?;
        let (kinds, ops) = self.kinds();
        let &(_, state) = ops.iter().find(|(other, _)| *other == op)?;
        let sharing = ops.iter().filter(|&&(_, other)| other == state);
        let passes: usize = sharing.map(|&(op, _)| halves(op).len()).sum();
        let bytes = Engine::payload_len(kinds[state], dtype).unwrap_or(usize::MAX);
        let states = place.outputs().saturating_mul(bytes).saturating_mul(WORTH_STATES);
        let finishes = passes < 2 || states > place.first.len().saturating_mul(dtype.size());
        finishes.then_some(number)
    }

    /// The states of arrays in a device's memory, whose first element has index `start`
    /// among the reduced ones.
    pub(crate) fn states_in_place(
        &self,
        first: &DeviceArray<'_>,
        second: Option<&DeviceArray<'_>>,
        start: u64,
    ) -> Result<Partial> {
        fpenv::usual(|| {
            let arrays = 1 + usize::from(second.is_some());
            let (_, kinds, asked) = self.asked(first.dtype(), first.shape(), arrays, start)?;
            let states = self.in_place(first, second)?.states(&kinds, start)?;
            let Asked { dtype, shape, ops } = asked;
            Partial::new(dtype, shape, ops, states)
        })
    }

    /// Leaves the answers in the device's memory: an array for each operation, and two for
    /// [`Op::MinMax`] and [`Op::ArgMinMax`], of the types that
    /// [`answer_types`](Self::answer_types) tells.
    ///
    /// What the device finishes by itself is not waited for, and comes behind all work on
    /// the stream. What only the host finishes is sent there: answers under other rules
    /// than the default ones and [`NanPolicy::Omit`](crate::NanPolicy::Omit) where these matter,
    /// products of integers, totals that do not fit a device's words. [`prepare`](Self::prepare) is for questions that come again
    /// and again.
    ///
    /// After an error the arrays may hold anything.
    ///
    /// # Errors
    /// Those of [`run`](Self::run); [`Error::DeviceMemory`] for arrays of other types or
    /// sizes than the answers', on other streams, or overlapping.
    ///
    /// # Examples
    /// ```no_run
    /// # fn on(stream: &warpfold::DeviceStream, table: u64, means: u64) -> warpfold::Result<()> {
    /// use warpfold::{DType, DeviceArray, DeviceArrayMut, Op, Reduction};
    ///
    /// // SAFETY: a table of 1000 rows and room for their means lie there.
    /// let table = unsafe { DeviceArray::from_raw(DType::F32, table, &[1000, 256], stream)? };
    /// // SAFETY: as above.
    /// let means = unsafe { DeviceArrayMut::from_raw(DType::F32, means, 1000, stream)? };
    /// Reduction::of(Op::Mean).axis(1).run_into(&table, &mut [means])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_into(
        &self,
        array: &DeviceArray<'_>,
        answers: &mut [DeviceArrayMut<'_>],
    ) -> Result<()> {
        fpenv::usual(|| {
            let place = self.in_place(array, None)?;
            check_answers(array, answers, &self.answer_types(array.dtype()), place.outputs())?;
            let stream = array.stream().stream;
            let mut next = 0;
            for &op in &self.ops {
                let its = &mut answers[next..next + halves(op).len()];
                next += its.len();
                let alone = self.with_ops(vec![op]);
                let number = Number::under(op, array.dtype(), &self.rules);
                if let Some(number) = number.filter(|_| self.initial.is_none())
                    && place.leave(number, its)?
                {
                    continue;
                }
                let answer = alone.run(array)?;
                let columns = answer.into_columns().into_iter();
                let numbers = columns.flat_map(|column| [Some(column.numbers), column.second]);
                for (to, numbers) in its.iter_mut().zip(numbers.flatten()) {
                    let address = to.address();
                    let _lent = to.lend();
                    let device = array.stream().opened.engine.device();
                    // SAFETY: who made the array has promised that it may be written; it
                    // has as many bytes.
                    let sent = unsafe { device.copy_in(stream, address, numbers.bytes()) };
                    sent.map_err(failure)?;
                }
            }
            Ok(())
        })
    }
}

impl InPlace<'_> {
    /// Leaves the answers to a number in the device's memory, and says whether the
    /// device does that.
    fn leave(&self, number: Number, answers: &mut [DeviceArrayMut<'_>]) -> Result<bool> {
        let (view, stream) = (self.first.view(), self.first.stream().stream);
        for (half, to) in parts(number).zip(answers) {
            let address = to.address();
            let (_lent, _lent_too) = (self.first.lend(), to.lend());
            // SAFETY: who made the arrays has promised that the one may be read and the
            // other written, also after this returns; there is a number for each output.
            let left =
                unsafe { self.engine().numbers_into(half, view, &self.reduced, address, stream) };
            if !left.map_err(failure)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Refuses memory that the answers to a question do not fit.
pub(crate) fn check_answers(
    array: &DeviceArray<'_>,
    answers: &[DeviceArrayMut<'_>],
    types: &[DType],
    outputs: usize,
) -> Result<()> {
    let refused = |what, hint| Err(Error::DeviceMemory { what, hint });
    if answers.len() != types.len() {
        return refused(
            format!("{} arrays for {} answers", answers.len(), types.len()),
            "give one for each operation, and two for minmax and argminmax",
        );
    }
    let (first, bytes) = array.view().extent().map_err(failure)?;
    let apart = |(a, n): (u64, u64), (b, m): (u64, u64)| {
        n == 0 || m == 0 || a.saturating_add(n) <= b || b.saturating_add(m) <= a
    };
    let mut taken = vec![(first, bytes)];
    for (to, &dtype) in answers.iter().zip(types) {
        if to.dtype() != dtype || to.len() != outputs {
            return refused(
                format!(
                    "room for {} answers of {}, and there are {outputs} of {dtype}",
                    to.len(),
                    to.dtype()
                ),
                "give an array of the type that answer_types tells, with a number for each output",
            );
        }
        if !to.stream().is(array.stream()) {
            return refused(
                "the array and the answers are on different streams".into(),
                "name one stream for both",
            );
        }
        if taken.iter().any(|&other| !apart(other, to.extent())) {
            return refused(
                "the answers overlap the array, or each other".into(),
                "give them memory of their own: kernels read some elements late",
            );
        }
        let device = array.stream().opened.engine.device();
        let (at, bytes) = to.extent();
        if let Some(why) = device.why_unreadable(at, bytes).filter(|_| bytes > 0) {
            return refused(
                format!("answers cannot go to {at:#x}: {why}"),
                "give memory of the stream's device",
            );
        }
        taken.push(to.extent());
    }
    Ok(())
}
