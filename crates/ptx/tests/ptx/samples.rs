//! The sample kernels give what they should, in every build and under every schedule, with all checks on and nothing found.

use crate::bench::{Bench, builds, checked, plain, schedules};
use warpfold_ptx::machine::{Arg, Schedule, Shape};

/// Runs a test of a sample in every build and under every schedule.
fn everywhere(sample: &str, test: impl Fn(&mut Bench)) {
    run_in_every_build(sample, &test);
}

fn run_in_every_build(sample: &str, test: &dyn Fn(&mut Bench)) {
    for (path, ptx) in builds(sample) {
        for schedule in schedules() {
            eprintln!("{} {schedule:?}", path.display());
            test(&mut Bench::new(&ptx, checked(schedule)));
        }
    }
}

fn integers(n: usize) -> Vec<i32> {
    (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 20) as i32 - 2000).collect()
}

/// Small integers as floats, so that sums are exact in any order.
fn floats(n: usize) -> Vec<f32> {
    integers(n).iter().map(|&i| i as f32).collect()
}

#[test]
fn two_pass_sums() {
    everywhere("two_pass", |b| {
        let values = floats(3001);
        let total: f32 = values.iter().sum();
        let (input, partials, out) = (b.upload(&values), b.room::<f32>(5), b.room::<f32>(1));
        b.launch_clean(
            "two_pass_f32",
            Shape::linear(5, 128),
            &[Arg::Pointer(input), Arg::Pointer(partials), Arg::U64(3001)],
        );
        b.launch_clean(
            "two_pass_f32",
            Shape::linear(1, 32),
            &[Arg::Pointer(partials), Arg::Pointer(out), Arg::U64(5)],
        );
        assert_eq!(b.download::<f32>(out, 1), [total]);
    });
}

#[test]
fn addressings_give_the_same_sums() {
    everywhere("addressing", |b| {
        let values = integers(1000);
        let expected: Vec<i32> = values.chunks(256).map(|c| c.iter().sum()).collect();
        for kernel in ["neighbored", "compact", "interleaved"] {
            let (data, partials) = (b.upload(&values), b.room::<i32>(4));
            b.launch_clean(
                kernel,
                Shape::linear(4, 256),
                &[Arg::Pointer(data), Arg::Pointer(partials), Arg::U32(1000)],
            );
            assert_eq!(b.download::<i32>(partials, 4), expected, "{kernel}");
        }
    });
}

#[test]
fn shuffles_move_between_lanes() {
    everywhere("shuffles", |b| {
        let values = floats(500);
        let (input, partials) = (b.upload(&values), b.room::<f32>(2));
        b.launch_clean(
            "shuffle_down",
            Shape::linear(2, 256),
            &[Arg::Pointer(input), Arg::Pointer(partials), Arg::U32(500)],
        );
        let expected: Vec<f32> = values.chunks(256).map(|c| c.iter().sum()).collect();
        assert_eq!(b.download::<f32>(partials, 2), expected);

        let values = integers(64);
        let (input, out) = (b.upload(&values), b.room::<i32>(64));
        b.launch_clean(
            "shuffle_xor",
            Shape::linear(1, 64),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(64)],
        );
        let sums: Vec<i32> = values.chunks(32).flat_map(|c| [c.iter().sum::<i32>(); 32]).collect();
        assert_eq!(b.download::<i32>(out, 64), sums);
        b.launch_clean(
            "shuffle_scan",
            Shape::linear(1, 64),
            &[Arg::Pointer(input), Arg::Pointer(out)],
        );
        let scan = |c: &[i32]| {
            c.iter()
                .scan(0, |s, &x| {
                    *s += x;
                    Some(*s)
                })
                .collect::<Vec<i32>>()
        };
        let scans: Vec<i32> = values.chunks(32).flat_map(scan).collect();
        assert_eq!(b.download::<i32>(out, 64), scans);

        let wide: Vec<f64> = (0..32).map(f64::from).collect();
        let (input, out) = (b.upload(&wide), b.room::<f64>(32));
        b.launch_clean(
            "shuffle_f64",
            Shape::linear(1, 32),
            &[Arg::Pointer(input), Arg::Pointer(out)],
        );
        let eights: Vec<f64> = wide.chunks(8).flat_map(|c| [c.iter().sum::<f64>(); 8]).collect();
        assert_eq!(b.download::<f64>(out, 32), eights);
    });
}

