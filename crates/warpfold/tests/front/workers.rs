//! Bytes as they come: at any address, in any pieces, of any length.

use crate::arrays::{Pattern, Random, element};
use crate::devices::DEVICES;
use warpfold::internal::{ForReaders, Workers};
use warpfold::{DType, Device, Error, Op, Reduction};
use warpfold_core::layout::Traversal;
use warpfold_core::op::RawRun;

/// Memory whose elements lie off their alignment by `off` bytes.
struct Bytes {
    words: Vec<u64>,
    off: usize,
    len: usize,
}

impl Bytes {
    fn new(bytes: &[u8], off: usize) -> Bytes {
        let mut words = vec![0u64; bytes.len() / 8 + 3];
        let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        memory[off..off + bytes.len()].copy_from_slice(bytes);
        Bytes { words, off, len: bytes.len() }
    }
    fn get(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[self.off..self.off + self.len]
    }
}

fn elements(dtype: DType, n: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let size = dtype.size();
    (0..n)
        .flat_map(|_| {
            element(dtype, Pattern::Bits, &mut random).to_le_bytes().into_iter().take(size)
        })
        .collect()
}

/// Every operation of `arity` arrays.
fn question(dtype: DType, arity: usize) -> Reduction {
    let ops = Op::ALL.into_iter().filter(|op| op.arity() == arity && op.supports(dtype));
    Reduction::new(ops).device(Device::Cpu)
}

fn taken(asked: &Reduction, dtype: DType, workers: Workers) -> Vec<u8> {
    asked.gather(dtype, workers).unwrap().to_bytes()
}

/// A socket hands over what has come, wherever it lies.
#[test]
fn elements_off_their_alignment_are_absorbed() {
    let n = 10_000;
    for dtype in DType::ALL {
        let size = dtype.size();
        let [left, right] = [1, 2].map(|seed| elements(dtype, n, seed));
        for arity in [1, 2] {
            let asked = question(dtype, arity);
            let feed = |off: usize, cuts: &[usize]| {
                let [items, others] = [Bytes::new(&left, off), Bytes::new(&right, off / 3)];
                let mut workers = asked.workers(dtype, arity).unwrap();
                let mut from = 0;
                for &to in cuts {
                    let range = from * size..to * size;
                    let others = if arity == 2 { &others.get()[range.clone()] } else { &[] };
                    let run = RawRun { start: from as u64, items: &items.get()[range], others };
                    workers.absorb(run).unwrap();
                    from = to;
                }
                taken(&asked, dtype, workers)
            };
            let expected = feed(0, &[n]);
            for off in 1..8 {
                assert!(feed(off, &[n]) == expected, "{asked:?}, {dtype}, {off}");
            }
            assert!(feed(3, &[1, 2, 4999, 5003, n]) == expected, "{asked:?}, {dtype}");
        }
    }
}

/// What cannot be absorbed is an error, and nothing of it is absorbed.
#[test]
fn runs_that_are_none_are_refused() {
    let x = [1.0f64, 2.0, 3.0, 4.0, 5.0];
    let bytes: &[u8] = bytemuck::cast_slice(&x);
    let whole = RawRun { start: 0, items: bytes, others: &[] };
    for &device in DEVICES {
        let sum = Reduction::new([Op::Sum, Op::ArgMax]).device(device);
        let mut workers = sum.workers(DType::F64, 1).unwrap();
        workers.absorb(whole).unwrap();
        let mut refuse = |run: RawRun<'_>, expected: &Error| {
            assert_eq!(workers.absorb(run).as_ref(), Err(expected));
            assert_eq!(workers.absorb_around(run, std::iter::empty()).as_ref(), Err(expected));
        };
        for len in [1, 7, 9, 39] {
            let run = RawRun { start: 5, items: &bytes[..len], others: &[] };
            refuse(run, &Error::PartialElement { bytes: len, dtype: DType::F64 });
        }
        let run = RawRun { start: 5, items: bytes, others: bytes };
        refuse(run, &Error::Arity { op: Op::Sum, takes: 1, given: 2 });
        let run = RawRun { start: u64::MAX - 2, items: bytes, others: &[] };
        refuse(run, &Error::StartTooLarge { start: u64::MAX - 2, len: 5 });
        // A walk over four elements, and one over none.
        for n in [4, 0] {
            let walk = Traversal::new(&[(n, [-8, 0])], true);
            let error = workers.absorb_along(whole, Some(&walk), 0).unwrap_err();
            assert_eq!(error, Error::StartTooLarge { start: 0, len: 5 });
        }
        let error = workers.absorb_from(5, 9, None, 0, |_, _| Ok::<_, ()>(())).unwrap_err();
        assert_eq!(error, Error::PartialElement { bytes: 9, dtype: DType::F64 });
        if device == Device::Cpu {
            let answer = sum.gather(DType::F64, workers).unwrap().finish(sum.rules()).unwrap();
            assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[15.0][..]));
        }
    }
}

/// Once, the kernels read behind the end of a second array that was shorter.
#[test]
fn pairs_of_two_lengths_are_refused() {
    for dtype in DType::ALL.into_iter().filter(|&dtype| Op::Dot.supports(dtype)) {
        let bytes = elements(dtype, 1000, 7);
        let size = dtype.size();
        for &device in DEVICES {
            let dot = Reduction::of(Op::Dot).device(device);
            let Ok(mut workers) = dot.workers(dtype, 2) else { continue };
            for len in [0, 1, 3, 999] {
                let pairs = [(1000, len), (len, 1000)];
                for (left, right) in pairs {
                    let run = RawRun {
                        start: 0,
                        items: &bytes[..left * size],
                        others: &bytes[..right * size],
                    };
                    let error = Error::ShapeMismatch { left: vec![left], right: vec![right] };
                    assert_eq!(workers.absorb(run), Err(error), "{dtype}, {device:?}");
                }
            }
        }
    }
    assert!(warpfold::dot(&[1.0; 9], &[1.0; 8]).is_err());
}

/// Gaps from outside may lie anywhere.
#[test]
fn gaps_beyond_all_positions_do_no_harm() {
    let x = [1.0f64, 2.0, 3.0];
    let items: &[u8] = bytemuck::cast_slice(&x);
    let asked = Reduction::new([Op::Sum, Op::ArgMax, Op::Prod]).device(Device::Cpu);
    for gap in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX / 8, u64::MAX), (2, 0)] {
        let mut workers = asked.workers(DType::F64, 1).unwrap();
        let run = RawRun { start: 1, items, others: &[] };
        // An error or an answer that lacks positions: no panic, no other sum.
        if workers.absorb_around(run, [gap].into_iter()).is_ok() {
            let partial = asked.gather(DType::F64, workers).unwrap();
            if let Ok(answer) = partial.finish(asked.rules()) {
                assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[6.0][..]), "{gap:?}");
            }
        }
    }
}
