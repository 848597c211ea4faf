//! Log-sum-exp against big integers, and its independence of order and splits.

use crate::tree_support::{oracle, *};
use num_bigint::BigInt;
use std::collections::HashMap;
use warpfold_core::element::{Bool8, DType, Element, Parts, bf16, f16};
use warpfold_core::op::logsumexp::BLOCK;
use warpfold_core::op::{FloatLogSumExp, IntLogSumExp, Kind, Ordered, Run, State};
use warpfold_core::{Error, NanPolicy, Op, Rules, Scalar};

fn exactly<T: Element>(x: T) -> BigInt {
    let Parts::Finite { negative, magnitude, exponent } = x.parts() else { panic!("{x:?}") };
    if T::DTYPE.is_float() {
        return oracle::fixed(Scalar::from_bits(T::DTYPE, x.bits()).to_f64());
    }
    assert_eq!(exponent, 0);
    let value = BigInt::from(magnitude) << oracle::BITS;
    if negative { -value } else { value }
}

/// Half the distance from `|x|` to the next float of its type.
fn half_ulp(x: Scalar) -> BigInt {
    let beyond = Scalar::from_bits(x.dtype(), x.to_bits() + 1);
    let gap = oracle::fixed(beyond.to_f64()) - oracle::fixed(x.to_f64());
    oracle::magnitude(&gap) >> 1
}

/// The answer must be the true value, off by `error` and then rounded once.
fn check_in<T: Ordered>(x: &[T], out: Option<DType>, error: f64) -> Scalar {
    let state: T::LogSumExp = whole(Kind::LogSumExp, x, &[]);
    let rules = Rules::new().out(out);
    let got = state.finish(Op::LogSumExp, &rules).unwrap().first();
    let mut counts = HashMap::<u64, (T, u64)>::new();
    for &v in x {
        counts.entry(v.bits()).or_insert((v, 0)).1 += 1;
    }
    let finite = counts.into_values().filter(|(v, _)| matches!(v.parts(), Parts::Finite { .. }));
    let terms: Vec<_> = finite.map(|(v, n)| (exactly(v), n)).collect();
    let want = oracle::logsumexp(terms);
    let off = oracle::magnitude(&(oracle::fixed(got.to_f64()) - &want));
    let allowed = half_ulp(got) + oracle::fixed(error);
    assert!(
        off <= allowed,
        "{} elements such as {:?}: {got:?}, true value {:e}, off by {:e}",
        x.len(),
        &x[..x.len().min(4)],
        oracle::float(&want),
        oracle::float(&off)
    );
    got
}

/// The documented bound of the element type.
fn check<T: Ordered>(x: &[T]) -> Scalar {
    let error = match T::DTYPE {
        DType::F64 => 2f64.powi(-94),
        DType::F32 | DType::F16 | DType::BF16 => 2f64.powf(-47.9),
        _ => 2f64.powi(-93),
    };
    check_in(x, None, error)
}

/// A sample of every shape that could go wrong, about `n` elements each.
fn samples(n: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
    let mut all = Vec::new();
    let mut add =
        |f: &mut dyn FnMut(usize) -> f64| all.push((0..n).map(&mut *f).collect::<Vec<f64>>());
    add(&mut |_| rng.unit());
    add(&mut |_| rng.unit() * 80.0 - 40.0);
    add(&mut |_| rng.unit() * -1400.0);
    add(&mut |_| (rng.unit() - 0.5) * 2f64.powi(rng.below(120) as i32 - 60));
    add(&mut |_| 1e300);
    add(&mut |_| -1e300 * (1.0 + rng.unit()));
    add(&mut |i| if i == n / 2 { 1e300 } else { -1e300 });
    // Around the cut-off of the exponential.
    add(&mut |i| if i == 0 { 0.0 } else { -600.0 + (rng.unit() - 0.5) * 1e-9 });
    // All weight in elements far below the largest.
    add(&mut |i| if i == 0 { 0.0 } else { -9.0 });
    // Around the ends of cells, from both sides.
    add(&mut |_| 271.0 + rng.unit() * 2.0);
    add(&mut |_| -17.0 + rng.unit() * 2.0);
    add(&mut |i| [-16.0, 16.0, 48.0][i % 3]);
    // Just kept and just dropped.
    add(&mut |i| if i == n / 2 { 15.9 } else { -80.0 + (rng.unit() - 0.5) * 0.1 });
    add(&mut |i| if i == n / 2 { -16.0 } else { -80.1 });
    add(&mut |i| if i == n / 2 { 15.9 } else { -112.0 + (rng.unit() - 0.5) * 0.1 });
    add(&mut |i| if i == n / 2 { -250.0 } else { -290.0 - rng.unit() });
    add(&mut |i| if i % 2 == 0 { 250.0 } else { 270.0 - rng.unit() });
    // Differences that do not fit an f64.
    add(&mut |i| if i % 2 == 0 { 1e-20 } else { -rng.unit() });
    // Ascending, so that the maximum grows with every block.
    add(&mut |i| i as f64 / 64.0);
    // The sum is close to 1 and its logarithm to 0.
    let log = (n as f64).ln();
    add(&mut |_| -log);
    add(&mut |i| -log + if i % 2 == 0 { 1e-9 } else { -1e-9 });
    let a = -0.01 - 4.0 * rng.unit();
    all.push(vec![a, (-a.exp()).ln_1p()]);
    all.push(vec![0.0, -37.0 - rng.unit()]);
    all
}

