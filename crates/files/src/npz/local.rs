//! The headers in front of members, which must say what the directory says, and lie where
//! one member ends and the next begins.
//!
//! The layout: APPNOTE.TXT, "Local file header", "Data descriptor" and "Zip64 Extended
//! Information Extra Field".

use super::directory::{damaged, number};
use super::names::Extra;
use super::{Entry, STREAMED};
use crate::Result;
use crate::file::PositionalFile;

const LEN: usize = 30;

/// Extra fields that are read along with a header.
const USUAL_EXTRA: u64 = 64;

/// In a field of 32 bits: the value is in the zip64 field.
const ELSEWHERE: u64 = u32::MAX as u64;

/// Finds where the data of each member begin.
///
/// # Errors
/// A header that disagrees with the directory, members that overlap, bytes between them or
/// in front of the directory at `end` that are of none, and errors of reading.
pub(super) fn place(file: &PositionalFile, entries: &mut [Entry], end: u64) -> Result<()> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&i| entries[i].header);
    let wrong = |entry: &Entry, what| damaged(file, format!("member {:?}: {what}", entry.name));
    for &i in &order {
        let entry = &entries[i];
        entries[i].start = data_start(file, entry, end)?.map_err(|what| wrong(entry, what))?;
    }
    // Other data may be in front of an archive, but no member.
    let first = order.first().map_or(end, |&i| entries[i].header);
    if first > 0 && file.read_vec(0, first.min(4))?.starts_with(b"PK\x03\x04") {
        return Err(damaged(file, "there is a member that the directory does not list"));
    }
    for (place, &i) in order.iter().enumerate() {
        let entry = &entries[i];
        let next = order.get(place + 1).map_or(end, |&next| entries[next].header);
        // `data_start` has seen that the data end within the file.
        let behind = entry.start + entry.stored;
        if behind > next {
            return Err(wrong(entry, "it reaches into what follows it"));
        }
        if behind < next && !is_descriptor(file, entry, behind, next - behind)? {
            return Err(wrong(entry, "behind it are bytes that no member has"));
        }
    }
    Ok(())
}

/// Where the data of a member begin, or what is wrong with its header.
fn data_start(file: &PositionalFile, entry: &Entry, end: u64) -> Result<Result<u64, &'static str>> {
    let beyond = "it begins or ends beyond the members";
    let name_len = entry.raw_name.len() as u64;
    let fixed = LEN as u64 + name_len;
    let Some(left) = end.checked_sub(entry.header).filter(|&left| left >= fixed) else {
        return Ok(Err(beyond));
    };
    let head = file.read_vec(entry.header, left.min(fixed + USUAL_EXTRA))?;
    let extra_len = number(&head, 28, 2);
    if left < fixed + extra_len {
        return Ok(Err(beyond));
    }
    let longer;
    let extra = match head.get(fixed as usize..(fixed + extra_len) as usize) {
        Some(extra) => extra,
        None => {
            longer = file.read_vec(entry.header + fixed, extra_len)?;
            &longer
        }
    };
    if let Err(what) = agrees(&head, extra, entry) {
        return Ok(Err(what));
    }
    let start = entry.header + fixed + extra_len;
    match start.checked_add(entry.stored) {
        Some(behind) if behind <= end => Ok(Ok(start)),
        _ => Ok(Err(beyond)),
    }
}

/// Whether a header says what the directory says.
fn agrees(head: &[u8], extra: &[u8], entry: &Entry) -> Result<(), &'static str> {
    if !head.starts_with(b"PK\x03\x04") {
        return Err("the directory points at something that is no member");
    }
    if number(head, 26, 2) != entry.raw_name.len() as u64
        || head[LEN..LEN + entry.raw_name.len()] != *entry.raw_name
    {
        return Err("it and the directory disagree about its name");
    }
    if number(head, 6, 2) != u64::from(entry.flags) || number(head, 8, 2) != u64::from(entry.method)
    {
        return Err("it and the directory disagree about its compression");
    }
    let mut zip64 = Extra(extra).zip64()?;
    let (crc, mut stored, mut size) =
        (number(head, 14, 4), number(head, 18, 4), number(head, 22, 4));
    if stored == ELSEWHERE || size == ELSEWHERE {
        // A local header has both in the field, the unpacked one first.
        let (wide_size, wide_stored) = (zip64.take(8)?, zip64.take(8)?);
        size = if size == ELSEWHERE { wide_size } else { size };
        stored = if stored == ELSEWHERE { wide_stored } else { stored };
    }
    // Members that were written to a pipe have these behind the data.
    let streamed = entry.flags & STREAMED != 0;
    let agree = |here: u64, there: u64| here == there || streamed && here == 0;
    if !agree(stored, entry.stored) || !agree(size, entry.size) {
        return Err("it and the directory disagree about its size");
    }
    if !agree(crc, entry.crc.into()) {
        return Err("it and the directory disagree about its checksum");
    }
    Ok(())
}

/// Whether so many bytes behind a member that was written to a pipe are what the directory
/// says of it.
fn is_descriptor(file: &PositionalFile, entry: &Entry, at: u64, len: u64) -> Result<bool> {
    let wide = match len {
        12 | 16 => 4,
        20 | 24 => 8,
        _ => return Ok(false),
    };
    let bytes = file.read_vec(at, len)?;
    // The signature may be left out.
    let values = match len {
        12 | 20 => &bytes[..],
        _ if bytes.starts_with(b"PK\x07\x08") => &bytes[4..],
        _ => return Ok(false),
    };
    let sizes = [number(values, 4, wide), number(values, 4 + wide, wide)];
    Ok(entry.flags & STREAMED != 0
        && number(values, 0, 4) == u64::from(entry.crc)
        && sizes == [entry.stored, entry.size])
}
