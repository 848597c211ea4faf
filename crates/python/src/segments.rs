//! `warpfold.segments`: answers for runs of elements of one array.

use crate::call::{element, operations};
use crate::column::{Column, column};
use crate::dense::Dense;
use crate::errors::OrRaise;
use crate::import::{Data, import};
use crate::question::Words;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use warpfold::internal::boundaries;
use warpfold::{DType, Input, Op, Scalar, Segmented, Segments};

/// Where segments are, by the word that says so.
enum Form {
    Offsets(Dense),
    Lengths(Dense),
    StartsStops(Dense, Dense),
    Fixed(usize),
}

/// Reduces each segment of an array of one axis by itself, with the bits that its elements
/// alone have: an array of answers, or of several operations a dictionary of such.
///
/// ``offsets`` are n + 1 ascending integers for n segments. ``lengths`` are those of segments
/// from the first element to the last. ``starts`` and ``stops`` may overlap, leave gaps and come
/// in any order. ``length`` is that of all segments. Positions count from a segment's first element.
#[pyfunction]
#[pyo3(signature = (x, ops, /, *, offsets=None, lengths=None, starts=None, stops=None, length=None, y=None, initial=None, dtype=None, ddof=None, correction=None, nan=None, device=None, threads=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "the forms of segments, and the words of the functions"
)]
pub(crate) fn segments<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    ops: &Bound<'py, PyAny>,
    offsets: Option<&Bound<'py, PyAny>>,
    lengths: Option<&Bound<'py, PyAny>>,
    starts: Option<&Bound<'py, PyAny>>,
    stops: Option<&Bound<'py, PyAny>>,
    length: Option<usize>,
    y: Option<&Bound<'py, PyAny>>,
    initial: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    ddof: Option<&Bound<'py, PyAny>>,
    correction: Option<&Bound<'py, PyAny>>,
    nan: Option<&str>,
    device: Option<&str>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let form = match (offsets, lengths, starts, stops, length) {
        (Some(offsets), None, None, None, None) => Form::Offsets(integers(offsets, "offsets")?),
        (None, Some(lengths), None, None, None) => Form::Lengths(integers(lengths, "lengths")?),
        (None, None, Some(starts), Some(stops), None) => {
            Form::StartsStops(integers(starts, "starts")?, integers(stops, "stops")?)
        }
        (None, None, None, None, Some(length)) => Form::Fixed(length),
        _ => {
            return Err(PyTypeError::new_err(
                "segments are told in one way\nhint: give offsets, lengths, starts and stops, or length",
            ));
        }
    };
    let words = Words { dtype, ddof, correction, nan, device, threads, ..Words::default() };
    let named = operations(ops)?;
    let list: Vec<Op> = named.iter().map(|(_, op)| *op).collect();
    let question = words.question(py, &list)?;
    let owned = column(x, false)?;
    let second = y.map(|y| column(y, false)).transpose()?;
    let elements = owned.column.dtype();
    let initial = match (initial, elements) {
        (Some(initial), Some(dtype)) => Some(element(initial, dtype)?),
        _ => None,
    };
    let whole = Whole::of(py, &owned.column)?;
    let other = second.as_ref().map(|y| Whole::of(py, &y.column)).transpose()?;
    let answer = form.with(|segments| {
        let question = with_initial(question.segments(segments), initial);
        let input = whole.input().or_raise(py)?;
        match &other {
            None => py.detach(|| question.run(input)).or_raise(py),
            Some(other) => {
                let other = other.input().or_raise(py)?;
                py.detach(|| question.run_pair(input, other)).or_raise(py)
            }
        }
    })?;
    py.check_signals()?;
    let elements = elements.unwrap_or(DType::F64);
    let dict = PyDict::new(py);
    for ((name, _), column) in named.iter().zip(answer.into_columns()) {
        let answers = owned.home.answers(py, elements, column, &[])?;
        if ops.is_instance_of::<PyString>() {
            return Ok(answers);
        }
        if dict.contains(name)? {
            return Err(PyValueError::new_err(format!("the operation {name:?} is named twice")));
        }
        dict.set_item(name, answers)?;
    }
    Ok(dict.into_any())
}

