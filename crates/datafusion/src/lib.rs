//! Exact aggregates for DataFusion: the true value, rounded once, whatever the partitions, the
//! order of the rows and the number of executors.
//!
//! ```
//! use datafusion::prelude::SessionContext;
//!
//! # fn main() -> datafusion::error::Result<()> {
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let mut context = SessionContext::new();
//! warpfold_datafusion::register(&mut context)?;
//! let query = "SELECT exact_sum(x) FROM (VALUES (1e16), (1.0), (-1e16)) AS t(x)";
//! let batches = context.sql(query).await?.collect().await?;
//! let sums = batches[0].column(0);
//! assert_eq!(format!("{sums:?}").matches("1.0").count(), 1);
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! Rows without a value are left out. A group without any has no answer, and neither has a sample
//! variance of one value. States are bytes, which executors merge; see [`functions`].

mod arrays;
mod function;
mod grouped;
mod whole;

use datafusion_common::Result;
use datafusion_expr::AggregateUDF;
use datafusion_expr::registry::FunctionRegistry;
use function::Exact;
use std::sync::Arc;
use warpfold_core::Op;

/// The functions: name, operation, and what variances subtract from the count.
const FUNCTIONS: [(&str, Op, u64); 10] = [
    ("exact_sum", Op::Sum, 0),
    ("exact_avg", Op::Mean, 0),
    ("exact_var", Op::Var, 1),
    ("exact_var_pop", Op::Var, 0),
    ("exact_stddev", Op::Std, 1),
    ("exact_stddev_pop", Op::Std, 0),
    ("exact_sumsq", Op::SumSq, 0),
    ("exact_norm1", Op::Norm1, 0),
    ("exact_norm2", Op::Norm2, 0),
    ("exact_logsumexp", Op::LogSumExp, 0),
];

/// The functions, over floats of 16, 32 and 64 bits and integers of 8 to 64:
///
/// | function | answer |
/// |---|---|
/// | `exact_sum`, `exact_avg` | sum; mean |
/// | `exact_var`, `exact_stddev` | variance of a sample, and its root |
/// | `exact_var_pop`, `exact_stddev_pop` | variance of a population, and its root |
/// | `exact_sumsq`, `exact_norm1`, `exact_norm2` | sum of squares; sum of magnitudes; root of the sum of squares |
/// | `exact_logsumexp` | logarithm of the sum of exponentials |
///
/// Answers over floats are of their type. Of integers, sums are of 64 bits, and one that does not
/// fit is an error; means, variances and roots are of float64. `DISTINCT` is answered where DataFusion
/// groups by the values first, as it does for a single aggregate, and an error elsewhere.
#[must_use]
pub fn functions() -> Vec<Arc<AggregateUDF>> {
    let function =
        |(name, op, ddof)| Arc::new(AggregateUDF::new_from_impl(Exact::new(name, op, ddof)));
    FUNCTIONS.into_iter().map(function).collect()
}

/// Adds the [`functions`] to a context, or to whatever keeps functions.
///
/// # Errors
/// What the registry says.
pub fn register(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for function in functions() {
        registry.register_udaf(function)?;
    }
    Ok(())
}
