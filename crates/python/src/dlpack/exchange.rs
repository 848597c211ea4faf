//! DLPack's table of C functions, which a class of tensors may have: its arrays come and go
//! without a call of Python.
//!
//! None of the functions waits for a stream, or makes one wait: a consumer works on the
//! stream that the library works on.

use super::abi::{CPU, CUDA, CUDA_HOST, CUDA_MANAGED, Device, DlTensor, Type, VERSION, Versioned};
use super::export::{Exportable, managed};
use super::import::{Managed, Tensor};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::NonNull;
use warpfold::DType;

const TABLE: &CStr = c"dlpack_exchange_api";

/// Tables of other versions that are looked through.
const MOST_TABLES: usize = 16;

#[repr(C)]
struct Header {
    major: u32,
    minor: u32,
    previous: *const Header,
}

/// Says why memory cannot be had: the context, a kind of error, a message.
type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);
type Allocate =
    unsafe extern "C" fn(*mut DlTensor, *mut *mut Versioned, *mut c_void, SetError) -> c_int;
type FromObject = unsafe extern "C" fn(*mut c_void, *mut *mut Versioned) -> c_int;
type ToObject = unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> c_int;
type CurrentStream = unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int;

#[repr(C)]
struct Table {
    header: Header,
    allocate: Option<Allocate>,
    from_object: Option<FromObject>,
    to_object: Option<ToObject>,
    /// A tensor for as long as a call takes.
    lend: *const c_void,
    current_stream: Option<CurrentStream>,
}

/// A library of tensors by its functions.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    allocate: Option<Allocate>,
    from_object: FromObject,
    to_object: ToObject,
    current_stream: CurrentStream,
}

/// Memory for an answer, of the library that will have it.
pub(crate) struct Room {
    tensor: Managed,
    pub(crate) address: u64,
}

impl Exchange {
    /// That of an object's class, if it has one of our version.
    pub(crate) fn of(x: &Bound<'_, PyAny>) -> Option<Exchange> {
        let name = intern!(x.py(), "__dlpack_c_exchange_api__");
        let capsule = x.get_type().getattr_opt(name).ok().flatten()?;
        let pointer = capsule.cast::<PyCapsule>().ok()?.pointer_checked(Some(TABLE)).ok()?;
        let mut header: *const Header = pointer.cast::<Header>().as_ptr();
        for _ in 0..MOST_TABLES {
            // SAFETY: by the protocol tables stay as long as the program, and each begins with
            // a header, whatever its version.
            let at = unsafe { header.as_ref() }?;
            if at.major == VERSION.0 {
                // SAFETY: a table of this version has these fields.
                let table = unsafe { &*header.cast::<Table>() };
                return Some(Exchange {
                    allocate: table.allocate,
                    from_object: table.from_object?,
                    to_object: table.to_object?,
                    current_stream: table.current_stream?,
                });
            }
            header = at.previous;
        }
        None
    }

    /// An array of the library; `None` where it works on another stream than the device's
    /// default one, or where Python's part of the protocol has to say what is wrong.
    ///
    /// # Errors
    /// Elements that are not numbers; a tensor that cannot be.
    pub(crate) fn import(self, x: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
        let py = x.py();
        // A tensor whose gradient is wanted is not handed over by `__dlpack__`.
        let wanted = x.getattr_opt(intern!(py, "requires_grad")).ok().flatten();
        if wanted.is_some_and(|wanted| wanted.is_truthy().unwrap_or(true)) {
            return Ok(None);
        }
        let mut out = std::ptr::null_mut();
        // SAFETY: the function is of the object's class, and `out` takes what it writes.
        let status = unsafe { (self.from_object)(x.as_ptr().cast(), &raw mut out) };
        let Some(tensor) = NonNull::new(out).filter(|_| status == 0) else {
            drop(PyErr::take(py));
            return Ok(None);
        };
        let owner = Managed::versioned(tensor);
        // SAFETY: the producer keeps what it handed over until it is told otherwise.
        let (major, device) = unsafe { (tensor.as_ref().major, tensor.as_ref().tensor.device) };
        let ours = match device.kind {
            CPU | CUDA_HOST => true,
            CUDA | CUDA_MANAGED => self.works_on_the_default_stream(py, device),
            _ => false,
        };
        if major != VERSION.0 || !ours {
            return Ok(None);
        }
        Tensor::of(owner).map(Some)
    }

