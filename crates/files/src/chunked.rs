//! Arrays that lie in chunks, each compressed by itself: Zarr and HDF5.
//!
//! A chunk is a box of the array. Where the order of elements does not matter, chunks are the
//! blocks that threads take and decode. Along some axes the driver asks for boxes that are made
//! of whole chunks. Either way a chunk is decoded once. Reads in the order of the elements keep
//! the chunks that they are in.

use crate::guard::quietly;
use crate::{Batch, Block, Blocks, Error, ReadAt, Result};
use core::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use warpfold_core::DType;
use warpfold_threads::{Pieces, scoped};

/// Bytes of decoded chunks that reads in the order of the elements keep, one chunk at least.
const KEPT: u64 = 256 << 20;

/// How a format decodes its chunks.
pub(crate) trait Decode: Send + Sync {
    /// Decodes the chunk at `place`, which has the elements `part` of the array. `sink` is given
    /// them in C order and native byte order, with their shape: that of `part`, or the whole
    /// chunk's, with what lies beyond the end of the array.
    fn decode(
        &self,
        place: &[u64],
        part: &[Range<u64>],
        sink: &mut dyn FnMut(&[u8], &[u64]),
    ) -> Result<(), String>;
}

/// An array in chunks.
pub struct Chunked {
    array: Arc<Array>,
    /// What was decoded last, for reads in the order of the elements; the latest are the last.
    kept: Mutex<Vec<(Vec<u64>, Kept)>>,
}

type Kept = Arc<Mutex<Option<Vec<u8>>>>;

/// What there is to know of an array.
pub(crate) struct Array {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
    /// The lengths of a chunk, none of them 0.
    pub(crate) chunk: Vec<u64>,
    pub(crate) decoder: Box<dyn Decode>,
}

fn len(range: &Range<u64>) -> u64 {
    range.end - range.start
}

fn count(part: &[Range<u64>]) -> u64 {
    part.iter().map(len).product()
}

impl Array {
    /// The elements of a chunk.
    fn part(&self, place: &[u64]) -> Vec<Range<u64>> {
        let axes = place.iter().zip(&self.chunk).zip(&self.shape);
        axes.map(|((at, chunk), n)| at * chunk..(at * chunk).saturating_add(*chunk).min(*n))
            .collect()
    }

    /// The places of the chunks that have elements of a box.
    fn places(&self, wanted: &[Range<u64>]) -> Places {
        let axes = wanted.iter().zip(&self.chunk);
        Places::of(axes.map(|(r, chunk)| r.start / chunk..r.end.div_ceil(*chunk)).collect())
    }

    /// Decodes a chunk, and hands its elements and their shape to `sink`.
    fn decode(&self, place: &[u64], sink: &mut dyn FnMut(&[u8], &[u64])) -> Result<()> {
        let size = self.dtype.size() as u64;
        let mut whole = true;
        let mut sound = |bytes: &[u8], shape: &[u64]| {
            whole = shape.iter().product::<u64>() * size == bytes.len() as u64;
            if whole {
                sink(bytes, shape);
            }
        };
        let decoded =
            quietly(&self.name, || Ok(self.decoder.decode(place, &self.part(place), &mut sound)))?;
        let what = match decoded {
            Ok(()) if whole => return Ok(()),
            Ok(()) => "its length is not that of a chunk".into(),
            Err(what) => what,
        };
        let place: Vec<String> = place.iter().map(u64::to_string).collect();
        Err(Error::format(&self.name, format!("chunk ({}): {what}", place.join(", "))))
    }
}

