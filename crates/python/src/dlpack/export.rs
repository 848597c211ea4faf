//! Arrays that go out by DLPack.

use super::abi::{Device, DlTensor, NAME, Type, Unversioned, VERSION, VERSIONED_NAME, Versioned};
use pyo3::ffi;
use pyo3::prelude::*;
use std::any::Any;
use std::ffi::c_void;
use std::ptr::NonNull;
use warpfold::DType;

/// An array to hand over.
pub(crate) struct Exportable {
    pub(crate) dtype: DType,
    /// The first element, in the device's memory.
    pub(crate) address: usize,
    pub(crate) shape: Vec<usize>,
    /// Whether the elements are complex, with parts of that type.
    pub(crate) is_complex: bool,
    /// The kind of device, and which.
    pub(crate) device: (i32, i32),
    /// Keeps the memory until the consumer is done.
    pub(crate) owner: Box<dyn Any + Send>,
}

/// What the deleter frees: the lengths and steps that the tensor points to, and the owner.
struct Context {
    axes: Vec<i64>,
    _owner: Box<dyn Any + Send>,
}

/// A capsule with an array in C order: with a version, if the consumer takes those.
///
/// # Errors
/// Those of Python.
pub(crate) fn capsule(
    py: Python<'_>,
    array: Exportable,
    versioned: bool,
) -> PyResult<Bound<'_, PyAny>> {
    let (pointer, name) = if versioned {
        (managed(array).as_ptr().cast::<c_void>(), VERSIONED_NAME)
    } else {
        let (tensor, context) = described(array);
        let managed = Unversioned { tensor, context, deleter: Some(delete) };
        (Box::into_raw(Box::new(managed)).cast::<c_void>(), NAME)
    };
    let destructor = if versioned { forget_versioned } else { forget };
    // SAFETY: the pointer is not null, and name and destructor live as long as the program.
    let made = unsafe { ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destructor)) };
    if made.is_null() {
        // SAFETY: nobody else knows of what was made above.
        unsafe { if versioned { delete_versioned(pointer.cast()) } else { delete(pointer.cast()) } }
    }
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }
}

/// An array as what its consumer deletes.
pub(super) fn managed(array: Exportable) -> NonNull<Versioned> {
    let (tensor, context) = described(array);
    let (major, minor) = VERSION;
    let managed =
        Versioned { major, minor, context, deleter: Some(delete_versioned), flags: 0, tensor };
    NonNull::from(Box::leak(Box::new(managed)))
}

/// The description of an array, and the box of what it needs: a [`Context`].
fn described(array: Exportable) -> (DlTensor, *mut c_void) {
    let ndim = array.shape.len();
    let mut axes: Vec<i64> = array.shape.iter().map(|&n| n as i64).collect();
    let strides = crate::dense::c_strides(1, &array.shape);
    axes.extend(strides.iter().map(|&n| n as i64));
    let mut context = Box::new(Context { axes, _owner: array.owner });
    let axes = context.axes.as_mut_ptr();
    let tensor = DlTensor {
        data: std::ptr::with_exposed_provenance_mut(array.address),
        device: Device { kind: array.device.0, id: array.device.1 },
        ndim: ndim as i32,
        dtype: if array.is_complex { Type::of_parts(array.dtype) } else { Type::of(array.dtype) },
        shape: axes,
        strides: axes.wrapping_add(ndim),
        byte_offset: 0,
    };
    (tensor, Box::into_raw(context).cast::<c_void>())
}

/// Frees what `capsule` made.
///
/// # Safety
/// `managed` was made there, and this is called once.
unsafe extern "C" fn delete(managed: *mut Unversioned) {
    // SAFETY: both were boxes, by the caller's promise.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

/// As [`delete`].
///
/// # Safety
/// As for [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    // SAFETY: both were boxes, by the caller's promise.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

/// Frees the array of a capsule that nobody consumed.
///
/// # Safety
/// Python calls it with a capsule that `capsule` made.
unsafe extern "C" fn forget(capsule: *mut ffi::PyObject) {
    // SAFETY: a consumer renames the capsule before the tensor is its own.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

/// As [`forget`].
///
/// # Safety
/// As for [`forget`].
unsafe extern "C" fn forget_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: a consumer renames the capsule before the tensor is its own.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED_NAME.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED_NAME.as_ptr()).cast());
        }
    }
}
