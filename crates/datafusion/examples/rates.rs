//! How fast the functions are, beside DataFusion's own: in queries of one partition, and alone, on
//! batches whose groups are known.
//!
//! ```text
//! cargo run --release --example rates [ROWS]
//! ```

use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_common::Result;
use datafusion_common::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use datafusion_common::arrow::datatypes::{DataType, Field, Schema};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{AggregateUDF, EmitTo};
use datafusion_functions_aggregate::average::avg_udaf;
use datafusion_functions_aggregate::stddev::stddev_udaf;
use datafusion_functions_aggregate::sum::sum_udaf;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 9;
/// None for a whole column.
const GROUPS: [usize; 4] = [0, 50, 5_000, 500_000];
/// Rows of a batch, as DataFusion cuts them.
const BATCH: usize = 8192;

fn main() -> Result<()> {
    let rows: usize =
        std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(20_000_000);
    let exact = |name: &str| {
        let mut all = warpfold_datafusion::functions().into_iter();
        all.find(|function| function.name() == name).expect("a function of the crate")
    };
    let pairs = [
        (sum_udaf(), exact("exact_sum")),
        (avg_udaf(), exact("exact_avg")),
        (stddev_udaf(), exact("exact_stddev")),
    ];
    let mut random = fastrand::Rng::with_seed(1);
    let batches: Vec<ArrayRef> = (0..rows / BATCH)
        .map(|_| Arc::new((0..BATCH).map(|_| random.f64() - 0.5).collect::<Float64Array>()) as _)
        .collect();
    println!("| function | groups | own, ms | exact, ms | of own's rate |\n|---|---|---|---|---|");
    for groups in GROUPS {
        queries(&pairs, &batches, groups, &mut random)?;
    }
    println!(
        "\nWithout the query:\n\n| function | groups | own, ms | exact, ms | of own's rate |\n|---|---|---|---|---|"
    );
    for groups in GROUPS {
        let indices: Vec<Vec<usize>> = match groups {
            0 => Vec::new(),
            most => {
                let batch = |_| (0..BATCH).map(|_| random.usize(0..most)).collect();
                (0..batches.len()).map(batch).collect()
            }
        };
        for (own, exact) in &pairs {
            let mut least = [f64::INFINITY; 2];
            for _ in 0..ROUNDS {
                for (function, least) in [own, exact].into_iter().zip(&mut least) {
                    let start = Instant::now();
                    match groups {
                        0 => whole(function, &batches)?,
                        groups => grouped(function, &batches, &indices, groups)?,
                    }
                    *least = least.min(start.elapsed().as_secs_f64() * 1e3);
                }
            }
            let ([own, exact], name) = (least, exact.name());
            println!("| {name} | {groups} | {own:.1} | {exact:.1} | {:.2} |", own / exact);
        }
    }
    Ok(())
}

/// Times queries over a table in memory, in turns.
fn queries(
    pairs: &[(Arc<AggregateUDF>, Arc<AggregateUDF>)],
    batches: &[ArrayRef],
    groups: usize,
    random: &mut fastrand::Rng,
) -> Result<()> {
    let field = |name, of| Field::new(name, of, false);
    let fields = vec![field("k", DataType::Int64), field("x", DataType::Float64)];
    let schema = Arc::new(Schema::new(fields));
    let rows = batches.iter().map(|values| {
        let keys = (0..BATCH).map(|_| random.i64(0..groups.max(1) as i64));
        let keys: ArrayRef = Arc::new(keys.collect::<Int64Array>());
        RecordBatch::try_new(Arc::clone(&schema), vec![keys, Arc::clone(values)])
    });
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let table = MemTable::try_new(Arc::clone(&schema), vec![rows])?;
    let mut context =
        SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    context.register_table("t", Arc::new(table))?;
    warpfold_datafusion::register(&mut context)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for (own, exact) in pairs {
        let mut least = [f64::INFINITY; 2];
        for _ in 0..ROUNDS {
            for (function, least) in [own, exact].into_iter().zip(&mut least) {
                let asked = match groups {
                    0 => format!("SELECT {}(x) FROM t", function.name()),
                    _ => format!("SELECT k, {}(x) FROM t GROUP BY k", function.name()),
                };
                let start = Instant::now();
                black_box(runtime.block_on(async { context.sql(&asked).await?.collect().await })?);
                *least = least.min(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        let ([own, taken], name) = (least, exact.name());
        println!("| {name} | {groups} | {own:.1} | {taken:.1} | {:.2} |", own / taken);
    }
    Ok(())
}

/// Does `work` with the arguments that a plan gives.
fn with_arguments<A>(work: impl FnOnce(AccumulatorArgs<'_>) -> Result<A>) -> Result<A> {
    let field = Arc::new(Field::new("x", DataType::Float64, true));
    let schema = Schema::new(vec![Arc::clone(&field)]);
    work(AccumulatorArgs {
        return_field: Arc::clone(&field),
        schema: &schema,
        ignore_nulls: false,
        order_bys: &[],
        is_reversed: false,
        name: "x",
        is_distinct: false,
        exprs: &[],
        expr_fields: &[field],
    })
}

fn whole(function: &AggregateUDF, batches: &[ArrayRef]) -> Result<()> {
    let mut accumulator = with_arguments(|arguments| function.accumulator(arguments))?;
    for batch in batches {
        accumulator.update_batch(std::slice::from_ref(batch))?;
    }
    black_box(accumulator.evaluate()?);
    Ok(())
}

fn grouped(
    function: &AggregateUDF,
    batches: &[ArrayRef],
    indices: &[Vec<usize>],
    groups: usize,
) -> Result<()> {
    let mut accumulator =
        with_arguments(|arguments| function.create_groups_accumulator(arguments))?;
    for (batch, indices) in batches.iter().zip(indices) {
        accumulator.update_batch(std::slice::from_ref(batch), indices, None, groups)?;
    }
    black_box(accumulator.evaluate(EmitTo::All)?);
    Ok(())
}
