//! Charts as data, without their drawing.

use serde::{Deserialize, Serialize};

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Chart {
    /// A number for each name.
    Bars {
        /// What it shows.
        title: String,
        /// What the numbers are: `GB/s`.
        unit: String,
        /// From top to bottom.
        bars: Vec<Bar>,
        /// A reference line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference: Option<Mark>,
    },
    /// Numbers that depend on a number.
    Lines {
        /// What it shows.
        title: String,
        /// Across.
        x: Axis,
        /// Up.
        y: Axis,
        /// One line for each name.
        lines: Vec<Line>,
        /// Named places on the x axis.
        #[serde(default)]
        marks: Vec<Mark>,
    },
    /// A number for each pair.
    Heat {
        /// What it shows.
        title: String,
        /// What the numbers are.
        unit: String,
        /// What goes across.
        across: String,
        /// The columns.
        columns: Vec<String>,
        /// What goes down.
        down: String,
        /// The rows.
        rows: Vec<String>,
        /// A list for each row; nothing where nothing was measured.
        cells: Vec<Vec<Option<f64>>>,
    },
}

/// A bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// The group that it belongs to, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What its numbers are.
    pub label: String,
    /// Whether the axis is logarithmic.
    #[serde(default)]
    pub log: bool,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A place with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Where.
    pub at: f64,
    /// What is there.
    pub text: String,
}

impl Axis {
    /// A linear axis.
    pub(crate) fn linear(label: &str) -> Axis {
        Axis { label: label.into(), log: false }
    }

    /// A logarithmic axis.
    pub(crate) fn log(label: &str) -> Axis {
        Axis { label: label.into(), log: true }
    }
}

impl Bar {
    pub(crate) fn new(name: impl Into<String>, value: f64) -> Bar {
        Bar { name: name.into(), value, group: None }
    }
}

impl Chart {
    /// Bars without groups.
    pub(crate) fn bars(title: &str, unit: &str, bars: Vec<Bar>) -> Chart {
        Chart::Bars { title: title.into(), unit: unit.into(), bars, reference: None }
    }

    /// What it shows.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Chart::Bars { title, .. } | Chart::Lines { title, .. } | Chart::Heat { title, .. } => {
                title
            }
        }
    }

    /// How many numbers it shows.
    #[must_use]
    pub fn marks(&self) -> usize {
        match self {
            Chart::Bars { bars, .. } => bars.len(),
            Chart::Lines { lines, .. } => lines.iter().map(|line| line.points.len()).sum(),
            Chart::Heat { cells, .. } => cells.iter().flatten().flatten().count(),
        }
    }
}
