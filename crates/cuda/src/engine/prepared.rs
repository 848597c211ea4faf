//! Reductions that come again and again on one stream, with scratch memory of their own:
//! nothing is allocated once they have been done, and nothing is freed that a captured
//! graph goes on using.

use super::answer::check_alignment;
use super::gather::{NONE, Step};
use super::number::Number;
use super::question::Question;
use super::scratch::Scratch;
use super::view::DeviceView;
use super::{Engine, Input, lock};
use crate::device::{Address, Stream};
use crate::{Error, Result};
use std::sync::{Arc, Mutex};
use warpfold_core::op::Kind;

/// The most elements of a copy.
const MOST_COPIED: usize = 1 << 30;

/// Scratch memory for reductions on one stream that leave what they make in the device's
/// memory and do not wait.
///
/// The first time that a question is asked, modules are loaded and memory is allocated.
/// After that neither happens, for views that are aligned alike: the launches can be
/// captured in a graph, which lives no longer than this.
pub struct Prepared {
    engine: Arc<Engine>,
    stream: Stream,
    scratch: Mutex<Scratch>,
}

impl Prepared {
    /// Memory beside that of the stream.
    ///
    /// # Errors
    /// What the device says.
    pub fn new(engine: &Arc<Engine>, stream: Stream) -> Result<Prepared> {
        let scratch = Mutex::new(Scratch::keeping(engine.device(), stream)?);
        Ok(Prepared { engine: Arc::clone(engine), stream, scratch })
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Leaves answers as [`Engine::numbers_into`] does, but never waits: a total that does
    /// not fit its type is left without its upper bits, and
    /// [`saw_overflow`](Self::saw_overflow) tells.
    ///
    /// # Errors
    /// Those of [`Engine::numbers_into`].
    ///
    /// # Safety
    /// As for [`Engine::numbers_into`].
    pub unsafe fn numbers_into(
        &self,
        number: impl Into<Number>,
        view: &DeviceView,
        reduced: &[bool],
        to: Address,
    ) -> Result<bool> {
        let engine = &*self.engine;
        view.check(&**engine.device())?;
        let question = Question::of(number, view, reduced, engine.shape.walk)?;
        let Some(question) = question else { return Ok(false) };
        check_alignment(to, question.table.outputs.len, question.answer.out)?;
        let scratch = &mut lock(&self.scratch);
        // SAFETY: passed on from the caller.
        let made = unsafe { engine.launch_all(&[&question], &[to], scratch, self.stream)? };
        Ok(made.contains(&true))
    }

    /// Leaves a state as [`Engine::reduce_into`] does.
    ///
    /// # Errors
    /// Those of [`Engine::reduce_into`].
    ///
    /// # Safety
    /// As for [`Engine::reduce_into`].
    pub unsafe fn reduce_into(
        &self,
        kind: Kind,
        input: impl Into<Input>,
        to: Address,
    ) -> Result<()> {
        let input = input.into();
        super::check_state_address(to, input.array)?;
        self.engine.check_readable(&input)?;
        // SAFETY: passed on from the caller; there is an alignment that payloads need.
        unsafe { self.engine.launch(kind, input, &mut lock(&self.scratch), to, self.stream) }
    }

    /// Copies one element of `size` bytes, a power of two up to 8, to `count` places.
    ///
    /// # Errors
    /// [`Error::Array`] for misaligned addresses; what the device says.
    ///
    /// # Safety
    /// The element is in memory of this device, and nobody else uses the places, until the
    /// stream was waited for.
    pub unsafe fn repeat(
        &self,
        size: usize,
        from: Address,
        to: Address,
        count: usize,
    ) -> Result<()> {
        for first in (0..count).step_by(MOST_COPIED) {
            let len = (count - first).min(MOST_COPIED);
            let steps = vec![Step { len, to: size.cast_signed(), ..NONE }];
            let to = to + (first * size) as u64;
            // SAFETY: passed on from the caller.
            unsafe { self.engine.gather(size, from, to, steps, self.stream)? };
        }
        Ok(())
    }

    /// Waits, and says whether a total did not fit its type since the last call.
    ///
    /// # Errors
    /// What the device says of the work on the stream.
    pub fn saw_overflow(&self) -> Result<bool> {
        lock(&self.scratch).saw_overflow(&**self.engine.device(), self.stream)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        let device = &**self.engine.device();
        // Launches may still use it. Errors cannot be reported here.
        let _: Result<(), Error> = device.wait(self.stream);
        lock(&self.scratch).give_back(device);
    }
}
