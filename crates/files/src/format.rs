//! The formats, and how they are recognised from a file's first bytes and name.

use crate::open::OpenOptions;
use crate::unpack::Codec;
use crate::{Error, Result};
use core::fmt;
use std::path::Path;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// NumPy's `.npy`.
    Npy,
    /// A zip archive of npy files.
    Npz,
    /// Bytes without a header.
    Raw,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// Numbers separated by white space.
    Text,
    /// Arrow IPC, file form; Feather version 2.
    Arrow,
    /// Arrow IPC, stream form.
    ArrowStream,
    /// Apache Parquet.
    Parquet,
    /// safetensors.
    Safetensors,
    /// Zarr, version 2 or 3: a folder.
    Zarr,
    /// HDF5, and NetCDF-4 with it.
    Hdf5,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 12] = [
        Format::Npy,
        Format::Npz,
        Format::Raw,
        Format::Csv,
        Format::Tsv,
        Format::Text,
        Format::Arrow,
        Format::ArrowStream,
        Format::Parquet,
        Format::Safetensors,
        Format::Zarr,
        Format::Hdf5,
    ];

    /// The name used on the command line and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::Raw => "raw",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Text => "text",
            Format::Arrow => "arrow",
            Format::ArrowStream => "arrow-stream",
            Format::Parquet => "parquet",
            Format::Safetensors => "safetensors",
            Format::Zarr => "zarr",
            Format::Hdf5 => "hdf5",
        }
    }

    /// The format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "bin" => Some(Format::Raw),
            "txt" => Some(Format::Text),
            "feather" | "ipc" => Some(Format::Arrow),
            "arrows" => Some(Format::ArrowStream),
            "netcdf" => Some(Format::Hdf5),
            _ => Self::ALL.into_iter().find(|f| f.name() == name),
        }
    }

    /// The format that a file's first bytes identify, if any.
    ///
    /// # Errors
    /// A known format that is not supported, and what to do.
    pub(crate) fn from_magic(head: &[u8], name: &str) -> Result<Option<Self>> {
        let starts = |magic: &[u8]| head.starts_with(magic);
        let refuse = |what: &str, hint: &str| {
            Err(Error::format(name, format!("{what} is not read")).with_hint(hint))
        };
        Ok(Some(if starts(NPY) {
            Format::Npy
        } else if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") {
            Format::Npz
        } else if starts(b"PAR1") {
            Format::Parquet
        } else if starts(b"ARROW1") {
            Format::Arrow
        } else if starts(b"\xff\xff\xff\xff") && head.len() >= 16 && arrow_length(&head[4..8]) {
            Format::ArrowStream
        } else if starts(b"PARE") {
            return refuse("encrypted Parquet", "decrypt it first");
        } else if starts(b"FEA1") {
            return refuse("Feather version 1", "write it as Feather version 2 or Parquet");
        } else if let Some(codec) = Codec::from_magic(head) {
            let what = format!("{} data within compressed data", codec.name());
            return refuse(&what, "unpack the outer layer first");
        } else if starts(b"\x89HDF\r\n\x1a\n") {
            Format::Hdf5
        } else if starts(b"CDF\x01") || starts(b"CDF\x02") || starts(b"CDF\x05") {
            return refuse("a NetCDF file of the classic kind", "convert it: nccopy -k nc4");
        } else {
            return Ok(None);
        }))
    }

    /// The format that a file's name suggests.
    pub(crate) fn from_extension(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "npy" => Format::Npy,
            "npz" => Format::Npz,
            "bin" | "raw" => Format::Raw,
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "txt" => Format::Text,
            "arrow" | "feather" | "ipc" => Format::Arrow,
            "arrows" => Format::ArrowStream,
            "parquet" | "parq" | "pq" => Format::Parquet,
            "safetensors" => Format::Safetensors,
            "h5" | "hdf5" | "nc" | "nc4" => Format::Hdf5,
            _ => return None,
        })
    }
}

/// How an npy file begins.
pub(crate) const NPY: &[u8] = b"\x93NUMPY";

/// The longest header that safetensors allows.
pub(crate) const LONGEST_SAFETENSORS_HEADER: u64 = 100_000_000;

/// Whether a file begins as safetensors do: with the length of a JSON object that fits.
pub(crate) fn looks_like_safetensors(head: &[u8], file_len: u64) -> bool {
    let Some((len, [b'{', ..])) = head.split_first_chunk::<8>() else { return false };
    let len = u64::from_le_bytes(*len);
    (2..=LONGEST_SAFETENSORS_HEADER).contains(&len)
        && len.checked_add(8).is_some_and(|end| end <= file_len)
}

/// Whether this may be the length of an Arrow message: positive, padded to 8.
fn arrow_length(bytes: &[u8]) -> bool {
    let len = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    len > 0 && len % 8 == 0
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether the bytes read as text: none that text does not hold, and a line
/// end or a digit among them, or nothing but values that have neither: `nan`,
/// `-inf`, `NA`.
pub(crate) fn looks_like_text(head: &[u8], options: &OpenOptions) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let head = &head[..head.len().min(4096)];
    let texty = |b: u8| matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | b' '..=b'~' | 0x80..);
    let utf8 = match core::str::from_utf8(head) {
        Ok(_) => true,
        // Cut inside a character by the sample's end.
        Err(e) => e.error_len().is_none(),
    };
    let telling = |&b: &u8| b == b'\n' || b.is_ascii_digit();
    utf8 && head.iter().all(|&b| texty(b))
        && (head.iter().any(telling) || holds_values(head, options))
}

#[cfg(feature = "text")]
use crate::text::holds_values;

/// Without the reader of text only a lone number is known.
#[cfg(not(feature = "text"))]
fn holds_values(head: &[u8], _: &OpenOptions) -> bool {
    core::str::from_utf8(head.trim_ascii()).is_ok_and(|text| text.parse::<f64>().is_ok())
}
