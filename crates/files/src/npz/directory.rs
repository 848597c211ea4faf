//! The directory at the end of an archive.
//!
//! The layout: APPNOTE.TXT, "Central directory structure" and what follows it. An archive
//! that is read otherwise than it was written may lack arrays, so each number in it must
//! agree with all others: the directory ends where the record of its end begins, and holds
//! as many entries as that says.

use super::names::{Extra, decoded};
use super::{Entry, UTF8};
use crate::file::PositionalFile;
use crate::{Error, Result};

/// No directory is longer than this: entries take some times as much while they are read.
const LONGEST: u64 = 32 << 20;

/// Lengths of the records at the end, without a comment.
const END: u64 = 22;
const LOCATOR: u64 = 20;
const END64: u64 = 56;

/// The longest comment.
const COMMENT: u64 = u16::MAX as u64;

/// In a field of 16 or 32 bits: the value is in a record of zip64.
const ELSEWHERE_16: u64 = u16::MAX as u64;
const ELSEWHERE_32: u64 = u32::MAX as u64;

/// The error that an archive is damaged.
pub(super) fn damaged(file: &PositionalFile, what: impl core::fmt::Display) -> Error {
    Error::format(file.name(), format!("damaged zip archive: {what}"))
}

/// Bytes from a place on, little-endian. The caller knows that they are there.
pub(super) fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// Where the directory is.
struct Whole {
    entries: u64,
    start: u64,
    len: u64,
    /// How many bytes are in front of the archive: offsets count from there.
    before: u64,
}

/// All entries, and where the directory begins.
///
/// # Errors
/// A directory that is damaged or very long, and errors of reading.
pub(super) fn read(file: &PositionalFile) -> Result<(Vec<Entry>, u64)> {
    let whole = find(file)?;
    if whole.len > LONGEST {
        return Err(Error::format(file.name(), "the directory is damaged, or longer than 32 MiB")
            .with_hint("spread the arrays over several archives"));
    }
    let bytes = file.read_vec(whole.start, whole.len)?;
    let (mut entries, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        entries.push(entry(&mut rest, whole.before).map_err(|what| damaged(file, what))?);
    }
    let (found, counted) = (entries.len() as u64, whole.entries);
    if found != counted {
        let what = format!("the directory has {found} entries, and its end counts {counted}");
        return Err(damaged(file, what));
    }
    Ok((entries, whole.start))
}

/// Takes an entry off the front.
fn entry(rest: &mut &[u8], before: u64) -> Result<Entry, &'static str> {
    const LEN: usize = 46;
    let short = "an entry of the directory is cut short";
    let (fixed, behind) = rest.split_at_checked(LEN).ok_or(short)?;
    if !fixed.starts_with(b"PK\x01\x02") {
        return Err("the directory holds something that is no entry");
    }
    let [name, extra, comment] = [28, 30, 32].map(|at| number(fixed, at, 2) as usize);
    let (raw_name, behind) = behind.split_at_checked(name).ok_or(short)?;
    let (extra, behind) = behind.split_at_checked(extra).ok_or(short)?;
    (_, *rest) = behind.split_at_checked(comment).ok_or(short)?;
    let mut zip64 = Extra(extra).zip64()?;
    let mut wide = |value: u64, elsewhere: u64, len: usize| {
        if value == elsewhere { zip64.take(len) } else { Ok(value) }
    };
    // In this order.
    let size = wide(number(fixed, 24, 4), ELSEWHERE_32, 8)?;
    let stored = wide(number(fixed, 20, 4), ELSEWHERE_32, 8)?;
    let header = wide(number(fixed, 42, 4), ELSEWHERE_32, 8)?;
    let disk = wide(number(fixed, 34, 2), ELSEWHERE_16, 4)?;
    if disk != 0 {
        return Err("a member is on another disk");
    }
    let flags = number(fixed, 8, 2) as u16;
    Ok(Entry {
        name: decoded(raw_name, flags & UTF8 != 0)?.into(),
        raw_name: raw_name.into(),
        header: header.checked_add(before).ok_or("a member begins beyond the end of the file")?,
        start: 0,
        stored,
        size,
        crc: number(fixed, 16, 4) as u32,
        method: number(fixed, 10, 2) as u16,
        flags,
    })
}

