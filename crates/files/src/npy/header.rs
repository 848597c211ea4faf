//! The header in front of an npy array.

use super::dtype::Descr;
use super::literal::{self, Literal};
use crate::source::element_count;
use crate::{Error, Order, Result};
use std::io::Read;

/// The first bytes of every npy file.
use crate::format::NPY as MAGIC;

/// No description of a type is longer than this. Parsed, one may take thirty
/// times as much; NumPy itself refuses more than 10,000 bytes by default.
const LONGEST: u64 = 1 << 20;

/// What stands before the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) descr: Descr,
    pub(crate) order: Order,
    pub(crate) shape: Vec<usize>,
    /// How many items the shape holds.
    pub(crate) count: u64,
    /// Where the data begin.
    pub(crate) data_start: u64,
}

impl Header {
    /// Takes the header off `reader`.
    pub(crate) fn read(reader: &mut dyn Read, name: &str) -> Result<Self> {
        let fail = |what: String| Error::format(name, what);
        let mut take = |len: u64| -> Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let got = crate::fixed::read_up_to(reader, len, &mut bytes, name)?;
            if (got as u64) < len {
                return Err(fail("the npy header is cut short".into()));
            }
            Ok(bytes)
        };
        let start = take(8)?;
        if !start.starts_with(MAGIC) {
            return Err(fail("not an npy file: bad magic number".into()));
        }
        let (major, minor) = (start[6], start[7]);
        let (len, before) = match major {
            1 => {
                let b = take(2)?;
                (u64::from(u16::from_le_bytes([b[0], b[1]])), 10)
            }
            2 | 3 => {
                let b = take(4)?;
                (u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])), 12)
            }
            _ => {
                return Err(fail(format!(
                    "npy version {major}.{minor} is not known; versions 1 to 3 are read"
                )));
            }
        };
        if len > LONGEST {
            return Err(fail(format!("the npy header claims to be {len} bytes long"))
                .with_hint("headers of up to 1 MiB are read: give the array fewer fields"));
        }
        let bytes = take(len)?;
        let text = if major < 3 {
            // Latin-1: each byte is the character of that number.
            bytes.iter().map(|&b| char::from(b)).collect()
        } else {
            String::from_utf8(bytes).map_err(|_| fail("the npy header is not UTF-8".into()))?
        };
        Self::parse(&text, before + len).map_err(|why| fail(format!("damaged npy header: {why}")))
    }

    fn parse(text: &str, data_start: u64) -> Result<Self, String> {
        let Literal::Dict(entries) = literal::parse(text)? else {
            return Err("it is not a dictionary".into());
        };
        let get = |key: &str| {
            let mut found =
                entries.iter().filter(|(k, _)| matches!(k, Literal::Text(t) if t == key));
            match (found.next(), found.next()) {
                (Some((_, value)), None) => Ok(value),
                (None, _) => Err(format!("it lacks {key:?}")),
                _ => Err(format!("it has {key:?} twice")),
            }
        };
        let descr = Descr::from_literal(get("descr")?)?;
        let order = match get("fortran_order")? {
            Literal::Bool(false) | Literal::Int(0) => Order::C,
            Literal::Bool(true) | Literal::Int(1) => Order::Fortran,
            _ => return Err("'fortran_order' is neither True nor False".into()),
        };
        let Literal::Sequence(dims) = get("shape")? else {
            return Err("'shape' is not a tuple".into());
        };
        let mut shape = Vec::with_capacity(dims.len());
        for dim in dims {
            match dim {
                Literal::Int(n) if *n < 0 => return Err(format!("the shape holds {n}")),
                Literal::Int(n) => shape.push(
                    usize::try_from(*n).map_err(|_| format!("the shape holds {n}: too large"))?,
                ),
                _ => return Err("'shape' holds something else than numbers".into()),
            }
        }
        let too_large = || format!("the shape {shape:?} has more elements than can be counted");
        let count = element_count(&shape).ok_or_else(too_large)?;
        count.checked_mul(descr.size()).ok_or_else(too_large)?;
        Ok(Header { descr, order, shape, count, data_start })
    }

    /// Bytes of all items together.
    pub(crate) fn data_bytes(&self) -> u64 {
        // `parse` made sure that this fits.
        self.count * self.descr.size()
    }

    /// Refuses a shape that the bytes present cannot hold.
    pub(crate) fn check_length(&self, available: u64, name: &str) -> Result<()> {
        let needed = self.data_bytes();
        if needed > available {
            return Err(Error::format(
                name,
                format!(
                    "truncated: the shape {:?} takes {needed} bytes, but only {available} follow \
                     the header",
                    self.shape
                ),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(version: u8, text: &str) -> Result<Header> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        if version == 1 {
            bytes.extend((text.len() as u16).to_le_bytes());
        } else {
            bytes.extend((text.len() as u32).to_le_bytes());
        }
        bytes.extend(text.as_bytes());
        Header::read(&mut &bytes[..], "t.npy")
    }

    #[test]
    fn keys_may_come_in_any_order() {
        let text = "{'shape': (2, 3L), 'fortran_order': True, 'descr': '>i2'}";
        let h = header(1, text).unwrap();
        let start = 10 + text.len() as u64;
        assert_eq!(
            (h.shape, h.order, h.count, h.data_start),
            (vec![2, 3], Order::Fortran, 6, start)
        );
    }

    #[test]
    fn version_3_names_are_unicode() {
        let text = "{'descr': [('größe', '<f8')], 'fortran_order': False, 'shape': (1,)}";
        let Descr::Record { fields, .. } = header(3, text).unwrap().descr else { panic!() };
        assert_eq!(fields[0].name, "größe");
    }

    #[test]
    fn lying_headers_are_refused() {
        let with_shape =
            |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}");
        for (text, why) in [
            (with_shape("(-1,)"), "the shape holds -1"),
            (with_shape("(4294967296, 4294967296)"), "more elements than can be counted"),
            (with_shape("(4611686018427387904,)"), "more elements than can be counted"),
            (with_shape("(99999999999999999999,)"), "too large"),
            (with_shape("5"), "not a tuple"),
            (with_shape("('a',)"), "something else"),
            ("{'descr': '<f8', 'shape': ()}".into(), "lacks \"fortran_order\""),
            (
                "{'descr': '<f8', 'descr': '<f4', 'fortran_order': False, 'shape': ()}".into(),
                "twice",
            ),
            ("[]".into(), "not a dictionary"),
            ("{".into(), "the text ends"),
        ] {
            let message = header(1, &text).unwrap_err().to_string();
            assert!(message.contains(why), "{text}: {message}");
        }
        let message = header(9, "{}").unwrap_err().to_string();
        assert!(message.contains("version 9.0"), "{message}");
    }

    #[test]
    fn a_length_beyond_the_file_allocates_nothing() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([2, 0, 0xff, 0xff, 0xff, 0xff]);
        let message = Header::read(&mut &bytes[..], "t").unwrap_err().to_string();
        assert!(message.contains("claims to be 4294967295 bytes"), "{message}");
        bytes[8..12].copy_from_slice(&[0, 0, 0x10, 0]);
        let message = Header::read(&mut &bytes[..], "t").unwrap_err().to_string();
        assert!(message.contains("cut short"), "{message}");
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(tail in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = MAGIC.to_vec();
            bytes.extend(tail);
            let _ = Header::read(&mut &bytes[..], "t");
        }
    }
}
