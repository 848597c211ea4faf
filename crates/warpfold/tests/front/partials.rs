//! Partials: written, read, merged in any order, damaged.

use crate::arrays::{PATTERNS, Pattern, Random, element};
use crate::thorough::thorough;
use warpfold::internal::AnyState;
use warpfold::{DType, Error, Input, NanPolicy, Op, Partial, Reduction, Rules, Tick, Unit, View};

fn bytes_of(dtype: DType, n: usize, pattern: Pattern, random: &mut Random) -> Vec<u8> {
    let size = dtype.size();
    (0..n).flat_map(|_| element(dtype, pattern, random).to_le_bytes()[..size].to_vec()).collect()
}

fn ops(dtype: DType) -> Vec<Op> {
    Op::ALL.into_iter().filter(|op| op.supports(dtype) && op.arity() == 1).collect()
}

/// The answers to each operation, or its error, under several rules.
fn answers(partial: &Partial) -> Vec<String> {
    let mut all = Vec::new();
    for nan in [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error] {
        for (ddof, wrap) in [(0, true), (1, false)] {
            all.push(format!("{:?}", partial.finish(&Rules::new().nan(nan).ddof(ddof).wrap(wrap))));
        }
    }
    all
}

/// Merges partials pairwise, two picked at random at a time.
fn merged(mut parts: Vec<Partial>, random: &mut Random) -> Partial {
    while parts.len() > 1 {
        let other = parts.swap_remove(random.below(parts.len()));
        let at = random.below(parts.len());
        // Through bytes, as between machines.
        parts[at].merge(&Partial::from_bytes(&other.to_bytes()).unwrap()).unwrap();
    }
    parts.remove(0)
}

#[test]
fn any_split_merged_in_any_order_is_the_single_run() {
    let mut random = Random::new(31);
    for dtype in DType::ALL {
        let size = dtype.size();
        for pattern in PATTERNS {
            for (turn, n) in [0, 1, 100, 4096, 9001, 20_000].into_iter().enumerate() {
                // The longer ones of each pattern, or one of both in its turn.
                let in_turn = (turn + dtype as usize + pattern as usize).is_multiple_of(2);
                if n > 9000 && !in_turn && !thorough() {
                    continue;
                }
                let data = bytes_of(dtype, n, pattern, &mut random);
                let asked = Reduction::new(ops(dtype));
                let view = |from: usize, to: usize| {
                    View::from_bytes(dtype, &data[from * size..to * size], &[to - from]).unwrap()
                };
                let whole = asked.partial(view(0, n), 0).unwrap();
                let mut cuts: Vec<usize> =
                    (0..random.below(7)).map(|_| random.below(n + 1)).chain([0, n]).collect();
                cuts.sort_unstable();
                let parts = cuts
                    .windows(2)
                    .map(|w| asked.partial(view(w[0], w[1]), w[0] as u64).unwrap())
                    .collect();
                let merged = merged(parts, &mut random);
                assert_eq!(merged.to_bytes(), whole.to_bytes(), "{dtype} {pattern:?} {cuts:?}");
                // Each operation alone, so that no error hides an answer.
                for op in ops(dtype) {
                    let one = Reduction::of(op);
                    let mut single = one.partial(view(0, n / 3), 0).unwrap();
                    single.merge(&one.partial(view(n / 3, n), (n / 3) as u64).unwrap()).unwrap();
                    let run = one.run(view(0, n));
                    assert_eq!(single.finish(&Rules::default()), run, "{op} {dtype} {pattern:?}");
                }
            }
        }
    }
}

#[test]
fn pieces_of_tables_merge_along_the_split_axis() {
    let mut random = Random::new(37);
    for dtype in DType::ALL {
        let (rows, columns) = (97, 53);
        let data = bytes_of(dtype, rows * columns, Pattern::Finite, &mut random);
        let row = columns * dtype.size();
        for axes in [vec![0], vec![0, 1]] {
            let asked = Reduction::new(ops(dtype)).axes(axes.clone());
            let view = |from: usize, to: usize| {
                View::from_bytes(dtype, &data[from * row..to * row], &[to - from, columns]).unwrap()
            };
            let each = if axes.len() == 2 { columns } else { 1 };
            let cuts = [0, 1, 20, 20, 64, rows];
            let parts = cuts
                .windows(2)
                .map(|w| asked.partial(view(w[0], w[1]), (w[0] * each) as u64).unwrap())
                .collect();
            let whole = asked.partial(view(0, rows), 0).unwrap();
            assert_eq!(merged(parts, &mut random).to_bytes(), whole.to_bytes(), "{dtype} {axes:?}");
        }
    }
}

