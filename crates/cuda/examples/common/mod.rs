//! What several examples draw elements and take times with.

#![allow(dead_code, reason = "no example needs all of it")]

use std::time::Instant;
use warpfold_core::DType;
use warpfold_core::element::{bf16, f16};
use warpfold_cuda::{Device, Result, Stream};

/// xorshift64*.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from -1 to 1.
    pub(super) fn signed(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }
}

/// Floats that `next` gives, so many bytes of them.
pub(super) fn floats(dtype: DType, bytes: usize, mut next: impl FnMut() -> f64) -> Vec<u8> {
    let numbers = (0..bytes / dtype.size()).map(|_| next());
    match dtype {
        DType::F32 => numbers.flat_map(|x| (x as f32).to_le_bytes()).collect(),
        DType::F16 => numbers.flat_map(|x| f16::from_f64(x).to_le_bytes()).collect(),
        DType::BF16 => numbers.flat_map(|x| bf16::from_f64(x).to_le_bytes()).collect(),
        _ => numbers.flat_map(f64::to_le_bytes).collect(),
    }
}

/// Elements of any type, so many bytes of them: floats from -1 to 1, or any bits.
pub(super) fn elements(dtype: DType, bytes: usize, random: &mut Random) -> Vec<u8> {
    if dtype.is_float() {
        floats(dtype, bytes, || random.signed())
    } else {
        (0..bytes / 8).flat_map(|_| random.word().to_le_bytes()).collect()
    }
}

/// The words of a file of `u32`.
pub(super) fn words(file: &str) -> Vec<u32> {
    let bytes = std::fs::read(file).expect("a file of 32-bit words");
    let words = bytes.chunks_exact(4);
    words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

/// Seconds of a call, the median over rounds of calls that follow one another without a wait;
/// nothing where a call says that no kernel answers. The first calls are not timed.
pub(super) fn seconds(
    device: &dyn Device,
    stream: Stream,
    rounds: usize,
    calls: usize,
    mut call: impl FnMut() -> Result<bool>,
) -> Result<Option<f64>> {
    let mut round = |calls: usize| -> Result<Option<f64>> {
        let begin = Instant::now();
        for _ in 0..calls {
            if !call()? {
                return Ok(None);
            }
        }
        device.wait(stream)?;
        Ok(Some(begin.elapsed().as_secs_f64() / calls as f64))
    };
    if round(calls.min(4))?.is_none() {
        return Ok(None);
    }
    let seconds = (0..rounds).map(|_| round(calls)).collect::<Result<Vec<_>>>()?;
    Ok(median(seconds.into_iter().flatten().collect()))
}

/// The middle one of some numbers, if there are any.
pub(super) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}
