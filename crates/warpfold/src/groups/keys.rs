//! What rows are grouped by.

use super::column::{Column, check_shape};
use crate::devices::DeviceArray;
use crate::unit::Unit;
use core::fmt;
use core::ops::Range;
use std::sync::Arc;
use warpfold_core::element::{Bool8, bf16, f16};
use warpfold_core::layout::{Input, View};
use warpfold_core::{DType, Error, Result};

/// A column of keys: one for each row.
///
/// Slices of integers, truth values, floats and texts are columns, and so are
/// [`Input`]s, whose rows may have no key. Floats are equal as numbers are: `-0` and
/// `+0` are one key, written `0`, and all NaNs are one.
#[derive(Clone, Debug)]
pub struct KeyColumn<'a> {
    pub(super) items: Items<'a>,
    /// What they count.
    pub(super) unit: Option<Unit>,
    /// Decimals beyond 64 bits, by their rows, ascending, which have no number; and which of these
    /// is the first.
    pub(super) wide: (&'a [(u64, i128)], u64),
}

#[derive(Clone, Debug)]
pub(super) enum Items<'a> {
    Numbers(Input<'a>),
    Strs(&'a [&'a str]),
    Strings(&'a [String]),
    Options(&'a [Option<&'a str>]),
    Owned(&'a [Option<String>]),
    /// Of another library.
    #[cfg_attr(not(feature = "arrow"), expect(dead_code, reason = "Arrow alone has such"))]
    Foreign(Arc<dyn TextRows + 'a>),
    Packed(Packed<'a>),
    Coded(Coded<'a>),
    #[cfg_attr(
        not(any(feature = "cuda", feature = "sim")),
        expect(dead_code, reason = "without devices there are no arrays on them")
    )]
    Device(DeviceArray<'a>),
}

/// Rows each of which is a text or has none.
pub(super) trait TextRows: fmt::Debug + Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;
    /// Calls `each` with the text of each of some rows.
    fn for_each<'s>(&'s self, rows: Range<usize>, each: &mut dyn FnMut(Option<&'s [u8]>));
}

/// Texts one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    bytes: &'a [u8],
    /// Where each row's text ends.
    ends: &'a [u32],
    /// Which rows have one, ascending runs `(first row, length)` of those without.
    gaps: &'a [(u32, u32)],
}

/// Texts by their codes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coded<'a> {
    /// The texts, and where that of each code ends. Codes that no row has may be there.
    bytes: &'a [u8],
    ends: &'a [u32],
    /// The code of each row.
    codes: &'a [u32],
    /// Which rows have one, as of [`Packed`].
    gaps: &'a [(u32, u32)],
}

impl<'a> Coded<'a> {
    pub(super) fn distinct(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn text(&self, code: u32) -> &'a [u8] {
        let code = code as usize;
        let start = code.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[code] as usize]
    }

    /// Calls `each` with the code of each of some rows.
    pub(super) fn for_each(&self, rows: Range<usize>, mut each: impl FnMut(Option<u32>)) {
        let mut gaps = Gaps::new(self.gaps);
        for row in rows {
            each((!gaps.has(row)).then(|| self.codes[row]));
        }
    }
}

/// Runs of rows that have no text, asked for in ascending order.
struct Gaps<'a>(&'a [(u32, u32)]);

impl<'a> Gaps<'a> {
    fn new(gaps: &'a [(u32, u32)]) -> Gaps<'a> {
        Gaps(gaps)
    }

    fn has(&mut self, row: usize) -> bool {
        while let [(first, len), rest @ ..] = self.0 {
            if (first + len) as usize > row {
                return *first as usize <= row;
            }
            self.0 = rest;
        }
        false
    }
}

/// The type of a column of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyType {
    Number(DType),
    Text,
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyType::Number(dtype) => dtype.fmt(f),
            KeyType::Text => f.write_str("text"),
        }
    }
}

