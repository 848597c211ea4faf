//! Absorbing boxes of an array into states that are there: the payloads of
//! states that absorbed each output's elements one by one.

use crate::thorough::{seed, thorough};
use fastrand::Rng;
use warpfold_core::element::{Bool8, bf16, f16};
use warpfold_core::layout::View;
use warpfold_core::op::{AnyState, Kind, Run, State};
use warpfold_core::{Element, Error, with_state};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Job, Threads};

/// Bits of elements: of any exponent, of few values, with or without NaNs and
/// infinities.
fn items<T: Element>(pattern: usize, n: usize, random: &mut Rng) -> Vec<T> {
    let bits = 8 * size_of::<T>() as u32;
    let any = |random: &mut Rng| T::from_bits(random.u64(..) >> (64 - bits));
    let ordinary = T::from_bits(if bits == 64 {
        0x3ff1_2345_6789_abcd
    } else {
        0x3f12_3456 >> (32 - bits.min(32))
    });
    let signed = |x: T, random: &mut Rng| {
        if random.bool() { x } else { T::from_bits(x.bits() ^ 1 << (bits - 1)) }
    };
    // Neighbours of an ordinary number, of either sign.
    let near =
        |random: &mut Rng| signed(T::from_bits(ordinary.bits() ^ (random.u64(..) & 7)), random);
    (0..n)
        .map(|i| match pattern {
            // Every bit pattern: NaNs, infinities, subnormals.
            0 => any(random),
            // One among a great many neighbours.
            1 if i == n / 2 => any(random),
            // The lower bits only: subnormals and small integers.
            2 => T::from_bits(random.u64(..) >> (64 - bits / 2)),
            // Zeros, and few others.
            3 if random.usize(..20) > 0 => signed(T::from_bits(0), random),
            _ => near(random),
        })
        .collect()
}

/// The payload of the state that absorbs elements one by one.
fn one_by_one<T: Element>(kind: Kind, items: &[T], others: &[T]) -> Option<Vec<u8>> {
    let bytes: (&[u8], &[u8]) = (bytemuck::cast_slice(items), bytemuck::cast_slice(others));
    with_state!(kind, T::DTYPE,
        S => {
            let mut state = <S as State>::identity(kind);
            let (items, others) = (bytemuck::cast_slice(bytes.0), bytemuck::cast_slice(bytes.1));
            let others = if kind.takes_pairs() { others } else { &[] };
            state.absorb(Run { start: 0, items, others });
            Some(AnyState::from(state).payload())
        },
        else => None)
}

/// A table of `rows` x `middle` x `columns` whose first axis, or first two, are
/// reduced, box by box.
fn check<T: Element>(shape: [usize; 3], axes: usize, pattern: usize, random: &mut Rng) {
    let [rows, middle, columns] = shape;
    let n = rows * middle * columns;
    let gap = random.usize(..3);
    let row = middle * columns + gap;
    let arrays: Vec<Vec<T>> = (0..2).map(|_| items(pattern, rows * row, random)).collect();
    let reduced: Vec<bool> = (0..3).map(|a| a < axes).collect();
    let (outputs, inner) = if axes == 1 { (middle * columns, 1) } else { (columns, middle) };
    let column = |array: usize, output: usize| -> Vec<T> {
        let at = |r: usize, m: usize| arrays[array][r * row + m * outputs + output];
        (0..rows).flat_map(|r| (0..inner).map(move |m| (r, m))).map(|(r, m)| at(r, m)).collect()
    };
    // Rows cut anywhere, as joined pieces and small boxes cut them.
    let mut cuts = vec![0, rows];
    (0..random.usize(..4)).for_each(|_| cuts.push(random.usize(..rows + 1)));
    cuts.sort_unstable();
    let strides = [row as isize, columns as isize, 1];
    for kinds in [
        vec![Kind::Sum],
        vec![Kind::Extrema],
        vec![Kind::Moments, Kind::Counts],
        vec![Kind::ArgExtrema, Kind::Sum],
        vec![Kind::AbsSum, Kind::SquareSum, Kind::Extrema],
        vec![Kind::Prod, Kind::Counts],
        vec![Kind::LogSumExp],
        vec![Kind::Bits],
        vec![Kind::Dot],
    ] {
        let pair = kinds == [Kind::Dot];
        let identity = |&kind: &Kind| AnyState::identity(kind, T::DTYPE).ok();
        let Some(one) = kinds.iter().map(identity).collect::<Option<Vec<_>>>() else { continue };
        let threads = Threads::Exactly(1 + random.usize(..3));
        let isas: Vec<Isa> = Isa::available().collect();
        let isa = isas[random.usize(..isas.len())];
        let mut states = vec![one; outputs];
        for cut in cuts.windows(2) {
            let views: Vec<View<'_>> = arrays
                .iter()
                .map(|items| {
                    let shape = [cut[1] - cut[0], middle, columns];
                    View::of_strided(items, (cut[0] * row).min(items.len()), &shape, &strides)
                        .unwrap()
                })
                .collect();
            let views = [Some(&views[0]), pair.then_some(&views[1])];
            let start = (cut[0] * inner) as u64;
            let job = Job {
                views,
                reduced: &reduced,
                kinds: &kinds,
                start,
                initial: None,
                marks: None,
                isa,
                threads,
            };
            job.absorb_into(&mut states).unwrap();
        }
        for (output, states) in states.iter().enumerate() {
            let (items, others) = (column(0, output), column(1, output));
            for (state, &kind) in states.iter().zip(&kinds) {
                let expected = one_by_one(kind, &items, &others).unwrap();
                assert!(
                    state.payload() == expected,
                    "{kind:?} of {}, output {output} of {shape:?} over {axes} axes, gap {gap}, \
                     pattern {pattern}, cuts {cuts:?}, {kinds:?}, {isa:?}, {n} elements",
                    T::DTYPE
                );
            }
        }
    }
}

