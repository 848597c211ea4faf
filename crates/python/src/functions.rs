//! The functions of the package: the array API's and NumPy's words for the operations.

use crate::answers::{as_here, given};
use crate::call::{answer, answers, dot as dot_of, lazy, operations};
use crate::dense::Dense;
use crate::errors::OrRaise;
use crate::numpy;
use crate::question::{ThreadCount, Words, element_type};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use warpfold::Op;

type Answer<'py> = PyResult<Bound<'py, PyAny>>;

/// `nan` of a function of the `nan...` family, which leaves them out.
const OMIT: &str = "omit";

/// What the words of the functions mean, for their docstrings.
macro_rules! said {
    (x) => {
        "    x: an array, a column, a table, a file, a number, or an iterable of numbers\n"
    };
    (y) => {
        "    y: another, whose shape and type are brought to those that both have in common\n"
    };
    (ops) => {
        "    ops: the name of an operation, or several names\n"
    };
    (axis) => {
        "    axis: the axes that are reduced, an integer or several of them; without it all\n"
    };
    (dtype) => {
        "    dtype: the type of the answer, which the exact one is rounded to\n"
    };
    (out) => {
        "    out: an array of the answer's shape that it is written to\n"
    };
    (keepdims) => {
        "    keepdims: whether the reduced axes stay, with length 1\n"
    };
    (initial) => {
        "    initial: a number that is reduced with the others: alone it is the answer\n"
    };
    (where) => {
        "    where: truth values that say which elements are reduced, broadcast to the shape of x\n"
    };
    (ddof) => {
        "    ddof, correction: two names of what is subtracted from the count in the divisor\n"
    };
    (nan) => {
        "    nan: \"propagate\", the default, \"omit\" or \"raise\"\n"
    };
    (device) => {
        "    device: \"cpu\", \"cuda\", \"cuda:1\" or \"sim\"; without it where the array lies\n"
    };
    (threads) => {
        "    threads: how many threads of the CPU may work\n"
    };
    (raises) => {
        "\nRaises:\n    AxisError: an axis that x does not have.\n    TypeError: x holds something else than numbers, or numbers that have no such answer.\n    ValueError: no elements where the answer is one of them; a word that means nothing; a NaN with nan=\"raise\".\n    OverflowError: a total that does not fit its integer type.\n"
    };
    ($($word:tt)*) => {
        concat!("\nArguments:\n", $(said!($word),)* said!(raises))
    };
}

macro_rules! totals {
    ($($(#[$doc:meta])* $name:ident $nan_name:ident: $op:ident;)*) => {$(
        $(#[$doc])*
        #[doc = said!(x axis dtype out keepdims initial where nan device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, dtype=None, out=None, keepdims=false, initial=None, r#where=None, *, nan=None, device=None, threads=None))]
        #[expect(clippy::too_many_arguments, reason = "NumPy's words")]
        pub(crate) fn $name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            dtype: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            initial: Option<&Bound<'py, PyAny>>,
            r#where: Option<&Bound<'py, PyAny>>,
            nan: Option<&str>,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            let words = Words {
                axis, dtype, out, keepdims, initial, mask: r#where, nan, device, threads,
                ..Words::default()
            };
            answer(Op::$op, x, &words)
        }

        #[doc = concat!("As ``", stringify!($name), "``, without the NaNs.")]
        #[doc = said!(x axis dtype out keepdims initial where device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, dtype=None, out=None, keepdims=false, initial=None, r#where=None, *, device=None, threads=None))]
        #[expect(clippy::too_many_arguments, reason = "NumPy's words")]
        pub(crate) fn $nan_name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            dtype: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            initial: Option<&Bound<'py, PyAny>>,
            r#where: Option<&Bound<'py, PyAny>>,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            $name(x, axis, dtype, out, keepdims, initial, r#where, Some(OMIT), device, threads)
        }
    )*};
}

totals! {
    /// The exact sum, rounded once.
    sum nansum: Sum;
    /// The product. Of integers exact; of floats folded in a fixed order.
    prod nanprod: Prod;
}

macro_rules! extremes {
    ($($(#[$doc:meta])* $name:ident $nan_name:ident: $op:ident;)*) => {$(
        $(#[$doc])*
        #[doc = said!(x axis out keepdims initial where nan device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, out=None, keepdims=false, initial=None, r#where=None, *, nan=None, device=None, threads=None))]
        #[expect(clippy::too_many_arguments, reason = "NumPy's words")]
        pub(crate) fn $name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            initial: Option<&Bound<'py, PyAny>>,
            r#where: Option<&Bound<'py, PyAny>>,
            nan: Option<&str>,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            let words = Words {
                axis, out, keepdims, initial, mask: r#where, nan, device, threads,
                ..Words::default()
            };
            answer(Op::$op, x, &words)
        }

        #[doc = concat!("As ``", stringify!($name), "``, without the NaNs.")]
        #[doc = said!(x axis out keepdims initial where device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, out=None, keepdims=false, initial=None, r#where=None, *, device=None, threads=None))]
        #[expect(clippy::too_many_arguments, reason = "NumPy's words")]
        pub(crate) fn $nan_name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            initial: Option<&Bound<'py, PyAny>>,
            r#where: Option<&Bound<'py, PyAny>>,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            $name(x, axis, out, keepdims, initial, r#where, Some(OMIT), device, threads)
        }
    )*};
}