#[test]
fn dots_merge_too() {
    let mut random = Random::new(41);
    for dtype in DType::ALL {
        let n = 10_000;
        let [a, b] = [0, 1].map(|_| bytes_of(dtype, n, Pattern::Close, &mut random));
        let asked = Reduction::of(Op::Dot);
        let size = dtype.size();
        let part = |from: usize, to: usize| {
            let [a, b] = [&a, &b].map(|x| {
                View::from_bytes(dtype, &x[from * size..to * size], &[to - from]).unwrap()
            });
            asked.partial_pair(a, b, from as u64).unwrap()
        };
        let parts = vec![part(0, 17), part(17, 5000), part(5000, n)];
        assert_eq!(merged(parts, &mut random).to_bytes(), part(0, n).to_bytes(), "{dtype}");
    }
}

/// Partials of many sorts, small ones.
fn samples() -> Vec<Partial> {
    let mut random = Random::new(43);
    let mut all = Vec::new();
    for dtype in [DType::F64, DType::F16, DType::I8, DType::U64, DType::Bool] {
        let data = bytes_of(dtype, 6, Pattern::Bits, &mut random);
        let view = View::from_bytes(dtype, &data, &[2, 3]).unwrap();
        all.push(Reduction::new([Op::ArgMin, Op::Prod]).partial(&view, 9).unwrap());
        let two = Reduction::new([Op::Sum, Op::Count, Op::LogSumExp]).axis(1);
        all.push(two.keepdims(true).partial(&view, 0).unwrap());
        all.push(Reduction::of(Op::Max).axes([]).partial(&view, 0).unwrap());
    }
    let mut missing = all[0].clone();
    missing.add_missing(12);
    all.push(missing);
    all
}

#[test]
fn byte_forms_come_back_as_they_were() {
    for partial in samples() {
        let bytes = partial.to_bytes();
        let back = Partial::from_bytes(&bytes).unwrap();
        assert_eq!(back.to_bytes(), bytes);
        assert_eq!(answers(&back), answers(&partial));
        assert_eq!((back.dtype(), back.shape()), (partial.dtype(), partial.shape()));
        assert_eq!(back.missing(), partial.missing());
        assert!(back.ops().eq(partial.ops()));
    }
}

#[test]
fn many_operations_come_back_too() {
    let many = Reduction::new([Op::Sum, Op::Max].repeat(150));
    let partial = many.partial(&[1.0, 2.0], 0).unwrap();
    let back = Partial::from_bytes(&partial.to_bytes()).unwrap();
    assert_eq!(back.ops().count(), 300);
    assert_eq!(answers(&back), answers(&partial));
}

#[test]
fn every_damaged_byte_is_noticed() {
    for partial in samples() {
        let bytes = partial.to_bytes();
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = bytes.clone();
                bad[at] ^= flip;
                let error = Partial::from_bytes(&bad).unwrap_err();
                assert!(
                    matches!(error, Error::DamagedState { .. } | Error::StateVersion { .. }),
                    "byte {at}: {error}"
                );
            }
            assert!(Partial::from_bytes(&bytes[..at]).is_err(), "cut to {at}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Partial::from_bytes(&longer).is_err());
    }
}

#[test]
fn random_bytes_are_not_a_partial() {
    let mut random = Random::new(47);
    let good = samples()[0].to_bytes();
    for round in 0..20_000 {
        let mut bytes: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
        // A good beginning gets the noise further in.
        let keep = random.below(good.len().min(bytes.len() + 1));
        if round % 2 == 0 {
            bytes.splice(..keep.min(bytes.len()), good[..keep].iter().copied());
        }
        assert!(Partial::from_bytes(&bytes).is_err());
    }
}

