//! Positions: argmin and argmax of arrays in any order, from any container, in any
//! pieces and boxes, are those of a loop over the array in C order.

use crate::binary;
use crate::common::*;
use crate::thorough::{seed, thorough, up_to};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::thread::JoinHandle;
use warpfold::{Device, Error as Wrong, Op, Partial, Reduction, Rules, Threads};
use warpfold_core::DType;
use warpfold_files::stream::{self, Inputs, Silent};
use warpfold_files::{ColumnSelector, Error, OpenOptions, Source, open};
use zip::CompressionMethod;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 ^ (self.0 >> 32)) >> 8
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Container {
    Npy,
    Stored,
    Deflated,
    Pipe,
}
const CONTAINERS: [Container; 4] =
    [Container::Npy, Container::Stored, Container::Deflated, Container::Pipe];

/// How elements are stored.
#[derive(Clone, Copy, Debug)]
struct Stored {
    dtype: DType,
    big: bool,
    /// As the second field of a record.
    field: bool,
}

/// A piece of an array as it is written.
#[derive(Clone, Copy, Debug)]
struct Written {
    stored: Stored,
    fortran: bool,
    container: Container,
}

/// An element's bytes in the file.
fn element(x: f64, stored: Stored) -> Vec<u8> {
    let mut bytes = match stored.dtype {
        DType::F64 => x.to_le_bytes().to_vec(),
        DType::F32 => (x as f32).to_le_bytes().to_vec(),
        DType::I16 => (x as i16).to_le_bytes().to_vec(),
        DType::I64 => (x as i64).to_le_bytes().to_vec(),
        _ => vec![x as u8],
    };
    if stored.big {
        bytes.reverse();
    }
    if stored.field {
        // A byte in front, so that no element is aligned.
        bytes.insert(0, 0xa5);
    }
    bytes
}

/// The places in C order of an array's elements in the order of the file.
fn file_order(shape: &[usize], fortran: bool) -> Vec<usize> {
    let n = shape.iter().product();
    let place = |mut at: usize| {
        let (mut index, mut step) = (0, n);
        for &len in shape {
            step /= len;
            index += at % len * step;
            at /= len;
        }
        index
    };
    (0..n).map(|at| if fortran { place(at) } else { at }).collect()
}

/// An npy file of `values`, which come in C order.
fn encoded(values: &[f64], shape: &[usize], written: Written) -> Vec<u8> {
    let Written { stored, fortran, .. } = written;
    let order = file_order(shape, fortran);
    let data: Vec<u8> = order.iter().flat_map(|&i| element(values[i], stored)).collect();
    let end = if stored.big { '>' } else { '<' };
    let name = npy_name(stored.dtype);
    let descr = if stored.field {
        format!("[('a', '|u1'), ('v', '{end}{name}')]")
    } else {
        format!("'{end}{name}'")
    };
    let dims: String = shape.iter().map(|n| format!("{n}, ")).collect();
    npy(1, &descr, fortran, &format!("({dims})"), &data)
}

/// A pipe's end that is read, and who writes into it.
type Pipe = (std::io::PipeReader, JoinHandle<()>);

/// A source, and what must live as long.
struct Opened {
    source: Source,
    _pipe: Option<Pipe>,
}

/// Writes an array and opens it.
fn opened(dir: &Dir, name: &str, values: &[f64], shape: &[usize], written: Written) -> Opened {
    let bytes = encoded(values, shape, written);
    let mut options = OpenOptions::default();
    if written.stored.field {
        options.columns = ColumnSelector::parse_list("v").unwrap();
    }
    let archive = |method| {
        dir.file(&format!("{name}.npz"), binary::npz(&[("x.npy", bytes.clone())], method, false))
    };
    let path = match written.container {
        Container::Npy => dir.file(&format!("{name}.npy"), &bytes),
        Container::Stored => archive(CompressionMethod::Stored),
        Container::Deflated => archive(CompressionMethod::Deflated),
        Container::Pipe => {
            let (reader, mut writer) = std::io::pipe().unwrap();
            // The reader may stop early.
            let sender = std::thread::spawn(move || drop(writer.write_all(&bytes)));
            let source = one(&format!("/dev/fd/{}", reader.as_raw_fd()), &options);
            return Opened { source, _pipe: Some((reader, sender)) };
        }
    };
    Opened { source: one(&path, &options), _pipe: None }
}

