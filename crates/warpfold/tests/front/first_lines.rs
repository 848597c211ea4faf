//! Forty lines as a stranger writes them who has not read the pages: each compiles and is right. Those about
//! files are in `warpfold-files`, in `formats/ask.rs`.
//!
//! Of what cannot be, the compiler or the error says what can: a `sum` of options, of rows or of an iterator
//! (see `Items` and `Number`); `sum_axis(&a, 0)` is `Reduction::sum().axis(0)`; `var` wants its `ddof` said.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use warpfold::{
    Accumulator, CancelToken, DType, Error, ExactSum, Input, NanPolicy, Op, Reduction, Segments,
    all, any, argmax, count_nonzero, dot, logsumexp, max, mean, min, minmax, norm, prod, std, sum,
    var,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn one_number_of_a_vector_a_slice_or_an_array() -> Outcome {
    let v = vec![0.1, 0.2, 0.3, 0.4];
    let ints = vec![3, 1, 2];
    assert_eq!(sum(&v), 1.0);
    assert_eq!(sum(v.clone()), 1.0);
    assert_eq!(sum(&v[1..3]), 0.5);
    assert_eq!(sum([1.0f32, 2.0]), 3.0);
    assert_eq!(sum(&[0.5f32; 4]), 2.0);
    assert_eq!(mean(&ints), 2.0);
    assert_eq!(mean(&v), 0.25);
    assert_eq!(var(&ints, 1), 1.0);
    assert_eq!(std(&ints, 1), 1.0);
    assert_eq!(norm(&[3.0, 4.0]), 5.0);
    assert_eq!(logsumexp(&[0.0, 0.0]), 2f64.ln());
    assert_eq!(dot(&v, &[1.0; 4])?, 1.0);
    assert_eq!(dot(v.as_slice(), v.clone())?, sum(v.iter().map(|x| x * x).collect::<Vec<_>>()));
    assert_eq!(min(&ints), Some(1));
    assert_eq!(max(&v).unwrap(), 0.4);
    assert_eq!(minmax(ints.as_slice()), Some((1, 3)));
    assert_eq!(argmax(&ints), Some(0));
    assert_eq!(prod(vec![2.0, 4.0]), 8.0);
    Ok(())
}

#[test]
fn whatever_holds_a_slice() {
    let boxed: Box<[f64]> = vec![1.0, 2.0].into();
    let rc: Rc<Vec<i64>> = Rc::new(vec![1, 2]);
    let arc: Arc<[u8]> = Arc::new([1, 2]);
    assert_eq!((sum(&boxed), sum(boxed.clone()), sum(&rc), sum(arc)), (3.0, 3.0, 3, 3));
    let rows = [vec![1.0, 2.0], vec![3.0]];
    assert_eq!(rows.iter().map(sum).collect::<Vec<f64>>(), [3.0, 3.0]);
    assert_eq!(rows.iter().map(mean).exact_sum(), 4.5);
    let mut own = vec![1i32, 2];
    assert_eq!(sum(&mut own), 3);
    assert_eq!(sum(&mut own[..1]), 1);
    assert_eq!(sum(&&&own), 3);
}

#[test]
fn question_marks() -> Outcome {
    fn spread(v: &[f64]) -> Option<f64> {
        Some(max(v)? - min(v)?)
    }
    fn least(v: &[f64]) -> Result<f64, Box<dyn std::error::Error>> {
        Ok(min(v).ok_or("no numbers")?)
    }
    assert_eq!((spread(&[1.0, 4.0]), spread(&[])), (Some(3.0), None));
    assert_eq!(least(&[2.0])?, 2.0);
    assert!(least(&[]).is_err());
    Ok(())
}

