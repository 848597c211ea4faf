//! Elements that marks choose, with one more, and answers of another type: what the device finishes against what core makes
//! of the states of the same elements, equal bits.

use crate::common::Random;
use crate::common::data::{DRAWN, make};
use crate::common::machine::device_of_this_machine;
use crate::common::views::{Layout, Placed, Sample, absorbed};
use crate::thorough::{self, up_to};
use std::sync::Arc;
use warpfold_core::element::{Bool8, bf16};
use warpfold_core::op::{NanPolicy, Op, Rules, Value};
use warpfold_core::{DType, Element, Scalar, with_element};
use warpfold_cuda::engine::{Chosen, DeviceView, Engine, ForcedWalk, Number, Shape};
use warpfold_cuda::{Buffer, Device, Sim, Stream};
use warpfold_ptx::machine::{Checks, Options};

const OPS: [Op; 13] = [
    Op::Sum,
    Op::Sum,
    Op::Mean,
    Op::Mean,
    Op::Var,
    Op::Std,
    Op::Min,
    Op::Max,
    Op::Prod,
    Op::Norm2,
    Op::NormInf,
    Op::CountNonzero,
    Op::All,
];

/// What is drawn: a question, and how it turned out.
struct Case {
    number: Number,
    out: Option<DType>,
    marks: bool,
    initial: bool,
}

fn elements<T: Element>(sample: &Sample, places: &[usize]) -> Vec<T> {
    let element = |&at: &usize| {
        let mut word = [0; 8];
        word[..size_of::<T>()].copy_from_slice(&sample.bytes()[at..at + size_of::<T>()]);
        T::from_bits(u64::from_le_bytes(word))
    };
    places.iter().map(element).collect()
}

/// Asks one question; says whether the device answered it.
fn ask(
    engine: &Engine,
    case: &Case,
    sample: &Sample,
    reduced: &[bool],
    random: &mut Random,
) -> bool {
    let Case { number, out, marks, initial } = *case;
    let Number { op, omits_nan, ddof } = number;
    let (device, shape) = (&**engine.device(), &sample.layout.shape);
    let layout = Layout::random(shape, 1, random);
    let bits: Vec<Bool8> = (0..layout.bytes).map(|_| Bool8::from(random.below(3) > 0)).collect();
    let mask = Sample::of(layout, &bits);
    let (placed, chosen) = (Placed::in_junk(device, sample), Placed::in_junk(device, &mask));
    let nan = if omits_nan { NanPolicy::Omit } else { NanPolicy::Propagate };
    let rules = Rules::default().nan(nan).ddof(ddof.into()).out(out);
    let places = sample.layout.elements(reduced).into_iter().zip(mask.layout.elements(reduced));
    let first = random.unit();
    let (expected, first): (Vec<Option<Scalar>>, u64) = with_element!(sample.dtype, T => {
        let first: T = make::<T>("uniform", 1, &mut Random((first * 1e9) as u64))[0];
        let expected = places
            .map(|(at, marked)| {
                let is = |(_, mark): &(T, usize)| !marks || mask.bytes()[*mark] != 0;
                let all = elements::<T>(sample, &at).into_iter().zip(marked);
                let mut some: Vec<T> = all.filter(is).map(|(x, _)| x).collect();
                if initial {
                    some.push(first);
                }
                let state = absorbed::<T>(op.kind(), &some, &[], 0);
                state.finish(op, &rules).ok().map(Value::first)
            })
            .collect();
        (expected, first.bits())
    });
    let type_of_answers = out.unwrap_or(op.answer_type(sample.dtype));
    let room = Buffer::new(device, (expected.len().max(1) * 8) as u64).expect("room");
    let question = Chosen {
        marks: marks.then(|| chosen.view.clone()),
        initial: initial.then_some(first),
        out,
    };
    let note = || {
        format!(
            "{op} of {}, omit {omits_nan}, ddof {ddof}, out {out:?}, marks {marks}, initial {initial}, {:?} over {reduced:?}",
            sample.dtype, sample.layout
        )
    };
    // SAFETY: the arrays were placed here, and there is room for the answers.
    let made = unsafe {
        engine.numbers_of_chosen_into(
            number,
            &placed.view,
            &question,
            reduced,
            room.address(),
            Stream::DEFAULT,
        )
    };
    let made = made.unwrap_or_else(|error| panic!("{error}: {}", note()));
    if !made {
        // What has no answer, and what no f64 holds.
        let told =
            out.is_some_and(|out| out != op.answer_type(sample.dtype) && !sample.dtype.is_float());
        let size = sample.dtype.size();
        let steps = sample.layout.strides.iter().map(|step| step.unsigned_abs());
        let misaligned = steps.chain([sample.layout.offset]).any(|step| step % size != 0);
        let unknown = expected.contains(&None)
            || misaligned
            || told
            || out.is_some() && (initial && op != Op::Sum || op == Op::Prod)
            || out.is_some() && sample.dtype == DType::F64
            || out.is_some() && op.answer_type(sample.dtype) != sample.dtype
            || initial && omits_nan && sample.dtype.is_float()
            || op == Op::Prod && !sample.dtype.is_float();
        assert!(unknown, "not made: {}", note());
        return false;
    }
    let mut bytes = vec![0; expected.len() * type_of_answers.size()];
    room.copy_out(Stream::DEFAULT, 0, &mut bytes).expect("a copy");
    for (i, (got, expected)) in
        bytes.chunks_exact(type_of_answers.size()).zip(&expected).enumerate()
    {
        let mut word = [0; 8];
        word[..got.len()].copy_from_slice(got);
        let got = Scalar::from_bits(type_of_answers, u64::from_le_bytes(word));
        assert!(Some(got) == *expected, "output {i}: {got:?}, not {expected:?}, {}", note());
    }
    true
}