/// A header with a checksum that is right, as an attacker would write it.
fn forged(per_output: u64, outputs: u64, shape: &[u64], ops: &[[u8; 2]]) -> Vec<u8> {
    let mut out = b"WARPFOLD".to_vec();
    out.extend(1u32.to_le_bytes());
    out.push(DType::F64.code());
    out.extend([ops.len() as u8, 0, 0]);
    out.extend(ops.iter().flatten());
    for word in [0, shape.len() as u64].into_iter().chain(shape.iter().copied()) {
        out.extend(word.to_le_bytes());
    }
    out.extend(per_output.to_le_bytes());
    out.extend(outputs.to_le_bytes());
    out.extend(crc32(&out).to_le_bytes());
    out
}

/// CRC-32 (IEEE), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &b| {
        (0..8)
            .fold(crc ^ u32::from(b), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
    })
}

#[test]
fn forged_headers_cost_nothing() {
    let sum = [Op::Sum.code(), 0];
    let most = u64::MAX;
    for bytes in [
        forged(0, most, &[most], &[]),
        forged(0, 1 << 50, &[1 << 50], &[]),
        forged(1, 1 << 50, &[1 << 50], &[sum]),
        forged(most, 1, &[], &[sum]),
        forged(most, most, &[most], &[sum]),
        forged(1, 1, &[], &[sum]),
        forged(1, 0, &[most, most, 0], &[sum]),
        forged(0, 1, &[], &[sum]),
        forged(0, 2, &[], &[]),
    ] {
        assert!(matches!(Partial::from_bytes(&bytes), Err(Error::DamagedState { .. })));
    }
    // The forger's header is the library's own.
    let bytes = Reduction::of(Op::Sum).partial(&[1.0f64], 0).unwrap().to_bytes();
    let header = forged(1, 1, &[], &[sum]);
    assert_eq!(bytes[..header.len()], header);
    // States that no operation asks for, and operations of one state twice.
    let state = &bytes[header.len()..];
    let of = |per_output, ops: &[[u8; 2]], states: usize| {
        let header = forged(per_output, 1, &[], ops);
        Partial::from_bytes(&[&header[..], &state.repeat(states)[..]].concat())
    };
    assert!(of(2, &[sum], 2).is_err());
    assert!(of(2, &[[Op::Sum.code(), 1]], 2).is_err());
    assert!(of(0, &[], 0).is_err());
    assert!(of(1, &[sum, [Op::Mean.code(), 0]], 1).is_ok());
}

/// What bytes cannot hold is refused where it is made.
#[test]
fn every_partial_that_is_made_can_be_read() {
    let none = |question: &Reduction| match question.partial(&[1.0f32, 2.0], 0) {
        Err(Error::Operations { given, .. }) => given,
        other => panic!("{other:?}"),
    };
    assert_eq!(none(&Reduction::new([])), 0);
    assert_eq!(none(&Reduction::new([]).axes([])), 0);
    // Without states there is nothing to write.
    assert!(Reduction::new([]).run(&[1.0f32]).unwrap().columns().is_empty());
    for ndim in [0, 1, 64, 65, 70, 300] {
        let mut shape = vec![1; ndim];
        if let Some(last) = shape.last_mut() {
            *last = 3;
        }
        let data = [1.0f64, 2.0, 3.0];
        let data = &data[..shape.iter().product()];
        let strides = vec![1; ndim];
        let view = View::of_strided(data, 0, &shape, &strides).unwrap();
        for question in [Reduction::of(Op::ArgMax).axes([]), Reduction::of(Op::Sum).keepdims(true)]
        {
            let bytes = question.partial(&view, 0).unwrap().to_bytes();
            let partial = Partial::from_bytes(&bytes).unwrap();
            assert_eq!(partial.shape().len(), ndim);
            assert_eq!(partial.to_bytes(), bytes);
            assert_eq!(partial.finish(&Rules::default()), question.run(&view));
        }
    }
}

