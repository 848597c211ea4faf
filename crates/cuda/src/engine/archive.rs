//! The kernels, compiled ahead of time to PTX and packed by `tools/kernels.py`.
//!
//! ```text
//! "WFka" | u32 version | u32 modules | index | packed modules
//! index, for each module: u16 length of name | u32 packed length | u32 length | name
//! ```
//!
//! Numbers are little-endian. Each module is compressed for itself, as a program
//! needs few of them.

use std::io::Read;

static ARCHIVE: &[u8] = include_bytes!("../../kernels/kernels.archive");

const VERSION: u32 = 1;

/// Compute capabilities that there is PTX for, ascending; a device takes the
/// last one that is not above its own.
const CAPABILITIES: [(u32, u32); 2] = [(7, 5), (9, 0)];

/// One packed module.
#[derive(Clone, Copy, Debug)]
struct Entry {
    name: &'static str,
    packed: &'static [u8],
    len: usize,
}

/// The PTX of a module for a device, if there is such a module and the device
/// is new enough.
pub(super) fn module(name: &str, capability: (u32, u32)) -> Option<String> {
    let (major, minor) = CAPABILITIES.into_iter().rev().find(|&c| c <= capability)?;
    let name = format!("{name}.{major}{minor}");
    entries().find(|e| e.name == name).and_then(|e| unpack(&e))
}

/// How many modules there are, their bytes, and the bytes they are packed to.
#[must_use]
pub fn size() -> (usize, usize, usize) {
    let (count, bytes) = entries().fold((0, 0), |(n, bytes), e| (n + 1, bytes + e.len));
    (count, bytes, ARCHIVE.len())
}

fn unpack(entry: &Entry) -> Option<String> {
    let mut text = String::with_capacity(entry.len);
    flate2::read::ZlibDecoder::new(entry.packed).read_to_string(&mut text).ok()?;
    (text.len() == entry.len).then_some(text)
}

/// The first `N` bytes of `rest`, which it advances.
fn take<const N: usize>(rest: &mut &'static [u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

/// The modules; none of an archive that is not one.
fn entries() -> impl Iterator<Item = Entry> {
    let mut index = ARCHIVE.strip_prefix(b"WFka").unwrap_or_default();
    let version = take(&mut index).map(u32::from_le_bytes);
    let count = take(&mut index).map_or(0, u32::from_le_bytes);
    let count = if version == Some(VERSION) { count as usize } else { 0 };
    let mut body = index;
    for _ in 0..count {
        let _ = next_in(&mut body);
    }
    (0..count).map_while(move |_| {
        let (name, packed, len) = next_in(&mut index)?;
        let (packed, rest) = body.split_at_checked(packed)?;
        body = rest;
        Some(Entry { name, packed, len })
    })
}

/// The next module of the index: its name, packed length and length.
fn next_in(index: &mut &'static [u8]) -> Option<(&'static str, usize, usize)> {
    let name = usize::from(u16::from_le_bytes(take(index)?));
    let packed = u32::from_le_bytes(take(index)?) as usize;
    let len = u32::from_le_bytes(take(index)?) as usize;
    let (name, rest) = index.split_at_checked(name)?;
    *index = rest;
    Some((core::str::from_utf8(name).ok()?, packed, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_unpacks_and_holds_the_kernel_it_is_named_after() {
        assert!(entries().count() > 0);
        for entry in entries() {
            let text = unpack(&entry).expect("it unpacks");
            let (kernel, _) = entry.name.split_once('.').expect("a capability in its name");
            assert!(text.contains(&format!(".entry {kernel}(")), "{}", entry.name);
        }
    }

    #[test]
    fn devices_get_the_newest_ptx_they_can_run() {
        let target = |capability| {
            let text = module("sum_f32", capability)?;
            Some(if text.contains(".target sm_90") { 90 } else { 75 })
        };
        assert_eq!(target((7, 0)), None);
        assert_eq!(target((7, 5)), Some(75));
        assert_eq!(target((8, 9)), Some(75));
        assert_eq!(target((9, 0)), Some(90));
        assert_eq!(target((12, 0)), Some(90));
        assert_eq!(module("sum_f80", (9, 0)), None);
    }
}
