//! Reductions of complex numbers by their parts: an array of them is one of floats with an axis more,
//! the last, of length 2.

use crate::answers::{give, one_complex};
use crate::cast::{bits_of, room};
use crate::dense::Dense;
use crate::errors::OrRaise;
use crate::gather::{self, Chosen};
use crate::import::Family;
use crate::question::{Words, name_of_type};
use crate::walk::{Axis, Walk};
use crate::{buffer, run};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyComplex;
use warpfold::{Answer, Column, DType, NanPolicy, Op, Reduction, Scalar};

/// The name of complex numbers with parts of a type.
pub(crate) fn name(parts: DType) -> &'static str {
    if parts == DType::F32 { "complex64" } else { "complex128" }
}

/// The refusal of complex numbers where they are no numbers.
pub(crate) fn refused(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} takes real numbers, not complex ones\nhint: reduce the parts, x.real and x.imag"
    ))
}

/// The answers to some operations on complex numbers.
///
/// # Errors
/// An operation that they do not have; those of the reduction.
pub(crate) fn answers<'py>(
    py: Python<'py>,
    ops: &[Op],
    pairs: &Dense,
    family: &Family<'py>,
    words: &Words<'_, 'py>,
    chosen: (Option<Dense>, Option<Bound<'py, PyAny>>),
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (mask, initial) = chosen;
    let asked = Asked { py, pairs, words, mask: mask.as_ref(), initial: initial.as_ref() };
    ops.iter().map(|&op| asked.answer(op, family)).collect()
}

struct Asked<'a, 'py> {
    py: Python<'py>,
    pairs: &'a Dense,
    words: &'a Words<'a, 'py>,
    mask: Option<&'a Dense>,
    initial: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Asked<'_, 'py> {
    fn answer(&self, op: Op, family: &Family<'py>) -> PyResult<Bound<'py, PyAny>> {
        match op {
            Op::Sum | Op::Mean => self.complex(op, family),
            Op::Any | Op::All | Op::CountNonzero | Op::Count => {
                self.real(op, &marks(self.pairs, |[re, im]| re != 0.0 || im != 0.0)?, family)
            }
            Op::CountNan => self.real(
                Op::CountNonzero,
                &marks(self.pairs, |[re, im]| re.is_nan() || im.is_nan())?,
                family,
            ),
            Op::SumSq | Op::Norm2 => self.real(op, self.pairs, family),
            Op::NormInf => self.real(op, &self.magnitudes(self.pairs.dtype)?, family),
            Op::Norm1 => self.real(op, &self.magnitudes(DType::F64)?, family),
            Op::Var | Op::Std => Err(PyTypeError::new_err(format!(
                "{op} takes real numbers, not complex ones\nhint: the variance is that of x.real and that of x.imag, added"
            ))),
            _ => Err(refused(op.name())),
        }
    }

    /// Sums and means, each part of which is one.
    fn complex(&self, op: Op, family: &Family<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, words) = (self.py, self.words);
        let parts = match words.dtype {
            None => self.pairs.dtype,
            Some(dtype) => parts_named(dtype)?,
        };
        let parts = match words.out {
            Some(out) if words.dtype.is_none() => buffer::writable_type(out)?,
            _ => parts,
        };
        let plain = Words { dtype: None, out: None, ..*words };
        let mut question = plain.question(py, &[op])?;
        if parts != self.pairs.dtype {
            question = question.out(parts);
        }
        let axes = self.axes(&question, self.pairs)?;
        let initial = match self.initial {
            Some(initial) => self.parts_of(initial)?.to_vec(),
            None => Vec::new(),
        };
        let answer = self.run(question.axes(axes), self.pairs, initial)?;
        let mut shape = answer.shape().to_vec();
        let column = answer.into_columns().into_iter().next().ok_or_else(no_answer)?;
        if let Some(out) = words.out {
            buffer::write(out, &shape, &column.numbers, true)?;
            return Ok(out.clone());
        }
        shape.pop();
        one_complex(py, family, &shape, column.numbers)
    }

    /// What is real: of `array`, which has one element for each number, or else its two parts.
    fn real(&self, op: Op, array: &Dense, family: &Family<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, words) = (self.py, self.words);
        if self.initial.is_some() {
            return Err(refused("initial"));
        }
        let mut question = words.question(py, &[op])?;
        let own = self.pairs.dtype;
        let is_float = array.dtype.is_float();
        match words.out {
            Some(out) if words.dtype.is_none() => {
                question = question.out(buffer::writable_type(out)?);
            }
            _ if is_float && words.dtype.is_none() => question = question.out(own),
            _ => {}
        }
        let mut axes = self.axes(&question, array)?;
        let has_parts = array.shape.len() == self.pairs.shape.len();
        if has_parts {
            axes.push(array.shape.len().cast_signed() - 1);
        }
        if !is_float {
            question = question.nan(NanPolicy::Propagate);
        }
        let answer = self.run(question.axes(axes), array, Vec::new())?;
        let mut shape = answer.shape().to_vec();
        if has_parts && words.keepdims {
            shape.pop();
        }
        let Column { numbers, second, .. } =
            answer.into_columns().into_iter().next().ok_or_else(no_answer)?;
        let dtype = words.dtype.is_none().then_some(array.dtype);
        give(py, family, dtype, &shape, Column::new(op, numbers, second).or_raise(py)?, words.out)
    }

    /// The axes that are reduced, of those that the caller sees.
    fn axes(&self, question: &Reduction, array: &Dense) -> PyResult<Vec<isize>> {
        let seen = self.pairs.shape.len() - 1;
        debug_assert!(array.shape.len() >= seen);
        let reduced = question.named_axes().resolve(seen).or_raise(self.py)?;
        Ok((0..seen).filter(|&i| reduced[i]).map(usize::cast_signed).collect())
    }