#[test]
fn truths_and_masks() -> Outcome {
    let v = [1.0, f64::NAN, 3.0];
    let mask: Vec<bool> = v.iter().map(|x| x.is_finite()).collect();
    assert_eq!((sum(&mask), count_nonzero(&mask), any(&mask), all(&mask)), (2, 2, true, false));
    let total: f64 = Reduction::sum().run(Input::selected(&v, &mask)?)?.try_into()?;
    assert_eq!(total, 4.0);
    let place: usize = Reduction::argmax().run(Input::selected(&v, &mask)?)?.try_into()?;
    assert_eq!(place, 2);
    let by = Reduction::sum().by(&[7, 7, 8]).run(Input::selected(&v, &mask)?)?;
    assert_eq!(by.slice::<f64>(Op::Sum), Some(&[1.0, 3.0][..]));
    let halves = Reduction::sum().segments(Segments::Lengths(&[2, 1]));
    let halves: Vec<f64> = halves.run(Input::selected(&v, &mask)?)?.try_into()?;
    assert_eq!(halves, [1.0, 3.0]);
    assert!(Input::selected(&v, &[1, 0, 1]).is_err() && Input::selected(&v, &mask[1..]).is_err());
    Ok(())
}

/// A mask of bytes leaves out what one of bits does, however long, with gaps or without.
#[test]
fn masks_of_truths_are_those_of_bits() -> Outcome {
    for len in [0usize, 1, 7, 64, 1000, 200_000] {
        let v: Vec<f32> = (0..len).map(|i| i as f32 * 0.1).collect();
        for kept in
            [|_| true, |_| false, |i: usize| i % 3 != 1, |i: usize| (i / 100).is_multiple_of(2)]
        {
            let mask: Vec<bool> = (0..len).map(kept).collect();
            let bits: Vec<u8> = mask
                .chunks(8)
                .map(|b| b.iter().rev().fold(0, |bits, &bit| bits << 1 | u8::from(bit)))
                .collect();
            let question = Reduction::new([Op::Sum, Op::ArgMin, Op::Count]);
            let by_truths = question.partial(Input::selected(&v, &mask)?, 0)?;
            assert_eq!(by_truths, question.partial(Input::masked(&v, &bits, 0)?, 0)?, "{len}");
            assert_eq!(by_truths.missing() as usize, mask.iter().filter(|kept| !**kept).count());
        }
    }
    Ok(())
}

#[test]
fn iterators_of_numbers_and_of_options() -> Outcome {
    let v = [1.5, 2.5];
    assert_eq!(v.iter().exact_sum(), 4.0);
    assert_eq!(v.iter().map(|x| x * x).exact_mean(), 4.25);
    assert_eq!([Some(1.0), None, Some(2.0)].iter().flatten().exact_sum(), 3.0);
    assert_eq!((1..=4).exact_var(1), 5.0 / 3.0);
    assert_eq!([1, 3].iter().exact_std(0), 1.0);
    let total: f64 = v.iter().sum::<Accumulator<f64>>().finish()?.try_into()?;
    assert_eq!(total, 4.0);
    let parsed: Result<Vec<f64>, _> = "1 2 x".split(' ').map(str::parse).collect();
    assert!(parsed.is_err());
    Ok(())
}

#[test]
fn rayon() -> Outcome {
    use rayon::prelude::*;
    let v: Vec<f64> = (0..100_000).map(|i| f64::from(i) * 0.1).collect();
    let exact = sum(&v);
    let total: f64 = v.par_iter().sum::<Accumulator<f64>>().finish()?.try_into()?;
    assert_eq!(total, exact);
    let total: f64 =
        v.par_iter().map(|x| x * 2.0).sum::<Accumulator<f64>>().finish()?.try_into()?;
    assert_eq!(total, exact * 2.0);
    let pushed = |mut seen: Accumulator<f64>, x: f64| {
        seen.push(x);
        seen
    };
    let folded: Accumulator<f64> = v.into_par_iter().fold(Accumulator::default, pushed).sum();
    assert_eq!(f64::try_from(folded.finish()?)?, exact);
    Ok(())
}

