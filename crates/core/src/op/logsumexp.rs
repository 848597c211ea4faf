//! The logarithm of a sum of exponentials, `ln(e^x1 + ... + e^xn)`: in any
//! order, the same bits.
//!
//! Floats are told apart by the *cell* that they lie in. The cells' middles, the
//! *anchors*, are the multiples of 32. A term is `e^(x - anchor)`, rounded by
//! itself to a fixed grid: an integer, which depends on the element alone. A state
//! has the exact sum of the terms of each of the topmost cells, from the largest
//! element's downwards. What the answer is worth:
//!
//! | elements | cells | absolute error before the last rounding, n elements | within 1 ulp of the true value if |
//! |---|---|---|---|
//! | f64 | 4 | below 2^-94 + n 2^-138 | the answer's magnitude is at least 2^-40 |
//! | f32 | 3 | below 2^-47.9 + n 2^-92 | it is at least 2^-22 |
//! | f16, bf16 | 3 | below 2^-47.9 + n 2^-92 | it is at least 2^-35 |
//! | integers, bool | | below 2^-93 | it is at least 2^-39, or 0 |
//!
//! The last column is for fewer than 2^40 elements. Smaller answers, which arise
//! when the largest element and the logarithm of the sum nearly cancel, keep the
//! absolute error. An f32's state answers in f64, too, with f32's absolute error.
//!
//! Integers differ by integers, so counting how often each difference from the
//! largest occurs is exact, and the exponentials come at the end.
//!
//! # Why the order does not matter
//!
//! An element's cell and term are functions of the element. Let A be the largest
//! anchor of all elements, and call the B cells at A, A - 32, ... the *kept* ones. A
//! state over some of the elements has a largest anchor of its own, `A' <= A`, and
//! keeps the B cells from there on, so that it has all of its elements that lie in
//! kept cells: a cell that it drops is below `A' - 32 (B - 1)`, hence below those
//! kept of A. Merging drops what is below the kept cells of the larger anchor. Sums
//! of cells are integers that wrap at no number of elements, and nothing is carried
//! from one cell to another. Therefore the state of all elements has, in each kept
//! cell, the sum of the integers of all elements there, and nothing else, whatever
//! the splits and their order.
//!
//! # The error
//!
//! Let u = 2^-53. `x - anchor` is exact. It has magnitude 16 at most, so that a term
//! has magnitude 2^-23.1 to 2^23.1.
//!
//! * In one f64 (elements of 16 and 32 bits) the exponential is the product of two
//!   f64, off by `(25 + 0.31 * 16) u < 2^-48.09` of itself. It is rounded to a
//!   multiple of 2^-78, through a rest that is itself rounded by 2^-81: off by
//!   `2^-78.8`, and `2^-55.7` of the smallest term.
//! * In two f64 it is off by 2^-96 of itself, and the rounding to a multiple of
//!   2^-129 by 2^-106.9.
//! * A term that is dropped belongs to an element that is more than `32 (B - 1)`
//!   below the largest: n of them weigh less than `n e^(-32 (B - 1))`, which is
//!   `n 2^-92.3` or `n 2^-138.4`.
//!
//! Terms are positive, so that their sum has no larger relative error than they
//! have, and that is the absolute error of the logarithm. Sums of cells, two or three
//! products and sums of two f64 each, add 2^-102, the logarithm 2^-95, and the sum
//! with the anchor 2^-104 of the answer. Half an ulp of an answer y with p bits is
//! at least `2^(-p-1) |y|`, which gives the last column.

use super::answer::{float_answer, nan_wins};
use super::double_double::INV_E;
pub use super::double_double::{Double, LN2_HIGH, LN2_REST, ROUNDER};
pub use super::exponential::POWERS;
use super::float::{FloatElement, Wide};
use super::limbs::{add_limbs, add_shifted};
use super::payload::{Reader, Words, damaged, write_u64};
pub use super::terms::BLOCK;
use super::terms::{CELLS, Exponentials, Terms, UNITS, WORD_BITS, WORDS};
use super::{Kind, Op, Rules, Run, State, Value, narrow};
use crate::DType;
use crate::element::{Element, Key};
use crate::error::{Error, Result};

