//! The same question on the CPU and on a device: equal answers and equal states,
//! bit for bit. On the interpreter, and on the GPU if there is one.

use crate::arrays::Random;
use crate::thorough::{thorough, up_to};
use warpfold::internal::{AnyState, ForReaders, Workers};
use warpfold::{DType, Device, Error, NanPolicy, Op, Partial, Reduction, Rules, Threads, View};
use warpfold_core::op::RawRun;

/// What arrays are made of.
#[derive(Clone, Copy, Debug)]
enum Data {
    /// Any bits: NaNs, infinities, subnormals and what an exponent can be.
    Bits,
    /// Numbers between -4 and 4, as integers or floats.
    Small,
    /// Zeros of both signs, for floats.
    Zeros,
}

/// `len` elements, in memory that suits every type.
fn words(dtype: DType, len: usize, data: Data, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed | 1);
    let size = dtype.size();
    let mut words = vec![0u64; (len * size).div_ceil(8)];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    for to in bytes.chunks_exact_mut(size).take(len) {
        let bits = random.next();
        let x = (bits >> 11) as f64 / (1u64 << 50) as f64 - 4.0;
        let value = match (data, dtype) {
            (Data::Bits, _) => bits,
            (Data::Zeros, _) if !dtype.is_float() => 0,
            (Data::Zeros, _) => (bits & 1) << (8 * size - 1),
            (Data::Small, DType::F64) => x.to_bits(),
            (Data::Small, DType::F32) => u64::from((x as f32).to_bits()),
            (Data::Small, DType::F16) => u64::from(warpfold::f16::from_f64(x).to_bits()),
            (Data::Small, DType::BF16) => u64::from(warpfold::bf16::from_f64(x).to_bits()),
            (Data::Small, DType::Bool) => bits & 1,
            (Data::Small, _) => x as i64 as u64,
        };
        to.copy_from_slice(&value.to_le_bytes()[..size]);
    }
    words
}

fn bytes(words: &[u64], dtype: DType, len: usize) -> &[u8] {
    &bytemuck::cast_slice(words)[..len * dtype.size()]
}

/// Whether a device has kernels for a question; if not, it says which it lacks.
fn has(device: Device, question: &Reduction, dtype: DType, arrays: usize) -> bool {
    match question.clone().device(device).check_type(dtype, arrays) {
        Ok(()) => true,
        Err(Error::Device { what, hint }) => {
            let op = question.ops()[0].to_string();
            for part in [&*device.to_string(), &op, dtype.name()] {
                assert!(what.contains(part), "{part} is not in: {what}");
            }
            assert!(hint.contains("--device cpu"), "{hint}");
            false
        }
        Err(other) => panic!("{other}"),
    }
}

fn states(partial: &Partial) -> Vec<Vec<u8>> {
    partial.states().iter().flatten().map(AnyState::to_bytes).collect()
}

