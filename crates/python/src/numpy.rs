//! NumPy, where the program has loaded it: it is never imported on our own account.

use crate::memory::Memory;
use crate::ndarray;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use warpfold::{DType, Numbers};

static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

/// What is used of it.
pub(crate) struct Numpy {
    module: Py<PyModule>,
    ndarray: Py<PyType>,
    generic: Py<PyType>,
    dtype: Py<PyType>,
    /// What makes an array of which nothing is known but shape and type.
    empty: Py<PyAny>,
    /// The types of scalars, and those of arrays: of `DType::code() - 1`; bfloat16 comes from elsewhere.
    scalars: Vec<Option<(Py<PyAny>, Py<PyAny>)>>,
}

/// A module, if the program has imported it.
pub(crate) fn module<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
    let modules = MODULES.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind())
    });
    modules.ok()?.bind(py).get_item(name).ok().flatten().filter(|module| !module.is_none())
}

/// NumPy and its types, if the program has imported it.
fn known(py: Python<'_>) -> Option<&Numpy> {
    if let Some(known) = NUMPY.get(py) {
        return Some(known);
    }
    let module = module(py, "numpy")?.cast_into::<PyModule>().ok()?;
    // A module that is being imported lacks some of this: it is asked again later.
    let class = |name| module.getattr(name).ok()?.cast_into::<PyType>().ok().map(Bound::unbind);
    let dtype = class("dtype")?;
    let numpy = Numpy {
        ndarray: class("ndarray")?,
        generic: class("generic")?,
        empty: module.getattr("empty").ok()?.unbind(),
        scalars: (1..=DType::ALL.len() as u8)
            .map(|code| {
                let name = long_name(DType::from_code(code)?);
                let name = if name == "bool" { "bool_" } else { name };
                let scalar = module.getattr(name).ok()?;
                let array = dtype.bind(py).call1((&scalar,)).ok()?;
                Some((scalar.unbind(), array.unbind()))
            })
            .collect(),
        dtype,
        module: module.unbind(),
    };
    NUMPY.get_or_init(py, || numpy);
    NUMPY.get(py)
}

impl Numpy {
    /// The types of scalars and of arrays.
    fn types(&self, dtype: DType) -> Option<&(Py<PyAny>, Py<PyAny>)> {
        self.scalars.get(usize::from(dtype.code() - 1))?.as_ref()
    }
}

/// NumPy, if the program has imported it.
pub(crate) fn loaded(py: Python<'_>) -> Option<&Bound<'_, PyModule>> {
    known(py).map(|numpy| numpy.module.bind(py))
}

/// Whether an object is an array of NumPy itself, not of a class derived from it.
#[inline]
pub(crate) fn is_exact_array(x: &Bound<'_, PyAny>) -> bool {
    known(x.py()).is_some_and(|numpy| {
        // SAFETY: `x` is a live object, whose type is read.
        let class = unsafe { ffi::Py_TYPE(x.as_ptr()) };
        std::ptr::eq(class.cast(), numpy.ndarray.as_ptr())
    })
}

/// Whether an object is an array of NumPy or of a class derived from it.
pub(crate) fn is_array(x: &Bound<'_, PyAny>) -> bool {
    known(x.py()).is_some_and(|numpy| x.is_instance(numpy.ndarray.bind(x.py())).unwrap_or(false))
}

/// Whether an object is a scalar of NumPy.
pub(crate) fn is_scalar(x: &Bound<'_, PyAny>) -> bool {
    known(x.py()).is_some_and(|numpy| x.is_instance(numpy.generic.bind(x.py())).unwrap_or(false))
}

/// Whether an object is a type of elements of NumPy.
pub(crate) fn is_dtype(x: &Bound<'_, PyAny>) -> bool {
    known(x.py()).is_some_and(|numpy| x.is_instance(numpy.dtype.bind(x.py())).unwrap_or(false))
}

/// The name that NumPy has for a type: `float32`.
pub(crate) fn long_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        _ => dtype.other_names()[0],
    }
}

/// The scalar type, or type of arrays, for elements of type `dtype`.
///
/// # Errors
/// NumPy is not loaded; bfloat16 without the package `ml_dtypes`.
pub(crate) fn scalar_type(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    if let Some((class, _)) = known(py).and_then(|numpy| numpy.types(dtype)) {
        return Ok(class.bind(py).clone());
    }
    if dtype == DType::BF16 {
        return py.import("ml_dtypes")?.getattr("bfloat16");
    }
    Err(PyTypeError::new_err(format!("NumPy has no type for {dtype} elements")))
}

/// Counts and positions below are made once: scalars of NumPy never change.
const SMALL_COUNTS: usize = 256;

/// A count or a position as NumPy has them: a scalar of 64 bits.
///
/// # Errors
/// Those of NumPy.
pub(crate) fn count(py: Python<'_>, n: usize) -> PyResult<Bound<'_, PyAny>> {
    static SMALL: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    let class = scalar_type(py, DType::I64)?;
    if n >= SMALL_COUNTS {
        return class.call1((n,));
    }
    let small = SMALL.get_or_try_init(py, || {
        (0..SMALL_COUNTS).map(|n| class.call1((n,)).map(Bound::unbind)).collect::<PyResult<_>>()
    })?;
    Ok(small[n].bind(py).clone())
}

/// Bytes that are copied sooner than an object is made that keeps them.
const COPIED: usize = 4096;

/// Numbers as an array of NumPy of this shape: many of them without a copy.
///
/// # Errors
/// Those of NumPy.
pub(crate) fn array<'py>(
    py: Python<'py>,
    shape: &[usize],
    numbers: Numbers,
) -> PyResult<Bound<'py, PyAny>> {
    let numpy = known(py).ok_or_else(|| PyTypeError::new_err("NumPy is not loaded"))?;
    let (dtype, shape) = (numbers.dtype(), PyTuple::new(py, shape)?);
    let dtype = match numpy.types(dtype) {
        Some((_, array)) => array.bind(py).clone(),
        None => scalar_type(py, dtype)?,
    };
    if numbers.bytes().len() <= COPIED {
        let array = numpy.empty.bind(py).call1((&shape, &dtype))?;
        if ndarray::fill(&array, numbers.bytes()) {
            return Ok(array);
        }
    }
    numpy.ndarray.bind(py).call1((shape, dtype, Memory::of(py, numbers)?))
}
