//! Full reductions: every element goes into the same states.

use super::failure::Failure;
use super::feed::Feed;
use super::ledger::Ledger;
use super::numbered::read_numbered;
use super::{Piece, Progress, advance, wants_indices};
use crate::source::element_count;
use crate::{Access, Batch, Block, Blocks, Error, Extent, Order, ReadAt, Result, Source};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use warpfold::internal::{ForReaders, Workers};
use warpfold::{DType, Partial, Reduction};
use warpfold_core::layout::Traversal;
use warpfold_core::op::RawRun;
use warpfold_threads::{join, scoped};

/// Reduces pieces one after the other into one partial.
pub(super) fn partial(
    pieces: Vec<Piece>,
    reduction: &Reduction,
    start: u64,
    progress: &dyn Progress,
) -> Result<Partial> {
    let mut whole: Option<Partial> = None;
    let mut start = start;
    for piece in pieces {
        let job = Flat { reduction, start, progress };
        let name = piece.items.name.clone();
        let (partial, end) = match piece.others {
            None => job.one(piece.items)?,
            Some(others) => job.pair(piece.items, others)?,
        };
        start = end;
        match &mut whole {
            None => whole = Some(partial),
            Some(whole) => {
                whole.merge(&partial).map_err(|source| Error::Reduce { name, source })?;
            }
        }
    }
    whole.ok_or_else(|| Error::format("no input", "there is nothing to reduce"))
}

/// Where the blocks of a sequential source come from.
#[derive(Clone, Copy)]
struct Origin<'a> {
    name: &'a str,
    /// The walk in file order, where that is not the order of the indices.
    walk: Option<&'a Traversal>,
}

struct Flat<'a> {
    reduction: &'a Reduction,
    start: u64,
    progress: &'a dyn Progress,
}

