//! Columns of a table as they come in: of keys or of values, all with as many rows.

use crate::arrow;
use crate::complex;
use crate::cuda;
use crate::dense::Dense;
use crate::errors::OrRaise;
use crate::home::Home;
use crate::import::{Data, Family, import};
use crate::masked::Masked;
use crate::run::part;
use crate::{numpy, sequence, times};
use arrow_array::{Array, ArrayRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::ops::Range;
use warpfold::{DType, Input, KeyColumn, Op, Reduction};

/// One column.
pub(crate) enum Column {
    /// Numbers where they lie.
    Dense(Dense),
    /// Pieces of one type.
    Arrow(Vec<ArrayRef>),
    /// Numbers that were copied.
    Masked(Masked),
    Texts(Vec<Option<String>>),
    /// Dates and times, as keys are.
    Times(times::Counted),
    /// Numbers in a device's memory.
    Device(cuda::DeviceArray),
}

/// What of a column is held while some of its rows are reduced.
pub(crate) enum Held<'a> {
    /// Nothing but the column itself.
    Itself(&'a Column, Range<usize>),
    /// The piece of it that the rows lie in, cut to them.
    Piece(ArrayRef),
    /// All of it, where it lies.
    Device(warpfold::DeviceArray<'a>),
}

/// A column, and whose types go with it.
pub(crate) struct Owned<'py> {
    pub(crate) column: Column,
    pub(crate) home: Home<'py>,
}

/// Columns by their names; a single column has none.
pub(crate) enum Columns<'py> {
    One(Box<Owned<'py>>),
    /// In a tuple.
    Several(Vec<Owned<'py>>),
    Named(Vec<(String, Owned<'py>)>),
}

impl Column {
    pub(crate) fn rows(&self) -> usize {
        match self {
            Column::Dense(dense) => dense.len(),
            Column::Arrow(chunks) => chunks.iter().map(|chunk| chunk.len()).sum(),
            Column::Masked(masked) => masked.rows(),
            Column::Texts(texts) => texts.len(),
            Column::Times(counted) => counted.counts.rows(),
            Column::Device(array) => array.shape().iter().product(),
        }
    }

    /// Whether the column lies in a device's memory.
    pub(crate) fn is_on_a_device(&self) -> bool {
        matches!(self, Column::Device(_))
    }

    /// Adds the rows at which pieces begin.
    pub(crate) fn cuts(&self, cuts: &mut Vec<usize>) {
        if let Column::Arrow(chunks) = self {
            let mut at = 0;
            for chunk in chunks {
                at += chunk.len();
                cuts.push(at);
            }
        }
    }

    /// What is held of the column while some rows are reduced, between which it has no seam. A
    /// column on a device is reduced whole.
    ///
    /// # Errors
    /// Those of a device.
    pub(crate) fn held(&self, py: Python<'_>, rows: &Range<usize>) -> PyResult<Held<'_>> {
        match self {
            Column::Arrow(chunks) => {
                let mut at = 0;
                for chunk in chunks {
                    let end = at + chunk.len();
                    if rows.start >= at && rows.end <= end && (rows.start < end || rows.is_empty())
                    {
                        return Ok(Held::Piece(chunk.slice(rows.start - at, rows.len())));
                    }
                    at = end;
                }
                Ok(Held::Itself(self, rows.clone()))
            }
            Column::Device(array) => array.lent(py).map(Held::Device),
            _ => Ok(Held::Itself(self, rows.clone())),
        }
    }

    /// The type of the elements, if they are numbers.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self {
            Column::Dense(dense) => Some(dense.dtype),
            Column::Masked(masked) => Some(masked.dtype()),
            Column::Device(array) => Some(array.dtype()),
            Column::Arrow(chunks) => {
                Input::from(chunks.first()?).view().ok().map(|view| view.dtype())
            }
            Column::Texts(_) | Column::Times(_) => None,
        }
    }

    /// The numbers put together.
    ///
    /// # Errors
    /// A column of something else than numbers.
    pub(crate) fn joined(&self) -> warpfold::Result<Masked> {
        match self {
            Column::Arrow(chunks) => {
                let mut all: Option<Masked> = None;
                for chunk in chunks {
                    let input = Input::from(chunk);
                    let dtype = input.view()?.dtype();
                    all.get_or_insert_with(|| Masked::new(dtype)).append(&input)?;
                }
                all.ok_or(warpfold::Error::NotNumbers { found: "nothing".into() })
            }
            _ => {
                let held = Held::Itself(self, 0..self.rows());
                let input = held.input()?;
                let mut all = Masked::new(input.view()?.dtype());
                all.append(&input)?;
                Ok(all)
            }
        }
    }

    /// The same column, in which rows with a NaN have no value.
    ///
    /// # Errors
    /// Those of a reduction.
    pub(crate) fn without_nans(self, py: Python<'_>) -> PyResult<Column> {
        if !self.dtype().is_some_and(|dtype| dtype.is_float()) {
            return Ok(self);
        }
        let count = Reduction::of(Op::CountNan);
        if let Column::Device(array) = &self {
            let lent = array.lent(py)?;
            let found = py.detach(|| count.run(&lent)).or_raise(py)?;
            if found.number::<u64>(Op::CountNan) != Some(0) {
                return Err(PyValueError::new_err(
                    "some keys on a device are NaN, and rows cannot be left out there\nhint: choose the other rows first, or move keys and values to the CPU",
                ));
            }
            drop(lent);
            return Ok(self);
        }
        let mut all = self.joined().or_raise(py)?;
        let found = py.detach(|| count.run(all.input(0..all.rows())?)).or_raise(py)?;
        if found.number::<u64>(Op::CountNan) == Some(0) {
            return Ok(self);
        }
        all.leave_out_nans();
        Ok(Column::Masked(all))
    }
}

impl Held<'_> {
    /// The rows, of numbers in the host's memory.
    ///
    /// # Errors
    /// An array of something else than numbers, or on a device.
    pub(crate) fn input(&self) -> warpfold::Result<Input<'_>> {
        match self {
            Held::Itself(Column::Dense(dense), rows) => {
                Ok(part(&dense.view(), 0, rows.start, rows.end).into())
            }
            Held::Itself(Column::Masked(masked), rows) => masked.input(rows.clone()),
            Held::Itself(Column::Times(_), _) => {
                Err(warpfold::Error::NotNumbers { found: "dates and times".into() })
            }
            Held::Itself(..) => Err(warpfold::Error::NotNumbers { found: "text".into() }),
            Held::Piece(piece) => Ok(Input::from(piece)),
            Held::Device(_) => Err(warpfold::Error::DeviceMemory {
                what: "a column lies in a device's memory".into(),
                hint: "move it to the CPU first",
            }),
        }
    }

    /// The rows, of numbers wherever they lie.
    ///
    /// # Errors
    /// An array of something else than numbers.
    pub(crate) fn array(&self) -> warpfold::Result<warpfold::Array<'_>> {
        match self {
            Held::Device(array) => Ok(array.into()),
            _ => self.input().map(warpfold::Array::from),
        }
    }

    /// The rows, of keys.
    ///
    /// # Errors
    /// None that can happen.
    pub(crate) fn keys(&self) -> warpfold::Result<KeyColumn<'_>> {
        match self {
            Held::Itself(Column::Texts(texts), rows) => Ok(texts[rows.clone()].into()),
            Held::Itself(Column::Times(times::Counted { counts, unit, wide }), rows) => {
                let keys = KeyColumn::from(counts.input(rows.clone())?).counting(unit.clone());
                Ok(keys.beyond(wide, rows.start as u64))
            }
            Held::Piece(piece) => Ok(piece.into()),
            Held::Device(array) => Ok(array.into()),
            Held::Itself(..) => self.input().map(KeyColumn::from),
        }
    }
}

