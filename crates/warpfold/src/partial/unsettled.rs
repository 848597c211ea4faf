//! Numbers whose type is not settled: a piece of text without a decimal.
//!
//! A column of text is one of integers, unless one of its cells has a decimal:
//! then all are floats, each rounded once. A piece without a decimal cannot
//! know what the others hold. So it keeps two states of the same elements, and
//! merging takes those that suit both sides. In this way the merged pieces have
//! the bits of a single pass over all of them.

use super::Partial;
use crate::answer::outputs_of;
use warpfold_core::op::AnyState;
use warpfold_core::{DType, Error, Result};

/// What else the elements may turn out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unsettled {
    /// Whether one of them is negative: then they cannot be of u64.
    negative: bool,
    /// States of the same elements as another type, if the operations have
    /// answers over it.
    rival: Option<Rival>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rival {
    dtype: DType,
    /// Of each output, as the partial's own.
    states: Vec<Vec<AnyState>>,
}

/// What begins the part of the byte form that only unsettled numbers have.
const MAGIC: [u8; 4] = *b"OPEN";
/// In the place of the rival's type where there is none.
const NO_RIVAL: u8 = u8::MAX;

impl Partial {
    /// The states of numbers that may as well be those of `rival`: integers
    /// that are floats if another piece has a decimal; no numbers at all, which
    /// are integers if another piece has these.
    ///
    /// # Errors
    /// [`Error::StateMismatch`] if the two are not states of the same question, and
    /// for types that no text leaves open.
    #[doc(hidden)]
    pub fn unsettled(mut self, rival: Option<Partial>, negative: bool) -> Result<Partial> {
        if let Some(rival) = &rival {
            self.check_same_ops(rival)?;
            self.check_same_shape(rival)?;
        }
        let rival = rival.map(|Partial { dtype, states, .. }| Rival { dtype, states });
        let right = rival.as_ref().map(|rival| rival.dtype);
        if !is_open(self.dtype, right, negative) {
            let right = right.map_or("nothing".into(), |dtype| dtype.to_string());
            return Err(Error::StateMismatch {
                what: "element type",
                left: self.dtype.to_string(),
                right,
            });
        }
        self.unsettled = Some(Box::new(Unsettled { negative, rival }));
        Ok(self)
    }

    /// The states as those of elements of type `dtype`, if they can be.
    pub(crate) fn reading(&self, dtype: DType) -> Option<Partial> {
        let of = |states: &[Vec<AnyState>]| Partial {
            dtype,
            shape: self.shape.clone(),
            ops: self.ops.clone(),
            states: states.to_vec(),
            missing: self.missing,
            unsettled: None,
            unit: None,
        };
        if self.dtype == dtype {
            return Some(of(&self.states));
        }
        let Unsettled { negative, rival } = self.unsettled.as_deref()?;
        match rival {
            Some(rival) if rival.dtype == dtype => Some(of(&rival.states)),
            _ if dtype == DType::U64 && !negative => self.reading(DType::I64)?.unsigned().ok(),
            _ => None,
        }
    }

    /// Both put together, one of which at least is unsettled.
    pub(super) fn merged_unsettled(&self, other: &Partial) -> Result<Partial> {
        self.check_same_ops(other)?;
        self.check_same_shape(other)?;
        let both = |dtype: DType| -> Result<Option<Partial>> {
            let (Some(mut left), Some(right)) = (self.reading(dtype), other.reading(dtype)) else {
                return Ok(None);
            };
            left.merge(&right)?;
            Ok(Some(left))
        };
        let mismatch = || {
            let (left, right) = (self.type_text(), other.type_text());
            Error::StateMismatch { what: "element type", left, right }
        };
        let (mine, theirs) = match (&self.unsettled, &other.unsettled) {
            (Some(mine), Some(theirs)) => (mine, theirs),
            // What is settled decides.
            (None, _) => return both(self.dtype)?.ok_or_else(mismatch),
            (_, None) => return both(other.dtype)?.ok_or_else(mismatch),
        };
        let types = [self.dtype, other.dtype];
        let whole = if types.contains(&DType::U64) { DType::U64 } else { DType::I64 };
        let integers = both(whole)?.ok_or_else(mismatch)?;
        let (own, rival) = match both(DType::F64)? {
            // Neither side has a number.
            Some(floats) if types == [DType::F64; 2] => (floats, Some(integers)),
            floats => (integers, floats),
        };
        own.unsettled(rival, mine.negative || theirs.negative)
    }