/// A column in one piece.
enum Whole<'a> {
    Column(&'a Column, Option<arrow_array::ArrayRef>),
    Joined(crate::masked::Masked),
}

impl<'a> Whole<'a> {
    /// # Errors
    /// A column of something else than numbers.
    fn of(py: Python<'_>, column: &'a Column) -> PyResult<Whole<'a>> {
        Ok(match column {
            Column::Arrow(chunks) if chunks.len() != 1 => {
                Whole::Joined(column.joined().or_raise(py)?)
            }
            _ => Whole::Column(column, column.piece(&(0..column.rows()))),
        })
    }

    fn input(&self) -> warpfold::Result<Input<'_>> {
        match self {
            Whole::Column(column, piece) => column.input(piece, 0..column.rows()),
            Whole::Joined(joined) => joined.input(0..joined.rows()),
        }
    }
}

/// The integers of an object, as an array of one axis in the host's memory.
fn integers(x: &Bound<'_, PyAny>, name: &str) -> PyResult<Dense> {
    // Without a number a list shows no type.
    if x.is_instance_of::<PyList>() && x.len()? == 0 {
        return Dense::of_words(DType::I64, Vec::new(), vec![0]);
    }
    let dense = match import(x)?.data {
        Data::Dense(dense) => dense,
        Data::Column(chunks) => {
            let py = x.py();
            let joined = Column::Arrow(chunks.into_pieces()).joined().or_raise(py)?;
            joined.into_dense().ok_or_else(|| {
                PyValueError::new_err(format!(
                    "some {name} have no value\nhint: segments have no gaps in what tells them"
                ))
            })??
        }
        _ => {
            return Err(PyTypeError::new_err(format!(
                "{name} must be an array in the host's memory\nhint: move it there first"
            )));
        }
    };
    if dense.shape.len() != 1 || boundaries(&dense.view()).is_none() {
        return Err(PyTypeError::new_err(format!(
            "{name} must be integers in one axis, not {} of shape {:?}",
            crate::numpy::long_name(dense.dtype),
            dense.shape
        )));
    }
    Ok(dense)
}

impl Form {
    /// Calls `then` with the segments, as the library takes them.
    fn with<R>(&self, then: impl FnOnce(Segments<'_>) -> PyResult<R>) -> PyResult<R> {
        let none = || PyTypeError::new_err("segments are told by integers");
        match self {
            Form::Fixed(length) => then(Segments::Fixed(*length)),
            Form::Offsets(offsets) => {
                let view = offsets.view();
                then(Segments::Offsets(&*boundaries(&view).ok_or_else(none)?))
            }
            Form::Lengths(lengths) => {
                let view = lengths.view();
                then(Segments::Lengths(&*boundaries(&view).ok_or_else(none)?))
            }
            Form::StartsStops(starts, stops) => {
                let (starts, stops) = (starts.view(), stops.view());
                let starts = boundaries(&starts).ok_or_else(none)?;
                let stops = boundaries(&stops).ok_or_else(none)?;
                then(Segments::StartsStops(&*starts, &*stops))
            }
        }
    }
}

fn with_initial<'s>(question: Segmented<'s>, initial: Option<Scalar>) -> Segmented<'s> {
    match initial {
        None => question,
        Some(Scalar::Bool(value)) => question.initial(value),
        Some(Scalar::Int(value, _)) => question.initial(value),
        Some(Scalar::UInt(value, _)) => question.initial(value),
        Some(Scalar::F16(value)) => question.initial(value),
        Some(Scalar::BF16(value)) => question.initial(value),
        Some(Scalar::F32(value)) => question.initial(value),
        Some(Scalar::F64(value)) => question.initial(value),
        Some(other) => question.initial(other.to_f64()),
    }
}
