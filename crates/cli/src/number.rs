//! How numbers are printed.

use std::fmt::Write;
use warpfold::{Scalar, Unit, bf16, f16};

/// Who reads the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// People and shells: `nan`, `inf`.
    Text,
    /// JSON, which has no such numbers: `"NaN"`, `"Infinity"`.
    Json,
    /// The bits: `0x3ff0000000000000`.
    Hex,
    /// The bits as a JSON string.
    JsonHex,
}

impl Style {
    /// The style in JSON.
    pub(crate) fn json(hex: bool) -> Style {
        if hex { Style::JsonHex } else { Style::Json }
    }

    /// The style in everything else.
    pub(crate) fn text(hex: bool) -> Style {
        if hex { Style::Hex } else { Style::Text }
    }
}

/// Appends a number.
pub(crate) fn push(out: &mut String, number: Scalar, style: Style) {
    if let (Scalar::Decimal(decimal), Style::Hex | Style::JsonHex) = (number, style) {
        let quote = if style == Style::JsonHex { "\"" } else { "" };
        let bytes = decimal.to_le_bytes();
        let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
        *out += &format!("{quote}0x{digits}{quote}");
        return;
    }
    // Writing to a string cannot fail.
    let _ = match style {
        Style::Hex => write!(out, "0x{:0w$x}", number.to_bits(), w = 2 * number.dtype().size()),
        Style::JsonHex => {
            write!(out, "\"0x{:0w$x}\"", number.to_bits(), w = 2 * number.dtype().size())
        }
        Style::Text | Style::Json => match number {
            Scalar::Bool(x) => write!(out, "{x}"),
            Scalar::Int(x, _) => write!(out, "{x}"),
            Scalar::UInt(x, _) => write!(out, "{x}"),
            Scalar::F16(x) => push_float(out, f64::from(x), style, |out| {
                out.write_str(&shortest(f64::from(x), |d| f16::from_f64(d) == x))
            }),
            Scalar::BF16(x) => push_float(out, f64::from(x), style, |out| {
                out.write_str(&shortest(f64::from(x), |d| bf16::from_f64(d) == x))
            }),
            Scalar::F32(x) => {
                push_float(out, f64::from(x), style, |out| write!(out, "{:e}", x.abs()))
            }
            Scalar::F64(x) => push_float(out, x, style, |out| write!(out, "{:e}", x.abs())),
            other => write!(out, "{other}"),
        },
    };
}

/// Appends a number that may count something, and is printed as what it stands for then.
pub(crate) fn push_counted(out: &mut String, number: Scalar, unit: Option<&Unit>, style: Style) {
    let count = match number {
        Scalar::Int(count, _) => i128::from(count),
        Scalar::UInt(count, _) => i128::from(count),
        _ => return push(out, number, style),
    };
    match (unit, style) {
        (Some(unit), Style::Text) => *out += &unit.show(count),
        (Some(unit), Style::Json) if unit.is_number() => *out += &unit.show(count),
        (Some(unit), Style::Json) => *out += &format!("\"{}\"", unit.show(count)),
        _ => push(out, number, style),
    }
}

/// A number as a string of its own.
pub(crate) fn text(number: Scalar, style: Style) -> String {
    let mut out = String::new();
    push(&mut out, number, style);
    out
}

/// Appends a float whose shortest digits `scientific` appends, as `d.ddde-n`.
fn push_float(
    out: &mut String,
    x: f64,
    style: Style,
    scientific: impl FnOnce(&mut String) -> std::fmt::Result,
) -> std::fmt::Result {
    if !x.is_finite() {
        out.push_str(match (style, x.is_nan(), x > 0.0) {
            (Style::Json, true, _) => "\"NaN\"",
            (Style::Json, _, true) => "\"Infinity\"",
            (Style::Json, _, false) => "\"-Infinity\"",
            (_, true, _) => "nan",
            (_, _, true) => "inf",
            (_, _, false) => "-inf",
        });
        return Ok(());
    }
    if x.is_sign_negative() {
        out.push('-');
    }
    if x == 0.0 {
        out.push('0');
        return Ok(());
    }
    let start = out.len();
    scientific(out)?;
    lay_out(out, start);
    Ok(())
}

/// Brings `d.ddde-n`, which begins at `start`, to the form people read: positional from 1e-5 up to
/// 1e16.
fn lay_out(out: &mut String, start: usize) {
    let Some((mantissa, exponent)) = out[start..].split_once('e') else { return };
    let Ok(exponent @ -5..=15) = exponent.parse::<i32>() else { return };
    let end = start + mantissa.len();
    out.truncate(end);
    // The point goes where it belongs: zeros come before the digits or after them.
    if end > start + 1 {
        out.remove(start + 1);
    }
    if exponent < 0 {
        const ZEROS: &str = "0.0000";
        out.insert_str(start, &ZEROS[..(1 - exponent) as usize]);
        return;
    }
    let point = start + exponent as usize + 1;
    match out.len() {
        len if len > point => out.insert(point, '.'),
        len => out.extend(std::iter::repeat_n('0', point - len)),
    }
}

