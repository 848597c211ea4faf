//! What all tables of groups' states have in common.

use super::counts::WordTable;
use super::extrema::ExtremaTable;
use super::memory::{AHEAD, OutOfMemory};
use super::states::StateTable;
use super::sums::{MomentTable, ProductTable, SumTable};
use core::any::Any;
use warpfold_core::op::{Kind, Numbers, Op, Rules, Value};
use warpfold_core::{DType, Element, Result, fpenv, with_element};

/// The positions of rows in the whole array.
#[derive(Clone, Copy, Debug)]
pub enum Positions<'a> {
    /// One after the other, from this one on.
    From(u64),
    /// One for each row, ascending.
    At(&'a [u64]),
}

impl Positions<'_> {
    /// The position of row `row`.
    #[inline(always)]
    pub(super) fn get(self, row: usize) -> u64 {
        match self {
            Positions::From(first) => first.wrapping_add(row as u64),
            Positions::At(positions) => positions[row],
        }
    }
}

/// Stands for the group of what is left out.
pub const LEFT_OUT: u32 = u32::MAX;

/// Rows that a table takes in.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The group of each row, one that the table has room for.
    pub groups: &'a [u32],
    /// The rows' elements, as bytes that are aligned for their type.
    pub items: &'a [u8],
    /// The second array's, for `dot`; else empty.
    pub others: &'a [u8],
    /// Where the rows are.
    pub positions: Positions<'a>,
}

/// The answers to an operation, group by group.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// The answers; of a group without one, zero.
    pub first: Option<Numbers>,
    /// The second numbers of operations that answer two.
    pub second: Option<Numbers>,
    /// The places of groups that have no answer: no smallest of no elements.
    pub missing: Vec<usize>,
}

/// Copies the elements at these places, each of so many bytes, one after the other.
///
/// # Panics
/// If there is no such element; if the bytes are not aligned for elements.
pub fn pick(items: &[u8], size: usize, places: impl Iterator<Item = usize>, to: &mut [u8]) {
    macro_rules! of {
        ($word:ty) => {{
            let (from, to) = (bytemuck::cast_slice(items), bytemuck::cast_slice_mut(to));
            places.zip(to).for_each(|(place, to): (_, &mut $word)| *to = from[place]);
        }};
    }
    match size {
        1 => of!(u8),
        2 => of!(u16),
        4 => of!(u32),
        _ => of!(u64),
    }
}

impl Finished {
    /// The answers of all groups in another order.
    #[must_use]
    pub fn in_order(self, groups: &[u32]) -> Finished {
        let moved = |numbers: Numbers| {
            let (dtype, size) = (numbers.dtype(), numbers.dtype().size());
            let mut moved = Numbers::zeros(dtype, groups.len());
            let places = groups.iter().map(|&group| group as usize);
            pick(numbers.bytes(), size, places, moved.bytes_mut());
            moved
        };
        let missing = match self.missing.is_empty() {
            true => Vec::new(),
            false => {
                let mut lacks = vec![false; groups.len()];
                self.missing.iter().for_each(|&group| lacks[group] = true);
                (0..groups.len()).filter(|&place| lacks[groups[place] as usize]).collect()
            }
        };
        Finished { first: self.first.map(moved), second: self.second.map(moved), missing }
    }
}

