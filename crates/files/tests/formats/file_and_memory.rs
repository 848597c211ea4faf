//! Reducing files gives what reducing the same array in memory gives: for
//! every way to cut it into pieces, boxes and tiles, for any threads.

use crate::thorough::{cases, seed, thorough};
use std::path::Path;
use warpfold::{Answer, DType, NanPolicy, Op, Partial, Reduction, Rules, Threads, View};
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
    write_npy_of(path, "<f8", bytemuck::cast_slice(values), shape, fortran);
}

/// Writes a `.npy` file of elements of any type.
fn write_npy_of(path: &Path, descr: &str, bytes: &[u8], shape: &[usize], fortran: bool) {
    let order = if fortran { "True" } else { "False" };
    let dims: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({dims}), }}")
            .into_bytes();
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(b' ');
    }
    header.push(b'\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(&header);
    file.extend_from_slice(bytes);
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
                    // Kept axes change the answer's shape, whatever the boxes.
                    for memory in if keepdims { &[300][..] } else { &[1 << 30, 40_000, 300, 1] } {
                        let memory = *memory;
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

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 7
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// An element among those of a box: ordinary, of any exponent, zeros of both
/// signs, and at times a NaN or an infinity.
fn odd(random: &mut Random, pattern: usize, rare: usize) -> f64 {
    if random.below(rare) == 0 {
        return [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0][random.below(4)];
    }
    let x = (random.next() as f64 / (1u64 << 56) as f64) - 1.0;
    match pattern {
        0 => x,
        1 => x * 2f64.powi(random.below(240) as i32 - 120),
        2 => [-0.0, 0.0, -0.0, 1e-40][random.below(4)],
        _ => x + 3e4,
    }
}

/// Boxes are absorbed into states side by side, which an array in memory is not:
/// the states' bytes and the answers' bits are the same.
#[test]
fn random_boxes_have_the_bits_of_the_array_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npy");
    let mut random = Random(seed(0x9e37_79b9_7f4a_7c15));
    for case in 0..cases() {
        let shape: Vec<usize> = match random.below(5) {
            0 => vec![1 + random.below(400), 1 + random.below(40)],
            1 => vec![1 + random.below(40), 1 + random.below(400)],
            2 => vec![1 + random.below(5), 1 + random.below(150), 1 + random.below(30)],
            3 => vec![1 + random.below(150), 1 + random.below(6), 1 + random.below(20)],
            _ => vec![
                1 + random.below(9),
                1 + random.below(9),
                1 + random.below(40),
                1 + random.below(10),
            ],
        };
        let fortran = random.below(3) == 0;
        let (pattern, rare) = (random.below(4), [7, 300, 20_000, usize::MAX][random.below(4)]);
        let count = shape.iter().product();
        let values: Vec<f64> = (0..count).map(|_| odd(&mut random, pattern, rare)).collect();
        let singles: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let double = random.below(2) == 0;
        let bytes: &[u8] =
            if double { bytemuck::cast_slice(&values) } else { bytemuck::cast_slice(&singles) };
        let dtype = if double { DType::F64 } else { DType::F32 };
        write_npy_of(&path, if double { "<f8" } else { "<f4" }, bytes, &shape, fortran);
        let strides: Vec<isize> =
            strides(&shape, fortran).iter().map(|s| s * dtype.size().cast_signed()).collect();
        let view = View::strided(dtype, bytes, 0, &shape, &strides).unwrap();
        let axes: Vec<isize> =
            (0..shape.len().cast_signed()).filter(|_| random.below(2) == 0).collect();
        let ops = [&[Op::Sum, Op::MinMax][..], &[Op::Sum], &[Op::Max], &OPS][random.below(4)];
        let policy = [NanPolicy::Propagate, NanPolicy::Omit][random.below(2)];
        let threads = Threads::Exactly(1 + random.below(3));
        let question =
            Reduction::new(ops.iter().copied()).axes(axes.clone()).nan(policy).threads(threads);
        let what = format!("{case}: {shape:?} {dtype} {fortran} {axes:?} {ops:?} {pattern} {rare}");
        let numbers = |answer: warpfold::Result<Answer>| -> Result<Vec<Vec<u8>>, String> {
            let answer = answer.map_err(|error| error.to_string())?;
            let column = |c: &warpfold::Column| {
                let second = c.second.as_ref().map_or(&[][..], |s| s.bytes());
                [c.numbers.bytes(), second].concat()
            };
            Ok(answer.columns().iter().map(column).collect())
        };
        let expected = numbers(question.run(&view));
        let states = question.partial(&view, 0).unwrap().to_bytes();
        // Few boxes, or many and tiles of outputs, in turn; the answer of the one and the states of the other.
        let turn = case as usize;
        for (i, memory) in [1 << 30, [60_000, 5_000][turn / 2 % 2]].into_iter().enumerate() {
            let wanted = |half: usize| thorough() || (turn + i) % 2 == half;
            if wanted(0) {
                let got = stream::reduce(inputs(&[&path]), &question, Some(memory), &Silent);
                match (got, &expected) {
                    (Ok(got), expected) => assert_eq!(&numbers(Ok(got.answer)), expected, "{what}"),
                    // Both say that there is no answer.
                    (Err(error), expected) => {
                        assert!(expected.is_err(), "{what}: {error}");
                    }
                }
            }
            if !wanted(1) {
                continue;
            }
            let partial = stream::partial(inputs(&[&path]), &question, 0, Some(memory), &Silent);
            match partial {
                Ok(partial) => {
                    assert!(partial.to_bytes() == states, "{what}: states in {memory}");
                }
                // The outputs of a tile are not neighbours.
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("its states do not fit into memory"), "{error}");
                    assert!(memory < 1 << 30, "{what}");
                }
            }
        }
    }
}
