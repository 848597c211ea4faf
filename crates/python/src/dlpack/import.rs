//! Arrays that come by DLPack.

use super::abi::{
    CPU, CUDA, CUDA_HOST, CUDA_MANAGED, DlTensor, NAME, USED, Unversioned, VERSION, VERSIONED_NAME,
    VERSIONED_USED, Versioned,
};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::CStr;
use std::ptr::NonNull;
use warpfold::DType;

/// What a producer handed over. Dropping it tells the producer that we are done.
pub(crate) struct Managed(Kind);

enum Kind {
    Old(NonNull<Unversioned>),
    New(NonNull<Versioned>),
}

impl Managed {
    /// A tensor that is ours to delete.
    pub(super) fn versioned(tensor: NonNull<Versioned>) -> Managed {
        Managed(Kind::New(tensor))
    }

    /// The tensor, to be deleted by whoever gets it.
    pub(super) fn into_versioned(self) -> Option<NonNull<Versioned>> {
        match self.0 {
            Kind::Old(_) => None,
            Kind::New(tensor) => {
                std::mem::forget(self);
                Some(tensor)
            }
        }
    }
}

// SAFETY: DLPack lets any thread call the deleter; those of producers in Python attach it.
unsafe impl Send for Managed {}

impl Drop for Managed {
    fn drop(&mut self) {
        // Deleters of producers in Python expect a thread that is attached.
        Python::attach(|_| match self.0 {
            Kind::Old(tensor) => {
                // SAFETY: the capsule was renamed, so that the tensor is ours to delete, once.
                unsafe {
                    if let Some(delete) = (*tensor.as_ptr()).deleter {
                        delete(tensor.as_ptr());
                    }
                }
            }
            Kind::New(tensor) => {
                // SAFETY: as above.
                unsafe {
                    if let Some(delete) = (*tensor.as_ptr()).deleter {
                        delete(tensor.as_ptr());
                    }
                }
            }
        });
    }
}

/// An array somewhere, that a producer handed over.
pub(crate) struct Tensor {
    pub(crate) dtype: DType,
    /// The element of index 0 on every axis, in the device's memory.
    pub(crate) address: usize,
    pub(crate) shape: Vec<usize>,
    /// In bytes.
    pub(crate) strides: Vec<isize>,
    /// The kind of device, and which.
    pub(crate) device: (i32, i32),
    pub(crate) owner: Managed,
    /// Whether the last axis has the parts of complex numbers.
    pub(crate) is_complex: bool,
}

/// The array that an object hands over by `__dlpack__`; one on a CUDA device after the
/// work so far on the device's default stream.
///
/// # Errors
/// The object's own; a device that is neither the CPU nor CUDA; elements that are not
/// numbers; a tensor that cannot be.
pub(crate) fn import(x: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = x.py();
    let device = x.call_method0(intern!(py, "__dlpack_device__"))?;
    // Its kind may be an enumeration.
    let device = device.cast::<PyTuple>()?;
    let kind: i32 = device.get_item(0)?.call_method0(intern!(py, "__index__"))?.extract()?;
    let words = PyDict::new(py);
    match kind {
        CPU | CUDA_HOST => {}
        // The legacy default stream waits for what other streams do.
        CUDA | CUDA_MANAGED => words.set_item(intern!(py, "stream"), 1)?,
        _ => {
            return Err(PyBufferError::new_err(format!(
                "the array lies on a device of DLPack's kind {kind}, which warpfold cannot read\nhint: move it to the CPU or a CUDA device first"
            )));
        }
    }
    words.set_item(intern!(py, "max_version"), VERSION)?;
    let export = x.getattr(intern!(py, "__dlpack__"))?;
    let capsule = match export.call((), Some(&words)) {
        // A producer from before there were versions.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            words.del_item(intern!(py, "max_version"))?;
            export.call((), Some(&words))?
        }
        made => made?,
    };
    Tensor::of(take(&capsule)?)
}

impl Tensor {
    /// # Errors
    /// Elements that are not numbers; a tensor that cannot be.
    pub(super) fn of(owner: Managed) -> PyResult<Tensor> {
        let tensor = match &owner.0 {
            // SAFETY: the producer keeps what it handed over until it is told otherwise.
            Kind::Old(tensor) => unsafe { &tensor.as_ref().tensor },
            // SAFETY: as above; the version's major number was checked.
            Kind::New(tensor) => unsafe { &tensor.as_ref().tensor },
        };
        let layout = Layout::of(tensor)?;
        let device = (tensor.device.kind, tensor.device.id);
        let Layout { dtype, address, shape, strides, is_complex } = layout;
        Ok(Tensor { dtype, address, shape, strides, device, owner, is_complex })
    }
}

