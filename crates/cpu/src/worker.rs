//! Workers: a state and its kernels, on one thread.

use crate::accelerate::{Accelerate, Context};
use crate::isa::Isa;
use crate::slices::Slices;
use warpfold_core::layout::Traversal;
use warpfold_core::op::{AnyState, Kind, Op, RawRun, Rules, Value};
use warpfold_core::{DType, Error, Result, with_state};

/// A state, and the kernels that let it absorb.
pub struct Worker {
    state: AnyState,
    absorber: Absorber,
}

/// The kernels of a kind and a type, with what they have learnt about the data so
/// far: they let states absorb that lie elsewhere.
pub(crate) struct Absorber {
    kind: Kind,
    dtype: DType,
    context: Context,
    absorb: Absorb,
}

/// Lets a state absorb an aligned run; `None` if it is another state.
type Absorb = fn(&mut AnyState, RawRun<'_>, Option<&Traversal>, u64, &mut Context) -> Option<()>;

fn absorb_as<S: Accelerate>(
    state: &mut AnyState,
    run: RawRun<'_>,
    walk: Option<&Traversal>,
    base: u64,
    context: &mut Context,
) -> Option<()> {
    let (state, run) = (state.downcast_mut::<S>()?, run.typed()?);
    let others = if run.others.is_empty() { run.items } else { run.others };
    let slices = Slices::pair(run.items, others).ok()?;
    match walk {
        Some(walk) => state.accelerate_along(run.start, slices, walk, base, context),
        None => state.accelerate(run.start + base, slices, context),
    }
    Some(())
}

impl Absorber {
    /// # Errors
    /// Those of [`Worker::new`].
    pub(crate) fn new(kind: Kind, dtype: DType, isa: Isa) -> Result<Absorber> {
        let absorb: Absorb = with_state!(kind, dtype, S => absorb_as::<S>,
            else => return Err(kind.no_state_of(dtype)));
        Ok(Absorber { kind, dtype, context: Context::new(isa), absorb })
    }

    /// Lets a state take in a run whose positions are those of `walk` if there is one,
    /// counted from index `base`: as it lies, or copied block by block to where it is aligned.
    /// The run has passed [`check_run`].
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
        let (kind, dtype) = (state.kind(), self.dtype);
        let mut absorb = |run: RawRun<'_>| {
            let same = kind == self.kind;
            let done = same.then(|| (self.absorb)(state, run, walk, base, &mut self.context));
            done.flatten().ok_or_else(|| Error::StateMismatch {
                what: "state",
                left: format!("{:?} of {dtype}", self.kind),
                right: format!("{kind:?} of {}", state.dtype()),
            })
        };
        let size = dtype.size();
        let lies = |bytes: &[u8]| bytes.is_empty() || bytes.as_ptr().addr().is_multiple_of(size);
        if lies(run.items) && lies(run.others) {
            return absorb(run);
        }
        copied(run, size, &mut absorb)
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

/// Hands a run to `sink` block by block, copied to where it is aligned.
#[cold]
#[inline(never)]
fn copied(
    run: RawRun<'_>,
    size: usize,
    sink: &mut dyn FnMut(RawRun<'_>) -> Result<()>,
) -> Result<()> {
    let mut blocks = [[0u64; COPIED / 8]; 2];
    let mut others = run.others.chunks(COPIED);
    let mut start = run.start;
    for items in run.items.chunks(COPIED) {
        let mut sources = [items, others.next().unwrap_or(&[])].into_iter();
        let [items, others] = blocks.each_mut().map(|block| {
            let source = sources.next().unwrap_or(&[]);
            let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(block)[..source.len()];
            bytes.copy_from_slice(source);
            &*bytes
        });
        sink(RawRun { start, items, others })?;
        start += (items.len() / size) as u64;
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

    fn take(&mut self, run: RawRun<'_>, walk: Option<&Traversal>, base: u64) -> Result<()> {
        check_run(self.kind(), self.state.dtype(), run, walk, base)?;
        self.absorber.absorb(&mut self.state, run, walk, base)
    }

    /// Takes in a run of elements, whose bytes may lie at any address: where
    /// they are not aligned they are copied.
    ///
    /// # Errors
    /// Those of [`check_run`]; the state is then as it was.
    pub fn absorb(&mut self, run: RawRun<'_>) -> Result<()> {
        self.take(run, None, 0)
    }

    /// Takes in a run whose positions are those of `walk`, whose first index
    /// is `base`.
    ///
    /// # Errors
    /// As for [`absorb`](Self::absorb).
    pub fn absorb_along(&mut self, run: RawRun<'_>, walk: &Traversal, base: u64) -> Result<()> {
        self.take(run, Some(walk), base)
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
        workers.iter_mut().try_for_each(|worker| worker.take(block, walk, base))
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
