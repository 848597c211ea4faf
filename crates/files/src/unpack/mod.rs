//! Compressed files and streams, read as what they hold.
//!
//! The codec is told from the first bytes, the format from what they unpack to. A
//! separate thread unpacks ahead of the parser (`ahead`). Nothing is answered from data
//! whose end or checksum is missing: streams like these are read to their end
//! ([`Stream::to_end`]).

mod ahead;
#[cfg(any(feature = "gzip", feature = "zstd", feature = "bzip2", feature = "xz", feature = "lz4"))]
mod decoder;
#[cfg(any(feature = "gzip", feature = "bzip2", feature = "lz4"))]
mod members;

use crate::file::{Cursor, PositionalFile};
use crate::open::{OpenOptions, Stream};
use crate::{Error, Format, Result};
use ahead::ReadAhead;
#[cfg(any(
    feature = "gzip",
    feature = "zstd",
    feature = "bzip2",
    feature = "xz",
    feature = "lz4"
))]
use decoder::decoder;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A way to compress bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Lz4,
}

impl Codec {
    const ALL: [Codec; 5] = [Codec::Gzip, Codec::Zstd, Codec::Bzip2, Codec::Xz, Codec::Lz4];

    /// The codec that the first bytes prove, if any.
    pub(crate) fn from_magic(head: &[u8]) -> Option<Self> {
        let starts = |magic: &[u8]| head.starts_with(magic);
        // A block of data, or the end at once.
        let bzip2 = [&b"1AY&SY"[..], b"\x17\x72\x45\x38\x50\x90"];
        Some(if starts(b"\x1f\x8b\x08") {
            Codec::Gzip
        } else if starts(b"\x28\xb5\x2f\xfd") || is_skippable(head) {
            Codec::Zstd
        } else if starts(b"BZh") && bzip2.map(Some).contains(&head.get(4..10)) {
            Codec::Bzip2
        } else if starts(b"\xfd7zXZ\0") {
            Codec::Xz
        } else if starts(b"\x04\x22\x4d\x18") {
            Codec::Lz4
        } else {
            return None;
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Zstd => "zstd",
            Codec::Bzip2 => "bzip2",
            Codec::Xz => "xz",
            Codec::Lz4 => "lz4",
        }
    }

    /// The extensions of files that are compressed like this.
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Codec::Gzip => &["gz", "gzip"],
            Codec::Zstd => &["zst", "zstd"],
            Codec::Bzip2 => &["bz2"],
            Codec::Xz => &["xz"],
            Codec::Lz4 => &["lz4"],
        }
    }
}

/// What unpacks data where nothing is compiled in that does: an error.
#[cfg(not(any(
    feature = "gzip",
    feature = "zstd",
    feature = "bzip2",
    feature = "xz",
    feature = "lz4"
)))]
fn decoder(codec: Codec, name: &str, _: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    Err(codec.left_out(name))
}

/// A frame without data, which tools that compress with several threads write
/// first.
fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The codec of `head`, unless the caller wants the bytes as they are.
///
/// Raw numbers may begin like compressed data: they are unpacked only where
/// the name says that they are compressed.
fn codec_of(head: &[u8], path: Option<&Path>, options: &OpenOptions) -> Option<Codec> {
    let codec = Codec::from_magic(head)?;
    let named = path.is_some_and(|p| inner_name(p).is_some());
    let by_name = path.and_then(Format::from_extension);
    let raw = match options.format {
        Some(format) => format == Format::Raw,
        None => by_name == Some(Format::Raw) && options.dtype.is_some(),
    };
    (named || !raw).then_some(codec)
}

/// The name without the extension of a codec, if it has one.
fn inner_name(path: &Path) -> Option<PathBuf> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let known = Codec::ALL.iter().any(|c| c.extensions().contains(&&*extension));
    known.then(|| path.with_extension(""))
}

/// What a compressed file holds; `None` if it is not compressed.
///
/// # Errors
/// What reading finds.
pub(crate) fn file(file: &Arc<PositionalFile>, options: &OpenOptions) -> Result<Option<Stream>> {
    let head = file.head(16)?;
    let Some(codec) = codec_of(&head, Some(file.path()), options) else {
        // No bytes are text without a line, but nothing compressed has none.
        if head.is_empty() && options.format.is_none() && inner_name(file.path()).is_some() {
            return Err(Error::format(
                file.name(),
                "it is empty, but its name says that it is compressed",
            ));
        }
        return Ok(None);
    };
    let bytes = Box::new(Cursor::new(Arc::clone(file)));
    let inner = inner_name(file.path());
    unpacked(codec, &file.name(), inner, bytes).map(Some)
}

/// What a stream holds, if it is compressed; or the stream itself.
///
/// # Errors
/// What reading finds.
pub(crate) fn stream(stream: Stream, options: &OpenOptions) -> Result<Stream> {
    match codec_of(&stream.head, None, options) {
        Some(codec) if stream.codec.is_none() => {
            let (name, bytes) = stream.into_reader();
            let inner = inner_name(Path::new(&name));
            unpacked(codec, &name, inner, bytes)
        }
        _ => Ok(stream),
    }
}

fn unpacked(
    codec: Codec,
    name: &str,
    inner: Option<PathBuf>,
    bytes: Box<dyn Read + Send>,
) -> Result<Stream> {
    if !codec.is_built() {
        return Err(codec.left_out(name));
    }
    let decoder = decoder(codec, name, bytes)?;
    let reader = ReadAhead::new(codec.name(), name, decoder);
    let mut stream = Stream::new(name, Box::new(reader))?;
    stream.to_end = true;
    stream.codec = Some(codec);
    stream.by_name = inner.as_deref().and_then(Format::from_extension);
    Ok(stream)
}

/// A format that needs seeking, in data that have none.
pub(crate) fn needs_unpacking(name: &str, format: Format, codec: Codec) -> Error {
    let codec = codec.name();
    Error::format(name, format!("{format} data cannot be read while they are unpacked")).with_hint(
        format!("unpack them first, with {codec} -d: {format} has compression of its own"),
    )
}
