//! Reductions over axes of arrays of any layout, on the interpreter with all
//! checks on and on the GPU if there is one, against the element-by-element
//! reference of the same states: equal payloads, byte for byte.

use crate::common::Random;
use crate::common::altered::Altered;
use crate::common::data::PATTERNS;
use crate::common::machine::device_of_this_machine;
use crate::common::views::{Layout, Placed, Sample, reference, shape};
use crate::thorough::{seed, thorough, up_to};
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::layout::View;
use warpfold_core::op::{AnyState, Kind};
use warpfold_cuda::engine::{DeviceView, Engine, Shape};
use warpfold_cuda::{Buffer, Device, Error, Result, Sim, Stream};
use warpfold_ptx::machine::{Checks, Options, Schedule};

fn sim(schedule: Schedule) -> Sim {
    Sim::new(Options { schedule, checks: Checks::ALL, ..Options::default() })
}

/// Whether a kind is over the products of two arrays.
fn takes_pairs(kind: Kind) -> bool {
    kind.takes_pairs()
}

fn kinds(dtype: DType, pairs: bool) -> Vec<Kind> {
    let all = Kind::ALL.into_iter();
    all.filter(|&k| Engine::supports(k, dtype) && takes_pairs(k) == pairs).collect()
}

fn payloads(states: &[Vec<AnyState>]) -> Vec<Vec<Vec<u8>>> {
    states.iter().map(|s| s.iter().map(AnyState::payload).collect()).collect()
}

/// Where the arrays are.
#[derive(Clone, Copy, Debug)]
enum Way {
    Device,
    Host,
}

const WAYS: [Way; 2] = [Way::Device, Way::Host];

/// A reduction, as often asked as there are ways to ask.
struct Question<'a> {
    samples: [Option<&'a Sample>; 2],
    reduced: &'a [bool],
    kinds: &'a [Kind],
    start: u64,
}

impl Question<'_> {
    fn expected(&self) -> Vec<Vec<Vec<u8>>> {
        let columns: Vec<Vec<AnyState>> = self
            .kinds
            .iter()
            .map(|&kind| reference(self.samples, self.reduced, kind, self.start))
            .collect();
        let first = self.samples[0].expect("an array");
        (0..first.layout.elements(self.reduced).len())
            .map(|o| columns.iter().map(|c| c[o].payload()).collect())
            .collect()
    }

    fn on_device(&self, engine: &Engine) -> Result<Vec<Vec<AnyState>>> {
        let device = &**engine.device();
        let placed = self.samples.map(|s| s.map(|s| Placed::new(device, s)));
        let views = [placed[0].as_ref().map(|p| &p.view), placed[1].as_ref().map(|p| &p.view)];
        let Question { reduced, kinds, start, .. } = *self;
        // SAFETY: the arrays were placed here, and nobody writes to them.
        unsafe { engine.states_of_view(views, reduced, kinds, start, Stream::DEFAULT) }
    }

    fn on_host(&self, engine: &Engine) -> Result<Vec<Vec<AnyState>>> {
        let views: [Option<View<'_>>; 2] = self.samples.map(|s| s.map(Sample::view));
        let views = [views[0].as_ref(), views[1].as_ref()];
        let Question { reduced, kinds, start, .. } = *self;
        engine.states_of_host_views(views, reduced, kinds, start, Stream::DEFAULT)
    }

    /// Checks both ways.
    fn check(&self, engine: &Engine, note: &str) {
        self.check_on(engine, &WAYS, note);
    }

    fn check_on(&self, engine: &Engine, ways: &[Way], note: &str) {
        let expected = self.expected();
        let note = || {
            let first = self.samples[0].expect("an array");
            format!("{} {:?} over {:?}, {note}", first.dtype, first.layout, self.reduced)
        };
        for way in ways {
            let states = match way {
                Way::Device => self.on_device(engine),
                Way::Host => self.on_host(engine),
            };
            match states {
                Ok(states) => {
                    let got = payloads(&states);
                    assert_eq!(got.len(), expected.len(), "{way:?}: {}", note());
                    for (o, (got, expected)) in got.iter().zip(&expected).enumerate() {
                        for ((got, expected), kind) in got.iter().zip(expected).zip(self.kinds) {
                            assert!(got == expected, "{way:?}: {kind:?} of output {o}, {}", note());
                        }
                    }
                }
                Err(error) => panic!("{way:?}: {error}, {}", note()),
            }
        }
    }
}

const LENS: [usize; 14] = [0, 1, 2, 3, 5, 7, 16, 17, 31, 32, 33, 64, 129, 257];

