//! Arrays in a device's memory, on the interpreter with all its checks on and on the GPU if
//! there is one: the same answers, errors and states as of the same arrays in the host's.

use crate::arrays::Random;
use crate::thorough::{thorough, up_to};
use std::cell::Cell;
use warpfold::internal::{engine_of, stream_of};
use warpfold::{
    DType, Device, DeviceArray, DeviceArrayMut, DeviceStream, Error, NanPolicy, Op, Partial,
    Reduction, Rules, View,
};
use warpfold_cuda::{Buffer, Stream};

/// Bytes and a view of them, in the host's memory and in a device's.
struct Sample {
    dtype: DType,
    words: Vec<u64>,
    bytes: usize,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
    buffer: Buffer<'static>,
}

impl Sample {
    fn new(stream: &DeviceStream, dtype: DType, axes: Axes, random: &mut Random) -> Sample {
        let Axes { offset, shape, strides, bytes } = axes;
        let words = elements(dtype, bytes, random);
        let engine = engine_of(stream.device()).unwrap();
        let buffer = Buffer::new(engine.device(), bytes.max(1) as u64).unwrap();
        buffer.copy_in(Stream::DEFAULT, 0, &bytemuck::cast_slice(&words)[..bytes]).unwrap();
        Sample { dtype, words, bytes, offset, shape, strides, buffer }
    }

    fn view(&self) -> View<'_> {
        let bytes = &bytemuck::cast_slice(&self.words)[..self.bytes];
        View::strided(self.dtype, bytes, self.offset, &self.shape, &self.strides).unwrap()
    }

    fn array(&self, stream: &DeviceStream) -> DeviceArray<'_> {
        let at = self.buffer.address() + self.offset as u64;
        // SAFETY: the buffer has the view's bytes, and nobody writes to it.
        unsafe { DeviceArray::from_raw_strided(self.dtype, at, &self.shape, &self.strides, stream) }
            .unwrap()
    }
}

/// Bytes in which elements of a type make sense: any bits, small numbers, or few values.
pub(crate) fn elements(dtype: DType, bytes: usize, random: &mut Random) -> Vec<u64> {
    let size = dtype.size();
    let pattern = random.below(4);
    let mut words = vec![0u64; bytes.div_ceil(8)];
    let all: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    for to in all.chunks_exact_mut(size) {
        let bits = random.next();
        let x = (bits >> 11) as f64 / (1u64 << 50) as f64 - 4.0;
        let value = match (pattern, dtype) {
            (_, DType::Bool) => bits >> 7 & 1,
            (0, _) => bits,
            (1, _) if !dtype.is_float() => bits % 3,
            (1, _) => (bits & 1) << (8 * size - 1),
            (_, DType::F64) => x.to_bits(),
            (_, DType::F32) => u64::from((x as f32).to_bits()),
            (_, DType::F16) => u64::from(warpfold::f16::from_f64(x).to_bits()),
            (_, DType::BF16) => u64::from(warpfold::bf16::from_f64(x).to_bits()),
            _ => x as i64 as u64,
        };
        to.copy_from_slice(&value.to_le_bytes()[..size]);
    }
    words
}

/// How a view lies in its bytes.
struct Axes {
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
    bytes: usize,
}

impl Axes {
    /// C order from the first byte on.
    fn dense(dtype: DType, shape: &[usize]) -> Axes {
        let mut next = dtype.size() as isize;
        let mut strides = vec![0; shape.len()];
        for (stride, &n) in strides.iter_mut().zip(shape).rev() {
            *stride = next;
            next *= n as isize;
        }
        let bytes = shape.iter().product::<usize>() * dtype.size();
        Axes { offset: 0, shape: shape.to_vec(), strides, bytes }
    }

