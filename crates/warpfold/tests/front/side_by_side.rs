//! The kernels for many outputs at a time against the general way, which a
//! second operation asks for: the same bits, for every shape and layout.

use crate::arrays::Random;
use crate::thorough::thorough;
use warpfold::{Element, NanPolicy, Op, Reduction, Threads, View};

fn data(pattern: &str, n: usize, random: &mut Random) -> Vec<f64> {
    (0..n)
        .map(|i| match pattern {
            "uniform" => random.unit(),
            "signed" => random.unit() - 0.5,
            "wide" => (random.unit() - 0.5) * 2f64.powi((random.next() % 240) as i32 - 120),
            "one wide column" if i % 37 == 5 => 1e30 * random.unit(),
            "one wide column" => random.unit(),
            "ties" => 1.0 + f64::EPSILON * ((random.next() % 4) as f64),
            "cancelling" if i % 2 == 1 => -1e15,
            "cancelling" => 1e15 + random.unit(),
            "zeros" => 0.0,
            "specials" => match random.next() % 200 {
                0 => f64::NAN,
                1 => f64::INFINITY,
                2 => f64::NEG_INFINITY,
                _ => random.unit(),
            },
            _ => 1e-310 * random.unit(),
        })
        .collect()
}

const PATTERNS: [&str; 9] = [
    "uniform",
    "signed",
    "wide",
    "one wide column",
    "ties",
    "cancelling",
    "zeros",
    "specials",
    "subnormal",
];

fn check<T: Element + Copy>(view: &View<'_>, axes: &[isize], note: &str) {
    for op in [Op::Sum, Op::Mean, Op::Min, Op::Max] {
        for nan in [NanPolicy::Propagate, NanPolicy::Omit] {
            let alone = Reduction::of(op).axes(axes.to_vec()).nan(nan);
            let general = Reduction::new([op, Op::Count]).axes(axes.to_vec()).nan(nan);
            let expected = match general.run(view) {
                Ok(answer) => answer,
                // The smallest of nothing but NaNs, all left out.
                Err(error) => {
                    assert_eq!(alone.run(view).unwrap_err(), error, "{op} {note}");
                    continue;
                }
            };
            let expected = expected.slice::<T>(op).unwrap();
            for threads in [1, 3] {
                let got = alone.clone().threads(Threads::Exactly(threads)).run(view).unwrap();
                let got = got.slice::<T>(op).unwrap();
                assert_eq!(got.len(), expected.len(), "{note}");
                for (i, (a, b)) in got.iter().zip(expected).enumerate() {
                    assert!(a.bits() == b.bits(), "{op} {note}: output {i} is {a:?}, not {b:?}");
                }
            }
        }
    }
}

fn both_types(
    pattern: &str,
    shape: &[usize],
    strides: &[isize],
    axes: &[isize],
    random: &mut Random,
) {
    // Room for the largest offset either way.
    let reach: usize =
        shape.iter().zip(strides).map(|(&n, s)| (n.max(1) - 1) * s.unsigned_abs()).sum();
    let offset: usize = shape
        .iter()
        .zip(strides)
        .filter(|&(_, &s)| s < 0)
        .map(|(&n, s)| (n.max(1) - 1) * s.unsigned_abs())
        .sum();
    let wide = data(pattern, reach + 1, random);
    let narrow: Vec<f32> = wide.iter().map(|&x| x as f32).collect();
    let note = format!("{pattern} {shape:?} {strides:?} {axes:?}");
    check::<f64>(&View::of_strided(&wide, offset, shape, strides).unwrap(), axes, &note);
    check::<f32>(&View::of_strided(&narrow, offset, shape, strides).unwrap(), axes, &note);
}

