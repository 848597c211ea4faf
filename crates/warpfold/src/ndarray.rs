//! Answers as `ndarray` arrays.

use crate::answer::Answer;
use ndarray::{ArrayViewD, IxDyn};
use warpfold_core::{Item, Op};

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
}