fn inputs(opened: &mut Vec<Opened>) -> (Inputs, Vec<Option<Pipe>>) {
    let (items, pipes) = opened.drain(..).map(|o| (o.source, o._pipe)).unzip();
    (Inputs { items, others: Vec::new() }, pipes)
}

/// The first smallest and the first largest of each output, NaNs first, by a
/// loop in C order; `None` of nothing.
fn naive(values: &[f64], shape: &[usize], reduced: &[bool]) -> Vec<Option<(u64, u64)>> {
    let dims =
        |want: bool| -> Vec<usize> { (0..shape.len()).filter(|&a| reduced[a] == want).collect() };
    let (kept, gone) = (dims(false), dims(true));
    let outputs: usize = kept.iter().map(|&a| shape[a]).product();
    let mut best: Vec<Option<[(f64, u64); 2]>> = vec![None; outputs];
    for (i, &x) in values.iter().enumerate() {
        let (mut rest, mut at) = (i, vec![0; shape.len()]);
        for a in (0..shape.len()).rev() {
            at[a] = rest % shape[a];
            rest /= shape[a];
        }
        let fold = |axes: &[usize]| axes.iter().fold(0, |n, &a| n * shape[a] + at[a]);
        let index = fold(&gone) as u64;
        match &mut best[fold(&kept)] {
            None => best[fold(&kept)] = Some([(x, index); 2]),
            Some([min, max]) => {
                if !min.0.is_nan() && (x < min.0 || x.is_nan()) {
                    *min = (x, index);
                }
                if !max.0.is_nan() && (x > max.0 || x.is_nan()) {
                    *max = (x, index);
                }
            }
        }
    }
    best.into_iter().map(|b| b.map(|[min, max]| (min.1, max.1))).collect()
}

fn positions(answer: &warpfold::Answer) -> Vec<Option<(u64, u64)>> {
    let (min, max) = (answer.slice::<u64>(Op::ArgMin), answer.slice::<u64>(Op::ArgMax));
    min.unwrap().iter().zip(max.unwrap()).map(|(&a, &b)| Some((a, b))).collect()
}

const SPIKE: [usize; 2] = [4, 9];

#[test]
fn the_largest_of_a_fortran_array_has_one_position_in_every_container() {
    let dir = Dir::new();
    let mut values = vec![0.0; 36];
    values[28] = 5.0;
    let stored = Stored { dtype: DType::F64, big: false, field: false };
    for device in [Device::Cpu, Device::Sim] {
        for fortran in [false, true] {
            for container in CONTAINERS {
                let question =
                    Reduction::new([Op::Count, Op::Sum, Op::ArgMin, Op::ArgMax]).device(device);
                let array = || {
                    let written = Written { stored, fortran, container };
                    inputs(&mut vec![opened(&dir, "a", &values, &SPIKE, written)])
                };
                let (items, _pipe) = array();
                let answer = stream::reduce(items, &question, None, &Silent).unwrap().answer;
                assert_eq!(positions(&answer), [Some((0, 28))], "{device} {fortran} {container:?}");
                let (items, _pipe) = array();
                let partial = stream::partial(items, &question, 0, None, &Silent).unwrap();
                let partial = Partial::from_bytes(&partial.to_bytes()).unwrap();
                let answer = partial.finish(&Rules::default()).unwrap();
                assert_eq!(positions(&answer), [Some((0, 28))], "{device} {fortran} {container:?}");
            }
        }
    }
}

