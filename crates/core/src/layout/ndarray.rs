//! Views of `ndarray` arrays.

use super::View;
use crate::element::Element;
use ndarray::{ArrayView, Dimension};

/// Any `ndarray` view is a [`View`], whatever its shape, order and strides.
impl<'a, T: Element, D: Dimension> From<ArrayView<'a, T, D>> for View<'a> {
    fn from(view: ArrayView<'a, T, D>) -> View<'a> {
        let strides: Vec<isize> =
            view.strides().iter().map(|s| s * size_of::<T>().cast_signed()).collect();
        // SAFETY: an `ndarray` view guarantees every element that its shape and strides
        // describe, for `'a`, and for their number.
        unsafe { View::from_raw(T::DTYPE, view.as_ptr().cast(), view.shape(), &strides) }
    }
}
