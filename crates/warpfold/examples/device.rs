//! A slice of cudarc, reduced over an axis where it lies; the answer stays on the device.
//!
//! `cargo run -p warpfold --example device --features cudarc`; says so if there is no GPU.

use cudarc::driver::CudaContext;
use warpfold::{Device, DeviceArray, DeviceArrayMut, DeviceStream, Op, Reduction};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    // cudarc panics without a driver: this asks first.
    if let Err(error) = DeviceStream::default_of(Device::Cuda(None)) {
        println!("no GPU, nothing reduced: {error}");
        return Ok(());
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;

    // What a program has on the device: 1000 rows of 256 measurements.
    let numbers: Vec<f32> = (0..256_000).map(|i| (i % 777) as f32 * 0.1).collect();
    let table = stream.clone_htod(&numbers)?;
    let mut means = stream.alloc_zeros::<f32>(1000)?;

    // The mean of each row, left on the device. Nobody waits.
    let rows = DeviceArray::of(&table, &stream)?.reshaped(&[1000, 256])?;
    let mut to = [DeviceArrayMut::of(&mut means, &stream)?];
    Reduction::of(Op::Mean).axis(1).run_into(&rows, &mut to)?;
    drop(to);

    // Any other question brings its answer to the host, with the bits of the CPU.
    let question = Reduction::new([Op::Mean, Op::ArgMax]).axis(1);
    let answer = question.run(&rows)?;
    assert_eq!(answer.slice::<f32>(Op::Mean), Some(&stream.clone_dtoh(&means)?[..]));
    println!(
        "the largest of the first row is number {:?}",
        answer.column(Op::ArgMax).and_then(|c| c.get(0))
    );

    // What comes again and again is prepared: then nothing is allocated, and a CUDA graph
    // can capture it.
    let prepared = Reduction::of(Op::Mean).axis(1).prepare(&rows)?;
    for _ in 0..3 {
        prepared.enqueue(&rows, &mut [DeviceArrayMut::of(&mut means, &stream)?])?;
    }
    prepared.check()?;

    // States of the device and of the host merge.
    let mut whole = Reduction::of(Op::Var).partial(DeviceArray::of(&table, &stream)?, 0)?;
    whole.absorb(&numbers)?;
    println!("variance of both copies: {}", whole.finish(&warpfold::Rules::default())?);
    Ok(())
}