    /// Axes in any order, forwards, backwards, repeated, overlapping, with gaps, and
    /// rarely not aligned.
    fn drawn(dtype: DType, random: &mut Random) -> Axes {
        let most = up_to(4000, 700);
        let lens = [0, 1, 2, 3, 4, 5, 7, 16, 17, 31, 33, 64, 129, 300, 513];
        let ndim = random.below(4);
        let mut shape: Vec<usize> = (0..ndim)
            .map(|_| if random.chance(15) { 0 } else { lens[1 + random.below(lens.len() - 1)] })
            .collect();
        while shape.iter().product::<usize>() > most {
            let longest = (0..ndim).max_by_key(|&i| shape[i]).unwrap();
            shape[longest] = shape[longest].div_ceil(2);
        }
        if random.chance(3) {
            return Axes::dense(dtype, &shape);
        }
        let size = dtype.size() as isize;
        let mut order: Vec<usize> = (0..ndim).collect();
        for i in (1..ndim).rev() {
            order.swap(i, random.below(i + 1));
        }
        let unaligned = isize::from(dtype.size() > 1 && random.chance(12));
        let (mut next, mut strides) = (size, vec![0; ndim]);
        for axis in order {
            let n = shape[axis] as isize;
            let gap =
                size * if random.chance(3) { random.below(3) as isize } else { 0 } + unaligned;
            strides[axis] = match random.below(9) {
                0 => 0,
                1 => size,
                2 | 3 => -next,
                4 => 2 * next,
                _ => next,
            };
            next = strides[axis].abs().max(next) * n.max(1) + gap;
        }
        if shape.contains(&0) {
            return Axes { offset: 0, shape, strides, bytes: 0 };
        }
        let reach = |sign: isize| -> isize {
            let axes = shape.iter().zip(&strides);
            axes.map(|(&n, &s)| (n as isize - 1) * s).filter(|r| r.signum() == sign).sum()
        };
        let before = random.below(4) as isize * size + unaligned;
        let offset = (before - reach(-1)) as usize;
        let bytes = offset + (reach(1) + size) as usize;
        Axes { offset, shape, strides, bytes }
    }
}

/// A question of a type's elements, about some of `ndim` axes.
fn question(dtype: DType, ndim: usize, random: &mut Random) -> Reduction {
    let all: Vec<Op> =
        Op::ALL.into_iter().filter(|op| op.supports(dtype) && op.arity() == 1).collect();
    let ops: Vec<Op> = (0..1 + random.below(3)).map(|_| random.pick(&all)).collect();
    let mut question = Reduction::new(ops).keepdims(random.chance(4));
    if random.chance(3) {
        let policy = [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error];
        question = question.nan(random.pick(&policy)).ddof(random.below(3) as u64);
    }
    if random.chance(6) {
        question = question.out(random.pick(&DType::ALL));
    }
    question = question.wrap(random.chance(4));
    if random.chance(4) {
        return question;
    }
    let set = random.below(1 << ndim);
    question.axes((0..ndim as isize).filter(|i| set >> i & 1 == 1))
}

