//! What is said of decimals.

/// What to do about decimals.
pub(crate) const DECIMALS: &str = "decimals are not supported; cast the column to double, or for \
    exact totals to integers of its smallest unit, in DuckDB (x * 100)::BIGINT, in Polars \
    (x * 100).cast(pl.Int64)";
