//! Numbers that come one by one, in slices, or in bytes.

use crate::answer::Answer;
use crate::initial;
use crate::partial::Partial;
use crate::reduction::Reduction;
use bytemuck::Zeroable;
use std::iter::Sum;
#[cfg(feature = "serde")]
use warpfold_core::Rules;
use warpfold_core::{Element, Error, Item, Op, Result};

/// Elements gathered before they are reduced.
const BLOCK: usize = 4096;

/// A reduction that goes on: it takes in numbers as they come, merges with
/// others of its kind, and answers at any time.
///
/// Numbers, slices and bytes follow each other in the order in which they are
/// given; positions count from 0, or from where [`starting_at`](Self::starting_at)
/// or [`absorb_at`](Self::absorb_at) says. The answers have the bits of a
/// [`Reduction`] over all of them at once, however they were cut up.
///
/// # Examples
///
/// ```
/// use warpfold::{Accumulator, Op};
///
/// let mut seen = Accumulator::<f64>::new([Op::Mean, Op::Max])?;
/// seen.push(1.0);
/// seen.extend([2.0, 4.0]);
/// seen.absorb(&[8.0; 1000])?;
/// let answer = seen.finish()?;
/// assert_eq!(answer.number::<f64>(Op::Max), Some(8.0));
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// Sums alone need no operation to be named:
/// ```
/// use warpfold::{Accumulator, Op};
///
/// let sums: Accumulator<f64> = [1e16, 1.0, -1e16].iter().collect();
/// assert_eq!(sums.finish()?.number::<f64>(Op::Sum), Some(1.0));
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// Bytes may be cut anywhere:
/// ```
/// use warpfold::{Accumulator, Op};
///
/// let bytes: Vec<u8> = [1.5f32, 2.5].iter().flat_map(|x| x.to_ne_bytes()).collect();
/// let mut sums = Accumulator::<f32>::new([Op::Sum])?;
/// for part in bytes.chunks(3) {
///     sums.absorb_bytes(part)?;
/// }
/// assert_eq!(sums.finish()?.number::<f32>(Op::Sum), Some(4.0));
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// The threads of rayon and others have an accumulator each, and a sum of these is one of all:
/// `v.par_iter().sum::<Accumulator<f64>>()`.
///
/// With the feature `serde` an accumulator is written with what it has taken in, and goes on
/// where it is read.
///
/// # Errors that come later
///
/// [`push`](Self::push) and [`extend`](Self::extend) cannot fail. What goes wrong
/// in them (a position that was given before, an element that was left
/// incomplete) is kept, and [`finish`](Self::finish), [`merge`](Self::merge) and
/// the others that can fail say so: no number is lost in silence.
#[derive(Clone, Debug)]
pub struct Accumulator<T: Item> {
    question: Reduction,
    /// What was taken in.
    done: Partial,
    /// What is yet to be: elements from position `start` on.
    pending: Vec<T::Element>,
    start: u64,
    /// The first bytes of an element, and how many.
    split: ([u8; 8], usize),
    /// What went wrong first.
    failed: Option<Error>,
}

impl Reduction {
    /// An accumulator for this question, of no elements yet. It answers one number
    /// for each operation, whatever axes were named.
    ///
    /// ```
    /// use warpfold::{NanPolicy, Op, Reduction};
    ///
    /// let mut numbers = Reduction::of(Op::Mean).nan(NanPolicy::Omit).accumulator::<f32>()?;
    /// numbers.extend([1.0, f32::NAN, 4.0]);
    /// assert_eq!(numbers.finish()?.number::<f32>(Op::Mean), Some(2.5));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// An operation that the type does not have, and [`Op::Dot`], which takes two
    /// arrays; an axis that a slice does not have; an [initial](Reduction::initial) value; a
    /// device that this machine lacks.
    pub fn accumulator<T: Item>(&self) -> Result<Accumulator<T>> {
        self.named_axes().resolve(1)?;
        self.check_type(T::Element::DTYPE, 1)?;
        initial::none(self)?;
        Accumulator::empty(self.of_all())
    }
}

