//! `cp.async.bulk.tensor` with `.im2col`: pixels of images, drawn at random, against their places counted from the start.

use crate::bench::schedules;
use crate::tensors::{Chance, ONE_LOADS, ONE_STORES, ROOM, kernel, room, run};
use crate::thorough::up_to;
use warpfold_ptx::descriptor::{Im2col, Swizzle, TensorMap};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::ir::Type;
use warpfold_ptx::machine::Schedule;

/// Images, a tile of them that fits, and in the box the coordinates of a pixel that a walk through it comes to; and offsets.
fn draw(chance: &mut Chance) -> (TensorMap, Vec<i32>, Vec<u16>) {
    loop {
        let element = chance.pick(&[Type::U8, Type::F16, Type::U32, Type::F32, Type::S64]);
        let size = element.bytes();
        let spatial = 1 + chance.below(3) as usize;
        let channels = 16 / size * (1 + chance.below(6) as u32);
        let mut extent = vec![u64::from(channels)];
        extent.extend((0..spatial).map(|_| 2 + chance.below(8)));
        extent.push(1 + chance.below(3));
        let steps: Vec<u32> = (0..spatial + 2).map(|_| chance.pick(&[1, 1, 2, 3])).collect();
        let mut corner = || (0..spatial).map(|_| chance.below(5) as i32 - 3).collect();
        let im2col = Im2col { lower: corner(), upper: corner() };
        let tile = vec![16 / size * (1 + chance.below(3) as u32), 1 + chance.below(70) as u32];
        let map = TensorMap {
            tile,
            steps,
            swizzle: Swizzle::of_span(chance.pick(&[0, 32, 64, 128])).unwrap(),
            nan_outside: element.is_float() && chance.below(2) == 0,
            im2col: Some(im2col),
            ..TensorMap::tight(0, element, &extent, &[])
        };
        let counts = counts(&map);
        if map.encode().is_err() || map.tile_bytes() > ROOM || counts.contains(&0) {
            continue;
        }
        let im2col = map.im2col.as_ref().unwrap();
        let mut at = vec![chance.below(u64::from(channels) + 8) as i32 - 4];
        for (d, &count) in counts.iter().enumerate() {
            let place = chance.below(count as u64) as i32;
            at.push(im2col.lower[d] + place * map.steps[d + 1] as i32);
        }
        at.push(chance.below(map.extent[spatial + 1] + 1) as i32);
        let offsets = (0..spatial).map(|_| chance.below(4) as u16).collect();
        return (map, at, offsets);
    }
}

/// The places that a walk through the box comes to along each spatial direction.
fn counts(map: &TensorMap) -> Vec<i64> {
    let im2col = map.im2col.as_ref().unwrap();
    let spatial = im2col.lower.len();
    (0..spatial)
        .map(|d| {
            let span = map.extent[d + 1] as i64 + i64::from(im2col.upper[d] - im2col.lower[d]);
            let step = i64::from(map.steps[d + 1]);
            (span.max(0) + step - 1) / step
        })
        .collect()
}

/// For each element of a tile its byte in shared memory, and that in the tensor if it is in it.
fn places(map: &TensorMap, at: &[i32], offsets: &[u16]) -> Vec<(u64, Option<u64>)> {
    let im2col = map.im2col.as_ref().unwrap();
    let (spatial, counts) = (im2col.lower.len(), counts(map));
    let size = u64::from(map.element.bytes());
    let step = |d: usize| i64::from(map.steps[d + 1]);
    // The number of the first pixel among all of all images' boxes.
    let mut first = i64::from(at[spatial + 1]);
    for d in (0..spatial).rev() {
        first = first * counts[d] + i64::from(at[d + 1] - im2col.lower[d]) / step(d);
    }
    let mut all = Vec::new();
    for pixel in 0..i64::from(map.tile[1]) {
        let mut left = first + pixel;
        let mut place = Vec::new();
        for d in 0..spatial {
            let i = left % counts[d];
            left /= counts[d];
            place.push(i64::from(im2col.lower[d]) + i * step(d) + i64::from(offsets[d]));
        }
        place.push(left);
        for channel in 0..i64::from(map.tile[0]) {
            let x = i64::from(at[0]) + channel;
            let inside = x >= 0 && x < map.extent[0] as i64;
            let mut byte = inside.then(|| x as u64 * size);
            for (d, &p) in place.iter().enumerate() {
                let inside = p >= 0 && p < map.extent[d + 1] as i64;
                byte = byte.filter(|_| inside).map(|b| b + p as u64 * map.strides[d]);
            }
            let number = (pixel * i64::from(map.tile[0]) + channel) as u64;
            all.push((map.swizzle.apply(number * size), byte));
        }
    }
    all
}

