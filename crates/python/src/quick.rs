//! The short way of common calls: numbers that lie one after the other in an array of NumPy, few of
//! them, and little said but the operation. The answers are those of the general way, sooner: what
//! is exact has the same bits in any order of the elements, and positions are looked for in C order.

use crate::question::Words;
use crate::{ndarray, numpy};
use bytemuck::Pod;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat};
use warpfold::{Bool8, DType, FloatNumber, IntegerNumber, Number, Op};

/// Elements that are reduced by the functions of slices: so few that Ctrl-C can wait.
const FEW: usize = 1 << 16;

/// Elements that are reduced sooner than the interpreter's lock is let go and taken again.
const SHORT: usize = 1024;

/// An answer, which becomes a scalar of NumPy.
enum Answer {
    Real(f64),
    Integer(i128),
    /// Where something is, or how many there are.
    Count(usize),
    Truth(bool),
}

/// The answer to an operation; `None` where the general way has to give it, or to say what is wrong.
#[inline]
pub(crate) fn answer<'py>(
    op: Op,
    x: &Bound<'py, PyAny>,
    words: &Words<'_, 'py>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let array = ndarray::contiguous(x)?;
    let dtype = array.dtype;
    if !words.say_little(array.shape.len(), dtype) || array.bytes.len() > FEW * dtype.size() {
        return None;
    }
    if !array.in_order && matches!(op, Op::ArgMin | Op::ArgMax) {
        return None;
    }
    let (py, bytes) = (x.py(), array.bytes);
    let answer = match dtype {
        DType::F64 => outside::<f64>(py, bytes, |items| of_floats(op, items)),
        DType::F32 => outside::<f32>(py, bytes, |items| of_floats(op, items)),
        DType::Bool => outside::<Bool8>(py, bytes, |items| of_any(op, items)),
        DType::I8 => outside::<i8>(py, bytes, |items| of_integers(op, items)),
        DType::I16 => outside::<i16>(py, bytes, |items| of_integers(op, items)),
        DType::I32 => outside::<i32>(py, bytes, |items| of_integers(op, items)),
        DType::I64 => outside::<i64>(py, bytes, |items| of_integers(op, items)),
        DType::U8 => outside::<u8>(py, bytes, |items| of_integers(op, items)),
        DType::U16 => outside::<u16>(py, bytes, |items| of_integers(op, items)),
        DType::U32 => outside::<u32>(py, bytes, |items| of_integers(op, items)),
        DType::U64 => outside::<u64>(py, bytes, |items| of_integers(op, items)),
        _ => None,
    };
    Some(scalar(py, dtype, answer?))
}

/// The dot product of two arrays of one axis.
#[inline]
pub(crate) fn dot<'py>(
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    words: &Words<'_, 'py>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let (left, right) = (ndarray::contiguous(x)?, ndarray::contiguous(y)?);
    let dtype = left.dtype;
    let alike = dtype == right.dtype && left.shape.len() == 1 && left.shape == right.shape;
    if !alike || !words.say_little(1, dtype) || left.bytes.len() > FEW * dtype.size() {
        return None;
    }
    let py = x.py();
    let product = match dtype {
        DType::F64 => outside::<f64>(py, left.bytes, |items| of_pairs(items, right.bytes)),
        DType::F32 => outside::<f32>(py, left.bytes, |items| of_pairs(items, right.bytes)),
        _ => None,
    };
    Some(scalar(py, dtype, product?))
}

fn scalar<'py>(py: Python<'py>, dtype: DType, answer: Answer) -> PyResult<Bound<'py, PyAny>> {
    match answer {
        Answer::Real(x) => numpy::scalar_type(py, dtype)?.call1((PyFloat::new(py, x),)),
        Answer::Integer(i) => numpy::scalar_type(py, dtype)?.call1((i,)),
        Answer::Count(n) => numpy::count(py, n),
        Answer::Truth(b) => numpy::scalar_type(py, DType::Bool)?.call1((PyBool::new(py, b),)),
    }
}

/// What `of` makes of elements, without the interpreter's lock where that pays.
fn outside<T: Pod + Sync>(
    py: Python<'_>,
    bytes: &[u8],
    of: impl Fn(&[T]) -> Option<Answer> + Sync,
) -> Option<Answer> {
    let items: &[T] = bytemuck::try_cast_slice(bytes).ok()?;
    if items.len() <= SHORT { of(items) } else { py.detach(|| of(items)) }
}

fn of_floats<T: FloatNumber + Into<f64>>(op: Op, items: &[T]) -> Option<Answer> {
    let real: T = match op {
        Op::Sum => warpfold::sum(items),
        Op::Mean => warpfold::mean(items),
        Op::Min => warpfold::min(items)?,
        Op::Max => warpfold::max(items)?,
        Op::Var => warpfold::var(items),
        Op::Std => warpfold::std(items),
        Op::Norm2 => warpfold::norm2(items),
        _ => return of_any(op, items),
    };
    Some(Answer::Real(real.into()))
}

fn of_integers<T: IntegerNumber + Into<i128>>(op: Op, items: &[T]) -> Option<Answer> {
    Some(match op {
        Op::Min => Answer::Integer(warpfold::min(items)?.into()),
        Op::Max => Answer::Integer(warpfold::max(items)?.into()),
        _ => return of_any(op, items),
    })
}

fn of_any<T: Number>(op: Op, items: &[T]) -> Option<Answer> {
    Some(match op {
        Op::ArgMin => Answer::Count(warpfold::argmin(items)?),
        Op::ArgMax => Answer::Count(warpfold::argmax(items)?),
        Op::Any => Answer::Truth(warpfold::any(items)),
        Op::All => Answer::Truth(warpfold::all(items)),
        Op::CountNonzero => Answer::Count(warpfold::count_nonzero(items) as usize),
        _ => return None,
    })
}

fn of_pairs<T: FloatNumber + Pod + Into<f64>>(left: &[T], right: &[u8]) -> Option<Answer> {
    let right = bytemuck::try_cast_slice(right).ok()?;
    warpfold::dot(left, right).ok().map(|product| Answer::Real(product.into()))
}
