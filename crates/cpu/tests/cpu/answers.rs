//! The answers of every operation for many outputs at a time, over any view, on every
//! instruction set: the same bits as the states of the outputs give one by one.

use crate::thorough::{cases, seed, thorough, up_to};
use fastrand::Rng;
use warpfold_core::element::{bf16, f16};
use warpfold_core::layout::View;
use warpfold_core::op::{AnyState, Kind, Op, RawRun, Rules, Value};
use warpfold_core::{DType, NanPolicy, Scalar};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Job, Outputs, Threads, Worker};

/// Data that tells answers apart which are nearly right.
pub(crate) const PATTERNS: [&str; 15] = [
    "uniform",
    "integers",
    "ties",
    "zeros",
    "constant",
    "specials",
    "wide",
    "cancelling",
    "tiny",
    "bits",
    "gaps",
    "nothing",
    "endless",
    "near",
    "huge",
];

fn element(dtype: DType, x: f64) -> u64 {
    match dtype {
        DType::F64 => x.to_bits(),
        DType::F32 => u64::from((x as f32).to_bits()),
        DType::F16 => u64::from(f16::from_f64(x).to_bits()),
        DType::BF16 => u64::from(bf16::from_f64(x).to_bits()),
        DType::Bool => u64::from(x > 0.5),
        _ => (x * 50.0) as i64 as u64,
    }
}

pub(crate) fn make(dtype: DType, pattern: &str, index: usize, random: &mut Rng) -> u64 {
    let x = match pattern {
        "uniform" => random.f64(),
        "integers" => random.i32(-3..4).into(),
        // Odd multiples of a half and large integers: sums end in the middle of two.
        "ties" => f64::from(random.i32(-4..5)) * 0.5 + f64::from(random.u32(..2)) * 16_777_216.0,
        "zeros" if random.u32(..40) != 0 => {
            if random.bool() {
                0.0
            } else {
                -0.0
            }
        }
        "constant" => 0.1,
        "specials" => match random.u32(..300) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => -f64::NAN,
            _ => random.f64() - 0.5,
        },
        "wide" => (random.f64() - 0.5) * 2f64.powi(random.i32(-200..200)),
        "cancelling" => {
            if index.is_multiple_of(2) {
                1e15 + random.f64()
            } else {
                -1e15
            }
        }
        "tiny" => random.f64() * 1e-160,
        "gaps" if random.bool() => f64::NAN,
        "nothing" => f64::NAN,
        "endless" if random.u32(..10) == 0 => f64::INFINITY,
        // Differences that are far smaller than the elements.
        "near" => 1.1 + f64::from(random.u32(..40) / 39) * 1e-6,
        "huge" => (random.f64() - 0.5) * 2f64.powi(random.i32(-990..990)),
        "bits" => return random.u64(..),
        _ => random.f64() - 0.5,
    };
    element(dtype, x)
}

/// An array whose axes lie in any order, in a window of a larger one, some spread out or
/// reversed.
struct Array {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
    bytes: Vec<u8>,
}

impl Array {
    fn new(dtype: DType, shape: &[usize], pattern: &str, random: &mut Rng) -> Array {
        let size = dtype.size();
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        match random.u32(..4) {
            0 => random.shuffle(&mut order),
            1 => order.reverse(),
            _ => {}
        }
        let mut strides = vec![0; shape.len()];
        let (mut extent, mut low) = (1isize, 0isize);
        for axis in order {
            let n = shape[axis] as isize;
            let spread = [1, 1, 1, 1, 2, 3, 2, 4][random.usize(..8)];
            let room = [0, 0, 0, 1][random.usize(..4)];
            let step = extent * spread;
            strides[axis] = step;
            if random.u32(..8) == 0 {
                low += step * (n - 1);
                strides[axis] = -step;
            }
            extent = step * n + room;
        }
        let mut bytes = Vec::new();
        for index in 0..extent as usize {
            bytes.extend_from_slice(&make(dtype, pattern, index, random).to_le_bytes()[..size]);
        }
        let strides = strides.into_iter().map(|s| s * size as isize).collect();
        Array { dtype, shape: shape.to_vec(), strides, offset: low as usize * size, bytes }
    }

    fn view(&self) -> View<'_> {
        let Array { dtype, shape, strides, offset, bytes } = self;
        View::strided(*dtype, bytes, *offset, shape, strides).unwrap()
    }
}

const OPS: [Op; 17] = [
    Op::Sum,
    Op::Mean,
    Op::Norm1,
    Op::Norm2,
    Op::SumSq,
    Op::Var,
    Op::Std,
    Op::Min,
    Op::Max,
    Op::NormInf,
    Op::ArgMin,
    Op::ArgMax,
    Op::Any,
    Op::All,
    Op::CountNonzero,
    Op::Range,
    Op::Prod,
];

/// The bits of the answers, or the error.
fn answers(job: &Job<'_>, op: Op, rules: &Rules) -> Result<Vec<u64>, String> {
    let outputs = job.values(&[(op, 0)], rules).map_err(|error| error.to_string())?;
    Ok(match &outputs[0] {
        Outputs::Values(values) => values.iter().map(|v| v.first().to_bits()).collect(),
        Outputs::Numbers { numbers, .. } => numbers.iter().map(|x| x.to_bits()).collect(),
    })
}

/// The answers of states, or the error.
fn finished(
    states: &Result<Vec<Vec<AnyState>>, String>,
    op: Op,
    rules: &Rules,
) -> Result<Vec<u64>, String> {
    let values = states.as_ref()?.iter().map(|s| s[0].finish(op, rules));
    let values: Result<Vec<Value>, _> = values.collect();
    Ok(values.map_err(|error| error.to_string())?.iter().map(|v| v.first().to_bits()).collect())
}

/// The bits of all numbers of an operation's answers.
fn all_bits(outputs: &Outputs) -> Vec<u64> {
    let both = |value: &Value| [Some(value.first()), value.second()];
    match outputs {
        Outputs::Values(values) => {
            values.iter().flat_map(both).flatten().map(|x| x.to_bits()).collect()
        }
        Outputs::Numbers { numbers, second } => (0..numbers.len())
            .flat_map(|i| [numbers.get(i), second.as_ref().and_then(|second| second.get(i))])
            .flatten()
            .map(|x| x.to_bits())
            .collect(),
    }
}

/// The states of the marked elements of each output, one by one.
fn states_of_marked(array: &Array, marks: &View<'_>, job: &Job<'_>) -> Vec<Vec<AnyState>> {
    let identity = || job.kinds.iter().map(|&kind| AnyState::identity(kind, array.dtype).unwrap());
    let kept = array.shape.iter().zip(job.reduced).filter(|(_, reduced)| !**reduced);
    let outputs: usize = kept.map(|(n, _)| n).product();
    let mut states: Vec<Vec<AnyState>> = (0..outputs).map(|_| identity().collect()).collect();
    for (flat, &mark) in marks.contiguous().unwrap().iter().enumerate() {
        let (mut rest, mut at, mut output, mut place) = (flat, array.offset as isize, 0, 0);
        let (mut wide, mut deep) = (1, 1);
        for (axis, &n) in array.shape.iter().enumerate().rev() {
            let i = rest % n;
            rest /= n;
            at += i as isize * array.strides[axis];
            let (index, all) =
                if job.reduced[axis] { (&mut place, &mut deep) } else { (&mut output, &mut wide) };
            *index += i * *all;
            *all *= n;
        }
        let items = &array.bytes[at as usize..][..array.dtype.size()];
        for (state, &kind) in states[output].iter_mut().zip(job.kinds) {
            let mut one = Worker::new(kind, array.dtype, Isa::BASELINE).unwrap();
            if mark == 0 {
                one.skip(place as u64, 1);
            } else {
                one.absorb(RawRun { start: place as u64, items, others: &[] }).unwrap();
            }
            state.merge(&one.into_state()).unwrap();
        }
    }
    states
}

#[test]
fn both_ends_of_marked_elements_are_those_of_the_marked() {
    let items: Vec<f64> = (0..620).map(|i| f64::from(i * 37 % 101)).collect();
    let marks: Vec<u8> = (0..620).map(|i| u8::from(i % 3 > 0)).collect();
    let view = View::from_bytes(DType::F64, bytemuck::cast_slice(&items), &[20, 31]).unwrap();
    let marks = View::from_bytes(DType::Bool, &marks, &[20, 31]).unwrap();
    let job = Job {
        views: [Some(&view), None],
        reduced: &[true, false],
        kinds: &[Kind::Extrema],
        start: 0,
        initial: None,
        marks: Some(&marks),
        isa: Isa::best(),
        threads: Threads::Exactly(1),
    };
    let found = job.values(&[(Op::Min, 0), (Op::Max, 0), (Op::Range, 0)], &Rules::default());
    let found: Vec<Vec<f64>> = found
        .unwrap()
        .iter()
        .map(|outputs| match outputs {
            Outputs::Numbers { numbers, .. } => numbers.as_slice::<f64>().unwrap().to_vec(),
            Outputs::Values(values) => {
                values.iter().map(|v| f64::from_bits(v.first().to_bits())).collect()
            }
        })
        .collect();
    let [mins, maxs, ranges] = &found[..] else { panic!("three operations") };
    for (column, min) in mins.iter().enumerate() {
        let marked = (0..20).map(|row| row * 31 + column).filter(|i| i % 3 > 0).map(|i| items[i]);
        let ends = marked.fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
        assert_eq!((*min, maxs[column], ranges[column]), (ends.0, ends.1, ends.1 - ends.0));
    }
}

