//! Descriptions: the output of `inspect`.

use crate::{Endian, Extent, Format, Unit};
use warpfold_core::DType;

/// One array or column of a file, from its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name that [`open`](crate::open) takes.
    pub name: String,
    /// The format of the file.
    pub format: Format,
    /// The type as the file names it: `<f8`, `BYTE_ARRAY (STRING)`.
    pub stored_as: String,
    /// The element type; `None` if it cannot be read.
    pub dtype: Option<DType>,
    /// The reason why it cannot be read.
    pub why_not: Option<String>,
    /// Shape or rows, where the file tells.
    pub extent: Option<Extent>,
    /// The byte order, where there is one.
    pub endian: Option<Endian>,
    /// The offset of the first element in the file, where it has one.
    pub offset: Option<u64>,
    /// Bytes in the file.
    pub bytes: Option<u64>,
    /// How it is compressed, if it is.
    pub compression: Option<String>,
    /// The unit of the numbers, if they have one.
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
