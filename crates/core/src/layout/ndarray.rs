//! Arrays of `ndarray`, whatever their shape, order and strides.

use super::View;
use crate::element::Element;
use crate::item::Item;
use ndarray::{ArrayBase, ArrayRef, ArrayView, Data, Dimension};

fn view<'a, T: Item, D: Dimension>(array: &ArrayView<'a, T, D>) -> View<'a> {
    // Those of an axis of one element, or of an array of none, may be any numbers.
    let strides: Vec<isize> =
        array.strides().iter().map(|s| s.wrapping_mul(size_of::<T>().cast_signed())).collect();
    // SAFETY: an `ndarray` view guarantees every element that its shape and
    // strides describe, for `'a`, and for their number. An item's bytes are
    // those of its element.
    unsafe { View::from_raw(T::Element::DTYPE, array.as_ptr().cast(), array.shape(), &strides) }
}

impl<'a, T: Item, D: Dimension> From<ArrayView<'a, T, D>> for View<'a> {
    fn from(array: ArrayView<'a, T, D>) -> View<'a> {
        view(&array)
    }
}

impl<'a, T: Item, S: Data<Elem = T>, D: Dimension> From<&'a ArrayBase<S, D>> for View<'a> {
    fn from(array: &'a ArrayBase<S, D>) -> View<'a> {
        view(&array.view())
    }
}

impl<'a, T: Item, D: Dimension> From<&'a ArrayRef<T, D>> for View<'a> {
    fn from(array: &'a ArrayRef<T, D>) -> View<'a> {
        view(&array.view())
    }
}