/// Asks the CPU and a device: answers under several rules, and states.
#[track_caller]
fn compare(device: Device, question: &Reduction, views: &[View<'_>], start: u64) {
    let here = question.clone().device(Device::Cpu);
    let there = question.clone().device(device);
    let ask = |question: &Reduction| match views {
        [a, b] => (question.run_pair(a, b), question.partial_pair(a, b, start)),
        [a] => (question.run(a), question.partial(a, start)),
        _ => panic!("one array or two"),
    };
    let ((answer, partial), (expected, expected_partial)) = (ask(&there), ask(&here));
    let what = || format!("{:?} of {:?} on {device}", question.ops(), views[0]);
    // Bits, as NaNs are not equal to themselves.
    match (&answer, &expected) {
        (Ok(answer), Ok(expected)) => {
            assert_eq!(answer.shape(), expected.shape(), "{}", what());
            for (a, b) in answer.columns().iter().zip(expected.columns()) {
                assert_eq!(a.numbers.bytes(), b.numbers.bytes(), "{}", what());
                assert_eq!(a.numbers.dtype(), b.numbers.dtype(), "{}", what());
                let second = |c: &warpfold::Column| c.second.as_ref().map(|s| s.bytes().to_vec());
                assert_eq!(second(a), second(b), "{}", what());
            }
        }
        _ => assert_eq!(answer.as_ref().err(), expected.as_ref().err(), "{}", what()),
    }
    match (partial, expected_partial) {
        (Ok(partial), Ok(expected)) => {
            assert!(states(&partial) == states(&expected), "states of {}", what());
            assert_eq!(partial.to_bytes(), expected.to_bytes());
        }
        (partial, expected) => assert_eq!(partial.err(), expected.err(), "{}", what()),
    }
}

/// Every operation over every type, at sizes around the blocks of everything.
fn every_operation(device: Device, sizes: &[usize], datas: &[Data]) -> usize {
    let mut asked = 0;
    for dtype in DType::ALL {
        for op in Op::ALL.into_iter().filter(|op| op.supports(dtype)) {
            let question = Reduction::of(op);
            if !has(device, &question, dtype, op.arity()) {
                continue;
            }
            asked += 1;
            for (i, &len) in sizes.iter().enumerate() {
                let data = datas[(i + asked) % datas.len()];
                let seed = (len + asked) as u64;
                let a = words(dtype, len, data, seed);
                let b = words(dtype, len, data, seed + 1000);
                let views: Vec<View<'_>> = [&a, &b][..op.arity()]
                    .iter()
                    .map(|w| View::from_bytes(dtype, bytes(w, dtype, len), &[len]).unwrap())
                    .collect();
                let nan = [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error][i % 3];
                let question = question.clone().nan(nan);
                compare(device, &question, &views, [0, 4096, 1009][i % 3]);
            }
        }
    }
    asked
}

const DATAS: [Data; 4] = [Data::Bits, Data::Small, Data::Small, Data::Zeros];

#[test]
fn every_operation_on_the_interpreter() {
    let all = [0, 1, 2, 31, 33, 1009, 4095, 4096, 4099, 8193, 20_011];
    let sizes = up_to(&all[..], &[0, 33, 1009, 4099]);
    let asked = every_operation(Device::Sim, sizes, &DATAS);
    assert!(asked >= 250, "{asked} questions");
}

/// More than one run, and more than a device's blocks take at once.
#[test]
fn long_arrays_on_the_interpreter() {
    for (dtype, ops) in [
        (DType::F64, &[Op::Sum, Op::Min, Op::CountNan][..]),
        (DType::F32, &[Op::Mean, Op::NormInf]),
        (DType::I8, &[Op::Sum, Op::Xor, Op::Any]),
    ] {
        for len in [65_536, 65_535 + (256 << 10) / dtype.size()] {
            let items = words(dtype, len, Data::Bits, len as u64);
            let view = View::from_bytes(dtype, bytes(&items, dtype, len), &[len]).unwrap();
            let question = Reduction::new(ops.iter().copied());
            assert!(has(Device::Sim, &question, dtype, 1));
            compare(Device::Sim, &question, &[view], 12);
        }
    }
}

/// Axes, strides, transposed, reversed, repeated and misaligned arrays.
fn shapes(device: Device) {
    let dtype = DType::F32;
    let items = words(dtype, 4000, Data::Bits, 4);
    let all = bytes(&items, dtype, 4000);
    let view = |offset: usize, shape: &[usize], strides: &[isize]| {
        View::strided(dtype, all, offset, shape, strides).unwrap()
    };
    let views = [
        view(0, &[4, 7, 5], &[140, 20, 4]),
        view(0, &[5, 7, 4], &[4, 20, 140]),
        view(3996, &[5, 11], &[-400, -4]),
        view(1, &[9, 7], &[28, 4]),
        view(8, &[6, 0, 3], &[4, 4, 4]),
        view(4, &[3, 9], &[0, 12]),
        view(16, &[], &[]),
        view(0, &[1, 1000, 1], &[4, 4, 4]),
    ];
    let question = Reduction::new([Op::Sum, Op::Min, Op::Max, Op::Count, Op::CountNan]);
    assert!(has(device, &question, dtype, 1));
    let pairs = Reduction::new([Op::ArgMinMax, Op::LogSumExp, Op::MinMax, Op::Var, Op::ArgMax]);
    let sums = [Op::Mean, Op::Sum, Op::Norm1, Op::Max, Op::SumSq, Op::Norm2, Op::Std];
    let sums = Reduction::new(sums);
    for (place, view) in views.iter().enumerate() {
        let ndim = view.shape().len();
        for some in 0..1usize << ndim {
            let axes: Vec<isize> =
                (0..ndim).filter(|a| some >> a & 1 == 1).map(usize::cast_signed).collect();
            let asked = [question.clone().keepdims(some % 3 == 0), pairs.clone(), sums.clone()];
            for (i, asked) in asked.into_iter().enumerate() {
                // If there is little time, one of the three in turn for half of the axes.
                if thorough() || (place + some) % 6 == 2 * i {
                    compare(device, &asked.axes(axes.clone()), std::slice::from_ref(view), 5);
                }
            }
        }
    }
}

#[test]
fn axes_and_strides_on_the_interpreter() {
    shapes(Device::Sim);
}

/// Runs in any order and rows without values, as files hand them over.
fn workers(device: Device) {
    let dtype = DType::F64;
    let len = 100_000;
    let items = words(dtype, len, Data::Bits, 17);
    let all = bytes(&items, dtype, len);
    let ops: Vec<Op> = Op::ALL
        .into_iter()
        .filter(|op| op.arity() == 1 && op.supports(dtype))
        .filter(|&op| has(device, &Reduction::of(op), dtype, 1))
        .collect();
    let question = Reduction::new(ops);
    let feed = |device: Device| {
        let question = question.clone().device(device);
        let mut workers: Workers = question.workers(dtype, 1).unwrap();
        let run = |from: usize, to: usize, start: u64| RawRun {
            start,
            items: &all[from * 8..to * 8],
            others: &[],
        };
        workers.absorb(run(50_000, 100_000, 50_013)).unwrap();
        workers.absorb(run(0, 5, 0)).unwrap();
        // Rows 5 to 14 and 20,000 on have no value.
        let gaps = [(0, 9), (10, 1), (20_000, 3)];
        workers.absorb_around(run(5, 30_000, 5), gaps.into_iter()).unwrap();
        workers.absorb_around(run(30_000, 50_000, 30_013), std::iter::empty()).unwrap();
        question.gather(dtype, workers).unwrap()
    };
    let (here, there) = (feed(Device::Cpu), feed(device));
    assert!(states(&here) == states(&there));
    assert!(here.finish(&Rules::default()).is_ok());
}

#[test]
fn runs_and_gaps_on_the_interpreter() {
    workers(Device::Sim);
}

#[test]
fn threads_do_not_change_what_a_device_says() {
    let items = words(DType::F32, 200_000, Data::Small, 3);
    let view = View::from_bytes(DType::F32, bytes(&items, DType::F32, 200_000), &[200_000]);
    let view = view.unwrap();
    for threads in [1, 3] {
        let question = Reduction::new([Op::Sum, Op::Max]).threads(Threads::Exactly(threads));
        compare(Device::Sim, &question, std::slice::from_ref(&view), 0);
    }
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let x = [1.0f64; 4];
    // No machine has as many.
    let missing = Device::Cuda(Some(1_000_000));
    let question = Reduction::of(Op::Sum).device(missing);
    for error in [
        question.run(&x).unwrap_err(),
        question.partial(&x, 0).unwrap_err(),
        question.workers(DType::F64, 1).err().unwrap(),
        question.check_type(DType::F64, 1).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Device { .. }), "{error}");
        assert!(error.hint().unwrap().contains("--device cpu"));
    }
}

