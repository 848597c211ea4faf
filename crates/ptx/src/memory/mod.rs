//! The memories of a device: where their bytes are, which accesses they
//! refuse, and which accesses race.
//!
//! - [`bytes`]: the bytes of one allocation and which of them are written,
//! - [`access`]: one warp's access, checked against bounds, alignment and writtenness,
//! - [`global`]: allocations of device memory, living and freed,
//! - [`region`]: the memories that are one allocation: shared, local, constant, parameters,
//! - [`race`]: shadow memory and clocks together: the race checker.

pub mod access;
pub mod bytes;
mod discarded;
pub mod global;
pub mod race;
pub mod region;
mod shadow;
mod stamp;

pub use access::{Request, Trouble};
pub use bytes::Bytes;
pub use global::Global;
pub use race::{Races, Target};
pub use region::Region;

/// Memory that cannot be had or reached from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryError {
    /// An allocation of no bytes.
    Empty,
    /// The device's memory is full.
    Full {
        /// The bytes asked for.
        asked: u64,
        /// The bytes that are free.
        free: u64,
        /// The size of the device's memory.
        limit: u64,
    },
    /// The host's memory is full.
    Host {
        /// The bytes asked for.
        asked: u64,
    },
    /// An address where no allocation begins.
    NotAllocated {
        /// The address.
        address: u64,
        /// What lies there.
        detail: String,
    },
    /// A copy that leaves its allocation.
    OutOfBounds {
        /// The first address.
        address: u64,
        /// The number of bytes.
        len: u64,
        /// Where the nearest allocation lies.
        detail: String,
    },
}

impl core::fmt::Display for MemoryError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            MemoryError::Empty => f.write_str("an allocation of 0 bytes"),
            MemoryError::Full { asked, free, limit } => {
                write!(f, "out of device memory: {asked} bytes asked, {free} of {limit} free")
            }
            MemoryError::Host { asked } => write!(f, "out of host memory: {asked} bytes asked"),
            MemoryError::NotAllocated { address, detail } => {
                write!(f, "{address:#x} is not the beginning of an allocation: {detail}")
            }
            MemoryError::OutOfBounds { address, len, detail } => {
                write!(f, "{len} bytes from {address:#x} are not inside one allocation: {detail}")
            }
        }
    }
}

impl core::error::Error for MemoryError {}

impl MemoryError {
    /// What would help.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            MemoryError::Empty => "ask for at least one byte",
            MemoryError::Full { .. } => {
                "free buffers, use smaller ones or raise the simulated device's memory limit"
            }
            MemoryError::Host { .. } => {
                "set the simulated device's memory limit below the memory of this machine"
            }
            MemoryError::NotAllocated { .. } => "free each allocation once",
            MemoryError::OutOfBounds { .. } => "compare the copy's length with the buffer's",
        }
    }
}