#[test]
fn votes_and_matches() {
    everywhere("warps", |b| {
        let lanes: Vec<i32> = (0..32).map(|i| i / 3 - 2).collect();
        let (input, out) = (b.upload(&lanes), b.room::<u32>(8 * 32));
        b.launch_clean("votes", Shape::linear(1, 32), &[Arg::Pointer(input), Arg::Pointer(out)]);
        let got = b.download::<u32>(out, 8 * 32);
        let mask = |f: &dyn Fn(i32) -> bool| {
            lanes.iter().enumerate().fold(0u32, |m, (i, &v)| m | u32::from(f(v)) << i)
        };
        let odd = mask(&|v| v & 1 == 1);
        for (lane, row) in got.chunks(8).enumerate() {
            let v = lanes[lane];
            assert_eq!(row[..5], [mask(&|v| v > 0), 0, 1, 0, mask(&|w| w == v)], "lane {lane}");
            assert_eq!(row[5..7], [0, 0]);
            // Which lanes are active together is the schedule's choice; a lane itself always is.
            let active = row[7];
            assert_eq!(active & !odd, 0);
            assert_eq!(active >> lane & 1 == 1, v & 1 == 1);
        }
        let positive = b.upload(&[7i32; 64]);
        let out = b.room::<i32>(3 * 64);
        b.launch_clean(
            "block_votes",
            Shape::linear(1, 64),
            &[Arg::Pointer(positive), Arg::Pointer(out)],
        );
        assert_eq!(b.download::<i32>(out, 6), [64, 1, 1, 64, 1, 1]);
        let mixed: Vec<i32> = (0..64).map(|i| i - 50).collect();
        let input = b.upload(&mixed);
        b.launch_clean(
            "block_votes",
            Shape::linear(1, 64),
            &[Arg::Pointer(input), Arg::Pointer(out)],
        );
        assert_eq!(b.download::<i32>(out, 3), [13, 0, 1]);
        let count = b.upload(&[0u32]);
        b.launch_clean(
            "aggregated",
            Shape::linear(1, 64),
            &[Arg::Pointer(input), Arg::Pointer(count), Arg::U32(60)],
        );
        assert_eq!(b.download::<u32>(count, 1), [9]);
        let out = b.room::<i32>(32);
        b.launch_clean("handed_over", Shape::linear(1, 64), &[Arg::Pointer(out)]);
        let squares: Vec<i32> = (0..32).map(|i| (31 - i) * (31 - i)).collect();
        assert_eq!(b.download::<i32>(out, 32), squares);
    });
}

#[test]
fn warp_reductions_and_elections() {
    everywhere("warps_90", |b| {
        let values = integers(32);
        let (input, out) = (b.upload(&values), b.room::<i32>(6 * 32));
        b.launch_clean("redux", Shape::linear(1, 32), &[Arg::Pointer(input), Arg::Pointer(out)]);
        let unsigned = values.iter().map(|&v| v as u32);
        let expected = [
            values.iter().sum::<i32>(),
            *values.iter().min().unwrap(),
            unsigned.clone().max().unwrap() as i32,
            unsigned.clone().fold(u32::MAX, |a, b| a & b) as i32,
            unsigned.clone().fold(0, |a, b| a | b) as i32,
            unsigned.fold(0, |a, b| a ^ b) as i32,
        ];
        for row in b.download::<i32>(out, 6 * 32).chunks(6) {
            assert_eq!(row, expected);
        }
        let out = b.room::<u32>(64);
        b.launch_clean("elected", Shape::linear(1, 32), &[Arg::Pointer(out)]);
        let rows = b.download::<u32>(out, 64);
        assert_eq!(rows.chunks(2).map(|r| r[1]).sum::<u32>(), 1, "one lane is chosen");
        let chosen = rows[0];
        assert!(rows.chunks(2).all(|r| r[0] == chosen) && rows[2 * chosen as usize + 1] == 1);
        let (input, out) = (b.upload(&[41i32; 8]), b.room::<i32>(8));
        b.launch_clean("dependent", Shape::linear(1, 8), &[Arg::Pointer(input), Arg::Pointer(out)]);
        assert_eq!(b.download::<i32>(out, 8), [42; 8]);
    });
}

