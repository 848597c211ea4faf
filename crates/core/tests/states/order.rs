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

/// IEEE 754-2019 `totalOrder` of floats that are not NaN, else plain order.
fn less<T: Element>(a: T, b: T) -> bool {
    let number = |x: T| -> (f64, i128) {
        match T::DTYPE {
            DType::F16 => (f16::from_bits(x.bits() as u16).to_f64(), 0),
            DType::BF16 => (bf16::from_bits(x.bits() as u16).to_f64(), 0),
            DType::F32 => (f64::from(f32::from_bits(x.bits() as u32)), 0),
            DType::F64 => (f64::from_bits(x.bits()), 0),
            _ => (0.0, i128::try_from(oracle::exact(x).numerator).unwrap()),
        }
    };
    let ((a, i), (b, j)) = (number(a), number(b));
    a < b || a == b && a.is_sign_negative() && b.is_sign_positive() || i < j
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

/// The first smallest and first largest of the elements that are not NaN.
fn naive<T: Element>(items: &[T]) -> Option<(usize, usize)> {
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
    let at = |i: usize| Value::One(Scalar::UInt(100 + i as u64, DType::U64));
    let element = |i: usize| {
        let truth = T::DTYPE == DType::Bool && items[i].bits() != 0;
        Scalar::from_bits(T::DTYPE, if truth { 1 } else { items[i].bits() })
    };
    for op in [Op::Min, Op::Max, Op::MinMax, Op::ArgMin, Op::ArgMax, Op::ArgMinMax] {
        let expected = match naive(&items) {
            None => Err(Error::Empty { op }),
            Some((min, max)) => Ok(match op {
                Op::Min => Value::One(element(min)),
                Op::Max => Value::One(element(max)),
                Op::MinMax => Value::Pair(element(min), element(max)),
                Op::ArgMin => at(min),
                Op::ArgMax => at(max),
                _ => Value::Pair(at(min).first(), at(max).first()),
            }),
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
        let (found, first) = (naive(items), items.iter().position(|&x| is_nan(x)));
        summarised.absorb_summary(Summary {
            start: 7,
            count: items.len() as u64,
            nans: items.iter().filter(|x| is_nan(**x)).count() as u64,
            first_nan: first.map(|i| 7 + i as u64),
            min: found.map(|(i, _)| (items[i].key(), 7 + i as u64)),
            max: found.map(|(_, i)| (items[i].key(), 7 + i as u64)),
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

    let wide = |x| Ok(Value::One(Scalar::UInt(x, DType::U64)));
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
    assert_eq!(to(Op::ArgMin, DType::I16), Ok(Value::One(Scalar::Int(1000, DType::I16))));
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
