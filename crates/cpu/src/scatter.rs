//! How far apart the exponents of floats are, as far as some of them tell.
//!
//! States of sums are the quickest way for one long array, as long as its elements fit a window. They take
//! several times as long for elements whose exponents are far apart, or that are infinite or NaN.
//! Accumulators do not, and are as fast as memory is.

use core::ops::Range;
use warpfold_core::DType;

/// Elements that are looked at: so many from each of so many places.
const LOOKED_AT: usize = 8;
const PLACES: usize = 8;
/// Binades between exponents that windows hold as fast as any.
const NEAR: u64 = 40;
/// The exponents of f64, as they are stored, up to which windows leave subnormal rests of elements:
/// such a difference takes many processors a hundred cycles.
const LOW: u64 = 64;

/// How far apart elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scatter {
    /// As near as windows want them.
    Near,
    /// Further, or f64 of which some digits are below the normal numbers.
    Far,
    /// Some are infinite or NaN.
    Special,
}

impl Scatter {
    /// That of contiguous elements, by their bytes.
    ///
    /// ```
    /// use warpfold_cpu::Scatter;
    /// use warpfold_core::DType;
    ///
    /// let of = |x: f64| Scatter::of(DType::F64, x.to_ne_bytes().repeat(100).as_slice());
    /// assert_eq!(of(1.5), Scatter::Near);
    /// assert_eq!(of(f64::NAN), Scatter::Special);
    /// ```
    #[must_use]
    pub fn of(dtype: DType, bytes: &[u8]) -> Scatter {
        let (size, mut look) = (dtype.size(), Look::at(dtype));
        for Range { start, end } in Look::places(bytes.len() / size) {
            look.take(&bytes[start * size..end * size]);
        }
        look.scatter()
    }
}

/// What was seen of some elements.
pub(crate) struct Look {
    /// Bytes of an element, and bits behind its exponent.
    size: usize,
    digits: u32,
    /// The exponent of what is no number; 0 for integers.
    special: u64,
    /// Of all elements but zeros.
    least: u64,
    greatest: u64,
}

impl Look {
    /// Nothing was seen yet.
    pub(crate) fn at(dtype: DType) -> Look {
        let (digits, special) = match dtype {
            DType::F16 => (10, 0x1f),
            DType::BF16 => (7, 0xff),
            DType::F32 => (23, 0xff),
            DType::F64 => (52, 0x7ff),
            _ => (0, 0),
        };
        Look { size: dtype.size(), digits, special, least: u64::MAX, greatest: 0 }
    }

    /// The places of the elements that are looked at, of so many.
    pub(crate) fn places(len: usize) -> impl Iterator<Item = Range<usize>> {
        let place = move |i: usize| len / PLACES * i..(len / PLACES * i + LOOKED_AT).min(len);
        (0..PLACES).map(place)
    }

    /// Looks at elements, by their bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks_exact(self.size) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let word = u64::from_le_bytes(word);
            let exponent = (word >> self.digits) & self.special;
            // A zero has none.
            if word << (65 - 8 * bytes.len()) != 0 {
                self.least = self.least.min(exponent);
                self.greatest = self.greatest.max(exponent);
            }
        }
    }

    /// What that says of all.
    pub(crate) fn scatter(&self) -> Scatter {
        match self.special {
            0 => Scatter::Near,
            special if self.greatest == special => Scatter::Special,
            _ if self.greatest > self.least.saturating_add(NEAR) => Scatter::Far,
            0x7ff if self.least <= self.greatest && self.greatest <= LOW => Scatter::Far,
            _ => Scatter::Near,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_core::element::{bf16, f16};

    fn of<T: bytemuck::NoUninit>(dtype: DType, items: &[T]) -> Scatter {
        Scatter::of(dtype, bytemuck::cast_slice(items))
    }

    #[test]
    fn exponents_tell_how_far_apart_elements_are() {
        let far =
            |x: f64| -> Vec<f64> { (0..100).map(|i| if i % 3 == 0 { x } else { -1.0 }).collect() };
        let f32s = |x: f64| -> Vec<f32> { far(x).into_iter().map(|x| x as f32).collect() };
        for (x, scatter) in [
            (1e3, Scatter::Near),
            (0.0, Scatter::Near),
            (-0.0, Scatter::Near),
            (1e-13, Scatter::Far),
            (1e13, Scatter::Far),
            (f64::NEG_INFINITY, Scatter::Special),
            (f64::NAN, Scatter::Special),
        ] {
            assert_eq!(of(DType::F64, &far(x)), scatter, "{x}");
            assert_eq!(of(DType::F32, &f32s(x)), scatter, "{x}");
            let bf16s: Vec<bf16> = f32s(x).into_iter().map(bf16::from_f32).collect();
            assert_eq!(of(DType::BF16, &bf16s), scatter, "{x}");
            // Those of f16 are never far apart.
            let f16s: Vec<f16> = f32s(x.clamp(-6e4, 6e4)).into_iter().map(f16::from_f32).collect();
            let near = if x.is_nan() { scatter } else { Scatter::Near };
            assert_eq!(of(DType::F16, &f16s), near, "{x}");
        }
        assert_eq!(of(DType::I64, &far(1e300)), Scatter::Near);
        for (x, scatter) in
            [(1e-280, Scatter::Near), (3e-300, Scatter::Far), (-5e-324, Scatter::Far)]
        {
            assert_eq!(of(DType::F64, &[0.0, x, x]), scatter, "{x}");
            assert_eq!(of(DType::F32, &[x as f32; 20]), Scatter::Near, "{x}");
        }
        assert_eq!(of::<f64>(DType::F64, &[]), Scatter::Near);
        assert_eq!(of(DType::F64, &[f64::NAN]), Scatter::Special);
    }
}
