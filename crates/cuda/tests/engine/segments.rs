//! Segments whose boundaries lie in a device's memory: the answers of their elements' states,
//! by few blocks and many, and what the device notes of segments without an answer.

use crate::common::Random;
use crate::common::altered::Altered;
use crate::common::arrays::state_of;
use crate::common::machine::device_of_this_machine;
use crate::thorough::{thorough, up_to};
use std::sync::Arc;
use warpfold_core::op::{NanPolicy, Numbers, Op, Rules};
use warpfold_core::{DType, Scalar};
use warpfold_cuda::engine::{Array, Boundaries, Engine, Number, Segments, Shape, Width};
use warpfold_cuda::{Buffer, Device, Error, Limits, Sim, Stream};

/// Floats that leave every window, or integers that wrap.
fn words(dtype: DType, len: usize, random: &mut Random) -> Vec<u64> {
    let mut words = vec![0u64; (len * dtype.size()).div_ceil(8)];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    for to in bytes.chunks_exact_mut(dtype.size()) {
        let x = (random.unit() - 0.5) * 2f64.powi(random.place(600) as i32 - 300);
        let bits = match dtype {
            DType::F64 => x.to_bits(),
            DType::F32 => u64::from(((random.unit() - 0.5) as f32).to_bits()),
            _ => random.next() >> 40,
        };
        to.copy_from_slice(&bits.to_le_bytes()[..dtype.size()]);
    }
    words
}

fn check(device: Arc<dyn Device>, shape: Shape, lens: &[usize], seed: u64) {
    let engine = Engine::with_shape(Arc::clone(&device), shape);
    let mut random = Random(seed);
    let len: usize = lens.iter().sum();
    let mut offsets = vec![0u32];
    lens.iter().for_each(|&len| offsets.push(offsets[offsets.len() - 1] + len as u32));
    let boundaries = Buffer::new(&device, 4 * offsets.len() as u64).unwrap();
    boundaries.copy_in(Stream::DEFAULT, 0, bytemuck::cast_slice(&offsets)).unwrap();
    let at = Boundaries::Offsets(boundaries.address(), Width::Unsigned32);
    let segments = Segments { count: lens.len() as u64, boundaries: at };
    let dtypes = [DType::F64, DType::F32, DType::I32];
    // Another type for each number of blocks, or all.
    let dtypes = if thorough() { &dtypes[..] } else { &dtypes[seed as usize % 3..][..1] };
    for &dtype in dtypes {
        let words = words(dtype, len, &mut random);
        let bytes = &bytemuck::cast_slice::<u64, u8>(&words)[..len * dtype.size()];
        let memory = Buffer::new(&device, bytes.len().max(1) as u64).unwrap();
        memory.copy_in(Stream::DEFAULT, 0, bytes).unwrap();
        let array = Array { address: memory.address(), len: len as u64, dtype };
        let ops = [Op::Sum, Op::Var, Op::ArgMin];
        let ops = &ops[..if dtype.is_float() { 3 } else { 1 }];
        // SAFETY: both buffers hold what is said, and nobody writes to them.
        let made =
            unsafe { engine.numbers_of_segments(ops, array, &segments, None, Stream::DEFAULT) };
        for (&op, numbers) in ops.iter().zip(made.unwrap()) {
            let numbers = numbers.unwrap();
            for (i, pair) in offsets.windows(2).enumerate() {
                let part = pair[0] as usize * dtype.size()..pair[1] as usize * dtype.size();
                let mut aligned = vec![0u64; part.len().div_ceil(8)];
                let aligned: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut aligned)[..part.len()];
                aligned.copy_from_slice(&bytes[part]);
                let state = state_of(op.kind(), dtype, 0, aligned, &[]);
                let expected = state.finish(op, &Rules::default()).unwrap().first();
                let bits = |x: Scalar| (x.dtype(), x.to_bits());
                let note = || format!("{op} of {dtype}, segment {i} of {}", lens[i]);
                assert_eq!(numbers.get(i).map(bits), Some(bits(expected)), "{}", note());
            }
        }
    }
}

/// Blocks that a multiprocessor has, as the engine plans them.
const BLOCKS_OF_ONE: usize = 16;

