//! Routes of questions drawn at random, and what is launched for them.

use super::plan::ForcedWalk;
use super::question::Question;
use super::recorder::{Recorded, Recorder};
use super::route::Machine;
use super::{Array, DeviceView, Engine, Explanation, Shape};
use crate::device::{Limits, Stream};
use core::ops::Range;
use std::collections::BTreeSet;
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::{Kind, Op};

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }
    /// About as often between 2^k and 2^(k + 1) for each k.
    fn size(&mut self, most: u32) -> usize {
        let bits = self.below(most as usize + 1) as u32;
        (1usize << bits) + self.below(1 << bits)
    }
}

struct Drawn {
    op: Op,
    view: DeviceView,
    reduced: Vec<bool>,
    shape: Shape,
}

fn drawn(seed: u64) -> Drawn {
    let r = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        r.next();
    }
    let op = Op::ALL[r.below(Op::ALL.len())];
    let dtype = DType::ALL[r.below(DType::ALL.len())];
    let rank = [1, 2, 2, 2, 3, 3, 4, 5, 6, 9][r.below(10)];
    let most = [4u32, 8, 14, 20, 26, 33][r.below(6)];
    let shape: Vec<usize> = match r.below(3) {
        0 => (0..rank).map(|_| r.size((most / rank as u32).max(1))).collect(),
        // One or two long axes.
        _ => {
            let long = r.below(rank);
            let lens = (0..rank).map(|i| if i == long { r.size(most) } else { r.size(3) });
            lens.collect()
        }
    };
    let size = dtype.size() as isize;
    let mut order: Vec<usize> = (0..rank).collect();
    if r.below(3) == 0 {
        (0..rank).for_each(|i| order.swap(i, r.below(rank)));
    }
    let (mut strides, mut stride) = (vec![0isize; rank], size);
    let gaps = r.below(4) == 0;
    for &axis in order.iter().rev() {
        strides[axis] = stride;
        let gap = if gaps && r.below(3) == 0 { 1 + r.below(5) as isize } else { 0 };
        stride = stride * shape[axis] as isize + gap * size;
        if r.below(24) == 0 {
            stride += 1;
        }
    }
    let mut address = 1u64 << 50;
    for axis in 0..rank {
        match r.below(24) {
            0 => strides[axis] = 0,
            1 => {
                address += (strides[axis] * (shape[axis] as isize - 1)) as u64;
                strides[axis] = -strides[axis];
            }
            _ => {}
        }
    }
    address += [0, 0, 0, size as u64, 1][r.below(5)];
    let reduced = (0..rank).map(|_| r.below(2) == 0).collect();
    let forced = [ForcedWalk::Views, ForcedWalk::Tables, ForcedWalk::Abreast].map(Some);
    let walk = [None, None, None, forced[0], forced[1], forced[2]][r.below(6)];
    let blocks = [None, None, None, None, Some(3)][r.below(5)];
    let shape_of_launch = Shape { walk, blocks, ..Shape::default() };
    let view = DeviceView { address, dtype, shape, strides };
    Drawn { op, view, reduced, shape: shape_of_launch }
}

/// What is launched for a question must be what its route said before.
fn check(limits: &Limits, seeds: Range<u64>, walks: &mut BTreeSet<&'static str>) {
    // Modules are loaded once for each shape of launches.
    let mut engines: Vec<(Shape, Arc<Recorder>, Engine)> = Vec::new();
    for seed in seeds {
        let Drawn { op, view, reduced, shape } = drawn(seed);
        let place = engines.iter().position(|(of, ..)| *of == shape).unwrap_or_else(|| {
            let device = Arc::new(Recorder::new(limits.clone()));
            engines.push((shape, Arc::clone(&device), Engine::with_shape(device, shape)));
            engines.len() - 1
        });
        let (_, device, engine) = &engines[place];
        let explained = engine.explain(op, &view, &reduced);
        assert_eq!(device.take(), [], "{seed}: explaining launches nothing");
        // SAFETY: the device reads and writes nothing.
        let made = unsafe { engine.numbers_into(op, &view, &reduced, 1 << 58, Stream::DEFAULT) };
        let expected = explained.clone().map(|e| e.is_some());
        assert_eq!(made, expected, "{seed}: {op} of {view:?} over {reduced:?}");
        let launches = device.take();
        let Ok(Some(Explanation { walk, kernel, launches: count, launch, .. })) = explained else {
            assert_eq!(launches, [], "{seed}: no route launches nothing");
            continue;
        };
        walks.insert(walk);
        if count == 0 {
            assert_eq!(launches, [], "{seed}: what is the same for all is no launch");
            continue;
        }
        let its: Vec<_> = launches.iter().filter(|l| l.kernel == kernel).collect();
        let note = || format!("{seed}: {op} of {view:?} over {reduced:?}: {walk}, {kernel}");
        assert_eq!(its.first().map(|l| l.launch), Some(launch), "{}", note());
        // Payloads of several launches share a batch, whose end may cut one in two.
        let batches = matches!(walk, "rows" | "copied rows");
        assert!(its.len() == count || batches && its.len() > 1, "{}: {count}", note());
        // Beside it there are copies and what makes numbers of payloads or of ends.
        let others = launches.iter().filter(|l| l.kernel != kernel);
        for Recorded { kernel, .. } in others {
            let finishes = batches && kernel.starts_with("finish_");
            let differs = op == Op::Range && kernel.starts_with("pair_");
            let known = finishes || differs || kernel.starts_with("gather_");
            assert!(known, "{}: {kernel}", note());
        }
    }
}

