//! A slice of cudarc, reduced where it lies, on the stream that it was made on.
//!
//! `cargo run -p warpfold-cuda --example stream --features cudarc`; says so if there is no GPU.

use cudarc::driver::CudaContext;
use warpfold_core::op::{Kind, Op, Rules};
use warpfold_cuda::{Driver, SliceEngine};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // cudarc panics without a driver: this asks first.
    if let Err(error) = Driver::open(0) {
        println!("no GPU, nothing reduced: {error}");
        return Ok(());
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;

    // What a program has on the device: a million measurements around 0, and one far
    // from it.
    let mut numbers: Vec<f64> = (0..1_000_000).map(|i| f64::from(i % 1000) * 0.1 - 49.95).collect();
    numbers[123_456] = 1e16;
    let on_device = stream.clone_htod(&numbers)?;

    // Nothing is copied back but the states: a few hundred bytes each.
    let engine = SliceEngine::new(&context)?;
    let rules = Rules::default();
    let sum = engine.reduce(Kind::Sum, &on_device, &stream)?;
    println!("sum  {}", sum.finish(Op::Sum, &rules)?);
    println!("mean {}", sum.finish(Op::Mean, &rules)?);
    let places = engine.reduce(Kind::ArgExtrema, &on_device, &stream)?;
    println!("max  {} at {}", places.finish(Op::Max, &rules)?, places.finish(Op::ArgMax, &rules)?);

    // The bits are the CPU's, and states of both merge. Two halves of the slice:
    let half = engine.reduce(Kind::Sum, &on_device.slice(..500_000), &stream)?;
    let mut both = engine.reduce(Kind::Sum, &on_device.slice(500_000..), &stream)?;
    both.merge(&half)?;
    assert_eq!(both, sum);
    Ok(())
}
