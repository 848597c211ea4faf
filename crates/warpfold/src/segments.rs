//! Segments: answers for runs of elements of one array.

pub(crate) mod parts;

use crate::answer::{Answer, Column};
use crate::array::{Array, Pair, Place};
use crate::devices;
use crate::initial;
use crate::reduction::Reduction;
use core::fmt;
use warpfold_core::layout::View;
use warpfold_core::{DType, Element, Error, Item, Op, Result, fpenv};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Bounds, Indices, SegmentJob};

mod sealed {
    pub trait Sealed {}
}

/// Integers that say where segments begin or end, or how long they are: slices, arrays and
/// vectors of `u32`, `u64`, `i32`, `i64`, `usize` or `isize`.
///
/// Sealed: nobody else implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say where segments are",
    note = "a reference to a slice, an array or a vector of u32, u64, i32, i64, usize or isize does: of a slice `s` it is `&s`"
)]
pub trait Boundaries: sealed::Sealed + fmt::Debug + Send + Sync {
    /// The integers.
    #[doc(hidden)]
    fn indices(&self) -> Indices<'_>;
}

macro_rules! holders {
    ($(($($generics:tt)*) $holder:ty;)*) => {$(
        impl<$($generics)*> sealed::Sealed for $holder {}
        impl<$($generics)*> Boundaries for $holder {
            fn indices(&self) -> Indices<'_> {
                T::indices(self)
            }
        }
    )*};
}
holders! {
    (T: Boundary) Vec<T>;
    (T: Boundary) Box<[T]>;
    (T: Boundary) &[T];
    (T: Boundary, const N: usize) [T; N];
}

/// An integer of [`Boundaries`].
#[doc(hidden)]
pub trait Boundary: sealed::Sealed + fmt::Debug + Send + Sync + Sized {
    fn indices(items: &[Self]) -> Indices<'_>;
}

macro_rules! boundaries {
    ($($t:ty, |$items:ident| $indices:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Boundary for $t {
            fn indices($items: &[$t]) -> Indices<'_> {
                $indices
            }
        }
    )*};
}
boundaries! {
    u32, |items| Indices::U32(items);
    u64, |items| Indices::U64(items);
    i32, |items| Indices::I32(items);
    i64, |items| Indices::I64(items);
}
#[cfg(target_pointer_width = "64")]
boundaries! {
    usize, |items| Indices::U64(bytemuck::cast_slice(items));
    isize, |items| Indices::I64(bytemuck::cast_slice(items));
}
#[cfg(target_pointer_width = "32")]
boundaries! {
    usize, |items| Indices::U32(bytemuck::cast_slice(items));
    isize, |items| Indices::I32(bytemuck::cast_slice(items));
}

/// The elements of an array as [`Boundaries`], in place where they lie in a slice of 32 or 64
/// bits; `None` if it is not one of integers of one axis.
#[must_use]
pub fn boundaries<'a>(view: &View<'a>) -> Option<Box<dyn Boundaries + 'a>> {
    /// In place, or copied.
    fn whole<'a, T: Boundary + Element>(view: &View<'a>) -> Box<dyn Boundaries + 'a> {
        let slice =
            view.contiguous().and_then(|bytes| bytemuck::try_cast_slice::<u8, T>(bytes).ok());
        match slice {
            Some(items) => Box::new(items),
            None => Box::new(copied::<T>(view)),
        }
    }
    fn wide<T: Element + Into<i32>>(view: &View<'_>) -> Box<dyn Boundaries> {
        Box::new(copied::<T>(view).into_iter().map(Into::into).collect::<Vec<i32>>())
    }
    fn copied<T: Element>(view: &View<'_>) -> Vec<T> {
        let mut items = vec![<T as bytemuck::Zeroable>::zeroed(); view.len()];
        view.read_column(0, bytemuck::cast_slice_mut(&mut items));
        items
    }
    if view.shape().len() != 1 {
        return None;
    }
    Some(match view.dtype() {
        DType::I8 => wide::<i8>(view),
        DType::U8 => wide::<u8>(view),
        DType::I16 => wide::<i16>(view),
        DType::U16 => wide::<u16>(view),
        DType::I32 => whole::<i32>(view),
        DType::U32 => whole::<u32>(view),
        DType::I64 => whole::<i64>(view),
        DType::U64 => whole::<u64>(view),
        _ => return None,
    })
}