/// Random arrays of so many elements at most, each over every set of its axes, or over one in
/// some.
fn sweep(engines: &[Engine], seed: u64, rounds: usize, most: usize, one_in: u32) {
    let mut random = Random(self::seed(seed));
    for round in 0..rounds {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let shape = shape(&mut random, &LENS, 5, most);
        let sample = |random: &mut Random| {
            let layout = Layout::random(&shape, dtype.size(), random);
            let pattern = PATTERNS[random.below(PATTERNS.len() as u64) as usize];
            Sample::new(dtype, layout, pattern, random)
        };
        let (first, second) = (sample(&mut random), sample(&mut random));
        for set in 0..1u32 << shape.len() {
            let reduced: Vec<bool> = (0..shape.len()).map(|i| set >> i & 1 == 1).collect();
            if !(set.count_ones() + round as u32).is_multiple_of(one_in) {
                continue;
            }
            let engine = &engines[random.below(engines.len() as u64) as usize];
            let outputs = shape.iter().zip(&reduced).filter(|(_, r)| !**r);
            // Each launch and each state takes its time.
            let many = outputs.map(|(&n, _)| n).product::<usize>() > 200;
            let pairs = random.below(4) == 0;
            let mut kinds = kinds(dtype, pairs);
            if kinds.is_empty() || many && random.below(4) != 0 {
                continue;
            }
            let keep = 1 + random.below(2) as usize;
            while kinds.len() > keep {
                kinds.remove(random.below(kinds.len() as u64) as usize);
            }
            let start = if random.below(2) == 0 { 0 } else { random.below(10_000) };
            let samples = [Some(&first), pairs.then_some(&second)];
            let question = Question { samples, reduced: &reduced, kinds: &kinds, start };
            let way = WAYS[random.below(2) as usize];
            question.check_on(engine, &[way], &format!("round {round}, kinds {kinds:?}"));
        }
    }
}

const SHAPES: [Option<(u32, u32)>; 4] = [None, Some((32, 1)), Some((64, 3)), Some((32, 2))];

/// Engines of several shapes.
fn engines(device: &Arc<dyn Device>) -> Vec<Engine> {
    let shape = |s: Option<(u32, u32)>| Shape {
        threads: s.map(|s| s.0),
        blocks: s.map(|s| s.1),
        walk: None,
    };
    SHAPES.map(|s| Engine::with_shape(Arc::clone(device), shape(s))).into_iter().collect()
}

#[test]
fn any_axes_of_any_layout() {
    let device: Arc<dyn Device> = Arc::new(sim(Schedule::Lockstep));
    sweep(&engines(&device), 1, up_to(26, 13), up_to(3000, 500), 1);
}