/// From one anchor to the next.
const CELL: f64 = 32.0;

/// `e^-CELL`, to 107 bits.
const INV_E_CELL: Double =
    Double { hi: f64::from_bits(0x3d0c_8464_f761_6468), lo: f64::from_bits(0x398e_299a_0124_4879) };

/// A floating-point element type with the precision of its exponentials.
pub trait ExpElement: FloatElement + Exponentials {}

impl<T: FloatElement + Exponentials> ExpElement for T {}

/// The anchor of the cell of a number that is finite.
#[inline(always)]
fn anchor(x: f64) -> f64 {
    // Exact but for the rounding to an integer; and no -0.
    (x * (1.0 / CELL)).round_ties_even() * CELL + 0.0
}

/// How many cells an anchor is below another one.
#[inline(always)]
fn below(high: f64, low: f64) -> usize {
    // Exact where it is small. What is too large becomes the largest integer.
    ((high - low) * (1.0 / CELL)) as usize
}

/// Elements that are looked at and added up side by side.
const LANES: usize = 32;

/// What at most [`BLOCK`] elements come to.
#[derive(Clone, Copy, Debug)]
pub struct BlockSum {
    /// The largest anchor, or minus infinity.
    anchor: f64,
    /// Of each kept cell, downwards.
    terms: [Terms; CELLS],
    nans: u64,
    pos_infs: u64,
}

impl BlockSum {
    const EMPTY: BlockSum =
        BlockSum { anchor: f64::NEG_INFINITY, terms: [[0; WORDS]; CELLS], nans: 0, pos_infs: 0 };

    /// Adds up elements, of which there are at most [`BLOCK`]; more are ignored.
    ///
    /// Always inlined, so that a caller with wider vector instructions gets the same
    /// arithmetic compiled for them.
    #[inline(always)]
    pub fn of<T: ExpElement>(items: &[T]) -> BlockSum {
        let items = &items[..items.len().min(BLOCK)];
        let Some(&first) = items.first() else { return Self::EMPTY };
        // The usual case: all lie in the first one's cell, well inside.
        let anchor = anchor(first.widen().into());
        if anchor.is_finite() && all_near(items, anchor) {
            let mut terms = [[0; WORDS]; CELLS];
            terms[0] = cell_terms(items, anchor);
            return BlockSum { anchor, terms, ..Self::EMPTY };
        }
        Self::of_any(items)
    }

    /// Adds up elements of any cells.
    #[inline(always)]
    fn of_any<T: ExpElement>(items: &[T]) -> BlockSum {
        // Elements whose words are made side by side.
        const PIECE: usize = 256;
        let (largest, nans, pos_infs) = survey(items);
        if largest == f64::NEG_INFINITY {
            return BlockSum { nans, pos_infs, ..Self::EMPTY };
        }
        let top = anchor(largest);
        let mut sums = [[0u64; WORDS]; CELLS];
        for items in items.chunks(PIECE) {
            let mut words = [[0; PIECE]; WORDS];
            // What the padding says is in no cell.
            let mut cells = [CELLS as u64; PIECE];
            for (i, x) in items.iter().enumerate() {
                let x: f64 = x.widen().into();
                let anchor = anchor(x);
                // Infinities and NaNs are in no cell.
                let down = (top - anchor) * (1.0 / CELL);
                let down = if down >= 0.0 && down < T::CELLS as f64 { down } else { CELLS as f64 };
                cells[i] = (down + ROUNDER).to_bits() % (2 * CELLS as u64);
                // What is dropped is near nothing, and need not be.
                let word = T::words(x - anchor);
                for w in 0..T::WORDS {
                    words[w][i] = word[w];
                }
            }
            // Each cell takes its own from all: a sum that is chosen by an index waits for what it
            // was before, and goes one by one.
            for (cell, sums) in sums.iter_mut().enumerate().take(T::CELLS) {
                let found = cell_words::<T, PIECE>(&words, &cells, cell as u64);
                for (sum, words) in sums.iter_mut().zip(found) {
                    *sum = sum.wrapping_add(words);
                }
            }
        }
        let terms = sums.map(|words| words.map(u64::cast_signed));
        BlockSum { anchor: top, terms, nans, pos_infs }
    }
}