#[test]
fn answers_as_plain_numbers() -> Outcome {
    let v = [1, 2, 4];
    let total: i64 = Reduction::of(Op::Sum).run(&v)?.try_into()?;
    let as_float: f64 = Reduction::sum().run(&v)?.try_into()?;
    let place: usize = Reduction::argmax().run(&v)?.try_into()?;
    let ends: (i32, i32) = Reduction::minmax().run(&v)?.try_into()?;
    let truth: bool = Reduction::any().run(&v)?.try_into()?;
    assert_eq!((total, as_float, place, ends, truth), (7, 7.0, 2, (1, 4), true));
    let sums: Vec<f64> = Reduction::sum().axis(0).run(&[[1.0, 2.0], [3.0, 4.0]])?.try_into()?;
    assert_eq!(sums, [4.0, 6.0]);
    let wide: Vec<f64> = Reduction::sum().axis(1).run(&[[1, 2], [3, 4]])?.try_into()?;
    assert_eq!(wide, [3.0, 7.0]);
    Ok(())
}

/// Numbers are converted where nothing is lost, and otherwise the error says what they are.
#[test]
fn answers_as_what_they_are_not() {
    let v = [0.1, 0.2];
    let message = |result: Result<f32, Error>| {
        let error = result.unwrap_err();
        assert!(error.hint().is_some(), "{error}");
        error.to_string()
    };
    let run = |question: Reduction| question.run(&v).unwrap();
    let sum = Reduction::sum;
    assert_eq!(
        message(run(sum()).try_into()),
        "the answer is 0.30000000000000004 of f64, which no f32 is"
    );
    assert_eq!(f32::try_from(run(sum().out(DType::F32))), Ok(0.3));
    assert_eq!(message(run(sum().axes([])).try_into()), "there are 2 answers, not one");
    assert_eq!(message(run(Reduction::minmax()).try_into()), "minmax answers 2 numbers, not 1");
    let two = Reduction::new([Op::Sum, Op::Max]);
    assert_eq!(message(run(two).try_into()), "there are answers to 2 operations, not to one");
    assert!(<(f64, f64)>::try_from(run(sum())).is_err());
    assert!(<(f64, f64)>::try_from(run(Reduction::minmax())).is_ok());
    assert!(i64::try_from(Reduction::sum().run(&[1.5, 0.25]).unwrap()).is_err());
    assert_eq!(i64::try_from(Reduction::sum().run(&[1.5, 0.5]).unwrap()), Ok(2));
    assert_eq!(u8::try_from(Reduction::sum().run(&[200, 55]).unwrap()), Ok(255));
    assert!(u8::try_from(Reduction::sum().run(&[200, 56]).unwrap()).is_err());
    let none: Vec<i64> = Reduction::sum().axis(1).run(&[[0i32; 2]; 0]).unwrap().try_into().unwrap();
    assert!(none.is_empty());
}

#[test]
fn every_operation_has_its_name() {
    let named = [
        Reduction::sum(),
        Reduction::mean(),
        Reduction::norm1(),
        Reduction::norm2(),
        Reduction::norm_inf(),
        Reduction::sumsq(),
        Reduction::dot(),
        Reduction::var(),
        Reduction::std(),
        Reduction::min(),
        Reduction::max(),
        Reduction::minmax(),
        Reduction::range(),
        Reduction::argmin(),
        Reduction::argmax(),
        Reduction::argminmax(),
        Reduction::any(),
        Reduction::all(),
        Reduction::count(),
        Reduction::count_nonzero(),
        Reduction::count_nan(),
        Reduction::and(),
        Reduction::or(),
        Reduction::xor(),
        Reduction::prod(),
        Reduction::logsumexp(),
    ];
    let mut ops: Vec<Op> = named.iter().map(|question| question.ops()[0]).collect();
    let mut every = Op::ALL.to_vec();
    ops.sort_unstable();
    every.sort_unstable();
    assert_eq!(ops, every);
}