#[test]
fn all_unmarked_short_integers_are_counted() {
    // More than their words can count, in rows and in columns.
    let (shape, is_marked) = ([300, 700], |i: usize| i.is_multiple_of(11));
    let items: Vec<i8> = (0..300 * 700).map(|i| (i % 251) as i8).collect();
    let marks: Vec<u8> = (0..items.len()).map(|i| u8::from(is_marked(i))).collect();
    let view = View::from_bytes(DType::I8, bytemuck::cast_slice(&items), &shape).unwrap();
    let marks = View::from_bytes(DType::Bool, &marks, &shape).unwrap();
    for axis in [0, 1] {
        let mut sums = vec![(0i64, 0i64); shape[1 - axis]];
        for (i, &x) in items.iter().enumerate().filter(|&(i, _)| is_marked(i)) {
            let sum = &mut sums[[i % 700, i / 700][axis]];
            *sum = (sum.0 + i64::from(x), sum.1 + 1);
        }
        let means: Vec<f64> = sums.iter().map(|&(sum, n)| sum as f64 / n as f64).collect();
        let job = Job {
            views: [Some(&view), None],
            reduced: &[axis == 0, axis == 1],
            kinds: &[Kind::Sum],
            start: 0,
            initial: None,
            marks: Some(&marks),
            isa: Isa::best(),
            threads: Threads::Exactly(1),
        };
        let found = job.values(&[(Op::Mean, 0)], &Rules::default()).unwrap();
        let Outputs::Numbers { numbers, .. } = &found[0] else { panic!("values") };
        assert_eq!(numbers.as_slice::<f64>().unwrap(), means, "over {axis}");
    }
}

/// A job of all elements, whose states one thread makes without vectors.
fn plain<'a>(views: [Option<&'a View<'a>>; 2], reduced: &'a [bool], kinds: &'a [Kind]) -> Job<'a> {
    let (isa, threads) = (Isa::BASELINE, Threads::Exactly(1));
    Job { views, reduced, kinds, start: 0, initial: None, marks: None, isa, threads }
}

/// Operations that are drawn, with an initial value, marks and rules as they come.
fn several(array: &Array, reduced: &[bool], note: &str, random: &mut Rng) {
    let (dtype, shape) = (array.dtype, &array.shape);
    let takers = [Op::Sum, Op::Prod, Op::Min, Op::Max, Op::MinMax, Op::Range, Op::NormInf];
    let some = make(dtype, PATTERNS[random.usize(..PATTERNS.len())], 0, random);
    let initial = random.bool().then(|| Scalar::from_bits(dtype, some));
    let all: Vec<Op> = match initial {
        Some(_) => takers.into_iter().filter(|op| op.supports(dtype)).collect(),
        None => Op::ALL.into_iter().filter(|op| op.supports(dtype) && op.arity() == 1).collect(),
    };
    let count = random.usize(1..5);
    let drawn: Vec<Op> = (0..count).map(|_| all[random.usize(..all.len())]).collect();
    let mut kinds: Vec<Kind> = drawn.iter().map(|op| op.kind()).collect();
    kinds.sort_by_key(|kind| format!("{kind:?}"));
    kinds.dedup();
    let ops: Vec<(Op, usize)> = drawn
        .iter()
        .map(|op| (*op, kinds.iter().position(|&kind| kind == op.kind()).unwrap()))
        .collect();
    let nan = [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error][random.usize(..5) % 3];
    let mut rules = Rules::default().ddof(random.u64(..3)).nan(nan);
    if random.u32(..4) == 0 {
        let integers = [dtype, DType::I64, DType::U64];
        let floats = [DType::F64, DType::F32, DType::F64];
        let types = if dtype.is_float() { floats } else { integers };
        rules.out = Some(types[random.usize(..3)]);
    }
    let view = array.view();
    // Marks in C order, or the same for all.
    let mut marks: Vec<u8> = (0..view.len()).map(|_| u8::from(random.u32(..3) > 0)).collect();
    if random.u32(..4) == 0 {
        marks.fill(random.u8(..2));
    }
    let marks = View::from_bytes(DType::Bool, &marks, shape).unwrap();
    let marked = random.u32(..3) == 0;
    let plain = plain([Some(&view), None], reduced, &kinds);
    let mut states = plain.states().unwrap();
    if marked {
        states = states_of_marked(array, &marks, &plain);
    }
    if let Some(initial) = initial {
        let bytes = initial.to_bits().to_le_bytes();
        let len: usize = shape.iter().zip(reduced).filter(|r| *r.1).map(|r| r.0).product();
        let one = View::from_bytes(dtype, &bytes[..dtype.size()], &[1]).unwrap();
        let job = Job { views: [Some(&one), None], reduced: &[true], start: len as u64, ..plain };
        let alone = job.states().unwrap();
        for states in &mut states {
            states.iter_mut().zip(&alone[0]).for_each(|(s, one)| s.merge(one).unwrap());
        }
    }
    let note = format!("{note}: {ops:?} of {dtype} {shape:?} {reduced:?} {initial:?} {rules:?}");
    for isa in Isa::available() {
        let threads = Threads::Exactly(random.usize(1..4));
        let marks = marked.then_some(&marks);
        let job = Job { initial, marks, isa, threads, ..plain };
        match job.values(&ops, &rules) {
            Err(error) => {
                // Of some operation and output.
                let errors = states.iter().flat_map(|states| {
                    ops.iter().filter_map(|&(op, state)| states[state].finish(op, &rules).err())
                });
                let error = error.to_string();
                assert!(errors.map(|e| e.to_string()).any(|e| e == error), "{isa} {note}: {error}");
            }
            Ok(found) => {
                for (&(op, state), found) in ops.iter().zip(&found) {
                    let want: Vec<Value> =
                        states.iter().map(|s| s[state].finish(op, &rules).unwrap()).collect();
                    let want = all_bits(&Outputs::Values(want));
                    assert_eq!(all_bits(found), want, "{op} on {isa} {note}");
                }
            }
        }
    }
}

#[test]
fn several_operations_and_an_initial_value_are_those_of_the_states() {
    let mut random = Rng::with_seed(seed(0x5e7e_7a15));
    for round in 0..cases() as usize {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let pattern = PATTERNS[random.usize(..PATTERNS.len())];
        let shape = shape(&mut random);
        let array = Array::new(dtype, &shape, pattern, &mut random);
        let reduced: Vec<bool> = shape.iter().map(|_| random.bool()).collect();
        several(&array, &reduced, &format!("round {round}: {pattern}"), &mut random);
    }
}

/// Every operation that an array has, on every instruction set.
fn check(array: &Array, reduced: &[bool], threads: &[usize], rules: &Rules, note: &str) {
    for kind in Kind::ALL {
        let of_kind = |op: &Op| op.kind() == kind && op.supports(array.dtype);
        let ops: Vec<Op> = OPS.into_iter().filter(of_kind).collect();
        compare([Some(array), None], reduced, &ops, threads, rules, note);
    }
}

/// The same for a third of the operations, each in its turn: where a case is about the layout, or about threads, many cases follow.
fn check_some(
    array: &Array,
    reduced: &[bool],
    threads: &[usize],
    rules: &Rules,
    note: &str,
    turn: usize,
) {
    let step = up_to(1, 3);
    let supported = |op: &Op| op.supports(array.dtype);
    for op in OPS.into_iter().skip(turn % step).step_by(step).filter(supported) {
        one(array, reduced, op, threads, rules, note);
    }
}

/// The same for one operation.
fn one(array: &Array, reduced: &[bool], op: Op, threads: &[usize], rules: &Rules, note: &str) {
    compare([Some(array), None], reduced, &[op], threads, rules, note);
}

/// The product of two arrays, or of one with itself, likewise.
fn dot(arrays: [&Array; 2], reduced: &[bool], threads: &[usize], rules: &Rules, note: &str) {
    compare(arrays.map(Some), reduced, &[Op::Dot], threads, rules, note);
}

/// All instruction sets, or the best one and one of the others, each in its turn: many cases follow.
fn some_isas(turn: usize) -> Vec<Isa> {
    let mut isas: Vec<Isa> = Isa::available().collect();
    if !thorough() && isas.len() > 2 {
        isas.retain(|&isa| isa != Isa::best());
        isas = vec![isas[turn % isas.len()], Isa::best()];
    }
    isas
}

/// The same of one array or of two, for operations of one kind. Their states, which take the longest, are made once.
fn compare(
    arrays: [Option<&Array>; 2],
    reduced: &[bool],
    ops: &[Op],
    threads: &[usize],
    rules: &Rules,
    note: &str,
) {
    let Some(first) = ops.first() else { return };
    let views = arrays.map(|array| array.map(Array::view));
    let kinds = [first.kind()];
    let plain = plain(views.each_ref().map(Option::as_ref), reduced, &kinds);
    let states = plain.states().map_err(|error| error.to_string());
    for &op in ops {
        let want = finished(&states, op, rules);
        let elements = views[0].as_ref().map_or(0, View::len);
        for (isa, &threads) in some_isas(elements + op as usize)
            .into_iter()
            .flat_map(|isa| threads.iter().map(move |n| (isa, n)))
        {
            let job = Job { isa, threads: Threads::Exactly(threads), ..plain };
            let got = answers(&job, op, rules);
            if got == want {
                continue;
            }
            let place = match (&got, &want) {
                (Ok(got), Ok(want)) => got.iter().zip(want).position(|(a, b)| a != b),
                _ => None,
            };
            let at = |list: &Result<Vec<u64>, String>| match (list, place) {
                (Ok(list), Some(place)) => format!("{:#x}", list[place]),
                (list, _) => format!("{list:?}"),
            };
            let layouts = arrays.map(|array| array.map(|a| (a.dtype, &a.shape, &a.strides)));
            panic!(
                "{op} {layouts:?} {reduced:?} {isa} {note}: output {place:?} is {}, not {}",
                at(&got),
                at(&want)
            );
        }
    }
}

fn shape(random: &mut Rng) -> Vec<usize> {
    let most = if cfg!(miri) { 60 } else { up_to(30_000, 12_000) };
    let lengths = [1, 2, 3, 4, 7, 8, 9, 13, 16, 17, 31, 33, 40, 64, 100, 300, 1000, 3000];
    let mut shape: Vec<usize> = Vec::new();
    for _ in 0..random.usize(1..6) {
        let len = lengths[random.usize(..lengths.len())];
        if shape.iter().product::<usize>() * len <= most {
            shape.push(len);
        }
    }
    shape
}