/// A random array, its pieces, and a random question.
#[derive(Debug)]
struct Case {
    shape: Vec<usize>,
    values: Vec<f64>,
    /// The first row of each piece, and the end.
    cuts: Vec<usize>,
    pieces: Vec<Written>,
    axes: Option<Vec<isize>>,
    memory: Option<usize>,
    threads: usize,
}

impl Case {
    fn new(rng: &mut Rng, lengths: &[usize]) -> Case {
        let shape: Vec<usize> =
            (0..rng.below(5)).map(|_| lengths[rng.below(lengths.len())]).collect();
        let dtypes = [DType::F64, DType::F32, DType::I16, DType::I64, DType::U8];
        let stored = Stored {
            dtype: dtypes[rng.below(5)],
            big: rng.below(3) == 0,
            field: rng.below(4) == 0,
        };
        let distinct = [2, 5, 250][rng.below(3)];
        let nans = stored.dtype.is_float() && rng.below(3) == 0;
        let count = shape.iter().product();
        let value = |rng: &mut Rng| {
            if nans && rng.below(40) == 0 { f64::NAN } else { rng.below(distinct) as f64 }
        };
        let values = (0..count).map(|_| value(rng)).collect();
        let cuts = match shape.first() {
            None => vec![0, 1],
            Some(&rows) => {
                let mut cuts: Vec<usize> = (0..rng.below(3)).map(|_| rng.below(rows + 1)).collect();
                cuts.extend([0, rows]);
                cuts.sort_unstable();
                cuts
            }
        };
        let (mixed, fortran) = (rng.below(4) == 0, rng.below(3) > 0);
        let pieces = (1..cuts.len())
            .map(|_| Written {
                stored,
                fortran: if mixed { rng.below(2) == 0 } else { fortran },
                container: CONTAINERS[rng.below(4)],
            })
            .collect();
        let axes = (rng.below(3) > 0)
            .then(|| (0..shape.len().cast_signed()).filter(|_| rng.below(2) == 0).collect());
        let memory = [None, Some(1 << 20), Some(3000), Some(1)][rng.below(4)];
        Case { shape, values, cuts, pieces, axes, memory, threads: 1 + rng.below(3) }
    }

    fn reduced(&self) -> Vec<bool> {
        let named = |a| self.axes.as_ref().is_none_or(|axes| axes.contains(&a));
        (0..self.shape.len().cast_signed()).map(named).collect()
    }

    fn question(&self) -> Reduction {
        let question = Reduction::new([Op::ArgMin, Op::Max, Op::ArgMax, Op::Count])
            .threads(Threads::Exactly(self.threads));
        match &self.axes {
            Some(axes) => question.axes(axes.iter().copied()),
            None => question,
        }
    }

    fn piece(&self, dir: &Dir, i: usize) -> Opened {
        let rows = self.cuts[i]..self.cuts[i + 1];
        let mut shape = self.shape.clone();
        let row: usize = shape.iter().skip(1).product();
        if let Some(n) = shape.first_mut() {
            *n = rows.len();
        }
        let values = &self.values[rows.start * row..rows.end * row];
        opened(dir, &i.to_string(), values, &shape, self.pieces[i])
    }

    /// All pieces in one reduction.
    fn joined(&self, dir: &Dir) -> Result<Vec<Option<(u64, u64)>>, Error> {
        let mut pieces: Vec<Opened> = (0..self.pieces.len()).map(|i| self.piece(dir, i)).collect();
        let (items, _pipes) = inputs(&mut pieces);
        let outcome = stream::reduce(items, &self.question(), self.memory, &Silent)?;
        Ok(positions(&outcome.answer))
    }

