//! Reducing files gives what reducing the same array in memory gives: for
//! every way to cut it into pieces, boxes and tiles, for any threads.

use std::path::Path;
use warpfold::{Answer, NanPolicy, Op, Partial, Reduction, Rules, Threads, View};
use warpfold_files::stream::{self, Inputs, Silent};
use warpfold_files::{OpenOptions, Source, open};

const OPS: [Op; 8] =
    [Op::Sum, Op::Var, Op::Max, Op::ArgMin, Op::ArgMax, Op::Prod, Op::CountNan, Op::LogSumExp];

fn data(n: usize) -> Vec<f64> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    (0..n)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // Few distinct values, so that first occurrences matter.
            ((x >> 58) as f64 - 20.0) / 16.0
        })
        .collect()
}

/// Writes a `.npy` file of f64.
fn write_npy(path: &Path, values: &[f64], shape: &[usize], fortran: bool) {
    let order = if fortran { "True" } else { "False" };
    let dims: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': ({dims}), }}").into_bytes();
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(b' ');
    }
    header.push(b'\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(&header);
    values.iter().for_each(|x| file.extend_from_slice(&x.to_le_bytes()));
    std::fs::write(path, file).unwrap();
}

fn source(path: &Path) -> Source {
    let mut sources = open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    assert_eq!(sources.len(), 1);
    sources.remove(0)
}

fn inputs(paths: &[&Path]) -> Inputs {
    Inputs { items: paths.iter().map(|p| source(p)).collect(), others: Vec::new() }
}

fn strides(shape: &[usize], fortran: bool) -> Vec<isize> {
    let mut stride = 1;
    let mut strides = vec![0; shape.len()];
    let axes: Vec<usize> =
        if fortran { (0..shape.len()).collect() } else { (0..shape.len()).rev().collect() };
    for a in axes {
        strides[a] = stride;
        stride *= shape[a].cast_signed();
    }
    strides
}

fn subsets(n: usize) -> impl Iterator<Item = Vec<isize>> {
    (0..1usize << n).map(move |bits| (0..n.cast_signed()).filter(|a| bits >> a & 1 == 1).collect())
}

#[test]
fn every_axis_subset_in_boxes_of_every_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npy");
    for shape in [vec![7, 5, 11], vec![3, 1, 40], vec![2, 100], vec![100, 3], vec![6, 2, 3, 5]] {
        for fortran in [false, true] {
            let values = data(shape.iter().product());
            write_npy(&path, &values, &shape, fortran);
            let view = View::of_strided(&values, 0, &shape, &strides(&shape, fortran)).unwrap();
            for axes in subsets(shape.len()) {
                for keepdims in [false, true] {
                    let question = Reduction::new(OPS).axes(axes.clone()).keepdims(keepdims);
                    let expected = question.run(&view).unwrap();
                    for memory in [1 << 30, 40_000, 300, 1] {
                        let got =
                            stream::reduce(inputs(&[&path]), &question, Some(memory), &Silent)
                                .unwrap()
                                .answer;
                        assert_eq!(got, expected, "{shape:?} {fortran} {axes:?} {memory}");
                    }
                }
            }
        }
    }
}

#[test]
fn pieces_are_joined_along_the_first_axis() {
    let dir = tempfile::tempdir().unwrap();
    let shape = [20usize, 6];
    let values = data(120);
    let cuts = [0, 3, 4, 15, 20];
    let paths: Vec<_> = (0..4).map(|i| dir.path().join(format!("{i}.npy"))).collect();
    for (i, path) in paths.iter().enumerate() {
        let rows = cuts[i]..cuts[i + 1];
        write_npy(path, &values[rows.start * 6..rows.end * 6], &[rows.len(), 6], false);
    }
    let paths: Vec<&Path> = paths.iter().map(|p| p.as_path()).collect();
    let view = View::of_strided(&values, 0, &shape, &[6, 1]).unwrap();
    for axes in subsets(2) {
        let question = Reduction::new(OPS).axes(axes.clone());
        let expected = question.run(&view).unwrap();
        for memory in [1 << 30, 1] {
            let got = stream::reduce(inputs(&paths), &question, Some(memory), &Silent).unwrap();
            assert_eq!(got.answer, expected, "{axes:?} {memory}");
            let partial =
                stream::partial(inputs(&paths), &question, 0, Some(memory), &Silent).unwrap();
            assert_eq!(partial.finish(&Rules::default()).unwrap(), expected, "{axes:?}");
        }
    }
}

