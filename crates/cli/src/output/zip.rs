//! A zip archive in memory: APPNOTE.TXT, with the 64-bit sizes of zip64 in every header, so that
//! there is one form of each. Members have no date, so that the same answers are the same bytes.

use anyhow::{Context, Result};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc, CrcWriter};
use std::io::{BufWriter, Write};

/// Members, and the directory that comes behind them.
#[derive(Default)]
pub(super) struct Archive {
    all: Vec<u8>,
    directory: Vec<u8>,
    members: u64,
}

impl Archive {
    /// Adds what `write` writes.
    ///
    /// # Errors
    /// Those of `write`, and very long names.
    pub(super) fn add(
        &mut self,
        name: &str,
        deflated: bool,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let name_len = u16::try_from(name.len()).context("a name is too long for an archive")?;
        let header = self.all.len();
        // The checksum and the sizes come later.
        let start = header + 30 + name.len() + 20;
        self.all.resize(start, 0);
        let (checksum, len) = if deflated {
            let encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            let mut buffered = BufWriter::with_capacity(1 << 16, CrcWriter::new(encoder));
            write(&mut buffered)?;
            let encoder = buffered.into_inner()?;
            let known = (encoder.crc().sum(), encoder.get_ref().total_in());
            self.all.append(&mut encoder.into_inner().finish()?);
            known
        } else {
            write(&mut self.all)?;
            let mut checksum = Crc::new();
            checksum.update(&self.all[start..]);
            (checksum.sum(), (self.all.len() - start) as u64)
        };
        let stored = (self.all.len() - start) as u64;
        let sizes = [len, stored].map(u64::to_le_bytes).concat();
        // What both headers have: version 4.5, a name in UTF-8, the method, 1980-01-01; sizes are elsewhere.
        let method = if deflated { 8 } else { 0 };
        let shared = [
            &[45, 0, 0, 8, method, 0, 0, 0, 0x21, 0],
            &checksum.to_le_bytes()[..],
            &[0xff; 8],
            &name_len.to_le_bytes(),
        ]
        .concat();
        let name = name.as_bytes();
        let local =
            [b"PK\x03\x04", &shared[..], &[20, 0], name, &[1, 0, 16, 0], &sizes[..]].concat();
        self.all[header..start].copy_from_slice(&local);
        let place = (header as u64).to_le_bytes();
        // No comment, the first disk, no attributes; the place is elsewhere, too.
        let rest = [28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        let entry = [b"PK\x01\x02\x2d\0", &shared[..], &rest, name, &[1, 0, 24, 0], &sizes, &place];
        self.directory.append(&mut entry.concat());
        self.members += 1;
        Ok(())
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let (start, len) = (self.all.len() as u64, self.directory.len() as u64);
        let [members, size, place, end] =
            [self.members, len, start, start + len].map(u64::to_le_bytes);
        self.all.append(&mut self.directory);
        let version = [44, 0, 0, 0, 0, 0, 0, 0, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        self.all.extend([b"PK\x06\x06", &version[..], &members, &members, &size, &place].concat());
        self.all.extend([b"PK\x06\x07\0\0\0\0", &end[..], &[1, 0, 0, 0]].concat());
        // Everything is elsewhere, and there is no comment.
        self.all.extend([b"PK\x05\x06\0\0\0\0", &[0xff; 12][..], &[0, 0]].concat());
        self.all
    }
}
