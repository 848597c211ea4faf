//! Every kernel, on the interpreter with all checks on and on the GPU if there
//! is one, against the element-by-element reference of the same state: equal
//! payloads, byte for byte.

use std::sync::Arc;
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::{AnyState, Kind, RawRun, Run, State};
use warpfold_core::{DType, Element, with_element, with_state};
use warpfold_cuda::engine::{Array, Engine, Input, Shape};
use warpfold_cuda::{
    Address, Argument, Device, Driver, Error, KernelId, Launch, Limits, ModuleId, Result, Sim,
    Stream,
};
use warpfold_ptx::machine::{Checks, Options, Schedule};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Data that has broken such kernels.
const PATTERNS: [&str; 13] = [
    "uniform",
    "signed",
    "random bits",
    "finite bits",
    "wide",
    "sparse",
    "zeros",
    "negative zeros",
    "specials",
    "top of the window",
    "one huge",
    "subnormal",
    "drifting",
];

fn from_f64<T: Element>(x: f64) -> T {
    T::from_bits(match T::DTYPE {
        DType::F64 => x.to_bits(),
        DType::F32 => u64::from((x as f32).to_bits()),
        DType::F16 => u64::from(f16::from_f64(x).to_bits()),
        DType::BF16 => u64::from(bf16::from_f64(x).to_bits()),
        _ => (x * 100.0) as i64 as u64,
    })
}

fn make<T: Element>(pattern: &str, n: usize, random: &mut Random) -> Vec<T> {
    let infinity: T = from_f64(f64::INFINITY);
    let finite = |x: T| {
        let special = T::DTYPE.is_float() && x.without_sign() >= infinity.without_sign();
        if special { T::from_bits(0) } else { x }
    };
    (0..n)
        .map(|i| match pattern {
            "uniform" => from_f64(random.unit()),
            "signed" => from_f64(random.unit() * 4.0 - 2.0),
            "random bits" => T::from_bits(random.next()),
            "finite bits" => finite(T::from_bits(random.next())),
            "wide" => {
                let e = (random.next() % 600) as i32 - 300;
                finite(from_f64((random.unit() - 0.5) * 2f64.powi(e)))
            }
            "sparse" if !random.next().is_multiple_of(100) => T::from_bits(0),
            "sparse" => from_f64(random.unit() - 0.5),
            "zeros" => T::from_bits(0),
            "negative zeros" => from_f64(-0.0),
            "specials" => match random.next() % 50 {
                0 => from_f64(f64::NAN),
                1 => from_f64(f64::INFINITY),
                2 => from_f64(f64::NEG_INFINITY),
                3 => from_f64(-f64::NAN),
                _ => from_f64(random.unit()),
            },
            // All equal and just below a power of two: as many of them as an
            // anchor takes reach the end of the binade.
            "top of the window" => from_f64(1024.0 - 1024.0 * f64::EPSILON / 2.0),
            "one huge" if i == n / 2 => finite(T::from_bits(infinity.bits().wrapping_sub(1))),
            "one huge" => from_f64(2f64.powi(-1000) * random.unit()),
            "subnormal" => T::from_bits(random.next() & 0x3f),
            // A slow climb: windows that fit at first do not later on.
            _ => finite(from_f64((random.unit() - 0.5) * 2f64.powi((i / 64) as i32 - 20))),
        })
        .collect()
}

fn reference(kind: Kind, dtype: DType, items: &[u8]) -> AnyState {
    reference_of(kind, dtype, items, &[])
}

fn reference_of(kind: Kind, dtype: DType, items: &[u8], others: &[u8]) -> AnyState {
    let run = RawRun { start: 0, items, others };
    with_state!(kind, dtype,
        S => {
            let mut state = <S as State>::identity(kind);
            let run: Run<'_, <S as State>::Item> = run.typed().expect("aligned");
            state.absorb(run);
            AnyState::from(state)
        },
        else => panic!("no {kind:?} of {dtype}"))
}