#[test]
fn atomics_lose_nothing() {
    everywhere("atomics", |b| {
        let values: Vec<u32> = (0..700).map(|i| i * i % 97).collect();
        let mut expected = [0u32; 10];
        values.iter().for_each(|v| expected[*v as usize % 10] += 1);
        for kernel in ["global_histogram", "shared_histogram"] {
            let (input, bins) = (b.upload(&values), b.upload(&[0u32; 10]));
            b.launch_clean(
                kernel,
                Shape::linear(3, 64),
                &[Arg::Pointer(input), Arg::Pointer(bins), Arg::U32(10), Arg::U32(700)],
            );
            assert_eq!(b.download::<u32>(bins, 10), expected, "{kernel}");
        }
        let i = b.upload(&[0i32; 2]);
        let mut words = vec![0u32; 32 + 128];
        (words[0], words[4]) = (u32::MAX, 5);
        let u = b.upload(&words);
        let (l, f, d) = (b.upload(&[0u64; 2]), b.upload(&[0f32]), b.upload(&[0f64]));
        let args = [i, u, l, f, d].map(Arg::Pointer);
        b.launch_clean("every_atomic", Shape::linear(2, 64), &args);
        assert_eq!(b.download::<i32>(i, 2), [-5, 122]);
        let u = b.download::<u32>(u, 10);
        assert_eq!(u[..3], [!0x7f, 0x7ffff, (0..128).fold(0, |a, k| a ^ k)]);
        assert_eq!(u[3], 128 % 10);
        assert_eq!(u[5], 0u32.wrapping_sub(128 * 127 / 2));
        assert_eq!(u[7..10], [128, 64, 64]);
        assert_eq!(b.download::<u64>(l, 2), [(128 * 127 / 2) << 33, 127 << 33]);
        assert_eq!((b.download::<f32>(f, 1)[0], b.download::<f64>(d, 1)[0]), (128.0, 64.0));
        let (product, factors) = (b.upload(&[1f32]), b.upload(&[2f32; 10]));
        b.launch_clean(
            "swap_product",
            Shape::linear(1, 32),
            &[Arg::Pointer(product), Arg::Pointer(factors), Arg::U32(10)],
        );
        assert_eq!(b.download::<f32>(product, 1), [1024.0]);
        let (half, pair) = (b.upload(&[0u16, 0]), b.upload(&[0u32]));
        b.launch_clean(
            "half_atomics",
            Shape::linear(1, 4),
            &[Arg::Pointer(half), Arg::Pointer(pair)],
        );
        assert_eq!(
            (b.download::<u16>(half, 1)[0], b.download::<u32>(pair, 1)[0]),
            (0x4400, 0x4400_4400)
        );
    });
}

#[test]
fn tickets_and_grid_barriers() {
    everywhere("ticket", |b| {
        let values = floats(2000);
        let (input, partials, out, tickets) =
            (b.upload(&values), b.room::<f32>(4), b.room::<f32>(1), b.upload(&[0u32]));
        let args = [
            Arg::Pointer(input),
            Arg::Pointer(partials),
            Arg::Pointer(out),
            Arg::Pointer(tickets),
            Arg::U32(2000),
        ];
        for kernel in ["ticket_sum", "ticket_acq_rel"] {
            b.launch_clean(kernel, Shape::linear(4, 64), &args);
            assert_eq!(b.download::<f32>(out, 1), [values.iter().sum::<f32>()]);
            assert_eq!(b.download::<u32>(tickets, 1), [0], "the ticket resets itself");
        }
    });
    everywhere("grid_sync", |b| {
        let values = integers(900);
        let (input, partials, out, arrived) =
            (b.upload(&values), b.room::<i32>(6), b.room::<i32>(6), b.upload(&[0u32]));
        let args = [
            Arg::Pointer(input),
            Arg::Pointer(partials),
            Arg::Pointer(out),
            Arg::Pointer(arrived),
            Arg::U32(900),
        ];
        b.launch_clean("grid_sum", Shape { cooperative: true, ..Shape::linear(6, 64) }, &args);
        assert_eq!(b.download::<i32>(out, 6), [values.iter().sum::<i32>(); 6]);
    });
}