#[test]
fn any_axes_in_random_order() {
    for seed in 0..1 {
        let device: Arc<dyn Device> = Arc::new(sim(Schedule::Random { seed }));
        sweep(&engines(&device), 77 + seed, 13, up_to(3000, 300), up_to(1, 2));
    }
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn on_the_device_of_this_machine() {
    let Some(device) = device_of_this_machine() else { return };
    sweep(&engines(&device), 1, 260, 3000, 1);
    for (shape, size) in [([300, 7001], 4), ([70_001, 3], 8), ([3, 70_001], 8)] {
        for order in [[0, 1], [1, 0]] {
            large(&Engine::new(Arc::clone(&device)), shape, order, size);
        }
    }
}

/// Arrays of a million elements and more rows than a launch has.
fn large(engine: &Engine, shape: [usize; 2], order: [usize; 2], size: usize) {
    let dtype = if size == 4 { DType::F32 } else { DType::F64 };
    let mut layout = Layout::contiguous(&order.map(|i| shape[i]), size);
    layout.shape = shape.to_vec();
    layout.strides = order.map(|i| layout.strides[i]).to_vec();
    let sample = Sample::new(dtype, layout, "signed", &mut Random(3));
    for reduced in [[false, true], [true, false]] {
        let kinds = &kinds(dtype, false);
        let samples = [Some(&sample), None];
        Question { samples, reduced: &reduced, kinds, start: 5 }.check(engine, "large");
    }
}

/// Every axis of arrays that do not fit the workspace or the boxes.
fn in_little_memory(engine: &Engine) {
    let mut random = Random(0x11771e);
    let cases: [(DType, &[usize], Kind); 7] = [
        (DType::F32, &[2, 20_011], Kind::Sum),
        (DType::F64, &[9001], Kind::Sum),
        (DType::I32, &[1500, 11], Kind::Extrema),
        (DType::F16, &[3, 700, 16], Kind::Counts),
        (DType::U8, &[3, 33, 700], Kind::Sum),
        (DType::I64, &[2, 4500, 2], Kind::Bits),
        (DType::BF16, &[40_003], Kind::AbsSum),
    ];
    for (number, (dtype, shape, kind)) in cases.into_iter().enumerate() {
        for set in 1..1u32 << shape.len() {
            // Over every second set of axes, or all.
            if !thorough() && shape.len() > 1 && (number as u32 + set) % 2 == 1 {
                continue;
            }
            let mut layout = Layout::contiguous(shape, 2 * dtype.size());
            layout.bytes -= dtype.size();
            if set.count_ones() % 2 == 0 {
                layout.strides.iter_mut().for_each(|s| *s = -*s);
                layout.offset = layout.bytes - dtype.size();
            }
            let sample = Sample::new(dtype, layout, "signed", &mut random);
            let reduced: Vec<bool> = (0..shape.len()).map(|i| set >> i & 1 == 1).collect();
            let samples = [Some(&sample), None];
            let question = Question { samples, reduced: &reduced, kinds: &[kind], start: 3 };
            question.check(engine, "in little memory");
        }
    }
}

#[test]
fn arrays_larger_than_the_workspace_come_in_pieces() {
    let device = Arc::new(Altered::new(sim(Schedule::Lockstep), |limits| limits.memory = 1));
    in_little_memory(&Engine::new(device));
}

/// Kernels keep 128 bits of products of integers: the others come from the elements, of
/// rows in place, of rows side by side or apart, of copies and of pieces.
#[test]
fn long_products_have_all_their_digits() {
    let plenty: Arc<dyn Device> = Arc::new(sim(Schedule::Lockstep));
    let little = Altered::new(sim(Schedule::Lockstep), |limits| limits.memory = 1);
    let little: Arc<dyn Device> = Arc::new(little);
    let mut random = Random(0xd1617);
    // Of little memory, the bytes of a row are more than there is room for at once.
    let cases =
        [(&plenty, [37, 211], [37, 211], [1, 1]), (&little, [2, 20_011], [2, 5_011], [90, 22])];
    for (number, (device, bytes, words, sparse)) in cases.into_iter().enumerate() {
        let engine = Engine::new(Arc::clone(device));
        for &(before, gap) in &[(3, 1), (0, 0)][..up_to(2, 1)] {
            let mut items = |n: usize, sparse: u64| -> Vec<i32> {
                let factor = |random: &mut Random| match random.below(400 * sparse) {
                    0 => 0,
                    1 => i32::MIN,
                    _ if random.below(sparse) == 0 => [2, -3, 5, -7][random.place(4)],
                    _ => 1,
                };
                (0..n).map(|_| factor(&mut random)).collect()
            };
            let wide = Layout::table(words, 4, before, gap);
            let narrow = Layout::table(bytes, 1, before, gap);
            let bytes: Vec<i8> = items(narrow.bytes, sparse[0]).iter().map(|&x| x as i8).collect();
            let words = items(wide.bytes / 4, sparse[1]);
            for (i, sample) in
                [Sample::of(narrow, &bytes), Sample::of(wide, &words)].into_iter().enumerate()
            {
                let sets = [[false, true], [true, true], [true, false]];
                // Each output of little memory takes long.
                let sets = if thorough() || number == 0 { &sets[..] } else { &sets[i..=i] };
                for reduced in sets {
                    let samples = [Some(&sample), None];
                    let kinds = &[Kind::Sum, Kind::Prod];
                    let question = Question { samples, reduced, kinds, start: 3 };
                    question.check(&engine, "long products");
                    // The case is what it should be: digits beyond 128 bits.
                    let long = question.expected().iter().filter(|o| o[1].len() > 26).count();
                    assert!(long > 0 || reduced[0], "no long product in {:?}", sample.layout);
                }
            }
        }
    }
}

#[test]
fn a_device_short_of_memory_gets_smaller_pieces() {
    let device = Arc::new(Altered::new(sim(Schedule::Lockstep), |_| ()));
    let layout = Layout::contiguous(&[60, 4001], 4);
    let sample = Sample::new(DType::F32, layout, "signed", &mut Random(9));
    let samples = [Some(&sample), None];
    let question = Question { samples, reduced: &[true, false], kinds: &[Kind::Counts], start: 0 };
    let engine = Engine::new(device.clone());
    device.refuse_above(400 << 10);
    let states = question.on_host(&engine).expect("in smaller boxes");
    assert_eq!(payloads(&states), question.expected());
    // The stream's own scratch memory fits, and nothing else does.
    device.refuse_above(60 << 10);
    let error = question.on_host(&engine).expect_err("too little memory");
    assert!(error.is_out_of_memory(), "{error}");
}

#[test]
fn whatever_call_fails_nothing_leaks_and_the_engine_goes_on() {
    let device = Arc::new(Altered::new(sim(Schedule::Lockstep), |_| ()));
    let layout = Layout::contiguous(&[40, 17, 3], 8);
    let sample = Sample::new(DType::F64, layout, "signed", &mut Random(10));
    let samples = [Some(&sample), None];
    let kinds = &[Kind::Sum, Kind::Extrema];
    let question = Question { samples, reduced: &[false, true, false], kinds, start: 0 };
    let expected = question.expected();
    let mut failures = 0;
    loop {
        let engine = Engine::new(device.clone());
        device.fail_after(Some(failures));
        let first = question.on_host(&engine);
        device.fail_after(None);
        let again = question.on_host(&engine).expect("it goes on");
        assert_eq!(payloads(&again), expected, "after {failures} calls");
        drop(engine);
        assert_eq!(device.held(), 0, "leaked after {failures} calls");
        match first {
            Ok(states) => {
                assert_eq!(payloads(&states), expected);
                break;
            }
            Err(error) => assert!(error.to_string().contains("told to fail"), "{error}"),
        }
        failures += 1;
    }
    assert!(failures > 8, "only {failures} calls");
}

#[test]
fn rows_go_to_few_launches() {
    let device = Arc::new(Altered::new(sim(Schedule::Lockstep), |_| ()));
    let engine = Engine::new(device.clone());
    let launches = |shape: &[usize], reduced: &[bool], order: &[usize]| {
        let size = 4;
        let mut layout =
            Layout::contiguous(&order.iter().map(|&i| shape[i]).collect::<Vec<_>>(), size);
        let strides = layout.strides.clone();
        for (place, &i) in order.iter().enumerate() {
            layout.strides[i] = strides[place];
            layout.shape[i] = shape[i];
        }
        let sample = Sample::new(DType::F32, layout, "uniform", &mut Random(4));
        let samples = [Some(&sample), None];
        let before = device.launches();
        let question = Question { samples, reduced, kinds: &[Kind::Extrema], start: 0 };
        assert_eq!(payloads(&question.on_device(&engine).unwrap()), question.expected());
        device.launches() - before
    };
    // In place: the whole array, its rows, and rows of a permuted array.
    assert_eq!(launches(&[6, 50], &[true, true], &[0, 1]), 1);
    assert_eq!(launches(&[6, 50], &[false, true], &[0, 1]), 1);
    assert_eq!(launches(&[5, 40, 7], &[false, true, false], &[2, 0, 1]), 1);
    // Columns are copied first.
    assert_eq!(launches(&[6, 50], &[true, false], &[0, 1]), 2);
    assert_eq!(launches(&[4, 5, 6], &[true, false, true], &[0, 1, 2]), 2);
}

#[test]
fn what_cannot_be_reduced_is_an_error() {
    let device: Arc<dyn Device> = Arc::new(sim(Schedule::Lockstep));
    let engine = Engine::new(Arc::clone(&device));
    let buffer = Buffer::new(&device, 64).unwrap();
    buffer.copy_in(Stream::DEFAULT, 0, &[0; 64]).unwrap();
    let view = |shape: &[usize], dtype| DeviceView::contiguous(buffer.address(), dtype, shape);
    let ask = |views: [Option<&DeviceView>; 2], kind| {
        // SAFETY: the views are of the memory above.
        unsafe { engine.states_of_view(views, &[true], &[kind], 0, Stream::DEFAULT) }
    };
    let (a, b) = (view(&[8], DType::F64), view(&[4], DType::F64));
    let shapes = ask([Some(&a), Some(&b)], Kind::Sum).unwrap_err();
    assert!(shapes.to_string().contains("shapes [8] and [4] differ"), "{shapes}");
    let c = view(&[8], DType::F32);
    let types = ask([Some(&a), Some(&c)], Kind::Sum).unwrap_err();
    assert!(types.to_string().contains("f64 and f32 differ"), "{types}");
    let (kind, dtype) = (Kind::Bits, DType::F64);
    assert_eq!(ask([Some(&a), None], kind).unwrap_err(), Error::NoKernel { kind, dtype });
    let empty = view(&[0], dtype);
    assert_eq!(ask([Some(&empty), None], kind).unwrap_err(), Error::NoKernel { kind, dtype });
    let ragged = DeviceView { strides: vec![8, 8], ..a.clone() };
    let ragged = ask([Some(&ragged), None], Kind::Sum).unwrap_err();
    assert!(matches!(ragged, Error::View { .. }), "{ragged}");
    // SAFETY: as above.
    let none = unsafe { engine.states_of_view([None; 2], &[], &[], 0, Stream::DEFAULT) };
    assert!(none.is_ok_and(|states| states.is_empty()));
    // SAFETY: as above.
    let no_kinds =
        unsafe { engine.states_of_view([Some(&a), None], &[false], &[], 0, Stream::DEFAULT) };
    assert!(no_kinds.is_ok_and(|states| states.len() == 8 && states.concat().is_empty()));
}
