//! Where answers go: outputs are walked in the order of memory, and answered in C order.

use warpfold_core::layout::PerAxis;

/// The outputs in the order of memory, as places in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// The place of the first of them.
    pub(super) first: isize,
    /// Axes, outermost first: lengths, and the places from one output to the next.
    pub(super) axes: PerAxis<(usize, isize)>,
}

impl Places {
    /// Adds an axis inside of those that there are.
    pub(super) fn push(&mut self, len: usize, step: isize) {
        match self.axes.last_mut() {
            Some(outer) if outer.1 == step * len.cast_signed() => *outer = (outer.0 * len, step),
            _ => self.axes.push((len, step)),
        }
    }

    /// The place of one output.
    pub(super) fn at(&self, index: usize) -> usize {
        let (mut rest, mut place) = (index, self.first);
        for &(len, step) in self.axes.iter().rev() {
            place += (rest % len).cast_signed() * step;
            rest /= len;
        }
        place.cast_unsigned()
    }
}