#[test]
fn clusters_share_memory() {
    everywhere("cluster", |b| {
        let values = integers(250);
        let (input, out) = (b.upload(&values), b.room::<i32>(4));
        b.launch_clean(
            "cluster_sum",
            Shape::linear(4, 64),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(250)],
        );
        let [low, high]: [i32; 2] = [values[..128].iter().sum(), values[128..].iter().sum()];
        assert_eq!(b.download::<i32>(out, 4), [low, low, high, high]);
        let out = b.room::<u32>(20);
        let shape = Shape { cluster: Some([2, 1, 1]), ..Shape::linear(4, 32) };
        b.launch_clean("cluster_shape", shape, &[Arg::Pointer(out)]);
        let rows = b.download::<u32>(out, 20);
        assert_eq!(rows[5..10], [0, 2, 1, 2, 1]);
        assert_eq!(rows[10..15], [1, 2, 0, 2, 1]);
    });
}

#[test]
fn asynchronous_copies() {
    everywhere("async_copy", |b| {
        let values = floats(4 * 128 * 3);
        let (input, out) = (b.upload(&values), b.room::<f32>(128));
        b.launch_clean(
            "async_sum",
            Shape::linear(1, 128),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(3)],
        );
        let expected = |t: usize| {
            (0..3).map(|k| values[4 * (k * 128 + t)..][..4].iter().sum::<f32>()).sum::<f32>()
        };
        assert_eq!(b.download::<f32>(out, 128), (0..128).map(expected).collect::<Vec<_>>());
        let values = integers(128);
        let (input, out) = (b.upload(&values), b.room::<i32>(128));
        b.launch_clean(
            "async_mbarrier",
            Shape::linear(1, 128),
            &[Arg::Pointer(input), Arg::Pointer(out)],
        );
        let turned: Vec<i32> = (0..128).map(|i| values[(i + 1) % 128]).collect();
        assert_eq!(b.download::<i32>(out, 128), turned);
    });
    everywhere("bulk_copy", |b| {
        let values = integers(256 * 3);
        let (input, out) = (b.upload(&values), b.room::<i32>(64));
        b.launch_clean(
            "bulk_sum",
            Shape::linear(1, 64),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(3)],
        );
        assert_eq!(b.download::<i32>(out, 64).iter().sum::<i32>(), values.iter().sum::<i32>());
        let out = b.room::<i32>(512);
        b.launch_clean("bulk_fill", Shape::linear(2, 64), &[Arg::Pointer(out), Arg::I32(5)]);
        assert_eq!(b.download::<i32>(out, 512), (0..512).map(|i| 5 + i % 256).collect::<Vec<_>>());
    });
}

#[test]
fn calls_pass_and_return() {
    everywhere("calls", |b| {
        let values = integers(100);
        let data = b.upload(&values);
        b.launch_clean(
            "clamp_all",
            Shape::linear(2, 64),
            &[Arg::Pointer(data), Arg::I32(-500), Arg::I32(700), Arg::U32(100)],
        );
        assert_eq!(
            b.download::<i32>(data, 100),
            values.iter().map(|v| *v.clamp(&-500, &700)).collect::<Vec<_>>()
        );
        let values = floats(70);
        let (input, out) = (b.upload(&values), b.room::<f64>(3 * 32));
        b.launch_clean(
            "moments",
            Shape::linear(1, 32),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(70)],
        );
        let rows = b.download::<f64>(out, 6);
        let mine = [values[0], values[32], values[64]].map(f64::from);
        assert_eq!(rows[..2], [mine.iter().sum::<f64>(), mine.iter().map(|x| x * x).sum()]);
        assert_eq!(rows[2].to_bits() as u32, 3);
        let out = b.room::<u32>(32);
        b.launch_clean("fibonacci", Shape::linear(1, 32), &[Arg::Pointer(out)]);
        let fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
        assert_eq!(b.download::<u32>(out, 32), (0..32).map(|i| fib[i % 12]).collect::<Vec<_>>());
        let (x, y, out) = (b.upload(&[1i32, 9]), b.upload(&[5i32, -5]), b.room::<i32>(2));
        for (which, expected) in [(0, [5, 9]), (1, [1, -5])] {
            b.launch_clean(
                "choose",
                Shape::linear(1, 2),
                &[Arg::Pointer(x), Arg::Pointer(y), Arg::Pointer(out), Arg::U32(which)],
            );
            assert_eq!(b.download::<i32>(out, 2), expected);
        }
        let mut moments = [1.5f64.to_le_bytes(), 2.5f64.to_le_bytes(), [0; 8]].concat();
        moments[16] = 7;
        let out = b.room::<f64>(3);
        b.launch_clean("unpack", Shape::linear(1, 1), &[Arg::Bytes(&moments), Arg::Pointer(out)]);
        assert_eq!(b.download::<f64>(out, 3), [1.5, 2.5, 7.0]);
    });
}

