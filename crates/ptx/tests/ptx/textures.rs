//! `tex`, `suld`, `sust`: images, drawn at random, against a loop over their coordinates.

use crate::bench::{Bench, checked, describe, found, schedules};
use crate::thorough::up_to;
use warpfold_ptx::descriptor::{Addressing, Image, Texel};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::ir::Type;
use warpfold_ptx::machine::{Arg, Schedule, Shape};

/// Threads, and samples of a case.
const N: usize = 32;

/// A kernel `k(.u64 image, .u64 at, .u64 out)`: each thread has three words of coordinates, and four of the output.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 i, .param .u64 a, .param .u64 p) {{
         .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b32 %x, %y, %z, %t; .reg .b64 %d<9>; .reg .b64 %i, %o, %out;
         ld.param.u64 %i, [i]; ld.param.u64 %d1, [a]; ld.param.u64 %out, [p]; mov.u32 %t, %tid.x;
         mul.wide.u32 %d2, %t, 12; add.u64 %d1, %d1, %d2; ld.global.u32 %x, [%d1]; ld.global.u32 %y, [%d1+4]; ld.global.u32 %z, [%d1+8];
         mul.wide.u32 %d2, %t, 16; add.u64 %o, %out, %d2;
         {body}
         ret; }}"
    )
}

const STORE: &str = "st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};";

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// The element of a texel as a texture of 32 bits gives it.
fn part(texel: Texel, unit: bool, bytes: &[u8], at: usize) -> u32 {
    let float = unit || matches!(texel.part, Type::F16 | Type::F32);
    if at >= texel.parts as usize {
        return if at < 3 {
            0
        } else if float {
            1f32.to_bits()
        } else {
            1
        };
    }
    let size = texel.part.bytes() as usize;
    let own = &bytes[at * size..][..size];
    let two = || [own[0], own[1]];
    let four = || u32::from_le_bytes([own[0], own[1], own[2], own[3]]);
    match (texel.part, unit) {
        (Type::U8, false) => own[0].into(),
        (Type::S8, false) => own[0] as i8 as i32 as u32,
        (Type::U16, false) => u16::from_le_bytes(two()).into(),
        (Type::S16, false) => i16::from_le_bytes(two()) as i32 as u32,
        (Type::U8, true) => (f32::from(own[0]) / 255.0).to_bits(),
        (Type::S8, true) => (f32::from(own[0] as i8) / 127.0).max(-1.0).to_bits(),
        (Type::U16, true) => (f32::from(u16::from_le_bytes(two())) / 65535.0).to_bits(),
        (Type::S16, true) => (f32::from(i16::from_le_bytes(two())) / 32767.0).max(-1.0).to_bits(),
        (Type::F16, _) => half::f16::from_le_bytes(two()).to_f32().to_bits(),
        _ => four(),
    }
}

/// The texel along a direction of `n`; `None` for zeros.
fn along(how: Addressing, n: i64, at: i64) -> Option<i64> {
    match how {
        Addressing::Clamp => Some(at.max(0).min(n - 1)),
        Addressing::Border => (at >= 0 && at < n).then_some(at),
        Addressing::Wrap => Some(((at % n) + n) % n),
        Addressing::Mirror => {
            let there = ((at % (2 * n)) + 2 * n) % (2 * n);
            Some(if there < n { there } else { 2 * n - 1 - there })
        }
    }
}

