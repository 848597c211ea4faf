//! HDF5, and NetCDF-4, which is HDF5.
//!
//! The structure of files and what unpacks chunks are the crate `hdf5-reader`'s. Data sets that
//! lie in one piece are read as they are, like npy; others chunk by chunk.

use crate::chunked::{Array, Chunked, Decode};
use crate::file::PositionalFile;
use crate::fixed::{FixedFile, Layout, swap_bytes};
use crate::guard::quietly;
use crate::open::OpenOptions;
use crate::{Access, Description, Endian, Error, Extent, Format, Order, ReadAt, Result, Source};
use crate::{container, source};
use core::ops::Range;
use hdf5_reader::btree_v1::{BTreeV1Key, collect_btree_v1_leaves_storage};
use hdf5_reader::chunk_index::{ChunkEntry, collect_implicit_chunk_entries};
use hdf5_reader::chunk_index::{collect_v2_chunk_entries_storage, single_chunk_entry};
use hdf5_reader::error::ByteOrder;
use hdf5_reader::extensible_array::collect_extensible_array_chunk_entries_storage;
use hdf5_reader::filters::apply_pipeline_with_limit;
use hdf5_reader::fixed_array::collect_fixed_array_chunk_entries_storage;
use hdf5_reader::group::Group;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::filter_pipeline::FilterDescription;
use hdf5_reader::messages::layout::{ChunkIndexing, DataLayout};
use hdf5_reader::{Dataset, Datatype, FilterRegistry, Hdf5File, Storage, StorageBuffer};
use std::collections::{HashMap, HashSet};
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
    filters: Arc<FilterRegistry>,
    hdf5: Hdf5File,
    names: Vec<String>,
    sets: Vec<Dataset>,
}

/// Groups within groups that are looked into.
const DEEPEST: usize = 64;

/// The one that puts all first bytes of elements together, then all second ones.
const SHUFFLE: u16 = 2;

/// Filters beyond those of the library, by their registered numbers.
const LZF: u16 = 32000;
const ZSTD: u16 = 32015;

