//! Smallest and largest elements of groups, and where they are.

use super::memory::{OutOfMemory, ask, ask_ahead, extend};
use super::table::{LEFT_OUT, Rows, Table, as_same, items};
use super::words::{self, damaged};
use warpfold_core::element::Key;
use warpfold_core::op::{Extrema, Kind, Op, Rules, State, Summary, Value};
use warpfold_core::{DType, Element, Result};

/// The sentinel for no position.
const NOWHERE: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Ends<K> {
    min: K,
    max: K,
    count: u64,
    nans: u64,
}

/// Where they are.
#[derive(Clone, Copy)]
struct Places {
    min: u64,
    max: u64,
    first_nan: u64,
}

/// Extrema; with positions if `AT`.
#[derive(Clone)]
pub(super) struct ExtremaTable<T: Element, const AT: bool> {
    ends: Vec<Ends<T::Key>>,
    /// Empty without positions.
    places: Vec<Places>,
}

impl<T: Element, const AT: bool> ExtremaTable<T, AT> {
    const KIND: Kind = if AT { Kind::ArgExtrema } else { Kind::Extrema };

    pub(super) fn new() -> Self {
        ExtremaTable { ends: Vec::new(), places: Vec::new() }
    }

    /// Of equal elements the one at the smaller position wins; -0 equals +0.
    #[inline(always)]
    fn lower(&mut self, group: usize, key: T::Key, at: u64) {
        let ends = &mut self.ends[group];
        if AT {
            let (place, [new, old]) =
                (&mut self.places[group].min, [T::numeric(key), T::numeric(ends.min)]);
            if new < old || new == old && at < *place {
                *place = at;
            }
        }
        ends.min = ends.min.min(key);
    }

    #[inline(always)]
    fn raise(&mut self, group: usize, key: T::Key, at: u64) {
        let ends = &mut self.ends[group];
        if AT {
            let (place, [new, old]) =
                (&mut self.places[group].max, [T::numeric(key), T::numeric(ends.max)]);
            if new > old || new == old && at < *place {
                *place = at;
            }
        }
        ends.max = ends.max.max(key);
    }

    fn see_nans(&mut self, group: usize, nans: u64, first: u64) {
        let ends = &mut self.ends[group];
        ends.nans = ends.nans.saturating_add(nans);
        if AT {
            let places = &mut self.places[group];
            places.first_nan = places.first_nan.min(first);
        }
    }

    fn state(&self, group: u32) -> Extrema<T> {
        let Ends { min, max, count, nans } = self.ends[group as usize];
        let places = self.places.get(group as usize).copied();
        let Places { min: at_min, max: at_max, first_nan } =
            places.unwrap_or(Places { min: NOWHERE, max: NOWHERE, first_nan: NOWHERE });
        let mut state = Extrema::identity(Self::KIND);
        let some = count > nans;
        state.absorb_summary(Summary {
            // Which positions are held is known of all groups together.
            start: 0,
            count,
            nans,
            first_nan: (first_nan != NOWHERE).then_some(first_nan),
            min: some.then_some((min, at_min)),
            max: some.then_some((max, at_max)),
        });
        state
    }
}

impl<T: Element, const AT: bool> Table for ExtremaTable<T, AT> {
    fn states(&self) -> (Kind, DType) {
        (Self::KIND, T::DTYPE)
    }

    fn grow(&mut self, groups: usize) -> Result<(), OutOfMemory> {
        let none = Ends { min: T::Key::GREATEST, max: T::Key::LEAST, count: 0, nans: 0 };
        let nowhere = Places { min: NOWHERE, max: NOWHERE, first_nan: NOWHERE };
        extend(&mut self.ends, groups, none)?;
        if AT { extend(&mut self.places, groups, nowhere) } else { Ok(()) }
    }

    fn absorb(&mut self, rows: Rows<'_>) {
        let items = items::<T>(rows.items);
        assert_eq!(rows.groups.len(), items.len());
        for (row, (&group, &x)) in rows.groups.iter().zip(items).enumerate() {
            ask_ahead(&self.ends, rows.groups, row);
            if AT {
                ask_ahead(&self.places, rows.groups, row);
            }
            let group = group as usize;
            let at = if AT { rows.positions.get(row) } else { 0 };
            let ends = &mut self.ends[group];
            ends.count = ends.count.saturating_add(1);
            if T::DTYPE.is_float() && x.is_nan() {
                self.see_nans(group, 1, at);
            } else {
                let key = x.key();
                self.lower(group, key, at);
                self.raise(group, key, at);
            }
        }
    }

