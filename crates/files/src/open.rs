//! Opens inputs: from the text on the command line to sources.

use crate::address::is_address;
#[cfg(feature = "arrow")]
use crate::arrow;
use crate::columns::ColumnSelector;
use crate::file::PositionalFile;
use crate::fixed::read_up_to;
use crate::groups::Keyed;
#[cfg(feature = "hdf5")]
use crate::hdf5;
use crate::member::split_members;
#[cfg(feature = "parquet")]
use crate::parquet;
#[cfg(feature = "safetensors")]
use crate::safetensors;
#[cfg(feature = "text")]
use crate::text;
#[cfg(feature = "zarr")]
use crate::zarr;
use crate::{Description, Error, Format, Result, Source, format, raw, unpack};
#[cfg(feature = "npy")]
use crate::{npy, npz};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use warpfold_core::DType;

/// The order of the bytes of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Endian {
    /// The lowest byte first.
    #[default]
    Little,
    /// The highest byte first.
    Big,
}

impl Endian {
    /// The order of this machine.
    pub const NATIVE: Endian =
        if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
}

/// How to read a file that does not describe itself completely.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The format; `None` to recognise it from the first bytes, then from the name.
    pub format: Option<Format>,
    /// The columns, fields or members to read.
    pub columns: Vec<ColumnSelector>,
    /// The element type of raw bytes and of text. For formats that know their
    /// types: what they are expected to hold. Text without it is read as i64,
    /// or u64 if it needs that, where all cells are integers, else as f64.
    pub dtype: Option<DType>,
    /// The shape of raw bytes; `None` for as many elements as there are.
    pub shape: Option<Vec<usize>>,
    /// Bytes of a raw file to skip.
    pub offset: u64,
    /// The byte order of raw bytes.
    pub endian: Endian,
    /// Whether the first row names the columns; `None` to tell by whether it
    /// holds numbers.
    pub header: Option<bool>,
    /// What separates the cells; `None` to tell from the name and first row.
    pub delimiter: Option<u8>,
    /// Whether a missing value in text is an error rather than a gap.
    pub strict: bool,
    /// The cells of text that stand for missing values; `None` for the usual
    /// ones: empty, `NA`, `N/A`, `NULL`, `null` and their kin.
    pub na: Option<Vec<String>>,
    /// Whether all columns of text with numbers are taken, where none is asked
    /// for, rather than the only one.
    pub all_columns: bool,
    /// Bytes of text that are parsed at once, and looked at to tell what the columns
    /// hold; for tests.
    #[doc(hidden)]
    pub chunk: Option<usize>,
}

impl OpenOptions {
    /// Refuses flags that have no effect.
    fn check(&self, format: Format, name: &str) -> Result<()> {
        if format == Format::Raw {
            return Ok(());
        }
        for (given, flag) in [
            (self.shape.is_some(), "a shape"),
            (self.offset != 0, "an offset"),
            (self.endian != Endian::default(), "a byte order"),
        ] {
            if given {
                return Err(Error::format(
                    name,
                    format!("{flag} was given, but this is read as {format}, which has its own"),
                )
                .with_hint("to read the bytes as they are: --format raw"));
            }
        }
        Ok(())
    }

    /// Refuses a type other than the one the file has.
    #[cfg(any(
        feature = "npy",
        feature = "arrow",
        feature = "parquet",
        feature = "safetensors",
        feature = "zarr",
        feature = "hdf5"
    ))]
    pub(crate) fn expect_dtype(
        &self,
        asked: Option<DType>,
        found: DType,
        name: &str,
    ) -> Result<()> {
        match asked {
            Some(asked) if asked != found => Err(Error::format(
                name,
                format!("{asked} was asked for, but the elements are {found}"),
            )
            .with_hint("leave out --dtype: the file knows its types")),
            _ => Ok(()),
        }
    }
}

