//! From the objects of a call to its answers.

use crate::answers::{self, give, give_counted};
use crate::cast::{common, copied};
use crate::dense::{Dense, broadcast_shape};
use crate::dlpack::Exchange;
use crate::errors::{OrRaise, with_note};
use crate::gather::{self, Chosen};
use crate::home::Home;
use crate::import::{Data, Family, Imported, import};
use crate::numpy::{self, long_name};
use crate::question::Words;
use crate::table::{self, Matrix};
use crate::{buffer, complex, cuda, files, quick, run};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};
use warpfold::{Answer, DType, Device, Error, NanPolicy, Op, Reduction, Scalar, View, bf16, f16};

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
    match &imported.data {
        Data::Frame(columns) => of_frame(x, ops, columns, words),
        _ => of_imported(x.py(), ops, &imported, words),
    }
}

/// What Dask will answer when it is asked for it, of a lazy array or two of its own; `None` for other
/// objects.
///
/// # Errors
/// Those of the function of `warpfold.dask`.
pub(crate) fn lazy<'py>(
    ops: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    y: Option<&Bound<'py, PyAny>>,
    words: &Words<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = x.py();
    if ![Some(x), y].into_iter().flatten().any(is_lazy) {
        return Ok(None);
    }
    if words.mask.is_some() || words.initial.is_some() || words.out.is_some() {
        return Err(PyTypeError::new_err(
            "where, initial and out are for arrays in memory, and this one is Dask's\nhint: choose by dask.array.where(mask, x, nan) and nan=\"omit\"",
        ));
    }
    let said = PyDict::new(py);
    let objects = [("axis", words.axis), ("dtype", words.dtype), ("ddof", words.ddof)];
    let more = [("correction", words.correction), ("y", y)];
    for (name, value) in objects.into_iter().chain(more) {
        said.set_item(name, value)?;
    }
    said.set_item("keepdims", words.keepdims)?;
    said.set_item("nan", words.nan)?;
    said.set_item("device", words.device)?;
    said.set_item("threads", words.threads.map(|threads| threads.0))?;
    let reduce = py.import("warpfold.dask")?.getattr("reduce")?;
    reduce.call((x, ops), Some(&said)).map(Some)
}

