//! Fences that are missing, and the message that says on which side: what a block tells others of by an atomic, with `volatile` accesses or plain
//! ones, and what bulk copies see.

use crate::bench::{Bench, builds, checked, describe, found, schedules};
use crate::execution::module;
use warpfold_ptx::clock::Side;
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Shape};

/// The kinds found in `k` on four blocks of 32 threads, and the sides that have no fence, under each schedule. `k` has 4096 bytes of zeros.
#[track_caller]
fn sides(body: &str) -> Vec<(Kind, Option<Side>)> {
    let ptx = module(".shared .b32 s;", body);
    let mut all = schedules().into_iter().map(|schedule| {
        let mut b = Bench::new(&ptx, checked(schedule));
        let out = Arg::Pointer(b.upload(&[0u32; 1024]));
        let report = b.launch("k", Shape::linear(4, 32), &[out]).remove(0);
        assert_eq!(report.outcome.halt, None, "{schedule:?}: {}", describe(&report));
        let found = report.outcome.findings.all();
        let mut found: Vec<_> = found.iter().map(|f| (f.fault.kind, f.fault.missing)).collect();
        found.sort_unstable_by_key(|f| f.0);
        found.dedup();
        (found, describe(&report))
    });
    let (first, told) = all.next().unwrap();
    eprintln!("{told}");
    for (other, told) in all {
        assert_eq!(first, other, "{told}");
    }
    first
}

/// The last block to finish reads what all have written; each side has its fence, or has not.
fn last_block(volatile: &str, writer: bool, reader: bool) -> String {
    let fence = |on| if on { "membar.gl;" } else { "" };
    format!(
        "setp.ne.u32 %p1, %t, 0; @%p1 bra meet;
         mov.u32 %r1, %ctaid.x; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %out, %d1;
         st{volatile}.global.u32 [%d2+1024], %r1;
         {} atom.global.inc.u32 %r2, [%out+2048], 3; {}
         st.shared.u32 [s], %r2;
         meet: bar.sync 0;
         ld.shared.u32 %r3, [s]; setp.ne.u32 %p2, %r3, 3; @%p2 ret;
         setp.ge.u32 %p3, %t, 4; @%p3 ret;
         ld{volatile}.global.u32 %r4, [%o+1024]; st.global.u32 [%o], %r4;",
        fence(writer),
        fence(reader),
    )
}

#[test]
fn volatile_does_not_stand_for_a_fence_between_blocks() {
    for (volatile, kind) in [(".volatile", Kind::UnorderedVolatile), ("", Kind::Race)] {
        for (writer, reader, side) in [
            (true, true, None),
            (false, true, Some(Side::Writer)),
            (true, false, Some(Side::Reader)),
            (false, false, Some(Side::Writer)),
        ] {
            let expected: Vec<_> = side.iter().map(|&side| (kind, Some(side))).collect();
            let body = last_block(volatile, writer, reader);
            assert_eq!(sides(&body), expected, "{volatile} {writer} {reader}");
            // Threads that know something else already learn it all the same.
            let knowing = format!("fence.proxy.async; {body}");
            assert_eq!(sides(&knowing), expected, "{volatile} {writer} {reader}, after a fence");
        }
    }
}

#[test]
fn a_hint_names_the_side() {
    let ptx = module(".shared .b32 s;", &last_block("", true, false));
    let mut b = Bench::new(&ptx, checked(schedules()[0]));
    let out = Arg::Pointer(b.upload(&[0u32; 1024]));
    let report = b.launch("k", Shape::linear(4, 32), &[out]).remove(0);
    assert!(describe(&report).contains("the reader has no fence"), "{}", describe(&report));
}

