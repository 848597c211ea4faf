//! Integers of few bytes where they are small: what states are written in.

use warpfold_core::{Error, Result};

/// The error that bytes are no state.
#[must_use]
pub fn damaged(why: &str) -> Error {
    Error::DamagedState { why: why.into() }
}

/// Appends a word, seven bits a byte, the lowest first.
pub fn write(out: &mut Vec<u8>, mut word: u64) {
    while word >= 0x80 {
        out.push(word as u8 | 0x80);
        word >>= 7;
    }
    out.push(word as u8);
}

/// Reads such a word off the front.
///
/// # Errors
/// Bytes that end within it, and a word of more than 64 bits.
pub fn read(bytes: &mut &[u8]) -> Result<u64> {
    let mut word = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(|| damaged("a group ends early"))?;
        *bytes = rest;
        let digit = u64::from(byte & 0x7f);
        if shift == 63 && digit > 1 {
            break;
        }
        word |= digit << shift;
        if byte < 0x80 {
            return Ok(word);
        }
    }
    Err(damaged("a number in a group is too long"))
}

/// Takes so many bytes off the front.
///
/// # Errors
/// If there are fewer.
pub fn take<'a>(bytes: &mut &'a [u8], len: u64) -> Result<&'a [u8]> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let (head, rest) = bytes.split_at_checked(len).ok_or_else(|| damaged("a group ends early"))?;
    *bytes = rest;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let words = (0..64).flat_map(|i| [1u64 << i, (1u64 << i) - 1, u64::MAX << i]);
        for word in words {
            let mut out = Vec::new();
            write(&mut out, word);
            let mut rest = &out[..];
            assert_eq!(read(&mut rest), Ok(word));
            assert!(rest.is_empty());
            for cut in 0..out.len() {
                assert!(read(&mut &out[..cut]).is_err(), "{word:x} {cut}");
            }
        }
        assert!(read(&mut &[0xff; 11][..]).is_err());
        assert!(read(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]).is_err());
    }
}