/// Answers in a device's memory, brought back.
fn left(
    stream: &DeviceStream,
    types: &[DType],
    outputs: usize,
    leave: impl FnOnce(&mut [DeviceArrayMut<'_>]) -> warpfold::Result<()>,
) -> warpfold::Result<Vec<Vec<u8>>> {
    let engine = engine_of(stream.device()).unwrap();
    let room = |dtype: &DType| {
        let buffer = Buffer::new(engine.device(), (outputs * dtype.size()).max(1) as u64).unwrap();
        (buffer, *dtype)
    };
    let buffers: Vec<(Buffer<'_>, DType)> = types.iter().map(room).collect();
    let to = |(buffer, dtype): &(Buffer<'_>, DType)| {
        // SAFETY: the buffer has room, and is used on this stream alone.
        unsafe { DeviceArrayMut::from_raw(*dtype, buffer.address(), outputs, stream) }.unwrap()
    };
    let mut arrays: Vec<DeviceArrayMut<'_>> = buffers.iter().map(to).collect();
    let done = leave(&mut arrays);
    stream.wait().unwrap();
    let back = |(buffer, dtype): &(Buffer<'_>, DType)| {
        let mut bytes = vec![0; outputs * dtype.size()];
        buffer.copy_out(Stream::DEFAULT, 0, &mut bytes).unwrap();
        bytes
    };
    done.map(|()| buffers.iter().map(back).collect())
}

/// Asks a question of an array where it lies, in all ways there are, and of the host's.
fn compare(stream: &DeviceStream, question: &Reduction, sample: &Sample, start: u64) -> usize {
    let (view, array) = (sample.view(), sample.array(stream));
    let here = question.clone().device(Device::Cpu);
    let note = || {
        let Sample { dtype, offset, shape, strides, .. } = sample;
        format!("{question:?} of {dtype} {shape:?} {strides:?} from {offset}")
    };
    let expected = here.run(&view);
    // Of several operations without an answer, any is told of: outputs or operations may
    // come first.
    let alone = |&op: &Op| {
        let ops = Reduction::new([op]).axes([]);
        let Rules { nan, ddof, out, wrap, .. } = *question.rules();
        let ops = ops.nan(nan).ddof(ddof).wrap(wrap).device(Device::Cpu);
        let ops = out.into_iter().fold(ops, Reduction::out);
        match question.named_axes() {
            warpfold::Axes::All => ops.axes(0..sample.shape.len() as isize).run(&view).err(),
            warpfold::Axes::These(axes) => ops.axes(axes.iter().copied()).run(&view).err(),
        }
    };
    let told = |error: &Error| question.ops().iter().any(|op| alone(op).as_ref() == Some(error));
    match (question.run(&array), &expected) {
        (Err(error), Err(_)) => assert!(told(&error), "{error}: {}", note()),
        (answer, expected) => assert_eq!(&answer, expected, "{}", note()),
    }
    let states = here.partial(&view, start);
    assert_eq!(question.partial(&array, start), states, "{}", note());

    let types = question.answer_types(sample.dtype);
    let reduced = question.named_axes().resolve(sample.shape.len()).unwrap();
    let kept = sample.shape.iter().zip(&reduced).filter(|(_, reduced)| !**reduced);
    let outputs: usize = kept.map(|(&n, _)| n).product();
    let numbers = expected.clone().map(|answer| {
        let columns = answer.into_columns().into_iter();
        let both = columns.flat_map(|column| [Some(column.numbers), column.second]).flatten();
        both.map(|numbers| numbers.bytes().to_vec()).collect::<Vec<_>>()
    });
    let into = left(stream, &types, outputs, |answers| question.run_into(&array, answers));
    match (into, &numbers) {
        (Err(error), Err(_)) => assert!(told(&error), "{error}: {}", note()),
        (into, numbers) => assert_eq!(&into, numbers, "{}", note()),
    }

    let matters = question.ops().iter().any(|&op| question.rules().matter_for(op, sample.dtype));
    let prepared = match question.prepare(&array) {
        Ok(prepared) => prepared,
        Err(Error::DeviceMemory { what, .. }) => {
            let undone = |op: &Op| {
                let whole = !sample.dtype.is_float();
                whole && matches!(op, Op::Prod | Op::LogSumExp)
            };
            assert!(matters || question.ops().iter().any(undone), "{what}: {}", note());
            return 0;
        }
        Err(error) => {
            assert!(numbers.is_err() && told(&error), "{error}: {}", note());
            return 0;
        }
    };
    assert!(!matters, "{}", note());
    // Twice: what the first one leaves behind is of no matter.
    for _ in 0..2 {
        let found = left(stream, &types, outputs, |answers| prepared.enqueue(&array, answers));
        let checked = prepared.check();
        match (&numbers, checked) {
            (Err(Error::Overflow { .. }), Err(Error::Overflow { .. })) => {
                let wrapped = here.clone().wrap(true).run(&view).unwrap();
                let first = wrapped.columns()[0].numbers.bytes().to_vec();
                assert_eq!(found.unwrap()[0], first, "{}", note());
            }
            (_, checked) => {
                assert_eq!(found, numbers, "{}", note());
                assert_eq!(checked, Ok(()), "{}", note());
            }
        }
    }
    1
}

fn sweep(stream: &DeviceStream, rounds: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut prepared = 0;
    for round in 0..rounds {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let axes = Axes::drawn(dtype, &mut random);
        let sample = Sample::new(stream, dtype, axes, &mut random);
        let question = question(dtype, sample.shape.len(), &mut random);
        prepared += compare(stream, &question, &sample, [0, 7, 4096][round % 3]);
    }
    assert!(prepared > rounds / 4, "{prepared} of {rounds}");
}

/// Which of two ways a comparison on the interpreter goes: by turns, or both. A device's are fast.
pub(crate) fn ways(device: Device) -> [bool; 2] {
    thread_local!(static TURN: Cell<bool> = const { Cell::new(false) });
    let turn = TURN.replace(!TURN.get());
    if thorough() || device != Device::Sim { [true, true] } else { [turn, !turn] }
}

pub(crate) fn interpreter() -> DeviceStream {
    DeviceStream::default_of(Device::Sim).unwrap()
}

/// The first GPU. Skips aloud without one, unless `WARPFOLD_REQUIRE_CUDA` asks for it.
pub(crate) fn gpu() -> Option<DeviceStream> {
    match DeviceStream::default_of(Device::Cuda(None)) {
        Ok(stream) => Some(stream),
        Err(error) if std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn arrays_are_reduced_where_they_lie() {
    sweep(&interpreter(), up_to(520, 78), 11);
}

#[test]
fn arrays_on_a_device_are_reduced_where_they_lie() {
    let Some(stream) = gpu() else { return };
    sweep(&stream, 1300, 12);
}

/// Every operation of every type, over an axis of a small table and over all of it.
#[test]
fn every_operation_where_it_lies() {
    let stream = interpreter();
    let mut random = Random::new(21);
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        let sample = Sample::new(&stream, dtype, Axes::dense(dtype, &[3, 11]), &mut random);
        let ops = Op::ALL.into_iter().filter(|op| op.supports(dtype) && op.arity() == 1);
        for (j, op) in ops.enumerate() {
            for (k, axes) in [&[0isize, 1][..], &[0], &[1]].into_iter().enumerate() {
                // One of the three in turn, if there is little time.
                if !thorough() && (i + j) % 3 != k {
                    continue;
                }
                let question = Reduction::of(op).axes(axes.iter().copied());
                compare(&stream, &question, &sample, 5);
            }
        }
    }
}

fn bytes_of<T: bytemuck::NoUninit>(items: &[T]) -> Buffer<'static> {
    let engine = engine_of(Device::Sim).unwrap();
    let bytes: &[u8] = bytemuck::cast_slice(items);
    let buffer = Buffer::new(engine.device(), bytes.len().max(1) as u64).unwrap();
    buffer.copy_in(Stream::DEFAULT, 0, bytes).unwrap();
    buffer
}

fn array_of<'a>(dtype: DType, buffer: &'a Buffer<'_>, shape: &[usize]) -> DeviceArray<'a> {
    // SAFETY: the tests' buffers hold as many elements, and nobody writes to them.
    unsafe { DeviceArray::from_raw(dtype, buffer.address(), shape, &interpreter()) }.unwrap()
}

fn room<'a>(dtype: DType, buffer: &'a Buffer<'_>, len: usize) -> DeviceArrayMut<'a> {
    // SAFETY: the tests' buffers have room, and are used on this stream alone.
    unsafe { DeviceArrayMut::from_raw(dtype, buffer.address(), len, &interpreter()) }.unwrap()
}

#[test]
fn pairs_where_they_lie() {
    let stream = interpreter();
    let mut random = Random::new(31);
    for dtype in [DType::F32, DType::F64, DType::I8, DType::U64, DType::BF16] {
        for shape in [&[0usize][..], &[1], &[700], &[3, 40], &[40, 3]] {
            let [a, b] =
                [0, 1].map(|_| Sample::new(&stream, dtype, Axes::dense(dtype, shape), &mut random));
            for axes in [vec![0], (0..shape.len() as isize).collect()] {
                let question = Reduction::of(Op::Dot).axes(axes).wrap(true);
                let expected = question.run_pair(a.view(), b.view());
                let (left, right) = (a.array(&stream), b.array(&stream));
                assert_eq!(question.run_pair(&left, &right), expected, "{dtype} {shape:?}");
                let states = question.partial_pair(a.view(), b.view(), 3);
                assert_eq!(question.partial_pair(&left, &right, 3), states);
                // One of each memory is no pair.
                let apart = question.run_pair(&left, b.view()).unwrap_err();
                assert!(apart.to_string().contains("the host's memory"), "{apart}");
            }
        }
    }
    let [a, b] = [bytes_of(&[1f32; 6]), bytes_of(&[1f32; 6])];
    let (six, three) = (array_of(DType::F32, &a, &[6]), array_of(DType::F32, &b, &[3]));
    let ints = array_of(DType::I32, &b, &[6]);
    let dot = Reduction::of(Op::Dot);
    assert!(matches!(dot.run_pair(&six, &three), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(dot.run_pair(&six, &ints), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(dot.run(&six), Err(Error::Arity { .. })));
    assert!(matches!(Reduction::of(Op::Sum).run_pair(&six, &six), Err(Error::Arity { .. })));
}

/// A partial goes on with chunks of either memory, and merges with all others.
#[test]
fn partials_absorb_arrays_where_they_lie() {
    let data: Vec<f64> = (0..3000).map(|i| f64::from(i % 700).sqrt() - 11.0).collect();
    let question = Reduction::new([Op::Mean, Op::ArgMax, Op::Var, Op::Prod]);
    let whole = question.partial(&data, 0).unwrap();
    let buffer = bytes_of(&data);
    let piece = |from: usize, to: usize| {
        let at = buffer.address() + 8 * from as u64;
        // SAFETY: elements of the buffer, which nobody writes to.
        unsafe { DeviceArray::from_raw(DType::F64, at, &[to - from], &interpreter()) }.unwrap()
    };
    let mut partial = question.partial(piece(0, 1000), 0).unwrap();
    partial.absorb(&data[1000..1300]).unwrap();
    partial.absorb(piece(1300, 1300)).unwrap();
    partial.absorb(piece(1300, 2999)).unwrap();
    let last = question.partial(piece(2999, 3000), 2999).unwrap();
    partial.merge(&Partial::from_bytes(&last.to_bytes()).unwrap()).unwrap();
    assert_eq!(partial, whole);
    assert_eq!(partial.to_bytes(), whole.to_bytes());
    // What does not fit leaves it as it was.
    let ints = array_of(DType::I64, &buffer, &[3]);
    assert!(matches!(partial.absorb(&ints), Err(Error::StateMismatch { .. })));
    assert_eq!(partial, whole);
    let dot = Reduction::of(Op::Dot);
    let mut pairs = dot.partial_pair(&data[..100], &data[1..101], 0).unwrap();
    pairs.absorb_pair(piece(100, 2000), piece(101, 2001)).unwrap();
    assert_eq!(pairs, dot.partial_pair(&data[..2000], &data[1..2001], 0).unwrap());
}

#[test]
fn initial_values_take_part_where_arrays_lie() {
    let data = [1i32, -7, 5, 2];
    let buffer = bytes_of(&data);
    let array = array_of(DType::I32, &buffer, &[2, 2]);
    let question = Reduction::new([Op::Sum, Op::Min]).axis(0).initial(-5);
    assert_eq!(question.run(&array), question.run(&[[1i32, -7], [5, 2]]));
    let none = array_of(DType::I32, &buffer, &[0, 2]);
    assert_eq!(question.run(&none).unwrap().slice::<i32>(Op::Min), Some(&[-5, -5][..]));
    let (sums, least) = (bytes_of(&[0i64; 2]), bytes_of(&[0i32; 2]));
    let mut answers = [room(DType::I64, &sums, 2), room(DType::I32, &least, 2)];
    question.run_into(&array, &mut answers).unwrap();
    let mut found = [0; 16];
    sums.copy_out(Stream::DEFAULT, 0, &mut found).unwrap();
    assert_eq!(bytemuck::cast::<[u8; 16], [i64; 2]>(found), [1, -10]);
    let refused = question.prepare(&array).unwrap_err();
    assert!(refused.hint().is_some_and(|hint| hint.contains("run_into")), "{refused}");
}

fn refusal<T: core::fmt::Debug>(result: warpfold::Result<T>, part: &str) {
    let error = result.unwrap_err();
    assert!(error.to_string().contains(part), "{error}, not {part}");
    assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{error}");
    let is_of_memory = matches!(error, Error::DeviceMemory { .. } | Error::Device { .. });
    assert!(is_of_memory, "{error:?}");
}

#[test]
fn memory_that_cannot_be_is_refused() {
    let stream = interpreter();
    // SAFETY: nothing is read at these addresses, which are refused.
    unsafe {
        let raw =
            |address, shape: &[usize]| DeviceArray::from_raw(DType::F64, address, shape, &stream);
        refusal(raw(0, &[3]), "null pointer");
        refusal(raw(0, &[]), "null pointer");
        refusal(raw(256, &[1 << 62, 1 << 62]), "counted");
        refusal(raw(256, &[1 << 62, 1 << 62, 0]), "counted");
        refusal(raw(u64::MAX - 7, &[2]), "address space");
        refusal(raw(256, &[1 << 61]), "address space");
        assert!(raw(0, &[0, 5]).is_ok());
        let strided = |shape: &[usize], strides: &[isize]| {
            DeviceArray::from_raw_strided(DType::F64, 256, shape, strides, &stream)
        };
        refusal(strided(&[2, 2], &[8]), "one stride");
        refusal(strided(&[2], &[]), "one stride");
        refusal(strided(&[3], &[-256]), "address space");
        refusal(strided(&[3], &[isize::MAX]), "address space");
        refusal(strided(&[2], &[isize::MIN]), "address space");
        let to = |dtype, address, len| DeviceArrayMut::from_raw(dtype, address, len, &stream);
        refusal(to(DType::F32, 0, 1), "null pointer");
        refusal(to(DType::F32, 258, 1), "cannot go to");
        refusal(to(DType::U64, 256, usize::MAX), "counted");
        assert!(to(DType::F32, 0, 0).is_ok());
        // What is nobody's memory is found out before a kernel reads it.
        let nowhere = raw(1 << 50, &[100]).unwrap();
        refusal(Reduction::of(Op::Sum).run(&nowhere), "does not know this memory");
        refusal(Reduction::of(Op::Sum).axes([]).run(&nowhere), "does not know this memory");
        refusal(Reduction::of(Op::Var).prepare(&nowhere), "does not know this memory");
        refusal(Reduction::of(Op::Sum).partial(&nowhere, 0), "does not know this memory");
    }
    let few = bytes_of(&[1f64; 4]);
    let long = array_of(DType::F64, &few, &[1 << 20]);
    refusal(Reduction::of(Op::Max).run(&long), "does not know this memory");
    refusal(DeviceStream::default_of(Device::Cpu), "no stream");
    refusal(DeviceStream::default_of(Device::Auto), "no stream");
    // SAFETY: no stream of other code is used.
    refusal(unsafe { DeviceStream::from_raw(Device::Sim, core::ptr::null_mut()) }, "other code");
    let four = array_of(DType::F64, &few, &[4]);
    for device in [Device::Cpu, Device::Cuda(None), Device::Cuda(Some(3))] {
        refusal(Reduction::of(Op::Sum).device(device).run(&four), "cannot read");
        refusal(Reduction::of(Op::Sum).device(device).partial(&four, 0), "cannot read");
        refusal(Reduction::of(Op::Sum).device(device).prepare(&four), "cannot read");
    }
    assert!(Reduction::of(Op::Sum).device(Device::Sim).run(&four).is_ok());
    assert!(matches!(four.reshaped(&[3]), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(four.reshaped(&[usize::MAX, 3]), Err(Error::ShapeMismatch { .. })));
    assert_eq!(four.reshaped(&[2, 2]).unwrap().strides(), [16, 8]);
}

#[test]
fn answers_that_do_not_fit_their_memory_are_refused() {
    let (data, to) = (bytes_of(&[1f32; 12]), bytes_of(&[0u64; 12]));
    let array = array_of(DType::F32, &data, &[3, 4]);
    let question = Reduction::of(Op::Mean).axis(1);
    let prepared = question.prepare(&array).unwrap();
    assert_eq!((prepared.shape(), prepared.answer_types()), (&[3][..], &[DType::F32][..]));
    let both = |answers: &mut [DeviceArrayMut<'_>], part: &str| {
        refusal(question.run_into(&array, answers), part);
        refusal(prepared.enqueue(&array, answers), part);
    };
    both(&mut [], "0 arrays for 1");
    both(&mut [room(DType::F32, &to, 3), room(DType::F32, &to, 3)], "2 arrays for 1");
    both(&mut [room(DType::F32, &to, 2)], "room for 2");
    both(&mut [room(DType::F32, &to, 4)], "room for 4");
    both(&mut [room(DType::F64, &to, 3)], "of f64");
    both(&mut [room(DType::F32, &data, 3)], "overlap");
    // SAFETY: nothing is written there.
    let nowhere =
        unsafe { DeviceArrayMut::from_raw(DType::F32, 1 << 50, 3, &interpreter()) }.unwrap();
    both(&mut [nowhere], "does not know this memory");
    let other = engine_of(Device::Sim).unwrap().device().stream().unwrap();
    let other = stream_of(Device::Sim, other).unwrap();
    // SAFETY: as for `room`; it is refused.
    let elsewhere =
        unsafe { DeviceArrayMut::from_raw(DType::F32, to.address(), 3, &other) }.unwrap();
    both(&mut [elsewhere], "different streams");
    // Nothing was written by all of these.
    let mut bytes = [9; 96];
    to.copy_out(Stream::DEFAULT, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 96]);
    let pairs = Reduction::of(Op::MinMax);
    let twice = &mut [room(DType::F32, &to, 1), room(DType::F32, &to, 1)];
    refusal(pairs.run_into(&array, twice), "each other");

    // Prepared questions are of arrays of one shape on one stream.
    let answers = &mut [room(DType::F32, &to, 3)];
    let turned = array.reshaped(&[4, 3]).unwrap();
    refusal(prepared.enqueue(&turned, answers), "prepared for f32 elements of shape [3, 4]");
    let ints = array_of(DType::I32, &data, &[3, 4]);
    refusal(prepared.enqueue(&ints, answers), "prepared for f32");
    // SAFETY: as for `array_of`.
    let elsewhere =
        unsafe { DeviceArray::from_raw(DType::F32, data.address(), &[3, 4], &other) }.unwrap();
    refusal(prepared.enqueue(&elsewhere, answers), "another stream");
    refusal(Reduction::of(Op::Dot).run_pair(&array, &elsewhere), "different streams");
    prepared.enqueue(&array, answers).unwrap();
    // Another stream has its own.
    let question = question.prepare(&elsewhere).unwrap();
    // SAFETY: as above, and the other stream is done.
    let answers = unsafe { DeviceArrayMut::from_raw(DType::F32, to.address(), 3, &other) }.unwrap();
    question.enqueue(&elsewhere, &mut [answers]).unwrap();
    other.wait().unwrap();
    to.copy_out(Stream::DEFAULT, 0, &mut bytes).unwrap();
    assert_eq!(bytemuck::cast_slice::<u8, f32>(&bytes[..12]), [1.0; 3]);
}

#[test]
fn totals_beyond_their_type_are_told_after_a_wait() {
    let data = bytes_of(&[i64::MAX, 1, 2, 3]);
    let array = array_of(DType::I64, &data, &[2, 2]);
    let to = bytes_of(&[0i64; 2]);
    let question = Reduction::of(Op::Sum).axis(1);
    let prepared = question.prepare(&array).unwrap();
    // The array that it was prepared with is not told of.
    assert_eq!(prepared.check(), Ok(()));
    prepared.enqueue(&array, &mut [room(DType::I64, &to, 2)]).unwrap();
    assert!(matches!(prepared.check(), Err(Error::Overflow { op: Op::Sum, .. })));
    assert_eq!(prepared.check(), Ok(()));
    let mut bytes = [0; 16];
    to.copy_out(Stream::DEFAULT, 0, &mut bytes).unwrap();
    assert_eq!(bytemuck::cast::<[u8; 16], [i64; 2]>(bytes), [i64::MIN, 5]);
    let wrapping = question.clone().wrap(true).prepare(&array).unwrap();
    wrapping.enqueue(&array, &mut [room(DType::I64, &to, 2)]).unwrap();
    assert_eq!(wrapping.check(), Ok(()));
    let told = question.run_into(&array, &mut [room(DType::I64, &to, 2)]);
    assert!(matches!(told, Err(Error::Overflow { .. })), "{told:?}");
    let rules = Rules::default();
    let state = question.partial(&array, 0).unwrap();
    assert!(matches!(state.finish(&rules), Err(Error::Overflow { .. })));
}

/// One reduction over what another has left, on one stream and without a wait.
#[test]
fn answers_are_reduced_in_turn() {
    let data: Vec<f32> = (0..600).map(|i| (i as f32 * 0.37).sin()).collect();
    let buffer = bytes_of(&data);
    let (rows, all) = (bytes_of(&[0f32; 20]), bytes_of(&[0u64; 1]));
    let table = array_of(DType::F32, &buffer, &[20, 30]);
    let means = array_of(DType::F32, &rows, &[20]);
    let each = Reduction::of(Op::Mean).axis(1).prepare(&table).unwrap();
    let best = Reduction::of(Op::ArgMax).prepare(&means).unwrap();
    each.enqueue(&table, &mut [room(DType::F32, &rows, 20)]).unwrap();
    best.enqueue(&means, &mut [room(DType::U64, &all, 1)]).unwrap();
    best.check().unwrap();
    let mut bytes = [0; 8];
    all.copy_out(Stream::DEFAULT, 0, &mut bytes).unwrap();
    let view = View::of_strided(&data, 0, &[20, 30], &[30, 1]).unwrap();
    let expected = Reduction::of(Op::Mean).axis(1).run(&view).unwrap();
    let expected = Reduction::of(Op::ArgMax).run(expected.slice::<f32>(Op::Mean).unwrap()).unwrap();
    assert_eq!(Some(u64::from_le_bytes(bytes)), expected.number(Op::ArgMax));
}

/// Prepared questions go from thread to thread.
#[test]
fn prepared_questions_are_shared() {
    fn check<T: Send + Sync>() {}
    check::<warpfold::Prepared>();
    check::<warpfold::PreparedPartial>();
    check::<DeviceStream>();
}

fn words_of(buffer: &Buffer<'_>, words: usize) -> Vec<u64> {
    let mut found = vec![0u64; words];
    buffer.copy_out(Stream::DEFAULT, 0, bytemuck::cast_slice_mut(&mut found)).unwrap();
    found
}

#[test]
fn states_stay_where_the_arrays_lie() {
    let stream = interpreter();
    let mut random = Random::new(51);
    let mut done = 0;
    for dtype in DType::ALL {
        for op in Op::ALL.into_iter().filter(|op| op.supports(dtype) && op.arity() == 1) {
            let sample = Sample::new(&stream, dtype, Axes::dense(dtype, &[7, 130]), &mut random);
            let array = sample.array(&stream);
            let question = Reduction::new([op, Op::Count]).keepdims(random.chance(2));
            let prepared = match question.prepare_partial(&array) {
                Ok(prepared) => prepared,
                Err(error) => {
                    assert!(op == Op::Prod && !dtype.is_float(), "{op} of {dtype}: {error}");
                    assert!(error.to_string().contains("128 bits"), "{error}");
                    continue;
                }
            };
            let buffer = bytes_of(&vec![0u64; prepared.words()]);
            let mut words = room(DType::U64, &buffer, prepared.words());
            for start in [0, 1000] {
                prepared.enqueue(&array, start, &mut words).unwrap();
                stream.wait().unwrap();
                let found = prepared.partial(&words_of(&buffer, prepared.words())).unwrap();
                let expected = question.partial(sample.view(), start).unwrap();
                assert_eq!(found, expected, "{op} of {dtype} from {start}");
            }
            let late = prepared.enqueue(&array, u64::MAX, &mut words);
            assert!(matches!(late, Err(Error::StartTooLarge { .. })), "{late:?}");
            done += 1;
        }
    }
    assert!(done > 150, "{done}");
}

/// Exact sums of floats are integers, which any code may add.
#[test]
fn words_of_sums_add_up() {
    let stream = interpreter();
    let mut random = Random::new(52);
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let question = Reduction::new([Op::Mean]);
        let samples =
            [0; 3].map(|_| Sample::new(&stream, dtype, Axes::dense(dtype, &[300]), &mut random));
        let arrays = samples.each_ref().map(|sample| sample.array(&stream));
        let prepared = question.prepare_partial(&arrays[0]).unwrap();
        let (mut sum, mut merged) = (vec![0u64; prepared.words()], None::<Partial>);
        for (array, sample) in arrays.iter().zip(&samples) {
            let buffer = bytes_of(&vec![0u64; prepared.words()]);
            prepared.enqueue(array, 0, &mut room(DType::U64, &buffer, sum.len())).unwrap();
            stream.wait().unwrap();
            let words = words_of(&buffer, sum.len());
            sum.iter_mut().zip(words).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
            let partial = question.partial(sample.view(), 0).unwrap();
            match &mut merged {
                Some(merged) => merged.merge(&partial).unwrap(),
                none => *none = Some(partial),
            }
        }
        assert_eq!(Some(prepared.partial(&sum).unwrap()), merged, "{dtype}");
    }
}

#[test]
fn states_that_cannot_stay_are_refused() {
    let (data, to) = (bytes_of(&[1f32; 24]), bytes_of(&[0u64; 200]));
    let array = array_of(DType::F32, &data, &[4, 6]);
    let sum = Reduction::of(Op::Sum);
    refusal(sum.clone().axis(0).prepare_partial(&array), "whole arrays");
    refusal(sum.prepare_partial(&array_of(DType::F32, &data, &[0])), "whole arrays");
    // SAFETY: elements of the buffer.
    let every_second = unsafe {
        DeviceArray::from_raw_strided(DType::F32, data.address(), &[12], &[8], &interpreter())
    };
    refusal(sum.prepare_partial(&every_second.unwrap()), "whole arrays");
    refusal(sum.clone().device(Device::Cpu).prepare_partial(&array), "cannot read");
    assert!(matches!(
        sum.clone().initial(1f32).prepare_partial(&array),
        Err(Error::BadInitial { .. })
    ));
    assert!(matches!(Reduction::of(Op::Dot).prepare_partial(&array), Err(Error::Arity { .. })));
    let prepared = sum.prepare_partial(&array).unwrap();
    let words = prepared.words();
    let enqueue = |mut to: DeviceArrayMut<'_>| prepared.enqueue(&array, 0, &mut to);
    refusal(enqueue(room(DType::U64, &to, words - 1)), "room for");
    refusal(enqueue(room(DType::I64, &to, words)), "of i64");
    refusal(enqueue(room(DType::U64, &data, words)), "overlap");
    let other = array.reshaped(&[24]).unwrap();
    refusal(prepared.enqueue(&other, 0, &mut room(DType::U64, &to, words)), "prepared for f32");
    for wrong in [&[][..], &vec![0; words + 1]] {
        assert!(matches!(prepared.partial(wrong), Err(Error::DamagedState { .. })));
    }
    let damaged = vec![u64::MAX; words];
    assert!(matches!(prepared.partial(&damaged), Err(Error::DamagedState { .. })));
}
