//! Reductions over some axes of arrays in a device's memory.
//!
//! Every question is a table: a row of elements for each output. Where rows lie
//! in memory as such they are reduced in place, else they are copied together
//! in the workspace, as many outputs at a time as it has room for. An output
//! that does not fit comes in pieces, whose states merge. Payloads stay on the
//! device until there is no room for more, and come back in one copy.

use super::gather::Step;
use super::parts::{Part, parts};
use super::rows::Rows;
use super::scratch::Scratch;
use super::table::{Order, ROW_ALIGNMENT, Table, offset};
use super::view::{DeviceView, check_pair};
use super::{Engine, kernels, lock};
use crate::device::{Address, Device, Limits, Stream};
use crate::{Error, Result};
use warpfold_core::DType;
use warpfold_core::layout::{Axis, Dim, Split, Traversal};
use warpfold_core::op::tree::BLOCK;
use warpfold_core::op::{AnyState, Kind};

/// Bytes of the workspace of a stream: at most these, and at most this part of
/// the device's memory.
const WORKSPACE: u64 = 256 << 20;
const PART_OF_MEMORY: u64 = 16;

/// A workspace of fewer bytes is no use: too little memory is an error then.
const LEAST_WORKSPACE: u64 = 64 << 10;

/// More launches than this for rows in place are not worth saving a copy...
const MANY_LAUNCHES: usize = 32;
/// ... unless each reads so many bytes.
const WORTH_A_LAUNCH: usize = 1 << 20;

/// A kind, and its place among those asked for.
pub(super) type Wanted = (usize, Kind);

/// The kinds that walk in each order; one group if all can.
pub(super) fn groups(kinds: &[Kind], reduced: &[Axis]) -> Vec<(Order, Vec<Wanted>)> {
    let all = kinds.iter().copied().enumerate();
    if Traversal::new(reduced, true).in_order {
        return vec![(Order::Memory, all.collect())];
    }
    let of = |order| (order, all.clone().filter(|&(_, k)| Order::of(k) == order).collect());
    [Order::Memory, Order::Index]
        .map(of)
        .into_iter()
        .filter(|(_, k): &(_, Vec<_>)| !k.is_empty())
        .collect()
}

/// Who takes the state of a piece of an output: which output, in C order, and
/// the kind's place.
pub(super) type Sink<'a> = dyn FnMut(usize, usize, AnyState) -> Result<()> + 'a;

/// How a table goes through the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiling {
    /// Payloads that there is room for.
    slots: usize,
    /// Where gathered rows begin, behind the payloads.
    rows: u64,
    /// Outputs that are gathered at once, and elements of each.
    outputs: usize,
    elements: usize,
}

/// The bytes from one gathered row of `len` elements to the next.
fn pitch(len: usize, size: usize) -> usize {
    (len * size).next_multiple_of(ROW_ALIGNMENT)
}

/// Bytes of the workspace of a stream.
fn largest_workspace(limits: &Limits) -> u64 {
    WORKSPACE.min(limits.memory / PART_OF_MEMORY).max(LEAST_WORKSPACE)
}

impl Tiling {
    /// The bytes that a table would like to have.
    fn wanted(table: &Table, gathers: bool, payload: usize) -> u64 {
        let row = if gathers { table.row_bytes() } else { 0 };
        let all = table.outputs.len.saturating_mul(row.saturating_add(payload));
        (all as u64).saturating_add(LEAST_WORKSPACE)
    }

    /// What to do with `bytes` bytes, at least [`LEAST_WORKSPACE`].
    fn new(table: &Table, gathers: bool, payload: usize, bytes: u64) -> Tiling {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if !gathers {
            let slots = (bytes / payload).max(1);
            return Tiling { slots, rows: 0, outputs: slots, elements: table.elements.len };
        }
        // Of an output that comes in pieces, each piece has a payload.
        let payloads = table.outputs.len.max(64).saturating_mul(payload).min(bytes / 2);
        let rows = payloads.next_multiple_of(256);
        let room = bytes.saturating_sub(rows);
        let slots = (payloads / payload).max(1);
        let fit = room / table.row_bytes().max(1);
        if fit > 0 {
            let outputs = fit.min(slots);
            return Tiling { slots, rows: rows as u64, outputs, elements: table.elements.len };
        }
        let elements = (room / table.arrays.max(1)) / ROW_ALIGNMENT * ROW_ALIGNMENT;
        let elements = elements / table.dtype.size();
        // Whole blocks of the fixed tree.
        let whole = elements / BLOCK * BLOCK;
        let elements = if whole > 0 { whole } else { elements };
        Tiling { slots, rows: rows as u64, outputs: 1, elements }
    }
}

