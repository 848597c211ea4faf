//! The elements of arrays one after the other, in C order.

/// An axis as it is walked along: its length, and the steps of two arrays in bytes.
#[derive(Clone)]
pub(crate) struct Axis {
    pub(crate) len: usize,
    pub(crate) step: isize,
    pub(crate) other_step: isize,
}

/// Goes through all indices of some axes in C order, and says the distances of the elements of both
/// arrays from their first ones.
#[derive(Clone)]
pub(crate) struct Walk {
    axes: Vec<Axis>,
    index: Vec<usize>,
    at: (isize, isize),
    left: usize,
}

impl Walk {
    pub(crate) fn new(axes: Vec<Axis>) -> Walk {
        let left = axes.iter().map(|axis| axis.len).product();
        Walk { index: vec![0; axes.len()], axes, at: (0, 0), left }
    }

    /// The walk along axes of one array.
    pub(crate) fn of(shape: &[usize], strides: &[isize]) -> Walk {
        let axes = shape.iter().zip(strides);
        Walk::new(axes.map(|(&len, &step)| Axis { len, step, other_step: 0 }).collect())
    }
}

impl Iterator for Walk {
    type Item = (isize, isize);

    #[inline]
    fn next(&mut self) -> Option<(isize, isize)> {
        self.left = self.left.checked_sub(1)?;
        let here = self.at;
        for (axis, index) in self.axes.iter().zip(&mut self.index).rev() {
            *index += 1;
            self.at.0 = self.at.0.wrapping_add(axis.step);
            self.at.1 = self.at.1.wrapping_add(axis.other_step);
            if *index < axis.len {
                break;
            }
            let len = axis.len.cast_signed();
            self.at.0 = self.at.0.wrapping_sub(axis.step.wrapping_mul(len));
            self.at.1 = self.at.1.wrapping_sub(axis.other_step.wrapping_mul(len));
            *index = 0;
        }
        Some(here)
    }
}
