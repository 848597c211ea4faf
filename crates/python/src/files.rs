//! Files: opened lazily, and streamed by each reduction.

use crate::answers::give_counted;
use crate::errors::OrRaise;
use crate::import::Family;
use crate::question::{AxisLength, MemoryLimit, element_type, policy};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use warpfold::{DType, Error, Op, Partial, Reduction, Rules};
use warpfold_files::stream::{self, Inputs, Outcome, Progress};
use warpfold_files::{ColumnSelector, Description, Endian, Format, OpenOptions, Source};

/// An array or table in a file, as :func:`open` returns it.
///
/// The functions take it in the place of an array. Each reads the file anew, in pieces.
#[pyclass(frozen, module = "warpfold", name = "File")]
pub(crate) struct File {
    /// With the member, if one was named.
    path: OsString,
    options: OpenOptions,
    memory_limit: Option<usize>,
}

/// How long Ctrl-C waits to be heard.
const PATIENCE: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Stop(AtomicBool);

impl Progress for Stop {
    fn begin(&self, _total: Option<u64>) {}
    fn advance(&self, _bytes: u64) {}
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does `work` on a thread of its own while this one listens for Ctrl-C, which stops it.
///
/// # Errors
/// Those of `work`, and `KeyboardInterrupt`.
fn listening<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Progress) -> warpfold_files::Result<T> + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (tell, told) = sync_channel(1);
            let worker = std::thread::Builder::new().name("warpfold".into()).spawn_scoped(scope, {
                let stop = &stop;
                move || {
                    let done = work(stop);
                    // Whoever listens is told, or has gone because of a signal.
                    tell.send(()).ok();
                    done
                }
            });
            let worker = worker.map_err(|error| {
                pyo3::exceptions::PyRuntimeError::new_err(format!("cannot start a thread: {error}"))
            })?;
            let mut heard = Ok(());
            while let Err(RecvTimeoutError::Timeout) = told.recv_timeout(PATIENCE) {
                if heard.is_ok() {
                    heard = Python::attach(|py| py.check_signals());
                    stop.0.store(heard.is_err(), Ordering::Relaxed);
                }
            }
            let done = worker.join().map_err(|_| {
                pyo3::exceptions::PyRuntimeError::new_err("a reader failed: please report it")
            })?;
            heard.map(|()| done)
        })
    });
    done?.or_raise(py)
}

impl File {
    /// The arrays or columns to reduce.
    fn sources(&self, py: Python<'_>) -> PyResult<Vec<Source>> {
        py.detach(|| warpfold_files::open(&self.path, &self.options)).or_raise(py)
    }

    /// What the file calls an array: its name without that of the file.
    fn label(&self, name: &str) -> String {
        let file = self.path.to_string_lossy();
        let own = name.strip_prefix(&*file).and_then(|rest| rest.strip_prefix(':'));
        own.unwrap_or(name).to_owned()
    }

    /// The states of the only array.
    ///
    /// # Errors
    /// Those of reading; several arrays.
    pub(crate) fn partial(
        &self,
        py: Python<'_>,
        question: &Reduction,
        start: u64,
    ) -> PyResult<Partial> {
        let mut sources = self.sources(py)?;
        let source = match (sources.pop(), sources.pop()) {
            (Some(source), None) => source,
            _ => {
                return Err(PyTypeError::new_err(
                    "the file holds several arrays\nhint: choose one with columns=",
                ));
            }
        };
        let inputs = Inputs { items: vec![source], others: Vec::new() };
        listening(py, |progress| {
            stream::partial(inputs, question, start, self.memory_limit, progress)
        })
    }
}

