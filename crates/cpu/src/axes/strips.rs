//! Outputs of a few elements, in strips whose accumulators and copies stay in the first cache.
//!
//! A block of outputs has accumulators in memory, which cost more than a few elements do. Of
//! a strip all elements are at hand at once: accumulators answer it from registers if they
//! can, and otherwise a part of it at a time. Neighbours that lie in many short runs are
//! copied together, so that the loops over them are long.

use super::fold::{Cells, Left};
use super::lengths::Lengths;
use super::prepare::{Preparation, Prepare};
use super::run::{Run, Space};
use super::short;
use super::walk::{BUFFER, Form, SHORT_ROW, Segment};
use crate::pack::{Pack, room};
use crate::table::Table;
use core::ops::Range;
use warpfold_core::op::Several;

/// The most outputs of a strip, and the most bytes of a row where elements are short.
const STRIP: usize = 1024;
const STRIP_BYTES: usize = 8192;
/// Outputs that have accumulators at a time.
const CELLS: usize = 256;
/// Rows of columns far apart that are read at a time where they lie: each is a stream of its own.
const STREAMS: usize = 16;
/// Bytes from row to row that are far.
const FAR: isize = 2048;
/// Of fewer outputs there is nothing to put side by side.
const FEW: usize = 8;
/// Outputs of more elements are not gathered: each is worth a call.
const GATHERED: usize = 256;
/// Runs of fewer outputs cost more to begin than to read, unless their elements have so many
/// bytes, and those of a row fill vectors.
const SHORT_RUN: usize = 128;
const MANY_BYTES: usize = 4096;
const VECTORS: usize = 128;

/// How strips of a walk are read.
pub(super) struct Strips {
    /// The most outputs of a strip.
    pub(super) len: usize,
    /// Outputs of a run that is read where it lies: no strip has a part of two.
    run: usize,
    /// Elements of each.
    elements: usize,
    /// The bytes to the first element of each run along the innermost reduced axis.
    outer: Several<[isize; 2]>,
}

impl Strips {
    /// Where the strip ends that begins with this output.
    pub(super) fn end(&self, from: usize) -> usize {
        from + self.len.min(self.run - from % self.run)
    }
}