/// A flag may be old: who waits for it looks again. So may what only tells how far another is.
#[test]
fn flags_that_are_waited_for_need_no_order() {
    let announce = "setp.ne.u32 %p1, %t, 0; @%p1 ret; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %out, %d1;
         st.volatile.global.u32 [%d2+1024], 1; atom.global.add.u32 %r2, [%out+2048], 1;";
    // Each block waits for the flags of all, then reads them as data: it has seen them.
    let wait = "mov.u32 %r5, 0;
         again: mul.wide.u32 %d3, %r5, 4; add.u64 %d4, %out, %d3;
         look: ld.volatile.global.u32 %r3, [%d4+1024]; setp.eq.u32 %p2, %r3, 0; @%p2 bra look;
         ld.volatile.global.u32 %r4, [%d4+1024]; add.u32 %r6, %r6, %r4;
         add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 4; @%p3 bra again; st.global.u32 [%d2], %r6;";
    assert_eq!(sides(&format!("mov.u32 %r6, 0; {announce} {wait}")), []);
}

/// The tile of `bulk_fill`: stores, a proxy fence, a barrier, then one thread's copy.
#[test]
fn a_bulk_copy_sees_stores_behind_a_proxy_fence_only() {
    const FENCE: &str = "fence.proxy.async.shared::cta;";
    const COPY: &str = "cp.async.bulk.global.shared::cta.bulk_group";
    for (path, ptx) in builds("bulk_copy") {
        assert!(ptx.contains(FENCE) && ptx.contains(COPY), "{}", path.display());
        let without = ptx.replacen(FENCE, "", 1);
        let behind = without.replacen(COPY, &format!("{FENCE}\n{COPY}"), 1);
        let wrong = ptx.replacen(FENCE, "fence.proxy.async.global;", 1);
        for (text, clean) in [(&ptx, true), (&without, false), (&behind, true), (&wrong, false)] {
            for schedule in schedules() {
                let mut b = Bench::new(text, checked(schedule));
                let out = Arg::Pointer(b.room::<i32>(2 * 256));
                let report =
                    b.launch("bulk_fill", Shape::linear(2, 64), &[out, Arg::U32(5)]).remove(0);
                let kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
                let expected: &[Kind] = if clean { &[] } else { &[Kind::MissingProxyFence] };
                assert_eq!(
                    kinds,
                    expected,
                    "{} {schedule:?}: {}",
                    path.display(),
                    describe(&report)
                );
            }
        }
    }
}

/// One thread stores a tile, copies it out in bulk, and waits as the case says; then it goes on with source and destination.
fn copied_out(wait: &str, then: &str) -> String {
    format!(
        "setp.ne.u32 %p1, %t, 0; @%p1 ret;
         mov.u32 %r1, %ctaid.x; mul.wide.u32 %d1, %r1, 16; add.u64 %d2, %out, %d1;
         mov.u32 %r2, tile; st.shared.v4.u32 [%r2], {{%r1, %r1, %r1, %r1}};
         fence.proxy.async.shared::cta;
         cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r2], 16;
         cp.async.bulk.commit_group; {wait} {then}"
    )
}

#[test]
fn a_bulk_copy_is_waited_for() {
    const READ: &str = "cp.async.bulk.wait_group.read 0;";
    const ALL: &str = "cp.async.bulk.wait_group 0;";
    const REUSE: &str = "st.shared.u32 [%r2], 0;";
    const LOOK: &str = "ld.global.u32 %r3, [%d2]; st.global.u32 [%d2+2048], %r3;";
    for (wait, then, kinds) in [
        (ALL, "", &[][..]),
        (READ, "", &[]),
        // The block ends while its memory is read.
        ("", "", &[Kind::Freed]),
        // The source is used again once it was read; the destination holds the bytes later.
        (READ, REUSE, &[]),
        (ALL, LOOK, &[]),
        (READ, LOOK, &[Kind::Race]),
        ("", REUSE, &[Kind::Freed, Kind::Race]),
        ("cp.async.bulk.wait_group.read 1;", REUSE, &[Kind::Freed, Kind::Race]),
    ] {
        let body = copied_out(wait, then);
        let ptx = module(".shared .align 16 .b8 tile[16];", &body);
        for schedule in schedules() {
            let mut b = Bench::new(&ptx, checked(schedule));
            let out = Arg::Pointer(b.upload(&[0u32; 1024]));
            let report = b.launch("k", Shape::linear(2, 32), &[out]).remove(0);
            let mut found: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, kinds, "{wait} {then} {schedule:?}: {}", describe(&report));
        }
    }
}

