//! Integer and bit operations against their definitions in PTX, written out bit by bit or in 128-bit arithmetic.

use proptest::prelude::*;
use warpfold_ptx::ir::{CarryOp, IntBinary, IntTernary, IntUnary, PermuteMode, Type};
use warpfold_ptx::value::{bits, int};

const TYPES: [Type; 6] = [Type::U16, Type::S16, Type::U32, Type::S32, Type::U64, Type::S64];

fn number(ty: Type, a: u64) -> i128 {
    let bits = ty.bits();
    let a = i128::from(a & ty.mask());
    if ty.is_signed() && a >> (bits - 1) == 1 { a - (1 << bits) } else { a }
}

fn wrap(bits: u32, value: i128) -> u64 {
    (value as u128 & (u128::MAX >> (128 - bits))) as u64
}

/// Values with few or many bits set, at the edges and between.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u32..64).prop_map(|s| 1 << s),
        (0u32..64).prop_map(|s| (1u64 << s).wrapping_sub(1)),
        0u64..4,
        (0u64..4).prop_map(|x| !x),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn arithmetic_is_that_of_the_integers(
        ty in prop::sample::select(TYPES.to_vec()), a in value(), b in value(), c in value(),
    ) {
        let [a, b, c] = [a, b, c].map(|x| x & ty.mask());
        let (x, y, z) = (number(ty, a), number(ty, b), number(ty, c));
        let bits = ty.bits();
        let f = |op| int::binary(op, ty, a, b);
        prop_assert_eq!(f(IntBinary::Add), wrap(bits, x + y));
        prop_assert_eq!(f(IntBinary::Sub), wrap(bits, x - y));
        prop_assert_eq!(f(IntBinary::MulLo), wrap(bits, x.wrapping_mul(y)));
        // An unsigned 64-bit product needs all 128 bits.
        let whole = x.wrapping_mul(y) as u128;
        let high = (whole >> bits) as u64 & ty.mask();
        prop_assert_eq!(f(IntBinary::MulHi), high);
        prop_assert_eq!(f(IntBinary::Min), wrap(bits, x.min(y)));
        prop_assert_eq!(f(IntBinary::Max), wrap(bits, x.max(y)));
        if y != 0 {
            prop_assert_eq!(f(IntBinary::Div), wrap(bits, x / y));
            prop_assert_eq!(f(IntBinary::Rem), wrap(bits, x % y));
        } else {
            prop_assert_eq!(f(IntBinary::Div), ty.mask());
            prop_assert_eq!(f(IntBinary::Rem), ty.mask());
        }
        let t = |op| int::ternary(op, ty, a, b, c);
        prop_assert_eq!(t(IntTernary::MadLo), wrap(bits, x.wrapping_mul(y).wrapping_add(z)));
        prop_assert_eq!(t(IntTernary::MadHi), wrap(bits, i128::from(high) + z));
        prop_assert_eq!(t(IntTernary::Sad), wrap(bits, (x - y).abs() + z));
        if bits <= 32 {
            prop_assert_eq!(f(IntBinary::MulWide), wrap(2 * bits, x * y));
            let wide = int::ternary(IntTernary::MadWide, ty, a, b, c | (b << 32));
            let z = i128::from(c | (b << 32));
            prop_assert_eq!(wide, wrap(2 * bits, x * y + z));
        }
    }

    #[test]
    fn saturating_sums_stop_at_the_edges(a in value(), b in value(), c in value()) {
        let [a, b, c] = [a, b, c].map(|x| x & 0xffff_ffff);
        let [x, y, z] = [a, b, c].map(|x| x as u32 as i32);
        let bits = |x: i32| u64::from(x as u32);
        prop_assert_eq!(int::binary(IntBinary::AddSat, Type::S32, a, b), bits(x.saturating_add(y)));
        prop_assert_eq!(int::binary(IntBinary::SubSat, Type::S32, a, b), bits(x.saturating_sub(y)));
        let high = ((i64::from(x) * i64::from(y)) >> 32) as i32;
        prop_assert_eq!(
            int::ternary(IntTernary::MadHiSat, Type::S32, a, b, c), bits(high.saturating_add(z))
        );
    }

    #[test]
    fn shifts_are_clamped(ty in prop::sample::select(TYPES.to_vec()), a in value(), count in 0u64..300) {
        let a = a & ty.mask();
        let x = number(ty, a);
        let n = count.min(u64::from(ty.bits())) as u32;
        let left = if n == ty.bits() { 0 } else { wrap(ty.bits(), x << n) };
        prop_assert_eq!(int::binary(IntBinary::Shl, ty, a, count), left);
        prop_assert_eq!(int::binary(IntBinary::Shr, ty, a, count), wrap(ty.bits(), x >> n));
    }

    #[test]
    fn carries_chain_into_wide_sums(a in any::<u128>(), b in any::<u128>(), ty in prop::sample::select(vec![Type::U32, Type::U64])) {
        let limbs = |x: u128| (0..128 / ty.bits()).map(move |i| (x >> (i * ty.bits())) as u64 & ty.mask());
        for (op, expected) in [(CarryOp::Add, a.wrapping_add(b)), (CarryOp::Sub, a.wrapping_sub(b))] {
            // A difference begins with nothing borrowed, which is a carry.
            let (mut got, mut carry) = (0u128, op == CarryOp::Sub);
            for (i, (x, y)) in limbs(a).zip(limbs(b)).enumerate() {
                let (limb, out) = int::carry(op, ty, x, y, 0, carry);
                got |= u128::from(limb) << (i as u32 * ty.bits());
                carry = out;
            }
            prop_assert_eq!(got, expected);
            prop_assert_eq!(carry, if op == CarryOp::Add { a.checked_add(b).is_none() } else { a >= b });
        }
    }

    #[test]
    fn mad_with_carries_multiplies_64_by_64(a in any::<u64>(), b in any::<u64>()) {
        // The schoolbook product in four 32-bit limbs.
        let (a0, a1, b0, b1) = (a & 0xffff_ffff, a >> 32, b & 0xffff_ffff, b >> 32);
        let mad = |op, x, y, c, carry| int::carry(op, Type::U32, x, y, c, carry);
        let r0 = int::binary(IntBinary::MulLo, Type::U32, a0, b0);
        let r1 = int::binary(IntBinary::MulHi, Type::U32, a0, b0);
        let (r1, c) = mad(CarryOp::MadLo, a0, b1, r1, false);
        let (r2, c) = mad(CarryOp::MadHi, a0, b1, 0, c);
        prop_assert!(!c);
        let (r1, c) = mad(CarryOp::MadLo, a1, b0, r1, false);
        let (r2, c) = mad(CarryOp::MadHi, a1, b0, r2, c);
        let r3 = u64::from(c);
        let (r2, c) = mad(CarryOp::MadLo, a1, b1, r2, false);
        let (r3, _) = mad(CarryOp::MadHi, a1, b1, r3, c);
        let got = [r0, r1, r2, r3].iter().rev().fold(0u128, |sum, &r| sum << 32 | u128::from(r));
        prop_assert_eq!(got, u128::from(a) * u128::from(b));
    }

    #[test]
    fn fields_are_read_as_the_manual_writes_it(
        ty in prop::sample::select(vec![Type::U32, Type::S32, Type::U64, Type::S64]),
        a in value(), start in 0u64..300, length in 0u64..300,
    ) {
        let a = a & ty.mask();
        let msb = u64::from(ty.bits() - 1);
        let (pos, len) = (start & 0xff, length & 0xff);
        let bit = |i: u64| (a >> i) & 1;
        let fill = if !ty.is_signed() || len == 0 { 0 } else { bit((pos + len - 1).min(msb)) };
        let expected = (0..=msb).fold(0, |d, i| {
            d | if i < len && pos + i <= msb { bit(pos + i) } else { fill } << i
        });
        prop_assert_eq!(bits::extract(ty, a, start, length), expected);
    }

    #[test]
    fn fields_are_written_as_the_manual_writes_it(
        ty in prop::sample::select(vec![Type::B32, Type::B64]),
        a in value(), b in value(), start in 0u64..300, length in 0u64..300,
    ) {
        let [a, b] = [a, b].map(|x| x & ty.mask());
        let msb = u64::from(ty.bits() - 1);
        let (pos, len) = (start & 0xff, length & 0xff);
        let mut expected = b;
        for i in 0..len {
            if pos + i <= msb && i < 64 {
                expected = expected & !(1 << (pos + i)) | ((a >> i) & 1) << (pos + i);
            }
        }
        prop_assert_eq!(bits::insert(ty, a, b, start, length), expected);
    }

    #[test]
    fn funnels_shift_the_pair(a in any::<u32>(), b in any::<u32>(), count in 0u64..100) {
        let whole = u128::from(b) << 32 | u128::from(a);
        for wrap in [false, true] {
            let n = if wrap { count % 32 } else { count.min(32) };
            let left = (whole << n >> 32) as u64 & 0xffff_ffff;
            let right = (whole >> n) as u64 & 0xffff_ffff;
            prop_assert_eq!(bits::funnel(true, wrap, a.into(), b.into(), count), left);
            prop_assert_eq!(bits::funnel(false, wrap, a.into(), b.into(), count), right);
        }
    }

    #[test]
    fn truth_tables_are_looked_up_bit_by_bit(table in any::<u8>(), a in any::<u32>(), b in any::<u32>(), c in any::<u32>()) {
        let expected = (0..32).fold(0u64, |d, i| {
            let row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
            d | u64::from(table >> row & 1) << i
        });
        prop_assert_eq!(bits::lop3(table, a.into(), b.into(), c.into()), expected);
    }

    #[test]
    fn the_nth_bit_is_found_as_the_manual_writes_it(mask in any::<u32>(), base in 0u32..32, n in -34i32..34) {
        let mut expected = 0xffff_ffffu64;
        if n == 0 {
            if mask >> base & 1 == 1 { expected = base.into() }
        } else {
            let (mut place, mut count) = (base as i32, n.unsigned_abs() - 1);
            while (0..32).contains(&place) {
                if mask >> place & 1 == 1 {
                    if count == 0 { expected = place as u64; break }
                    count -= 1;
                }
                place += n.signum();
            }
        }
        prop_assert_eq!(bits::find_nth_set(mask.into(), base.into(), u64::from(n as u32)), expected);
    }
}

