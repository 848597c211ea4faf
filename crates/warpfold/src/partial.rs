//! Unfinished reductions: states that can be written down, sent and merged.

mod unsettled;

use crate::answer::{Answer, Column, outputs_of};
use crate::array::Array;
use crate::reduction::Reduction;
use crate::unit::Unit;
use unsettled::Unsettled;
use warpfold_core::op::wide::Wide;
use warpfold_core::op::{AnyState, Extrema, Kind};
use warpfold_core::{DType, Error, Op, Result, Rules, with_element};

/// The states of a reduction over a piece of the data.
///
/// Merging the partials of any split of an array, in any order, gives the bits
/// of the single run.
///
/// ```
/// use warpfold::{Op, Partial, Reduction, Rules};
///
/// let data: Vec<f64> = (0..1000).map(|i| f64::from(i) * 0.1).collect();
/// let question = Reduction::new([Op::Var, Op::ArgMax]);
/// let whole = question.run(&data)?;
///
/// let bytes = question.partial(&data[..300], 0)?.to_bytes();
/// let mut merged = question.partial(&data[300..], 300)?;
/// merged.merge(&Partial::from_bytes(&bytes)?)?;
/// assert_eq!(merged.finish(&Rules::default())?, whole);
/// # Ok::<(), warpfold::Error>(())
/// ```
/// Partials of the same elements are equal, however they were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    dtype: DType,
    shape: Vec<usize>,
    /// The operations, and which of an output's states answers each.
    ops: Vec<(Op, usize)>,
    /// The states of each output.
    states: Vec<Vec<AnyState>>,
    /// Rows with a missing value.
    missing: u64,
    /// Of numbers in text, what else they may be as long as no piece tells.
    unsettled: Option<Box<Unsettled>>,
    /// What the elements count: then they are of i64.
    unit: Option<Unit>,
}

const MAGIC: [u8; 8] = *b"WARPFOLD";
/// The version without a unit, and the one with it.
const PLAIN: u32 = 1;
const COUNTED: u32 = 2;
/// The operations that the byte form can list.
const MOST_OPS: usize = (1 << 24) - 1;

impl Partial {
    /// # Errors
    /// [`Error::Operations`] for operations that the byte form cannot hold: it
    /// is better to hear of that here than where the bytes are read.
    pub(crate) fn new(
        dtype: DType,
        shape: Vec<usize>,
        ops: Vec<(Op, usize)>,
        states: Vec<Vec<AnyState>>,
    ) -> Result<Partial> {
        if ops.is_empty() || ops.len() > MOST_OPS {
            return Err(Error::Operations { given: ops.len(), most: MOST_OPS });
        }
        Ok(Partial { dtype, shape, ops, states, missing: 0, unsettled: None, unit: None })
    }

    /// The state of one operation, of one kind, over no elements: the one that
    /// there is of every type.
    pub(crate) fn sum_of_none(dtype: DType) -> Partial {
        let states = AnyState::identity(Kind::Sum, dtype).into_iter().collect();
        let (shape, ops) = (Vec::new(), vec![(Op::Sum, 0)]);
        Partial { dtype, shape, ops, states: vec![states], missing: 0, unsettled: None, unit: None }
    }

