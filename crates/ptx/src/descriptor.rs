//! What kernels are told of memory that is more than bytes: tensors that are copied tile by tile, textures and surfaces.
//!
//! Drivers lay out such descriptors as they like and tell nobody. The layouts here are this crate's own: encode them with [`TensorMap::encode`] and
//! [`Image::encode`].
//!
//! - A [`TensorMap`] is passed by value, as the struct `CUtensorMap` is, or lies in global or constant memory.
//! - An [`Image`] lies in global memory, and its address is the handle: what `cudaTextureObject_t` and `cudaSurfaceObject_t` are.
//!
//! Both describe memory that lies row by row in a buffer, so that what a kernel stores there can be read as from any buffer.

mod image;
mod tensor_map;

pub use image::{Addressing, IMAGE_BYTES, Image, Texel};
pub use tensor_map::{Im2col, Swizzle, TENSOR_MAP_BYTES, TensorMap};

/// Why a descriptor cannot be made, or is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorError(pub(crate) String);

impl core::fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for DescriptorError {}

impl DescriptorError {
    /// What is wrong, in words.
    #[must_use]
    pub fn new(what: impl Into<String>) -> DescriptorError {
        DescriptorError(what.into())
    }
}

fn refuse<T>(what: impl Into<String>) -> Result<T, DescriptorError> {
    Err(DescriptorError(what.into()))
}

/// The bytes of a descriptor, as they are written one after the other.
struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let (now, later) = core::mem::take(&mut self.0).split_at_mut(bytes.len());
        now.copy_from_slice(bytes);
        self.0 = later;
    }
}

/// The bytes of a descriptor, as they are read one after the other.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (now, later) = self.0.split_at(N);
        self.0 = later;
        let mut bytes = [0; N];
        bytes.copy_from_slice(now);
        bytes
    }

    fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
