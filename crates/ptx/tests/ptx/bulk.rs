//! `st.async`, `red.async` and `cp.reduce.async.bulk`: registers that go to another block's shared memory, and blocks that add their tiles to one row of global memory.

use crate::bench::{Bench, checked, describe, found, schedules};
use crate::execution::module;
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Shape};

/// 32 threads store a word each, from `%r1`, into a tile of 128 bytes; one thread reduces it into the output and waits.
fn reduced(word: &str, what: &str) -> String {
    module(
        ".shared .align 16 .b8 tile[128];",
        &format!(
            "mov.u32 %r5, %ctaid.x; {word}
             mov.u32 %r2, tile; mad.lo.u32 %r3, %t, 4, %r2; st.shared.u32 [%r3], %r1;
             fence.proxy.async.shared::cta; bar.sync 0;
             setp.ne.u32 %p1, %t, 0; @%p1 ret;
             cp.reduce.async.bulk.global.shared::cta.bulk_group.{what} [%out], [%r2], 128;
             cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
        ),
    )
}

#[track_caller]
fn assert_row(ptx: &str, before: [u32; 32], expected: impl Fn(u32) -> u32) {
    for schedule in schedules() {
        let mut b = Bench::new(ptx, checked(schedule));
        let out = b.upload(&before);
        b.launch_clean("k", Shape::linear(8, 32), &[Arg::Pointer(out)]);
        let row: Vec<u32> = b.download(out, 32);
        assert_eq!(row, (0..32).map(&expected).collect::<Vec<_>>(), "{schedule:?}");
    }
}

#[test]
fn blocks_combine_their_tiles() {
    // Block b has t + b in place t.
    let word = "add.u32 %r1, %t, %r5;";
    assert_row(&reduced(word, "add.u32"), [100; 32], |t| 100 + 8 * t + 28);
    assert_row(&reduced(word, "max.s32"), [10; 32], |t| (t + 7).max(10));
    assert_row(&reduced(word, "min.u32"), [10; 32], |t| t.min(10));
    assert_row(&reduced(word, "or.b32"), [0; 32], |t| (0..8).fold(0, |x, b| x | (t + b)));
    assert_row(&reduced("mov.u32 %r1, 5;", "inc.u32"), [0; 32], |_| 2);
    // Floats, and halves in pairs.
    let float = "cvt.rn.f32.u32 %f1, %t; mov.b32 %r1, %f1;";
    let eight = |t: u32| (8.0 * t as f32 + 0.5).to_bits();
    assert_row(&reduced(float, "add.f32"), [0.5f32.to_bits(); 32], eight);
    // 1.0 and 2.0 as f16.
    assert_row(&reduced("mov.u32 %r1, 0x40003c00;", "add.noftz.f16"), [0; 32], |_| 0x4c00_4800);
}

#[test]
fn wide_elements_are_combined_whole() {
    // 0xffffffff in both words: adding it eight times carries into the upper word.
    let ptx = reduced("mov.u32 %r1, -1;", "add.u64");
    assert_row(&ptx, [0; 32], |t| if t % 2 == 0 { 0u32.wrapping_sub(8) } else { u32::MAX });
}

#[test]
fn a_plain_store_beside_a_reduction_is_a_race() {
    let ptx = reduced("mov.u32 %r1, 1;", "add.u32");
    let plain = ptx.replacen("bar.sync 0;", "st.global.u32 [%o], 1; bar.sync 0;", 1);
    let mut b = Bench::new(&plain, checked(schedules()[0]));
    let out = b.upload(&[0u32; 32]);
    let report = b.launch("k", Shape::linear(2, 32), &[Arg::Pointer(out)]).remove(0);
    let kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|k| *k == Kind::Race), "{}", describe(&report));
}

#[test]
fn a_reduction_needs_its_proxy_fence_as_a_copy_does() {
    let ptx =
        reduced("mov.u32 %r1, 1;", "add.u32").replacen("fence.proxy.async.shared::cta;", "", 1);
    let mut b = Bench::new(&ptx, checked(schedules()[0]));
    let out = b.upload(&[0u32; 32]);
    let report = b.launch("k", Shape::linear(2, 32), &[Arg::Pointer(out)]).remove(0);
    let kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
    assert_eq!(kinds, [Kind::MissingProxyFence], "{}", describe(&report));
}

/// Each block of a cluster of two sends its words to the other, which waits for the bytes and, if it does, reads them.
fn sent(send: &str, bytes: u32, wait: bool) -> String {
    let wait = if wait {
        "again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra again;"
    } else {
        ""
    };
    module(
        ".shared .align 8 .b64 bar; .shared .align 16 .b8 inbox[512];",
        &format!(
            "mov.u32 %r1, inbox; mad.lo.u32 %r2, %t, 16, %r1; st.shared.v4.u32 [%r2], {{100, 100, 100, 100}};
             setp.ne.u32 %p1, %t, 0; @%p1 bra over;
             mbarrier.init.shared::cta.b64 [bar], 1;
             mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};
             over: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
             mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1;
             mapa.shared::cluster.u32 %r5, %r2, %r4; mov.u32 %r6, bar; mapa.shared::cluster.u32 %r7, %r6, %r4;
             {send}
             {wait}
             ld.shared.v2.u32 {{%r8, %r9}}, [%r2]; add.u32 %r10, %r8, %r9;
             mad.lo.u32 %r11, %r3, 32, %t; mul.wide.u32 %d1, %r11, 4; add.u64 %d2, %out, %d1; st.global.u32 [%d2], %r10;
             barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
        ),
    )
}

#[test]
fn words_sent_to_another_block_are_there_after_the_wait() {
    const ST: &str = "mbarrier::complete_tx::bytes";
    let of_other = |t: u32, rank: u32| 1000 * (rank ^ 1) + t;
    let mark = "mad.lo.u32 %r12, %r3, 1000, %t;";
    type Expected<'a> = &'a dyn Fn(u32, u32) -> u32;
    let cases: [(String, u32, Expected<'_>); 3] = [
        (
            format!("{mark} st.async.shared::cluster.{ST}.v2.u32 [%r5], {{%r12, %r12}}, [%r7];"),
            32 * 8,
            &|t, rank| 2 * of_other(t, rank),
        ),
        (
            format!("{mark} st.async.weak.shared::cluster.{ST}.b32 [%r5], %r12, [%r7];"),
            32 * 4,
            &|t, rank| 100 + of_other(t, rank),
        ),
        (
            format!(
                "{mark} red.async.relaxed.cluster.shared::cluster.{ST}.add.u32 [%r5], %r12, [%r7];"
            ),
            32 * 4,
            &|t, rank| 200 + of_other(t, rank),
        ),
    ];
    for (send, bytes, expected) in cases {
        for schedule in schedules() {
            let shape = Shape { cluster: Some([2, 1, 1]), ..Shape::linear(2, 32) };
            let mut b = Bench::new(&sent(&send, bytes, true), checked(schedule));
            let out = b.upload(&[0u32; 64]);
            b.launch_clean("k", shape, &[Arg::Pointer(out)]);
            let row: Vec<u32> = b.download(out, 64);
            let wanted: Vec<u32> = (0..64).map(|i| expected(i % 32, i / 32)).collect();
            assert_eq!(row, wanted, "{send} {schedule:?}");

            let mut b = Bench::new(&sent(&send, bytes, false), checked(schedule));
            let out = b.upload(&[0u32; 64]);
            let report = b.launch("k", shape, &[Arg::Pointer(out)]).remove(0);
            let kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
            assert!(kinds.contains(&Kind::Race), "{send} {schedule:?}: {}", describe(&report));
        }
    }
}
