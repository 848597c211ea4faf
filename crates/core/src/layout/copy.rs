//! Copying the elements of a walk together.

use super::Traversal;

impl Traversal {
    /// The bytes from the walk's first elements to those at `position`.
    #[must_use]
    pub fn locate(&self, position: usize) -> [isize; 2] {
        let mut offset = [0isize; 2];
        let mut rest = position;
        for dim in self.dims.iter().rev() {
            let i = (rest % dim.len).cast_signed();
            rest /= dim.len;
            for (o, stride) in offset.iter_mut().zip(dim.strides) {
                *o += i * stride;
            }
        }
        offset
    }

    /// Fills `to` with the elements from `position` on, `size` bytes each, of
    /// the first array (0) or the second (1), whose walk begins at `first`.
    ///
    /// # Safety
    /// The elements of the walk that are copied, counted from `first`, are
    /// valid for reads, aligned or not.
    pub unsafe fn copy(
        &self,
        array: usize,
        first: *const u8,
        size: usize,
        position: usize,
        to: &mut [u8],
    ) {
        let inner = self.dims.last().copied();
        let (inner_len, stride) = inner.map_or((1, 0), |d| (d.len, d.strides[array]));
        let len = to.len() / size;
        let mut done = 0;
        while done < len {
            let at = position + done;
            let count = (inner_len - at % inner_len).min(len - done);
            let from = first.wrapping_offset(self.locate(at)[array]);
            let to = &mut to[done * size..(done + count) * size];
            // SAFETY: the elements of the innermost dimension from `at` on, which the
            // caller guarantees; `to` has room for `count`.
            unsafe {
                if stride == size.cast_signed() {
                    core::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), count * size);
                } else {
                    match size {
                        1 => copy_strided::<u8>(from, stride, to),
                        2 => copy_strided::<u16>(from, stride, to),
                        4 => copy_strided::<u32>(from, stride, to),
                        _ => copy_strided::<u64>(from, stride, to),
                    }
                }
            }
            done += count;
        }
    }
}

/// Fills `to` with elements that lie `stride` bytes apart.
///
/// # Safety
/// As many elements are valid for reads there, aligned or not.
unsafe fn copy_strided<W: bytemuck::Pod>(from: *const u8, stride: isize, to: &mut [u8]) {
    let mut from = from;
    for to in to.chunks_exact_mut(size_of::<W>()) {
        // SAFETY: the caller guarantees the elements.
        let word = unsafe { from.cast::<W>().read_unaligned() };
        to.copy_from_slice(bytemuck::bytes_of(&word));
        from = from.wrapping_offset(stride);
    }
}
