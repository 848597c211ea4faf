//! What a Rust programmer would try first: each line here was guessed, not looked
//! up, and has to compile and be right.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::error::Error;
use warpfold::internal::ForReaders;
use warpfold::{
    Accumulator, Answer, Axes, Column, DType, Device, ExactSum, Input, NanPolicy, Op, Partial,
    Reduction, Rules, Scalar, Threads, Value, View, bf16, f16,
};

type Outcome = Result<(), Box<dyn Error>>;

#[test]
fn slices() {
    let data = [0.1, 0.2, 0.3];
    assert_eq!(warpfold::sum(&data[1..]), 0.5);
}

#[test]
fn arrays() {
    assert_eq!(warpfold::mean(&[1.0, 2.0, 4.0]), 7.0 / 3.0);
}

#[test]
fn vectors() {
    let data = vec![1.0f32, 2.0];
    assert_eq!(warpfold::sum(&data), 3.0f32);
}

#[test]
fn boxes_and_shared_slices() -> Outcome {
    let boxed: Box<[f64]> = Box::new([1.0, 2.0]);
    let shared: std::sync::Arc<[f64]> = boxed.clone().into();
    let cow = std::borrow::Cow::Borrowed(&boxed[..]);
    assert_eq!(warpfold::sum(&boxed), 3.0);
    assert_eq!(warpfold::sum(&shared), 3.0);
    let sum = Reduction::of(Op::Sum);
    assert_eq!(sum.run(&boxed)?, sum.run(&shared)?);
    assert_eq!(sum.run(&boxed)?, sum.run(&cow)?);
    Ok(())
}

#[test]
fn a_slice_that_can_be_written_to() -> Outcome {
    let mut data: Vec<i32> = (1..3).collect();
    data[0] = 7;
    assert_eq!(Reduction::of(Op::Sum).run(&mut data[..])?.number::<i64>(Op::Sum), Some(9));
    Ok(())
}

#[test]
fn a_deque_as_an_iterator_or_in_one_piece() -> Outcome {
    let mut deque: VecDeque<f64> = (0..5).map(f64::from).collect();
    deque.rotate_left(2);
    assert_eq!(deque.iter().exact_sum(), 10.0);
    let whole = Reduction::of(Op::ArgMax).run(deque.make_contiguous())?;
    assert_eq!(whole.number::<u64>(Op::ArgMax), Some(2));
    Ok(())
}

#[test]
fn iterators_of_values_and_of_references() {
    let data = [1e16, 1.0, -1e16];
    assert_eq!(data.iter().exact_sum(), 1.0);
    assert_eq!(data.into_iter().exact_sum(), 1.0);
    assert_eq!(data.iter().filter(|&&x| x > -2.0 && x < 2.0).exact_mean(), 1.0);
    assert_eq!((1..=4u8).exact_var(0), 1.25);
    assert_eq!([1, 3].iter().exact_std(0), 1.0);
    assert_eq!(std::iter::empty::<f32>().exact_sum().to_bits(), 0);
    assert!(std::iter::empty::<i32>().exact_mean().is_nan());
}

#[test]
fn a_field_of_many_structures() {
    struct Sale {
        price: f32,
    }
    let sales: HashMap<u32, Sale> = (0..10_000).map(|i| (i, Sale { price: 0.1 })).collect();
    let exact = (10_000.0 * f64::from(0.1f32)) as f32;
    assert_eq!(sales.values().map(|sale| sale.price).exact_sum(), exact);
}

#[test]
fn many_truths() {
    assert!(warpfold::any(&[false, true]));
    assert!(!warpfold::all(&[false, true]));
    assert_eq!(warpfold::sum(&[true, true, false]), 2);
    let flags: Vec<bool> = (0..9).map(|i| i % 2 == 0).collect();
    assert_eq!(warpfold::count_nonzero(&flags), 5);
    assert_eq!(warpfold::min(&[true, false]), Some(false));
    assert_eq!(warpfold::argmax(&[false, true]), Some(1));
    assert_eq!([true, false].iter().map(|&x| !x).exact_sum(), 1);
}

