//! Reductions over some axes of arrays in a device's memory, to states.
//!
//! Every question is a table: a row of elements for each output. Payloads stay
//! on the device until there is no room for more, and come back in one copy.

use super::collect::Collector;
use super::digits::Digits;
use super::rows::Rows;
use super::table::{Order, Table};
use super::tiles::{LEAST_WORKSPACE, Wanted, largest_workspace};
use super::view::{DeviceView, check_pair};
use super::{Array, Engine, Input, lock, output};
use crate::Result;
use crate::device::{Address, Stream};
use core::ops::Range;
use warpfold_core::layout::{Axis, Split, Traversal};
use warpfold_core::op::{AnyState, Kind};

/// Kinds that walk in the same order, and the places of each among those asked
/// for.
pub(super) struct Group {
    pub(super) order: Order,
    kinds: Vec<Kind>,
    pub(super) places: Vec<usize>,
}

/// The kinds that walk in each order; one group if all can.
pub(super) fn groups(kinds: &[Kind], reduced: &[Axis]) -> Vec<Group> {
    let in_order = Traversal::new(reduced, true).in_order;
    let order_of = |kind| if in_order { Order::Memory } else { Order::of(kind) };
    let group = |order| {
        let places = (0..kinds.len()).filter(|&i| order_of(kinds[i]) == order);
        let places: Vec<usize> = places.collect();
        Group { order, kinds: places.iter().map(|&i| kinds[i]).collect(), places }
    };
    let groups = [Order::Memory, Order::Index].map(group);
    groups.into_iter().filter(|g| !g.kinds.is_empty()).collect()
}

/// Who takes the state of a piece of an output: which output, in C order, and
/// the kind's place.
pub(super) type Sink<'a> = dyn FnMut(usize, usize, AnyState) -> Result<()> + 'a;

impl Engine {
    /// The states of every output of a reduction over the axes that `reduced`
    /// marks, output by output in C order, all `kinds` of each; waits for
    /// them. Two views are reduced together, as for a dot product. The first
    /// element of each output has index `start`.
    ///
    /// # Errors
    /// Views that cannot be, or that differ in shape or type;
    /// [`Error::NoKernel`](crate::Error::NoKernel); more outputs than memory holds; what the device
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
        first.check(&**self.device())?;
        if let Some(second) = second {
            second.check(&**self.device())?;
            check_pair((first.dtype, &first.shape), (second.dtype, &second.shape))?;
        }
        let dtype = first.dtype;
        let strides = [&first.strides[..], second.map_or(&[], |v| &v.strides)];
        let split = Split::new(&first.shape, strides, reduced)?;
        let mut collector = Collector::new(dtype, kinds, split.outputs)?;
        let at = views.map(|v| v.map(|v| v.address));
        if !first.is_empty() {
            for group in groups(kinds, &split.reduced) {
                let table = Table::new(dtype, at, &split.kept, &split.reduced, group.order);
                let sink = &mut |output, kind, state| collector.put(output, kind, state);
                // SAFETY: the elements of the table are those of the views.
                unsafe { self.states_of_table(&table, &group, start, stream, sink)? };
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
        group: &Group,
        start: u64,
        stream: Stream,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let Group { kinds, places, .. } = group;
        let dtype = table.dtype;
        let wanted = Wanted { table, kinds, start };
        let scratch = self.scratch(stream)?;
        // Held until all payloads are read: another thread's would overwrite
        // them.
        let mut scratch = lock(&scratch);
        let device = &**self.device();
        let bytes = wanted.bytes()?.min(largest_workspace(device.limits()));
        let space = scratch.workspace.reserve(device, stream, bytes, LEAST_WORKSPACE)?;
        let workspace = space.0..space.0 + space.1;
        let mut digits = Digits::new(device, stream);
        let mut bytes = Vec::new();
        let read = &mut |batch: &super::tiles::Batch| {
            bytes.resize(8 * batch.used, 0);
            // SAFETY: the batch lies in the workspace, which is held until it is read.
            unsafe { device.copy_out(stream, batch.at, &mut bytes)? };
            // The copy waited already; this says what a kernel did wrong.
            device.wait(stream)?;
            let mut rest = &bytes[..];
            for run in &batch.runs {
                let Rows { len, start, .. } = run.rows;
                digits.read_ahead_to(together(&run.rows, &workspace));
                for i in 0..run.count {
                    let at = run.rows.row(i);
                    let array = Array { address: at[0], len: len as u64, dtype };
                    let input = Input { array, others: run.rows.others(at), start };
                    let output = table.output(run.first + i * run.step);
                    for ((&kind, &place), &words) in kinds.iter().zip(places).zip(&run.words) {
                        let (bytes, after) = rest.split_at(8 * words);
                        rest = after;
                        let mut state = output::state(kind, &input, bytes)?;
                        // SAFETY: the rows are elements of the table, or copies in the
                        // workspace that the next ones come after; in between nobody
                        // writes.
                        unsafe { digits.restore(&mut state, array)? };
                        sink(output, place, state)?;
                    }
                }
            }
            Ok(())
        };
        // SAFETY: the caller's promise; the workspace is the stream's.
        unsafe { self.reduce_table(wanted, space, &mut scratch, stream, read) }
    }
}

/// Longer rows are not worth a copy for the digits of the next one.
const SHORT_ROW: usize = 64 << 10;

/// Where rows end that can be copied as one, the first included; 0 if none can: what
/// lies between rows in place may be anybody's.
fn together(rows: &Rows, workspace: &Range<Address>) -> Address {
    let bytes = rows.len * rows.dtype.size();
    let dense = rows.stride == bytes.cast_signed();
    let own = workspace.contains(&rows.at[0]) && rows.stride > 0;
    let last = rows.count.checked_sub(1).filter(|_| (dense || own) && bytes <= SHORT_ROW);
    last.map_or(0, |last| rows.row(last)[0] + bytes as u64)
}
