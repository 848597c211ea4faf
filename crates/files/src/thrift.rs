//! Whether a structure in Thrift's compact protocol holds as much as it says.
//!
//! Decoders that skip the fields they do not know believe the counts of lists:
//! a few bytes that claim 2^31 elements keep them busy for minutes. Here every
//! element takes at least one byte, as the protocol has it, so that counts are
//! bounded by what is there. The protocol: Apache Thrift, "Thrift compact
//! protocol encoding".

use parquet::errors::ParquetError;

/// Why a look at the first bytes did not find the end of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// More bytes are needed.
    Unfinished,
    /// It claims more than there can be, or is no such structure.
    Damaged,
}

/// Structures in structures that anybody has use for.
const MOST_NESTED: u32 = 64;

/// Looks through the structure that `bytes`, the first of `available`, begin
/// with.
pub(crate) fn look(bytes: &[u8], available: u64) -> Walked<Found> {
    let beyond = available.saturating_sub(bytes.len() as u64);
    let mut walker = Walker { bytes, beyond, integers: Vec::new() };
    walker.structure(MOST_NESTED, Some(0))?;
    Ok(Found { len: (bytes.len() - walker.bytes.len()) as u64, integers: walker.integers })
}

/// A structure, and the integers and truths in it and in the structures that are its fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) len: u64,
    /// Behind the number of the structure, of the outermost 0, and that of the field.
    integers: Vec<(i64, i64, i64)>,
}

impl Found {
    /// The integers of a structure by their fields.
    pub(crate) fn of(&self, outer: i64) -> impl Fn(i64) -> parquet::errors::Result<i64> {
        move |field| {
            let found = self.integers.iter().find(|(o, f, _)| (*o, *f) == (outer, field));
            let missing = || format!("Required field {field} of a page's header is missing");
            found.map(|found| found.2).ok_or_else(|| ParquetError::General(missing()))
        }
    }
}

/// What is left of the bytes, and how many follow that were not handed over.
struct Walker<'a> {
    bytes: &'a [u8],
    beyond: u64,
    integers: Vec<(i64, i64, i64)>,
}

type Walked<T = ()> = Result<T, Look>;

impl Walker<'_> {
    /// That `n` more bytes exist.
    fn claim(&self, n: u64) -> Walked {
        if n <= self.bytes.len() as u64 + self.beyond { Ok(()) } else { Err(Look::Damaged) }
    }

    fn skip(&mut self, n: u64) -> Walked {
        self.claim(n)?;
        let n = usize::try_from(n).map_err(|_| Look::Damaged)?;
        self.bytes = self.bytes.get(n..).ok_or(Look::Unfinished)?;
        Ok(())
    }

    fn byte(&mut self) -> Walked<u8> {
        self.claim(1)?;
        let (&first, rest) = self.bytes.split_first().ok_or(Look::Unfinished)?;
        self.bytes = rest;
        Ok(first)
    }

    fn varint(&mut self) -> Walked<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Look::Damaged)
    }

    fn integer(&mut self) -> Walked<i64> {
        // Small ones of either sign are short.
        self.varint().map(|zigzag| (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// Walks through a structure, whose integers are found if it has a number.
    fn structure(&mut self, nested: u32, outer: Option<i64>) -> Walked {
        let nested = nested.checked_sub(1).ok_or(Look::Damaged)?;
        let mut number = 0i64;
        loop {
            let field = self.byte()?;
            if field == 0 {
                return Ok(());
            }
            number = match i64::from(field >> 4) {
                // The field's number, written out.
                0 => self.integer()?,
                more => number.saturating_add(more),
            };
            let integer = match field & 0xf {
                // A boolean field has its value in its type.
                truth @ 1..=2 => i64::from(truth == 1),
                4..=6 => self.integer()?,
                12 => {
                    self.structure(nested, outer.filter(|outer| *outer == 0).map(|_| number))?;
                    continue;
                }
                kind => {
                    self.value(kind, nested)?;
                    continue;
                }
            };
            self.integers.extend(outer.map(|outer| (outer, number, integer)));
        }
    }

    fn value(&mut self, kind: u8, nested: u32) -> Walked {
        match kind {
            1..=3 => self.skip(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let len = self.varint()?;
                self.skip(len)
            }
            9 | 10 => {
                let header = self.byte()?;
                let count = match header >> 4 {
                    15 => self.varint()?,
                    count => u64::from(count),
                };
                self.elements(count, &[header & 0xf], nested)
            }
            11 => match self.varint()? {
                0 => Ok(()),
                count => {
                    let kinds = self.byte()?;
                    self.elements(count, &[kinds >> 4, kinds & 0xf], nested)
                }
            },
            12 => self.structure(nested, None),
            13 => self.skip(16),
            _ => Err(Look::Damaged),
        }
    }

    fn elements(&mut self, count: u64, kinds: &[u8], nested: u32) -> Walked {
        let nested = nested.checked_sub(1).ok_or(Look::Damaged)?;
        self.claim(count)?;
        for _ in 0..count {
            for &kind in kinds {
                self.value(kind, nested)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field 1 = 300, field 2 = "ab", field 3 = [1, 2] of i32, field 4 = true,
    /// field 5 = {}, field 6 = {1: 2}, field 20 = 1.0.
    const WHOLE: [u8; 31] = [
        0x15, 0xd8, 0x04, 0x18, 2, b'a', b'b', 0x19, 0x25, 2, 4, 0x11, 0x1c, 0, 0x1b, 1, 0x55, 2,
        4, 0x07, 40, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 99,
    ];

    #[test]
    fn every_kind_of_field_is_walked() {
        let found = look(&WHOLE, 31).unwrap();
        assert_eq!(found.integers, [(0, 1, 300), (0, 4, 1)]);
        assert_eq!(found.len, 30);
        // Nothing after the end matters.
        assert_eq!(look(&WHOLE[..30], 30), Ok(found));
    }

    #[test]
    fn a_beginning_is_unfinished_and_an_end_is_damage() {
        for n in 0..30 {
            assert_eq!(look(&WHOLE[..n], 31), Err(Look::Unfinished), "{n}");
            assert_eq!(look(&WHOLE[..n], n as u64), Err(Look::Damaged), "{n}");
        }
    }

    #[test]
    fn counts_are_not_believed() {
        // 2^31 - 1 strings, booleans, or pairs; a string of 2^40 bytes.
        for claim in [
            &[0x19, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x07][..],
            &[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07],
            &[0x1b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11],
            &[0x18, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20],
        ] {
            assert_eq!(look(claim, 10_000), Err(Look::Damaged), "{claim:x?}");
        }
        // Lists in lists without end.
        assert_eq!(look(&[0x19].repeat(1000), 1 << 40), Err(Look::Damaged));
        assert_eq!(look(&[0x1c].repeat(1000), 1 << 40), Err(Look::Damaged));
        // Not a type, and a number without an end.
        assert_eq!(look(&[0x1e], 100), Err(Look::Damaged));
        assert_eq!(
            look(&[0x16; 1].iter().chain(&[0xff; 11]).copied().collect::<Vec<_>>(), 100),
            Err(Look::Damaged)
        );
    }
}
