//! The words of a call: `axis=0, keepdims=True, nan="omit"`, and the question they make.

use crate::errors::{OrRaise, axis_beyond};
use crate::numpy;
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple, PyType};
use warpfold::{DType, Device, NanPolicy, Op, Reduction, Threads};

/// What a caller said. What was left out is `None`.
#[derive(Default)]
pub(crate) struct Words<'a, 'py> {
    pub(crate) axis: Option<&'a Bound<'py, PyAny>>,
    pub(crate) dtype: Option<&'a Bound<'py, PyAny>>,
    pub(crate) keepdims: bool,
    pub(crate) ddof: Option<&'a Bound<'py, PyAny>>,
    pub(crate) correction: Option<&'a Bound<'py, PyAny>>,
    pub(crate) nan: Option<&'a str>,
    pub(crate) mask: Option<&'a Bound<'py, PyAny>>,
    pub(crate) initial: Option<&'a Bound<'py, PyAny>>,
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) device: Option<&'a str>,
    pub(crate) threads: Option<ThreadCount>,
}

/// Integers that are not negative, each by the word that it is given as: the error names it.
macro_rules! naturals {
    ($($(#[$doc:meta])* $name:ident($kind:ty): $word:literal, $least:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name(pub(crate) $kind);

        impl<'a, 'py> FromPyObject<'a, 'py> for $name {
            type Error = PyErr;

            fn extract(x: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                let number = natural(&x, $word, $least)?;
                <$kind>::try_from(number).map($name).map_err(|_| not_natural(&x, $word, $least))
            }
        }
    )*};
}

naturals! {
    /// How many threads reduce.
    ThreadCount(usize): "threads", 1;
    /// How long each segment is.
    Length(usize): "length", 0;
    /// The position of a piece's first element.
    Start(u64): "start", 0;
    /// How long an axis of a file is.
    AxisLength(usize): "a length of shape", 0;
    /// Bytes that reading a file may take.
    MemoryLimit(usize): "memory_limit", 0;
}

fn natural(x: &Bound<'_, PyAny>, word: &str, least: u64) -> PyResult<u64> {
    match x.extract::<u64>() {
        Ok(number) if number >= least => Ok(number),
        Err(error) if error.is_instance_of::<PyTypeError>(x.py()) => {
            let given = x.repr().map_or_else(|_| String::new(), |text| text.to_string());
            Err(PyTypeError::new_err(format!("{word} must be an integer, not {given}")))
        }
        _ => Err(not_natural(x, word, least)),
    }
}

fn not_natural(x: &Bound<'_, PyAny>, word: &str, least: u64) -> PyErr {
    let given = x.repr().map_or_else(|_| String::new(), |text| text.to_string());
    let most = if given.starts_with('-') || given == "0" { "" } else { ", and fit 64 bits" };
    PyValueError::new_err(format!("{word} must be at least {least}{most}, not {given}"))
}

impl Words<'_, '_> {
    /// Whether nothing was said that matters for elements of this type, but for axes and threads.
    #[inline]
    pub(crate) fn say_little(&self, dtype: DType) -> bool {
        self.dtype.is_none()
            && self.ddof.is_none()
            && self.correction.is_none()
            && self.mask.is_none()
            && self.initial.is_none()
            && self.out.is_none()
            && self.device.is_none()
            && self.nan.is_none_or(|nan| !dtype.is_float() && policy(nan).is_ok())
    }

    /// The question.
    ///
    /// # Errors
    /// A word that means nothing.
    pub(crate) fn question(&self, py: Python<'_>, ops: &[Op]) -> PyResult<Reduction> {
        let mut question = Reduction::new(ops.iter().copied()).keepdims(self.keepdims);
        if let Some(axis) = self.axis {
            question = question.axes(axes(axis)?);
        }
        if let Some(dtype) = self.dtype {
            question = question.out(element_type(dtype)?);
        }
        question = self.corrected(question)?;
        if let Some(nan) = self.nan {
            question = question.nan(policy(nan)?);
        }
        if let Some(device) = self.device {
            question = question.device(device.parse::<Device>().or_raise(py)?);
        }
        if let Some(ThreadCount(threads)) = self.threads {
            question = question.threads(Threads::Exactly(threads));
        }
        Ok(question)
    }

    /// The question with what variances subtract.
    fn corrected(&self, question: Reduction) -> PyResult<Reduction> {
        let (name, given) = match (self.ddof, self.correction) {
            (Some(ddof), None) => ("ddof", ddof),
            (None, Some(correction)) => ("correction", correction),
            (None, None) => return Ok(question),
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err(
                    "ddof and correction are two names of the same: give one",
                ));
            }
        };
        if let Ok(ddof) = given.extract::<u64>() {
            return Ok(question.ddof(ddof));
        }
        let rules = *question.rules();
        let rules = given.extract::<f64>().ok().and_then(|x| rules.correction(x));
        rules.map(|rules| question.finished_by(rules)).ok_or_else(|| {
            let given = given.repr().map_or_else(|_| String::new(), |text| text.to_string());
            PyValueError::new_err(format!("{name} must be a finite number, not {given}"))
        })
    }
}