fn drawn(device: Arc<dyn Device>, seed: u64, rounds: usize, most: usize) {
    // One that walks views brings marks into the elements' order, however few they are.
    let views = Shape { walk: Some(ForcedWalk::Views), ..Shape::default() };
    let engines = [Engine::new(Arc::clone(&device)), Engine::with_shape(device, views)];
    let mut random = Random(thorough::seed(seed));
    let mut made = [0; 4];
    for round in 0..rounds {
        let dtype = match round % 3 {
            0 => DType::ALL[round / 3 % DType::ALL.len()],
            _ => [DType::F32, DType::F64, DType::F16, DType::BF16][random.below(4) as usize],
        };
        // A NaN among the marked elements of a mean needs a copy of its own.
        let is_mean = dtype.is_float() && random.below(8) == 0;
        // Of integers, those of which some are left out need a copy of their own, too.
        let is_moment = !dtype.is_float() && dtype != DType::Bool && random.below(2) == 0;
        let pattern = match random.below(2) {
            _ if is_mean => DRAWN[random.below(3) as usize],
            _ if is_moment => ["random bits", "around 2^53", "uniform"][random.below(3) as usize],
            0 => "uniform",
            _ => DRAWN[random.below(DRAWN.len() as u64) as usize],
        };
        let lens = [1, 2, 3, 7, 16, 33, 100, 257];
        let mut shape: Vec<usize> =
            (0..1 + random.below(4)).map(|_| lens[random.below(8) as usize]).collect();
        while shape.iter().product::<usize>() > most {
            let longest = (0..shape.len()).max_by_key(|&i| shape[i]).unwrap();
            shape[longest] = shape[longest].div_ceil(2);
        }
        let size = dtype.size();
        let layout = match random.below(2) {
            0 => Layout::contiguous(&shape, size),
            _ => Layout::random(&shape, size, &mut random),
        };
        let sample = Sample::new(dtype, layout, pattern, &mut random);
        let mut reduced: Vec<bool> = shape.iter().map(|_| random.below(2) == 0).collect();
        let one = random.below(shape.len() as u64) as usize;
        reduced[one] = true;
        // Any byte but 0 is true, and an initial value, too.
        let op = match random.below(2) {
            _ if is_mean => Op::Mean,
            _ if is_moment => [Op::Mean, Op::Var, Op::Std][random.below(3) as usize],
            0 if dtype == DType::Bool => Op::Sum,
            _ => OPS[random.below(OPS.len() as u64) as usize],
        };
        if !op.supports(dtype) {
            continue;
        }
        let what = 1 + random.below(7);
        let takes = matches!(op, Op::Sum | Op::Prod | Op::Min | Op::Max | Op::NormInf);
        let case = Case {
            number: Number {
                op,
                omits_nan: !is_mean && random.below(4) == 0,
                ddof: if matches!(op, Op::Var | Op::Std) { random.below(3) as u32 } else { 0 },
            },
            marks: is_mean || is_moment || what & 1 == 1,
            initial: what & 2 == 2 && takes,
            out: (what & 4 == 4 && dtype.is_float()).then_some(DType::F64),
        };
        if ask(&engines[round / 2 % 2], &case, &sample, &reduced, &mut random) {
            made[0] += 1;
            made[1] += usize::from(case.marks);
            made[2] += usize::from(case.initial);
            made[3] += usize::from(case.out.is_some() && dtype.size() < 8);
        }
    }
    assert!(made.into_iter().all(|n| n * 20 > rounds), "{made:?} of {rounds}");
}