/// The answers to a question about a file; a dictionary of them for each operation, if it
/// was opened with several columns.
///
/// # Errors
/// Those of reading and of the reduction.
pub(crate) fn answers<'py>(
    py: Python<'py>,
    file: &Bound<'py, File>,
    question: &Reduction,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let this = file.get();
    let sources = this.sources(py)?;
    let several = sources.len() > 1 || this.options.columns.len() > 1;
    let names: Vec<String> = sources.iter().map(|source| this.label(&source.name)).collect();
    let types: Vec<DType> = sources.iter().map(|source| source.dtype).collect();
    let inputs =
        sources.into_iter().map(|source| Inputs { items: vec![source], others: Vec::new() });
    let inputs: Vec<Inputs> = inputs.collect();
    let outcomes = listening(py, |progress| {
        stream::reduce_all(inputs, question, this.memory_limit, progress)
    })?;
    let one = |outcome: Outcome, dtype: DType| -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (answer, unit) = (outcome.answer, outcome.unit.as_ref());
        let shape = answer.shape().to_vec();
        let columns = answer.into_columns().into_iter();
        let dtype = question.rules().out.is_none().then_some(dtype);
        let ours = &Family::Ours;
        columns.map(|column| give_counted(py, unit, ours, dtype, &shape, column, out)).collect()
    };
    let mut outcomes = outcomes.into_iter().zip(types);
    if !several {
        let (outcome, dtype) = outcomes
            .next()
            .ok_or_else(|| PyValueError::new_err("the file holds nothing to reduce"))?;
        return one(outcome, dtype);
    }
    let dicts: Vec<_> = question.ops().iter().map(|_| PyDict::new(py)).collect();
    for ((outcome, dtype), name) in outcomes.zip(names) {
        for (dict, answer) in dicts.iter().zip(one(outcome, dtype)?) {
            dict.set_item(&name, answer)?;
        }
    }
    Ok(dicts.into_iter().map(Bound::into_any).collect())
}

/// What ``stats`` tells of each array.
const STATS: [Op; 9] =
    [Op::Count, Op::Sum, Op::Mean, Op::Std, Op::Min, Op::Max, Op::ArgMin, Op::ArgMax, Op::CountNan];

/// Options of [`open`] and [`stats`].
struct Options<'py> {
    columns: Option<Bound<'py, PyAny>>,
    format: Option<String>,
    dtype: Option<Bound<'py, PyAny>>,
    shape: Option<Vec<AxisLength>>,
    offset: i64,
    endian: String,
    header: Option<bool>,
    delimiter: Option<String>,
    strict: bool,
    na: Option<Vec<String>>,
}

impl Options<'_> {
    fn read(self) -> PyResult<OpenOptions> {
        let format = self.format.as_deref().map(|name| {
            Format::from_name(name).ok_or_else(|| {
                let known = Format::ALL.map(Format::name).join(", ");
                PyValueError::new_err(format!(
                    "format={name:?} is not a format\nhint: there are {known}"
                ))
            })
        });
        let endian = match &self.endian[..] {
            "little" => Endian::Little,
            "big" => Endian::Big,
            other => {
                return Err(PyValueError::new_err(format!(
                    "endian={other:?} is neither \"little\" nor \"big\""
                )));
            }
        };
        let delimiter = match self.delimiter.as_deref().map(str::as_bytes) {
            None => None,
            Some([byte]) => Some(*byte),
            Some(_) => return Err(PyValueError::new_err("delimiter must be one ASCII character")),
        };
        Ok(OpenOptions {
            format: format.transpose()?,
            columns: self
                .columns
                .map(|columns| selectors(&columns))
                .transpose()?
                .unwrap_or_default(),
            dtype: self.dtype.map(|dtype| element_type(&dtype)).transpose()?,
            shape: self.shape.map(|shape| shape.into_iter().map(|n| n.0).collect()),
            offset: at_least_0("offset", self.offset)?,
            endian,
            header: self.header,
            delimiter,
            strict: self.strict,
            na: self.na,
            ..OpenOptions::default()
        })
    }
}

/// # Errors
/// `ValueError` for a negative number.
fn at_least_0(word: &str, number: i64) -> PyResult<u64> {
    let refused = |_| PyValueError::new_err(format!("{word} must be at least 0, not {number}"));
    u64::try_from(number).map_err(refused)
}

/// Columns: a name, a place from 1 on, or several of them.
fn selectors(columns: &Bound<'_, PyAny>) -> PyResult<Vec<ColumnSelector>> {
    let one = |column: &Bound<'_, PyAny>| -> PyResult<ColumnSelector> {
        if column.is_instance_of::<PyString>() {
            return Ok(ColumnSelector::Name(column.extract()?));
        }
        match column.extract::<usize>() {
            Ok(place) if place > 0 => Ok(ColumnSelector::Index(place)),
            _ => Err(PyValueError::new_err(format!(
                "{} is not a column\nhint: give its name, or its place counted from 1",
                column.repr()?
            ))),
        }
    };
    if columns.is_instance_of::<PyString>() || columns.is_instance_of::<PyInt>() {
        return Ok(vec![one(columns)?]);
    }
    columns.try_iter()?.map(|column| one(&column?)).collect()
}

