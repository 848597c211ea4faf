//! What is summed: elements, absolute values, squares, products, or elements and squares at once.

use super::residues::Near;
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

/// What is summed.
pub(crate) trait Terms: Copy + 'static {
    /// The elements.
    type Item: Near;
    /// Whether elements are summed.
    const SUMS: bool = true;
    /// Whether their absolute values are, in place of themselves.
    const ABSOLUTE: bool = false;
    /// Whether products are summed.
    const PRODUCTS: bool = false;
    /// Whether these are of two arrays, and not squares.
    const PAIRED: bool = false;
}

/// The elements, or their absolute values.
#[derive(Clone, Copy)]
pub(crate) struct Elements<T, const ABSOLUTE: bool>(PhantomData<T>);

/// The elements themselves.
pub(crate) type Plain<T> = Elements<T, false>;

/// Products of two arrays' elements, or squares where `PAIRED` is false.
#[derive(Clone, Copy)]
pub(crate) struct Product<T, const PAIRED: bool>(PhantomData<T>);

/// The elements and their squares.
#[derive(Clone, Copy)]
pub(crate) struct Moments<T>(PhantomData<T>);

impl<T: Near, const ABSOLUTE: bool> Terms for Elements<T, ABSOLUTE> {
    type Item = T;
    const ABSOLUTE: bool = ABSOLUTE;
}

impl<T: Near, const PAIRED: bool> Terms for Product<T, PAIRED> {
    type Item = T;
    const SUMS: bool = false;
    const PRODUCTS: bool = true;
    const PAIRED: bool = PAIRED;
}

impl<T: Near> Terms for Moments<T> {
    type Item = T;
    const PRODUCTS: bool = true;
}