/// What elements are like: sums of the first are exact in tiles, of the others partly.
#[derive(Clone, Copy, Debug)]
enum Data {
    Near,
    /// Some neighbours are too far apart for f64.
    Far,
    /// Some are NaN or infinite,
    Special,
    /// or half of them.
    Specials,
    Zeros,
    /// Sums that cancel, of which no accumulator in registers is sure.
    Cancels,
}

fn elements(dtype: DType, data: Data, len: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len * dtype.size());
    for _ in 0..len {
        let odd = random.place(200) == 0;
        let near = random.unit() - 0.5;
        let x = match data {
            Data::Near => near,
            Data::Far if odd => near * 2f64.powi(random.place(200) as i32 - 100),
            Data::Special if odd => [f64::NAN, f64::INFINITY, -f64::INFINITY][random.place(3)],
            Data::Specials if random.place(2) == 0 => {
                [f64::NAN, f64::INFINITY, -f64::INFINITY][random.place(3)]
            }
            Data::Zeros => -0.0,
            Data::Cancels => {
                let most = 2f64.powi(if dtype == DType::F16 { 14 } else { 126 });
                let third = most / 3.0;
                [most, -most, third, -third, most.recip(), near][random.place(6)]
            }
            _ => near,
        };
        let bits = match dtype {
            DType::F64 => x.to_bits(),
            DType::F32 => u64::from((x as f32).to_bits()),
            DType::F16 => u64::from(warpfold_core::element::f16::from_f64(x).to_bits()),
            DType::BF16 => u64::from(warpfold_core::element::bf16::from_f64(x).to_bits()),
            _ => random.next() >> random.place(63) << random.place(2),
        };
        bytes.extend_from_slice(&bits.to_le_bytes()[..dtype.size()]);
    }
    bytes
}

/// The answers of the states of segments, where these have one.
fn answers(
    (op, dtype): (Op, DType),
    bytes: &[u8],
    offsets: &[u64],
    rules: &Rules,
) -> Vec<Option<Scalar>> {
    let answer = |pair: &[u64]| {
        let part = pair[0] as usize * dtype.size()..pair[1] as usize * dtype.size();
        let mut aligned = vec![0u64; part.len().div_ceil(8)];
        let aligned = &mut bytemuck::cast_slice_mut(&mut aligned)[..part.len()];
        aligned.copy_from_slice(&bytes[part]);
        let state = state_of(op.kind(), dtype, 0, aligned, &[]);
        state.finish(op, rules).ok().map(|answer| answer.first())
    };
    offsets.windows(2).map(answer).collect()
}

/// Compares the answers about segments in tiles with those of their elements' states, where
/// the array begins `shift` elements behind an aligned address.
fn check_tiles(device: &Arc<dyn Device>, lens: &[usize], data: Data, shift: usize, seed: u64) {
    let engine = Engine::new(Arc::clone(device));
    let mut random = Random(seed);
    let mut offsets = vec![0u64];
    lens.iter().for_each(|&len| offsets.push(offsets[offsets.len() - 1] + len as u64));
    let len = offsets[lens.len()] as usize;
    let width = [Width::Word64, Width::Unsigned32, Width::Signed32][seed as usize % 3];
    let bytes: Vec<u8> = offsets
        .iter()
        .flat_map(|offset| offset.to_le_bytes().into_iter().take(width.bytes() as usize))
        .collect();
    let boundaries = Buffer::new(device, bytes.len() as u64).unwrap();
    boundaries.copy_in(Stream::DEFAULT, 0, &bytes).unwrap();
    let at = boundaries.address();
    let count = lens.len() as u64;
    let segments = Segments { count, boundaries: Boundaries::Offsets(at, width) };
    let ends = (at + width.bytes(), width);
    let apart = Segments { count, boundaries: Boundaries::StartsStops((at, width), ends) };
    // Each type with some of the lengths, or all.
    let step = up_to(1, 13);
    for dtype in DType::ALL.into_iter().skip(seed as usize % step).step_by(step) {
        let size = dtype.size();
        let bytes = elements(dtype, data, len, &mut random);
        let memory = Buffer::new(device, ((len + shift) * size).max(1) as u64).unwrap();
        memory.copy_in(Stream::DEFAULT, (shift * size) as u64, &bytes).unwrap();
        let address = memory.address() + (shift * size) as u64;
        let array = Array { address, len: len as u64, dtype };
        let ops = [Op::Sum, Op::Mean, Op::Norm1, Op::Max, Op::NormInf, Op::CountNonzero];
        let ask = |segments, ops: &[Op]| {
            // SAFETY: both buffers hold what is said, and nobody writes to them.
            unsafe { engine.numbers_of_segments(ops, array, segments, None, Stream::DEFAULT) }
                .unwrap()
        };
        let made = ask(&segments, &ops);
        assert_eq!(made[..2], ask(&apart, &ops[..2]), "sums and means of {dtype}, {data:?}");
        for (op, numbers) in ops.into_iter().zip(made) {
            let answers = answers((op, dtype), &bytes, &offsets, &Rules::default());
            // An empty segment without an answer, or an overflow: somebody else tells of it.
            let all = answers.iter().all(Option::is_some);
            assert_eq!(numbers.is_some(), all, "{op} of {dtype}, {data:?}");
            let Some(numbers) = numbers else { continue };
            for (i, answer) in answers.into_iter().enumerate() {
                let bits = |x: Scalar| (x.dtype(), x.to_bits());
                let note = || format!("{op} of {dtype}, {data:?}, segment {i} of {}", lens[i]);
                assert_eq!(numbers.get(i).map(bits), answer.map(bits), "{}", note());
            }
        }
    }
}

