//! Elements that marks choose, with one more, and answers of another type: what the device finishes against what core makes
//! of the states of the same elements, equal bits.

use crate::common::Random;
use crate::common::data::{DRAWN, make};
use crate::common::machine::device_of_this_machine;
use crate::common::views::{Layout, Placed, Sample, absorbed};
use crate::thorough::{self, up_to};
use std::sync::Arc;
use warpfold_core::element::Bool8;
use warpfold_core::op::{NanPolicy, Op, Rules, Value};
use warpfold_core::{DType, Element, Scalar, with_element};
use warpfold_cuda::engine::{Chosen, Engine, Number};
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
        let counts = matches!(op, Op::Mean | Op::Var | Op::Std) && marks;
        let long = !sample.dtype.is_float() && sample.dtype.size() == 8;
        let told =
            out.is_some_and(|out| out != op.answer_type(sample.dtype) && !sample.dtype.is_float());
        let size = sample.dtype.size();
        let steps = sample.layout.strides.iter().map(|step| step.unsigned_abs());
        let misaligned = steps.chain([sample.layout.offset]).any(|step| step % size != 0);
        let unknown = expected.contains(&None)
            || misaligned
            || counts && long
            || told
            || out.is_some() && (initial || op == Op::Prod || sample.dtype == DType::F64)
            || out.is_some() && op.answer_type(sample.dtype) != sample.dtype
            || initial && omits_nan
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
    let engine = Engine::new(device);
    let mut random = Random(thorough::seed(seed));
    let mut made = [0; 4];
    for round in 0..rounds {
        let dtype = match round % 3 {
            0 => DType::ALL[round / 3 % DType::ALL.len()],
            _ => [DType::F32, DType::F64, DType::F16, DType::BF16][random.below(4) as usize],
        };
        // A NaN among the marked elements of a mean needs a copy of its own.
        let is_mean = dtype.is_float() && random.below(8) == 0;
        let pattern = match random.below(2) {
            _ if is_mean => DRAWN[random.below(3) as usize],
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
                omits_nan: dtype.is_float() && !is_mean && random.below(4) == 0,
                ddof: if matches!(op, Op::Var | Op::Std) { random.below(3) as u32 } else { 0 },
            },
            marks: is_mean || what & 1 == 1,
            initial: what & 2 == 2 && takes,
            out: (what & 4 == 4 && dtype.is_float()).then_some(DType::F64),
        };
        if ask(&engine, &case, &sample, &reduced, &mut random) {
            made[0] += 1;
            made[1] += usize::from(case.marks);
            made[2] += usize::from(case.initial);
            made[3] += usize::from(case.out.is_some() && dtype.size() < 8);
        }
    }
    assert!(made.into_iter().all(|n| n * 20 > rounds), "{made:?} of {rounds}");
}

#[test]
fn chosen_elements() {
    let options = Options { checks: Checks::ALL, ..Options::default() };
    drawn(Arc::new(Sim::new(options)), 351, up_to(2000, 240), 1500);
}

#[test]
fn chosen_elements_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    drawn(device, 352, up_to(4000, 400), 100_000);
}

/// What compute-sanitizer looks at.
#[test]
fn sanitized_chosen_elements_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    drawn(device, 353, 100, 5000);
}
