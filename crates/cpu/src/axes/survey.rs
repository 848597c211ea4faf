//! The least and the greatest element of outputs: what is known of elements before they are added.

use super::lanes::Lanes;
use super::round::Narrow;
use core::marker::PhantomData;

/// The least and the greatest element, and whether there is a NaN, which is neither.
#[derive(Clone, Copy)]
pub(super) struct Survey<T>(PhantomData<T>);

impl<T> Survey<T> {
    pub(super) const NEW: Self = Survey(PhantomData);
}

/// What elements that are infinite or NaN make of their sum, and of that of their magnitudes: finite if
/// there are none. They are told by what a survey has found.
pub(super) fn specials([least, greatest, odd]: [f64; 3]) -> [f64; 2] {
    let infinite = |x: f64| if x.is_infinite() { x } else { 0.0 };
    // Of no numbers the least one is greater.
    let [low, high] = if least > greatest { [0.0; 2] } else { [least, greatest].map(infinite) };
    [low + high + odd, low.abs() + high.abs() + odd]
}

impl<T: Narrow> Lanes for Survey<T> {
    type Item = T;
    type Out = f64;
    type A = f64;
    type B = f64;
    type C = f64;
    const START: (f64, f64, f64) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);

    #[inline(always)]
    fn take(self, least: &mut f64, greatest: &mut f64, odd: &mut f64, x: T, _: u32) {
        let x = x.wide();
        *least = if x < *least { x } else { *least };
        *greatest = if x > *greatest { x } else { *greatest };
        *odd = if x.is_nan() { x } else { *odd };
    }

    #[inline(always)]
    fn take_all<const N: usize>(
        self,
        least: &mut [f64; N],
        greatest: &mut [f64; N],
        odd: &mut [f64; N],
        items: &[T; N],
        _: u32,
    ) {
        let mut wide = [0.0; N];
        for i in 0..N {
            wide[i] = items[i].wide();
        }
        // One loop for each: compilers make vectors of those.
        for i in 0..N {
            least[i] = if wide[i] < least[i] { wide[i] } else { least[i] };
        }
        for i in 0..N {
            greatest[i] = if wide[i] > greatest[i] { wide[i] } else { greatest[i] };
        }
        for i in 0..N {
            odd[i] = if wide[i].is_nan() { wide[i] } else { odd[i] };
        }
    }

    #[inline(always)]
    fn merge((least, greatest, odd): &mut (f64, f64, f64), others: (f64, f64, f64)) {
        *least = least.min(others.0);
        *greatest = greatest.max(others.1);
        *odd += others.2;
    }
}
