//! Our own arrays: what reductions over axes answer where the caller has no library of
//! arrays, and what other libraries take answers from.

use crate::answers::list;
use crate::buffer::format_of;
use crate::complex;
use crate::dense::{Dense, Owner, c_strides};
use crate::dlpack::{CPU, Exportable, capsule};
use crate::numpy::long_name;
use crate::walk::Walk;
use pyo3::exceptions::{PyBufferError, PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyIterator, PyList, PySlice, PyTuple};
use std::ffi::c_int;
use std::sync::Arc;
use warpfold::{DType, Numbers};

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
    /// Whether the elements are complex: of each the parts follow each other.
    is_complex: bool,
}

impl Array {
    pub(crate) fn new(numbers: Numbers, shape: Vec<usize>, is_complex: bool) -> Array {
        let strides = c_strides(numbers.dtype().size() << u32::from(is_complex), &shape);
        let signed_shape = shape.iter().map(|&n| n.cast_signed()).collect();
        Array { numbers: Arc::new(numbers), shape, strides, signed_shape, is_complex }
    }

    /// The bytes of an element.
    fn size(&self) -> usize {
        self.numbers.dtype().size() << u32::from(self.is_complex)
    }

    /// Some of the elements, those that a step in bytes along each axis leads to from the one at
    /// `first`: an array, or without axes a number of Python.
    fn part<'py>(
        &self,
        py: Python<'py>,
        first: isize,
        shape: Vec<usize>,
        strides: &[isize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let (size, from) = (self.size(), self.numbers.bytes());
        let count = shape.iter().product::<usize>() << u32::from(self.is_complex);
        let mut numbers = Numbers::zeros(self.numbers.dtype(), count);
        let items = numbers.bytes_mut().chunks_exact_mut(size);
        for (to, (step, _)) in items.zip(Walk::of(&shape, strides)) {
            let at = first.wrapping_add(step).cast_unsigned();
            to.copy_from_slice(&from[at..at + size]);
        }
        if shape.is_empty() {
            return list(py, &numbers, &shape, self.is_complex);
        }
        Ok(Bound::new(py, Array::new(numbers, shape, self.is_complex))?.into_any())
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
            is_complex: self.is_complex,
            device: (CPU, 0),
            owner: Box::new(numbers),
        }
    }

    /// The array as one to reduce, and whether its last axis has the parts of complex numbers.
    ///
    /// # Errors
    /// None that can happen.
    pub(crate) fn dense(this: &Bound<'_, Array>) -> PyResult<(Dense, bool)> {
        let array = this.get();
        let origin = array.numbers.bytes().as_ptr();
        let owner = Owner::Object(this.clone().into_any().unbind());
        let (mut shape, mut strides) = (array.shape.clone(), array.strides.clone());
        let dtype = array.numbers.dtype();
        if array.is_complex {
            shape.push(2);
            strides.push(dtype.size().cast_signed());
        }
        // SAFETY: the numbers are never changed, and stay as long as the object.
        unsafe { Dense::new(dtype, origin, shape, strides, owner) }
            .map(|dense| (dense, array.is_complex))
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
        let dtype = self.numbers.dtype();
        if self.is_complex { complex::name(dtype) } else { long_name(dtype) }
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The numbers as nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        list(py, &self.numbers, &self.shape, self.is_complex)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.shape
            .first()
            .copied()
            .ok_or_else(|| PyTypeError::new_err("an array without axes has no length"))
    }

    /// The element or the elements at integers, slices and ``...``, as NumPy has them: a number
    /// of Python, or a copy.
    ///
    /// Raises:
    ///     IndexError: an index that is not there, or more of them than axes.
    ///     TypeError: anything else, such as an array of indices.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keys: Vec<Bound<'py, PyAny>> = match key.cast::<PyTuple>() {
            Ok(keys) => keys.iter().collect(),
            Err(_) => vec![key.clone()],
        };
        let dots = |key: &Bound<'py, PyAny>| key.is_instance_of::<PyEllipsis>();
        let named = keys.iter().filter(|key| !dots(key)).count();
        let ndim = self.shape.len();
        if named > ndim || keys.len() > named + 1 {
            return Err(PyIndexError::new_err(format!(
                "{} indices for an array of shape {:?}",
                keys.len(),
                self.shape
            )));
        }
        let (mut axis, mut first) = (0, 0isize);
        let (mut shape, mut strides) = (Vec::new(), Vec::new());
        for key in &keys {
            if dots(key) {
                shape.extend(&self.shape[axis..axis + ndim - named]);
                strides.extend(&self.strides[axis..axis + ndim - named]);
                axis += ndim - named;
                continue;
            }
            let (len, stride) = (self.signed_shape[axis], self.strides[axis]);
            if let Ok(slice) = key.cast::<PySlice>() {
                let indices = slice.indices(len)?;
                first += indices.start * stride;
                shape.push(indices.slicelength);
                strides.push(indices.step.wrapping_mul(stride));
            } else {
                let index = key.call_method0(intern!(py, "__index__")).map_err(|_| {
                    PyTypeError::new_err(
                        "indices are integers, slices and ...\nhint: numpy.asarray(x) takes what else NumPy has",
                    )
                })?;
                let at = index.extract::<isize>().ok();
                let at = at.map(|at| if at < 0 { at + len } else { at });
                let at = at.filter(|at| (0..len).contains(at)).ok_or_else(|| {
                    PyIndexError::new_err(format!(
                        "index {index} is out of bounds for axis {axis} of length {len}"
                    ))
                })?;
                first += at * stride;
            }
            axis += 1;
        }
        shape.extend(&self.shape[axis..]);
        strides.extend(&self.strides[axis..]);
        self.part(py, first, shape, &strides)
    }

    /// The elements along the first axis, one after the other.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let items = PyList::empty(py);
        for i in 0..self.__len__()?.cast_signed() {
            let inner = &self.strides[1..];
            items.append(self.part(py, i * self.strides[0], self.shape[1..].to_vec(), inner)?)?;
        }
        items.try_iter()
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
        let format = match (array.is_complex, dtype) {
            (true, DType::F32) => Some(c"Zf"),
            (true, _) => Some(c"Zd"),
            (false, dtype) => format_of(dtype),
        };
        let Some(format) = format else {
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
            (*view).itemsize = array.size().cast_signed();
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