/// The answer to a full reduction, for several thread counts.
fn full(question: &Reduction, path: &Path) -> Answer {
    let answers: Vec<Answer> = [1, 2, 5]
        .into_iter()
        .map(|n| {
            let question = question.clone().threads(Threads::Exactly(n));
            stream::reduce(inputs(&[path]), &question, None, &Silent).unwrap().answer
        })
        .collect();
    assert!(answers.iter().all(|a| *a == answers[0]), "thread counts disagree");
    answers[0].clone()
}

#[test]
fn long_arrays_are_shared_among_threads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npy");
    let shape = [1000usize, 331];
    let values = data(331_000);
    for fortran in [false, true] {
        write_npy(&path, &values, &shape, fortran);
        let view = View::of_strided(&values, 0, &shape, &strides(&shape, fortran)).unwrap();
        let question = Reduction::new(OPS);
        assert_eq!(full(&question, &path), question.run(&view).unwrap(), "{fortran}");
    }
}

#[test]
fn partials_of_uneven_pieces_merge_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let values = data(50_000);
    let whole = dir.path().join("whole.npy");
    write_npy(&whole, &values, &[50_000], false);
    let cuts = [0, 1, 4097, 5000, 20_000, 20_001, 49_000, 50_000];
    let question = Reduction::new(OPS);
    let expected = full(&question, &whole);
    let single = stream::partial(inputs(&[&whole]), &question, 0, None, &Silent).unwrap();
    let parts: Vec<Partial> = cuts
        .windows(2)
        .map(|w| {
            let path = dir.path().join("piece.npy");
            write_npy(&path, &values[w[0]..w[1]], &[w[1] - w[0]], false);
            stream::partial(inputs(&[&path]), &question, w[0] as u64, None, &Silent).unwrap()
        })
        .collect();
    for order in [[0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 5, 2, 4]] {
        let mut merged = parts[order[0]].clone();
        order[1..].iter().for_each(|&i| merged.merge(&parts[i]).unwrap());
        assert_eq!(merged.finish(&Rules::default()).unwrap(), expected);
        assert_eq!(merged.to_bytes(), single.to_bytes());
    }
}

#[test]
fn missing_cells_keep_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let mut text = String::from("a,b\n");
    let mut present = Vec::new();
    for i in 0..200_000 {
        if i % 7 == 3 {
            text.push_str(&format!("{i},\n"));
        } else {
            let value = f64::from((i * 7919) % 10_007) / 8.0;
            text.push_str(&format!("{i},{value}\n"));
            present.push((i as u64, value));
        }
    }
    std::fs::write(&path, text).unwrap();
    let options = OpenOptions {
        columns: warpfold_files::ColumnSelector::parse_list("b").unwrap(),
        ..OpenOptions::default()
    };
    let (first_max, _) = present.iter().copied().rev().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    let sum: f64 = present.iter().map(|p| p.1).sum();
    for threads in [1, 2, 4] {
        let question = Reduction::new([Op::Sum, Op::ArgMax, Op::Count, Op::Prod])
            .threads(Threads::Exactly(threads));
        let sources = open(path.to_str().unwrap(), &options).unwrap();
        let inputs = Inputs { items: sources, others: Vec::new() };
        let outcome = stream::reduce(inputs, &question, None, &Silent).unwrap();
        let answer = outcome.answer;
        assert_eq!(outcome.missing, 200_000 - present.len() as u64);
        // Multiples of 1/8: the plain sum is exact.
        assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[sum][..]));
        assert_eq!(answer.slice::<u64>(Op::ArgMax), Some(&[first_max][..]));
        assert_eq!(answer.slice::<u64>(Op::Count), Some(&[present.len() as u64][..]));
    }
}

