//! A vector: sums that lose nothing, and several answers in one pass.
//!
//! `cargo run -p warpfold --example vector`

use warpfold::{ExactSum, Op, Reduction};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let measured: Vec<f64> = vec![1e16, 1.0, -1e16, 0.1, 0.2, 0.3];

    // Plain adds lose the 1 and round at every step.
    let plain: f64 = measured.iter().sum();
    let exact = warpfold::sum(&measured);
    println!("plain {plain}, exact {exact}");
    assert_eq!(exact, 1.6);

    // Iterators, too: no vector is made.
    let positive = measured.iter().filter(|&&x| x > 0.0 && x < 1.0).exact_mean();
    println!("mean of those between 0 and 1: {positive}");
    assert_eq!(positive, 0.2);

    // Any number of operations in one pass.
    let question = Reduction::new([Op::Mean, Op::Std, Op::MinMax, Op::ArgMax]);
    let answer = question.run(&measured)?;
    println!("{answer}");
    assert_eq!(answer.number::<usize>(Op::ArgMax), Some(0));

    // Operations have names.
    let named: Op = "norm-inf".parse()?;
    println!("{named}: {}", Reduction::of(named).run(&measured)?);
    Ok(())
}