/// The sums of the words of those elements that lie in a cell.
#[inline(always)]
fn cell_words<T: ExpElement, const N: usize>(
    words: &[[u64; N]; WORDS],
    cells: &[u64; N],
    cell: u64,
) -> [u64; WORDS] {
    // Plain sums, of which compilers take vectors.
    let mut count = 0u64;
    for &other in cells {
        count += u64::from(other == cell);
    }
    let mut sums = [0u64; WORDS];
    for w in 0..T::WORDS {
        let mut sum = 0u64;
        for (&word, &other) in words[w].iter().zip(cells) {
            sum = sum.wrapping_add(if other == cell { word } else { 0 });
        }
        sums[w] = sum.wrapping_sub(T::OFFSETS[w].wrapping_mul(count));
    }
    sums
}

/// The largest finite element or minus infinity, and how many are NaN and plus
/// infinity.
#[inline(always)]
fn survey<T: ExpElement>(items: &[T]) -> (f64, u64, u64) {
    let lowest = T::NEG_INFINITY.widen();
    let infinity = lowest.magnitude();
    let (mut largest, mut nans, mut pos_infs) = ([lowest; LANES], [0u32; LANES], [0u32; LANES]);
    let mut look = |l: usize, x: T| {
        let x = x.widen();
        largest[l] = if x > largest[l] && x < infinity { x } else { largest[l] };
        nans[l] += u32::from(x.partial_cmp(&x).is_none());
        pos_infs[l] += u32::from(x == infinity);
    };
    let (chunks, rest) = items.as_chunks::<LANES>();
    for xs in chunks {
        for (l, &x) in xs.iter().enumerate() {
            look(l, x);
        }
    }
    for (l, &x) in rest.iter().enumerate() {
        look(l, x);
    }
    let largest = largest.into_iter().fold(lowest, |a, b| if b > a { b } else { a });
    let sum = |counts: [u32; LANES]| counts.into_iter().map(u64::from).sum();
    (largest.into(), sum(nans), sum(pos_infs))
}

/// Whether all elements are nearer to an anchor than to others.
#[inline(always)]
fn all_near<T: ExpElement>(items: &[T], anchor: f64) -> bool {
    // Anchors of elements are numbers of their types.
    let (anchor, half) = (T::Wide::nearest(anchor), T::Wide::nearest(CELL / 2.0));
    let mut far = [0u32; LANES];
    let (chunks, rest) = items.as_chunks::<LANES>();
    // A distance is exact within the cell, and otherwise at least half a cell.
    for xs in chunks {
        for (far, x) in far.iter_mut().zip(xs) {
            *far |= if x.widen().distance(anchor) < half { 0 } else { 1 };
        }
    }
    let some = far.iter().fold(0, |a, b| a | b);
    some == 0 && rest.iter().all(|x| x.widen().distance(anchor) < half)
}

/// Adds the words of a term to a lane.
#[inline(always)]
fn add_words(lanes: &mut [[u64; LANES]; WORDS], l: usize, words: [u64; WORDS]) {
    for (lanes, word) in lanes.iter_mut().zip(words) {
        lanes[l] = lanes[l].wrapping_add(word);
    }
}

