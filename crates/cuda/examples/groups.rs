//! How fast the engine reduces groups of rows in device 0's memory: GB/s of keys, values and
//! answers.
//!
//! ```text
//! groups [--json] [DTYPE [OP [FILE:GROUPS...]]]        as in: groups f32 sum keys.u32:1024
//! ```
//!
//! A file has the keys of all rows, as `u32` below the number of groups; without one, keys
//! are drawn for 2^28 rows. With `--json` every figure is a line for `benches/gpu_groups.py`.
//!
//! Calls follow one another without a wait, on columns that are larger than caches; the clock
//! runs from the first call to the end of the last. Each figure is the median of several
//! such rounds. Before them, the answers of some groups are compared with the states of their
//! rows.

mod common;

use common::Random;
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::{Numbers, Op, Rules};
use warpfold_cuda::engine::{Array, Engine, Groups};
use warpfold_cuda::{Address, Buffer, Device, Driver, Result, Stream};

/// Rows whose keys are drawn.
const ROWS: usize = 1 << 28;
/// Bytes of values that are drawn, and repeated.
const PIECE: usize = 64 << 20;
/// What is copied at once.
const COPIED: usize = 64 << 20;
const ROUNDS: usize = 7;
const CALLS: usize = 4;
/// Groups that are looked at.
const LOOKS: usize = 3;

