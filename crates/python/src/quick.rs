//! The short way of common calls: an array of NumPy, few numbers, and little said but the operation and an axis. The answers are those of the general way,
//! sooner: what is exact has the same bits in any order of the elements, and positions are looked
//! for in C order.

use crate::answers::{one, type_of};
use crate::import::Family;
use crate::question::{Words, index};
use crate::{ndarray, numpy};
use bytemuck::Pod;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat};
use warpfold::{Bool8, DType, Element, FloatNumber, IntegerNumber, Number, Numbers, Op, Scatter};

/// Elements that are reduced by the functions of slices: so few that Ctrl-C can wait.
const FEW: usize = 1 << 16;

/// Elements that are reduced sooner than the interpreter's lock is let go and taken again.
const SHORT: usize = 1024;

/// Elements, and outputs along one of their axes, that are answered sooner output by output.
const FEW_ALONG: usize = 1024;
const FEW_IN_ROWS: usize = 8192;

/// Outputs along an axis that are answered sooner one by one than together: by what one takes.
fn few_outputs(op: Op, dtype: DType) -> usize {
    match op {
        Op::ArgMin | Op::ArgMax | Op::Any | Op::All | Op::CountNonzero | Op::CountNan => 128,
        Op::Min | Op::Max => 32,
        Op::Sum if !dtype.is_float() => 32,
        _ => 8,
    }
}

/// An answer, which becomes a scalar of NumPy.
enum Answer {
    Real(f64),
    Integer(i128),
    /// Where something is, or how many there are.
    Count(usize),
    Truth(bool),
}

impl Answer {
    /// The bits of the answer as a number of type `dtype`, which is that of the answers to the
    /// operation.
    fn bits(&self, dtype: DType) -> u64 {
        match *self {
            Answer::Real(x) if dtype == DType::F32 => u64::from((x as f32).to_bits()),
            Answer::Real(x) => x.to_bits(),
            Answer::Integer(i) => i as u64,
            Answer::Count(n) => n as u64,
            Answer::Truth(b) => u64::from(b),
        }
    }
}

/// What is made of elements of a type, and of the function that answers operations on them;
/// `None` for a type that goes the general way.
macro_rules! with_items {
    ($dtype:expr, $T:ident, $of:ident => $made:expr) => {
        match $dtype {
            DType::F64 => with_items!(f64, of_floats, $T, $of => $made),
            DType::F32 => with_items!(f32, of_floats, $T, $of => $made),
            DType::Bool => with_items!(Bool8, of_truths, $T, $of => $made),
            DType::I8 => with_items!(i8, of_integers, $T, $of => $made),
            DType::I16 => with_items!(i16, of_integers, $T, $of => $made),
            DType::I32 => with_items!(i32, of_integers, $T, $of => $made),
            DType::I64 => with_items!(i64, of_integers, $T, $of => $made),
            DType::U8 => with_items!(u8, of_integers, $T, $of => $made),
            DType::U16 => with_items!(u16, of_integers, $T, $of => $made),
            DType::U32 => with_items!(u32, of_integers, $T, $of => $made),
            DType::U64 => with_items!(u64, of_integers, $T, $of => $made),
            _ => None,
        }
    };
    ($t:ty, $function:ident, $T:ident, $of:ident => $made:expr) => {{
        type $T = $t;
        let $of = $function::<$T>;
        $made
    }};
}

/// The answer to an operation; `None` where the general way has to give it, or to say what is wrong.
#[inline]
pub(crate) fn answer<'py>(
    op: Op,
    x: &Bound<'py, PyAny>,
    words: &Words<'_, 'py>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let mut copy = Vec::new();
    let array = ndarray::contiguous(x, &mut copy, |dtype| words.say_little(dtype))?;
    let dtype = array.dtype;
    if !few(words, dtype, array.bytes) {
        return None;
    }
    let (py, bytes) = (x.py(), array.bytes);
    match words.axis.map(index) {
        None if !words.keepdims => {}
        Some(Some(0 | -1)) if array.shape.len() == 1 && !words.keepdims => {}
        Some(Some(axis)) => return along(py, op, &array, axis, words.keepdims),
        _ => return None,
    }
    if !array.in_order && matches!(op, Op::ArgMin | Op::ArgMax) {
        return None;
    }
    // The functions of slices keep states.
    let sums = matches!(op, Op::Sum | Op::Mean | Op::Var | Op::Std | Op::Norm2);
    if sums && bytes.len() > SHORT * dtype.size() && Scatter::of(dtype, bytes) != Scatter::Near {
        return None;
    }
    let answer = with_items!(dtype, T, of => outside::<T>(py, bytes, |items| of(op, items)))?;
    Some(scalar(py, type_of(op, dtype), answer))
}

/// Whether little is said of few elements; of threads only where functions of slices use one.
fn few(words: &Words<'_, '_>, dtype: DType, bytes: &[u8]) -> bool {
    (words.threads.is_none() || bytes.len() < warpfold::SMALL) && bytes.len() <= FEW * dtype.size()
}

