//! Sums of f64 in a build without optimisation.
//!
//! A program's dev profile compiles this crate as it is written: each intermediate result goes through
//! memory, and a sum takes several times as long as that of an iterator. Sums of f64 are what most
//! programs have, so that their loop is in instructions here. SSE2 has no quick way to keep magnitudes of f64, so this loop
//! looks at what its adds make of the elements: an anchored window.
//!
//! Every accumulator starts at an anchor `M(l) = 1.5 * 2^(k(l) + 52)`, so that
//! while it stays in the anchor's binade its last bit weighs `2^k(l)`. Adding
//! a term `r` gives `t = A + r`, of which `q = t - A` is the part that fitted
//! and `r - q` the part below `2^k(l)`, which goes on to the second level.
//!
//! *Exact.* If `t` lies in `A`'s binade then `|r| <= |A|`, and Fast2Sum says
//! that `q` and `r - q` are exact. The first level is checked for that: `bad` collects
//! every bit in which some `t` differs from the anchor, and a sign or exponent
//! bit among them fails the tile; NaN, infinities and elements above the window
//! leave the binade too. The second level receives residues of at most
//! `2^(k(0) - 1)`; with at most `2^H` adds an anchor and
//! `k(1) = k(0) - (52 - H)` they drift by at most `2^(H + k(0) - 1) =
//! 2^(k(1) + 51)`, half a binade, and so stay in theirs (an end point is
//! representable, and the difference of bit patterns below is right there
//! too). What is left after it must be zero: `leftover` collects
//! its bits. A tile that passes both has lost nothing, and
//! `bits(A) - bits(M)` is its sum in units of `2^k(l)`, an integer.
//!
//! Source: the anchors are those of binned summation (Demmel, Nguyen, Ahrens
//! 2020) and of Rump, Ogita and Oishi 2008; the certificate is warpfold's own.

use super::residues::{LeftOut, Tiled, anchor};
use super::terms::Terms;
use crate::isa::Isa;
use crate::slices::Slices;
use core::arch::asm;

/// log2 of the adds an anchor takes.
const H: i32 = 8;
/// Binades from one level to the next.
const STEP: i32 = 52 - H;

/// Elements of a row: four vectors of two.
const ROW: usize = 8;
/// Rows that are added to one anchor.
const ROWS: usize = 1 << H;

/// The exponents of a window's levels.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// `k(0)`.
    first: i32,
}

impl Window {
    /// The window for terms below `2^top`, if it fits between the ends of f64's range.
    fn below(top: i32) -> Option<Window> {
        // It may sit higher than it has to, but not so high that its anchor overflows.
        let first = (top + H - 51).max(STEP - 1074);
        (first <= 970).then_some(Window { first })
    }

    /// `k(level)`.
    fn unit(self, level: usize) -> i32 {
        self.first - STEP * level as i32
    }

    /// `M(level)`.
    fn anchor(self, level: usize) -> f64 {
        anchor(self.unit(level))
    }
}

/// The sums of the two levels, and what the certificate looks at.
#[repr(C)]
struct Tile {
    sums: [[[f64; 2]; 4]; 2],
    /// Bits in which a sum of level 0 differed from its anchor.
    bad: [u64; 2],
    /// Bits of what was below both levels.
    leftover: [u64; 2],
    anchor: [f64; 2],
    /// Bits of elements that count.
    mask: [u64; 2],
}

/// One vector of a row: the element's part that level 0 holds, then level 1, then the rest.
macro_rules! vector {
    ($at:literal, $high:literal, $low:literal) => {
        concat!(
            "movupd xmm11, [{items} + ",
            $at,
            "]\n",
            "andpd xmm11, xmm14\n",
            "movapd xmm12, ",
            $high,
            "\n",
            "addpd ",
            $high,
            ", xmm11\n",
            "movapd xmm13, ",
            $high,
            "\n",
            "xorpd xmm13, xmm10\n",
            "orpd xmm8, xmm13\n",
            "movapd xmm13, ",
            $high,
            "\n",
            "subpd xmm13, xmm12\n",
            "subpd xmm11, xmm13\n",
            "movapd xmm12, ",
            $low,
            "\n",
            "addpd ",
            $low,
            ", xmm11\n",
            "movapd xmm13, ",
            $low,
            "\n",
            "subpd xmm13, xmm12\n",
            "subpd xmm11, xmm13\n",
            "orpd xmm9, xmm11\n",
        )
    };
}

impl Tile {
    fn new(window: Window, absolute: bool) -> Tile {
        let mask = if absolute { u64::MAX >> 1 } else { u64::MAX };
        Tile {
            sums: [[[window.anchor(0); 2]; 4], [[window.anchor(1); 2]; 4]],
            bad: [0; 2],
            leftover: [0; 2],
            anchor: [window.anchor(0); 2],
            mask: [mask; 2],
        }
    }

