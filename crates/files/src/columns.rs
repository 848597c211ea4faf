//! Column lists: `price,3,5-8`.

use crate::{Error, Result};
use core::fmt;
#[cfg(any(
    feature = "npy",
    feature = "text",
    feature = "arrow",
    feature = "parquet",
    feature = "safetensors",
    feature = "zarr",
    feature = "hdf5"
))]
use std::collections::HashMap;

/// One item of a column list.
///
/// A name that a column really has wins over a number or range that looks
/// the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnSelector {
    /// A column by its name.
    Name(String),
    /// A column by its place, counted from 1.
    Index(usize),
    /// The columns from one place to another, both included.
    Range(usize, usize),
}

impl ColumnSelector {
    /// Reads a list such as `price,3,5-8`. A name that holds a comma goes in
    /// double quotes: `"price, net",3`.
    ///
    /// # Errors
    /// An empty item, a place 0, a range that runs backwards, an open quote.
    ///
    /// # Examples
    /// ```
    /// use warpfold_files::ColumnSelector::{self, Index, Name, Range};
    /// let list = ColumnSelector::parse_list("price,3,5-8")?;
    /// assert_eq!(list, [Name("price".into()), Index(3), Range(5, 8)]);
    /// # Ok::<(), warpfold_files::Error>(())
    /// ```
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        let fail = |what: String| Err(Error::format("the column list", what));
        let mut list = Vec::new();
        let mut rest = text;
        loop {
            if let Some(quoted) = rest.trim_start().strip_prefix('"') {
                let Some((name, after)) = quoted.split_once('"') else {
                    return fail(format!("the quote in {text:?} is never closed"));
                };
                list.push(ColumnSelector::Name(name.into()));
                match after.trim_start() {
                    "" => return Ok(list),
                    after => match after.strip_prefix(',') {
                        Some(next) => rest = next,
                        None => return fail(format!("a comma is missing in {text:?}")),
                    },
                }
                continue;
            }
            let (item, next) = match rest.split_once(',') {
                Some((item, next)) => (item.trim(), Some(next)),
                None => (rest.trim(), None),
            };
            list.push(match Self::parse_item(item) {
                Ok(selector) => selector,
                Err(why) => return fail(format!("{why} in {text:?}")),
            });
            match next {
                Some(next) => rest = next,
                None => return Ok(list),
            }
        }
    }

    fn parse_item(item: &str) -> Result<Self, String> {
        let place = |s: &str| -> Option<usize> {
            (!s.is_empty() && s.bytes().all(|b| b.is_ascii_digit())).then(|| s.parse().ok())?
        };
        if item.is_empty() {
            return Err("an empty item".into());
        }
        if let Some(i) = place(item) {
            return if i == 0 {
                Err("column 0 (columns are counted from 1)".into())
            } else {
                Ok(ColumnSelector::Index(i))
            };
        }
        if let Some((a, b)) = item.split_once('-')
            && let (Some(a), Some(b)) = (place(a.trim()), place(b.trim()))
        {
            return if a == 0 {
                Err("column 0 (columns are counted from 1)".into())
            } else if a > b {
                Err(format!("the range {a}-{b}, which runs backwards,"))
            } else {
                Ok(ColumnSelector::Range(a, b))
            };
        }
        Ok(ColumnSelector::Name(item.into()))
    }
}

/// The column of this name.
impl From<&str> for ColumnSelector {
    fn from(name: &str) -> ColumnSelector {
        ColumnSelector::Name(name.into())
    }
}

/// The column of this name.
impl From<String> for ColumnSelector {
    fn from(name: String) -> ColumnSelector {
        ColumnSelector::Name(name)
    }
}

/// The column at this place, counted from 1.
impl From<usize> for ColumnSelector {
    fn from(place: usize) -> ColumnSelector {
        ColumnSelector::Index(place)
    }
}

impl fmt::Display for ColumnSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnSelector::Name(name) => f.write_str(name),
            ColumnSelector::Index(i) => write!(f, "{i}"),
            ColumnSelector::Range(a, b) => write!(f, "{a}-{b}"),
        }
    }
}