#[test]
fn samples_are_those_of_a_loop_over_coordinates() {
    let mut chance = Chance(5);
    for round in 0..up_to(1000, 150) {
        let part_type = chance.pick(&[
            Type::U8,
            Type::S8,
            Type::U16,
            Type::S16,
            Type::U32,
            Type::S32,
            Type::F16,
            Type::F32,
        ]);
        let texel = Texel { part: part_type, parts: chance.pick(&[1, 2, 4]) };
        let geometry = chance.pick(&["1d", "2d", "3d", "a1d", "a2d"]);
        let directions = if geometry.contains('3') {
            3
        } else if geometry.contains('2') {
            2
        } else {
            1
        };
        let layered = geometry.starts_with('a');
        let mut extent = [1, 1, 1];
        extent.iter_mut().take(directions).for_each(|n| *n = 1 + chance.below(9) as u32);
        if layered {
            extent[2] = 1 + chance.below(4) as u32;
        }
        let by_texels = chance.below(2) == 0;
        let normalized = !by_texels && chance.below(2) == 0;
        let hows: &[Addressing] = match normalized {
            true => &[Addressing::Clamp, Addressing::Border, Addressing::Wrap, Addressing::Mirror],
            false => &[Addressing::Clamp, Addressing::Border],
        };
        let unit = part_type.bits() < 32 && part_type != Type::F16 && chance.below(2) == 0;
        let plain = Image::tight(0, texel, &extent);
        let pitch = (plain.pitch[0] + u64::from(texel.bytes()) * chance.below(3)) as usize;
        let image = Image {
            pitch: [pitch as u64, (pitch * extent[1] as usize) as u64],
            addressing: [0; 3].map(|_| chance.pick(hows)),
            normalized,
            unit,
            ..plain
        };
        let memory: Vec<u8> = (0..pitch * (extent[1] * extent[2]) as usize)
            .map(
                |at| if part_type == Type::F16 { (at % 60) as u8 } else { chance.below(256) as u8 },
            )
            .collect();
        let mut words = Vec::new();
        let mut wanted = Vec::new();
        for _ in 0..N {
            // Quarters of texels, around the image.
            let mut coordinates = [0; 3];
            let mut place = Some([0_i64; 3]);
            for direction in 0..3 {
                let n = i64::from(extent[direction]);
                let is_layer = layered && direction == 2;
                if direction >= directions && !is_layer {
                    continue;
                }
                let quarters = chance.below(8 * n as u64 + 24) as i64 - 2 * n - 12;
                let how = if is_layer {
                    Addressing::Clamp
                } else if by_texels && directions == 1 {
                    Addressing::Border
                } else {
                    image.addressing[direction]
                };
                let (word, texel) = if is_layer || by_texels {
                    (quarters as i32 as u32, quarters)
                } else if normalized {
                    // The middle of a quarter, so that rounding moves it into no other texel.
                    let x = (quarters as f32 + 0.5) / 4.0 / n as f32;
                    (x.to_bits(), quarters.div_euclid(4))
                } else {
                    ((quarters as f32 / 4.0).to_bits(), quarters.div_euclid(4))
                };
                coordinates[direction] = word;
                let found = along(how, n, texel);
                place = place.zip(found).map(|(mut place, found)| {
                    place[direction] = found;
                    place
                });
            }
            words.extend(coordinates);
            let [x, y, z] = place.unwrap_or([0; 3]).map(|n| n as usize);
            let start = x * texel.bytes() as usize + y * pitch + z * image.pitch[1] as usize;
            let zeros = [0; 16];
            let bytes = if place.is_some() { &memory[start..] } else { &zeros[..] };
            wanted.extend((0..4).map(|at| part(texel, unit, bytes, at)));
        }
        let at = match geometry {
            "1d" => "{%x}",
            "2d" => "{%x, %y}",
            "3d" => "{%x, %y, %z, %z}",
            "a1d" => "{%z, %x}",
            _ => "{%z, %x, %y, %y}",
        };
        let is_float = unit || matches!(part_type, Type::F16 | Type::F32);
        let ty = if is_float { "f32" } else { chance.pick(&["u32", "s32"]) };
        let (level, behind) = chance.pick(&[("", ""), (".base", ""), (".level", ", %t")]);
        let coordinates = if by_texels { "s32" } else { "f32" };
        let ptx = kernel(&format!(
            "tex{level}.{geometry}.v4.{ty}.{coordinates} {{%r1, %r2, %r3, %r4}}, [%i, {at}]{behind}; {STORE}"
        ));
        let mut b = Bench::new(&ptx, checked(chance.pick(&schedules())));
        let buffer = b.upload(&memory);
        let handle = b.device.image(&Image { address: buffer, ..image.clone() }).unwrap();
        let (at, out) = (b.upload(&words), b.room::<u32>(4 * N));
        let args = [Arg::U64(handle), Arg::Pointer(at), Arg::Pointer(out)];
        b.launch_clean("k", Shape::linear(1, N as u32), &args);
        let got = b.download::<u32>(out, 4 * N);
        assert_eq!(got, wanted, "round {round}: {image:?} {ptx} {words:?}");
    }
}

