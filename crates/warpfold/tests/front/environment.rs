//! Another library has changed how this thread's floats round.
#![cfg(target_arch = "x86_64")]

use crate::arrays::{Array, Pattern, Random, array};
use warpfold::{Answer, DType, NanPolicy, Op, Reduction, Result, Threads};

/// Runs `f` with MXCSR's control bits changed by `xor`.
fn with_mxcsr<R>(xor: u32, f: impl FnOnce() -> R) -> R {
    let mut old = 0u32;
    // SAFETY: stores four bytes where there are four.
    unsafe { core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut old, options(nostack)) };
    let new = old ^ xor;
    // SAFETY: control bits only; the old value is put back below.
    unsafe { core::arch::asm!("ldmxcsr [{}]", in(reg) &raw const new, options(nostack)) };
    let result = f();
    // SAFETY: the register's own value.
    unsafe { core::arch::asm!("ldmxcsr [{}]", in(reg) &raw const old, options(nostack)) };
    result
}

const FLUSH_TO_ZERO: u32 = 0x8000;
const DENORMALS_ARE_ZERO: u32 = 0x0040;
const ENVIRONMENTS: [(&str, u32); 6] = [
    ("flush to zero", FLUSH_TO_ZERO),
    ("denormals are zero", DENORMALS_ARE_ZERO),
    ("both", FLUSH_TO_ZERO | DENORMALS_ARE_ZERO),
    ("downwards", 0x2000),
    ("upwards", 0x4000),
    ("towards zero, flushed", 0x6000 | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO),
];

/// All that is promised exactly: everything but `prod` and `logsumexp` of
/// floats.
const EXACT: [Op; 23] = [
    Op::Sum,
    Op::Mean,
    Op::Norm1,
    Op::Norm2,
    Op::NormInf,
    Op::SumSq,
    Op::Var,
    Op::Std,
    Op::Min,
    Op::Max,
    Op::MinMax,
    Op::Range,
    Op::ArgMin,
    Op::ArgMax,
    Op::ArgMinMax,
    Op::Any,
    Op::All,
    Op::Count,
    Op::CountNonzero,
    Op::CountNan,
    Op::And,
    Op::Or,
    Op::Xor,
];

fn ask(op: Op, x: &Array, y: &Array, out: Option<DType>, nan: NanPolicy) -> Result<Answer> {
    let mut asked = Reduction::of(op).threads(Threads::Exactly(1)).nan(nan);
    if let Some(out) = out {
        asked = asked.out(out);
    }
    if op.arity() == 2 { asked.run_pair(x.view(), y.view()) } else { asked.run(x.view()) }
}

#[test]
fn exact_answers_do_not_depend_on_the_environment() {
    let mut random = Random(61);
    for dtype in DType::ALL {
        for pattern in [Pattern::Tiny, Pattern::Plain, Pattern::Finite, Pattern::Bits] {
            for n in [1, 5, 1000, 10_000] {
                let x = array(dtype, &[n], pattern, &mut random);
                let y = array(dtype, &[n], pattern, &mut random);
                for op in EXACT.into_iter().chain([Op::Dot]).filter(|op| op.supports(dtype)) {
                    let out = random.pick(&[None, Some(DType::F32), Some(DType::F64)]);
                    let nan = random.pick(&[NanPolicy::Propagate, NanPolicy::Omit]);
                    let usual = ask(op, &x, &y, out, nan);
                    for (name, bits) in ENVIRONMENTS {
                        let changed = with_mxcsr(bits, || ask(op, &x, &y, out, nan));
                        assert_eq!(changed, usual, "{op} of {n} {dtype} {pattern:?}, {name}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_functions_too() {
    let tiny: Vec<f64> =
        (0..3000).map(|i| f64::from_bits(i % 7) * if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
    let small: Vec<f32> = (0..3000).map(|i| f32::from_bits(i % 7)).collect();
    let ask = || {
        (
            [
                warpfold::sum(&tiny),
                warpfold::mean(&tiny),
                warpfold::norm1(&tiny),
                warpfold::norm2(&tiny),
            ]
            .map(f64::to_bits),
            [warpfold::sum(&small), warpfold::mean(&small), warpfold::var(&small)]
                .map(f32::to_bits),
            [warpfold::min(&tiny), warpfold::max(&tiny)].map(|x| x.unwrap().to_bits()),
            [warpfold::argmin(&tiny), warpfold::argmax(&tiny)],
            warpfold::count_nonzero(&tiny),
            warpfold::dot(&tiny, &vec![1.0; 3000]).unwrap().to_bits(),
            warpfold::mean(&[i64::MAX, i64::MAX - 1]).to_bits(),
        )
    };
    let usual = ask();
    assert!(usual.0[0] != 0 && usual.4 > 2000);
    for (name, bits) in ENVIRONMENTS {
        assert_eq!(with_mxcsr(bits, ask), usual, "{name}");
    }
}

/// Their order is fixed but their arithmetic is the processor's: no panic, and
/// under flush-to-zero still the same product.
#[test]
fn products_survive_flushing() {
    let x: Vec<f32> = (0..5000).map(|i| if i % 2 == 0 { 1e-40 } else { 1e38 }).collect();
    let usual = warpfold::prod(&x);
    for bits in [FLUSH_TO_ZERO, DENORMALS_ARE_ZERO, FLUSH_TO_ZERO | DENORMALS_ARE_ZERO] {
        assert_eq!(with_mxcsr(bits, || warpfold::prod(&x)).to_bits(), usual.to_bits());
    }
}