#[test]
fn threads_policies_and_divisors() -> Outcome {
    let v = [1.0, f64::NAN, 4.0];
    let mean: f64 = Reduction::mean().nan(NanPolicy::Omit).threads(4).run(&v)?.try_into()?;
    let sample: f64 = Reduction::var().ddof(1).run(&[1, 3])?.try_into()?;
    let narrow: f32 = Reduction::sum().out(DType::F32).run(&[0.1, 0.2])?.try_into()?;
    assert_eq!((mean, sample, narrow), (2.5, 2.0, 0.3));
    Ok(())
}

#[test]
fn groups_and_segments() -> Outcome {
    let (fruit, price) = (["apple", "pear", "apple"], [1.0, 2.0, 4.0]);
    let sums = Reduction::sum().by(&fruit).run(&price)?;
    let keys = sums.keys()[0].texts().unwrap_or_default();
    let totals: HashMap<_, _> = keys.iter().zip(sums.slice::<f64>(Op::Sum).unwrap()).collect();
    assert_eq!(totals[&Some("apple")], &5.0);
    let years = vec![2023u16, 2024, 2023];
    let most = Reduction::max().by(&years).run(&price)?;
    let pairs =
        most.keys()[0].slice::<u16>().unwrap().iter().zip(most.slice::<f64>(Op::Max).unwrap());
    assert_eq!(pairs.collect::<BTreeMap<_, _>>(), [(&2023, &4.0), (&2024, &2.0)].into());
    let offsets = vec![0usize, 1, 3];
    let pieces = Reduction::sum().segments(Segments::Offsets(&offsets));
    let sums: Vec<f64> = pieces.run(&price)?.try_into()?;
    assert_eq!(sums, [1.0, 6.0]);
    Ok(())
}

#[cfg(feature = "ndarray")]
mod with_ndarray {
    use super::*;
    use ndarray::{Array1, Array2, Array3, ArrayD, Axis, array, s};
    use warpfold::{argmin, sumsq};

    #[test]
    fn arrays_of_any_number_of_axes() -> Outcome {
        let one: Array1<f64> = array![0.1, 0.2, 0.3];
        let two: Array2<f32> = array![[1.0, 2.0], [3.0, 4.0]];
        let three = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (i * 12 + j * 4 + k) as i32);
        assert_eq!(sum(&one), 0.6);
        assert_eq!(sum(&two), 10.0);
        assert_eq!(sum(&three), 276);
        assert_eq!(sum(three.view()), 276);
        assert_eq!(sum(two.clone()), 10.0);
        assert_eq!(mean(&two.t()), 2.5);
        assert_eq!(max(three.slice(s![0, .., ..])), Some(11));
        assert_eq!(var(two.row(0), 1), 0.5);
        assert_eq!(norm(two.column(0).mapv(f64::from)), 10f64.sqrt());
        assert_eq!(dot(&one, one.view())?, sumsq(&one));
        assert_eq!(dot(&one, &vec![1.0; 3])?, 0.6);
        assert!(dot(&two, &array![[1.0, 2.0, 3.0, 4.0]]).is_err());
        assert!(any(&three.mapv(|x| x > 22)));
        Ok(())
    }

    #[test]
    fn answers_over_an_axis() -> Outcome {
        let a = array![[1.0, 2.0], [3.0, 5.0]];
        let sums: Array1<f64> = Reduction::sum().axis(0).run(&a)?.into_array()?;
        assert_eq!(sums, array![4.0, 7.0]);
        let kept: Array2<f64> = Reduction::mean().axis(1).keepdims(true).run(&a)?.into_array()?;
        assert_eq!(kept, array![[1.5], [4.0]]);
        let any_rank = Reduction::max().axis(-1).run(&a)?.into_array::<f64, ndarray::IxDyn>()?;
        assert_eq!(any_rank, array![2.0, 5.0].into_dyn());
        let places: ArrayD<usize> = Reduction::argmax().axis(0).run(&a)?.into_array()?;
        assert_eq!(places, array![1usize, 1].into_dyn());
        let error = Reduction::sum().run(&a)?.into_array::<f64, ndarray::Ix1>().unwrap_err();
        assert_eq!(error.to_string(), "the answer has the shape [], not one of 1 axes");
        assert!(error.hint().is_some());
        assert!(Reduction::mean().run(&a)?.into_array::<i32, ndarray::Ix0>().is_err());
        Ok(())
    }

    /// Wherever elements lie, answers and positions are those of the elements in C order.
    #[test]
    fn any_strides() -> Outcome {
        let base = Array3::from_shape_fn((7, 40, 33), |(i, j, k)| {
            ((i * 31 + j * 17 + k * 7) % 101) as f64 * 0.1 - 3.0
        });
        let views = [
            base.view(),
            base.view().reversed_axes(),
            base.slice(s![..;2, 3.., ..;-1]),
            base.slice(s![.., ..;3, 5..6]),
            base.slice(s![..0, .., ..]),
            base.view().permuted_axes([1, 0, 2]),
        ];
        for view in views {
            let flat: Vec<f64> = view.iter().copied().collect();
            assert_eq!((sum(view), mean(view).to_bits()), (sum(&flat), mean(&flat).to_bits()));
            assert_eq!((argmax(view), argmin(&view)), (argmax(&flat), argmin(&flat)));
            assert_eq!(
                (minmax(view), prod(view).to_bits()),
                (minmax(&flat), prod(&flat).to_bits())
            );
            assert_eq!(dot(view, view.to_owned())?, dot(&flat, &flat)?);
            assert_eq!((all(view), count_nonzero(view)), (all(&flat), count_nonzero(&flat)));
        }
        let (a, b) = (base.view(), base.slice(s![..;-1, .., ..]));
        let flat = [a, b].map(|view| view.iter().copied().collect::<Vec<f64>>());
        assert_eq!(dot(a, b)?, dot(&flat[0], &flat[1])?);
        assert_eq!(base.axis_iter(Axis(0)).map(sum).exact_sum(), {
            let sums: Vec<f64> = Reduction::sum().axes([1, 2]).run(&base)?.try_into()?;
            sum(sums)
        });
        Ok(())
    }
}

