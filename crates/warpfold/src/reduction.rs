//! The builder of reductions.

use crate::answer::{Answer, Column, halves};
use crate::array::{Array, Pair, Place};
use crate::cancel::{CancelToken, Until};
use crate::columns::complete_pairs;
use crate::device::Device;
use crate::devices::Opened;
use crate::initial;
use crate::partial::Partial;
use crate::workers::Workers;
use crate::{choice, devices};
use warpfold_core::layout::{Axes, PerAxis, View, output_shape};
use warpfold_core::op::{AnyState, Kind, Op};
use warpfold_core::{DType, Element, Error, Item, NanPolicy, Result, Rules, Scalar, fpenv};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Job, Outputs, Threads};

/// Operations, and the rules for their answers.
///
/// # Examples
///
/// The mean of each row, without its NaNs:
/// ```
/// use warpfold::{NanPolicy, Op, Reduction, View};
///
/// let rows = [1.0f32, f32::NAN, 3.0, 4.0, 5.0, 6.0];
/// let table = View::of_strided(&rows, 0, &[2, 3], &[3, 1])?;
/// let answer = Reduction::of(Op::Mean).axis(1).nan(NanPolicy::Omit).run(table)?;
/// assert_eq!(answer.slice::<f32>(Op::Mean), Some(&[2.0, 5.0][..]));
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// The same state rounded to another type:
/// ```
/// use warpfold::{DType, Op, Reduction};
///
/// let third = [0.1f32; 3];
/// let answer = Reduction::of(Op::Sum).out(DType::F64).run(&third)?;
/// assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[3.0 * f64::from(0.1f32)][..]));
/// # Ok::<(), warpfold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reduction {
    pub(crate) ops: Vec<Op>,
    axes: Axes,
    keepdims: bool,
    pub(crate) rules: Rules,
    pub(crate) initial: Option<Scalar>,
    device: Device,
    threads: Threads,
    pub(crate) until: Until,
}

impl Reduction {
    /// One operation over all axes. Each has a name, too: `Reduction::sum()`.
    #[must_use]
    pub fn of(op: Op) -> Reduction {
        Reduction::new([op])
    }

    /// Several operations, answered in one pass over the data.
    #[must_use]
    pub fn new(ops: impl IntoIterator<Item = Op>) -> Reduction {
        Reduction {
            ops: ops.into_iter().collect(),
            axes: Axes::All,
            keepdims: false,
            rules: Rules::default(),
            initial: None,
            device: Device::Auto,
            threads: Threads::All,
            until: Until::default(),
        }
    }

    /// Reduces these axes and no others; negative ones count from the end. Without a call of
    /// this or of [`axis`](Self::axis), all axes are reduced.
    #[must_use]
    pub fn axes(mut self, axes: impl IntoIterator<Item = isize>) -> Self {
        self.axes = Axes::These(axes.into_iter().collect());
        self
    }

