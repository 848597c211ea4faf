//! Random splits of arrays and damaged byte forms.

pub(crate) mod oracle;

use warpfold_core::op::{Kind, Op, Rules, Run, State};
use warpfold_core::{Error, Scalar, Value};

/// Sizes around every boundary of the tree, primes, and more.
pub(crate) const SIZES: [usize; 22] = [
    0, 1, 2, 3, 63, 64, 65, 127, 129, 997, 4095, 4096, 4097, 8191, 8192, 8193, 12287, 12289, 16384,
    19997, 20000, 36865,
];

/// A small generator, good enough to choose tests.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub(crate) fn run<'a, T>(items: &'a [T], others: &'a [T], from: usize, to: usize) -> Run<'a, T> {
    let others = if others.is_empty() { others } else { &others[from..to] };
    Run { start: from as u64, items: &items[from..to], others }
}

pub(crate) fn whole<S: State>(kind: Kind, items: &[S::Item], others: &[S::Item]) -> S {
    let mut state = S::identity(kind);
    state.absorb(run(items, others, 0, items.len()));
    state
}

pub(crate) fn bytes<S: State>(state: &S) -> Vec<u8> {
    let mut out = Vec::new();
    state.write(&mut out);
    out
}

/// Cuts the array at random places, has random states absorb the pieces in
/// random order, and merges the states in random order.
pub(crate) fn scattered<S: State>(
    kind: Kind,
    items: &[S::Item],
    others: &[S::Item],
    rng: &mut Rng,
) -> S {
    let n = items.len();
    let mut cuts: Vec<usize> = (0..rng.below(30)).map(|_| rng.below(n + 1)).collect();
    // Block boundaries, and places next to them, matter most.
    cuts.extend((0..rng.below(8)).map(|_| (4096 * rng.below(n / 4096 + 2)).min(n)));
    cuts.extend((0..rng.below(4)).map(|_| (4096 * rng.below(n / 4096 + 2) + 1).min(n)));
    cuts.extend([0, n]);
    cuts.sort_unstable();
    let mut pieces: Vec<_> = cuts.windows(2).map(|w| (w[0], w[1])).collect();
    let mut states: Vec<S> = (0..1 + rng.below(6)).map(|_| S::identity(kind)).collect();
    while !pieces.is_empty() {
        let (from, to) = pieces.swap_remove(rng.below(pieces.len()));
        let s = rng.below(states.len());
        states[s].absorb(run(items, others, from, to));
    }
    while states.len() > 1 {
        let a = states.swap_remove(rng.below(states.len()));
        let b = rng.below(states.len());
        // The byte form is on the way of every partial result.
        let a = S::read(kind, &bytes(&a)).expect("a state that was just written");
        states[b].merge(&a).expect("disjoint states merge");
    }
    states.remove(0)
}

pub(crate) fn answer<S: State>(state: &S, op: Op) -> Scalar {
    state.finish(op, &Rules::default()).expect("a value").first()
}

pub(crate) fn one(scalar: Scalar) -> Result<Value, Error> {
    Ok(Value::One(scalar))
}

/// Damages a byte form in every way a file can be, and reads it: an error or
/// a state that works, never a panic.
pub(crate) fn survive_damage<S: State>(kind: Kind, op: Op, state: &S, rng: &mut Rng) {
    let good = bytes(state);
    let mut absorbable = vec![<S::Item as warpfold_core::Element>::from_bits(1); 100];
    absorbable[7] = <S::Item as warpfold_core::Element>::from_bits(0);
    for round in 0..3000 {
        let mut bad = good.clone();
        match round % 5 {
            0 => bad.truncate(rng.below(bad.len() + 1)),
            1 => bad.extend((0..1 + rng.below(40)).map(|_| rng.next() as u8)),
            2 => bad = (0..rng.below(200)).map(|_| rng.next() as u8).collect(),
            3 => bad = (0..rng.below(200)).map(|_| (rng.next() % 3) as u8).collect(),
            _ => {
                for _ in 0..1 + rng.below(3) {
                    let i = rng.below(bad.len());
                    bad[i] = [0, 1, 0xff, 0x80, rng.next() as u8][rng.below(5)];
                }
            }
        }
        match S::read(kind, &bad) {
            Err(e) => assert!(matches!(e, Error::DamagedState { .. }), "{e}"),
            Ok(mut s) => {
                assert_eq!(bytes(&s), bad, "read and written differ");
                let _ = s.finish(op, &Rules::default());
                let others: &[_] = if op.arity() == 2 { &absorbable } else { &[] };
                s.absorb(Run { start: rng.next() >> rng.below(64), items: &absorbable, others });
                s.skip(rng.next() >> rng.below(64), rng.next() >> rng.below(64));
                let _ = s.merge(state);
                let _ = s.finish(op, &Rules::default());
            }
        }
    }
    assert_eq!(bytes(&S::read(kind, &good).expect("the undamaged state")), good);
}
