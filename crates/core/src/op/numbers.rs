//! Many numbers of one type.

use super::Scalar;
use super::large_pages;
use crate::DType;
use crate::element::Element;
use crate::item::Item;

/// A vector of numbers whose type is known at run time.
#[derive(Clone, Debug)]
pub struct Numbers {
    dtype: DType,
    /// Whole words, so that elements of every type are aligned.
    words: Vec<u64>,
    len: usize,
}

impl Numbers {
    /// `len` zeros.
    ///
    /// # Panics
    /// As `vec![0; len]` does, if there are not that many bytes.
    #[must_use]
    pub fn zeros(dtype: DType, len: usize) -> Numbers {
        let words = vec![0; len.saturating_mul(dtype.size()).div_ceil(8)];
        large_pages::ask_for(&words);
        Numbers { dtype, words, len }
    }

    /// The numbers of a slice.
    #[must_use]
    pub fn of<T: Item>(items: &[T]) -> Numbers {
        let mut numbers = Numbers::zeros(T::Element::DTYPE, items.len());
        numbers.bytes_mut().copy_from_slice(bytemuck::cast_slice(items));
        numbers
    }

    /// The type of the numbers.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The numbers' bytes in native order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len * self.dtype.size()]
    }

    /// The numbers' bytes in native order.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len * self.dtype.size()]
    }

    /// The numbers as a slice, if `T` is their type: `bool` for truth values,
    /// `usize` or `u64` for positions.
    #[must_use]
    pub fn as_slice<T: Item>(&self) -> Option<&[T]> {
        if T::Element::DTYPE != self.dtype {
            return None;
        }
        bytemuck::checked::try_cast_slice(self.bytes()).ok()
    }

    /// The numbers as a slice, if `T` is their type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        if T::DTYPE == self.dtype {
            bytemuck::try_cast_slice_mut(self.bytes_mut()).ok()
        } else {
            None
        }
    }

    /// The number at `index`, if there are as many.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Scalar> {
        let size = self.dtype.size();
        let bytes = self.bytes().chunks_exact(size).nth(index)?;
        let mut word = [0; 8];
        if cfg!(target_endian = "little") {
            word[..size].copy_from_slice(bytes);
        } else {
            word[8 - size..].copy_from_slice(bytes);
        }
        Some(Scalar::from_bits(self.dtype, u64::from_ne_bytes(word)))
    }

    /// Writes the bits of a number of this type.
    #[inline]
    pub fn set_bits(bytes: &mut [u8], dtype: DType, index: usize, bits: u64) {
        let size = dtype.size();
        let word = if cfg!(target_endian = "little") { bits } else { bits << (64 - 8 * size) };
        if let Some(to) = bytes.get_mut(index * size..(index + 1) * size) {
            to.copy_from_slice(&word.to_ne_bytes()[..size]);
        }
    }

    /// The numbers one by one.
    pub fn iter(&self) -> impl Iterator<Item = Scalar> + '_ {
        (0..self.len).filter_map(|i| self.get(i))
    }

    /// Appends other numbers of the same type; of another type they are
    /// ignored.
    pub fn append(&mut self, other: &Numbers) {
        if other.dtype != self.dtype {
            return;
        }
        let old = self.len * self.dtype.size();
        self.len += other.len;
        self.words.resize((self.len * self.dtype.size()).div_ceil(8), 0);
        self.bytes_mut()[old..].copy_from_slice(other.bytes());
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype && self.bytes() == other.bytes()
    }
}
impl Eq for Numbers {}
