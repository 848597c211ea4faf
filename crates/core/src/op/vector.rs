//! States as vectors of integers that add up.

use super::payload::damaged;
use super::{AnyState, Kind};
use crate::element::Element;
use crate::error::Result;
use crate::exact::format::Format;
use crate::{DType, with_element};

/// The bits of a limb, and of a digit: sums of 2^15 digits fit an `i64`, and three limbs are two digits.
const LIMB: u32 = 32;
const DIGIT: u32 = 48;

/// How many limbs each accumulator has; `None` for states that do not add up.
fn accumulators(kind: Kind, dtype: DType) -> Option<Vec<usize>> {
    let (sum, product) = with_element!(dtype, T => {
        (<<T as Element>::Sum as Format>::LIMBS, <<T as Element>::Dot as Format>::LIMBS)
    });
    Some(match kind {
        Kind::Sum | Kind::AbsSum => vec![sum],
        Kind::SquareSum | Kind::Dot => vec![product],
        Kind::Moments => vec![sum, product],
        Kind::Counts => vec![],
        _ => return None,
    })
}

fn counters(kind: Kind) -> usize {
    if kind == Kind::Counts { 3 } else { 4 }
}

/// How many digits have the bits of limbs. The top ones are whole words.
fn digits(limbs: usize) -> usize {
    (limbs - 1).saturating_mul(LIMB as usize).div_ceil(DIGIT as usize) + 1
}

/// The number that words of `from` bits each stand for, as `len` words of `to` bits. All but the top
/// one are brought into `[0, 2^to)`. `None` if the top one leaves an `i64`.
fn recoded(words: &[i64], from: u32, to: u32, len: usize) -> Option<Vec<i64>> {
    let mut made = Vec::with_capacity(len);
    let (mut rest, mut bits) = (0i128, 0);
    for &word in words {
        // No more than `to` bits wait, so that nothing is shifted out.
        rest += i128::from(word) << bits;
        bits += from;
        while bits >= to && made.len() + 1 < len {
            made.push((rest & ((1 << to) - 1)) as i64);
            rest >>= to;
            bits -= to;
        }
    }
    while made.len() + 1 < len {
        made.push((rest & ((1 << to) - 1)) as i64);
        rest >>= to;
    }
    made.push(i64::try_from(rest).ok()?);
    Some(made)
}

impl AnyState {
    /// The most vectors whose elementwise sum is a vector again.
    pub const MOST_VECTORS: usize = 1 << (63 - DIGIT);

    /// How many integers a state's vector has; `None` for states that do not add up.
    #[must_use]
    pub fn vector_len(kind: Kind, dtype: DType) -> Option<usize> {
        let accumulators = accumulators(kind, dtype)?;
        Some(counters(kind) + accumulators.into_iter().map(digits).sum::<usize>())
    }

    /// The state as integers: the elementwise sum of the vectors of up to
    /// [`MOST_VECTORS`](Self::MOST_VECTORS) states is a vector of their merged state. `None` for states
    /// that do not add up: extremes, bits, products and sums of exponentials.
    ///
    /// The counters come first, then the fixed-point numbers in digits of 48 bits, lowest first.
    ///
    /// ```
    /// use warpfold_core::op::{AnyState, Kind};
    /// use warpfold_core::DType;
    ///
    /// let bytes = |dtype| AnyState::vector_len(Kind::Sum, dtype).map(|len| 8 * len);
    /// assert_eq!((bytes(DType::F64), bytes(DType::F32)), (Some(392), Some(88)));
    /// ```
    #[must_use]
    pub fn to_vector(&self) -> Option<Vec<i64>> {
        if self.is_wide() {
            return None;
        }
        let accumulators = accumulators(self.kind(), self.dtype())?;
        let payload = self.payload();
        let words: Vec<i64> =
            payload.as_chunks::<8>().0.iter().map(|&word| i64::from_le_bytes(word)).collect();
        let counters = counters(self.kind());
        let first = accumulators.first().copied().unwrap_or(0);
        // Those of a second accumulator follow from the first's.
        let mut vector = words[first..first + counters].to_vec();
        let mut from = 0;
        for limbs in accumulators {
            vector.extend(recoded(&words[from..from + limbs], LIMB, DIGIT, digits(limbs))?);
            from += limbs + counters;
        }
        Some(vector)
    }

    /// The state of a vector, or of a sum of vectors.
    ///
    /// # Errors
    /// [`DamagedState`](crate::Error::DamagedState) for integers that are not those of a state of this kind and type.
    pub fn from_vector(kind: Kind, dtype: DType, vector: &[i64]) -> Result<AnyState> {
        let accumulators = accumulators(kind, dtype).ok_or_else(|| damaged("it is no vector"))?;
        if Some(vector.len()) != Self::vector_len(kind, dtype) {
            return Err(damaged("its vector has another length"));
        }
        let (counters, mut rest) = vector.split_at(counters(kind));
        let mut words = if kind == Kind::Counts { counters.to_vec() } else { Vec::new() };
        for (i, limbs) in accumulators.into_iter().enumerate() {
            let (number, behind) = rest.split_at(digits(limbs));
            let number = recoded(number, DIGIT, LIMB, limbs);
            words.extend(number.ok_or_else(|| damaged("its vector stands for no sum"))?);
            match *counters {
                // All infinities have positive squares.
                [count, nans, up, down] if i > 0 => {
                    words.extend([count, nans, up.wrapping_add(down), 0]);
                }
                _ => words.extend(counters),
            }
            rest = behind;
        }
        let payload: Vec<u8> = words.into_iter().flat_map(i64::to_le_bytes).collect();
        AnyState::from_payload(kind, dtype, &payload)
    }
}
