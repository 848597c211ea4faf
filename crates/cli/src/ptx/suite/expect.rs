//! Whether a buffer holds what it must.

use super::document::{Expected, Wanted};
use crate::number::{self, Style};
use crate::ptx::argument::Buffer;
use crate::ptx::buffers::{self, Shown};
use crate::ptx::content::Content;
use crate::ptx::scalar;
use anyhow::{Context, Result, anyhow};
use warpfold::{DType, Scalar};

/// What is wrong with a buffer; nothing, if it holds what it must.
///
/// # Errors
/// A file that cannot be read or holds something else.
pub(super) fn compare(shown: &Shown, expected: &Expected) -> Result<Option<String>> {
    let wanted = wanted(shown, expected).with_context(|| format!("expect {}", shown.name))?;
    let mut different = shown
        .values
        .iter()
        .zip(&wanted)
        .enumerate()
        .filter(|(_, (got, wanted))| !agree(**got, **wanted, expected.rtol, expected.atol));
    let Some((at, (got, first))) = different.next() else { return Ok(None) };
    let (name, all) = (&shown.name, wanted.len());
    let text = |x: Scalar| number::text(x, Style::Text);
    let rest = different.count() + 1;
    Ok(Some(format!(
        "{name}[{at}] is {}, not {} ({rest} of {all} differ)",
        text(*got),
        text(*first)
    )))
}

fn wanted(shown: &Shown, expected: &Expected) -> Result<Vec<Scalar>> {
    let (dtype, count) = (shown.dtype, shown.values.len() as u64);
    let content = match &expected.content {
        Wanted::File(file) => Content::File(file.to_string_lossy().into_owned()),
        Wanted::Values(words) => {
            Content::parse(words, dtype, Some(count)).map_err(|why| anyhow!("{why}"))?
        }
    };
    let buffer =
        Buffer { name: shown.name.clone(), dtype: Some(dtype), count: Some(count), content };
    let (_, bytes) = buffers::bytes(&buffer)?;
    Ok(scalar::all(dtype, &bytes).collect())
}

/// The same bits, any NaN for any NaN; with tolerances, floats that are near each other.
fn agree(got: Scalar, wanted: Scalar, rtol: Option<f64>, atol: Option<f64>) -> bool {
    if got.to_bits() == wanted.to_bits() {
        return true;
    }
    let is_float = matches!(got.dtype(), DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    if !is_float {
        return false;
    }
    let (a, b) = (got.to_f64(), wanted.to_f64());
    if a.is_nan() && b.is_nan() {
        return true;
    }
    let near = atol.unwrap_or(0.0) + rtol.unwrap_or(0.0) * b.abs();
    // Infinities are near themselves only.
    (rtol.is_some() || atol.is_some()) && b.is_finite() && (a - b).abs() <= near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_agree_and_with_tolerances_what_is_near() {
        let f = Scalar::F32;
        assert!(agree(f(1.0), f(1.0), None, None));
        assert!(!agree(f(0.0), f(-0.0), None, None));
        assert!(agree(f(0.0), f(-0.0), Some(0.0), None));
        assert!(agree(f(f32::NAN), f(-f32::NAN), None, None));
        assert!(!agree(f(f32::NAN), f(1.0), Some(1.0), Some(1e9)));
        assert!(!agree(f(1e30), f(f32::INFINITY), Some(1.0), None));
        assert!(agree(f(100.5), f(100.0), Some(0.01), None));
        assert!(!agree(f(101.5), f(100.0), Some(0.01), None));
        assert!(agree(f(0.5), f(0.0), None, Some(0.5)));
        let i = |x| Scalar::from_bits(DType::I32, x);
        assert!(!agree(i(100), i(101), Some(0.5), Some(5.0)), "integers agree or do not");
    }
}
