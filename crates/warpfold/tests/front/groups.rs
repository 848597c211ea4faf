//! Groups against a reduction of each group alone.

use crate::thorough::{seed, up_to};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use warpfold::{
    CancelToken, DType, Device, Error, GroupPartial, Grouped, Input, Item, KeyColumn, Keys,
    NanPolicy, Op, Order, Reduction, Rules, Threads, Tick, Unit, Value, View,
};
use warpfold_core::{Element, with_element};

/// Small pseudo-random numbers: `rand` is no dependency.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let x = (self.0 ^ self.0 >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x ^ x >> 29
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// What elements are drawn from.
#[derive(Clone, Copy, Debug)]
enum Data {
    /// Any bits: all exponents, NaNs and infinities.
    Bits,
    /// Small whole numbers, with zeros of both signs.
    Small,
    /// Finite floats over many exponents; integers of any size.
    Wide,
}

fn draw<T: Element>(draw: &mut Draw, data: Data) -> T {
    let bits = draw.next() & (u64::MAX >> (64 - 8 * size_of::<T>()));
    match data {
        Data::Bits => T::from_bits(bits),
        Data::Wide
            if T::from_bits(bits).key().ge(&T::key_range().0)
                && T::from_bits(bits).key().lt(&T::key_range().1) =>
        {
            T::from_bits(bits)
        }
        Data::Wide => T::from_bits(0),
        Data::Small => {
            let n = draw.below(9);
            let float = |x: f64| match T::DTYPE {
                DType::F16 => u64::from(warpfold::f16::from_f64(x).to_bits()),
                DType::BF16 => u64::from(warpfold::bf16::from_f64(x).to_bits()),
                DType::F32 => u64::from((x as f32).to_bits()),
                _ => x.to_bits(),
            };
            if T::DTYPE.is_float() {
                T::from_bits(float([0.0, -0.0, 0.5, -1.0, 3.0, 1.25, -7.0, 2.0, 1e-3][n as usize]))
            } else {
                T::from_bits(if T::DTYPE == DType::Bool { n & 1 } else { n })
            }
        }
    }
}

/// Bits that say which rows are in a group.
fn mask(keys: &[u16], key: u16) -> Vec<u8> {
    let mut bits = vec![0; keys.len().div_ceil(8)];
    for (row, _) in keys.iter().enumerate().filter(|(_, k)| **k == key) {
        bits[row / 8] |= 1 << (row % 8);
    }
    bits
}

/// A key, and the answers to all operations.
type Expected = (u16, Vec<Option<Value>>);

