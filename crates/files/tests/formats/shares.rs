//! Shares of several readers put together are the whole, whatever the format.

use crate::binary::npz;
use crate::common::{Dir, npy};
use warpfold::{GroupPartial, Op, Order, Partial, Reduction, Rules, Threads};
use warpfold_files::groups::{self, Question};
use warpfold_files::stream::{self, Inputs, Silent};
use warpfold_files::{OpenOptions, Share, open, open_keyed};
use zip::CompressionMethod;

/// Numbers of some magnitudes, few of which are equal.
fn numbers(n: usize) -> Vec<f64> {
    let sizes = [1e-9, 1.0, 1e12];
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 * sizes[i % 3] - 400.0).collect()
}

fn write_npy(dir: &Dir, name: &str, shape: &str, fortran: bool, numbers: &[f64]) -> String {
    dir.file(name, npy(1, "'<f8'", fortran, shape, bytemuck::cast_slice(numbers)))
}

/// The files' columns, or their arrays.
fn arrays(files: &[&str]) -> Vec<Inputs> {
    let mut arrays: Vec<Inputs> = Vec::new();
    for file in files {
        let sources = open(file, &OpenOptions { all_columns: true, ..Default::default() }).unwrap();
        arrays.resize_with(sources.len(), Inputs::default);
        arrays.iter_mut().zip(sources).for_each(|(array, source)| array.items.push(source));
    }
    arrays
}

fn whole(files: &[&str], reduction: &Reduction) -> Vec<Partial> {
    stream::partials(arrays(files), reduction, 0, None, &Silent).unwrap()
}

/// The partials of all shares, merged; and how many shares have elements.
fn merged(files: &[&str], reduction: &Reduction, ranks: usize) -> (Vec<Partial>, usize) {
    let (mut merged, mut at_work): (Vec<Partial>, _) = (Vec::new(), 0);
    for rank in 0..ranks {
        let shares = Share { rank, ranks }.of_arrays(arrays(files), reduction);
        let start = shares[0].1;
        assert!(shares.iter().all(|share| share.1 == start));
        let inputs = shares.into_iter().map(|share| share.0).collect();
        let partials = stream::partials(inputs, reduction, start, None, &Silent).unwrap();
        at_work +=
            usize::from(partials[0].finish_op(reduction.ops()[0], &Rules::default()).is_ok());
        match merged.is_empty() {
            true => merged = partials,
            false => merged.iter_mut().zip(&partials).for_each(|(m, p)| m.merge(p).unwrap()),
        }
    }
    (merged, at_work)
}

/// Compares for some numbers of readers. Operations begin with one that has no answer without
/// elements: `most` says how many readers may have some.
fn check(files: &[&str], reduction: &Reduction, most: usize) {
    let expected = whole(files, reduction);
    for ranks in [1, 2, 3, 7] {
        let (found, at_work) = merged(files, reduction, ranks);
        assert_eq!(at_work, ranks.min(most), "{files:?} by {ranks}");
        for (found, expected) in found.iter().zip(&expected) {
            let finish = |p: &Partial| p.finish(&Rules::default()).unwrap();
            assert_eq!(finish(found), finish(expected), "{files:?} by {ranks}");
            assert_eq!(found.missing(), expected.missing());
        }
    }
}

const FREE: [Op; 4] = [Op::Max, Op::Sum, Op::Var, Op::CountNan];
const PLACED: [Op; 4] = [Op::ArgMax, Op::ArgMin, Op::Sum, Op::Prod];

#[test]
fn rows_of_arrays_are_cut() {
    let dir = Dir::new();
    let all = numbers(6000);
    let flat = write_npy(&dir, "flat.npy", "(6000,)", false, &all);
    let small = write_npy(&dir, "small.npy", "(3,)", false, &all[..3]);
    check(&[&flat], &Reduction::new(PLACED), 7);
    check(&[&small], &Reduction::new(PLACED), 3);
    check(&[&small, &flat, &small, &flat], &Reduction::new(PLACED), 7);
    for fortran in [false, true] {
        let table = write_npy(&dir, "table.npy", "(20, 30, 10)", fortran, &all);
        check(&[&table], &Reduction::new(PLACED), 7);
        for axes in [vec![0], vec![0, 2], vec![0, 1]] {
            check(&[&table], &Reduction::new(PLACED).axes(axes), 7);
        }
        let few = write_npy(&dir, "few.npy", "(2, 3000)", fortran, &all);
        check(&[&few], &Reduction::new(PLACED), 2);
        check(&[&few], &Reduction::new([Op::Max, Op::Sum]).axis(0), 2);
    }
    check(&[&write_npy(&dir, "one.npy", "()", false, &all[..1])], &Reduction::new(FREE), 1);
}

#[test]
fn what_cannot_be_cut_is_the_first_reader_s() {
    let dir = Dir::new();
    let all = numbers(6000);
    let array = npy(1, "'<f8'", true, "(20, 300)", bytemuck::cast_slice(&all));
    let file = dir.file("a.npz", npz(&[("a.npy", array)], CompressionMethod::Deflated, false));
    for reduction in [Reduction::new(PLACED), Reduction::new([Op::Max, Op::Sum]).axis(0)] {
        let (found, _) = merged(&[&file], &reduction, 3);
        let finish = |p: &Partial| p.finish(&Rules::default()).unwrap();
        assert_eq!(finish(&found[0]), finish(&whole(&[&file], &reduction)[0]));
    }
}

