//! What the functions take: numbers, whatever holds them.

use crate::functions::isa;
use crate::number::Number;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use warpfold_core::op::Kind;
use warpfold_cpu::{Accelerate, Slices, Threads, accelerated};

mod sealed {
    /// Nobody else can name it.
    #[derive(Clone, Copy, Debug)]
    pub struct Token;
}
pub(crate) use sealed::Token;

/// What holds numbers in memory: slices, arrays, vectors, boxed and shared slices, and with
/// the feature `ndarray` arrays and views of any number of axes. By value or by reference.
///
/// ```
/// let prices = vec![0.1, 0.2, 0.3];
/// assert_eq!(warpfold::sum(&prices[1..]), 0.5);
/// assert_eq!(warpfold::sum(&prices), 0.6);
/// assert_eq!(warpfold::sum([1i32, 2, 3]), 6);
/// assert_eq!(warpfold::sum(prices), 0.6);
/// ```
///
/// Of a type of one's own that holds a slice, `&x[..]` is a slice. Iterators have
/// [`ExactSum`](crate::ExactSum), rows and options what the compiler says of them:
///
/// ```compile_fail,E0277
/// let total: f64 = warpfold::sum([1.0, 2.0].iter());
/// ```
/// ```compile_fail,E0277
/// let total: f64 = warpfold::sum(&[[1.0, 2.0], [3.0, 4.0]]);
/// ```
/// ```compile_fail,E0277
/// let total: f64 = warpfold::sum(&[Some(1.0), None]);
/// ```
///
/// Sealed: nobody else implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no numbers that warpfold reduces",
    label = "neither a slice, an array nor a vector of numbers",
    note = "slices, arrays, vectors, boxed and shared slices are reduced, by value or by reference; of anything else that derefs to a slice it is `&x[..]`",
    note = "numbers that an iterator yields: `use warpfold::ExactSum;` and `iter.exact_sum()`; those of rayon: `iter.sum::<warpfold::Accumulator<f64>>().finish()?`",
    note = "arrays of ndarray: the feature `ndarray` of warpfold; columns with missing values, Arrow arrays and other views: `Reduction::sum().run(&x)?.try_into()?`"
)]
pub trait Items<T: Number> {
    /// The state of all numbers.
    #[doc(hidden)]
    fn state<S: Accelerate<Item = T::Element>>(&self, kind: Kind, token: Token) -> S;

    /// Their sum, if they are so few that it needs no state.
    #[doc(hidden)]
    fn short_total(&self, token: Token) -> Option<T::Total>;

    /// The numbers in C order.
    #[doc(hidden)]
    fn in_order(&self, token: Token) -> Cow<'_, [T]>;

    /// How many there are.
    #[doc(hidden)]
    fn count(&self, token: Token) -> usize;

    /// How many there are along each axis, where there may be several.
    #[doc(hidden)]
    fn axes(&self, token: Token) -> Option<&[usize]>;
}

impl<T: Number> Items<T> for [T] {
    #[inline]
    fn state<S: Accelerate<Item = T::Element>>(&self, kind: Kind, _: Token) -> S {
        accelerated(kind, Slices::one(T::elements(self)), isa(), Threads::All)
    }
    #[inline]
    fn short_total(&self, _: Token) -> Option<T::Total> {
        T::short_total(self)
    }
    #[inline]
    fn in_order(&self, _: Token) -> Cow<'_, [T]> {
        Cow::Borrowed(self)
    }
    #[inline]
    fn count(&self, _: Token) -> usize {
        self.len()
    }
    #[inline]
    fn axes(&self, _: Token) -> Option<&[usize]> {
        None
    }
}

/// Holders of what is itself [`Items`].
macro_rules! holders {
    ($(($($generics:tt)*) $holder:ty as |$it:ident| $inner:expr;)*) => {$(
        impl<$($generics)*> Items<T> for $holder {
            #[inline]
            fn state<S: Accelerate<Item = T::Element>>(&self, kind: Kind, token: Token) -> S {
                let $it = self;
                $inner.state(kind, token)
            }
            #[inline]
            fn short_total(&self, token: Token) -> Option<T::Total> {
                let $it = self;
                $inner.short_total(token)
            }
            #[inline]
            fn in_order(&self, token: Token) -> Cow<'_, [T]> {
                let $it = self;
                $inner.in_order(token)
            }
            #[inline]
            fn count(&self, token: Token) -> usize {
                let $it = self;
                $inner.count(token)
            }
            #[inline]
            fn axes(&self, token: Token) -> Option<&[usize]> {
                let $it = self;
                $inner.axes(token)
            }
        }
    )*};
}
#[cfg(feature = "ndarray")]
pub(crate) use holders;

holders! {
    (T: Number, const N: usize) [T; N] as |items| items[..];
    (T: Number) Vec<T> as |items| items[..];
    (T: Number) Cow<'_, [T]> as |items| items[..];
    (T: Number, I: Items<T> + ?Sized) &I as |items| (**items);
    (T: Number, I: Items<T> + ?Sized) &mut I as |items| (**items);
    (T: Number, I: Items<T> + ?Sized) Box<I> as |items| (**items);
    (T: Number, I: Items<T> + ?Sized) Rc<I> as |items| (**items);
    (T: Number, I: Items<T> + ?Sized) Arc<I> as |items| (**items);
}
