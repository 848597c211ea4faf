//! The drawings of the course: those of the ladder, and rows of tiles where a lesson has none there.

use super::figures::Figures;
use crate::occupancy::{Block, multiprocessor};
use crate::report::{Drawing, escaped, standalone};
use core::fmt::Write;

/// A drawing of a lesson.
#[derive(Clone, Copy, Debug)]
pub enum Picture {
    /// A drawing of the ladder, by its name.
    OfLadder(&'static str),
    /// Rows of tiles.
    Rows(&'static Rows),
}

/// Rows of tiles under a title.
#[derive(Debug)]
pub struct Rows {
    /// The file's name, without `.svg`.
    pub name: &'static str,
    title: &'static str,
    legend: &'static str,
    /// How wide a tile is.
    tile: u32,
    rows: fn() -> Vec<Row>,
}

/// A row: what it is, and its tiles.
struct Row {
    label: String,
    tiles: Vec<Tile>,
}

/// A place in a row.
enum Tile {
    /// A tile of a colour.
    Full(u32, String),
    /// A dashed one.
    Empty,
}

fn full(colour: u32, text: impl Into<String>) -> Tile {
    Tile::Full(colour, text.into())
}

fn row(label: impl Into<String>, tiles: impl IntoIterator<Item = Tile>) -> Row {
    Row { label: label.into(), tiles: tiles.into_iter().collect() }
}

/// Threads that are busy in a row of eight.
fn busy(label: &str, threads: u32) -> Row {
    row(label, (0..8).map(|t| if t < threads { full(0, format!("t{t}")) } else { Tile::Empty }))
}

fn sectors() -> Vec<Row> {
    let apart = |word: u32| match word % 4 {
        0 => full(word / 8, format!("t{}", word / 4)),
        _ => Tile::Empty,
    };
    vec![
        row("side by side", (0..16).map(|word| full(word / 8, format!("t{word}")))),
        row("four apart", (0..16).map(apart)),
    ]
}

fn banks() -> Vec<Row> {
    let strided = |first: u32| {
        (0..8).map(move |bank| match bank % 2 {
            0 => full(0, format!("t{}", first + bank / 2)),
            _ => Tile::Empty,
        })
    };
    vec![
        row("stride 1", (0..8).map(|bank| full(0, format!("t{bank}")))),
        row("stride 2, first pass", strided(0)),
        row("stride 2, second pass", strided(4)),
    ]
}

fn ticket() -> Vec<Row> {
    let block = |block: u32, ticket: u32| {
        let last = if ticket == 2 { full(2, "adds 3 partials") } else { Tile::Empty };
        let steps = [
            full(0, "folds its tile"),
            full(0, "leaves partial"),
            full(1, format!("ticket {ticket}")),
        ];
        row(format!("block {block}"), steps.into_iter().chain([last]))
    };
    vec![block(0, 0), block(1, 2), block(2, 1)]
}

fn wide() -> Vec<Row> {
    let elements = |each: u32| (0..16).map(move |i| full(i / each % 2, format!("t{}", i / each)));
    vec![row("4 bytes a load", elements(1)), row("16 bytes a load", elements(4))]
}

fn first_add() -> Vec<Row> {
    vec![
        busy("loads one", 8),
        busy("level 1", 4),
        busy("level 2", 2),
        busy("level 3", 1),
        busy("loads two, adds", 8),
        busy("level 1", 4),
        busy("level 2", 2),
        busy("level 3", 1),
    ]
}

fn nested() -> Vec<Row> {
    let level = |label: &str, threads: u32| {
        let tile = move |t: u32| match t % 8 < threads {
            true => full(t / 8, format!("t{}", t % 8)),
            false => Tile::Empty,
        };
        row(label, (0..16).map(tile))
    };
    vec![
        level("the host's grid", 8),
        level("its child", 4),
        level("behind that", 2),
        level("the last one", 1),
    ]
}

fn occupancy() -> Vec<Row> {
    let block = |shared: u32| Block { threads: 256, registers: 32, shared };
    let held = |shared| {
        let found = multiprocessor((9, 0)).and_then(|m| m.occupancy(block(shared)).ok());
        found.map_or(0, |found| found.blocks)
    };
    let of = |kib: u32| {
        let held = held(kib << 10);
        let tile = move |b: u32| if b < held { full(0, format!("b{b}")) } else { Tile::Empty };
        row(format!("{kib} KiB a block"), (0..8).map(tile))
    };
    [4, 32, 48, 100].map(of).into()
}

/// The steps of the last lesson's climb.
const CLIMB: [&str; 6] =
    ["neighbored", "interleaved", "shared-first-add", "unroll8", "unroll16", "vector-load"];

fn climb() -> Vec<Row> {
    let of = |id: &str| {
        let (rate, over) = Figures::of(id).map_or((0.0, 0.0), |f| (f.gbps, f.over_neighbored));
        let tiles = over.round() as u32;
        let tile = move |i: u32| if i < tiles { full(0, "") } else { Tile::Empty };
        row(format!("{id}: {rate:.0}"), (0..12).map(tile))
    };
    CLIMB.map(of).into()
}

pub(super) static SECTORS: Rows = Rows {
    name: "sectors",
    title: "Words that lanes ask for, in sectors of eight words",
    legend: "one colour: one sector, which is moved whole; dashed: a word that nobody asked for",
    tile: 38,
    rows: sectors,
};
pub(super) static BANKS: Rows = Rows {
    name: "banks",
    title: "Eight threads at eight banks: a bank serves one word a pass",
    legend: "a column: a bank; t0, t1, ...: the thread that it serves; dashed: it serves nobody",
    tile: 46,
    rows: banks,
};
pub(super) static TICKET: Rows = Rows {
    name: "ticket",
    title: "Three blocks, one launch: who draws the last ticket adds",
    legend: "from left to right: what a block does; block 1 is the last one here, and could be any",
    tile: 116,
    rows: ticket,
};
pub(super) static WIDE: Rows = Rows {
    name: "wide",
    title: "Sixteen numbers, by sixteen loads or by four",
    legend: "t0, t1, ...: the thread that loads the number; one colour: one load",
    tile: 38,
    rows: wide,
};
pub(super) static FIRST_ADD: Rows = Rows {
    name: "idle",
    title: "Eight threads fold 8 elements, and 16 in as many levels",
    legend: "t0, t1, ...: a thread that works; dashed: one that waits",
    tile: 46,
    rows: first_add,
};
pub(super) static NESTED: Rows = Rows {
    name: "nested",
    title: "Two tiles of eight: each level is a grid that the one before has launched",
    legend: "one colour: one tile; each grid begins when the one above it has ended",
    tile: 38,
    rows: nested,
};
pub(super) static OCCUPANCY: Rows = Rows {
    name: "occupancy",
    title: "Blocks of 256 threads that a multiprocessor of 9.0 holds, by their shared memory",
    legend: "b0, b1, ...: a block of eight warps; dashed: room for warps that shared memory does not leave",
    tile: 46,
    rows: occupancy,
};
pub(super) static CLIMB_DRAWN: Rows = Rows {
    name: "climb",
    title: "GB/s on an H200: a tile is the rate of neighbored",
    legend: "268435459 numbers of type f32, blocks of 256 threads",
    tile: 34,
    rows: climb,
};

/// Drawings of the course alone.
pub static OWN: [&Rows; 8] =
    [&SECTORS, &BANKS, &TICKET, &WIDE, &FIRST_ADD, &NESTED, &OCCUPANCY, &CLIMB_DRAWN];

impl Picture {
    /// What it shows, in a line.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Picture::OfLadder(name) => Drawing::find(name).map_or("", Drawing::title),
            Picture::Rows(rows) => rows.title,
        }
    }