/// Runs a kernel on a surface of 8 by 4 by 2 texels of four bytes: its bytes, the output, and what was found.
fn on_surface(
    ptx: &str,
    at: &[i32],
    schedule: Schedule,
) -> (Vec<u32>, Vec<u32>, Vec<Kind>, String) {
    let mut b = Bench::new(ptx, checked(schedule));
    let texels: Vec<u32> = (0..64).map(|i| 1000 + i).collect();
    let surface = b.upload(&texels);
    let texel = Texel { part: Type::U8, parts: 4 };
    let handle = b.device.image(&Image::tight(surface, texel, &[8, 4, 2])).unwrap();
    let (places, out) = (b.upload(at), b.upload(&vec![7u32; 4 * N]));
    let args = [Arg::U64(handle), Arg::Pointer(places), Arg::Pointer(out)];
    let threads = at.len() as u32 / 3;
    let report = b.launch("k", Shape::linear(1, threads), &args).remove(0);
    let kinds = found(&report).into_iter().map(|f| f.0).collect();
    (b.download(surface, 64), b.download(out, 4 * N), kinds, describe(&report))
}

#[test]
fn surfaces_are_read_and_written_by_bytes() {
    // Thread t has byte 4 t of a row of its own.
    let at: Vec<i32> = (0..8).flat_map(|t| [4 * t, t % 4, t / 4]).collect();
    let copy = kernel(
        "suld.b.3d.b32.trap {%r1}, [%i, {%x, %y, %z, %z}]; add.u32 %r1, %r1, 1; sust.b.3d.b32.clamp [%i, {%x, %y, %z, %z}], {%r1};
         suld.b.3d.b8.zero %h1, [%i, {%x, %y, %z, %z}]; cvt.u32.u16 %r2, %h1; suld.b.a2d.b32.trap {%r3}, [%i, {%z, %x, %y, %y}];
         suq.width.b32 %r4, [%i]; st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};",
    );
    for schedule in schedules() {
        let (surface, out, kinds, told) = on_surface(&copy, &at, schedule);
        assert_eq!(kinds, [], "{schedule:?}: {told}");
        for t in 0..8 {
            let place = (t + 8 * (t % 4) + 32 * (t / 4)) as usize;
            let texel = 1001 + place as u32;
            assert_eq!(surface[place], texel);
            assert_eq!(out[4 * t as usize..][..4], [texel, texel & 255, texel, 8]);
        }
        assert_eq!(surface.iter().sum::<u32>(), (0..64).map(|i| 1000 + i).sum::<u32>() + 8);
    }
    let wide = kernel(
        "suld.b.2d.v2.b64.trap {%d3, %d4}, [%i, {%x, %y}]; st.global.v2.u64 [%o], {%d3, %d4};",
    );
    let (_, out, kinds, _) = on_surface(&wide, &[16, 1, 0], Schedule::Lockstep);
    assert_eq!((&out[..4], &kinds[..]), (&[1012, 1013, 1014, 1015][..], &[][..]));
}

