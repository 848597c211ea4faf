//! Python's buffer protocol, both ways: arrays in, and answers into arrays that are there.

use crate::complex;
use crate::dense::{Dense, Owner, c_strides};
use crate::numpy::long_name;
use crate::walk::Walk;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int};
use warpfold::{DType, Numbers};

/// The most axes that a buffer may have, by the protocol.
const MOST_AXES: usize = 64;

/// A buffer that an object lends. It is given back when this is dropped.
pub(crate) struct Exported(
    // Its fields may point into itself.
    Box<ffi::Py_buffer>,
);

// SAFETY: a buffer may be given back by any thread that is attached to the interpreter, and
// `drop` attaches its thread.
unsafe impl Send for Exported {}

impl Drop for Exported {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: it was got once, is given back once, and the thread is attached.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.0) }
        });
    }
}

impl Exported {
    /// The buffer of an object.
    ///
    /// # Errors
    /// The object's own.
    fn of(x: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Exported> {
        let mut buffer = Box::new(ffi::Py_buffer::new());
        // SAFETY: the object is alive, and the memory for the buffer stays where it is.
        match unsafe { ffi::PyObject_GetBuffer(x.as_ptr(), &raw mut *buffer, flags) } {
            0 => Ok(Exported(buffer)),
            _ => Err(PyErr::fetch(x.py())),
        }
    }

    /// What the buffer says of its elements.
    ///
    /// # Errors
    /// Elements that are not numbers, and what no buffer can be.
    fn layout(&self) -> PyResult<Layout> {
        let buffer = &*self.0;
        let format = if buffer.format.is_null() {
            "B"
        } else {
            // SAFETY: the format of a buffer is a string of C that lives as long as it.
            unsafe { CStr::from_ptr(buffer.format) }.to_str().unwrap_or("?!")
        };
        let size = usize::try_from(buffer.itemsize).unwrap_or(0);
        let parts = complex_parts(format, size);
        let dtype = parts.map_or_else(|| element_type(format, size), Ok)?;
        let lies =
            |what: &str| PyValueError::new_err(format!("the exporter of a buffer lies: {what}"));
        let ndim = usize::try_from(buffer.ndim).ok().filter(|&n| n <= MOST_AXES);
        let ndim = ndim.ok_or_else(|| lies("it cannot have so many axes"))?;
        if ndim > 0 && buffer.shape.is_null() {
            return Err(lies("axes without lengths"));
        }
        let axes = |pointer: *const isize| {
            if ndim == 0 {
                return &[][..];
            }
            // SAFETY: it is not null, and by the protocol it has an entry for each axis.
            unsafe { std::slice::from_raw_parts(pointer, ndim) }
        };
        let shape: Option<Vec<usize>> =
            axes(buffer.shape).iter().map(|&n| usize::try_from(n).ok()).collect();
        let mut shape = shape.ok_or_else(|| lies("an axis of negative length"))?;
        let mut strides = if buffer.strides.is_null() {
            c_strides(size, &shape)
        } else {
            axes(buffer.strides).to_vec()
        };
        let bytes = shape.iter().try_fold(size, |n, &len| n.checked_mul(len));
        if bytes != usize::try_from(buffer.len).ok() {
            return Err(lies(&format!(
                "shape {shape:?} of {size} bytes each is not {} bytes",
                buffer.len
            )));
        }
        if parts.is_some() {
            shape.push(2);
            strides.push(dtype.size().cast_signed());
        }
        Ok(Layout { dtype, shape, strides, is_complex: parts.is_some() })
    }
}

/// The elements of a buffer. The parts of complex ones have an axis of their own, the last.
struct Layout {
    dtype: DType,
    shape: Vec<usize>,
    /// In bytes.
    strides: Vec<isize>,
    is_complex: bool,
}

/// The array that an object lends by the buffer protocol, and whether its last axis has the parts of
/// complex numbers.
///
/// # Errors
/// The object's own; elements that are not numbers in the machine's byte order.
pub(crate) fn import(x: &Bound<'_, PyAny>) -> PyResult<(Dense, bool)> {
    let exported = Exported::of(x, ffi::PyBUF_RECORDS_RO)?;
    let Layout { dtype, shape, strides, is_complex } = exported.layout()?;
    let origin = exported.0.buf.cast();
    // SAFETY: by the protocol the memory may be read until the buffer is given back.
    let dense = unsafe { Dense::new(dtype, origin, shape, strides, Owner::Buffer(exported)) };
    dense.map(|dense| (dense, is_complex))
}

/// The order of the bytes that a format begins with, and the code after it.
fn order_and_code(format: &str) -> (u8, &[u8]) {
    match format.as_bytes() {
        [order @ (b'@' | b'=' | b'<' | b'>' | b'!'), rest @ ..] => (*order, rest),
        rest => (b'@', rest),
    }
}

fn is_foreign(order: u8) -> bool {
    match order {
        b'<' => cfg!(target_endian = "big"),
        b'>' | b'!' => cfg!(target_endian = "little"),
        _ => false,
    }
}

/// The type of the parts of complex elements; `None` for other elements.
fn complex_parts(format: &str, size: usize) -> Option<DType> {
    let (order, code) = order_and_code(format);
    match (code, size) {
        _ if is_foreign(order) => None,
        (b"Zf", 8) => Some(DType::F32),
        (b"Zd", 16) => Some(DType::F64),
        _ => None,
    }
}

/// The type of the elements of a buffer.
///
/// # Errors
/// `TypeError` for what is not a number of this machine.
fn element_type(format: &str, size: usize) -> PyResult<DType> {
    let (order, code) = order_and_code(format);
    let foreign = is_foreign(order);
    let dtype = match (code, size) {
        (b"?", 1) => DType::Bool,
        (b"b" | b"h" | b"i" | b"l" | b"q" | b"n", 1) => DType::I8,
        (b"b" | b"h" | b"i" | b"l" | b"q" | b"n", 2) => DType::I16,
        (b"b" | b"h" | b"i" | b"l" | b"q" | b"n", 4) => DType::I32,
        (b"b" | b"h" | b"i" | b"l" | b"q" | b"n", 8) => DType::I64,
        (b"B" | b"H" | b"I" | b"L" | b"Q" | b"N", 1) => DType::U8,
        (b"B" | b"H" | b"I" | b"L" | b"Q" | b"N", 2) => DType::U16,
        (b"B" | b"H" | b"I" | b"L" | b"Q" | b"N", 4) => DType::U32,
        (b"B" | b"H" | b"I" | b"L" | b"Q" | b"N", 8) => DType::U64,
        (b"e", 2) => DType::F16,
        (b"f", 4) => DType::F32,
        (b"d", 8) => DType::F64,
        _ => {
            let (what, hint) = match code {
                [b'Z', ..] => (
                    "complex numbers of another size or byte order",
                    "cast them to complex128: x.astype(\"complex128\")",
                ),
                b"g" => ("long doubles", "cast to float64: x.astype(\"float64\")"),
                b"O" => ("Python objects", "cast them to numbers: x.astype(\"float64\")"),
                [.., b's' | b'w' | b'p'] | b"c" => {
                    ("text", "convert it to numbers: x.astype(\"float64\")")
                }
                [b'T', ..] => ("records", "reduce one field of them: x[\"name\"]"),
                _ => ("what is not a number", "cast to a type of numbers: x.astype(\"float64\")"),
            };
            return Err(PyTypeError::new_err(format!(
                "the array holds {what} (format {format:?}), not real numbers\nhint: {hint}"
            )));
        }
    };
    if foreign && size > 1 {
        return Err(PyTypeError::new_err(format!(
            "the array holds numbers in the other byte order (format {format:?})\nhint: copy it to this machine's: x.astype(x.dtype.newbyteorder(\"=\"))"
        )));
    }
    Ok(dtype)
}

/// The code of a type in the buffer protocol; bfloat16 has none.
pub(crate) fn format_of(dtype: DType) -> Option<&'static CStr> {
    Some(match dtype {
        DType::Bool => c"?",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        DType::I64 => c"q",
        DType::U8 => c"B",
        DType::U16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"Q",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
        _ => return None,
    })
}

