//! Unfinished reductions of Python's arrays: absorbed piece by piece, merged, written down.

use crate::answers::give_counted;
use crate::array::Array;
use crate::call::operations;
use crate::complex;
use crate::cuda;
use crate::errors::OrRaise;
use crate::import::{Data, Family, import};
use crate::question::{Start, ThreadCount, Words, element_type, index, policy_name};
use crate::{numpy, run};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use warpfold::{Axes, DType, Numbers, Op, Reduction};

/// The states of a reduction over pieces of the data.
///
/// Merging the partials of any split of an array, in any order, gives the bits of a single
/// run over all of it.
#[pyclass(module = "warpfold", name = "Partial")]
pub(crate) struct Partial {
    /// The operations by the names that they were asked for by.
    named: Vec<(String, Op)>,
    /// Whether one operation was named alone, so that its answer comes alone.
    single: bool,
    question: Reduction,
    /// Nothing before the first piece, which says what the elements are.
    state: Option<warpfold::Partial>,
    /// The position of the next element.
    next: u64,
    /// Whether answers are NumPy's.
    numpy: bool,
}

/// A question with what variances subtract: an integer, and the bits of a fraction.
pub(crate) fn with_ddof(question: Reduction, (ddof, fraction): (u64, u64)) -> Reduction {
    let mut rules = *question.rules();
    (rules.ddof, rules.ddof_fraction) = (ddof, fraction);
    question.finished_by(rules)
}

fn nothing() -> PyErr {
    PyValueError::new_err(
        "the partial has absorbed nothing\nhint: absorb an array first, even an empty one",
    )
}

impl Partial {
    /// Takes in the states of a piece.
    fn take(&mut self, py: Python<'_>, piece: warpfold::Partial) -> PyResult<()> {
        match &mut self.state {
            Some(state) => state.merge(&piece).or_raise(py),
            None => {
                self.state = Some(piece);
                Ok(())
            }
        }
    }

    /// How many elements of an array each output gets.
    fn reduced_len(&self, py: Python<'_>, shape: &[usize]) -> PyResult<u64> {
        let reduced = self.question.named_axes().resolve(shape.len()).or_raise(py)?;
        let axes = shape.iter().zip(&reduced).filter(|(_, reduced)| **reduced);
        Ok(axes.map(|(&n, _)| n as u64).product())
    }

    fn merge_state(&mut self, py: Python<'_>, other: &Partial) -> PyResult<()> {
        if let Some(state) = &other.state {
            self.take(py, state.clone())?;
        }
        self.next = self.next.max(other.next);
        self.numpy |= other.numpy;
        Ok(())
    }

    fn copy(&self) -> Partial {
        Partial {
            named: self.named.clone(),
            single: self.single,
            question: self.question.clone(),
            state: self.state.clone(),
            next: self.next,
            numpy: self.numpy,
        }
    }
}

