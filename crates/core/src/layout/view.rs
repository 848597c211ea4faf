//! Arrays in memory, of any strides.

use crate::DType;
use crate::element::Element;
use crate::error::{Error, Result};
use core::marker::PhantomData;
use core::ops::Range;

/// A borrowed array: a shape, and a stride in bytes for each axis, which may
/// be negative or zero. Elements need not be aligned.
#[derive(Clone, Debug)]
pub struct View<'a> {
    dtype: DType,
    /// The element of index 0 on every axis.
    origin: *const u8,
    shape: Vec<usize>,
    strides: Vec<isize>,
    data: PhantomData<&'a [u8]>,
}

// SAFETY: a view only reads, through a pointer that is borrowed from memory that are
// not written meanwhile.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// A one-dimensional array.
    #[must_use]
    pub fn of<T: Element>(items: &'a [T]) -> View<'a> {
        View {
            dtype: T::DTYPE,
            origin: items.as_ptr().cast(),
            shape: vec![items.len()],
            strides: vec![size_of::<T>().cast_signed()],
            data: PhantomData,
        }
    }

    /// An array in C order (the last axis varies fastest) over all of `bytes`.
    ///
    /// # Errors
    /// [`ViewOutOfBounds`](Error::ViewOutOfBounds) if the shape does not take exactly
    /// `bytes.len()` bytes.
    pub fn from_bytes(dtype: DType, bytes: &'a [u8], shape: &[usize]) -> Result<View<'a>> {
        let view = View::strided(dtype, bytes, 0, shape, &c_strides(dtype, shape))?;
        if view.len().checked_mul(dtype.size()) == Some(bytes.len()) {
            Ok(view)
        } else {
            Err(view.out_of_bounds(0, bytes.len()))
        }
    }

    /// An array of any strides, in bytes. Its element of index 0 is at byte `offset` of
    /// `bytes`.
    ///
    /// # Errors
    /// [`ViewOutOfBounds`](Error::ViewOutOfBounds) if an element would be outside
    /// `bytes`, or if the number of strides is not that of axes.
    pub fn strided(
        dtype: DType,
        bytes: &'a [u8],
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<View<'a>> {
        let mut view = View {
            dtype,
            origin: bytes.as_ptr(),
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            data: PhantomData,
        };
        // The lowest and highest byte that an element begins at, in wide
        // arithmetic: nothing here may overflow.
        let mut low = offset as i128;
        let mut high = offset as i128;
        // Of the axes that are not empty: a shape with a 0 in it still has
        // answers to count.
        let mut count = 1u128;
        for (&n, &stride) in shape.iter().zip(strides) {
            count = count.saturating_mul(n.max(1) as u128);
            let reach = (n as i128 - 1).max(0).saturating_mul(stride as i128);
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        let fits = low >= 0 && high.saturating_add(dtype.size() as i128) <= bytes.len() as i128;
        // Broadcast axes may repeat elements, but not beyond what a count can
        // say.
        let countable = count <= isize::MAX as u128;
        let empty = shape.contains(&0);
        if shape.len() != strides.len() || !countable || !(fits || empty) {
            return Err(view.out_of_bounds(offset, bytes.len()));
        }
        if !empty {
            // Elements may lie before it: the pointer stays one to all of
            // `bytes`.
            view.origin = bytes.as_ptr().wrapping_add(offset);
        }
        tame(dtype, shape, &mut view.strides);
        Ok(view)
    }

    /// An array over a slice, with strides counted in elements.
    ///
    /// # Errors
    /// As for [`strided`](Self::strided); the error counts in bytes.
    pub fn of_strided<T: Element>(
        items: &'a [T],
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<View<'a>> {
        // What is too large for bytes is out of bounds, unless it means nothing.
        let size = size_of::<T>();
        let strides: Vec<isize> =
            strides.iter().map(|s| s.saturating_mul(size.cast_signed())).collect();
        let offset = offset.saturating_mul(size);
        View::strided(T::DTYPE, bytemuck::cast_slice(items), offset, shape, &strides)
    }

    /// An array at a pointer to its element of index 0.
    ///
    /// # Safety
    /// Every element that shape and strides (in bytes) describe is valid for
    /// reads for `'a` and not written to meanwhile; `shape` and `strides` have
    /// the same length and the product of the lengths that are not 0 fits an
    /// `isize`.
    #[must_use]
    pub unsafe fn from_raw(
        dtype: DType,
        origin: *const u8,
        shape: &[usize],
        strides: &[isize],
    ) -> View<'a> {
        let mut strides = strides.to_vec();
        tame(dtype, shape, &mut strides);
        View { dtype, origin, shape: shape.to_vec(), strides, data: PhantomData }
    }

    /// The same elements, which follow each other in memory, in another shape;
    /// `None` if that has another number of elements.
    pub(super) fn in_c_order(mut self, shape: &[usize]) -> Option<View<'a>> {
        let len = shape.iter().try_fold(1usize, |len, &n| len.checked_mul(n))?;
        if len != self.len() || self.contiguous().is_none() {
            return None;
        }
        self.strides = c_strides(self.dtype, shape);
        if len == 0 {
            self.strides.fill(0);
        }
        self.shape = shape.to_vec();
        Some(self)
    }

    /// The elements from one index of an axis to before another; `None` if there is no such
    /// axis, or if it is not as long.
    ///
    /// ```
    /// use warpfold_core::layout::View;
    ///
    /// let table = View::of_strided(&[1, 2, 3, 4, 5, 6], 0, &[2, 3], &[3, 1])?;
    /// let right = table.part(1, 1..3).expect("there are three columns");
    /// assert_eq!((right.shape(), right.len()), (&[2, 2][..], 4));
    /// assert!(table.part(0, 1..3).is_none() && table.part(2, 0..1).is_none());
    /// # Ok::<(), warpfold_core::Error>(())
    /// ```
    #[must_use]
    pub fn part(&self, axis: usize, range: Range<usize>) -> Option<View<'a>> {
        if range.start > range.end || range.end > *self.shape.get(axis)? {
            return None;
        }
        let mut part = self.clone();
        part.shape[axis] = range.len();
        if part.is_empty() {
            part.strides.fill(0);
        } else {
            let offset = self.strides[axis].wrapping_mul(range.start.cast_signed());
            part.origin = self.origin.wrapping_offset(offset);
        }
        Some(part)
    }

    fn out_of_bounds(&self, offset: usize, len: usize) -> Error {
        Error::ViewOutOfBounds {
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            offset,
            len,
        }
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The strides in bytes. Where they mean nothing they are not those that were given: all
    /// are 0 if there are no elements, and an axis of one element has the stride of C order.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Checks that another array has the same type and shape.
    ///
    /// # Errors
    /// [`DTypeMismatch`](Error::DTypeMismatch) or
    /// [`ShapeMismatch`](Error::ShapeMismatch).
    pub fn check_pair(&self, other: &View<'_>) -> Result<()> {
        if self.dtype != other.dtype {
            return Err(Error::DTypeMismatch { left: self.dtype, right: other.dtype });
        }
        if self.shape != other.shape {
            let (left, right) = (self.shape.clone(), other.shape.clone());
            return Err(Error::ShapeMismatch { left, right });
        }
        Ok(())
    }

    /// The address of the element of index 0 on every axis.
    #[must_use]
    pub fn origin(&self) -> *const u8 {
        self.origin
    }

    /// Fills `to` with elements of a view of one axis, from index `first` on.
    ///
    /// # Panics
    /// If the view has another number of axes, or fewer elements from there on than
    /// `to` has room for; if `to` ends within an element.
    pub fn read_column(&self, first: usize, to: &mut [u8]) {
        let (&[len], &[stride]) = (&self.shape[..], &self.strides[..]) else {
            panic!("a view of {} axes is no column", self.shape.len())
        };
        let size = self.dtype.size();
        assert!(to.len().is_multiple_of(size), "{} bytes end within an element", to.len());
        let after = first.checked_add(to.len() / size);
        assert!(after.is_some_and(|after| after <= len), "{len} elements end before {after:?}");
        for (row, to) in (first..).zip(to.chunks_exact_mut(size)) {
            let from = self.origin.wrapping_offset(row.cast_signed() * stride);
            // SAFETY: the constructors made sure that element `row`, which is one of
            // `len`, may be read, aligned or not.
            let element = unsafe { core::slice::from_raw_parts(from, size) };
            to.copy_from_slice(element);
        }
    }

    /// The elements' bytes, if they are contiguous in C order and aligned for their
    /// type.
    #[must_use]
    pub fn contiguous(&self) -> Option<&'a [u8]> {
        let mut expected = self.dtype.size().cast_signed();
        for (&n, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if n != 1 && stride != expected && !self.is_empty() {
                return None;
            }
            expected = expected.saturating_mul(n.cast_signed());
        }
        if self.is_empty() {
            return Some(&[]);
        }
        if !self.origin.addr().is_multiple_of(self.dtype.size()) {
            return None;
        }
        // SAFETY: the constructors made sure that every element may be read,
        // and the strides say that they are neighbours.
        Some(unsafe { core::slice::from_raw_parts(self.origin, self.len() * self.dtype.size()) })
    }
}

/// Makes strides that mean nothing ones that can be counted with, whatever they are.
fn tame(dtype: DType, shape: &[usize], strides: &mut [isize]) {
    if shape.contains(&0) {
        return strides.fill(0);
    }
    let size = dtype.size().cast_signed();
    let mut natural = size;
    for (&n, stride) in shape.iter().zip(strides).rev() {
        if n == 1 {
            *stride = natural;
        }
        natural = stride.checked_mul(n.cast_signed()).unwrap_or(size);
    }
}

/// The strides in bytes of an array in C order.
fn c_strides(dtype: DType, shape: &[usize]) -> Vec<isize> {
    let mut stride = dtype.size().cast_signed();
    let mut strides: Vec<isize> = shape
        .iter()
        .rev()
        .map(|&n| {
            let this = stride;
            stride = stride.saturating_mul(isize::try_from(n).unwrap_or(isize::MAX));
            this
        })
        .collect();
    strides.reverse();
    strides
}
