//! Drawings of who adds what: which thread meets which element, level by level.

use super::svg::{escaped, standalone};
use core::fmt::Write;

/// A drawing of a pattern.
#[derive(Clone, Copy, Debug)]
pub struct Drawing {
    /// The file's name, without `.svg`.
    pub name: &'static str,
    pub(super) title: &'static str,
    pattern: Pattern,
}

#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// Levels of a fold of eight: who adds what to what.
    Levels(fn(u32) -> Vec<Add>),
    /// Which of four threads loads which of sixteen elements.
    Loads(fn(u32) -> u32),
    /// Which way each of sixteen threads of two warps goes.
    Ways(fn(u32) -> u32),
}

/// In one level, `thread` adds what is at `from` to what is at `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Add {
    thread: u32,
    to: u32,
    from: u32,
}

const ELEMENTS: u32 = 8;
const LEVELS: u32 = 3;

fn neighbored(level: u32) -> Vec<Add> {
    let stride = 1 << level;
    let active = (0..ELEMENTS).filter(|thread| thread % (2 * stride) == 0);
    active.map(|thread| Add { thread, to: thread, from: thread + stride }).collect()
}

fn neighbored_compact(level: u32) -> Vec<Add> {
    let stride = 1 << level;
    let active = 0..ELEMENTS / (2 * stride);
    let add = |thread| Add { thread, to: 2 * stride * thread, from: 2 * stride * thread + stride };
    active.map(add).collect()
}

fn interleaved(level: u32) -> Vec<Add> {
    let stride = ELEMENTS >> (level + 1);
    (0..stride).map(|thread| Add { thread, to: thread, from: thread + stride }).collect()
}

/// Every lane adds; a lane without a partner gets its own value back.
fn shuffle_down(level: u32) -> Vec<Add> {
    let stride = ELEMENTS >> (level + 1);
    let from = |lane| if lane + stride < ELEMENTS { lane + stride } else { lane };
    (0..ELEMENTS).map(|lane| Add { thread: lane, to: lane, from: from(lane) }).collect()
}

fn butterfly(level: u32) -> Vec<Add> {
    let stride = ELEMENTS >> (level + 1);
    (0..ELEMENTS).map(|lane| Add { thread: lane, to: lane, from: lane ^ stride }).collect()
}

/// Every drawing.
pub static DRAWINGS: [Drawing; 11] = [
    Drawing {
        name: "neighbored",
        title: "Neighbored pairs: every second thread is active, then every fourth",
        pattern: Pattern::Levels(neighbored),
    },
    Drawing {
        name: "neighbored-compact",
        title: "The same pairs, added by the first threads",
        pattern: Pattern::Levels(neighbored_compact),
    },
    Drawing {
        name: "interleaved",
        title: "Interleaved pairs: partners half a tile apart",
        pattern: Pattern::Levels(interleaved),
    },
    Drawing {
        name: "shuffle-down",
        title: "Shuffle-down: every lane adds, and lane 0 has the sum",
        pattern: Pattern::Levels(shuffle_down),
    },
    Drawing {
        name: "butterfly",
        title: "Butterfly: lanes exchange, and all have the sum",
        pattern: Pattern::Levels(butterfly),
    },
    Drawing {
        name: "one-element",
        title: "One element for each thread: four blocks of four",
        pattern: Pattern::Loads(|element| element),
    },
    Drawing {
        name: "first-add",
        title: "Two elements for each thread, a block apart: two blocks of four threads",
        pattern: Pattern::Loads(|element| element / 8 * 4 + element % 4),
    },
    Drawing {
        name: "columns",
        title: "Four tiles for each block: a thread adds the column of its place",
        pattern: Pattern::Loads(|element| element % 4),
    },
    Drawing {
        name: "grid-stride",
        title: "Steps of the whole grid: two blocks of two threads go through the array",
        pattern: Pattern::Loads(|element| element % 4),
    },
    Drawing {
        name: "divergent",
        title: "Parted by thread: both warps go both ways, one after the other",
        pattern: Pattern::Ways(|thread| thread % 2),
    },
    Drawing {
        name: "uniform",
        title: "Parted by warp: each warp goes one way",
        pattern: Pattern::Ways(|thread| thread / 8),
    },
];

