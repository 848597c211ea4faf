//! Products of integers that no integer type holds, in float types: the exact product
//! rounded once, on every device, over every axis, in any pieces.

use crate::arrays::Random;
use crate::devices::DEVICES;
use crate::oracle::{self, Exact};
use warpfold::{DType, Device, Op, Partial, Reduction, Rules, View, bf16, f16};

const ROWS: usize = 15;
const COLUMNS: usize = 80;
const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

/// Rows of larger and larger factors: their products go from 64 to beyond 1024 bits.
fn table(random: &mut Random) -> Vec<i16> {
    let factor = |row: usize, random: &mut Random| {
        let x = (1 + random.below(1 << row)) as i16;
        if random.below(2) == 0 { -x } else { x }
    };
    (0..ROWS * COLUMNS).map(|i| factor(i / COLUMNS, random)).collect()
}

fn expected(factors: impl Iterator<Item = i16>, out: DType) -> u64 {
    let one = Exact::of_int(1);
    let product = factors.fold(one, |p, x| p.mul(&Exact::of_int(x.into())));
    match out {
        DType::F64 => oracle::round::<f64>(&product),
        DType::F32 => oracle::round::<f32>(&product),
        DType::F16 => oracle::round::<f16>(&product),
        _ => oracle::round::<bf16>(&product),
    }
}

#[test]
fn long_products_of_integers_are_rounded_once() {
    let mut random = Random::new(61);
    for round in 0..3 {
        let mut x = table(&mut random);
        if round == 2 {
            x[17] = 0;
        }
        let all = 0..ROWS * COLUMNS;
        let rows: Vec<Vec<usize>> =
            (0..ROWS).map(|r| all.clone().filter(|i| i / COLUMNS == r).collect()).collect();
        let columns: Vec<Vec<usize>> =
            (0..COLUMNS).map(|c| all.clone().filter(|i| i % COLUMNS == c).collect()).collect();
        let view = View::of_strided(&x, 0, &[ROWS, COLUMNS], &[COLUMNS as isize, 1]).unwrap();
        for (axes, groups) in [(&[1][..], rows), (&[0], columns), (&[0, 1], vec![all.collect()])] {
            let question =
                |device| Reduction::of(Op::Prod).axes(axes.iter().copied()).device(device);
            for &device in DEVICES {
                for out in FLOATS {
                    let answer = question(device).out(out).run(&view).unwrap();
                    let column = &answer.columns()[0];
                    for (i, group) in groups.iter().enumerate() {
                        let expected = expected(group.iter().map(|&i| x[i]), out);
                        let got = column.get(i).unwrap().first().to_bits();
                        assert_eq!(got, expected, "{device} {out} {axes:?} {i}");
                    }
                }
            }
            // States are the same bytes, whoever made them.
            let cpu = question(Device::Cpu).partial(&view, 0).unwrap();
            for &device in DEVICES {
                let there = question(device).partial(&view, 0).unwrap();
                assert!(cpu.to_bytes() == there.to_bytes(), "{device} {axes:?}");
                assert_eq!(Partial::from_bytes(&cpu.to_bytes()).unwrap(), there);
            }
        }
    }
}

#[test]
fn long_products_of_integers_merge_in_any_order() {
    let mut random = Random::new(67);
    let x = table(&mut random);
    // Beginnings whose products end around where digits stop to count.
    for len in [100, 400, 700, 800, 900, 1000, x.len()] {
        let question = Reduction::of(Op::Prod).device(Device::Cpu);
        let whole = question.partial(&x[..len], 0).unwrap();
        for _ in 0..20 {
            let mut pieces = Vec::new();
            let mut rest = &x[..len];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(1 + random.below(rest.len()));
                let bytes = question.partial(piece, 0).unwrap().to_bytes();
                let place = random.below(pieces.len() + 1);
                pieces.insert(place, Partial::from_bytes(&bytes).unwrap());
                rest = after;
            }
            let mut merged = pieces.pop().unwrap();
            pieces.iter().for_each(|piece| merged.merge(piece).unwrap());
            assert!(merged.to_bytes() == whole.to_bytes(), "{len}");
            for out in FLOATS {
                let answer = merged.finish(&Rules::new().out(out)).unwrap();
                let got = answer.columns()[0].get(0).unwrap().first().to_bits();
                assert_eq!(got, expected(x[..len].iter().copied(), out), "{out} of {len}");
            }
        }
    }
}
