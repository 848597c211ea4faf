//! Which axes make the outputs, and which make each of them.

use super::PerAxis;
use crate::error::{Error, Result};
use crate::op::Value;

/// An axis of one or two arrays: its length, and the bytes from one step to
/// the next in each of them.
pub type Axis = (usize, [isize; 2]);

/// Answers that any machine has memory for.
const MANY: usize = 1 << 20;

/// The axes of one or two arrays of one shape, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Those that are kept: an output for each of their elements.
    pub kept: PerAxis<Axis>,
    /// Those that are reduced.
    pub reduced: PerAxis<Axis>,
    /// How many outputs there are.
    pub outputs: usize,
}

impl Split {
    /// Parts the axes: `reduced` marks those that are; an axis without a mark
    /// is reduced. The second array's strides are empty if there is only one.
    ///
    /// # Errors
    /// [`Error::TooManyOutputs`].
    pub fn new(shape: &[usize], strides: [&[isize]; 2], reduced: &[bool]) -> Result<Split> {
        let (mut kept, mut others) = (PerAxis::new(), PerAxis::new());
        for (i, &len) in shape.iter().enumerate() {
            let strides = strides.map(|s| s.get(i).copied().unwrap_or(0));
            let is_reduced = reduced.get(i).copied().unwrap_or(true);
            if is_reduced { &mut others } else { &mut kept }.push((len, strides));
        }
        let reduced = others;
        let outputs = kept.iter().map(|&(n, _)| n).product();
        // Broadcast and empty arrays may have any shape: an allocation of
        // such a size would end the process.
        if outputs > MANY && Vec::<Value>::new().try_reserve_exact(outputs).is_err() {
            return Err(Error::TooManyOutputs { outputs });
        }
        Ok(Split { kept, reduced, outputs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_keep_their_order() {
        let (shape, strides) = ([2, 3, 4], [48, 16, 4]);
        let split = Split::new(&shape, [&strides, &[]], &[false, true, false]).unwrap();
        assert_eq!(split.kept[..], [(2, [48, 0]), (4, [4, 0])]);
        assert_eq!(split.reduced[..], [(3, [16, 0])]);
        assert_eq!(split.outputs, 8);
    }

    #[test]
    fn axes_without_a_mark_are_reduced() {
        let split = Split::new(&[5, 0], [&[4, 4], &[0, 8]], &[]).unwrap();
        assert_eq!((split.outputs, split.reduced[1]), (1, (0, [4, 8])));
    }

    #[test]
    fn more_outputs_than_memory_are_an_error() {
        let shape = [1 << 31, 1 << 31];
        let split = Split::new(&shape, [&[0, 0], &[]], &[false, false]);
        assert_eq!(split, Err(Error::TooManyOutputs { outputs: 1 << 62 }));
    }
}