#[test]
fn launches_are_those_of_the_route() {
    let mut walks = BTreeSet::new();
    check(&Recorder::h200(), 0..1200, &mut walks);
    check(&Recorder::small(), 1200..2000, &mut walks);
    // All of them, so that none is a route on paper only.
    let all = [
        "columns",
        "copied rows",
        "copied rows as a view",
        "no element",
        "outputs abreast",
        "rows",
        "short rows",
        "view",
    ];
    assert_eq!(walks.into_iter().collect::<Vec<_>>(), all);
}

/// The walk over the axes of an array in C order, of which `reduced` marks some, on an
/// H200: no device is asked.
fn walk(op: Op, dtype: DType, axes: &[(usize, bool)]) -> Option<&'static str> {
    let (lens, reduced): (Vec<usize>, Vec<bool>) = axes.iter().copied().unzip();
    let view = DeviceView::contiguous(1 << 50, dtype, &lens);
    let question = Question::of(op, &view, &reduced, None).unwrap()?;
    let limits = Recorder::h200();
    let device = Machine { limits: &limits, shape: Shape::default() };
    let question = question.ends.as_ref().map_or(&question, |ends| &ends[1]);
    question.route(device).map(|route| route.walk.name())
}

#[test]
fn shapes_have_the_walks_that_serve_them_best() {
    let (kept, gone) = (false, true);
    let f32s = |op, axes: &[(usize, bool)]| walk(op, DType::F32, axes);
    assert_eq!(f32s(Op::Sum, &[(1 << 20, kept), (64, gone)]), Some("short rows"));
    assert_eq!(f32s(Op::Sum, &[(32, kept), (1024, gone)]), Some("view"));
    assert_eq!(f32s(Op::Sum, &[(64, kept), (1 << 22, gone)]), Some("rows"));
    assert_eq!(f32s(Op::Max, &[(1 << 20, gone), (256, kept)]), Some("columns"));
    assert_eq!(f32s(Op::Sum, &[(1 << 20, gone), (256, kept)]), Some("view"));
    assert_eq!(f32s(Op::Max, &[(64, gone), (256, kept), (3136, gone)]), Some("view"));
    assert_eq!(f32s(Op::Prod, &[(1 << 20, kept), (64, gone)]), Some("view"));
    assert_eq!(f32s(Op::Prod, &[(64, gone), (1 << 20, kept)]), Some("view"));
    assert_eq!(f32s(Op::Range, &[(64, gone), (1 << 20, kept)]), Some("columns"));
    // Both ends are one launch.
    assert_eq!(f32s(Op::Range, &[(64, gone), (1 << 16, kept)]), Some("view"));
    assert_eq!(f32s(Op::Range, &[(1 << 16, kept), (100, gone)]), Some("view"));
    assert_eq!(f32s(Op::Range, &[(1 << 16, kept), (20, gone)]), Some("short rows"));
    assert_eq!(f32s(Op::Range, &[(64, kept), (1 << 22, gone)]), Some("rows"));
    assert_eq!(f32s(Op::Sum, &[(3, gone), (1 << 20, kept)]), Some("outputs abreast"));
    assert_eq!(f32s(Op::Var, &[(1 << 20, kept), (3, gone), (2, kept)]), Some("outputs abreast"));
    assert_eq!(f32s(Op::Max, &[(1 << 20, kept), (3, gone), (2, kept)]), Some("columns"));
    assert_eq!(f32s(Op::Sum, &[(1 << 20, kept), (7, gone)]), Some("outputs abreast"));
    assert_eq!(f32s(Op::Sum, &[(1 << 20, kept), (8, gone)]), Some("short rows"));
    // States answer these: pairs, exact products.
    assert_eq!(f32s(Op::MinMax, &[(64, kept), (64, gone)]), None);
    assert_eq!(walk(Op::Prod, DType::I32, &[(64, kept), (64, gone)]), None);
    assert_eq!(f32s(Op::Sum, &[(0, kept), (64, gone)]), None);
}

#[test]
fn views_that_cannot_be_are_refused_before_they_are_planned() {
    let engine = Engine::new(Arc::new(Recorder::new(Recorder::h200())));
    let view = DeviceView::contiguous(1 << 50, DType::F32, &[8, 8]);
    let explain = |view: &DeviceView, reduced: &[bool]| {
        engine.explain(Op::Sum, view, reduced).map(|explanation| explanation.is_some())
    };
    assert_eq!(explain(&view, &[true, false]), Ok(true));
    let short = DeviceView { strides: vec![4], ..view.clone() };
    assert!(explain(&short, &[true, false]).is_err());
    let far = DeviceView { shape: vec![1 << 40, 1 << 40], ..view.clone() };
    assert!(explain(&far, &[true, false]).is_err());
}

#[test]
fn what_was_done_is_remembered_only_if_somebody_asks() {
    let engine = Engine::new(Arc::new(Recorder::new(Recorder::h200())));
    let array = Array { address: 1 << 50, len: 1 << 20, dtype: DType::F32 };
    // SAFETY: the device reads and writes nothing.
    let reduce = || unsafe { engine.reduce_into(Kind::Sum, array, 1 << 58, Stream::DEFAULT) };
    reduce().unwrap();
    assert_eq!(engine.take_explanations(), []);
    engine.remember_explanations();
    reduce().unwrap();
    reduce().unwrap();
    let [one] = &engine.take_explanations()[..] else { panic!("one kernel") };
    assert_eq!((one.walk, &one.kernel[..], one.launches), ("whole", "sum_f32", 2));
    assert_eq!(one.bytes, 4 << 20);
    assert_eq!(engine.take_explanations(), []);
}
