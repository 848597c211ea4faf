//! Searching limbs: in long sums eight at a time, as most of them are alike.

/// Up to this many limbs are looked at one by one.
pub(super) const SHORT: usize = 20;

/// The index of the lowest limb that is not 0.
#[inline]
pub(super) fn first_nonzero(limbs: &[i64]) -> Option<usize> {
    if limbs.len() <= SHORT {
        return limbs.iter().position(|&l| l != 0);
    }
    let chunk = limbs.chunks(8).position(|c| c.iter().fold(0, |any, l| any | l) != 0)?;
    limbs[8 * chunk..].iter().position(|&l| l != 0).map(|i| 8 * chunk + i)
}

/// The index of the highest limb that is not `digit`.
#[inline]
pub(super) fn last_other(limbs: &[i64], digit: i64) -> Option<usize> {
    if limbs.len() <= SHORT {
        return limbs.iter().rposition(|&l| l != digit);
    }
    let differs = |c: &[i64]| c.iter().fold(0, |any, l| any | (l ^ digit)) != 0;
    let chunk = limbs.rchunks(8).position(differs)?;
    limbs[..limbs.len() - 8 * chunk].iter().rposition(|&l| l != digit)
}
