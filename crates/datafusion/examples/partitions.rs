//! The bits of aggregates over numbers in a file, cut into partitions: what `tests/everywhere/check.py`
//! compares.
//!
//! ```text
//! cargo run --example partitions f64|f32 FILE PARTITIONS
//! ```

use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_common::arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch};
use datafusion_common::arrow::datatypes::{Float32Type, Float64Type, Schema};
use datafusion_common::{Result, exec_datafusion_err};
use std::sync::Arc;

/// The operations as the command calls them, and the functions.
const FUNCTIONS: [(&str, &str); 4] = [
    ("sum", "exact_sum"),
    ("mean", "exact_avg"),
    ("var", "exact_var_pop"),
    ("norm2", "exact_norm2"),
];

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dtype, file, partitions] = &words[..] else {
        return Err(exec_datafusion_err!("usage: partitions f64|f32 FILE PARTITIONS"));
    };
    let partitions: usize =
        partitions.parse().map_err(|_| exec_datafusion_err!("PARTITIONS is a number"))?;
    let bytes = std::fs::read(file)?;
    let column: ArrayRef = if dtype == "f32" {
        let (items, _) = bytes.as_chunks::<4>();
        Arc::new(items.iter().map(|&item| f32::from_le_bytes(item)).collect::<Float32Array>())
    } else {
        let (items, _) = bytes.as_chunks::<8>();
        Arc::new(items.iter().map(|&item| f64::from_le_bytes(item)).collect::<Float64Array>())
    };
    let batch = RecordBatch::try_from_iter([("x", column)])?;
    let cut = |i: usize| batch.num_rows() * i / partitions;
    let parts = (0..partitions).map(|i| vec![batch.slice(cut(i), cut(i + 1) - cut(i))]).collect();
    let schema: Arc<Schema> = batch.schema();
    let config = SessionConfig::new().with_target_partitions(partitions);
    let mut context = SessionContext::new_with_config(config);
    context.register_table("t", Arc::new(MemTable::try_new(schema, parts)?))?;
    warpfold_datafusion::register(&mut context)?;
    let asked: Vec<String> =
        FUNCTIONS.iter().map(|(_, function)| format!("{function}(x)")).collect();
    let query = format!("SELECT {} FROM t", asked.join(", "));
    let runtime = tokio::runtime::Runtime::new()?;
    let found = runtime.block_on(async { context.sql(&query).await?.collect().await })?;
    for ((op, _), answer) in FUNCTIONS.iter().zip(found[0].columns()) {
        if dtype == "f32" {
            println!("{op}\t0x{:08x}", answer.as_primitive::<Float32Type>().value(0).to_bits());
        } else {
            println!("{op}\t0x{:016x}", answer.as_primitive::<Float64Type>().value(0).to_bits());
        }
    }
    Ok(())
}
