//! Device memory that launches on one stream use, one after the other.
//!
//! ```text
//! words     0       32              256                     256 + 6 * 4096
//!           | ticket | sums of blocks | partials of blocks    | payload
//! ```
//!
//! `kernels/ticket.cuh` has the same numbers. Tickets and sums are zero between
//! launches: the last block of each sets them back.

use super::plan::MOST_BLOCKS;
use super::result_slot::ResultSlot;
use crate::device::{Address, Device, Stream};
use crate::{Error, Result};
use std::sync::Arc;

const PARTIALS: u64 = 256;
/// The most words of a block's partial state.
const PARTIAL_WORDS: u64 = 6;
const PAYLOAD: u64 = PARTIALS + PARTIAL_WORDS * MOST_BLOCKS as u64;
/// The most words of a payload that a kernel leaves.
const PAYLOAD_WORDS: u64 = 256;

/// The scratch memory of a stream.
pub(super) struct Scratch {
    address: Address,
    /// Where payloads come to the host by themselves, if they can.
    pub(super) slot: Option<ResultSlot>,
}

impl Scratch {
    /// Fresh memory, ready for the stream's next launch.
    pub(super) fn new(device: &Arc<dyn Device>, stream: Stream) -> Result<Scratch> {
        let slot = ResultSlot::new(device, 8 * PAYLOAD_WORDS as usize)?;
        let address = device.allocate(8 * (PAYLOAD + PAYLOAD_WORDS))?;
        match device.fill(stream, address, 0, 8 * PARTIALS) {
            Ok(()) => Ok(Scratch { address, slot }),
            Err(error) => {
                // The first error says more than one of giving back.
                let _: Result<(), Error> = device.free(address);
                Err(error)
            }
        }
    }

    /// Where it begins.
    pub(super) fn address(&self) -> Address {
        self.address
    }

    /// Room for a payload that is read back at once.
    pub(super) fn payload(&self) -> Address {
        self.address + 8 * PAYLOAD
    }
}
