//! The elements of a file, front to back, as a buffer wants them.

use super::argument::Buffer;
use crate::failure::Usage;
use anyhow::{Result, anyhow, bail};
use warpfold::DType;
use warpfold_files::{Access, Batch, Error, Extent, OpenOptions, Source, open};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;

/// A file's only array, found but not yet read.
pub(crate) struct Elements {
    source: Source,
    pub(crate) count: u64,
    /// Those of a file that tells their number only at its end.
    read: Option<Vec<u8>>,
}

impl Elements {
    /// Opens the file and compares it with the buffer.
    ///
    /// # Errors
    /// A file that cannot be read, holds several arrays, or another type or number of elements.
    pub(crate) fn open(file: &str, buffer: &Buffer) -> Result<Elements> {
        // A missing value is not an element. It is refused, since leaving it out would
        // shift those after it.
        let options = OpenOptions { strict: true, ..OpenOptions::default() };
        let mut sources =
            open(file, &options).map_err(|error| without_flags(error, &buffer.name))?;
        let (Some(source), None) = (sources.pop(), sources.pop()) else {
            bail!("{file}: there is no array in it");
        };
        // A column of text becomes elements of the buffer's type, or of the one that
        // its first cells show.
        let mut source = source;
        if let Access::Column(column) = &source.access {
            source.dtype = buffer.dtype.unwrap_or(source.dtype);
            source.access = Access::Sequential(column.blocks(source.dtype)?);
        }
        let mut elements = Elements { source, count: 0, read: None };
        elements.count = elements.counted()?;
        elements.compare(file, buffer)?;
        Ok(elements)
    }

    pub(crate) fn dtype(&self) -> DType {
        self.source.dtype
    }

    fn compare(&self, file: &str, buffer: &Buffer) -> Result<()> {
        let (name, dtype) = (&buffer.name, self.dtype());
        if let Some(wanted) = buffer.dtype.filter(|wanted| *wanted != dtype) {
            let what = format!("{file} holds {dtype}, but buffer {name} is of {wanted}");
            let hint = format!("--arg {name}=@{file} takes the type of the file");
            return Err(Usage::new(what).hint(hint).into());
        }
        let count = self.count;
        if let Some(wanted) = buffer.count.filter(|wanted| *wanted != count) {
            let what = format!("{file} holds {count} elements, but buffer {name} is of {wanted}");
            let hint = "leave the number out to take that of the file";
            return Err(Usage::new(what).hint(hint).into());
        }
        if count == 0 {
            bail!("{file} holds no elements, and a buffer cannot be empty");
        }
        Ok(())
    }

    fn counted(&mut self) -> Result<u64> {
        match (&self.source.extent, &self.source.access) {
            (Extent::Array { shape, .. }, _) => {
                let count = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
                count.ok_or_else(|| anyhow!("{}: too many elements", self.source.name))
            }
            (Extent::Column { rows: Some(rows) }, _) => Ok(*rows),
            (Extent::Column { rows: None }, _) => {
                let mut bytes = Vec::new();
                self.each(&mut |chunk| {
                    bytes.extend_from_slice(chunk);
                    Ok(())
                })?;
                let count = bytes.len() / self.dtype().size();
                self.read = Some(bytes);
                Ok(count as u64)
            }
        }
    }

    /// Hands over the bytes of all elements, in the order of the file.
    ///
    /// # Errors
    /// What reading finds, and what `take` says.
    pub(crate) fn each(&mut self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(bytes) = self.read.take() {
            return take(&bytes);
        }
        let size = self.dtype().size();
        match &mut self.source.access {
            Access::Random(array) => {
                let mut chunk = vec![0; CHUNK];
                let mut next = 0;
                while next < self.count {
                    let now = ((self.count - next) as usize).min(CHUNK / size);
                    array.read_at(next, &mut chunk[..now * size])?;
                    take(&chunk[..now * size])?;
                    next += now as u64;
                }
                Ok(())
            }
            // Made sequential when it was opened.
            Access::Column(_) => bail!("{}: a column is read once", self.source.name),
            Access::Sequential(blocks) => {
                let name = &self.source.name;
                let mut batch = Batch::new(self.source.dtype);
                let mut wrong = Ok(());
                while let Some(block) = blocks.next_block()? {
                    block.decode(&mut batch, &mut |batch| {
                        if wrong.is_ok() {
                            wrong = match batch.missing() {
                                0 => take(batch.bytes()),
                                _ => Err(anyhow!("{name}: values are missing")),
                            };
                        }
                        Ok(())
                    })?;
                    std::mem::replace(&mut wrong, Ok(()))?;
                }
                Ok(())
            }
        }
    }
}

/// The same error; a hint about flags that other commands have is replaced.
fn without_flags(error: Error, buffer: &str) -> Error {
    match error.hint() {
        Some(hint) if hint.split_whitespace().any(|word| word.starts_with('-')) => error.with_hint(
            format!("{buffer}=@FILE:NAME is one of several arrays; .npy files need no flags"),
        ),
        _ => error,
    }
}