#[test]
fn answers_are_those_of_the_states() {
    let mut random = Rng::with_seed(seed(0xa25e_5eed));
    for round in 0..cases() as usize {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let pattern = PATTERNS[random.usize(..PATTERNS.len())];
        let shape = shape(&mut random);
        let array = Array::new(dtype, &shape, pattern, &mut random);
        let reduced: Vec<bool> = shape.iter().map(|_| random.bool()).collect();
        let nan = [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error];
        let rules = Rules::default().ddof(random.u64(..2)).nan(nan[random.usize(..6).min(2) % 3]);
        let (threads, note) = (random.usize(1..4), format!("round {round}: {pattern}"));
        check(&array, &reduced, &[threads], &rules, &note);
        in_f64(&array, &reduced, threads, &rules, &note, &mut random);
    }
}

/// The same of one operation whose answers are f64, whatever the floats are.
fn in_f64(
    array: &Array,
    reduced: &[bool],
    threads: usize,
    rules: &Rules,
    note: &str,
    random: &mut Rng,
) {
    if array.dtype.is_float() {
        let op = [Op::Sum, Op::Mean, Op::Norm1, Op::Var, Op::Norm2][random.usize(..5)];
        one(array, reduced, op, &[threads], &rules.out(Some(DType::F64)), note);
    }
}

#[test]
fn products_of_two_arrays_are_those_of_the_states() {
    let mut random = Rng::with_seed(seed(0xd07));
    for round in 0..cases() as usize {
        let floats = [DType::F64, DType::F32, DType::F16, DType::BF16];
        let dtype = if round % 4 == 0 {
            DType::ALL[round / 4 % DType::ALL.len()]
        } else {
            floats[round % 4]
        };
        if !Op::Dot.supports(dtype) {
            continue;
        }
        let shape = shape(&mut random);
        // The same layout or another, the same data or other.
        let pattern = PATTERNS[random.usize(..PATTERNS.len())];
        let one = Array::new(dtype, &shape, pattern, &mut random);
        let pattern =
            if random.bool() { pattern } else { PATTERNS[random.usize(..PATTERNS.len())] };
        let mut two = Array::new(dtype, &shape, pattern, &mut random);
        if random.bool() {
            (two.strides, two.offset) = (one.strides.clone(), one.offset);
            two.bytes.resize(one.bytes.len(), 0);
        } else if random.u32(..4) == 0 {
            // One element again and again along an axis.
            let axis = random.usize(..shape.len().max(1));
            if let Some(stride) = two.strides.get_mut(axis).filter(|stride| **stride > 0) {
                *stride = 0;
            }
        }
        let reduced: Vec<bool> = shape.iter().map(|_| random.bool()).collect();
        let nan = [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error];
        let rules = Rules::default().nan(nan[random.usize(..6).min(2) % 3]);
        let note = format!("round {round}: {pattern}");
        let threads = random.usize(1..4);
        dot([&one, &two], &reduced, &[threads], &rules, &note);
    }
}

/// Rows of fewer elements than a vector, read with what comes after them: Miri tells whether that
/// may be read from where it is read.
#[test]
fn rows_shorter_than_a_vector_are_those_of_the_states() {
    let mut random = Rng::with_seed(7);
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let size = dtype.size();
        for [outputs, len] in [[9, 7], [35, 7], [5, 40], [3, 7 * 32 / size]] {
            let array = |random: &mut Rng| {
                let bits = (0..outputs * len).map(|i| make(dtype, "uniform", i, random));
                let bytes = bits.flat_map(|x| x.to_le_bytes()[..size].to_vec()).collect();
                let strides = vec![(len * size) as isize, size as isize];
                Array { dtype, shape: vec![outputs, len], strides, offset: 0, bytes }
            };
            let (one, two) = (array(&mut random), array(&mut random));
            let note = "short rows";
            for op in [Op::Sum, Op::Mean, Op::Norm2, Op::Var, Op::ArgMax] {
                self::one(&one, &[false, true], op, &[1], &Rules::new(), note);
            }
            dot([&one, &two], &[false, true], &[1], &Rules::new(), note);
        }
    }
}

#[test]
fn outputs_of_a_few_elements_are_those_of_their_states() {
    // Around what is few, and around groups, strips and what has accumulators at a time.
    let outputs = [1, 2, 7, 8, 9, 15, 16, 17, 33, 63, 64, 65, 100, 255, 257, 1023, 1025, 2500];
    let mut random = Rng::with_seed(seed(0xfe77));
    for round in 0..cases() as usize {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let pattern = PATTERNS[random.usize(..PATTERNS.len())];
        let n = random.usize(1..19);
        let many = outputs[random.usize(..if cfg!(miri) { 6 } else { outputs.len() })];
        let (shape, reduced) = match random.u32(..6) {
            0 => (vec![n, many], vec![true, false]),
            1 => (vec![many, n], vec![false, true]),
            2 => (vec![n, 3, many.div_ceil(3)], vec![true, false, false]),
            3 => (vec![many.div_ceil(4), n, 4], vec![false, true, false]),
            4 => (vec![n.div_ceil(4), many, n % 4 + 1], vec![true, false, true]),
            _ => (vec![2, many.div_ceil(2), 1, n], vec![false, false, true, true]),
        };
        let array = Array::new(dtype, &shape, pattern, &mut random);
        let nan = [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error];
        let rules = Rules::default().ddof(random.u64(..2)).nan(nan[random.usize(..6).min(2) % 3]);
        let (threads, note) = (random.usize(1..4), format!("round {round}: {pattern}"));
        let ops: Vec<Op> = OPS.into_iter().filter(|op| op.supports(dtype)).collect();
        let some = if dtype.is_float() { ops.len() } else { 5 };
        for _ in 0..some {
            let op = ops[random.usize(..ops.len())];
            one(&array, &reduced, op, &[threads], &rules, &note);
        }
        in_f64(&array, &reduced, threads, &rules, &note, &mut random);
        if Op::Dot.supports(dtype) {
            let arrays = [&array; 2];
            dot(arrays, &reduced, &[threads], &rules, &note);
        }
    }
}

#[test]
fn sums_of_a_few_elements_know_when_they_are_rounded() {
    let tiny = 2f64.powi(-149);
    let cases: &[&[f64]] = &[
        // In the middle between two f32, and a little beside it.
        &[1.0, 2f64.powi(-24)],
        &[1.0, 2f64.powi(-24), 2f64.powi(-80)],
        &[1.0, 2f64.powi(-24), -2f64.powi(-80)],
        &[1.0, 2f64.powi(-23), 2f64.powi(-24), -2f64.powi(-140)],
        &[1.0, 3.0 * 2f64.powi(-24), 2f64.powi(-79), -tiny],
        // Errors whose bits together are those of a NaN, beside a sum in the middle: of f32 and of bf16.
        &[2f64.powi(100), 2f64.powi(76), 3.0, 1.5],
        &[2f64.powi(100), 3.0 * 2f64.powi(76), -3.0, -1.5],
        &[2f64.powi(100), 2f64.powi(92), 3.0, 1.5],
        // The same of f64.
        &[1.0, 2f64.powi(-53)],
        &[1.0, 2f64.powi(-53), 2f64.powi(-107)],
        &[1.0, 2f64.powi(-53), -2f64.powi(-120)],
        &[1.0, 2f64.powi(-53), 2f64.powi(-110), -2f64.powi(-300)],
        &[1e300, 1.0, -1e300, 2f64.powi(-60)],
        // What is rounded on the way is missing in the end.
        &[2f64.powi(30), 1.0 + 2f64.powi(-23), -2f64.powi(30)],
        &[2f64.powi(31), 1.0 + 2f64.powi(-23), -2f64.powi(31)],
        &[2f64.powi(33), 1.0 + 2f64.powi(-23), -2f64.powi(33)],
        // Zeros, which sums of nothing but negative ones are, too.
        &[-0.0],
        &[-0.0, -0.0, -0.0],
        &[5.0, -5.0],
        &[-tiny, tiny, -0.0],
        // Both ends.
        &[3.4e38, 3.4e38],
        &[1.7e308, 1.7e308, -1.7e308],
        &[1.7e308, 1.7e308],
        &[tiny],
        &[tiny, tiny, tiny],
        &[5e-324, 5e-324, 5e-324, 5e-324],
        &[5e-324, 5e-324],
        &[2.5e-308, 5e-324, 0.0, 0.0],
        &[f64::INFINITY],
        &[f64::INFINITY, f64::NEG_INFINITY],
        &[f64::NAN],
        &[1.0, f64::NAN, 2.0],
    ];
    let mut random = Rng::with_seed(seed(5));
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        for case in cases {
            for outputs in [8, 19, 70] {
                // One output has it, or all.
                let special = random.usize(..outputs + 1);
                let (len, size) = (case.len(), dtype.size());
                let mut bytes = Vec::new();
                for row in 0..len {
                    for output in 0..outputs {
                        let has = special == outputs || special == output;
                        let x = if has { case[row] } else { random.f64() };
                        bytes.extend_from_slice(&element(dtype, x).to_le_bytes()[..size]);
                    }
                }
                let strides = vec![(outputs * size) as isize, size as isize];
                let array = Array { dtype, shape: vec![len, outputs], strides, offset: 0, bytes };
                for op in
                    [Op::Sum, Op::Mean, Op::Norm1, Op::Norm2, Op::Var, Op::Std, Op::Min, Op::Max]
                {
                    let note = format!("{case:?}");
                    one(&array, &[true, false], op, &[1], &Rules::default(), &note);
                }
                let arrays = [&array; 2];
                dot(arrays, &[true, false], &[1], &Rules::default(), "squares");
            }
        }
    }
}

