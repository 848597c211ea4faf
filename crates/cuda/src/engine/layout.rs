//! Any view, as kernels are told of it: `Layout` in `kernels/layout.cuh`.

use crate::device::{Address, Argument};
use warpfold_core::layout::{Axis, Dim, Traversal};

/// `LAYOUT_AXES` in the kernels.
pub(super) const AXES: usize = 6;
/// Places of a walk: kernels number them in 31 bits.
const MOST_PLACES: usize = 1 << 31;

/// Which elements of memory make which output, and where its answer goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The first element of the first output.
    pub(super) at: Address,
    /// Outputs, and the elements of an output.
    pub(super) outputs: Traversal,
    pub(super) elements: Traversal,
}

impl Layout {
    /// The layout of an array whose element of index 0 is at `address`; `None` if
    /// kernels cannot number its places. `numbered` says whether the elements'
    /// places in C order are asked for.
    pub(super) fn new(
        address: Address,
        kept: &[Axis],
        reduced: &[Axis],
        numbered: bool,
    ) -> Option<Layout> {
        let outputs = Traversal::new(kept, true);
        let elements = Traversal::new(reduced, numbered);
        let fits = |walk: &Traversal| walk.dims.len() <= AXES && walk.len < MOST_PLACES;
        if !fits(&outputs) || !fits(&elements) {
            return None;
        }
        let first = outputs.offsets[0].wrapping_add(elements.offsets[0]);
        Some(Layout { at: address.wrapping_add_signed(first as i64), outputs, elements })
    }

    /// The parameter block.
    pub(super) fn block(&self, launch: &Parameters) -> Argument {
        let Parameters { out, tickets, partials, wides, overflow, .. } = *launch;
        let mut words = vec![self.at, out, tickets, partials, wides, overflow];
        words.push(self.elements.len as u64);
        words.push(self.outputs.first_index.cast_unsigned());
        words.push(self.elements.first_index.cast_unsigned());
        words.push(two(launch.ask, u32::from(launch.absolute)));
        words.push(two(launch.log_lanes, launch.log_near));
        for walk in [&self.outputs, &self.elements] {
            push(&mut words, walk);
        }
        Argument::block(words)
    }
}

/// What a launch is told beside the layout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parameters {
    pub(super) out: Address,
    pub(super) tickets: Address,
    pub(super) partials: Address,
    pub(super) wides: Address,
    pub(super) overflow: Address,
    pub(super) ask: u32,
    pub(super) absolute: bool,
    pub(super) log_lanes: u32,
    pub(super) log_near: u32,
}

/// Two fields of 32 bits, the first one below.
fn two(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Appends a walk: the inner axes, the fastest first, and the outermost.
fn push(words: &mut Vec<u64>, walk: &Traversal) {
    let none = Dim { len: 1, strides: [0; 2], index_step: 0 };
    let (outer, inner) = walk.dims.split_first().unwrap_or((&none, &[]));
    words.push(two(inner.len() as u32, walk.len as u32));
    for i in 0..AXES - 1 {
        push_axis(words, inner.iter().rev().nth(i).unwrap_or(&none));
    }
    push_axis(words, outer);
}

fn push_axis(words: &mut Vec<u64>, dim: &Dim) {
    let len = dim.len as u32;
    let (magic, shift) = divisor(len);
    words.push(two(len, magic));
    words.push(two(shift, 0));
    words.push((dim.strides[0] as i64).cast_unsigned());
    words.push(dim.index_step.cast_unsigned());
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
        let layout = Layout::new(0, &[], &[], true).unwrap();
        let bytes = layout.block(&Parameters::default()).bytes().len();
        let ptx = archive::module("strided_sums_f32", (9, 0)).unwrap();
        let parameter = format!(".param .align 8 .b8 strided_sums_f32_param_0[{bytes}]");
        assert!(ptx.contains(&parameter), "no {parameter}");
    }

    #[test]
    fn axes_that_are_one_in_memory_are_one() {
        let axes = [(3, [400, 0]), (5, [80, 0]), (20, [4, 0])];
        let layout = Layout::new(64, &axes[..1], &axes[1..], true).unwrap();
        assert_eq!((layout.elements.dims.len(), layout.elements.len), (1, 100));
        assert_eq!(layout.at, 64);
        // A view that runs backwards begins at its lowest address, where its last
        // element is.
        let backwards = [(10, [-8, 0])];
        let layout = Layout::new(1072, &[], &backwards, true).unwrap();
        assert_eq!((layout.at, layout.elements.first_index), (1000, 9));
    }

    #[test]
    fn what_cannot_be_numbered_is_refused() {
        let many: Vec<Axis> = (0..14).map(|i| (2, [3 << (2 * i), 0])).collect();
        assert_eq!(Layout::new(0, &many[..7], &[], true), None);
        assert!(Layout::new(0, &many[..6], &many[6..12], true).is_some());
        assert_eq!(Layout::new(0, &[], &[(1 << 31, [1, 0])], true), None);
    }
}
