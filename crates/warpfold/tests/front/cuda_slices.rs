//! Slices, streams and graphs of cudarc, on the GPU if there is one.

use crate::device_arrays::gpu;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaSlice, result};
use std::sync::Arc;
use warpfold::{
    DeviceArray, DeviceArrayMut, DeviceStream, Error, NanPolicy, Op, Partial, Reduction, View,
};

/// The context of device 0, or none, aloud.
fn context() -> Option<Arc<CudaContext>> {
    // cudarc panics without a driver: this asks first.
    gpu().map(|_| CudaContext::new(0).expect("a context"))
}

/// Numbers of all sizes, other ones for each seed.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    (0..n).map(|_| f64::from_bits(next() & !(1 << 62))).collect()
}

#[test]
fn slices_on_a_device_are_reduced_on_any_stream() {
    let Some(context) = context() else { return };
    let question = Reduction::new([Op::Mean, Op::Var, Op::ArgMin, Op::Norm1]);
    for stream in [context.default_stream(), context.new_stream().unwrap()] {
        for n in [0, 1, 1000, 300_007] {
            let items = numbers(n, n as u64);
            let slice = stream.clone_htod(&items).unwrap();
            let array = DeviceArray::of(&slice, &stream).unwrap();
            assert_eq!(question.run(&array), question.run(&items), "{n}");
            let omit = question.clone().nan(NanPolicy::Omit).ddof(1);
            assert_eq!(omit.run(&array), omit.run(&items), "{n}");
            if n > 7 {
                let view = slice.slice(7..);
                let array = DeviceArray::of(&view, &stream).unwrap();
                assert_eq!(question.run(array), question.run(&items[7..]));
                // Every second element backwards, in rows that overlap.
                let (shape, strides) = ([n / 4, 5], [1isize, -2]);
                let array = DeviceArray::of_strided(&slice, 8, &shape, &strides, &stream).unwrap();
                let view = View::of_strided(&items, 8, &shape, &strides).unwrap();
                let question = question.clone().axis(1);
                assert_eq!(question.run(&array), question.run(&view));
            }
        }
    }
}

#[test]
fn slices_that_do_not_fit_a_device_are_refused() {
    let Some(context) = context() else { return };
    let stream = context.new_stream().unwrap();
    let slice = stream.clone_htod(&numbers(100, 1)).unwrap();
    for (offset, shape, strides) in [
        (0, &[101usize][..], &[1isize][..]),
        (100, &[1], &[1]),
        (0, &[2], &[-1]),
        (99, &[2, 50], &[-50, -2]),
        (usize::MAX, &[1], &[1]),
        (0, &[2], &[isize::MAX]),
    ] {
        let refused = DeviceArray::of_strided(&slice, offset, shape, strides, &stream);
        assert!(matches!(refused, Err(Error::ViewOutOfBounds { .. })), "{offset} {shape:?}");
    }
    assert!(DeviceArray::of_strided(&slice, 100, &[0], &[1], &stream).is_ok());
    let made = result::device::get_count().unwrap();
    if made > 1 {
        let elsewhere = CudaContext::new(1).expect("a context").new_stream().unwrap();
        let refused = DeviceArray::of(&slice, &elsewhere).unwrap_err();
        assert!(refused.to_string().contains("different contexts"), "{refused}");
    } else {
        println!("SKIPPED: streams of another device, for want of a second one");
    }
}

fn answers(slices: &[CudaSlice<f64>]) -> Vec<Vec<u64>> {
    let bits = |slice: &CudaSlice<f64>| {
        let numbers = slice.stream().clone_dtoh(slice).unwrap();
        numbers.into_iter().map(f64::to_bits).collect()
    };
    slices.iter().map(bits).collect()
}

/// A graph of one prepared question, replayed on other data each time, beside direct uses
/// of the same one and of others that grow.
#[test]
fn prepared_questions_on_a_device_are_captured_and_replayed() {
    let Some(context) = context() else { return };
    // The graph's launches are ordered by their stream alone.
    // SAFETY: one stream is used, so that no slice needs events.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().unwrap();
    let (rows, columns) = (301, 1003);
    let ops = [Op::Sum, Op::Norm2, Op::Max, Op::Var, Op::LogSumExp, Op::Prod];
    for axis in [0, 1] {
        let outputs = if axis == 0 { columns } else { rows };
        let question = Reduction::new(ops).axis(axis);
        let mut table = stream.clone_htod(&numbers(rows * columns, 0)).unwrap();
        let mut made: Vec<CudaSlice<f64>> =
            ops.iter().map(|_| stream.alloc_zeros(outputs).unwrap()).collect();
        let on = |table: &CudaSlice<f64>, made: &mut [CudaSlice<f64>], prepared: Option<_>| {
            let array = DeviceArray::of(table, &stream).unwrap().reshaped(&[rows, columns]);
            let array = array.unwrap();
            let prepared: warpfold::Prepared =
                prepared.unwrap_or_else(|| question.prepare(&array).unwrap());
            let to = made.iter_mut().map(|slice| DeviceArrayMut::of(slice, &stream).unwrap());
            let mut to: Vec<DeviceArrayMut<'_>> = to.collect();
            prepared.enqueue(&array, &mut to).unwrap();
            drop(to);
            prepared
        };
        let prepared = on(&table, &mut made, None);
        stream.synchronize().unwrap();
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
        let prepared = on(&table, &mut made, Some(prepared));
        let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = stream.end_capture(flags).unwrap().expect("a graph");
        for seed in 1..12 {
            let items = numbers(rows * columns, seed);
            stream.memcpy_htod(&items, &mut table).unwrap();
            graph.launch().unwrap();
            prepared.check().unwrap();
            let view = View::of_strided(&items, 0, &[rows, columns], &[columns as isize, 1]);
            let expected = question.run(view.unwrap()).unwrap();
            let expected: Vec<Vec<u64>> = ops
                .iter()
                .map(|&op| {
                    let numbers = expected.slice::<f64>(op).unwrap();
                    numbers.iter().map(|x| x.to_bits()).collect()
                })
                .collect();
            assert!(answers(&made) == expected, "axis {axis}, replay {seed}");
            if seed == 6 {
                // Others come between, and take more memory on the same stream.
                let other = Reduction::new([Op::Mean, Op::Prod]).axis(1 - axis);
                let array = DeviceArray::of(&table, &stream).unwrap();
                let array = array.reshaped(&[rows, columns]).unwrap();
                other.run(&array).unwrap();
            }
        }
    }
}

