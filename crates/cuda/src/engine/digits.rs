//! The digits of products of integers that 128 bits do not hold.
//!
//! A kernel says of such a product that it is 2^128 or more, its sign and its lowest
//! 64 bits. The exact product, which an answer in f64 is rounded from, is made of
//! the elements here, while they are still in the device's memory. Few are needed:
//! at 2^1024, which is 33 factors of 32 bits, no more digits count.

use super::Array;
use crate::Result;
use crate::device::{Address, Device, Stream};
use warpfold_core::op::{AnyState, IntProd, Kind, RawRun, State};
use warpfold_core::{DType, Element, with_element};

/// Bytes that are copied for one product, at first and at most: a copy takes long
/// enough for the first as it is.
const FIRST: usize = 4 << 10;
const MOST: usize = 1 << 20;

/// Whether kernels leave states of this kind and type that may lack digits.
pub(super) fn may_be_lost(kind: Kind, dtype: DType) -> bool {
    kind == Kind::Prod && !dtype.is_float()
}

/// Elements in a device's memory, brought back for products that lack digits.
pub(super) struct Digits<'a> {
    device: &'a dyn Device,
    stream: Stream,
    /// The bytes from `at` on, of which `held` were copied last.
    words: Vec<u64>,
    at: Address,
    held: usize,
    /// Where the bytes end that may be read ahead.
    ahead_to: Address,
}

impl<'a> Digits<'a> {
    pub(super) fn new(device: &'a dyn Device, stream: Stream) -> Digits<'a> {
        Digits { device, stream, words: Vec::new(), at: 0, held: 0, ahead_to: 0 }
    }

    /// Says that the bytes up to there may be read, so that the elements of many
    /// products come in one copy. What was copied before is no longer used.
    pub(super) fn read_ahead_to(&mut self, end: Address) {
        self.ahead_to = end;
        self.held = 0;
    }

    /// Gives a state its digits back, if it lacks any.
    ///
    /// # Safety
    /// The state is that of the array, which is in memory of this device, written by
    /// what comes before on the stream and by nobody until this returns; so are the
    /// bytes behind it up to where [`read_ahead_to`](Self::read_ahead_to) said.
    pub(super) unsafe fn restore(&mut self, state: &mut AnyState, array: Array) -> Result<()> {
        if !may_be_lost(state.kind(), state.dtype()) {
            return Ok(());
        }
        with_element!(array.dtype, T => match state.downcast_mut::<IntProd<T>>() {
            // SAFETY: passed on from the caller.
            Some(state) if state.lacks_digits() => unsafe { self.multiply(state, array) },
            _ => Ok(()),
        })
    }

    /// # Safety
    /// As for [`restore`](Self::restore).
    unsafe fn multiply<T: Element>(&mut self, state: &mut IntProd<T>, array: Array) -> Result<()> {
        let mut again = IntProd::<T>::identity(Kind::Prod);
        let mut at = array.address;
        let end = at + array.len * array.dtype.size() as u64;
        let mut most = FIRST;
        while at < end && !again.is_beyond() {
            let bytes = usize::try_from(end - at).unwrap_or(most).min(most);
            // SAFETY: bytes of the array.
            let items = unsafe { self.bytes(at, bytes)? };
            // Copies begin in a word, at an element. Otherwise the digits stay lost.
            let Some(run) = (RawRun { start: 0, items, others: &[] }).typed() else {
                return Ok(());
            };
            again.absorb(run);
            at += bytes as u64;
            most = MOST;
        }
        state.take_digits_of(&again);
        Ok(())
    }

    /// The bytes from `from` on: from the last copy if they are in it.
    ///
    /// # Safety
    /// As for [`restore`](Self::restore).
    unsafe fn bytes(&mut self, from: Address, bytes: usize) -> Result<&[u8]> {
        let end = from + bytes as u64;
        if from < self.at || end > self.at + self.held as u64 {
            let ahead = self.ahead_to.saturating_sub(from).min(MOST as u64);
            let copied = bytes.max(ahead as usize);
            if self.words.len() * 8 < copied {
                self.words.resize(copied.div_ceil(8), 0);
            }
            self.held = 0;
            let to: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut self.words)[..copied];
            // SAFETY: the caller's promise.
            unsafe { self.device.copy_out(self.stream, from, to)? };
            (self.at, self.held) = (from, copied);
        }
        let first = (from - self.at) as usize;
        Ok(&bytemuck::cast_slice(&self.words)[first..first + bytes])
    }
}