/// The places (from 0) that `selectors` mean among `names`, in their order. A
/// column without a name has an empty one, and is chosen by its place.
#[cfg(any(
    feature = "npy",
    feature = "text",
    feature = "arrow",
    feature = "parquet",
    feature = "safetensors",
    feature = "zarr",
    feature = "hdf5"
))]
pub(crate) fn resolve(
    selectors: &[ColumnSelector],
    names: &[String],
    file: &str,
) -> Result<Vec<usize>> {
    // Each name's column; nothing where several have it.
    let mut places: HashMap<&str, Option<usize>> = HashMap::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        places.entry(name).and_modify(|place| *place = None).or_insert(Some(i));
    }
    let named = || {
        let names = names.iter().zip(1..);
        names.map(|(n, i): (&String, usize)| if n.is_empty() { i.to_string() } else { n.clone() })
    };
    let list = || list(&named().collect::<Vec<_>>());
    let mut chosen = Vec::new();
    for selector in selectors {
        let text = selector.to_string();
        match places.get(text.as_str()) {
            Some(Some(i)) => {
                chosen.push(*i);
                continue;
            }
            Some(None) => {
                let mut same = (1..).zip(names).filter(|(_, n)| **n == text).map(|(i, _)| i);
                let (i, j) = (same.next().unwrap_or(1), same.next().unwrap_or(1));
                return Err(Error::format(file, format!("several columns are called {text:?}"))
                    .with_hint(format!("choose it by number: -c {i} or -c {j}")));
            }
            None => {}
        }
        match *selector {
            ColumnSelector::Index(i) if (1..=names.len()).contains(&i) => chosen.push(i - 1),
            ColumnSelector::Range(a, b) if a >= 1 && a <= b && b <= names.len() => {
                chosen.extend(a - 1..b);
            }
            ColumnSelector::Name(_) => {
                return Err(Error::format(
                    file,
                    format!("there is no column {text:?}; there are {}", list()),
                ));
            }
            _ => {
                return Err(Error::format(
                    file,
                    format!(
                        "column {text} was asked for, but there are only {}: {}",
                        names.len(),
                        list()
                    ),
                ));
            }
        }
    }
    Ok(chosen)
}

/// How to choose the columns at some places in another table with such columns.
#[cfg(any(feature = "text", feature = "arrow"))]
pub(crate) fn selectors(places: &[usize], names: &[String]) -> Vec<ColumnSelector> {
    let mut times: HashMap<&str, usize> = HashMap::with_capacity(names.len());
    names.iter().for_each(|name| *times.entry(name).or_default() += 1);
    let selector = |&place: &usize| match names[place].as_str() {
        name if !name.is_empty() && times.get(name) == Some(&1) => {
            ColumnSelector::Name(name.into())
        }
        // A range is not taken for a name that is a number.
        _ => ColumnSelector::Range(place + 1, place + 1),
    };
    places.iter().map(selector).collect()
}

/// The default column: the only one with numbers.
#[cfg(any(feature = "text", feature = "arrow", feature = "parquet"))]
pub(crate) fn only_numeric(numeric: &[usize], names: &[String], file: &str) -> Result<Vec<usize>> {
    match numeric {
        [only] => Ok(vec![*only]),
        [] => Err(Error::format(
            file,
            format!("no column has numbers; the columns are {}", list(names)),
        )),
        &[first, ..] => {
            let numeric: Vec<&String> = numeric.iter().map(|&i| &names[i]).collect();
            Err(Error::format(
                file,
                format!(
                    "which column? There are {} with numbers: {}",
                    numeric.len(),
                    list(&numeric)
                ),
            )
            // The first of those with numbers, which need not be the first of all.
            .with_hint(format!("choose with -c NAME, or by number: -c {}", first + 1)))
        }
    }
}

/// The error that a column cannot be one of keys; these can.
#[cfg(any(feature = "arrow", feature = "parquet"))]
pub(crate) fn no_key<S: AsRef<str>>(name: String, stored_as: &str, keys: &[S]) -> Error {
    Error::format(name, format!("rows are not grouped by a column of type {stored_as}")).with_hint(
        format!("keys are numbers, truth values, dates, times or texts, as in {}", list(keys)),
    )
}