/// A buffer that answers are to be written to.
///
/// # Errors
/// An object that has no buffer or lends it for reading alone.
fn writable(x: &Bound<'_, PyAny>) -> PyResult<Exported> {
    // SAFETY: `x` is a live object.
    if unsafe { ffi::PyObject_CheckBuffer(x.as_ptr()) } != 1 {
        let name = x.get_type().fully_qualified_name()?;
        return Err(PyTypeError::new_err(format!(
            "out must be an array with a buffer that can be written to, not {name}\nhint: give one of NumPy, as numpy.empty(shape) makes it"
        )));
    }
    Exported::of(x, ffi::PyBUF_RECORDS)
}

/// The type of an array that answers are to be written to: of complex numbers that of their parts.
///
/// # Errors
/// An object that has no buffer or lends it for reading alone; elements that are not
/// numbers.
pub(crate) fn writable_type(x: &Bound<'_, PyAny>) -> PyResult<DType> {
    writable(x)?.layout().map(|layout| layout.dtype)
}

/// Writes numbers, in C order, into an array of the same shape and type. The parts of complex
/// numbers are in the last axis.
///
/// # Errors
/// An object that has no buffer or lends it for reading alone; another shape or type.
pub(crate) fn write(
    x: &Bound<'_, PyAny>,
    shape: &[usize],
    numbers: &Numbers,
    is_complex: bool,
) -> PyResult<()> {
    let exported = writable(x)?;
    let layout = exported.layout()?;
    if layout.dtype != numbers.dtype() || layout.is_complex != is_complex {
        let name = |dtype, is_complex| {
            if is_complex { complex::name(dtype) } else { long_name(dtype) }
        };
        return Err(PyTypeError::new_err(format!(
            "out has elements of type {}, but the answer is of type {}\nhint: give an out of that type",
            name(layout.dtype, layout.is_complex),
            name(numbers.dtype(), is_complex),
        )));
    }
    let own = |shape: &[usize]| shape[..shape.len() - usize::from(is_complex)].to_vec();
    if layout.shape != shape || shape.iter().product::<usize>() != numbers.len() {
        return Err(PyValueError::new_err(format!(
            "out has shape {:?}, but the answer has shape {:?}",
            own(&layout.shape),
            own(shape)
        )));
    }
    let (size, strides) = (layout.dtype.size(), layout.strides);
    let origin = exported.0.buf.cast::<u8>();
    if strides == c_strides(size, shape) && !numbers.is_empty() {
        let bytes = numbers.bytes();
        // SAFETY: by the protocol the buffer is writable and holds as many bytes one after
        // the other, and our numbers lie elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), origin, bytes.len()) };
        return Ok(());
    }
    for (item, (step, _)) in numbers.bytes().chunks_exact(size).zip(Walk::of(shape, &strides)) {
        // SAFETY: `step` is that of an element, which may be written by the protocol.
        unsafe { std::ptr::copy_nonoverlapping(item.as_ptr(), origin.wrapping_offset(step), size) };
    }
    Ok(())
}