    /// Whether the library's work on a device is queued on its default stream, as ours is.
    fn works_on_the_default_stream(self, py: Python<'_>, device: Device) -> bool {
        let mut stream = std::ptr::null_mut();
        // SAFETY: `stream` takes what the function writes.
        let status = unsafe { (self.current_stream)(device.kind, device.id, &raw mut stream) };
        if status != 0 {
            drop(PyErr::take(py));
        }
        // 1 is the legacy default stream by its other name.
        status == 0 && stream.addr() <= 1
    }

    /// Memory of the library for numbers in C order; `None` if it has no word for that.
    ///
    /// # Errors
    /// What the library says: that there is not enough memory.
    pub(crate) fn allocate(
        self,
        py: Python<'_>,
        dtype: DType,
        shape: &[usize],
        device: (i32, i32),
    ) -> PyResult<Option<Room>> {
        let Some(allocate) = self.allocate else { return Ok(None) };
        let mut axes: Vec<i64> = shape.iter().map(|&n| n as i64).collect();
        let mut prototype = DlTensor {
            data: std::ptr::null_mut(),
            device: Device { kind: device.0, id: device.1 },
            ndim: axes.len() as i32,
            dtype: Type::of(dtype),
            shape: axes.as_mut_ptr(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let mut why = String::new();
        let mut out = std::ptr::null_mut();
        // SAFETY: the prototype and its shape live until the function is back, and so does
        // the text that errors are written to.
        let status =
            unsafe { allocate(&raw mut prototype, &raw mut out, (&raw mut why).cast(), set_error) };
        let Some(tensor) = NonNull::new(out).filter(|_| status == 0) else {
            drop(PyErr::take(py));
            return Err(PyRuntimeError::new_err(format!("no memory for the answers: {why}")));
        };
        let owner = Managed::versioned(tensor);
        // SAFETY: as in `import`.
        let made = unsafe { &tensor.as_ref().tensor };
        let whole = made.byte_offset == 0 && made.device.kind == device.0;
        let address = made.data.addr() as u64;
        Ok((whole && address != 0).then_some(Room { tensor: owner, address }))
    }

    /// Memory that was had from the library, as an array of it.
    ///
    /// # Errors
    /// Those of the library.
    pub(crate) fn array_in<'py>(self, py: Python<'py>, room: Room) -> PyResult<Bound<'py, PyAny>> {
        match room.tensor.into_versioned() {
            Some(tensor) => self.object(py, tensor),
            None => Err(PyRuntimeError::new_err("memory for the answers has no version")),
        }
    }

    /// An array as one of the library.
    ///
    /// # Errors
    /// Those of the library.
    pub(crate) fn array<'py>(
        self,
        py: Python<'py>,
        array: Exportable,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.object(py, managed(array))
    }

    fn object<'py>(
        self,
        py: Python<'py>,
        tensor: NonNull<Versioned>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut out = std::ptr::null_mut();
        // SAFETY: the tensor is the function's now, whatever it says.
        let status = unsafe { (self.to_object)(tensor.as_ptr(), &raw mut out) };
        if status != 0 || out.is_null() {
            let refused = || PyRuntimeError::new_err("the library takes no array by DLPack");
            return Err(PyErr::take(py).unwrap_or_else(refused));
        }
        // SAFETY: a new reference.
        Ok(unsafe { Bound::from_owned_ptr(py, out.cast::<ffi::PyObject>()) })
    }
}

/// Keeps what a library says about memory that it has not.
///
/// # Safety
/// `context` is the text that `allocate` gave along; the others are strings of C, or null.
unsafe extern "C" fn set_error(context: *mut c_void, kind: *const c_char, message: *const c_char) {
    // SAFETY: the caller's promise.
    let why = unsafe { &mut *context.cast::<String>() };
    for text in [kind, message] {
        if text.is_null() {
            continue;
        }
        if !why.is_empty() {
            why.push_str(": ");
        }
        // SAFETY: as above.
        why.push_str(&unsafe { CStr::from_ptr(text) }.to_string_lossy());
    }
}
