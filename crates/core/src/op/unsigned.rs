//! States over i64, as states over u64.

use super::{AnyState, Kind};
use crate::DType;
use crate::element::Key;
use crate::error::{Error, Result};

impl AnyState {
    /// The state over u64 of the same elements, given a state over i64 none of
    /// whose elements is negative.
    ///
    /// A reader that takes numbers for i64, and meets one that only u64 holds,
    /// goes on with this.
    ///
    /// # Errors
    /// [`StateMismatch`](Error::StateMismatch) if the elements are not i64;
    /// [`DamagedState`](Error::DamagedState) if the state shows that one of
    /// them is negative. Not every state shows it.
    ///
    /// # Examples
    /// ```
    /// use warpfold_core::op::{AnyState, Kind};
    /// use warpfold_core::DType;
    ///
    /// let state = AnyState::identity(Kind::Sum, DType::I64)?.unsigned()?;
    /// assert_eq!(state.dtype(), DType::U64);
    /// # Ok::<(), warpfold_core::Error>(())
    /// ```
    pub fn unsigned(&self) -> Result<AnyState> {
        if self.dtype() != DType::I64 || self.is_wide() {
            return Err(Error::StateMismatch {
                what: "element type",
                left: DType::I64.to_string(),
                right: self.dtype().to_string(),
            });
        }
        let mut payload = self.payload();
        // Both types keep the same words: limbs, counts, positions, and keys that
        // are the elements themselves. Only the keys that stand for no element
        // are those of the type.
        let extremes = matches!(self.kind(), Kind::Extrema | Kind::ArgExtrema);
        if extremes && payload.starts_with(&[0; 8]) {
            payload[16..24].copy_from_slice(&<u64 as Key>::GREATEST.to_le_bytes());
            payload[24..32].copy_from_slice(&<u64 as Key>::LEAST.to_le_bytes());
        }
        AnyState::from_payload(self.kind(), DType::U64, &payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Op, RawRun, Rules, Run, State};
    use crate::with_state;

    fn state_of(kind: Kind, dtype: DType, start: u64, words: &[u64]) -> AnyState {
        let raw = RawRun {
            start,
            items: bytemuck::cast_slice(words),
            others: if kind == Kind::Dot { bytemuck::cast_slice(words) } else { &[] },
        };
        fn absorbed<S: State>(kind: Kind, run: Run<'_, S::Item>) -> AnyState {
            let mut state = S::identity(kind);
            state.absorb(run);
            state.skip(run.start + run.items.len() as u64, 2);
            AnyState::from(state)
        }
        with_state!(kind, dtype,
            S => absorbed::<S>(kind, raw.typed().unwrap()),
            else => panic!("integers have this state"))
    }

    #[test]
    fn every_kind_over_i64_is_the_one_over_u64() {
        for kind in Kind::ALL {
            if AnyState::identity(kind, DType::I64).is_err() {
                continue;
            }
            let top = i64::MAX as u64;
            for words in [&[][..], &[0], &[7, 3, 3, 0, 12], &[top, 1, top, 2], &[top; 40]] {
                let signed = state_of(kind, DType::I64, 5, words);
                let unsigned = state_of(kind, DType::U64, 5, words);
                let got = signed.unsigned().unwrap();
                assert_eq!(got.to_bytes(), unsigned.to_bytes(), "{kind:?} of {words:?}");
                // And it goes on as one.
                let mut merged = got;
                merged.merge(&state_of(kind, DType::U64, 99, &[u64::MAX])).unwrap();
                for op in Op::ALL {
                    let rules = Rules::default();
                    let mut expected = unsigned.clone();
                    expected.merge(&state_of(kind, DType::U64, 99, &[u64::MAX])).unwrap();
                    assert_eq!(merged.finish(op, &rules), expected.finish(op, &rules), "{op}");
                }
            }
        }
    }

    #[test]
    fn negative_elements_are_refused_where_they_show() {
        for kind in [Kind::Sum, Kind::Moments, Kind::Prod] {
            let state = state_of(kind, DType::I64, 0, &[-3i64 as u64]);
            assert!(state.unsigned().is_err(), "{kind:?}");
        }
        let floats = AnyState::identity(Kind::Sum, DType::F64).unwrap();
        assert!(matches!(floats.unsigned(), Err(Error::StateMismatch { .. })));
    }
}