/// Where the segments of an array begin and end.
///
/// ```
/// use warpfold::{Op, Reduction, Segments};
///
/// let x = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
/// let sums = |segments: Segments<'_>| -> warpfold::Result<Vec<f64>> {
///     let answer = Reduction::of(Op::Sum).segments(segments).run(&x)?;
///     Ok(answer.slice(Op::Sum).unwrap_or_default().to_vec())
/// };
/// assert_eq!(sums(Segments::Offsets(&[0u32, 2, 2, 6]))?, [3.0, 0.0, 60.0]);
/// assert_eq!(sums(Segments::Lengths(&[2i64, 0, 4]))?, [3.0, 0.0, 60.0]);
/// assert_eq!(sums(Segments::StartsStops(&[4u64, 0], &[6u64, 5]))?, [48.0, 31.0]);
/// assert_eq!(sums(Segments::Fixed(3))?, [7.0, 56.0]);
/// # Ok::<(), warpfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Segments<'a> {
    /// `n + 1` ascending offsets for `n` segments: segment `i` begins at offset `i` and ends
    /// before offset `i + 1`. The first and the last may leave elements of the array out.
    Offsets(&'a dyn Boundaries),
    /// The segments follow each other from the first element to the last, and have these
    /// lengths.
    Lengths(&'a dyn Boundaries),
    /// Segment `i` begins at number `i` of the first and ends before number `i` of the
    /// second. Segments may overlap, leave gaps and come in any order.
    StartsStops(&'a dyn Boundaries, &'a dyn Boundaries),
    /// The segments follow each other and have this length, which divides the array's.
    Fixed(usize),
}

impl Segments<'_> {
    fn bounds(&self) -> Bounds<'_> {
        match *self {
            Segments::Offsets(offsets) => Bounds::Offsets(offsets.indices()),
            Segments::Lengths(lengths) => Bounds::Lengths(lengths.indices()),
            Segments::StartsStops(starts, stops) => {
                Bounds::StartsStops(starts.indices(), stops.indices())
            }
            Segments::Fixed(len) => Bounds::Fixed(len),
        }
    }
}

/// A [`Reduction`] of each segment of an array: [`Reduction::segments`] makes it.
#[derive(Clone, Debug)]
pub struct Segmented<'s> {
    pub(crate) reduction: Reduction,
    segments: Segments<'s>,
}

impl Reduction {
    /// Reduces each segment of an array of one axis by itself.
    ///
    /// ```
    /// use warpfold::{Op, Reduction, Segments};
    ///
    /// let x = [3.0, 1.0, 4.0, 1.0, 5.0];
    /// let offsets = vec![0, 3, 5];
    /// let segments = Segments::Offsets(&offsets);
    /// let answer = Reduction::new([Op::Sum, Op::ArgMax]).segments(segments).run(&x)?;
    /// assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[8.0, 6.0][..]));
    /// // Positions count from the segment's first element.
    /// assert_eq!(answer.slice::<u64>(Op::ArgMax), Some(&[2, 1][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn segments(self, segments: Segments<'_>) -> Segmented<'_> {
        Segmented { reduction: self, segments }
    }
}

