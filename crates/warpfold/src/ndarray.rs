//! Arrays of `ndarray`, reduced and answered.

use crate::answer::Answer;
use crate::items::{Items, Token, holders};
use crate::iterators;
use crate::number::Number;
use ndarray::{Array, ArrayBase, ArrayD, ArrayRef, ArrayViewD, Data, Dimension, IxDyn};
use std::borrow::Cow;
use warpfold_core::op::Kind;
use warpfold_core::{Error, Item, Op, Result};
use warpfold_cpu::Accelerate;

/// Positions are those in C order.
impl<T: Number, D: Dimension> Items<T> for ArrayRef<T, D> {
    fn state<S: Accelerate<Item = T::Element>>(&self, kind: Kind, token: Token) -> S {
        let ordered = if kind.is_positional() { None } else { self.as_slice_memory_order() };
        match ordered.or_else(|| self.as_slice()) {
            Some(items) => items.state(kind, token),
            None => iterators::state(kind, self.iter().copied()),
        }
    }
    fn short_total(&self, token: Token) -> Option<T::Total> {
        self.as_slice_memory_order()?.short_total(token)
    }
    fn in_order(&self, _: Token) -> Cow<'_, [T]> {
        match self.as_slice() {
            Some(items) => Cow::Borrowed(items),
            None => Cow::Owned(self.iter().copied().collect()),
        }
    }
    fn count(&self, _: Token) -> usize {
        self.len()
    }
    fn axes(&self, _: Token) -> Option<&[usize]> {
        Some(self.shape())
    }
}

holders! {
    (T: Number, O: Data<Elem = T>, D: Dimension) ArrayBase<O, D> as |array| {
        let array: &ArrayRef<T, D> = array;
        array
    };
}

impl Answer {
    /// The answers to `op` as an array of the answer's shape, if `T` is their
    /// type. With the feature `ndarray`.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfold::{Op, Reduction};
    ///
    /// let table = array![[1.0, 2.0], [3.0, 5.0]];
    /// let answer = Reduction::of(Op::Mean).axis(0).run(&table)?;
    /// assert_eq!(answer.array::<f64>(Op::Mean), Some(array![2.0, 3.5].view().into_dyn()));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn array<T: Item>(&self, op: Op) -> Option<ArrayViewD<'_, T>> {
        ArrayViewD::from_shape(IxDyn(self.shape()), self.slice(op)?).ok()
    }

    /// The answers to the only operation, as an array that says by its type what they are and
    /// how many axes there are: `Array1<f64>`, `ArrayD<i64>`. Numbers of another type are
    /// converted, if that has each of them. With the feature `ndarray`.
    ///
    /// ```
    /// use ndarray::{Array1, array};
    /// use warpfold::Reduction;
    ///
    /// let table = array![[1.0, 2.0], [3.0, 5.0]];
    /// let sums: Array1<f64> = Reduction::sum().axis(0).run(&table)?.into_array()?;
    /// assert_eq!(sums, array![4.0, 7.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherAnswer`] of several operations, of `minmax` and `argminmax`, of another
    /// number of axes, and of a number that `T` does not have.
    pub fn into_array<T: Item, D: Dimension>(self) -> Result<Array<T, D>> {
        let shape = self.shape().to_vec();
        let other = |what: String| Error::OtherAnswer {
            what,
            hint: "ArrayD takes any number of axes; Array1 takes one, and Array0 none",
        };
        let array = ArrayD::from_shape_vec(IxDyn(&shape), self.try_into()?)
            .map_err(|error| other(error.to_string()))?;
        let axes = D::NDIM.unwrap_or(shape.len());
        array.into_dimensionality().map_err(|_| {
            other(format!("the answer has the shape {shape:?}, not one of {axes} axes"))
        })
    }
}
