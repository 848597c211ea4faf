//! The decoder of each compression.

use super::Codec;
#[cfg(any(feature = "gzip", feature = "bzip2", feature = "lz4"))]
use super::members::Members;
#[cfg(feature = "zstd")]
use crate::Error;
use crate::Result;
use std::io::{BufReader, Read};

/// Bytes asked of the file at a time.
const READ: usize = 128 << 10;

/// How far back xz data may reach. What `xz -9` writes takes 64 MiB; zstd has
/// a limit of its own, 128 MiB.
#[cfg(feature = "xz")]
const XZ_MEMORY_KIB: u32 = 256 << 10;

/// What unpacks `bytes`.
///
/// # Errors
/// This build does not unpack it; the system refuses memory.
pub(super) fn decoder(
    codec: Codec,
    name: &str,
    bytes: Box<dyn Read + Send>,
) -> Result<Box<dyn Read + Send>> {
    let bytes = BufReader::with_capacity(READ, bytes);
    Ok(match codec {
        #[cfg(feature = "gzip")]
        Codec::Gzip => Box::new(Members::<flate2::bufread::GzDecoder<_>>::new(bytes)),
        #[cfg(feature = "zstd")]
        Codec::Zstd => Box::new(
            zstd::stream::read::Decoder::with_buffer(bytes)
                .map_err(|source| Error::Io { path: name.into(), source })?,
        ),
        #[cfg(feature = "bzip2")]
        Codec::Bzip2 => Box::new(Members::<bzip2::bufread::BzDecoder<_>>::new(bytes)),
        #[cfg(feature = "xz")]
        Codec::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(bytes, true, XZ_MEMORY_KIB)),
        #[cfg(feature = "lz4")]
        Codec::Lz4 => Box::new(Members::<lz4_flex::frame::FrameDecoder<_>>::new(bytes)),
        #[cfg(not(all(
            feature = "gzip",
            feature = "zstd",
            feature = "bzip2",
            feature = "xz",
            feature = "lz4"
        )))]
        _ => return Err(codec.left_out(name)),
    })
}
