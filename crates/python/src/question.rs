//! The words of a call: `axis=0, keepdims=True, nan="omit"`, and the question they make.

use crate::errors::OrRaise;
use crate::numpy;
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
    pub(crate) threads: Option<usize>,
}

impl Words<'_, '_> {
    /// Whether nothing was said that matters for elements of this type, but for axes.
    #[inline]
    pub(crate) fn say_little(&self, dtype: DType) -> bool {
        self.dtype.is_none()
            && self.ddof.is_none()
            && self.correction.is_none()
            && self.mask.is_none()
            && self.initial.is_none()
            && self.out.is_none()
            && self.device.is_none()
            && self.threads.is_none()
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
        if let Some(threads) = self.threads {
            if threads == 0 {
                return Err(PyValueError::new_err("threads must be at least 1"));
            }
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
            (Some(ddof), Some(_)) if !ddof.is_truthy()? => {
                ("correction", self.correction.unwrap_or(ddof))
            }
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
            PyValueError::new_err(format!(
                "{name} must be a finite number that is not negative, not {given}"
            ))
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
        // Beyond an index no array has an axis, and the error says so.
        let index = axis.call_method0(intern!(axis.py(), "__index__")).map_err(|_| {
            PyTypeError::new_err("axis must be an integer, a tuple of integers or None")
        })?;
        index.extract().or_else(|_| Ok(if index.lt(0)? { isize::MIN } else { isize::MAX }))
    };
    if let Some(axis) = index(axis) {
        return Ok(vec![axis]);
    }
    if let Ok(axes) = axis.cast::<PyTuple>() {
        return axes.iter().map(|axis| one(&axis)).collect();
    }
    if let Ok(axes) = axis.cast::<pyo3::types::PyList>() {
        return axes.iter().map(|axis| one(&axis)).collect();
    }
    Ok(vec![one(axis)?])
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
    if let Some(name) = x.getattr_opt(intern!(py, "name"))? {
        return named(x, &name.extract::<String>()?);
    }
    // torch.float32
    let text = x.str()?.to_string();
    named(x, text.rsplit('.').next().unwrap_or_default())
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
        // Names of torch.
        "double" => Some(DType::F64),
        "half" => Some(DType::F16),
        "int" | "long" => Some(DType::I64),
        // Types of C that NumPy tells from those of the same width.
        "longlong" => Some(DType::I64),
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
