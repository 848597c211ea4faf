//! `warpfold.segments`: answers for runs of elements of one array.

use crate::answers::{append, given};
use crate::call::{element, operations};
use crate::column::{Column, Held, column};
use crate::cuda;
use crate::dense::Dense;
use crate::errors::OrRaise;
use crate::home::Home;
use crate::import::{Data, import};
use crate::question::{Length, ThreadCount, Words};
use crate::run::{self, part};
use crate::spans::{self, Span};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use warpfold::internal::boundaries;
use warpfold::{
    Answer, Array, DType, Device, Error, Input, Op, Reduction, Scalar, Segmented, Segments,
};

/// Bytes of segments that are reduced before Ctrl-C is looked for: some milliseconds.
const PIECE: usize = 64 << 20;

/// Where segments are, by the word that says so.
pub(crate) enum Form<I = Dense> {
    Offsets(I),
    Lengths(I),
    StartsStops(I, I),
    Fixed(usize),
}

/// Integers of one axis, in the host's memory or a device's.
pub(crate) enum Integers {
    Here(Dense),
    There(cuda::DeviceArray),
}

/// Reduces each segment of an array of one axis by itself, with the bits that its elements
/// alone have: an array of answers, or of several operations a dictionary of such.
///
/// ``offsets`` are n + 1 ascending integers for n segments. ``lengths`` are those of segments
/// from the first element to the last. ``starts`` and ``stops`` may overlap, leave gaps and come
/// in any order. ``length`` is that of all segments. Positions count from a segment's first element.
/// An array in a device's memory is reduced there, and its answers are left there.
///
/// Arguments:
///     x: an array or column of one axis
///     ops: the name of an operation, or several names
///     offsets, lengths, starts, stops, length: where segments are, told in one of these ways
///     y: the second array, for dot
///     initial: a number that is reduced with those of each segment
///     dtype: the type of the answers, which the exact ones are rounded to
///     ddof, correction: two names of what is subtracted from the count in the divisor of var and std
///     nan: "propagate", the default, "omit" or "raise"
///     device: where an array of the host is reduced
///     threads: how many threads of the CPU may work
///
/// Raises:
///     TypeError: segments told in no way or several, or by something else than integers.
///     ValueError: a segment that cannot be, or that has no answer; it is named.
///     OverflowError: a total that does not fit its integer type; the segment is named.
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
    length: Option<Length>,
    y: Option<&Bound<'py, PyAny>>,
    initial: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    ddof: Option<&Bound<'py, PyAny>>,
    correction: Option<&Bound<'py, PyAny>>,
    nan: Option<&str>,
    device: Option<&str>,
    threads: Option<ThreadCount>,
) -> PyResult<Bound<'py, PyAny>> {
    let form = match (offsets, lengths, starts, stops, length) {
        (Some(offsets), None, None, None, None) => Form::Offsets(integers(offsets, "offsets")?),
        (None, Some(lengths), None, None, None) => Form::Lengths(integers(lengths, "lengths")?),
        (None, None, Some(starts), Some(stops), None) => {
            Form::StartsStops(integers(starts, "starts")?, integers(stops, "stops")?)
        }
        (None, None, None, None, Some(length)) => Form::Fixed(length.0),
        _ => {
            return Err(PyTypeError::new_err(
                "segments are told in one way\nhint: give offsets, lengths, starts and stops, or length",
            ));
        }
    };
    let words = Words { dtype, ddof, correction, nan, device, threads, ..Words::default() };
    let (named, single) = (operations(ops)?, ops.is_instance_of::<PyString>());
    let list: Vec<Op> = named.iter().map(|(_, op)| *op).collect();
    let question = words.question(py, &list)?;
    let owned = column(x, false)?;
    let second = y.map(|y| column(y, false)).transpose()?;
    let on_a_device = owned.column.is_on_a_device();
    let elements = owned.column.dtype();
    let initial = match (initial, elements) {
        (Some(initial), Some(dtype)) => Some(element(initial, dtype)?),
        _ => None,
    };
    if let (Column::Device(array), Home::Device(_, family)) = (&owned.column, &owned.home) {
        cuda::check_named(&question)?;
        if second.is_none()
            && let Some(answers) = array.segments(py, &question, &form, initial, family)?
        {
            return given(py, &named, single, answers.into_iter().map(Ok));
        }
    }
    let form = form.here(py)?;
    let whole = Whole::of(py, &owned.column)?;
    let other = second.as_ref().map(|y| Whole::of(py, &y.column)).transpose()?;
    let asked = Asked { py, question: &question, initial, whole: &whole, other: other.as_ref() };
    let elements = elements.unwrap_or(DType::F64);
    let cut = match question.named_device() {
        Device::Auto | Device::Cpu if !on_a_device => {
            spans::spans(&form, owned.column.rows(), PIECE / elements.size())
        }
        _ => None,
    };
    let columns = match cut {
        None => form.with(|segments| asked.answer(segments, 0))?.into_columns(),
        Some(cut) => asked.in_spans(&form, &cut)?,
    };
    let answers = columns.into_iter().map(|c| owned.home.answers(py, elements, c, &[], None));
    given(py, &named, single, answers)
}

