//! The memory of answers, which an array of the caller's library keeps and may write to.

use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use warpfold::Numbers;

/// Bytes that an array is made of.
#[pyclass(frozen, module = "warpfold")]
pub(crate) struct Memory {
    /// Only the array reads and writes them.
    _numbers: UnsafeCell<Numbers>,
    address: *mut u8,
    len: isize,
}

// SAFETY: the numbers are not touched from here; who touches the bytes of an array is the
// caller's business, as for any array of NumPy.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// # Errors
    /// What Python says when it has no memory for an object.
    pub(crate) fn of(py: Python<'_>, numbers: Numbers) -> PyResult<Bound<'_, Memory>> {
        let mut numbers = UnsafeCell::new(numbers);
        let bytes = numbers.get_mut().bytes_mut();
        let (address, len) = (bytes.as_mut_ptr(), bytes.len().cast_signed());
        Bound::new(py, Memory { _numbers: numbers, address, len })
    }
}

#[pymethods]
impl Memory {
    /// # Safety
    /// Python calls it, with memory for the view.
    unsafe fn __getbuffer__(
        this: Bound<'_, Memory>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let memory = this.get();
        // SAFETY: Python gives memory for the view, or null, which it refuses itself. The bytes stay
        // where they are as long as the object, to which the view holds a reference.
        let done = unsafe {
            let address = memory.address.cast();
            ffi::PyBuffer_FillInfo(view, this.as_ptr(), address, memory.len, 0, flags)
        };
        if done == 0 { Ok(()) } else { Err(PyErr::fetch(this.py())) }
    }
}
