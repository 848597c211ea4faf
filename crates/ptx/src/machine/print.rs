//! What `printf` prints on the device.

/// A conversion of a format string, without its letter.
#[derive(Clone, Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
}

/// Widths and precisions that are honoured.
const WIDEST: usize = 4096;

/// Fills a format in. `next` gives an argument of 4 or 8 bytes, `text` the string at an address.
pub(crate) fn format(
    format: &[u8],
    mut next: impl FnMut(u64) -> u64,
    mut text: impl FnMut(u64) -> Vec<u8>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(format.len());
    let mut rest = format;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (spec, letter, after) = conversion(rest, &mut next);
        let Some(letter) = letter else {
            out.push(b'%');
            continue;
        };
        rest = after;
        match letter {
            b'%' => out.push(b'%'),
            b's' => {
                let mut bytes = text(next(8));
                if let Some(limit) = spec.precision {
                    bytes.truncate(limit);
                }
                pad(&mut out, &bytes, &spec);
            }
            b'c' => {
                let byte = next(4) as u8;
                pad(&mut out, &[byte], &spec);
            }
            b'p' => {
                let address = format!("{:#x}", next(8));
                pad(&mut out, address.as_bytes(), &spec);
            }
            b'd' | b'i' | b'u' | b'x' | b'X' | b'o' => integer(&mut out, &spec, letter, &mut next),
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let value = f64::from_bits(next(8));
                let (sign, body) = float(value, letter, &spec);
                number(&mut out, &spec, sign, body, value.is_finite());
            }
            other => out.extend([b'%', other]),
        }
    }
    out
}

/// Reads flags, width, precision and length; the letter, if the string has one, and what follows.
fn conversion<'a>(
    mut rest: &'a [u8],
    next: &mut impl FnMut(u64) -> u64,
) -> (Spec, Option<u8>, &'a [u8]) {
    let mut spec = Spec::default();
    while let Some((&flag, tail)) = rest.split_first() {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        rest = tail;
    }
    let mut count = |rest: &mut &'a [u8]| -> usize {
        if let [b'*', tail @ ..] = *rest {
            *rest = tail;
            return (next(4) as u32 as i32).max(0) as usize;
        }
        let mut n = 0usize;
        while let [digit @ b'0'..=b'9', tail @ ..] = *rest {
            n = n.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
            *rest = tail;
        }
        n
    };
    spec.width = count(&mut rest).min(WIDEST);
    if let [b'.', tail @ ..] = rest {
        rest = tail;
        spec.precision = Some(count(&mut rest).min(WIDEST));
    }
    while let [length @ (b'l' | b'h' | b'z' | b'j' | b't'), tail @ ..] = rest {
        spec.long |= *length != b'h';
        rest = tail;
    }
    match rest.split_first() {
        Some((&letter, tail)) => (spec, Some(letter), tail),
        None => (spec, None, rest),
    }
}

fn integer(out: &mut Vec<u8>, spec: &Spec, letter: u8, next: &mut impl FnMut(u64) -> u64) {
    let raw = next(if spec.long { 8 } else { 4 });
    let (sign, body) = match letter {
        b'd' | b'i' => {
            let value = if spec.long { raw as i64 } else { i64::from(raw as u32 as i32) };
            (value < 0, value.unsigned_abs().to_string())
        }
        b'x' => (false, format!("{raw:x}")),
        b'X' => (false, format!("{raw:X}")),
        b'o' => (false, format!("{raw:o}")),
        _ => (false, raw.to_string()),
    };
    let mut body = match spec.precision {
        Some(digits) if body.len() < digits => format!("{body:0>digits$}"),
        _ => body,
    };
    if spec.alternate && raw != 0 {
        body = match letter {
            b'x' => format!("0x{body}"),
            b'X' => format!("0X{body}"),
            b'o' => format!("0{body}"),
            _ => body,
        };
    }
    let signed = matches!(letter, b'd' | b'i');
    let spec = Spec { plus: spec.plus && signed, space: spec.space && signed, ..spec.clone() };
    number(out, &spec, sign, body, spec.precision.is_none());
}