#[test]
fn answers_are_true_to_the_documented_bound() {
    let mut rng = Rng(1);
    for n in [1, 2, 3, 10, 65, 300] {
        for _ in 0..2 {
            for x in samples(n, &mut rng) {
                check(&x);
                let narrow: Vec<f32> = x.iter().map(|&v| v.clamp(-3e38, 3e38) as f32).collect();
                check(&narrow);
                check_in(&narrow, Some(DType::F64), 2f64.powf(-47.9));
                let h: Vec<f16> =
                    narrow.iter().map(|&v| f16::from_f32(v.clamp(-6e4, 6e4))).collect();
                check(&h);
                let b: Vec<bf16> = narrow.iter().map(|&v| bf16::from_f32(v)).collect();
                check(&b);
            }
        }
    }
    for x in samples(3 * BLOCK + 5, &mut rng).into_iter().skip(4) {
        // Few distinct values, or the oracle takes too long.
        let x: Vec<f64> = x.iter().map(|v| (v * 4.0).round() / 4.0).collect();
        check(&x);
        check(&x.iter().map(|&v| v.clamp(-3e38, 3e38) as f32).collect::<Vec<_>>());
    }
}

#[test]
fn two_terms_that_cancel_are_true() {
    let mut rng = Rng(2);
    for _ in 0..400 {
        let a = -0.001 - 6.0 * rng.unit();
        let b = (-a.exp()).ln_1p();
        let got = check(&[a, b]).to_f64();
        assert!(got.abs() < 1e-15);
        check(&[a as f32, b as f32]);
    }
}

fn integers<T: Ordered>(rng: &mut Rng) {
    for n in [1, 2, 7, 100, 5000] {
        for spread in [1, 2, 5, 60, 130, 1000] {
            let around = rng.next() >> rng.below(64);
            let x: Vec<T> =
                (0..n).map(|_| T::from_bits(around.wrapping_sub(rng.next() % spread))).collect();
            let got = check(&x);
            let scattered: T::LogSumExp = scattered(Kind::LogSumExp, &x, &[], rng);
            let whole: T::LogSumExp = whole(Kind::LogSumExp, &x, &[]);
            assert_eq!(bytes(&scattered), bytes(&whole));
            assert_eq!(answer(&scattered, Op::LogSumExp), got);
        }
    }
}

#[test]
fn integers_are_counted() {
    let mut rng = Rng(3);
    integers::<i8>(&mut rng);
    integers::<i16>(&mut rng);
    integers::<i32>(&mut rng);
    integers::<i64>(&mut rng);
    integers::<u8>(&mut rng);
    integers::<u16>(&mut rng);
    integers::<u32>(&mut rng);
    integers::<u64>(&mut rng);
    integers::<Bool8>(&mut rng);
    check(&[i64::MIN, i64::MAX]);
    check(&[i64::MIN; 3]);
    check(&[u64::MAX; 3]);
    check(&[0u64, 127]);
    check(&[0u64, 128]);
    check(&[Bool8(0), Bool8(255), Bool8(7)]);
    assert_eq!(check(&[0i32]), Scalar::F64(0.0));
    assert_eq!(check_in(&[5i8, 5], Some(DType::F16), 0.0), Scalar::F16(f16::from_f64(5.69314718)));
    let empty = IntLogSumExp::<i32>::identity(Kind::LogSumExp);
    assert_eq!(answer(&empty, Op::LogSumExp), Scalar::F64(f64::NEG_INFINITY));
    let mut same = empty.clone();
    same.merge(&empty).unwrap();
    assert_eq!(bytes(&same), bytes(&empty));
}