    /// Reduces this axis, beside those that were named before.
    ///
    /// ```
    /// use warpfold::{Op, Reduction};
    /// let answer = Reduction::of(Op::Sum).axis(0).axis(1).run(&[[1, 2], [3, 4]])?;
    /// assert_eq!(answer.number::<i64>(Op::Sum), Some(10));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn axis(mut self, axis: isize) -> Self {
        match &mut self.axes {
            Axes::These(axes) => axes.push(axis),
            Axes::All => self.axes = Axes::These(vec![axis]),
        }
        self
    }

    /// Whether a reduced axis stays, with length 1.
    #[must_use]
    pub fn keepdims(mut self, keepdims: bool) -> Self {
        self.keepdims = keepdims;
        self
    }

    /// What NaNs do.
    #[must_use]
    pub fn nan(mut self, policy: NanPolicy) -> Self {
        self.rules.nan = policy;
        self
    }

    /// The type of the answers; the operations' own without a call.
    #[must_use]
    pub fn out(mut self, dtype: DType) -> Self {
        self.rules.out = Some(dtype);
        self
    }

    /// What `var` and `std` subtract from the count in their divisor.
    #[must_use]
    pub fn ddof(mut self, ddof: u64) -> Self {
        self.rules = self.rules.ddof(ddof);
        self
    }

    /// The rules by which the answers are finished, in the place of those that were said.
    ///
    /// ```
    /// use warpfold::{Op, Reduction, Rules};
    ///
    /// let rules = Rules::new().correction(0.5).expect("not negative");
    /// let answer = Reduction::of(Op::Var).finished_by(rules).run(&[1.0, 2.0, 6.0])?;
    /// assert_eq!(answer.number::<f64>(Op::Var), Some(14.0 / 2.5));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn finished_by(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Whether integer totals wrap around instead of failing.
    #[must_use]
    pub fn wrap(mut self, wrap: bool) -> Self {
        self.rules.wrap = wrap;
        self
    }

    /// A value that takes part, as NumPy's `initial` does: as if it stood behind the last of
    /// the elements that make an answer. Then `min` and its kin have a value of no elements,
    /// too.
    ///
    /// [`Op::Sum`], [`Op::Prod`], [`Op::Min`], [`Op::Max`], [`Op::MinMax`], [`Op::Range`] and
    /// [`Op::NormInf`] take one. It becomes an element of the array's type, which must have
    /// it: -1 is no `u8`, and 0.1 no `f32`.
    ///
    /// ```
    /// use warpfold::{Op, Reduction};
    ///
    /// let none: [f64; 0] = [];
    /// let answer = Reduction::of(Op::Min).initial(f64::INFINITY).run(&none)?;
    /// assert_eq!(answer.number::<f64>(Op::Min), Some(f64::INFINITY));
    /// let answer = Reduction::of(Op::Sum).initial(100).axis(0).run(&[[1, 2], [3, 4]])?;
    /// assert_eq!(answer.slice::<i64>(Op::Sum), Some(&[104, 106][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn initial<T: Item>(mut self, value: T) -> Self {
        let bits = value.to_element().bits();
        self.initial = Some(Scalar::from_bits(T::Element::DTYPE, bits));
        self
    }

    /// How many threads work: a number, or [`Threads`]. As many as there are cores without a
    /// call.
    #[must_use]
    pub fn threads(mut self, threads: impl Into<Threads>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Ends soon after the token was cancelled, with [`Error::Cancelled`]: after the piece at
    /// work, of 64 MiB at the most. A device ends what it has begun.
    #[must_use]
    pub fn until(mut self, token: &CancelToken) -> Self {
        self.until = Until(Some(token.clone()));
        self
    }

    /// Which device works.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// The operations asked for.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// How the answers are finished.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The number of threads.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        self.threads.count()
    }

    pub(crate) fn named_threads(&self) -> Threads {
        self.threads
    }

    /// Which device was asked for.
    #[must_use]
    pub fn named_device(&self) -> Device {
        self.device
    }

    /// The axes.
    #[must_use]
    pub fn named_axes(&self) -> &Axes {
        &self.axes
    }

    /// Whether reduced axes stay.
    #[must_use]
    pub fn keeps_dims(&self) -> bool {
        self.keepdims
    }

    /// Which states the operations need, without repetition, and for each
    /// operation which of them.
    pub(crate) fn kinds(&self) -> (Vec<Kind>, Vec<(Op, usize)>) {
        let mut kinds = Vec::with_capacity(self.ops.len());
        let is_wanted = |kind: &Kind| self.ops.iter().any(|op| op.kind() == *kind);
        let placed = self.ops.iter().map(|&op| {
            // A state with positions answers what the plain one does, and
            // one with moments what the sums do.
            let kind = op.kind().covered_by().filter(is_wanted).unwrap_or_else(|| op.kind());
            let place = kinds.iter().position(|&k| k == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            (op, place)
        });
        let ops = placed.collect();
        (kinds, ops)
    }

    /// The same question of arrays of one axis, all of it reduced.
    pub(crate) fn of_all(&self) -> Reduction {
        Reduction { axes: Axes::All, keepdims: false, ..self.clone() }
    }

    /// The same question with other operations.
    pub(crate) fn with_ops(&self, ops: Vec<Op>) -> Reduction {
        Reduction { ops, ..self.clone() }
    }

    /// Checks the question against an element type and a number of arrays.
    pub(crate) fn check(&self, dtype: DType, arrays: usize) -> Result<()> {
        for &op in &self.ops {
            if !op.supports(dtype) {
                return Err(Error::UnsupportedType { op, dtype });
            }
            if op.arity() != arrays {
                return Err(Error::Arity { op, takes: op.arity(), given: arrays });
            }
        }
        Ok(())
    }

    /// The device at work, opened, if it is not the CPU.
    fn open(&self, device: Device, dtype: DType) -> Result<Option<Opened>> {
        let Some(opened) = devices::of(device)? else { return Ok(None) };
        let (kinds, _) = self.kinds();
        // The operation that wants the state, not one that it answers as well.
        let lacking = |op: &&Op| {
            let kind = op.kind();
            kinds.contains(&kind) && !opened.supports(kind, dtype)
        };
        if let Some(op) = self.ops.iter().find(lacking) {
            return Err(Error::Device {
                what: format!("device {device} has no kernel for {op} of {dtype} elements"),
                hint: "use --device cpu, which has every operation".into(),
            });
        }
        Ok(Some(opened))
    }

    /// The bytes of data in the host's memory from which on a device is expected
    /// to be done before the CPU, its opening and the copy included; `None` if it
    /// never is: without the feature `cuda`, too.
    #[must_use]
    pub fn device_pays_from(&self, dtype: DType) -> Option<u64> {
        if !cfg!(feature = "cuda") {
            return None;
        }
        let (kinds, _) = self.kinds();
        let open = devices::is_open(0);
        let pays = || choice::pays_from(&kinds, dtype, self.thread_count(), open);
        let from = fpenv::usual(pays)?;
        Some(from.max(choice::SMALL))
    }

    /// The device that works, for this many bytes in the host's memory or a file.
    fn choose(&self, dtype: DType, bytes: Option<u64>) -> Device {
        if self.device != Device::Auto {
            return self.device;
        }
        let large = || {
            let bytes = bytes.filter(|&bytes| bytes >= choice::SMALL)?;
            Some(bytes >= self.device_pays_from(dtype)?)
        };
        // A device that cannot be opened or does not take all kernels is none.
        let cuda = Device::Cuda(Some(0));
        let arrays = self.ops.iter().map(|op| op.arity()).max().unwrap_or(1);
        let takes = || self.clone().device(cuda).workers(dtype, arrays).is_ok();
        if large() == Some(true) && takes() { cuda } else { Device::Cpu }
    }

    /// The same question with the choice of [`Device::Auto`] made, for this many bytes
    /// in the host's memory or a file, if that is known. Small inputs never open a
    /// device.
    ///
    /// [`run`](Self::run) and [`partial`](Self::partial) do this by themselves; a
    /// caller that needs several [`workers`](Self::workers) calls it first.
    pub(crate) fn settled(&self, dtype: DType, bytes: Option<u64>) -> Reduction {
        self.clone().device(fpenv::usual(|| self.choose(dtype, bytes)))
    }

    /// Checks the question against an element type and a number of arrays,
    /// before there is any data. A device that is named is opened.
    ///
    /// # Errors
    /// A device that this machine lacks or that has no kernel for an operation,
    /// an operation that the type does not have, `dot` of one array or anything
    /// else of two.
    pub fn check_type(&self, dtype: DType, arrays: usize) -> Result<()> {
        self.check(dtype, arrays)?;
        Isa::active()?;
        fpenv::usual(|| self.open(self.device, dtype)).map(drop)
    }

    /// What `make` makes of a job on its device, if that is not the CPU. One that
    /// was not named may fail: the CPU is there.
    fn on_device<A>(
        &self,
        job: &Job<'_>,
        dtype: DType,
        make: impl FnOnce(&Opened) -> Result<A>,
    ) -> Result<Option<A>> {
        let device = self.choose(dtype, Some(bytes_of(job.views)));
        let Some(opened) = self.open(device, dtype)? else { return Ok(None) };
        match make(&opened) {
            Err(Error::Device { .. }) if self.device == Device::Auto => Ok(None),
            made => made.map(Some),
        }
    }

    /// The columns of an answer that a device finishes as well as core does.
    fn columns_on_device(&self, job: &Job<'_>, opened: &Opened) -> Result<Option<Vec<Column>>> {
        if self.rules != Rules::default() {
            return Ok(None);
        }
        let single: Vec<Op> = self.ops.iter().flat_map(|&op| halves(op)).collect();
        let Some(numbers) = opened.numbers(&single, job)? else { return Ok(None) };
        let mut numbers = numbers.into_iter();
        let columns = self.ops.iter().map(|&op| {
            let mut its = halves(op).into_iter().map_while(|_| numbers.next());
            Some(Column { op, numbers: its.next()?, second: its.next() })
        });
        Ok(columns.collect())
    }

    /// The answer in the usual floating-point environment, whatever other code has
    /// set: for the choice of a device, too, for its driver, and for threads that
    /// are started.
    pub(crate) fn run_views(&self, views: [Option<&View<'_>>; 2]) -> Result<Answer> {
        match &self.until.0 {
            Some(token) => self.run_while(views, &mut || !token.is_cancelled()),
            None => fpenv::usual(|| self.answer(views, None)),
        }
    }

    fn answer(&self, views: [Option<&View<'_>>; 2], marks: Option<&View<'_>>) -> Result<Answer> {
        let Some(first) = views[0] else {
            return Ok(Answer { shape: Vec::new(), columns: Vec::new() });
        };
        let dtype = first.dtype();
        self.check(dtype, views.iter().flatten().count())?;
        let initial = initial::of(self, dtype)?;
        let reduced = self.axes.resolve(first.shape().len())?;
        let (kinds, ops) = self.kinds();
        let shape = output_shape(first.shape(), &reduced, self.keepdims);
        if ops.is_empty() {
            return Ok(Answer { shape, columns: Vec::new() });
        }
        let isa = Isa::active()?;
        let threads = self.threads;
        let job =
            Job { views, reduced: &reduced, kinds: &kinds, start: 0, initial, marks, isa, threads };
        // Devices take neither initial values nor marks.
        let made = if initial.is_some() || marks.is_some() {
            None
        } else {
            self.on_device(&job, dtype, |opened| {
                Ok(match self.columns_on_device(&job, opened)? {
                    Some(columns) => Made::Columns(columns),
                    None => Made::States(opened.states(&job)?),
                })
            })?
        };
        match made {
            Some(Made::Columns(columns)) => return Ok(Answer { shape, columns }),
            Some(Made::States(states)) => {
                return Partial::new(dtype, shape, ops, states)?.finish(&self.rules);
            }
            None => {}
        }
        let columns = job.values(&ops, &self.rules)?;
        let columns = ops
            .iter()
            .zip(columns)
            .map(|(&(op, _), outputs)| match outputs {
                Outputs::Values(values) => Column::pack(op, dtype, &self.rules, &values),
                Outputs::Numbers { numbers, second } => Column { op, numbers, second },
            })
            .collect();
        Ok(Answer { shape, columns })
    }

    /// Reduces an array: a slice or whatever holds one, rows of equal length, a
    /// [`View`] of any shape and strides, and with the features of these names
    /// `ndarray` arrays and Arrow arrays.
    ///
    /// The answer has the array's shape without the reduced axes. Several
    /// operations read the array once. Elements without a value (an Arrow null,
    /// see [`Input`](crate::Input)) are left out, and count as positions.
    ///
    /// ```
    /// use warpfold::{Op, Reduction};
    ///
    /// let data = vec![1.0, 2.0, 4.0];
    /// let answer = Reduction::of(Op::Mean).run(&data)?;
    /// assert_eq!(answer.number::<f64>(Op::Mean), Some(7.0 / 3.0));
    ///
    /// let answer = Reduction::of(Op::Sum).axis(0).run(&[[1, 2], [3, 4], [5, 6]])?;
    /// assert_eq!(answer.slice::<i64>(Op::Sum), Some(&[9, 12][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// Axes out of range or named twice; an operation that the element type
    /// does not have, or [`Op::Dot`]; `min` and its kin of nothing; integer
    /// totals that do not fit; NaNs under [`NanPolicy::Error`]; an Arrow array of
    /// something else than numbers; a device that this machine lacks or that
    /// fails; a [token](Self::until) that was cancelled.
    pub fn run<'a>(&self, array: impl Into<Array<'a>>) -> Result<Answer> {
        self.run_array(array.into())
    }

    /// The same, compiled once for all arrays.
    fn run_array(&self, array: Array<'_>) -> Result<Answer> {
        self.until.check()?;
        if let Some(input) = array.on_host()
            && input.missing() == 0
        {
            return self.run_complete(&input.view()?);
        }
        if self.initial.is_some() {
            return self.run_with_initial(array);
        }
        match array.into_place() {
            Place::Host(input) if input.missing() > 0 && !self.ops.is_empty() => {
                self.partial_of_column(&input, 0)?.finish(&self.rules)
            }
            Place::Host(input) => self.run_views([Some(&input.view()?), None]),
            Place::Device(array) => self.run_in_place(&array, None),
        }
    }

    /// Reduces the elements of an array that are marked: `marks` has a truth value for each, and the
    /// shape of the array (a stride of 0 repeats one along an axis). The others are left out, and
    /// count as positions. The CPU works, whatever device is named.
    ///
    /// ```
    /// use warpfold::{DType, Op, Reduction, View};
    ///
    /// let data = [1.0f64, 2.0, 4.0, 8.0];
    /// let marks = View::from_bytes(DType::Bool, &[1, 0, 1, 1], &[4])?;
    /// let answer = Reduction::of(Op::Sum).run_marked(&View::of(&data), &marks)?;
    /// assert_eq!(answer.number::<f64>(Op::Sum), Some(13.0));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Self::run); [`Error::ShapeMismatch`] and [`Error::DTypeMismatch`] for marks
    /// of another shape, or that are no truth values.
    pub fn run_marked(&self, array: &View<'_>, marks: &View<'_>) -> Result<Answer> {
        self.until.check()?;
        fpenv::usual(|| self.answer([Some(array), None], Some(marks)))
    }

    /// [`run`](Self::run) of an array in the host's memory, or [`run_pair`](Self::run_pair) of two.
    pub(crate) fn run_whole(&self, views: [Option<&View<'_>>; 2]) -> Result<Answer> {
        match views {
            [Some(view), None] => self.run_complete(view),
            _ => self.run_views(views),
        }
    }

    /// [`run`](Self::run) of an array in the host's memory.
    pub(crate) fn run_complete(&self, view: &View<'_>) -> Result<Answer> {
        let views = [Some(view), None];
        // Devices take no initial values, and pieces would take one each.
        let alone = |dtype| {
            self.until.0.is_none() && self.choose(dtype, Some(bytes_of(views))) == Device::Cpu
        };
        if self.initial.is_some() && !alone(view.dtype()) {
            return self.run_with_initial(view.into());
        }
        self.run_views(views)
    }

    /// [`run`](Self::run) with an initial value, which a state has.
    fn run_with_initial(&self, array: Array<'_>) -> Result<Answer> {
        let (dtype, shape) = array.about()?;
        self.check(dtype, 1)?;
        let question = Reduction { initial: None, ..self.clone() };
        let initial = match initial::of(self, dtype)? {
            Some(initial) if !self.ops.is_empty() => initial,
            _ => return question.run(array),
        };
        let mut partial = question.partial(array, 0)?;
        let len = reduced_len(&shape, &self.axes.resolve(shape.len())?);
        initial::absorb(&question, &mut partial, initial, len as u64)?;
        partial.finish(&self.rules)
    }

    /// Reduces two arrays of one shape and type: [`Op::Dot`]. Where one of two
    /// elements has no value, both are left out.
    ///
    /// ```
    /// use warpfold::{Op, Reduction};
    ///
    /// let answer = Reduction::of(Op::Dot).run_pair(&[1.0, 2.0], &[3.0, 4.0])?;
    /// assert_eq!(answer.number::<f64>(Op::Dot), Some(11.0));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Self::run); arrays of different shapes or types, and
    /// operations on one array.
    pub fn run_pair<'a>(
        &self,
        left: impl Into<Array<'a>>,
        right: impl Into<Array<'a>>,
    ) -> Result<Answer> {
        self.run_arrays(left.into(), right.into())
    }

    fn run_arrays<'a>(&self, left: Array<'a>, right: Array<'a>) -> Result<Answer> {
        self.until.check()?;
        match Pair::new(left, right)? {
            Pair::Host(both) => {
                complete_pairs(&both, |left, right| self.run_views([Some(left), Some(right)]))
            }
            Pair::Device([left, right]) => self.run_in_place(&left, Some(&right)),
        }
    }

    pub(crate) fn partial_views(
        &self,
        views: [Option<&View<'_>>; 2],
        start: u64,
    ) -> Result<Partial> {
        match &self.until.0 {
            Some(token) => self.partial_while(views, start, &mut || !token.is_cancelled()),
            None => fpenv::usual(|| self.states(views, start)),
        }
    }

    /// Makes the states of an array by `make`, to which it gives the job on its
    /// way to the CPU, the states that a device has made of it, if one works, and
    /// the operations with the answer's shape.
    fn with_job<A>(
        &self,
        views: [Option<&View<'_>>; 2],
        start: u64,
        make: impl FnOnce(&Job<'_>, Option<Vec<Vec<AnyState>>>, Asked) -> Result<A>,
    ) -> Result<A> {
        let Some(first) = views[0] else {
            return Err(Error::Arity { op: Op::Sum, takes: 1, given: 0 });
        };
        let arrays = views.iter().flatten().count();
        let (reduced, kinds, asked) = self.asked(first.dtype(), first.shape(), arrays, start)?;
        let isa = Isa::active()?;
        let (initial, threads) = (None, self.threads);
        let job = Job {
            views,
            reduced: &reduced,
            kinds: &kinds,
            start,
            initial,
            marks: None,
            isa,
            threads,
        };
        let made = self.on_device(&job, asked.dtype, |opened| opened.states(&job))?;
        make(&job, made, asked)
    }

    /// What states of arrays of this type and shape answer: which axes are reduced, and
    /// which kinds of states that takes.
    ///
    /// # Errors
    /// Those of [`partial`](Self::partial) that are of no element.
    pub(crate) fn asked(
        &self,
        dtype: DType,
        shape: &[usize],
        arrays: usize,
        start: u64,
    ) -> Result<(PerAxis<bool>, Vec<Kind>, Asked)> {
        self.check(dtype, arrays)?;
        initial::none(self)?;
        let reduced = self.axes.resolve(shape.len())?;
        let len = reduced_len(shape, &reduced);
        // The last position of all stands for none.
        if start.checked_add(len as u64).is_none() {
            return Err(Error::StartTooLarge { start, len });
        }
        let (kinds, ops) = self.kinds();
        let shape = output_shape(shape, &reduced, self.keepdims);
        Ok((reduced, kinds, Asked { dtype, shape, ops }))
    }

    fn states(&self, views: [Option<&View<'_>>; 2], start: u64) -> Result<Partial> {
        self.with_job(views, start, |job, made, Asked { dtype, shape, ops }| {
            let states = made.map_or_else(|| job.states(), Ok)?;
            Partial::new(dtype, shape, ops, states)
        })
    }

    /// Lets a partial take in an array that is another piece of what it is a
    /// piece of: the same as [`partial`](Self::partial) and
    /// [`Partial::merge`], without states for the piece where the CPU works. Who
    /// calls it vouches for that the partial has not absorbed any of the piece's
    /// positions.
    ///
    /// # Errors
    /// As for [`partial`](Self::partial) and [`Partial::merge`]; the partial is
    /// then what it was before.
    pub(crate) fn absorb(&self, into: &mut Partial, array: Array<'_>, start: u64) -> Result<()> {
        let input = match array.into_place() {
            Place::Host(input) => input,
            Place::Device(array) => return into.merge(&self.states_in_place(&array, None, start)?),
        };
        if input.missing() > 0 {
            return into.merge(&self.partial_of_column(&input, start)?);
        }
        let view = input.view()?;
        fpenv::usual(|| self.absorb_views(into, [Some(&view), None], start))
    }

    /// The same for two arrays.
    ///
    /// # Errors
    /// As for [`absorb`](Self::absorb).
    pub(crate) fn absorb_pair<'a>(
        &self,
        into: &mut Partial,
        left: Array<'a>,
        right: Array<'a>,
        start: u64,
    ) -> Result<()> {
        let both = match Pair::new(left, right)? {
            Pair::Host(both) => both,
            Pair::Device([left, right]) => {
                return into.merge(&self.states_in_place(&left, Some(&right), start)?);
            }
        };
        complete_pairs(&both, |left, right| {
            fpenv::usual(|| self.absorb_views(into, [Some(left), Some(right)], start))
        })
    }

    fn absorb_views(
        &self,
        into: &mut Partial,
        views: [Option<&View<'_>>; 2],
        start: u64,
    ) -> Result<()> {
        self.with_job(views, start, |job, made, Asked { dtype, shape, ops }| match made {
            Some(states) => into.merge(&Partial::new(dtype, shape, ops, states)?),
            None => {
                let asked = Partial::new(dtype, shape, ops, Vec::new())?;
                into.absorb_with(&asked, |states| job.absorb_into(states))
            }
        })
    }

    /// The unfinished states of an array that is a piece of a larger one, whose
    /// first element has index `start` among the reduced elements.
    ///
    /// # Errors
    /// As for [`run`](Self::run), but for those of finishing;
    /// [`Error::StartTooLarge`]; [`Error::Operations`] if no operation is asked
    /// for.
    pub fn partial<'a>(&self, array: impl Into<Array<'a>>, start: u64) -> Result<Partial> {
        self.partial_of_array(array.into(), start)
    }

    fn partial_of_array(&self, array: Array<'_>, start: u64) -> Result<Partial> {
        self.until.check()?;
        match array.into_place() {
            Place::Host(input) if input.missing() > 0 => self.partial_of_column(&input, start),
            Place::Host(input) => self.partial_views([Some(&input.view()?), None], start),
            Place::Device(array) => self.states_in_place(&array, None, start),
        }
    }

    /// The same for two arrays.
    ///
    /// # Errors
    /// As for [`run_pair`](Self::run_pair), but for those of finishing.
    pub fn partial_pair<'a>(
        &self,
        left: impl Into<Array<'a>>,
        right: impl Into<Array<'a>>,
        start: u64,
    ) -> Result<Partial> {
        self.partial_of_arrays(left.into(), right.into(), start)
    }

    fn partial_of_arrays<'a>(
        &self,
        left: Array<'a>,
        right: Array<'a>,
        start: u64,
    ) -> Result<Partial> {
        self.until.check()?;
        match Pair::new(left, right)? {
            Pair::Host(both) => complete_pairs(&both, |left, right| {
                self.partial_views([Some(left), Some(right)], start)
            }),
            Pair::Device([left, right]) => self.states_in_place(&left, Some(&right), start),
        }
    }

    /// Workers on the states that a full reduction over elements of type
    /// `dtype` needs: what a reader of files or streams feeds, one for each of its
    /// threads.
    ///
    /// # Errors
    /// As for [`run`](Self::run), but for those of the array.
    pub(crate) fn workers(&self, dtype: DType, arrays: usize) -> Result<Workers> {
        self.check(dtype, arrays)?;
        initial::none(self)?;
        let (kinds, _) = self.kinds();
        fpenv::usual(|| {
            let opened = self.open(self.device, dtype)?;
            Workers::new(opened.as_ref(), Isa::active()?, &kinds, dtype, arrays)
        })
    }

    /// Bytes of each array that such workers best absorb at once.
    pub(crate) fn best_run(&self) -> usize {
        self.device.best_run()
    }

    /// How many threads are of use where each does nothing but read and feed such
    /// workers.
    pub(crate) fn most_readers(&self) -> usize {
        self.threads.count().min(self.device.most_senders(devices::count(self.device)))
    }

    /// Puts the states of such workers together.
    ///
    /// # Errors
    /// What a device says about runs that were absorbed; [`Error::Operations`]
    /// if no operation is asked for.
    pub(crate) fn gather(&self, dtype: DType, workers: Workers) -> Result<Partial> {
        let (_, ops) = self.kinds();
        Partial::new(dtype, Vec::new(), ops, vec![fpenv::usual(|| workers.into_states())?])
    }

    /// The states of no elements that an output needs.
    ///
    /// # Errors
    /// An operation that the type does not have.
    pub(crate) fn identities(&self, dtype: DType) -> Result<Vec<AnyState>> {
        self.kinds().0.into_iter().map(|kind| AnyState::identity(kind, dtype)).collect()
    }
}

/// What the states of an array answer: each operation with its state's place.
pub(crate) struct Asked {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) ops: Vec<(Op, usize)>,
}

/// What a device makes of a job.
enum Made {
    Columns(Vec<Column>),
    /// To be finished.
    States(Vec<Vec<AnyState>>),
}

/// How many elements make an answer.
fn reduced_len(shape: &[usize], reduced: &[bool]) -> usize {
    // No product overflows: without its zeros the shape has a size.
    let axes = || shape.iter().zip(reduced).filter(|(_, r)| **r).map(|(&n, _)| n);
    if axes().any(|n| n == 0) { 0 } else { axes().product() }
}

fn bytes_of(views: [Option<&View<'_>>; 2]) -> u64 {
    let bytes = |v: &View<'_>| v.len().saturating_mul(v.dtype().size()) as u64;
    views.into_iter().flatten().map(bytes).fold(0, u64::saturating_add)
}
