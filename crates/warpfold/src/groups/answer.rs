//! The answers of groups.

use super::dictionary::shown;
use crate::answer::Column;
use crate::unit::Unit;
use core::fmt;
use warpfold_core::op::{Numbers, Op, Value};
use warpfold_core::{DType, Item, Scalar};

/// Texts one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<usize>,
}

impl Texts {
    fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }
}

/// One column of the groups' keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValues {
    held: Held,
    /// What they count.
    unit: Option<Unit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Numbers { numbers: Numbers, missing: Vec<usize> },
    Texts { texts: Texts, missing: Vec<usize> },
}

impl KeyValues {
    pub(super) fn of_numbers(
        numbers: Numbers,
        unit: Option<Unit>,
        missing: Vec<usize>,
    ) -> KeyValues {
        KeyValues { held: Held::Numbers { numbers, missing }, unit }
    }

    pub(super) fn of_texts(texts: Texts, missing: Vec<usize>) -> KeyValues {
        KeyValues { held: Held::Texts { texts, missing }, unit: None }
    }

    /// How many groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.held {
            Held::Numbers { numbers, .. } => numbers.len(),
            Held::Texts { texts, .. } => texts.ends.len(),
        }
    }

    /// Whether there are no groups.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether group `index` is that of the rows without a key.
    #[must_use]
    pub fn is_missing(&self, index: usize) -> bool {
        let (Held::Numbers { missing, .. } | Held::Texts { missing, .. }) = &self.held;
        missing.binary_search(&index).is_ok()
    }

    /// What keys that are integers count: days, or steps of time.
    #[must_use]
    pub fn unit(&self) -> Option<&Unit> {
        self.unit.as_ref()
    }

    /// The keys, if they are numbers; of a group without a key, zero.
    #[must_use]
    pub fn numbers(&self) -> Option<&Numbers> {
        match &self.held {
            Held::Numbers { numbers, .. } => Some(numbers),
            Held::Texts { .. } => None,
        }
    }

    /// The keys as a slice, if `T` is their type; of a group without a key, zero.
    #[must_use]
    pub fn slice<T: Item>(&self) -> Option<&[T]> {
        self.numbers()?.as_slice()
    }

    /// The number of a group's key, if it is one.
    #[must_use]
    pub fn number(&self, index: usize) -> Option<Scalar> {
        if self.is_missing(index) { None } else { self.numbers()?.get(index) }
    }

    /// The text of a group's key, if it is one and is UTF-8.
    #[must_use]
    pub fn text(&self, index: usize) -> Option<&str> {
        core::str::from_utf8(self.text_bytes(index)?).ok()
    }

    /// The text of a group's key, if it is one.
    #[must_use]
    pub fn text_bytes(&self, index: usize) -> Option<&[u8]> {
        match &self.held {
            Held::Texts { texts, .. } if !self.is_missing(index) => texts.get(index),
            _ => None,
        }
    }

    /// Whether the keys are texts, and all of them are UTF-8.
    #[must_use]
    pub fn are_utf8(&self) -> bool {
        let Held::Texts { texts, .. } = &self.held else { return false };
        let all = core::str::from_utf8(&texts.bytes);
        all.is_ok_and(|all| texts.ends.iter().all(|&end| all.is_char_boundary(end)))
    }

    /// The texts, if they are such and UTF-8; none for rows without one.
    #[must_use]
    pub fn texts(&self) -> Option<Vec<Option<&str>>> {
        let Held::Texts { texts, .. } = &self.held else { return None };
        let text = |i: usize| match self.is_missing(i) {
            true => Some(None),
            false => core::str::from_utf8(texts.get(i)?).ok().map(Some),
        };
        (0..self.len()).map(text).collect()
    }

    /// A key as it is printed: nothing for none.
    fn show(&self, index: usize) -> String {
        match (self.number(index), self.text_bytes(index)) {
            (Some(number), _) => shown(number, self.unit()),
            (_, Some(text)) => String::from_utf8_lossy(text).into_owned(),
            _ => "-".into(),
        }
    }
}

/// The answers to one operation, group by group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupColumn {
    /// The answers; zeros for groups without one.
    pub(crate) column: Column,
    /// The places of groups that have no answer, ascending.
    pub(crate) missing: Vec<usize>,
}

impl GroupColumn {
    /// That of an operation that has no answer for any of so many groups.
    #[doc(hidden)]
    #[must_use]
    pub fn without_answers(op: Op, groups: usize) -> GroupColumn {
        let numbers = Numbers::zeros(DType::F64, groups);
        let second = op.pair().map(|_| numbers.clone());
        GroupColumn { column: Column { op, numbers, second }, missing: (0..groups).collect() }
    }

    /// The operation.
    #[must_use]
    pub fn op(&self) -> Op {
        self.column.op
    }

    /// The answers in memory; of a group that has none, zero.
    #[must_use]
    pub fn column(&self) -> &Column {
        &self.column
    }

    /// Whether group `index` has no answer: no smallest element, as it has no elements.
    #[must_use]
    pub fn is_missing(&self, index: usize) -> bool {
        self.missing.binary_search(&index).is_ok()
    }

    /// How many groups have no answer.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.missing.len()
    }

    /// The answer of group `index`, if there is one.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value> {
        if self.is_missing(index) { None } else { self.column.get(index) }
    }
}

/// The groups, and a column for each operation.
///
/// ```
/// use warpfold::{Op, Reduction};
///
/// let (region, price) = (["south", "north", "south"], [1.5, 2.0, 4.0]);
/// let means = Reduction::new([Op::Mean, Op::Count]).by(&region).run(&price)?;
/// assert_eq!(means.keys()[0].texts(), Some(vec![Some("north"), Some("south")]));
/// assert_eq!(means.slice::<f64>(Op::Mean), Some(&[2.0, 2.75][..]));
/// assert_eq!(means.slice::<u64>(Op::Count), Some(&[1, 2][..]));
/// # Ok::<(), warpfold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouped {
    pub(crate) keys: Vec<KeyValues>,
    pub(crate) columns: Vec<GroupColumn>,
    pub(crate) groups: usize,
}

impl Grouped {
    /// How many groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups == 0
    }

    /// The groups' keys, a column of them for each column of keys.
    #[must_use]
    pub fn keys(&self) -> &[KeyValues] {
        &self.keys
    }

    /// The answers, in the order of the operations.
    #[must_use]
    pub fn columns(&self) -> &[GroupColumn] {
        &self.columns
    }

    /// The answers to `op`.
    #[must_use]
    pub fn column(&self, op: Op) -> Option<&GroupColumn> {
        self.columns.iter().find(|column| column.op() == op)
    }

    /// The answers to `op` as a slice, if `T` is their type; of a group that has no
    /// answer, zero.
    #[must_use]
    pub fn slice<T: Item>(&self, op: Op) -> Option<&[T]> {
        self.column(op)?.column.numbers.as_slice()
    }
}

/// A line for each group: its keys, and the answers.
impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for group in 0..self.groups {
            if group > 0 {
                f.write_str("\n")?;
            }
            let keys: Vec<String> = self.keys.iter().map(|keys| keys.show(group)).collect();
            write!(f, "{}:", keys.join(", "))?;
            for column in &self.columns {
                match column.get(group) {
                    Some(value) => write!(f, " {value}")?,
                    None => f.write_str(" -")?,
                }
            }
        }
        Ok(())
    }
}
