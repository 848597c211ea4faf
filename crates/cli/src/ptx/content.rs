//! What a buffer holds before the kernel runs.

use super::scalar;
use warpfold::{DType, Scalar, bf16, f16};

/// Where a buffer's elements come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// Nowhere: they are uninitialised.
    Unwritten,
    /// All the same.
    Each(Scalar),
    /// Whole numbers in ascending order, from the first to before the last, and again from the first.
    Range { first: i128, end: Option<i128> },
    /// Random: floats of [-1, 1), integers of any value.
    Random { seed: u64 },
    /// As they are listed.
    List(Vec<Scalar>),
    /// From a file.
    File(String),
}

impl Content {
    /// Reads what stands after `=`, for this many elements of this type.
    ///
    /// # Errors
    /// What is wrong with it and how it would be right.
    pub(crate) fn parse(word: &str, dtype: DType, count: Option<u64>) -> Result<Content, String> {
        if word.starts_with('@') {
            return Content::parse_file(word);
        }
        if word.is_empty() {
            return Err("nothing after `=`: zeros, ones, a number, 0.., seed=7 or @FILE".into());
        }
        let content = match word {
            "zeros" => Content::Each(scalar::from_integer(dtype, 0)?),
            "ones" => Content::Each(scalar::from_integer(dtype, 1)?),
            "range" => Content::Range { first: 0, end: None },
            _ if word.starts_with("seed=") => {
                let seed = word["seed=".len()..].parse();
                Content::Random { seed: seed.map_err(|_| format!("{word:?}: seed=NUMBER"))? }
            }
            _ => match word.split_once("..") {
                Some((first, end)) => range(first, end)?,
                None if word.contains(',') => {
                    let numbers = word.split(',').map(|w| scalar::parse(dtype, w.trim()));
                    Content::List(numbers.collect::<Result<_, _>>()?)
                }
                None => Content::Each(scalar::parse(dtype, word).map_err(|why| {
                    format!("{why}, nor zeros, ones, range, A.., A..B, seed=N, a list or @FILE")
                })?),
            },
        };
        content.check(dtype, count)?;
        Ok(content)
    }

    /// Reads `@FILE`.
    ///
    /// # Errors
    /// Anything else.
    pub(crate) fn parse_file(word: &str) -> Result<Content, String> {
        match word.strip_prefix('@') {
            Some("") => Err("which file? @FILE".into()),
            Some(file) => Ok(Content::File(file.to_string())),
            None => Err("only @FILE tells the type: NAME:TYPE:COUNT=CONTENT".into()),
        }
    }

    fn check(&self, dtype: DType, count: Option<u64>) -> Result<(), String> {
        match self {
            Content::List(list) if count.is_some_and(|n| n != list.len() as u64) => {
                Err(format!("{} numbers for {} elements", list.len(), count.unwrap_or(0)))
            }
            &Content::Range { first, end } => {
                let last = match (end, count) {
                    (Some(end), _) => end - 1,
                    (None, Some(count)) => first + i128::from(count) - 1,
                    (None, None) => first,
                };
                scalar::from_integer(dtype, first)?;
                scalar::from_integer(dtype, last).map(|_| ()).map_err(|why| {
                    format!("{why}: {first}..{} goes round instead", first.saturating_add(100))
                })
            }
            _ => Ok(()),
        }
    }

    /// How many elements there are, where the content tells.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Content::List(list) => Some(list.len() as u64),
            _ => None,
        }
    }

    /// The elements, without an end; the caller takes as many as it needs. `None` if they are in a file, or uninitialised.
    pub(crate) fn elements(&self, dtype: DType) -> Option<Box<dyn Iterator<Item = Scalar> + '_>> {
        Some(match self {
            Content::Unwritten | Content::File(_) => return None,
            Content::Each(x) => Box::new(std::iter::repeat(*x)),
            Content::List(list) => Box::new(list.iter().copied().cycle()),
            &Content::Range { first, end } => {
                // `check` has seen that the numbers fit the type.
                let numbers = (first..end.unwrap_or(i128::MAX)).cycle();
                Box::new(numbers.map_while(move |x| scalar::from_integer(dtype, x).ok()))
            }
            &Content::Random { seed } => {
                Box::new(Chance(seed).map(move |bits| random(dtype, bits)))
            }
        })
    }
}

