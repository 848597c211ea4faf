//! Copies in the host's memory of arrays that lie in a device's.

use super::in_place::failure;
use super::memory::DeviceArray;
use warpfold_core::layout::View;
use warpfold_core::{DType, Error, Result};

/// A copy of an array: its bytes from the lowest to the highest one.
#[derive(Debug)]
pub struct OnHost {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
    words: Vec<u64>,
    bytes: usize,
    /// Where the first element is.
    first: usize,
}

impl OnHost {
    /// The array.
    ///
    /// # Errors
    /// None that can happen.
    pub fn view(&self) -> Result<View<'_>> {
        let bytes = &bytemuck::cast_slice(&self.words)[..self.bytes];
        View::strided(self.dtype, bytes, self.first, &self.shape, &self.strides)
    }
}

impl DeviceArray<'_> {
    /// Copies the array; waits for it.
    pub(crate) fn to_host(&self) -> Result<OnHost> {
        let (low, bytes) = self.view().extent().map_err(failure)?;
        let too_long = || Error::DeviceMemory {
            what: format!("an array of {bytes} bytes does not fit the host's memory"),
            hint: "ask what the device answers by itself, or reduce the array in parts",
        };
        let len = usize::try_from(bytes).map_err(|_| too_long())?;
        let mut words = Vec::new();
        words.try_reserve_exact(len.div_ceil(8)).map_err(|_| too_long())?;
        words.resize(len.div_ceil(8), 0u64);
        let (_lent, stream) = (self.lend(), self.stream());
        let device = stream.opened.engine.device();
        if len > 0 {
            let to: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..len];
            if let Some(why) = device.why_unreadable(low, bytes) {
                return Err(Error::DeviceMemory {
                    what: format!("{bytes} bytes at {low:#x} cannot be read: {why}"),
                    hint: "give memory that the device of the stream can read and write",
                });
            }
            // SAFETY: who made the array has promised that its elements may be read; what
            // lies between them does so too.
            unsafe { device.copy_out(stream.stream, low, to) }.map_err(failure)?;
            device.wait(stream.stream).map_err(failure)?;
        }
        let first = usize::try_from(self.view().address - low).unwrap_or(0);
        let (shape, strides) = (self.shape().to_vec(), self.strides().to_vec());
        Ok(OnHost { dtype: self.dtype(), shape, strides, words, bytes: len, first })
    }
}