/// What is asked of each segment.
struct Asked<'a, 'py> {
    py: Python<'py>,
    question: &'a Reduction,
    initial: Option<Scalar>,
    whole: &'a Whole<'a>,
    other: Option<&'a Whole<'a>>,
}

impl Asked<'_, '_> {
    /// The answers of some segments, the first of which is segment `at` of all.
    ///
    /// # Errors
    /// Those of the library, and `KeyboardInterrupt`.
    fn answer(&self, segments: Segments<'_>, at: usize) -> PyResult<Answer> {
        let py = self.py;
        let question = with_initial(self.question.clone().segments(segments), self.initial);
        let array = self.whole.array().or_raise(py)?;
        let made = match self.other {
            None => py.detach(|| question.run(array)),
            Some(other) => {
                let other = other.array().or_raise(py)?;
                py.detach(|| question.run_pair(array, other))
            }
        };
        py.check_signals()?;
        let numbered = made.map_err(|mut error| {
            if let Error::BadSegment { segment, .. } | Error::InSegment { segment, .. } = &mut error
            {
                *segment += at;
            }
            error
        });
        numbered.or_raise(py)
    }

    /// The answers of all segments, between whose spans signals are heard.
    ///
    /// # Errors
    /// As for [`answer`](Self::answer).
    fn in_spans(&self, form: &Form, spans: &[Span]) -> PyResult<Vec<warpfold::Column>> {
        let mut columns = None;
        for span in spans {
            let all =
                || form.with_span(span, |segments| self.answer(segments, span.segments.start));
            let made = match self.alone(span) {
                // The error of an array does not name the segment.
                Some(Err(error)) if self.is_of_the_elements(&error) => all(),
                Some(made) => made,
                None => all(),
            };
            append(&mut columns, made?.into_columns()).or_raise(self.py)?;
            self.py.check_signals()?;
        }
        Ok(columns.unwrap_or_default())
    }

    fn is_of_the_elements(&self, error: &PyErr) -> bool {
        error.is_instance_of::<PyValueError>(self.py)
            || error.is_instance_of::<PyOverflowError>(self.py)
    }

    /// The answer of a span that is one long segment: within it signals are heard, too.
    fn alone(&self, span: &Span) -> Option<PyResult<Answer>> {
        let input = self.whole.input().ok()?;
        let other = self.other.map(|other| other.input()).transpose().ok()?;
        let missing = input.missing() + other.as_ref().map_or(0, Input::missing);
        if span.segments.len() != 1 || missing > 0 || self.initial.is_some() {
            return None;
        }
        let view = input.view().ok()?;
        let first = usize::try_from(span.first).ok()?;
        let end = first.checked_add(usize::try_from(span.elements).ok()?)?;
        if end > view.len() || self.question.named_axes().resolve(1).ok()?[..] != [true] {
            return None;
        }
        let left = part(&view, 0, first, end);
        let right = match &other {
            Some(other) => {
                let other = other.view().ok()?;
                if other.shape() != view.shape() {
                    return None;
                }
                Some(part(&other, 0, first, end))
            }
            None => None,
        };
        Some(run::run(self.py, self.question, [Some(&left), right.as_ref()]))
    }
}

/// A column in one piece.
enum Whole<'a> {
    Held(Held<'a>),
    Joined(crate::masked::Masked),
}