/// Which elements are NaNs that are omitted.
#[derive(Clone, Copy, Debug)]
enum Missing {
    OneInAHundred,
    Half,
    /// All of some segments, and of long ones all at the beginning.
    Whole,
}

/// All operations of floats.
const OF_FLOATS: [Op; 19] = [
    Op::Sum,
    Op::Mean,
    Op::Norm1,
    Op::SumSq,
    Op::Norm2,
    Op::Var,
    Op::Std,
    Op::Min,
    Op::Max,
    Op::NormInf,
    Op::ArgMin,
    Op::ArgMax,
    Op::Count,
    Op::CountNonzero,
    Op::CountNan,
    Op::Any,
    Op::All,
    Op::Prod,
    Op::LogSumExp,
];

/// Compares the answers about segments some of whose elements are missing with those of their
/// states, where the array begins `shift` elements behind an aligned address.
fn check_omitting(
    engine: &Engine,
    (lens, shift): (&[usize], usize),
    dtype: DType,
    (data, missing): (Data, Missing),
    ops: &[Op],
    seed: u64,
) {
    let device = engine.device();
    let mut random = Random(seed);
    let mut offsets = vec![0u64];
    lens.iter().for_each(|&len| offsets.push(offsets[offsets.len() - 1] + len as u64));
    let (len, size) = (offsets[lens.len()] as usize, dtype.size());
    let mut bytes = elements(dtype, data, len, &mut random);
    let [nan, one] = match dtype {
        DType::F64 => [f64::NAN, 1.0].map(f64::to_bits),
        DType::F32 => [f32::NAN, 1.0].map(|x| u64::from(x.to_bits())),
        DType::F16 => [0x7e00, 0x3c00],
        _ => [0x7fc0, 0x3f80],
    };
    for pair in offsets.windows(2) {
        let whole = random.place(3) == 0;
        for at in pair[0]..pair[1] {
            let is_missing = match missing {
                Missing::OneInAHundred => random.place(100) == 0,
                Missing::Half => random.place(2) == 0,
                Missing::Whole => whole && at < pair[0] + 5000,
            };
            if is_missing {
                let sign = (random.next() & 1) << (8 * size - 1);
                let at = at as usize * size;
                bytes[at..at + size].copy_from_slice(&(nan | sign).to_le_bytes()[..size]);
            }
        }
    }
    let memory = Buffer::new(device, ((len + shift) * size).max(1) as u64).unwrap();
    memory.copy_in(Stream::DEFAULT, (shift * size) as u64, &bytes).unwrap();
    let address = memory.address() + (shift * size) as u64;
    let array = Array { address, len: len as u64, dtype };
    let boundaries = Buffer::new(device, 8 * offsets.len() as u64).unwrap();
    boundaries.copy_in(Stream::DEFAULT, 0, bytemuck::cast_slice(&offsets)).unwrap();
    let (at, count) = (boundaries.address(), lens.len() as u64);
    let follow = Boundaries::Offsets(at, Width::Word64);
    let apart = Boundaries::StartsStops((at, Width::Word64), (at + 8, Width::Word64));
    let ddof = |op| if matches!(op, Op::Var | Op::Std) { seed as u32 % 2 } else { 0 };
    let number = |&op: &Op| Number { op, omits_nan: true, ddof: ddof(op) };
    let numbers: Vec<Number> = ops.iter().map(number).collect();
    for (boundaries, initial) in
        [(follow, None), (apart, None), (follow, Some(seed.is_multiple_of(2)))]
    {
        let segments = Segments { count, boundaries };
        // One more element behind each segment's own, which may be a NaN, too.
        let initial = initial.map(|is_nan| if is_nan { nan } else { one });
        let mut bytes = bytes.clone();
        let mut offsets = offsets.clone();
        if let Some(initial) = initial {
            let of = |pair: &[u64]| &bytes[pair[0] as usize * size..pair[1] as usize * size];
            let each =
                offsets.windows(2).map(|pair| [of(pair), &initial.to_le_bytes()[..size]].concat());
            bytes = each.collect::<Vec<_>>().concat();
            offsets.iter_mut().enumerate().for_each(|(i, offset)| *offset += i as u64);
        }
        // SAFETY: both buffers hold what is said, and nobody writes to them.
        let made = unsafe {
            let initial = initial.map(|bits| Scalar::from_bits(dtype, bits));
            engine.numbers_of_segments(&numbers, array, &segments, initial, Stream::DEFAULT)
        };
        for (number, made) in numbers.iter().zip(made.unwrap()) {
            let rules = Rules::new().nan(NanPolicy::Omit).ddof(number.ddof.into());
            let answers = answers((number.op, dtype), &bytes, &offsets, &rules);
            let note = format!("{number:?} of {dtype}, {data:?}, {missing:?}, {boundaries:?}");
            // Nothing is left of a segment whose answer needs an element.
            let all = answers.iter().all(Option::is_some);
            assert_eq!(made.is_some(), all, "{note}");
            let Some(made) = made else { continue };
            for (i, answer) in answers.iter().enumerate() {
                let bits = |x: Scalar| (x.dtype(), x.to_bits());
                let found = made.get(i).map(bits);
                assert_eq!(found, answer.map(bits), "{note}, segment {i} of {}", lens[i]);
            }
        }
    }
}

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const DATA: [Data; 6] =
    [Data::Near, Data::Far, Data::Special, Data::Zeros, Data::Specials, Data::Cancels];
