//! Runs of elements in the host's memory, absorbed by a device as they come.
//!
//! ```text
//! host     put together run 2 │ put together run 3 │ merge the states of run 1 │ ...
//! copies         run 1 ──►    │      run 2 ──►     │
//! kernels          run 0      │  run 1: each kind  │
//! ```
//!
//! A run goes into the pinned memory of a slot; a copy to the device, a launch for
//! each kind and a copy of the payloads back follow on the slot's stream, and
//! nobody waits for them before the slot is needed again.

use super::digits::Digits;
use super::slot::{LEAST, Slot};
use super::{Array, Engine, Input, output};
use crate::device::Address;
use crate::{Error, Result};
use core::ops::Range;
use core::{iter, mem};
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind, RawRun};

/// Slots in turn: one that the host fills while another's run is reduced.
const SLOTS: usize = 2;

/// The most bytes of a slot where nobody says otherwise: a copy of as many takes
/// much longer than the launches behind it.
const ROOM: usize = 4 << 20;

/// States of one element type, at work on a device.
///
/// Whatever goes wrong, also on the device and later, is an error of the next
/// call, and of [`take_states`](Self::take_states) at the latest.
pub struct Feeder {
    engine: Arc<Engine>,
    dtype: DType,
    /// One or two: `dot` has pairs.
    arrays: usize,
    states: Vec<AnyState>,
    /// The most bytes of a slot.
    room: usize,
    slots: Vec<Busy>,
    /// Whose turn is next.
    turn: usize,
    failed: Option<Error>,
}

/// Says where the device copies a range of a run's bytes from, given memory of
/// the slot to put them in; nowhere ends the run.
type Provide<'a> = dyn FnMut(Range<usize>, [&mut [u8]; 2]) -> Option<[*const u8; 2]> + 'a;

/// A slot, and the run that is on its way in it.
struct Busy {
    slot: Slot,
    run: Option<OnItsWay>,
}

/// A run in a slot's device memory, and its output.
struct OnItsWay {
    input: Input,
    output: Output,
}

/// Where kernels put the output of a run.
struct Output {
    /// The states that absorb it, by their places, and the bytes of each.
    places: Vec<(usize, Range<usize>)>,
    /// All bytes.
    bytes: usize,
}

impl Engine {
    /// A feeder of states of these kinds, over elements of one array or over
    /// pairs of two. Its kernels are loaded now, its memory is taken when it is
    /// needed.
    ///
    /// # Errors
    /// [`Error::NoKernel`]; what the device says about the kernels.
    pub fn feeder(self: &Arc<Self>, kinds: &[Kind], dtype: DType, arrays: usize) -> Result<Feeder> {
        let mut states = Vec::with_capacity(kinds.len());
        for &kind in kinds {
            self.kernel(kind, dtype)?;
            states.push(identity(kind, dtype)?);
        }
        Ok(Feeder {
            engine: Arc::clone(self),
            dtype,
            arrays: arrays.clamp(1, 2),
            states,
            room: ROOM,
            slots: Vec::new(),
            turn: 0,
            failed: None,
        })
    }
}

impl Feeder {
    /// The same with another size of what is sent at once, in bytes: a power of
    /// two from 64 KiB on. The bits are the same for every size.
    #[must_use]
    pub fn with_room(mut self, bytes: usize) -> Feeder {
        self.room = bytes.clamp(LEAST, 1 << 40).next_power_of_two();
        self
    }

    /// Bytes of each array that are sent at once: longer runs are cut up.
    #[must_use]
    pub fn best_run(&self) -> usize {
        self.room / self.arrays
    }

    /// Takes in a run of elements, which must be aligned; the bytes are the
    /// caller's again when this returns.
    ///
    /// # Errors
    /// What the device says, about earlier runs, too.
    pub fn absorb(&mut self, run: RawRun<'_>) -> Result<()> {
        self.absorb_for(run, |_| true)
    }

