//! What an object of Python is to us: which protocol serves it, and what answers its
//! owner expects.

use crate::array::Array;
use crate::arrow::{self, Chunks};
use crate::cuda;
use crate::dense::{Dense, Owner};
use crate::dlpack::{self, CPU, CUDA_HOST, CUDA_MANAGED, Exchange, Managed};
use crate::errors::with_note;
use crate::files::File;
use crate::{buffer, ndarray, numpy, sequence};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};
use warpfold::DType;

/// Whose types answers have.
#[derive(Clone)]
pub(crate) enum Family<'py> {
    /// Python's numbers, and lists of them.
    Python,
    NumPy,
    /// Python's numbers, and [`Array`]s.
    Ours,
    /// The library whose `from_dlpack` this is.
    Library(Bound<'py, PyAny>),
    /// One that has functions of C for it.
    Exchange(Exchange),
}

/// Where the elements are.
pub(crate) enum Data<'py> {
    Dense(Dense),
    /// Complex numbers: the last axis has their parts.
    Complex(Dense),
    Column(Chunks),
    /// Columns with their names.
    Frame(Vec<(String, Imported<'py>)>),
    Device(cuda::DeviceArray),
    File(Bound<'py, File>),
}

/// An object that can be reduced.
pub(crate) struct Imported<'py> {
    pub(crate) data: Data<'py>,
    pub(crate) family: Family<'py>,
}

impl<'py> Imported<'py> {
    fn dense((dense, is_complex): (Dense, bool), family: Family<'py>) -> PyResult<Imported<'py>> {
        let data = if is_complex { Data::Complex(dense) } else { Data::Dense(dense) };
        Ok(Imported { data, family })
    }
}

/// Finds out what an object is.
///
/// # Errors
/// It holds no numbers; its producer fails or lies.
pub(crate) fn import<'py>(x: &Bound<'py, PyAny>) -> PyResult<Imported<'py>> {
    let py = x.py();
    if numpy::is_exact_array(x) || numpy::is_array(x) {
        return Imported::dense(of_numpy(x)?, Family::NumPy);
    }
    if x.is_exact_instance_of::<PyList>()
        || x.is_exact_instance_of::<PyTuple>()
        || x.is_exact_instance_of::<PyFloat>()
        || x.is_exact_instance_of::<PyInt>()
        || x.is_exact_instance_of::<PyBool>()
        || x.is_instance_of::<PyString>()
    {
        return Imported::dense(sequence::import(x)?, Family::Python);
    }
    if let Ok(array) = x.cast::<Array>() {
        return Imported::dense(Array::dense(array)?, Family::Ours);
    }
    if let Ok(file) = x.cast::<File>() {
        return Ok(Imported { data: Data::File(file.clone()), family: Family::Ours });
    }
    if let Some(exchange) = Exchange::of(x)
        && let Some(tensor) = exchange.import(x)?
    {
        return of_device(tensor, Family::Exchange(exchange));
    }
    if is_traced(x)? {
        return Err(PyTypeError::new_err(
            "an array that jax traces has no elements yet\nhint: call warpfold outside of jax.jit, or within it by jax.pure_callback(warpfold.sum, jax.ShapeDtypeStruct((), x.dtype), x)",
        ));
    }
    let dlpack = x.hasattr(intern!(py, "__dlpack__"))?;
    // DLPack knows devices and streams better, where a library has both.
    if !dlpack && let Some(interface) = x.getattr_opt(intern!(py, "__cuda_array_interface__"))? {
        let array = cuda::DeviceArray::of_interface(x, &interface)?;
        return Ok(Imported { data: Data::Device(array), family: library(x)? });
    }
    let arrow = x.hasattr(intern!(py, "__arrow_c_array__"))?
        || x.hasattr(intern!(py, "__arrow_c_stream__"))?;
    // What wraps NumPy's arrays, as pandas and xarray do, has NumPy's types.
    let wraps =
        x.getattr_opt(intern!(py, "dtype")).ok().flatten().is_some_and(|t| numpy::is_dtype(&t));
    if wraps && (arrow || !dlpack) && x.hasattr(intern!(py, "__array__"))? {
        let array = x.call_method0(intern!(py, "__array__"))?;
        return Imported::dense(of_numpy(&array)?, Family::NumPy);
    }
    if let Some(columns) = of_frame(x)? {
        return Ok(Imported { data: Data::Frame(columns), family: Family::Python });
    }
    match arrow::import(x)? {
        Some(arrow::Imported::Column(chunks)) => {
            return Ok(Imported { data: Data::Column(chunks), family: Family::Python });
        }
        Some(arrow::Imported::Frame(columns)) => {
            let columns = columns.into_iter().map(|(name, chunks)| {
                (name, Imported { data: Data::Column(chunks), family: Family::Python })
            });
            return Ok(Imported { data: Data::Frame(columns.collect()), family: Family::Python });
        }
        None => {}
    }
    // SAFETY: `x` is a live object.
    let lends = unsafe { ffi::PyObject_CheckBuffer(x.as_ptr()) } == 1;
    if dlpack {
        let tensor = match dlpack::import(x) {
            Ok(tensor) => tensor,
            Err(error) => {
                // CuPy 14 gives negative strides as huge ones; its older interface has them right.
                if let Some(interface) = x.getattr_opt(intern!(py, "__cuda_array_interface__"))? {
                    let array = cuda::DeviceArray::of_interface(x, &interface)?;
                    return Ok(Imported { data: Data::Device(array), family: library(x)? });
                }
                // What has a buffer, too, may have a word for its elements there.
                if lends
                    && !is_on_a_device(x)
                    && let Ok(made) = buffer::import(x)
                {
                    return Imported::dense(made, library(x)?);
                }
                return Err(error);
            }
        };
        return of_device(tensor, library(x)?);
    }
    if lends {
        let scalar = numpy::is_scalar(x);
        let family = if scalar { Family::NumPy } else { Family::Ours };
        return match buffer::import(x) {
            Err(_) if scalar => {
                let array = numpy_of_scalar(x)?;
                Imported::dense(of_numpy(&array)?, family)
            }
            made => Imported::dense(made?, family),
        };
    }
    if x.hasattr(intern!(py, "__array__"))? {
        let array = x.call_method0(intern!(py, "__array__"))?;
        return Imported::dense(of_numpy(&array)?, Family::NumPy);
    }
    Imported::dense(sequence::import(x)?, Family::Python)
}

