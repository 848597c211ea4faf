//! Statistics of measurements.

/// The middle one, or the mean of the two in the middle.
#[must_use]
pub fn median(samples: &mut [f64]) -> f64 {
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
#[must_use]
pub fn quartiles(samples: &mut [f64]) -> (f64, f64) {
    samples.sort_by(f64::total_cmp);
    let at = |rank: usize| samples.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN);
    let n = samples.len();
    (at(n.div_ceil(4)), at((3 * n).div_ceil(4)))
}

/// How many samples lie far out: more than three times as far beyond the quartiles
/// as these are apart (Tukey, "Exploratory Data Analysis", 1977).
#[must_use]
pub fn far_out(samples: &mut [f64]) -> usize {
    let (low, high) = quartiles(samples);
    let fence = 3.0 * (high - low);
    samples.iter().filter(|x| **x < low - fence || **x > high + fence).count()
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

    #[test]
    fn far_out_is_three_times_the_distance_of_the_quartiles() {
        let mut many: Vec<f64> = (1..=25).map(f64::from).collect();
        assert_eq!(far_out(&mut many), 0);
        // The quartiles are 7 and 19: fences at -29 and 55.
        many[24] = 55.0;
        assert_eq!(far_out(&mut many), 0);
        many[24] = 55.5;
        many[0] = -30.0;
        assert_eq!(far_out(&mut many), 2);
        assert_eq!((far_out(&mut [1.0; 20]), far_out(&mut [])), (0, 0));
    }
}
