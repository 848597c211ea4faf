//! Rows with texts as keys, and what their groups should give.

use warpfold::{GroupPartial, Grouped, Input, Op, Order, Reduction, Rules};
use warpfold_files::groups::{Question, partial};
use warpfold_files::stream::Silent;
use warpfold_files::{ColumnSelector, OpenOptions, open_keyed};

pub(crate) const LONG: &str = "a text that no view holds within itself";

pub(crate) fn texts(rows: usize, seed: usize) -> Vec<Option<String>> {
    let text = |i: usize| match (i * 7 + seed) % 11 {
        0 => None,
        1 => Some(String::new()),
        2 => Some(LONG.into()),
        3 => Some(format!("{LONG} {}", i % 3)),
        // A view holds the first of these two within itself.
        4 => Some("twelve bytes".into()),
        5 => Some("thirteen byte".into()),
        n => Some(format!("k{n}")),
    };
    (0..rows).map(text).collect()
}

pub(crate) fn number(i: usize) -> Option<f64> {
    (i % 5 != 3).then_some(0.1 + i as f64)
}

const OPS: [Op; 3] = [Op::Sum, Op::ArgMax, Op::Count];

pub(crate) fn grouped(path: &str, keys: &[&str]) -> warpfold_files::Result<GroupPartial> {
    let keys: Vec<_> = keys.iter().map(|key| ColumnSelector::Name((*key).into())).collect();
    let options =
        OpenOptions { columns: vec![ColumnSelector::Name("x".into())], ..OpenOptions::default() };
    let question = Question {
        reduction: Reduction::new(OPS),
        order: Order::Key,
        omit_missing: false,
        start: 0,
        memory_limit: None,
    };
    partial(vec![open_keyed(path, &keys, &options)?], &question, &Silent)
}

pub(crate) fn answers(path: &str, keys: &[&str]) -> Grouped {
    let partial = grouped(path, keys).unwrap_or_else(|error| panic!("{error}"));
    partial.finish(&Rules::default()).unwrap()
}

/// What the rows of batches should give.
pub(crate) fn expected(batches: &[(usize, usize)], with_years: bool) -> Grouped {
    let keys: Vec<Option<String>> =
        batches.iter().flat_map(|&(rows, seed)| texts(rows, seed)).collect();
    let numbers: Vec<Option<f64>> = (0..keys.len()).map(number).collect();
    let values: Vec<f64> = numbers.iter().map(|number| number.unwrap_or(f64::NAN)).collect();
    let mut bits = vec![0; keys.len().div_ceil(8)];
    let present = numbers.iter().enumerate().filter(|(_, number)| number.is_some());
    present.for_each(|(i, _)| bits[i / 8] |= 1 << (i % 8));
    let input = Input::masked(&values, &bits, 0).unwrap();
    let years: Vec<i32> = (0..keys.len()).map(|i| (i % 3) as i32).collect();
    let question = Reduction::new(OPS);
    if with_years { question.by((&keys, &years)).run(input) } else { question.by(&keys).run(input) }
        .unwrap()
}