/// Bytes that can be read once, front to back.
pub(crate) struct Stream {
    pub(crate) name: String,
    /// The first bytes, already read.
    pub(crate) head: Vec<u8>,
    /// Whether nothing follows the head.
    #[cfg_attr(not(feature = "text"), expect(dead_code, reason = "only text looks on"))]
    pub(crate) whole: bool,
    /// Whether its end has something to check, such as a checksum.
    pub(crate) to_end: bool,
    /// The compression of these bytes.
    pub(crate) codec: Option<unpack::Codec>,
    /// The format that a name promises, if there is one.
    pub(crate) by_name: Option<Format>,
    rest: Box<dyn Read + Send>,
}

impl Stream {
    pub(crate) fn new(name: &str, mut rest: Box<dyn Read + Send>) -> Result<Self> {
        let mut head = Vec::new();
        read_up_to(&mut *rest, HEAD as u64, &mut head, name)?;
        let whole = head.len() < HEAD;
        let name = name.into();
        Ok(Stream { name, head, whole, to_end: false, codec: None, by_name: None, rest })
    }

    /// Reads more of it into the head, which becomes twice as long.
    #[cfg(feature = "text")]
    fn read_on(&mut self) -> Result<()> {
        let more = self.head.len().max(HEAD);
        let got = read_up_to(&mut *self.rest, more as u64, &mut self.head, &self.name)?;
        self.whole = got < more;
        Ok(())
    }

    /// The name and a reader from the first byte on.
    pub(crate) fn into_reader(self) -> (String, Box<dyn Read + Send>) {
        (self.name, Box::new(Cursor::new(self.head).chain(self.rest)))
    }
}

#[cfg(feature = "text")]
impl text::Head for Stream {
    fn bytes(&self) -> &[u8] {
        &self.head
    }

    fn whole(&self) -> bool {
        self.whole
    }

    fn grow(&mut self) -> Result<()> {
        self.read_on()
    }
}

/// How much of a file is read to recognise its format.
pub(crate) const HEAD: usize = 64 << 10;

enum Input {
    File(Arc<PositionalFile>),
    Stream(Stream),
    /// A folder of Zarr's.
    Folder(PathBuf),
}

/// Opens the arrays or columns that `input` and `options` name, without
/// reading their elements.
///
/// `input` is a path of any bytes, `path:member`, or `-` for standard input. A
/// file whose name holds a colon wins over a member. What follows the colon is an array
/// of an archive, a column of a table or a field of an array of records. One
/// source comes back for each; where none is named, the file's only one.
///
/// # Errors
/// A file that cannot be read or is damaged, or that has several candidates, which the
/// message lists.
///
/// # Examples
/// ```no_run
/// use warpfold_files::{OpenOptions, open};
/// for source in open("weights.npz:layer1", &OpenOptions::default())? {
///     println!("{}: {} {:?}", source.name, source.dtype, source.extent);
/// }
/// # Ok::<(), warpfold_files::Error>(())
/// ```
pub fn open(input: impl AsRef<OsStr>, options: &OpenOptions) -> Result<Vec<Source>> {
    let (input, member) = find(input.as_ref())?;
    match input {
        Input::File(file) => open_file(&file, member, options),
        Input::Stream(stream) => open_stream(stream, member, options),
        Input::Folder(folder) => open_folder(&folder, member, options),
    }
}

