//! What slices and arrays may hold.

use crate::element::{Bool8, Element};
use bytemuck::{CheckedBitPattern, NoUninit};
use core::fmt;

mod sealed {
    pub trait Sealed {}
    impl<T: crate::Element> Sealed for T {}
    impl Sealed for bool {}
    impl Sealed for usize {}
    impl Sealed for isize {}
    #[cfg(feature = "half")]
    impl Sealed for half::f16 {}
    #[cfg(feature = "half")]
    impl Sealed for half::bf16 {}
}

/// What the memory of a slice or an array may hold: every [`Element`], and
/// `bool`, `usize` and `isize`, which are read as the element of the same bytes. With the
/// feature `half` there are `half::f16` and `half::bf16`, too.
///
/// Sealed, as [`Element`] is:
///
/// ```compile_fail,E0277
/// use warpfold_core::Item;
///
/// #[derive(Clone, Copy, Debug)]
/// #[repr(transparent)]
/// struct Metres(f64);
/// unsafe impl bytemuck::Zeroable for Metres {}
/// unsafe impl bytemuck::Pod for Metres {}
///
/// impl Item for Metres {
///     type Element = f64;
///     fn elements(items: &[Metres]) -> &[f64] {
///         bytemuck::cast_slice(items)
///     }
///     fn to_element(self) -> f64 {
///         self.0
///     }
///     fn from_element(element: f64) -> Metres {
///         Metres(element)
///     }
/// }
/// ```
pub trait Item:
    sealed::Sealed + NoUninit + CheckedBitPattern + fmt::Debug + Send + Sync + 'static
{
    /// The element of the same bytes: `Self`, or [`Bool8`] for `bool`, `u64` for
    /// `usize` on a 64-bit machine.
    type Element: Element;

    /// The same memory as elements.
    fn elements(items: &[Self]) -> &[Self::Element];

    /// This item as an element.
    fn to_element(self) -> Self::Element;

    /// The item that an element stands for.
    fn from_element(element: Self::Element) -> Self;
}

impl<T: Element> Item for T {
    type Element = T;

    #[inline(always)]
    fn elements(items: &[T]) -> &[T] {
        items
    }
    #[inline(always)]
    fn to_element(self) -> T {
        self
    }
    #[inline(always)]
    fn from_element(element: T) -> T {
        element
    }
}

impl Item for bool {
    type Element = Bool8;

    #[inline(always)]
    fn elements(items: &[bool]) -> &[Bool8] {
        bytemuck::cast_slice(items)
    }
    #[inline(always)]
    fn to_element(self) -> Bool8 {
        Bool8(u8::from(self))
    }
    #[inline(always)]
    fn from_element(element: Bool8) -> bool {
        element.0 != 0
    }
}

#[cfg(feature = "half")]
macro_rules! short_floats {
    ($($name:ident)*) => {$(
        impl Item for half::$name {
            type Element = crate::element::$name;

            #[inline(always)]
            fn elements(items: &[half::$name]) -> &[Self::Element] {
                bytemuck::cast_slice(items)
            }
            #[inline(always)]
            fn to_element(self) -> Self::Element {
                self.into()
            }
            #[inline(always)]
            fn from_element(element: Self::Element) -> half::$name {
                element.into()
            }
        }
    )*};
}
#[cfg(feature = "half")]
short_floats!(f16 bf16);

macro_rules! pointer_sized {
    ($($width:literal: $unsigned:ty, $signed:ty;)*) => {$(
        #[cfg(target_pointer_width = $width)]
        pointer_sized!(usize as $unsigned);
        #[cfg(target_pointer_width = $width)]
        pointer_sized!(isize as $signed);
    )*};
    ($t:ty as $element:ty) => {
        impl Item for $t {
            type Element = $element;

            #[inline(always)]
            fn elements(items: &[$t]) -> &[$element] {
                bytemuck::cast_slice(items)
            }
            #[inline(always)]
            fn to_element(self) -> $element {
                self as $element
            }
            #[inline(always)]
            fn from_element(element: $element) -> $t {
                element as $t
            }
        }
    };
}
pointer_sized! {
    "16": u16, i16;
    "32": u32, i32;
    "64": u64, i64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_their_elements_are_one_memory() {
        let sizes = [0usize, 7, usize::MAX];
        let elements = usize::elements(&sizes);
        assert_eq!(elements.as_ptr().addr(), sizes.as_ptr().addr());
        assert!(sizes.iter().zip(elements).all(|(&s, &e)| usize::from_element(e) == s));
        let (low, all) = (isize::MIN, [isize::MIN, -1]);
        assert_eq!(isize::from_element(low.to_element()), low);
        assert_eq!(isize::elements(&all)[1], -1);
        assert!(bool::from_element(Bool8(2)));
        assert_eq!(bool::elements(&[true, false])[0].0, 1);
    }
}
