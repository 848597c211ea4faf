//! Zarr, versions 2 and 3: a folder for each array, with a file for each chunk or shard.

use crate::chunked::{Array as ChunkedArray, Chunked, Decode};
use crate::guard::quietly;
use crate::open::OpenOptions;
use crate::{Access, Description, Error, Extent, Format, Order, Result, Source, container};
use core::ops::Range;
use std::path::Path;
use std::sync::Arc;
use warpfold_core::DType;
use zarrs::array::{Array, ArrayBytes, ArrayMetadata, ArrayShardedExt, CodecOptions};
use zarrs::array::{ArrayShardedReadableExt, ArrayShardedReadableExtCache};
use zarrs::filesystem::FilesystemStore;
use zarrs::group::Group;
use zarrs::node::NodeMetadata;

/// The arrays chosen from a folder, which is one or has some.
pub(crate) fn open(
    folder: &Path,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let found = Folder::open(folder)?;
    let is_read = |i: usize| found.array(i).is_ok_and(|array| element(&array).is_ok());
    let chosen = container::choose(&found.name, &found.names, member, &options.columns, is_read)?;
    chosen.into_iter().map(|i| found.source(i, options)).collect()
}

/// What `inspect` says about a folder.
pub(crate) fn inspect(folder: &Path) -> Result<Vec<Description>> {
    let found = Folder::open(folder)?;
    (0..found.names.len()).map(|i| found.describe(i)).collect()
}

type Stored = Array<FilesystemStore>;

/// A folder with the names of the arrays in it.
struct Folder {
    name: String,
    store: Arc<FilesystemStore>,
    names: Vec<String>,
}

impl Folder {
    fn open(folder: &Path) -> Result<Self> {
        let name = folder.display().to_string();
        let damaged = |what: String| Error::format(&name, format!("damaged Zarr metadata: {what}"));
        let store = FilesystemStore::new(folder).map_err(|e| damaged(e.to_string()))?;
        let store = Arc::new(store);
        let is_group = [("zarr.json", "\"group\""), (".zgroup", "")].iter().any(|(file, word)| {
            std::fs::read_to_string(folder.join(file)).is_ok_and(|text| text.contains(word))
        }) && !folder.join(".zarray").exists();
        let names = if is_group {
            let nodes = quietly(&name, || {
                let group =
                    Group::open(Arc::clone(&store), "/").map_err(|e| damaged(e.to_string()))?;
                group.traverse().map_err(|e| damaged(e.to_string()))
            })?;
            let arrays = nodes.iter().filter(|(_, node)| matches!(node, NodeMetadata::Array(_)));
            let mut names: Vec<String> =
                arrays.map(|(path, _)| path.as_str().trim_start_matches('/').into()).collect();
            names.sort_unstable();
            names
        } else {
            vec![String::new()]
        };
        Ok(Folder { name, store, names })
    }

    fn array(&self, i: usize) -> Result<Stored> {
        let name = container::joined(&self.name, &self.names[i]);
        quietly(&name, || {
            Array::open(Arc::clone(&self.store), &format!("/{}", self.names[i]))
                .map_err(|e| Error::format(&name, format!("damaged Zarr metadata: {e}")))
        })
    }

    fn source(&self, i: usize, options: &OpenOptions) -> Result<Source> {
        let name = container::joined(&self.name, &self.names[i]);
        let array = self.array(i)?;
        let dtype = element(&array).map_err(|what| Error::format(&name, what))?;
        options.expect_dtype(options.dtype, dtype, &name)?;
        let shape = lengths(&array).map_err(|what| Error::format(&name, what))?;
        let chunk = grid(&array, dtype.size()).map_err(|what| Error::format(&name, what))?;
        let bytes = shape.iter().try_fold(dtype.size() as u64, |n, &d| n.checked_mul(d as u64));
        let parts = in_parts(&array, dtype.size());
        let cache = parts.then(|| ArrayShardedReadableExtCache::new(&array));
        let decoder = Chunks { cache, array, shape: chunk.clone() };
        let array = ChunkedArray {
            name: name.clone(),
            dtype,
            shape: decoder.array.shape().to_vec(),
            chunk,
            decoder: Box::new(decoder),
        };
        Ok(Source {
            name,
            dtype,
            extent: Extent::Array { shape, order: Order::C },
            bytes,
            access: Access::Random(Box::new(Chunked::new(array))),
        })
    }

