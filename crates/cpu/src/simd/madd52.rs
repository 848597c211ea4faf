//! Integer multiply-add of 52-bit numbers: AVX-512 IFMA.

use super::Simd;
#[cfg(x86_vectors)]
use super::avx512::Avx512;
use crate::isa::Isa;
#[cfg(x86_vectors)]
use core::arch::x86_64::*;

/// Vectors that can multiply the fractions of f64 as integers.
///
/// # Safety
/// As for [`Simd`].
pub(crate) trait Madd52: Simd {
    /// A vector of u64, as many lanes as one of f64.
    type I: Copy;

    unsafe fn izero() -> Self::I;
    unsafe fn istore(v: Self::I, p: *mut u64);
    /// `acc` plus the bits of `x`, which wraps around.
    unsafe fn add_bits(acc: Self::I, x: Self::F) -> Self::I;
    /// `acc` plus the low 52 bits of the product of the fractions of `x` and
    /// `y`, their low 52 bits.
    unsafe fn madd_low(acc: Self::I, x: Self::F, y: Self::F) -> Self::I;
    /// `acc` plus the high 52 bits of that product.
    unsafe fn madd_high(acc: Self::I, x: Self::F, y: Self::F) -> Self::I;
}

/// A kernel that needs them.
pub(crate) trait Kernel52 {
    /// What it hands back.
    type Out;
    /// See [`Kernel::run`](super::Kernel::run).
    ///
    /// # Safety
    /// The machine must have `S`'s instructions.
    unsafe fn run<S: Madd52>(self) -> Self::Out;
}

/// Runs a kernel, if `isa` has the instructions.
#[inline]
pub(crate) fn dispatch52<K: Kernel52>(isa: Isa, kernel: K) -> Option<K::Out> {
    #[cfg(x86_vectors)]
    if isa.has_madd52() {
        // SAFETY: an `Isa` exists only if the machine has its instructions.
        return Some(unsafe { run(kernel) });
    }
    let _ = (isa, kernel);
    None
}

/// Compiles `kernel` with the instructions.
///
/// # Safety
/// The machine must have them.
#[cfg(x86_vectors)]
#[target_feature(enable = "avx512ifma,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn run<K: Kernel52>(kernel: K) -> K::Out {
    // SAFETY: the caller guarantees the instructions.
    unsafe { kernel.run::<Avx512>() }
}

// SAFETY, for every block below: as for `Simd`; the store is the unaligned one.
#[cfg(x86_vectors)]
#[expect(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
impl Madd52 for Avx512 {
    type I = __m512i;

    #[inline(always)]
    unsafe fn izero() -> __m512i {
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn istore(v: __m512i, p: *mut u64) {
        unsafe { _mm512_storeu_si512(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn add_bits(acc: __m512i, x: __m512d) -> __m512i {
        unsafe { _mm512_add_epi64(acc, _mm512_castpd_si512(x)) }
    }
    #[inline(always)]
    unsafe fn madd_low(acc: __m512i, x: __m512d, y: __m512d) -> __m512i {
        unsafe { _mm512_madd52lo_epu64(acc, _mm512_castpd_si512(x), _mm512_castpd_si512(y)) }
    }
    #[inline(always)]
    unsafe fn madd_high(acc: __m512i, x: __m512d, y: __m512d) -> __m512i {
        unsafe { _mm512_madd52hi_epu64(acc, _mm512_castpd_si512(x), _mm512_castpd_si512(y)) }
    }
}

/// The same in plain integers, for tests on any machine.
#[cfg(test)]
mod portable {
    use super::Madd52;
    use crate::simd::portable::Portable;

    const FRACTION: u64 = (1 << 52) - 1;

    fn each(acc: [u64; 2], x: [f64; 2], y: [f64; 2], part: impl Fn(u128) -> u64) -> [u64; 2] {
        let fraction = |x: f64| u128::from(x.to_bits() & FRACTION);
        core::array::from_fn(|i| acc[i] + part(fraction(x[i]) * fraction(y[i])))
    }

    impl Madd52 for Portable {
        type I = [u64; 2];

        unsafe fn izero() -> [u64; 2] {
            [0; 2]
        }
        unsafe fn istore(v: [u64; 2], p: *mut u64) {
            // SAFETY: the caller guarantees a vector's room.
            unsafe { p.cast::<[u64; 2]>().write_unaligned(v) }
        }
        unsafe fn add_bits(acc: [u64; 2], x: [f64; 2]) -> [u64; 2] {
            core::array::from_fn(|i| acc[i].wrapping_add(x[i].to_bits()))
        }
        unsafe fn madd_low(acc: [u64; 2], x: [f64; 2], y: [f64; 2]) -> [u64; 2] {
            each(acc, x, y, |product| product as u64 & FRACTION)
        }
        unsafe fn madd_high(acc: [u64; 2], x: [f64; 2], y: [f64; 2]) -> [u64; 2] {
            each(acc, x, y, |product| (product >> 52) as u64)
        }
    }
}
