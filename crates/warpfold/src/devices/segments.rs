//! Segments of arrays, answered on a device.

use super::engines::{Opened, failure as named};
use super::in_place::{failure, numbers};
use super::memory::DeviceArray;
use super::on_host::OnHost;
use crate::answer::{Answer, halves};
use crate::segments::Segmented;
use crate::segments::parts::Made;
use std::sync::Arc;
use warpfold_core::layout::View;
use warpfold_core::op::{Numbers, Rules};
use warpfold_core::{Op, Result, Scalar, fpenv};
use warpfold_cpu::{Bounds, Indices};
use warpfold_cuda::engine::{Array, Boundaries, Segments, Width};
use warpfold_cuda::{Buffer, Device, Engine, Stream};

/// Which numbers of each segment answer an operation.
fn parts(op: Op) -> Vec<Op> {
    match op {
        // They are of all elements what they are of the smallest and the largest one.
        Op::Range | Op::NormInf => vec![Op::Min, Op::Max],
        _ => halves(op),
    }
}

/// Boundaries as they lie in the host's memory.
fn bytes_of<'a>(indices: &Indices<'a>) -> Option<(&'a [u8], Width)> {
    Some(match *indices {
        Indices::U32(items) => (bytemuck::cast_slice(items), Width::Unsigned32),
        Indices::I32(items) => (bytemuck::cast_slice(items), Width::Signed32),
        Indices::U64(items) => (bytemuck::cast_slice(items), Width::Word64),
        Indices::I64(items) => (bytemuck::cast_slice(items), Width::Word64),
        _ => return None,
    })
}

/// The boundaries of segments in a device's memory, held there.
struct Sent {
    segments: Segments,
    _memory: Vec<Buffer<'static>>,
}

impl Sent {
    /// Sends the boundaries of segments of an array of `len` elements; `None` for those
    /// that cannot be, which the CPU names.
    fn new(
        bounds: &Bounds<'_>,
        len: usize,
        device: &Arc<dyn Device>,
        stream: Stream,
    ) -> warpfold_cuda::Result<Option<Sent>> {
        let mut memory = Vec::new();
        let mut send = |bytes: &[u8]| -> warpfold_cuda::Result<u64> {
            let buffer = Buffer::new(device, bytes.len() as u64)?;
            buffer.copy_in(stream, 0, bytes)?;
            let address = buffer.address();
            memory.push(buffer);
            Ok(address)
        };
        let (count, boundaries) = match bounds {
            Bounds::Fixed(0) => return Ok(None),
            &Bounds::Fixed(each) if !len.is_multiple_of(each) => return Ok(None),
            &Bounds::Fixed(each) => (len / each, Boundaries::Fixed(each as u64)),
            Bounds::Offsets(offsets) => {
                let Some((bytes, width)) = bytes_of(offsets) else { return Ok(None) };
                let Some(count) = offsets.len().checked_sub(1) else { return Ok(None) };
                (count, Boundaries::Offsets(send(bytes)?, width))
            }
            Bounds::Lengths(lengths) => {
                let Some(offsets) = offsets_of(lengths, len) else { return Ok(None) };
                let at = send(bytemuck::cast_slice(&offsets))?;
                (offsets.len() - 1, Boundaries::Offsets(at, Width::Word64))
            }
            Bounds::StartsStops(starts, stops) if starts.len() == stops.len() => {
                let (Some(first), Some(second)) = (bytes_of(starts), bytes_of(stops)) else {
                    return Ok(None);
                };
                let places = ((send(first.0)?, first.1), (send(second.0)?, second.1));
                (starts.len(), Boundaries::StartsStops(places.0, places.1))
            }
            _ => return Ok(None),
        };
        if count == 0 {
            return Ok(None);
        }
        let segments = Segments { count: count as u64, boundaries };
        Ok(Some(Sent { segments, _memory: memory }))
    }
}

/// Offsets of lengths, if these sum to `len`.
fn offsets_of(lengths: &Indices<'_>, len: usize) -> Option<Vec<u64>> {
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    let mut at = 0u64;
    offsets.push(at);
    for i in 0..lengths.len() {
        let length = match lengths {
            Indices::U32(items) => u64::from(items[i]),
            Indices::U64(items) => items[i],
            Indices::I32(items) => u64::try_from(items[i]).ok()?,
            Indices::I64(items) => u64::try_from(items[i]).ok()?,
            _ => return None,
        };
        at = at.checked_add(length).filter(|&at| at <= len as u64)?;
        offsets.push(at);
    }
    (at == len as u64).then_some(offsets)
}

