//! Answers of reductions.

use core::fmt;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Error, Item, Op, Result, Rules, Scalar, Value};

/// The answers to one operation, in C order of the answer's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Column {
    /// The operation.
    pub op: Op,
    /// The numbers: one for each output.
    pub numbers: Numbers,
    /// The second numbers of `minmax` and `argminmax`: the largest.
    pub second: Option<Numbers>,
}

impl Column {
    /// Packs values, which must all be of one type.
    pub(crate) fn pack(op: Op, dtype: DType, rules: &Rules, values: &[Value]) -> Column {
        let of = |pick: &dyn Fn(&Value) -> Option<Scalar>| {
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
