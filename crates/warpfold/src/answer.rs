//! Answers of reductions.

use crate::initial::converted;
use core::fmt;
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Element, Error, Item, Op, Result, Rules, Scalar, Value};

/// The answers to one operation, in C order of the answer's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Column {
    /// The operation.
    pub op: Op,
    /// The numbers: one for each output.
    pub numbers: Numbers,
    /// The second numbers of `minmax` and `argminmax`: the largest.
    pub second: Option<Numbers>,
}

impl Column {
    /// The answers to an operation: a number for each output, and for `minmax` and
    /// `argminmax` a second one.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if there are not as many second numbers, or some where the
    /// operation has none; [`Error::DTypeMismatch`] if they are of another type.
    pub fn new(op: Op, numbers: Numbers, second: Option<Numbers>) -> Result<Column> {
        let wants = if halves(op).len() == 2 { numbers.len() } else { 0 };
        let has = second.as_ref().map_or(0, Numbers::len);
        if wants != has || second.is_some() != (halves(op).len() == 2) {
            return Err(Error::ShapeMismatch { left: vec![wants], right: vec![has] });
        }
        match second.as_ref().map_or(numbers.dtype(), Numbers::dtype) {
            right if right != numbers.dtype() => {
                Err(Error::DTypeMismatch { left: numbers.dtype(), right })
            }
            _ => Ok(Column { op, numbers, second }),
        }
    }

    /// Packs values, which must all be of one type.
    pub(crate) fn pack(op: Op, dtype: DType, rules: &Rules, values: &[Value]) -> Column {
        let of = |pick: &dyn Fn(&Value) -> Option<Scalar>| {
            if rules.decimals.is_some()
                && let Some(wide) = Numbers::of_wide(values.iter().filter_map(pick))
            {
                return wide;
            }
            let dtype = values
                .first()
                .and_then(pick)
                .map_or_else(|| rules.out.unwrap_or(op.answer_type(dtype)), Scalar::dtype);
            let mut numbers = Numbers::zeros(dtype, values.len());
            let bytes = numbers.bytes_mut();
            for (i, value) in values.iter().enumerate() {
                if let Some(scalar) = pick(value) {
                    Numbers::set_bits(bytes, dtype, i, scalar.to_bits());
                }
            }
            numbers
        };
        Column {
            op,
            numbers: of(&|v| Some(v.first())),
            second: halves(op).get(1).map(|_| of(&|v| v.second())),
        }
    }

    /// Puts the answers of further outputs behind these.
    ///
    /// # Errors
    /// [`Error::StateMismatch`] if they are of another operation, [`Error::DTypeMismatch`] if
    /// they are of another type, [`Error::TooManyOutputs`] where there is no memory for all.
    pub fn append(&mut self, others: &Column) -> Result<()> {
        if self.op != others.op {
            let (left, right) = (self.op.to_string(), others.op.to_string());
            return Err(Error::StateMismatch { what: "operation", left, right });
        }
        if self.numbers.dtype() != others.numbers.dtype() {
            let (left, right) = (self.numbers.dtype(), others.numbers.dtype());
            return Err(Error::DTypeMismatch { left, right });
        }
        self.numbers.append(&others.numbers)?;
        match (&mut self.second, &others.second) {
            (Some(all), Some(others)) => all.append(others),
            _ => Ok(()),
        }
    }

    /// How many outputs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are no outputs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The answer of output `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value> {
        let first = self.numbers.get(index)?;
        Some(match &self.second {
            Some(second) => Value::Pair(first, second.get(index)?),
            None => Value::One(first),
        })
    }
}

/// The operations of one number each that an operation's answer is put together
/// of.
pub(crate) fn halves(op: Op) -> Vec<Op> {
    op.pair().map_or_else(|| vec![op], |(first, second)| vec![first, second])
}

/// How many outputs a shape has; `None` if it is one that no view has.
pub(crate) fn outputs_of(shape: &[usize]) -> Option<usize> {
    let within = shape.iter().try_fold(1isize, |n, &d| n.checked_mul(d.max(1).try_into().ok()?))?;
    Some(if shape.contains(&0) { 0 } else { within.unsigned_abs() })
}

/// The answers to a [`Reduction`](crate::Reduction): a column for each
/// operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Answer {
    pub(crate) shape: Vec<usize>,
    pub(crate) columns: Vec<Column>,
}

