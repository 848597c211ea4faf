//! Archives of kernels, compiled ahead of time to PTX and packed by
//! `tools/kernels.py`.
//!
//! ```text
//! "WFka" | u32 version | u32 groups | index | packed groups
//! index, for each group:  u32 packed length | u32 modules | its modules
//!        for each module: u16 length of name | u32 length | name
//! ```
//!
//! Numbers are little-endian. A name ends in the compute capability that the module is
//! for: `sum_f32.90`. A group is a Zstandard frame of similar texts, concatenated, with relative
//! numbers of registers (`renumber.rs`). A program needs few modules, and unpacking all of them would
//! take long. What would be the same for a newer device is there once, for the older one.

use crate::renumber::absolute;
use ruzstd::decoding::StreamingDecoder;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

const VERSION: u32 = 3;
/// Bytes of texts that are kept unpacked: several devices of a process load the same kernels.
const KEPT: usize = 16 << 20;

/// Packed modules.
#[derive(Clone, Copy, Debug)]
pub struct Archive(&'static [u8]);

/// One packed module.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Its name with the compute capability.
    full: &'static [u8],
    /// Its group.
    packed: &'static [u8],
    /// Bytes of the group's texts before its own.
    before: usize,
    len: usize,
}

impl Archive {
    /// The archive with these bytes. A damaged archive has fewer modules.
    #[must_use]
    pub const fn new(bytes: &'static [u8]) -> Archive {
        Archive(bytes)
    }

    /// The PTX of a module for a device: the newest version that the device can run.
    /// `None` if there is no such module, or the device is too old.
    #[must_use]
    pub fn module(&self, name: &str, capability: (u32, u32)) -> Option<Arc<str>> {
        let new_enough = self.named(name).filter(|its| its.0 <= capability);
        new_enough.max_by_key(|its| its.0)?.1.text()
    }

    /// The oldest compute capability, major and minor, for which there is a module of
    /// this name.
    #[must_use]
    pub fn oldest(&self, name: &str) -> Option<(u32, u32)> {
        self.named(name).map(|(capability, _)| capability).min()
    }

    /// The modules of a name, each with its compute capability, major and minor. Each load looks at all
    /// names, of which only the bytes are compared.
    fn named(&self, name: &str) -> impl Iterator<Item = ((u32, u32), Entry)> + use<> {
        let before = format!("{name}.").into_bytes();
        self.entries().filter_map(move |entry| {
            let capability = core::str::from_utf8(entry.full.strip_prefix(&*before)?).ok()?;
            let capability: u32 = capability.parse().ok()?;
            Some(((capability / 10, capability % 10), entry))
        })
    }

    /// The names of the modules, once for each compute capability.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.entries().filter_map(|e| Some(core::str::from_utf8(e.full).ok()?.rsplit_once('.')?.0))
    }

    /// The number of modules, their bytes, and their packed bytes.
    #[must_use]
    pub fn size(&self) -> (usize, usize, usize) {
        let (count, bytes) = self.entries().fold((0, 0), |(n, bytes), e| (n + 1, bytes + e.len));
        (count, bytes, self.0.len())
    }

    /// The modules; empty if the bytes are not an archive.
    fn entries(&self) -> impl Iterator<Item = Entry> + use<> {
        let mut index = self.0.strip_prefix(b"WFka").unwrap_or_default();
        let version = take(&mut index).map(u32::from_le_bytes);
        let groups = take(&mut index).map_or(0, u32::from_le_bytes);
        let groups = if version == Some(VERSION) { groups } else { 0 };
        let mut body = index;
        (0..groups).for_each(|_| _ = group_in(&mut body));
        (0..groups)
            .map_while(move |_| {
                let (packed, modules) = group_in(&mut index)?;
                let (packed, rest) = body.split_at_checked(packed)?;
                body = rest;
                Some((packed, modules))
            })
            .flat_map(|(packed, mut modules)| {
                let mut before = 0usize;
                core::iter::from_fn(move || {
                    let (full, len) = module_in(&mut modules)?;
                    let entry = Entry { full, packed, before, len };
                    before = before.checked_add(len)?;
                    Some(entry)
                })
            })
    }
}

