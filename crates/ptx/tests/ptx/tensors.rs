//! `cp.async.bulk.tensor`: tiles of tensors, drawn at random, against a loop over their elements.

use crate::bench::{Bench, checked, describe, found, schedules};
use crate::thorough::up_to;
use warpfold_ptx::descriptor::{Swizzle, TensorMap};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::ir::Type;
use warpfold_ptx::machine::{Arg, Schedule, Shape};

/// Bytes of the tile's room in shared memory.
pub(crate) const ROOM: u64 = 8192;

/// SplitMix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A tensor, a tile of it that fits, and coordinates around its borders.
fn draw(chance: &mut Chance) -> (TensorMap, Vec<i32>) {
    const TYPES: [Type; 10] = [
        Type::U8,
        Type::U16,
        Type::U32,
        Type::S32,
        Type::U64,
        Type::S64,
        Type::F16,
        Type::Bf16,
        Type::F32,
        Type::F64,
    ];
    loop {
        let element = chance.pick(&TYPES);
        let size = u64::from(element.bytes());
        let rank = 1 + chance.below(5) as usize;
        let extent: Vec<u64> = (0..rank).map(|_| 1 + chance.below(9)).collect();
        let mut tile: Vec<u32> = (0..rank).map(|_| 1 + chance.below(6) as u32).collect();
        let steps: Vec<u32> = (0..rank).map(|_| chance.pick(&[1, 1, 1, 2, 3])).collect();
        tile[0] = (16 / size * (1 + chance.below(3))) as u32 * steps[0];
        let mut strides = Vec::new();
        let mut stride = (extent[0] * size).next_multiple_of(16);
        for n in &extent[1..] {
            strides.push(stride + 16 * chance.below(3));
            stride = strides[strides.len() - 1] * n;
        }
        let swizzle = Swizzle::of_span(chance.pick(&[0, 32, 64, 128])).unwrap();
        let nan_outside = element.is_float() && chance.below(2) == 0;
        let map = TensorMap {
            address: 0,
            element,
            extent,
            strides,
            tile,
            steps,
            swizzle,
            nan_outside,
            im2col: None,
        };
        if map.encode().is_ok() && map.tile_bytes() <= ROOM {
            let at = map.extent.iter().map(|n| chance.below(n + 6) as i32 - 3).collect();
            return (map, at);
        }
    }
}

/// For each element of a tile its byte in shared memory, and that in the tensor if it is in it.
fn places(map: &TensorMap, at: &[i32]) -> Vec<(u64, Option<u64>)> {
    let size = u64::from(map.element.bytes());
    let lengths: Vec<u64> =
        map.tile.iter().zip(&map.steps).map(|(n, step)| u64::from(n.div_ceil(*step))).collect();
    let mut all = Vec::new();
    for number in 0..lengths.iter().product() {
        let (mut left, mut place) = (number, Some(0));
        for direction in 0..lengths.len() {
            let i = left % lengths[direction];
            left /= lengths[direction];
            let x = i64::from(at[direction]) + i as i64 * i64::from(map.steps[direction]);
            let stride = if direction == 0 { size } else { map.strides[direction - 1] };
            let inside = x >= 0 && (x as u64) < map.extent[direction];
            place = if inside { place.map(|p| p + x as u64 * stride) } else { None };
        }
        // The room begins at a multiple of 1024.
        all.push((map.swizzle.apply(number * size), place));
    }
    all
}

/// Bytes of the tensor's memory.
fn whole(map: &TensorMap) -> usize {
    let last = map.extent.len() - 1;
    match last {
        0 => (map.extent[0] * u64::from(map.element.bytes())).next_multiple_of(16) as usize,
        _ => (map.strides[last - 1] * map.extent[last]) as usize,
    }
}