#[test]
fn constants_and_variables() {
    everywhere("constants", |b| {
        let (input, out) = (b.upload(&[1f32; 16]), b.room::<f64>(8));
        b.launch_clean(
            "weighted",
            Shape::linear(1, 8),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(16)],
        );
        let expected: Vec<f64> = (0..8).map(|i| 2.0 * (0.5 + 0.5 * f64::from(i)) * 0.25).collect();
        assert_eq!(b.download::<f64>(out, 8), expected);
        let out = b.room::<i32>(5);
        for launches in 0..2 {
            b.launch_clean("variables", Shape::linear(1, 1), &[Arg::Pointer(out)]);
            // The second launch finds the pointer that the first one left.
            let entry = if launches == 0 { -3 + 6 } else { 1 };
            let found = b.download::<i32>(out, 5);
            assert_eq!(found[1..], [1, launches, i32::from(b'w'), 2]);
            assert_eq!(found[0], entry);
        }
    });
}

#[test]
fn dynamic_shared_memory() {
    everywhere("dynamic_shared", |b| {
        let values = integers(200);
        let (input, out) = (b.upload(&values), b.room::<i32>(2));
        let shape = Shape::linear(2, 128).with_shared(512);
        b.launch_clean(
            "dynamic_sum",
            shape,
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(200)],
        );
        let expected: Vec<i32> = values.chunks(128).map(|c| c.iter().sum()).collect();
        assert_eq!(b.download::<i32>(out, 2), expected);
        let out = b.room::<u32>(2);
        b.launch_clean("dynamic_size", Shape::linear(1, 1).with_shared(512), &[Arg::Pointer(out)]);
        assert_eq!(b.download::<u32>(out, 1), [512]);
    });
}

#[test]
fn local_memory_and_branch_tables() {
    everywhere("locals", |b| {
        let values: Vec<u32> = (0..500).map(|i| i * 7 % 31).collect();
        let (input, out) = (b.upload(&values), b.room::<u32>(16 * 40));
        b.launch_clean(
            "local_histogram",
            Shape::linear(1, 40),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(500)],
        );
        let mut expected = vec![0u32; 16 * 40];
        values.iter().enumerate().for_each(|(i, v)| expected[i % 40 * 16 + *v as usize % 16] += 1);
        assert_eq!(b.download::<u32>(out, 16 * 40), expected);
        let codes: Vec<i32> = (0..10).collect();
        let (codes, data) = (b.upload(&codes), b.upload(&[4f32; 10]));
        b.launch_clean(
            "operations",
            Shape::linear(1, 10),
            &[Arg::Pointer(codes), Arg::Pointer(data)],
        );
        let expected = [5.0, 12.0, 2.0, -4.0, 4.0 / 7.0, 0.0, 2.0, 16.0, 1.0, 1.0];
        assert_eq!(b.download::<f32>(data, 10), expected);
    });
}

#[test]
fn halves_convert_and_add() {
    everywhere("halves", |b| {
        let halves: Vec<u16> =
            (0..300).map(|i| half::f16::from_f32((i % 50) as f32).to_bits()).collect();
        let (input, out) = (b.upload(&halves), b.room::<u16>(2));
        b.launch_clean(
            "sum_f16",
            Shape::linear(2, 64),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(300)],
        );
        let sum: f32 =
            b.download::<u16>(out, 2).iter().map(|&x| half::f16::from_bits(x).to_f32()).sum();
        assert!((sum - 7350.0).abs() <= 4.0, "{sum}");
        let (x, y, out) =
            (b.upload(&[0x4000_3c00u32]), b.upload(&[0x3c00_3c00u32]), b.room::<u32>(4));
        b.launch_clean(
            "pairs_f16",
            Shape::linear(1, 32),
            &[Arg::Pointer(x), Arg::Pointer(y), Arg::Pointer(out), Arg::U32(1)],
        );
        // (1, 2) and (1, 1): sums (2, 3), products (1, 2), fused (3, 5).
        assert_eq!(b.download::<u32>(out, 3), [0x4200_4000, 0x4000_3c00, 0x4500_4200]);
    });
    everywhere("halves_90", |b| {
        let (x, y, out) = (b.upload(&[1.5f32]), b.upload(&[-2f32]), b.room::<u32>(7));
        b.launch_clean(
            "pack_pairs",
            Shape::linear(1, 1),
            &[Arg::Pointer(x), Arg::Pointer(y), Arg::Pointer(out)],
        );
        let expected =
            [0x3e00_c000, 0x3fc0_c000, 0x3fc0_0000, 0x3fc0, 0x4040_c000, 0x3e00_c000, 0x40a8_0000];
        assert_eq!(b.download::<u32>(out, 7), expected);
    });
}

