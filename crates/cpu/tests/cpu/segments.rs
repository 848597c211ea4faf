//! The answers for segments, on every instruction set, against the states of each segment
//! alone: the same bits, and the same errors.

use crate::answers::{PATTERNS, make};
use crate::thorough::{seed, up_to};
use fastrand::Rng;
use warpfold_core::layout::View;
use warpfold_core::op::{Kind, Numbers, Op, Rules, Value};
use warpfold_core::{DType, Error, NanPolicy, Scalar};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Bounds, Indices, Job, SegmentJob, Threads};

/// Where the elements of an array lie.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Contiguous,
    EveryThird,
    Backwards,
    Unaligned,
}

struct Array {
    dtype: DType,
    bytes: Vec<u8>,
    len: usize,
    layout: Layout,
}

impl Array {
    fn new(dtype: DType, pattern: &str, len: usize, layout: Layout, random: &mut Rng) -> Array {
        let size = dtype.size();
        let count = if matches!(layout, Layout::EveryThird) { 3 * len } else { len };
        let mut numbers = Numbers::zeros(dtype, count);
        for i in 0..count {
            Numbers::set_bits(numbers.bytes_mut(), dtype, i, make(dtype, pattern, i, random));
        }
        // Room to begin at an address of either kind.
        let mut bytes = vec![0; 8 + count * size];
        let aligned = bytes.as_ptr().align_offset(8);
        let at = aligned + usize::from(matches!(layout, Layout::Unaligned));
        bytes.resize(at + count * size, 0);
        bytes[at..].copy_from_slice(numbers.bytes());
        Array { dtype, bytes, len, layout }
    }

    /// Elements from `start` on, `len` of them.
    fn part(&self, start: usize, len: usize) -> View<'_> {
        let size = self.dtype.size();
        let count = if matches!(self.layout, Layout::EveryThird) { 3 * self.len } else { self.len };
        let first = self.bytes.len() - count * size;
        let step = match self.layout {
            Layout::Backwards => -(size as isize),
            Layout::EveryThird => 3 * size as isize,
            _ => size as isize,
        };
        let origin = if step < 0 { first + count.saturating_sub(1) * size } else { first };
        let offset = origin as isize + start as isize * step;
        let offset = if len == 0 { first } else { offset as usize };
        View::strided(self.dtype, &self.bytes, offset, &[len], &[step]).unwrap()
    }
}

/// What the states of a segment say.
fn alone(array: &Array, [start, len]: [usize; 2], op: Op, rules: &Rules) -> Result<Value, Error> {
    let view = array.part(start, len);
    let views = [Some(&view), (op.arity() == 2).then_some(&view)];
    let kinds = [op.kind()];
    let (isa, threads) = (Isa::BASELINE, Threads::Exactly(1));
    let job = Job {
        views,
        reduced: &[true],
        kinds: &kinds,
        start: 0,
        initial: None,
        marks: None,
        isa,
        threads,
    };
    job.states()?[0][0].finish(op, rules)
}

fn check(array: &Array, spans: &[[usize; 2]], ops: &[Op], rules: &Rules, isa: Isa, threads: usize) {
    let view = array.part(0, array.len);
    let pair = ops[0].arity() == 2;
    let kinds: Vec<Kind> = ops.iter().map(|op| op.kind()).collect();
    let asked: Vec<(Op, usize)> = ops.iter().copied().zip(0..).collect();
    let starts: Vec<u32> = spans.iter().map(|s| s[0] as u32).collect();
    let stops: Vec<i64> = spans.iter().map(|s| (s[0] + s[1]) as i64).collect();
    let bounds = Bounds::StartsStops(Indices::U32(&starts), Indices::I64(&stops));
    let threads = Threads::Exactly(threads);
    let views = [Some(&view), pair.then_some(&view)];
    let job = SegmentJob { views, bounds, valid: None, initial: None, kinds: &kinds, isa, threads };
    let got = job.answers(&asked, rules);
    let note = format!("{ops:?} of {} {:?} on {isa:?}, {rules:?}", array.dtype, array.layout);
    let mut first: Option<(usize, usize, Error)> = None;
    for (o, &op) in ops.iter().enumerate() {
        for (i, &span) in spans.iter().enumerate() {
            match (alone(array, span, op, rules), &got) {
                (Ok(value), Ok((_, got))) => {
                    let found = got[o].numbers.get(i);
                    assert_eq!(found, Some(value.first()), "{note}: {op} of segment {i}, {span:?}");
                    let found = got[o].second.as_ref().and_then(|second| second.get(i));
                    assert_eq!(found, value.second(), "{note}: {op} of segment {i}, {span:?}");
                }
                (Err(error), _) => {
                    if first.as_ref().is_none_or(|f| (i, o) < (f.0, f.1)) {
                        first = Some((i, o, error));
                    }
                }
                (Ok(_), Err(_)) => {}
            }
        }
    }
    match (first, got) {
        (None, Ok((count, _))) => assert_eq!(count, spans.len(), "{note}"),
        (None, Err(error)) => panic!("{note}: {error}"),
        (Some((segment, _, cause)), got) => {
            let named = Error::InSegment { segment, source: Box::new(cause.clone()) };
            let error = got.unwrap_err();
            // What no segment can be answered in has no place.
            assert!(error == named || error == cause, "{note}: {error}, not {named}");
        }
    }
}

