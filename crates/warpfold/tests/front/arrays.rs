//! Made-up arrays: values that hurt, in memory that is laid out badly.

use crate::naive::Num;
use crate::thorough::seed;
use warpfold::{DType, View, bf16, f16};

/// xorshift64*: small, seeded, good enough to make data.
pub(crate) struct Random(u64);

impl Random {
    /// What a test draws that has this seed of its own.
    pub(crate) fn new(own: u64) -> Random {
        Random(seed(own))
    }
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    /// Below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 32) as usize) % n
    }
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What the values are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// In [-2, 2); small integers.
    Plain,
    /// Any bits, without infinities and NaNs.
    Finite,
    /// Any bits.
    Bits,
    /// Zeros of both signs, infinities, NaNs, ones.
    Specials,
    /// The smallest magnitudes.
    Tiny,
    /// A handful of values, so that extremes tie.
    Few,
    /// Exponents around one, in a window that sums of few elements cancel in.
    Close,
}

pub(crate) const PATTERNS: [Pattern; 7] = [
    Pattern::Plain,
    Pattern::Finite,
    Pattern::Bits,
    Pattern::Specials,
    Pattern::Tiny,
    Pattern::Few,
    Pattern::Close,
];

/// The bits of `x` in `dtype`, of integers the nearest one.
pub(crate) fn bits_of(dtype: DType, x: f64) -> u64 {
    match dtype {
        DType::F16 => u64::from(f16::from_f64(x).to_bits()),
        DType::BF16 => u64::from(bf16::from_f64(x).to_bits()),
        DType::F32 => u64::from((x as f32).to_bits()),
        DType::F64 => x.to_bits(),
        _ => x as i64 as u64,
    }
}

/// The bits of one made-up element.
pub(crate) fn element(dtype: DType, pattern: Pattern, random: &mut Random) -> u64 {
    let any = random.next();
    let finite = |bits: u64| match Num::of(dtype, bits) {
        Num::Float(x) if !x.is_finite() => bits_of(dtype, 1.5),
        _ => bits,
    };
    match pattern {
        Pattern::Plain if dtype.is_float() => bits_of(dtype, random.unit() * 4.0 - 2.0),
        Pattern::Plain => bits_of(dtype, (any % 9) as f64 - 4.0),
        Pattern::Finite => finite(any),
        Pattern::Bits => any,
        Pattern::Specials => {
            let x = random.pick(&[
                0.0,
                -0.0,
                1.0,
                -1.0,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
                3.0,
                1e-3,
            ]);
            if dtype.is_float() {
                bits_of(dtype, x)
            } else {
                random.pick(&[0, 1, u64::MAX, 1 << (8 * dtype.size() - 1), any])
            }
        }
        Pattern::Tiny => any & (0x1f | 1 << (8 * dtype.size() - 1)),
        Pattern::Few => bits_of(dtype, random.pick(&[1.0, 2.0, -1.0, 0.0, 2.0])),
        Pattern::Close => {
            let e = (any % 70) as i32 - 35;
            finite(bits_of(dtype, (random.unit() - 0.5) * 2f64.powi(e)))
        }
    }
}

/// An array that owns its memory.
pub(crate) struct Array {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    pub(crate) offset: usize,
    words: Vec<u64>,
    len: usize,
}

impl Array {
    pub(crate) fn bytes(&self) -> &[u8] {
        // Aligned, whatever `offset` then says.
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::strided(self.dtype, self.bytes(), self.offset, &self.shape, &self.strides).unwrap()
    }

    fn place(&self, index: &[usize]) -> usize {
        let at = index
            .iter()
            .zip(&self.strides)
            .fold(self.offset as isize, |at, (&i, &s)| at + i as isize * s);
        usize::try_from(at).unwrap()
    }

    pub(crate) fn bits_at(&self, index: &[usize]) -> u64 {
        let at = self.place(index);
        let size = self.dtype.size();
        let mut word = [0; 8];
        word[..size].copy_from_slice(&self.bytes()[at..at + size]);
        u64::from_le_bytes(word)
    }

    pub(crate) fn at(&self, index: &[usize]) -> Num {
        Num::of(self.dtype, self.bits_at(index))
    }
}

/// Every index of `shape`, in C order.
pub(crate) fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![Vec::new()], |all, &n| {
        all.iter().flat_map(|head| (0..n).map(move |i| [head.as_slice(), &[i]].concat())).collect()
    })
}

/// An array of this shape: axes in any order in memory, reversed, spread out,
/// broadcast or off their alignment.
pub(crate) fn array(dtype: DType, shape: &[usize], pattern: Pattern, random: &mut Random) -> Array {
    let size = dtype.size() as isize;
    let mut order: Vec<usize> = (0..shape.len()).rev().collect();
    if random.chance(2) {
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i + 1));
        }
    }
    let tame = random.chance(3);
    let mut strides = vec![0isize; shape.len()];
    let mut extent = size;
    let mut low = 0isize;
    for &axis in &order {
        let n = shape[axis] as isize;
        let step = if tame { 1 } else { random.pick(&[1, 1, 1, -1, -1, 2, -3, 0]) };
        // Sometimes not even a multiple of the element's size.
        let padding = if !tame && random.chance(6) { random.below(9) as isize } else { 0 };
        strides[axis] = (extent + padding) * step;
        low += ((n - 1).max(0) * strides[axis]).min(0);
        extent = (extent + padding) * step.abs().max(1) * n.max(1);
    }
    let unaligned = if random.chance(5) { random.below(9) } else { 0 };
    let offset = low.unsigned_abs() + unaligned;
    let len = offset + extent.unsigned_abs() + size.unsigned_abs();
    let mut array =
        Array { dtype, shape: shape.to_vec(), strides, offset, words: vec![0; len / 8 + 1], len };
    for index in indices(shape) {
        let at = array.place(&index);
        let word = element(dtype, pattern, random).to_le_bytes();
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut array.words);
        bytes[at..at + size as usize].copy_from_slice(&word[..size as usize]);
    }
    array
}