/// The terms of elements that lie in one cell.
#[inline(always)]
fn cell_terms<T: ExpElement>(items: &[T], anchor: f64) -> Terms {
    let mut lanes = [[0u64; LANES]; WORDS];
    let (chunks, rest) = items.as_chunks::<LANES>();
    // The body is there twice, since a closure would be compiled for other
    // instructions.
    for xs in chunks {
        for (l, x) in xs.iter().enumerate() {
            add_words(&mut lanes, l, T::words(x.widen().into() - anchor));
        }
    }
    for (l, x) in rest.iter().enumerate() {
        add_words(&mut lanes, l, T::words(x.widen().into() - anchor));
    }
    core::array::from_fn(|word| {
        let sum = lanes[word].iter().fold(0u64, |sum, &lane| sum.wrapping_add(lane));
        sum.wrapping_sub(T::OFFSETS[word].wrapping_mul(items.len() as u64)).cast_signed()
    })
}

/// The state of a `logsumexp` of floats.
///
/// ```
/// use warpfold_core::op::{FloatLogSumExp, Kind, Op, Rules, Run, State};
/// let x: Vec<f32> = (0..10_000).map(|i| (i * 7919 % 1013) as f32 / 9.0).collect();
/// let mut reversed = x.clone();
/// reversed.reverse();
/// let of = |x: &[f32]| {
///     let mut state = FloatLogSumExp::<f32>::identity(Kind::LogSumExp);
///     state.absorb(Run { start: 0, items: x, others: &[] });
///     state
/// };
/// let mut halves = of(&x[5000..]);
/// halves.merge(&of(&x[..5000]))?;
/// assert!(of(&x) == of(&reversed) && of(&x) == halves);
/// # Ok::<(), warpfold_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FloatLogSumExp<T: ExpElement> {
    /// The largest anchor; minus infinity if no element is finite.
    anchor: f64,
    /// The sums of the cells at `anchor`, `anchor - 32`, ...: of each its limbs, the
    /// lowest first, in units of the last word of a term.
    cells: T::Cells,
    /// How many elements are NaN.
    nans: u64,
    /// How many are plus infinity.
    pos_infs: u64,
}

impl<T: ExpElement> PartialEq for FloatLogSumExp<T> {
    fn eq(&self, other: &Self) -> bool {
        // An anchor is neither NaN nor -0.
        self.anchor == other.anchor
            && self.cells == other.cells
            && (self.nans, self.pos_infs) == (other.nans, other.pos_infs)
    }
}

impl<T: ExpElement> Default for FloatLogSumExp<T> {
    fn default() -> Self {
        FloatLogSumExp {
            anchor: f64::NEG_INFINITY,
            cells: T::Cells::default(),
            nans: 0,
            pos_infs: 0,
        }
    }
}

impl<T: ExpElement> FloatLogSumExp<T> {
    /// What the limbs count.
    const UNIT: i32 = UNITS[T::WORDS - 1];

    /// The state of no elements.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `anchor` the largest unless there is a larger one, and says how many
    /// cells it is below the largest then.
    fn raise(&mut self, anchor: f64) -> usize {
        if anchor <= self.anchor {
            return below(self.anchor, anchor);
        }
        let up = if self.anchor == f64::NEG_INFINITY { 0 } else { below(anchor, self.anchor) };
        let cells = self.cells.as_mut();
        let dropped = up.min(T::CELLS) * T::LIMBS;
        cells.copy_within(..cells.len() - dropped, dropped);
        cells[..dropped].fill(0);
        self.anchor = anchor;
        0
    }

    /// Takes in what a block of elements comes to.
    pub fn absorb_block(&mut self, block: &BlockSum) {
        self.nans = self.nans.wrapping_add(block.nans);
        self.pos_infs = self.pos_infs.wrapping_add(block.pos_infs);
        if block.anchor == f64::NEG_INFINITY {
            return;
        }
        let down = self.raise(block.anchor);
        let cells = self.cells.as_mut().chunks_exact_mut(T::LIMBS);
        for (cell, terms) in cells.skip(down).zip(&block.terms) {
            for (word, &sum) in terms.iter().enumerate().take(T::WORDS) {
                add_shifted(cell, sum, WORD_BITS * (T::WORDS - 1 - word) as u32);
            }
        }
    }