#[test]
fn truths_of_a_reduction() -> Outcome {
    let answer = Reduction::new([Op::Any, Op::All, Op::Max]).run(&[true, false])?;
    assert_eq!(answer.number(Op::Any), Some(true));
    assert_eq!(answer.number(Op::All), Some(false));
    assert_eq!(answer.slice::<bool>(Op::Max), Some(&[true][..]));
    let flags = vec![true; 3];
    assert_eq!(Reduction::of(Op::All).run(&flags)?.number(Op::All), Some(true));
    Ok(())
}

#[test]
fn sizes_and_differences_of_sizes() -> Outcome {
    let words = ["a", "bcd", ""];
    let lengths: Vec<usize> = words.iter().map(|word| word.len()).collect();
    assert_eq!(warpfold::sum(&lengths), 4);
    assert_eq!(warpfold::max(&lengths), Some(3usize));
    assert_eq!(warpfold::argmax(&lengths), Some(1));
    assert_eq!(warpfold::min(&[-1isize, 2]), Some(-1));
    assert_eq!(words.iter().map(|word| word.len()).exact_sum(), 4);
    assert_eq!(Reduction::of(Op::Sum).run(&lengths)?.number::<usize>(Op::Sum), Some(4));
    Ok(())
}

#[test]
fn integers_answer_as_the_table_says() {
    let _: i64 = warpfold::sum(&[1i8]);
    let _: i64 = warpfold::sum(&[1i32]);
    let _: u64 = warpfold::sum(&[1u32]);
    let _: i128 = warpfold::sum(&[1i64]);
    let _: i128 = warpfold::sum_i128(&[1u8]);
    assert_eq!(warpfold::sum(&[i32::MIN; 3]), 3 * i64::from(i32::MIN));
    assert_eq!(warpfold::sum(&[u64::MAX, 1]), 1 << 64);
    assert_eq!(warpfold::norm1(&[i64::MIN, -1]), (1i128 << 63) + 1);
    assert_eq!(warpfold::norm1(&[-3, 4]), 7i64);
    assert_eq!(warpfold::norm_inf(&[-3i8, 2]), 3);
    assert_eq!(warpfold::range(&[i64::MIN, i64::MAX]), Some(u64::MAX));
}

#[test]
fn means_and_variances_of_integers() {
    assert_eq!(warpfold::mean(&[1, 2, 4]), 7.0 / 3.0);
    assert_eq!(warpfold::var(&[1u8, 3], 0), 1.0);
    assert_eq!(warpfold::std(&[u64::MAX, u64::MAX - 2], 0), 1.0);
    assert_eq!(warpfold::norm2(&[3, 4]), 5.0);
}

#[test]
fn minima_of_nothing() {
    assert_eq!(warpfold::min::<f64>(&[]), None);
    assert_eq!(warpfold::argmin::<u8>(&[]), None);
    assert_eq!(warpfold::range::<i32>(&[]), None);
    let failed = Reduction::of(Op::Min).run(&[0.0; 0]);
    assert_eq!(failed, Err(warpfold::Error::Empty { op: Op::Min }));
}

#[test]
fn sums_of_nothing() {
    let nothing: [f64; 0] = [];
    assert_eq!(warpfold::sum(&nothing), 0.0);
    assert_eq!(warpfold::norm_inf(&nothing), 0.0);
    assert_eq!(warpfold::norm_inf::<i8>(&[]), 0);
    assert!(warpfold::mean(&nothing).is_nan());
    assert!(warpfold::all(&nothing) && !warpfold::any(&nothing));
}

#[test]
fn positions_of_floats() {
    assert_eq!(warpfold::argmax(&[1.0f32, 3.0, 2.0]), Some(1));
    assert_eq!(warpfold::argmin(&[f16::ONE, f16::ZERO]), Some(1));
    assert_eq!(warpfold::minmax(&[bf16::ONE, bf16::ZERO]), Some((bf16::ZERO, bf16::ONE)));
}