impl Chunked {
    #[cfg_attr(
        not(any(test, feature = "hdf5", feature = "zarr")),
        expect(dead_code, reason = "no format has chunks then")
    )]
    pub(crate) fn new(array: Array) -> Self {
        Chunked { array: Arc::new(array), kept: Mutex::default() }
    }

    /// The shape of a chunk.
    pub(crate) fn chunk(&self) -> &[u64] {
        &self.array.chunk
    }

    /// All chunks, one after the other: not in the order of their elements.
    pub(crate) fn blocks(&self) -> Box<dyn Blocks> {
        let whole: Vec<Range<u64>> = self.array.shape.iter().map(|&n| 0..n).collect();
        Box::new(InTurn { places: self.array.places(&whole), array: Arc::clone(&self.array) })
    }

    /// Fills `out` with the elements of a box, in C order; chunks are decoded by several threads.
    pub(crate) fn read_box(
        &self,
        ranges: &[Range<usize>],
        out: &mut [u8],
        threads: usize,
    ) -> Result<()> {
        let wanted: Vec<Range<u64>> = ranges.iter().map(|r| r.start as u64..r.end as u64).collect();
        let size = self.array.dtype.size();
        let places: Vec<Vec<u64>> = self.array.places(&wanted).collect();
        let pieces = Pieces::new(places.len());
        let out = Mutex::new(out);
        let work = || {
            while let Some(piece) = pieces.take() {
                let place = &places[piece];
                self.array.decode(place, &mut |bytes, shape| {
                    // To copy is little, next to decoding.
                    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
                    copy_box(bytes, &self.array.part(place), shape, &mut out, &wanted, size);
                })?;
            }
            Ok(())
        };
        let threads = threads.min(places.len()).max(1);
        let failed = || Err(Error::format(&self.array.name, "a thread failed"));
        scoped(threads, work).into_iter().try_for_each(|done| done.unwrap_or_else(failed))
    }

    /// The elements of a chunk that is kept, or will be.
    fn kept(&self, place: &[u64]) -> Kept {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().rposition(|(at, _)| at == place);
        let chunk = found.map_or_else(Kept::default, |found| kept.remove(found).1);
        let bytes = self.array.chunk.iter().product::<u64>() * self.array.dtype.size() as u64;
        if kept.len() as u64 >= (KEPT / bytes.max(1)).max(1) {
            kept.remove(0);
        }
        kept.push((place.to_vec(), Arc::clone(&chunk)));
        chunk
    }
}

impl ReadAt for Chunked {
    fn read_at(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let Array { dtype, shape, chunk, .. } = &*self.array;
        let size = dtype.size();
        let (mut next, mut rest) = (first, out);
        while !rest.is_empty() {
            // Where the next element is, and how far its row goes in its chunk.
            let (mut place, mut inside, mut at) = (vec![0; shape.len()], 0, next);
            let mut run = 1;
            let mut strides = 1;
            let mut part = Vec::new();
            for axis in (0..shape.len()).rev() {
                let (index, width) = (at % shape[axis], chunk[axis]);
                at /= shape[axis];
                place[axis] = index / width;
                let here = width.min(shape[axis] - place[axis] * width);
                if axis + 1 == shape.len() {
                    run = here - index % width;
                }
                inside += (index % width) * strides;
                strides *= here;
                part.push(here);
            }
            let kept = self.kept(&place);
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.is_none() {
                let mut bytes = vec![0; strides as usize * size];
                let own = self.array.part(&place);
                self.array.decode(&place, &mut |from, shape| {
                    copy_box(from, &own, shape, &mut bytes, &own, size);
                })?;
                *kept = Some(bytes);
            }
            let run = (run as usize * size).min(rest.len());
            let (to, behind) = rest.split_at_mut(run);
            if let Some(bytes) = &*kept {
                to.copy_from_slice(&bytes[inside as usize * size..][..run]);
            }
            (next, rest) = (next + (run / size) as u64, behind);
        }
        Ok(())
    }

    fn chunks(&self) -> Option<&Chunked> {
        Some(self)
    }
}