    fn describe(&self, i: usize) -> Result<Description> {
        let array = self.array(i)?;
        let (dtype, why_not) = match element(&array) {
            Ok(dtype) => (Some(dtype), None),
            Err(why_not) => (None, Some(why_not)),
        };
        let extent = lengths(&array).ok().map(|shape| Extent::Array { shape, order: Order::C });
        Ok(Description {
            name: container::joined(&self.name, &self.names[i]),
            format: Format::Zarr,
            stored_as: stored_as(&array),
            dtype,
            why_not,
            extent,
            endian: None,
            offset: None,
            bytes: None,
            compression: compression(&array),
            unit: None,
        })
    }
}

fn stored_as(array: &Stored) -> String {
    match array.metadata() {
        ArrayMetadata::V3(metadata) => metadata.data_type.name().to_string(),
        ArrayMetadata::V2(metadata) => {
            serde_json::to_string(&metadata.dtype).unwrap_or_default().trim_matches('"').into()
        }
    }
}

/// The type of the elements, in the machine's byte order once they are decoded.
fn element(array: &Stored) -> Result<DType, String> {
    // Of version 3, and of version 2 behind it where that is another.
    let names = array.data_type().to_string();
    Ok(match names.split(" / ").next().unwrap_or_default() {
        "bool" => DType::Bool,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" => DType::I64,
        "uint8" => DType::U8,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        "float32" => DType::F32,
        "float64" => DType::F64,
        _ => return Err(format!("elements of type {} are not read", stored_as(array))),
    })
}

fn lengths(array: &Stored) -> Result<Vec<usize>, String> {
    let shape = array.shape().iter().map(|&n| usize::try_from(n));
    shape.collect::<Result<_, _>>().map_err(|_| "it is too long for this machine".into())
}

/// Bytes of a shard that is decoded as a whole: its file is read once then.
const WHOLE: u64 = 32 << 20;

/// Whether the chunks in a shard are decoded one by one.
fn in_parts(array: &Stored, size: usize) -> bool {
    let first = vec![0; array.shape().len()];
    let shard = array
        .chunk_shape(&first)
        .map_or(u64::MAX, |shape| shape.iter().fold(size as u64, |n, d| n.saturating_mul(d.get())));
    array.is_sharded() && shard > WHOLE
}

/// The lengths of the chunks; of long shards, those of the chunks in them.
fn grid(array: &Stored, size: usize) -> Result<Vec<u64>, String> {
    let parts = in_parts(array, size);
    let grid = if parts { array.subchunk_grid() } else { array.chunk_grid().clone() };
    if array.shape().contains(&0) {
        return Ok(vec![1; array.shape().len()]);
    }
    let first = vec![0; array.shape().len()];
    let last: Vec<u64> = grid.grid_shape().iter().map(|n| n.saturating_sub(1)).collect();
    let [first, last] = [first, last].map(|place| grid.chunk_shape(&place).ok().flatten());
    match first {
        Some(shape) if last.as_ref() == Some(&shape) => Ok(shape.iter().map(|n| n.get()).collect()),
        _ => Err("chunks of several shapes are not read".into()),
    }
}

/// The codecs that make bytes of bytes.
fn compression(array: &Stored) -> Option<String> {
    let named = match array.metadata() {
        ArrayMetadata::V3(metadata) => {
            let all = metadata.codecs.iter().map(|codec| codec.name().to_string());
            all.filter(|name| name != "bytes" && name != "transpose").collect::<Vec<_>>()
        }
        ArrayMetadata::V2(metadata) => {
            let filters = metadata.filters.iter().flatten();
            filters.chain(&metadata.compressor).map(|codec| codec.id().to_string()).collect()
        }
    };
    (!named.is_empty()).then(|| named.join(", "))
}

struct Chunks {
    array: Stored,
    /// The indices of shards whose chunks are decoded one by one.
    cache: Option<ArrayShardedReadableExtCache>,
    /// The shape of a chunk, those at the end of the array included.
    shape: Vec<u64>,
}

impl Decode for Chunks {
    fn decode(
        &self,
        place: &[u64],
        _part: &[Range<u64>],
        sink: &mut dyn FnMut(&[u8], &[u64]),
    ) -> Result<(), String> {
        // The threads have a chunk each.
        let options = CodecOptions::default().with_concurrent_target(1);
        let bytes: Result<ArrayBytes<'static>, _> = match &self.cache {
            Some(cache) => self.array.retrieve_subchunk_opt(cache, place, &options),
            None => self.array.retrieve_chunk_opt(place, &options),
        };
        let bytes = bytes.map_err(|e| e.to_string())?;
        let bytes = bytes.into_fixed().map_err(|e| e.to_string())?;
        sink(&bytes, &self.shape);
        Ok(())
    }
}