#[cfg(feature = "serde")]
#[test]
fn an_accumulator_in_json() -> Outcome {
    let question = Reduction::new([Op::Var, Op::ArgMax]).ddof(1).nan(NanPolicy::Omit);
    let mut seen = question.accumulator::<f64>()?;
    seen.extend([1.0, f64::NAN, 0.5]);
    let text = serde_json::to_string(&seen)?;
    let mut back: Accumulator<f64> = serde_json::from_str(&text)?;
    assert_eq!(back.position(), 3);
    for more in [&mut seen, &mut back] {
        more.extend((0..5000).map(|i| f64::from(i % 1000) * 0.1));
    }
    assert_eq!(back.finish()?, seen.finish()?);
    let all: Vec<f64> = [1.0, f64::NAN, 0.5]
        .into_iter()
        .chain((0..5000).map(|i| f64::from(i % 1000) * 0.1))
        .collect();
    assert_eq!(back.finish()?, question.run(&all)?);
    assert_eq!(back.finish()?.number::<u64>(Op::ArgMax), Some(1002));
    // What cannot be written, or is of something else.
    assert!(serde_json::from_str::<Accumulator<f32>>(&text).is_err());
    assert!(
        serde_json::from_str::<Accumulator<f64>>(&text.replace("\"position\"", "\"place\""))
            .is_err()
    );
    let mut split = Accumulator::<f64>::default();
    split.absorb_bytes(&[1, 2, 3])?;
    let error = serde_json::to_string(&split).unwrap_err();
    assert!(error.to_string().contains("3 of its 8 bytes"), "{error}");
    Ok(())
}