    /// The type, for a message.
    fn type_text(&self) -> String {
        match &self.unsettled {
            Some(unsettled) if unsettled.negative => format!("{}, some negative", self.dtype),
            _ => self.dtype.to_string(),
        }
    }

    /// Writes what [`read_unsettled`](Self::read_unsettled) reads; nothing where the
    /// type is settled.
    pub(super) fn write_unsettled(&self, out: &mut Vec<u8>) {
        let Some(Unsettled { negative, rival }) = self.unsettled.as_deref() else { return };
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.push(u8::from(*negative));
        out.push(rival.as_ref().map_or(NO_RIVAL, |rival| rival.dtype.code()));
        let checksum = crc32fast::hash(&out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        for state in rival.iter().flat_map(|rival| rival.states.iter().flatten()) {
            out.extend_from_slice(&state.to_bytes());
        }
    }

    /// Reads what follows the states.
    ///
    /// # Errors
    /// [`Error::DamagedState`] for anything that was not written here.
    pub(super) fn read_unsettled(mut self, mut bytes: &[u8]) -> Result<Partial> {
        let damaged = |why: &str| Error::DamagedState { why: why.into() };
        if !bytes.starts_with(&MAGIC) {
            return Err(Error::DamagedState { why: format!("{} bytes follow it", bytes.len()) });
        }
        let cut = || damaged("it ends within what its type may be");
        let (head, rest) = bytes.split_at_checked(MAGIC.len() + 2).ok_or_else(cut)?;
        let (checksum, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        if u32::from_le_bytes(*checksum) != crc32fast::hash(head) {
            return Err(damaged("the checksum of what its type may be is wrong"));
        }
        bytes = rest;
        let contradicts = || damaged("what its type may be contradicts itself");
        let negative = match head[MAGIC.len()] {
            0 => false,
            1 => true,
            _ => return Err(contradicts()),
        };
        let rival = match head[MAGIC.len() + 1] {
            NO_RIVAL => None,
            code => Some(DType::from_code(code).ok_or_else(contradicts)?),
        };
        let outputs = outputs_of(&self.shape).ok_or_else(contradicts)?;
        if !is_open(self.dtype, rival, negative) {
            return Err(contradicts());
        }
        let rival = match rival {
            None => None,
            Some(dtype) => {
                let mut states = Vec::new();
                for own in self.states.iter().take(outputs) {
                    let mut one = Vec::new();
                    for own in own {
                        let state = AnyState::read_from(&mut bytes)?;
                        if (state.dtype(), state.kind()) != (dtype, own.kind()) {
                            return Err(damaged("a state answers another question"));
                        }
                        one.push(state);
                    }
                    states.push(one);
                }
                Some(Rival { dtype, states })
            }
        };
        if !bytes.is_empty() {
            return Err(Error::DamagedState { why: format!("{} bytes follow it", bytes.len()) });
        }
        self.unsettled = Some(Box::new(Unsettled { negative, rival }));
        Ok(self)
    }
}

/// Whether text leaves these types open: integers that may be floats, or no
/// number at all.
fn is_open(own: DType, rival: Option<DType>, negative: bool) -> bool {
    matches!(
        (own, rival, negative),
        (DType::I64, None | Some(DType::F64), _)
            | (DType::U64, None | Some(DType::F64), false)
            | (DType::F64, Some(DType::I64), false)
    )
}
