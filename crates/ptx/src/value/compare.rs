//! Comparisons, and how their answers are joined.

use super::float::widen;
use super::int::sign_extend;
use super::real::Format;
use crate::ir::{BoolOp, Class, Compare, Type};
use core::cmp::Ordering;

/// Compares two values of a scalar type; `ftz` takes subnormal numbers as zeros.
#[must_use]
#[inline]
pub fn compare(how: Compare, ty: Type, ftz: bool, a: u64, b: u64) -> bool {
    match Format::of(ty) {
        Some(format) => {
            let [a, b] = [a, b].map(|x| widen(format, if ftz { format.flush(x) } else { x }));
            holds(how, a.partial_cmp(&b))
        }
        None if ty.class() == Class::Signed => {
            holds(how, Some(sign_extend(a, ty.bits()).cmp(&sign_extend(b, ty.bits()))))
        }
        None => holds(how, Some(a.cmp(&b))),
    }
}

/// Compares both halves of two pairs: the low answer and the high one.
#[must_use]
pub fn compare_pair(how: Compare, ty: Type, ftz: bool, a: u64, b: u64) -> (bool, bool) {
    let half = match ty {
        Type::F16x2 => Type::F16,
        Type::Bf16x2 => Type::Bf16,
        Type::S16x2 => Type::S16,
        _ => Type::U16,
    };
    let low = compare(how, half, ftz, a & 0xffff, b & 0xffff);
    let high = compare(how, half, ftz, (a >> 16) & 0xffff, (b >> 16) & 0xffff);
    (low, high)
}

/// Whether a comparison holds for two values in this order; `None` means that one is NaN.
#[must_use]
#[inline]
pub fn holds(how: Compare, order: Option<Ordering>) -> bool {
    let Some(order) = order else {
        return matches!(
            how,
            Compare::Equ
                | Compare::Neu
                | Compare::Ltu
                | Compare::Leu
                | Compare::Gtu
                | Compare::Geu
                | Compare::Nan
        );
    };
    match how {
        Compare::Eq | Compare::Equ => order.is_eq(),
        Compare::Ne | Compare::Neu => order.is_ne(),
        Compare::Lt | Compare::Ltu => order.is_lt(),
        Compare::Le | Compare::Leu => order.is_le(),
        Compare::Gt | Compare::Gtu => order.is_gt(),
        Compare::Ge | Compare::Geu => order.is_ge(),
        Compare::Num => true,
        Compare::Nan => false,
    }
}

/// Joins an answer with a predicate.
#[must_use]
#[inline]
pub fn join(op: BoolOp, answer: bool, with: bool) -> bool {
    match op {
        BoolOp::And => answer & with,
        BoolOp::Or => answer | with,
        BoolOp::Xor => answer ^ with,
    }
}