#[test]
fn dots() -> Outcome {
    assert_eq!(warpfold::dot(&[1.5], &[2.0])?, 3.0);
    assert_eq!(warpfold::dot_i128(&[1, 2, 3], &[4, 5, 6])?, 32);
    assert_eq!(warpfold::dot_i128(&[true, true], &[true, false])?, 1);
    assert_eq!(warpfold::dot_i128(&[i64::MIN], &[i64::MIN])?, 1 << 126);
    assert!(warpfold::dot(&[1.0], &[1.0, 2.0]).is_err());
    assert!(warpfold::dot_i128(&[1], &[1, 2]).is_err());
    assert!(warpfold::dot_i128(&[i64::MIN; 2], &[i64::MIN; 2]).is_err());
    let answer = Reduction::of(Op::Dot).run_pair(&vec![1, 2], &[3, 4])?;
    assert_eq!(answer.number::<i64>(Op::Dot), Some(11));
    Ok(())
}

#[test]
fn what_does_not_fit_says_so() {
    let error = Reduction::of(Op::Sum).run(&[u64::MAX, 1]).unwrap_err();
    assert_eq!(error.to_string(), "sum is 18446744073709551616, which does not fit u64");
}

#[test]
fn nans() -> Outcome {
    let data = [1.0, f64::NAN, 4.0];
    let mean = Reduction::of(Op::Mean);
    assert!(mean.run(&data)?.number::<f64>(Op::Mean).is_some_and(f64::is_nan));
    assert_eq!(mean.clone().nan("omit".parse()?).run(&data)?.number(Op::Mean), Some(2.5));
    assert!(mean.nan(NanPolicy::Error).run(&data).is_err());
    assert!(warpfold::max(&data).is_some_and(f64::is_nan));
    Ok(())
}

#[test]
fn names() -> Outcome {
    let op: Op = "sum".parse()?;
    let dtype = "f32".parse::<DType>()?;
    let answer = Reduction::of(op).out(dtype).run(&[1u8, 2])?;
    assert_eq!(answer.number::<f32>(Op::Sum), Some(3.0));
    assert_eq!("cuda:1".parse::<Device>()?, Device::Cuda(Some(1)));
    assert_eq!("argminmax".parse::<Op>()?.to_string(), "argminmax");
    Ok(())
}

#[test]
fn names_that_are_none() {
    let error = "averge".parse::<Op>().unwrap_err();
    assert_eq!(error.to_string(), "\"averge\" is not an operation");
    assert!(error.hint().is_some_and(|hint| hint.contains("mean")));
    assert!("f128".parse::<DType>().is_err() && "gpu".parse::<Device>().is_err());
    let boxed: Box<dyn Error + Send + Sync> = "".parse::<NanPolicy>().unwrap_err().into();
    assert_eq!(boxed.to_string(), "\"\" is not a policy for NaNs");
}

#[test]
fn matching_an_operation() {
    let about = |op| match op {
        Op::Sum | Op::Mean => "adds",
        Op::Min | Op::Max => "compares",
        _ => "else",
    };
    assert_eq!(Op::ALL.map(about)[0], "adds");
}

#[test]
fn operations_and_types_as_keys() {
    let mut calls: HashMap<(Op, DType), u32> = HashMap::new();
    *calls.entry((Op::Sum, DType::F32)).or_default() += 1;
    assert_eq!(calls[&(Op::Sum, DType::F32)], 1);
    let sorted: BTreeMap<Op, DType> = [(Op::Max, DType::I8), (Op::Sum, DType::F64)].into();
    assert_eq!(sorted.first_key_value(), Some((&Op::Sum, &DType::F64)));
    let policies: HashSet<_> = NanPolicy::ALL.into_iter().collect();
    assert_eq!(policies.len(), 3);
}

