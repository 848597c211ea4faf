//! Dates, times, durations and decimals of Python and its libraries, as keys: in, and out again.

use crate::home::objects;
use crate::masked::Masked;
use crate::numpy;
use arrow_array::{Array, ArrayRef, Decimal128Array};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use warpfold::{DType, Numbers, Scalar, Tick, Unit};

/// What NumPy calls not a time.
const NOT_A_TIME: i64 = i64::MIN;

/// The most digits behind the point that decimals have.
const MOST_DIGITS: u8 = 38;

/// Days from the first of Python's calendar to 1970-01-01.
const EPOCH: i64 = 719_163;

/// Counts of a column, `None` where a row has none.
fn column(counts: impl ExactSizeIterator<Item = Option<i64>>) -> Masked {
    let mut all = Masked::new(DType::I64);
    all.grow(counts.len());
    for (row, count) in counts.enumerate() {
        if let Some(count) = count {
            all.set(row, &count.to_ne_bytes());
        }
    }
    all
}

/// A column of integers that count something.
pub(crate) struct Counted {
    pub(crate) counts: Masked,
    pub(crate) unit: Unit,
    /// Decimals beyond 64 bits, by their rows, ascending, which have no count.
    pub(crate) wide: Vec<(u64, i128)>,
}

impl Counted {
    fn of(counts: Masked, unit: Unit) -> Counted {
        Counted { counts, unit, wide: Vec::new() }
    }
}

/// An Arrow column of decimals; `None` if it is none of up to 128 bits.
pub(crate) fn of_decimals(pieces: &[ArrayRef]) -> Option<Counted> {
    let scale = pieces.first().and_then(|piece| match piece.data_type() {
        DataType::Decimal128(_, scale) => u8::try_from(*scale).ok(),
        _ => None,
    });
    let digits = scale?;
    let arrays = pieces.iter().filter_map(|piece| piece.as_any().downcast_ref());
    let counts = arrays.flat_map(|array: &Decimal128Array| array.iter());
    Some(of_counts(counts, digits))
}

/// The keys of a list of Python's decimals, with the digits that the finest has.
fn of_python(
    items: &[Bound<'_, PyAny>],
    is_missing: impl Fn(&Bound<'_, PyAny>) -> bool,
) -> PyResult<Counted> {
    let mut parts = Vec::with_capacity(items.len());
    for item in items {
        let text = item.call_method1(intern!(item.py(), "__format__"), ("f",));
        parts.push(if is_missing(item) { None } else { Some(text?.extract::<String>()?) });
    }
    let split = |text: &str| text.split_once('.').map_or(0, |(_, rest)| rest.len());
    let digits = parts.iter().flatten().map(|text| split(text)).max().unwrap_or(0);
    let counts = parts.iter().zip(items).map(|(part, item)| {
        let Some(text) = part else { return Ok(None) };
        let whole = text.replace('.', "") + &"0".repeat(digits - split(text));
        let is_number = whole.strip_prefix('-').unwrap_or(&whole).bytes().all(|c| c.is_ascii_digit());
        whole.parse::<i128>().map(Some).map_err(|_| match is_number {
            true => PyValueError::new_err(format!(
                "the key {text} is beyond 128 bits with {digits} digits behind the point\nhint: keys have fewer digits, or are floats or texts"
            )),
            false => no_key(item),
        })
    });
    let counts: Vec<Option<i128>> = counts.collect::<PyResult<_>>()?;
    let digits = u8::try_from(digits).ok().filter(|digits| *digits <= MOST_DIGITS);
    let digits = digits.ok_or_else(|| {
        PyValueError::new_err(format!(
            "a key has more than {MOST_DIGITS} digits behind the point\nhint: quantize the keys, or use floats or texts"
        ))
    })?;
    Ok(of_counts(counts.into_iter(), digits))
}

fn of_counts(counts: impl Iterator<Item = Option<i128>>, digits: u8) -> Counted {
    let mut wide = Vec::new();
    let narrow = |(row, count): (u64, Option<i128>)| {
        let narrow = count.and_then(|count| i64::try_from(count).ok());
        wide.extend(count.filter(|_| narrow.is_none()).map(|count| (row, count)));
        narrow
    };
    let counts: Vec<Option<i64>> = (0..).zip(counts).map(narrow).collect();
    Counted { counts: column(counts.into_iter()), unit: Unit::Decimal(digits), wide }
}

/// The keys of an array of `datetime64` or `timedelta64`, or of what wraps one.
///
/// # Errors
/// Steps that have no fixed length, or are shorter than a nanosecond.
pub(crate) fn of_numpy(x: &Bound<'_, PyAny>) -> PyResult<Counted> {
    let py = x.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = numpy.call_method1(intern!(py, "asarray"), (x,))?;
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let is_length = dtype.getattr(intern!(py, "kind"))?.extract::<String>()? == "m";
    let (step, _): (String, u64) =
        numpy.call_method1(intern!(py, "datetime_data"), (&dtype,))?.extract()?;
    let tick = match (&*step, is_length) {
        ("Y" | "M" | "W" | "D", false) => Tick::Day,
        ("W" | "D" | "h" | "m" | "s", _) => Tick::Second,
        ("ms", _) => Tick::Milli,
        ("us", _) => Tick::Micro,
        ("ns", _) => Tick::Nano,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "{dtype} counts steps that no key has\nhint: cast the keys to steps from days to nanoseconds: keys.astype(\"{}64[ns]\")",
                if is_length { "timedelta" } else { "datetime" }
            )));
        }
    };
    let unit = match (is_length, tick) {
        (true, tick) => Unit::Duration(tick),
        (false, Tick::Day) => Unit::Date(tick),
        (false, tick) => Unit::Timestamp(tick, None),
    };
    let kind = if is_length { "timedelta64" } else { "datetime64" };
    let array =
        array.call_method1(intern!(py, "astype"), (format!("{kind}[{}]", tick.symbol()),))?;
    let counts: Vec<i64> = array
        .call_method1(intern!(py, "view"), ("int64",))?
        .call_method0(intern!(py, "tolist"))?
        .extract()?;
    let counts = counts.into_iter().map(|count| (count != NOT_A_TIME).then_some(count));
    Ok(Counted::of(column(counts), unit))
}

