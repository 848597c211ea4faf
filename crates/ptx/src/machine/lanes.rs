//! Loops over the lanes of a warp.
//!
//! What an instruction computes is a function on one lane's values; here it becomes a function on whole registers. The function is
//! chosen once, when a kernel is decoded, so that the loop over the lanes holds no decisions and the compiler can use vector instructions for a full warp.

use crate::ir::BoolOp;
use crate::place::LANES;

/// A register of a warp: a value for each lane.
pub(crate) type Register = [u64; LANES];

/// All lanes.
pub(crate) const FULL: u32 = u32::MAX;

/// An operation with one source.
pub(crate) type Unary = Box<dyn Fn(&mut Register, &Register, u32) + Send + Sync>;
/// An operation with two sources.
pub(crate) type Binary = Box<dyn Fn(&mut Register, &Register, &Register, u32) + Send + Sync>;
/// An operation with three sources.
pub(crate) type Ternary =
    Box<dyn Fn(&mut Register, &Register, &Register, &Register, u32) + Send + Sync>;
/// A comparison: the lanes where it holds, for values and, of pairs, for high halves.
pub(crate) type Test = Box<dyn Fn(&Register, &Register, u32) -> (u32, u32) + Send + Sync>;

/// The lanes of a mask as indices, lowest first.
pub(crate) fn indices(mask: u32) -> Indices {
    Indices(mask)
}

/// See [`indices`].
#[derive(Clone)]
pub(crate) struct Indices(u32);

impl Iterator for Indices {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let lane = self.0.trailing_zeros() as usize;
        if self.0 == 0 {
            return None;
        }
        self.0 &= self.0 - 1;
        Some(lane % LANES)
    }
}

/// Computes a register from another, which is copied only if it is the same.
#[inline]
pub(crate) fn from_one(
    registers: &mut [Register],
    dst: usize,
    a: usize,
    f: impl FnOnce(&mut Register, &Register),
) {
    if let Ok([dst, a]) = registers.get_disjoint_mut([dst, a]) {
        f(dst, a);
    } else {
        let a = registers[a];
        f(&mut registers[dst], &a);
    }
}

/// Computes a register from two others, of which one is copied only if it is the same.
#[inline]
pub(crate) fn from_two(
    registers: &mut [Register],
    dst: usize,
    [a, b]: [usize; 2],
    f: impl FnOnce(&mut Register, &Register, &Register),
) {
    if let Ok([dst, a, b]) = registers.get_disjoint_mut([dst, a, b]) {
        f(dst, a, b);
    } else if a == b {
        from_one(registers, dst, a, |dst, a| f(dst, a, a));
    } else if dst == a {
        let a = registers[a];
        from_one(registers, dst, b, |dst, b| f(dst, &a, b));
    } else {
        let b = registers[b];
        from_one(registers, dst, a, |dst, a| f(dst, a, &b));
    }
}

/// Computes a register from three others, of which one is copied only if it is the same.
#[inline]
pub(crate) fn from_three(
    registers: &mut [Register],
    dst: usize,
    [a, b, c]: [usize; 3],
    f: impl FnOnce(&mut Register, &Register, &Register, &Register),
) {
    if let Ok([dst, a, b, c]) = registers.get_disjoint_mut([dst, a, b, c]) {
        f(dst, a, b, c);
    } else if a == b {
        from_two(registers, dst, [a, c], |dst, a, c| f(dst, a, a, c));
    } else if dst == c || a == c {
        let c = registers[c];
        from_two(registers, dst, [a, b], |dst, a, b| f(dst, a, b, &c));
    } else if dst == a {
        let a = registers[a];
        from_two(registers, dst, [b, c], |dst, b, c| f(dst, &a, b, c));
    } else {
        let b = registers[b];
        from_two(registers, dst, [a, c], |dst, a, c| f(dst, a, &b, c));
    }
}