/// Each group's answer by a reduction of the rows that are left when those of all other
/// groups are missing.
fn naive<T: Item>(question: &Reduction, keys: &[u16], items: &[T]) -> Result<Vec<Expected>, Error> {
    let mut distinct = keys.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let group = |key: u16| {
        let bits = mask(keys, key);
        let ops = question.ops().iter().map(|&op| {
            let rules = question.rules();
            let alone = Reduction::of(op).nan(rules.nan).ddof(rules.ddof).wrap(rules.wrap);
            let alone = rules.out.map_or(alone.clone(), |out| alone.out(out));
            let input = Input::masked(items, &bits, 0).unwrap();
            match alone.threads(Threads::Exactly(1)).run(input) {
                Ok(answer) => Ok(answer.value()),
                Err(Error::Empty { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        });
        Ok((key, ops.collect::<Result<_, _>>()?))
    };
    distinct.into_iter().map(group).collect()
}

fn compare<T: Item>(question: &Reduction, keys: &[u16], items: &[T], what: &str) {
    let grouped = question.by(keys).run(View::of(T::elements(items)));
    match (grouped, naive(question, keys, items)) {
        (Ok(grouped), Ok(naive)) => {
            let found = grouped.keys()[0].slice::<u16>().unwrap().to_vec();
            assert_eq!(found, naive.iter().map(|n| n.0).collect::<Vec<_>>(), "{what}");
            for (group, (key, values)) in naive.iter().enumerate() {
                for (column, value) in grouped.columns().iter().zip(values) {
                    assert_eq!(column.get(group), *value, "{what}: {} of {key}", column.op());
                }
            }
        }
        (Err(Error::InGroup { source, .. }), Err(error)) => assert_eq!(*source, error, "{what}"),
        (grouped, naive) => panic!("{what}: {grouped:?} but {naive:?}"),
    }
}

fn single(dtype: DType) -> Vec<Op> {
    Op::ALL.into_iter().filter(|op| op.arity() == 1 && op.supports(dtype)).collect()
}

#[test]
fn each_operation_and_type_is_that_of_the_group_alone() {
    let mut random = Draw(seed(1));
    for dtype in DType::ALL {
        for data in [Data::Bits, Data::Small, Data::Wide] {
            for rows in [0, 1, 2, 700] {
                let keys: Vec<u16> = (0..rows).map(|_| random.below(13) as u16).collect();
                with_element!(dtype, T => {
                    let items: Vec<T> = (0..rows).map(|_| draw(&mut random, data)).collect();
                    for op in single(dtype) {
                        for nan in [NanPolicy::Propagate, NanPolicy::Omit] {
                            let wrap = Reduction::of(op).nan(nan).wrap(true).ddof(1);
                            compare(&wrap, &keys, &items, &format!("{op} {dtype} {data:?} {rows}"));
                        }
                        let question = Reduction::of(op).nan(NanPolicy::Error);
                        compare(&question, &keys, &items, &format!("{op} {dtype} {data:?} {rows}"));
                    }
                });
            }
        }
    }
}

#[test]
fn types_of_answers_are_those_asked_for() {
    let mut random = Draw(seed(2));
    let keys: Vec<u16> = (0..300).map(|_| random.below(5) as u16).collect();
    for dtype in DType::ALL {
        with_element!(dtype, T => {
            let items: Vec<T> = (0..300).map(|_| draw(&mut random, Data::Small)).collect();
            for op in single(dtype) {
                for out in DType::ALL {
                    let question = Reduction::of(op).out(out);
                    compare(&question, &keys, &items, &format!("{op} of {dtype} as {out}"));
                }
            }
        });
    }
}

#[test]
fn dots_are_those_of_the_group_alone() {
    let mut random = Draw(seed(3));
    let keys: Vec<u16> = (0..500).map(|_| random.below(7) as u16).collect();
    for dtype in DType::ALL {
        for data in [Data::Bits, Data::Small, Data::Wide] {
            with_element!(dtype, T => {
                let [left, right] = [0; 2].map(|_| -> Vec<T> {
                    (0..500).map(|_| draw(&mut random, data)).collect()
                });
                let question = Reduction::of(Op::Dot).wrap(true);
                let dots = question.by(&keys).run_pair(View::of(&left), View::of(&right)).unwrap();
                for key in 0..7 {
                    let bits = mask(&keys, key);
                    let inputs = [&left, &right].map(|x| Input::masked(x, &bits, 0).unwrap());
                    let [left, right] = inputs;
                    let alone = question.run_pair(left, right).unwrap().value();
                    assert_eq!(dots.columns()[0].get(key.into()), alone, "{dtype} {data:?} {key}");
                }
            });
        }
    }
}

/// Sums that leave the cells of 128 bits at either end, and come back.
#[test]
fn cells_that_overflow_lose_nothing() {
    let pairs = [1e308, 1e308, -1e308, 5e-324, 1.0, -1e308, 1e16, -1.0, 1e-300, 1e300, -1e300];
    let keys: Vec<u16> = (0..pairs.len() * 64).map(|i| (i % 3) as u16).collect();
    let items: Vec<f64> = (0..pairs.len() * 64).map(|i| pairs[i * 7 % pairs.len()]).collect();
    let ops = [Op::Sum, Op::Mean, Op::Norm1, Op::SumSq, Op::Norm2, Op::Var, Op::Std];
    for op in ops {
        compare(&Reduction::of(op), &keys, &items, op.name());
    }
    // As many of one size as make a cell full.
    let (keys, items) = (vec![0u16; 1 << 20], vec![f64::MAX; 1 << 20]);
    compare(&Reduction::new([Op::Mean, Op::Sum]), &keys, &items, "full");
    let items = vec![u64::MAX; 1 << 20];
    compare(&Reduction::new([Op::Mean, Op::SumSq]).out(DType::F64), &keys, &items, "integers");
}

fn question() -> Reduction {
    Reduction::new([Op::Sum, Op::Var, Op::ArgMin, Op::Prod, Op::LogSumExp, Op::Count, Op::Norm1])
}

fn rows(seed: u64, rows: usize) -> (Vec<Option<&'static str>>, Vec<i16>, Vec<f64>) {
    let mut random = Draw(seed);
    let names = [Some("north"), Some("south"), None, Some(""), Some("a"), Some("b\0")];
    let texts = (0..rows).map(|_| names[random.below(6) as usize]).collect();
    let years = (0..rows).map(|_| 2000 - random.below(7) as i16).collect();
    (texts, years, (0..rows).map(|_| draw(&mut random, Data::Wide)).collect())
}

#[test]
fn any_split_into_partials_gives_the_same_bytes() {
    let (texts, years, values) = rows(4, 3000);
    for order in [Order::Key, Order::FirstOccurrence] {
        for omit in [false, true] {
            let piece = |from: usize, to: usize| {
                let keys = (&texts[from..to], &years[from..to]);
                let by = question();
                let by = by.by(keys).order(order).omit_missing(omit);
                by.partial(&values[from..to], from as u64).unwrap()
            };
            let whole = piece(0, 3000);
            let bytes = whole.to_bytes();
            let answer = whole.finish(&Rules::default()).unwrap();
            let mut random = Draw(seed(5));
            for _ in 0..20 {
                let mut cuts: Vec<usize> = (0..5).map(|_| random.below(3001) as usize).collect();
                cuts.extend([0, 3000]);
                cuts.sort_unstable();
                let mut pieces: Vec<_> =
                    cuts.windows(2).map(|w| piece(w[0], w[1]).to_bytes()).collect();
                for i in 0..pieces.len() {
                    let other = random.below(pieces.len() as u64) as usize;
                    pieces.swap(i, other);
                }
                let mut pieces =
                    pieces.iter().map(|bytes| GroupPartial::from_bytes(bytes).unwrap());
                let mut merged = pieces.next().unwrap();
                pieces.for_each(|piece| merged.merge(&piece).unwrap());
                assert!(merged.to_bytes() == bytes, "{order} {omit} {cuts:?}");
                assert_eq!(merged.finish(&Rules::default()).unwrap(), answer);
            }
            // A row twice is noticed, and changes nothing.
            let mut twice = whole.clone();
            assert_eq!(twice.merge(&piece(7, 9)), Err(Error::Overlap { at: 7 }));
            assert!(twice.to_bytes() == bytes);
        }
    }
}

#[test]
fn threads_and_the_order_of_rows_do_not_matter() {
    let (texts, years, values) = rows(6, 300_000);
    let free = Reduction::new([Op::Sum, Op::Std, Op::MinMax, Op::LogSumExp]);
    let run = |texts: &[Option<&str>], years: &[i16], values: &[f64], threads| -> Grouped {
        free.clone().threads(Threads::Exactly(threads)).by((texts, years)).run(values).unwrap()
    };
    let one = run(&texts, &years, &values, 1);
    assert_eq!(one.len(), 6 * 7);
    assert_eq!(run(&texts, &years, &values, 3), one);
    let mut random = Draw(seed(7));
    let mut places: Vec<usize> = (0..values.len()).collect();
    for i in 0..places.len() {
        places.swap(i, random.below(values.len() as u64) as usize);
    }
    let texts: Vec<_> = places.iter().map(|&i| texts[i]).collect();
    let years: Vec<_> = places.iter().map(|&i| years[i]).collect();
    let values: Vec<_> = places.iter().map(|&i| values[i]).collect();
    assert_eq!(run(&texts, &years, &values, 2), one);
}

#[test]
fn floats_are_keys_by_value() {
    let keys = [0.0, f64::NAN, -0.0, 1.5, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)];
    let keys = [&keys[..], &[f64::INFINITY, -3.0]].concat();
    let sums = Reduction::of(Op::Sum).by(&keys).run(&[1, 2, 4, 8, 16, 32, 64, 128]).unwrap();
    let found: Vec<u64> =
        sums.keys()[0].slice().unwrap().iter().map(|x: &f64| x.to_bits()).collect();
    let expected = [-3.0, 0.0, 1.5, f64::INFINITY, f64::NAN].map(f64::to_bits);
    assert_eq!(found, expected);
    assert_eq!(sums.slice::<i64>(Op::Sum), Some(&[128, 5, 8, 64, 50][..]));
}

#[test]
fn integers_of_all_types_are_keys_in_their_order() {
    macro_rules! keys {
        ($($t:ident)*) => {$({
            let keys = [$t::MAX, 0, $t::MIN, 1, $t::MAX];
            let by = Reduction::of(Op::Count).by(&keys).run(&[0u8; 5]).unwrap();
            let mut sorted = keys.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(by.keys()[0].slice::<$t>(), Some(&sorted[..]));
        })*};
    }
    keys!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
    let by = Reduction::of(Op::Count).by(&[true, false, true]).run(&[0u8; 3]).unwrap();
    assert_eq!(by.keys()[0].slice::<bool>(), Some(&[false, true][..]));
    assert_eq!(by.slice::<u64>(Op::Count), Some(&[1, 2][..]));
}

#[test]
fn texts_are_one_key_however_they_are_held() {
    let strs = ["b", "", "a", "b"];
    let strings = strs.map(String::from);
    let options = strs.map(Some);
    let (bytes, ends) = (b"bab", [1u32, 1, 2, 3]);
    let columns: [KeyColumn<'_>; 4] = [
        (&strs).into(),
        (&strings).into(),
        (&options).into(),
        KeyColumn::packed(bytes, &ends, &[]),
    ];
    let answers = columns.map(|c| Reduction::of(Op::Sum).by(c).run(&[1, 2, 4, 8]).unwrap());
    assert_eq!(answers[0].keys()[0].texts(), Some(vec![Some(""), Some("a"), Some("b")]));
    assert_eq!(answers[0].slice::<i64>(Op::Sum), Some(&[2, 4, 9][..]));
    assert!(answers.iter().all(|a| *a == answers[0]));
    // A text that is empty is not one that is missing.
    let gaps = KeyColumn::packed(bytes, &ends, &[(1, 1)]);
    let by = Reduction::of(Op::Sum).by(gaps).run(&[1, 2, 4, 8]).unwrap();
    assert_eq!(by.keys()[0].texts(), Some(vec![Some("a"), Some("b"), None]));
}

#[test]
fn missing_keys_and_values_are_told_apart() {
    let keys = Input::masked(&[1, 2, 1, 2, 3], &[0b10111], 0).unwrap();
    let values = Input::masked(&[1.0, 2.0, 4.0, 8.0, 16.0], &[0b01101], 0).unwrap();
    let question = Reduction::new([Op::Sum, Op::Count, Op::Min, Op::ArgMax]);
    let by = question.by(keys.clone()).run(values.clone()).unwrap();
    assert_eq!(by.slice::<f64>(Op::Sum), Some(&[5.0, 0.0, 0.0, 8.0][..]));
    assert_eq!(by.slice::<u64>(Op::Count), Some(&[2, 0, 0, 1][..]));
    assert_eq!(
        (0..4).map(|g| by.keys()[0].is_missing(g)).collect::<Vec<_>>(),
        [false, false, false, true]
    );
    let min = by.column(Op::Min).unwrap();
    assert_eq!((0..4).map(|g| min.is_missing(g)).collect::<Vec<_>>(), [false, true, true, false]);
    // Positions are rows of the whole.
    assert_eq!(by.slice::<u64>(Op::ArgMax), Some(&[2, 0, 0, 3][..]));
    let by = question.by(keys).omit_missing(true).run(values).unwrap();
    assert_eq!(by.slice::<u64>(Op::Count), Some(&[2, 0, 0][..]));
}

#[test]
fn many_groups_and_one() {
    let rows = 1 << 20;
    let keys: Vec<u32> = (0..rows).map(|i: u32| i.wrapping_mul(0x9e37_79b1)).collect();
    let values: Vec<f64> = keys.iter().map(|&k| f64::from(k) * 0.1).collect();
    let by = Reduction::new([Op::Sum, Op::ArgMax]).by(&keys).run(&values).unwrap();
    assert_eq!(by.len(), rows as usize);
    let found: &[u32] = by.keys()[0].slice().unwrap();
    assert!(found.windows(2).all(|w| w[0] < w[1]));
    let sums: &[f64] = by.slice(Op::Sum).unwrap();
    let places: &[u64] = by.slice(Op::ArgMax).unwrap();
    for ((&key, &sum), &at) in found.iter().zip(sums).zip(places) {
        assert_eq!((sum, keys[at as usize]), (f64::from(key) * 0.1, key));
    }
    let one = Reduction::of(Op::Sum).by(&vec![3u8; values.len()]).run(&values).unwrap();
    assert_eq!(one.slice::<f64>(Op::Sum), Some(&[warpfold::sum(&values)][..]));
}

/// Where there are many groups, rows are parted first; partials never are.
#[test]
fn parted_rows_have_the_answers_of_partials() {
    // Enough rows, and enough groups among the first, that rows are parted.
    let rows = 300_000;
    let mut random = Draw(seed(10));
    let draws: Vec<u64> = (0..rows).map(|_| random.below(90_000)).collect();
    fn check<K: Item, T: Element>(ops: &[Op], keys: &[K], items: &[T])
    where
        for<'a> KeyColumn<'a>: From<View<'a>>,
    {
        let keys = || KeyColumn::from(View::of(K::elements(keys)));
        let question = Reduction::new(ops.iter().copied()).wrap(true);
        let partial = question.by(keys()).partial(View::of(items), 0).unwrap();
        let expected = partial.finish(question.rules()).unwrap();
        assert!(expected.len() > 40_000);
        for threads in [1, 3] {
            let question = question.clone().threads(Threads::Exactly(threads));
            assert_eq!(question.by(keys()).run(View::of(items)).unwrap(), expected, "{ops:?}");
        }
    }
    let floats: Vec<f64> = (0..rows).map(|_| draw(&mut random, Data::Bits)).collect();
    let keys: Vec<f32> = draws.iter().map(|&d| d as f32 - 30_000.0).collect();
    check(&[Op::Mean, Op::Std, Op::MinMax, Op::ArgMax, Op::Norm2, Op::Count], &keys, &floats);
    let narrow: Vec<i16> = (0..rows).map(|_| draw(&mut random, Data::Bits)).collect();
    let keys: Vec<i64> = draws.iter().map(|&d| (d as i64 - 9) << 40).collect();
    check(&[Op::Sum, Op::ArgMinMax, Op::Prod, Op::And, Op::Range], &keys, &narrow);
    let question = Reduction::of(Op::Dot);
    let dots = question.by(&keys).run_pair(&narrow, &narrow).unwrap();
    let partial = question.by(&keys).partial_pair(&narrow, &narrow, 0).unwrap();
    assert_eq!(dots, partial.finish(&Rules::default()).unwrap());
    // The first group that has no answer is told, whichever part finds one first.
    let large = vec![i64::MAX; rows];
    let error = Reduction::of(Op::Sum).by(&keys).run(&large).unwrap_err();
    let Error::InGroup { group, .. } = &error else { panic!("{error:?}") };
    assert!(group.starts_with('-'), "{error}");
}

#[test]
fn strided_columns_are_columns() {
    let table = [1, 10, 2, 20, 1, 40];
    let keys = View::of_strided(&table, 0, &[3], &[2]).unwrap();
    let values = View::of_strided(&table, 5, &[3], &[-2]).unwrap();
    let by = Reduction::of(Op::Sum).by(KeyColumn::from(keys)).run(values).unwrap();
    assert_eq!(by.slice::<i64>(Op::Sum), Some(&[50, 20][..]));
}

#[test]
fn first_occurrence_is_that_of_the_rows() {
    let keys = ["z", "a", "z", "m"];
    let by = Reduction::of(Op::Sum).by(&keys).order(Order::FirstOccurrence);
    let sums = by.run(&[1, 2, 4, 8]).unwrap();
    assert_eq!(sums.keys()[0].texts(), Some(vec![Some("z"), Some("a"), Some("m")]));
    assert_eq!(sums.slice::<i64>(Op::Sum), Some(&[5, 2, 8][..]));
    assert_eq!(sums.to_string(), "z: 5\na: 2\nm: 8");
}

#[test]
fn what_is_no_question_is_an_error() {
    let question = Reduction::of(Op::Sum);
    let keys = [1, 2];
    let shape =
        |r: Result<Grouped, Error>| assert!(matches!(r, Err(Error::ShapeMismatch { .. })), "{r:?}");
    shape(question.by(&keys).run(&[1.0]));
    shape(question.by((&keys, &["a"])).run(&[1.0, 2.0]));
    let groups = |r: Result<Grouped, Error>| {
        let error = r.unwrap_err();
        assert!(matches!(error, Error::Groups { .. }) && error.hint().is_some(), "{error:?}");
    };
    groups(question.by(&keys).run(&[[1.0, 2.0], [3.0, 4.0]]));
    groups(question.by(Keys::new([])).run(&[1.0]));
    groups(question.by(Keys::dense(&["a"], 1)).run(&[1.0]));
    groups(question.by(Keys::dense(&[1i8], 200)).run(&[1.0]));
    let dense = |keys: &[i32], n| question.by(Keys::dense(keys, n)).run(&[1.0; 2][..keys.len()]);
    let refused = Error::KeyOutOfRange { row: 1, key: "2".into(), groups: 2 };
    assert_eq!(dense(&[1, 2], 2), Err(refused));
    assert!(matches!(dense(&[0, -1], 2), Err(Error::KeyOutOfRange { .. })));
    assert_eq!(dense(&[0, 1], 3).unwrap().slice::<f64>(Op::Sum), Some(&[1.0, 1.0, 0.0][..]));
    let named = question.clone().device(Device::Sim).by(&keys).partial(&[1.0, 2.0], 0);
    assert!(matches!(named, Err(Error::Device { .. })));
    assert!(matches!(Reduction::of(Op::Dot).by(&keys).run(&[1.0, 2.0]), Err(Error::Arity { .. })));
    assert!(matches!(Reduction::new([]).by(&keys).run(&[1.0, 2.0]), Err(Error::Operations { .. })));
    let initial = question.clone().initial(1.0).by(&keys);
    assert!(matches!(initial.run(&[1.0, 2.0]), Err(Error::BadInitial { .. })));
    assert!(matches!(initial.partial(&[1.0, 2.0], 0), Err(Error::BadInitial { .. })));
    let sums = question.by(&["a", "b", "b"]).run(&[1, i64::MAX, 1]);
    assert_eq!(
        sums.unwrap_err().to_string(),
        "group \"b\": sum is 9223372036854775808, which does not fit i64"
    );
    let mut partial = question.by(&keys).partial(&[1.0, 2.0], 0).unwrap();
    let before = partial.clone();
    assert!(partial.absorb(&["a"], &[1.0]).is_err());
    assert!(partial.absorb(&[1], &[1]).is_err());
    assert!(partial.absorb(&[1, 2], &[1.0]).is_err());
    assert_eq!(partial, before);
}

#[test]
fn damaged_bytes_are_errors_and_never_panics() {
    let (texts, years, values) = rows(8, 60);
    let seal = |mut bytes: Vec<u8>| {
        let body = bytes.len() - 4;
        let checksum = crc32fast::hash(&bytes[..body]);
        bytes[body..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    };
    let keys = (&texts, &years);
    let by = question();
    let good = by.by(keys).order(Order::FirstOccurrence).partial(&values, 5).unwrap().to_bytes();
    assert_eq!(seal(good.clone()), good);
    assert!(GroupPartial::from_bytes(&good).unwrap().to_bytes() == good);
    for cut in (0..good.len()).step_by(up_to(1, 3)) {
        assert!(GroupPartial::from_bytes(&good[..cut]).is_err());
        if cut > 16 {
            assert!(GroupPartial::from_bytes(&seal(good[..cut].to_vec())).is_err());
        }
    }
    let mut random = Draw(seed(9));
    for at in (0..good.len()).step_by(up_to(1, 2)) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << random.below(8);
        assert!(GroupPartial::from_bytes(&bytes).is_err(), "{at}");
    }
    // With a checksum that is right: what is read is a state, and stays one.
    let mut read = 0;
    for _ in 0..up_to(8_000, 2_000) {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let at = 12 + random.below(good.len() as u64 - 16) as usize;
            bytes[at] = if random.below(2) == 0 { random.next() as u8 } else { bytes[at] ^ 1 };
        }
        if let Ok(partial) = GroupPartial::from_bytes(&seal(bytes)) {
            read += 1;
            let again = GroupPartial::from_bytes(&partial.to_bytes()).unwrap();
            assert!(again.to_bytes() == partial.to_bytes());
            let _ = partial.finish(&Rules::default());
        }
    }
    assert!(read > up_to(40, 10), "{read}");
}

#[cfg(feature = "arrow")]
#[test]
fn texts_of_arrow_are_keys_whatever_holds_them() {
    use arrow_array::types::{Int8Type, UInt32Type};
    use arrow_array::{
        Array, ArrayRef, BinaryArray, DictionaryArray, LargeBinaryArray, LargeStringArray,
        StringArray, StringViewArray,
    };
    use std::sync::Arc;

    let long = "a text that no view holds within itself";
    let rows: Vec<Option<&str>> =
        vec![Some("b"), None, Some(""), Some(long), Some("b"), None, Some("a"), Some(long)];
    let bytes: Vec<Option<&[u8]>> = rows.iter().map(|text| text.map(str::as_bytes)).collect();
    let codes: DictionaryArray<Int8Type> = rows.iter().copied().collect();
    let wide: DictionaryArray<UInt32Type> = rows.iter().copied().collect();
    // A dictionary may have no key as one of its texts, and texts that no row has.
    let none_inside = DictionaryArray::<Int8Type>::new(
        vec![Some(2), Some(1), Some(3), Some(0), Some(2), None, Some(4), Some(0)].into(),
        Arc::new(StringArray::from(vec![
            Some(long),
            None,
            Some("b"),
            Some(""),
            Some("a"),
            Some("c"),
        ])),
    );
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(rows.clone())),
        Arc::new(LargeStringArray::from(rows.clone())),
        Arc::new(StringViewArray::from(rows.clone())),
        Arc::new(BinaryArray::from(bytes.clone())),
        Arc::new(LargeBinaryArray::from(bytes)),
        Arc::new(codes),
        Arc::new(wide),
        Arc::new(none_inside),
    ];
    let values: Vec<f64> = (0..rows.len()).map(|i| i as f64 + 0.1).collect();
    let question = Reduction::new([Op::Sum, Op::ArgMax, Op::Count]);
    for array in &arrays {
        for (from, len) in [(0, 8), (1, 7), (2, 3), (1, 1), (0, 0), (8, 0)] {
            let (array, values) = (array.slice(from, len), &values[from..from + len]);
            for omit in [false, true] {
                let expected = question.by(&rows[from..from + len]).omit_missing(omit).run(values);
                let found = question.by(&array).omit_missing(omit).run(values);
                assert_eq!(found, expected, "{} from {from}, {len} rows", array.data_type());
            }
        }
    }
    // Beside another column, and in pieces.
    let years = [1i32, 1, 2, 2, 1, 1, 2, 2];
    let keys = Keys::new([(&arrays[5]).into(), years[..].into()]);
    let expected = question.by(Keys::new([rows[..].into(), years[..].into()])).run(&values);
    assert_eq!(question.by(keys).run(&values), expected);

    let lists: ArrayRef = Arc::new(arrow_array::NullArray::new(2));
    let refused = Reduction::of(Op::Sum).by(&lists).run(&[1, 2]).unwrap_err();
    assert!(matches!(refused, Error::NotKeys { .. }), "{refused}");
    assert!(refused.hint().unwrap().contains("keys are numbers"));
}

