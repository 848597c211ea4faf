//! Zip archives of npy files.

use crate::columns::{self, ColumnSelector};
use crate::file::{Cursor, PositionalFile};
use crate::npy::{self, Header};
use crate::open::OpenOptions;
use crate::{Description, Error, Format, Result, Source};
use flate2::read::DeflateDecoder;
use std::io::{self, Read};
use std::sync::Arc;
use zip::{CompressionMethod, ZipArchive};

/// The arrays chosen from an archive.
pub(crate) fn open(
    file: &Arc<PositionalFile>,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let mut archive = Archive::open(file)?;
    let name = file.name();
    if let Some(wanted) = member {
        if let Some(i) = archive.find(wanted) {
            return archive.member(i)?.open(&options.columns, options);
        }
        // A field of an array of records: f.npz:array:field.
        if let Some((array, field)) = wanted.rsplit_once(':')
            && let Some(i) = archive.find(array)
        {
            return archive.member(i)?.open(&[ColumnSelector::Name(field.into())], options);
        }
        return Err(Error::format(
            name,
            format!("there is no array {wanted:?}; there are {}", columns::list(&archive.names)),
        ));
    }
    match (&options.columns[..], archive.names.len()) {
        (_, 0) => Err(Error::format(name, "the archive holds no npy arrays")),
        ([], 1) => archive.member(0)?.open(&[], options),
        ([], n) => {
            let error = Error::format(
                &name,
                format!("which array? There are {n}: {}", columns::list(&archive.names)),
            );
            // Strings and objects are no advice.
            let readable =
                (0..n).find(|&i| archive.member(i).is_ok_and(|m| m.open(&[], options).is_ok()));
            Err(match readable {
                Some(i) => {
                    error.with_hint(format!("name it behind a colon: {name}:{}", archive.names[i]))
                }
                None => error,
            })
        }
        (wanted, n) => match columns::resolve(wanted, &archive.names, &name) {
            Ok(chosen) => {
                let mut sources = Vec::new();
                for i in chosen {
                    sources.extend(archive.member(i)?.open(&[], options)?);
                }
                Ok(sources)
            }
            Err(_) if n == 1 => archive.member(0)?.open(wanted, options),
            Err(e) => Err(e),
        },
    }
}

/// What `inspect` says about an archive.
pub(crate) fn inspect(file: &Arc<PositionalFile>) -> Result<Vec<Description>> {
    let mut archive = Archive::open(file)?;
    let mut all = Vec::new();
    for i in 0..archive.names.len() {
        let member = archive.member(i)?;
        let (header, _) = member.header()?;
        for mut description in npy::describe(&member.name, &header, Format::Npz) {
            if member.deflated {
                description.offset = None;
                description.bytes = Some(member.stored);
                description.compression = Some("deflate".into());
            } else {
                description.offset = description.offset.map(|o| o + member.start);
            }
            all.push(description);
        }
    }
    Ok(all)
}

/// The directory of an archive.
struct Archive {
    file: Arc<PositionalFile>,
    zip: ZipArchive<Cursor>,
    /// The npy members, without their extension.
    names: Vec<String>,
    /// Their places in the directory.
    places: Vec<usize>,
}

impl Archive {
    fn open(file: &Arc<PositionalFile>) -> Result<Self> {
        let name = file.name();
        let damaged = |e| Error::format(&name, format!("damaged or no zip archive: {e}"));
        let zip = ZipArchive::new(Cursor::new(Arc::clone(file))).map_err(damaged)?;
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for place in 0..zip.len() {
            let Some(member) = zip.name_for_index(place) else { continue };
            if let Some(array) = member.map_err(damaged)?.strip_suffix(".npy") {
                names.push(array.to_owned());
                places.push(place);
            }
        }
        Ok(Archive { file: Arc::clone(file), zip, names, places })
    }

    /// The place of an array called `name`, with or without its extension.
    fn find(&self, name: &str) -> Option<usize> {
        let place = |n: &str| self.names.iter().position(|m| m == n);
        place(name).or_else(|| place(name.strip_suffix(".npy")?))
    }

    fn member(&mut self, i: usize) -> Result<Member> {
        let name = format!("{}:{}", self.file.name(), self.names[i]);
        let damaged =
            |e: &dyn core::fmt::Display| Error::format(&name, format!("damaged zip archive: {e}"));
        let entry = self.zip.by_index_raw(self.places[i]).map_err(|e| damaged(&e))?;
        if entry.encrypted() {
            return Err(Error::format(name, "the member is encrypted"));
        }
        let deflated = match entry.compression() {
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            other => {
                return Err(Error::format(
                    name,
                    format!("compressed as {other}; only stored and deflated members are read"),
                ));
            }
        };
        let Some(start) = entry.data_start() else {
            return Err(damaged(&"the member's place is unknown"));
        };
        let (stored, size, crc) = (entry.compressed_size(), entry.size(), entry.crc32());
        if start.checked_add(stored).is_none_or(|end| end > self.file.len()) {
            return Err(damaged(&"a member reaches beyond the end of the file"));
        }
        if !deflated && stored != size {
            return Err(damaged(&"the two sizes of a stored member differ"));
        }
        drop(entry);
        Ok(Member { file: Arc::clone(&self.file), name, deflated, start, stored, size, crc })
    }
}

/// One array of an archive.
struct Member {
    file: Arc<PositionalFile>,
    /// `f.npz:weights`.
    name: String,
    deflated: bool,
    /// Where its bytes begin, how many there are, and how many they unpack to.
    start: u64,
    stored: u64,
    size: u64,
    crc: u32,
}

impl Member {
    /// The header, and the reader that stands behind it.
    fn header(&self) -> Result<(Header, Box<dyn Read + Send>)> {
        let raw = Cursor::part(Arc::clone(&self.file), self.start, self.stored);
        let mut reader: Box<dyn Read + Send> = if self.deflated {
            Box::new(Checked {
                inner: DeflateDecoder::new(raw),
                left: self.size,
                hasher: crc32fast::Hasher::new(),
                crc: self.crc,
            })
        } else {
            Box::new(raw)
        };
        let header = Header::read(&mut reader, &self.name)?;
        header.check_length(self.size.saturating_sub(header.data_start), &self.name)?;
        Ok((header, reader))
    }

    fn open(&self, fields: &[ColumnSelector], options: &OpenOptions) -> Result<Vec<Source>> {
        let (header, reader) = self.header()?;
        if self.deflated && fields.len() <= 1 {
            return npy::stream_source(&self.name, &header, reader, fields, options)
                .map(|s| vec![s]);
        }
        if self.deflated {
            // Each field inflates the member for itself.
            let mut sources = Vec::new();
            for field in fields {
                sources.extend(self.open(core::slice::from_ref(field), options)?);
            }
            return Ok(sources);
        }
        let start = self.start + header.data_start;
        let chosen = npy::choose(&header, &self.name, start, fields, options)?;
        Ok(chosen
            .into_iter()
            .map(|(name, layout)| npy::file_source(name, &header, layout, Arc::clone(&self.file)))
            .collect())
    }
}

/// A reader that knows how long its data are and what their checksum is.
struct Checked<R> {
    inner: R,
    left: u64,
    hasher: crc32fast::Hasher,
    crc: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if n == 0 {
            return Ok(0);
        }
        let n = self.inner.read(&mut out[..n])?;
        if n == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "a zip member ends too early",
            ));
        }
        self.hasher.update(&out[..n]);
        self.left -= n as u64;
        if self.left == 0 && self.hasher.clone().finalize() != self.crc {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the checksum of a zip member is wrong",
            ));
        }
        Ok(n)
    }
}
