//! Groups whose states are three words, whatever their elements are: counts, and folds of bits.

use super::memory::{OutOfMemory, ask, ask_ahead, extend};
use super::table::{LEFT_OUT, Rows, Table, as_same, items};
use super::words;
use warpfold_core::op::{AnyState, Bits, Counts, Kind, Op, Rules, Run, State, Value};
use warpfold_core::{DType, Element, Result, with_element};

/// What the payload of a state has.
type Words = [u64; 3];

/// A state of three words.
trait OfWords: State {
    fn of(words: Words) -> Self;
    fn words(&self) -> Words;
}

macro_rules! of_words {
    ($state:ident, $($field:ident),*) => {
        impl<T: Element> OfWords for $state<T> {
            #[inline(always)]
            fn of(words: Words) -> Self {
                let mut state = Self::identity(Kind::$state);
                [$(state.$field),*] = words;
                state
            }

            #[inline(always)]
            fn words(&self) -> Words {
                [$(self.$field),*]
            }
        }
    };
}
of_words!(Counts, count, nonzero, nans);
of_words!(Bits, and, or, xor);

fn absorb<S: OfWords>(states: &mut [Words], rows: Rows<'_>) {
    let items = items::<S::Item>(rows.items);
    assert_eq!(rows.groups.len(), items.len());
    for (row, (&group, item)) in rows.groups.iter().zip(items).enumerate() {
        ask_ahead(states, rows.groups, row);
        let words = &mut states[group as usize];
        let mut state = S::of(*words);
        state.absorb(Run { start: 0, items: core::slice::from_ref(item), others: &[] });
        *words = state.words();
    }
}

fn merge<S: OfWords>(words: &mut Words, others: Words) -> Result<()> {
    let mut state = S::of(*words);
    state.merge(&S::of(others))?;
    *words = state.words();
    Ok(())
}

fn words_of(payload: &[u8]) -> Words {
    core::array::from_fn(|i| u64::from_le_bytes(payload.as_chunks().0[i]))
}

/// The words of each group.
#[derive(Clone)]
pub(super) struct WordTable {
    kind: Kind,
    dtype: DType,
    /// Those of a group without elements.
    none: Words,
    states: Vec<Words>,
}

impl WordTable {
    pub(super) fn new(kind: Kind, dtype: DType) -> Result<Self> {
        let none = words_of(&AnyState::identity(kind, dtype)?.payload());
        Ok(WordTable { kind, dtype, none, states: Vec::new() })
    }
}

impl Table for WordTable {
    fn states(&self) -> (Kind, DType) {
        (self.kind, self.dtype)
    }

    fn grow(&mut self, groups: usize) -> Result<(), OutOfMemory> {
        extend(&mut self.states, groups, self.none)
    }

    fn absorb(&mut self, rows: Rows<'_>) {
        with_element!(self.dtype, T => match self.kind {
            Kind::Counts => absorb::<Counts<T>>(&mut self.states, rows),
            _ => absorb::<Bits<T>>(&mut self.states, rows),
        });
    }

    fn merge(&mut self, other: &dyn Table, groups: &[u32]) -> bool {
        let Some(other) = as_same(self, other) else { return false };
        let kept = |&(_, &group): &(&Words, &u32)| group != LEFT_OUT;
        // The words do not say what elements they are of, and merge alike for all.
        let merge = if self.kind == Kind::Counts { merge::<Counts<u8>> } else { merge::<Bits<u8>> };
        other
            .states
            .iter()
            .zip(groups)
            .filter(kept)
            .all(|(&theirs, &group)| merge(&mut self.states[group as usize], theirs).is_ok())
    }

    fn scale(&mut self, _factor: u64) -> bool {
        // What is zero stays so.
        self.kind == Kind::Counts
    }

    fn ask(&self, group: u32) {
        ask(&self.states, group);
    }

    fn value(&self, op: Op, rules: &Rules, group: u32, _rows: u64) -> Result<Value> {
        let words = self.states[group as usize];
        with_element!(self.dtype, T => match self.kind {
            Kind::Counts => Counts::<T>::of(words).finish(op, rules),
            _ => Bits::<T>::of(words).finish(op, rules),
        })
    }

    fn write(&self, group: u32, out: &mut Vec<u8>) {
        words::write(out, size_of::<Words>() as u64);
        let words = self.states[group as usize].map(u64::to_le_bytes);
        out.extend_from_slice(words.as_flattened());
    }

    fn read(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        let len = words::read(bytes)?;
        let payload = words::take(bytes, len)?;
        let state = AnyState::from_payload(self.kind, self.dtype, payload)?;
        self.states[group as usize] = words_of(&state.payload());
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<Words>()
    }
}