#[test]
fn printing_answers() -> Outcome {
    let data = [1.0, 2.5, -4.0];
    assert_eq!(Reduction::of(Op::Sum).run(&data)?.to_string(), "-0.5");
    assert_eq!(format!("{:.1}", Reduction::of(Op::Sum).run(&data)?), "-0.5");
    let both = Reduction::new([Op::Sum, Op::MinMax]).run(&data)?;
    assert_eq!(format!("{both}"), "sum: -0.5\nminmax: (-4, 2.5)");
    let rows = Reduction::of(Op::Max).axis(1).keepdims(true).run(&[[1, 2], [3, 4]])?;
    assert_eq!(format!("{rows}"), "[[2], [4]]");
    assert_eq!(Reduction::of(Op::Sum).axis(1).run(&[[0u8; 2]; 0])?.to_string(), "[]");
    assert!(format!("{both:?}").contains("Sum"));
    let wide = View::from_bytes(DType::I8, &[], &[1 << 40, 0, 3])?;
    assert_eq!(Reduction::of(Op::Sum).axis(2).run(wide)?.to_string(), "[]");
    assert_eq!(Scalar::F32(0.1).to_string(), "0.1");
    Ok(())
}

#[test]
fn rows_of_one_length() -> Outcome {
    let table = [[1, 2, 3], [4, 5, 6]];
    let columns = Reduction::of(Op::Sum).axis(0).run(&table)?;
    assert_eq!(columns.slice::<i64>(Op::Sum), Some(&[5, 7, 9][..]));
    let rows: Vec<[f32; 2]> = vec![[1.0, 2.0], [3.0, 4.0]];
    assert_eq!(Reduction::of(Op::Max).axis(-1).run(&rows)?.to_string(), "[2, 4]");
    assert_eq!(Reduction::of(Op::Sum).axis(0).run(&rows[..0])?.to_string(), "[0, 0]");
    let none = Reduction::of(Op::Sum).axis(1).run(&[[0u8; 0]; 3])?;
    assert_eq!(none.slice::<u64>(Op::Sum), Some(&[0, 0, 0][..]));
    Ok(())
}

#[test]
fn a_view_by_value_and_by_reference() -> Outcome {
    let data = [1, 2, 3, 4];
    let view = View::of_strided(&data, 1, &[2], &[2])?;
    let sum = Reduction::of(Op::Sum);
    assert_eq!(sum.run(&view)?, sum.run(view)?);
    Ok(())
}

#[test]
fn pushing_numbers() -> Outcome {
    let mut numbers = Accumulator::<f64>::new([Op::Mean, Op::Var])?;
    for i in 0..10_000 {
        numbers.push(f64::from(i));
    }
    assert_eq!(numbers.finish()?.number::<f64>(Op::Mean), Some(4999.5));
    Ok(())
}

#[test]
fn collecting_and_extending() -> Outcome {
    let mut sums: Accumulator<i32> = (1..=10).collect();
    sums.extend(&[100, 200]);
    sums.extend(vec![1000]);
    assert_eq!(sums.finish()?.number::<i64>(Op::Sum), Some(1355));
    let summed: Accumulator<f32> = [0.5f32; 3].iter().sum();
    assert_eq!(summed.finish()?.to_string(), "1.5");
    let flags: Accumulator<bool> = [true, false].into_iter().collect();
    assert_eq!(flags.finish()?.number::<u64>(Op::Sum), Some(1));
    Ok(())
}

#[test]
fn merging_in_a_reduce_of_rayon() -> Outcome {
    use rayon::prelude::*;
    let new = || Accumulator::<f64>::new([Op::Sum, Op::Max]);
    let all = (0..100_000u32)
        .into_par_iter()
        .map(|i| f64::from(i) * 0.1)
        .try_fold(new, |mut all, x| {
            all.as_mut().map(|all| all.push(x)).map_err(|e| e.clone())?;
            Ok::<_, warpfold::Error>(all)
        })
        .try_reduce(new, |mut left, right| {
            left.as_mut().map_err(|e| e.clone())?.merge(&right?)?;
            Ok(left)
        })??;
    let serial = (0..100_000u32).map(|i| f64::from(i) * 0.1).exact_sum();
    assert_eq!(all.finish()?.number(Op::Sum), Some(serial));
    Ok(())
}

