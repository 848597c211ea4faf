//! The states of a column, also of one whose type only its last cell tells.
//!
//! While all cells are integers a column may be one of integers or one of floats
//! in which no decimal has come yet, and a pipe cannot be read again. So each
//! block goes into two states, which costs little beside the parsing: one over
//! floats, and one over i64, or over u64 where a block needs that. The first
//! decimal puts an end to the states over integers.

use crate::evidence::{Cell, Evidence};
use crate::{Batch, Error, Gap, Result};
use warpfold::internal::{ForReaders, Workers};
use warpfold::{DType, Op, Partial, Reduction};
use warpfold_core::op::RawRun;

/// Some values of a batch, whose gaps, if it has any, are those of all of it.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) batch: &'a Batch,
    /// The first value, and how many there are.
    pub(super) from: usize,
    pub(super) len: usize,
}

impl<'a> Values<'a> {
    /// All values.
    pub(super) fn of(batch: &'a Batch) -> Self {
        Values { batch, from: 0, len: batch.len() as usize }
    }

    fn dtype(self) -> DType {
        self.batch.dtype()
    }

    fn bytes(self) -> &'a [u8] {
        let size = self.dtype().size();
        &self.batch.bytes()[self.from * size..(self.from + self.len) * size]
    }

    /// Whether they are integers none of which is negative.
    fn is_natural(self) -> bool {
        let signed = || bytemuck::cast_slice::<u8, i64>(self.bytes()).iter().all(|&n| n >= 0);
        self.dtype() == DType::U64 || self.dtype() == DType::I64 && signed()
    }

    /// The values as floats, each rounded once.
    fn floats<'b>(self, room: &'b mut Vec<f64>) -> &'b [u8]
    where
        'a: 'b,
    {
        room.clear();
        match self.dtype() {
            DType::I64 => {
                let integers: &[i64] = bytemuck::cast_slice(self.bytes());
                room.extend(integers.iter().map(|&n| n as f64));
            }
            DType::U64 => {
                let integers: &[u64] = bytemuck::cast_slice(self.bytes());
                room.extend(integers.iter().map(|&n| n as f64));
            }
            _ => return self.bytes(),
        }
        for &zero in &self.batch.negative_zeros {
            if let Some(zero) = (zero as usize).checked_sub(self.from).and_then(|i| room.get_mut(i))
            {
                *zero = -0.0;
            }
        }
        bytemuck::cast_slice(room)
    }
}

/// What a column, or a pair of them, is reduced to on one thread.
pub(super) enum States {
    /// Of a type that is known.
    Fixed(DType, Workers),
    Open(Box<Undecided>),
}

/// States over integers and over floats, made when they are needed.
pub(super) struct Undecided {
    arrays: usize,
    /// Whether the operations have an answer over floats.
    takes_floats: bool,
    /// Whether a cell has shown that the column is of floats.
    decided: bool,
    signed: Option<Workers>,
    unsigned: Option<Workers>,
    floats: Option<Workers>,
    rooms: [Vec<f64>; 2],
}

impl States {
    /// The states of no elements, of a type that is known.
    pub(super) fn fixed(
        reduction: &Reduction,
        dtype: DType,
        arrays: usize,
    ) -> warpfold::Result<States> {
        Ok(States::Fixed(dtype, reduction.workers(dtype, arrays)?))
    }

    /// The states of no elements, of a type that nobody knows.
    pub(super) fn open(arrays: usize, takes_floats: bool) -> States {
        States::Open(Box::new(Undecided {
            arrays,
            takes_floats,
            decided: false,
            signed: None,
            unsigned: None,
            floats: None,
            rooms: Default::default(),
        }))
    }

    /// Takes in values whose first row has index `start`, and as many of a second
    /// array for pairs.
    pub(super) fn absorb(
        &mut self,
        reduction: &Reduction,
        items: Values<'_>,
        others: Option<Values<'_>>,
        start: u64,
    ) -> warpfold::Result<()> {
        let gaps = items.batch.gaps();
        match self {
            States::Fixed(_, workers) => {
                let others = others.map_or(&[][..], Values::bytes);
                absorb(workers, RawRun { start, items: items.bytes(), others }, gaps)
            }
            States::Open(undecided) => undecided.absorb(reduction, items, others, start),
        }
    }

    /// The states of what was absorbed.
    pub(super) fn finish(self, reduction: &Reduction) -> warpfold::Result<Parts> {
        let gather = |dtype: DType, workers: Option<Workers>| {
            workers.map(|workers| reduction.gather(dtype, workers)).transpose()
        };
        Ok(match self {
            States::Fixed(dtype, workers) => {
                Parts { fixed: gather(dtype, Some(workers))?, ..Parts::default() }
            }
            States::Open(undecided) => Parts {
                fixed: None,
                signed: gather(DType::I64, undecided.signed)?,
                unsigned: gather(DType::U64, undecided.unsigned)?,
                floats: gather(DType::F64, undecided.floats)?,
            },
        })
    }
}