    /// A state of each piece, merged from the last to the first.
    fn merged(&self, dir: &Dir) -> Result<Vec<Option<(u64, u64)>>, Error> {
        let reduced = self.reduced();
        let each: usize =
            (1..self.shape.len()).filter(|&a| reduced[a]).map(|a| self.shape[a]).product();
        let mut merged: Option<Partial> = None;
        for i in (0..self.pieces.len()).rev() {
            let (items, _pipes) = inputs(&mut vec![self.piece(dir, i)]);
            let start = (self.cuts[i] * each) as u64;
            let partial = stream::partial(items, &self.question(), start, self.memory, &Silent)?;
            let wrong = |source| Error::Reduce { name: i.to_string(), source };
            match &mut merged {
                None => merged = Some(partial),
                Some(merged) => merged.merge(&partial).map_err(wrong)?,
            }
        }
        let wrong = |source| Error::Reduce { name: "merged".into(), source };
        merged.unwrap().finish(&Rules::default()).map(|a| positions(&a)).map_err(wrong)
    }
}

/// What a reduction says that cannot be done.
fn is_refusal(case: &Case, error: &Error) -> bool {
    let text = error.to_string();
    let mixed = case.pieces.iter().any(|p| p.fortran != case.pieces[0].fortran);
    let streams =
        case.pieces.iter().any(|p| matches!(p.container, Container::Deflated | Container::Pipe));
    mixed && case.axes.is_some() && text.contains("another order of axes")
        || streams && case.memory.is_some() && text.contains("out of order")
        || text.contains("states do not fit into memory")
}

fn check(rng: &mut Rng, lengths: &[usize], rounds: usize) {
    let dir = Dir::new();
    let (mut answered, mut refused) = (0, 0);
    for round in 0..rounds {
        let case = Case::new(rng, lengths);
        let expected = naive(&case.values, &case.shape, &case.reduced());
        let mut answers = vec![("joined", case.joined(&dir))];
        if case.reduced().first() != Some(&false) {
            answers.push(("merged", case.merged(&dir)));
        }
        for (how, answer) in answers {
            match answer {
                Ok(answer) => {
                    assert_eq!(answer, expected, "{how}, round {round}: {case:?}");
                    answered += 1;
                }
                Err(Error::Reduce { source: Wrong::Empty { .. }, .. }) => {
                    assert!(expected.contains(&None), "{how}, round {round}: {case:?}");
                }
                Err(error) if is_refusal(&case, &error) => refused += 1,
                Err(error) => panic!("{how}, round {round}: {error}: {case:?}"),
            }
        }
    }
    assert!(answered > 3 * refused, "{answered} answers, {refused} refusals");
}

#[test]
fn positions_of_random_arrays_are_those_of_a_loop() {
    check(&mut Rng(seed(1)), &[0, 1, 1, 2, 3, 5, 9, 14], up_to(1500, 500));
}

/// Blocks of a stream hold a mebibyte.
#[test]
fn positions_do_not_depend_on_the_borders_of_blocks() {
    let dir = Dir::new();
    let mut rng = Rng(seed(5));
    let stored = Stored { dtype: DType::F64, big: true, field: false };
    let shapes = [vec![3, 45_011], vec![19_009, 7], vec![23, 71, 83]];
    for (turn, shape) in shapes.into_iter().enumerate() {
        let count: usize = shape.iter().product();
        // Twice each extreme, late in the file and late in the array.
        let mut values: Vec<f64> = (0..count).map(|_| rng.below(1000) as f64).collect();
        for (i, x) in [(count / 2, -1.0), (count - 2, -1.0), (count / 3, 1e6), (count / 3 + 1, 1e6)]
        {
            values[i] = x;
        }
        let all = (0..shape.len().cast_signed()).collect();
        assert!(8 * count > 1 << 20, "there is one block alone");
        for (i, axes) in [None, Some(vec![0]), Some(vec![1]), Some(all)].into_iter().enumerate() {
            let mut case = Case {
                shape: shape.clone(),
                values: values.clone(),
                cuts: vec![0, shape[0]],
                pieces: Vec::new(),
                axes,
                memory: None,
                threads: 3,
            };
            let expected = naive(&case.values, &case.shape, &case.reduced());
            for (at, container) in CONTAINERS.into_iter().enumerate() {
                // A stream each time and now and then a file that is not read in blocks, by turns.
                let is_stream = at >= 2;
                if !thorough() && ((turn + i) % 2 != at % 2 || !is_stream && i / 2 != turn % 2) {
                    continue;
                }
                case.pieces = vec![Written { stored, fortran: true, container }];
                let answer = case.joined(&dir).unwrap();
                assert!(answer == expected, "{shape:?} {container:?} {:?}", case.axes);
            }
        }
    }
}

