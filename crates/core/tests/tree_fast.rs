//! Fast sums: the tree's shape, its independence of splits, and specials.

#[path = "tree_support/naive.rs"]
mod naive;
mod tree_support;

use naive::naive;
use tree_support::*;
use warpfold_core::element::{DType, Element, bf16, f16};
use warpfold_core::op::tree::{BLOCK, FixedTree, TreeOp};
use warpfold_core::op::{
    FastAbsSum, FastDot, FastSquareSum, FastSum, FloatElement, Kind, Run, State,
};
use warpfold_core::{Error, NanPolicy, Op, Rules, Scalar};

fn normals(n: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n).map(|_| (rng.unit() - 0.5) * 2f64.powi(rng.below(20) as i32)).collect()
}

#[test]
fn the_tree_is_the_one_defined() {
    let mut rng = Rng(1);
    for n in SIZES {
        let x = normals(n, &mut rng);
        let y = normals(n, &mut rng);
        let (xs, ys): (Vec<f32>, Vec<f32>) =
            (x.iter().map(|&v| v as f32).collect(), y.iter().map(|&v| v as f32).collect());
        let add = |a: f64, b: f64| a + b;
        let add32 = |a: f32, b: f32| a + b;
        let sum: FastSum<f64> = whole(Kind::FastSum, &x, &[]);
        assert_eq!(answer(&sum, Op::Sum), Scalar::F64(naive(n, 0.0, &|i| x[i], &add)), "{n}");
        let abs: FastAbsSum<f64> = whole(Kind::FastAbsSum, &x, &[]);
        assert_eq!(answer(&abs, Op::Norm1), Scalar::F64(naive(n, 0.0, &|i| x[i].abs(), &add)));
        let dot: FastDot<f64> = whole(Kind::FastDot, &x, &y);
        assert_eq!(answer(&dot, Op::Dot), Scalar::F64(naive(n, 0.0, &|i| x[i] * y[i], &add)));
        let square: FastSquareSum<f32> = whole(Kind::FastSquareSum, &xs, &[]);
        let expected = naive(n, 0.0, &|i| xs[i] * xs[i], &add32);
        assert_eq!(answer(&square, Op::SumSq), Scalar::F32(expected));
        assert_eq!(answer(&square, Op::Norm2), Scalar::F32(expected.sqrt()));
        let dot: FastDot<f32> = whole(Kind::FastDot, &xs, &ys);
        assert_eq!(answer(&dot, Op::Dot), Scalar::F32(naive(n, 0.0, &|i| xs[i] * ys[i], &add32)));
        let h: Vec<f16> = x.iter().map(|&v| f16::from_f32(v as f32 / 256.0)).collect();
        let sum: FastSum<f16> = whole(Kind::FastSum, &h, &[]);
        let expected = naive(n, 0.0, &|i| h[i].to_f32(), &add32);
        assert_eq!(answer(&sum, Op::Sum), Scalar::F16(f16::from_f32(expected)));
        let out = Rules::new().out(DType::F64);
        assert_eq!(sum.finish(Op::Sum, &out), one(Scalar::F64(f64::from(expected))));
        if n > 0 {
            let mean = (f64::from(naive(n, 0.0, &|i| xs[i], &add32)) / n as f64) as f32;
            let sum: FastSum<f32> = whole(Kind::FastSum, &xs, &[]);
            assert_eq!(answer(&sum, Op::Mean), Scalar::F32(mean));
        }
    }
}

#[test]
fn splits_and_merges_do_not_show() {
    let mut rng = Rng(2);
    for n in SIZES {
        for _ in 0..6 {
            let mut x = normals(n, &mut rng);
            if n > 0 && rng.below(3) == 0 {
                x[rng.below(n)] = f64::NAN;
                x[rng.below(n)] = f64::INFINITY;
            }
            let y = normals(n, &mut rng);
            let expected = bytes(&whole::<FastSum<f64>>(Kind::FastSum, &x, &[]));
            let got = scattered::<FastSum<f64>>(Kind::FastSum, &x, &[], &mut rng);
            assert_eq!(bytes(&got), expected);
            let expected: FastDot<f64> = whole(Kind::FastDot, &x, &y);
            let got: FastDot<f64> = scattered(Kind::FastDot, &x, &y, &mut rng);
            assert_eq!(bytes(&got), bytes(&expected));
            assert_eq!(answer(&got, Op::Dot), answer(&expected, Op::Dot));
        }
    }
}