impl<T: Item> Accumulator<T> {
    /// An accumulator for several operations under the default rules. For others,
    /// see [`Reduction::accumulator`].
    ///
    /// # Errors
    /// An operation that the type does not have; [`Op::Dot`]; [`Error::Operations`]
    /// if there is none.
    pub fn new(ops: impl IntoIterator<Item = Op>) -> Result<Accumulator<T>> {
        Reduction::new(ops).accumulator()
    }

    fn empty(question: Reduction) -> Result<Accumulator<T>> {
        let dtype = T::Element::DTYPE;
        let (_, ops) = question.kinds();
        let done = Partial::new(dtype, Vec::new(), ops, vec![question.identities(dtype)?])?;
        Ok(Accumulator::from_parts(question, done))
    }

    fn from_parts(question: Reduction, done: Partial) -> Accumulator<T> {
        let pending = Vec::new();
        Accumulator { question, done, pending, start: 0, split: ([0; 8], 0), failed: None }
    }

    /// The same, with the next element at `position`: for a piece of a whole.
    /// Only operations that know positions care, as
    /// [`Reduction::partial`] tells.
    #[must_use]
    pub fn starting_at(mut self, position: u64) -> Self {
        self.flush();
        self.start = position;
        self
    }

    /// The rules by which it finishes.
    #[cfg(feature = "serde")]
    pub(crate) fn rules(&self) -> &Rules {
        self.question.rules()
    }

    /// The same, finished by these rules.
    #[cfg(feature = "serde")]
    pub(crate) fn finished_by(mut self, rules: Rules) -> Self {
        self.question = self.question.finished_by(rules);
        self
    }

