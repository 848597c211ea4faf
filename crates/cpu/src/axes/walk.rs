//! The plan of a walk: from shapes and strides to an order of work.
//!
//! Memory is read in its own order as far as the axes allow. The innermost axis
//! says how: elements of one output side by side are *rows*, elements of
//! neighbouring outputs side by side are *columns*. What is neither is copied together
//! into a buffer that stays in the first cache:
//! a copy there costs less than elements taken one by one.

use super::places::Places;
use warpfold_core::layout::{Axis, PerAxis};
use warpfold_core::op::Several;

/// A kept axis, in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) len: usize,
    /// The bytes from one output's elements to the next one's, in either array.
    pub(super) strides: [isize; 2],
}

/// What a table of elements, the innermost kept axis by the innermost reduced axis,
/// is to the accumulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A row for each output.
    Rows,
    /// A column for each output.
    Columns,
}

/// The order of work. Outputs are counted in the order in which memory has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// The kept axes by their strides, the largest first; at least one.
    pub(super) kept: PerAxis<Kept>,
    /// The reduced axes, outermost first, as lengths and strides; at least one.
    pub(super) reduced: PerAxis<Axis>,
    /// The bytes to the first element of the first output of the walk.
    offset: [isize; 2],
    /// Where the answers of outputs go.
    pub(super) places: Places,
    pub(super) form: Form,
    /// Whether the tables of an array are copied together first.
    pub(super) copied: [bool; 2],
    /// Outputs that are worked on at a time.
    pub(super) block: usize,
    /// Elements of the innermost reduced axis that are worked on at a time.
    pub(super) panel: usize,
    /// Of short rows, how many of an output are copied to one: so many indices of the axis
    /// outside of the innermost reduced one.
    pub(super) joined: usize,
    /// Bytes of an element.
    size: usize,
}

/// Rows of fewer bytes are turned into columns: that costs less than to add up the lanes
/// of a vector for each row, which copies of rows with gaps do not save either. Of longer
/// ones several would be read at a time.
pub(super) const SHORT_ROW: usize = 256;
/// Rows of so many bytes are copied to others faster than they are turned.
const WORTH_A_COPY: usize = 64;
/// Fewer elements, of a run and those beside it, are not worth a copy of their own.
const FEW_TOGETHER: usize = 16;
/// Fewer elements of a table of columns are not worth a call where another axis makes taller ones.
/// Measured over windows of 1 to 40 MB: they take 0.25 to 0.8 of the time so.
const FEW_OF_COLUMNS: usize = 256;
/// Rows of so many bytes are worth a call.
const WORTH_A_CALL: usize = 1024;
/// Fewer columns leave most lanes of a vector idle.
const FEW_COLUMNS: usize = 8;
/// Bytes that are copied together at a time: half of the first cache.
pub(super) const BUFFER: usize = 16 << 10;
/// The most outputs of a block of rows: their accumulators stay in the second cache.
const BLOCK: usize = 2048;
/// Bytes of a row of a block of columns: runs of a few pages, whose accumulators stay there, too.
const RUN: usize = 16 << 10;
/// Elements that make a block worth its fixed cost.
const BLOCK_ELEMENTS: usize = 1 << 15;
/// Rows of columns that are added before their neighbours get their turn, where each lies
/// in a page of its own: each is a stream of its own for what fetches ahead.
const FAR_PANEL: usize = 16;
/// The same for rows of which a page has some, or all rows of a page: memory is read
/// nearly in its order.
const NEAR_PANEL: usize = 8;
/// Bytes of a page.
const FAR_APART: usize = 4096;

