//! Copying elements together, so that rows can be reduced.

use super::Engine;
use super::catalogue::{GATHER_AXES, GATHER_EACH, GATHER_THREADS, GATHER_TILE};
use super::kernels::Program;
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};

/// The axes that the kernel knows; more are gone through here.
const AXES: usize = GATHER_AXES;
const TILE: usize = GATHER_TILE;

/// Blocks for each multiprocessor: enough to fill it.
const BLOCKS: usize = 32;

/// An axis along which fewer elements than this lie is too short for a warp.
pub(super) const SHORT: usize = 16;
/// So few elements next to each other leave those of the next axis near enough for a tile's writes.
const FEW: usize = 4;

/// An axis of a copy: its length, and the bytes from one step to the next in
/// the source, in the target, and among marks where elements have some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) len: usize,
    pub(super) from: isize,
    pub(super) to: isize,
    pub(super) marks: isize,
}

/// An axis that is none.
pub(super) const NONE: Step = Step { len: 1, from: 0, to: 0, marks: 0 };

/// The launches that make a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Copy {
    /// The axes that the kernel goes through, the fastest first.
    inner: Vec<Step>,
    /// Those that there is a launch for each step of.
    outer: Vec<Step>,
    /// Whether the first two are transposed in tiles.
    transpose: bool,
}

/// The axes from the fastest of the target on, joined where they are one.
pub(super) fn joined(mut steps: Vec<Step>) -> Vec<Step> {
    steps.retain(|s| s.len != 1);
    steps.sort_by_key(|s| s.to.unsigned_abs());
    let mut joined: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        match joined.last_mut() {
            Some(inner)
                if [(inner.from, step.from), (inner.to, step.to), (inner.marks, step.marks)]
                    .iter()
                    .all(|&(a, b)| a.checked_mul(inner.len.cast_signed()) == Some(b)) =>
            {
                inner.len *= step.len;
            }
            _ => joined.push(step),
        }
    }
    joined
}

/// Orders the axes of a copy.
fn plan(steps: Vec<Step>) -> Copy {
    let mut joined = joined(steps);
    // Where the source's elements lie next to each other.
    let dense = (0..joined.len())
        .filter(|&i| joined[i].from != 0)
        .min_by_key(|&i| joined[i].from.unsigned_abs())
        .unwrap_or(0);
    let mut transpose = false;
    if dense != 0 {
        let step = joined.remove(dense);
        if joined[0].len <= FEW && joined.get(1).is_some_and(|next| next.len >= SHORT) {
            joined.swap(0, 1);
        }
        transpose = joined[0].len >= SHORT && step.len >= SHORT;
        let source_first = joined[0].len >= SHORT && step.len < SHORT;
        joined.insert(usize::from(!source_first), step);
    }
    // The longest of the others stay.
    let mut outer = Vec::new();
    while joined.len() > AXES {
        let shortest = (2..joined.len()).min_by_key(|&i| joined[i].len).unwrap_or(2);
        outer.push(joined.remove(shortest));
    }
    Copy { inner: joined, outer, transpose }
}