/// Integers of 64 bits, of which one that is marked is what stands for the others: only the host answers then, and no
/// value is wrong anywhere else.
fn what_stands_for_others(device: &Arc<dyn Device>, count: usize) {
    const LEFT_OUT: u64 = 0x5b3f_26c5_d17e_80a5;
    let engine = Engine::new(Arc::clone(device));
    for (dtype, op, place) in
        [(DType::I64, Op::Mean, 0), (DType::U64, Op::Var, 1), (DType::I64, Op::Std, 7)]
    {
        let mut words = make::<u64>("random bits", count, &mut Random(count as u64 + 9));
        words[count - 1 - place] = LEFT_OUT;
        let is_marked = |i: usize, all: bool| (all || i + 1 + place != count) && i % 3 != 1;
        let buffers: Vec<Buffer<'_>> =
            (0..3).map(|_| Buffer::new(&**device, 8 * count as u64).expect("room")).collect();
        buffers[0].copy_in(Stream::DEFAULT, 0, bytemuck::cast_slice(&words)).expect("a copy");
        for all in [false, true] {
            let marks: Vec<u8> = (0..count).map(|i| u8::from(is_marked(i, all))).collect();
            buffers[1].copy_in(Stream::DEFAULT, 0, &marks).expect("a copy");
            let marks = DeviceView::contiguous(buffers[1].address(), DType::Bool, &[count]);
            let chosen = Chosen { marks: Some(marks), ..Chosen::default() };
            let view = DeviceView::contiguous(buffers[0].address(), dtype, &[count]);
            let to = buffers[2].address();
            // SAFETY: the arrays were placed here, and there is room for the answer.
            let made = unsafe {
                engine.numbers_of_chosen_into(op, &view, &chosen, &[true], to, Stream::DEFAULT)
            };
            let is_told = all && is_marked(count - 1 - place, true);
            assert_eq!(made.expect("an answer or none"), !is_told, "{op} of {count} {dtype}");
            if is_told {
                continue;
            }
            let mut answer = [0; 8];
            buffers[2].copy_out(Stream::DEFAULT, 0, &mut answer).expect("a copy");
            let some = words.iter().enumerate().filter(|&(i, _)| is_marked(i, all));
            let expected = with_element!(dtype, T => {
                let some: Vec<T> = some.map(|(_, &word)| <T as Element>::from_bits(word)).collect();
                absorbed::<T>(op.kind(), &some, &[], 0).finish(op, &Rules::default()).expect("an answer").first()
            });
            assert_eq!(
                Scalar::from_bits(DType::F64, u64::from_le_bytes(answer)),
                expected,
                "{op} of {count} {dtype}"
            );
        }
    }
}

#[test]
fn integers_of_which_one_stands_for_those_left_out() {
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let device: Arc<dyn Device> = Arc::new(Sim::new(options));
    [10, 1000, 50_000].into_iter().for_each(|count| what_stands_for_others(&device, count));
}