/// Lifts a function of one value.
pub(crate) fn unary(f: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Unary {
    Box::new(move |dst, a, mask| {
        if mask == FULL {
            for lane in 0..LANES {
                dst[lane] = f(a[lane]);
            }
        } else {
            for lane in indices(mask) {
                dst[lane] = f(a[lane]);
            }
        }
    })
}

/// Lifts a function of two values.
pub(crate) fn binary(f: impl Fn(u64, u64) -> u64 + Send + Sync + 'static) -> Binary {
    Box::new(move |dst, a, b, mask| {
        if mask == FULL {
            for lane in 0..LANES {
                dst[lane] = f(a[lane], b[lane]);
            }
        } else {
            for lane in indices(mask) {
                dst[lane] = f(a[lane], b[lane]);
            }
        }
    })
}

/// Lifts a function of three values.
pub(crate) fn ternary(f: impl Fn(u64, u64, u64) -> u64 + Send + Sync + 'static) -> Ternary {
    Box::new(move |dst, a, b, c, mask| {
        if mask == FULL {
            for lane in 0..LANES {
                dst[lane] = f(a[lane], b[lane], c[lane]);
            }
        } else {
            for lane in indices(mask) {
                dst[lane] = f(a[lane], b[lane], c[lane]);
            }
        }
    })
}

/// Lifts a question about two values.
pub(crate) fn test(f: impl Fn(u64, u64) -> bool + Send + Sync + 'static) -> Test {
    Box::new(move |a, b, mask| {
        let mut holds = 0;
        for lane in 0..LANES {
            holds |= u32::from(f(a[lane], b[lane])) << lane;
        }
        (holds & mask, 0)
    })
}

/// Lifts a question about two pairs.
pub(crate) fn test_pairs(f: impl Fn(u64, u64) -> (bool, bool) + Send + Sync + 'static) -> Test {
    Box::new(move |a, b, mask| {
        let (mut low, mut high) = (0, 0);
        for lane in 0..LANES {
            let (l, h) = f(a[lane], b[lane]);
            low |= u32::from(l) << lane;
            high |= u32::from(h) << lane;
        }
        (low & mask, high & mask)
    })
}

/// Whether a register holds one value in all lanes of a mask, and which.
pub(crate) fn uniform(register: &Register, mask: u32) -> Option<u64> {
    let first = register[mask.trailing_zeros() as usize % LANES];
    indices(mask).all(|lane| register[lane] == first).then_some(first)
}

/// Joins the answers of lanes.
pub(crate) fn join_masks(op: BoolOp, a: u32, b: u32) -> u32 {
    match op {
        BoolOp::And => a & b,
        BoolOp::Or => a | b,
        BoolOp::Xor => a ^ b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_outside_the_mask_keep_their_values() {
        let mut dst = [7; LANES];
        let a = core::array::from_fn(|lane| lane as u64);
        binary(|x, y| x + y)(&mut dst, &a, &[100; LANES], 0x8000_0001);
        assert_eq!((dst[0], dst[1], dst[30], dst[31]), (100, 7, 7, 131));
    }

    #[test]
    fn sources_may_be_the_destination() {
        let all = || [[1; LANES], [10; LANES], [100; LANES], [1000; LANES]];
        let two = |dst, sources| {
            let mut registers = all();
            from_two(&mut registers, dst, sources, |d, a, b| {
                (0..LANES).for_each(|l| d[l] = a[l] + 2 * b[l]);
            });
            registers.map(|r| r[LANES - 1])
        };
        assert_eq!(two(0, [1, 2]), [210, 10, 100, 1000]);
        assert_eq!(two(0, [0, 2]), [201, 10, 100, 1000]);
        assert_eq!(two(2, [1, 2]), [1, 10, 210, 1000]);
        assert_eq!(two(0, [3, 3]), [3000, 10, 100, 1000]);
        assert_eq!(two(3, [3, 3]), [1, 10, 100, 3000]);
        let numbers = [1, 10, 100, 1000];
        for number in 0..256 {
            let [dst, a, b, c] = [0, 2, 4, 6].map(|shift| number >> shift & 3);
            let mut registers = all();
            from_three(&mut registers, dst, [a, b, c], |d, a, b, c| {
                (0..LANES).for_each(|l| d[l] = a[l] + 2 * b[l] + 3 * c[l]);
            });
            let mut expected = numbers;
            expected[dst] = numbers[a] + 2 * numbers[b] + 3 * numbers[c];
            assert_eq!(registers.map(|r| r[LANES - 1]), expected, "{dst} {a} {b} {c}");
        }
        let mut registers = all();
        from_one(&mut registers, 1, 1, |d, a| *d = a.map(|x| x + 1));
        from_one(&mut registers, 0, 1, |d, a| *d = *a);
        assert_eq!([registers[0][7], registers[1][7]], [11, 11]);
    }

    #[test]
    fn questions_answer_for_the_mask_only() {
        let a = core::array::from_fn(|lane| lane as u64);
        assert_eq!(test(|x, y| x < y)(&a, &[4; LANES], 0xfe), (0xe, 0));
    }

    #[test]
    fn one_value_in_all_lanes_is_uniform() {
        let mut a = [3; LANES];
        assert_eq!(uniform(&a, FULL), Some(3));
        a[31] = 4;
        assert_eq!(uniform(&a, FULL), None);
        assert_eq!(uniform(&a, FULL >> 1), Some(3));
    }
}