#[test]
fn products_that_underflow_are_not_lost() {
    let half = 2f64.powi(-537);
    let cases: &[&[[f64; 2]]] = &[
        // Of -1e-340 the rounded sum is -0.
        &[[1e-170, -1e-170]],
        &[[1e-170, -1e-170], [0.0, 5.0]],
        &[[1e-170, 1e-170], [1.0, 1.0], [-1.0, 1.0]],
        // Three halves of the least number twice, which is three times it.
        &[[1.5 * half, half], [1.5 * half, half]],
        &[[1.5 * half, half], [1.25 * half, half], [1.25 * half, half]],
        // In the middle between two numbers, but for what underflows.
        &[[1.0, 1.0], [2f64.powi(-53), 1.0], [1e-170, 1e-170]],
        &[[1.0, 1.0], [2f64.powi(-53), 1.0], [1e-170, -1e-170]],
        &[[1e-150, 1e-150], [2f64.powi(-53) * 1e-150, 1e-150], [1e-170, 1e-170]],
        // The largest numbers there are.
        &[[f64::MAX, 1.0], [f64::MAX, -1.0], [3.0, 0.5]],
        &[[f64::MAX, 2.0], [f64::MAX, -2.0], [3.0, 0.5]],
        &[[0.0, f64::INFINITY], [1.0, 1.0]],
    ];
    for pairs in cases {
        for outputs in [1, 5, 40] {
            for rows in [false, true] {
                let len = pairs.len();
                let (shape, reduced) = (vec![outputs, len], [false, true]);
                let (near, far) = (8, 8 * if rows { len } else { outputs } as isize);
                let strides = if rows { vec![far, near] } else { vec![near, far] };
                let array = |side: usize| {
                    let at = |i: usize| pairs[if rows { i % len } else { i / outputs }][side];
                    let bytes = (0..outputs * len).flat_map(|i| at(i).to_le_bytes()).collect();
                    let (shape, strides) = (shape.clone(), strides.clone());
                    Array { dtype: DType::F64, shape, strides, offset: 0, bytes }
                };
                let (one, two) = (array(0), array(1));
                let arrays = [&one, &two];
                let note = format!("{pairs:?}");
                dot(arrays, &reduced, &[1], &Rules::default(), &note);
            }
        }
    }
}

#[test]
fn few_elements_that_lie_together_need_no_plan() {
    let mut random = Rng::with_seed(seed(0xfe3));
    for round in 0..cases() as usize {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let pattern = PATTERNS[random.usize(..PATTERNS.len())];
        // Around the ends of vectors, and of what is few.
        let most = [9, 70, 1100, 5000][random.usize(..if cfg!(miri) { 2 } else { 4 })];
        let mut array = Array::new(dtype, &[random.usize(1..most)], pattern, &mut random);
        (array.offset, array.strides) = (0, vec![dtype.size() as isize]);
        let nan = [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error];
        let rules = Rules::default().ddof(random.u64(..2)).nan(nan[random.usize(..3)]);
        check(&array, &[true], &[1], &rules, &format!("round {round}: {pattern}"));
    }
}

#[test]
fn threads_share_the_elements_of_few_outputs() {
    // More than one thread is worth, for outputs that are rows, columns and neither.
    let mut random = Rng::with_seed(seed(7));
    let dtypes = [DType::F64, DType::F32, DType::F16, DType::BF16, DType::I16, DType::Bool];
    for (turn, dtype) in dtypes.into_iter().enumerate() {
        for (place, (shape, reduced)) in [
            (vec![3, 70_001], &[false, true][..]),
            (vec![70_001, 3], &[true, false]),
            (vec![5000, 67], &[true, false]),
            (vec![1, 140_000], &[true, true]),
            // Threads share the outer of two reduced axes, or the inner one where that is short.
            (vec![45, 5, 700], &[true, false, true]),
            (vec![3, 5, 9001], &[true, false, true]),
            (vec![61, 4, 90, 6], &[true, false, true, false]),
        ]
        .into_iter()
        .enumerate()
        {
            // Every shape of every type, or of every third.
            if (turn + place) % 3 > 0 && !thorough() {
                continue;
            }
            let pattern = if dtype == DType::F64 { "wide" } else { "uniform" };
            let array = Array::new(dtype, &shape, pattern, &mut random);
            let rules = Rules::default();
            check_some(&array, reduced, &[1, 3], &rules, "threads", turn + place);
            if dtype.is_float() {
                // NaNs from the first elements on: all begin by leaving them out.
                let mut array = array;
                let (size, nan) = (dtype.size(), element(dtype, f64::NAN).to_le_bytes());
                for at in (0..array.bytes.len()).step_by(7 * size) {
                    array.bytes[at..at + size].copy_from_slice(&nan[..size]);
                }
                let rules = Rules::new().nan(NanPolicy::Omit);
                check_some(&array, reduced, &[1, 3], &rules, "threads, omit", turn + place);
            }
        }
    }
}

#[test]
fn single_outputs_of_many_elements_are_those_of_their_state() {
    // With states and without, in one piece, of short rows, and in another order than that of
    // indices; on more threads than one.
    let mut random = Rng::with_seed(seed(0x51e));
    let ops = [Op::Dot, Op::Norm2, Op::SumSq, Op::ArgMin, Op::ArgMax, Op::Min, Op::Max, Op::Prod];
    for round in 0..cases() as usize {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let pattern = PATTERNS[random.usize(..PATTERNS.len())];
        let long = if cfg!(miri) { 50 } else { random.usize(900..20_000) };
        let short = random.usize(1..17);
        let shape = match random.u32(..5) {
            0 => vec![long],
            1 => vec![long.div_ceil(4), 1, 4],
            2 => vec![random.usize(1..4), long.div_ceil(short), short],
            // Short runs beside each other.
            3 => vec![random.usize(1..4), long.div_ceil(12), 3, 2],
            _ => vec![long.div_ceil(60), 3, 20],
        };
        let array = Array::new(dtype, &shape, pattern, &mut random);
        let reduced = vec![true; shape.len()];
        let threads = random.usize(1..4);
        for op in ops.into_iter().filter(|op| op.supports(dtype)) {
            let arrays = [Some(&array), Some(&array).filter(|_| op.arity() == 2)];
            compare(arrays, &reduced, &[op], &[threads], &Rules::default(), pattern);
        }
    }
}

#[test]
fn long_products_are_certain_where_they_leave_the_range_and_left_to_logarithms_elsewhere() {
    let mut random = Rng::with_seed(seed(0x9d));
    let len = if cfg!(miri) { 100 } else { 40_001 };
    for dtype in [DType::F32, DType::F64] {
        // Near one, far below, far above, and zeros or what is no number among them.
        for [least, most] in [[0.999, 1.001], [0.9999, 1.0001], [0.0, 1.0], [-3.0, 3.0]] {
            for odd in [None, Some(0.0), Some(-0.0), Some(f64::NAN), Some(f64::INFINITY)] {
                let mut bytes = Vec::new();
                let place = random.usize(..len);
                for i in 0..len {
                    let x = least + random.f64() * (most - least);
                    let x = odd.filter(|_| i == place).unwrap_or(x);
                    bytes.extend_from_slice(&element(dtype, x).to_le_bytes()[..dtype.size()]);
                }
                let strides = vec![dtype.size() as isize];
                let array = Array { dtype, shape: vec![len], strides, offset: 0, bytes };
                let note = format!("{least} to {most}, {odd:?}");
                one(&array, &[true], Op::Prod, &[2], &Rules::default(), &note);
            }
        }
    }
}

#[test]
fn short_rows_of_an_output_are_put_together() {
    // Around what is copied at a time, which leaves a part of a row over; also for positions.
    let mut random = Rng::with_seed(seed(0x10));
    for round in 0..cases() as usize {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let pattern = PATTERNS[random.usize(..PATTERNS.len())];
        let inner = random.usize(1..70);
        let outer = if cfg!(miri) { 5 } else { [3, 40, 300, 1025][random.usize(..4)] };
        let kept = [1, 2, 7, 9, 20][random.usize(..if inner * outer > 9000 { 2 } else { 5 })];
        let (shape, reduced) = match random.u32(..3) {
            0 => (vec![kept, outer, inner], vec![false, true, true]),
            1 => (vec![outer, kept, inner], vec![true, false, true]),
            _ => (vec![2, kept, outer.div_ceil(2), inner], vec![true, false, true, true]),
        };
        let array = Array::new(dtype, &shape, pattern, &mut random);
        let ops: Vec<Op> = OPS.into_iter().filter(|op| op.supports(dtype)).collect();
        for _ in 0..4 {
            let (op, threads) = (ops[random.usize(..ops.len())], random.usize(1..4));
            one(&array, &reduced, op, &[threads], &Rules::default(), pattern);
        }
        if Op::Dot.supports(dtype) {
            let arrays = [&array; 2];
            dot(arrays, &reduced, &[1], &Rules::default(), pattern);
        }
    }
}

#[test]
fn the_first_of_equal_elements_is_found_by_several_threads() {
    // The threads share the middle axis, along which positions do not ascend.
    let (shape, reduced) = (vec![2, 3, 3000, 28], [true, false, true, true]);
    let bytes: Vec<u8> = [1.0f64; 2 * 3 * 3000 * 28].iter().flat_map(|x| x.to_le_bytes()).collect();
    let strides = vec![3 * 3000 * 28 * 8, 3000 * 28 * 8, 28 * 8, 8];
    let array = Array { dtype: DType::F64, shape, strides, offset: 0, bytes };
    for _ in 0..if cfg!(miri) { 0 } else { 20 } {
        one(&array, &reduced, Op::ArgMax, &[3], &Rules::default(), "equal");
    }
}

