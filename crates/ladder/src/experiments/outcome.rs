//! The outcome of an experiment.

use crate::chart::Chart;
use serde::{Deserialize, Serialize};

/// The outcome of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What was found, a sentence each.
    pub findings: Vec<String>,
    /// The numbers.
    pub tables: Vec<Table>,
    /// The same as pictures.
    #[serde(default)]
    pub charts: Vec<Chart>,
    /// Something drawn in letters, such as a tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drawings: Vec<String>,
    /// What could not be done here, and why.
    #[serde(default)]
    pub skipped: Vec<String>,
    /// Answers that were not right, a sentence each.
    #[serde(default)]
    pub wrong: Vec<String>,
}

/// Numbers in rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The names of the columns, with their units.
    pub columns: Vec<String>,
    /// A list of cells for each row.
    pub rows: Vec<Vec<Cell>>,
}

/// What a place of a table holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A whole number.
    Whole(u64),
    /// A measured or computed one.
    Number(f64),
    /// Words.
    Text(String),
    /// Nothing: not measured here.
    None,
}

impl Table {
    pub(super) fn new(title: &str, columns: &[&str]) -> Table {
        let columns = columns.iter().map(|&name| name.into()).collect();
        Table { title: title.into(), columns, rows: Vec::new() }
    }

    /// The table without the columns in which nothing was measured.
    #[must_use]
    pub fn without_empty_columns(&self) -> Table {
        let full = |at: &usize| {
            self.rows.iter().any(|row| !matches!(row.get(*at), Some(Cell::None) | None))
        };
        let kept: Vec<usize> = (0..self.columns.len()).filter(full).collect();
        Table {
            title: self.title.clone(),
            columns: kept.iter().map(|&at| self.columns[at].clone()).collect(),
            rows: self
                .rows
                .iter()
                .map(|row| {
                    kept.iter().map(|&at| row.get(at).cloned().unwrap_or(Cell::None)).collect()
                })
                .collect(),
        }
    }
}

impl Cell {
    /// The cell as people read it.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Cell::Whole(n) => n.to_string(),
            Cell::Number(x) => number(*x),
            Cell::Text(text) => text.clone(),
            Cell::None => "-".into(),
        }
    }
}

/// Four digits, and no more behind the point than are needed for them.
pub(crate) fn number(x: f64) -> String {
    let digits = match x.abs() {
        _ if !x.is_finite() || x == 0.0 => 0,
        a if a >= 1000.0 => 0,
        a if a >= 100.0 => 1,
        a if a >= 10.0 => 2,
        a if a >= 1e-3 => 3,
        _ => return format!("{x:.3e}"),
    };
    let text = format!("{x:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

macro_rules! cell {
    ($($t:ty => $of:expr),* $(,)?) => {$(
        impl From<$t> for Cell {
            fn from(x: $t) -> Cell {
                let of: fn($t) -> Cell = $of;
                of(x)
            }
        }
    )*};
}
cell! {
    u32 => |x| Cell::Whole(x.into()),
    u64 => Cell::Whole,
    f64 => |x| if x.is_finite() { Cell::Number(x) } else { Cell::None },
    Option<f64> => |x| x.map_or(Cell::None, Cell::from),
    Option<u32> => |x| x.map_or(Cell::None, Cell::from),
    &str => |x| Cell::Text(x.into()),
    String => Cell::Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let shown = |x: f64| Cell::Number(x).shown();
        assert_eq!([shown(4321.9), shown(432.19), shown(43.219)], ["4322", "432.2", "43.22"]);
        assert_eq!([shown(4.0), shown(0.5), shown(0.0)], ["4", "0.5", "0"]);
        assert_eq!(shown(1.25e-6), "1.250e-6");
        assert_eq!(Cell::from(f64::NAN), Cell::None);
    }

    #[test]
    fn empty_columns_go_and_cells_survive_json() {
        let mut table = Table::new("t", &["a", "b", "c"]);
        table.rows.push(vec![1u32.into(), Cell::None, "x".into()]);
        table.rows.push(vec![2.5.into(), Cell::None, Cell::None]);
        let shorter = table.without_empty_columns();
        assert_eq!(shorter.columns, ["a", "c"]);
        assert_eq!(shorter.rows[1], [Cell::Number(2.5), Cell::None]);
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<Table>(&text).unwrap(), table);
    }
}
