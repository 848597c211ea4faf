//! `warpfold.groupby`: answers for each distinct key, and their unfinished states.

use crate::answers::given;
use crate::call::operations;
use crate::column::{Column, Columns, Held, Owned, columns};
use crate::cuda;
use crate::errors::{OrRaise, with_note};
use crate::home::Home;
use crate::import::Family;
use crate::numpy;
use crate::partial::with_ddof;
use crate::question::{Start, ThreadCount, Words, index, policy, policy_name};
use crate::run;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::ops::Range;
use std::sync::Arc;
use warpfold::{CancelToken, DType, GroupBy, Grouped, Keys, Op, Order, Reduction, Unit};

/// Rows that are reduced sooner than Ctrl-C has to be heard.
const SHORT: usize = 1 << 20;

/// How rows are grouped.
#[derive(Clone, Copy)]
struct Grouping {
    order: Order,
    /// Whether rows without a key, or with NaN as one, are left out.
    dropna: bool,
}

impl Grouping {
    fn new(order: &str, dropna: bool) -> PyResult<Grouping> {
        let order = match order {
            "key" => Order::Key,
            "first" => Order::FirstOccurrence,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "order={order:?} is no order of groups\nhint: there are \"key\" and \"first\""
                )));
            }
        };
        Ok(Grouping { order, dropna })
    }

    fn by<'k>(self, question: &Reduction, keys: Keys<'k>) -> GroupBy<'k> {
        question.by(keys).order(self.order).omit_missing(self.dropna)
    }
}

/// The columns of a table that are read together: keys, and values for each.
struct Table<'a> {
    keys: &'a [&'a Column],
    /// One column, or two for a dot product.
    values: &'a [&'a Column],
    rows: usize,
}

