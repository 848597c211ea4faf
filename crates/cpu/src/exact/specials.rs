//! Blocks with infinities and NaNs: these are counted, and zeros take their places in a copy, so that
//! no other loop over elements knows of them.

use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use warpfold_core::Element;
use warpfold_core::element::Key;
use warpfold_core::exact::{Superacc, format::Format};

/// How many elements are no numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Specials {
    pub(super) nans: i64,
    /// Infinities of each sign.
    pub(super) positive: i64,
    pub(super) negative: i64,
}

impl Specials {
    /// Counts them beside a sum of elements, or of their magnitudes if it is `absolute`.
    pub(super) fn add_to<F: Format>(self, acc: &mut Superacc<F>, absolute: bool) {
        acc.nans += self.nans;
        acc.pos_infs += self.positive;
        *(if absolute { &mut acc.pos_infs } else { &mut acc.neg_infs }) += self.negative;
    }
}

/// Elements of a part: no more than the shortest words count.
const PART: usize = 4096;

/// Words of floats.
trait Bits: bytemuck::Pod + Ord {
    /// Copies elements, with zeros in the places of those whose magnitudes are those of infinity
    /// or above, and counts these.
    fn clean(items: &[Self], to: &mut [Self], infinity: Self) -> Specials;
}

macro_rules! bits {
    ($($t:ty),*) => {$(
        impl Bits for $t {
            #[inline(always)]
            fn clean(items: &[Self], to: &mut [Self], infinity: Self) -> Specials {
                let mut found = Specials::default();
                for (items, to) in items.chunks(PART).zip(to.chunks_mut(PART)) {
                    let [mut all, mut nans]: [Self; 2] = [0; 2];
                    for (to, &x) in to.iter_mut().zip(items) {
                        let magnitude = x & Self::MAX;
                        let special = magnitude >= infinity;
                        all = all.wrapping_add(Self::from(special));
                        nans = nans.wrapping_add(Self::from(magnitude > infinity));
                        *to = if special { 0 } else { x };
                    }
                    let infinities = i64::from(all - nans);
                    found.nans += i64::from(nans);
                    if infinities != 0 {
                        let is_negative = |&&x: &&Self| x == infinity | Self::MIN;
                        let negative = items.iter().filter(is_negative).count() as i64;
                        found.negative += negative;
                        found.positive += infinities - negative;
                    }
                }
                found
            }
        }
    )*};
}
bits!(i16, i32, i64);

struct Clean<'a, W> {
    items: &'a [W],
    to: &'a mut [W],
    infinity: W,
}

impl<W: Bits> Kernel for Clean<'_, W> {
    type Out = Specials;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Specials {
        W::clean(self.items, self.to, self.infinity)
    }
}

/// Copies floats, with zeros in the places of infinities and NaNs, and counts these.
pub(super) fn without<T: Element>(items: &[T], to: &mut [T], isa: Isa) -> Specials {
    // The largest key of a float that is no NaN is that of infinity, and its bits.
    let infinity = T::key_range().1.to_bits64();
    macro_rules! clean {
        ($w:ty) => {{
            let (items, to) = (bytemuck::cast_slice(items), bytemuck::cast_slice_mut(to));
            dispatch(isa, Clean::<$w> { items, to, infinity: infinity as $w })
        }};
    }
    match size_of::<T>() {
        2 => clean!(i16),
        4 => clean!(i32),
        _ => clean!(i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_core::element::{bf16, f16};

    fn check<T: Element + PartialEq>(of: impl Fn(f64) -> T) {
        let cycle = [1.5, f64::NAN, -2.0, f64::INFINITY, f64::NEG_INFINITY, -0.0, -f64::NAN];
        for len in [0, 1, 7, 100, 70_001] {
            let items: Vec<T> = cycle.iter().cycle().take(len).map(|&x| of(x)).collect();
            for isa in Isa::available() {
                let mut to = vec![of(9.0); len];
                let found = without(&items, &mut to, isa);
                let count = |is: &dyn Fn(f64) -> bool| {
                    cycle.iter().cycle().take(len).filter(|&&x| is(x)).count() as i64
                };
                let expected = Specials {
                    nans: count(&f64::is_nan),
                    positive: count(&|x| x == f64::INFINITY),
                    negative: count(&|x| x == f64::NEG_INFINITY),
                };
                assert_eq!(found, expected, "{isa} {len}");
                for (to, &x) in to.iter().zip(cycle.iter().cycle()) {
                    let bits = if x.is_finite() { of(x) } else { of(0.0) };
                    assert_eq!(to.bits(), bits.bits(), "{isa} {len} {x}");
                }
            }
        }
    }

    #[test]
    fn specials_are_counted_and_replaced() {
        check(|x| x);
        check(|x| x as f32);
        check(f16::from_f64);
        check(bf16::from_f64);
    }
}