/// An error in one state of one output: none of the others has been merged.
#[test]
fn a_merge_that_fails_leaves_both_sides_as_they_were() {
    let question = Reduction::new([Op::Sum, Op::Count, Op::ArgMax]).axis(0);
    let column = |start: u64, x: f64| {
        let one = Reduction::new([Op::Sum, Op::Count, Op::ArgMax]);
        one.partial(&[x, 2.0], start).unwrap()
    };
    // Of two outputs the second overlaps, in its last state.
    let mut left = Partial::joined(vec![2], vec![column(0, 1.0), column(0, 5.0)]).unwrap();
    let mut right = Partial::joined(vec![2], vec![column(2, 1.0), column(1, 7.0)]).unwrap();
    right.add_missing(3);
    let before = [left.to_bytes(), right.to_bytes()];
    assert_eq!(left.merge(&right), Err(Error::Overlap { at: 1 }));
    assert_eq!([left.to_bytes(), right.to_bytes()], before);
    assert_eq!(left.missing(), 0);
    let view = View::of_strided(&[1.0, 5.0, 2.0, 2.0], 0, &[2, 2], &[2, 1]).unwrap();
    assert_eq!(left.finish(&Rules::default()), question.run(&view));
    // Every mismatch, too.
    for other in samples() {
        let _ = left.merge(&other).unwrap_err();
        assert_eq!(left.to_bytes(), before[0]);
    }
}

#[test]
fn a_missing_piece_in_the_middle_is_noticed() {
    let x: Vec<f64> = (0..10_000).map(|i| f64::from(i * 7919 % 10_007)).collect();
    let ops = [Op::ArgMin, Op::ArgMax, Op::ArgMinMax];
    for question in ops.map(Reduction::of) {
        let part = |from: usize, to: usize| question.partial(&x[from..to], from as u64).unwrap();
        let whole = question.run(&x).unwrap();
        for cuts in [[0, 3000, 7000, 10_000], [0, 4096, 8192, 10_000], [0, 1, 2, 10_000]] {
            let [a, b, c] = [0, 1, 2].map(|i| part(cuts[i], cuts[i + 1]));
            for (mut one, two) in [(a.clone(), &c), (c.clone(), &a)] {
                one.merge(two).unwrap();
                let gap = Error::Gap { from: cuts[1] as u64, to: cuts[2] as u64 };
                assert!(gap.hint().unwrap().contains("--start"));
                assert_eq!(one.finish(&Rules::default()), Err(gap), "{:?}", question.ops());
                // The missing piece can still come.
                one.merge(&b).unwrap();
                assert_eq!(one.finish(&Rules::default()).unwrap(), whole);
            }
        }
    }
}

#[test]
fn a_state_of_another_kind_in_the_bytes_answers_with_an_error() {
    let mut bytes = forged(1, 1, &[], &[[Op::Sum.code(), 0]]);
    let counts = Reduction::of(Op::Count).partial(&[1.0f64], 0).unwrap();
    bytes.extend(counts.states()[0][0].to_bytes());
    if let Ok(mut partial) = Partial::from_bytes(&bytes) {
        assert!(partial.finish(&Rules::default()).is_err());
        let sum = Reduction::of(Op::Sum).partial(&[1.0f64], 0).unwrap();
        assert!(matches!(partial.merge(&sum), Err(Error::StateMismatch { .. })));
    }
}