    /// Its file, as the pages of the course link to it.
    #[must_use]
    pub fn path(self) -> String {
        match self {
            Picture::OfLadder(name) => format!("../ladder/drawings/{name}.svg"),
            Picture::Rows(rows) => format!("drawings/{}.svg", rows.name),
        }
    }

    /// As a file of its own, for light and dark.
    #[must_use]
    pub fn svg(self) -> String {
        match self {
            Picture::OfLadder(name) => Drawing::find(name).map_or(String::new(), Drawing::svg),
            Picture::Rows(rows) => rows.svg(),
        }
    }
}

/// Where tiles begin, and how far rows are apart.
const LEFT: u32 = 170;
const TOP: u32 = 44;
const STEP: u32 = 42;
/// What a letter of the small type takes at most.
const LETTER: u32 = 7;

impl Rows {
    /// As a file of its own, for light and dark.
    #[must_use]
    pub fn svg(&self) -> String {
        let rows = (self.rows)();
        let (mut body, mut told) = (String::new(), Vec::new());
        for (at, Row { label, tiles }) in rows.iter().enumerate() {
            let y = TOP + STEP * at as u32;
            // Writing to a string does not fail.
            let _ = write!(
                body,
                r#"<text class="tick" x="12" y="{}">{}</text>"#,
                y + 21,
                escaped(label)
            );
            let mut said = Vec::new();
            for (place, tile) in tiles.iter().enumerate() {
                let x = LEFT + (self.tile + 2) * place as u32;
                let (width, middle) = (self.tile, x + self.tile / 2);
                let _ = match tile {
                    Tile::Full(colour, text) => {
                        said.push(if text.is_empty() { "full" } else { text });
                        write!(
                            body,
                            r#"<rect class="tile c{colour}" x="{x}" y="{y}" width="{width}" height="34" rx="4"/><text class="middle" x="{middle}" y="{}">{}</text>"#,
                            y + 21,
                            escaped(text)
                        )
                    }
                    Tile::Empty => {
                        said.push("empty");
                        write!(
                            body,
                            r#"<rect class="axis" fill="none" stroke-dasharray="2 3" x="{x}" y="{y}" width="{width}" height="34" rx="4"/>"#
                        )
                    }
                };
            }
            told.push(format!("{label}: {}", said.join(", ")));
        }
        let most = rows.iter().map(|row| row.tiles.len()).max().unwrap_or(0) as u32;
        let words = [self.title, self.legend].map(str::len).into_iter().max().unwrap_or(0) as u32;
        let width = (LEFT + (self.tile + 2) * most).max(LETTER * words) + 12;
        let height = TOP + STEP * rows.len() as u32 + 34;
        let (title, legend) = (escaped(self.title), escaped(self.legend));
        let _ = write!(body, r#"<text class="tick" x="12" y="{}">{legend}</text>"#, height - 14);
        let told = escaped(&told.join(". "));
        standalone(&format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 {0} {1}" width="{0}" height="{1}" "#,
                r#"role="img" aria-labelledby="t d"><title id="t">{2}</title><desc id="d">{3}.</desc>"#,
                r#"<text class="caption" x="12" y="22">{2}</text>{4}</svg>"#
            ),
            width, height, title, told, body
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is drawn of occupancy is what the arithmetic gives, and a climb goes up.
    #[test]
    fn rows_show_what_is_computed() {
        let count = |rows: Vec<Row>| -> Vec<usize> {
            let full = |row: &Row| row.tiles.iter().filter(|t| matches!(t, Tile::Full(..))).count();
            rows.iter().map(full).collect()
        };
        assert_eq!(count(occupancy()), [8, 6, 4, 2]);
        let climb = count(climb());
        assert!(climb.is_sorted() && climb[0] == 1 && climb[5] == 12, "{climb:?}");
    }
}