    /// Absorbs elements with a function that computes what [`BlockSum::of`] does,
    /// compiled for better instructions.
    pub fn absorb_with(&mut self, items: &[T], sum: impl Fn(&[T]) -> BlockSum) {
        for block in items.chunks(BLOCK) {
            self.absorb_block(&sum(block));
        }
    }

    /// The sum of `e^(x - anchor)`.
    fn total(&self) -> Double {
        let limbs = |cell: &[u64]| {
            cell.iter().enumerate().fold(Double::ZERO, |sum, (i, &limb)| {
                // A power of two that neither overflows nor underflows: exact.
                let unit = (1023 + 64 * i as i32 + Self::UNIT) as u64;
                sum.plus(Double::from_u64(limb).scaled(f64::from_bits(unit << 52)))
            })
        };
        let cells = self.cells.as_ref().rchunks_exact(T::LIMBS);
        cells.fold(Double::ZERO, |sum, cell| sum.times(INV_E_CELL).plus(limbs(cell)))
    }
}

impl<T: ExpElement> State for FloatLogSumExp<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        Kind::LogSumExp
    }

    fn identity(_kind: Kind) -> Self {
        Self::new()
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        #[inline(never)]
        fn sum<T: ExpElement>(items: &[T]) -> BlockSum {
            BlockSum::of(items)
        }
        self.absorb_with(run.items, sum);
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.nans = self.nans.wrapping_add(other.nans);
        self.pos_infs = self.pos_infs.wrapping_add(other.pos_infs);
        if other.anchor == f64::NEG_INFINITY {
            return Ok(());
        }
        let down = self.raise(other.anchor);
        let cells = self.cells.as_mut().chunks_exact_mut(T::LIMBS);
        for (cell, more) in cells.skip(down).zip(other.cells.as_ref().chunks_exact(T::LIMBS)) {
            add_limbs(cell, more);
        }
        Ok(())
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        if op != Op::LogSumExp {
            return Err(Error::UnsupportedType { op, dtype: T::DTYPE });
        }
        let nan = nan_wins(rules, self.nans, None)?;
        float_answer(op, T::DTYPE, rules, |out| {
            if nan {
                narrow::nan(out)
            } else if self.pos_infs > 0 {
                narrow::infinity(out, false)
            } else if self.anchor == f64::NEG_INFINITY {
                narrow::infinity(out, true)
            } else {
                rounded(out, Double::new(self.anchor).plus(self.total().ln()))
            }
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_u64(out, self.anchor.to_bits());
        self.cells.as_ref().iter().for_each(|&limb| write_u64(out, limb));
        write_u64(out, self.nans);
        write_u64(out, self.pos_infs);
    }

    fn read(_kind: Kind, bytes: &[u8]) -> Result<Self> {
        let mut words = Words::new(bytes);
        let anchor = f64::from_bits(words.next()?);
        let mut cells = T::Cells::default();
        for limb in cells.as_mut() {
            *limb = words.next()?;
        }
        let (nans, pos_infs) = (words.next()?, words.next()?);
        words.end()?;
        let state = FloatLogSumExp { anchor, cells, nans, pos_infs };
        if anchor == f64::NEG_INFINITY {
            let empty = FloatLogSumExp { nans, pos_infs, ..Self::new() };
            return if state == empty { Ok(state) } else { Err(damaged("terms of no elements")) };
        }
        // Anchors are elements of the type themselves.
        let is_anchor = anchor.is_finite()
            && self::anchor(anchor).to_bits() == anchor.to_bits()
            && narrow::from_f64(T::DTYPE, anchor).is_some_and(|x| x.to_f64() == anchor);
        if !is_anchor {
            return Err(damaged("it counts exponents from no anchor"));
        }
        // A term has at least 2^-24, and 2^64 of them less than 2^88.
        let (least, most) = (-24 - Self::UNIT, 88 - Self::UNIT - 64 * (T::LIMBS as i32 - 1));
        for (i, cell) in cells.as_ref().chunks_exact(T::LIMBS).enumerate() {
            let may_be_empty = i > 0 && cell.iter().all(|&limb| limb == 0);
            let has_least = has_bit_from(cell, least);
            let has_most = cell[T::LIMBS - 1] >> most == 0;
            let possible = has_least && has_most;
            if !possible && !may_be_empty {
                return Err(damaged("a sum of exponentials is impossible"));
            }
        }
        Ok(state)
    }
}

/// Whether an integer in limbs is at least `2^bit`.
fn has_bit_from(limbs: &[u64], bit: i32) -> bool {
    let bit = bit.cast_unsigned();
    let (i, bit) = ((bit / 64) as usize, bit % 64);
    limbs[i] >> bit != 0 || limbs[i + 1..].iter().any(|&limb| limb != 0)
}

/// A double in the type `out`, rounded once.
fn rounded(out: DType, x: Double) -> Option<super::Scalar> {
    // No -0 and no trace of one.
    let x = if x.hi == 0.0 { Double::ZERO } else { x };
    narrow::from_f64(out, if out == DType::F64 { x.hi } else { x.round_to_odd() })
}

/// How many differences from the maximum are told apart. An element further
/// below weighs less than e^-128, and 2^64 of them less than 2^-120.
const DEPTH: usize = 128;

/// The state of a `logsumexp` of integers or truth values: how many elements
/// lie how far below the largest.
///
/// An element that is too far below some maximum is too far below every later
/// one, so that the counts do not depend on the order.
#[derive(Clone, Debug, PartialEq)]
pub struct IntLogSumExp<T: Element> {
    /// The largest element; `None` if there are none.
    max: Option<T::Key>,
    /// Counts of `max`, `max - 1`, ...; the last one is not 0.
    counts: Vec<u64>,
}

/// `high - low`; exact, as keys are sign- or zero-extended.
#[inline(always)]
fn distance<K: Key>(high: K, low: K) -> u64 {
    high.to_bits64().wrapping_sub(low.to_bits64())
}

impl<T: Element> IntLogSumExp<T> {
    /// Makes `key` the maximum unless there is a larger one.
    fn raise(&mut self, key: T::Key) {
        match self.max {
            Some(max) if key <= max => return,
            Some(max) => {
                let by = usize::try_from(distance(key, max)).unwrap_or(DEPTH).min(DEPTH);
                self.counts.truncate(DEPTH - by);
                if !self.counts.is_empty() {
                    self.counts.splice(0..0, core::iter::repeat_n(0, by));
                }
            }
            None => {}
        }
        self.max = Some(key);
    }

    /// Counts `n` elements `below` the maximum.
    fn count(&mut self, below: usize, n: u64) {
        if below < DEPTH && n > 0 {
            if self.counts.len() <= below {
                self.counts.resize(below + 1, 0);
            }
            self.counts[below] = self.counts[below].saturating_add(n);
        }
    }

    /// Truncation in [`raise`](Self::raise) may leave zeros at the end.
    fn trim(&mut self) {
        while self.counts.pop_if(|n| *n == 0).is_some() {}
    }
}

impl<T: Element> State for IntLogSumExp<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        Kind::LogSumExp
    }

    fn identity(_kind: Kind) -> Self {
        IntLogSumExp { max: None, counts: Vec::new() }
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        for block in run.items.chunks(BLOCK) {
            let Some(largest) = block.iter().map(|x| x.key()).max() else { continue };
            self.raise(largest);
            let max = self.max.unwrap_or(largest);
            // One slot more, for all that is too far below.
            let mut local = [0u64; DEPTH + 1];
            for x in block {
                local[distance(max, x.key()).min(DEPTH as u64) as usize] += 1;
            }
            for (below, &n) in local[..DEPTH].iter().enumerate() {
                self.count(below, n);
            }
        }
        self.trim();
    }

    fn most_bytes(_positions: u64) -> usize {
        // A vector that grows may have doubled.
        size_of::<Self>() + 2 * DEPTH * size_of::<u64>()
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        let Some(theirs) = other.max else { return Ok(()) };
        self.raise(theirs);
        let apart = distance(self.max.unwrap_or(theirs), theirs);
        let apart = usize::try_from(apart).unwrap_or(DEPTH);
        for (below, &n) in other.counts.iter().enumerate() {
            self.count(below.saturating_add(apart), n);
        }
        self.trim();
        Ok(())
    }

    /// An f64 unless another float type is asked for.
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        if op != Op::LogSumExp {
            return Err(Error::UnsupportedType { op, dtype: T::DTYPE });
        }
        finish_counts(op, T::DTYPE, self.max.map(T::Key::to_bits64), &self.counts, rules)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.counts.len() as u8);
        out.extend(self.max.map_or(0, T::Key::to_bits64).to_le_bytes());
        for n in &self.counts {
            out.extend(n.to_le_bytes());
        }
    }

    fn read(_kind: Kind, bytes: &[u8]) -> Result<Self> {
        let (least, greatest) = T::key_range();
        let (max, counts) = read_counts(bytes, T::DTYPE, [least, greatest].map(T::Key::to_bits64))?;
        Ok(IntLogSumExp { max: max.map(T::Key::from_bits64), counts })
    }
}