const MISSING: [Missing; 3] = [Missing::OneInAHundred, Missing::Half, Missing::Whole];

#[test]
fn nans_are_omitted_of_segments() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let mut random = Random(56);
    for (i, lens) in lengths(&mut random).into_iter().enumerate() {
        // The last one takes long.
        if i == up_to(11, 10) {
            break;
        }
        for (k, dtype) in FLOATS.into_iter().enumerate() {
            if !thorough() && (i + k) % 3 != 0 {
                continue;
            }
            let how = (DATA[(i + k) % 6], MISSING[(i + k / 2) % 3]);
            let some: Vec<Op> = OF_FLOATS.into_iter().skip(i % 3).step_by(up_to(1, 3)).collect();
            let ops = if thorough() { &OF_FLOATS[..] } else { &some };
            check_omitting(&engine, (&lens, i % 8), dtype, how, ops, 200 + (4 * i + k) as u64);
        }
    }
}

#[test]
fn nans_are_omitted_of_long_segments() {
    for (i, dtype) in FLOATS.into_iter().enumerate() {
        let shape = Shape { blocks: Some([2, 3, 7, 40][i]), ..Shape::default() };
        let engine = Engine::with_shape(Arc::new(Sim::checking()), shape);
        let ops = [Op::Sum, Op::Mean, Op::Var, Op::Norm2, Op::ArgMin, Op::Count, Op::Prod];
        let data = [Data::Far, Data::Near, Data::Cancels, Data::Cancels][i];
        let how = (data, MISSING[i % 3]);
        let lens = lens(up_to(60_000, 20_000));
        check_omitting(&engine, (&lens, i), dtype, how, &ops, 300 + i as u64);
    }
}