/// A tensor by where it lies.
fn of_device<'py>(tensor: dlpack::Tensor, family: Family<'py>) -> PyResult<Imported<'py>> {
    match tensor.device.0 {
        CPU | CUDA_HOST => Imported::dense(of_tensor(tensor)?, family),
        _ if tensor.is_complex => Err(PyTypeError::new_err(
            "complex numbers are reduced in the host's memory, and these lie on a device\nhint: reduce x.real and x.imag, or move the array to the CPU",
        )),
        _ => {
            let managed = tensor.device.0 == CUDA_MANAGED;
            let data = Data::Device(cuda::DeviceArray::of_tensor(tensor, managed));
            Ok(Imported { data, family })
        }
    }
}

/// Whether an array with DLPack lies elsewhere than in the host's memory.
fn is_on_a_device(x: &Bound<'_, PyAny>) -> bool {
    let device = x.call_method0(intern!(x.py(), "__dlpack_device__"));
    let device = device.and_then(|device| device.extract::<(i32, i32)>());
    device.is_ok_and(|(kind, _)| ![CPU, CUDA_HOST].contains(&kind))
}

/// Whether an object stands for an array in a function that jax traces.
fn is_traced(x: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = x.get_type();
    Ok(class.name()?.to_cow()?.ends_with("Tracer") && class.module()?.to_cow()?.starts_with("jax"))
}

fn of_tensor(tensor: dlpack::Tensor) -> PyResult<(Dense, bool)> {
    let is_complex = tensor.is_complex;
    let owner: Managed = tensor.owner;
    let origin = std::ptr::with_exposed_provenance(tensor.address);
    // SAFETY: DLPack's producer keeps the elements on the CPU until its deleter is called.
    unsafe { Dense::new(tensor.dtype, origin, tensor.shape, tensor.strides, Owner::DlPack(owner)) }
        .map(|dense| (dense, is_complex))
}

