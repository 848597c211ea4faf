//! Decimals: integers of 64 bits, of the smallest unit that the column has.

/// What to do about decimals that are not read.
pub(crate) const DECIMALS: &str = "decimals are read with 0 to 38 digits behind the point, and of at \
    most 128 bits; cast the column to such, or to double";

/// What to do about a decimal that is too large.
pub(crate) const LARGE: &str = "cast the column to fewer digits behind the point, or to double";

/// The digits behind the point, if they are as many as decimals may have.
pub(crate) fn digits(scale: i32) -> Option<u8> {
    u8::try_from(scale).ok().filter(|digits| *digits <= 38)
}

/// What is said of a decimal beyond 64 bits.
pub(crate) fn large(digits: u8) -> String {
    let most = warpfold::Unit::Decimal(digits).show(i64::MAX);
    format!(
        "a decimal is beyond {most}, the largest that is read with {digits} digits behind the point"
    )
}

/// A decimal of two's complement, the highest byte first.
pub(crate) fn of_bytes(bytes: &[u8]) -> Option<i64> {
    let (head, tail) = bytes.split_at(bytes.len().saturating_sub(8));
    let negative = bytes.first().is_some_and(|&byte| byte >= 0x80);
    let sign = if negative { 0xff } else { 0 };
    let mut wide = [sign; 8];
    wide[8 - tail.len()..].copy_from_slice(tail);
    let value = i64::from_be_bytes(wide);
    (head.iter().all(|&byte| byte == sign) && (value < 0) == negative).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_numbers_as_far_as_64_bits_go() {
        for value in
            [0, 1, -1, i128::from(i64::MAX), i128::from(i64::MIN), 1 << 63, -(1 << 64), i128::MIN]
        {
            let expected = i64::try_from(value).ok();
            assert_eq!(of_bytes(&value.to_be_bytes()), expected, "{value}");
        }
        assert_eq!(of_bytes(&[0xff, 0x7f]), Some(-129));
        assert_eq!(of_bytes(&[0x00, 0xff]), Some(255));
        assert_eq!(of_bytes(&[]), Some(0));
        assert_eq!(of_bytes(&[0, 0x80, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