#[test]
fn the_first_of_equal_elements_is_found() {
    // Every element is the worst there is, or all but some are equal.
    for x in [i8::MAX, i8::MIN, 0] {
        for len in [1, 5, 40, 700] {
            let items = vec![x as u8; 9 * len];
            for reduced in [[false, true], [true, false]] {
                let shape = if reduced[0] { vec![len, 9] } else { vec![9, len] };
                let strides = vec![shape[1] as isize, 1];
                let array =
                    Array { dtype: DType::I8, shape, strides, offset: 0, bytes: items.clone() };
                check(&array, &reduced, &[1], &Rules::default(), "equal");
            }
        }
    }
}

#[test]
fn sums_between_two_numbers_go_to_the_even_one() {
    // Exactly half-way, and a little beside it: what is added last decides.
    for tiny in [0.0, 2f64.powi(-60), -2f64.powi(-60), 2f64.powi(-900)] {
        for half in [2f64.powi(-53), 3.0 * 2f64.powi(-53)] {
            for len in [3, 20, 50, 500] {
                let mut row = vec![0.0; len];
                (row[0], row[len / 2], row[len - 1]) = (1.0, half, tiny);
                let items: Vec<u8> =
                    row.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>().repeat(20);
                let array = Array {
                    dtype: DType::F64,
                    shape: vec![20, len],
                    strides: vec![8 * len as isize, 8],
                    offset: 0,
                    bytes: items,
                };
                check(&array, &[false, true], &[1], &Rules::default(), "half-way");
            }
        }
    }
}

#[test]
fn equal_elements_have_no_spread() {
    // Plain sums leave nothing of the variance, or a little less than nothing.
    for x in [1e15f32, -1e15, 0.1, 3e-20] {
        for len in [1, 2, 5, 13, 100, 1000] {
            let bytes: Vec<u8> = x.to_le_bytes().repeat(len * 20);
            for (strides, reduced) in
                [(vec![80, 4], [true, false]), (vec![4, 4 * len as isize], [true, false])]
            {
                let shape = vec![len, 20];
                let bytes = bytes.clone();
                let array = Array { dtype: DType::F32, shape, strides, offset: 0, bytes };
                check(&array, &reduced, &[1], &Rules::default(), "equal");
            }
        }
    }
}

#[test]
fn variances_between_two_numbers_go_to_the_even_one() {
    // Squares of the differences of neighbours have a bit more than the answers, as a rule.
    let mut random = Rng::with_seed(seed(12));
    for len in [2, 3, 4, 8, 65, 80] {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let size = dtype.size();
            let bits = element(dtype, 1.0);
            let some = if dtype == DType::F32 { 1 << 13 } else { 1 << 6 };
            let bytes: Vec<u8> = (0..len * 300)
                .flat_map(|_| (bits + random.u64(..some)).to_le_bytes()[..size].to_vec())
                .collect();
            for strides in [
                vec![(size * len) as isize, size as isize],
                vec![size as isize, (300 * size) as isize],
            ] {
                let (shape, bytes) = (vec![300, len], bytes.clone());
                let array = Array { dtype, shape, strides, offset: 0, bytes };
                for op in [Op::Var, Op::Std] {
                    for ddof in [0, 1] {
                        let rules = Rules::default().ddof(ddof);
                        one(&array, &[false, true], op, &[1], &rules, "neighbours");
                    }
                }
            }
        }
    }
}

#[test]
fn products_of_many_outputs_are_those_of_their_states() {
    // Around the lanes, the room of a lane, and a block.
    let mut random = Rng::with_seed(seed(11));
    let lengths = [1, 2, 15, 16, 17, 127, 128, 129, 256, 257, 1000, 1023, 1024, 1025, 4097];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for len in if cfg!(miri) { &lengths[..4] } else { &lengths[..] } {
            for pattern in ["uniform", "bits", "zeros", "specials", "wide", "integers", "ties"] {
                for (shape, reduced) in
                    [(vec![*len, 21], [true, false]), (vec![5, *len], [false, true])]
                {
                    let array = Array::new(dtype, &shape, pattern, &mut random);
                    one(&array, &reduced, Op::Prod, &[2], &Rules::default(), pattern);
                }
            }
        }
    }
}

#[test]
fn products_of_integers_are_those_of_their_states() {
    // About one factor in so many is not 1 or -1, so that products come near the ends of 64 bits.
    let factors: [&[i64]; 5] = [
        &[2, -2, 1, 1],
        &[3, 7, -1, 1, 1, 1],
        &[0, 2, 5, 1, 1],
        &[i64::MIN, i64::MAX, -1, 1, 1, 1, 1],
        &[1 << 32, -(1 << 31), 1 << 16, -1, 0, 1, 1, 1],
    ];
    let mut random = Rng::with_seed(seed(17));
    let lengths = [1, 2, 7, 8, 11, 12, 16, 33, 64, 65, 300];
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        for len in if cfg!(miri) { &lengths[..4] } else { &lengths[..] } {
            for factors in factors {
                for (shape, reduced) in [
                    (vec![*len, 21], [true, false]),
                    (vec![150, *len], [false, true]),
                    (vec![*len, 1], [true, true]),
                ] {
                    let mut array = Array::new(dtype, &shape, "zeros", &mut random);
                    for (i, to) in array.bytes.chunks_exact_mut(dtype.size()).enumerate() {
                        let rare = *len > 64 && i % 7 != 0;
                        let x = if rare { 1 } else { factors[random.usize(..factors.len())] };
                        to.copy_from_slice(&x.to_le_bytes()[..dtype.size()]);
                    }
                    for wrap in [false, true] {
                        let rules = Rules::default().wrap(wrap);
                        let note = format!("{factors:?} {wrap}");
                        one(&array, &reduced, Op::Prod, &[2], &rules, &note);
                    }
                }
            }
        }
    }
}

#[test]
fn products_of_integers_at_the_ends_of_64_bits() {
    // Rows whose products fit or do not by one, and zeros behind what does not.
    let rows: [([i64; 4], Option<i64>); 8] = [
        ([i64::MIN, 1, 1, 1], Some(i64::MIN)),
        ([1 << 62, 2, -1, 1], Some(i64::MIN)),
        ([i64::MIN, -1, -1, 1], Some(i64::MIN)),
        ([i64::MAX, 1, -1, 1], Some(-i64::MAX)),
        ([1 << 40, 1 << 40, 0, 1], Some(0)),
        ([1 << 32, 1 << 32, 5, 1], None),
        ([i64::MIN, -1, 1, 1], None),
        ([i64::MAX, 2, 1, 1], None),
    ];
    for isa in Isa::available() {
        for (row, product) in rows {
            // Beside others, and in every place of the row.
            for turn in 0..4 {
                let mut items = [1i64; 4 * 64];
                items[..4].copy_from_slice(&row);
                items[..4].rotate_right(turn);
                for (shape, reduced) in [(vec![64, 4], [false, true]), (vec![4, 64], [true, false])]
                {
                    let mut laid = items;
                    if reduced[0] {
                        (0..256).for_each(|i| laid[i] = items[i % 64 * 4 + i / 64]);
                    }
                    let bytes = laid.iter().flat_map(|x| x.to_le_bytes()).collect();
                    let strides = vec![8 * shape[1] as isize, 8];
                    let array = Array { dtype: DType::I64, shape, strides, offset: 0, bytes };
                    let view = array.view();
                    let job = Job {
                        views: [Some(&view), None],
                        reduced: &reduced,
                        kinds: &[Op::Prod.kind()],
                        start: 0,
                        initial: None,
                        marks: None,
                        isa,
                        threads: Threads::Exactly(1),
                    };
                    let got = answers(&job, Op::Prod, &Rules::default());
                    let first = got.as_ref().ok().map(|products| products[0].cast_signed());
                    assert_eq!(first, product, "{row:?} {turn} {isa}");
                    if let Ok(products) = got {
                        assert!(products[1..].iter().all(|&product| product == 1));
                    }
                }
            }
        }
    }
}

#[test]
fn products_near_the_middle_between_two_numbers_are_those_of_their_states() {
    // Exactly there, and as near as plain multiplications cannot tell.
    let mut random = Rng::with_seed(seed(29));
    for dtype in [DType::F32, DType::F64] {
        let digits = if dtype == DType::F32 { 24 } else { 53 };
        for len in [2, 3, 6, 7, 16, 17, 40, 700] {
            let outputs = 150;
            let mut rows = vec![vec![1.0f64; len]; outputs];
            for row in &mut rows {
                // Odd numbers of a product of one digit more than the type has.
                let half = digits / 2;
                let [a, b] =
                    [half, digits + 1 - half].map(|n| random.u64(1 << (n - 1)..1 << n) | 1);
                row[0] = a as f64;
                row[len - 1] = b as f64 * if random.bool() { 1.0 } else { -0.5 };
                for x in &mut row[1..len - 1] {
                    *x = 2f64.powi(random.i32(-2..3));
                }
                if dtype == DType::F32 && len > 6 && random.bool() {
                    // Their product is 1 - 2^-92, which f64 misses by a unit in this order.
                    let near = [8_392_705.0, 8_388_607.0, 8_384_513.0, 8_388_609.0];
                    let places = [1, 2, len / 2, len - 2];
                    for (place, x) in places.into_iter().zip(near) {
                        row[place] = x * 2f64.powi(-23);
                    }
                    row.swap(0, len - 1);
                } else if random.u32(..3) == 0 && len > 2 {
                    // A little beside it, if the type has such numbers.
                    row[1] =
                        if dtype == DType::F32 { 1.0 + 2f64.powi(-23) } else { 1.0f64.next_up() };
                }
            }
            for columns in [false, true] {
                let size = dtype.size();
                let at = |i: usize| {
                    if columns { rows[i % outputs][i / outputs] } else { rows[i / len][i % len] }
                };
                let bytes = (0..outputs * len)
                    .flat_map(|i| element(dtype, at(i)).to_le_bytes()[..size].to_vec())
                    .collect();
                let (shape, reduced) = if columns {
                    (vec![len, outputs], [true, false])
                } else {
                    (vec![outputs, len], [false, true])
                };
                let strides = vec![(shape[1] * size) as isize, size as isize];
                let array = Array { dtype, shape, strides, offset: 0, bytes };
                one(&array, &reduced, Op::Prod, &[1], &Rules::default(), "the middle");
            }
        }
    }
}