#[test]
fn loads_of_every_width() {
    everywhere("loads", |b| {
        let values = floats(64 * 4 + 8);
        let (input, out) = (b.upload(&values), b.room::<f32>(64));
        let shape = Shape::linear(2, 32);
        b.launch_clean(
            "strided_load",
            shape,
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(4)],
        );
        assert_eq!(b.download::<f32>(out, 64), (0..64).map(|i| values[4 * i]).collect::<Vec<_>>());
        b.launch_clean(
            "offset_load",
            shape,
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(3)],
        );
        assert_eq!(b.download::<f32>(out, 64), values[3..67]);
        b.launch_clean("vector4_load", shape, &[Arg::Pointer(input), Arg::Pointer(out)]);
        assert_eq!(
            b.download::<f32>(out, 64),
            values.chunks(4).take(64).map(|c| c.iter().sum()).collect::<Vec<f32>>()
        );
        let copy = b.room::<f32>(256);
        b.launch_clean("vector4_copy", shape, &[Arg::Pointer(input), Arg::Pointer(copy)]);
        assert_eq!(b.download::<f32>(copy, 256), values[..256]);
        let (bytes, wide) =
            (b.upload(&(0..64).map(|i| (i * 5) as u8).collect::<Vec<_>>()), b.room::<u32>(64));
        b.launch_clean("byte_load", shape, &[Arg::Pointer(bytes), Arg::Pointer(wide)]);
        assert_eq!(
            b.download::<u32>(wide, 64),
            (0..64u32).map(|i| i * 5 % 256).collect::<Vec<_>>()
        );
    });
}

#[test]
fn wide_integers() {
    everywhere("wide", |b| {
        let values: Vec<u64> = (0..40u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let (input, out) = (b.upload(&values), b.room::<u64>(16));
        b.launch_clean(
            "sum_u128",
            Shape::linear(1, 8),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(40)],
        );
        let row = b.download::<u64>(out, 16);
        for t in 0..8 {
            let sum: u128 = values.iter().skip(t).step_by(8).map(|&v| u128::from(v)).sum();
            assert_eq!(u128::from(row[2 * t + 1]) << 64 | u128::from(row[2 * t]), sum);
        }
        let out = b.room::<u64>(6 * 40);
        b.launch_clean(
            "squares",
            Shape::linear(1, 40),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U32(12345)],
        );
        for (v, row) in values.iter().zip(b.download::<u64>(out, 240).chunks(6)) {
            let square = u128::from(*v) * u128::from(*v);
            assert_eq!(row[..3], [square as u64, (square >> 64) as u64, (square >> 64) as u64]);
            assert_eq!(row[3..], [v / 12345, v % 12345, (*v as i64 / 12345) as u64]);
        }
        let doubles: Vec<f64> = integers(300).iter().map(|&i| f64::from(i)).collect();
        let (input, out) = (b.upload(&doubles), b.room::<f64>(2));
        b.launch_clean(
            "sum_f64",
            Shape::linear(2, 64),
            &[Arg::Pointer(input), Arg::Pointer(out), Arg::U64(300)],
        );
        assert_eq!(b.download::<f64>(out, 2).iter().sum::<f64>(), doubles.iter().sum());
    });
}

