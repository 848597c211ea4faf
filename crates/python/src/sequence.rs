//! Python's own numbers: one, or lists and other iterables of them, nested or not.

use crate::dense::Dense;
use crate::numpy;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use warpfold::DType;

/// The depth that nested lists may have.
const MOST_AXES: usize = 64;

#[derive(Clone, Copy)]
enum Number {
    Bool(bool),
    Int(i64),
    /// Beyond i64.
    Large(u64),
    Float(f64),
    Complex(f64, f64),
}

/// The array that numbers of Python are: of truth values, of i64, of u64 if some need it,
/// or else of f64.
///
/// # Errors
/// Elements that are not numbers; lists of different lengths; integers beyond 64 bits, or
/// ones beside floats that no float is.
///
/// The flag says whether there are complex numbers: then the last axis has their parts.
pub(crate) fn import(x: &Bound<'_, PyAny>) -> PyResult<(Dense, bool)> {
    let mut found = Found::default();
    found.take(x, 0)?;
    found.dense()
}

#[derive(Default)]
struct Found {
    numbers: Vec<Number>,
    shape: Vec<usize>,
    /// Whether the depth of numbers is known.
    settled: bool,
}

impl Found {
    fn take(&mut self, x: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if let Ok(list) = x.cast_exact::<PyList>() {
            self.open(list.len(), depth)?;
            return list.iter().try_for_each(|item| self.take(&item, depth + 1));
        }
        if let Ok(tuple) = x.cast_exact::<PyTuple>() {
            self.open(tuple.len(), depth)?;
            return tuple.iter().try_for_each(|item| self.take(&item, depth + 1));
        }
        if let Some(number) = number(x)? {
            if self.settled && self.shape.len() != depth {
                return Err(ragged());
            }
            self.settled = true;
            self.numbers.push(number);
            return Ok(());
        }
        // A frame that is yet to be computed seems to have items, and refuses them.
        let name = x.get_type().name()?;
        if x.is_instance_of::<PyString>() || name == "LazyFrame" {
            return Err(not_a_number(x));
        }
        // Any other iterable. Its items are counted before they are looked at.
        let Ok(items) = x.try_iter() else { return Err(not_a_number(x)) };
        let items: Vec<_> = items.collect::<PyResult<_>>()?;
        self.open(items.len(), depth)?;
        items.iter().try_for_each(|item| self.take(item, depth + 1))
    }

    /// Goes into a list.
    fn open(&mut self, len: usize, depth: usize) -> PyResult<()> {
        if depth >= MOST_AXES {
            return Err(PyValueError::new_err(format!(
                "lists are nested more than {MOST_AXES} deep"
            )));
        }
        match self.shape.get(depth) {
            Some(&known) if known == len => Ok(()),
            Some(_) => Err(ragged()),
            None if self.settled => Err(ragged()),
            None => {
                self.shape.push(len);
                // Nothing is in an empty list: what is beside it must be empty, too.
                self.settled |= len == 0;
                Ok(())
            }
        }
    }

    fn dense(self) -> PyResult<(Dense, bool)> {
        let numbers = self.numbers;
        if numbers.iter().any(|number| matches!(number, Number::Complex(..))) {
            let mut words = Vec::with_capacity(2 * numbers.len());
            for number in numbers {
                let (real, imaginary) = match number {
                    Number::Complex(real, imaginary) => (Number::Float(real), imaginary),
                    real => (real, 0.0),
                };
                words.extend([bits(real, DType::F64)?, imaginary.to_bits()]);
            }
            let shape = [&self.shape[..], &[2]].concat();
            return Dense::of_words(DType::F64, words, shape).map(|dense| (dense, true));
        }
        Self::real(&numbers, self.shape).map(|dense| (dense, false))
    }

    fn real(numbers: &[Number], shape: Vec<usize>) -> PyResult<Dense> {
        let dtype = numbers.iter().try_fold(DType::Bool, |so_far, number| match (so_far, number) {
            (DType::F64, _) | (_, Number::Float(_) | Number::Complex(..)) => Some(DType::F64),
            (_, Number::Large(_)) => Some(DType::U64),
            (DType::U64, _) => Some(DType::U64),
            (_, Number::Int(_)) => Some(DType::I64),
            (so_far, Number::Bool(_)) => Some(so_far),
        });
        let dtype = match dtype {
            // As in NumPy, and for the mean of nothing.
            _ if numbers.is_empty() => DType::F64,
            dtype => dtype.unwrap_or(DType::F64),
        };
        if dtype == DType::Bool {
            let mut words = vec![0u64; numbers.len().div_ceil(8)];
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            for (byte, number) in bytes.iter_mut().zip(numbers) {
                *byte = u8::from(matches!(number, Number::Bool(true)));
            }
            return Dense::of_words(dtype, words, shape);
        }
        let words = numbers.iter().map(|&number| bits(number, dtype));
        Dense::of_words(dtype, words.collect::<PyResult<_>>()?, shape)
    }
}

