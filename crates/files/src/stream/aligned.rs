//! Sources that are joined, or become states, in one unit.

use super::{Inputs, disagree};
use crate::cast::Cast;
use crate::{Access, Batch, Block, Blocks, Error, Result, Source, Unit};
use std::sync::Arc;
use warpfold::Reduction;
use warpfold::internal::Counted;
use warpfold_core::DType;

/// What is made of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Answers,
    /// States, which count in i64, so that all merge.
    States,
    /// The same, of which only those are finished that the unit has answers to.
    SomeStates,
}

/// Brings the sources of each array to one unit, and says which that is. Those that differ
/// count in the finest one then, in i64.
///
/// # Errors
/// Units that do not go together, and operations that have no answer in one.
pub(super) fn align(
    arrays: &mut [Inputs],
    reduction: &Reduction,
    purpose: Purpose,
) -> Result<Vec<Option<Unit>>> {
    arrays.iter_mut().map(|array| one(array, reduction, purpose)).collect()
}

fn one(array: &mut Inputs, reduction: &Reduction, purpose: Purpose) -> Result<Option<Unit>> {
    let all: Vec<&Source> = array.items.iter().chain(&array.others).collect();
    let Some((first, others)) = all.split_first() else { return Ok(None) };
    let mut joined = first.unit();
    for other in others {
        let both = Unit::joined(joined.as_ref(), other.unit().as_ref());
        joined = both.map(|(unit, _)| unit).map_err(|error| disagreement(&all, other, error))?;
    }
    let Some(unit) = &joined else { return Ok(None) };
    let refused = reduction.ops().iter().find(|op| !unit.allows(**op));
    if let Some(&op) = refused.filter(|_| purpose != Purpose::SomeStates) {
        let source = warpfold::Error::UnsupportedUnit { op, unit: unit.to_string() };
        let error = Error::format(first.name.clone(), source.to_string());
        return Err(error.with_hint(source.hint().unwrap_or_default()));
    }
    let same = |other: &&Source| (other.dtype, other.unit()) == (first.dtype, first.unit());
    if purpose == Purpose::Answers && all.iter().all(same) {
        return Ok(joined);
    }
    let counted = Counted { dtype: DType::I64, unit: joined.clone() };
    let finest = all.iter().find(|source| source.unit() == joined).unwrap_or(&all[0]);
    let because = finest.name.clone();
    for sources in [&mut array.items, &mut array.others] {
        let aligned = core::mem::take(sources).into_iter();
        *sources = aligned.map(|s| aligned_to(s, &counted, &because)).collect::<Result<_>>()?;
    }
    Ok(joined)
}

/// The error that a source does not go with those before it.
fn disagreement(all: &[&Source], other: &Source, error: warpfold::Error) -> Error {
    let alone = |first: &Source| Unit::joined(first.unit().as_ref(), other.unit().as_ref()).err();
    let before = all.iter().take_while(|source| !core::ptr::eq(**source, other));
    let found = before.into_iter().find_map(|first| Some((*first, alone(first)?)));
    let (first, error) = found.unwrap_or((all[0], error));
    match error {
        warpfold::Error::UnitMismatch { left, right, hint } => {
            disagree([first, other], "unit", [left, right]).with_hint(hint)
        }
        error => Error::Reduce { name: other.name.clone(), source: error },
    }
}

fn aligned_to(source: Source, counted: &Counted, because: &str) -> Result<Source> {
    let own = Counted { dtype: source.dtype, unit: source.unit() };
    if own == *counted {
        return Ok(source);
    }
    let blocks = match source.access {
        Access::Sequential(blocks) => blocks,
        Access::Column(column) => column.blocks(source.dtype)?,
        // Arrays that are read so count nothing.
        Access::Random(_) => return Ok(source),
    };
    let cast = Cast::widen(&source.name, because, own, counted.clone()).map(Arc::new);
    let blocks = Box::new(Aligned { blocks, cast, unit: counted.unit.clone() });
    Ok(Source { dtype: counted.dtype, access: Access::Sequential(blocks), ..source })
}

/// The blocks of a source that counts in another unit.
struct Aligned {
    blocks: Box<dyn Blocks>,
    /// Nothing where only the name of the time zone is another.
    cast: Option<Arc<Cast>>,
    unit: Option<Unit>,
}

impl Blocks for Aligned {
    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        let Some(block) = self.blocks.next_block()? else { return Ok(None) };
        Ok(Some(match &self.cast {
            None => block,
            Some(cast) => Box::new(AlignedBlock { block, cast: Arc::clone(cast) }),
        }))
    }

    fn unit(&self) -> Option<Unit> {
        self.unit.clone()
    }
}

struct AlignedBlock {
    block: Box<dyn Block>,
    cast: Arc<Cast>,
}

impl Block for AlignedBlock {
    fn rows(&self) -> Option<u64> {
        self.block.rows()
    }

    fn bytes(&self) -> u64 {
        self.block.bytes()
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        let mut own = Batch::new(DType::I64);
        self.block.decode(&mut own, &mut |own| {
            self.cast.apply(own, batch)?;
            sink(batch)
        })
    }
}