impl<'a> Table<'a> {
    /// # Errors
    /// Columns of different lengths, or in different memory.
    fn new(keys: &'a [&'a Column], values: &'a [&'a Column]) -> PyResult<Table<'a>> {
        let rows = keys.first().map_or(0, |column| column.rows());
        for column in keys.iter().chain(values) {
            if column.rows() != rows {
                return Err(PyValueError::new_err(format!(
                    "a column has {} row{}, and the first column of keys has {rows}\nhint: there is a value for each key",
                    column.rows(),
                    if column.rows() == 1 { "" } else { "s" }
                )));
            }
        }
        if keys.is_empty() {
            return Err(PyValueError::new_err("there is no column of keys\nhint: name one"));
        }
        let places = || keys.iter().chain(values).map(|column| column.is_on_a_device());
        if places().any(|on| on) && !places().all(|on| on) {
            return Err(PyValueError::new_err(
                "some columns lie in the host's memory, others in a device's\nhint: move keys and values to one place",
            ));
        }
        Ok(Table { keys, values, rows })
    }

    /// Runs of rows within which no column has a seam.
    fn pieces(&self) -> Vec<Range<usize>> {
        let mut cuts = Vec::new();
        self.keys.iter().chain(self.values).for_each(|column| column.cuts(&mut cuts));
        cuts.push(self.rows);
        cuts.sort_unstable();
        cuts.dedup();
        let mut from = 0;
        let mut pieces = Vec::with_capacity(cuts.len());
        for to in cuts {
            if to > from || self.rows == 0 {
                pieces.push(from..to);
            }
            from = to;
        }
        pieces
    }

    fn is_on_a_device(&self) -> bool {
        self.keys.iter().any(|column| column.is_on_a_device())
    }

    /// What is held of some rows while they are reduced: of keys, and of values.
    fn held(&self, py: Python<'_>, rows: &Range<usize>) -> PyResult<[Vec<Held<'a>>; 2]> {
        let of = |columns: &[&'a Column]| -> PyResult<Vec<Held<'a>>> {
            columns.iter().map(|column| column.held(py, rows)).collect()
        };
        Ok([of(self.keys)?, of(self.values)?])
    }

    /// The states of some rows, the first of which is row `start` of all.
    fn piece(
        &self,
        py: Python<'_>,
        question: &Reduction,
        grouping: Grouping,
        rows: &Range<usize>,
        start: u64,
    ) -> PyResult<warpfold::GroupPartial> {
        let [keys, values] = self.held(py, rows)?;
        let keys = keys_of(&keys).or_raise(py)?;
        let values = values.iter().map(Held::input).collect::<warpfold::Result<Vec<_>>>();
        let values = values.or_raise(py)?;
        heard(py, rows, |token| {
            let by = grouping.by(&question.clone().until(token), keys);
            let mut values = values.into_iter();
            match (values.next(), values.next()) {
                (Some(left), Some(right)) => by.partial_pair(left, right, start),
                (Some(only), None) => by.partial(only, start),
                (None, _) => by.partial(&[0.0f64; 0], start),
            }
        })
    }

    /// The states of all rows.
    fn partial(
        &self,
        py: Python<'_>,
        question: &Reduction,
        grouping: Grouping,
        start: u64,
    ) -> PyResult<warpfold::GroupPartial> {
        if self.is_on_a_device() {
            return Err(PyTypeError::new_err(
                "groups have no states on a device\nhint: move keys and values to the CPU first, or reduce them by groupby",
            ));
        }
        let mut all: Option<warpfold::GroupPartial> = None;
        for rows in self.pieces() {
            let at = start.saturating_add(rows.start as u64);
            let made = self.piece(py, question, grouping, &rows, at)?;
            match &mut all {
                None => all = Some(made),
                Some(all) => py.detach(|| all.merge(&made)).or_raise(py)?,
            }
        }
        all.ok_or_else(|| PyValueError::new_err("there are no rows"))
    }

    /// Keys and answers that are left in a device's memory, if the columns lie there and the device
    /// makes all of them; `homes` are those of keys.
    ///
    /// # Errors
    /// A question that names another device; what the device says.
    fn left_there<'py>(
        &self,
        py: Python<'py>,
        question: &Reduction,
        grouping: Grouping,
        homes: &[Home<'py>],
        home: &Home<'py>,
    ) -> PyResult<Option<cuda::groups::Left<'py>>> {
        if !self.is_on_a_device() {
            return Ok(None);
        }
        cuda::check_named(question)?;
        let keys = self.keys.iter().zip(homes).map(|(column, home)| match (column, home) {
            (Column::Device(keys), Home::Device(_, family)) => Some((keys, family)),
            _ => None,
        });
        let keys = keys.collect::<Option<Vec<_>>>().filter(|_| grouping.order == Order::Key);
        match (self.values, home, keys) {
            ([Column::Device(values)], Home::Device(_, family), Some(keys)) => {
                values.groups(py, question, &keys, family)
            }
            _ => Ok(None),
        }
    }

    /// The answers.
    fn answers(
        &self,
        py: Python<'_>,
        question: &Reduction,
        grouping: Grouping,
    ) -> PyResult<Grouped> {
        if let [rows] = &self.pieces()[..] {
            let [keys, values] = self.held(py, rows)?;
            let keys = keys_of(&keys).or_raise(py)?;
            let values = values.iter().map(Held::array).collect::<warpfold::Result<Vec<_>>>();
            let values = values.or_raise(py)?;
            return heard(py, rows, |token| {
                let by = grouping.by(&question.clone().until(token), keys);
                let mut values = values.into_iter();
                match (values.next(), values.next()) {
                    (Some(left), Some(right)) => by.run_pair(left, right),
                    (Some(only), None) => by.run(only),
                    (None, _) => by.run(&[0.0f64; 0]),
                }
            });
        }
        let partial = self.partial(py, question, grouping, 0)?;
        finished(py, &partial, question)
    }
}

/// Columns of keys.
///
/// # Errors
/// None that can happen.
fn keys_of<'a>(held: &'a [Held<'_>]) -> warpfold::Result<Keys<'a>> {
    held.iter().map(Held::keys).collect::<warpfold::Result<Vec<_>>>().map(Keys::new)
}

/// What work makes of some rows; Ctrl-C is heard while it is done, if they are many.
///
/// # Errors
/// Those of the work, and `KeyboardInterrupt`.
fn heard<R: Send>(
    py: Python<'_>,
    rows: &Range<usize>,
    work: impl FnOnce(&CancelToken) -> warpfold::Result<R> + Send,
) -> PyResult<R> {
    if rows.len() > SHORT {
        return run::heard(py, |stop| work(&Arc::clone(stop).into()))?.or_raise(py);
    }
    let made = py.detach(|| work(&CancelToken::new()));
    py.check_signals()?;
    made.or_raise(py)
}

fn finished(
    py: Python<'_>,
    partial: &warpfold::GroupPartial,
    question: &Reduction,
) -> PyResult<Grouped> {
    py.detach(|| partial.finish(question.rules())).or_raise(py)
}

/// Columns of keys, and what they are called.
struct KeyColumns<'py> {
    owned: Vec<Owned<'py>>,
    named: Named,
}

