//! `wmma`: every product that PTX has but those of less than eight bits, which `small.rs` has, held against one by whole numbers; and what checks see of fragments.

use crate::bench::{Bench, checked, describe, found, schedules};
use crate::execution::module;
use half::{bf16, f16};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Schedule, Shape};
use warpfold_ptx::parse::parse;

/// Where the tables of a test lie, in bytes.
const B: usize = 4096;
const C: usize = 8192;
const D: usize = 16384;
const ALL: usize = 32768;

/// Bytes of memory that nothing should write.
const UNTOUCHED: u8 = 0xa5;

/// A number as it lies in memory.
fn bytes(ty: &str, x: i64) -> Vec<u8> {
    match ty {
        "f16" => f16::from_f64(x as f64).to_le_bytes().into(),
        "bf16" => bf16::from_f64(x as f64).to_le_bytes().into(),
        "tf32" | "f32" => (x as f32).to_le_bytes().into(),
        "f64" => (x as f64).to_le_bytes().into(),
        "s32" => (x as i32).to_le_bytes().into(),
        _ => vec![x as u8],
    }
}

fn size(ty: &str) -> usize {
    bytes(ty, 0).len()
}

/// A table of whole numbers, row by row, and how it lies in memory.
struct Table {
    rows: usize,
    columns: usize,
    ty: &'static str,
    by_columns: bool,
    stride: usize,
    numbers: Vec<i64>,
}

impl Table {
    /// Rows, or columns, have a gap behind them that keeps them at multiples of 16 bytes.
    fn new(
        (rows, columns): (usize, usize),
        ty: &'static str,
        by_columns: bool,
        gap: bool,
    ) -> Table {
        let tight = if by_columns { rows } else { columns };
        let stride = tight + if gap { 16 / size(ty) } else { 0 };
        Table { rows, columns, ty, by_columns, stride, numbers: vec![0; rows * columns] }
    }

    /// Numbers that are small, so that every sum of products is exact.
    fn filled(mut self, seed: i64) -> Table {
        let low = if self.ty == "u8" { 0 } else { -4 };
        for (i, x) in self.numbers.iter_mut().enumerate() {
            *x = low + (i as i64 * 7 + seed * 3 + i as i64 / 5).rem_euclid(9);
        }
        self
    }

    fn at(&self, row: usize, column: usize) -> i64 {
        self.numbers[row * self.columns + column]
    }