extremes! {
    /// The smallest element.
    min nanmin: Min;
    /// The largest element.
    max nanmax: Max;
}

macro_rules! spreads {
    ($($(#[$doc:meta])* $name:ident $nan_name:ident: $op:ident;)*) => {$(
        $(#[$doc])*
        #[doc = said!(x axis dtype out ddof keepdims where nan device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=false, *, r#where=None, correction=None, nan=None, device=None, threads=None))]
        #[expect(clippy::too_many_arguments, reason = "NumPy's words")]
        pub(crate) fn $name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            dtype: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            ddof: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            r#where: Option<&Bound<'py, PyAny>>,
            correction: Option<&Bound<'py, PyAny>>,
            nan: Option<&str>,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            let words = Words {
                axis, dtype, out, ddof, correction, keepdims, mask: r#where, nan, device, threads,
                ..Words::default()
            };
            answer(Op::$op, x, &words)
        }

        #[doc = concat!("As ``", stringify!($name), "``, without the NaNs.")]
        #[doc = said!(x axis dtype out ddof keepdims where device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=false, *, r#where=None, correction=None, device=None, threads=None))]
        #[expect(clippy::too_many_arguments, reason = "NumPy's words")]
        pub(crate) fn $nan_name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            dtype: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            ddof: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            r#where: Option<&Bound<'py, PyAny>>,
            correction: Option<&Bound<'py, PyAny>>,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            $name(x, axis, dtype, out, ddof, keepdims, r#where, correction, Some(OMIT), device, threads)
        }
    )*};
}

spreads! {
    /// The variance from exact moments, rounded once.
    var nanvar: Var;
    /// The standard deviation, rounded once.
    std nanstd: Std;
}

macro_rules! places {
    ($($(#[$doc:meta])* $name:ident $nan_name:ident: $op:ident;)*) => {$(
        $(#[$doc])*
        #[doc = said!(x axis out keepdims nan device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, out=None, *, keepdims=false, nan=None, device=None, threads=None))]
        pub(crate) fn $name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            nan: Option<&str>,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            let words = Words { axis, out, keepdims, nan, device, threads, ..Words::default() };
            answer(Op::$op, x, &words)
        }

        #[doc = concat!("As ``", stringify!($name), "``, without the NaNs.")]
        #[doc = said!(x axis out keepdims device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, out=None, *, keepdims=false, device=None, threads=None))]
        pub(crate) fn $nan_name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            $name(x, axis, out, keepdims, Some(OMIT), device, threads)
        }
    )*};
}

places! {
    /// The position of the first smallest element.
    argmin nanargmin: ArgMin;
    /// The position of the first largest element.
    argmax nanargmax: ArgMax;
}

macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident: $op:ident;)*) => {$(
        $(#[$doc])*
        #[doc = said!(x axis out keepdims where device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, out=None, keepdims=false, *, r#where=None, device=None, threads=None))]
        pub(crate) fn $name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            r#where: Option<&Bound<'py, PyAny>>,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            let words = Words { axis, out, keepdims, mask: r#where, device, threads, ..Words::default() };
            answer(Op::$op, x, &words)
        }
    )*};
}

questions! {
    /// Whether any element is not zero.
    any: Any;
    /// Whether no element is zero.
    all: All;
    /// How many elements are not zero.
    count_nonzero: CountNonzero;
    /// How many elements are NaN.
    count_nan: CountNan;
}

macro_rules! others {
    ($($(#[$doc:meta])* $name:ident: $op:ident;)*) => {$(
        $(#[$doc])*
        #[doc = said!(x axis dtype out keepdims where nan device threads)]
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, dtype=None, out=None, keepdims=false, *, r#where=None, nan=None, device=None, threads=None))]
        #[expect(clippy::too_many_arguments, reason = "NumPy's words")]
        pub(crate) fn $name<'py>(
            x: &Bound<'py, PyAny>,
            axis: Option<&Bound<'py, PyAny>>,
            dtype: Option<&Bound<'py, PyAny>>,
            out: Option<&Bound<'py, PyAny>>,
            keepdims: bool,
            r#where: Option<&Bound<'py, PyAny>>,
            nan: Option<&str>,
            device: Option<&str>,
            threads: Option<ThreadCount>,
        ) -> Answer<'py> {
            let words = Words {
                axis, dtype, out, keepdims, mask: r#where, nan, device, threads, ..Words::default()
            };
            answer(Op::$op, x, &words)
        }
    )*};
}