/// Several axes of a Fortran array that do not fit into memory together.
#[test]
fn boxes_of_a_fortran_array_that_are_cut_know_their_positions() {
    let dir = Dir::new();
    let mut rng = Rng(seed(9));
    let stored = Stored { dtype: DType::I64, big: false, field: false };
    let shape = vec![12, 7, 10, 5];
    let values: Vec<f64> = (0..4200).map(|_| rng.below(30) as f64).collect();
    for bits in 0..16u32 {
        let axes: Vec<isize> = (0..4).filter(|a| bits >> a & 1 == 1).collect();
        for container in [Container::Npy, Container::Deflated] {
            for memory in [Some(20_000), Some(200)] {
                let case = Case {
                    shape: shape.clone(),
                    values: values.clone(),
                    cuts: vec![0, 5, 12],
                    pieces: vec![Written { stored, fortran: true, container }; 2],
                    axes: Some(axes.clone()),
                    memory,
                    threads: 2,
                };
                let expected = naive(&case.values, &case.shape, &case.reduced());
                match case.joined(&dir) {
                    Ok(answer) => assert!(answer == expected, "{axes:?} {container:?} {memory:?}"),
                    Err(error) => {
                        assert!(is_refusal(&case, &error), "{error}: {axes:?} {memory:?}")
                    }
                }
            }
        }
    }
}

#[test]
fn pairs_in_different_orders_are_refused_and_in_one_order_not() {
    let dir = Dir::new();
    let stored = Stored { dtype: DType::F64, big: false, field: false };
    let values: Vec<f64> = (0..12).map(f64::from).collect();
    for container in CONTAINERS {
        let dot = |shape: &[usize], [left, right]: [bool; 2]| {
            let [a, b] = [("l", left), ("r", right)].map(|(name, fortran)| {
                opened(&dir, name, &values, shape, Written { stored, fortran, container })
            });
            let pair = Inputs { items: vec![a.source], others: vec![b.source] };
            stream::reduce(pair, &Reduction::of(Op::Dot), None, &Silent)
                .map(|o| o.answer.slice::<f64>(Op::Dot).unwrap()[0])
        };
        let error = dot(&[3, 4], [false, true]).unwrap_err().to_string();
        assert!(error.contains("another order of axes"), "{error}");
        assert_eq!(dot(&[3, 4], [true, true]).unwrap(), 506.0);
        // One axis that is longer than 1 has one order.
        assert_eq!(dot(&[12, 1], [false, true]).unwrap(), 506.0);
    }
}

#[test]
fn a_piece_whose_positions_do_not_fit_64_bits_is_refused() {
    let dir = Dir::new();
    let stored = Stored { dtype: DType::F64, big: false, field: false };
    let values: Vec<f64> = (0..12).map(f64::from).collect();
    for container in CONTAINERS {
        for axes in [None, Some(0)] {
            for fortran in [false, true] {
                let mut question = Reduction::new([Op::ArgMax, Op::Prod, Op::Sum]);
                if let Some(axis) = axes {
                    question = question.axis(axis);
                }
                let partial = |start: u64| {
                    let written = Written { stored, fortran, container };
                    let (items, _pipe) =
                        inputs(&mut vec![opened(&dir, "a", &values, &[3, 4], written)]);
                    stream::partial(items, &question, start, None, &Silent)
                };
                let len = if axes.is_some() { 3 } else { 12 };
                assert!(partial(u64::MAX - len).is_ok());
                let error = partial(u64::MAX - len + 1).unwrap_err();
                let wanted =
                    matches!(error, Error::Reduce { source: Wrong::StartTooLarge { .. }, .. });
                assert!(wanted, "{error}");
            }
        }
    }
}

