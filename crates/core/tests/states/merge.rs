//! Merges that fail, for every kind of state over every type, and gaps.

use crate::oracle::{bytes, state};
use warpfold_core::op::{AnyState, Extrema, Kind, Op, Rules, Run, Spans, State};
use warpfold_core::{DType, Element, Error, with_state};

/// A state over two runs of elements, at positions from 10 on; `None` if there
/// is none of this kind and type.
fn filled(kind: Kind, dtype: DType) -> Option<AnyState> {
    with_state!(kind, dtype, S => {
        type Item<S> = <S as State>::Item;
        let items: Vec<Item<S>> = [1, 0, 3, 1, 2].map(<Item<S>>::from_bits).to_vec();
        let others: &[Item<S>] =
            if kind.takes_pairs() { &items } else { &[] };
        let mut state = <S as State>::identity(kind);
        state.absorb(Run { start: 10, items: &items, others });
        state.skip(15, 2);
        state.absorb(Run { start: 17, items: &items, others });
        Some(AnyState::from(state))
    }, else => None)
}

fn all() -> Vec<AnyState> {
    let pairs = Kind::ALL.into_iter().flat_map(|k| DType::ALL.map(|d| (k, d)));
    pairs.filter_map(|(kind, dtype)| filled(kind, dtype)).collect()
}

#[test]
fn a_merge_that_fails_leaves_both_sides_as_they_were() {
    let states = all();
    assert_eq!(states.len(), 13 * 10 + 9);
    for left in &states {
        for right in &states {
            let same = (left.kind(), left.dtype()) == (right.kind(), right.dtype());
            let (mut merged, before, others) = (left.clone(), left.to_bytes(), right.to_bytes());
            let checked = left.check_merge(right);
            let done = merged.merge(right);
            assert_eq!(checked, done, "{left:?} {right:?}");
            let places = left.kind() == Kind::ArgExtrema;
            match done {
                Ok(()) => assert!(same && !places, "{left:?} {right:?}"),
                Err(Error::StateMismatch { .. }) => assert!(!same, "{left:?} {right:?}"),
                Err(Error::Overlap { at: 10 }) => assert!(same && places, "{left:?} {right:?}"),
                Err(other) => panic!("{left:?} {right:?}: {other}"),
            }
            if checked.is_err() {
                assert_eq!(merged.to_bytes(), before, "{left:?} {right:?}");
            }
            assert_eq!(right.to_bytes(), others, "{left:?} {right:?}");
        }
    }
}

/// Every overlap of a piece with two others, in both directions.
#[test]
fn overlaps_of_one_position_change_nothing() {
    let piece = |start, len| state::<Extrema<u8>>(Kind::ArgExtrema, start, &vec![3; len]);
    for (start, len) in [(4, 2), (0, 1), (9, 1), (9, 12), (20, 1), (29, 5), (0, 40), (12, 9)] {
        let mut held = piece(0, 10);
        held.merge(&piece(20, 10)).unwrap();
        let mut other = piece(start, len);
        let (before, others) = (bytes(&held), bytes(&other));
        assert!(matches!(held.merge(&other), Err(Error::Overlap { .. })), "{start} {len}");
        assert!(matches!(other.merge(&held), Err(Error::Overlap { .. })), "{start} {len}");
        assert_eq!((bytes(&held), bytes(&other)), (before, others), "{start} {len}");
    }
}

#[test]
fn a_hole_between_positions_has_no_answer() {
    let piece = |start| state::<Extrema<f32>>(Kind::ArgExtrema, start, &[1.0, f32::NAN, 3.0]);
    let rules = Rules::default();
    let ops = [Op::Min, Op::Max, Op::MinMax, Op::Range, Op::NormInf, Op::ArgMin, Op::ArgMinMax];
    let mut s = piece(0);
    s.merge(&piece(9)).unwrap();
    s.merge(&piece(6)).unwrap();
    for op in ops {
        assert_eq!(s.finish(op, &rules), Err(Error::Gap { from: 3, to: 6 }), "{op}");
    }
    // Rows without a value fill the hole, at the edges of pieces as well.
    s.skip(3, 2);
    assert_eq!(s.finish(Op::ArgMax, &rules), Err(Error::Gap { from: 5, to: 6 }));
    s.skip(5, 1);
    assert_eq!(s.finish(Op::ArgMax, &rules).unwrap().first().to_bits(), 1);
    // Read from bytes it is the same.
    let mut holed = piece(4);
    holed.merge(&piece(8)).unwrap();
    let read = Extrema::<f32>::read(Kind::ArgExtrema, &bytes(&holed)).unwrap();
    assert_eq!(read.finish(Op::ArgMax, &rules), Err(Error::Gap { from: 7, to: 8 }));
    // A piece from anywhere has an answer.
    assert_eq!(piece(600).finish(Op::ArgMax, &rules).unwrap().first().to_bits(), 601);
    let mut spans = Spans::new();
    assert_eq!(spans.first_gap(), None);
    spans.insert(5, 5);
    assert_eq!(spans.first_gap(), None);
    spans.insert(20, 5);
    spans.insert(12, 2);
    assert_eq!(spans.first_gap(), Some((10, 12)));
}
