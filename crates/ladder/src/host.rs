//! The rungs that run on the host: plain loops, timed by the host's clock.

use crate::error::Result;
use crate::faulty::Showing;
use crate::lab::Timing;
use crate::question::Question;
use crate::rung::Text;
use crate::runner::Runner;
use crate::source;
use std::hint::black_box;
use std::time::{Duration, Instant};
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Scalar};

/// A question on the host.
pub(crate) struct Host<'a> {
    elements: &'a Numbers,
    recursive: bool,
}

/// A sum from left to right. Integers wrap. Floats are added in f64, with a second f64
/// for the rounding errors. A sum in the elements' own type would stop growing: an f32
/// cannot count beyond 2^24.
trait Total: Default {
    type Element;
    fn add(&mut self, x: Self::Element);
}

/// A wrapping sum.
#[derive(Default)]
struct Wrapping(u64);

impl Total for Wrapping {
    type Element = u64;
    fn add(&mut self, x: u64) {
        self.0 = self.0.wrapping_add(x);
    }
}

/// A sum and its errors: Neumaier, "Rundungsfehleranalyse einiger Verfahren zur
/// Summation endlicher Summen", 1974.
#[derive(Default)]
struct Compensated {
    sum: f64,
    lost: f64,
}

impl Total for Compensated {
    type Element = f64;
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        // The smaller one has lost bits, and the difference says which.
        self.lost +=
            if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }
}

/// One element after the other.
fn serial<X: Copy, S: Total>(items: &[X], widen: fn(X) -> S::Element) -> S {
    let mut total = S::default();
    for &x in items {
        total.add(widen(x));
    }
    total
}

/// The upper half is added to the lower one until one value is left. If the length is
/// odd, the lower half keeps the middle element for the next level.
fn recursive<A: Copy>(values: &mut [A], add: fn(A, A) -> A) {
    if values.len() > 1 {
        let (low, high) = values.split_at_mut(values.len().div_ceil(2));
        for (low, high) in low.iter_mut().zip(high) {
            *low = add(*low, *high);
        }
        recursive(low, add);
    }
}

/// The same for an array that must not change: the first level writes to another array.
fn recursive_of<X: Copy, A: Copy>(items: &[X], widen: fn(X) -> A, add: fn(A, A) -> A) -> Option<A> {
    let (low, high) = items.split_at(items.len().div_ceil(2));
    let mut values: Vec<A> = low.iter().map(|&x| widen(x)).collect();
    for (low, &high) in values.iter_mut().zip(high) {
        *low = add(*low, widen(high));
    }
    recursive(&mut values, add);
    values.first().copied()
}

impl<'a> Host<'a> {
    pub(crate) fn new(question: &Question, elements: &'a Numbers) -> Host<'a> {
        Host { elements, recursive: question.rung.id == RECURSIVE }
    }

    fn run(&self) -> Scalar {
        let dtype = self.elements.dtype();
        macro_rules! float {
            ($t:ty, $added:ty, $widen:expr) => {
                if let Some(items) = self.elements.as_slice::<$t>() {
                    if self.recursive {
                        let sum: Option<$added> = recursive_of(items, $widen, |a, b| a + b);
                        return Scalar::F64(sum.map_or(0.0, f64::from));
                    }
                    let Compensated { sum, lost } = serial(items, |x| f64::from($widen(x)));
                    return Scalar::F64(sum + lost);
                }
            };
        }
        macro_rules! integer {
            ($t:ty) => {
                if let Some(items) = self.elements.as_slice::<$t>() {
                    let widen: fn($t) -> u64 = |x| x as u64;
                    let bits = if self.recursive {
                        recursive_of(items, widen, u64::wrapping_add).unwrap_or(0)
                    } else {
                        serial::<_, Wrapping>(items, widen).0
                    };
                    return Scalar::from_bits(dtype, bits);
                }
            };
        }
        float!(f16, f32, f16::to_f32);
        float!(bf16, f32, bf16::to_f32);
        float!(f32, f32, f32::from);
        float!(f64, f64, f64::from);
        integer!(i32);
        integer!(u32);
        integer!(i64);
        integer!(u64);
        // The rungs have no other types.
        Scalar::from_bits(DType::U64, 0)
    }
}

/// The classic loop: the sum in the elements' own type.
fn serial_faulty(items: &[f32]) -> f32 {
    let mut sum = 0.0;
    for &x in items {
        sum += x;
    }
    sum
}

/// The classic recursion: if the length is odd, it loses the last element.
fn recursive_faulty(values: &mut [u32]) -> u32 {
    let half = values.len() / 2;
    for i in 0..half {
        values[i] = values[i].wrapping_add(values[half + i]);
    }
    if half > 1 { recursive_faulty(&mut values[..half]) } else { values[0] }
}

/// Demonstrations of the faults of these rungs' listings.
pub(crate) fn is_faulty(id: &str) -> bool {
    matches!(id, "cpu-serial" | "cpu-recursive")
}

/// What the host's listing of a rung gets wrong, if it has one.
pub(crate) fn faulty(id: &str) -> Option<Showing> {
    let (text, function, how, got, wanted) = match id {
        "cpu-serial" => {
            let ones = vec![1.0; (1 << 24) + 3];
            let how = format!("{} ones", ones.len());
            (
                Text::F,
                "serial_faulty",
                how,
                serial_faulty(&ones).to_string(),
                ones.len().to_string(),
            )
        }
        RECURSIVE => {
            let mut values: Vec<u32> = (1..=100).collect();
            let wanted: u32 = values.iter().sum();
            let got = recursive_faulty(&mut values);
            (Text::P, "recursive_faulty", "1 to 100".into(), got.to_string(), wanted.to_string())
        }
        _ => return None,
    };
    let source = source::of(&[("host.rs", function)]);
    let (findings, astray, halt) = (Vec::new(), Vec::new(), None);
    Some(Showing {
        text,
        printed: None,
        source,
        how,
        findings,
        halt,
        got: vec![got],
        wanted,
        astray,
    })
}

/// The rung that folds halves.
pub(crate) const RECURSIVE: &str = "cpu-recursive";

/// The number of warm-up runs of the host, which takes far longer than a device.
const WARM_UP: usize = 1;

impl Runner for Host<'_> {
    fn answer(&self) -> Result<Scalar> {
        Ok(self.run())
    }

    /// One run for each interval: the host's clock is fine enough.
    fn times(&self, timing: &Timing, _: u32) -> Result<Vec<Duration>> {
        let time = || {
            let begin = Instant::now();
            black_box(black_box(self).run());
            begin.elapsed()
        };
        for _ in 0..timing.warm_up.min(WARM_UP) {
            time();
        }
        Ok((0..timing.runs).map(|_| time()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_element_of_an_odd_level_is_lost() {
        for n in 0..200u64 {
            let items: Vec<u64> = (0..n).collect();
            let sum = recursive_of(&items, |x| x, u64::wrapping_add).unwrap_or(0);
            assert_eq!(sum, n * n.saturating_sub(1) / 2, "{n}");
        }
    }

    #[test]
    fn sums_do_not_stop_growing() {
        let ones = vec![1.0f32; (1 << 24) + 3];
        assert_eq!(ones.iter().sum::<f32>(), 16_777_216.0, "what the classic loop says");
        let Compensated { sum, lost } = serial(&ones, f64::from);
        assert_eq!(sum + lost, 16_777_219.0);
        let hard = [1.0, 1e100, 1.0, -1e100];
        let Compensated { sum, lost } = serial(&hard, |x| x);
        assert_eq!((hard.iter().sum::<f64>(), sum + lost), (0.0, 2.0));
    }
}