impl Flat<'_> {
    /// Workers for each thread, merged in the end; `work` feeds a thread's
    /// workers and says how many rows were missing.
    fn on_threads(
        &self,
        source: &str,
        dtype: DType,
        most: usize,
        work: impl Fn(&mut Workers, &Failure) -> u64 + Sync,
    ) -> Result<Partial> {
        let failure = Failure::new();
        let wrong = |e| Error::Reduce { name: source.into(), source: e };
        let threads = self.reduction.thread_count().clamp(1, most.max(1));
        let run = || -> Option<Partial> {
            let part = || -> warpfold::Result<Partial> {
                let mut workers = self.reduction.workers(dtype, 1)?;
                let missing = work(&mut workers, &failure);
                let mut partial = self.reduction.gather(dtype, workers)?;
                partial.add_missing(missing);
                Ok(partial)
            };
            part().map_err(|error| failure.record(0, wrong(error))).ok()
        };
        let parts = scoped(threads, run).into_iter().map(Option::flatten);
        failure.into_result()?;
        let mut whole: Option<Partial> = None;
        for part in parts {
            // No error was recorded, so only a panic can have lost a part.
            let part = part.ok_or_else(|| Error::format(source, "a thread failed"))?;
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => whole.merge(&part).map_err(wrong)?,
            }
        }
        whole.ok_or_else(|| Error::format(source, "no thread ran"))
    }

    /// Reduces one source; says where the next one begins.
    fn one(&self, source: Source) -> Result<(Partial, u64)> {
        let walk = walk(&source, self.reduction);
        match source.access {
            Access::Random(ref reader) => match reader.chunks() {
                // In the order of chunks: nobody asks where an element is.
                Some(chunks) if !wants_indices(self.reduction) => {
                    self.sequential(&source.name, source.dtype, chunks.blocks(), None)
                }
                _ => self.random(&source, reader.as_ref(), walk),
            },
            Access::Sequential(blocks) => {
                self.sequential(&source.name, source.dtype, blocks, walk.as_ref())
            }
            Access::Column(column) => {
                let blocks = column.blocks(source.dtype)?;
                self.sequential(&source.name, source.dtype, blocks, None)
            }
        }
    }

    /// Where the piece ends that begins at `start`; the last position of all
    /// stands for none.
    fn end(&self, name: &str, start: u64, len: u64) -> Result<u64> {
        start.checked_add(len).ok_or_else(|| {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            Error::Reduce {
                name: name.into(),
                source: warpfold::Error::StartTooLarge { start, len },
            }
        })
    }

    fn random(
        &self,
        source: &Source,
        reader: &dyn ReadAt,
        walk: Option<Traversal>,
    ) -> Result<(Partial, u64)> {
        let dtype = source.dtype;
        let size = dtype.size();
        let len = length(source)?;
        let end = self.end(&source.name, self.start, len)?;
        let read = self.reduction.best_run();
        let step = (read / size) as u64;
        let next = AtomicU64::new(0);
        let most = usize::try_from(len.div_ceil(step)).unwrap_or(usize::MAX);
        let most = most.min(self.reduction.most_readers());
        let name = source.name.as_str();
        let wrong = |source| Error::Reduce { name: name.into(), source };
        let work = |workers: &mut Workers, failure: &Failure| {
            loop {
                let first = next.fetch_add(step, Ordering::Relaxed);
                if first >= len || failure.precedes(first) {
                    break;
                }
                let bytes = (len - first).min(step) as usize * size;
                let fetch = |before: usize, out: &mut [u8]| {
                    reader.read_at(first + (before / size) as u64, out)
                };
                let done = workers
                    .absorb_from(first, bytes, walk.as_ref(), self.start, fetch)
                    .unwrap_or_else(|error| Err(wrong(error)));
                let done = done.and_then(|()| advance(self.progress, bytes as u64));
                if let Err(error) = done {
                    failure.record(first, error);
                    break;
                }
            }
            0
        };
        let partial = self.on_threads(name, dtype, most, work)?;
        Ok((partial, end))
    }

    fn sequential(
        &self,
        name: &str,
        dtype: DType,
        mut blocks: Box<dyn Blocks>,
        walk: Option<&Traversal>,
    ) -> Result<(Partial, u64)> {
        let origin = Origin { name, walk };
        let ledger = Ledger::new(self.start);
        let threads = self.reduction.thread_count();
        let failed = AtomicBool::new(false);
        let next = |number| -> Result<Option<Box<dyn Block>>> {
            let block = blocks.next_block()?;
            if let Some(rows) = block.as_ref().and_then(|block| block.rows()) {
                ledger.record(number, rows);
            }
            Ok(block)
        };
        let (partial, read) = read_numbered(name, threads + 1, &failed, next, |ahead| {
            let work = |workers: &mut Workers, failure: &Failure| {
                let mut batch = Batch::new(dtype);
                let mut missing = 0;
                while let Some((number, block)) = ahead.take() {
                    if failure.precedes(number) {
                        continue;
                    }
                    let bytes = block.bytes();
                    let done = self.block(origin, workers, &mut batch, number, block, &ledger);
                    match done.and_then(|n| advance(self.progress, bytes).map(|()| n)) {
                        Ok(n) => missing += n,
                        Err(error) => {
                            failed.store(true, Ordering::Relaxed);
                            failure.record(number, error);
                            // Those who wait for this block's rows must not.
                            ledger.abort();
                            continue;
                        }
                    }
                }
                missing
            };
            self.on_threads(name, dtype, usize::MAX, work)
        });
        // What a worker found comes earlier in the file.
        let partial = partial?;
        read?;
        Ok((partial, ledger.end()))
    }

    /// Decodes and absorbs one block; says how many rows were missing.
    fn block(
        &self,
        Origin { name, walk }: Origin<'_>,
        workers: &mut Workers,
        batch: &mut Batch,
        number: u64,
        block: Box<dyn Block>,
        ledger: &Ledger,
    ) -> Result<u64> {
        let rows = block.rows();
        let mut missing = 0;
        let mut start = match rows {
            Some(_) => ledger.start_of(number),
            None => None,
        };
        let mut batches = 0;
        block.decode(batch, &mut |batch| {
            if rows.is_none() {
                ledger.record(number, batch.rows());
                start = ledger.start_of(number);
            }
            batches += 1;
            missing += batch.missing();
            // Without a start the ledger was aborted: there is an error
            // already, and what is absorbed does not count.
            let at = start.unwrap_or(self.start);
            let end = self.end(name, at, batch.rows())?;
            absorb_batch(workers, batch, at, walk, self.start)
                .map_err(|source| Error::Reduce { name: name.into(), source })?;
            start = start.map(|_| end);
            Ok(())
        })?;
        if rows.is_none() && batches == 0 {
            ledger.record(number, 0);
        }
        Ok(missing)
    }

    /// Reduces two sources element by element.
    fn pair(&self, left: Source, right: Source) -> Result<(Partial, u64)> {
        let dtype = left.dtype;
        let size = dtype.size();
        let (left_name, right_name) = (left.name.clone(), right.name.clone());
        let wrong = |source| Error::Reduce { name: left_name.clone(), source };
        let mut left = Feed::new(left)?;
        let mut right = Feed::new(right)?;
        let mut workers = self.reduction.workers(dtype, 2).map_err(wrong)?;
        let words = self.reduction.best_run() / 8;
        let mut buffers = [vec![0u64; words], vec![0u64; words]];
        let mut start = self.start;
        loop {
            let [a, b] = &mut buffers;
            let a: &mut [u8] = bytemuck::cast_slice_mut(a);
            let b: &mut [u8] = bytemuck::cast_slice_mut(b);
            let (n, m) = join(|| left.fill(a), || right.fill(b));
            let m = m.unwrap_or_else(|| Err(Error::format(&*right_name, "reading failed")));
            let (n, m) = (n?, m?);
            if n != m {
                let (longer, shorter) =
                    if n > m { (&left_name, &right_name) } else { (&right_name, &left_name) };
                let len = start - self.start + (n.min(m) / size) as u64;
                return Err(Error::format(
                    shorter.clone(),
                    format!("it has {len} elements, fewer than {longer}"),
                ));
            }
            if n == 0 {
                break;
            }
            let end = self.end(&left_name, start, (n / size) as u64)?;
            let run = RawRun { start, items: &a[..n], others: &b[..n] };
            workers.absorb(run).map_err(wrong)?;
            start = end;
            advance(self.progress, 2 * n as u64)?;
        }
        Ok((self.reduction.gather(dtype, workers).map_err(wrong)?, start))
    }
}

