//! Workers: a state and its kernels, on one thread.

use crate::accelerate::{Accelerate, Context};
use crate::isa::Isa;
use crate::slices::Slices;
use core::marker::PhantomData;
use warpfold_core::layout::Traversal;
use warpfold_core::op::{AnyState, Kind, Op, RawRun, Rules, Value};
use warpfold_core::{DType, Element, Error, Result, with_state};

/// A state, and the kernels that let it absorb.
pub struct Worker {
    state: AnyState,
    absorber: Absorber,
}

/// The kernels of a kind and a type, with what they have learnt about the data so
/// far: they let states absorb that lie elsewhere.
pub(crate) struct Absorber(Box<dyn Kernels>);

/// A run that [`check_run`] has accepted, and where it lies.
#[derive(Clone, Copy)]
struct Accepted<'a> {
    run: RawRun<'a>,
    /// The walk whose positions the run's are; in order without one.
    walk: Option<&'a Traversal>,
    /// The index of the walk's first element.
    base: u64,
}

/// An [`Absorber`] whose type is known.
trait Kernels: Send {
    /// # Errors
    /// [`Error::StateMismatch`] if the state is another one.
    fn absorb(&mut self, state: &mut AnyState, accepted: Accepted<'_>) -> Result<()>;
}

struct KernelsOf<S> {
    kind: Kind,
    context: Context,
    state: PhantomData<fn(S)>,
}

impl<S: Accelerate> Kernels for KernelsOf<S> {
    fn absorb(&mut self, state: &mut AnyState, accepted: Accepted<'_>) -> Result<()> {
        let Accepted { run, walk, base } = accepted;
        let (found, dtype, context) = (state.kind(), state.dtype(), &mut self.context);
        match state.downcast_mut::<S>() {
            Some(state) if found == self.kind => aligned(run, &mut |start, slices| match walk {
                Some(walk) => state.accelerate_along(start, slices, walk, base, context),
                None => state.accelerate(start + base, slices, context),
            }),
            _ => Err(Error::StateMismatch {
                what: "state",
                left: format!("{:?} of {}", self.kind, S::Item::DTYPE),
                right: format!("{found:?} of {dtype}"),
            }),
        }
    }
}

impl Absorber {
    /// # Errors
    /// Those of [`Worker::new`].
    pub(crate) fn new(kind: Kind, dtype: DType, isa: Isa) -> Result<Absorber> {
        with_state!(kind, dtype,
        S => Ok(Absorber(Box::new(KernelsOf::<S> {
            kind,
            context: Context::new(isa),
            state: PhantomData,
        }))),
        else => Err(kind.no_state_of(dtype)))
    }

    /// Lets a state take in a run whose positions are those of `walk` if there is one,
    /// counted from index `base`. The run has passed [`check_run`].
    ///
    /// # Errors
    /// [`Error::StateMismatch`] if the state is another one.
    pub(crate) fn absorb(
        &mut self,
        state: &mut AnyState,
        run: RawRun<'_>,
        walk: Option<&Traversal>,
        base: u64,
    ) -> Result<()> {
        self.0.absorb(state, Accepted { run, walk, base })
    }
}

/// Checks that a run can be absorbed by states of this kind over elements of
/// this type, as [`Worker::absorb`] does or along a walk whose first index is
/// `base`. Bytes may lie at any address.
///
/// # Errors
/// [`Error::PartialElement`]; [`Error::ShapeMismatch`] if the arrays of a pair
/// differ in length, [`Error::Arity`] if there is a second array that the kind
/// has no use for; [`Error::StartTooLarge`] if positions leave the walk or do
/// not fit 64 bits.
pub fn check_run(
    kind: Kind,
    dtype: DType,
    run: RawRun<'_>,
    walk: Option<&Traversal>,
    base: u64,
) -> Result<()> {
    for bytes in [run.items.len(), run.others.len()] {
        if !bytes.is_multiple_of(dtype.size()) {
            return Err(Error::PartialElement { bytes, dtype });
        }
    }
    let [len, others] = [run.items, run.others].map(|bytes| bytes.len() / dtype.size());
    if kind.takes_pairs() && len != others {
        return Err(Error::ShapeMismatch { left: vec![len], right: vec![others] });
    }
    if !kind.takes_pairs() && others != 0 {
        let op = Op::ALL.into_iter().find(|op| op.kind() == kind).unwrap_or(Op::Sum);
        return Err(Error::Arity { op, takes: 1, given: 2 });
    }
    let end = run.start.checked_add(len as u64);
    let inside = walk.is_none_or(|walk| {
        end.is_some_and(|end| end <= walk.len as u64) && base.checked_add(walk.len as u64).is_some()
    });
    if !inside || end.and_then(|end| end.checked_add(base)).is_none() {
        return Err(Error::StartTooLarge { start: run.start.saturating_add(base), len });
    }
    Ok(())
}

/// Bytes that are copied at once from where they are not aligned.
const COPIED: usize = 1 << 13;

/// Hands a run's elements to `sink`: as they lie, or copied block by block to
/// where they are aligned.
fn aligned<T: Element>(run: RawRun<'_>, sink: &mut dyn FnMut(u64, Slices<'_, T>)) -> Result<()> {
    let paired = !run.others.is_empty();
    if let Some(run) = run.typed::<T>() {
        let slices =
            if paired { Slices::pair(run.items, run.others)? } else { Slices::one(run.items) };
        sink(run.start, slices);
        return Ok(());
    }
    let mut blocks = [[0u64; COPIED / 8]; 2];
    let mut others = run.others.chunks(COPIED);
    let mut start = run.start;
    for items in run.items.chunks(COPIED) {
        let mut sources = [items, others.next().unwrap_or(&[])].into_iter();
        let [items, others] = blocks.each_mut().map(|block| -> &[T] {
            let source = sources.next().unwrap_or(&[]);
            let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(block)[..source.len()];
            bytes.copy_from_slice(source);
            // Aligned, and whole: the run was checked.
            bytemuck::cast_slice(bytes)
        });
        let slices = if paired { Slices::pair(items, others)? } else { Slices::one(items) };
        sink(start, slices);
        start += slices.len() as u64;
    }
    Ok(())
}