/// Refuses arrays that have not one axis.
fn check_shape(shape: &[usize]) -> PyResult<()> {
    if shape.len() != 1 {
        return Err(PyValueError::new_err(format!(
            "an array of shape {shape:?} is no column\nhint: keys and values are arrays of one axis: ravel it, or take one of its columns"
        )));
    }
    Ok(())
}

fn flat(dense: Dense) -> PyResult<Column> {
    check_shape(&dense.shape)?;
    Ok(Column::Dense(dense))
}

/// The arrays that columns are taken from.
///
/// # Errors
/// What [`column`] says of one of them.
pub(crate) fn columns<'py>(x: &Bound<'py, PyAny>, keys: bool) -> PyResult<Columns<'py>> {
    let py = x.py();
    if let Ok(dict) = x.cast::<PyDict>() {
        let named = dict
            .iter()
            .map(|(name, column_of)| Ok((name.str()?.to_string(), column(&column_of, keys)?)));
        return named.collect::<PyResult<_>>().map(Columns::Named);
    }
    if let Some(several) = several(x)? {
        let columns = several.iter().map(|x| column(x, keys));
        return columns.collect::<PyResult<_>>().map(Columns::Several);
    }
    if is_pandas(x)? && x.hasattr(intern!(py, "columns"))? {
        let mut named = Vec::new();
        for item in x.call_method0(intern!(py, "items"))?.try_iter()? {
            let (name, of): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
            named.push((name.str()?.to_string(), column(&of, keys)?));
        }
        return Ok(Columns::Named(named));
    }
    if (x.hasattr(intern!(py, "__arrow_c_stream__"))?
        || x.hasattr(intern!(py, "__arrow_c_array__"))?)
        && !is_of_numpy(x)
        && let Some(arrow::Imported::Frame(columns)) = arrow::import(x)?
    {
        let named = columns.into_iter().map(|(name, chunks)| {
            let decimals = if keys { times::of_decimals(chunks.pieces()) } else { None };
            let column = match decimals {
                Some(decimals) => Column::Times(decimals),
                None => Column::Arrow(chunks.into_pieces()),
            };
            Ok((name, Owned { column, home: Home::of(x, &Family::Python)? }))
        });
        return named.collect::<PyResult<_>>().map(Columns::Named);
    }
    column(x, keys).map(|one| Columns::One(Box::new(one)))
}

