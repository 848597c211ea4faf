//! Answers and partials in `serde`'s formats.
//!
//! A [`Partial`] is its byte form: bytes, or their hexadecimal digits in formats
//! for people. An [`Answer`] is a structure of its shape and its columns.

use crate::answer::{Answer, Column, halves};
use crate::partial::Partial;
use core::fmt;
use serde::de::{self, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

impl Serialize for Partial {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let bytes = self.to_bytes();
        if to.is_human_readable() {
            to.collect_str(&Hex(&bytes))
        } else {
            to.serialize_bytes(&bytes)
        }
    }
}

impl<'de> Deserialize<'de> for Partial {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Partial, D::Error> {
        if from.is_human_readable() {
            from.deserialize_str(State)
        } else {
            from.deserialize_byte_buf(State)
        }
    }
}

/// Bytes as two digits each.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |d: u8| char::from(d).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}

/// The byte form of a partial.
struct State;

impl<'de> Visitor<'de> for State {
    type Value = Partial;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the byte form of a partial state")
    }

    fn visit_str<E: de::Error>(self, digits: &str) -> Result<Partial, E> {
        let bytes = unhex(digits);
        self.visit_bytes(&bytes.ok_or_else(|| E::custom("a state is written in hexadecimal"))?)
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Partial, E> {
        Partial::from_bytes(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Partial, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Answer, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "Answer")]
        struct Parts {
            shape: Vec<usize>,
            columns: Vec<Column>,
        }
        let Parts { shape, columns } = Parts::deserialize(from)?;
        for column in &columns {
            let has = column.second.as_ref().map(|second| (second.len(), second.dtype()));
            let numbers = &column.numbers;
            let wants = (halves(column.op).len() == 2).then(|| (numbers.len(), numbers.dtype()));
            if has != wants {
                return Err(D::Error::custom(format!(
                    "{} has another number of second numbers than of first ones",
                    column.op
                )));
            }
        }
        Answer::from_columns(shape, columns).map_err(D::Error::custom)
    }
}