/// What NaNs do, by its name.
///
/// # Errors
/// Another name.
pub(crate) fn policy(name: &str) -> PyResult<NanPolicy> {
    Ok(match name {
        "propagate" => NanPolicy::Propagate,
        "omit" => NanPolicy::Omit,
        "raise" => NanPolicy::Error,
        _ => {
            return Err(PyValueError::new_err(format!(
                "nan={name:?} is not a policy\nhint: there are \"propagate\", \"omit\" and \"raise\""
            )));
        }
    })
}

/// The name of what NaNs do: [`policy`] reads it.
pub(crate) fn policy_name(policy: NanPolicy) -> &'static str {
    match policy {
        NanPolicy::Omit => "omit",
        NanPolicy::Error => "raise",
        _ => "propagate",
    }
}

/// The value of one of Python's own integers.
pub(crate) fn index(axis: &Bound<'_, PyAny>) -> Option<isize> {
    if axis.is_exact_instance_of::<PyInt>() { axis.extract().ok() } else { None }
}

/// Axes: an integer, or several.
fn axes(axis: &Bound<'_, PyAny>) -> PyResult<Vec<isize>> {
    let one = |axis: &Bound<'_, PyAny>| -> PyResult<isize> {
        if axis.is_instance_of::<PyFloat>() {
            return Err(PyTypeError::new_err(format!(
                "an axis is an integer, not {}",
                axis.repr()?
            )));
        }
        axis.extract().map_err(|error: PyErr| {
            if error.is_instance_of::<PyTypeError>(axis.py()) {
                return PyTypeError::new_err(
                    "axis must be an integer, a tuple of integers or None",
                );
            }
            axis_beyond(axis.py(), axis)
        })
    };
    if let Ok(axes) = axis.cast::<PyTuple>() {
        return axes.iter().map(|axis| one(&axis)).collect();
    }
    if let Ok(axes) = axis.cast::<pyo3::types::PyList>() {
        return axes.iter().map(|axis| one(&axis)).collect();
    }
    Ok(vec![one(axis)?])
}

/// The name of a type of elements, by whatever says it.
///
/// # Errors
/// Those of Python.
pub(crate) fn name_of_type(x: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(class) = x.cast::<PyType>() {
        return Ok(class.name()?.to_string());
    }
    let text = match x.getattr_opt(intern!(x.py(), "name"))? {
        Some(name) => name.extract()?,
        // torch.float32
        None => x.str()?.to_string(),
    };
    Ok(text.rsplit('.').next().unwrap_or_default().to_owned())
}

/// A type of elements, by whatever says it: NumPy's, torch's, Python's, or a name.
///
/// # Errors
/// What names no type of ours.
pub(crate) fn element_type(x: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = x.py();
    if let Ok(class) = x.cast::<PyType>() {
        for (python, dtype) in [
            (py.get_type::<PyFloat>(), DType::F64),
            (py.get_type::<PyInt>(), DType::I64),
            (py.get_type::<PyBool>(), DType::Bool),
        ] {
            if class.is(&python) {
                return Ok(dtype);
            }
        }
        return named(x, &class.name()?.to_cow()?);
    }
    if let Ok(name) = x.cast::<PyString>() {
        return named(x, &name.to_cow()?);
    }
    named(x, &name_of_type(x)?)
}

fn named(x: &Bound<'_, PyAny>, name: &str) -> PyResult<DType> {
    let refused = || {
        let given = x.repr().map_or_else(|_| name.to_owned(), |text| text.to_string());
        PyTypeError::new_err(format!(
            "{given} is not a type of elements\nhint: there are {}",
            DType::ALL.map(numpy::long_name).join(", ")
        ))
    };
    // NumPy counts bytes where we count bits.
    if matches!(name, "i8" | "u8" | "f16") {
        return Err(PyTypeError::new_err(format!(
            "dtype={name:?} has two meanings: bits and bytes\nhint: write it out, as int8 or int64"
        )));
    }
    let name = name.strip_suffix('_').unwrap_or(name);
    let known = match name {
        // Names of torch, of types of C, and NumPy's usual ones, which it takes microseconds to spell out.
        "double" | "f8" => Some(DType::F64),
        "f4" => Some(DType::F32),
        "half" | "f2" => Some(DType::F16),
        "int" | "long" | "longlong" => Some(DType::I64),
        "ulonglong" => Some(DType::U64),
        "float" if x.is_instance_of::<PyString>() => Some(DType::F64),
        _ => DType::from_name(name),
    };
    if let Some(dtype) = known {
        return Ok(dtype);
    }
    // NumPy's short names: 'f4', '<f8', 'd'.
    if x.is_instance_of::<PyString>()
        && let Some(numpy) = numpy::loaded(x.py())
        && let Ok(dtype) = numpy.call_method1(intern!(x.py(), "dtype"), (x,))
        && let Ok(true) =
            dtype.getattr(intern!(x.py(), "isnative")).and_then(|native| native.is_truthy())
    {
        let name: String = dtype.getattr(intern!(x.py(), "name"))?.extract()?;
        return DType::from_name(&name).ok_or_else(refused);
    }
    Err(refused())
}