/// The shortest decimal that `reads_back`, of those the nearest to `x`.
///
/// Beside the nearest decimal of each length its two neighbours are tried: at
/// a power of two the gap below is half the gap above, so that the nearest
/// may read back as another number while a farther one above does not.
fn shortest(x: f64, reads_back: impl Fn(f64) -> bool) -> String {
    let x = x.abs();
    let sign = if reads_back(x) { 1.0 } else { -1.0 };
    for precision in 0..17 {
        let nearest = format!("{x:.precision$e}");
        let Some((mantissa, exponent)) = nearest.split_once('e') else { break };
        let Ok(exponent) = exponent.parse::<i32>() else { break };
        let Ok(digits) = mantissa.replace('.', "").parse::<u64>() else { break };
        for digits in [digits, digits + 1, digits - 1] {
            let text = format!("{digits}e{}", exponent - precision as i32);
            if text.parse::<f64>().is_ok_and(|d| reads_back(sign * d)) {
                return normalised(digits, exponent - precision as i32);
            }
        }
    }
    format!("{x:e}")
}

/// `digits * 10^exponent` as `d.ddde-n`, without trailing zeros.
fn normalised(digits: u64, exponent: i32) -> String {
    let digits = digits.to_string();
    let exponent = exponent + digits.len() as i32 - 1;
    let (first, rest) = digits.split_at(1);
    match rest.trim_end_matches('0') {
        "" => format!("{first}e{exponent}"),
        rest => format!("{first}.{rest}e{exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold::DType;

    fn f64_text(x: f64) -> String {
        text(Scalar::F64(x), Style::Text)
    }

    #[test]
    fn floats_are_short_and_positional_in_the_middle() {
        for (x, expected) in [
            (1.0, "1"),
            (1001.0, "1001"),
            (100_000.0, "100000"),
            (1e15, "1000000000000000"),
            (9_999_999_999_999_998.0, "9999999999999998"),
            (1e16, "1e16"),
            (-1.5e21, "-1.5e21"),
            (0.1, "0.1"),
            (12.5, "12.5"),
            (0.00001, "0.00001"),
            (0.000_012_5, "0.0000125"),
            (9.999e-6, "9.999e-6"),
            (1e-7, "1e-7"),
            (5e-324, "5e-324"),
            (0.0, "0"),
            (-0.0, "-0"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(f64_text(x), expected);
        }
        assert_eq!(text(Scalar::F32(0.1), Style::Text), "0.1");
        assert_eq!(text(Scalar::F32(1e16), Style::Text), "1e16");
    }

    #[test]
    fn json_writes_what_it_lacks_as_strings() {
        assert_eq!(text(Scalar::F64(f64::NAN), Style::Json), "\"NaN\"");
        assert_eq!(text(Scalar::F32(f32::NEG_INFINITY), Style::Json), "\"-Infinity\"");
        assert_eq!(
            text(Scalar::from_bits(DType::U64, u64::MAX), Style::Json),
            "18446744073709551615"
        );
    }

    #[test]
    fn hex_is_padded_to_the_width_of_the_type() {
        assert_eq!(text(Scalar::F64(1.0), Style::Hex), "0x3ff0000000000000");
        assert_eq!(text(Scalar::from_bits(DType::I16, u64::MAX), Style::Hex), "0xffff");
        assert_eq!(text(Scalar::Bool(true), Style::JsonHex), "\"0x01\"");
        assert_eq!(text(Scalar::F16(f16::from_f32(0.5)), Style::Hex), "0x3800");
    }

    /// Every 16-bit float reads back, and no decimal with a digit less does.
    #[test]
    fn short_floats_read_back_and_are_shortest() {
        fn check(x: f64, printed: &str, same: impl Fn(f64) -> bool) {
            assert!(same(printed.parse().unwrap()), "{x} printed as {printed}");
            let digits = printed.split('e').next().unwrap().replace(['.', '-'], "");
            let digits = digits.trim_matches('0').len();
            if digits > 1 {
                let shorter = format!("{:.p$e}", x, p = digits - 2);
                let (mantissa, exponent) = shorter.split_once('e').unwrap();
                let base: i64 = mantissa.replace('.', "").parse().unwrap();
                let exponent: i32 = exponent.parse::<i32>().unwrap() - (digits as i32 - 2);
                for step in -2..=2 {
                    let candidate: f64 = format!("{}e{exponent}", base + step).parse().unwrap();
                    assert!(
                        !same(candidate),
                        "{x} printed as {printed}, but {candidate} is shorter"
                    );
                }
            }
        }
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            if half.is_finite() && half != f16::ZERO {
                let printed = text(Scalar::F16(half), Style::Text);
                check(f64::from(half), &printed, |d| f16::from_f64(d) == half);
            }
            let brain = bf16::from_bits(bits);
            if brain.is_finite() && brain != bf16::ZERO {
                let printed = text(Scalar::BF16(brain), Style::Text);
                check(f64::from(brain), &printed, |d| bf16::from_f64(d) == brain);
            }
        }
    }
}
