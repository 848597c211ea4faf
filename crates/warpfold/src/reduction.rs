//! The builder: what is asked of an array.

use crate::answer::{Answer, Column};
use crate::device::Device;
use crate::partial::Partial;
use crate::workers::{Place, Workers, best_run};
use crate::{engines, on_device};
use std::sync::Arc;
use warpfold_core::layout::{Axes, View, output_shape};
use warpfold_core::op::{AnyState, Kind, Op};
use warpfold_core::{Accuracy, DType, Error, NanPolicy, Result, Rules};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Job, Outputs, Threads};
use warpfold_cuda::Engine;

/// Operations, and how they are to be answered.
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
    accuracy: Accuracy,
    device: Device,
    threads: Threads,
}

impl Reduction {
    /// One operation over all axes.
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
            accuracy: Accuracy::Exact,
            device: Device::Auto,
            threads: Threads::All,
        }
    }

    /// Reduces these axes; negative ones count from the end. Without a call,
    /// all axes are reduced.
    #[must_use]
    pub fn axes(mut self, axes: impl IntoIterator<Item = isize>) -> Self {
        self.axes = Axes::These(axes.into_iter().collect());
        self
    }

    /// Reduces this axis.
    #[must_use]
    pub fn axis(self, axis: isize) -> Self {
        self.axes([axis])
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

    /// Exact sums (the default) or plain ones.
    #[must_use]
    pub fn accuracy(mut self, accuracy: Accuracy) -> Self {
        self.accuracy = accuracy;
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
        self.rules.ddof = ddof;
        self
    }

    /// Whether integer totals wrap around instead of failing.
    #[must_use]
    pub fn wrap(mut self, wrap: bool) -> Self {
        self.rules.wrap = wrap;
        self
    }

    /// How many threads work; as many as there are cores without a call.
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
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
    pub(crate) fn kinds(&self, dtype: DType) -> (Vec<Kind>, Vec<(Op, usize)>) {
        let mut kinds: Vec<Kind> = Vec::new();
        let wanted: Vec<Kind> = self.ops.iter().map(|op| op.kind(self.accuracy, dtype)).collect();
        let used = wanted
            .iter()
            .map(|&kind| {
                // A state with positions answers what the plain one does, and
                // one with moments what the sums do.
                let kind = match kind {
                    Kind::Extrema if wanted.contains(&Kind::ArgExtrema) => Kind::ArgExtrema,
                    Kind::Sum | Kind::SquareSum if wanted.contains(&Kind::Moments) => Kind::Moments,
                    kind => kind,
                };
                kinds.iter().position(|&k| k == kind).unwrap_or_else(|| {
                    kinds.push(kind);
                    kinds.len() - 1
                })
            })
            .collect::<Vec<_>>();
        (kinds, self.ops.iter().copied().zip(used).collect())
    }

    /// Checks the question against an element type and a number of arrays.
    fn check(&self, dtype: DType, arrays: usize) -> Result<()> {
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

    /// Where the states are made: a device that is named is opened.
    fn place(&self, dtype: DType) -> Result<Place> {
        let isa = Isa::active()?;
        let Some(engine) = engines::of(self.device)? else { return Ok(Place::Cpu(isa)) };
        let (kinds, ops) = self.kinds(dtype);
        for (op, place) in ops {
            if !Engine::supports(kinds[place], dtype) {
                let device = self.device;
                return Err(Error::Device {
                    what: format!("--device {device} has no kernel for {op} of {dtype} elements"),
                    hint: "use --device cpu, which has every operation".into(),
                });
            }
        }
        Ok(Place::Device(engine, isa))
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
        self.place(dtype).map(drop)
    }

    fn run_views(&self, views: [Option<&View<'_>>; 2]) -> Result<Answer> {
        let Some(first) = views[0] else {
            return Ok(Answer { shape: Vec::new(), columns: Vec::new() });
        };
        let dtype = first.dtype();
        self.check(dtype, views.iter().flatten().count())?;
        let reduced = self.axes.resolve(first.shape().len())?;
        let (kinds, ops) = self.kinds(dtype);
        let shape = output_shape(first.shape(), &reduced, self.keepdims);
        let isa = match self.place(dtype)? {
            Place::Cpu(isa) => isa,
            Place::Device(engine, _) => {
                let states = self.on_device(&engine, views, &reduced, &kinds, 0).states()?;
                return Partial::new(dtype, shape, ops, states).finish(&self.rules);
            }
        };
        let job =
            Job { views, reduced: &reduced, kinds: &kinds, start: 0, isa, threads: self.threads };
        let columns = job.values(&ops, &self.rules)?;
        let columns = ops
            .iter()
            .zip(columns)
            .map(|(&(op, _), outputs)| match outputs {
                Outputs::Values(values) => Column::pack(op, dtype, &self.rules, &values),
                Outputs::Numbers(numbers) => Column { op, numbers, second: None },
            })
            .collect();
        Ok(Answer { shape, columns })
    }

    /// The same question for a device.
    fn on_device<'a>(
        &self,
        engine: &'a Arc<Engine>,
        views: [Option<&'a View<'a>>; 2],
        reduced: &'a [bool],
        kinds: &'a [Kind],
        start: u64,
    ) -> on_device::Job<'a> {
        let (device, threads) = (self.device, self.threads.count());
        on_device::Job { engine, device, views, reduced, kinds, start, threads }
    }

    /// Reduces an array: a slice, or a [`View`] of any shape and strides.
    ///
    /// The answer has the array's shape without the reduced axes. Several
    /// operations read the array once.
    ///
    /// # Errors
    /// Axes out of range or named twice; an operation that the element type
    /// does not have, or [`Op::Dot`]; `min` and its kin of nothing; integer
    /// totals that do not fit; NaNs under [`NanPolicy::Error`]; a device that
    /// this machine lacks or that fails.
    pub fn run<'a>(&self, array: impl Into<View<'a>>) -> Result<Answer> {
        self.run_views([Some(&array.into()), None])
    }

    /// Reduces two arrays of one shape and type: [`Op::Dot`].
    ///
    /// # Errors
    /// As for [`run`](Self::run); arrays of different shapes or types, and
    /// operations on one array.
    pub fn run_pair<'a>(
        &self,
        left: impl Into<View<'a>>,
        right: impl Into<View<'a>>,
    ) -> Result<Answer> {
        self.run_views([Some(&left.into()), Some(&right.into())])
    }

    fn partial_views(&self, views: [Option<&View<'_>>; 2], start: u64) -> Result<Partial> {
        let Some(first) = views[0] else {
            return Err(Error::Arity { op: Op::Sum, takes: 1, given: 0 });
        };
        let dtype = first.dtype();
        self.check(dtype, views.iter().flatten().count())?;
        let reduced = self.axes.resolve(first.shape().len())?;
        let len =
            first.shape().iter().zip(&reduced).filter(|(_, r)| **r).map(|(&n, _)| n).product();
        // The last position of all stands for none.
        if start.checked_add(len as u64).is_none() {
            return Err(Error::StartTooLarge { start, len });
        }
        let (kinds, ops) = self.kinds(dtype);
        let states = match self.place(dtype)? {
            Place::Cpu(isa) => {
                let (reduced, kinds, threads) = (&reduced[..], &kinds[..], self.threads);
                Job { views, reduced, kinds, start, isa, threads }.states()?
            }
            Place::Device(engine, _) => {
                self.on_device(&engine, views, &reduced, &kinds, start).states()?
            }
        };
        let shape = output_shape(first.shape(), &reduced, self.keepdims);
        Ok(Partial::new(dtype, shape, ops, states))
    }

    /// The unfinished states of an array that is a piece of a larger one, whose
    /// first element has index `start` among the reduced elements.
    ///
    /// # Errors
    /// As for [`run`](Self::run), but for those of finishing;
    /// [`Error::StartTooLarge`].
    pub fn partial<'a>(&self, array: impl Into<View<'a>>, start: u64) -> Result<Partial> {
        self.partial_views([Some(&array.into()), None], start)
    }

    /// The same for two arrays.
    ///
    /// # Errors
    /// As for [`run_pair`](Self::run_pair), but for those of finishing.
    pub fn partial_pair<'a>(
        &self,
        left: impl Into<View<'a>>,
        right: impl Into<View<'a>>,
        start: u64,
    ) -> Result<Partial> {
        self.partial_views([Some(&left.into()), Some(&right.into())], start)
    }

    /// Workers on the states that a full reduction over elements of type
    /// `dtype` needs: what a reader of files or streams feeds, one for each of its
    /// threads.
    ///
    /// # Errors
    /// As for [`run`](Self::run), but for those of the array.
    pub fn workers(&self, dtype: DType, arrays: usize) -> Result<Workers> {
        self.check(dtype, arrays)?;
        let (kinds, _) = self.kinds(dtype);
        Workers::new(&self.place(dtype)?, self.device, &kinds, dtype, arrays)
    }

    /// Bytes of each array that such workers best absorb at once: a multiple of
    /// the fixed tree's blocks for every type.
    #[must_use]
    pub fn best_run(&self) -> usize {
        best_run(self.device)
    }

    /// Puts the states of such workers together.
    ///
    /// # Errors
    /// What a device says about runs that were absorbed.
    pub fn gather(&self, dtype: DType, workers: Workers) -> Result<Partial> {
        let (_, ops) = self.kinds(dtype);
        Ok(Partial::new(dtype, Vec::new(), ops, vec![workers.into_states()?]))
    }

    /// The states of no elements that an output needs.
    ///
    /// # Errors
    /// An operation that the type does not have.
    pub fn identities(&self, dtype: DType) -> Result<Vec<AnyState>> {
        self.kinds(dtype).0.into_iter().map(|kind| AnyState::identity(kind, dtype)).collect()
    }
}