/// Payloads on the device, and whose they are.
struct Pending<'a> {
    table: &'a Table,
    kinds: &'a [Wanted],
    /// The words of each kind's payload, one behind the other.
    words: Vec<usize>,
    at: Address,
    slots: usize,
    used: usize,
    runs: Vec<Run>,
}

/// Outputs whose payloads follow one another: every `step`-th position of the
/// table's outputs from `first` on.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: usize,
    step: usize,
    count: usize,
}

impl Pending<'_> {
    /// Words from one output's payloads to the next's.
    fn stride(&self) -> usize {
        self.words.iter().sum()
    }

    fn free(&self) -> usize {
        self.slots - self.used
    }

    /// Reads back what there is.
    fn flush(&mut self, device: &dyn Device, stream: Stream, sink: &mut Sink<'_>) -> Result<()> {
        let mut bytes = vec![0; 8 * self.used * self.stride()];
        device.copy_out(stream, self.at, &mut bytes)?;
        // The copy waited already; this says what a kernel did wrong.
        device.wait(stream)?;
        let dtype = self.table.dtype;
        let mut rest = &bytes[..];
        for run in self.runs.drain(..) {
            for i in 0..run.count {
                let output = self.table.output(run.first + i * run.step);
                for (&(place, kind), &words) in self.kinds.iter().zip(&self.words) {
                    let (payload, after) = rest.split_at(8 * words);
                    rest = after;
                    sink(output, place, kernels::state(kind, dtype, payload)?)?;
                }
            }
        }
        self.used = 0;
        Ok(())
    }
}

impl Engine {
    /// The states of every output of a reduction over the axes that `reduced`
    /// marks, output by output in C order, all `kinds` of each; waits for
    /// them. Two views are reduced together, as for a dot product. The first
    /// element of each output has index `start`.
    ///
    /// # Errors
    /// Views that cannot be, or that differ in shape or type;
    /// [`Error::NoKernel`]; more outputs than memory holds; what the device
    /// says.
    ///
    /// # Safety
    /// Every element of the views is in memory of this device, written by what
    /// comes before on the stream and by nobody until this returns.
    pub unsafe fn states_of_view(
        &self,
        views: [Option<&DeviceView>; 2],
        reduced: &[bool],
        kinds: &[Kind],
        start: u64,
        stream: Stream,
    ) -> Result<Vec<Vec<AnyState>>> {
        let [Some(first), second] = views else { return Ok(Vec::new()) };
        first.check()?;
        if let Some(second) = second {
            second.check()?;
            check_pair((first.dtype, &first.shape), (second.dtype, &second.shape))?;
        }
        let dtype = first.dtype;
        let strides = [&first.strides[..], second.map_or(&[], |v| &v.strides)];
        let split = Split::new(&first.shape, strides, reduced)?;
        let mut collector = Collector::new(dtype, kinds, split.outputs)?;
        let at = views.map(|v| v.map(|v| v.address));
        if !first.is_empty() {
            for (order, kinds) in groups(kinds, &split.reduced) {
                let table = Table::new(dtype, at, &split.kept, &split.reduced, order);
                let sink = &mut |output, kind, state| collector.put(output, kind, state);
                // SAFETY: the elements of the table are those of the views.
                unsafe { self.states_of_table(&table, &kinds, start, stream, sink)? };
            }
        }
        collector.finish()
    }