/// A thread that captures a stream may neither allocate nor wait: a thousand arrays, at
/// places that are aligned differently.
#[test]
fn a_device_allocates_nothing_in_the_steady_state() {
    let Some(context) = context() else { return };
    // SAFETY: one stream is used, so that no slice needs events.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().unwrap();
    let n = 4095;
    let items = numbers(1000 * n, 3);
    let all = stream.clone_htod(&items).unwrap();
    let question = Reduction::new([Op::Sum, Op::ArgMax]);
    // Places that are aligned alike were there before.
    let mut sums = stream.alloc_zeros::<f64>(1000).unwrap();
    let mut places = stream.alloc_zeros::<u64>(1000).unwrap();
    let prepared = {
        let first = all.slice(..n);
        question.prepare(&DeviceArray::of(&first, &stream).unwrap()).unwrap()
    };
    let mut ask = |i: usize| {
        let view = all.slice(i * n..(i + 1) * n);
        let array = DeviceArray::of(&view, &stream).unwrap();
        let (mut sum, mut place) = (sums.slice_mut(i..=i), places.slice_mut(i..=i));
        let sum = DeviceArrayMut::of(&mut sum, &stream).unwrap();
        let place = DeviceArrayMut::of(&mut place, &stream).unwrap();
        prepared.enqueue(&array, &mut [sum, place]).unwrap();
    };
    ask(0);
    ask(1);
    stream.synchronize().unwrap();
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    (0..1000).for_each(&mut ask);
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream.end_capture(flags).unwrap().expect("a graph");
    graph.launch().unwrap();
    prepared.check().unwrap();
    let found = (stream.clone_dtoh(&sums).unwrap(), stream.clone_dtoh(&places).unwrap());
    for (i, items) in items.chunks_exact(n).enumerate() {
        let expected = question.run(items).unwrap();
        let sum = expected.number::<f64>(Op::Sum).unwrap();
        assert_eq!(found.0[i].to_bits(), sum.to_bits(), "array {i}");
        assert_eq!(Some(found.1[i]), expected.number(Op::ArgMax), "array {i}");
    }
}

/// Streams that their owners drop are not kept.
#[test]
fn a_device_lets_streams_go() {
    let Some(context) = context() else { return };
    let items = numbers(5000, 9);
    let question = Reduction::of(Op::Sum);
    let expected = question.run(&items).unwrap();
    let mut gone = Vec::new();
    for round in 0..50 {
        let stream = context.new_stream().unwrap();
        let slice = stream.clone_htod(&items).unwrap();
        let array = DeviceArray::of(&slice, &stream).unwrap();
        assert_eq!(question.run(&array).unwrap(), expected, "{round}");
        let prepared = question.prepare(&array).unwrap();
        let same = DeviceStream::of(&stream).unwrap();
        assert_eq!(same.device(), array.stream().device());
        gone.push(Arc::downgrade(&stream));
        drop((array, same));
        // A question that was prepared keeps its stream.
        drop((slice, stream));
        assert!(gone[round].upgrade().is_some(), "{round}");
        drop(prepared);
    }
    // The next one that comes finds out.
    let next = context.new_stream().unwrap();
    DeviceStream::of(&next).unwrap();
    assert!(gone.iter().all(|stream| stream.upgrade().is_none()));
}

/// Eight threads, each with a stream of its own, and partials of both memories.
#[test]
fn threads_share_a_device() {
    let Some(context) = context() else { return };
    let items = numbers(80_000, 4);
    let question = Reduction::new([Op::Var, Op::ArgMax]);
    let whole = question.partial(&items, 0).unwrap();
    let parts: Vec<Partial> = std::thread::scope(|scope| {
        let part = |thread: usize| {
            let (context, items, question) = (&context, &items, &question);
            scope.spawn(move || {
                let stream = context.new_stream().unwrap();
                let (from, to) = (thread * 10_000, thread * 10_000 + 10_000);
                let slice = stream.clone_htod(&items[from..to]).unwrap();
                let view = slice.slice(..6000);
                let array = DeviceArray::of(&view, &stream).unwrap();
                let mut partial = question.partial(&array, from as u64).unwrap();
                partial.absorb(&items[from + 6000..to - 7]).unwrap();
                let rest = slice.slice(10_000 - 7..);
                partial.absorb(DeviceArray::of(&rest, &stream).unwrap()).unwrap();
                partial
            })
        };
        let threads: Vec<_> = (0..8).map(part).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut parts = parts.into_iter().rev();
    let mut merged = parts.next().unwrap();
    parts.for_each(|part| merged.merge(&part).unwrap());
    assert_eq!(merged, whole);
}