    /// Adds rows, in the usual floating-point environment.
    fn add(&mut self, rows: &[[f64; ROW]]) {
        if rows.is_empty() {
            return;
        }
        // SAFETY: reads the rows, reads and writes the fields of the tile in the order in which they
        // are declared, and writes no register but those named. SSE2 is part of x86-64.
        unsafe {
            asm!(
                "movupd xmm0, [{tile}]",
                "movupd xmm1, [{tile} + 16]",
                "movupd xmm2, [{tile} + 32]",
                "movupd xmm3, [{tile} + 48]",
                "movupd xmm4, [{tile} + 64]",
                "movupd xmm5, [{tile} + 80]",
                "movupd xmm6, [{tile} + 96]",
                "movupd xmm7, [{tile} + 112]",
                "movupd xmm8, [{tile} + 128]",
                "movupd xmm9, [{tile} + 144]",
                "movupd xmm10, [{tile} + 160]",
                "movupd xmm14, [{tile} + 176]",
                "2:",
                vector!("0", "xmm0", "xmm4"),
                vector!("16", "xmm1", "xmm5"),
                vector!("32", "xmm2", "xmm6"),
                vector!("48", "xmm3", "xmm7"),
                "add {items}, 64",
                "dec {rows}",
                "jnz 2b",
                "movupd [{tile}], xmm0",
                "movupd [{tile} + 16], xmm1",
                "movupd [{tile} + 32], xmm2",
                "movupd [{tile} + 48], xmm3",
                "movupd [{tile} + 64], xmm4",
                "movupd [{tile} + 80], xmm5",
                "movupd [{tile} + 96], xmm6",
                "movupd [{tile} + 112], xmm7",
                "movupd [{tile} + 128], xmm8",
                "movupd [{tile} + 144], xmm9",
                tile = in(reg) &raw mut *self,
                items = inout(reg) rows.as_ptr() => _,
                rows = inout(reg) rows.len() => _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _,
                options(nostack),
            );
        }
    }

    /// Adds the levels' sums to `totals`; `None` if the tile has lost something.
    fn finish(&self, window: Window, totals: &mut [i64; 2]) -> Option<()> {
        let bad = (self.bad[0] | self.bad[1]) >> 52;
        let leftover = (self.leftover[0] | self.leftover[1]) << 1;
        if bad != 0 || leftover != 0 {
            return None;
        }
        for (level, total) in totals.iter_mut().enumerate() {
            let base = window.anchor(level).to_bits();
            for sum in self.sums[level].as_flattened() {
                *total += sum.to_bits().wrapping_sub(base).cast_signed();
            }
        }
        Some(())
    }
}

/// The sum of elements below `2^top` of the first top, or of their magnitudes, if a window holds them.
#[cfg_attr(not(unoptimised), expect(dead_code, reason = "builds with optimisation have vectors"))]
pub(super) fn near<T: Terms<Item = f64>>(
    slices: Slices<'_, f64>,
    [top, _]: [i32; 2],
    _: Isa,
) -> Option<Tiled> {
    let window = Window::below(top)?;
    let [high, low] = sum(slices.items(), window, T::ABSOLUTE)?.map(i128::from);
    let sum = ((high << STEP) + low, window.unit(1));
    Some(Tiled { sum, products: [(0, 0); 2], left_out: LeftOut::default() })
}

/// The sums of the elements, or of their magnitudes, on the levels of a window; `None` if these do
/// not hold them exactly.
fn sum(items: &[f64], window: Window, absolute: bool) -> Option<[i64; 2]> {
    let mut totals = [0; 2];
    for items in items.chunks(ROW * ROWS) {
        let mut tile = Tile::new(window, absolute);
        let (rows, rest) = items.as_chunks();
        tile.add(rows);
        if !rest.is_empty() {
            // Zeros add nothing.
            let mut row = [0.0; ROW];
            row[..rest.len()].copy_from_slice(rest);
            tile.add(&[row]);
        }
        tile.finish(window, &mut totals)?;
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_core::exact::{Superacc, format::F64Sum};

    /// The same number, element by element.
    fn checked(items: &[f64], window: Window, absolute: bool) {
        let sums = sum(items, window, absolute).expect("elements of the window");
        let mut found = Superacc::<F64Sum>::default();
        let mut expected = found;
        for (level, total) in sums.into_iter().enumerate() {
            found.deposit_wide(i128::from(total), window.unit(level));
        }
        for &x in items {
            if absolute { expected.absorb_abs(x) } else { expected.absorb(x) }
        }
        assert_eq!(found.canonical_limbs(), expected.canonical_limbs());
    }

    #[test]
    fn sums_are_exact_for_any_length_and_sign() {
        let mut random = fastrand::Rng::with_seed(7);
        let window = Window::below(12).unwrap();
        for len in [0, 1, 7, 8, 9, 2040, 2047, 2048, 2049, 10_000] {
            let items: Vec<f64> = (0..len)
                .map(|_| (random.f64() - 0.5) * f64::from(1 << random.u32(0..12)))
                .collect();
            checked(&items, window, false);
            checked(&items, window, true);
        }
        // As many of one sign, close to the top, as an anchor takes.
        checked(&[-4095.9; 4096], window, false);
        checked(&[4095.9; 4096], window, false);
    }

    #[test]
    fn what_a_window_does_not_hold_is_refused() {
        let window = Window::below(12).unwrap();
        for x in [1e30, -1e30, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-30, f64::from_bits(1)]
        {
            for at in [0, 5, 2047, 2050] {
                let mut items = vec![1.0; 2100];
                items[at] = x;
                assert_eq!(sum(&items, window, false), None, "{x:e}");
                assert_eq!(sum(&items, window, true), None, "{x:e}");
            }
        }
    }
}
