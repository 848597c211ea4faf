//! Device memory that launches on one stream use, one after the other.
//!
//! ```text
//! words     0        16      32               256                  256 + 12 * 4096
//!           | ticket | tiles | sums of blocks | partials of blocks | payload | overflow
//! ```
//!
//! `kernels/ticket.cuh` and `kernels/tile_scheduler.cuh` have the same numbers. Tickets, numbers of tiles,
//! sums and partials are zero between launches: the last block of each sets them
//! back. Rows that have several blocks each have such memory each, with room for the
//! partials of [`MOST_ROW_BLOCKS`] blocks and without a payload. What needs more room
//! gets it apart, and keeps it.

use super::Planned;
use super::catalogue::{SCRATCH_PARTIAL_WORDS, SCRATCH_PARTIALS};
use super::known::LastQuestions;
use super::plan::{MOST_BLOCKS, MOST_ROW_BLOCKS};
use super::result_slot::ResultSlot;
use super::workspace::Workspace;
use crate::device::{Address, Device, Launch, Stream};
use crate::{Error, Result};
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::Kind;

const PARTIALS: u64 = SCRATCH_PARTIALS as u64;
/// The most words of a block's partial state: halves of words.
const PARTIAL_WORDS: u64 = SCRATCH_PARTIAL_WORDS as u64;
const PAYLOAD: u64 = PARTIALS + PARTIAL_WORDS * MOST_BLOCKS as u64;
/// The most words of a payload that a kernel leaves.
const PAYLOAD_WORDS: u64 = 256;
const OVERFLOW: u64 = PAYLOAD + PAYLOAD_WORDS;
/// The most bytes of one.
pub(super) const MOST_PAYLOAD: u64 = 8 * PAYLOAD_WORDS;
/// The words of a row of several blocks: `SCRATCH_ROW` in `kernels/ticket.cuh`.
const ROW: u64 = PARTIALS + PARTIAL_WORDS * MOST_ROW_BLOCKS as u64;

/// A launch that writes nothing but scratch memory and what it leaves, and lets
/// the next one come only after its own wait.
#[derive(Clone, Copy)]
struct Ahead {
    /// How many calls had named the stream afterwards.
    calls: u64,
    /// Where it leaves how many bytes.
    to: Address,
    len: u64,
    /// The first and the last page of what it reads.
    read: [u64; 2],
}

/// The launch for some rows of a length, if one takes them all.
type RowsPlanned = ((Kind, DType, u32, u64), Option<Launch>);

/// Memory for groups of rows, which a question takes until its answers were brought away.
#[derive(Debug, Default)]
pub(super) struct GroupMemory {
    /// Accumulators, zero between questions, and counters beside them.
    pub(super) words: Workspace,
    pub(super) counted: Workspace,
    /// Answers in the order in which groups have numbers.
    pub(super) answers: Workspace,
    /// Keys of several columns, as one.
    pub(super) joined: Workspace,
    /// Distinct keys: in a table, and listed; the number of each row's.
    pub(super) table: Workspace,
    pub(super) found: Workspace,
    pub(super) rows: Workspace,
    /// Rows in the order of their groups, and their elements.
    pub(super) sorted: Workspace,
    pub(super) gathered: Workspace,
}

impl GroupMemory {
    fn memories(&mut self) -> [&mut Workspace; 9] {
        let GroupMemory { words, counted, answers, joined, table, found, .. } = self;
        let GroupMemory { rows, sorted, gathered, .. } = self;
        [words, counted, answers, joined, table, found, rows, sorted, gathered]
    }

    /// Gives memory back where it is more than this.
    pub(super) fn keep_below(
        &mut self,
        device: &dyn Device,
        stream: Stream,
        most: u64,
    ) -> Result<()> {
        self.memories().into_iter().try_for_each(|memory| memory.keep_below(device, stream, most))
    }
}