#[test]
fn nans_are_omitted_of_segments_on_a_device() {
    let Some(device) = device_of_this_machine() else { return };
    let engine = Engine::new(device);
    let mut random = Random(57);
    let mut all = lengths(&mut random);
    let short = all.len();
    all.extend([drawn(20_000, 40, &mut random), drawn(3_000, 600, &mut random)]);
    all.extend([drawn(200, 16_000, &mut random), lens(1_000_000)]);
    for (i, lens) in all.into_iter().enumerate() {
        for (k, data) in DATA.into_iter().enumerate() {
            for (j, dtype) in FLOATS.into_iter().enumerate() {
                // The states of all take the host a minute.
                if !thorough() && (i + j + k) % if i < short { 2 } else { 6 } != 0 {
                    continue;
                }
                let how = (data, MISSING[(i + j + k) / 2 % 3]);
                let seed = 2000 + (100 * i + 10 * k + j) as u64;
                check_omitting(&engine, (&lens, (i + k) % 9), dtype, how, &OF_FLOATS, seed);
            }
        }
    }
}

/// Lengths of `count` segments, of at most `most` elements, some of them none.
fn drawn(count: usize, most: usize, random: &mut Random) -> Vec<usize> {
    let draw = |_| if random.place(9) == 0 { 0 } else { 1 + random.place(most) };
    (0..count).map(draw).collect()
}

/// Few and many, short and long, by themselves and beside each other.
fn lengths(random: &mut Random) -> Vec<Vec<usize>> {
    let mut long = drawn(70, 30, random);
    long[3] = 4097;
    long[66] = 5000;
    long.extend([0, 0, 600, 0]);
    let some = |each: usize, count: usize| vec![each; count];
    vec![
        drawn(90, 3, random),
        drawn(600, 24, random),
        drawn(130, 90, random),
        drawn(66, 700, random),
        some(16, 70),
        some(1, 1100),
        some(512, 64),
        // Tiles in which nothing ends.
        [drawn(60, 30, random), drawn(8, 3_000, random)].concat(),
        long,
        [some(0, 300), some(1, 1), some(0, 40)].concat(),
        // A warp would have far more than others.
        [some(1, 8_000), some(4000, 24)].concat(),
    ]
}

#[test]
fn segments_in_tiles() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let mut random = Random(51);
    let data = [Data::Near, Data::Far, Data::Special, Data::Zeros, Data::Specials];
    for (i, lens) in lengths(&mut random).into_iter().enumerate() {
        // The last one takes long.
        if i < up_to(11, 10) {
            check_tiles(&device, &lens, data[i % 5], i % 8, 70 + i as u64);
            if thorough() || i % 2 == 1 {
                check_tiles(&device, &lens, data[(i + 1) % 5], 0, 90 + i as u64);
            }
        }
    }
}

#[test]
fn segments_in_tiles_on_a_device() {
    let Some(device) = device_of_this_machine() else { return };
    let mut random = Random(52);
    for round in 0..3 {
        let mut all = lengths(&mut random);
        all.push(drawn(20_000, 40, &mut random));
        all.push(drawn(3_000, 600, &mut random));
        all.push(drawn(200, 16_000, &mut random));
        for (i, lens) in all.into_iter().enumerate() {
            for data in [Data::Near, Data::Far, Data::Special, Data::Zeros, Data::Specials] {
                check_tiles(&device, &lens, data, (i + round) % 9, 1000 + i as u64);
            }
        }
    }
}

#[test]
fn sanitized_segments_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    let mut random = Random(54);
    let data = [Data::Near, Data::Far, Data::Special, Data::Zeros, Data::Specials];
    for (i, lens) in lengths(&mut random).into_iter().enumerate() {
        check_tiles(&device, &lens, data[i % 5], i % 8, 110 + i as u64);
        let (dtype, how) = (FLOATS[i % 4], (DATA[i % 6], MISSING[i % 3]));
        let engine = Engine::new(Arc::clone(&device));
        check_omitting(&engine, (&lens, i % 8), dtype, how, &OF_FLOATS, 500 + i as u64);
    }
    check(device, Shape::default(), &lens(100_000), 34);
}

#[test]
fn segments_of_a_warp_are_short_and_long_and_empty() {
    // Of few multiprocessors, so that a warp has several segments of so many.
    let few = |limits: &mut Limits| limits.multiprocessors = up_to(132, 8);
    let device: Arc<dyn Device> = Arc::new(Altered::new(Sim::checking(), few));
    let mut random = Random(53);
    let all = BLOCKS_OF_ONE * device.limits().multiprocessors as usize * 16;
    let mut lens = drawn(all, 5, &mut random);
    (0..all).step_by(50).for_each(|i| lens[i] = random.place(200));
    lens[1000] = 2500;
    // Of f32, or of all.
    check_tiles(&device, &lens, Data::Far, 1, OF_F32);
}

