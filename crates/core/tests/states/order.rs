//! Extremes, their positions, and the sets of positions behind them.

use crate::oracle::{self, bytes, state};
use crate::thorough::cases;
use proptest::prelude::*;
use std::collections::BTreeSet;
use warpfold_core::element::{Bool8, bf16, f16};
use warpfold_core::op::{Extrema, Kind, Op, Rules, Run, Spans, State, Summary};
use warpfold_core::{DType, Element, Error, NanPolicy, Result, Scalar, Value};

const RULES: Rules = Rules::new();

fn ask<T: Element>(items: &[T], op: Op, nan: NanPolicy) -> Result<Value> {
    state::<Extrema<T>>(Kind::ArgExtrema, 100, items).finish(op, &RULES.nan(nan))
}

/// The value, of one kind or the other.
fn number<T: Element>(x: T) -> (f64, i128) {
    match T::DTYPE {
        DType::F16 => (f16::from_bits(x.bits() as u16).to_f64(), 0),
        DType::BF16 => (bf16::from_bits(x.bits() as u16).to_f64(), 0),
        DType::F32 => (f64::from(f32::from_bits(x.bits() as u32)), 0),
        DType::F64 => (f64::from_bits(x.bits()), 0),
        _ => (0.0, i128::try_from(oracle::exact(x).numerator).unwrap()),
    }
}

/// Whether the value is less: -0 and +0 are equal.
fn less<T: Element>(a: T, b: T) -> bool {
    number(a) < number(b)
}

/// IEEE 754-2019 `totalOrder` of floats that are not NaN, else plain order.
fn before<T: Element>(a: T, b: T) -> bool {
    let ((x, i), (y, j)) = (number(a), number(b));
    less(a, b) || x == y && x.is_sign_negative() && y.is_sign_positive() && i == j
}

fn is_nan<T: Element>(x: T) -> bool {
    match T::DTYPE {
        DType::F16 => f16::from_bits(x.bits() as u16).is_nan(),
        DType::BF16 => bf16::from_bits(x.bits() as u16).is_nan(),
        DType::F32 => f32::from_bits(x.bits() as u32).is_nan(),
        DType::F64 => f64::from_bits(x.bits()).is_nan(),
        _ => false,
    }
}

/// The first smallest and first largest, in this order, of the elements that are not NaN.
fn naive<T: Element>(items: &[T], less: impl Fn(T, T) -> bool) -> Option<(usize, usize)> {
    let mut found = None;
    for (i, &x) in items.iter().enumerate().filter(|(_, x)| !is_nan(**x)) {
        let (min, max) = found.unwrap_or((i, i));
        found = Some((
            if less(x, items[min]) { i } else { min },
            if less(items[max], x) { i } else { max },
        ));
    }
    found
}

fn check<T: Element>(raw: &[u64]) {
    let items: Vec<T> = raw.iter().map(|&r| T::from_bits(r)).collect();
    let at = |i: usize| Value::One(Scalar::from_bits(DType::U64, 100 + i as u64));
    let element = |i: usize| {
        let truth = T::DTYPE == DType::Bool && items[i].bits() != 0;
        Scalar::from_bits(T::DTYPE, if truth { 1 } else { items[i].bits() })
    };
    for op in [Op::Min, Op::Max, Op::MinMax, Op::ArgMin, Op::ArgMax, Op::ArgMinMax] {
        // Values tell the two zeros apart, positions do not.
        let expected = match (naive(&items, before), naive(&items, less)) {
            (Some((min, max)), Some((first_min, first_max))) => Ok(match op {
                Op::Min => Value::One(element(min)),
                Op::Max => Value::One(element(max)),
                Op::MinMax => Value::Pair(element(min), element(max)),
                Op::ArgMin => at(first_min),
                Op::ArgMax => at(first_max),
                _ => Value::Pair(at(first_min).first(), at(first_max).first()),
            }),
            _ => Err(Error::Empty { op }),
        };
        assert_eq!(ask(&items, op, NanPolicy::Omit), expected, "{op} {items:?}");
        let nans = items.iter().filter(|x| is_nan(**x)).count() as u64;
        let Some(first) = items.iter().position(|&x| is_nan(x)) else {
            assert_eq!(ask(&items, op, NanPolicy::Propagate), expected);
            assert_eq!(ask(&items, op, NanPolicy::Error), expected);
            continue;
        };
        let strict = Error::NanFound { count: nans, first: Some(100 + first as u64) };
        assert_eq!(ask(&items, op, NanPolicy::Error), Err(strict));
        let found = ask(&items, op, NanPolicy::Propagate).unwrap();
        match op {
            Op::ArgMin | Op::ArgMax => assert_eq!(found, at(first)),
            Op::ArgMinMax => assert_eq!(found.second(), Some(at(first).first())),
            _ => assert_eq!(found.first().to_f64().to_bits(), 0x7ff8_0000_0000_0000),
        }
    }
    split_and_read_back(&items);
}