/// The columns of a list or tuple of columns; `None` if it is one of rows.
fn several<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    if !x.is_instance_of::<PyTuple>() && !x.is_instance_of::<PyList>() {
        return Ok(None);
    }
    let items: Vec<_> = x.try_iter()?.collect::<PyResult<_>>()?;
    Ok(items.first().is_some_and(|first| !is_row(first)).then_some(items))
}

/// Whether an object is one row of a column, and no column.
fn is_row(x: &Bound<'_, PyAny>) -> bool {
    x.is_none()
        || x.is_instance_of::<PyString>()
        || x.is_instance_of::<PyBytes>()
        || x.is_instance_of::<PyFloat>()
        || x.is_instance_of::<PyInt>()
        || x.is_instance_of::<PyBool>()
        || numpy::is_scalar(x)
        || is_missing(x)
        || times::is_one(x)
}

/// Whether a row has no value, by whatever says so beside texts: None, or what pandas has.
fn is_missing(x: &Bound<'_, PyAny>) -> bool {
    x.is_none() || x.get_type().name().is_ok_and(|name| name == "NAType" || name == "NaTType")
}

fn is_pandas(x: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(x.get_type().module()?.to_cow()?.starts_with("pandas."))
}

/// Whether what an object wraps is an array of NumPy, of one of its own types.
fn is_of_numpy(x: &Bound<'_, PyAny>) -> bool {
    if numpy::is_exact_array(x) {
        return true;
    }
    let dtype = x.getattr_opt(intern!(x.py(), "dtype")).ok().flatten();
    dtype.is_some_and(|dtype| numpy::is_dtype(&dtype))
}