impl Run<'_> {
    /// The strips of the walk, if its outputs have few elements and these are worth it: if
    /// all operations are answered quickly, or the elements lie in many short runs.
    pub(super) fn strips_for(&self, quick: bool) -> Option<Strips> {
        let walk = &self.walk;
        let elements = walk.elements();
        let run = walk.kept.last().map_or(1, |axis| axis.len);
        let worth = quick || run < SHORT_RUN;
        // Short runs of outputs are no columns, and their copies are.
        let inner = walk.reduced.last().map_or(1, |&(len, _)| len);
        let scattered = run < FEW && inner < elements && inner * self.item.size() < SHORT_ROW;
        let short = walk.copied[0] || elements * self.item.size() < SHORT_ROW || scattered;
        let columns = walk.form == Form::Columns || short && walk.outputs() >= FEW;
        // Of more elements, what lies in short runs both ways is copied, too, if there is room
        // for a few outputs.
        let many = !scattered || walk.together(elements) < FEW || walk.copied[1];
        if !columns || elements > short::MOST && many || !worth {
            return None;
        }
        let bytes = run * self.item.size();
        let begun = run >= SHORT_RUN || bytes >= VECTORS && elements * bytes >= MANY_BYTES;
        let lies = walk.copied == [false; 2] && begun && walk.form == Form::Columns;
        let along = walk.reduced.last().map_or(0, |&(_, strides)| strides[0]);
        if lies && elements > STREAMS && along.abs() >= FAR {
            return None;
        }
        // Where nothing is copied nothing needs room: a strip is a whole run of columns where
        // it lies, or a part of a long one. Long elements are read faster by parts that would
        // fit the buffer.
        let whole = lies && (run >= STRIP || self.item.size() < short::LONG);
        let strip = STRIP.max(STRIP_BYTES / self.item.size());
        let room = if whole { run } else { walk.together(elements) };
        let len = room.min(strip);
        let run = if lies { run } else { usize::MAX };
        Some(Strips { len, run, elements, outer: walk.runs() })
    }

    /// The elements of the outputs of a strip, copied to the buffers where they do not lie in
    /// columns.
    pub(super) fn strip_tables(
        &self,
        strips: &Strips,
        outputs: Range<usize>,
        space: &mut Space,
    ) -> StripTables<'_> {
        let (walk, count, sizes) = (&self.walk, outputs.len(), self.sizes());
        let Space { segments, strip: buffers, initial, .. } = space;
        walk.segments(outputs.start, outputs.end, segments);
        let (len, along) = walk.reduced.last().copied().unwrap_or((1, [0; 2]));
        let beside = walk.kept.last().map_or([0; 2], |axis| axis.strides);
        let mut tables: [Several<Table<'_, ()>>; 2] = Default::default();
        for (array, (tables, buffer)) in tables.iter_mut().zip(buffers).enumerate() {
            let Some(origin) = self.origins[array] else { continue };
            let (along, beside, size) = (along[array], beside[array], sizes[array]);
            let at = |offsets: [isize; 2], outer: [isize; 2]| {
                origin.wrapping_byte_offset(offsets[array] + outer[array])
            };
            let lies = walk.form == Form::Columns && !walk.copied[array];
            if let ([segment], true) = (&segments[..], lies) {
                tables.extend(strips.outer.iter().map(|&outer| {
                    Table::of_any(at(segment.offsets, outer).cast(), along, len, count)
                }));
                continue;
            }
            let bytes = strips.elements * count * size;
            let all = room(buffer, bytes);
            for Band { first, count: many, stride } in bands(segments, array) {
                // An element of all outputs of many short runs at a time, or all of one segment.
                // What is read again, as many times as there are elements, stays in the first cache.
                let near = len == 1 || many * stride.unsigned_abs() <= BUFFER;
                let across = many > len && near && beside == size.cast_signed();
                let (each, calls) = if across { (1, len) } else { (many, 1) };
                let (rows, row_stride, pitch) =
                    if across { (many, stride, first.len) } else { (len, along, count) };
                for segment in 0..each {
                    for (i, &outer) in strips.outer.iter().enumerate() {
                        for j in 0..calls {
                            let place = (i * len + j) * count + first.place + segment * first.len;
                            let skip = segment.cast_signed() * stride + j.cast_signed() * along;
                            let pack = Pack {
                                from: at(first.offsets, outer).wrapping_byte_offset(skip),
                                size,
                                rows,
                                columns: first.len,
                                row_stride,
                                column_stride: beside,
                            };
                            // SAFETY: the table is among the walk's elements, which may be read.
                            unsafe { pack.fill_beside(&mut all[place * size..], pitch) };
                        }
                    }
                }
            }
            let stride = (count * size).cast_signed();
            tables.push(Table::of_any(all.as_ptr().cast(), stride, strips.elements, count));
        }
        let extra = self.add_initial_table(&mut tables, count, initial);
        let elements = strips.elements;
        StripTables { tables, count, elements, extra, inner: len, sizes }
    }

    /// How many outputs are gathered at a time, if it is worth it.
    pub(super) fn gathered_together(&self) -> Option<usize> {
        let elements = self.len();
        (elements <= GATHERED).then(|| (BUFFER / self.item.size() / elements.max(1)).max(FEW))
    }

    /// The elements of some outputs from anywhere, copied to the buffers: a strip of them. They are
    /// found in the first array's order.
    pub(super) fn gathered(
        &self,
        outputs: impl ExactSizeIterator<Item = usize>,
        space: &mut Space,
    ) -> StripTables<'_> {
        let (walk, count) = (&self.walk, outputs.len());
        let Space { segments, gathered: buffers, initial, .. } = space;
        let mut offsets = Vec::with_capacity(count);
        for output in outputs {
            walk.segments(output, output + 1, segments);
            offsets.extend(segments.first().map(|segment| segment.offsets));
        }
        let (len, along) = walk.reduced.last().copied().unwrap_or((1, [0; 2]));
        let (runs, elements, sizes) = (walk.runs(), self.len(), self.sizes());
        let mut tables: [Several<Table<'_, ()>>; 2] = Default::default();
        for (array, (tables, buffer)) in tables.iter_mut().zip(buffers).enumerate() {
            let Some(origin) = self.origins[array] else { continue };
            let size = sizes[array];
            let gather = match size {
                1 => gather::<1>,
                2 => gather::<2>,
                4 => gather::<4>,
                _ => gather::<8>,
            };
            let all = room(buffer, elements * count * size);
            for (i, row) in all.chunks_exact_mut(count * size).enumerate() {
                let step = runs[i / len][array] + (i % len).cast_signed() * along[array];
                let from = origin.wrapping_byte_offset(step);
                // SAFETY: elements of the walk, which may be read and have this size.
                unsafe { gather(from, &offsets, array, row) };
            }
            let stride = (count * size).cast_signed();
            tables.push(Table::of_any(all.as_ptr().cast(), stride, elements, count));
        }
        let extra = self.add_initial_table(&mut tables, count, initial);
        StripTables { tables, count, elements, extra, inner: len, sizes }
    }

    /// One more element of each output, if there is an initial value: how many there are.
    fn add_initial_table<'t>(
        &self,
        tables: &mut [Several<Table<'t, ()>>; 2],
        count: usize,
        buffer: &mut Vec<u64>,
    ) -> usize {
        let table = self.initial_row(count, buffer);
        let extra = usize::from(table.is_some());
        tables[0].extend(table);
        extra
    }
}