#[pymethods]
impl Partial {
    #[new]
    #[pyo3(signature = (ops, /, *, axis=None, nan=None, ddof=None, correction=None, device=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "the words of the functions")]
    fn new<'py>(
        py: Python<'py>,
        ops: &Bound<'py, PyAny>,
        axis: Option<&Bound<'py, PyAny>>,
        nan: Option<&str>,
        ddof: Option<&Bound<'py, PyAny>>,
        correction: Option<&Bound<'py, PyAny>>,
        device: Option<&str>,
        threads: Option<ThreadCount>,
    ) -> PyResult<Partial> {
        let words = Words { axis, nan, ddof, correction, device, threads, ..Words::default() };
        let named = operations(ops)?;
        let list: Vec<Op> = named.iter().map(|(_, op)| *op).collect();
        let question = words.question(py, &list)?;
        let single = ops.is_instance_of::<pyo3::types::PyString>();
        Ok(Partial { named, single, question, state: None, next: 0, numpy: false })
    }

    /// Takes in an array, and for ``dot`` a second one. Its first element is at position
    /// ``start``; without it, after those that were absorbed before.
    #[pyo3(signature = (x, y=None, /, *, start=None))]
    fn absorb<'py>(
        &mut self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        y: Option<&Bound<'py, PyAny>>,
        start: Option<Start>,
    ) -> PyResult<()> {
        let imported = import(x)?;
        let second = y.map(import).transpose()?;
        let start = start.map_or(self.next, |start| start.0);
        let (piece, len) = match (&imported.data, second.as_ref().map(|y| &y.data)) {
            (Data::Dense(array), None) => {
                let view = array.view();
                let len = self.reduced_len(py, view.shape())?;
                (run::partial(py, &self.question, [Some(&view), None], start)?, len)
            }
            (Data::Dense(array), Some(Data::Dense(other))) => {
                let (view, other) = (array.view(), other.view());
                let len = self.reduced_len(py, view.shape())?;
                (run::partial(py, &self.question, [Some(&view), Some(&other)], start)?, len)
            }
            (Data::Column(column), None) => {
                (column.partial(py, &self.question, start)?, column.rows())
            }
            (Data::File(file), None) => {
                let piece = file.get().partial(py, &self.question, start)?;
                // How many elements a file has, a later piece has to say.
                (piece, 0)
            }
            (Data::Device(array), None) => {
                cuda::check_named(&self.question)?;
                let len = self.reduced_len(py, array.shape())?;
                let lent = array.lent(py)?;
                let made = py.detach(|| self.question.partial(&lent, start));
                (made.or_raise(py)?, len)
            }
            (Data::Device(array), Some(Data::Device(other))) => {
                cuda::check_named(&self.question)?;
                let len = self.reduced_len(py, array.shape())?;
                let (lent, other) = (array.lent(py)?, other.lent(py)?);
                let made = py.detach(|| self.question.partial_pair(&lent, &other, start));
                (made.or_raise(py)?, len)
            }
            (Data::Complex(_), _) | (_, Some(Data::Complex(_))) => {
                return Err(complex::refused("a partial"));
            }
            _ => {
                return Err(PyTypeError::new_err(
                    "a partial absorbs arrays, columns and files, and two arrays of one place\nhint: move both to the CPU first, or read the columns",
                ));
            }
        };
        self.take(py, piece)?;
        self.next = start.saturating_add(len);
        self.numpy |= matches!(imported.family, Family::NumPy);
        Ok(())
    }

    /// Takes in the partial of another piece. After an error nothing has changed.
    ///
    /// Raises:
    ///     TypeError, ValueError: the other has other operations or types, or overlaps this one.
    fn merge(this: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        if this.is(other) {
            let other = this.borrow().copy();
            return this.borrow_mut().merge_state(this.py(), &other);
        }
        this.borrow_mut().merge_state(this.py(), &other.borrow())
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let mut sum = self.copy();
        match (other.cast::<Partial>(), index(other)) {
            (Ok(other), _) => sum.merge_state(py, &other.borrow())?,
            // What sums of arrays of objects begin with, or have where nothing is.
            (_, Some(0)) => {}
            _ => return Ok(py.NotImplemented()),
        }
        Ok(Bound::new(py, sum)?.into_any().unbind())
    }

    /// Python's ``sum`` begins with 0.
    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__add__(other)
    }

    fn __iadd__(&mut self, py: Python<'_>, other: PyRef<'_, Partial>) -> PyResult<()> {
        self.merge_state(py, &other)
    }

    /// The answers: of one operation that was named alone its own, else a dictionary. What
    /// is not said here is as it was said at first.
    #[pyo3(signature = (*, nan=None, ddof=None, correction=None, dtype=None))]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        nan: Option<&str>,
        ddof: Option<&Bound<'py, PyAny>>,
        correction: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let state = self.state.as_ref().ok_or_else(nothing)?;
        let mut rules = *self.question.rules();
        let words = Words { nan, ddof, correction, ..Words::default() };
        let said = words.question(py, &[])?;
        if nan.is_some() {
            rules = rules.nan(said.rules().nan);
        }
        if ddof.is_some() || correction.is_some() {
            rules.ddof = said.rules().ddof;
            rules.ddof_fraction = said.rules().ddof_fraction;
        }
        if let Some(dtype) = dtype {
            rules = rules.out(element_type(dtype)?);
        }
        let family = match self.numpy && numpy::loaded(py).is_some() {
            true => Family::NumPy,
            false => Family::Ours,
        };
        let answer = state.finish(&rules).or_raise(py)?;
        let dtype = rules.out.is_none().then_some(state.dtype());
        let shape = answer.shape().to_vec();
        let dict = PyDict::new(py);
        for ((name, _), column) in self.named.iter().zip(answer.into_columns()) {
            let answer = give_counted(py, state.unit(), &family, dtype, &shape, column, None)?;
            if self.single {
                return Ok(answer);
            }
            dict.set_item(name, answer)?;
        }
        Ok(dict.into_any())
    }

    /// The states as bytes, with a version and checksums: what ``warpfold partial`` writes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.state.as_ref().ok_or_else(nothing)?;
        Ok(PyBytes::new(py, &state.to_bytes()))
    }

    /// Reads what ``to_bytes``, or ``warpfold partial``, wrote.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Partial> {
        let state = warpfold::Partial::from_bytes(data).or_raise(py)?;
        let named: Vec<(String, Op)> =
            state.ops().map(|op| (op.name().replace('-', "_"), op)).collect();
        let single = named.len() == 1;
        let question = Reduction::new(state.ops());
        Ok(Partial { named, single, question, state: Some(state), next: 0, numpy: false })
    }

    /// The states as int64 that add up: an engine's integer sum of up to 32768 of them, as of ``MPI_Allreduce``, is that of the
    /// merged partial. A sum over float64 has 50, one over float32 has 12. ``None`` for states that do not add up:
    /// those of extremes, products and ``logsumexp``.
    fn to_vector(&self, py: Python<'_>) -> PyResult<Option<Py<Array>>> {
        let vector = self.state.as_ref().ok_or_else(nothing)?.to_vector();
        let array = |v: Vec<i64>| Py::new(py, Array::new(Numbers::of(&v), vec![v.len()], false));
        vector.map(array).transpose()
    }

    /// The partial of the same question whose states are those of a vector, or of a sum of vectors.
    ///
    /// Raises:
    ///     TypeError: something else than int64 in one axis.
    ///     ValueError: no such vector; nothing was absorbed, so that the type is not known.
    #[expect(clippy::wrong_self_convention, reason = "the partial says what is asked")]
    fn from_vector(&self, vector: &Bound<'_, PyAny>) -> PyResult<Partial> {
        let state = self.state.as_ref().ok_or_else(nothing)?;
        let imported = import(vector)?;
        let view = match &imported.data {
            Data::Dense(array) => Some(array.view()),
            _ => None,
        };
        let view = view.filter(|view| view.dtype() == DType::I64 && view.shape().len() == 1);
        let bytes = view.and_then(|view| view.contiguous()).ok_or_else(|| {
            PyTypeError::new_err("a vector is int64, one after the other in the host's memory")
        })?;
        let numbers: Vec<i64> =
            bytes.as_chunks::<8>().0.iter().map(|&word| i64::from_ne_bytes(word)).collect();
        let state = Some(state.from_vector(&numbers).or_raise(vector.py())?);
        Ok(Partial { state, ..self.copy() })
    }

    /// The same question over no elements, in the same type and shape.
    fn empty(&self) -> Partial {
        let state = self.state.as_ref().map(warpfold::Partial::emptied);
        Partial { state, next: 0, ..self.copy() }
    }

    /// About as many bytes as it takes. Schedulers ask for it.
    fn __sizeof__(&self) -> usize {
        let states = self.state.iter().flat_map(warpfold::Partial::states).flatten();
        size_of::<Self>() + states.map(|state| state.most_bytes(self.next)).sum::<usize>()
    }

    /// The names of the operations.
    #[getter]
    fn ops(&self) -> Vec<&str> {
        self.named.iter().map(|(name, _)| &name[..]).collect()
    }

    /// The name of the type of the elements; ``None`` before the first piece.
    #[getter]
    fn dtype(&self) -> Option<&'static str> {
        self.state.as_ref().map(|state| numpy::long_name(state.dtype()))
    }

    /// The shape of the answers; ``None`` before the first piece.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.state.as_ref().map(|state| PyTuple::new(py, state.shape())).transpose()
    }

    /// How many rows had no value.
    #[getter]
    fn missing(&self) -> u64 {
        self.state.as_ref().map_or(0, warpfold::Partial::missing)
    }

    /// The position of the next element.
    #[getter]
    fn position(&self) -> u64 {
        self.next
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Partial>().is_ok_and(|other| other.borrow().state == self.state)
    }

    fn __repr__(&self) -> String {
        let ops: Vec<&str> = self.ops();
        match &self.state {
            Some(state) => {
                format!("<warpfold.Partial of {} over {}>", ops.join(", "), state.dtype())
            }
            None => format!("<warpfold.Partial of {}, empty>", ops.join(", ")),
        }
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = this.py();
        let partial = this.borrow();
        let names = PyList::new(py, partial.ops())?;
        let rules = partial.question.rules();
        let nan = policy_name(rules.nan);
        let axes = match partial.question.named_axes() {
            Axes::All => None,
            Axes::These(axes) => Some(axes.clone()),
        };
        let bytes = partial.state.as_ref().map(|state| PyBytes::new(py, &state.to_bytes()));
        let ddof = (rules.ddof, rules.ddof_fraction);
        let state = (partial.single, nan, ddof, axes, partial.next, partial.numpy, bytes);
        (this.get_type(), (names,), state).into_pyobject(py)
    }

    #[expect(clippy::type_complexity, reason = "what `__reduce__` put together")]
    fn __setstate__(
        &mut self,
        py: Python<'_>,
        state: (bool, String, (u64, u64), Option<Vec<isize>>, u64, bool, Option<Vec<u8>>),
    ) -> PyResult<()> {
        let (single, nan, ddof, axes, next, numpy, bytes) = state;
        let read =
            bytes.map(|bytes| warpfold::Partial::from_bytes(&bytes)).transpose().or_raise(py)?;
        let ours = || self.named.iter().map(|(_, op)| *op);
        if read.as_ref().is_some_and(|read| !read.ops().eq(ours())) {
            return Err(PyValueError::new_err(
                "the pickle names other operations than its states have",
            ));
        }
        let question = Reduction::new(ours()).nan(crate::question::policy(&nan)?);
        let mut question = with_ddof(question, ddof);
        if let Some(axes) = axes {
            question = question.axes(axes);
        }
        self.question = question;
        self.single = single && self.named.len() == 1;
        self.next = next;
        self.numpy = numpy;
        self.state = read;
        Ok(())
    }
}
