//! What is said of many measurements.

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    let n = samples.len();
    match n {
        0 => f64::NAN,
        _ if n % 2 == 1 => samples[n / 2],
        _ => (samples[n / 2 - 1] + samples[n / 2]) / 2.0,
    }
}

/// The quartiles: half of the samples lie between them, and a quarter on each
/// side. Nearest ranks, so that both were measured.
pub(crate) fn quartiles(samples: &mut [f64]) -> (f64, f64) {
    samples.sort_by(f64::total_cmp);
    let at = |rank: usize| samples.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN);
    let n = samples.len();
    (at(n.div_ceil(4)), at((3 * n).div_ceil(4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_even_counts_lie_between() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn half_of_the_samples_lie_between_the_quartiles() {
        assert_eq!(quartiles(&mut [4.0, 1.0, 3.0, 2.0]), (1.0, 3.0));
        let mut many: Vec<f64> = (1..=25).rev().map(f64::from).collect();
        assert_eq!(quartiles(&mut many), (7.0, 19.0));
        assert_eq!(quartiles(&mut [5.0]), (5.0, 5.0));
        assert!(quartiles(&mut []).0.is_nan());
    }
}