#[test]
fn single_elements_backwards_are_the_same_state() {
    let mut rng = Rng(3);
    let x = normals(2 * BLOCK + 77, &mut rng);
    let mut state = FastSum::<f64>::new();
    for i in (0..x.len()).rev() {
        state.absorb(run(&x, &[], i, i + 1));
    }
    assert_eq!(bytes(&state), bytes(&whole::<FastSum<f64>>(Kind::FastSum, &x, &[])));
}

#[test]
fn the_root_without_a_state_is_the_root() {
    let mut rng = Rng(4);
    for n in SIZES {
        let x = normals(n, &mut rng);
        type P = warpfold_core::op::fast::Plain<f64, warpfold_core::op::fast::Itself>;
        let root = FixedTree::<P>::root_of(&x, &[], P::leaf);
        let value = P::value(&root, n as u64, Op::Mean, &Rules::default());
        assert_eq!(
            value,
            whole::<FastSum<f64>>(Kind::FastSum, &x, &[]).finish(Op::Mean, &Rules::default())
        );
    }
}

#[test]
fn a_backend_s_leaf_is_used_for_whole_blocks() {
    let x = vec![1.0f64; 3 * BLOCK + 5];
    let calls = std::cell::Cell::new(0);
    let mut state = FastSum::<f64>::new();
    type P = warpfold_core::op::fast::Plain<f64, warpfold_core::op::fast::Itself>;
    state.absorb_with(Run { start: 0, items: &x, others: &[] }, |a, b| {
        calls.set(calls.get() + 1);
        assert_eq!(a.len(), BLOCK);
        P::leaf(a, b)
    });
    assert_eq!(calls.get(), 3);
    assert_eq!(answer(&state, Op::Sum), Scalar::F64(x.len() as f64));
}

#[test]
fn nodes_from_elsewhere_are_the_same_nodes() {
    let x = normals(5 * BLOCK + 3, &mut Rng(8));
    type P = warpfold_core::op::fast::Plain<f64, warpfold_core::op::fast::Itself>;
    let leaf = |b: usize| P::leaf(&x[b * BLOCK..(b + 1) * BLOCK], &[]);
    let mut state = FastSum::<f64>::new();
    state.absorb(run(&x, &[], 4 * BLOCK, x.len()));
    state.absorb_node(1, 1, P::combine(&leaf(2), &leaf(3)));
    state.absorb_node(0, 1, leaf(1));
    state.absorb_node(0, 0, leaf(0));
    assert_eq!(bytes(&state), bytes(&whole::<FastSum<f64>>(Kind::FastSum, &x, &[])));
    state.absorb_node(1, 0, leaf(0));
    assert_eq!(state.finish(Op::Sum, &Rules::default()), Err(Error::Overlap { at: 0 }));
    for (level, index) in [(0, u64::MAX), (52, 0), (64, 0), (0, (1 << 52) - 1), (51, 1)] {
        let mut outside = FastSum::<f64>::new();
        outside.absorb_node(level, index, leaf(0));
        assert!(matches!(outside.finish(Op::Sum, &Rules::default()), Err(Error::Overlap { .. })));
    }
}

