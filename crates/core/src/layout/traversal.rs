//! Walking elements in the order of memory.

use super::PerAxis;

/// One dimension of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// How many steps.
    pub len: usize,
    /// The bytes from one to the next, in each of the walked arrays.
    pub strides: [isize; 2],
    /// What a step adds to the logical index.
    pub index_step: i64,
}

/// A walk over some axes of one or two arrays: outermost dimension first,
/// largest stride first, neighbouring axes joined where their strides allow.
///
/// A *position* counts the elements in the order of the walk; the *index* is
/// the place in C order of the axes as the caller sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traversal {
    /// The dimensions, none of length 1.
    pub dims: PerAxis<Dim>,
    /// The bytes from the arrays' origins to the walk's first elements.
    pub offsets: [isize; 2],
    /// The logical index of the walk's first element.
    pub first_index: i64,
    /// Whether positions are indices.
    pub in_order: bool,
    /// How many elements are walked.
    pub len: usize,
}

impl Traversal {
    /// A walk over axes given outermost first as `(length, strides)`; the
    /// second array's stride is not looked at if there is only one.
    ///
    /// The walk goes through memory as it lies. If it is `indexed`, axes are
    /// only joined where that keeps indices apart; if not, positions stand for
    /// indices.
    #[must_use]
    pub fn new(axes: &[(usize, [isize; 2])], indexed: bool) -> Traversal {
        let len = axes.iter().map(|&(n, _)| n).product();
        let mut step = 1i64;
        let mut dims: PerAxis<Dim> = axes
            .iter()
            .rev()
            .map(|&(len, strides)| {
                let dim = Dim { len, strides, index_step: step };
                step = step.saturating_mul(i64::try_from(len).unwrap_or(i64::MAX));
                dim
            })
            .collect();
        dims.reverse();
        dims.retain(|d: &mut Dim| d.len != 1);
        let mut offsets = [0isize; 2];
        let mut first_index = 0i64;
        if len != 0 {
            for dim in &mut dims {
                if dim.strides[0] < 0 {
                    let last = (dim.len - 1).cast_signed();
                    for (offset, stride) in offsets.iter_mut().zip(&mut dim.strides) {
                        *offset += last * *stride;
                        *stride = -*stride;
                    }
                    first_index += last as i64 * dim.index_step;
                    dim.index_step = -dim.index_step;
                }
            }
            // Stable: equal strides (broadcast axes) keep their order.
            dims.sort_by_key(|d| core::cmp::Reverse(d.strides[0]));
        }
        let joined = joined(dims, indexed);
        let mut expected = 1i64;
        let as_given = first_index == 0
            && joined.iter().rev().all(|d| {
                let ok = d.index_step == expected;
                expected = expected.saturating_mul(d.len as i64);
                ok
            });
        Traversal { dims: joined, offsets, first_index, in_order: as_given || !indexed, len }
    }

    /// A walk in the order of indices, wherever that goes in memory: from the
    /// first element on, positions are indices.
    #[must_use]
    pub fn in_index_order(axes: &[(usize, [isize; 2])]) -> Traversal {
        let mut step = 1i64;
        let mut dims = PerAxis::new();
        for &(len, strides) in axes.iter().rev() {
            dims.push(Dim { len, strides, index_step: step });
            step = step.saturating_mul(i64::try_from(len).unwrap_or(i64::MAX));
        }
        dims.reverse();
        dims.retain(|d| d.len != 1);
        Traversal {
            dims: joined(dims, true),
            offsets: [0; 2],
            first_index: 0,
            in_order: true,
            len: axes.iter().map(|&(n, _)| n).product(),
        }
    }

    /// The logical index of the element at `position`.
    #[must_use]
    pub fn index(&self, position: u64) -> u64 {
        if self.in_order {
            return position;
        }
        let mut rest = position;
        let mut index = self.first_index;
        for dim in self.dims.iter().rev() {
            let n = dim.len as u64;
            index += (rest % n) as i64 * dim.index_step;
            rest /= n;
        }
        index.cast_unsigned()
    }
}

/// Makes neighbours that are one in memory (and, if `indexed`, in their indices) one.
fn joined(mut dims: PerAxis<Dim>, indexed: bool) -> PerAxis<Dim> {
    dims.dedup_by(|dim, outer| {
        let n = dim.len.cast_signed();
        let is_one = (0..2).all(|i| n.checked_mul(dim.strides[i]) == Some(outer.strides[i]))
            && (!indexed || outer.index_step == dim.index_step.saturating_mul(dim.len as i64));
        if is_one {
            *outer = Dim { len: outer.len * dim.len, ..*dim };
        }
        is_one
    });
    dims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_order_is_one_run() {
        let t = Traversal::new(&[(2, [48, 48]), (3, [16, 16]), (2, [8, 8])], true);
        assert_eq!(t.dims[..], [Dim { len: 12, strides: [8, 8], index_step: 1 }]);
        assert!(t.in_order);
    }

    #[test]
    fn fortran_order_is_walked_as_it_lies() {
        let t = Traversal::new(&[(2, [8, 0]), (3, [16, 0])], true);
        assert_eq!(t.dims.len(), 2);
        assert!(!t.in_order);
        assert_eq!((0..6).map(|p| t.index(p)).collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn a_reversed_axis_is_walked_forwards() {
        let t = Traversal::new(&[(4, [-8, 0])], true);
        assert_eq!(t.offsets[0], -24);
        assert_eq!((0..4).map(|p| t.index(p)).collect::<Vec<_>>(), [3, 2, 1, 0]);
    }

    #[test]
    fn in_index_order_axes_stay_as_they_are() {
        let t = Traversal::in_index_order(&[(2, [8, 0]), (3, [-16, 0]), (1, [5, 0])]);
        let strides: Vec<_> = t.dims.iter().map(|d| (d.len, d.strides[0])).collect();
        assert_eq!((strides, t.offsets, t.len), (vec![(2, 8), (3, -16)], [0, 0], 6));
        assert!((0..6).all(|p| t.index(p) == p));
        let reversed = Traversal::in_index_order(&[(2, [-24, 0]), (3, [-8, 0])]);
        assert_eq!(reversed.dims[..], [Dim { len: 6, strides: [-8, 0], index_step: 1 }]);
    }

    #[test]
    fn without_indices_fortran_order_is_one_run() {
        let t = Traversal::new(&[(2, [8, 8]), (3, [16, 16])], false);
        assert_eq!((t.dims.len(), t.dims[0].len, t.in_order), (1, 6, true));
    }
}