#[test]
fn pairs_are_cut_alike() {
    let dir = Dir::new();
    let all = numbers(6000);
    let left = write_npy(&dir, "left.npy", "(60, 100)", false, &all);
    let right = write_npy(&dir, "right.npy", "(60, 100)", false, &all[..]);
    let pair = || {
        let one = |file| open(file, &OpenOptions::default()).unwrap();
        Inputs { items: one(&left), others: one(&right) }
    };
    let dot = Reduction::of(Op::Dot);
    let expected = stream::reduce(pair(), &dot, None, &Silent).unwrap().answer;
    let mut merged: Option<Partial> = None;
    for rank in 0..7 {
        let mut share = Share { rank, ranks: 7 }.of_arrays(vec![pair()], &dot);
        let (inputs, start) = share.remove(0);
        let part = stream::partial(inputs, &dot, start, None, &Silent).unwrap();
        match &mut merged {
            None => merged = Some(part),
            Some(merged) => merged.merge(&part).unwrap(),
        }
    }
    assert_eq!(merged.unwrap().finish(&Rules::default()).unwrap(), expected);
}

/// Lines of two columns, which take several blocks.
fn csv(all: &[f64]) -> String {
    let line = |(i, x): (usize, &f64)| match i % 50 {
        7 => format!("{},,{i}\n", i % 11),
        _ => format!("{},{x:?},{i}\n", i % 11),
    };
    "key,first,second\n".to_string() + &all.iter().enumerate().map(line).collect::<String>()
}

#[test]
fn blocks_of_text_are_dealt_out() {
    let dir = Dir::new();
    let large = dir.file("large.csv", csv(&numbers(120_000)));
    let small = dir.file("small.csv", csv(&numbers(30)));
    check(&[&large], &Reduction::new(FREE), 3);
    // Files of one block each come to several readers; a reader without any has the type.
    check(&[&small, &small], &Reduction::new(FREE), 2);
    // Positions of later blocks are known to those who have read the earlier ones.
    check(&[&large], &Reduction::new(PLACED), 1);
    check(&[&small], &Reduction::new(PLACED), 1);
}

#[test]
fn integers_of_one_share_merge_with_decimals_of_another() {
    let dir = Dir::new();
    let lines = (0..150_000).map(|i| format!("{}\n", 9_007_199_254_740_000u64 + i));
    let mut text = lines.collect::<String>();
    text += "0.5\n";
    check(&[&dir.file("late.txt", text)], &Reduction::new(FREE), 3);
}

#[test]
fn groups_of_shares_are_those_of_the_whole() {
    let dir = Dir::new();
    let all = numbers(120_000);
    let table = dir.file("t.csv", csv(&all));
    let keys: Vec<f64> = (0..all.len()).map(|i| (i * i % 13) as f64).collect();
    let stored = [("key.npy", &keys), ("first.npy", &all)].map(|(name, numbers)| {
        let bytes = bytemuck::cast_slice(numbers);
        (name, npy(1, "'<f8'", false, &format!("({},)", numbers.len()), bytes))
    });
    let arrays = dir.file("t.npz", npz(&stored, CompressionMethod::Stored, false));
    let deflated = dir.file("d.npz", npz(&stored, CompressionMethod::Deflated, false));
    for (file, (ops, order)) in [&table, &arrays, &deflated].into_iter().flat_map(|file| {
        [(&FREE[..], Order::Key), (&PLACED[..3], Order::Key), (&FREE[..], Order::FirstOccurrence)]
            .map(|asked| (file, asked))
    }) {
        let reduction = Reduction::new(ops.iter().copied()).threads(Threads::Exactly(2));
        let question =
            Question { reduction, order, omit_missing: false, start: 0, memory_limit: None };
        let opened = || {
            let options = OpenOptions {
                columns: warpfold_files::ColumnSelector::parse_list("first").unwrap(),
                ..Default::default()
            };
            let keys = warpfold_files::ColumnSelector::parse_list("key").unwrap();
            vec![open_keyed(file, &keys, &options).unwrap()]
        };
        let expected = groups::partial(opened(), &question, &Silent).unwrap();
        let mut merged: Option<GroupPartial> = None;
        for rank in 0..3 {
            let mut question = question.clone();
            let tables = Share { rank, ranks: 3 }.of_tables(opened(), &mut question);
            let part = groups::partial(tables, &question, &Silent).unwrap();
            match &mut merged {
                None => merged = Some(part),
                Some(merged) if part.rows() > 0 => merged.merge(&part).unwrap(),
                Some(_) => {}
            }
        }
        let merged = merged.unwrap();
        assert_eq!(merged.rows(), expected.rows());
        let finish = |p: &GroupPartial| p.finish(&Rules::default()).unwrap();
        assert_eq!(finish(&merged), finish(&expected));
    }
}