fn numpy_of_scalar<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    x.py().import(intern!(x.py(), "numpy"))?.call_method1(intern!(x.py(), "asarray"), (x,))
}

/// An array of NumPy. Its types that have no buffers are told by their names.
fn of_numpy(x: &Bound<'_, PyAny>) -> PyResult<(Dense, bool)> {
    if let Some(array) = ndarray::import(x)? {
        return Ok((array, false));
    }
    let py = x.py();
    if !numpy::is_exact_array(x)
        && x.hasattr(intern!(py, "mask"))?
        && x.hasattr(intern!(py, "fill_value"))?
    {
        return Err(PyTypeError::new_err(
            "a masked array has elements without values\nhint: warpfold.sum(x.data, where=~x.mask)",
        ));
    }
    let first = match buffer::import(x) {
        Ok(made) => return Ok(made),
        Err(error) => error,
    };
    let Some(dtype) = x.getattr_opt(intern!(py, "dtype"))? else { return Err(first) };
    let name: String = dtype.getattr(intern!(py, "name"))?.extract()?;
    if name == "bfloat16" {
        let bits = x.call_method1(intern!(py, "view"), ("uint16",))?;
        let lies =
            || PyTypeError::new_err("an array of bfloat16 has elements that are not of 2 bytes");
        let bits = buffer::import(&bits)?.0.retyped(DType::BF16).ok_or_else(lies);
        return bits.map(|bits| (bits, false));
    }
    if first.is_instance_of::<PyTypeError>(py) {
        return Err(first);
    }
    let hint = match name.split('[').next().unwrap_or_default() {
        "datetime64" | "timedelta64" => {
            "reduce the integers: x.view(\"int64\"); NaT is then the smallest"
        }
        "str" | "bytes" => "convert it to numbers: x.astype(\"float64\")",
        _ if name.starts_with("StringDType") => "convert it to numbers: x.astype(\"float64\")",
        _ if name.starts_with("float8")
            || name.starts_with("int4")
            || name.starts_with("uint4") =>
        {
            "cast it to float32: x.astype(\"float32\")"
        }
        _ => return Err(first),
    };
    Err(PyTypeError::new_err(format!("the array holds {name}, not real numbers\nhint: {hint}")))
}

/// The columns of a frame of pandas, each of which says for itself what it is.
fn of_frame<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<Vec<(String, Imported<'py>)>>> {
    let py = x.py();
    let class = x.get_type();
    let from = class.module()?;
    if !from.to_cow()?.starts_with("pandas.") || !x.hasattr(intern!(py, "columns"))? {
        return Ok(None);
    }
    let mut columns = Vec::new();
    for item in x.call_method0(intern!(py, "items"))?.try_iter()? {
        let (name, column): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
        let name = name.str()?.to_string();
        let column = import(&column).map_err(|error| with_note(py, error, &name))?;
        columns.push((name, column));
    }
    Ok(Some(columns))
}

/// The library that an array is of, by its `from_dlpack`.
fn library<'py>(x: &Bound<'py, PyAny>) -> PyResult<Family<'py>> {
    let py = x.py();
    let name = intern!(py, "from_dlpack");
    let class = x.get_type();
    let module = class.module()?.to_string();
    let top = module.split('.').next().unwrap_or_default().to_owned();
    // jax has it in a module of its own.
    for module in [top.clone(), format!("{top}.numpy"), module.clone(), format!("{top}.dlpack")] {
        let Some(module) = numpy::module(py, &module) else { continue };
        if let Some(from_dlpack) = module.getattr_opt(name)? {
            return Ok(Family::Library(from_dlpack));
        }
    }
    if let Some(ask) = x.getattr_opt(intern!(py, "__array_namespace__"))?
        && let Some(from_dlpack) = ask.call0()?.getattr_opt(name)?
    {
        return Ok(Family::Library(from_dlpack));
    }
    Ok(Family::Ours)
}
