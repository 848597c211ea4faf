//! Columns that come by Arrow's C data interface; nulls are missing values.

use crate::errors::OrRaise;
use crate::times;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{ArrowPrimitiveType, Decimal256Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Decimal256Array, Float16Array, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeStringArray, NullArray,
    StructArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array, make_array, new_empty_array,
};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::CStr;
use std::sync::Arc;
use warpfold::internal::ForReaders;
use warpfold::{Answer, Bool8, DType, Decimal, Numbers, Partial, Reduction, Scalar, Tick, Unit};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A column, in pieces of one type. There is at least one.
pub(crate) struct Chunks(Vec<ArrayRef>);

/// What comes by the interface.
pub(crate) enum Imported {
    Column(Chunks),
    /// Columns with their names.
    Frame(Vec<(String, Chunks)>),
}

fn refused(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("the producer of Arrow data is wrong: {error}"))
}

/// The array that `__arrow_c_array__` or `__arrow_c_stream__` hands over; `None` if the
/// object has neither.
///
/// # Errors
/// The object's own; data that Arrow's rules do not allow.
pub(crate) fn import(x: &Bound<'_, PyAny>) -> PyResult<Option<Imported>> {
    let py = x.py();
    if let Some(export) = x.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        let pair = export.call0()?;
        let pair = pair.cast::<PyTuple>()?;
        let mut schema: FFI_ArrowSchema =
            taken(&pair.get_item(0)?, SCHEMA, FFI_ArrowSchema::empty)?;
        let array: FFI_ArrowArray = taken(&pair.get_item(1)?, ARRAY, FFI_ArrowArray::empty)?;
        return chunks(&mut schema, vec![array]).map(Some);
    }
    if let Some(export) = x.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        let stream = taken(&export.call0()?, STREAM, FFI_ArrowArrayStream::empty)?;
        let (mut schema, arrays) = read(stream)?;
        return chunks(&mut schema, arrays).map(Some);
    }
    Ok(None)
}

/// Takes a structure out of its capsule, which is left with a released one.
///
/// # Errors
/// It is no capsule of this name.
fn taken<T>(capsule: &Bound<'_, PyAny>, name: &'static CStr, released: fn() -> T) -> PyResult<T> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: a capsule of this name points to such a structure, by Arrow's protocol. What is
    // left is a released one, so that the capsule frees nothing of what is ours now.
    Ok(unsafe { std::ptr::replace(pointer.as_ptr(), released()) })
}

