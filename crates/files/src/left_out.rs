//! What is told of formats and compressions that this build leaves out.

use crate::unpack::Codec;
use crate::{Error, Format};
use core::fmt::Display;

impl Format {
    /// The feature that reads it, and whether this build has it.
    fn feature(self) -> (&'static str, bool) {
        match self {
            // Never left out.
            Format::Raw => ("raw", true),
            Format::Npy | Format::Npz => ("npy", cfg!(feature = "npy")),
            Format::Csv | Format::Tsv | Format::Text => ("text", cfg!(feature = "text")),
            Format::Arrow | Format::ArrowStream => ("arrow", cfg!(feature = "arrow")),
            Format::Parquet => ("parquet", cfg!(feature = "parquet")),
            Format::Safetensors => ("safetensors", cfg!(feature = "safetensors")),
            Format::Zarr => ("zarr", cfg!(feature = "zarr")),
            Format::Hdf5 => ("hdf5", cfg!(feature = "hdf5")),
        }
    }

    /// Whether this build reads it.
    pub(crate) fn is_built(self) -> bool {
        self.feature().1
    }

    /// The error of reading it where this build does not.
    pub(crate) fn left_out(self, name: &str) -> Error {
        error(name, self, self.feature().0)
    }
}

impl Codec {
    /// The feature that unpacks it, and whether this build has it.
    fn feature(self) -> (&'static str, bool) {
        match self {
            Codec::Gzip => ("gzip", cfg!(feature = "gzip")),
            Codec::Zstd => ("zstd", cfg!(feature = "zstd")),
            Codec::Bzip2 => ("bzip2", cfg!(feature = "bzip2")),
            Codec::Xz => ("xz", cfg!(feature = "xz")),
            Codec::Lz4 => ("lz4", cfg!(feature = "lz4")),
        }
    }

    /// Whether this build unpacks it.
    pub(crate) fn is_built(self) -> bool {
        self.feature().1
    }

    /// The error of unpacking it where this build does not.
    pub(crate) fn left_out(self, name: &str) -> Error {
        error(name, self.name(), self.feature().0)
    }
}

fn error(name: &str, what: impl Display, feature: &str) -> Error {
    Error::format(name, format!("this build does not read {what} data"))
        .with_hint(format!("enable the feature `{feature}` of the crate warpfold-files"))
}

#[cfg(test)]
mod tests {
    use crate::open::{Stream, inspect_file, inspect_stream, open_file, open_stream};
    use crate::unpack::Codec;
    use crate::{Error, Format, OpenOptions, file::PositionalFile};
    use std::io::Cursor;
    use std::sync::Arc;

    /// What opening bytes says, as a file and as a stream.
    fn told(bytes: &[u8], options: &OpenOptions) -> Vec<Error> {
        let file = Arc::new(PositionalFile::memory("f", bytes.to_vec()));
        let stream = || Stream::new("f", Box::new(Cursor::new(bytes.to_vec()))).unwrap();
        let file = [open_file(&file, None, options).err(), inspect_file(&file, options).err()];
        let streams =
            [open_stream(stream(), None, options).err(), inspect_stream(stream(), options).err()];
        file.into_iter().chain(streams).flatten().collect()
    }

    /// In a build of any features each is either read or refused with the name of its
    /// feature.
    #[test]
    fn what_is_left_out_names_its_feature() {
        let check = |(feature, is_built): (&str, bool), errors: Vec<Error>| {
            let named = |error: &Error| {
                error.to_string().starts_with("f: this build does not read")
                    && error.hint().is_some_and(|hint| hint.contains(&format!("`{feature}`")))
            };
            assert_eq!(errors.iter().filter(|e| named(e)).count(), if is_built { 0 } else { 4 });
        };
        for format in Format::ALL {
            let options = OpenOptions { format: Some(format), ..OpenOptions::default() };
            check(format.feature(), told(b"a header of another kind", &options));
        }
        let heads: [(Codec, &[u8]); 5] = [
            (Codec::Gzip, b"\x1f\x8b\x08"),
            (Codec::Zstd, b"\x28\xb5\x2f\xfd"),
            (Codec::Bzip2, b"BZh91AY&SY"),
            (Codec::Xz, b"\xfd7zXZ\0"),
            (Codec::Lz4, b"\x04\x22\x4d\x18"),
        ];
        for (codec, head) in heads {
            assert_eq!(Codec::from_magic(head), Some(codec));
            check(codec.feature(), told(head, &OpenOptions::default()));
        }
        // What is recognised is told apart from what nobody knows.
        let npy = Format::Npy.feature();
        check(npy, told(b"\x93NUMPY\x01\0", &OpenOptions::default()));
        check(Format::Text.feature(), told(b"1 2 3\n", &OpenOptions::default()));
    }
}
