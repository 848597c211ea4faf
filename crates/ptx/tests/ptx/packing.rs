//! `cvt.pack` against sums of powers of two, at the ends of each type.

use crate::bench::plain;
use crate::execution::{kernel, run_one};
use warpfold_ptx::machine::Schedule;

/// The word that holds two clamped numbers and, above them, the low bits of a third.
fn expected(bits: u32, signed: bool, a: i32, b: i32, c: u32) -> u32 {
    let (least, most) = if signed {
        (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)
    } else {
        (0, (1i64 << bits) - 1)
    };
    let field = |x: i32| i64::from(x).max(least).min(most).rem_euclid(1 << bits);
    let above = if bits == 16 { 0 } else { u64::from(c) * (1 << (2 * bits)) };
    ((above as i64 + field(a) * (1 << bits) + field(b)) & 0xffff_ffff) as u32
}

#[test]
fn integers_are_clamped_and_packed() {
    let ends = [
        0, 1, -1, 2, -3, 7, 8, -8, -9, 127, 128, -128, -129, 255, 256, 32767, 32768, -32769, 65535,
        65536,
    ];
    let ends = ends.into_iter().chain([i32::MIN, i32::MAX]);
    for bits in [16, 8, 4, 2] {
        for signed in [true, false] {
            for x in ends.clone() {
                for (a, b, c) in [(x, 5, 0xdead_beef_u32), (-1, x, 0), (x, x, u32::MAX)] {
                    let sign = if signed { 's' } else { 'u' };
                    let (of_c, word) = if bits == 16 { ("", "") } else { (", %r3", ".b32") };
                    let ptx = kernel(&format!(
                        "mov.u32 %r1, {a}; mov.u32 %r2, {b}; mov.u32 %r3, {c};
                         cvt.pack.sat.{sign}{bits}.s32{word} %r4, %r1, %r2{of_c}; st.global.u32 [%o], %r4;"
                    ));
                    let (out, _) = run_one(&ptx, plain(Schedule::Lockstep), 1);
                    let wanted = expected(bits, signed, a, b, c);
                    assert_eq!(out[0], wanted, "{sign}{bits} of {a}, {b}, {c:#x}");
                }
            }
        }
    }
}
