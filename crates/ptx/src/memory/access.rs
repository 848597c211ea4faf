//! One warp's access to one memory: which lanes may go on, and what is wrong with the others.

use super::Bytes;
use crate::finding::{Access, Act, Fault, Kind, Space};
use crate::place::{LANES, Line, Place, Warp, lanes};

/// What a warp's load, store or atomic asks of a memory.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// An address for each lane, in the memory's own terms.
    pub addresses: &'a [u64; LANES],
    /// The lanes that execute.
    pub active: u32,
    /// The bytes that each lane means: 1, 2, 4, 8, 16 or 32, all elements of a vector together.
    pub size: u32,
    /// What is done.
    pub act: Act,
    /// The warp.
    pub warp: Warp,
    /// The instruction.
    pub line: Line,
}

impl Request<'_> {
    /// The lowest and the highest address of the active lanes, and all their bits; `None` without any.
    #[inline]
    pub(super) fn extent(&self) -> Option<(u64, u64, u64)> {
        let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
        if self.is_row() {
            // The bits below the size are those of the first.
            let first = self.addresses[0];
            return Some((first, self.addresses[LANES - 1], first));
        }
        if self.active == u32::MAX {
            for &address in self.addresses {
                low = low.min(address);
                high = high.max(address);
                bits |= address;
            }
        } else {
            for lane in lanes(self.active) {
                let address = self.addresses[lane as usize];
                low = low.min(address);
                high = high.max(address);
                bits |= address;
            }
        }
        (self.active != 0).then_some((low, high, bits))
    }

    /// Whether all lanes execute, and lie side by side in their order.
    #[inline]
    pub(super) fn is_row(&self) -> bool {
        let (first, size) = (self.addresses[0], u64::from(self.size));
        let apart =
            |(lane, &address): (usize, &u64)| address ^ first.wrapping_add(lane as u64 * size);
        self.active == u32::MAX
            && self.addresses.iter().enumerate().map(apart).fold(0, |all, bits| all | bits) == 0
            && first <= self.addresses[LANES - 1]
    }

    /// Whether every active lane's bytes are aligned and lie in `first..end`.
    #[inline]
    pub(crate) fn fits(&self, first: u64, end: u64) -> bool {
        self.extent().is_none_or(|(low, high, bits)| {
            low >= first
                && high.checked_add(u64::from(self.size)).is_some_and(|e| e <= end)
                && bits & u64::from(self.size - 1) == 0
        })
    }

    pub(crate) fn fault(&self, space: Space, lane: u32, trouble: Trouble) -> Fault {
        let address = self.addresses[lane as usize];
        Fault {
            kind: trouble.kind,
            line: self.line,
            place: Place::of_lane(self.warp, lane),
            access: Some(Access { space, act: self.act, address, size: self.size }),
            other: None,
            missing: None,
            detail: trouble.detail.into(),
        }
    }

    /// Reports the active lanes that read unwritten bytes; `base` is the address of the first byte.
    pub(super) fn find_unwritten(
        &self,
        space: Space,
        base: u64,
        bytes: &Bytes,
        report: &mut dyn FnMut(Fault),
    ) {
        if !matches!(self.act, Act::Write | Act::VolatileWrite | Act::StrongWrite | Act::AsyncWrite)
        {
            if self.is_row()
                && bytes
                    .all_written((self.addresses[0] - base) as usize, self.size as usize * LANES)
            {
                return;
            }
            for lane in lanes(self.active) {
                let offset = (self.addresses[lane as usize] - base) as usize;
                if let Some(first) = bytes.first_unwritten(offset, self.size) {
                    let detail = format!(
                        "where byte {} of the {} was never written",
                        first - offset,
                        self.size
                    );
                    let trouble = Trouble { kind: Kind::Uninitialised, detail };
                    report(self.fault(space, lane, trouble));
                }
            }
        }
    }
}

/// Why an address cannot be accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is.
    pub kind: Kind,
    /// What is known about the place, a clause.
    pub detail: String,
}

impl Trouble {
    /// The trouble with an address that is not a multiple of the access's size, if it is
    /// not.
    pub(super) fn of_alignment(address: u64, size: u32) -> Option<Trouble> {
        let past = address & u64::from(size - 1);
        let detail = || format!("{past} bytes past a multiple of {size}");
        (past != 0).then(|| Trouble { kind: Kind::Misaligned, detail: detail() })
    }
}
