//! Which launches may read their elements before the launch ahead has ended, and
//! that those are the right ones.

use crate::common::altered::Altered;
use crate::common::machine::device_of_this_machine;
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::Kind;
use warpfold_cuda::engine::{Array, Engine, Input};
use warpfold_cuda::{Address, Buffer, Device, Sim, Stream};
use warpfold_ptx::machine::{Checks, Options};

const LEN: u64 = 1000;
const BYTES: u64 = 8 * LEN;
/// As many bytes as any payload has.
const ROOM: u64 = 2048;

struct Bench {
    device: Arc<Altered>,
    engine: Engine,
    stream: Stream,
    /// Two arrays, and room for a payload behind each.
    memory: Buffer<'static>,
}

impl Bench {
    fn new() -> Bench {
        let sim = Sim::new(Options { checks: Checks::ALL, ..Options::default() });
        let device = Arc::new(Altered::new(sim, |_| ()));
        let engine = Engine::new(Arc::clone(&device) as Arc<dyn Device>);
        let stream = device.stream().unwrap();
        let memory = Buffer::new(engine.device(), 2 * (BYTES + ROOM)).unwrap();
        memory.fill(stream, 0..memory.len(), 0).unwrap();
        for kind in [Kind::Sum, Kind::Dot] {
            engine.prepare(kind, DType::F64, stream).unwrap();
        }
        Bench { device, engine, stream, memory }
    }

    fn array(&self, place: u64) -> Array {
        let address = self.memory.address() + place * (BYTES + ROOM);
        Array { address, len: LEN, dtype: DType::F64 }
    }

    fn payload(&self, place: u64) -> Address {
        self.array(place).address + BYTES
    }

    fn put(&self, kind: Kind, input: impl Into<Input>, to: Address) {
        // SAFETY: the memory holds arrays and payloads, and is waited for.
        unsafe { self.engine.reduce_into(kind, input, to, self.stream).unwrap() };
    }

    /// Which of the launches since the last call were told that their elements are
    /// ready, and was a dependent one.
    fn launched(&self) -> Vec<(bool, bool)> {
        self.device.wait(self.stream).unwrap();
        let ready = |bytes: &[u8]| match bytes {
            [0, 0, 0, 0] => false,
            [1, 0, 0, 0] => true,
            _ => panic!("{bytes:?} is no truth value"),
        };
        self.device.launched().iter().map(|(dependent, last)| (ready(last), *dependent)).collect()
    }

    fn ready(&self) -> Vec<bool> {
        self.launched().iter().map(|&(ready, _)| ready).collect()
    }
}

#[test]
fn those_directly_behind_one_of_ours() {
    let bench = Bench::new();
    for _ in 0..3 {
        bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    }
    bench.put(Kind::Sum, bench.array(1), bench.payload(0));
    assert_eq!(bench.ready(), [false, true, true, true]);
    // The wait was a call, too.
    bench.put(Kind::Extrema, bench.array(0), bench.payload(0));
    bench.put(Kind::Sum, bench.array(1), bench.payload(1));
    assert_eq!(bench.ready(), [false, true]);
}

#[test]
fn none_behind_a_copy() {
    let bench = Bench::new();
    bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    bench.memory.copy_in(bench.stream, 0, &[0; 8]).unwrap();
    bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    bench.memory.fill(bench.stream, 0..8, 0).unwrap();
    bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    assert_eq!(bench.ready(), [false, false, false]);
}

#[test]
fn none_that_read_what_the_one_ahead_writes() {
    let bench = Bench::new();
    let array = bench.array(1);
    // The payload's room ends where the array begins, or begins where it ends.
    for (to, ready) in [
        (array.address - ROOM, true),
        (array.address - ROOM + 8, false),
        (array.address, false),
        (array.address + BYTES - 8, false),
        (array.address + BYTES, true),
    ] {
        bench.put(Kind::Extrema, bench.array(0), to);
        bench.put(Kind::Sum, array, bench.payload(1));
        // Those that are not ready are not dependent ones, either.
        assert_eq!(bench.launched(), [(false, true), (ready, ready)], "{to} beside {array:?}");
    }
    let pair = Input { others: Some(array.address), ..bench.array(0).into() };
    for (to, ready) in [(bench.payload(1), true), (array.address + 8, false)] {
        bench.put(Kind::Extrema, bench.array(0), to);
        bench.put(Kind::Dot, pair, bench.payload(1));
        assert_eq!(bench.ready(), [false, ready]);
    }
}

#[test]
fn none_behind_another_engine_or_on_another_stream() {
    let bench = Bench::new();
    let other = Engine::new(Arc::clone(&bench.device) as Arc<dyn Device>);
    other.prepare(Kind::Sum, DType::F64, bench.stream).unwrap();
    bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    // SAFETY: as in `put`.
    unsafe {
        other.reduce_into(Kind::Sum, bench.array(0), bench.payload(1), bench.stream).unwrap();
    }
    bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    assert_eq!(bench.ready(), [false, false, false]);

    let elsewhere = bench.device.stream().unwrap();
    bench.engine.prepare(Kind::Sum, DType::F64, elsewhere).unwrap();
    bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    // SAFETY: as in `put`.
    unsafe {
        bench.engine.reduce_into(Kind::Sum, bench.array(0), bench.payload(1), elsewhere).unwrap();
    }
    bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    assert_eq!(bench.ready(), [false, false, true]);
}

