//! How fast host memory goes through device 0: a table of GB/s.
//!
//! ```text
//! feeder [--json] [GIBIBYTES [ROOM]]        as in: feeder 4 4194304
//! ```
//!
//! With `--json` every figure is a line for `benches/gpu.py`.
//!
//! Each thread has a feeder and takes the next run of one array, in pageable memory
//! or in pinned memory that is copied from where it lies; the clock runs until the
//! states of all are merged. Figures are medians of several rounds, each with its
//! payload held against the first one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind, RawRun};
use warpfold_cuda::engine::Engine;
use warpfold_cuda::{Buffer, Device, Driver, Result};

const ROUNDS: usize = 5;

const QUESTIONS: [(&str, DType, &[Kind]); 5] = [
    ("sum f64", DType::F64, &[Kind::Sum]),
    ("sum f32", DType::F32, &[Kind::Sum]),
    ("min f32", DType::F32, &[Kind::Extrema]),
    ("sum, min, count f64", DType::F64, &[Kind::Sum, Kind::Extrema, Kind::Counts]),
    ("sum i8", DType::I8, &[Kind::Sum]),
];

/// Reduces `items` on so many threads.
fn reduce(
    engine: &Arc<Engine>,
    (kinds, dtype): (&[Kind], DType),
    items: &[u8],
    room: usize,
    (threads, in_place): (usize, bool),
) -> Result<Vec<AnyState>> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<AnyState>> {
        let mut feeder = engine.feeder(kinds, dtype, 1)?.with_room(room);
        let step = feeder.best_run();
        loop {
            let from = next.fetch_add(1, Ordering::Relaxed) * step;
            if from >= items.len() {
                return feeder.take_states();
            }
            let items = &items[from..items.len().min(from + step)];
            let run = RawRun { start: (from / dtype.size()) as u64, items, others: &[] };
            if in_place {
                // SAFETY: the items outlive the feeder.
                unsafe { feeder.absorb_in_place(run)? };
            } else {
                feeder.absorb(run)?;
            }
        }
    };
    let parts: Vec<Result<Vec<AnyState>>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut parts = vec![work()];
        parts.extend(others.into_iter().filter_map(|t| t.join().ok()));
        parts
    });
    let mut parts = parts.into_iter();
    let mut states = parts.next().map_or(Ok(Vec::new()), |part| part)?;
    for part in parts {
        for (state, other) in states.iter_mut().zip(&part?) {
            let merged = state.merge(other);
            assert!(merged.is_ok(), "pieces of one array");
        }
    }
    Ok(states)
}

/// Seconds to copy pinned memory to the device, the median of several rounds.
fn copy_time(device: &Arc<dyn Device>, pinned: &[u8]) -> Result<f64> {
    let stream = device.stream()?;
    let buffer = Buffer::new(device, pinned.len() as u64)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        buffer.copy_in(stream, 0, pinned)?;
        device.wait(stream)?;
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    buffer.free()?;
    Ok(times[ROUNDS / 2])
}

fn main() -> Result<()> {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "--json");
    let json = !flags.is_empty();
    let mut words = words.iter().map(|word| word.parse::<usize>().ok());
    let gibibytes = words.next().flatten().unwrap_or(4);
    let room = words.next().flatten().unwrap_or(4 << 20);
    let begin = Instant::now();
    let device: Arc<dyn Device> = Arc::new(Driver::open(0)?);
    if !json {
        let opened = begin.elapsed().as_secs_f64() * 1e3;
        println!("{}: opened in {opened:.0} ms", device.limits().name);
    }
    let engine = Arc::new(Engine::new(Arc::clone(&device)));

    let len = gibibytes << 30;
    let mut pageable = vec![0u8; len];
    // Mostly small numbers of any type, and no NaNs: 0x3d in every top byte.
    for (i, byte) in pageable.iter_mut().enumerate() {
        *byte = if i % 4 == 3 { 0x3d } else { (i ^ (i >> 9)) as u8 };
    }
    let begin = Instant::now();
    let at = device.allocate_pinned(len)?;
    if !json {
        println!("{gibibytes} GiB pinned in {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
    }
    // SAFETY: just allocated, and initialised.
    let pinned = unsafe { core::slice::from_raw_parts_mut(at.as_ptr(), len) };
    pinned.copy_from_slice(&pageable);

    let copy = copy_time(&device, pinned)?;
    let rate = len as f64 / copy / 1e9;
    if json {
        println!(
            "{{\"peer\": \"the bus\", \"op\": \"copy\", \"bytes\": {len}, \"seconds\": {copy:e}}}"
        );
    } else {
        println!("{rate:.1} GB/s to copy from pinned memory");
        println!("{:24}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}", "GB/s", "1", "2", "4", "8", "12", "pinned");
    }
    // The benchmark holds sums against the bus.
    for (name, dtype, kinds) in &QUESTIONS[..if json { 2 } else { QUESTIONS.len() }] {
        let mut row = format!("{name:24}");
        let mut expected: Option<Vec<Vec<u8>>> = None;
        for (threads, in_place) in
            [(1, false), (2, false), (4, false), (8, false), (12, false), (1, true)]
        {
            let items: &[u8] = if in_place { pinned } else { &pageable };
            let mut times = Vec::new();
            for _ in 0..=ROUNDS {
                let begin = Instant::now();
                let states = reduce(&engine, (kinds, *dtype), items, room, (threads, in_place))?;
                times.push(begin.elapsed().as_secs_f64());
                let payloads: Vec<_> = states.iter().map(AnyState::payload).collect();
                let expected = expected.get_or_insert_with(|| payloads.clone());
                assert!(*expected == payloads, "{name} on {threads} threads");
            }
            // The first round makes slots and loads kernels.
            let times = &mut times[1..];
            times.sort_by(f64::total_cmp);
            let time = times[ROUNDS / 2];
            row += &format!("{:8.1}", len as f64 / time / 1e9);
            if json {
                let memory = if in_place { "pinned" } else { "pageable" };
                println!(
                    "{{\"peer\": \"warpfold\", \"op\": \"{name}\", \"memory\": \"{memory}\", \
                     \"threads\": {threads}, \"bytes\": {len}, \"seconds\": {time:e}}}"
                );
            }
        }
        if !json {
            println!("{row}");
        }
    }
    drop(engine);
    // SAFETY: nobody uses it any more.
    unsafe { device.free_pinned(at, len) }
}
