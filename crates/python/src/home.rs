//! Whose types columns of answers have: those of the caller's library, which may say that
//! a row has no value.

use crate::answers::{as_here, kept, list, one, plain};
use crate::arrow::ArrowColumn;
use crate::cuda;
use crate::import::Family;
use crate::numpy;
use crate::times;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use warpfold::{Column, DType, KeyValues, Numbers, Scalar, Unit, bf16, f16};

/// Where columns of answers go.
#[derive(Clone)]
pub(crate) enum Home<'py> {
    Family(Family<'py>),
    /// The memory of the device of this number.
    Device(u32, Family<'py>),
    /// A library of Arrow arrays, by what makes one of its columns.
    Arrow(Bound<'py, PyAny>),
}

impl<'py> Home<'py> {
    /// That of an object.
    ///
    /// # Errors
    /// Those of its library.
    pub(crate) fn of(x: &Bound<'py, PyAny>, family: &Family<'py>) -> PyResult<Home<'py>> {
        if numpy::is_exact_array(x) {
            return Ok(Home::Family(family.clone()));
        }
        let py = x.py();
        let module = x.get_type().module()?;
        let module = module.to_cow()?;
        let top = module.split('.').next().unwrap_or_default();
        let make = match top {
            "polars" => Some("Series"),
            "pyarrow" => Some("array"),
            "pandas" => return Ok(Home::Family(Family::NumPy)),
            _ => None,
        };
        Ok(match make.zip(numpy::module(py, top)) {
            Some((make, module)) => Home::Arrow(module.getattr(make)?),
            None => Home::Family(family.clone()),
        })
    }

    /// The answers to an operation over elements of type `dtype`; those of `missing` rows,
    /// ascending, are none.
    ///
    /// # Errors
    /// Those of the library; rows without a value where it has no word for that.
    pub(crate) fn answers(
        &self,
        py: Python<'py>,
        dtype: DType,
        column: Column,
        missing: &[usize],
        unit: Option<&Unit>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let unit = kept(unit, &column);
        let Column { op, numbers, second, .. } = column;
        let answers = |numbers: Numbers| match unit {
            Some(unit) => self.counted(py, &numbers, unit, missing),
            None => self.numbers(py, as_here(op, Some(dtype), numbers), missing),
        };
        let first = answers(numbers)?;
        match second {
            None => Ok(first),
            Some(second) => Ok(PyTuple::new(py, [first, answers(second)?])?.into_any()),
        }
    }

    /// Integers as what they count.
    fn counted(
        &self,
        py: Python<'py>,
        numbers: &Numbers,
        unit: &Unit,
        missing: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Home::Arrow(make) => {
                let column = ArrowColumn::of_times(numbers, unit, missing)?;
                make.call1((Bound::new(py, column)?,))
            }
            Home::Family(Family::NumPy) => times::as_numpy(py, numbers, unit, missing),
            _ => times::as_objects(py, numbers, unit, missing).map(Bound::into_any),
        }
    }

    /// The keys of groups.
    ///
    /// # Errors
    /// As for [`answers`](Self::answers).
    pub(crate) fn keys(&self, py: Python<'py>, keys: &KeyValues) -> PyResult<Bound<'py, PyAny>> {
        let missing: Vec<usize> = (0..keys.len()).filter(|&i| keys.is_missing(i)).collect();
        if let Some((unit, numbers)) = keys.unit().zip(keys.numbers()) {
            return self.counted(py, numbers, unit, &missing);
        }
        if let Some(numbers) = keys.numbers() {
            // A NaN is a key of its own: one that is missing comes back as None.
            if let (Home::Family(Family::NumPy), false) = (self, missing.is_empty()) {
                return objects(py, with_nones(py, numbers, &missing)?.as_any());
            }
            return self.numbers(py, numbers.clone(), &missing);
        }
        if let (Home::Arrow(make), Some(texts)) = (self, keys.texts()) {
            return make.call1((Bound::new(py, ArrowColumn::of_texts(&texts))?,));
        }
        let items = PyList::empty(py);
        for i in 0..keys.len() {
            match (keys.text(i), keys.text_bytes(i)) {
                (Some(text), _) => items.append(PyString::new(py, text))?,
                (None, Some(bytes)) => items.append(PyBytes::new(py, bytes))?,
                (None, None) => items.append(py.None())?,
            }
        }
        match self {
            Home::Family(Family::NumPy) => objects(py, items.as_any()),
            _ => Ok(items.into_any()),
        }
    }

    fn numbers(
        &self,
        py: Python<'py>,
        mut numbers: Numbers,
        missing: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let family = match self {
            Home::Arrow(make) => {
                return match ArrowColumn::of_numbers(&numbers, missing) {
                    Some(column) => make.call1((Bound::new(py, column)?,)),
                    None => with_nones(py, &numbers, missing).map(Bound::into_any),
                };
            }
            Home::Family(family) | Home::Device(_, family) => family,
        };
        let dtype = numbers.dtype();
        match family {
            _ if missing.is_empty() => {}
            Family::Python => return with_nones(py, &numbers, missing).map(Bound::into_any),
            _ if dtype.is_float() => {
                let nan = nan(dtype).to_bits();
                let bytes = numbers.bytes_mut();
                missing.iter().for_each(|&i| Numbers::set_bits(bytes, dtype, i, nan));
            }
            Family::NumPy => return objects(py, with_nones(py, &numbers, missing)?.as_any()),
            Family::Ours => return with_nones(py, &numbers, missing).map(Bound::into_any),
            Family::Library(_) | Family::Exchange(_) => {
                return Err(PyValueError::new_err(format!(
                    "group {} has no answer, and its library has no {dtype} that says so\nhint: give the values as an array of NumPy, or ask for floats",
                    missing[0]
                )));
            }
        }
        let shape = [numbers.len()];
        match self {
            Home::Device(ordinal, _) => cuda::sent_to(py, *ordinal, family, &shape, numbers),
            _ if matches!(family, Family::Python) => list(py, &numbers, &shape, false),
            _ => one(py, family, &shape, numbers),
        }
    }
}

/// A NaN of a type of floats.
fn nan(dtype: DType) -> Scalar {
    match dtype {
        DType::F16 => Scalar::F16(f16::NAN),
        DType::BF16 => Scalar::BF16(bf16::NAN),
        DType::F32 => Scalar::F32(f32::NAN),
        _ => Scalar::F64(f64::NAN),
    }
}

/// A list in which missing rows are None.
fn with_nones<'py>(
    py: Python<'py>,
    numbers: &Numbers,
    missing: &[usize],
) -> PyResult<Bound<'py, PyList>> {
    let items = PyList::empty(py);
    for (i, scalar) in numbers.iter().enumerate() {
        match missing.binary_search(&i) {
            Ok(_) => items.append(py.None())?,
            Err(_) => items.append(plain(py, scalar)?)?,
        }
    }
    Ok(items)
}

/// A list as an array of objects of NumPy.
pub(crate) fn objects<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import(intern!(py, "numpy"))?;
    numpy.call_method1(intern!(py, "array"), (items, "object"))
}