/// The bits of a number as an element of type `dtype`.
fn bits(number: Number, dtype: DType) -> PyResult<u64> {
    let inexact = |int: String| {
        PyOverflowError::new_err(format!(
            "the integer {int} stands beside floats, but no float is equal to it\nhint: round it with float() if that is meant"
        ))
    };
    Ok(match (number, dtype) {
        (Number::Float(x) | Number::Complex(x, _), _) => x.to_bits(),
        (Number::Bool(b), DType::F64) => f64::from(u8::from(b)).to_bits(),
        (Number::Int(i), DType::F64) if (i as f64) as i128 != i128::from(i) => {
            return Err(inexact(i.to_string()));
        }
        (Number::Int(i), DType::F64) => (i as f64).to_bits(),
        (Number::Large(u), DType::F64) if (u as f64) as u128 != u128::from(u) => {
            return Err(inexact(u.to_string()));
        }
        (Number::Large(u), DType::F64) => (u as f64).to_bits(),
        (Number::Bool(b), _) => u64::from(b),
        (Number::Int(i), DType::U64) if i < 0 => {
            return Err(PyOverflowError::new_err(format!(
                "no integer type of 64 bits holds {i} and an integer beyond 2**63\nhint: make one of them a float"
            )));
        }
        (Number::Int(i), _) => i.cast_unsigned(),
        (Number::Large(u), _) => u,
    })
}

/// A number of Python; `None` if it is none.
fn number(x: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
    if let Ok(x) = x.cast::<PyFloat>() {
        return Ok(Some(Number::Float(x.value())));
    }
    if let Ok(x) = x.cast::<PyBool>() {
        return Ok(Some(Number::Bool(x.is_true())));
    }
    if x.is_instance_of::<PyInt>() {
        return integer(x).map(Some);
    }
    if let Ok(x) = x.cast::<PyComplex>() {
        return Ok(Some(Number::Complex(x.real(), x.imag())));
    }
    let py = x.py();
    if numpy::is_scalar(x) {
        let item = x.call_method0(intern!(py, "item"))?;
        return if numpy::is_scalar(&item) { Err(not_a_number(x)) } else { number(&item) };
    }
    // Arrays and lists have axes; what is a number all the same has none.
    if x.hasattr(intern!(py, "__iter__"))? && !x.hasattr(intern!(py, "__float__"))? {
        return Ok(None);
    }
    if x.getattr_opt(intern!(py, "ndim"))?.is_some_and(|n| n.extract().unwrap_or(1usize) > 0) {
        return Ok(None);
    }
    let class = x.get_type();
    let from = class.module()?;
    if ["decimal", "_decimal", "_pydecimal", "fractions"].contains(&from.to_cow()?.as_ref()) {
        return Err(not_a_number(x));
    }
    if x.hasattr(intern!(py, "__index__"))? && !x.hasattr(intern!(py, "dtype"))? {
        return integer(&x.call_method0(intern!(py, "__index__"))?).map(Some);
    }
    if x.hasattr(intern!(py, "__float__"))? && !x.hasattr(intern!(py, "__complex__"))? {
        let x: f64 = x.call_method0(intern!(py, "__float__"))?.extract()?;
        return Ok(Some(Number::Float(x)));
    }
    Ok(None)
}

fn integer(x: &Bound<'_, PyAny>) -> PyResult<Number> {
    if let Ok(i) = x.extract::<i64>() {
        return Ok(Number::Int(i));
    }
    x.extract::<u64>().map(Number::Large).map_err(|_| {
        PyOverflowError::new_err(
            "an integer does not fit 64 bits\nhint: make it a float with float() if that is meant",
        )
    })
}

fn ragged() -> PyErr {
    PyValueError::new_err("nested lists must have equal lengths at each depth")
}

fn not_a_number(x: &Bound<'_, PyAny>) -> PyErr {
    let class = x.get_type();
    let name = class.fully_qualified_name().map_or_else(|_| "?".into(), |name| name.to_string());
    let hint = match name.as_str() {
        "str" => "a path is read with warpfold.open(path); text becomes numbers with float()",
        "NoneType" => "use float(\"nan\") with nan=\"omit\" for a missing value",
        "decimal.Decimal" | "fractions.Fraction" => {
            "floats are binary: convert with float() if rounding is meant"
        }
        name if name.ends_with(".LazyFrame") => {
            "a frame that is yet to be computed has no rows: give x.collect()"
        }
        name if name.ends_with(".Expr") => {
            "an expression has no elements: give the column that a frame makes of it, frame.select(x)"
        }
        _ => "give an array, numbers, or what has __dlpack__, a buffer or __arrow_c_array__",
    };
    PyTypeError::new_err(format!("{name} is not a number or an array of numbers\nhint: {hint}"))
}