impl Drawing {
    /// What it shows, in a line.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// The drawing of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Drawing> {
        DRAWINGS.iter().find(|drawing| drawing.name == name)
    }

    /// As a file of its own, for light and dark.
    #[must_use]
    pub fn svg(&self) -> String {
        let (body, width, height, description) = match self.pattern {
            Pattern::Levels(adds) => levels(adds),
            Pattern::Loads(thread) => loads(self.name, thread),
            Pattern::Ways(way) => ways(way),
        };
        let title = escaped(self.title);
        let drawn = format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 {} {}" width="{}" height="{}" "#,
                r#"role="img" aria-labelledby="t d"><title id="t">{}</title><desc id="d">{}</desc>"#,
                r#"<text class="caption" x="12" y="22">{}</text>{}</svg>"#
            ),
            width,
            height,
            width,
            height,
            title,
            escaped(&description),
            title,
            body
        );
        standalone(&drawn)
    }
}

/// Nodes of a level, `STEP` apart.
const STEP: u32 = 62;
const DROP: u32 = 74;

fn levels(adds: fn(u32) -> Vec<Add>) -> (String, u32, u32, String) {
    let (mut body, mut told) = (String::new(), String::new());
    let (left, top) = (100, 62);
    let x = |element: u32| left + STEP * element;
    let y = |level: u32| top + DROP * level;
    for level in 0..LEVELS {
        let adds = adds(level);
        let _ = write!(
            body,
            r#"<text class="tick" x="12" y="{}">level {}</text>"#,
            y(level + 1) + 4,
            level + 1
        );
        for add in &adds {
            let (to, from) = ((x(add.to), y(level + 1) - 16), (x(add.from), y(level) + 16));
            let _ = write!(
                body,
                r#"<line class="carry" x1="{0}" y1="{1}" x2="{0}" y2="{2}"/><line class="add" x1="{3}" y1="{4}" x2="{0}" y2="{2}"/>"#,
                to.0,
                y(level) + 16,
                to.1,
                from.0,
                from.1
            );
        }
        let said: Vec<String> = adds
            .iter()
            .map(|add| format!("thread {} adds {} to {}", add.thread, add.from, add.to))
            .collect();
        let _ = write!(told, "Level {}: {}. ", level + 1, said.join(", "));
        for element in 0..ELEMENTS {
            let thread = adds.iter().find(|add| add.to == element).map(|add| add.thread);
            node(&mut body, x(element), y(level + 1), thread);
        }
    }
    let _ = write!(body, r#"<text class="tick" x="12" y="{}">elements</text>"#, y(0) + 4);
    for element in 0..ELEMENTS {
        let _ = write!(
            body,
            r#"<circle class="node" cx="{0}" cy="{1}" r="16"/><text class="middle" x="{0}" y="{2}">{element}</text>"#,
            x(element),
            y(0),
            y(0) + 4
        );
    }
    let width = x(ELEMENTS - 1) + 40;
    let height = y(LEVELS) + 54;
    let _ = write!(
        body,
        r#"<text class="tick" x="12" y="{}">t0, t1, ...: the thread that adds; empty: no thread writes here</text>"#,
        height - 14
    );
    (body, width, height, told)
}

fn node(body: &mut String, x: u32, y: u32, thread: Option<u32>) {
    let _ = match thread {
        Some(thread) => write!(
            body,
            r#"<circle class="node busy" cx="{x}" cy="{y}" r="16"/><text class="middle dark" x="{x}" y="{}">t{thread}</text>"#,
            y + 4
        ),
        None => write!(body, r#"<circle class="node idle" cx="{x}" cy="{y}" r="16"/>"#),
    };
}

/// Sixteen elements, each with the colour and number of the thread that loads it.
fn loads(name: &str, thread: fn(u32) -> u32) -> (String, u32, u32, String) {
    let mut body = String::new();
    let mut told = Vec::new();
    // Threads of a block have one colour where there are several blocks.
    let block = |element: u32| match name {
        "grid-stride" => thread(element) / 2,
        "columns" => 0,
        _ => thread(element) / 4,
    };
    for element in 0..16 {
        let (x, t, b) = (12 + 40 * element, thread(element), block(element));
        let _ = write!(
            body,
            r#"<rect class="tile c{b}" x="{x}" y="48" width="38" height="34" rx="4"/><text class="middle" x="{0}" y="70">t{t}</text><text class="tick middle" x="{0}" y="98">{element}</text>"#,
            x + 19
        );
        told.push(format!("element {element} by thread {t} of block {b}"));
    }
    let _ = write!(
        body,
        r#"<text class="tick" x="12" y="122">one colour: one block; t0, t1, ...: the thread that loads the element</text>"#
    );
    (body, 664, 136, format!("Loaded: {}.", told.join(", ")))
}

/// Two warps of eight lanes, and the turns that they take.
fn ways(way: fn(u32) -> u32) -> (String, u32, u32, String) {
    let mut body = String::new();
    let mut told = Vec::new();
    for warp in 0..2u32 {
        let top = 58 + 92 * warp;
        let lanes = || warp * 8..warp * 8 + 8;
        let turns: Vec<u32> = (0..2).filter(|turn| lanes().any(|t| way(t) == *turn)).collect();
        let _ = write!(body, r#"<text class="tick" x="12" y="{}">warp {warp}</text>"#, top + 22);
        for (row, &turn) in turns.iter().enumerate() {
            let y = top + 38 * row as u32;
            for thread in lanes() {
                let x = 80 + 44 * (thread % 8);
                let _ = match way(thread) == turn {
                    true => write!(
                        body,
                        r#"<rect class="tile c{turn}" x="{x}" y="{y}" width="40" height="30" rx="4"/><text class="middle" x="{}" y="{}">t{thread}</text>"#,
                        x + 20,
                        y + 19
                    ),
                    false => write!(
                        body,
                        r#"<rect class="nothing" x="{x}" y="{y}" width="40" height="30" rx="4"/>"#
                    ),
                };
            }
        }
        told.push(format!("warp {warp} takes {} turns", turns.len()));
    }
    let _ = write!(
        body,
        r#"<text class="tick" x="12" y="244">one row: one turn of a warp; a dashed lane waits</text>"#
    );
    (body, 460, 258, format!("{}.", told.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The drawn adds are a fold: followed level by level they make the sum.
    #[test]
    fn what_is_drawn_adds_up() {
        for drawing in &DRAWINGS {
            let Pattern::Levels(adds) = drawing.pattern else { continue };
            let mut values: Vec<u64> = (0..ELEMENTS).map(|i| 1 << (4 * i)).collect();
            for level in 0..LEVELS {
                let before = values.clone();
                for add in adds(level) {
                    values[add.to as usize] = before[add.to as usize] + before[add.from as usize];
                }
            }
            let sum: u64 = (0..ELEMENTS).map(|i| 1 << (4 * i)).sum();
            assert_eq!(values[0], sum, "{}", drawing.name);
            let all = values.iter().all(|value| *value == sum);
            assert_eq!(all, drawing.name == "butterfly", "{}", drawing.name);
        }
    }

    #[test]
    fn names_are_unique_and_files_are_whole() {
        for (i, drawing) in DRAWINGS.iter().enumerate() {
            assert!(DRAWINGS[..i].iter().all(|other| other.name != drawing.name));
            let svg = drawing.svg();
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{}", drawing.name);
            assert!(svg.contains("<style>") && svg.contains("prefers-color-scheme"));
        }
        assert!(Drawing::find("butterfly").is_some() && Drawing::find("moth").is_none());
    }
}