#[test]
fn pixels_are_those_of_a_walk_through_the_box() {
    let mut chance = Chance(51);
    for round in 0..up_to(600, 60) {
        let (map, at, offsets) = draw(&mut chance);
        let size = map.element.bytes() as usize;
        let last = map.extent.len() - 1;
        let bytes = map.strides[last - 1] * map.extent[last];
        let before: Vec<u8> = (0..bytes).map(|_| chance.below(256) as u8).collect();
        let schedule = chance.pick(&schedules());
        let told = format!("round {round}: {map:?} at {at:?} + {offsets:?}, {schedule:?}");

        let ptx = kernel(&map, (&at, &offsets), chance.below(2) == 0, ONE_LOADS);
        let loaded = run(&map, &ptx, &before, schedule);
        assert_eq!(loaded.kinds, [], "{told}: {}", loaded.told);
        let nan = [0xff, if size == 2 { 0x7f } else { 0xff }, 0xff, 0x7f];
        let mut wanted = room();
        for (to, from) in places(&map, &at, &offsets) {
            let element = match from {
                Some(from) => &before[from as usize..][..size],
                None if map.nan_outside => &nan[..size],
                None => &[0; 8][..size],
            };
            wanted[to as usize..][..size].copy_from_slice(element);
        }
        assert!(loaded.room == wanted, "{told}");
        assert_eq!(loaded.tensor, before, "{told}");

        // Stores have no offsets.
        let none = vec![0; offsets.len()];
        let ptx = kernel(&map, (&at, &none), chance.below(2) == 0, ONE_STORES);
        let stored = run(&map, &ptx, &before, schedule);
        assert_eq!(stored.kinds, [], "{told}: {}", stored.told);
        let mut wanted = before.clone();
        for (from, to) in places(&map, &at, &none) {
            if let Some(to) = to {
                let element = &room()[from as usize..][..size];
                wanted[to as usize..][..size].copy_from_slice(element);
            }
        }
        assert!(stored.tensor == wanted, "{told}");
    }
}

/// An image of 4 times 4 pixels, 1 to 16, of four channels that are alike.
fn image() -> (TensorMap, Vec<u8>) {
    let map = TensorMap {
        tile: vec![4, 16],
        im2col: Some(Im2col { lower: vec![-1, -1], upper: vec![-1, -1] }),
        ..TensorMap::tight(0, Type::U32, &[4, 4, 4, 1], &[])
    };
    let bytes = (1..17_u32).flat_map(|pixel| [pixel; 4]).flat_map(u32::to_le_bytes).collect();
    (map, bytes)
}

/// The case that Triton's tutorial of `im2col` shows: a border of one pixel, and the offsets that move the box onto the image.
#[test]
fn a_border_is_zeros_and_offsets_shift_the_box() {
    let (map, bytes) = image();
    let row = |offsets: &[u16]| -> Vec<u32> {
        let ptx = kernel(&map, (&[0, -1, -1, 0], offsets), false, ONE_LOADS);
        let ran = run(&map, &ptx, &bytes, Schedule::Lockstep);
        assert_eq!(ran.kinds, [], "{}", ran.told);
        let words = ran.room.chunks(16).take(16);
        words.map(|pixel| u32::from_le_bytes(pixel[..4].try_into().unwrap())).collect()
    };
    assert_eq!(row(&[0, 0]), [0, 0, 0, 0, 0, 1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11]);
    assert_eq!(row(&[1, 1]), (1..17).collect::<Vec<_>>());
    assert_eq!(row(&[2, 0])[..8], [0, 0, 0, 0, 2, 3, 4, 0]);
}

#[test]
fn pixels_are_checked_as_boxes_are() {
    let (map, bytes) = image();
    let of = |body: &str| kernel(&map, (&[0, -1, -1, 0], &[1, 1]), false, body);
    let kinds = |ptx: &str| run(&map, ptx, &bytes, Schedule::Lockstep).kinds;
    // A box, where the map has pixels, and the other way around.
    assert_eq!(kinds(&of(ONE_STORES).replace("im2col_no_offs", "tile")), [Kind::OutOfBounds]);
    assert_eq!(kinds(&of(ONE_STORES).replace("fence.proxy.async;", "")), [Kind::MissingProxyFence]);
    // Offsets that decide where to read from.
    let undefined = of(ONE_LOADS)
        .replace(", {1, 1};", ", {%h1, %h1};")
        .replace("@%p2 bra wait;", ".reg .b16 %h1; ld.shared.u16 %h1, [more]; @%p2 bra wait;")
        .replace(".shared .align 8 .b64 bar;", ".shared .align 8 .b64 bar; .shared .b16 more;");
    assert!(kinds(&undefined).contains(&Kind::Uninitialised));
}

#[test]
fn pixels_that_there_are_not_are_no_instruction() {
    let (map, _) = image();
    let load = kernel(&map, (&[0, -1, -1, 0], &[1, 1]), false, ONE_LOADS);
    for (from, to) in [
        (", {1, 1};", ", {1};"),
        (", {1, 1};", ";"),
        ("{0, -1, -1, 0}], [bar], {1, 1};", "{0, -1}], [bar], {1, 1};"),
        ("im2col.", "im2col_no_offs.im2col."),
    ] {
        let ptx = load.replace(from, to);
        assert_ne!(ptx, load, "{from}");
        let unread = warpfold_ptx::parse::parse(&ptx).map_or(true, |m| !m.unsupported.is_empty());
        assert!(unread, "{to}");
    }
}
