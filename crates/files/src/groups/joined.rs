//! The columns of joined tables, each brought to one type.

use super::keyed::Keyed;
use crate::cast::Cast;
use crate::table::Typing;
use crate::{Error, Result, Unit};
use warpfold::internal::Counted;
use warpfold_core::DType;

/// What a column is read as, and what its integers count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) typing: Typing,
    pub(crate) unit: Option<Unit>,
}

impl Kind {
    pub(crate) fn plain(typing: Typing) -> Kind {
        Kind { typing, unit: None }
    }

    fn of(Counted { dtype, unit }: Counted) -> Kind {
        Kind { typing: Typing::Fixed(dtype), unit }
    }

    /// The type of columns of which it is known.
    fn counted(&self) -> Option<Counted> {
        match self.typing {
            Typing::Fixed(dtype) => Some(Counted { dtype, unit: self.unit.clone() }),
            Typing::Open | Typing::Text => None,
        }
    }

    /// As messages name it.
    fn name(&self) -> String {
        match (&self.unit, self.typing) {
            (Some(unit), _) => unit.to_string(),
            (None, Typing::Fixed(dtype)) => dtype.to_string(),
            (None, Typing::Open) => "numbers".into(),
            (None, Typing::Text) => "text".into(),
        }
    }

    /// The same, of a column of a table: cells look like numbers, and are not.
    fn name_in(&self, table: &Keyed) -> String {
        match self.typing {
            Typing::Text if table.is_of_cells() => "the text of its cells, as it is written".into(),
            _ => self.name(),
        }
    }
}

/// The columns of joined tables: of keys, and of values.
pub(super) struct Joined {
    pub(super) keys: Vec<Kind>,
    pub(super) values: Vec<Kind>,
}

/// Finds the type that each column has in all tables, and tells the tables to read it so.
///
/// # Errors
/// Types that have no values in common, with the names of both tables.
pub(super) fn join(tables: &mut [Keyed]) -> Result<Joined> {
    let keys = columns(tables, true)?;
    let values = columns(tables, false)?;
    let first: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
    for place in 0..tables.len() {
        let mut casts = Vec::new();
        for (is_key, joined) in [(true, &keys), (false, &values)] {
            for (column, joined) in joined.iter().enumerate() {
                let of = |table: &Keyed| table.columns(is_key)[column].1.clone();
                let because = tables.iter().position(|table| of(table) == *joined);
                let because = because.map_or("another file", |other| &first[other]);
                let (name, own) = &tables[place].columns(is_key)[column];
                let name = format!("{}:{name}", tables[place].name);
                casts.push(cast(&name, because, own, joined));
            }
        }
        tables[place].casts = casts.into();
    }
    Ok(Joined { keys, values })
}

fn columns(tables: &[Keyed], keys: bool) -> Result<Vec<Kind>> {
    let rule = if keys { keys_joined } else { values_joined };
    let Some(first) = tables.first() else { return Ok(Vec::new()) };
    let column = |(place, (name, kind)): (usize, &(String, Kind))| {
        let mut joined = if keys { kind.clone() } else { as_states(kind) };
        for (at, other) in tables.iter().enumerate().skip(1) {
            let own = &other.columns(keys)[place].1;
            joined = rule(&joined, own).map_err(|error| {
                // The first table that it does not go with by itself.
                let before = tables[..at].iter().find_map(|before| {
                    let theirs = &before.columns(keys)[place].1;
                    Some((before, theirs, rule(theirs, own).err()?))
                });
                match before {
                    Some((before, theirs, error)) => {
                        refusal(name, (before, theirs), (other, own), error)
                    }
                    None => refusal(name, (first, &joined), (other, own), error),
                }
            })?;
        }
        Ok(joined)
    };
    first.columns(keys).iter().enumerate().map(column).collect()
}

/// The error that a column of one table does not go with that of another.
fn refusal(
    column: &str,
    (before, left): (&Keyed, &Kind),
    (other, right): (&Keyed, &Kind),
    error: warpfold::Error,
) -> Error {
    let (left, right, hint) = match error {
        warpfold::Error::UnitMismatch { left, right, hint } => (left, right, Some(hint)),
        _ => (left.name_in(before), right.name_in(other), None),
    };
    let what = format!("{column} is {right}, but in {} it is {left}", before.name);
    let error = Error::format(&other.name, what);
    match hint {
        Some(hint) => error.with_hint(hint),
        None if before.is_of_cells() || other.is_of_cells() => {
            error.with_hint("cast the column of numbers to text, or read the table of text from a file that has their type: .parquet or .arrow")
        }
        None => error.with_hint("cast one of the two columns to the type of the other"),
    }
}

fn mismatch(left: &Kind, right: &Kind) -> warpfold::Error {
    let (left, right) = (left.name(), right.name());
    warpfold::Error::StateMismatch { what: "key type", left, right }
}

/// Keys are equal by value, whatever the width of their integers; to texts, as they are
/// written.
fn keys_joined(left: &Kind, right: &Kind) -> Result<Kind, warpfold::Error> {
    match (left.counted(), right.counted()) {
        (Some(left), Some(right)) => left.joined(&right).map(Kind::of),
        (None, None) => Ok(left.clone()),
        (Some(number), None) | (None, Some(number)) => {
            match number.dtype.is_float() || number.unit.is_some_and(|unit| unit.is_number()) {
                // 1.50 and 1.5 are one number and two texts.
                true => Err(mismatch(left, right)),
                false => Ok(Kind::plain(Typing::Text)),
            }
        }
    }
}

/// What values are in states: those with a unit count in i64.
fn as_states(kind: &Kind) -> Kind {
    match &kind.unit {
        Some(_) => Kind { typing: Typing::Fixed(DType::I64), unit: kind.unit.clone() },
        None => kind.clone(),
    }
}

/// Numbers of text are as open beside integers of 64 bits with a sign as beside other texts.
fn values_joined(left: &Kind, right: &Kind) -> Result<Kind, warpfold::Error> {
    let (left, right) = (as_states(left), as_states(right));
    match (left.counted(), right.counted()) {
        (Some(left), Some(right)) => left.joined(&right).map(Kind::of),
        (None, None) => Ok(left),
        (Some(number), None) | (None, Some(number)) => {
            Unit::joined(number.unit.as_ref(), None)?;
            match number.dtype {
                DType::Bool | DType::U64 => Err(mismatch(&left, &right)),
                dtype if dtype.is_float() => Ok(Kind::plain(Typing::Fixed(DType::F64))),
                _ => Ok(Kind::plain(Typing::Open)),
            }
        }
    }
}

/// How the elements of a column become those of the joined one.
fn cast(name: &str, because: &str, own: &Kind, joined: &Kind) -> Option<Cast> {
    let counted = own.counted()?;
    match joined.typing {
        Typing::Text => Some(Cast::Text(own.unit.clone())),
        // Integers among floats of text are rounded as the cells are.
        Typing::Fixed(DType::F64) if counted.dtype.is_float() => {
            Cast::widen(name, because, counted, joined.counted()?)
        }
        Typing::Open | Typing::Fixed(DType::F64) => {
            Cast::widen(name, because, counted, Counted { dtype: DType::I64, unit: None })
        }
        Typing::Fixed(_) => Cast::widen(name, because, counted, joined.counted()?),
    }
}
