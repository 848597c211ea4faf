//! Errors of the library as exceptions of Python.
//!
//! | what went wrong | exception |
//! |---|---|
//! | an axis that is not there | `numpy.exceptions.AxisError`, or `warpfold.AxisError` where NumPy is not loaded |
//! | an array of something else than numbers, an operation or answer that a type does not have | `TypeError` |
//! | a total that does not fit | `OverflowError` |
//! | more outputs or groups than there is memory for | `MemoryError` |
//! | a file that cannot be read | `OSError`; one that is not what it says, `warpfold.FileError` |
//! | a device that is not there | `RuntimeError` |
//! | anything else | `ValueError` |

use crate::numpy;
use pyo3::exceptions::{
    PyMemoryError, PyOSError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use warpfold::{DType, Error};

/// What the command line calls the things that its hints name, and what they are here.
const WORDS: [(&str, &str); 20] = [
    ("norm-inf", "norm_inf"),
    ("count-nonzero", "count_nonzero"),
    ("count-nan", "count_nan"),
    (
        "ask for a float answer (--out f64) or for wrapping arithmetic (--wrap)",
        "ask for a float answer: dtype=float",
    ),
    (
        "skip NaNs with --nan omit, or let them through with --nan propagate",
        "skip NaNs with nan=\"omit\", or let them through with nan=\"propagate\"",
    ),
    ("with --start", "with start="),
    ("partial --dtype f64 reads", "dtype=\"float64\" reads"),
    (
        "cast it to a type of numbers first",
        "cast it to a type of numbers first, with astype or cast",
    ),
    ("--device cpu", "device=\"cpu\""),
    (
        "choose with -c NAME, or by number: -c 1",
        "choose with columns=\"NAME\", or by number: columns=1",
    ),
    ("--format csv --delimiter ' '", "format=\"csv\", delimiter=\" \""),
    (
        "name their type: --dtype f32; else use --format",
        "name their type, dtype=\"float32\"; else use format=",
    ),
    ("--format raw --dtype f32", "format=\"raw\", dtype=\"float32\""),
    ("--format raw", "format=\"raw\""),
    ("leave out --dtype", "leave out dtype="),
    ("--columns", "columns="),
    ("--memory-limit", "memory_limit="),
    ("--dtype ", "dtype="),
    ("--shape", "shape="),
    ("-c ", "columns="),
];

/// A text in which types have Python's names: `int64` for `i64`.
fn with_long_names(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let end = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len();
        match DType::ALL.into_iter().find(|dtype| dtype.name() == &word[..end]) {
            Some(dtype) => made.extend([numpy::long_name(dtype), &word[end..]]),
            None => made.push_str(word),
        }
    }
    made
}

/// The text of an error, and on a line of its own what would help.
pub(crate) fn text(what: impl std::fmt::Display, hint: Option<String>) -> String {
    let Some(mut hint) = hint else { return what.to_string() };
    for (theirs, ours) in WORDS {
        hint = hint.replace(theirs, ours);
    }
    format!("{what}\nhint: {hint}")
}

/// The exception for an error of the library.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let what = match error {
        Error::UnsupportedType { .. }
        | Error::UnsupportedOut { .. }
        | Error::DTypeMismatch { .. }
        | Error::Overflow { .. } => with_long_names(&error.to_string()),
        _ => error.to_string(),
    };
    let text = text(what, error.hint());
    match error {
        Error::InGroup { source, .. } | Error::InSegment { source, .. } => {
            PyErr::from_type(exception(py, source).get_type(py), text)
        }
        Error::AxisOutOfRange { axis, ndim } => axis_error(py, *axis, *ndim, text),
        Error::UnsupportedType { .. }
        | Error::UnsupportedOut { .. }
        | Error::NotNumbers { .. }
        | Error::NotKeys { .. }
        | Error::UnsupportedUnit { .. }
        | Error::DTypeMismatch { .. }
        | Error::Arity { .. } => PyTypeError::new_err(text),
        Error::Overflow { .. } | Error::LostDigits { .. } => PyOverflowError::new_err(text),
        Error::Device { .. } => PyRuntimeError::new_err(text),
        Error::TooManyOutputs { .. } | Error::OutOfMemory { .. } => PyMemoryError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The exception for an axis: NumPy's, if it is loaded.
fn axis_error(py: Python<'_>, axis: isize, ndim: usize, text: String) -> PyErr {
    if let Some(numpy) = numpy::loaded(py) {
        let theirs = numpy.getattr("exceptions").and_then(|module| module.getattr("AxisError"));
        let made = theirs.and_then(|class| class.call1((axis, ndim)));
        return made.map_or_else(|error| error, PyErr::from_value);
    }
    class(py, &AXIS_ERROR, "AxisError", text)
}

/// The exception for an axis that no index is large enough for.
pub(crate) fn axis_beyond(py: Python<'_>, axis: &Bound<'_, PyAny>) -> PyErr {
    let text = format!("axis {axis} is out of bounds: no array has so many axes");
    if let Some(numpy) = numpy::loaded(py) {
        let theirs = numpy.getattr("exceptions").and_then(|module| module.getattr("AxisError"));
        let made = theirs.and_then(|class| class.call1((&text,)));
        return made.map_or_else(|error| error, PyErr::from_value);
    }
    class(py, &AXIS_ERROR, "AxisError", text)
}

/// The error with the name of the column that it is about.
pub(crate) fn with_note(py: Python<'_>, error: PyErr, column: &str) -> PyErr {
    // A note that cannot be added is no reason to lose the error.
    drop(error.value(py).call_method1("add_note", (format!("in the column {column:?}"),)));
    error
}

static AXIS_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static FILE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// An exception of a class that the package's Python part defines, since it has two bases.
fn class(py: Python<'_>, cell: &PyOnceLock<Py<PyType>>, name: &str, text: String) -> PyErr {
    match cell.import(py, "warpfold", name) {
        Ok(class) => PyErr::from_type(class.clone(), text),
        Err(error) => error,
    }
}

/// The exception for an error of a file.
pub(crate) fn file_exception(py: Python<'_>, error: warpfold_files::Error) -> PyErr {
    let hint = error.hint();
    match &error {
        warpfold_files::Error::Io { path, source } => match source.raw_os_error() {
            // Python takes the class from the number: FileNotFoundError and its like.
            Some(number) => {
                let what = source.to_string();
                let what = what.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, what, path.clone().into_os_string()))
            }
            None => PyOSError::new_err(text(&error, hint)),
        },
        warpfold_files::Error::Reduce { source, name } => {
            let inner = exception(py, source);
            match source {
                Error::AxisOutOfRange { .. } => inner,
                _ => PyErr::from_type(inner.get_type(py), text(format!("{name}: {source}"), hint)),
            }
        }
        _ => class(py, &FILE_ERROR, "FileError", text(&error, hint)),
    }
}

/// Errors of the library where an exception is wanted.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception for the error.
    ///
    /// # Errors
    /// The exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}

impl<T> OrRaise<T> for Result<T, warpfold_files::Error> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| file_exception(py, error))
    }
}
