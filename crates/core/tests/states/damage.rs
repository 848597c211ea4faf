//! Payloads that are cut, lengthened, flipped or made up.

use crate::oracle::{bytes, state};
use crate::thorough::cases;
use proptest::prelude::*;
use warpfold_core::element::{Bool8, bf16, f16};
use warpfold_core::op::{
    AnyState, Bits, Counts, Extrema, Kind, Moments, Op, Rules, Squares, State, Sums,
};
use warpfold_core::{Element, Error, NanPolicy};

/// Reading either fails as damage, or gives a state that can do everything.
fn read_and_use<S: State>(kind: Kind, payload: &[u8]) -> bool {
    let mut s = match S::read(kind, payload) {
        Ok(s) => s,
        Err(Error::DamagedState { why }) => {
            assert!(!why.is_empty());
            return false;
        }
        Err(other) => panic!("{other}"),
    };
    for op in Op::ALL {
        for nan in [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error] {
            for wrap in [false, true] {
                let _ = s.finish(op, &Rules::new().nan(nan).wrap(wrap).ddof(1));
            }
        }
    }
    // A foreign accumulator may be read in a form that is not canonical, but
    // what is written is, and stays.
    let written = bytes(&s);
    assert_eq!(bytes(&S::read(kind, &written).unwrap()), written);
    let copy = s.clone();
    let _ = s.merge(&copy);
    let _ = s.finish(Op::Mean, &Rules::default());
    true
}

fn hurt<S: State>(kind: Kind, items: &[S::Item], at: usize, flip: u8, noise: &[u8]) {
    let good = bytes(&state::<S>(kind, 3, items));
    assert!(read_and_use::<S>(kind, &good));
    let mut longer = good.clone();
    longer.push(0);
    assert!(!read_and_use::<S>(kind, &longer));
    assert!(!read_and_use::<S>(kind, &good[..at % good.len()]));
    let mut flipped = good.clone();
    flipped[at % good.len()] ^= flip;
    read_and_use::<S>(kind, &flipped);
    let mut made_up: Vec<u8> = noise.iter().copied().cycle().take(good.len()).collect();
    read_and_use::<S>(kind, &made_up);
    made_up.truncate(at);
    read_and_use::<S>(kind, &made_up);
    for other in Kind::ALL {
        let _ = S::read(other, &good);
    }
}

fn all<T: Element>(raw: &[u64], at: usize, flip: u8, noise: &[u8]) {
    let items: Vec<T> = raw.iter().map(|&r| T::from_bits(r)).collect();
    hurt::<Sums<T>>(Kind::Sum, &items, at, flip, noise);
    hurt::<Sums<T>>(Kind::AbsSum, &items, at, flip, noise);
    hurt::<Squares<T>>(Kind::SquareSum, &items, at, flip, noise);
    hurt::<Squares<T>>(Kind::Dot, &[], at, flip, noise);
    hurt::<Moments<T>>(Kind::Moments, &items, at, flip, noise);
    hurt::<Extrema<T>>(Kind::Extrema, &items, at, flip, noise);
    hurt::<Extrema<T>>(Kind::ArgExtrema, &items, at, flip, noise);
    hurt::<Counts<T>>(Kind::Counts, &items, at, flip, noise);
    hurt::<Bits<T>>(Kind::Bits, &items, at, flip, noise);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn damaged_payloads(
        raw in proptest::collection::vec(any::<u64>(), 0..6),
        at in 0usize..2000,
        flip in 1u8..,
        noise in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1..40),
    ) {
        all::<f64>(&raw, at, flip, &noise);
        all::<bf16>(&raw, at, flip, &noise);
        all::<i32>(&raw, at, flip, &noise);
        all::<u64>(&raw, at, flip, &noise);
        all::<Bool8>(&raw, at, flip, &noise);
    }
}

#[test]
fn payloads_are_the_vectors() {
    let s = state::<Moments<f64>>(Kind::Moments, 0, &[1.5, -2.0, f64::INFINITY]);
    let words: Vec<i64> =
        bytes(&s).chunks_exact(8).map(|w| i64::from_le_bytes(w.try_into().unwrap())).collect();
    assert_eq!(words, [s.sum.to_vector(), s.squares.to_vector()].concat());
    let s = state::<Sums<bf16>>(Kind::Sum, 0, &[bf16::ONE; 3]);
    assert_eq!(bytes(&s).len(), 8 * s.acc.to_vector().len());
}

