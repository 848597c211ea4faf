//! Groups of rows, answered on a device.

use super::engines::{Opened, failure as named};
use super::in_place::{check_place, failure};
use super::memory::DeviceArray;
use crate::answer::halves;
use crate::groups::on_devices::Made;
use crate::reduction::Reduction;
use warpfold_core::layout::View;
use warpfold_core::op::{Kind, Op, Rules};
use warpfold_core::{DType, Result};
use warpfold_cuda::engine::{Array, Groups};
use warpfold_cuda::{Buffer, Engine, Stream};

/// Groups that may always be numbered by their keys themselves; more only where there are as
/// many rows.
const FEW: u64 = 1 << 16;

/// The groups of keys: `dense` ones, or those from the least key to the greatest; none where
/// there are too many of them.
///
/// # Safety
/// As for [`Engine::reduce`].
unsafe fn groups_of(
    engine: &Engine,
    keys: Array,
    dense: Option<usize>,
    stream: Stream,
) -> warpfold_cuda::Result<Option<Groups>> {
    let dtype = keys.dtype;
    if dtype.is_float() || dtype == DType::Bool || keys.len == 0 {
        return Ok(None);
    }
    let bits = 8 * dtype.size() as u32;
    if let Some(count) = dense {
        // Who gives a number that keys cannot have is told so by the CPU.
        let most = 1u64.checked_shl(bits - u32::from(dtype.is_signed_int()));
        let count = count as u64;
        let fits = most.is_none_or(|most| count <= most);
        return Ok(fits.then_some(Groups { keys, least: 0, count }));
    }
    // SAFETY: passed on from the caller.
    let state = unsafe { engine.reduce(Kind::Extrema, keys, stream) }?;
    let extremes = state.finish(Op::MinMax, &Rules::default())?;
    let Some(greatest) = extremes.second() else { return Ok(None) };
    let least = extremes.first().to_bits();
    // In the keys' own width, where it is no negative number.
    let apart = greatest.to_bits().wrapping_sub(least) & (u64::MAX >> (64 - bits));
    let count = apart.checked_add(1).filter(|&count| count <= keys.len.max(FEW));
    Ok(count.map(|count| Groups { keys, least, count }))
}

/// Asks an engine about groups of rows in its memory; nothing where it does not answer.
///
/// # Safety
/// As for [`Engine::numbers_of_groups`].
unsafe fn ask(
    engine: &Engine,
    ops: &[Op],
    keys: Array,
    values: Array,
    dense: Option<usize>,
    stream: Stream,
) -> warpfold_cuda::Result<Option<Made>> {
    // SAFETY: passed on from the caller.
    let Some(groups) = (unsafe { groups_of(engine, keys, dense, stream)? }) else {
        return Ok(None);
    };
    let asked: Vec<Op> = ops.iter().flat_map(|&op| halves(op)).collect();
    // SAFETY: passed on from the caller.
    let all = unsafe { engine.numbers_of_groups(&asked, values, &groups, true, stream) }?;
    // Without rows that are counted no kernel has answered.
    let (Some(present), None) = (all.present, all.stranger) else { return Ok(None) };
    let mut numbers = all.numbers.into_iter();
    let parts = ops.iter().map(|&op| numbers.by_ref().take(halves(op).len()).collect());
    let (dtype, least) = (keys.dtype, groups.least);
    Ok(Some(Made { dtype, least, present, dense: dense.is_some(), parts: parts.collect() }))
}

impl Opened {
    /// The numbers of groups of rows in the host's memory, which are sent to the device; none
    /// where that has no room for them.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn numbers_of_groups(
        &self,
        ops: &[Op],
        keys: &View<'_>,
        values: &View<'_>,
        dense: Option<usize>,
    ) -> Result<Option<Made>> {
        let device = self.engine.device();
        let send = |view: &View<'_>| -> warpfold_cuda::Result<Option<(Buffer<'static>, Array)>> {
            let Some(bytes) = view.contiguous().filter(|bytes| !bytes.is_empty()) else {
                return Ok(None);
            };
            let buffer = Buffer::new(device, bytes.len() as u64)?;
            buffer.copy_in(Stream::DEFAULT, 0, bytes)?;
            let (dtype, len) = (view.dtype(), view.len() as u64);
            let array = Array { address: buffer.address(), len, dtype };
            Ok(Some((buffer, array)))
        };
        let made = || {
            let (Some((_keys, keys)), Some((_values, values))) = (send(keys)?, send(values)?)
            else {
                return Ok(None);
            };
            // SAFETY: the arrays were allocated and filled here.
            unsafe { ask(&self.engine, ops, keys, values, dense, Stream::DEFAULT) }
        };
        match made() {
            Err(error) if error.is_out_of_memory() => Ok(None),
            made => made.map_err(named),
        }
    }
}

impl DeviceArray<'_> {
    /// The numbers of groups of these values by keys in the same memory, where both lie as
    /// kernels walk them.
    pub(crate) fn numbers_of_groups(
        &self,
        ops: &[Op],
        keys: &DeviceArray<'_>,
        dense: Option<usize>,
    ) -> Result<Option<Made>> {
        let array = |of: &DeviceArray<'_>| {
            let (address, dtype, len) = (of.view().address, of.dtype(), of.len() as u64);
            let aligned = address.is_multiple_of(dtype.size() as u64);
            let fits = aligned && of.is_contiguous() && len > 0;
            fits.then_some(Array { address, len, dtype })
        };
        let (Some(values), Some(column)) = (array(self), array(keys)) else { return Ok(None) };
        let (_lent, _lent_too) = (self.lend(), keys.lend());
        let stream = self.stream();
        // SAFETY: who made the arrays has promised that they may be read, and they are until
        // this returns.
        let made = unsafe { ask(&stream.opened.engine, ops, column, values, dense, stream.stream) };
        match made {
            Err(error) if error.is_out_of_memory() => Ok(None),
            made => made.map_err(failure),
        }
    }

    /// Refuses arrays that a reduction cannot take together.
    pub(crate) fn check_beside(
        &self,
        question: &Reduction,
        other: Option<&DeviceArray<'_>>,
    ) -> Result<()> {
        check_place(question, self, other)
    }
}
