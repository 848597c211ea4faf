//! Which axes are reduced.

use super::PerAxis;
use crate::error::{Error, Result};

/// The axes of a reduction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Axes {
    /// All of them: one answer.
    #[default]
    All,
    /// These axes; negative ones count from the end. With an empty list each element is
    /// reduced alone.
    These(Vec<isize>),
}

impl Axes {
    /// For each of `ndim` axes, whether it is reduced.
    ///
    /// # Errors
    /// [`AxisOutOfRange`](Error::AxisOutOfRange) and
    /// [`AxisRepeated`](Error::AxisRepeated).
    pub fn resolve(&self, ndim: usize) -> Result<PerAxis<bool>> {
        let Axes::These(named) = self else {
            return Ok(PerAxis::from_elem(true, ndim));
        };
        let mut reduced = PerAxis::from_elem(false, ndim);
        for &axis in named {
            let index = if axis < 0 { axis.checked_add_unsigned(ndim) } else { Some(axis) };
            let index = index
                .and_then(|i| usize::try_from(i).ok())
                .filter(|&i| i < ndim)
                .ok_or(Error::AxisOutOfRange { axis, ndim })?;
            if core::mem::replace(&mut reduced[index], true) {
                return Err(Error::AxisRepeated { axis });
            }
        }
        Ok(reduced)
    }
}

/// The shape of the answers: without the reduced axes, or with a 1 in place
/// of each.
#[must_use]
pub fn output_shape(shape: &[usize], reduced: &[bool], keepdims: bool) -> Vec<usize> {
    shape
        .iter()
        .zip(reduced)
        .filter_map(|(&n, &reduced)| match (reduced, keepdims) {
            (false, _) => Some(n),
            (true, true) => Some(1),
            (true, false) => None,
        })
        .collect()
}