#[test]
fn summing_what_threads_have() -> Outcome {
    let data: Vec<f32> = (0..9999).map(|i| i as f32 * 0.1).collect();
    let all: Accumulator<f32> = std::thread::scope(|scope| {
        let parts: Vec<_> = data.chunks(1000).collect();
        let threads = parts.into_iter().map(|part| scope.spawn(|| part.iter().sum()));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|t| -> Accumulator<f32> { t.join().unwrap() }).sum()
    });
    assert_eq!(all.finish()?.number(Op::Sum), Some(warpfold::sum(&data)));
    Ok(())
}

#[test]
fn partials_as_bytes() -> Outcome {
    let data = [3, 1, 2];
    let question = Reduction::new([Op::ArgMin, Op::Sum]);
    let sent = question.partial(&data[..2], 0)?.to_bytes();
    let mut all = Partial::from_bytes(&sent)?;
    all.merge(&question.partial(&data[2..], 2)?)?;
    assert_eq!(all.finish(&Rules::default())?, question.run(&data)?);
    Ok(())
}

#[test]
fn comparing_answers_and_partials() -> Outcome {
    let sum = Reduction::of(Op::Sum);
    assert_eq!(sum.run(&[0.1, 0.2])?, sum.run(&[0.2, 0.1])?);
    assert_ne!(sum.run(&[0.1])?, sum.run(&[0.2])?);
    let mut split = sum.partial(&[0.1], 0)?;
    split.merge(&sum.partial(&[0.2], 1)?)?;
    assert_eq!(split, sum.partial(&[0.1, 0.2], 0)?);
    assert_ne!(split, sum.partial(&[0.1, 0.3], 0)?);
    assert_ne!(split, sum.partial(&[0.1f32, 0.2], 0)?);
    Ok(())
}

#[test]
fn accumulators_from_partials_and_back() -> Outcome {
    let question = Reduction::new([Op::Mean, Op::ArgMax]);
    let mut all = Accumulator::try_from(question.partial(&[1.0, 9.0], 0)?)?.starting_at(2);
    all.extend([2.0]);
    let partial: Partial = all.try_into()?;
    assert_eq!(partial, question.partial(&[1.0, 9.0, 2.0], 0)?);
    assert!(Accumulator::<f32>::try_from(partial).is_err());
    Ok(())
}

#[test]
fn a_question_mark_in_main() {
    fn main() -> Result<f64, Box<dyn Error>> {
        let answer = Reduction::of("norm2".parse()?).run(&[3.0, 4.0])?;
        answer.number(Op::Norm2).ok_or_else(|| "no answer".into())
    }
    assert_eq!(main().unwrap(), 5.0);
}

#[test]
fn everything_can_be_sent_and_shared() {
    fn sent<T: Send + Sync + 'static>() {}
    sent::<(Answer, Column, Value, Scalar, warpfold::Numbers, Op, DType)>();
    sent::<(Partial, Reduction, Rules, NanPolicy, Device, Threads, Axes)>();
    sent::<(warpfold::Error, View<'static>, Input<'static>, Accumulator<f64>)>();
    sent::<(Accumulator<bool>, Accumulator<usize>, warpfold::internal::AnyState)>();
}

#[test]
fn everything_can_be_printed_for_debugging() {
    fn printed<T: std::fmt::Debug + Clone>() {}
    printed::<(Answer, Column, Value, Scalar, warpfold::Numbers, Op, DType)>();
    printed::<(Partial, Reduction, Rules, NanPolicy, Device, Threads, Axes)>();
    printed::<(warpfold::Error, View<'_>, Input<'_>, Accumulator<f64>, warpfold::Bool8)>();
    let workers = Reduction::of(Op::Sum).workers(DType::F32, 1).unwrap();
    assert_eq!(format!("{workers:?}"), "Workers([Sum] of f32, cpu)");
}