#[test]
fn splits_and_merges_do_not_show() {
    let mut rng = Rng(4);
    for n in SIZES {
        for round in 0..4 {
            let mut x: Vec<f64> =
                (0..n).map(|_| rng.unit() * 2f64.powi(rng.below(12) as i32)).collect();
            if n > 0 && round == 0 {
                for v in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                    x[rng.below(n)] = v;
                }
            }
            let got: FloatLogSumExp<f64> = scattered(Kind::LogSumExp, &x, &[], &mut rng);
            assert_eq!(bytes(&got), bytes(&whole::<FloatLogSumExp<f64>>(Kind::LogSumExp, &x, &[])));
            let f: Vec<f32> = x.iter().map(|&v| v as f32).collect();
            let got: FloatLogSumExp<f32> = scattered(Kind::LogSumExp, &f, &[], &mut rng);
            assert_eq!(bytes(&got), bytes(&whole::<FloatLogSumExp<f32>>(Kind::LogSumExp, &f, &[])));
        }
    }
}

#[test]
fn specials_follow_the_rules() {
    const INF: f64 = f64::INFINITY;
    let by = |x: &[f64], nan| {
        let s: FloatLogSumExp<f64> = scattered(Kind::LogSumExp, x, &[], &mut Rng(x.len() as u64));
        s.finish(Op::LogSumExp, &Rules::new().nan(nan))
    };
    let f = |x| one(Scalar::F64(x));
    let canonical = f(f64::from_bits(0x7ff8_0000_0000_0000));
    let keep = NanPolicy::Propagate;
    assert_eq!(by(&[], keep), f(-INF));
    assert_eq!(by(&[-INF, -INF], keep), f(-INF));
    assert_eq!(by(&[-INF, INF, 3.0], keep), f(INF));
    assert_eq!(by(&[-INF, 3.0], keep), f(3.0));
    assert_eq!(by(&[INF, -f64::NAN], keep), canonical);
    assert_eq!(by(&[INF, f64::NAN], NanPolicy::Omit), f(INF));
    assert_eq!(by(&[3.0, f64::NAN], NanPolicy::Omit), f(3.0));
    assert_eq!(by(&[f64::NAN], NanPolicy::Omit), f(-INF));
    assert_eq!(
        by(&[f64::NAN; 3], NanPolicy::Error),
        Err(Error::NanFound { count: 3, first: None })
    );
    assert_eq!(by(&[-0.0], keep), f(0.0));
    assert_eq!(by(&[f64::MAX, f64::MAX, -f64::MAX], keep), f(f64::MAX));
    assert_eq!(by(&[-f64::MAX], keep), f(-f64::MAX));
    // Far below the absolute error.
    assert_eq!(by(&[f64::from_bits(1)], keep), f(0.0));
    let s: FloatLogSumExp<f32> = whole(Kind::LogSumExp, &[f32::NEG_INFINITY, 1.5], &[]);
    let int = Rules::new().out(DType::I64);
    assert!(matches!(s.finish(Op::LogSumExp, &int), Err(Error::UnsupportedOut { .. })));
    let mut nulls = FloatLogSumExp::<f32>::new();
    nulls.skip(0, 10_000);
    nulls.absorb(Run { start: 10_000, items: &[1.5], others: &[] });
    assert_eq!(answer(&nulls, Op::LogSumExp), Scalar::F32(1.5));
}

#[test]
fn zeros_of_both_signs_are_one_element() {
    let (zero, minus) = ([0.0f32; 100], [-0.0f32; 100]);
    let payload = |x: &[f32]| bytes(&whole::<FloatLogSumExp<f32>>(Kind::LogSumExp, x, &[]));
    assert_eq!(payload(&minus), payload(&zero));
    let state = FloatLogSumExp::<f32>::read(Kind::LogSumExp, &payload(&minus)).unwrap();
    assert_eq!(bytes(&state), payload(&zero));
}

