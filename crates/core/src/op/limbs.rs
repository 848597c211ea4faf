//! Integers in limbs of 64 bits, the lowest first, which wrap: their sums are the same
//! in any order.

/// Adds `value 2^shift`.
pub(super) fn add_shifted(limbs: &mut [u64], value: i64, shift: u32) {
    add_wide(limbs, i128::from(value) << (shift % 64), shift / 64);
}

/// Adds `value 2^(64 from)`.
pub(super) fn add_wide(limbs: &mut [u64], value: i128, from: u32) {
    let sign = (value >> 127) as u64;
    let parts = [value as u64, (value >> 64) as u64].into_iter().chain(core::iter::repeat(sign));
    let mut carry = false;
    for (limb, part) in limbs.iter_mut().skip(from as usize).zip(parts) {
        let (sum, first) = limb.overflowing_add(part);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        (*limb, carry) = (sum, first | second);
    }
}

/// Adds one integer to another.
pub(super) fn add_limbs(limbs: &mut [u64], other: &[u64]) {
    let mut carry = false;
    for (limb, &part) in limbs.iter_mut().zip(other) {
        let (sum, first) = limb.overflowing_add(part);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        (*limb, carry) = (sum, first | second);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use num_bigint::BigInt;

    pub(in super::super) fn limbs(value: &BigInt) -> [u64; 4] {
        let modulus: BigInt = BigInt::from(1) << 256;
        let wrapped: BigInt = ((value % &modulus) + &modulus) % &modulus;
        let mut digits = wrapped.to_u64_digits().1;
        digits.resize(4, 0);
        digits.try_into().unwrap()
    }

    #[test]
    fn integers_are_added_at_any_place() {
        let values = [0, 1, -1, 5 << 40, i64::MAX, i64::MIN, -(3 << 50)];
        let mut total = [0u64; 4];
        let mut expected = BigInt::from(0);
        for shift in [0, 1, 51, 63, 64, 65, 102, 127, 128, 190] {
            for value in values {
                add_shifted(&mut total, value, shift);
                expected += BigInt::from(value) << shift;
                assert_eq!(total, limbs(&expected), "{value} {shift}");
                let wide = i128::from(value) << 60 | 7;
                add_wide(&mut total, wide, shift / 64);
                expected += BigInt::from(wide) << (shift / 64 * 64);
                assert_eq!(total, limbs(&expected), "{value} {shift}");
                let mut twice = total;
                add_limbs(&mut twice, &total);
                assert_eq!(twice, limbs(&(&expected * 2)));
            }
        }
    }
}