#[test]
fn the_least_number_over_minus_one_wraps() {
    assert_eq!(int::binary(IntBinary::Div, Type::S32, 0x8000_0000, 0xffff_ffff), 0x8000_0000);
    assert_eq!(int::binary(IntBinary::Rem, Type::S64, 1 << 63, u64::MAX), 0);
}

#[test]
fn counting_bits() {
    assert_eq!(int::unary(IntUnary::Popc, Type::B64, u64::MAX), 64);
    assert_eq!(int::unary(IntUnary::Clz, Type::B32, 0), 32);
    assert_eq!(int::unary(IntUnary::Clz, Type::B32, 1), 31);
    assert_eq!(int::unary(IntUnary::Brev, Type::B32, 1), 0x8000_0000);
    assert_eq!(int::unary(IntUnary::CNot, Type::B32, 0), 1);
    assert_eq!(int::unary(IntUnary::Abs, Type::S32, 0xffff_ffff), 1);
    assert_eq!(bits::find(Type::U32, false, 0x10), 4);
    assert_eq!(bits::find(Type::U32, true, 0x10), 27);
    assert_eq!(bits::find(Type::S32, false, 0xffff_fffe), 0);
    assert_eq!(bits::find(Type::S32, false, 0xffff_ffff), 0xffff_ffff);
    assert_eq!(bits::find(Type::S64, false, 1 << 40), 40);
}