/// Copies the elements that two boxes share: from `part`, whose elements lie in `from` as in an
/// array of `shape`, to `wanted`, whose elements are `to`.
fn copy_box(
    from: &[u8],
    part: &[Range<u64>],
    shape: &[u64],
    to: &mut [u8],
    wanted: &[Range<u64>],
    size: usize,
) {
    let both: Vec<Range<u64>> =
        part.iter().zip(wanted).map(|(a, b)| a.start.max(b.start)..a.end.min(b.end)).collect();
    if both.iter().any(Range::is_empty) {
        return;
    }
    // The innermost axes that are whole in both, and the next one, make a run.
    let (mut run, mut outer, mut whole) = (1, both.len(), true);
    while outer > 0 && whole {
        outer -= 1;
        let n = len(&both[outer]);
        run *= n;
        whole = n == shape[outer] && n == len(&wanted[outer]);
    }
    let bytes = run as usize * size;
    for i in 0..count(&both[..outer]) {
        let (mut i, mut at, mut strides) = (i, [0, 0], [1, 1]);
        for axis in (0..both.len()).rev() {
            let mut index = both[axis].start;
            if axis < outer {
                index += i % len(&both[axis]);
                i /= len(&both[axis]);
            }
            at[0] += (index - part[axis].start) * strides[0];
            at[1] += (index - wanted[axis].start) * strides[1];
            strides = [strides[0] * shape[axis], strides[1] * len(&wanted[axis])];
        }
        let [from_at, to_at] = at.map(|at| at as usize * size);
        to[to_at..to_at + bytes].copy_from_slice(&from[from_at..from_at + bytes]);
    }
}

/// The places of a box of chunks, in C order.
struct Places {
    ranges: Vec<Range<u64>>,
    next: Option<Vec<u64>>,
}

impl Places {
    fn of(ranges: Vec<Range<u64>>) -> Self {
        let first = ranges.iter().map(|r| r.start).collect();
        let next = ranges.iter().all(|r| !r.is_empty()).then_some(first);
        Places { ranges, next }
    }
}

impl Iterator for Places {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let place = self.next.take()?;
        let mut after = place.clone();
        for (at, range) in after.iter_mut().zip(&self.ranges).rev() {
            *at += 1;
            if *at < range.end {
                self.next = Some(after);
                break;
            }
            *at = range.start;
        }
        Some(place)
    }
}

/// The chunks of an array in turn.
struct InTurn {
    array: Arc<Array>,
    places: Places,
}

impl Blocks for InTurn {
    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        let array = Arc::clone(&self.array);
        Ok(self.places.next().map(|place| Box::new(Chunk { array, place }) as _))
    }
}

struct Chunk {
    array: Arc<Array>,
    place: Vec<u64>,
}

impl Block for Chunk {
    fn rows(&self) -> Option<u64> {
        Some(count(&self.array.part(&self.place)))
    }

