//! A column of numbers, some rows at a time.

use core::ops::Range;
use warpfold_core::layout::{Input, View};
use warpfold_core::{DType, Element, Error, Result};

/// An array of one axis.
pub(super) struct Column<'a> {
    view: View<'a>,
    /// All elements, if they are neighbours.
    bytes: Option<&'a [u8]>,
}

/// How many rows an array has.
///
/// # Errors
/// An array of another number of axes than one.
pub(super) fn check_shape(shape: &[usize]) -> Result<usize> {
    match shape {
        &[rows] => Ok(rows),
        _ => Err(Error::Groups {
            what: format!("an array of shape {shape:?} is no column of keys or of values"),
            hint: "groups are made of columns: give arrays of one axis".into(),
        }),
    }
}

impl<'a> Column<'a> {
    /// # Errors
    /// An array of something else than numbers, or of another number of axes.
    pub(super) fn new(input: &'a Input<'_>) -> Result<Column<'a>> {
        Column::of(input.view()?)
    }

    fn of(view: View<'a>) -> Result<Column<'a>> {
        check_shape(view.shape())?;
        Ok(Column { bytes: view.contiguous(), view })
    }

    pub(super) fn rows(&self) -> usize {
        self.view.len()
    }

    pub(super) fn dtype(&self) -> DType {
        self.view.dtype()
    }

    /// The elements of rows, aligned: where they are not neighbours, copied to `buffer`.
    pub(super) fn bytes<'s>(&'s self, rows: Range<usize>, buffer: &'s mut Vec<u64>) -> &'s [u8] {
        let size = self.dtype().size();
        if let Some(bytes) = self.bytes {
            return &bytes[rows.start * size..rows.end * size];
        }
        let len = rows.len() * size;
        buffer.resize(len.div_ceil(8), 0);
        let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(buffer)[..len];
        self.view.read_column(rows.start, bytes);
        bytes
    }

    /// The same as elements.
    ///
    /// # Panics
    /// If `T` is not their type.
    pub(super) fn typed<'s, T: Element>(
        &'s self,
        rows: Range<usize>,
        buffer: &'s mut Vec<u64>,
    ) -> &'s [T] {
        assert_eq!(T::DTYPE, self.dtype());
        let bytes = self.bytes(rows, buffer);
        // An empty slice may have any address; a cast would ask for alignment.
        if bytes.is_empty() { &[] } else { bytemuck::cast_slice(bytes) }
    }
}
