//! From the text of a cell to an element, rounded once.

use core::cmp::Ordering;
use warpfold_core::DType;
use warpfold_core::element::Bool8;
use warpfold_core::element::{bf16, f16};

/// Why a text is not an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotANumber,
    OutOfRange,
}

impl Refusal {
    /// The sentence for a message.
    pub(crate) fn explain(self, text: &[u8], dtype: DType) -> String {
        let shown = shown(text);
        match self {
            Refusal::OutOfRange => format!("{shown} does not fit {dtype}"),
            Refusal::NotANumber if dtype == DType::Bool => {
                format!("{shown} is neither true nor false")
            }
            Refusal::NotANumber if dtype.is_float() => format!("{shown} is not a number"),
            Refusal::NotANumber => format!("{shown} is not an integer"),
        }
    }
}

/// What helps where a text is a number but for its commas, which are not read: they may
/// stand before decimals or between thousands.
pub(crate) fn comma_hint(text: &[u8]) -> Option<&'static str> {
    let text = core::str::from_utf8(text).ok()?;
    let is_number = |text: &str| {
        text.contains(',') && {
            let digits = text.replace(',', "");
            digits.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
                && f64::parse(digits.as_bytes()).is_ok()
        }
    };
    let (whole, decimals) = text.rsplit_once(',')?;
    let digits = decimals.find(['e', 'E']).map_or(decimals, |at| &decimals[..at]);
    if whole.contains(',') || digits.contains('.') {
        return is_number(text)
            .then_some("nothing may stand between thousands: write 1234567 for 1,234,567");
    }
    // Points may stand between thousands here.
    if !is_number(&format!("{},{decimals}", whole.replace('.', ""))) {
        return None;
    }
    Some(match digits.len() {
        3 if !whole.contains('.') => {
            "commas in numbers are not read: write a point for a decimal comma, and nothing between thousands"
        }
        _ => "a decimal comma is not read: write a point, such as 1.5 for 1,5",
    })
}

/// A text for a message: quoted, cut short.
pub(crate) fn shown(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    let lossy = String::from_utf8_lossy(&text[..text.len().min(4 * LONGEST)]);
    let mut short: String = lossy.chars().take(LONGEST).collect();
    if short.len() < lossy.len() || text.len() > 4 * LONGEST {
        short.push('…');
    }
    format!("{short:?}")
}

/// Elements that can be read from text without white space around it.
pub(crate) trait TextNumber: bytemuck::Pod {
    fn parse(text: &[u8]) -> Result<Self, Refusal>;
}

impl TextNumber for f64 {
    #[inline]
    fn parse(text: &[u8]) -> Result<Self, Refusal> {
        fast_float2::parse(text).map_err(|_| Refusal::NotANumber)
    }
}

impl TextNumber for f32 {
    #[inline]
    fn parse(text: &[u8]) -> Result<Self, Refusal> {
        fast_float2::parse(text).map_err(|_| Refusal::NotANumber)
    }
}

impl TextNumber for f16 {
    fn parse(text: &[u8]) -> Result<Self, Refusal> {
        f64::parse(text).map(|d| f16::from_bits(narrow(text, d, 10, -24)))
    }
}

impl TextNumber for bf16 {
    fn parse(text: &[u8]) -> Result<Self, Refusal> {
        f64::parse(text).map(|d| bf16::from_bits(narrow(text, d, 7, -133)))
    }
}