impl<'a> KeyColumn<'a> {
    pub(super) fn of(items: Items<'a>) -> KeyColumn<'a> {
        KeyColumn { items, unit: None, wide: (&[], 0) }
    }

    /// Says what the keys, which are integers, count: such as days since 1970-01-01. Keys that
    /// count other steps of time go together with them as what they stand for, and those that
    /// count something else do not.
    ///
    /// ```
    /// use warpfold::{KeyColumn, Op, Reduction, Tick, Unit};
    ///
    /// let days = KeyColumn::from(&[19_723, 19_724, 19_723][..]).counting(Unit::Date(Tick::Day));
    /// let sums = Reduction::of(Op::Sum).by(days).run(&[1, 2, 4])?;
    /// assert_eq!(sums.to_string(), "2024-01-01: 5\n2024-01-02: 2");
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn counting(mut self, unit: Unit) -> KeyColumn<'a> {
        self.unit = Some(unit);
        self
    }

    /// Says which rows, ascending, have decimals beyond 64 bits: the numbers of these are missing.
    /// The first row of the column is number `first` of these.
    #[doc(hidden)]
    #[must_use]
    pub fn beyond(mut self, wide: &'a [(u64, i128)], first: u64) -> KeyColumn<'a> {
        let before = wide.partition_point(|&(row, _)| row < first);
        self.wide = (&wide[before..], first);
        self
    }

    /// Texts that lie one after the other in `bytes`: row `i`'s ends at `ends[i]`. `gaps`
    /// are runs of rows without a key, ascending; their texts are empty.
    #[doc(hidden)]
    #[must_use]
    pub fn packed(bytes: &'a [u8], ends: &'a [u32], gaps: &'a [(u32, u32)]) -> KeyColumn<'a> {
        KeyColumn::of(Items::Packed(Packed { bytes, ends, gaps }))
    }

    /// Texts by codes: that of row `i` is number `codes[i]` of the texts that lie one after
    /// the other in `bytes`, each up to its place in `ends`. Of rows in `gaps`, as in
    /// [`packed`](Self::packed), the code is not looked at.
    ///
    /// # Panics
    /// Where it is used, if there is no text of a code.
    #[doc(hidden)]
    #[must_use]
    pub fn coded(
        bytes: &'a [u8],
        ends: &'a [u32],
        codes: &'a [u32],
        gaps: &'a [(u32, u32)],
    ) -> KeyColumn<'a> {
        KeyColumn::of(Items::Coded(Coded { bytes, ends, codes, gaps }))
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// An array of something else than numbers, or of more than one axis.
    pub(crate) fn rows(&self) -> Result<usize> {
        match &self.items {
            Items::Numbers(input) => Ok(Column::new(input).map_err(no_keys)?.rows()),
            Items::Strs(texts) => Ok(texts.len()),
            Items::Strings(texts) => Ok(texts.len()),
            Items::Options(texts) => Ok(texts.len()),
            Items::Owned(texts) => Ok(texts.len()),
            Items::Foreign(texts) => Ok(texts.count()),
            Items::Packed(packed) => Ok(packed.ends.len()),
            Items::Coded(coded) => Ok(coded.codes.len()),
            Items::Device(array) => check_shape(array.shape()),
        }
    }

    pub(crate) fn key_type(&self) -> Result<KeyType> {
        match &self.items {
            Items::Numbers(input) => Ok(KeyType::Number(input.view().map_err(no_keys)?.dtype())),
            Items::Device(array) => Ok(KeyType::Number(array.dtype())),
            _ => Ok(KeyType::Text),
        }
    }

    /// Calls `each` with the text of each row of a column of texts.
    pub(super) fn for_each_text<'s>(
        &'s self,
        rows: Range<usize>,
        mut each: impl FnMut(Option<&'s [u8]>),
    ) {
        match &self.items {
            Items::Numbers(_) | Items::Device(_) => {}
            Items::Strs(texts) => texts[rows].iter().for_each(|t| each(Some(t.as_bytes()))),
            Items::Strings(texts) => texts[rows].iter().for_each(|t| each(Some(t.as_bytes()))),
            Items::Options(texts) => {
                texts[rows].iter().for_each(|t| each(t.map(str::as_bytes)));
            }
            Items::Owned(texts) => {
                texts[rows].iter().for_each(|t| each(t.as_deref().map(str::as_bytes)));
            }
            Items::Foreign(texts) => texts.for_each(rows, &mut each),
            Items::Packed(Packed { bytes, ends, gaps }) => {
                let mut gaps = Gaps::new(gaps);
                let mut start = rows.start.checked_sub(1).map_or(0, |row| ends[row] as usize);
                for row in rows {
                    let end = ends[row] as usize;
                    each((!gaps.has(row)).then(|| &bytes[start..end]));
                    start = end;
                }
            }
            Items::Coded(coded) => {
                coded.for_each(rows, |code| each(code.map(|code| coded.text(code))));
            }
        }
    }
}

/// What is no number is no key either, nor a text.
fn no_keys(error: Error) -> Error {
    match error {
        Error::NotNumbers { found } => Error::NotKeys { found },
        error => error,
    }
}

impl<'a> From<Input<'a>> for KeyColumn<'a> {
    fn from(input: Input<'a>) -> KeyColumn<'a> {
        KeyColumn::of(Items::Numbers(input))
    }
}

impl<'a> From<View<'a>> for KeyColumn<'a> {
    fn from(view: View<'a>) -> KeyColumn<'a> {
        KeyColumn::of(Items::Numbers(view.into()))
    }
}

#[cfg(any(feature = "cuda", feature = "sim"))]
impl<'a> From<DeviceArray<'a>> for KeyColumn<'a> {
    fn from(array: DeviceArray<'a>) -> KeyColumn<'a> {
        KeyColumn::of(Items::Device(array))
    }
}

#[cfg(any(feature = "cuda", feature = "sim"))]
impl<'a> From<&'a DeviceArray<'a>> for KeyColumn<'a> {
    fn from(array: &'a DeviceArray<'a>) -> KeyColumn<'a> {
        array.clone().into()
    }
}

macro_rules! columns {
    ($([$($generic:tt)*] $items:ty => $variant:ident $make:expr;)*) => {$(
        impl<'a, $($generic)*> From<&'a $items> for KeyColumn<'a> {
            fn from(items: &'a $items) -> KeyColumn<'a> {
                KeyColumn::of(Items::$variant($make(items)))
            }
        }
        impl<'a, $($generic)*> From<&'a $items> for Keys<'a> {
            fn from(items: &'a $items) -> Keys<'a> {
                Keys { columns: vec![items.into()], dense: None }
            }
        }
    )*};
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        columns! {
            [] [$t] => Numbers Input::from;
            [] Vec<$t> => Numbers |items: &'a Vec<$t>| Input::from(&items[..]);
            [const N: usize] [$t; N] => Numbers |items: &'a [$t; N]| Input::from(&items[..]);
        }
    )*};
}
numbers!(bool, Bool8, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f16, bf16, f32, f64);
columns! {
    [] [&'a str] => Strs |items: &'a [&'a str]| items;
    [] Vec<&'a str> => Strs |items: &'a Vec<&'a str>| &items[..];
    [const N: usize] [&'a str; N] => Strs |items: &'a [&'a str; N]| &items[..];
    [] [String] => Strings |items: &'a [String]| items;
    [] Vec<String> => Strings |items: &'a Vec<String>| &items[..];
    [const N: usize] [String; N] => Strings |items: &'a [String; N]| &items[..];
    [] [Option<&'a str>] => Options |items: &'a [Option<&'a str>]| items;
    [] Vec<Option<&'a str>> => Options |items: &'a Vec<Option<&'a str>>| &items[..];
    [const N: usize] [Option<&'a str>; N] => Options |items: &'a [Option<&'a str>; N]| &items[..];
    [] [Option<String>] => Owned |items: &'a [Option<String>]| items;
    [] Vec<Option<String>> => Owned |items: &'a Vec<Option<String>>| &items[..];
}

/// One or several columns of keys. Rows with equal keys in all of them are a group.
///
/// ```
/// use warpfold::{Keys, Op, Reduction};
///
/// let (region, year) = (["north", "south", "north"], [2023, 2023, 2024]);
/// let keys = Keys::new([region[..].into(), year[..].into()]);
/// let sums = Reduction::of(Op::Sum).by(keys).run(&[1, 2, 4])?;
/// assert_eq!(sums.slice::<i64>(Op::Sum), Some(&[1, 4, 2][..]));
/// # Ok::<(), warpfold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keys<'a> {
    pub(crate) columns: Vec<KeyColumn<'a>>,
    /// The number of groups, if keys are theirs.
    pub(crate) dense: Option<usize>,
}

impl<'a> Keys<'a> {
    /// Several columns.
    #[must_use]
    pub fn new(columns: impl IntoIterator<Item = KeyColumn<'a>>) -> Keys<'a> {
        Keys { columns: columns.into_iter().collect(), dense: None }
    }

    /// Integers that are the numbers of groups, each below `groups`: nothing is looked
    /// up, and every group has an answer, with rows or without.
    ///
    /// ```
    /// use warpfold::{Keys, Op, Reduction};
    ///
    /// let counts = Reduction::of(Op::Count).by(Keys::dense(&[2u32, 0, 2], 4)).run(&[1.0; 3])?;
    /// assert_eq!(counts.slice::<u64>(Op::Count), Some(&[1, 0, 2, 0][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn dense(keys: impl Into<KeyColumn<'a>>, groups: usize) -> Keys<'a> {
        Keys { columns: vec![keys.into()], dense: Some(groups) }
    }

    /// The columns that lie in a device's memory.
    pub(super) fn on_device(&self) -> impl Iterator<Item = &DeviceArray<'a>> {
        self.columns.iter().filter_map(|column| match &column.items {
            Items::Device(array) => Some(array),
            _ => None,
        })
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// No columns, columns of different lengths, or columns that are not of keys.
    pub(crate) fn rows(&self) -> Result<usize> {
        let Some(first) = self.columns.first() else {
            return Err(Error::Groups {
                what: "there is no column of keys".into(),
                hint: "name one; without keys there are no groups".into(),
            });
        };
        let rows = first.rows()?;
        for column in &self.columns[1..] {
            let other = column.rows()?;
            if other != rows {
                return Err(Error::ShapeMismatch { left: vec![rows], right: vec![other] });
            }
        }
        Ok(rows)
    }
}

impl<'a> From<KeyColumn<'a>> for Keys<'a> {
    fn from(column: KeyColumn<'a>) -> Keys<'a> {
        Keys::new([column])
    }
}

impl<'a> From<Input<'a>> for Keys<'a> {
    fn from(input: Input<'a>) -> Keys<'a> {
        Keys::new([input.into()])
    }
}

#[cfg(any(feature = "cuda", feature = "sim"))]
impl<'a> From<DeviceArray<'a>> for Keys<'a> {
    fn from(array: DeviceArray<'a>) -> Keys<'a> {
        Keys::new([array.into()])
    }
}

#[cfg(any(feature = "cuda", feature = "sim"))]
impl<'a> From<&'a DeviceArray<'a>> for Keys<'a> {
    fn from(array: &'a DeviceArray<'a>) -> Keys<'a> {
        Keys::new([array.into()])
    }
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<'a, $($name: Into<KeyColumn<'a>>),*> From<($($name,)*)> for Keys<'a> {
            #[expect(non_snake_case, reason = "a type's name is that of its value")]
            fn from(($($name,)*): ($($name,)*)) -> Keys<'a> {
                Keys::new([$($name.into()),*])
            }
        }
    };
}
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
