//! Memories that are one allocation: a constant bank, a kernel's parameters, with
//! addresses from 0; a block's shared memory, whose first addresses are the
//! system's; and threads' local memory, which is one range for each thread.

use super::{Bytes, MemoryError, Request, Trouble};
use crate::finding::{Fault, Kind, Space};
use crate::place::{LANES, lanes};

/// A memory that is one allocation.
#[derive(Debug)]
pub struct Region {
    space: Space,
    /// The first address.
    base: u64,
    /// The bytes of one range.
    len: usize,
    /// The distance from one thread's range to the next: `len`, rounded up so that all are aligned alike.
    stride: usize,
    bytes: Bytes,
}

impl Region {
    /// Unwritten memory; with `track`, reads of bytes never written are found.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Host`] if this machine's memory does not suffice.
    pub fn new(space: Space, len: usize, track: bool) -> Result<Region, MemoryError> {
        Ok(Region { space, base: 0, len, stride: 0, bytes: Bytes::new(len, track)? })
    }

    /// The same memory, with addresses from `base` on.
    #[must_use]
    pub fn from_address(self, base: u64) -> Region {
        Region { base, ..self }
    }

    /// The local memory of a block: `len` bytes for each of its threads.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Host`] if this machine's memory does not suffice.
    pub fn local(len: usize, threads: u32, track: bool) -> Result<Region, MemoryError> {
        let host = MemoryError::Host { asked: (len as u64).saturating_mul(threads.into()) };
        let stride = len.checked_next_multiple_of(16).ok_or(host.clone())?;
        let all = stride.checked_mul(threads as usize).ok_or(host)?;
        Ok(Region { space: Space::Local, base: 0, len, stride, bytes: Bytes::new(all, track)? })
    }

    /// Memory that holds `contents` and counts as written.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Host`] if this machine's memory does not suffice.
    pub fn of(space: Space, contents: &[u8]) -> Result<Region, MemoryError> {
        let mut region = Region::new(space, contents.len(), false)?;
        region.bytes.write(0, contents);
        Ok(region)
    }

    /// The number of bytes that addresses reach.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes, for copies and initial values.
    pub fn bytes_mut(&mut self) -> &mut Bytes {
        &mut self.bytes
    }

    /// The first address.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The bytes. An address is an offset behind [`base`](Region::base), in local memory behind [`start`](Region::start).
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where a thread's range begins: 0 but in local memory.
    #[inline]
    #[must_use]
    pub fn start(&self, thread: u32) -> usize {
        self.stride * thread as usize
    }

    /// Forgets the contents, as when a new block gets the memory.
    pub fn reset(&mut self) {
        self.bytes.reset();
    }

    /// Checks an access; the lanes that may go on are returned, the others reported.
    /// Lanes that read unwritten bytes are reported and may go on.
    pub fn check(&self, request: &Request<'_>, report: &mut dyn FnMut(Fault)) -> u32 {
        if request.act.writes() && matches!(self.space, Space::Const | Space::Param) {
            for lane in lanes(request.active) {
                let trouble = Trouble { kind: Kind::ReadOnly, detail: String::new() };
                report(request.fault(self.space, lane, trouble));
            }
            return 0;
        }
        let mut sound = request.active;
        if !request.fits(self.base, self.base + self.len as u64) {
            sound = self.check_each(request, report);
        }
        let rest = Request { active: sound, ..*request };
        if self.stride == 0 {
            rest.find_unwritten(self.space, self.base, &self.bytes, report);
        } else {
            self.find_unwritten_local(&rest, report);
        }
        sound
    }

    #[cold]
    fn check_each(&self, request: &Request<'_>, report: &mut dyn FnMut(Fault)) -> u32 {
        let mut sound = 0;
        for lane in lanes(request.active) {
            match self.trouble(request.addresses[lane as usize], request.size) {
                Some(trouble) => report(request.fault(self.space, lane, trouble)),
                None => sound |= 1 << lane,
            }
        }
        sound
    }

    /// What is wrong with an access of one lane; `None` if nothing is.
    #[must_use]
    pub fn trouble(&self, address: u64, size: u32) -> Option<Trouble> {
        let len = self.len as u64;
        let (first, last) = (self.base, self.base + len);
        let end = address.checked_add(size.into());
        if address >= first && end.is_some_and(|end| end <= last) {
            return Trouble::of_alignment(address, size);
        }
        let (space, whose) = (self.space, if self.stride == 0 { "" } else { " of a thread" });
        let detail = if address < first {
            format!("among the first {first} bytes of {space} memory, which are reserved")
        } else if address < last {
            let over = end.map_or(u64::MAX, |end| end - last);
            format!("which leaves the {len} bytes of {space} memory{whose} by {over}")
        } else {
            format!("{} bytes past the {len} bytes of {space} memory{whose}", address - last)
        };
        Some(Trouble { kind: Kind::OutOfBounds, detail })
    }

    /// Moves each lane's addresses to its thread's range, looks there, and reports the addresses that the kernel knows.
    fn find_unwritten_local(&self, request: &Request<'_>, report: &mut dyn FnMut(Fault)) {
        let mut moved = [0; LANES];
        for lane in lanes(request.active) {
            let thread = request.warp.warp * LANES as u32 + lane;
            moved[lane as usize] = request.addresses[lane as usize] + self.start(thread) as u64;
        }
        let inner = Request { addresses: &moved, ..*request };
        inner.find_unwritten(self.space, 0, &self.bytes, &mut |mut fault| {
            if let Some(access) = &mut fault.access {
                access.address = request.addresses[fault.place.lane() as usize];
            }
            report(fault);
        });
    }
}
