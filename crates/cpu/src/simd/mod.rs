//! The small vector vocabulary that the floating-point kernels are written in,
//! and the one place that picks an instruction set.
//!
//! A kernel is written once, generic over [`Simd`], with everything
//! `#[inline(always)]`; [`dispatch`] compiles it inside a function per
//! instruction set.

/// Functions of [`Simd`] that are an instruction or two: `name(arguments) -> result = expression;`.
macro_rules! instructions {
    ($($name:ident($($argument:tt: $type:ty),*) $(-> $out:ty)? = $body:expr;)*) => {$(
        #[inline(always)]
        unsafe fn $name($($argument: $type),*) $(-> $out)? {
            unsafe { $body }
        }
    )*};
}

#[cfg(x86_vectors)]
mod avx2;
#[cfg(x86_vectors)]
mod avx512;
#[cfg(neon_vectors)]
mod neon;
#[cfg(any(test, not(neon_vectors)))]
pub(crate) mod portable;

/// What every machine of the target has.
#[cfg(neon_vectors)]
use neon::Neon as Baseline;
#[cfg(not(neon_vectors))]
use portable::Portable as Baseline;

use crate::isa::Isa;
#[cfg(x86_vectors)]
use crate::isa::Set;

/// Vectors of f64 and of 32-bit words of one instruction set.
///
/// # Safety
/// Calling any function is sound only on a machine that has the instruction
/// set; pointers must be valid for reads of a whole vector, at any alignment.
pub(crate) trait Simd: Copy + 'static {
    /// f64 lanes of a vector; a word vector has twice as many.
    const LANES: usize;
    /// Whether `f64::mul_add` is an instruction.
    const FUSED: bool;
    /// A vector of f64.
    type F: Copy;
    /// A vector of u32, twice as many lanes.
    type W: Copy;

    /// Runs a kernel in a function of its own, for what is seldom and large.
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out;
    unsafe fn splat(x: f64) -> Self::F;
    unsafe fn load(p: *const f64) -> Self::F;
    unsafe fn store(v: Self::F, p: *mut f64);
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    /// `a + b`, where `one` holds ones that the compiler does not know of: by
    /// the units that multiply and add, where those lie idle otherwise.
    unsafe fn add_beside(a: Self::F, b: Self::F, one: Self::F) -> Self::F;
    /// `a * b - c`, rounded once.
    unsafe fn mul_sub(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Bitwise and.
    unsafe fn and(a: Self::F, b: Self::F) -> Self::F;
    /// Bitwise or.
    unsafe fn or(a: Self::F, b: Self::F) -> Self::F;
    /// `a | (b ^ c)`.
    unsafe fn or_xor(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    unsafe fn abs(a: Self::F) -> Self::F;
    /// The larger one; `b` where either is NaN.
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F;
    /// The smaller one; `b` where either is NaN.
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F;
    /// `acc`, with some bit set in lanes where `a` or `b` is NaN.
    unsafe fn or_unordered(acc: Self::F, a: Self::F, b: Self::F) -> Self::F;
    /// The number whose bits are the word of the table that the lowest 6 bits of `n` say.
    unsafe fn lookup(table: &[u64; 64], n: Self::F) -> Self::F;
    /// The sum of the bits, as integers, of `x` and of `n` moved upwards by 46: `n 2^-6` is added
    /// to the exponent.
    unsafe fn add_exponent(x: Self::F, n: Self::F) -> Self::F;
    /// `[least, most]` with the magnitudes of `x`: `least` is of those that are not 0, of
    /// which the bits are taken less one, `most` of all. NaNs do not count.
    unsafe fn magnitudes(seen: [Self::F; 2], x: Self::F) -> [Self::F; 2];
    /// The same with two vectors.
    #[inline(always)]
    unsafe fn magnitudes_of_two(seen: [Self::F; 2], a: Self::F, b: Self::F) -> [Self::F; 2] {
        // SAFETY: passed on from the caller.
        unsafe { Self::magnitudes(Self::magnitudes(seen, a), b) }
    }
    /// Whether all lanes are below `limit`: NaNs are not.
    unsafe fn all_below(a: Self::F, limit: f64) -> bool;
    /// Whether no lane is below `limit`: NaNs are not.
    unsafe fn none_below(a: Self::F, limit: f64) -> bool;

    /// The sum of the lanes of each of the first `LANES` vectors, as one
    /// vector.
    unsafe fn sum_each(v: [Self::F; 8]) -> Self::F;

    /// The first `LANES` vectors turned: lane `i` of vector `j` is lane `j` of vector `i`.
    #[inline(always)]
    unsafe fn transpose(v: [Self::F; 8]) -> [Self::F; 8] {
        let mut turned = v;
        let mut lanes = [[0.0; 8]; 8];
        // SAFETY: the buffers hold the widest vector; the caller has the instructions.
        unsafe {
            for (lanes, v) in lanes.iter_mut().zip(v).take(Self::LANES) {
                Self::store(v, lanes.as_mut_ptr());
            }
            for (i, turned) in turned.iter_mut().enumerate().take(Self::LANES) {
                let column: [f64; 8] = core::array::from_fn(|j| lanes[j][i]);
                *turned = Self::load(column.as_ptr());
            }
        }
        turned
    }

    unsafe fn wsplat(x: u32) -> Self::W;
    unsafe fn wload(p: *const u32) -> Self::W;
    unsafe fn wstore(v: Self::W, p: *mut u32);
    unsafe fn wadd(a: Self::W, b: Self::W) -> Self::W;
    unsafe fn wsub(a: Self::W, b: Self::W) -> Self::W;
    /// Unsigned maximum.
    unsafe fn wmax(a: Self::W, b: Self::W) -> Self::W;
    /// Unsigned minimum.
    unsafe fn wmin(a: Self::W, b: Self::W) -> Self::W;
    /// [`min`](Self::min) of such words.
    unsafe fn wleast(a: Self::W, b: Self::W) -> Self::W;
    /// [`max`](Self::max) of such words.
    unsafe fn wgreatest(a: Self::W, b: Self::W) -> Self::W;
    /// [`or_unordered`](Self::or_unordered) of such words.
    unsafe fn wor_unordered(acc: Self::W, a: Self::W, b: Self::W) -> Self::W;
    /// Bitwise and.
    unsafe fn wand(a: Self::W, b: Self::W) -> Self::W;
    /// Bitwise exclusive or.
    unsafe fn wxor(a: Self::W, b: Self::W) -> Self::W;
    /// `acc`, whose pairs of words are taken as one integer each, plus the sum of
    /// the unsigned bytes in the same place.
    unsafe fn sum_bytes(acc: Self::W, a: Self::W) -> Self::W;
    /// Adds the two words at `p`, lower first, and `beside` to two integers.
    unsafe fn add_words(to: &mut [u64; 2], p: *const u64, beside: [u64; 2]);
    /// Adds the bits of f64, as integers, to pairs of words, which wrap around.
    unsafe fn dadd_bits(acc: Self::W, x: Self::F) -> Self::W;
    /// The words read as f32 and widened: lower half, upper half.
    unsafe fn widen(a: Self::W) -> (Self::F, Self::F);
    /// `2 * LANES` f16 widened to f32 bits.
    unsafe fn load_f16(p: *const u16) -> Self::W;
    /// `2 * LANES` bf16 widened to f32 bits.
    unsafe fn load_bf16(p: *const u16) -> Self::W;
}

/// A piece of work that can be compiled for any instruction set.
pub(crate) trait Kernel {
    /// What it hands back.
    type Out;
    /// Does the work. Implementations are `#[inline(always)]`, as is all that
    /// they call with vectors.
    ///
    /// # Safety
    /// The machine must have `S`'s instructions.
    unsafe fn run<S: Simd>(self) -> Self::Out;
}

/// Runs a kernel with the instructions of `isa`.
#[inline]
pub(crate) fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Out {
    match isa.set() {
        #[cfg(x86_vectors)]
        // SAFETY: an `Isa` exists only if the machine has its instructions.
        Set::Avx512 => unsafe { avx512::run(kernel) },
        #[cfg(x86_vectors)]
        // SAFETY: as above.
        Set::Avx2 => unsafe { avx2::run(kernel) },
        // SAFETY: the baseline is what the target always has.
        _ => unsafe { kernel.run::<Baseline>() },
    }
}

/// The same for accumulators of many outputs, where [`Isa::has_accumulators`].
#[inline]
pub(crate) fn dispatch_accumulators<K: Kernel>(isa: Isa, kernel: K) -> K::Out {
    match isa.set() {
        #[cfg(x86_vectors)]
        // SAFETY: an `Isa` exists only if the machine has its instructions.
        Set::Avx512 => unsafe { avx512::run(kernel) },
        #[cfg(x86_vectors)]
        // SAFETY: as above.
        Set::Avx2 => unsafe { avx2::run(kernel) },
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        // SAFETY: the baseline is what the target always has.
        _ => unsafe { kernel.run::<Baseline>() },
        #[cfg(not(any(not(target_arch = "x86_64"), miri)))]
        _ => {
            let _ = kernel;
            unreachable!("states answer on this machine")
        }
    }
}
