//! Groups of rows, answered on a device.

use super::engines::{Opened, failure as named};
use super::in_place::{check_place, failure, numbers};
use super::memory::DeviceArray;
use crate::answer::halves;
use crate::groups::on_devices::Made;
use crate::reduction::Reduction;
use warpfold_core::Result;
use warpfold_core::layout::View;
use warpfold_core::op::{Op, Rules};
use warpfold_cuda::engine::Array;
use warpfold_cuda::{Buffer, Engine, Stream};

/// Asks an engine about groups of rows in its memory; nothing where it does not answer.
///
/// # Safety
/// As for [`Engine::group`].
unsafe fn ask(
    engine: &Engine,
    (ops, rules): (&[Op], &Rules),
    keys: &[Array],
    values: Array,
    dense: Option<usize>,
    stream: Stream,
) -> warpfold_cuda::Result<Option<Made>> {
    let asked = numbers(ops, rules, values.dtype, halves);
    let groups = dense.map(|count| count as u64);
    // SAFETY: passed on from the caller.
    let Some(mut made) = (unsafe { engine.group(&asked, values, keys, groups, stream)? }) else {
        return Ok(None);
    };
    let mut numbers = (0..asked.len())
        .map(|place| made.numbers(place))
        .collect::<Result<Vec<_>, _>>()?
        .into_iter();
    let parts = ops.iter().map(|&op| numbers.by_ref().take(halves(op).len()).collect()).collect();
    let keys = (0..keys.len()).map(|column| made.keys(column)).collect::<Result<_, _>>()?;
    let present = dense.map(|_| made.present()).transpose()?;
    Ok(Some(Made { keys, present, parts }))
}

impl Opened {
    /// The numbers of groups of rows in the host's memory, which are sent to the device; none
    /// where that has no room for them.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn numbers_of_groups(
        &self,
        (ops, rules): (&[Op], &Rules),
        keys: &[View<'_>],
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
            let sent = keys.iter().chain([values]).map(send).collect::<Result<Option<Vec<_>>, _>>();
            let Some(mut sent) = sent? else { return Ok(None) };
            let Some((_values, values)) = sent.pop() else { return Ok(None) };
            let keys: Vec<Array> = sent.iter().map(|&(_, keys)| keys).collect();
            // SAFETY: the arrays were allocated and filled here.
            unsafe { ask(&self.engine, (ops, rules), &keys, values, dense, Stream::DEFAULT) }
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
        (ops, rules): (&[Op], &Rules),
        keys: &[&DeviceArray<'_>],
        dense: Option<usize>,
    ) -> Result<Option<Made>> {
        let array = |of: &DeviceArray<'_>| {
            let (address, dtype, len) = (of.view().address, of.dtype(), of.len() as u64);
            let aligned = address.is_multiple_of(dtype.size() as u64);
            let fits = aligned && of.is_contiguous() && len > 0;
            fits.then_some(Array { address, len, dtype })
        };
        let columns = keys.iter().map(|&keys| array(keys)).collect::<Option<Vec<_>>>();
        let Some((values, columns)) = array(self).zip(columns) else { return Ok(None) };
        let _lent: Vec<_> = keys.iter().copied().chain([self]).map(DeviceArray::lend).collect();
        let stream = self.stream();
        // SAFETY: who made the arrays has promised that they may be read, and they are until
        // this returns.
        let made = unsafe {
            ask(&stream.opened.engine, (ops, rules), &columns, values, dense, stream.stream)
        };
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
