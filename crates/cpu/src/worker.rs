//! One state at work on one thread.

use crate::accelerate::{Accelerate, Context};
use crate::isa::Isa;
use warpfold_core::layout::Traversal;
use warpfold_core::op::{AnyState, Kind, Op, RawRun, Rules, State, Value};
use warpfold_core::{DType, Error, Result, with_state};

/// A state and what its kernels have learnt about the data.
pub struct Worker(Box<dyn Typed>);

/// A [`Worker`] whose type is known.
trait Typed: Send {
    fn kind(&self) -> Kind;
    fn absorb(&mut self, run: RawRun<'_>);
    fn absorb_along(&mut self, run: RawRun<'_>, walk: &Traversal, base: u64);
    fn skip(&mut self, start: u64, len: u64);
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value>;
    fn reset(&mut self);
    fn into_state(self: Box<Self>) -> AnyState;
}

struct Holder<S> {
    state: S,
    context: Context,
}

impl<S: Accelerate> Typed for Holder<S> {
    fn kind(&self) -> Kind {
        self.state.kind()
    }
    fn absorb(&mut self, run: RawRun<'_>) {
        debug_assert!(run.typed::<S::Item>().is_some(), "the driver hands over aligned runs");
        if let Some(run) = run.typed() {
            self.state.accelerate(run, &mut self.context);
        }
    }
    fn absorb_along(&mut self, run: RawRun<'_>, walk: &Traversal, base: u64) {
        debug_assert!(run.typed::<S::Item>().is_some(), "the driver hands over aligned runs");
        if let Some(run) = run.typed() {
            self.state.accelerate_along(run, walk, base, &mut self.context);
        }
    }
    fn skip(&mut self, start: u64, len: u64) {
        self.state.skip(start, len);
    }
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        self.state.finish(op, rules)
    }
    fn reset(&mut self) {
        self.state = S::identity(self.state.kind());
    }
    fn into_state(self: Box<Self>) -> AnyState {
        AnyState::from(self.state)
    }
}

impl Worker {
    /// A worker on the state of no elements.
    ///
    /// # Errors
    /// [`Error::DamagedState`] if no operation needs this kind over this type.
    pub fn new(kind: Kind, dtype: DType, isa: Isa) -> Result<Worker> {
        with_state!(kind, dtype,
        S => Ok(Worker(Box::new(Holder {
            state: <S as State>::identity(kind),
            context: Context::new(isa),
        }))),
        else => Err(Error::DamagedState {
            why: format!("there is no {kind:?} of {dtype} elements"),
        }))
    }

    /// Which state this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// Takes in a run of elements, which must be aligned.
    pub fn absorb(&mut self, run: RawRun<'_>) {
        self.0.absorb(run);
    }

    /// Takes in a run whose positions are those of `walk`, whose first index
    /// is `base`.
    pub fn absorb_along(&mut self, run: RawRun<'_>, walk: &Traversal, base: u64) {
        self.0.absorb_along(run, walk, base);
    }

    /// Marks positions as missing.
    pub fn skip(&mut self, start: u64, len: u64) {
        self.0.skip(start, len);
    }

    /// The value of `op` so far.
    ///
    /// # Errors
    /// Those of [`State::finish`].
    pub fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        self.0.finish(op, rules)
    }

    /// Goes back to the state of no elements.
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// The state.
    #[must_use]
    pub fn into_state(self) -> AnyState {
        self.0.into_state()
    }
}

/// Elements that several workers absorb in turn: small enough for the cache, a
/// multiple of the fixed tree's blocks.
const BLOCK: usize = 8192;

/// Lets every worker absorb a run of aligned elements, whose positions are
/// those of `walk` if there is one, counted from index `base`. Several workers
/// take turns block by block, so that all but the first find it in the cache.
pub fn absorb_in_turn(
    workers: &mut [Worker],
    run: RawRun<'_>,
    dtype: DType,
    walk: Option<&Traversal>,
    base: u64,
) {
    let size = dtype.size();
    let step = if workers.len() > 1 { BLOCK * size } else { run.items.len().max(1) };
    let mut others = run.others.chunks(step);
    let mut start = run.start;
    for items in run.items.chunks(step) {
        let block = RawRun { start, items, others: others.next().unwrap_or(&[]) };
        for worker in workers.iter_mut() {
            match walk {
                Some(walk) => worker.absorb_along(block, walk, base),
                None => worker.absorb(RawRun { start: start + base, ..block }),
            }
        }
        start += (items.len() / size) as u64;
    }
}