    /// Hands the states of a table that is not empty to `sink`; in pieces, if
    /// there is no room for an output.
    ///
    /// # Safety
    /// As for [`states_of_view`](Self::states_of_view), for every element of
    /// the table.
    pub(super) unsafe fn states_of_table(
        &self,
        table: &Table,
        kinds: &[Wanted],
        start: u64,
        stream: Stream,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        if kinds.is_empty() {
            return Ok(());
        }
        let dtype = table.dtype;
        let len = |&(_, kind): &Wanted| {
            kernels::payload_len(kind, dtype).ok_or(Error::NoKernel { kind, dtype })
        };
        let words = kinds.iter().map(|k| Ok(len(k)? / 8)).collect::<Result<Vec<usize>>>()?;
        let payload = 8 * words.iter().sum::<usize>().max(1);
        let in_place = in_place(table);
        let gathers = in_place.is_none();

        let scratch = self.scratch(stream)?;
        // Held until all payloads are read: another thread's would overwrite
        // them.
        let mut scratch = lock(&scratch);
        let device = &*self.device;
        let wanted =
            Tiling::wanted(table, gathers, payload).min(largest_workspace(device.limits()));
        let (at, bytes) = scratch.workspace.hold(device, stream, wanted, LEAST_WORKSPACE)?;
        let tiling = Tiling::new(table, gathers, payload, bytes);
        let Tiling { slots, rows, outputs, elements } = tiling;
        let mut pending = Pending { table, kinds, words, at, slots, used: 0, runs: Vec::new() };

        if let Some(rows) = in_place {
            for part in parts(&rows.launches, 1) {
                let mut done = 0;
                while done < rows.count {
                    if pending.free() == 0 {
                        pending.flush(device, stream, sink)?;
                    }
                    let count = (rows.count - done).min(pending.free());
                    let before = done.cast_signed() * rows.stride;
                    let now = Rows {
                        dtype,
                        arrays: table.arrays,
                        at: offset(offset(table.at, part.offsets), [before; 2]),
                        stride: rows.stride,
                        count,
                        len: table.elements.len,
                        start,
                    };
                    // Launches go through the other dimensions, whose positions
                    // are cut in two by that of the rows.
                    let (outer, inner) = (part.first / rows.step, part.first % rows.step);
                    let first = (outer * rows.count + done) * rows.step + inner;
                    let run = Run { first, step: rows.step, count };
                    // SAFETY: rows of the table, and the workspace's payloads.
                    unsafe { self.add_rows(&now, run, &mut pending, &mut scratch, stream)? };
                    done += count;
                }
            }
            return pending.flush(device, stream, sink);
        }

        for some in parts(&table.outputs.dims, outputs) {
            for piece in parts(&table.elements.dims, elements) {
                if pending.free() < some.len {
                    pending.flush(device, stream, sink)?;
                }
                // SAFETY: the workspace has room for so many rows.
                let gathered =
                    unsafe { self.gather_rows(table, &some, &piece, at + rows, stream)? };
                let now = Rows { start: start + piece.first as u64, ..gathered };
                let run = Run { first: some.first, step: 1, count: some.len };
                // SAFETY: the rows lie in the workspace, like the payloads.
                unsafe { self.add_rows(&now, run, &mut pending, &mut scratch, stream)? };
            }
        }
        pending.flush(device, stream, sink)
    }

    /// Reduces rows to the next payloads.
    ///
    /// # Safety
    /// As for [`reduce_rows`](Self::reduce_rows); there are as many free slots.
    unsafe fn add_rows(
        &self,
        rows: &Rows,
        run: Run,
        pending: &mut Pending<'_>,
        scratch: &mut Scratch,
        stream: Stream,
    ) -> Result<()> {
        let stride = pending.stride();
        let mut to = pending.at + 8 * (pending.used * stride) as u64;
        for (&(_, kind), &words) in pending.kinds.iter().zip(&pending.words) {
            // SAFETY: passed on from the caller.
            unsafe { self.reduce_rows(kind, rows, scratch, to, stride as u64, stream)? };
            to += 8 * words as u64;
        }
        pending.used += run.count;
        pending.runs.push(run);
        Ok(())
    }

