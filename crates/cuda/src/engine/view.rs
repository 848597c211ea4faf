//! Arrays in a device's memory, of any strides.

use crate::device::{Address, Device};
use crate::{Error, Result};
use warpfold_core::DType;

/// An array in a device's memory: a shape, and a stride in bytes for each axis,
/// which may be negative or zero. Elements need not be aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceView {
    /// Where the element of index 0 on every axis is.
    pub address: Address,
    /// The type of the elements.
    pub dtype: DType,
    /// The shape; empty for a scalar.
    pub shape: Vec<usize>,
    /// The bytes from one step to the next, for each axis.
    pub strides: Vec<isize>,
}

impl DeviceView {
    /// An array in C order (the last axis varies fastest).
    #[must_use]
    pub fn contiguous(address: Address, dtype: DType, shape: &[usize]) -> DeviceView {
        let mut stride = dtype.size().cast_signed();
        let mut strides = vec![0; shape.len()];
        for (to, &n) in strides.iter_mut().zip(shape).rev() {
            *to = stride;
            stride = stride.saturating_mul(isize::try_from(n).unwrap_or(isize::MAX));
        }
        DeviceView { address, dtype, shape: shape.to_vec(), strides }
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Refuses what no array can be, and memory that the device cannot read.
    pub(super) fn check(&self, device: &dyn Device) -> Result<()> {
        let (first, bytes) = self.extent()?;
        match device.why_unreadable(first, bytes) {
            Some(why) if bytes > 0 => Err(self.refused(why)),
            _ => Ok(()),
        }
    }

    fn refused(&self, why: &'static str) -> Error {
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        Error::View { address: self.address, shape, strides, why }
    }

    /// Where its bytes begin, and how many there are up to the last one.
    ///
    /// # Errors
    /// [`Error::View`] for what no array can be: more elements than can be counted, bytes
    /// outside of the address space, and strides that are not as many as axes.
    pub fn extent(&self) -> Result<(Address, u64)> {
        let refused = |why| Err(self.refused(why));
        if self.shape.len() != self.strides.len() {
            return refused("there must be one stride for each axis");
        }
        // In wide arithmetic: nothing here may overflow.
        let mut low = i128::from(self.address);
        let mut high = low + self.dtype.size() as i128;
        let mut count = 1u128;
        for (&n, &stride) in self.shape.iter().zip(&self.strides) {
            // Of the axes that are not empty: there are answers to count.
            count = count.saturating_mul(n.max(1) as u128);
            let reach = (n as i128 - 1).max(0).saturating_mul(stride as i128);
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        if count > isize::MAX as u128 {
            return refused("more elements than can be counted");
        }
        // Distances within an array are counted with a sign.
        let far = high - low > isize::MAX as i128;
        if !self.is_empty() && (far || low < 0 || high > i128::from(u64::MAX)) {
            return refused("it leaves the address space");
        }
        match (u64::try_from(low), u64::try_from(high - low)) {
            (Ok(low), Ok(bytes)) if !self.is_empty() => Ok((low, bytes)),
            _ => Ok((self.address, 0)),
        }
    }
}

/// Refuses arrays, told by their type and shape, that cannot be walked side by
/// side.
pub(super) fn check_pair(left: (DType, &[usize]), right: (DType, &[usize])) -> Result<()> {
    if left.0 != right.0 {
        return Err(warpfold_core::Error::DTypeMismatch { left: left.0, right: right.0 }.into());
    }
    if left.1 != right.1 {
        let (left, right) = (left.1.to_vec(), right.1.to_vec());
        return Err(warpfold_core::Error::ShapeMismatch { left, right }.into());
    }
    Ok(())
}