/// An array in a device's memory that begins `offset` elements behind a multiple
/// of 256 bytes and ends where the allocation ends.
struct Placed<'a> {
    device: &'a dyn Device,
    base: u64,
    array: Array,
}

impl<'a> Placed<'a> {
    fn new<T: Element>(device: &'a dyn Device, items: &[T], offset: usize) -> Placed<'a> {
        let bytes: &[u8] = bytemuck::cast_slice(items);
        let before = (offset * size_of::<T>()) as u64;
        let base = device.allocate(before + bytes.len() as u64).expect("enough memory");
        let address = base + before;
        device.copy_in(Stream::DEFAULT, address, bytes).expect("a copy");
        let array = Array { address, len: items.len() as u64, dtype: T::DTYPE };
        Placed { device, base, array }
    }
}

impl Drop for Placed<'_> {
    fn drop(&mut self) {
        let _ = self.device.free(self.base);
    }
}

fn reduce(engine: &Engine, kind: Kind, input: impl Into<Input>) -> Result<Vec<u8>> {
    // SAFETY: `Placed` holds the arrays' memory, and nobody writes to it.
    unsafe { engine.reduce(kind, input, Stream::DEFAULT) }.map(|state| state.payload())
}

/// Checks one reduction; of a product, with the same array backwards, which lies
/// at another offset in most cases.
fn check<T: Element>(engine: &Engine, kind: Kind, items: &[T], offset: usize, note: &str) {
    if kind == Kind::Dot {
        let backwards: Vec<T> = items.iter().rev().copied().collect();
        let elsewhere = (offset * 5 + items.len() / 3) % (16 / size_of::<T>());
        return check_dot(engine, [items, &backwards], [offset, elsewhere], note);
    }
    let placed = Placed::new(&**engine.device(), items, offset);
    let expected = reference(kind, T::DTYPE, bytemuck::cast_slice(items)).payload();
    let (n, dtype) = (items.len(), T::DTYPE);
    match reduce(engine, kind, placed.array) {
        Ok(payload) => assert!(payload == expected, "{kind:?} of {n} {dtype} at {offset}, {note}"),
        Err(error) => panic!("{kind:?} of {n} {dtype} at {offset}, {note}: {error}"),
    }
}

/// Checks one dot product.
fn check_dot<T: Element>(engine: &Engine, arrays: [&[T]; 2], offsets: [usize; 2], note: &str) {
    let device = &**engine.device();
    let [x, y] = [0, 1].map(|i| Placed::new(device, arrays[i], offsets[i]));
    let input = Input { others: Some(y.array.address), ..x.array.into() };
    let [items, others] = arrays.map(|items| bytemuck::cast_slice(items));
    let expected = reference_of(Kind::Dot, T::DTYPE, items, others).payload();
    let what = format!("dot of {} {} at {offsets:?}, {note}", arrays[0].len(), T::DTYPE);
    match reduce(engine, Kind::Dot, input) {
        Ok(payload) => assert!(payload == expected, "{what}"),
        Err(error) => panic!("{what}: {error}"),
    }
}

fn kinds(dtype: DType) -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(move |&kind| Engine::supports(kind, dtype))
}

/// Sizes around everything that cuts an array: vectors, warps, tiles of blocks of
/// 32 and 64 threads; and primes.
fn sizes(dtype: DType) -> Vec<usize> {
    let vector = 16 / dtype.size();
    let tile = 4 * 32 * vector;
    let around = [vector, 32 * vector, tile, 2 * tile, 5 * tile];
    let mut sizes = vec![0, 1, 2, 3, 31, 32, 33, 127, 1009, 4099];
    sizes.extend(around.into_iter().flat_map(|n| [n - 1, n, n + 1]));
    sizes
}

const SHAPES: [(u32, u32); 5] = [(32, 1), (32, 3), (64, 2), (128, 5), (96, 2)];

/// Engines of every shape.
fn engines(device: &Arc<dyn Device>) -> Vec<Engine> {
    let shapes = SHAPES.map(|(t, b)| Shape { threads: Some(t), blocks: Some(b) });
    let all = shapes.into_iter().chain([Shape::default()]);
    all.map(|shape| Engine::with_shape(Arc::clone(device), shape)).collect()
}