/// How the keys of an answer are given.
#[derive(Clone, PartialEq, Eq)]
enum Named {
    /// One array.
    One,
    /// A tuple of them.
    Several,
    /// A dictionary.
    Names(Vec<String>),
}

impl<'py> KeyColumns<'py> {
    fn of(x: &Bound<'py, PyAny>, dropna: bool) -> PyResult<KeyColumns<'py>> {
        let py = x.py();
        let (mut owned, named) = match columns(x, true)? {
            Columns::One(one) => (vec![*one], Named::One),
            Columns::Several(several) => (several, Named::Several),
            Columns::Named(named) => {
                let (names, columns) = named.into_iter().unzip();
                (columns, Named::Names(names))
            }
        };
        if dropna {
            owned = owned
                .into_iter()
                .map(|Owned { column, home }| Ok(Owned { column: column.without_nans(py)?, home }))
                .collect::<PyResult<_>>()?;
        }
        Ok(KeyColumns { owned, named })
    }

    fn columns(&self) -> Vec<&Column> {
        self.owned.iter().map(|owned| &owned.column).collect()
    }

    fn homes(&self) -> Vec<Home<'py>> {
        self.owned.iter().map(|owned| owned.home.clone()).collect()
    }
}

impl Named {
    /// Keys in the form in which they came.
    fn give<'py>(
        &self,
        py: Python<'py>,
        mut keys: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Named::One => match keys.pop() {
                Some(only) => only,
                None => PyList::empty(py).into_any(),
            },
            Named::Several => PyTuple::new(py, keys)?.into_any(),
            Named::Names(names) => {
                let dict = PyDict::new(py);
                for (name, keys) in names.iter().zip(keys) {
                    dict.set_item(name, keys)?;
                }
                dict.into_any()
            }
        })
    }
}

/// The keys of groups, in the form in which they came.
fn keys_of_groups<'py>(
    py: Python<'py>,
    grouped: &Grouped,
    homes: &[Home<'py>],
    named: &Named,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = grouped.keys().iter().zip(homes).map(|(keys, home)| home.keys(py, keys));
    named.give(py, keys.collect::<PyResult<_>>()?)
}

/// The answers of groups: of one operation that was named alone its own, else a dictionary.
fn given_answers<'py>(
    py: Python<'py>,
    grouped: &Grouped,
    home: &Home<'py>,
    (dtype, unit): (DType, Option<&Unit>),
    named: &[(String, Op)],
    single: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let answers = grouped.columns().iter().map(|column| {
        let missing: Vec<usize> = (0..grouped.len()).filter(|&i| column.is_missing(i)).collect();
        home.answers(py, dtype, column.column().clone(), &missing, unit)
    });
    given(py, named, single, answers)
}

/// The only column of values.
fn one_column<'py>(columns: Columns<'py>) -> PyResult<Owned<'py>> {
    match columns {
        Columns::One(one) => Ok(*one),
        _ => Err(PyTypeError::new_err(
            "several columns of values have no state together\nhint: give one column",
        )),
    }
}