    /// The element type; of numbers in text, the one that the elements so far
    /// show. A piece of a text without a decimal is of integers, and merges with
    /// one that is of floats.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape of the answer.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The operations that can be finished.
    pub fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        self.ops.iter().map(|&(op, _)| op)
    }

    /// The number of rows with a missing value.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// What the elements count, if they are more than plain numbers: such as the moments in
    /// a column of a file.
    #[must_use]
    pub fn unit(&self) -> Option<&Unit> {
        self.unit.as_ref()
    }

    /// Says what the elements, which are of i64, count. Operations that have no answer in the
    /// unit are an error where they are finished.
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] for elements of another type.
    pub fn counting(mut self, unit: Unit) -> Result<Partial> {
        if self.dtype != DType::I64 {
            return Err(Error::DTypeMismatch { left: DType::I64, right: self.dtype });
        }
        (self.unit, self.unsettled) = (Some(unit), None);
        Ok(self)
    }

    /// Takes in decimals beyond 64 bits at positions at which the partial of the others, one
    /// output, has gaps.
    ///
    /// # Errors
    /// None for such.
    #[doc(hidden)]
    pub fn absorb_wide(
        &mut self,
        decimals: impl Iterator<Item = (u64, i128)> + Clone,
    ) -> Result<()> {
        for state in self.states.iter_mut().flatten() {
            let mut wide = Wide::new(state.kind());
            decimals.clone().for_each(|(at, decimal)| wide.absorb(decimal, at));
            state.merge(&wide.into())?;
        }
        Ok(())
    }

    /// The same in a unit that has `factor` steps for each.
    fn rescaled(&self, unit: Option<&Unit>, factor: u64) -> Result<Partial> {
        let mut rescaled = self.clone();
        rescaled.unit = unit.cloned();
        if let (Some(unit), Some(own), 2..) = (unit, &self.unit, factor) {
            for state in rescaled.states.iter_mut().flatten() {
                *state = state.scaled(factor).ok_or_else(|| unit.too_coarse(own))?;
            }
        }
        Ok(rescaled)
    }

    /// Counts rows with a missing value.
    #[doc(hidden)]
    pub fn add_missing(&mut self, rows: u64) {
        self.missing = self.missing.saturating_add(rows);
    }

    /// The states of each output.
    #[doc(hidden)]
    #[must_use]
    pub fn states(&self) -> &[Vec<AnyState>] {
        &self.states
    }

    /// The states of several partials over the same operations and type, as
    /// one of shape `shape`, whose outputs they hold in order.
    ///
    /// # Errors
    /// [`Error::StateMismatch`] if they differ in operations or type,
    /// [`Error::ShapeMismatch`] if the shape has another number of outputs.
    #[doc(hidden)]
    pub fn joined(shape: Vec<usize>, parts: Vec<Partial>) -> Result<Partial> {
        let mut parts = parts.into_iter();
        let Some(mut joined) = parts.next() else {
            return Err(Error::ShapeMismatch { left: shape, right: Vec::new() });
        };
        for part in parts {
            joined.check_same_question(&part)?;
            joined.states.extend(part.states);
            // Only columns of text leave their type open, and these have one output.
            joined.unsettled = None;
            joined.add_missing(part.missing);
        }
        if outputs_of(&shape) != Some(joined.states.len()) {
            return Err(Error::ShapeMismatch { left: shape, right: vec![joined.states.len()] });
        }
        joined.shape = shape;
        Ok(joined)
    }

    /// The same states in another shape, with as many outputs.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the shape has not.
    pub fn reshaped(self, shape: Vec<usize>) -> Result<Partial> {
        Partial::joined(shape, vec![self])
    }

    /// The states over u64 of the same elements, given states over i64 none of
    /// whose elements is negative: what a reader of numbers goes on with that
    /// meets one beyond i64.
    ///
    /// # Errors
    /// Those of [`AnyState::unsigned`].
    pub fn unsigned(self) -> Result<Partial> {
        let states = self.states.iter().map(|one| one.iter().map(AnyState::unsigned).collect());
        let states = states.collect::<Result<_>>()?;
        Ok(Partial { dtype: DType::U64, states, unsettled: None, unit: None, ..self })
    }

    fn check_same_question(&self, other: &Partial) -> Result<()> {
        self.check_same_ops(other)?;
        if self.dtype == other.dtype {
            return Ok(());
        }
        let (left, right) = (self.dtype.to_string(), other.dtype.to_string());
        Err(Error::StateMismatch { what: "element type", left, right })
    }

    fn check_same_ops(&self, other: &Partial) -> Result<()> {
        if self.ops == other.ops {
            return Ok(());
        }
        let names = |p: &Partial| p.ops().map(Op::name).collect::<Vec<_>>().join(",");
        let (left, right) = (names(self), names(other));
        Err(Error::StateMismatch { what: "operation", left, right })
    }

    fn check_same_shape(&self, other: &Partial) -> Result<()> {
        if self.shape == other.shape {
            return Ok(());
        }
        let (left, right) = (format!("{:?}", self.shape), format!("{:?}", other.shape));
        Err(Error::StateMismatch { what: "shape", left, right })
    }

    /// Lets `absorb` work on the states, if they are those of the same question
    /// as `asked`, which has no states itself.
    pub(crate) fn absorb_with(
        &mut self,
        asked: &Partial,
        absorb: impl FnOnce(&mut [Vec<AnyState>]) -> Result<()>,
    ) -> Result<()> {
        self.check_same_question(asked)?;
        self.check_same_shape(asked)?;
        // The elements to come are of this type.
        self.unsettled = None;
        absorb(&mut self.states)
    }

    /// Takes in the partial of another piece. After an error `self` is what it
    /// was before.
    ///
    /// Pieces of a text column may differ in type: integers here, decimals there.
    /// They merge to what a single pass over all of them gives. Pieces that count different
    /// steps of time merge in the finer one.
    ///
    /// # Errors
    /// [`Error::UnitMismatch`] if they count what does not go together, or does not fit the
    /// finer step; [`Error::StateMismatch`] if operations, element types or shapes differ,
    /// [`Error::Overlap`] if states that know positions share some.
    ///
    /// # Examples
    /// ```
    /// use warpfold::{Error, Op, Reduction, Rules};
    ///
    /// let question = Reduction::of(Op::ArgMax);
    /// let mut merged = question.partial(&[1.0, 5.0], 0)?;
    /// let again = question.partial(&[7.0, 2.0], 1)?;
    /// assert_eq!(merged.merge(&again), Err(Error::Overlap { at: 1 }));
    /// // Nothing was taken in: the answer is that of the first piece.
    /// let answer = merged.finish(&Rules::default())?;
    /// assert_eq!(answer.slice::<u64>(Op::ArgMax), Some(&[1][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    pub fn merge(&mut self, other: &Partial) -> Result<()> {
        if self.unit != other.unit {
            self.check_same_ops(other)?;
            let joined = Unit::joined(self.unit.as_ref(), other.unit.as_ref());
            let (unit, [mine, theirs]) = joined?;
            let mut ours = self.rescaled(unit.as_ref(), mine)?;
            ours.merge(&other.rescaled(unit.as_ref(), theirs)?)?;
            *self = ours;
            return Ok(());
        }
        if self.unsettled.is_some() || other.unsettled.is_some() {
            *self = self.merged_unsettled(other)?;
            return Ok(());
        }
        self.check_same_question(other)?;
        self.check_same_shape(other)?;
        // The same operations over the same type need the same states, but a
        // damaged partial may say otherwise: checking states looks at their
        // kinds. All are checked before the first is merged.
        for (states, others) in self.states.iter().zip(&other.states) {
            if states.len() != others.len() {
                return Err(Error::StateMismatch {
                    what: "number of states",
                    left: states.len().to_string(),
                    right: others.len().to_string(),
                });
            }
            for (state, other) in states.iter().zip(others) {
                state.check_merge(other)?;
            }
        }
        for (states, others) in self.states.iter_mut().zip(&other.states) {
            for (state, other) in states.iter_mut().zip(others) {
                state.merge(other)?;
            }
        }
        self.add_missing(other.missing);
        Ok(())
    }

    /// Takes in the one output of another partial as a piece of each of the outputs.
    ///
    /// # Errors
    /// Those of [`merge`](Self::merge), but for the shape.
    pub(crate) fn merge_into_each(&mut self, other: &Partial) -> Result<()> {
        self.check_same_question(other)?;
        for states in &mut self.states {
            for (state, other) in states.iter_mut().zip(other.states.iter().flatten()) {
                state.merge(other)?;
            }
        }
        Ok(())
    }

    /// Takes in a further array, whose first element comes after the last one so far: a
    /// chunk of an iterator, a file or a socket. The same as [`merge`](Self::merge) of the
    /// chunk's partial, without states for the chunk. After an error `self` is what it was
    /// before.
    ///
    /// Positions go on behind the last one that the partial holds, or from 0 if it holds
    /// none. Elements without a value are left out, and count as positions.
    ///
    /// # Errors
    /// [`Error::StateMismatch`] if the chunk's type is another one;
    /// [`Error::SeveralOutputs`] if the partial is one over some axes, which it does not
    /// know. Those of [`Reduction::partial`](crate::Reduction::partial).
    ///
    /// # Examples
    /// ```
    /// use warpfold::{Op, Reduction, Rules};
    ///
    /// let question = Reduction::new([Op::Mean, Op::ArgMax]);
    /// let data: Vec<f64> = (0..1000).map(|i| f64::from(i % 700).sqrt()).collect();
    /// let mut chunks = data.chunks(300);
    /// let mut partial = question.partial(chunks.next().unwrap_or_default(), 0)?;
    /// for chunk in chunks {
    ///     partial.absorb(chunk)?;
    /// }
    /// assert_eq!(partial.finish(&Rules::default())?, question.run(&data)?);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    pub fn absorb<'a>(&mut self, chunk: impl Into<Array<'a>>) -> Result<()> {
        let (question, start) = self.goes_on()?;
        question.absorb(self, chunk.into(), start)
    }

    /// The same for two arrays: [`Op::Dot`].
    ///
    /// # Errors
    /// As for [`absorb`](Self::absorb); arrays of different shapes or types.
    ///
    /// # Examples
    /// ```
    /// use warpfold::{Op, Reduction, Rules};
    ///
    /// let mut partial = Reduction::of(Op::Dot).partial_pair(&[1.0, 2.0], &[3.0, 4.0], 0)?;
    /// partial.absorb_pair(&[5.0], &[6.0])?;
    /// assert_eq!(partial.finish(&Rules::default())?.number::<f64>(Op::Dot), Some(41.0));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    pub fn absorb_pair<'a>(
        &mut self,
        left: impl Into<Array<'a>>,
        right: impl Into<Array<'a>>,
    ) -> Result<()> {
        let (question, start) = self.goes_on()?;
        question.absorb_pair(self, left.into(), right.into(), start)
    }

    /// The question that the partial answers, and the position of the next element.
    fn goes_on(&self) -> Result<(Reduction, u64)> {
        if !self.shape.is_empty() {
            return Err(Error::SeveralOutputs { shape: self.shape.clone() });
        }
        let end = self.states.iter().flatten().map(AnyState::end).max().unwrap_or(0);
        Ok((Reduction::new(self.ops()), end))
    }

    /// Moves the positions that are answers to where `place` says: see
    /// [`Extrema::relocate`]. States without positions stay as they are.
    #[doc(hidden)]
    pub fn relocate(&mut self, place: impl Fn(u64) -> u64) {
        // Arrays that are walked know their type.
        self.unsettled = None;
        let positional = |state: &&mut AnyState| state.kind() == Kind::ArgExtrema;
        for state in self.states.iter_mut().flatten().filter(positional) {
            with_element!(self.dtype, T => {
                if let Some(extrema) = state.downcast_mut::<Extrema<T>>() {
                    extrema.relocate(&place);
                }
            });
        }
    }

    /// The answers. The states stay as they are and can be finished again
    /// under other rules.
    ///
    /// # Errors
    /// Those of finishing: see [`Reduction::run`](crate::Reduction::run).
    /// [`Error::Gap`] if the answer depends on positions and a piece in the middle is
    /// missing. `argmin`, `argmax` and `argminmax` can be answered for any piece;
    /// positions count from the first element of the whole array. A missing last piece is not noticed.
    pub fn finish(&self, rules: &Rules) -> Result<Answer> {
        let columns: Result<Vec<Column>> =
            self.ops.iter().map(|&(op, place)| self.finish_from(op, place, rules)).collect();
        Ok(Answer { shape: self.shape.clone(), columns: columns? })
    }

    /// The answers to one of the operations, whatever becomes of the others.
    ///
    /// # Errors
    /// Those of finishing `op`; [`Error::UnsupportedType`] if it was not asked
    /// for.
    pub fn finish_op(&self, op: Op, rules: &Rules) -> Result<Column> {
        let place = self.ops.iter().find(|(o, _)| *o == op).map(|&(_, place)| place);
        let place = place.ok_or(Error::UnsupportedType { op, dtype: self.dtype })?;
        self.finish_from(op, place, rules)
    }

    fn finish_from(&self, op: Op, place: usize, rules: &Rules) -> Result<Column> {
        if let Some(unit) = self.unit.as_ref().filter(|unit| !unit.allows(op)) {
            return Err(Error::UnsupportedUnit { op, unit: unit.to_string() });
        }
        let rules = &Unit::rules_for(self.unit.as_ref(), rules);
        let values: Result<Vec<_>> =
            self.states.iter().map(|states| states[place].finish(op, rules)).collect();
        Ok(Column::pack(op, self.dtype, rules, &values?))
    }

    /// The same question over no elements, in the same shape.
    #[must_use]
    pub fn emptied(&self) -> Partial {
        let mut emptied = Partial { missing: 0, unsettled: None, ..self.clone() };
        emptied.states.iter_mut().flatten().for_each(AnyState::reset);
        emptied
    }

    /// The states as integers that add up: an engine that sums vectors of `i64`, such as an all-reduce,
    /// merges up to [`MOST_VECTORS`](Self::MOST_VECTORS) partials of one question. A sum over f64 has 50
    /// of them, one over f32 has 12.
    ///
    /// `None` if a state does not add up, as those of extremes, bits, products and sums of exponentials, and
    /// for numbers in text without a decimal. What is asked, of which type, shape and unit, is not in
    /// the vector: who adds vectors up sees to it that all have the same.
    ///
    /// # Examples
    /// ```
    /// use warpfold::{Op, Reduction, Rules};
    ///
    /// let question = Reduction::of(Op::Sum);
    /// let parts = [question.partial(&[1e16, 1.0], 0)?, question.partial(&[-1e16], 0)?];
    /// let [Some(a), Some(b)] = parts.each_ref().map(|part| part.to_vector()) else { panic!() };
    /// let added: Vec<i64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    /// let sum = parts[0].from_vector(&added)?.finish(&Rules::default())?;
    /// assert_eq!(sum.number::<f64>(Op::Sum), Some(1.0));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn to_vector(&self) -> Option<Vec<i64>> {
        if self.unsettled.is_some() {
            return None;
        }
        let mut vector = vec![self.missing.cast_signed()];
        for state in self.states.iter().flatten() {
            vector.extend(state.to_vector()?);
        }
        Some(vector)
    }

    /// The most vectors whose elementwise sum is a vector again.
    pub const MOST_VECTORS: usize = AnyState::MOST_VECTORS;

    /// The partial of the same question whose states are those of a vector, or of a sum of vectors.
    ///
    /// # Errors
    /// [`Error::DamagedState`] for integers that are no such sum.
    pub fn from_vector(&self, vector: &[i64]) -> Result<Partial> {
        let damaged = || Error::DamagedState { why: "its vector has another length".into() };
        let (missing, mut rest) = vector.split_first().ok_or_else(damaged)?;
        let mut partial = Partial { missing: missing.cast_unsigned(), ..self.clone() };
        for state in partial.states.iter_mut().flatten() {
            let len = AnyState::vector_len(state.kind(), state.dtype()).ok_or_else(damaged)?;
            let (own, behind) = rest.split_at_checked(len).ok_or_else(damaged)?;
            *state = AnyState::from_vector(state.kind(), state.dtype(), own)?;
            rest = behind;
        }
        if rest.is_empty() { Ok(partial) } else { Err(damaged()) }
    }

    /// The versioned, checksummed byte form: a header that names the
    /// operations, the type, the shape and the unit, then the byte form of each state.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC);
        let version = if self.unit.is_some() { COUNTED } else { PLAIN };
        out.extend_from_slice(&version.to_le_bytes());
        out.push(self.dtype.code());
        // `new` made sure that the number fits.
        out.extend_from_slice(&(self.ops.len() as u32).to_le_bytes()[..3]);
        for &(op, place) in &self.ops {
            out.extend_from_slice(&[op.code(), place as u8]);
        }
        let mut word = |w: u64| out.extend_from_slice(&w.to_le_bytes());
        word(self.missing);
        word(self.shape.len() as u64);
        self.shape.iter().for_each(|&n| word(n as u64));
        // Without outputs, what an output would have is as many as are used.
        let used = || self.ops.iter().map(|&(_, place)| place + 1).max().unwrap_or(0);
        word(self.states.first().map_or_else(used, Vec::len) as u64);
        word(self.states.len() as u64);
        if self.unit.is_some() {
            Unit::write(self.unit.as_ref(), &mut out);
        }
        let checksum = crc32fast::hash(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        for states in &self.states {
            for state in states {
                out.extend_from_slice(&state.to_bytes());
            }
        }
        self.write_unsettled(&mut out);
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Error::DamagedState`] for anything else, [`Error::StateVersion`] for
    /// another version, [`Error::RetiredState`] for kinds of states that are gone.
    pub fn from_bytes(bytes: &[u8]) -> Result<Partial> {
        let damaged = |why: &str| Error::DamagedState { why: why.into() };
        let mut rest = bytes;
        let mut take = |n: usize| -> Result<&[u8]> {
            let (head, tail) =
                rest.split_at_checked(n).ok_or_else(|| damaged("it ends within its header"))?;
            rest = tail;
            Ok(head)
        };
        fn word(bytes: &[u8]) -> u64 {
            bytes.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b))
        }
        if take(8)? != MAGIC {
            return Err(damaged("bad magic number"));
        }
        let version = word(take(4)?) as u32;
        if ![PLAIN, COUNTED].contains(&version) {
            return Err(Error::StateVersion { found: version, reads: COUNTED });
        }
        let dtype =
            DType::from_code(take(1)?[0]).ok_or_else(|| damaged("its element type is unknown"))?;
        let op_count = word(take(3)?);
        let mut ops = Vec::new();
        for _ in 0..op_count {
            let pair = take(2)?;
            let op = Op::from_code(pair[0]).ok_or_else(|| damaged("an operation is unknown"))?;
            ops.push((op, usize::from(pair[1])));
        }
        let missing = word(take(8)?);
        let ndim = word(take(8)?);
        // Each dimension takes bytes off: no claim costs memory.
        let mut shape = Vec::new();
        for _ in 0..ndim {
            let n = usize::try_from(word(take(8)?));
            shape.push(n.map_err(|_| damaged("its shape is too large"))?);
        }
        let per_output = word(take(8)?);
        let outputs = word(take(8)?);
        let unit = if version == COUNTED { Unit::read(&mut rest)? } else { None };
        if unit.is_some() != (version == COUNTED) || unit.is_some() && dtype != DType::I64 {
            return Err(damaged("its unit contradicts its type"));
        }
        let header = bytes.len() - rest.len();
        let (checksum, mut rest) =
            rest.split_at_checked(4).ok_or_else(|| damaged("it ends within its header"))?;
        if word(checksum) as u32 != crc32fast::hash(&bytes[..header]) {
            return Err(damaged("its header's checksum is wrong"));
        }
        // Every state answers some operation, and every operation has a state:
        // outputs without states would take no bytes, but memory.
        let mut used = [false; 256];
        ops.iter().for_each(|&(_, place)| used[place] = true);
        let places = used.iter().take_while(|&&used| used).count();
        let known = places > 0 && per_output == places as u64 && !used[places..].contains(&true);
        if outputs_of(&shape).map(|n| n as u64) != Some(outputs) || !known {
            return Err(damaged("its header contradicts itself"));
        }
        let mut states = Vec::new();
        // Memory grows with the bytes that are really there: a state takes
        // some.
        for _ in 0..outputs {
            let mut one = Vec::new();
            for _ in 0..per_output {
                let state = AnyState::read_from(&mut rest)?;
                if state.dtype() != dtype {
                    return Err(damaged("a state has another element type"));
                }
                one.push(state);
            }
            states.push(one);
        }
        let counted = unit.is_some();
        let partial = Partial { dtype, shape, ops, states, missing, unsettled: None, unit };
        match counted {
            _ if rest.is_empty() => Ok(partial),
            true => Err(Error::DamagedState { why: format!("{} bytes follow it", rest.len()) }),
            false => partial.read_unsettled(rest),
        }
    }
}
