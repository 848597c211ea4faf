//! NumPy's arrays by the fields of their structure: a tenth of the time that a buffer takes.
//!
//! The fields are those of `PyArrayObject_fields` and the first ones of `PyArray_Descr`. NumPy's
//! macros read them in every extension that is compiled with it, so that they are a part of its
//! binary interface, the same in 1.x and 2.x. Whether they are where they should be is checked
//! once, on arrays about which other ways tell the same; types are learned there, too. Where
//! anything differs, arrays come by their buffers.

use crate::buffer;
use crate::dense::{Dense, Owner};
use crate::numpy;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::ffi::{c_int, c_void};
use warpfold::DType;
use warpfold::internal::{PerAxis, Traversal};

#[repr(C)]
struct Fields {
    _head: ffi::PyObject,
    data: *mut u8,
    ndim: c_int,
    shape: *const isize,
    strides: *const isize,
    _base: *const c_void,
    dtype: *const Descr,
    flags: c_int,
}

#[repr(C)]
struct Descr {
    _head: ffi::PyObject,
    _class: *const c_void,
    _kind: u8,
    _code: u8,
    order: u8,
    _flags: u8,
    number: c_int,
}

/// The flags of arrays whose elements lie one after the other, in C order and in Fortran's.
const C_CONTIGUOUS: c_int = 1;
const F_CONTIGUOUS: c_int = 2;

/// The types of elements by NumPy's numbers for them. Those beyond have no entry.
type Types = [Option<DType>; 32];

/// The types, if the fields are where they should be.
static TYPES: PyOnceLock<Option<Types>> = PyOnceLock::new();

/// What the fields of an array say.
struct Seen<'a> {
    dtype: DType,
    data: *mut u8,
    shape: &'a [isize],
    strides: &'a [isize],
    is_contiguous: bool,
    is_turned: bool,
}

/// An array of NumPy itself, of numbers in the machine's byte order; `None` for what has to come
/// by its buffer.
#[inline]
fn seen<'a>(x: &'a Bound<'_, PyAny>) -> Option<Seen<'a>> {
    if !numpy::is_exact_array(x) {
        return None;
    }
    let types = TYPES.get_or_init(x.py(), || learned(x.py())).as_ref()?;
    // SAFETY: the object is an array of NumPy itself, whose fields were checked to be here.
    let fields = unsafe { &*x.as_ptr().cast::<Fields>() };
    // SAFETY: an array has a type of elements as long as it lives, whose fields were checked.
    let descr = unsafe { &*fields.dtype };
    if !is_native(descr.order) {
        return None;
    }
    let dtype = (*types.get(usize::try_from(descr.number).ok()?)?)?;
    let (shape, strides) = axes(fields)?;
    let is_contiguous = fields.flags & C_CONTIGUOUS != 0;
    let is_turned = fields.flags & F_CONTIGUOUS != 0;
    Some(Seen { dtype, data: fields.data, shape, strides, is_contiguous, is_turned })
}

/// Lengths and steps.
#[inline]
fn axes(fields: &Fields) -> Option<(&[isize], &[isize])> {
    let ndim = usize::try_from(fields.ndim).ok()?;
    if ndim == 0 {
        return Some((&[], &[]));
    }
    // SAFETY: an array of NumPy has an entry for each of its axes at both pointers.
    let of = |pointer: *const isize| unsafe { std::slice::from_raw_parts(pointer, ndim) };
    Some((of(fields.shape), of(fields.strides)))
}

/// Whether bytes lie as this machine has them, or are alone.
fn is_native(order: u8) -> bool {
    matches!(order, b'=' | b'|')
}

/// An array of NumPy; `None` for what its buffer or its dtype has to say more about.
///
/// # Errors
/// As for [`Dense::new`].
pub(crate) fn import(x: &Bound<'_, PyAny>) -> PyResult<Option<Dense>> {
    let Some(seen) = seen(x) else { return Ok(None) };
    let shape = seen.shape.iter().map(|&n| n.cast_unsigned()).collect();
    let (dtype, strides) = (seen.dtype, seen.strides.to_vec());
    let owner = Owner::Object(x.clone().unbind());
    // SAFETY: an array of NumPy has memory for its elements for as long as it lives, and is not
    // resized while others have references to it.
    unsafe { Dense::new(dtype, seen.data.cast_const(), shape, strides, owner) }.map(Some)
}

/// An array whose elements lie one after the other, aligned.
pub(crate) struct Contiguous<'a> {
    pub(crate) dtype: DType,
    pub(crate) shape: &'a [isize],
    pub(crate) bytes: &'a [u8],
    /// Whether they lie in C order, and not in that of Fortran alone.
    pub(crate) in_order: bool,
}

/// So few elements are copied sooner, where they do not lie so, than the general way begins.
const COPIED: usize = 1024;

