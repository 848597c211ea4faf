//! Operations on bits: fields, masks, funnel shifts, permutations, truth tables.

use super::int::sign_extend;
use crate::ir::{PermuteMode, Type};

/// `bfe`: the field of `length` bits from `start` on. Signed types fill with the field's highest bit, or the value's where the field reaches beyond it.
#[must_use]
pub fn extract(ty: Type, a: u64, start: u64, length: u64) -> u64 {
    let bits = u64::from(ty.bits());
    let (start, length) = (start & 0xff, length & 0xff);
    if length == 0 {
        return 0;
    }
    let value = if ty.is_signed() { sign_extend(a, ty.bits()) as u64 } else { a & ty.mask() };
    let shifted = if ty.is_signed() {
        ((value as i64) >> start.min(63)) as u64
    } else {
        value.checked_shr(start as u32).unwrap_or(0)
    };
    let length = length.min(bits) as u32;
    let field = if ty.is_signed() {
        sign_extend(shifted, length) as u64
    } else {
        shifted & (u64::MAX >> (64 - length))
    };
    field & ty.mask()
}

/// `bfi`: `b` with `length` bits from `start` on replaced by the low bits of `a`.
#[must_use]
pub fn insert(ty: Type, a: u64, b: u64, start: u64, length: u64) -> u64 {
    let (start, length) = ((start & 0xff) as u32, (length & 0xff) as u32);
    if start >= ty.bits() || length == 0 {
        return b;
    }
    let field = (u64::MAX >> (64 - length.min(64))) << start & ty.mask();
    (b & !field) | ((a << start) & field)
}

/// `bfind`: where the highest bit that differs from the sign is, or its distance from the top; all ones if there is none.
#[must_use]
pub fn find(ty: Type, shift_amount: bool, a: u64) -> u64 {
    let value = if ty.is_signed() && sign_extend(a, ty.bits()) < 0 { !a & ty.mask() } else { a };
    if value == 0 {
        return 0xffff_ffff;
    }
    let place = 63 - value.leading_zeros();
    u64::from(if shift_amount { ty.bits() - 1 - place } else { place })
}

/// `fns`: the `n`-th bit set from `base` on, upwards for positive `n`; all ones if there is none.
#[must_use]
pub fn find_nth_set(mask: u64, base: u64, n: u64) -> u64 {
    const NONE: u64 = 0xffff_ffff;
    let n = n as u32 as i32;
    let base = base & 0xffff_ffff;
    if base > 31 {
        return NONE;
    }
    let set = |i: u64| (mask >> i) & 1 == 1;
    let nth = n.unsigned_abs() as usize;
    let found = match n {
        0 => set(base).then_some(base),
        1.. => (base..32).filter(|&i| set(i)).nth(nth - 1),
        _ => (0..=base).rev().filter(|&i| set(i)).nth(nth - 1),
    };
    found.unwrap_or(NONE)
}

/// `bmsk`: `width` ones from `position` on, in 32 bits.
#[must_use]
pub fn mask(wrap: bool, position: u64, width: u64) -> u64 {
    let limit = |x: u64| if wrap { x & 31 } else { (x & 0xffff_ffff).min(32) };
    let ones = (1u64 << limit(width)) - 1;
    (ones << limit(position)) & 0xffff_ffff
}

/// `szext`: the low `width` bits, extended to 32.
#[must_use]
pub fn extend(ty: Type, wrap: bool, a: u64, width: u64) -> u64 {
    let width = if wrap { width & 31 } else { (width & 0xffff_ffff).min(32) } as u32;
    match (width, ty.is_signed()) {
        (0, _) => 0,
        (_, true) => sign_extend(a, width) as u64 & 0xffff_ffff,
        (_, false) => a & (u64::MAX >> (64 - width)),
    }
}

/// `shf`: the upper half of `b:a` shifted left, or the lower half of it shifted right.
#[must_use]
#[inline]
pub fn funnel(left: bool, wrap: bool, a: u64, b: u64, count: u64) -> u64 {
    let count = if wrap { count & 31 } else { (count & 0xffff_ffff).min(32) };
    let whole = (b << 32) | a;
    if left { (whole << count) >> 32 } else { (whole >> count) & 0xffff_ffff }
}

/// `prmt`: four bytes of `b:a`.
#[must_use]
#[inline]
pub fn permute(mode: PermuteMode, a: u64, b: u64, selector: u64) -> u64 {
    let bytes = ((b << 32) | a).to_le_bytes();
    let s = (selector & 3) as usize;
    let mut out = [0u8; 4];
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = match mode {
            PermuteMode::Index => {
                let nibble = (selector >> (4 * i)) as usize & 15;
                let picked = bytes[nibble & 7];
                // The selector's top bit asks for the byte's sign, eight times.
                if nibble & 8 == 0 { picked } else { ((picked as i8) >> 7) as u8 }
            }
            PermuteMode::Forward4 => bytes[s + i],
            PermuteMode::Backward4 => bytes[(8 + s - i) % 8],
            PermuteMode::Replicate8 => bytes[s],
            PermuteMode::ClampLeft => bytes[s.max(i)],
            PermuteMode::ClampRight => bytes[s.min(i)],
            PermuteMode::Replicate16 => bytes[2 * (s & 1) + (i & 1)],
        };
    }
    u64::from(u32::from_le_bytes(out))
}

/// `lop3`: the function of three bits with this truth table, on 32 bits.
#[must_use]
#[inline]
pub fn lop3(table: u8, a: u64, b: u64, c: u64) -> u64 {
    let mut out = 0;
    for row in 0..8u8 {
        if table >> row & 1 == 1 {
            let x = if row & 4 == 0 { !a } else { a };
            let y = if row & 2 == 0 { !b } else { b };
            let z = if row & 1 == 0 { !c } else { c };
            out |= x & y & z;
        }
    }
    out & 0xffff_ffff
}