#[test]
fn products_of_factors_far_from_one_are_those_of_their_states() {
    // Some factors of a block are, or none; some are zeros and infinities.
    let mut random = Rng::with_seed(seed(31));
    for dtype in [DType::F32, DType::F64] {
        let far = if dtype == DType::F32 { 120 } else { 1000 };
        for len in [1, 5, 16, 33, 100, 1025] {
            for ends in [0, 1, 4, 9] {
                let size = dtype.size();
                let bytes = (0..len * 20)
                    .flat_map(|_| {
                        let power = random.i32(0..far) * [1, -1][random.usize(..2)];
                        let x = match random.u32(..200) {
                            0 if ends > 4 => 0.0,
                            1 if ends > 4 => -0.0,
                            2 if ends > 4 => f64::INFINITY,
                            // Both sides of 2^56 and 2^-56.
                            n if n < 40 && ends > 0 => {
                                2f64.powi(random.i32(54..59) * power.signum())
                            }
                            n if n < 44 && ends > 1 => 2f64.powi(power),
                            _ => 1.0,
                        };
                        let x = x * (1.0 + random.f64()) * if random.bool() { 1.0 } else { -0.9 };
                        element(dtype, x).to_le_bytes()[..size].to_vec()
                    })
                    .collect();
                for (shape, reduced) in [([len, 20], [true, false]), ([20, len], [false, true])] {
                    let strides = vec![(shape[1] * size) as isize, size as isize];
                    let bytes: &Vec<u8> = &bytes;
                    let (shape, bytes) = (shape.to_vec(), bytes.clone());
                    let array = Array { dtype, shape, strides, offset: 0, bytes };
                    one(&array, &reduced, Op::Prod, &[1], &Rules::default(), "far");
                }
            }
        }
    }
}

#[test]
fn answers_of_many_outputs_are_turned_to_c_order() {
    // Several chunks, on one thread and on more of them; some outputs are left to others.
    let mut random = Rng::with_seed(seed(37));
    let (many, few) = if cfg!(miri) { (20, 9) } else { (up_to(900, 130), 301) };
    let dtypes = [DType::F64, DType::F32, DType::I16, DType::U8];
    let orders = [[0, 2, 1], [2, 0, 1], [2, 1, 0]];
    for (i, dtype) in dtypes.into_iter().enumerate() {
        for n in [1, 3] {
            for (j, order) in orders.into_iter().enumerate() {
                let shape = vec![n, many, few];
                let size = dtype.size();
                let mut strides = vec![0; 3];
                let mut stride = size as isize;
                for &axis in order.iter().rev() {
                    strides[axis] = stride;
                    stride *= shape[axis] as isize;
                }
                let bytes = (0..n * many * few)
                    .flat_map(|i| {
                        make(dtype, "specials", i, &mut random).to_le_bytes()[..size].to_vec()
                    })
                    .collect();
                let array = Array { dtype, shape, strides, offset: 0, bytes };
                // Answers of all widths come from the first three, which take turns; the others take long.
                let ops = [Op::Sum, Op::Max, Op::ArgMin, Op::Prod, Op::Var];
                for &op in if thorough() { &ops[..] } else { &ops[(i + j) % 3..][..1] } {
                    let reduced = [true, false, false];
                    if op != Op::Prod || dtype.is_float() {
                        one(&array, &reduced, op, &[1, 3], &Rules::default(), "turned");
                    }
                }
            }
        }
    }
}

#[test]
fn answers_are_in_c_order_whatever_that_of_memory() {
    // Kept axes of any length in any order, some of them backwards: of few elements and of many.
    let mut random = Rng::with_seed(seed(43));
    let lengths = [2, 2, 3, 4, 5, 7, 8, 9, 13, 33, 100];
    for round in 0..cases() as usize / 2 {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let pattern = ["uniform", "specials", "bits"][random.usize(..3)];
        let few = [1, 1, 2, 9, 70][random.usize(..5)];
        let most = if cfg!(miri) { 60 } else { 20_000 / few };
        let mut shape: Vec<usize> = Vec::new();
        for _ in 0..random.usize(2..7) {
            let len = lengths[random.usize(..lengths.len())];
            if shape.iter().product::<usize>() * len <= most {
                shape.push(len);
            }
        }
        let axis = random.usize(..=shape.len());
        shape.insert(axis, few);
        // From the innermost axis in memory on: backwards, or in any order.
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if random.bool() {
            random.shuffle(&mut order);
        }
        let (size, mut offset, mut extent) = (dtype.size(), 0, 1);
        let mut strides = vec![0; shape.len()];
        for axis in order {
            let step = extent as isize * size as isize;
            let turned = random.u32(..6) == 0;
            strides[axis] = if turned { -step } else { step };
            offset += if turned { (shape[axis] - 1) * extent * size } else { 0 };
            extent *= shape[axis];
        }
        let mut bytes = Vec::new();
        for index in 0..extent {
            bytes.extend(&make(dtype, pattern, index, &mut random).to_le_bytes()[..size]);
        }
        let reduced: Vec<bool> = (0..shape.len()).map(|i| i == axis).collect();
        let array = Array { dtype, shape, strides, offset, bytes };
        let threads = [1, random.usize(2..5)];
        let note = format!("round {round}: {pattern}");
        // Each type has a turn of each third.
        let turn = round / DType::ALL.len();
        check_some(&array, &reduced, &threads, &Rules::default(), &note, turn);
    }
}

#[test]
fn one_column_of_many_is_looked_at_again() {
    // One output of many lies in the middle between two numbers.
    let mut random = Rng::with_seed(seed(41));
    for dtype in [DType::F64, DType::F32] {
        let half = if dtype == DType::F64 { 2f64.powi(-53) } else { 2f64.powi(-24) };
        for len in [257, 300, 1000, 2049] {
            for outputs in [40, 117] {
                let size = dtype.size();
                let odd = random.usize(..outputs);
                let beside =
                    [0.0, half * 2f64.powi(-20), -half * 2f64.powi(-20)][random.usize(..3)];
                let bytes = (0..len * outputs)
                    .flat_map(|i| {
                        let x = match (i / outputs, i % outputs == odd) {
                            (0, true) => 1.0,
                            (200, true) => half,
                            (256, true) => beside,
                            (_, true) => 0.0,
                            _ => random.f64(),
                        };
                        element(dtype, x).to_le_bytes()[..size].to_vec()
                    })
                    .collect();
                let strides = vec![(outputs * size) as isize, size as isize];
                let array = Array { dtype, shape: vec![len, outputs], strides, offset: 0, bytes };
                let reduced = [true, false];
                check(&array, &reduced, &[1], &Rules::default(), "one column");
                let arrays = [&array; 2];
                dot(arrays, &reduced, &[1], &Rules::default(), "one column");
            }
        }
    }
}

#[test]
fn a_few_of_many_outputs_are_gathered() {
    // One output in 30 is of other data, which the first accumulators leave.
    let mut random = Rng::with_seed(seed(43));
    let patterns = ["ties", "specials", "wide", "cancelling", "tiny", "bits", "endless"];
    for round in 0..42 {
        let dtype = [DType::F64, DType::F32, DType::F16][round % 3];
        let len: usize = [2, 5, 16, 17, 40, 256, 257][round % 7];
        let outputs = random.usize(60..=90) * if len < 50 { 4 } else { 1 };
        let outer = [1, 2, len][random.usize(..3)];
        let inner = len.div_ceil(outer);
        let pattern = patterns[random.usize(..patterns.len())];
        let odd: Vec<bool> = (0..outputs).map(|_| random.u32(..30) == 0).collect();
        let shape = [outer, outputs, inner];
        // Rows, columns, and neither: the axes from the innermost one in memory on.
        let orders = [[2, 1, 0], [1, 2, 0], [1, 0, 2], [0, 2, 1]];
        let order = orders[random.usize(..orders.len())];
        let (mut steps, mut all) = ([0; 3], 1);
        for axis in order {
            (steps[axis], all) = (all, all * shape[axis]);
        }
        let mut array = laid_out(dtype, &shape, &steps, "uniform", &mut random);
        let size = dtype.size();
        for i in 0..all {
            if odd[i / steps[1] % outputs] {
                let x = make(dtype, pattern, i, &mut random).to_le_bytes();
                array.bytes[i * size..][..size].copy_from_slice(&x[..size]);
            }
        }
        let reduced = [true, false, true];
        let note = format!("round {round}: {pattern}");
        for nan in [NanPolicy::Propagate, NanPolicy::Omit] {
            check(&array, &reduced, &[1], &Rules::default().nan(nan), &note);
        }
        dot([&array; 2], &reduced, &[1], &Rules::default(), &note);
        for _ in 0..up_to(8, 4) {
            several(&array, &reduced, &note, &mut random);
        }
    }
}

#[test]
fn a_long_output_of_infinities_and_nans_is_that_of_its_state() {
    // Which begins with other accumulators, whatever threads share it: that takes 256 KiB.
    let mut random = Rng::with_seed(seed(44));
    for (i, pattern) in ["specials", "endless", "nothing", "bits", "wide"].iter().enumerate() {
        let dtype = [DType::F64, DType::F64, DType::F32][i % 3];
        let array = Array::new(dtype, &[36_000 + i], pattern, &mut random);
        for nan in [NanPolicy::Propagate, NanPolicy::Omit] {
            check(&array, &[true], &[1, 3], &Rules::default().nan(nan), pattern);
        }
    }
}