#[test]
fn columns_of_every_width() {
    let mut random = Random::new(0x1234_5678_9abc_def1);
    for (i, pattern) in PATTERNS.into_iter().enumerate() {
        for (j, columns) in [1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 64, 100, 128, 129, 600, 1100]
            .into_iter()
            .enumerate()
        {
            for (k, rows) in [1, 2, 16, 31, 33, 64, 300].into_iter().enumerate() {
                if !thorough() && (i + j + k) % 4 != 0 {
                    continue;
                }
                let stride = columns as isize;
                both_types(pattern, &[rows, columns], &[stride, 1], &[0], &mut random);
            }
        }
    }
}

#[test]
fn rows_of_every_length() {
    let mut random = Random::new(0x2234_5678_9abc_def1);
    let lens = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 100, 1000, 9000];
    for (i, pattern) in PATTERNS.into_iter().enumerate() {
        for (j, len) in lens.into_iter().enumerate() {
            for (k, rows) in [1, 2, 63, 64, 65, 130].into_iter().enumerate() {
                // All of them, or a third: each length meets each number of rows.
                if len * rows < 200_000 && (thorough() || (i + j + k) % 3 == 0) {
                    let stride = len as isize;
                    both_types(pattern, &[rows, len], &[stride, 1], &[1], &mut random);
                }
            }
        }
    }
}

#[test]
fn long_columns_outgrow_one_window() {
    let mut random = Random::new(0x3234_5678_9abc_def1);
    // More rows than one call takes, of f64 and of f32; gaps between rows.
    let shapes = [([9000, 40], [41, 1]), ([70_000, 3], [3, 1]), ([2000, 96], [96, 1])];
    for (i, pattern) in PATTERNS.into_iter().enumerate() {
        for (j, (shape, strides)) in shapes.iter().enumerate() {
            // Each pattern in one of them.
            if thorough() || (i + j) % 3 == 0 {
                both_types(pattern, shape, strides, &[0], &mut random);
            }
        }
    }
}

#[test]
fn other_layouts() {
    let mut random = Random::new(0x4234_5678_9abc_def1);
    for pattern in PATTERNS {
        // Middle axis; reversed rows; reversed axis; gaps; two kept axes that
        // join; a broadcast axis.
        both_types(pattern, &[5, 40, 70], &[2800, 70, 1], &[1], &mut random);
        both_types(pattern, &[40, 70], &[-70, 1], &[0], &mut random);
        both_types(pattern, &[40, 70], &[70, -1], &[0], &mut random);
        both_types(pattern, &[40, 70], &[100, 1], &[0], &mut random);
        both_types(pattern, &[40, 70], &[100, 1], &[1], &mut random);
        both_types(pattern, &[40, 7, 10], &[70, 10, 1], &[0], &mut random);
        both_types(pattern, &[7, 10, 30], &[300, 30, 1], &[2], &mut random);
        both_types(pattern, &[7, 10, 30], &[300, 30, 1], &[1, 2], &mut random);
        both_types(pattern, &[7, 40, 64], &[1, 448, 7], &[1], &mut random);
        both_types(pattern, &[40, 70], &[0, 1], &[0], &mut random);
        both_types(pattern, &[40, 70], &[70, 0], &[0], &mut random);
    }
}

#[test]
fn the_edge_of_the_certificate() {
    // Spreads of 22 to 27 binades inside a row and inside a column.
    for spread in 22u32..28 {
        let big = f32::from_bits(0x3fff_ffff);
        let small = f32::from_bits(0x3fff_ffff - (spread << 23));
        let items: Vec<f32> = (0..32 * 64).map(|i| if i % 2 == 0 { big } else { small }).collect();
        let transposed: Vec<f32> =
            (0..32 * 64).map(|i| if i / 64 % 2 == 0 { big } else { small }).collect();
        let rows = View::of_strided(&items, 0, &[64, 32], &[32, 1]).unwrap();
        let columns = View::of_strided(&transposed, 0, &[32, 64], &[64, 1]).unwrap();
        check::<f32>(&rows, &[1], &format!("rows, {spread}"));
        check::<f32>(&columns, &[0], &format!("columns, {spread}"));
    }
}

