//! Decimals: integers of the smallest unit that the column has, of 64 bits where these suffice.

use crate::Error;

/// What to do about decimals that are not read.
pub(crate) const DECIMALS: &str = "decimals are read with 0 to 38 digits behind the point; cast the \
    column to such, or to double";

/// The error that a decimal is too large.
pub(crate) fn beyond(name: &str) -> Error {
    Error::format(name, "a decimal is beyond 128 bits").with_hint(crate::batch::LARGE)
}

/// The digits behind the point, if they are as many as decimals may have.
pub(crate) fn digits(scale: i32) -> Option<u8> {
    u8::try_from(scale).ok().filter(|digits| *digits <= 38)
}

/// A decimal of two's complement, the highest byte first; `None` beyond 128 bits.
pub(crate) fn of_bytes(bytes: &[u8]) -> Option<i128> {
    let (head, tail) = bytes.split_at(bytes.len().saturating_sub(16));
    let negative = bytes.first().is_some_and(|&byte| byte >= 0x80);
    let sign = if negative { 0xff } else { 0 };
    let mut wide = [sign; 16];
    wide[16 - tail.len()..].copy_from_slice(tail);
    let value = i128::from_be_bytes(wide);
    (head.iter().all(|&byte| byte == sign) && (value < 0) == negative).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_numbers_as_far_as_128_bits_go() {
        for value in
            [0, 1, -1, i128::from(i64::MAX), i128::from(i64::MIN), 1 << 63, -(1 << 64), i128::MIN]
        {
            assert_eq!(of_bytes(&value.to_be_bytes()), Some(value), "{value}");
            let sign = if value < 0 { 0xff } else { 0 };
            assert_eq!(of_bytes(&[&[sign; 3][..], &value.to_be_bytes()].concat()), Some(value));
            assert_eq!(of_bytes(&[&[!sign][..], &value.to_be_bytes()].concat()), None);
        }
        assert_eq!(of_bytes(&[0xff, 0x7f]), Some(-129));
        assert_eq!(of_bytes(&[0x00, 0xff]), Some(255));
        assert_eq!(of_bytes(&[]), Some(0));
        assert_eq!(of_bytes(&[0, 0x80, 0, 0, 0, 0, 0, 0, 0]), Some(1 << 63));
    }
}
