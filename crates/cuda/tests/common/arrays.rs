//! Arrays in a device's memory, and what their states must be, element by element.

use warpfold_core::op::{AnyState, Kind, RawRun, Run, State};
use warpfold_core::{DType, Element, with_state};
use warpfold_cuda::engine::Array;
use warpfold_cuda::{Buffer, Device, Stream};

/// The state of a run's elements, whose first one has the position `start`.
pub(crate) fn state_of(
    kind: Kind,
    dtype: DType,
    start: u64,
    items: &[u8],
    others: &[u8],
) -> AnyState {
    let run = RawRun { start, items, others };
    with_state!(kind, dtype,
        S => {
            let mut state = <S as State>::identity(kind);
            let run: Run<'_, <S as State>::Item> = run.typed().expect("aligned");
            state.absorb(run);
            AnyState::from(state)
        },
        else => panic!("no {kind:?} of {dtype}"))
}

/// An array in a device's memory that begins `offset` elements behind a multiple
/// of 256 bytes and ends where the allocation ends.
pub(crate) struct Placed<'a> {
    /// Kept as long as the array.
    _buffer: Buffer<'a>,
    pub(crate) array: Array,
}

impl<'a> Placed<'a> {
    pub(crate) fn new<T: Element>(
        device: &'a dyn Device,
        items: &[T],
        offset: usize,
    ) -> Placed<'a> {
        let bytes: &[u8] = bytemuck::cast_slice(items);
        let before = (offset * size_of::<T>()) as u64;
        let buffer = Buffer::new(device, before + bytes.len() as u64).expect("enough memory");
        buffer.copy_in(Stream::DEFAULT, before, bytes).expect("a copy");
        let address = buffer.address() + before;
        let array = Array { address, len: items.len() as u64, dtype: T::DTYPE };
        Placed { _buffer: buffer, array }
    }
}