#[test]
fn numbers_and_values_are_taken_apart() -> Outcome {
    let answer = Reduction::of(Op::MinMax).run(&[2u8, 9])?;
    let Some(Value::Pair(low, high)) = answer.value() else { return Err("no pair".into()) };
    assert_eq!((low.to_f64(), high.to_f64()), (2.0, 9.0));
    assert_eq!(answer.value().map(|value| value.to_string()), Some("(2, 9)".into()));
    Ok(())
}

#[test]
fn a_column_with_missing_values() -> Outcome {
    let prices = Input::masked(&[1.0, 99.0, 3.0], &[0b101], 0)?;
    let answer = Reduction::new([Op::Mean, Op::ArgMax, Op::Count]).run(prices)?;
    assert_eq!(answer.number(Op::Mean), Some(2.0));
    assert_eq!(answer.number::<u64>(Op::ArgMax), Some(2));
    assert_eq!(answer.number::<u64>(Op::Count), Some(2));
    Ok(())
}

#[cfg(feature = "ndarray")]
mod with_ndarray {
    use super::*;
    use ndarray::{Array2, array, s};

    #[test]
    fn arrays_by_reference() -> Outcome {
        let table = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let sum = Reduction::of(Op::Sum);
        assert_eq!(sum.run(&table)?.to_string(), "21");
        assert_eq!(sum.run(table.view())?.to_string(), "21");
        assert_eq!(sum.run(&table.to_shared())?.to_string(), "21");
        assert_eq!(sum.run(table.t())?, sum.run(&table)?);
        Ok(())
    }

    #[test]
    fn answers_over_an_axis_as_arrays() -> Outcome {
        let table = Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as i32);
        let sums = Reduction::of(Op::Sum).axis(0).run(&table)?;
        assert_eq!(sums.array::<i64>(Op::Sum), Some(array![12, 15, 18, 21].view().into_dyn()));
        assert_eq!(sums.array::<f64>(Op::Sum), None);
        let every_other = Reduction::of(Op::Max).axis(1).run(table.slice(s![..;2, ..;-2]))?;
        assert_eq!(every_other.array(Op::Max), Some(array![3, 11].view().into_dyn()));
        let whole = Reduction::of(Op::Any).run(&table.mapv(|x| x > 3))?;
        assert_eq!(whole.array::<bool>(Op::Any).map(|a| a.ndim()), Some(0));
        Ok(())
    }

    #[test]
    fn arrays_of_sizes_and_of_none() -> Outcome {
        let sizes = array![[1usize, 2], [3, 4]];
        let most = Reduction::of(Op::Max).axis(0).run(&sizes)?;
        assert_eq!(most.array::<usize>(Op::Max), Some(array![3, 4].view().into_dyn()));
        let none = Array2::<f32>::zeros((0, 3));
        assert_eq!(Reduction::of(Op::Sum).axis(0).run(&none)?.to_string(), "[0, 0, 0]");
        assert_eq!(Reduction::of(Op::Sum).axis(1).run(&none)?.shape(), [0]);
        Ok(())
    }
}

#[cfg(feature = "arrow")]
mod with_arrow {
    use super::*;
    use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int32Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn a_column_with_nulls() -> Outcome {
        let column = Float64Array::from(vec![Some(1.0), None, Some(4.0), None]);
        let answer = Reduction::new([Op::Mean, Op::Count, Op::ArgMax, Op::Prod]).run(&column)?;
        assert_eq!(answer.to_string(), "mean: 2.5\ncount: 2\nargmax: 2\nprod: 4");
        assert_eq!(Reduction::of(Op::Sum).run(&column.slice(1, 2))?.to_string(), "4");
        Ok(())
    }