/// Copies elements of `N` bytes that lie at these offsets in an array.
///
/// # Safety
/// They may be read.
unsafe fn gather<const N: usize>(
    from: *const u8,
    offsets: &[[isize; 2]],
    array: usize,
    to: &mut [u8],
) {
    for (offsets, to) in offsets.iter().zip(to.chunks_exact_mut(N)) {
        let at = from.wrapping_byte_offset(offsets[array]).cast::<[u8; N]>();
        // SAFETY: passed on from the caller; any bytes make such an array.
        to.copy_from_slice(unsafe { &*at });
    }
}

/// Segments of one length, each `stride` bytes after the one before, whose outputs follow each
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Band {
    first: Segment,
    count: usize,
    stride: isize,
}

/// The segments in bands, as they lie in an array.
fn bands(segments: &[Segment], array: usize) -> impl Iterator<Item = Band> {
    let mut rest = segments;
    core::iter::from_fn(move || {
        let (&first, others) = rest.split_first()?;
        let stride = others.first().map_or(0, |next| next.offsets[array] - first.offsets[array]);
        let mut last = first;
        let mut follows = |&next: &Segment| {
            let near = next.offsets[array] - last.offsets[array] == stride && next.len == first.len;
            last = next;
            near
        };
        let count = 1 + others.iter().map_while(|next| follows(next).then_some(())).count();
        rest = &rest[count..];
        Some(Band { first, count, stride })
    })
}

/// The elements of a strip: tables one after the other, with a column for each output.
pub(super) struct StripTables<'a> {
    /// Of each array one, or one for each run along the innermost reduced axis. The elements
    /// are aligned and may be read until the thread's next strip, those of a row follow each other,
    /// and they have the operation's size.
    tables: [Several<Table<'a, ()>>; 2],
    /// Outputs.
    count: usize,
    /// Elements of an output, and how many are in such a run.
    elements: usize,
    inner: usize,
    /// Initial values, which have a table behind the others: one or none.
    extra: usize,
    /// Bytes of an element of each array.
    sizes: [usize; 2],
}

impl<'a> StripTables<'a> {
    /// Writes the answers of the strip, of elements that are prepared or as they are; the places
    /// of those that there are not go to [`Space::missing`]. Whether that was done without accumulators in
    /// memory: these may know more.
    pub(super) fn answer(
        &self,
        cells: &mut dyn Cells,
        how: Option<Preparation>,
        to: &mut [u8],
        space: &mut Space,
    ) -> bool {
        let count = self.count;
        if how.is_some() {
            space.counts.clear();
            space.counts.resize(count, self.extra as u64);
        } else if let Some(mut left) = self.quick(cells, to) {
            space.missing.append(&mut left);
            return true;
        }
        let width = to.len() / count;
        for start in (0..count).step_by(CELLS) {
            let columns = start..count.min(start + CELLS);
            let to = &mut to[columns.start * width..columns.end * width];
            let before = space.missing.len();
            self.slow(cells, columns, how, to, space);
            space.missing[before..].iter_mut().for_each(|place| *place += start);
        }
        false
    }

