//! The question: operations, keys, order.

use super::answer::Grouped;
use super::column::Column;
use super::keys::{Items, Keys};
use super::partial::{GroupPartial, Question};
use super::partition::Parted;
use super::shared::SharedGroups;
use crate::array::Array;
use crate::device::Device;
use crate::initial;
use crate::reduction::Reduction;
use core::fmt;
use warpfold_core::layout::Input;
use warpfold_core::op::Op;
use warpfold_core::{DType, Error, Result, fpenv};
use warpfold_cpu::Threads;
use warpfold_threads::Pieces;

/// The order of the groups in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// By their keys: numbers by value, NaN after all others; texts that are whole
    /// numbers by value, and then the others by their bytes; no key last.
    #[default]
    Key,
    /// By their first rows.
    FirstOccurrence,
}

impl Order {
    /// Its name on the command line: `key` or `first`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Order::Key => "key",
            Order::FirstOccurrence => "first",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A [`Reduction`] of the rows of each group: see [`Reduction::by`].
#[derive(Clone, Debug)]
pub struct GroupBy<'a> {
    pub(super) reduction: Reduction,
    pub(super) keys: Keys<'a>,
    pub(super) order: Order,
    pub(super) omit: bool,
}

impl Reduction {
    /// Reduces the rows of each group: those with the same key.
    ///
    /// Keys are slices of integers, truth values, floats or texts, [`Input`]s with missing
    /// rows, tuples of these, or [`Keys`]. All operations, types and rules are those of a
    /// reduction of the group's rows alone, bit for bit, whatever the order of the rows.
    /// Positions are row numbers of the whole array. Products of floats, which depend on
    /// positions, are those of the whole array with the other groups' rows missing.
    ///
    /// ```
    /// use warpfold::{Op, Reduction};
    ///
    /// let year = [2024, 2023, 2024, 2023];
    /// let price = [1e16, 0.5, 1.0, 0.25];
    /// let answer = Reduction::new([Op::Mean, Op::ArgMin]).by(&year).run(&price)?;
    /// assert_eq!(answer.keys()[0].slice::<i32>(), Some(&[2023, 2024][..]));
    /// assert_eq!(answer.slice::<f64>(Op::Mean), Some(&[0.375, 5000000000000000.5][..]));
    /// assert_eq!(answer.slice::<u64>(Op::ArgMin), Some(&[3, 2][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn by<'a>(&self, keys: impl Into<Keys<'a>>) -> GroupBy<'a> {
        GroupBy { reduction: self.clone(), keys: keys.into(), order: Order::Key, omit: false }
    }
}

/// Rows that a thread takes at once.
const PIECE: usize = 1 << 16;