impl<'a> Whole<'a> {
    /// # Errors
    /// A column of something else than numbers; those of a device.
    fn of(py: Python<'_>, column: &'a Column) -> PyResult<Whole<'a>> {
        Ok(match column {
            Column::Arrow(chunks) if chunks.len() != 1 => {
                Whole::Joined(column.joined().or_raise(py)?)
            }
            _ => Whole::Held(column.held(py, &(0..column.rows()))?),
        })
    }

    fn input(&self) -> warpfold::Result<Input<'_>> {
        match self {
            Whole::Held(held) => held.input(),
            Whole::Joined(joined) => joined.input(0..joined.rows()),
        }
    }

    fn array(&self) -> warpfold::Result<Array<'_>> {
        match self {
            Whole::Held(held) => held.array(),
            Whole::Joined(_) => self.input().map(Array::from),
        }
    }
}

/// The integers of an object, as an array of one axis.
fn integers(x: &Bound<'_, PyAny>, name: &str) -> PyResult<Integers> {
    // Without a number a list shows no type.
    if x.is_instance_of::<PyList>() && x.len()? == 0 {
        return Dense::of_words(DType::I64, Vec::new(), vec![0]).map(Integers::Here);
    }
    let check = |dtype: DType, shape: &[usize]| {
        let is_whole = !dtype.is_float() && dtype != DType::Bool;
        if shape.len() == 1 && is_whole {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "{name} must be integers in one axis, not {} of shape {shape:?}",
            crate::numpy::long_name(dtype),
        )))
    };
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
        Data::Device(array) => {
            check(array.dtype(), array.shape())?;
            return Ok(Integers::There(array));
        }
        Data::File(_) | Data::Frame(_) | Data::Complex(_) => {
            return Err(PyTypeError::new_err(format!(
                "{name} must be an array or a column, not a file, a table or complex numbers\nhint: read or choose the column first"
            )));
        }
    };
    check(dense.dtype, &dense.shape)?;
    Ok(Integers::Here(dense))
}

impl Form<Integers> {
    /// The same in the host's memory: copies of what lies on a device.
    fn here(self, py: Python<'_>) -> PyResult<Form> {
        let here = |integers: Integers| match integers {
            Integers::Here(dense) => Ok(dense),
            Integers::There(array) => array.copied(py),
        };
        Ok(match self {
            Form::Offsets(offsets) => Form::Offsets(here(offsets)?),
            Form::Lengths(lengths) => Form::Lengths(here(lengths)?),
            Form::StartsStops(starts, stops) => Form::StartsStops(here(starts)?, here(stops)?),
            Form::Fixed(length) => Form::Fixed(length),
        })
    }
}

impl Form {
    /// Calls `then` with the segments of a span, as the library takes them.
    fn with_span<R>(
        &self,
        span: &Span,
        then: impl FnOnce(Segments<'_>) -> PyResult<R>,
    ) -> PyResult<R> {
        let none = || PyTypeError::new_err("segments are told by integers");
        let rows = span.segments.clone();
        match self {
            Form::Offsets(offsets) => {
                let view = part(&offsets.view(), 0, rows.start, rows.end + 1);
                then(Segments::Offsets(&*boundaries(&view).ok_or_else(none)?))
            }
            Form::StartsStops(starts, stops) => {
                let (starts, stops) = (starts.view(), stops.view());
                let starts = part(&starts, 0, rows.start, rows.end);
                let stops = part(&stops, 0, rows.start, rows.end);
                let starts = boundaries(&starts).ok_or_else(none)?;
                let stops = boundaries(&stops).ok_or_else(none)?;
                then(Segments::StartsStops(&*starts, &*stops))
            }
            // Of these the place of a segment is told by all before it.
            Form::Fixed(length) => {
                let ends = (0..=rows.len()).map(|i| span.first + (i * length) as i64);
                then(Segments::Offsets(&ends.collect::<Vec<i64>>()))
            }
            Form::Lengths(lengths) => {
                let mut ends = Vec::with_capacity(rows.len() + 1);
                ends.push(span.first);
                let read = spans::read(&lengths.view(), rows.start, rows.len(), &mut ends);
                read.ok_or_else(none)?;
                for i in 1..ends.len() {
                    ends[i] += ends[i - 1];
                }
                then(Segments::Offsets(&ends))
            }
        }
    }

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
