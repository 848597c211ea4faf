//! Answers as objects of Python: of the library that the array came from.

use crate::array::Array;
use crate::import::Family;
use crate::{buffer, complex, numpy, times};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyList, PyTuple};
use warpfold::{Column, DType, Numbers, Op, Scalar, Unit};

/// A number as Python's.
///
/// # Errors
/// None that can happen.
pub(crate) fn plain<'py>(py: Python<'py>, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    Ok(match scalar {
        Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any(),
        Scalar::Int(i, _) => i.into_pyobject(py)?.into_any(),
        Scalar::UInt(u, _) => u.into_pyobject(py)?.into_any(),
        float => PyFloat::new(py, float.to_f64()).into_any(),
    })
}

/// Numbers as nested lists. Of complex ones the parts follow each other.
///
/// # Errors
/// Those of Python.
pub(crate) fn list<'py>(
    py: Python<'py>,
    numbers: &Numbers,
    shape: &[usize],
    is_complex: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut numbers = numbers.iter();
    let mut next = || match (numbers.next(), is_complex) {
        (Some(scalar), false) => plain(py, scalar),
        (Some(real), true) => {
            let imaginary = numbers.next().map_or(0.0, Scalar::to_f64);
            Ok(PyComplex::from_doubles(py, real.to_f64(), imaginary).into_any())
        }
        (None, _) => Err(PyValueError::new_err("an answer is missing: please report it")),
    };
    nested(py, shape, &mut next)
}

fn nested<'py>(
    py: Python<'py>,
    shape: &[usize],
    next: &mut dyn FnMut() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((&len, inner)) = shape.split_first() else { return next() };
    let items = PyList::empty(py);
    for _ in 0..len {
        items.append(nested(py, inner, next)?)?;
    }
    Ok(items.into_any())
}

/// Whether the answers to an operation are what Python and the array API give as signed
/// integers, and the library without a sign: positions, counts, and sums of truth values.
fn is_signed_here(op: Op, dtype: DType) -> bool {
    match op {
        Op::Count | Op::CountNan | Op::CountNonzero | Op::ArgMin | Op::ArgMax | Op::ArgMinMax => {
            true
        }
        Op::Sum | Op::Prod | Op::SumSq | Op::Norm1 | Op::Dot => dtype == DType::Bool,
        _ => false,
    }
}

/// The type that the answers to an operation have in Python where none is asked for.
pub(crate) fn type_of(op: Op, dtype: DType) -> DType {
    if is_signed_here(op, dtype) { DType::I64 } else { op.answer_type(dtype) }
}

/// The answers of operations: of one that was named alone its own, else a dictionary.
///
/// # Errors
/// Those of the answers; an operation that is named twice.
pub(crate) fn given<'py>(
    py: Python<'py>,
    named: &[(String, Op)],
    single: bool,
    mut answers: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyAny>> {
    if single && let Some(answers) = answers.next() {
        return answers;
    }
    let dict = PyDict::new(py);
    for ((name, _), answers) in named.iter().zip(answers) {
        if dict.contains(name)? {
            return Err(PyValueError::new_err(format!("the operation {name:?} is named twice")));
        }
        dict.set_item(name, answers?)?;
    }
    Ok(dict.into_any())
}

/// The same integers with a sign: no count or position has 64 bits.
fn signed(numbers: Numbers) -> Numbers {
    let mut signed = Numbers::zeros(DType::I64, numbers.len());
    signed.bytes_mut().copy_from_slice(numbers.bytes());
    signed
}

/// The answers to an operation over elements of type `dtype`, as Python has them; without a type
/// the caller has asked for that of the answers.
pub(crate) fn as_here(op: Op, dtype: Option<DType>, numbers: Numbers) -> Numbers {
    let is_signed = dtype.is_some_and(|dtype| is_signed_here(op, dtype));
    if numbers.dtype() == DType::U64 && is_signed { signed(numbers) } else { numbers }
}

/// Puts the answers of one part of the outputs behind those of the parts before.
///
/// # Errors
/// Answers to another question.
pub(crate) fn append(all: &mut Option<Vec<Column>>, made: Vec<Column>) -> warpfold::Result<()> {
    let Some(all) = all else {
        *all = Some(made);
        return Ok(());
    };
    all.iter_mut().zip(&made).try_for_each(|(all, made)| all.append(made))
}

