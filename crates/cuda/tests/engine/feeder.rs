//! Runs fed to a device, against the element-by-element reference: on the
//! interpreter, on devices that are late, short of memory or broken, and on the GPU
//! if there is one.

use crate::common::machine::device_of_this_machine;
use crate::thorough::up_to;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use warpfold_core::op::{AnyState, Kind, RawRun, Run, State};
use warpfold_core::{DType, with_state};
use warpfold_cuda::engine::{Engine, Feeder};
use warpfold_cuda::{
    Address, Argument, Device, Error, KernelId, Launch, Limits, ModuleId, Result, Sim, Stream,
};

/// The least room of a slot: several runs need no long arrays.
const ROOM: usize = 64 << 10;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Random bits, in memory that suits every type: NaNs, infinities and all.
fn words(bytes: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed | 1);
    (0..bytes.div_ceil(8)).map(|_| random.next()).collect()
}

fn bytes(words: &[u64], len: usize) -> &[u8] {
    &bytemuck::cast_slice(words)[..len]
}

fn reference(kind: Kind, dtype: DType, runs: &[RawRun<'_>]) -> Vec<u8> {
    with_state!(kind, dtype,
        S => {
            let mut state = <S as State>::identity(kind);
            for run in runs {
                let run: Run<'_, <S as State>::Item> = run.typed().expect("aligned");
                state.absorb(run);
            }
            AnyState::from(state).payload()
        },
        else => panic!("no {kind:?} of {dtype}"))
}

/// The kinds that an engine has, of one array or of pairs.
fn kinds(dtype: DType, arrays: usize) -> Vec<Kind> {
    let pairs = |kind: &Kind| kind.takes_pairs();
    let all = Kind::ALL.into_iter().filter(|&kind| Engine::supports(kind, dtype));
    all.filter(|kind| pairs(kind) == (arrays == 2)).collect()
}

#[track_caller]
fn check(feeder: &mut Feeder, kinds: &[Kind], dtype: DType, runs: &[RawRun<'_>], note: &str) {
    for &run in runs {
        feeder.absorb(run).unwrap_or_else(|error| panic!("{dtype}, {note}: {error}"));
    }
    compare(feeder, kinds, dtype, runs, note);
}

#[track_caller]
fn compare(feeder: &mut Feeder, kinds: &[Kind], dtype: DType, runs: &[RawRun<'_>], note: &str) {
    let states = feeder.take_states().unwrap_or_else(|error| panic!("{dtype}, {note}: {error}"));
    assert_eq!(states.len(), kinds.len());
    for (state, &kind) in states.iter().zip(kinds) {
        assert_eq!((state.kind(), state.dtype()), (kind, dtype));
        let expected = reference(kind, dtype, runs);
        assert!(state.payload() == expected, "{kind:?} of {dtype}, {note}");
    }
}

/// Pieces of one array, `lens` elements long, the first at position `start`.
fn cut<'a>(
    items: &'a [u8],
    others: &'a [u8],
    size: usize,
    lens: &[usize],
    start: u64,
) -> Vec<RawRun<'a>> {
    let mut at = 0;
    lens.iter()
        .map(|&len| {
            let range = at * size..(at + len) * size;
            let run = RawRun {
                start: start + at as u64,
                items: &items[range.clone()],
                others: others.get(range).unwrap_or(&[]),
            };
            at += len;
            run
        })
        .collect()
}

/// Runs around what a slot holds, in and out of order, again and again on one
/// feeder, with and without pairs.
fn sweep(device: &Arc<dyn Device>, dtypes: &[DType]) {
    let engine = Arc::new(Engine::new(Arc::clone(device)));
    for (&dtype, arrays) in dtypes.iter().flat_map(|d| [(d, 1), (d, 2)]) {
        let kinds = kinds(dtype, arrays);
        if kinds.is_empty() {
            continue;
        }
        let size = dtype.size();
        let room = ROOM / arrays / size;
        let cases: [&[usize]; 6] = [
            &[],
            &[0, 1, 0],
            &[room],
            &[room - 1, 1, room + 1],
            &[2 * room + 3],
            &[5, 4096, 1009, room / 2, 4091],
        ];
        let total = 3 * room;
        let items = words(total * size, 1 + dtype.code() as u64);
        let others = words(total * size, 77 + dtype.code() as u64);
        let items = bytes(&items, total * size);
        let others = if arrays == 2 { bytes(&others, total * size) } else { &[] };
        let mut feeder = engine.feeder(&kinds, dtype, arrays).unwrap().with_room(ROOM);
        assert_eq!(feeder.best_run(), ROOM / arrays);
        for (i, lens) in cases.into_iter().enumerate() {
            let mut runs = cut(items, others, size, lens, 4096 * i as u64 + i as u64);
            check(&mut feeder, &kinds, dtype, &runs, &format!("{arrays} arrays, {lens:?}"));
            if i % 2 == 0 {
                continue;
            }
            runs.reverse();
            check(&mut feeder, &kinds, dtype, &runs, &format!("{lens:?}, backwards"));
        }
    }
}

fn sim() -> Arc<dyn Device> {
    Arc::new(Sim::checking())
}

#[test]
fn on_the_interpreter() {
    // What types differ in is the kernels' affair; sizes are the feeder's.
    let dtypes = [DType::I8, DType::F32, DType::BF16, DType::U64];
    sweep(&sim(), &dtypes[..up_to(4, 2)]);
}

/// What a device does with an asynchronous call.
type Work = Box<dyn FnOnce(&Sim) -> Result<()> + Send>;

/// A device that does nothing before somebody waits, as a busy GPU would: whoever
/// touches memory too early sees it. It counts what it has given out.
struct Late {
    sim: Sim,
    queues: Mutex<HashMap<Stream, Vec<Work>>>,
    /// Bytes that may still be allocated on the device.
    free: AtomicI64,
    allocated: Mutex<HashMap<Address, i64>>,
    pinned: AtomicI64,
    /// Whether all host memory counts as pinned.
    all_pinned: bool,
    /// The wait with this number fails, counted down from here.
    fails_after: AtomicI64,
    most_under_way: AtomicU64,
}

impl Late {
    fn new(memory: i64) -> Late {
        Late {
            sim: Sim::checking(),
            queues: Mutex::default(),
            free: AtomicI64::new(memory),
            allocated: Mutex::default(),
            pinned: AtomicI64::new(0),
            all_pinned: false,
            fails_after: AtomicI64::new(i64::MAX),
            most_under_way: AtomicU64::new(0),
        }
    }

    fn later(&self, stream: Stream, work: impl FnOnce(&Sim) -> Result<()> + Send + 'static) {
        let mut queues = self.queues.lock().unwrap();
        queues.entry(stream).or_default().push(Box::new(work));
        let busy = queues.values().filter(|queue| !queue.is_empty()).count();
        self.most_under_way.fetch_max(busy as u64, Ordering::Relaxed);
    }

    /// Does what is under way on a stream.
    fn catch_up(&self, stream: Stream) -> Result<()> {
        let queue = self.queues.lock().unwrap().remove(&stream).unwrap_or_default();
        queue.into_iter().try_for_each(|work| work(&self.sim))
    }
}

/// An address that a closure may carry to another thread.
struct Carried(*mut u8);

// SAFETY: only dereferenced under the promise of whoever started the copy.
unsafe impl Send for Carried {}

impl Carried {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

// SAFETY: memory is the interpreter's, which keeps the promise; what is put off is
// done when its stream is waited for.
unsafe impl Device for Late {
    fn limits(&self) -> &Limits {
        self.sim.limits()
    }
    fn allocate(&self, bytes: u64) -> Result<Address> {
        let bytes_signed = bytes as i64;
        if self.free.fetch_sub(bytes_signed, Ordering::Relaxed) < bytes_signed {
            self.free.fetch_add(bytes_signed, Ordering::Relaxed);
            let (doing, name) = ("allocating".into(), "CUDA_ERROR_OUT_OF_MEMORY".into());
            return Err(Error::Driver { doing, name, text: "out of memory".into() });
        }
        let address = self.sim.allocate(bytes)?;
        self.allocated.lock().unwrap().insert(address, bytes_signed);
        Ok(address)
    }
    unsafe fn free(&self, address: Address) -> Result<()> {
        let bytes = self.allocated.lock().unwrap().remove(&address).expect("allocated once");
        self.free.fetch_add(bytes, Ordering::Relaxed);
        self.sim.free(address)
    }
    unsafe fn copy_in(&self, stream: Stream, to: Address, from: &[u8]) -> Result<()> {
        self.catch_up(stream)?;
        self.sim.copy_in(stream, to, from)
    }
    unsafe fn copy_out(&self, stream: Stream, from: Address, to: &mut [u8]) -> Result<()> {
        self.catch_up(stream)?;
        self.sim.copy_out(stream, from, to)
    }
    unsafe fn start_copy_in(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        let from = Carried(from.cast_mut());
        self.later(stream, move |sim| {
            // SAFETY: nobody writes there before the stream was waited for.
            let from = unsafe { core::slice::from_raw_parts(from.get(), bytes) };
            sim.copy_in(stream, to, from)
        });
        Ok(())
    }
    unsafe fn start_copy_out(
        &self,
        stream: Stream,
        from: Address,
        to: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let to = Carried(to);
        self.later(stream, move |sim| {
            // SAFETY: nobody looks there before the stream was waited for.
            let to = unsafe { core::slice::from_raw_parts_mut(to.get(), bytes) };
            sim.copy_out(stream, from, to)
        });
        Ok(())
    }
    fn allocate_pinned(&self, bytes: usize) -> Result<core::ptr::NonNull<u8>> {
        self.pinned.fetch_add(bytes as i64, Ordering::Relaxed);
        self.sim.allocate_pinned(bytes)
    }
    unsafe fn free_pinned(&self, at: core::ptr::NonNull<u8>, bytes: usize) -> Result<()> {
        self.pinned.fetch_sub(bytes as i64, Ordering::Relaxed);
        // SAFETY: passed on from the caller.
        unsafe { self.sim.free_pinned(at, bytes) }
    }
    fn is_pinned(&self, _bytes: &[u8]) -> bool {
        self.all_pinned
    }
    unsafe fn fill(&self, stream: Stream, to: Address, value: u8, bytes: u64) -> Result<()> {
        self.later(stream, move |sim| sim.fill(stream, to, value, bytes));
        Ok(())
    }
    fn load(&self, name: &str, ptx: &str) -> Result<ModuleId> {
        self.sim.load(name, ptx)
    }
    fn kernel(&self, module: ModuleId, name: &str) -> Result<KernelId> {
        self.sim.kernel(module, name)
    }
    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<u32> {
        self.sim.resident_blocks(kernel, threads, shared)
    }
    fn stream(&self) -> Result<Stream> {
        self.sim.stream()
    }
    unsafe fn launch(
        &self,
        stream: Stream,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> Result<()> {
        let (launch, arguments) = (*launch, arguments.to_vec());
        self.later(stream, move |sim| {
            // SAFETY: the caller's promise lasts until the stream was waited for.
            unsafe { sim.launch(stream, kernel, &launch, &arguments) }
        });
        Ok(())
    }
    fn wait(&self, stream: Stream) -> Result<()> {
        self.catch_up(stream)?;
        self.sim.wait(stream)?;
        if self.fails_after.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(Error::Simulated { doing: "running".into(), why: "a fault".into() });
        }
        Ok(())
    }
    fn is_done(&self, stream: Stream) -> Result<bool> {
        Ok(!self.queues.lock().unwrap().contains_key(&stream))
    }
}

const PLENTY: i64 = 1 << 40;

#[test]
fn on_a_device_that_does_nothing_before_it_must() {
    let late = Arc::new(Late::new(PLENTY));
    let device: Arc<dyn Device> = Arc::<Late>::clone(&late);
    sweep(&device, &[DType::I16, DType::F64]);
    assert_eq!(late.most_under_way.load(Ordering::Relaxed), 2, "copies and kernels overlap");
    drop(device);
    assert_eq!(late.free.load(Ordering::Relaxed), PLENTY, "device memory was kept");
    assert_eq!(late.pinned.load(Ordering::Relaxed), 0, "pinned memory was kept");
}

#[test]
fn what_is_pinned_is_copied_from_where_it_lies() {
    let late = Arc::new(Late { all_pinned: true, ..Late::new(PLENTY) });
    let device: Arc<dyn Device> = late;
    let engine = Arc::new(Engine::new(Arc::clone(&device)));
    let dtype = DType::F64;
    let kinds = kinds(dtype, 1);
    let mut items = words(5 * ROOM, 9);
    let mut feeder = engine.feeder(&kinds, dtype, 1).unwrap().with_room(ROOM);
    assert!(device.is_pinned(bytes(&items, 5 * ROOM)));
    let run = RawRun { start: 3, items: bytes(&items, 5 * ROOM - 8), others: &[] };
    // SAFETY: nobody writes to the items before the states are taken.
    unsafe { feeder.absorb_in_place(run) }.unwrap();
    compare(&mut feeder, &kinds, dtype, &[run], "in place");
    // To see that the test would notice: what comes last is read when it is
    // waited for.
    let at = items.as_mut_ptr();
    let run = RawRun { start: 0, items: bytes(&items, 8), others: &[] };
    let before = reference(Kind::Extrema, dtype, &[run]);
    // SAFETY: the interpreter waits with the copy, and the write comes before.
    unsafe {
        feeder.absorb_in_place(run).unwrap();
        at.write(4.0f64.to_bits());
    }
    let states = feeder.take_states().unwrap();
    let extrema = states.iter().find(|s| s.kind() == Kind::Extrema).unwrap();
    assert_ne!(extrema.payload(), before);
}

/// What is read goes where the device copies it from, in pieces that fit there.
#[test]
fn what_is_read_needs_no_other_memory() {
    let dtype = DType::F32;
    let kinds = kinds(dtype, 1);
    let len = 5 * ROOM + 40;
    let items = words(len, 31);
    let items = bytes(&items, len);
    for memory in [PLENTY, 1 << 21] {
        let engine = Arc::new(Engine::new(Arc::new(Late::new(memory))));
        let mut feeder = engine.feeder(&kinds, dtype, 1).unwrap().with_room(4 * ROOM);
        let mut asked = 0;
        let mut read = |before: usize, out: &mut [u8]| -> core::result::Result<(), String> {
            assert_eq!(before, asked, "one after the other");
            asked += out.len();
            out.copy_from_slice(&items[before..before + out.len()]);
            Ok(())
        };
        feeder.absorb_from(9, len, &mut read).unwrap().unwrap();
        assert_eq!(asked, len);
        let run = RawRun { start: 9, items, others: &[] };
        compare(&mut feeder, &kinds, dtype, &[run], &format!("read, {memory} bytes"));
        let fails = |before: usize, _: &mut [u8]| if before == 0 { Ok(()) } else { Err("gone") };
        assert_eq!(feeder.absorb_from(0, len, fails).unwrap(), Err("gone"));
        assert!(feeder.absorb_from(0, 6, |_, _| Ok::<(), ()>(())).is_err(), "half an element");
        assert!(feeder.absorb_from(0, 0, |_, _| Err(())).unwrap().is_ok(), "nothing to read");
    }
}

/// Less and less memory: smaller slots, then one, then an error; never a wrong
/// answer, and nothing that is kept.
#[test]
fn on_a_device_that_is_short_of_memory() {
    let dtype = DType::F32;
    let kinds = kinds(dtype, 1);
    let items = words(3 << 18, 5);
    let runs = cut(bytes(&items, 3 << 18), &[], 4, &[100, 1 << 17, (1 << 16) - 100], 0);
    let mut refused = Vec::new();
    for memory in [0, 1 << 16, 1 << 18, 1 << 19, 3 << 18, 1 << 20, 1 << 21, PLENTY] {
        let late = Arc::new(Late::new(memory));
        let device: Arc<dyn Device> = Arc::<Late>::clone(&late);
        let engine = Arc::new(Engine::new(Arc::clone(&device)));
        let mut feeder = engine.feeder(&kinds, dtype, 1).unwrap();
        match runs.iter().try_for_each(|&run| feeder.absorb(run)) {
            Ok(()) => compare(&mut feeder, &kinds, dtype, &runs, &format!("{memory} bytes")),
            Err(error) => {
                assert!(error.is_out_of_memory(), "{memory}: {error}");
                assert_eq!(feeder.take_states().unwrap_err(), error, "the error stays");
                refused.push(memory);
            }
        }
        drop(feeder);
        drop(engine);
        assert_eq!(late.free.load(Ordering::Relaxed), memory, "device memory was kept");
    }
    // A slot, its stream's scratch memory of 0.4 MB, and where warps meet.
    assert!(refused.len() >= 2 && refused.iter().all(|&m| m <= 1 << 21), "{refused:?}");
}

/// A fault on the device is an error of a later call, and says so until the end;
/// another feeder of the same engine is not harmed.
#[test]
fn on_a_device_that_fails() {
    let dtype = DType::F64;
    let mut kinds = kinds(dtype, 1);
    // Who notices is the feeder, whatever it is fed for.
    kinds.truncate(up_to(kinds.len(), 2));
    let items = words(6 * ROOM, 11);
    let runs = cut(bytes(&items, 6 * ROOM), &[], 8, &[ROOM / 8; 6], 0);
    let mut noticed = 0;
    for when in 0..8 {
        let late = Arc::new(Late::new(PLENTY));
        let device: Arc<dyn Device> = Arc::<Late>::clone(&late);
        let engine = Arc::new(Engine::new(device));
        let mut feeder = engine.feeder(&kinds, dtype, 1).unwrap().with_room(ROOM);
        late.fails_after.store(when, Ordering::Relaxed);
        let fed = runs.iter().try_for_each(|&run| feeder.absorb(run));
        let taken = feeder.take_states();
        if when < 6 {
            let error = taken.unwrap_err();
            assert!(error.to_string().contains("a fault"), "{error}");
            // Two runs are under way; whose slot comes round again is noticed.
            assert_eq!(fed.is_err(), when < 4, "{when}");
            noticed += 1;
        } else {
            assert!(fed.is_ok() && taken.is_ok());
        }
        drop(feeder);
        late.fails_after.store(i64::MAX, Ordering::Relaxed);
        let mut fresh = engine.feeder(&kinds, dtype, 1).unwrap().with_room(ROOM);
        check(&mut fresh, &kinds, dtype, &runs, "after a fault");
    }
    assert_eq!(noticed, 6);
}

#[test]
fn runs_that_make_no_sense_are_refused() {
    let engine = Arc::new(Engine::new(sim()));
    let items = words(64, 1);
    let run =
        |n: usize, m: usize| RawRun { start: 0, items: bytes(&items, n), others: bytes(&items, m) };
    for (n, m, part) in [(31, 0, "within an element"), (32, 32, "second array")] {
        let mut feeder = engine.feeder(&[Kind::Sum], DType::F64, 1).unwrap();
        let error = feeder.absorb(run(n, m)).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    // Positions that were absorbed before.
    let mut twice = engine.feeder(&[Kind::ArgExtrema], DType::F64, 1).unwrap();
    twice.absorb(run(64, 0)).unwrap();
    twice.absorb(RawRun { start: 7, ..run(16, 0) }).unwrap();
    let error = twice.take_states().unwrap_err();
    assert!(matches!(error, Error::Runs { .. }) && error.to_string().contains("element 7"));
    let (kind, dtype) = (Kind::Bits, DType::F32);
    let none = engine.feeder(&[Kind::Sum, kind], dtype, 1).err();
    assert_eq!(none, Some(Error::NoKernel { kind, dtype }));
    let mut nothing = engine.feeder(&[], DType::F64, 1).unwrap();
    nothing.absorb(run(32, 0)).unwrap();
    assert!(nothing.take_states().unwrap().is_empty());
}

/// Some of the states only, as rows without values ask for.
#[test]
fn states_that_are_not_wanted_stay_as_they_are() {
    let engine = Arc::new(Engine::new(sim()));
    let dtype = DType::I32;
    let kinds = [Kind::Sum, Kind::Counts];
    let items = words(3000 * 4, 21);
    let runs = cut(bytes(&items, 3000 * 4), &[], 4, &[1000, 2000], 0);
    let mut feeder = engine.feeder(&kinds, dtype, 1).unwrap();
    feeder.absorb_for(runs[0], |kind| kind == Kind::Sum).unwrap();
    feeder.absorb(runs[1]).unwrap();
    feeder.absorb_for(runs[0], |_| false).unwrap();
    let states = feeder.take_states().unwrap();
    assert_eq!(states[0].payload(), reference(Kind::Sum, dtype, &runs));
    assert_eq!(states[1].payload(), reference(Kind::Counts, dtype, &runs[1..]));
}

/// Several threads, each with a feeder of one engine, which share its slots.
fn from_many_threads(device: &Arc<dyn Device>) {
    let engine = Arc::new(Engine::new(Arc::clone(device)));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..up_to(4, 2) {
                    let dtype = [DType::F64, DType::I8][round % 2];
                    let kinds = kinds(dtype, 1);
                    let len = (2 * ROOM / dtype.size()) + 5 * round;
                    let items = words(len * dtype.size(), thread * 10 + round as u64);
                    let items = bytes(&items, len * dtype.size());
                    let runs = cut(items, &[], dtype.size(), &[len / 3, len - len / 3], 17);
                    let mut feeder = engine.feeder(&kinds, dtype, 1).unwrap().with_room(ROOM);
                    check(&mut feeder, &kinds, dtype, &runs, &format!("thread {thread}"));
                }
            });
        }
    });
}