/// Segments of these lengths one after the other, and some that overlap.
fn spans(lens: &[usize], random: &mut Rng) -> (Vec<[usize; 2]>, usize) {
    let mut at = 0;
    let mut spans = Vec::new();
    for &len in lens {
        spans.push([at, len]);
        at += len;
    }
    for _ in 0..5 {
        let start = random.usize(0..at.max(1));
        spans.push([start, random.usize(0..(at - start).min(700) + 1)]);
    }
    (spans, at)
}

const RULES: [Rules; 5] = [
    Rules::new(),
    Rules::new().nan(NanPolicy::Omit),
    Rules::new().nan(NanPolicy::Error),
    Rules::new().ddof(1),
    Rules::new().wrap(true),
];

fn ops(dtype: DType) -> Vec<Op> {
    Op::ALL.into_iter().filter(|op| op.supports(dtype)).collect()
}

/// Segments of fewer elements than a vector, read with what comes after them: Miri tells whether
/// that may be read from where it is read.
#[test]
fn segments_shorter_than_a_vector_have_the_bits_of_the_segment_alone() {
    let mut random = Rng::with_seed(7);
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for lens in [vec![7; 9], (0..9).map(|_| random.usize(1..20)).collect()] {
            let (mut spans, len) = spans(&lens, &mut random);
            spans.retain(|s| s[1] > 0);
            let array = Array::new(dtype, "uniform", len, Layout::Contiguous, &mut random);
            for op in [Op::Sum, Op::Mean, Op::Norm2, Op::Var, Op::Dot, Op::ArgMax] {
                check(&array, &spans, &[op], &Rules::new(), Isa::best(), 1);
            }
        }
    }
}

#[test]
fn every_operation_type_and_length_has_the_bits_of_the_segment_alone() {
    let mut random = Rng::with_seed(seed(16));
    let around = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 0, 511];
    for dtype in DType::ALL {
        for (p, pattern) in PATTERNS.into_iter().enumerate() {
            let lens: Vec<usize> = around.into_iter().chain([512, 513, 1, 0]).collect();
            let (spans, len) = spans(&lens, &mut random);
            let array = Array::new(dtype, pattern, len, Layout::Contiguous, &mut random);
            let some: Vec<[usize; 2]> = spans.iter().copied().filter(|s| s[1] > 0).collect();
            for (o, op) in ops(dtype).into_iter().enumerate() {
                let isas: Vec<Isa> = Isa::available().collect();
                let isa = isas[(o + p) % isas.len()];
                let rules = RULES[(o + p) % RULES.len()];
                check(&array, &some, &[op], &Rules::new(), isa, 1);
                check(&array, &some, &[op], &rules, isa, 2);
                check(&array, &spans, &[op], &rules, isa, 1);
            }
        }
    }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let mut random = Rng::with_seed(seed(17));
    for dtype in [DType::F64, DType::F32, DType::F16, DType::I8, DType::U16, DType::I32, DType::U64]
    {
        for pattern in ["uniform", "ties", "specials", "wide", "cancelling"] {
            let lens: Vec<usize> = (0..300).map(|_| random.usize(1..40)).collect();
            let (mut spans, len) = spans(&lens, &mut random);
            spans.retain(|s| s[1] > 0);
            let array = Array::new(dtype, pattern, len, Layout::Contiguous, &mut random);
            for isa in Isa::available() {
                for op in [Op::Sum, Op::Mean, Op::Var, Op::Min, Op::ArgMax, Op::CountNonzero] {
                    check(&array, &spans, &[op], &Rules::new(), isa, 1);
                }
            }
        }
    }
}