/// Both ways, of few groups and of many that are parted, end with an error once nobody wants the
/// answer, and are what they were where somebody does.
#[test]
fn work_that_is_stopped_has_no_answer() {
    let stop = Arc::new(AtomicBool::new(false));
    let token = CancelToken::from(Arc::clone(&stop));
    let many: Vec<u64> = (0..1u64 << 18).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let few: Vec<u64> = many.iter().map(|key| key % 7).collect();
    let values: Vec<f32> = many.iter().map(|&key| key as f32).collect();
    for keys in [&many, &few] {
        let by = Reduction::of(Op::Sum).by(&keys[..]);
        let answer = by.run(&values[..]).unwrap();
        let watched = Reduction::of(Op::Sum).until(&token).by(&keys[..]);
        assert_eq!(watched.run(&values[..]).unwrap().slice::<f32>(Op::Sum), answer.slice(Op::Sum));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(watched.run(&values[..]), Err(Error::Cancelled));
        assert!(watched.partial(&values[..], 0).is_err());
        stop.store(false, Ordering::Relaxed);
        assert_eq!(watched.partial(&values[..], 0).unwrap().len(), answer.len());
    }
}

/// Keys of other widths and units are the same keys, whichever side comes first, and travel with
/// what they count.
#[test]
fn states_of_keys_of_other_types_merge_by_value() {
    let question = Reduction::new([Op::Sum, Op::ArgMax]);
    let (narrow, wide) = ([-1i8, 7, 7], [7i64, 1 << 40]);
    let left = question.by(&narrow).partial(&[1.0, 2.0, 4.0], 0).unwrap();
    let right = question.by(&wide).partial(&[8.0, 16.0], 3).unwrap();
    let both = [-1i64, 7, 7, 7, 1 << 40];
    let whole = question.by(&both).partial(&[1.0, 2.0, 4.0, 8.0, 16.0], 0).unwrap();
    for (first, second) in [(&left, &right), (&right, &left)] {
        let mut merged = first.clone();
        merged.merge(second).unwrap();
        assert_eq!(merged.to_bytes(), whole.to_bytes());
    }
    // A missing key, and floats, whose NaNs and zeros are those of the wider type.
    let singles = [f32::NAN, -0.0, 1.5];
    let mut merged = question.by(&singles).partial(&[1.0, 2.0, 4.0], 0).unwrap();
    merged.merge(&question.by(&[1.5f64, f64::NAN]).partial(&[8.0, 16.0], 3).unwrap()).unwrap();
    let all = question.by(&[f64::NAN, 0.0, 1.5, 1.5, f64::NAN]);
    let whole = all.partial(&[1.0, 2.0, 4.0, 8.0, 16.0], 0).unwrap();
    assert_eq!(merged.to_bytes(), whole.to_bytes());
    // What has no value in common stays as it was.
    let texts = question.by(&["7"]).partial(&[1.0], 5).unwrap();
    let large = question.by(&[u64::MAX]).partial(&[1.0], 5).unwrap();
    let truth = question.by(&[true]).partial(&[1.0], 5).unwrap();
    for other in [&texts, &large, &truth] {
        let mut kept = left.clone();
        assert!(matches!(kept.merge(other), Err(Error::StateMismatch { .. })));
        assert_eq!(kept, left);
    }
}

