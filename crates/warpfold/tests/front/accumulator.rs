//! Accumulators: however numbers come, the answers are those of one reduction over
//! all of them, and nothing is lost without a word.

use crate::thorough::cases;
use proptest::prelude::*;
use warpfold::{
    Accumulator, DType, Device, Error, Input, Item, NanPolicy, Op, Partial, Reduction, Rules, f16,
};

const OPS: [Op; 9] = [
    Op::Sum,
    Op::Var,
    Op::Norm2,
    Op::ArgMinMax,
    Op::CountNonzero,
    Op::Prod,
    Op::LogSumExp,
    Op::Any,
    Op::Norm1,
];

/// How a piece is taken in.
#[derive(Clone, Copy, Debug)]
enum Way {
    Push,
    Slice,
    Bytes(usize),
    At,
    Merge,
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        Just(Way::Push),
        Just(Way::Slice),
        (1usize..70).prop_map(Way::Bytes),
        Just(Way::At),
        Just(Way::Merge),
    ]
}

/// Feeds `items` in pieces, each in its way, and compares.
fn feed<T: Item>(question: &Reduction, items: &[T], ways: &[(usize, Way)]) {
    let mut all: Accumulator<T> = question.accumulator().unwrap();
    let mut rest = items;
    let mut ways = ways.iter().cycle();
    while !rest.is_empty() {
        let &(len, way) = ways.next().unwrap();
        let (piece, after) = rest.split_at(len.min(rest.len()));
        let at = (items.len() - rest.len()) as u64;
        rest = after;
        assert_eq!(all.position(), at);
        match way {
            Way::Push => piece.iter().for_each(|&x| all.push(x)),
            Way::Slice => all.absorb(piece).unwrap(),
            Way::Bytes(step) => {
                // Never aligned where the first byte is taken for itself.
                let bytes: &[u8] = bytemuck::cast_slice(piece);
                let moved = [&[0], bytes].concat();
                let (head, tail) = moved[1..].split_at(bytes.len().min(step));
                all.absorb_bytes(head).unwrap();
                tail.chunks(step * 97).for_each(|chunk| all.absorb_bytes(chunk).unwrap());
            }
            Way::At => all.absorb_at(at, piece).unwrap(),
            Way::Merge => {
                let mut other = question.accumulator().unwrap().starting_at(at);
                other.extend(piece);
                all.merge(&other).unwrap();
            }
        }
    }
    let whole = question.partial(T::elements(items), 0).unwrap();
    assert_eq!(all.to_partial().unwrap(), whole);
    // Answers that overflow do so either way.
    assert_eq!(all.finish(), whole.finish(question.rules()));
    let back = Accumulator::<T>::try_from(whole.clone());
    assert_eq!(back.unwrap().to_partial().unwrap(), whole);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn any_split_in_any_way_has_the_same_bits(
        len in 0usize..20_000,
        seed: u64,
        ways in prop::collection::vec((1usize..9000, way()), 1..12),
    ) {
        let random = |i: usize| {
            let x = (i as u64 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x ^ x >> 29
        };
        let question = Reduction::new(OPS).nan(NanPolicy::Omit);
        let words: Vec<u64> = (0..len).map(random).collect();
        let floats: Vec<f64> = words.iter().map(|&x| f64::from_bits(x & !(1 << 62))).collect();
        feed(&question, &floats, &ways);
        let narrow: Vec<f16> = words.iter().map(|&x| f16::from_bits(x as u16)).collect();
        feed(&question, &narrow, &ways);
        let bytes: Vec<i8> = words.iter().map(|&x| x as i8).collect();
        feed(&question, &bytes, &ways);
        let truths: Vec<bool> = words.iter().map(|&x| x % 3 == 0).collect();
        feed(&question, &truths, &ways);
        let sizes: Vec<usize> = words.iter().map(|&x| x as usize).collect();
        feed(&question, &sizes, &ways);
    }
}

/// A slice that is long enough for threads, and for more than one block.
#[test]
fn long_slices_are_absorbed_where_they_lie() {
    let items: Vec<f32> = (0..700_001).map(|i| (i as f32 * 0.37).sin()).collect();
    let mut all = Accumulator::<f32>::new([Op::Sum, Op::ArgMax]).unwrap();
    all.push(items[0]);
    all.absorb(&items[1..]).unwrap();
    assert_eq!(all.finish(), Reduction::new([Op::Sum, Op::ArgMax]).run(&items));
}

#[test]
fn bytes_one_by_one() {
    let items = [1.5f64, -2.25, f64::MAX, 5e-324];
    let bytes: &[u8] = bytemuck::cast_slice(&items);
    let mut all = Accumulator::<f64>::default();
    for (i, byte) in bytes.iter().enumerate() {
        all.absorb_bytes(&[]).unwrap();
        all.absorb_bytes(&[*byte]).unwrap();
        let held = (i + 1) % 8;
        let expected = (held > 0).then_some(Error::SplitElement { held, size: 8 });
        assert_eq!(all.finish().err(), expected);
    }
    assert_eq!(all.finish(), Reduction::of(Op::Sum).run(&items));
}

#[test]
fn half_an_element_is_never_lost_in_silence() {
    let half = || {
        let mut all = Accumulator::<u32>::default();
        all.absorb_bytes(&[1, 0, 0]).unwrap();
        all
    };
    let split = Error::SplitElement { held: 3, size: 4 };
    let mut all = half();
    assert_eq!(all.absorb(&[7]), Err(split.clone()));
    assert_eq!(all.absorb_at(9, &[7]), Err(split.clone()));
    assert_eq!(all.to_partial().err(), Some(split.clone()));
    assert_eq!(Accumulator::default().merge(&all), Err(split.clone()));
    // Nothing has happened yet: the rest completes it.
    all.absorb_bytes(&[0]).unwrap();
    assert_eq!(all.finish().unwrap().to_string(), "1");
    // A number in the middle of an element cannot be right, whatever follows.
    let mut all = half();
    all.push(7);
    let _ = all.absorb_bytes(&[0]);
    assert_eq!(all.finish().err(), Some(split));
}

#[test]
fn a_failed_merge_leaves_both_as_they_were() {
    let question = Reduction::new([Op::Sum, Op::Var, Op::ArgMax, Op::Prod, Op::Count]);
    let made = |from: u64, items: &[f64]| {
        let mut all = question.accumulator().unwrap().starting_at(from);
        all.extend(items);
        all
    };
    let mut left = made(0, &[1.0, 2.0, 3.0]);
    let right = made(2, &[9.0]);
    let (before, other) = (left.to_partial().unwrap(), right.to_partial().unwrap());
    assert_eq!(left.merge(&right), Err(Error::Overlap { at: 2 }));
    assert_eq!((left.to_partial().unwrap(), right.to_partial().unwrap()), (before, other));
    // Both are still of use.
    left.merge(&made(3, &[9.0])).unwrap();
    assert_eq!(left.finish(), question.run(&[1.0, 2.0, 3.0, 9.0]));

    let before = left.to_partial().unwrap();
    let others = Accumulator::<f64>::new([Op::Sum]).unwrap();
    assert!(matches!(left.merge(&others), Err(Error::StateMismatch { .. })));
    assert_eq!(left.to_partial().unwrap(), before);
}

#[test]
fn positions_given_twice_are_refused() {
    let mut all = Accumulator::<i64>::new([Op::Sum, Op::ArgMin]).unwrap();
    all.absorb_at(10, &[1, 2, 3]).unwrap();
    let before = all.to_partial().unwrap();
    assert_eq!(all.absorb_at(12, &[9]), Err(Error::Overlap { at: 12 }));
    assert_eq!(all.to_partial().unwrap(), before);
    assert_eq!(all.position(), 13);
    // Pushing cannot fail; finishing does.
    let mut pushed = all.clone().starting_at(11);
    pushed.push(5);
    assert_eq!(pushed.finish().err(), Some(Error::Overlap { at: 11 }));
    // Nor are there positions beyond all.
    let last = all.absorb_at(u64::MAX, &[1]);
    assert_eq!(last, Err(Error::StartTooLarge { start: u64::MAX, len: 1 }));
    assert_eq!(all.to_partial().unwrap(), before);
    let mut beyond = all.starting_at(u64::MAX);
    beyond.push(1);
    assert!(matches!(beyond.finish(), Err(Error::StartTooLarge { .. })));
}

#[test]
fn what_is_kept_is_said_by_all_that_can_fail() {
    let mut all = Accumulator::<f64>::new([Op::ArgMax]).unwrap();
    all.absorb_at(5, &[1.0]).unwrap();
    let mut all = all.starting_at(0);
    all.extend([0.5; 9999]);
    let overlap = Error::Overlap { at: 5 };
    assert_eq!(all.finish().err(), Some(overlap.clone()));
    assert_eq!(all.absorb(&[]), Err(overlap.clone()));
    assert_eq!(all.absorb_bytes(&[]), Err(overlap.clone()));
    assert_eq!(Partial::try_from(all.clone()).err(), Some(overlap.clone()));
    assert_eq!(
        [all.clone(), all].into_iter().sum::<Accumulator<_>>().finish().err(),
        Some(overlap)
    );
}

#[test]
fn questions_that_cannot_be_are_refused_at_once() {
    assert!(matches!(Accumulator::<f32>::new([Op::Xor]), Err(Error::UnsupportedType { .. })));
    assert!(matches!(Accumulator::<f32>::new([Op::Dot]), Err(Error::Arity { .. })));
    let axis = Reduction::of(Op::Sum).axis(1).accumulator::<u8>();
    assert!(matches!(axis, Err(Error::AxisOutOfRange { .. })));
    let table = Reduction::of(Op::Sum).axis(0).partial(&[[1, 2], [3, 4]], 0).unwrap();
    assert!(matches!(Accumulator::<i32>::try_from(table), Err(Error::ShapeMismatch { .. })));
    let dot = Reduction::of(Op::Dot).partial_pair(&[1], &[2], 0).unwrap();
    assert!(matches!(Accumulator::<i32>::try_from(dot), Err(Error::Arity { .. })));
}

#[test]
fn rules_are_those_of_the_question() {
    let question = Reduction::of(Op::Sum).out(DType::I8).wrap(true).device(Device::Cpu);
    let mut all = question.accumulator::<i8>().unwrap();
    all.extend([100, 100]);
    assert_eq!(all.finish().unwrap().number::<i8>(Op::Sum), Some(-56));
    // A partial has none.
    let plain = Accumulator::<i8>::try_from(all.to_partial().unwrap()).unwrap();
    assert_eq!(plain.finish().unwrap().number::<i64>(Op::Sum), Some(200));
}

#[test]
fn no_elements() {
    let all = Accumulator::<f64>::new([Op::Sum, Op::Count]).unwrap();
    assert_eq!(all.finish().unwrap().to_string(), "sum: 0\ncount: 0");
    let none = Accumulator::<f64>::new([Op::Min]).unwrap();
    assert_eq!(none.finish(), Err(Error::Empty { op: Op::Min }));
    assert!(matches!(Accumulator::<f64>::new([]), Err(Error::Operations { given: 0, .. })));
    let none = Reduction::new([]).run(Input::masked(&[1.0, 2.0], &[1], 0).unwrap());
    assert_eq!(none.unwrap().columns().len(), 0);
    let sums: Accumulator<u16> = [].iter().sum();
    assert_eq!(sums.to_partial().unwrap().finish(&Rules::new()), sums.finish());
}
