//! Elements that are not zero, for many outputs: how many, whether any, whether all.

use super::lanes::Lanes;
use core::marker::PhantomData;
use warpfold_core::Element;

#[inline(always)]
fn is_nonzero<T: Element>(x: T) -> bool {
    x.without_sign() != T::from_bits(0).without_sign()
}

/// How many; NaNs are not zero.
#[derive(Clone, Copy)]
pub(super) struct Nonzero<T> {
    pub(super) item: PhantomData<T>,
}

impl<T: Element> Lanes for Nonzero<T> {
    type Item = T;
    type Out = u64;
    type A = u32;
    type B = ();
    type C = ();
    const START: (u32, (), ()) = (0, (), ());

    #[inline(always)]
    fn take(a: &mut u32, (): &mut (), (): &mut (), x: T, _: u32) {
        *a += u32::from(is_nonzero(x));
    }

    #[inline(always)]
    fn merge((a, ..): &mut (u32, (), ()), others: (u32, (), ())) {
        *a += others.0;
    }

    #[inline(always)]
    fn answer(&self, (count, ..): (u32, (), ())) -> Option<u64> {
        Some(u64::from(count))
    }
}

/// Whether any is not zero, or whether any is: [`Op::All`](warpfold_core::Op::All) is
/// the opposite of the latter.
#[derive(Clone, Copy)]
pub(super) struct Found<T, const ZERO: bool> {
    pub(super) item: PhantomData<T>,
}

impl<T: Element, const ZERO: bool> Lanes for Found<T, ZERO> {
    type Item = T;
    type Out = u8;
    type A = u8;
    type B = ();
    type C = ();
    const START: (u8, (), ()) = (0, (), ());
    const SETTLES: bool = true;

    #[inline(always)]
    fn take(a: &mut u8, (): &mut (), (): &mut (), x: T, _: u32) {
        *a |= u8::from(is_nonzero(x) != ZERO);
    }

    #[inline(always)]
    fn merge((a, ..): &mut (u8, (), ()), others: (u8, (), ())) {
        *a |= others.0;
    }

    fn is_settled(a: u8) -> bool {
        a != 0
    }

    #[inline(always)]
    fn answer(&self, (found, ..): (u8, (), ())) -> Option<u8> {
        Some(u8::from((found != 0) != ZERO))
    }
}