/// What a copy of boxes is in text, and one of pixels that offsets shift.
fn copies(map: &TensorMap, at: &[i32], offsets: &[u16]) -> [(&'static str, String); 3] {
    fn list<T: ToString>(all: &[T]) -> String {
        all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
    }
    let (rank, place) = (at.len(), format!("[%m, {{{}}}]", list(at)));
    let (load, store, behind) = match map.im2col {
        None => ("tile", "tile", String::new()),
        Some(_) => ("im2col", "im2col_no_offs", format!(", {{{}}}", list(offsets))),
    };
    let tensor = format!("async.bulk.tensor.{rank}d");
    [
        (
            "LOAD",
            format!(
                "cp.{tensor}.shared::cluster.global.{load}.mbarrier::complete_tx::bytes [%r1], {place}, [bar]{behind};"
            ),
        ),
        ("STORE", format!("cp.{tensor}.global.shared::cta.{store}.bulk_group {place}, [%r1];")),
        (
            "REDUCE",
            format!("cp.reduce.{tensor}.global.shared::cta.add.{store}.bulk_group {place}, [%r1];"),
        ),
    ]
}

/// A kernel `k(.u64 out, map, .u64 map_in_memory)` that fills the room by `%t`, does something, and copies the room to the output.
pub(crate) fn kernel(
    map: &TensorMap,
    (at, offsets): (&[i32], &[u16]),
    from_memory: bool,
    body: &str,
) -> String {
    let map_at = if from_memory {
        "ld.param.u64 %m, [q];"
    } else {
        "mov.u64 %m, map; cvta.param.u64 %m, %m;"
    };
    let copies = copies(map, at, offsets).into_iter();
    let body = copies
        .fold(String::from(body), |body, (name, copy)| body.replace(name, &copy))
        .replace("BYTES", &map.tile_bytes().to_string());
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 1024 .b8 room[{ROOM}]; .shared .align 8 .b64 bar;\n\
         .visible .entry k(.param .u64 p, .param .align 64 .b8 map[128], .param .u64 q) {{
         .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b32 %t; .reg .b64 %d<9>; .reg .b64 %m, %out;
         ld.param.u64 %out, [p]; {map_at} mov.u32 %t, %tid.x; mov.u32 %r1, room;
         shl.b32 %r2, %t, 2;
         fill: add.u32 %r3, %r1, %r2; xor.b32 %r4, %r2, 0xa5a5a5a5; st.shared.u32 [%r3], %r4;
         add.u32 %r2, %r2, 128; setp.lt.u32 %p1, %r2, {ROOM}; @%p1 bra fill;
         setp.ne.u32 %p2, %t, 0; @!%p2 mbarrier.init.shared.b64 [bar], 1;
         fence.proxy.async; bar.sync 0; {body}
         shl.b32 %r2, %t, 2;
         back: add.u32 %r3, %r1, %r2; cvt.u64.u32 %d1, %r2; add.u64 %d1, %out, %d1; ld.shared.u32 %r4, [%r3]; st.global.u32 [%d1], %r4;
         add.u32 %r2, %r2, 128; setp.lt.u32 %p1, %r2, {ROOM}; @%p1 bra back;
         ret; }}"
    )
}

pub(crate) const ONE_LOADS: &str =
    "@%p2 bra wait; mbarrier.arrive.expect_tx.shared.b64 _, [bar], BYTES; LOAD
     wait: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra wait;";
pub(crate) const ONE_STORES: &str = "@%p2 bra over; STORE cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; over: bar.sync 0;";

/// What the room holds before.
pub(crate) fn room() -> Vec<u8> {
    (0..ROOM as u32 / 4).flat_map(|i| ((4 * i) ^ 0xa5a5_a5a5).to_le_bytes()).collect()
}

pub(crate) struct Ran {
    pub(crate) tensor: Vec<u8>,
    pub(crate) room: Vec<u8>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) told: String,
}

pub(crate) fn run(map: &TensorMap, ptx: &str, before: &[u8], schedule: Schedule) -> Ran {
    let mut b = Bench::new(ptx, checked(schedule));
    let (tensor, out) = (b.upload(before), b.room::<u8>(ROOM as usize));
    let bytes = TensorMap { address: tensor, ..map.clone() }.encode().unwrap();
    let in_memory = b.upload(&bytes);
    let args = [Arg::Pointer(out), Arg::Bytes(&bytes), Arg::Pointer(in_memory)];
    let report = b.launch("k", Shape::linear(1, 32), &args).remove(0);
    let kinds = found(&report).into_iter().map(|f| f.0).collect();
    Ran {
        tensor: b.download(tensor, before.len()),
        room: b.download(out, ROOM as usize),
        kinds,
        told: describe(&report),
    }
}

#[test]
fn tiles_are_those_of_a_loop_over_their_elements() {
    let mut chance = Chance(22);
    for round in 0..up_to(600, 60) {
        let (map, at) = draw(&mut chance);
        let size = map.element.bytes() as usize;
        let before: Vec<u8> = (0..whole(&map)).map(|_| chance.below(256) as u8).collect();
        let places = places(&map, &at);
        let schedule = chance.pick(&schedules());
        let from_memory = chance.below(2) == 0;
        let told = format!("round {round}: {map:?} at {at:?}, {schedule:?}");

        let of = |body: &str| kernel(&map, (&at, &[]), from_memory, body);
        let loaded = run(&map, &of(ONE_LOADS), &before, schedule);
        assert_eq!(loaded.kinds, [], "{told}: {}", loaded.told);
        let nan: u64 = match size {
            2 => 0x7fff,
            4 => 0x7fff_ffff,
            _ => 0x7fff_ffff_ffff_ffff,
        };
        let outside = if map.nan_outside { nan } else { 0 }.to_le_bytes();
        let mut wanted = room();
        for &(to, from) in &places {
            let element = match from {
                Some(from) => &before[from as usize..][..size],
                None => &outside[..size],
            };
            wanted[to as usize..][..size].copy_from_slice(element);
        }
        assert_eq!(loaded.room, wanted, "{told}");
        assert_eq!(loaded.tensor, before, "{told}");

        let stored = run(&map, &of(ONE_STORES), &before, schedule);
        assert_eq!(stored.kinds, [], "{told}: {}", stored.told);
        let mut wanted = before.clone();
        for &(from, to) in &places {
            if let Some(to) = to {
                let element = &room()[from as usize..][..size];
                wanted[to as usize..][..size].copy_from_slice(element);
            }
        }
        assert_eq!(stored.tensor, wanted, "{told}");

        if matches!(map.element, Type::U32 | Type::S32 | Type::U64) {
            let body = ONE_STORES.replace("STORE", "REDUCE");
            let reduced = run(&map, &of(&body), &before, schedule);
            assert_eq!(reduced.kinds, [], "{told}: {}", reduced.told);
            let mut wanted = before.clone();
            for &(from, to) in &places {
                if let Some(to) = to {
                    let word = |bytes: &[u8]| {
                        let mut raw = [0; 8];
                        raw[..size].copy_from_slice(&bytes[..size]);
                        u64::from_le_bytes(raw)
                    };
                    let sum = word(&before[to as usize..])
                        .wrapping_add(word(&room()[from as usize..]))
                        .to_le_bytes();
                    wanted[to as usize..][..size].copy_from_slice(&sum[..size]);
                }
            }
            assert_eq!(reduced.tensor, wanted, "{told}");
        }
    }
}