#[test]
fn permutations() {
    let (a, b) = (0x3322_1100, 0x7766_5544);
    let p = |mode, c| bits::permute(mode, a, b, c);
    assert_eq!(p(PermuteMode::Index, 0x7540), 0x7755_4400);
    assert_eq!(bits::permute(PermuteMode::Index, 0x80, 0x7f, 0x008c), 0x8080_ff00);
    assert_eq!(p(PermuteMode::Forward4, 1), 0x4433_2211);
    assert_eq!(p(PermuteMode::Backward4, 1), 0x6677_0011);
    assert_eq!(p(PermuteMode::Replicate8, 2), 0x2222_2222);
    assert_eq!(p(PermuteMode::ClampLeft, 2), 0x3322_2222);
    assert_eq!(p(PermuteMode::ClampRight, 2), 0x2222_1100);
    assert_eq!(p(PermuteMode::Replicate16, 1), 0x3322_3322);
}

#[test]
fn dot_products_of_bytes() {
    // -1*2 + 2*3 + 127*-128 + 0 + 10
    let a = u32::from_le_bytes([0xff, 2, 127, 0]).into();
    let b = u32::from_le_bytes([2, 3, 0x80, 9]).into();
    let expected = (-2 + 6 + 127 * -128 + 10i32) as u32;
    assert_eq!(int::dot_product((true, true), None, a, b, 10), expected.into());
    assert_eq!(int::dot_product((false, false), None, a, b, 0), 255 * 2 + 6 + 127 * 128);
    // dp2a.hi: the upper two bytes of b against the halves of a.
    let halves = 0x0002_ffff;
    assert_eq!(
        int::dot_product((true, false), Some(true), halves, b, 0),
        (-128 + 18i32) as u32 as u64
    );
}

#[test]
fn masks_and_extensions() {
    assert_eq!(bits::mask(false, 4, 8), 0xff0);
    assert_eq!(bits::mask(false, 31, 40), 0x8000_0000);
    assert_eq!(bits::mask(true, 36, 40), 0xff0);
    assert_eq!(bits::extend(Type::S32, false, 0x80, 8), 0xffff_ff80);
    assert_eq!(bits::extend(Type::U32, false, 0x180, 8), 0x80);
    assert_eq!(bits::extend(Type::S32, false, 0x180, 0), 0);
}
