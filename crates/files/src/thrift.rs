//! Whether a structure in Thrift's compact protocol holds as much as it says.
//!
//! Decoders that skip the fields they do not know believe the counts of lists:
//! a few bytes that claim 2^31 elements keep them busy for minutes. Here every
//! element takes at least one byte, as the protocol has it, so that counts are
//! bounded by what is there. The protocol: Apache Thrift, "Thrift compact
//! protocol encoding".

/// What is known after a look at the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The structure ends within them.
    Sound,
    /// More bytes are needed.
    Unfinished,
    /// It claims more than there can be, or is no such structure.
    Damaged,
}

/// Structures in structures that anybody has use for.
const MOST_NESTED: u32 = 64;

/// Looks through the structure that `bytes`, the first of `available`, begin
/// with.
pub(crate) fn look(bytes: &[u8], available: u64) -> Look {
    let mut walker = Walker { bytes, beyond: available.saturating_sub(bytes.len() as u64) };
    match walker.structure(MOST_NESTED) {
        Ok(()) => Look::Sound,
        Err(look) => look,
    }
}

/// What is left of the bytes, and how many follow that were not handed over.
struct Walker<'a> {
    bytes: &'a [u8],
    beyond: u64,
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

    fn structure(&mut self, nested: u32) -> Walked {
        let nested = nested.checked_sub(1).ok_or(Look::Damaged)?;
        loop {
            let field = self.byte()?;
            if field == 0 {
                return Ok(());
            }
            if field >> 4 == 0 {
                // The field's number, written out.
                self.varint()?;
            }
            // A boolean field has its value in its type.
            if !matches!(field & 0xf, 1 | 2) {
                self.value(field & 0xf, nested)?;
            }
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
            12 => self.structure(nested),
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
        assert_eq!(look(&WHOLE, 31), Look::Sound);
        // Nothing after the end matters.
        assert_eq!(look(&WHOLE[..30], 30), Look::Sound);
    }

    #[test]
    fn a_beginning_is_unfinished_and_an_end_is_damage() {
        for n in 0..30 {
            assert_eq!(look(&WHOLE[..n], 31), Look::Unfinished, "{n}");
            assert_eq!(look(&WHOLE[..n], n as u64), Look::Damaged, "{n}");
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
            assert_eq!(look(claim, 10_000), Look::Damaged, "{claim:x?}");
        }
        // Lists in lists without end.
        assert_eq!(look(&[0x19].repeat(1000), 1 << 40), Look::Damaged);
        assert_eq!(look(&[0x1c].repeat(1000), 1 << 40), Look::Damaged);
        // Not a type, and a number without an end.
        assert_eq!(look(&[0x1e], 100), Look::Damaged);
        assert_eq!(
            look(&[0x16; 1].iter().chain(&[0xff; 11]).copied().collect::<Vec<_>>(), 100),
            Look::Damaged
        );
    }
}
