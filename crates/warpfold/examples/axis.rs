//! An `ndarray` array over one of its axes, and the answer as an array.
//!
//! `cargo run -p warpfold --example axis --features ndarray`

use ndarray::{Array2, array, s};
use warpfold::{NanPolicy, Op, Reduction};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Three stations, four days; one measurement failed.
    let rain: Array2<f32> =
        array![[0.0, 1.5, 2.5, f32::NAN], [1.0, 1.0, 1.0, 1.0], [0.25, 0.5, 0.0, 0.75],];

    let question = Reduction::new([Op::Mean, Op::ArgMax]).axis(1).nan(NanPolicy::Omit);
    let answer = question.run(&rain)?;
    let means = answer.array::<f32>(Op::Mean).ok_or("means of f32 are f32")?;
    println!("mean of each station: {means}");
    assert_eq!(means, array![4.0f32 / 3.0, 1.0, 0.375].into_dyn());

    let wettest = answer.array::<u64>(Op::ArgMax).ok_or("positions are u64")?;
    println!("its wettest day: {wettest}");
    assert_eq!(wettest, array![2, 0, 3].into_dyn());

    // Any view: transposed, reversed, with steps. Nothing is copied.
    let some = rain.slice(s![1.., ..;-2]);
    let totals = Reduction::of(Op::Sum).axis(0).keepdims(true).run(some)?;
    println!("totals of the last two stations, every other day: {totals}");
    assert_eq!(totals.shape(), [1, 2]);
    Ok(())
}