#[test]
fn outside_of_a_surface_is_what_the_instruction_says() {
    let load = |outside: &str| {
        kernel(&format!(
            "mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; suld.b.2d.b32.{outside} {{%r1}}, [%i, {{%x, %y}}]; {STORE}"
        ))
    };
    let at = [-4, 0, 0, 32, 1, 0, 4, -1, 0, 4, 4, 0];
    let first = |ptx: &str| {
        let (_, out, kinds, told) = on_surface(ptx, &at, Schedule::Lockstep);
        (out.chunks(4).take(4).map(|four| four[0]).collect::<Vec<_>>(), kinds, told)
    };
    assert_eq!(first(&load("clamp")).0, [1000, 1015, 1001, 1025]);
    assert_eq!(first(&load("zero")).0, [0; 4]);
    assert_eq!(first(&load("clamp")).1, []);
    let (ones, kinds, told) = first(&load("trap"));
    assert_eq!((ones, kinds), (vec![u32::MAX; 4], vec![Kind::OutOfBounds]));
    assert!(told.contains("at byte -4, row 0, plane 0 of a surface of 8 x 4 x 2 texels"), "{told}");
    let store =
        |outside: &str| kernel(&format!("sust.b.2d.b32.{outside} [%i, {{%x, %y}}], {{%t}};"));
    let (surface, _, kinds, _) = on_surface(&store("zero"), &at, Schedule::Lockstep);
    assert_eq!((surface, kinds), ((1000..1064).collect(), vec![]));
    let (surface, _, kinds, _) = on_surface(&store("clamp"), &at, Schedule::Lockstep);
    assert_eq!(([0, 15, 1, 25].map(|i| surface[i]), kinds), ([0, 1, 2, 3], vec![]));
}

#[test]
fn images_are_checked_as_other_memory_is() {
    let kinds = |body: &str, at: &[i32]| on_surface(&kernel(body), at, Schedule::Lockstep).2;
    let same = [4, 1, 0, 4, 1, 0];
    // Two threads write one place; one reads what another writes.
    assert_eq!(kinds("sust.b.2d.b32.trap [%i, {%x, %y}], {%t};", &same), [Kind::Race]);
    let other = "setp.eq.u32 %p1, %t, 0; @%p1 sust.b.2d.b32.trap [%i, {%x, %y}], {%t};
         @!%p1 tex.2d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%i, {1, 1}];";
    assert_eq!(kinds(other, &same), [Kind::Race]);
    assert_eq!(kinds("sust.b.2d.b32.trap [%i, {%x, %y}], {%t};", &[6, 1, 0]), [Kind::Misaligned]);
    // No handle at all, and one of other memory.
    let bad = |what: &str| {
        format!("{what} tex.2d.v4.u32.s32 {{%r1, %r2, %r3, %r4}}, [%i, {{%x, %y}}]; {STORE}")
    };
    assert_eq!(kinds(&bad("mov.u64 %i, 12345;"), &same), [Kind::OutOfBounds]);
    assert_eq!(kinds(&bad("mov.u64 %i, %out;"), &same), [Kind::OutOfBounds]);
}

#[test]
fn texels_that_nobody_wrote_are_followed() {
    let of = |behind: &str| {
        kernel(&format!("tex.1d.v4.u32.s32 {{%r1, %r2, %r3, %r4}}, [%i, {{%t}}]; {behind}"))
    };
    let kinds = |ptx: &str| {
        let mut b = Bench::new(ptx, checked(Schedule::Lockstep));
        let texels = b.room::<u32>(8);
        b.device.write(texels, &[1; 28]).unwrap();
        let texel = Texel { part: Type::U32, parts: 1 };
        let handle = b.device.image(&Image::tight(texels, texel, &[8])).unwrap();
        let (at, out) = (b.upload(&[0u32; 24]), b.upload(&[0u32; 32]));
        let args = [Arg::U64(handle), Arg::Pointer(at), Arg::Pointer(out)];
        let report = b.launch("k", Shape::linear(1, 8), &args).remove(0);
        found(&report).into_iter().map(|f| f.0).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&of("")), []);
    assert_eq!(kinds(&of(STORE)), [Kind::Uninitialised]);
    assert_eq!(kinds(&of("setp.eq.u32 %p1, %t, 7; @!%p1 st.global.u32 [%o], %r1;")), []);
}