/// Such an array of NumPy, or a copy of a few elements; `None` for any other object, and for types
/// that are not wanted.
///
/// Who writes to it meanwhile, in another thread, gets some answer: that is so with every
/// library of arrays.
#[inline]
pub(crate) fn contiguous<'a>(
    x: &'a Bound<'_, PyAny>,
    copy: &'a mut Vec<u64>,
    is_wanted: impl Fn(DType) -> bool,
) -> Option<Contiguous<'a>> {
    let Seen { dtype, data, shape, strides, is_contiguous, is_turned } = seen(x)?;
    if !is_wanted(dtype) {
        return None;
    }
    let len = shape.iter().product::<isize>().cast_unsigned();
    if !(is_contiguous || is_turned) || !data.addr().is_multiple_of(dtype.size()) {
        if len > COPIED {
            return None;
        }
        let axes = shape.iter().zip(strides).map(|(&n, &stride)| (n.cast_unsigned(), [stride; 2]));
        let walk = Traversal::in_index_order(&axes.collect::<PerAxis<_>>());
        copy.resize((len * dtype.size()).div_ceil(8), 0);
        let bytes = &mut bytemuck::cast_slice_mut(copy)[..len * dtype.size()];
        // SAFETY: as in `import`.
        unsafe { walk.copy(0, data.cast_const(), dtype.size(), 0, bytes) };
        return Some(Contiguous { dtype, shape, bytes, in_order: true });
    }
    let bytes = match len {
        0 => &[][..],
        // SAFETY: as in `import`; the elements are neighbours, and their number was counted by
        // NumPy when the array was made.
        len => unsafe { std::slice::from_raw_parts(data.cast_const(), len * dtype.size()) },
    };
    Some(Contiguous { dtype, shape, bytes, in_order: is_contiguous })
}

/// Writes the elements of a new array, to which nobody else has a reference, and returns whether it is
/// one of NumPy itself that has so many bytes.
pub(crate) fn fill(x: &Bound<'_, PyAny>, bytes: &[u8]) -> bool {
    let Some(seen) = seen(x).filter(|seen| seen.is_contiguous) else { return false };
    if seen.shape.iter().product::<isize>().cast_unsigned() * seen.dtype.size() != bytes.len() {
        return false;
    }
    // SAFETY: the array's elements are neighbours, of so many bytes in all, and the caller's alone.
    unsafe { seen.data.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    true
}

/// The types by their numbers, if the fields say of arrays what NumPy's other ways say.
fn learned(py: Python<'_>) -> Option<Types> {
    let numpy = numpy::loaded(py)?;
    let size = numpy.getattr("ndarray").ok()?.getattr("__basicsize__").ok()?.extract::<usize>();
    if size.ok()? < size_of::<Fields>() {
        return None;
    }
    let mut types = [None; 32];
    let names = DType::ALL.map(numpy::long_name);
    for name in names.into_iter().chain(["intc", "uintc", "longlong", "ulonglong"]) {
        let name = if name == "bool" { "bool_" } else { name };
        let Ok(class) = numpy.getattr(name) else { continue };
        let array = numpy.call_method1(intern!(py, "empty"), ((2, 3), class)).ok()?;
        let Ok((lent, _)) = buffer::import(&array) else { continue };
        let number = number(&array, &lent)?;
        *types.get_mut(number)? = Some(lent.dtype);
        // And where neither steps nor order are the usual.
        let turned = array.getattr("T").ok()?;
        let backwards = turned.get_item(py_slice(py)?).ok()?;
        for array in [turned, backwards] {
            self::number(&array, &buffer::import(&array).ok()?.0)?;
        }
    }
    Some(types)
}

/// `[::-1]`
fn py_slice(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    py.get_type::<pyo3::types::PySlice>().call1((py.None(), py.None(), -1)).ok()
}

/// The number of the type of an array of two axes; `None` if a field says something else than
/// its buffer, its dtype and its flags.
fn number(array: &Bound<'_, PyAny>, lent: &Dense) -> Option<usize> {
    let dtype = array.getattr("dtype").ok()?;
    // SAFETY: the object is alive and has at least as many bytes, by its type's size.
    let fields = unsafe { &*array.as_ptr().cast::<Fields>() };
    // No pointer is followed before the fields around it were seen to be right.
    if fields.data.cast_const() != lent.origin()
        || fields.ndim != 2
        || fields.dtype.cast() != dtype.as_ptr().cast_const()
    {
        return None;
    }
    let (shape, strides) = axes(fields)?;
    let shape: Vec<usize> = shape.iter().map(|&n| n.cast_unsigned()).collect();
    let flags = array.getattr("flags").ok()?;
    let is_contiguous: bool = flags.getattr("c_contiguous").ok()?.extract().ok()?;
    let is_turned: bool = flags.getattr("f_contiguous").ok()?.extract().ok()?;
    // SAFETY: the pointer is that of the dtype, which is alive and longer than what is read.
    let descr = unsafe { &*fields.dtype };
    let number: c_int = dtype.getattr("num").ok()?.extract().ok()?;
    let order: char = dtype.getattr("byteorder").ok()?.extract().ok()?;
    let same = shape == lent.shape
        && strides == lent.strides
        && (fields.flags & C_CONTIGUOUS != 0) == is_contiguous
        && (fields.flags & F_CONTIGUOUS != 0) == is_turned
        && descr.number == number
        && char::from(descr.order) == order
        && is_native(descr.order);
    if same { usize::try_from(number).ok() } else { None }
}