/// The keys of a column of pandas that has a time zone; `None` if it has not.
///
/// # Errors
/// Those of pandas.
pub(crate) fn of_zoned(x: &Bound<'_, PyAny>) -> PyResult<Option<Counted>> {
    let py = x.py();
    let Some(dtype) = x.getattr_opt(intern!(py, "dtype"))? else { return Ok(None) };
    let Some(zone) = dtype.getattr_opt(intern!(py, "tz"))?.filter(|zone| !zone.is_none()) else {
        return Ok(None);
    };
    // A series has what an index does by itself.
    let times = x.getattr_opt(intern!(py, "dt"))?.unwrap_or_else(|| x.clone());
    let naive = times.call_method1(intern!(py, "tz_convert"), (py.None(),))?;
    let Counted { counts, unit, .. } = of_numpy(&naive)?;
    let (tick, zone) = (unit.tick().unwrap_or(Tick::Nano), zone.str()?.to_string());
    Ok(Some(Counted::of(counts, Unit::Timestamp(tick, Some(zone)))))
}

/// What the objects of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Date,
    Moment,
    Zoned,
    Time,
    Length,
    /// Of NumPy's scalars.
    Scalar,
}

/// What an object is, if it is a date, a time or a duration.
fn kind(x: &Bound<'_, PyAny>) -> PyResult<Option<Kind>> {
    let py = x.py();
    if numpy::is_scalar(x) {
        let kind: String =
            x.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
        return Ok(matches!(&*kind, "M" | "m").then_some(Kind::Scalar));
    }
    let datetime = py.import(intern!(py, "datetime"))?;
    let is = |class: &str| -> PyResult<bool> { x.is_instance(&datetime.getattr(class)?) };
    let zoned = || -> PyResult<bool> { Ok(!x.getattr(intern!(py, "tzinfo"))?.is_none()) };
    Ok(match () {
        () if is("datetime")? => Some(if zoned()? { Kind::Zoned } else { Kind::Moment }),
        () if is("date")? => Some(Kind::Date),
        () if is("time")? => Some(Kind::Time),
        () if is("timedelta")? => Some(Kind::Length),
        () => None,
    })
}

fn is_decimal(x: &Bound<'_, PyAny>) -> PyResult<bool> {
    x.is_instance(&x.py().import(intern!(x.py(), "decimal"))?.getattr("Decimal")?)
}

/// Whether an object is a date, a time, a duration or a decimal.
pub(crate) fn is_one(x: &Bound<'_, PyAny>) -> bool {
    kind(x).is_ok_and(|kind| kind.is_some()) || is_decimal(x).unwrap_or(false)
}