impl Answer {
    /// The shape of each column: empty for a full reduction.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The same answers in another shape, with as many outputs.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the shape has not.
    pub fn reshaped(mut self, shape: Vec<usize>) -> Result<Answer> {
        if outputs_of(&shape) == outputs_of(&self.shape) {
            self.shape = shape;
            Ok(self)
        } else {
            Err(Error::ShapeMismatch { left: self.shape, right: shape })
        }
    }

    /// An answer of columns that were put together elsewhere.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if a column has another number of outputs than
    /// the shape, or if no array has that shape.
    pub fn from_columns(shape: Vec<usize>, columns: Vec<Column>) -> Result<Answer> {
        let Some(outputs) = outputs_of(&shape) else {
            return Err(Error::ShapeMismatch { left: shape, right: Vec::new() });
        };
        match columns.iter().find(|c| c.len() != outputs) {
            Some(column) => Err(Error::ShapeMismatch { left: shape, right: vec![column.len()] }),
            None => Ok(Answer { shape, columns }),
        }
    }

    /// The columns, in the order of the operations.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns, taken out.
    #[must_use]
    pub fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// The column of `op`.
    #[must_use]
    pub fn column(&self, op: Op) -> Option<&Column> {
        self.columns.iter().find(|c| c.op == op)
    }

    /// The first answer to the first operation: the whole answer of a full
    /// reduction with one operation.
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        self.columns.first().and_then(|c| c.get(0))
    }

    /// The answers to `op` as a slice, if `T` is their type: `bool` for truth
    /// values, `u64` or `usize` for positions.
    #[must_use]
    pub fn slice<T: Item>(&self, op: Op) -> Option<&[T]> {
        self.column(op).and_then(|c| c.numbers.as_slice())
    }

    /// The answer to `op`, if `T` is its type: of a full reduction the whole
    /// answer, else the first.
    ///
    /// ```
    /// use warpfold::{Op, Reduction};
    ///
    /// let answer = Reduction::new([Op::Sum, Op::Any]).run(&[1, 2, 4])?;
    /// assert_eq!(answer.number::<i64>(Op::Sum), Some(7));
    /// assert_eq!(answer.number::<bool>(Op::Any), Some(true));
    /// assert_eq!(answer.number::<f64>(Op::Sum), None);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    #[must_use]
    pub fn number<T: Item>(&self, op: Op) -> Option<T> {
        self.slice(op).and_then(|numbers| numbers.first().copied())
    }
}

impl Answer {
    /// The only column, if `N` numbers for each output are in it.
    ///
    /// # Errors
    /// [`Error::OtherAnswer`].
    fn only<const N: usize>(&self) -> Result<[&Numbers; N]> {
        let other = |what: String, hint: &'static str| Err(Error::OtherAnswer { what, hint });
        let [column] = &self.columns[..] else {
            let what =
                format!("there are answers to {} operations, not to one", self.columns.len());
            return other(what, "`answer.number::<f64>(Op::Sum)` is that of one of them");
        };
        let both: Vec<&Numbers> = core::iter::once(&column.numbers).chain(&column.second).collect();
        match <[&Numbers; N]>::try_from(both) {
            Ok(numbers) => Ok(numbers),
            Err(both) => {
                let what = format!("{} answers {} numbers, not {N}", column.op, both.len());
                other(what, "minmax and argminmax answer two: `(T, T)`; others one: `T`")
            }
        }
    }

    /// The bits of the numbers of the only output, as numbers of a type.
    ///
    /// # Errors
    /// [`Error::OtherAnswer`].
    fn alone<const N: usize>(&self, to: DType) -> Result<[u64; N]> {
        let all = self.only::<N>()?;
        let outputs = outputs_of(&self.shape);
        if outputs != Some(1) {
            return Err(Error::OtherAnswer {
                what: format!("there are {} answers, not one", all[0].len()),
                hint: "`Vec<T>` takes all of them, and with the feature `ndarray` `into_array`",
            });
        }
        let mut found = [0; N];
        for (found, number) in found.iter_mut().zip(all.iter().filter_map(|all| all.get(0))) {
            *found = exactly(number, to)?;
        }
        Ok(found)
    }
}

/// The bits of the same number of another type.
///
/// # Errors
/// [`Error::OtherAnswer`] if that does not have it.
fn exactly(number: Scalar, to: DType) -> Result<u64> {
    match converted(number, to) {
        _ if number.dtype() == to => Ok(number.to_bits()),
        Some(found) => Ok(found.to_bits()),
        None => Err(Error::OtherAnswer {
            what: format!("the answer is {number} of {}, which no {to} is", number.dtype()),
            hint: "ask for that type, in which the answer is rounded: `out(DType::F32)`",
        }),
    }
}