#[test]
fn squares_of_32_bits_are_whole_whatever_the_sign() {
    let ends = [0, 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 62];
    for (most, len) in [(5, 3), (8, 3), (5, 400), (8, 70)] {
        let mut random = Rng::with_seed(seed(5));
        for dtype in [DType::I64, DType::U64] {
            let mut bytes = Vec::new();
            for _ in 0..len * 20 {
                let x: i64 = ends[random.usize(..most)];
                let minus = dtype == DType::I64 && random.bool();
                bytes.extend_from_slice(&(if minus { -x } else { x }).to_le_bytes());
            }
            for (strides, reduced) in
                [(vec![160, 8], [true, false]), (vec![8, 8 * len as isize], [true, false])]
            {
                let (shape, bytes) = (vec![len, 20], bytes.clone());
                let array = Array { dtype, shape, strides, offset: 0, bytes };
                one(&array, &reduced, Op::Var, &[1], &Rules::default(), "32 bits");
                one(&array, &reduced, Op::Std, &[1], &Rules::default(), "32 bits");
            }
        }
    }
}

#[test]
fn products_stay_within_f64_on_their_way() {
    // The largest and the smallest numbers there are, one after the other or all alike.
    for dtype in [DType::F32, DType::F64] {
        let short = dtype == DType::F32;
        let largest = if short { u64::from(f32::MAX.to_bits()) } else { f64::MAX.to_bits() };
        let smallest = if short {
            u64::from(f32::from_bits(1).to_bits())
        } else {
            f64::MIN_POSITIVE.to_bits()
        };
        for len in [2, 4, 8, 64, 65, 128, 256, 384, 385, 1000, 1001, 4096] {
            // Of these sixteen of one kind leave the range, and the product does not.
            let [up, down] = [1.9 * 2f64.powi(63), 1.4 * 2f64.powi(-68)].map(|x| element(dtype, x));
            for ends in [[largest; 2], [smallest; 2], [largest, smallest], [up, down]] {
                let size = dtype.size();
                let row: Vec<u8> =
                    (0..len).flat_map(|i| ends[i % 2].to_le_bytes()[..size].to_vec()).collect();
                let (shape, strides) = (vec![5, len], vec![(len * size) as isize, size as isize]);
                let array = Array { dtype, shape, strides, offset: 0, bytes: row.repeat(5) };
                one(&array, &[false, true], Op::Prod, &[1], &Rules::default(), "ends");
            }
        }
    }
}

#[test]
fn sums_squares_and_exponentials_of_any_magnitude_are_those_of_the_states() {
    let mut random = Rng::with_seed(seed(4));
    for round in 0..60 {
        // Subnormal, tiny, far apart, next to infinite; alike but for their last bits.
        let [least, most] = [[-1074, -1022], [-1074, -900], [-1074, 1023], [900, 1023]][round % 4];
        let alike = round % 5 == 0;
        // Of a few elements in strips, of rows that end within a vector, and of many.
        let len = [2, 3, 4, 7, 17, 65, 67, 72, 79, 130, 1100][round % 11];
        let first = random.i32(least..=most);
        let mut bytes = Vec::new();
        for i in 0..len * 30 {
            // Outputs that are subnormal beside others.
            let least_of_all = round % 2 == 1 && i / len % 3 == 0;
            let most = if least_of_all { -1023 } else { most };
            let exponent = if alike { first } else { random.i32(least.min(most)..=most) };
            let digits =
                if alike { 1.5 + f64::EPSILON * (i % 3) as f64 } else { 1.0 + random.f64() };
            let sign = if alike || random.bool() { 1.0 } else { -1.0 };
            let half = exponent / 2;
            let x = sign * digits * 2f64.powi(half) * 2f64.powi(exponent - half);
            // A few zeros, infinities and NaNs.
            let x = *[0.0, f64::INFINITY, f64::NAN].get(random.usize(..200)).unwrap_or(&x);
            // Outputs that are infinite throughout.
            let x = if round % 6 == 2 && i / len % 7 == 0 { f64::INFINITY } else { x };
            bytes.extend_from_slice(&x.to_le_bytes());
        }
        let row = 8 * len as isize;
        for strides in [vec![row, 8], vec![8, 240]] {
            let (shape, bytes) = (vec![30, len], bytes.clone());
            let array = Array { dtype: DType::F64, shape, strides, offset: 0, bytes };
            let sums = [Op::Sum, Op::Mean, Op::Norm1];
            let others = [Op::Var, Op::Std, Op::SumSq, Op::Norm2, Op::LogSumExp];
            for op in sums.into_iter().chain(others) {
                for nan in [NanPolicy::Propagate, NanPolicy::Omit] {
                    let rules = Rules::default().nan(nan);
                    one(&array, &[false, true], op, &[1], &rules, &format!("round {round}"));
                }
            }
        }
    }
}

#[test]
fn log_sum_exps_of_one_element_and_of_none_are_those_of_its_state() {
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let size = dtype.size();
        let powers =
            (0..170).flat_map(|k| [2f64.powi(-k), -1.3 * 2f64.powi(-k), 2f64.powi(k % 16)]);
        let others = [0.0, -0.0, 1e-310, -5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let items: Vec<f64> = powers.chain(others).collect();
        let bytes: Vec<u8> =
            items.iter().flat_map(|&x| element(dtype, x).to_le_bytes()[..size].to_vec()).collect();
        let step = size as isize;
        // One of each, and two NaNs beside one another.
        let (shape, strides) = (vec![items.len(), 1], vec![step, step]);
        let one_each = Array { dtype, shape, strides, offset: 0, bytes: bytes.clone() };
        let nan = (items.len() - 3) * size;
        let nans = Array { dtype, shape: vec![40, 2], strides: vec![0, 0], offset: nan, bytes };
        for (array, nan) in [&one_each, &nans]
            .into_iter()
            .flat_map(|array| [NanPolicy::Propagate, NanPolicy::Omit].map(|nan| (array, nan)))
        {
            let rules = Rules::default().nan(nan);
            one(array, &[false, true], Op::LogSumExp, &[1], &rules, "one element or none");
        }
    }
}

#[test]
fn nans_in_long_rows_are_found_and_left_out() {
    let mut random = Rng::with_seed(seed(3));
    for dtype in [DType::F32, DType::F64] {
        for (len, all) in
            [48, 100, 1023, 1025, 2100].map(|len| [(len, false), (len, true)]).as_flattened()
        {
            let size = dtype.size();
            let mut bytes = Vec::new();
            for row in 0..12 {
                let nan = random.usize(..*len);
                for i in 0..*len {
                    let x = match row % 6 {
                        // One of them, all, and all but one.
                        1 | 2 if i == nan => f64::NAN,
                        4 if *all => f64::NAN,
                        5 if i != nan => f64::NAN,
                        // Zeros of both signs.
                        2 | 3 => 0.0f64.copysign(random.f64() - 0.5),
                        _ => random.f64() - 0.5,
                    };
                    let x = if x.is_nan() { x.copysign(random.f64() - 0.5) } else { x };
                    bytes.extend_from_slice(&element(dtype, x).to_le_bytes()[..size]);
                }
            }
            let (shape, strides) = (vec![12, *len], vec![(len * size) as isize, size as isize]);
            let array = Array { dtype, shape, strides, offset: 0, bytes };
            for op in [Op::Min, Op::Max, Op::NormInf, Op::ArgMin, Op::ArgMax] {
                for nan in [NanPolicy::Propagate, NanPolicy::Omit] {
                    let rules = Rules::new().nan(nan);
                    one(&array, &[false, true], op, &[1], &rules, &format!("NaNs, all {all}"));
                }
            }
        }
    }
}

#[test]
fn elements_are_left_out_of_tables_of_any_width() {
    let mut random = Rng::with_seed(seed(47));
    for dtype in [DType::F64, DType::F32, DType::F16, DType::I64, DType::I16, DType::U8] {
        let size = dtype.size();
        for columns in [3, 7, 8, 9, 31, 32, 33, 40, 63, 64, 65, 127, 128, 129, 200] {
            let rows = 67;
            let bytes = (0..rows * columns)
                .flat_map(|i| {
                    // NaNs come first, in the middle, or last.
                    let nan = i % 7 == 0 && i * 3 / (rows * columns) == columns % 3;
                    let x = if nan && dtype.is_float() { f64::NAN } else { random.f64() - 0.5 };
                    element(dtype, x).to_le_bytes()[..size].to_vec()
                })
                .collect();
            let (shape, strides) =
                (vec![rows, columns], vec![(columns * size) as isize, size as isize]);
            let array = Array { dtype, shape, strides, offset: 0, bytes };
            for reduced in [[true, false], [false, true], [true, true]] {
                several(&array, &reduced, &format!("{columns} columns"), &mut random);
                for op in [Op::Sum, Op::Max] {
                    let rules = Rules::new().nan(NanPolicy::Omit);
                    one(&array, &reduced, op, &[1, 2], &rules, &format!("{columns} columns"));
                }
            }
        }
    }
}

#[test]
fn outputs_of_a_few_elements_that_are_not_certain_are_left_alone() {
    let mut random = Rng::with_seed(seed(48));
    for dtype in [DType::F64, DType::F32] {
        let size = dtype.size();
        for (len, outputs) in [(2, 37), (3, 300), (5, 129), (8, 70), (16, 41)] {
            for one_in in [3, 11, 60] {
                let odd: Vec<usize> = (0..outputs).map(|_| random.usize(..6 * one_in)).collect();
                let bytes = (0..len * outputs)
                    .flat_map(|i| {
                        let (row, x) = (i / outputs, random.f64() - 0.5);
                        let bits = match (odd[i % outputs], row) {
                            // Infinities of both signs, a NaN, sums beyond the largest, halves of units.
                            (0, 0) | (1, 0..2) => element(dtype, f64::INFINITY),
                            (1, _) => element(dtype, f64::NEG_INFINITY),
                            (2, 1) => element(dtype, f64::NAN),
                            (3, _) if size == 8 => f64::MAX.to_bits() ^ ((row as u64 % 2) << 63),
                            (4, 0) => element(dtype, 1.0),
                            (4, 1) => element(
                                dtype,
                                if size == 8 { 2f64.powi(-53) } else { 2f64.powi(-24) },
                            ),
                            (4, _) => 0,
                            (5, _) => random.u64(..),
                            _ => element(dtype, x),
                        };
                        bits.to_le_bytes()[..size].to_vec()
                    })
                    .collect();
                let strides = vec![(outputs * size) as isize, size as isize];
                let array = Array { dtype, shape: vec![len, outputs], strides, offset: 0, bytes };
                for nan in [NanPolicy::Propagate, NanPolicy::Omit] {
                    let note = format!("one in {one_in}");
                    check(&array, &[true, false], &[1], &Rules::new().nan(nan), &note);
                }
            }
        }
    }
}

