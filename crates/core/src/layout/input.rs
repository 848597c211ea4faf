//! Arrays some of whose elements have no value.

use super::View;
use crate::DType;
use crate::element::Bool8;
use crate::error::{Error, Result};
use crate::item::Item;

/// An array as a reduction takes it: a [`View`], and for a column of a table
/// which of its rows have a value.
///
/// Whatever is a view is an input all of whose elements have values: slices,
/// arrays, vectors, `ndarray` arrays. [`selected`](Self::selected) takes truth values, a
/// `bool` for each element, and [`masked`](Self::masked) a validity bitmap; with the feature
/// `arrow`, Arrow arrays bring theirs.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// Or why this is no array of numbers: who reduces it is told.
    items: Result<Items<'a>>,
    valid: Option<Valid<'a>>,
}

#[derive(Clone, Debug)]
enum Items<'a> {
    Borrowed(View<'a>),
    /// Truth values that were bits.
    #[cfg_attr(not(feature = "arrow"), expect(dead_code, reason = "Arrow alone packs bits"))]
    Unpacked(Vec<Bool8>),
}

/// Which rows have a value.
#[derive(Clone, Debug)]
struct Valid<'a> {
    mask: Mask<'a>,
    /// Rows without a value.
    missing: usize,
}

#[derive(Clone, Copy, Debug)]
enum Mask<'a> {
    /// A bit for each row, lowest first, and the place of the first row's.
    Bits(&'a [u8], usize),
    /// A byte for each row, which is not 0 where there is a value.
    Bytes(&'a [u8]),
}

impl<'a> Input<'a> {
    /// A column whose row `i` has a value if bit `offset + i` of `bits` is set,
    /// counted from the lowest bit of the first byte.
    ///
    /// ```
    /// use warpfold_core::layout::Input;
    ///
    /// let rows = Input::masked(&[1.0, f64::NAN, 3.0], &[0b101], 0)?;
    /// assert_eq!(rows.missing(), 1);
    /// # Ok::<(), warpfold_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if there are fewer bits than rows.
    pub fn masked<T: Item>(items: &'a [T], bits: &'a [u8], offset: usize) -> Result<Input<'a>> {
        Input::masked_view(View::from(items), bits, offset)
    }

    /// The same for a view of one axis whose elements follow each other.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if there are fewer bits than rows, or several axes.
    pub fn masked_view(view: View<'a>, bits: &'a [u8], offset: usize) -> Result<Input<'a>> {
        let has = bits.len().saturating_mul(8).saturating_sub(offset);
        if has < view.len() || view.shape().len() != 1 || view.contiguous().is_none() {
            return Err(Error::ShapeMismatch { left: view.shape().to_vec(), right: vec![has] });
        }
        Ok(Input::from(view).with_valid(Mask::Bits(bits, offset)))
    }

    /// The elements whose truth value is `true`; the others have no value. They are left out,
    /// and count as positions.
    ///
    /// Both are slices, arrays or vectors, or whatever else is a [`View`] of one axis.
    ///
    /// ```
    /// use warpfold_core::layout::Input;
    ///
    /// let prices = [1.0, 99.0, 3.0];
    /// let cheap = prices.map(|price| price < 10.0);
    /// assert_eq!(Input::selected(&prices, &cheap)?.missing(), 1);
    /// # Ok::<(), warpfold_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] if the mask holds something else than truth values;
    /// [`Error::ShapeMismatch`] if it has another length; [`Error::MaskOfArray`] if there are
    /// several axes, or if elements do not follow each other.
    pub fn selected(items: impl Into<View<'a>>, mask: impl Into<View<'a>>) -> Result<Input<'a>> {
        let (view, mask) = (items.into(), mask.into());
        if mask.dtype() != DType::Bool {
            return Err(Error::DTypeMismatch { left: DType::Bool, right: mask.dtype() });
        }
        if mask.shape() != view.shape() {
            let (left, right) = (view.shape().to_vec(), mask.shape().to_vec());
            return Err(Error::ShapeMismatch { left, right });
        }
        let in_a_row = view.shape().len() == 1 && view.contiguous().is_some();
        let Some(bytes) = mask.contiguous().filter(|_| in_a_row) else {
            return Err(Error::MaskOfArray { shape: view.shape().to_vec() });
        };
        Ok(Input::from(view).with_valid(Mask::Bytes(bytes)))
    }

    /// Rows for each of which the mask has a bit or a byte.
    fn with_valid(mut self, mask: Mask<'a>) -> Input<'a> {
        let len = self.view().map_or(0, |view| view.len());
        let missing = len
            - match mask {
                Mask::Bits(bits, offset) => ones(bits, offset, len),
                Mask::Bytes(bytes) => bytes.iter().filter(|&&byte| byte != 0).count(),
            };
        self.valid = (missing > 0).then_some(Valid { mask, missing });
        self
    }

    #[cfg(feature = "arrow")]
    pub(super) fn of_bits(bits: impl Iterator<Item = bool>) -> Input<'a> {
        let items = bits.map(|bit| Bool8(u8::from(bit))).collect();
        Input { items: Ok(Items::Unpacked(items)), valid: None }
    }

    /// An input that cannot be reduced, and why.
    #[cfg(feature = "arrow")]
    pub(super) fn refused(why: Error) -> Input<'a> {
        Input { items: Err(why), valid: None }
    }

    #[cfg(feature = "arrow")]
    pub(super) fn with_bits(self, valid: Option<(&'a [u8], usize)>) -> Input<'a> {
        match valid {
            Some((bits, offset)) => self.with_valid(Mask::Bits(bits, offset)),
            None => self,
        }
    }

    /// The elements; where there is no value, any bits.
    ///
    /// # Errors
    /// [`Error::NotNumbers`] if it is an array of something else.
    pub fn view(&self) -> Result<View<'_>> {
        match &self.items {
            Ok(Items::Borrowed(view)) => Ok(view.clone()),
            Ok(Items::Unpacked(items)) => Ok(View::of(items)),
            Err(why) => Err(why.clone()),
        }
    }

    /// How many elements have no value.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.valid.as_ref().map_or(0, |valid| valid.missing)
    }

    /// Whether element `row` has a value; elements that do not exist have none
    /// to lack.
    #[must_use]
    pub fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.has(row))
    }
}