/// The scratch memory of a stream.
#[derive(Default)]
pub(super) struct Scratch {
    address: Address,
    /// Whether launches from elsewhere come between those from here.
    pub(super) is_beside: bool,
    /// What came last from here, if it is such a launch.
    ahead: Option<Ahead>,
    /// How the last input was reduced, and all that this depends on: the same comes
    /// again and again.
    pub(super) planned: Option<((Kind, DType, u64), Planned)>,
    /// The same of the last rows: many launches are compared for them, which takes longer than one.
    pub(super) rows_planned: Option<RowsPlanned>,
    /// The last questions that were answered with numbers.
    pub(super) known: LastQuestions,
    /// Where payloads come to the host by themselves, if they can.
    pub(super) slot: Option<ResultSlot>,
    /// Where kernels say in the host's memory that a number does not fit its type.
    overflow: Option<ResultSlot>,
    /// What warps or blocks share that need more: see `block_workspace.rs`.
    blocks: Workspace,
    /// A kernel's output that waits to be read, if it is more than a payload.
    output: Workspace,
    rows: Workspace,
    columns: Workspace,
    /// What blocks that share outputs of a view count and add up in, and what they
    /// leave for the last of them.
    shared: Workspace,
    partials: Workspace,
    /// Where kernels note keys that are no group's.
    notes: Workspace,
    /// Of groups, unless a question has taken it.
    pub(super) groups: GroupMemory,
    /// Where rows are brought together and payloads wait to be read.
    pub(super) workspace: Workspace,
    /// Numbers that are read back.
    pub(super) numbers: Workspace,
    /// Numbers that are still to be put in order.
    pub(super) walked: Workspace,
    /// Copies of elements that are chosen.
    pub(super) chosen: Workspace,
    /// The ends of ranges.
    pub(super) ends: Workspace,
}

impl Scratch {
    /// Fresh memory, ready for the stream's next launch.
    pub(super) fn new(device: &Arc<dyn Device>, stream: Stream) -> Result<Scratch> {
        let slot = ResultSlot::new(device, 8 * PAYLOAD_WORDS as usize)?;
        // Where a device does not write to the host's memory there is no use in asking twice.
        let overflow = if slot.is_some() { ResultSlot::new(device, 8)? } else { None };
        let address = device.allocate(8 * (OVERFLOW + 1))?;
        // SAFETY: it was just allocated, with more bytes.
        if let Err(error) = unsafe { device.fill(stream, address, 0, 8 * (OVERFLOW + 1)) } {
            // The first error says more than one of giving back.
            // SAFETY: allocated above, and nobody has used it.
            let _: Result<(), Error> = unsafe { device.free(address) };
            return Err(error);
        }
        Ok(Scratch { address, slot, overflow, ..Scratch::default() })
    }

    /// The same beside the stream's own, of which nothing is given back before the end.
    pub(super) fn keeping(device: &Arc<dyn Device>, stream: Stream) -> Result<Scratch> {
        let mut scratch = Scratch { is_beside: true, ..Scratch::new(device, stream)? };
        scratch.memories().for_each(|memory| *memory = Workspace::keeping());
        Ok(scratch)
    }

    /// All that is had apart.
    fn memories(&mut self) -> impl Iterator<Item = &mut Workspace> {
        let Scratch { blocks, output, rows, columns, shared, partials, notes, groups, .. } = self;
        let Scratch { workspace, numbers, walked, chosen, ends, .. } = self;
        let own = [
            blocks, output, rows, columns, shared, partials, notes, workspace, numbers, walked,
            chosen, ends,
        ];
        own.into_iter().chain(groups.memories())
    }

    /// Where it begins.
    pub(super) fn address(&self) -> Address {
        self.address
    }

    /// Whether these bytes were all written before the launch that is directly
    /// ahead of the next one, once so many calls have named the stream.
    pub(super) fn is_ready(&self, calls: Option<u64>, at: Address, bytes: u64) -> bool {
        let Some(Ahead { to, len, .. }) = self.ahead else { return false };
        let apart = at.saturating_add(bytes) <= to || to.saturating_add(len) <= at;
        apart && self.is_ahead(calls)
    }

    /// Whether the launch directly ahead of the next one is one from here, once so
    /// many calls have named the stream.
    pub(super) fn is_ahead(&self, calls: Option<u64>) -> bool {
        self.ahead.is_some_and(|ahead| calls == Some(ahead.calls))
    }

    /// Remembers a launch that leaves so many bytes at `to`, where so many calls
    /// had named the stream before; or forgets what came last.
    pub(super) fn launched(&mut self, output: Option<(u64, Address, u64)>, read: [u64; 2]) {
        self.ahead = output.map(|(calls, to, len)| Ahead { calls: calls + 1, to, len, read });
    }