/// Whether an object is a collection of Dask's. One of xarray may hold such an array, or not.
fn is_lazy(x: &Bound<'_, PyAny>) -> bool {
    let (py, class) = (x.py(), x.get_type());
    // NumPy's own arrays and what has functions of C are not, and to look for a name takes long.
    !numpy::is_exact_array(x)
        && Exchange::of(x).is_none()
        && class.hasattr(intern!(py, "__dask_graph__")).unwrap_or(false)
        && !x.getattr(intern!(py, "chunks")).is_ok_and(|chunks| chunks.is_none())
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
    if let Some(later) = lazy(&PyString::new(x.py(), op.name()).into_any(), x, None, words)? {
        return Ok(later);
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
    if let Data::Device(array) = &imported.data {
        return on_device(py, ops, array, family, words);
    }
    let some = chosen(words)?;
    let unchosen = |what: &str| match &some {
        Some(_) => Err(PyTypeError::new_err(format!(
            "where and initial choose elements of arrays in the host's memory, not of {what}"
        ))),
        None => Ok(()),
    };
    if let Data::Complex(pairs) = &imported.data {
        return complex::answers(py, ops, pairs, family, words, some.unwrap_or_default());
    }
    let mut question = words.question(py, ops)?;
    let mut unit = None;
    let (dtype, answer) = match &imported.data {
        Data::Dense(array) => {
            let dtype = array.dtype;
            if !dtype.is_float() {
                // There are no NaNs, and nothing has to look for them.
                question = question.nan(NanPolicy::Propagate);
            }
            question = with_out(question, ops, dtype, words)?;
            (dtype, of_dense(py, &question, ops, array, some)?)
        }
        Data::Column(column) => {
            unchosen("Arrow columns")?;
            let (answer, of_decimals) = column.answer(py, &question)?;
            unit = of_decimals;
            (ANY, answer)
        }
        Data::File(file) => {
            unchosen("files")?;
            return files::answers(py, file, &question, words.out);
        }
        Data::Frame(_) | Data::Complex(_) | Data::Device(_) => return Ok(Vec::new()),
    };
    let shape = answer.shape().to_vec();
    let columns = answer.into_columns().into_iter();
    let dtype = words.dtype.is_none().then_some(dtype);
    let unit = unit.as_ref();
    columns.map(|column| give_counted(py, unit, family, dtype, &shape, column, words.out)).collect()
}

/// The answers about an array of a device: those that it does not make are finished on the host, and brought to it.
fn on_device<'py>(
    py: Python<'py>,
    ops: &[Op],
    array: &cuda::DeviceArray,
    family: &Family<'py>,
    words: &Words<'_, 'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let question = words.question(py, ops)?;
    cuda::check_named(&question)?;
    if words.out.is_some() {
        return Err(cuda::no_out());
    }
    let marks = words.mask.filter(|mask| !mask.cast::<PyBool>().is_ok_and(|mask| mask.is_true()));
    let chooses = marks.is_some() || words.initial.is_some();
    let there = match (chooses, marks.map(|mask| import(mask)).transpose()?) {
        (true, None) => Some(None),
        (true, Some(Imported { data: Data::Device(marks), .. })) => Some(Some(marks)),
        _ => None,
    };
    let first = words.initial.map(|x| element(x, array.dtype())).transpose().ok();
    let chosen = there
        .zip(first)
        .and_then(|(marks, first)| array.chosen(marks.as_ref(), first, question.rules().out));
    let mut answers = match chooses && chosen.is_none() {
        true => ops.iter().map(|_| None).collect(),
        false => array.answers(py, &question, family, chosen.as_ref())?,
    };
    let lacking = ops.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
    let rest: Vec<Op> = lacking.map(|(&op, _)| op).collect();
    if !rest.is_empty() {
        let question = words.question(py, &rest)?;
        let answer = match self::chosen(words)? {
            None => array.on_host(py, question)?,
            some => of_dense(py, &question.device(Device::Cpu), &rest, &array.copied(py)?, some)?,
        };
        let shape = answer.shape().to_vec();
        // Of a type that was asked for, answers have that.
        let dtype = words.dtype.is_none().then(|| array.dtype());
        let mut columns = answer.into_columns().into_iter();
        for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
            let column = columns.next().ok_or_else(no_answer)?;
            *answer = Some(array.send_back(py, family, dtype, &shape, column)?);
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

/// The question with the type of `out`, which answers are rounded to at once.
fn with_out(
    question: Reduction,
    ops: &[Op],
    dtype: DType,
    words: &Words<'_, '_>,
) -> PyResult<Reduction> {
    let (Some(out), None) = (words.out, words.dtype) else { return Ok(question) };
    let wanted = buffer::writable_type(out)?;
    match ops {
        [op] if answers::type_of(*op, dtype) != wanted => Ok(question.out(wanted)),
        _ => Ok(question),
    }
}

fn of_dense(
    py: Python<'_>,
    question: &Reduction,
    ops: &[Op],
    array: &Dense,
    some: Option<(Option<Dense>, Option<Bound<'_, PyAny>>)>,
) -> PyResult<Answer> {
    let Some((mask, initial)) = some else {
        return run::run(py, question, [Some(&array.view()), None]);
    };
    let (initial, dtype) = match &initial {
        Some(initial) => {
            let (initial, dtype) = first_term(initial, array.dtype, ops)?;
            (vec![initial], dtype)
        }
        None => (Vec::new(), array.dtype),
    };
    let mask = mask.as_ref();
    let engine = dtype == array.dtype && !ops.iter().any(|op| op.kind().has_positions());
    let (takes, first) = (ops.iter().all(|op| TAKERS.contains(op)), initial.first().copied());
    if engine && (takes || first.is_none()) {
        let question = first.map_or_else(|| question.clone(), |x| with_initial(question, x));
        return match mask {
            None => run::run(py, &question, [Some(&array.view()), None]),
            Some(mask) => {
                let strides = mask
                    .broadcast(&array.shape)
                    .ok_or_else(|| gather::misfit(mask, &array.shape))?;
                // SAFETY: the mask was broadcast to the array's shape: every index leads to one of
                // its elements, which are borrowed for as long.
                let marks =
                    unsafe { View::from_raw(DType::Bool, mask.origin(), &array.shape, &strides) };
                run::marked(py, &question, &array.view(), &marks)
            }
        };
    }
    gather::answer(py, question, array, &Chosen { mask, initial, dtype })
}

/// The question with an element as its initial value.
fn with_initial(question: &Reduction, element: Scalar) -> Reduction {
    let question = question.clone();
    match element {
        Scalar::Bool(x) => question.initial(x),
        Scalar::Int(x, _) => question.initial(x),
        Scalar::UInt(x, _) => question.initial(x),
        float => question.initial(float.to_f64()),
    }
}

/// Operations that reductions take an initial value for.
const TAKERS: [Op; 7] = [Op::Sum, Op::Prod, Op::Min, Op::Max, Op::MinMax, Op::Range, Op::NormInf];

/// `initial`, and the type of elements that it is one of: totals of integers begin with any integer
/// of their answers' type.
fn first_term(x: &Bound<'_, PyAny>, dtype: DType, ops: &[Op]) -> PyResult<(Scalar, DType)> {
    match (element(x, dtype), ops) {
        (Err(_), [Op::Sum | Op::Prod]) if !dtype.is_float() => {
            let wide = answers::type_of(ops[0], dtype);
            element(x, wide).map(|initial| (initial, wide))
        }
        (initial, _) => initial.map(|initial| (initial, dtype)),
    }
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
            Data::Device(on) if on.dtype() == DType::Bool => Some(on.copied(mask.py())?),
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
            "initial must be a number of type {}, not {given}\nhint: cast the array first, as x.astype(\"float64\")",
            long_name(dtype)
        ))
    };
    Ok(match dtype {
        DType::F64 => Scalar::F64(x.extract().map_err(|_| refused())?),
        DType::F32 => Scalar::F32(x.extract::<f64>().map_err(|_| refused())? as f32),
        DType::F16 => Scalar::F16(f16::from_f64(x.extract().map_err(|_| refused())?)),
        DType::BF16 => Scalar::BF16(bf16::from_f64(x.extract().map_err(|_| refused())?)),
        _ => whole(x).and_then(|whole| Scalar::integer(whole, dtype)).ok_or_else(refused)?,
    })
}