/// Numbers of rows that leave payloads: sums to which an initial value is added, and answers of f64.
fn long_rows(device: Arc<dyn Device>, shapes: &[&[usize]]) {
    // Whatever it takes.
    let walk = Some(ForcedWalk::Tables);
    let engine = Engine::with_shape(device, Shape { walk, ..Shape::default() });
    let mut random = Random(354);
    let patterns =
        ["uniform", "forty decades", "a hundredth infinite", "one NaN", "negative zeros"];
    for (i, (dtype, pattern)) in [DType::F32, DType::F64, DType::F16, DType::BF16]
        .into_iter()
        .flat_map(|dtype| patterns.map(|pattern| (dtype, pattern)))
        .enumerate()
    {
        let shape = shapes[i % shapes.len()];
        let sample =
            Sample::new(dtype, Layout::contiguous(shape, dtype.size()), pattern, &mut random);
        let reduced: Vec<bool> = (0..shape.len()).map(|axis| axis + 1 == shape.len()).collect();
        for out in [None, Some(DType::F64)] {
            let case = Case { number: Op::Sum.into(), out, marks: false, initial: true };
            assert!(ask(&engine, &case, &sample, &reduced, &mut random));
        }
        for op in [Op::Sum, Op::Norm1, Op::Mean, Op::Var, Op::Std] {
            let omits_nan = pattern == "one NaN" && op != Op::Sum;
            let number = Number { omits_nan, ..op.into() };
            let case = Case { number, out: Some(DType::F64), marks: false, initial: false };
            assert!(dtype == DType::F64 || ask(&engine, &case, &sample, &reduced, &mut random));
        }
    }
}

#[test]
fn initial_values_and_answers_of_f64_of_long_rows() {
    let options = Options { checks: Checks::ALL, ..Options::default() };
    long_rows(Arc::new(Sim::new(options)), &[&[20_011], &[3, 40_002], &[66_000]]);
}

/// An initial value of totals that are far smaller than their terms, whose elements are brought once more: by the block that
/// has them, by the last of those that share them, and by each of these.
fn begun_and_lost(device: &Arc<dyn Device>, shapes: &[[usize; 2]]) {
    fn of<T: Element>(
        device: &Arc<dyn Device>,
        shapes: &[[usize; 2]],
        binades: i32,
        make: fn(f64) -> T,
    ) {
        let mut random = Random(355);
        for &[rows, len] in shapes {
            let elements = rows * len;
            let layout = Layout::contiguous(&[rows, len], size_of::<T>());
            // Pairs that cancel, and what is left besides, far below.
            let far = |random: &mut Random| {
                let large = random.unit() * 2f64.powi(binades);
                let small = random.unit() * 2f64.powi(-(random.below(64) as i32));
                [large, -large, small].map(make)
            };
            let all: Vec<T> =
                (0..elements.div_ceil(3)).flat_map(|_| far(&mut random)).take(elements).collect();
            let sample = Sample::of(layout, &all);
            for blocks in [None, Some(7)] {
                let shape = Shape { blocks, ..Shape::default() };
                let engine = Engine::with_shape(Arc::clone(device), shape);
                for reduced in [[false, true], [true, false]] {
                    let number = Op::Sum.into();
                    let case = Case { number, out: None, marks: false, initial: true };
                    assert!(ask(&engine, &case, &sample, &reduced, &mut random));
                }
            }
        }
    }
    of(device, shapes, 900, |x| x);
    of(device, &shapes[..2], 120, |x| x as f32);
    of(device, &shapes[..2], 120, bf16::from_f64);
}

#[test]
fn initial_values_of_lost_totals() {
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let device: Arc<dyn Device> = Arc::new(Sim::new(options));
    begun_and_lost(&device, &[[40, 90], [3, 5000], [1, 132_000]]);
}

#[test]
fn chosen_elements() {
    let options = Options { checks: Checks::ALL, ..Options::default() };
    drawn(Arc::new(Sim::new(options)), 351, up_to(2000, 120), 1500);
}

#[test]
fn chosen_elements_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    long_rows(Arc::clone(&device), &[&[1 << 21], &[3, 300_001], &[5000, 4096]]);
    [10, 100_000, 1 << 21].into_iter().for_each(|count| what_stands_for_others(&device, count));
    begun_and_lost(&device, &[[40, 90], [3, 5000], [1, 1 << 20]]);
    drawn(device, 352, up_to(4000, 400), 100_000);
}

/// What compute-sanitizer looks at.
#[test]
fn sanitized_chosen_elements_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    drawn(device, 353, 100, 5000);
}