    /// The answer over the numbers that are chosen. One with a NaN in either part is one.
    fn run(&self, question: Reduction, array: &Dense, initial: Vec<Scalar>) -> PyResult<Answer> {
        let omits = question.rules().nan == NanPolicy::Omit && array.dtype.is_float();
        let question = if omits { question.nan(NanPolicy::Propagate) } else { question };
        let mut mask = None;
        if omits {
            let is_number = |[re, im]: [f64; 2]| !(re.is_nan() || im.is_nan());
            mask = Some(marks(self.pairs, is_number)?);
        }
        if let Some(given) = self.mask {
            mask = Some(both(given, mask.as_ref(), &self.pairs.shape)?);
        }
        if array.shape.len() == self.pairs.shape.len() {
            mask = mask.map(Dense::with_an_axis);
        }
        if mask.is_none() && initial.is_empty() {
            return run::run(self.py, &question, [Some(&array.view()), None]);
        }
        let chosen = Chosen { mask: mask.as_ref(), initial, dtype: array.dtype };
        gather::answer(self.py, &question, array, &chosen)
    }

    /// The absolute values, each rounded once.
    fn magnitudes(&self, dtype: DType) -> PyResult<Dense> {
        let ndim = self.pairs.shape.len();
        let policy = match self.words.nan {
            Some("raise") => NanPolicy::Error,
            _ => NanPolicy::Propagate,
        };
        let question =
            Reduction::of(Op::Norm2).axes([ndim.cast_signed() - 1]).out(dtype).nan(policy);
        let answer = run::run(self.py, &question, [Some(&self.pairs.view()), None])?;
        let column = answer.into_columns().into_iter().next().ok_or_else(no_answer)?;
        let bytes = column.numbers.bytes();
        let mut words = room(dtype, column.numbers.len())?;
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Dense::of_words(dtype, words, self.pairs.shape[..ndim - 1].to_vec())
    }

    /// The parts of a number of Python, as elements.
    fn parts_of(&self, x: &Bound<'py, PyAny>) -> PyResult<[Scalar; 2]> {
        let parts = match x.cast::<PyComplex>() {
            Ok(x) => [x.real(), x.imag()],
            // What has an imaginary part converts itself, and a float loses it.
            Err(_) => match x.call_method0(intern!(self.py, "__complex__")) {
                Ok(complex) => {
                    let complex = complex.cast_into::<PyComplex>()?;
                    [complex.real(), complex.imag()]
                }
                Err(_) => {
                    let none = |_| {
                        PyTypeError::new_err(
                            "initial must be a complex number, as the elements are",
                        )
                    };
                    [x.extract::<f64>().map_err(none)?, 0.0]
                }
            },
        };
        Ok(parts.map(|x| match self.pairs.dtype {
            DType::F32 => Scalar::F32(x as f32),
            _ => Scalar::F64(x),
        }))
    }
}

fn no_answer() -> PyErr {
    PyValueError::new_err("there is no answer")
}

/// The type of the parts of the complex numbers that are asked for.
fn parts_named(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    match &*name_of_type(dtype)? {
        "complex64" => Ok(DType::F32),
        "complex" | "complex128" => Ok(DType::F64),
        other => Err(PyTypeError::new_err(format!(
            "the answer is complex, and dtype={other} is not\nhint: there are complex64 and complex128"
        ))),
    }
}

/// A truth value for each number: what `is` says of its parts.
fn marks(pairs: &Dense, is: impl Fn([f64; 2]) -> bool) -> PyResult<Dense> {
    let (dtype, size) = (pairs.dtype, pairs.dtype.size());
    let (shape, strides) = (&pairs.shape, &pairs.strides);
    let last = shape.len() - 1;
    let mut words = room(DType::Bool, shape[..last].iter().product())?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    for (byte, (step, _)) in bytes.iter_mut().zip(Walk::of(&shape[..last], &strides[..last])) {
        let part = |step: isize| {
            let at = pairs.origin().wrapping_offset(step);
            // SAFETY: it is one of the two parts of the number of an index within the shape.
            let item = unsafe { std::slice::from_raw_parts(at, size) };
            Scalar::from_bits(dtype, bits_of(item)).to_f64()
        };
        *byte = u8::from(is([part(step), part(step.wrapping_add(strides[last]))]));
    }
    Dense::of_words(DType::Bool, words, shape[..last].to_vec())
}

/// The numbers that both masks choose. The first is broadcast to the numbers' shape.
fn both(given: &Dense, other: Option<&Dense>, pairs: &[usize]) -> PyResult<Dense> {
    let shape = &pairs[..pairs.len() - 1];
    let strides = given.broadcast(shape).ok_or_else(|| gather::misfit(given, shape))?;
    let other_strides = other.map_or_else(|| vec![0; shape.len()], |other| other.strides.clone());
    let axes = shape.iter().zip(&strides).zip(&other_strides);
    let axes = axes.map(|((&len, &step), &other_step)| Axis { len, step, other_step });
    let mut words = room(DType::Bool, shape.iter().product())?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    for (byte, (step, other_step)) in bytes.iter_mut().zip(Walk::new(axes.collect())) {
        let of = |mask: &Dense, step: isize| {
            // SAFETY: it is the truth value of an index within the shape, which the masks have or
            // are broadcast to.
            unsafe { mask.origin().wrapping_offset(step).read() != 0 }
        };
        *byte = u8::from(of(given, step) && other.is_none_or(|other| of(other, other_step)));
    }
    Dense::of_words(DType::Bool, words, shape.to_vec())
}
