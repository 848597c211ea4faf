//! Threads that reduce a part each: states that merge in any order, and travel as
//! bytes.
//!
//! `cargo run -p warpfold --example threads`

use std::sync::mpsc;
use std::thread;
use warpfold::{Accumulator, Op, Partial, Reduction};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data: Vec<f32> = (0..60_000u16).map(|i| f32::from(i) * 0.1).collect();
    let question = Reduction::new([Op::Var, Op::Max, Op::ArgMax]);
    let whole = question.run(&data)?;

    // Each thread makes a state of its part, and sends it as bytes: over a channel
    // here, over a network elsewhere.
    const PART: usize = 7001;
    let (sender, parts) = mpsc::channel();
    thread::scope(|scope| {
        for (i, part) in data.chunks(PART).enumerate() {
            let (sender, question) = (sender.clone(), question.clone());
            scope.spawn(move || {
                let state = question.partial(part, (i * PART) as u64);
                // Nobody listens any more only if the whole has failed.
                let _ = sender.send(state.map(|state| state.to_bytes()));
            });
        }
    });
    drop(sender);

    // They come in any order. The bits are those of one thread.
    let mut all: Accumulator<f32> = question.accumulator()?;
    for bytes in parts {
        all.merge(&Partial::from_bytes(&bytes?)?.try_into()?)?;
    }
    println!("{}", all.finish()?);
    assert_eq!(all.finish()?, whole);
    Ok(())
}