#[test]
fn none_behind_a_launch_that_failed() {
    let bench = Bench::new();
    bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    bench.device.fail_after(Some(0));
    // SAFETY: as in `put`.
    let failed = unsafe {
        bench.engine.reduce_into(Kind::Sum, bench.array(0), bench.payload(0), bench.stream)
    };
    assert!(failed.is_err());
    bench.device.fail_after(None);
    bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    assert_eq!(bench.ready(), [false, false]);
}

#[test]
fn none_where_others_put_work_on_the_stream() {
    let bench = Bench::new();
    bench.device.share_streams();
    for _ in 0..3 {
        bench.put(Kind::Sum, bench.array(0), bench.payload(0));
    }
    assert_eq!(bench.ready(), [false, false, false]);
}

/// An array is filled anew again and again, and each time summed behind a launch
/// that was put directly before: nothing older may be read, and nothing too early.
fn sums_of_fresh_elements(device: Arc<dyn Device>, rounds: u8, most: u64) {
    let engine = Engine::new(Arc::clone(&device));
    let stream = device.stream().unwrap();
    engine.prepare(Kind::Sum, DType::U8, stream).unwrap();
    engine.prepare(Kind::Extrema, DType::U8, stream).unwrap();
    let elements = Buffer::new(&device, most).unwrap();
    let array = Array { address: elements.address(), len: most, dtype: DType::U8 };
    let left = Buffer::new(&device, ROOM * (u64::from(rounds) + 1)).unwrap();
    let payloads = left.address();
    for len in [most / 1024, most / 16, most] {
        let fresh = Array { len, ..array };
        for round in 0..rounds {
            let to = payloads + ROOM * (u64::from(round) + 1);
            elements.fill(stream, 0..most, round).unwrap();
            // SAFETY: the memory holds the array and the payloads, and is waited for.
            unsafe {
                engine.reduce_into(Kind::Extrema, array, payloads, stream).unwrap();
                engine.reduce_into(Kind::Sum, fresh, to, stream).unwrap();
            }
        }
        for round in 0..rounds {
            let mut limbs = [0; 24];
            let from = ROOM * (u64::from(round) + 1);
            left.copy_out(stream, from, &mut limbs).unwrap();
            let sum = limbs.chunks_exact(8).rev().fold(0u128, |sum, limb| {
                (sum << 32) + u128::from(u64::from_le_bytes(limb.try_into().unwrap()))
            });
            assert_eq!(sum, u128::from(round) * u128::from(len), "round {round} of {len}");
        }
    }
    elements.free().unwrap();
    left.free().unwrap();
}

/// What one launch leaves is at once reduced by the next, again and again at the
/// same place: no cache may give what was there before.
fn sums_of_fresh_payloads(device: &Arc<dyn Device>, engine: &Engine, rounds: u8) {
    let stream = device.stream().unwrap();
    for kind in [Kind::Extrema, Kind::Sum] {
        engine.prepare(kind, DType::U8, stream).unwrap();
    }
    let elements = Buffer::new(device, LEN).unwrap();
    let array = Array { address: elements.address(), len: LEN, dtype: DType::U8 };
    let left = Engine::output_len(Kind::Extrema, array).unwrap();
    let between_them = Buffer::new(device, left as u64).unwrap();
    let between = between_them.address();
    let again = Array { address: between, len: left as u64, dtype: DType::U8 };
    let sums = Buffer::new(device, ROOM * u64::from(rounds)).unwrap();
    let payloads = sums.address();
    for round in 0..rounds {
        elements.fill(stream, 0..LEN, round).unwrap();
        // SAFETY: the memory holds the array and the payloads, and is waited for.
        unsafe {
            engine.reduce_into(Kind::Extrema, array, between, stream).unwrap();
            engine
                .reduce_into(Kind::Sum, again, payloads + ROOM * u64::from(round), stream)
                .unwrap();
        }
    }
    for round in 0..rounds {
        let mut extrema = vec![0; left];
        elements.fill(stream, 0..LEN, round).unwrap();
        // SAFETY: as above.
        unsafe { engine.reduce_into(Kind::Extrema, array, between, stream).unwrap() };
        between_them.copy_out(stream, 0, &mut extrema).unwrap();
        let mut sum = [0; 8];
        sums.copy_out(stream, ROOM * u64::from(round), &mut sum).unwrap();
        let expected: u64 = extrema.iter().map(|&byte| u64::from(byte)).sum();
        assert_eq!(u64::from_le_bytes(sum), expected, "round {round}");
    }
    for buffer in [elements, between_them, sums] {
        buffer.free().unwrap();
    }
}

#[test]
fn fresh_elements_on_the_interpreter() {
    let sim = Sim::new(Options { checks: Checks::ALL, ..Options::default() });
    let sim: Arc<dyn Device> = Arc::new(sim);
    sums_of_fresh_elements(Arc::clone(&sim), 3, 1 << 14);
    sums_of_fresh_payloads(&sim, &Engine::new(Arc::clone(&sim)), 5);
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn fresh_elements_on_the_device_of_this_machine() {
    let Some(device) = device_of_this_machine() else { return };
    for most in [1 << 14, 1 << 18, 1 << 22, 1 << 25] {
        sums_of_fresh_elements(Arc::clone(&device), 200, most);
    }
    sums_of_fresh_payloads(&device, &Engine::new(Arc::clone(&device)), 250);
}