/// The 16-bit float nearest to the decimal number `text`, given the f64 `d`
/// nearest to it; `mant` stored significand bits, subnormal unit `2^lsb`.
///
/// Rounding `d` again gives the right answer unless `d` is exactly halfway
/// between two 16-bit floats: halfway points are f64 values and rounding to
/// f64 is monotone, so on either side of a halfway point `d` stays on that
/// side or lands on it. Only there the decimal text itself must decide.
fn narrow(text: &[u8], d: f64, mant: u32, lsb: i32) -> u16 {
    let sign = u16::from(d.is_sign_negative()) << 15;
    let infinity = ((1_u64 << (15 - mant)) - 1) << mant;
    if d.is_nan() {
        return sign | infinity as u16 | 1 << (mant - 1);
    }
    if d.is_infinite() {
        return sign | infinity as u16;
    }
    let bits = d.to_bits() & (u64::MAX >> 1);
    let biased = (bits >> 52) as i32;
    if biased == 0 {
        // Zero, or a subnormal far below half the least 16-bit float.
        return sign;
    }
    // |d| = significand * 2^exponent with exactly 53 bits.
    let significand = bits & ((1 << 52) - 1) | 1 << 52;
    let exponent = biased - 1075;
    let unit = (exponent + 52 - mant as i32).max(lsb);
    let shift = (unit - exponent) as u32;
    if shift > 53 {
        // |d| < 2^(exponent + 53) <= 2^(unit - 1): below half a unit.
        return sign;
    }
    let kept = significand >> shift;
    let rest = significand & ((1 << shift) - 1);
    let up = match rest.cmp(&(1 << (shift - 1))) {
        Ordering::Less => false,
        Ordering::Greater => true,
        Ordering::Equal => match compare_magnitudes(text, d) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => kept & 1 == 1,
        },
    };
    // A carry out of the significand moves into the exponent as it should,
    // and from the greatest finite value into infinity.
    let magnitude = (((unit - lsb) as u64) << mant) + kept + u64::from(up);
    sign | magnitude.min(infinity) as u16
}

/// Compares the absolute values of a decimal number, known to be valid, and a
/// finite f64.
fn compare_magnitudes(text: &[u8], d: f64) -> Ordering {
    // A halfway point of a 16-bit float is an integer below 2^9 * 5^134 over
    // a power of ten, or one below 2^129: at most 97 digits.
    let exact = format!("{:.120e}", d.abs());
    let (left, right) = (decimal(text), decimal(exact.as_bytes()));
    left.1.cmp(&right.1).then_with(|| left.0.cmp(&right.0))
}

/// The significant digits, and the weight of the first; neither leading nor
/// trailing zeros.
fn decimal(text: &[u8]) -> (Vec<u8>, i64) {
    let text = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let mantissa_len =
        text.iter().position(|b| b.eq_ignore_ascii_case(&b'e')).unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(mantissa_len);
    let point = mantissa.iter().position(|&b| b == b'.').unwrap_or(mantissa.len());
    let mut digits: Vec<u8> = mantissa.iter().copied().filter(u8::is_ascii_digit).collect();
    let leading = digits.iter().take_while(|&&b| b == b'0').count();
    digits.drain(..leading);
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    let exponent = core::str::from_utf8(exponent.get(1..).unwrap_or_default())
        .ok()
        .and_then(|e| e.parse::<i64>().ok())
        .unwrap_or(0);
    (digits, (point as i64 - leading as i64).saturating_add(exponent))
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl TextNumber for $t {
            #[inline]
            fn parse(text: &[u8]) -> Result<Self, Refusal> {
                let (negative, magnitude) = integer(text)?;
                let value = if negative {
                    -i128::from(magnitude)
                } else {
                    i128::from(magnitude)
                };
                <$t>::try_from(value).map_err(|_| Refusal::OutOfRange)
            }
        }
    )*};
}
integer!(i8, i16, i32, i64, u8, u16, u32, u64);

/// The sign and magnitude of an integer.
#[inline]
fn integer(text: &[u8]) -> Result<(bool, u64), Refusal> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Refusal::NotANumber);
    }
    let magnitude = digits
        .iter()
        .try_fold(0_u64, |n, &b| n.checked_mul(10)?.checked_add(u64::from(b - b'0')))
        .ok_or(Refusal::OutOfRange)?;
    Ok((negative, magnitude))
}

