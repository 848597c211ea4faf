//! States over i64, as states over multiples of the elements.

use super::{AnyState, Counts, Extrema, Kind, Moments, Sums};

impl AnyState {
    /// The state over the same elements, each times `factor`: what those of a unit are in
    /// a finer one. `None` if an element, or the sum of all, does not fit then, for elements
    /// that are not i64, and for kinds of states whose answers have no such unit.
    ///
    /// # Examples
    /// ```
    /// use warpfold_core::op::{AnyState, Kind};
    /// use warpfold_core::DType;
    ///
    /// let state = AnyState::identity(Kind::Sum, DType::I64)?;
    /// assert_eq!(state.scaled(1000), Some(state));
    /// # Ok::<(), warpfold_core::Error>(())
    /// ```
    #[must_use]
    pub fn scaled(&self, factor: u64) -> Option<AnyState> {
        if let Some(wide) = self.wide() {
            return wide.scaled(factor).map(AnyState::from);
        }
        Some(match self.kind() {
            Kind::Sum | Kind::AbsSum => {
                let mut state = *self.downcast_ref::<Sums<i64>>()?;
                state.acc = state.acc.scaled(factor)?;
                state.into()
            }
            Kind::Moments => {
                let mut state = *self.downcast_ref::<Moments<i64>>()?;
                state.sum = state.sum.scaled(factor)?;
                state.squares = state.squares.scaled(factor)?.scaled(factor)?;
                state.into()
            }
            Kind::Extrema | Kind::ArgExtrema => {
                self.downcast_ref::<Extrema<i64>>()?.scaled(factor)?.into()
            }
            // What is zero stays so.
            Kind::Counts => (*self.downcast_ref::<Counts<i64>>()?).into(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Run, State};
    use crate::{DType, with_state};

    fn state_of(kind: Kind, items: &[i64]) -> AnyState {
        fn absorbed<S: State>(kind: Kind, items: &[S::Item]) -> AnyState {
            let mut state = S::identity(kind);
            state.absorb(Run { start: 3, items, others: &[] });
            state.skip(3 + items.len() as u64, 2);
            AnyState::from(state)
        }
        with_state!(kind, DType::I64,
            S => absorbed::<S>(kind, bytemuck::cast_slice(items)),
            else => panic!("integers have this state"))
    }

    #[test]
    fn states_of_multiples_are_multiples_of_states() {
        let kinds =
            [Kind::Sum, Kind::AbsSum, Kind::Moments, Kind::Extrema, Kind::ArgExtrema, Kind::Counts];
        let day = 86_400_000_000_000;
        for kind in kinds {
            for (items, factor) in [
                (&[][..], 1000),
                (&[0, -1, 7, 7], 1_000_000_000),
                (&[i64::MAX / 1000, i64::MIN / 1000, 5], 1000),
                (&[19_000, -3, 0], day),
                (&[-1; 40], day),
            ] {
                let multiples: Vec<i64> = items.iter().map(|x| x * factor as i64).collect();
                let scaled = state_of(kind, items).scaled(factor).unwrap();
                let expected = state_of(kind, &multiples);
                assert_eq!(scaled.to_bytes(), expected.to_bytes(), "{kind:?} of {items:?}");
            }
        }
        for kind in [Kind::Extrema, Kind::ArgExtrema] {
            assert!(state_of(kind, &[1, i64::MAX / 1000 + 1]).scaled(1000).is_none());
            assert!(state_of(kind, &[1, i64::MIN / 1000 - 1]).scaled(1000).is_none());
        }
        assert!(state_of(Kind::Prod, &[2]).scaled(10).is_none());
        assert!(AnyState::identity(Kind::Sum, DType::F64).unwrap().scaled(10).is_none());
    }
}