#[test]
fn partials_that_do_not_match_say_what_differs() {
    let x = [1.0f64, 2.0];
    let sum = Reduction::of(Op::Sum).partial(&x, 0).unwrap();
    let what = |other: &Partial| match sum.clone().merge(other) {
        Err(Error::StateMismatch { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(what(&Reduction::of(Op::Max).partial(&x, 0).unwrap()), "operation");
    assert_eq!(what(&Reduction::of(Op::Mean).partial(&x, 0).unwrap()), "operation");
    assert_eq!(what(&Reduction::new([Op::Sum, Op::Max]).partial(&x, 0).unwrap()), "operation");
    let single = [1.0f32, 2.0];
    assert_eq!(what(&Reduction::of(Op::Sum).partial(&single, 0).unwrap()), "element type");
    assert_eq!(what(&Reduction::of(Op::Sum).keepdims(true).partial(&x, 0).unwrap()), "shape");
    assert_eq!(what(&Reduction::of(Op::Sum).axes([]).partial(&x, 0).unwrap()), "shape");
    // The same elements twice: noticed where positions matter.
    let part = Reduction::of(Op::ArgMax).partial(&x, 5).unwrap();
    assert_eq!(part.clone().merge(&part), Err(Error::Overlap { at: 5 }));
    let mut version = sum.to_bytes();
    version[8] = 77;
    assert_eq!(
        Partial::from_bytes(&version).unwrap_err(),
        Error::StateVersion { found: 77, reads: 2 }
    );
}

/// What a partial counts travels with it, and is brought to the finer unit.
#[test]
fn partials_know_what_they_count() {
    let ops = [Op::Max, Op::ArgMin, Op::Mean, Op::Std, Op::Count];
    let micro = Unit::Timestamp(Tick::Micro, None);
    let nano = Unit::Timestamp(Tick::Nano, None);
    let of = |data: &[i64], unit: &Unit, start| {
        Reduction::new(ops).partial(data, start).unwrap().counting(unit.clone()).unwrap()
    };
    let (coarse, fine) = (of(&[5, -7, 3], &micro, 0), of(&[5001, 12], &nano, 3));
    let whole = of(&[5000, -7000, 3000, 5001, 12], &nano, 0);
    for (first, second) in [(&coarse, &fine), (&fine, &coarse)] {
        let mut merged = Partial::from_bytes(&first.to_bytes()).unwrap();
        merged.merge(&Partial::from_bytes(&second.to_bytes()).unwrap()).unwrap();
        assert_eq!(merged, whole);
        assert_eq!(merged.to_bytes(), whole.to_bytes());
        assert_eq!(merged.unit(), Some(&nano));
    }
    for cut in 0..fine.to_bytes().len() {
        assert!(Partial::from_bytes(&fine.to_bytes()[..cut]).is_err());
    }
    let plain = Reduction::new(ops).partial(&[1i64], 3).unwrap();
    let zoned = of(&[1], &Unit::Timestamp(Tick::Micro, Some("UTC".into())), 3);
    let far = of(&[i64::MIN / 7], &micro, 5);
    for (left, right) in [(&coarse, &plain), (&plain, &coarse), (&coarse, &zoned), (&fine, &far)] {
        let mut kept = left.clone();
        assert!(matches!(kept.merge(right), Err(Error::UnitMismatch { .. })));
        assert_eq!(&kept, left);
    }
    assert!(Reduction::of(Op::Max).partial(&[1.0], 0).unwrap().counting(nano).is_err());
    let sum = Reduction::of(Op::Sum).partial(&[1i64], 0).unwrap().counting(micro).unwrap();
    let refused = sum.finish(&Rules::default()).unwrap_err();
    assert!(matches!(refused, Error::UnsupportedUnit { op: Op::Sum, .. }), "{refused}");
}

#[test]
fn payloads_of_sums_add_as_integer_vectors() {
    let mut random = Random::new(53);
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::U8] {
        for op in [Op::Sum, Op::Norm1, Op::SumSq, Op::Var] {
            for pattern in PATTERNS {
                let parts: Vec<Partial> = (0..5)
                    .map(|_| {
                        let data = bytes_of(dtype, 300, pattern, &mut random);
                        let view = View::from_bytes(dtype, &data, &[300]).unwrap();
                        Reduction::of(op).partial(view, 0).unwrap()
                    })
                    .collect();
                let vector = |p: &Partial| -> Vec<i64> {
                    let payload = p.states()[0][0].payload();
                    payload
                        .chunks_exact(8)
                        .map(|w| i64::from_le_bytes(w.try_into().unwrap()))
                        .collect()
                };
                let added = parts
                    .iter()
                    .map(vector)
                    .reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b)).collect());
                let payload: Vec<u8> =
                    added.unwrap().iter().flat_map(|w| w.to_le_bytes()).collect();
                let kind = parts[0].states()[0][0].kind();
                let state = AnyState::from_payload(kind, dtype, &payload).unwrap();
                let merged = merged(parts, &mut random);
                assert_eq!(state.payload(), merged.states()[0][0].payload(), "{op} {dtype}");
            }
        }
    }
}