    fn merge(&mut self, other: &dyn Table, groups: &[u32]) -> bool {
        let Some(other) = as_same(self, other) else { return false };
        for (from, (theirs, &group)) in other.ends.iter().zip(groups).enumerate() {
            if group == LEFT_OUT {
                continue;
            }
            let group = group as usize;
            let places = other.places.get(from).copied();
            let Places { min, max, first_nan } =
                places.unwrap_or(Places { min: 0, max: 0, first_nan: 0 });
            self.ends[group].count = self.ends[group].count.saturating_add(theirs.count);
            if theirs.nans > 0 {
                self.see_nans(group, theirs.nans, first_nan);
            }
            if theirs.count > theirs.nans {
                self.lower(group, theirs.min, min);
                self.raise(group, theirs.max, max);
            }
        }
        true
    }

    fn scale(&mut self, factor: u64) -> bool {
        let (Ok(factor), true) = (i64::try_from(factor), const { matches!(T::DTYPE, DType::I64) })
        else {
            return false;
        };
        let scaled = |key: T::Key| key.to_bits64().cast_signed().checked_mul(factor);
        let fits = |ends: &Ends<T::Key>| scaled(ends.min).is_some() && scaled(ends.max).is_some();
        if !self.ends.iter().all(|ends| ends.count == 0 || fits(ends)) {
            return false;
        }
        for ends in self.ends.iter_mut().filter(|ends| ends.count > 0) {
            for end in [&mut ends.min, &mut ends.max] {
                let bits = scaled(*end).unwrap_or_default();
                *end = T::Key::from_bits64(bits.cast_unsigned());
            }
        }
        true
    }

    fn ask(&self, group: u32) {
        ask(&self.ends, group);
        if AT {
            ask(&self.places, group);
        }
    }

    fn value(&self, op: Op, rules: &Rules, group: u32, _rows: u64) -> Result<Value> {
        self.state(group).finish(op, rules)
    }

    fn write(&self, group: u32, out: &mut Vec<u8>) {
        let Ends { min, max, count, nans } = self.ends[group as usize];
        let mut put = |some: &[u64]| some.iter().for_each(|&word| words::write(out, word));
        put(&[count, nans]);
        if count > nans {
            put(&[min.to_bits64(), max.to_bits64()]);
        }
        if let Some(places) = self.places.get(group as usize) {
            let (from, to) = (if count > nans { 0 } else { 2 }, if nans > 0 { 3 } else { 2 });
            put(&[places.min, places.max, places.first_nan][from..to]);
        }
    }

    fn read(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        let (count, nans) = (words::read(bytes)?, words::read(bytes)?);
        if nans > count || nans > 0 && !T::DTYPE.is_float() {
            return Err(damaged("its counts contradict each other"));
        }
        let ends = &mut self.ends[group as usize];
        (ends.count, ends.nans) = (count, nans);
        if count > nans {
            let bits = [words::read(bytes)?, words::read(bytes)?];
            let (min, max) = (T::Key::from_bits64(bits[0]), T::Key::from_bits64(bits[1]));
            let (least, greatest) = T::key_range();
            let whole = [min.to_bits64(), max.to_bits64()] == bits;
            if !whole || min < least || min > max || max > greatest {
                return Err(damaged("its extremes contradict its counts"));
            }
            (ends.min, ends.max) = (min, max);
        }
        if AT {
            let places = &mut self.places[group as usize];
            if count > nans {
                (places.min, places.max) = (words::read(bytes)?, words::read(bytes)?);
                let equal = ends.min == ends.max;
                if places.min == NOWHERE
                    || places.max == NOWHERE
                    || equal && places.min != places.max
                {
                    return Err(damaged("its positions contradict its extremes"));
                }
            }
            if nans > 0 {
                places.first_nan = words::read(bytes)?;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.ends.capacity() * size_of::<Ends<T::Key>>()
            + self.places.capacity() * size_of::<Places>()
    }
}