/// Every size, pattern, offset and shape with every kernel: each size with each
/// pattern, offsets and shapes taking turns.
fn sweep(engines: &[Engine], dtype: DType, seed: u64, keep: impl Fn(usize) -> bool) {
    let mut random = Random(seed | 1);
    let mut turn = 0usize;
    for n in sizes(dtype) {
        for pattern in PATTERNS {
            for kind in kinds(dtype) {
                turn += 1;
                if !keep(turn) {
                    continue;
                }
                let engine = &engines[turn % engines.len()];
                let offset = (turn / engines.len() + turn) % (16 / dtype.size());
                with_element!(dtype, T => {
                    let items: Vec<T> = make(pattern, n, &mut random);
                    check(engine, kind, &items, offset, &format!("{pattern}, turn {turn}"));
                });
            }
        }
    }
}

fn sim(schedule: Schedule) -> Arc<dyn Device> {
    Arc::new(Sim::new(Options { schedule, checks: Checks::ALL, ..Options::default() }))
}

#[test]
fn in_lockstep() {
    for dtype in DType::ALL {
        sweep(&engines(&sim(Schedule::Lockstep)), dtype, 0x9e37_79b9, |_| true);
    }
}

/// A simulated device that says it is an older one, and so is given the PTX for
/// those.
struct Older(Sim, Limits);

impl Device for Older {
    fn limits(&self) -> &Limits {
        &self.1
    }
    fn allocate(&self, bytes: u64) -> Result<Address> {
        self.0.allocate(bytes)
    }
    fn free(&self, address: Address) -> Result<()> {
        self.0.free(address)
    }
    fn copy_in(&self, stream: Stream, to: Address, from: &[u8]) -> Result<()> {
        self.0.copy_in(stream, to, from)
    }
    fn copy_out(&self, stream: Stream, from: Address, to: &mut [u8]) -> Result<()> {
        self.0.copy_out(stream, from, to)
    }
    fn fill(&self, stream: Stream, to: Address, value: u8, bytes: u64) -> Result<()> {
        self.0.fill(stream, to, value, bytes)
    }
    fn load(&self, name: &str, ptx: &str) -> Result<ModuleId> {
        assert!(ptx.contains(".target sm_75"), "{name} is not for this device");
        self.0.load(name, ptx)
    }
    fn kernel(&self, module: ModuleId, name: &str) -> Result<KernelId> {
        self.0.kernel(module, name)
    }
    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<u32> {
        self.0.resident_blocks(kernel, threads, shared)
    }
    fn stream(&self) -> Result<Stream> {
        self.0.stream()
    }
    unsafe fn launch(
        &self,
        stream: Stream,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> Result<()> {
        // SAFETY: passed on from the caller.
        unsafe { self.0.launch(stream, kernel, launch, arguments) }
    }
    fn wait(&self, stream: Stream) -> Result<()> {
        self.0.wait(stream)
    }
    fn is_done(&self, stream: Stream) -> Result<bool> {
        self.0.is_done(stream)
    }
}

#[test]
fn on_a_turing_device() {
    let sim = Sim::new(Options { checks: Checks::ALL, ..Options::default() });
    let limits = Limits { capability: (7, 5), ..sim.limits().clone() };
    let device: Arc<dyn Device> = Arc::new(Older(sim, limits));
    for dtype in DType::ALL {
        sweep(&engines(&device), dtype, 0x75, |turn| turn % 3 == 0);
    }
    hazards(&device);
}

#[test]
fn in_random_order() {
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        let seed = i as u64;
        sweep(&engines(&sim(Schedule::Random { seed })), dtype, seed + 1, |turn| turn % 5 == i % 5);
    }
}

#[test]
fn with_every_lane_for_itself() {
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        let seed = i as u64;
        let device = sim(Schedule::Adversarial { seed });
        sweep(&engines(&device), dtype, seed + 99, |turn| turn % 19 == i);
    }
}

