//! Queries: the bits of a single reduction for any partitions, and what DataFusion's own functions
//! answer but for their rounding.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    UInt64Array,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Float64Type, Int64Type, UInt64Type};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use warpfold::{Op, Reduction};

const ROWS: usize = 30_000;

/// Columns of numbers, some of which are missing, and of keys.
fn columns(seed: u64) -> RecordBatch {
    let mut random = fastrand::Rng::with_seed(seed);
    let wide = |random: &mut fastrand::Rng| (random.f64() - 0.5) * 2f64.powi(random.i32(-40..40));
    let x: Float64Array =
        (0..ROWS).map(|_| random.u8(..).ge(&9).then(|| wide(&mut random))).collect();
    let tame: Float64Array = (0..ROWS).map(|_| Some(random.f64())).collect();
    let short: Float32Array = (0..ROWS).map(|_| Some(random.f32() * 3.0 - 1.0)).collect();
    let whole: Int32Array = (0..ROWS).map(|_| Some(random.i32(..))).collect();
    let few: Int64Array = (0..ROWS).map(|_| Some(random.i64(0..7))).collect();
    let many: Int64Array = (0..ROWS).map(|_| Some(random.i64(0..9_000))).collect();
    let arrays: [(&str, ArrayRef); 6] = [
        ("x", Arc::new(x)),
        ("tame", Arc::new(tame)),
        ("short", Arc::new(short)),
        ("whole", Arc::new(whole)),
        ("few", Arc::new(few)),
        ("many", Arc::new(many)),
    ];
    RecordBatch::try_from_iter(arrays).unwrap()
}

/// A table that is cut into batches of drawn lengths, spread over partitions.
fn context(data: &RecordBatch, partitions: usize, config: SessionConfig) -> SessionContext {
    let mut context = SessionContext::new_with_config(config.with_target_partitions(partitions));
    warpfold_datafusion::register(&mut context).unwrap();
    let mut random = fastrand::Rng::with_seed(partitions as u64);
    let mut parts = vec![Vec::new(); partitions];
    let mut from = 0;
    while from < data.num_rows() {
        let len = random.usize(1..2_000).min(data.num_rows() - from);
        parts[random.usize(0..partitions)].push(data.slice(from, len));
        from += len;
    }
    let table = MemTable::try_new(data.schema(), parts).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    context
}

fn ask(context: &SessionContext, query: &str) -> Result<RecordBatch> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let frame = context.sql(query).await?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        Ok(concat_batches(&schema, &frame.collect().await?)?)
    })
}

const EXACT: [(&str, Op, u64); 8] = [
    ("exact_sum", Op::Sum, 0),
    ("exact_avg", Op::Mean, 0),
    ("exact_var", Op::Var, 1),
    ("exact_var_pop", Op::Var, 0),
    ("exact_stddev", Op::Std, 1),
    ("exact_norm1", Op::Norm1, 0),
    ("exact_norm2", Op::Norm2, 0),
    ("exact_logsumexp", Op::LogSumExp, 0),
];

fn listed(column: &str) -> String {
    EXACT.map(|(name, ..)| format!("{name}({column})")).join(", ")
}

#[test]
fn whole_columns_have_the_bits_of_a_single_reduction() {
    let data = columns(1);
    for partitions in [1, 2, 16] {
        let context = context(&data, partitions, SessionConfig::new());
        let x: Vec<f64> = data["x"].as_primitive::<Float64Type>().iter().flatten().collect();
        let found = ask(&context, &format!("SELECT {} FROM t", listed("x"))).unwrap();
        for (i, (name, op, ddof)) in EXACT.into_iter().enumerate() {
            let expected = Reduction::of(op).ddof(ddof).run(&x).unwrap().number::<f64>(op).unwrap();
            let found = found.column(i).as_primitive::<Float64Type>().value(0);
            assert_eq!(found.to_bits(), expected.to_bits(), "{name} by {partitions}");
        }
    }
}

#[test]
fn groups_have_the_bits_of_each_alone() {
    let data = columns(2);
    let mut eager = SessionConfig::new();
    // Partial states are not worth it: each row becomes a state.
    let options = &mut eager.options_mut().execution;
    options.skip_partial_aggregation_probe_rows_threshold = 10;
    options.skip_partial_aggregation_probe_ratio_threshold = 0.01;
    for (key, partitions, config) in [
        ("few", 1, SessionConfig::new()),
        ("few", 16, SessionConfig::new()),
        ("many", 1, SessionConfig::new()),
        ("many", 16, SessionConfig::new()),
        ("many", 16, eager),
    ] {
        let context = context(&data, partitions, config);
        let query = format!("SELECT {key}, {} FROM t GROUP BY {key} ORDER BY {key}", listed("x"));
        let found = ask(&context, &query).unwrap();
        let keys = data[key].as_primitive::<Int64Type>();
        let x = data["x"].as_primitive::<Float64Type>();
        let named = found.column(0).as_primitive::<Int64Type>().values();
        for (row, named) in named.iter().enumerate().step_by(if key == "many" { 97 } else { 1 }) {
            let own = x.iter().zip(keys).filter(|(_, key)| *key == Some(*named));
            let own: Vec<f64> = own.filter_map(|(x, _)| x).collect();
            for (i, (name, op, ddof)) in EXACT.into_iter().enumerate() {
                let found = found.column(i + 1).as_primitive::<Float64Type>();
                if own.len() as u64 <= ddof {
                    assert!(found.is_null(row), "{name} of {own:?}");
                    continue;
                }
                let expected = Reduction::of(op).ddof(ddof).run(&own).unwrap();
                let expected = expected.number::<f64>(op).unwrap();
                assert_eq!(
                    found.value(row).to_bits(),
                    expected.to_bits(),
                    "{name} by {partitions}"
                );
            }
        }
    }
}

