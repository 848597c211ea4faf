//! The device memory of one question: copies of the input, and the workspace.

use crate::buffers::Buffers;
use crate::error::{Error, Result};
use crate::question::Question;
use warpfold_core::op::Numbers;
use warpfold_cuda::{Address, Device};

/// Memory that is freed at the end.
pub(crate) struct Memory<'a> {
    pub(crate) device: &'a dyn Device,
    id: &'static str,
    buffers: Buffers<'a>,
    /// Copies of the input.
    inputs: Vec<Address>,
}

/// Allocations begin at multiples of this; so do copies of an input.
const ALIGNMENT: u64 = 256;

impl<'a> Memory<'a> {
    /// This many copies of a question's elements.
    pub(crate) fn new(
        device: &'a dyn Device,
        question: &Question,
        elements: &Numbers,
        copies: u64,
    ) -> Result<Memory<'a>> {
        let id = question.rung.id;
        let mut memory = Memory { device, id, buffers: Buffers::new(device), inputs: Vec::new() };
        let before = question.offset * question.dtype.size() as u64;
        let each = (before + elements.bytes().len() as u64).next_multiple_of(ALIGNMENT);
        let all = memory.allocate(each * copies)?;
        memory.inputs = (0..copies).map(|i| all + i * each + before).collect();
        for &input in &memory.inputs {
            memory.done(memory.buffers.copy_in(input, elements.bytes()))?;
        }
        Ok(memory)
    }

    /// Zeros instead, which need no copy.
    pub(crate) fn zeros(device: &'a dyn Device, question: &Question) -> Result<Memory<'a>> {
        let id = question.rung.id;
        let mut memory = Memory { device, id, buffers: Buffers::new(device), inputs: Vec::new() };
        let bytes = question.n * question.dtype.size() as u64;
        let input = memory.allocate(bytes)?;
        memory.done(memory.clear(input, bytes))?;
        memory.inputs = vec![input];
        Ok(memory)
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<Address> {
        self.done(self.buffers.allocate(bytes))
    }

    /// Sets some of this memory to zero.
    pub(crate) fn clear(&self, to: Address, bytes: u64) -> warpfold_cuda::Result<()> {
        self.buffers.clear(to, bytes)
    }

    /// Waits for the stream, and copies bytes of this memory to the host.
    pub(crate) fn read(&self, from: Address, to: &mut [u8]) -> Result<()> {
        self.done(self.buffers.copy_out(from, to))
    }

    /// The copy of the input whose turn it is.
    pub(crate) fn input(&self, turn: usize) -> Address {
        self.inputs[turn % self.inputs.len()]
    }

    /// Adds the rung to an error.
    pub(crate) fn done<T>(&self, result: warpfold_cuda::Result<T>) -> Result<T> {
        result.map_err(|source| Error::Device { id: self.id, source })
    }
}