others! {
    /// The exact mean, rounded once.
    mean: Mean;
    /// The exact sum of absolute values, rounded once.
    norm1: Norm1;
    /// The Euclidean norm, rounded once.
    norm2: Norm2;
    /// The largest absolute value.
    norm_inf: NormInf;
    /// The exact sum of squares, rounded once.
    sumsq: SumSq;
    /// The smallest and the largest element.
    minmax: MinMax;
    /// The largest element minus the smallest, rounded once.
    range: Range;
    /// The positions of the first smallest and the first largest element.
    argminmax: ArgMinMax;
    /// How many elements there are.
    count: Count;
    /// The logarithm of the sum of the exponentials.
    logsumexp: LogSumExp;
}

/// As ``mean``, without the NaNs.
#[doc = said!(x axis dtype out keepdims where device threads)]
#[pyfunction]
#[pyo3(signature = (x, /, axis=None, dtype=None, out=None, keepdims=false, *, r#where=None, device=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "NumPy's words")]
pub(crate) fn nanmean<'py>(
    x: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    keepdims: bool,
    r#where: Option<&Bound<'py, PyAny>>,
    device: Option<&str>,
    threads: Option<ThreadCount>,
) -> Answer<'py> {
    mean(x, axis, dtype, out, keepdims, r#where, Some(OMIT), device, threads)
}

/// The exact sum of the products of two arrays' elements, rounded once: ``sum(x * y)``.
#[doc = said!(x y axis dtype out keepdims nan device threads)]
#[pyfunction]
#[pyo3(signature = (x, y, /, axis=None, dtype=None, out=None, keepdims=false, *, nan=None, device=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "the words of the other functions")]
pub(crate) fn dot<'py>(
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    keepdims: bool,
    nan: Option<&str>,
    device: Option<&str>,
    threads: Option<ThreadCount>,
) -> Answer<'py> {
    let words = Words { axis, dtype, out, keepdims, nan, device, threads, ..Words::default() };
    dot_of(x, y, &words)
}

/// Several operations in one pass: a dictionary of their answers by their names. Of one operation that is
/// named alone, not in a list, the answer comes alone.
#[doc = said!(x ops axis dtype keepdims ddof where nan device threads)]
#[pyfunction]
#[pyo3(signature = (x, ops, /, axis=None, dtype=None, keepdims=false, *, ddof=None, correction=None, r#where=None, nan=None, device=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "the words of the other functions")]
pub(crate) fn reduce<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    ops: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    keepdims: bool,
    ddof: Option<&Bound<'py, PyAny>>,
    correction: Option<&Bound<'py, PyAny>>,
    r#where: Option<&Bound<'py, PyAny>>,
    nan: Option<&str>,
    device: Option<&str>,
    threads: Option<ThreadCount>,
) -> Answer<'py> {
    let words = Words {
        axis,
        dtype,
        keepdims,
        ddof,
        correction,
        mask: r#where,
        nan,
        device,
        threads,
        ..Words::default()
    };
    if let Some(later) = lazy(ops, x, None, &words)? {
        return Ok(later);
    }
    let named = operations(ops)?;
    let list: Vec<Op> = named.iter().map(|(_, op)| *op).collect();
    let answers = answers(&list, x, &words)?;
    given(py, &named, ops.is_instance_of::<PyString>(), answers.into_iter().map(Ok))
}

/// The type of an operation's answers over elements of type `dtype`, where no value stands in
/// their way: what has to be known of an answer before there is one.
#[pyfunction]
pub(crate) fn _answer_type(
    py: Python<'_>,
    op: &str,
    dtype: &Bound<'_, PyAny>,
    out: Option<&Bound<'_, PyAny>>,
) -> PyResult<&'static str> {
    let op = op.parse::<Op>().or_raise(py)?;
    let dtype = element_type(dtype)?;
    let words = Words { dtype: out, ..Words::default() };
    // Asked of one element, so that no rule is written twice.
    let zero = Dense::of_words(dtype, vec![0], vec![1])?;
    let answer = words.question(py, &[op])?.run(zero.view()).or_raise(py)?;
    let column = answer.into_columns().into_iter().next();
    let column = column.ok_or_else(|| PyValueError::new_err("there is no answer"))?;
    Ok(numpy::long_name(as_here(op, out.is_none().then_some(dtype), column.numbers).dtype()))
}