/// The answers to one operation: numbers for each output, or a pair of such, as [`as_here`] has
/// them.
///
/// # Errors
/// Those of the caller's library; an `out` of another shape.
pub(crate) fn give<'py>(
    py: Python<'py>,
    family: &Family<'py>,
    dtype: Option<DType>,
    shape: &[usize],
    column: Column,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Column { op, numbers, second, .. } = column;
    let numbers = match out.map(buffer::writable_type).transpose()? {
        // Counts without a sign are asked for.
        Some(wanted) if wanted == numbers.dtype() => numbers,
        _ => as_here(op, dtype, numbers),
    };
    match (second, out) {
        (None, Some(out)) => {
            buffer::write(out, shape, &numbers, false)?;
            Ok(out.clone())
        }
        (None, None) => one(py, family, shape, numbers),
        (Some(second), None) => {
            let second = one(py, family, shape, as_here(op, dtype, second))?;
            let pair = [one(py, family, shape, numbers)?, second];
            Ok(PyTuple::new(py, pair)?.into_any())
        }
        (Some(_), Some(_)) => {
            Err(PyValueError::new_err(format!("{op} gives two answers, and out takes one")))
        }
    }
}

/// The unit, if the answers are integers that count it.
pub(crate) fn kept<'a>(unit: Option<&'a Unit>, column: &Column) -> Option<&'a Unit> {
    let (numbers, wide) = (&column.numbers, column.numbers.decimals().is_some());
    unit.filter(|unit| unit.is_kept_by(column.op) && (wide || !numbers.dtype().is_float()))
}

/// As [`give`]; answers that count something as Python has it: decimals, dates and times.
///
/// # Errors
/// As for [`give`]; an `out` of integers for decimals.
pub(crate) fn give_counted<'py>(
    py: Python<'py>,
    unit: Option<&Unit>,
    family: &Family<'py>,
    dtype: Option<DType>,
    shape: &[usize],
    column: Column,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(unit) = kept(unit, &column).filter(|unit| unit.is_number() || out.is_none()) else {
        return give(py, family, dtype, shape, column, out);
    };
    if out.is_some() {
        return Err(PyTypeError::new_err(
            "decimals are no integers\nhint: leave out the word out, or ask for floats: dtype=\"float64\"",
        ));
    }
    let objects = |numbers: &Numbers| -> PyResult<Bound<'py, PyAny>> {
        let all = times::as_objects(py, numbers, unit, &[])?;
        if shape.is_empty() { all.get_item(0) } else { Ok(all.into_any()) }
    };
    match &column.second {
        None => objects(&column.numbers),
        Some(second) => {
            Ok(PyTuple::new(py, [objects(&column.numbers)?, objects(second)?])?.into_any())
        }
    }
}

/// Numbers in some shape, as an array or a scalar of a library.
///
/// # Errors
/// Those of the library.
pub(crate) fn one<'py>(
    py: Python<'py>,
    family: &Family<'py>,
    shape: &[usize],
    numbers: Numbers,
) -> PyResult<Bound<'py, PyAny>> {
    any(py, family, shape, numbers, false)
}

/// The same for complex numbers, whose parts follow each other.
///
/// # Errors
/// Those of the library.
pub(crate) fn one_complex<'py>(
    py: Python<'py>,
    family: &Family<'py>,
    shape: &[usize],
    parts: Numbers,
) -> PyResult<Bound<'py, PyAny>> {
    any(py, family, shape, parts, true)
}

fn any<'py>(
    py: Python<'py>,
    family: &Family<'py>,
    shape: &[usize],
    numbers: Numbers,
    is_complex: bool,
) -> PyResult<Bound<'py, PyAny>> {
    match family {
        Family::Library(from_dlpack) => {
            let array = Bound::new(py, Array::new(numbers, shape.to_vec(), is_complex))?;
            from_dlpack.call1((array,))
        }
        Family::Exchange(exchange) => {
            exchange.array(py, Array::new(numbers, shape.to_vec(), is_complex).exportable(false))
        }
        Family::NumPy if is_complex => {
            let name = complex::name(numbers.dtype());
            if shape.is_empty() {
                let class = numpy::loaded(py).map(|numpy| numpy.getattr(name)).transpose()?;
                let number = list(py, &numbers, shape, true)?;
                return class.map_or(Ok(number.clone()), |class| class.call1((number,)));
            }
            let parts = any(py, family, &[shape, &[2]].concat(), numbers, false)?;
            let made = parts.call_method1(intern!(py, "view"), (name,))?;
            made.call_method1(intern!(py, "reshape"), (PyTuple::new(py, shape)?,))
        }
        Family::NumPy if shape.is_empty() => {
            let scalar =
                numbers.get(0).ok_or_else(|| PyValueError::new_err("there is no answer"))?;
            let class = numpy::scalar_type(py, scalar.dtype())?;
            class.call1((plain(py, scalar)?,))
        }
        Family::NumPy => numpy::array(py, shape, numbers),
        Family::Python => list(py, &numbers, shape, is_complex),
        Family::Ours if shape.is_empty() => list(py, &numbers, shape, is_complex),
        Family::Ours => {
            Ok(Bound::new(py, Array::new(numbers, shape.to_vec(), is_complex))?.into_any())
        }
    }
}
