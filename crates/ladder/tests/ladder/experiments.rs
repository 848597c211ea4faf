//! Every experiment on the interpreter: what it computes is right, and what it counts
//! is what it says it expects.

use warpfold_ladder::chart::Chart;
use warpfold_ladder::experiments::{Bench, Cell, EXPERIMENTS, Needs, Outcome, Table, find};
use warpfold_ladder::report::{Trial, trial_markdown};
use warpfold_ladder::{Error, Text};

fn outcome(id: &str) -> Outcome {
    let experiment = find(id).unwrap();
    let rung = warpfold_ladder::find("vector-load").unwrap();
    let outcome = experiment.run(&Bench { lab: None, rung, progress: &|_, _| {} }).unwrap();
    assert!(outcome.wrong.is_empty(), "{id}: {:?}", outcome.wrong);
    outcome
}

/// A number of a table, by what the first cell of its row says.
#[track_caller]
fn number(table: &Table, row: &str, column: &str) -> f64 {
    let at = table.columns.iter().position(|name| name.starts_with(column)).unwrap();
    let row = table.rows.iter().find(|cells| cells[0].shown() == row).unwrap();
    match row[at] {
        Cell::Whole(n) => n as f64,
        Cell::Number(x) => x,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn each_has_its_expectation_and_runs_without_a_gpu_or_says_that_it_cannot() {
    let rung = warpfold_ladder::find("vector-load").unwrap();
    for experiment in EXPERIMENTS {
        assert!(!experiment.texts.is_empty() && !experiment.texts.contains(&Text::Beyond));
        assert!(experiment.expectation.len() > 60, "{}", experiment.id);
        let bench = Bench { lab: None, rung, progress: &|done, all| assert!(done < all) };
        match (experiment.run(&bench), experiment.needs) {
            (Err(error @ Error::NoClock { .. }), Needs::Clock) => {
                assert!(error.hint().unwrap().contains("coalescing"), "{:?}", error.hint());
            }
            (Ok(outcome), Needs::Kernels | Needs::Nothing) => {
                assert!(outcome.wrong.is_empty(), "{}: {:?}", experiment.id, outcome.wrong);
                assert!(!outcome.findings.is_empty(), "{}", experiment.id);
                for table in &outcome.tables {
                    let width = table.columns.len();
                    assert!(!table.rows.is_empty(), "{}: {}", experiment.id, table.title);
                    assert!(table.rows.iter().all(|row| row.len() == width), "{}", table.title);
                }
                assert!(outcome.charts.iter().all(|chart| chart.marks() > 1), "{}", experiment.id);
                let trial = Trial::new(experiment, None, outcome);
                let text = serde_json::to_string(&trial).unwrap();
                let again: Trial = serde_json::from_str(&text).unwrap();
                // The last bit of a number may be lost on the way.
                assert!(format!("{again:.9?}") == format!("{trial:.9?}"), "{}", experiment.id);
                assert!(trial_markdown(&trial).contains(experiment.id));
            }
            (result, needs) => panic!("{}: {needs:?}, {result:?}", experiment.id),
        }
    }
}

#[test]
fn lanes_that_part_wait_for_each_other() {
    let table = &outcome("divergence").tables[0];
    assert!(number(table, "loop, by thread", "warp execution") < 55.0);
    assert!(number(table, "loop, by warp", "warp execution") > 95.0);
    assert!(number(table, "loop, by thread", "divergent") > 0.0);
    for side in ["loop, by warp", "one statement, by thread", "one statement, by warp"] {
        assert_eq!(number(table, side, "divergent"), 0.0, "{side}");
    }
}

#[test]
fn a_warp_takes_the_sectors_that_its_lanes_touch() {
    let outcome = outcome("coalescing");
    let [offsets, strides] = &outcome.tables[..] else { panic!() };
    for offset in [0, 1, 2, 4, 8, 11, 16, 31, 32] {
        let wanted = if offset % 8 == 0 { 4.0 } else { 5.0 };
        assert_eq!(number(offsets, &offset.to_string(), "sectors"), wanted, "{offset}");
    }
    for stride in [1, 2, 4, 8, 16, 24, 32] {
        let wanted = 4.0 * f64::from(stride.min(8));
        assert_eq!(number(strides, &stride.to_string(), "sectors"), wanted, "{stride}");
    }
}

#[test]
fn the_shape_of_a_block_decides_about_sectors() {
    let table = &outcome("matrix-add-shapes").tables[0];
    for (shape, sectors, efficiency) in [
        ("1 x 256", 32.0, 12.5),
        ("4 x 64", 8.0, 50.0),
        ("16 x 16", 4.0, 100.0),
        ("256 x 1", 4.0, 100.0),
    ] {
        assert_eq!(number(table, shape, "sectors"), sectors, "{shape}");
        assert_eq!(number(table, shape, "load efficiency"), efficiency, "{shape}");
    }
}

#[test]
fn grids_nest_as_they_are_told() {
    let outcome = outcome("nested-hello");
    assert_eq!(number(&outcome.tables[0], "halved to the end", "grids"), 4.0);
    assert_eq!(number(&outcome.tables[0], "to depth 2", "depth"), 2.0);
    let tree = &outcome.drawings[1];
    assert!(
        tree.contains("├─ depth 1: 1 block of 4 threads, from block 0\n│  └─ depth 2"),
        "{tree}"
    );
    assert_eq!(tree.matches("of 1 thread,").count(), 2, "{tree}");
}

#[test]
fn what_is_drawn_is_what_the_tables_say() {
    let outcome = outcome("bank-conflicts");
    let Chart::Bars { bars, .. } = &outcome.charts[0] else { panic!() };
    for (bar, row) in bars.iter().zip(&outcome.tables[0].rows) {
        assert_eq!(Cell::from(bar.value), row[1], "{}", bar.name);
    }
    assert_eq!(bars.len(), outcome.tables[0].rows.len());
}