impl Undecided {
    fn absorb(
        &mut self,
        reduction: &Reduction,
        items: Values<'_>,
        others: Option<Values<'_>>,
        start: u64,
    ) -> warpfold::Result<()> {
        let arrays = self.arrays;
        let gaps = items.batch.gaps();
        let views = [Some(items), others];
        let mut all = views.iter().flatten();
        let state = if self.decided {
            None
        } else if all.clone().all(|v| v.dtype() == DType::I64) {
            Some((DType::I64, &mut self.signed))
        } else if all.all(|v| v.is_natural()) {
            // The bits of i64 are those of u64 then.
            Some((DType::U64, &mut self.unsigned))
        } else {
            None
        };
        if let Some((dtype, state)) = state {
            let others = others.map_or(&[][..], Values::bytes);
            let workers = made(state, reduction, dtype, arrays)?;
            absorb(workers, RawRun { start, items: items.bytes(), others }, gaps)?;
        }
        if self.takes_floats {
            let [left, right] = &mut self.rooms;
            let items = items.floats(left);
            let others = others.map_or(&[][..], |others| others.floats(right));
            let workers = made(&mut self.floats, reduction, DType::F64, arrays)?;
            absorb(workers, RawRun { start, items, others }, gaps)?;
        }
        Ok(())
    }
}

impl States {
    /// The column is of floats: states over integers are of no use any more.
    pub(super) fn decide(&mut self) {
        if let States::Open(undecided) = self {
            undecided.decided = true;
            (undecided.signed, undecided.unsigned) = (None, None);
        }
    }
}

fn made<'a>(
    state: &'a mut Option<Workers>,
    reduction: &Reduction,
    dtype: DType,
    arrays: usize,
) -> warpfold::Result<&'a mut Workers> {
    let made = match state.take() {
        Some(workers) => workers,
        None => reduction.workers(dtype, arrays)?,
    };
    Ok(state.insert(made))
}

fn absorb(workers: &mut Workers, run: RawRun<'_>, gaps: &[Gap]) -> warpfold::Result<()> {
    if gaps.is_empty() {
        workers.absorb(run)
    } else {
        workers.absorb_around(run, gaps.iter().map(|gap| (gap.row, gap.len)))
    }
}

/// The states of some blocks, of each type that was tried.
#[derive(Default)]
pub(super) struct Parts {
    fixed: Option<Partial>,
    signed: Option<Partial>,
    unsigned: Option<Partial>,
    floats: Option<Partial>,
}

impl Parts {
    /// Takes in those of other blocks.
    pub(super) fn merge(&mut self, other: Parts) -> warpfold::Result<()> {
        join(&mut self.fixed, other.fixed)?;
        join(&mut self.signed, other.signed)?;
        join(&mut self.unsigned, other.unsigned)?;
        join(&mut self.floats, other.floats)
    }

    /// The states of the type that all cells together have. Where these are
    /// integers, or there are none, those of floats come along for a piece that
    /// is merged later.
    pub(super) fn decide(
        self,
        name: &str,
        reduction: &Reduction,
        arrays: usize,
        evidence: &Evidence,
    ) -> Result<Partial> {
        let wrong = |source| Error::Reduce { name: name.into(), source };
        if let Some(fixed) = self.fixed {
            return Ok(fixed);
        }
        let none = |dtype: DType| {
            reduction.workers(dtype, arrays).and_then(|workers| reduction.gather(dtype, workers))
        };
        if evidence.decimal.is_some() {
            return self.floats.map_or_else(|| none(DType::F64), Ok).map_err(wrong);
        }
        if let Some((_, cell)) = &evidence.huge {
            return Err(beyond(cell, "fits neither i64 nor u64"));
        }
        // Nothing has shown a decimal, which a piece that is merged with this one
        // may have.
        let unsettled = |own: Partial, rival: Option<Partial>| {
            own.unsettled(rival, evidence.negative).map_err(wrong)
        };
        if let Some((_, cell)) = &evidence.large {
            if evidence.negative {
                return Err(beyond(cell, "does not fit i64, and others are negative"));
            }
            let mut whole = self.unsigned;
            let signed = self.signed.map(Partial::unsigned).transpose().map_err(wrong)?;
            join(&mut whole, signed).map_err(wrong)?;
            let whole = whole.map_or_else(|| none(DType::U64), Ok).map_err(wrong)?;
            return unsettled(whole, self.floats);
        }
        let whole = self.signed.map_or_else(|| none(DType::I64), Ok).map_err(wrong)?;
        if evidence.integers {
            return unsettled(whole, self.floats);
        }
        // A column without a value is of floats, if the operation has these.
        match reduction.check_type(DType::F64, arrays) {
            Ok(()) => {
                let floats = self.floats.map_or_else(|| none(DType::F64), Ok).map_err(wrong)?;
                unsettled(floats, Some(whole))
            }
            Err(_) => unsettled(whole, None),
        }
    }
}

fn join(mine: &mut Option<Partial>, other: Option<Partial>) -> warpfold::Result<()> {
    match (mine.as_mut(), other) {
        (_, None) => Ok(()),
        (Some(mine), Some(other)) => mine.merge(&other),
        (None, other) => {
            *mine = other;
            Ok(())
        }
    }
}

/// An integer that no type holds together with the others.
pub(super) fn beyond(cell: &Cell, why: &str) -> Error {
    Error::format(&cell.file, format!("{} {why}", cell.place()))
        .with_hint("to round such integers to the nearest float: --dtype f64")
}

/// A decimal where the operations want integers.
pub(crate) fn not_whole(cell: &Cell, ops: &[Op]) -> Error {
    let op = ops.iter().find(|op| !op.supports(DType::F64)).copied().unwrap_or(Op::Xor);
    let what = format!("{} is not an integer, and {op} takes only these", cell.place());
    Error::format(&cell.file, what)
}
