//! Device memory: allocations, living and freed, at addresses never used twice.

use super::{Bytes, MemoryError, Request, Trouble};
use crate::finding::{Fault, Kind, Space};
use crate::place::lanes;
use std::collections::VecDeque;

/// The first address.
pub const BASE: u64 = 0x7_0000_0000_0000;

/// Addresses left free behind each allocation, so that an index that is wrong by a few
/// million still hits no other allocation.
const GAP: u64 = 1 << 26;

/// Allocations begin at multiples of this, as the driver's do.
const ALIGNMENT: u64 = 256;

/// Freed ranges remembered to tell a use after free from an access out of bounds.
const REMEMBERED: usize = 1 << 16;

/// An allocation.
#[derive(Debug)]
struct Allocation {
    base: u64,
    bytes: Bytes,
}

impl Allocation {
    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }
}

/// The bytes at an address, and where they begin.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The address of the first byte.
    pub base: u64,
    /// The allocation's bytes.
    pub bytes: &'a Bytes,
}

/// All of device memory.
#[derive(Debug)]
pub struct Global {
    /// Ascending by address.
    live: Vec<Allocation>,
    /// Base and length, ascending by address of freeing.
    freed: VecDeque<(u64, u64)>,
    next: u64,
    in_use: u64,
    limit: u64,
    track: bool,
}

impl Global {
    /// Memory of `limit` bytes; with `track`, reads of bytes never written are found.
    #[must_use]
    pub fn new(limit: u64, track: bool) -> Global {
        let (live, freed) = (Vec::new(), VecDeque::new());
        Global { live, freed, next: BASE, in_use: 0, limit, track }
    }