#[test]
fn short_sums_are_the_long_ones() {
    let mut random = Random::new(0x5234_5678_9abc_def1);
    for pattern in PATTERNS {
        for n in [0, 1, 2, 7, 31, 100, 1000, 8192, 8193, 20_000] {
            let wide = data(pattern, n, &mut random);
            let narrow: Vec<f32> = wide.iter().map(|&x| x as f32).collect();
            let question = Reduction::of(Op::Sum);
            let long = question.run(&wide).unwrap();
            assert_eq!(
                long.slice::<f64>(Op::Sum).unwrap()[0].to_bits(),
                warpfold::sum(&wide).to_bits(),
                "{pattern} {n}"
            );
            let long = question.run(&narrow).unwrap();
            assert_eq!(
                long.slice::<f32>(Op::Sum).unwrap()[0].to_bits(),
                warpfold::sum(&narrow).to_bits(),
                "{pattern} {n}"
            );
        }
    }
}

/// Sets bits of MXCSR while `work` runs.
#[cfg(target_arch = "x86_64")]
fn with_mxcsr<R>(bits: u32, work: impl FnOnce() -> R) -> R {
    let mut old = 0u32;
    // SAFETY: SSE is part of x86-64; the register is put back below.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut old, options(nostack)) };
    let new = old | bits;
    // SAFETY: only defined bits are set.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const new, options(nostack)) };
    let result = work();
    // SAFETY: `old` was the register's value.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const old, options(nostack)) };
    result
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_changed_environment_changes_nothing() {
    const FLUSH: u32 = 0x8040;
    const UPWARDS: u32 = 0x4000;
    let mut random = Random::new(0x6234_5678_9abc_def1);
    // Subnormals of f32 beside values whose sums round.
    let items: Vec<f32> = (0..64 * 64u32)
        .map(|i| if i % 2 == 0 { f32::from_bits(random.next() as u32 & 0xfff) } else { 0.0 })
        .collect();
    let wide: Vec<f64> = (0..64 * 64).map(|_| random.unit()).collect();
    for axis in [0, 1] {
        for op in [Op::Sum, Op::Mean, Op::Min] {
            let question = Reduction::of(op).axis(axis).threads(Threads::Exactly(1));
            let narrow = View::of_strided(&items, 0, &[64, 64], &[64, 1]).unwrap();
            let wide = View::of_strided(&wide, 0, &[64, 64], &[64, 1]).unwrap();
            let expected = (question.run(&narrow).unwrap(), question.run(&wide).unwrap());
            for bits in [FLUSH, UPWARDS, FLUSH | UPWARDS] {
                let got = with_mxcsr(bits, || (question.run(&narrow), question.run(&wide)));
                assert_eq!(got.0.unwrap(), expected.0, "{op} f32 over {axis}, {bits:#x}");
                assert_eq!(got.1.unwrap(), expected.1, "{op} f64 over {axis}, {bits:#x}");
            }
        }
    }
}

#[test]
fn a_tie_is_broken_by_what_lies_far_below() {
    // 1 + 2^-24 is half-way between two f32; 2^-60 is lost in an f64 sum.
    let up = 1.0 + f32::EPSILON;
    let mut items = vec![0.0f32; 40 * 64];
    items[..64].fill(1.0);
    items[64..128].fill(2f32.powi(-24));
    items[39 * 64..].fill(2f32.powi(-60));
    let table = View::of_strided(&items, 0, &[40, 64], &[64, 1]).unwrap();
    let answer = Reduction::of(Op::Sum).axis(0).run(&table).unwrap();
    assert_eq!(answer.slice::<f32>(Op::Sum), Some(&[up; 64][..]));
    assert_eq!(warpfold::sum(&[1.0f32, 2f32.powi(-24), 2f32.powi(-60)]), up);
}