/// A column of an object.
///
/// # Errors
/// An object that holds neither numbers nor texts, or not in one axis.
pub(crate) fn column<'py>(x: &Bound<'py, PyAny>, keys: bool) -> PyResult<Owned<'py>> {
    let py = x.py();
    if x.is_instance_of::<PyList>() || x.is_instance_of::<PyTuple>() {
        return Ok(Owned { column: of_rows(x, keys)?, home: Home::Family(Family::Python) });
    }
    if is_of_numpy(x) {
        let kind = match keys {
            true => x.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?,
            false => String::new(),
        };
        if matches!(&*kind, "M" | "m") {
            check_shape(&x.getattr(intern!(py, "shape"))?.extract::<Vec<usize>>()?)?;
            let counted = times::of_numpy(x)?;
            let home = Home::Family(Family::NumPy);
            return Ok(Owned { column: Column::Times(counted), home });
        }
        if matches!(&*kind, "O" | "U" | "S" | "T") {
            let rows = x.call_method0(intern!(py, "tolist"))?;
            return Ok(Owned { column: of_rows(&rows, keys)?, home: Home::Family(Family::NumPy) });
        }
    } else if keys
        && is_pandas(x)?
        && let Some(counted) = times::of_zoned(x)?
    {
        let home = Home::Family(Family::NumPy);
        return Ok(Owned { column: Column::Times(counted), home });
    } else if x.hasattr(intern!(py, "__arrow_c_stream__"))?
        || x.hasattr(intern!(py, "__arrow_c_array__"))?
    {
        if let Some(arrow::Imported::Column(chunks)) = arrow::import(x)? {
            let home = Home::of(x, &Family::Python)?;
            if keys && chunks.are_null() {
                let rows = usize::try_from(chunks.rows()).unwrap_or(0);
                return Ok(Owned { column: Column::Texts(vec![None; rows]), home });
            }
            if keys && let Some(counted) = times::of_decimals(chunks.pieces()) {
                return Ok(Owned { column: Column::Times(counted), home });
            }
            return Ok(Owned { column: Column::Arrow(chunks.into_pieces()), home });
        }
    } else if is_pandas(x)? {
        let rows = x.call_method0(intern!(py, "tolist"))?;
        return Ok(Owned { column: of_rows(&rows, keys)?, home: Home::Family(Family::NumPy) });
    }
    let imported = import(x).map_err(|error| {
        let told =
            x.hasattr(intern!(py, "dtype")).unwrap_or(false) || x.is_instance_of::<PyString>();
        match keys && !told && error.is_instance_of::<PyTypeError>(py) {
            true => times::no_key(x),
            false => error,
        }
    })?;
    let home = Home::of(x, &imported.family)?;
    Ok(match imported.data {
        Data::Dense(dense) => Owned { column: flat(dense)?, home },
        Data::Column(chunks) => Owned { column: Column::Arrow(chunks.into_pieces()), home },
        Data::Device(array) => {
            check_shape(array.shape())?;
            let home = Home::Device(array.ordinal(), imported.family);
            Owned { column: Column::Device(array), home }
        }
        Data::Complex(_) => return Err(refused_complex(keys)),
        Data::File(_) | Data::Frame(_) => {
            return Err(PyTypeError::new_err(
                "files and tables are no columns\nhint: read or choose the columns first",
            ));
        }
    })
}

/// The error that a column of keys or of values is complex.
fn refused_complex(keys: bool) -> PyErr {
    if keys { times::no_complex_key() } else { complex::refused("a column") }
}

/// A list of texts or numbers, some of which may be None.
fn of_rows(rows: &Bound<'_, PyAny>, keys: bool) -> PyResult<Column> {
    let py = rows.py();
    let items: Vec<Bound<'_, PyAny>> = rows.try_iter()?.collect::<PyResult<_>>()?;
    let is_text = |item: &Bound<'_, PyAny>| item.is_instance_of::<PyString>();
    if keys && items.iter().any(is_text) {
        let text = |item: &Bound<'_, PyAny>| -> PyResult<Option<String>> {
            let nan = || item.cast::<PyFloat>().is_ok_and(|x| x.value().is_nan());
            if is_text(item) {
                item.extract().map(Some)
            } else if is_missing(item) || nan() {
                Ok(None)
            } else {
                Err(PyTypeError::new_err(format!(
                    "{} stands among texts\nhint: the keys of a column are all texts, or all numbers",
                    item.repr()?
                )))
            }
        };
        return items.iter().map(text).collect::<PyResult<_>>().map(Column::Texts);
    }
    if keys && let Some(bytes) = items.iter().find(|item| item.is_instance_of::<PyBytes>()) {
        return Err(PyTypeError::new_err(format!(
            "{} is no text\nhint: decode the keys first",
            bytes.repr()?
        )));
    }
    if keys && let Some(counted) = times::of_objects(&items, is_missing)? {
        return Ok(Column::Times(counted));
    }
    let has: Vec<&Bound<'_, PyAny>> = items.iter().filter(|item| !is_missing(item)).collect();
    let (dense, is_complex) =
        sequence::import(PyList::new(py, &has)?.as_any()).map_err(|error| {
            let none = has.iter().find(|item| !is_row(item));
            match none.filter(|_| keys && error.is_instance_of::<PyTypeError>(py)) {
                Some(none) => times::no_key(none),
                None => error,
            }
        })?;
    if is_complex {
        return Err(refused_complex(keys));
    }
    if has.len() == items.len() || dense.shape.len() != 1 {
        return flat(dense);
    }
    let size = dense.dtype.size();
    let view = dense.view();
    let bytes = view.contiguous().unwrap_or_default();
    let mut masked = Masked::new(dense.dtype);
    masked.grow(items.len());
    let mut values = bytes.chunks_exact(size);
    for (row, item) in items.iter().enumerate() {
        if !is_missing(item)
            && let Some(value) = values.next()
        {
            masked.set(row, value);
        }
    }
    Ok(Column::Masked(masked))
}