/// Names for a message: quoted where needed, cut short after twenty.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 20;
    if names.is_empty() {
        return "none".into();
    }
    let mut text =
        names.iter().take(SHOWN).map(|n| plain(n.as_ref())).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}

fn plain(name: &str) -> String {
    let telling =
        |c: char| c.is_alphanumeric() || (c.is_ascii_graphic() || c == ' ') && !"\",".contains(c);
    let bare = !name.is_empty() && name.trim() == name && name.chars().all(telling);
    if bare { name.into() } else { format!("{name:?}") }
}

#[cfg(all(test, feature = "text"))]
mod tests {
    use super::*;
    use ColumnSelector::{Index, Name, Range};

    #[test]
    fn a_list_mixes_names_places_and_ranges() {
        let list = ColumnSelector::parse_list(" price , 3,5-8,a-b,\"x, y\",2-").unwrap();
        let name = |s: &str| Name(s.into());
        let expected =
            [name("price"), Index(3), Range(5, 8), name("a-b"), name("x, y"), name("2-")];
        assert_eq!(list, expected);
    }

    #[test]
    fn nonsense_lists_are_refused() {
        for (text, why) in [
            ("", "empty item"),
            ("a,,b", "empty item"),
            ("0", "counted from 1"),
            ("0-3", "counted from 1"),
            ("8-5", "backwards"),
            ("\"a", "never closed"),
            ("\"a\"b", "comma is missing"),
        ] {
            let message = ColumnSelector::parse_list(text).unwrap_err().to_string();
            assert!(message.contains(why), "{text:?}: {message}");
        }
    }

    #[test]
    fn a_real_name_wins_over_a_place() {
        let names: Vec<String> = ["a", "3", "2-3", "d"].map(String::from).to_vec();
        let picks = |text: &str| {
            resolve(&ColumnSelector::parse_list(text).unwrap(), &names, "t.csv").unwrap()
        };
        assert_eq!(picks("3"), [1]);
        assert_eq!(picks("2-3"), [2]);
        assert_eq!(picks("4,1-2"), [3, 0, 1]);
    }

    #[test]
    fn hints_name_columns_that_have_numbers() {
        let names: Vec<String> = ["id", "v", "w", "v"].map(String::from).to_vec();
        let hint = only_numeric(&[1, 2, 3], &names, "t.csv").unwrap_err().hint().unwrap();
        assert!(hint.ends_with("-c 2"), "{hint}");
        let list = ColumnSelector::parse_list("v").unwrap();
        let hint = resolve(&list, &names, "t.csv").unwrap_err().hint().unwrap();
        assert!(hint.ends_with("-c 2 or -c 4"), "{hint}");
    }

    #[test]
    fn a_column_without_a_name_is_chosen_by_its_place() {
        let names: Vec<String> = ["", "a", "1"].map(String::from).to_vec();
        let picks = |text: &str| {
            resolve(&ColumnSelector::parse_list(text).unwrap(), &names, "t.csv").unwrap()
        };
        // The third column is called 1; the first one is the range from 1 to 1.
        assert_eq!(picks("1"), [2]);
        assert_eq!(picks("1-1"), [0]);
        assert_eq!(picks("2"), [1]);
        let list = ColumnSelector::parse_list("b").unwrap();
        let error = resolve(&list, &names, "t.csv").unwrap_err().to_string();
        assert!(error.ends_with("there are 1, a, 1"), "{error}");
    }

    #[test]
    fn unknown_and_ambiguous_columns_list_what_there_is() {
        let names: Vec<String> = ["a", "b", "b"].map(String::from).to_vec();
        let error = |text: &str| {
            let list = ColumnSelector::parse_list(text).unwrap();
            resolve(&list, &names, "t.csv").unwrap_err().to_string()
        };
        assert_eq!(error("c"), "t.csv: there is no column \"c\"; there are a, b, b");
        assert!(error("4").contains("there are only 3"), "{}", error("4"));
        assert!(error("2-4").contains("there are only 3"), "{}", error("2-4"));
        assert!(error("b").contains("several columns"), "{}", error("b"));
    }
}
