//! Segments on devices, on the interpreter with all its checks on and on the GPU if there is
//! one: bit for bit what the CPU answers, of arrays in either memory.

use crate::arrays::Random;
use crate::device_arrays::{elements, gpu, interpreter, ways};
use crate::thorough::{thorough, up_to};
use warpfold::internal::engine_of;
use warpfold::{
    Answer, DType, Device, DeviceArray, DeviceStream, Error, Input, NanPolicy, Op, Reduction,
    Segments, View,
};
use warpfold_cuda::{Buffer, Stream};

/// An array in both memories.
struct Sample {
    dtype: DType,
    words: Vec<u64>,
    len: usize,
    buffer: Buffer<'static>,
}

impl Sample {
    fn new(stream: &DeviceStream, dtype: DType, words: Vec<u64>, len: usize) -> Sample {
        let engine = engine_of(stream.device()).unwrap();
        let bytes = len * dtype.size();
        let buffer = Buffer::new(engine.device(), bytes.max(1) as u64).unwrap();
        buffer.copy_in(Stream::DEFAULT, 0, &bytemuck::cast_slice(&words)[..bytes]).unwrap();
        Sample { dtype, words, len, buffer }
    }

    fn drawn(stream: &DeviceStream, dtype: DType, len: usize, random: &mut Random) -> Sample {
        let words = elements(dtype, len * dtype.size(), random);
        Sample::new(stream, dtype, words, len)
    }

    fn of<T: bytemuck::NoUninit>(stream: &DeviceStream, dtype: DType, items: &[T]) -> Sample {
        let mut words = vec![0u64; size_of_val(items).div_ceil(8)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[..size_of_val(items)].copy_from_slice(bytemuck::cast_slice(items));
        Sample::new(stream, dtype, words, items.len())
    }

    /// Elements from `start` on, `step` apart.
    fn view(&self, start: usize, step: isize) -> View<'_> {
        let (size, bytes) = (self.dtype.size(), self.len * self.dtype.size());
        let bytes = &bytemuck::cast_slice(&self.words)[..bytes];
        let len = self.count(start, step);
        View::strided(self.dtype, bytes, start * size, &[len], &[step * size as isize]).unwrap()
    }

    fn count(&self, start: usize, step: isize) -> usize {
        let left = if step > 0 { self.len - start } else { start + 1 };
        left.div_ceil(step.unsigned_abs())
    }

    fn array(&self, stream: &DeviceStream, start: usize, step: isize) -> DeviceArray<'_> {
        let size = self.dtype.size();
        let (at, len) = (self.buffer.address() + (start * size) as u64, self.count(start, step));
        let strides = [step * size as isize];
        // SAFETY: the buffer has the elements, and nobody writes to it.
        unsafe { DeviceArray::from_raw_strided(self.dtype, at, &[len], &strides, stream) }.unwrap()
    }
}

/// Asks about segments of elements in both memories, and the CPU.
fn compare(
    stream: &DeviceStream,
    question: &Reduction,
    sample: &Sample,
    (start, step): (usize, isize),
    segments: Segments<'_>,
) -> Result<Answer, Error> {
    let view = sample.view(start, step);
    let on = |device| question.clone().device(device).segments(segments);
    let expected = on(Device::Cpu).run(&view);
    let note = || format!("{question:?} of {} from {start} by {step}", sample.dtype);
    let [sent, in_place] = ways(stream.device());
    if sent {
        assert_eq!(on(stream.device()).run(&view), expected, "sent: {}", note());
    }
    if in_place {
        let array = sample.array(stream, start, step);
        assert_eq!(on(Device::Auto).run(&array), expected, "in place: {}", note());
    }
    expected
}

fn offsets_of(lens: &[usize], first: usize) -> Vec<u64> {
    let mut offsets = vec![first as u64];
    lens.iter().for_each(|&len| offsets.push(offsets[offsets.len() - 1] + len as u64));
    offsets
}

fn unary(dtype: DType) -> impl Iterator<Item = Op> {
    Op::ALL.into_iter().filter(move |op| op.supports(dtype) && op.arity() == 1)
}