/// How many elements a source with random access has.
pub(super) fn length(source: &Source) -> Result<u64> {
    match &source.extent {
        Extent::Array { shape, .. } => element_count(shape).ok_or_else(|| {
            let what = format!("the shape {shape:?} has more elements than can be counted");
            Error::format(source.name.clone(), what)
        }),
        Extent::Column { rows: Some(rows) } => Ok(*rows),
        Extent::Column { rows: None } => {
            Err(Error::format(source.name.clone(), "its length is not known"))
        }
    }
}

/// The walk in file order, where that is not the order of the indices and
/// somebody asks for them.
fn walk(source: &Source, reduction: &Reduction) -> Option<Traversal> {
    let Extent::Array { shape, order: Order::Fortran } = &source.extent else { return None };
    // Without elements there is nowhere to walk, whatever the other axes are.
    if !wants_indices(reduction) || shape.contains(&0) {
        return None;
    }
    let mut stride = source.dtype.size().cast_signed();
    let axes: Vec<(usize, [isize; 2])> = shape
        .iter()
        .map(|&n| {
            let this = stride;
            stride = stride.saturating_mul(n.cast_signed());
            (n, [this, 0])
        })
        .collect();
    Some(Traversal::new(&axes, true))
}

/// Absorbs a batch whose first row comes `start - base` rows after the source's
/// first one, which has index `base`. With a walk there are no gaps: only whole
/// arrays have one.
fn absorb_batch(
    workers: &mut Workers,
    batch: &Batch,
    start: u64,
    walk: Option<&Traversal>,
    base: u64,
) -> warpfold::Result<()> {
    let run = RawRun { start, items: batch.bytes(), others: &[] };
    if !batch.wide.is_empty() {
        workers.absorb_wide(batch.wide.iter().map(|&(row, decimal)| (start + row, decimal)));
    }
    if let Some(walk) = walk {
        workers.absorb_along(RawRun { start: start.saturating_sub(base), ..run }, Some(walk), base)
    } else if batch.gaps().is_empty() {
        workers.absorb(run)
    } else {
        workers.absorb_around(run, batch.gaps().iter().map(|gap| (gap.row, gap.len)))
    }
}
