//! What can be seen as an array: slices and what holds them.

use super::View;
use crate::item::Item;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

impl<'a, T: Item> From<&'a [T]> for View<'a> {
    fn from(items: &'a [T]) -> View<'a> {
        View::of(T::elements(items))
    }
}

impl<'a, T: Item> From<&'a mut [T]> for View<'a> {
    fn from(items: &'a mut [T]) -> View<'a> {
        View::of(T::elements(items))
    }
}

impl<'a, T: Item, const N: usize> From<&'a [T; N]> for View<'a> {
    fn from(items: &'a [T; N]) -> View<'a> {
        View::of(T::elements(items))
    }
}

macro_rules! holders {
    ($($holder:ty),*) => {$(
        impl<'a, T: Item> From<&'a $holder> for View<'a> {
            fn from(items: &'a $holder) -> View<'a> {
                View::of(T::elements(items))
            }
        }
    )*};
}
holders!(Vec<T>, Box<[T]>, Rc<[T]>, Arc<[T]>, Cow<'_, [T]>);

/// Rows of one length: an array of two axes in C order.
fn rows<T: Item, const N: usize>(rows: &[[T; N]]) -> View<'_> {
    let items = View::of(T::elements(rows.as_flattened()));
    // The shape has as many elements as the slice, however it is empty.
    items.clone().in_c_order(&[rows.len(), N]).unwrap_or(items)
}

impl<'a, T: Item, const N: usize> From<&'a [[T; N]]> for View<'a> {
    fn from(items: &'a [[T; N]]) -> View<'a> {
        rows(items)
    }
}

impl<'a, T: Item, const N: usize, const M: usize> From<&'a [[T; N]; M]> for View<'a> {
    fn from(items: &'a [[T; N]; M]) -> View<'a> {
        rows(items)
    }
}

impl<'a, T: Item, const N: usize> From<&'a Vec<[T; N]>> for View<'a> {
    fn from(items: &'a Vec<[T; N]>) -> View<'a> {
        rows(items)
    }
}

impl<'a> From<&View<'a>> for View<'a> {
    fn from(view: &View<'a>) -> View<'a> {
        view.clone()
    }
}
