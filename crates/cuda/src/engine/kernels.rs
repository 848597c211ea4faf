//! Which kernel does what, and what it leaves in memory.

use crate::{Error, Result};
use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind};

/// A kernel of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Program {
    /// Leaves the payload of a state.
    State(Kind, DType),
    /// Copies elements of so many bytes.
    Gather(usize),
    /// Makes numbers of payloads.
    Finish(DType),
    /// Makes numbers of short rows.
    ShortRows(Tally, DType),
}

/// What kernels make numbers of without a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Tally {
    /// Totals and means, also of absolute values.
    Sums,
    /// The smallest or the largest element.
    Extremes,
    /// How many elements are not zero, or NaN.
    Counts,
}

impl Tally {
    /// What the states of a kind are for.
    pub(super) fn of(kind: Kind) -> Tally {
        match kind {
            Kind::Extrema => Tally::Extremes,
            Kind::Counts => Tally::Counts,
            _ => Tally::Sums,
        }
    }

    /// The name of its kernels, which for counts are told by the size of
    /// integers alone.
    fn name(self, dtype: DType) -> String {
        match self {
            Tally::Sums => format!("sums_{dtype}"),
            Tally::Extremes => format!("extremes_{dtype}"),
            Tally::Counts if dtype.is_float() => format!("counts_{dtype}"),
            Tally::Counts => format!("counts_u{}", 8 * dtype.size()),
        }
    }
}

impl Program {
    /// The name of the kernel, and of its module.
    ///
    /// # Errors
    /// [`Error::NoKernel`].
    pub(super) fn name(self) -> Result<String> {
        match self {
            Program::State(kind, dtype) => name(kind, dtype).ok_or(Error::NoKernel { kind, dtype }),
            Program::Gather(size) => Ok(format!("gather_u{}", 8 * size)),
            Program::Finish(dtype) => Ok(format!("finish_{dtype}")),
            Program::ShortRows(tally, dtype) => Ok(format!("row_{}", tally.name(dtype))),
        }
    }
}

/// The name of the kernel that leaves a state.
pub(super) fn name(kind: Kind, dtype: DType) -> Option<String> {
    let stem = match kind {
        Kind::Sum => "sum",
        Kind::AbsSum => "abs_sum",
        Kind::Extrema => "extrema",
        Kind::Counts => "counts",
        Kind::Bits if !dtype.is_float() => "bits",
        _ => return None,
    };
    Some(format!("{stem}_{dtype}"))
}

/// The bytes of the payload that a kernel leaves.
pub(super) fn payload_len(kind: Kind, dtype: DType) -> Option<usize> {
    name(kind, dtype)?;
    AnyState::identity(kind, dtype).ok().map(|state| state.payload().len())
}

/// The state of a payload that a kernel left.
pub(super) fn state(kind: Kind, dtype: DType, payload: &[u8]) -> Result<AnyState> {
    AnyState::from_payload(kind, dtype, payload).map_err(|why| Error::State {
        kind,
        dtype,
        why: why.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::archive;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn whatever_has_a_name_is_in_the_archive() {
        let states = Kind::ALL
            .into_iter()
            .flat_map(|kind| DType::ALL.into_iter().map(move |dtype| Program::State(kind, dtype)));
        let gathers = [1, 2, 4, 8].map(Program::Gather);
        let finishes = DType::ALL.map(Program::Finish);
        let tallies = [Tally::Sums, Tally::Extremes, Tally::Counts];
        let rows = tallies.into_iter().flat_map(|tally| {
            DType::ALL.into_iter().map(move |dtype| Program::ShortRows(tally, dtype))
        });
        let mut found = HashSet::new();
        for program in states.chain(gathers).chain(finishes).chain(rows) {
            if let Ok(name) = program.name() {
                for capability in [(7, 5), (9, 0)] {
                    assert!(archive::module(&name, capability).is_some(), "{name}");
                    found.insert((name.clone(), capability));
                }
            }
            if let Program::State(kind, dtype) = program {
                let len = payload_len(kind, dtype);
                assert_eq!(len.is_some(), program.name().is_ok());
                assert!(len.is_none_or(|n| n > 0 && n % 8 == 0));
            }
        }
        assert_eq!(found.len(), archive::size().0, "modules that nothing names");
    }
}