/// Every operation of every type: segments of few elements, of those of a warp, and empty
/// ones; several operations in one call.
fn every_operation(stream: &DeviceStream) {
    let mut random = Random::new(5);
    let lens = [3usize, 0, 1, 7, 32, 33, 31, 100, 0, 64, 65, 130, 1, 16, 17, 15];
    let some: Vec<usize> = lens.into_iter().filter(|&len| len > 0).collect();
    for dtype in DType::ALL {
        let sample = Sample::drawn(stream, dtype, lens.iter().sum(), &mut random);
        let i32s: Vec<i32> = offsets_of(&lens, 0).iter().map(|&o| o as i32).collect();
        let u64s = offsets_of(&some, 0);
        for (i, op) in unary(dtype).enumerate() {
            let question = Reduction::of(op);
            // With empty segments and without, or one of both.
            if thorough() || (i + dtype as usize).is_multiple_of(2) {
                let _ = compare(stream, &question, &sample, (0, 1), Segments::Offsets(&i32s));
                if !thorough() {
                    continue;
                }
            }
            let made = compare(stream, &question, &sample, (0, 1), Segments::Offsets(&u64s));
            let overflows = matches!(made, Err(Error::InSegment { .. }));
            assert!(made.is_ok() || overflows, "{op} of {dtype}: {made:?}");
        }
        // Extremes have no answer of nothing; what is made of them has, and so has what comes behind.
        let beside = Reduction::new([Op::NormInf, Op::Var, Op::Mean, Op::CountNonzero]);
        let made = compare(stream, &beside, &sample, (0, 1), Segments::Offsets(&i32s));
        assert!(made.is_ok(), "{made:?}");
        let all = Reduction::new(unary(dtype)).wrap(true);
        let _ = compare(stream, &all, &sample, (0, 1), Segments::Offsets(&u64s));
        for rules in [all.clone().nan(NanPolicy::Omit).ddof(1), all.ddof(2)] {
            let _ = compare(stream, &rules, &sample, (0, 1), Segments::Offsets(&u64s));
        }
    }
}

#[test]
fn every_operation_of_segments() {
    every_operation(&interpreter());
}

#[test]
fn every_operation_of_segments_on_a_device() {
    let Some(stream) = gpu() else { return };
    every_operation(&stream);
}

fn lengths(most: usize) -> Vec<Vec<usize>> {
    let around = [0, 1, 15, 16, 17, 31, 32, 33, 511, 512, 513, 4095, 4096, 4097];
    let mut random = Random::new(77);
    let mut zipf = Vec::new();
    while zipf.iter().sum::<usize>() < most {
        let u = (random.next() >> 11) as f64 * 2f64.powi(-53);
        zipf.push((1.0 / (1.0 - u)).min(1e4) as usize);
    }
    let alternating = (0..most / 2000).map(|i| if i % 2 == 0 { 1 } else { 4096 }).collect();
    let huge = |place: usize| {
        let mut lens = vec![1; most / 40];
        lens.insert(place, most);
        lens
    };
    let mut ends = vec![0; 300];
    ends.extend([4, 0, 6, 5000]);
    ends.extend([0; 300]);
    vec![
        around.to_vec(),
        around.iter().rev().copied().collect(),
        vec![0; 700],
        ends,
        huge(0),
        huge(most / 80),
        huge(most / 40),
        vec![most],
        vec![most, most / 2 + 1, 1, 0, most],
        zipf,
        alternating,
        vec![1; 1000],
        vec![600; 20],
    ]
}

/// Lengths of all kinds, as every form says them.
fn every_length(stream: &DeviceStream, most: usize) {
    let mut random = Random::new(6);
    let ops = [Op::Sum, Op::ArgMax, Op::Max, Op::Std, Op::Mean, Op::LogSumExp, Op::Prod];
    for (round, lens) in lengths(most).into_iter().enumerate() {
        let dtype =
            [DType::F32, DType::F64, DType::F16, DType::I64, DType::U8, DType::BF16][round % 6];
        let len: usize = lens.iter().sum();
        let sample = Sample::drawn(stream, dtype, len + 5, &mut random);
        // Arrays that begin anywhere.
        let (start, step) = (round % 4, 1);
        let offsets = offsets_of(&lens, 1);
        let some = [ops[round % ops.len()], Op::Sum, ops[(round + 1) % ops.len()]];
        for &op in &some[..up_to(3, 2)] {
            let question = Reduction::of(op).wrap(true);
            let ask = |segments| compare(stream, &question, &sample, (start, step), segments);
            let _ = ask(Segments::Offsets(&offsets));
            let u32s: Vec<u32> = offsets.iter().map(|&o| o as u32).collect();
            let i64s: Vec<i64> = offsets.iter().map(|&o| o as i64).collect();
            let (starts, stops) = (&u32s[..lens.len()], &i64s[1..]);
            let _ = ask(Segments::StartsStops(&starts, &stops));
        }
        let whole = Sample::drawn(stream, dtype, len, &mut random);
        let question = Reduction::of(Op::Sum).wrap(true);
        let _ = compare(stream, &question, &whole, (0, 1), Segments::Lengths(&lens));
    }
}

