//! Sums of two f64, rounded once to fewer bits, by way of rounding to odd.

/// `high + low`, rounded once to f32: after rounding to odd that is right, as f64 has more than two
/// bits more (Boldo and Melquiond 2008).
#[inline(always)]
pub(crate) fn rounded_to_f32(high: f64, low: f64) -> f32 {
    sum_to_odd(high, low) as f32
}

/// `high + low`, rounded to odd.
///
/// The f64 sum `t` errs by `e`, which TwoSum gives exactly. If `e` is not 0 and `t` ends in an even
/// bit, its neighbour towards the true sum is taken. Neither overflows: sums are far below f64's end.
#[inline(always)]
pub(crate) fn sum_to_odd(high: f64, low: f64) -> f64 {
    let t = high + low;
    let v = t - high;
    to_odd(t, (high - (t - v)) + (low - v))
}

/// `t + e` rounded to odd, where `t` is it rounded to nearest.
#[inline(always)]
fn to_odd(t: f64, e: f64) -> f64 {
    let bits = t.to_bits();
    let moves = u64::from(e != 0.0) & !bits & 1;
    // Away from zero if `e` has the sign of `t`; a `t` of 0 is exact.
    let towards = u64::from((e > 0.0) != (t > 0.0));
    f64::from_bits(bits.wrapping_add(moves).wrapping_sub(2 * (moves & towards)))
}