/// A question with a token has the answers of one without, and none once it was cancelled.
#[test]
fn a_token_that_is_cancelled_before_or_after() -> Outcome {
    let (v, keys, token) = (vec![0.1; 1000], vec![1; 1000], CancelToken::new());
    let plain = Reduction::new([Op::Sum, Op::ArgMax]);
    let watched = plain.clone().until(&token);
    let segments = Segments::Fixed(10);
    let mask = vec![true; 1000];
    let input = || Input::selected(&v, &mask).unwrap();
    assert_eq!(watched.run(&v)?, plain.run(&v)?);
    assert_eq!(watched.partial(&v, 5)?, plain.partial(&v, 5)?);
    assert_eq!(watched.by(&keys).run(&v)?, plain.by(&keys).run(&v)?);
    assert_eq!(
        watched.clone().segments(segments).run(&v)?,
        plain.clone().segments(segments).run(&v)?
    );
    token.cancel();
    assert!(token.is_cancelled() && token.clone().is_cancelled());
    assert_eq!(watched.run(&v), Err(Error::Cancelled));
    assert_eq!(watched.run(input()), Err(Error::Cancelled));
    assert_eq!(watched.partial(&v, 5), Err(Error::Cancelled));
    assert_eq!(watched.by(&keys).run(&v), Err(Error::Cancelled));
    assert_eq!(watched.clone().segments(segments).run(&v), Err(Error::Cancelled));
    assert_eq!(Reduction::dot().until(&token).run_pair(&v, &v), Err(Error::Cancelled));
    let mut accumulator = watched.accumulator::<f64>()?;
    assert_eq!(accumulator.absorb(&[0.5; 10_000]), Err(Error::Cancelled));
    assert!(plain.run(&v)?.shape().is_empty());
    Ok(())
}

/// Of an array of several pieces a token ends what has begun; what is not ended has the bits of one without.
#[test]
fn a_token_ends_what_has_begun() -> Outcome {
    use warpfold::View;
    use warpfold::internal::WhileWanted;
    // 136 MiB that are 1 MiB: every row is the same.
    let row: Vec<f64> = (0..1 << 17).map(|i| f64::from(i % 1013) * 0.1).collect();
    let views = [
        View::of_strided(&row, 0, &[136, 1 << 17], &[0, 1])?,
        View::of_strided(&row, 0, &[1 << 17, 136], &[1, 0])?,
        View::of_strided(&row, 0, &[2, 68, 256, 512], &[0, 0, 512, 1])?,
    ];
    for (turn, view) in views.iter().enumerate() {
        let axes = [vec![0], vec![-1], (0..view.shape().len() as isize).collect()];
        let ops = [vec![Op::Sum], vec![Op::Max], vec![Op::ArgMax, Op::MinMax]];
        // Two of these questions of each view: what comes in pieces is the layout's affair.
        for (axes, ops) in axes.into_iter().zip(ops).cycle().skip(turn).take(2) {
            let question = Reduction::new(ops).axes(axes);
            let mut asked = 0;
            let cut_up = question.run_while([Some(view), None], &mut || {
                asked += 1;
                true
            })?;
            assert!(asked >= 3, "{question:?}: {asked}");
            assert_eq!(cut_up, question.run(view)?, "{question:?} of {:?}", view.shape());
            let mut left = 2;
            let ended = question.run_while([Some(view), None], &mut || {
                left -= 1;
                left >= 0
            });
            assert_eq!((ended, left), (Err(Error::Cancelled), -1));
        }
    }
    let question = Reduction::new([Op::Sum, Op::ArgMin]).until(&CancelToken::new());
    let whole = Reduction::new([Op::Sum, Op::ArgMin]);
    assert_eq!(question.partial(&views[0], 9)?, whole.partial(&views[0], 9)?);
    let kept = [question.clone().axis(0).keepdims(true), whole.clone().axis(0).keepdims(true)];
    assert_eq!(kept[0].partial(&views[1], 3)?, kept[1].partial(&views[1], 3)?);
    let dots = Reduction::dot().until(&CancelToken::new());
    assert_eq!(
        dots.run_pair(&views[0], &views[0])?,
        Reduction::dot().run_pair(&views[0], &views[0])?
    );
    assert!(dots.run_pair(&views[0], &views[1]).is_err());
    Ok(())
}