/// Shapes on either side of every kernel's limits, and some at random.
fn shapes(random: &mut Rng) -> Vec<[usize; 3]> {
    let mut shapes = vec![
        [300, 1, 40],
        [70, 1, 129],
        [600, 1, 33],
        [1, 3, 100],
        [9, 2, 70],
        [2100, 1, 3],
        [65, 1, 64],
        [0, 2, 3],
        [3, 0, 5],
        [20, 1, 2100],
        [5000, 1, 2],
    ];
    for _ in 0..6 {
        shapes.push([1 + random.usize(..400), 1 + random.usize(..3), 1 + random.usize(..150)]);
    }
    shapes
}

fn every_shape<T: Element>(own: u64) {
    let mut random = Rng::with_seed(seed(own));
    for (turn, shape) in shapes(&mut random).into_iter().enumerate() {
        // Both, or each in its turn.
        let turn = turn + T::DTYPE as usize;
        for axes in [1, 2].into_iter().filter(|axes| thorough() || (axes + turn).is_multiple_of(2))
        {
            let pattern = random.usize(..5);
            check::<T>(shape, axes, pattern, &mut random);
        }
    }
}

#[test]
fn floats_absorb_what_one_by_one_does() {
    every_shape::<f64>(0x1234_5678_9abc_def1);
    every_shape::<f32>(0x2234_5678_9abc_def1);
    every_shape::<f16>(0x3234_5678_9abc_def1);
    every_shape::<bf16>(0x4234_5678_9abc_def1);
}

#[test]
fn integers_absorb_what_one_by_one_does() {
    every_shape::<i8>(0x5234_5678_9abc_def1);
    every_shape::<u16>(0x6234_5678_9abc_def1);
    every_shape::<i32>(0x7234_5678_9abc_def1);
    every_shape::<u64>(0x8234_5678_9abc_def1);
    every_shape::<Bool8>(0x9234_5678_9abc_def1);
}

#[test]
fn every_pattern_meets_many_outputs() {
    let mut random = Rng::with_seed(seed(0xa234_5678_9abc_def1));
    for pattern in 0..5 {
        let shapes = [[520, 1, 160], [1000, 1, 40], [40, 2, 130], [20, 1, 4200]];
        for (turn, shape) in shapes.into_iter().enumerate() {
            // Both types, or each in its turn.
            if thorough() || (pattern + turn).is_multiple_of(2) {
                check::<f64>(shape, 1, pattern, &mut random);
            }
            if thorough() || (pattern + turn) % 2 == 1 {
                check::<f32>(shape, 1, pattern, &mut random);
            }
        }
    }
}

#[test]
fn states_of_another_question_are_refused_and_left_alone() {
    let items: Vec<f64> = (0..12).map(f64::from).collect();
    let view = View::of_strided(&items, 0, &[3, 4], &[4, 1]).unwrap();
    let job = Job {
        views: [Some(&view), None],
        reduced: &[true, false],
        kinds: &[Kind::Sum, Kind::Counts],
        start: 0,
        initial: None,
        marks: None,
        isa: Isa::active().unwrap(),
        threads: Threads::Exactly(1),
    };
    let of = |kind| AnyState::identity(kind, warpfold_core::DType::F64).unwrap();
    let narrow = AnyState::identity(Kind::Counts, warpfold_core::DType::F32).unwrap();
    for wrong in [
        vec![vec![of(Kind::Sum), of(Kind::Counts)]; 3],
        vec![vec![of(Kind::Sum)]; 4],
        vec![vec![of(Kind::AbsSum), of(Kind::Counts)]; 4],
        vec![vec![of(Kind::Sum), narrow]; 4],
    ] {
        let mut states = wrong.clone();
        let error = job.absorb_into(&mut states).unwrap_err();
        assert!(matches!(error, Error::StateMismatch { .. }), "{error}");
        assert_eq!(states, wrong);
    }
    let mut states = vec![vec![of(Kind::Sum), of(Kind::Counts)]; 4];
    let far = Job { start: u64::MAX - 1, ..job };
    let error = far.absorb_into(&mut states).unwrap_err();
    assert!(matches!(error, Error::StartTooLarge { .. }), "{error}");
    assert_eq!(states, vec![vec![of(Kind::Sum), of(Kind::Counts)]; 4]);
}