/// On data that their sums do not lose.
#[test]
fn datafusion_s_own_functions_answer_nearly_the_same() {
    let data = columns(3);
    let context = context(&data, 3, SessionConfig::new());
    let names = ["sum", "avg", "var", "var_pop", "stddev", "stddev_pop"];
    for column in ["tame", "cast(whole as double)", "cast(short as double)"] {
        for filter in ["", "FILTER (WHERE few < 3)"] {
            for by in ["", "GROUP BY few ORDER BY few"] {
                let pairs =
                    names.map(|n| format!("{n}({column}) {filter}, exact_{n}({column}) {filter}"));
                let found =
                    ask(&context, &format!("SELECT {} FROM t {by}", pairs.join(", "))).unwrap();
                assert_eq!(found.num_rows(), if by.is_empty() { 1 } else { 7 });
                for (i, name) in names.into_iter().enumerate() {
                    let [own, exact] = [2 * i, 2 * i + 1]
                        .map(|i| found.column(i).as_primitive::<Float64Type>().clone());
                    for (own, exact) in own.iter().zip(&exact) {
                        match (own, exact) {
                            (Some(own), Some(exact)) => {
                                let off = (own - exact).abs() / exact.abs().max(1.0);
                                assert!(off < 1e-9, "{name} of {column}: {own} {exact}");
                            }
                            (own, exact) => assert_eq!(own, exact, "{name} of {column}"),
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn sums_do_not_lose_what_floats_do() {
    let context = context(&columns(4), 2, SessionConfig::new());
    let rows = "(VALUES (1e16), (1.0), (-1e16)) AS t(x)";
    let found = ask(&context, &format!("SELECT exact_sum(x) FROM {rows}")).unwrap();
    assert_eq!(found.column(0).as_primitive::<Float64Type>().value(0), 1.0);
}

#[test]
fn what_has_no_answer_is_missing() {
    let data = columns(5);
    let context = context(&data, 4, SessionConfig::new());
    let none = ask(&context, &format!("SELECT {} FROM t WHERE few > 100", listed("x"))).unwrap();
    assert!(none.columns().iter().all(|column| column.is_null(0)));
    let query = "SELECT few, exact_sum(x) FILTER (WHERE few = 2), exact_var(x) FILTER (WHERE few = 2) FROM t GROUP BY few ORDER BY few";
    let some = ask(&context, query).unwrap();
    for row in 0..some.num_rows() {
        assert_eq!(some.column(1).is_valid(row), row == 2);
        assert_eq!(some.column(2).is_valid(row), row == 2);
    }
    let one =
        "SELECT exact_var(column1), exact_var_pop(column1), exact_sum(NULL) FROM (VALUES (2.5))";
    let one = ask(&context, one).unwrap();
    assert!(one.column(0).is_null(0) && one.column(2).is_null(0));
    assert_eq!(one.column(1).as_primitive::<Float64Type>().value(0), 0.0);
}

#[test]
fn integers_are_exact_or_an_error() {
    let context = context(&columns(6), 3, SessionConfig::new());
    let query = "SELECT sum(whole), exact_sum(whole), exact_sum(arrow_cast(few, 'UInt64')) FROM t";
    let found = ask(&context, query).unwrap();
    let sum = |i: usize| found.column(i).as_primitive::<Int64Type>().value(0);
    assert_eq!(sum(0), sum(1));
    assert_eq!(found.column(2).as_primitive::<UInt64Type>().len(), 1);
    let large: Int64Array = vec![i64::MAX; 3].into();
    let unsigned: UInt64Array = vec![1u64, 2, 3].into();
    let arrays: [(&str, ArrayRef); 2] = [("l", Arc::new(large)), ("u", Arc::new(unsigned))];
    let batch = RecordBatch::try_from_iter(arrays).unwrap();
    context.register_batch("large", batch).unwrap();
    for query in ["SELECT exact_sum(l) FROM large", "SELECT exact_sum(l) FROM large GROUP BY u % 1"]
    {
        let error = ask(&context, query).unwrap_err().to_string();
        assert!(error.contains("27670116110564327421"), "{error}");
    }
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let context = context(&columns(7), 2, SessionConfig::new());
    for (query, told) in [
        ("SELECT exact_sum(DISTINCT x), exact_sum(tame) FROM t", "DISTINCT"),
        ("SELECT exact_sum('text') FROM t", "takes one column of numbers"),
        ("SELECT exact_sum(x, x) FROM t", "takes one column of numbers"),
    ] {
        let error = ask(&context, query).unwrap_err().to_string();
        assert!(error.contains(told), "{query}: {error}");
    }
}

/// Keys in order: finished groups are emitted while others begin.
#[test]
fn groups_in_order_are_emitted_early() {
    let context = context(&columns(8), 1, SessionConfig::new());
    let query = "SELECT few, many, exact_sum(x) AS s FROM (SELECT * FROM t ORDER BY few) GROUP BY few, many ORDER BY few, many";
    let ordered = ask(&context, query).unwrap();
    let query = "SELECT few, many, exact_sum(x) AS s FROM t GROUP BY few, many ORDER BY few, many";
    assert_eq!(ordered, ask(&context, query).unwrap());
}
