//! Any view, as kernels are told of it: `Layout` in `kernels/layout.cuh`.

use super::catalogue::LAYOUT_AXES;
use crate::device::{Address, Argument};
use warpfold_core::layout::{Axis, Dim, Traversal};

/// The most axes of a walk.
const AXES: usize = LAYOUT_AXES;
/// Places of a walk, and elements of a run: kernels number them in 31 bits.
const MOST_PLACES: usize = 1 << 31;
/// Elements from a walk's first place to its last, and of an output if they are
/// numbered.
const MOST_ELEMENTS: usize = 1 << 32;

/// Bytes of a vector, and of a register: what a thread can take at once where
/// elements lie together.
const VECTOR: usize = 16;
const REGISTER: usize = 4;
/// Bytes from one element of a run to the next, at most: what a mask of a kernel has.
const GAP: usize = 8;
/// Vectors of a run whose ends are worth a cut: a run that is not aligned has two.
const CUT: usize = 6;

/// Which elements of memory make which output, and where its answer goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The first element of the first output, below which nothing of the view lies,
    /// and the end of its last one.
    pub(super) at: Address,
    end: Address,
    /// Bytes of an element.
    size: usize,
    /// Outputs, and the units of an output.
    pub(super) outputs: Traversal,
    pub(super) units: Traversal,
    /// Elements of a unit, and of the runs that units are taken from, if there is more
    /// than one; elements of an output.
    pub(super) unit: usize,
    run: usize,
    /// Elements from one of a run to the next.
    gap: usize,
    pub(super) len: usize,
    /// Bytes that places of units count.
    bytes: usize,
    /// Of packs, which are places of several outputs, those of a row.
    row: Option<Row>,
}

impl Layout {
    /// The layout of an array of elements of `size` bytes, aligned to it, whose element
    /// of index 0 is at `address`; `None` if kernels cannot number its places.
    /// `numbered` says whether the elements' places in C order are asked for.
    pub(super) fn new(
        address: Address,
        size: usize,
        kept: &[Axis],
        reduced: &[Axis],
        numbered: bool,
    ) -> Option<Layout> {
        Layout::of(address, size, kept, reduced, size, [numbered, true])
    }

    /// The same for outputs side by side in memory, of which threads take a vector of elements
    /// together, a pack; `None` if there are no such.
    pub(super) fn packs(
        address: Address,
        size: usize,
        kept: &[Axis],
        reduced: &[Axis],
    ) -> Option<Layout> {
        let pack = VECTOR / size;
        // Of any steps, the greatest common divisor: how many packs there are in it decides nothing.
        let steps = reduced.iter().filter(|(len, _)| *len > 1).map(|(_, s)| s[0].unsigned_abs());
        let step = steps.fold(0, divisor_of_both);
        let bytes = if u32::try_from(step).is_ok_and(|step| step > 0) { step } else { VECTOR };
        let layout = Layout::of(address, size, kept, reduced, bytes, [false; 2])?;
        let (layout, row) = layout.in_packs(pack)?;
        let near = layout.units.dims.iter().map(|d| d.strides[0]).filter(|&step| step != 0).min();
        let apart = near.is_none_or(|step| step >= VECTOR.cast_signed());
        let fills = row.len.is_multiple_of(pack) || row.len >= 2 * pack;
        let fits = layout.outputs.len.checked_mul(pack).is_some_and(|n| n < MOST_PLACES)
            && is_whole_along(bytes, &layout.units.dims, false);
        let row = (row.elements == 1 && apart && fills && fits).then_some(row)?;
        Some(Layout { row: Some(row), ..layout })
    }

    /// The same for outputs of few elements, which are taken one by one, of so many
    /// outputs side by side: these are a place of the walk over the outputs.
    pub(super) fn abreast(
        address: Address,
        size: usize,
        kept: &[Axis],
        reduced: &[Axis],
        numbered: bool,
        outputs: usize,
    ) -> Option<(Layout, Row)> {
        Layout::of(address, size, kept, reduced, size, [numbered, false])?.in_packs(outputs)
    }