#[test]
fn segments_of_every_length() {
    every_length(&interpreter(), up_to(40_000, 5000));
}

#[test]
fn segments_of_every_length_on_a_device() {
    let Some(stream) = gpu() else { return };
    every_length(&stream, 3_000_000);
}

/// Data whose totals leave every window, and whose states are not a matter of order.
fn hostile(stream: &DeviceStream) {
    let mut f64s: Vec<f64> = Vec::new();
    let mut random = Random::new(8);
    for i in 0..30_000 {
        let scale = [300, -300, 0, -290, 290][random.below(5)];
        let x = (random.next() >> 12) as f64 * 10f64.powi(scale - 15);
        f64s.push(if i % 2 == 0 { x } else { -x });
    }
    f64s[7] = f64::NAN;
    f64s[700] = f64::INFINITY;
    f64s[701] = f64::NEG_INFINITY;
    f64s[25_000] = f64::INFINITY;
    let f32s: Vec<f32> = f64s
        .iter()
        .map(|&x| {
            if x.is_finite() {
                (x.log10() * 9.0).exp() as f32 * x.signum() as f32
            } else {
                x as f32
            }
        })
        .collect();
    let (wide, narrow) =
        (Sample::of(stream, DType::F64, &f64s), Sample::of(stream, DType::F32, &f32s));
    let lens = [5usize, 20, 40, 700, 1000, 3235, 17_000, 8000];
    let offsets = offsets_of(&lens, 0);
    for sample in [wide, narrow] {
        for op in [Op::Sum, Op::Mean, Op::Norm1, Op::SumSq, Op::Var, Op::Norm2, Op::Min, Op::ArgMin]
        {
            let question = Reduction::of(op);
            let segments = Segments::Offsets(&offsets);
            compare(stream, &question, &sample, (0, 1), segments).unwrap();
        }
    }
}

#[test]
fn totals_that_are_lost_are_found_again() {
    hostile(&interpreter());
}

#[test]
fn totals_that_are_lost_are_found_again_on_a_device() {
    let Some(stream) = gpu() else { return };
    hostile(&stream);
}

/// Segments that overlap, leave gaps and descend; initial values; errors; views that are
/// copied; dot products and missing values.
fn all_forms(stream: &DeviceStream) {
    let mut random = Random::new(9);
    let starts = [270i64, 150, 0, 0, 75, 299, 300, 3];
    let stops = [300u32, 210, 300, 1, 75, 300, 300, 297];
    let both = Segments::StartsStops(&starts, &stops);
    for dtype in [DType::F64, DType::F16, DType::I32, DType::U64] {
        let sample = Sample::drawn(stream, dtype, 1200, &mut random);
        let (views, lens) = ([(0, 1), (5, 1), (0, 3), (600, -2)], [1, 5, 7, 24, 600, 1200]);
        let ops = [Op::Sum, Op::ArgMin, Op::Mean, Op::Count, Op::Var, Op::NormInf, Op::MinMax];
        for (i, op) in ops.into_iter().enumerate() {
            // Every view and length, or some with each operation and type.
            let (turn, step) = (i + dtype as usize, up_to(1, 3));
            for &view in views.iter().skip(turn % step).step_by(step) {
                let _ = compare(stream, &Reduction::of(op).wrap(true), &sample, view, both);
                let fixed = Reduction::of(op).wrap(true).initial(1);
                let _ = compare(stream, &fixed, &sample, view, both);
            }
            for &each in lens.iter().skip(turn % step).step_by(step) {
                let question = Reduction::of(op).wrap(true);
                let _ = compare(stream, &question, &sample, (0, 1), Segments::Fixed(each));
            }
        }
        let of = |op| Reduction::of(op).wrap(true).initial(3);
        for op in [Op::Sum, Op::Min, Op::Max, Op::MinMax, Op::Range, Op::NormInf, Op::Prod] {
            let made = compare(stream, &of(op), &sample, (0, 1), both);
            assert!(made.is_ok(), "{op}: {made:?}");
        }
        let (left, right) = (sample.array(stream, 0, 1), sample.array(stream, 1, 1));
        let half = sample.array(stream, 0, 1);
        let dot = Reduction::of(Op::Dot).wrap(true).segments(Segments::Fixed(600));
        let expected = dot.run_pair(sample.view(0, 1), sample.view(0, 1));
        assert_eq!(dot.run_pair(&left, &half), expected);
        assert!(matches!(dot.run_pair(&left, &right), Err(Error::ShapeMismatch { .. })));
        assert!(matches!(dot.run_pair(&left, sample.view(0, 1)), Err(Error::DeviceMemory { .. })));
    }
    let x: Vec<f64> = (0..40).map(|i| f64::from((i * 7) % 11)).collect();
    let bits = [0b0110_1111, 0xff, 0x0f, 0b1010_1010, 0b0000_1111];
    let question = |device| {
        let of = Reduction::new([Op::Sum, Op::Count]).device(device);
        of.segments(Segments::Fixed(8)).run(Input::masked(&x, &bits, 0).unwrap())
    };
    assert_eq!(question(stream.device()), question(Device::Cpu));
}

