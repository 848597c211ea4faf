//! Addresses that are no arrays of the device: an error each, and the device goes
//! on. On the interpreter, and on the GPUs that there are.

use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::{Kind, Op};
use warpfold_cuda::engine::{Array, DeviceView, Engine, Input};
use warpfold_cuda::{Address, Buffer, Device, Driver, Sim, Stream};
use warpfold_ptx::machine::Options;

const LEN: u64 = 1000;
const BYTES: u64 = 8 * LEN;

fn array(address: Address, len: u64) -> Array {
    Array { address, len, dtype: DType::F64 }
}

/// Every way to hand over an array refuses this one.
fn is_refused(engine: &Engine, address: Address, len: u64, good: Address, why: &str) {
    let on = Stream::DEFAULT;
    let room = Buffer::new(engine.device(), 4096).unwrap();
    let left = room.address();
    let view = DeviceView::contiguous(address, DType::F64, &[len as usize / 10, 10]);
    let kinds = [Kind::Sum];
    // SAFETY: it is the library that must see that this is no array.
    let errors = unsafe {
        let pair = Input { others: Some(address), ..Input::from(array(good, len)) };
        [
            engine.reduce(Kind::Sum, array(address, len), on).unwrap_err(),
            engine.reduce(Kind::Dot, pair, on).unwrap_err(),
            engine.reduce_into(Kind::Extrema, array(address, len), left, on).unwrap_err(),
            engine.states_of_view([Some(&view), None], &[true, false], &kinds, 0, on).unwrap_err(),
            engine.numbers_of_view(&[Op::Sum.into()], &view, &[false, true], on).unwrap_err(),
            engine.numbers_into(Op::Sum, &view, &[true, true], left, on).unwrap_err(),
        ]
    };
    for error in errors {
        assert!(error.to_string().contains(why), "{error}");
    }
    room.free().unwrap();
}

fn bad_addresses(device: &Arc<dyn Device>) {
    let engine = Engine::new(Arc::clone(device));
    let buffer = Buffer::new(device, BYTES).unwrap();
    buffer.fill(Stream::DEFAULT, 0..BYTES, 0).unwrap();
    let good = buffer.address();
    let sum = || {
        // SAFETY: allocated and filled here.
        unsafe { engine.reduce(Kind::Sum, array(good, LEN), Stream::DEFAULT) }.unwrap().payload()
    };
    let expected = sum();
    let unknown = "the device does not know this memory";
    is_refused(&engine, 0, LEN, good, unknown);
    let host = vec![1.0f64; LEN as usize];
    is_refused(&engine, host.as_ptr().addr() as Address, LEN, good, unknown);
    // 2^40 bytes are more than any device has.
    is_refused(&engine, good, 1 << 37, good, unknown);
    let gone = Buffer::new(device, 64 << 20).unwrap();
    let freed = gone.address();
    gone.free().unwrap();
    is_refused(&engine, freed, 1 << 20, good, unknown);
    assert_eq!(sum(), expected);
    // Of no elements, any address will do.
    // SAFETY: nothing is read.
    let none = unsafe { engine.reduce(Kind::Sum, array(0, 0), Stream::DEFAULT) };
    assert!(none.is_ok(), "{none:?}");
    // What launches in a row read is not asked for again, and yet freed memory is
    // noticed.
    let room = Buffer::new(device, 4096).unwrap();
    let left = room.address();
    let own = device.stream().unwrap();
    // SAFETY: allocated and filled above, until it is freed.
    let launch = |len| unsafe { engine.reduce_into(Kind::Sum, array(good, len), left, own) };
    for len in [LEN, 1, LEN] {
        launch(len).unwrap();
    }
    device.wait(own).unwrap();
    buffer.free().unwrap();
    // A device may keep pages of what was freed; a large array is on none of them.
    let gone = launch(1 << 30).unwrap_err();
    assert!(gone.to_string().contains(unknown), "{gone}");
    room.free().unwrap();
}

#[test]
fn on_the_interpreter() {
    bad_addresses(&(Arc::new(Sim::new(Options::default())) as Arc<dyn Device>));
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn on_the_devices_of_this_machine() {
    let count = match Driver::probe() {
        Ok(count) => count,
        Err(error) if std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() => {
            println!("SKIPPED: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let devices: Vec<Arc<dyn Device>> =
        (0..count).map(|i| Arc::new(Driver::open(i).unwrap()) as Arc<dyn Device>).collect();
    devices.iter().for_each(bad_addresses);
    if devices.len() < 2 {
        println!("SKIPPED: memory of another device, for want of a second one");
    }
    for (own, other) in devices.iter().zip(devices.iter().skip(1)) {
        let engine = Engine::new(Arc::clone(own));
        let good = Buffer::new(own, BYTES).unwrap();
        let foreign = Buffer::new(other, BYTES).unwrap();
        is_refused(&engine, foreign.address(), LEN, good.address(), "another device");
        foreign.free().unwrap();
        good.free().unwrap();
    }
}