/// Finds the directory from the end of the file.
fn find(file: &PositionalFile) -> Result<Whole> {
    let len = file.len();
    let from = len.saturating_sub(END + COMMENT);
    let tail = file.read_vec(from, len - from)?;
    let places = (0..(tail.len() + 1).saturating_sub(END as usize)).rev();
    let mut ends = places.filter(|&at| tail[at..].starts_with(b"PK\x05\x06")).peekable();
    if ends.peek().is_none() {
        let what = "damaged, or not a zip archive: the end of the directory is missing";
        return Err(Error::format(file.name(), what));
    }
    // The comment is the last there is.
    let fits = |&at: &usize| at + END as usize + number(&tail, at + 20, 2) as usize == tail.len();
    let Some(at) = ends.find(fits) else {
        return Err(damaged(file, "there are other bytes behind the end of the directory"));
    };
    let end = &tail[at..at + END as usize];
    let end_at = from + at as u64;
    let [disk, of_directory, here, entries] = [4, 6, 8, 10].map(|at| number(end, at, 2));
    let [size, offset] = [12, 16].map(|at| number(end, at, 4));
    let several = || damaged(file, "it is spread over several files");
    let Some(wide) = find_wide(file, end_at)? else {
        if [disk, of_directory] != [0, 0] || here != entries {
            return Err(several());
        }
        return whole(file, entries, size, offset, end_at);
    };
    let Wide { at, disks, entries: both, size: wide_size, offset: wide_offset, before } = wide;
    if disks != [0, 0] || both[0] != both[1] {
        return Err(several());
    }
    // What the smaller record says itself is the same.
    let agree = |narrow: u64, elsewhere: u64, wide: u64| narrow == elsewhere || narrow == wide;
    if ![disk, of_directory].iter().all(|&disk| agree(disk, ELSEWHERE_16, 0))
        || ![here, entries].iter().all(|&count| agree(count, ELSEWHERE_16, both[0]))
        || !agree(size, ELSEWHERE_32, wide_size)
        || !agree(offset, ELSEWHERE_32, wide_offset)
    {
        return Err(damaged(file, "the two records of the directory's end disagree"));
    }
    let whole = whole(file, both[0], wide_size, wide_offset, at)?;
    if whole.before != before {
        return Err(damaged(file, "the two records of the directory's end disagree"));
    }
    Ok(whole)
}

/// A directory of so many bytes that ends at `end`.
fn whole(file: &PositionalFile, entries: u64, len: u64, offset: u64, end: u64) -> Result<Whole> {
    let start = end.checked_sub(len);
    let before = start.and_then(|start| start.checked_sub(offset));
    match (start, before) {
        (Some(start), Some(before)) => Ok(Whole { entries, start, len, before }),
        _ => Err(damaged(file, "the directory begins or ends elsewhere than its end says")),
    }
}

/// What zip64 says of the directory.
struct Wide {
    /// Where the record begins.
    at: u64,
    disks: [u64; 2],
    entries: [u64; 2],
    size: u64,
    offset: u64,
    /// How many bytes are in front of the archive.
    before: u64,
}

/// The record of zip64, if there is one in front of the directory's end.
fn find_wide(file: &PositionalFile, end_at: u64) -> Result<Option<Wide>> {
    let Some(locator_at) = end_at.checked_sub(LOCATOR) else { return Ok(None) };
    let locator = file.read_vec(locator_at, LOCATOR)?;
    if !locator.starts_with(b"PK\x06\x07") {
        return Ok(None);
    }
    let wrong = || damaged(file, "the record of a large directory's end is not where it should be");
    let at = locator_at.checked_sub(END64).ok_or_else(wrong)?;
    let record = file.read_vec(at, END64)?;
    // The first number is the length of what follows it; there is one disk, number 0.
    let has_its_length = number(&record, 4, 8) == END64 - 12;
    if !record.starts_with(b"PK\x06\x06")
        || !has_its_length
        || number(&locator, 4, 4) != 0
        || number(&locator, 16, 4) != 1
    {
        return Err(wrong());
    }
    let before = at.checked_sub(number(&locator, 8, 8)).ok_or_else(wrong)?;
    Ok(Some(Wide {
        at,
        disks: [16, 20].map(|at| number(&record, at, 4)),
        entries: [24, 32].map(|at| number(&record, at, 8)),
        size: number(&record, 40, 8),
        offset: number(&record, 48, 8),
        before,
    }))
}