/// A text as an integer of whatever size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    I64(i64),
    /// `-0`, which a float would tell from 0.
    NegativeZero,
    /// Beyond i64.
    U64(u64),
    /// Beyond both.
    Huge,
    /// Not an integer.
    No,
}

/// Reads an integer: digits, with a sign or without.
#[inline]
pub(crate) fn whole(text: &[u8]) -> Whole {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    // 18 digits are below 2^63.
    if digits.len() > 18 || digits.is_empty() {
        return long_whole(negative, digits);
    }
    let mut magnitude = 0_i64;
    for &b in digits {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return Whole::No;
        }
        magnitude = magnitude * 10 + i64::from(digit);
    }
    match (negative, magnitude) {
        (true, 0) => Whole::NegativeZero,
        (true, n) => Whole::I64(-n),
        (false, n) => Whole::I64(n),
    }
}

#[cold]
fn long_whole(negative: bool, digits: &[u8]) -> Whole {
    match integer(digits) {
        _ if digits.starts_with(b"+") || digits.starts_with(b"-") => Whole::No,
        Err(Refusal::NotANumber) => Whole::No,
        Err(Refusal::OutOfRange) => Whole::Huge,
        Ok((_, 0)) if negative => Whole::NegativeZero,
        Ok((_, n)) if negative => match 0_i64.checked_sub_unsigned(n) {
            Some(n) => Whole::I64(n),
            None => Whole::Huge,
        },
        Ok((_, n)) => i64::try_from(n).map_or(Whole::U64(n), Whole::I64),
    }
}

impl TextNumber for Bool8 {
    fn parse(text: &[u8]) -> Result<Self, Refusal> {
        if text == b"1" || text.eq_ignore_ascii_case(b"true") {
            Ok(Bool8(1))
        } else if text == b"0" || text.eq_ignore_ascii_case(b"false") {
            Ok(Bool8(0))
        } else {
            Err(Refusal::NotANumber)
        }
    }
}

/// Whether a cell holds a number, or an element of type `dtype`, even if it
/// does not fit.
pub(crate) fn is_number(text: &[u8], dtype: DType) -> bool {
    f64::parse(text).is_ok() || (dtype == DType::Bool && Bool8::parse(text).is_ok())
}