impl Segmented<'_> {
    /// A value that takes part in each segment: see [`Reduction::initial`].
    ///
    /// ```
    /// use warpfold::{Op, Reduction, Segments};
    ///
    /// let question = Reduction::of(Op::Max).segments(Segments::Offsets(&[0, 2, 2]));
    /// let refused = question.clone().run(&[5, 7]).unwrap_err();
    /// assert_eq!(refused.to_string(), "segment 1: max of no elements has no value");
    /// let answer = question.initial(0).run(&[5, 7])?;
    /// assert_eq!(answer.slice::<i32>(Op::Max), Some(&[7, 0][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn initial<T: Item>(mut self, value: T) -> Self {
        self.reduction = self.reduction.initial(value);
        self
    }

    /// The answers: of each operation a number for each segment, those that
    /// [`Reduction::run`] gives for the segment's elements alone, bit for bit.
    ///
    /// A segment of no elements has the operation's value of none: 0, 1, NaN. Elements
    /// without a value are left out, and count as positions. Threads share the elements
    /// and the segments; a long segment is shared by itself.
    ///
    /// # Errors
    /// [`Error::BadSegment`] names the first segment that cannot be, [`Error::BadSegments`]
    /// says what else does not fit: an array that has not one axis, or axes to reduce,
    /// among others. [`Error::InSegment`] names the first segment that has no answer, with
    /// the cause: `min` and its kin of nothing, integer totals that do not fit, NaNs
    /// under [`NanPolicy::Error`](crate::NanPolicy::Error). [`Error::BadInitial`]. The rest
    /// as for [`Reduction::run`].
    ///
    /// # Devices
    /// An array in the memory of a device is reduced there, and one in the host's memory is
    /// sent to a device that is [named](Reduction::device). Kernels answer under the default
    /// rules and any `ddof`, of elements that follow each other and all have a value: what is
    /// asked of floats, and of integers all but products, sums of squares and norms of these.
    /// The CPU answers the rest, of a copy, with the same bits; so it does where a segment
    /// has no answer, to say why.
    pub fn run<'a>(&self, array: impl Into<Array<'a>>) -> Result<Answer> {
        self.run_array(array.into())
    }

    /// The same, compiled once for all arrays.
    fn run_array(&self, array: Array<'_>) -> Result<Answer> {
        self.reduction.until.check()?;
        let input = match array.into_place() {
            Place::Host(input) => input,
            Place::Device(array) => return self.run_in_place(&array, None),
        };
        let view = input.view()?;
        let valid = |row: usize| input.is_valid(row);
        let valid: Option<&(dyn Fn(usize) -> bool + Sync)> =
            if input.missing() > 0 { Some(&valid) } else { None };
        fpenv::usual(|| self.answer([Some(&view), None], valid))
    }

    /// The answers of two arrays: [`Op::Dot`]. Where one of two elements has no value, both
    /// are left out.
    ///
    /// ```
    /// use warpfold::{Op, Reduction, Segments};
    ///
    /// let question = Reduction::of(Op::Dot).segments(Segments::Fixed(2));
    /// let answer = question.run_pair(&[1.0, 2.0, 3.0, 4.0], &[10.0, 1.0, 0.0, 2.0])?;
    /// assert_eq!(answer.slice::<f64>(Op::Dot), Some(&[12.0, 8.0][..]));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Self::run); arrays of different shapes or types, and operations on
    /// one array.
    pub fn run_pair<'a>(
        &self,
        left: impl Into<Array<'a>>,
        right: impl Into<Array<'a>>,
    ) -> Result<Answer> {
        self.run_arrays(left.into(), right.into())
    }

    fn run_arrays<'a>(&self, left: Array<'a>, right: Array<'a>) -> Result<Answer> {
        let [left, right] = match Pair::new(left, right)? {
            Pair::Host(both) => both,
            Pair::Device([left, right]) => return self.run_in_place(&left, Some(&right)),
        };
        let views = [left.view()?, right.view()?];
        let valid = |row: usize| left.is_valid(row) && right.is_valid(row);
        let valid: Option<&(dyn Fn(usize) -> bool + Sync)> =
            if left.missing() + right.missing() > 0 { Some(&valid) } else { None };
        fpenv::usual(|| self.answer(views.each_ref().map(Some), valid))
    }

    /// The answers about arrays in the host's memory: by the device that is named, or the
    /// CPU.
    fn answer(
        &self,
        views: [Option<&View<'_>>; 2],
        valid: Option<&(dyn Fn(usize) -> bool + Sync)>,
    ) -> Result<Answer> {
        let Some(first) = views[0] else {
            return Err(Error::Arity { op: Op::Sum, takes: 1, given: 0 });
        };
        self.reduction.check(first.dtype(), views.iter().flatten().count())?;
        let Some(opened) = devices::of(self.reduction.named_device())? else {
            return self.on_cpu(views, valid);
        };
        self.check_axes(first.shape())?;
        let whole = views[1].is_none() && valid.is_none();
        let ask = |ops: &[Op], bounds: &Bounds<'_>, initial| {
            if !whole {
                return Ok(vec![None; ops.len()]);
            }
            opened.numbers_of_segments((ops, &self.reduction.rules), first, bounds, initial)
        };
        self.shared(first.dtype(), first.shape(), ask, |rest| rest.on_cpu(views, valid))
    }

    /// The same by the CPU.
    pub(crate) fn on_cpu(
        &self,
        views: [Option<&View<'_>>; 2],
        valid: Option<&(dyn Fn(usize) -> bool + Sync)>,
    ) -> Result<Answer> {
        let Segmented { reduction, segments } = self;
        let Some(first) = views[0] else {
            return Err(Error::Arity { op: Op::Sum, takes: 1, given: 0 });
        };
        let dtype = first.dtype();
        reduction.check(dtype, views.iter().flatten().count())?;
        self.check_axes(first.shape())?;
        let initial = initial::of(reduction, dtype)?;
        let (kinds, ops) = reduction.kinds();
        let (isa, threads) = (Isa::active()?, reduction.named_threads());
        let bounds = segments.bounds();
        let job = SegmentJob { views, bounds, valid, initial, kinds: &kinds, isa, threads };
        let (segments, columns) =
            job.answers_until(&ops, &reduction.rules, &|| reduction.until.is_over())?;
        let columns = ops.iter().zip(columns);
        let columns = columns
            .map(|(&(op, _), column)| Column { op, numbers: column.numbers, second: column.second })
            .collect();
        Ok(Answer { shape: vec![segments], columns })
    }
}