/// The number that bits are.
fn number<T: Item>(bits: u64) -> T {
    T::from_element(T::Element::from_bits(bits))
}

/// All answers to the only operation, in C order. Numbers of another type are converted, if
/// that has each of them.
///
/// ```
/// use warpfold::Reduction;
///
/// let sums: Vec<i64> = Reduction::sum().axis(0).run(&[[1, 2], [3, 4]])?.try_into()?;
/// assert_eq!(sums, [4, 6]);
/// # Ok::<(), warpfold::Error>(())
/// ```
impl<T: Item> TryFrom<Answer> for Vec<T> {
    type Error = Error;

    /// # Errors
    /// [`Error::OtherAnswer`] of several operations, of `minmax` and `argminmax`, and of a
    /// number that the type does not have.
    fn try_from(answer: Answer) -> Result<Vec<T>> {
        let [numbers] = answer.only()?;
        if let Some(same) = numbers.as_slice() {
            return Ok(same.to_vec());
        }
        numbers.iter().map(|of| exactly(of, T::Element::DTYPE).map(number)).collect()
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        /// The only answer to the only operation. A number of another type is converted, if
        /// that has it; [`Reduction::out`](crate::Reduction::out) asks for one that is
        /// rounded.
        ///
        /// ```
        /// use warpfold::Reduction;
        ///
        /// let mean: f64 = Reduction::mean().run(&[1, 2])?.try_into()?;
        /// assert_eq!(mean, 1.5);
        /// let several = Reduction::mean().axis(0).run(&[[1, 2], [3, 4]])?;
        /// assert!(f64::try_from(several).is_err());
        /// # Ok::<(), warpfold::Error>(())
        /// ```
        impl TryFrom<Answer> for $t {
            type Error = Error;

            /// # Errors
            /// [`Error::OtherAnswer`] of several answers, and of a number that the type does
            /// not have.
            fn try_from(answer: Answer) -> Result<$t> {
                let [only] = answer.alone(<<$t as Item>::Element as Element>::DTYPE)?;
                Ok(number(only))
            }
        }

        /// The only answer of `minmax` or `argminmax`: the smallest and the largest.
        impl TryFrom<Answer> for ($t, $t) {
            type Error = Error;

            /// # Errors
            /// As for one number.
            fn try_from(answer: Answer) -> Result<($t, $t)> {
                let [least, greatest] = answer.alone(<<$t as Item>::Element as Element>::DTYPE)?;
                Ok((number(least), number(greatest)))
            }
        }
    )*};
}
numbers!(bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f16, bf16, f32, f64);

/// The answers as lists, nested as the shape says. Several operations have a line
/// each, which begins with their name. Width and precision are those of each number.
///
/// ```
/// use warpfold::{Op, Reduction};
///
/// let rows = [[1, 2], [3, 4]];
/// assert_eq!(Reduction::of(Op::Sum).run(&rows)?.to_string(), "10");
/// assert_eq!(Reduction::of(Op::Sum).axis(0).run(&rows)?.to_string(), "[4, 6]");
/// let several = Reduction::new([Op::Mean, Op::MinMax]).run(&rows)?;
/// assert_eq!(format!("{several:.2}"), "mean: 2.50\nminmax: (1, 4)");
/// # Ok::<(), warpfold::Error>(())
/// ```
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = self.columns.len() > 1;
        for (line, column) in self.columns.iter().enumerate() {
            if line > 0 {
                f.write_str("\n")?;
            }
            if several {
                write!(f, "{}: ", column.op.name())?;
            }
            if column.is_empty() {
                // Of any shape with a 0 in it, however long its other axes.
                f.write_str("[]")?;
            } else {
                nested(column, &self.shape, &mut 0, f)?;
            }
        }
        Ok(())
    }
}

/// Writes the numbers of a shape; `next` is the place of the first.
fn nested(
    column: &Column,
    shape: &[usize],
    next: &mut usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let Some((&len, inner)) = shape.split_first() else {
        let value = column.get(*next);
        *next += 1;
        return value.map_or(Ok(()), |value| fmt::Display::fmt(&value, f));
    };
    f.write_str("[")?;
    for i in 0..len {
        if i > 0 {
            f.write_str(", ")?;
        }
        nested(column, inner, next, f)?;
    }
    f.write_str("]")
}