impl Worker {
    /// A worker on the state of no elements.
    ///
    /// # Errors
    /// [`Error::DamagedState`] if no operation needs this kind over this type.
    pub fn new(kind: Kind, dtype: DType, isa: Isa) -> Result<Worker> {
        let state = AnyState::identity(kind, dtype)?;
        Ok(Worker { state, absorber: Absorber::new(kind, dtype, isa)? })
    }

    /// Which state this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.state.kind()
    }

    fn take(&mut self, accepted: Accepted<'_>) -> Result<()> {
        let Accepted { run, walk, base } = accepted;
        check_run(self.kind(), self.state.dtype(), run, walk, base)?;
        self.absorber.0.absorb(&mut self.state, accepted)
    }

    /// Takes in a run of elements, whose bytes may lie at any address: where
    /// they are not aligned they are copied.
    ///
    /// # Errors
    /// Those of [`check_run`]; the state is then as it was.
    pub fn absorb(&mut self, run: RawRun<'_>) -> Result<()> {
        self.take(Accepted { run, walk: None, base: 0 })
    }

    /// Takes in a run whose positions are those of `walk`, whose first index
    /// is `base`.
    ///
    /// # Errors
    /// As for [`absorb`](Self::absorb).
    pub fn absorb_along(&mut self, run: RawRun<'_>, walk: &Traversal, base: u64) -> Result<()> {
        self.take(Accepted { run, walk: Some(walk), base })
    }

    /// Marks positions as missing.
    pub fn skip(&mut self, start: u64, len: u64) {
        self.state.skip(start, len);
    }

    /// The value of `op` so far.
    ///
    /// # Errors
    /// Those of [`AnyState::finish`].
    pub fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        self.state.finish(op, rules)
    }

    /// Goes back to the state of no elements.
    pub fn reset(&mut self) {
        self.state.reset();
    }

    /// The state.
    #[must_use]
    pub fn into_state(self) -> AnyState {
        self.state
    }
}

/// Elements that several workers absorb in turn: small enough for the cache.
const BLOCK: usize = 8192;

/// Lets every worker absorb a run of elements, whose positions are those of
/// `walk` if there is one, counted from index `base`. Several workers take turns
/// block by block, so that all but the first find it in the cache.
///
/// # Errors
/// Those of [`check_run`]; no worker has absorbed anything then.
pub fn absorb_in_turn(
    workers: &mut [Worker],
    run: RawRun<'_>,
    dtype: DType,
    walk: Option<&Traversal>,
    base: u64,
) -> Result<()> {
    for worker in workers.iter() {
        check_run(worker.kind(), dtype, run, walk, base)?;
    }
    in_turn(run, dtype, workers.len(), |block| {
        for worker in workers.iter_mut() {
            match walk {
                Some(walk) => worker.absorb_along(block, walk, base)?,
                None => worker.absorb(RawRun { start: block.start + base, ..block })?,
            }
        }
        Ok(())
    })
}

/// Hands a run to `sink`: block by block if several take turns.
///
/// # Errors
/// Those of `sink`.
pub(crate) fn in_turn(
    run: RawRun<'_>,
    dtype: DType,
    takers: usize,
    mut sink: impl FnMut(RawRun<'_>) -> Result<()>,
) -> Result<()> {
    let size = dtype.size();
    let step = if takers > 1 { BLOCK * size } else { run.items.len().max(1) };
    let mut others = run.others.chunks(step);
    let mut start = run.start;
    for items in run.items.chunks(step) {
        sink(RawRun { start, items, others: others.next().unwrap_or(&[]) })?;
        start += (items.len() / size) as u64;
    }
    Ok(())
}