    /// The bytes allocated.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.in_use
    }

    /// The bytes there are in all.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// A new allocation's address, a multiple of 256. Its bytes are all ones and count as never written.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Empty`] for no bytes, [`MemoryError::Full`] beyond the limit, [`MemoryError::Host`] if this machine has less.
    pub fn allocate(&mut self, len: u64) -> Result<u64, MemoryError> {
        if len == 0 {
            return Err(MemoryError::Empty);
        }
        let free = self.limit - self.in_use;
        let full = MemoryError::Full { asked: len, free, limit: self.limit };
        if len > free {
            return Err(full);
        }
        let base = self.next;
        let next = base.checked_add(len).and_then(|end| end.checked_add(GAP + ALIGNMENT));
        let next = next.ok_or(full)? / ALIGNMENT * ALIGNMENT;
        let size = usize::try_from(len).map_err(|_| MemoryError::Host { asked: len })?;
        self.live.push(Allocation { base, bytes: Bytes::new(size, self.track)? });
        self.next = next;
        self.in_use += len;
        Ok(base)
    }

    /// Ends an allocation.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NotAllocated`] unless a living allocation begins at the address.
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let at = self.live.binary_search_by_key(&address, |a| a.base).map_err(|_| {
            let detail = self
                .trouble(address, 1)
                .map_or_else(|| String::from("it lies inside one"), |trouble| trouble.detail);
            MemoryError::NotAllocated { address, detail }
        })?;
        let allocation = self.live.remove(at);
        let len = allocation.bytes.len() as u64;
        self.in_use -= len;
        if self.freed.len() == REMEMBERED {
            self.freed.pop_front();
        }
        self.freed.push_back((address, len));
        Ok(())
    }

    /// The allocation that holds an address.
    #[inline]
    #[must_use]
    pub fn view(&self, address: u64) -> Option<View<'_>> {
        let after = self.live.partition_point(|a| a.base <= address);
        let allocation = self.live[..after].last()?;
        let inside = address < allocation.end();
        inside.then_some(View { base: allocation.base, bytes: &allocation.bytes })
    }

    /// The allocation that holds every active lane's bytes, aligned: what nearly all accesses want.
    #[inline]
    #[must_use]
    pub fn view_all(&self, request: &Request<'_>) -> Option<View<'_>> {
        let first = request.addresses[request.active.trailing_zeros() as usize % 32];
        let view = self.view(first)?;
        request.fits(view.base, view.base + view.bytes.len() as u64).then_some(view)
    }

    /// Checks an access; the lanes that may go on are returned, the others reported.
    /// Lanes that read unwritten bytes are reported and may go on.
    pub fn check(&self, request: &Request<'_>, report: &mut dyn FnMut(Fault)) -> u32 {
        if let Some(view) = self.view_all(request) {
            if self.track {
                request.find_unwritten(Space::Global, view.base, view.bytes, report);
            }
            return request.active;
        }
        self.check_each(request, report)
    }

    #[cold]
    fn check_each(&self, request: &Request<'_>, report: &mut dyn FnMut(Fault)) -> u32 {
        let mut sound = 0;
        for lane in lanes(request.active) {
            let address = request.addresses[lane as usize];
            if let Some(trouble) = self.trouble(address, request.size) {
                report(request.fault(Space::Global, lane, trouble));
            } else if let Some(view) = self.view(address) {
                sound |= 1 << lane;
                let one = Request { active: 1 << lane, ..*request };
                one.find_unwritten(Space::Global, view.base, view.bytes, report);
            }
        }
        sound
    }

    /// What is wrong with an access of one lane; `None` if nothing is.
    #[must_use]
    pub fn trouble(&self, address: u64, size: u32) -> Option<Trouble> {
        if let Some(view) = self.view(address) {
            let left = view.base + view.bytes.len() as u64 - address;
            if u64::from(size) <= left {
                return Trouble::of_alignment(address, size);
            }
        } else if let Some(&(base, len)) = self.freed_at(address) {
            let at = address - base;
            let detail = format!("{at} bytes into an allocation of {len} that has been freed");
            return Some(Trouble { kind: Kind::Freed, detail });
        }
        Some(Trouble { kind: Kind::OutOfBounds, detail: self.nearest(address, size) })
    }

    fn freed_at(&self, address: u64) -> Option<&(u64, u64)> {
        self.freed.iter().rev().find(|&&(base, len)| address >= base && address - base < len)
    }

    /// Tells where an address lies, seen from the nearest living allocation.
    fn nearest(&self, address: u64, size: u32) -> String {
        let after = self.live.partition_point(|a| a.base <= address);
        let below = self.live[..after].last();
        let above = self.live.get(after);
        let past = |a: &Allocation| address.saturating_sub(a.end());
        let before = |a: &Allocation| a.base - address;
        match (below, above) {
            (Some(b), _) if address < b.end() => {
                let inside = b.end() - address;
                let over = u64::from(size) - inside;
                format!("which leaves an allocation of {} bytes by {over}", b.bytes.len())
            }
            (Some(b), above) if above.is_none_or(|a| past(b) <= before(a)) => {
                let len = bytes(b.bytes.len() as u64);
                match past(b) {
                    0 => format!("right behind an allocation of {len}"),
                    past => format!("{} past the end of an allocation of {len}", bytes(past)),
                }
            }
            (_, Some(a)) => {
                format!(
                    "{} before an allocation of {}",
                    bytes(before(a)),
                    bytes(a.bytes.len() as u64)
                )
            }
            _ => String::from("where nothing is allocated"),
        }
    }

    /// Copies from the device; unwritten bytes read as ones.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] unless the range lies in one living allocation.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        let at = self.range(address, out.len())?;
        let allocation = &self.live[at];
        allocation.bytes.read((address - allocation.base) as usize, out);
        Ok(())
    }

    /// Copies to the device; the bytes count as written.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] unless the range lies in one living allocation.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let at = self.range(address, from.len())?;
        let allocation = &mut self.live[at];
        allocation.bytes.write((address - allocation.base) as usize, from);
        Ok(())
    }

    /// Fills a range with one byte; the bytes count as written.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] unless the range lies in one living allocation.
    pub fn fill(&mut self, address: u64, len: usize, byte: u8) -> Result<(), MemoryError> {
        let at = self.range(address, len)?;
        let allocation = &mut self.live[at];
        allocation.bytes.fill((address - allocation.base) as usize, len, byte);
        Ok(())
    }

    /// The living allocation that holds a range.
    fn range(&self, address: u64, len: usize) -> Result<usize, MemoryError> {
        let after = self.live.partition_point(|a| a.base <= address);
        let fits = |a: &Allocation| address <= a.end() && len as u64 <= a.end() - address;
        if after > 0 && fits(&self.live[after - 1]) {
            return Ok(after - 1);
        }
        let detail = match self.freed_at(address) {
            Some((_, freed)) => format!("an allocation of {freed} bytes there has been freed"),
            None => self.whereabouts(address, len as u64),
        };
        Err(MemoryError::OutOfBounds { address, len: len as u64, detail })
    }

    fn whereabouts(&self, address: u64, len: u64) -> String {
        match self.view(address) {
            Some(view) => {
                let left = view.base + view.bytes.len() as u64 - address;
                format!("the allocation there ends {} earlier", bytes(len - left))
            }
            None => self.nearest(address, 1),
        }
    }
}

fn bytes(n: u64) -> String {
    format!("{n} byte{}", if n == 1 { "" } else { "s" })
}