#[test]
fn contradictions_are_damage() {
    let words = |w: &[u64]| w.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    // A huge number of spans in a short payload allocates nothing.
    let spans = words(&[1, 0, 5, 5, u64::MAX, 0, 0, u64::MAX / 2, 0, 1]);
    assert!(!read_and_use::<Extrema<u8>>(Kind::ArgExtrema, &spans));
    let good = words(&[1, 0, 5, 5, u64::MAX, 0, 0, 1, 0, 1]);
    assert!(read_and_use::<Extrema<u8>>(Kind::ArgExtrema, &good));
    for (at, value) in [
        (0, 2),     // more elements than positions
        (1, 1),     // integers with a NaN
        (2, 6),     // the smallest above the largest
        (2, 0x105), // more bits than the type has
        (4, 0),     // the position of a NaN that is not there
        (5, 1),     // a position not seen
        (9, 0),     // an empty range
    ] {
        let mut bad = good.clone();
        bad[8 * at..8 * at + 8].copy_from_slice(&u64::to_le_bytes(value));
        assert!(!read_and_use::<Extrema<u8>>(Kind::ArgExtrema, &bad), "word {at} = {value}");
    }
    assert!(!read_and_use::<Counts<f32>>(Kind::Counts, &words(&[3, 2, 3])));
    assert!(!read_and_use::<Counts<f32>>(Kind::Counts, &words(&[3, 4, 0])));
    assert!(!read_and_use::<Counts<u8>>(Kind::Counts, &words(&[3, 2, 1])));
    assert!(!read_and_use::<Bits<u8>>(Kind::Bits, &words(&[0x100, 0x100, 0])));
    assert!(!read_and_use::<Bits<u8>>(Kind::Bits, &words(&[1, 2, 0])));
    // Minus one, where only sums of magnitudes can be.
    let minus_one = words(&[0xffff_ffff, 0xffff_ffff, 0xffff_ffff, u64::MAX, 1, 0, 0, 0]);
    assert!(read_and_use::<Sums<i8>>(Kind::Sum, &minus_one));
    assert!(!read_and_use::<Sums<i8>>(Kind::AbsSum, &minus_one));
    assert!(!read_and_use::<Sums<u8>>(Kind::Sum, &minus_one));
    // An integer's infinity, and moments that count different elements.
    assert!(!read_and_use::<Sums<i8>>(Kind::Sum, &words(&[0, 0, 0, 0, 1, 0, 1, 0])));
    let moments = words(&[[0; 4], [1, 0, 0, 0]].concat());
    let other = words(&[[0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0]].concat()[..10]);
    assert!(!read_and_use::<Moments<i8>>(Kind::Moments, &[moments, other].concat()));
    // More infinities of both signs than a counter holds.
    let most = i64::MAX as u64;
    let both = words(&[0, 0, most, 0, most, most, 0, 0, 0, 0, most, 0, most, 0]);
    assert!(!read_and_use::<Moments<f16>>(Kind::Moments, &both));
    // A NaN's key as the smallest value of an f32.
    let nan = i64::from(f32::NAN.key()) as u64;
    assert!(!read_and_use::<Extrema<f32>>(Kind::Extrema, &words(&[1, 0, nan, nan])));
}

/// What version 0.1 wrote for `sum --accuracy fast` of 1.5 and 2.
const PLAIN_SUM: &str = "5746737401000c0d3b000000000000000000000000000000000000000000000000\
    0000000000000000010000000000000000000000000000000200000000000000f8\
    3f0000000000000040face8e5c00000000";

#[test]
fn states_of_kinds_that_are_gone_are_told_by_name() {
    let hex = |at: usize| u8::from_str_radix(&PLAIN_SUM[at..at + 2], 16).unwrap();
    let plain: Vec<u8> = (0..PLAIN_SUM.len()).step_by(2).map(hex).collect();
    let error = AnyState::from_bytes(&plain).unwrap_err();
    assert_eq!(error, Error::RetiredState { was: "a plain sum" });
    assert!(error.hint().is_some_and(|hint| hint.contains("--accuracy fast")), "{error}");
    // Every code that was in use, and none that was not.
    let code = |code: u8| {
        let mut bytes = plain.clone();
        bytes[6] = code;
        let body = bytes.len() - 8;
        let checksum = u64::from(crc32fast::hash(&bytes[..body]));
        bytes[body..].copy_from_slice(&checksum.to_le_bytes());
        AnyState::from_bytes(&bytes).unwrap_err()
    };
    assert!(matches!(code(11), Error::RetiredState { was } if was.contains("logsumexp")));
    for retired in 10..=15 {
        assert!(matches!(code(retired), Error::RetiredState { .. }), "{retired}");
        assert_eq!(Kind::from_code(retired), None);
    }
    assert!(matches!(code(18), Error::DamagedState { why } if why.contains("kind is unknown")));
    // Damage comes first.
    let mut damaged = plain.clone();
    damaged[20] ^= 1;
    assert!(matches!(AnyState::from_bytes(&damaged), Err(Error::DamagedState { .. })));
}