impl Entry {
    /// Its text, which is unpacked unless it is among the last ones that were.
    fn text(&self) -> Option<Arc<str>> {
        /// Texts and where they are packed.
        type Kept = VecDeque<((usize, usize), Arc<str>)>;
        static LAST: Mutex<Kept> = Mutex::new(VecDeque::new());
        let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (self.packed.as_ptr().addr(), self.before);
        let found = last().iter().find(|(at, _)| *at == place).map(|(_, text)| text.clone());
        if found.is_some() {
            return found;
        }
        // Without the lock: others unpack meanwhile.
        let text: Arc<str> = self.unpack()?.into();
        let (mut last, mut bytes) = (last(), 0);
        last.push_front((place, text.clone()));
        last.retain(|(_, text)| {
            bytes += text.len();
            bytes <= KEPT
        });
        Some(text)
    }

    fn unpack(&self) -> Option<String> {
        let mut texts = StreamingDecoder::new(self.packed).ok()?;
        let before = self.before as u64;
        let skipped = io::copy(&mut Read::by_ref(&mut texts).take(before), &mut io::sink()).ok()?;
        let mut text = String::new();
        texts.take(self.len as u64).read_to_string(&mut text).ok()?;
        if skipped != before || text.len() != self.len { None } else { absolute(&text) }
    }
}

/// The first `N` bytes of `rest`, which it advances.
fn take<const N: usize>(rest: &mut &'static [u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

/// A number of 32 bits, as a length.
fn length(rest: &mut &'static [u8]) -> Option<usize> {
    take(rest).and_then(|bytes| usize::try_from(u32::from_le_bytes(bytes)).ok())
}

/// The next group of the index: its packed length and its modules.
fn group_in(index: &mut &'static [u8]) -> Option<(usize, &'static [u8])> {
    let (packed, modules) = (length(index)?, length(index)?);
    let begin = *index;
    for _ in 0..modules {
        module_in(index)?;
    }
    Some((packed, &begin[..begin.len() - index.len()]))
}

/// The next module of a group's: its name and length.
fn module_in(modules: &mut &'static [u8]) -> Option<(&'static [u8], usize)> {
    let name = usize::from(u16::from_le_bytes(take(modules)?));
    let len = length(modules)?;
    let (name, rest) = modules.split_at_checked(name)?;
    *modules = rest;
    Some((name, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    /// An archive of two groups, of which the first has one module.
    fn packed(version: u32, modules: &[(&str, &str)]) -> Archive {
        let (mut index, mut body) = (Vec::new(), Vec::new());
        let (alone, together) = modules.split_at(modules.len().min(1));
        for group in [alone, together] {
            let texts: String = group.iter().map(|(_, text)| *text).collect();
            let packed = compress_to_vec(texts.as_bytes(), CompressionLevel::Fastest);
            index.extend((packed.len() as u32).to_le_bytes());
            index.extend((group.len() as u32).to_le_bytes());
            for (name, text) in group {
                index.extend((name.len() as u16).to_le_bytes());
                index.extend((text.len() as u32).to_le_bytes());
                index.extend(name.as_bytes());
            }
            body.extend(packed);
        }
        let mut bytes = b"WFka".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(2u32.to_le_bytes());
        bytes.extend(index);
        bytes.extend(body);
        Archive::new(bytes.leak())
    }

    #[test]
    fn devices_get_the_newest_module_they_can_run() {
        let archive =
            packed(3, &[("a.75", "old"), ("a.100", "new"), ("a.90", "mid"), ("b.80", "")]);
        let found = |capability| archive.module("a", capability);
        assert_eq!(found((7, 0)), None);
        assert_eq!(found((8, 9)).as_deref(), Some("old"));
        assert_eq!(found((9, 9)).as_deref(), Some("mid"));
        assert_eq!(found((12, 0)).as_deref(), Some("new"));
        assert_eq!(archive.oldest("a"), Some((7, 5)));
        assert_eq!((archive.oldest("b"), archive.oldest("c")), (Some((8, 0)), None));
        assert_eq!(archive.module("b", (7, 5)), None);
        assert_eq!(archive.size().0, 4);
        assert!(archive.names().eq(["a", "a", "a", "b"]));
    }

    #[test]
    fn what_is_damaged_is_not_there() {
        let whole = packed(3, &[("a.75", "some text"), ("c.75", "between"), ("b.75", "more text")]);
        assert_eq!(packed(2, &[("a.75", "some text")]).size().0, 0);
        for end in 0..whole.0.len() {
            let cut = Archive::new(&whole.0[..end]);
            assert_eq!(cut.module("b", (9, 0)), None, "cut to {end} bytes");
        }
        assert_eq!(whole.module("b", (9, 0)).as_deref(), Some("more text"));
    }
}