#[test]
fn missing_elements_count_for_nothing() {
    let mut rng = Rng(5);
    for n in [10usize, 4096, 5000, 20000, 70000] {
        for _ in 0..10 {
            let from = rng.below(n);
            let to = from + rng.below(n - from + 1);
            let mut x = normals(n, &mut rng);
            x[from..to].fill(0.0);
            let mut a = FastSum::<f64>::new();
            a.absorb(run(&x, &[], 0, from));
            let mut b = FastSum::<f64>::new();
            b.skip(from as u64, (to - from) as u64);
            b.absorb(run(&x, &[], to, n));
            if rng.below(2) == 0 {
                core::mem::swap(&mut a, &mut b);
            }
            b.merge(&a).unwrap();
            let filled: FastSum<f64> = whole(Kind::FastSum, &x, &[]);
            assert_eq!(answer(&b, Op::Sum), answer(&filled, Op::Sum));
            let Scalar::F64(sum) = answer(&filled, Op::Sum) else { panic!() };
            let mean = sum / (n - (to - from)) as f64;
            let mean = if mean.is_nan() { f64::NAN } else { mean };
            assert_eq!(answer(&b, Op::Mean), Scalar::F64(mean));
            assert_eq!(bytes(&FastSum::<f64>::read(Kind::FastSum, &bytes(&b)).unwrap()), bytes(&b));
        }
    }
    let mut dot = FastDot::<f32>::new();
    dot.skip(1, 1);
    dot.absorb(Run { start: 0, items: &[2.0], others: &[3.0] });
    dot.absorb(Run { start: 2, items: &[5.0], others: &[7.0] });
    assert_eq!(answer(&dot, Op::Dot), Scalar::F32(41.0));
    // A column of nothing but nulls, longer than memory.
    let mut nulls = FastSum::<f32>::new();
    nulls.skip(0, (1 << 45) + 3);
    assert_eq!(answer(&nulls, Op::Sum), Scalar::F32(0.0));
    assert_eq!(answer(&nulls, Op::Mean), Scalar::F32(f32::from_bits(0x7fc0_0000)));
}

#[test]
fn gaps_and_overlaps_are_errors() {
    let x = vec![1.0f64; 20000];
    let part = |from, to| {
        let mut s = FastSum::<f64>::new();
        s.absorb(run(&x, &[], from, to));
        s
    };
    let rules = Rules::default();
    let gap = |s: &FastSum<f64>, from, to| {
        assert_eq!(s.finish(Op::Sum, &rules), Err(Error::Gap { from, to }))
    };
    gap(&part(1, 20000), 0, 1);
    gap(&part(8192, 20000), 0, 8192);
    for (a, b) in [(4096, 4097), (10, 20), (4000, 8192), (8191, 16384), (10000, 10001)] {
        let mut s = part(0, a);
        let before = bytes(&s);
        s.merge(&part(b, 20000)).unwrap();
        gap(&s, a as u64, b as u64);
        s.merge(&part(a, b)).unwrap();
        assert_eq!(bytes(&s), bytes(&part(0, 20000)));
        // A refused merge leaves the state as it was.
        let mut s = part(0, a);
        for (from, to) in [(a - 1, b), (0, 1), (a - 1, 20000), (0, 20000)] {
            let at = if from == a - 1 { a - 1 } else { 0 };
            assert_eq!(
                s.merge(&part(from, to)),
                Err(Error::Overlap { at: at as u64 }),
                "{a} {from} {to}"
            );
            assert_eq!(bytes(&s), before);
        }
        // An overlap inside `absorb` comes out later.
        for (from, to) in [(a - 1, b), (0, 1), (a - 1, 20000)] {
            let mut s = part(0, a);
            s.absorb(run(&x, &[], from, to));
            let at = if from == a - 1 { a - 1 } else { 0 };
            let at = if from / 4096 * 4096 + 4096 <= to && from % 4096 == 0 { from } else { at };
            assert!(
                matches!(s.finish(Op::Sum, &rules), Err(Error::Overlap { at: found }) if found as usize >= at && (found as usize) < a)
            );
            let s = FastSum::<f64>::read(Kind::FastSum, &bytes(&s)).unwrap();
            assert!(matches!(s.finish(Op::Sum, &rules), Err(Error::Overlap { .. })));
        }
    }
    let mut end = FastSum::<f64>::new();
    end.absorb(Run { start: u64::MAX - 1, items: &x[..5], others: &[] });
    assert_eq!(end.finish(Op::Sum, &rules), Err(Error::Overlap { at: u64::MAX - 1 }));
}