/// A number with its sign, padded with spaces or, where that is allowed, zeros.
fn number(out: &mut Vec<u8>, spec: &Spec, negative: bool, body: String, zeros: bool) {
    let sign = match (negative, spec.plus, spec.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    let missing = spec.width.saturating_sub(sign.len() + body.len());
    if spec.zero && !spec.left && zeros {
        out.extend_from_slice(format!("{sign}{}{body}", "0".repeat(missing)).as_bytes());
    } else {
        pad(out, format!("{sign}{body}").as_bytes(), spec);
    }
}

fn pad(out: &mut Vec<u8>, bytes: &[u8], spec: &Spec) {
    let missing = spec.width.saturating_sub(bytes.len());
    if !spec.left {
        out.extend(core::iter::repeat_n(b' ', missing));
    }
    out.extend_from_slice(bytes);
    if spec.left {
        out.extend(core::iter::repeat_n(b' ', missing));
    }
}

/// Sign and digits of a floating-point number.
fn float(value: f64, letter: u8, spec: &Spec) -> (bool, String) {
    let negative = value.is_sign_negative() && !value.is_nan();
    let magnitude = value.abs();
    let upper = letter.is_ascii_uppercase();
    let body = if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        "inf".to_owned()
    } else {
        let precision = spec.precision.unwrap_or(6);
        match letter.to_ascii_lowercase() {
            b'f' => format!("{magnitude:.precision$}"),
            b'e' => exponent_form(magnitude, precision),
            b'a' => hexadecimal(magnitude),
            _ => shortest_form(magnitude, precision.max(1), spec.alternate),
        }
    };
    (negative, if upper { body.to_uppercase() } else { body })
}

/// `d.ddde+dd`.
fn exponent_form(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `%g`: this many significant digits, without trailing zeros.
fn shortest_form(value: f64, digits: usize, keep_zeros: bool) -> String {
    let scientific = exponent_form(value, digits - 1);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trim = |text: &str| match text.contains('.') && !keep_zeros {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let (mantissa, e) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        format!("{}e{e}", trim(mantissa))
    } else {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        trim(&format!("{value:.decimals$}"))
    }
}

/// `%a`.
fn hexadecimal(value: f64) -> String {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let biased = (bits >> 52) as i32 & 0x7ff;
    let (lead, exponent) = match (biased, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        _ => (1, biased - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(text: &str, arguments: &[u64]) -> String {
        let mut left = arguments.iter();
        let bytes = format(
            text.as_bytes(),
            |_| left.next().copied().unwrap_or(0),
            |address| if address == 1 { b"text".to_vec() } else { Vec::new() },
        );
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn integers() {
        assert_eq!(
            print("%d|%5d|%-5d|%05d|%+d", &[7, 42, 42, u64::from(-42i32 as u32), 3]),
            "7|   42|42   |-0042|+3"
        );
        assert_eq!(print("%u %x %#X %o", &[0xffff_ffff, 255, 255, 8]), "4294967295 ff 0XFF 10");
        assert_eq!(print("%lld %llu", &[u64::MAX, u64::MAX]), "-1 18446744073709551615");
        assert_eq!(print("%.3d|%*d", &[7, 4, 5]), "007|   5");
    }

    #[test]
    fn floats() {
        let f = f64::to_bits;
        assert_eq!(
            print("%f %.3f %e", &[f(1.5), f(-0.125), f(12345.678)]),
            "1.500000 -0.125 1.234568e+04"
        );
        assert_eq!(print("%g %g %g", &[f(1e-5), f(100000.0), f(1e6)]), "1e-05 100000 1e+06");
        assert_eq!(print("%8.2f|%-8.2f|%08.2f", &[f(-3.146); 3]), "   -3.15|-3.15   |-0003.15");
        assert_eq!(print("%f %F %a", &[f(f64::NAN), f(f64::INFINITY), f(1.5)]), "nan INF 0x1.8p+0");
    }

    #[test]
    fn texts_and_what_is_no_conversion() {
        assert_eq!(print("%s|%8s|%.2s|%c|100%%", &[1, 1, 1, 65]), "text|    text|te|A|100%");
        assert_eq!(print("%q %", &[]), "%q %");
    }
}