/// The answer's shape, and a shape that is too large for any machine.
#[test]
fn shapes_with_a_zero_and_a_huge_axis_answer_or_are_refused() {
    let dir = Dir::new();
    let big = 1usize << 62;
    let ask = |dtype: &str,
               shape: &str,
               op: Op,
               axes: &[isize],
               keepdims: bool,
               fortran: bool,
               deflated: bool| {
        let bytes = npy(1, dtype, fortran, shape, &[]);
        let path = if deflated {
            dir.file("z.npz", binary::npz(&[("x.npy", bytes)], CompressionMethod::Deflated, false))
        } else {
            dir.file("z.npy", bytes)
        };
        let question = Reduction::of(op).axes(axes.iter().copied()).keepdims(keepdims);
        let source =
            || open(&path, &OpenOptions::default()).map(|items| Inputs { items, others: vec![] });
        let partial =
            source().and_then(|i| stream::partial(i, &question, 0, None, &Silent)).is_ok();
        let answer = source()
            .and_then(|i| stream::reduce(i, &question, None, &Silent))
            .map(|o| o.answer.shape().to_vec())
            .map_err(|e| e.to_string());
        (answer, partial)
    };
    for fortran in [false, true] {
        for deflated in [false, true] {
            let ask = |dtype, shape, op, axes: &[isize], keepdims| {
                ask(dtype, shape, op, axes, keepdims, fortran, deflated)
            };
            // As in NumPy, a shape must be countable without its zeros.
            for shape in [
                "(0, 4611686018427387904)",
                "(4611686018427387904, 0, 3)",
                "(4294967296, 4294967296, 0)",
            ] {
                for axes in [&[0][..], &[1], &[0, 1], &[]] {
                    let (answer, partial) = ask("'<f8'", shape, Op::Sum, axes, false);
                    assert!(answer.unwrap_err().contains("larger than any array") && !partial);
                }
            }
            let one = "(0, 4611686018427387904)";
            for op in [Op::Sum, Op::ArgMax, Op::Prod, Op::All] {
                for keepdims in [false, true] {
                    let (answer, partial) = ask("'|u1'", one, op, &[0], keepdims);
                    assert!(
                        answer.unwrap_err().contains("answers do not fit into memory") && !partial
                    );
                    let (answer, partial) = ask("'|u1'", one, op, &[1], keepdims);
                    assert_eq!(answer.unwrap(), if keepdims { vec![0, 1] } else { vec![0] });
                    assert!(partial);
                    let (answer, _) = ask("'|u1'", one, op, &[], keepdims);
                    assert_eq!(answer.unwrap(), [0, big]);
                }
            }
            let (answer, _) = ask("'|u1'", one, Op::Sum, &[0, 1], false);
            assert_eq!(answer.unwrap(), [0; 0]);
            let (answer, _) = ask("'|u1'", one, Op::Min, &[0, 1], true);
            assert!(answer.unwrap_err().contains("no elements"));
            let (answer, _) = ask("'|u1'", "(4611686018427387904, 0)", Op::Sum, &[0], true);
            assert_eq!(answer.unwrap(), [1, 0]);
            // Numbers that fit into memory are given.
            let (answer, _) = ask("'<f8'", "(0, 20000)", Op::Sum, &[0], false);
            assert_eq!(answer.unwrap(), [20_000]);
        }
    }
}
