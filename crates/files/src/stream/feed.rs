//! A source as a plain stream of elements, front to back.

use super::flat::length;
use crate::{Access, Batch, Blocks, Error, ReadAt, Result, Source};
use warpfold::DType;

/// Hands out a source's elements in file order.
pub(super) struct Feed {
    name: String,
    size: usize,
    from: From,
}

enum From {
    Random {
        reader: Box<dyn ReadAt>,
        at: u64,
        len: u64,
    },
    Sequential {
        blocks: Box<dyn Blocks>,
        pending: Vec<u8>,
        taken: usize,
        batch: Box<Batch>,
        rows: u64,
    },
}

impl From {
    fn blocks(blocks: Box<dyn Blocks>, dtype: DType) -> From {
        let batch = Box::new(Batch::new(dtype));
        From::Sequential { blocks, pending: Vec::new(), taken: 0, batch, rows: 0 }
    }
}

impl Feed {
    pub(super) fn new(source: Source) -> Result<Feed> {
        let size = source.dtype.size();
        let len = length(&source);
        let from = match source.access {
            Access::Random(reader) => From::Random { reader, at: 0, len: len? },
            Access::Sequential(blocks) => From::blocks(blocks, source.dtype),
            Access::Column(column) => From::blocks(column.blocks(source.dtype)?, source.dtype),
        };
        Ok(Feed { name: source.name, size, from })
    }

    /// Fills as much of `out` as there are elements left; says how many bytes.
    ///
    /// # Errors
    /// Whatever reading finds; a row without a value, which a stream of
    /// elements has no place for.
    pub(super) fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        let whole = out.len() / self.size * self.size;
        let out = &mut out[..whole];
        match &mut self.from {
            From::Random { reader, at, len } => {
                let count = ((out.len() / self.size) as u64).min(*len - *at);
                let bytes = count as usize * self.size;
                if bytes > 0 {
                    reader.read_at(*at, &mut out[..bytes])?;
                }
                *at += count;
                Ok(bytes)
            }
            From::Sequential { blocks, pending, taken, batch, rows } => {
                let mut filled = 0;
                while filled < out.len() {
                    if *taken == pending.len() {
                        pending.clear();
                        *taken = 0;
                        let Some(block) = blocks.next_block()? else { break };
                        let name = &self.name;
                        block.decode(batch, &mut |batch| {
                            batch.check_narrow(name, None)?;
                            if let Some(gap) = batch.gaps().first() {
                                return Err(Error::format(
                                    name.clone(),
                                    format!("row {} has no value", *rows + gap.row),
                                )
                                .with_hint(
                                    "pairs need a value on both sides: remove the row from both",
                                ));
                            }
                            *rows += batch.rows();
                            pending.extend_from_slice(batch.bytes());
                            Ok(())
                        })?;
                        continue;
                    }
                    let n = (pending.len() - *taken).min(out.len() - filled);
                    out[filled..filled + n].copy_from_slice(&pending[*taken..*taken + n]);
                    *taken += n;
                    filled += n;
                }
                Ok(filled)
            }
        }
    }
}