/// The states of all groups, of one kind over elements of one type.
pub trait Table: Duplicate + Any + Send + Sync {
    /// What states it has: their kind, and the type of their elements.
    fn states(&self) -> (Kind, DType);
    /// Makes room for so many groups; new ones hold no element.
    ///
    /// # Errors
    /// No memory.
    fn grow(&mut self, groups: usize) -> Result<(), OutOfMemory>;
    /// Takes in rows.
    ///
    /// # Panics
    /// If there are not as many elements as rows, if they are not aligned, or for a
    /// group that there is no room for.
    fn absorb(&mut self, rows: Rows<'_>);
    /// Takes in another table of the same kind and type: its group `g` is this one's
    /// `groups[g]`, or is left out where that is [`LEFT_OUT`]. `false` for another kind or type;
    /// nothing is changed then.
    fn merge(&mut self, other: &dyn Table, groups: &[u32]) -> bool;
    /// Makes of each state that of the same elements, each times `factor`: what those of a
    /// unit are in a finer one. `false` if they do not fit, and for tables that know no such
    /// multiples; nothing is changed then.
    fn scale(&mut self, _factor: u64) -> bool {
        false
    }
    /// The value of `op` of a group, where the whole array has so many rows.
    ///
    /// # Errors
    /// Those of [`State::finish`](warpfold_core::op::State::finish).
    fn value(&self, op: Op, rules: &Rules, group: u32, rows: u64) -> Result<Value>;
    /// Asks for the state of a group in memory, before its turn comes.
    fn ask(&self, _group: u32) {}
    /// Appends the state of a group, canonical: of equal elements equal bytes.
    fn write(&self, group: u32, out: &mut Vec<u8>);
    /// Reads what [`write`](Self::write) wrote off the front of `bytes`, for a group that
    /// holds no element.
    ///
    /// # Errors
    /// [`DamagedState`](warpfold_core::Error::DamagedState) for anything else.
    fn read(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()>;
    /// The memory that it takes.
    fn bytes(&self) -> usize;
}

/// A copy of a table.
pub trait Duplicate {
    /// One.
    fn duplicate(&self) -> Box<dyn Table>;
}

impl<T: Table + Clone> Duplicate for T {
    fn duplicate(&self) -> Box<dyn Table> {
        Box::new(self.clone())
    }
}

/// A table as what it is, if it has the kind and the type of elements of this one.
pub(super) fn as_same<'a, T: Table>(this: &T, other: &'a dyn Table) -> Option<&'a T> {
    let any: &dyn Any = other;
    any.downcast_ref().filter(|_| other.states() == this.states())
}

/// A table without groups.
///
/// # Errors
/// [`DamagedState`](warpfold_core::Error::DamagedState) for a kind that no operation
/// needs over this type.
pub fn new_table(kind: Kind, dtype: DType) -> Result<Box<dyn Table>> {
    if !kind.supports(dtype) {
        return Err(kind.no_state_of(dtype));
    }
    Ok(with_element!(dtype, T => match kind {
        Kind::Sum | Kind::AbsSum => Box::new(SumTable::<T>::new(kind)),
        Kind::SquareSum | Kind::Dot => Box::new(ProductTable::<T>::new(kind)),
        Kind::Moments => Box::new(MomentTable::<T>::new()),
        Kind::Extrema => Box::new(ExtremaTable::<T, false>::new()),
        Kind::ArgExtrema => Box::new(ExtremaTable::<T, true>::new()),
        Kind::Counts | Kind::Bits => Box::new(WordTable::new(kind, dtype)?),
        Kind::Prod | Kind::LogSumExp => Box::new(StateTable::new(kind, dtype)?),
    }))
}

/// The elements that bytes hold.
///
/// # Panics
/// If they are not aligned, or not a whole number of elements.
#[inline]
pub(super) fn items<T: Element>(bytes: &[u8]) -> &[T] {
    // An empty slice may have any address; a cast would ask for alignment.
    if bytes.is_empty() { &[] } else { bytemuck::cast_slice(bytes) }
}

impl dyn Table {
    /// The kind.
    pub fn kind(&self) -> Kind {
        self.states().0
    }

    /// The answers to `op` of these groups, in this order.
    ///
    /// # Errors
    /// Those of [`value`](Table::value) but for [`Empty`](warpfold_core::Error::Empty), with
    /// the place of the group that has them.
    pub fn finish(
        &self,
        op: Op,
        rules: &Rules,
        groups: &[u32],
        rows: u64,
    ) -> Result<Finished, (usize, warpfold_core::Error)> {
        let (dtype, count) = (self.states().1, groups.len());
        fpenv::usual(|| {
            let mut finished = Finished::default();
            for (place, &group) in groups.iter().enumerate() {
                groups.get(place + AHEAD).into_iter().for_each(|&later| self.ask(later));
                let value = match self.value(op, rules, group, rows) {
                    Ok(value) => value,
                    Err(warpfold_core::Error::Empty { .. }) => {
                        finished.missing.push(place);
                        continue;
                    }
                    Err(error) => return Err((place, error)),
                };
                let put = |numbers: &mut Option<Numbers>, scalar: warpfold_core::Scalar| {
                    let dtype = scalar.dtype();
                    let numbers = numbers.get_or_insert_with(|| Numbers::zeros(dtype, count));
                    Numbers::set_bits(numbers.bytes_mut(), dtype, place, scalar.to_bits());
                };
                put(&mut finished.first, value.first());
                if let Some(second) = value.second() {
                    put(&mut finished.second, second);
                }
            }
            let out = rules.out.unwrap_or(op.answer_type(dtype));
            let zeros = || Numbers::zeros(out, count);
            finished.first.get_or_insert_with(zeros);
            if op.pair().is_some() {
                finished.second.get_or_insert_with(zeros);
            }
            Ok(finished)
        })
    }
}