/// Asks an engine about segments of an array in its memory.
///
/// # Safety
/// As for [`Engine::numbers_of_segments`].
unsafe fn ask(
    engine: &Engine,
    (ops, rules): (&[Op], &Rules),
    array: Array,
    bounds: &Bounds<'_>,
    initial: Option<Scalar>,
    stream: Stream,
) -> warpfold_cuda::Result<Made> {
    let len = usize::try_from(array.len).unwrap_or(usize::MAX);
    let sent = Sent::new(bounds, len, engine.device(), stream)?;
    let Some(sent) = sent else { return Ok(vec![None; ops.len()]) };
    let asked = numbers(ops, rules, array.dtype, parts);
    // SAFETY: passed on from the caller; the boundaries live until this returns.
    let all =
        unsafe { engine.numbers_of_segments(&asked, array, &sent.segments, initial, stream) }?;
    let mut all = all.into_iter();
    let its = |&op: &Op| {
        // All of them, before one that is not there ends what is collected.
        let its: Vec<Option<Numbers>> = all.by_ref().take(parts(op).len()).collect();
        its.into_iter().collect()
    };
    Ok(ops.iter().map(its).collect())
}

impl Opened {
    /// The numbers of segments of an array in the host's memory, which is sent to the
    /// device; none where that has no room for it.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn numbers_of_segments(
        &self,
        (ops, rules): (&[Op], &Rules),
        view: &View<'_>,
        bounds: &Bounds<'_>,
        initial: Option<Scalar>,
    ) -> Result<Made> {
        let none = || vec![None; ops.len()];
        let Some(bytes) = view.contiguous().filter(|bytes| !bytes.is_empty()) else {
            return Ok(none());
        };
        let dtype = view.dtype();
        let made = || {
            let buffer = Buffer::new(self.engine.device(), bytes.len() as u64)?;
            buffer.copy_in(Stream::DEFAULT, 0, bytes)?;
            let len = (bytes.len() / dtype.size()) as u64;
            let array = Array { address: buffer.address(), len, dtype };
            // SAFETY: the array was allocated and filled here.
            unsafe { ask(&self.engine, (ops, rules), array, bounds, initial, Stream::DEFAULT) }
        };
        match made() {
            Err(error) if error.is_out_of_memory() => Ok(none()),
            made => made.map_err(named),
        }
    }
}

impl DeviceArray<'_> {
    /// The numbers of segments of this array, where it lies as kernels walk it.
    fn numbers_of_segments(
        &self,
        (ops, rules): (&[Op], &Rules),
        bounds: &Bounds<'_>,
        initial: Option<Scalar>,
    ) -> Result<Made> {
        let dtype = self.dtype();
        let address = self.view().address;
        if !self.is_contiguous() || !address.is_multiple_of(dtype.size() as u64) || self.is_empty()
        {
            return Ok(vec![None; ops.len()]);
        }
        let array = Array { address, len: self.len() as u64, dtype };
        let _lent = self.lend();
        let stream = self.stream();
        // SAFETY: who made the array has promised that it may be read, and it is until this
        // returns.
        let made = unsafe {
            ask(&stream.opened.engine, (ops, rules), array, bounds, initial, stream.stream)
        };
        made.map_err(failure)
    }
}

impl Segmented<'_> {
    /// The answers about segments of arrays in a device's memory. What the device does not
    /// answer by itself is reduced on the host.
    pub(crate) fn run_in_place(
        &self,
        first: &DeviceArray<'_>,
        second: Option<&DeviceArray<'_>>,
    ) -> Result<Answer> {
        fpenv::usual(|| {
            // Axes are told of segments first, as in the host's memory.
            self.check_axes(first.shape())?;
            let all = self.reduction.clone().axes(0..first.shape().len() as isize);
            all.in_place(first, second)?;
            let ask = |ops: &[Op], bounds: &Bounds<'_>, initial| match second {
                None => first.numbers_of_segments((ops, &self.reduction.rules), bounds, initial),
                Some(_) => Ok(vec![None; ops.len()]),
            };
            let on_host = |segmented: &Segmented<'_>| {
                let held = first.to_host()?;
                let held_too = second.map(DeviceArray::to_host).transpose()?;
                let left = held.view()?;
                let right = held_too.as_ref().map(OnHost::view).transpose()?;
                segmented.on_cpu([Some(&left), right.as_ref()], None)
            };
            self.shared(first.dtype(), first.shape(), ask, on_host)
        })
    }
}