/// The answer of a maximum in 64 bits and the counts below it.
fn finish_counts(
    op: Op,
    dtype: DType,
    max: Option<u64>,
    counts: &[u64],
    rules: &Rules,
) -> Result<Value> {
    // Horner's rule in 1/e: the count at distance d goes through d
    // products and sums, and weighs e^-d.
    let sum = counts
        .iter()
        .rev()
        .fold(Double::ZERO, |sum, &n| sum.times(INV_E).plus(Double::from_u64(n)));
    float_answer(op, dtype, rules, |out| {
        let Some(bits) = max else { return narrow::infinity(out, true) };
        let max = if dtype.is_signed_int() && (bits as i64) < 0 {
            Double::from_u64(bits.wrapping_neg()).negated()
        } else {
            Double::from_u64(bits)
        };
        rounded(out, max.plus(sum.ln()))
    })
}

/// Reads a maximum in 64 bits, and the counts below it, of elements that are in a range.
fn read_counts(
    bytes: &[u8],
    dtype: DType,
    [least, greatest]: [u64; 2],
) -> Result<(Option<u64>, Vec<u64>)> {
    let parse = || -> Result<_, &'static str> {
        let mut from = Reader(bytes);
        let len = from.uint(1)? as usize;
        let bits = from.u64()?;
        if len > DEPTH {
            return Err("it has too many distinct values");
        }
        let counts = (0..len).map(|_| from.u64()).collect::<Result<Vec<_>, _>>()?;
        if !from.0.is_empty() {
            return Err("it has bytes left over");
        }
        // The order of keys.
        let order = |key: u64| if dtype.is_signed_int() { key ^ 1 << 63 } else { key };
        if order(bits) < order(least) || order(bits) > order(greatest) {
            return Err("its maximum is not of the element type");
        }
        if counts.first() == Some(&0) || counts.last() == Some(&0) || len == 0 && bits != 0 {
            return Err("its counts disagree with its maximum");
        }
        // Nothing lies below the least element.
        if bits.wrapping_sub(least) < (len as u64).saturating_sub(1) {
            return Err("its counts disagree with its element type");
        }
        Ok(((len > 0).then_some(bits), counts))
    };
    parse().map_err(|why| Error::DamagedState { why: why.into() })
}