    #[test]
    fn a_column_of_a_batch() -> Outcome {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(-7), None, Some(2)]));
        assert_eq!(Reduction::of(Op::Norm1).run(&column)?.number::<i64>(Op::Norm1), Some(9));
        let part: &dyn Array = &column;
        assert_eq!(Reduction::of(Op::Min).run(part)?.number::<i32>(Op::Min), Some(-7));
        Ok(())
    }

    #[test]
    fn truths_in_bits() -> Outcome {
        let column = BooleanArray::from(vec![Some(true), None, Some(true), Some(false)]);
        let answer = Reduction::new([Op::All, Op::CountNonzero, Op::Count]).run(&column)?;
        assert_eq!(answer.to_string(), "all: false\ncount-nonzero: 2\ncount: 3");
        assert_eq!(Reduction::of(Op::All).run(&column.slice(0, 3))?.number(Op::All), Some(true));
        Ok(())
    }

    #[test]
    fn text_is_refused() {
        let column: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let error = Reduction::of(Op::Sum).run(&column).unwrap_err();
        assert_eq!(error.to_string(), "an array of Utf8 holds no numbers");
        assert!(error.hint().is_some());
    }
}

#[cfg(feature = "serde")]
mod with_serde {
    use super::*;

    fn round<T: serde::Serialize + serde::de::DeserializeOwned>(x: &T) -> (String, T) {
        let text = serde_json::to_string(x).unwrap();
        let back = serde_json::from_str(&text).unwrap();
        (text, back)
    }

    #[test]
    fn names_are_strings() {
        assert_eq!(round(&Op::CountNan), ("\"count-nan\"".into(), Op::CountNan));
        assert_eq!(round(&DType::BF16), ("\"bf16\"".into(), DType::BF16));
        let error = serde_json::from_str::<Op>("\"summ\"").unwrap_err();
        assert!(error.to_string().starts_with("\"summ\" is not an operation"), "{error}");
        let by_op: HashMap<Op, f64> = serde_json::from_str("{\"sum\": 1.5}").unwrap();
        assert_eq!(by_op[&Op::Sum], 1.5);
    }

    #[test]
    fn answers_keep_every_bit() -> Outcome {
        let data = [[0.1, f64::NAN, -0.0], [f64::INFINITY, 5e-324, 1e308]];
        let ops = Op::ALL.into_iter().filter(|op| op.arity() == 1 && op.supports(DType::F64));
        let answer = Reduction::new(ops).axis(0).run(&data)?;
        assert_eq!(round(&answer).1, answer);
        let one = Reduction::of(Op::Max).run(&[0.5f32, f32::NEG_INFINITY])?;
        let text =
            r#"{"shape":[],"columns":[{"op":"max","numbers":{"f32":["0.5"]},"second":null}]}"#;
        assert_eq!(round(&one), (text.into(), one));
        Ok(())
    }

    #[test]
    fn answers_that_contradict_themselves_are_refused() {
        for text in [
            r#"{"shape":[2],"columns":[{"op":"max","numbers":{"i8":[1]},"second":null}]}"#,
            r#"{"shape":[],"columns":[{"op":"minmax","numbers":{"i8":[1]},"second":null}]}"#,
            r#"{"shape":[],"columns":[{"op":"max","numbers":{"i8":[1]},"second":{"i8":[1]}}]}"#,
            r#"{"shape":[],"columns":[{"op":"max","numbers":{"i8":[300]},"second":null}]}"#,
            r#"{"shape":[],"columns":[{"op":"max","numbers":{"f64":["x"]},"second":null}]}"#,
            r#"{"shape":[18446744073709551615,2],"columns":[]}"#,
        ] {
            assert!(serde_json::from_str::<Answer>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn partials_as_json() -> Outcome {
        let partial = Reduction::new([Op::Var, Op::LogSumExp]).partial(&[0.1; 77], 5)?;
        assert_eq!(round(&partial).1, partial);
        for text in ["\"\"", "\"0\"", "\"zz\"", "\"5741\"", "7", "[1, 2]"] {
            assert!(serde_json::from_str::<Partial>(text).is_err(), "{text}");
        }
        Ok(())
    }
}
