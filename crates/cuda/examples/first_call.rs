//! How long the first call of a process takes on device 0, in one line of JSON for
//! `benches/gpu.py`: the seconds to open the device, and from then on until the
//! first sum is on the host.

use std::sync::Arc;
use std::time::Instant;
use warpfold_core::DType;
use warpfold_core::op::Kind;
use warpfold_cuda::engine::Engine;
use warpfold_cuda::{Driver, Result, Stream};

fn main() -> Result<()> {
    let items: Vec<u8> = (0..1u32 << 16).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let begin = Instant::now();
    let device = Arc::new(Driver::open(0)?);
    let opening = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let state = Engine::new(device).reduce_host(Kind::Sum, DType::F32, &items, Stream::DEFAULT)?;
    let seconds = begin.elapsed().as_secs_f64();
    assert!(!state.payload().is_empty());
    println!(
        "{{\"peer\": \"warpfold\", \"op\": \"first call\", \"opening\": {opening:e}, \
         \"seconds\": {seconds:e}}}"
    );
    Ok(())
}
