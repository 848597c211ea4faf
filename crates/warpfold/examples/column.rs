//! An Arrow column with nulls: rows without a value are left out, and count as
//! positions.
//!
//! `cargo run -p warpfold --example column --features arrow`

use arrow_array::{ArrayRef, Float64Array, StringArray};
use std::sync::Arc;
use warpfold::{Op, Reduction, Rules};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prices = Float64Array::from(vec![Some(0.1), None, Some(0.2), Some(0.3), None]);

    let question = Reduction::new([Op::Sum, Op::Count, Op::ArgMax]);
    let answer = question.run(&prices)?;
    println!("{answer}");
    assert_eq!(answer.number::<f64>(Op::Sum), Some(0.6));
    assert_eq!(answer.number::<u64>(Op::ArgMax), Some(3));

    // A state knows how many rows it left out.
    let state = question.partial(&prices, 0)?;
    println!("{} of {} rows have no value", state.missing(), prices.len());
    assert_eq!(state.finish(&Rules::default())?, answer);

    // The columns of a batch, whose types are known at run time.
    let columns: [ArrayRef; 2] =
        [Arc::new(prices), Arc::new(StringArray::from(vec!["a", "b", "c", "d", "e"]))];
    for column in &columns {
        match Reduction::of(Op::Mean).run(column) {
            Ok(mean) => println!("mean {mean}"),
            Err(error) => println!("{error}: {}", error.hint().unwrap_or_default()),
        }
    }
    Ok(())
}
