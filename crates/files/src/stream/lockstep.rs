//! Pairs of columns of two tables, element by element.

use super::table::{Output, refuse_gaps};
use super::undecided::{States, Values, not_whole};
use super::{Progress, advance};
use crate::evidence::Evidence;
use crate::table::{TableBlock, TableBlocks, Typing};
use crate::{Batch, Error, Result};
use warpfold::{DType, Partial, Reduction};

/// One column, whose batches come in order.
struct Side {
    name: String,
    blocks: Box<dyn TableBlocks>,
    /// A batch, and how many of its values were taken.
    batch: Batch,
    taken: usize,
    /// The number of its block, and the rows up to its end.
    number: u64,
    rows: u64,
    evidence: Evidence,
}

impl Side {
    fn new(name: &str, blocks: Box<dyn TableBlocks>) -> Side {
        Side {
            name: name.into(),
            blocks,
            batch: Batch::new(DType::F64),
            taken: 0,
            number: 0,
            rows: 0,
            evidence: Evidence::default(),
        }
    }

    /// How many values can be taken, of the next batch if this one is used up;
    /// 0 at the end.
    fn ready(&mut self, progress: &dyn Progress) -> Result<usize> {
        while self.taken as u64 == self.batch.len() {
            let Some(block) = self.blocks.next_block()? else { return Ok(0) };
            let bytes = block.bytes();
            self.decode(block)?;
            advance(progress, bytes)?;
        }
        Ok(self.batch.len() as usize - self.taken)
    }

    /// Decodes a block, which becomes one batch.
    fn decode(&mut self, block: Box<dyn TableBlock>) -> Result<()> {
        let mut whole: Option<Batch> = None;
        let mut room = Batch::new(DType::F64);
        block.decode(&mut room, &mut |_, batch| {
            refuse_gaps(batch, &self.name, self.rows)?;
            self.rows += batch.rows();
            match &mut whole {
                None => whole = Some(batch.clone()),
                // Only batches of a type that is known come in several.
                Some(whole) => whole.grow(batch.bytes().len()).copy_from_slice(batch.bytes()),
            }
            Ok(())
        })?;
        let mut batch = whole.unwrap_or(room);
        self.evidence.add(&mut batch.evidence, self.number);
        self.number += 1;
        (self.batch, self.taken) = (batch, 0);
        Ok(())
    }
}

/// Reduces pairs of two columns whose first pair has index `start`; says where
/// the next pair would be.
pub(super) fn partial(
    names: [&str; 2],
    [left, right]: [Box<dyn TableBlocks>; 2],
    output: &Output,
    reduction: &Reduction,
    start: u64,
    progress: &dyn Progress,
) -> Result<(Partial, u64)> {
    let wrong = |source| Error::Reduce { name: output.name.clone(), source };
    let mut states = match output.typing {
        Typing::Fixed(dtype) => States::fixed(reduction, dtype, 2).map_err(wrong)?,
        Typing::Open | Typing::Text => States::open(2, reduction.check_type(DType::F64, 2).is_ok()),
    };
    let (mut left, mut right) = (Side::new(names[0], left), Side::new(names[1], right));
    let mut at = start;
    loop {
        let (n, m) = (left.ready(progress)?, right.ready(progress)?);
        for side in [&left, &right] {
            if let Some((_, cell)) = &side.evidence.decimal {
                if reduction.check_type(DType::F64, 2).is_err() {
                    return Err(not_whole(cell, reduction.ops()));
                }
                states.decide();
            }
        }
        let len = n.min(m);
        if len == 0 {
            if n == m {
                break;
            }
            let (longer, shorter) =
                if n > m { (&left.name, &right.name) } else { (&right.name, &left.name) };
            let what = format!("it has {} elements, fewer than {longer}", at - start);
            return Err(Error::format(shorter.clone(), what));
        }
        let items = Values { batch: &left.batch, from: left.taken, len };
        let others = Values { batch: &right.batch, from: right.taken, len };
        states.absorb(reduction, items, Some(others), at).map_err(wrong)?;
        (left.taken, right.taken) = (left.taken + len, right.taken + len);
        at += len as u64;
    }
    let parts = states.finish(reduction).map_err(wrong)?;
    let mut evidence = left.evidence;
    evidence.merge(right.evidence);
    Ok((parts.decide(&output.name, reduction, 2, &evidence)?, at))
}