/// The keys of a list of objects; `None` if the first that is there is none of time.
///
/// # Errors
/// Objects of several kinds, and times of the day with a time zone.
pub(crate) fn of_objects(
    items: &[Bound<'_, PyAny>],
    is_missing: impl Fn(&Bound<'_, PyAny>) -> bool,
) -> PyResult<Option<Counted>> {
    let Some(first) = items.iter().find(|item| !is_missing(item)) else { return Ok(None) };
    let py = first.py();
    if is_decimal(first)? {
        return of_python(items, is_missing).map(Some);
    }
    let Some(of) = kind(first)? else { return Ok(None) };
    for item in items.iter().filter(|item| !is_missing(item)) {
        if kind(item)? != Some(of) {
            return Err(PyTypeError::new_err(format!(
                "{} stands beside {}\nhint: the keys of a column are all of one type, and all have a time zone or none has",
                item.repr()?,
                first.repr()?
            )));
        }
    }
    if of == Kind::Scalar {
        let numpy = py.import(intern!(py, "numpy"))?;
        let nothing = numpy.getattr(first.get_type().name()?)?.call1(("NaT",))?;
        let all = items.iter().map(|item| if is_missing(item) { &nothing } else { item });
        let array = numpy.call_method1(intern!(py, "array"), (PyList::new(py, all)?,))?;
        return of_numpy(&array).map(Some);
    }
    let clock = Clock::new(py)?;
    // Of pandas, which counts nanoseconds.
    let precise =
        first.hasattr(intern!(py, "nanoseconds"))? || first.hasattr(intern!(py, "nanosecond"))?;
    let tick = if precise { Tick::Nano } else { Tick::Micro };
    let mut counts = Vec::with_capacity(items.len());
    for item in items {
        counts.push(match (is_missing(item), of) {
            (true, _) => None,
            (false, Kind::Date) => {
                let day: i64 = item.call_method0(intern!(py, "toordinal"))?.extract()?;
                Some(day - EPOCH)
            }
            (false, _) if precise => {
                let exact = item.call_method1(intern!(py, "as_unit"), ("ns",))?;
                Some(exact.getattr(intern!(py, "value"))?.extract()?)
            }
            (false, of) => Some(clock.microseconds(item, of)?),
        });
    }
    let unit = match of {
        Kind::Date => Unit::Date(Tick::Day),
        Kind::Moment => Unit::Timestamp(tick, None),
        Kind::Zoned => Unit::Timestamp(tick, Some(zone(items, &is_missing)?)),
        Kind::Time => Unit::Time(tick),
        Kind::Length | Kind::Scalar => Unit::Duration(tick),
    };
    Ok(Some(Counted::of(column(counts.into_iter()), unit)))
}

/// The time zone that all have, or UTC.
fn zone(
    items: &[Bound<'_, PyAny>],
    is_missing: impl Fn(&Bound<'_, PyAny>) -> bool,
) -> PyResult<String> {
    let mut names = items
        .iter()
        .filter(|item| !is_missing(item))
        .map(|item| PyResult::Ok(item.getattr(intern!(item.py(), "tzinfo"))?.str()?.to_string()));
    let first = names.next().transpose()?.unwrap_or_default();
    for name in names {
        if name? != first {
            return Ok("UTC".into());
        }
    }
    Ok(first)
}

/// Python's own arithmetic of time.
struct Clock<'py> {
    datetime: Bound<'py, PyModule>,
    microsecond: Bound<'py, PyAny>,
    utc: Bound<'py, PyAny>,
}

impl<'py> Clock<'py> {
    fn new(py: Python<'py>) -> PyResult<Clock<'py>> {
        let datetime = py.import(intern!(py, "datetime"))?;
        let microsecond = datetime.getattr("timedelta")?.call1((0, 0, 1))?;
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        Ok(Clock { datetime, microsecond, utc })
    }

    /// 1970-01-01, in UTC or nowhere.
    fn epoch(&self, zoned: bool) -> PyResult<Bound<'py, PyAny>> {
        let words = PyDict::new(self.utc.py());
        if zoned {
            words.set_item("tzinfo", &self.utc)?;
        }
        self.datetime.getattr("datetime")?.call((1970, 1, 1), Some(&words))
    }

    fn microseconds(&self, x: &Bound<'py, PyAny>, kind: Kind) -> PyResult<i64> {
        let length = match kind {
            Kind::Moment | Kind::Zoned => x.sub(self.epoch(kind == Kind::Zoned)?)?,
            Kind::Time => {
                if !x.getattr("tzinfo")?.is_none() {
                    return Err(PyTypeError::new_err(format!(
                        "{} has a time zone, and no date that says what it is there\nhint: replace(tzinfo=None)",
                        x.repr()?
                    )));
                }
                let day = self.datetime.getattr("datetime")?;
                let first = day.getattr("min")?;
                let date = first.call_method0("date")?;
                day.call_method1("combine", (date, x))?.sub(first)?
            }
            _ => x.clone(),
        };
        length.floor_div(&self.microsecond)?.extract()
    }

    /// What a count stands for; `None` if Python has no such object.
    fn object(
        &self,
        unit: &Unit,
        zone: &Bound<'py, PyAny>,
        count: i128,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(tick) = unit.tick() else {
            let decimal = self.utc.py().import("decimal")?.getattr("Decimal")?;
            return decimal.call1((unit.show(count),)).map(Some);
        };
        let nanoseconds = count * i128::from(tick.nanoseconds());
        if nanoseconds % 1000 != 0 {
            return Ok(None);
        }
        let length = self.datetime.getattr("timedelta")?.call1((0, 0, nanoseconds / 1000));
        let made = length.and_then(|length| match unit {
            Unit::Duration(_) => Ok(length),
            Unit::Time(_) => {
                let first = self.datetime.getattr("datetime")?.getattr("min")?;
                first.add(length)?.call_method0("time")
            }
            Unit::Timestamp(_, Some(_)) => {
                self.epoch(true)?.add(length)?.call_method1("astimezone", (zone,))
            }
            Unit::Date(_) => self.epoch(false)?.add(length)?.call_method0("date"),
            _ => self.epoch(false)?.add(length),
        });
        Ok(made.ok())
    }
}

/// Keys as objects of Python, and None where there is none; as ISO 8601 has them where Python
/// has no such object for one: of nanoseconds, and beyond the year 9999.
///
/// # Errors
/// Those of Python.
pub(crate) fn as_objects<'py>(
    py: Python<'py>,
    numbers: &Numbers,
    unit: &Unit,
    missing: &[usize],
) -> PyResult<Bound<'py, PyList>> {
    let clock = Clock::new(py)?;
    let zone = match unit {
        Unit::Timestamp(_, Some(zone)) => {
            let zones = py.import(intern!(py, "zoneinfo"))?;
            let found = zones.getattr("ZoneInfo")?.call1((zone,));
            found.unwrap_or_else(|_| clock.utc.clone())
        }
        _ => clock.utc.clone(),
    };
    let has = |row: usize| missing.binary_search(&row).is_err();
    let mut made = Vec::with_capacity(numbers.len());
    if let Some(decimals) = numbers.decimals() {
        let class = py.import("decimal")?.getattr("Decimal")?;
        for (row, decimal) in decimals.iter().enumerate() {
            made.push(match has(row) {
                true => class.call1((decimal.to_string(),))?,
                false => py.None().into_bound(py),
            });
        }
        return PyList::new(py, made);
    }
    for (row, count) in counts(numbers).enumerate() {
        let object = if has(row) {
            clock.object(unit, &zone, count)?
        } else {
            Some(py.None().into_bound(py))
        };
        let Some(object) = object else {
            let texts = counts(numbers).enumerate();
            let texts = texts.map(|(row, count)| has(row).then(|| unit.show(count)));
            return PyList::new(py, texts);
        };
        made.push(object);
    }
    PyList::new(py, made)
}

/// Keys as an array of NumPy: of `datetime64` or `timedelta64`, which it has not for times of
/// the day.
///
/// # Errors
/// Those of NumPy.
pub(crate) fn as_numpy<'py>(
    py: Python<'py>,
    numbers: &Numbers,
    unit: &Unit,
    missing: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let kind = match unit {
        Unit::Date(_) | Unit::Timestamp(..) => "datetime64",
        Unit::Duration(_) => "timedelta64",
        _ => return objects(py, as_objects(py, numbers, unit, missing)?.as_any()),
    };
    let has = |row: usize| missing.binary_search(&row).is_err();
    let counts = counts(numbers).enumerate();
    let count = |(row, count)| if has(row) { count } else { NOT_A_TIME.into() };
    let counts: Vec<i128> = counts.map(count).collect();
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = numpy.call_method1(intern!(py, "array"), (PyList::new(py, counts)?, "int64"))?;
    array.call_method1(
        intern!(py, "view"),
        (format!("{kind}[{}]", unit.tick().map_or("", Tick::symbol)),),
    )
}

fn counts(numbers: &Numbers) -> impl Iterator<Item = i128> + '_ {
    numbers.iter().map(|number| match number {
        Scalar::Int(count, _) => count.into(),
        Scalar::UInt(count, _) => count.into(),
        _ => 0,
    })
}

/// What keys are, as hints have it.
const KEYS: &str = "keys are real numbers, truth values, decimals, dates, times or texts";

/// The error that a list holds nothing that rows can be grouped by.
pub(crate) fn no_key(x: &Bound<'_, PyAny>) -> PyErr {
    let shown = x.repr().map(|text| text.to_string()).unwrap_or_default();
    let class = x.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("{shown} of type {class} is no key\nhint: {KEYS}"))
}

/// The error that keys are complex numbers.
pub(crate) fn no_complex_key() -> PyErr {
    PyTypeError::new_err(format!("complex numbers are no keys\nhint: {KEYS}"))
}

/// The error that a count is none of a type's.
pub(crate) fn beyond(unit: &Unit) -> PyErr {
    PyValueError::new_err(format!("a key of {unit} does not fit the type that Arrow has for these"))
}