/// Reads a stream to its end.
///
/// # Errors
/// What the producer says.
fn read(mut stream: FFI_ArrowArrayStream) -> PyResult<(FFI_ArrowSchema, Vec<FFI_ArrowArray>)> {
    let (Some(get_schema), Some(get_next)) = (stream.get_schema(), stream.get_next()) else {
        return Err(PyValueError::new_err(
            "the producer of Arrow data hands over a stream that is used up",
        ));
    };
    let failed = |stream: &mut FFI_ArrowArrayStream, status: i32| {
        let why = stream.get_last_error().and_then(|ask| {
            // SAFETY: the callback belongs to this stream.
            let text = unsafe { ask(stream) };
            // SAFETY: it is null or a string of C until the next call on the stream.
            (!text.is_null())
                .then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        let why = why.unwrap_or_else(|| format!("status {status}"));
        PyValueError::new_err(format!("the producer of Arrow data fails: {why}"))
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the callback belongs to this stream, and `schema` takes what it writes.
    let status = unsafe { get_schema(&raw mut stream, &raw mut schema) };
    if status != 0 {
        return Err(failed(&mut stream, status));
    }
    let mut arrays = Vec::new();
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as above.
        let status = unsafe { get_next(&raw mut stream, &raw mut array) };
        if status != 0 {
            return Err(failed(&mut stream, status));
        }
        if array.is_released() {
            return Ok((schema, arrays));
        }
        arrays.push(array);
    }
}

/// # Errors
/// Data that Arrow's rules do not allow.
fn chunks(schema: &mut FFI_ArrowSchema, arrays: Vec<FFI_ArrowArray>) -> PyResult<Imported> {
    let schema = &*schema;
    let dtype = DataType::try_from(schema).map_err(|error| refused(&error))?;
    if let DataType::Struct(fields) = &dtype
        && let Some(field) = fields.iter().find(|field| field.data_type() == &DataType::Null)
    {
        return Err(PyTypeError::new_err(format!(
            "the column {:?} of type Null holds no values\nhint: leave it out, or cast it to a type of numbers first",
            field.name()
        )));
    }
    let mut all = Vec::with_capacity(arrays.len().max(1));
    for array in arrays {
        if dtype == DataType::Null {
            // It has no buffers, whatever its producer says: Polars counts one.
            all.push(Arc::new(NullArray::new(array.len())) as ArrayRef);
            continue;
        }
        // SAFETY: the producer promises to keep to the interface; what it says of lengths is
        // checked against its buffers as far as these are described.
        let data = unsafe { from_ffi(array, schema) }.map_err(|error| refused(&error))?;
        all.push(make_array(data));
    }
    if all.is_empty() {
        all.push(new_empty_array(&dtype));
    }
    let DataType::Struct(fields) = &dtype else { return Ok(Imported::Column(Chunks(all))) };
    let column = |i: usize| -> PyResult<Chunks> {
        let pieces = all.iter().map(|array| {
            let rows = array.as_any().downcast_ref::<StructArray>();
            let rows = rows.filter(|rows| rows.null_count() == 0);
            rows.map(|rows| ArrayRef::clone(rows.column(i)))
        });
        let pieces: Option<Vec<ArrayRef>> = pieces.collect();
        let pieces = pieces.ok_or_else(|| {
            PyTypeError::new_err(
                "a column of records with nulls cannot be reduced\nhint: reduce one of its fields",
            )
        })?;
        Ok(Chunks(pieces))
    };
    let named = fields.iter().enumerate().map(|(i, field)| Ok((field.name().clone(), column(i)?)));
    named.collect::<PyResult<_>>().map(Imported::Frame)
}

impl Chunks {
    /// The answers of a question.
    ///
    /// # Errors
    /// Those of the reduction.
    pub(crate) fn answer(
        &self,
        py: Python<'_>,
        question: &Reduction,
    ) -> PyResult<(Answer, Option<Unit>)> {
        if let [chunk] = &self.0[..]
            && !self.are_decimals()
        {
            return Ok((py.detach(|| question.run(&**chunk)).or_raise(py)?, None));
        }
        let partial = self.partial(py, question, 0)?;
        Ok((partial.finish(question.rules()).or_raise(py)?, partial.unit().cloned()))
    }

    fn are_decimals(&self) -> bool {
        matches!(self.0.first().map(Array::data_type), Some(DataType::Decimal128(..)))
    }

    /// The states of a question.
    ///
    /// # Errors
    /// Those of the reduction; several pieces of which each element is wanted alone.
    pub(crate) fn partial(
        &self,
        py: Python<'_>,
        question: &Reduction,
        start: u64,
    ) -> PyResult<Partial> {
        let reduced = question.named_axes().resolve(1).or_raise(py)?;
        if reduced[..] != [true] && self.0.len() > 1 {
            return Err(PyTypeError::new_err(
                "a column in several pieces has no answer for each element\nhint: join the pieces first: combine_chunks or rechunk",
            ));
        }
        if reduced[..] == [true]
            && let Some(times::Counted { counts, unit, wide }) = times::of_decimals(&self.0)
        {
            let made = py.detach(|| {
                let mut all = question.partial(counts.input(0..counts.rows())?, start)?;
                if !wide.is_empty() {
                    all.absorb_wide(wide.iter().map(|&(row, decimal)| (start + row, decimal)))?;
                }
                all.counting(unit)
            });
            return made.or_raise(py);
        }
        let mut all: Option<Partial> = None;
        let mut at = start;
        for chunk in &self.0 {
            let made = py.detach(|| match &mut all {
                Some(all) => question.absorb(all, &**chunk, at),
                None => question.partial(&**chunk, at).map(|made| all = Some(made)),
            });
            made.or_raise(py)?;
            py.check_signals()?;
            at = at.saturating_add(chunk.len() as u64);
        }
        all.ok_or_else(|| PyValueError::new_err("a column without pieces"))
    }

    /// The pieces, where they lie.
    pub(crate) fn pieces(&self) -> &[ArrayRef] {
        &self.0
    }

    /// The pieces.
    pub(crate) fn into_pieces(self) -> Vec<ArrayRef> {
        self.0
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> u64 {
        self.0.iter().map(|chunk| chunk.len() as u64).sum()
    }

    /// Whether no row has a value, nor a type.
    pub(crate) fn are_null(&self) -> bool {
        self.0.iter().all(|piece| piece.data_type() == &DataType::Null)
    }

    /// The only piece.
    pub(crate) fn only(&self) -> Option<&dyn Array> {
        match &self.0[..] {
            [chunk] => Some(&**chunk),
            _ => None,
        }
    }
}

/// A column of answers for a library of Arrow arrays.
#[pyclass(frozen, module = "warpfold", name = "ArrowColumn")]
pub(crate) struct ArrowColumn(ArrayRef);

impl ArrowColumn {
    /// Numbers, of which those of `missing` rows, ascending, are null; `None` for bfloat16,
    /// which Arrow has not.
    pub(crate) fn of_numbers(numbers: &Numbers, missing: &[usize]) -> Option<ArrowColumn> {
        let has = |row: usize| missing.binary_search(&row).is_err();
        macro_rules! array {
            ($($dtype:ident => $array:ident),*) => {
                match numbers.dtype() {
                    $(DType::$dtype => {
                        let items = numbers.as_slice()?.iter().enumerate();
                        Arc::new(items.map(|(i, &x)| has(i).then_some(x)).collect::<$array>())
                    })*
                    DType::Bool => {
                        let items = numbers.as_slice::<Bool8>()?.iter().enumerate();
                        let items = items.map(|(i, x)| has(i).then_some(x.0 != 0));
                        Arc::new(items.collect::<BooleanArray>())
                    }
                    _ => return None,
                }
            };
        }
        Some(ArrowColumn(array! {
            I8 => Int8Array, I16 => Int16Array, I32 => Int32Array, I64 => Int64Array,
            U8 => UInt8Array, U16 => UInt16Array, U32 => UInt32Array, U64 => UInt64Array,
            F16 => Float16Array, F32 => Float32Array, F64 => Float64Array
        }))
    }

    /// Integers as what they count, of which those of `missing` rows, ascending, are null.
    ///
    /// # Errors
    /// Dates beyond 32 bits.
    pub(crate) fn of_times(
        numbers: &Numbers,
        unit: &Unit,
        missing: &[usize],
    ) -> PyResult<ArrowColumn> {
        let has = |row: usize| missing.binary_search(&row).is_err();
        let counts = numbers.iter().enumerate().map(|(row, number)| match number {
            Scalar::Int(count, _) if has(row) => Some(count),
            _ => None,
        });
        let tick = match unit.tick() {
            Some(Tick::Second) => TimeUnit::Second,
            Some(Tick::Milli) => TimeUnit::Millisecond,
            Some(Tick::Micro) => TimeUnit::Microsecond,
            _ => TimeUnit::Nanosecond,
        };
        if let Unit::Decimal(digits) = unit {
            let scale = i8::try_from(*digits).map_err(|_| times::beyond(unit))?;
            return decimals(numbers, missing, scale);
        }
        let (dtype, narrow) = match unit {
            Unit::Date(Tick::Day) => (DataType::Date32, true),
            Unit::Date(_) => (DataType::Date64, false),
            Unit::Time(Tick::Second | Tick::Milli) => (DataType::Time32(tick), true),
            Unit::Time(_) => (DataType::Time64(tick), false),
            Unit::Timestamp(_, zone) => {
                (DataType::Timestamp(tick, zone.as_deref().map(Arc::from)), false)
            }
            _ => (DataType::Duration(tick), false),
        };
        let data = if narrow {
            let narrow = counts.map(|count| count.map(i32::try_from).transpose());
            let narrow: Vec<Option<i32>> =
                narrow.collect::<Result<_, _>>().map_err(|_| times::beyond(unit))?;
            Int32Array::from(narrow).into_data()
        } else {
            Int64Array::from(counts.collect::<Vec<_>>()).into_data()
        };
        let data = data.into_builder().data_type(dtype).build().map_err(|e| refused(&e))?;
        Ok(ArrowColumn(make_array(data)))
    }

    /// Texts.
    pub(crate) fn of_texts(texts: &[Option<&str>]) -> ArrowColumn {
        ArrowColumn(Arc::new(texts.iter().copied().collect::<LargeStringArray>()))
    }
}

/// Decimals of 128 bits, or of 256 where one has more digits than 38.
fn decimals(numbers: &Numbers, missing: &[usize], scale: i8) -> PyResult<ArrowColumn> {
    let has = |row: usize| missing.binary_search(&row).is_err();
    let decimal = |(row, number): (usize, Scalar)| match number {
        Scalar::Int(count, _) if has(row) => Some(Decimal::of(count.into(), 0)),
        Scalar::UInt(count, _) if has(row) => Some(Decimal::of(count.into(), 0)),
        Scalar::Decimal(decimal) if has(row) => Some(decimal),
        _ => None,
    };
    let all: Vec<Option<Decimal>> = numbers.iter().enumerate().map(decimal).collect();
    let narrow = |decimal: &Option<Decimal>| match decimal.map(|decimal| decimal.to_i128()) {
        None => Some(None),
        Some(count) => count.filter(|count| count.unsigned_abs() < 10u128.pow(38)).map(Some),
    };
    if let Some(narrow) = all.iter().map(narrow).collect::<Option<Vec<Option<i128>>>>() {
        let array = Decimal128Array::from(narrow).with_precision_and_scale(38, scale);
        return Ok(ArrowColumn(Arc::new(array.map_err(|e| refused(&e))?)));
    }
    let wide = |decimal: &Option<Decimal>| {
        decimal.map(|decimal| {
            let bytes = decimal.to_le_bytes();
            let mut all = [if bytes[23] >= 0x80 { 0xff } else { 0 }; 32];
            all[..24].copy_from_slice(&bytes);
            <Decimal256Type as ArrowPrimitiveType>::Native::from_le_bytes(all)
        })
    };
    let array = all.iter().map(wide).collect::<Decimal256Array>();
    let array = array.with_precision_and_scale(76, scale).map_err(|e| refused(&e))?;
    Ok(ArrowColumn(Arc::new(array)))
}

#[pymethods]
impl ArrowColumn {
    /// The column by Arrow's C data interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // A wish that need not be met.
        let _ = requested_schema;
        let (array, schema) = to_ffi(&self.0.to_data())
            .map_err(|error| PyValueError::new_err(format!("Arrow: {error}")))?;
        let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
        let array = PyCapsule::new_with_value(py, array, ARRAY)?;
        PyTuple::new(py, [schema, array])
    }
}
