//! HDF5, and NetCDF-4, which is HDF5.
//!
//! The structure of files and what unpacks chunks are the crate `hdf5-reader`'s. Data sets that
//! lie in one piece are read as they are, like npy; others chunk by chunk.

use crate::chunked::{Array, Chunked, Decode};
use crate::file::PositionalFile;
use crate::fixed::{FixedFile, Layout};
use crate::guard::quietly;
use crate::open::OpenOptions;
use crate::{Access, Description, Endian, Error, Extent, Format, Order, ReadAt, Result, Source};
use crate::{container, source};
use core::ops::Range;
use hdf5_reader::error::ByteOrder;
use hdf5_reader::group::Group;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::layout::DataLayout;
use hdf5_reader::{Dataset, Datatype, FilterRegistry, H5Type, Hdf5File, SliceInfo, SliceInfoElem};
use hdf5_reader::{Storage, StorageBuffer};
use std::collections::HashSet;
use std::io::Read;
use std::sync::Arc;
use warpfold_core::DType;

/// The arrays chosen from a file.
pub(crate) fn open(
    file: &Arc<PositionalFile>,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let found = File::open(file)?;
    let name = file.name();
    let is_read = |i: usize| found.element(i).is_ok();
    let chosen = container::choose(&name, &found.names, member, &options.columns, is_read)?;
    chosen.into_iter().map(|i| quietly(&name, || found.source(i, options))).collect()
}

/// What `inspect` says about a file.
pub(crate) fn inspect(file: &Arc<PositionalFile>) -> Result<Vec<Description>> {
    let found = File::open(file)?;
    let name = file.name();
    (0..found.names.len()).map(|i| quietly(&name, || found.describe(i))).collect()
}

/// The bytes of a file, as the crate asks for them.
struct Bytes(Arc<PositionalFile>);

impl Storage for Bytes {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_range(&self, offset: u64, len: usize) -> hdf5_reader::error::Result<StorageBuffer> {
        let bytes = self.0.read_vec(offset, len as u64);
        let wrong = |e| hdf5_reader::error::Error::Io(std::io::Error::other(e));
        bytes.map(StorageBuffer::from_vec).map_err(wrong)
    }
}

/// A file with its data sets and their names.
struct File {
    file: Arc<PositionalFile>,
    hdf5: Hdf5File,
    names: Vec<String>,
    sets: Vec<Dataset>,
}

/// Groups within groups that are looked into.
const DEEPEST: usize = 64;

/// Filters beyond those of the library, by their registered numbers.
const LZF: u16 = 32000;
const ZSTD: u16 = 32015;

/// The longest chunk that is decoded.
const LONGEST_CHUNK: usize = 1 << 30;

impl File {
    fn open(file: &Arc<PositionalFile>) -> Result<Self> {
        let name = file.name();
        let damaged = |e: hdf5_reader::error::Error| damaged(&name, &e.to_string());
        quietly(&name, || {
            let mut filters = FilterRegistry::new();
            filters.register(LZF, Box::new(|filter, bytes, _| lzf(bytes, &filter.client_data)));
            filters.register(ZSTD, Box::new(|_, bytes, _| zstd(bytes)));
            // Each chunk is decoded once, so that nothing is gained by keeping it.
            let options = hdf5_reader::OpenOptions::default()
                .with_chunk_cache_bytes(0)
                .with_max_chunk_bytes(LONGEST_CHUNK)
                .with_filter_registry(filters);
            let bytes = Arc::new(Bytes(Arc::clone(file)));
            let hdf5 = Hdf5File::from_storage_with_options(bytes, options).map_err(damaged)?;
            let root = hdf5.root_group().map_err(damaged)?;
            let (mut names, mut sets) = (Vec::new(), Vec::new());
            let mut groups = vec![(String::new(), 0, root)];
            // Links may lead back.
            let mut seen = HashSet::new();
            while let Some((path, depth, group)) = groups.pop() {
                if depth > DEEPEST || !seen.insert(group.address()) {
                    continue;
                }
                let (inner, own) = group.members().map_err(damaged)?;
                let below = |name: &str| format!("{path}{}", leaf(name));
                for set in own {
                    names.push(below(set.name()));
                    sets.push(set);
                }
                let inner: Vec<(String, usize, Group)> = inner
                    .into_iter()
                    .map(|group| (below(group.name()) + "/", depth + 1, group))
                    .collect();
                groups.extend(inner.into_iter().rev());
            }
            Ok(File { file: Arc::clone(file), hdf5, names, sets })
        })
    }