#[test]
fn hazards_on_the_interpreter() {
    hazards(&sim(Schedule::Lockstep));
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn on_the_device_of_this_machine() {
    let device: Arc<dyn Device> = match Driver::open(0) {
        Ok(device) => Arc::new(device),
        Err(error) if std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() => {
            println!("SKIPPED: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let all = engines(&device);
    for dtype in DType::ALL {
        sweep(&all, dtype, 0x9e37_79b9, |_| true);
        large(&all[SHAPES.len()], dtype);
    }
    hazards(&device);
    from_many_threads(&device);
    more_than_32_bits_count(&all[SHAPES.len()]);
}

/// Arrays that fill a device.
fn large(engine: &Engine, dtype: DType) {
    let mut random = Random(0xb16);
    for pattern in PATTERNS {
        for (n, offset) in [(1 << 20, 0), ((3 << 20) + 1009, 1)] {
            with_element!(dtype, T => {
                let items: Vec<T> = make(pattern, n, &mut random);
                for kind in kinds(dtype) {
                    check(engine, kind, &items, offset, pattern);
                }
            });
        }
    }
}

/// What each certificate must notice, and what must not overflow.
fn hazards(device: &Arc<dyn Device>) {
    let one_warp = Shape { threads: Some(32), blocks: Some(1) };
    let engine = Engine::with_shape(Arc::clone(device), one_warp);
    there_and_back(&engine);
    edges_of_the_range_certificate(&engine);
    half_an_ulp_again_and_again(&engine);
    windows_end_with_the_format(&engine);
    totals_are_flushed_before_they_overflow(&engine);
    bins_carry(&engine);
    bins_meet(&engine);
    integers_beyond_64_bits(&engine);
    minima_among_nans(&engine);
}

/// A value that takes the sum out of the anchor's binade and one that brings it
/// back, in the same lane of the same tile: only the collected bits show it.
fn there_and_back(engine: &Engine) {
    for huge in [1e30, 2f64.powi(60), 2f64.powi(1023)] {
        let mut items = vec![1.0f64; 256];
        items[3 * 2] = huge;
        items[3 * 2 + 64] = -huge;
        items[200] = 3e-200;
        check(engine, Kind::Sum, &items, 0, "there and back");
    }
}

/// Spreads around the widest certified one, with full significands on both
/// sides, in the same lane.
fn edges_of_the_range_certificate(engine: &Engine) {
    let mut random = Random(0xed9e);
    for spread in 20u32..30 {
        for big in [0x3fff_ffffu32, 0x3fff_fffd, 0x3f80_0001] {
            let (small, big) = (f32::from_bits(0x3fff_ffff - (spread << 23)), f32::from_bits(big));
            let items: Vec<f32> = (0..512)
                .map(|_| if random.next().is_multiple_of(5) { small } else { big })
                .collect();
            check(engine, Kind::Sum, &items, 0, &format!("{spread} binades"));
        }
    }
    for spread in 34u32..46 {
        let (small, big) =
            (bf16::from_bits(0x7fff - 0x4001 - (spread << 7) as u16), bf16::from_bits(0x3fff));
        let items: Vec<bf16> =
            (0..1024).map(|_| if random.next().is_multiple_of(5) { small } else { big }).collect();
        check(engine, Kind::Sum, &items, 0, &format!("bf16, {spread} binades"));
    }
}

/// Every element leaves the same residue for the next level, as large as
/// residues get.
fn half_an_ulp_again_and_again(engine: &Engine) {
    for top in [1.0f64, -1.0] {
        for low in -110..-30 {
            let items = [top + top * 2f64.powi(low.max(-52)), top * 2f64.powi(low)];
            check(engine, Kind::Sum, &items.repeat(300), 0, &format!("2^{low}"));
        }
    }
}

/// Windows whose levels would lie below the format's last bit, or whose anchors
/// would overflow.
fn windows_end_with_the_format(engine: &Engine) {
    for exponent in (-1074..1024).step_by(31).chain([-1074, -1022, 1016, 1017, 1018, 1022, 1023]) {
        let x = if exponent < -1022 {
            f64::from_bits(1 << (exponent + 1074))
        } else {
            f64::from_bits(((exponent + 1023) as u64) << 52 | 0xf_ffff_ffff_ffff)
        };
        check(engine, Kind::Sum, &vec![x; 300], 0, &format!("2^{exponent}"));
        check(engine, Kind::AbsSum, &vec![-x; 300], 1, &format!("2^{exponent}"));
    }
    for bits in [1u32, 0x7f_ffff, 0x80_0000, 0x7f00_0000, 0x7f7f_ffff] {
        let x = f32::from_bits(bits);
        check(engine, Kind::Sum, &vec![x; 600], 0, "f32 at its ends");
        check(engine, Kind::Sum, &vec![-x; 600], 3, "f32 at its ends");
    }
    for bits in [1u16, 0x3ff, 0x400, 0x7bff] {
        check(engine, Kind::Sum, &vec![f16::from_bits(bits); 1200], 0, "f16 at its ends");
        check(engine, Kind::Sum, &vec![f16::from_bits(bits | 0x8000); 1200], 7, "f16 at its ends");
    }
}

/// More tiles of one warp than a lane's totals take at the top of their window.
fn totals_are_flushed_before_they_overflow(engine: &Engine) {
    // Each moves a lane's total by almost 2^50: four flushes, and 2^63 without.
    let tiles = (1 << 13) + 1;
    let items = vec![1024.0 - 1024.0 * f64::EPSILON / 2.0; tiles * 256];
    for sign in [1.0, -1.0] {
        let items: Vec<f64> = items.iter().map(|x| x * sign).collect();
        check(engine, Kind::Sum, &items, 0, "tiles without end");
    }
}

/// More elements of one sign in one bin than it has room for, and others far
/// below them so that no window takes them: the exponents are the highest of bins.
fn bins_carry(engine: &Engine) {
    for exponent in [-880, 944] {
        let high = f64::from_bits(((exponent + 1023) as u64) << 52 | 0xf_ffff_ffff_ffff);
        for sign in [1.0, -1.0] {
            let items: Vec<f64> = (0..90_077)
                .map(|i| if i % 5 == 0 { f64::from_bits(i as u64) } else { sign * high })
                .collect();
            check(engine, Kind::Sum, &items, 1, &format!("bins at 2^{exponent}"));
        }
    }
    let items: Vec<f32> =
        (0..40_000).map(|i| if i % 5 == 0 { f32::from_bits(i) } else { -f32::MAX }).collect();
    check(engine, Kind::Sum, &items, 1, "bins of f32");
}

/// Both ends of every bin, every exponent, full and lone significands.
fn bins_meet(engine: &Engine) {
    let mut random = Random(0xb125);
    let items: Vec<f64> = (0..2047u64)
        .flat_map(|field| {
            let random = random.next();
            [0, 1, 0xf_ffff_ffff_ffff, random >> 12]
                .map(|f| (field ^ random) << 63 | field << 52 | f)
        })
        .map(f64::from_bits)
        .collect();
    check(engine, Kind::Sum, &items, 0, "every exponent");
    check(engine, Kind::AbsSum, &items, 1, "every exponent");
    let items: Vec<f32> = (0..255u32)
        .flat_map(|field| {
            let random = random.next() as u32;
            [0, 1, 0x7f_ffff, random >> 9].map(|f| (field ^ random) << 31 | field << 23 | f)
        })
        .map(f32::from_bits)
        .collect();
    check(engine, Kind::Sum, &items, 0, "every exponent of f32");
    let items: Vec<bf16> = (0..=0xffff).map(bf16::from_bits).filter(|x| x.is_finite()).collect();
    check(engine, Kind::Sum, &items, 0, "every bf16");
    let items: Vec<f16> = (0..=0xffff).map(f16::from_bits).collect();
    check(engine, Kind::Sum, &items, 0, "every f16");
}

/// Carries between the words of a sum, of both signs.
fn integers_beyond_64_bits(engine: &Engine) {
    for n in [2, 3, 511, 4096] {
        for x in [i64::MIN, i64::MAX, -1, 1 << 32, -(1 << 32)] {
            check(engine, Kind::Sum, &vec![x; n], 0, "i64");
            check(engine, Kind::AbsSum, &vec![x; n], 1, "i64");
            check(engine, Kind::Sum, &vec![x.cast_unsigned(); n], 0, "u64");
            check(engine, Kind::Sum, &vec![x as i32; n], 1, "i32");
        }
    }
}

/// One number among NaNs of both signs, wherever it is.
fn minima_among_nans(engine: &Engine) {
    for at in [0, 1, 5, 300, 511] {
        for x in [f32::NEG_INFINITY, -0.0, 0.0, f32::MAX] {
            for nan in [f32::NAN, -f32::NAN] {
                let mut items = vec![nan; 512];
                items[at] = x;
                check(engine, Kind::Extrema, &items, 0, "one number");
                check(engine, Kind::Counts, &items, 1, "one number");
            }
        }
    }
}

#[test]
fn from_many_threads_on_the_interpreter() {
    from_many_threads(&sim(Schedule::Lockstep));
}

/// Eight threads on one engine: half of them share a stream, half have their own.
fn from_many_threads(device: &Arc<dyn Device>) {
    let shape = Shape { threads: Some(64), blocks: Some(4) };
    let engine = Engine::with_shape(Arc::clone(device), shape);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let engine = &engine;
            scope.spawn(move || {
                let stream =
                    if thread < 4 { Stream::DEFAULT } else { engine.device().stream().unwrap() };
                let mut random = Random(thread + 1);
                for round in 0..10usize {
                    let n = 3000 + 7 * round;
                    let items: Vec<f64> = make(PATTERNS[round % PATTERNS.len()], n, &mut random);
                    let bytes = bytemuck::cast_slice(&items);
                    for kind in kinds(DType::F64).filter(|&kind| kind != Kind::Dot) {
                        let got = engine.reduce_host(kind, DType::F64, bytes, stream).unwrap();
                        let expected = reference(kind, DType::F64, bytes);
                        assert!(got.payload() == expected.payload(), "{kind:?} in {thread}");
                    }
                }
            });
        }
    });
}

/// The state of `n` equal elements, or of their products with themselves, by
/// merging states with themselves.
fn repeated<T: Element>(kind: Kind, x: T, n: u64) -> AnyState {
    let (item, pair) = (bytemuck::bytes_of(&x), kind == Kind::Dot);
    let mut power = reference_of(kind, T::DTYPE, item, if pair { item } else { &[] });
    let mut state = AnyState::identity(kind, T::DTYPE).unwrap();
    for bit in 0..64 - n.leading_zeros() {
        if n >> bit & 1 == 1 {
            state.merge(&power).unwrap();
        }
        power.merge(&power.clone()).unwrap();
    }
    state
}

/// Indices beyond 32 bits, where memory has room for as many elements.
fn more_than_32_bits_count(engine: &Engine) {
    let device = &**engine.device();
    let n = (1u64 << 32) + 12_345;
    for (dtype, byte) in
        [(DType::I8, 0xff), (DType::Bool, 0x02), (DType::F16, 0x3c), (DType::F32, 0xbf)]
    {
        let bytes = (n + 1) * dtype.size() as u64;
        let base = match device.allocate(bytes) {
            Ok(base) => base,
            Err(error) if error.is_out_of_memory() => {
                println!("SKIPPED: 2^32 elements of {dtype}: {error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        device.fill(Stream::DEFAULT, base, byte, bytes).unwrap();
        // Behind the first element, so that there is a head.
        let array = Array { address: base + dtype.size() as u64, len: n, dtype };
        // Equal elements at other places are no other state only if places do not count.
        for kind in kinds(dtype).filter(|kind| !kind.is_positional()) {
            let expected = with_element!(dtype, T => {
                repeated(kind, <T as Element>::from_bits(u64::from_ne_bytes([byte; 8])), n)
            });
            let others = (kind == Kind::Dot).then_some(array.address);
            let input = Input { others, ..array.into() };
            let payload = reduce(engine, kind, input).unwrap();
            assert!(payload == expected.payload(), "{kind:?} of {n} {dtype}");
        }
        device.free(base).unwrap();
    }
}

#[test]
fn what_cannot_be_reduced_is_an_error_and_the_engine_goes_on() {
    let device = sim(Schedule::Lockstep);
    let engine = Engine::new(Arc::clone(&device));
    let items = [1.0f64, 2.0, 3.0, 4.0];
    let bytes: &[u8] = bytemuck::cast_slice(&items);
    let base = device.allocate(32).unwrap();
    device.copy_in(Stream::DEFAULT, base, bytes).unwrap();
    let array = |address, len, dtype| Array { address, len, dtype };
    let refused = |kind, array| reduce(&engine, kind, array).unwrap_err();

    let misaligned = refused(Kind::Sum, array(base + 4, 3, DType::F64));
    assert!(misaligned.to_string().contains("not aligned"), "{misaligned}");
    let long = refused(Kind::Sum, array(base, 1 << 42, DType::I8));
    assert!(long.to_string().contains("2^41"), "{long}");
    let beyond = refused(Kind::Sum, array(!0xff, 1 << 40, DType::F64));
    assert!(beyond.to_string().contains("address space"), "{beyond}");
    let (kind, dtype) = (Kind::Bits, DType::F64);
    assert_eq!(refused(kind, array(base, 4, dtype)), Error::NoKernel { kind, dtype });
    let (kind, input) = (Kind::Dot, array(base, 4, DType::F64).into());
    assert_eq!(reduce(&engine, kind, input), Err(Error::Arrays { kind, given: 1 }));
    for (kind, others) in [(Kind::Sum, base), (Kind::Dot, base + 4)] {
        let two = reduce(&engine, kind, Input { others: Some(others), ..input }).unwrap_err();
        let why = if kind == Kind::Dot { "not aligned" } else { "needs one array and got 2" };
        assert!(two.to_string().contains(why), "{two}");
    }
    let ragged = engine.reduce_host(Kind::Sum, DType::F64, &bytes[..31], Stream::DEFAULT);
    assert!(ragged.is_err_and(|e| e.to_string().contains("within an element")));
    // The interpreter sees what a real device may not: nobody wrote there.
    let outside = refused(Kind::Sum, array(base + 8, 4, DType::F64));
    assert!(matches!(outside, Error::Simulated { .. }), "{outside}");

    let fresh = Engine::new(Arc::clone(&device));
    let expected = reference(Kind::Sum, DType::F64, bytes).payload();
    assert_eq!(reduce(&fresh, Kind::Sum, array(base, 4, DType::F64)), Ok(expected));
}

#[test]
fn the_state_may_stay_on_the_device() {
    let device = sim(Schedule::Lockstep);
    let engine = Engine::new(Arc::clone(&device));
    let items: Vec<f32> = make("signed", 5000, &mut Random(5));
    let placed = Placed::new(&*device, &items, 3);
    let len = Engine::payload_len(Kind::Sum, DType::F32).unwrap();
    let to = device.allocate(len as u64).unwrap();
    let into = |to| {
        // SAFETY: `placed` holds the array, and the payload was allocated.
        unsafe { engine.reduce_into(Kind::Sum, placed.array, to, Stream::DEFAULT) }
    };
    assert!(into(to + 4).is_err());
    into(to).unwrap();
    device.wait(Stream::DEFAULT).unwrap();
    let mut payload = vec![0; len];
    device.copy_out(Stream::DEFAULT, to, &mut payload).unwrap();
    let state = AnyState::from_payload(Kind::Sum, DType::F32, &payload).unwrap();
    let expected = reference(Kind::Sum, DType::F32, bytemuck::cast_slice(&items));
    assert_eq!(state.payload(), expected.payload());
}