    /// The position of the next element.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.start.saturating_add(self.pending.len() as u64)
    }

    /// Takes in one number.
    #[inline]
    pub fn push(&mut self, item: T) {
        self.pending.push(item.to_element());
        if self.pending.len() >= BLOCK || self.split.1 > 0 {
            self.after_push();
        }
    }

    #[cold]
    fn after_push(&mut self) {
        if let Err(error) = self.complete() {
            self.failed.get_or_insert(error);
        }
        self.flush();
    }

    /// Takes in a slice, on several threads if it is long.
    ///
    /// # Errors
    /// What went wrong before; a position beyond 2^64 or given before; a device
    /// that fails. After an error nothing of the slice was taken in.
    pub fn absorb(&mut self, items: &[T]) -> Result<()> {
        self.check()?;
        self.absorb_elements(T::elements(items))
    }

    /// Takes in a slice whose first element is at `position`; what follows
    /// follows it. Slices may come in any order.
    ///
    /// ```
    /// use warpfold::{Accumulator, Op};
    ///
    /// let mut places = Accumulator::<i32>::new([Op::ArgMax])?;
    /// places.absorb_at(2, &[7, 9])?;
    /// places.absorb_at(0, &[1, 9])?;
    /// assert_eq!(places.finish()?.number::<u64>(Op::ArgMax), Some(1));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`absorb`](Self::absorb).
    pub fn absorb_at(&mut self, position: u64, items: &[T]) -> Result<()> {
        self.check()?;
        let settled = self.settled()?;
        self.settle(settled);
        self.done.merge(&self.question.partial(T::elements(items), position)?)?;
        self.start = position + items.len() as u64;
        Ok(())
    }

    /// Takes in the bytes of elements, as memory holds them: in the machine's
    /// order, aligned or not, cut anywhere. An element that a call leaves
    /// incomplete waits for the next.
    ///
    /// # Errors
    /// As for [`absorb`](Self::absorb), but after an error the accumulator is of no
    /// use.
    pub fn absorb_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.sound()?;
        self.absorb_raw(bytes).inspect_err(|error| self.fail(error.clone()))
    }

    fn absorb_raw(&mut self, mut bytes: &[u8]) -> Result<()> {
        let size = size_of::<T::Element>();
        let (split, held) = &mut self.split;
        if *held > 0 {
            let (rest, after) = bytes.split_at(bytes.len().min(size - *held));
            split[*held..*held + rest.len()].copy_from_slice(rest);
            *held += rest.len();
            bytes = after;
            if *held < size {
                return Ok(());
            }
            *held = 0;
            let element = bytemuck::pod_read_unaligned(&split[..size]);
            self.absorb_elements(&[element])?;
        }
        let (whole, rest) = bytes.split_at(bytes.len() / size * size);
        match bytemuck::try_cast_slice(whole) {
            Ok(elements) => self.absorb_elements(elements)?,
            Err(_) => {
                for block in whole.chunks(BLOCK * size) {
                    let mut aligned = vec![T::Element::zeroed(); block.len() / size];
                    bytemuck::cast_slice_mut(&mut aligned).copy_from_slice(block);
                    self.absorb_elements(&aligned)?;
                }
            }
        }
        self.split.0[..rest.len()].copy_from_slice(rest);
        self.split.1 = rest.len();
        Ok(())
    }

    fn absorb_elements(&mut self, elements: &[T::Element]) -> Result<()> {
        if self.pending.len() + elements.len() < BLOCK {
            self.pending.extend_from_slice(elements);
            return Ok(());
        }
        self.flush();
        self.sound()?;
        let (blocks, rest) = elements.split_at(elements.len() / BLOCK * BLOCK);
        if !blocks.is_empty() {
            // Positions of all of the slice, so that an error leaves none of it.
            if self.start.checked_add(elements.len() as u64).is_none() {
                return Err(Error::StartTooLarge { start: self.start, len: elements.len() });
            }
            self.done.merge(&self.question.partial(blocks, self.start)?)?;
            self.start += blocks.len() as u64;
        }
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    /// Takes in all of another accumulator. What follows follows the last of both.
    ///
    /// # Errors
    /// [`Error::StateMismatch`] if the operations differ, [`Error::Overlap`] if both
    /// hold an element whose position matters, and what went wrong before in
    /// either. After an error both are as they were.
    pub fn merge(&mut self, other: &Accumulator<T>) -> Result<()> {
        let mut merged = self.settled()?;
        merged.merge(&other.settled()?)?;
        self.settle(merged);
        self.start = self.start.max(other.position());
        Ok(())
    }

    /// The answers so far. More can be taken in afterwards.
    ///
    /// # Errors
    /// Those of finishing: see [`Reduction::run`]. [`Error::SplitElement`] if
    /// bytes of an element are there and others not; what went wrong before.
    pub fn finish(&self) -> Result<Answer> {
        self.check()?;
        if self.pending.is_empty() {
            return self.done.finish(self.question.rules());
        }
        self.settled()?.finish(self.question.rules())
    }

    /// The state so far, which can be written down, sent and merged.
    ///
    /// # Errors
    /// [`Error::SplitElement`]; what went wrong before.
    pub fn to_partial(&self) -> Result<Partial> {
        self.settled()
    }

    /// What was taken in, and what is pending.
    fn settled(&self) -> Result<Partial> {
        self.check()?;
        let mut all = self.done.clone();
        if !self.pending.is_empty() {
            all.merge(&self.question.partial(&self.pending, self.start)?)?;
        }
        Ok(all)
    }

    /// Puts the settled state in the place of what it was made of.
    fn settle(&mut self, settled: Partial) {
        self.done = settled;
        self.start = self.position();
        self.pending.clear();
    }

    /// Takes in what is pending.
    fn flush(&mut self) {
        if self.pending.is_empty() || self.failed.is_some() {
            return self.pending.clear();
        }
        let taken = self.question.partial(&self.pending, self.start);
        match taken.and_then(|taken| self.done.merge(&taken)) {
            Ok(()) => self.start += self.pending.len() as u64,
            Err(error) => self.fail(error),
        }
        self.pending.clear();
    }

    fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// # Errors
    /// What went wrong first.
    fn sound(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// # Errors
    /// Bytes of an element without the others.
    fn complete(&self) -> Result<()> {
        match self.split.1 {
            0 => Ok(()),
            held => Err(Error::SplitElement { held, size: size_of::<T::Element>() }),
        }
    }

    fn check(&self) -> Result<()> {
        self.sound()?;
        self.complete()
    }
}

/// The sum of no elements.
impl<T: Item> Default for Accumulator<T> {
    fn default() -> Accumulator<T> {
        let question = Reduction::of(Op::Sum);
        let dtype = T::Element::DTYPE;
        let failed = question.check_type(dtype, 1).err();
        let done = Partial::sum_of_none(dtype);
        Accumulator { failed, ..Accumulator::from_parts(question, done) }
    }
}

impl<T: Item> Extend<T> for Accumulator<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<'a, T: Item> Extend<&'a T> for Accumulator<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, items: I) {
        items.into_iter().for_each(|&item| self.push(item));
    }
}