/// How many of `len` bits from `offset` on are set. There are as many.
fn ones(bits: &[u8], offset: usize, len: usize) -> usize {
    if len == 0 {
        return 0;
    }
    let end = offset + len;
    // Whole bytes, and single bits before and after them.
    let first = offset.next_multiple_of(8).min(end);
    let last = (end / 8 * 8).max(first);
    let single = |bit: usize| bits.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1);
    let whole = bits.get(first / 8..last / 8).unwrap_or(&[]);
    (offset..first).chain(last..end).filter(|&bit| single(bit)).count()
        + whole.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}

impl Valid<'_> {
    fn has(&self, row: usize) -> bool {
        let (bits, bit) = match self.mask {
            Mask::Bytes(bytes) => return bytes.get(row).is_none_or(|&byte| byte != 0),
            Mask::Bits(bits, offset) => (bits, offset.checked_add(row)),
        };
        let Some(bit) = bit else { return true };
        bits.get(bit / 8).is_none_or(|byte| byte >> (bit % 8) & 1 == 1)
    }
}

impl<'a, V: Into<View<'a>>> From<V> for Input<'a> {
    fn from(view: V) -> Input<'a> {
        Input { items: Ok(Items::Borrowed(view.into())), valid: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_from_their_offset() {
        let input = Input::masked(&[1u8, 2, 3], &[0b1000_0000, 0b01], 7).unwrap();
        assert_eq!([0, 1, 2].map(|row| input.is_valid(row)), [true, true, false]);
        assert_eq!(input.missing(), 1);
    }

    #[test]
    fn ones_are_counted_wherever_they_begin_and_end() {
        let bits = [0b1010_0110, 0xff, 0b0001_1000, 0, 0b1000_0001];
        for offset in 0..40 {
            for len in 0..=40 - offset {
                let one_by_one = (offset..offset + len).filter(|b| bits[b / 8] >> (b % 8) & 1 == 1);
                assert_eq!(ones(&bits, offset, len), one_by_one.count(), "{offset} {len}");
            }
        }
    }

    #[test]
    fn truth_values_choose_their_elements() {
        let chosen = Input::selected(&[1u8, 2, 3], &[true, false, true]).unwrap();
        assert_eq!([0, 1, 2].map(|row| chosen.is_valid(row)), [true, false, true]);
        assert_eq!(chosen.missing(), 1);
        assert!(Input::selected(&[1u8], &[true]).unwrap().valid.is_none());
        let short = Input::selected(&[1u8, 2], &[true]);
        assert!(matches!(short, Err(Error::ShapeMismatch { .. })), "{short:?}");
        let bytes = Input::selected(&[1u8, 2], &[1u8, 0]);
        assert!(matches!(bytes, Err(Error::DTypeMismatch { .. })), "{bytes:?}");
        let rows = Input::selected(&[[1u8, 2]], &[[true, false]]);
        assert!(matches!(rows, Err(Error::MaskOfArray { .. })), "{rows:?}");
        let apart = View::of_strided(&[1u8, 2, 3], 0, &[2], &[2]).unwrap();
        let apart = Input::selected(apart, &[true, false]);
        assert!(matches!(apart, Err(Error::MaskOfArray { .. })), "{apart:?}");
    }

    #[test]
    fn too_few_bits_are_an_error() {
        for offset in [6, 8, 9, usize::MAX] {
            let refused = Input::masked(&[1u8, 2, 3], &[0xff], offset);
            assert!(matches!(refused, Err(Error::ShapeMismatch { .. })), "{offset}");
        }
        assert!(Input::masked::<u8>(&[], &[], 0).is_ok());
        assert!(Input::masked::<u8>(&[], &[], usize::MAX).is_ok());
    }

    #[test]
    fn without_gaps_there_is_no_mask() {
        let input = Input::masked(&[1.0, 2.0], &[0b11], 0).unwrap();
        assert!(input.valid.is_none());
    }
}