/// A path, with the member that a colon may separate from it; or an open file, which is
/// read from its beginning.
fn path_of(path: &Bound<'_, PyAny>) -> PyResult<OsString> {
    let py = path.py();
    if let Ok(path) = path.extract::<PathBuf>() {
        return Ok(path.into_os_string());
    }
    if let Some(fileno) = path.getattr_opt(intern!(py, "fileno"))? {
        let number: i32 = fileno.call0()?.extract()?;
        if path.hasattr(intern!(py, "tell"))? {
            let at: u64 = path.call_method0(intern!(py, "tell"))?.extract()?;
            if at != 0 {
                return Err(PyValueError::new_err(format!(
                    "the open file is at byte {at}, and files are read from their beginning\nhint: give its path, or seek(0)"
                )));
            }
        }
        return Ok(format!("/dev/fd/{number}").into());
    }
    Err(PyTypeError::new_err(format!(
        "a path or an open file is opened, not {}",
        path.get_type().fully_qualified_name()?
    )))
}

/// An array or table in a file, to be reduced without loading it.
///
/// Arguments:
///     path: a path, or an open file
///     columns: a name, a place counted from 1, or several of them
///     format: the format's name, where the file does not tell it
///     dtype, shape, offset, endian: of raw numbers, and the type that text is read as
///     header, delimiter, strict, na: of text: see docs/formats.md
///     memory_limit: the bytes that reading may take
///
/// Raises:
///     OSError: a file that is not there or cannot be read.
///     FileError: a file that is not what it says, or that lacks what was asked for.
///     ValueError: an option that means nothing.
#[pyfunction]
#[pyo3(signature = (path, /, *, columns=None, format=None, dtype=None, shape=None, offset=0, endian="little", header=None, delimiter=None, strict=false, na=None, memory_limit=None))]
#[expect(clippy::too_many_arguments, reason = "the options that readers have")]
pub(crate) fn open<'py>(
    py: Python<'py>,
    path: &Bound<'py, PyAny>,
    columns: Option<Bound<'py, PyAny>>,
    format: Option<String>,
    dtype: Option<Bound<'py, PyAny>>,
    shape: Option<Vec<AxisLength>>,
    offset: i64,
    endian: &str,
    header: Option<bool>,
    delimiter: Option<String>,
    strict: bool,
    na: Option<Vec<String>>,
    memory_limit: Option<MemoryLimit>,
) -> PyResult<File> {
    let endian = endian.to_owned();
    let options =
        Options { columns, format, dtype, shape, offset, endian, header, delimiter, strict, na };
    let memory_limit = memory_limit.map(|limit| limit.0);
    let file = File { path: path_of(path)?, options: options.read()?, memory_limit };
    // A file that is not there, or is none, is told now. Looking into a pipe would consume it.
    let place = std::path::Path::new(&file.path);
    if place.is_file() || place.is_dir() || !place.exists() {
        file.sources(py)?;
    }
    Ok(file)
}

#[pymethods]
impl File {
    /// The names of the arrays or columns that are reduced.
    #[getter]
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.sources(py)?.iter().map(|source| self.label(&source.name)).collect())
    }

    /// The path, with the member if one was named.
    #[getter]
    fn path(&self) -> &OsString {
        &self.path
    }

    fn __repr__(&self) -> String {
        format!("warpfold.open({:?})", self.path.to_string_lossy())
    }
}