/// Reduces the rows of each group, those with the same key: a pair of the groups' keys and of
/// their answers.
///
/// ``keys`` are an array or a list of numbers or texts, several of such in a tuple, list or
/// dictionary, or the columns of a table. ``values`` are a column with a value for each key, or a
/// table or dictionary of such. Answers come as the operations and columns do: an array, or
/// dictionaries by name. ``order`` is ``"key"``, or ``"first"`` for that of the first rows.
/// ``dropna`` leaves out rows whose key is missing or NaN. Columns in a device's memory are reduced
/// there, and the answers are left there.
///
/// Arguments:
///     keys, values: columns with as many rows
///     ops: the name of an operation, or several names
///     order: "key" or "first"
///     dropna: whether rows without a key are left out
///     y: the second column of values, for dot
///     dtype: the type of the answers, which the exact ones are rounded to
///     ddof, correction: two names of what is subtracted from the count in the divisor of var and std
///     nan: "propagate", the default, "omit" or "raise"
///     device: where columns of the host are reduced
///     threads: how many threads of the CPU may work
///
/// Raises:
///     TypeError: columns of something else than numbers, texts among numbers, a table as one column.
///     ValueError: columns of different lengths or in different memory; a word that means nothing.
///     OverflowError: a total that does not fit its integer type; the group is named.
#[pyfunction]
#[pyo3(signature = (keys, values, ops, /, *, order="key", dropna=false, y=None, dtype=None, ddof=None, correction=None, nan=None, device=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "the words of the functions")]
pub(crate) fn groupby<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    ops: &Bound<'py, PyAny>,
    order: &str,
    dropna: bool,
    y: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    ddof: Option<&Bound<'py, PyAny>>,
    correction: Option<&Bound<'py, PyAny>>,
    nan: Option<&str>,
    device: Option<&str>,
    threads: Option<ThreadCount>,
) -> PyResult<Bound<'py, PyTuple>> {
    let words = Words { dtype, ddof, correction, nan, device, threads, ..Words::default() };
    let named = operations(ops)?;
    let single = ops.is_instance_of::<PyString>();
    let list: Vec<Op> = named.iter().map(|(_, op)| *op).collect();
    let question = words.question(py, &list)?;
    let grouping = Grouping::new(order, dropna)?;
    let keys = KeyColumns::of(keys, dropna)?;
    let second = y.map(|y| one_column(columns(y, false)?)).transpose()?;
    let homes = keys.homes();
    let key_columns = keys.columns();
    let mut given_keys = None;
    let mut answers = |values: &Owned<'py>| -> PyResult<Bound<'py, PyAny>> {
        let both: Vec<&Column> =
            [Some(values), second.as_ref()].into_iter().flatten().map(|o| &o.column).collect();
        let table = Table::new(&key_columns, &both)?;
        let there = table.left_there(py, &question, grouping, &homes, &values.home)?;
        if let Some((keys_there, answers)) = there {
            given_keys = Some(keys.named.give(py, keys_there)?);
            return given(py, &named, single, answers.into_iter().map(Ok));
        }
        let grouped = table.answers(py, &question, grouping)?;
        let dtype = values.column.dtype().unwrap_or(DType::F64);
        let answers = given_answers(py, &grouped, &values.home, (dtype, None), &named, single)?;
        if given_keys.is_none() {
            given_keys = Some(keys_of_groups(py, &grouped, &homes, &keys.named)?);
        }
        Ok(answers)
    };
    let answers = match columns(values, false)? {
        Columns::One(one) => answers(&one)?,
        Columns::Named(columns) if !columns.is_empty() => {
            let dict = PyDict::new(py);
            for (name, values) in &columns {
                let made = answers(values).map_err(|error| with_note(py, error, name));
                dict.set_item(name, made?)?;
            }
            dict.into_any()
        }
        _ => {
            return Err(PyTypeError::new_err(
                "columns of values need names\nhint: give one column, or a dictionary of columns",
            ));
        }
    };
    let keys = given_keys.ok_or_else(|| PyValueError::new_err("there are no values"))?;
    PyTuple::new(py, [keys, answers])
}

/// The states of a reduction of groups, over pieces of the rows.
///
/// Merging the partials of any split of the rows, in any order, gives the bits of a single run
/// over all of them.
#[pyclass(module = "warpfold", name = "GroupPartial")]
pub(crate) struct GroupPartial {
    named: Vec<(String, Op)>,
    /// Whether one operation was named alone, so that its answer comes alone.
    single: bool,
    question: Reduction,
    grouping: Grouping,
    keys: Named,
    /// Nothing before the first piece, which says what the columns are.
    state: Option<warpfold::GroupPartial>,
    /// The next row.
    next: u64,
    /// Whether answers are NumPy's.
    numpy: bool,
}

impl GroupPartial {
    fn copy(&self) -> GroupPartial {
        GroupPartial {
            named: self.named.clone(),
            single: self.single,
            question: self.question.clone(),
            grouping: self.grouping,
            keys: self.keys.clone(),
            state: self.state.clone(),
            next: self.next,
            numpy: self.numpy,
        }
    }

    fn state(&self) -> PyResult<&warpfold::GroupPartial> {
        self.state.as_ref().ok_or_else(|| {
            PyValueError::new_err(
                "the partial has absorbed nothing\nhint: absorb keys and values first, even empty ones",
            )
        })
    }

