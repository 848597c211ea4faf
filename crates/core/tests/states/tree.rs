//! What every fixed tree does, shown by products: runs in any order, nodes from
//! elsewhere, missing elements, gaps, overlaps and damage.

use crate::tree_support::*;
use warpfold_core::element::{Element, bf16, f16};
use warpfold_core::op::tree::{BLOCK, FixedTree, TreeOp};
use warpfold_core::op::{FloatElement, FloatProd, Kind, Run, State};
use warpfold_core::{Error, Op, Rules, Scalar};

type P = warpfold_core::op::prod::Factors<f64>;

/// Factors whose products stay near 1, where every bit shows.
fn factors(n: usize, rng: &mut Rng) -> Vec<f64> {
    let mut last = 1.0;
    (0..n)
        .map(|i| {
            last = if i % 2 == 0 { 1.0 + rng.unit() } else { 1.0 / last };
            last
        })
        .collect()
}

#[test]
fn splits_and_merges_do_not_show() {
    let mut rng = Rng(2);
    for n in SIZES {
        for _ in 0..6 {
            let mut x = factors(n, &mut rng);
            if n > 0 && rng.below(3) == 0 {
                x[rng.below(n)] = f64::NAN;
                x[rng.below(n)] = f64::INFINITY;
            }
            let expected = bytes(&whole::<FloatProd<f64>>(Kind::Prod, &x, &[]));
            let got = scattered::<FloatProd<f64>>(Kind::Prod, &x, &[], &mut rng);
            assert_eq!(bytes(&got), expected);
        }
    }
}

#[test]
fn single_elements_backwards_are_the_same_state() {
    let mut rng = Rng(3);
    let x = factors(2 * BLOCK + 77, &mut rng);
    let mut state = FloatProd::<f64>::new();
    for i in (0..x.len()).rev() {
        state.absorb(run(&x, &[], i, i + 1));
    }
    assert_eq!(bytes(&state), bytes(&whole::<FloatProd<f64>>(Kind::Prod, &x, &[])));
}

#[test]
fn the_root_without_a_state_is_the_root() {
    let mut rng = Rng(4);
    for n in SIZES {
        let x = factors(n, &mut rng);
        let root = FixedTree::<P>::root_of(&x, P::leaf);
        let value = P::value(&root, n as u64, Op::Prod, &Rules::default());
        assert_eq!(
            value,
            whole::<FloatProd<f64>>(Kind::Prod, &x, &[]).finish(Op::Prod, &Rules::default())
        );
    }
}

#[test]
fn a_backend_s_leaf_is_used_for_whole_blocks() {
    let mut x = vec![1.0f64; 3 * BLOCK + 5];
    x[7] = 3.0;
    x[3 * BLOCK + 1] = 7.0;
    let calls = std::cell::Cell::new(0);
    let mut state = FloatProd::<f64>::new();
    state.absorb_with(Run { start: 0, items: &x, others: &[] }, |a| {
        calls.set(calls.get() + 1);
        assert_eq!(a.len(), BLOCK);
        P::leaf(a)
    });
    assert_eq!(calls.get(), 3);
    assert_eq!(answer(&state, Op::Prod), Scalar::F64(21.0));
}

#[test]
fn nodes_from_elsewhere_are_the_same_nodes() {
    let x = factors(5 * BLOCK + 3, &mut Rng(8));
    let leaf = |b: usize| P::leaf(&x[b * BLOCK..(b + 1) * BLOCK]);
    let mut state = FloatProd::<f64>::new();
    state.absorb(run(&x, &[], 4 * BLOCK, x.len()));
    state.absorb_node(1, 1, P::combine(&leaf(2), &leaf(3)));
    state.absorb_node(0, 1, leaf(1));
    state.absorb_node(0, 0, leaf(0));
    assert_eq!(bytes(&state), bytes(&whole::<FloatProd<f64>>(Kind::Prod, &x, &[])));
    state.absorb_node(1, 0, leaf(0));
    assert_eq!(state.finish(Op::Prod, &Rules::default()), Err(Error::Overlap { at: 0 }));
    for (level, index) in [(0, u64::MAX), (52, 0), (64, 0), (0, (1 << 52) - 1), (51, 1)] {
        let mut outside = FloatProd::<f64>::new();
        outside.absorb_node(level, index, leaf(0));
        assert!(matches!(outside.finish(Op::Prod, &Rules::default()), Err(Error::Overlap { .. })));
    }
}

#[test]
fn missing_elements_count_for_nothing() {
    let mut rng = Rng(5);
    for n in [10usize, 4096, 5000, 20000, 70000] {
        for _ in 0..10 {
            let from = rng.below(n);
            let to = from + rng.below(n - from + 1);
            let mut x = factors(n, &mut rng);
            x[from..to].fill(1.0);
            let mut a = FloatProd::<f64>::new();
            a.absorb(run(&x, &[], 0, from));
            let mut b = FloatProd::<f64>::new();
            b.skip(from as u64, (to - from) as u64);
            b.absorb(run(&x, &[], to, n));
            if rng.below(2) == 0 {
                core::mem::swap(&mut a, &mut b);
            }
            b.merge(&a).unwrap();
            let filled: FloatProd<f64> = whole(Kind::Prod, &x, &[]);
            assert_eq!(answer(&b, Op::Prod), answer(&filled, Op::Prod));
            assert_eq!(bytes(&FloatProd::<f64>::read(Kind::Prod, &bytes(&b)).unwrap()), bytes(&b));
        }
    }
    // A column of nothing but nulls, longer than memory.
    let mut nulls = FloatProd::<f32>::new();
    nulls.skip(0, (1 << 45) + 3);
    assert_eq!(nulls.finish(Op::Prod, &Rules::new()), one(Scalar::F32(1.0)));
}

#[test]
fn gaps_and_overlaps_are_errors() {
    let x = vec![1.0f64; 20000];
    let part = |from, to| {
        let mut s = FloatProd::<f64>::new();
        s.absorb(run(&x, &[], from, to));
        s
    };
    let rules = Rules::default();
    let gap = |s: &FloatProd<f64>, from, to| {
        assert_eq!(s.finish(Op::Prod, &rules), Err(Error::Gap { from, to }))
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
                matches!(s.finish(Op::Prod, &rules), Err(Error::Overlap { at: found }) if found as usize >= at && (found as usize) < a)
            );
            let s = FloatProd::<f64>::read(Kind::Prod, &bytes(&s)).unwrap();
            assert!(matches!(s.finish(Op::Prod, &rules), Err(Error::Overlap { .. })));
        }
    }
    let mut end = FloatProd::<f64>::new();
    end.absorb(Run { start: u64::MAX - 1, items: &x[..5], others: &[] });
    assert_eq!(end.finish(Op::Prod, &rules), Err(Error::Overlap { at: u64::MAX - 1 }));
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
    let x = factors(3 * BLOCK + 9, &mut rng);
    for (from, to) in [(0, x.len()), (5, 9000), (4095, 4100), (0, 0)] {
        let mut s = FloatProd::<f64>::new();
        s.absorb(run(&x, &[], from, to));
        s.skip(20000, 17);
        survive_damage(Kind::Prod, Op::Prod, &s, &mut rng);
    }
    // Lengths that ask for all memory.
    let mut huge = vec![0; 17];
    huge.extend([0xff; 16]);
    assert!(matches!(FloatProd::<f64>::read(Kind::Prod, &huge), Err(Error::DamagedState { .. })));
}