/// A seed by which f32 is among the types that tiles are checked with.
const OF_F32: u64 = 13 + DType::F32 as u64;

fn lens(most: usize) -> Vec<usize> {
    vec![1, 20, most, 3, 5000, 4096, 4097, 40, 17_000, 700, 2, 16_385, 33]
}

#[test]
fn blocks_share_long_segments() {
    for (i, blocks) in [1, 2, 3, 7, 40].into_iter().enumerate() {
        let shape = Shape { blocks: Some(blocks), ..Shape::default() };
        check(Arc::new(Sim::checking()), shape, &lens(up_to(60_000, 20_000)), 3 + i as u64);
    }
}

#[test]
fn blocks_share_long_segments_on_a_device() {
    let Some(device) = device_of_this_machine() else { return };
    for blocks in [None, Some(1), Some(5), Some(200)] {
        let shape = Shape { blocks, ..Shape::default() };
        check(Arc::clone(&device), shape, &lens(3_000_000), 31);
    }
}

#[test]
fn what_has_no_answer_is_noted() {
    let device: Arc<dyn Device> = Arc::new(Sim::checking());
    let engine = Engine::new(Arc::clone(&device));
    let memory = Buffer::new(&device, 4 * 100).unwrap();
    memory.copy_in(Stream::DEFAULT, 0, &[0; 400]).unwrap();
    let array = Array { address: memory.address(), len: 100, dtype: DType::F32 };
    let offsets = [0i64, 4, 4, 3, 50, 101, 100, -1];
    let boundaries = Buffer::new(&device, 8 * 8).unwrap();
    boundaries.copy_in(Stream::DEFAULT, 0, bytemuck::cast_slice(&offsets)).unwrap();
    let to = Buffer::new(&device, 8 * 8).unwrap();
    let of = |count| {
        let at = Boundaries::Offsets(boundaries.address(), Width::Word64);
        Segments { count, boundaries: at }
    };
    let ask = |op, count| {
        let (of, to) = (of(count), [to.address()]);
        // SAFETY: the buffers hold what is said, and nobody else uses them.
        unsafe { engine.numbers_of_segments_into(&[op], array, &of, None, &to, Stream::DEFAULT) }
    };
    assert_eq!(ask(Op::Sum, 1), Ok(vec![true]));
    assert_eq!(ask(Op::Sum, 2), Ok(vec![true]));
    assert_eq!(ask(Op::Max, 2), Ok(vec![false]));
    assert_eq!(ask(Op::Sum, 3), Ok(vec![false]));
    let (of_two, stream) = (of(2), Stream::DEFAULT);
    // SAFETY: as above.
    let two = unsafe {
        let to = [to.address()];
        engine.numbers_of_segments_into(&[Op::Sum, Op::Mean], array, &of_two, None, &to, stream)
    };
    assert_eq!(two, Ok(vec![true, false]), "the mean has no address");
    let mut left = [1f32; 2];
    // SAFETY: the answers of two segments were left there.
    unsafe { device.copy_out(Stream::DEFAULT, to.address(), bytemuck::cast_slice_mut(&mut left)) }
        .unwrap();
    assert_eq!(left, [0.0; 2]);
    let numbers = |ops: &[Op], count| {
        // SAFETY: as above.
        unsafe { engine.numbers_of_segments(ops, array, &of(count), None, Stream::DEFAULT) }
    };
    let zeros = Some(Numbers::zeros(DType::F32, 2));
    assert_eq!(numbers(&[Op::Sum, Op::Max], 2), Ok(vec![zeros, None]));
    assert_eq!(numbers(&[Op::Sum], 3), Ok(vec![None]));
    let fixed = Segments { count: 26, boundaries: Boundaries::Fixed(4) };
    // SAFETY: as above; nothing is read.
    let beyond =
        unsafe { engine.numbers_of_segments(&[Op::Sum], array, &fixed, None, Stream::DEFAULT) };
    assert_eq!(beyond, Ok(vec![None]));
    let odd = Segments {
        count: 1,
        boundaries: Boundaries::Offsets(boundaries.address() + 1, Width::Word64),
    };
    // SAFETY: as above; nothing is read.
    let odd = unsafe { engine.numbers_of_segments(&[Op::Sum], array, &odd, None, Stream::DEFAULT) };
    assert!(matches!(odd, Err(Error::Array { .. })), "{odd:?}");
}