/// Whatever adds vectors up merges partials, of every state that adds up.
#[test]
fn vectors_of_partials_add_up_to_the_merged_partial() {
    let mut random = Random::new(59);
    for dtype in DType::ALL {
        for op in ops(dtype) {
            for pattern in PATTERNS {
                let parts: Vec<Partial> = (0..5)
                    .map(|i| {
                        let data = bytes_of(dtype, 60 * i, pattern, &mut random);
                        let view = View::from_bytes(dtype, &data, &[30 * i, 2]).unwrap();
                        Reduction::of(op).axes([0]).partial(view, 30 * i as u64).unwrap()
                    })
                    .collect();
                let adds = matches!(
                    op.name(),
                    "sum" | "mean" | "norm1" | "norm2" | "sumsq" | "var" | "std" | "any" | "all"
                ) || op.name().starts_with("count");
                let vectors: Option<Vec<Vec<i64>>> = parts.iter().map(Partial::to_vector).collect();
                assert_eq!(vectors.is_some(), adds, "{op} {dtype}");
                let Some(vectors) = vectors else { continue };
                let mut sum = vec![0i64; vectors[0].len()];
                for vector in &vectors {
                    sum.iter_mut().zip(vector).for_each(|(a, b)| *a += b);
                }
                let empty = parts[0].emptied();
                assert_eq!(empty, parts[3].emptied(), "{op} {dtype}");
                assert_eq!(empty.from_vector(&vec![0; sum.len()]).unwrap(), empty);
                let merged = merged(parts.clone(), &mut random);
                assert_eq!(empty.from_vector(&sum).unwrap(), merged, "{op} {dtype} {pattern:?}");
                // Of the most that there may be, the digits do not overflow.
                let most = i64::try_from(Partial::MOST_VECTORS).unwrap();
                let many: Option<Vec<i64>> =
                    vectors[4].iter().map(|digit| digit.checked_mul(most)).collect();
                let mut doubled = parts[4].clone();
                for _ in 0..most.ilog2() {
                    doubled.merge(&doubled.clone()).unwrap();
                }
                assert_eq!(empty.from_vector(&many.unwrap()).unwrap(), doubled, "{op} {dtype}");
                for wrong in [&sum[1..], &[&sum[..], &[0]].concat()[..], &[]] {
                    let refused = empty.from_vector(wrong).unwrap_err();
                    assert!(matches!(refused, Error::DamagedState { .. }), "{refused}");
                }
            }
        }
    }
    let size = |dtype: DType| {
        let none = View::from_bytes(dtype, &[], &[0]).unwrap();
        8 * Reduction::of(Op::Sum).partial(none, 0).unwrap().to_vector().unwrap().len()
    };
    assert_eq!((size(DType::F64), size(DType::F32)), (400, 96));
}

/// Positions count in C order whatever the order in memory.
#[test]
fn pieces_of_arrays_out_of_order_know_their_places() {
    let (rows, columns) = (40usize, 30usize);
    let x: Vec<i32> = (0..rows * columns).map(|i| (i * 7919 % 101) as i32).collect();
    let asked = Reduction::new([Op::ArgMin, Op::ArgMax, Op::Sum, Op::Min]);
    // In Fortran order, and backwards.
    for (offset, strides) in [(0, [1, rows as isize]), (rows * columns - 1, [-30, -1])] {
        let view = |from: usize, to: usize| {
            let offset = offset.wrapping_add_signed(from as isize * strides[0]);
            View::of_strided(&x, offset, &[to - from, columns], &strides).unwrap()
        };
        let part = |from, to| asked.partial(view(from, to), (from * columns) as u64).unwrap();
        let parts = vec![part(0, 9), part(9, 10), part(10, rows)];
        let merged = merged(parts, &mut Random::new(59));
        assert_eq!(merged.finish(&Rules::default()), asked.run(view(0, rows)));
        // The last piece alone, so that no smaller place hides a wrong one.
        let alone = part(30, rows).finish(&Rules::default()).unwrap();
        let last = asked.run(view(30, rows)).unwrap();
        for op in [Op::ArgMin, Op::ArgMax] {
            let [at, from] = [&alone, &last].map(|a| a.slice::<u64>(op).unwrap()[0]);
            assert_eq!(at, from + 30 * columns as u64);
        }
    }
}