/// Count, sum, mean, standard deviation, extremes with their positions and the number of
/// NaNs: of the array in a file, or a dictionary of such for each column.
///
/// Arguments:
///     path: a path, or an open file
///     nan: "propagate", the default, "omit" or "raise"
///     ddof: what is subtracted from the count in the divisor of the standard deviation
///     columns: a name, a place counted from 1, or several of them
///     format: the format's name, where the file does not tell it
///     dtype, shape, offset, endian: of raw numbers, and the type that text is read as
///     header, delimiter, strict, na: of text: see docs/formats.md
///     memory_limit: the bytes that reading may take
///
/// Raises:
///     OSError: a file that is not there or cannot be read.
///     FileError: a file that is not what it says, or that lacks what was asked for.
///     ValueError: an option that means nothing.
#[pyfunction]
#[pyo3(signature = (path, /, *, columns=None, nan=None, ddof=0, format=None, dtype=None, shape=None, offset=0, endian="little", header=None, delimiter=None, strict=false, na=None, memory_limit=None))]
#[expect(clippy::too_many_arguments, reason = "the options that readers have")]
pub(crate) fn stats<'py>(
    py: Python<'py>,
    path: &Bound<'py, PyAny>,
    columns: Option<Bound<'py, PyAny>>,
    nan: Option<&str>,
    ddof: i64,
    format: Option<String>,
    dtype: Option<Bound<'py, PyAny>>,
    shape: Option<Vec<AxisLength>>,
    offset: i64,
    endian: &str,
    header: Option<bool>,
    delimiter: Option<String>,
    strict: bool,
    na: Option<Vec<String>>,
    memory_limit: Option<MemoryLimit>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut question = Reduction::new(STATS).ddof(at_least_0("ddof", ddof)?);
    if let Some(nan) = nan {
        question = question.nan(policy(nan)?);
    }
    let chosen = columns.is_some();
    let endian = endian.to_owned();
    let options =
        Options { columns, format, dtype, shape, offset, endian, header, delimiter, strict, na };
    let options = OpenOptions { all_columns: true, ..options.read()? };
    let memory_limit = memory_limit.map(|limit| limit.0);
    let mut file = File { path: path_of(path)?, options, memory_limit };
    if !chosen && std::path::Path::new(&file.path).is_file() {
        file.options.columns = members(py, &file)?;
    }
    let sources = file.sources(py)?;
    let table =
        sources.len() > 1 || sources.iter().any(|source| file.label(&source.name) != source.name);
    let names: Vec<String> = sources.iter().map(|source| file.label(&source.name)).collect();
    let inputs =
        sources.into_iter().map(|source| Inputs { items: vec![source], others: Vec::new() });
    let inputs: Vec<Inputs> = inputs.collect();
    let partials =
        listening(py, |progress| stream::partials(inputs, &question, 0, memory_limit, progress))?;
    let all = PyDict::new(py);
    for (name, partial) in names.iter().zip(&partials) {
        let one = PyDict::new(py);
        for op in STATS {
            one.set_item(
                op.name().replace('-', "_"),
                finished(py, partial, op, question.rules())?,
            )?;
        }
        one.set_item("missing", partial.missing())?;
        if !table {
            return Ok(one);
        }
        all.set_item(name, one)?;
    }
    Ok(all)
}

/// The arrays of an archive or table that hold plain numbers, where there are several.
fn members(py: Python<'_>, file: &File) -> PyResult<Vec<ColumnSelector>> {
    let all = py.detach(|| warpfold_files::inspect(&file.path, &file.options)).or_raise(py)?;
    // The columns of text are found when it is opened.
    let text = |d: &Description| matches!(d.format, Format::Csv | Format::Tsv | Format::Text);
    let plain: Vec<&Description> = all.iter().filter(|d| d.is_plain()).collect();
    if all.iter().any(text) || plain.len() < 2 {
        return Ok(Vec::new());
    }
    Ok(plain.iter().map(|d| ColumnSelector::Name(file.label(&d.name))).collect())
}

/// One answer; `None` where nothing has no smallest element. A total of integers beyond
/// their type is no reason to withhold the others: it is rounded to a float.
fn finished<'py>(
    py: Python<'py>,
    partial: &Partial,
    op: Op,
    rules: &Rules,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let column = partial.finish_op(op, rules).or_else(|error| match error {
        Error::Overflow { .. } => partial.finish_op(op, &rules.out(Some(DType::F64))),
        error => Err(error),
    });
    match column {
        Err(Error::Empty { .. } | Error::UnsupportedUnit { .. }) => Ok(None),
        column => {
            let column = column.or_raise(py)?;
            let (ours, dtype) = (&Family::Ours, Some(partial.dtype()));
            give_counted(py, partial.unit(), ours, dtype, partial.shape(), column, None).map(Some)
        }
    }
}