#[test]
fn bits_and_functions() {
    everywhere("arithmetic", |b| {
        let words: Vec<u32> =
            vec![0, 1, 0x8000_0000, 0xffff_ffff, 0x1234_5678, 77, 0xdead_beef, 42];
        let (input, out) = (b.upload(&words), b.room::<u32>(16 * 8));
        b.launch_clean("bits", Shape::linear(1, 8), &[Arg::Pointer(input), Arg::Pointer(out)]);
        for (&v, row) in words.iter().zip(b.download::<u32>(out, 128).chunks(16)) {
            let n = !v;
            let funnel = u64::from(n) << 32 | u64::from(v);
            assert_eq!(
                row[..4],
                [
                    v.count_ones(),
                    v.leading_zeros(),
                    v.reverse_bits(),
                    if v == 0 { 0 } else { v.trailing_zeros() + 1 }
                ]
            );
            assert_eq!(row[5], (funnel << (v & 31) >> 32) as u32);
            assert_eq!(row[6], n, "clamped to 32");
            assert_eq!(row[7], v >> 5 & 0x1ff);
            assert_eq!(row[8], n & !(0x1ff << 5) | (v & 0x1ff) << 5);
            assert_eq!(row[9], ((i64::from(v as i32) * i64::from(n as i32)) >> 32) as u32);
            assert_eq!(row[10], ((u64::from(v) * u64::from(n)) >> 32) as u32);
            assert_eq!(row[11], (v as i32).abs_diff(77).wrapping_add(5));
            assert_eq!(row[13], (v & 0xf0f0_f0f0) ^ (n | 0x33));
        }
        let values = [0.5f32, 2.0, -1.25, 0.0, 7.75, f32::INFINITY, 1e-40, -0.0];
        let (input, out) = (b.upload(&values), b.room::<f32>(160));
        b.launch_clean("functions", Shape::linear(1, 8), &[Arg::Pointer(input), Arg::Pointer(out)]);
        for (&v, row) in values.iter().zip(b.download::<f32>(out, 160).chunks(20)) {
            let same = |got: f32, want: f32| {
                assert!(got == want || got.is_nan() && want.is_nan(), "{v}: {got} {want}")
            };
            same(row[2], v.sqrt());
            same(row[4], 1.0 / v);
            same(row[14], v.floor() + v.ceil() + v.trunc() + v.round_ties_even());
            same(row[15], v.clamp(0.0, 1.0));
            assert_eq!(row[17].to_bits(), 1f32.copysign(v).to_bits());
            let close = |got: f32, want: f32| {
                assert!(
                    (got - want).abs() <= 4e-7 * want.abs().max(1e-30)
                        || got == want
                        || got.is_nan() && want.is_nan(),
                    "{v}: {got} {want}"
                )
            };
            close(row[0], v.exp2());
            close(row[1], v.log2());
        }
    });
}

#[test]
fn the_device_prints() {
    everywhere("printing", |b| {
        let reports = b.launch_clean("greet", Shape::linear(1, 2), &[Arg::I32(-7)]);
        let text = String::from_utf8(reports[0].outcome.output.clone()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["block 0 thread 0: -7 times 0.125", "block 0 thread 1: -7 times 0.125"]);
        let out = b.room::<u64>(2);
        b.launch_clean("clocks", Shape::linear(1, 1), &[Arg::Pointer(out)]);
        assert!(b.download::<u64>(out, 1)[0] > 0);
    });
}

#[test]
fn the_device_launches() {
    everywhere("tail_launch", |b| {
        let values = integers(500);
        let (input, partials, out) = (b.upload(&values), b.room::<i32>(3), b.room::<i32>(1));
        let reports = b.launch_clean(
            "sum_then_fold",
            Shape::linear(3, 64),
            &[Arg::Pointer(input), Arg::Pointer(partials), Arg::Pointer(out), Arg::U32(500)],
        );
        assert_eq!(b.download::<i32>(out, 1), [values.iter().sum::<i32>()]);
        assert_eq!(
            reports.iter().map(|r| (&*r.kernel, r.from_device)).collect::<Vec<_>>(),
            [("sum_then_fold", false), ("fold_partials", true)]
        );
    });
}

#[test]
fn parallel_blocks_give_what_one_thread_gives() {
    for (_, ptx) in builds("two_pass") {
        let run = |parallel: bool| {
            let mut b = Bench::new(
                &ptx,
                warpfold_ptx::machine::Options {
                    parallel,
                    counters: true,
                    ..plain(Schedule::Lockstep)
                },
            );
            // Sums that depend on the order of additions: it must be the same.
            let values: Vec<f32> = (1..20_000).map(|i| 1.0 / i as f32).collect();
            let (input, partials) = (b.upload(&values), b.room::<f32>(37));
            let reports = b.launch_clean(
                "two_pass_f32",
                Shape::linear(37, 96),
                &[Arg::Pointer(input), Arg::Pointer(partials), Arg::U64(19_999)],
            );
            let bits: Vec<u32> = b.download(partials, 37);
            (
                bits,
                reports[0].outcome.instructions,
                reports[0].outcome.counters.as_ref().unwrap().total(),
            )
        };
        assert_eq!(run(true), run(false));
    }
}
