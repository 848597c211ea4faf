//! Units of integers: dates, times and durations.

use core::fmt;
use warpfold_core::Op;

/// Dates, times and durations are read as the integers that the file holds. The unit
/// decides which operations make sense.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// A point on a scale with an arbitrary origin: `days since 1970-01-01`.
    Point(String),
    /// A length of time: `microseconds`.
    Length(String),
}

impl Unit {
    /// Whether the answer to `op` is the same whatever the scale and origin,
    /// or has the same unit.
    #[must_use]
    pub fn allows(&self, op: Op) -> bool {
        match op {
            Op::Count
            | Op::CountNan
            | Op::ArgMin
            | Op::ArgMax
            | Op::ArgMinMax
            | Op::Min
            | Op::Max
            | Op::MinMax
            | Op::Range
            | Op::Mean
            | Op::Std => true,
            Op::Sum | Op::Norm1 | Op::NormInf | Op::CountNonzero | Op::Any | Op::All => {
                matches!(self, Unit::Length(_))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unit::Point(text) | Unit::Length(text) => f.pad(text),
        }
    }
}

/// A unit of time, as formats with several name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg(any(feature = "arrow", feature = "parquet"))]
pub(crate) enum Tick {
    #[cfg(feature = "arrow")]
    Second,
    Milli,
    Micro,
    Nano,
}

#[cfg(any(feature = "arrow", feature = "parquet"))]
impl Tick {
    /// `us`
    #[cfg(feature = "arrow")]
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            #[cfg(feature = "arrow")]
            Tick::Second => "s",
            Tick::Milli => "ms",
            Tick::Micro => "us",
            Tick::Nano => "ns",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            #[cfg(feature = "arrow")]
            Tick::Second => "seconds",
            Tick::Milli => "milliseconds",
            Tick::Micro => "microseconds",
            Tick::Nano => "nanoseconds",
        }
    }

    /// A moment, in UTC or wherever the file does not say.
    pub(crate) fn timestamp(self, utc: bool) -> Unit {
        let zone = if utc { " UTC" } else { "" };
        Unit::Point(format!("{} since 1970-01-01{zone}", self.plural()))
    }

    /// A time of the day.
    pub(crate) fn time(self) -> Unit {
        Unit::Point(format!("{} since midnight", self.plural()))
    }

    /// A length of time.
    #[cfg(feature = "arrow")]
    pub(crate) fn duration(self) -> Unit {
        Unit::Length(self.plural().into())
    }
}

/// A date without a time.
#[cfg(any(feature = "arrow", feature = "parquet"))]
pub(crate) fn date() -> Unit {
    Unit::Point("days since 1970-01-01".into())
}

/// What to do about decimals.
#[cfg(any(feature = "arrow", feature = "parquet"))]
pub(crate) const DECIMALS: &str = "decimals are not supported; cast the column to double, or for \
    exact totals to integers of its smallest unit, in DuckDB (x * 100)::BIGINT, in Polars \
    (x * 100).cast(pl.Int64)";

#[cfg(all(test, feature = "arrow"))]
mod tests {
    use super::*;

    #[test]
    fn no_unit_is_squared_and_no_origin_is_added_up() {
        for op in Op::ALL {
            let (point, length) = (date().allows(op), Tick::Nano.duration().allows(op));
            assert!(length || !point, "{op}");
            let squared = matches!(op, Op::Var | Op::SumSq | Op::Dot | Op::Prod | Op::LogSumExp);
            assert!(!(squared && length), "{op}");
        }
        assert!(!date().allows(Op::Sum) && Tick::Milli.duration().allows(Op::Sum));
    }
}
