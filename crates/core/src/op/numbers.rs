//! Many numbers of one type.

use super::{Decimal, Scalar, large_pages};
use crate::DType;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::item::Item;
use core::mem::{ManuallyDrop, MaybeUninit};

/// A vector of numbers whose type is known at run time.
#[derive(Clone, Debug)]
pub struct Numbers {
    dtype: DType,
    /// Whole words, so that elements of every type are aligned.
    words: Vec<u64>,
    len: usize,
    /// What the numbers are exactly, where some are decimals beyond 64 bits: as elements they are
    /// rounded.
    exact: Option<Box<[Decimal]>>,
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
        Numbers { dtype, words, len, exact: None }
    }

    /// The numbers of a slice.
    #[must_use]
    pub fn of<T: Item>(items: &[T]) -> Numbers {
        let mut numbers = Numbers::zeros(T::Element::DTYPE, items.len());
        numbers.bytes_mut().copy_from_slice(bytemuck::cast_slice(items));
        numbers
    }

    /// Decimals, which may be beyond 64 bits. As elements they are the nearest f64.
    #[must_use]
    pub fn of_decimals(decimals: Vec<Decimal>) -> Numbers {
        let rounded: Vec<f64> = decimals.iter().map(|decimal| decimal.to_f64()).collect();
        Numbers { exact: Some(decimals.into()), ..Numbers::of(&rounded) }
    }

    /// The decimals, if some are beyond 64 bits.
    #[must_use]
    pub fn decimals(&self) -> Option<&[Decimal]> {
        self.exact.as_deref()
    }

    /// Numbers some of which are decimals beyond 64 bits, and all others integers of the same
    /// unit, as such decimals; `None` where there are none.
    #[must_use]
    pub fn of_wide(scalars: impl Iterator<Item = Scalar> + Clone) -> Option<Numbers> {
        let digits = scalars.clone().find_map(|number| match number {
            Scalar::Decimal(decimal) => Some(decimal.digits()),
            _ => None,
        })?;
        let decimal = |number: Scalar| match number {
            Scalar::Decimal(decimal) => decimal,
            Scalar::Int(integer, _) => Decimal::of(integer.into(), digits),
            other => Decimal::of(other.to_bits().into(), digits),
        };
        Some(Numbers::of_decimals(scalars.map(decimal).collect()))
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
        if let Some(exact) = &self.exact {
            return exact.get(index).copied().map(Scalar::Decimal);
        }
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
    ///
    /// # Errors
    /// [`Error::TooManyOutputs`] where there is no memory for all: nothing is changed then.
    pub fn append(&mut self, other: &Numbers) -> Result<()> {
        if other.dtype != self.dtype || other.exact.is_some() != self.exact.is_some() {
            return Ok(());
        }
        let len = self.len.saturating_add(other.len);
        let more = len.saturating_mul(self.dtype.size()).div_ceil(8) - self.words.len();
        if self.words.try_reserve(more).is_err() && self.words.try_reserve_exact(more).is_err() {
            return Err(Error::TooManyOutputs { outputs: len });
        }
        if let (Some(all), Some(others)) = (&mut self.exact, &other.exact) {
            *all = all.iter().chain(others).copied().collect();
        }
        let old = self.len * self.dtype.size();
        self.len += other.len;
        self.words.resize((self.len * self.dtype.size()).div_ceil(8), 0);
        self.bytes_mut()[old..].copy_from_slice(other.bytes());
        Ok(())
    }
}

/// Memory for numbers that are still to be written: zeros would be written to all of it before.
#[derive(Debug)]
pub struct Unwritten {
    /// The type of the numbers.
    pub dtype: DType,
    /// How many there will be.
    pub len: usize,
    words: Vec<MaybeUninit<u64>>,
}

impl Unwritten {
    /// Memory for so many.
    ///
    /// # Panics
    /// As [`Numbers::zeros`] does.
    #[must_use]
    pub fn new(dtype: DType, len: usize) -> Unwritten {
        let mut words = Vec::new();
        // No word beyond the numbers', which nobody would write.
        words.resize_with(len.saturating_mul(dtype.size()).div_ceil(8), MaybeUninit::uninit);
        // Its end may be no number's.
        if let Some(last) = words.last_mut() {
            last.write(0);
        }
        large_pages::ask_for(&words);
        Unwritten { dtype, words, len }
    }

    /// Where they go.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast()
    }

    /// The numbers.
    ///
    /// # Safety
    /// All were written.
    #[must_use]
    pub unsafe fn written(self) -> Numbers {
        let Unwritten { dtype, words, len } = self;
        let mut words = ManuallyDrop::new(words);
        let (start, count, capacity) = (words.as_mut_ptr(), words.len(), words.capacity());
        // SAFETY: the parts of a vector that is not dropped, whose words were written.
        let words = unsafe { Vec::from_raw_parts(start.cast::<u64>(), count, capacity) };
        Numbers { dtype, words, len, exact: None }
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype && self.exact == other.exact && self.bytes() == other.bytes()
    }
}
impl Eq for Numbers {}