/// A column of keys: its name, how many groups there are, and how the key of a row is drawn.
type Drawn = (&'static str, usize, fn(usize, usize, &mut Random) -> usize);

/// Keys that are drawn.
const DRAWN: [Drawn; 8] = [
    ("one group", 1, |_, _, _| 0),
    ("uniform", 16, uniform),
    ("uniform", 1024, uniform),
    ("uniform", 1 << 14, uniform),
    ("uniform", 1 << 20, uniform),
    // The continuous law of exponent 1.
    ("Zipf", 1 << 20, |groups, _, random| (groups as f64).powf(random.unit()) as usize - 1),
    ("sorted", 1 << 20, |groups, row, _| (row as u64 * groups as u64 / ROWS as u64) as usize),
    ("in turns", 1 << 20, |groups, row, _| row % groups),
];

fn uniform(groups: usize, _: usize, random: &mut Random) -> usize {
    (random.unit() * groups as f64) as usize
}

/// Values, of which totals of 2^28 fit 64 bits.
fn piece(dtype: DType) -> Vec<u8> {
    let mut random = Random(0x0123_4567_89ab_cdef);
    if dtype.is_float() {
        return common::elements(dtype, PIECE, &mut random);
    }
    (0..PIECE / dtype.size())
        .flat_map(|_| ((random.signed() * 1e9) as i64).to_le_bytes()[..dtype.size()].to_vec())
        .collect()
}

struct Bench {
    device: Arc<dyn Device>,
    engine: Engine,
    stream: Stream,
    op: Op,
    dtype: DType,
    /// The values of the first rows, which are repeated.
    piece: Vec<u8>,
    values: Buffer<'static>,
}

impl Bench {
    fn array(&self, rows: usize) -> Array {
        Array { address: self.values.address(), len: rows as u64, dtype: self.dtype }
    }

    /// Seconds of a call; nothing where no kernel answers.
    fn seconds(&self, groups: &Groups, to: Address) -> Result<Option<f64>> {
        let array = self.array(groups.keys.len as usize);
        let Bench { device, engine, op, stream, .. } = self;
        common::seconds(&**device, *stream, ROUNDS, CALLS, || {
            // SAFETY: keys, values and room for the answers were made by `main`.
            unsafe { engine.groups_into(*op, array, groups, to, *stream) }
        })
    }

    /// Compares the answers of some groups, those of the last call, with their rows' states.
    fn look(&self, keys: &[u32], count: usize, to: Address) -> Result<()> {
        let Bench { device, stream, op, dtype, piece, .. } = self;
        let (size, mut one) = (dtype.size(), Numbers::zeros(op.answer_type(*dtype), 1));
        for group in (0..LOOKS.min(count)).map(|i| i * (count - 1) / (LOOKS - 1)) {
            let rows = keys.iter().enumerate().filter(|&(_, &key)| key as usize == group);
            let mut its = Vec::new();
            for (row, _) in rows {
                let at = row * size % piece.len();
                its.extend_from_slice(&piece[at..at + size]);
            }
            if its.is_empty() {
                continue;
            }
            let memory = Buffer::new(device, its.len() as u64)?;
            memory.copy_in(*stream, 0, &its)?;
            let len = (its.len() / size) as u64;
            let array = Array { address: memory.address(), len, dtype: *dtype };
            let at = to + (one.bytes().len() * group) as u64;
            // SAFETY: the rows were sent here, and the answers lie in memory that `main` has
            // made.
            let state = unsafe {
                device.copy_out(*stream, at, one.bytes_mut())?;
                self.engine.reduce(op.kind(), array, *stream)?
            };
            let expected = state.finish(*op, &Rules::default())?.first();
            assert_eq!(one.get(0), Some(expected), "{op} of group {group}, {len} rows");
            memory.free()?;
        }
        Ok(())
    }

    /// The line of a column of keys.
    fn line(&self, name: &str, keys: &[u32], count: usize, json: bool) -> Result<()> {
        let Bench { device, stream, op, dtype, .. } = self;
        let memory = Buffer::new(device, 4 * keys.len() as u64)?;
        for (i, some) in keys.chunks(COPIED / 4).enumerate() {
            memory.copy_in(*stream, (i * COPIED) as u64, bytemuck::cast_slice(some))?;
        }
        let answers = Buffer::new(device, 8 * count as u64)?;
        let column = Array { address: memory.address(), len: keys.len() as u64, dtype: DType::U32 };
        let groups = Groups { keys: column, least: 0, count: count as u64 };
        let Some(seconds) = self.seconds(&groups, answers.address())? else {
            println!("{op} of {dtype}: no kernel");
            return Ok(());
        };
        self.look(keys, count, answers.address())?;
        let row = 4 + dtype.size();
        let bytes = (row * keys.len() + count * op.answer_type(*dtype).size()) as f64;
        if json {
            println!(
                "{{\"peer\": \"warpfold\", \"op\": \"{op}\", \"dtype\": \"{dtype}\", \
                 \"case\": \"{name}\", \"groups\": {count}, \"bytes\": {bytes}, \
                 \"seconds\": {seconds:e}}}"
            );
        } else {
            let rate = bytes / seconds / 1e9;
            let millis = seconds * 1e3;
            println!("{op} {dtype} {name:24} {count:>8} groups {millis:8.3} ms {rate:6.0} GB/s");
        }
        answers.free()?;
        memory.free()
    }
}

fn main() -> Result<()> {
    let (flags, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "--json");
    let json = !flags.is_empty();
    let dtype = wanted.first().map_or(DType::F32, |name| name.parse().expect("a type"));
    let op: Op = wanted.get(1).map_or(Op::Sum, |name| name.parse().expect("an operation"));
    let device: Arc<dyn Device> = Arc::new(Driver::open(0)?);
    let stream = device.stream()?;
    if !json {
        println!("{}, {} multiprocessors", device.limits().name, device.limits().multiprocessors);
    }
    let files: Vec<(&str, usize)> = wanted
        .iter()
        .skip(2)
        .map(|file| file.rsplit_once(':').expect("FILE:GROUPS"))
        .map(|(file, groups)| (file, groups.parse().expect("a number of groups")))
        .collect();
    let longest = |(file, _): &(&str, usize)| std::fs::metadata(file).map_or(0, |f| f.len() / 4);
    let rows = files.iter().map(longest).max().unwrap_or(ROWS as u64);
    let bytes = rows * dtype.size() as u64;
    let values = Buffer::new(&device, bytes.next_multiple_of(PIECE as u64))?;
    let piece = piece(dtype);
    for at in (0..bytes).step_by(PIECE) {
        values.copy_in(stream, at, &piece)?;
    }
    let engine = Engine::new(Arc::clone(&device));
    let bench = Bench { device, engine, stream, op, dtype, piece, values };
    for &(file, groups) in &files {
        bench.line(file, &common::words(file), groups, json)?;
    }
    if files.is_empty() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut keys = vec![0; ROWS];
        for (name, groups, next) in DRAWN {
            for (row, key) in keys.iter_mut().enumerate() {
                *key = next(groups, row, &mut random).min(groups - 1) as u32;
            }
            bench.line(name, &keys, groups, json)?;
        }
    }
    bench.values.free()
}