/// The answers along an axis of a few elements.
fn along<'py>(
    py: Python<'py>,
    op: Op,
    array: &ndarray::Contiguous<'_>,
    axis: isize,
    keepdims: bool,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let (dtype, ndim) = (array.dtype, array.shape.len());
    let axis = if axis < 0 { axis.checked_add_unsigned(ndim)? } else { axis };
    let axis = usize::try_from(axis).ok().filter(|&axis| axis < ndim)?;
    let elements = array.bytes.len() / dtype.size();
    let len = array.shape[axis].cast_unsigned();
    let outputs = elements.checked_div(len)?;
    // The bytes of memory are in C order of `outer`, the axis, and `inner`, and so are answers of
    // `outer` and `inner`. In Fortran's order that is so of two axes, the other way round.
    let after = match (array.in_order, ndim) {
        (true, _) => &array.shape[axis + 1..],
        (false, 2) => &array.shape[..axis],
        _ => return None,
    };
    let inner = after.iter().product::<isize>().cast_unsigned();
    let most = match op {
        // These have a state for each slice, which takes longer than to begin the general way.
        Op::Var | Op::Std | Op::Norm2 => 0,
        _ if inner == 1 && !matches!(op, Op::Sum | Op::Mean) => FEW_IN_ROWS,
        _ => FEW_ALONG,
    };
    if elements == 0 || elements > most || outputs > few_outputs(op, dtype) {
        return None;
    }
    let (own, bytes) = (type_of(op, dtype), array.bytes);
    let mut numbers = Numbers::zeros(own, outputs);
    let to = numbers.bytes_mut();
    let put = |i: usize, answer: Answer| Numbers::set_bits(to, own, i, answer.bits(own));
    with_items!(dtype, T, of => each_along::<T>(bytes, [len, inner], |items| of(op, items), put))?;
    let mut shape: Vec<usize> = array.shape.iter().map(|n| n.cast_unsigned()).collect();
    if keepdims {
        shape[axis] = 1;
    } else {
        shape.remove(axis);
    }
    Some(one(py, &Family::NumPy, &shape, numbers))
}

/// Puts what `of` makes of the elements of each output, which follow each other, or lie `inner`
/// elements apart. They are at most [`FEW_ALONG`].
fn each_along<T: Pod>(
    bytes: &[u8],
    [len, inner]: [usize; 2],
    of: impl Fn(&[T]) -> Option<Answer>,
    mut put: impl FnMut(usize, Answer),
) -> Option<()> {
    let items: &[T] = bytemuck::try_cast_slice(bytes).ok()?;
    if inner == 1 {
        for (i, row) in items.chunks_exact(len).enumerate() {
            put(i, of(row)?);
        }
        return Some(());
    }
    let mut turned = [T::zeroed(); FEW_ALONG];
    for (outer, block) in items.chunks_exact(len * inner).enumerate() {
        for (at, row) in block.chunks_exact(inner).enumerate() {
            for (i, &x) in row.iter().enumerate() {
                turned[i * len + at] = x;
            }
        }
        for (i, column) in turned[..len * inner].chunks_exact(len).enumerate() {
            put(outer * inner + i, of(column)?);
        }
    }
    Some(())
}

/// The dot product of two arrays of one axis.
#[inline]
pub(crate) fn dot<'py>(
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    words: &Words<'_, 'py>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let says_little = |dtype| words.say_little(dtype);
    let mut copies = [Vec::new(), Vec::new()];
    let [of_left, of_right] = &mut copies;
    let left = ndarray::contiguous(x, of_left, says_little)?;
    let right = ndarray::contiguous(y, of_right, says_little)?;
    let dtype = left.dtype;
    let alike = dtype == right.dtype && left.shape.len() == 1 && left.shape == right.shape;
    let all = matches!(words.axis.map(index), None | Some(Some(0 | -1))) && !words.keepdims;
    if !alike || !all || !few(words, dtype, left.bytes) {
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
        Op::Var => warpfold::var(items, 0),
        Op::Std => warpfold::std(items, 0),
        Op::Norm2 => warpfold::norm2(items),
        Op::CountNan => return Some(Answer::Count(warpfold::count_nan(items) as usize)),
        _ => return of_any(op, items),
    };
    Some(Answer::Real(real.into()))
}

fn of_integers<T>(op: Op, items: &[T]) -> Option<Answer>
where
    T: IntegerNumber<Total: Into<i128>> + Into<i128>,
{
    Some(match op {
        Op::Min => Answer::Integer(warpfold::min(items)?.into()),
        Op::Max => Answer::Integer(warpfold::max(items)?.into()),
        Op::Mean => Answer::Real(warpfold::mean(items)),
        Op::Sum => total(T::Element::DTYPE.is_signed_int(), warpfold::sum(items).into())?,
        _ => return of_any(op, items),
    })
}

fn of_truths<T: IntegerNumber<Total: Into<i128>>>(op: Op, items: &[T]) -> Option<Answer> {
    Some(match op {
        Op::Mean => Answer::Real(warpfold::mean(items)),
        Op::Sum => total(true, warpfold::sum(items).into())?,
        _ => return of_any(op, items),
    })
}

/// A total that fits 64 bits; of another the general way says what is wrong.
fn total(signed: bool, total: i128) -> Option<Answer> {
    let fits = if signed { i64::try_from(total).is_ok() } else { u64::try_from(total).is_ok() };
    fits.then_some(Answer::Integer(total))
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
