//! Products of integers of less than eight bits, `mma` and `wmma`, against a loop over rows and columns.

use crate::bench::{Bench, checked, schedules};
use crate::execution::module;
use warpfold_ptx::machine::{Arg, Schedule, Shape};

/// A type of factors: its bits, and the number that bits are.
#[derive(Clone, Copy)]
struct Small(&'static str);

impl Small {
    fn bits(self) -> usize {
        if self.0 == "b1" { 1 } else { 4 }
    }

    fn number(self, bits: u32) -> i32 {
        if self.0 == "s4" && bits > 7 { bits as i32 - 16 } else { bits as i32 }
    }
}

/// The bits of factors, row by row of `a` and column by column of `b`.
fn factors(small: Small, lines: usize, k: usize, seed: usize) -> Vec<u32> {
    let mask = (1 << small.bits()) - 1;
    (0..lines * k).map(|i| ((i * 2_654_435_761 + seed * 40_503) >> 7) as u32 & mask).collect()
}

/// Factors as they lie in memory and in registers: the first has the lowest bits.
fn packed(small: Small, bits: &[u32]) -> Vec<u32> {
    let one = |(i, bits): (usize, &u32)| bits << (i * small.bits());
    bits.chunks(32 / small.bits())
        .map(|word| word.iter().enumerate().map(one).fold(0, |x, y| x | y))
        .collect()
}

/// A product's factors, and how single bits are combined.
type Types = (Small, Small, &'static str);

const PRODUCTS: [Types; 6] = [
    (Small("s4"), Small("s4"), ""),
    (Small("u4"), Small("u4"), ""),
    (Small("s4"), Small("u4"), ""),
    (Small("u4"), Small("s4"), ""),
    (Small("b1"), Small("b1"), "and.popc"),
    (Small("b1"), Small("b1"), "xor.popc"),
];

/// The product, row by row.
fn product((m, n, k): (usize, usize, usize), (x, y, how): Types, a: &[u32], b: &[u32]) -> Vec<i32> {
    let term = |a: u32, b: u32| match how {
        "xor.popc" => (a ^ b) as i32,
        _ => x.number(a) * y.number(b),
    };
    let sum = |row: usize, column: usize| {
        (0..k).map(|i| term(a[row * k + i], b[column * k + i])).sum::<i32>()
    };
    (0..m * n).map(|at| 100 * at as i32 + sum(at / n, at % n)).collect()
}

#[test]
fn fragments_of_small_integers_are_multiplied() {
    for types in PRODUCTS {
        let (x, y, how) = types;
        let k = 128 / x.bits();
        for gap in [0, 128 / x.bits()] {
            let (a, b) = (factors(x, 8, k, 1), factors(y, 8, k, 2));
            // Rows of `a` and columns of `b`, with gaps behind them.
            let spread = |small: Small, bits: &[u32]| -> Vec<u32> {
                let line = |line: &[u32]| [line, &vec![0; gap]].concat();
                packed(small, &bits.chunks(k).flat_map(line).collect::<Vec<_>>())
            };
            let how = if how.is_empty() { String::new() } else { format!(".{how}") };
            let ptx = module(
                "",
                &format!(
                    "wmma.load.a.sync.aligned.row.m8n8k{k}.{} {{%r1}}, [%out], {};
                     wmma.load.b.sync.aligned.col.m8n8k{k}.global.{} {{%r2}}, [%out+512], {};
                     wmma.load.c.sync.aligned.row.m8n8k{k}.s32 {{%r3, %r4}}, [%out+1024];
                     wmma.mma{how}.sync.aligned.row.col.m8n8k{k}.s32.{}.{}.s32 {{%r3, %r4}}, {{%r1}}, {{%r2}}, {{%r3, %r4}};
                     wmma.store.d.sync.aligned.row.m8n8k{k}.s32 [%out+1024], {{%r3, %r4}};",
                    x.0, k + gap, y.0, k + gap, x.0, y.0
                ),
            );
            let mut memory = vec![0_u32; 320];
            let (left, right) = (spread(x, &a), spread(y, &b));
            memory[..left.len()].copy_from_slice(&left);
            memory[128..][..right.len()].copy_from_slice(&right);
            (0..64).for_each(|at| memory[256 + at] = 100 * at as u32);
            let mut bench = Bench::new(&ptx, checked(Schedule::Lockstep));
            let out = bench.upload(&memory);
            bench.launch_clean("k", Shape::linear(1, 32), &[Arg::Pointer(out)]);
            let got = bench.download::<i32>(out + 1024, 64);
            assert_eq!(got, product((8, 8, k), types, &a, &b), "{ptx}");
        }
    }
}

/// `mma`, whose parts PTX lays down: lane `l` has row `l / 4` of `a` (and the row 8 behind it), column `l / 4` of `b`, and in each register the elements from
/// `l % 4` registers on.
#[test]
fn tables_of_small_integers_are_multiplied() {
    for types in PRODUCTS {
        let (x, y, how) = types;
        let each = 32 / x.bits();
        for (m, k) in [(8, 4 * each), (16, 4 * each), (16, 8 * each)] {
            let (a, b) = (factors(x, m, k, 3), factors(y, 8, k, 4));
            let (rows, columns) = (packed(x, &a), packed(y, &b));
            let words = k / each;
            // Two, four or one registers of `a`: row, row + 8, and again behind half of the columns.
            let a_registers = m / 8 * words / 4;
            let mut memory = Vec::new();
            for lane in 0..32 {
                let (group, within) = (lane / 4, lane % 4);
                let mut all = [0_u32; 8];
                for (register, word) in all.iter_mut().enumerate().take(a_registers) {
                    let (row, half) = if m == 16 {
                        (group + 8 * (register % 2), register / 2)
                    } else {
                        (group, 0)
                    };
                    *word = rows[row * words + half * 4 + within];
                }
                for half in 0..words / 4 {
                    all[4 + half] = columns[group * words + half * 4 + within];
                }
                memory.extend(all);
            }
            let list = |first: usize, count: usize| {
                let names: Vec<String> = (first..first + count).map(|i| format!("%r{i}")).collect();
                format!("{{{}}}", names.join(", "))
            };
            let how = if how.is_empty() { String::new() } else { format!(".{how}") };
            let c = list(10, m / 4);
            let ptx = module(
                "",
                &format!(
                    "mul.wide.u32 %d1, %t, 32; add.u64 %d1, %out, %d1; ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%d1]; ld.global.v2.u32 {{%r5, %r6}}, [%d1+16];
                     shr.u32 %r7, %t, 2; and.b32 %r8, %t, 3; mad.lo.u32 %r9, %r7, 4, %r8;
                     mul.lo.u32 %r10, %r9, 200; add.u32 %r11, %r10, 100; add.u32 %r12, %r10, 6400; add.u32 %r13, %r11, 6400;
                     mma.sync.aligned.m{m}n8k{k}.row.col.s32.{}.{}.s32{how} {c}, {}, {}, {c};
                     mul.wide.u32 %d2, %r9, 8; add.u64 %d2, %out, %d2; bar.warp.sync -1; st.global.v2.u32 [%d2], {{%r10, %r11}}; st.global.v2.u32 [%d2+256], {{%r12, %r13}};",
                    x.0, y.0, list(1, a_registers), list(5, words / 4),
                ),
            );
            for schedule in schedules() {
                let mut bench = Bench::new(&ptx, checked(schedule));
                let out = bench.upload(&memory);
                bench.launch_clean("k", Shape::linear(1, 32), &[Arg::Pointer(out)]);
                let got = bench.download::<i32>(out, 8 * m);
                assert_eq!(got, product((m, 8, k), types, &a, &b), "{ptx}");
            }
        }
    }
}
