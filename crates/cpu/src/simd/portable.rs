//! Plain arrays, which compilers turn into SSE2: the baseline where no other body is.
//!
//! What sums of f64 are made of is written out, lane by lane: without optimisation, which leaves
//! every call of a closure as it is, only this body is compiled.

use super::{Kernel, Simd};

/// Two f64 lanes without intrinsics: a register of SSE2.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const N: usize = 2;
type F = [f64; N];
type W = [u32; 2 * N];

#[inline(always)]
fn map2<T: Copy, U: Copy, const L: usize>(a: [T; L], b: [T; L], f: impl Fn(T, T) -> U) -> [U; L] {
    core::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn bits(a: F) -> [u64; N] {
    // SAFETY: floats are words of any bits.
    unsafe { core::mem::transmute(a) }
}

#[inline(always)]
fn floats(a: [u64; N]) -> F {
    // SAFETY: as above.
    unsafe { core::mem::transmute(a) }
}

/// Does something to each pair of words, taken as one integer.
#[inline(always)]
fn doubles2(a: W, b: W, f: impl Fn(i64, i64) -> i64) -> W {
    let [a, b]: [[i64; N]; 2] = [bytemuck::must_cast(a), bytemuck::must_cast(b)];
    bytemuck::must_cast(map2(a, b, f))
}

/// f16 bits to f32 bits without branches: the exponent is rebased by an exact
/// multiplication, and infinities and NaNs get the f32 exponent of all ones.
#[inline(always)]
fn f16_to_f32_bits(h: u16) -> u32 {
    let h = u32::from(h);
    let magnitude = h & 0x7fff;
    // Subnormals by an integer conversion, not through a subnormal f32, so
    // that flush-to-zero could not touch them.
    let normal = (magnitude << 13) + ((127 - 15) << 23);
    let subnormal = ((magnitude as i32) as f32 * f32::from_bits((127 - 24) << 23)).to_bits();
    let special = (magnitude << 13) | 0x7f80_0000;
    let bits = if magnitude >= 0x7c00 {
        special
    } else if magnitude < 0x0400 {
        subnormal
    } else {
        normal
    };
    bits | ((h & 0x8000) << 16)
}

// SAFETY, for every block below: the trait's contract guarantees the pointers; any bits are vectors.
#[expect(unused_unsafe, reason = "most functions are plain")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
impl Simd for Portable {
    const LANES: usize = N;
    const FUSED: bool = false;
    type F = F;
    type W = W;

    #[inline(never)]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out {
        unsafe { kernel.run::<Portable>() }
    }

    instructions! {
        splat(x: f64) -> F = [x; N];
        load(p: *const f64) -> F = p.cast::<F>().read_unaligned();
        store(v: F, p: *mut f64) = p.cast::<F>().write_unaligned(v);
        add(a: F, b: F) -> F = [a[0] + b[0], a[1] + b[1]];
        sub(a: F, b: F) -> F = [a[0] - b[0], a[1] - b[1]];
        mul(a: F, b: F) -> F = map2(a, b, |x, y| x * y);
        add_beside(a: F, b: F, _: F) -> F = [a[0] + b[0], a[1] + b[1]];
        mul_sub(a: F, b: F, c: F) -> F = {
            // Without an FMA instruction this calls a correctly rounded routine.
            core::array::from_fn(|i| a[i].mul_add(b[i], -c[i]))
        };
        and(a: F, b: F) -> F = {
            let (a, b) = (bits(a), bits(b));
            floats([a[0] & b[0], a[1] & b[1]])
        };
        or(a: F, b: F) -> F = {
            let (a, b) = (bits(a), bits(b));
            floats([a[0] | b[0], a[1] | b[1]])
        };
        or_xor(a: F, b: F, c: F) -> F = {
            let (a, b, c) = (bits(a), bits(b), bits(c));
            floats([a[0] | (b[0] ^ c[0]), a[1] | (b[1] ^ c[1])])
        };
        abs(a: F) -> F = a.map(f64::abs);
        max(a: F, b: F) -> F = map2(a, b, |a, b| if a > b { a } else { b });
        min(a: F, b: F) -> F = map2(a, b, |a, b| if a < b { a } else { b });
        or_unordered(acc: F, a: F, b: F) -> F = {
            let odd = map2(a, b, |a, b| if a.is_nan() | b.is_nan() { u64::MAX } else { 0 });
            floats(map2(bits(acc), odd, |acc, odd| acc | odd))
        };
        lookup(table: &[u64; 64], n: F) -> F = floats(bits(n).map(|n| table[n as usize % 64]));
        add_exponent(x: F, n: F) -> F = floats(map2(bits(x), bits(n), |x, n| x.wrapping_add(n << 46)));
        magnitudes([least, most]: [F; 2], x: F) -> [F; 2] = {
            let x = x.map(f64::abs);
            let less = x.map(|x| f64::from_bits(x.to_bits().wrapping_sub(1)));
            // Zero less one is a NaN, which is not less.
            [
                map2(less, least, |a, b| if a < b { a } else { b }),
                map2(x, most, |a, b| if a > b { a } else { b }),
            ]
        };
        all_below(a: F, limit: f64) -> bool = a.iter().all(|&x| x < limit);
        none_below(a: F, limit: f64) -> bool = !a.iter().any(|&x| x < limit);
        sum_each(v: [F; 8]) -> F = core::array::from_fn(|i| v[i][0] + v[i][1]);
        wsplat(x: u32) -> W = [x; 2 * N];
        wload(p: *const u32) -> W = p.cast::<W>().read_unaligned();
        wstore(v: W, p: *mut u32) = p.cast::<W>().write_unaligned(v);
        wadd(a: W, b: W) -> W = map2(a, b, u32::wrapping_add);
        wsub(a: W, b: W) -> W = map2(a, b, u32::wrapping_sub);
        wmax(a: W, b: W) -> W = map2(a, b, Ord::max);
        wmin(a: W, b: W) -> W = map2(a, b, Ord::min);
        wleast(a: W, b: W) -> W = map2(a, b, |a, b| if f32::from_bits(a) < f32::from_bits(b) { a } else { b });
        wgreatest(a: W, b: W) -> W = map2(a, b, |a, b| if f32::from_bits(a) > f32::from_bits(b) { a } else { b });
        wor_unordered(acc: W, a: W, b: W) -> W = {
            let is_nan = |x| f32::from_bits(x).is_nan();
            let odd = map2(a, b, |a, b| if is_nan(a) | is_nan(b) { u32::MAX } else { 0 });
            map2(acc, odd, |acc, odd| acc | odd)
        };
        wand(a: W, b: W) -> W = map2(a, b, |x, y| x & y);
        wxor(a: W, b: W) -> W = map2(a, b, |x, y| x ^ y);
        sum_bytes(acc: W, a: W) -> W = {
            let bytes: [[u8; 8]; N] = bytemuck::must_cast(a);
            let sums = bytes.map(|bytes| bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>());
            let acc: [u64; N] = bytemuck::must_cast(acc);
            bytemuck::must_cast(map2(acc, sums, u64::wrapping_add))
        };
        add_words(to: &mut [u64; 2], p: *const u64, beside: [u64; 2]) = {
            let x = p.read_unaligned();
            to[0] = to[0].wrapping_add((x & u64::from(u32::MAX)) + beside[0]);
            to[1] = to[1].wrapping_add((x >> 32) + beside[1]);
        };
        dadd_bits(acc: W, x: F) -> W = doubles2(acc, bytemuck::must_cast(x), i64::wrapping_add);
        widen(a: W) -> (F, F) = {
            (
                core::array::from_fn(|i| f64::from(f32::from_bits(a[i]))),
                core::array::from_fn(|i| f64::from(f32::from_bits(a[i + N]))),
            )
        };
        load_f16(p: *const u16) -> W = {
            let h = p.cast::<[u16; 2 * N]>().read_unaligned();
            h.map(f16_to_f32_bits)
        };
        load_bf16(p: *const u16) -> W = {
            let h = p.cast::<[u16; 2 * N]>().read_unaligned();
            h.map(|h| u32::from(h) << 16)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_widens_as_half_says() {
        for h in 0..=u16::MAX {
            let expected = half::f16::from_bits(h).to_f32();
            let got = f32::from_bits(f16_to_f32_bits(h));
            assert!(got == expected || got.is_nan() && expected.is_nan(), "{h:#06x}");
        }
    }
}
