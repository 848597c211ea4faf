//! The elements of a question, and the exact answer.

use crate::error::Result;
use crate::question::Question;
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::{Bits, Extrema, Kind, Numbers, Ordered, RawRun, State, Sums};
use warpfold_core::{DType, Error, Op, Rules, Scalar, with_element};

/// What an array holds. Integers are random bits either way: their sums wrap, and
/// are the same in every order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Floats of which every partial result is a float of the type that is added
    /// in, in every order: the answer is the exact one, to the bit.
    Representable,
    /// Floats between -1 and 1 with all their bits: sums round, and the answer
    /// lies within a proved bound of the exact one.
    Random,
}

/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014.
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Data {
    /// The elements of a question: the same for the same seed.
    pub(crate) fn elements(self, question: &Question, seed: u64) -> Numbers {
        let Question { dtype, op, n, .. } = *question;
        let len = n as usize;
        let mut numbers = Numbers::zeros(dtype, len);
        let mut random = SplitMix(seed);
        if !dtype.is_float() {
            // Products of odd numbers do not fall to zero.
            let low = u8::from(op == Op::Prod);
            for element in numbers.bytes_mut().chunks_exact_mut(dtype.size()) {
                element.copy_from_slice(&random.next().to_le_bytes()[..dtype.size()]);
                element[0] |= low;
            }
            return numbers;
        }
        let mut next: Box<dyn FnMut(u64) -> f64> = match (self, op) {
            (Data::Representable, Op::Sum) => sparse(n, MOST_EIGHTHS, 0.0, random, |bits| {
                // From -8 to 8 eighths.
                (bits % 17) as f64 / 8.0 - 1.0
            }),
            (Data::Representable, Op::Prod) => sparse(n, MOST_FACTORS, 1.0, random, |bits| {
                [2.0, 0.5, -2.0, -0.5][bits as usize % 4]
            }),
            _ => Box::new(move |_| {
                // 53 bits between -1 and 1; the other types round them.
                (random.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
            }),
        };
        macro_rules! fill {
            ($t:ty, $of:expr) => {
                if let Some(items) = numbers.as_mut_slice::<$t>() {
                    items.iter_mut().zip(0..).for_each(|(x, i)| *x = $of(next(i)));
                }
            };
        }
        match dtype {
            DType::F16 => fill!(f16, f16::from_f64),
            DType::BF16 => fill!(bf16, bf16::from_f64),
            DType::F32 => fill!(f32, |x| x as f32),
            _ => fill!(f64, |x| x),
        }
        numbers
    }
}

/// This many elements of at most eight eighths: the sum of any of them is a whole
/// number of eighths, at most 2^24 of them, and so an f32.
const MOST_EIGHTHS: u64 = 1 << 21;

/// This many factors of 2 or 1/2: the product of any of them is a power of two between
/// 2^-100 and 2^100, and so an f32.
const MOST_FACTORS: u64 = 100;

/// At most `most` of `n` elements are what `element` makes of random bits, spread over
/// all of them: one in each window, at a random place. The others are `rest`.
fn sparse(
    n: u64,
    most: u64,
    rest: f64,
    mut random: SplitMix,
    element: impl Fn(u64) -> f64 + 'static,
) -> Box<dyn FnMut(u64) -> f64> {
    let window = n.div_ceil(most).max(1);
    let mut place = 0;
    Box::new(move |i| {
        if i % window == 0 {
            place = random.next() % window;
        }
        if i % window == place { element(random.next() >> 32) } else { rest }
    })
}

/// The exact answer, rounded once to f64 or, for integers, cut to the elements'
/// type, as sums and products that wrap are.
///
/// # Errors
/// The operation has no answer.
pub(crate) fn exact(numbers: &Numbers, op: Op) -> Result<Scalar> {
    let dtype = numbers.dtype();
    let out = (op == Op::Sum && dtype.is_float()).then_some(DType::F64);
    let scalar = finish(numbers, op, op.kind(), out)?;
    Ok(match dtype.is_float() {
        true => Scalar::F64(scalar.to_f64()),
        false => Scalar::from_bits(dtype, scalar.to_bits()),
    })
}

/// The sum of absolute values, rounded to f64.
///
/// # Errors
/// None for floats.
pub(crate) fn absolute(numbers: &Numbers) -> Result<f64> {
    finish(numbers, Op::Norm1, Kind::AbsSum, Some(DType::F64)).map(Scalar::to_f64)
}

fn finish(numbers: &Numbers, op: Op, kind: Kind, out: Option<DType>) -> Result<Scalar> {
    fn finished<S: State>(numbers: &Numbers, op: Op, kind: Kind, rules: &Rules) -> Result<Scalar> {
        let run = RawRun { start: 0, items: numbers.bytes(), others: &[] };
        let mut state = S::identity(kind);
        let none = Error::UnsupportedType { op, dtype: numbers.dtype() };
        state.absorb(run.typed().ok_or(none)?);
        Ok(state.finish(op, rules)?.first())
    }
    let (dtype, rules) = (numbers.dtype(), Rules::new().out(out).wrap(true));
    // What rungs answer, and no other states.
    with_element!(dtype, T => match kind {
        Kind::Sum | Kind::AbsSum => finished::<Sums<T>>(numbers, op, kind, &rules),
        Kind::Extrema => finished::<Extrema<T>>(numbers, op, kind, &rules),
        Kind::Bits => finished::<Bits<T>>(numbers, op, kind, &rules),
        Kind::Prod => finished::<<T as Ordered>::Prod>(numbers, op, kind, &rules),
        _ => Err(Error::UnsupportedType { op, dtype }.into()),
    })
}