/// Opens columns of values and the columns of keys beside them.
///
/// Where no columns of values are chosen, the only one of numbers that is no key is
/// taken; with [`all_columns`](OpenOptions::all_columns) all of them. Keys of CSV are the
/// texts of their cells.
///
/// # Errors
/// As for [`open`]; keys of text in a format that does not read it.
pub fn open_keyed(
    input: impl AsRef<OsStr>,
    keys: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Keyed> {
    let input = input.as_ref();
    let (found, member) = find(input)?;
    let columns = chosen(member, options);
    let file = match found {
        Input::File(file) => match unpack::file(&file, options)? {
            Some(stream) => return keyed_stream(stream, &columns, keys, options),
            None => file,
        },
        Input::Stream(stream) => return keyed_stream(stream, &columns, keys, options),
        Input::Folder(folder) => {
            let keys = OpenOptions { columns: keys.to_vec(), dtype: None, ..options.clone() };
            let name = folder.display().to_string();
            return Keyed::of_sources(
                name,
                open_folder(&folder, None, &keys)?,
                open(input, options)?,
            );
        }
    };
    let format = detect_file(&file, &[&columns[..], keys].concat(), options)?;
    options.check(format, &file.name())?;
    match format {
        #[cfg(feature = "text")]
        Format::Csv | Format::Tsv => {
            text::csv::open_keyed(text::csv::Either::File(file), format, &columns, keys, options)
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::open_keyed(&file, &columns, keys, options),
        #[cfg(feature = "arrow")]
        Format::Arrow | Format::ArrowStream => {
            arrow::open_keyed(&file, format, &columns, keys, options)
        }
        _ => {
            let keys = OpenOptions { columns: keys.to_vec(), dtype: None, ..options.clone() };
            Keyed::of_sources(file.name(), open_file(&file, None, &keys)?, open(input, options)?)
        }
    }
}

fn keyed_stream(
    stream: Stream,
    columns: &[ColumnSelector],
    keys: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Keyed> {
    let stream = unpack::stream(stream, options)?;
    let format = detect_stream(&stream, &[columns, keys].concat(), options)?;
    options.check(format, &stream.name)?;
    match format {
        #[cfg(feature = "text")]
        Format::Csv | Format::Tsv => {
            text::csv::open_keyed(text::csv::Either::Stream(stream), format, columns, keys, options)
        }
        _ => Err(Error::format(
            &stream.name,
            format!("{format} data cannot be grouped from a stream"),
        )
        .with_hint("save them to a file and name the file")),
    }
}

/// Describes every array or column of `input`, also those that cannot be
/// reduced, from the metadata alone.
///
/// # Errors
/// A file that cannot be read or is damaged.
pub fn inspect(input: impl AsRef<OsStr>, options: &OpenOptions) -> Result<Vec<Description>> {
    let (input, member) = find(input.as_ref())?;
    let all = match input {
        Input::File(file) => inspect_file(&file, options),
        Input::Stream(stream) => inspect_stream(stream, options),
        Input::Folder(folder) => inspect_folder(&folder, options),
    }?;
    let Some(member) = member else { return Ok(all) };
    let wanted = |d: &Description| {
        d.name.ends_with(&format!(":{member}")) || d.name.contains(&format!(":{member}:"))
    };
    let names: Vec<String> = all.iter().map(|d| d.name.clone()).collect();
    let chosen: Vec<_> = all.into_iter().filter(wanted).collect();
    if chosen.is_empty() {
        let list = crate::columns::list(&names);
        return Err(Error::format(member, format!("there is no such member; there are {list}")));
    }
    Ok(chosen)
}

pub(crate) fn open_file(
    file: &Arc<PositionalFile>,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    if let Some(stream) = unpack::file(file, options)? {
        return open_stream(stream, member, options);
    }
    let columns = chosen(member, options);
    let format = detect_file(file, &columns, options)?;
    options.check(format, &file.name())?;
    match format {
        #[cfg(feature = "npy")]
        Format::Npy => npy::open(file, &columns, options),
        #[cfg(feature = "npy")]
        Format::Npz => npz::open(file, member, options),
        Format::Raw => no_member(&file.name(), &columns, Format::Raw)
            .and_then(|()| raw::open(file, options))
            .map(|s| vec![s]),
        #[cfg(feature = "text")]
        Format::Csv | Format::Tsv => text::csv::open(file, format, &columns, options),
        #[cfg(feature = "text")]
        Format::Text => no_member(&file.name(), &columns, Format::Text)
            .and_then(|()| text::plain::open(file, options))
            .map(|s| vec![s]),
        #[cfg(feature = "arrow")]
        Format::Arrow | Format::ArrowStream => arrow::open(file, format, &columns, options),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::open(file, &columns, options),
        #[cfg(feature = "safetensors")]
        Format::Safetensors => safetensors::open(file, member, options),
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => hdf5::open(file, member, options),
        _ => Err(needs_folder(&file.name(), format)),
    }
}

pub(crate) fn open_stream(
    stream: Stream,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let stream = unpack::stream(stream, options)?;
    let columns = chosen(member, options);
    let format = detect_stream(&stream, &columns, options)?;
    options.check(format, &stream.name)?;
    match format {
        #[cfg(feature = "npy")]
        Format::Npy => npy::open_stream(stream, &columns, options),
        Format::Raw => no_member(&stream.name, &columns, Format::Raw)
            .and_then(|()| raw::open_stream(stream, options))
            .map(|s| vec![s]),
        #[cfg(feature = "text")]
        Format::Csv | Format::Tsv => text::csv::open_stream(stream, format, &columns, options),
        #[cfg(feature = "text")]
        Format::Text => no_member(&stream.name, &columns, Format::Text)
            .and_then(|()| text::plain::open_stream(stream, options))
            .map(|s| vec![s]),
        #[cfg(feature = "arrow")]
        Format::ArrowStream => arrow::open_stream(stream, &columns, options),
        _ => Err(needs_file(&stream, format)),
    }
}

pub(crate) fn inspect_file(
    file: &Arc<PositionalFile>,
    options: &OpenOptions,
) -> Result<Vec<Description>> {
    if let Some(stream) = unpack::file(file, options)? {
        return inspect_stream(stream, options);
    }
    let format = detect_file(file, &options.columns, options)?;
    let name = file.name();
    match format {
        #[cfg(feature = "npy")]
        Format::Npy => {
            let reader = crate::file::Cursor::new(Arc::clone(file));
            let header = npy::Header::read(&mut { reader }, &name)?;
            header.check_length(file.len() - header.data_start, &name)?;
            Ok(npy::describe(&name, &header, format))
        }
        #[cfg(feature = "npy")]
        Format::Npz => npz::inspect(file),
        Format::Raw => raw::describe(file, options).map(|d| vec![d]),
        #[cfg(feature = "text")]
        Format::Csv | Format::Tsv => {
            text::csv::describe(&name, &mut text::FileHead::new(file)?, format, options)
        }
        #[cfg(feature = "text")]
        Format::Text => {
            Ok(vec![text::plain::describe(&name, &file.head(HEAD)?, Some(file.len()), options)])
        }
        #[cfg(feature = "arrow")]
        Format::Arrow | Format::ArrowStream => arrow::inspect(file, format),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::inspect(file),
        #[cfg(feature = "safetensors")]
        Format::Safetensors => safetensors::inspect(file),
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => hdf5::inspect(file),
        _ => Err(needs_folder(&name, format)),
    }
}

pub(crate) fn inspect_stream(stream: Stream, options: &OpenOptions) -> Result<Vec<Description>> {
    let stream = unpack::stream(stream, options)?;
    let codec = stream.codec;
    let mut all = inspect_bytes(stream, options)?;
    if let Some(codec) = codec {
        for description in &mut all {
            // Elements have no place in the file, and take up who knows how much.
            (description.offset, description.bytes) = (None, None);
            description.compression = Some(match &description.compression {
                Some(inner) => format!("{}, {inner}", codec.name()),
                None => codec.name().into(),
            });
        }
    }
    Ok(all)
}

fn inspect_bytes(stream: Stream, options: &OpenOptions) -> Result<Vec<Description>> {
    let format = detect_stream(&stream, &options.columns, options)?;
    match format {
        #[cfg(feature = "npy")]
        Format::Npy => {
            let (name, mut reader) = stream.into_reader();
            let header = npy::Header::read(&mut reader, &name)?;
            Ok(npy::describe(&name, &header, format))
        }
        #[cfg(feature = "text")]
        Format::Csv | Format::Tsv => {
            let (name, mut stream) = (stream.name.clone(), stream);
            text::csv::describe(&name, &mut stream, format, options)
        }
        #[cfg(feature = "text")]
        Format::Text => Ok(vec![text::plain::describe(&stream.name, &stream.head, None, options)]),
        #[cfg(feature = "arrow")]
        Format::ArrowStream => arrow::inspect_stream(stream),
        Format::Raw => raw::describe_stream(stream, options).map(|d| vec![d]),
        _ => Err(needs_file(&stream, format)),
    }
}

/// What was chosen, be it behind the colon or by option.
fn chosen(member: Option<&str>, options: &OpenOptions) -> Vec<ColumnSelector> {
    match member {
        Some(name) => {
            let digits = name.parse().ok().filter(|&i: &usize| i > 0);
            let place = digits.map(ColumnSelector::Index);
            vec![place.unwrap_or_else(|| ColumnSelector::Name(name.into()))]
        }
        None => options.columns.clone(),
    }
}

fn no_member(name: &str, columns: &[ColumnSelector], format: Format) -> Result<()> {
    match columns.first() {
        None => Ok(()),
        Some(column) => Err(Error::format(
            name,
            format!("there is no column {:?}: {format} data have none", column.to_string()),
        )
        .with_hint("to read the lines as columns: --format csv --delimiter ' '")),
    }
}

/// What a file is not read as: a format that this build leaves out, or Zarr.
fn needs_folder(name: &str, format: Format) -> Error {
    if !format.is_built() {
        return format.left_out(name);
    }
    Error::format(name, format!("{format} data are a folder, and this is a file"))
}

/// Whether a folder has the files that arrays and groups of Zarr have, so that [`open`] takes it.
#[must_use]
pub fn is_zarr(folder: &Path) -> bool {
    ["zarr.json", ".zarray", ".zgroup"].iter().any(|name| folder.join(name).is_file())
}

#[cfg(feature = "zarr")]
fn open_folder(folder: &Path, member: Option<&str>, options: &OpenOptions) -> Result<Vec<Source>> {
    options.check(Format::Zarr, &folder.display().to_string())?;
    zarr::open(folder, member, options)
}

#[cfg(feature = "zarr")]
fn inspect_folder(folder: &Path, _: &OpenOptions) -> Result<Vec<Description>> {
    zarr::inspect(folder)
}

#[cfg(not(feature = "zarr"))]
fn open_folder(folder: &Path, _: Option<&str>, _: &OpenOptions) -> Result<Vec<Source>> {
    Err(Format::Zarr.left_out(&folder.display().to_string()))
}

#[cfg(not(feature = "zarr"))]
fn inspect_folder(folder: &Path, _: &OpenOptions) -> Result<Vec<Description>> {
    Err(Format::Zarr.left_out(&folder.display().to_string()))
}

fn needs_file(stream: &Stream, format: Format) -> Error {
    let name = &stream.name;
    if !format.is_built() {
        return format.left_out(name);
    }
    if let Some(codec) = stream.codec {
        return unpack::needs_unpacking(name, format, codec);
    }
    Error::format(name, format!("{format} data cannot be read from a stream: they need seeking"))
        .with_hint("save them to a file and name the file")
}

/// Splits off a member and opens what is left.
fn find(input: &OsStr) -> Result<(Input, Option<&str>)> {
    if input == "-" {
        return Ok((stdin()?, None));
    }
    let path = Path::new(input);
    match std::fs::metadata(path) {
        Ok(_) => return Ok((open_path(path)?, None)),
        Err(e)
            if e.kind() != std::io::ErrorKind::NotFound
                && e.kind() != std::io::ErrorKind::NotADirectory =>
        {
            return Err(Error::Io { path: path.into(), source: e });
        }
        Err(_) => {}
    }
    if is_address(input) {
        return find_remote(input);
    }
    // The longest front part that is a file; members may hold colons too.
    for (front, member) in split_members(input) {
        if front == "-" {
            return Ok((stdin()?, Some(member)));
        }
        let is_read = |m: std::fs::Metadata| !m.is_dir() || is_zarr(Path::new(front));
        if !member.is_empty() && std::fs::metadata(front).is_ok_and(is_read) {
            return Ok((open_path(Path::new(front))?, Some(member)));
        }
    }
    // Nothing of that name: let the system say so.
    Ok((open_path(path)?, None))
}

/// As [`find`], on a server: the address as it is, or with a member behind its path.
#[cfg(feature = "remote")]
fn find_remote(input: &OsStr) -> Result<(Input, Option<&str>)> {
    let open = |url: &OsStr| PositionalFile::remote(url).map(|f| Input::File(Arc::new(f)));
    let missing = match open(input) {
        Err(Error::Io { source, path }) if source.kind() == std::io::ErrorKind::NotFound => {
            Error::Io { source, path }
        }
        opened => return Ok((opened?, None)),
    };
    for (front, member) in split_members(input) {
        // Not the colon of the scheme, nor that of a port.
        let names_a_file = front.as_encoded_bytes().iter().filter(|&&b| b == b'/').count() > 2;
        if names_a_file
            && !member.is_empty()
            && let Ok(file) = open(front)
        {
            return Ok((file, Some(member)));
        }
    }
    Err(missing)
}

#[cfg(not(feature = "remote"))]
fn find_remote(input: &OsStr) -> Result<(Input, Option<&str>)> {
    let what = "this build does not read files on servers";
    Err(Error::format(input.display().to_string(), what)
        .with_hint("enable the feature `remote`: cargo install warpfold-cli --features remote"))
}

fn open_path(path: &Path) -> Result<Input> {
    let io = |source| Error::Io { path: path.into(), source };
    let metadata = std::fs::metadata(path).map_err(io)?;
    let name = path.display().to_string();
    if metadata.is_dir() && is_zarr(path) {
        return Ok(Input::Folder(path.into()));
    }
    if metadata.is_dir() {
        return Err(Error::format(name, "this is a directory")
            .with_hint("name the files in it, for example with *.npy"));
    }
    let file = File::open(path).map_err(io)?;
    if metadata.is_file() {
        Ok(Input::File(Arc::new(PositionalFile::new(path.into(), file)?)))
    } else {
        // A pipe or a device.
        Stream::new(&name, Box::new(file)).map(Input::Stream)
    }
}

fn stdin() -> Result<Input> {
    if let Some(file) = redirected_stdin() {
        return Ok(Input::File(Arc::new(PositionalFile::new(PathBuf::from("stdin"), file)?)));
    }
    Stream::new("stdin", Box::new(std::io::stdin())).map(Input::Stream)
}

/// Standard input as a file, if it is a regular file that was not read from yet.
#[cfg(unix)]
fn redirected_stdin() -> Option<File> {
    use std::io::Seek;
    use std::os::fd::AsFd;
    let mut file = File::from(std::io::stdin().as_fd().try_clone_to_owned().ok()?);
    let usable = file.metadata().ok()?.is_file() && file.stream_position().ok()? == 0;
    usable.then_some(file)
}

#[cfg(not(unix))]
fn redirected_stdin() -> Option<File> {
    None
}

fn detect_file(
    file: &Arc<PositionalFile>,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Format> {
    let name = file.name();
    if let Some(format) = options.format {
        return not_empty(format, file.len() == 0, &name);
    }
    let head = file.head(HEAD)?;
    let by_name = Format::from_extension(file.path());
    // Raw numbers may begin with the few bytes that mark some other formats; with npy's
    // that does not happen by accident.
    let says_raw = by_name == Some(Format::Raw) && options.dtype.is_some();
    if !says_raw || head.starts_with(format::NPY) {
        match Format::from_magic(&head, &name)? {
            // -1 and a multiple of 8.
            Some(Format::ArrowStream) if by_name.is_none() && options.dtype.is_some() => {}
            Some(format) => return Ok(format),
            None => {}
        }
    }
    match by_name {
        Some(Format::Text) => {
            not_blank(&head, &name)?;
            return format_of_text(&head, &name, columns, options);
        }
        Some(format) => return not_empty(format, head.is_empty(), &name),
        None => {}
    }
    if head.is_empty() {
        return nothing(&name, columns, options);
    }
    if format::looks_like_safetensors(&head, file.len()) {
        return Ok(Format::Safetensors);
    }
    let bytes = matches!(options.dtype, Some(DType::Bool | DType::I8 | DType::U8));
    let says_raw = options.dtype.is_some() || options.shape.is_some() || options.offset != 0;
    let texty = format::looks_like_text(&head, options) || !says_raw && is_blank(&head);
    if texty && !bytes {
        not_blank(&head, &name)?;
        format_of_text(&head, &name, columns, options)
    } else if says_raw {
        Ok(Format::Raw)
    } else {
        Err(Error::format(name, "neither the first bytes nor the name tell what format this is")
            .with_hint(
                "for bytes without a header name their type: --dtype f32; else use --format",
            ))
    }
}

/// The format of no bytes, in a file or on a stream: raw elements where the
/// options speak of such, else text without a line.
fn nothing(name: &str, columns: &[ColumnSelector], options: &OpenOptions) -> Result<Format> {
    let says_raw =
        options.shape.is_some() || options.offset != 0 || options.endian != Endian::default();
    if says_raw { Ok(Format::Raw) } else { format_of_text(&[], name, columns, options) }
}

/// Whether there is nothing but white space: text without numbers.
fn is_blank(head: &[u8]) -> bool {
    head.trim_ascii().is_empty()
}

/// Which format of text these bytes are.
#[cfg(feature = "text")]
use text::format as format_of_text;

/// Refuses what has blanks and not a number. No bytes, and empty lines, are no numbers of which
/// there is a sum; a blank stands where something was left out.
fn not_blank(head: &[u8], name: &str) -> Result<()> {
    if head.len() < HEAD && is_blank(head) && head.iter().any(|byte| b" \t".contains(byte)) {
        return Err(Error::format(name, "there is nothing but blanks").with_hint(
            "look for what should have written numbers; --format text takes blanks for none",
        ));
    }
    Ok(())
}

/// What text is without its reader.
#[cfg(not(feature = "text"))]
fn format_of_text(_: &[u8], _: &str, _: &[ColumnSelector], _: &OpenOptions) -> Result<Format> {
    Ok(Format::Text)
}

/// Refuses no bytes where the format begins with some.
fn not_empty(format: Format, is_empty: bool, name: &str) -> Result<Format> {
    match format {
        Format::Raw | Format::Csv | Format::Tsv | Format::Text => Ok(format),
        _ if is_empty => {
            Err(Error::format(name, format!("it is empty, but {format} data begin with a header")))
        }
        _ => Ok(format),
    }
}

fn detect_stream(
    stream: &Stream,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Format> {
    if let Some(format) = options.format {
        return not_empty(format, stream.head.is_empty(), &stream.name);
    }
    if stream.head.is_empty() {
        return nothing(&stream.name, columns, options);
    }
    if let Some(format) = Format::from_magic(&stream.head, &stream.name)? {
        return Ok(format);
    }
    match stream.by_name {
        Some(Format::Text) | None => {}
        Some(format) => return Ok(format),
    }
    if format::looks_like_text(&stream.head, options) || is_blank(&stream.head) {
        not_blank(&stream.head, &stream.name)?;
        return format_of_text(&stream.head, &stream.name, columns, options);
    }
    Err(Error::format(&stream.name, "these bytes are neither text nor of a known format")
        .with_hint("for bytes without a header: --format raw --dtype f32"))
}
