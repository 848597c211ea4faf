//! Cutting a walk into parts that fit somewhere.

use warpfold_core::layout::{Dim, PerAxis, Traversal};

/// Consecutive positions of a walk that are a box in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The position of the first.
    pub(super) first: usize,
    /// How many there are.
    pub(super) len: usize,
    /// The bytes from the walk's first element to this one's.
    pub(super) offsets: [isize; 2],
    /// The box's dimensions.
    pub(super) dims: PerAxis<Dim>,
}

impl Part {
    /// All of a walk.
    pub(super) fn whole(walk: &Traversal) -> Part {
        Part { first: 0, len: walk.len, offsets: [0; 2], dims: walk.dims.clone() }
    }
}

/// Cuts a walk into parts of at most `most` positions, at least one each, as
/// few as boxes allow.
pub(super) fn parts(dims: &[Dim], most: usize) -> impl Iterator<Item = Part> + '_ {
    let most = most.max(1);
    // Whole inner dimensions, a piece of the next one, single steps of the rest.
    let mut inner = dims.len();
    let mut whole = 1usize;
    while inner > 0 && whole.saturating_mul(dims[inner - 1].len) <= most {
        inner -= 1;
        whole *= dims[inner].len;
    }
    let (step, cut) = match inner.checked_sub(1) {
        Some(cut) => (most / whole, Some(cut)),
        None => (1, None),
    };
    let total: usize = dims.iter().map(|d| d.len).product();
    let mut first = 0;
    core::iter::from_fn(move || {
        if first >= total {
            return None;
        }
        let mut offsets = [0isize; 2];
        let mut rest = first / whole;
        let mut piece = 1;
        for (d, dim) in dims[..inner].iter().enumerate().rev() {
            let i = rest % dim.len;
            rest /= dim.len;
            for (offset, stride) in offsets.iter_mut().zip(dim.strides) {
                *offset += i.cast_signed() * stride;
            }
            if Some(d) == cut {
                piece = step.min(dim.len - i);
            }
        }
        let cut = cut.filter(|_| piece > 1).map(|cut| Dim { len: piece, ..dims[cut] });
        let dims = cut.into_iter().chain(dims[inner..].iter().copied()).collect();
        let part = Part { first, len: piece * whole, offsets, dims };
        first += part.len;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(lens: &[usize]) -> PerAxis<Dim> {
        let mut stride = 4;
        let mut dims: PerAxis<Dim> = lens
            .iter()
            .rev()
            .map(|&len| {
                let dim = Dim { len, strides: [stride, -stride], index_step: 1 };
                stride *= len.cast_signed();
                dim
            })
            .collect();
        dims.reverse();
        dims
    }

    #[test]
    fn every_position_is_in_one_part_at_its_place() {
        for lens in [&[][..], &[7], &[2, 3, 5], &[4, 1, 6], &[3, 2]] {
            let dims = dims(lens);
            let total: usize = lens.iter().product();
            for most in 0..=total + 1 {
                let mut next = 0;
                for part in parts(&dims, most) {
                    let at = 4 * next as isize;
                    assert_eq!((part.first, part.offsets), (next, [at, -at]), "{lens:?} by {most}");
                    let product: usize = part.dims.iter().map(|d| d.len).product();
                    assert_eq!(part.len, product);
                    assert!((1..=most.max(1)).contains(&part.len));
                    next += part.len;
                }
                assert_eq!(next, total);
            }
        }
    }

    #[test]
    fn parts_are_as_large_as_boxes_can_be() {
        let lens = |most| parts(&dims(&[2, 3, 5]), most).map(|p| p.len).collect::<Vec<_>>();
        assert_eq!(lens(30), [30]);
        assert_eq!(lens(29), [15, 15]);
        assert_eq!(lens(11), [10, 5, 10, 5]);
        assert_eq!(lens(4), [4, 1, 4, 1, 4, 1, 4, 1, 4, 1, 4, 1]);
    }
}
