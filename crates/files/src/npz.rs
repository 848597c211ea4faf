//! Zip archives of npy files.

mod directory;
mod local;
mod names;

use crate::columns::{self, ColumnSelector};
use crate::file::{Cursor, PositionalFile};
use crate::npy::{self, Header};
use crate::open::OpenOptions;
use crate::seal::Seal;
use crate::{Description, Error, Format, Result, Source};
use flate2::read::DeflateDecoder;
use std::collections::HashSet;
use std::io::{self, Read};
use std::sync::Arc;

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

/// What the directory says about a member.
struct Entry {
    name: Box<str>,
    /// The bytes of the name, as its local header has them too.
    raw_name: Box<[u8]>,
    /// Where its local header begins, and where its data do.
    header: u64,
    start: u64,
    /// How many bytes it takes, and how many they unpack to.
    stored: u64,
    size: u64,
    crc: u32,
    method: u16,
    flags: u16,
}

/// Methods of compression.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Bits of an entry's flags.
const ENCRYPTED: u16 = 1;
const STREAMED: u16 = 1 << 3;
const UTF8: u16 = 1 << 11;

impl AsRef<str> for Entry {
    fn as_ref(&self) -> &str {
        &self.name
    }
}

impl Archive {
    /// Reads the directory, and checks that the members are those that it lists: no more, no
    /// fewer, none twice.
    fn open(file: &Arc<PositionalFile>) -> Result<Self> {
        let name = file.name();
        let (mut entries, begins) = directory::read(file)?;
        local::place(file, &mut entries, begins)?;
        let mut names = HashSet::new();
        if let Some(twice) = entries.iter().find(|entry| !names.insert(&*entry.name)) {
            let what = format!("damaged zip archive: it has two members {:?}", twice.name);
            return Err(Error::format(name, what));
        }
        drop(names);
        // What is no array is left aside.
        entries.retain_mut(|entry| match entry.name.strip_suffix(".npy") {
            Some(array) => {
                entry.name = array.into();
                true
            }
            None => false,
        });
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
        if entry.flags & ENCRYPTED != 0 {
            return Err(Error::format(name, "the member is encrypted")
                .with_hint("unpack the archive with its password, and name the .npy file"));
        }
        let deflated = match entry.method {
            STORED => false,
            DEFLATED => true,
            other => {
                return Err(Error::format(
                    name,
                    format!(
                        "compressed by method {other}; only stored and deflated members are read"
                    ),
                )
                .with_hint("unpack the archive, and name the .npy file"));
            }
        };
        if !deflated && entry.stored != entry.size {
            let what = "damaged zip archive: the two sizes of a stored member differ";
            return Err(Error::format(name, what));
        }
        let &Entry { start, stored, size, crc, .. } = entry;
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