/// Takes the tensor out of its capsule.
///
/// # Errors
/// It is no such capsule, it was consumed before, or its version is one of later.
fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Managed> {
    let raw = capsule.as_ptr();
    // SAFETY: `raw` is a live object; a name that is not its own gives false.
    let is = |name: &CStr| unsafe { ffi::PyCapsule_IsValid(raw, name.as_ptr()) } == 1;
    let (name, used) = match () {
        () if is(VERSIONED_NAME) => (VERSIONED_NAME, VERSIONED_USED),
        () if is(NAME) => (NAME, USED),
        () => {
            return Err(PyValueError::new_err(
                "__dlpack__ did not return a capsule with a tensor that is yet to be consumed",
            ));
        }
    };
    // SAFETY: it was checked to be a valid capsule of this name.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(raw, name.as_ptr()) };
    let Some(pointer) = NonNull::new(pointer) else { return Err(PyErr::fetch(capsule.py())) };
    if name == VERSIONED_NAME {
        // SAFETY: the major version comes first in every version of the structure.
        let major = unsafe { *pointer.cast::<u32>().as_ptr() };
        if major != VERSION.0 {
            // The capsule still owns the tensor.
            return Err(PyBufferError::new_err(format!(
                "the producer hands over version {major} of DLPack; this warpfold reads version {}",
                VERSION.0
            )));
        }
    }
    // SAFETY: as above; the name lives as long as the program.
    if unsafe { ffi::PyCapsule_SetName(raw, used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    Ok(Managed(if name == VERSIONED_NAME {
        Kind::New(pointer.cast())
    } else {
        Kind::Old(pointer.cast())
    }))
}

struct Layout {
    dtype: DType,
    address: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
    is_complex: bool,
}

impl Layout {
    /// # Errors
    /// Elements that are not numbers, and what no array can be.
    fn of(tensor: &DlTensor) -> PyResult<Layout> {
        let lies = |what: &str| {
            PyValueError::new_err(format!("the producer of a DLPack tensor lies: {what}"))
        };
        let code = tensor.dtype;
        let parts = code.parts();
        let dtype = code.known().or(parts).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "the tensor holds elements of DLPack's code {}, {} bits and {} lanes, not real numbers\nhint: cast it to a float or integer type of 8 to 64 bits",
                code.code, code.bits, code.lanes
            ))
        })?;
        let ndim = usize::try_from(tensor.ndim).ok().filter(|&n| n <= 1024);
        let ndim = ndim.ok_or_else(|| lies(&format!("it has {} axes", tensor.ndim)))?;
        if ndim > 0 && tensor.shape.is_null() {
            return Err(lies("axes without lengths"));
        }
        let axes = |pointer: *const i64| {
            if ndim == 0 {
                return &[][..];
            }
            // SAFETY: it is not null, and DLPack has an entry for each axis there.
            unsafe { std::slice::from_raw_parts(pointer, ndim) }
        };
        let shape: Option<Vec<usize>> =
            axes(tensor.shape).iter().map(|&n| usize::try_from(n).ok()).collect();
        let mut shape = shape.ok_or_else(|| lies("an axis of negative length"))?;
        let size = dtype.size() * if parts.is_some() { 2 } else { 1 };
        let mut strides = if tensor.strides.is_null() {
            crate::dense::c_strides(size, &shape)
        } else {
            let size = size as i64;
            let bytes = |&n: &i64| n.checked_mul(size).and_then(|n| isize::try_from(n).ok());
            let strides: Option<Vec<isize>> = axes(tensor.strides).iter().map(bytes).collect();
            strides.ok_or_else(|| lies("strides beyond the address space"))?
        };
        let offset = usize::try_from(tensor.byte_offset).ok();
        let address = offset.and_then(|offset| tensor.data.addr().checked_add(offset));
        let address = address.ok_or_else(|| lies("an offset beyond the address space"))?;
        if tensor.data.is_null() && !shape.contains(&0) {
            return Err(lies("elements without a pointer"));
        }
        if parts.is_some() {
            shape.push(2);
            strides.push(dtype.size().cast_signed());
        }
        Ok(Layout { dtype, address, shape, strides, is_complex: parts.is_some() })
    }
}