/// An array in C order, whose axes begin at these steps, in elements.
fn laid_out(dtype: DType, shape: &[usize], steps: &[usize], pattern: &str, r: &mut Rng) -> Array {
    let size = dtype.size();
    let last: usize = shape.iter().zip(steps).map(|(n, step)| (n - 1) * step).sum();
    let bytes = (0..=last)
        .flat_map(|i| make(dtype, pattern, i, r).to_le_bytes()[..size].to_vec())
        .collect();
    let strides = steps.iter().map(|&step| (step * size) as isize).collect();
    Array { dtype, shape: shape.to_vec(), strides, offset: 0, bytes }
}

#[test]
fn positions_in_rows_of_any_length_are_the_first() {
    // Around vectors of all widths, what is found in one pass, and what is sought at a time.
    let lens = [1, 3, 4, 7, 8, 11, 12, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 127, 128, 130];
    let long = [200, 1000, 1023, 1024, 1025, 2050, 9000];
    let lens: Vec<usize> = if cfg!(miri) { lens.to_vec() } else { [&lens[..], &long].concat() };
    let mut random = Rng::with_seed(seed(0xf125));
    for dtype in DType::ALL {
        for &len in &lens {
            let pattern = ["integers", "uniform", "zeros", "constant"][random.usize(..4)];
            let mut array = laid_out(dtype, &[9, len], &[len, 1], pattern, &mut random);
            // The best elements are anywhere, the last place of all included, and some rows have
            // a NaN of either sign or an infinity.
            for row in 0..9 {
                for x in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e3, -1e3] {
                    if random.u32(..8) == 0 {
                        let at = if random.bool() { len - 1 } else { random.usize(..len) };
                        let at = (row * len + at) * dtype.size();
                        let bits = element(dtype, x).to_le_bytes();
                        array.bytes[at..at + dtype.size()].copy_from_slice(&bits[..dtype.size()]);
                    }
                }
            }
            for op in [Op::ArgMin, Op::ArgMax].into_iter().filter(|op| op.supports(dtype)) {
                for reduced in [[false, true], [true, true]] {
                    let note = format!("{pattern} {len}");
                    one(&array, &reduced, op, &[1], &Rules::default(), &note);
                }
            }
        }
    }
}

#[test]
fn sums_of_f32_between_few_and_many_elements_know_when_they_are_rounded() {
    let mut random = Rng::with_seed(seed(0x4a6e));
    for round in 0..cases() as usize {
        let pattern = PATTERNS[round % PATTERNS.len()];
        let len = [65, 79, 80, 81, 127, 128, 129, 200, 255, 256, 257][random.usize(..11)];
        let outputs =
            [1, 2, 7, 8, 9, 16, 17, 33, 100][random.usize(..if cfg!(miri) { 4 } else { 9 })];
        let gap = random.usize(..3);
        let (shape, steps, reduced) = match random.u32(..3) {
            0 => ([outputs, len], [len + gap, 1], [false, true]),
            1 => ([len, outputs], [outputs + gap, 1], [true, false]),
            _ => ([outputs, len], [2 * len + gap, 2], [false, true]),
        };
        let mut array = laid_out(DType::F32, &shape, &steps, pattern, &mut random);
        // A neighbour that is far off, or half a unit of the sum, is in one of them.
        let at = random.usize(..array.bytes.len() / 4) * 4;
        let far = [2f32.powi(-126), -2f32.powi(-20), 2f32.powi(30), f32::MAX, 1e-45, -0.0];
        let far = far[random.usize(..far.len())];
        array.bytes[at..at + 4].copy_from_slice(&far.to_le_bytes());
        let (threads, rules) = (random.usize(1..3), Rules::default());
        for op in [Op::Sum, Op::Mean, Op::Norm1] {
            one(&array, &reduced, op, &[threads], &rules, &format!("{pattern} {far}"));
        }
    }
}

#[test]
fn short_runs_of_outputs_are_copied_together() {
    // Runs of a few outputs with gaps between them, which begin and end within strips.
    let mut random = Rng::with_seed(seed(0xba4d));
    for round in 0..cases() as usize {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let pattern = PATTERNS[random.usize(..PATTERNS.len())];
        let (n, run, gap) = (random.usize(1..7), random.usize(1..20), random.usize(..4));
        let rows = if cfg!(miri) { 9 } else { random.usize(2..200) };
        let pitch = run + gap;
        let (shape, steps, reduced) = match random.u32(..3) {
            0 => (vec![n, rows, run], vec![rows * pitch + gap, pitch, 1], vec![true, false, false]),
            1 => (vec![rows, n, run], vec![n * pitch + gap, pitch, 1], vec![false, true, false]),
            _ => {
                let steps = vec![3 * rows * pitch, rows * pitch, pitch, 1];
                (vec![2, n.min(3), rows, run], steps, vec![false, true, false, false])
            }
        };
        let array = laid_out(dtype, &shape, &steps, pattern, &mut random);
        let ops: Vec<Op> = OPS.into_iter().filter(|op| op.supports(dtype)).collect();
        for _ in 0..4 {
            let (op, threads) = (ops[random.usize(..ops.len())], random.usize(1..3));
            one(&array, &reduced, op, &[threads], &Rules::default(), pattern);
        }
        if Op::Dot.supports(dtype) {
            let other = laid_out(dtype, &shape, &steps, pattern, &mut random);
            let arrays = [&array, &other];
            dot(arrays, &reduced, &[1], &Rules::default(), pattern);
        }
    }
}

#[test]
fn answers_of_a_few_integers_are_rounded_once() {
    let mut random = Rng::with_seed(seed(0x57d));
    let many = if cfg!(miri) { 40 } else { 500 };
    let integers =
        DType::ALL.into_iter().filter(|dtype| !dtype.is_float() && *dtype != DType::Bool);
    for dtype in integers {
        for n in [1, 2, 3, 7, 16, 50, 64] {
            for pattern in ["bits", "integers", "constant"] {
                let mut array = laid_out(dtype, &[n, many], &[many, 1], pattern, &mut random);
                for ddof in [0, 1, 3] {
                    let rules = Rules::default().ddof(ddof);
                    for op in [Op::Std, Op::Var] {
                        one(&array, &[true, false], op, &[1], &rules, pattern);
                    }
                }
                for op in [Op::Mean, Op::Norm2, Op::SumSq] {
                    one(&array, &[true, false], op, &[1], &Rules::default(), pattern);
                }
                if dtype.size() == 8 {
                    // Means in the middle between two f64, or just beside it.
                    for item in array.bytes.chunks_exact_mut(8) {
                        let middle = (1i64 << 60) + (1 << 7) + random.i64(-1..2);
                        item.copy_from_slice(&middle.to_le_bytes());
                    }
                    one(&array, &[true, false], Op::Mean, &[1], &Rules::default(), "middle");
                }
            }
        }
    }
}

#[test]
fn ends_and_positions_are_found_wherever_vectors_end() {
    let mut random = Rng::with_seed(seed(0xe4d5));
    let infinity = f64::INFINITY;
    let odd = [f64::NAN, -f64::NAN, infinity, -infinity, -0.0, 0.0, 1e-40, -1.0];
    // Around the parts that are searched, and the blocks that are compared.
    let long = [500, 2047, 2048, 2049, 5000, 16_383, 16_385, 16_400, 40_000];
    // All lengths that one vector or two may have, and a part of the others.
    let all = if cfg!(miri) { 60..70 } else { 1..300 };
    let lengths = all.filter(|len| *len < 70 || thorough() || len % 5 < 2);
    for len in lengths.chain(long.into_iter().filter(|_| !cfg!(miri))) {
        for dtype in [DType::F64, DType::F32, DType::F16, DType::I64, DType::U32, DType::I8] {
            let (mut bytes, kinds) = (Vec::new(), 9);
            for kind in 0..kinds {
                let mut items: Vec<f64> = (0..len)
                    .map(|at| match kind {
                        0 => f64::from(random.i32(-100..100)),
                        1 => f64::from(random.i32(0..3)),
                        2 => infinity,
                        3 => -f64::from(random.i32(0..2)),
                        // Each better than those before it, as long as there are such.
                        4 => at as f64,
                        _ => f64::from(random.f32()) - 0.5,
                    })
                    .collect();
                for _ in 0..kind % 4 {
                    let at = [0, len - 1, random.usize(..len)][random.usize(..3)];
                    items[at] = odd[random.usize(if kind < 6 { 2 } else { 0 }..odd.len())];
                }
                let bits = items.iter().map(|&x| element(dtype, x));
                bytes.extend(bits.flat_map(|x| x.to_le_bytes()[..dtype.size()].to_vec()));
            }
            let strides = vec![(len * dtype.size()) as isize, dtype.size() as isize];
            let array = Array { dtype, shape: vec![kinds, len], strides, offset: 0, bytes };
            let (reduced, note) = ([false, true], format!("{len}"));
            for nan in [NanPolicy::Propagate, NanPolicy::Omit] {
                let rules = Rules::default().nan(nan);
                let ends = [Op::Min, Op::Max, Op::NormInf];
                compare([Some(&array), None], &reduced, &ends, &[1], &rules, &note);
                let places = [Op::ArgMin, Op::ArgMax];
                compare([Some(&array), None], &reduced, &places, &[1], &rules, &note);
            }
        }
    }
}
