//! Where the time of reductions of small arrays goes on device 0, launched back to
//! back: microseconds a call.
//!
//! ```text
//! small_arrays [--threads N] [--blocks N] [OP [DTYPE]]        as in: small_arrays sum f32
//! ```
//!
//! * `call`: what a call takes, from the first launch to the end of the last.
//! * `host`: what the host takes to put one on the stream, while the device is
//!   busy with something else.
//! * `device`: what the device takes, if the launches wait for it on the stream.
//!
//! The longer of host and device is what a call takes at least. Inputs rotate over a
//! buffer of 8 GiB, as in `full_reductions`.

use std::sync::Arc;
use std::time::Instant;
use warpfold_core::DType;
use warpfold_core::op::Kind;
use warpfold_cuda::engine::{Array, Engine, Input, Shape};
use warpfold_cuda::{Address, Buffer, Device, Driver, Result, Stream};

const BUFFER: u64 = 8 << 30;
const ROUNDS: usize = 9;
const CALLS: u64 = 2000;

/// Launches that a stream holds without making the host wait, and what keeps the
/// device busy meanwhile: some milliseconds.
const QUEUED: u64 = 500;
const BUSY_BYTES: u64 = 4 << 30;
const BUSY_LAUNCHES: usize = 4;

const OPS: [(&str, Kind); 6] = [
    ("sum", Kind::Sum),
    ("norm2", Kind::SquareSum),
    ("var", Kind::Moments),
    ("min", Kind::Extrema),
    ("argmin", Kind::ArgExtrema),
    ("and", Kind::Bits),
];

struct Bench {
    engine: Engine,
    buffer: Address,
    payload: Address,
    stream: Stream,
    at: u64,
}

impl Bench {
    /// Puts reductions of the next parts of the buffer on the stream.
    fn put(&mut self, kind: Kind, dtype: DType, len: u64, calls: u64) -> Result<()> {
        let bytes = len * dtype.size() as u64;
        for _ in 0..calls {
            if self.at + bytes > BUFFER {
                self.at = 0;
            }
            let array = Array { address: self.buffer + self.at, len, dtype };
            // SAFETY: the array lies in the buffer, which is full; the payload
            // has room for any state.
            unsafe {
                self.engine.reduce_into(kind, Input::from(array), self.payload, self.stream)?;
            }
            self.at += bytes.next_multiple_of(256);
        }
        Ok(())
    }

    fn call(&mut self, kind: Kind, dtype: DType, len: u64) -> Result<f64> {
        let begin = Instant::now();
        self.put(kind, dtype, len, CALLS)?;
        self.engine.device().wait(self.stream)?;
        Ok(begin.elapsed().as_secs_f64() / CALLS as f64)
    }

    /// Seconds of the host and of the device.
    fn apart(&mut self, kind: Kind, dtype: DType, len: u64) -> Result<(f64, f64)> {
        for _ in 0..BUSY_LAUNCHES {
            self.put(Kind::Sum, DType::U8, BUSY_BYTES, 1)?;
        }
        let device = Arc::clone(self.engine.device());
        let mut host = 0.0;
        let busy = device.time(self.stream, &mut || {
            let begin = Instant::now();
            self.put(kind, dtype, len, QUEUED)?;
            host = begin.elapsed().as_secs_f64();
            Ok(())
        })?;
        let busy = busy.map_or(f64::NAN, |time| time.as_secs_f64());
        Ok((host / QUEUED as f64, busy / QUEUED as f64))
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2] * 1e6
}

fn main() -> Result<()> {
    let mut shape = Shape::default();
    let mut wanted = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--threads" => shape.threads = arguments.next().and_then(|n| n.parse().ok()),
            "--blocks" => shape.blocks = arguments.next().and_then(|n| n.parse().ok()),
            _ => wanted.push(argument),
        }
    }
    let wants = |place: usize, name: &str| wanted.get(place).is_none_or(|w| w == name);
    let device: Arc<dyn Device> = Arc::new(Driver::open(0)?);
    let stream = device.stream()?;
    let elements = Buffer::new(&device, BUFFER)?;
    let left = Buffer::new(&device, 4096)?;
    let (buffer, payload) = (elements.address(), left.address());
    println!("{}, {shape:?}", device.limits().name);
    println!("{:16}{:>6}{:>9}{:>9}{:>9}", "", "", "call", "host", "device");
    let engine = Engine::with_shape(device, shape);
    let mut bench = Bench { engine, buffer, payload, stream, at: 0 };
    for dtype in DType::ALL.into_iter().filter(|d| wants(1, d.name())) {
        // Numbers between 1 and 2 of every type of floats, and any integers.
        let byte = if dtype == DType::F16 { 0x3c } else { 0x3f };
        elements.fill(stream, 0..BUFFER, byte)?;
        for (op, kind) in OPS.into_iter().filter(|(op, _)| wants(0, op)) {
            if !Engine::supports(kind, dtype) {
                continue;
            }
            for log in [10, 12, 14, 16, 18, 20, 22] {
                let len = 1 << log;
                bench.call(kind, dtype, len)?;
                let mut columns = [const { Vec::new() }; 3];
                for _ in 0..ROUNDS {
                    columns[0].push(bench.call(kind, dtype, len)?);
                    let (host, busy) = bench.apart(kind, dtype, len)?;
                    columns[1].push(host);
                    columns[2].push(busy);
                }
                let name = format!("{op} {dtype}");
                let row: String = columns.map(|times| format!("{:9.2}", median(times))).concat();
                println!("{name:16}{:>6}{row}", format!("2^{log}"));
            }
        }
    }
    left.free()?;
    elements.free()
}
