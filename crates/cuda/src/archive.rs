//! Archives of kernels, compiled ahead of time to PTX and packed by
//! `tools/kernels.py`.
//!
//! ```text
//! "WFka" | u32 version | u32 modules | index | packed modules
//! index, for each module: u16 length of name | u32 packed length | u32 length | name
//! ```
//!
//! Numbers are little-endian. A name ends in the compute capability that the
//! module is for: `sum_f32.90`. Each module is compressed for itself, as a
//! program needs few of them.

use std::io::Read;

const VERSION: u32 = 1;

/// Packed modules.
#[derive(Clone, Copy, Debug)]
pub struct Archive(&'static [u8]);

/// One packed module.
#[derive(Clone, Copy, Debug)]
struct Entry {
    name: &'static str,
    /// The compute capability, major and minor.
    capability: (u32, u32),
    packed: &'static [u8],
    len: usize,
}

impl Archive {
    /// The archive with these bytes. One that is damaged has fewer modules.
    #[must_use]
    pub const fn new(bytes: &'static [u8]) -> Archive {
        Archive(bytes)
    }

    /// The PTX of a module for a device: the newest that it can run, if there is
    /// such a module and the device is new enough.
    #[must_use]
    pub fn module(&self, name: &str, capability: (u32, u32)) -> Option<String> {
        self.entries()
            .filter(|e| e.name == name && e.capability <= capability)
            .max_by_key(|e| e.capability)
            .and_then(|e| e.unpack())
    }

    /// The oldest compute capability, major and minor, that there is a module of
    /// this name for.
    #[must_use]
    pub fn oldest(&self, name: &str) -> Option<(u32, u32)> {
        self.entries().filter(|e| e.name == name).map(|e| e.capability).min()
    }

    /// The modules' names, each as often as there are compute capabilities for it.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.entries().map(|e| e.name)
    }

    /// How many modules there are, their bytes, and the bytes they are packed to.
    #[must_use]
    pub fn size(&self) -> (usize, usize, usize) {
        let (count, bytes) = self.entries().fold((0, 0), |(n, bytes), e| (n + 1, bytes + e.len));
        (count, bytes, self.0.len())
    }

    /// The modules; none of an archive that is not one.
    fn entries(&self) -> impl Iterator<Item = Entry> + use<> {
        let mut index = self.0.strip_prefix(b"WFka").unwrap_or_default();
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
            let (name, capability) = name.rsplit_once('.')?;
            let capability: u32 = capability.parse().ok()?;
            Some(Entry { name, capability: (capability / 10, capability % 10), packed, len })
        })
    }
}

impl Entry {
    fn unpack(&self) -> Option<String> {
        let mut text = String::with_capacity(self.len);
        flate2::read::ZlibDecoder::new(self.packed).read_to_string(&mut text).ok()?;
        (text.len() == self.len).then_some(text)
    }
}

/// The first `N` bytes of `rest`, which it advances.
fn take<const N: usize>(rest: &mut &'static [u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
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
    use std::io::Write;

    fn packed(version: u32, modules: &[(&str, &str)]) -> Archive {
        let (mut index, mut body) = (Vec::new(), Vec::new());
        for (name, text) in modules {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
            encoder.write_all(text.as_bytes()).unwrap();
            let packed = encoder.finish().unwrap();
            index.extend((name.len() as u16).to_le_bytes());
            index.extend((packed.len() as u32).to_le_bytes());
            index.extend((text.len() as u32).to_le_bytes());
            index.extend(name.as_bytes());
            body.extend(packed);
        }
        let mut bytes = b"WFka".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend((modules.len() as u32).to_le_bytes());
        bytes.extend(index);
        bytes.extend(body);
        Archive::new(bytes.leak())
    }

    #[test]
    fn devices_get_the_newest_module_they_can_run() {
        let archive =
            packed(1, &[("a.75", "old"), ("a.100", "new"), ("a.90", "mid"), ("b.80", "")]);
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
        let whole = packed(1, &[("a.75", "some text"), ("b.75", "more text")]);
        assert_eq!(packed(2, &[("a.75", "some text")]).size().0, 0);
        for end in 0..whole.0.len() {
            let cut = Archive::new(&whole.0[..end]);
            assert_eq!(cut.module("b", (9, 0)), None, "cut to {end} bytes");
        }
        assert_eq!(whole.module("b", (9, 0)).as_deref(), Some("more text"));
    }
}