#[cfg(test)]
mod tests {
    use super::super::exponential;
    use super::super::limbs::tests::limbs;
    use super::*;
    use crate::element::bf16;
    use num_bigint::BigInt;

    /// A term, as an integer in units of its last word, straight from its definition.
    fn term(x: f64, words: usize) -> BigInt {
        let scaled = |v: f64, unit: i32| {
            // Rounded to nearest, ties to even, by integers alone.
            let exact = exponential::tests::exact(v);
            let shift = 1100 + unit;
            let floor: BigInt = &exact >> shift;
            let rest: BigInt = exact - (&floor << shift);
            let half = BigInt::from(1) << (shift - 1);
            let odd = (&floor % 2) != BigInt::from(0);
            if rest > half || rest == half && odd { floor + 1 } else { floor }
        };
        if words == 2 {
            let (power, p) = exponential::parts(x);
            // The product has up to 106 bits: in two f64.
            let hi = power * p;
            let lo = power.mul_add(p, -hi);
            let product = exponential::tests::exact(hi) + exponential::tests::exact(lo);
            let shift = 1100 + UNITS[0];
            let first: BigInt = (&product + (BigInt::from(1) << (shift - 1))) >> shift;
            // A tie would be told apart by nothing but its direction.
            let rest: BigInt = &product - (&first << shift);
            let rest = exponential::tests::nearest(&rest);
            (first << WORD_BITS) + scaled(rest, UNITS[1])
        } else {
            let e = Double::new(x).exp();
            let first = scaled(e.hi, UNITS[0]);
            let high = exponential::tests::exact(e.hi) - (&first << (1100 + UNITS[0]));
            let second = (high >> (1100 + UNITS[1])) + scaled(e.lo, UNITS[1]);
            let low =
                exponential::tests::exact(e.lo) - (scaled(e.lo, UNITS[1]) << (1100 + UNITS[1]));
            let third = scaled(exponential::tests::nearest(&low), UNITS[2]);
            (first << (2 * WORD_BITS)) + (second << WORD_BITS) + third
        }
    }