#[test]
fn sums_of_segments_between_few_and_many_elements_know_when_they_are_rounded() {
    let mut random = Rng::with_seed(seed(0x4a6e));
    for pattern in PATTERNS {
        let lens: Vec<usize> = (0..90).map(|_| random.usize(65..257)).chain([0, 1, 15]).collect();
        let (spans, len) = spans(&lens, &mut random);
        let array = Array::new(DType::F32, pattern, len, Layout::Contiguous, &mut random);
        for isa in Isa::available() {
            for op in [Op::Sum, Op::Mean, Op::Norm1] {
                check(&array, &spans, &[op], &RULES[0], isa, random.usize(1..4));
            }
        }
    }
}

#[test]
fn any_layout_and_long_segments_have_the_bits_of_the_segment_alone() {
    let mut random = Rng::with_seed(seed(18));
    let lens = [4095, 0, 4096, 1, 4097, 9000, 1, 1, 20_000];
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::I64, DType::U8, DType::Bool] {
        let layouts =
            [Layout::Contiguous, Layout::EveryThird, Layout::Backwards, Layout::Unaligned];
        for (turn, layout) in layouts.into_iter().enumerate() {
            let patterns = ["uniform", "specials", "bits"];
            // Every pattern, or two of each layout in their turns.
            for pattern in patterns.into_iter().cycle().skip(turn).take(up_to(3, 2)) {
                let (mut spans, len) = spans(&lens, &mut random);
                spans.retain(|s| s[1] > 0);
                let array = Array::new(dtype, pattern, len, layout, &mut random);
                for op in ops(dtype) {
                    check(&array, &spans, &[op], &Rules::new(), Isa::best(), 1);
                }
                let several = [Op::Sum, Op::Prod, Op::ArgMinMax, Op::MinMax, Op::Std, Op::Any];
                check(&array, &spans, &several, &Rules::new().wrap(true), Isa::best(), 2);
            }
        }
    }
}

#[test]
fn products_of_two_arrays_may_lie_in_two_ways() {
    let mut random = Rng::with_seed(seed(21));
    let layouts = [Layout::Contiguous, Layout::EveryThird, Layout::Backwards, Layout::Unaligned];
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::I16] {
        for (i, pattern) in PATTERNS.into_iter().enumerate() {
            let lens: Vec<usize> = (0..120).map(|_| random.usize(0..70)).collect();
            let (spans, len) = spans(&lens, &mut random);
            let one = Array::new(dtype, pattern, len, layouts[i % 4], &mut random);
            let two = Array::new(dtype, pattern, len, layouts[i / 4 % 4], &mut random);
            let starts: Vec<u32> = spans.iter().map(|s| s[0] as u32).collect();
            let stops: Vec<u32> = spans.iter().map(|s| (s[0] + s[1]) as u32).collect();
            let (first, second) = (one.part(0, len), two.part(0, len));
            for isa in Isa::available() {
                let job = SegmentJob {
                    views: [Some(&first), Some(&second)],
                    bounds: Bounds::StartsStops(Indices::U32(&starts), Indices::U32(&stops)),
                    valid: None,
                    initial: None,
                    kinds: &[Kind::Dot],
                    isa,
                    threads: Threads::Exactly(1),
                };
                let rules = Rules::new().wrap(true);
                let (_, got) = job.answers(&[(Op::Dot, 0)], &rules).unwrap();
                for (i, &[start, len]) in spans.iter().enumerate() {
                    let (first, second) = (one.part(start, len), two.part(start, len));
                    let alone = Job {
                        views: [Some(&first), Some(&second)],
                        reduced: &[true],
                        kinds: &[Kind::Dot],
                        start: 0,
                        initial: None,
                        marks: None,
                        isa: Isa::BASELINE,
                        threads: Threads::Exactly(1),
                    };
                    let want = alone.states().unwrap()[0][0].finish(Op::Dot, &rules).unwrap();
                    let note = format!("{dtype} {pattern} {isa}: segment {i} of {len}");
                    assert_eq!(got[0].numbers.get(i), Some(want.first()), "{note}");
                }
            }
        }
    }
}

#[test]
fn a_huge_segment_among_small_ones_is_shared() {
    let mut random = Rng::with_seed(seed(19));
    let huge = (1 << 18) + 77;
    for dtype in [DType::F64, DType::I32] {
        for place in [0, 500, 1000] {
            let lens: Vec<usize> = (0..1001).map(|i| if i == place { huge } else { 1 }).collect();
            let (spans, len) = spans(&lens, &mut random);
            let spans = &spans[..lens.len()];
            for layout in [Layout::Contiguous, Layout::Backwards] {
                let array = Array::new(dtype, "wide", len, layout, &mut random);
                for threads in [1, 4] {
                    for ops in [&[Op::Sum][..], &[Op::Prod, Op::ArgMin], &[Op::MinMax], &[Op::Dot]]
                    {
                        let rules = Rules::new().wrap(true).nan(NanPolicy::Propagate);
                        check(&array, spans, ops, &rules, Isa::best(), threads);
                    }
                }
            }
        }
    }
}