impl Walk {
    /// The walk over elements of `size` bytes of one array, or of two, the second one's of so many
    /// bytes. The kept axes are in C order; the reduced ones in the order in which they are walked,
    /// if that is `ordered`.
    pub(super) fn new(
        kept: &[(usize, [isize; 2])],
        reduced: &[(usize, [isize; 2])],
        size: usize,
        second_size: Option<usize>,
        ordered: bool,
    ) -> Walk {
        let unit = size.cast_signed();
        let (kept, offset, places) = in_order_of_memory(kept);
        let mut reduced = PerAxis::from_slice(reduced);
        if reduced.is_empty() {
            reduced.push((1, [unit; 2]));
        }
        let (outputs, across) = kept.last().map_or((1, [0; 2]), |k| (k.len, k.strides));
        // A call for a few elements costs more than to read memory in another order.
        if !ordered && let [outer @ .., (run, _)] = &mut reduced[..] {
            let run = *run;
            let beside = outer.last().map_or(FEW_TOGETHER, |axis| axis.0);
            let most = (0..outer.len()).max_by_key(|&axis| outer[axis].0);
            let columns = across[0] == unit && outputs >= FEW_COLUMNS;
            let few_columns = columns && run.saturating_mul(outputs) < FEW_OF_COLUMNS;
            if let Some(most) = most.filter(|&most| few_columns && outer[most].0 > run) {
                reduced[most..].rotate_left(1);
            } else if let Some(most) = most.filter(|_| run.saturating_mul(beside) < FEW_TOGETHER) {
                outer[most..].rotate_left(1);
            }
        }
        let (len, ways) = reduced.last().map_or((1, [0; 2]), |&r| r);
        // Of two arrays the first says how, and the second is copied where it lies otherwise.
        let ([beside, _], [along, _]) = (across, ways);
        let short = SHORT_ROW / size;
        // Short rows of an output that are copied to a long one.
        let outside = if let [.., (outside, _), _] = reduced[..] { outside } else { 1 };
        let long = len * size >= WORTH_A_COPY && len * outside >= 2 * short;
        let (form, first_copied) = if beside == unit && outputs >= FEW_COLUMNS {
            (Form::Columns, false)
        } else if along == unit && (outputs < FEW_COLUMNS || len >= short || long) {
            (Form::Rows, false)
        } else if outputs >= FEW_COLUMNS && (len < short || beside.abs() < along.abs()) {
            (Form::Columns, true)
        } else {
            (Form::Rows, true)
        };
        let second = if form == Form::Rows { ways[1] } else { across[1] };
        let copied = [first_copied, second_size.is_some_and(|size| second != size.cast_signed())];
        let all: usize = kept.iter().map(|k| k.len).product();
        let elements: usize = reduced.iter().map(|&(len, _)| len).product();
        let buffer = BUFFER / size;
        let block = |len: usize| (BLOCK_ELEMENTS / len.max(1)).clamp(1, BLOCK);
        let (block, panel) = match (form, copied != [false; 2]) {
            // Outer reduced axes lead away from an output's row: its neighbours' are next.
            (Form::Rows, false) => (block(len), len),
            (Form::Rows, true) => (block(len), len.min(buffer)),
            (Form::Columns, false) => {
                let apart = along.unsigned_abs().max(1);
                let near = (FAR_APART / apart).max(NEAR_PANEL);
                let panel = len.min(if apart >= FAR_APART { FAR_PANEL } else { near });
                let run = RUN / size;
                let block = (BLOCK_ELEMENTS / elements.max(1)).clamp(run / 2, run);
                // Whole runs of columns: two of them are two places in memory.
                let worth = outputs.saturating_mul(elements) >= BLOCK_ELEMENTS;
                (if worth { block.min(outputs) } else { block }, panel)
            }
            (Form::Columns, true) => {
                // Outputs side by side are read by the row, and turned ones by the column.
                let beside = beside.unsigned_abs() < along.unsigned_abs();
                let panel = len.min(if beside { FAR_PANEL } else { short });
                (block(elements).max((buffer / panel).clamp(1, BLOCK)), panel)
            }
        };
        let block = block.min(all.max(1));
        // What is copied anyway is copied together; rows of many outputs share a call.
        let least = match copied {
            [false, false] if outputs < FEW_COLUMNS => WORTH_A_CALL / size,
            [false, false] => short,
            _ => buffer / 4,
        };
        let joined = if form == Form::Rows && len < least {
            (buffer / len.max(1)).clamp(1, outside.max(1))
        } else {
            1
        };
        Walk { kept, reduced, offset, places, form, copied, block, panel, joined, size }
    }