/// Pieces merged in any order, read back and summarised give the same bytes.
fn split_and_read_back<T: Element>(items: &[T]) {
    for kind in [Kind::Extrema, Kind::ArgExtrema] {
        let whole = bytes(&state::<Extrema<T>>(kind, 7, items));
        for piece in [1, 3, 5] {
            let mut merged = Extrema::<T>::identity(kind);
            let mut order: Vec<usize> = (0..items.len().div_ceil(piece)).collect();
            let turn = order.len() / 2;
            order.rotate_left(turn);
            for i in order {
                let (start, end) = (i * piece, items.len().min((i + 1) * piece));
                let part = state::<Extrema<T>>(kind, 7 + start as u64, &items[start..end]);
                merged.merge(&Extrema::read(kind, &bytes(&part)).unwrap()).unwrap();
            }
            assert_eq!(bytes(&merged), whole);
        }
        let mut summarised = Extrema::<T>::identity(kind);
        let first = items.iter().position(|&x| is_nan(x));
        let (found, places) = (naive(items, before), naive(items, less));
        let places = places.map(|(min, max)| (7 + min as u64, 7 + max as u64));
        summarised.absorb_summary(Summary {
            start: 7,
            count: items.len() as u64,
            nans: items.iter().filter(|x| is_nan(**x)).count() as u64,
            first_nan: first.map(|i| 7 + i as u64),
            min: found.zip(places).map(|((i, _), (at, _))| (items[i].key(), at)),
            max: found.zip(places).map(|((_, i), (_, at))| (items[i].key(), at)),
        });
        assert_eq!(bytes(&summarised), whole);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn every_type(raw in proptest::collection::vec(prop_oneof![
        any::<u64>(),
        // Zeros of both signs, infinities, NaNs and repeats for every width.
        proptest::sample::select(vec![
            0, 1, 0x80, 0xff, 0x8000, 0x7c00, 0xfc00, 0x7c01, 0x7f80, 0xff80, 0xff81, 0x8000_0000,
            0x7f80_0000, 0xff80_0000, 0x7f80_0001, 1 << 63, 0x7ff0 << 48, 0xfff0 << 48, 0x7ff1 << 48,
        ]),
    ], 0..14)) {
        check::<f16>(&raw);
        check::<bf16>(&raw);
        check::<f32>(&raw);
        check::<f64>(&raw);
        check::<i8>(&raw);
        check::<i64>(&raw);
        check::<u16>(&raw);
        check::<u64>(&raw);
        check::<Bool8>(&raw);
    }

    #[test]
    fn ranges_of_floats(a: u64, b: u64) {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let range = ask(&[x, y], Op::Range, NanPolicy::Propagate).unwrap().first();
        let expected = if x.is_finite() && y.is_finite() {
            // The difference of two f64 is what the processor rounds once.
            (x.max(y) - x.min(y)).to_bits()
        } else {
            range.to_bits()
        };
        prop_assert_eq!(range.to_bits(), expected);
        let norm = ask(&[x, y], Op::NormInf, NanPolicy::Omit).unwrap().first().to_bits();
        prop_assert_eq!(norm, x.abs().max(y.abs()).max(0.0).to_bits());
    }

    #[test]
    fn spans_are_sets(
        inserts in proptest::collection::vec((0u64..60, 0u64..9), 0..20),
        others in proptest::collection::vec((0u64..60, 0u64..9), 0..20),
    ) {
        let build = |list: &[(u64, u64)]| {
            let (mut spans, mut set) = (Spans::new(), BTreeSet::new());
            for &(start, len) in list {
                spans.insert(start, len);
                set.extend(start..start + len);
            }
            (spans, set)
        };
        let matches = |spans: &Spans, set: &BTreeSet<u64>| {
            let ranges: Vec<_> = spans.ranges().collect();
            assert!(ranges.iter().all(|(s, e)| s < e));
            assert!(ranges.windows(2).all(|w| w[0].1 < w[1].0), "{ranges:?}");
            assert!(ranges.iter().flat_map(|&(s, e)| s..e).eq(set.iter().copied()));
            assert_eq!(spans.len(), set.len() as u64);
            assert_eq!(spans.is_empty(), set.is_empty());
            (0..70).for_each(|p| assert_eq!(spans.contains(p), set.contains(&p)));
        };
        let ((mut a, set_a), (b, set_b)) = (build(&inserts), build(&others));
        matches(&a, &set_a);
        let common = set_a.intersection(&set_b).next().copied();
        prop_assert_eq!(a.first_common(&b), common);
        match common {
            Some(at) => prop_assert_eq!(a.merge(&b), Err(Error::Overlap { at })),
            None => {
                a.merge(&b).unwrap();
                matches(&a, &set_a.union(&set_b).copied().collect());
            }
        }
    }
}

/// Zeros of both signs in pieces that are merged in every order: the first zero is the place.
#[test]
fn zeros_of_both_signs_are_equal_for_positions() {
    fn check<T: Element>(of: impl Fn(f64) -> T) {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for signs in 0..1 << 6 {
            let items: Vec<T> = (0..6).map(|i| of([0.0, -0.0][signs >> i & 1])).collect();
            let ones = [(of(1.0), Op::ArgMin), (of(-1.0), Op::ArgMax)];
            for (other, op) in ones {
                for zeros in 0..=6 {
                    // Behind elements that are neither the least nor the greatest.
                    let items = [&[other; 6][zeros..], &items[..zeros]].concat();
                    let first = items.iter().position(|&x| x.without_sign() == of(0.0).key());
                    let first = first.unwrap_or(0) as u64;
                    let whole = bytes(&state::<Extrema<T>>(Kind::ArgExtrema, 0, &items));
                    for order in orders {
                        let mut merged = Extrema::<T>::identity(Kind::ArgExtrema);
                        for i in order {
                            let piece = &items[2 * i..2 * i + 2];
                            let piece = state::<Extrema<T>>(Kind::ArgExtrema, 2 * i as u64, piece);
                            merged.merge(&piece).unwrap();
                        }
                        assert_eq!(bytes(&merged), whole, "{items:?} in {order:?}");
                        let found = merged.finish(op, &RULES).unwrap().first();
                        assert_eq!(
                            found,
                            Scalar::from_bits(DType::U64, first),
                            "{op} of {items:?}"
                        );
                    }
                }
            }
        }
    }
    check::<f64>(|x| x);
    check::<f32>(|x| x as f32);
    check::<f16>(f16::from_f64);
    check::<bf16>(bf16::from_f64);
}

#[test]
fn zeros_are_ordered_by_sign() {
    let one = |x: f32| Ok(Value::One(Scalar::F32(x)));
    assert_eq!(ask(&[0.0f32, -0.0], Op::Min, NanPolicy::Propagate), one(-0.0));
    assert_eq!(ask(&[-0.0f32, 0.0], Op::Max, NanPolicy::Propagate), one(0.0));
    assert_eq!(ask(&[-0.0f32], Op::NormInf, NanPolicy::Propagate), one(0.0));
    assert_eq!(ask(&[-0.0f32, -0.0], Op::Range, NanPolicy::Propagate), one(0.0));
}

#[test]
fn ranges_and_norms() {
    use NanPolicy::{Omit, Propagate};
    let one = |x: f64| Ok(Value::One(Scalar::F64(x)));
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    assert_eq!(ask(&[inf, inf], Op::Range, Propagate).unwrap().first().to_bits(), 0x7ff8 << 48);
    assert_eq!(ask(&[inf, -inf], Op::Range, Propagate), one(inf));
    assert_eq!(ask(&[1.0, inf], Op::Range, Propagate), one(inf));
    assert_eq!(ask(&[-inf, 1.0], Op::Range, Propagate), one(inf));
    assert_eq!(ask(&[f64::MAX, -f64::MAX], Op::Range, Propagate), one(inf));
    assert_eq!(ask(&[-3.0, 2.0], Op::NormInf, Propagate), one(3.0));
    assert_eq!(ask(&[nan, -inf], Op::NormInf, Omit), one(inf));
    assert_eq!(ask(&[nan], Op::NormInf, Omit), one(0.0));
    assert_eq!(ask::<f64>(&[], Op::NormInf, Propagate), one(0.0));
    assert_eq!(ask::<f64>(&[], Op::Range, Propagate), Err(Error::Empty { op: Op::Range }));

    let wide = |x| Ok(Value::One(Scalar::from_bits(DType::U64, x)));
    assert_eq!(ask(&[i64::MIN, i64::MAX], Op::Range, Propagate), wide(u64::MAX));
    assert_eq!(ask(&[i64::MIN, 5], Op::NormInf, Propagate), wide(1 << 63));
    assert_eq!(ask(&[-128i8, 127], Op::Range, Propagate), wide(255));
    assert_eq!(ask(&[Bool8(0), Bool8(7)], Op::Range, Propagate), wide(1));
    assert_eq!(ask::<u8>(&[], Op::NormInf, Propagate), wide(0));
}

#[test]
fn extremes_in_other_types() {
    let to = |op, out| {
        state::<Extrema<f64>>(Kind::Extrema, 0, &[-0.0, 1.0 + f64::EPSILON, 1e300])
            .finish(op, &RULES.out(out))
    };
    assert_eq!(to(Op::Min, DType::F16).unwrap().first().to_bits(), 0x8000);
    assert_eq!(to(Op::Max, DType::F32), Ok(Value::One(Scalar::F32(f32::INFINITY))));
    let refused = Error::UnsupportedOut { op: Op::Min, dtype: DType::F64, out: DType::I8 };
    assert_eq!(to(Op::Min, DType::I8), Err(refused));
    let s = state::<Extrema<i64>>(Kind::ArgExtrema, 1000, &[-5, (1 << 53) + 1]);
    let to = |op, out| s.finish(op, &RULES.out(out));
    assert_eq!(to(Op::Max, DType::F64), Ok(Value::One(Scalar::F64((1u64 << 53) as f64))));
    let overflow = Error::Overflow { op: Op::Min, total: "-5".into(), out: DType::U8 };
    assert_eq!(to(Op::Min, DType::U8), Err(overflow));
    assert_eq!(
        to(Op::ArgMin, DType::I16),
        Ok(Value::One(Scalar::integer(1000, DType::I16).unwrap()))
    );
    let overflow = Error::Overflow { op: Op::ArgMin, total: "1000".into(), out: DType::U8 };
    assert_eq!(to(Op::ArgMin, DType::U8), Err(overflow));
}

#[test]
fn overlapping_pieces_are_refused() {
    let piece = |start| state::<Extrema<f32>>(Kind::ArgExtrema, start, &[1.0; 10]);
    let mut s = piece(0);
    s.merge(&piece(10)).unwrap();
    let before = bytes(&s);
    assert_eq!(s.merge(&piece(15)), Err(Error::Overlap { at: 15 }));
    assert_eq!(bytes(&s), before);
    s.merge(&piece(30)).unwrap();
    s.merge(&piece(20)).unwrap();
    // Nulls take positions but are no elements.
    s.skip(40, 5);
    assert_eq!(s.merge(&piece(44)), Err(Error::Overlap { at: 44 }));
    s.absorb(Run { start: 45, items: &[0.5], others: &[] });
    let found = s.finish(Op::ArgMin, &RULES).unwrap();
    assert_eq!(found.first().to_bits(), 45);
    assert_eq!(s.count(), 41);
    // Without positions there is nothing to overlap.
    let mut plain = state::<Extrema<f32>>(Kind::Extrema, 0, &[1.0]);
    plain.merge(&plain.clone()).unwrap();
    assert!(matches!(plain.merge(&piece(0)), Err(Error::StateMismatch { .. })));
    assert!(plain.finish(Op::ArgMin, &RULES).is_err());
}

/// States of before, in which -0 was less than +0 for positions, too.
#[test]
fn a_later_zero_is_a_place_that_states_may_hold() {
    let mut state = Extrema::<f64>::identity(Kind::ArgExtrema);
    let (min, max) = (Some(((-0.0f64).key(), 4)), Some((0.0f64.key(), 3)));
    state.absorb_summary(Summary { start: 3, count: 2, nans: 0, first_nan: None, min, max });
    let read = Extrema::<f64>::read(Kind::ArgExtrema, &bytes(&state)).unwrap();
    assert_eq!(read.finish(Op::ArgMin, &RULES).unwrap().first().to_bits(), 4);
}