    /// The type and byte order of a data set's elements.
    fn element(&self, i: usize) -> Result<(DType, Endian), String> {
        element(self.sets[i].dtype())
    }

    fn source(&self, i: usize, options: &OpenOptions) -> Result<Source> {
        let name = container::joined(&self.file.name(), &self.names[i]);
        let wrong = |what: String| Error::format(&name, what);
        let (dtype, endian) = self.element(i).map_err(wrong)?;
        options.expect_dtype(options.dtype, dtype, &name)?;
        let set = &self.sets[i];
        let shape = set.shape().iter().map(|&n| usize::try_from(n)).collect::<Result<Vec<_>, _>>();
        let shape = shape.map_err(|_| wrong("it is too long for this machine".into()))?;
        let bytes = source::element_count(&shape).and_then(|n| n.checked_mul(dtype.size() as u64));
        let bytes = bytes.ok_or_else(|| damaged(&name, "a shape of impossible length"))?;
        let reader: Box<dyn ReadAt> = match self.place(i)? {
            Some((start, len)) => {
                if len < bytes || start.checked_add(bytes).is_none_or(|end| end > self.file.len()) {
                    return Err(damaged(
                        &name,
                        &format!("its {bytes} bytes from byte {start} on are not all in the file"),
                    ));
                }
                let layout = Layout::packed(dtype, endian, start);
                Box::new(FixedFile { file: Arc::clone(&self.file), layout, seal: None })
            }
            None => {
                let whole = || set.shape().iter().map(|&n| n.max(1)).collect();
                let chunk = set.chunks().map(|c| c.into_iter().map(u64::from).collect());
                let chunk: Vec<u64> = chunk.unwrap_or_else(whole);
                if chunk.len() != shape.len() || chunk.contains(&0) {
                    return Err(damaged(&name, "chunks of another shape than the array's"));
                }
                let (shape, decoder) = (set.shape().to_vec(), Box::new(Chunks(set.clone(), dtype)));
                let name = name.clone();
                Box::new(Chunked::new(Array { name, dtype, shape, chunk, decoder }))
            }
        };
        Ok(Source {
            name,
            dtype,
            extent: Extent::Array { shape, order: Order::C },
            bytes: Some(bytes),
            access: Access::Random(reader),
        })
    }

    /// Where a data set lies that is in one piece, and its bytes.
    fn place(&self, i: usize) -> Result<Option<(u64, u64)>> {
        let header = self.hdf5.get_or_parse_header(self.sets[i].address());
        let header = header.map_err(|e| damaged(&self.file.name(), &e.to_string()))?;
        let mut layout = None;
        for message in &header.messages {
            match message {
                HdfMessage::DataLayout(found) => layout = Some(&found.layout),
                HdfMessage::ExternalFiles(_) => {
                    let name = container::joined(&self.file.name(), &self.names[i]);
                    return Err(Error::format(
                        name,
                        "its elements are in another file, and not read",
                    ));
                }
                _ => {}
            }
        }
        let base = self.hdf5.superblock().base_address;
        Ok(match layout {
            // Without an address nothing has been written: all are fill values.
            Some(&DataLayout::Contiguous { address, size }) if address < self.file.len() => {
                Some((base.saturating_add(address), size))
            }
            _ => None,
        })
    }

    fn describe(&self, i: usize) -> Result<Description> {
        let set = &self.sets[i];
        let (found, why_not) = match self.element(i) {
            Ok(found) => (Some(found), None),
            Err(why_not) => (None, Some(why_not)),
        };
        let shape = set.shape().iter().map(|&n| usize::try_from(n)).collect::<Result<Vec<_>, _>>();
        let place = self.place(i).ok().flatten();
        let chunked = set.chunks().is_some();
        Ok(Description {
            name: container::joined(&self.file.name(), &self.names[i]),
            format: Format::Hdf5,
            stored_as: stored_as(set.dtype()),
            dtype: found.map(|(dtype, _)| dtype),
            why_not,
            extent: shape.ok().map(|shape| Extent::Array { shape, order: Order::C }),
            endian: found.filter(|(dtype, _)| dtype.size() > 1).map(|(_, endian)| endian),
            offset: place.map(|(start, _)| start),
            bytes: place.map(|(_, len)| len),
            compression: self.filters(i).filter(|_| chunked),
            unit: None,
        })
    }