    /// The same with so many outputs side by side as a place of the walk over the outputs.
    fn in_packs(mut self, outputs: usize) -> Option<(Layout, Row)> {
        let fastest = self.outputs.dims.last_mut()?;
        let row = Row {
            outputs,
            len: fastest.len,
            elements: fastest.strides[0] / self.size.cast_signed(),
            numbers: fastest.index_step,
        };
        self.outputs.len = self.outputs.len / fastest.len * fastest.len.div_ceil(outputs);
        fastest.len = fastest.len.div_ceil(outputs);
        fastest.strides[0] *= outputs.cast_signed();
        fastest.index_step *= outputs as i64;
        Some((self, row))
    }

    /// A layout whose places of units count so many bytes: of elements whose numbers are asked for, and of runs.
    fn of(
        address: Address,
        size: usize,
        kept: &[Axis],
        reduced: &[Axis],
        bytes: usize,
        [numbered, in_units]: [bool; 2],
    ) -> Option<Layout> {
        let outputs = Traversal::new(kept, true);
        let mut units = Traversal::new(reduced, numbered);
        let reach = [reach(&outputs)?, reach(&units)?];
        let first = outputs.offsets[0].wrapping_add(units.offsets[0]);
        let at = address.wrapping_add_signed(first as i64);
        let end = at.wrapping_add((reach[0] + reach[1] + size) as u64);
        let len = units.len;
        let (mut unit, mut run, mut gap) = (1, 1, 1);
        // Elements of a run have ascending numbers, and follow each other if anybody asks for these.
        let gap_of = |d: &Dim| {
            let gap = usize::try_from(d.strides[0]).ok()? / size;
            let follows = gap == 1 && (d.index_step > 0 || !numbered);
            let masked = gap.is_power_of_two() && gap * size <= GAP && gap > 1 && !numbered;
            (in_units && (follows || masked)).then_some(gap)
        };
        if let Some((gap_there, len)) = units.dims.last().and_then(|d| Some((gap_of(d)?, d.len))) {
            let all = (len - 1) * gap_there + 1;
            let (elements, count) = unit_of(at, size, all, &outputs, &units);
            if gap_there == 1 || elements == VECTOR / size && all < MOST_PLACES {
                (run, unit, gap) = (all, elements, gap_there);
                units.len = units.len / len * count;
                let dim = units.dims.last_mut()?;
                dim.len = count;
                dim.strides[0] = (unit * size).cast_signed();
                dim.index_step *= unit as i64;
            }
        }
        let fits = |walk: &Traversal, reach: usize| {
            walk.dims.len() <= AXES && walk.len < MOST_PLACES && reach < MOST_ELEMENTS
        };
        let numbers = !numbered || len < MOST_ELEMENTS;
        let both = fits(&outputs, reach[0] / size) && fits(&units, reach[1] / bytes);
        (both && run < MOST_PLACES && numbers).then_some(Layout {
            at,
            end,
            size,
            outputs,
            units,
            unit,
            run,
            gap,
            len,
            bytes,
            row: None,
        })
    }

    /// Outputs of a place that threads take together.
    pub(super) fn pack(&self) -> usize {
        self.row.map_or(1, |row| row.outputs)
    }

    /// The same so many bytes behind, modulo 2^64.
    pub(super) fn move_by(&mut self, bytes: u64) {
        self.at = self.at.wrapping_add(bytes);
        self.end = self.end.wrapping_add(bytes);
    }

    /// The parameter block.
    pub(super) fn block(&self, launch: &Parameters) -> Argument {
        Argument::block(self.words(launch))
    }

    /// The parameter block of outputs abreast: `Abreast` in `kernels/abreast.cuh`.
    pub(super) fn block_abreast(&self, row: &Row, launch: &Parameters) -> Argument {
        let mut words = self.words(launch);
        words.push(two(row.len as u32, row.elements as u32));
        words.push(two(row.numbers as u32, launch.answer));
        Argument::block(words)
    }