#[test]
fn the_first_segment_without_an_answer_is_named_whoever_finds_it() {
    let len = (1 << 18) * 2 + 9000;
    let mut items = vec![1.0f64; len];
    let nan = [len - 3, 4500, (1 << 18) + 4000];
    let mut spans: Vec<[usize; 2]> = (0..3000).map(|i| [i, 1]).collect();
    spans.push([3000, 1 << 18]);
    spans.extend((0..3000).map(|i| [3000 + (1 << 18) + i, 1]));
    spans.push([6000 + (1 << 18), len - 6000 - (1 << 18)]);
    for at in nan {
        items[at] = f64::NAN;
        let starts: Vec<u64> = spans.iter().map(|s| s[0] as u64).collect();
        let stops: Vec<u64> = spans.iter().map(|s| (s[0] + s[1]) as u64).collect();
        let view = View::of(&items);
        let kinds = [Kind::Sum, Kind::ArgExtrema];
        for threads in [1, 3] {
            let job = SegmentJob {
                views: [Some(&view), None],
                bounds: Bounds::StartsStops(Indices::U64(&starts), Indices::U64(&stops)),
                valid: None,
                initial: None,
                kinds: &kinds,
                isa: Isa::best(),
                threads: Threads::Exactly(threads),
            };
            let rules = Rules::new().nan(NanPolicy::Error);
            let ops = [(Op::Sum, 0), (Op::ArgMax, 1)];
            let error = job.answers(&ops, &rules).unwrap_err();
            let first = items.iter().position(|x| x.is_nan()).unwrap();
            let named = spans.iter().position(|s| s[0] <= first && first < s[0] + s[1]).unwrap();
            assert!(
                matches!(error, Error::InSegment { segment, .. } if segment == named),
                "{error}"
            );
        }
    }
}

#[test]
fn an_initial_value_stands_behind_the_last_element() {
    let mut random = Rng::with_seed(seed(20));
    for dtype in [DType::F64, DType::F32, DType::I16, DType::U64] {
        let items: Vec<u64> = (0..600).map(|i| make(dtype, "integers", i, &mut random)).collect();
        let initial = Scalar::from_bits(dtype, make(dtype, "integers", 0, &mut random));
        let lens = [0usize, 1, 63, 64, 65, 0, 400, 0];
        let kinds = [Kind::Sum, Kind::Prod, Kind::Extrema];
        let ops = [(Op::Sum, 0), (Op::Prod, 1), (Op::Min, 2), (Op::MinMax, 2)];
        let rules = Rules::new().wrap(true);
        let mut numbers = Numbers::zeros(dtype, items.len());
        for (i, &bits) in items.iter().enumerate() {
            Numbers::set_bits(numbers.bytes_mut(), dtype, i, bits);
        }
        let total: usize = lens.iter().sum();
        let part = |n: &Numbers, from: usize, len: usize| {
            let size = dtype.size();
            n.bytes()[from * size..(from + len) * size].to_vec()
        };
        let bytes = part(&numbers, 0, total);
        let view = View::from_bytes(dtype, &bytes, &[total]).unwrap();
        let each: Vec<i32> = lens.iter().map(|&len| len as i32).collect();
        let job = SegmentJob {
            views: [Some(&view), None],
            bounds: Bounds::Lengths(Indices::I32(&each)),
            valid: None,
            initial: Some(initial),
            kinds: &kinds,
            isa: Isa::best(),
            threads: Threads::Exactly(1),
        };
        let (_, got) = job.answers(&ops, &rules).unwrap();
        let mut at = 0;
        for (i, len) in lens.into_iter().enumerate() {
            let mut segment = part(&numbers, at, len);
            let mut one = Numbers::zeros(dtype, 1);
            Numbers::set_bits(one.bytes_mut(), dtype, 0, initial.to_bits());
            segment.extend_from_slice(one.bytes());
            at += len;
            let view = View::from_bytes(dtype, &segment, &[len + 1]).unwrap();
            let views = [Some(&view), None];
            let (isa, threads) = (Isa::best(), Threads::Exactly(1));
            let job = Job {
                views,
                reduced: &[true],
                kinds: &kinds,
                start: 0,
                initial: None,
                marks: None,
                isa,
                threads,
            };
            let states = job.states().unwrap();
            for ((op, place), got) in ops.into_iter().zip(&got) {
                let expected = states[0][place].finish(op, &rules).unwrap();
                assert_eq!(got.numbers.get(i), Some(expected.first()), "{op} of {dtype} {i}");
            }
        }
    }
}