    /// Writes the elements over what lies there.
    fn write(&self, memory: &mut [u8]) {
        for row in 0..self.rows {
            for column in 0..self.columns {
                let (line, within) = if self.by_columns { (column, row) } else { (row, column) };
                let at = (line * self.stride + within) * size(self.ty);
                let bytes = bytes(self.ty, self.at(row, column));
                memory[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
    }

    fn layout(&self) -> &'static str {
        if self.by_columns { "col" } else { "row" }
    }
}

/// Names of the registers of a lane's part.
fn registers(name: &str, count: usize) -> String {
    let all: Vec<String> = (0..count).map(|i| format!("%{name}{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// Registers of a factor or a sum.
fn count(rows: usize, columns: usize, ty: &str, factor: bool) -> usize {
    let word = if ty == "f64" { 8 } else { 4 };
    if factor && ty == "f16" { 8 } else { rows * columns / 32 * size(ty) / word }
}

/// The shape by its name, and rows of `a`, columns of `b`, columns of `a`.
type Extent = (&'static str, (usize, usize, usize));

/// The types of both factors, of what is added and of the result.
type Types = [&'static str; 4];

fn products() -> Vec<(Extent, Types)> {
    let sixteen: [Extent; 3] =
        [("m16n16k16", (16, 16, 16)), ("m8n32k16", (8, 32, 16)), ("m32n8k16", (32, 8, 16))];
    let types: [Types; 9] = [
        ["f16", "f16", "f32", "f32"],
        ["f16", "f16", "f16", "f16"],
        ["f16", "f16", "f32", "f16"],
        ["f16", "f16", "f16", "f32"],
        ["bf16", "bf16", "f32", "f32"],
        ["s8", "s8", "s32", "s32"],
        ["u8", "u8", "s32", "s32"],
        ["s8", "u8", "s32", "s32"],
        ["u8", "s8", "s32", "s32"],
    ];
    let mut all: Vec<_> =
        sixteen.into_iter().flat_map(|shape| types.map(|types| (shape, types))).collect();
    all.push((("m16n16k8", (16, 16, 8)), ["tf32", "tf32", "f32", "f32"]));
    all.push((("m8n8k4", (8, 8, 4)), ["f64"; 4]));
    all
}

/// A kernel of one warp that loads, multiplies and stores; the tables lie in `space`, which is filled from global memory first where it is shared.
fn kernel(name: &str, [a, b, c, d]: [&Table; 4], space: &str) -> String {
    let word = |ty: &str| if ty == "f64" { "b64" } else { "b32" };
    let part = |t: &Table, factor| count(t.rows, t.columns, t.ty, factor);
    let [a_regs, b_regs] = [("a", a), ("b", b)].map(|(name, t)| registers(name, part(t, true)));
    let [c_regs, d_regs] = [("c", c), ("e", d)].map(|(name, t)| registers(name, part(t, false)));
    let types = match (a.ty, b.ty) {
        ("f16", _) => format!("{}.{}", d.ty, c.ty),
        (a, b) => format!("{}.{a}.{b}.{}", d.ty, c.ty),
    };
    let (before, copy, after, from) = match space {
        ".shared" => (
            format!(".shared .align 32 .b8 tables[{ALL}];"),
            format!(
                "mov.u64 %d1, tables; shl.b32 %r1, %t, 3; mov.u32 %r3, %r1;
                 in: cvt.u64.u32 %d3, %r3; add.u64 %d4, %out, %d3; add.u64 %d5, %d1, %d3;
                 ld.global.b64 %d6, [%d4]; st.shared.b64 [%d5], %d6;
                 add.u32 %r3, %r3, 256; setp.lt.u32 %p1, %r3, {ALL}; @%p1 bra in; bar.warp.sync -1;"
            ),
            format!(
                "bar.warp.sync -1; mov.u32 %r3, %r1;
                 back: cvt.u64.u32 %d3, %r3; add.u64 %d4, %out, %d3; add.u64 %d5, %d1, %d3;
                 ld.shared.b64 %d6, [%d5]; st.global.b64 [%d4], %d6;
                 add.u32 %r3, %r3, 256; setp.lt.u32 %p1, %r3, {ALL}; @%p1 bra back;"
            ),
            "%d1",
        ),
        _ => (String::new(), String::new(), String::new(), "%out"),
    };
    module(
        &before,
        &format!(
            ".reg .{} %a<9>; .reg .{} %b<9>; .reg .{} %c<9>; .reg .{} %e<9>; {copy}
             wmma.load.a.sync.aligned.{}.{name}{space}.{} {a_regs}, [{from}], {};
             wmma.load.b.sync.aligned.{}.{name}{space}.{} {b_regs}, [{from}+{B}], {};
             wmma.load.c.sync.aligned.{}.{name}{space}.{} {c_regs}, [{from}+{C}], {};
             wmma.mma.sync.aligned.{}.{}.{name}.{types} {d_regs}, {a_regs}, {b_regs}, {c_regs};
             wmma.store.d.sync.aligned.{}.{name}{space}.{} [{from}+{D}], {d_regs}, {}; {after}",
            word(a.ty),
            word(b.ty),
            word(c.ty),
            word(d.ty),
            a.layout(),
            a.ty,
            a.stride,
            b.layout(),
            b.ty,
            b.stride,
            c.layout(),
            c.ty,
            c.stride,
            a.layout(),
            b.layout(),
            d.layout(),
            d.ty,
            d.stride,
        ),
    )
}

#[test]
fn products_are_those_of_whole_numbers() {
    for ((name, (m, n, k)), [a, b, c, d]) in products() {
        for (variant, space) in [".global", "", ".shared", ".global"].into_iter().enumerate() {
            let [x, y, z] = [1, 2, 4].map(|bit| (variant * 3) & bit != 0);
            let gap = variant % 2 == 1;
            let a = Table::new((m, k), a, x, gap).filled(1);
            let b = Table::new((k, n), b, y, !gap).filled(2);
            let c = Table::new((m, n), c, z, gap).filled(3);
            let mut d = Table::new((m, n), d, !z, !gap);
            for row in 0..m {
                for column in 0..n {
                    let products = (0..k).map(|i| a.at(row, i) * b.at(i, column));
                    d.numbers[row * n + column] = products.sum::<i64>() + c.at(row, column);
                }
            }
            let mut memory = vec![UNTOUCHED; ALL];
            for (table, at) in [(&a, 0), (&b, B), (&c, C)] {
                table.write(&mut memory[at..]);
            }
            let ptx = kernel(name, [&a, &b, &c, &d], space);
            let mut bench = Bench::new(&ptx, checked(Schedule::Lockstep));
            let out = bench.upload(&memory);
            bench.launch_clean("k", Shape::linear(1, 32), &[Arg::Pointer(out)]);
            d.write(&mut memory[D..]);
            let got = bench.download::<u8>(out, ALL);
            let wrong = got.iter().zip(&memory).position(|(got, wanted)| got != wanted);
            assert_eq!(wrong, None, "{name} {} {} {space}: {ptx}", a.ty, d.ty);
        }
    }
}

/// A lane may change all elements of its part alike, and what it adds up over its part is the table's once all lanes have.
#[test]
fn elements_are_dealt_out_once() {
    let body = "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%out];
         add.f32 %f0, %f0, %f1; add.f32 %f2, %f2, %f3; add.f32 %f4, %f4, %f5; add.f32 %f6, %f6, %f7;
         add.f32 %f0, %f0, %f2; add.f32 %f4, %f4, %f6; add.f32 %f0, %f0, %f4; st.global.f32 [%o+1024], %f0;";
    let mut b = Bench::new(&module("", body), checked(Schedule::Lockstep));
    let numbers: Vec<f32> = (0..512).map(|i| i as f32).collect();
    let out = b.upload(&numbers);
    b.launch_clean("k", Shape::linear(1, 32), &[Arg::Pointer(out)]);
    let sums = b.download::<f32>(out, 512);
    assert_eq!(sums[256..288].iter().sum::<f32>(), (255 * 128) as f32);
}

/// The kinds that a block of this many threads finds under every schedule.
#[track_caller]
fn kinds(threads: u32, before: &str, body: &str) -> Vec<Kind> {
    let ptx = module(before, body);
    let mut all = schedules().into_iter().map(|schedule| {
        let mut b = Bench::new(&ptx, checked(schedule));
        let out = b.room::<f32>(1024);
        let report = b.launch("k", Shape::linear(1, threads), &[Arg::Pointer(out)]).remove(0);
        let mut kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
        kinds.dedup();
        (kinds, describe(&report))
    });
    let (first, _) = all.next().unwrap();
    all.for_each(|(other, told)| assert_eq!(first, other, "{told}"));
    first
}

const PART: &str = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}";
const TILE: &str = ".shared .align 32 .b8 tile[1088];";

#[test]
fn fragments_are_checked_as_other_accesses_are() {
    let load = format!("wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {PART}, [%r1];");
    let store = format!("wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%out], {PART};");
    let fill = "mov.u32 %r1, tile; mov.u32 %r2, 0;
         fill: mad.lo.u32 %r3, %r2, 128, %r1; mad.lo.u32 %r3, %t, 4, %r3; st.shared.u32 [%r3], %t;
         add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 8; @%p1 bra fill;";
    let barrier = "bar.warp.sync -1;";
    // One element lacks: it is told once it is in global memory, and not before.
    let hole = format!(
        "mov.u32 %r1, tile; setp.eq.u32 %p2, %t, 5; {}",
        fill.replace("st.shared", "@!%p2 st.shared")
    );
    let zeros = "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
         mov.f32 %f4, %f0; mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0;";
    let shared = format!("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r1], {PART};");
    let look = "ld.shared.u32 %r4, [%r1+64]; st.global.u32 [%o], %r4;";
    let one = "mov.u32 %r1, tile; setp.ne.u32 %p1, %t, 31; @!%p1 st.shared.u32 [%r1], 1;";
    // The second warp fills what the first loads.
    let two = |barrier: &str, then: &str| {
        let fill = fill.replace("%t,", "%r5,").replace("%t;", "%r5;");
        format!(
            "mov.u32 %r1, tile; and.b32 %r5, %t, 31; setp.lt.u32 %p3, %t, 32; @%p3 bra filled; {fill}
             filled: {barrier} @!%p3 ret; {load} {then}"
        )
    };
    assert_eq!(kinds(64, TILE, &two("bar.sync 0;", &store)), []);
    assert_eq!(kinds(64, TILE, &two("", "")), [Kind::Race]);
    for (body, expected) in [
        (format!("{fill} {barrier} {load} {store}"), &[][..]),
        // Lanes that meet in an instruction are ordered by it.
        (format!("{fill} {load} {store}"), &[]),
        (format!("{hole} {barrier} {load}"), &[]),
        (format!("{hole} {barrier} {load} {store}"), &[Kind::Uninitialised]),
        (format!("mov.u32 %r1, tile; {zeros} {shared} {barrier} {look}"), &[]),
        (format!("mov.u32 %r1, tile; {zeros} {shared} {look}"), &[Kind::Race]),
        (format!("mov.u32 %r1, tile; {zeros} {shared} {one}"), &[Kind::Race]),
        (format!("{fill} {barrier} add.u32 %r1, %r1, 4; {load}"), &[Kind::Misaligned]),
        (format!("{fill} {barrier} add.u32 %r1, %r1, 128; {load}"), &[Kind::OutOfBounds]),
    ] {
        assert_eq!(kinds(32, TILE, &body), expected, "{body}");
    }
}

/// Part of a warp, and strides that lead anywhere.
#[test]
fn what_no_device_does_ends_all_the_same() {
    let load = |stride: &str| {
        format!("wmma.load.c.sync.aligned.row.m16n16k16.f32 {PART}, [%out]{stride};")
    };
    let store = |stride: &str| {
        format!("wmma.store.d.sync.aligned.row.m16n16k16.f32 [%out], {PART}{stride};")
    };
    let half = "setp.ge.u32 %p1, %t, 16; @%p1 bra over;";
    for (body, expected) in [
        (format!("{half} {} over: bar.warp.sync -1;", load("")), Kind::MaskNamesAbsentLane),
        (load(", -1"), Kind::OutOfBounds),
        (format!("mov.u32 %r1, 17; {}", load(", %r1")), Kind::Misaligned),
        (format!("{} {}", load(""), store(", 0x80000000")), Kind::OutOfBounds),
        // All rows in one place: lanes write to it one over the other.
        (format!("{} {}", load(""), store(", 0")), Kind::Race),
    ] {
        let ptx = module("", &body);
        let mut b = Bench::new(&ptx, checked(Schedule::Lockstep));
        let numbers: Vec<f32> = (0..256).map(|i| i as f32).collect();
        let out = b.upload(&numbers);
        let report = b.launch("k", Shape::linear(1, 32), &[Arg::Pointer(out)]).remove(0);
        let kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
        assert!(kinds.contains(&expected), "{body} {kinds:?} {}", describe(&report));
    }
}

#[test]
fn products_that_there_are_not_are_named() {
    let of = |line: &str| parse(&module("", line));
    for (line, known) in [
        ("wmma.load.c.sync.aligned.row.m8n8k4.f64 {%g0, %g1}, [%d1];", true),
        ("wmma.load.c.sync.aligned.row.m8n8k4.f32 {%f0, %f1}, [%d1];", false),
        ("wmma.load.a.sync.aligned.row.m16n16k16.tf32 {%r0, %r1, %r2, %r3}, [%d1];", false),
        ("wmma.load.a.sync.aligned.row.m8n8k32.s4 {%r0}, [%d1];", true),
        ("wmma.load.a.sync.aligned.row.m8n8k128.s4 {%r0}, [%d1];", false),
        (
            "wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};",
            false,
        ),
        (
            "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};",
            true,
        ),
        (
            "wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f64 {%g0, %g1}, {%g2}, {%g3}, {%g0, %g1};",
            true,
        ),
    ] {
        let module = of(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(module.unsupported.is_empty(), known, "{line}");
    }
    for bad in [
        "wmma.load.c.sync.aligned.row.m16n16k16.f32 {%f0, %f1}, [%d1];",
        "wmma.store.d.sync.aligned.row.m8n8k4.f64 [%d1], {%f0, %f1};",
        "wmma.load.c.sync.aligned.row.m8n8k4.f64 {%g0, %g1};",
    ] {
        assert!(of(bad).is_err(), "{bad}");
    }
}