    /// How many outputs' elements are copied together, `count` of each: they fit the
    /// buffer.
    pub(super) fn together(&self, count: usize) -> usize {
        (BUFFER / self.size / count.max(1)).max(1)
    }

    /// How many elements an output has.
    pub(super) fn elements(&self) -> usize {
        self.reduced.iter().map(|&(len, _)| len).product()
    }

    /// The bytes from an output's first element to the first of each run along the innermost reduced
    /// axis.
    pub(super) fn runs(&self) -> Several<[isize; 2]> {
        let mut runs: Several<_> = core::iter::once([0; 2]).collect();
        for &(len, strides) in &self.reduced[..self.reduced.len() - 1] {
            let all = runs.iter().flat_map(|&offsets| {
                (0..len).map(move |i| {
                    let mut offsets = offsets;
                    move_by(&mut offsets, i, strides);
                    offsets
                })
            });
            runs = all.collect();
        }
        runs
    }

    /// How many outputs there are.
    pub(super) fn outputs(&self) -> usize {
        self.kept.iter().map(|k| k.len).product()
    }

    /// Runs of outputs along the innermost kept axis that make up some of the outputs.
    pub(super) fn segments(&self, from: usize, to: usize, out: &mut Vec<Segment>) {
        out.clear();
        let inner = self.kept.last().map_or(1, |k| k.len);
        let beside = self.kept.len().checked_sub(2).map(|axis| self.kept[axis]);
        let mut at = from;
        while at < to {
            let mut rest = at;
            let mut offsets = self.offset;
            for axis in self.kept.iter().rev() {
                let i = (rest % axis.len).cast_signed();
                rest /= axis.len;
                for (offset, stride) in offsets.iter_mut().zip(axis.strides) {
                    *offset += i * stride;
                }
            }
            // Those along the axis outside of it follow without a division.
            let (mut left, strides) = match beside {
                Some(axis) => (axis.len - at / inner % axis.len, axis.strides),
                None => (1, [0; 2]),
            };
            let mut inside = at % inner;
            while left > 0 && at < to {
                let len = (inner - inside).min(to - at);
                out.push(Segment { offsets, place: at - from, len });
                at += len;
                for (i, offset) in offsets.iter_mut().enumerate() {
                    let back = inside.cast_signed() * self.kept[self.kept.len() - 1].strides[i];
                    *offset += strides[i] - back;
                }
                (left, inside) = (left - 1, 0);
            }
        }
    }
}

/// Goes `count` steps on, in both arrays.
#[inline(always)]
pub(super) fn move_by(offsets: &mut [isize; 2], count: usize, strides: [isize; 2]) {
    for (offset, stride) in offsets.iter_mut().zip(strides) {
        *offset += count.cast_signed() * stride;
    }
}

/// Neighbouring outputs of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The bytes to the first element of the first of them.
    pub(super) offsets: [isize; 2],
    /// Where they are in the block.
    pub(super) place: usize,
    pub(super) len: usize,
}

