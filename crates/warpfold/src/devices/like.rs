//! What arrays are like that a question was prepared for.

use super::memory::DeviceArray;
use super::stream::DeviceStream;
use warpfold_core::{DType, Error, Result};
use warpfold_cuda::engine::{Array, DeviceView};

/// Arrays of one type, shape and strides on one stream, wherever they lie.
#[derive(Debug)]
pub(super) struct Like {
    stream: DeviceStream,
    view: DeviceView,
}

impl Like {
    pub(super) fn new(array: &DeviceArray<'_>) -> Like {
        Like { stream: array.stream().clone(), view: array.view().clone() }
    }

    pub(super) fn stream(&self) -> &DeviceStream {
        &self.stream
    }

    pub(super) fn dtype(&self) -> DType {
        self.view.dtype
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.view.shape
    }

    /// The array that it was prepared with, of elements that follow each other.
    pub(super) fn array(&self) -> Array {
        let len = if self.view.is_empty() { 0 } else { self.view.shape.iter().product() };
        Array { address: self.view.address, len: len as u64, dtype: self.view.dtype }
    }

    /// # Errors
    /// [`Error::DeviceMemory`] for other arrays.
    pub(super) fn check(&self, array: &DeviceArray<'_>) -> Result<()> {
        let (view, like) = (array.view(), &self.view);
        let refused = |what, hint| Err(Error::DeviceMemory { what, hint });
        if !array.stream().is(&self.stream) {
            return refused(
                "the array is on another stream than the one that was prepared".into(),
                "prepare the question on each stream",
            );
        }
        // A stride along an axis of one step means nothing.
        let strides = view.strides.iter().zip(&like.strides).zip(&view.shape);
        let same = view.dtype == like.dtype
            && view.shape == like.shape
            && (view.is_empty() || { strides }.all(|((a, b), &n)| n == 1 || a == b));
        if same {
            return Ok(());
        }
        refused(
            format!(
                "prepared for {} elements of shape {:?} and byte strides {:?}, not for {} of {:?} and {:?}",
                like.dtype, like.shape, like.strides, view.dtype, view.shape, view.strides
            ),
            "prepare the question for each type, shape and strides",
        )
    }
}