    /// Some columns of some rows of a table.
    fn part(
        &self,
        array: usize,
        table: &Table<'a, ()>,
        rows: Range<usize>,
        columns: &Range<usize>,
    ) -> Table<'a, ()> {
        let from = table.at(rows.start, 0).wrapping_byte_add(columns.start * self.sizes[array]);
        Table::of_any(from, table.stride(), rows.len(), columns.len())
    }

    /// Answers the outputs without accumulators in memory, if most are found so, and tells which are not.
    fn quick(&self, cells: &mut dyn Cells, to: &mut [u8]) -> Option<Left> {
        let [first, second] = &self.tables;
        // Of two arrays there may be one table, and of the other many.
        let alike = second.is_empty() || first.len() == second.len();
        // SAFETY: see the fields; of two arrays there are equally many tables.
        let mut left = alike.then(|| unsafe { cells.quick([first, second], to) }).flatten()?;
        left.sort_unstable();
        left.dedup();
        Some(left)
    }

    /// Answers some outputs by accumulators.
    fn slow(
        &self,
        cells: &mut dyn Cells,
        columns: Range<usize>,
        how: Option<Preparation>,
        to: &mut [u8],
        space: &mut Space,
    ) {
        let Space { missing, prepare, counts, .. } = space;
        let mut prepared =
            how.map(|how| (Prepare::again(prepare, how), &mut counts[columns.clone()]));
        cells.clear(columns.len());
        let mut needed = true;
        if cells.begin_survey(columns.len()) {
            self.take_in(cells, &columns, &mut prepared);
            needed = cells.end_survey(columns.len());
            if needed {
                // They come again.
                prepared.iter_mut().for_each(|(_, counts)| counts.fill(self.extra as u64));
            }
        }
        if let Some(table) = self.tables[0].first().filter(|_| cells.wants_origins()) {
            // SAFETY: see the fields.
            unsafe { cells.origins(0, self.part(0, table, 0..1, &columns)) };
        }
        if needed {
            self.take_in(cells, &columns, &mut prepared);
        }
        let all = Lengths::Same((self.elements + self.extra) as u64);
        let lengths = prepared.map_or(all, |(_, counts)| Lengths::Counts(counts));
        cells.answer(lengths, to, missing);
    }

    /// Lets accumulators take in all elements of some outputs, which are counted if they are prepared.
    fn take_in(
        &self,
        cells: &mut dyn Cells,
        columns: &Range<usize>,
        prepared: &mut Option<(&mut Prepare, &mut [u64])>,
    ) {
        let (inner, [first, second]) = (self.inner, &self.tables);
        let (first, initial) = first.split_at(first.len() - self.extra);
        for table in initial {
            // SAFETY: see the fields, here and below.
            unsafe { cells.columns(0, self.part(0, table, 0..1, columns), self.elements) };
        }
        for at in (0..self.elements).step_by(inner) {
            let part = |array: usize, tables: &[Table<'a, ()>]| match tables {
                [whole] => self.part(array, whole, at..at + inner, columns),
                many => self.part(array, &many[at / inner], 0..inner, columns),
            };
            let one = part(0, first);
            let two = (!second.is_empty()).then(|| part(1, second));
            // SAFETY: as above; beside elements that are prepared there are none or marks.
            unsafe {
                match (&mut *prepared, two) {
                    (Some((prepare, counts)), marks) => {
                        let place = (Form::Columns, 0, at);
                        prepare.take(&mut [&mut *cells], place, one, marks, counts);
                    }
                    (None, None) => cells.columns(0, one, at),
                    (None, Some(two)) => cells.column_pairs(0, [one, two]),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_one_length_and_one_step_are_a_band() {
        let at = |offset: isize, place, len| Segment { offsets: [offset, 0], place, len };
        // A part of a run, whole ones, those after a gap, and a part again.
        let segments = [
            at(4, 0, 5),
            at(40, 5, 8),
            at(80, 13, 8),
            at(120, 21, 8),
            at(500, 29, 8),
            at(540, 37, 3),
        ];
        let found: Vec<(isize, usize, isize)> =
            bands(&segments, 0).map(|b| (b.first.offsets[0], b.count, b.stride)).collect();
        assert_eq!(found, [(4, 1, 36), (40, 3, 40), (500, 1, 40), (540, 1, 0)]);
        // In the other array all lie in one place.
        let counts: Vec<usize> = bands(&segments, 1).map(|band| band.count).collect();
        assert_eq!(counts, [1, 4, 1]);
    }
}