    fn words(&self, launch: &Parameters) -> Vec<u64> {
        let Parameters { out, tickets, partials, wides, overflow, .. } = *launch;
        let mut words = vec![self.at, self.end, out, tickets, partials, wides, overflow];
        words.push(self.len as u64 + u64::from(launch.initial.is_some()));
        // What kernels count wraps at 2^32, as numbers of outputs and elements do not.
        let step = self.units.dims.last().map_or(0, |d| d.index_step / self.unit as i64);
        words.push(two(self.outputs.first_index as u32, self.units.first_index as u32));
        words.push(two(step as u32, launch.ask));
        words.push(two(launch.flags, launch.log_lanes));
        words.push(two(launch.log_near, self.unit as u32));
        words.push(two(self.run as u32, launch.share));
        push(&mut words, &self.outputs, self.size, 1);
        push(&mut words, &self.units, self.bytes, self.gap);
        words.push(launch.apart.cast_unsigned());
        words.push(launch.initial.unwrap_or(0));
        words.push(two(self.row.map_or(1, |row| row.len) as u32, self.bytes as u32));
        words
    }
}

/// Appends a walk: what a step of the fastest axis moves, in so many bytes, and what one of
/// the next axes moves beyond a whole walk over those before.
fn push(words: &mut Vec<u64>, walk: &Traversal, bytes: usize, gap: usize) {
    let steps = |dim: &Dim| (dim.strides[0] / bytes.cast_signed(), dim.index_step);
    let none = Dim { len: 1, strides: [0; 2], index_step: 0 };
    let fastest = walk.dims.last().unwrap_or(&none);
    let (elements, numbers) = steps(fastest);
    let inner = walk.dims.len().saturating_sub(1);
    words.push(two(inner as u32, walk.len as u32));
    words.push(two(elements as u32, numbers as u32));
    words.push(two(fastest.len as u32, gap as u32));
    for a in 0..AXES - 1 {
        let mut pairs = walk.dims.iter().rev().zip(walk.dims.iter().rev().skip(1));
        let (magic, shift, elements, numbers) = match pairs.nth(a) {
            Some((dim, next)) => {
                let (magic, shift) = divisor(dim.len as u32);
                let ((e, n), (next_e, next_n)) = (steps(dim), steps(next));
                let beyond = next_e.wrapping_sub(e.wrapping_mul(dim.len.cast_signed()));
                let numbers = next_n.wrapping_sub(n.wrapping_mul(dim.len as i64));
                (magic, shift, beyond as u32, numbers as u32)
            }
            None => (0, 0, 0, 0),
        };
        words.extend([two(magic, shift), two(elements, numbers)]);
    }
}

/// Bytes from the first element of a walk to its last; `None` if they cannot be counted.
fn reach(walk: &Traversal) -> Option<usize> {
    walk.dims.iter().try_fold(0usize, |reach, d| {
        let steps = d.len.checked_sub(1)?;
        reach.checked_add(steps.checked_mul(d.strides[0].unsigned_abs())?)
    })
}

/// Whether all strides, but for the fastest one's if that is of a run, are multiples.
fn is_whole_along(bytes: usize, dims: &[Dim], of_run: bool) -> bool {
    let dims = if of_run { &dims[..dims.len().saturating_sub(1)] } else { dims };
    dims.iter().all(|d| d.strides[0].unsigned_abs().is_multiple_of(bytes))
}

/// How many elements threads take at once of runs of `run` elements that lie at `at`
/// and multiples of the walks' strides from there, and how often.
fn unit_of(
    at: Address,
    size: usize,
    run: usize,
    outputs: &Traversal,
    elements: &Traversal,
) -> (usize, usize) {
    let is_whole = |bytes: usize| {
        at.is_multiple_of(bytes as u64)
            && run.is_multiple_of(bytes / size)
            && is_whole_along(bytes, &outputs.dims, false)
            && is_whole_along(bytes, &elements.dims, true)
    };
    let (vector, register) = (VECTOR / size, REGISTER / size);
    if is_whole(VECTOR) {
        (vector, run / vector)
    } else if run >= CUT * vector {
        // A run that is not aligned may reach into one vector more.
        (vector, (run + vector - 1).div_ceil(vector))
    } else if register > 1 && is_whole(REGISTER) {
        (register, run / register)
    } else {
        (1, run)
    }
}

/// Outputs along the fastest axis, of which a thread takes several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Those of a thread.
    pub(super) outputs: usize,
    len: usize,
    /// Elements of the array, and numbers of outputs, from one to the next.
    elements: isize,
    numbers: i64,
}