/// The sum of an iterator's numbers. For other operations, make an accumulator
/// of them and [`extend`](Extend::extend) it.
impl<T: Item> FromIterator<T> for Accumulator<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Accumulator<T> {
        let mut all = Accumulator::default();
        all.extend(items);
        all
    }
}

/// The sum of the numbers that an iterator refers to.
impl<'a, T: Item> FromIterator<&'a T> for Accumulator<T> {
    fn from_iter<I: IntoIterator<Item = &'a T>>(items: I) -> Accumulator<T> {
        items.into_iter().copied().collect()
    }
}

impl<T: Item> Sum<T> for Accumulator<T> {
    fn sum<I: Iterator<Item = T>>(items: I) -> Accumulator<T> {
        items.collect()
    }
}

impl<'a, T: Item> Sum<&'a T> for Accumulator<T> {
    fn sum<I: Iterator<Item = &'a T>>(items: I) -> Accumulator<T> {
        items.collect()
    }
}

/// All of them merged; what goes wrong is said by the sum's
/// [`finish`](Accumulator::finish).
impl<T: Item> Sum for Accumulator<T> {
    fn sum<I: Iterator<Item = Accumulator<T>>>(mut parts: I) -> Accumulator<T> {
        let Some(mut all) = parts.next() else { return Accumulator::default() };
        for part in parts {
            if let Err(error) = all.merge(&part) {
                all.fail(error);
            }
        }
        all
    }
}

impl<T: Item> TryFrom<Accumulator<T>> for Partial {
    type Error = Error;

    /// # Errors
    /// Those of [`Accumulator::to_partial`].
    fn try_from(accumulator: Accumulator<T>) -> Result<Partial> {
        accumulator.to_partial()
    }
}

impl<T: Item> TryFrom<Partial> for Accumulator<T> {
    type Error = Error;

    /// An accumulator under the default rules that goes on where a partial ends.
    /// It does not say at which position that is: see
    /// [`Accumulator::starting_at`].
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] if it is of other elements; [`Error::ShapeMismatch`]
    /// if it has several outputs; [`Error::StateMismatch`] if the operations need
    /// other states than it has, as [`Op::Dot`] does.
    fn try_from(partial: Partial) -> Result<Accumulator<T>> {
        let dtype = T::Element::DTYPE;
        let Some(partial) = partial.reading(dtype) else {
            return Err(Error::DTypeMismatch { left: dtype, right: partial.dtype() });
        };
        let [states] = partial.states() else {
            let right = partial.shape().to_vec();
            return Err(Error::ShapeMismatch { left: Vec::new(), right });
        };
        let held: Vec<_> = states.iter().map(|state| state.kind()).collect();
        let asked = Reduction::new(partial.ops());
        asked.check(dtype, 1)?;
        let (wanted, _) = asked.kinds();
        if wanted != held {
            let (left, right) = (format!("{wanted:?}"), format!("{held:?}"));
            return Err(Error::StateMismatch { what: "kind", left, right });
        }
        Ok(Accumulator::from_parts(asked, partial.reshaped(Vec::new())?))
    }
}