    fn check<T: ExpElement>(x: &[T]) {
        let mut state = FloatLogSumExp::<T>::new();
        state.absorb(Run { start: 0, items: x, others: &[] });
        let values: Vec<f64> = x.iter().map(|v| v.widen().into()).collect();
        let top = values.iter().map(|&v| anchor(v)).fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(state.anchor.to_bits(), top.to_bits());
        for (i, cell) in state.cells.as_ref().chunks_exact(T::LIMBS).enumerate() {
            let here = values.iter().filter(|&&v| top - anchor(v) == 32.0 * i as f64);
            let sum: BigInt = here.map(|&v| term(v - anchor(v), T::WORDS)).sum();
            assert_eq!(cell, &limbs(&sum)[..T::LIMBS], "cell {i} of {} {}", x.len(), T::DTYPE);
        }
    }

    #[test]
    fn a_state_is_the_sum_of_its_definition() {
        for n in [1usize, 31, 32, 33, 500, BLOCK + 7] {
            for scale in [1e-30, 0.01, 1.0, -1.0, 7.0, 1e6] {
                let x = (0..n).map(|i| (((i * 7919) % 1013) as f64 / 50.0 - 10.0) * scale);
                let x: Vec<f64> = x.collect();
                check(&x);
                check(&x.iter().map(|&v| v as f32).collect::<Vec<_>>());
                check(&x.iter().map(|&v| bf16::from_f32(v as f32)).collect::<Vec<_>>());
            }
        }
        // Both ends of cells, and neighbours.
        let edges = [-48.0, -16.0, 16.0, 48.0, 80.0];
        let near = edges.iter().flat_map(|&e: &f32| [e.next_down(), e, e.next_up()]);
        check(&near.clone().collect::<Vec<_>>());
        check(&near.map(f64::from).collect::<Vec<_>>());
    }
}
