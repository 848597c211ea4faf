//! From the objects of a call to its answers.

use crate::answers::{self, give};
use crate::dense::Dense;
use crate::errors::OrRaise;
use crate::gather::{self, Chosen};
use crate::import::{Data, Family, Imported, import};
use crate::question::Words;
use crate::{buffer, cuda, files, quick, run};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use warpfold::{Answer, DType, NanPolicy, Op, Reduction, Scalar, bf16, f16};

/// The answers to some operations on an object, in their order.
///
/// # Errors
/// Words that mean nothing, an object that is no array, and those of the reduction.
pub(crate) fn answers<'py>(
    ops: &[Op],
    x: &Bound<'py, PyAny>,
    words: &Words<'_, 'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let imported = import(x)?;
    of_imported(x.py(), ops, &imported, words)
}

/// The answer to one operation on an object.
///
/// # Errors
/// As for [`answers`].
pub(crate) fn answer<'py>(
    op: Op,
    x: &Bound<'py, PyAny>,
    words: &Words<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(answer) = quick::answer(op, x, words) {
        return answer;
    }
    let answers = answers(&[op], x, words)?;
    answers.into_iter().next().ok_or_else(no_answer)
}

fn no_answer() -> PyErr {
    PyValueError::new_err("there is no answer")
}

/// The type of elements where it makes no difference to Python's own numbers.
const ANY: DType = DType::F64;

fn of_imported<'py>(
    py: Python<'py>,
    ops: &[Op],
    imported: &Imported<'py>,
    words: &Words<'_, 'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let family = &imported.family;
    let some = chosen(words)?;
    let unchosen = |what: &str| match &some {
        Some(_) => Err(PyTypeError::new_err(format!(
            "where and initial choose elements of arrays in the host's memory, not of {what}"
        ))),
        None => Ok(()),
    };
    let mut question = words.question(py, ops)?;
    if let Data::Frame(columns) = &imported.data {
        return of_frame(py, ops, columns, words);
    }
    let (dtype, answer) = match &imported.data {
        Data::Dense(array) => {
            let dtype = array.dtype;
            if !dtype.is_float() {
                // There are no NaNs, and nothing has to look for them.
                question = question.nan(NanPolicy::Propagate);
            }
            question = with_out(question, ops, dtype, words)?;
            (dtype, of_dense(py, &question, array, some)?)
        }
        Data::Column(column) => {
            unchosen("Arrow columns")?;
            let answer = column.answer(py, &question)?;
            (ANY, answer)
        }
        Data::Device(array) => {
            unchosen("a device")?;
            return array.answers(py, &question, family, words.out);
        }
        Data::File(file) => {
            unchosen("files")?;
            return files::answers(py, file, &question, words.out);
        }
        Data::Frame(_) => return Ok(Vec::new()),
    };
    let shape = answer.shape().to_vec();
    let columns = answer.into_columns().into_iter();
    let dtype = words.dtype.is_none().then_some(dtype);
    columns.map(|column| give(py, family, dtype, &shape, column, words.out)).collect()
}

/// The question with the type of `out`, which answers are rounded to at once.
fn with_out(
    question: Reduction,
    ops: &[Op],
    dtype: DType,
    words: &Words<'_, '_>,
) -> PyResult<Reduction> {
    let (Some(out), None) = (words.out, words.dtype) else { return Ok(question) };
    let (wanted, _) = buffer::writable(out)?;
    match ops {
        [op] if answers::type_of(*op, dtype) != wanted => Ok(question.out(wanted)),
        _ => Ok(question),
    }
}

fn of_dense(
    py: Python<'_>,
    question: &Reduction,
    array: &Dense,
    some: Option<(Option<Dense>, Option<Bound<'_, PyAny>>)>,
) -> PyResult<Answer> {
    let Some((mask, initial)) = some else {
        return run::run(py, question, [Some(&array.view()), None]);
    };
    let initial = initial.map(|initial| element(&initial, array.dtype)).transpose()?;
    gather::answer(py, question, array, &Chosen { mask: mask.as_ref(), initial })
}

/// `where` and `initial`, if they choose.
#[expect(clippy::type_complexity, reason = "the two words, both of which may be left out")]
fn chosen<'py>(
    words: &Words<'_, 'py>,
) -> PyResult<Option<(Option<Dense>, Option<Bound<'py, PyAny>>)>> {
    let mask = match words.mask {
        // `where=True` is what it is without.
        Some(mask) if mask.cast::<PyBool>().is_ok_and(|mask| mask.is_true()) => None,
        Some(mask) => match import(mask)?.data {
            Data::Dense(mask) if mask.dtype == DType::Bool => Some(mask),
            _ => return Err(PyTypeError::new_err("where must hold truth values")),
        },
        None => None,
    };
    let initial = words.initial.cloned();
    Ok((mask.is_some() || initial.is_some()).then_some((mask, initial)))
}