/// What a launch is told beside the layout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parameters {
    pub(super) out: Address,
    pub(super) tickets: Address,
    pub(super) partials: Address,
    pub(super) wides: Address,
    pub(super) overflow: Address,
    /// From the answers to the first of two asks to those of the second.
    pub(super) apart: i64,
    /// The bits of one more element of every output.
    pub(super) initial: Option<u64>,
    pub(super) ask: u32,
    pub(super) flags: u32,
    pub(super) log_lanes: u32,
    pub(super) log_near: u32,
    /// Units of a block.
    pub(super) share: u32,
    /// Bytes of an answer, of outputs abreast.
    pub(super) answer: u32,
}

/// The greatest common divisor; of 0 and a number, that.
fn divisor_of_both(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor_of_both(b, a % b) }
}

/// Two fields of 32 bits, the first one below.
fn two(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// What divides numbers below 2^31 by `len`, from 1 to 2^31 - 1: n / len = (mulhi(n,
/// magic) + n) >> shift (Granlund and Montgomery 1994).
fn divisor(len: u32) -> (u32, u32) {
    let shift = len.next_power_of_two().trailing_zeros();
    let more = (1u64 << shift) - u64::from(len);
    // Below 2^32: `more` is less than `len`.
    let magic = (more << 32) / u64::from(len) + 1;
    (magic as u32, shift)
}

#[cfg(test)]
mod tests {
    use super::super::archive;
    use super::*;

    #[test]
    fn magic_numbers_divide() {
        let edges = |len: u32| [1, 2, 3, 7].map(|k| len.saturating_mul(k));
        let mut lens: Vec<u32> = (1..200).chain([255, 256, 257, 65_535, 65_536, 65_537]).collect();
        lens.extend((2..31).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]));
        lens.push((1 << 31) - 1);
        for len in lens {
            let (magic, shift) = divisor(len);
            let numbers = (0..64)
                .chain(
                    edges(len).into_iter().flat_map(|n| [n.wrapping_sub(1), n, n.wrapping_add(1)]),
                )
                .chain([(1 << 31) - 1, (1 << 31) - 2, 0x5555_5555, 0x7654_3210]);
            for n in numbers.filter(|&n| n < 1 << 31) {
                let high = ((u64::from(n) * u64::from(magic)) >> 32) as u32;
                assert_eq!((high + n) >> shift, n / len, "{n} / {len}");
            }
        }
    }

    #[test]
    fn kernels_take_blocks_of_this_size() {
        let layout = Layout::new(0, 4, &[], &[], true).unwrap();
        let bytes = layout.block(&Parameters::default()).bytes().len();
        let ptx = archive::module("strided_sums_f32", (9, 0)).unwrap();
        let parameter = format!(".param .align 8 .b8 strided_sums_f32_param_0[{bytes}]");
        assert!(ptx.contains(&parameter), "no {parameter}");
    }

    #[test]
    fn axes_that_are_one_in_memory_are_one() {
        let axes = [(3, [400, 0]), (5, [80, 0]), (20, [4, 0])];
        let layout = Layout::new(64, 4, &axes[..1], &axes[1..], true).unwrap();
        assert_eq!((layout.units.dims.len(), layout.len), (1, 100));
        assert_eq!((layout.at, layout.end), (64, 64 + 1200));
        // A view that runs backwards begins at its lowest address, where its last
        // element is.
        let backwards = [(10, [-8, 0])];
        let layout = Layout::new(1072, 8, &[], &backwards, true).unwrap();
        assert_eq!((layout.at, layout.units.first_index, layout.unit), (1000, 9, 1));
    }

    #[test]
    fn what_lies_together_is_taken_together() {
        // Elements of a unit, and units of an output.
        let of = |at: u64, size: usize, kept: &[Axis], reduced: &[Axis]| {
            let layout = Layout::new(at, size, kept, reduced, true).unwrap();
            (layout.unit, layout.units.len)
        };
        let run = |len: usize, size: isize| (len, [size, 0]);
        assert_eq!(of(32, 4, &[], &[run(100, 4)]), (4, 25));
        // Every second element is taken with those between, if nobody asks for its number.
        let gaps = |size: usize, step: isize, numbered: bool| {
            let layout = Layout::new(32, size, &[], &[(100, [step, 0])], numbered).unwrap();
            (layout.unit, layout.units.len, layout.run, layout.gap)
        };
        assert_eq!(gaps(4, 8, false), (4, 51, 199, 2));
        assert_eq!(gaps(1, -8, false), (16, 51, 793, 8));
        for (size, step, numbered) in [(4, 8, true), (4, 12, false), (8, 16, false)] {
            assert_eq!(gaps(size, step, numbered), (1, 100, 1, 1));
        }
        let long = Layout::new(32, 4, &[], &[(1 << 30, [8, 0])], false).unwrap();
        let longer = Layout::new(32, 4, &[], &[((1 << 30) + 1, [8, 0])], false).unwrap();
        assert_eq!([long.unit, long.gap, longer.unit, longer.gap], [4, 2, 1, 1]);
        // Long runs that are not aligned reach into one vector more.
        assert_eq!(of(36, 4, &[], &[run(100, 4)]), (4, 26));
        assert_eq!(of(32, 4, &[], &[run(101, 4)]), (4, 26));
        assert_eq!(of(32, 4, &[(9, [404, 0])], &[run(100, 4)]), (4, 26));
        assert_eq!(of(32, 1, &[(2, [112, 0])], &[run(97, 1)]), (16, 7));
        // Short ones are taken by the register, or one by one.
        assert_eq!(of(36, 2, &[(9, [36, 0])], &[run(18, 2)]), (2, 9));
        assert_eq!(of(36, 4, &[(9, [72, 0])], &[run(18, 4)]), (1, 18));
        assert_eq!(of(38, 2, &[(9, [36, 0])], &[run(18, 2)]), (1, 18));
        // So is what does not lie together, or runs against its numbers.
        assert_eq!(of(32, 4, &[], &[(100, [8, 0])]), (1, 100));
        assert_eq!(of(3200, 4, &[], &[(100, [-4, 0])]), (1, 100));
        assert_eq!(of(32, 4, &[(100, [4, 0])], &[(100, [400, 0])]), (1, 100));
    }

    #[test]
    fn outputs_side_by_side_are_packs() {
        // Outputs of a pack, packs, bytes that places count, of rows of so many outputs and bytes.
        let of = |size: usize, row: usize, step: isize| {
            let kept = [(3, [100 * step, 0]), (row, [size.cast_signed(), 0])];
            let layout = Layout::packs(64, size, &kept, &[(100, [step, 0])])?;
            Some((layout.pack(), layout.outputs.len, layout.bytes))
        };
        assert_eq!(of(4, 8, 32), Some((4, 6, 32)));
        assert_eq!([of(4, 9, 36), of(2, 20, 40)], [Some((4, 9, 36)), Some((8, 9, 40))]);
        // Too few, that do not fill packs; elements nearer than a pack's end.
        assert_eq!([of(4, 3, 32), of(4, 7, 32), of(4, 8, 8)], [None; 3]);
        // Rows that overlap.
        let sliding = [(4, [4, 0]), (8, [4, 0])];
        assert!(Layout::packs(64, 4, &sliding, &[(9, [32, 0])]).is_some());
        // Places of elements count whatever their strides have in common.
        let far =
            |more| Layout::packs(0, 4, &[(8, [4, 0])], &[(1 << 28, [132, 0]), (2, [more, 0])]);
        assert_eq!([far(132 << 28).is_some(), far((132 << 28) + 4).is_some()], [true, false]);
    }

    #[test]
    fn what_cannot_be_numbered_is_refused() {
        let many: Vec<Axis> = (0..14).map(|i| (2, [3 << (2 * i), 0])).collect();
        assert_eq!(Layout::new(0, 1, &many[..7], &[], true), None);
        assert!(Layout::new(0, 1, &many[..6], &many[6..12], true).is_some());
        assert_eq!(Layout::new(0, 1, &[], &[(1 << 31, [2, 0])], false), None);
        // Nor is what lies too far apart, or farther than can be counted.
        assert_eq!(Layout::new(0, 1, &[], &[(5, [1 << 30, 0])], false), None);
        assert_eq!(Layout::new(0, 1, &[], &[(5, [isize::MAX, 0])], false), None);
    }
}
