//! Arrays, streams and graphs of cudarc, on the GPU if there is one.

use cudarc::driver::sys::{self, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, result};
use std::sync::Arc;
use warpfold_core::op::{AnyState, Kind, RawRun, Run, State};
use warpfold_core::{DType, Element, with_state};
use warpfold_cuda::engine::{Array, Engine};
use warpfold_cuda::{Buffer, Driver, SliceEngine, Stream};

/// The context of device 0. Skips aloud without one, unless
/// `WARPFOLD_REQUIRE_CUDA` asks for it.
fn context() -> Option<Arc<CudaContext>> {
    // cudarc panics without a driver: this asks first.
    match Driver::open(0) {
        Ok(_) => Some(CudaContext::new(0).expect("a context")),
        Err(error) if std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn expected<T: Element>(kind: Kind, items: &[T]) -> Vec<u8> {
    let items: &[u8] = bytemuck::cast_slice(items);
    let run = RawRun { start: 0, items, others: &[] };
    with_state!(kind, T::DTYPE,
        S => {
            let mut state = <S as State>::identity(kind);
            let run: Run<'_, <S as State>::Item> = run.typed().expect("aligned");
            state.absorb(run);
            AnyState::from(state).payload()
        },
        else => panic!("no {kind:?}"))
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
fn slices_are_reduced_where_they_lie_on_a_device() {
    let Some(context) = context() else { return };
    let engine = SliceEngine::new(&context).unwrap();
    for stream in [context.default_stream(), context.new_stream().unwrap()] {
        for n in [0, 1, 1000, 300_007] {
            let items = numbers(n, n as u64);
            let slice = stream.clone_htod(&items).unwrap();
            for kind in [Kind::Sum, Kind::Extrema, Kind::Counts] {
                let state = engine.reduce(kind, &slice, &stream).unwrap();
                assert_eq!(state.payload(), expected(kind, &items), "{kind:?} of {n}");
            }
            // A view that begins anywhere.
            if n > 7 {
                let state = engine.reduce(Kind::Sum, &slice.slice(7..), &stream).unwrap();
                assert_eq!(state.payload(), expected(Kind::Sum, &items[7..]));
            }
        }
    }
}

#[test]
fn what_does_not_fit_the_device_is_refused() {
    let Some(context) = context() else { return };
    let engine = SliceEngine::new(&context).unwrap();
    let stream = context.new_stream().unwrap();
    let slice = stream.clone_htod(&numbers(100, 1)).unwrap();
    if Driver::probe().unwrap() > 1 {
        let elsewhere = CudaContext::new(1).expect("a context").new_stream().unwrap();
        let refused = engine.reduce(Kind::Sum, &slice, &elsewhere).unwrap_err();
        assert!(refused.to_string().contains("the stream does not belong"), "{refused}");
        let theirs = elsewhere.clone_htod(&numbers(100, 2)).unwrap();
        let mut to = elsewhere.alloc_zeros::<u64>(256).unwrap();
        for refused in [
            engine.reduce(Kind::Sum, &theirs, &stream).unwrap_err(),
            engine.reduce_pair(Kind::Dot, &slice, &theirs, &stream).unwrap_err(),
            engine.reduce_into(Kind::Sum, &slice, &mut to, &stream).unwrap_err(),
        ] {
            assert!(refused.to_string().contains("the slice does not belong"), "{refused}");
        }
    } else {
        println!("SKIPPED: streams and slices of another device, for want of a second one");
    }
    let mut short = stream.alloc_zeros::<u64>(3).unwrap();
    let refused = engine.reduce_into(Kind::Sum, &slice, &mut short, &stream).unwrap_err();
    assert!(refused.to_string().contains("more words"), "{refused}");
}

/// Enough words for any state.
fn room(stream: &Arc<CudaStream>) -> CudaSlice<u64> {
    stream.alloc_zeros(256).unwrap()
}

fn left(stream: &Arc<CudaStream>, room: &CudaSlice<u64>, kind: Kind, dtype: DType) -> Vec<u8> {
    let words = stream.clone_dtoh(room).unwrap();
    let len = Engine::payload_len(kind, dtype).unwrap();
    let state = AnyState::from_payload(kind, dtype, &bytemuck::cast_slice(&words)[..len]);
    state.unwrap().payload()
}

/// A graph of several reductions, replayed on other data each time.
#[test]
fn reductions_on_a_device_are_captured_and_replayed() {
    let Some(context) = context() else { return };
    // The graph's launches are ordered by their stream alone.
    // SAFETY: one stream is used, so that no slice needs events.
    unsafe { context.disable_event_tracking() };
    let engine = SliceEngine::new(&context).unwrap();
    let stream = context.new_stream().unwrap();
    let kinds = [Kind::Sum, Kind::Extrema, Kind::AbsSum, Kind::Counts];
    let mut slice = stream.clone_htod(&numbers(200_003, 0)).unwrap();
    let mut rooms: Vec<_> = kinds.iter().map(|_| room(&stream)).collect();
    for kind in kinds {
        engine.prepare::<f64>(kind, &stream).unwrap();
    }
    stream.synchronize().unwrap();
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    for (&kind, room) in kinds.iter().zip(&mut rooms) {
        engine.reduce_into(kind, &slice, room, &stream).unwrap();
    }
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream.end_capture(flags).unwrap().expect("a graph");
    for seed in 1..20 {
        let items = numbers(200_003, seed);
        stream.memcpy_htod(&items, &mut slice).unwrap();
        graph.launch().unwrap();
        for (&kind, room) in kinds.iter().zip(&rooms) {
            let found = left(&stream, room, kind, DType::F64);
            assert_eq!(found, expected(kind, &items), "{kind:?}, replay {seed}");
        }
    }
}

/// Eight threads, each with a stream of its own and one that all share.
#[test]
fn threads_share_a_devices_engine() {
    let Some(context) = context() else { return };
    let engine = SliceEngine::new(&context).unwrap();
    let shared = context.new_stream().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (engine, context, shared) = (&engine, &context, &shared);
            scope.spawn(move || {
                let own = context.new_stream().unwrap();
                for round in 0..50u64 {
                    let stream = if round % 2 == 0 { &own } else { shared };
                    let items = numbers(10_000 + 999 * thread as usize, thread * 64 + round);
                    let slice = stream.clone_htod(&items).unwrap();
                    let state = engine.reduce(Kind::Sum, &slice, stream).unwrap();
                    assert_eq!(state.payload(), expected(Kind::Sum, &items), "{thread}");
                }
            });
        }
    });
}