/// A number of Python as an element.
///
/// # Errors
/// What the type does not have.
pub(crate) fn element(x: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Scalar> {
    let refused = || {
        let given = x.repr().map_or_else(|_| String::new(), |text| text.to_string());
        PyTypeError::new_err(format!(
            "initial must be a {dtype}, as the elements are, not {given}\nhint: cast the array first"
        ))
    };
    Ok(match dtype {
        DType::F64 => Scalar::F64(x.extract().map_err(|_| refused())?),
        DType::F32 => Scalar::F32(x.extract::<f64>().map_err(|_| refused())? as f32),
        DType::F16 => Scalar::F16(f16::from_f64(x.extract().map_err(|_| refused())?)),
        DType::BF16 => Scalar::BF16(bf16::from_f64(x.extract().map_err(|_| refused())?)),
        DType::Bool => Scalar::Bool(x.extract().map_err(|_| refused())?),
        _ => {
            let whole: i128 = x.extract().map_err(|_| refused())?;
            Scalar::integer(whole, dtype).ok_or_else(refused)?
        }
    })
}

/// The answers for each column of a frame, by its name.
fn of_frame<'py>(
    py: Python<'py>,
    ops: &[Op],
    columns: &[(String, Imported<'py>)],
    words: &Words<'_, 'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let axis = words.axis.map(|axis| axis.extract::<isize>()).transpose()?;
    if let [(_, only)] = columns
        && axis.is_none()
    {
        return of_imported(py, ops, only, words);
    }
    if axis != Some(0) || words.keepdims || words.out.is_some() {
        return Err(PyTypeError::new_err(
            "a table is reduced column by column, over axis 0\nhint: say axis=0, without keepdims and out, or reduce one column",
        ));
    }
    let dicts: Vec<_> = ops.iter().map(|_| PyDict::new(py)).collect();
    for (name, column) in columns {
        let answers = of_imported(py, ops, column, words);
        let answers = answers.map_err(|error| with_note(py, error, name))?;
        for (dict, answer) in dicts.iter().zip(answers) {
            if dict.contains(name)? {
                return Err(PyValueError::new_err(format!("two columns are called {name:?}")));
            }
            dict.set_item(name, answer)?;
        }
    }
    Ok(dicts.into_iter().map(Bound::into_any).collect())
}

pub(crate) fn with_note(py: Python<'_>, error: PyErr, column: &str) -> PyErr {
    // A note that cannot be added is no reason to lose the error.
    drop(error.value(py).call_method1("add_note", (format!("in the column {column:?}"),)));
    error
}

/// The dot product of two objects.
///
/// # Errors
/// As for [`answers`]; arrays of different shapes, types or places.
pub(crate) fn dot<'py>(
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    words: &Words<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(product) = quick::dot(x, y, words) {
        return product;
    }
    let py = x.py();
    let (left, right) = (import(x)?, import(y)?);
    let mut question = words.question(py, &[Op::Dot])?;
    let family = match (&left.family, &right.family) {
        (Family::Python | Family::Ours, other) => other.clone(),
        (own, _) => own.clone(),
    };
    let (dtype, answer) = match (&left.data, &right.data) {
        (Data::Dense(left), Data::Dense(right)) => {
            question = with_out(question, &[Op::Dot], left.dtype, words)?;
            let (a, b) = (left.view(), right.view());
            (left.dtype, run::run(py, &question, [Some(&a), Some(&b)])?)
        }
        (Data::Column(left), Data::Column(right)) => match (left.only(), right.only()) {
            (Some(left), Some(right)) => {
                let answer = py.detach(|| question.run_pair(left, right)).or_raise(py)?;
                (ANY, answer)
            }
            _ => {
                return Err(PyTypeError::new_err(
                    "columns in several pieces have no dot product\nhint: join the pieces first: combine_chunks or rechunk",
                ));
            }
        },
        (Data::Device(left), Data::Device(right)) => {
            cuda::check_named(&question)?;
            if words.out.is_some() {
                return Err(cuda::no_out());
            }
            let (a, b) = (left.lent(py)?, right.lent(py)?);
            let answer = py.detach(|| question.run_pair(&a, &b)).or_raise(py)?;
            let shape = answer.shape().to_vec();
            let column = answer.into_columns().into_iter().next().ok_or_else(no_answer)?;
            let dtype = words.dtype.is_none().then(|| left.dtype());
            return left.send_back(py, &family, dtype, &shape, column);
        }
        _ => {
            return Err(PyTypeError::new_err(
                "dot takes two arrays in the host's memory, two on a device, or two columns\nhint: move both to the same place",
            ));
        }
    };
    let shape = answer.shape().to_vec();
    let column = answer.into_columns().into_iter().next().ok_or_else(no_answer)?;
    give(py, &family, words.dtype.is_none().then_some(dtype), &shape, column, words.out)
}

/// The operations that names stand for.
///
/// # Errors
/// A name of none.
pub(crate) fn operations(x: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Op)>> {
    let names: Vec<String> = match x.extract::<String>() {
        Ok(name) => vec![name],
        Err(_) => x.extract().map_err(|_| {
            PyTypeError::new_err("operations are names: \"mean\", or [\"mean\", \"std\"]")
        })?,
    };
    if names.is_empty() {
        return Err(PyValueError::new_err(
            "there is no operation to do: name one, such as \"sum\"",
        ));
    }
    names
        .into_iter()
        .map(|name| {
            let op = name.parse::<Op>().or_raise(x.py())?;
            Ok((name, op))
        })
        .collect()
}