/// The same elements, shuffled, in pieces of which each has other cells.
fn shuffled<T: Ordered>(x: &[T], rng: &mut Rng) {
    let expected = bytes(&whole::<T::LogSumExp>(Kind::LogSumExp, x, &[]));
    let mut x = x.to_vec();
    for _ in 0..3 {
        for i in (1..x.len()).rev() {
            x.swap(i, rng.below(i + 1));
        }
        assert_eq!(bytes(&whole::<T::LogSumExp>(Kind::LogSumExp, &x, &[])), expected);
        let got: T::LogSumExp = scattered(Kind::LogSumExp, &x, &[], rng);
        assert_eq!(bytes(&got), expected);
        let again = <T::LogSumExp as State>::read(Kind::LogSumExp, &expected).unwrap();
        assert_eq!(bytes(&again), expected);
    }
}

#[test]
fn the_order_does_not_show() {
    let mut rng = Rng(6);
    for n in [2, 40, 300, BLOCK + 700] {
        let mut all = samples(n, &mut rng);
        all.push((0..n).map(|_| (rng.unit() - 0.5) * 1e4).collect());
        // One cell after the other, and specials in between.
        all.push((0..n).map(|i| (i % 40) as f64 * 16.0 - 300.0).collect());
        all.push(
            (0..n)
                .map(|i| [f64::NAN, 1.0, f64::INFINITY, 90.0, f64::NEG_INFINITY][i % 5])
                .collect(),
        );
        for x in all {
            shuffled(&x, &mut rng);
            let narrow: Vec<f32> = x.iter().map(|&v| v as f32).collect();
            shuffled(&narrow, &mut rng);
            shuffled(&narrow.iter().map(|&v| f16::from_f32(v)).collect::<Vec<_>>(), &mut rng);
            shuffled(&narrow.iter().map(|&v| bf16::from_f32(v)).collect::<Vec<_>>(), &mut rng);
        }
    }
}

#[test]
fn impossible_states_are_refused() {
    let x = [1.5f32, 40.0];
    let good = bytes(&whole::<FloatLogSumExp<f32>>(Kind::LogSumExp, &x, &[]));
    assert_eq!(good.len(), 8 * 12);
    let with = |at: usize, word: u64| {
        let mut bytes = good.clone();
        bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        FloatLogSumExp::<f32>::read(Kind::LogSumExp, &bytes)
    };
    let refused = |at: usize, word: u64| {
        let error = with(at, word).unwrap_err();
        assert!(matches!(error, Error::DamagedState { .. }), "{at} {word:x}: {error}");
    };
    assert!(with(0, 64f64.to_bits()).is_ok());
    for anchor in
        [31.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 32.0 * 16_777_217.0]
    {
        refused(0, anchor.to_bits());
    }
    // Cells: too much for 2^64 terms, too little for one.
    refused(3, 1 << 38);
    refused(9, 1 << 38);
    refused(7, 1 << 53);
    assert!(with(7, 1 << 54).is_ok());
    let small = bytes(&whole::<FloatLogSumExp<f32>>(Kind::LogSumExp, &[-15.9], &[]));
    assert!(FloatLogSumExp::<f32>::read(Kind::LogSumExp, &small).is_ok());
    let none = [&good[..8], &[0; 8 * 11]].concat();
    assert!(FloatLogSumExp::<f32>::read(Kind::LogSumExp, &none).is_err());
    for len in [0, 7, good.len() - 1, good.len() - 8] {
        assert!(FloatLogSumExp::<f32>::read(Kind::LogSumExp, &good[..len]).is_err());
    }
    assert!(FloatLogSumExp::<f64>::read(Kind::LogSumExp, &good).is_err());
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = Rng(5);
    let x: Vec<f64> = (0..BLOCK + 3).map(|_| rng.unit()).collect();
    let f: Vec<f32> = x.iter().map(|&v| v as f32).collect();
    let s: FloatLogSumExp<f64> = whole(Kind::LogSumExp, &x, &[]);
    survive_damage(Kind::LogSumExp, Op::LogSumExp, &s, &mut rng);
    let s: FloatLogSumExp<f32> = whole(Kind::LogSumExp, &f, &[]);
    survive_damage(Kind::LogSumExp, Op::LogSumExp, &s, &mut rng);
    let s: IntLogSumExp<i16> = whole(Kind::LogSumExp, &[4, 6, -50], &[]);
    survive_damage(Kind::LogSumExp, Op::LogSumExp, &s, &mut rng);
    let s: IntLogSumExp<Bool8> = whole(Kind::LogSumExp, &[Bool8(1), Bool8(0)], &[]);
    survive_damage(Kind::LogSumExp, Op::LogSumExp, &s, &mut rng);
}