/// What pays is settled before there is data; nothing is opened for what does not.
#[test]
fn auto_is_the_cpu_unless_a_device_pays() {
    let question = |op| Reduction::of(op).threads(Threads::Exactly(1));
    let settled = |op, bytes| question(op).settled(DType::F64, bytes).named_device();
    assert_eq!(settled(Op::Sum, Some(u64::MAX)), Device::Cpu);
    assert_eq!(question(Op::Sum).device_pays_from(DType::F64), None);
    // Opens the device, if there is one: from then on less data pays, and for
    // good, whatever the other tests of this process do.
    let cuda = question(Op::LogSumExp).device(Device::Cuda(Some(0)));
    let there = cuda.check_type(DType::F64, 1).is_ok();
    let from = question(Op::LogSumExp).device_pays_from(DType::F64).unwrap();
    assert!(from >= 1 << 20, "{from}");
    assert_eq!(settled(Op::LogSumExp, Some(from - 1)), Device::Cpu);
    assert_eq!(settled(Op::LogSumExp, None), Device::Cpu);
    let expected = if there { Device::Cuda(Some(0)) } else { Device::Cpu };
    assert_eq!(settled(Op::LogSumExp, Some(from)), expected);
    // A device that was named stays.
    let named = Reduction::of(Op::Sum).device(Device::Sim).settled(DType::F64, Some(1));
    assert_eq!(named.named_device(), Device::Sim);
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn on_the_device_of_this_machine() {
    let device = Device::Cuda(None);
    match Reduction::of(Op::Sum).device(device).check_type(DType::F64, 1) {
        Ok(()) => {}
        Err(error) if std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() => {
            println!("SKIPPED: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    let sizes = [0, 1, 31, 4095, 4096, 65_535, 65_536, 1 << 20, (3 << 20) + 17];
    every_operation(device, &sizes, &DATAS);
    shapes(device);
    workers(device);
}
