//! Batches of one column, as batches of a type that other files' columns have, too.

use crate::{Batch, Error, Result, Unit};
use warpfold::Scalar;
use warpfold::internal::{Counted, Widening};
use warpfold_core::DType;
use warpfold_core::op::Numbers;

/// What becomes of the elements of a column.
#[derive(Clone, Debug)]
pub(crate) enum Cast {
    /// Elements of a wider type, or counts of a finer step.
    Widen {
        /// What the column is called, in its file.
        name: String,
        /// The file, or the column, because of which it is done.
        because: String,
        own: Counted,
        joined: Counted,
        widening: Widening,
    },
    /// Texts: integers as they are written, and dates and times as they are printed.
    Text(Option<Unit>),
}

impl Cast {
    /// From one type to another that it has been joined to; `None` if they are the same.
    pub(crate) fn widen(name: &str, because: &str, own: Counted, joined: Counted) -> Option<Cast> {
        let widening = own.widening(&joined)?;
        Some(Cast::Widen { name: name.into(), because: because.into(), own, joined, widening })
    }

    /// Puts the rows of a batch into another, which is empty.
    ///
    /// # Errors
    /// An element that the other type does not have; more text than a batch holds.
    pub(crate) fn apply(&self, batch: &Batch, out: &mut Batch) -> Result<()> {
        let from = batch.dtype();
        out.reset(match self {
            Cast::Widen { widening, .. } => widening.to(),
            Cast::Text(_) => DType::U32,
        });
        let mut items = batch.bytes().chunks_exact(from.size());
        let mut some = |out: &mut Batch, rows: u64| -> Result<()> {
            for item in items.by_ref().take(rows as usize) {
                self.one(scalar(from, item), out)?;
            }
            Ok(())
        };
        let mut wide = batch.wide.iter().copied().peekable();
        let mut row = 0;
        for gap in batch.gaps() {
            some(out, gap.row - row)?;
            row = gap.row;
            while row < gap.row + gap.len {
                match wide.next_if(|&(at, _)| at == row) {
                    Some((_, decimal)) => self.wide(decimal, out)?,
                    None => out.skip(1),
                }
                row += 1;
            }
        }
        some(out, batch.rows() - row)?;
        out.evidence.integers = !out.is_empty() && out.dtype() == DType::I64;
        Ok(())
    }

    fn one(&self, item: Scalar, out: &mut Batch) -> Result<()> {
        match (self, item) {
            (
                Cast::Widen { joined: Counted { unit: Some(unit), .. }, .. },
                Scalar::Int(count, _),
            ) if unit.is_number() => self.wide(count.into(), out),
            (Cast::Widen { own, widening, .. }, _) => {
                let bits = widening.bits(item.to_bits());
                let bits = bits.ok_or_else(|| self.beyond(shown(item, own.unit.as_ref())))?;
                let to = widening.to();
                Numbers::set_bits(out.grow(to.size()), to, 0, bits);
                Ok(())
            }
            (Cast::Text(unit), _) => text(&shown(item, unit.as_ref()), out),
        }
    }

    /// The same for a decimal, which may be beyond 64 bits.
    fn wide(&self, decimal: i128, out: &mut Batch) -> Result<()> {
        match self {
            Cast::Widen { own, widening, .. } => {
                let shown = || own.unit.as_ref().map_or(String::new(), |unit| unit.show(decimal));
                let wide = decimal.checked_mul(widening.factor().into());
                out.push_decimal(wide.ok_or_else(|| self.beyond(shown()))?);
                Ok(())
            }
            Cast::Text(unit) => {
                let shown = unit.as_ref().map_or(decimal.to_string(), |unit| unit.show(decimal));
                text(&shown, out)
            }
        }
    }

    /// The error that an element is none of the other type.
    fn beyond(&self, shown: String) -> Error {
        let Cast::Widen { name, because, joined, .. } = self else {
            return Error::format("", shown);
        };
        let to = joined.unit.as_ref().map_or(joined.dtype.to_string(), Unit::to_string);
        Error::format(name, format!("{shown} does not fit {to}, which {because} has")).with_hint(
            "cast the other column to the coarser type, or leave out what lies so far away",
        )
    }
}

fn text(shown: &str, out: &mut Batch) -> Result<()> {
    match out.push_text(shown.as_bytes()) {
        true => Ok(()),
        false => Err(Error::format("", "the texts of a block of rows are longer than 4 GiB")),
    }
}

/// An element from its bytes.
fn scalar(dtype: DType, bytes: &[u8]) -> Scalar {
    let mut word = [0; 8];
    let at = if cfg!(target_endian = "little") { 0 } else { 8 - bytes.len() };
    word[at..at + bytes.len()].copy_from_slice(bytes);
    Scalar::from_bits(dtype, u64::from_ne_bytes(word))
}

/// A number as what it counts.
fn shown(item: Scalar, unit: Option<&Unit>) -> String {
    match (item, unit) {
        (Scalar::Int(count, _), Some(unit)) => unit.show(count),
        (item, _) => item.to_string(),
    }
}