#[test]
fn specials_follow_the_rules() {
    const INF: f64 = f64::INFINITY;
    let nan = f64::from_bits(0xfff8_0000_0000_1234);
    let canonical = f64::from_bits(0x7ff8_0000_0000_0000);
    let sum = |x: &[f64], nan| {
        let s: FastSum<f64> = scattered(Kind::FastSum, x, &[], &mut Rng(x.len() as u64));
        s.finish(Op::Sum, &Rules::new().nan(nan))
    };
    let f = |x| one(Scalar::F64(x));
    let by = NanPolicy::Propagate;
    assert_eq!(sum(&[], by), f(0.0));
    assert_eq!(sum(&[-0.0, -0.0], by), f(0.0));
    assert_eq!(sum(&[1.0, nan], by), f(canonical));
    assert_eq!(sum(&[1.0, nan, INF], by), f(canonical));
    assert_eq!(sum(&[INF, 1.0, -INF], by), f(canonical));
    assert_eq!(sum(&[INF, 1.0, -INF], NanPolicy::Omit), f(canonical));
    assert_eq!(sum(&[-INF, 1.0], by), f(-INF));
    assert_eq!(sum(&[1.0, nan, 2.5], NanPolicy::Omit), f(3.5));
    assert_eq!(sum(&[-INF, nan, 2.5], NanPolicy::Omit), f(-INF));
    assert_eq!(sum(&[nan, nan], NanPolicy::Error), Err(Error::NanFound { count: 2, first: None }));
    assert_eq!(sum(&[f64::MAX, f64::MAX, INF], by), f(INF));
    assert_eq!(sum(&[f64::MAX, f64::MAX, -INF], by), f(-INF), "an overflow is no infinity");

    let mean: FastSum<f64> = whole(Kind::FastSum, &[1.0, nan, 2.0], &[]);
    let omit = Rules::new().nan(NanPolicy::Omit);
    assert_eq!(mean.finish(Op::Mean, &omit), f(1.5));
    assert_eq!(answer(&FastSum::<f64>::new(), Op::Mean), Scalar::F64(canonical));
    let norm: FastAbsSum<f32> = whole(Kind::FastAbsSum, &[1.0, f32::NEG_INFINITY], &[]);
    assert_eq!(answer(&norm, Op::Norm1), Scalar::F32(f32::INFINITY));
    let norm: FastSquareSum<f32> = whole(Kind::FastSquareSum, &[f32::NEG_INFINITY, f32::NAN], &[]);
    assert_eq!(answer(&norm, Op::Norm2), Scalar::F32(f32::from_bits(0x7fc0_0000)));
    assert_eq!(norm.finish(Op::Norm2, &omit), one(Scalar::F32(f32::INFINITY)));
    let dot: FastDot<f64> = whole(Kind::FastDot, &[0.0, 1.0], &[INF, 1.0]);
    assert_eq!(answer(&dot, Op::Dot), Scalar::F64(canonical));
    let dot: FastDot<f64> = whole(Kind::FastDot, &[-2.0, 1e200], &[INF, 1e200]);
    assert_eq!(answer(&dot, Op::Dot), Scalar::F64(-INF));

    let unsupported =
        Err(Error::UnsupportedOut { op: Op::Sum, dtype: DType::F64, out: DType::I64 });
    let rules = Rules::new().out(DType::I64);
    assert_eq!(mean.finish(Op::Sum, &rules), unsupported);
    assert!(mean.finish(Op::Norm1, &Rules::default()).is_err());
}

#[test]
fn sixteen_bit_floats_widen_exactly() {
    for bits in 0..=u16::MAX {
        let (h, b) = (f16::from_bits(bits), bf16::from_bits(bits));
        if h.parts() == warpfold_core::element::Parts::Nan {
            assert!(h.widen().is_nan());
        } else {
            assert_eq!(h.widen().to_bits(), h.to_f32().to_bits());
        }
        if !b.is_nan() {
            assert_eq!(b.widen().to_bits(), b.to_f32().to_bits());
        }
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = Rng(6);
    let x = normals(3 * BLOCK + 9, &mut rng);
    for (from, to) in [(0, x.len()), (5, 9000), (4095, 4100), (0, 0)] {
        let mut s = FastSum::<f64>::new();
        s.absorb(run(&x, &[], from, to));
        s.skip(20000, 17);
        survive_damage(Kind::FastSum, Op::Sum, &s, &mut rng);
    }
    let short: Vec<f32> = (0..10).map(|i| i as f32).collect();
    let mut s = FastDot::<f32>::new();
    s.absorb(run(&short, &short, 0, 5));
    s.absorb(Run { start: 40960, items: &[1.0; BLOCK], others: &[1.0; BLOCK] });
    survive_damage(Kind::FastDot, Op::Dot, &s, &mut rng);
    // Lengths that ask for all memory.
    let mut huge = vec![0; 17];
    huge.extend([0xff; 16]);
    assert!(matches!(FastSum::<f64>::read(Kind::FastSum, &huge), Err(Error::DamagedState { .. })));
}