/// A sample that is right with its fences: its file, its kernel, its launch and its arguments.
type Fenced = (&'static str, &'static str, Shape, fn(&mut Bench) -> Vec<Arg<'static>>);

const FENCED: [Fenced; 5] = [
    ("ticket", "ticket_sum", linear(4, 64), |b| {
        let (input, partials) = (b.upload(&[1.0f32; 2000]), b.room::<f32>(4));
        let (out, tickets) = (b.room::<f32>(1), b.upload(&[0u32]));
        let [input, partials, out, tickets] = [input, partials, out, tickets].map(Arg::Pointer);
        vec![input, partials, out, tickets, Arg::U32(2000)]
    }),
    ("grid_sync", "grid_sum", linear(4, 64), |b| {
        let (input, partials) = (b.upload(&[1i32; 2000]), b.room::<i32>(4));
        let (out, arrived) = (b.room::<i32>(4), b.upload(&[0u32]));
        let [input, partials, out, arrived] = [input, partials, out, arrived].map(Arg::Pointer);
        vec![input, partials, out, arrived, Arg::U32(2000)]
    }),
    ("bulk_copy", "bulk_sum", linear(1, 64), |b| {
        let [input, out] = [b.upload(&[1i32; 512]), b.room::<i32>(64)].map(Arg::Pointer);
        vec![input, out, Arg::U32(2)]
    }),
    ("bulk_copy", "bulk_fill", linear(2, 64), |b| {
        vec![Arg::Pointer(b.room::<i32>(512)), Arg::U32(5)]
    }),
    ("warps", "handed_over", linear(1, 64), |b| vec![Arg::Pointer(b.room::<i32>(32))]),
];

const fn linear(blocks: u32, threads: u32) -> Shape {
    let (grid, block) = ([blocks, 1, 1], [threads, 1, 1]);
    Shape { grid, block, cluster: None, shared: 0, cooperative: false }
}

/// Where the fences of a kernel stand in the text of its module.
fn fences(ptx: &str, kernel: &str) -> Vec<core::ops::Range<usize>> {
    let start = ptx.find(&format!(".entry {kernel}(")).unwrap_or(ptx.len());
    let end = ptx[start..].find(".visible .entry").map_or(ptx.len(), |at| start + at);
    let ends = ptx[start..end].match_indices(';').map(|(at, _)| start + at);
    let words = ends.map(|end| ptx[..end].rfind(char::is_whitespace).map_or(0, |at| at + 1)..end);
    words.filter(|w| ["membar.", "fence."].iter().any(|f| ptx[w.clone()].starts_with(f))).collect()
}

/// Each fence of the samples is taken out. All are missed but those of two kernels: the memory model lets bulk copies see an mbarrier's initialisation
/// without a proxy fence, and who arrives at a barrier needs no fence before it.
#[test]
fn a_fence_that_is_taken_out_is_missed() {
    let mut removed = std::collections::BTreeMap::new();
    for (sample, kernel, shape, args) in FENCED {
        for (path, ptx) in builds(sample) {
            for fence in fences(&ptx, kernel) {
                let mut without = ptx.clone();
                without.replace_range(fence, "");
                for schedule in schedules() {
                    let mut b = Bench::new(&without, checked(schedule));
                    let args = args(&mut b);
                    let report = b.launch(kernel, shape, &args).remove(0);
                    let needless = ["bulk_sum", "handed_over"].contains(&kernel);
                    let (path, told) = (path.display(), describe(&report));
                    assert_eq!(report.outcome.is_clean(), needless, "{path} {schedule:?}: {told}");
                }
                *removed.entry(kernel).or_insert(0) += 1;
            }
        }
    }
    assert!(FENCED.iter().all(|(_, kernel, ..)| removed.contains_key(kernel)), "{removed:?}");
}
