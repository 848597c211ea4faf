//! Warnings about measurements.

use crate::statistics::{far_out, median, quartiles};
use core::fmt;

/// Why a time may be misleading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warning {
    /// Some intervals are far from the others.
    Outliers {
        /// How many lie far out.
        count: usize,
        /// How many there are.
        of: usize,
    },
    /// The intervals vary widely.
    Spread {
        /// The distance of the quartiles as a part of the median.
        part: f64,
    },
    /// Later intervals took another time than earlier ones.
    Drift {
        /// The median of the last third over that of the first.
        ratio: f64,
    },
    /// The input was read from the L2 cache.
    InL2,
}

/// Quartiles further apart than this part of the median cause a warning.
const MOST_SPREAD: f64 = 0.05;

/// Thirds that differ by more than this part cause a warning.
const MOST_DRIFT: f64 = 0.05;

impl Warning {
    /// Warnings about these times, in seconds and in the order in which they were
    /// measured.
    #[must_use]
    pub fn of(times: &[f64], in_l2: bool) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if times.is_empty() {
            return warnings;
        }
        let mut sorted = times.to_vec();
        let count = far_out(&mut sorted);
        if count > 0 {
            warnings.push(Warning::Outliers { count, of: times.len() });
        }
        let (low, high) = quartiles(&mut sorted);
        let part = (high - low) / median(&mut sorted);
        if part > MOST_SPREAD {
            warnings.push(Warning::Spread { part });
        }
        let third = times.len() / 3;
        if third >= 3 {
            let ratio = median(&mut times[times.len() - third..].to_vec())
                / median(&mut times[..third].to_vec());
            if (ratio - 1.0).abs() > MOST_DRIFT {
                warnings.push(Warning::Drift { ratio });
            }
        }
        if in_l2 {
            warnings.push(Warning::InL2);
        }
        warnings
    }

    /// What can be done.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Warning::Outliers { .. } => {
                "check with nvidia-smi whether another process uses the device"
            }
            Warning::Spread { .. } => {
                "use more elements, which vary less, or lock the clock with nvidia-smi -lgc"
            }
            Warning::Drift { .. } => {
                "the clock has not settled: run again, or lock it with nvidia-smi -lgc"
            }
            Warning::InL2 => "use more elements, which do not fit the cache",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Outliers { count, of } => {
                write!(f, "{count} of {of} intervals are far from the others")
            }
            Warning::Spread { part } => {
                write!(f, "the quartiles are {:.0}% of the median apart", 100.0 * part)
            }
            Warning::Drift { ratio } if *ratio > 1.0 => {
                write!(f, "later intervals took {:.0}% longer", 100.0 * (ratio - 1.0))
            }
            Warning::Drift { ratio } => {
                write!(f, "later intervals took {:.0}% less", 100.0 * (1.0 - ratio))
            }
            Warning::InL2 => f.write_str("the input was read from the L2 cache"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_times_are_not_suspicious() {
        assert!(Warning::of(&[1.0; 25], false).is_empty());
        assert!(Warning::of(&[], true).is_empty());
        let steady: Vec<f64> = (0..25).map(|i| 1.0 + f64::from(i % 5) / 1000.0).collect();
        assert!(Warning::of(&steady, false).is_empty());
    }

    #[test]
    fn each_suspicion_is_told_with_its_figure() {
        let mut times = vec![1.0; 25];
        times[12] = 9.0;
        assert_eq!(Warning::of(&times, false), [Warning::Outliers { count: 1, of: 25 }]);
        let wild: Vec<f64> = (0..25).map(|i| f64::from(1 + i % 5)).collect();
        let Warning::Spread { part } = Warning::of(&wild, false)[0] else { panic!("{wild:?}") };
        assert!((part - 2.0 / 3.0).abs() < 1e-12);
        let slower: Vec<f64> = (0..25).map(|i| 1.0 + f64::from(i / 10) / 5.0).collect();
        let found = Warning::of(&slower, true);
        assert!(found.iter().any(|w| matches!(w, Warning::Drift { ratio } if *ratio == 1.4)));
        assert_eq!(found.last(), Some(&Warning::InL2));
        assert!(found.iter().all(|w| !w.hint().is_empty() && !w.to_string().is_empty()));
    }
}