#[test]
fn keys_know_what_they_count() {
    let question = Reduction::of(Op::Sum);
    let of = |keys: &[i64], unit: &Unit, start: u64| {
        let keys = KeyColumn::from(keys).counting(unit.clone());
        question.by(keys).partial(&[1i64 << start, 2 << start], start).unwrap()
    };
    let micro = Unit::Timestamp(Tick::Micro, None);
    let nano = Unit::Timestamp(Tick::Nano, None);
    let (coarse, fine) = (of(&[1, 2], &micro, 0), of(&[2000, 5], &nano, 2));
    for (first, second) in [(&coarse, &fine), (&fine, &coarse)] {
        let mut merged = first.clone();
        merged.merge(second).unwrap();
        let bytes = merged.to_bytes();
        let read = GroupPartial::from_bytes(&bytes).unwrap();
        assert_eq!(read.to_bytes(), bytes);
        let answer = read.finish(&Rules::default()).unwrap();
        assert_eq!(answer.keys()[0].unit(), Some(&nano));
        assert_eq!(answer.keys()[0].slice::<i64>(), Some(&[5, 1000, 2000][..]));
        assert_eq!(answer.slice::<i64>(Op::Sum), Some(&[8, 1, 6][..]));
        // A byte less, or another, is none.
        for cut in 0..bytes.len() {
            assert!(GroupPartial::from_bytes(&bytes[..cut]).is_err());
        }
    }
    let plain = question.by(&[1i64, 2]).partial(&[1i64, 2], 4).unwrap();
    let zoned = of(&[1, 2], &Unit::Timestamp(Tick::Nano, Some("UTC".into())), 4);
    let far = of(&[i64::MAX / 10, 0], &micro, 4);
    for (left, right) in [(&coarse, &plain), (&plain, &fine), (&coarse, &zoned), (&fine, &far)] {
        let mut kept = left.clone();
        assert!(matches!(kept.merge(right), Err(Error::UnitMismatch { .. })));
        assert_eq!(&kept, left);
    }
    // A partial without units has the bytes that it always had.
    assert_eq!(plain.to_bytes()[8], 1);
    assert_eq!(coarse.to_bytes()[8], 2);
}