fn range(first: &str, end: &str) -> Result<Content, String> {
    let number = |word: &str| {
        // Far from the ends of i128, so that what comes after the last is a number, too.
        let small = scalar::whole(word).filter(|x| x.unsigned_abs() <= 1 << 64);
        small.ok_or_else(|| format!("{word:?} is not a whole number: a range is A.. or A..B"))
    };
    let first = number(first)?;
    let end = if end.is_empty() { None } else { Some(number(end)?) };
    match end {
        Some(end) if end <= first => Err(format!("{first}..{end} holds no number")),
        _ => Ok(Content::Range { first, end }),
    }
}

/// A number of the type, from random bits: each possible float of [-1, 1) is a multiple of the spacing just below 1.
fn random(dtype: DType, bits: u64) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(bits >> 63 == 1),
        DType::F16 => Scalar::F16(f16::from_f32((bits >> 53) as f32 / 1024.0 - 1.0)),
        DType::BF16 => Scalar::BF16(bf16::from_f32((bits >> 56) as f32 / 128.0 - 1.0)),
        DType::F32 => Scalar::F32((bits >> 40) as f32 / (1 << 23) as f32 - 1.0),
        DType::F64 => Scalar::F64((bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0),
        _ => Scalar::from_bits(dtype, bits),
    }
}

/// SplitMix64: the same numbers for a seed, everywhere and always.
struct Chance(u64);

impl Iterator for Chance {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(z ^ (z >> 31))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_f64s(word: &str, dtype: DType, count: usize) -> Vec<f64> {
        let content = Content::parse(word, dtype, Some(count as u64)).unwrap();
        let elements = content.elements(dtype).unwrap();
        elements.take(count).map(Scalar::to_f64).collect()
    }

    #[test]
    fn constants_ranges_and_lists() {
        assert_eq!(first_f64s("ones", DType::F16, 2), [1.0, 1.0]);
        assert_eq!(first_f64s("-2.5", DType::F32, 2), [-2.5, -2.5]);
        assert_eq!(first_f64s("range", DType::I32, 3), [0.0, 1.0, 2.0]);
        assert_eq!(first_f64s("5..", DType::U8, 2), [5.0, 6.0]);
        assert_eq!(first_f64s("-1..2", DType::I8, 5), [-1.0, 0.0, 1.0, -1.0, 0.0]);
        assert_eq!(first_f64s("3, 1,2", DType::U64, 3), [3.0, 1.0, 2.0]);
    }

    #[test]
    fn a_seed_gives_the_same_numbers_again_and_floats_below_one() {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let numbers = first_f64s("seed=7", dtype, 1000);
            assert!(numbers.iter().all(|x| (-1.0..1.0).contains(x)));
            assert_eq!(numbers, first_f64s("seed=7", dtype, 1000));
            assert_ne!(numbers, first_f64s("seed=8", dtype, 1000));
            assert!(numbers.iter().any(|x| *x < -0.9) && numbers.iter().any(|x| *x > 0.9));
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused_before_they_are_needed() {
        let why = |word, dtype, count| Content::parse(word, dtype, Some(count)).unwrap_err();
        assert!(why("range", DType::U8, 257).contains("0..100 goes round"));
        assert!(Content::parse("range", DType::U8, Some(256)).is_ok());
        assert!(why("-1..", DType::U8, 1).contains("-1 does not fit u8"));
        assert!(why("0..300", DType::U8, 1).contains("299"));
        assert!(why("3..3", DType::U8, 1).contains("holds no number"));
        assert!(why("0..x", DType::U8, 1).contains("\"x\""));
        assert!(why("1,2", DType::U8, 3).contains("2 numbers for 3 elements"));
        assert!(why("1,256", DType::U8, 2).contains("256 does not fit u8"));
        assert!(why("seed=-1", DType::U8, 2).contains("seed=NUMBER"));
        assert!(why("range", DType::F16, 1 << 20).contains("f16"));
    }
}