    /// The same for some of the states only.
    ///
    /// # Errors
    /// Those of [`absorb`](Self::absorb).
    pub fn absorb_for(&mut self, run: RawRun<'_>, wanted: fn(Kind) -> bool) -> Result<()> {
        self.check(run)?;
        // SAFETY: what is sent lies in the slot's own memory.
        self.noting_failure(|feeder| unsafe {
            feeder.feed(run.start, run.items.len(), wanted, &mut |range, [items, others]| {
                items.copy_from_slice(&run.items[range.clone()]);
                others.copy_from_slice(run.others.get(range).unwrap_or(&[]));
                Some([items.as_ptr(), others.as_ptr()])
            })
        })
    }

    /// Takes in `bytes` bytes of elements of one array that nobody has in memory
    /// yet: `read` is told how many bytes come before, and fills what it is given,
    /// from where the device copies. Its error ends the reading, and then the
    /// states lack elements.
    ///
    /// # Errors
    /// Those of [`absorb`](Self::absorb); inside, what `read` says.
    pub fn absorb_from<E>(
        &mut self,
        start: u64,
        bytes: usize,
        mut read: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>> {
        if self.arrays != 1 || !bytes.is_multiple_of(self.dtype.size()) {
            return Err(self.refused(0, bytes, "only whole elements of one array are read"));
        }
        let mut done = Ok(());
        // SAFETY: what is sent lies in the slot's own memory.
        self.noting_failure(|feeder| unsafe {
            feeder.feed(start, bytes, |_| true, &mut |range, [items, others]| {
                done = read(range.start, items);
                done.is_ok().then_some([items.as_ptr(), others.as_ptr()])
            })
        })?;
        Ok(done)
    }

    /// Takes in a run where [`is_pinned`](crate::Device::is_pinned) says that the
    /// device copies from its bytes by itself: nobody copies them before.
    ///
    /// # Errors
    /// Those of [`absorb`](Self::absorb).
    ///
    /// # Safety
    /// Nobody writes to the bytes or gives them back before
    /// [`take_states`](Self::take_states) has returned states or the feeder was
    /// dropped.
    pub unsafe fn absorb_in_place(&mut self, run: RawRun<'_>) -> Result<()> {
        self.check(run)?;
        // SAFETY: the caller's promise.
        self.noting_failure(|feeder| unsafe {
            feeder.feed(run.start, run.items.len(), |_| true, &mut |range, _| {
                let others = run.others.get(range.clone()).unwrap_or(&[]);
                Some([run.items[range].as_ptr(), others.as_ptr()])
            })
        })
    }

    /// The states, once all runs are done; those of no elements take their
    /// place.
    ///
    /// # Errors
    /// What the device says, about any of the runs.
    pub fn take_states(&mut self) -> Result<Vec<AnyState>> {
        self.noting_failure(|feeder| {
            (0..feeder.slots.len()).try_for_each(|place| feeder.collect(place))?;
            let empty = |s: &AnyState| identity(s.kind(), s.dtype());
            let empty = feeder.states.iter().map(empty).collect::<Result<_>>()?;
            Ok(mem::replace(&mut feeder.states, empty))
        })
    }

    /// After an error the states lack elements: there is nothing but that error
    /// from then on.
    fn noting_failure<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => work(self).inspect_err(|error| self.failed = Some(error.clone())),
        }
    }

    fn refused(&self, address: u64, bytes: usize, why: &'static str) -> Error {
        let len = (bytes / self.dtype.size()) as u64;
        Error::Array { address, len, dtype: self.dtype, why }
    }

    /// Refuses runs that are none.
    fn check(&self, run: RawRun<'_>) -> Result<()> {
        let address = run.items.as_ptr().addr() as u64;
        let refused = |why| Err(self.refused(address, run.items.len(), why));
        if !run.items.len().is_multiple_of(self.dtype.size()) {
            return refused("the bytes end within an element");
        }
        if run.others.len() != if self.arrays == 2 { run.items.len() } else { 0 } {
            return refused("the second array is not as long, or is not asked for");
        }
        Ok(())
    }

    /// Cuts a run of `bytes` bytes of each array up, and sends the pieces on their
    /// way.
    ///
    /// # Safety
    /// What is provided is valid for reads, and nobody else writes to it until the
    /// slots were waited for.
    unsafe fn feed(
        &mut self,
        start: u64,
        bytes: usize,
        wanted: fn(Kind) -> bool,
        provide: &mut Provide<'_>,
    ) -> Result<()> {
        if !self.states.iter().any(|s| wanted(s.kind())) {
            return Ok(());
        }
        let mut done = 0;
        while done < bytes {
            let start = start + (done / self.dtype.size()) as u64;
            let most = (bytes - done).min(self.best_run());
            let (place, len) = self.next_slot(start, most, wanted)?;
            let slot = &mut self.slots[place].slot;
            let half = slot.room() / self.arrays;
            // SAFETY: `next_slot` has waited for what was under way in this slot, and
            // the next copy from it starts in `send`.
            let staging = unsafe { slot.staging.bytes_mut() };
            let (items, others) = staging.split_at_mut(half);
            let others = &mut others[..if self.arrays == 2 { len } else { 0 }];
            let Some(from) = provide(done..done + len, [&mut items[..len], others]) else {
                return Ok(());
            };
            // SAFETY: the caller's promise.
            unsafe { self.send(place, start, len, from, wanted)? };
            done += len;
        }
        Ok(())
    }

    /// A run of `bytes` bytes of each array in the device's memory, the second
    /// array's `half` bytes behind the first's.
    fn input(&self, start: u64, bytes: usize, address: Address, half: usize) -> Input {
        let len = (bytes / self.dtype.size()) as u64;
        let array = Array { address, len, dtype: self.dtype };
        let others = (self.arrays == 2).then_some(address + half as u64);
        Input { array, others, start }
    }

    /// The output of kernels for an input and the states that are wanted.
    fn output(&self, input: &Input, wanted: fn(Kind) -> bool) -> Result<Output> {
        let dtype = self.dtype;
        let mut output = Output { places: Vec::with_capacity(self.states.len()), bytes: 0 };
        for (state, kind) in self.states.iter().map(AnyState::kind).enumerate() {
            if wanted(kind) {
                let len = output::len(kind, input).ok_or(Error::NoKernel { kind, dtype })?;
                output.places.push((state, output.bytes..output.bytes + len));
                output.bytes = (output.bytes + len).next_multiple_of(8);
            }
        }
        Ok(output)
    }

    /// The place of a slot that is not busy, and how many of the `most` bytes of
    /// each array it has room for: all, unless memory is short.
    fn next_slot(
        &mut self,
        start: u64,
        most: usize,
        wanted: fn(Kind) -> bool,
    ) -> Result<(usize, usize)> {
        let mut bytes = most;
        loop {
            let output = self.output(&self.input(start, bytes, 0, 0), wanted)?.bytes;
            let place = self.slot_with(bytes * self.arrays, output)?;
            let slot = &self.slots[place].slot;
            let fits = bytes.min(slot.room() / self.arrays);
            // Of less, there may be more output.
            let output = self.output(&self.input(start, fits, 0, 0), wanted)?.bytes;
            if output <= slot.payloads.len() {
                self.turn = (self.turn + 1) % SLOTS;
                return Ok((place, fits));
            }
            bytes = fits;
        }
    }

    /// The place of the slot whose turn it is, once it is not busy, with room for
    /// the output of kernels and for `bytes` bytes of elements, or as many as a slot
    /// can have.
    fn slot_with(&mut self, bytes: usize, output: usize) -> Result<usize> {
        let take = || self.engine.slots.take(&self.engine, bytes, output);
        if self.turn >= self.slots.len() {
            match take() {
                Ok(slot) => {
                    self.slots.push(Busy { slot, run: None });
                    return Ok(self.slots.len() - 1);
                }
                // One slot does, if slower.
                Err(error) if error.is_out_of_memory() && !self.slots.is_empty() => self.turn = 0,
                Err(error) => return Err(error),
            }
        }
        let place = self.turn;
        self.collect(place)?;
        let old = &mut self.slots[place].slot;
        let lacks = old.payloads.len() < output;
        if lacks || old.room() < bytes {
            match self.engine.slots.take(&self.engine, bytes, output) {
                Ok(mut slot) => {
                    if lacks || slot.room() > old.room() {
                        mem::swap(old, &mut slot);
                    }
                    self.engine.slots.give(slot);
                }
                Err(error) if error.is_out_of_memory() && !lacks => {}
                Err(error) => return Err(error),
            }
        }
        Ok(place)
    }

    /// Sends a run of `bytes` bytes of each array on its way, which fits.
    ///
    /// # Safety
    /// As for [`feed`](Self::feed).
    unsafe fn send(
        &mut self,
        place: usize,
        start: u64,
        bytes: usize,
        from: [*const u8; 2],
        wanted: fn(Kind) -> bool,
    ) -> Result<()> {
        let (memory, half) = {
            let slot = &self.slots[place].slot;
            (slot.memory_at(), slot.room() / self.arrays)
        };
        let input = self.input(start, bytes, memory, half);
        let output = self.output(&input, wanted)?;
        let engine = Arc::clone(&self.engine);
        let device = engine.device();
        let Busy { slot, run: on_its_way } = &mut self.slots[place];
        let stream = slot.stream;
        // From here on something may be under way, whatever fails.
        let on_its_way = on_its_way.insert(OnItsWay { input, output });
        for (from, to) in from.into_iter().zip(iter::once(memory).chain(input.others)) {
            // SAFETY: the slot's memory is not touched before its stream was
            // waited for; of bytes elsewhere the caller says so.
            unsafe { device.start_copy_in(stream, to, from, bytes)? };
        }
        for (state, place) in &on_its_way.output.places {
            let to = slot.payloads_at() + place.start as u64;
            // SAFETY: the copies before it on the stream fill the arrays, and only
            // this slot uses them and the place for the output.
            unsafe { engine.reduce_into(self.states[*state].kind(), input, to, stream)? };
        }
        let (from, to) = (slot.payloads_at(), slot.payloads.as_ptr());
        // SAFETY: the payloads' memory is the slot's, and is not looked at before
        // the stream was waited for.
        unsafe { device.start_copy_out(stream, from, to, on_its_way.output.bytes) }
    }

    /// Waits for a slot's run, if one is on its way, and merges its states.
    fn collect(&mut self, place: usize) -> Result<()> {
        let Busy { slot, run } = &mut self.slots[place];
        if run.is_none() {
            return Ok(());
        }
        self.engine.device().wait(slot.stream)?;
        let Some(OnItsWay { input, output }) = run.take() else { return Ok(()) };
        // SAFETY: the copy to them was waited for, and only `send` starts another.
        let payloads = unsafe { slot.payloads.bytes() };
        let mut digits = Digits::new(&**self.engine.device(), slot.stream);
        for (state, place) in output.places {
            let state = &mut self.states[state];
            let mut run = output::state(state.kind(), &input, &payloads[place])?;
            // SAFETY: the run lies in the slot's memory until the next one is sent.
            unsafe { digits.restore(&mut run, input.array)? };
            merge(state, &run)?;
        }
        Ok(())
    }
}

fn identity(kind: Kind, dtype: DType) -> Result<AnyState> {
    AnyState::identity(kind, dtype).map_err(|_| Error::NoKernel { kind, dtype })
}

/// Merges a run's state into that of those before it.
fn merge(state: &mut AnyState, run: &AnyState) -> Result<()> {
    state.merge(run).map_err(|why| Error::Runs {
        kind: run.kind(),
        dtype: run.dtype(),
        why: why.to_string(),
    })
}

impl Drop for Feeder {
    fn drop(&mut self) {
        for Busy { slot, run } in self.slots.drain(..) {
            // Nothing may be under way when memory is given back or used again;
            // a device that cannot say so is lost, and so is the slot's memory.
            if run.is_some() && self.engine.device().wait(slot.stream).is_err() {
                mem::forget(slot);
            } else if self.failed.is_none() {
                self.engine.slots.give(slot);
            }
            // A kernel that failed may have left its stream's scratch memory in
            // disorder: nobody gets that stream again.
        }
    }
}