    fn bytes(&self) -> u64 {
        count(&self.array.part(&self.place)) * self.array.dtype.size() as u64
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        let Array { dtype, .. } = *self.array;
        let part = self.array.part(&self.place);
        batch.reset(dtype);
        let out = batch.grow(self.bytes() as usize);
        self.array.decode(&self.place, &mut |bytes, shape| {
            copy_box(bytes, &part, shape, out, &part, dtype.size());
        })?;
        sink(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// An array whose elements are their indices in C order; chunks may come whole.
    struct Indices {
        shape: Vec<u64>,
        chunk: Vec<u64>,
        whole: bool,
        decoded: Arc<AtomicUsize>,
    }

    impl Decode for Indices {
        fn decode(
            &self,
            _: &[u64],
            part: &[Range<u64>],
            sink: &mut dyn FnMut(&[u8], &[u64]),
        ) -> Result<(), String> {
            self.decoded.fetch_add(1, Ordering::Relaxed);
            let lens: Vec<u64> =
                if self.whole { self.chunk.clone() } else { part.iter().map(len).collect() };
            let mut bytes = Vec::new();
            for i in 0..lens.iter().product() {
                let (mut i, mut index, mut stride) = (i, 0, 1);
                for axis in (0..lens.len()).rev() {
                    index += (part[axis].start + i % lens[axis]) * stride;
                    i /= lens[axis];
                    stride *= self.shape[axis];
                }
                bytes.extend(index.to_ne_bytes());
            }
            sink(&bytes, &lens);
            Ok(())
        }
    }

    fn indices(shape: &[u64], chunk: &[u64], whole: bool) -> (Chunked, Arc<AtomicUsize>) {
        let decoded = Arc::new(AtomicUsize::new(0));
        let (shape, chunk) = (shape.to_vec(), chunk.to_vec());
        let decoder = Box::new(Indices {
            shape: shape.clone(),
            chunk: chunk.clone(),
            whole,
            decoded: Arc::clone(&decoded),
        });
        let array = Array { name: "x".into(), dtype: DType::U64, shape, chunk, decoder };
        (Chunked::new(array), decoded)
    }

    const SHAPES: [(&[u64], &[u64]); 7] = [
        (&[], &[]),
        (&[7], &[3]),
        (&[6, 4], &[2, 4]),
        (&[5, 7], &[2, 3]),
        (&[4, 3, 5], &[3, 2, 2]),
        (&[3, 1, 4], &[5, 1, 9]),
        (&[2, 0, 3], &[2, 2, 2]),
    ];

    #[test]
    fn reads_in_order_have_the_elements_and_decode_each_chunk_once() {
        for (shape, chunk) in SHAPES {
            for whole in [false, true] {
                let (array, decoded) = indices(shape, chunk, whole);
                let n: u64 = shape.iter().product();
                for step in [1, 3, 1000] {
                    for first in (0..n).step_by(step) {
                        let len = (n - first).min(step as u64);
                        let mut words = vec![0u64; len as usize];
                        array.read_at(first, bytemuck::cast_slice_mut(&mut words)).unwrap();
                        assert!(
                            words.iter().copied().eq(first..first + len),
                            "{shape:?} {words:?}"
                        );
                    }
                }
                let chunks: u64 = shape.iter().zip(chunk).map(|(n, c)| n.div_ceil(*c)).product();
                assert_eq!(decoded.load(Ordering::Relaxed) as u64, chunks, "{shape:?}");
            }
        }
    }

    #[test]
    fn boxes_have_the_elements_of_their_chunks() {
        let (shape, chunk) = ([5u64, 7, 4], [2, 3, 3]);
        for (i, ranges) in
            [[0..5, 0..7, 0..4], [2..4, 3..6, 0..3], [1..4, 2..7, 1..2], [4..5, 6..7, 3..4]]
                .into_iter()
                .enumerate()
        {
            let (array, decoded) = indices(&shape, &chunk, i % 2 == 0);
            let n: usize = ranges.iter().map(Range::len).product();
            let mut words = vec![u64::MAX; n];
            array.read_box(&ranges, bytemuck::cast_slice_mut(&mut words), 3).unwrap();
            let mut found = words.iter();
            for a in ranges[0].clone() {
                for b in ranges[1].clone() {
                    for c in ranges[2].clone() {
                        assert_eq!(*found.next().unwrap(), (a * 28 + b * 4 + c) as u64);
                    }
                }
            }
            let chunks = [3 * 3 * 2, 1, 2 * 3, 1][i];
            assert_eq!(decoded.load(Ordering::Relaxed), chunks);
        }
    }

    #[test]
    fn blocks_have_all_elements_once() {
        for (shape, chunk) in SHAPES {
            let (array, _) = indices(shape, chunk, true);
            let (mut blocks, mut found) = (array.blocks(), Vec::<u64>::new());
            let mut batch = Batch::new(DType::U64);
            while let Some(block) = blocks.next_block().unwrap() {
                let rows = block.rows();
                block
                    .decode(&mut batch, &mut |batch| {
                        assert_eq!(Some(batch.rows()), rows);
                        found.extend(
                            batch
                                .bytes()
                                .chunks(8)
                                .map(|b| u64::from_ne_bytes(b.try_into().unwrap())),
                        );
                        Ok(())
                    })
                    .unwrap();
            }
            found.sort_unstable();
            assert!(found.iter().copied().eq(0..shape.iter().product()), "{shape:?}");
        }
    }
}