impl<'a> GroupBy<'a> {
    /// The order of the groups.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Whether rows without a key are left out; without a call they are a group of their
    /// own. Of several columns, a row lacks its key if one of them is missing.
    ///
    /// ```
    /// use warpfold::{Op, Reduction};
    ///
    /// let by = Reduction::of(Op::Sum).by(&[Some("a"), None, Some("a")]);
    /// assert_eq!(by.run(&[1, 2, 4])?.slice::<i64>(Op::Sum), Some(&[5, 2][..]));
    /// let by = by.omit_missing(true);
    /// assert_eq!(by.run(&[1, 2, 4])?.slice::<i64>(Op::Sum), Some(&[5][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn omit_missing(mut self, omit: bool) -> Self {
        self.omit = omit;
        self
    }

    /// Reduces a column: a value for each key. Rows without a value are left out, and
    /// count as positions.
    ///
    /// # Errors
    /// Columns of different lengths; arrays of more than one axis; keys that are not
    /// dense; operations that the type does not have, or [`Op::Dot`]; an
    /// [initial](Reduction::initial) value, which groups do not take; of a group, as
    /// [`Error::InGroup`]: integer totals that do not fit, NaNs under
    /// [`NanPolicy::Error`](crate::NanPolicy::Error). Of a group without values `min` and
    /// its kin have no answer, which is no error. Keys in the host's memory and values in a
    /// device's, or the other way round.
    ///
    /// # Devices
    /// Columns in the memory of a device are reduced there, and those in the host's memory
    /// are sent to a device that is [named](Reduction::device). Kernels answer by
    /// columns of integer keys, the ranges of which together have at most 64 bits, in the order
    /// of the keys, where every row has a key and a value: all operations but products, ranges
    /// and, of integers, sums of squares and norms of these, with any `ddof`; of
    /// [dense](Keys::dense) keys sums, means, norm1, extremes and counts. The CPU answers the
    /// rest, of a copy, with the same bits; so it does where a group has no answer, to say why.
    pub fn run<'v>(&self, values: impl Into<Array<'v>>) -> Result<Grouped> {
        self.run_arrays(vec![values.into()])
    }

    /// The same, compiled once for all arrays.
    fn run_arrays(&self, values: Vec<Array<'_>>) -> Result<Grouped> {
        self.reduction.until.check()?;
        fpenv::usual(|| self.answer_anywhere(values))
    }

    /// Reduces two columns: [`Op::Dot`].
    ///
    /// # Errors
    /// As for [`run`](Self::run); columns of different types, operations on one array.
    pub fn run_pair<'v>(
        &self,
        left: impl Into<Array<'v>>,
        right: impl Into<Array<'v>>,
    ) -> Result<Grouped> {
        self.run_arrays(vec![left.into(), right.into()])
    }

    /// The answers of the CPU.
    pub(super) fn answer(&self, inputs: &[Input<'_>]) -> Result<Grouped> {
        match self.parted(inputs)? {
            Some(answer) => Ok(answer),
            None => self.finish(&self.states(inputs, 0)?),
        }
    }

    /// The answers by way of parts, where there are many groups of one column of numbers.
    fn parted(&self, inputs: &[Input<'_>]) -> Result<Option<Grouped>> {
        let [column] = &self.keys.columns[..] else { return Ok(None) };
        let Items::Numbers(keys) = &column.items else { return Ok(None) };
        let unit = column.unit.as_ref();
        let gaps = inputs.iter().chain([keys]).any(|input| input.missing() > 0);
        if gaps || self.keys.dense.is_some() || self.order != Order::Key {
            return Ok(None);
        }
        // Whatever is wrong is told by the way that takes all questions.
        let Ok(columns) = self.columns(inputs) else { return Ok(None) };
        let (keys, threads) = (Column::new(keys)?, self.reduction.thread_count());
        let dtype = columns[0].dtype();
        self.reduction.check(dtype, inputs.len())?;
        let empty = self.empty(&[(String::new(), dtype)])?;
        let (question, rules) = (&empty.question, self.reduction.rules());
        let threads = Threads::Exactly(threads);
        let until = &self.reduction.until;
        Parted { keys, unit, values: &columns, question, rules, threads, until }.run()
    }

    /// The columns of values: as many rows as keys, of one type.
    fn columns<'i>(&self, inputs: &'i [Input<'_>]) -> Result<Vec<Column<'i>>> {
        let rows = self.keys.rows()?;
        let columns = inputs.iter().map(Column::new).collect::<Result<Vec<_>>>()?;
        for column in &columns {
            if column.rows() != rows {
                return Err(Error::ShapeMismatch { left: vec![rows], right: vec![column.rows()] });
            }
            if column.dtype() != columns[0].dtype() {
                let (left, right) = (columns[0].dtype(), column.dtype());
                return Err(Error::DTypeMismatch { left, right });
            }
        }
        Ok(columns)
    }

    fn finish(&self, partial: &GroupPartial) -> Result<Grouped> {
        let threads = Threads::Exactly(self.reduction.thread_count());
        partial.finish_column(0, self.reduction.rules(), threads)
    }

    /// The unfinished states of rows that are a piece of a larger array, and begin at
    /// row `start` of it.
    ///
    /// # Errors
    /// As for [`run`](Self::run), but for those of finishing; [`Error::StartTooLarge`].
    pub fn partial<'v>(&self, values: impl Into<Input<'v>>, start: u64) -> Result<GroupPartial> {
        self.partial_of(&[values.into()], start)
    }

    fn partial_of(&self, values: &[Input<'_>], start: u64) -> Result<GroupPartial> {
        fpenv::usual(|| self.states(values, start))
    }

    /// The same of two columns.
    ///
    /// # Errors
    /// As for [`run_pair`](Self::run_pair), but for those of finishing.
    pub fn partial_pair<'v>(
        &self,
        left: impl Into<Input<'v>>,
        right: impl Into<Input<'v>>,
        start: u64,
    ) -> Result<GroupPartial> {
        self.partial_of(&[left.into(), right.into()], start)
    }

    /// The question of no rows, of columns of values with names and types.
    ///
    /// # Errors
    /// Operations that a type does not have.
    #[doc(hidden)]
    pub fn empty(&self, values: &[(String, DType)]) -> Result<GroupPartial> {
        initial::of_no_groups(&self.reduction)?;
        if !matches!(self.reduction.named_device(), Device::Auto | Device::Cpu) {
            return Err(Error::Device {
                what: format!("device {} makes no states of groups", self.reduction.named_device()),
                hint: "use --device cpu: the answers are the same bits everywhere".into(),
            });
        }
        let arrays = self.reduction.ops().iter().map(|op| op.arity()).max().unwrap_or(1);
        for (_, dtype) in values {
            self.reduction.check(*dtype, arrays)?;
        }
        let most = 1 << 16;
        let given = self.reduction.ops().len();
        if given == 0 || given > most {
            return Err(Error::Operations { given, most });
        }
        let (kinds, ops) = self.reduction.kinds();
        let question = Question { ops, kinds, order: self.order, omit: self.omit };
        let types = self.keys.columns.iter().map(|column| column.key_type());
        let types = types.collect::<Result<Vec<_>>>()?;
        let mut empty = GroupPartial::new(question, &types, self.keys.dense, values)?;
        empty.groups.set_units(self.keys.columns.iter().map(|column| column.unit.clone()));
        Ok(empty)
    }

    fn states(&self, inputs: &[Input<'_>], start: u64) -> Result<GroupPartial> {
        let (rows, columns) = (self.keys.rows()?, self.columns(inputs)?);
        if start.checked_add(rows as u64).is_none() {
            return Err(Error::StartTooLarge { start, len: rows });
        }
        let dtype = columns[0].dtype();
        self.reduction.check(dtype, inputs.len())?;
        let named = [(String::new(), dtype)];
        let pieces = Pieces::new(rows.div_ceil(PIECE));
        let threads = Threads::Exactly(self.reduction.thread_count());
        let shared = SharedGroups::new(self.empty(&named)?);
        let parts = threads.run(pieces.count(), || -> Result<GroupPartial> {
            let mut reader = shared.reader()?;
            while let Some(piece) = self.reduction.until.take(&pieces) {
                let from = piece * PIECE;
                let rows = from..rows.min(from + PIECE);
                reader.absorb_rows(&self.keys, inputs, &columns, rows, start)?;
            }
            reader.into_own()
        });
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        self.reduction.until.check()?;
        let mut all = shared.finish(parts)?;
        self.reduction.until.check()?;
        all.add_span(start, rows as u64)?;
        Ok(all)
    }

    /// The operations.
    #[doc(hidden)]
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        self.reduction.ops()
    }
}
