//! Answers and partials in `serde`'s formats.
//!
//! A [`Partial`] is its byte form: bytes, or their hexadecimal digits in formats
//! for people. An [`Answer`] is a structure of its shape and its columns, and an
//! [`Accumulator`] one of its partial, its next position and its rules.

use crate::accumulator::Accumulator;
use crate::answer::{Answer, Column};
use crate::partial::Partial;
use core::fmt;
use serde::de::{self, Error as _, SeqAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warpfold_core::{Item, Rules};

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
        let sound = |column: Column| Column::new(column.op, column.numbers, column.second);
        let columns: warpfold_core::Result<_> = columns.into_iter().map(sound).collect();
        let columns = columns.map_err(D::Error::custom)?;
        Answer::from_columns(shape, columns).map_err(D::Error::custom)
    }
}

/// What an accumulator knows, but for where it works: on which device and how many threads.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Accumulator")]
struct Seen {
    partial: Partial,
    position: u64,
    rules: Rules,
}

/// Fails where [`Accumulator::to_partial`] does.
impl<T: Item> Serialize for Accumulator<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let partial = self.to_partial().map_err(S::Error::custom)?;
        Seen { partial, position: self.position(), rules: *self.rules() }.serialize(to)
    }
}

/// Goes on by itself where the one ended that was written, on all threads.
impl<'de, T: Item> Deserialize<'de> for Accumulator<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Accumulator<T>, D::Error> {
        let Seen { partial, position, rules } = Seen::deserialize(from)?;
        let accumulator = Accumulator::try_from(partial).map_err(D::Error::custom)?;
        Ok(accumulator.finished_by(rules).starting_at(position))
    }
}