#[test]
fn dot_pairs_files_and_refuses_uneven_ones() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|n| dir.path().join(n).with_extension("npy"));
    let (x, y) = (data(150_000), data(300_000)[150_000..].to_vec());
    write_npy(&a, &x, &[150_000], false);
    write_npy(&b, &y, &[150_000], false);
    write_npy(&c, &y[1..], &[149_999], false);
    let question = Reduction::of(Op::Dot);
    let both = Inputs { items: vec![source(&a)], others: vec![source(&b)] };
    let got = stream::reduce(both, &question, None, &Silent).unwrap().answer;
    assert_eq!(got, question.run_pair(&x, &y).unwrap());
    let uneven = Inputs { items: vec![source(&a)], others: vec![source(&c)] };
    let error = stream::reduce(uneven, &question, None, &Silent).unwrap_err().to_string();
    assert!(error.contains("149999"), "{error}");
    let one = stream::reduce(inputs(&[&a]), &question, None, &Silent).unwrap_err().to_string();
    assert!(one.contains("takes 2 arrays"), "{one}");
}

#[test]
fn nan_policies_apply_when_finishing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npy");
    write_npy(&path, &[1.0, f64::NAN, 3.0], &[3], false);
    let of = |policy| {
        let question = Reduction::new([Op::Sum, Op::ArgMax]).nan(policy);
        stream::reduce(inputs(&[&path]), &question, None, &Silent).map(|o| o.answer)
    };
    let answer = of(NanPolicy::Propagate).unwrap();
    assert!(answer.slice::<f64>(Op::Sum).unwrap()[0].is_nan());
    assert_eq!(answer.slice::<u64>(Op::ArgMax), Some(&[1u64][..]));
    let answer = of(NanPolicy::Omit).unwrap();
    assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[4.0][..]));
    assert_eq!(answer.slice::<u64>(Op::ArgMax), Some(&[2u64][..]));
    assert!(of(NanPolicy::Error).unwrap_err().to_string().contains("NaN"));
}

#[test]
fn damaged_parquet_costs_neither_time_nor_memory() {
    // Found by fuzzing: a dictionary of 2^30 values in a few bytes; a list of
    // 2^31 strings in a page's header, which ends with the file; the same in a
    // header that begins where the footer ends.
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    for (file, column) in [
        ("large-dictionary.parquet", "u16"),
        ("long-list.parquet", "u8"),
        ("long-list-behind.parquet", "u8"),
    ] {
        let options = OpenOptions {
            columns: warpfold_files::ColumnSelector::parse_list(column).unwrap(),
            ..OpenOptions::default()
        };
        let path = format!("{data}/{file}");
        let error = open(&path, &options)
            .and_then(|items| {
                let inputs = Inputs { items, others: Vec::new() };
                stream::reduce(inputs, &Reduction::of(Op::Sum), None, &Silent)
            })
            .unwrap_err();
        assert!(error.to_string().contains("damaged Parquet file"), "{file}: {error}");
    }
}

#[test]
fn a_parquet_page_cannot_ask_for_memory_without_end() {
    // Found by fuzzing: the f16 column's page says that 2^56 lengths follow.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/delta-lengths.parquet");
    let options = OpenOptions {
        columns: warpfold_files::ColumnSelector::parse_list("f16").unwrap(),
        ..OpenOptions::default()
    };
    // A later row group is damaged too: the first error in the file is the one
    // that is told, whichever thread is faster.
    for _ in 0..100 {
        let inputs = Inputs { items: open(path, &options).unwrap(), others: Vec::new() };
        let error = stream::reduce(inputs, &Reduction::of(Op::Sum), None, &Silent).unwrap_err();
        assert!(error.to_string().contains("more values than it holds"), "{error}");
    }
}
