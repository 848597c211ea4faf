//! Every kernel, on every instruction set this machine has, against the
//! element-by-element reference of the same state: equal payloads, byte for
//! byte.

use crate::thorough::{seed, thorough};
use fastrand::Rng;
use warpfold_core::element::bf16;
use warpfold_core::op::{AnyState, Kind, RawRun, Run, State};
use warpfold_core::{DType, Element, with_element, with_state};
use warpfold_cpu::Worker;
use warpfold_cpu::isa::Isa;

/// Data that has broken such kernels.
const PATTERNS: [&str; 13] = [
    "uniform",
    "signed",
    "random bits",
    "finite bits",
    "wide",
    "sparse",
    "zeros",
    "negative zeros",
    "specials",
    "top of the window",
    "one huge",
    "subnormal",
    "ramp",
];

fn from_f64<T: Element>(x: f64) -> T {
    let bits = match T::DTYPE {
        DType::F64 => x.to_bits(),
        DType::F32 => u64::from((x as f32).to_bits()),
        DType::F16 => u64::from(warpfold_core::element::f16::from_f64(x).to_bits()),
        DType::BF16 => u64::from(warpfold_core::element::bf16::from_f64(x).to_bits()),
        _ => (x * 100.0) as i64 as u64,
    };
    T::from_bits(bits)
}

fn make<T: Element>(pattern: &str, n: usize, random: &mut Rng) -> Vec<T> {
    let infinity: T = from_f64(f64::INFINITY);
    let finite = |x: T| {
        let special = T::DTYPE.is_float() && x.without_sign() >= infinity.without_sign();
        if special { T::from_bits(0) } else { x }
    };
    (0..n)
        .map(|i| match pattern {
            "uniform" => from_f64(random.f64()),
            "signed" => from_f64(random.f64() * 4.0 - 2.0),
            "random bits" => T::from_bits(random.u64(..)),
            "finite bits" => finite(T::from_bits(random.u64(..))),
            "wide" => {
                let e = (random.u64(..) % 600) as i32 - 300;
                finite(from_f64((random.f64() - 0.5) * 2f64.powi(e)))
            }
            "sparse" if !random.u64(..).is_multiple_of(100) => T::from_bits(0),
            "sparse" => from_f64(random.f64() - 0.5),
            "zeros" => T::from_bits(0),
            "negative zeros" => from_f64(-0.0),
            "specials" => match random.u64(..) % 50 {
                0 => from_f64(f64::NAN),
                1 => from_f64(f64::INFINITY),
                2 => from_f64(f64::NEG_INFINITY),
                3 => from_f64(-f64::NAN),
                _ => from_f64(random.f64()),
            },
            // All equal and just below a power of two: 2^H of them reach the
            // end of the binade.
            "top of the window" => from_f64(1.0 - f64::EPSILON / 2.0),
            "one huge" if i == n / 2 => finite(T::from_bits(infinity.bits().wrapping_sub(1))),
            "one huge" => from_f64(2f64.powi(-1000) * random.f64()),
            "subnormal" => T::from_bits(random.u64(..) & 0x3f),
            _ => from_f64(i as f64 * 1.25 - 300.0),
        })
        .collect()
}

fn reference(kind: Kind, dtype: DType, run: RawRun<'_>) -> Option<AnyState> {
    with_state!(kind, dtype,
        S => {
            let mut state = <S as State>::identity(kind);
            let run: Run<'_, <S as State>::Item> = run.typed().unwrap();
            state.absorb(run);
            Some(AnyState::from(state))
        },
        else => None)
}

fn available() -> impl Iterator<Item = Isa> {
    Isa::available()
}

fn check(kind: Kind, dtype: DType, n: usize, pattern: &str, random: &mut Rng) {
    with_element!(dtype, T => {
        let items: Vec<T> = make(pattern, n, random);
        let others: Vec<T> = make(pattern, n, random);
        let paired = kind.takes_pairs();
        let run = RawRun {
            start: 0,
            items: bytemuck::cast_slice(&items),
            others: if paired { bytemuck::cast_slice(&others) } else { &[] },
        };
        let Some(expected) = reference(kind, dtype, run) else { return };
        let expected = expected.payload();
        for isa in available() {
            let mut worker = Worker::new(kind, dtype, isa).unwrap();
            // Two runs, so that the second one meets a tuned worker.
            let cut = n / 3 / 4096 * 4096;
            let size = dtype.size();
            for (from, to) in [(0, cut), (cut, n)] {
                worker.absorb(RawRun {
                    start: from as u64,
                    items: &run.items[from * size..to * size],
                    others: if paired { &run.others[from * size..to * size] } else { &[] },
                })
                .unwrap();
            }
            let got = worker.into_state().payload();
            assert!(got == expected, "{kind:?} of {n} {dtype}, {pattern}, {isa:?}");
        }
    });
}

/// Checks one run of one kind against the reference.
fn check_run<T: Element>(kind: Kind, items: &[T], note: &str) {
    let bytes = bytemuck::cast_slice(items);
    let others = if kind == Kind::Dot { bytes } else { &[] };
    let run = RawRun { start: 0, items: bytes, others };
    let expected = reference(kind, T::DTYPE, run).unwrap().payload();
    for isa in available() {
        let mut worker = Worker::new(kind, T::DTYPE, isa).unwrap();
        worker.absorb(run).unwrap();
        assert!(worker.into_state().payload() == expected, "{kind:?}, {isa:?}, {note}");
    }
}

