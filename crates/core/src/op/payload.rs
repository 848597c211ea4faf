//! Little-endian payloads and their validation.

use super::Kind;
use crate::DType;
use crate::error::{Error, Result};
use crate::exact::Superacc;
use crate::exact::format::Format;

pub(super) fn damaged(why: impl Into<String>) -> Error {
    Error::DamagedState { why: why.into() }
}

/// Whether a payload is of a kind that a representation holds.
pub(super) fn check_kind(kind: Kind, held: &[Kind]) -> Result<()> {
    let why = || damaged(format!("its kind, {kind:?}, is not one this state holds"));
    held.contains(&kind).then_some(()).ok_or_else(why)
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

    pub(super) fn take<const N: usize>(&mut self) -> Result<[u64; N]> {
        let mut taken = [0; N];
        for word in &mut taken {
            *word = self.next()?;
        }
        Ok(taken)
    }

    /// How many whole words are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len() / 8
    }

    /// The next `len` words, for which memory is asked only if they are there.
    fn vector(&mut self, len: usize) -> Result<Vec<i64>> {
        if self.left() < len {
            return Err(damaged("its payload ends early"));
        }
        let (these, rest) = self.rest.split_at(8 * len);
        self.rest = rest;
        Ok(these.as_chunks().0.iter().map(|&word| i64::from_le_bytes(word)).collect())
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(damaged("its payload is too long")) }
    }
}

/// Reads a payload of `N` words.
pub(super) fn read_words<const N: usize>(bytes: &[u8]) -> Result<[u64; N]> {
    let mut words = Words::new(bytes);
    let read = words.take()?;
    words.end()?;
    Ok(read)
}

/// Appends exactly the accumulator's vector form.
pub(super) fn write_acc<F: Format>(out: &mut Vec<u8>, acc: &Superacc<F>) {
    out.reserve(8 * Superacc::<F>::VECTOR_LEN);
    acc.with_canonical(|limbs| limbs.iter().for_each(|l| out.extend_from_slice(&l.to_le_bytes())));
    acc.counters().iter().for_each(|c| out.extend_from_slice(&c.to_le_bytes()));
}

/// Reads an accumulator of elements of type `dtype`; `non_negative` if it sums
/// squares or absolute values.
fn read_acc<F: Format>(
    words: &mut Words<'_>,
    dtype: DType,
    non_negative: bool,
) -> Result<Superacc<F>> {
    let vector = words.vector(Superacc::<F>::VECTOR_LEN)?;
    let acc = Superacc::<F>::from_vector(&vector)
        .ok_or_else(|| damaged("its counters contradict each other"))?;
    let negative = acc.neg_infs > 0 || acc.with_canonical(|l| l.last().is_some_and(|&l| l < 0));
    check_acc(acc.counters(), negative, dtype, non_negative)?;
    Ok(acc)
}

fn check_acc(counters: [i64; 4], negative: bool, dtype: DType, non_negative: bool) -> Result<()> {
    if !dtype.is_float() && counters[1..] != [0; 3] {
        return Err(damaged("integers with NaNs or infinities"));
    }
    let unsigned = !dtype.is_float() && !dtype.is_signed_int();
    if (non_negative || unsigned) && negative {
        return Err(damaged("a negative sum of non-negative terms"));
    }
    Ok(())
}

/// Reads a payload that is one accumulator.
pub(super) fn read_one<F: Format>(
    bytes: &[u8],
    dtype: DType,
    non_negative: bool,
) -> Result<Superacc<F>> {
    let mut words = Words::new(bytes);
    let acc = read_acc(&mut words, dtype, non_negative)?;
    words.end()?;
    Ok(acc)
}

/// Reads a payload that is a sum and the sum of the same elements' squares.
pub(super) fn read_moments<S: Format, D: Format>(
    bytes: &[u8],
    dtype: DType,
) -> Result<(Superacc<S>, Superacc<D>)> {
    let mut words = Words::new(bytes);
    let sum = read_acc::<S>(&mut words, dtype, false)?;
    let squares = read_acc::<D>(&mut words, dtype, true)?;
    words.end()?;
    let counters = [sum.count, sum.nans, sum.pos_infs.wrapping_add(sum.neg_infs), 0];
    if counters != squares.counters() {
        return Err(damaged("its sum and its sum of squares count different elements"));
    }
    Ok((sum, squares))
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