#[test]
fn from_many_threads_on_the_interpreter() {
    from_many_threads(&sim());
}

/// Small enough for compute-sanitizer.
#[test]
fn sanitized_on_the_device_of_this_machine() {
    let Some(device) = device_of_this_machine() else { return };
    sweep(&device, &[DType::I8, DType::F64]);
}

#[test]
fn on_the_device_of_this_machine() {
    let Some(device) = device_of_this_machine() else { return };
    sweep(&device, &DType::ALL);
    from_many_threads(&device);
    large(&device);
    pinned_by_the_driver(&device);
}

/// Runs as large as files hand them over.
fn large(device: &Arc<dyn Device>) {
    let engine = Arc::new(Engine::new(Arc::clone(device)));
    for dtype in [DType::F32, DType::F64, DType::I64, DType::U8] {
        let len = (40 << 20) + 8 * 1009;
        let items = words(len, 3);
        let kinds = kinds(dtype, 1);
        let runs = [RawRun { start: 0, items: bytes(&items, len), others: &[] }];
        let mut feeder = engine.feeder(&kinds, dtype, 1).unwrap();
        check(&mut feeder, &kinds, dtype, &runs, "large");
    }
}

/// The driver knows what it has pinned, and nothing else.
fn pinned_by_the_driver(device: &Arc<dyn Device>) {
    let len = 9 << 20;
    let plain = words(len, 8);
    assert!(!device.is_pinned(bytes(&plain, len)));
    let at = device.allocate_pinned(len).unwrap();
    // SAFETY: just allocated, and initialised.
    let pinned = unsafe { core::slice::from_raw_parts_mut(at.as_ptr(), len) };
    pinned.copy_from_slice(bytes(&plain, len));
    assert!(device.is_pinned(pinned) && device.is_pinned(&pinned[1..len - 1]));
    let engine = Arc::new(Engine::new(Arc::clone(device)));
    let kinds = kinds(DType::F32, 1);
    let mut feeder = engine.feeder(&kinds, DType::F32, 1).unwrap();
    let run = RawRun { start: 0, items: pinned, others: &[] };
    // SAFETY: nobody writes to the items before the states are taken.
    unsafe { feeder.absorb_in_place(run) }.unwrap();
    compare(&mut feeder, &kinds, DType::F32, &[run], "pinned");
    drop(feeder);
    // SAFETY: nobody uses it any more.
    unsafe { device.free_pinned(at, len) }.unwrap();
}
