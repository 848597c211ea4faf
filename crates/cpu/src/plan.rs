//! From views to traversals: which elements make which answer.

use crate::gather::Source;
use warpfold_core::Result;
use warpfold_core::layout::{Axis, Split, Traversal, View};

/// What is reduced, and how the outputs lie.
pub(crate) struct Plan {
    pub(crate) source: Source,
    /// The walk over the elements of one output, for states that ask for
    /// indices.
    pub(crate) indexed: Traversal,
    /// The same for the others: as long runs as there are.
    pub(crate) plain: Traversal,
    /// The kept axes, outermost first.
    pub(crate) kept: Vec<Axis>,
    /// How many outputs there are.
    pub(crate) outputs: usize,
}

impl Plan {
    /// The plan for reducing the axes of `views` (one, or two of the same
    /// shape and type) that `reduced` marks.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::DTypeMismatch`] and
    /// [`Error::TooManyOutputs`].
    pub(crate) fn new(views: [Option<&View<'_>>; 2], reduced: &[bool]) -> Result<Option<Plan>> {
        let [Some(first), second] = views else { return Ok(None) };
        if let Some(second) = second {
            first.check_pair(second)?;
        }
        let strides = [first.strides(), second.map_or(&[][..], View::strides)];
        let Split { kept, reduced, outputs } = Split::new(first.shape(), strides, reduced)?;
        // SAFETY: the views borrow all their elements, and plans do not
        // outlive the call that was given the views.
        let source =
            unsafe { Source::new(first.dtype(), first.origin(), second.map(View::origin)) };
        Ok(Some(Plan {
            source,
            indexed: Traversal::new(&reduced, true),
            plain: Traversal::new(&reduced, false),
            outputs,
            kept,
        }))
    }

    /// The elements of output `index`: the source seen from its first one.
    pub(crate) fn output(&self, index: usize) -> Source {
        let mut offsets = [0isize; 2];
        let mut rest = index;
        for &(len, strides) in self.kept.iter().rev() {
            let i = (rest % len).cast_signed();
            rest /= len;
            for (offset, stride) in offsets.iter_mut().zip(strides) {
                *offset += i * stride;
            }
        }
        self.source.shifted(offsets)
    }
}
