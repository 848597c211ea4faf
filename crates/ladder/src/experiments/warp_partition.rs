//! How a block is cut into warps.

use super::{Bench, Cell, Experiment, Needs, Outcome, Table};
use crate::chart::{Axis, Chart, Line};
use crate::error::Result;
use crate::rung::Text;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "warp-partition",
    texts: &[Text::P],
    title: "how a block of any size is cut into warps",
    expectation: "threads are cut into warps of 32 in the order of their numbers, x first: 80 threads are 3 warps, and 16 lanes of the last one idle",
    needs: Needs::Nothing,
    run,
};

const LANES: u32 = 32;

/// Blocks that people write, and their neighbours.
const BLOCKS: [(u32, u32); 16] = [
    (1, 1),
    (16, 1),
    (31, 1),
    (32, 1),
    (33, 1),
    (64, 1),
    (80, 1),
    (40, 2),
    (96, 1),
    (100, 1),
    (128, 1),
    (8, 24),
    (200, 1),
    (16, 16),
    (1000, 1),
    (32, 32),
];

/// A block's warps, and the lanes of the last one that idle.
fn partition(threads: u32) -> (u32, u32) {
    let warps = threads.div_ceil(LANES);
    (warps, warps * LANES - threads)
}

/// Rows of a block that a warp has threads of, at most.
fn rows_of_a_warp(x: u32, y: u32) -> u32 {
    let threads = x * y;
    let rows = |warp: u32| {
        let last = ((warp + 1) * LANES).min(threads) - 1;
        last / x - warp * LANES / x + 1
    };
    (0..threads.div_ceil(LANES)).map(rows).max().unwrap_or(0)
}

fn run(_: &Bench<'_>) -> Result<Outcome> {
    let mut table = Table::new(
        "Blocks and their warps",
        &["block", "threads", "warps", "idle lanes", "lanes in use, %", "rows in a warp"],
    );
    for (x, y) in BLOCKS {
        let threads = x * y;
        let (warps, idle) = partition(threads);
        table.rows.push(vec![
            Cell::Text(format!("{x} x {y}")),
            threads.into(),
            warps.into(),
            idle.into(),
            (100.0 * f64::from(threads) / f64::from(warps * LANES)).into(),
            rows_of_a_warp(x, y).into(),
        ]);
    }
    let part = |threads: u32| f64::from(threads) / f64::from(partition(threads).0 * LANES);
    let points = (1..=256).map(|n| (f64::from(n), 100.0 * part(n))).collect();
    let (warps, idle) = partition(80);
    Ok(Outcome {
        findings: vec![
            format!("80 threads are {warps} warps, and {idle} lanes of the last one idle"),
            "a block is no rectangle for a warp: 40 x 2 threads are cut like 80 in a row, and the second warp has threads of both rows".into(),
        ],
        tables: vec![table],
        charts: vec![Chart::Lines {
            title: "Lanes in use by the size of a block".into(),
            x: Axis::linear("threads of a block"),
            y: Axis::linear("lanes in use, %"),
            lines: vec![Line { name: "lanes in use".into(), points }],
            marks: Vec::new(),
        }],
        ..Outcome::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_warp_idles() {
        assert_eq!(partition(80), (3, 16));
        assert_eq!((partition(1), partition(32), partition(33)), ((1, 31), (1, 0), (2, 31)));
        assert_eq!((rows_of_a_warp(40, 2), rows_of_a_warp(16, 16)), (2, 2));
        assert_eq!((rows_of_a_warp(8, 24), rows_of_a_warp(1, 1)), (4, 1));
    }
}