/// The integer that a number of Python or NumPy is equal to.
fn whole(x: &Bound<'_, PyAny>) -> Option<i128> {
    // Those of Python first: what an object is not takes an exception to find out.
    if x.is_exact_instance_of::<PyInt>()
        && let Ok(whole) = x.extract::<i64>()
    {
        return Some(i128::from(whole));
    }
    if let Ok(truth) = x.extract::<bool>() {
        return Some(i128::from(truth));
    }
    if let Ok(index) = x.call_method0(intern!(x.py(), "__index__")) {
        return index.extract().ok();
    }
    let float: f64 = x.extract().ok()?;
    // Beyond 2^64 no type has it.
    (float.fract() == 0.0 && float.abs() < 2f64.powi(65)).then_some(float as i128)
}

/// The answers of a frame: for each column by its name over axis 0, for each row over axis 1, and of
/// all numbers without an axis.
fn of_frame<'py>(
    x: &Bound<'py, PyAny>,
    ops: &[Op],
    columns: &[(String, Imported<'py>)],
    words: &Words<'_, 'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = x.py();
    if let [(_, only)] = columns
        && words.axis.is_none()
    {
        return of_imported(py, ops, only, words);
    }
    if words.keepdims || words.out.is_some() {
        return Err(PyTypeError::new_err(
            "a table is reduced without keepdims and out\nhint: leave them out, or reduce one column",
        ));
    }
    let question = words.question(py, ops)?;
    let reduced = question.named_axes().resolve(2).or_raise(py)?;
    match reduced[..] {
        [true, false] => of_columns(py, ops, columns, words),
        [true, true] | [false, true] => of_rows(x, &question, columns, words, reduced[0]),
        _ => Err(PyTypeError::new_err(
            "a table is reduced over its rows, its columns or both\nhint: say axis=0, axis=1 or neither",
        )),
    }
}

/// The answers for each column by its name.
fn of_columns<'py>(
    py: Python<'py>,
    ops: &[Op],
    columns: &[(String, Imported<'py>)],
    words: &Words<'_, 'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let words = &Words { axis: None, ..*words };
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

/// The answers for each row of numbers, or of all rows together.
fn of_rows<'py>(
    x: &Bound<'py, PyAny>,
    question: &Reduction,
    columns: &[(String, Imported<'py>)],
    words: &Words<'_, 'py>,
    together: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = x.py();
    if words.mask.is_some() || words.initial.is_some() {
        return Err(PyTypeError::new_err(
            "where and initial choose rows of a column, or elements of an array\nhint: say axis=0, or give an array",
        ));
    }
    let Matrix { array, mask } = table::matrix(py, columns)?;
    let is_place = |op: &Op| matches!(op, Op::ArgMin | Op::ArgMax | Op::ArgMinMax);
    if mask.is_some() && question.ops().iter().any(is_place) {
        return Err(PyTypeError::new_err(
            "some numbers of the table are missing, and positions count them\nhint: fill them first, or reduce column by column with axis=0",
        ));
    }
    let answer =
        of_dense(py, question, question.ops(), &array, mask.map(|mask| (Some(mask), None)))?;
    let home = Home::of(x, &Family::Python)?;
    let family = match &home {
        Home::Family(family) => family.clone(),
        _ => Family::Python,
    };
    let (shape, dtype) = (answer.shape().to_vec(), array.dtype);
    let given = answer.into_columns().into_iter().map(|column| match together {
        true => give(py, &family, words.dtype.is_none().then_some(dtype), &shape, column, None),
        false => home.answers(py, dtype, column, &[], None),
    });
    given.collect()
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
    if let Some(later) = lazy(&PyString::new(py, "dot").into_any(), x, Some(y), words)? {
        return Ok(later);
    }
    let (left, right) = (import(x)?, import(y)?);
    let mut question = words.question(py, &[Op::Dot])?;
    let family = match (&left.family, &right.family) {
        (Family::Python | Family::Ours, other) => other.clone(),
        (own, _) => own.clone(),
    };
    let (dtype, answer) = match (&left.data, &right.data) {
        (Data::Dense(left), Data::Dense(right)) => {
            let dtype = common(left.dtype, right.dtype);
            question = with_out(question, &[Op::Dot], dtype, words)?;
            (dtype, of_pair(py, &question, left, right, dtype)?)
        }
        (Data::Column(_), Data::Column(_) | Data::Dense(_)) | (Data::Dense(_), Data::Column(_)) => {
            let whole = match (&left.data, &right.data) {
                (Data::Column(left), Data::Column(right)) => left.only().zip(right.only()),
                _ => None,
            };
            if let Some((left, right)) = whole.filter(|(a, b)| a.data_type() == b.data_type()) {
                (ANY, py.detach(|| question.run_pair(left, right)).or_raise(py)?)
            } else {
                let (left, right) = (table::column(py, &left)?, table::column(py, &right)?);
                let dtype = common(left.dtype(), right.dtype());
                let (left, right) = (left.cast(dtype)?, right.cast(dtype)?);
                let (a, b) = (left.input(0..left.rows()), right.input(0..right.rows()));
                let (a, b) = (a.or_raise(py)?, b.or_raise(py)?);
                (dtype, py.detach(|| question.run_pair(a, b)).or_raise(py)?)
            }
        }
        (Data::Complex(_), _) | (_, Data::Complex(_)) => return Err(complex::refused("dot")),
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

/// The dot product of two arrays that are brought to one type, and broadcast to one shape.
fn of_pair(
    py: Python<'_>,
    question: &Reduction,
    left: &Dense,
    right: &Dense,
    dtype: DType,
) -> PyResult<Answer> {
    let cast = |array: &Dense| (array.dtype != dtype).then(|| copied(array, dtype)).transpose();
    let (own_left, own_right) = (cast(left)?, cast(right)?);
    let (left, right) = (own_left.as_ref().unwrap_or(left), own_right.as_ref().unwrap_or(right));
    let mismatch = || Error::ShapeMismatch { left: left.shape.clone(), right: right.shape.clone() };
    let shape = broadcast_shape(&left.shape, &right.shape).ok_or_else(mismatch).or_raise(py)?;
    let both = left.broadcast_view(&shape).zip(right.broadcast_view(&shape));
    let (a, b) = both.ok_or_else(mismatch).or_raise(py)?;
    run::run(py, question, [Some(&a), Some(&b)])
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
