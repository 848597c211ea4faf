//! Little-endian payloads and their validation.

use super::Kind;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exact::Superacc;
use crate::exact::format::Format;

pub(super) fn damaged(why: impl Into<String>) -> Error {
    Error::DamagedState { why: why.into() }
}

/// A payload of a kind that this representation does not hold.
pub(super) fn wrong_kind(kind: Kind) -> Error {
    damaged(format!("its kind, {kind:?}, is not one this state holds"))
}

/// Two states that differ in kind.
pub(super) fn kind_mismatch(left: Kind, right: Kind) -> Error {
    Error::StateMismatch { what: "kind", left: format!("{left:?}"), right: format!("{right:?}") }
}

pub(super) fn write_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Reads 64-bit words off the front of a payload.
pub(super) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Words { rest: bytes }
    }

    pub(super) fn next(&mut self) -> Result<u64> {
        let (word, rest) =
            self.rest.split_first_chunk::<8>().ok_or_else(|| damaged("its payload ends early"))?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*word))
    }

    /// How many whole words are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len() / 8
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(damaged("its payload is too long")) }
    }
}

/// Appends exactly the accumulator's vector form.
pub(super) fn write_acc<F: Format>(out: &mut Vec<u8>, acc: &Superacc<F>) {
    out.reserve(8 * Superacc::<F>::VECTOR_LEN);
    acc.with_canonical(|limbs| limbs.iter().for_each(|l| out.extend_from_slice(&l.to_le_bytes())));
    acc.counters().iter().for_each(|c| out.extend_from_slice(&c.to_le_bytes()));
}

/// Reads an accumulator of elements of type `T`; `non_negative` if it sums
/// squares or absolute values.
pub(super) fn read_acc<T: Element, F: Format>(
    words: &mut Words<'_>,
    non_negative: bool,
) -> Result<Superacc<F>> {
    let len = Superacc::<F>::VECTOR_LEN;
    if words.left() < len {
        return Err(damaged("its payload ends early"));
    }
    let vector = (0..len).map(|_| Ok(words.next()? as i64)).collect::<Result<Vec<i64>>>()?;
    let acc = Superacc::<F>::from_vector(&vector)
        .ok_or_else(|| damaged("its counters contradict each other"))?;
    if !T::DTYPE.is_float() && (acc.nans, acc.pos_infs, acc.neg_infs) != (0, 0, 0) {
        return Err(damaged("integers with NaNs or infinities"));
    }
    let negative = acc.neg_infs > 0 || acc.with_canonical(|l| l.last().is_some_and(|&l| l < 0));
    if non_negative && negative {
        return Err(damaged("a negative sum of non-negative terms"));
    }
    Ok(acc)
}

/// Takes numbers off the front of a byte form.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

/// What a byte form that ends too early is called.
const SHORT: &str = "it ends too early";

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> Result<&'a [u8], &'static str> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(SHORT)?;
        self.0 = rest;
        Ok(head)
    }

    /// A little-endian integer of `n <= 8` bytes.
    pub(super) fn uint(&mut self, n: usize) -> Result<u64, &'static str> {
        Ok(self.bytes(n)?.iter().rfold(0, |u, &b| u << 8 | u64::from(b)))
    }

    pub(super) fn u64(&mut self) -> Result<u64, &'static str> {
        self.uint(8)
    }
}
