//! Another library has changed how this thread's floats round, or what traps.
#![cfg(target_arch = "x86_64")]

use crate::arrays::{Array, Pattern, Random, array};
use crate::thorough::thorough;
use warpfold::internal::ForReaders;
use warpfold::{
    Answer, DType, NanPolicy, Op, Partial, Reduction, Result, Threads, View, bf16, f16,
};
use warpfold_core::op::RawRun;

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
const DOWN: u32 = 0x2000;
const UP: u32 = 0x4000;
/// What is masked: without these bits every exception ends the process,
/// inexact results among them.
const TRAPS: u32 = 0x1f80;
const ENVIRONMENTS: [(&str, u32); 10] = [
    ("flush to zero", FLUSH_TO_ZERO),
    ("denormals are zero", DENORMALS_ARE_ZERO),
    ("both", FLUSH_TO_ZERO | DENORMALS_ARE_ZERO),
    ("downwards", DOWN),
    ("upwards", UP),
    ("towards zero", DOWN | UP),
    ("towards zero, flushed", DOWN | UP | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO),
    ("every trap", TRAPS),
    ("a trap for inexact results", 0x1000),
    ("upwards, flushed, every trap", UP | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO | TRAPS),
];

fn ask(op: Op, x: &Array, y: &Array, out: Option<DType>, nan: NanPolicy) -> Result<Answer> {
    let mut asked = Reduction::of(op).threads(Threads::Exactly(1)).nan(nan);
    if let Some(out) = out {
        asked = asked.out(out);
    }
    if op.arity() == 2 { asked.run_pair(x.view(), y.view()) } else { asked.run(x.view()) }
}

#[test]
fn answers_do_not_depend_on_the_environment() {
    let mut random = Random::new(61);
    for dtype in DType::ALL {
        for pattern in [Pattern::Tiny, Pattern::Plain, Pattern::Finite, Pattern::Bits] {
            for n in [1, 5, 1000, 10_000] {
                // Many elements of each pattern, or of every other in its turn.
                let in_turn = (dtype as usize + pattern as usize).is_multiple_of(2);
                if n > 1000 && !in_turn && !thorough() {
                    continue;
                }
                let x = array(dtype, &[n], pattern, &mut random);
                let y = array(dtype, &[n], pattern, &mut random);
                for op in Op::ALL.into_iter().filter(|op| op.supports(dtype)) {
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
            [warpfold::sum(&small), warpfold::mean(&small), warpfold::var(&small, 0)]
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

#[test]
fn products_are_the_same_in_every_environment() {
    fn check<T: warpfold::FloatNumber>(x: &[T]) {
        let usual = warpfold::prod(x).bits();
        for (name, bits) in ENVIRONMENTS {
            assert_eq!(with_mxcsr(bits, || warpfold::prod(x)).bits(), usual, "{name}");
        }
    }
    let x: Vec<f64> = (0..9000).map(|i| 1.0 + f64::from(i % 97 - 48) * 1e-3).collect();
    check(&x);
    check(&x.iter().map(|&x| x as f32).collect::<Vec<_>>());
    check(&x.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>());
    check(&x.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>());
    // Subnormals that cancel large ones.
    let x: Vec<f32> = (0..5000).map(|i| if i % 2 == 0 { 1e-40 } else { 1e38 }).collect();
    check(&x);
    let x: Vec<f64> = (0..5000).map(|i| if i % 2 == 0 { 3e-310 } else { 3e307 }).collect();
    check(&x);
}

/// What rounds on the way, over elements for which rounding matters.
fn rounding() -> Vec<Reduction> {
    [Op::Prod, Op::LogSumExp].map(Reduction::of).into()
}

fn numbers(n: usize) -> Vec<f64> {
    let mut random = Random::new(5);
    (0..n).map(|_| (random.unit() - 0.5) * 3.0).collect()
}

/// Threads have an environment of their own, which a thread that is started
/// takes from the one that starts it: here, each pool is made in a changed one.
#[test]
fn threads_that_begin_in_a_changed_environment_answer_the_same() {
    let x = numbers(1 << 20);
    let table = View::of_strided(&x, 0, &[1024, 1024], &[1024, 1]).unwrap();
    for asked in rounding() {
        let usual = asked.clone().threads(Threads::Exactly(1)).partial(&x, 0).unwrap().to_bytes();
        let rows = asked.clone().axis(1).run(&table).unwrap();
        let mut threads = 2;
        for (name, bits) in ENVIRONMENTS {
            // One more each time: the pool is made anew.
            threads += 1;
            let asked = asked.clone().threads(Threads::Exactly(threads));
            let (whole, each) =
                with_mxcsr(bits, || (asked.partial(&x, 0), asked.clone().axis(1).run(&table)));
            assert!(whole.unwrap().to_bytes() == usual, "{asked:?}, {name}");
            assert_eq!(each.unwrap(), rows, "{asked:?}, {name}");
        }
    }
}

/// What a stream does: runs into workers, states to bytes and back, merged and
/// finished.
#[test]
fn streams_and_states_do_not_depend_on_the_environment() {
    let x = numbers(20_000);
    let bytes: &[u8] = bytemuck::cast_slice(&x);
    for asked in rounding() {
        let answer = || -> Result<(Vec<u8>, Answer)> {
            let mut whole: Option<Partial> = None;
            for (i, piece) in bytes.chunks(8 * 3001).enumerate() {
                let mut workers = asked.workers(DType::F64, 1)?;
                let start = i as u64 * 3001;
                workers.absorb(RawRun { start, items: piece, others: &[] })?;
                let partial = asked.gather(DType::F64, workers)?.to_bytes();
                let partial = Partial::from_bytes(&partial)?;
                match &mut whole {
                    None => whole = Some(partial),
                    Some(whole) => whole.merge(&partial)?,
                }
            }
            let whole = whole.unwrap();
            Ok((whole.to_bytes(), whole.finish(asked.rules())?))
        };
        let usual = answer();
        assert!(usual.is_ok());
        for (name, bits) in ENVIRONMENTS {
            assert_eq!(with_mxcsr(bits, answer), usual, "{asked:?}, {name}");
        }
    }
}

/// The environment is the caller's again afterwards.
#[test]
fn the_environment_comes_back() {
    let x = numbers(5000);
    for (name, bits) in ENVIRONMENTS {
        let mxcsr = with_mxcsr(bits, || {
            let _ = (warpfold::prod(&x), warpfold::sum(&x), warpfold::min(&[0.0f64; 0]));
            let mut now = 0u32;
            // SAFETY: stores four bytes where there are four.
            unsafe { core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut now, options(nostack)) };
            now
        });
        assert_eq!(mxcsr & 0xffc0, 0x1f80 ^ bits, "{name}");
    }
}