/// The cell without white space and quotes around it.
#[inline]
pub(crate) fn trimmed(cell: &[u8]) -> &[u8] {
    let cell = cell.trim_ascii();
    match cell {
        [b'"', inner @ .., b'"'] => inner.trim_ascii(),
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use proptest::prelude::*;

    /// The decimal `digits * 10^exponent` against `m * 2^e`, in big integers.
    fn distance(digits: &BigInt, exponent: i32, m: u64, e: i32) -> BigInt {
        // Both over 2^200 * 10^60: scale up and subtract.
        let ten = BigInt::from(10).pow((exponent + 60) as u32) << 200_u32;
        let two = BigInt::from(10).pow(60) << ((e + 200) as u32);
        let difference = digits * ten - BigInt::from(m) * two;
        if difference < BigInt::from(0) { -difference } else { difference }
    }

    /// Every finite 16-bit magnitude is tried near the answer.
    fn check(digits: u128, exponent: i32, mant: u32, lsb: i32, got: u16) {
        let big = BigInt::from(digits);
        let value = |bits: u16| {
            let biased = i32::from(bits >> mant);
            let fraction = u64::from(bits) & ((1 << mant) - 1);
            if biased == 0 { (fraction, lsb) } else { (fraction | 1 << mant, lsb + biased - 1) }
        };
        let infinity = (((1_u32 << (15 - mant)) - 1) << mant) as u16;
        let far = |bits: u16| {
            // Infinity stands where the next finite value would.
            let (m, e) = value(bits);
            distance(&big, exponent, m, e)
        };
        let mine = far(got);
        for other in [got.wrapping_sub(1), got.wrapping_add(1)] {
            if other <= infinity {
                let theirs = far(other);
                assert!(
                    mine < theirs || (mine == theirs && got & 1 == 0),
                    "{digits}e{exponent}: {got:#x}, but {other:#x} is nearer"
                );
            }
        }
    }

    #[test]
    fn halfway_cases_are_decided_by_the_text() {
        // 1 + 2^-11 lies halfway between 1 and the next f16.
        let half = "1.00048828125";
        assert_eq!(f16::parse(half.as_bytes()).unwrap().to_bits(), 0x3c00);
        let above = format!("{half}{}1", "0".repeat(40));
        assert_eq!(f16::parse(above.as_bytes()).unwrap().to_bits(), 0x3c01);
        let below = "1.0014648437499999999999999999999999999999";
        assert_eq!(f16::parse(below.as_bytes()).unwrap().to_bits(), 0x3c01);
        assert_eq!(f16::parse(b"1.00146484375").unwrap().to_bits(), 0x3c02);
        assert_eq!(f16::parse(b"-1.00048828125000000000000000000001e0").unwrap().to_bits(), 0xbc01);
        // The edge of infinity.
        assert_eq!(f16::parse(b"65519.99999999999999999999999").unwrap().to_bits(), 0x7bff);
        assert_eq!(f16::parse(b"65520").unwrap().to_bits(), 0x7c00);
        // Half the least subnormal, and a trace more.
        assert_eq!(f16::parse(b"2.98023223876953125e-8").unwrap().to_bits(), 0);
        assert_eq!(f16::parse(b"0.0000000298023223876953125000000000001").unwrap().to_bits(), 1);
        assert_eq!(bf16::parse(b"1.00390625").unwrap().to_bits(), 0x3f80);
        assert_eq!(bf16::parse(b"1.003906250000000000000000000001").unwrap().to_bits(), 0x3f81);
        let tiny = format!("{:.120e}", 2f64.powi(-134));
        assert_eq!(bf16::parse(tiny.as_bytes()).unwrap().to_bits(), 0);
        assert_eq!(bf16::parse(tiny.replace("0000e", "0001e").as_bytes()).unwrap().to_bits(), 1);
    }

    #[test]
    fn every_16_bit_float_survives_its_own_text() {
        for bits in 0..=u16::MAX {
            let (h, b) = (f16::from_bits(bits), bf16::from_bits(bits));
            if !h.is_nan() {
                assert_eq!(
                    f16::parse(format!("{}", h.to_f64()).as_bytes()).unwrap().to_bits(),
                    bits
                );
            }
            if !b.is_nan() {
                assert_eq!(
                    bf16::parse(format!("{:e}", b.to_f64()).as_bytes()).unwrap().to_bits(),
                    bits
                );
            }
        }
    }

    proptest! {
        #[test]
        fn narrow_floats_are_the_nearest(digits in 0..=u128::MAX / 7, exponent in -55..0_i32) {
            let text = format!("{digits}e{exponent}");
            check(digits, exponent, 10, -24, f16::parse(text.as_bytes()).unwrap().to_bits());
            check(digits, exponent, 7, -133, bf16::parse(text.as_bytes()).unwrap().to_bits());
        }

        #[test]
        fn floats_agree_with_the_standard_library(
            text in "[+-]?[0-9]{1,25}(\\.[0-9]{0,25})?(e[+-]?[0-9]{1,4})?",
        ) {
            let bytes = text.as_bytes();
            prop_assert_eq!(f64::parse(bytes).unwrap().to_bits(), text.parse::<f64>().unwrap().to_bits());
            prop_assert_eq!(f32::parse(bytes).unwrap().to_bits(), text.parse::<f32>().unwrap().to_bits());
        }
    }

    #[test]
    fn spellings_of_floats() {
        for (text, value) in [
            ("+5", 5.0),
            ("1e-400", 0.0),
            ("-1e-400", -0.0),
            ("1e400", f64::INFINITY),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            (".5", 0.5),
            ("5.", 5.0),
            ("1E3", 1000.0),
            ("1e99999999999999999999", f64::INFINITY),
            ("0e99999999999999999999", 0.0),
        ] {
            assert_eq!(f64::parse(text.as_bytes()).unwrap().to_bits(), value.to_bits(), "{text}");
        }
        for text in ["nan", "NaN", "-nan", "+nan"] {
            assert!(f64::parse(text.as_bytes()).unwrap().is_nan());
            assert!(f16::parse(text.as_bytes()).unwrap().is_nan());
        }
        for text in ["", "+", "e5", "1e", "1,5", "0x10", "1_000", "--1", "NA", "1 2", "٣"] {
            assert_eq!(f64::parse(text.as_bytes()), Err(Refusal::NotANumber), "{text}");
        }
    }

    #[test]
    fn integers_are_exact_or_refused() {
        assert_eq!(i64::parse(b"9007199254740993"), Ok(9_007_199_254_740_993));
        assert_eq!(i64::parse(b"-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(i64::parse(b"9223372036854775808"), Err(Refusal::OutOfRange));
        assert_eq!(u64::parse(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(u64::parse(b"18446744073709551616"), Err(Refusal::OutOfRange));
        assert_eq!(u8::parse(b"-0"), Ok(0));
        assert_eq!(u8::parse(b"-1"), Err(Refusal::OutOfRange));
        assert_eq!(i8::parse(b"+127"), Ok(127));
        assert_eq!(i8::parse(b"128"), Err(Refusal::OutOfRange));
        for text in ["5.0", "1e3", "", "-", "x"] {
            assert_eq!(i32::parse(text.as_bytes()), Err(Refusal::NotANumber), "{text}");
        }
    }

    #[test]
    fn whole_numbers_of_every_size() {
        for (text, expected) in [
            ("0", Whole::I64(0)),
            ("+12", Whole::I64(12)),
            ("-12", Whole::I64(-12)),
            ("-0", Whole::NegativeZero),
            ("-0000000000000000000000", Whole::NegativeZero),
            ("000000000000000000000007", Whole::I64(7)),
            ("999999999999999999", Whole::I64(999_999_999_999_999_999)),
            ("9223372036854775807", Whole::I64(i64::MAX)),
            ("-9223372036854775808", Whole::I64(i64::MIN)),
            ("-9223372036854775809", Whole::Huge),
            ("9223372036854775808", Whole::U64(1 << 63)),
            ("18446744073709551615", Whole::U64(u64::MAX)),
            ("18446744073709551616", Whole::Huge),
            ("-18446744073709551615", Whole::Huge),
        ] {
            assert_eq!(whole(text.as_bytes()), expected, "{text}");
        }
        for text in [
            "",
            "+",
            "-",
            "+-1",
            "--0000000000000000001",
            "1.0",
            "1e3",
            "12345678901234567890x",
            "inf",
        ] {
            assert_eq!(whole(text.as_bytes()), Whole::No, "{text}");
        }
    }

    #[test]
    fn commas_in_numbers_get_a_hint() {
        for (text, part) in [
            ("1,5", "a decimal comma"),
            ("-0,25", "a decimal comma"),
            (",5", "a decimal comma"),
            ("1,5e3", "a decimal comma"),
            ("1.234,5", "a decimal comma"),
            ("1.234.567,125", "a decimal comma"),
            ("1,234", "commas in numbers"),
            ("1,234,567", "thousands"),
            ("1,234.5", "thousands"),
        ] {
            let hint = comma_hint(text.as_bytes());
            assert!(hint.is_some_and(|hint| hint.contains(part)), "{text}: {hint:?}");
        }
        for text in ["", ",", "1", "a,b", "1,b", "1,5,x", "inf,inf", "1,-", "1.5"] {
            assert_eq!(comma_hint(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn long_texts_are_cut_short_in_messages() {
        let message = Refusal::NotANumber.explain(&[b'x'; 5000], DType::F64);
        assert!(message.len() < 80 && message.contains('…'), "{message}");
    }
}
