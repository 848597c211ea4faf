//! Arrays in a device's memory, as reductions take and leave them.

use super::in_place::failure;
use super::stream::DeviceStream;
use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;
use warpfold_core::{DType, Error, Result};
use warpfold_cuda::engine::DeviceView;

/// Memory of other code. What `lend` gives is held while it is used: others wait for that.
pub(crate) trait Lent: Send + Sync {
    fn lend(&self) -> Box<dyn Held + '_>;
}

/// The same for memory that is written.
pub(crate) trait LentMut {
    fn lend(&mut self) -> Box<dyn Held + '_>;
}

/// What is held while memory is used.
pub(crate) trait Held {}
impl<T> Held for T {}

/// An array in a device's memory: what a [`Reduction`](crate::Reduction) takes in the
/// place of an array in the host's.
///
/// It has a shape and a stride for each axis, and a stream: the array is reduced behind
/// all work on that. With the feature `cudarc`, `DeviceArray::of` makes one of a slice or
/// a view.
#[derive(Clone)]
pub struct DeviceArray<'a> {
    stream: DeviceStream,
    view: DeviceView,
    lent: Option<Arc<dyn Lent + 'a>>,
    memory: PhantomData<&'a ()>,
}

impl<'a> DeviceArray<'a> {
    /// Elements one after the other in C order (the last axis varies fastest), from
    /// `address` on.
    ///
    /// # Errors
    /// [`Error::DeviceMemory`] for a null pointer to elements and for more bytes than there
    /// are addresses.
    ///
    /// # Safety
    /// As for [`from_raw_strided`](Self::from_raw_strided).
    pub unsafe fn from_raw(
        dtype: DType,
        address: u64,
        shape: &[usize],
        stream: &DeviceStream,
    ) -> Result<DeviceArray<'a>> {
        DeviceArray::new(DeviceView::contiguous(address, dtype, shape), stream, None)
    }

    /// An array whose element of index 0 on every axis is at `address`. The strides are the
    /// bytes from one step along an axis to the next: negative, zero and overlapping ones
    /// are fine, and elements need not be aligned.
    ///
    /// # Errors
    /// Those of [`from_raw`](Self::from_raw); a number of strides that is not that of axes.
    ///
    /// # Safety
    /// Every element is in memory that the stream's device can read. For `'a`, and until
    /// the work that reads the array is done, nothing frees that memory or writes to it but
    /// what comes before on the stream.
    pub unsafe fn from_raw_strided(
        dtype: DType,
        address: u64,
        shape: &[usize],
        strides: &[isize],
        stream: &DeviceStream,
    ) -> Result<DeviceArray<'a>> {
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        DeviceArray::new(DeviceView { address, dtype, shape, strides }, stream, None)
    }

    pub(crate) fn new(
        view: DeviceView,
        stream: &DeviceStream,
        lent: Option<Arc<dyn Lent + 'a>>,
    ) -> Result<DeviceArray<'a>> {
        view.extent().map_err(failure)?;
        if view.address == 0 && !view.is_empty() {
            return Err(Error::DeviceMemory {
                what: format!("a null pointer to elements of shape {:?}", view.shape),
                hint: "only an array without elements may be nowhere",
            });
        }
        Ok(DeviceArray { stream: stream.clone(), view, lent, memory: PhantomData })
    }

    /// The same elements in another shape, in C order.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] for a shape of another number of elements, and for an array
    /// whose elements do not follow each other in C order.
    pub fn reshaped(&self, shape: &[usize]) -> Result<DeviceArray<'a>> {
        let len = shape.iter().try_fold(1usize, |len, &n| len.checked_mul(n));
        if len != Some(self.len()) || !self.is_contiguous() {
            let (left, right) = (self.view.shape.clone(), shape.to_vec());
            return Err(Error::ShapeMismatch { left, right });
        }
        let view = DeviceView::contiguous(self.view.address, self.view.dtype, shape);
        DeviceArray::new(view, &self.stream, self.lent.clone())
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.view.dtype
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.view.shape
    }

    /// The bytes from one step to the next, for each axis.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        &self.view.strides
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.view.shape.iter().product() }
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.view.is_empty()
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &DeviceStream {
        &self.stream
    }

    pub(crate) fn view(&self) -> &DeviceView {
        &self.view
    }

    /// Whether the elements follow each other in C order.
    pub(crate) fn is_contiguous(&self) -> bool {
        let DeviceView { address, dtype, shape, strides } = &self.view;
        let dense = DeviceView::contiguous(*address, *dtype, shape);
        let axes = shape.iter().zip(strides.iter().zip(&dense.strides));
        self.is_empty() || axes.into_iter().all(|(&n, (stride, dense))| n == 1 || stride == dense)
    }

    /// What is held while the elements are read.
    pub(crate) fn lend(&self) -> Option<Box<dyn Held + '_>> {
        self.lent.as_ref().map(|lent| lent.lend())
    }
}

impl fmt::Debug for DeviceArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceArray")
            .field("stream", &self.stream)
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

/// Memory of a device that answers go to: numbers one after the other, one for each output
/// in C order.
pub struct DeviceArrayMut<'a> {
    stream: DeviceStream,
    dtype: DType,
    address: u64,
    len: usize,
    lent: Option<Box<dyn LentMut + 'a>>,
    memory: PhantomData<&'a mut ()>,
}

impl<'a> DeviceArrayMut<'a> {
    /// Room for `len` numbers from `address` on.
    ///
    /// # Errors
    /// [`Error::DeviceMemory`] for a null pointer, an address that is not aligned for the
    /// type, and more bytes than there are addresses.
    ///
    /// # Safety
    /// The numbers are in memory that the stream's device can write. For `'a`, and until
    /// the work that writes them is done, nobody frees that memory, and nobody uses it but
    /// on the stream.
    pub unsafe fn from_raw(
        dtype: DType,
        address: u64,
        len: usize,
        stream: &DeviceStream,
    ) -> Result<DeviceArrayMut<'a>> {
        DeviceArrayMut::new(dtype, address, len, stream, None)
    }

    pub(crate) fn new(
        dtype: DType,
        address: u64,
        len: usize,
        stream: &DeviceStream,
        lent: Option<Box<dyn LentMut + 'a>>,
    ) -> Result<DeviceArrayMut<'a>> {
        DeviceView::contiguous(address, dtype, &[len]).extent().map_err(failure)?;
        let refused = |what: String, hint| Err(Error::DeviceMemory { what, hint });
        if address == 0 && len > 0 {
            return refused(
                format!("a null pointer to room for {len} answers"),
                "only room for no answers may be nowhere",
            );
        }
        if !address.is_multiple_of(dtype.size() as u64) {
            return refused(
                format!("answers of {dtype} cannot go to {address:#x}"),
                "give memory that is aligned for the type",
            );
        }
        let stream = stream.clone();
        Ok(DeviceArrayMut { stream, dtype, address, len, lent, memory: PhantomData })
    }

    /// The type of the numbers.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How many numbers there is room for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is room for none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &DeviceStream {
        &self.stream
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The first byte, and how many there are.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.address, (self.len * self.dtype.size()) as u64)
    }

    /// What is held while the numbers are written.
    pub(crate) fn lend(&mut self) -> Option<Box<dyn Held + '_>> {
        self.lent.as_mut().map(|lent| lent.lend())
    }
}

impl fmt::Debug for DeviceArrayMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceArrayMut { stream, dtype, address, len, .. } = self;
        f.debug_struct("DeviceArrayMut")
            .field("stream", stream)
            .field("dtype", dtype)
            .field("address", address)
            .field("len", len)
            .finish_non_exhaustive()
    }
}