#[test]
fn kernels_equal_the_reference() {
    let mut random = Rng::with_seed(seed(0x9e37_79b9_7f4a_7c15));
    for kind in Kind::ALL {
        for dtype in DType::ALL {
            for (turn, pattern) in PATTERNS.into_iter().enumerate() {
                for n in [0, 1, 2, 3, 7, 8, 9, 31, 33, 64, 100, 1000, 4097] {
                    check(kind, dtype, n, pattern, &mut random);
                }
                // Many elements of every pattern, or of every third in its turn.
                if thorough() || (turn + kind as usize + dtype as usize).is_multiple_of(3) {
                    check(kind, dtype, 20_011, pattern, &mut random);
                }
            }
        }
    }
}

#[test]
fn the_window_survives_terms_that_leave_and_come_back() {
    // A value that takes the sum out of the anchor's binade and another that
    // brings it back: only the collected bits show it.
    let mut items = vec![1.0f64; 8192];
    items[100] = 1e30;
    items[612] = -1e30;
    items[5000] = 3e-200;
    check_run(Kind::Sum, &items, "there and back");
}

#[test]
fn the_range_certificate_holds_at_its_edge() {
    // Spreads around 24 binades with full significands on both sides.
    for spread in 20u32..30 {
        let big = f32::from_bits(0x3fff_ffff);
        let small = f32::from_bits(0x3fff_ffff - (spread << 23));
        let items: Vec<f32> = (0..4096).map(|i| if i % 3 == 0 { small } else { big }).collect();
        check_run(Kind::Sum, &items, &format!("{spread} binades"));
        // The certificate compares fractions, too: a larger one on the small
        // side is what brings it to its edge. Enough of the large ones that
        // sums of 32 reach their bound.
        let big = f32::from_bits(0x3fff_fffd);
        let mut random = Rng::with_seed(seed(u64::from(spread)));
        let items: Vec<f32> =
            (0..4096).map(|_| if random.u64(..).is_multiple_of(5) { small } else { big }).collect();
        check_run(Kind::Sum, &items, &format!("{spread} binades, at the edge"));
    }
}

#[test]
fn the_certificate_of_bf16_holds_at_its_edge() {
    // Lanes of 64 elements: all the largest but for one at the other end, of the smallest
    // odd fraction.
    for spread in 30u32..48 {
        for fraction in [0u16, 1, 0x7f] {
            let big = bf16::from_bits(0x4b7f);
            let small = bf16::from_bits((0x4b00 - ((spread as u16) << 7)) | fraction);
            let mut random = Rng::with_seed(seed(u64::from(spread)));
            let mut items = vec![big; 8192];
            items.iter_mut().for_each(|x| {
                if random.usize(..50) == 0 {
                    *x = small;
                }
            });
            for kind in [Kind::Sum, Kind::AbsSum, Kind::SquareSum, Kind::Moments] {
                check_run(kind, &items, &format!("{spread} binades"));
            }
        }
    }
}

#[test]
fn products_that_underflow_are_not_lost() {
    // 2^-600 * 2^-600 is below f64's last bit; 2^-530 * 2^-530 with odd
    // significands has an error below it.
    for exponent in [600, 540, 530, 500, 490, 480, 470] {
        let x = 2f64.powi(-exponent) * (1.0 + f64::EPSILON);
        let mut items = vec![0.0; 1000];
        items[123] = x;
        items[877] = x;
        for kind in [Kind::Dot, Kind::SquareSum] {
            check_run(kind, &items, &format!("2^-{exponent}"));
        }
    }
}

#[test]
fn half_an_ulp_again_and_again_stays_in_the_window() {
    // Every element leaves the same residue for the next level, as large as
    // residues get, for as many elements as an anchor takes.
    for top in [1.0f64, -1.0] {
        for low in -110..-30 {
            let items = [top + top * 2f64.powi(low.max(-52)), top * 2f64.powi(low)];
            check_run(Kind::Sum, &items.repeat(6000), &format!("2^{low}"));
        }
    }
}

#[test]
fn errors_of_products_may_add_to_the_residues() {
    // Products p + e whose p leaves half a unit of the first level again and
    // again (a tie, to even, downwards), and whose e has the same sign: the
    // second level gets more than half a unit from every add.
    let mut random = Rng::with_seed(seed(0x5eed));
    let (mut left, mut right) = (Vec::new(), Vec::new());
    while left.len() < 4 {
        // 53 bits, and a top of the window 2 binades above: a unit is 2^12.
        let p = u128::from(1 << 52 | random.u64(..) >> 12 & !0x1fff | 0x800);
        let b = (1u128 << 53) - 1 - u128::from(random.u64(..) & 0xffff);
        let a = (p << 53).div_ceil(b);
        let e = a * b - (p << 53);
        if a >> 53 == 0 && e > 3 << 50 && e < 1 << 52 {
            left.push(a as f64);
            right.push(b as f64);
        }
    }
    for (&a, &b) in left.iter().zip(&right) {
        for sign in [1.0, -1.0] {
            let (a, b) = (vec![a * sign; 20_000], vec![b; 20_000]);
            let items = bytemuck::cast_slice(&a);
            let run = RawRun { start: 0, items, others: bytemuck::cast_slice(&b) };
            let expected = reference(Kind::Dot, DType::F64, run).unwrap().payload();
            for isa in available() {
                let mut worker = Worker::new(Kind::Dot, DType::F64, isa).unwrap();
                worker.absorb(run).unwrap();
                assert!(worker.into_state().payload() == expected, "{isa:?}");
            }
        }
    }
}
