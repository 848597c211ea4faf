//! The header in front of a member, which must say what the directory says.
//!
//! The layout: APPNOTE.TXT, "Local file header" and "Zip64 Extended
//! Information Extra Field".

use super::Entry;
use crate::Error;
use crate::file::PositionalFile;
use zip::CompressionMethod;

const LEN: u64 = 30;

/// In a field of 32 bits: the value is in the zip64 field.
const ELSEWHERE: u32 = u32::MAX;

/// What is wrong.
pub(super) enum Wrong {
    /// With the archive.
    Said(&'static str),
    /// With the file.
    Read(Error),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Wrong::Read(error)
    }
}

/// Where the data of a member begin.
pub(super) fn data_start(file: &PositionalFile, entry: &Entry) -> Result<u64, Wrong> {
    let beyond = Wrong::Said("a member begins beyond the end of the file");
    if entry.header.checked_add(LEN).is_none_or(|end| end > file.len()) {
        return Err(beyond);
    }
    let fixed = file.read_vec(entry.header, LEN)?;
    if !fixed.starts_with(b"PK\x03\x04") {
        return Err(Wrong::Said("the directory points at something that is not a member"));
    }
    let half = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
    let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
    let (flags, method, crc) = (half(6), half(8), word(14));
    let (name, extra) = (u64::from(half(26)), u64::from(half(28)));
    let extra_at = entry.header + LEN + name;
    if extra_at + extra > file.len() {
        return Err(beyond);
    }
    let expected = match entry.method {
        CompressionMethod::Deflated => 8,
        _ => 0,
    };
    if flags & 1 != 0 || method != expected {
        return Err(Wrong::Said("a member and the directory disagree about its compression"));
    }
    let (mut stored, mut size) = (u64::from(word(18)), u64::from(word(22)));
    if word(18) == ELSEWHERE || word(22) == ELSEWHERE {
        // A local header has both in the field, the unpacked one first.
        let fields = file.read_vec(extra_at, extra)?;
        let Some([first, second]) = zip64(&fields) else {
            return Err(Wrong::Said("a member lacks its zip64 sizes"));
        };
        size = if word(22) == ELSEWHERE { first } else { size };
        stored = if word(18) == ELSEWHERE { second } else { stored };
    }
    // Members that were written to a pipe have these behind the data.
    let streamed = flags & 8 != 0;
    let agree = |here: u64, there: u64| here == there || streamed && here == 0;
    if !agree(stored, entry.stored) || !agree(size, entry.size) {
        return Err(Wrong::Said("a member and the directory disagree about its size"));
    }
    if !agree(crc.into(), entry.crc.into()) {
        return Err(Wrong::Said("a member and the directory disagree about its checksum"));
    }
    Ok(extra_at + extra)
}

/// The two sizes of the zip64 field among a header's extra fields.
fn zip64(mut fields: &[u8]) -> Option<[u64; 2]> {
    loop {
        let (head, rest) = fields.split_first_chunk::<4>()?;
        let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let (field, after) = rest.split_at_checked(len)?;
        if head[..2] == [1, 0] {
            let (first, rest) = field.split_first_chunk::<8>()?;
            let (second, _) = rest.split_first_chunk::<8>()?;
            return Some([u64::from_le_bytes(*first), u64::from_le_bytes(*second)]);
        }
        fields = after;
    }
}