    /// Copies a piece of some outputs together, row by row; the rows' `start`
    /// is for the caller to say.
    ///
    /// # Safety
    /// The elements of the table may be read, and as many rows of
    /// [`pitch`] bytes written at `to`, an array after the other.
    unsafe fn gather_rows(
        &self,
        table: &Table,
        outputs: &Part,
        elements: &Part,
        to: Address,
        stream: Stream,
    ) -> Result<Rows> {
        let dtype = table.dtype;
        let size = dtype.size();
        let stride = pitch(elements.len, size);
        let from = offset(offset(table.at, outputs.offsets), elements.offsets);
        let at = [to, to + (outputs.len * stride) as u64];
        let aligned = table.is_aligned();
        for i in 0..table.arrays {
            let mut steps = Vec::with_capacity(outputs.dims.len() + elements.dims.len() + 1);
            if !aligned {
                steps.push(Step { len: size, from: 1, to: 1 });
            }
            let mut packed = |dims: &[Dim], mut to: usize| {
                for dim in dims.iter().rev() {
                    let Dim { len, strides, .. } = *dim;
                    steps.push(Step { len, from: strides[i], to: to.cast_signed() });
                    to *= len;
                }
            };
            packed(&elements.dims, size);
            packed(&outputs.dims, stride);
            let size = if aligned { size } else { 1 };
            // SAFETY: passed on from the caller; the steps go through exactly
            // these elements.
            unsafe { self.gather(size, from[i], at[i], steps, stream)? };
        }
        Ok(Rows {
            dtype,
            arrays: table.arrays,
            at,
            stride: stride.cast_signed(),
            count: outputs.len,
            len: elements.len,
            start: 0,
        })
    }
}

/// How rows are reduced where they lie: launches of `count` rows, one for each
/// step of the other dimensions of the outputs.
struct InPlace {
    launches: Vec<Dim>,
    count: usize,
    stride: isize,
    /// From row to row in the outputs' positions.
    step: usize,
}

/// The rows of a table, if they can be reduced where they lie and few launches
/// go through all of them.
fn in_place(table: &Table) -> Option<InPlace> {
    let dims = &table.outputs.dims;
    if !table.has_rows() {
        return None;
    }
    // Both arrays' rows have one stride.
    let even = |d: &Dim| table.arrays == 1 || d.strides[0] == d.strides[1];
    let longest = (0..dims.len()).filter(|&i| even(&dims[i])).max_by_key(|&i| dims[i].len);
    let mut launches = dims.clone();
    let (count, stride, step) = match longest {
        Some(i) => {
            let dim = launches.remove(i);
            (dim.len, dim.strides[0], dims[i + 1..].iter().map(|d| d.len).product())
        }
        None => (1, 0, 1),
    };
    let bytes = table.elements.len.saturating_mul(count).saturating_mul(table.dtype.size());
    let many = table.outputs.len / count > MANY_LAUNCHES;
    (!many || bytes >= WORTH_A_LAUNCH).then_some(InPlace { launches, count, stride, step })
}

/// The states of all outputs in C order, as they come.
pub(super) struct Collector<'a> {
    dtype: DType,
    kinds: &'a [Kind],
    outputs: usize,
    states: Vec<Option<AnyState>>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(dtype: DType, kinds: &'a [Kind], outputs: usize) -> Result<Self> {
        let count = outputs.saturating_mul(kinds.len());
        let mut states = Vec::new();
        let too_many = |_| warpfold_core::Error::TooManyOutputs { outputs };
        states.try_reserve_exact(count).map_err(too_many)?;
        states.resize_with(count, || None);
        Ok(Collector { dtype, kinds, outputs, states })
    }

    /// Takes the state of a piece of an output, of the kind with this place.
    pub(super) fn put(&mut self, output: usize, kind: usize, state: AnyState) -> Result<()> {
        match &mut self.states[output * self.kinds.len() + kind] {
            Some(before) => before.merge(&state)?,
            empty => *empty = Some(state),
        }
        Ok(())
    }

    /// The states, output by output; of no elements where none came.
    ///
    /// # Errors
    /// [`Error::NoKernel`] where there is no such state.
    pub(super) fn finish(self) -> Result<Vec<Vec<AnyState>>> {
        let Collector { dtype, kinds, outputs, states } = self;
        let mut states = states.into_iter();
        let one = |(state, &kind): (Option<AnyState>, &Kind)| match state {
            Some(state) => Ok(state),
            None if Engine::supports(kind, dtype) => Ok(AnyState::identity(kind, dtype)?),
            None => Err(Error::NoKernel { kind, dtype }),
        };
        (0..outputs)
            .map(|_| states.by_ref().take(kinds.len()).zip(kinds).map(one).collect())
            .collect()
    }
}