/// A table of 8 rows of 16 words.
fn table() -> TensorMap {
    TensorMap::tight(0, Type::U32, &[16, 8], &[16, 4])
}

#[track_caller]
fn finds(ptx: &str, expected: &[Kind]) {
    for schedule in schedules() {
        let mut ran = run(&table(), ptx, &[7; 512], schedule);
        ran.kinds.dedup();
        assert_eq!(ran.kinds, expected, "{schedule:?}: {}", ran.told);
    }
}

#[test]
fn tiles_are_checked_as_other_copies_are() {
    let of = |body: &str| kernel(&table(), (&[0, 2], &[]), false, body);
    finds(&of(ONE_LOADS), &[]);
    finds(&of(ONE_STORES), &[]);
    // Nobody waits, or what threads stored is not shown to the copy.
    let hasty = ONE_LOADS.replace(
        "wait: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra wait;",
        "wait:",
    );
    let kinds = run(&table(), &of(&hasty), &[7; 512], Schedule::Lockstep).kinds;
    assert!(kinds.contains(&Kind::Race), "{kinds:?}");
    finds(&of(ONE_STORES).replace("fence.proxy.async;", ""), &[Kind::MissingProxyFence]);
    // Not where a tile may lie.
    let moved = |body: &str| of(&format!("add.u32 %r1, %r1, 64; {body} sub.u32 %r1, %r1, 64;"));
    finds(&moved(ONE_STORES), &[Kind::Misaligned]);
    // A tensor of three directions, and no tensor at all.
    let other = of(ONE_STORES).replace("tensor.2d", "tensor.3d").replace("{0, 2}", "{0, 2, 0}");
    finds(&other, &[Kind::OutOfBounds]);
    // Pixels, where the map has boxes.
    finds(&other.replace("tile.", "im2col_no_offs."), &[Kind::OutOfBounds]);
    finds(
        &of(ONE_STORES).replace("cvta.param.u64 %m, %m;", "add.u64 %m, %out, 0;"),
        &[Kind::OutOfBounds],
    );
    finds(
        &of(ONE_STORES).replace("cvta.param.u64 %m, %m;", "mov.u64 %m, 0;"),
        &[Kind::OutOfBounds],
    );
}

#[test]
fn every_block_of_a_cluster_gets_a_tile() {
    let load = "@%p2 bra wait; mbarrier.arrive.expect_tx.shared.b64 _, [bar], BYTES;
         mov.u32 %r5, %cluster_ctarank; setp.ne.u32 %p4, %r5, 0; @%p4 bra wait;
         LOAD
         wait: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra wait;
         mov.u32 %r5, %cluster_ctarank; mul.wide.u32 %d2, %r5, 8192; add.u64 %out, %out, %d2;
         barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
    let ptx = kernel(&table(), (&[0, 0], &[]), false, load)
        .replace("bytes [%r1]", "bytes.multicast::cluster [%r1]")
        .replace("[bar];\n         wait", "[bar], 3;\n         wait")
        .replace(
            "fence.proxy.async; bar.sync 0;",
            "fence.proxy.async; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        );
    assert!(ptx.contains("[bar], 3;"), "{ptx}");
    for schedule in schedules() {
        let mut b = Bench::new(&ptx, checked(schedule));
        let words: Vec<u32> = (0..128).collect();
        let (tensor, out) = (b.upload(&words), b.room::<u8>(2 * ROOM as usize));
        let bytes = TensorMap { address: tensor, ..table() }.encode().unwrap();
        let shape = Shape { cluster: Some([2, 1, 1]), ..Shape::linear(2, 32) };
        let args = [Arg::Pointer(out), Arg::Bytes(&bytes), Arg::Pointer(out)];
        b.launch_clean("k", shape, &args);
        for block in 0..2 {
            assert_eq!(b.download::<u32>(out + block * ROOM, 64), words[..64], "{schedule:?}");
        }
    }
}
