//! Answers as columns, each with a name and a type: what Parquet, Arrow and npz files hold.
//!
//! Groups have a row each, their keys first. The outputs along axes have a row each, in C
//! order, their indices `i0`, `i1`, ... first. With several arrays or columns of values the
//! name of each precedes that of the operation: `price_mean`.

use super::GroupReport;
use crate::failure::Usage;
use crate::report::{Array, Field, Indices, Report};
use anyhow::Result;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use warpfold::{DType, Decimal, GroupColumn, KeyValues, Numbers, Scalar, Unit};

/// Columns with as many rows each.
pub(super) struct Columns<'a> {
    pub(super) rows: usize,
    pub(super) columns: Vec<Column<'a>>,
}

/// A column, some of whose rows may have no value.
#[derive(Clone)]
pub(super) struct Column<'a> {
    pub(super) name: String,
    pub(super) values: Values<'a>,
    /// What they count.
    pub(super) unit: Option<&'a Unit>,
    /// The rows without a value, ascending.
    pub(super) missing: Vec<usize>,
}

/// The values of a column; of rows without one, whatever.
#[derive(Clone)]
pub(super) enum Values<'a> {
    Numbers(Cow<'a, Numbers>),
    /// Any bytes, as the files that they are from hold them.
    Texts(&'a KeyValues),
}

impl<'a> Columns<'a> {
    /// The answers of groups.
    ///
    /// # Errors
    /// Columns of one name.
    pub(super) fn of_groups(report: &'a GroupReport) -> Result<Columns<'a>> {
        let rows = report.groups;
        let mut columns: Vec<_> = report
            .key_names
            .iter()
            .zip(&report.keys)
            .map(|(name, keys)| Column::of_keys(name.clone(), keys))
            .collect();
        let named = report.arrays.len() > 1;
        for array in &report.arrays {
            for answers in &array.columns {
                let unit = array.unit_of(answers.op());
                columns.extend(Column::of_answers(
                    named.then_some(&array.name),
                    answers,
                    unit,
                    rows,
                ));
            }
        }
        distinct(&columns)?;
        Ok(Columns { rows, columns })
    }

    /// The answers of reductions whose shapes agree, with their indices.
    ///
    /// # Errors
    /// Shapes that differ; columns of one name.
    pub(super) fn of_report(report: &'a Report) -> Result<Columns<'a>> {
        let shape = report.arrays.first().map_or(&[][..], |array| &array.shape);
        if let Some(other) = report.arrays.iter().find(|array| array.shape != shape) {
            let (first, other) = (&report.arrays[0].name, &other.name);
            let what = format!("the answers of {first} and of {other} are not of one shape");
            let hint = "write .npz, .csv or .json, or one array at a time";
            return Err(Usage::new(what).hint(hint).into());
        }
        let rows = shape.iter().product();
        let mut indices = vec![Vec::with_capacity(rows); shape.len()];
        for index in Indices::of(shape) {
            indices.iter_mut().zip(index).for_each(|(column, i)| column.push(i as u64));
        }
        let named = |(axis, column): (usize, Vec<u64>)| Column {
            name: format!("i{axis}"),
            values: Values::Numbers(Cow::Owned(Numbers::of(&column))),
            unit: None,
            missing: Vec::new(),
        };
        let mut columns: Vec<_> = indices.into_iter().enumerate().map(named).collect();
        columns.extend(report.arrays.iter().flat_map(|array| Column::of_array(report, array)));
        distinct(&columns)?;
        Ok(Columns { rows, columns })
    }
}

/// # Errors
/// Two columns of one name.
pub(super) fn distinct<'a>(columns: impl IntoIterator<Item = &'a Column<'a>>) -> Result<()> {
    let mut names = HashSet::new();
    match columns.into_iter().find(|column| !names.insert(&column.name)) {
        None => Ok(()),
        Some(Column { name, .. }) => {
            let what = format!("two columns would have the name {name:?}");
            Err(Usage::new(what).hint("write .csv or .json, or leave one out").into())
        }
    }
}

impl<'a> Column<'a> {
    fn of_keys(name: String, keys: &'a KeyValues) -> Column<'a> {
        let missing = (0..keys.len()).filter(|&group| keys.is_missing(group)).collect();
        let numbers = keys.numbers().map(|numbers| Values::Numbers(Cow::Borrowed(numbers)));
        Column { name, values: numbers.unwrap_or(Values::Texts(keys)), unit: keys.unit(), missing }
    }

    /// One column, or two for an operation with two answers.
    fn of_answers(
        prefix: Option<&String>,
        answers: &'a GroupColumn,
        unit: Option<&'a Unit>,
        groups: usize,
    ) -> impl Iterator<Item = Column<'a>> {
        let missing: Vec<usize> = match answers.missing() {
            0 => Vec::new(),
            _ => (0..groups).filter(|&group| answers.is_missing(group)).collect(),
        };
        let column = answers.column();
        let (first, second) = match column.op.pair() {
            Some((first, second)) => (first, Some(second)),
            None => (column.op, None),
        };
        let both = [(Some(first), Some(&column.numbers)), (second, column.second.as_ref())];
        both.into_iter().filter_map(move |(op, numbers)| {
            Some(Column {
                name: named(prefix, op?.name()),
                values: Values::Numbers(Cow::Borrowed(numbers?)),
                unit,
                missing: missing.clone(),
            })
        })
    }

    /// The series of a report; where it has no value at all, a float that is missing.
    fn of_field(prefix: Option<&String>, field: Field<'a>, rows: usize) -> Column<'a> {
        let name = named(prefix, field.name);
        match field.numbers {
            Some(numbers) => Column {
                name,
                values: Values::Numbers(Cow::Borrowed(numbers)),
                unit: field.unit,
                missing: Vec::new(),
            },
            None => {
                let nothing = Numbers::of(&vec![f64::NAN; rows]);
                let values = Values::Numbers(Cow::Owned(nothing));
                Column { name, values, unit: None, missing: (0..rows).collect() }
            }
        }
    }

    /// The answers over an array.
    pub(super) fn of_array(report: &'a Report, array: &'a Array) -> Vec<Column<'a>> {
        let prefix = report.is_named().then_some(&array.name);
        let rows = array.shape.iter().product();
        let fields = array.fields().into_iter();
        let mut columns: Vec<_> = fields.map(|f| Column::of_field(prefix, f, rows)).collect();
        if report.as_record && report.has_missing() {
            let values = Values::Numbers(Cow::Owned(Numbers::of(&[array.missing])));
            let name = named(prefix, "missing");
            columns.push(Column { name, values, unit: None, missing: Vec::new() });
        }
        columns
    }

    /// The unit, and the integers that count it; those of rows without one are whatever.
    pub(super) fn counts(&self) -> Option<(&'a Unit, Vec<i128>)> {
        let Values::Numbers(numbers) = &self.values else { return None };
        let count = |number| match number {
            Scalar::Int(count, _) => Some(i128::from(count)),
            Scalar::UInt(count, _) => Some(i128::from(count)),
            _ => None,
        };
        let integers = matches!(numbers.dtype(), DType::I32 | DType::I64 | DType::U64);
        let unit = self.unit.filter(|_| integers)?;
        Some((unit, numbers.iter().map(count).collect::<Option<_>>()?))
    }

    /// The decimals, if they are such, and the digits behind the point; those of rows without one
    /// are whatever.
    pub(super) fn decimals(&self) -> Option<(u8, Vec<Decimal>)> {
        let (Values::Numbers(numbers), Some(Unit::Decimal(digits))) = (&self.values, self.unit)
        else {
            return None;
        };
        let decimal = |number| match number {
            Scalar::Int(integer, _) => Some(Decimal::of(integer.into(), *digits)),
            Scalar::UInt(integer, _) => Some(Decimal::of(integer.into(), *digits)),
            Scalar::Decimal(decimal) => Some(decimal),
            _ => None,
        };
        Some((*digits, numbers.iter().map(decimal).collect::<Option<_>>()?))
    }

    /// Whether each of these rows has a value.
    pub(super) fn valid(&self, rows: Range<usize>) -> Vec<bool> {
        let mut valid = vec![true; rows.len()];
        let first = self.missing.partition_point(|&row| row < rows.start);
        let these = self.missing[first..].iter().take_while(|&&row| row < rows.end);
        these.for_each(|row| valid[row - rows.start] = false);
        valid
    }
}

/// Whether decimals have at most 38 digits, which are what 128 bits hold; else they have 76.
pub(super) fn is_128_bits(decimals: &[Decimal]) -> bool {
    let fits = |decimal: i128| decimal.unsigned_abs() < 10u128.pow(38);
    decimals.iter().all(|decimal| decimal.to_i128().is_some_and(fits))
}

fn named(prefix: Option<&String>, name: &str) -> String {
    prefix.map_or_else(|| name.to_string(), |prefix| format!("{prefix}_{name}"))
}