/// The kept axes by the strides of the first array, largest first and none of them
/// negative, those joined that are one in memory; with the offset that they begin with,
/// and the places in C order.
fn in_order_of_memory(axes: &[(usize, [isize; 2])]) -> (PerAxis<Kept>, [isize; 2], Places) {
    let (mut offset, mut first, mut step) = ([0; 2], 0, 1isize);
    let mut kept: PerAxis<(Kept, isize)> = PerAxis::new();
    for &(len, strides) in axes.iter().rev() {
        if len != 1 {
            let mut axis = (Kept { len, strides }, step);
            if strides[0] < 0 {
                let last = len.cast_signed() - 1;
                for (offset, stride) in offset.iter_mut().zip(strides) {
                    *offset += last * stride;
                }
                first += last * step;
                axis = (Kept { len, strides: strides.map(|s| -s) }, -step);
            }
            kept.push(axis);
        }
        step *= len.cast_signed();
    }
    kept.reverse();
    // Stable: of equal strides the outer axis stays outside.
    kept.sort_by_key(|(axis, _)| core::cmp::Reverse(axis.strides[0]));
    let mut joined: PerAxis<Kept> = PerAxis::new();
    let mut places = Places { first, axes: PerAxis::new() };
    for (axis, step) in kept {
        let len = axis.len.cast_signed();
        match joined.last_mut() {
            Some(outer) if outer.strides == axis.strides.map(|s| s * len) => {
                *outer = Kept { len: outer.len * axis.len, ..axis };
            }
            _ => joined.push(axis),
        }
        places.push(axis.len, step);
    }
    if joined.is_empty() {
        joined.push(Kept { len: 1, strides: [0; 2] });
    }
    (joined, offset, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(kept: &[(usize, isize)], reduced: &[(usize, isize)]) -> (Form, bool) {
        let walk = one(kept, reduced, 4);
        assert!(walk.block >= 1 && walk.panel >= 1, "{walk:?}");
        (walk.form, walk.copied[0])
    }

    /// A walk over one array.
    fn one(kept: &[(usize, isize)], reduced: &[(usize, isize)], size: usize) -> Walk {
        let alone = |axes: &[(usize, isize)]| -> Vec<(usize, [isize; 2])> {
            axes.iter().map(|&(len, stride)| (len, [stride, 0])).collect()
        };
        Walk::new(&alone(kept), &alone(reduced), size, None, true)
    }

    #[test]
    fn the_innermost_axis_says_what_tables_are() {
        // (1000, 500) over axis 1, axis 0, and with a step of two.
        assert_eq!(walk(&[(1000, 2000)], &[(500, 4)]), (Form::Rows, false));
        assert_eq!(walk(&[(500, 4)], &[(1000, 2000)]), (Form::Columns, false));
        assert_eq!(walk(&[(1000, 4000)], &[(500, 8)]), (Form::Rows, true));
        assert_eq!(walk(&[(500, 8)], &[(1000, 4000)]), (Form::Columns, true));
    }

    #[test]
    fn short_rows_are_turned_into_columns() {
        assert_eq!(walk(&[(1000, 32)], &[(8, 4)]), (Form::Columns, true));
        assert_eq!(walk(&[(1000, 64)], &[(8, 8)]), (Form::Columns, true));
        assert_eq!(walk(&[(1000, 256)], &[(64, 4)]), (Form::Rows, false));
        // Where there are few of them there is nothing to put beside.
        assert_eq!(walk(&[(3, 64)], &[(8, 8)]), (Form::Rows, true));
    }

    #[test]
    fn low_tables_of_columns_are_walked_along_another_axis() {
        let reduced = |kept: usize, axes: &[usize], ordered: bool| {
            let axes = axes.iter().rev().scan(4 * kept as isize, |stride, &len| {
                *stride *= len as isize + 1;
                Some((len, [*stride, 0]))
            });
            let axes: Vec<_> = axes.collect::<Vec<_>>().into_iter().rev().collect();
            let walk = Walk::new(&[(kept, [4, 0])], &axes, 4, None, ordered);
            walk.reduced.iter().map(|axis| axis.0).collect::<Vec<_>>()
        };
        assert_eq!(reduced(8, &[3, 301, 5], false), [3, 5, 301]);
        assert_eq!(reduced(8, &[3, 301, 5], true), [3, 301, 5]);
        // Tables that are worth a call, and where no axis is longer.
        assert_eq!(reduced(64, &[3, 301, 5], false), [3, 301, 5]);
        assert_eq!(reduced(8, &[3, 4, 5], false), [3, 4, 5]);
    }

    #[test]
    fn few_columns_are_turned_into_rows() {
        assert_eq!(walk(&[(3, 4)], &[(100_000, 12)]), (Form::Rows, true));
    }

    #[test]
    fn narrow_tables_are_taken_by_the_page() {
        // Rows of 40 bytes, of 1000 and of 8000.
        let panel = |stride| one(&[(10, 4)], &[(5000, stride)], 4).panel;
        assert_eq!([panel(40), panel(1000), panel(8000)], [102, NEAR_PANEL, FAR_PANEL]);
    }

    #[test]
    fn copies_fit_the_buffer() {
        for kept in [1, 3, 8, 100, 100_000] {
            for len in [1, 2, 7, 39, 40, 1000, 1 << 20] {
                for size in [1usize, 2, 4, 8] {
                    for (a, b) in [(2, 2 * kept), (2 * len, 2), (len, 1)] {
                        let unit = size as isize;
                        let (a, b) = (a as isize * unit, b as isize * unit);
                        let walk = one(&[(kept, a)], &[(len, b)], size);
                        let table = walk.together(walk.panel) * walk.panel * size;
                        assert!(!walk.copied[0] || table <= BUFFER, "{walk:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn axes_that_are_one_in_memory_are_joined_in_any_order() {
        // (3, 4, 5) whose axes lie in Fortran order, and one of them reversed.
        let fortran = one(&[(3, 8), (4, 24), (5, 96)], &[(2, 4)], 4);
        assert_eq!(fortran.kept[..], [Kept { len: 60, strides: [8, 0] }]);
        let reversed = one(&[(3, 8), (4, -24), (5, 96)], &[(2, 4)], 4);
        assert_eq!(reversed.kept, fortran.kept);
        // Two arrays have to agree.
        let two =
            |other| Walk::new(&[(3, [8, other]), (4, [24, 24])], &[(2, [4, 4])], 4, Some(4), true);
        assert_eq!([two(8).kept.len(), two(16).kept.len()], [1, 2]);
    }

    #[test]
    fn the_second_array_is_copied_where_it_lies_otherwise() {
        let walk = |first, second| {
            let [(a, b), (c, d)] = [first, second];
            Walk::new(&[(1000, [a, c])], &[(500, [b, d])], 4, Some(4), true)
        };
        let (rows, columns) = ((2000, 4), (4, 4000));
        assert_eq!(walk(rows, rows).copied, [false; 2]);
        assert_eq!(walk(columns, columns).copied, [false; 2]);
        let mixed = walk(rows, columns);
        assert_eq!((mixed.form, mixed.copied), (Form::Rows, [false, true]));
        assert!(mixed.together(mixed.panel) * mixed.panel * 4 <= BUFFER);
        // The same row again and again.
        assert_eq!(walk(rows, (0, 4)).copied, [false; 2]);
        assert_eq!(walk(columns, (0, 4)).copied, [false, true]);
    }

    #[test]
    fn every_output_is_in_one_segment() {
        // Axes out of order, one reversed: outputs of (3, 4, 5).
        let kept = [(3, 4), (4, -200), (5, 12)];
        let walk = one(&kept, &[(2, 1000)], 4);
        let mut seen = vec![None; 60];
        let mut segments = Vec::new();
        for from in (0..60).step_by(7) {
            walk.segments(from, 60.min(from + 7), &mut segments);
            let stride = walk.kept.last().unwrap().strides[0];
            for segment in &segments {
                for i in 0..segment.len {
                    let output = walk.places.at(from + segment.place + i);
                    let offset = segment.offsets[0] + i as isize * stride;
                    assert_eq!(seen[output].replace(offset), None);
                }
            }
        }
        for (output, offset) in seen.into_iter().enumerate() {
            let [i, j, k] = [output / 20, output / 5 % 4, output % 5].map(|i| i as isize);
            assert_eq!(offset, Some(4 * i - 200 * j + 12 * k));
        }
    }
}