    /// Whether these pages are among those that the launch directly ahead reads,
    /// which nobody has waited for: they are still there.
    pub(super) fn is_being_read(&self, calls: Option<u64>, [first, last]: [u64; 2]) -> bool {
        self.ahead.is_some_and(|ahead| {
            calls == Some(ahead.calls) && ahead.read[0] <= first && last <= ahead.read[1]
        })
    }

    /// Memory for a kernel's output that is read back at once.
    pub(super) fn output(
        &mut self,
        device: &dyn Device,
        stream: Stream,
        len: usize,
    ) -> Result<Address> {
        let bytes = len as u64;
        if bytes <= 8 * PAYLOAD_WORDS {
            return Ok(self.address + 8 * PAYLOAD);
        }
        self.output
            .reserve(device, stream, bytes.next_power_of_two(), bytes)
            .map(|(address, _)| address)
    }

    /// Memory of so many bytes that warps or blocks share: zero when it is new. Kinds
    /// that want a little more than each other get the same: a new one takes a wait.
    pub(super) fn for_blocks(
        &mut self,
        device: &dyn Device,
        stream: Stream,
        bytes: u64,
    ) -> Result<Address> {
        self.blocks.reserve_zeros(device, stream, bytes.next_power_of_two())
    }

    /// A word that kernels set when a number does not fit its type. It is zero but for
    /// what a failure has left.
    pub(super) fn overflow(&self) -> Address {
        self.overflow.as_ref().map_or(self.address + 8 * OVERFLOW, ResultSlot::address)
    }

    /// Waits for the stream and says whether a number did not fit its type.
    pub(super) fn saw_overflow(&mut self, device: &dyn Device, stream: Stream) -> Result<bool> {
        if let Some(overflow) = &mut self.overflow {
            device.wait(stream)?;
            let seen = overflow.get() != 0;
            overflow.set(0);
            return Ok(seen);
        }
        let (at, mut word) = (self.overflow(), [0; 8]);
        // SAFETY: the word is this memory's.
        unsafe { device.copy_out(stream, at, &mut word)? };
        // The copy waited already; this says what a kernel did wrong.
        device.wait(stream)?;
        let seen = word != [0; 8];
        if seen {
            // SAFETY: as above.
            unsafe { device.fill(stream, at, 0, 8)? };
        }
        Ok(seen)
    }

    /// The scratch memory of rows that have several blocks each.
    pub(super) fn for_rows(
        &mut self,
        device: &dyn Device,
        stream: Stream,
        rows: u32,
    ) -> Result<Address> {
        self.rows.reserve_zeros(device, stream, 8 * ROW * u64::from(rows))
    }

    /// Memory of so many bytes in which blocks that share columns add up: zero
    /// between launches.
    pub(super) fn for_columns(
        &mut self,
        device: &dyn Device,
        stream: Stream,
        bytes: u64,
    ) -> Result<Address> {
        self.columns.reserve_zeros(device, stream, bytes.next_power_of_two())
    }

    /// Memory for blocks that share outputs of a view: `zeros` bytes that are zero
    /// between launches, and `partials` bytes.
    pub(super) fn for_views(
        &mut self,
        device: &dyn Device,
        stream: Stream,
        zeros: u64,
        partials: u64,
    ) -> Result<[Address; 2]> {
        let shared = self.shared.reserve_zeros(device, stream, zeros.next_power_of_two())?;
        let most = partials.next_power_of_two();
        Ok([shared, self.partials.reserve(device, stream, most, most)?.0])
    }

    /// Two words for notes.
    pub(super) fn for_notes(&mut self, device: &dyn Device, stream: Stream) -> Result<Address> {
        self.notes.reserve(device, stream, 16, 16).map(|(address, _)| address)
    }

    /// Two words for notes of keys that are no group's, and that of totals that do not fit.
    pub(super) fn words_of_groups(
        &mut self,
        device: &dyn Device,
        stream: Stream,
    ) -> Result<[Address; 2]> {
        Ok([self.for_notes(device, stream)?, self.overflow()])
    }

    /// Frees it; whoever uses it must have been waited for.
    pub(super) fn give_back(&mut self, device: &dyn Device) {
        // Errors cannot be reported here.
        for memory in self.memories() {
            let _ = memory.give_back(device);
        }
        // SAFETY: allocated in `new`; that nobody uses it any more is the caller's
        // affair, who gives it back once.
        let _: Result<(), Error> = unsafe { device.free(self.address) };
    }
}
