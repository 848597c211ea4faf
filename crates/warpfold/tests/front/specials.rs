//! The cases that broke other summation codes, through the public functions.

use crate::arrays::{Random, bits_of};
use crate::naive::{Num, rounded};
use crate::oracle::{self, Exact};
use warpfold::{
    DType, FloatNumber, NanPolicy, Op, Reduction, Rules, Scalar, Threads, View, bf16, dot, f16,
    max, mean, min, norm_inf, norm1, norm2, prod, sum, sumsq, var,
};

fn pow2(e: i32) -> f64 {
    // By bits: `powi` may go through a reciprocal that overflows.
    if e >= -1022 {
        f64::from_bits(((e + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (e + 1074))
    }
}

#[test]
fn the_table_of_special_values() {
    fn check<T: FloatNumber + PartialEq>(of: impl Fn(f64) -> T) {
        let bits = |x: T| x.bits();
        let [zero, minus_zero, one, inf, neg_inf, nan] =
            [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(&of);
        let other_nan = T::from_bits(nan.bits() | 1 | 1 << (8 * size_of::<T>() - 1));
        let none: [T; 0] = [];
        // An exact zero is +0, nothing at all and -0s included.
        for items in [&none[..], &[minus_zero], &[minus_zero; 100], &[one, of(-1.0)]] {
            assert_eq!(bits(sum(items)), 0);
        }
        for x in
            [norm1(&none), norm2(&none), sumsq(&none), norm_inf(&none), dot(&none, &none).unwrap()]
        {
            assert_eq!(bits(x), 0);
        }
        assert_eq!(bits(prod(&none)), bits(one));
        assert_eq!(bits(mean(&none)), bits(nan));
        assert_eq!(bits(var(&none, 0)), bits(nan));
        assert!(min(&none).is_none() && max(&none).is_none());
        assert!(warpfold::argmin(&none).is_none() && warpfold::argmax(&none).is_none());
        assert!(!warpfold::any(&none) && warpfold::all(&none));
        // NaNs are canonical; infinities of both signs are one; and all that
        // in every lane of a short and of a long array.
        for n in [1, 2, 3, 31, 32, 33, 100, 8193] {
            for at in [0, n / 2, n - 1] {
                let with = |x: T| {
                    let mut items = vec![one; n];
                    items[at] = x;
                    items
                };
                assert_eq!(bits(sum(&with(inf))), bits(inf));
                assert_eq!(bits(sum(&with(neg_inf))), bits(neg_inf));
                assert_eq!(bits(norm1(&with(neg_inf))), bits(inf));
                assert_eq!(bits(norm2(&with(neg_inf))), bits(inf));
                assert_eq!(bits(mean(&with(neg_inf))), bits(neg_inf));
                assert_eq!(bits(var(&with(inf), 0)), bits(nan));
                assert_eq!(bits(norm_inf(&with(neg_inf))), bits(inf));
                for bad in [nan, other_nan] {
                    let items = with(bad);
                    for x in
                        [sum(&items), mean(&items), norm1(&items), norm2(&items), var(&items, 0)]
                    {
                        assert_eq!(bits(x), bits(nan));
                    }
                    assert_eq!(bits(min(&items).unwrap()), bits(nan));
                    assert_eq!(bits(norm_inf(&items)), bits(nan));
                    assert_eq!(warpfold::argmax(&items), Some(at));
                }
                let mut both = with(inf);
                both.push(neg_inf);
                assert_eq!(bits(sum(&both)), bits(nan));
                // 0 * inf is invalid, but no NaN of the data: none to be left out or refused.
                assert_eq!(bits(dot(&with(inf), &with(zero)).unwrap()), bits(nan));
                for policy in [NanPolicy::Omit, NanPolicy::Error] {
                    let dot = Reduction::of(Op::Dot).nan(policy);
                    let made = dot.run_pair(&with(inf), &with(zero)).unwrap();
                    assert_eq!(bits(made.number::<T>(Op::Dot).unwrap()), bits(nan));
                }
                let omit = Reduction::of(Op::Dot).nan(NanPolicy::Omit);
                let left = omit.run_pair(&with(nan), &with(zero)).unwrap();
                assert_eq!(bits(left.number::<T>(Op::Dot).unwrap()), bits(sum(&vec![one; n - 1])));
                assert_eq!(bits(norm2(&[&with(inf)[..], &[nan]].concat())), bits(nan));
            }
        }
        // -0 lies below +0; the first of equals wins.
        assert_eq!(bits(min(&[zero, minus_zero]).unwrap()), bits(minus_zero));
        assert_eq!(bits(max(&[minus_zero, zero]).unwrap()), bits(zero));
        assert_eq!(warpfold::argmin(&[one, zero, zero]), Some(1));
        // For positions the zeros are equal.
        assert_eq!(warpfold::argmin(&[one, zero, minus_zero]), Some(1));
        assert_eq!(warpfold::argmax(&[minus_zero, zero]), Some(0));
        assert_eq!(warpfold::argmax(&[one, nan, inf, nan]), Some(1));
        let omit = Reduction::new([Op::Min, Op::Sum]).nan(NanPolicy::Omit);
        let answer = omit.run(&[nan, one, other_nan, of(2.0)]).unwrap();
        assert_eq!(answer.slice::<T>(Op::Min).unwrap()[0].bits(), bits(one));
        assert_eq!(answer.slice::<T>(Op::Sum).unwrap()[0].bits(), bits(of(3.0)));
    }
    check::<f64>(|x| x);
    check::<f32>(|x| x as f32);
    check::<f16>(f16::from_f64);
    check::<bf16>(bf16::from_f64);
}

/// The same few terms, alone and among many zeros, so that every kernel that
/// long arrays reach meets them too.
fn sums_to<T: FloatNumber>(terms: &[T], expected: T) {
    let zero = T::from_bits(0);
    for n in [0usize, 29, 8192, 20_000] {
        for rotation in [0, 1, n / 2, n.saturating_sub(3)] {
            let mut items = vec![zero; n];
            let at = rotation.min(n);
            items.splice(at..at, terms.iter().copied());
            let got = sum(&items);
            assert_eq!(got.bits(), expected.bits(), "{terms:?} among {n} zeros: {got:?}");
        }
    }
    let reversed: Vec<T> = terms.iter().rev().copied().collect();
    assert_eq!(sum(&reversed).bits(), expected.bits(), "{terms:?} reversed");
}

#[test]
fn sums_at_the_top_and_at_ties() {
    const MAX: f64 = f64::MAX;
    let tiny = f64::from_bits(1);
    sums_to(&[MAX, pow2(969)], MAX);
    sums_to(&[MAX, pow2(970)], f64::INFINITY);
    sums_to(&[MAX, pow2(970), -tiny], MAX);
    sums_to(&[-MAX, -1.0], -MAX);
    sums_to(&[1e308, 1e308, -1e308], 1e308);
    sums_to(&[MAX, MAX, -MAX, -MAX, tiny], tiny);
    sums_to(&[1.0, pow2(-53)], 1.0);
    sums_to(&[1.0, pow2(-53), tiny], 1.0 + f64::EPSILON);
    sums_to(&[1.0, pow2(-53), -tiny], 1.0);
    sums_to(&[1.0 + f64::EPSILON, pow2(-53)], 1.0 + 2.0 * f64::EPSILON);
    sums_to(&[tiny, tiny, tiny], f64::from_bits(3));
    sums_to(&[f64::MIN_POSITIVE, -tiny], f64::from_bits((1 << 52) - 1));
    sums_to(&[pow2(-60), 1.0], 1.0);

    const TOP: f32 = f32::MAX;
    let tiny = f32::from_bits(1);
    let p = |e: i32| pow2(e) as f32;
    sums_to(&[TOP, p(102)], TOP);
    sums_to(&[TOP, p(103)], f32::INFINITY);
    sums_to(&[TOP, p(103), -tiny], TOP);
    sums_to(&[1.0, p(-24)], 1.0);
    // Through f64 these would be rounded twice.
    sums_to(&[1.0, p(-24), tiny], 1.0 + f32::EPSILON);
    sums_to(&[1.0, p(-24), p(-80)], 1.0 + f32::EPSILON);
    sums_to(&[1.0, p(-24), -p(-80)], 1.0);
    sums_to(&[tiny; 5], f32::from_bits(5));

    let h = |x: f64| f16::from_f64(x);
    sums_to(&[f16::MAX, h(8.0)], f16::MAX);
    sums_to(&[f16::MAX, h(16.0)], f16::INFINITY);
    sums_to(&[f16::MAX, h(16.0), f16::from_bits(0x8001)], f16::MAX);
    sums_to(&[h(1.0), h(pow2(-11))], h(1.0));
    sums_to(&[h(1.0), h(pow2(-11)), f16::from_bits(1)], f16::from_bits(0x3c01));
    let b = |x: f64| bf16::from_f64(x);
    sums_to(&[bf16::MAX, b(pow2(118))], bf16::MAX);
    sums_to(&[bf16::MAX, b(pow2(119))], bf16::INFINITY);
    sums_to(&[bf16::MAX, b(pow2(119)), bf16::from_bits(0x8001)], bf16::MAX);
    sums_to(&[b(1.0), b(pow2(-8)), b(pow2(-100))], bf16::from_bits(0x3f81));
    // Far more than the type's largest, and back.
    let many = [vec![f16::MAX; 30_000], vec![-f16::MAX; 29_999]].concat();
    assert_eq!(sum(&many), f16::MAX);
    // A sum of as many f16 as no f64 lane could hold without a limit.
    let long = vec![f16::MAX; 1 << 20];
    let total = Reduction::of(Op::Sum).out(DType::F64).run(&long).unwrap();
    assert_eq!(total.slice::<f64>(Op::Sum).unwrap(), [65504.0 * 1048576.0]);
}

/// The exact sum of f64s by big integers.
fn exact_sum(items: &[f64]) -> f64 {
    f64::from_bits(oracle::round::<f64>(&oracle::sum(items.iter().map(|&x| Exact::of_f64(x)))))
}

fn check_sum(items: &[f64], note: &str) {
    let expected = exact_sum(items).to_bits();
    assert_eq!(sum(items).to_bits(), expected, "{note}");
    let mut reversed = items.to_vec();
    reversed.reverse();
    assert_eq!(sum(&reversed).to_bits(), expected, "{note}, reversed");
    reversed.sort_by(f64::total_cmp);
    assert_eq!(sum(&reversed).to_bits(), expected, "{note}, sorted");
}

#[test]
fn carries_ripple_through_all_limbs() {
    // 2^1000 - 2^-1074 and back: every limb between borrows.
    let tiny = f64::from_bits(1);
    check_sum(&[pow2(1000), -tiny], "borrow");
    check_sum(&[pow2(1000), -tiny, -pow2(1000)], "borrow and back");
    check_sum(&[-pow2(1000), tiny, pow2(1000), tiny], "carry");
    let clusters: Vec<f64> = (0..4000)
        .map(|i| {
            let x = pow2((137 * i) % 2000 - 1000);
            if i % 3 == 0 { -x } else { x }
        })
        .collect();
    check_sum(&clusters, "clusters");
    let mut huge = vec![pow2(-1000); 9000];
    huge[4567] = pow2(1023);
    check_sum(&huge, "one huge");
    huge.push(-pow2(1023));
    check_sum(&huge, "one huge, cancelled");
    let mut sparse = vec![0.0; 30_000];
    for i in (0..30_000).step_by(100) {
        sparse[i] = pow2((i as i32 * 7) % 1800 - 900) * if i % 200 == 0 { 1.5 } else { -1.25 };
    }
    check_sum(&sparse, "99% zeros");
}

/// Zhu and Hayes 2010: four sorts of data, for several spreads of exponents.
#[test]
fn zhu_and_hayes() {
    let mut random = Random::new(71);
    for spread in [1, 30, 60, 500, 1900] {
        for n in [1000, 20_000] {
            let value = |random: &mut Random| {
                let e = -(spread / 2) + (random.next() % spread as u64) as i32;
                (1.0 + random.unit()) * pow2(e)
            };
            let well: Vec<f64> = (0..n).map(|_| value(&mut random)).collect();
            check_sum(&well, &format!("positive, {spread} binades"));
            let signed: Vec<f64> =
                well.iter().map(|&x| if random.chance(2) { x } else { -x }).collect();
            check_sum(&signed, &format!("signed, {spread} binades"));
            // Anderson: the mean taken away, so that almost all cancels.
            let middle = mean(&well);
            let anderson: Vec<f64> = well.iter().map(|&x| x - middle).collect();
            check_sum(&anderson, &format!("Anderson, {spread} binades"));
            // A sum of exactly zero, shuffled.
            let mut zero: Vec<f64> = well.iter().flat_map(|&x| [x, -x]).collect();
            for i in (1..zero.len()).rev() {
                zero.swap(i, random.below(i + 1));
            }
            assert_eq!(sum(&zero).to_bits(), 0);
            // And one grain that is left.
            zero.push(f64::from_bits(3));
            assert_eq!(sum(&zero), f64::from_bits(3));
        }
    }
}

/// Ogita, Rump and Oishi 2005, algorithm 6.1: dot products, and with a second
/// array of ones sums, of any condition number.
fn gen_dot(n: usize, binades: i32, random: &mut Random) -> (Vec<f64>, Vec<f64>) {
    let half = n / 2;
    let (mut x, mut y) = (vec![0.0; n], vec![0.0; n]);
    for i in 0..half {
        let e = (random.unit() * f64::from(binades) / 2.0).round() as i32;
        let e = match i {
            0 => binades / 2 + 1,
            i if i == half - 1 => 0,
            _ => e,
        };
        x[i] = (2.0 * random.unit() - 1.0) * pow2(e);
        y[i] = (2.0 * random.unit() - 1.0) * pow2(e);
    }
    let mut exact = oracle::sum((0..half).map(|i| Exact::of_f64(x[i]).mul(&Exact::of_f64(y[i]))));
    for i in half..n {
        let e = f64::from(binades) / 2.0 * (1.0 - (i - half) as f64 / (n - half) as f64);
        x[i] = (2.0 * random.unit() - 1.0) * pow2(e.round() as i32);
        let so_far = f64::from_bits(oracle::round::<f64>(&exact));
        y[i] = ((2.0 * random.unit() - 1.0) * pow2(e.round() as i32) - so_far) / x[i];
        exact = exact.add(&Exact::of_f64(x[i]).mul(&Exact::of_f64(y[i])));
    }
    for i in (1..n).rev() {
        let j = random.below(i + 1);
        x.swap(i, j);
        y.swap(i, j);
    }
    (x, y)
}

#[test]
fn ogita_rump_and_oishi() {
    let mut random = Random::new(73);
    for binades in [10, 50, 100, 300, 900] {
        for n in [6, 100, 3000] {
            let (x, y) = gen_dot(n, binades, &mut random);
            let products: Vec<Exact> =
                x.iter().zip(&y).map(|(&a, &b)| Exact::of_f64(a).mul(&Exact::of_f64(b))).collect();
            let expected = oracle::round::<f64>(&oracle::sum(products));
            assert_eq!(dot(&x, &y).unwrap().to_bits(), expected, "{n} over {binades} binades");
            // As a sum: products and their errors, which are as ill-conditioned.
            let terms: Vec<f64> =
                x.iter().zip(&y).flat_map(|(&a, &b)| [a * b, a.mul_add(b, -(a * b))]).collect();
            check_sum(&terms, &format!("{n} over {binades} binades"));
        }
    }
}

#[test]
fn dots_that_underflow_or_overflow_on_the_way() {
    assert_eq!(dot(&[pow2(-600)], &[pow2(-600)]), Ok(0.0));
    // Each product is far below the smallest f64; the root of 2^-1200 is not.
    assert_eq!(norm2(&[pow2(-600)]), pow2(-600));
    for n in [1usize, 64, 8192, 20_000] {
        let small = vec![pow2(-538); n];
        let expected = rounded(&Exact { exponent: -1076, ..Exact::of_int(n as i128) }, DType::F64);
        assert_eq!(Scalar::F64(sumsq(&small)), expected);
        assert_eq!(Scalar::F64(dot(&small, &small).unwrap()), expected);
    }
    let big = [1e200, 1e200, 1.0];
    assert_eq!(dot(&big, &[1e200, -1e200, 1.0]), Ok(1.0));
    assert_eq!(norm2(&[f64::MAX, 0.0]), f64::MAX);
    assert_eq!(sumsq(&[f64::MAX]), f64::INFINITY);
    assert_eq!(dot(&[0.0f32], &[f32::INFINITY]).map(f32::to_bits), Ok(0x7fc0_0000));
    // One product that vanishes in f64, in each place of a long array.
    for n in [33, 1000] {
        for at in 0..n {
            let (mut x, mut y) = (vec![0.0; n], vec![0.0; n]);
            (x[at], y[at]) = (pow2(-600), pow2(-500));
            (x[(at + 7) % n], y[(at + 7) % n]) = (pow2(-537), pow2(-538));
            // 2^-1100 + 2^-1075 is just above half of the smallest f64.
            assert_eq!(dot(&x, &y), Ok(f64::from_bits(1)), "at {at}");
        }
    }
}

#[test]
fn variances_do_not_cancel() {
    assert_eq!(var(&[1e9 + 1.0, 1e9 + 3.0], 0), 1.0);
    let far: Vec<f64> = (0..10_001).map(|i| 1e15 + f64::from(i % 2)).collect();
    let (n, ones) = (10_001i128, 5000i128);
    let exact = Exact::of_int(n * ones - ones * ones).div((n * n) as u128);
    assert_eq!(Scalar::F64(var(&far, 0)), rounded(&exact, DType::F64));
    assert_eq!(var(&[0.1f32; 1000], 0).to_bits(), 0);
    assert_eq!(var(&[f64::MAX, f64::MAX], 0), 0.0);
}

/// One state, many answers: rounded from the state and not from one another.
#[test]
fn other_types_are_rounded_from_the_state() {
    let mut random = Random::new(79);
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let size = dtype.size();
        let bytes: Vec<u8> = (0..5000)
            .flat_map(|_| bits_of(dtype, random.unit() - 0.5).to_le_bytes()[..size].to_vec())
            .collect();
        let view = View::from_bytes(dtype, &bytes, &[5000]).unwrap();
        let exact = oracle::sum(bytes.chunks_exact(size).map(|b| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(b);
            match Num::of(dtype, u64::from_le_bytes(word)) {
                Num::Float(x) => Exact::of_f64(x),
                Num::Int(_) => unreachable!("floats only"),
            }
        }));
        let partial = Reduction::of(Op::Sum).threads(Threads::Exactly(2)).partial(view, 0).unwrap();
        for out in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            let rules = Rules::new().out(out);
            let got = partial.finish(&rules).unwrap().value().unwrap().first();
            assert_eq!(got, rounded(&exact, out), "{dtype} in {out}");
        }
    }
}
