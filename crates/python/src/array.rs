//! Our own arrays: what reductions over axes answer where the caller has no library of
//! arrays, and what other libraries take answers from.

use crate::answers::list;
use crate::buffer::format_of;
use crate::dense::{Dense, Owner, c_strides};
use crate::dlpack::{CPU, Exportable, capsule};
use crate::numpy::long_name;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::c_int;
use std::sync::Arc;
use warpfold::Numbers;

/// Numbers of one type in some shape, in C order.
///
/// Other libraries take it without a copy: ``numpy.asarray(a)``, ``torch.from_dlpack(a)``,
/// ``memoryview(a)``.
#[pyclass(frozen, module = "warpfold", name = "Array")]
pub(crate) struct Array {
    numbers: Arc<Numbers>,
    shape: Vec<usize>,
    strides: Vec<isize>,
    /// As the buffer protocol wants them.
    signed_shape: Vec<isize>,
}

impl Array {
    pub(crate) fn new(numbers: Numbers, shape: Vec<usize>) -> Array {
        let strides = c_strides(numbers.dtype().size(), &shape);
        let signed_shape = shape.iter().map(|&n| n.cast_signed()).collect();
        Array { numbers: Arc::new(numbers), shape, strides, signed_shape }
    }

    /// The array as other libraries take it, or a copy.
    pub(crate) fn exportable(&self, copied: bool) -> Exportable {
        let numbers = match copied {
            true => Arc::new((*self.numbers).clone()),
            false => Arc::clone(&self.numbers),
        };
        Exportable {
            dtype: numbers.dtype(),
            address: numbers.bytes().as_ptr().expose_provenance(),
            shape: self.shape.clone(),
            device: (CPU, 0),
            owner: Box::new(numbers),
        }
    }

    /// The array as one to reduce.
    ///
    /// # Errors
    /// None that can happen.
    pub(crate) fn dense(this: &Bound<'_, Array>) -> PyResult<Dense> {
        let array = this.get();
        let origin = array.numbers.bytes().as_ptr();
        let owner = Owner::Object(this.clone().into_any().unbind());
        let (shape, strides) = (array.shape.clone(), array.strides.clone());
        // SAFETY: the numbers are never changed, and stay as long as the object.
        unsafe { Dense::new(array.numbers.dtype(), origin, shape, strides, owner) }
    }
}

#[pymethods]
impl Array {
    /// The lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The name of the type of the elements: ``"float64"``.
    #[getter]
    fn dtype(&self) -> &'static str {
        long_name(self.numbers.dtype())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The numbers as nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        list(py, &self.numbers, &self.shape)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.shape.first().copied().ok_or_else(|| {
            pyo3::exceptions::PyTypeError::new_err("an array without axes has no length")
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("warpfold.Array({}, dtype={:?})", self.tolist(py)?.repr()?, self.dtype()))
    }

    /// Where the array is, as DLPack says it: the CPU.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (CPU, 0)
    }

    /// The array as a capsule of DLPack.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() {
            return Err(PyBufferError::new_err(
                "an array on the CPU has no stream: leave stream out",
            ));
        }
        if dl_device.is_some_and(|(kind, _)| kind != CPU) {
            return Err(PyBufferError::new_err(
                "the array is on the CPU, and is handed over there alone",
            ));
        }
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        capsule(py, self.exportable(copy == Some(true)), versioned)
    }

    /// # Safety
    /// Python calls it, with memory for the view.
    unsafe fn __getbuffer__(
        this: Bound<'_, Array>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let array = this.get();
        let dtype = array.numbers.dtype();
        let Some(format) = format_of(dtype) else {
            return Err(PyBufferError::new_err(format!(
                "buffers have no {}\nhint: take it by DLPack",
                long_name(dtype)
            )));
        };
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("the array cannot be written to: copy it"));
        }
        let bytes = array.numbers.bytes();
        // SAFETY: Python gives memory for the view. What it points to is never changed and
        // stays as long as the object, to which the view holds a reference.
        unsafe {
            (*view).buf = bytes.as_ptr().cast_mut().cast();
            (*view).len = bytes.len().cast_signed();
            (*view).readonly = 1;
            (*view).itemsize = dtype.size().cast_signed();
            (*view).format = if flags & ffi::PyBUF_FORMAT == 0 {
                std::ptr::null_mut()
            } else {
                format.as_ptr().cast_mut()
            };
            (*view).ndim = array.shape.len() as c_int;
            (*view).shape = array.signed_shape.as_ptr().cast_mut();
            (*view).strides = array.strides.as_ptr().cast_mut();
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = this.into_any().into_ptr();
        }
        Ok(())
    }
}