    fn merge_state(&mut self, py: Python<'_>, other: &GroupPartial) -> PyResult<()> {
        if let Some(theirs) = &other.state {
            match &mut self.state {
                Some(state) => py.detach(|| state.merge(theirs)).or_raise(py)?,
                None => {
                    self.state = Some(theirs.clone());
                    self.keys = other.keys.clone();
                }
            }
        }
        self.next = self.next.max(other.next);
        self.numpy |= other.numpy;
        Ok(())
    }
}

#[pymethods]
impl GroupPartial {
    #[new]
    #[pyo3(signature = (ops, /, *, order="key", dropna=false, nan=None, ddof=None, correction=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "the words of the functions")]
    fn new<'py>(
        py: Python<'py>,
        ops: &Bound<'py, PyAny>,
        order: &str,
        dropna: bool,
        nan: Option<&str>,
        ddof: Option<&Bound<'py, PyAny>>,
        correction: Option<&Bound<'py, PyAny>>,
        threads: Option<ThreadCount>,
    ) -> PyResult<GroupPartial> {
        let words = Words { nan, ddof, correction, threads, ..Words::default() };
        let named = operations(ops)?;
        let list: Vec<Op> = named.iter().map(|(_, op)| *op).collect();
        Ok(GroupPartial {
            question: words.question(py, &list)?,
            single: ops.is_instance_of::<PyString>(),
            named,
            grouping: Grouping::new(order, dropna)?,
            keys: Named::One,
            state: None,
            next: 0,
            numpy: false,
        })
    }

    /// Takes in keys, and a value for each; for ``dot`` also ``y``. The first row is row
    /// ``start`` of all; without it, the one after those that were absorbed before.
    #[pyo3(signature = (keys, values, y=None, /, *, start=None))]
    fn absorb<'py>(
        &mut self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        y: Option<&Bound<'py, PyAny>>,
        start: Option<Start>,
    ) -> PyResult<()> {
        let keys = KeyColumns::of(keys, self.grouping.dropna)?;
        let values = one_column(columns(values, false)?)?;
        let second = y.map(|y| one_column(columns(y, false)?)).transpose()?;
        if self.state.is_some() && self.keys != keys.named {
            return Err(PyValueError::new_err(
                "the keys have other columns than those that were absorbed before",
            ));
        }
        let both: Vec<&Column> =
            [Some(&values), second.as_ref()].into_iter().flatten().map(|o| &o.column).collect();
        let key_columns = keys.columns();
        let table = Table::new(&key_columns, &both)?;
        let start = start.map_or(self.next, |start| start.0);
        let piece = table.partial(py, &self.question, self.grouping, start)?;
        match &mut self.state {
            Some(state) => py.detach(|| state.merge(&piece)).or_raise(py)?,
            None => self.state = Some(piece),
        }
        self.next = start.saturating_add(table.rows as u64);
        self.keys = keys.named;
        self.numpy |= matches!(values.home, Home::Family(Family::NumPy));
        Ok(())
    }

    /// Takes in the partial of other rows. After an error nothing has changed.
    ///
    /// Raises:
    ///     TypeError, ValueError: the other has other operations, columns or types.
    fn merge(this: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        if this.is(other) {
            let other = this.borrow().copy();
            return this.borrow_mut().merge_state(this.py(), &other);
        }
        this.borrow_mut().merge_state(this.py(), &other.borrow())
    }

    fn __add__(&self, py: Python<'_>, other: PyRef<'_, GroupPartial>) -> PyResult<GroupPartial> {
        let mut sum = self.copy();
        sum.merge_state(py, &other)?;
        Ok(sum)
    }

    /// Python's ``sum`` begins with 0.
    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        match index(other) {
            Some(0) => Ok(Bound::new(py, self.copy())?.into_any().unbind()),
            _ => Ok(py.NotImplemented()),
        }
    }

    fn __iadd__(&mut self, py: Python<'_>, other: PyRef<'_, GroupPartial>) -> PyResult<()> {
        self.merge_state(py, &other)
    }

    /// The groups' keys, and their answers.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let state = self.state()?;
        let grouped = finished(py, state, &self.question)?;
        let home = Home::Family(match self.numpy && numpy::loaded(py).is_some() {
            true => Family::NumPy,
            false => Family::Python,
        });
        let homes: Vec<Home<'py>> = grouped.keys().iter().map(|_| home.clone()).collect();
        let keys = keys_of_groups(py, &grouped, &homes, &self.keys)?;
        let dtype = state.value_columns().next().map_or(DType::F64, |(_, dtype, _)| dtype);
        let of = (dtype, state.value_unit(0));
        let answers = given_answers(py, &grouped, &home, of, &self.named, self.single)?;
        PyTuple::new(py, [keys, answers])
    }

    /// The states as bytes, with a version and checksums: what ``warpfold partial --by`` writes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.state()?.to_bytes()))
    }

    /// Reads what ``to_bytes``, or ``warpfold partial --by``, wrote.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<GroupPartial> {
        let state = warpfold::GroupPartial::from_bytes(data).or_raise(py)?;
        let named: Vec<(String, Op)> =
            state.ops().map(|op| (op.name().replace('-', "_"), op)).collect();
        let names = state.key_names().to_vec();
        let keys = match &names[..] {
            [_] => Named::One,
            names if names.iter().all(|name| !name.is_empty()) => Named::Names(names.to_vec()),
            _ => Named::Several,
        };
        Ok(GroupPartial {
            single: named.len() == 1,
            question: Reduction::new(state.ops()),
            grouping: Grouping { order: state.order(), dropna: state.omits_missing() },
            named,
            keys,
            next: state.rows(),
            state: Some(state),
            numpy: false,
        })
    }

    /// The names of the operations.
    #[getter]
    fn ops(&self) -> Vec<&str> {
        self.named.iter().map(|(name, _)| &name[..]).collect()
    }

    /// How many rows were absorbed.
    #[getter]
    fn rows(&self) -> u64 {
        self.state.as_ref().map_or(0, warpfold::GroupPartial::rows)
    }

    /// How many groups there are.
    fn __len__(&self) -> usize {
        self.state.as_ref().map_or(0, warpfold::GroupPartial::len)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<GroupPartial>().is_ok_and(|other| other.borrow().state == self.state)
    }

    fn __repr__(&self) -> String {
        let (ops, groups) = (self.ops().join(", "), self.__len__());
        format!("<warpfold.GroupPartial of {ops} over {groups} groups>")
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = this.py();
        let partial = this.borrow();
        let names = PyList::new(py, partial.ops())?;
        let rules = partial.question.rules();
        let nan = policy_name(rules.nan);
        let Grouping { order, dropna } = partial.grouping;
        let columns = match &partial.keys {
            Named::One => (1, Vec::new()),
            Named::Several => (2, Vec::new()),
            Named::Names(names) => (2, names.clone()),
        };
        let bytes = partial.state.as_ref().map(|state| PyBytes::new(py, &state.to_bytes()));
        let rules = (order.name(), dropna, nan, (rules.ddof, rules.ddof_fraction));
        let state = (partial.single, rules, columns, partial.next, partial.numpy, bytes);
        (this.get_type(), (names,), state).into_pyobject(py)
    }

    #[expect(clippy::type_complexity, reason = "what `__reduce__` put together")]
    fn __setstate__(
        &mut self,
        py: Python<'_>,
        state: (
            bool,
            (String, bool, String, (u64, u64)),
            (u8, Vec<String>),
            u64,
            bool,
            Option<Vec<u8>>,
        ),
    ) -> PyResult<()> {
        let (single, (order, dropna, nan, ddof), (count, names), next, numpy, bytes) = state;
        let read = bytes
            .map(|bytes| warpfold::GroupPartial::from_bytes(&bytes))
            .transpose()
            .or_raise(py)?;
        let ours = || self.named.iter().map(|(_, op)| *op);
        if read.as_ref().is_some_and(|read| !read.ops().eq(ours())) {
            return Err(PyValueError::new_err(
                "the pickle names other operations than its states have",
            ));
        }
        self.question = with_ddof(Reduction::new(ours()).nan(policy(&nan)?), ddof);
        self.grouping = Grouping::new(&order, dropna)?;
        self.keys = match (count, names.is_empty()) {
            (1, _) => Named::One,
            (_, true) => Named::Several,
            (_, false) => Named::Names(names),
        };
        self.single = single && self.named.len() == 1;
        (self.next, self.numpy, self.state) = (next, numpy, read);
        Ok(())
    }
}
