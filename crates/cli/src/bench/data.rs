//! The arrays that are reduced: the same on every run.

use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};
use warpfold::{DType, Numbers, bf16, f16};
use warpfold_threads::{Threads, scoped};

/// What the arrays hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// Multiples of 2^-53 in [0, 1).
    F64,
    /// Multiples of 2^-24 in [0, 1).
    F32,
    /// Those rounded to 16 bits.
    F16,
    BF16,
    /// Random bits.
    I8,
    I32,
    I64,
    /// Both signs, exponents from -300 to 299.
    F64Wide,
    /// Random bits that are neither infinite nor NaN.
    F32Bits,
}

impl Data {
    pub(super) const ALL: [Data; 9] = [
        Data::F64,
        Data::F32,
        Data::F16,
        Data::BF16,
        Data::I8,
        Data::I32,
        Data::I64,
        Data::F64Wide,
        Data::F32Bits,
    ];

    /// The element type.
    pub(super) fn dtype(self) -> DType {
        match self {
            Data::F64 | Data::F64Wide => DType::F64,
            Data::F32 | Data::F32Bits => DType::F32,
            Data::F16 => DType::F16,
            Data::BF16 => DType::BF16,
            Data::I8 => DType::I8,
            Data::I32 => DType::I32,
            Data::I64 => DType::I64,
        }
    }

    /// What tables call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Data::F64Wide => "f64 wide exponents",
            Data::F32Bits => "f32 random bits",
            _ => self.dtype().name(),
        }
    }

    /// As many elements as fit into 64 bits, from random ones.
    fn word(self, random: &mut Random) -> u64 {
        let unit = |bits: u32| bits as f32 / (1u64 << 32) as f32;
        let pack16 = |random: &mut Random, half: &dyn Fn(f32) -> u16| {
            (0..4).fold(0, |word, _| word << 16 | u64::from(half(unit(random.next() as u32))))
        };
        match self {
            Data::F64 => ((random.next() >> 11) as f64 / (1u64 << 53) as f64).to_bits(),
            Data::F32 => {
                let pair =
                    [random.next(), random.next()].map(|r| (r >> 40) as f32 / (1u32 << 24) as f32);
                u64::from(pair[0].to_bits()) << 32 | u64::from(pair[1].to_bits())
            }
            Data::F16 => pack16(random, &|x| f16::from_f32(x).to_bits()),
            Data::BF16 => pack16(random, &|x| bf16::from_f32(x).to_bits()),
            Data::I8 | Data::I32 | Data::I64 => random.next(),
            Data::F64Wide => {
                let sign_and_fraction = random.next() & 0x800f_ffff_ffff_ffff;
                sign_and_fraction | (1023 - 300 + random.next() % 600) << 52
            }
            // Without the lowest exponent bit of each half, none is all ones.
            Data::F32Bits => random.next() & !0x0080_0000_0080_0000,
        }
    }
}

/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Two arrays, whose memory serves one kind of data after the other.
#[derive(Default)]
pub(super) struct Buffers {
    first: Words,
    second: Words,
}

/// Memory on large pages where the system gives them, as NumPy asks for its arrays too: with
/// small ones, looking up addresses costs more than any kernel. It begins at a page.
#[derive(Default)]
struct Words(Option<Numbers>);

/// Bytes of a page.
const PAGE: usize = 4096;

impl Words {
    /// Room for `len` words.
    fn grow(&mut self, len: usize) -> std::io::Result<&mut [u64]> {
        if self.all().len() < len {
            let more = len.saturating_add(PAGE / 8);
            // `zeros` panics where the system refuses.
            Vec::<u64>::new().try_reserve_exact(more).map_err(|_| ErrorKind::OutOfMemory)?;
            self.0 = Some(Numbers::zeros(DType::U64, more));
        }
        let words = self.0.as_mut().and_then(Numbers::as_mut_slice::<u64>).unwrap_or(&mut []);
        let skipped = words.as_ptr().align_offset(PAGE).min(words.len());
        Ok(&mut words[skipped..][..len])
    }

    fn all(&self) -> &[u64] {
        let words = self.0.as_ref().and_then(Numbers::as_slice::<u64>).unwrap_or(&[]);
        &words[words.as_ptr().align_offset(PAGE).min(words.len())..]
    }
}

impl Buffers {
    /// Fills the first array, and the second if there is a pair.
    ///
    /// # Errors
    /// The system has no memory to give.
    pub(super) fn fill(
        &mut self,
        data: Data,
        elements: usize,
        paired: bool,
    ) -> std::io::Result<()> {
        let words = (elements * data.dtype().size()).div_ceil(8);
        fill(self.first.grow(words)?, data, 1);
        if paired {
            fill(self.second.grow(words)?, data, 2);
        }
        Ok(())
    }

    /// The first array's bytes.
    pub(super) fn first(&self) -> &[u8] {
        bytemuck::cast_slice(self.first.all())
    }

    /// The second array's bytes.
    pub(super) fn second(&self) -> &[u8] {
        bytemuck::cast_slice(self.second.all())
    }

    /// The first array as f64.
    pub(super) fn f64s(&self) -> &[f64] {
        bytemuck::cast_slice(self.first.all())
    }

    /// The first array as f32.
    pub(super) fn f32s(&self) -> &[f32] {
        bytemuck::cast_slice(self.first.all())
    }

    /// The words that hold the first `bytes` of the first array.
    pub(super) fn words(&self, bytes: usize) -> &[u64] {
        let all = self.first.all();
        &all[..bytes.div_ceil(8).min(all.len())]
    }
}

/// Fills on all cores; each piece has a seed of its own, so that their number
/// does not matter.
fn fill(words: &mut [u64], data: Data, seed: u64) {
    const PIECE: usize = 1 << 16;
    let pieces = Mutex::new(words.chunks_mut(PIECE).enumerate());
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
    scoped(Threads::All.count(), || {
        while let Some((place, piece)) = next() {
            let mut random = Random(Random(seed << 48 ^ place as u64).next());
            piece.iter_mut().for_each(|word| *word = data.word(&mut random));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_what_they_say() {
        let mut buffers = Buffers::default();
        buffers.fill(Data::F64, 1000, true).unwrap();
        assert!(buffers.f64s().iter().all(|x| (0.0..1.0).contains(x)));
        assert_ne!(buffers.first(), buffers.second());
        buffers.fill(Data::F64Wide, 1000, false).unwrap();
        assert!(buffers.f64s()[..1000].iter().all(|x| {
            let x = x.abs();
            (2f64.powi(-300)..2f64.powi(300)).contains(&x)
        }));
        buffers.fill(Data::F32Bits, 1000, false).unwrap();
        let floats: &[f32] = bytemuck::cast_slice(buffers.words(4000));
        assert!(floats.iter().all(|x| x.is_finite()));
    }
}