/// Bytes that a filter may have beside those of a chunk, such as a checksum.
const SLACK: usize = 64;

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
            let filters = Arc::new(filters);
            let bytes = Arc::new(Bytes(Arc::clone(file)));
            let hdf5 = Hdf5File::from_storage(bytes).map_err(damaged)?;
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
            Ok(File { file: Arc::clone(file), filters, hdf5, names, sets })
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
                let decoder = Box::new(self.chunks(i, dtype, endian)?);
                let (shape, chunk) = (set.shape().to_vec(), decoder.shape.clone());
                if chunk.len() != shape.len() || chunk.contains(&0) {
                    return Err(damaged(&name, "chunks of another shape than the array's"));
                }
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

    /// How a data set is stored that does not lie in one piece.
    fn chunks(&self, i: usize, dtype: DType, endian: Endian) -> Result<Chunks> {
        let (set, size) = (&self.sets[i], dtype.size());
        let wrong = |e: hdf5_reader::error::Error| damaged(&self.file.name(), &e.to_string());
        let header = self.hdf5.get_or_parse_header(set.address()).map_err(wrong)?;
        let fill = set.fill_value().and_then(|fill| fill.value.clone());
        let mut chunks = Chunks {
            file: Arc::clone(&self.file),
            filters: Arc::clone(&self.filters),
            pipeline: Vec::new(),
            written: HashMap::new(),
            compact: None,
            shape: set.shape().iter().map(|&n| n.max(1)).collect(),
            fill: fill.filter(|fill| fill.len() == size).unwrap_or_else(|| vec![0; size]),
            swaps: endian != Endian::NATIVE && size > 1,
        };
        for message in &header.messages {
            match message {
                HdfMessage::FilterPipeline(all) => chunks.pipeline.clone_from(&all.filters),
                HdfMessage::DataLayout(found) => match &found.layout {
                    DataLayout::Compact { data } => chunks.compact = Some(data.clone()),
                    DataLayout::Contiguous { .. } => {}
                    DataLayout::Chunked { address, chunk_indexing, .. } => {
                        let dims = set.chunks().unwrap_or_default();
                        let all = self.index(set, *address, &dims, chunk_indexing.as_ref(), size);
                        chunks.shape = dims.iter().map(|&n| u64::from(n)).collect();
                        let base = self.hdf5.superblock().base_address;
                        for mut chunk in all.map_err(wrong)? {
                            let axes = chunk.offsets.iter().zip(&dims);
                            let place = axes.map(|(at, &n)| at / u64::from(n.max(1))).collect();
                            chunk.address = chunk.address.saturating_add(base);
                            chunks.written.insert(place, chunk);
                        }
                    }
                },
                _ => {}
            }
        }
        Ok(chunks)
    }

    /// Where the chunks of a data set are, in whichever of five ways that is written down.
    fn index(
        &self,
        set: &Dataset,
        at: u64,
        dims: &[u32],
        indexing: Option<&ChunkIndexing>,
        size: usize,
    ) -> hdf5_reader::error::Result<Vec<ChunkEntry>> {
        let block = self.hdf5.superblock();
        let (offsets, lengths) = (block.offset_size, block.length_size);
        let (storage, shape) = (self.hdf5.storage(), set.shape());
        let rank = shape.len() as u32;
        if Cursor::is_undefined_offset(at, offsets) {
            return Ok(Vec::new());
        }
        match indexing {
            None => {
                let leaves = collect_btree_v1_leaves_storage(
                    storage,
                    at,
                    offsets,
                    lengths,
                    Some(rank),
                    dims,
                    None,
                )?;
                let entry = |(key, address)| match key {
                    BTreeV1Key::RawData { chunk_size, filter_mask, mut offsets } => {
                        offsets.truncate(shape.len());
                        let size = u64::from(chunk_size);
                        Ok(ChunkEntry { address, size, filter_mask, offsets })
                    }
                    _ => Err(odd("a group where chunks were expected")),
                };
                leaves.into_iter().map(entry).collect()
            }
            Some(&ChunkIndexing::SingleChunk { filtered_size, filters }) => {
                Ok(vec![single_chunk_entry(at, filtered_size, filters, shape.len())])
            }
            Some(ChunkIndexing::Implicit) => {
                collect_implicit_chunk_entries(at, shape, dims, size, None, storage.len())
            }
            Some(ChunkIndexing::FixedArray { .. }) => collect_fixed_array_chunk_entries_storage(
                storage, at, offsets, lengths, shape, dims, None,
            ),
            Some(ChunkIndexing::ExtensibleArray { .. }) => {
                let most = set.max_dims();
                collect_extensible_array_chunk_entries_storage(
                    storage, at, offsets, lengths, shape, most, dims, None,
                )
            }
            Some(ChunkIndexing::BTreeV2) => {
                collect_v2_chunk_entries_storage(storage, at, offsets, lengths, rank, dims, None)
            }
        }
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

fn odd(what: &str) -> hdf5_reader::error::Error {
    hdf5_reader::error::Error::InvalidData(what.into())
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

/// How the elements of a data set are stored that does not lie in one piece.
struct Chunks {
    file: Arc<PositionalFile>,
    filters: Arc<FilterRegistry>,
    pipeline: Vec<FilterDescription>,
    /// The chunks that were written, by their places: where, and how long.
    written: HashMap<Vec<u64>, ChunkEntry>,
    /// All elements, of a data set that is small enough to lie in its header.
    compact: Option<Vec<u8>>,
    shape: Vec<u64>,
    /// What every element is that was not written.
    fill: Vec<u8>,
    swaps: bool,
}

impl Decode for Chunks {
    fn decode(
        &self,
        place: &[u64],
        _part: &[Range<u64>],
        sink: &mut dyn FnMut(&[u8], &[u64]),
    ) -> Result<(), String> {
        let size = self.fill.len();
        let count = self.shape.iter().try_fold(1_u64, |n, &d| n.checked_mul(d));
        let len = count.and_then(|n| usize::try_from(n).ok()?.checked_mul(size));
        let len = len.ok_or("it is too long for this machine")?;
        let mut bytes = match (self.written.get(place), &self.compact) {
            (Some(chunk), _) => self.unpacked(chunk, len)?,
            (None, Some(all)) => all.clone(),
            (None, None) => self.fill.repeat(len / size),
        };
        if self.swaps {
            swap_bytes(&mut bytes, size);
        }
        sink(&bytes, &self.shape);
        Ok(())
    }
}

impl Chunks {
    fn unpacked(&self, chunk: &ChunkEntry, len: usize) -> Result<Vec<u8>, String> {
        // Without filters a chunk has no length of its own.
        let stored = if self.pipeline.is_empty() { len as u64 } else { chunk.size };
        let bytes = self.file.read_vec(chunk.address, stored).map_err(|e| e.to_string())?;
        if self.pipeline.is_empty() {
            return Ok(bytes);
        }
        // The crate shuffles byte by byte. A filter of ours in its pipeline would take the bound
        // from what unpacks before it.
        let (size, mask) = (self.fill.len(), chunk.filter_mask);
        let (pipeline, mask, shuffled) = match &*self.pipeline {
            [first, rest @ ..] if first.id == SHUFFLE && mask & 1 == 0 => (rest, mask >> 1, true),
            all => (all, mask, false),
        };
        let most = Some(len + SLACK);
        let bytes =
            apply_pipeline_with_limit(&bytes, pipeline, mask, size, Some(&*self.filters), most)
                .map_err(|e| e.to_string())?;
        Ok(if shuffled { unshuffled(&bytes, size) } else { bytes })
    }
}

/// Undoes [`SHUFFLE`]; what is left over behind whole elements was not moved.
fn unshuffled(bytes: &[u8], size: usize) -> Vec<u8> {
    fn of<const N: usize>(bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        let (items, _) = out.as_chunks_mut::<N>();
        let count = items.len();
        let planes: [&[u8]; N] = core::array::from_fn(|k| &bytes[k * count..][..count]);
        for (i, item) in items.iter_mut().enumerate() {
            *item = core::array::from_fn(|k| planes[k][i]);
        }
        out
    }
    match size {
        2 => of::<2>(bytes),
        4 => of::<4>(bytes),
        8 => of::<8>(bytes),
        _ => bytes.to_vec(),
    }
}

fn zstd(bytes: &[u8]) -> hdf5_reader::error::Result<Vec<u8>> {
    let says = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten();
    if let Some(len) = says.filter(|&len| len <= LONGEST_CHUNK as u64) {
        return Ok(zstd::bulk::decompress(bytes, len as usize)?);
    }
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
    let mut out = Vec::with_capacity(most.min(64 << 20));
    let mut rest = bytes;
    while let Some((&control, behind)) = rest.split_first() {
        let control = usize::from(control);
        if control < 32 {
            let (literal, behind) = behind.split_at_checked(control + 1).ok_or_else(ends)?;
            out.extend_from_slice(literal);
            rest = behind;
        } else {
            let (more, behind) = match control >> 5 {
                7 => behind.split_first().map(|(&more, rest)| (more, rest)).ok_or_else(ends)?,
                _ => (0, behind),
            };
            let (&low, behind) = behind.split_first().ok_or_else(ends)?;
            let mut left = (control >> 5) + usize::from(more) + 2;
            let back = ((control & 31) << 8) + usize::from(low) + 1;
            let from = out.len().checked_sub(back).ok_or_else(ends)?;
            // What is copied may be longer than what it is copied from, which repeats then.
            while left > 0 {
                let run = left.min(out.len() - from);
                out.extend_from_within(from..from + run);
                left -= run;
            }
            rest = behind;
        }
        if out.len() > most {
            return Err(ends());
        }
    }
    Ok(out)
}