#[test]
fn a_partial_goes_on_absorbing() {
    let x: Vec<f64> = (0..20_000).map(|i| f64::from((i * 7919) % 10_007) * 0.1).collect();
    let ops = [Op::Sum, Op::Var, Op::ArgMax, Op::ArgMin, Op::Prod, Op::Count];
    for ops in [&ops[..], &[Op::Sum], &[Op::Prod], &[Op::ArgMinMax]] {
        let question = Reduction::new(ops.iter().copied());
        let whole = question.run(&x).unwrap();
        for step in [1usize, 777, 4096, 6000, 30_000] {
            let x = if step == 1 { &x[..300] } else { &x[..] };
            let mut chunks = x.chunks(step);
            let mut partial = question.partial(chunks.next().unwrap(), 0).unwrap();
            for (i, chunk) in chunks.enumerate() {
                // Written down and read again on the way, and given nothing.
                if i == 2 {
                    partial = Partial::from_bytes(&partial.to_bytes()).unwrap();
                }
                partial.absorb(chunk).unwrap();
                partial.absorb(&[0.0f64; 0]).unwrap();
            }
            let answer = partial.finish(&Rules::default()).unwrap();
            let expected = if x.len() == 300 { question.run(x).unwrap() } else { whole.clone() };
            assert_eq!(answer, expected, "{ops:?} by {step}");
        }
    }
}

#[test]
fn positions_go_on_behind_the_last_one() {
    let question = Reduction::of(Op::ArgMax);
    // A piece in the middle, a merged one behind it, and one more.
    let mut partial = question.partial(&[1, 2], 10).unwrap();
    partial.merge(&question.partial(&[1], 12).unwrap()).unwrap();
    partial.absorb(&[9]).unwrap();
    let answer = partial.finish(&Rules::default()).unwrap();
    assert_eq!(answer.number::<u64>(Op::ArgMax), Some(13));
    // Rows without a value are positions.
    let masked = Input::masked(&[7.0, 8.0, 9.0], &[0b001], 0).unwrap();
    let mut partial = question.partial(masked, 0).unwrap();
    let masked = Input::masked(&[1.0, 80.0, 90.0], &[0b010], 0).unwrap();
    partial.absorb(masked).unwrap();
    assert_eq!(partial.missing(), 4);
    let answer = partial.finish(&Rules::default()).unwrap();
    assert_eq!(answer.number::<u64>(Op::ArgMax), Some(4));
}

#[test]
fn a_chunk_that_is_refused_changes_nothing() {
    let question = Reduction::new([Op::Sum, Op::ArgMax, Op::Prod]);
    let mut partial = question.partial(&[1.0, 5.0], 0).unwrap();
    let before = partial.clone();
    assert!(matches!(partial.absorb(&[1, 2]), Err(Error::StateMismatch { .. })));
    assert!(matches!(partial.absorb(&[1.0f32]), Err(Error::StateMismatch { .. })));
    assert!(matches!(partial.absorb_pair(&[1.0], &[2.0]), Err(Error::Arity { .. })));
    assert_eq!(partial, before);
    let last = u64::MAX - 3;
    let mut partial = question.partial(&[1.0, 5.0], last).unwrap();
    let before = partial.clone();
    assert!(matches!(partial.absorb(&[1.0, 2.0]), Err(Error::StartTooLarge { .. })));
    assert_eq!(partial, before);
    partial.absorb(&[1.0]).unwrap();
    assert!(matches!(partial.absorb(&[1.0]), Err(Error::StartTooLarge { .. })));

    let mut rows = Reduction::of(Op::Sum).axis(0).partial(&[[1, 2], [3, 4]], 0).unwrap();
    let before = rows.clone();
    let error = rows.absorb(&[[5, 6]]).unwrap_err();
    assert!(matches!(error, Error::SeveralOutputs { .. }) && error.hint().is_some(), "{error}");
    assert_eq!(rows, before);

    let mut dot = Reduction::of(Op::Dot).partial_pair(&[1.0], &[2.0], 0).unwrap();
    assert!(matches!(dot.absorb(&[1.0]), Err(Error::Arity { .. })));
    assert!(matches!(dot.absorb_pair(&[1.0], &[2.0, 3.0]), Err(Error::ShapeMismatch { .. })));
    dot.absorb_pair(&[3.0], &[4.0]).unwrap();
    let answer = dot.finish(&Rules::default()).unwrap();
    assert_eq!(answer.number::<f64>(Op::Dot), Some(14.0));
}
