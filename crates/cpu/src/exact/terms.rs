//! What is summed: elements, absolute values, squares or products, as f64
//! vectors that hold each term exactly.

use crate::simd::Simd;
use core::marker::PhantomData;
use warpfold_core::Element;
use warpfold_core::element::{bf16, f16};

/// Elements a vector kernel can widen to f64 exactly.
pub(crate) trait Widen: Element {
    /// `2 * LANES` elements at `p`, as two vectors.
    ///
    /// # Safety
    /// See [`Simd`]; `p` is valid for that many elements.
    unsafe fn widen<S: Simd>(p: *const Self) -> [S::F; 2];
}

impl Widen for f64 {
    #[inline(always)]
    unsafe fn widen<S: Simd>(p: *const f64) -> [S::F; 2] {
        // SAFETY: passed on from the caller.
        unsafe { [S::load(p), S::load(p.add(S::LANES))] }
    }
}

macro_rules! widen_through_f32 {
    ($t:ty, $load:ident) => {
        impl Widen for $t {
            #[inline(always)]
            unsafe fn widen<S: Simd>(p: *const $t) -> [S::F; 2] {
                // SAFETY: passed on from the caller.
                let (low, high) = unsafe { S::widen(S::$load(p.cast())) };
                [low, high]
            }
        }
    };
}
widen_through_f32!(f32, wload);
widen_through_f32!(f16, load_f16);
widen_through_f32!(bf16, load_bf16);

/// How elements become terms.
pub(crate) trait Terms: Copy + 'static {
    /// The elements.
    type Item: Widen;
    /// Whether terms need two f64: a product and its rounding error.
    const SPLIT: bool = false;
    /// Whether terms are products of two elements.
    const IS_PRODUCT: bool = false;
    /// Whether there is a second array.
    const PAIRED: bool = false;

    /// Two vectors of terms; for split terms, of the rounded products.
    ///
    /// # Safety
    /// As for [`Widen::widen`], for `q` too if terms are paired.
    unsafe fn load<S: Simd>(p: *const Self::Item, q: *const Self::Item) -> [S::F; 2];

    /// For split terms: the rounded products and their errors.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    unsafe fn load_split<S: Simd>(p: *const Self::Item, q: *const Self::Item) -> [Split<S>; 2] {
        // SAFETY: passed on from the caller.
        unsafe {
            let zero = S::splat(0.0);
            let [a, b] = Self::load::<S>(p, q);
            let factors = [zero; 2];
            [Split { product: a, error: zero, factors }, Split { product: b, error: zero, factors }]
        }
    }
}

/// A vector of products, each taken apart into the rounded product and its
/// error.
#[derive(Clone, Copy)]
pub(crate) struct Split<S: Simd> {
    /// The rounded products.
    pub(super) product: S::F,
    /// What rounding cut off: exact unless it underflows.
    pub(super) error: S::F,
    /// The factors.
    pub(super) factors: [S::F; 2],
}

impl<S: Simd> Split<S> {
    /// The products of `a` and `b`. A closure would do, but one that is not inlined has the
    /// baseline's instructions, and takes ten times as long.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn of(a: S::F, b: S::F) -> Self {
        // SAFETY: passed on from the caller.
        unsafe {
            let product = S::mul(a, b);
            Split { product, error: S::mul_sub(a, b, product), factors: [a, b] }
        }
    }
}

/// The elements, or their absolute values.
#[derive(Clone, Copy)]
pub(crate) struct Elements<T, const ABSOLUTE: bool>(PhantomData<T>);

/// The elements themselves.
pub(crate) type Plain<T> = Elements<T, false>;

impl<T: Widen, const ABSOLUTE: bool> Terms for Elements<T, ABSOLUTE> {
    type Item = T;
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const T, _: *const T) -> [S::F; 2] {
        // SAFETY: passed on from the caller.
        unsafe {
            let [a, b] = T::widen::<S>(p);
            if ABSOLUTE { [S::abs(a), S::abs(b)] } else { [a, b] }
        }
    }
}

/// Products of two arrays' elements, or squares where `PAIRED` is false.
///
/// A product of two f32 has at most 48 significant bits and an exponent within
/// f64's normal range, so it is exact; a product of two f64 is split into the
/// rounded product and its error.
#[derive(Clone, Copy)]
pub(crate) struct Product<T, const PAIRED: bool>(PhantomData<T>);

macro_rules! exact_product {
    ($($t:ty),*) => {$(
        impl<const P: bool> Terms for Product<$t, P> {
            type Item = $t;
            const IS_PRODUCT: bool = true;
            const PAIRED: bool = P;
            #[inline(always)]
            unsafe fn load<S: Simd>(p: *const $t, q: *const $t) -> [S::F; 2] {
                // SAFETY: passed on from the caller.
                unsafe {
                    let [a0, a1] = <$t>::widen::<S>(p);
                    let [b0, b1] = if P { <$t>::widen::<S>(q) } else { [a0, a1] };
                    [S::mul(a0, b0), S::mul(a1, b1)]
                }
            }
        }
    )*};
}
exact_product!(f16, bf16, f32);

impl<const P: bool> Terms for Product<f64, P> {
    type Item = f64;
    const SPLIT: bool = true;
    const IS_PRODUCT: bool = true;
    const PAIRED: bool = P;
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const f64, q: *const f64) -> [S::F; 2] {
        // SAFETY: passed on from the caller.
        unsafe {
            let [a, b] = Self::load_split::<S>(p, q);
            [a.product, b.product]
        }
    }
    #[inline(always)]
    unsafe fn load_split<S: Simd>(p: *const f64, q: *const f64) -> [Split<S>; 2] {
        // SAFETY: passed on from the caller.
        unsafe {
            let [a0, a1] = f64::widen::<S>(p);
            let [b0, b1] = if P { f64::widen::<S>(q) } else { [a0, a1] };
            [Split::of(a0, b0), Split::of(a1, b1)]
        }
    }
}
