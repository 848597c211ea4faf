//! Zip archives of npy files.

mod local;
mod window;

use crate::columns::{self, ColumnSelector};
use crate::file::{Cursor, PositionalFile};
use crate::npy::{self, Header};
use crate::open::OpenOptions;
use crate::seal::Seal;
use crate::{Description, Error, Format, Result, Source};
use flate2::read::DeflateDecoder;
use std::io::{self, Read};
use std::sync::Arc;
use window::Window;
use zip::{CompressionMethod, ZipArchive};

/// The arrays chosen from an archive.
pub(crate) fn open(
    file: &Arc<PositionalFile>,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let archive = Archive::open(file)?;
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
            format!("there is no array {wanted:?}; there are {}", columns::list(&archive.entries)),
        ));
    }
    match (&options.columns[..], archive.entries.len()) {
        (_, 0) => Err(Error::format(name, "the archive holds no npy arrays")),
        ([], 1) => archive.member(0)?.open(&[], options),
        ([], n) => {
            let error = Error::format(
                &name,
                format!("which array? There are {n}: {}", columns::list(&archive.entries)),
            );
            // Strings and objects are not suggested.
            let readable =
                (0..n).find(|&i| archive.member(i).is_ok_and(|m| m.open(&[], options).is_ok()));
            Err(match readable {
                Some(i) => error.with_hint(format!(
                    "name it after a colon: {name}:{}",
                    archive.entries[i].name
                )),
                None => error,
            })
        }
        (wanted, n) => match columns::resolve(wanted, &archive.names(), &name) {
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
    let archive = Archive::open(file)?;
    let mut all = Vec::new();
    for i in 0..archive.entries.len() {
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

/// The npy members of an archive.
struct Archive {
    file: Arc<PositionalFile>,
    entries: Vec<Entry>,
}

/// What the directory says about an array.
struct Entry {
    /// Without the extension.
    name: Box<str>,
    /// Where its local header begins.
    header: u64,
    /// How many bytes it takes, and how many they unpack to.
    stored: u64,
    size: u64,
    crc: u32,
    method: CompressionMethod,
    encrypted: bool,
}

impl AsRef<str> for Entry {
    fn as_ref(&self) -> &str {
        &self.name
    }
}

/// No directory is longer than this: entries take some ten times as much while
/// they are read.
const LONGEST: u64 = 32 << 20;

impl Archive {
    fn open(file: &Arc<PositionalFile>) -> Result<Self> {
        let name = file.name();
        let damaged = |e| Error::format(&name, format!("damaged, or not a zip archive: {e}"));
        let window = Window::new(Cursor::new(Arc::clone(file)), LONGEST);
        let zip = match ZipArchive::new(window) {
            Err(zip::result::ZipError::Io(e)) if e.kind() == io::ErrorKind::FileTooLarge => {
                return Err(Error::format(
                    &name,
                    "the directory is damaged, or longer than 32 MiB",
                )
                .with_hint("spread the arrays over several archives"));
            }
            zip => zip.map_err(damaged)?,
        };
        let mut entries = Vec::new();
        for place in 0..zip.len() {
            let member = zip.by_index_data(place).map_err(damaged)?;
            if let Some(array) = member.name().map_err(damaged)?.strip_suffix(".npy") {
                entries.push(Entry {
                    name: array.into(),
                    header: member.header_start(),
                    stored: member.compressed_size(),
                    size: member.size(),
                    crc: member.crc32(),
                    method: member.compression(),
                    encrypted: member.encrypted(),
                });
            }
        }
        Ok(Archive { file: Arc::clone(file), entries })
    }

    /// The place of an array called `name`, with or without its extension.
    fn find(&self, name: &str) -> Option<usize> {
        let place = |n: &str| self.entries.iter().position(|m| &*m.name == n);
        place(name).or_else(|| place(name.strip_suffix(".npy")?))
    }

    fn names(&self) -> Vec<String> {
        self.entries.iter().map(|e| e.name.to_string()).collect()
    }

    fn member(&self, i: usize) -> Result<Member> {
        let entry = &self.entries[i];
        let name = format!("{}:{}", self.file.name(), entry.name);
        let damaged = |what: &str| Error::format(&name, format!("damaged zip archive: {what}"));
        if entry.encrypted {
            return Err(Error::format(name, "the member is encrypted")
                .with_hint("unpack the archive with its password, and name the .npy file"));
        }
        let deflated = match entry.method {
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            other => {
                return Err(Error::format(
                    name,
                    format!("compressed as {other}; only stored and deflated members are read"),
                )
                .with_hint("unpack the archive, and name the .npy file"));
            }
        };
        let start = local::data_start(&self.file, entry).map_err(|e| match e {
            local::Wrong::Said(what) => damaged(what),
            local::Wrong::Read(error) => error,
        })?;
        let (stored, size, crc) = (entry.stored, entry.size, entry.crc);
        if start.checked_add(stored).is_none_or(|end| end > self.file.len()) {
            return Err(damaged("a member reaches beyond the end of the file"));
        }
        if !deflated && stored != size {
            return Err(damaged("the two sizes of a stored member differ"));
        }
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
            return npy::stream_source(&self.name, &header, reader, true, fields, options)
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
        chosen
            .into_iter()
            .map(|(name, layout)| {
                let end = self.start + self.size;
                let seal = Seal::new(Arc::clone(&self.file), &self.name, self.start..end, self.crc);
                // What the array itself does not hold.
                seal.read(self.start..start)?;
                seal.read(start + header.data_bytes()..end)?;
                let file = Arc::clone(&self.file);
                Ok(npy::file_source(name, &header, layout, file, Some(seal)))
            })
            .collect()
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