#[test]
fn segments_in_every_form() {
    all_forms(&interpreter());
}

#[test]
fn segments_in_every_form_on_a_device() {
    let Some(stream) = gpu() else { return };
    all_forms(&stream);
}

/// What cannot be is refused in the words of the CPU.
#[test]
fn segments_that_cannot_be_are_named_as_on_the_cpu() {
    let stream = interpreter();
    let sample = Sample::of(&stream, DType::I64, &[1i64, 2, i64::MAX, 1, i64::MAX, 5]);
    let refused = |question: Reduction, segments: Segments<'_>| {
        compare(&stream, &question, &sample, (0, 1), segments).unwrap_err()
    };
    let sum = || Reduction::of(Op::Sum);
    assert!(matches!(
        refused(sum(), Segments::Offsets(&[0, 3, 2, 6])),
        Error::BadSegment { segment: 1, .. }
    ));
    assert!(matches!(
        refused(sum(), Segments::Offsets(&[-1i64, 3])),
        Error::BadSegment { segment: 0, .. }
    ));
    assert!(matches!(
        refused(sum(), Segments::Offsets(&[0u32, 6, 7])),
        Error::BadSegment { segment: 1, .. }
    ));
    assert!(matches!(
        refused(sum(), Segments::Offsets(&[0u64, 1, u64::MAX])),
        Error::BadSegment { .. }
    ));
    assert!(matches!(refused(sum(), Segments::Offsets(&[9u64])), Error::BadSegments { .. }));
    let none: [i32; 0] = [];
    assert!(matches!(refused(sum(), Segments::Offsets(&none)), Error::BadSegments { .. }));
    assert!(matches!(refused(sum(), Segments::Lengths(&[3, -2, 5])), Error::BadSegment { .. }));
    assert!(matches!(refused(sum(), Segments::Lengths(&[3, 2])), Error::BadSegments { .. }));
    assert!(matches!(
        refused(sum(), Segments::Lengths(&[i64::MAX, i64::MAX, 8])),
        Error::BadSegment { .. }
    ));
    assert!(matches!(
        refused(sum(), Segments::StartsStops(&[0, 4], &[3, 3])),
        Error::BadSegment { segment: 1, .. }
    ));
    assert!(matches!(
        refused(sum(), Segments::StartsStops(&[0], &[3, 3])),
        Error::BadSegments { .. }
    ));
    assert!(matches!(refused(sum(), Segments::Fixed(0)), Error::BadSegments { .. }));
    assert!(matches!(refused(sum(), Segments::Fixed(4)), Error::BadSegments { .. }));
    let overflow = refused(sum(), Segments::Lengths(&[2, 0, 2, 2]));
    assert!(matches!(overflow, Error::InSegment { segment: 2, .. }), "{overflow}");
    for op in [Op::Min, Op::ArgMax, Op::Range, Op::MinMax] {
        let empty = refused(Reduction::new([Op::Count, op]), Segments::Offsets(&[0, 1, 1, 3, 3]));
        assert!(matches!(empty, Error::InSegment { segment: 1, .. }), "{empty}");
    }
    let table = sample.array(&stream, 0, 1).reshaped(&[2, 3]).unwrap();
    let refused = sum().segments(Segments::Fixed(1)).run(&table).unwrap_err();
    assert!(matches!(refused, Error::BadSegments { .. }), "{refused}");
    let elsewhere = sum().device(Device::Cpu).segments(Segments::Fixed(1));
    let elsewhere = elsewhere.run(sample.array(&stream, 0, 1)).unwrap_err();
    assert!(matches!(elsewhere, Error::DeviceMemory { .. }), "{elsewhere}");
}