/// Whoever calls has the same current context before and after: none, the device's own
/// or one that they have made.
#[test]
fn the_device_that_is_current_stays_so() {
    let Some(context) = context() else { return };
    let engine = SliceEngine::new(&context).unwrap();
    let stream = context.new_stream().unwrap();
    let items = numbers(10_000, 3);
    let slice = stream.clone_htod(&items).unwrap();
    stream.synchronize().unwrap();
    let array = {
        let (address, _read) = slice.device_ptr(&stream);
        Array { address, len: items.len() as u64, dtype: DType::F64 }
    };
    let device = engine.engine().device();
    let mut own = core::ptr::null_mut();
    // SAFETY: the device exists; the context is destroyed below.
    unsafe { sys::cuCtxCreate_v2(&raw mut own, 0, context.cu_device()) }.result().unwrap();
    for current in [core::ptr::null_mut(), context.cu_ctx(), own] {
        // Making no context current takes the top off the thread's stack of them:
        // whoever was below it would be current then.
        while result::ctx::get_current().unwrap().is_some() {
            // SAFETY: no context is named.
            unsafe { result::ctx::set_current(core::ptr::null_mut()) }.unwrap();
        }
        // SAFETY: there is no context, or it is not destroyed yet.
        unsafe { result::ctx::set_current(current) }.unwrap();
        let unchanged = |call: &str| {
            let found = result::ctx::get_current().unwrap().unwrap_or(core::ptr::null_mut());
            assert_eq!(found, current, "{call}");
        };
        let fresh = device.stream().unwrap();
        unchanged("stream");
        for on in [Stream::DEFAULT, fresh] {
            // SAFETY: the slice lives, and nobody writes to it.
            let state = unsafe { engine.engine().reduce(Kind::Sum, array, on) }.unwrap();
            assert_eq!(state.payload(), expected(Kind::Sum, &items));
            unchanged("reduce");
        }
        let buffer = Buffer::new(device, 1000).unwrap();
        buffer.fill(fresh, 0..1000, 7).unwrap();
        let mut bytes = [0; 1000];
        buffer.copy_out(fresh, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 1000]);
        assert!(device.allocate(1 << 60).is_err());
        assert!(device.time(fresh, &mut || device.wait(fresh)).unwrap().is_some());
        drop(buffer);
        unchanged("the rest");
        let held = device.make_current().unwrap();
        assert_eq!(result::ctx::get_current().unwrap(), Some(context.cu_ctx()));
        drop(held);
        unchanged("make_current");
    }
    // SAFETY: nothing was made in the last one.
    unsafe {
        result::ctx::set_current(core::ptr::null_mut()).unwrap();
        sys::cuCtxDestroy_v2(own).result().unwrap();
    }
}
