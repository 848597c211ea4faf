//! What `inspect` says about a file.

use crate::{Endian, Extent, Format, Unit};
use warpfold_core::DType;

/// One array or column of a file, as its metadata describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// What [`open`](crate::open) would call it.
    pub name: String,
    /// The format of the file.
    pub format: Format,
    /// The type in the words of the file: `<f8`, `BYTE_ARRAY (STRING)`.
    pub stored_as: String,
    /// The element type it is read as; `None` if it is not.
    pub dtype: Option<DType>,
    /// Why it is not read.
    pub why_not: Option<String>,
    /// Shape or rows, where the file says.
    pub extent: Option<Extent>,
    /// The byte order, where there is one.
    pub endian: Option<Endian>,
    /// Where in the file the first element lies, where there is such a place.
    pub offset: Option<u64>,
    /// Bytes in the file.
    pub bytes: Option<u64>,
    /// How it is compressed, if it is.
    pub compression: Option<String>,
    /// What the numbers stand for, if they are no plain ones.
    pub unit: Option<Unit>,
}

impl Description {
    /// Whether this is read as plain numbers, so that every operation has an
    /// answer.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.dtype.is_some() && self.unit.is_none()
    }
}