impl Engine {
    /// Copies elements of `size` bytes, a power of two up to 8, on the stream.
    ///
    /// # Safety
    /// The elements of the source may be read and those of the target written
    /// until the stream was waited for; all lie at multiples of `size`. There
    /// are fewer than 2^31 of them, and no two of the target are one.
    pub(super) unsafe fn gather(
        &self,
        size: usize,
        from: Address,
        to: Address,
        steps: Vec<Step>,
        stream: Stream,
    ) -> Result<()> {
        let Copy { inner, outer, transpose } = plan(steps);
        let units = |i: usize| -> usize {
            let len = inner.get(i).map_or(1, |s| s.len);
            if transpose && i < 2 { len.div_ceil(TILE) } else { len }
        };
        let total: usize = (0..inner.len()).map(units).product();
        let blocks = if transpose { total } else { total.div_ceil(GATHER_THREADS * GATHER_EACH) };
        let limits = self.device.limits();
        let blocks = blocks.clamp(1, limits.multiprocessors.max(1) as usize * BLOCKS);
        let launch =
            Launch::linear(u32::try_from(blocks).unwrap_or(u32::MAX), GATHER_THREADS as u32);
        let kernel = self.program(Program::Gather(size))?;
        let unit = size.cast_signed();
        for index in 0..outer.iter().map(|s| s.len).product() {
            let (mut source, mut target, mut rest) = (from, to, index);
            for step in &outer {
                let i = (rest % step.len).cast_signed();
                rest /= step.len;
                source = source.wrapping_add_signed((i * step.from) as i64);
                target = target.wrapping_add_signed((i * step.to) as i64);
            }
            let mut arguments = vec![Argument::from(source), Argument::from(target)];
            let counts = [total, usize::from(transpose), inner.len()];
            arguments.extend(counts.map(|n| Argument::from(n as u32)));
            for i in 0..AXES {
                let Step { len, from, to, .. } = inner.get(i).copied().unwrap_or(NONE);
                arguments.push(Argument::from(len as u32));
                arguments.push(Argument::from((from / unit) as i64));
                arguments.push(Argument::from((to / unit) as i64));
            }
            // SAFETY: the kernel has these parameters and copies the elements
            // that they describe, which the caller vouches for.
            unsafe { self.device.launch(stream, kernel, &launch, &arguments)? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(len: usize, from: isize, to: isize) -> Step {
        Step { len, from, to, ..NONE }
    }

    #[test]
    fn neighbours_on_both_sides_are_one() {
        let copy = plan(vec![step(5, 40, 40), step(1, 7, 7), step(10, 4, 4), step(3, 800, 200)]);
        assert_eq!(copy.inner, [step(50, 4, 4), step(3, 800, 200)]);
        assert!(!copy.transpose && copy.outer.is_empty());
    }

    #[test]
    fn long_axes_are_transposed_in_tiles() {
        let copy = plan(vec![step(100, 4, 256), step(64, 400, 4)]);
        assert_eq!(copy.inner, [step(64, 400, 4), step(100, 4, 256)]);
        assert!(copy.transpose);
    }

    #[test]
    fn short_axes_go_side_by_side() {
        let short_target = plan(vec![step(100, 4, 16), step(3, 400, 4)]);
        assert_eq!(short_target.inner, [step(3, 400, 4), step(100, 4, 16)]);
        let short_source = plan(vec![step(3, 4, 400), step(100, 12, 4)]);
        assert_eq!(short_source.inner, [step(3, 4, 400), step(100, 12, 4)]);
        assert!(!short_target.transpose && !short_source.transpose);
    }

    #[test]
    fn a_few_neighbours_stay_behind_the_tile() {
        let copy = plan(vec![step(2, 4000, 1), step(50, 20, 2), step(20, 1, 100)]);
        assert_eq!(copy.inner, [step(50, 20, 2), step(20, 1, 100), step(2, 4000, 1)]);
        assert!(copy.transpose);
    }

    #[test]
    fn broadcast_axes_are_not_where_elements_lie_close() {
        let copy = plan(vec![step(40, 0, 4), step(50, 4, 160)]);
        assert!(copy.transpose);
        assert_eq!(plan(vec![step(40, 0, 4)]).inner, [step(40, 0, 4)]);
    }

    #[test]
    fn the_shortest_of_too_many_axes_stay_outside() {
        let steps: Vec<Step> = (0..9).map(|i| step(2 + i, -(7 << (4 * i)), 4 << (4 * i))).collect();
        let copy = plan(steps.clone());
        assert_eq!(copy.inner.len(), AXES);
        let lens: Vec<usize> = copy.outer.iter().map(|s| s.len).collect();
        assert_eq!(lens, [4, 5, 6]);
        let mut all: Vec<Step> = copy.inner.into_iter().chain(copy.outer).collect();
        all.sort_by_key(|s| s.to);
        assert_eq!(all, steps);
    }
}