    /// The names of what has been done to chunks.
    fn filters(&self, i: usize) -> Option<String> {
        let header = self.hdf5.get_or_parse_header(self.sets[i].address()).ok()?;
        let all = header.messages.iter().find_map(|message| match message {
            HdfMessage::FilterPipeline(all) => Some(&all.filters),
            _ => None,
        })?;
        let names = all.iter().map(|filter| match filter.id {
            1 => "deflate".into(),
            2 => "shuffle".into(),
            3 => "fletcher32".into(),
            4 => "szip".into(),
            5 => "nbit".into(),
            6 => "scaleoffset".into(),
            LZF => "lzf".into(),
            ZSTD => "zstd".into(),
            id => filter.name.clone().unwrap_or_else(|| format!("filter {id}")),
        });
        Some(names.collect::<Vec<String>>().join(", "))
    }
}

/// The last part of a path.
fn leaf(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn damaged(name: &str, what: &str) -> Error {
    Error::format(name, format!("damaged HDF5 file: {what}"))
}

fn endian(order: ByteOrder) -> Endian {
    match order {
        ByteOrder::LittleEndian => Endian::Little,
        ByteOrder::BigEndian => Endian::Big,
    }
}

fn element(of: &Datatype) -> Result<(DType, Endian), String> {
    let dtype = match of {
        Datatype::FixedPoint { size: 1, signed: true, .. } => DType::I8,
        Datatype::FixedPoint { size: 2, signed: true, .. } => DType::I16,
        Datatype::FixedPoint { size: 4, signed: true, .. } => DType::I32,
        Datatype::FixedPoint { size: 8, signed: true, .. } => DType::I64,
        Datatype::FixedPoint { size: 1, signed: false, .. } => DType::U8,
        Datatype::FixedPoint { size: 2, signed: false, .. } => DType::U16,
        Datatype::FixedPoint { size: 4, signed: false, .. } => DType::U32,
        Datatype::FixedPoint { size: 8, signed: false, .. } => DType::U64,
        Datatype::FloatingPoint { size: 2, .. } => DType::F16,
        Datatype::FloatingPoint { size: 4, .. } => DType::F32,
        Datatype::FloatingPoint { size: 8, .. } => DType::F64,
        // As h5py writes truth values.
        Datatype::Enum { base, members }
            if matches!(**base, Datatype::FixedPoint { size: 1, .. })
                && members.iter().all(|m| ["FALSE", "TRUE"].contains(&&*m.name)) =>
        {
            DType::Bool
        }
        _ => return Err(format!("elements of type {} are not read", stored_as(of))),
    };
    let order = match of {
        Datatype::FixedPoint { byte_order, .. } | Datatype::FloatingPoint { byte_order, .. } => {
            endian(*byte_order)
        }
        _ => Endian::Little,
    };
    Ok((dtype, order))
}

fn stored_as(of: &Datatype) -> String {
    let order = |order: &ByteOrder| if endian(*order) == Endian::Little { "LE" } else { "BE" };
    match of {
        Datatype::FixedPoint { size, signed, byte_order } => {
            let sign = if *signed { 'I' } else { 'U' };
            format!("H5T_STD_{sign}{}{}", u32::from(*size) * 8, order(byte_order))
        }
        Datatype::FloatingPoint { size, byte_order } => {
            format!("H5T_IEEE_F{}{}", u32::from(*size) * 8, order(byte_order))
        }
        Datatype::Enum { .. } => "H5T_ENUM".into(),
        Datatype::String { .. } => "H5T_STRING".into(),
        Datatype::Compound { .. } => "H5T_COMPOUND".into(),
        Datatype::Array { .. } => "H5T_ARRAY".into(),
        Datatype::VarLen { .. } => "H5T_VLEN".into(),
        Datatype::Opaque { .. } => "H5T_OPAQUE".into(),
        Datatype::Reference { .. } => "H5T_REFERENCE".into(),
        Datatype::Bitfield { .. } => "H5T_BITFIELD".into(),
    }
}

/// The chunks of a data set, or all of one that is small enough to lie in its header.
struct Chunks(Dataset, DType);

impl Decode for Chunks {
    fn decode(
        &self,
        _place: &[u64],
        part: &[Range<u64>],
        sink: &mut dyn FnMut(&[u8], &[u64]),
    ) -> Result<(), String> {
        match self.1 {
            DType::Bool => self.read(part, |bits: &[Truth]| {
                sink(&bits.iter().map(|bit| u8::from(bit.0)).collect::<Vec<_>>(), &lens(part));
            }),
            DType::F16 => self.read(part, |halves: &[Half]| {
                let words: Vec<u16> = halves.iter().map(|half| half.0).collect();
                sink(bytemuck::cast_slice(&words), &lens(part));
            }),
            DType::I8 => self.plain::<i8>(part, sink),
            DType::U8 => self.plain::<u8>(part, sink),
            DType::I16 => self.plain::<i16>(part, sink),
            DType::U16 => self.plain::<u16>(part, sink),
            DType::I32 => self.plain::<i32>(part, sink),
            DType::U32 => self.plain::<u32>(part, sink),
            DType::I64 => self.plain::<i64>(part, sink),
            DType::U64 => self.plain::<u64>(part, sink),
            DType::F32 => self.plain::<f32>(part, sink),
            DType::F64 => self.plain::<f64>(part, sink),
            other => Err(format!("elements of type {other} are not read")),
        }
    }
}

fn lens(part: &[Range<u64>]) -> Vec<u64> {
    part.iter().map(|r| r.end - r.start).collect()
}

impl Chunks {
    fn plain<T: H5Type + bytemuck::NoUninit>(
        &self,
        part: &[Range<u64>],
        sink: &mut dyn FnMut(&[u8], &[u64]),
    ) -> Result<(), String> {
        self.read(part, |items: &[T]| sink(bytemuck::cast_slice(items), &lens(part)))
    }

    fn read<T: H5Type>(&self, part: &[Range<u64>], sink: impl FnOnce(&[T])) -> Result<(), String> {
        let axis = |r: &Range<u64>| SliceInfoElem::Slice { start: r.start, end: r.end, step: 1 };
        let selections = part.iter().map(axis).collect();
        let read = self.0.read_slice::<T>(&SliceInfo { selections }).map_err(|e| e.to_string())?;
        sink(read.as_slice().ok_or("the decoder failed")?);
        Ok(())
    }
}

/// A float of 16 bits: no type of Rust's own.
#[derive(Clone)]
struct Half(u16);

impl H5Type for Half {
    fn hdf5_type() -> Datatype {
        Datatype::FloatingPoint { size: 2, byte_order: ByteOrder::LittleEndian }
    }

    fn from_bytes(bytes: &[u8], of: &Datatype) -> hdf5_reader::error::Result<Self> {
        let [a, b] = *bytes else { return Err(odd(bytes)) };
        Ok(Half(match of {
            Datatype::FloatingPoint { byte_order: ByteOrder::BigEndian, .. } => {
                u16::from_be_bytes([a, b])
            }
            _ => u16::from_le_bytes([a, b]),
        }))
    }

    fn element_size(_: &Datatype) -> usize {
        2
    }
}

/// A truth value, an enumeration of two names.
#[derive(Clone)]
struct Truth(bool);

impl H5Type for Truth {
    fn hdf5_type() -> Datatype {
        Datatype::FixedPoint { size: 1, signed: true, byte_order: ByteOrder::LittleEndian }
    }

    fn from_bytes(bytes: &[u8], _: &Datatype) -> hdf5_reader::error::Result<Self> {
        let [byte] = *bytes else { return Err(odd(bytes)) };
        Ok(Truth(byte != 0))
    }

    fn element_size(_: &Datatype) -> usize {
        1
    }
}

fn odd(bytes: &[u8]) -> hdf5_reader::error::Error {
    hdf5_reader::error::Error::InvalidData(format!("an element of {} bytes", bytes.len()))
}

fn zstd(bytes: &[u8]) -> hdf5_reader::error::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    let decoder = zstd::Decoder::new(bytes)?;
    decoder.take(LONGEST_CHUNK as u64 + 1).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

/// Unpacks what h5py calls `lzf`: literal runs, and copies of what came before.
fn lzf(bytes: &[u8], client_data: &[u32]) -> hdf5_reader::error::Result<Vec<u8>> {
    let ends = || hdf5_reader::error::Error::InvalidData("lzf data end too early".into());
    // The third number is the length of a chunk.
    let most = client_data.get(2).map_or(LONGEST_CHUNK, |&n| n as usize).min(LONGEST_CHUNK);
    let mut out = Vec::new();
    let mut rest = bytes;
    let mut next = || {
        let (&first, behind) = rest.split_first()?;
        rest = behind;
        Some(first)
    };
    while let Some(control) = next() {
        let control = usize::from(control);
        if control < 32 {
            for _ in 0..=control {
                out.push(next().ok_or_else(ends)?);
            }
        } else {
            let mut len = control >> 5;
            if len == 7 {
                len += usize::from(next().ok_or_else(ends)?);
            }
            let back = ((control & 31) << 8) + usize::from(next().ok_or_else(ends)?) + 1;
            let from = out.len().checked_sub(back).ok_or_else(ends)?;
            for i in from..from + len + 2 {
                out.push(out[i]);
            }
        }
        if out.len() > most {
            return Err(ends());
        }
    }
    Ok(out)
}
